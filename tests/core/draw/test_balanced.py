"""Balanced sampling: the right expectations, less chance, one category per block, limits kept."""

import numpy as np
import pytest

from covey.core.draw.balanced import Ties, keep_limits, round_table, sample_bits, sample_categories, share_out
from covey.core.paper.blocks import WeightedPoints, bootstrap, round_bits
from covey.core.tables.domain import Domain


def cloud_of(seed, k=30, p=8):
    generator = np.random.default_rng(seed)
    return WeightedPoints(np.full(k, 1 / k), generator.beta(0.5, 0.5, (k, p)))


def test_shares_are_systematic():
    generator = np.random.default_rng(0)
    weights = generator.dirichlet(np.ones(20))
    totals = np.zeros(20)
    for _ in range(400):
        shares = share_out(weights, 137, generator)
        assert shares.size.sum() == 137
        size = np.zeros(20)
        size[shares.order] = shares.size
        assert np.abs(size - 137 * weights).max() < 1.0001
        totals += size
    np.testing.assert_allclose(totals / 400, 137 * weights, atol=0.15)


def test_rows_have_the_centres_moments():
    cloud = cloud_of(1)
    pairs = (cloud.points * cloud.weights[:, None]).T @ cloud.points
    off = ~np.eye(8, dtype=bool)
    mean, second = np.zeros(8), np.zeros((8, 8))
    generator = np.random.default_rng(2)
    for _ in range(60):
        rows = sample_bits(cloud, 300, generator).astype(float)
        assert rows.shape == (300, 8)
        mean += rows.mean(axis=0) / 60
        second += rows.T @ rows / 300 / 60
    assert np.abs(mean - cloud.weights @ cloud.points).max() < 3e-3
    assert np.abs(second - pairs)[off].max() < 6e-3


def test_sampling_error_is_a_fraction_of_independent_rounding():
    cloud = cloud_of(3)
    pairs = (cloud.points * cloud.weights[:, None]).T @ cloud.points
    off = ~np.eye(8, dtype=bool)
    generator = np.random.default_rng(4)

    def error(rows):
        rows = rows.astype(float)
        return np.sqrt(np.mean((rows.T @ rows / len(rows) - pairs)[off] ** 2))

    balanced = np.mean([error(sample_bits(cloud, 2000, generator)) for _ in range(5)])
    independent = np.mean(
        [error(round_bits(cloud.points, bootstrap(cloud, 2000, generator), generator)) for _ in range(5)]
    )
    assert balanced < 0.3 * independent


def test_column_totals_are_exact_up_to_rounding():
    cloud = cloud_of(5)
    rows = sample_bits(cloud, 977, np.random.default_rng(6))
    # Shares of rows per centre are whole numbers, so a column is off by rounding alone.
    assert np.abs(rows.sum(axis=0) - 977 * cloud.weights @ cloud.points).max() < 16


@pytest.mark.parametrize("m", [1, 2, 7])
def test_tiny_samples(m):
    assert sample_bits(cloud_of(7), m, np.random.default_rng(8)).shape == (m, 8)
    one = WeightedPoints(np.ones(1), np.array([[0.0, 1.0]]))
    assert sample_bits(one, m, np.random.default_rng(9)).tolist() == [[0, 1]] * m


def test_large_samples_are_rounded_independently(monkeypatch):
    monkeypatch.setattr("covey.core.draw.balanced.BALANCED_ROWS", 100)
    cloud = cloud_of(10)
    rows = sample_bits(cloud, 20_000, np.random.default_rng(11))
    assert np.abs(rows.mean(axis=0) - cloud.weights @ cloud.points).max() < 0.02


@pytest.mark.parametrize("m", [1, 2, 60, 3000])
def test_categories_are_valid_and_follow_the_centres(m):
    domain = Domain((3, 1, 5), (False, False, True))
    generator = np.random.default_rng(12)
    points = np.hstack([generator.dirichlet(np.ones(c), 20) for c in domain.sizes])
    cloud = WeightedPoints(np.full(20, 0.05), points)
    rows = sample_categories(cloud, domain, m, generator)
    assert rows.shape == (m, 3)
    assert (rows < np.array(domain.sizes)).all()
    if m == 3000:
        for a, c in enumerate(domain.sizes):
            counts = np.bincount(rows[:, a], minlength=c) / m
            np.testing.assert_allclose(counts, points[:, domain.block(a)].mean(axis=0), atol=0.004)
        joint = np.zeros((3, 5))
        np.add.at(joint, (rows[:, 0], rows[:, 2]), 1 / m)
        np.testing.assert_allclose(joint, points[:, :3].T @ points[:, 4:] / 20, atol=0.004)


def test_rounded_tables_keep_their_row_sums():
    generator = np.random.default_rng(13)
    totals = generator.integers(0, 9, 40)
    expected = generator.dirichlet(np.full(6, 0.2), 40) * totals[:, None]
    rounded = round_table(expected, totals, generator)
    assert (rounded.sum(axis=1) == totals).all()
    assert rounded.min() >= 0
    assert np.abs(rounded.sum(axis=0) - expected.sum(axis=0)).max() < 2


def test_limits_are_kept_without_changing_column_totals():
    generator = np.random.default_rng(14)
    rows = (generator.random((500, 10)) < 0.2).astype(np.uint8)
    before = rows.sum(axis=0)
    kept = keep_limits(rows.copy(), [([0, 1, 2, 3, 4, 5], 2), ([7, 9], 1)], generator)
    assert kept[:, :6].sum(axis=1).max() <= 2
    assert kept[:, [7, 9]].sum(axis=1).max() <= 1
    assert (kept.sum(axis=0) == before).all()
    assert (kept[:, [6, 8]] == rows[:, [6, 8]]).all()
    full = keep_limits(np.ones((5, 3), dtype=np.uint8), [([0, 1, 2], 1)], generator)
    assert (full.sum(axis=1) == 1).all()


def test_exchanges_that_are_good_each_do_not_overshoot_covariances_together():
    """Of 2,000 exchanges that would each bring a covariance nearer, all together take it farther away."""
    generator, domain, cells = np.random.default_rng(3), Domain((24, 24), (True, True)), np.arange(24)
    cloud = WeightedPoints(np.full(24, 1 / 24), np.hstack([np.eye(24), np.full((24, 24), 1 / 24)]))
    codes = generator.integers(0, 24, (6000, 2)) + np.array([0, 24])
    ties = Ties(np.tile(cells - 11.5, 2), cloud, domain, codes)
    xi, xj = codes[:3000], codes[3000:]
    good = ties.cost(0, xi, xj) < 0
    xi, xj, before = xi[good], xj[good], abs(float(ties.error[0, 1]))
    count = ties.room(0, xi, xj)
    error = ties.error.copy()
    ties.take(0, xi[:count], xj[:count])
    assert 0 < count < len(xi)
    assert abs(float(ties.error[0, 1])) < before
    ties.error = error
    ties.take(0, xi, xj)
    assert abs(float(ties.error[0, 1])) > before
