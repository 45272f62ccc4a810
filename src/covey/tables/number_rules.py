"""Rules on numbers: one is at most another one, a weighted sum has a bound, and several lie in a convex body together.

A body, in a file:

    {"body": {"fields": ["food", "rent", "rest"], "sum": 100}}                    parts that make a whole
    {"body": {"fields": ["food", "rent"], "sum": {"maximum": 2000}}}              a budget
    {"body": {"fields": ["low", "middle", "high"], "increasing": true}}           low ≤ middle ≤ high
    {"body": {"fields": ["net", "tax", "gross"],
              "linear": [{"coefficients": {"net": 1, "tax": 1, "gross": -1}, "equals": 0}]}}

They may stand together in one body. It holds where none of its fields is missing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from covey.engine.arrays import Integers
from covey.errors import ParameterError
from covey.tables.document import refuse_unknown
from covey.tables.fields import ORDERED_TYPES, Field
from covey.tables.rules import Cells, Mask, Rule, Sum, all_there

NUMBERS = ("integer", "number")


@dataclass(frozen=True)
class LessEqual(Rule):
    """left ≤ right, where neither is missing.

    Two numbers that lie far apart are measured each by itself where they are not `linked`, and repaired.
    """

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
        return {"less_equal": {"left": self.left, "right": self.right} | ({} if self.linked else {"linked": False})}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> LessEqual:
        """The rule as a file states it."""
        refuse_unknown(body, ("left", "right", "linked"), "less_equal")
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
        left, right = (attributes[name].value(cells[name]) for name in self.fields)
        return np.asarray(present & (left > right))

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Redraw inside the bins if they have room; else exchange the values; else move them together."""
        a, b = (attributes[name] for name in self.fields)
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
        return {"linear": {"coefficients": dict(self.coefficients), "maximum": self.maximum}}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> Linear:
        """The rule as a file states it."""
        refuse_unknown(body, ("coefficients", "maximum"), "linear")
        return cls(tuple((name, float(a)) for name, a in body["coefficients"].items()), float(body["maximum"]))

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Numbers, with finite coefficients."""
        _ = self.bound  # refuses others
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
        terms = [a * np.where(present, attributes[n].value(cells[n]), 0.0) for n, a in self.coefficients]
        slack = 1e-12 * (abs(self.maximum) + sum(np.abs(term) for term in terms))  # sums of floats are not exact
        return np.asarray(present & (sum(terms) > self.maximum + slack))

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Move fields, in random order, toward the feasible side: first inside their bins, then inside their bounds."""
        order = [self.coefficients[j] for j in generator.permutation(len(self.coefficients))]
        for wide in (False, True):
            for name, coefficient in order:
                grid, column = attributes[name], cells[name][rows]
                excess = sum(a * attributes[n].value(cells[n][rows]) for n, a in self.coefficients) - self.maximum
                bins = grid.bin_of(column)
                low = np.full(len(rows), grid.axis.low) if wide else grid.axis.starts[bins]
                high = np.full(len(rows), grid.axis.high) if wide else grid.axis.ends[bins]
                room = (grid.axis.high - grid.axis.low) + 1.0
                steps = np.ceil(np.clip(excess / abs(coefficient) * grid.scale - 1e-6, 0.0, room)).astype(np.int64)
                moved = column - steps if coefficient > 0 else column + steps
                cells[name][rows] = np.clip(moved, low, high)


@dataclass(frozen=True)
class BodyRule(Rule):
    """Numbers that lie in a convex body together: bounds on sums, and perhaps in increasing order."""

    numbers: tuple[str, ...]
    bounds: tuple[Sum, ...] = ()
    increasing: bool = False

    def __post_init__(self) -> None:
        if not self.bounds and not self.increasing:
            raise ParameterError("a body needs a sum, linear bounds, or an increasing order.")
        strange = sorted({name for part in self.bounds for name, _ in part.coefficients} - set(self.numbers))
        if strange:
            raise ParameterError(f"a body has a bound on {strange[0]!r}, which is not among its fields. Name it there.")

    @property
    def fields(self) -> tuple[str, ...]:
        """The numbers."""
        return self.numbers

    @property
    def words(self) -> str:
        """The rule in plain words."""
        parts = [*([" ≤ ".join(self.numbers)] if self.increasing else []), *map(str, self.bounds)]
        return f"Together: {'; '.join(parts)}."

    @property
    def orders(self) -> list[tuple[str, str]]:
        """Which field is at most which."""
        return list(pairwise(self.numbers)) if self.increasing else []

    @property
    def sums(self) -> tuple[Sum, ...]:
        """All bounds, orders included."""
        return (*self.bounds, *(Sum(((a, 1.0), (b, -1.0)), None, 0.0) for a, b in self.orders))

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Of one number in order with itself no row is wrong; a body with bounds is judged by its region."""
        return np.zeros(len(cells[self.numbers[0]]), dtype=bool)

    @classmethod
    def read(cls, body: Any, known: Mapping[str, Field]) -> BodyRule:
        """The rule as a file states it."""
        refuse_unknown(body, ("fields", "sum", "increasing", "linear"), "body")
        fields = body["fields"]
        if not isinstance(fields, list) or not all(isinstance(name, str) for name in fields):
            raise ParameterError(f"fields of a body must be a list of names, got {fields!r}.")
        increasing = body.get("increasing", False)
        if not isinstance(increasing, bool):
            raise ParameterError(f"increasing of a body must be true or false, got {increasing!r}.")
        sums = []
        if body.get("sum") is not None:
            given = body["sum"]
            bounds = given if isinstance(given, Mapping) else {"equals": given}
            sums.append(_sum(dict.fromkeys(fields, 1.0), bounds, "sum of a body"))
        for part in body.get("linear", []):
            rest = {word: bound for word, bound in part.items() if word != "coefficients"}
            sums.append(_sum(part["coefficients"], rest, "linear of a body"))
        return cls(tuple(fields), tuple(sums), increasing)

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        linear = [{"coefficients": dict(part.coefficients), **part.bounds} for part in self.bounds]
        own: dict[str, Any] = {"fields": list(self.numbers)}
        if self.increasing:
            own["increasing"] = True
        return {"body": own | ({"linear": linear} if linear else {})}

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Numbers."""
        return NUMBERS


def _sum(coefficients: Mapping[str, Any], bounds: Mapping[str, Any], where: str) -> Sum:
    refuse_unknown(bounds, ("minimum", "maximum", "equals"), where)
    equals = bounds.get("equals")
    if equals is not None and len(bounds) > 1:
        raise ParameterError(f"{where} has equals and more. Give a number that it equals, or bounds.")
    low, high = (equals, equals) if equals is not None else (bounds.get("minimum"), bounds.get("maximum"))
    return Sum(tuple(coefficients.items()), low, high)
