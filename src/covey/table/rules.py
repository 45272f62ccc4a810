"""Rules that every row of a table obeys.

At most so many flags are set, one value is no larger than another, a weighted sum has a bound, numbers lie in a body together, a
combination cannot occur.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from covey.errors import ParameterError, whole_number
from covey.table.bodyrule import BodyRule
from covey.table.dialects import Dialect
from covey.table.document import refuse_unknown, shown
from covey.table.fields import ORDERED_TYPES, TYPES, Field, Value


@dataclass(frozen=True)
class AtMost:
    """A record sets at most `limit` of these boolean fields; a missing flag is not set."""

    fields: tuple[str, ...]
    limit: int

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"at_most": {"fields": list(self.fields), "limit": self.limit}}


@dataclass(frozen=True)
class LessEqual:
    """left ≤ right, where neither is missing."""

    left: str
    right: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""
        return (self.left, self.right)

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"less_equal": {"left": self.left, "right": self.right}}


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · field ≤ maximum, where none is missing."""

    coefficients: tuple[tuple[str, float], ...]
    maximum: float

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""
        return tuple(name for name, _ in self.coefficients)

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"linear": {"coefficients": dict(self.coefficients), "maximum": self.maximum}}


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


@dataclass(frozen=True)
class Forbid:
    """A structural zero: no record meets all these conditions at once."""

    conditions: tuple[tuple[str, Condition], ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""
        return tuple(name for name, _ in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"forbid": {name: condition.to_plain() for name, condition in self.conditions}}


@dataclass(frozen=True)
class Requires:
    """If a record meets all conditions, it also meets each of `then`: the readable form of several structural zeros."""

    conditions: tuple[tuple[str, Condition], ...]
    then: tuple[tuple[str, Condition], ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""
        return tuple(name for name, _ in (*self.conditions, *self.then))

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        given, wanted = ({name: c.to_plain() for name, c in part} for part in (self.conditions, self.then))
        return {"requires": {"if": given, "then": wanted}}


Rule = AtMost | LessEqual | Linear | BodyRule | Forbid | Requires


def renamed(rule: Rule, name: Callable[[str], str]) -> Rule:
    """The rule about fields of other names."""

    def named(parts: Iterable[tuple[str, Any]]) -> tuple[tuple[str, Any], ...]:
        return tuple((name(field), part) for field, part in parts)

    if isinstance(rule, AtMost):
        return replace(rule, fields=tuple(map(name, rule.fields)))
    if isinstance(rule, LessEqual):
        return LessEqual(name(rule.left), name(rule.right))
    if isinstance(rule, Linear):
        return replace(rule, coefficients=named(rule.coefficients))
    if isinstance(rule, BodyRule):
        sums = tuple(replace(part, coefficients=named(part.coefficients)) for part in rule.sums)
        return replace(rule, fields=tuple(map(name, rule.fields)), sums=sums)
    if isinstance(rule, Requires):
        return Requires(named(rule.conditions), named(rule.then))
    return Forbid(named(rule.conditions))


def shown_rule(rule: Rule) -> str:
    """A rule as it stands in a file, in one line."""
    return json.dumps(rule.to_dict(), ensure_ascii=False)


class Domain(Protocol):
    """What those below a schema need of it: readers the names, checks and codecs the fields and rules."""

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


def check_rule(rule: Rule, known_fields: Mapping[str, Field]) -> None:
    """Refuse a rule that does not fit the fields it names."""
    fields = [known_fields[name] for name in rule.fields]
    if len({field.name for field in fields}) < len(fields) or not fields:
        raise ParameterError(f"rule {_line(rule)} must name at least one field, and each once.")
    for field in fields:
        if not field.measured:
            what = "constant" if field.derived is None else "derived from others"
            raise field.wrong(f"is {what} and stands in rule {_line(rule)}", "Leave it out of the rule.")
    if isinstance(rule, AtMost):
        whole_number(rule.limit, "limit of an at_most rule", 0)
        wanted: tuple[str, ...] = ("boolean",)
    elif isinstance(rule, Linear):
        wanted = ("integer", "number")
        if not all(math.isfinite(a) and a for _, a in rule.coefficients) or not math.isfinite(rule.maximum):
            raise ParameterError(f"rule {_line(rule)} needs finite coefficients other than 0 and a finite maximum.")
    elif isinstance(rule, BodyRule):
        wanted = ("integer", "number")
    elif isinstance(rule, LessEqual):
        first = fields[0].type
        wanted = ("integer", "number") if first in ("integer", "number") else (first,)
        wanted = wanted if first in ORDERED_TYPES else ORDERED_TYPES
    else:
        wanted = TYPES
        if isinstance(rule, Requires) and not (rule.conditions and rule.then):
            raise ParameterError(f"rule {_line(rule)} needs conditions both under if and under then.")
        for name, condition in (*rule.conditions, *(rule.then if isinstance(rule, Requires) else ())):
            _check_condition(known_fields[name], condition, next(iter(rule.to_dict())))
    for field in fields:
        if field.type not in wanted:
            raise field.wrong(f"has type {field.type} in rule {_line(rule)}", f"It needs type {' or '.join(wanted)}.")


def _check_condition(field: Field, condition: Condition, word: str) -> None:
    if condition.is_range:
        if field.type not in ORDERED_TYPES or (condition.minimum is None and condition.maximum is None):
            raise field.wrong(f"has an empty or unordered range in a {word} rule", "List its values.")
    elif field.type == "string" and field.labels:
        for value in condition.values:
            if value is not None and value not in field.labels:
                raise field.wrong(f"has no category {value!r}, which a {word} rule names", "Name declared categories.")


def read_rule(rule: Any, fields: Mapping[str, Field]) -> Rule:
    """A rule as it stands in a file."""
    if not isinstance(rule, Mapping) or len(rule) != 1:
        raise ParameterError(
            f"a rule is an object with one key, at_most, less_equal, linear, body, forbid or requires, got {rule!r}."
        )
    [(word, body)] = rule.items()
    try:
        if word == "at_most":
            refuse_unknown(body, ("fields", "limit"), "at_most")
            return AtMost(tuple(body["fields"]), body["limit"])
        if word == "less_equal":
            refuse_unknown(body, ("left", "right"), "less_equal")
            return LessEqual(body["left"], body["right"])
        if word == "linear":
            refuse_unknown(body, ("coefficients", "maximum"), "linear")
            terms = tuple((name, float(a)) for name, a in body["coefficients"].items())
            return Linear(terms, float(body["maximum"]))
        if word == "body":
            return BodyRule.from_dict(body)
        if word == "forbid":
            return Forbid(_read_conditions(fields, body, "forbid"))
        if word == "requires":
            refuse_unknown(body, ("if", "then"), "requires")
            return Requires(*(_read_conditions(fields, body[part], "requires") for part in ("if", "then")))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"rule {rule!r} is incomplete or has a wrong type: {error!r}.") from None
    raise ParameterError(f"there is no rule {word!r}. Use at_most, less_equal, linear, body, forbid or requires.")


def _read_conditions(fields: Mapping[str, Field], body: Any, word: str) -> tuple[tuple[str, Condition], ...]:
    return tuple((name, _read_condition(fields, name, what, word)) for name, what in body.items())


def _read_condition(fields: Mapping[str, Field], name: str, what: Any, word: str) -> Condition:
    if name not in fields:
        raise ParameterError(f"a {word} rule names {name!r}, which is no field. Correct the name.")
    field = fields[name]
    if isinstance(what, Mapping):
        refuse_unknown(what, ("minimum", "maximum"), f"{word} of field {name!r}")
        low, high = (None if what.get(w) is None else field.value(what[w], w) for w in ("minimum", "maximum"))
        return Condition((), low, high)
    values = what if isinstance(what, list) else [what]
    if not values:
        raise field.wrong(f"has an empty list in a {word} rule", "List its values.")
    plain = (None, *field.special)  # missing, and special values, stand for themselves
    return Condition(tuple(v if v in plain else field.value(v, "value of a rule") for v in values))


def _line(rule: Rule) -> str:
    return json.dumps(rule.to_dict(), ensure_ascii=False, default=str)
