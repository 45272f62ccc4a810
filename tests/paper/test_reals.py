"""`regain` for real records in convex bodies: points in K always, accuracy, public choices, what is refused."""

import copy
import pickle
import warnings
from fractions import Fraction

import numpy as np
import pytest

import covey
from benchmarks.bodies import errors, noisy_gaussian
from covey.engine.bodies import Ball, Box, HalfSpace, Intersection, Polytope, ProductOfSimplices, Simplex
from covey.engine.budget import budget_for
from covey.engine.codes.counts import moments
from covey.engine.codes.distance import moment_distances
from covey.engine.points import WeightedPoints
from covey.errors import CoveyWarning, InputError, ParameterError
from covey.paper.reals import margin_rounds, pair_noise, plan_reals
from examples.numeric_records import households
from tests.engine.test_bodies import BOXED

SHARES = Polytope(np.ones((1, 4)), np.ones(1), within=Box([0] * 4, [1] * 4))


def fitted(X, body, epsilon=1.0, delta=0.0, seed=1, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CoveyWarning)
        return covey.PrivateSynthesizer(epsilon, delta, body=body, seed=seed, **options).fit(X)


@pytest.mark.parametrize("name", BOXED)
def test_all_points_lie_in_the_body_whatever_is_measured(name):
    """Much noise and none to speak of, both laws; many records lie outside."""
    body = BOXED[name]
    X = np.random.default_rng(0).standard_normal((120, 3))
    for epsilon, delta in (
        ((0.05, 0.0), (3.0, 1e-4)) if name == "polytope" else ((0.05, 0.0), (3.0, 0.0), (3.0, 1e-4), (200.0, 0.0))
    ):
        synth = fitted(X, body, epsilon, delta)
        for Z in (synth.sample(200), synth.centres.points):
            np.testing.assert_allclose(body.project(Z), Z, atol=1e-8)
        assert synth.certificate is not None
        assert synth.privacy.spent <= synth._budget.amount


def test_plans_follow_from_public_numbers_and_fall_back():
    """Pairs where they are more than noise, in the scale of margins where these are clear; then margins, then means alone."""
    budget = budget_for(1, 0, 1)
    said = {(5000, 4): "full", (1000, 4): "box", (20_000, 100): "margins", (178, 13): "means", (5000, 1): "full"}
    said[9, 1] = "box"
    plans = {size: plan_reals(*size, budget) for size in said}
    assert {size: plan.mechanism for size, plan in plans.items()} == said
    assert all(sum(plan.shares.values()) == 1 for plan in plans.values())
    rounds = [margin_rounds(n, 4, budget) for n in (100, 1000, 5000, 100_000)]
    assert rounds == sorted(rounds)
    assert (rounds[0], rounds[-1]) == (0, 3)
    for law in (budget, budget_for(1, 1e-9, 1)):
        assert pair_noise(2000, 5, 5.0, law) == pytest.approx(pair_noise(1000, 5, 5.0, law) / 2)


@pytest.mark.parametrize(("delta", "most"), [(0.0, 0.1), (1e-9, 0.1)])
def test_household_budgets_are_worth_having(delta, most):
    """ε = 1 and 5,000 rows. The paper's method has means off by 0.3 and no covariance, a noisy Gaussian two to four times
    the error of the covariance."""
    X = households(5000)
    found = np.median(
        [errors(X, fitted(X, SHARES, 1.0, delta, seed).sample(5000), SHARES) for seed in range(3)], axis=0
    )
    generator = np.random.default_rng(0)
    other = np.median([errors(X, noisy_gaussian(X, SHARES, 1.0, generator), SHARES) for _ in range(3)], axis=0)
    means, covariance, _, kolmogorov, _ = found
    assert means < 0.003
    assert covariance < most
    assert kolmogorov < 0.09
    assert covariance < 0.6 * other[1]
    paper = errors(X, fitted(X, SHARES, method="paper").sample(5000), SHARES)
    assert paper[0] > 20 * means
    assert paper[1] > 5 * covariance


