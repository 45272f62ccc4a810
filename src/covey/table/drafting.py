"""Schemas drafted from data, each choice with its reason.

A draft describes private data, so none of its fields is confirmed, and it holds as little of them as it can: see
`covey.table.column_drafts`. How the file is written is found by looking, and recorded as dialect.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from covey.errors import InputError
from covey.table.column_dependencies import functions, propose_links
from covey.table.column_drafts import BLANK, CALLED, FEW, ColumnDraft, Note, Proposal, number_values, present
from covey.table.columns import Table
from covey.table.dialect_detection import assumptions, sniff
from covey.table.dialects import Dialect
from covey.table.extras import optional
from covey.table.fields import Field
from covey.table.guessing import PUBLIC_CODES, is_hierarchy
from covey.table.sources import ARROW_SUFFIXES, SIZE_LIMIT, read_table

GLANCE = 20  # cells that rule most copies out before whole columns are compared
_TOTALS = ("total", "totals", "sum", "grand total", "subtotal", "gesamt", "summe", "total général", "totale")


@dataclass(frozen=True)
class Draft:
    """Fields, how the file is written, and why; and the table that was looked at, which is read once. Private."""

    fields: tuple[Field, ...]
    dialect: Dialect
    missing_values: tuple[str, ...]
    notes: tuple[Note, ...]
    table: Table


def draft(source: Any, said: Dialect | None = None, size_limit: int = SIZE_LIMIT, learning: bool = False) -> Draft:
    """Describe a table: what was said of its dialect holds, the rest is found.

    Where its columns are to be learned every row is a record: what a single one looks like refuses nothing.
    """
    said = said or Dialect()
    missing = ("",) if said.missing is None else tuple(dict.fromkeys(("", *said.missing)))
    found = said
    notes = []
    if isinstance(source, str | Path) and Path(source).suffix.lower() not in ARROW_SUFFIXES and Path(source).is_file():
        found = sniff(Path(source), said, size_limit)
        if words := assumptions(found, said):
            notes.append(Note(None, words, "detected from the file and recorded in the schema as dialect"))
    table = read_table(source, dialect=found.of_file, size_limit=size_limit)
    if not learning:
        _refuse_odd_rows(table, missing)
    if table.long_rows:
        warning = "the separator may be inside unquoted cells"
        notes.append(Note(None, f"surplus cells of {table.long_rows} rows ignored", "the header has fewer", warning))
    notes += [Note(None, f"{CALLED}'{name}'", "another column has the same name") for name in table.twice]
    columns = [ColumnDraft(name, series, missing, found) for name, series in table.columns.items()]
    drafted = [column.draft() for column in columns]
    _hint_levels(columns, drafted)
    _hint_functions(columns, drafted)
    _hint_copies(columns, drafted)
    _hint_order(columns, drafted, missing)
    fields = tuple(field for field, _ in drafted if field is not None)
    if not fields:
        raise InputError("every column looks like an identifier or free text, so nothing is left to draft.")
    told = (*notes, *(note for _, note in drafted))
    return Draft(fields, Dialect.from_dict(found.of_file.to_dict()), missing, told, table)


def _hint_levels(columns: list[ColumnDraft], drafted: list[Proposal]) -> None:
    """Where labels are codes with a coarser level, say how to declare it."""
    pl = optional("polars")
    for place, (column, (field, note)) in enumerate(zip(columns, drafted, strict=True)):
        if field is None or field.type != "string" or column.distinct <= FEW:
            continue
        hint = None
        if is_hierarchy(column.text):
            hint = "its codes have levels: for a coarser column, keep only their first characters in the table"
        for coarse, (other, _) in zip(columns, drafted, strict=True):
            if (
                other is None
                or other.type != "string"
                or coarse is column
                or not 2 <= coarse.distinct <= column.distinct / 3
            ):
                continue
            pair = pl.DataFrame([column.series.alias("fine"), coarse.series.alias("coarse")])
            if pair.n_unique() == column.series.n_unique():
                hint = f"{coarse.name!r} is a coarser version of it; leave out the finer one unless you need it"
        if hint is not None:
            warning = f"{note.warning}. {hint}" if note.warning else None
            reason = note.reason if note.warning else f"{note.reason}; {hint}"
            drafted[place] = field, Note(note.field, note.choice, reason, warning)


def _hint_functions(columns: list[ColumnDraft], drafted: list[Proposal]) -> None:
    """Where each label of one column always goes with one value of another, say that the other may be derived.

    The draft itself does not hold the function: it would be read off private rows.
    """
    kept = [place for place, (field, _) in enumerate(drafted) if field is not None]
    bases = [p for p in kept if (field := drafted[p][0]) is not None and field.type == "string"]
    found = functions([columns[p].series for p in kept], [kept.index(p) for p in bases])
    for own, base in found.items():
        field, note = drafted[kept[own]]
        hint = f"each value of {columns[kept[base]].name!r} has one value of it: if that is public, declare it derived"
        drafted[kept[own]] = field, Note(note.field, note.choice, f"{note.reason}; {hint}", note.warning)


def _hint_copies(columns: list[ColumnDraft], drafted: list[Proposal]) -> None:
    """Say which columns are copies of earlier ones."""
    seen: dict[Any, list[int]] = {}
    for place, column in enumerate(columns):
        alike = seen.setdefault((column.distinct, *column.text.head(GLANCE)), [])
        first = next((p for p in alike if columns[p].text.equals(column.text) and _holes(columns[p], column)), None)
        alike.append(place)
        if first is not None and column.distinct > 1:
            field, note = drafted[place]
            reason = f"{note.reason}; it is a copy of {columns[first].name!r}, so leave one of them out"
            drafted[place] = field, Note(note.field, note.choice, reason, note.warning)


def _holes(one: ColumnDraft, other: ColumnDraft) -> bool:
    """Whether two columns have holes in the same rows."""
    return bool((one.series.is_null() == other.series.is_null()).all())


def _hint_order(columns: list[ColumnDraft], drafted: list[Proposal], missing: tuple[str, ...]) -> None:
    """Propose that numbers and dates follow those that they never precede."""
    places = [place for place, (field, _) in enumerate(drafted) if field is not None]
    fields = [field for field, _ in drafted if field is not None]
    found = propose_links(fields, [columns[place].series for place in places], missing)
    for place, field in zip(places, fields, strict=True):
        if field.name in found:
            follows, note = found[field.name], drafted[place][1]
            choice = f"{note.choice}, after {follows.base!r}"
            reason = f"{note.reason}; it is never below {follows.base!r}, so its distance from there is measured"
            drafted[place] = replace(field, follows=follows), Note(note.field, choice, reason, note.warning)


def _refuse_odd_rows(table: Table, missing: tuple[str, ...]) -> None:
    """Refuse a second header row, and a row of totals: they are no records of persons."""
    pl = optional("polars")
    texts = [series for series in table.columns.values() if series.dtype == pl.String]
    if table.rows < 4 or not texts:
        return
    second = [s[0] for s in texts if s[0] is not None and s[0].strip()]
    numeric = [s for s in texts if len(rest := present(s[1:], missing)) > 2 and not np.isnan(number_values(rest)).any()]
    headed = [s for s in numeric if s[0] is not None and s[0].strip().lower() not in PUBLIC_CODES | set(BLANK)]
    if (
        len(second) == len(texts)
        and len(headed) == len(numeric) > 1
        and all(np.isnan(number_values(s[:1]))[0] for s in headed)
    ):
        raise InputError("the first row has words where all others have numbers. If it is a second header, remove it.")
    last = [s[-1].strip().lower().rstrip(":") for s in texts if s[-1] is not None]
    if any(word in _TOTALS for word in last):
        raise InputError("the last row looks like a row of totals, not a record. Remove it.")
