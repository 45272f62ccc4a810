"""The last step: the bundle, and an evaluation beside the true table, computed when asked for and kept nowhere."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path

from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.background import BackgroundTask

from covey.errors import CoveyError
from covey.release.verify import described_by, tables_of, verify_bundle
from covey.table.sources import read_table
from covey.web.drafts import with_file_names
from covey.web.forms import shown
from covey.web.jobs import Job
from covey.web.pages.shared import CheckedForm, CurrentWork, page, redirect_if_early, report_of
from covey.web.security import REPORT_POLICY, Refused
from covey.web.work import Work
from covey.workflow import evaluate

PREVIEW_ROWS = 8  # what a screen shows without scrolling

router = APIRouter()


def the_bundle(work: Work) -> tuple[Job, Path]:
    """The newest bundle."""
    done = [job for job in work.jobs.values() if job.state == "done"]
    if not done or not done[-1].bundle.is_dir():
        raise Refused(404, "There is no bundle here. It may have been moved.")
    return done[-1], done[-1].bundle


def previews(folder: Path) -> dict[str, dict[str, list[str]]]:
    """The first rows of each table, by its name and their columns."""
    found = tables_of(folder, described_by(folder))
    tables = {part.name if len(found) > 1 else "": read_table(path).columns for part, path in found}
    return {
        table: {name: [shown(v) for v in series.head(PREVIEW_ROWS)] for name, series in columns.items()}
        for table, columns in tables.items()
    }


@router.get("/work/{work_id}/bundle")
def bundle_page(request: Request, work: CurrentWork) -> Response:
    """What was released."""
    if (away := redirect_if_early(work, "bundle")) is not None:
        return away
    job, folder = the_bundle(work)
    if "verified" not in job.result:
        job.result["verified"] = dict(verify_bundle(folder).facts)
        job.result["previews"] = previews(folder)
    files = sorted((path.name, path.stat().st_size) for path in folder.iterdir())
    report = (folder / "report.html").is_file()
    return page(request, "bundle.html", work=work, step="bundle", job=job, folder=folder, files=files, report=report)


@router.get("/work/{work_id}/bundle/report")
def bundle_report(work: CurrentWork) -> Response:
    """The bundle's own report."""
    return report_of(the_bundle(work)[1])


@router.get("/work/{work_id}/bundle.zip")
def bundle_zip(work: CurrentWork) -> Response:
    """The whole bundle in one file, called after its dataset or its table."""
    job, folder = the_bundle(work)
    owned = job.order.get("dataset") or work.name.partition(".")[0]
    name = re.sub(r"[^\w-]+", "_", owned) + "-release"
    place = work.folder / f"{folder.name}-{os.urandom(4).hex()}.zip"
    handle = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "wb") as file, zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{name}/{path.name}")
    return FileResponse(
        place, media_type="application/zip", filename=f"{name}.zip", background=BackgroundTask(place.unlink)
    )


@router.post("/work/{work_id}/evaluate")
def evaluation_page(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """True against synthetic as a page of its own: without noise, so it is confidential, and written to no file."""
    job, folder = the_bundle(work)
    if not work.tables or not all(str(place) in job.names for place in work.places.values()):
        raise Refused(409, "The real rows of this bundle are no longer here, so there is nothing to compare it with.")
    try:
        dialect = work.start.unit.schema.dialect
        person = job.order.get("person")
        found = evaluate(Path(job.order["table"]), folder, dialect=dialect, person=person, predicting=False)
    except CoveyError as error:
        raise with_file_names(error, work.places) from None
    if found.rows is None:
        return page(request, "evaluation.html", work=work, step="bundle", figures=found.figures)
    return HTMLResponse(found.page(), headers={"content-security-policy": REPORT_POLICY})
