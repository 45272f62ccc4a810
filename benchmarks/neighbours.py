"""The two promises side by side: errors for a row added or removed, over those for a replaced row, at the same ε and δ.

python -m benchmarks.neighbours [--seeds 0-2] [--rows 2000]

Reads tables from the folder in COVEY_DATA (the loaders of benchmarks/small.py) and writes docs/benchmarks/neighbours.md.
"""

from __future__ import annotations

import argparse
from itertools import pairwise
from pathlib import Path

import numpy as np

import covey
from benchmarks.small import errors, load, pair_shares

TABLES = ["nltcs", "adult", "telco", "bank", "randhie", "plants"]
SETTINGS = {"pure 1": (1, 0), "(1, 1e-9)": (1, 1e-9)}
PROMISES = ["replace-one", "add-or-remove-one"]
TARGETS = {("pure 1", 0): 0.6, ("pure 1", 1): 0.6, ("(1, 1e-9)", 0): 0.6, ("(1, 1e-9)", 1): 0.75}
WORDS = ["single columns", "pairs"]
NOTE = [
    "Where the second promise has the larger error on single columns or gains little, the releases follow other plans: for a",
    "replaced row a private look gives all of ε to one-way tables more often, since pairs have more noise there.",
]
REPORT = Path(__file__).parents[1] / "docs" / "benchmarks" / "neighbours.md"


def distances(P, Q, sizes):
    """Mean total variation of single columns, and of pairs."""
    ends = np.cumsum([0, *sizes])
    gaps = np.abs(np.diag(P) - np.diag(Q))
    alone = [gaps[a:b].sum() / 2 for a, b in pairwise(ends)]
    return float(np.mean(alone)), errors(P, Q, sizes)[0]


def measure(name, rows, seeds):
    """Mean distances by setting and promise, over subsets of the rows, one for each seed."""
    every, sizes, ordered = load(name)
    own = sizes or [2] * every.shape[1]
    found = {}
    for seed in seeds:
        X = every[np.random.default_rng(1000 + seed).permutation(len(every))[:rows]]
        P = pair_shares(X, own)
        for setting, (epsilon, delta) in SETTINGS.items():
            for promise in PROMISES:
                made = covey.PrivateSynthesizer(
                    epsilon, delta, domain=sizes, ordinal=ordered, seed=seed, neighbours=promise
                )
                Q = pair_shares(made.fit(X).sample(len(X)), own)
                found.setdefault((setting, promise), []).append(distances(P, Q, own))
    return {key: np.mean(values, axis=0) for key, values in found.items()}, len(X)


def report(found, seeds):
    """A table of distances with their ratios, and the mean of the ratios beside the targets."""
    lines = [
        "# Two kinds of neighbours",
        "",
        f"`benchmarks/neighbours.py`, {seeds} seeds: mean total variation of single columns and of pair tables, for a replaced",
        "row and for a row added or removed ([what differs](../proofs/neighbours.md)), at the same ε and δ, each on the same",
        "subsets of rows and in one run. Ratios below 1 say that the second promise has the smaller error.",
        "",
        "| table | rows | ε, δ | columns, replaced | added | ratio | pairs, replaced | added | ratio |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    ratios = {}
    for name, (means, n) in found.items():
        for setting in SETTINGS:
            one, two = (means[setting, promise] for promise in PROMISES)
            cells = [f"{x:.4f} | {y:.4f} | {y / x:.2f}" for x, y in zip(one, two, strict=True)]
            lines.append(f"| {name} | {n} | {setting} | {' | '.join(cells)} |")
            for k in range(2):
                ratios.setdefault((setting, k), []).append(two[k] / one[k])
    lines += ["", "| | mean ratio | target | |", "|---|---|---|---|"]
    for (setting, k), each in ratios.items():
        target, mean = TARGETS[setting, k], float(np.mean(each))
        lines.append(f"| {WORDS[k]}, {setting} | {mean:.2f} | {target} | {'met' if mean <= target else '**missed**'} |")
    return "\n".join([*lines, "", *NOTE]) + "\n"


def main():
    """Measure and write the page."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", default="0-2")
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--tables", default=",".join(TABLES))
    given = parser.parse_args()
    first, last = map(int, given.seeds.split("-"))
    found = {}
    for name in given.tables.split(","):
        found[name] = measure(name, given.rows, range(first, last + 1))
        print(report(found, last + 1 - first), flush=True)
    if given.tables == ",".join(TABLES):
        REPORT.write_text(report(found, last + 1 - first), encoding="utf-8")


if __name__ == "__main__":
    main()
