"""Noise on the integers, drawn exactly: no floating-point number decides a sample.

Every mechanism adds integer noise to integer statistics, so the support of a released value never depends on
the data and no low-order bit of a float can give a record away.

Gaussian noise is continuous noise, rounded: T + ⌊σg + ½⌋ = ⌊T + σg + ½⌋ for an integer statistic T is post-processing of the
Gaussian mechanism, and so μ-GDP with μ = Δ₂/σ and no slack (docs/proofs/exact.md, section 5).
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.noise.normals import STANDARD, WORD, Digits, Normals
from covey.errors import MissingExtraError, ParameterError

Number = Fraction | int | float
Size = int | tuple[int, ...]

# Samples beyond ±2^62 are stored as ±2^62, and `add_noise` clamps sums at ±2^61. For data below 2^61 this equals
# clamping the unbounded sum, which is post-processing: saturation costs accuracy 0 and privacy 0.
SATURATION = 1 << 62
CLAMP = 1 << 61
MAX_SCALE = 1 << 58


def discrete_laplace(scale: Number, size: Size, generator: np.random.Generator) -> Integers:
    """Integers with P(y) ∝ exp(−|y|/scale), exactly.

    The scale is taken as the rational number it is. A geometric magnitude gets a random sign, where "−0" is drawn
    again (Canonne, Kamath and Steinke 2020).
    """

    def attempt(count: int) -> Array:
        magnitude = geometric(scale, count, generator)
        negative = generator.integers(0, 2, len(magnitude)).astype(bool)
        return np.asarray(np.where(negative, -magnitude, magnitude)[~(negative & (magnitude == 0))])

    return _fill(size, attempt)


def cube_deviation(dimension: int) -> float:
    """Standard deviation of an entry of cube noise at scale 1, as the scale grows."""
    return sqrt((dimension + 1) * (dimension + 2) / 3)


def cube_noise(scale: Number, dimension: int, generator: np.random.Generator) -> Integers:
    """An integer vector with P(k) ∝ exp(−‖k‖∞/scale), exactly: the mechanism for ℓ∞ sensitivity.

    If r has P(r) ∝ (r + ½)^p·e^{−r/scale}, then a uniform point of {−r, …, r}^p has the law: summing over r ≥ ‖k‖∞
    leaves e^{−‖k‖∞/scale}. Such an r is a sum of p + 1 geometrics, which has P ∝ ∏(r + i)·e^{−r/scale}, accepted with
    ∏_{i≤p} (r + ½)/(r + i), one integer coin after the other. The scale should be 2p or more: refine the grid.
    An r beyond 2^61 is drawn again; for the scales allowed here that has a probability below e^{−100}.
    """
    if not 0 < scale * (dimension + 1) <= 1 << 54:
        raise ParameterError(f"scale must be positive and at most 2^54/(dimension + 1), got {float(scale):.3g}.")
    while True:
        r = sum(int(x) for x in geometric(scale, dimension + 1, generator))
        if r <= CLAMP and all(int(generator.integers(0, 2 * r + 2 * i)) < 2 * r + 1 for i in range(1, dimension + 1)):
            return generator.integers(-r, r + 1, dimension)


def geometric(scale: Number, size: int, generator: np.random.Generator) -> Integers:
    """Non-negative integers with P(x) ∝ exp(−x/scale), exactly, by uniform integers and comparisons alone.

    With scale = t/s: X = U + tV has P(X) ∝ e^{−X/t} for U uniform below t, kept with probability e^{−U/t}, and V
    geometric with ratio 1/e; ⌊X/s⌋ then has ratio e^{−s/t}.
    """
    t, s = _rational(scale)

    def attempt(count: int) -> Array:
        u = generator.integers(0, t, count)
        u = u[_bernoulli_exp(u, t, generator)]
        v = _powers_of_e(len(u), generator)
        # t·v may pass 2^63: those few samples are computed in unbounded integers.
        huge = v > (SATURATION - u) // t
        x = (u + t * np.where(huge, 0, v)) // s
        for i in np.flatnonzero(huge):
            x[i] = min(SATURATION, (int(u[i]) + t * int(v[i])) // s)
        return np.asarray(x)

    return _fill(size, attempt)


def add_noise(statistic: Integers, noise: Integers) -> Integers:
    """The statistic plus noise, clamped at ±2^61 so that no sum can overflow (see SATURATION)."""
    if statistic.size and int(np.abs(statistic).max()) >= CLAMP:
        raise ParameterError("a statistic exceeds 2^61 and cannot carry integer noise. Use a coarser grid.")
    return np.asarray(np.clip(statistic + noise, -CLAMP, CLAMP))


def _rational(scale: Number) -> tuple[int, int]:
    """The scale as t/s, both below 2^51 or s = 1, rounded up where it must be rounded (more noise, never less)."""
    exact = Fraction(scale)
    if not 0 < exact <= MAX_SCALE:
        raise ParameterError(f"scale must be positive and at most 2^58, got {float(scale):.3g}.")
    t, s = exact.numerator, exact.denominator
    if max(t, s) >= 1 << 50:
        s = 1 << max(0, 50 - (t // s).bit_length())
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


def _powers_of_e(count: int, generator: np.random.Generator) -> Integers:
    """Number of successes before the first failure of coins with success probability 1/e."""
    v = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    while len(alive):
        alive = alive[_bernoulli_exp(np.ones(len(alive), dtype=np.int64), 1, generator)]
        v[alive] += 1
    return v


def _fill(size: Size, attempt: Callable[[int], Array]) -> Integers:
    """Collect accepted samples until there are enough; `attempt(count)` returns those of `count` that passed."""
    total = int(np.prod(size))
    out = np.empty(total, dtype=np.int64)
    done = 0
    while done < total:
        got = attempt(min(2 * (total - done) + 16, 1 << 20))[: total - done]
        out[done : done + len(got)] = got
        done += len(got)
    return out.reshape(size)


ROUNDING = 2.0**-53  # relative error of one operation in float64
MOST = 1 << 20  # numbers drawn together


def rounded_gaussian(
    variance: Number, size: Size, generator: np.random.Generator, digits: Digits = STANDARD
) -> Integers:
    """⌊σg + ½⌋ for standard normals g, exactly; σ is √variance, rounded up to a rational number where it must be."""
    exact = Fraction(variance)
    if not 0 < exact <= MAX_SCALE**2 // 4:
        raise ParameterError(f"variance must be positive and at most 2^114, got {float(variance):.3g}.")
    sigma = root_above(exact)
    total = int(np.prod(size))
    out = np.empty(total, dtype=np.int64)
    for begin in range(0, total, MOST):
        part = out[begin : begin + MOST]
        part[:] = _rounded(sigma, Normals(len(part), generator, digits))
    return out.reshape(size)


def root_above(value: Fraction, bits: int = 50) -> Fraction:
    """A rational number not below √value, nor above it by more than 2^-bits of itself; √value where that is rational."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    shift = max(0, bits + 2 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    root = isqrt((value.numerator << (2 * shift)) // value.denominator)
    return Fraction(root + 1, 1 << shift)


