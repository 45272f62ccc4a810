"""One table of a description: its schema without keys, where it lies, and how its rows belong to rows of another table."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from covey.engine.codes.events import Timing, position_starts
from covey.errors import ParameterError, whole_number
from covey.tables.dialects import Dialect
from covey.tables.document import refuse_unknown, spelt_like
from covey.tables.fields import ORDERED_TYPES, Field
from covey.tables.schema import Schema

# What stands for the attributes of persons who have none: a column that is neither read, measured nor written.
BARE = Schema((Field("person", "boolean", required=True, default=False),))
PERSONS = "persons"  # the name of a table of persons that was made from one file
UNNAMED = "synthetic"  # the one table of a schema file, which needs no name: its rows are synthetic.csv
LONGEST = 50  # letters of a table's name: even of four bytes each they fit a file's name
NAME = re.compile(rf"[\w-]{{1,{LONGEST}}}")
KEYS = ("primaryKey", "foreignKeys", "uniqueKeys")
MOST_EVENTS = 50  # of a person: weights of pairs of events are then good to a quarter of a per cent
FLAGS = ("numbered", "positions", "gaps")
POSITION, GAP = "position", "gap"  # attributes of events that are measured beside the table's own, and not written


@dataclass(frozen=True)
class Parent:
    """How the rows of a table belong to those of another: events to their person."""

    table: str  # the other table's name
    column: str  # the column here that names the row there
    at_most: int  # how many rows belong to one row there at most: public, and further ones, in order, are cut
    order: str | None = None  # the field by which they are sorted
    numbered: bool = False  # whether it counts them from 1, and is written anew instead of measured
    positions: bool = False  # whether the place of a row among those that belong together is measured as well
    gaps: bool = False  # whether the time since the row before is

    def __post_init__(self) -> None:
        whole_number(self.at_most, "at_most of the events", 1, "It counts the events of a person.")
        if self.at_most > MOST_EVENTS:
            raise ParameterError(f"at_most may be {MOST_EVENTS} at most, got {self.at_most}.")
        for name in FLAGS:
            if not isinstance(getattr(self, name), bool):
                raise ParameterError(f"{name} must be true or false, got {getattr(self, name)!r}.")
        if self.numbered and self.order is None:
            raise ParameterError("numbered describes the order column. Name that column as order.")
        for name in ("positions", "gaps"):
            if getattr(self, name) and (self.order is None or self.at_most == 1):
                raise ParameterError(f"{name} need an order of events, and several of a person. Name it as order.")

    def check(self, schema: Schema, table: str) -> None:
        """Refuse an order, places or times between rows that the fields of the table do not allow."""
        for name, on in ((POSITION, self.positions), (GAP, self.gaps)):
            if on and name in schema.names:
                raise ParameterError(f"{table} has a column {name!r}: rename it, or leave {name}s out.")
        if self.order is None:
            return
        field = schema[self.order]
        if self.gaps:
            whole = field.type in ("date", "integer") and not field.special
            if self.numbered or not whole or field.bins is not None:
                raise field.wrong("is no date or whole number without declared bins", "Leave gaps out.")
        if field.type not in ORDERED_TYPES or not field.measured:
            raise field.wrong("orders events and is no number, date or time", "Name another one as order.")
        if self.numbered and field.learn:
            raise field.wrong("numbers events and is to be learned", "Declare its bounds.")
        if self.numbered and field.type != "integer":
            raise field.wrong("numbers events and is no integer", "Leave out numbered.")
        if self.numbered and field.confirmed and not (field.minimum <= 1 and field.maximum >= self.at_most):  # type: ignore[operator]
            raise field.wrong(f"numbers events and does not reach from 1 to {self.at_most}", "Widen its bounds.")
        if field.confirmed and not field.required and not self.numbered:
            raise field.wrong("orders events and may be missing", "Say that it is required.")
        if self.order in schema.links:
            raise field.wrong("orders events and follows another field", "Name that one as order.")

    def to_dict(self) -> dict[str, Any]:
        """What stands under "covey" of the table's resource."""
        own: dict[str, Any] = {"at_most": self.at_most} | ({} if self.order is None else {"order": self.order})
        return own | {name: True for name in FLAGS if getattr(self, name)}


