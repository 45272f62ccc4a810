"""Noise on the integers, drawn exactly: no floating-point number decides a sample.

Every mechanism adds integer noise to integer statistics, so the support of a released value never depends on
the data and no low-order bit of a float can give a record away.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from covey.core.arrays import Array, Integers
from covey.errors import ParameterError

# Samples beyond ±2^62 are stored as ±2^62, and `add_noise` clamps sums at ±2^61. For data below 2^61 this equals
# clamping the unbounded sum, which is post-processing: saturation costs accuracy 0 and privacy 0.
SATURATION = 1 << 62
CLAMP = 1 << 61
MAX_SCALE = 1 << 58


def discrete_laplace(
    scale: Fraction | int | float, size: int | tuple[int, ...], generator: np.random.Generator
) -> Integers:
    """Integers with P(y) ∝ exp(−|y|/scale), exactly, by uniform integers and comparisons alone.

    The scale is taken as the rational number it is. The method is that of Canonne, Kamath and Steinke (2020):
    with scale = t/s, draw X with P(X) ∝ e^{−X/t} as U + tV, U by rejection and V geometric with ratio 1/e;
    then ⌊X/s⌋ has ratio e^{−s/t}; a random sign, where "−0" is drawn again.
    """
    t, s = _rational(scale)

    def attempt(count: int) -> Array:
        u = generator.integers(0, t, count)
        u = u[_bernoulli_exp(u, t, generator)]
        v = _geometric(len(u), generator)
        # t·v may pass 2^63: such samples are stored as SATURATION.
        huge = v > (SATURATION - u) // t
        magnitude = np.where(huge, SATURATION, (u + t * np.where(huge, 0, v)) // s)
        negative = generator.integers(0, 2, len(u)).astype(bool)
        kept = ~(negative & (magnitude == 0))
        return np.asarray(np.where(negative, -magnitude, magnitude)[kept])

    return _fill(size, attempt)


def add_noise(statistic: Integers, noise: Integers) -> Integers:
    """The statistic plus noise, clamped at ±2^61 so that no sum can overflow (see SATURATION)."""
    if statistic.size and int(np.abs(statistic).max()) >= CLAMP:
        raise ParameterError("a statistic exceeds 2^61 and cannot carry integer noise. Use a coarser grid.")
    return np.asarray(np.clip(statistic + noise, -CLAMP, CLAMP))


def _rational(scale: Fraction | int | float) -> tuple[int, int]:
    """The scale as t/s with both below 2^58, rounded up where it must be rounded (more noise, never less)."""
    exact = Fraction(scale)
    if not 0 < exact <= MAX_SCALE:
        raise ParameterError(f"scale must be positive and at most 2^58, got {float(scale):.3g}.")
    t, s = exact.numerator, exact.denominator
    if max(t, s) >= MAX_SCALE:
        bits = max(0, 56 - max(0, t // s).bit_length())
        s = 1 << bits
        t = -((-exact.numerator * s) // exact.denominator)
    return t, s


def _bernoulli_exp(numerator: Integers, denominator: int, generator: np.random.Generator) -> Array:
    """Coins with success probability exp(−x), x = numerator/denominator in [0, 1], exactly.

    Von Neumann's series: with A_k ~ Bernoulli(x/k) drawn until the first failure at K, P(K odd) = e^{−x}.
    """
    n = len(numerator)
    first_failure = np.zeros(n, dtype=np.int64)
    alive = np.arange(n)
    k = 1
    while len(alive):
        # x/k is the product of two independent coins, x and 1/k, which keeps all integers below 2^63.
        success = generator.integers(0, denominator, len(alive)) < numerator[alive]
        if k > 1:
            success &= generator.integers(0, k, len(alive)) == 0
        first_failure[alive[~success]] = k
        alive = alive[success]
        k += 1
    return np.asarray(first_failure % 2 == 1)


def _geometric(count: int, generator: np.random.Generator) -> Integers:
    """Number of successes before the first failure of coins with success probability 1/e."""
    v = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    while len(alive):
        alive = alive[_bernoulli_exp(np.ones(len(alive), dtype=np.int64), 1, generator)]
        v[alive] += 1
    return v


def _fill(size: int | tuple[int, ...], attempt: Callable[[int], Array]) -> Integers:
    """Collect accepted samples until there are enough; `attempt(count)` returns those of `count` that passed."""
    total = int(np.prod(size))
    out = np.empty(total, dtype=np.int64)
    done = 0
    while done < total:
        got = attempt(min(2 * (total - done) + 16, 1 << 20))[: total - done]
        out[done : done + len(got)] = got
        done += len(got)
    return out.reshape(size)
