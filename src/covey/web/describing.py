"""One public description from the columns of all tables, their rules, and how events belong to persons.

Where there are several tables, rules name fields as table.field. One whose fields are all of one table is a rule of that table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from covey.errors import ParameterError
from covey.table.description import Description, joint_field
from covey.table.drafting import with_links_that_hold
from covey.table.resources import BARE, Resource
from covey.table.rules import Rule
from covey.table.schema import Schema
from covey.web.drafts import ColumnDraft
from covey.web.forms import whole
from covey.web.reading import UploadedTable
from covey.web.security import Form


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
    fields, before = with_links_that_hold(kept), part.schema
    if not fields:
        if rules:
            raise ParameterError(f"a rule uses {part.name}, which has no column left. Remove the rule first.")
        return replace(part, schema=replace(BARE, dialect=before.dialect))
    own = tuple(rule.renamed(lambda name: name.removeprefix(f"{part.name}.")) for rule in rules) if several else rules
    drafted = not all(field.confirmed for field in fields)
    schema = Schema(fields, before.missing_values, own, drafted=drafted, dialect=before.dialect)
    return replace(part, schema=schema)


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
    fields = tuple(joint_field(name, field) for name, field in package.fields)
    return Schema(fields, package.events.schema.missing_values)


def read_link(form: Form, link: Description) -> Description:
    """What the tables are called and how events hang together, as a form says it."""
    order = form.get("order") or None
    numbered, positions, gaps = (form.has(name) for name in ("numbered", "positions", "gaps"))
    most = whole(form.get("at_most"), "the number of events")
    persons, events = (
        replace(part, name=form.get(field, part.name).strip())
        for field, part in (("persons", link.unit), ("events", link.events))
    )
    parent = replace(link.link, table=persons.name, at_most=most, order=order)
    parent = replace(parent, numbered=numbered, positions=positions, gaps=gaps)
    return replace(link, tables=(persons, replace(events, parent=parent)), rules=())


def link_form(link: Description) -> dict[str, str]:
    """The form that says how events hang together now: what `read_link` reads."""
    ticked = {name: "on" for name in ("numbered", "positions", "gaps") if getattr(link.link, name)}
    names = {"persons": link.unit.name, "events": link.events.name}
    return names | {"at_most": str(link.link.at_most), "order": link.link.order or ""} | ticked


def renamed(
    names: Mapping[str, str], columns: Sequence[ColumnDraft], rules: Sequence[Rule]
) -> tuple[tuple[ColumnDraft, ...], tuple[Rule, ...]]:
    """Columns and rules of tables that have other names now."""

    def anew(field: str) -> str:
        table, _, name = field.partition(".")
        return f"{names[table]}.{name}"

    moved = tuple(replace(column, table=names[column.table]) for column in columns)
    return moved, tuple(rule.renamed(anew) for rule in rules)


def placed(described: Description, tables: Sequence[UploadedTable]) -> Description:
    """The description beside the private copies of its tables."""
    given = (replace(part, path=table.path.name) for part, table in zip(described.given, tables, strict=True))
    return replace(described, tables=(*described.tables[: described.alone], *given))
