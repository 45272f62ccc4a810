"""The first page, and the ledger: bundles that were written before are found again by their checksums, after a restart too."""

from __future__ import annotations

from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response

from covey.desk.web.pages.shared import CheckedForm, CurrentWork, CurrentWorkspace, go, page, report_of
from covey.desk.web.security import REPORT_POLICY, Refused
from covey.desk.web.workspace import Workspace
from covey.release.answers.load import stored
from covey.release.places import SUMS
from covey.release.report import two_releases
from covey.release.verify import bundle_digest

router = APIRouter()


@router.get("/")
async def home(request: Request, workspace: CurrentWorkspace) -> Response:
    """Tables in the workspace, and the way in."""
    return page(request, "home.html", works=workspace.works())


@router.get("/alive")
async def alive(workspace: CurrentWorkspace) -> Response:
    """Every page asks this now and then: that covey answers, and which tables are being released."""
    return JSONResponse({"releasing": [work.id for work in workspace.works() if work.releasing]})


def found_bundles(workspace: Workspace) -> dict[str, Path]:
    """Every bundle in the folder that releases go to, by the digest that the ledger knows it by."""
    if not workspace.out.is_dir():
        return {}
    places = sorted(p for p in workspace.out.iterdir() if not p.is_symlink() and (p / SUMS).is_file())
    return {bundle_digest(place): place for place in places}


@router.get("/ledger")
def ledger_page(request: Request, workspace: CurrentWorkspace) -> Response:
    """What was promised for each dataset, and spent."""
    histories = {dataset: workspace.ledger.history(dataset.name) for dataset in workspace.ledger.datasets()}
    bundles, known = found_bundles(workspace), {e.digest for own in histories.values() for e in own}
    others = {digest: place for digest, place in bundles.items() if digest not in known}
    return page(request, "ledger.html", histories=histories, bundles=bundles, others=others, workspace=workspace)


@router.get("/ledger/bundle/{digest}")
def old_report(workspace: CurrentWorkspace, digest: str) -> Response:
    """The report of a bundle that the ledger knows."""
    return report_of(found_bundles(workspace).get(digest))  # a digest names a bundle; no path is built from it


@router.get("/ledger/beside")
def two_bundles(workspace: CurrentWorkspace, one: str = "", two: str = "") -> Response:
    """Two bundles side by side, from what is public in both."""
    places = [place for digest in (one, two) if (place := found_bundles(workspace).get(digest)) is not None]
    if len(set(places)) < 2:
        raise Refused(422, "Choose two different bundles that are still in the folder.")
    found = two_releases([place.name for place in places], [stored(place) for place in places])
    return HTMLResponse(found, headers={"content-security-policy": REPORT_POLICY})


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
