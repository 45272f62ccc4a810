import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audits.gates import opened
from covey.core.tables.moments import moments
from covey.engines.local import ArrayRows


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
