"""One table of a package: its schema without keys, the column that names the person, and how both stand in a file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from covey.errors import ParameterError
from covey.table.dialects import Dialect
from covey.table.document import spelt_like
from covey.table.fields import Field
from covey.table.schema import Schema

# What stands for the attributes of persons who have none: a column that is neither read, measured nor written.
BARE = Schema((Field("person", "boolean", required=True, default=False),))
LONGEST = 50  # letters of a table's name: even of four bytes each they fit a file's name
NAME = re.compile(rf"[\w-]{{1,{LONGEST}}}")
KEYS = ("primaryKey", "foreignKeys", "uniqueKeys")


@dataclass(frozen=True)
class Resource:
    """One table of a package: its name, where it lies, its schema without keys, and the column that names the person."""

    name: str
    schema: Schema
    key: str
    path: str | None = None
    key_type: str = "string"
    dropped: tuple[str, ...] = ()  # other key columns, which are neither encoded nor released
    table: str | None = None  # in the database that path names

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not NAME.fullmatch(self.name):
            raise ParameterError(
                f"a resource needs a name of letters, digits, _ and -, {LONGEST} at most: it becomes that of a file. Got "
                f"{str(self.name)[: 2 * LONGEST]!r}."
            )
        if self.path is not None and not isinstance(self.path, str):
            raise self.wrong("has a path that is not one file", "Name one file.")
        if self.schema.learns:
            raise self.wrong("has fields that are to be learned", "Declare their limits and categories.")
        if self.schema.important:
            raise self.wrong("names important columns", "A package has none yet: leave them out.")

    @property
    def bare(self) -> bool:
        """Whether its persons have no attributes."""
        same = replace(self.schema.plain(), missing_values=BARE.missing_values, drafted=BARE.drafted)
        return same == BARE

    @property
    def key_field(self) -> Field:
        """The key as it is released: a number without meaning."""
        return Field(name=self.key, type="integer", minimum=1, maximum=2**53, required=True, default=1)

    def wrong(self, what: str, way_out: str) -> ParameterError:
        """An error that names this resource."""
        return ParameterError(f"resource {self.name!r} {what}. {way_out}")


def require_schema(one: Mapping[str, Any]) -> None:
    """Refuse a resource without a list of fields, or with keys that are spelt otherwise."""
    schema = one.get("schema")
    if not isinstance(schema, Mapping) or not isinstance(schema.get("fields"), Sequence):
        raise ParameterError(f'resource {one.get("name")!r} needs a "schema" with a list of fields.')
    for word in spelt_like(schema, KEYS):
        if word not in KEYS:
            raise ParameterError(
                f"the schema of resource {one.get('name')!r} has {word!r}. Write one of {', '.join(KEYS)}."
            )


def _single(value: Any, what: str) -> str:
    """A key of one column, as Frictionless writes it: a name, or a list of one."""
    names = value if isinstance(value, list) else [value]
    if len(names) != 1 or not isinstance(names[0], str) or not names[0]:
        raise ParameterError(f"{what} must be one column, got {value!r}.")
    return names[0]


def reference_of(events: Mapping[str, Any], persons: Mapping[str, Any]) -> tuple[str, str]:
    """The column of events that names a person, and the key of persons that it refers to."""
    keys = events["schema"]["foreignKeys"]
    if not isinstance(keys, list) or len(keys) != 1 or not isinstance(keys[0], Mapping):
        raise ParameterError(f"events refer to one table, by one entry of foreignKeys, got {keys!r}.")
    reference = keys[0].get("reference")
    if not isinstance(reference, Mapping) or reference.get("resource") != persons.get("name"):
        raise ParameterError(f"foreignKeys of {events.get('name')!r} must refer to resource {persons.get('name')!r}.")
    key, to = _single(keys[0].get("fields"), "fields of foreignKeys"), _single(reference.get("fields"), "a reference")
    if "primaryKey" not in persons["schema"]:
        raise ParameterError(
            f"resource {persons.get('name')!r} needs a primaryKey, the column that tells persons apart."
        )
    if _single(persons["schema"]["primaryKey"], "primaryKey") != to:
        raise ParameterError(f"foreignKeys refer to {to!r}, which is not the primaryKey of {persons.get('name')!r}.")
    return key, to


def read_resource(one: Mapping[str, Any], key: str) -> Resource:
    """A resource without its keys."""
    data = {name: value for name, value in one["schema"].items() if name not in KEYS}
    data |= {name: one[name] for name in ("dialect", "encoding") if name in one}
    kinds = {f.get("name"): f.get("type", "string") for f in data["fields"] if isinstance(f, Mapping)}
    extra = one["schema"].get("primaryKey")
    dropped = tuple(n for n in ([extra] if isinstance(extra, str) else extra or []) if n != key)
    gone = {key, *dropped}
    data["fields"] = [f for f in data["fields"] if not (isinstance(f, Mapping) and f.get("name") in gone)]
    schema = _schema_of(data, one)
    kind, table = str(kinds.get(key, "string")), one.get("table")
    return Resource(str(one.get("name", "")), schema, key, one.get("path"), kind, dropped, table)


def _schema_of(data: Mapping[str, Any], one: Mapping[str, Any]) -> Schema:
    """The schema of a resource, or a refusal that says which one has nothing to synthesize; persons may have no attributes."""
    if not data["fields"] and "primaryKey" in one["schema"]:
        return replace(BARE, dialect=Dialect.from_dict(data))
    if not data["fields"]:
        raise ParameterError(
            f"resource {one.get('name')!r} has no column besides its keys: there is nothing to synthesize in it."
        )
    return Schema.from_dict(data)


def resource_dict(part: Resource) -> dict[str, Any]:
    """A resource as its file has it: keys are listed first among the fields, with their type alone."""
    schema = part.schema.to_dict()
    outside: dict[str, Any] = {name: schema.pop(name) for name in ("dialect", "encoding") if name in schema}
    schema["fields"] = [{"name": part.key, "type": part.key_type}, *([] if part.bare else schema["fields"])]
    place = ({"path": part.path} if part.path else {}) | ({"table": part.table} if part.table else {})
    return {"name": part.name, **place, **outside, "schema": schema}
