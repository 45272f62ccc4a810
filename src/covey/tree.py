"""What a caller gives for persons and events → one object for a method; drawn sequences → the caller's two frames.

Persons are told apart, and events linked to them, by 128 bits of a hash under a key that is drawn for each reading and not kept,
as in `engines.persons`. Everything here may fail and speak of the tables; nothing was charged yet.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.core.arrays import Integers
from covey.core.numbers.grid import Attribute, Category
from covey.core.tables.events import Linked, timed
from covey.core.tables.zeros import held_in
from covey.engines.events import LinkedRows
from covey.engines.persons import Keyring, Keys
from covey.entropy import Streams
from covey.errors import InputError, ParameterError
from covey.keyed import NOTHING, bare, read, ties
from covey.methods.persons.method import LinkedFitted, RegainPersons
from covey.methods.persons.plan import LinkedPlan
from covey.table.attributes import ColumnLog
from covey.table.codec import Codec, EncodeLog
from covey.table.columns import made
from covey.table.description import Description
from covey.table.frames import FrameForm
from covey.table.resources import Resource
from covey.table.sources import joined
from covey.table.sparkfiles import PERSONS, SparkParquet
from covey.table.zeros import across_zeros, structural_zeros

if TYPE_CHECKING:
    from polars import Series

PART_PERSONS = 1 << 16  # synthetic persons that are drawn, decoded and written at a time, with up to 50 events each


@dataclass(frozen=True)
class ReadTree:
    """Persons with their events as codes, how the tables looked, what encoding met, and how many events were read. Private."""

    linked: Linked
    forms: tuple[FrameForm, FrameForm]
    logs: tuple[EncodeLog, EncodeLog]
    events: int

    def __repr__(self) -> str:
        return f"ReadTree({self.linked.n} persons)"


@dataclass(frozen=True)
class PreparedTree:
    """Persons with their events as codes. Private: it has no serializer, and its repr shows no record.

    Args:
        rows: both tables, linked.
        forms: how the two tables looked.
        logs: what encoding met in persons and in events.
        package: under which they were read.
        read: events that were read: for the owner of the tables alone.
        cut: how many of them are beyond the public limit of a person, for the same.
        broken: how many break a rule across the tables, for the same.
    """

    rows: LinkedRows
    forms: tuple[FrameForm, FrameForm]
    logs: tuple[EncodeLog, EncodeLog]
    package: Description
    read: int
    cut: int
    broken: int

    @property
    def n(self) -> int:
        """The number of persons, which is public."""
        return self.rows.n

    def __repr__(self) -> str:
        return f"PreparedTree({self.n} persons)"


class TreeReader:
    """Reads and writes the two tables of a package."""

    def __init__(self, package: Description) -> None:
        self.package = package
        self.persons, self.events = Codec(package.unit.schema), Codec(package.events.measured)
        for part, codec in zip(package.tables, (self.persons, self.events), strict=True):
            if not codec.names:
                raise part.wrong("has only constants besides its keys", "There is nothing to synthesize in it.")

    def tables(self, given: Any) -> tuple[Any, Any]:
        """The two tables that a caller gave by name."""
        names = [part.name for part in self.package.given]
        if not isinstance(given, Mapping) or set(given) != set(names):
            listed = ", ".join(f"{name!r}: …" for name in names)
            raise ParameterError(f"give {'both tables' if len(names) == 2 else 'the table'} by name: {{{listed}}}.")
        if any(isinstance(table, SparkParquet) for table in given.values()):
            raise ParameterError(PERSONS)
        return (None if self.package.alone else given[names[0]]), given[names[-1]]

    @property
    def attributes(self) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """What is measured of persons and of events; persons without attributes are all alike."""
        return (Category(1),) if self.package.unit.bare else self.persons.kinds, self.events.kinds

    @property
    def plan(self) -> LinkedPlan:
        """Public formulas for these tables."""
        link = self.package.link
        return LinkedPlan(
            *self.attributes, link.at_most, link.order is not None, self.package.events.timing, self.package.alone
        )

    def prepare(self, given: Any) -> PreparedTree:
        """Read, encode and link two tables for a fit. What does not link is refused."""
        return self.prepared(self.read(given))

    def opened(self, given: Any) -> tuple[LinkedRows, TreeForm]:
        """Persons with their events, of tables that were prepared or not; only the kinds of frames are remembered."""
        prepared = given if isinstance(given, PreparedTree) else self.prepare(given)
        if prepared.package != self.package:
            raise ParameterError("these tables were prepared under another package. Prepare them with this one.")
        return prepared.rows, TreeForm(self, prepared.forms)

    def method(self, certificate: Fraction) -> RegainPersons:
        """The method for these tables."""
        zeros = structural_zeros(self.persons), structural_zeros(self.events)
        return RegainPersons(certificate, self.plan, zeros, across_zeros(self.package, self.persons, self.events))

    def prepared(self, found: ReadTree) -> PreparedTree:
        """The same of tables that were read."""
        cut = found.events - len(found.linked.owner)
        rows, broken = LinkedRows(found.linked), self._broken(found.linked)
        return PreparedTree(rows, found.forms, found.logs, self.package, found.events, cut, broken)

    def _broken(self, linked: Linked) -> int:
        """How many events break a rule across the tables."""
        boxes = across_zeros(self.package, self.persons, self.events)
        bad = np.zeros(len(linked.owner), dtype=bool)
        for box in boxes.boxes:
            inside = np.ones(len(bad), dtype=bool)
            for j, side in box.sides.items():
                k = j - len(self.persons.names)
                codes = linked.events[:, k] if k >= 0 else linked.persons[linked.owner, j]
                inside &= held_in(codes.astype(np.int64), side)
            bad |= inside
        return int(bad.sum())

    def read(self, given: Any) -> ReadTree:
        """The same, open to the owner of the tables: for checks and evaluations, which are confidential."""
        own, ring = self.package, Keyring()
        first, second = self.tables(given)
        events = read(second, own.events, own.events.schema, ring, own.link.order)
        unit = own.unit
        persons = bare(first, unit, ring, events) if unit.bare else read(first, unit, unit.schema, ring, None)
        if own.link.numbered:
            keep = [self._full.index(name) for name in self.events.names if name in self._full]
            events = replace(events, codes=events.codes[:, keep])
        owner = self._link(persons.keys, events.keys)
        seen = None if own.link.order is None else events.log.columns.get(own.link.order)
        # A required field has its default where a cell is empty: the log knows how often that was.
        holes = 0 if seen is None else seen.missing + seen.unparseable
        if holes:
            raise InputError(
                f"{own.events.name}: {holes:,} of {len(owner):,} rows have no {own.link.order!r}, which orders them. Fill it, or "
                f"leave out order. {NOTHING}"
            )
        order = np.lexsort((*ties(second, events), *(() if events.order is None else (events.order,)), owner))
        codes = events.codes[order]
        if own.link.positions or own.link.gaps:
            place, gap = timed(owner[order], np.asarray(events.order)[order].astype(np.int64), own.link.at_most)
            more = [place] * own.link.positions + [gap] * own.link.gaps
            codes = np.column_stack([codes, *more]).astype(np.int64)
        linked = Linked.capped(persons.codes, codes, owner[order], own.link.at_most)
        return ReadTree(linked, (persons.form, events.form), (persons.log, events.log), len(owner))

    @cached_property
    def _full(self) -> list[str]:
        """Encoded fields of events as they are read, with an order column that is not synthesized."""
        return list(Codec(self.package.events.schema).names)

    def _link(self, persons: Keys, events: Keys) -> Integers:
        """The place of each event's person, or a refusal: persons without a key, twice the same, or events of nobody."""
        one, two = self.package.tables
        if not len(persons):
            raise InputError(f"{one.name} has a header and no rows. There is nothing to synthesize. {NOTHING}")
        if not len(events):
            raise InputError(
                f"{two.name} has a header and no rows. Release {one.name} alone, as a single table. {NOTHING}"
            )
        nameless = int((~persons.any(axis=1)).sum())
        if nameless:
            raise InputError(f"{one.name}: {nameless:,} of {len(persons):,} rows have no {one.link!r}. {NOTHING}")
        # Two words of a key become one number: places among the different first words, and among the second.
        both = np.concatenate([persons, events])
        words = [np.unique(both[:, j], return_inverse=True)[1].ravel() for j in (0, 1)]
        _, places = np.unique(words[0] * len(both) + words[1], return_inverse=True)
        places = places.ravel()
        mine, theirs = places[: len(persons)], places[len(persons) :]
        counts = np.bincount(mine)
        twice = int((counts > 1).sum())
        if twice:
            raise InputError(
                f"{one.name}: {twice:,} values of {one.link!r} stand in several rows. A person has one row there. {NOTHING}"
            )
        at = np.full(int(places.max()) + 1, -1)
        at[mine] = np.arange(len(mine))
        owner = at[theirs]
        orphans = int((owner < 0).sum())
        if orphans:
            raise InputError(
                f"{two.name}: {orphans:,} of {len(events):,} rows name no person of {one.name}, by {two.link!r}. "
                f"Add these persons, or leave the rows out. {NOTHING}"
            )
        return np.asarray(owner, dtype=np.int64)

    # Drawn sequences.

    def columns(
        self, drawn: Linked, public: np.random.Generator, first: int = 1
    ) -> tuple[dict[str, Series], dict[str, Series]]:
        """Drawn codes as columns of both tables; persons are numbered from `first`. All rules of both schemas hold."""
        own = self.package
        people = {} if own.unit.bare else self.persons.decode(drawn.persons.astype(np.int64), public, "numbers")
        visits = self.events.decode(drawn.events.astype(np.int64), public, "numbers")
        visits = self._in_order(
            {name: column for name, column in visits.items() if name in own.events.written.names}, drawn
        )
        ids = np.arange(first, first + drawn.n)
        return self._keyed(people, own.unit, ids), self._numbered(visits, drawn, ids)

    def _in_order(self, columns: dict[str, Series], drawn: Linked) -> dict[str, Series]:
        """Events of a person by their order column: values inside declared bins, and rules, may have moved it."""
        name = self.package.link.order
        if name is None or name not in columns:
            return columns
        rows = np.lexsort((self.events.attributes[name].read(columns[name], ColumnLog()), drawn.owner))
        if (np.diff(rows) == 1).all():
            return columns
        return {own: column.gather(rows) for own, column in columns.items()}

    def _keyed(self, columns: Mapping[str, Series], part: Resource, ids: Integers) -> dict[str, Series]:
        return {part.link: made(part.link, ids), **columns}

    def _numbered(self, columns: dict[str, Series], drawn: Linked, ids: Integers) -> dict[str, Series]:
        """Events with their person's number, and with their own place where the order column counts them."""
        own = self.package
        found = self._keyed(columns, own.events, ids[drawn.owner])
        if own.link.numbered and own.link.order is not None:
            found[own.link.order] = made(own.link.order, drawn.places + 1)
            order = [own.events.link, *own.events.schema.names]
            found = {name: found[name] for name in order}
        return found

    def restore(self, parts: list[Any], forms: tuple[FrameForm, FrameForm]) -> dict[str, Any]:
        """Columns as frames of the kind that came in, by name of the table."""
        out = {}
        for j, (part, form) in enumerate(zip(self.package.tables, forms, strict=True)):
            # Keys are numbers now, whatever they were.
            types = {name: kind for name, kind in form.types.items() if name != part.link}
            names = [part.link, *(name for name in types)]
            kept = FrameForm(form.origin, {name: types.get(name) for name in names} if types else {})
            out[part.name] = kept.restore(joined([one[j] for one in parts]), (*part.schema.fields, part.key_field))
        return out


