"""The second step: what is public about each column."""

from __future__ import annotations

import json
from itertools import chain

from fastapi import APIRouter, Request
from fastapi.responses import Response

from covey.desk.web.drafts import ACTIONS, STATES, ColumnDraft, acted, confirmed, read_link
from covey.desk.web.pages.shared import CheckedForm, CurrentWork, by_htmx, go, page, redirect_if_early
from covey.desk.web.security import Form, Refused
from covey.desk.web.work import Work
from covey.errors import CoveyError, ParameterError

OPEN = 8  # columns up to which all stand open: they fit a few screens, and nobody has to look for what to do

router = APIRouter()


def columns_page_with(request: Request, work: Work, error: CoveyError | None = None) -> Response:
    """Every column, with what is known and typed about it: in groups, of which those that need a person come first."""
    tables = list(dict.fromkeys(column.table for column in work.columns))
    order = sorted(range(len(work.columns)), key=lambda k: tables.index(work.columns[k].table))
    groups = {state: [k for k in order if work.columns[k].state == state] for state in STATES}
    few = len(work.kept) <= OPEN
    return page(request, "columns.html", error, work=work, step="columns", opened=few, groups=groups)


def confirm_page_with(request: Request, work: Work, only: set[int], error: CoveyError | None = None) -> Response:
    """Exactly what becomes public, of some columns or all that are left, with the key of what is shown."""
    together, apart = work.drafts(only)
    if not together and not apart:
        return go(f"/work/{work.id}/columns")
    given = {"together": together, "apart": apart, "key": work.shown_key(only), "only": _written(only)}
    return page(request, "confirm.html", error, work=work, step="columns", **given)


@router.get("/work/{work_id}/columns")
async def columns_page(request: Request, work: CurrentWork) -> Response:
    """Confirm what is public about each column."""
    return redirect_if_early(work, "columns") or columns_page_with(request, work)


@router.post("/work/{work_id}/columns")
def change_columns(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Keep everything that stands in the forms of the page, then do one thing to the ticked columns, or to all of a group."""
    action, only = form.get("action", "confirm"), _places(work, form.all("place") or form.get("all").split())
    try:
        if form.has("all") and not only:
            raise ParameterError("no column is chosen.")
        with work.lock:
            for place, typed in read_typed(form.get("typed", "{}")).items():
                if place < len(work.columns) and work.columns[place].drafts:
                    work.edit_column(place, typed)
            if action in ACTIONS:
                work.act(action, only or range(len(work.columns)))
            else:
                for column in chain(*work.drafts(only)):
                    column.require_sound()
    except CoveyError as error:
        return columns_page_with(request, work, error)
    return go_on(work) if action in ACTIONS else go(_confirming(work, only))


def go_on(work: Work) -> Response:
    """To the rules once every column is public."""
    return go(f"/work/{work.id}/{'rules' if work.confirmed else 'columns'}")


def _confirming(work: Work, only: set[int]) -> str:
    return f"/work/{work.id}/columns/confirm" + (f"?only={_written(only, '+')}" if only else "")


def _places(work: Work, words: list[str]) -> set[int]:
    """Columns that a form names by their places."""
    return {int(word) for word in words if word.isdecimal() and int(word) < len(work.columns)}


def _written(places: set[int], between: str = " ") -> str:
    return between.join(map(str, sorted(places)))


def read_typed(text: str) -> dict[int, Form]:
    """The forms of a page, by the column they belong to, as our script gathers them."""
    try:
        forms = {int(place): dict(pairs) for place, pairs in json.loads(text).items()}
    except (ValueError, TypeError, AttributeError):
        raise Refused(400, "This form cannot be read.") from None
    return {place: Form({str(name): [str(value)] for name, value in form.items()}) for place, form in forms.items()}


@router.get("/work/{work_id}/columns/confirm")
def confirm_page(request: Request, work: CurrentWork, only: str = "") -> Response:
    """Confirm the rest, or some columns, with one word."""
    return redirect_if_early(work, "columns") or confirm_page_with(request, work, _places(work, only.split()))


@router.post("/work/{work_id}/columns/confirm")
def confirm_together(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Confirm every column without a warning that the page has shown, with one explicit word; of the others those ticked."""
    one_by_one, only = form.get("what") == "ticked", _places(work, form.get("only").split())
    try:
        if not form.has("own" if one_by_one else "public"):
            raise ParameterError("tick the box first. Only you can say that these values are public knowledge.")
        with work.lock:
            work.confirm_shown(form.get("key"), form.all("own") if one_by_one else (), only)
    except CoveyError as error:
        return confirm_page_with(request, work, only, error)
    return go(_confirming(work, only)) if one_by_one and work.drafts(only)[0] else go_on(work)


@router.post("/work/{work_id}/columns/link")
def change_link(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """Say how events hang together."""
    if work.link is None:
        raise Refused(404, "This table stands by itself.")
    try:
        with work.lock:
            work.set_link(read_link(form, work.start))
    except CoveyError as error:
        return columns_page_with(request, work, error)
    return go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/columns/{place}")
def change_column(request: Request, work: CurrentWork, place: int, form: CheckedForm) -> Response:
    """Change, confirm, leave out or take back one column. What was typed is kept first, whatever comes of the rest."""
    action, column, error = form.get("action", "edit"), the_column(work, place), None
    try:
        with work.lock:
            if action in ACTIONS:
                work.set_column(place, acted(column, action, work.said))
            else:
                work.edit_column(place, form)
                if action == "confirm":
                    work.set_column(place, confirmed(work.columns[place], form))
    except CoveyError as refusal:
        error = refusal
    if error is None and work.columns[place].problem:
        error = ParameterError(work.columns[place].problem)
    if by_htmx(request):  # the column stays in the group where it is seen
        values = {"place": place, "column": work.columns[place], "opened": True, "group": form.get("group")}
        return page(request, "column_piece.html", error, work=work, step="columns", **values)
    return columns_page_with(request, work, error) if error else go(f"/work/{work.id}/columns#column-{place}")


def the_column(work: Work, place: int) -> ColumnDraft:
    """A column that is there."""
    if not 0 <= place < len(work.columns):
        raise Refused(404, "There is no such column.")
    return work.columns[place]


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
        if column.drafts and form.get("type", column.field.type) == column.field.type:
            work.edit_column(place, form)
        column = work.columns[place]
        picture = None if column.problem else work.picture(place)
    outside = picture.outside(column.field) if picture is not None else None
    return page(request, "typed_piece.html", work=work, column=column, field=column.field, outside=outside)
