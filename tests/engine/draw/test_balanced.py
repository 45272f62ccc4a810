"""Balanced sampling: the right expectations, less chance, one category per block, limits kept."""

from itertools import combinations

import numpy as np
import pytest

from covey.engine.codes.domain import Domain
from covey.engine.draw import balanced as balanced_module
from covey.engine.draw.balanced import (
    THREE,
    TIE,
    Ties,
    TripleTies,
    keep_limits,
    round_table,
    sample_bits,
    sample_categories,
    share_out,
)
from covey.engine.fit.centres import Triples
from covey.engine.points import WeightedPoints, bootstrap, round_bits


def cloud_of(seed, k=30, p=8):
    generator = np.random.default_rng(seed)
    return WeightedPoints(np.full(k, 1 / k), generator.beta(0.5, 0.5, (k, p)))


def test_places_that_are_looked_at_and_whole_tables_give_the_same_rows(monkeypatch):
    generator, domain = np.random.default_rng(5), Domain((40, 3, 60), (False, False, False))
    points = np.hstack([generator.dirichlet(np.full(c, 0.3), 20) for c in domain.sizes])
    cloud, drawn = WeightedPoints(np.full(20, 1 / 20), points), []
    for dense in (0, balanced_module.DENSE, 10**9):
        monkeypatch.setattr(balanced_module, "DENSE", dense)
        drawn.append(sample_categories(cloud, domain, 300, np.random.default_rng(1)))
    assert (drawn[0] == drawn[1]).all()
    assert (drawn[0] == drawn[2]).all()
    monkeypatch.setattr(balanced_module, "REFINE_ROWS", 0)
    assert (drawn[0] != sample_categories(cloud, domain, 300, np.random.default_rng(1))).any()  # exchanges were made


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


@pytest.mark.parametrize("m", [1, 2, 7])
def test_tiny_samples(m):
    assert sample_bits(cloud_of(7), m, np.random.default_rng(8)).shape == (m, 8)
    one = WeightedPoints(np.ones(1), np.array([[0.0, 1.0]]))
    assert sample_bits(one, m, np.random.default_rng(9)).tolist() == [[0, 1]] * m


def test_large_samples_are_rounded_independently(monkeypatch):
    monkeypatch.setattr(balanced_module, "BALANCED_ROWS", 100)
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


def test_chance_decides_which_of_many_rare_categories_are_drawn(monkeypatch):
    """Half of 5,000 codes are expected .11 times, the others .09 times; without chance the first half had all rows."""
    expected = np.tile(np.repeat([0.011, 0.009], 2500), (10, 1))
    drawn = round_table(expected, np.full(10, 50), np.random.default_rng(3)).sum(axis=0)
    assert drawn[:2500].sum() / 500 == pytest.approx(0.55, abs=0.06)
    monkeypatch.setattr(balanced_module, "RARE", 1.0)
    assert round_table(expected, np.full(10, 50), np.random.default_rng(3)).sum(axis=0)[:2500].sum() == 500


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


DOMAIN = Domain((2, 3, 2, 2), (True,) * 4)
CHOSEN = Triples(((0, 1, 2), (1, 2, 3)), {0: np.arange(2), 1: np.array([0, 1, 1]), 2: np.arange(2), 3: np.arange(2)})
CLOUD = WeightedPoints(np.ones(1), np.concatenate([np.full(c, 1 / c) for c in DOMAIN.sizes])[None])


def rows(m=40, seed=0):
    g = np.random.default_rng(seed)
    return np.stack([g.integers(0, c, m) for c in DOMAIN.sizes], axis=1) + DOMAIN.starts[:-1]


def swapped(codes, a, i, j):
    out = codes.copy()
    out[i, a], out[j, a] = codes[j, a], codes[i, a]
    return out


