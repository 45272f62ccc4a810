"""Tables on their way into the public description: their files read once, and each column with what was typed about it.

What a steward types is kept even where it is no field yet, so that a refusal never throws work away; and each type of
column remembers its own limits and categories, so that looking at another type costs nothing. Where there are several tables,
rules name fields as table.field. One whose fields are all of one table is a rule of that table.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import field as entry
from pathlib import Path
from typing import Any

from covey.desk.web.forms import read_field, shown, whole
from covey.desk.web.security import Form
from covey.errors import CoveyError, ParameterError
from covey.tables.column_drafts import Note, may_identify
from covey.tables.description import Description, is_package
from covey.tables.dialects import Dialect
from covey.tables.document import read_document
from covey.tables.fields import ORDERED_TYPES, Field
from covey.tables.resources import BARE, FLAGS, Resource
from covey.tables.rules import Rule
from covey.tables.schema import Schema, spelled_as
from covey.tables.sources import ARROW_SUFFIXES, read_table
from covey.workflow import draft

# What the reader of the command line takes from files.
SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".txt", ".xlsx", *ARROW_SUFFIXES)
# What a card's form holds besides its type.
TYPED = ("minimum", "maximum", "bins", "decimals", "other", "enum", "special", "missing")
STATES = ("look", "open", "done", "out")  # of columns, those that need a person first

File = tuple[Path, str]  # a private copy, and the name that its owner knows it by


@dataclass(frozen=True)
class ColumnDraft:
    """A column as its owner has described it so far.

    `reason` says what the draft goes by: it comes from true data, and is for the column's owner alone. `drafted` is the field
    before anything was changed, `typed` what the form holds while that is no field, `problem` why, and `others` the field for
    each type that was looked at.
    """

    field: Field
    drafted: Field
    kept: bool = True
    reason: str = ""
    typed: Mapping[str, str] = entry(default_factory=dict)
    problem: str = ""
    others: Mapping[str, Field] = entry(default_factory=dict)
    table: str = ""  # of linked ones, which it belongs to

    @property
    def called(self) -> str:
        """The column's name, of linked tables with its table's."""
        return f"{self.table}.{self.field.name}" if self.table else self.field.name

    @property
    def drafts(self) -> bool:
        """Whether it is kept, and nobody has confirmed it."""
        return self.kept and not self.field.confirmed

    @property
    def guarded(self) -> bool:
        """Whether a draft warns of what the column would publish: then it is confirmed alone, and by its name."""
        return self.field.warning is not None and not self.field.confirmed

    @property
    def state(self) -> str:
        """What is to be done about it: one of STATES."""
        if not self.kept or self.field.confirmed:
            return "done" if self.kept else "out"
        return "look" if self.guarded or self.problem else "open"

    def require_sound(self) -> None:
        """Refuse a column whose form holds what cannot be."""
        if self.problem:
            raise ParameterError(f"{self.called}: {self.problem}")

    @property
    def doubt(self) -> str:
        """What to look at; like the reason, for the column's owner alone."""
        return self.field.warning or self.drafted.warning or ""

    @property
    def personal(self) -> bool:
        """Whether the draft warns that the column may point to persons: then it is never taken along with others."""
        return may_identify(self.drafted.warning)

    @property
    def learnable(self) -> bool:
        """Whether one word for many columns may have it learned with noise: not where it may point to persons."""
        return self.drafts and self.field.measured and not self.personal

    def shows(self, name: str) -> str:
        """What stands in a field of the form."""
        if self.typed:
            return self.typed.get(name, "")
        if name in ("enum", "special"):
            return "\n".join(getattr(self.field, name) or ())
        value = getattr(self.field, name)
        return "" if isinstance(value, tuple) else shown(value)

    @property
    def may_be_missing(self) -> bool:
        """Whether the box for gaps is ticked."""
        return "missing" in self.typed if self.typed else not self.field.required


def with_warning(column: ColumnDraft, field: Field) -> Field:
    """A field with the draft's warning as far as it holds: other limits than the drafted ones answer it, each for itself."""
    drafted = column.drafted
    if drafted.warning is None or column.personal or field.type not in ORDERED_TYPES:
        return replace(field, warning=drafted.warning)
    ends = [("smallest", field.minimum, drafted.minimum), ("largest", field.maximum, drafted.maximum)]
    left = [end for end, now, before in ends if now is None or now == before]
    one = "its {} value is still the one from your data: confirm it by name if anyone could know it"
    return replace(field, warning=drafted.warning if len(left) == 2 else one.format(*left) if left else None)