@dataclass(frozen=True)
class Resource:
    """One table: its name, its schema without keys, its own key where other tables refer to it, its parent, and where it lies."""

    name: str
    schema: Schema
    key: str | None = None
    parent: Parent | None = None
    path: str | None = None
    table: str | None = None  # in the database that path names
    key_type: str = "string"  # of the column that names the person

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ParameterError(
                f"a resource needs a name of letters, digits, _ and -, {LONGEST} at most: it becomes the name of a file. Got "
                f"{str(self.name)[: 2 * LONGEST]!r}."
            )
        if self.path is not None and not isinstance(self.path, str):
            raise self.wrong("has a path that is not one file", "Name one file.")
        if self.parent is not None:
            self.parent.check(self.schema, self.name)
            if self.parent.numbered:
                self._check_numbered(self.parent.order)

    def _check_numbered(self, order: str | None) -> None:
        """Refuse a column that is counted anew where nothing else is left, or where a rule speaks of it."""
        if len(self.schema.fields) == 1:
            raise self.wrong(f"has no column besides {order!r}, which numbers its rows", "Add one, or drop numbered.")
        if any(order in rule.fields for rule in self.schema.rules):
            raise self.wrong(f"has a rule on {order!r}, which numbers its rows", "Drop the rule, or numbered.")

    @property
    def link(self) -> str:
        """The column by which its rows are linked: its own key, or the one that names the row of its parent."""
        found = self.key if self.parent is None else self.parent.column
        if found is None:
            raise self.wrong("has no key", "Name the column that tells its rows apart, as primaryKey.")
        return found

    @cached_property
    def bare(self) -> bool:
        """Whether its persons have no attributes."""
        return replace(self.schema.plain(), missing_values=BARE.missing_values) == BARE

    @cached_property
    def written(self) -> Schema:
        """What is synthesized of it: without an order column that is written anew."""
        own = self.parent
        return self.schema.without(own.order) if own is not None and own.numbered and own.order else self.schema

    @cached_property
    def measured(self) -> Schema:
        """What is measured of it: its columns, and where wanted the place of a row and the time since the row before."""
        own, more = self.parent, list[Field]()
        if own is not None and own.positions:
            starts = [int(start) for start in position_starts(own.at_most)]
            names = [f"{a + 1}" if b == a + 1 else f"{a + 1}-{b}" for a, b in pairwise(starts)]
            more.append(Field(POSITION, "string", enum=(*names, f"{starts[-1] + 1}+"), required=True, ordered=True))
        if own is not None and own.gaps and own.order is not None:
            axis = self.schema[own.order].axis
            more.append(Field(GAP, "integer", 0, axis.high - axis.low))
        return replace(self.written, fields=(*self.written.fields, *more)) if more else self.written

    @property
    def timing(self) -> Timing:
        """The attributes that say when, by their places among the measured ones."""
        own, names = self.parent, [field.name for field in self.measured.coded.encoded]
        if own is None:
            return Timing()
        wanted = {own.order: not own.numbered, POSITION: own.positions, GAP: own.gaps}
        return Timing(*(names.index(name) if on and name in names else None for name, on in wanted.items()))

    @property
    def key_field(self) -> Field:
        """The column that links its rows, as it is released: a number without meaning."""
        return Field(name=self.link, type="integer", minimum=1, maximum=2**53, required=True, default=1)

    @property
    def released(self) -> Schema:
        """The schema of its released rows: with the column that links them."""
        if self.key is None and self.parent is None:
            return self.schema
        return replace(self.schema, fields=(self.key_field, *(() if self.bare else self.schema.fields)))

    def wrong(self, what: str, way_out: str) -> ParameterError:
        """An error that names this resource."""
        return ParameterError(f"resource {self.name!r} {what}. {way_out}")

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """A resource as its file has it: keys are listed first among the fields, with their type alone."""
        schema = self.schema.to_dict(folder)
        outside: dict[str, Any] = {name: schema.pop(name) for name in ("dialect", "encoding") if name in schema}
        keys = [(self.parent.column, self.key_type)] if self.parent else []
        keys += [(self.key, "string" if self.parent else self.key_type)] if self.key is not None else []
        rest = [] if self.bare else schema["fields"]
        schema["fields"] = [*({"name": name, "type": kind} for name, kind in keys), *rest]
        schema |= {} if self.key is None else {"primaryKey": self.key}
        place = ({"path": self.path} if self.path else {}) | ({"table": self.table} if self.table else {})
        return {"name": self.name, **place, **outside, "schema": schema}


