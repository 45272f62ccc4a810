"""The sixth step: a release under way."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.errors import CoveyError, InputError, ParameterError
from covey.web.pages.review import fit_values, review_page_with
from covey.web.pages.shared import (
    CheckedForm,
    CurrentWork,
    CurrentWorkspace,
    by_htmx,
    go,
    page,
    redirect_if_early,
    status,
)

router = APIRouter()


def moved(request: Request, path: str) -> Response:
    """Move on after a form, also where htmx has sent it."""
    return Response(headers={"hx-redirect": path}) if by_htmx(request) else go(path)


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
        if work.releasing:  # another page has begun it meanwhile
            return moved(request, f"/work/{work.id}/release")
        return review_page_with(request, workspace, work, str(error), status(error), form.all("wanted"))
    return moved(request, f"/work/{work.id}/release")


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
