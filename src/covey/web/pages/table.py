"""The first step: a table, and a schema if there is one."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from covey.demo import example_visits
from covey.errors import CoveyError, ParameterError
from covey.table.dialects import DECIMALS, Dialect
from covey.web.folders import private_file
from covey.web.pages.shared import CheckedForm, CurrentWork, CurrentWorkspace, go, page, redirect_if_early
from covey.web.security import Upload
from covey.web.work import Work
from covey.web.workspace import Workspace

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
    upload = Upload(request, work.folder)
    await upload.receive()
    try:
        # An empty field is a file without a name.
        files = {part: file for part, file in upload.files.items() if file[1]}
        if "table" not in files:
            raise ParameterError("choose a table first.")
        told = {name: text.strip() for name, text in upload.fields.items()}
        encoding = told.get("encoding", "utf-8")
        said = Dialect(
            encoding=None if encoding == "utf-8" else encoding,
            decimal=told.get("decimal") or None,
            thousands=MARKS.get(told.get("thousands", "")),
            date_format=told.get("date_format") or None,
        )
        await run_in_threadpool(work.read, files, workspace.upload_limit, said, told.get("whose", ""))
    except CoveyError as error:
        return await run_in_threadpool(table_page_with, request, workspace, work, error)
    finally:
        upload.discard()
    return go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/example")
def example_table(workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Try everything on a table of people who do not exist."""
    path = work.folder / "example"
    with private_file(path):
        example_visits(path)
    work.read({"table": (path, "visits.csv")}, workspace.upload_limit, Dialect())
    return go(f"/work/{work.id}/columns")
