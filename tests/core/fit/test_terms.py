"""Gradients of every term against finite differences, and what the fits are for."""

import numpy as np
import pytest
from scipy.special import expit

from covey.core.fit.factors import NoisyMoments, denoise_moments, empirical_bayes, latent_points
from covey.core.fit.terms import (
    Parities,
    Scores,
    fit_centres,
    hollow,
    moment_term,
    parity_term,
    score_term,
    size_term,
    total,
)
from covey.core.tables.coding import UNIT, Coding

P, K = 6, 8
GENERATOR = np.random.default_rng(0)
CUT = Coding(np.full(P, UNIT // 4), int(1.1 * UNIT**2), clips=True)


def terms():
    g = np.random.default_rng(1)
    pair = hollow(g.normal(0, 0.1, (P, P)))
    pair = (pair + pair.T) / 2
    directions = np.linalg.qr(g.standard_normal((P, 2)))[0]
    edges = np.sort(g.normal(0, 1, (2, 5)), axis=1)
    pairs = P * (P - 1) // 2
    return {
        "moments": moment_term(Coding.half(P), g.normal(0, 0.1, P), 0.05, pair, 0.1),
        "cut": moment_term(CUT, g.normal(0, 0.1, P), 0.05, pair, 0.1),
        "scores": score_term(Scores(directions, edges, g.dirichlet(np.ones(6), 2), 0.05)),
        "parities": parity_term(Parities(g.normal(0, 0.2, (P, pairs)), 0.1, g.normal(0, 0.2, (pairs, pairs)), 0.1)),
        "sizes": size_term(g.dirichlet(np.ones(P + 1)), 0.05),
    }


@pytest.mark.parametrize("name", list(terms()))
def test_gradients_are_right(name):
    term = terms()[name]
    logits = np.random.default_rng(2).normal(0, 1, (K, P))
    _, gradient = total([term], logits)
    worst = 0.0
    for j, i in ((0, 0), (3, 2), (7, 5), (4, 1)):
        step = np.zeros_like(logits)
        step[j, i] = 2e-2
        difference = (total([term], logits + step)[0] - total([term], logits - step)[0]) / 4e-2
        worst = max(worst, abs(difference - gradient[j, i]) / (abs(gradient[j, i]) + 0.02 * np.abs(gradient).max()))
    assert worst < 0.05


def test_a_cut_of_everything_matches_a_simulation():
    y = np.random.default_rng(3).random((40, P)).astype(np.float32)
    mean, pair = CUT.cut_error(y, np.random.default_rng(4), copies=200)
    assert np.abs(mean).max() < 0.05
    assert np.abs(pair).max() < 0.05
    one, _, two, _ = CUT.cut(y)
    assert ((one > 0) & (one <= 1)).all()
    assert ((two > 0) & (two <= 1)).all()


def test_centres_reach_their_target():
    generator = np.random.default_rng(5)
    y = expit(generator.normal(0, 1.5, (50, P)))
    u = y - 0.5
    term = moment_term(Coding.half(P), u.mean(axis=0), 1e-3, hollow(u.T @ u / 50), 1e-3)
    fitted = fit_centres([term], generator.normal(0, 1, (50, P)), 300)
    v = fitted - 0.5
    assert np.abs(hollow(v.T @ v / 50 - u.T @ u / 50)).max() < 1e-3
    assert np.abs(v.mean(axis=0) - u.mean(axis=0)).max() < 1e-3


def test_latent_points_are_exactly_white():
    g = latent_points(40, 5, np.random.default_rng(6))
    np.testing.assert_allclose(g.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(g.T @ g / 40, np.eye(5), atol=1e-10)


def test_empirical_bayes_keeps_strong_effects_and_drops_noise():
    generator = np.random.default_rng(7)
    truth = np.zeros(2000)
    truth[:20] = generator.choice([-1, 1], 20) * 10.0
    seen = truth + generator.standard_normal(2000)
    found, probability, wide = empirical_bayes(seen, 1.0)
    assert np.mean((found - truth) ** 2) < 0.1
    assert probability[:20].min() > 0.9
    assert wide > 5


def test_denoising_beats_the_raw_measurement_and_stays_within_frechet_bounds():
    generator = np.random.default_rng(8)
    p, k = 20, 4000
    y = expit(-1 + np.outer(generator.standard_normal(k), generator.normal(1, 0.5, p)))
    m = y.mean(axis=0)
    truth = hollow(y.T @ y / k)
    u = y - 0.5
    sd = 0.01
    noise = np.triu(generator.normal(0, sd, (p, p)), 1)
    seen = hollow(u.T @ u / k) + noise + noise.T
    noisy = NoisyMoments(Coding.half(p), u.mean(axis=0) + generator.normal(0, sd, p), sd, seen, sd)
    _, _, _, target = denoise_moments(noisy, 200, 6, generator, lambda _: None)
    off = ~np.eye(p, dtype=bool)
    assert np.sqrt(np.mean((target.pair - truth)[off] ** 2)) < 0.85 * sd
    assert np.sqrt(np.mean((target.mean - m) ** 2)) < sd
    bounds = np.minimum(target.mean[:, None], target.mean)
    assert (target.pair <= bounds + 1e-12).all()
    assert (target.pair >= 0).all()
