"""Atoms at the Fréchet bounds find columns that exclude or imply each other, and leave other pairs alone."""

import numpy as np
import pytest

from covey.core.arrays import pair_index
from covey.core.fit.shrinkage import empirical_bayes
from covey.core.fit.stack import Bounds, atomic_bayes


def test_bounds_are_frechets_and_the_lower_one_is_certain_where_it_is_zero():
    m = np.array([0.2, 0.5, 0.9])
    bounds = Bounds.of(m, 0.01)
    assert bounds.low[0, 1] == 0
    assert bounds.low[1, 2] == pytest.approx(0.4)
    assert bounds.high[0, 2] == 0.2
    assert bounds.high[1, 2] == 0.5
    certain, sum_of_two, _ = bounds.low_sd[[0, 2, 1]]
    assert certain < 0.001 < sum_of_two == pytest.approx(0.01 * np.sqrt(2))
    assert np.array_equal(bounds.clip(np.full((3, 3), 2.0)), bounds.high)


def exclusive_table(p=60, group=6, sd=0.004, seed=0):
    """Joint shares of groups of columns that exclude each other, independent otherwise, and what noise leaves of them."""
    g = np.random.default_rng(seed)
    m = g.dirichlet(np.ones(group), p // group).ravel()
    joint = np.outer(m, m)
    kind = np.arange(p) // group
    joint[kind[:, None] == kind] = 0
    joint[0, 6] = joint[6, 0] = min(m[0], m[6])  # one implies the other
    index = pair_index(p)
    seen = joint[index] + sd * g.standard_normal(len(index[0]))
    return m, joint[index], np.outer(m, m)[index], seen


def test_exclusive_and_implied_columns_are_found_without_being_told():
    sd = 0.004
    m, joint, model, seen = exclusive_table(sd=sd)
    found = atomic_bayes(seen, model, Bounds.of(m, 1e-4), sd)
    without_atoms = model + empirical_bayes(seen - model, sd)[0]

    def error(x):
        return np.sqrt(np.mean((x - joint) ** 2))

    assert error(without_atoms) < error(seen)
    assert error(found) < 0.75 * error(without_atoms)
    apart = (joint == 0) & (model > 4 * sd)
    assert apart.sum() > 20
    assert np.mean(np.abs(found[apart]) < sd / 100) > 0.8


def test_where_the_model_is_right_noise_is_shrunk_away():
    g = np.random.default_rng(1)
    m = g.uniform(0.2, 0.8, 40)
    model = np.outer(m, m)[pair_index(40)]
    seen = model + 0.01 * g.standard_normal(len(model))
    found = atomic_bayes(seen, model, Bounds.of(m, 0.001), 0.01)
    assert np.sqrt(np.mean((found - model) ** 2)) < 0.2 * 0.01
