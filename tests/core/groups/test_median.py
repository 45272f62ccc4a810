"""docs/proofs/tree.md: what median cuts along principal directions are sure to gain, and cuts that do not gain it."""

from itertools import pairwise

import numpy as np
import pytest

from covey.core.groups import tree as groups
from covey.core.groups.tree import median_tree
from covey.core.tables.marginals import covariance_loss
from covey.errors import ParameterError
from covey.privacy import bounds
from tests.core.tables.test_covariance_loss import conditional_expectation


def inner(x, labels):
    """E(X − Y)(X − Y)ᵀ, the covariance that is left inside the groups."""
    away = x - conditional_expectation(x, labels)
    return away.T @ away / len(x)


def rows_of(kind, generator, n=512, p=4):
    if kind == "far corners":  # rare and far: a median cut gains least
        x = 0.02 * generator.standard_normal((n, p))
        far = generator.random(n) < 0.1
        x[far] = np.eye(p)[generator.integers(0, p, far.sum())] * generator.choice([-1, 1], (far.sum(), 1))
    elif kind == "bits":
        x = generator.integers(0, 2, (n, p)) / np.sqrt(p)
    else:
        x = generator.standard_normal((n, p)) * generator.random(p)
    return x / max(1.0, np.linalg.norm(x, axis=1).max())


def each_level_gains(x, levels):
    """The inequality of the proof at every level: the trace falls by at least λ₁²/4."""
    W = [inner(x, median_tree(x, level)) for level in range(levels + 1)]
    return all(
        before.trace() - after.trace() >= np.linalg.eigvalsh(before)[-1] ** 2 / 4 - 1e-12
        for before, after in pairwise(W)
    )


@pytest.mark.parametrize("kind", ["far corners", "bits", "cloud"])
def test_each_level_gains_what_the_proof_says_and_the_loss_keeps_its_bound(kind):
    x = rows_of(kind, np.random.default_rng(1))
    assert each_level_gains(x, 6)
    for levels in (1, 3, 6):
        labels = median_tree(x, levels)
        assert np.bincount(labels).tolist() == [len(x) >> levels] * (1 << levels)
        assert covariance_loss(x, labels) <= bounds.median_tree(1 << levels).value


def random_halves(rows, node):
    order = np.random.default_rng(len(node)).permutation(node)
    return order[: len(node) // 2], order[len(node) // 2 :]


def last_direction(rows, node):
    away = rows[node] - rows[node].mean(axis=0)
    order = node[np.argsort(away @ np.linalg.eigh(away.T @ away)[1][:, 0], kind="stable")]
    return order[: len(node) // 2], order[len(node) // 2 :]


@pytest.mark.parametrize("wrong", [random_halves, last_direction])
def test_other_cuts_do_not_gain_it(wrong, monkeypatch):
    monkeypatch.setattr(groups, "_median_halves", wrong)
    x = np.repeat([[0.9, 0.0], [-0.9, 0.0]], 256, axis=0) + [0, 1e-3] * np.random.default_rng(2).standard_normal(
        (512, 2)
    )
    x = np.random.default_rng(3).permutation(x)
    assert not each_level_gains(x, 3)
    assert covariance_loss(x, median_tree(x, 3)) > bounds.median_tree(8).value


def test_two_opposite_points_are_as_bad_as_a_first_cut_can_be():
    x = np.array([[1.0], [-1.0]])
    assert covariance_loss(x, median_tree(x, 0)) == pytest.approx(1)
    assert covariance_loss(x, median_tree(x, 1)) < 1e-15


@pytest.mark.parametrize("levels", [-1, 4])
def test_impossible_levels_are_refused(levels):
    with pytest.raises(ParameterError, match="levels"):
        median_tree(np.zeros((10, 2)), levels)
