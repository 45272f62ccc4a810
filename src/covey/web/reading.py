"""Files on their way into the workspace: one table, or persons and their events, each read once and described by a draft."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from covey.errors import CoveyError, ParameterError
from covey.table.column_drafts import Note
from covey.table.description import Description, is_package
from covey.table.dialects import Dialect
from covey.table.resources import Resource
from covey.table.schema import Schema
from covey.table.sources import ARROW_SUFFIXES, check_encoding, read_table
from covey.web.drafts import ColumnDraft, drafts
from covey.workflow import draft

SUFFIXES = (
    ".csv",
    ".csv.gz",
    ".csv.zst",
    ".tsv",
    ".txt",
    ".xlsx",
    *ARROW_SUFFIXES,
)  # what the reader of the command line takes from files

File = tuple[Path, str]  # a private copy, and the name that its owner knows it by


@dataclass(frozen=True)
class GivenFiles:
    """What a steward gave at the first step; `whose` names the column that says whose each event is."""

    table: File
    encoding: str = "utf-8"
    schema: File | None = None
    events: File | None = None
    whose: str = ""
    said: Dialect = Dialect()  # noqa: RUF009 # frozen; marks of numbers and the format of dates


@dataclass(frozen=True)
class UploadedTable:
    """A table in the private folder, and the name that its owner knows it by."""

    path: Path
    name: str
    rows: int

    @property
    def file(self) -> File:
        """Where it lies, and its name."""
        return self.path, self.name


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


def read_files(given: GivenFiles, folder: Path, limit: int) -> ReadTables:
    """Move files to their place in the workspace and read them; what cannot be read is removed, in words of its owner."""
    check_encoding(given.encoding)
    files = [given.table, *([given.events] if given.events else [])]
    endings = [_ending(*file) for file in files]
    known = None if given.schema is None else _load_schema(*given.schema)
    places = [folder / f"table-{secrets.token_hex(4)}{ending}" for ending in endings]
    for (path, _), place in zip(files, places, strict=True):
        os.replace(path, place)
    named = [(place, name) for place, (_, name) in zip(places, files, strict=True)]
    try:
        by_name = {name: place for place, name in named}
        if len(by_name) < len(named):
            raise ParameterError(
                f"both files are called {named[0][1]!r}. Rename one: a table goes by the name of its file."
            )
        return _drafted(given, by_name, limit) if known is None else _as_described(given, by_name, known, limit)
    except BaseException as error:
        for place in places:
            place.unlink(missing_ok=True)
        if isinstance(error, CoveyError):
            raise with_file_names(error, *named) from None
        raise


def _ending(path: Path, name: str) -> str:
    """The ending of a table's name, by which it is read."""
    found = next((ending for ending in SUFFIXES if name.lower().endswith(ending)), None)
    if found is None and _is_package(path, name):
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


def _drafted(given: GivenFiles, files: dict[str, Path], limit: int) -> ReadTables:
    """Tables that are described by a draft."""
    found = draft(files, _written(given), 4 * limit, given.whose or None)
    tables = [UploadedTable(files[name], name, one.table.rows) for name, one in zip(files, found.found, strict=True)]
    assumed = [_assumed(name, own) for name, own in zip(files, found.by_table, strict=True)]
    columns = columns_of(found.description, found.by_table)
    return ReadTables(tuple(tables), columns, found.description, "; ".join(filter(None, assumed)))


def _as_described(given: GivenFiles, files: dict[str, Path], known: Description, limit: int) -> ReadTables:
    """Tables that were described before: by the names that a package gives their files, or persons first.

    A schema that is whole names the columns that must be there; an unfinished one is finished later.
    """
    link = None if known.schema is not None else known.events.link
    if given.whose not in ("", link):
        named = "no column" if link is None else repr(link)
        raise ParameterError(
            f"the schema already names {named} as the column that identifies the person. Leave this empty."
        )
    parts = known.given
    if len(parts) != len(files):
        both = "persons and events in two tables: give both" if len(parts) == 2 else "one table: give that alone"
        raise ParameterError(f"the schema describes {both}.")
    names = [part.path for part in parts]
    ordered = [name for name in names if name in files] if set(names) == set(files) else list(files)
    placed = [
        replace(part, path=name, table=None, schema=_read_as(part, _written(given)))
        for part, name in zip(parts, ordered, strict=True)
    ]
    tables = []
    for part, name in zip(placed, ordered, strict=True):
        whole = part.schema if not part.bare and all(field.confirmed for field in part.schema.fields) else None
        rows = read_table(files[name], whole, given.encoding, size_limit=4 * limit).rows
        tables.append(UploadedTable(files[name], name, rows))
    package = replace(known, tables=(*known.tables[: known.alone], *placed))
    return ReadTables(tuple(tables), columns_of(package), package)


def _read_as(part: Resource, dialect: Dialect) -> Schema:
    """The schema of a table that is written so; persons without attributes have no cells to spell."""
    own = part.schema
    return replace(own, dialect=dialect.of_file.over(own.dialect)) if part.bare else own.read_as(dialect)


def columns_of(described: Description, notes: Sequence[Sequence[Note]] = ()) -> tuple[ColumnDraft, ...]:
    """The columns of all tables, the unit's first; notes are those of the tables that have a file."""
    told = {part.name: own for part, own in zip(described.given, notes, strict=bool(notes))}
    several = len(described.tables) > 1
    return tuple(
        replace(column, table=part.name if several else "")
        for part in described.tables
        if not part.bare
        for column in drafts(part.schema, told.get(part.name, ()))
    )


def _written(given: GivenFiles) -> Dialect:
    return given.said.over(Dialect(encoding=None if given.encoding == "utf-8" else given.encoding))


def _assumed(name: str, notes: Sequence[Note]) -> str:
    """How a file was read, where it is not plain."""
    said = "; ".join(note.choice for note in notes if note.field is None)
    return f"{name}: {said}" if said else ""


def with_file_names(error: CoveyError, *files: File) -> CoveyError:
    """A refusal with the names that their owner knows instead of paths of ours."""
    for path, name in files:
        error.args = (str(error).replace(str(path), name),)
    return error


def _is_package(path: Path, name: str) -> bool:
    """Whether an uploaded file describes tables; what cannot be read does not."""
    try:
        return is_package(path, name)
    except CoveyError:
        return False


def _load_schema(path: Path, name: str) -> Description:
    """A schema or a package that its owner knows by another name."""
    place = path.with_suffix(".yaml" if name.lower().endswith((".yaml", ".yml")) else ".json")
    os.replace(path, place)
    try:
        found = Description.load(place)
        return found if found.schema is None else Description.of(found.schema)  # its file has another name here
    except CoveyError as error:
        raise with_file_names(error, (place, name)) from None
    finally:
        place.unlink()
