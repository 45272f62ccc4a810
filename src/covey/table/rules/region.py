"""Rules on sums of numbers as geometry: all rows are moved into a polytope together, and columns keep about their values.

A rule holds where none of its fields is missing, so rows are taken by the rules that hold for them. What is inside is decided on
cells, which are whole numbers: exactly (docs/decisions/0021-bodies-in-schemas.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import numpy as np

from covey.core.arrays import Integers
from covey.core.numbers.lattice import TURNS, Band, Lattice, settle
from covey.errors import ParameterError
from covey.table.attributes import Attribute, Grid, grid_of
from covey.table.domain import Cells, Mask, Rule, Sum


class Region:
    """Rules on sums that share columns, and the polytopes that they make."""

    def __init__(self, rules: Sequence[Rule], grids: Mapping[str, Grid]) -> None:
        self.rules, self.grids = tuple(rules), dict(grids)
        self._parts: dict[tuple[bool, ...], tuple[tuple[str, ...], Lattice]] = {}
        try:
            _ = self.part((True,) * len(self.rules))[1].middle  # a body without a row is refused before data is read
        except ParameterError as error:
            raise ParameterError(f"the rules on {', '.join(self.grids)}: {error}") from None

    def part(self, holding: tuple[bool, ...]) -> tuple[tuple[str, ...], Lattice]:
        """The columns of the rules that hold, and their polytope."""
        if holding not in self._parts:
            rules = [rule for rule, holds in zip(self.rules, holding, strict=True) if holds]
            names = tuple(name for name in self.grids if any(name in rule.fields for rule in rules))
            axes = [self.grids[name].axis for name in names]
            bands = [self._band(part, names) for rule in rules for part in rule.sums]
            self._parts[holding] = names, Lattice([a.low for a in axes], [a.high for a in axes], bands)
        return self._parts[holding]

    def _band(self, part: Sum, names: tuple[str, ...]) -> Band:
        """A bound in steps of the columns."""
        steps = {name: Fraction(1, 10 ** self.grids[name].axis.decimals) for name in names}
        terms = tuple((names.index(name), _exact(a) * steps[name]) for name, a in part.coefficients)
        low, high = (None if bound is None else _exact(bound) for bound in (part.minimum, part.maximum))
        return Band(terms, low, high)

    def broken(self, rule: Rule, cells: Mapping[str, Integers]) -> Mask:
        """Which rows break one of the rules."""
        names, lattice = self.part(tuple(other is rule for other in self.rules))
        there = np.logical_and.reduce([self.grids[name].has_value(cells[name]) for name in names])
        broken = np.zeros(len(there), dtype=bool)
        broken[there] = ~lattice.contains(np.stack([cells[name][there] for name in names], axis=1))
        return broken

    def settle(self, cells: Cells, rows: Integers, turns: int = TURNS) -> None:
        """Move these rows inside, in place; where there are turns, columns keep about the values that they have among them."""
        there = {name: grid.has_value(cells[name][rows]) for name, grid in self.grids.items()}
        held = np.stack([np.logical_and.reduce([there[n] for n in rule.fields]) for rule in self.rules], axis=1)
        for holding in np.unique(held, axis=0):
            if holding.any():
                names, lattice = self.part(tuple(holding.tolist()))
                mine = rows[(held == holding).all(axis=1)]
                moved = settle(np.stack([cells[name][mine] for name in names], axis=1), lattice, turns)
                for j, name in enumerate(names):
                    cells[name][mine] = moved[:, j]


def region_of(rules: Sequence[Rule], attributes: Mapping[str, Attribute]) -> Region:
    """The region of rules that share columns."""
    names = dict.fromkeys(name for rule in rules for name in rule.fields)
    return Region(rules, {name: grid_of(attributes, name) for name in names})


def regions(rules: Sequence[Rule], attributes: Mapping[str, Attribute]) -> list[Region]:
    """Bodies, and linear rules on numbers without declared bins, joined where they share a column.

    Linear rules with more digits than can be computed exactly are left to repair, as are those on bins.
    """
    groups: list[list[Rule]] = []
    for rule in rules:
        if rule.sums and (rule.bound is None or _is_exact(rule, attributes)):
            near = [group for group in groups if {name for old in group for name in old.fields} & set(rule.fields)]
            groups = [group for group in groups if group not in near]
            groups.append([*(old for group in near for old in group), rule])
    return [region_of(group, attributes) for group in groups]


def _is_exact(rule: Rule, attributes: Mapping[str, Attribute]) -> bool:
    if any(grid_of(attributes, name).field.bins is not None for name in rule.fields):
        return False
    try:
        region_of([rule], attributes)
    except ParameterError:
        return False
    return True


def _exact(number: float) -> Fraction:
    """The decimal number that was written."""
    return Fraction(Decimal(repr(number)))
