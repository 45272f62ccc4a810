"""Fits without p × p work are as accurate as the dense ones they stand for, on every kind of array."""

import numpy as np
import pytest

from covey.engine import arrays
from covey.engine.arrays import hollow
from covey.engine.fit import wide as wide_module
from covey.engine.fit.devices import PROCESSOR
from covey.engine.fit.factors import denoise
from covey.engine.fit.shrinkage import SpikeSlab
from covey.engine.fit.targets import DensePairs, fit_centres
from covey.engine.fit.wide import (
    PARTNERS,
    LowRankPairs,
    core,
    few_per_column,
    find_strong,
    imputed_directions,
    leading_eigenvectors,
    moment_gap,
    residual_prior,
)
from tests.engine.fit.examples import basis, error, noisy_table, quiet


@pytest.fixture(autouse=True)
def small_basis(monkeypatch):
    monkeypatch.setattr(wide_module, "BASIS", 60)


def fitted(pairs, k, r):
    found = denoise(pairs, k, r, quiet)
    return fit_centres(pairs.device, [found.fine], found.factors.logits, 60)


@pytest.mark.parametrize("clips", [False, True])
def test_the_wide_fit_is_as_accurate_as_the_dense_one(clips):
    noisy, X = noisy_table(clips=clips)
    dense = error(X, fitted(DensePairs.of(noisy, np.random.default_rng(9)), 60, 6))
    wide = error(X, fitted(LowRankPairs.of(noisy, PROCESSOR, np.random.default_rng(9)), 60, 6))
    blind = error(X, np.tile(X.mean(axis=0), (2, 1)))
    assert wide < 1.1 * dense < 0.6 * blind


def test_devices_give_the_same_centres(device):
    noisy, X = noisy_table(n=1000)
    here, there = (fitted(LowRankPairs.of(noisy, d, np.random.default_rng(10)), 40, 4) for d in (PROCESSOR, device))
    # Single precision in another order drifts apart over hundreds of steps, by less than the noise, and is no less accurate.
    drift = there.mean(axis=0) - here.mean(axis=0)
    assert np.sqrt(np.mean(drift**2)) < 0.5 * noisy.mean_sd
    assert error(X, there) == pytest.approx(error(X, here), rel=0.05)


def test_what_clipping_did_is_the_dense_answer_within_the_basis():
    noisy, X = noisy_table(p=60, clips=True)
    centres = np.repeat(X[:200].astype(float), 2, axis=0)
    wide = LowRankPairs.of(noisy, PROCESSOR, np.random.default_rng(11)).without_clipping(centres)
    dense = DensePairs.of(noisy, np.random.default_rng(12)).without_clipping(centres)
    Q = wide.basis.astype(float)
    assert wide.mean == pytest.approx(dense.mean, abs=1e-3)
    assert wide.clip_middle == pytest.approx(Q.T @ dense.clip_pair @ Q, abs=5e-4)
    assert np.abs(wide.clip_middle).max() > 5e-3


@pytest.mark.parametrize("clips", [False, True])
def test_strong_pairs_are_found_strip_by_strip(clips, monkeypatch):
    monkeypatch.setattr(wide_module, "BASIS", 2)
    noisy, X = noisy_table(clips=clips)
    p = X.shape[1]
    centres = np.tile(X.mean(axis=0), (4, 1))
    pairs = LowRankPairs.of(noisy, PROCESSOR, np.random.default_rng(0))
    found = []
    for entries in (1 << 22, 7 * p):
        monkeypatch.setattr(arrays, "STRIP", entries)

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


def test_a_small_gap_survives_single_precision():
    # The target is the points' own second moments up to one part in 2000: differences of large numbers would lose it.
    Q, g = basis(90, 12), np.random.default_rng(2)
    F = 10 * g.standard_normal((40, 12)) @ Q.T
    M = Q.T @ (F.T @ F / 40) @ Q + 5e-3 * np.eye(12)
    norm, _ = moment_gap(np, F.astype("f4"), core(np, Q.astype("f4"), M.astype("f4")))
    dense = hollow(F.T @ F / 40 - Q @ M @ Q.T)
    assert norm == pytest.approx((dense**2).sum(), rel=0.05)


def test_subspace_iteration_finds_what_stands_out_of_noise(device):
    p, g = 200, np.random.default_rng(3)
    noise = g.standard_normal((p, p)) / np.sqrt(2 * p)
    T = (basis(p, 6, 4) * np.array([9.0, 7, 5, 4, 3, -8])) @ basis(p, 6, 4).T + noise + noise.T
    d = g.random(p)
    w, v = np.linalg.eigh(T + np.diag(d))
    start = device.put(g.standard_normal((p, 40)))
    values, vectors = leading_eigenvectors(device.xp, device.put(T), device.put(d), start, 10)
    assert device.get(values)[:5] == pytest.approx(w[::-1][:5], rel=1e-3)
    found = device.get(vectors)
    assert np.abs((found[:, :5] * v[:, ::-1][:, :5]).sum(axis=0)) == pytest.approx(np.ones(5), abs=1e-2)
    assert found.T @ found == pytest.approx(np.eye(40), abs=1e-4)


def test_entries_that_are_not_known_are_imputed():
    p, Q = 60, basis(60, 3, 6)
    truth = (Q * np.array([9.0, 6, 4])) @ Q.T
    i = np.arange(p)
    start = np.random.default_rng(7).standard_normal((p, 6))
    errors = {}
    for rounds in (1, 6):
        values, vectors = imputed_directions(hollow(truth), (i, i), start, lambda v: np.maximum(v, 0), rounds)
        errors[rounds] = np.abs((vectors * values) @ vectors.T - truth).max()
    assert errors[6] < 0.3 * errors[1]  # zeros on the diagonal are not what was there
