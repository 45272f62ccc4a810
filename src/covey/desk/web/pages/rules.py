"""The third step: what holds for every row."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.desk.web.drafts import describe
from covey.desk.web.forms import CONDITIONS, read_rule
from covey.desk.web.pages.shared import CheckedForm, CurrentWork, go, page, redirect_if_early
from covey.desk.web.security import NO_FORM, Form
from covey.desk.web.work import Work
from covey.errors import CoveyError

router = APIRouter()


def rules_page_with(request: Request, work: Work, error: CoveyError | None = None, form: Form = NO_FORM) -> Response:
    """The rules, and a form for another; after a refusal it holds what was typed."""
    values = {"step": "rules", "said": form.get, "chosen": form.all, "places": range(CONDITIONS)}
    return page(request, "rules.html", error, work=work, fields=work.joint().fields, **values)


@router.get("/work/{work_id}/rules")
async def rules_page(request: Request, work: CurrentWork) -> Response:
    """Say what holds for every row."""
    return redirect_if_early(work, "rules") or rules_page_with(request, work)


@router.post("/work/{work_id}/rules")
def add_rule(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Add a rule."""
    try:
        with work.lock:
            rules = (*work.rules, read_rule(form, work.joint()))
            _ = describe(work.start, work.columns, rules).codecs  # rules that contradict each other are refused
            work.change(rules=rules)
    except CoveyError as error:
        return rules_page_with(request, work, error, form)
    return go(f"/work/{work.id}/rules")


@router.get("/work/{work_id}/rules/seen")
def seen_piece(request: Request, work: CurrentWork) -> Response:
    """Relations that the true table has, for its owner's eyes: none is used before it is added."""
    return page(request, "seen_piece.html", work=work, seen=work.seen() if "rules" in work.reachable() else [])


@router.post("/work/{work_id}/rules/seen")
def add_seen(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Add a relation that was seen, as public knowledge."""
    try:
        work.add_seen(form.get("words"))
    except CoveyError as error:
        return rules_page_with(request, work, error)
    return go(f"/work/{work.id}/rules")


@router.post("/work/{work_id}/rules/computed/{place}/remove")
def measure_again(request: Request, work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Measure a computed column again."""
    try:
        with work.lock:
            if place in work.computed:
                work.measure_again(place)
    except CoveyError as error:
        return rules_page_with(request, work, error)
    return go(f"/work/{work.id}/rules")


@router.post("/work/{work_id}/rules/{place}/remove")
def remove_rule(work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Take a rule away."""
    with work.lock:
        work.change(rules=tuple(rule for i, rule in enumerate(work.rules) if i != place))
    return go(f"/work/{work.id}/rules")
