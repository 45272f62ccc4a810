"""What every page needs: templates, the table that an address names, answers and refusals."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any, cast

from fastapi import Depends, Request
from fastapi.responses import FileResponse, RedirectResponse, Response

from covey.desk.web import forms
from covey.desk.web.forms import shown
from covey.desk.web.security import REPORT_POLICY, Form, Refused, checked_form, megabytes, templates
from covey.desk.web.work import Work
from covey.desk.web.workspace import Workspace
from covey.errors import LedgerError, counted
from covey.version import __version__

templates.env.globals |= {"version": __version__, "counted": counted}


def sentence(words: str) -> str:
    """A message with a capital, unless it begins with a name."""
    return words[:1].upper() + words[1:] if words.split(" ")[0].isalpha() else words


def duration_words(seconds: float) -> str:
    """A duration as a person says it, no finer than it is known."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 55:
        return f"about {5 * round(seconds / 5)} seconds"
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"


templates.env.filters |= {
    "shown": shown,
    "number": forms.number,
    "left": forms.left,
    "megabytes": megabytes,
    "duration_words": duration_words,
    "fraction": Fraction,
    "rows": lambda columns: list(zip(*columns, strict=True)),
    "sentence": sentence,
}


def page(request: Request, name: str, error: Exception | None = None, **values: Any) -> Response:
    """A page, with what every page needs, and what was wrong with the form that came."""
    work: Work | None = values.get("work")
    values |= {"error": str(error or ""), "csrf": request.app.state.keys.form}
    values["reachable"] = work.reachable() if work else set()
    code = 200 if error is None else 409 if isinstance(error, LedgerError) else getattr(error, "status", 422)
    return templates.TemplateResponse(request, name, values, status_code=code)


def report_of(bundle: Path | None) -> Response:
    """The report of a bundle, in an origin of its own."""
    place = bundle and bundle / "report.html"
    if place is None or not place.is_file():
        raise Refused(404, "There is no report here. The bundle may have been moved.")
    return FileResponse(place, media_type="text/html", headers={"content-security-policy": REPORT_POLICY})


def go(path: str) -> Response:
    """Move on after a form."""
    return RedirectResponse(path, 303)


def by_htmx(request: Request) -> bool:
    """Whether a piece of a page is asked for."""
    return request.headers.get("hx-request") == "true"


# What is asynchronous answers at once. Everything that may wait, for the ledger or a disk, is a plain function and gets a
# thread of its own.


async def find_workspace(request: Request) -> Workspace:
    """The state of the app, for a page."""
    return cast(Workspace, request.app.state.workspace)


CheckedForm = Annotated[Form, Depends(checked_form)]
CurrentWorkspace = Annotated[Workspace, Depends(find_workspace)]


async def find_work(workspace: CurrentWorkspace, work_id: str) -> Work:
    """The table that the address names."""
    return workspace.work(work_id)


CurrentWork = Annotated[Work, Depends(find_work)]


def redirect_if_early(work: Work, step: str) -> Response | None:
    """Lead back to the step that comes first when a later one makes no sense yet."""
    return None if step in work.reachable() else go(f"/work/{work.id}/{work.step()}")
