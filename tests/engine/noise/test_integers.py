"""Samplers against their laws, each test with the power to reject a law that is slightly off."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from covey.engine.noise import integers as noise
from covey.engine.noise.integers import (
    CLAMP,
    SATURATION,
    CoveyNoise,
    add_noise,
    cube_noise,
    discrete_laplace,
    geometric,
)
from tests.engine.noise.opendp_oracle import gaussian, laplace
from tests.engine.noise.test_gaussian import p_value as rounded_p_value


def p_value(samples, weight, reach):
    """Chi-square test of integer samples against P(y) ∝ weight(y)."""
    far = np.arange(-20 * reach, 20 * reach + 1)
    total = weight(far.astype(float)).sum()
    y = np.arange(-reach, reach + 1)
    expected = weight(y.astype(float)) / total * len(samples)
    observed = np.bincount(np.clip(samples, -reach - 1, reach + 1) + reach + 1, minlength=2 * reach + 3)[1:-1]
    keep = expected > 8
    f = np.r_[expected[keep], len(samples) - expected[keep].sum()]
    o = np.r_[observed[keep], len(samples) - observed[keep].sum()]
    return chisquare(o[f > 1e-6], f[f > 1e-6] * o[f > 1e-6].sum() / f[f > 1e-6].sum()).pvalue


def laplace_p_value(samples, scale):
    return p_value(samples, lambda y: np.exp(-np.abs(y) / float(scale)), int(6 * scale) + 2)


def gaussian_p_value(samples, variance):
    return p_value(samples, lambda y: np.exp(-(y**2) / (2 * float(variance))), int(5 * variance**0.5) + 2)


@pytest.mark.parametrize("scale", [Fraction(1, 7), 0.5, 1, Fraction(7, 3), 11.25, 40])
def test_discrete_laplace_has_its_law_and_the_test_has_power(scale):
    samples = discrete_laplace(scale, 60_000, np.random.default_rng(1))
    assert laplace_p_value(samples, scale) > 1e-4
    smaller = Fraction(scale) * Fraction(92, 100)
    assert laplace_p_value(discrete_laplace(smaller, 60_000, np.random.default_rng(2)), scale) < 1e-4


def test_sums_are_clamped_and_never_wrap():
    extreme = np.array([SATURATION, -SATURATION, 5])
    assert add_noise(np.array([CLAMP - 1, 1 - CLAMP, 5]), extreme).tolist() == [CLAMP, -CLAMP, 10]
    assert add_noise(np.array([], dtype=np.int64), np.array([], dtype=np.int64)).shape == (0,)


@pytest.mark.parametrize(
    ("scale", "pair"),
    [
        (Fraction(7, 3), (7, 3)),
        (0.5, (1, 2)),
        (2**58, (2**58, 1)),
        (2**50 - 1, (2**50 - 1, 1)),
        (Fraction(1, 2**50 - 1), (1, 2**50 - 1)),
        (Fraction(2**50 + 1, 2), (2**49 + 1, 1)),
        (Fraction(2**51 + 1, 2**50), (2**49 + 1, 2**48)),
        (Fraction(1, 2**60), (1, 2**50)),
    ],
)
def test_a_scale_becomes_two_whole_numbers(scale, pair):
    assert noise._rational(scale) == pair


@pytest.mark.parametrize("numerator", [0, 1, 3, 8])
def test_simple_coins(numerator):
    coins = noise._bernoulli_exp(np.full(40_000, numerator), 8, np.random.default_rng(19))
    assert coins.dtype == bool
    assert coins.mean() == pytest.approx(np.exp(-numerator / 8), abs=0.012 * (numerator > 0))


def test_samples_are_collected_until_there_are_enough():
    asked = []

    def attempt(count):
        asked.append(count)
        return np.arange(7) + 10 * len(asked)

    assert noise._fill((2, 5), attempt).tolist() == [[10, 11, 12, 13, 14], [15, 16, 20, 21, 22]]
    assert asked == [36, 22]
    asked.clear()
    assert noise._fill(2**20, lambda count: asked.append(count) or np.zeros(count, dtype=np.int64)).shape == (2**20,)
    assert asked == [2**20]  # so much memory at a time, and no more


def cube_law(scale, dimension, reach):
    """P(‖k‖∞ = r) for the exact law."""
    r = np.arange(0, 40 * reach)
    count = (2.0 * r + 1) ** dimension - np.maximum(2.0 * r - 1, 0) ** dimension
    count[0] = 1
    weight = count * np.exp(-r / scale)
    return weight / weight.sum()


@pytest.mark.parametrize(("scale", "dimension"), [(6, 1), (8, 2), (20, 4), (1, 2)])
def test_cube_noise_has_its_law(scale, dimension):
    """With a small scale most vectors lie where the coins that correct the proposal matter."""
    generator = np.random.default_rng(dimension)
    k = np.array([cube_noise(scale, dimension, generator) for _ in range(4000)])
    law = cube_law(scale, dimension, 10 * scale)
    norms = np.abs(k).max(axis=1)
    keep = law * 4000 > 8
    expected = np.r_[law[keep], 1 - law[keep].sum()] * 4000
    counts = np.bincount(norms, minlength=len(law))
    observed = np.r_[counts[keep], 4000 - counts[keep].sum()]
    assert chisquare(observed, expected).pvalue > 1e-4
    wrong = cube_law(scale * 0.9, dimension, 10 * scale)
    expected = np.r_[wrong[keep], 1 - wrong[keep].sum()] * 4000
    assert chisquare(observed, expected).pvalue < 1e-4
    if dimension == 1:
        assert laplace_p_value(k[:, 0], scale) > 1e-4  # one coordinate: the Laplace mechanism
        assert cube_noise(Fraction(1, 10), 1, generator).shape == (1,)


def test_the_laplace_law_is_that_of_opendp():
    ours, theirs = discrete_laplace(Fraction(7, 2), 30_000, np.random.default_rng(13)), laplace(3.5, 30_000)
    assert laplace_p_value(ours, 3.5) > 1e-5
    assert laplace_p_value(np.array(theirs), 3.5) > 1e-5


def test_the_rounded_gaussian_is_not_the_discrete_one_of_opendp():
    """Alike at a large variance; at a small one each is told apart from the other's law."""
    ours = CoveyNoise(np.random.default_rng(13))
    for variance, same in ((Fraction(31, 2), True), (Fraction(1, 4), False)):
        rounded, discrete = ours.gaussian(variance, 30_000), np.array(gaussian(variance, 30_000))
        assert rounded_p_value(rounded, variance) > 1e-5
        assert gaussian_p_value(discrete, float(variance)) > 1e-5
        assert (gaussian_p_value(rounded, float(variance)) > 1e-5) == same
        assert (rounded_p_value(discrete, variance) > 1e-5) == same


def test_samples_that_pass_the_machine_word_are_not_saturated_early(monkeypatch):
    """With a tiny word size the careful way is taken often: the law must not change below the true saturation."""
    monkeypatch.setattr(noise, "SATURATION", 100)
    samples = discrete_laplace(Fraction(7, 2), 60_000, np.random.default_rng(16))
    assert np.abs(samples).max() <= 100
    assert laplace_p_value(samples, 3.5) > 1e-4
    wide = geometric(Fraction(99, 2), 20_000, np.random.default_rng(17))
    assert 0 < np.mean((wide > 50) & (wide < 100)) < 1
    assert np.mean(wide == 100) == pytest.approx(np.exp(-100 / 49.5), rel=0.15)
    whole = geometric(30, 20_000, np.random.default_rng(18))
    assert whole.max() == 100
