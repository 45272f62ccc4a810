"""A convex body over numeric columns: parts of a whole, numbers in order, budgets, and any other linear bounds, held together.

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

from covey.core.arrays import Integers
from covey.errors import ParameterError
from covey.table.document import refuse_unknown
from covey.table.domain import Cells, Mask, Rule, Sum
from covey.table.fields import Field
from covey.table.rules.region import region_of
from covey.table.rules.sums import NUMBERS

_WORDS = ("fields", "sum", "increasing", "linear")


@dataclass(frozen=True)
class BodyRule(Rule):
    """Numbers that lie in a convex body together: bounds on sums, and perhaps in increasing order."""

    word = "body"
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

    @classmethod
    def read(cls, body: Any, known: Mapping[str, Field]) -> BodyRule:
        """The rule as a file states it."""
        refuse_unknown(body, _WORDS, "body")
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
        return {self.word: own | ({"linear": linear} if linear else {})}

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Numbers."""
        return NUMBERS

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows lie outside."""
        return region_of([self], attributes).broken(self, cells)

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Move these rows inside."""
        region_of([self], attributes).settle(cells, rows, turns=0)


def _sum(coefficients: Mapping[str, Any], bounds: Mapping[str, Any], where: str) -> Sum:
    refuse_unknown(bounds, ("minimum", "maximum", "equals"), where)
    equals = bounds.get("equals")
    if equals is not None and len(bounds) > 1:
        raise ParameterError(f"{where} has equals and more. Give a number that it equals, or bounds.")
    low, high = (equals, equals) if equals is not None else (bounds.get("minimum"), bounds.get("maximum"))
    return Sum(tuple(coefficients.items()), low, high)
