"""Synthetic units that come part by part, so that there may be more than the memory holds: rows, or persons with events."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from covey.engine.arrays import blas_threads
from covey.engine.codes.events import Histories
from covey.engine.draw.balanced import REFINE_CATEGORIES
from covey.engine.entropy import Streams
from covey.engine.models.laws import CodeLaw
from covey.engine.models.persons.law import PersonsLaw
from covey.engine.models.predict import CODE
from covey.libraries import pl
from covey.release.conditional import FEWEST, Wish, kept
from covey.tables.attributes import ColumnLog
from covey.tables.codec import Codec, Coding
from covey.tables.columns import made
from covey.tables.description import Description
from covey.tables.reading import Form

if TYPE_CHECKING:
    Both = tuple[dict[str, pl.Series], dict[str, pl.Series]]  # columns of persons and of their events


@dataclass(frozen=True)
class Drawn:
    """m synthetic units in parts. A part comes from a stream of its own: it is the same whenever and wherever it is drawn."""

    m: int
    _make: MakeRows | MakePersons
    _streams: Streams

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.m // self._make.size)

    @property
    def mended(self) -> int:
        """Rows that were altered, or drawn anew, because they broke a rule: all that this synthesizer has made so far."""
        return self._make.mended

    def part(self, k: int) -> Any:
        """The units of part k."""
        size = self._make.size
        with blas_threads(1):
            return self._make(min(size, self.m - k * size), k * size, self._streams.child(f"part {k}"))

    def __iter__(self) -> Iterator[Any]:
        return (self.part(k) for k in range(self.parts))


@dataclass(frozen=True)
class MakeRows:
    """Rows from their law: of a table where a codec decodes them, or else of an array, in the form that the caller's had."""

    law: Any
    codec: Codec | None
    coding: Coding
    form: Form
    size: ClassVar[int] = 1 << 18  # rows of a part: some hundred MiB for wide tables

    def memory(self, units: int) -> int:
        """Bytes of rows, with the pair tables that they are to match."""
        points, codes = self.law.cloud.points, isinstance(self.law, CodeLaw)
        width = int(points.shape[1])
        cells = CODE * len(self.law.domain.sizes) if codes else 8 * width
        tables = 20 * width**2 if not codes or width <= REFINE_CATEGORIES else 40 * points.size
        return units * cells + tables

    @property
    def mended(self) -> int:
        """Rows that were altered after drawing."""
        return 0 if self.codec is None else self.codec.book.mended

    def __call__(self, count: int, first: int, streams: Streams) -> Any:
        """Rows have no numbers."""
        rows = self.law.draw(count, streams)
        if self.codec is None:
            return self.form.restore(rows)
        return self.codec.decode(rows.astype(np.int64), streams.postprocessing("decode"), self.coding)


@dataclass(frozen=True)
class MakePersons:
    """Synthetic persons with their events, from their fitted law: columns of both tables."""

    described: Description
    law: PersonsLaw
    book: dict[int, int] = field(default_factory=dict)  # events that were drawn anew, by the first person of a part
    size: ClassVar[int] = 1 << 16  # persons of a part, with up to 50 events each

    def memory(self, units: int) -> int:
        """Bytes of the codes of persons, each with as many events as there may be."""
        persons, events = self.described.kinds
        return 8 * units * (len(persons) + self.described.link.at_most * len(events))

    @property
    def mended(self) -> int:
        """Events that were drawn anew because their person cannot have such ones."""
        return sum(self.book.values())

    def __call__(self, count: int, first: int, streams: Streams) -> Both:
        """Persons are numbered from 1."""
        again: list[int] = []
        codes = self.law.draw(count, streams, again.append)
        self.book[first] = sum(again)
        return drawn_columns(self.described, codes, streams.postprocessing("decode"), first + 1)


def draw_persons(make: MakePersons, m: int, wishes: Sequence[Wish], streams: Streams) -> Iterator[Both]:
    """m persons who meet the wishes, with their events, part by part: others are passed over, and those who stay are numbered."""
    unit, link, codec = make.described.unit.link, make.described.events.link, make.described.codecs[0]

    def some(count: int, own: Streams) -> tuple[Both, Mapping[str, Any]]:
        both = make(max(FEWEST, count), 0, own)
        return both, {name: both[0][name] for name in codec.schema.names}

    for (persons, events), keep, before in kept(codec, some, m, wishes, streams):
        ids, owner = before + np.cumsum(keep), events[link].to_numpy() - 1
        its = keep[owner]
        people = {name: column.filter(keep) for name, column in persons.items()}
        visits = {name: column.filter(its) for name, column in events.items()}
        yield {**people, unit: made(ids[keep])}, {**visits, link: made(ids[owner[its]])}


def drawn_columns(described: Description, drawn: Histories, public: np.random.Generator, first: int = 1) -> Both:
    """Drawn codes as columns of both tables; persons are numbered from `first`. All rules of both schemas hold."""
    unit, part, link, (persons, events) = described.unit, described.events, described.link, described.codecs
    people = {} if unit.bare else persons.decode(drawn.persons.astype(np.int64), public, "numbers")
    visits = events.decode(drawn.events.astype(np.int64), public, "numbers")
    visits = {name: visits[name] for name in visits if name in part.written.names}
    if link.order is not None and link.order in visits:  # values inside declared bins, and rules, may have moved it
        cells = events.attributes[link.order].read(visits[link.order], ColumnLog())
        rows = np.lexsort((cells, drawn.owner))
        visits = {name: column.gather(rows) for name, column in visits.items()}
    ids = np.arange(first, first + drawn.n)
    visits = {part.link: made(ids[drawn.owner]), **visits}
    if link.numbered and link.order is not None:  # it counts a person's events
        visits[link.order] = made(drawn.places + 1)
        visits = {name: visits[name] for name in (part.link, *part.schema.names)}
    return {unit.link: made(ids), **people}, visits
