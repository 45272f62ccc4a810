"""Rows that break a rule, found and altered, on cells.

Sums of numbers are kept by geometry (`bodies`): all rows are moved at once. Each other repair is a fixed random rule on single
rows; rules may undo each other's work, so they take turns, and what is still broken after a number of rounds is replaced by a
valid row. All of this sees released values alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from covey.core.arrays import Array, Integers
from covey.errors import ParameterError
from covey.table.attributes import Attribute, Cells, Grid, Mask, attributes
from covey.table.bodies import Region, regions
from covey.table.bodyrule import BodyRule
from covey.table.following import Follows
from covey.table.links import Link, find_links
from covey.table.rules import AtMost, Domain, Forbid, LessEqual, Linear, Requires, Rule

_ROUNDS = 12  # of repairs; rows that rules still throw back and forth are replaced


@dataclass(frozen=True)
class Distance:
    """What a field says of the one that it follows: how far it lies from it, where neither is missing."""

    end: str
    link: Link
    declared: Follows

    @property
    def fields(self) -> tuple[str, str]:
        """The fields that it names."""
        return self.link.base, self.end

    def to_dict(self) -> dict[str, Any]:
        """What the field declares, for messages."""
        return {self.end: self.declared.to_dict()}


class RuleBook:
    """The attributes of a schema, and the rules that its rows obey."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.mended = 0  # synthetic rows that were altered so far, because they broke a rule
        for field in domain.fields:
            field.require_complete()
        self.rules: tuple[Rule | Distance, ...] = (*domain.rules, *_distances(domain))
        self.attributes = attributes(domain)
        self.regions = regions(domain.rules, self.attributes)
        encoded = domain.encoded
        if not encoded:
            raise ParameterError(
                "every field of the schema is constant: there is nothing to encode. Declare categories."
            )
        self.names: tuple[str, ...] = tuple(f.name for f in encoded)
        self.domain_sizes: tuple[int, ...] = tuple(f.categories for f in encoded)
        if self.rules:
            _ = self._witness  # rules that contradict each other are refused before any data is read

    def cells(self, codes: Array, generator: np.random.Generator) -> Cells:
        """Cells of category codes, uniform inside their bins."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.names) or codes.dtype.kind not in "iub":
            raise ParameterError(
                f"codes must be whole numbers with {len(self.names)} columns, got shape {codes.shape}."
            )
        if (codes < 0).any() or (codes >= np.array(self.domain_sizes)).any():
            raise ParameterError("codes must lie in the domain of this codec's schema.")
        codes = codes.astype(np.int64)
        cells = {name: self.attributes[name].draw(codes[:, j], generator) for j, name in enumerate(self.names)}
        for name, attribute in self.attributes.items():
            if name not in cells:
                cells[name] = self.single(attribute, len(codes))
        return cells

    @staticmethod
    def single(attribute: Attribute, rows: int) -> Integers:
        """Cells of an attribute with one category."""
        return np.full(rows, attribute.axis.low if isinstance(attribute, Grid) else 0)

    def obey(self, cells: Cells, generator: np.random.Generator) -> Cells:
        """The cells with the rows altered that break a rule."""
        if not self.rules:
            return cells
        cells = {name: column.copy() for name, column in cells.items()}
        self.mended += int(np.count_nonzero(np.logical_or.reduce([self.broken(rule, cells) for rule in self.rules])))
        for region in self.regions:
            region.settle(cells, np.arange(len(next(iter(cells.values())))))
        bad = self._take_turns(cells, generator)
        if bad.any():
            good, broken = np.flatnonzero(~bad), np.flatnonzero(bad)
            donors = generator.choice(good, len(broken)) if len(good) else None
            for name in {
                name for rule in self.rules for name in rule.fields
            }:  # others may be bound elsewhere, and stay
                cells[name][broken] = self._witness[name] if donors is None else cells[name][donors]
        return cells

    def _take_turns(self, cells: Cells, generator: np.random.Generator) -> Mask:
        """Repair in place; which rows are still broken."""
        rows = len(next(iter(cells.values())))
        open_rows = np.arange(rows)
        for _ in range(_ROUNDS):
            part = {name: column[open_rows] for name, column in cells.items()}
            touched = np.zeros(len(open_rows), dtype=bool)
            for rule in self.rules:
                broken = self.broken(rule, part)
                if broken.any():
                    self._mend(rule, part, np.flatnonzero(broken), generator)
                    touched |= broken
            for name, column in part.items():
                cells[name][open_rows[touched]] = column[touched]
            open_rows = open_rows[touched]
            if not len(open_rows):
                break
        bad = np.zeros(rows, dtype=bool)
        for rule in self.rules:
            bad |= self.broken(rule, cells)
        return bad

    @cached_property
    def _witness(self) -> dict[str, int]:
        """One valid row, found from the public schema alone: from the columns that rules name, whatever the others are."""
        generator = np.random.Generator(np.random.PCG64(0))
        named = {name for rule in self.rules for name in rule.fields}
        cells = {name: self.single(self.attributes[name], 1000) for name in named}
        for name, size in zip(self.names, self.domain_sizes, strict=True):
            if name in named:
                cells[name] = self.attributes[name].draw(generator.integers(0, size, 1000), generator)
        valid = np.flatnonzero(~self._take_turns(cells, generator))
        if not len(valid):
            raise ParameterError(
                "no row was found that obeys all rules of the schema: they contradict each other, or "
                "leave hardly any room. Loosen one."
            )
        row = {name: int(column[valid[0]]) for name, column in cells.items()}
        first = np.zeros(1, dtype=np.int64)
        return {n: row[n] if n in row else int(a.draw(first, generator)[0]) for n, a in self.attributes.items()}

    def _grid(self, name: str) -> Grid:
        attribute = self.attributes[name]
        assert isinstance(attribute, Grid)  # nosec B101 # for the type checker; the schema checks the types that rules name
        return attribute

    def _region(self, rule: Rule | Distance) -> Region | None:
        """The polytope that keeps a rule, if one does."""
        return next((region for region in self.regions if any(rule is kept for kept in region.rules)), None)

    def broken(self, rule: Rule | Distance, cells: Mapping[str, Integers]) -> Mask:
        """Which rows break a rule."""
        region = self._region(rule)
        if region is not None and isinstance(rule, BodyRule | Linear):
            return region.broken(rule, cells)
        if isinstance(rule, Distance):
            base, end, there = self._ends(rule, cells)
            apart = end - base
            return np.asarray(there & ((apart < rule.link.difference.low) | (apart > rule.link.difference.high)))
        if isinstance(rule, AtMost):
            return np.asarray(sum((cells[name] == 1).astype(np.int64) for name in rule.fields) > rule.limit)
        if isinstance(rule, Forbid | Requires):
            met = np.logical_and.reduce([self.attributes[n].meets(c, cells[n]) for n, c in rule.conditions])
            if isinstance(rule, Requires):
                met &= ~np.logical_and.reduce([self.attributes[n].meets(c, cells[n]) for n, c in rule.then])
            return np.asarray(met)
        assert isinstance(rule, LessEqual | Linear)  # nosec B101 # for the type checker: every body has a region
        present = np.logical_and.reduce([self._grid(name).has_value(cells[name]) for name in rule.fields])
        if isinstance(rule, LessEqual):
            left, right = (self._grid(name).value(cells[name]) for name in rule.fields)
            return np.asarray(present & (left > right))
        terms = [a * np.where(present, self._grid(name).value(cells[name]), 0.0) for name, a in rule.coefficients]
        slack = 1e-12 * (abs(rule.maximum) + sum(np.abs(term) for term in terms))  # sums of floats are not exact
        return np.asarray(present & (sum(terms) > rule.maximum + slack))

    def _ends(self, rule: Distance, cells: Mapping[str, Integers]) -> tuple[Integers, Integers, Mask]:
        """Base and end in steps of the end, and where both are there."""
        there = np.logical_and.reduce([self._grid(name).has_value(cells[name]) for name in rule.fields])
        base, end = (np.where(there, cells[name], 0) for name in rule.fields)
        return base * rule.link.times, end, there

    def _bring_near(self, rule: Distance, cells: Cells, rows: Integers) -> None:
        """Move the end as far as its bounds allow, then the base."""
        (first, last), apart = (self._grid(name).axis for name in rule.fields), rule.link.difference
        base, end, _ = self._ends(rule, {name: cells[name][rows] for name in rule.fields})
        end = np.clip(np.clip(end, base + apart.low, base + apart.high), last.low, last.high)
        near = -((apart.high - end) // rule.link.times), (end - apart.low) // rule.link.times
        cells[rule.end][rows] = end
        cells[rule.link.base][rows] = np.clip(np.clip(base // rule.link.times, *near), first.low, first.high)

    def _mend(self, rule: Rule | Distance, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        region = self._region(rule)
        if region is not None:
            region.settle(cells, rows, turns=0)
        elif isinstance(rule, Distance):
            self._bring_near(rule, cells, rows)
        elif isinstance(rule, AtMost):
            self._clear_flags(rule, cells, rows, generator)
        elif isinstance(rule, LessEqual):
            self._put_in_order(rule, cells, rows, generator)
        elif isinstance(rule, Linear):
            self._move_inside(rule, cells, rows, generator)
        elif isinstance(rule, Requires):
            self._fulfil(rule, cells, rows, generator)
        elif isinstance(rule, Forbid):
            self._leave_zero(rule, cells, rows, generator)

    def _clear_flags(self, rule: AtMost, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Keep `limit` of the set flags, chosen at random."""
        flags = np.stack([cells[name][rows] == 1 for name in rule.fields], axis=1)
        keys = np.where(flags, generator.random(flags.shape), 2.0)
        surplus = flags & (keys.argsort(axis=1).argsort(axis=1) >= rule.limit)
        for j, name in enumerate(rule.fields):
            cells[name][rows[surplus[:, j]]] = 0

    def _put_in_order(self, rule: LessEqual, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Redraw inside the bins if they have room; else exchange the values; else move them together."""
        a, b = self._grid(rule.left), self._grid(rule.right)
        x, y = cells[rule.left][rows], cells[rule.right][rows]
        bins_a, bins_b = a.bin_of(x), b.bin_of(y)
        cap = np.minimum(a.axis.ends[bins_a], a.nearest(b.value(b.axis.ends[bins_b]), up=False))
        fits = cap >= a.axis.starts[bins_a]
        x1 = generator.integers(a.axis.starts[bins_a], np.where(fits, cap, a.axis.ends[bins_a]), endpoint=True)
        top = b.axis.ends[bins_b]
        floor = np.minimum(np.maximum(b.axis.starts[bins_b], b.nearest(a.value(x1), up=True)), top)
        y1 = generator.integers(floor, top, endpoint=True)
        # Values that change places; where one would leave its bounds, both go to the bound that they share.
        x2 = np.clip(a.nearest(b.value(y), up=False), a.axis.low, a.axis.high)
        y2 = np.clip(b.nearest(np.maximum(a.value(x), a.value(x2)), up=True), b.axis.low, b.axis.high)
        x2 = np.clip(np.minimum(x2, a.nearest(b.value(y2), up=False)), a.axis.low, a.axis.high)
        cells[rule.left][rows] = np.where(fits, x1, x2)
        cells[rule.right][rows] = np.where(fits, y1, y2)

    def _move_inside(self, rule: Linear, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Move fields, in random order, toward the feasible side: first inside their bins, then inside their bounds."""
        order = [rule.coefficients[j] for j in generator.permutation(len(rule.coefficients))]
        for wide in (False, True):
            for name, coefficient in order:
                grid, column = self._grid(name), cells[name][rows]
                excess = sum(a * self._grid(n).value(cells[n][rows]) for n, a in rule.coefficients) - rule.maximum
                bins = grid.bin_of(column)
                low = np.full(len(rows), grid.axis.low) if wide else grid.axis.starts[bins]
                high = np.full(len(rows), grid.axis.high) if wide else grid.axis.ends[bins]
                room = (grid.axis.high - grid.axis.low) + 1.0
                steps = np.ceil(np.clip(excess / abs(coefficient) * grid.scale - 1e-6, 0.0, room)).astype(np.int64)
                moved = column - steps if coefficient > 0 else column + steps
                cells[name][rows] = np.clip(moved, low, high)

    def _fulfil(self, rule: Requires, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Give the columns that fail what is required a random value that does not."""
        for name, wanted in rule.then:
            attribute, column = self.attributes[name], cells[name]
            failing = rows[~attribute.meets(wanted, column[rows])]
            fresh = attribute.some(wanted, len(failing), generator)
            if fresh is not None:
                column[failing] = fresh

    def _leave_zero(self, rule: Forbid, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Redraw a number inside its bin if that helps; else give one of the fields, chosen at random, another value."""
        for name, condition in rule.conditions:
            attribute = self.attributes[name]
            if isinstance(attribute, Grid) and len(rows):
                there = attribute.has_value(cells[name][rows])
                for _ in range(8):
                    column = cells[name][rows]
                    drawn = attribute.draw(np.where(there, attribute.bin_of(column), attribute.size), generator)
                    cells[name][rows] = drawn = np.where(there, drawn, column)  # a special value stays what it is
                    still = attribute.meets(condition, drawn)
                    rows, there = rows[still], there[still]
                    if not len(rows):
                        return
        able = [(n, c) for n, c in rule.conditions if self.attributes[n].avoid(c, 1, generator) is not None]
        if not able:
            return
        chosen = generator.integers(0, len(able), len(rows))
        for j, (name, condition) in enumerate(able):
            mine = rows[chosen == j]
            fresh = self.attributes[name].avoid(condition, len(mine), generator)
            if fresh is not None:
                cells[name][mine] = fresh


def _distances(domain: Domain) -> list[Distance]:
    """How far fields lie from those that they follow: what was decoded by its distance keeps it, what was mended need not."""
    follows = {field.name: field.follows for field in domain.fields if field.follows is not None}
    links = find_links({field.name: field for field in domain.fields}, ()) if follows else {}
    return [Distance(name, link, follows[name]) for name, link in links.items()]
