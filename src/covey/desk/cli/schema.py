"""The schema: drafted, confirmed, and held against the table."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from covey.desk.cli.group import command, file_options, grid, options, say, source_of, table_options
from covey.errors import ParameterError, counted

if TYPE_CHECKING:
    from covey.synthesizers.proposed_relations import Proposal
    from covey.workflow import Drafted


@command(
    "covey init patients.csv -o schema.json",
    "covey init patients.csv visits.csv -o package.json",
    "covey init visits.csv --person patient -o package.json",
)
@click.argument("tables", nargs=-1, required=True, metavar="TABLE [EVENTS]")
@click.option("-o", "--out", "out", type=Path, required=True, help="Where to write the draft.")
@click.option(
    "--person",
    metavar="COLUMN",
    help="Draft a package for persons with events: this column of the events identifies the person.",
)
@click.option(
    "--import", "metadata", type=Path, help="Start from SmartNoise YAML or SDV JSON metadata, not from the data."
)
@click.option("--explain", is_flag=True, help="Say why each column was read as it was.")
@file_options
@options("force", "json")
def init(  # click passes each option by its name
    tables: tuple[str, ...],
    out: Path,
    person: str | None,
    metadata: Path | None,
    explain: bool,
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

    from covey.release.places import check_new_file, refuse_in_bundle
    from covey.tables.description import require_one_branch
    from covey.workflow import Description, Drafted, draft, imported

    several = len(tables) > 1 or person is not None
    if several and (metadata is not None or relation is not None or sql is not None):
        raise ParameterError("a package is drafted from files. Leave out --import, --table and --query.")
    if len(tables) > 2:
        require_one_branch(tables[1:])
    places = [Path(table) for table in tables] if several else [source_of(tables[0], relation, sql)]
    for place in places:
        check_new_file(out, place, force)
        refuse_in_bundle(out)
        if several and place.resolve().parent != out.resolve().parent:
            raise ParameterError(f"write the package beside its tables: {place.resolve().parent / out.name}.")
    by_name = {place.name: place for place in places} if several else {}
    if several and len(by_name) < len(places):
        raise ParameterError(
            f"{places[0].name} is given twice. Name the table of persons first, then the table of their events."
        )
    if metadata is not None:
        found = Drafted(Description.of(imported(metadata).read_as(dialect)))
    else:
        found = draft(by_name or places[0], dialect, person=person)
    described, notes = found.description, found.notes
    described.save(out)
    fields, warned = dict(described.fields), described.warnings
    groups = {
        "ready": [name for name in fields if name not in warned],
        "look_at": list(warned),
        "left_out": [note.field for note in notes if note.field is not None and note.field not in fields],
    }
    facts = {"package" if several else "schema": str(out), "fields": list(fields), "draft": True, **groups}
    facts |= {"notes": [asdict(note) for note in notes], "relations": _seen(found.relations)}
    facts |= {"at_most": described.link.at_most, "links": list(found.links)} if several else {}
    say(as_json, facts, "\n".join(_draft_words(found, groups, out, explain)))


def _draft_words(found: Drafted, groups: dict[str, list[str]], out: Path, explain: bool) -> Iterator[str]:
    """A draft as a table: what is ready, what needs a person, what was left out, and what to do next."""
    fields, notes = dict(found.description.fields), {note.field: note for note in found.notes}

    def table(names: list[str], *columns: str) -> list[str]:
        shown = [*columns, *(["reason"] if explain and "reason" not in columns else [])]
        read = {"read as": lambda name: notes[name].choice if name in notes else fields[name].type}
        read |= {"reason": lambda name: notes[name].reason if name in notes else ""}
        return grid(("column", *shown), [(name, *(read[one](name) for one in shown)) for name in names], indent=2)

    yield f"{counted(len(fields), 'column')} drafted → {out}. It is confidential until you confirm it."
    yield from (f"  {words}" for words in found.links)
    for note in (note for note in found.notes if note.field is None):
        yield f"  the table: {note.choice} ({note.reason}){f'; look: {note.warning}' if note.warning else ''}"
    if groups["ready"]:
        yield f"\nREADY: {counted(len(groups['ready']), 'column')}"
        yield from table(groups["ready"], "read as")
    if groups["look_at"]:
        yield f"\nLOOK AT THESE: {counted(len(groups['look_at']), 'column')}"
    for warning, names in _alike({name: fields[name].warning or "" for name in groups["look_at"]}).items():
        yield f"\n  {warning}"
        yield from table(names, "read as")
    if groups["left_out"]:
        yield f"\nLEFT OUT: {counted(len(groups['left_out']), 'column')}"
        yield from table(groups["left_out"], "reason")
    if found.relations:
        yield f"\nRELATIONS SEEN IN YOUR TABLE: {len(found.relations)} (confirm what is public knowledge)"
        yield from _relation_grid(found.relations)
    yield ""
    if len(found.description.tables) > 1:
        yield f"Next: set at_most and order in {out}, then"
    if groups["ready"]:
        yield f"Next: confirm the columns that are ready: covey confirm {out} --all"
    if groups["look_at"]:
        yield f"      edit {out}, or accept by name what is right: covey confirm {out} {groups['look_at'][0]} …"
    if found.relations:
        yield f"      add relations, once their columns are confirmed: covey relations TABLE --schema {out}"
    if not explain:
        yield "      covey init … --explain says why each column was read so"


def _alike(warnings: Mapping[str, str]) -> dict[str, list[str]]:
    """Columns by their warning: many have the same, and it is said once."""
    alike: dict[str, list[str]] = {}
    for name, warning in warnings.items():
        plain = re.sub(r" \(\d+\)$", "", warning)  # how many labels there are
        alike.setdefault(plain[:1].upper() + plain[1:], []).append(name)
    return alike


def _seen(found: Sequence[Proposal]) -> list[dict[str, Any]]:
    """Proposals for JSON."""
    return [{"words": one.words, "broken": one.broken, "rows": one.rows, "columns": one.columns} for one in found]


def _relation_grid(found: Sequence[Proposal]) -> list[str]:
    shares = [(one.words, f"{one.broken / one.rows:.2%} of {one.rows:,}") for one in found]
    return grid(("relation", "rows that break it"), shares, indent=2)


@command(
    "covey relations patients.csv --schema schema.json",
    'covey relations patients.csv --schema schema.json --add "admitted is never above discharged"',
)
@table_options
@click.option(
    "--add", multiple=True, metavar="WORDS", help="A relation to add to the schema, as it is listed. Repeatable."
)
@options("schema", "json")
def relations(source: Any, add: tuple[str, ...], schema: Path | None, dialect: Any, as_json: bool) -> None:
    """List relations that TABLE has and its schema does not state. Confidential, and nothing is charged.

    With --add, a relation becomes part of the schema: a rule, or a column that is computed from others. Add only what is public
    knowledge. The columns must be confirmed first.
    """
    from covey.evaluation.comparison import WATERMARK
    from covey.workflow import Description, propose, with_proposal

    if schema is None:
        raise ParameterError("give --schema, the public description of the table.")
    described = Description.load(schema)
    found = propose(source, described.read_as(dialect))
    for words in add:
        described = described.each(lambda part, words=words: with_proposal(part.schema, found, words))
    if add:
        described.save(schema)
    left = [one for one in found if described.schema is not None and one.is_news(described.schema)]
    lines = [WATERMARK, *(f"added to {schema}: {words}" for words in add)]
    lines += [f"{counted(len(left), 'relation')} seen in your table:" if left else "no further relation was seen"]
    lines += _relation_grid(left) if left else []
    if left:
        lines += ["Next: add what is public knowledge, in the words of the list:"]
        lines += [f"      covey relations TABLE --schema {schema} --add {shlex.quote(left[0].words)}"]
    say(as_json, {"confidential": WATERMARK, "added": list(add), "relations": _seen(left)}, "\n".join(lines))


@command("covey confirm schema.json age sex", "covey confirm schema.json --all")
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.argument("fields", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Confirm every field that carries no warning.")
@options("json")
def confirm(schema_path: Path, fields: tuple[str, ...], everything: bool, as_json: bool) -> None:
    """Confirm fields of SCHEMA as public. Everything that it says about them will be released."""
    from covey.workflow import Description

    if not everything and not fields:
        raise ParameterError("name the fields to confirm, or give --all.")
    before = Description.load(schema_path)
    found = before.confirm(list(fields))
    found = found.confirm() if everything else found
    found.save(schema_path)
    was = dict(before.fields)
    left = [name for name, field in found.fields if not field.confirmed]
    now = {name: field for name, field in found.fields if field.confirmed and not was[name].confirmed}
    labels = {name: len(field.enum or ()) for name, field in now.items() if field.type == "string"}
    told = [
        f"{name} ({counted(labels[name], 'label')})" if name in labels else f"{name}{_limits(field)}"
        for name, field in now.items()
    ]
    words = [f"now public: {', '.join(told)}"] if told else []
    warned = [name for name in left if name in found.warnings]
    if warned:
        words += [f"still to confirm, one by one: {counted(len(warned), 'column')}"]
        for warning, names in _alike({name: found.warnings[name] for name in warned}).items():
            words += [f"  {warning}", f"    {', '.join(names)}"]
        words += [f"Next: edit {schema_path}, or accept what is right: covey confirm {schema_path} {warned[0]} …"]
    plain = [name for name in left if name not in found.warnings]
    words += [f"still to confirm, by name or with --all: {', '.join(plain)}"] if plain else []
    size = "rows" if found.schema else "persons"
    after = ["every column is confirmed", f"Next: covey plan {schema_path} --{size} N --epsilon 1"]
    words += [] if left else after
    facts = {"confirmed": list(now), "public_labels": labels, "unconfirmed": left}
    say(as_json, {"schema": str(schema_path), **facts}, "\n".join(words))


def _limits(field: Any) -> str:
    """Both limits of a field, and the words beside them: whoever has changed one sees that the others become public too."""
    ends = "" if field.minimum is None or field.maximum is None else f"from {field.minimum} to {field.maximum}"
    return f" ({', or '.join((ends, *field.special))})" if ends else ""


@command("covey check patients.csv --schema schema.json")
@table_options
@options("schema", "person", "json")
def check(source: Any, schema: Path | None, person: str | None, dialect: Any, as_json: bool) -> None:
    """Count the cells of TABLE that do not fit the schema. Confidential; nothing is charged."""
    from dataclasses import asdict

    from covey.evaluation.comparison import WATERMARK
    from covey.workflow import check as fit_to
    from covey.workflow import described, not_taken

    found, tables = described(source, schema)
    if found is None:
        raise ParameterError("give --schema, the public description of the table.")
    several = found.schema is None
    if person is not None and (why := not_taken(found).get("person")) is not None:
        raise ParameterError(f"{why}: leave out --person.")
    checked = fit_to(tables, found.read_as(dialect), person)
    told: dict[str, Any] = {"rows": checked.rows}
    first = f"{counted(checked.rows, 'row')}, {counted(len(checked.log.columns), 'column')}"
    if several:
        told = {"rows": {one.name: one.rows for one in checked.tables}, "persons": checked.persons}
        first = ", ".join(f"{counted(one.rows, 'row')} of {one.name}" for one in checked.tables)
    elif checked.persons is not None:
        told |= {"persons": checked.persons, "rows_of_nobody": checked.rest[-1].count}
        first += f", {counted(checked.persons, 'person')}"
    rows = [(one.name, f"{one.count:,} of {one.rows:,}", one.words) for one in checked.findings]
    answer = [f"{counted(len(rows), 'finding')}:", *grid(("column", "cells", "what happens to them"), rows, indent=2)]
    fits = [f"every cell fits the {'package' if several else 'schema'} or is missing"]
    words = [WATERMARK, first, *(answer if rows else fits)]
    words += ["Next: mend the schema where this loses too much, or release the table"] if rows else []
    facts = {
        "misfits": {name: float(share) for name, share in checked.misfits.items()},
        "left_out": {rest.name: rest.count for rest in checked.rest if rest.left_out and rest.count},
        "broken_rules": [{"rule": rule.to_dict(), "rows": count} for rule, count in checked.broken],
    }
    say(as_json, {"confidential": WATERMARK, **told, **asdict(checked.log), **facts}, "\n".join(words))
