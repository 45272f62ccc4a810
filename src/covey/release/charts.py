"""Pictures as static SVG: no script, no image, no network; colours come from the style sheet, dark or light.

Every one has a description for those who cannot see it; templates set it in a figure with a caption and its numbers as a table.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, log10
from typing import Any

import numpy as np

from covey.core.arrays import Array, Floats
from covey.html import Html, shorten, tag
from covey.privacy.certificate import of_hundred

HUNDRED = 100  # rows in the picture of a proportion
ACROSS = 25  # of them in a line
_NUMBER = re.compile(r"[<≤+−-]? ?[0-9][0-9.,]*(e-?[0-9]+)?%?( [ερ]| points)?")


def percent(share: float, digits: int = 1) -> str:
    """A share as a reader wants it."""
    if 0 < share < 0.5 * 10 ** -(digits + 2):
        return f"< {10**-digits:.{digits}f}%"
    return f"{100 * share:.{digits}f}%"


def span(low: float, high: float) -> str:
    """Both ends of a band of shares."""
    return f"{100 * low:.1f} – {100 * high:.1f}%"


def number(value: float) -> str:
    """Three significant digits, without needless zeros."""
    if value == 0 or not np.isfinite(value):
        return "0" if value == 0 else "–"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    digits = max(0, 2 - floor(log10(abs(value))))
    return f"{value:.{min(digits, 9)}f}" if digits <= 9 else f"{value:.2g}"


def word(value: float | str | None) -> str:
    """A value of a number or date in a sentence."""
    if value is None:
        return "none"
    return value if isinstance(value, str) else f"{value:,.6g}"


def side(cell: Any) -> str | None:
    """The class of a cell: numbers, with or without a sign, a unit or a per cent, stand to the right."""
    return None if hasattr(cell, "__html__") or not _NUMBER.fullmatch(str(cell)) else "n"


def svg(width: int, height: int, title: str, description: str, *inside: Any, least: int = 0, role: str = "img") -> Html:
    """A drawing that says what it shows. It shrinks with the page, to `least` pixels, beyond which it scrolls."""
    drawing = tag(
        "svg",
        tag("title", title),
        tag("desc", description),
        inside,
        viewBox=f"0 0 {width} {height}",
        role=role,
        aria_label=f"{title}. {description}",
        style=f"max-width:{width}px" + (f";min-width:{least}px" if least else ""),
    )
    return tag("div", drawing, class_="scroll", tabindex="0", role="group", aria_label=title) if least else drawing


def _text(x: float, y: float, words: str, class_: str = "tick", anchor: str = "middle") -> Html:
    return tag("text", words, x=_r(x), y=_r(y), class_=class_, text_anchor=None if anchor == "start" else anchor)


def _r(value: float) -> str:
    """Tenths of a pixel are enough."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def _tick(value: float) -> str:
    return f"{value:.6g}" if value < 1000 else number(value)


def ticks(top: float, count: int = 4) -> list[float]:
    """Round numbers from 0 to about `top`."""
    if not top > 0:
        return [0.0]
    rough = top / count
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    return [i * step for i in range(int(top / step * 1.0001) + 1)]


