"""One script measures every method's rows: RMSE₁ … RMSE₄, total variation, prediction, SDMetrics' score."""

from __future__ import annotations

import subprocess
from itertools import combinations
from math import comb
from pathlib import Path

import numpy as np
import pandas as pd

import covey
from covey.engine.codes.distance import subset_sample
from covey.engine.points import one_hot
from covey.evaluation.comparison import learn, total_variation
from covey.release.summary import every_so_many

TABLES = 300  # tables of each degree, at most
LEARNED = 10_000
TARGETS = 3  # the last columns are predicted from all others


def measure(table: pd.DataFrame, synthetic: pd.DataFrame, domain: dict[str, int]) -> dict[str, float]:
    """Errors of a synthetic table. A code outside the domain, or a row too few, is an error of the method."""
    sizes = list(domain.values())
    X, Z = table.to_numpy(), synthetic.to_numpy()
    if Z.min() < 0 or (np.array(sizes) <= Z).any():
        raise ValueError("codes outside the domain")
    bits = (X, Z) if set(sizes) == {2} else (one_hot(X, sizes), one_hot(Z, sizes))
    bits = tuple(b.astype(np.uint8) for b in bits)
    out = {f"delta{d}": covey.marginal_error(*bits, degree=d, subsets=3000) for d in (1, 2, 3, 4)}
    for d in (1, 2, 3):
        out[f"tv{d}"] = float(np.mean([total_variation(X, Z, sizes, s) for s in subsets(len(sizes), d)]))
    return out | prediction(X, Z, sizes)


def subsets(q: int, degree: int) -> list[tuple[int, ...]]:
    """All subsets of columns, or TABLES of them, the same for every method."""
    if comb(q, degree) <= TABLES or degree == 1:
        return list(combinations(range(q), degree))
    return [tuple(sorted(map(int, s))) for s in subset_sample(q, degree, TABLES)]


def prediction(X: np.ndarray, Z: np.ndarray, sizes: list[int]) -> dict[str, float]:
    """Accuracy on true rows of a logistic regression taught on synthetic rows, and of one taught on other true rows."""
    order = np.random.default_rng(0).permutation(len(X))
    teach, test = X[order[: len(X) // 2]], every_so_many(X[order[len(X) // 2 :]], LEARNED)
    found = {"accuracy": [], "accuracy_true": []}
    for target in range(len(sizes) - TARGETS, len(sizes)):
        if sizes[target] > 12:
            continue
        found["accuracy"].append(learn(every_so_many(Z, LEARNED), test, target, sizes)["accuracy"])
        found["accuracy_true"].append(learn(every_so_many(teach, LEARNED), test, target, sizes)["accuracy"])
    return {name: float(np.mean(values)) for name, values in found.items()}


def quality(python: Path, folder: Path, seconds: int) -> float | None:
    """SDMetrics' quality score between 0 and 1, from its own environment; None where it is not installed or too slow."""
    script = Path(__file__).with_name("quality.py")
    try:
        done = subprocess.run(
            [str(python), "-W", "ignore", str(script), str(folder)], capture_output=True, text=True, timeout=seconds
        )
        return float(done.stdout.strip().splitlines()[-1])
    except (OSError, subprocess.TimeoutExpired, IndexError, ValueError):
        return None
