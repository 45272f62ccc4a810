"""The schema: drafted, confirmed, and held against the table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from covey.cli.family import counted, example, main, say
from covey.cli.options import (
    dialect_options,
    force_option,
    json_option,
    person_option,
    query_option,
    source_of,
    table_option,
)
from covey.errors import ParameterError


@main.command(
    epilog=example(
        "covey init patients.csv -o schema.json",
        "covey init patients.csv visits.csv -o package.json",
        "covey init visits.csv --person patient -o package.json",
    )
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE [EVENTS]")
@click.option("-o", "--out", "out", type=Path, required=True, help="Where to write the draft.")
@click.option(
    "--person",
    metavar="COLUMN",
    help="Draft a package: this column of the events, or of the one table, says whose a row is.",
)
@click.option(
    "--import", "metadata", type=Path, help="Start from SmartNoise YAML or SDV JSON metadata instead of the data."
)
@table_option
@query_option
@dialect_options
@force_option
@json_option
def init(  # click passes each option by its name
    tables: tuple[str, ...],
    out: Path,
    person: str | None,
    metadata: Path | None,
    relation: str | None,
    sql: str | None,
    dialect: Any,
    force: bool,
    as_json: bool,
) -> None:
    """Draft a schema from TABLE. The draft describes private data: check it, then confirm it.

    With a second table, of events that belong to the persons of the first, draft a package of both; with --person, of one table
    that has several rows of a person.
    """
    from dataclasses import asdict

    from covey.release.places import check_new_file
    from covey.workflow import draft, imported

    if len(tables) > 1 or person is not None:
        if metadata is not None or relation is not None or sql is not None:
            raise ParameterError("a package is drafted from files: leave out --import, --table and --query.")
        _init_package(tables, person, out, (dialect, force), as_json)
        return
    table = tables[0]
    source = source_of(table, relation, sql)
    check_new_file(out, source, force)
    notes: tuple[Any, ...] = ()
    if metadata is not None:
        schema = imported(metadata).read_as(dialect)
    else:
        drafted = draft(source, dialect)
        schema, notes = drafted.schema, drafted.notes
    schema.save(out)
    names = [field.name for field in schema.fields]
    if not as_json:
        for note in notes:
            click.echo(str(note), err=True)
    say(
        as_json,
        {"schema": str(out), "fields": names, "draft": True, "notes": [asdict(note) for note in notes]},
        f"draft with {counted(len(names), 'field')} → {out}\nIt describes private data. Make each field's values public "
        f"knowledge (ranges, categories), then: covey confirm {out} FIELD … or, for what carries no warning, --all",
    )


def _init_package(
    tables: tuple[str, ...], person: str | None, out: Path, reading: tuple[Any, bool], as_json: bool
) -> None:
    """Draft a package of persons and events, or of events alone."""
    from covey.linkedflow import draft_alone, draft_package
    from covey.release.places import check_new_file

    if len(tables) > 2:
        raise ParameterError(
            "a package has one table of persons and one of events: several event tables are not there yet."
        )
    (dialect, force), places = reading, [Path(table) for table in tables]
    for place in places:
        check_new_file(out, place, force)
        if place.resolve().parent != out.resolve().parent:
            raise ParameterError(f"write the package beside its tables: {place.resolve().parent / out.name}.")
    by_name = {place.name: place for place in places}
    if len(by_name) < len(places):
        raise ParameterError(f"{places[0].name} is given twice: name the table of persons, then that of their events.")
    two = len(places) == 2
    found = draft_package(by_name, person, dialect) if two else draft_alone(by_name, person or "", dialect)
    package, notes = found.package, found.notes
    package.save(out)
    if not as_json:
        for note in notes:
            click.echo(note, err=True)
    names = [name for name, _ in package.fields]
    say(
        as_json,
        {"package": str(out), "fields": names, "draft": True, "at_most": package.at_most, "notes": list(notes)},
        f"draft of a package with {counted(len(names), 'field')} → {out}\nIt describes private data. Say at_most and order, make "
        f"each field's values public knowledge, then: covey confirm {out} TABLE.FIELD … or, for what carries no warning, --all",
    )


@main.command(epilog=example("covey confirm schema.json age sex", "covey confirm schema.json --all"))
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.argument("fields", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Confirm every field that carries no warning.")
@json_option
def confirm(schema_path: Path, fields: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Say that what SCHEMA tells about these fields is public knowledge."""
    from covey.table.package import is_package
    from covey.table.schema import Schema

    if not everything and not fields:
        raise ParameterError("name the fields to confirm, or say --all.")
    if is_package(schema_path):
        _confirm_package(schema_path, fields, everything, as_json)
        return
    before = Schema.load(schema_path)
    schema = before.confirm(list(fields))
    schema = schema.confirm() if everything else schema
    schema.save(schema_path)
    left = [field.name for field in schema.fields if not field.confirmed]
    now = [field for field in schema.fields if field.confirmed and not before[field.name].confirmed]
    labels = {field.name: len(field.enum or ()) for field in now if field.type == "string"}
    told = [f"{f.name} ({counted(labels[f.name], 'label')})" if f.name in labels else _with_limits(f) for f in now]
    words = [f"now public: {', '.join(told)}"] if told else []
    words += [f"{name}: {warning}" for name, warning in schema.warnings.items()]
    warned = [name for name in left if name in schema.warnings]
    plain = [name for name in left if name not in schema.warnings]
    words += [f"still to confirm, by name: {', '.join(warned)}"] if warned else []
    words += [f"still to confirm, by name or with --all: {', '.join(plain)}"] if plain else []
    words += [] if left else ["every field is confirmed"]
    say(
        as_json,
        {
            "schema": str(schema_path),
            "confirmed": [field.name for field in now],
            "public_labels": labels,
            "unconfirmed": left,
        },
        "\n".join(words),
    )


