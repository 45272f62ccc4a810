"""Anonymous synthesizers: every way of grouping, k-anonymity by an outside judge, and what stays with the steward."""

import numpy as np
import pandas as pd
import pytest
from pycanon import anonymity

import covey
from covey.core.paper.bodies import Box
from covey.demo import example_patients
from covey.errors import ParameterError
from covey.methods.groups import Likeness, group_centres
from covey.methods.records import boolean_records, plain_records

NAMES, PATIENTS = example_patients(2000)


@pytest.mark.parametrize("method", ["tree", "paper", "mdav", "best"])
@pytest.mark.parametrize("r", [5, 20])
def test_centres_are_k_anonymous_by_an_outside_judge(method, r):
    """Each record replaced by its group's centre: pycanon, which nobody here wrote, counts indistinguishable rows."""
    X = PATIENTS[:600, :8]
    result = group_centres(boolean_records(X), covey.bodies.Cube(8), r, method)
    table = pd.DataFrame(result.cloud.points[result.groups].round(12), columns=NAMES[:8])
    assert anonymity.k_anonymity(table, list(table.columns)) >= r
    raw = pd.DataFrame(X, columns=NAMES[:8])
    assert anonymity.k_anonymity(raw, list(raw.columns)) < r  # the judge can say no


def test_the_tree_is_the_default_and_far_more_accurate():
    tree, paper = (covey.AnonymousSynthesizer(20, method=m, seed=1).fit(PATIENTS) for m in ("tree", "paper"))
    assert covey.AnonymousSynthesizer(20).method == "tree"
    assert tree.covariance_loss < 0.9 * paper.covariance_loss
    errors = [covey.marginal_error(PATIENTS, s.sample(2000), 2) for s in (tree, paper)]
    assert errors[0] < 0.7 * errors[1]


def test_the_better_of_tree_and_lattice_never_loses_to_the_lattice():
    generator = np.random.default_rng(0)
    for X in (
        PATIENTS[:500],
        generator.integers(0, 2, (300, 4)),
        np.eye(30, dtype=int)[generator.integers(0, 30, 400)],
    ):
        best, paper = (covey.AnonymousSynthesizer(4, method=m).fit(X) for m in ("best", "paper"))
        assert best.covariance_loss <= paper.covariance_loss


def test_numbers_keep_their_averages_and_are_compared_on_public_ranges():
    generator = np.random.default_rng(1)
    body = Box([0, 0], [1, 1e6])
    X = np.column_stack([generator.random(400), generator.random(400) * 1e6])
    synth = covey.AnonymousSynthesizer(10, body=body, seed=2).fit(X)
    Z = synth.sample(400)
    np.testing.assert_allclose(Z.mean(axis=0), X.mean(axis=0), rtol=1e-3)
    # Without scaling the second column alone would decide, and the first would be averaged away.
    assert Z[:, 0].std() > 0.8 * X[:, 0].std()


@pytest.mark.parametrize("n", [2, 3, 5, 41])
def test_small_tables(n):
    Z = covey.AnonymousSynthesizer(2).fit(PATIENTS[:n]).sample(10)
    assert Z.shape == (10, 24)


def test_homogeneity_is_counted_for_the_steward_and_not_released():
    X = np.zeros((100, 3), dtype=np.uint8)
    X[:50, 0] = 1
    X[::2, 2] = 1
    synth = covey.AnonymousSynthesizer(10).fit(X)
    assert synth.homogeneity()[1] == synth.groups
    assert synth.homogeneity()[0] >= synth.groups - 2
    assert "homogeneity" not in repr(synth)


