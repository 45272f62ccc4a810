"""The logistic factor model: its points, its fit and its prior."""

import numpy as np
import pytest
from scipy.special import expit

from covey.core.fit.devices import DOUBLE
from covey.core.fit.factors import Factors, Prior, denoise, estimate_prior, fit_factors, latent_points
from covey.core.fit.targets import DensePairs, DenseTarget, moment_term, total
from covey.core.fit.wide import LowRankTarget, core
from tests.core.fit.examples import noisy_table, quiet


def test_latent_points_are_exactly_white():
    g = latent_points(40, 5, np.random.default_rng(6))
    np.testing.assert_allclose(g.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(g.T @ g / 40, np.eye(5), atol=1e-10)


def test_centres_are_the_sigmoids_of_a_plane_of_logits():
    g = np.random.default_rng(1)
    f = Factors(g.normal(size=5), g.normal(size=(5, 2)), g.normal(size=(8, 2)))
    assert f.centres[3, 4] == pytest.approx(expit(f.bias[4] + f.points[3] @ f.loadings[4]))
    assert np.linalg.matrix_rank(f.logits - f.bias) == 2


@pytest.mark.parametrize("hold", [None, 0.1])
def test_factors_on_a_device_reach_the_dense_posterior_mode(device, hold):
    noisy, _ = noisy_table(n=1000, p=60)
    found = denoise(DensePairs.of(noisy, np.random.default_rng(11)), 30, 3, quiet, rounds=1, steps=2)
    f, prior = found.factors, found.prior
    w, v = np.linalg.eigh(noisy.pair)
    target = LowRankTarget.of(device, core(device.xp, device.put(v), device.put(np.diag(w))), noisy.pair_sd)
    dense = moment_term(DOUBLE, noisy.coding, noisy.mean, noisy.mean_sd, DenseTarget.of(noisy.pair, noisy.pair_sd))
    near = moment_term(device, noisy.coding, noisy.mean, noisy.mean_sd, target)
    a = fit_factors(DOUBLE, [dense], f, prior, 40, hold)
    b = fit_factors(device, [near], f, prior, 40, hold)
    before, after, reached = (dense(x.centres.astype("f4"))[0] for x in (f, a, b))
    assert reached < after + 0.02 * (before - after)
    assert total(device, [near], device.put(a.logits))[0] == pytest.approx(after, rel=1e-3)
    moved = np.abs(a.points - f.points).max()
    assert moved == 0 if hold is None else moved > 1e-3


def test_the_prior_follows_the_loadings_and_unneeded_factors_shrink_away():
    g = np.random.default_rng(2)
    loadings = np.column_stack([g.normal(1, 0.5, 400), g.normal(0, 1e-3, 400)])
    f = Factors(g.normal(-1, 0.7, 400), loadings, latent_points(40, 2, g))
    prior = estimate_prior(f, Prior(np.zeros(2), np.ones(2), 0.0, 2.0), mean_sd=1e-3)
    assert prior.mean == pytest.approx([1, 0], abs=0.1)
    assert prior.sd[0] == pytest.approx(0.5, rel=0.1)
    assert prior.sd[1] < 0.02
    assert (prior.bias_mean, prior.bias_sd) == (pytest.approx(-1, abs=0.1), pytest.approx(0.7, rel=0.1))
    buried = estimate_prior(f, Prior(np.zeros(2), np.ones(2), 0.0, 2.0), mean_sd=10.0)
    assert buried.bias_sd > 1.5  # where means tell little the prior does not collapse at once
