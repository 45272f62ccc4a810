"""Targets: the loss and its slope are those of the definition, and the low-rank target is the dense one."""

import numpy as np
import pytest
from scipy.special import expit

from covey.engine.arrays import hollow
from covey.engine.codes.counts import UNIT, Coding
from covey.engine.fit.devices import DOUBLE
from covey.engine.fit.factors import denoise
from covey.engine.fit.targets import (
    DensePairs,
    DenseTarget,
    NoisyMoments,
    Scores,
    fit_centres,
    moment_term,
    parity_term,
    score_term,
    size_term,
    total,
)
from covey.engine.fit.wide import LowRankTarget, StrongPairs, core
from tests.engine.fit.examples import basis, noisy_table, quiet


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


P, K = 6, 8
CLIPPED = Coding(np.full(P, UNIT // 4), int(1.1 * UNIT**2), clips=True)


def terms():
    g = np.random.default_rng(1)
    pair = hollow(g.normal(0, 0.1, (P, P)))
    pair = (pair + pair.T) / 2
    target = DenseTarget.of(pair, 0.1)
    directions = np.linalg.qr(g.standard_normal((P, 2)))[0]
    edges = np.sort(g.normal(0, 1, (2, 5)), axis=1)
    pairs = P * (P - 1) // 2
    return {
        "moments": moment_term(DOUBLE, Coding.half(P), g.normal(0, 0.1, P), 0.05, target),
        "clipped": moment_term(DOUBLE, CLIPPED, g.normal(0, 0.1, P), 0.05, target),
        "scores": score_term(DOUBLE, Scores(directions, edges, g.dirichlet(np.ones(6), 2), 0.05)),
        "parities": parity_term(g.normal(0, 0.2, (P, pairs)), g.normal(0, 0.2, (pairs, pairs)), (0.1, 0.1)),
        "sizes": size_term(g.dirichlet(np.ones(P + 1)), 0.05),
    }


@pytest.mark.parametrize("name", list(terms()))
def test_gradients_are_right(name):
    term = terms()[name]
    logits = np.random.default_rng(2).normal(0, 1, (K, P))
    _, gradient = total(DOUBLE, [term], logits)
    worst = 0.0
    for j, i in ((0, 0), (3, 2), (7, 5), (4, 1)):
        step = np.zeros_like(logits)
        step[j, i] = 2e-2
        difference = (total(DOUBLE, [term], logits + step)[0] - total(DOUBLE, [term], logits - step)[0]) / 4e-2
        worst = max(worst, abs(difference - gradient[j, i]) / (abs(gradient[j, i]) + 0.02 * np.abs(gradient).max()))
    assert worst < 0.05


def test_centres_reach_their_target():
    generator = np.random.default_rng(5)
    y = expit(generator.normal(0, 1.5, (50, P)))
    u = y - 0.5
    target = DenseTarget.of(hollow(u.T @ u / 50), 1e-3)
    term = moment_term(DOUBLE, Coding.half(P), u.mean(axis=0), 1e-3, target)
    fitted = fit_centres(DOUBLE, [term], generator.normal(0, 1, (50, P)), 300)
    v = fitted - 0.5
    assert np.abs(hollow(v.T @ v / 50 - u.T @ u / 50)).max() < 1e-3
    assert np.abs(v.mean(axis=0) - u.mean(axis=0)).max() < 1e-3


def test_scores_on_a_device_are_the_same(device):
    g = np.random.default_rng(6)
    scores = Scores(basis(50, 3), np.sort(g.normal(0, 1, (3, 7)), axis=1), np.full((3, 8), 1 / 8), 0.01)
    y = g.random((20, 50)).astype("f4")
    loss, slope = score_term(DOUBLE, scores)(y)
    got, got_slope = score_term(device, scores)(device.put(y))
    assert got == pytest.approx(loss, rel=1e-4)
    assert device.get(got_slope) == pytest.approx(slope, abs=1e-3 * float(np.abs(slope).max()))
