"""One method on one table, in this process: the child of `launch.py`, run by the Python of the method's own environment.

    python one_run.py RUNNER METHOD FOLDER ROWS EPSILON DELTA

FOLDER holds table.csv (integer codes) and domain.json (column → number of categories). Writes synthetic.csv and result.json
there. Imports of the package count towards memory and the limit, not towards the seconds.
"""

import importlib
import json
import resource
import sys
import time
from pathlib import Path

import pandas as pd


def processor_seconds() -> float:
    """Used by this process and its children, so that a package that starts workers is charged for them."""
    kinds = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(u.ru_utime + u.ru_stime for u in map(resource.getrusage, kinds))


def main() -> None:
    runner, method, folder, rows, epsilon, delta = sys.argv[1:]
    place = Path(folder)
    domain = json.loads((place / "domain.json").read_text())
    table = pd.read_csv(place / "table.csv")
    synthesize = importlib.import_module(runner).prepare(method)  # imports the package
    wall, used = time.perf_counter(), processor_seconds()
    synthetic = synthesize(table, domain, int(rows), float(epsilon), float(delta))
    used, wall = processor_seconds() - used, time.perf_counter() - wall
    peak = max(resource.getrusage(k).ru_maxrss for k in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 2**10
    pd.DataFrame(synthetic, columns=list(domain)).to_csv(place / "synthetic.csv", index=False)
    result = {"processor_seconds": used, "wall_seconds": wall, "peak_mib": peak, "rows": len(synthetic)}
    (place / "result.json").write_text(json.dumps(result))


if __name__ == "__main__":
    main()
