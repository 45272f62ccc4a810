"""peers.svg: error against time, a panel per table and a point per method, each with its name beside it."""

from __future__ import annotations

from math import cos, hypot, pi, sin
from pathlib import Path
from typing import Any

from benchmarks.peers.launch import GROUPS, PURE, ROWS

FAR = 9  # points between a name and its dot beyond which a line leads from one to the other
STEPS = 16  # directions that are tried around a dot
CLOSE = 60  # free places among which one is looked for that belongs to no other dot
Box = tuple[float, float, float, float]  # left, bottom, right, top


def plot(rows: list[dict], path: Path) -> None:
    """Error of 2-way tables against time, a point per method; a method without a result is named below its panel."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "covey"
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["table"] for row in rows))
    across = 2
    down = -(-len(names) // across)
    figure, axes = plt.subplots(down, across, figsize=(6.6 * across, 6.6 * down), squeeze=False)
    figure.subplots_adjust(left=0.08, right=0.99, top=0.94, bottom=0.14, wspace=0.12, hspace=0.42)
    for axis in axes.flat[len(names) :]:
        axis.remove()
    for axis, name in zip(axes.flat, names, strict=False):
        panel(figure, axis, [row for row in rows if row["table"] == name], name)
    for line in axes:
        line[0].set_ylabel("rows out of place, of 100, in a typical table\nof two columns (100 × mean total variation)")
    figure.suptitle(
        "ε = 1.  ● pure ε   ■ (ε, δ) with δ = 1e-9   × groups of 20, - - true rows: no differential privacy",
        fontsize=10,
    )
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def panel(figure: Any, axis: Any, own: list[dict], name: str) -> None:
    """One table."""
    lines = [row for row in own if row["status"] == "ok" and row["guarantee"] == ROWS]
    done = [row for row in own if row["status"] == "ok" and row["guarantee"] != ROWS]
    for row in lines:  # yardsticks take no time worth a place on the axis
        axis.axhline(row["tv2"], color="tab:green", lw=0.8, ls="--", zorder=1)
    for row in done:
        marker = {PURE: "o", GROUPS: "x"}.get(row["guarantee"], "s")
        color = "tab:blue" if "covey" in row["method"] else "tab:gray"
        axis.scatter(row["processor_seconds"], row["tv2"], marker=marker, color=color, zorder=3)
    axis.set(xscale="log", yscale="log", title=name, xlabel="processor seconds")
    axis.margins(x=0.25, y=0.15)
    axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}")
    axis.yaxis.set_minor_formatter("")
    axis.xaxis.set_minor_formatter("")
    axis.grid(alpha=0.3)
    label(figure, axis, done, lines)
    without: dict[str, list[str]] = {}
    for row in own:
        if row["status"] != "ok":
            without.setdefault(row["status"].split("(", 1)[0].split(":", 1)[0].strip(), []).append(row["method"])
    words = [f"{status}: {', '.join(methods)}" for status, methods in without.items()]
    axis.text(0, -0.13, "\n".join(words), transform=axis.transAxes, va="top", fontsize=8, color="tab:red", wrap=True)


def label(figure: Any, axis: Any, rows: list[dict], lines: list[dict]) -> None:
    """The name of each point, as near to it as hides neither a point nor another name; names of lines stand on them."""
    figure.canvas.draw()
    inside = axis.get_window_extent()
    scale = figure.dpi / 72
    ends = [
        axis.annotate(
            row["method"],
            (0, row["tv2"]),
            xycoords=("axes fraction", "data"),
            xytext=(4, 2),
            textcoords="offset points",
            fontsize=8,
            color="tab:green",
        ).get_window_extent()
        for row in lines
    ]
    points = [axis.transData.transform((row["processor_seconds"], row["tv2"])) for row in rows]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
    taken += [(box.x0, box.y0, box.x1, box.y1) for box in ends]
    for row, (x, y) in sorted(zip(rows, points, strict=True), key=lambda pair: tuple(pair[1])):
        text = axis.text(0.5, 0.5, row["method"], transform=axis.transAxes, fontsize=8)
        size = text.get_window_extent()
        text.remove()
        others = [point for point in points if tuple(point) != (x, y)]
        box, place = nearest((x, y), (size.width, size.height), (taken, others), inside)
        taken.append(box)
        away = ((place[0] - x) ** 2 + (place[1] - y) ** 2) ** 0.5 / scale
        line = {"arrowstyle": "-", "color": "tab:gray", "lw": 0.5, "shrinkA": 0, "shrinkB": 3} if away > FAR else None
        axis.annotate(
            row["method"],
            (row["processor_seconds"], row["tv2"]),
            xytext=((box[0] - x) / scale, (box[1] - y) / scale),
            textcoords="offset points",
            fontsize=8,
            arrowprops=line,
        )


def nearest(
    point: tuple[float, float], size: tuple[float, float], around: tuple[list[Box], list[Any]], inside: Any
) -> tuple[Box, tuple[float, float]]:
    """The free box nearest to a point, and where it comes closest to it; if there is one, no other point is closer to the box.

    `around` are the boxes that are taken and the other points.
    """
    (x, y), (width, height), (taken, others) = point, size, around
    tried = []
    for radius in range(7, 200, 3):
        for k in range(STEPS):
            dx, dy = cos(2 * pi * k / STEPS), sin(2 * pi * k / STEPS)
            left = x + radius * dx - (width if dx < -0.1 else width / 2 if abs(dx) <= 0.1 else 0)
            bottom = y + radius * dy - (height if dy < -0.1 else height / 2 if abs(dy) <= 0.1 else 0)
            tried.append((left, bottom, left + width, bottom + height))
    free = [
        box
        for box in tried
        if box[0] >= inside.x0 and box[2] <= inside.x1 and box[1] >= inside.y0 and box[3] <= inside.y1
        if not any(a[0] < box[2] and box[0] < a[2] and a[1] < box[3] and box[1] < a[3] for a in taken)
    ]
    own = [box for box in free[:CLOSE] if all(gap(other, box) > gap(point, box) for other in others)]
    best = [*own, *free, *tried][0]
    return best, closest(point, best)


def closest(point: Any, box: Box) -> tuple[float, float]:
    """The place of a box that is closest to a point."""
    return min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3])


def gap(point: Any, box: Box) -> float:
    """How far a box is from a point."""
    at = closest(point, box)
    return hypot(at[0] - point[0], at[1] - point[1])
