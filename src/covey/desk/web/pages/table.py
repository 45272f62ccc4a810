"""The first step: a table, and a schema if there is one."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from covey.desk.demo import example_visits
from covey.desk.web.pages.shared import CheckedForm, CurrentWork, CurrentWorkspace, go, page, redirect_if_early
from covey.desk.web.security import checked_upload, discard
from covey.desk.web.work import Work
from covey.desk.web.workspace import Workspace
from covey.errors import CoveyError, ParameterError
from covey.release.places import private_file
from covey.tables.dialects import DECIMALS, Dialect

MARKS = {"point": ".", "comma": ",", "space": " ", "apostrophe": "'", "none": ""}

router = APIRouter()


def table_page_with(request: Request, workspace: Workspace, work: Work, error: CoveyError | None = None) -> Response:
    """The first step."""
    values = {"decimals": DECIMALS, "marks": tuple(MARKS), "limit": workspace.upload_limit}
    aftermath = workspace.aftermath(work)
    return page(request, "table.html", error, work=work, step="table", aftermath=aftermath, **values)


@router.get("/work/{work_id}/table")
def table_page(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """Choose a table."""
    return redirect_if_early(work, "table") or table_page_with(request, workspace, work)


@router.post("/work/{work_id}/table")
async def upload_table(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """Take a table, and a schema if there is one, from the browser."""
    form, files = await checked_upload(request, work.folder)
    try:
        if "table" not in files:
            raise ParameterError("choose a table first.")
        said = Dialect(
            encoding=None if form.get("encoding", "utf-8") == "utf-8" else form.get("encoding"),
            decimal=form.get("decimal") or None,
            thousands=MARKS.get(form.get("thousands")),
            date_format=form.get("date_format") or None,
        )
        await run_in_threadpool(work.read, files, workspace.upload_limit, said, form.get("whose"))
    except CoveyError as error:
        return await run_in_threadpool(table_page_with, request, workspace, work, error)
    finally:
        discard(files)
    return go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/example")
def example_table(workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Try everything on a table of people who do not exist."""
    path = work.folder / "example"
    private_file(path, "w").close()
    example_visits(path)
    work.read({"table": (path, "visits.csv")}, workspace.upload_limit, Dialect())
    return go(f"/work/{work.id}/columns")
