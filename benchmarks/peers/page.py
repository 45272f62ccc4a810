"""peers.csv, peers.md and peers.svg from the results of the single runs."""

from __future__ import annotations

import csv
import json
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

from benchmarks.peers.launch import ENVIRONMENTS, GROUPS, METHODS, PURE

PACKAGES = {
    "smartnoise": "smartnoise-synth",
    "datasynthesizer": "DataSynthesizer",
    "opendp": "opendp",
    "dpmm": "dpmm",
    "anonypyx": "anonypyx",
    "sdmetrics": "sdmetrics",
}
FIELDS = [
    *("table", "rows", "columns", "method", "guarantee", "status", "limit", "date"),
    *("processor_seconds", "wall_seconds", "peak_mib", "delta1", "delta2", "delta3", "delta4"),
    *("tv1", "tv2", "tv3", "sdmetrics", "accuracy", "accuracy_true"),
]
HEAD = """# covey beside its peers

`make bench-peers DATA=folder`, {date}. Every method gets the same table, makes as many rows as the table has, and
runs once, in a process and an environment of its own, on one core with one thread, with at most {limit} seconds of
processor time and 8 GiB. ε = 1 everywhere, and δ = 1e-9 where the guarantee is (ε, δ). **Pure ε** and **(ε, δ)** are
different promises, so compare within a guarantee first. Seconds are processor seconds of fitting and sampling; imports
do not count, compiling while running does. (Wall-clock seconds are in the CSV: the machine was shared.) All figures
compare with true rows and are therefore not private.

δ₁ δ₂ δ₃ δ₄: root mean square errors of 1- to 4-way shares of flags (of categories as flags). TV: mean total variation
of 1-, 2- and 3-way tables, at most 300 of each. SDMetrics: its quality score of the first 20 columns. Accuracy: a
logistic regression predicts the last columns, taught on synthetic rows and tested on true ones (in brackets: taught on
other true rows). Of the last two, more is better; of the others, less.

Versions: {versions}.

![error against time](peers.svg)
"""


def write(results: Path, out: Path) -> None:
    """All three files."""
    rows = collect(results)
    out.mkdir(parents=True, exist_ok=True)
    with (out / "peers.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    words = Path(__file__).with_name("findings.md")
    (out / "peers.md").write_text("\n".join([head(rows), *map(str, sections(rows)), words.read_text()]))
    plot(rows, out / "peers.svg")


def collect(results: Path) -> list[dict]:
    """The single results, tables together, methods in their order."""
    order = {method.name: i for i, method in enumerate(METHODS)}
    found = [json.loads(path.read_text()) for path in results.glob("*/*/measured.json")]
    return sorted(found, key=lambda r: (r["columns"] > 20, r["table"] == "adult", r["table"], order[r["method"]]))


def head(rows: list[dict]) -> str:
    limits = sorted({row["limit"] for row in rows})
    dates = sorted({row["date"] for row in rows})
    return HEAD.format(date=dates[-1], limit=" or ".join(map(str, limits)), versions=versions())


def versions() -> str:
    """Of Python, covey and every peer that is installed."""
    found = [f"Python {platform.python_version()}", f"covey {version('covey')}"]
    for environment, package in PACKAGES.items():
        name = package.lower().replace("-", "_")
        for path in (ENVIRONMENTS / environment).glob("lib/python*/site-packages/*.dist-info"):
            if path.name.lower().startswith(f"{name}-"):
                found.append(f"{package} {path.name.removesuffix('.dist-info').rsplit('-', 1)[1]}")
    return ", ".join(found)


def sections(rows: list[dict]) -> list[str]:
    """A Markdown table for each table."""
    out = []
    for name in dict.fromkeys(row["table"] for row in rows):
        own = [row for row in rows if row["table"] == name]
        out.append(f"\n## {name}: {own[0]['rows']:,} rows × {own[0]['columns']} columns\n")
        out.append("| method | guarantee | δ₁ δ₂ δ₃ δ₄ | TV 1, 2, 3 | SDMetrics | accuracy | seconds | peak MiB |")
        out.append("|---|---|---|---|---|---|---|---|")
        out += [line(row) for row in own]
    return out


def line(row: dict) -> str:
    """One method."""
    start = f"| {row['method']} | {row['guarantee']} "
    if row["status"] != "ok":
        return f"{start}| {row['status'].replace('|', '/')} | | | | | |"
    deltas = " ".join(f"{row[f'delta{d}']:.5f}".lstrip("0") for d in (1, 2, 3, 4))
    tv = " ".join(f"{row[f'tv{d}']:.3f}".lstrip("0") for d in (1, 2, 3))
    score = "" if row["sdmetrics"] is None else f"{row['sdmetrics']:.3f}"
    accuracy = f"{row['accuracy']:.3f} ({row['accuracy_true']:.3f})"
    return f"{start}| {deltas} | {tv} | {score} | {accuracy} | {row['processor_seconds']:.1f} | {row['peak_mib']:.0f} |"


def plot(rows: list[dict], path: Path) -> None:
    """Error of 2-way tables against time, a point per method; a method without a result stands at the limit, hollow."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "covey"
    import matplotlib.pyplot as plt

    names = list(dict.fromkeys(row["table"] for row in rows))
    figure, axes = plt.subplots(1, len(names), figsize=(5.4 * len(names), 6), squeeze=False, layout="constrained")
    for axis, name in zip(axes[0], names, strict=True):
        own = [row for row in rows if row["table"] == name]
        done = [row for row in own if row["status"] == "ok"]
        for row in done:
            marker = {PURE: "o", GROUPS: "x"}.get(row["guarantee"], "s")
            color = "tab:blue" if "covey" in row["method"] else "tab:gray"
            axis.scatter(row["processor_seconds"], row["tv2"], marker=marker, color=color, zorder=3)
        without = [f"{row['method']}: {row['status'].split('(', 1)[0][:40]}" for row in own if row["status"] != "ok"]
        axis.set(xscale="log", yscale="log", title=name, xlabel="processor seconds")
        axis.margins(x=0.3, y=0.15)
        axis.grid(alpha=0.3)
        label(figure, axis, done)
        words = "no result: " + "\n".join(without) if without else ""
        axis.text(0, -0.16, words, transform=axis.transAxes, va="top", fontsize=8, color="tab:red")
    axes[0][0].set_ylabel("mean total variation of 2-way tables")
    figure.suptitle("ε = 1.  ● pure ε   ■ (ε, δ) with δ = 1e-9   × groups of 20, no differential privacy", fontsize=10)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


def label(figure: Any, axis: Any, rows: list[dict]) -> None:
    """The name of each point, above or below it, wherever it hides no other."""
    figure.canvas.draw()
    taken: list[Any] = []
    for row in sorted(rows, key=lambda row: row["processor_seconds"]):
        for height in (4, -11, 15, -22, 26, -33, 37):
            place = (row["processor_seconds"], row["tv2"])
            text = axis.annotate(row["method"], place, xytext=(4, height), textcoords="offset points", fontsize=8)
            box = text.get_window_extent()
            if not any(box.overlaps(other) for other in taken):
                break
            text.remove()
        taken.append(box)
