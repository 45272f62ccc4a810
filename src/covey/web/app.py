"""The app's pages: Table → Columns → Rules → Privacy → Review → Release → Bundle, one address for each step.

Reading a page never changes anything; every change is a form of ours (see security) that ends in a redirect, or in a piece of
the page where htmx asked for one. Refusals are shown where the form was.
"""

from __future__ import annotations

import asyncio
import json
import os
import zipfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from fractions import Fraction
from math import log10
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import APIRouter, Depends, FastAPI, Request
from fastapi.responses import FileResponse, RedirectResponse, Response
from starlette.background import BackgroundTask
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.templating import Jinja2Templates

from covey.demo import example_visits
from covey.errors import CoveyError, LedgerError, ParameterError
from covey.privacy.ledger import default_ledger_path
from covey.release.bundle import check_rows, rows_path, verify_bundle
from covey.synthesizers import AnonymousSynthesizer, PrivateSynthesizer
from covey.table.schema import TYPES
from covey.table.sources import read_table
from covey.version import __version__
from covey.web import export
from covey.web.desk import Choices, Column, Desk, Work, prediction
from covey.web.forms import CONDITIONS, read_budget, read_choices, read_field, read_rule, rule_words, shown
from covey.web.jobs import Job
from covey.web.security import REPORT_POLICY, App, Form, Guard, Refused, Secrets, checked_form, megabytes
from covey.web.uploads import Upload
from covey.workflow import LARGE_EPSILON

HERE = Path(__file__).parent
STEPS = ("table", "columns", "rules", "privacy", "review", "release", "bundle")
ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")
CURVE = tuple(Fraction(repr(round(10 ** (k / 4), 3))) for k in range(-8, 5))  # the ε of the error curve, 0.01 to 10
PREVIEW_ROWS = 8
TIDY_SECONDS = 600

templates = Jinja2Templates(HERE / "templates")
templates.env.trim_blocks = templates.env.lstrip_blocks = True
templates.env.filters["shown"] = shown
templates.env.filters["number"] = export.number
templates.env.filters["rule"] = rule_words
templates.env.filters["megabytes"] = megabytes
templates.env.filters["fraction"] = Fraction
templates.env.filters["rows"] = lambda columns: list(zip(*columns, strict=True))
templates.env.globals.update(version=__version__, STEPS=STEPS, TYPES=TYPES)


def sentence(words: str) -> str:
    """A message with a capital, unless it begins with a name."""
    return words[:1].upper() + words[1:] if words.split(" ")[0].isalpha() else words


templates.env.filters["sentence"] = sentence


