"""A bundle of persons with events, checked without any true data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.errors import InputError
from covey.table.codec import Codec
from covey.table.columns import unguarded
from covey.table.package import Package, Resource
from covey.table.schema import Schema
from covey.table.sources import read_table

DESCRIBED = "datapackage.json"  # a bundle that has it holds linked tables


def released_schema(part: Resource) -> Schema:
    """The schema of a released table: with its key, a number without meaning."""
    return replace(part.schema, fields=(part.key_field, *(() if part.bare else part.schema.fields)))


def table_paths(folder: Path, package: Package) -> tuple[Path, Path]:
    """Where the two tables of a bundle lie."""
    found = [folder / str(part.path) for part in package.resources]
    for part, path in zip(package.resources, found, strict=True):
        if path.parent != folder or not path.is_file():
            raise InputError(f"{DESCRIBED} names {part.path!r} for {part.name}, which is no file of the bundle.")
    return found[0], found[1]


def verify_linked(folder: Path) -> tuple[int, tuple[Path, Path]]:
    """Check both tables against their schemas, and their link; the number of persons, and where the tables lie."""
    package = Package.load(folder / DESCRIBED)
    keys, tables = [], table_paths(folder, package)
    read: list[Mapping[str, Any]] = []
    for part, path in zip(package.resources, tables, strict=True):
        table = read_table(path)
        wrong = Codec(released_schema(part)).problems(table)
        if wrong:
            raise InputError(f"the synthetic rows of {part.name} break their schema: {wrong[0]}")
        known = {part.key, *part.schema.names}
        read.append({name if name in known else unguarded(name): own for name, own in table.columns.items()})
        keys.append(np.asarray(read[-1][part.key].cast(int)))
    persons, owners = keys
    if not np.array_equal(persons, np.arange(1, len(persons) + 1)):
        raise InputError(f"the persons of {package.persons.name} are not numbered from 1.")
    if len(owners) and not 1 <= owners.min() <= owners.max() <= len(persons):
        raise InputError(f"{package.events.name} has rows that belong to no person of {package.persons.name}.")
    if len(owners) and np.bincount(owners).max() > package.at_most:
        raise InputError(f"a person of {package.events.name} has more than {package.at_most} rows.")
    if package.across is not None and len(owners):
        wrong = Codec(package.across).problems(_joint(package, read, owners))
        if wrong:
            raise InputError(f"the synthetic tables break a rule across them: {wrong[0]}")
    return len(persons), tables


def _joint(package: Package, read: list[Mapping[str, Any]], owners: Integers) -> dict[str, Any]:
    """The columns that rules across the tables name, a row for every event."""
    found: dict[str, Any] = {}
    for name in [] if package.across is None else package.across.names:
        table, _, column = name.partition(".")
        mine = table == package.persons.name
        found[name] = read[0][column].gather((owners - 1).tolist()) if mine else read[1][column]
    return found
