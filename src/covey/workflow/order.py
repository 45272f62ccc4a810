"""What a steward asks for: an order, which the command line, the app and exported scripts write down and carry out alike."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, Literal

from covey.engine.fractions import exact, said_or_written
from covey.engine.unit import REPLACE, Neighbours
from covey.errors import ArgumentError
from covey.release.contents import LARGE_EPSILON, NOTHING_SAID, About
from covey.tables.description import Description, is_package
from covey.tables.dialects import Dialect
from covey.tables.sources.databases import Database
from covey.workflow.preparing import PLAIN

MISFITS = Fraction(1, 20)  # of a column's cells: more than stray errors, less than a wrong unit or a wrong limit

# What orders of persons with events do not say, and why: whoever releases, plans or asks in a form reads it here.
OF_ONE_TABLE = {
    "person": "the package already names the column that identifies the person",
    "rows_per_person": "a package protects all rows of a person, however many there are",
    "group_size": (
        "anonymous groups of linked tables would protect nobody. Use covey release, which protects persons with all their events"
    ),
    "sensitive": "anonymous groups need a single table",
    "learn_relations": "relations are looked for between the columns of one table",
}


@dataclass(frozen=True)
class PrivateOrder:
    """A differentially private release, as a steward asks for it.

    With `learn`, limits and categories of all fields that the schema does not confirm are learned with noise; without a schema,
    those of all columns, of which names and types are then public.
    """

    table: Path | Database
    schema: Path | None
    out: Path
    epsilon: Fraction | float | None
    delta: Fraction | float = 0
    dataset: str | None = None
    rows: int | None = None
    person: str | None = None
    columns: tuple[str, ...] = ()  # to keep; all, if none is named
    important: tuple[tuple[str, ...], ...] = ()
    target: str | None = None
    triples: int | None = None
    prior: Path | None = None
    rows_per_person: int = 1
    neighbours: Neighbours = REPLACE
    parquet: bool = False
    confirm_large_epsilon: bool = False
    accept_misfits: Fraction | float = MISFITS
    seed: int | None = None
    log: Path | None = None
    dialect: Dialect = PLAIN
    ledger: Path | None = None
    force: bool = False
    purpose: str = "release"
    learn: bool = False
    learn_relations: bool = False
    about: About = NOTHING_SAID


@dataclass(frozen=True)
class AnonymousOrder:
    """An anonymous release: groups of at least `group_size` rows, not differentially private."""

    table: Path | Database
    schema: Path | None
    out: Path
    group_size: int
    method: Literal["tree", "paper", "mdav", "best"] = "tree"
    sensitive: tuple[str, ...] = ()
    rows: int | None = None
    parquet: bool = False
    seed: int | None = None
    log: Path | None = None
    dialect: Dialect = PLAIN
    force: bool = False


def not_taken(described: Description | None) -> Mapping[str, str]:
    """What an order of these tables does not say, and why."""
    return {} if described is None or described.schema is not None else OF_ONE_TABLE


def said(order: PrivateOrder | AnonymousOrder) -> dict[str, Any]:
    """What an order says beside what holds where nothing is said, by name."""
    own = {field.name: (getattr(order, field.name), field.default) for field in fields(order)}
    return {name: value for name, (value, plain) in own.items() if plain is MISSING or value != plain}


def as_words(order: PrivateOrder | AnonymousOrder) -> dict[str, Any]:
    """What an order says, in types that JSON has: for whoever carries it out elsewhere."""
    plain = {name: value.to_dict() if isinstance(value, About) else value for name, value in said(order).items()}
    return {name: str(value) if isinstance(value, Path | Fraction) else value for name, value in plain.items()}


def from_words(words: Mapping[str, Any]) -> PrivateOrder | AnonymousOrder:
    """The order that was written down so."""
    read: dict[str, Callable[[Any], Any]] = dict.fromkeys(("table", "schema", "out", "ledger"), Path)
    numbers = ("epsilon", "delta", "accept_misfits")
    read |= {name: partial(said_or_written, name=name) for name in numbers} | {"about": About.from_dict}
    read |= {"important": lambda pairs: tuple(map(tuple, pairs)), "sensitive": tuple, "columns": tuple}
    own = {name: read[name](value) if name in read and value is not None else value for name, value in words.items()}
    return PrivateOrder(**own) if "epsilon" in own else AnonymousOrder(**own)


def described(table: Path | Database, schema: Path | None) -> tuple[Description | None, Any]:
    """What is known of tables, and where they lie: a schema beside one table, or a package file that says both.

    None where neither is given: then all is to be learned.
    """
    if isinstance(table, Path) and is_package(table):
        if schema is not None:
            raise ArgumentError("a package already describes its tables. Leave out ", "schema", ".")
        found = Description.load(table)
        places = found.places(table)
        return found, next(iter(places.values())) if found.schema is not None else places
    if schema is None:
        return None, table
    found = Description.load(schema)
    if found.schema is None:
        raise ArgumentError("", "schema", f" describes several tables: give {schema} in place of the table.")
    return found, table


def requested_budget(order: PrivateOrder) -> tuple[Fraction, Fraction]:
    """ε and δ of an order, exactly; a weak guarantee needs a word of its own."""
    if order.epsilon is None:
        raise ArgumentError("give ", "epsilon", ", the privacy budget of this release.")
    epsilon, delta = exact(order.epsilon, "epsilon"), exact(order.delta, "delta")
    if epsilon > LARGE_EPSILON and not order.confirm_large_epsilon:
        weak = f"epsilon = {float(epsilon):g} is above {LARGE_EPSILON}, a weak guarantee."
        raise ArgumentError(f"{weak} Say ", "confirm_large_epsilon", " to go on.")
    return epsilon, delta
