"""Normal laws behind pair tables: the tables are right, one number is found through noise, finer bins add up to coarser ones."""

import warnings
from itertools import product

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

import covey.engine.fit.spectrum as copula
from covey.engine.codes.domain import Domain, pair_matrix
from covey.engine.draw.balanced import Kept, sample_categories
from covey.engine.fit.centres import Goal, fit_category_centres
from covey.engine.fit.spectrum import (
    ANGLES,
    UNIT,
    BinnedPairs,
    Denoisers,
    NormalTables,
    RankSums,
    flips,
    rank_matrix,
    rank_scores,
    restore_ranks,
    sharpened,
)
from covey.engine.points import WeightedPoints

NONE = np.zeros(2, dtype=np.int64)


def correlations():
    """The correlations that are tried, in the order of the tables."""
    rising = np.sin(np.pi / 2 * (1 - (1 - copula.STEPS[1:]) ** copula.GATHER))
    return np.concatenate([rising, -rising])


def cell_table(p, q, rho):
    """Cells of a bivariate normal law, computed one by one."""
    h, k = (np.clip(norm.ppf(np.concatenate([[0], np.cumsum(x)]).clip(0, 1)), -9, 9) for x in (p, q))
    law = multivariate_normal([0, 0], [[1, rho], [rho, 1]])
    below = np.array([[law.cdf([a, b]) for b in k] for a in h])
    return np.diff(np.diff(below, axis=0), axis=1)


def test_tables_are_those_of_the_normal_law():
    p, q = np.array([0.2, 0.5, 0.3]), np.array([0.6, 0.1, 0.1, 0.2])
    tables = NormalTables(np.concatenate([p, q]), Domain((3, 4), (True, True)), NONE).tables[0]
    for place in (3, 20, 31, 40):
        wanted = cell_table(p, q, correlations()[place]) - np.outer(p, q)
        assert tables[place] == pytest.approx(wanted, abs=2e-4)
        # The next correlation is told apart.
        assert abs(tables[place + 1 if place < 31 else place - 1] - wanted).max() > 4e-4


def test_special_categories_stay_out_and_two_categories_have_an_order():
    shares = np.array([0.4, 0.1, 0.2, 0.3, 0.5, 0.5])
    normal = NormalTables(shares, Domain((4, 2), (True, False)), np.array([1, 0]))
    found = normal.at([10], 6)
    assert not found[0].any()
    assert found[1:4, 4:].any()
    assert found[1:4, 4:].sum() == pytest.approx(0)
    assert not NormalTables(shares, Domain((4, 2), (False, False)), NONE).pairs


def noisy_band(rho=0.97, bins=16, sd=0.004, seed=1):
    """A narrow band over two attributes, and the band with noise on every cell."""
    p = np.full(bins, 1 / bins)
    domain, shares = Domain((bins, bins), (True, True)), np.concatenate([p, p])
    truth = np.zeros((2 * bins, 2 * bins))
    truth[:bins, bins:] = cell_table(p, p, rho) - np.outer(p, p)
    truth += truth.T
    noise = np.triu(np.random.default_rng(seed).normal(0, sd, truth.shape), 1)
    return domain, shares, truth, domain.off_blocks(noise + noise.T)


def test_a_band_is_found_through_noise_that_hides_its_cells():
    domain, shares, truth, noise = noisy_band()
    g = np.random.default_rng(2)

    def draw():
        xi = np.triu(g.normal(0, 0.004, truth.shape), 1)
        return domain.off_blocks(xi + xi.T)

    errors = []
    for normal in (None, NormalTables(shares, domain, NONE)):
        found = Denoisers(shares, domain, g, normal=normal).combined(truth + noise, draw, 0.004)
        errors.append(float(np.abs(found - truth).sum()))
    assert errors[1] < 0.5 * errors[0]


def test_nothing_is_read_into_noise():
    domain, shares, _, noise = noisy_band(seed=3)
    assert NormalTables(shares, domain, NONE).best(0.25 * noise, 0.004) == [None]