def histogram(  # what is drawn, what its parts are called, and how sure they are
    name: str,
    labels: Sequence[str],
    shares: Sequence[Floats],
    missing: Sequence[float] | None,
    kinds: Sequence[str],
    bands: tuple[Floats, Floats] | None = None,
    even: Array | None = None,
) -> Html:
    """Ordered bins as columns side by side, with error bands if any, pale where even inside; a missing share stands apart."""
    width, height, left, base, head = 340, 150, 4, 122, 14
    room = width - 2 * left - (44 if missing is not None else 0)
    top = max(float(np.max(s)) for s in [*shares, *(bands[1:] if bands is not None else ())])
    top = max(top, max(missing) if missing is not None else 0.0) or 1.0
    step = room / len(labels)
    wide = max(step - 1.5, step * 0.7) / len(shares)
    drawn: list[Html] = []
    for i, label in enumerate(labels):
        shade = " even" if even is not None and even[i] else ""
        for k, s in enumerate(shares):
            tall = (base - head) * float(s[i]) / top
            hint = f"{label}: {percent(float(s[i]))}{shade and ', even inside'}" + (
                f" ({kinds[k]})" if len(kinds) > 1 else ""
            )
            if bands is not None:
                hint += f", in the confidential table {span(bands[0][i], bands[1][i])}"
            drawn.append(_column(left + i * step + k * wide, base, wide, tall, f"b{k}{shade}", hint))
        if bands is not None:
            x, (y, z) = _r(left + (i + 0.5) * step), (_r(base - (base - head) * float(b[i]) / top) for b in bands)
            drawn.append(tag("line", x1=x, x2=x, y1=y, y2=z, class_="band"))
    if missing is not None:
        own = 24 / len(shares)
        for k, share in enumerate(missing):
            tall = (base - head) * share / top
            drawn.append(_column(width - 34 + k * own, base, own, tall, f"b{k} absent", f"missing: {percent(share)}"))
        drawn.append(_text(width - 22, base + 15, "missing"))
    drawn.append(tag("line", x1=left, x2=left + room, y1=base + 0.5, y2=base + 0.5, class_="axis"))
    first, last = labels[0].split(" – ")[0], labels[-1].split(" – ")[-1]
    drawn.append(_text(left, base + 15, shorten(first, 20), anchor="start"))
    if len(labels) > 1:
        drawn.append(_text(left + room, base + 15, shorten(last, 20), anchor="end"))
    drawn.append(_text(left, 9, percent(top, 0 if top > 0.1 else 1), anchor="start"))
    drawn.append(tag("line", x1=left, x2=left + room, y1=head, y2=head, class_="grid"))
    most = int(np.argmax(shares[0]))
    said = f"{len(labels)} bins from {first} to {last}; the largest holds {percent(float(shares[0][most]))}, {labels[most]}"
    return svg(width, height, f"Distribution of {name}", said, drawn)


def _column(x: float, base: float, wide: float, tall: float, class_: str, hint: str) -> Html:
    hint_ = tag("title", hint)
    # A thin invisible strip above short bars keeps the hint within reach of the pointer.
    return tag(
        "g",
        hint_,
        tag("rect", x=_r(x), y=_r(base - max(tall, 18)), width=_r(wide), height=_r(max(tall, 18)), class_="hit"),
        tag("rect", x=_r(x), y=_r(base - tall), width=_r(wide), height=_r(tall), class_=f"bar {class_}"),
    )


def pair_key(pair: tuple[int, int]) -> str:
    """Where the table of a pair stands in the page."""
    return f"pair-{min(pair)}-{max(pair)}"


