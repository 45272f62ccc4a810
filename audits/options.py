"""Everything that a synthesizer and an order take, each option with a generator: what `audits.drawn` draws its rides from.

A generator says one value that an option may have in a scene, or `NOTHING` where it does not belong there. Options that are never
drawn say why. A test compares these lists with signatures and dataclasses: an option without a generator fails it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from covey.engine.bodies import Ball, Box, Simplex
from covey.engine.unit import ADD_REMOVE, REPLACE
from covey.errors import CoveyError
from covey.release.contents import About
from covey.tables.derived_fields import Derived
from covey.tables.dialects import Dialect
from covey.tables.fields import Constant, Field, Follows

NOTHING: Any = object()
NUMBERS = ("integer", "number")
ORDERED = (*NUMBERS, "date", "datetime", "time")
TYPES = ("boolean", "string", *ORDERED)
LABELS = ("A1", "A2", "B1", "B2", "C", "D")
PERSON = "who"


class Chance(random.Random):
    """What is drawn, and how often."""

    def once_in(self, times: int) -> bool:
        """True once in so many times."""
        return self.randrange(times) == 0

    def some(self, values: Sequence[Any], least: int, most: int) -> tuple[Any, ...]:
        """Some of the values, each once, in random order; nothing where there are too few."""
        most = min(most, len(values))
        return tuple(self.sample(values, self.randint(least, most))) if least <= most else NOTHING


@dataclass
class Scene:
    """What a ride is about, as far as options depend on it: an array, a table, a table of persons, or persons with events."""

    kind: str
    public: dict[str, Any]  # what describes the table: schema, domain or body
    names: tuple[str, ...] = ()  # of columns
    columns: int = 0
    earlier: Callable[[], Path] = lambda: Path()  # makes a release that was made before
    said: dict[str, Any] = field(default_factory=dict)  # options that were drawn already

    @property
    def tabular(self) -> bool:
        """Whether columns have names."""
        return self.kind in ("table", "persons", "linked", "drafted")


def grown(
    make: Callable[..., Any], needed: Mapping[str, Any], wanted: Mapping[str, Any], chance: Chance
) -> dict[str, Any]:
    """The needed options, with as many of the wanted ones, in random order, as go together with those before."""
    together, names = dict(needed), list(wanted)
    chance.shuffle(names)
    for name in names:
        try:
            make(**together, **{name: wanted[name]})
        except CoveyError:
            continue
        together[name] = wanted[name]
    return together


def drawn(generators: Mapping[str, Callable[..., Any]], *about: Any) -> dict[str, Any]:
    """A value of every option that has one here."""
    values = {name: generator(*about) for name, generator in generators.items()}
    return {name: value for name, value in values.items() if value is not NOTHING}


# Of a field. What a generator is told: chance, the field's type, and the fields before it.

LOWEST = {"integer": 0, "number": 0.0, "date": "2015-01-01", "datetime": "2020-01-01T00:00:00", "time": "06:00:00"}
HIGHEST = {
    "integer": (1, 9, 100, 10**6),
    "number": (1.0, 24.0, 5000.0),
    "date": ("2015-01-09", "2024-12-31"),
    "datetime": ("2020-01-02T00:00:00", "2020-12-31T23:59:00"),
    "time": ("06:30:00", "22:00:00"),
}


def _base(chance: Chance, kind: str, before: Sequence[Field]) -> Field | None:
    """A field before of the same type, which others may follow."""
    alike = [own for own in before if own.type == kind and own.measured and not own.learn and own.bins is None]
    return chance.choice(alike) if alike else None


def _follows(chance: Chance, kind: str, before: Sequence[Field]) -> Any:
    base = _base(chance, kind, before)
    if kind not in ORDERED or base is None or not chance.once_in(3):
        return NOTHING
    return Follows(base.name, signed=chance.once_in(2))


def _derived(chance: Chance, kind: str, before: Sequence[Field]) -> Any:
    numbers = [own for own in before if own.type in NUMBERS and own.measured and not own.learn]
    if kind != "boolean" or not numbers or not chance.once_in(2):
        return NOTHING
    name = chance.choice(numbers).name
    return Derived((name,), expression=f"{name} >= {chance.choice((1, 5, 50))}")


def _expected(chance: Chance, kind: str, before: Sequence[Field]) -> Any:
    base = _base(chance, kind, before)
    if kind not in ("integer", "date") or base is None or not chance.once_in(2):
        return NOTHING
    return Derived((base.name,), expression=base.name)


def _once(times: int, kinds: Sequence[str], value: Callable[[Chance], Any]) -> Callable[..., Any]:
    """A generator that speaks once in so many times, of fields of these types."""

    def generator(chance: Chance, kind: str, _: Sequence[Field]) -> Any:
        return value(chance) if kind in kinds and chance.once_in(times) else NOTHING

    return generator


FIELD: dict[str, Callable[..., Any]] = {
    "name": lambda _, __, before: f"f{len(before)}",
    "type": lambda _, kind, __: kind,
    "learn": _once(6, TYPES, lambda _: True),
    "minimum": lambda _, kind, __: LOWEST.get(kind, NOTHING),
    "maximum": lambda chance, kind, __: chance.choice(HIGHEST[kind]) if kind in HIGHEST else NOTHING,
    "enum": lambda chance, kind, __: chance.some(LABELS, 1, 6) if kind == "string" else NOTHING,
    "required": _once(2, TYPES, lambda _: True),
    "bins": _once(4, ORDERED, lambda chance: chance.choice((1, 2, 12))),
    "other": _once(3, ("string",), lambda _: "other"),
    "default": lambda chance, kind, __: LOWEST[kind] if kind in LOWEST and chance.once_in(6) else NOTHING,
    "decimals": _once(2, ("number",), lambda chance: chance.choice((0, 1, 2))),
    "constant": _once(12, TYPES, lambda _: Constant(None)),
    "ordered": _once(4, ("string",), lambda _: True),
    "flags": _once(3, ("boolean",), lambda _: ("No", "Yes")),
    "special": _once(4, ORDERED, lambda _: ("refused",)),
    "follows": _follows,
    "derived": _derived,
    "expected": _expected,
    "levels": _once(4, ("string",), lambda _: 1),
    "notes": _once(4, TYPES, lambda _: {"title": "A column"}),
}
NOT_OF_FIELD = {
    "confirmed": "what is not confirmed is refused before the charge",
    "learned": "a release says so of what it learned",
    "from_table": "a draft says so, and orders that learn draft",
    "warning": "of a draft, for its owner's eyes",
    "spelling": "follows from the dialect, which is drawn",
}


# Of the rules of a schema, by their words in a file. What a generator is told: chance and the fields.


def _named(fields: Sequence[Field], *kinds: str) -> list[str]:
    return [own.name for own in fields if own.type in kinds and own.measured and not own.learn]


def _flags(chance: Chance, fields: Sequence[Field]) -> Any:
    names = chance.some(_named(fields, "boolean"), 2, 3)
    return NOTHING if names is NOTHING else list(names)


def _less_equal(chance: Chance, fields: Sequence[Field]) -> Any:
    pair = chance.some(_named(fields, chance.choice(ORDERED)), 2, 2)
    return NOTHING if pair is NOTHING else {"left": pair[0], "right": pair[1]}


def _linear(chance: Chance, fields: Sequence[Field]) -> Any:
    names = chance.some(_named(fields, *NUMBERS), 2, 2)
    return NOTHING if names is NOTHING else {"coefficients": dict.fromkeys(names, 1), "maximum": chance.choice((1, 50))}


def _body(chance: Chance, fields: Sequence[Field]) -> Any:
    names = chance.some(_named(fields, *NUMBERS), 2, 3)
    return NOTHING if names is NOTHING else {"fields": list(names), "sum": {"maximum": chance.choice((1, 50))}}


def _conditions(chance: Chance, fields: Sequence[Field]) -> Any:
    labels = {own.name: own.enum[0] for own in fields if own.enum and own.measured}
    flags = dict.fromkeys(_named(fields, "boolean"), True)
    names = chance.some(tuple(labels | flags), 2, 2)
    return NOTHING if names is NOTHING else {name: (labels | flags)[name] for name in names}


def _requires(chance: Chance, fields: Sequence[Field]) -> Any:
    both = _conditions(chance, fields)
    if both is NOTHING:
        return NOTHING
    one, two = both.items()
    return {"if": dict([one]), "then": dict([two])}


def _at_most(chance: Chance, fields: Sequence[Field]) -> Any:
    names = _flags(chance, fields)
    return NOTHING if names is NOTHING else {"fields": names, "limit": 1}


RULES: dict[str, Callable[..., Any]] = {
    "at_most": _at_most,
    "one_of": _flags,
    "less_equal": _less_equal,
    "linear": _linear,
    "body": _body,
    "forbid": _conditions,
    "requires": _requires,
}

# Of a schema. What a generator is told: chance, the names of columns, and the rules that go together.


def _groups(chance: Chance, names: Sequence[str]) -> Any:
    return tuple(chance.some(names, 1, 2) for _ in range(chance.randint(1, 2))) if names else NOTHING


SCHEMA: dict[str, Callable[..., Any]] = {
    "important": lambda chance, names, _: _groups(chance, names) if chance.once_in(3) else NOTHING,
    "target": lambda chance, names, _: chance.choice(names) if names and chance.once_in(4) else NOTHING,
    "triples": lambda chance, _, __: chance.choice((0, 1, 3)) if chance.once_in(3) else NOTHING,
    "relations": lambda chance, _, __: chance.choice(("learn", "none")) if chance.once_in(3) else NOTHING,
    "missing_values": lambda chance, _, __: ("", "?") if chance.once_in(3) else NOTHING,
    "rules": lambda chance, _, rules: rules if chance.once_in(2) else NOTHING,
    "notes": lambda chance, _, __: {"title": "A table"} if chance.once_in(4) else NOTHING,
}
NOT_OF_SCHEMA = {
    "fields": "drawn one by one",
    "dialect": "how a file is written: drawn with an order",
}

# Of a dialect: how an order's file is written.

DIALECT: dict[str, Callable[..., Any]] = {
    "separator": lambda chance: chance.choice((",", ";", "\t", "|")),
    "decimal": lambda chance: chance.choice((".", ",")),
    "thousands": lambda chance: chance.choice(("", "'", " ")),
    "encoding": lambda chance: chance.choice(("utf-8", "windows-1252", "utf-16")),
    "missing": lambda chance: ("", "?") if chance.once_in(2) else NOTHING,
    "date_format": lambda chance: "%d.%m.%Y" if chance.once_in(3) else NOTHING,
    "skip_rows": lambda chance: chance.choice((0, 2)),
}
NOT_OF_DIALECT = {"sheet": "of workbooks, which are read by the same way from there on"}

# Of a synthesizer. What a generator is told: chance and the scene.


def _paper(value: Callable[[Chance], Any]) -> Callable[..., Any]:
    """Of the paper's method alone."""
    return lambda chance, scene: value(chance) if scene.said.get("method") == "paper" and chance.once_in(2) else NOTHING


