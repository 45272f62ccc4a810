"""Ratios that the foundation must keep, each measured side by side in one run.

python benchmarks/foundation.py [--quick]
"""

from __future__ import annotations

import argparse
import os
import time
from fractions import Fraction

import numpy as np
from threadpoolctl import threadpool_limits

from audits.gates import paper_gate
from covey.engine.bodies import Cube
from covey.engine.codes.counts import EXACT_ROWS, moments
from covey.engine.entropy import Streams
from covey.engine.noise.directions import Envelope
from covey.engine.points import bootstrap, round_bits
from covey.engine.units.local import ArrayRows
from covey.paper.covering import LatticeCovering, nearest_point_partition
from covey.paper.private import paper_parameters, private_centres
from covey.paper.records import boolean_records


def best(work, repeats=3):
    """Least of several wall-clock times: the machine is shared, and noise only adds."""
    times = []
    for _ in range(repeats):
        begin = time.perf_counter()
        work()
        times.append(time.perf_counter() - begin)
    return min(times)


def table(n, p, seed=0):
    return np.random.default_rng(seed).integers(0, 2, (n, p), dtype=np.uint8)


def report(what, value, target, unit="×"):
    verdict = "ok" if value <= target else "MISSED"
    print(f"{what:72} {value:9.3g}{unit}   target ≤ {target:g}{unit}   {verdict}")


def moments_against_bare_product(n):
    X = table(n, 200)
    blocks = [X[i : i + EXACT_ROWS].astype(np.float32) for i in range(0, n, EXACT_ROWS)]
    bare = best(lambda: [b.T @ b for b in blocks])
    ours = best(lambda: ArrayRows(X).reduce(moments))
    report(f"moments, {n:,} × 200, against the bare float32 product", ours / bare, 1.5)


def assignment_against_brute_force():
    t, alpha, n = 4, 0.35, 20_000
    x = np.random.default_rng(0).standard_normal((n, t))
    x /= np.maximum(np.linalg.norm(x, axis=1, keepdims=True), 1)
    covering = LatticeCovering(t, alpha)
    points = covering.points()
    fast = best(lambda: covering.assign(x))
    brute = best(lambda: nearest_point_partition(x, points), 1)
    report(f"lattice assignment, t = 4, {covering.size:,} cells, against brute force", fast / brute, 1 / 20)


def algorithm_4_against_one_pass(n):
    X, body = table(n, 100), Cube(100)
    par = paper_parameters(n, body, Fraction(1))

    def run():
        streams = Streams.from_system()
        cloud = private_centres(boolean_records(X), body, par, paper_gate(par, streams)).cloud
        chosen = bootstrap(cloud, n, streams.postprocessing("bootstrap"))
        round_bits(cloud.points, chosen, streams.postprocessing("rounding"))

    one_pass = best(lambda: ArrayRows(X).reduce(moments))
    report(f"all of Algorithm 4 with m = n, {n:,} × 100, against one pass of moments", best(run) / one_pass, 3)


def tries_per_draw(A, generator, proposals):
    envelope = Envelope.of(np.linalg.eigh(A)[0])
    return 1 / np.mean(np.exp(envelope.log_acceptance(envelope.propose(generator, proposals))))


def bingham_tries():
    print("\nmedian tries per draw of PVEC (no target):")
    generator = np.random.default_rng(0)
    for q in (2, 16, 163, 1000):
        spread = np.diag(np.linspace(0, 10 * q, q))
        spiked = np.diag(np.r_[1e6, np.zeros(q - 1)])
        medians = [np.median([tries_per_draw(A, generator, 2000) for _ in range(9)]) for A in (spread, spiked)]
        print(f"  q = {q:5}   spread spectrum {medians[0]:6.2f}   spiked {medians[1]:6.2f}   √q = {np.sqrt(q):.1f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows")
    n = 100_000 if parser.parse_args().quick else 1_000_000
    with threadpool_limits(len(os.sched_getaffinity(0))):
        moments_against_bare_product(n)
        assignment_against_brute_force()
        algorithm_4_against_one_pass(n)
        bingham_tries()


if __name__ == "__main__":
    main()
