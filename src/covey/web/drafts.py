"""One column on its way into the public schema: what it is taken for, what was typed, and what was there before.

What a steward types is kept even where it is no field yet, so that a refusal never throws work away; and each kind of
column remembers its own limits and categories, so that looking at another kind costs nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import field as entry

from covey.errors import CoveyError, ParameterError
from covey.table.schema import Field, Schema
from covey.web.forms import read_field, shown
from covey.web.security import Form

TYPED = (
    "minimum",
    "maximum",
    "bins",
    "decimals",
    "other",
    "enum",
    "missing",
)  # what a card's form holds besides its kind


@dataclass(frozen=True)
class ColumnDraft:
    """A column as its owner has described it so far.

    `doubt` says what to look at, and `guarded` that nearly every row has a value of its own: to publish those values, the
    column's name must be typed. Both come from true data and are for its owner alone. `typed` is what the form holds
    while that is no field, `problem` why, and `others` the field for each kind that was looked at.
    """

    field: Field
    kept: bool = True
    doubt: str = ""
    guarded: bool = False
    typed: Mapping[str, str] = entry(default_factory=dict)
    problem: str = ""
    others: Mapping[str, Field] = entry(default_factory=dict)

    def shows(self, name: str) -> str:
        """What stands in a field of the form."""
        if self.typed:
            return self.typed.get(name, "")
        if name == "enum":
            return "\n".join(self.field.enum or ())
        value = getattr(self.field, name)
        return "" if isinstance(value, tuple) else shown(value)

    @property
    def may_be_missing(self) -> bool:
        """Whether the box for gaps is ticked."""
        return "missing" in self.typed if self.typed else not self.field.required


def drafts(schema: Schema, doubts: Mapping[str, str]) -> tuple[ColumnDraft, ...]:
    """The columns of a schema that was just drafted or given."""
    said = {field.name: field.warning or doubts.get(field.name, "") for field in schema.fields}
    return tuple(
        ColumnDraft(field, doubt=said[field.name].rstrip("."), guarded=_is_guarded(field, said[field.name]))
        for field in schema.fields
    )


def _is_guarded(field: Field, doubt: str) -> bool:
    """Its values may point at people: a draft says so, nearly every row has its own, or only the most frequent are kept."""
    if field.confirmed or not doubt:
        return False
    return field.warning is not None or (field.type == "string" and field.other is not None)


def edited(column: ColumnDraft, form: Form) -> ColumnDraft:
    """The column as the form has it. Where that is no field, what was typed is kept, and why it is none."""
    kind = form.get("type", column.field.type)
    if kind != column.field.type:
        return _turned(column, form, kind)
    try:
        field = read_field(form, column.field, confirmed=False)
    except CoveyError as error:
        return refused(column, form, error)
    return replace(column, field=field, typed={}, problem="")


def refused(column: ColumnDraft, form: Form, error: CoveyError) -> ColumnDraft:
    """The column with what was typed, and why that cannot be."""
    typed = {name: form.get(name) for name in TYPED if form.has(name)}
    return replace(column, field=replace(column.field, confirmed=False), typed=typed, problem=str(error))


def _turned(column: ColumnDraft, form: Form, kind: str) -> ColumnDraft:
    """Another kind of column, with the limits or categories it had when it was last of that kind."""
    try:
        before = read_field(form, column.field, confirmed=False, kind=column.field.type)
    except CoveyError:
        before = replace(column.field, confirmed=False)
    fresh = read_field(form, column.field, confirmed=False)  # refuses a kind that does not exist
    others = {**column.others, before.type: before}
    return replace(column, field=others.get(kind, fresh), others=others, typed={}, problem="")


def confirmed(column: ColumnDraft, form: Form) -> ColumnDraft:
    """The column with its owner's word that what stands there is public knowledge."""
    if column.problem:
        raise ParameterError(column.problem)
    if not form.has("public"):
        raise ParameterError("tick the box first: only you can say that this is public knowledge.")
    if column.guarded and form.get("own_name") != column.field.name:
        raise ParameterError(
            f"type {column.field.name!r}, the column's name, to publish its values; or leave the column out."
        )
    return replace(column, field=replace(column.field, confirmed=True))