def _small(chance: Chance, scene: Scene) -> bool:
    """Whether the paper's method is drawn: the odometer integrates its directions in three dimensions at most."""
    return scene.columns <= 3 and chance.once_in(2)


def _public(name: str) -> Callable[..., Any]:
    return lambda _, scene: scene.public.get(name, NOTHING)


def _prior(chance: Chance, scene: Scene) -> Any:
    if not scene.tabular or "schema" not in scene.public or not chance.once_in(5):
        return NOTHING
    try:
        return scene.earlier()
    except CoveyError:  # of what is to be learned there is no release before
        return NOTHING


def _at_most_ones(chance: Chance, scene: Scene) -> Any:
    return [(list(range(scene.columns // 2)), chance.choice((0, 1, 2)))] if scene.kind == "bits" else NOTHING


SYNTHESIZER: dict[str, Callable[..., Any]] = {
    "epsilon": lambda chance, _: chance.choice((Fraction(1, 10), 0.5, 2, 8, 30, 90)),
    "delta": lambda chance, _: chance.choice((0, 0, 1e-9, Fraction(1, 10**6), 1e-5)),
    "method": lambda chance, scene: "paper" if scene.kind in ("bits", "body") and _small(chance, scene) else "regain",
    "schema": _public("schema"),
    "domain": _public("domain"),
    "body": _public("body"),
    "ordinal": lambda chance, scene: [0] if scene.kind == "codes" and chance.once_in(2) else NOTHING,
    "at_most": lambda chance, scene: _at_most_ones(chance, scene) if chance.once_in(3) else NOTHING,
    "triples": lambda chance, _: chance.choice((1, 3)) if chance.once_in(3) else NOTHING,
    "prior": _prior,
    "person": lambda _, scene: PERSON if scene.kind == "persons" else NOTHING,
    "rows_per_person": lambda chance, _: chance.choice((2, 3)) if chance.once_in(3) else NOTHING,
    "neighbours": lambda chance, _: chance.choice((REPLACE, ADD_REMOVE)),
    "certificate_share": lambda chance, _: chance.choice((0, Fraction(1, 3), 0.5)) if chance.once_in(3) else NOTHING,
    "composition": lambda chance, _: chance.choice(("sum", "gaussian")) if chance.once_in(2) else NOTHING,
    "kappa": _paper(lambda _: 0.5),
    "t": _paper(lambda chance: chance.choice((0, 1, 2))),
    "alpha": _paper(lambda _: 0.5),
    "b": _paper(lambda chance: chance.choice((1.0, 4.0))),
    "split": _paper(lambda _: (0.2, 0.4, 0.4)),
    "constants": _paper(lambda chance: chance.choice(("paper", "improved"))),
}
NOT_OF_SYNTHESIZER = {
    "seed": "given by the ride",
    "device": "a graphics card, which may not be here; it sees noisy measurements alone",
}
BODIES: tuple[Callable[[int], Any], ...] = (Ball, Simplex, lambda p: Box([0] * p, [1 + k for k in range(p)]))

# Of an order. What a generator is told: chance and the scene.

ORDER: dict[str, Callable[..., Any]] = {
    "epsilon": lambda chance, _: chance.choice((0.5, Fraction(2), 9, 60)),
    "delta": lambda chance, _: chance.choice((0, 1e-9, Fraction(1, 10**6))),
    "schema": lambda chance, scene: Path("schema.json") if "schema" in scene.public else None,
    "rows": lambda chance, _: chance.choice((1, 40)) if chance.once_in(3) else NOTHING,
    "person": lambda _, scene: PERSON if scene.kind == "persons" else NOTHING,
    "columns": lambda chance, scene: chance.some(scene.names, 2, 9) if chance.once_in(4) else NOTHING,
    "important": lambda chance, scene: _groups(chance, scene.names) if chance.once_in(3) else NOTHING,
    "target": lambda chance, scene: chance.choice(scene.names) if scene.names and chance.once_in(4) else NOTHING,
    "triples": lambda chance, _: chance.choice((0, 1, 3)) if chance.once_in(3) else NOTHING,
    "prior": _prior,
    "rows_per_person": lambda chance, scene: scene.said.get("rows_per_person", 2 if chance.once_in(3) else NOTHING),
    "neighbours": lambda chance, _: chance.choice((REPLACE, ADD_REMOVE)),
    "parquet": lambda chance, _: chance.once_in(3),
    "force": lambda chance, _: chance.once_in(3),
    "purpose": lambda chance, _: "a first look" if chance.once_in(3) else NOTHING,
    "learn": lambda chance, scene: True if "schema" not in scene.public or chance.once_in(5) else NOTHING,
    "learn_relations": lambda chance, _: True if chance.once_in(4) else NOTHING,
    "log": lambda chance, _: Path("log.json") if chance.once_in(3) else NOTHING,
    "about": lambda chance, _: About("A table", "Its owner", "A look") if chance.once_in(3) else NOTHING,
    "dialect": lambda chance, _: Dialect(**drawn(DIALECT, chance)) if chance.once_in(2) else NOTHING,
}
NOT_OF_ORDER = {
    "table": "given by the ride",
    "out": "given by the ride",
    "dataset": "given by the ride: every order is charged",
    "ledger": "given by the ride",
    "seed": "a seeded order is charged to nobody; the ride fixes the key of its noise instead",
    "confirm_large_epsilon": "given by the ride, or large budgets would be refused",
    "accept_misfits": "given by the ride: what does not fit is refused before the charge, and neighbours do not fit",
}