def _require_schema(one: Mapping[str, Any]) -> None:
    """Refuse a resource without a list of fields, or with keys that are spelt otherwise."""
    schema = one.get("schema")
    if not isinstance(schema, Mapping) or not isinstance(schema.get("fields"), Sequence):
        raise ParameterError(f'resource {one.get("name")!r} needs a "schema" with a list of fields.')
    for word in spelt_like(schema, KEYS):
        if word not in KEYS:
            raise ParameterError(f"resource {one.get('name')!r} has {word!r}. Write one of {', '.join(KEYS)}.")


def _single(value: Any, what: str) -> str:
    """A key of one column, as Frictionless writes it: a name, or a list of one."""
    names = value if isinstance(value, list) else [value]
    if len(names) != 1 or not isinstance(names[0], str) or not names[0]:
        raise ParameterError(f"{what} must be one column, got {value!r}.")
    return names[0]


def _reference(one: Mapping[str, Any]) -> tuple[str, Any, str] | None:
    """The column of a resource that names a row of another, that one's name, and its key; None where it refers to none."""
    keys = one["schema"].get("foreignKeys")
    if not keys:
        return None
    if not isinstance(keys, list) or len(keys) != 1 or not isinstance(keys[0], Mapping):
        raise ParameterError(f"events refer to one table, by one entry of foreignKeys, got {keys!r}.")
    reference = keys[0].get("reference")
    if not isinstance(reference, Mapping):
        raise ParameterError(f"foreignKeys of {one.get('name')!r} must refer to another resource, got {reference!r}.")
    to = _single(reference.get("fields"), "a reference")
    return _single(keys[0].get("fields"), "fields of foreignKeys"), reference.get("resource"), to


def _read_resource(one: Mapping[str, Any], folder: Path | None) -> Resource:
    """A resource without its keys; what it says under "covey" of rows that belong together needs foreignKeys."""
    reference, own = _reference(one), one.get("covey", {})
    if not isinstance(own, Mapping):
        raise ParameterError(f"covey of resource {one.get('name')!r} must be an object, got {own!r}.")
    if reference is None and own:
        raise ParameterError("order and at_most belong to the resource of the events.")
    refuse_unknown(own, ("at_most", "order", *FLAGS), f"covey of resource {one.get('name')!r}")
    if reference is not None and "at_most" not in own:
        raise ParameterError("give at_most (covey of the events): how many events a person has at most, publicly.")
    keys = one["schema"].get("primaryKey", [])
    keys = [keys] if isinstance(keys, str) else list(keys)
    link = [] if reference is None else [reference[0]]
    data = {name: value for name, value in one["schema"].items() if name not in KEYS}
    data |= {name: one[name] for name in ("dialect", "encoding") if name in one}
    kinds = {f.get("name"): f.get("type", "string") for f in data["fields"] if isinstance(f, Mapping)}
    data["fields"] = [f for f in data["fields"] if not (isinstance(f, Mapping) and f.get("name") in (*keys, *link))]
    parent = None if reference is None else Parent(str(reference[1]), reference[0], **own)
    key = next((name for name in keys if name not in link), None)
    kind = str(kinds.get((*link, *keys, None)[0], "string"))
    return Resource(
        str(one.get("name", "")), _schema_of(data, one, folder), key, parent, one.get("path"), one.get("table"), kind
    )


