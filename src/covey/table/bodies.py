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
from covey.table.attributes import Attribute, Cells, Grid, Mask
from covey.table.bodyrule import BodyRule, Sum
from covey.table.rules import Linear, Rule

Kept = BodyRule | Linear


class Region:
    """Rules on sums that share columns, and the polytopes that they make."""

    def __init__(self, rules: Sequence[Kept], grids: Mapping[str, Grid]) -> None:
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
            bands = [self._band(part, names) for rule in rules for part in _sums(rule)]
            self._parts[holding] = names, Lattice([a.low for a in axes], [a.high for a in axes], bands)
        return self._parts[holding]

    def _band(self, part: Sum, names: tuple[str, ...]) -> Band:
        """A bound in steps of the columns."""
        steps = {name: Fraction(1, 10 ** self.grids[name].axis.decimals) for name in names}
        terms = tuple((names.index(name), _exact(a) * steps[name]) for name, a in part.coefficients)
        low, high = (None if bound is None else _exact(bound) for bound in (part.minimum, part.maximum))
        return Band(terms, low, high)

    def broken(self, rule: Kept, cells: Mapping[str, Integers]) -> Mask:
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


def regions(rules: Sequence[Rule], attributes: Mapping[str, Attribute]) -> list[Region]:
    """Bodies, and linear rules on numbers without declared bins, joined where they share a column.

    Linear rules with more digits than can be computed exactly are left to repair, as are those on bins.
    """
    groups: list[tuple[list[Kept], list[str]]] = []
    for rule in rules:
        if not (isinstance(rule, BodyRule) or (isinstance(rule, Linear) and _is_exact(rule, attributes))):
            continue
        near = [group for group in groups if set(group[1]) & set(rule.fields)]
        groups = [group for group in groups if group not in near]
        names = [name for _, part in near for name in part]
        kept = [old for part, _ in near for old in part]
        groups.append(([*kept, rule], list(dict.fromkeys([*names, *rule.fields]))))
    return [Region(part, {name: _grid(attributes, name) for name in names}) for part, names in groups]


def _is_exact(rule: Linear, attributes: Mapping[str, Attribute]) -> bool:
    grids = {name: _grid(attributes, name) for name in rule.fields}
    if any(grid.field.bins is not None for grid in grids.values()):
        return False
    try:
        Region([rule], grids)
    except ParameterError:
        return False
    return True


def _grid(attributes: Mapping[str, Attribute], name: str) -> Grid:
    attribute = attributes[name]
    assert isinstance(attribute, Grid)  # nosec B101 # for the type checker; the schema checks the types that rules name
    return attribute


def _sums(rule: Kept) -> tuple[Sum, ...]:
    return rule.all_sums if isinstance(rule, BodyRule) else (Sum(rule.coefficients, None, rule.maximum),)


def _exact(number: float) -> Fraction:
    """The decimal number that was written."""
    return Fraction(Decimal(repr(number)))
