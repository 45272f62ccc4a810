from itertools import product

import numpy as np
import pytest

from covey.core.draw.balanced import Kept, sample_categories
from covey.core.fit.centres import Goal, fit_category_centres
from covey.core.fit.ordered import UNIT, flips, rank_matrix, rank_scores, restore_ranks
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.crosstabs import pair_matrix
from covey.core.tables.domain import Domain


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
        sums = (exact + generator.normal(0, 0.01 * n * UNIT**2, 3), 0.01 * n * UNIT**2, n)
        found = restore_ranks(shrunk, noisy, sd, scores, sums, shares)
        errors["shrunk"].append(correlation(shrunk, shares, scores) - goal)
        errors["tables"].append(correlation(noisy, shares, scores) - goal)
        errors["restored"].append(correlation(found, shares, scores) - goal)
    size = {name: np.sqrt(np.mean(np.square(e))) for name, e in errors.items()}
    assert size["restored"] < 0.6 * size["tables"]
    assert size["restored"] < 0.3 * size["shrunk"]


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