@pytest.mark.parametrize("method", ["tree", "paper", "mdav"])
def test_categories_by_domain(method):
    generator = np.random.default_rng(3)
    sizes = [4, 2, 7]
    latent = generator.integers(0, 2, 500)
    X = np.column_stack([(latent * (c // 2) + generator.integers(0, max(1, c // 2), 500)) for c in sizes]).astype(
        np.int16
    )
    synth = covey.AnonymousSynthesizer(10, domain=sizes, method=method, seed=1).fit(X)
    Z = synth.sample(600)
    assert Z.shape == (600, 3)
    assert Z.dtype == np.int16
    assert (np.array(sizes) > Z).all()
    for a, c in enumerate(sizes):
        shares = [np.bincount(t[:, a], minlength=c) / len(t) for t in (X, Z)]
        assert np.abs(shares[0] - shares[1]).max() < 0.06
    assert set(synth.homogeneity()) == {0, 1, 2}
    with pytest.raises(ParameterError, match="only one"):
        covey.AnonymousSynthesizer(10, domain=sizes, body=Box([0], [1]))


def test_an_unknown_method_is_refused():
    with pytest.raises(ParameterError, match="method"):
        covey.AnonymousSynthesizer(5, method="magic")


def test_weights_count_in_means_and_not_in_sizes():
    generator = np.random.default_rng(5)
    X = generator.random((300, 3)) * [1, 10, 100]
    weights = 1 + 4 * X[:, 0]  # the likes of the first column count for more
    K = Box([0] * 3, [1, 10, 100])
    found = covey.AnonymousSynthesizer(10, body=K, seed=1).fit(X, weights=weights)
    cloud = found.centres
    assert np.allclose(cloud.weights @ cloud.points, np.average(X, axis=0, weights=weights))
    assert np.abs(found.sample(3000).mean(0) - np.average(X, axis=0, weights=weights))[0] < 0.01
    plain = covey.AnonymousSynthesizer(10, body=K, seed=1).fit(X)
    assert plain.groups == found.groups
    gap = plain.centres.weights @ plain.centres.points - np.average(X, axis=0, weights=weights)
    assert abs(gap[0]) > 0.05  # without weights the mean is another one


def test_no_record_may_be_most_of_its_group():
    X = np.random.default_rng(6).random((60, 2))
    weights = np.ones(60)
    weights[7] = 1000
    with pytest.raises(ParameterError, match="more than half"):
        covey.AnonymousSynthesizer(5, body=Box([0, 0], [1, 1])).fit(X, weights=weights)


def test_records_that_are_alike_by_a_kernel_are_grouped():
    """Points on two circles: alike are those on one circle, which no straight cut finds, but a kernel of lengths does."""
    generator = np.random.default_rng(7)
    angle, outer = generator.random(200) * 2 * np.pi, np.arange(200) % 2
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * (1 + 2 * outer)[:, None]
    length = np.linalg.norm(X, axis=1)
    K = Box([-3, -3], [3, 3])
    by_kernel = group_centres(*_records(X, K), 10, "tree", Likeness(gram=np.outer(length, length))).groups
    by_columns = group_centres(*_records(X, K), 10, "tree").groups
    mixed = [sum(len(set(outer[g == j])) > 1 for j in set(g)) for g in (by_kernel, by_columns)]
    assert mixed[0] == 0 < mixed[1]


def _records(X, K):
    return plain_records(X, K), K


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weights": np.ones(59)}, "60 positive numbers"),
        ({"weights": -np.ones(60)}, "positive"),
        ({"gram": np.eye(59)}, "each of 60"),
        ({"gram": -np.eye(60)}, "semidefinite"),
    ],
)
def test_wrong_weights_and_gram_matrices_are_refused(given, words):
    X = np.random.default_rng(8).random((60, 2))
    with pytest.raises(ParameterError, match=words):
        covey.AnonymousSynthesizer(5, body=Box([0, 0], [1, 1])).fit(X, **given)
    with pytest.raises(ParameterError, match="method 'tree'"):
        covey.AnonymousSynthesizer(5, method="mdav", body=Box([0, 0], [1, 1])).fit(X, weights=np.ones(60))
