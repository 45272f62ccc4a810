"""Laws of noise: one class each, with all that anybody asks of a law.

A law says which scale an allowance buys for a sensitivity, how its noise spreads, and what transcripts and sentences call it. The
gate draws by a law and writes it down, a measurement carries it, and certificate, plan and answers read it from there.
"""

from __future__ import annotations

from fractions import Fraction
from math import exp, log, sqrt
from typing import ClassVar, Protocol

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri, ndtri_exp

from covey.engine.arrays import Floats, Integers
from covey.engine.noise.integers import MAX_SCALE, CoveyNoise, Size
from covey.errors import InternalError

Bound = Fraction | int | None
RATES = np.linspace(0.001, 0.999, 999)[:, None]  # of exponential bounds, in units of 1/scale: the best one is taken


class Allowance(Protocol):
    """What a law reads of a budget: the scale that it pays for."""

    def laplace_scale(self, sensitivity: Bound) -> Fraction:
        """Of noise whose density falls by e for each step of the scale."""

    def variance(self, sensitivity_squared: Bound) -> Fraction:
        """Of Gaussian noise."""

    def choice_scale(self, sensitivity: Bound) -> Fraction:
        """Of geometric noise on scores."""

    def gumbel_scale(self, sensitivity: Bound) -> Fraction:
        """Of Gumbel noise on scores."""


class Moved(Protocol):
    """What a law reads of a sensitivity: how far a unit moves a statistic, by each norm."""

    @property
    def l1(self) -> Bound:
        """The sum of all changes."""

    @property
    def l2_squared(self) -> Bound:
        """The sum of their squares."""

    @property
    def linf(self) -> Bound:
        """The largest change."""

    @property
    def table(self) -> Bound:
        """What moves inside one of several tables."""

    @property
    def trace(self) -> Bound:
        """The nuclear norm of a matrix's change."""

    @property
    def directions(self) -> Bound:
        """The loss of directions."""

    @property
    def score(self) -> Bound:
        """The change of one score."""


class NoiseLaw:
    """A law of noise. There is one object of each.

    Attributes:
        name: what transcripts and bundles write.
        words: what sentences say.
        tails: excess kurtosis of the noise on an entry, or a bound on it.
    """

    name: ClassVar[str]
    words: ClassVar[str]
    tails: ClassVar[float] = 0.0

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """The scale of the noise that a budget pays for, on a statistic that is counted in steps of 1/steps."""
        raise InternalError(f"{self.words} noise is not drawn.")

    def quantile(self, miss: float) -> float:
        """What one number's noise passes with such a probability, in standard deviations."""
        return -float(ndtri(miss))

    def largest_sums(self, sd: float, sizes: Integers, log_chance: float) -> Floats:
        """What a sum of so many entries of this deviation exceeds with this chance at most."""
        raise InternalError(f"{self.words} noise has no known sums.")

    def __repr__(self) -> str:
        return self.name


class IndependentNoise(NoiseLaw):
    """Noise on each entry by itself. A weight divides its scale."""

    def draw(self, source: CoveyNoise, scale: Fraction, size: Size) -> Integers:
        """Noise on the integers, exactly."""
        raise InternalError(f"{self.words} noise is not drawn.")

    def deviation(self, scale: Fraction) -> float:
        """The standard deviation of an entry."""
        raise InternalError(f"{self.words} noise is not drawn.")

    def simulate(self, scale: Fraction, shape: tuple[int, ...], public: np.random.Generator) -> Floats:
        """A draw of the same law in floating point, from public randomness."""
        raise InternalError(f"{self.words} noise is not drawn.")

    def drawable(self, scale: Fraction, steps: int, fine: int) -> bool:
        """Whether noise of this scale fits its sampler, in steps, on a grid that may be so many times as fine."""
        raise InternalError(f"{self.words} noise is not drawn.")


class Laplace(IndependentNoise):
    """P(y) ∝ exp(−|y|/scale): pure ε, for statistics that move by so much in ℓ1."""

    name = "laplace"
    words = "discrete Laplace"
    tails = 3.0

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """From the ℓ1 sensitivity."""
        return budget.laplace_scale(sensitivity.l1) * steps

    def quantile(self, miss: float) -> float:
        """Known in closed form."""
        return log(1 / (2 * miss)) / sqrt(2)

    def draw(self, source: CoveyNoise, scale: Fraction, size: Size) -> Integers:
        """By the exact sampler."""
        return source.laplace(scale, size)

    def deviation(self, scale: Fraction) -> float:
        """Of the law before it is rounded."""
        return float(np.sqrt(2) * float(scale))

    def simulate(self, scale: Fraction, shape: tuple[int, ...], public: np.random.Generator) -> Floats:
        """In floating point."""
        return np.asarray(public.laplace(size=shape) * float(scale))

    def drawable(self, scale: Fraction, steps: int, fine: int) -> bool:
        """By the sampler's largest scale."""
        del fine  # its grid stays as it is
        return scale * steps <= MAX_SCALE

    def largest_sums(self, sd: float, sizes: Integers, log_chance: float) -> Floats:
        """P(sum of w > s) ≤ exp(−ls)·(1 − l²b²)^−w for scale b and any l < 1/b; the tail of a single one is known."""
        scale = sd / sqrt(2)
        bounds = scale * (-log_chance - sizes * np.log1p(-(RATES**2))) / RATES
        sums = np.asarray(bounds.min(axis=0))
        sums[sizes == 1] = scale * (-log_chance - log(2))
        return sums


