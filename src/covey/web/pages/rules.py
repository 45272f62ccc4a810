"""The third step: what holds for every row."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.errors import CoveyError
from covey.web.forms import CONDITIONS, read_rule
from covey.web.pages.shared import CheckedForm, CurrentWork, go, page, redirect_if_early, status
from covey.web.security import Form
from covey.web.work import Work

router = APIRouter()


def rules_page_with(
    request: Request, work: Work, error: str = "", form: Form | None = None, code: int = 200
) -> Response:
    """The rules, and a form for another; after a refusal it holds what was typed."""
    given = form or Form({})
    values = {"step": "rules", "error": error, "said": given.get, "chosen": given.all, "places": range(CONDITIONS)}
    return page(request, "rules.html", code, work=work, fields=work.joint().fields, **values)


@router.get("/work/{work_id}/rules")
async def rules_page(request: Request, work: CurrentWork) -> Response:
    """Say what holds for every row."""
    return redirect_if_early(work, "rules") or rules_page_with(request, work)


@router.post("/work/{work_id}/rules")
def add_rule(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Add a rule."""
    try:
        with work.lock:
            work.set_rules((*work.rules, read_rule(form, work.joint())))
    except CoveyError as error:
        return rules_page_with(request, work, str(error), form, status(error))
    return go(f"/work/{work.id}/rules")


@router.post("/work/{work_id}/rules/{place}/remove")
def remove_rule(work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Take a rule away."""
    with work.lock:
        work.set_rules(tuple(rule for i, rule in enumerate(work.rules) if i != place))
    return go(f"/work/{work.id}/rules")
