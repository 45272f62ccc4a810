"""The evaluation: a bundle beside the true table, for the steward's eyes. Computed when asked for, and kept nowhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from covey.errors import CoveyError
from covey.web.pages.bundle import the_bundle
from covey.web.pages.shared import CheckedForm, CurrentWork, page
from covey.web.reading import with_file_names
from covey.web.security import REPORT_POLICY, Refused
from covey.workflow import evaluate

router = APIRouter()


@router.post("/work/{work_id}/evaluate")
def evaluation_page(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """True against synthetic as a page of its own: without noise, so it is confidential, and written to no file."""
    job, folder = the_bundle(work)
    if not work.tables or not all(str(table.path) in job.names for table in work.tables):
        raise Refused(409, "The real rows of this bundle are no longer here, so there is nothing to compare it with.")
    try:
        dialect = work.start.unit.schema.dialect
        person = job.order.get("person")
        found = evaluate(Path(job.order["table"]), folder, dialect=dialect, person=person, predicting=False)
    except CoveyError as error:
        raise with_file_names(error, *(table.file for table in work.tables)) from None
    if found.rows is None:
        return page(request, "evaluation.html", work=work, step="bundle", figures=found.figures)
    return HTMLResponse(found.page(), headers={"content-security-policy": REPORT_POLICY})