def _rounded(sigma: Fraction, normals: Normals) -> Integers:
    """⌊σg + ½⌋. A float that lies farther from every half-integer than it may err decides; the rest do integers."""
    s, g = float(sigma), normals.value
    y = s * g
    near = np.rint(y)
    # g was cut by less than a unit or a last place; σ and the product are rounded.
    error = 4 * ROUNDING * np.abs(y) + 1.01 * s * np.maximum(2.0**-normals.digits.unit, np.spacing(np.abs(g)))
    doubtful = np.flatnonzero(~(0.5 - np.abs(y - near) > error))
    out = np.clip(near, -SATURATION, SATURATION).astype(np.int64)
    out[doubtful] = _decided(sigma, normals, doubtful)
    return out


def _decided(sigma: Fraction, normals: Normals, which: Integers) -> Integers:
    """The same in unbounded integers, with further digits until both ends of what is known round alike."""
    out = np.zeros(len(which), dtype=np.int64)
    left, extra = np.arange(len(which)), 0
    while len(left):
        whole = np.array([normals.magnitude(int(i), extra) for i in which[left]], dtype=object)
        negative = np.signbit(normals.value[which[left]])  # also of −0, whose digits come later
        unit = sigma.denominator << (normals.digits.unit + extra)
        ends = np.where(negative, -whole - 1, whole), np.where(negative, -whole, whole + 1)
        low, high = ((2 * sigma.numerator * end + unit) // (2 * unit) for end in ends)
        done = np.asarray((low == high) | (low >= SATURATION) | (high <= -SATURATION), dtype=bool)
        out[left[done]] = np.clip(low[done], -SATURATION, SATURATION)
        left, extra = left[~done], extra + WORD
    return out


class CoveyNoise:
    """covey's exact samplers on a given stream."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def laplace(self, scale: Number, size: Size) -> Integers:
        """P(y) ∝ exp(−|y|/scale)."""
        return discrete_laplace(scale, size, self.generator)

    def gaussian(self, variance: Number, size: Size) -> Integers:
        """⌊σg + ½⌋ for standard normals g, σ² = variance: post-processing of the Gaussian mechanism."""
        return rounded_gaussian(variance, size, self.generator)


class OpenDPNoise:
    """OpenDP's vetted samplers (extra `covey[opendp]`), which draw from the operating system and take no seed.

    They draw the discrete Laplace and Gaussian noise. Cube and matrix Laplace noise, which OpenDP does not have, stay covey's.
    """

    def __init__(self) -> None:
        try:
            import opendp.prelude as dp
        except ImportError as error:
            raise MissingExtraError("noise='opendp' needs OpenDP: pip install 'covey[opendp]'.") from error
        dp.enable_features("contrib")
        self._dp: Any = dp

    def _add_to_zeros(self, metric: Any, make: Any, scale: float, size: Size) -> Integers:
        if not 0 < scale <= MAX_SCALE:
            raise ParameterError(f"scale must be positive and at most 2^58, got {scale:.3g}.")
        dp = self._dp
        space = dp.vector_domain(dp.atom_domain(T="i64")), metric
        mechanism = make(*space, scale=scale)
        total = int(np.prod(size))
        drawn = np.array(mechanism([0] * total), dtype=np.int64)
        return np.clip(drawn, -SATURATION, SATURATION).reshape(size)

    def laplace(self, scale: Number, size: Size) -> Integers:
        """P(y) ∝ exp(−|y|/scale), the scale rounded up to a float."""
        return self._add_to_zeros(self._dp.l1_distance(T="i64"), self._dp.m.make_laplace, _up(scale), size)

    def gaussian(self, variance: Number, size: Size) -> Integers:
        """P(y) ∝ exp(−y²/(2·variance)), the scale rounded up to a float."""
        scale = sqrt(_up(variance)) * (1 + 2.0**-50)
        return self._add_to_zeros(self._dp.l2_distance(T="f64"), self._dp.m.make_gaussian, scale, size)


IntegerNoise = CoveyNoise | OpenDPNoise


def _up(value: Number) -> float:
    """The least float that is not below the value."""
    near = float(value)
    return near if Fraction(near) >= Fraction(value) else float(np.nextafter(near, np.inf))
