import numpy as np
import pytest

from covey.engine.codes.counts import CODE_BITS, UNIT, Spread
from covey.engine.fit.reals import (
    RealTarget,
    copula,
    cut_moments,
    fit_points,
    kolmogorov,
    margin_points,
    matched,
    normal_margins,
    ranked,
    roundest,
    shrink,
    tilt,
    tilted,
    transported,
)
from covey.engine.numbers.grid import Measure, NumberGrid

STEPS = 1 << CODE_BITS


def silent(_):
    """No progress is shown."""


def test_shrinking_takes_noise_off():
    generator = np.random.default_rng(0)
    p, sd = 12, 0.1
    F = generator.standard_normal((p, 2))
    C = F @ F.T + np.eye(p)
    W = np.triu(generator.normal(0, sd, (p, p)))
    noisy = C + W + np.triu(W, 1).T
    before, after = (np.linalg.norm(x - C) for x in (noisy, shrink(noisy, sd)))
    assert after < 0.9 * before
    assert np.linalg.eigvalsh(shrink(noisy - 5 * np.eye(p), sd)).min() > 0
    np.testing.assert_allclose(shrink(C, 1e-9), C, atol=1e-6)


@pytest.mark.parametrize(
    ("low", "high", "value"),
    [
        (6.98, 7.01, 7),
        (0.24, 0.26, 0.25),
        (-0.1, 0.1, 0),
        (99_700, 100_100, 100_000),
        (-7.01, -6.98, -7),
        (3.0, 3.0001, 3),
    ],
)
def test_common_values_are_round(low, high, value):
    assert roundest(low, high) == pytest.approx(value)


def test_margins_follow_their_measure_and_keep_common_values():
    """Bounds are codes of their own. Spread evenly over its step, the common value 7 would be nowhere."""
    size = 4096
    seven = 1 + int(7 / 80 * (size - 2))
    measure = Measure(
        NumberGrid(size, atoms=(0, size - 1)),
        np.array([0, seven, 1000, size - 1]),
        np.array([1, seven + 1, 2000, size]),
        np.array([0.3, 0.2, 0.4, 0.1]),
    )
    values = margin_points(measure, 0.0, 80.0, 1000) * 80
    assert (values == 0).mean() == pytest.approx(0.3, abs=0.002)
    assert np.isclose(values, 7).mean() == pytest.approx(0.2, abs=0.002)
    assert (values == 80).mean() == pytest.approx(0.1, abs=0.002)
    rest = values[(values > 8) & (values < 79)]
    assert rest.std() == pytest.approx(1000 / size * 80 / 12**0.5, rel=0.02)
    coarse = Measure(NumberGrid(16, atoms=(0, 15)), np.array([5]), np.array([6]), np.ones(1))
    assert len(np.unique(margin_points(coarse, 0.0, 1.0, 100))) == 100  # a narrow column, not a common value


def test_a_tilt_brings_the_moments_and_no_new_value():
    values = np.sort(np.random.default_rng(1).beta(2, 5, 3000))
    found = tilt(values, 0.25, 0.02)
    assert np.isin(found, values).all()
    assert found.mean() == pytest.approx(0.25, abs=0.002)
    assert found.var() == pytest.approx(0.02, rel=0.05)
    two = np.repeat([0.0, 1.0], [2700, 300])
    assert tilt(two, 0.13, 0.2).mean() == pytest.approx(0.13, abs=0.003)  # a variance that two values cannot have
    assert (tilt(np.full(10, 0.3), 0.5, 0.1) == 0.3).all()
    # A tail that noise had hidden.
    assert matched(np.zeros(3000), 0.015, 0.0147).mean() == pytest.approx(0.015, abs=0.004)


def test_ranks_and_copulas_keep_margins():
    generator = np.random.default_rng(2)
    margins = np.sort(generator.random((500, 3)) ** 2, axis=0)
    C = np.array([[1, 0.8, 0], [0.8, 1, 0], [0, 0, 1.0]])
    points = copula(500, C, margins, generator)
    assert (np.sort(points, axis=0) == margins).all()
    assert np.corrcoef(points.T)[0, 1] > 0.6
    assert abs(np.corrcoef(points.T)[0, 2]) < 0.15
    assert (np.argsort(ranked(points**3, margins)[:, 1]) == np.argsort(points[:, 1])).all()


def test_the_kolmogorov_distance_of_a_margin():
    margin = np.sort(np.random.default_rng(3).random(1000))
    assert kolmogorov(margin, margin) == 0
    assert kolmogorov(np.minimum(margin + 0.1, 1), margin) == pytest.approx(0.1, abs=0.03)
    assert kolmogorov(np.repeat([0.0, 1.0], 500), np.repeat([0.0, 1.0], [700, 300])) == pytest.approx(0.2)


def target_of(X, radius=3.0):
    """What would be measured of points, without noise."""
    p = X.shape[1]
    spread = Spread(
        np.rint(X.mean(0) * STEPS).astype(int), np.rint(X.std(0) * STEPS).astype(int), int(radius * p * UNIT**2)
    )
    return RealTarget(spread, *cut_moments(X, spread), 1e-3, 1e-3)


def test_transport_reaches_the_moments_of_rows_that_are_not_cut():
    generator = np.random.default_rng(4)
    X = np.clip(0.5 + 0.08 * generator.standard_normal((4000, 2)) @ np.array([[1, 0.7], [0, 0.7]]), 0, 1)
    target = target_of(X, radius=100)
    a, A = cut_moments(transported(generator.random((4000, 2)), target), target.spread)
    np.testing.assert_allclose(a, target.mean, atol=1e-9)
    np.testing.assert_allclose(A, target.covariance, atol=1e-9)


def test_points_get_margins_and_moments_at_once_where_each_alone_misses_the_other():
    """Skewed columns, half of one at 0, cut rows. A copula has no covariance to speak of, transport alone ruins margins."""
    generator = np.random.default_rng(5)
    z = generator.standard_normal((4000, 3)) @ np.array([[1, 0.8, 0.3], [0, 0.6, 0.2], [0, 0, 0.8]])
    X = np.clip(np.exp(z) / 12, 0, 1)
    X[:, 2] = np.maximum(X[:, 2] - 0.08, 0)
    margins, target = np.sort(X, axis=0), target_of(X)

    def inside(points):
        return np.clip(points, 0, 1)

    start = copula(4000, np.eye(3), margins, generator)
    made = fit_points(start, margins, target, inside, silent)
    assert max(kolmogorov(a, b) for a, b in zip(made.T, margins.T, strict=True)) < 0.02
    C = np.cov(X.T)
    gap, blind = (np.linalg.norm(np.cov(Z.T) - C) / np.linalg.norm(C) for Z in (made, start))
    assert gap < 0.15 < 0.3 < blind
    alone = fit_points(start, None, target, inside, silent)
    assert max(kolmogorov(a, b) for a, b in zip(alone.T, margins.T, strict=True)) > 0.05
    shifted = tilted(np.clip(margins * 0.8, 0, 1), made * 0.8, target)
    assert np.abs(shifted.mean(0) - X.mean(0)).max() < 0.02


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
