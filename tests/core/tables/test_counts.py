"""The integer statistics that regain measures, against brute force, in any batch."""

from itertools import combinations

import numpy as np

from covey.core.fit.targets import parity_masks
from covey.core.paper.subspace import quantise_directions
from covey.core.tables.counts import (
    UNIT,
    Coding,
    coded_moments,
    column_counts,
    moments,
    norm_counts,
    parity_sums,
    score_counts,
    shifted_moments,
    size_counts,
)


def bits(seed, n, p):
    return np.random.default_rng(seed).integers(0, 2, (n, p), dtype=np.uint8)


def test_parities_list_every_triple_and_quadruple_once():
    X = bits(0, 50, 6)
    z = 2 * X.astype(int) - 1
    triples, quads = parity_sums(X).integers()
    mask3, mask4 = parity_masks(6)
    i, j = np.triu_indices(6, 1)
    found3 = {(a, i[b], j[b]): triples[a, b] for a, b in zip(*np.nonzero(mask3), strict=True)}
    found4 = {(i[a], j[a], i[b], j[b]): quads[a, b] for a, b in zip(*np.nonzero(mask4), strict=True)}
    assert found3 == {s: z[:, s].prod(axis=1).sum() for s in combinations(range(6), 3)}
    assert found4 == {s: z[:, s].prod(axis=1).sum() for s in combinations(range(6), 4)}


def test_coding_at_one_half_is_a_change_of_variables():
    X = bits(3, 100, 7)
    direct, derived = coded_moments(X, Coding.half(7)), shifted_moments(moments(X), Coding.half(7).centre)
    assert (direct.second == derived.second).all()
    assert (direct.first == derived.first).all()
    assert Coding.half(7).size == 7 / 4


def test_simple_histograms():
    X = bits(4, 200, 9)
    assert column_counts(X).integers()[0].tolist() == X.sum(axis=0).tolist()
    assert size_counts(X).integers()[0].tolist() == np.bincount(X.sum(axis=1, dtype=np.int64), minlength=10).tolist()
    centre = np.full(9, UNIT // 4)
    edges = np.array([1, 3, 5]) * UNIT**2
    norms = ((X - 0.25) ** 2).sum(axis=1)
    expected = [
        np.sum(norms <= 1),
        np.sum((norms > 1) & (norms <= 3)),
        np.sum((norms > 3) & (norms <= 5)),
        np.sum(norms > 5),
    ]
    assert norm_counts(X, centre, edges).integers()[0].tolist() == expected


def test_score_histograms_put_each_row_in_one_bin_of_each():
    X = bits(5, 400, 12)
    v = np.linalg.qr(np.random.default_rng(6).standard_normal((12, 3)))[0]
    quantised = quantise_directions(v)
    edges = np.sort(np.random.default_rng(7).integers(-(1 << 16), 1 << 16, (3, 5)), axis=1)
    counts = score_counts(X, quantised, edges).integers()[0]
    assert counts.shape == (3, 6)
    assert (counts.sum(axis=1) == 400).all()
    parts = score_counts(X[:123], quantised, edges) + score_counts(X[123:], quantised, edges)
    assert (parts.values[0] == counts).all()