def test_zeros_and_flags_stay_zeros_and_flags():
    """Half of a column at its lower bound, and a column of 0 and 1: smeared over their steps they would be nowhere."""
    generator = np.random.default_rng(3)
    X = np.column_stack(
        [np.maximum(generator.normal(0, 0.2, 8000), 0), generator.random(8000) < 0.3, generator.random(8000)]
    )
    Z = fitted(X, Box([0] * 3, [1] * 3), 2.0).sample(8000)
    assert (Z[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.05)
    assert np.isin(Z[:, 1], (0, 1)).mean() > 0.95
    assert Z[:, 1].mean() == pytest.approx(0.3, abs=0.02)


def test_the_certificate_bounds_the_true_distance():
    """Nineteen of twenty times and more; without its noise's quantile it would fail about half the time."""
    X = households(1000)
    missed = tight = 0
    for seed in range(7):
        synth = fitted(X, SHARES, 1.0, seed=seed)
        cloud = synth.centres
        inside = WeightedPoints(cloud.weights, synth._grid.scaled(cloud.points))
        true = max(moment_distances(moments(synth._grid.scaled(X)), inside).values())
        missed += true > synth.certificate.bound[2]
        tight += true > synth.certificate.estimate[2]
        bounds = synth.certify(synth.sample(1000))
        assert bounds[1] >= synth.certificate.bound[1]
    assert missed <= 1 < tight
    assert "products of two columns" in synth.certificate.sentence
    assert "means of columns" in fitted(X[:, :1], Box([0], [1])).certificate.sentence


def test_fitted_synthesizers_are_copied_and_stored():
    X = households(400)
    for body in (SHARES, Ball(4), Intersection(Box([0] * 4, [1] * 4), HalfSpace([1] * 4, 1))):
        synth = fitted(X, body, 5.0)
        for other in (pickle.loads(pickle.dumps(synth)), copy.deepcopy(synth), copy.copy(synth)):
            assert (other.centres.points == synth.centres.points).all()
            again = other.fit(X).sample(20)
            np.testing.assert_allclose(body.project(again), again, atol=1e-6)


def test_one_hot_integers_come_back_as_such():
    generator = np.random.default_rng(2)
    a = generator.integers(0, 3, 3000)
    b = np.where(generator.random(3000) < 0.9, a % 2, 1 - a % 2)
    X = np.hstack([np.eye(3, dtype=np.int8)[a], np.eye(2, dtype=np.int8)[b]])
    Z = fitted(X, ProductOfSimplices([3, 2]), 3.0).sample(3000)
    assert Z.dtype == X.dtype
    assert (Z[:, :3].sum(axis=1) == 1).all()
    assert (Z[:, 3:].sum(axis=1) == 1).all()
    true, made = ((T[:, 0] * T[:, 3]).mean() for T in (X, Z))
    assert abs(true - made) < 0.05 < abs(X[:, 0].mean() * X[:, 3].mean() - true)


def test_tables_that_do_not_fit_are_refused_and_noise_is_announced():
    synth = covey.PrivateSynthesizer(1.0, body=Ball(2), seed=0)
    with pytest.raises(InputError, match="columns"):
        synth.fit(np.zeros((5, 3)))
    with pytest.warns(CoveyWarning, match="one by one"):
        synth.fit(np.full((5, 2), np.finfo(np.longdouble).max))  # wider than covey's floats, and no warning says so
    with pytest.raises(ParameterError, match="too large"):
        plan_reals(10**12, 3, budget_for(1, 0, 1))
    assert margin_rounds(10, 3, budget_for(Fraction(1), 0, 1)) == 0
    with pytest.raises(ParameterError, match="rule body"):  # a body alone makes no bundle
        synth.release(10)


def test_more_rows_than_points_do_not_repeat_and_lie_in_the_body(few_steps):
    X = np.random.default_rng(1).dirichlet([2, 3, 4], 3000)
    fitted = covey.PrivateSynthesizer(1.0, body=Simplex(3), seed=3).fit(X)
    rows = fitted.sample(9000)
    assert len(np.unique(rows, axis=0)) > 8900 > len(fitted.centres)  # drawing points alone would repeat 4,096
    assert np.allclose(rows.sum(axis=1), 1)
    assert rows.min() >= 0
    assert np.abs(rows.mean(0) - fitted.centres.points.mean(0)).max() < 0.002
    assert np.abs(np.cov(rows.T) - np.cov(fitted.centres.points.T)).max() < 0.002
