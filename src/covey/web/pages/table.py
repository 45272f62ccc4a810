"""The first step: a table, and a schema if there is one."""

from __future__ import annotations

import os

from fastapi import APIRouter, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from covey.demo import example_visits
from covey.errors import CoveyError, ParameterError
from covey.table.dialects import DECIMALS, Dialect
from covey.web.pages.shared import (
    CheckedForm,
    CurrentWork,
    CurrentWorkspace,
    go,
    page,
    redirect_if_early,
    status,
    workspace_of,
)
from covey.web.reading import GivenFiles
from covey.web.uploads import Upload
from covey.web.work import Work

MARKS = {"point": ".", "comma": ",", "space": " ", "apostrophe": "'", "none": ""}
ENCODINGS = ("utf-8", "utf-16", "latin-1", "cp1252")  # those that spreadsheets write

router = APIRouter()


def table_page_with(request: Request, work: Work, error: str = "", code: int = 200) -> Response:
    """The first step."""
    workspace = workspace_of(request)
    values = {
        "step": "table",
        "encodings": ENCODINGS,
        "decimals": DECIMALS,
        "marks": tuple(MARKS),
        "limit": workspace.upload_limit,
        "error": error,
    }
    values["aftermath"] = workspace.aftermath(work)
    return page(request, "table.html", code, work=work, **values)


@router.get("/work/{work_id}/table")
def table_page(request: Request, work: CurrentWork) -> Response:
    """Choose a table."""
    return redirect_if_early(work, "table") or table_page_with(request, work)


@router.post("/work/{work_id}/table")
async def upload_table(request: Request, workspace: CurrentWorkspace, work: CurrentWork) -> Response:
    """Take a table, and a schema if there is one, from the browser."""
    upload = Upload(request, work.folder)
    await upload.receive()
    try:
        files = {
            part: file for part, file in upload.files.items() if file[1]
        }  # an empty field is a file without a name
        if "table" not in files:
            raise ParameterError("choose a table first.")
        said = upload.fields.get
        given = GivenFiles(
            files["table"],
            said("encoding", "utf-8"),
            files.get("schema"),
            files.get("events"),
            said("whose", "").strip(),
            Dialect(
                decimal=said("decimal") or None,
                thousands=MARKS.get(said("thousands", "")),
                date_format=said("date_format", "").strip() or None,
            ),
        )
        await run_in_threadpool(work.read, given, workspace.upload_limit)
    except CoveyError as error:
        return await run_in_threadpool(table_page_with, request, work, str(error), status(error))
    finally:
        upload.discard()
    return go(f"/work/{work.id}/columns")


@router.post("/work/{work_id}/example")
def example_table(workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Try everything on a table of people who do not exist."""
    path = work.folder / "example"
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
    example_visits(path)
    work.read(GivenFiles((path, "visits.csv")), workspace.upload_limit)
    return go(f"/work/{work.id}/columns")
