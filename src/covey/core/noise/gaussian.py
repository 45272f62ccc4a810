"""Gaussian noise on the integers: continuous Gaussians rounded, exactly.

T + ⌊σg + ½⌋ = ⌊T + σg + ½⌋ for an integer statistic T: post-processing of the Gaussian mechanism, and so μ-GDP with
μ = Δ₂/σ and no slack (docs/proofs/exact.md, section 5).
"""

from __future__ import annotations

from fractions import Fraction
from math import isqrt

import numpy as np

from covey.core.arrays import Integers
from covey.core.noise.integers import MAX_SCALE, SATURATION, Number, Size
from covey.core.noise.normals import STANDARD, WORD, Digits, Normals
from covey.errors import ParameterError

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
