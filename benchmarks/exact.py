"""Time and memory of exact noise beside the float sampler it replaced.

    python -m benchmarks.exact [dimensions …]

Matrix noise, dimension by dimension: seconds for `MatrixNoise` in strips, seconds for two float Wisharts by Bartlett's factors
(as covey drew them before), their ratio, entries that were decided in integers, and the peak of memory, before and after the
float sampler. Gaussians: seconds a million against the exact discrete Gaussian. Target: ratios of 2 at most from 300 columns on;
below, a draw takes milliseconds.
"""

from __future__ import annotations

import resource
import sys
import time
from fractions import Fraction

import numpy as np

from covey.core.noise.integers import discrete_gaussian, rounded_gaussian
from covey.core.noise.matrix import MatrixNoise, simulated_matrix
from covey.entropy import Streams

DIMENSIONS = (17, 101, 301, 1001, 2001)


class Counted(MatrixNoise):
    """Matrix noise that counts the entries floats could not decide."""

    refined = 0

    def _decided(self, i, j):
        self.refined += len(i)
        return super()._decided(i, j)


def exact(q: int, generator: np.random.Generator) -> tuple[float, int]:
    p = q - 1
    start = time.perf_counter()
    noise = Counted(Fraction(8 * p, 3), [Fraction(1)] * q, generator)  # bits at ε = 1
    for rows, columns in noise.strips():
        noise.block(rows, columns)
    return time.perf_counter() - start, noise.refined


def floats(q: int, generator: np.random.Generator) -> float:
    start = time.perf_counter()
    np.rint(simulated_matrix(8 * (q - 1) / 3, q, generator)).astype(np.int64)
    return time.perf_counter() - start


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


def main(dimensions: list[int]) -> None:
    generator = Streams.from_seed(1).noise("bench")
    print("dimension  exact s  float s  ratio  refined  peak GiB (exact, then float)")
    for q in dimensions:
        repeats = max(1, min(15, 3000 // q))
        if repeats > 1:
            exact(q, generator)  # warm up
        ours = [exact(q, generator) for _ in range(repeats)]
        held = peak()
        theirs = min(floats(q, generator) for _ in range(repeats))
        best = min(seconds for seconds, _ in ours)
        refined = sum(count for _, count in ours) / repeats
        print(f"{q:9}  {best:7.4f}  {theirs:7.4f}  {best / theirs:5.2f}  {refined:7.1f}  {held:.2f} {peak():.2f}")
    print("variance   rounded s/million   discrete s/million")
    for variance in (Fraction(10), Fraction(10**8), Fraction(2**80)):
        times = []
        for draw in (rounded_gaussian, discrete_gaussian):
            start = time.perf_counter()
            draw(variance, 1_000_000, generator)
            times.append(time.perf_counter() - start)
        print(f"{float(variance):8.3g}   {times[0]:17.3f}   {times[1]:18.3f}")


if __name__ == "__main__":
    main([int(q) for q in sys.argv[1:]] or list(DIMENSIONS))
