"""What `covey release FILE --learn` makes of single columns, beside the true ones.

python benchmarks/learned.py --as NAME [--tables compas,cardio] [--seeds 1,2,3] [--epsilon 1] [--delta 1e-9] [--out FOLDER]

Runs the command line once for each table and seed and compares column by column: the distance of distribution functions for
numbers and dates (total variation where there are at most 50 values), total variation of words; the share of cells that stand at
a limit beyond the share of true cells there; the share of "other". Rules were chosen on compas and cardio; the others were
looked at afterwards. Adds the run to learned.csv under a name, in place of an earlier one of the same name, and writes
learned.md. A run with a code of the past (PYTHONPATH) under another name gives "before".
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLES = {"compas": "tuned on", "cardio": "tuned on", "telco": "checking", "bank": "checking", "randhie": "checking"}
FIELDS = ["run", "table", "column", "type", "seed", "distance", "at_limits", "other"]
FEW = 50  # values of a column that are compared one by one


def true_table(name):
    """The columns as words."""
    separator = ";" if name == "cardio" else ","
    return pl.read_csv(DATA / f"{name}.csv", separator=separator, infer_schema_length=0).fill_null("")


def numbers(series, kind):
    """Values of a column, NaN for what is none; days or seconds for dates."""
    if kind in ("date", "datetime"):
        text = series.cast(pl.String).str.replace("T", " ")
        when = (
            text.str.to_datetime(strict=False)
            if kind == "datetime"
            else text.str.slice(0, 10).str.to_date(strict=False)
        )
        return when.cast(pl.Datetime("us")).dt.epoch("s").cast(pl.Float64).fill_null(float("nan")).to_numpy()
    return series.cast(pl.Float64, strict=False).fill_null(float("nan")).to_numpy()


def distance_of_words(a, b):
    """Half the sum of absolute differences of shares."""
    (x, n), (y, m) = (np.unique(np.asarray(c, dtype=object).astype(str), return_counts=True) for c in (a, b))
    one, two = dict(zip(x, n / n.sum(), strict=True)), dict(zip(y, m / m.sum(), strict=True))
    return sum(abs(one.get(w, 0) - two.get(w, 0)) for w in {*one, *two}) / 2


def distance_of_numbers(a, b):
    """Total variation where there are few values; else the largest difference of distribution functions, holes added."""
    if len(np.unique(a[~np.isnan(a)])) <= FEW:
        return distance_of_words(a, b)
    holes = abs(np.isnan(a).mean() - np.isnan(b).mean())
    x, y = np.sort(a[~np.isnan(a)]), np.sort(b[~np.isnan(b)])
    at = np.union1d(x, y)
    found = [np.searchsorted(part, at, side="right") / max(len(part), 1) for part in (x, y)]
    return max(holes, float(np.abs(found[0] - found[1]).max(initial=0.0)))


def compare(true, bundle):
    """A row for each column of a bundle, and for each one that it left out."""
    fields = {f["name"]: f for f in json.loads((bundle / "schema.json").read_text())["fields"]}
    left_out = json.loads((bundle / "privacy.json").read_text()).get("left_out", [])
    rows = pl.read_csv(bundle / "synthetic.csv", infer_schema_length=0).fill_null("")
    for name, field in fields.items():
        kind, own, drawn = field["type"], true[name], rows[name]
        at_limits = other = 0.0
        if kind in ("integer", "number", "date", "datetime"):
            a, b = numbers(own, kind), numbers(drawn, kind)
            ends = [np.nanmin(b), np.nanmax(b)] if not np.isnan(b).all() else []
            at_limits = sum(max(0.0, np.mean(b == end) - np.mean(a == end)) for end in ends)
            apart = distance_of_numbers(a, b)
        else:
            apart = distance_of_words(own.str.strip_chars().to_list(), drawn.to_list())
            other = float((drawn == field.get("covey", {}).get("other", "\0")).mean())
        yield name, kind, apart, at_limits, other
    for name in left_out:
        yield name, "left out", 1.0, 0.0, 0.0


def measure(name, seed, options, run):
    """One release through the command line, column by column."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "bundle"
        command = [
            sys.executable,
            "-m",
            "covey.desk.cli",
            "release",
            str(DATA / f"{name}.csv"),
            "--learn",
            "--seed",
            str(seed),
        ]
        subprocess.run([*command, *options, "--out", str(out)], check=True, capture_output=True)
        for column, kind, *figures in compare(true_table(name), out):
            yield dict(zip(FIELDS, [run, name, column, kind, str(seed), *(f"{v:.4f}" for v in figures)], strict=True))


