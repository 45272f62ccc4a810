"""The fifth and the sixth step: everything that is about to happen, the same work without the app, and a release under way."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.desk.web import forms
from covey.desk.web.drafts import with_file_names
from covey.desk.web.pages.privacy import privacy_values
from covey.desk.web.pages.shared import CheckedForm, CurrentWork, CurrentWorkspace, by_htmx, go, page, redirect_if_early
from covey.desk.web.work import Work
from covey.desk.web.workspace import Workspace
from covey.errors import CoveyError, InputError, ParameterError
from covey.ledger import default_ledger_path
from covey.workflow import PrivateOrder

router = APIRouter()


def exports(workspace: Workspace, work: Work) -> tuple[str, str]:
    """The command line and the script.

    Whether cells fit the schema is a fact about true rows, and a file that people keep and hand on does not tell it.
    """
    described = forms.PACKAGE if work.link else forms.SCHEMA
    order = work.placed_order(described, forms.OUT, Path(work.table.name))
    if isinstance(order, PrivateOrder) and workspace.ledger.path != Path(os.path.realpath(default_ledger_path())):
        order = replace(order, ledger=workspace.ledger.path)
    return forms.command_line(order), forms.script(order)


def fit_values(work: Work) -> dict[str, Any]:
    """What the review shows of the fit: misfits, or why the table cannot be read as the schema says."""
    try:
        found = work.fit(getattr(work.order, "person", None)).findings
        return {"misfits": [finding for finding in found if finding.name], "fit_error": ""}
    except CoveyError as error:
        return {"misfits": [], "fit_error": str(with_file_names(error, work.places))}


def review_page_with(
    request: Request, workspace: Workspace, work: Work, error: CoveyError | None = None, wanted: Sequence[str] = ()
) -> Response:
    """Everything that is about to happen; `wanted` are the columns about persons that were ticked."""
    with work.lock:  # the key is that of what is shown
        key = work.review_key()
        values = privacy_values(workspace, work, work.order)
        command, script = exports(workspace, work)
        values |= fit_values(work)
    values |= {"command": command, "script": script, "key": key, "job": work.jobs.get(key), "wanted": wanted}
    return page(request, "review.html", error, step="review", folder=workspace.out, **values)


@router.get("/work/{work_id}/review")
def review_page(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """Look once more before anything is spent."""
    return redirect_if_early(work, "review") or review_page_with(request, workspace, work)


@router.post("/work/{work_id}/again")
def review_again(work: CurrentWork, form: CheckedForm) -> Response:
    """A fresh review of the same choices: another release, and another charge."""
    with work.lock:
        if work.job is not None and work.job.over:
            work.changed()
    return go(f"/work/{work.id}/review")


@router.get("/work/{work_id}/schema.json")
@router.get("/work/{work_id}/release.py")
@router.get("/work/{work_id}/release.sh")
def file_to_keep(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """The public schema, the script or the command line."""
    name, (command, script) = request.url.path.rpartition("/")[2], exports(workspace, work)
    if name == "schema.json":
        script = json.dumps(work.described().to_dict(), indent=2, ensure_ascii=False) + "\n"
        name = str(forms.PACKAGE if work.link else forms.SCHEMA)
    text = f"#!/bin/sh\nset -e\n{command}\n" if name == "release.sh" else script
    return Response(text, media_type="text/plain", headers={"content-disposition": f'attachment; filename="{name}"'})


@router.post("/work/{work_id}/release")
def release(request: Request, workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Start the release of this review; a second click finds the same job."""
    try:
        if form.get("review") not in work.jobs:  # a second click finds the job that the first one has started
            unwanted = [column.called for column in work.personal if column.called not in form.all("wanted")]
            if unwanted:
                raise ParameterError(
                    f"tick {' and '.join(unwanted)} first, or leave out columns that may identify persons."
                )
            shown = fit_values(work)
            if shown["fit_error"]:
                raise InputError(shown["fit_error"])
            if shown["misfits"] and not form.has("seen"):
                raise ParameterError("check the cells that do not fit, and tick the box below them.")
        workspace.release(work, form.get("review"), form.has("seen"))
    except CoveyError as error:
        if not work.releasing:  # otherwise another page has begun it meanwhile
            return review_page_with(request, workspace, work, error, form.all("wanted"))
    there = f"/work/{work.id}/release"
    return Response(headers={"hx-redirect": there}) if by_htmx(request) else go(there)


@router.get("/work/{work_id}/release")
async def release_page(request: Request, work: CurrentWork) -> Response:
    """How far the release has come; the page may be left and found again."""
    return redirect_if_early(work, "release") or page(request, "release.html", work=work, step="release", job=work.job)


@router.get("/work/{work_id}/job")
async def job_piece(request: Request, work: CurrentWork) -> Response:
    """The part of the page that changes."""
    return page(request, "job_piece.html", work=work, job=work.job, polled=True)


@router.post("/work/{work_id}/cancel")
def cancel(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Stop before the charge."""
    if work.job is not None:
        work.job.cancel()
    if by_htmx(request):
        return page(request, "job_piece.html", work=work, job=work.job, polled=True)
    return go(f"/work/{work.id}/release")
