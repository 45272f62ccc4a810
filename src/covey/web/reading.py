"""Files on their way into the workspace: one table, or persons and their events, each read once and described by a draft."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from covey.errors import CoveyError, ParameterError
from covey.table.column_drafts import Note
from covey.table.description import Description, is_package
from covey.table.dialects import Dialect
from covey.table.resources import BARE
from covey.table.sources import ARROW_SUFFIXES, read_table
from covey.web.drafts import ColumnDraft, drafts
from covey.workflow import draft

# What the reader of the command line takes from files.
SUFFIXES = (".csv", ".csv.gz", ".csv.zst", ".tsv", ".txt", ".xlsx", *ARROW_SUFFIXES)

File = tuple[Path, str]  # a private copy, and the name that its owner knows it by


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
        rows = read_table(files[name], whole, said.encoding or "utf-8", size_limit=4 * limit).rows
        tables.append(UploadedTable(files[name], name, rows))
        placed.append(replace(part, path=name, table=None, schema=own))
    package = replace(known, tables=(*known.tables[: known.alone], *placed))
    return ReadTables(tuple(tables), _columns(package), package)


def _columns(described: Description, notes: Sequence[Sequence[Note]] = ()) -> tuple[ColumnDraft, ...]:
    """The columns of all tables, the unit's first; notes are those of the tables that have a file."""
    told = {part.name: own for part, own in zip(described.given, notes, strict=bool(notes))}
    several = len(described.tables) > 1
    return tuple(
        replace(column, table=part.name if several else "")
        for part in described.tables
        if not part.bare
        for column in drafts(part.schema, told.get(part.name, ()))
    )


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
        found = Description.load(place)
        return found if found.schema is None else Description.of(found.schema)  # its file has another name here
    except CoveyError as error:
        raise with_file_names(error, {name: place}) from None
    finally:
        place.unlink()
