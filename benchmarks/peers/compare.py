"""Side by side: covey and its peers on the same tables, with the same number of rows, one core and one time limit.

    python -m benchmarks.peers.compare --data FOLDER [--tables nltcs adult plants] [--seconds 300] [--out docs/benchmarks]

Results are kept in build/peers/results, so that a run that was stopped goes on where it was; --again NAME … forgets some.
Writes peers.csv, peers.md and peers.svg.
"""

from __future__ import annotations

import argparse
import json
from datetime import date
from pathlib import Path

import pandas as pd

from benchmarks.peers import metrics, page, tables
from benchmarks.peers.launch import ENVIRONMENTS, METHODS, Method, launch

RESULTS = ENVIRONMENTS / "results"
EPSILON = 1.0
SDMETRICS = ENVIRONMENTS / "sdmetrics/bin/python"
SCORING = 600  # seconds of wall clock for one score


def result_of(method: Method, name: str, options: argparse.Namespace) -> dict:
    """What is known about a method on a table: from an earlier run, or from a new one."""
    slug = "".join(c if c.isalnum() else "-" for c in method.name.replace("(ε, δ)", "approximate")).strip("-").lower()
    folder = RESULTS / name / slug
    kept = folder / "measured.json"
    if kept.exists() and method.name not in options.again:
        found = json.loads(kept.read_text())
        if not found["status"].startswith("unfinished"):  # the machine was busy: that says nothing about the method
            return scored(found, folder, name, options)
    table, domain = tables.load(name, options.data)
    tables.save(table, domain, folder)
    head = {"table": name, "rows": len(table), "columns": len(domain), "method": method.name}
    result = head | {"guarantee": method.guarantee, "limit": options.seconds, "date": date.today().isoformat()}
    result |= launch(method, folder, len(table), EPSILON, options.seconds, options.patience)
    if result["status"] == "ok":
        result |= judged(folder, table, domain)
    (folder / "table.csv").unlink()
    if result["status"] != "not installed":
        kept.write_text(json.dumps(result, indent=1, ensure_ascii=False))
    return result


def scored(found: dict, folder: Path, name: str, options: argparse.Namespace) -> dict:
    """With SDMetrics' score, where it was not installed or had too little time when the rows were made."""
    if found["status"] == "ok" and found["sdmetrics"] is None and SDMETRICS.exists():
        tables.save(*tables.load(name, options.data), folder)
        found["sdmetrics"] = metrics.quality(SDMETRICS, folder, SCORING)
        (folder / "table.csv").unlink()
        (folder / "measured.json").write_text(json.dumps(found, indent=1, ensure_ascii=False))
    return found


def judged(folder: Path, table: pd.DataFrame, domain: dict[str, int]) -> dict:
    """The metrics, or the reason why there are none."""
    synthetic = pd.read_csv(folder / "synthetic.csv")
    try:
        found = metrics.measure(table, synthetic[list(domain)], domain)
    except (ValueError, KeyError) as problem:
        return {"status": f"failed: {problem}"}
    found["sdmetrics"] = metrics.quality(SDMETRICS, folder, SCORING)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=["nltcs", "adult", "plants"])
    parser.add_argument("--methods", nargs="+", default=[method.name for method in METHODS])
    parser.add_argument("--seconds", type=int, default=300, help="of processor time for one run")
    parser.add_argument("--patience", type=int, default=5, help="seconds of wall clock for each of them")
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    for name in options.tables:
        for method in METHODS:
            if method.name in options.methods:
                found = result_of(method, name, options)
                print(
                    name, method.name, found["status"], found.get("delta2"), found.get("processor_seconds"), flush=True
                )
    page.write(RESULTS, options.out)


if __name__ == "__main__":
    main()