def test_finer_bins_add_up_to_the_measured_ones_and_keep_the_band():
    domain, shares, truth, noise = noisy_band(bins=8)
    fine = [np.full(48, 1 / 48)] * 2
    maps = [np.repeat(np.arange(8), 6)] * 2
    normal = NormalTables(shares, domain, NONE)
    coarse = BinnedPairs(domain, shares, truth + noise, maps)
    best = normal.best(coarse.covariances, 0.004)
    found = sharpened(coarse, normal, best, fine, NONE)
    assert found is not None
    assert found.domain.total > 2 * domain.total
    above = np.concatenate([8 * a + np.arange(8).repeat(found.domain.sizes[a] // 8) for a in range(2)])
    hot = np.eye(16)[above]
    assert hot.T @ found.covariances @ hot == pytest.approx(coarse.covariances, abs=1e-9)
    p = found.shares[: found.domain.sizes[0]]
    wanted = cell_table(p, p, 0.97) - np.outer(p, p)
    even = (hot / hot.sum(axis=0)) @ coarse.covariances @ (hot / hot.sum(axis=0)).T
    block = np.s_[: len(p), len(p) :]
    assert np.abs(found.covariances[block] - wanted).sum() < 0.5 * np.abs(even[block] - wanted).sum()
    assert sharpened(coarse, normal, [None], fine, NONE) is None


def test_two_bins_of_a_category_without_an_order_stay_two():
    """Its parts have no place in a normal law; once a release died on them, after its charge."""
    half, fine = np.full(2, 0.5), [np.full(48, 1 / 48), np.full(3, 1 / 3)]
    domain, shares = Domain((2, 2), (True, False)), np.concatenate([half, half])
    normal = NormalTables(shares, domain, NONE)
    covariances = normal.at([ANGLES - 1], 4)
    coarse = BinnedPairs(domain, shares, covariances, [np.repeat(np.arange(2), 24), np.array([0, 0, 1])])
    assert normal.tied([ANGLES - 1]) == [0, 1]
    found = sharpened(coarse, normal, [ANGLES - 1], fine, NONE)
    assert found is not None
    assert found.domain.sizes[0] > 2
    assert found.domain.sizes[1] == 2


@pytest.mark.parametrize("p", [2, 3, 4, 5])
def test_sums_of_products_move_as_far_as_declared_and_no_farther(p):
    rows = np.array(list(product((-1.0, 0.0, 0.4, 1.0), repeat=p)) if p < 5 else list(product((-1.0, 1.0), repeat=p)))
    i, j = np.triu_indices(p, 1)
    products = rows[:, i] * rows[:, j]
    change = products[:, None] - products[None]
    assert np.abs(change).sum(axis=2).max() == pytest.approx(2 * flips(p))
    assert (change**2).sum(axis=2).max() == pytest.approx(4 * flips(p))
    outer = rows[:, :, None] * rows[:, None]
    nuclear = [
        np.abs(np.linalg.eigvalsh(outer[a] - outer[b])).sum()
        for a in (0, -1, len(rows) // 3)
        for b in range(0, len(rows), 7)
    ]
    assert max(nuclear) <= 2 * p + 1e-9


def tied(n=30_000, bins=20, noise=0.2, seed=0):
    """Two numbers with a rank correlation above 0.95, a third beside them, a category."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=n)
    columns = [x, x + noise * generator.normal(size=n), 0.3 * x + generator.normal(size=n)]
    codes = [np.searchsorted(np.quantile(c, np.arange(1, bins) / bins), c) for c in columns]
    return np.column_stack([*codes, generator.integers(0, 4, n)]), Domain((bins,) * 3 + (4,), (True,) * 3 + (False,))


def covariances(X, domain):
    pairs = pair_matrix(X, domain.sizes) / len(X)
    shares = np.diag(pairs)
    return shares, domain.off_blocks(pairs - np.outer(shares, shares))


def correlation(matrix, shares, scores):
    """Rank correlation of the first two attributes that a matrix of covariances says."""
    u = scores.score
    d = scores.domain
    a, b = (u[d.block(j)] for j in (0, 1))
    spread = [np.sqrt(shares[d.block(j)] @ u[d.block(j)] ** 2) for j in (0, 1)]
    return float(a @ matrix[d.block(0), d.block(1)] @ b / spread[0] / spread[1])


def test_scores_are_integers_of_public_size_and_special_categories_have_none():
    X, domain = tied(2000)
    shares, _ = covariances(X, domain)
    scores = rank_scores(shares, domain, np.array([2, 0, 0, 0]))
    assert scores.attributes.tolist() == [0, 1, 2]
    assert np.abs(scores.whole).max() == UNIT
    assert (scores.whole[:2] == 0).all()
    np.testing.assert_allclose(np.linalg.norm(scores.unit, axis=0), 1)
    assert np.abs(scores.unit.sum(axis=0)).max() < 1e-9
    u = scores.whole[domain.starts[:-1] + X].sum(axis=1)
    assert (rank_matrix(pair_matrix(X, domain.sizes), scores) - u.T @ u)[~np.eye(3, dtype=bool)].tolist() == [0] * 6


def test_restored_ranks_are_nearer_the_truth_than_pair_tables_alone():
    X, domain = tied()
    shares, true = covariances(X, domain)
    scores = rank_scores(shares, domain, np.zeros(4, np.int64))
    generator, sd, n = np.random.default_rng(1), 0.004, len(X)
    exact = rank_matrix(pair_matrix(X, domain.sizes), scores)[np.triu_indices(3, 1)].astype(float)
    errors = {"shrunk": [], "restored": [], "tables": []}
    goal = correlation(true, shares, scores)
    for _ in range(20):
        g = generator.normal(0, sd, true.shape)
        noisy = true + domain.off_blocks(domain.centre(np.triu(g) + np.triu(g, 1).T))
        shrunk = 0.8 * noisy
        sums = RankSums(exact + generator.normal(0, 0.01 * n * UNIT**2, 3), 0.01 * n * UNIT**2, n)
        found = restore_ranks(shrunk, noisy, sd, scores, sums, shares)
        errors["shrunk"].append(correlation(shrunk, shares, scores) - goal)
        errors["tables"].append(correlation(noisy, shares, scores) - goal)
        errors["restored"].append(correlation(found, shares, scores) - goal)
    size = {name: np.sqrt(np.mean(np.square(e))) for name, e in errors.items()}
    assert size["restored"] < 0.6 * size["tables"]
    assert size["restored"] < 0.3 * size["shrunk"]


def test_ranks_of_nothing_but_noise_restore_nothing_and_overflow_nowhere():
    X, domain = tied()
    shares, true = covariances(X, domain)
    scores = rank_scores(shares, domain, np.zeros(4, np.int64))
    k = len(scores.attributes)
    # Noise beside which all else is nothing.
    sums = RankSums(np.zeros(k * (k - 1) // 2), 1e40, len(X))
    silent = np.zeros_like(true)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.abs(restore_ranks(silent, silent, 1e40, scores, sums, shares)).max() < 1e-9


def test_a_strong_correlation_survives_the_fit_and_the_rows_and_without_scores_it_does_not():
    X, domain = tied()
    shares, true = covariances(X, domain)
    scores = rank_scores(shares, domain, np.zeros(4, np.int64))
    goal = correlation(true, shares, scores)
    assert goal > 0.95
    found = {}
    for name, ranks in (("with", scores), ("without", None)):
        wanted = Goal(shares, true, domain, ranks)
        y = fit_category_centres(wanted, 60, 150, np.random.default_rng(2), lambda _: None).points
        own = domain.off_blocks(y.T @ y / len(y) - np.outer(y.mean(axis=0), y.mean(axis=0)))
        found[name] = abs(correlation(own, shares, scores) - goal)
        cloud = WeightedPoints(np.full(60, 1 / 60), y)
    assert found["with"] < 0.5 * found["without"]
    kept = {}
    for name, score in (("with", scores.score), ("without", None)):
        rows = sample_categories(cloud, domain, 5000, np.random.default_rng(3), Kept(score))
        kept[name] = correlation(covariances(rows.astype(np.int64), domain)[1], shares, scores)
    wanted = correlation(
        domain.off_blocks(cloud.second_moment - np.outer(y.mean(axis=0), y.mean(axis=0))), shares, scores
    )
    assert abs(kept["with"] - wanted) < 0.004
    assert abs(kept["without"] - wanted) > abs(kept["with"] - wanted)
