"""Side by side: covey and its peers on the same tables, with the same number of rows, one core and one time limit.

    python -m benchmarks.peers.compare --data FOLDER [--tables nltcs adult] [--methods "dpsynth MST"] [--seconds 300]

What stands in peers.csv is not measured again unless --again names its method, so that a run that was stopped goes on where it
was, and peers that are not at hand keep the figures they had. Writes peers.csv, peers.md and peers.svg. Peers that are on no
package index are read from the folder in the variable PEERS (build/peers/sources): clones of google/dpsynth,
giusevtr/private_gsd, ryan112358/private-pgm, KaiChen9909/margnet, microsoft/DPSDA and (for `coverage.py`) DPBayes/twinify; the
page names the commits.
"""

from __future__ import annotations

import argparse
import shutil
from datetime import date
from pathlib import Path

import pandas as pd

from benchmarks.peers import metrics, page, tables
from benchmarks.peers.launch import ENVIRONMENTS, METHODS, Method, launch

RUNS = ENVIRONMENTS / "runs"
EPSILON = 1.0
SDMETRICS = ENVIRONMENTS / "sdmetrics/bin/python"
SCORING = 600  # seconds of wall clock for one score
TABLES = ["nltcs", "adult", "plants", "accidents", "nltcs, 500 rows", "nltcs, 2000 rows", *tables.XOR]


def result_of(method: Method, name: str, options: argparse.Namespace) -> dict:
    """A new run of a method on a table."""
    folder = RUNS / "".join(c if c.isalnum() else "-" for c in f"{name} {method.name}".lower())
    table, domain = tables.load(name, options.data)
    tables.save(table, domain, folder)
    head = {"table": name, "rows": len(table), "columns": len(domain), "method": method.name}
    head |= {"guarantee": method.guarantee, "limit": options.seconds, "date": date.today().isoformat()}
    result = head | launch(method, folder, len(table), EPSILON, options.seconds, options.patience)
    if result["status"] == "ok":
        result |= {"rows": len(table), "version": method.version, **judged(folder, name, table, domain)}
    shutil.rmtree(folder)
    return result


def judged(folder: Path, name: str, table: pd.DataFrame, domain: dict[str, int]) -> dict:
    """The metrics, or the reason why there are none."""
    synthetic = pd.read_csv(folder / "synthetic.csv")
    try:
        found = metrics.measure(table, synthetic[list(domain)], domain)
    except (ValueError, KeyError) as problem:
        return {"status": f"failed: {problem}"}
    if name in tables.XOR:
        found["explained"] = tables.explained(name, synthetic)
    found["sdmetrics"] = metrics.quality(SDMETRICS, folder, SCORING)
    return found


def decided(row: dict | None) -> bool:
    """Whether an earlier run says something about the method: a machine that was busy or has not got it does not."""
    return row is not None and not row["status"].startswith(("unfinished", "absent", "not installed"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--tables", nargs="+", default=TABLES)
    parser.add_argument("--methods", nargs="+", default=[method.name for method in METHODS])
    parser.add_argument("--seconds", type=int, default=300, help="of processor time for one run")
    parser.add_argument("--patience", type=int, default=5, help="seconds of wall clock for each of them")
    parser.add_argument("--again", nargs="+", default=[])
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    known = page.read(options.out)
    for name in options.tables:
        for method in METHODS:
            if method.name not in options.methods:
                continue
            if method.name in options.again or not decided(known.get((name, method.name))):
                known[name, method.name] = found = result_of(method, name, options)
                told = [found.get(key) for key in ("status", "delta2", "tv2", "explained", "processor_seconds")]
                print(name, method.name, *told, flush=True)
                page.write(known, options.out)


if __name__ == "__main__":
    main()
