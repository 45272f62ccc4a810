"""Triples in the fit: the slope is that of the loss, noise is not fitted, and a start leans where it should."""

from dataclasses import replace

import numpy as np
import pytest

from covey.engine.codes.domain import Domain
from covey.engine.fit.centres import PULL, Triples, level_map, shrunken, table_of, tilted, triple_pull, varying_triples
from covey.engine.points import WeightedPoints

DOMAIN = Domain((2, 3, 2, 2), (False,) * 4)
LEVELS = {0: np.array([0, 1]), 1: np.array([0, 1, 1]), 2: np.array([0, 1]), 3: np.array([1, 0])}
CHOSEN = Triples(((0, 1, 2), (0, 1, 2, 3)), LEVELS)


def points(k, seed=0):
    y = np.random.default_rng(seed).random((k, DOMAIN.total)) + 0.1
    return y / np.add.reduceat(y, DOMAIN.starts[:-1], axis=1)[:, DOMAIN.block_of]


def exclusive():
    """Even sums of three bits."""
    table = np.zeros((2, 2, 2))
    for a, b in np.ndindex(2, 2):
        table[a, b, a ^ b] = 0.25
    return table


def test_the_slope_is_that_of_the_squared_gap():
    g = np.random.default_rng(1)
    tables = tuple(t / t.sum() for t in (g.random((2, 2, 2)), g.random((2, 2, 2, 2))))
    weights = np.array([0.5, 0.3, 0.2])
    pull = triple_pull(replace(CHOSEN, goals=tables), DOMAIN, 4 * PULL / len(DOMAIN.sizes) ** 2)

    def loss(y):
        shares = CHOSEN.shares(y, DOMAIN)
        return sum(
            ((table_of(weights, shares, t) - goal) ** 2).sum() for t, goal in zip(CHOSEN.names, tables, strict=True)
        )

    y, step = points(3), 1e-6
    found = pull(y, weights)
    for j, d in [(0, 0), (1, 3), (2, 4), (1, 8)]:
        moved = y.copy()
        moved[j, d] += step
        slope = (loss(moved) - loss(y)) / step / weights[j]  # by centre of weight one
        assert found[j, d] == pytest.approx(2 * PULL / 4**2 * slope, rel=1e-3, abs=1e-7)


def test_noise_alone_leaves_the_model_and_what_stands_out_is_kept():
    model, g = np.full((2, 2, 2), 1 / 8), np.random.default_rng(2)
    kept = [shrunken(model + 0.01 * g.standard_normal(model.shape), model, 0.01) is model for _ in range(20)]
    assert all(kept)
    found = shrunken(exclusive() + 0.01 * g.standard_normal(model.shape), model, 0.01)
    assert np.abs(found - exclusive()).max() < 0.03
    assert found.sum() == pytest.approx(1)


def test_a_start_leans_to_the_triple_and_keeps_what_is_excluded():
    one = WeightedPoints(np.ones(1), np.concatenate([np.full(c, 1 / c) for c in DOMAIN.sizes])[None])
    chosen = Triples(((0, 2, 3),), {a: np.arange(2) for a in (0, 2, 3)}, (exclusive(),))
    public = np.random.default_rng(3)
    found = tilted(one, 300, chosen, DOMAIN, public)
    now = table_of(found.weights, chosen.shares(found.points, DOMAIN), (0, 2, 3))
    assert np.abs(now - exclusive()).sum() / 2 < 0.15 < np.abs(np.full((2, 2, 2), 1 / 8) - exclusive()).sum() / 2
    assert found.weights.sum() == pytest.approx(1)
    barred = one.points.copy()
    barred[0, :2] = 1, 0
    assert (tilted(WeightedPoints(np.ones(1), barred), 20, chosen, DOMAIN, public).points[:, 1] == 0).all()


def test_levels_are_few_even_where_ordered_and_keep_what_is_common_apart_where_not():
    share = np.array([0.4, 0.05, 0.05, 0.3, 0.1, 0.1])
    assert level_map(share, False, 3).tolist() == [0, 2, 2, 1, 2, 2]
    assert level_map(share, False, 6).tolist() == list(range(6))
    ordered = level_map(np.full(12, 1 / 12), True, 4)
    assert ordered.tolist() == sorted(ordered.tolist())
    assert np.bincount(ordered).tolist() == [3] * 4
    assert level_map(np.array([0.97, 0.01, 0.01, 0.01]), True, 2).max() == 1  # no level is empty
    assert level_map(np.zeros(5), True, 2).max() == 1


def test_candidates_vary_and_name_the_target():
    sizes = (2, 1, 2, 2, 2)
    assert varying_triples(sizes) == ((0, 2, 3), (0, 2, 4), (0, 3, 4), (2, 3, 4))
    assert varying_triples(sizes, 4) == ((0, 2, 4), (0, 3, 4), (2, 3, 4))
    assert varying_triples(sizes, 4, room=5)[3:] == varying_triples(sizes, room=5)[4:] == ((0, 2, 3, 4),)
    assert varying_triples((2,) * 3 + (3,) * 3, room=99) == varying_triples((2,) * 3 + (3,) * 3)
    assert len(varying_triples((2,) * 6, room=20 + 15)) == 35  # six of five more have no room


def test_levels_of_bins_become_levels_of_categories():
    chosen = Triples(((0, 1, 2),), {a: np.array([0, 1, 1]) for a in range(3)})
    fine = chosen.of([np.array([0, 0, 1, 2]), np.array([2, 1, 0]), np.array([0, 1, 2])])
    assert fine.levels[0].tolist() == [0, 0, 1, 1]
    assert fine.levels[1].tolist() == [1, 1, 0]
    assert fine.sizes((0, 1, 2)) == (2, 2, 2)
