"""The fifth step: everything that is about to happen, and the same work without the app."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.errors import CoveyError
from covey.linkedflow import LinkedFit
from covey.privacy.ledger import default_ledger_path
from covey.table.package import Package
from covey.table.schema import Schema
from covey.web import export
from covey.web.desk import Desk
from covey.web.pages.privacy import privacy_values
from covey.web.pages.shared import Checked, Named, OnDesk, go, page, turned_away
from covey.web.taking import calling
from covey.web.work import Work
from covey.workflow import Fit

router = APIRouter()


def exports(desk: Desk, work: Work) -> tuple[str, str]:
    """The command line and the script."""
    name = export.PACKAGE if work.link else work.table.name if work.table else "table.csv"
    ledger = None if desk.ledger.path == Path(os.path.realpath(default_ledger_path())) else desk.ledger.path
    return export.command_line(work.choices, name, ledger), export.script(work.choices, name, ledger)


@dataclass(frozen=True)
class Misfit:
    """Cells of one column that the schema has no place for, and what becomes of them. Confidential."""

    name: str
    count: int
    words: str
    of: int


def misfits(fit: Fit, schema: Schema) -> list[Misfit]:
    """Everything that reading the table as the schema says would change, column by column."""
    found = []
    for name, seen in fit.log.columns.items():
        other = schema[name].other
        unknown = (
            f"in no category, and become {other!r}" if other else "in no category, and become the default or missing"
        )
        found += [
            (name, seen.clipped, "beyond a limit, and are moved to it"),
            (name, seen.unknown, unknown),
            (name, seen.unparseable, "not of the column's kind, and become the default or missing"),
            (name, seen.missing if schema[name].required else 0, "missing where none may be, and become the default"),
            (name, seen.missing if seen.missing == fit.rows else 0, "missing: there is nothing to release"),
        ]
    found += [(fit.person or "", fit.nobodys, "of rows that name nobody, and are left out")]
    return [Misfit(name, count, words, fit.rows) for name, count, words in found if count]


def linked_misfits(fit: LinkedFit, package: Package) -> list[Misfit]:
    """The same for persons and events, and the events that are left out or break a rule."""
    own = zip(package.resources, (fit.persons, fit.events), strict=True)
    found = [
        replace(one, name=f"{part.name}.{one.name}")
        for part, table in own
        if not part.bare
        for one in misfits(table, part.schema)
    ]
    beyond = f"beyond the {package.at_most} that a person has at most, and are left out"
    broken = "against a rule across the tables: no synthetic one will be"
    events = package.events.name
    return found + [
        Misfit(events, count, words, fit.events.rows)
        for count, words in ((fit.cut, beyond), (fit.broken, broken))
        if count
    ]


def fit_values(work: Work) -> dict[str, Any]:
    """What the review shows of the fit: misfits, or why the table cannot be read as the schema says."""
    if work.table is None:
        return {"misfits": [], "fit_error": ""}
    try:
        if work.link:
            return {"misfits": linked_misfits(work.fit_linked(), work.package()), "fit_error": ""}
        person = work.choices.person if work.choices.mode == "private" else ""
        fit = work.fit(person)
        return {"misfits": misfits(fit, fit.schema), "fit_error": ""}
    except CoveyError as error:
        return {"misfits": [], "fit_error": str(calling(error, *(table.file for table in work.tables)))}


def review_page_with(
    request: Request, desk: Desk, work: Work, error: str = "", code: int = 200, wanted: Sequence[str] = ()
) -> Response:
    """Everything that is about to happen; `wanted` are the columns about persons that were ticked."""
    with work.lock:  # the key is that of what is shown
        key = work.review_key()
        values = privacy_values(desk, work, work.choices)
        command, script = exports(desk, work)
        values |= fit_values(work)
    values |= {
        "command": command,
        "script": script,
        "key": key,
        "job": work.jobs.get(key),
        "error": error,
        "wanted": wanted,
    }
    return page(request, "review.html", code, step="review", folder=desk.out, **values)


@router.get("/work/{work_id}/review")
def review_page(request: Request, desk: OnDesk, work: Named) -> Response:
    """Look once more before anything is spent."""
    return turned_away(work, "review") or review_page_with(request, desk, work)


@router.post("/work/{work_id}/again")
def review_again(work: Named, form: Checked) -> Response:
    """A fresh review of the same choices: another release, and another charge."""
    with work.lock:
        if work.job is not None and work.job.over:
            work.changed()
    return go(f"/work/{work.id}/review")


def attachment(text: str, name: str, kind: str) -> Response:
    """A file to keep."""
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


@router.get("/work/{work_id}/schema.json")
def schema_file(work: Named) -> Response:
    """The public schema."""
    text = json.dumps(work.described().to_dict(), indent=2, ensure_ascii=False) + "\n"
    return attachment(text, export.PACKAGE if work.link else export.SCHEMA, "application/json")


@router.get("/work/{work_id}/release.py")
def script_file(desk: OnDesk, work: Named) -> Response:
    """The script."""
    return attachment(exports(desk, work)[1], "release.py", "text/x-python")


@router.get("/work/{work_id}/release.sh")
def command_file(desk: OnDesk, work: Named) -> Response:
    """The command line."""
    return attachment(f"#!/bin/sh\nset -e\n{exports(desk, work)[0]}\n", "release.sh", "text/x-shellscript")
