"""peers.csv, peers.md and peers.svg from the results of the single runs."""

from __future__ import annotations

import csv
from math import exp
from pathlib import Path

import numpy as np
from scipy.optimize import brentq, minimize_scalar
from scipy.stats import norm

from benchmarks.peers.launch import METHODS
from benchmarks.peers.picture import plot
from benchmarks.peers.tables import XOR

FIELDS = [
    *("table", "rows", "columns", "method", "guarantee", "status", "limit", "date"),
    *("processor_seconds", "wall_seconds", "peak_mib", "delta1", "delta2", "delta3", "delta4"),
    *("tv1", "tv2", "tv3", "sdmetrics", "accuracy", "accuracy_true", "explained", "version"),
]
PLOTTED = ("nltcs", "adult", "plants", "accidents")
TEXTS = ("table", "method", "guarantee", "status", "date", "version")
HEAD = """# covey beside its peers

`make bench-peers DATA=folder PEERS=folder`, {date}. Every method gets the same table, makes as many rows as the table has, and
runs once, in a process and an environment of its own, on one core with one thread, with at most {limit} seconds of
processor time (more where a row says so) and 8 GiB. ε = 1 everywhere, and δ = 1e-9 where the guarantee is (ε, δ).
**Pure ε** and **(ε, δ)** are different promises, so compare within a guarantee first. Seconds are processor seconds of
fitting and sampling; imports do not count, compiling while running does. (Wall-clock seconds are in the CSV: the machine
was shared.) All figures compare with true rows and are therefore not private.

RMSE₁ RMSE₂ RMSE₃ RMSE₄: root mean square errors of 1- to 4-way shares of flags (of categories as flags). TV: mean total variation
of 1-, 2- and 3-way tables, at most 300 of each; that of 2-way tables is the yardstick of covey's plans, certificates and
evaluations, rows out of place: .031 means that of 100 rows 3.1 stand in the wrong cell of a typical table.
SDMetrics: its quality score of the first 20 columns. Accuracy: a
logistic regression predicts the last columns, taught on synthetic rows and tested on true ones (in brackets: taught on
other true rows). Of the last two, more is better; of the others, less.

Yardsticks end each table: true rows drawn again; a tree of pairs with exact statistics, the best that a tree model can do;
for flags the best unbiased Gaussian measurement of all pairs, RMSE₂ by formula (`best_unbiased` in benchmarks/peers/page.py), as
ResidualPlanner accounts for a replaced row, and with the exact sensitivity of signs.

Versions: {versions}.

![error against time](peers.svg)
"""
PROMISE = (1.0, 1e-9)
LIMIT = 300  # seconds of processor time that a run has unless its row says otherwise
FIGURES = Path(__file__).parents[2] / "docs/benchmarks"
Rows = dict[tuple[str, str], dict]


def read(out: Path) -> Rows:
    """What peers.csv says, by table and method."""
    path = out / "peers.csv"
    if not path.exists():
        return {}
    with path.open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    rows = [{k: v if k in TEXTS else number(v) for k, v in row.items() if v} for row in found]
    return {(row["table"], row["method"]): row for row in rows}


def number(text: str) -> float | int:
    """As it was before it was written."""
    return int(text) if text.isdigit() else float(text)


