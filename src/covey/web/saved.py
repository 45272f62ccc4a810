"""What a steward has said about a table, kept on disk so that it outlives the app: private, and no more than was said.

Columns that nobody has touched are not in it: their draft is read off the rows when these are given again. A limit or a label
that was left as drafted beside one that was changed is, so the file describes private data. It is closed to other people, lies
beside the copy of the rows, and goes whenever the table is taken from the workspace; rows go when the app ends, and it stays.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from covey.errors import CoveyError, ParameterError
from covey.table.fields import Field
from covey.table.schema import read_rule
from covey.web.drafts import ColumnDraft, link_form, read_link, rules_of
from covey.web.folders import DRAFT, private_file
from covey.web.security import Form
from covey.workflow import as_words, from_words

if TYPE_CHECKING:
    from covey.web.work import Work


def save(work: Work) -> None:
    """Write down what was said, or remove what is no longer said."""
    place = work.folder / DRAFT
    fresh = work.taken.columns, work.taken.described, rules_of(work.taken.described)
    said = (work.columns, work.start, work.rules) != fresh or work.chosen or work.jobs
    with suppress(OSError):  # a comfort: what the disk refuses must not refuse the steward
        if not said:
            place.unlink(missing_ok=True)
            return
        with private_file(place.with_suffix(".new")) as file:
            json.dump(_words(work), file, ensure_ascii=False)
        os.replace(place.with_suffix(".new"), place)


def _words(work: Work) -> dict[str, Any]:
    before = {column.called: column for column in work.taken.columns}
    return {
        "tables": [table.name for table in work.tables],
        "columns": [_column(column) for column in work.columns if column != before.get(column.called)],
        "rules": [rule.to_dict() for rule in work.rules],
        "link": link_form(work.start) if work.link else None,
        "order": as_words(work.order),
        "release": {key: work.job.order.get(key) for key in ("dataset", "purpose")} if work.job else work.begun,
    }


def _column(column: ColumnDraft) -> dict[str, Any]:
    return {
        "called": column.called,
        "kept": column.kept,
        "field": column.field.to_dict(draft=True),
        "typed": dict(column.typed),
        "problem": column.problem,
        "others": [field.to_dict(draft=True) for field in column.others.values() if field != column.drafted],
    }


def load(place: Path) -> dict[str, Any] | None:
    """What an earlier start has written down; None where it cannot be read."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return found if {"tables", "columns", "rules", "link", "order", "release"} <= found.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def require_same(words: Mapping[str, Any], columns: Iterable[ColumnDraft]) -> None:
    """Refuse rows of another table than that of which something was said; files change a little, so one column will do."""
    known = {one["field"]["name"] for one in words["columns"]}
    if known and known.isdisjoint(column.field.name for column in columns):
        raise ParameterError(
            "this table has none of the columns that you described. Give the same table again, or start over with this one."
        )


def resume(work: Work, words: Mapping[str, Any]) -> None:
    """Say again what was said of a table whose rows are here again; nothing of it where it cannot be read any more."""
    fresh = work.columns, work.start, work.rules, work.order
    try:
        if work.link and words["link"]:
            work.set_link(read_link(Form({name: [value] for name, value in words["link"].items()}), work.start))
        known = {one["called"]: one for one in words["columns"]}
        work.change(tuple(_resumed(c, known[c.called]) if c.called in known else c for c in work.columns))
        work.choose(from_words(words["order"]))
        with suppress(CoveyError):  # a rule about a column that is no longer there goes with it
            fields = {field.name: field for field in work.joint().fields}
            work.change(rules=tuple(read_rule(rule, fields) for rule in words["rules"]))
    except (CoveyError, KeyError, TypeError, ValueError):  # of another version, say
        work.columns, work.start, work.rules, work.order = fresh


def _resumed(column: ColumnDraft, words: Mapping[str, Any]) -> ColumnDraft:
    others = [Field.from_dict(one) for one in words["others"]]
    return replace(
        column,
        field=Field.from_dict(words["field"]),
        kept=words["kept"],
        typed=words["typed"],
        problem=words["problem"],
        others={field.type: field for field in others},
    )