ORDERED = ("integer", "number", "date", "datetime")
FIGURES = {  # of which rows of a run the mean of which figure is taken
    "mean distance": ("distance", lambda row: True),
    "mean distance of columns kept": ("distance", lambda row: row["type"] != "left out"),
    "at limits, numbers": ("at_limits", lambda row: row["type"] in ORDERED),
    '"other", words': ("other", lambda row: row["type"] == "string"),
}


def mean(rows, what):
    """The mean of a figure, in percent."""
    return f"{100 * np.mean([float(row[what]) for row in rows]):.1f}%" if rows else ""


def page(rows):
    """learned.md."""
    runs = list(dict.fromkeys(row["run"] for row in rows))
    lines = "| " + " | ".join(runs) + " |", "|---|---|" + "---|" * len(runs)
    text = [
        "# Learned columns beside true ones",
        "",
        "`benchmarks/learned.py`: `covey release FILE --learn --epsilon 1 --delta 1e-9`, as a user runs it, means over seeds.",
        f"Distance: total variation of words and of numbers with at most {FEW} values, else the largest difference of",
        "distribution functions; a column that was left out counts as 1. At limits: cells at the least and largest synthetic",
        "value beyond those of true cells. Rules were chosen on compas and cardio alone.",
        "",
        f"| table | figure {lines[0]}",
        lines[1],
    ]
    for table, half in TABLES.items():
        by_run = {run: [r for r in rows if (r["run"], r["table"]) == (run, table)] for run in runs}
        for words, (what, wanted) in FIGURES.items():
            cells = [mean([r for r in by_run[run] if wanted(r)], what) for run in runs]
            text.append(f"| {table} ({half}) | {words} | " + " | ".join(cells) + " |")
        out = [
            sum(r["type"] == "left out" for r in own) / max(1, len({r["seed"] for r in own})) for own in by_run.values()
        ]
        text.append(f"| {table} ({half}) | columns left out | " + " | ".join(f"{count:.1f}" for count in out) + " |")
    text += [
        "",
        'Each column: its type, mean distance, at limits, "other".',
        "",
        f"| table | column {lines[0]}",
        lines[1],
    ]
    for table, column in sorted({(r["table"], r["column"]) for r in rows}):
        cells = []
        for run in runs:
            own = [r for r in rows if (r["run"], r["table"], r["column"]) == (run, table, column)]
            kinds = " or ".join(sorted({r["type"] for r in own}))
            cells.append(f"{kinds} {mean(own, 'distance')} {mean(own, 'at_limits')} {mean(own, 'other')}")
        text.append(f"| {table} | {column} | " + " | ".join(cells) + " |")
    return "\n".join(text) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--as", dest="run", required=True)
    parser.add_argument("--tables", default=",".join(TABLES))
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--epsilon", default="1")
    parser.add_argument("--delta", default="1e-9")
    parser.add_argument("--out", type=Path, default=Path(__file__).parents[1] / "docs" / "benchmarks")
    given = parser.parse_args()
    place = given.out / "learned.csv"
    known = list(csv.DictReader(place.open())) if place.is_file() else []
    options = ["--epsilon", given.epsilon, "--delta", given.delta]
    tables, seeds = given.tables.split(","), given.seeds.split(",")
    found = [row for name in tables for seed in seeds for row in measure(name, seed, options, given.run)]
    rows = [r for r in known if r["run"] != given.run or r["table"] not in tables] + found
    with place.open("w", newline="") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    (given.out / "learned.md").write_text(page(rows))


if __name__ == "__main__":
    main()