def _schema_of(data: Mapping[str, Any], one: Mapping[str, Any], folder: Path | None) -> Schema:
    """The schema of a resource, or a refusal that says which one has nothing to synthesize; persons may have no attributes."""
    if not data["fields"] and "primaryKey" in one["schema"] and not one["schema"].get("foreignKeys"):
        return replace(BARE, dialect=Dialect.from_dict(data))
    if not data["fields"]:
        raise ParameterError(f"resource {one.get('name')!r} has no column besides its keys: nothing to synthesize.")
    return Schema.from_dict(data, folder)


def read_resources(listed: list[Any], folder: Path | None) -> tuple[list[Resource], bool]:
    """All resources, the unit's first, and whether the units are those whom the only table of events names."""
    for one in listed:
        _require_schema(one)
    own = listed[0].get("covey", {})
    alone = len(listed) == 1 and isinstance(own, Mapping) and "person" in own
    ordered = _with_persons(listed[0]) if alone else _in_order(listed)
    return [_read_resource(one, folder) for one in ordered], alone


def _in_order(listed: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Resources with the unit's first, and each of the others after the one that it refers to."""
    names = [one.get("name") for one in listed]
    to = [_reference(one) for one in listed]
    roots = [one for one, reference in zip(listed, to, strict=True) if reference is None]
    if not roots:
        raise ParameterError("each table refers to the other, in a circle. Events refer to persons, not vice versa.")
    if len(roots) > 1:
        raise ParameterError(
            "no resource has foreignKeys. Say which column of the events identifies the person."
            if len(roots) == len(listed)
            else f"{', '.join(repr(one.get('name')) for one in roots)} refer to no table: only that of the unit does so."
        )
    for one, reference in zip(listed, to, strict=True):
        if reference is None:
            continue
        if reference[1] not in names:
            others = " or ".join(repr(name) for name in names if name != one.get("name"))
            raise ParameterError(f"foreignKeys of {one.get('name')!r} must refer to resource {others}.")
        there = listed[names.index(reference[1])]["schema"]
        if "primaryKey" not in there:
            raise ParameterError(
                f"resource {reference[1]!r} needs a primaryKey, the column that identifies the person."
            )
        if _single(there["primaryKey"], "primaryKey") != reference[2]:
            raise ParameterError(f"foreignKeys refer to {reference[2]!r}, not the primaryKey of {reference[1]!r}.")
    found, left = roots, [one for one in listed if one is not roots[0]]
    while left:
        known = [one.get("name") for one in found]
        ready = [one for one in left if (_reference(one) or ("", "", ""))[1] in known]
        if not ready:
            circle = ", ".join(repr(one.get("name")) for one in left)
            raise ParameterError(f"{circle} refer to each other, in a circle.")
        found, left = [*found, *ready], [one for one in left if one not in ready]
    return found


def _with_persons(one: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """One file, in which a column says whose each row is, as two resources, of persons without attributes and of events."""
    own = one["covey"]
    person = own["person"]
    if not isinstance(person, str) or not person:
        raise ParameterError(f"person must name the column that identifies the person, got {person!r}.")
    if one["schema"].get("foreignKeys") or one["schema"].get("primaryKey"):
        raise ParameterError("a package with one resource has person instead of keys. Leave the keys out.")
    beside = persons_beside(str(one.get("name", "")))
    link = [{"fields": person, "reference": {"resource": beside, "fields": "id"}}]
    rest = {name: value for name, value in own.items() if name != "person"}
    persons = {"name": beside, "schema": {"fields": [{"name": "id", "type": "string"}], "primaryKey": "id"}}
    return [persons, {**one, "schema": {**one["schema"], "foreignKeys": link}, "covey": rest}]


def persons_beside(events: str) -> str:
    """The name of the table of persons that is made from one of events."""
    return PERSONS if events.lower() != PERSONS else "people"
