"""One number is at most another one, and a weighted sum of numbers has a bound: judged and repaired value by value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.errors import ParameterError
from covey.table.attributes import Grid, grid_of
from covey.table.document import refuse_unknown
from covey.table.domain import Cells, Mask, Rule, Sum, shown_rule
from covey.table.fields import ORDERED_TYPES, Field

NUMBERS = ("integer", "number")


def all_there(attributes: Mapping[str, Any], names: tuple[str, ...], cells: Mapping[str, Integers]) -> Mask:
    """Which rows have a value of every one of these fields."""
    return np.asarray(np.logical_and.reduce([grid_of(attributes, name).has_value(cells[name]) for name in names]))


@dataclass(frozen=True)
class LessEqual(Rule):
    """left ≤ right, where neither is missing.

    Two numbers that lie far apart are measured each by itself where they are not `linked`, and repaired.
    """

    word = "less_equal"
    left: str
    right: str
    linked: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        """Both."""
        return (self.left, self.right)

    @property
    def words(self) -> str:
        """The rule in plain words."""
        return f"{self.left} is never above {self.right}."

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {self.word: {"left": self.left, "right": self.right} | ({} if self.linked else {"linked": False})}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> LessEqual:
        """The rule as a file states it."""
        refuse_unknown(body, ("left", "right", "linked"), cls.word)
        return cls(body["left"], body["right"], body.get("linked", True) is not False)

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Two numbers, or two dates or times of one type."""
        first = fields[self.left].type
        wanted = NUMBERS if first in NUMBERS else (first,)
        return wanted if first in ORDERED_TYPES else ORDERED_TYPES

    @property
    def orders(self) -> list[tuple[str, str]]:
        """Its own."""
        return [(self.left, self.right)] if self.linked else []

    @property
    def bound(self) -> Sum:
        """left − right ≤ 0."""
        return Sum(((self.left, 1.0), (self.right, -1.0)), None, 0.0)

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows have the larger value first."""
        present = all_there(attributes, self.fields, cells)
        left, right = (grid_of(attributes, name).value(cells[name]) for name in self.fields)
        return np.asarray(present & (left > right))

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Redraw inside the bins if they have room; else exchange the values; else move them together."""
        a, b = (grid_of(attributes, name) for name in self.fields)
        x, y = cells[self.left][rows], cells[self.right][rows]
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
        cells[self.left][rows] = np.where(fits, x1, x2)
        cells[self.right][rows] = np.where(fits, y1, y2)


@dataclass(frozen=True)
class Linear(Rule):
    """Σ coefficient · field ≤ maximum, where none is missing."""

    word = "linear"
    coefficients: tuple[tuple[str, float], ...]
    maximum: float

    @property
    def fields(self) -> tuple[str, ...]:
        """The numbers of the sum."""
        return tuple(name for name, _ in self.coefficients)

    @property
    def words(self) -> str:
        """The rule in plain words."""
        return f"{' + '.join(f'{a:g} × {name}' for name, a in self.coefficients)} is at most {self.maximum:g}."

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {self.word: {"coefficients": dict(self.coefficients), "maximum": self.maximum}}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> Linear:
        """The rule as a file states it."""
        refuse_unknown(body, ("coefficients", "maximum"), cls.word)
        return cls(tuple((name, float(a)) for name, a in body["coefficients"].items()), float(body["maximum"]))

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Numbers, with finite coefficients."""
        if not all(math.isfinite(a) and a for _, a in self.coefficients) or not math.isfinite(self.maximum):
            raise ParameterError(
                f"rule {shown_rule(self)} needs finite coefficients other than 0 and a finite maximum."
            )
        return NUMBERS

    @property
    def bound(self) -> Sum:
        """The sum."""
        return Sum(self.coefficients, None, self.maximum)

    @property
    def sums(self) -> tuple[Sum, ...]:
        """The sum."""
        return (self.bound,)

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows have a larger sum."""
        present = all_there(attributes, self.fields, cells)
        terms = [a * np.where(present, grid_of(attributes, n).value(cells[n]), 0.0) for n, a in self.coefficients]
        slack = 1e-12 * (abs(self.maximum) + sum(np.abs(term) for term in terms))  # sums of floats are not exact
        return np.asarray(present & (sum(terms) > self.maximum + slack))

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Move fields, in random order, toward the feasible side: first inside their bins, then inside their bounds."""
        grids: dict[str, Grid] = {name: grid_of(attributes, name) for name in self.fields}
        order = [self.coefficients[j] for j in generator.permutation(len(self.coefficients))]
        for wide in (False, True):
            for name, coefficient in order:
                grid, column = grids[name], cells[name][rows]
                excess = sum(a * grids[n].value(cells[n][rows]) for n, a in self.coefficients) - self.maximum
                bins = grid.bin_of(column)
                low = np.full(len(rows), grid.axis.low) if wide else grid.axis.starts[bins]
                high = np.full(len(rows), grid.axis.high) if wide else grid.axis.ends[bins]
                room = (grid.axis.high - grid.axis.low) + 1.0
                steps = np.ceil(np.clip(excess / abs(coefficient) * grid.scale - 1e-6, 0.0, room)).astype(np.int64)
                moved = column - steps if coefficient > 0 else column + steps
                cells[name][rows] = np.clip(moved, low, high)
