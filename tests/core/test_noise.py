from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import chisquare

from covey.core.noise import CLAMP, SATURATION, add_noise, discrete_laplace
from covey.errors import ParameterError


def laplace_p_value(samples, scale):
    """Chi-square test of integer samples against P(y) ∝ exp(−|y|/scale)."""
    reach = int(6 * scale) + 2
    y = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(y) / scale)
    expected = weight / weight.sum() * (1 - 2 * np.exp(-(reach + 1) / scale) / (1 + np.exp(-1 / scale)))
    observed = np.array([np.sum(samples == v) for v in y])
    keep = expected * len(samples) > 8
    rest = len(samples) - observed[keep].sum()
    f = np.r_[expected[keep], 1 - expected[keep].sum()] * len(samples)
    return chisquare(np.r_[observed[keep], rest], f).pvalue


@pytest.mark.parametrize("scale", [Fraction(1, 7), 0.5, 1, Fraction(7, 3), 11.25, 40])
def test_discrete_laplace_has_its_law_and_the_test_has_power(scale):
    samples = discrete_laplace(scale, 60_000, np.random.default_rng(1))
    assert laplace_p_value(samples, float(scale)) > 1e-4
    # The same test rejects noise that is 8% too small.
    assert (
        laplace_p_value(
            discrete_laplace(Fraction(scale) * Fraction(92, 100), 60_000, np.random.default_rng(2)), float(scale)
        )
        < 1e-4
    )


def test_shape_and_type():
    samples = discrete_laplace(2, (3, 5), np.random.default_rng(0))
    assert samples.shape == (3, 5)
    assert samples.dtype == np.int64
    assert discrete_laplace(2, 0, np.random.default_rng(0)).shape == (0,)


@pytest.mark.parametrize("scale", [1e-9, 1e9, 3e15, 2**57 + 1, 2**58])
def test_any_scale_without_overflow(scale):
    samples = discrete_laplace(scale, 4000, np.random.default_rng(3))
    assert np.abs(samples).max() <= SATURATION
    if scale > 1e6:
        typical = np.median(np.abs(samples.astype(float))) / scale
        assert typical == pytest.approx(np.log(2), rel=0.1)
        assert abs(np.mean(samples > 0) - 0.5) < 0.05


def test_a_scale_that_must_be_rounded_is_rounded_up():
    from covey.core.noise import _rational

    for scale in (Fraction(2**70 + 1, 2**69), 1 / 3 + 2**20, Fraction(1, 3**50) + 5):
        t, s = _rational(scale)
        assert Fraction(t, s) >= Fraction(scale)
        assert Fraction(t, s) <= Fraction(scale) * (1 + Fraction(1, 2**30))
        assert max(t, s) <= 2**58


@pytest.mark.parametrize("scale", [0, -1, 2**59, float(2**60)])
def test_impossible_scales_are_refused(scale):
    with pytest.raises(ParameterError):
        discrete_laplace(scale, 1, np.random.default_rng(0))


def test_sums_are_clamped_and_never_wrap():
    noise = np.array([SATURATION, -SATURATION, 5])
    assert add_noise(np.array([CLAMP - 1, 1 - CLAMP, 5]), noise).tolist() == [CLAMP, -CLAMP, 10]
    with pytest.raises(ParameterError):
        add_noise(np.array([CLAMP]), np.array([0]))
