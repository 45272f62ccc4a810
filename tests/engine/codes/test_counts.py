"""The integer statistics that regain measures, against brute force, in any batch."""

from functools import partial
from itertools import combinations

import numpy as np
import pytest
import scipy.sparse as sp

from audits.gates import opened
from covey.engine.codes import counts
from covey.engine.codes.counts import (
    UNIT,
    Coding,
    canonical,
    coded_moments,
    column_counts,
    moments,
    norm_counts,
    parity_sums,
    score_counts,
    shifted_moments,
    size_counts,
    squared_lengths,
)
from covey.engine.codes.distance import bit_distances
from covey.engine.fit.targets import parity_masks
from covey.engine.noise.directions import quantise_directions
from covey.engine.points import WeightedPoints
from covey.engine.units import local
from covey.engine.units.local import ArrayRows


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
    expected = [np.sum((norms > low) & (norms <= high)) for low, high in ((-1, 1), (1, 3), (3, 5), (5, 99))]
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


CLIPPED = Coding(np.full(6, UNIT // 4), int(1.1 * UNIT**2), clips=True)


def test_coded_rows_are_integers_inside_the_ball_whatever_the_batch():
    X = bits(1, 300, 20)
    coding = Coding(np.random.default_rng(2).integers(0, UNIT, 20), radius_squared=3 * UNIT**2, clips=True)
    u = coding.encode(X)
    assert (u == np.rint(u)).all()
    assert (u * u).sum(axis=1).max() <= coding.radius_squared
    assert (np.concatenate([coding.encode(row[None]) for row in X]) == u).all()
    inside = ((X.astype(float) * UNIT - coding.centre) ** 2).sum(axis=1) <= coding.radius_squared
    assert (u[inside] == (X.astype(int) * UNIT - coding.centre)[inside]).all()
    M = coded_moments(X, coding)
    assert (M.second == u.astype(np.int64).T @ u.astype(np.int64)).all()
    assert (M.first == u.sum(axis=0)).all()


def test_the_approximated_clipping_is_near_the_simulated_one():
    y = np.random.default_rng(3).random((160, 6)).astype(np.float32)
    mean, pair = CLIPPED.clip_error(y, np.random.default_rng(4))
    assert np.abs(mean).max() < 0.05
    assert np.abs(pair).max() < 0.05
    one, _, two, _ = CLIPPED.clip_factors(y)
    assert ((one > 0) & (one <= 1)).all()
    assert ((two > 0) & (two <= 1)).all()


def test_clipping_follows_the_length_of_the_row_alone():
    y = np.random.default_rng(5).random((9, 6)).astype(np.float32)
    along = y @ (1 - 2 * CLIPPED.middle).astype(np.float32)
    for a, b in zip(CLIPPED.clip_factors(y), CLIPPED.clip_factors_along(along), strict=True):
        assert (a == b).all()
    short = Coding(np.zeros(6, np.int64), 100 * UNIT**2, clips=True)
    assert short.clip_factors(y)[0] == pytest.approx(np.ones(9))  # no row is that long


def test_squared_lengths_are_exact_in_any_block(monkeypatch):
    X, centre = bits(6, 50, 6), np.arange(6) * 100
    expected = ((X.astype(np.int64) * UNIT - centre) ** 2).sum(axis=1)
    assert (squared_lengths(X, centre) == expected).all()
    monkeypatch.setattr(counts, "LENGTH_ENTRIES", 7)
    assert (squared_lengths(X, centre) == expected).all()
    assert len(squared_lengths(X[:0], centre)) == 0


def test_no_integer_is_lost_where_one_float32_counter_would_lose_it():
    n = (1 << 24) + 3
    assert np.float32(2**24) + np.float32(1) == np.float32(2**24)
    assert moments(np.ones((n, 1), dtype=bool)).second[0, 0] == n


def test_real_and_other_integer_rows():
    generator = np.random.default_rng(1)
    for X in (generator.standard_normal((500, 4)), generator.integers(-9, 10**6, (500, 4))):
        M = moments(X)
        np.testing.assert_allclose(M.second, X.T.astype(float) @ X, rtol=1e-12)
        np.testing.assert_allclose(M.first, X.sum(axis=0), rtol=1e-12)


def sparse_bits(n, p, share, seed=0):
    return (np.random.default_rng(seed).random((n, p)) < share).astype(np.uint8)


def kernels(p):
    """Every kernel that `regain` applies to rows of bits, with codings that cut some rows and not others."""
    generator = np.random.default_rng(1)
    centre = generator.integers(0, UNIT // 8, p)
    edges = np.arange(1, 30) * UNIT**2 // 4
    directions = quantise_directions(np.linalg.qr(generator.standard_normal((p, 3)))[0])
    bins = np.sort(generator.integers(-(1 << 17), 1 << 17, (3, 7)), axis=1)
    cut = Coding(centre, 2 * UNIT**2, clips=True)
    return {
        "columns": column_counts,
        "sizes": size_counts,
        "norms": partial(norm_counts, centre=centre, edges=edges),
        "scores": partial(score_counts, directions=directions, edges=bins),
        "moments": moments,
        "coded": partial(coded_moments, coding=cut),
        "half": partial(coded_moments, coding=Coding.half(p)),
        **({"parities": parity_sums} if p <= 20 else {}),
    }


def numbers(result):
    return result.values if hasattr(result, "values") else (np.array(result.n), result.first, result.second)


@pytest.mark.parametrize(("p", "share", "cost"), [(12, 0.3, 500), (300, 0.01, 0), (300, 0.4, 1 << 40), (300, 0.0, 500)])
def test_every_pass_gives_the_same_integers_on_sparse_rows_in_any_batch(p, share, cost, monkeypatch):
    X = sparse_bits(500, p, share)
    sparse = sp.csr_array(X)
    monkeypatch.setattr(counts, "SPARSE_COST", cost)  # both ways of multiplying are tried
    monkeypatch.setattr(local, "BATCH_ENTRIES", 64 * p)
    monkeypatch.setattr(local, "LEAST_BATCH_ROWS", 1)
    for name, kernel in kernels(p).items():
        whole = numbers(kernel(X))
        for got in (kernel(sparse), opened(ArrayRows(X).reduce(kernel)), opened(ArrayRows(sparse).reduce(kernel))):
            assert all((a == b).all() for a, b in zip(whole, numbers(got), strict=True)), name


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_distances_of_sparse_rows_are_those_of_dense_ones(share):
    X = sparse_bits(300, 150, share)
    generator = np.random.default_rng(2)
    cloud = WeightedPoints(np.full(5, 0.2), generator.random((5, 150)) * 2 * share)
    dense, sparse = bit_distances(X, cloud), bit_distances(sp.csr_array(X), cloud)
    assert dense.keys() == sparse.keys() == {1, 2, 3}
    assert sparse == pytest.approx(dense, rel=1e-12)


def test_canonical_rows_add_doubles_drop_zeros_and_leave_their_source_alone():
    messy = sp.csr_array((np.array([1, 0, 1, 1]), np.array([2, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 3))
    data, indices = messy.data.copy(), messy.indices.copy()
    clean = canonical(messy)
    assert (clean.toarray() == [[0, 0, 1], [2, 0, 0]]).all()
    assert clean.nnz == 2
    assert (messy.data == data).all()
    assert (messy.indices == indices).all()
