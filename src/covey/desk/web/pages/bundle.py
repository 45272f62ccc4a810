"""The last step: the bundle, and an evaluation beside the true table, computed when asked for and kept nowhere."""

from __future__ import annotations

import os
import re
import zipfile
from pathlib import Path
from typing import Any

import xlsxwriter
from fastapi import APIRouter, Request
from fastapi.responses import FileResponse, HTMLResponse, Response
from starlette.background import BackgroundTask

from covey.desk.web.drafts import with_file_names
from covey.desk.web.forms import shown
from covey.desk.web.jobs import Job
from covey.desk.web.pages.shared import CheckedForm, CurrentWork, page, redirect_if_early, report_of
from covey.desk.web.security import REPORT_POLICY, Refused
from covey.desk.web.work import Work
from covey.errors import CoveyError
from covey.release.answers.load import stored
from covey.release.places import private_file
from covey.release.verify import described_by, verify_bundle
from covey.workflow import evaluate

PREVIEW_ROWS = 8  # what a screen shows without scrolling
SHEET_ROWS, SHEET_COLUMNS = 1_048_575, 16_384  # that a sheet of a workbook holds below its head: limits of the format
CELL_SECONDS = 5e-6  # of a cell of a workbook, as measured: 100,000 rows of 7 columns took 3.1 s of a processor
SHEET_DATES = {"date": "yyyy-mm-dd", "datetime": "yyyy-mm-dd hh:mm:ss", "time": "hh:mm:ss"}

router = APIRouter()


def the_bundle(work: Work) -> tuple[Job, Path]:
    """The newest bundle."""
    done = [job for job in work.jobs.values() if job.state == "done"]
    if not done or not done[-1].bundle.is_dir():
        raise Refused(404, "There is no bundle here. It may have been moved.")
    return done[-1], done[-1].bundle


def seen_in(folder: Path) -> dict[str, Any]:
    """What the page shows of a bundle that is right: its first rows by table, what became coarser, what a workbook takes."""
    found, described, release = verify_bundle(folder), described_by(folder), stored(folder)
    several, first = len(described.tables) > 1, next(iter(release.parts))
    tables = dict(zip((part.name for part in described.tables), first, strict=True)) if several else {"": first}
    bands = getattr(release, "bands", None)  # an anonymous bundle has none
    cells = [(rows, len(table)) for rows, table in zip(found.tables.values(), tables.values(), strict=True)]
    fits = all(rows <= SHEET_ROWS and width <= SHEET_COLUMNS for rows, width in cells)
    return {
        "verified": dict(found.facts),
        "previews": {
            table: {name: [shown(v) for v in values[:PREVIEW_ROWS]] for name, values in columns.items()}
            for table, columns in tables.items()
        },
        "coarser": bands.notes() if bands is not None else [],
        "sheet_seconds": CELL_SECONDS * sum(rows * width for rows, width in cells) if fits else None,
    }


@router.get("/work/{work_id}/bundle")
def bundle_page(request: Request, work: CurrentWork) -> Response:
    """What was released."""
    if (away := redirect_if_early(work, "bundle")) is not None:
        return away
    job, folder = the_bundle(work)
    if "verified" not in job.result:
        job.result |= seen_in(folder)
    files = sorted((path.name, path.stat().st_size) for path in folder.iterdir())
    report = (folder / "report.html").is_file()
    return page(request, "bundle.html", work=work, step="bundle", job=job, folder=folder, files=files, report=report)


@router.get("/work/{work_id}/bundle/report")
def bundle_report(work: CurrentWork) -> Response:
    """The bundle's own report."""
    return report_of(the_bundle(work)[1])


def named_after(job: Job, work: Work) -> str:
    """What downloads are called after: the dataset, or the table."""
    return re.sub(r"[^\w-]+", "_", job.order.get("dataset") or work.name.partition(".")[0])


def handed_over(work: Work, name: str) -> tuple[Path, Response]:
    """A fresh private file, and the answer that hands it over under a name and then removes it."""
    place = work.folder / f"{os.urandom(8).hex()}{Path(name).suffix}"
    private_file(place).close()
    return place, FileResponse(place, filename=name, background=BackgroundTask(place.unlink))


@router.get("/work/{work_id}/bundle.zip")
def bundle_zip(work: CurrentWork) -> Response:
    """The whole bundle in one file."""
    job, folder = the_bundle(work)
    name = f"{named_after(job, work)}-release"
    place, answer = handed_over(work, f"{name}.zip")
    with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(folder.iterdir()):
            archive.write(path, f"{name}/{path.name}")
    return answer


@router.get("/work/{work_id}/bundle.xlsx")
def bundle_workbook(work: CurrentWork) -> Response:
    """The synthetic rows as a workbook, a sheet for each table."""
    job, folder = the_bundle(work)
    place, answer = handed_over(work, f"{named_after(job, work)}-synthetic.xlsx")
    try:
        write_workbook(folder, place)
    except BaseException:
        place.unlink(missing_ok=True)
        raise
    return answer


def write_workbook(folder: Path, place: Path) -> None:
    """Write the rows of a bundle as a workbook, row by row: text stays text, whatever a spreadsheet would make of it."""
    described, release = described_by(folder), stored(folder)
    how = {"constant_memory": True, "tmpdir": str(place.parent), "strings_to_formulas": False, "strings_to_urls": False}
    with xlsxwriter.Workbook(place, how) as book:
        formats = {kind: book.add_format({"num_format": words}) for kind, words in SHEET_DATES.items()}
        several = len(described.tables) > 1
        for k, part in enumerate(described.tables):
            sheet, at = book.add_worksheet(part.name[:31] if several else "synthetic"), 0
            for j, field in enumerate(part.released.fields):
                sheet.set_column(j, j, None, formats.get(field.type))
            sheet.write_row(0, 0, part.released.names, book.add_format({"bold": True, "num_format": "@"}))
            for columns in release.parts:
                own = columns[k] if several else columns
                for row in zip(*(own[name] for name in part.released.names), strict=True):
                    at += 1
                    if at > SHEET_ROWS or sheet.write_row(at, 0, row):
                        raise Refused(422, "These rows do not fit a workbook. The zip has them as a file of their own.")


@router.post("/work/{work_id}/evaluate")
def evaluation_page(request: Request, work: CurrentWork, form: CheckedForm) -> Response:
    """True against synthetic as a page of its own: without noise, so it is confidential, and written to no file."""
    job, folder = the_bundle(work)
    if not work.tables or not all(str(place) in job.names for place in work.places.values()):
        raise Refused(409, "The real rows of this bundle are no longer here, so there is nothing to compare it with.")
    try:
        schema, person = job.order["schema"] and Path(job.order["schema"]), job.order.get("person")
        found = evaluate(Path(job.order["table"]), folder, person=person, predicting=False, schema=schema)
    except CoveyError as error:
        raise with_file_names(error, work.places) from None
    if found.rows is None:
        return page(request, "evaluation.html", work=work, step="bundle", figures=found.figures)
    return HTMLResponse(found.page(), headers={"content-security-policy": REPORT_POLICY})
