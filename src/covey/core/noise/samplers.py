"""Who draws the integer noise: covey's own samplers, or OpenDP's for a steward who prefers them."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt
from typing import Any, Protocol

import numpy as np

from covey.core.arrays import Integers
from covey.core.noise.gaussian import rounded_gaussian
from covey.core.noise.integers import MAX_SCALE, SATURATION, Number, Size, discrete_laplace
from covey.errors import MissingExtraError, ParameterError


class IntegerNoise(Protocol):
    """Independent integer noise of two laws."""

    def laplace(self, scale: Number, size: Size) -> Integers:
        """P(y) ∝ exp(−|y|/scale)."""

    def gaussian(self, variance: Number, size: Size) -> Integers:
        """Gaussians of this variance on the integers: rounded (covey, Gaussian DP) or discrete (OpenDP, zCDP)."""


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


def _up(value: Number) -> float:
    """The least float that is not below the value."""
    near = float(value)
    return near if Fraction(near) >= Fraction(value) else float(np.nextafter(near, np.inf))
