"""What those below a schema need of it, and what a rule is. The kinds of rules are in `rules`."""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, is_dataclass, replace
from dataclasses import fields as parts_of
from typing import Any, ClassVar, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Integers
from covey.errors import ParameterError
from covey.table.dialects import Dialect
from covey.table.document import refuse_unknown, shown
from covey.table.fields import ORDERED_TYPES, Field, Value

Cells = dict[str, Integers]  # of some rows, by field
Mask = NDArray[np.bool_]  # which of some rows


@dataclass(frozen=True)
class Condition:
    """Some values of a field (None is missing), or all between two bounds."""

    values: tuple[Value | None, ...] = ()
    minimum: Value | None = None
    maximum: Value | None = None

    @property
    def is_range(self) -> bool:
        """Whether bounds are given instead of values."""
        return not self.values

    def to_plain(self) -> Any:
        """The condition as it stands in a file."""
        if self.values:
            return [shown(v) for v in self.values]
        return {k: shown(v) for k, v in (("minimum", self.minimum), ("maximum", self.maximum)) if v is not None}

    @property
    def words(self) -> str:
        """The condition in plain words, after the name of its field."""
        if not self.is_range:
            return f"is {' or '.join('missing' if v is None else str(shown(v)) for v in self.values)}"
        if self.minimum is None:
            return f"is at most {shown(self.maximum)}"
        if self.maximum is None:
            return f"is at least {shown(self.minimum)}"
        return f"lies between {shown(self.minimum)} and {shown(self.maximum)}"

    def check(self, field: Field, word: str) -> None:
        """Refuse a condition of a rule that its field cannot meet."""
        if self.is_range:
            if field.type not in ORDERED_TYPES or (self.minimum is None and self.maximum is None):
                raise field.wrong(f"has an empty or unordered range in a {word} rule", "List its values.")
        elif field.type == "string" and field.labels:
            for value in self.values:
                if value is not None and value not in field.labels:
                    raise field.wrong(
                        f"has no category {value!r}, which a {word} rule names", "Name declared categories."
                    )

    @classmethod
    def read(cls, field: Field, what: Any, word: str) -> Condition:
        """The condition that a file states of a field."""
        if isinstance(what, Mapping):
            refuse_unknown(what, ("minimum", "maximum"), f"{word} of field {field.name!r}")
            low, high = (None if what.get(w) is None else field.value(what[w], w) for w in ("minimum", "maximum"))
            return cls((), low, high)
        values = what if isinstance(what, list) else [what]
        if not values:
            raise field.wrong(f"has an empty list in a {word} rule", "List its values.")
        plain = (None, *field.special)  # missing, and special values, stand for themselves
        return cls(tuple(v if v in plain else field.value(v, "value of a rule") for v in values))


Zero = tuple[tuple[str, Condition, bool], ...]  # of each field a condition that holds, or that fails where it says True


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


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


class Rule(ABC):
    """What every row obeys: a kind of rule says in one class how it is written, judged, kept by a fit and repaired."""

    word: ClassVar[str]  # under which it stands in a file

    @property
    @abstractmethod
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""

    @property
    @abstractmethod
    def words(self) -> str:
        """The rule in plain words."""

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""

    def renamed(self, name: Callable[[str], str]) -> Self:
        """The rule about fields of other names."""
        found: Self = _renamed(self, self.fields, name)
        return found

    @abstractmethod
    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Refuse what its fields cannot obey; the types that they may have."""

    @abstractmethod
    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows break the rule."""

    @abstractmethod
    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Alter these rows, in place, so that they obey it or are nearer to it."""

    @property
    def zeros(self) -> tuple[Zero, ...]:
        """Combinations that no row has."""
        return ()

    @property
    def bound(self) -> Sum | None:
        """The sum of numbers that it bounds, judged value by value."""
        return None

    @property
    def sums(self) -> tuple[Sum, ...]:
        """Bounds on sums of numbers that are kept together, by geometry (`rules.region`)."""
        return ()

    @property
    def orders(self) -> list[tuple[str, str]]:
        """Which field is at most which."""
        return []


def _renamed(part: Any, known: tuple[str, ...], name: Callable[[str], str]) -> Any:
    """Part of a rule in which these fields have other names; words of conditions stay what they are."""
    if isinstance(part, str):
        return name(part) if part in known else part
    if isinstance(part, tuple):
        return tuple(_renamed(one, known, name) for one in part)
    if not is_dataclass(part) or isinstance(part, type | Condition):
        return part
    return replace(part, **{own.name: _renamed(getattr(part, own.name), known, name) for own in parts_of(part)})


def shown_rule(rule: Rule) -> str:
    """A rule as it stands in a file, in one line."""
    return json.dumps(rule.to_dict(), ensure_ascii=False, default=str)


class Domain(Protocol):
    """What readers (names), checks and codecs (fields and rules) need of a schema."""

    @property
    def fields(self) -> tuple[Field, ...]:
        """All fields, in order."""

    @property
    def missing_values(self) -> tuple[str, ...]:
        """How missing cells are written."""

    @property
    def dialect(self) -> Dialect:
        """How the file is written."""

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What every row obeys."""

    @property
    def names(self) -> tuple[str, ...]:
        """The fields' names, in order."""

    @property
    def encoded(self) -> tuple[Field, ...]:
        """The fields with more than one category."""