def heat_map(  # what is drawn, what it is called, and which pairs are empty or lead to a table
    names: Sequence[str],
    values: Floats,
    title: str,
    what: str,
    lost: Array | None = None,
    linked: Sequence[tuple[int, int]] = (),
) -> Html:
    """The lower triangle of a symmetric matrix between 0 and 1, darker where it is larger, on a scale that suits it.

    Pairs that are `lost` in noise stay empty; `linked` ones lead to their tables.
    """
    q = len(names)
    cell = int(np.clip(560 / q, 13, 44))
    margin = min(150, 12 + 7 * max(len(shorten(n, 22)) for n in names))
    size, foot = cell * q, int(margin * 0.75) + 12
    off = values[np.tril_indices(q, -1)]
    top = next((t for t in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75) if off.max(initial=0.0) <= t), 1.0)
    drawn: list[Html] = []
    for i, name in enumerate(names):
        y, x = i * cell, margin + i * cell
        turned = f"rotate(-45 {_r(x + cell / 2)} {size + 14})"
        drawn += [
            _text(margin - 6, y + cell / 2 + 4, shorten(name, 22), anchor="end"),
            tag("g", _text(x + cell / 2, size + 14, shorten(name, 22), anchor="end"), transform=turned),
            tag("rect", x=x, y=y, width=cell - 1, height=cell - 1, class_="self"),
        ]
        for j in range(i):
            if lost is not None and lost[i, j]:
                hint = tag("title", f"{name} × {names[j]}: lost in noise")
                drawn.append(
                    tag("rect", hint, x=margin + j * cell, y=y, width=cell - 1, height=cell - 1, class_="lost")
                )
                continue
            value = float(values[i, j])
            depth = min(1.0, value / top)
            hint = tag("title", f"{name} × {names[j]}: {value:.3f}")
            x, opacity = margin + j * cell, 0.04 + 0.96 * depth
            place = {"x": x, "y": y, "width": cell - 1, "height": cell - 1}
            drawn.append(tag("rect", hint, **place, class_="heat", fill_opacity=f"{opacity:.2f}"))
            if (j, i) in linked:
                way = {"href": f"#{pair_key((j, i))}", "aria_label": f"Table of {names[j]} × {name}"}
                drawn[-1] = tag("a", drawn[-1], **way)
            if cell >= 30:
                shown = f"{value:.2f}".removeprefix("0") if top > 0.1 else f"{value:.3f}".removeprefix("0")
                drawn.append(
                    _text(
                        x + cell / 2,
                        y + cell / 2 + 4,
                        shown,
                        "low" if opacity < 0.56 else "mid" if opacity < 0.8 else "high",
                    )
                )
    strongest = strongest_pairs(names, values, 1)
    said = f"{what} of {q} columns, pair by pair; the largest is {strongest[0][1]}, {strongest[0][0]}"
    width = margin + size + 8
    legend = tag("p", "0", tag("span", class_="ramp", aria_hidden="true"), _tick(top), class_="note")
    return tag(
        "div",
        svg(width, size + foot, title, said, drawn, least=min(width, 640), role="group" if linked else "img"),
        legend,
    )


def strongest_pairs(names: Sequence[str], values: Floats, count: int) -> list[tuple[str, str]]:
    """The largest entries off the diagonal."""
    i, j = np.tril_indices(len(names), -1)
    order = np.argsort(-values[i, j], kind="stable")[:count]
    return [(f"{names[j[k]]} × {names[i[k]]}", f"{values[i[k], j[k]]:.3f}") for k in order]


DEGREE_NAMES = {1: "single columns", 2: "pairs", 3: "triples", 4: "quadruples"}
SUBSCRIPTS = {1: "RMSE₁", 2: "RMSE₂", 3: "RMSE₃", 4: "RMSE₄"}


def certificate_chart(
    bound: dict[int, float], estimate: dict[int, float], whole: dict[int, float], categorical: bool
) -> Html:
    """For each degree the certified bound of the centres, what drawing this table adds, and the noisy estimate."""
    width, row, inset = 560, 54, 8
    degrees = sorted(bound)
    top = max([*bound.values(), *whole.values(), 1e-12])
    scale = (width - 2 * inset) / top
    base = row * len(degrees) + 2
    drawn: list[Html] = []
    for t in ticks(top):
        x = inset + t * scale
        drawn.append(tag("line", x1=_r(x), x2=_r(x), y1=4, y2=base, class_="grid"))
        drawn.append(
            _text(x, base + 16, _tick(t), anchor="middle" if 0 < t < 0.95 * top else "start" if t == 0 else "end")
        )
    for i, d in enumerate(degrees):
        y = 26 + i * row
        most = whole.get(d, bound[d])
        drawn += [
            tag("rect", x=0, y=y - 24, width=width, height=22, class_="plate"),
            _text(inset, y - 7, SUBSCRIPTS[d], "label", "start"),
            _text(inset + 62, y - 7, DEGREE_NAMES[d], "name", "start"),
            _text(width - inset, y - 7, f"≤ {up(most)}", "value", "end"),
            _bar(inset, y, bound[d] * scale, "b0", f"95% bound for the centres: {up(bound[d])}"),
        ]
        if d in whole:
            extra = max(0.0, most - bound[d])
            drawn.append(_bar(inset + bound[d] * scale, y, extra * scale, "b1", f"drawing these rows adds {up(extra)}"))
        hint = tag("title", f"noisy estimate: {number(estimate[d])}")
        drawn.append(tag("circle", hint, cx=_r(inset + estimate[d] * scale), cy=y + 9, r=5, class_="dot"))
    axis = "distance of a table" if categorical else "error of a share"
    drawn.append(_text(inset, base + 34, f"typical {axis}; 0 is exact", anchor="start"))
    said = "; ".join(f"{SUBSCRIPTS[d]} at most {up(whole.get(d, bound[d]))}" for d in degrees)
    return svg(width, base + 40, "Accuracy certificate", f"95% bounds by degree: {said}", drawn)


