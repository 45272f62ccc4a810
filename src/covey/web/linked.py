"""Persons with events on the desk: one package from the columns of both tables, their rules, and how events hang together.

Rules name fields of linked tables as table.field. One whose fields are all of one table is a rule of that table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from covey.errors import ParameterError
from covey.table.package import Package, joint_field
from covey.table.pairing import with_links_that_hold
from covey.table.resources import BARE, Resource
from covey.table.rules import Rule
from covey.table.schema import Schema
from covey.web.drafts import ColumnDraft
from covey.web.forms import whole
from covey.web.security import Form
from covey.web.taking import Uploaded


def joined(link: Package, columns: Sequence[ColumnDraft], rules: Sequence[Rule]) -> Package:
    """The package as far as it has come; `link` has its names, keys, order and limits."""
    parts = [part if part.bare else _described(part, columns, rules) for part in link.resources]
    if parts[1].bare:
        raise ParameterError(f"every column of {link.events.name} is left out. Keep at least one.")
    across = tuple(rule for rule in rules if len(_tables(rule)) > 1)
    return replace(link, persons=parts[0], events=parts[1], rules=across)


def _described(part: Resource, columns: Sequence[ColumnDraft], rules: Sequence[Rule]) -> Resource:
    """One table with its kept columns and its own rules; persons may have no attributes left."""
    fields = with_links_that_hold([c.field for c in columns if c.kept and c.table == part.name])
    own = tuple(
        rule.renamed(lambda name: name.removeprefix(f"{part.name}.")) for rule in rules if _tables(rule) == {part.name}
    )
    if not fields:
        if own:
            raise ParameterError(f"a rule speaks of {part.name}, of which no column is left. Remove the rule first.")
        return replace(part, schema=replace(BARE, dialect=part.schema.dialect))
    drafted = not all(field.confirmed for field in fields)
    return replace(part, schema=replace(part.schema, fields=fields, rules=own, drafted=drafted))


def _tables(rule: Rule) -> set[str]:
    """The tables whose fields a rule names; names of tables have no dots."""
    return {name.partition(".")[0] for name in rule.fields}


def rules_of(package: Package) -> tuple[Rule, ...]:
    """All rules of a package, about fields as table.field."""
    own = [rule.renamed(f"{part.name}.{{}}".format) for part in package.resources for rule in part.schema.rules]
    return (*own, *package.rules)


def joint_schema(package: Package) -> Schema:
    """The fields of both tables as rules name them, without ties to others."""
    fields = tuple(joint_field(name, field) for name, field in package.fields)
    return Schema(fields, package.events.schema.missing_values)


def read_link(form: Form, link: Package) -> Package:
    """What the tables are called and how events hang together, as a form says it."""
    order = form.get("order") or None
    numbered, positions, gaps = (form.has(name) for name in ("numbered", "positions", "gaps"))
    most = whole(form.get("at_most"), "the number of events")
    persons, events = (
        replace(part, name=form.get(field, part.name).strip())
        for field, part in (("persons", link.persons), ("events", link.events))
    )
    bare = replace(link, persons=persons, events=events, at_most=most, order=order, rules=())
    return replace(bare, numbered=numbered, positions=positions, gaps=gaps)


def link_form(link: Package) -> dict[str, str]:
    """The form that says how events hang together now: what `read_link` reads."""
    ticked = {name: "on" for name in ("numbered", "positions", "gaps") if getattr(link, name)}
    names = {"persons": link.persons.name, "events": link.events.name}
    return names | {"at_most": str(link.at_most), "order": link.order or ""} | ticked


def called_anew(
    names: Mapping[str, str], columns: Sequence[ColumnDraft], rules: Sequence[Rule]
) -> tuple[tuple[ColumnDraft, ...], tuple[Rule, ...]]:
    """Columns and rules of tables that have other names now."""

    def anew(field: str) -> str:
        table, _, name = field.partition(".")
        return f"{names[table]}.{name}"

    moved = tuple(replace(column, table=names[column.table]) for column in columns)
    return moved, tuple(rule.renamed(anew) for rule in rules)


def placed(package: Package, tables: Sequence[Uploaded]) -> Package:
    """The package beside the private copies of its tables."""
    parts = list(package.resources)
    for k, table in enumerate(reversed(tables)):
        parts[1 - k] = replace(parts[1 - k], path=table.path.name)
    return replace(package, persons=parts[0], events=parts[1])
