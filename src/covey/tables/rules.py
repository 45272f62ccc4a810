"""What a rule is, rules on values and flags, and what those below a schema need of it. Rules on numbers: `number_rules`."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from dataclasses import fields as parts_of
from functools import cached_property
from itertools import combinations
from math import comb
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from covey.engine.arrays import Integers
from covey.errors import ParameterError, whole_number
from covey.tables.dialects import Dialect
from covey.tables.document import is_number, refuse_unknown, shown
from covey.tables.fields import GUARDED, ORDERED_TYPES, TYPES, Field, Value, is_label

MOST_ZEROS = 200  # of one rule; a fit that looks at more of them is slow, and such rules are loose

Cells = dict[str, Integers]  # of some rows, by field
Mask = NDArray[np.bool_]  # which of some rows


def all_there(grids: Mapping[str, Any], names: Iterable[str], cells: Mapping[str, Integers]) -> Mask:
    """Where none of these numbers is missing or special."""
    return np.asarray(np.logical_and.reduce([grids[name].has_value(cells[name]) for name in names]))


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
                    raise field.wrong(f"has no category {value!r}, which a {word} rule names", "Name declared ones.")

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
        if not all(map(is_number, numbers)) or not all(a for _, a in self.coefficients):
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


class Rule(ABC):
    """What every row obeys: a kind of rule says in one class how it is written, judged, kept by a fit and repaired."""

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

    @property
    def word(self) -> str:
        """Under which it stands in a file."""
        return next(iter(self.to_dict()))

    def __str__(self) -> str:
        return json.dumps(self.to_dict(), ensure_ascii=False, default=str)

    def renamed(self, name: Callable[[str], str]) -> Self:
        """The rule about fields of other names."""
        found: Self = _renamed(self, self.fields, name)
        return found

    @abstractmethod
    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Refuse what its fields cannot obey; the types that they may have."""

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows break the rule; a body is judged and kept by its region (`repair`)."""
        raise NotImplementedError

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Alter these rows, in place, so that they obey it or are nearer to it."""
        raise NotImplementedError

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
        """Bounds on sums of numbers that are kept together, by geometry (`repair.Region`)."""
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


