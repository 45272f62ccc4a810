"""The first page, and the ledger."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, Response

from covey.web.pages.history import found_bundles
from covey.web.pages.shared import CheckedForm, CurrentWork, CurrentWorkspace, go, page

router = APIRouter()


@router.get("/")
async def home(request: Request, workspace: CurrentWorkspace) -> Response:
    """Tables in the workspace, and the way in."""
    return page(request, "home.html", works=workspace.works())


@router.get("/alive")
async def alive(workspace: CurrentWorkspace) -> Response:
    """Every page asks this now and then: that covey answers, and which tables are being released."""
    return JSONResponse({"releasing": [work.id for work in workspace.works() if work.releasing]})


@router.get("/ledger")
def ledger_page(request: Request, workspace: CurrentWorkspace) -> Response:
    """What was promised for each dataset, and spent."""
    found = workspace.datasets()
    histories = {dataset.name: workspace.ledger.history(dataset.name) for dataset in found}
    bundles, known = found_bundles(workspace), {e.digest for own in histories.values() for e in own}
    others = [found for digest, found in bundles.items() if digest not in known]  # anonymous ones, or of another ledger
    values: dict[str, Any] = {"histories": histories, "bundles": bundles, "others": others, "out": workspace.out}
    return page(request, "ledger.html", datasets=found, ledger=workspace.ledger.path, **values)


@router.post("/work")
def new_work(workspace: CurrentWorkspace, form: CheckedForm) -> Response:
    """Make room for a table."""
    return go(f"/work/{workspace.new_work().id}/table")


@router.get("/work/{work_id}")
async def work_page(work: CurrentWork) -> Response:
    """Go on where the table is."""
    return go(f"/work/{work.id}/{work.step()}")


@router.post("/work/{work_id}/close")
def close_work(workspace: CurrentWorkspace, work: CurrentWork, form: CheckedForm) -> Response:
    """Take a table from the workspace and remove its rows."""
    workspace.close_work(work)
    return go("/")
