import numpy as np
import pytest

from covey.core.paper.blocks import WeightedPoints
from covey.core.tables import distance
from covey.core.tables.distance import (
    bit_distances,
    bit_self_products,
    category_distances,
    marginals,
    overlap_histogram,
    subset_sample,
)


def cloud_of(generator, k, p):
    return WeightedPoints(generator.dirichlet(np.ones(k)), generator.random((k, p)))


def brute_bits(X, cloud, d):
    subsets = subset_sample(X.shape[1], d, 10**6)
    own = np.array([cloud.weights @ cloud.points[:, s].prod(axis=1) for s in subsets])
    return np.sqrt(np.mean((marginals(X, subsets) - own) ** 2))


@pytest.mark.parametrize("enumerate_up_to", [0, 10**12])
def test_bit_distance_is_the_definition_both_ways(enumerate_up_to, monkeypatch):
    monkeypatch.setattr(distance, "ENUMERATION_LIMIT", enumerate_up_to)
    generator = np.random.default_rng(0)
    for n, p in ((50, 6), (201, 9), (1, 4), (30, 70)):
        X = (generator.random((n, p)) < 0.4).astype(np.uint8)
        cloud = cloud_of(generator, 5, p)
        found = bit_distances(X, cloud)
        assert list(found) == [1, 2, 3, 4]
        for d in (1, 2, 3) if p > 20 else (1, 2, 3, 4):
            assert found[d] == pytest.approx(brute_bits(X, cloud, d), rel=1e-9)


def test_small_distances_are_raised_to_the_resolution():
    X = np.random.default_rng(5).integers(0, 2, (400, 5), dtype=np.uint8)
    rows, counts = np.unique(X, axis=0, return_counts=True)
    itself = WeightedPoints(counts / 400, rows.astype(float))
    found = bit_distances(X, itself)
    assert found[1] < 1e-14
    assert found[3] == found[4] == pytest.approx(distance.resolution(400))
    assert distance.resolution(20_000) < 1e-5


def test_degrees_beyond_the_columns_are_left_out():
    cloud = WeightedPoints(np.ones(1), np.full((1, 2), 0.5))
    assert list(bit_distances(np.eye(2, dtype=np.uint8), cloud)) == [1, 2]


def test_degrees_that_cost_too_much_are_left_out(monkeypatch):
    monkeypatch.setattr(distance, "ENUMERATION_LIMIT", 60)
    monkeypatch.setattr(distance, "GRAM_LIMIT", 10)
    X = np.random.default_rng(1).integers(0, 2, (60, 10), dtype=np.uint8)
    assert list(bit_self_products(X, (1, 2, 3, 4))) == [1, 2]
    assert list(bit_distances(X, cloud_of(np.random.default_rng(2), 3, 10))) == [1, 2]


def test_overlaps_of_wide_and_narrow_rows():
    generator = np.random.default_rng(2)
    for n, p in ((7, 3), (40, 300), (33, 255)):
        X = generator.integers(0, 2, (n, p), dtype=np.uint8)
        overlap = X.astype(int) @ X.T.astype(int)
        assert overlap_histogram(X).tolist() == np.bincount(overlap.ravel(), minlength=p + 1).tolist()


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