def edited(column: ColumnDraft, form: Form) -> ColumnDraft:
    """The column as the form has it. Where that is no field, what was typed is kept, and why it is none."""
    type_ = form.get("type", column.field.type)
    if type_ != column.field.type:
        return _turned(column, form, type_)
    try:
        field = read_field(form, column.field)
    except CoveyError as error:
        return refused(column, form, error)
    return replace(column, field=with_warning(column, field), typed={}, problem="")


def refused(column: ColumnDraft, form: Form, error: CoveyError) -> ColumnDraft:
    """The column with what was typed, and why that cannot be."""
    typed = {name: form.get(name) for name in TYPED if form.has(name)}
    return replace(column, field=replace(column.field, confirmed=False), typed=typed, problem=str(error))


def _turned(column: ColumnDraft, form: Form, type_: str) -> ColumnDraft:
    """Another type of column, with the limits or categories it had when it was last of that type."""
    try:
        before = read_field(form, column.field, column.field.type)
    except CoveyError:
        before = replace(column.field, confirmed=False)
    fresh = read_field(form, column.field)  # refuses a type that does not exist
    others = {**column.others, before.type: before}
    return replace(column, field=with_warning(column, others.get(type_, fresh)), others=others, typed={}, problem="")


def confirmed(column: ColumnDraft, form: Form) -> ColumnDraft:
    """The column with its owner's word that what stands there is public knowledge."""
    column.require_sound()
    if not form.has("public"):
        raise ParameterError("tick the box first. Only you can say that this is public knowledge.")
    if column.guarded and form.get("own_name") != column.field.name:
        raise ParameterError(
            f"type {column.field.name!r}, the column's name, to publish what stands here; or change it, or leave it out."
        )
    return published(column)


def published(column: ColumnDraft) -> ColumnDraft:
    """The column as public knowledge; nobody is told to list what may be names of persons."""
    if column.personal and column.field.type == "string" and not column.field.labels:
        raise ParameterError(
            f"{column.called} lists no categories. If it holds names or numbers of persons, leave it out, because a list would "
            "be public."
        )
    return replace(column, field=replace(column.field, confirmed=True, warning=None))


def to_learn(column: ColumnDraft, said: Dialect) -> ColumnDraft:
    """The column with limits or categories that are learned with noise: then only its name and kind are public.

    Its cells are read as they were drafted, or as was said when the table was given.
    """
    others = {**column.others, column.field.type: replace(column.field, confirmed=False)}
    learned = column.field.to_learn()
    field = spelled_as(learned, said) if learned.spelling.is_plain else learned
    return replace(column, field=field, others=others, typed={}, problem="")


def reopened(column: ColumnDraft, kept: bool = True) -> ColumnDraft:
    """The column as a draft again."""
    if column.field.learn:
        return replace(column, field=column.others.get(column.field.type, column.drafted), kept=kept)
    computed = column.field.derived is not None and column.drafted.derived is None
    field = column.others.get(column.field.type, column.drafted) if computed else column.field
    return replace(column, field=with_warning(column, replace(field, confirmed=False)), kept=kept)


# What can be done to many columns at once, and to which of them.
ACTIONS: Mapping[str, Callable[[ColumnDraft], bool]] = {
    "drop": lambda column: column.kept,
    "keep": lambda column: not column.kept,
    "reopen": lambda column: column.kept and column.field.confirmed,
    "learn": lambda column: column.learnable,
}


def acted(column: ColumnDraft, action: str, said: Dialect) -> ColumnDraft:
    """The column after one of ACTIONS."""
    return to_learn(column, said) if action == "learn" else reopened(column, action != "drop")


def describe(start: Description, columns: Sequence[ColumnDraft], rules: Sequence[Rule]) -> Description:
    """The description as far as it has come; `start` has its names, keys, order, limits and dialects."""
    several = len(start.tables) > 1
    own = {part.name: tuple(r for r in rules if not several or _tables(r) == {part.name}) for part in start.tables}
    parts = [_described(part, columns, own[part.name], several) for part in start.tables]
    if parts[-1].bare:
        of = f" of {parts[-1].name}" if several else ""
        raise ParameterError(f"every column{of} is left out. Keep at least one.")
    across = tuple(rule for rule in rules if several and len(_tables(rule)) > 1)
    return replace(start, tables=tuple(parts), rules=across)


