from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from audits.gates import opened
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.subspace import quantise_directions
from covey.core.tables.counts import (
    UNIT,
    Coding,
    canonical,
    coded_moments,
    column_counts,
    moments,
    norm_counts,
    parity_sums,
    row_ones,
    score_counts,
    size_counts,
    worth_it,
)
from covey.core.tables.distance import bit_distances, overlap_histogram
from covey.engines.local import ArrayRows
from covey.methods.records import Limit


def test_boolean_moments_are_integers_whatever_the_order_of_rows():
    generator = np.random.default_rng(0)
    X = generator.integers(0, 2, (40_000, 9), dtype=np.uint8)
    exact = X.astype(np.int64).T @ X.astype(np.int64)
    for rows in (X, X[::-1], X[generator.permutation(len(X))], np.asfortranarray(X), X.astype(bool)):
        M = moments(rows)
        assert (M.second == exact).all()
        assert (M.first == np.diag(exact)).all()


def test_no_integer_is_lost_where_one_float32_counter_would_lose_it():
    n = (1 << 24) + 3
    assert np.float32(2**24) + np.float32(1) == np.float32(2**24)
    assert moments(np.ones((n, 1), dtype=bool)).second[0, 0] == n


@given(st.integers(0, 2**32 - 1), st.integers(1, 60), st.integers(0, 60))
def test_moments_of_parts_add_up(seed, n, cut):
    X = np.random.default_rng(seed).integers(0, 2, (n, 3), dtype=np.uint8)
    cut = min(cut, n)
    whole, parts = moments(X), moments(X[:cut]) + moments(X[cut:])
    assert whole.n == parts.n
    assert (whole.second == parts.second).all()
    assert (whole.first == parts.first).all()


def test_real_and_other_integer_rows():
    generator = np.random.default_rng(1)
    for X in (generator.standard_normal((500, 4)), generator.integers(-9, 10**6, (500, 4))):
        M = moments(X)
        np.testing.assert_allclose(M.second, X.T.astype(float) @ X, rtol=1e-12)
        np.testing.assert_allclose(M.first, X.sum(axis=0), rtol=1e-12)


def test_rows_reduce_is_the_same_in_batches(monkeypatch):
    monkeypatch.setattr("covey.engines.local.BATCH_ENTRIES", 50)
    X = np.random.default_rng(2).integers(0, 2, (333, 7), dtype=np.uint8)
    assert (opened(ArrayRows(X).reduce(moments)).second == moments(X).second).all()
    assert opened(ArrayRows(X).reduce(moments)).second_moment_matrix[0, 0] == pytest.approx(X[:, 0].mean())


# Sparse rows of bits give the same integers as dense ones, to the last bit.


def bits(n, p, share, seed=0):
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


@pytest.mark.parametrize(("p", "share"), [(12, 0.3), (300, 0.01), (300, 0.4), (300, 0.0)])
def test_every_pass_gives_the_same_integers_on_sparse_rows_in_any_batch(p, share, monkeypatch):
    X = bits(500, p, share)
    sparse = sp.csr_array(X)
    rows = row_ones(sparse)
    assert worth_it(rows, 500 * p * p) == (share < 0.02)  # both ways of multiplying are tried
    monkeypatch.setattr("covey.engines.local.BATCH_ENTRIES", 64 * p)
    monkeypatch.setattr("covey.engines.local.LEAST_BATCH_ROWS", 1)
    for name, kernel in kernels(p).items():
        whole = numbers(kernel(X))
        for got in (kernel(sparse), opened(ArrayRows(X).reduce(kernel)), opened(ArrayRows(sparse).reduce(kernel))):
            assert all((a == b).all() for a, b in zip(whole, numbers(got), strict=True)), name


def test_coded_moments_are_sums_over_the_records_one_by_one():
    X = bits(200, 30, 0.2)
    coding = Coding(np.full(30, 100), 5 * UNIT**2, clips=True)
    assert 20 < (coding.lengths(X) > coding.radius_squared).sum() < 180
    u = np.concatenate([coding.encode(row[None]) for row in X]).astype(np.int64)
    for rows in (X, sp.csr_array(X)):
        M = coded_moments(rows, coding)
        assert (M.second == u.T @ u).all()
        assert (M.first == u.sum(axis=0)).all()


@pytest.mark.parametrize("share", [0.01, 0.3])
def test_distances_of_sparse_rows_are_those_of_dense_ones(share):
    X = bits(300, 280, share)
    generator = np.random.default_rng(2)
    cloud = WeightedPoints(np.full(5, 0.2), generator.random((5, 280)) * 2 * share)
    assert (overlap_histogram(sp.csr_array(X)) == overlap_histogram(X)).all()
    dense, sparse = bit_distances(X, cloud), bit_distances(sp.csr_array(X), cloud)
    assert dense.keys() == sparse.keys() == {1, 2, 3, 4}
    assert sparse == pytest.approx(dense, rel=1e-12)


def test_declared_limits_are_kept_on_sparse_rows():
    X = bits(100, 40, 0.3)
    limits = [([3, 1, 2], 1), (list(range(10, 30)), 4)]
    dense = Limit(limits)(X)
    sparse = Limit(limits)(sp.csr_array(X))
    assert (sparse.toarray() == dense).all()


def test_canonical_rows_add_doubles_drop_zeros_and_leave_their_source_alone():
    messy = sp.csr_array((np.array([1, 0, 1, 1]), np.array([2, 1, 0, 0]), np.array([0, 2, 4])), shape=(2, 3))
    data, indices = messy.data.copy(), messy.indices.copy()
    clean = canonical(messy)
    assert (clean.toarray() == [[0, 0, 1], [2, 0, 0]]).all()
    assert clean.nnz == 2
    assert (messy.data == data).all()
    assert (messy.indices == indices).all()