def write(known: Rows, out: Path) -> None:
    """All three files."""
    order = {method.name: i for i, method in enumerate(METHODS)}
    tables = list(dict.fromkeys(table for table, _ in known))
    rows = sorted(known.values(), key=lambda r: (tables.index(r["table"]), order[r["method"]]))
    out.mkdir(parents=True, exist_ok=True)
    with (out / "peers.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        writer.writerows({k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in rows)
    (out / "peers.md").write_text(text(list(read(out).values())), encoding="utf-8")
    plot([row for row in rows if row["table"] in PLOTTED], out / "peers.svg")


def text(rows: list[dict]) -> str:
    """The page, from the rows of the CSV file and the words of findings.md."""
    dates = sorted({row["date"] for row in rows})
    versions = ", ".join(sorted({row["version"] for row in rows if "version" in row}, key=str.lower))
    head = HEAD.format(date=dates[-1], limit=LIMIT, versions=versions)
    findings = Path(__file__).with_name("findings.md").read_text(encoding="utf-8")
    before, after = findings.split("<!-- tables -->\n")
    for mark, table in (("elsewhere", elsewhere), ("twice", twice), ("intervals", intervals)):
        after = after.replace(f"<!-- {mark} -->\n", "\n".join(table(rows)) + "\n")
    return "\n".join([head, before, *sections(rows), *exclusive_or(rows), after])


def by_hand(rows: list[dict]) -> list[tuple[dict, dict | None]]:
    """Runs that were made by hand, in strongest.csv, each with the row of this harness for the same program, if there is one."""
    with (FIGURES / "strongest.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    done = {(row["table"], row["method"]): row for row in rows if row["status"] == "ok"}
    return [(row, done.get((row["table"], row["here"]))) for row in found]


def twice(rows: list[dict]) -> list[str]:
    """What was measured by hand and in this harness: errors of pairs, and processor seconds."""
    out = ["| table | method | error of pairs, by hand | here | seconds, by hand | here |", "|---|---|---|---|---|---|"]
    for hand, here in by_hand(rows):
        if here:
            name, key = ("RMSE₂", "delta2") if hand["delta2"] else ("TV", "tv2")
            start = f"| {hand['table']} | {here['method']} | {name} {hand[key]} "
            out.append(
                f"{start}| {here[key]:.4f} | {hand['seconds']} | {here['processor_seconds']:.0f} |".replace(
                    "| 0.", "| ."
                )
            )
    return out


def elsewhere(rows: list[dict]) -> list[str]:
    """What was measured by hand alone."""
    found = [hand for hand, here in by_hand(rows) if here is None]
    out = ["| table | method | RMSE₁ RMSE₂ RMSE₃ RMSE₄ | TV 1, 2, 3 | seconds |", "|---|---|---|---|---|"]
    for row in found:
        deltas, tv = (" ".join(row[k] for k in row if k.startswith(start)).strip() for start in ("delta", "tv"))
        out.append(f"| {row['table']} | {row['method']} | {deltas} | {tv} | {row['seconds']} |")
    return out


def intervals(_: list[dict]) -> list[str]:
    """How often intervals hold, in peers-intervals.csv (`coverage.py`)."""
    with (FIGURES / "peers-intervals.csv").open(newline="", encoding="utf-8") as file:
        found = list(csv.DictReader(file))
    out = ["| method | releases | statistic | held | width | seconds a release |", "|---|---|---|---|---|---|"]
    for row in found:
        held = f"{row['coverage']} ± {row['coverage se']}"
        start = f"| {row['method']} | {row['releases']} | {row['statistic']} "
        out.append(f"{start}| {held} | {row['width']}× | {row['processor_seconds']} |")
    return out


def best_unbiased(n: int, p: int, exact: bool) -> float:
    """RMSE₂ of the best unbiased Gaussian measurement of all pairs of p flags, for a replaced row at PROMISE.

    A share is a quarter of 1 ± two means of signs ± the mean of a product of signs. Sums of signs get noise of variance s,
    products r·s. ResidualPlanner's cost of a replaced row is four times that of an added one; exactly, k changed signs change
    k(p − k) products.
    """
    epsilon, delta = PROMISE
    mu = brentq(
        lambda m: norm.cdf(m / 2 - epsilon / m) - exp(epsilon) * norm.cdf(-m / 2 - epsilon / m) - delta, 1e-3, 9
    )
    k = np.arange(1, p + 1)

    def error(log_r: float) -> float:
        r = exp(log_r)
        cost = np.max(4 * k + 4 * k * (p - k) / r) if exact else 4 * (p + p * (p - 1) / 2 / r)
        return float(np.sqrt((2 + r) * cost / 16) / mu / n)

    return float(minimize_scalar(error, bounds=(-5, 15), method="bounded").fun)


def sections(rows: list[dict]) -> list[str]:
    """A Markdown table for each table."""
    out = []
    for name in dict.fromkeys(row["table"] for row in rows if row["table"] not in XOR):
        own = [row for row in rows if row["table"] == name]
        n, p = own[0]["rows"], own[0]["columns"]
        out.append(f"\n## {name.partition(',')[0]}: {n:,} rows × {p} columns\n")
        out.append(
            "| method | guarantee | RMSE₁ RMSE₂ RMSE₃ RMSE₄ | TV 1, 2, 3 | SDMetrics | accuracy | seconds | peak MiB |"
        )
        out.append("|---|---|---|---|---|---|---|---|")
        out += [line(row) for row in own]
        if name != "adult":  # all others are tables of flags
            accounts = [f"{best_unbiased(n, p, exact):.5f}".lstrip("0") for exact in (False, True)]
            words = "best unbiased Gaussian of all pairs, by formula | (ε, δ) = (1, 1e-9)"
            out.append(f"| {words} | RMSE₂ {accounts[0]} (ResidualPlanner), {accounts[1]} (exact) | | | | | |")
    return out


def exclusive_or(rows: list[dict]) -> list[str]:
    """Of tables whose label is an exclusive or: the share of rows that keep it."""
    own = {(row["table"], row["method"]): row for row in rows if row["table"] in XOR}
    if not own:
        return []
    names = list(dict.fromkeys(table for table, _ in own))
    out = ["\n## A label that is the exclusive or of some of the other columns\n"]
    out.append(
        "20,000 fair flags a column, 8 of them unless said; 5% of the labels are wrong. No pair of columns says anything."
    )
    out.append(
        "The share of synthetic rows whose label is the exclusive or: .95 in the true rows, .50 where nothing was learned.\n"
    )
    out += [f"| method | guarantee | {' | '.join(names)} |", "|---|---|" + "---|" * len(names)]
    for method in dict.fromkeys(method for _, method in own):
        found = [own.get((name, method)) for name in names]
        guarantee = next(row["guarantee"] for row in found if row)
        out.append(f"| {method} | {guarantee} | " + " | ".join(map(kept, found)) + " |")
    return out


def kept(row: dict | None) -> str:
    """A cell of that table."""
    if row is None:
        return ""
    return f"{row['explained']:.3f}".lstrip("0") if row["status"] == "ok" else row["status"].replace("|", "/")


def line(row: dict) -> str:
    """One method."""
    longer = f" (limit {row['limit']:,} s)" if row.get("processor_seconds", 0) > LIMIT else ""
    start = f"| {row['method']}{longer} | {row['guarantee']} "
    if row["status"] != "ok":
        return f"{start}| {row['status'].replace('|', '/')} | | | | | |"
    deltas = " ".join(f"{row[f'delta{d}']:.5f}".lstrip("0") for d in (1, 2, 3, 4))
    tv = " ".join(f"{row[f'tv{d}']:.3f}".lstrip("0") for d in (1, 2, 3))
    score = f"{row['sdmetrics']:.3f}" if row.get("sdmetrics") else ""
    accuracy = f"{row['accuracy']:.3f} ({row['accuracy_true']:.3f})"
    return f"{start}| {deltas} | {tv} | {score} | {accuracy} | {row['processor_seconds']:.1f} | {row['peak_mib']:.0f} |"
