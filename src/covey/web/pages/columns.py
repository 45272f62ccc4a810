"""The second step: what is public about each column."""

from __future__ import annotations

import json
from collections.abc import Callable

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.errors import CoveyError, ParameterError
from covey.web.drafts import STATES, ColumnDraft, confirmed, read_link, reopened, to_learn
from covey.web.pages.shared import CheckedForm, CurrentWork, by_htmx, go, page, redirect_if_early
from covey.web.security import Form, Refused
from covey.web.work import Work

OPEN = 8  # columns up to which all stand open: they fit a few screens, and nobody has to look for what to do

router = APIRouter()


def columns_page_with(request: Request, work: Work, error: CoveyError | None = None) -> Response:
    """Every column, with what is known and typed about it."""
    tables = list(dict.fromkeys(column.table for column in work.columns))
    places = sorted(  # of each table first what needs a person
        range(len(work.columns)),
        key=lambda k: (tables.index(work.columns[k].table), STATES.index(work.columns[k].state)),
    )
    few = len(work.kept) <= OPEN
    return page(request, "columns.html", error, work=work, step="columns", opened=few, places=places)


def confirm_page_with(request: Request, work: Work, error: CoveyError | None = None) -> Response:
    """Exactly what becomes public, with the key of what is shown."""
    return page(request, "confirm.html", error, work=work, step="columns", key=work.shown_key())


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
            for column in work.kept:
                column.require_sound()
    except CoveyError as error:
        return columns_page_with(request, work, error)
    return go(f"/work/{work.id}/columns/confirm")


def read_typed(text: str) -> dict[int, Form]:
    """The forms of a page, by the column they belong to, as our script gathers them."""
    found: dict[int, Form] = {}
    try:
        for place, pairs in json.loads(text).items():
            values: dict[str, list[str]] = {}
            for name, value in pairs:
                values.setdefault(str(name), []).append(str(value))
            found[int(place)] = Form(values)
    except (ValueError, TypeError, AttributeError):
        raise Refused(400, "This form cannot be read.") from None
    return found


@router.get("/work/{work_id}/columns/confirm")
def confirm_page(request: Request, work: CurrentWork) -> Response:
    """Confirm the rest with one word."""
    if (away := redirect_if_early(work, "columns")) is not None:
        return away
    return confirm_page_with(request, work) if work.together or work.apart else go(f"/work/{work.id}/columns")


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
        return confirm_page_with(request, work, error)
    left = "columns/confirm" if one_by_one and work.together else "columns"
    return go(f"/work/{work.id}/{'rules' if work.confirmed else left}")


def attempt(request: Request, work: Work, change: Callable[[], None]) -> Response | None:
    """Change columns, or the page with the reason why that cannot be."""
    try:
        with work.lock:
            change()
    except CoveyError as error:
        return columns_page_with(request, work, error)
    return None


@router.post("/work/{work_id}/columns/learn")
def learn_rest(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Learn with noise what is kept and not confirmed, except what may point to persons."""
    refusal = attempt(request, work, work.learn_rest)
    return refusal or go(f"/work/{work.id}/{'rules' if work.confirmed else 'columns'}")


@router.post("/work/{work_id}/columns/drop")
def drop_shown(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Leave out the columns that the filter shows."""
    places = {int(word) for word in form.get("places").split() if word.isdecimal()}

    def drop() -> None:
        work.change(tuple(reopened(c, False) if place in places else c for place, c in enumerate(work.columns)))

    return attempt(request, work, drop) or go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/columns/link")
def change_link(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Say how events hang together."""
    if work.link is None:
        raise Refused(404, "This table stands by itself.")
    refusal = attempt(request, work, lambda: work.set_link(read_link(form, work.start)))
    return refusal or go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/columns/{place}")
def change_column(request: Request, work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Change, confirm, leave out or take back one column."""
    the_column(work, place)
    error: CoveyError | None = None
    try:
        with work.lock:
            act(work, place, form)
    except CoveyError as refusal:
        error = refusal
    if error is None and work.columns[place].problem:
        error = ParameterError(work.columns[place].problem)
    if by_htmx(request):
        values = {"place": place, "column": work.columns[place], "opened": True}
        return page(request, "column_piece.html", error, work=work, step="columns", **values)
    return columns_page_with(request, work, error) if error else go(f"/work/{work.id}/columns#column-{place}")


def the_column(work: Work, place: int) -> ColumnDraft:
    """A column that is there."""
    if not 0 <= place < len(work.columns):
        raise Refused(404, "There is no such column.")
    return work.columns[place]


def act(work: Work, place: int, form: Form) -> None:
    """Do what the button says. What was typed is kept first, whatever comes of the rest."""
    action, column = form.get("action", "edit"), work.columns[place]
    if action in ("drop", "keep", "reopen"):
        work.set_column(place, reopened(column, action != "drop"))
    elif action == "learn":
        work.set_column(place, to_learn(column, work.said))
    else:
        work.edit_column(place, form)
        if action == "confirm":
            work.set_column(place, confirmed(work.columns[place], form))


@router.get("/work/{work_id}/columns/{place}/picture")
def picture_piece(request: Request, work: CurrentWork, place: int) -> Response:
    """What the true column looks like, for its owner's eyes."""
    field = the_column(work, place).field
    return page(request, "picture_piece.html", work=work, picture=work.picture(place), field=field)


@router.post("/work/{work_id}/columns/{place}/typed")
def keep_typed(request: Request, work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Keep what is being typed, and say quietly what is wrong with it."""
    with work.lock:
        column = the_column(work, place)
        if column.kept and not column.field.confirmed and form.get("type", column.field.type) == column.field.type:
            work.edit_column(place, form)
        column = work.columns[place]
        picture = None if column.problem else work.picture(place)
    outside = picture.outside(column.field) if picture is not None else None
    return page(request, "typed_piece.html", work=work, column=column, field=column.field, outside=outside)
