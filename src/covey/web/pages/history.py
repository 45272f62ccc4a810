"""Bundles that were written before, found again by their checksums: after a restart too."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from fastapi import APIRouter
from fastapi.responses import FileResponse, Response

from covey.release.places import SUMS
from covey.release.verify import bundle_digest
from covey.web.pages.shared import CurrentWorkspace
from covey.web.security import REPORT_POLICY, Refused
from covey.web.workspace import Workspace

router = APIRouter()


@dataclass(frozen=True)
class Found:
    """A bundle in the folder that releases go to."""

    name: str
    folder: Path
    digest: str

    @property
    def has_report(self) -> bool:
        """Whether it has a page to read."""
        return (self.folder / "report.html").is_file()


def found_bundles(workspace: Workspace) -> dict[str, Found]:
    """Every bundle in the folder, by the digest that the ledger knows it by."""
    if not workspace.out.is_dir():
        return {}
    places = sorted(p for p in workspace.out.iterdir() if not p.is_symlink() and (p / SUMS).is_file())
    listed = [Found(place.name, place, bundle_digest(place)) for place in places]
    return {found.digest: found for found in listed}


@router.get("/ledger/bundle/{digest}")
def old_report(workspace: CurrentWorkspace, digest: str) -> Response:
    """The report of a bundle that the ledger knows, in an origin of its own."""
    found = found_bundles(workspace).get(digest)  # a digest names a bundle; no path is built from it
    if found is None or not found.has_report:
        raise Refused(404, "This bundle is no longer in the folder that releases go to. It may have been moved.")
    page = found.folder / "report.html"
    return FileResponse(page, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})
