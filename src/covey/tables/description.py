"""The public description of a release: a tree of tables under the unit that is protected.

One table is described by a schema file alone, a Frictionless Table Schema with "fields" at the top level. Several, or one with a
name and a path, are a Frictionless Data Package:

    {"resources": [
       {"name": "patients", "path": "patients.csv", "schema": {"fields": […], "primaryKey": "id"}},
       {"name": "visits", "path": "visits.csv",
        "schema": {"fields": […], "foreignKeys": [{"fields": "patient", "reference": {"resource": "patients", "fields": "id"}}]},
        "covey": {"at_most": 20, "order": "day"}}]}

Keys tell persons apart and link events to them; they are never encoded and never leave, and synthetic persons are numbered from
1. What "covey" of a resource may say is in `Parent`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as entry
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

from covey.engine.numbers.grid import Attribute, Category
from covey.errors import ParameterError, nearest, whole_number
from covey.paths import file_below, scheme_of
from covey.tables.attributes import Grid
from covey.tables.codec import Codec
from covey.tables.dialects import Dialect
from covey.tables.document import read_document, refuse_unknown, write_document
from covey.tables.fields import Field
from covey.tables.links import is_fine
from covey.tables.resources import BARE, FLAGS, UNNAMED, Parent, Resource, read_resources
from covey.tables.rules import Forbid, Rule
from covey.tables.schema import LessEqual, Schema, as_groups, focus_to_dict, read_rule, require_confirmed
from covey.tables.sources.databases import Database, is_database

OWN = ("at_most", "order", *FLAGS, "person")  # of a resource, not of the whole package


@dataclass(frozen=True)
class Description:
    """The public description of one table or several, such as persons and their events. The table of persons is the first."""

    tables: tuple[Resource, ...]
    rules: tuple[Rule, ...] = ()  # across tables, of fields named table.field
    notes: Mapping[str, Any] = entry(default_factory=dict, hash=False)  # what else a package file says
    alone: bool = False  # whether the units are those whom one file of events names: they have no file of their own
    important: tuple[tuple[str, ...], ...] = ()  # of several tables: fields and pairs that get more of a budget
    target: str | None = None  # of several tables: a field that others are to predict
    triples: int = 0  # of several tables: so many triples of attributes of a person are measured at most

    def __post_init__(self) -> None:
        names = [part.name.lower() for part in self.tables]  # they become names of files, on any disk
        for k, part in enumerate(self.tables):
            if names.index(names[k]) < k:
                raise ParameterError(f"two resources are named {part.name!r}. Give each its own name.")
            if k and (part.parent is None or part.parent.table.lower() not in names[:k]):
                raise part.wrong("refers to no table before it", "Every table but the first belongs to another one.")
            if self.rules and part.schema.learns:  # a rule could turn out impossible once the budget is spent
                raise part.wrong("has fields that are to be learned, beside rules across the tables", "Declare them.")
            if len(self.tables) > 1 and (part.schema.important or part.schema.target or part.schema.triples):
                raise part.wrong(
                    "names what matters most",
                    "Say it under covey of the package: important and target, as table.field, and triples.",
                )
        whole_number(self.triples, "triples", 0, "It counts triples of columns.")
        if self.tables[0].parent is not None:
            raise self.tables[0].wrong("comes first and refers to another one", "The first table is that of the unit.")
        for name in [*chain(*as_groups(self.important)), *([] if self.target is None else [self.target])]:
            part, field = self.find(name)
            own = part.parent
            if not field.measured or (own is not None and own.numbered and own.order == field.name):
                raise field.wrong("matters most and is not measured", "Name a column that is.")
        for rule in self.rules:
            self._check_rule(rule)
        if self.rules:
            _ = self.across

    def _check_rule(self, rule: Rule) -> None:
        """Refuse a rule across tables that could not be kept in every row."""
        places = [self._place(name) for name in rule.fields]
        below = {part.name: part for part, _ in places if part.parent is not None}
        if isinstance(rule, LessEqual):
            raise ParameterError(
                f"the rule {rule} orders a field of a person and one of an event, which is not supported yet. Give "
                f"{', '.join(below) or self.unit.name} the distance between them instead (the age at a visit, the days since "
                "birth), as a number that is not negative."
            )
        if not isinstance(rule, Forbid):
            raise ParameterError("rules across persons and events forbid or require: write forbid or requires.")
        of_unit = [part for part, _ in places if part.parent is None]
        if len(places) - len(of_unit) != 1 or not of_unit:
            tables = ", ".join(part.name for part in self.tables[1:])
            raise ParameterError(f"the rule {rule} must name one field of {tables}, and fields of {self.unit.name}.")
        for part, field in places:
            kept = "A rule across the tables needs an independent field."
            if part.parent is not None and field.name == part.parent.order:
                raise field.wrong("orders events and stands in a rule across the tables", "Name another field.")
            if field.bins is not None:
                raise field.wrong("has declared bins and stands in a rule across the tables", "Leave bins out.")
            tied = {*part.schema.links, *(link.base for link in part.schema.links.values())}
            tied |= {own.name for own in part.schema.fields if own.expected is not None}
            if is_fine(field) and Grid(field, part.schema.missing_values).unreadable:
                what = "holds numbers that mean missing or special, and stands in a rule across the tables"
                raise field.wrong(what, "Narrow its limits, so that they leave these numbers out.")
            if field.name in tied or any(field.name in own.fields for own in part.schema.rules):
                raise field.wrong("stands in another rule of its table, or follows a field", kept)

    @classmethod
    def of(cls, described: Schema | Description) -> Description:
        """A description as it is, and of a schema that of one table."""
        return described if isinstance(described, Description) else cls((Resource(UNNAMED, described),))

    # Tables and fields.

    @property
    def unit(self) -> Resource:
        """The table whose rows are protected: one for each unit."""
        return self.tables[0]

    @property
    def schema(self) -> Schema | None:
        """The schema of the only table; None of several."""
        return self.unit.schema if len(self.tables) == 1 else None

    def require_one_branch(self) -> None:
        """Refuse tables that can be described together and not released: other than one, or persons and one of events."""
        if self.schema is None:
            require_one_branch([part.name for part in self.tables[1:]])

    @property
    def events(self) -> Resource:
        """The table of events, where there are persons with one table of events and nothing else."""
        self.require_one_branch()
        return self.tables[1]

    @property
    def link(self) -> Parent:
        """How these events belong to their person."""
        found = self.events.parent
        assert found is not None  # nosec B101 # for the type checker; only the first table has none
        return found

    @cached_property
    def codecs(self) -> tuple[Codec, ...]:
        """The encoders of what is measured of each table."""
        return tuple(Codec(part.measured) for part in self.tables)

    @property
    def kinds(self) -> tuple[tuple[Attribute, ...], ...]:
        """What a fit measures of each table; units without attributes are all alike."""
        return tuple(
            (Category(1),) if part.bare else codec.kinds for part, codec in zip(self.tables, self.codecs, strict=True)
        )

    @property
    def given(self) -> tuple[Resource, ...]:
        """The tables that a caller gives: all that have a file of their own."""
        return self.tables[self.alone :]

    @property
    def fields(self) -> tuple[tuple[str, Field], ...]:
        """All fields, by the name under which they are confirmed: table.field where there are several tables."""
        several = len(self.tables) > 1
        return tuple(
            (f"{part.name}.{field.name}" if several else field.name, field)
            for part in self.tables
            if not part.bare
            for field in part.schema.fields
        )

    @property
    def joint(self) -> dict[str, Field]:
        """All fields as rules across the tables know them: under these names, without ties to others."""
        return {n: replace(own, name=n, follows=None, levels=None, confirmed=True) for n, own in self.fields}

    def find(self, name: str) -> tuple[Resource, Field]:
        """The table and the field that are called so: "ward", or "visits.ward" where several tables have one."""
        found = [(part, part.schema[own]) for part in self.tables for own in part.schema.names if own == name]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(f"{part.name}.{name}" for part, _ in found)
            raise ParameterError(f"several tables have a field {name!r}: write {listed}.")
        return self._place(name)

    def _place(self, name: str) -> tuple[Resource, Field]:
        """The table and the field that are named as table.field."""
        for part in self.tables:
            own = name.removeprefix(f"{part.name}.")
            if own != name and own in part.schema.names:
                return part, part.schema[own]
        known = [known for known, _ in self.fields]
        raise ParameterError(f"there is no field {name!r}. {nearest(name, known, 'fields')}")

    @property
    def matters(self) -> tuple[list[tuple[int, ...]], int | None]:
        """What is important and the target, as places among the measured columns of all tables; those that do not vary aside."""
        names = [
            f"{part.name}.{own}" for part in self.tables for own in ([""] if part.bare else Codec(part.measured).names)
        ]
        places = {name: k for k, name in enumerate(names)}

        def place(name: str) -> int | None:
            part, field = self.find(name)
            return places.get(f"{part.name}.{part.measured.home.get(field.name, field.name)}")

        groups = [tuple(dict.fromkeys(map(place, group))) for group in self.important]
        whole = [tuple(a for a in group if a is not None) for group in groups if None not in group]
        return whole, None if self.target is None else place(self.target)

    def focus(self, *groups: str | Sequence[str], target: str | None = None, triples: int | None = None) -> Description:
        """The description with these columns, pairs of columns and target as what matters most; what is not given stays."""
        if len(self.tables) == 1:
            return self.each(lambda part: part.schema.focus(*groups, target=target, triples=triples))
        important, count = as_groups(groups) or self.important, self.triples if triples is None else triples
        return replace(self, important=important, target=self.target if target is None else target, triples=count)

    def only(self, names: Sequence[str]) -> Description:
        """The description with these columns alone, and those that order events; with no names all of them."""
        if len(self.tables) == 1:
            return self.each(lambda part: part.schema.only(names))
        chosen = [self.find(name) for name in names]

        def kept(part: Resource) -> Schema:
            own = {field.name for other, field in chosen if other == part}
            if not own and part.parent is None:
                return BARE
            own |= set() if part.parent is None or part.parent.order is None else {part.parent.order}
            if not own:
                raise part.wrong("keeps no column", "Name one of its columns too.")
            return part.schema.only([name for name in part.schema.names if name in own])

        return self.with_schemas([kept(part) for part in self.tables]) if names else self

    def with_schemas(self, schemas: Sequence[Schema]) -> Description:
        """The same tables with other schemas; what matters most is forgotten where its columns are not there any more."""
        tables = tuple(replace(part, schema=schema) for part, schema in zip(self.tables, schemas, strict=True))
        known = {name for part in tables for own in part.schema.names for name in (own, f"{part.name}.{own}")}
        important = tuple(group for group in self.important if known.issuperset(group))
        return replace(self, tables=tables, important=important, target=self.target if self.target in known else None)

    def to_learn(self, dialect: Dialect | None = None) -> Description:
        """The description in which every field that is not confirmed will be learned with noise."""

        def learned(part: Resource) -> Schema:
            own = part.schema if part.bare else part.schema.to_learn(dialect=dialect)
            order = None if part.parent is None else part.parent.order
            return replace(own, fields=tuple(replace(f, required=f.required or f.name == order) for f in own.fields))

        return self.each(learned)

    @property
    def learns(self) -> bool:
        """Whether limits or categories of a field are to be learned."""
        return any(part.schema.learns for part in self.tables)

    @property
    def across(self) -> Schema | None:
        """The fields that rules across the tables name, as table.field, with these rules; None where there are none."""
        if not self.rules:
            return None
        joint, named = self.joint, dict.fromkeys(name for rule in self.rules for name in rule.fields)
        return Schema(tuple(joint[name] for name in named), self.unit.schema.missing_values, self.rules)

    # What is public.

    @property
    def drafted(self) -> bool:
        """Whether a field is not confirmed."""
        return any(not field.confirmed for _, field in self.fields)

    @property
    def warnings(self) -> dict[str, str]:
        """What to look at, by field, before it is confirmed."""
        return {name: field.warning for name, field in self.fields if field.warning is not None and not field.confirmed}

    def confirm(self, names: Iterable[str] | None = None) -> Description:
        """The description with these fields confirmed as public, or all that carry no warning."""
        if names is None:
            return self.each(lambda part: part.schema.confirm())
        chosen = [self.find(name) for name in names]
        return self.each(lambda own: own.schema.confirm([field.name for part, field in chosen if part == own]))

    def require_confirmed(self) -> None:
        """Refuse a private release while the description may speak of private data."""
        require_confirmed(dict(self.fields), "schema" if len(self.tables) == 1 else "package")

    def each(self, change: Any) -> Description:
        """The description with each table's schema as a function of the table makes it."""
        return replace(self, tables=tuple(replace(part, schema=change(part)) for part in self.tables))

    def read_as(self, dialect: Dialect) -> Description:
        """The description of tables that are written so: what the dialect says overrules what the schemas say."""
        return self.each(lambda part: part.schema.read_as(dialect))

    def plain(self) -> Description:
        """The description of the tables that covey writes, with the keys that link them alone."""
        needed = {part.parent.table for part in self.tables if part.parent is not None}

        def written(part: Resource) -> Resource:
            key = part.key if part.name in needed else None
            return replace(part, schema=part.schema.plain(), key=key, path=None, table=None)

        return replace(self, tables=tuple(map(written, self.tables)), alone=False)

    # Files.

    def places(self, file: Path) -> dict[str, Any]:
        """Where the tables lie, by name: in files beside the package file or below, or in a database, of which a table is named.

        The package may come from somebody else: a file elsewhere could hold people whose budget another ledger keeps.
        """
        found: dict[str, Any] = {}
        for part in self.given:
            if not isinstance(part.path, str) or not part.path:
                raise part.wrong("has no path", "Say in which file it lies, relative to the package file.")
            if is_database(part.path):
                if not isinstance(part.table, str) or not part.table:
                    raise part.wrong("lies in a database", 'Say which table it is, as "table" beside its path.')
                found[part.name] = _database(part, file.parent)
            elif part.table is not None:
                raise part.wrong("names a table, and its path is no database", "Leave the table out, or name one.")
            else:
                found[part.name] = file_below(file.parent, part.path, f"resource {part.name!r}")
        return found

    @classmethod
    def load(cls, path: str | Path) -> Description:
        """Read a schema or package file: YAML if its name ends in .yaml or .yml, else JSON."""
        return cls.from_dict(read_document(path), Path(path).parent)

    def save(self, path: str | Path) -> None:
        """Write the description as JSON."""
        write_document(path, self.to_dict(Path(path).parent))

    @classmethod
    def from_dict(cls, data: Any, folder: Path | None = None) -> Description:
        """Read a description from the contents of its file; `folder` has the tables that derived fields look up."""
        if not isinstance(data, Mapping) or "resources" not in data:
            return cls.of(Schema.from_dict(data, folder))
        listed = data["resources"]
        if not isinstance(listed, list) or not listed or not all(isinstance(one, Mapping) for one in listed):
            raise ParameterError('a package is an object with a list "resources".')
        notes = {name: value for name, value in data.items() if name != "resources"}
        top = notes.pop("covey", {})
        lists: list[Any] = [top.get(name, []) for name in ("rules", "important")] if isinstance(top, Mapping) else [0]
        if not all(isinstance(one, list) for one in lists):
            raise ParameterError(f'covey of a package is an object with lists "rules" and "important", got {top!r}.')
        if any(key in top for key in OWN):
            raise ParameterError("order and at_most belong to the resource of the events, not to the whole package.")
        refuse_unknown(top, ("rules", "important", "target", "triples"), "covey of the package")
        parts, alone = read_resources(listed, folder)
        matters = as_groups(lists[1]), top.get("target"), top.get("triples", 0)
        found = cls(tuple(parts), (), notes, alone, *matters)
        return replace(found, rules=tuple(read_rule(rule, found.joint) for rule in lists[0]))

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """The contents of the file, for one in this folder: one table without a place is a schema."""
        if len(self.tables) == 1 and self.unit.name == UNNAMED and not self.notes:
            return self.unit.schema.to_dict(folder)
        found = [part.to_dict(folder) for part in self.tables]
        for one, part in zip(found, self.tables, strict=True):
            if part.parent is not None:
                one["covey"] = part.parent.to_dict()
                to = next(other.key for other in self.tables if other.name == part.parent.table)
                link = {"fields": part.parent.column, "reference": {"resource": part.parent.table, "fields": to}}
                one["schema"]["foreignKeys"] = [link]
        if self.alone:
            found[1]["covey"]["person"] = self.events.link
            del found[1]["schema"]["foreignKeys"], found[0]
        own: dict[str, Any] = {"rules": [rule.to_dict() for rule in self.rules]} if self.rules else {}
        own |= focus_to_dict(self.important, self.target) | ({"triples": self.triples} if self.triples else {})
        return {**self.notes, **({"covey": own} if own else {}), "resources": found}


def _database(part: Resource, folder: Path) -> Database:
    """The database that a resource names: a server, or an SQLite file beside the package file or below."""
    path = part.path or ""
    if not scheme_of(path):
        return Database(str(file_below(folder, path, f"resource {part.name!r}")), table=part.table)
    found = Database(path, table=part.table)
    if found.path is not None:
        raise part.wrong(f"names a file by a URL, {path!r}", "Name the file itself, beside the package file.")
    return found


def require_one_branch(events: Sequence[str]) -> None:
    """Refuse trees that are described and not released: the only place that knows which are."""
    if len(events) != 1:
        raise ParameterError(
            f"a release has persons and one table of events, and here are {' and '.join(events) or 'none'}: several event tables "
            "are not supported yet. Keep the one that matters most. Or release each with its persons, as a package of its own: "
            "all of them are charged, and no synthetic person is in two."
        )


def is_package(path: Any, name: str | None = None) -> bool:
    """Whether a file describes a package: a JSON or YAML document with resources; `name` is how its owner calls it."""
    if not isinstance(path, str | Path) or Path(name or path).suffix.lower() not in (".json", ".yaml", ".yml"):
        return False
    data = read_document(path, name)
    return isinstance(data, Mapping) and "resources" in data
