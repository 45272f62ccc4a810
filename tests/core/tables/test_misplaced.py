"""Rows out of place against their definition, table by table."""

from itertools import combinations

import numpy as np
import pytest

from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import moments
from covey.core.tables.crosstabs import pair_matrix
from covey.core.tables.distance import (
    LEAST,
    MOST,
    RANGES,
    Ranges,
    columns_of,
    misplaced_bits,
    misplaced_codes,
    misplaced_rows,
)
from covey.core.tables.domain import Domain


def a_cloud(sizes, k=5, seed=1):
    g = np.random.default_rng(seed)
    return WeightedPoints(g.dirichlet(np.ones(k)), np.hstack([g.dirichlet(np.ones(c), k) for c in sizes]))


def by_definition(X, sizes, cloud):
    """Half the ℓ1 distance of every two-way table of columns that vary, one table after the other."""
    starts = np.cumsum([0, *sizes])
    live = [a for a, c in enumerate(sizes) if c > 1]
    found = []
    for a, b in combinations(live, 2):
        true = np.zeros((sizes[a], sizes[b]))
        np.add.at(true, (X[:, a], X[:, b]), 1 / len(X))
        left, right = (cloud.points[:, starts[c] : starts[c + 1]] for c in (a, b))
        found.append(np.abs(true - np.einsum("k,ki,kj->ij", cloud.weights, left, right)).sum() / 2)
    return float(np.mean(found))


def test_it_is_the_mean_total_variation_of_two_way_tables():
    sizes = (3, 1, 2, 5)
    X = np.random.default_rng(0).integers(0, sizes, (40, 4))
    cloud = a_cloud(sizes)
    found = misplaced_codes(pair_matrix(X, sizes), 40, sizes, cloud)
    assert found == pytest.approx(by_definition(X, sizes, cloud), rel=1e-12)
    assert misplaced_rows(X, Domain(sizes, (False,) * 4), cloud) == pytest.approx(found)
    one = misplaced_codes(pair_matrix(X[:, :2], (3, 1)), 40, (3, 1), a_cloud((3, 1)))
    shares = np.bincount(X[:, 0], minlength=3) / 40
    seen = a_cloud((3, 1))
    assert one == pytest.approx(np.abs(shares - (seen.weights @ seen.points)[:3]).sum() / 2)
    assert (columns_of(sizes), columns_of((3, 1)), columns_of((1,))) == (2, 1, 1)


def test_flags_are_tables_of_two_by_two():
    g = np.random.default_rng(2)
    X, y = (g.random((30, 4)) < 0.4).astype(np.uint8), g.random((6, 4))
    weights = g.dirichlet(np.ones(6))
    pairs = np.stack([1 - y, y], axis=2).reshape(6, 8)
    expected = by_definition(X.astype(int), (2,) * 4, WeightedPoints(weights, pairs))
    assert misplaced_bits(moments(X), WeightedPoints(weights, y)) == pytest.approx(expected, rel=1e-12)
    alone = misplaced_bits(moments(X[:, :1]), WeightedPoints(weights, y[:, :1]))
    assert alone == pytest.approx(abs(X[:, 0].mean() - weights @ y[:, 0]))


def test_one_replaced_row_moves_it_by_at_most_one_nth_and_by_all_of_it():
    """A certificate with half of that noise would not be private."""
    g, n, sizes, worst = np.random.default_rng(3), 6, (2, 3, 2), 0.0
    for seed in range(20):
        X, cloud = g.integers(0, sizes, (n, 3)), a_cloud(sizes, seed=seed)
        before = misplaced_codes(pair_matrix(X, sizes), n, sizes, cloud)
        for code in np.ndindex(*sizes):
            Y = X.copy()
            Y[0] = code
            worst = max(worst, abs(misplaced_codes(pair_matrix(Y, sizes), n, sizes, cloud) - before))
    assert 0.5 / n < worst <= 1 / n + 1e-12
    ones, fewer = np.ones((n, 3), np.uint8), np.ones((n, 3), np.uint8)
    fewer[0] = 0
    cloud = WeightedPoints(np.ones(1), np.ones((1, 3)))
    assert misplaced_bits(moments(fewer), cloud) - misplaced_bits(moments(ones), cloud) == pytest.approx(1 / n)


def test_large_columns_are_seen_in_ranges_of_public_shares():
    sizes, ordered = (300, 300, 4), (True, False, False)
    cloud = a_cloud(sizes)
    ranges = Ranges.of(cloud, Domain(sizes, ordered))
    assert RANGES // 2 <= ranges.sizes[0] <= 2 * RANGES
    assert LEAST <= ranges.sizes[1] <= MOST
    assert ranges.sizes[2] == 4
    seen = ranges.cloud(cloud)
    assert seen.points.shape == (5, sum(ranges.sizes))
    shares = seen.weights @ seen.points
    assert shares[: ranges.sizes[0]].max() < 2 / RANGES  # no range hides much more than a twentieth of the rows
    assert shares.sum() == pytest.approx(3)
    assert all((np.diff(ranges.maps[0]) >= 0).tolist())
    X = np.random.default_rng(4).integers(0, sizes, (50, 3))
    expected = by_definition(ranges.rows(X), ranges.sizes, seen)
    assert misplaced_rows(X, Domain(sizes, ordered), cloud) == pytest.approx(expected)
