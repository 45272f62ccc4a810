"""The spectral tree beside MDAV: covariance loss, 2-way error and time, on the public tables and as n grows.

python benchmarks/anonymous.py [--tables nltcs,plants]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from covey.core.balanced import sample_bits
from covey.core.blocks import block_sums, microaggregate
from covey.core.marginals import covariance_loss, marginal_error
from covey.core.tree import mdav, spectral_tree

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
TABLES = "nltcs,kdd,plants,baudio,bnetflix,accidents,adult_bits,nips"


def measure(X, grouping, r):
    begin = time.perf_counter()
    groups = grouping(X, r)
    seconds = time.perf_counter() - begin
    cloud = microaggregate(block_sums(X, groups, int(groups.max()) + 1))
    errors = [marginal_error(X, sample_bits(cloud, len(X), np.random.default_rng(s)), 2) for s in range(3)]
    return covariance_loss(X, groups), float(np.mean(errors)), seconds


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", default=TABLES)
    loss, error = [], []
    for name in parser.parse_args().tables.split(","):
        if not (DATA / f"{name}.npz").exists():
            print(f"{name}.npz is not in {DATA}: skipped")
            continue
        X = np.load(DATA / f"{name}.npz")["x"].astype(np.uint8)
        for r in (5, 20, 100):
            a, b = measure(X, spectral_tree, r), measure(X, mdav, r)
            loss.append(a[0] / b[0])
            error.append(a[1] / b[1])
            print(
                f"{name:11} r = {r:3}   covariance loss {loss[-1]:.2f}×   δ₂ {error[-1]:.2f}×   "
                f"time {a[2]:.2f} s against {b[2]:.2f} s",
                flush=True,
            )
    if loss:
        means = [np.exp(np.mean(np.log(v))) for v in (loss, error)]
        print(f"geometric means: covariance loss {means[0]:.2f}× (target ≤ 0.70), δ₂ {means[1]:.2f}× (target ≤ 0.5)")
        print(f"worst covariance loss {max(loss):.2f}× (target ≤ 1)")
    generator, times = np.random.default_rng(0), {}
    for n in (10_000, 100_000, 1_000_000):
        X = (generator.random((n, 30)) < 0.3).astype(np.uint8)
        begin = time.perf_counter()
        spectral_tree(X, 20)
        times[n] = time.perf_counter() - begin
        print(f"{n:9,} × 30, r = 20: {times[n]:.2f} s")
    exponent = np.log(times[1_000_000] / times[10_000]) / np.log(100)
    print(f"growth from 10⁴ to 10⁶ rows: exponent {exponent:.2f} (n log n is 1.09 over this range)")
    X = (generator.random((20_000, 100)) < 0.3).astype(np.uint8)
    begin = time.perf_counter()
    spectral_tree(X, 20)
    print(f"20,000 × 100: {time.perf_counter() - begin:.2f} s (target ≤ 1 s)")


if __name__ == "__main__":
    main()
