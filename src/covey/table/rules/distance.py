"""What a field says of the one that it follows, as a rule: it stands with the field in a file, and is kept like any other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.table.attributes import grid_of
from covey.table.domain import Cells, Domain, Mask, Rule
from covey.table.fields import ORDERED_TYPES, Field
from covey.table.follows import Follows
from covey.table.links import Link, find_links
from covey.table.rules.sums import all_there


@dataclass(frozen=True)
class Distance(Rule):
    """How far a field lies from the one that it follows, where neither is missing."""

    word = "difference_from"
    end: str
    link: Link
    declared: Follows

    @property
    def fields(self) -> tuple[str, ...]:
        """The base, and the end."""
        return self.link.base, self.end

    @property
    def words(self) -> str:
        """The rule in plain words."""
        return f"{self.end} keeps its distance from {self.link.base}: {self.declared.to_dict()}."

    def to_dict(self) -> dict[str, Any]:
        """What the field declares."""
        return {self.end: self.declared.to_dict()}

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Numbers, dates or times; `find_links` has checked their bounds."""
        return ORDERED_TYPES

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows lie too near or too far."""
        there = all_there(attributes, self.fields, cells)
        base, end = (np.where(there, cells[name], 0) for name in self.fields)
        apart, bounds = end - base * self.link.times, self.link.difference
        return np.asarray(there & ((apart < bounds.low) | (apart > bounds.high)))

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Move the end as far as its bounds allow, then the base."""
        (first, last), apart = (grid_of(attributes, name).axis for name in self.fields), self.link.difference
        base, end = (cells[name][rows] for name in self.fields)
        end = np.clip(
            np.clip(end, base * self.link.times + apart.low, base * self.link.times + apart.high), last.low, last.high
        )
        near = -((apart.high - end) // self.link.times), (end - apart.low) // self.link.times
        cells[self.end][rows] = end
        cells[self.link.base][rows] = np.clip(np.clip(base, *near), first.low, first.high)


def distances(domain: Domain) -> list[Rule]:
    """How far fields lie from those that they follow: what was decoded by its distance keeps it, what was mended need not."""
    fields = {field.name: field for field in domain.fields}
    follows = {name: field.follows for name, field in fields.items() if field.follows is not None}
    links = find_links(fields, ()) if follows else {}
    return [Distance(name, link, follows[name]) for name, link in links.items()]
