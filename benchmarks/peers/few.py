"""covey with few rows, forty releases of each table: there one release says little about the next.

    python -m benchmarks.peers.few --data FOLDER [--releases 40] [--out docs/benchmarks]

Writes peers-few.csv, RMSE₁ and RMSE₂ of each release at (1, 1e-9); peers.md quotes their mean, smallest and largest.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np

import covey
from benchmarks.peers import tables
from benchmarks.peers.run_covey import prepare

TABLES = ("nltcs, 500 rows", "nltcs, 2000 rows")
FIELDS = ["table", "release", "delta1", "delta2"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--releases", type=int, default=40)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    synthesize, lines = prepare("private"), []
    for name in TABLES:
        table, domain = tables.load(name, options.data)
        X = table.to_numpy().astype(np.uint8)
        for k in range(options.releases):
            Z = np.asarray(synthesize(table, domain, len(table), 1.0, 1e-9)).astype(np.uint8)
            found = {f"delta{d}": f"{covey.marginal_error(X, Z, degree=d, subsets=3000):.6g}" for d in (1, 2)}
            lines.append({"table": name, "release": k, **found})
            print(*lines[-1].values(), flush=True)
    with (options.out / "peers-few.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, FIELDS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


if __name__ == "__main__":
    main()
