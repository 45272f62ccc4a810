from itertools import combinations

import numpy as np
import pytest

from covey.core.paper.blocks import WeightedPoints, bootstrap, one_hot, round_bits, round_categories, spread_copies


def test_lemma_4_7_rounding_is_unbiased_off_the_diagonal():
    generator = np.random.default_rng(0)
    y = np.array([[0.0, 1.0, 0.5, 0.123, 0.9995, 1 / 512]])
    m = 400_000
    z = round_bits(y, np.zeros(m, dtype=np.int64), generator).astype(float)
    for d in (1, 2, 3):
        for subset in combinations(range(6), d):
            expected = y[0, list(subset)].prod()
            error = np.sqrt(max(expected * (1 - expected), 1e-12) / m)
            assert abs(z[:, subset].prod(axis=1).mean() - expected) < 5 * error + 1e-12
    # Cutting a probability to its first binary digit instead would be noticed.
    assert abs(z[:, 3].mean() - np.floor(0.123 * 256) / 256) > 4 * np.sqrt(0.123 * 0.877 / m)


def test_rounding_uses_the_point_that_was_drawn():
    points = np.array([[0.0, 1.0], [1.0, 0.0]])
    chosen = np.array([0, 1, 1, 0])
    assert round_bits(points, chosen, np.random.default_rng(0)).tolist() == [[0, 1], [1, 0], [1, 0], [0, 1]]


def test_lemma_4_3_bootstrapping_error_is_at_most_one_over_m():
    generator = np.random.default_rng(1)
    points = generator.standard_normal((9, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    weights = generator.dirichlet(np.ones(9))
    cloud = WeightedPoints(weights, points)
    for d in (1, 2, 3):
        tensor = points
        for _ in range(d - 1):
            tensor = (tensor[:, :, None] * points[:, None, :]).reshape(9, -1)
        exact = weights @ tensor
        for m in (1, 10, 100):
            errors = [np.sum((tensor[bootstrap(cloud, m, generator)].mean(axis=0) - exact) ** 2) for _ in range(2000)]
            # For points on the sphere the lemma is an equality: (1 − ‖E Y^{⊗d}‖²)/m.
            assert np.mean(errors) == pytest.approx((1 - exact @ exact) / m, rel=0.15)
            assert (1 - exact @ exact) / m <= 1 / m


def test_bootstrap_never_draws_a_point_without_weight():
    cloud = WeightedPoints(np.array([0.0, 0.3, 0.0, 0.7, 0.0]), np.zeros((5, 1)))
    drawn = bootstrap(cloud, 10_000, np.random.default_rng(2))
    assert set(drawn) == {1, 3}
    assert np.mean(drawn == 3) == pytest.approx(0.7, abs=0.02)


def test_one_category_per_block_with_the_right_law():
    generator = np.random.default_rng(3)
    points = np.array([[0.2, 0.5, 0.3, 1.0, 0.25, 0.75], [1.0, 0.0, 0.0, 1.0, 1.0, 0.0]])
    sizes = [3, 1, 2]
    chosen = generator.integers(0, 2, 60_000)
    codes = round_categories(points, chosen, sizes, generator)
    rows = one_hot(codes, sizes)
    assert (rows[:, :3].sum(axis=1) == 1).all()
    assert (rows[:, 3] == 1).all()
    for j in range(2):
        np.testing.assert_allclose(rows[chosen == j].mean(axis=0), points[j], atol=0.012)
    first = rows[chosen == 0]
    assert np.mean(first[:, 0] * first[:, 5]) == pytest.approx(0.2 * 0.75, abs=0.01)  # blocks are independent


def test_copies_are_spread_and_common_values_stay():
    generator = np.random.default_rng(2)
    points = np.column_stack([generator.standard_normal(200), generator.integers(0, 3, 200).astype(float)])
    rows = np.repeat(points, 20, axis=0)
    spread = spread_copies(rows, generator)
    assert len(np.unique(spread[:, 0])) > 3900 > 200
    assert np.array_equal(spread[:, 1], rows[:, 1])
    assert np.abs(np.sort(spread[:, 0]) - np.sort(rows[:, 0])).max() < np.diff(np.sort(points[:, 0])).max()
    assert abs(np.corrcoef(spread.T)[0, 1] - np.corrcoef(rows.T)[0, 1]) < 0.01
    shuffled = generator.permuted(rows, axis=0)  # spreads copies as well, and loses what columns share
    tied = np.column_stack([points[:, 0], points[:, 0] ** 3])
    wide = spread_copies(np.repeat(tied, 20, axis=0), generator)
    assert np.corrcoef(wide.T)[0, 1] > 0.7 > abs(np.corrcoef(shuffled.T)[0, 1])