def make_app(desk: Desk, keys: Secrets, port: int) -> App:
    """The app behind its guard."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        tidying = asyncio.create_task(_tidy(desk))
        yield
        tidying.cancel()
        await run_in_threadpool(desk.close)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    app.state.desk, app.state.keys = desk, keys
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    app.include_router(router)
    app.add_exception_handler(CoveyError, _refusal)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(Exception, _fault)
    return Guard(cast(App, app), keys, port, desk.upload_limit)


async def _tidy(desk: Desk) -> None:
    """Now and then remove the rows that nobody works on any more."""
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        await run_in_threadpool(desk.sweep)


async def _refusal(request: Request, error: Exception) -> Response:
    if by_htmx(request):
        return page(request, "alert_piece.html", status(error), words=str(error))
    return page(request, "message.html", status(error), words=str(error))


async def _unknown(request: Request, error: Exception) -> Response:
    code = getattr(error, "status_code", 404)
    return page(request, "message.html", code, words="There is no such page.")


async def _fault(request: Request, error: Exception) -> Response:
    words = "Something went wrong inside covey. The ledger shows whether anything was charged."
    return page(request, "message.html", 500, words=words)


def status(error: Exception) -> int:
    """The HTTP status of a refusal."""
    if isinstance(error, Refused):
        return error.status
    return 409 if isinstance(error, LedgerError) else 422


def page(request: Request, name: str, code: int = 200, **values: Any) -> Response:
    """A page, with what every page needs."""
    work: Work | None = values.get("work")
    values.setdefault("reachable", work.reachable() if work else set())
    values["csrf"] = request.app.state.keys.form
    return templates.TemplateResponse(request, name, values, status_code=code)


def go(path: str) -> Response:
    """Move on after a form."""
    return RedirectResponse(path, 303)


def by_htmx(request: Request) -> bool:
    """Whether a piece of a page is asked for."""
    return request.headers.get("hx-request") == "true"


def the_desk(request: Request) -> Desk:
    """The state of the app."""
    return cast(Desk, request.app.state.desk)


# What is asynchronous answers at once. Everything that may wait, for the ledger or a disk, is a plain function and gets a
# thread of its own.


async def find_desk(request: Request) -> Desk:
    """The state of the app, for a page."""
    return the_desk(request)


async def find_work(request: Request, work_id: str) -> Work:
    """The table that the address names."""
    return the_desk(request).work(work_id)


Checked = Annotated[Form, Depends(checked_form)]
OnDesk = Annotated[Desk, Depends(find_desk)]
Named = Annotated[Work, Depends(find_work)]

router = APIRouter()


def turned_away(work: Work, step: str) -> Response | None:
    """Lead back to the step that comes first when a later one makes no sense yet."""
    return None if step in work.reachable() else go(f"/work/{work.id}/{work.step()}")


# The first page, and the ledger.


@router.get("/")
async def home(request: Request, desk: OnDesk) -> Response:
    """Tables on the desk, and the way in."""
    return page(request, "home.html", works=desk.works())


@router.get("/ledger")
def ledger_page(request: Request, desk: OnDesk) -> Response:
    """What was promised for each dataset, and spent."""
    found = desk.datasets()
    histories = {dataset.name: desk.ledger.history(dataset.name) for dataset in found}
    return page(request, "ledger.html", datasets=found, histories=histories, ledger=desk.ledger.path)


@router.post("/work")
def new_work(desk: OnDesk, form: Checked) -> Response:
    """Make room for a table."""
    return go(f"/work/{desk.new_work().id}/table")


@router.get("/work/{work_id}")
async def work_page(work: Named) -> Response:
    """Go on where the table is."""
    return go(f"/work/{work.id}/{work.step()}")


@router.post("/work/{work_id}/close")
def close_work(desk: OnDesk, work: Named, form: Checked) -> Response:
    """Take a table off the desk and remove its rows."""
    desk.close_work(work)
    return go("/")


# Table.


def table_page_with(request: Request, work: Work, error: str = "", code: int = 200) -> Response:
    """The first step."""
    limit = the_desk(request).upload_limit
    values = {"step": "table", "encodings": ENCODINGS, "limit": limit, "error": error}
    return page(request, "table.html", code, work=work, **values)


@router.get("/work/{work_id}/table")
async def table_page(request: Request, work: Named) -> Response:
    """Choose a table."""
    return table_page_with(request, work)


@router.post("/work/{work_id}/table")
async def upload_table(request: Request, desk: OnDesk, work: Named) -> Response:
    """Take a table, and a schema if there is one, from the browser."""
    upload = Upload(request, work.folder)
    await upload.receive()
    try:
        path, name = upload.files.get("table", (work.folder, ""))
        if not name:
            raise ParameterError("choose a table first.")
        schema = upload.files.get("schema")
        encoding = upload.fields.get("encoding", "utf-8")
        given = schema if schema is not None and schema[1] else None
        await run_in_threadpool(work.take, path, name, encoding, desk.upload_limit, given)
    except CoveyError as error:
        return table_page_with(request, work, str(error), status(error))
    finally:
        upload.discard()
    return go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/example")
def example_table(desk: OnDesk, work: Named, form: Checked) -> Response:
    """Try everything on a table of people who do not exist."""
    path = work.folder / "example"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    example_visits(path)
    work.take(path, "visits.csv", "utf-8", desk.upload_limit)
    return go(f"/work/{work.id}/columns")


# Columns.


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
                work.set_column(place, Column(replace(column.field, confirmed=False), action == "keep"))
            elif action == "reopen":
                work.set_column(place, Column(replace(column.field, confirmed=False)))
            else:
                confirm = action == "confirm"
                field = read_field(form, column.field, confirmed=False)
                work.set_column(place, Column(field))
                if confirm and not form.has("public"):
                    raise ParameterError("tick the box first: only you can say that this is public knowledge.")
                if confirm:
                    work.set_column(place, Column(replace(field, confirmed=True)))
    except CoveyError as refusal:
        error = str(refusal)
    code = 422 if error else 200
    values = column_values(work, place, error)
    if by_htmx(request):
        return page(request, "column_piece.html", code, step="columns", **values)
    if error:
        return page(request, "columns.html", code, work=work, step="columns", error=error)
    return go(f"/work/{work.id}/columns#column-{place}")


# Rules.


def rules_page_with(request: Request, work: Work, error: str = "", kind: str = "", code: int = 200) -> Response:
    """The rules, and a form for another."""
    values = {"step": "rules", "error": error, "kind": kind, "places": range(CONDITIONS)}
    return page(request, "rules.html", code, work=work, fields=work.schema().fields, **values)


@router.get("/work/{work_id}/rules")
async def rules_page(request: Request, work: Named) -> Response:
    """Say what holds for every row."""
    return turned_away(work, "rules") or rules_page_with(request, work)


@router.post("/work/{work_id}/rules")
def add_rule(request: Request, work: Named, form: Checked) -> Response:
    """Add a rule."""
    try:
        with work.lock:
            work.set_rules((*work.rules, read_rule(form, work.schema())))
    except CoveyError as error:
        return rules_page_with(request, work, str(error), form.get("kind"), status(error))
    return go(f"/work/{work.id}/rules")


@router.post("/work/{work_id}/rules/{place}/remove")
def remove_rule(work: Named, place: int, form: Checked) -> Response:
    """Take a rule away."""
    with work.lock:
        work.set_rules(tuple(rule for i, rule in enumerate(work.rules) if i != place))
    return go(f"/work/{work.id}/rules")


# Privacy.


def privacy_values(desk: Desk, work: Work, choices: Choices) -> dict[str, Any]:
    """What the privacy step and its live panel show, from public numbers and the ledger alone."""
    rows = work.table.rows if work.table else 1
    values: dict[str, Any] = {"work": work, "choices": choices, "n": rows, "large": LARGE_EPSILON}
    try:
        datasets = desk.datasets()
    except LedgerError as error:
        datasets, values["ledger_error"] = [], str(error)
    values["datasets"] = datasets
    chosen = next((d for d in datasets if d.name == choices.dataset), None)
    values["dataset"] = chosen
    values["fits"] = chosen is not None and (
        choices.epsilon <= chosen.remaining.epsilon and choices.delta <= chosen.remaining.delta
    )
    if choices.mode == "private":
        try:
            values["prediction"] = work.predict(choices)
            values["curve"] = error_curve(work, choices, rows)
        except CoveyError as error:
            values["problem"] = str(error)
    return values


def error_curve(work: Work, choices: Choices, rows: int) -> list[tuple[float, float]]:
    """Predicted error over ε, on the axes of the picture: both logarithmic, 0 to 1."""
    sizes = work.sizes()
    errors = [prediction(sizes, rows, e, choices.delta, choices.rows_per_person).error for e in CURVE]
    return [on_axes(float(e), error) for e, error in zip(CURVE, errors, strict=True)]


def on_axes(epsilon: float, error: float) -> tuple[float, float]:
    """A point of the error curve."""
    across = (log10(epsilon) + 2) / 3
    up = (log10(max(error, 1e-4)) + 4) / 4
    return round(min(max(across, 0), 1), 4), round(min(max(up, 0), 1), 4)


templates.env.globals.update(on_axes=on_axes)


@router.get("/work/{work_id}/privacy")
def privacy_page(request: Request, desk: OnDesk, work: Named) -> Response:
    """Choose the guarantee."""
    away = turned_away(work, "privacy")
    if away is not None:
        return away
    choices = work.choices
    if not choices.dataset and choices.mode == "private":
        try:
            names = [dataset.name for dataset in desk.datasets()]
        except LedgerError:
            names = []
        choices = replace(choices, dataset=names[0]) if len(names) == 1 else choices
    return page(request, "privacy.html", step="privacy", **privacy_values(desk, work, choices))


@router.get("/work/{work_id}/predict")
def predict_piece(request: Request, desk: OnDesk, work: Named) -> Response:
    """The live panel: predicted error and remaining budget for what the form says now."""
    if not work.confirmed:
        raise Refused(409, "Confirm the columns first.")
    form = Form({key: request.query_params.getlist(key) for key in request.query_params})
    try:
        values = privacy_values(desk, work, read_choices(form, work.choices))
    except CoveyError as error:
        values = {**privacy_values(desk, work, work.choices), "problem": str(error)}
    return page(request, "prediction_piece.html", **values)


@router.post("/work/{work_id}/privacy")
def choose_privacy(request: Request, desk: OnDesk, work: Named, form: Checked) -> Response:
    """Keep the choices, or say what is wrong with them."""
    choices = work.choices
    try:
        choices = read_choices(form, work.choices)
        check_choices(desk, work, choices)
    except CoveyError as error:
        values = privacy_values(desk, work, choices)
        return page(request, "privacy.html", status(error), step="privacy", error=str(error), **values)
    with work.lock:
        work.choices, work.chosen = choices, True
        work.changed()
    return go(f"/work/{work.id}/review")


def check_choices(desk: Desk, work: Work, choices: Choices) -> None:
    """Refuse now what the release would refuse: from public numbers and the ledger alone."""
    rows = work.table.rows if work.table else 1
    schema = work.schema()
    check_rows(rows if choices.rows is None else choices.rows, len(schema.fields), desk.out)
    if choices.mode == "anonymous":
        if choices.group_size > rows:
            raise ParameterError(f"the group size must not exceed the number of rows, {rows}.")
        AnonymousSynthesizer(choices.group_size, schema=schema)
        return
    PrivateSynthesizer(choices.epsilon, choices.delta, schema=schema, rows_per_person=choices.rows_per_person).check(
        rows
    )
    if choices.epsilon > LARGE_EPSILON and not choices.confirm_large_epsilon:
        raise ParameterError(
            f"ε = {float(choices.epsilon):g} is above {LARGE_EPSILON}, a weak guarantee. Under “More choices” you can "
            "say that you want it all the same."
        )
    if not choices.dataset:
        raise ParameterError("choose the dataset whose budget pays for this release, or open one.")
    desk.ledger.check(choices.dataset, choices.epsilon, choices.delta, choices.rows_per_person)


@router.post("/work/{work_id}/dataset")
def open_dataset(request: Request, desk: OnDesk, work: Named, form: Checked) -> Response:
    """Open a dataset in the ledger: a promise that is final."""
    with work.lock, suppress(CoveyError):  # what else the form says is kept; whether it is right is asked later
        work.choices = read_choices(form, work.choices)
    try:
        if not form.has("final"):
            raise ParameterError("tick the box first: a cap once set is final.")
        name, budget, delta_budget = read_budget(form)
        desk.ledger.open_dataset(name, budget, delta_budget)
    except CoveyError as error:
        values = privacy_values(desk, work, work.choices)
        return page(request, "privacy.html", status(error), step="privacy", dataset_error=str(error), **values)
    with work.lock:
        work.choices = replace(work.choices, dataset=name)
        work.changed()
    return go(f"/work/{work.id}/privacy#dataset")


# Review, and the same work without the app.


def exports(desk: Desk, work: Work) -> tuple[str, str]:
    """The command line and the script."""
    name, encoding = (work.table.name, work.table.encoding) if work.table else ("table.csv", "utf-8")
    ledger = None if desk.ledger.path == Path(os.path.realpath(default_ledger_path())) else desk.ledger.path
    return (
        export.command_line(work.choices, name, encoding, ledger),
        export.script(work.choices, name, encoding, ledger),
    )


def review_page_with(request: Request, desk: Desk, work: Work, error: str = "", code: int = 200) -> Response:
    """Everything that is about to happen."""
    values = privacy_values(desk, work, work.choices)
    command, script = exports(desk, work)
    key = work.review_key()
    values |= {"command": command, "script": script, "key": key, "job": work.jobs.get(key), "error": error}
    return page(request, "review.html", code, step="review", folder=desk.out, **values)


@router.get("/work/{work_id}/review")
def review_page(request: Request, desk: OnDesk, work: Named) -> Response:
    """Look once more before anything is spent."""
    return turned_away(work, "review") or review_page_with(request, desk, work)


@router.post("/work/{work_id}/again")
def review_again(work: Named, form: Checked) -> Response:
    """A fresh review of the same choices: another release, and another charge."""
    with work.lock:
        if work.job is not None and work.job.over:
            work.changed()
    return go(f"/work/{work.id}/review")


def attachment(text: str, name: str, kind: str) -> Response:
    """A file to keep."""
    return Response(text, media_type=kind, headers={"content-disposition": f'attachment; filename="{name}"'})


@router.get("/work/{work_id}/schema.json")
def schema_file(work: Named) -> Response:
    """The public schema."""
    text = json.dumps(work.schema().to_dict(), indent=2, ensure_ascii=False) + "\n"
    return attachment(text, export.SCHEMA, "application/json")


@router.get("/work/{work_id}/release.py")
def script_file(desk: OnDesk, work: Named) -> Response:
    """The script."""
    return attachment(exports(desk, work)[1], "release.py", "text/x-python")


@router.get("/work/{work_id}/release.sh")
def command_file(desk: OnDesk, work: Named) -> Response:
    """The command line."""
    return attachment(f"#!/bin/sh\nset -e\n{exports(desk, work)[0]}\n", "release.sh", "text/x-shellscript")


# Release.


@router.post("/work/{work_id}/release")
def release(request: Request, desk: OnDesk, work: Named, form: Checked) -> Response:
    """Start the release of this review; a second click finds the same job."""
    try:
        desk.release(work, form.get("review"))
    except CoveyError as error:
        return review_page_with(request, desk, work, str(error), status(error))
    return go(f"/work/{work.id}/release")


@router.get("/work/{work_id}/release")
async def release_page(request: Request, work: Named) -> Response:
    """How far the release has come; the page may be left and found again."""
    return turned_away(work, "release") or page(request, "release.html", work=work, step="release", job=work.job)


@router.get("/work/{work_id}/job")
async def job_piece(request: Request, work: Named) -> Response:
    """The part of the page that changes."""
    return page(request, "job_piece.html", work=work, job=work.job, polled=True)


@router.post("/work/{work_id}/cancel")
def cancel(request: Request, work: Named, form: Checked) -> Response:
    """Stop before the charge."""
    if work.job is not None:
        work.job.cancel()
    if by_htmx(request):
        return page(request, "job_piece.html", work=work, job=work.job, polled=True)
    return go(f"/work/{work.id}/release")


# Bundle.


def the_bundle(work: Work) -> tuple[Job, Path]:
    """The newest bundle."""
    done = [job for job in work.jobs.values() if job.state == "done"]
    if not done or not done[-1].bundle.is_dir():
        raise Refused(404, "There is no bundle here. It may have been moved.")
    return done[-1], done[-1].bundle


@router.get("/work/{work_id}/bundle")
def bundle_page(request: Request, work: Named) -> Response:
    """What was released."""
    away = turned_away(work, "bundle")
    if away is not None:
        return away
    job, folder = the_bundle(work)
    if "verified" not in job.result:
        job.result["verified"] = dict(verify_bundle(folder).facts)
        rows = read_table(rows_path(folder))
        columns = {name: [shown(v) for v in series.head(PREVIEW_ROWS)] for name, series in rows.columns.items()}
        job.result["preview"] = columns
    files = sorted((path.name, path.stat().st_size) for path in folder.iterdir())
    report = (folder / "report.html").is_file()
    return page(request, "bundle.html", work=work, step="bundle", job=job, folder=folder, files=files, report=report)


@router.get("/work/{work_id}/bundle/report")
def bundle_report(work: Named) -> Response:
    """The bundle's own report, in an origin of its own."""
    _, folder = the_bundle(work)
    if not (folder / "report.html").is_file():
        raise Refused(404, "This bundle has no report.")
    return FileResponse(
        folder / "report.html", media_type="text/html", headers={"content-security-policy": REPORT_POLICY}
    )


@router.get("/work/{work_id}/bundle.zip")
def bundle_zip(work: Named) -> Response:
    """The whole bundle in one file."""
    _, folder = the_bundle(work)
    place = work.folder / f"{folder.name}-{os.urandom(4).hex()}.zip"
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{folder.name}/{path.name}")
    return FileResponse(
        place, media_type="application/zip", filename=f"{folder.name}.zip", background=BackgroundTask(place.unlink)
    )
