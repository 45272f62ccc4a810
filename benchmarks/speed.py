"""Time and memory of `regain`: the sizes we promise, each beside one pass of moments in the same run.

python benchmarks/speed.py [--quick] [--out docs/benchmarks]

Writes speed.csv, seconds of the clock: run it where nothing else runs. A million rows are held against the pass beside them.
"""

from __future__ import annotations

import argparse
import csv
import resource
import time
import warnings
from pathlib import Path

import numpy as np
from scipy.special import expit

import covey
from covey.engine.codes.counts import moments
from covey.engine.units.local import ArrayRows

TIMES = 3  # of which the best counts, for the pass and for the fit: other work only adds


def table(n, p, seed=0, factors=5):
    """Correlated bits: a logistic factor model."""
    generator = np.random.default_rng(seed)
    loadings, bias = generator.normal(0, 1, (p, factors)), generator.normal(-1.5, 1, p)
    out = np.empty((n, p), dtype=np.uint8)
    for start in range(0, n, 50_000):
        rows = out[start : start + 50_000]
        rows[:] = generator.random(rows.shape) < expit(
            bias + generator.standard_normal((len(rows), factors)) @ loadings.T
        )
    return out


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    options = parser.parse_args()
    warnings.simplefilter("ignore", covey.errors.CoveyWarning)
    found = []
    million = 100_000 if options.quick else 1_000_000
    for n, p, target in ((20_000, 100, 4.0), (2_000, 1_001, 30.0), (million, 100, None)):
        X = table(n, p)
        passes = []
        for _ in range(TIMES):
            begin = time.perf_counter()
            ArrayRows(X).reduce(moments)
            passes.append(time.perf_counter() - begin)
        limit = 3 * min(passes) + 5 if target is None else target
        for delta in (0.0, 1e-9):
            runs = []
            for _ in range(TIMES):
                begin = time.perf_counter()
                Z = covey.PrivateSynthesizer(1.0, delta).fit(X).sample(n)
                runs.append(time.perf_counter() - begin)
            seconds = min(runs)
            verdict = "ok" if seconds <= limit else "MISSED"
            kind = f"(1, {delta:g})" if delta else "pure 1"
            memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
            found.append([n, p, kind, f"{seconds:.2f}", f"{min(passes):.3f}", f"{memory:.2f}"])
            print(
                f"{n:9,} × {p:5,}  {kind:10}  fit and {len(Z):,} rows {seconds:6.1f} s   target ≤ {limit:5.1f} s {verdict}"
                f"   one pass of moments {min(passes):.2f} s   peak memory so far {memory:.2f} GiB",
                flush=True,
            )
    with (options.out / "speed.csv").open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["n", "p", "setting", "seconds", "pass seconds", "GiB so far"], *found])


if __name__ == "__main__":
    main()
