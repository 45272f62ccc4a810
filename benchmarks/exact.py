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
from collections.abc import Callable
from decimal import Decimal, localcontext
from fractions import Fraction
from math import isqrt

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.entropy import Streams
from covey.engine.noise import integers
from covey.engine.noise.integers import Number, Size, rounded_gaussian
from covey.engine.noise.matrix import HEIGHT, MatrixNoise, simulated_matrix

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
    for begin in range(0, q, HEIGHT):
        noise.block(slice(begin, min(begin + HEIGHT, q)), slice(begin, q))
    return time.perf_counter() - start, noise.refined


def floats(q: int, generator: np.random.Generator) -> float:
    start = time.perf_counter()
    np.rint(simulated_matrix(8 * (q - 1) / 3, q, generator)).astype(np.int64)
    return time.perf_counter() - start


def peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20


# A float64 exponent is right to a few units in 2^-44; coins closer than this to their threshold are decided exactly.
COIN_MARGIN = 2.0**-36


def coin_exp(exponent: Floats, exact_exponent: Callable[[int], Fraction], generator: np.random.Generator) -> Array:
    """Coins with success probability exp(−exponent), exactly.

    A uniform number of 53 bits is compared with the floating-point probability. Where the two are too close to be sure
    (one coin in 2^35), more bits of the uniform number are drawn and compared in exact arithmetic.
    """
    u = generator.integers(0, 1 << 53, len(exponent))
    probability = np.exp(-exponent)
    difference = probability - u * 2.0**-53
    success = difference > 0
    for i in np.flatnonzero(np.abs(difference) <= COIN_MARGIN * probability + 2.0**-52):
        success[i] = exact_coin(int(u[i]), exact_exponent(int(i)), generator)
    return np.asarray(success)


def exact_coin(u: int, exponent: Fraction, generator: np.random.Generator) -> bool:
    """Whether a uniform number that starts with the 53 bits u lies below exp(−exponent)."""
    bits = 53
    while True:
        with localcontext() as context:
            context.prec = bits  # digits: far more than the bits that are compared
            value = Fraction((-Decimal(exponent.numerator) / Decimal(exponent.denominator)).exp())
        slack = Fraction(1, 1 << (2 * bits))
        if Fraction(u + 1, 1 << bits) <= value - slack:
            return True
        if Fraction(u, 1 << bits) >= value + slack:
            return False
        u = (u << 53) + int(generator.integers(0, 1 << 53))
        bits += 53


def discrete_gaussian(variance: Number, size: Size, generator: np.random.Generator) -> Integers:
    """Integers with P(y) ∝ exp(−y²/(2·variance)), exactly, for any rational variance.

    A discrete Laplace proposal of scale t = ⌊σ⌋ + 1 is accepted with probability exp(−(|y| − σ²/t)²/(2σ²))
    (Canonne, Kamath and Steinke 2020).
    """
    exact = Fraction(variance)
    if not 0 < exact <= integers.MAX_SCALE**2 // 4:
        raise ValueError(f"variance must be positive and at most 2^114, got {float(variance):.3g}.")
    t = isqrt(exact.numerator // exact.denominator) + 1
    centre, twice = float(exact / t), 2 * float(exact)

    def attempt(count: int) -> Array:
        y = integers.discrete_laplace(t, count, generator)
        approximate = (np.abs(y) - centre) ** 2 / twice
        return y[coin_exp(approximate, lambda i: (abs(int(y[i])) - exact / t) ** 2 / (2 * exact), generator)]

    return integers._fill(size, attempt)


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
