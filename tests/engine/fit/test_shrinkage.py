"""A spike and a slab: strong effects stay, noise goes, and a histogram of effects tells as much as the effects."""

import numpy as np
import pytest

from covey.engine.fit.shrinkage import (
    SpikeSlab,
    denoise_histogram,
    denoisers,
    empirical_bayes,
    fit_spike_slab,
    group_counts,
    grouped_bins,
    grouped_histogram,
    project_to_total,
    thinning_weights,
    threshold,
)


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
    # Plain least squares gives 2.8.
    assert thinning_weights(gram, estimates @ (3 * truth), 1e-9).sum() == pytest.approx(1)


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("size", [2, 5, 40])
def test_denoised_histograms_are_counts_and_beat_the_noise(size, ordered):
    generator = np.random.default_rng(size)
    truth = np.sort(generator.dirichlet(np.full(size, 0.5)))[::-1] * 5000
    sd, better = 40.0, []
    for _ in range(20):
        noisy = truth + generator.normal(0, sd, size)
        found = denoise_histogram(noisy, sd, 5000.0, ordered, generator)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(5000)
        better.append(np.sum((found - truth) ** 2) - np.sum((noisy - truth) ** 2))
    assert np.mean(better) < 0
    for candidate in denoisers(size, ordered):
        assert candidate(noisy, sd, 5000.0).sum() == pytest.approx(5000)


def test_rare_categories_outlive_much_noise():
    """Posterior means are closer than projections and thresholds, whose weights are chance where noise is a share of 0.06."""
    generator, truth = np.random.default_rng(0), np.array([280.0, 15.0, 5.0])
    errors = []
    for _ in range(300):
        noisy = truth + generator.normal(0, 18.0, 3)
        found = [denoise_histogram(noisy, 18.0, 300.0, False, generator), project_to_total(noisy, 300.0)]
        errors.append([np.abs(x - truth).sum() for x in (*found, threshold(noisy, 36.0, 300.0))])
    posterior, projected, cut = np.mean(errors, axis=0)
    assert posterior < 0.9 * projected
    assert posterior < 0.9 * cut


GROUPS = np.repeat(np.arange(20), 30)  # twenty groups of thirty categories


def truth():
    generator = np.random.default_rng(0)
    share = np.repeat(generator.dirichlet(np.full(20, 0.5)), 30) * generator.dirichlet(np.full(30, 0.2), 20).ravel()
    return generator.multinomial(20_000, share)


def test_whatever_the_noise_makes_of_a_table_shares_come_out():
    """The budget is spent by then: a root that is not bracketed, as with limits a twentieth as wide, loses the release."""
    g, posterior = np.random.default_rng(3), denoisers(9, ordered=False, noisy=True)[0]
    tables = [(g.normal(0, far, g.integers(2, 101)), sd) for far in (1e-3, 1.0, 1e6) for sd in (0.005, 0.1, 10.0, 1e5)]
    assert all(p.min() >= 0 and p.sum() == pytest.approx(1) for p in (posterior(v, sd, 1) for v, sd in tables))


def test_groups_are_closer_than_sums_of_categories_and_no_category_suffers():
    counts, generator = truth(), np.random.default_rng(1)
    sd = 30.0
    errors = []
    for _ in range(5):
        v = counts + generator.normal(0, sd * np.sqrt(4 / 3), 600)  # a quarter of the budget went to the groups
        g = group_counts(counts, GROUPS) + generator.normal(0, sd * 2, 20)
        plain = denoise_histogram(counts + generator.normal(0, sd, 600), sd, 20_000, False, generator)
        found = grouped_histogram((v, sd * np.sqrt(4 / 3)), (g, sd * 2), GROUPS, 20_000, generator)
        assert found.min() >= 0
        assert found.sum() == pytest.approx(20_000)
        groups = [np.bincount(GROUPS, x) - group_counts(counts, GROUPS) for x in (plain, found)]
        errors.append([np.abs(e).sum() for e in (*groups, plain - counts, found - counts)])
    coarse, grouped, fine, fine_grouped = np.mean(errors, axis=0)
    assert grouped < 0.6 * coarse
    assert fine_grouped < 1.05 * fine


def test_rare_categories_share_a_bin_with_their_group_and_common_ones_are_alone():
    share = np.array([0.3, 0.001, 0.002, 0.2, 0.05, 0.05, 0.0001, 0.0002, 0.3967])
    groups = np.array([0, 0, 0, 1, 1, 1, 2, 3, 4])
    bins = grouped_bins(share, groups, 0.06, 40, np.zeros(9, dtype=int))
    assert bins[1] == bins[2] != bins[0]
    assert bins[4] == bins[5] != bins[3]
    assert bins[1] == bins[6] == bins[7]  # these groups are rare themselves: with all others
    assert sorted(set(bins)) == list(range(bins.max() + 1))
    # What a rule tells apart stays apart.
    split = grouped_bins(share, groups, 0.06, 40, np.array([0, 0, 1, 0, 0, 0, 0, 0, 0]))
    assert split[1] != split[2]
    few = grouped_bins(np.full(600, 1 / 600), GROUPS, 1e-4, 20, np.zeros(600, dtype=int))
    assert few.max() + 1 <= 20
