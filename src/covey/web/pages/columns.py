"""The second step: what is public about each column."""

from __future__ import annotations

import json
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.errors import CoveyError, ParameterError
from covey.web.describing import read_link
from covey.web.drafts import confirmed, reopened, to_learn
from covey.web.pages.shared import CheckedForm, CurrentWork, by_htmx, go, page, redirect_if_early, status
from covey.web.security import Form, Refused
from covey.web.work import Work

OPEN = 8  # columns up to which all stand open: they fit a few screens, and nobody has to look for what to do

router = APIRouter()


def columns_page_with(request: Request, work: Work, error: str = "", code: int = 200) -> Response:
    """Every column, with what is known and typed about it."""
    few = sum(column.kept for column in work.columns) <= OPEN
    return page(request, "columns.html", code, work=work, step="columns", error=error, opened=few)


@router.get("/work/{work_id}/columns")
async def columns_page(request: Request, work: CurrentWork) -> Response:
    """Confirm what is public about each column."""
    return redirect_if_early(work, "columns") or columns_page_with(request, work)


@router.post("/work/{work_id}/columns")
def save_all(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Keep everything that stands in the forms of the page, then show what would become public."""
    try:
        with work.lock:
            for place, typed in read_typed(form.get("typed", "{}")).items():
                if place < len(work.columns) and work.columns[place].kept and not work.columns[place].field.confirmed:
                    work.edit_column(place, typed)
            wrong = [column for column in work.columns if column.kept and column.problem]
        if wrong:
            raise ParameterError(f"{wrong[0].called}: {wrong[0].problem}")
    except CoveyError as error:
        return columns_page_with(request, work, str(error), status(error))
    return go(f"/work/{work.id}/columns/confirm")


def read_typed(text: str) -> dict[int, Form]:
    """The forms of a page, by the column they belong to, as our script gathers them."""
    try:
        forms = {
            int(place): [(str(name), str(value)) for name, value in pairs] for place, pairs in json.loads(text).items()
        }
    except (ValueError, TypeError, AttributeError):
        raise Refused(400, "This form cannot be read.") from None
    return {
        place: Form({name: [v for n, v in pairs if n == name] for name, _ in pairs}) for place, pairs in forms.items()
    }


@router.get("/work/{work_id}/columns/confirm")
def confirm_page(request: Request, work: CurrentWork) -> Response:
    """Exactly what becomes public if the rest is confirmed with one word."""
    away = redirect_if_early(work, "columns")
    if away is not None:
        return away
    return confirm_page_with(request, work) if work.together or work.apart else go(f"/work/{work.id}/columns")


def confirm_page_with(request: Request, work: Work, error: str = "", code: int = 200) -> Response:
    """The page that names what becomes public, with the key of what it shows."""
    return page(request, "confirm.html", code, work=work, step="columns", key=work.shown_key(), error=error)


@router.post("/work/{work_id}/columns/confirm")
def confirm_together(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Confirm every column without a warning that the page has shown, with one explicit word; of the others those ticked."""
    one_by_one = form.get("what") == "ticked"
    try:
        if not form.has("own" if one_by_one else "public"):
            raise ParameterError("tick the box first. Only you can say that these values are public knowledge.")
        with work.lock:
            work.confirm_shown(form.get("key"), form.all("own") if one_by_one else ())
    except CoveyError as error:
        return confirm_page_with(request, work, str(error), status(error))
    left = "columns/confirm" if one_by_one and work.together else "columns"
    return go(f"/work/{work.id}/{'rules' if work.confirmed else left}")


@router.post("/work/{work_id}/columns/learn")
def learn_rest(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Learn with noise what is kept and not confirmed, except what may point to persons."""
    try:
        with work.lock:
            work.learn_rest()
    except CoveyError as error:
        return columns_page_with(request, work, str(error), status(error))
    return go(f"/work/{work.id}/{'rules' if work.confirmed else 'columns'}")


@router.post("/work/{work_id}/columns/drop")
def drop_shown(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Leave out the columns that the filter shows."""
    places = [int(word) for word in form.get("places").split() if word.isdecimal()]
    try:
        with work.lock:
            for place in places:
                work.set_column(the_place(work, place), reopened(work.columns[place], False))
    except CoveyError as error:
        return columns_page_with(request, work, str(error), status(error))
    return go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/columns/link")
def change_link(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Say how events hang together."""
    try:
        with work.lock:
            if work.link is None:
                raise Refused(404, "This table stands by itself.")
            work.set_link(read_link(form, work.start))
    except CoveyError as error:
        return columns_page_with(request, work, str(error), status(error))
    return go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/columns/{place}")
def change_column(request: Request, work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Change, confirm, leave out or take back one column."""
    error = ""
    try:
        with work.lock:
            act(work, the_place(work, place), form)
    except CoveyError as refusal:
        error = str(refusal)
    error = error or work.columns[place].problem
    code = 422 if error else 200
    if by_htmx(request):
        values: dict[str, Any] = {"place": place, "column": work.columns[place], "error": error, "opened": True}
        return page(request, "column_piece.html", code, work=work, step="columns", **values)
    if error:
        return columns_page_with(request, work, error, code)
    return go(f"/work/{work.id}/columns#column-{place}")


def the_place(work: Work, place: int) -> int:
    """The place of a column that is there."""
    if not 0 <= place < len(work.columns):
        raise Refused(404, "There is no such column.")
    return place


def act(work: Work, place: int, form: Form) -> None:
    """Do what the button says. What was typed is kept first, whatever comes of the rest."""
    action, column = form.get("action", "edit"), work.columns[place]
    if action in ("drop", "keep", "reopen"):
        work.set_column(place, reopened(column, action != "drop"))
        return
    if action == "learn":
        work.set_column(place, to_learn(column, work.said))
        return
    work.edit_column(place, form)
    if action == "confirm":
        work.set_column(place, confirmed(work.columns[place], form))


@router.get("/work/{work_id}/columns/{place}/picture")
def picture_piece(request: Request, work: CurrentWork, place: int) -> Response:
    """What the true column looks like, for its owner's eyes."""
    picture = work.picture(the_place(work, place))
    return page(request, "picture_piece.html", work=work, picture=picture, field=work.columns[place].field)


@router.post("/work/{work_id}/columns/{place}/typed")
def keep_typed(request: Request, work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Keep what is being typed, and say quietly what is wrong with it."""
    with work.lock:
        column = work.columns[the_place(work, place)]
        if column.kept and not column.field.confirmed and form.get("type", column.field.type) == column.field.type:
            work.edit_column(place, form)
        column = work.columns[place]
        picture = None if column.problem else work.picture(place)
    outside = picture.outside(column.field) if picture is not None else None
    values: dict[str, Any] = {"problem": column.problem, "field": column.field, "outside": outside}
    return page(request, "typed_piece.html", work=work, **values)
