"""Noise of the smaller cone for signs (docs/proofs/cone.md) beside matrix Laplace noise: δ_1 … δ_4 of the same fits.

    python -m benchmarks.signs [--seeds 6] [--tables nltcs,msnbc]

Pure ε. Reads NAME.npz or NAME.csv from the folder in COVEY_DATA; of a CSV table each column is one bit, whether it lies above
its median. Prints the ratio of the mean errors, new to old, table by table, and their geometric mean.
"""

from __future__ import annotations

import argparse
import csv
import warnings
from unittest.mock import patch

import numpy as np

import covey
import covey.engine.models.bits
from benchmarks.regain import DATA, Truth

EPSILONS = (0.3, 1.0, 3.0)


def table(name: str) -> np.ndarray:
    if (DATA / f"{name}.npz").exists():
        return np.load(DATA / f"{name}.npz")["x"].astype(np.uint8)
    with open(DATA / f"{name}.csv", encoding="utf-8") as lines:
        rows = list(csv.reader(lines))
    columns = zip(*rows[1:], strict=True)
    numbers = [np.unique(column, return_inverse=True)[1] for column in columns]
    bits = [np.asarray(x > np.median(x), dtype=np.uint8) for x in numbers]
    return np.stack([x for x in bits if 0.01 < x.mean() < 0.99], axis=1)


def errors(X: np.ndarray, truth: Truth, epsilon: float, seeds: int, limit: int) -> np.ndarray:
    """Mean δ_1 … δ_4 where signs get their own noise up to so many columns."""
    modules = (covey.engine.models.bits, covey.engine.models.bits)
    with patch.object(modules[0], "SIGN_COLUMNS", limit), patch.object(modules[1], "SIGN_COLUMNS", limit):
        found = [
            truth.errors(covey.PrivateSynthesizer(epsilon, seed=seed).fit(X).sample(len(X))) for seed in range(seeds)
        ]
    return np.mean(found, axis=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--tables", default="nltcs,msnbc,national2019,plants")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    ratios = []
    for name in options.tables.split(","):
        X = table(name)
        truth = Truth(X)
        for epsilon in EPSILONS:
            new, old = (errors(X, truth, epsilon, options.seeds, limit) for limit in (1000, 0))
            ratios.append(new / old)
            print(
                f"{name:14} p = {X.shape[1]:3}, ε = {epsilon:g}: {' '.join(f'{r:.3f}' for r in ratios[-1])}", flush=True
            )
    print("geometric mean", *(f"{r:.3f}" for r in np.exp(np.log(ratios).mean(axis=0))))


if __name__ == "__main__":
    main()