def _bar(x: float, y: float, wide: float, class_: str, hint: str) -> Html:
    return tag("rect", tag("title", hint), x=_r(x), y=y, width=_r(wide), height=18, class_=f"bar {class_}")


def up(value: float, significant: int = 3) -> str:
    """A few significant digits, rounded up: a bound must not shrink in print."""
    if not 0 < value < 1:
        return number(value)
    digits = significant - 1 - floor(log10(value))
    return f"{np.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def spectrum_chart(values: Sequence[float], edge: float) -> Html:
    """Eigenvalues in falling order, those above the noise edge in colour."""
    width, height, left, base, head = 680, 250, 56, 212, 14
    top = max(max(values), edge) * 1.06 or 1.0
    step = (width - left - 12) / len(values)
    wide = min(26.0, step * 0.62)

    def y(value: float) -> float:
        return base - (base - head) * max(0.0, value) / top

    drawn: list[Html] = []
    for t in ticks(top):
        drawn += [
            tag("line", x1=left, x2=width - 12, y1=_r(y(t)), y2=_r(y(t)), class_="grid"),
            _text(left - 8, y(t) + 4, _tick(t), anchor="end"),
        ]
    for i, value in enumerate(values):
        x = left + i * step + (step - wide) / 2
        class_ = "b0" if value > edge else "below"
        drawn.append(_column(x, base, wide, base - y(value), class_, f"eigenvalue {i + 1}: {number(value)}"))
        if i == 0 or (i + 1) % 5 == 0:
            drawn.append(_text(left + (i + 0.5) * step, base + 16, str(i + 1)))
    drawn += [
        tag("line", x1=left, x2=width - 12, y1=_r(y(edge)), y2=_r(y(edge)), class_="edge"),
        _text(width - 12, y(edge) - 6, f"noise edge {number(edge)}", "edge-label", "end"),
        _text(left, base + 33, "direction, strongest first", anchor="start"),
    ]
    above = sum(v > edge for v in values)
    said = f"{above} of the {len(values)} leading eigenvalues lie above the noise edge {number(edge)}"
    return svg(width, height, "Spectrum and noise edge", said, drawn, least=520)


def hundred(share: float) -> Html:
    """A hundred rows as dots, those that would have to move in another colour; the last of them in part."""
    step, drawn = 17, []
    out = min(1.0, max(0.0, share)) * HUNDRED
    for i in range(HUNDRED):
        x, y = (i % ACROSS) * step + 1, (i // ACROSS) * step + 1
        drawn.append(tag("rect", x=x, y=y, width=13, height=13, rx=3, class_="bar below"))
        part = min(1.0, max(0.0, out - i))
        if part > 0:
            drawn.append(tag("rect", x=x, y=y, width=f"{13 * part:.2f}", height=13, rx=3, class_="bar b1"))
    said = f"At most {of_hundred(share)}% of the rows would have to move"
    return svg(ACROSS * step, HUNDRED // ACROSS * step, "A hundred rows", said, drawn)
