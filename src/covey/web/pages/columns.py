"""The second step: what is public about each column."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.errors import CoveyError, ParameterError
from covey.web.forms import read_field
from covey.web.pages.shared import Checked, Named, by_htmx, go, page, status, turned_away
from covey.web.security import Refused
from covey.web.work import ColumnDraft, Work

router = APIRouter()


def column_values(work: Work, place: int, error: str = "", kind: str = "") -> dict[str, Any]:
    """What the card of a column shows."""
    return {"work": work, "place": place, "column": work.columns[place], "error": error, "kind": kind}


@router.get("/work/{work_id}/columns")
async def columns_page(request: Request, work: Named) -> Response:
    """Confirm what is public about each column."""
    return turned_away(work, "columns") or page(request, "columns.html", work=work, step="columns")


@router.post("/work/{work_id}/columns")
def confirm_all(request: Request, work: Named, form: Checked) -> Response:
    """Confirm every column that is left, with one explicit word."""
    try:
        if not form.has("public"):
            raise ParameterError("tick the box first: only you can say that these values are public knowledge.")
        with work.lock:
            work.confirm_all()
    except CoveyError as error:
        return page(request, "columns.html", status(error), work=work, step="columns", error=str(error))
    return go(f"/work/{work.id}/rules")


@router.post("/work/{work_id}/columns/{place}")
def change_column(request: Request, work: Named, place: int, form: Checked) -> Response:
    """Change, confirm, leave out or take back one column."""
    if not 0 <= place < len(work.columns):
        raise Refused(404, "There is no such column.")
    error, action = "", form.get("action", "edit")
    try:
        with work.lock:
            column = work.columns[place]
            if action in ("drop", "keep"):
                work.set_column(place, ColumnDraft(replace(column.field, confirmed=False), action == "keep"))
            elif action == "reopen":
                work.set_column(place, ColumnDraft(replace(column.field, confirmed=False)))
            else:
                confirm = action == "confirm"
                field = read_field(form, column.field, confirmed=False)
                work.set_column(place, ColumnDraft(field))
                if confirm and not form.has("public"):
                    raise ParameterError("tick the box first: only you can say that this is public knowledge.")
                if confirm:
                    work.set_column(place, ColumnDraft(replace(field, confirmed=True)))
    except CoveyError as refusal:
        error = str(refusal)
    code = 422 if error else 200
    values = column_values(work, place, error)
    if by_htmx(request):
        return page(request, "column_piece.html", code, step="columns", **values)
    if error:
        return page(request, "columns.html", code, work=work, step="columns", error=error)
    return go(f"/work/{work.id}/columns#column-{place}")
