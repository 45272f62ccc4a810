import numpy as np

from covey.core.fit.reals import normal_margins


def test_margins_lie_between_the_bounds_and_have_the_moments_that_such_a_law_can_have():
    mean, sd = np.array([0.5, 0.1, 0.9, 0.3]), np.array([0.1, 0.05, 0.06, 0.2])
    values = normal_margins(mean, sd, 4000)
    assert values.min() >= 0
    assert values.max() <= 1
    assert (np.diff(values, axis=0) >= 0).all()
    np.testing.assert_allclose(values.mean(axis=0), mean, atol=0.003)
    np.testing.assert_allclose(values.std(axis=0), sd, rtol=0.05)
    clipped = np.clip(0.1 + 0.2 * np.random.default_rng(0).standard_normal(4000), 0, 1)
    cut = normal_margins(np.array([0.1]), np.array([0.08]), 4000)[:, 0]
    assert abs(clipped.mean() - 0.1) > 0.01 > abs(cut.mean() - 0.1)  # clipping alone would move the mean


def test_no_moments_are_too_strange():
    strange = normal_margins(np.array([0.0, 1.0, 0.5, 2.0]), np.array([0.5, 1e-9, 3.0, 0.1]), 100)
    assert np.isfinite(strange).all()
    assert strange.min() >= 0
    assert strange.max() <= 1
