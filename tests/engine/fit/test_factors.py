"""The logistic factor model: its points, its fit and its prior."""

from dataclasses import replace

import numpy as np
import pytest

from covey.engine.arrays import hollow
from covey.engine.codes.counts import Coding
from covey.engine.fit.devices import DOUBLE
from covey.engine.fit.factors import (
    Candidates,
    Factors,
    Prior,
    atomic_bayes,
    beyond_edge,
    denoise,
    estimate_prior,
    fit_factors,
    latent_points,
    mean_weight,
    rotation_invariant,
    stack_weights,
    stacked,
    thinned,
    with_atoms,
    without_cut,
)
from covey.engine.fit.shrinkage import empirical_bayes
from covey.engine.fit.targets import DensePairs, DenseTarget, NoisyMoments, moment_term, total
from covey.engine.fit.wide import LowRankTarget, core
from tests.engine.fit.examples import noisy_table, quiet


def test_latent_points_are_exactly_white():
    g = latent_points(40, 5, np.random.default_rng(6))
    np.testing.assert_allclose(g.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(g.T @ g / 40, np.eye(5), atol=1e-10)


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


def seeing(found, noisy):
    """What was denoised, beside other noisy moments."""
    return replace(found, pairs=replace(found.pairs, noisy=noisy))


def goe(p, sd, seed=0):
    """Symmetric Gaussian noise without a diagonal."""
    w = np.triu(np.random.default_rng(seed).normal(0, sd, (p, p)), 1)
    return w + w.T


def exclusive(n=4000, p=36, group=6, sd=0.006, seed=0):
    """Noisy moments of groups of exclusive columns that one latent number ties together, and the true rows."""
    g = np.random.default_rng(seed)
    level = g.standard_normal((n, 1, 1)) * g.normal(0, 1, (1, p // group, group))
    chosen = (g.gumbel(size=(n, p // group, group)) + level).argmax(axis=2)
    X = np.zeros((n, p // group, group), np.uint8)
    np.put_along_axis(X, chosen[:, :, None], 1, axis=2)
    X = X.reshape(n, p)
    u = X - 0.5
    pair = hollow(u.T @ u / n) + goe(p, sd, seed + 1)
    return NoisyMoments(Coding.half(p), u.mean(axis=0) + g.normal(0, sd, p), sd, pair, sd), X


def correlation_of_halves(noisy, halves):
    index = np.triu_indices(len(noisy.mean), 1)
    one, other = (half.pair[index] for half in halves)
    return np.corrcoef(one, other)[0, 1]


def test_halves_are_independent_and_add_up_to_the_measurement():
    p = 60
    noise = NoisyMoments(Coding.half(p), 0.02 * np.random.default_rng(3).standard_normal(p), 0.02, goe(p, 0.01), 0.01)
    for one, other in thinned(noise, np.random.default_rng(4)):
        np.testing.assert_allclose(one.pair + other.pair, 2 * noise.pair, atol=1e-15)
        np.testing.assert_allclose(one.mean + other.mean, 2 * noise.mean, atol=1e-15)
        assert abs(correlation_of_halves(noise, (one, other))) < 4 / np.sqrt(p * (p - 1) / 2)
        assert one.pair_sd == pytest.approx(np.sqrt(2) * 0.01)
        assert one.mean_sd == pytest.approx(np.sqrt(2) * 0.02)
    # Half of the noise, as a wrong program would add, leaves the halves dependent.
    wrong = next(thinned(replace(noise, pair_sd=0.005), np.random.default_rng(4)))
    assert correlation_of_halves(noise, wrong) > 0.3


def test_eigenvalues_are_shrunk_to_what_a_low_rank_signal_has():
    p, sd = 120, 0.05
    v = np.linalg.qr(np.random.default_rng(5).standard_normal((p, 3)))[0]
    signal = (v * [4.0, 3.0, 2.0]) @ v.T
    noisy = hollow(signal + goe(p, sd), np.diag(signal))

    def error(x):
        return np.linalg.norm(hollow(x - signal))

    assert error(rotation_invariant(noisy, sd)) < 0.45 * error(noisy)
    assert error(rotation_invariant(noisy, sd)) < 0.9 * error(rotation_invariant(noisy, sd / 4))
    np.testing.assert_allclose(rotation_invariant(signal, 1e-9), signal, atol=1e-6)
    assert error(beyond_edge(hollow(noisy), sd)) < 0.45 * error(noisy)
    assert np.abs(beyond_edge(goe(p, sd, 9), sd)).max() == pytest.approx(0, abs=sd / 2)


def test_means_are_freed_where_factors_bend_them_and_kept_where_they_do_not():
    noisy, _ = noisy_table(n=4000, p=40, sd=0.01)
    found = denoise(DensePairs.of(noisy, np.random.default_rng(6)), 60, 4, quiet)
    near = found.factors.centres.mean(axis=0) - noisy.coding.middle
    bent = near + np.random.default_rng(7).normal(0, 0.05, 40)
    weights = []
    for truth in (near, bent):
        again = replace(noisy, mean=truth + np.random.default_rng(8).normal(0, 0.01, 40))
        views = [(seeing(found, a), b) for a, b in thinned(again, np.random.default_rng(9))]
        weights.append(mean_weight(views))
    assert weights[0] < 0.3
    assert weights[1] > 0.8


def test_the_candidate_that_agrees_with_the_other_half_gets_the_weight():
    noisy, _ = exclusive()
    found = denoise(DensePairs.of(noisy, np.random.default_rng(6)), 60, 4, quiet)
    one, other = next(thinned(noisy, np.random.default_rng(1)))
    candidates = Candidates.of(seeing(found, one), 0.5)
    for which in range(len(candidates.steps)):
        goal = candidates.shares[0] + candidates.steps[which]
        exact = replace(other, pair=one.pair + hollow(_matrix(goal - candidates.seen, 36)))
        weights = stack_weights([(seeing(found, one), exact)], 0.5)
        assert weights.argmax() == which
        assert weights[which] > 0.9
        assert weights.min() >= 0
        assert weights.sum() <= 1 + 1e-9


def _matrix(values, p):
    out = np.zeros((p, p))
    out[np.triu_indices(p, 1)] = values
    return out + out.T


def test_the_true_rows_follow_the_stack_better_than_the_target_before_it():
    noisy, X = exclusive()
    found = denoise(DensePairs.of(noisy, np.random.default_rng(6)), 100, 4, quiet)
    after = stacked(found, np.random.default_rng(7), quiet)
    rows = X.astype(np.float32)
    assert after.fine(rows)[0] < 0.85 * found.fine(rows)[0]
    assert after.factors is found.factors
    assert after.raw is found.raw
    # Under matrix noise the base of the stack, which knows of exclusive columns, is followed alone.
    atoms = with_atoms(found)
    assert atoms.fine(rows)[0] < 0.9 * found.fine(rows)[0]
    assert atoms.factors is found.factors


def test_cutting_is_taken_out_of_moments_as_far_as_factors_explain_them():
    noisy, X = noisy_table(n=6000, p=40, sd=1e-4, clips=True)
    found = denoise(DensePairs.of(noisy, np.random.default_rng(6)), 100, 4, quiet)
    plain = without_cut(noisy, found.factors.centres, np.random.default_rng(8))
    u = X - noisy.coding.middle
    true = hollow(u.T @ u / len(X))
    assert not plain.coding.clips
    assert noisy.coding.clips
    assert np.abs(plain.pair - true).mean() < 0.75 * np.abs(noisy.pair - true).mean()
    same, _ = noisy_table(n=500, p=10)
    assert without_cut(same, found.factors.centres[:, :10], np.random.default_rng(8)) is same


def exclusive_table(p=60, group=6, sd=0.004, seed=0):
    """Joint shares of groups of columns that exclude each other, independent otherwise, and what noise leaves of them."""
    g = np.random.default_rng(seed)
    m = g.dirichlet(np.ones(group), p // group).ravel()
    joint = np.outer(m, m)
    kind = np.arange(p) // group
    joint[kind[:, None] == kind] = 0
    joint[0, 6] = joint[6, 0] = min(m[0], m[6])  # one implies the other
    index = np.triu_indices(p, 1)
    seen = joint[index] + sd * g.standard_normal(len(index[0]))
    return m, joint[index], np.outer(m, m)[index], seen


def test_exclusive_and_implied_columns_are_found_without_being_told():
    sd = 0.004
    m, joint, model, seen = exclusive_table(sd=sd)
    found = atomic_bayes(seen, model, sd, m, 1e-4)
    without_atoms = model + empirical_bayes(seen - model, sd)[0]

    def error(x):
        return np.sqrt(np.mean((x - joint) ** 2))

    assert error(without_atoms) < error(seen)
    assert error(found) < 0.75 * error(without_atoms)
    apart = (joint == 0) & (model > 4 * sd)
    assert apart.sum() > 20
    assert np.mean(np.abs(found[apart]) < sd / 100) > 0.8