def _with_limits(field: Any) -> str:
    """A field's name, with both of its limits: whoever has changed one of them sees that the other becomes public too."""
    if field.minimum is None or field.maximum is None:
        return str(field.name)
    return f"{field.name} (from {field.minimum} to {field.maximum})"


def _confirm_package(path: Path, fields: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Confirm fields of a package, named TABLE.FIELD."""
    from covey.table.package import Package

    before = Package.load(path)
    package = before.confirm(list(fields))
    package = package.confirm() if everything else package
    package.save(path)
    was = dict(before.fields)
    now = [name for name, field in package.fields if field.confirmed and not was[name].confirmed]
    left = [name for name, field in package.fields if not field.confirmed]
    words = [f"now public: {', '.join(now)}"] if now else []
    words += [f"{name}: {warning}" for name, warning in package.warnings.items()]
    words += [f"still to confirm, by name: {', '.join(left)}"] if left else ["every field is confirmed"]
    say(as_json, {"package": str(path), "confirmed": now, "unconfirmed": left}, "\n".join(words))


@main.command(epilog=example("covey check patients.csv --schema schema.json"))
@click.argument("table")
@click.option("--schema", "schema_path", type=Path, help="The public schema (JSON or YAML); a package has its own.")
@person_option
@table_option
@query_option
@dialect_options
@json_option
def check(  # click passes each option by its name
    table: str,
    schema_path: Path | None,
    person: str | None,
    relation: str | None,
    sql: str | None,
    dialect: Any,
    as_json: bool,
) -> None:
    """Read TABLE as the schema says and count the cells that do not fit. Confidential, and nothing is charged."""
    from dataclasses import asdict

    from covey.release.evaluation import WATERMARK
    from covey.table.package import is_package
    from covey.table.schema import Schema
    from covey.workflow import check as fit_to

    if is_package(table):
        _check_package(table, schema_path, person, as_json)
        return
    if schema_path is None:
        raise ParameterError("give --schema, the public description of the table.")
    schema = Schema.load(schema_path).read_as(dialect)
    checked = fit_to(source_of(table, relation, sql), schema, person)
    words = [
        WATERMARK,
        f"{counted(checked.rows, 'row')}, {counted(len(checked.log.columns), 'column')}",
        *checked.words,
    ]
    told = {"rows": checked.rows}
    if checked.persons is not None:
        told |= {"persons": checked.persons, "rows_of_nobody": checked.nobodys}
        words[1] += f", {counted(checked.persons, 'person')}"
    if len(words) == 2:
        words.append("every cell fits the schema or is missing")
    facts = {
        "misfits": {name: float(share) for name, share in checked.misfits.items()},
        "broken_rules": [{"rule": rule.to_dict(), "rows": count} for rule, count in checked.broken],
    }
    say(as_json, {"confidential": WATERMARK, **told, **asdict(checked.log), **facts}, "\n".join(words))


def _check_package(table: str, schema_path: Path | None, person: str | None, as_json: bool) -> None:
    """Hold both tables of a package against it."""
    from covey.linkedflow import check_package
    from covey.release.evaluation import WATERMARK

    if schema_path is not None or person is not None:
        raise ParameterError("a package says all about its tables: leave out --schema and --person.")
    found = check_package(Path(table))
    words = [WATERMARK, f"{counted(found.persons.rows, 'person')}, {counted(found.events.rows, 'event')}", *found.words]
    if len(words) == 2:
        words.append("every cell fits the package or is missing")
    facts: dict[str, Any] = {"persons": found.persons.rows, "events": found.events.rows, "beyond_at_most": found.cut}
    facts |= {"misfits": {name: float(share) for name, share in found.misfits.items()}}
    say(as_json, {"confidential": WATERMARK, **facts}, "\n".join(words))
