"""Fits without p × p work are as accurate as the dense ones they stand for, on every kind of array."""

import numpy as np
import pytest

from covey.core.fit.devices import PROCESSOR
from covey.core.fit.factors import denoise
from covey.core.fit.targets import DensePairs, fit_centres
from covey.core.fit.wide import LowRankPairs
from tests.core.fit.examples import error, noisy_table, quiet


@pytest.fixture(autouse=True)
def small_basis(monkeypatch):
    monkeypatch.setattr("covey.core.fit.wide.BASIS", 60)


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


def test_devices_take_the_same_first_steps(device):
    noisy, _ = noisy_table(n=1000, clips=True)
    here, there = (
        denoise(LowRankPairs.of(noisy, d, np.random.default_rng(10)), 40, 4, quiet, 1, 4).factors.centres
        for d in (PROCESSOR, device)
    )
    assert there == pytest.approx(here, abs=2e-3)


def test_what_clipping_did_is_the_dense_answer_within_the_basis():
    noisy, X = noisy_table(p=60, clips=True)
    centres = np.repeat(X[:200].astype(float), 2, axis=0)
    wide = LowRankPairs.of(noisy, PROCESSOR, np.random.default_rng(11)).without_clipping(centres)
    dense = DensePairs.of(noisy, np.random.default_rng(12)).without_clipping(centres)
    Q = wide.basis.astype(float)
    assert wide.mean == pytest.approx(dense.mean, abs=1e-3)
    assert wide.clip_middle == pytest.approx(Q.T @ dense.clip_pair @ Q, abs=5e-4)
    assert np.abs(wide.clip_middle).max() > 5e-3
