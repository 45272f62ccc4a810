"""A page on its own: one file, no script, no network, the same look for every report."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from importlib.resources import files
from typing import Any

from covey.errors import CannotAnswerError
from covey.html import Html, tag

Part = tuple[str, str, Html]  # key, title and markup of a section

# Nothing may be loaded, run, framed or sent; only the style in the page itself applies.
POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def style_sheet() -> str:
    """The look that reports and the local app share."""
    return files("covey.release").joinpath("style.css").read_text(encoding="utf-8")


def section(key: str, title: str, *inside: Any) -> Part:
    """A titled part of a page: its key, its title, its markup."""
    return key, title, tag("section", tag("h2", title, id=key), inside, class_="card", aria_labelledby=key)


def attempted(title: str, make: Callable[..., Part | None], *given: Any) -> list[Part]:
    """A part of a page; in its place, if it cannot be made, the reason. Empty if there is nothing to show."""
    try:
        part = make(*given)
    except Exception as error:  # the rest of the page is worth reading
        return [section(re.sub(r"\W+", "-", title.lower()), title, reason(error))]
    return [] if part is None else [part]


def reason(error: Exception) -> Html:
    """Why a picture or a sentence is not there, in its place."""
    words = f"{error}" if isinstance(error, CannotAnswerError) else f"This could not be made ({type(error).__name__})."
    return tag("p", words, " The data are not affected.", class_="note")


def page(  # the parts of a page, from top to bottom
    title: str,
    over: str,
    lead: Any,
    badges: Iterable[tuple[str, str]],
    banners: Iterable[Html],
    tiles: Iterable[tuple[str, str]],
    sections: Sequence[Part],
    footer: Any,
    confidential: str | None = None,
) -> str:
    """The whole file."""
    marks = tag(
        "ul", [tag("li", tag("span", words, class_=f"badge {kind}")) for words, kind in badges], class_="badges"
    )
    head = tag(
        "header",
        tag("p", over, class_="over"),
        tag("h1", title),
        tag("p", lead, class_="lead"),
        marks,
        class_="masthead",
    )
    contents = tag(
        "nav",
        tag("ul", [tag("li", tag("a", name, href=f"#{key}")) for key, name, _ in sections]),
        class_="contents",
        aria_label="Contents",
    )
    figures = tag("dl", [tag("div", tag("dt", a), tag("dd", b), class_="tile") for a, b in tiles], class_="tiles")
    main = tag("main", list(banners), figures, [markup for _, _, markup in sections], id="main")
    strip = tag("aside", confidential, class_="strip", aria_label="Caution") if confidential else None
    body = tag(
        "body",
        tag("a", "Skip to the report", href="#main", class_="skip"),
        strip,
        tag("div", head, contents, main, tag("footer", footer), class_="wrap"),
        class_="confidential" if confidential else None,
    )
    top = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("meta", name="referrer", content="no-referrer"),
        tag("meta", name="robots", content="noindex") if confidential else None,
        tag("title", f"{confidential}: {title}" if confidential else title),
        tag("style", Html(style_sheet())),
    )
    return f"<!doctype html>\n{tag('html', top, body, lang='en')}\n"


def facts(rows: Iterable[tuple[str, Any]], caption: str) -> Html:
    """Names and values."""
    body = [tag("tr", tag("th", name, scope="row"), tag("td", value)) for name, value in rows]
    return tag("table", tag("caption", caption, class_="quiet"), tag("tbody", body), class_="facts")


def points(title: str, items: Sequence[Any]) -> Html:
    """A short list under a heading."""
    return tag("div", tag("h3", title), tag("ul", [tag("li", item) for item in items]))
