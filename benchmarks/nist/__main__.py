"""covey's releases of NIST's survey excerpt, judged by SDNist itself: `make bench-nist DATA=… SDNIST=…`.

SDNist wants old versions of numpy and pandas: it runs in an environment of its own, on files. SDNIST is its folder of the
excerpts, as its repository has it under BenchmarkData/ACSDataExcerpts, with national/national2019.csv in place.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import tempfile
import time
import warnings
from dataclasses import dataclass, fields
from pathlib import Path

import polars as pl

import covey
from benchmarks.nist.survey import FEATURES, survey_schema

SETTINGS = {"(1, 1e-9)": (1.0, 1e-9), "pure 1": (1.0, 0.0), "(10, 1e-9)": (10.0, 1e-9), "pure 10": (10.0, 0.0)}
PAGE = Path(__file__).parents[2] / "docs" / "benchmarks" / "nist"

# What NIST published for the same excerpt and columns (SDNist's sample reports), for comparison; rows inconsistent in per cent.
PUBLISHED = {("demographic", "smartnoise AIM"): (976, 4.4), ("demographic", "smartnoise MST"): (958, 9.2)}


@dataclass(frozen=True)
class Result:
    """One release and what SDNist says of it."""

    features: str
    setting: str
    rules: str
    seed: int
    k_marginal: float
    worst_area: float | None
    impossible: float
    propensity: float
    seconds: float
    lines: dict[str, list[float]]


LINES = ["rows", "synthetic rows", "slope", "intercept", "synthetic slope", "synthetic intercept"]


def released(data, features, setting, ruled, seed):
    """Synthetic rows and the processor seconds that they took."""
    schema = survey_schema(data, FEATURES[features], ruled)
    table = pl.read_csv(data / "national2019.csv", infer_schema_length=0).select(FEATURES[features])
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows = covey.PrivateSynthesizer(*SETTINGS[setting], schema=schema, seed=seed).fit(table).sample(table.height)
    return rows, time.process_time() - began


def judged(python, sdnist, paths):
    """SDNist's words about files."""
    command = [python, str(Path(__file__).with_name("judge.py")), str(sdnist), *map(str, paths)]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode:
        raise SystemExit(f"SDNist failed: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def results(options):
    """Every feature set, setting, with rules and without, one after the other."""
    with tempfile.TemporaryDirectory() as folder:
        for features in options.features:
            for setting in options.settings:
                for ruled in {"with": (True,), "without": (False,), "both": (True, False)}[options.rules]:
                    for seed in range(options.first_seed, options.first_seed + options.seeds):
                        rows, seconds = released(options.data, features, setting, ruled, seed)
                        path = Path(folder) / f"{features}-{ruled}-{seed}.csv"
                        rows.write_csv(path)
                        said = judged(options.python, options.sdnist, [path])[str(path)]
                        wrong = 100 * max(said["inconsistent"].values()) / rows.height
                        yield Result(
                            features,
                            setting,
                            "with rules" if ruled else "without",
                            seed,
                            said["k_marginal"],
                            said.get("worst_area"),
                            wrong,
                            said["propensity"],
                            seconds,
                            said.get("regressions", {}),
                        )


def page(found: list[dict[str, str]]) -> str:
    """The table, as the page shows it: the mean over seeds."""
    lines = [
        "| columns | guarantee | rules | seeds | k-marginal | worst area | impossible rows | propensity | seconds |"
    ]
    lines.append("|---|---|---|---|---|---|---|---|---|")
    for key in dict.fromkeys((r["features"], r["setting"], r["rules"]) for r in found):
        own = [r for r in found if (r["features"], r["setting"], r["rules"]) == key]

        def mean(name, own=own):
            return sum(float(r[name]) for r in own) / len(own)

        area = f"{mean('worst_area'):.0f}" if own[0]["worst_area"] else ""
        key = (*key, str(len(own)))
        rest = f"{mean('impossible'):.1f}% | {mean('propensity'):.4f} | {mean('seconds'):.0f}"
        lines.append(f"| {' | '.join(key)} | {mean('k_marginal'):.1f} | {area} | {rest} |")
    for (features, method), (score, wrong) in PUBLISHED.items():
        lines.append(f"| {features} | ε = 1, {method}, published by NIST | without | | {score} | | {wrong}% | | |")
    return "\n".join(lines) + "\n"


def lines_page(found: list[dict[str, str]]) -> str:
    """SDNist's regressions of the demographic columns, with rules: true and synthetic slopes, each release after the other."""
    own = [row for row in found if row["features"] == "demographic" and row["rules"] == "with rules"]
    settings = list(dict.fromkeys(row["setting"] for row in own))
    lines = [
        f"| group | rows | true slope, intercept | {' | '.join(settings)} |",
        "|---|---|---|" + "---|" * len(settings),
    ]
    for group in dict.fromkeys(row["group"] for row in own):
        here = [row for row in own if row["group"] == group]
        cells = [
            "; ".join(f"{r['synthetic slope']}, {r['synthetic intercept']}" for r in here if r["setting"] == setting)
            for setting in settings
        ]
        first = here[0]
        start = f"| {group} | {int(first['rows']):,} | {first['slope']}, {first['intercept']} | "
        lines.append(f"{start}{' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def put(text: str, name: str, table: str) -> str:
    """A page with a table between its marks."""
    before, mark, rest = text.partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->\n")
    return before + mark + table + end + after


def key(row: dict[str, str]) -> tuple[str, ...]:
    """What is measured once."""
    return row["features"], row["setting"], row["rules"], row["seed"]


def place(row: dict[str, str]) -> tuple[int, int, str, int]:
    """Where a row stands on the page."""
    order = list(FEATURES).index(row["features"]), list(SETTINGS).index(row["setting"])
    return *order, row["rules"], int(row["seed"])


def earlier(path: Path) -> dict[tuple[str, ...], dict[str, str]]:
    """What was measured before: a run adds to it, or replaces it."""
    if not path.exists():
        return {}
    with path.open(newline="") as file:
        return {key(row): row for row in csv.DictReader(file)}


def record_lines(path: Path, row: dict[str, str], lines: dict[str, list[float]]) -> None:
    """SDNist's regression lines of a release, in place of earlier ones of the same."""
    head = ["features", "setting", "rules", "seed"]
    known = []
    if path.exists():
        with path.open(newline="") as file:
            known = [old for old in csv.DictReader(file) if key(old) != key(row)]
    for group, numbers in lines.items():
        known.append({name: row[name] for name in head} | {"group": group} | dict(zip(LINES, numbers, strict=True)))
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, [*head, "group", *LINES], lineterminator="\n")
        writer.writeheader()
        writer.writerows(sorted(known, key=place))


def main():
    """Measure, write the CSV, and put the table on its page between its marks."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sdnist", type=Path, required=True, help="SDNist's folder of the excerpts")
    parser.add_argument("--python", default="build/sdnist/bin/python", help="the Python that has SDNist")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--features", nargs="+", default=list(FEATURES), choices=list(FEATURES))
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--rules", choices=["with", "without", "both"], default="both", help="the code book's rules")
    parser.add_argument("--out", type=Path, default=PAGE)
    options = parser.parse_args()
    names = [field.name for field in fields(Result) if field.name != "lines"]
    known = earlier(options.out.with_suffix(".csv"))
    for result in results(options):
        row = {name: "" if getattr(result, name) is None else str(getattr(result, name)) for name in names}
        known[key(row)] = row
        record_lines(options.out.with_name(options.out.name + "-regressions.csv"), row, result.lines)
        found = sorted(known.values(), key=place)
        print(row, flush=True)
        with options.out.with_suffix(".csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, names, lineterminator="\n")
            writer.writeheader()
            writer.writerows(found)
    path = options.out.with_suffix(".md")
    with options.out.with_name(options.out.name + "-regressions.csv").open(newline="") as file:
        lines = list(csv.DictReader(file))
    path.write_text(put(put(path.read_text(), "figures", page(list(known.values()))), "lines", lines_page(lines)))


if __name__ == "__main__":
    main()
