"""Rare categories are merged by public numbers, and taken apart again."""

import numpy as np

from covey.core.numbers.cells import category_bins
from covey.core.tables.domain import Domain
from covey.core.tables.merging import merge_nominal, merge_ordered, unmerge, unmerge_block
from tests.core.tables.examples import DOMAIN


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
