"""Targets: the loss and its slope are those of the definition, and the low-rank target is the dense one."""

import numpy as np
import pytest
from scipy.special import expit

from covey.core.arrays import hollow
from covey.core.fit.devices import DOUBLE
from covey.core.fit.factors import denoise
from covey.core.fit.lowrank import core
from covey.core.fit.targets import DensePairs, DenseTarget, NoisyMoments, moment_term
from covey.core.fit.wide import LowRankTarget, StrongPairs
from covey.core.tables.counts import UNIT, Coding
from tests.core.fit.examples import basis, noisy_table, quiet


@pytest.mark.parametrize("scaled", [False, True])
def test_the_pull_is_the_definition(scaled):
    g = np.random.default_rng(1)
    u, pair = g.standard_normal((9, 5)).astype("f4"), hollow(g.standard_normal((5, 5)))
    sd = 0.5 + g.random((5, 5))
    sd, pair = sd + sd.T, pair + pair.T
    scale = g.random(9).astype("f4") if scaled else None
    gap = hollow((u * (1 if scale is None else scale[:, None])).T @ u / 9 - pair)
    loss, pull = DenseTarget.of(pair, sd).pull(u, scale)
    assert loss == pytest.approx((np.triu(gap) ** 2 / sd**2).sum() / 2, rel=1e-5)
    assert pull == pytest.approx(u @ (gap / sd**2), rel=1e-4, abs=1e-5)


@pytest.mark.parametrize("clips", [False, True])
def test_a_low_rank_target_is_the_dense_one(device, clips):
    p, g = 80, np.random.default_rng(5)
    coding = Coding(g.integers(0, UNIT // 4, p), p * UNIT**2 // 16, clips=True) if clips else Coding.half(p)
    mean, Q, M = g.normal(0, 0.1, p), basis(p, 10), np.diag(g.random(10))
    y = g.random((24, p)).astype("f4")
    strong = StrongPairs(np.array([3, 7, 3]), np.array([9, 30, 12]), np.array([0.2, -0.1, 0.4]))
    sparse = np.zeros((p, p))
    strong.take_out_of(sparse)
    dense = DenseTarget.of(hollow(Q @ M @ Q.T - sparse), 0.03)
    loss, slope = moment_term(DOUBLE, coding, mean, 0.02, dense)(y)
    target = LowRankTarget.of(device, core(device.xp, device.put(Q), device.put(M)), 0.03, strong)
    got, got_slope = moment_term(device, coding, mean, 0.02, target)(device.put(y))
    assert got == pytest.approx(loss, rel=1e-4)
    assert device.get(got_slope) == pytest.approx(slope, abs=1e-4 * float(np.abs(slope).max()))


def logistic_table(p=20, k=4000, sd=0.01):
    """Noisy moments of a one-factor table, its true means and pairs."""
    generator = np.random.default_rng(8)
    y = expit(-1 + np.outer(generator.standard_normal(k), generator.normal(1, 0.5, p)))
    u = y - 0.5
    noise = np.triu(generator.normal(0, sd, (p, p)), 1)
    seen = hollow(u.T @ u / k) + noise + noise.T
    noisy = NoisyMoments(Coding.half(p), u.mean(axis=0) + generator.normal(0, sd, p), sd, seen, sd)
    return noisy, y.mean(axis=0), hollow(y.T @ y / k)


def test_denoising_beats_the_raw_measurement_and_stays_within_frechet_bounds():
    noisy, means, truth = logistic_table()
    sd = noisy.pair_sd
    pairs = DensePairs.of(noisy, np.random.default_rng(9))
    factors = denoise(pairs, 200, 6, quiet).factors
    y = factors.centres
    m = y.mean(axis=0)
    coded = pairs.set_aside(y).denoised(y).pair
    share = hollow(coded + (m[:, None] + m) / 2 - 0.25)
    off = ~np.eye(len(m), dtype=bool)
    assert np.sqrt(np.mean((share - truth)[off] ** 2)) < 0.85 * sd
    assert np.sqrt(np.mean((m - means) ** 2)) < sd
    assert (share <= np.minimum(m[:, None], m) + 1e-6).all()
    assert (share >= -1e-6).all()


def test_pairs_set_aside_count_less_and_all_are_measured():
    noisy, _ = noisy_table(p=60)
    pairs = DensePairs.of(noisy, np.random.default_rng(10))
    pairs = pairs.set_aside(denoise(pairs, 60, 6, quiet).factors.centres)
    for i in range(0, 20, 2):  # tied pairs
        assert pairs.for_factors().weight[i, i + 1] < 0.2 * pairs.measured().weight[i, i + 1]
    assert np.median(pairs.for_factors().weight) > 0.5 * np.median(pairs.measured().weight)
    assert (pairs.measured().weight[~np.eye(60, dtype=bool)] == np.float32(1 / noisy.pair_sd**2)).all()


def test_what_clipping_did_is_taken_off():
    noisy, X = noisy_table(p=60, clips=True, sd=1e-4)
    centres = np.repeat(X[:200].astype(float), 2, axis=0)
    pairs = DensePairs.of(noisy, np.random.default_rng(11)).without_clipping(centres)
    mean, pair = noisy.coding.clip_error(centres.astype("f4"), np.random.default_rng(11))
    assert (pairs.mean == noisy.mean - mean).all()
    assert pairs.measured().pair == pytest.approx(noisy.pair - pair, abs=1e-6)
    assert np.abs(pair).max() > 1e-4
