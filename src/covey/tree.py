"""Persons with events: the method for their description, and drawn sequences as columns of both tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from covey.core.arrays import Integers
from covey.core.tables.events import Histories
from covey.entropy import Streams
from covey.errors import ParameterError
from covey.methods.persons.law import PersonsLaw
from covey.methods.persons.method import RegainPersons
from covey.methods.persons.plan import PersonsPlan
from covey.methods.regain.important import Important
from covey.release.conditional import FEWEST, PATIENCE, Wish
from covey.table.attributes import ColumnLog
from covey.table.columns import made
from covey.table.description import Description
from covey.table.zeros import across_zeros, structural_zeros

if TYPE_CHECKING:
    from polars import Series

PART_PERSONS = 1 << 16  # synthetic persons that are drawn, decoded and written at a time, with up to 50 events each


def plan_of(described: Description) -> PersonsPlan:
    """Public formulas for these tables."""
    link, (persons, events) = described.link, described.kinds
    timing = described.events.timing
    groups, target = described.matters
    single = frozenset(group[0] for group in groups if len(group) == 1)
    pairs = tuple(sorted((min(group), max(group)) for group in groups if len(group) == 2))
    important = Important(single, pairs, target)
    return PersonsPlan(persons, events, link.at_most, link.order is not None, timing, described.alone, important)


def method_of(described: Description, certificate: Fraction) -> RegainPersons:
    """The method for these tables."""
    persons, events = (structural_zeros(codec) for codec in described.codecs)
    return RegainPersons(certificate, plan_of(described), (persons, events), across_zeros(described))


@dataclass(frozen=True)
class MakePersons:
    """Synthetic persons with their events, from their fitted law: columns of both tables."""

    described: Description
    law: PersonsLaw
    book: dict[int, int] = field(default_factory=dict)  # events that were drawn anew, by the first person of a part

    @property
    def size(self) -> int:
        """Persons of a part."""
        return PART_PERSONS

    def memory(self, units: int) -> int:
        """Bytes of the codes of persons, each with as many events as there may be."""
        persons, events = self.described.kinds
        return 8 * units * (len(persons) + self.described.link.at_most * len(events))

    @property
    def mended(self) -> int:
        """Events that were drawn anew because their person cannot have such ones."""
        return sum(self.book.values())

    def __call__(self, count: int, first: int, streams: Streams) -> tuple[dict[str, Series], dict[str, Series]]:
        """Persons are numbered from 1."""
        self.book[first] = 0
        codes = self.law.draw(count, streams, lambda more: self._count(first, more))
        return drawn_columns(self.described, codes, streams.postprocessing("decode"), first + 1)

    def _count(self, first: int, more: int) -> None:
        self.book[first] += more


def draw_persons(
    make: MakePersons, m: int, wishes: Sequence[Wish], streams: Streams
) -> Iterator[tuple[dict[str, Series], dict[str, Series]]]:
    """m persons who meet the wishes, with their events, part by part: others are passed over, and those who stay are numbered."""
    unit, link, codec = make.described.unit.link, make.described.events.link, make.described.codecs[0]
    left, part, idle = m, 0, 0
    while left:
        persons, events = make(max(FEWEST, min(PART_PERSONS, left)), 0, streams.child(f"part {part}"))
        cells, _ = codec.encode({name: persons[name] for name in codec.schema.names}, "cells")
        keep = np.all([wish.met(codec, cells[:, wish.attribute]) for wish in wishes], axis=0)
        keep &= np.cumsum(keep) <= left
        part, idle = part + 1, 0 if keep.any() else idle + 1
        if idle == PATIENCE:
            raise ParameterError("next to nobody whom this release draws meets these conditions: nothing can be drawn.")
        ids, owner = m - left + np.cumsum(keep), events[link].to_numpy() - 1
        its = keep[owner]
        people = {name: column.filter(keep) for name, column in persons.items()}
        visits = {name: column.filter(its) for name, column in events.items()}
        left -= int(keep.sum())
        if keep.any():
            yield {**people, unit: made(unit, ids[keep])}, {**visits, link: made(link, ids[owner[its]])}


def drawn_columns(
    described: Description, drawn: Histories, public: np.random.Generator, first: int = 1
) -> tuple[dict[str, Series], dict[str, Series]]:
    """Drawn codes as columns of both tables; persons are numbered from `first`. All rules of both schemas hold."""
    unit, part, (persons, events) = described.unit, described.events, described.codecs
    people = {} if unit.bare else persons.decode(drawn.persons.astype(np.int64), public, "numbers")
    visits = events.decode(drawn.events.astype(np.int64), public, "numbers")
    visits = _in_order(described, {name: visits[name] for name in visits if name in part.written.names}, drawn)
    ids = np.arange(first, first + drawn.n)
    return {unit.link: made(unit.link, ids), **people}, _numbered(described, visits, drawn, ids)


def _in_order(described: Description, columns: dict[str, Series], drawn: Histories) -> dict[str, Series]:
    """Events of a person by their order column: values inside declared bins, and rules, may have moved it."""
    name = described.link.order
    if name is None or name not in columns:
        return columns
    cells = described.codecs[1].attributes[name].read(columns[name], ColumnLog())
    rows = np.lexsort((cells, drawn.owner))
    if (np.diff(rows) == 1).all():
        return columns
    return {own: column.gather(rows) for own, column in columns.items()}


def _numbered(
    described: Description, columns: Mapping[str, Series], drawn: Histories, ids: Integers
) -> dict[str, Series]:
    """Events with their person's number, and with their own place where the order column counts them."""
    part, link = described.events, described.link
    found = {part.link: made(part.link, ids[drawn.owner]), **columns}
    if link.numbered and link.order is not None:
        found[link.order] = made(link.order, drawn.places + 1)
        found = {name: found[name] for name in (part.link, *part.schema.names)}
    return found
