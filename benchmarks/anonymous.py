"""The spectral tree beside MDAV: covariance loss, 2-way error and time, on the public tables and as n grows.

python benchmarks/anonymous.py [--tables nltcs,plants] [--out docs/benchmarks]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np

from covey.engine.codes.distance import marginal_error
from covey.engine.draw.balanced import sample_bits
from covey.paper import covariance_loss, microaggregate
from covey.paper.groups import mdav, spectral_tree

DATA = Path(os.environ.get("COVEY_DATA", Path(__file__).parents[2] / "shared" / "data"))
# Without msnbc: MDAV takes minutes for its 97,108 rows.
TABLES = "nltcs,kdd,plants,baudio,bnetflix,accidents,adult_bits,nips,moviereview"
SIZES = (5, 20, 100)
HEAD = """# Anonymous tables: the spectral tree beside MDAV

`python benchmarks/anonymous.py`, part of `make bench`. Equal group sizes r, as many rows drawn as the table has, three draws.
The loss is ‖covariance of the table − covariance of the group averages‖; RMSE₂ is the root mean square error of 2-way shares in
the drawn rows. Ratios are to MDAV in the same run; seconds are processor time for grouping.

| table | n × p | r | loss | ratio | RMSE₂ | ratio | tree s | MDAV s |
|---|---|---|---|---|---|---|---|---|
"""


def timed(grouping, X, r):
    begin = time.process_time()
    groups = grouping(X, r)
    return groups, time.process_time() - begin


def measure(X, grouping, r):
    groups, seconds = timed(grouping, X, r)
    cloud = microaggregate(X, groups)
    errors = [marginal_error(X, sample_bits(cloud, len(X), np.random.default_rng(s)), 2) for s in range(3)]
    return covariance_loss(X, groups), float(np.mean(errors)), seconds


def verdict(value, target):
    return f"{value:.2f} (target ≤ {target}: {'met' if value <= target else 'MISSED'})"


def accuracy(names):
    """Lines of the table, and what it comes to."""
    loss, error = [], []
    for name in names:
        if not (DATA / f"{name}.npz").exists():
            print(f"{name}.npz is not in {DATA}: skipped")
            continue
        X = np.load(DATA / f"{name}.npz")["x"].astype(np.uint8)
        for r in SIZES:
            a, b = measure(X, spectral_tree, r), measure(X, mdav, r)
            loss.append(a[0] / b[0])
            error.append(a[1] / b[1])
            yield (
                f"| {name} | {X.shape[0]} × {X.shape[1]} | {r} | {a[0]:.4f} | {loss[-1]:.2f} | {a[1]:.5f} | {error[-1]:.2f} "
                f"| {a[2]:.2f} | {b[2]:.2f} |"
            )
    if loss:
        means = [np.exp(np.mean(np.log(v))) for v in (loss, error)]
        yield ""
        worst = verdict(max(loss), 1)
        yield f"Geometric means: loss {verdict(means[0], 0.7)}, RMSE₂ {verdict(means[1], 0.5)}. Worst loss {worst}."


def growth():
    """Time as n grows, MDAV beside it as far as it can go, and the size we promise."""
    generator, times, levels = np.random.default_rng(0), {}, {}
    yield "| rows × 30, r = 20 | tree s | MDAV s |"
    yield "|---|---|---|"
    for n in (10_000, 30_000, 100_000, 1_000_000):
        X = (generator.random((n, 30)) < 0.3).astype(np.uint8)
        times[n] = min(timed(spectral_tree, X, 20)[1] for _ in range(3 if n < 100_000 else 1))
        levels[n] = n * np.log2(n / 20)
        yield f"| {n:,} | {times[n]:.2f} | {f'{timed(mdav, X, 20)[1]:.1f}' if n <= 30_000 else ''} |"
    found, allowed = (np.log(t[1_000_000] / t[10_000]) / np.log(100) for t in (times, levels))
    yield ""
    yield f"From 10⁴ to 10⁶ rows the tree's exponent is {verdict(found, round(allowed, 2))}, that of n log(n/r)."
    X = (generator.random((20_000, 100)) < 0.3).astype(np.uint8)
    seconds = min(timed(spectral_tree, X, 20)[1] for _ in range(3))
    yield f"20,000 × 100, r = 20: seconds {verdict(seconds, 1)}."


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", default=TABLES)
    parser.add_argument("--out", type=Path, default=Path("docs/benchmarks"))
    given = parser.parse_args()
    lines = []
    for part in (accuracy(given.tables.split(",")), iter([""]), growth()):
        for line in part:
            print(line, flush=True)
            lines.append(line)
    (given.out / "anonymous.md").write_text(HEAD + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