def _described(part: Resource, columns: Sequence[ColumnDraft], rules: tuple[Rule, ...], several: bool) -> Resource:
    """One table with its kept columns and its own rules; persons may have no attributes left."""
    if part.bare:
        return part
    kept = [c.field for c in columns if c.kept and c.table == (part.name if several else "")]
    names, before = {field.name for field in kept}, part.schema
    # What follows a column that is left out is measured by itself.
    fields = tuple(replace(f, follows=f.follows if f.follows and f.follows.base in names else None) for f in kept)
    if not fields:
        if rules:
            raise ParameterError(f"a rule uses {part.name}, which has no column left. Remove the rule first.")
        return replace(part, schema=replace(BARE, dialect=before.dialect))
    own = tuple(rule.renamed(lambda name: name.removeprefix(f"{part.name}.")) for rule in rules) if several else rules
    return replace(part, schema=Schema(fields, before.missing_values, own, before.dialect))


def _tables(rule: Rule) -> set[str]:
    """The tables whose fields a rule names; names of tables have no dots."""
    return {name.partition(".")[0] for name in rule.fields}


def rules_of(package: Description) -> tuple[Rule, ...]:
    """All rules, about fields as the description names them."""
    if package.schema is not None:
        return package.schema.rules
    own = [rule.renamed(f"{part.name}.{{}}".format) for part in package.tables for rule in part.schema.rules]
    return (*own, *package.rules)


def joint_schema(package: Description) -> Schema:
    """The fields as rules name them; of several tables without ties to others."""
    if package.schema is not None:
        return package.schema
    return Schema(tuple(package.joint.values()), package.events.schema.missing_values)


def read_link(form: Form, link: Description) -> Description:
    """What the tables are called and how events hang together, as a form says it."""
    ticked: dict[str, Any] = {name: form.has(name) for name in FLAGS}
    most = whole(form.get("at_most"), "the number of events")
    persons, events = (
        replace(part, name=form.get(field, part.name).strip())
        for field, part in (("persons", link.unit), ("events", link.events))
    )
    parent = replace(link.link, table=persons.name, at_most=most, order=form.get("order") or None, **ticked)
    return replace(link, tables=(persons, replace(events, parent=parent)), rules=())


def link_form(link: Description) -> dict[str, str]:
    """The form that says how events hang together now: what `read_link` reads."""
    ticked = {name: "on" for name in FLAGS if getattr(link.link, name)}
    names = {"persons": link.unit.name, "events": link.events.name}
    return names | {"at_most": str(link.link.at_most), "order": link.link.order or ""} | ticked


@dataclass(frozen=True)
class UploadedTable:
    """A table in the private folder, and the name that its owner knows it by."""

    path: Path
    name: str
    rows: int


def remove(tables: Iterable[UploadedTable]) -> None:
    """Remove private copies, as far as they are there."""
    for table in tables:
        table.path.unlink(missing_ok=True)


@dataclass(frozen=True)
class ReadTables:
    """Tables that were read, their columns, how they are described, and what was assumed about their files."""

    tables: tuple[UploadedTable, ...]
    columns: tuple[ColumnDraft, ...]
    described: Description
    assumed: str = ""


NOTHING = ReadTables((), (), Description.of(BARE))  # before a table is taken


def read_files(files: Mapping[str, File], said: Dialect, whose: str, folder: Path, limit: int) -> ReadTables:
    """Move files to their place in the workspace and read them; what cannot be read is removed, in words of its owner.

    They go by the names of the form's fields: table, events and schema. `said` is what the steward says of how they are
    written, and `whose` names the column that says whose each event is.
    """
    given = [files[name] for name in ("table", "events") if name in files]
    endings = [_ending(*file) for file in given]
    known = _load_schema(*files["schema"]) if "schema" in files else None
    places = [folder / f"table-{secrets.token_hex(4)}{ending}" for ending in endings]
    by_name = {name: place for place, (_, name) in zip(places, given, strict=True)}
    try:
        for (path, _), place in zip(given, places, strict=True):
            os.replace(path, place)
        if len(by_name) < len(given):
            raise ParameterError(
                f"both files are called {given[0][1]!r}. Rename one: a table goes by the name of its file."
            )
        if known is None:
            return _drafted(by_name, said, whose, limit)
        return _as_described(by_name, said, whose, known, limit)
    except BaseException as error:
        for place in places:
            place.unlink(missing_ok=True)
        if isinstance(error, CoveyError):
            raise with_file_names(error, by_name) from None
        raise