@dataclass(frozen=True)
class AtMost(Rule):
    """A record sets at most `limit` of these boolean fields; a missing flag is not set.

    Fields that are `one` are coded together as one category, whose labels are their names: a record sets one of them, or none
    where `none` allows it. A file says that as {"one_of": {"fields": […], "none": true}}, or as a list of fields.
    """

    flags: tuple[str, ...]
    limit: int
    one: bool = False
    none: bool = True

    @property
    def fields(self) -> tuple[str, ...]:
        """The flags."""
        return self.flags

    @property
    def words(self) -> str:
        """The rule in plain words."""
        many = f"At most {self.limit}" if self.none else "Exactly one"
        return f"{many} of {', '.join(self.flags)} {'is' if self.one else 'are'} true."

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        fields: dict[str, Any] = {"fields": list(self.flags)}
        if self.one:
            return {"one_of": {**fields, "none": True} if self.none else fields}
        return {"at_most": {**fields, "limit": self.limit}}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> AtMost:
        """The rule as a file states it."""
        refuse_unknown(body, ("fields", "limit"), "at_most")
        return cls(tuple(body["fields"]), body["limit"])

    @classmethod
    def one_of(cls, flags: Sequence[str], none: bool = False) -> AtMost:
        """Exactly one of these is true, or at most one; they are coded as one category."""
        return cls(tuple(flags), 1, one=True, none=none)

    @classmethod
    def read_one_of(cls, body: Any, fields: Mapping[str, Field]) -> AtMost:
        """The rule as a file states it: columns that exclude each other."""
        given = {"fields": body} if isinstance(body, list) else body
        refuse_unknown(given, ("fields", "none"), "one_of")
        return cls.one_of(given["fields"], given.get("none", False) is True)

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Flags, and a number of them."""
        whole_number(self.limit, "limit of an at_most rule", 0)
        if self.one and len(fields) < 2:
            raise ParameterError(f"rule {self} needs two fields at least, which exclude each other.")
        return ("boolean",)

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows set more, or none where one is needed; of one category a row may be missing."""
        found = np.asarray(sum((cells[name] == 1).astype(np.int64) for name in self.flags))
        lacking = np.logical_and.reduce([cells[name] == 0 for name in self.flags]) if not self.none else False
        return np.asarray((found > self.limit) | lacking)

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Keep `limit` of the set flags, chosen at random; where one is needed, set one."""
        flags = np.stack([cells[name][rows] == 1 for name in self.flags], axis=1)
        keys = np.where(flags, generator.random(flags.shape), 2.0)
        surplus = flags & (keys.argsort(axis=1).argsort(axis=1) >= self.limit)
        for j, name in enumerate(self.flags):
            cells[name][rows[surplus[:, j]]] = 0
        if not self.none:
            cells[self.flags[0]][rows[~flags.any(axis=1)]] = 1

    @property
    def zeros(self) -> tuple[Zero, ...]:
        """Every choice of one flag more than may be set, where these are few."""
        size, both = self.limit + 1, Condition((True,))
        if size > len(self.flags) or comb(len(self.flags), size) > MOST_ZEROS:
            return ()
        return tuple(tuple((name, both, False) for name in some) for some in combinations(self.flags, size))


Conditions = tuple[tuple[str, Condition], ...]


@dataclass(frozen=True)
class Forbid(Rule):
    """A structural zero: no record meets all conditions at once, or none does so unless it meets each of `unless` too.

    A file says the second as what the conditions require: {"requires": {"if": conditions, "then": unless}}.
    """

    conditions: Conditions
    unless: Conditions = ()

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of all conditions."""
        return tuple(name for name, _ in (*self.conditions, *self.unless))

    @property
    def words(self) -> str:
        """The rule in plain words."""
        if not self.unless:
            return f"Never together: {_told(self.conditions, '; ')}."
        return f"If {_told(self.conditions, ' and ')}, then {_told(self.unless, ' and ')}."

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        one, other = ({name: c.to_plain() for name, c in part} for part in (self.conditions, self.unless))
        return {"requires": {"if": one, "then": other}} if self.unless else {"forbid": one}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> Forbid:
        """The rule as a file states it: what is forbidden."""
        return cls(_read(body, fields, "forbid"))

    @classmethod
    def requires(cls, conditions: Conditions, then: Conditions) -> Forbid:
        """If a record meets all conditions, it also meets each of `then`."""
        found = cls(conditions, then)
        if not (conditions and then):
            raise ParameterError(f"rule {found} needs conditions both under if and under then.")
        return found

    @classmethod
    def read_requires(cls, body: Any, fields: Mapping[str, Field]) -> Forbid:
        """The rule as a file states it: what is required."""
        refuse_unknown(body, ("if", "then"), "requires")
        return cls.requires(*(_read(body[part], fields, "requires") for part in ("if", "then")))

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Conditions that fields can meet."""
        for name, condition in (*self.conditions, *self.unless):
            condition.check(fields[name], self.word)
        return TYPES

    @property
    def zeros(self) -> tuple[Zero, ...]:
        """All conditions together, and each thing that is required fails."""
        hold: Zero = tuple((name, condition, False) for name, condition in self.conditions)
        return tuple((*hold, (name, wanted, True)) for name, wanted in self.unless) or (hold,)

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows meet the conditions, and not all that is required."""
        met, wanted = (
            np.asarray(np.logical_and.reduce([attributes[n].meets(c, cells[n]) for n, c in part]))
            for part in (self.conditions, self.unless)
        )
        return met & ~wanted if self.unless else met

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Give the columns that fail what is required a random value that does not.

        Without such: redraw a number inside its bin if that helps; else give one of the fields, chosen at random, another value.
        """
        for name, wanted in self.unless:
            attribute, column = attributes[name], cells[name]
            failing = rows[~attribute.meets(wanted, column[rows])]
            fresh = attribute.some(wanted, len(failing), generator)
            if fresh is not None:
                column[failing] = fresh
        if self.unless:
            return
        for name, condition in self.conditions:
            attribute = attributes[name]
            if attribute.ordered and len(rows):
                there = attribute.has_value(cells[name][rows])
                for _ in range(8):
                    column = cells[name][rows]
                    drawn = attribute.draw(np.where(there, attribute.bin_of(column), attribute.size), generator)
                    cells[name][rows] = drawn = np.where(there, drawn, column)  # a special value stays what it is
                    still = attribute.meets(condition, drawn)
                    rows, there = rows[still], there[still]
                    if not len(rows):
                        return
        able = [(n, c) for n, c in self.conditions if attributes[n].avoid(c, 1, generator) is not None]
        if not able:
            return
        chosen = generator.integers(0, len(able), len(rows))
        for j, (name, condition) in enumerate(able):
            mine = rows[chosen == j]
            fresh = attributes[name].avoid(condition, len(mine), generator)
            if fresh is not None:
                cells[name][mine] = fresh


def _read(body: Any, fields: Mapping[str, Field], word: str) -> Conditions:
    for name in body:
        if name not in fields:
            raise ParameterError(f"a {word} rule names {name!r}, which is not a field. Correct the name.")
    return tuple((name, Condition.read(fields[name], what, word)) for name, what in body.items())


def _told(conditions: Conditions, between: str) -> str:
    return between.join(f"{name} {condition.words}" for name, condition in conditions)


@dataclass(frozen=True)
class Domain:
    """What readers, checks and codecs need of a schema: its fields in order, and how its tables are written."""

    fields: tuple[Field, ...]
    missing_values: tuple[str, ...] = ("",)
    rules: tuple[Rule, ...] = ()
    dialect: Dialect = Dialect()  # noqa: RUF009 # frozen

    @property
    def names(self) -> tuple[str, ...]:
        """The fields' names, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def encoded(self) -> tuple[Field, ...]:
        """The fields with more than one category, or an unknown number; the others are public constants."""
        return tuple(field for field in self.fields if field.learn or field.categories > 1)

    @cached_property
    def together(self) -> dict[str, tuple[Field, AtMost]]:
        """The categories that stand for columns that exclude each other, by name, each with the rule that says so."""
        found: dict[str, tuple[Field, AtMost]] = {}
        for rule in self.rules:
            if isinstance(rule, AtMost) and rule.one:
                members = [field for field in self.fields if field.name in rule.flags]
                category = _category(rule, all(f.required for f in members), {*self.names, *found}, self.missing_values)
                found[category.name] = category, rule
        return found

    @cached_property
    def home(self) -> dict[str, str]:
        """The category of each column that others exclude."""
        return {name: called for called, (_, rule) in self.together.items() for name in rule.flags}

    @cached_property
    def coded(self) -> Domain:
        """The fields and rules as records are coded: one category for columns that exclude each other."""
        if not self.together:
            return self
        own = {field.name: field for field in self.fields} | {name: field for name, (field, _) in self.together.items()}
        names = dict.fromkeys(self.home.get(name, name) for name in self.names)
        rules = [rule for before in self.rules for rule in self._coded(before)]
        return Domain(tuple(own[name] for name in names), self.missing_values, tuple(rules), self.dialect)

    def _coded(self, rule: Rule) -> list[Rule]:
        """A rule about fields as they are coded; none where it says nothing."""
        if self.home.keys().isdisjoint(rule.fields):
            return [rule]
        if not isinstance(rule, Forbid):
            return []
        met, wanted = self._met(rule.conditions), self._met(rule.unless)
        return [] if met is None else [Forbid(met, wanted or ())]  # what nothing meets cannot be required: never, then

    def _met(self, conditions: Conditions) -> Conditions | None:
        """Conditions, those on columns of one category joined; None where nothing meets them."""
        out: dict[str, Condition] = {}
        for name, condition in conditions:
            if name in self.home:
                category, rule = self.together[self.home[name]]
                named = dict(zip(category.labels, rule.flags, strict=False))  # the column that a label stands for
                cells = {label: named.get(label) == name for label in category.labels}
                every: dict[Any, bool | None] = {**cells, **({} if category.required else {None: self._empty(name)})}
                before = out[category.name].values if category.name in out else tuple(every)
                name, condition = category.name, Condition(tuple(v for v in before if every[v] in condition.values))
                if condition.is_range:
                    return None
            out[name] = condition
        return tuple(out.items())

    def _empty(self, name: str) -> bool | None:
        """What a column holds where its category is missing."""
        return False if next(field.required for field in self.fields if field.name == name) else None


def _category(rule: AtMost, required: bool, taken: set[str], missing: tuple[str, ...]) -> Field:
    """The category of columns that exclude each other: named by what their names begin with, labelled by these names."""
    first, last = min(rule.flags), max(rule.flags)
    common = first[: next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
    cut = max(common.rfind(mark) for mark in "_-.:=/ ")
    name = (common[:cut] if cut > 0 else common).strip() or f"{rule.flags[0]} … {rule.flags[-1]}"
    while name in taken:
        name += "_"
    labels = [*rule.flags, *(["none"] if rule.none else [])]
    if len({*labels, *missing}) < len(labels) + len({*missing}) or not all(map(_is_plain, labels)):
        labels = [f"{k}: {label}" if _is_plain(label) else f"{k}" for k, label in enumerate(labels, 1)]
    return Field(name, "string", enum=tuple(labels), required=required)


def _is_plain(name: str) -> bool:
    return is_label(name) and not name.startswith(GUARDED)
