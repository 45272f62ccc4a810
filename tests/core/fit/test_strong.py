"""Strong pairs are found strip by strip, few to a column, and multiply as the sparse matrix that they are."""

import numpy as np
import pytest

from covey.core.fit.devices import PROCESSOR
from covey.core.fit.shrinkage import SpikeSlab
from covey.core.fit.wide import (
    PARTNERS,
    LowRankPairs,
    Partners,
    StrongPairs,
    few_per_column,
    find_strong,
    residual_prior,
)
from tests.core.fit.examples import basis, noisy_table

PAIRS = StrongPairs(np.array([3, 7, 3]), np.array([9, 30, 12]), np.array([0.2, -0.1, 0.4]))


def written_out(pairs, p):
    S = np.zeros((p, p))
    S[pairs.i, pairs.j] = S[pairs.j, pairs.i] = pairs.effect
    return S


@pytest.mark.parametrize("clips", [False, True])
def test_strong_pairs_are_found_strip_by_strip(clips, monkeypatch):
    monkeypatch.setattr("covey.core.fit.wide.BASIS", 2)
    noisy, X = noisy_table(clips=clips)
    p = X.shape[1]
    centres = np.tile(X.mean(axis=0), (4, 1))
    pairs = LowRankPairs.of(noisy, PROCESSOR, np.random.default_rng(0))
    found = []
    for entries in (1 << 22, 7 * p):
        monkeypatch.setattr("covey.core.arrays.STRIP", entries)

        def strips():
            return pairs.residual(centres)

        prior, limit = residual_prior(strips, p, noisy.pair_sd)
        found.append((prior, find_strong(strips, prior, limit)))
    assert found[0][0].share == pytest.approx(found[1][0].share)
    strong = found[0][1]
    assert (strong.i == found[1][1].i).all()
    assert (strong.i < strong.j).all()
    assert np.bincount(np.concatenate([strong.i, strong.j])).max() <= PARTNERS
    tied = {(a, a + 1) for a in range(0, 20, 2)}
    assert len(tied & set(zip(strong.i.tolist(), strong.j.tolist(), strict=True))) >= 8
    assert np.abs(strong.effect).min() > noisy.pair_sd


def test_noise_alone_has_no_strong_pairs():
    g, p = np.random.default_rng(1), 60
    noise = g.normal(0, 1, (p, p)).astype("f4")
    found = find_strong(lambda: iter([(0, noise)]), SpikeSlab(1.0, 0.001, 0.1, 4.0), 0.0)
    assert len(found.i) <= 1
    noise[4, 9] = 12
    assert (find_strong(lambda: iter([(0, noise)]), SpikeSlab(1.0, 0.001, 0.1, 4.0), 0.0).i == 4).any()


def test_only_the_strongest_of_a_column_stay():
    j = np.arange(1, PARTNERS + 4)
    keep = few_per_column(np.zeros(len(j), np.int64), j, j.astype(float))
    assert keep.tolist() == [False] * 3 + [True] * PARTNERS


def test_partners_multiply_as_the_matrix_does(device):
    p = 40
    S, F = written_out(PAIRS, p), np.random.default_rng(2).standard_normal((5, p))
    partners = Partners.of(device, PAIRS, p)
    assert device.get(partners.times(device.xp, device.put(F))) == pytest.approx(F @ S, abs=1e-5)
    assert partners.square == pytest.approx((S**2).sum())
    Q = basis(p, 6)
    assert device.get(PAIRS.inside(device, device.put(Q))) == pytest.approx(Q.T @ S @ Q, abs=1e-6)
    assert Partners.of(device, StrongPairs.none(), p) is None
    left = np.ones((p, p))
    PAIRS.take_out_of(left)
    assert (left == 1 - S).all()
