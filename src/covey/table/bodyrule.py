"""A convex body over numeric columns: parts of a whole, numbers in order, budgets, and any other linear bounds, held together.

    {"body": {"fields": ["food", "rent", "rest"], "sum": 100}}                    parts that make a whole
    {"body": {"fields": ["food", "rent"], "sum": {"maximum": 2000}}}              a budget
    {"body": {"fields": ["low", "middle", "high"], "increasing": true}}           low ≤ middle ≤ high
    {"body": {"fields": ["net", "tax", "gross"],
              "linear": [{"coefficients": {"net": 1, "tax": 1, "gross": -1}, "equals": 0}]}}

They may stand together in one body. It holds where none of its fields is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from covey.errors import ParameterError
from covey.table.document import refuse_unknown

_WORDS = ("fields", "sum", "increasing", "linear")


@dataclass(frozen=True)
class Sum:
    """minimum ≤ Σ coefficient · field ≤ maximum; an equation where the two are one number, None where there is no bound."""

    coefficients: tuple[tuple[str, float], ...]
    minimum: float | None = None
    maximum: float | None = None

    def __post_init__(self) -> None:
        numbers = [*(a for _, a in self.coefficients), *(b for b in (self.minimum, self.maximum) if b is not None)]
        if not all(_is_number(number) for number in numbers) or not all(a for _, a in self.coefficients):
            raise ParameterError("sums of a body need finite numbers, and coefficients other than 0.")
        if self.minimum is None and self.maximum is None:
            raise ParameterError("a sum of a body needs a minimum, a maximum, or a number that it equals.")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ParameterError(f"a sum of a body has minimum {self.minimum} above maximum {self.maximum}.")

    @property
    def bounds(self) -> dict[str, float]:
        """The bounds as they stand in a file."""
        if self.minimum is not None and self.minimum == self.maximum:
            return {"equals": self.minimum}
        both = {"minimum": self.minimum, "maximum": self.maximum}
        return {word: bound for word, bound in both.items() if bound is not None}

    def __str__(self) -> str:
        terms = " + ".join(name if a == 1 else f"{a:g} × {name}" for name, a in self.coefficients)
        words = {"equals": "is", "minimum": "is at least", "maximum": "is at most"}
        return f"{terms} {' and '.join(f'{words[word]} {bound:g}' for word, bound in self.bounds.items())}"


@dataclass(frozen=True)
class BodyRule:
    """Numbers that lie in a convex body together: bounds on sums, and perhaps in increasing order."""

    fields: tuple[str, ...]
    sums: tuple[Sum, ...] = ()
    increasing: bool = False

    def __post_init__(self) -> None:
        if not self.sums and not self.increasing:
            raise ParameterError("a body needs a sum, linear bounds, or an increasing order.")
        strange = sorted({name for part in self.sums for name, _ in part.coefficients} - set(self.fields))
        if strange:
            raise ParameterError(f"a body has a bound on {strange[0]!r}, which is not among its fields. Name it there.")

    @property
    def orders(self) -> list[tuple[str, str]]:
        """Which field is at most which."""
        return list(pairwise(self.fields)) if self.increasing else []

    @property
    def all_sums(self) -> tuple[Sum, ...]:
        """All bounds, orders included."""
        return (*self.sums, *(Sum(((a, 1.0), (b, -1.0)), None, 0.0) for a, b in self.orders))

    @classmethod
    def from_dict(cls, body: Any) -> BodyRule:
        """The rule as a file has it; KeyError, TypeError and ValueError where it is incomplete."""
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
        linear = [{"coefficients": dict(part.coefficients), **part.bounds} for part in self.sums]
        own: dict[str, Any] = {"fields": list(self.fields)}
        if self.increasing:
            own["increasing"] = True
        return {"body": own | ({"linear": linear} if linear else {})}

    def __str__(self) -> str:
        parts = [*([" ≤ ".join(self.fields)] if self.increasing else []), *map(str, self.sums)]
        return "; ".join(parts)


def _sum(coefficients: Mapping[str, Any], bounds: Mapping[str, Any], where: str) -> Sum:
    refuse_unknown(bounds, ("minimum", "maximum", "equals"), where)
    equals = bounds.get("equals")
    if equals is not None and len(bounds) > 1:
        raise ParameterError(f"{where} has equals and more. Give a number that it equals, or bounds.")
    low, high = (equals, equals) if equals is not None else (bounds.get("minimum"), bounds.get("maximum"))
    return Sum(tuple(coefficients.items()), low, high)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