@pytest.mark.parametrize("a", range(4))
def test_an_exchange_costs_what_it_changes_in_the_triples(a):
    codes = rows()
    ties = TripleTies(CHOSEN, CLOUD, DOMAIN, codes)

    def loss(own):
        return sum((own.weight[t].astype(float) * own.error[t].astype(float) ** 2).sum() for t in CHOSEN.names)

    for i, j in [(0, 1), (2, 9), (5, 30)]:
        xi, xj = codes[[i]], codes[[j]]
        after = TripleTies(CHOSEN, CLOUD, DOMAIN, swapped(codes, a, i, j))
        cells = [set(ties._cells(t, x).tolist()) for t in CHOSEN.names if a in t for x in (xi, xj)]
        if all(one.isdisjoint(two) for one, two in zip(cells[::2], cells[1::2], strict=True)):
            assert ties.cost(a, xi, xj)[0] == pytest.approx(loss(after) - loss(ties), abs=2 * THREE)
        own = TripleTies(CHOSEN, CLOUD, DOMAIN, codes)
        own.take(a, xi, xj)
        for t in CHOSEN.names:
            assert own.error[t] == pytest.approx(after.error[t], abs=1e-4)


def test_an_exchange_costs_what_it_changes_in_the_covariances_of_scores():
    codes, scores = rows(), np.concatenate([np.arange(c) - (c - 1) / 2 for c in DOMAIN.sizes])
    ties = Ties(scores, CLOUD, DOMAIN, codes)

    def loss(own):
        return TIE / len(codes) * float((np.triu(own.error, 1) ** 2).sum())

    for a, i, j in [(0, 0, 1), (1, 2, 9), (3, 5, 30)]:
        after = Ties(scores, CLOUD, DOMAIN, swapped(codes, a, i, j))
        assert ties.cost(a, codes[[i]], codes[[j]])[0] == pytest.approx(loss(after) - loss(ties), rel=1e-3, abs=1e-2)
        own = Ties(scores, CLOUD, DOMAIN, codes)
        own.take(a, codes[[i]], codes[[j]])
        off = ~np.eye(4, dtype=bool)
        assert own.error[off] == pytest.approx(after.error[off], abs=1e-3)


# docs/proofs/rounding.md: balanced places vary no more than coins, and one common order of places does.


def balanced(y, n, generator, common_places):
    """n rows of one centre, its counts rounded at random; every column at places of its own, or all at the same ones."""
    ones = np.floor(n * y) + (generator.random(len(y)) < n * y - np.floor(n * y))
    first = generator.permutation(n)
    places = [first if common_places else generator.permutation(n) for _ in y]
    return np.array([place < count for place, count in zip(places, ones, strict=True)]).T


@pytest.mark.parametrize("d", [2, 3])
def test_shares_of_balanced_rows_vary_no_more_than_those_of_coins(d):
    generator = np.random.default_rng(d)
    y, n, runs = np.array([0.5, 0.31, 0.77, 0.12]), 40, 1500
    subsets = list(combinations(range(4), d))
    expected = np.array([y[list(s)].prod() for s in subsets])

    def squares(draw):
        shares = np.array([[rows[:, s].prod(axis=1).mean() for s in map(list, subsets)] for rows in draw])
        error = ((shares - expected) ** 2).mean(axis=1)
        return error.mean(), error.std() / np.sqrt(runs)

    coins, slack = squares([generator.random((n, 4)) < y for _ in range(runs)])
    right, _ = squares([balanced(y, n, generator, common_places=False) for _ in range(runs)])
    wrong, _ = squares([balanced(y, n, generator, common_places=True) for _ in range(runs)])
    assert right < coins
    assert wrong > coins + 10 * slack


def test_column_totals_are_off_by_less_than_a_row():
    generator = np.random.default_rng(5)
    points = generator.random((40, 6))
    m = 400  # ten rows for each centre
    rows = sample_bits(WeightedPoints(np.full(40, 1 / 40), points), m, generator)
    assert np.abs(rows.sum(axis=0) - m * points.mean(axis=0)).max() < 1
    coins = (generator.random((m, 6)) < np.repeat(points, 10, axis=0)).sum(axis=0)
    assert np.abs(coins - m * points.mean(axis=0)).max() > 1
