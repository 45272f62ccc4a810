"""Coded rows: integers inside the ball, one by one, and what clipping does to rows of a centre."""

import numpy as np
import pytest

from covey.core.tables.counts import UNIT, Coding, coded_moments, squared_lengths

CLIPPED = Coding(np.full(6, UNIT // 4), int(1.1 * UNIT**2), clips=True)


def bits(seed, n, p):
    return np.random.default_rng(seed).integers(0, 2, (n, p), dtype=np.uint8)


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
    monkeypatch.setattr("covey.core.tables.counts.LENGTH_ENTRIES", 7)
    assert (squared_lengths(X, centre) == expected).all()
    assert len(squared_lengths(X[:0], centre)) == 0
