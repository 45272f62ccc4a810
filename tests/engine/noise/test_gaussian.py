"""Rounded Gaussians: decisions against far more digits, the law against its exact probabilities."""

from fractions import Fraction
from math import floor

import numpy as np
import pytest
from scipy.stats import chisquare, norm

from covey.engine.noise import integers as module
from covey.engine.noise.integers import SATURATION, discrete_laplace, root_above, rounded_gaussian
from covey.engine.noise.normals import Digits, Normals

FEW = Digits(x=3, coin=2, cell=5)


def p_value(samples, variance):
    """Chi-square test against P(k) = Φ((k + ½)/σ) − Φ((k − ½)/σ)."""
    sigma = float(variance) ** 0.5
    reach = int(5 * sigma) + 1
    edges = np.arange(-reach, reach + 2) - 0.5
    law = np.r_[norm.cdf(edges[0] / sigma), np.diff(norm.cdf(edges / sigma)), norm.sf(edges[-1] / sigma)]
    counts = np.bincount(np.clip(samples, -reach - 1, reach + 1) + reach + 1, minlength=len(law))
    keep = law * len(samples) > 8
    expected, observed = np.r_[law[keep], 1 - law[keep].sum()], np.r_[counts[keep], counts[~keep].sum()]
    if expected[-1] * len(samples) < 1:
        expected, observed = expected[:-1] / expected[:-1].sum(), observed[:-1]
    return chisquare(observed, expected * observed.sum()).pvalue


@pytest.mark.parametrize("variance", [Fraction(1, 5), 0.7, 1, Fraction(19, 3), 100, 2500.5])
def test_rounded_gaussians_have_their_law_and_the_test_has_power(variance):
    samples = rounded_gaussian(variance, 60_000, np.random.default_rng(1))
    assert p_value(samples, variance) > 1e-4
    assert p_value(samples, float(variance) * 1.1) < 1e-4
    cut = samples[np.abs(samples) <= 2.5 * float(variance) ** 0.5]
    assert p_value(cut, variance) < 1e-4  # a tail that is missing


def test_the_law_is_the_same_where_nearly_all_is_decided_lazily():
    samples = rounded_gaussian(Fraction(10**4), 8000, np.random.default_rng(2), FEW)
    assert p_value(samples, 10**4) > 1e-4
    assert p_value(samples, 1.25 * 10**4) < 1e-4


@pytest.mark.parametrize(
    ("variance", "digits"),
    [(Fraction(10**6), FEW), (Fraction(7, 3), FEW), (Fraction(2**100), Digits()), (Fraction(10**24, 7), Digits())],
)
def test_decisions_agree_with_far_more_digits(variance, digits):
    normals = Normals(500, np.random.default_rng(3), digits)
    sigma = root_above(variance)
    drawn = module._rounded(sigma, normals)
    assert normals.tail
    for i, k in enumerate(drawn):
        g = Fraction(normals.magnitude(i, 256), 1 << (digits.unit + 256)) * (-1 if np.signbit(normals.value[i]) else 1)
        assert k == floor(sigma * g + Fraction(1, 2))


def test_a_bound_of_zero_decides_wrongly(monkeypatch):
    monkeypatch.setattr(module, "_decided", lambda sigma, normals, which: np.rint(float(sigma) * normals.value[which]))
    normals = Normals(500, np.random.default_rng(3), FEW)
    drawn = module._rounded(Fraction(1000), normals)
    exact = [floor(1000 * Fraction(normals.magnitude(i, 99), 1 << 108) + Fraction(1, 2)) for i in range(500)]
    assert (np.abs(drawn) != exact).mean() > 0.2


def test_minus_zero_becomes_a_negative_number():
    """All the digits read so far are zero: those that follow decide how far below zero it is."""
    normals = Normals(2, np.random.default_rng(4))
    normals.value, normals.tail = np.array([-0.0, 0.0]), {0: (3 << 62, 64), 1: (3 << 62, 64)}
    assert module._rounded(Fraction(2**50), normals).tolist() == [-2, 2]  # ∓1.5, plus or minus further digits
    normals.tail = {0: (1 << 62, 64), 1: (1 << 62, 64)}
    assert module._rounded(Fraction(2**50), normals).tolist() == [-1, 1]
    # Numbers beyond the machine word saturate.
    normals.value, normals.tail = np.array([40.0, -20.0]), dict.fromkeys(range(2), (0, 64))
    assert module._rounded(Fraction(2**57), normals).tolist() == [SATURATION, -(20 << 57)]
    assert module._rounded(Fraction(2**58), normals).tolist() == [SATURATION, -SATURATION]


@pytest.mark.parametrize(
    ("draw", "scale", "sd"),
    [
        *((rounded_gaussian, variance, variance**0.5) for variance in (1e-9, 1e18, 2.0**80, 2.0**110, 2**114)),
        *((discrete_laplace, scale, 2**0.5 * scale) for scale in (1e-9, 1e9, 3e15, 2**57 + 1, 2**58)),
    ],
)
def test_any_scale_and_shape_without_overflow(draw, scale, sd):
    samples = draw(scale, (40, 100), np.random.default_rng(5))
    assert (samples.shape, samples.dtype) == ((40, 100), np.int64)
    assert np.abs(samples).max() <= SATURATION
    if scale > 1:
        assert samples.astype(float).std() == pytest.approx(sd, rel=0.08)
        assert abs(np.mean(samples > 0) - 0.5) < 0.05
        assert np.mean(samples & 1) == pytest.approx(0.5, abs=0.05)  # the last bit is noise as well
    assert draw(2, 0, np.random.default_rng(0)).shape == (0,)
    assert draw(2, module.MOST + 7, np.random.default_rng(0)).std() > 1


@pytest.mark.parametrize(
    "value", [Fraction(2), Fraction(1, 3), Fraction(10**40, 3), Fraction(1, 10**41), Fraction(0.1)]
)
def test_roots_are_rounded_up(value):
    root = root_above(value)
    assert value < root**2 < value * (1 + Fraction(1, 2**48))
    assert root_above(Fraction(9, 4)) == Fraction(3, 2)
