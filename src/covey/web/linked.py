"""Persons with events on the desk: one package from the columns of both tables, their rules, and how events hang together.

Rules name fields of linked tables as table.field. One whose fields are all of one table is a rule of that table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from covey.errors import ParameterError
from covey.table.package import Package
from covey.table.pairing import with_links_that_hold
from covey.table.resources import BARE, Resource
from covey.table.rules import Rule, renamed
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
        renamed(rule, lambda name: name.removeprefix(f"{part.name}.")) for rule in rules if _tables(rule) == {part.name}
    )
    if not fields:
        return replace(part, schema=BARE)
    drafted = not all(field.confirmed for field in fields)
    return replace(part, schema=replace(part.schema, fields=fields, rules=own, drafted=drafted))


def _tables(rule: Rule) -> set[str]:
    """The tables whose fields a rule names; names of tables have no dots."""
    return {name.partition(".")[0] for name in rule.fields}


def rules_of(package: Package) -> tuple[Rule, ...]:
    """All rules of a package, about fields as table.field."""
    own = [
        renamed(rule, lambda name, table=part.name: f"{table}.{name}")  # type: ignore[misc]
        for part in package.resources
        for rule in part.schema.rules
    ]
    return (*own, *package.rules)


def joint_schema(package: Package) -> Schema:
    """The fields of both tables as rules name them, without ties to others."""
    fields = [replace(field, name=name, follows=None, levels=None) for name, field in package.fields]
    return Schema(tuple(fields), package.events.schema.missing_values, drafted=package.drafted)


def read_link(form: Form, link: Package) -> Package:
    """How events hang together, as a form says it."""
    order = form.get("order") or None
    numbered, positions, gaps = (form.has(name) for name in ("numbered", "positions", "gaps"))
    most = whole(form.get("at_most"), "the number of events")
    return replace(link, at_most=most, order=order, numbered=numbered, positions=positions, gaps=gaps)


def placed(package: Package, tables: Sequence[Uploaded]) -> Package:
    """The package beside the private copies of its tables."""
    parts = list(package.resources)
    for k, table in enumerate(reversed(tables)):
        parts[1 - k] = replace(parts[1 - k], path=table.path.name)
    return replace(package, persons=parts[0], events=parts[1])
