"""Markup that cannot be broken by what a column is called: text is escaped unless it is already `Html`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from html import escape
from typing import Any

_CONTROLS = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ufffe\uffff\ud800-\udfff]")
_EMPTY = frozenset(("br", "col", "meta", "rect", "line", "circle", "path"))


class Html(str):
    """Text that is markup already, for templates too."""

    __slots__ = ()

    def __html__(self) -> Html:
        return self


def text(value: Any) -> Html:
    """A value as markup: what is markup as it is, lists piece by piece, None as nothing, everything else escaped."""
    if hasattr(value, "__html__"):
        return Html(value.__html__())
    if value is None:
        return Html()
    if isinstance(value, Iterable) and not isinstance(value, str):
        return Html("".join(map(text, value)))
    return Html(escape(_CONTROLS.sub("\ufffd", str(value)), quote=True))


def tag(name: str, /, *inside: Any, **attributes: Any) -> Html:
    """An element. `class_` is class, aria_label is aria-label; attributes that are None are left out."""
    words = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(value)}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _EMPTY and not inside:
        return Html(f"<{name}{words}/>")
    return Html(f"<{name}{words}>{text(inside)}</{name}>")


def shorten(words: str, most: int = 60) -> str:
    """Long labels are cut, so that none can swell or break a page."""
    words = " ".join(words.split())
    return words if len(words) <= most else words[: most - 1] + "…"


def breakable(words: str) -> Html:
    """A name that may be broken after an underscore."""
    return Html(text(words).replace("_", "_<wbr/>"))


# Notebooks: small cards that take colours and type from the page around them, dark or light.

_FRAME = "border:1px solid rgba(128,128,128,.45);border-radius:8px;padding:.7em 1em;max-width:44em;line-height:1.45"
_MARK = "border:1px solid currentColor;border-radius:1em;padding:0 .6em;font-size:.85em;margin-left:.6em"
_LEFT = "text-align:left;padding:.15em 1em .15em 0;font-weight:normal;opacity:.85;vertical-align:top;white-space:nowrap"


def card(title: str, mark: str, facts: Iterable[tuple[str, Any]]) -> Html:
    """A titled list of facts for a notebook."""
    cells = "text-align:left;padding:.15em 0;vertical-align:top"
    rows = [
        tag("tr", tag("th", name, scope="row", style=_LEFT), tag("td", value, style=cells)) for name, value in facts
    ]
    head = tag("div", tag("strong", title), tag("span", mark, style=_MARK) if mark else None)
    body = tag("table", tag("tbody", rows), style="border-collapse:collapse;margin-top:.4em;background:none")
    return tag("div", head, body, style=_FRAME)


def meter(share: float) -> Html:
    """A bar for a number between 0 and 1, told in words beside it."""
    inner = f"background:currentColor;opacity:.6;height:100%;width:{100 * min(1.0, max(0.0, share)):.1f}%"
    outer = "display:inline-block;width:9em;height:.6em;background:rgba(128,128,128,.25);margin-right:.6em"
    return tag("span", tag("span", style=f"display:block;{inner}"), style=outer, aria_hidden="true")
