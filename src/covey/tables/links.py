"""Fields that follow others: which numbers are coded by their distance from which, and within what bounds.

A field says so itself ("after": another field, or "difference_from" with bounds of the difference), or a rule does
(left ≤ right). Chains are allowed, circles are not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.engine.arrays import Integers
from covey.engine.numbers.grid import FINEST, Difference
from covey.errors import ParameterError
from covey.tables.fields import ORDERED_TYPES, Field, Follows, as_written
from covey.tables.rules import Cells, Domain, Mask, Rule, all_there


@dataclass(frozen=True)
class Link:
    """A number that is coded by its distance from a base, whose steps are `times` as wide as its own."""

    base: str
    times: int
    difference: Difference
    expected: bool = False  # whether the base is not a column, but what an expression of columns gives


def find_links(fields: Mapping[str, Field], rules: Sequence[Rule]) -> dict[str, Link]:
    """The declared links, which are checked, and those that rules suggest, as far as grids and bounds allow them.

    Fields with declared bins, and constants, are coded by themselves.
    """
    links: dict[str, Link] = {}
    for field in fields.values():
        if field.follows is not None:
            links[field.name] = _declared(fields, field, field.follows)
    for field in fields.values():
        if field.expected is not None and field.expected.expression and is_fine(field):
            wide = field.axis.high - field.axis.low
            difference = Difference(-wide, wide, field.axis.low, field.axis.high)
            links[field.name] = Link(field.expected.expression, 1, difference, expected=True)
    for name in links:
        if name in _chain(links, name)[1:]:
            raise fields[name].wrong("follows itself, by way of others", "Remove one of the links of the circle.")
    for left, right in (order for rule in rules for order in rule.orders):
        base, end = fields[left], fields[right]
        if right in links or not (is_fine(base) and is_fine(end)) or right in _chain(links, left):
            continue
        link = _widest(base, end)
        if link is not None:
            links[right] = link
    return links


def _chain(links: Mapping[str, Link], name: str) -> list[str]:
    """A field, its base, the base's base, …, until one is met again."""
    chain = [name]
    while chain[-1] in links:
        chain.append(links[chain[-1]].base)
        if chain[-1] in chain[:-1]:
            break
    return chain


def bases_first(fields: Sequence[Field], links: Mapping[str, Link], names: tuple[str, ...]) -> list[str]:
    """Encoded columns, each after those that it is measured from."""
    bases = {f.name: f.expected.bases for f in fields if f.expected is not None}
    bases |= {name: (link.base,) for name, link in links.items() if not link.expected}
    order: list[str] = []

    def visit(name: str, above: tuple[str, ...]) -> None:
        if name in above:
            raise ParameterError(f"field {name!r} follows from itself, by way of others. Break the circle.")
        for base in bases.get(name, ()):
            visit(base, (*above, name))
        if name in names and name not in order:
            order.append(name)

    for name in names:
        visit(name, ())
    return order


def is_fine(field: Field) -> bool:
    """Whether it is a number, date or time that is measured at its own precision, between bounds."""
    open_ended = field.minimum is None or field.maximum is None
    return field.type in ORDERED_TYPES and field.bins is None and field.measured and not open_ended


def _declared(fields: Mapping[str, Field], end: Field, follows: Follows) -> Link:
    """The link that a field declares, or a refusal."""
    name = follows.base
    if name not in fields or name == end.name:
        raise end.wrong(f"follows {name!r}, which is not another field", "Name another field of the schema.")
    base = fields[name]
    kinds = {"integer": "number"}
    if kinds.get(base.type, base.type) != kinds.get(end.type, end.type):
        raise end.wrong(f"has type {end.type} and follows {name!r} of type {base.type}", "Both need one type.")
    for field in (base, end):
        if not is_fine(field):
            raise field.wrong("takes part in a difference", "It must be a number, date or time without declared bins.")
    times = _times(base, end)
    if not times:
        raise end.wrong(f"has fewer decimals than {name!r}, which it follows", "Give it as many.")
    bounds = (None if bound is None else as_written(bound) for bound in (follows.minimum, follows.maximum))
    low, high = (b if b is None else int(b.scaleb(end.axis.decimals).to_integral_value()) for b in bounds)
    lowest = base.axis.low * times
    if not follows.signed:
        low = low or 0
    low = end.axis.low - base.axis.high * times if low is None else low
    high = end.axis.high - lowest if high is None else high
    try:
        difference = Difference(low, high, end.axis.low, end.axis.high)
        difference.check_base(lowest, base.axis.high * times)
        if difference.steps >= FINEST:
            raise ParameterError("there are more than 2^53 steps between the bounds of the difference.")
    except ParameterError as error:
        raise end.wrong(f"follows {name!r}: {str(error).rstrip('.')}", "Correct its bounds.") from None
    return Link(name, times, difference)


def _widest(base: Field, end: Field) -> Link | None:
    """All distances between two numbers of which the second is no smaller; None where grids or bounds do not allow it."""
    times = _times(base, end)
    low, high = base.axis.low * times, base.axis.high * times
    if not times or high > end.axis.high or end.axis.high - low + 1 >= FINEST or max(abs(low), abs(high)) > FINEST:
        return None
    return Link(base.name, times, Difference(0, end.axis.high - low, end.axis.low, end.axis.high))


def _times(base: Field, end: Field) -> int:
    """How many steps of the end make one of the base; 0 if it takes a fraction."""
    more = end.axis.decimals - base.axis.decimals
    return int(10**more) if more >= 0 else 0


@dataclass(frozen=True)
class Distance(Rule):
    """How far a field lies from the one that it follows, where neither is missing."""

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
        (first, last), apart = (attributes[name].axis for name in self.fields), self.link.difference
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
    return [Distance(name, links[name], declared) for name, declared in follows.items()]
