from itertools import combinations

import numpy as np
import pytest

from covey.engine.codes import distance
from covey.engine.codes.counts import moments
from covey.engine.codes.distance import (
    LEAST,
    MOST,
    RANGES,
    Ranges,
    bit_distances,
    category_distances,
    columns_of,
    marginal_error,
    marginals,
    misplaced_bits,
    misplaced_codes,
    misplaced_rows,
    subset_sample,
)
from covey.engine.codes.domain import Domain, pair_matrix
from covey.engine.points import WeightedPoints, one_hot


def cloud_of(generator, k, p):
    return WeightedPoints(generator.dirichlet(np.ones(k)), generator.random((k, p)))


def brute_bits(X, cloud, d):
    subsets = subset_sample(X.shape[1], d, 10**6)
    own = np.array([cloud.weights @ cloud.points[:, s].prod(axis=1) for s in subsets])
    return np.sqrt(np.mean((marginals(X, subsets) - own) ** 2))


def test_bit_distance_is_the_definition():
    generator = np.random.default_rng(0)
    for n, p in ((50, 6), (201, 9), (1, 4), (30, 70)):
        X = (generator.random((n, p)) < 0.4).astype(np.uint8)
        cloud = cloud_of(generator, 5, p)
        found = bit_distances(X, cloud)
        assert list(found) == [1, 2, 3, 4]
        for d in (1, 2, 3) if p > 20 else (1, 2, 3, 4):
            assert found[d] == pytest.approx(brute_bits(X, cloud, d), rel=1e-9)


def test_small_distances_are_raised_to_the_resolution():
    X = np.random.default_rng(5).integers(0, 2, (400, 5))
    rows, counts = np.unique(X, axis=0, return_counts=True)
    itself = WeightedPoints(counts / 400, one_hot(rows, (2,) * 5).astype(float))
    found = category_distances(X, (2,) * 5, itself)
    assert found[1] < 1e-14
    assert found[3] == found[4] == pytest.approx(distance.resolution(400))
    assert max(bit_distances(X.astype(np.uint8), WeightedPoints(counts / 400, rows.astype(float))).values()) < 1e-14
    assert distance.resolution(20_000) < 1e-5


def test_degrees_that_cost_too_much_are_left_out(monkeypatch):
    X, cloud = np.random.default_rng(1).integers(0, 2, (60, 10), dtype=np.uint8), a_cloud([10])
    assert list(bit_distances(X[:, :2], a_cloud([2]))) == [1, 2]  # there are no more columns
    monkeypatch.setattr(distance, "ENUMERATION_LIMIT", 120)  # there are 120 subsets of three columns
    assert list(bit_distances(X, cloud)) == [1, 2, 3]
    assert list(bit_distances(X[:, :4].repeat(2, axis=0), a_cloud([4]), (1, 2, 4))) == [1, 2, 4]
    monkeypatch.setattr(distance, "MOST_SUBSETS", 119)
    assert list(bit_distances(X, cloud)) == [1, 2]


@pytest.mark.parametrize("sizes", [(2, 3, 4), (5, 1, 2, 3, 2), (300, 400)])
def test_category_distance_is_the_definition(sizes):
    from itertools import combinations

    generator = np.random.default_rng(3)
    X = np.column_stack([generator.integers(0, c, 80) for c in sizes])
    blocks = [generator.dirichlet(np.ones(c), 4) for c in sizes]
    cloud = WeightedPoints(generator.dirichlet(np.ones(4)), np.hstack(blocks))
    found = category_distances(X, sizes, cloud)
    for d in found:
        total = []
        for subset in combinations(range(len(sizes)), d):
            true = np.zeros([sizes[a] for a in subset])
            np.add.at(true, tuple(X[:, a] for a in subset), 1 / len(X))
            own = 0
            for j in range(4):
                law = np.ones(())
                for a in subset:
                    law = np.multiply.outer(law, blocks[a][j])
                own = own + cloud.weights[j] * law
            total.append(np.sum((true - own) ** 2) / 2)
        assert found[d] == pytest.approx(np.sqrt(np.mean(total)), rel=1e-9)


def test_one_replaced_row_moves_every_distance_by_at_most_one_nth():
    """The certificate's sensitivity, by exhaustive neighbours, and that it is attained."""
    generator = np.random.default_rng(4)
    n, worst = 5, 0.0
    for _ in range(30):
        X = generator.integers(0, 2, (n, 4), dtype=np.uint8)
        points = generator.integers(0, 2, (3, 4)).astype(float)
        cloud = WeightedPoints(generator.dirichlet(np.ones(3)), points)
        before = bit_distances(X, cloud)
        for code in range(16):
            Y = X.copy()
            Y[0] = [code >> i & 1 for i in range(4)]
            after = bit_distances(Y, cloud)
            worst = max(worst, *(abs(after[d] - before[d]) for d in before))
    assert worst <= 1 / n + 1e-12
    zero = WeightedPoints(np.ones(1), np.zeros((1, 3)))
    with_ones = np.ones((n, 3), dtype=np.uint8)
    fewer = with_ones.copy()
    fewer[0] = 0
    assert bit_distances(with_ones, zero)[2] - bit_distances(fewer, zero)[2] == pytest.approx(1 / n)


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


def brute(X, Z, d):
    X, Z = np.asarray(X, float), np.asarray(Z, float)
    errors = [X[:, s].prod(axis=1).mean() - Z[:, s].prod(axis=1).mean() for s in combinations(range(X.shape[1]), d)]
    return np.sqrt(np.mean(np.square(errors)))


@pytest.mark.parametrize("d", [1, 2, 3, 4, 6])
def test_delta_matches_the_definition(d):
    generator = np.random.default_rng(d)
    X, Z = generator.integers(0, 2, (70, 6)), generator.integers(0, 2, (50, 6), dtype=np.uint8)
    assert marginal_error(X, Z, d) == pytest.approx(brute(X, Z, d), abs=1e-12)
    assert marginal_error(X.astype(bool), Z.astype(float), d) == pytest.approx(brute(X, Z, d), abs=1e-12)
    assert marginal_error(X, X, d) == pytest.approx(0, abs=1e-15)  # exactly 0 on most processors
    X, Z = generator.standard_normal((30, 6)), generator.standard_normal((40, 6))
    assert marginal_error(X, Z, d) == pytest.approx(brute(X, Z, d), rel=1e-9)


def test_sampled_subsets_estimate_all_subsets():
    generator = np.random.default_rng(5)
    X, Z = generator.random((300, 30)) < 0.4, generator.random((200, 30)) < 0.5
    exact = marginal_error(X, Z, 3)
    sampled = marginal_error(X, Z, 3, subsets=2000)
    assert sampled == marginal_error(X, Z, 3, subsets=2000) != exact
    assert sampled == pytest.approx(exact, rel=0.1)


def test_subsets_are_distinct_columns_and_complete_where_few():
    assert len(subset_sample(6, 3, 20)) == 20
    picks = subset_sample(50, 4, 500)
    assert picks.shape == (500, 4)
    assert all(len(set(row)) == 4 for row in picks)