@dataclass(frozen=True)
class MakePersons:
    """Synthetic persons with their events, from their fitted law: columns of both tables."""

    reader: TreeReader
    fitted: LinkedFitted
    book: dict[int, int] = field(default_factory=dict)  # events that were drawn anew, by the first person of a part

    @property
    def size(self) -> int:
        """Persons of a part."""
        return PART_PERSONS

    def memory(self, units: int) -> int:
        """Bytes of the codes of persons, each with as many events as there may be."""
        persons, events = self.reader.attributes
        return 8 * units * (len(persons) + self.reader.package.link.at_most * len(events))

    @property
    def mended(self) -> int:
        """Events that were drawn anew because their person cannot have such ones."""
        return sum(self.book.values())

    def __call__(self, count: int, first: int, streams: Streams) -> tuple[dict[str, Series], dict[str, Series]]:
        """Persons are numbered from 1."""
        self.book[first] = 0
        drawn = self.fitted.law.draw(count, streams.postprocessing("rows"), lambda more: self._count(first, more))
        codes = self.fitted.codes(drawn, streams.postprocessing("values"))
        return self.reader.columns(codes, streams.postprocessing("decode"), first + 1)

    def _count(self, first: int, more: int) -> None:
        self.book[first] += more


@dataclass(frozen=True)
class TreeForm:
    """The forms of the frames that tables came in, and go out in."""

    reader: TreeReader
    frames: tuple[FrameForm, FrameForm]

    def join(self, parts: list[Any]) -> dict[str, Any]:
        """All parts together, as frames by the names of their tables."""
        return self.reader.restore(parts, self.frames)