def _ending(path: Path, name: str) -> str:
    """The ending of a table's name, by which it is read."""
    found = next((ending for ending in SUFFIXES if name.lower().endswith(ending)), None)
    package = False
    with suppress(CoveyError):  # what cannot be read describes nothing
        package = found is None and is_package(path, name)
    if package:
        raise ParameterError(
            f"{name!r} describes tables and holds none. Choose the table of persons, under “Persons and their events” that of "
            "the events, and this file as the schema, under “More choices”."
        )
    if found is None:
        raise ParameterError(
            f"{name!r} is not a table covey can read. Choose a .csv, .tsv, .xlsx, .parquet or .arrow file; "
            "text may be compressed (.gz, .zst)."
        )
    return found


def _drafted(files: Mapping[str, Path], said: Dialect, whose: str, limit: int) -> ReadTables:
    found = draft(files, said, 4 * limit, whose or None)
    tables = [UploadedTable(files[name], name, one.table.rows) for name, one in zip(files, found.found, strict=True)]
    notes = zip(files, found.by_table, strict=True)
    read_so = {name: "; ".join(note.choice for note in own if note.field is None) for name, own in notes}
    assumed = "; ".join(f"{name}: {words}" for name, words in read_so.items() if words)
    return ReadTables(tuple(tables), _columns(found.description, found.by_table), found.description, assumed)


def _as_described(files: Mapping[str, Path], said: Dialect, whose: str, known: Description, limit: int) -> ReadTables:
    """Tables that were described before: by the names that a package gives their files, or persons first.

    A schema that is whole names the columns that must be there; an unfinished one is finished later.
    """
    link = None if known.schema is not None else known.events.link
    if whose not in ("", link):
        named = "no column" if link is None else repr(link)
        raise ParameterError(
            f"the schema already names {named} as the column that identifies the person. Leave this empty."
        )
    parts = known.given
    if len(parts) != len(files):
        both = "persons and events in two tables: give both" if len(parts) == 2 else "one table: give that alone"
        raise ParameterError(f"the schema describes {both}.")
    names = [part.path or "" for part in parts]
    ordered = names if set(names) == set(files) else list(files)
    placed, tables = [], []
    for part, name in zip(parts, ordered, strict=True):
        own = part.schema  # persons without attributes have no cells to spell
        own = replace(own, dialect=said.of_file.over(own.dialect)) if part.bare else own.read_as(said)
        whole = own if not part.bare and all(field.confirmed for field in own.fields) else None
        rows = read_table(files[name], whole, dialect=own.dialect, size_limit=4 * limit).rows
        tables.append(UploadedTable(files[name], name, rows))
        placed.append(replace(part, path=name, table=None, schema=own))
    package = replace(known, tables=(*known.tables[: known.alone], *placed))
    return ReadTables(tuple(tables), _columns(package), package)


def _columns(described: Description, notes: Sequence[Sequence[Note]] = ()) -> tuple[ColumnDraft, ...]:
    """The columns of all tables, the unit's first, and of each last those that its draft has left out, with the reason.

    Notes are those of the tables that have a file.
    """
    told = {part.name: own for part, own in zip(described.given, notes, strict=bool(notes))}
    columns: list[ColumnDraft] = []
    for part in described.tables:
        if not part.bare:
            table = part.name if len(described.tables) > 1 else ""
            reasons = {note.field: note.reason for note in told.get(part.name, ()) if note.field is not None}
            for field in part.schema.fields:
                columns.append(ColumnDraft(field, field, reason=reasons.pop(field.name, ""), table=table))
            blank = [Field(name, "string", confirmed=False, warning=reason) for name, reason in reasons.items()]
            columns += [ColumnDraft(field, field, kept=False, table=table) for field in blank]
    return tuple(columns)


def with_file_names(error: CoveyError, places: Mapping[str, Path]) -> CoveyError:
    """A refusal with the names that their owner knows instead of paths of ours."""
    for name, place in places.items():
        error.args = (str(error).replace(str(place), name),)
    return error


def _load_schema(path: Path, name: str) -> Description:
    """A schema or a package that its owner knows by another name."""
    place = path.with_suffix(".yaml" if name.lower().endswith((".yaml", ".yml")) else ".json")
    os.replace(path, place)
    try:
        found = Description.from_dict(read_document(place))  # without a folder: beside it lie tables
        return found if found.schema is None else Description.of(found.schema)  # its file has another name here
    except CoveyError as error:
        raise with_file_names(error, {name: place}) from None
    finally:
        place.unlink()
