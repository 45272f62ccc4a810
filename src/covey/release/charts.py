"""Numbers as pages and pictures show them. The pictures are drawn by `templates/charts.html`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import floor, log10
from typing import Any

import numpy as np

from covey.engine.arrays import Floats

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


def tenths(value: float) -> str:
    """Tenths of a pixel are enough."""
    return f"{value:.1f}".rstrip("0").rstrip(".")


def tick(value: float) -> str:
    """A number beside an axis."""
    return f"{value:.6g}" if value < 1000 else number(value)


def ticks(top: float, count: int = 4) -> list[float]:
    """Round numbers from 0 to about `top`."""
    if not top > 0:
        return [0.0]
    rough = top / count
    power = 10.0 ** floor(log10(rough))
    step = next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)
    return [i * step for i in range(int(top / step * 1.0001) + 1)]


def up(value: float, significant: int = 3) -> str:
    """A few significant digits, rounded up: a bound must not shrink in print."""
    if not 0 < value < 1:
        return number(value)
    digits = significant - 1 - floor(log10(value))
    return f"{np.ceil(value * 10**digits - 1e-9) / 10**digits:.{digits}f}"


def pair_key(pair: tuple[int, int]) -> str:
    """Where the table of a pair stands in the page."""
    return f"pair-{min(pair)}-{max(pair)}"


def scale_end(values: Floats) -> float:
    """Where the scale of a map ends: a round number that no entry off the diagonal exceeds."""
    most = values[np.tril_indices(len(values), -1)].max(initial=0.0)
    return next((end for end in (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.75) if most <= end), 1.0)


def strongest_pairs(names: Sequence[str], values: Floats, count: int) -> list[tuple[str, str]]:
    """The largest entries off the diagonal."""
    i, j = np.tril_indices(len(names), -1)
    order = np.argsort(-values[i, j], kind="stable")[:count]
    return [(f"{names[j[k]]} × {names[i[k]]}", f"{values[i[k], j[k]]:.3f}") for k in order]


DEGREE_NAMES = {1: "single columns", 2: "pairs", 3: "triples", 4: "quadruples"}
SUBSCRIPTS = {1: "RMSE₁", 2: "RMSE₂", 3: "RMSE₃", 4: "RMSE₄"}