class Gaussian(IndependentNoise):
    """Normal noise, rounded; its scale is the variance: (ε, δ), for statistics that move by so much in ℓ2."""

    name = "gaussian"
    words = "rounded Gaussian"

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """The variance, from the squared ℓ2 sensitivity."""
        return budget.variance(sensitivity.l2_squared) * steps**2

    def draw(self, source: CoveyNoise, scale: Fraction, size: Size) -> Integers:
        """By the exact sampler."""
        return source.gaussian(scale, size)

    def deviation(self, scale: Fraction) -> float:
        """Of the law before it is rounded."""
        return float(np.sqrt(float(scale)))

    def simulate(self, scale: Fraction, shape: tuple[int, ...], public: np.random.Generator) -> Floats:
        """In floating point."""
        return np.asarray(public.standard_normal(shape) * np.sqrt(float(scale)))

    def drawable(self, scale: Fraction, steps: int, fine: int) -> bool:
        """By the sampler's largest scale."""
        return scale * (fine * steps) ** 2 <= MAX_SCALE**2 // 4

    def largest_sums(self, sd: float, sizes: Integers, log_chance: float) -> Floats:
        """Of normal noise, exactly."""
        return np.asarray(sd * np.sqrt(sizes) * float(-ndtri_exp(log_chance)))


class Cube(NoiseLaw):
    """P(k) ∝ exp(−‖k‖∞/scale): pure ε, for vectors of which each entry moves by so much (docs/proofs/cube.md)."""

    name = "cube"
    words = "cube"

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """From the ℓ∞ sensitivity."""
        return budget.laplace_scale(sensitivity.linf) * steps

    def quantile(self, miss: float) -> float:
        """Of one of two numbers: P(z₁ > t) = (t + 2)·e^{−t}/4 in units of the scale, half a standard deviation."""
        return float(brentq(lambda t: (t + 2) * exp(-t) / 4 - miss, 0, 50)) / 2


class KNorm(NoiseLaw):
    """One draw for several tables, of which a unit moves each by so much: pure ε (docs/proofs/knorm.md)."""

    name = "knorm"
    words = "K-norm"
    tails = 3.0  # those of Laplace noise are not passed; for many flags it is below 0

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """From how far one table moves."""
        return budget.laplace_scale(sensitivity.table) * steps


class MatrixLaplace(NoiseLaw):
    """Noise on a symmetric matrix that moves by so much in the nuclear norm: pure ε (docs/proofs/cone.md)."""

    name = "matrix"
    words = "matrix Laplace"

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """From the nuclear norm."""
        return budget.laplace_scale(sensitivity.trace) * steps


class SignMatrix(MatrixLaplace):
    """The same where all coordinates but the last lie in [−1, 1]: less noise (cone.md, "Signs")."""

    name = "signs"


class Geometric(NoiseLaw):
    """Noise on scores of which the largest is named, and none leaves (docs/proofs/choice.md)."""

    name = "choice"
    words = "geometric"

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """From how far one score moves."""
        return budget.choice_scale(sensitivity.score) * steps


class Gumbel(NoiseLaw):
    """The same by Gumbel noise, whose range is ε: it costs less under (ε, δ) (docs/proofs/relations.md)."""

    name = "gumbel"
    words = "Gumbel"

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """From how far one score moves."""
        return budget.gumbel_scale(sensitivity.score) * steps


class Bingham(NoiseLaw):
    """Directions, drawn with a probability that grows with what they hold of a second moment (docs/proofs/projection.md)."""

    name = "bingham"
    words = "Bingham"

    def scale(self, budget: Allowance, sensitivity: Moved, steps: int = 1) -> Fraction:
        """From the loss of the directions."""
        del steps  # real records are counted whole
        return budget.laplace_scale(sensitivity.directions)


class Unmeasured(NoiseLaw):
    """Of what was planned and not measured: its query says which bins it would have had."""

    name = "none"
    words = "no"


LAPLACE, GAUSSIAN = Laplace(), Gaussian()
CUBE, KNORM, MATRIX, SIGNS = Cube(), KNorm(), MatrixLaplace(), SignMatrix()
CHOICE, GUMBEL, BINGHAM = Geometric(), Gumbel(), Bingham()
UNMEASURED = Unmeasured()

LAWS: dict[str, NoiseLaw] = {
    law.name: law for law in (LAPLACE, GAUSSIAN, CUBE, KNORM, MATRIX, SIGNS, CHOICE, GUMBEL, BINGHAM, UNMEASURED)
}


def independent_noise(pure: bool) -> IndependentNoise:
    """The law of noise on each entry by itself, under pure ε or (ε, δ)."""
    if pure:
        return LAPLACE
    return GAUSSIAN
