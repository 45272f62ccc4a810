"""A spike and a slab: strong effects stay, noise goes, and a histogram of effects tells as much as the effects."""

import numpy as np
import pytest

from covey.core.fit.shrinkage import SpikeSlab, empirical_bayes, fit_spike_slab, thinning_weights


def test_empirical_bayes_keeps_strong_effects_and_drops_noise():
    generator = np.random.default_rng(7)
    truth = np.zeros(2000)
    truth[:20] = generator.choice([-1, 1], 20) * 10.0
    seen = truth + generator.standard_normal(2000)
    found, probability, prior = empirical_bayes(seen, 1.0)
    assert np.mean((found - truth) ** 2) < 0.1
    assert probability[:20].min() > 0.9
    assert prior.slab > 5


def test_the_prior_of_a_histogram_is_that_of_the_effects():
    g = np.random.default_rng(8)
    x = g.normal(0, 1, 20_000) + np.where(g.random(20_000) < 0.05, g.normal(0, 6, 20_000), 0)
    exact = fit_spike_slab(x * x, 1.0)
    values, counts = np.unique(np.round(np.abs(x), 2), return_counts=True)
    binned = fit_spike_slab(values**2, 1.0, counts.astype(float))
    assert binned.share == pytest.approx(exact.share, rel=0.02)
    assert binned.slab == pytest.approx(exact.slab, rel=0.02)
    assert 0.03 < exact.share < 0.07
    effect, probability, prior = empirical_bayes(x, 1.0)
    assert prior == exact
    assert (np.abs(effect) <= np.abs(x)).all()
    assert probability[np.abs(x) > 8].min() > 0.99 > 0.5 > probability[np.abs(x) < 1].max()


def test_posteriors_are_bayes_rule():
    prior = SpikeSlab(noise=1.0, share=0.1, spike=0.5, slab=3.0)
    grid, x = np.linspace(-40, 40, 160_001), 2.5

    def normal(at, sd):
        return np.exp(-((at / sd) ** 2) / 2) / sd

    weights = [s * normal(grid, sd) * normal(x - grid, 1.0) for s, sd in ((0.9, 0.5), (0.1, 3.0))]
    slab = weights[1].sum() / (weights[0] + weights[1]).sum()
    assert prior.slab_probability(np.array([x * x]))[0] == pytest.approx(slab, rel=1e-6)
    mean = ((weights[0] + weights[1]) * grid).sum() / (weights[0] + weights[1]).sum()
    assert prior.posterior_means(np.array([x]), np.array([slab]))[0] == pytest.approx(mean, rel=1e-6)


def test_weights_follow_what_judges_and_never_extrapolate():
    g = np.random.default_rng(3)
    truth = g.normal(size=400)
    estimates = np.array([truth + g.normal(0, s, 400) for s in (0.3, 3.0)])
    gram = estimates @ estimates.T
    weights = thinning_weights(gram, estimates @ (truth + g.normal(0, 1, 400)), 1e-9)
    assert weights[0] > 0.8  # weights by chance, or those of the other estimate, are far from it
    assert (weights >= 0).all()
    assert thinning_weights(gram, estimates @ (3 * truth), 1e-9).sum() == pytest.approx(
        1
    )  # plain least squares gives 2.8
