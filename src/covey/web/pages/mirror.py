"""The steward's mirror: a bundle beside the true table, for the steward's eyes. Computed when asked for, and kept nowhere."""

from __future__ import annotations

from fastapi import APIRouter
from fastapi.responses import HTMLResponse, Response

from covey.errors import CoveyError
from covey.web.pages.bundle import the_bundle
from covey.web.pages.shared import Checked, Named
from covey.web.security import REPORT_POLICY, Refused
from covey.web.work import calling
from covey.workflow import evaluate

router = APIRouter()


@router.post("/work/{work_id}/evaluate")
def mirror(work: Named, form: Checked) -> Response:
    """True against synthetic as a page of its own: without noise, so it is confidential, and written to no file."""
    job, folder = the_bundle(work)
    table = work.table
    if table is None or str(table.path) != job.order["table"]:
        raise Refused(409, "The true rows of this bundle are no longer here, so there is nothing to compare it with.")
    try:
        found = evaluate(table.path, folder, dialect=work.dialect, person=job.order.get("person"), predicting=False)
    except CoveyError as error:
        raise calling(error, table.path, table.name) from None
    return HTMLResponse(found.page(), headers={"content-security-policy": REPORT_POLICY})
