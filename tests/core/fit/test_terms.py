"""Gradients of every term against finite differences, and what the fits are for."""

import numpy as np
import pytest
from scipy.special import expit

from covey.core.arrays import hollow
from covey.core.fit.devices import DOUBLE
from covey.core.fit.targets import (
    DenseTarget,
    Scores,
    fit_centres,
    moment_term,
    parity_term,
    score_term,
    size_term,
    total,
)
from covey.core.tables.counts import UNIT, Coding
from tests.core.fit.examples import basis

P, K = 6, 8
GENERATOR = np.random.default_rng(0)
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
