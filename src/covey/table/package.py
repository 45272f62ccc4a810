"""The public description of persons with events: a Frictionless Data Package of two resources, a schema for each.

    {"resources": [
       {"name": "patients", "path": "patients.csv", "schema": {"fields": […], "primaryKey": "id"}},
       {"name": "visits", "path": "visits.csv",
        "schema": {"fields": […], "foreignKeys": [{"fields": "patient", "reference": {"resource": "patients", "fields": "id"}}]},
        "covey": {"at_most": 20, "order": "day"}}]}

Keys tell persons apart and link events to them; they are never encoded and never leave, and synthetic persons are numbered from
1. `at_most` is the public number of events that a person has at most: further ones, in order, are cut. `order` names the field
that events of a person are sorted by; with `numbered` it counts them from 1, and is written anew instead of measured.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from dataclasses import field as entry
from itertools import pairwise
from pathlib import Path
from typing import Any

from covey.core.tables.linked import Timing, position_starts
from covey.errors import ParameterError, whole_number
from covey.table.document import read_document, refuse_unknown, write_document
from covey.table.fields import ORDERED_TYPES, Field
from covey.table.persons import without
from covey.table.resources import Resource, read_resource, reference_of, require_schema, resource_dict
from covey.table.rules import Forbid, LessEqual, Requires, Rule, read_rule, shown_rule
from covey.table.schema import Schema

MOST_EVENTS = 50  # of a person: weights of pairs of events are then good to a quarter of a per cent
OWN = ("at_most", "order", "numbered", "positions", "gaps", "person")
PERSONS = "persons"  # the name of a table of persons that was made from one file
POSITION, GAP = "position", "gap"  # attributes of events that are measured beside the table's own, and not written


@dataclass(frozen=True)
class Package:
    """Persons and their events: two resources, how events are ordered, and how many a person has at most."""

    persons: Resource
    events: Resource
    at_most: int
    order: str | None = None
    numbered: bool = False
    rules: tuple[Rule, ...] = ()  # across both tables, of fields named table.field
    notes: Mapping[str, Any] = entry(default_factory=dict, hash=False)
    positions: bool = False  # whether the place of an event among its person's is measured with its attributes
    gaps: bool = False  # whether the time since the event before is
    alone: bool = False  # whether persons are those whom one file of events names

    def __post_init__(self) -> None:
        self._check_rules()
        self._check_timing()
        if self.persons.name.lower() == self.events.name.lower():  # they become names of files, on any disk
            raise ParameterError(f"two resources are named {self.persons.name!r}. Give each its own name.")
        whole_number(self.at_most, "at_most", 1, "It counts the events of a person.")
        if self.at_most > MOST_EVENTS:
            raise ParameterError(f"at_most may be {MOST_EVENTS} at most, got {self.at_most}.")
        if self.order is None:
            if self.numbered:
                raise ParameterError("numbered speaks of the order column: name it as order.")
            return
        field = self.events.schema[self.order]
        if field.type not in ORDERED_TYPES or not field.measured:
            raise field.wrong("orders events and is no number, date or time", "Name another one as order.")
        if self.numbered and field.type != "integer":
            raise field.wrong("numbers events and is no integer", "Leave out numbered.")
        if self.numbered and field.confirmed and not (field.minimum <= 1 and field.maximum >= self.at_most):  # type: ignore[operator]
            raise field.wrong(f"numbers events and does not reach from 1 to {self.at_most}", "Widen its bounds.")
        if field.confirmed and not field.required and not self.numbered:
            raise field.wrong("orders events and may be missing", "Say that it is required.")
        if self.order in self.events.schema.links:
            raise field.wrong("orders events and follows another field", "Name that one as order.")
        _ = self.event_schema  # rules about a numbered order column are refused

    def _check_rules(self) -> None:
        """Refuse rules across the tables that could not be kept in every row."""
        for rule in self.rules:
            places = [self._place(name) for name in rule.fields]
            sides = [part for part, _ in places]
            if isinstance(rule, LessEqual):
                raise ParameterError(
                    f"the rule {shown_rule(rule)} orders a field of a person and one of an event, which is not there yet. Give "
                    f"{self.events.name} the distance between them instead (the age at a visit, the days since birth), as a "
                    "number that is not negative."
                )
            if not isinstance(rule, Forbid | Requires):
                raise ParameterError("rules across persons and events forbid or require: write forbid or requires.")
            if sides.count(self.events) != 1 or sides.count(self.persons) == 0:
                raise ParameterError(
                    f"the rule {shown_rule(rule)} must name one field of {self.events.name}, and fields of "
                    f"{self.persons.name}."
                )
            for part, field in places:
                kept = "Rules across the tables need a field that stands by itself."
                if part == self.events and field.name == self.order:
                    raise field.wrong("orders events and stands in a rule across the tables", "Name another field.")
                if field.bins is not None:
                    raise field.wrong("has declared bins and stands in a rule across the tables", "Leave bins out.")
                tied = {*part.schema.links, *(link.base for link in part.schema.links.values())}
                if field.name in tied or any(field.name in own.fields for own in part.schema.rules):
                    raise field.wrong("stands in another rule of its table, or follows a field", kept)
        if self.rules:
            _ = self.across

    def _check_timing(self) -> None:
        """Refuse places and times between events where there is nothing to tell them by."""
        for name, on in ((POSITION, self.positions), (GAP, self.gaps)):
            if not isinstance(on, bool):
                raise ParameterError(f"{name}s must be true or false, got {on!r}.")
            if on and (self.order is None or self.at_most == 1):
                raise ParameterError(
                    f"{name}s need an order of the events, and more than one of a person. Name it as order."
                )
            if on and name in self.events.schema.names:
                raise ParameterError(f"{self.events.name} has a column {name!r}: rename it, or leave {name}s out.")
        if self.gaps and self.order is not None:
            field = self.events.schema[self.order]
            whole = field.type == "date" or (field.type == "integer" and not field.special)
            if self.numbered or not whole or field.bins is not None:
                raise field.wrong("is no date or whole number without declared bins", "Leave gaps out.")

    @property
    def model_schema(self) -> Schema:
        """What is measured of events: their columns, and where wanted the place and the time since the event before."""
        more: list[Field] = []
        if self.positions:
            starts = [int(start) for start in position_starts(self.at_most)]
            names = [f"{a + 1}" if b == a + 1 else f"{a + 1}-{b}" for a, b in pairwise(starts)]
            more.append(Field(POSITION, "string", enum=(*names, f"{starts[-1] + 1}+"), required=True, ordered=True))
        if self.gaps and self.order is not None:
            axis = self.events.schema[self.order].axis
            more.append(Field(GAP, "integer", 0, axis.high - axis.low))
        own = self.event_schema
        return replace(own, fields=(*own.fields, *more)) if more else own

    @property
    def timing(self) -> Timing:
        """The attributes of events that say when, by their places among the measured ones."""
        names = [field.name for field in self.model_schema.encoded]
        wanted = {self.order: not self.numbered, POSITION: self.positions, GAP: self.gaps}
        return Timing(*(names.index(name) if on and name in names else None for name, on in wanted.items()))

    def _place(self, name: str) -> tuple[Resource, Field]:
        """The table and the field that a rule names as table.field."""
        for part in self.resources:
            own = name.removeprefix(f"{part.name}.")
            if own != name and own in part.schema.names:
                return part, part.schema[own]
        raise ParameterError(f"a rule names {name!r}, which is no field. Write table.field.")

    @property
    def across(self) -> Schema | None:
        """The fields that rules across the tables name, as table.field, with these rules; None where there are none."""
        if not self.rules:
            return None
        named = dict.fromkeys(name for rule in self.rules for name in rule.fields)
        fields = tuple(joint_field(name, self._place(name)[1]) for name in named)
        return Schema(fields, self.persons.schema.missing_values, self.rules)

    @property
    def resources(self) -> tuple[Resource, Resource]:
        """Both tables, persons first."""
        return self.persons, self.events

    @property
    def event_schema(self) -> Schema:
        """What is synthesized of events: without an order column that is written anew."""
        schema = self.events.schema
        return without(schema, self.order) if self.numbered and self.order is not None else schema

    @property
    def fields(self) -> tuple[tuple[str, Field], ...]:
        """All fields of both tables, by the name under which they are confirmed: table.field."""
        return tuple(
            (f"{part.name}.{field.name}", field)
            for part in self.resources
            if not part.bare
            for field in part.schema.fields
        )

    @property
    def drafted(self) -> bool:
        """Whether a field is not confirmed."""
        return any(not field.confirmed for _, field in self.fields)

    @property
    def warnings(self) -> dict[str, str]:
        """What to look at, by field, before it is confirmed."""
        return {f"{part.name}.{name}": text for part in self.resources for name, text in part.schema.warnings.items()}

    def confirm(self, names: Iterable[str] | None = None) -> Package:
        """The package with these fields (table.field) confirmed as public, or all that carry no warning."""
        chosen = None if names is None else list(names)
        known = dict(self.fields)
        for name in chosen or ():
            if name not in known:
                raise ParameterError(f"the package has no field {name!r}. It has {', '.join(known)}.")

        def confirmed(part: Resource) -> Resource:
            own = (
                None
                if chosen is None
                else [n.removeprefix(f"{part.name}.") for n in chosen if n.startswith(f"{part.name}.")]
            )
            return replace(part, schema=part.schema.confirm(own))

        return replace(self, persons=confirmed(self.persons), events=confirmed(self.events))

    def require_confirmed(self) -> None:
        """Refuse a private release while the package may describe private data."""
        left = [name for name, field in self.fields if not field.confirmed]
        if left:
            raise ParameterError(
                f"the package is not confirmed as public for {', '.join(map(repr, left))}. Check that limits and categories "
                f"are public knowledge, then confirm by name: covey confirm PACKAGE {shlex.join(left)}"
            )

    def plain(self) -> Package:
        """The package of the tables that covey writes."""
        parts = (
            replace(part, schema=part.schema.plain(), path=f"{part.name}.csv", table=None) for part in self.resources
        )
        persons, events = parts
        return replace(self, persons=persons, events=events, alone=False)

    # Files.

    @classmethod
    def load(cls, path: str | Path) -> Package:
        """Read a package file: YAML if its name ends in .yaml or .yml, else JSON."""
        return cls.from_dict(read_document(path))

    def save(self, path: str | Path) -> None:
        """Write the package as JSON."""
        write_document(path, self.to_dict())

    @classmethod
    def from_dict(cls, data: Any) -> Package:
        """Read a package from the contents of its file."""
        listed = data.get("resources") if isinstance(data, Mapping) else None
        if not isinstance(listed, list) or not all(isinstance(one, Mapping) for one in listed):
            raise ParameterError('a package is an object with a list "resources".')
        if len(listed) == 1:
            return cls._alone(data, listed[0])
        if len(listed) != 2:
            more = " Several event tables are not supported yet." if len(listed) > 2 else ""
            raise ParameterError(f"a package has two resources, persons and events, and here are {len(listed)}.{more}")
        for one in listed:
            require_schema(one)
        linked = [one for one in listed if one["schema"].get("foreignKeys")]
        if len(linked) == 2:
            raise ParameterError(
                "each table refers to the other, in a circle. Events refer to persons, not the other way."
            )
        if not linked:
            raise ParameterError("no resource has foreignKeys: say which column of the events names the person.")
        events = linked[0]
        persons = listed[1 - listed.index(events)]
        key, to = reference_of(events, persons)
        own = events.get("covey", {})
        if not isinstance(own, Mapping):
            raise ParameterError(f"covey of resource {events.get('name')!r} must be an object, got {own!r}.")
        refuse_unknown(own, OWN[:-1], f"covey of resource {events.get('name')!r}")
        if persons.get("covey"):
            raise ParameterError("order and at_most belong to the resource of the events.")
        if "at_most" not in own:
            raise ParameterError(
                "say under covey of the events' resource how many a person has at_most, from public knowledge."
            )
        notes = {name: value for name, value in data.items() if name != "resources"}
        numbered = own.get("numbered", False)
        if not isinstance(numbered, bool):
            raise ParameterError(f"numbered must be true or false, got {numbered!r}.")
        parts = read_resource(persons, to), read_resource(events, key)
        top = notes.pop("covey", {})
        if not isinstance(top, Mapping) or not isinstance(top.get("rules", []), list):
            raise ParameterError(f'covey of a package is an object with a list "rules", got {top!r}.')
        if any(key in top for key in OWN):
            raise ParameterError("order and at_most belong to the resource of the events, not to the whole package.")
        refuse_unknown(top, ("rules",), "covey of the package")
        joint = {
            f"{part.name}.{f.name}": joint_field(f"{part.name}.{f.name}", f)
            for part in parts
            for f in part.schema.fields
        }
        rules = tuple(read_rule(rule, joint) for rule in top.get("rules", []))
        timed = own.get("positions", False), own.get("gaps", False)
        return cls(*parts, own["at_most"], own.get("order"), numbered, rules, notes, *timed)

    @classmethod
    def _alone(cls, data: Mapping[str, Any], one: Mapping[str, Any]) -> Package:
        """A package of one file, in which a column says whose each row is: two resources, of persons without attributes."""
        require_schema(one)
        own = one.get("covey", {})
        person = own.get("person") if isinstance(own, Mapping) else None
        if not isinstance(person, str) or not person:
            raise ParameterError(
                "a package of one resource says whose its rows are: name the column as person, under covey of the resource."
            )
        if one["schema"].get("foreignKeys") or one["schema"].get("primaryKey"):
            raise ParameterError("a package of one resource has a person instead of keys: leave the keys out.")
        named = {"fields": [{"name": "id", "type": "string"}], "primaryKey": "id"}
        beside = persons_beside(str(one.get("name", "")))
        link = [{"fields": person, "reference": {"resource": beside, "fields": "id"}}]
        rest = {name: value for name, value in own.items() if name != "person"}
        events = {**one, "schema": {**one["schema"], "foreignKeys": link}, "covey": rest}
        made = cls.from_dict({**data, "resources": [{"name": beside, "schema": named}, events]})
        return replace(made, alone=True)

    def to_dict(self) -> dict[str, Any]:
        """The contents of the package's file."""
        persons, events = (resource_dict(part) for part in self.resources)
        persons["schema"]["primaryKey"] = self.persons.key
        reference = {"resource": self.persons.name, "fields": self.persons.key}
        events["schema"]["foreignKeys"] = [{"fields": self.events.key, "reference": reference}]
        own: dict[str, Any] = {"at_most": self.at_most}
        own |= {} if self.order is None else {"order": self.order}
        flags = {"numbered": self.numbered, "positions": self.positions, "gaps": self.gaps}
        events["covey"] = own | {name: True for name, on in flags.items() if on}
        if self.alone:
            events["covey"]["person"] = self.events.key
            del events["schema"]["foreignKeys"]
            return {**self.notes, "resources": [events]}
        rules = {"covey": {"rules": [rule.to_dict() for rule in self.rules]}} if self.rules else {}
        return {**self.notes, **rules, "resources": [persons, events]}


def persons_beside(events: str) -> str:
    """The name of the table of persons that is made from one of events."""
    return PERSONS if events.lower() != PERSONS else "people"


def joint_field(name: str, field: Field) -> Field:
    """A field as rules across the tables know it: under the name of its table, without ties to others."""
    return replace(field, name=name, follows=None, levels=None, confirmed=True)


def is_package(path: Any, name: str | None = None) -> bool:
    """Whether a file describes a package: a JSON or YAML document with resources; `name` is how its owner calls it."""
    if not isinstance(path, str | Path) or Path(name or path).suffix.lower() not in (".json", ".yaml", ".yml"):
        return False
    if not Path(path).is_file():
        return False
    data = read_document(path, name)
    return isinstance(data, Mapping) and "resources" in data


__all__ = ["MOST_EVENTS", "Package", "Resource", "is_package", "joint_field", "persons_beside"]
