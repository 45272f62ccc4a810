"""A release as a source of rows: those of its bundle, and more, at no cost. No true data is within reach."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from covey.answers.answer import in_library
from covey.answers.columns import Columns, Conditions, named
from covey.drawing import PART_PERSONS, Drawn, MakePersons, draw_persons
from covey.entropy import Streams
from covey.errors import CannotAnswerError, whole_number
from covey.privacy.certificate import TableBounds
from covey.reading import Reader
from covey.release.conditional import Centres, Wish, draw_rows
from covey.release.contents import Bounds, PrivateRelease
from covey.table.codec import Codec
from covey.table.sources import joined


@dataclass(frozen=True)
class Source(PrivateRelease):
    """A private release, from which rows can be drawn."""

    @property
    def several(self) -> bool:
        """Whether it is of persons with events: then rows are frames by the names of their tables."""
        return self.described.schema is None

    # Rows.

    def rows(self, library: str = "polars") -> Any:
        """The synthetic rows as a polars, pandas or arrow frame; of several tables frames by name."""
        return self._frames(list(self.parts), library)

    def sample(
        self, m: int, where: Conditions | None = None, *, library: str = "polars", seed: int | None = None
    ) -> Any:
        """More synthetic rows, or persons with their events, at no cost; also those that meet conditions.

        Conditions are given as `share` takes them; of persons with events they are about the persons.
        """
        return self._frames(list(self.draw(m, where, seed)), library)

    def draw(self, m: int, where: Conditions | None = None, seed: int | None = None) -> Iterable[Any]:
        """The same as columns, part by part, so that there may be more than the memory holds."""
        m, streams = whole_number(m, "m", 1, "It counts the synthetic rows, or persons."), streams_of(seed)
        if not self.several:
            wanted = Columns((self.codec,)).wishes(where or {})
            return draw_rows(Centres(self.codec, self.centres, self.numbers), m, wanted, streams)
        make = MakePersons(self.described, self.persons)
        return draw_persons(make, m, self._about_persons(where), streams) if where else Drawn(m, make, streams)

    def _about_persons(self, where: Conditions) -> list[Wish]:
        """Conditions on persons."""
        wanted = {}
        for name, value in named(where).items():
            part, field = self.described.find(name)
            if part.parent is not None:
                raise CannotAnswerError(
                    f"{name!r} is a column of events, of which a person has several: some or all of them may meet a condition. "
                    f"Persons are drawn by columns of {self.described.unit.name}."
                )
            wanted[field.name] = value
        return Columns(self.codecs[:1]).wishes(wanted)

    def _frames(self, parts: list[Any], library: str) -> Any:
        if not self.several:
            return in_library(joined(parts), library)
        names = [part.name for part in self.described.tables]
        return {name: in_library(joined([both[j] for both in parts]), library) for j, name in enumerate(names)}

    def certified(self, tables: Sequence[Mapping[str, Any]]) -> Bounds:
        """The certificate for these very tables, if they are all persons that there are."""
        found = self.certificate
        if self.own is not None or found is None or self.persons.reference is None or self.parts.m > PART_PERSONS:
            return self.own
        if not len(tables[1][self.described.events.link]):  # nothing to compare, and nothing to claim
            return TableBounds(dict.fromkeys(found.bound, 1.0))
        names = [part.name for part in self.described.tables]
        drawn, _ = Reader(self.described.plain()).open(dict(zip(names, tables, strict=True)))
        return found.for_table(self.persons.distances(drawn))

    @property
    def codecs(self) -> tuple[Codec, ...]:
        """How the columns of each table are categories."""
        return self.described.codecs

    @property
    def codec(self) -> Codec:
        """How the columns of the first table are."""
        return self.codecs[0]


def streams_of(seed: int | None) -> Streams:
    """Streams of a seed, or fresh ones."""
    return Streams.from_system() if seed is None else Streams.from_seed(whole_number(seed, "seed", 0))
