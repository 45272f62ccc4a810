"""Domains: which columns belong to which attribute, and the centred coding."""

import numpy as np
import pytest

from covey.engine.codes.domain import (
    Domain,
    merge_nominal,
    merge_ordered,
    nearest_end,
    unmerge,
    unmerge_block,
    without_empty,
)
from covey.engine.numbers.grid import category_bins
from tests.engine.codes.examples import DOMAIN


def test_blocks_lie_one_after_another():
    assert [DOMAIN.block(a) for a in range(3)] == [slice(0, 3), slice(3, 5), slice(5, 9)]
    assert DOMAIN.total == 9
    assert DOMAIN.block_of.tolist() == [0, 0, 0, 1, 1, 2, 2, 2, 2]
    i, j = DOMAIN.inside_blocks
    inside = np.zeros((9, 9), dtype=bool)
    inside[i, j] = True
    assert (inside == DOMAIN.same_block).all()
    assert inside.sum() == 9 + 4 + 16


def test_blocks_are_summed_spread_and_left_out():
    matrix = np.random.default_rng(1).standard_normal((9, 9))
    sums = DOMAIN.sum_blocks(matrix)
    assert sums[0, 2] == pytest.approx(matrix[0:3, 5:9].sum())
    assert (DOMAIN.spread(sums)[0:3, 5:9] == sums[0, 2]).all()
    left = DOMAIN.off_blocks(matrix)
    assert (left[DOMAIN.same_block] == 0).all()
    assert (left[~DOMAIN.same_block] == matrix[~DOMAIN.same_block]).all()


def test_centring_is_the_projection_to_the_simplex_coding():
    matrix = np.random.default_rng(0).standard_normal((9, 9))
    centred = DOMAIN.centre(matrix)
    assert np.abs(DOMAIN.sum_blocks(centred)).max() < 1e-12
    np.testing.assert_allclose(DOMAIN.centre(centred), centred, atol=1e-12)
    basis = DOMAIN.simplex_basis()
    np.testing.assert_allclose(basis.T @ basis, np.eye(6), atol=1e-12)
    np.testing.assert_allclose(basis @ basis.T @ matrix @ basis @ basis.T, centred, atol=1e-12)
    assert Domain((1, 3), (False, False)).simplex_basis().shape == (4, 2)  # one category has no coordinate


def test_merging_and_taking_apart_again():
    p = np.array([0.3, 0.01, 0.01, 0.2, 0.02, 0.46])
    assert merge_nominal(p, 0.05, 20).tolist() == [0, 3, 3, 1, 3, 2]
    assert merge_nominal(p, 0.0, 3).tolist() == [0, 2, 2, 2, 2, 1]
    bins = merge_ordered(p, 0.25)
    assert (np.diff(bins) >= 0).all()
    assert bins[0] == 0
    y = np.random.default_rng(2).dirichlet(np.ones(bins.max() + 1), 7)
    weights = np.full(7, 1 / 7)
    for ordered in (True, False):
        fine = unmerge_block(y, weights, p, bins, ordered)
        np.testing.assert_allclose(fine.sum(axis=1), 1, atol=1e-9)
        assert fine.min() >= 0
        for b in range(bins.max() + 1):
            np.testing.assert_allclose(fine[:, bins == b].sum(axis=1), y[:, b], atol=1e-9)


def test_bins_look_at_noisy_tables_and_public_numbers_only():
    shares = [np.full(3, 1 / 3), np.array([0.5, 0.5]), np.array([0.9, 0.06, 0.02, 0.02])]
    each = zip(shares, DOMAIN.ordered, strict=True)
    maps = [category_bins(p, ordered, 0.2, 0.03, 50, np.zeros(len(p), dtype=int)) for p, ordered in each]
    assert maps[1].tolist() == [0, 1]
    assert maps[2].tolist() == [0, 1, 2, 2]
    merged = Domain(tuple(int(m.max()) + 1 for m in maps), DOMAIN.ordered)
    y = np.hstack([np.full((2, c), 1 / c) for c in merged.sizes])
    assert unmerge(y, np.full(2, 0.5), shares, maps, merged).shape == (2, 9)


def test_nobody_gets_a_bin_without_one_way_mass():
    # Missing, values, a tail up to the maximum.
    p, maps = np.array([0.0, 0.6, 0.4, 0.0, 0.0, 0.0]), np.array([0, 1, 2, 3, 3, 3])
    y = np.array([[0.1, 0.5, 0.3, 0.1], [0.0, 0.7, 0.3, 0.0], [0.0, 0.0, 0.0, 1.0]])
    weights, merged = np.array([0.5, 0.49, 0.01]), Domain((4,), (True,))
    fine = unmerge(y, weights, [p], [maps], merged)
    assert fine[:2, [0, 3, 4, 5]].max() == 0
    np.testing.assert_allclose(fine[0, 1:3], np.array([0.5, 0.3]) / 0.8)
    assert fine[2].tolist() == [0, 0, 0, 1, 0, 0]  # a rule leaves it nothing else: the value beside the others
    np.testing.assert_allclose(without_empty(y, np.array([0.1, 0.5, 0.3, 0.1])), y)
    assert nearest_end(np.array([0, 0, 1]), np.array([0.0, 0.0, 1.0])).tolist() == [0, 1, 1]
    # The program before put a part of every empty bin at the maximum.
    even = y[:, maps] / np.bincount(maps)[maps]
    assert (weights @ even)[-1] > 0.01
