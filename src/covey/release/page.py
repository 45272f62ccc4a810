"""Pages, READMEs, catalogue entries and words for a screen, from templates: whatever a column is called, it is text."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

from covey.engine.budget import shown
from covey.engine.certificate import of_hundred
from covey.engine.entropy import SEEDED_MARK
from covey.errors import CannotAnswerError, counted, optional
from covey.markup import Html, breakable, shorten, text
from covey.release import charts
from covey.release.contents import LARGE_EPSILON, NOT_PRIVATE

Part = tuple[str, str, Html]  # key and title of a section, and what is in it


@cache
def style_sheet() -> Html:
    """The look that reports and the local app share."""
    return Html(files("covey.release").joinpath("style.css").read_text(encoding="utf-8"))


@cache
def templates() -> Any:
    """The templates, and what all of them may call."""
    jinja2 = optional("jinja2")
    escaped = jinja2.pass_context(lambda context, value: _escaped(context.name, value))
    found = jinja2.Environment(
        loader=jinja2.PackageLoader("covey.release"),
        autoescape=jinja2.select_autoescape(["html"]),
        undefined=jinja2.StrictUndefined,
        finalize=escaped,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        extensions=["jinja2.ext.do"],
    )
    found.filters |= {"quoted": "`{}`".format, "tenths": charts.tenths, "word": charts.word}
    found.globals |= {name: getattr(charts, name) for name in ("number", "percent", "side", "span", "up")}
    found.globals |= {
        "breakable": breakable,
        "charts": charts,
        "count": "{:,}".format,
        "counted": counted,
        "of_hundred": of_hundred,
    }
    found.globals |= {"shorten": shorten, "shown": shown, "style_sheet": style_sheet}
    found.globals |= {"LARGE_EPSILON": LARGE_EPSILON, "NOT_PRIVATE": NOT_PRIVATE, "SEEDED_MARK": SEEDED_MARK}
    found.globals["ui"] = found.get_template("macros.html").module
    found.globals["draw"] = found.get_template("charts.html").module
    return found


def _escaped(template: str, value: Any) -> Any:
    """A value as the template's language writes it: a name can break out of no page and no JSON document."""
    if template.endswith(".html"):
        return text(value)
    return json.dumps(str(value))[1:-1] if template.endswith(".json") else value


def render(template: str, **given: Any) -> Html:
    """A template with what it shows."""
    return Html(templates().get_template(template).render(given))


def lines(template: str, **given: Any) -> list[str]:
    """A template of plain text, line by line."""
    return render(template, **given).splitlines()


def section(key: str, title: str, template: str, **given: Any) -> Part:
    """A titled part of a page."""
    return key, title, render(template, **given)


def attempted(title: str, make: Callable[..., Part | None], *given: Any, **named: Any) -> list[Part]:
    """A part of a page; in its place, if it cannot be made, the reason. Empty if there is nothing to show."""
    try:
        part = make(*given, **named)
    except Exception as error:  # the rest of the page is worth reading
        return [(re.sub(r"\W+", "-", title.lower()), title, reason(error))]
    return [] if part is None else [part]


def reason(error: Exception) -> Html:
    """Why a picture or a sentence is not there, in its place."""
    words = f"{error}" if isinstance(error, CannotAnswerError) else f"This could not be made ({type(error).__name__})."
    return render("reason.html", words=words)
