"""Wide tables: time of a release beside the bare BLAS product of the same shape, and peak memory beside the estimate.

    python benchmarks/wide.py [--quick]

Every size runs in a process of its own, so that its peak memory is its own. The product XᵀX in single precision is timed in
the same process just before; "ratio" is the release's time over it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
import warnings

import numpy as np
from scipy.sparse import csr_array, vstack
from scipy.special import expit

import covey
from covey.engine.arrays import blas_threads, processors
from covey.engine.models.predict import flag_matrices

TARGET_SECONDS, TARGET_GIB = 120, 6
CASES = (
    # rows, columns, ε, typical logit, sparse input, target
    (20_000, 5_000, 1.0, -1.5, False, True),
    (20_000, 5_000, 1.0, -5.0, True, False),
    (20_000, 5_000, 20.0, -1.5, False, False),
    (2_000, 10_000, 30.0, -1.5, False, False),
    (2_000, 10_000, 1.0, -1.5, False, False),
)


def table(n, p, logit, sparse, seed=0, factors=5):
    """Correlated bits in small pieces: making the table must not be what needs the memory."""
    g = np.random.default_rng(seed)
    loadings, bias = g.normal(0, 1, (p, factors)).astype(np.float32), g.normal(logit, 1, p).astype(np.float32)
    pieces = []
    for start in range(0, n, 500):
        rows = min(500, n - start)
        scores = bias + g.standard_normal((rows, factors), dtype=np.float32) @ loadings.T
        bits = (g.random((rows, p), dtype=np.float32) < expit(scores)).astype(np.uint8)
        pieces.append(csr_array(bits) if sparse else bits)
    return vstack(pieces, format="csr") if sparse else np.concatenate(pieces)


def peak():
    """Gibibytes at most so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def release(n, p, epsilon, logit, sparse, wanted):
    warnings.simplefilter("ignore", covey.errors.CoveyWarning)
    block = np.random.default_rng(1).random((min(n, 2000), p), dtype=np.float32)
    product = 1e9
    with blas_threads(processors()):
        for _ in range(3):
            begin = time.perf_counter()
            block.T @ block
            product = min(product, (time.perf_counter() - begin) * n / len(block))
    del block
    X = table(n, p, logit, sparse)
    before = peak()
    begin, work = time.perf_counter(), time.process_time()
    synth = covey.PrivateSynthesizer(epsilon, 1e-9).fit(X)
    fitted = time.perf_counter()
    Z = synth.sample(n)
    seconds, work = time.perf_counter() - begin, time.process_time() - work
    memory = peak()
    y, w = synth.centres.points, synth.centres.weights
    columns = np.random.default_rng(2).choice(p, 1000, replace=False)
    true, made = (np.asarray((T[:, columns].toarray() if sparse else T[:, columns]), np.float32) for T in (X, Z))
    pairs = (true.T @ true / n, made.T @ made / n, (y[:, columns] * w[:, None]).T @ y[:, columns])
    upper = np.triu_indices(1000, 1)
    error, of_centres = (np.sqrt(np.mean((pairs[0] - other)[upper] ** 2)) for other in pairs[1:])
    met = seconds <= TARGET_SECONDS and memory <= TARGET_GIB
    verdict = f"   target ≤ {TARGET_SECONDS} s, ≤ {TARGET_GIB} GiB {'ok' if met else 'MISSED'}" if wanted else ""
    estimate = flag_matrices(p) / 2**30
    print(
        f"{n:7,} × {p:6,} (ε = {epsilon:g}{', CSR' if sparse else ''}, {len(synth.centres)} centres)  fit {fitted - begin:6.1f} s"
        f"  and {n:,} rows: {seconds:6.1f} s ({work:.0f} s of processor time), {seconds / product:5.1f} × the product XᵀX"
        f" ({product:.2f} s)   peak {memory:.2f} GiB, of it {before:.2f} before the fit; estimate for the fit {estimate:.2f} GiB"
        f"   RMSE₂ {error:.4f}, of the centres {of_centres:.4f}, certified {synth.certificate.bound[2]:.4f}{verdict}",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--case", type=int, nargs="*", help="which of the cases, counted from 0")
    given = parser.parse_args()
    chosen = range(len(CASES)) if given.case is None else given.case
    start = multiprocessing.get_context("spawn")
    failed = 0
    for i in chosen:
        n, p, *rest = CASES[i]
        size = (n // 10, p // 4) if given.quick else (n, p)
        process = start.Process(target=release, args=(*size, *rest))
        process.start()
        process.join()
        failed += process.exitcode != 0
    sys.exit(failed)


if __name__ == "__main__":
    main()
