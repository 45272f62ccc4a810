"""`covey.paper`: the paper's names on arrays, against brute force and against their theorems."""

import numpy as np
import pytest

from covey import paper
from covey.engine.bodies import Ball
from covey.errors import ParameterError
from covey.paper.private import anonymous_centres
from covey.paper.records import boolean_records
from tests.paper.test_covariance_loss import conditional_expectation, in_unit_ball, moment

BITS = (
    np.random.default_rng(0).standard_normal((600, 2)) @ np.random.default_rng(1).standard_normal((2, 6)) > 0
).astype(np.uint8)


def test_every_name_is_there_and_documented():
    assert sorted(paper.__all__) == paper.__all__
    for name in paper.__all__:
        assert getattr(paper, name).__doc__


@pytest.mark.parametrize("degree", [1, 2, 3, 4])
def test_moment_loss_is_the_norm_of_the_tensor(degree):
    generator = np.random.default_rng(degree)
    x, labels = in_unit_ball(generator, 40, 3), np.array(list("abcde"))[generator.integers(0, 5, 40)]
    y = conditional_expectation(x, labels)
    exact = np.linalg.norm(moment(x, degree) - moment(y, degree))
    assert paper.moment_loss(x, labels, degree) == pytest.approx(exact, abs=1e-7)
    assert paper.moment_loss(3 * x, labels, degree, radius=3) == pytest.approx(exact, abs=1e-7)
    if degree == 2:
        assert paper.covariance_loss(x, labels) == pytest.approx(exact)
        assert paper.covariance_loss(3 * x, labels, radius=3) == pytest.approx(exact)


def test_spectral_partition_is_algorithm_1_and_shows_its_parts():
    found = paper.spectral_partition(BITS, 120)
    same = anonymous_centres(boolean_records(BITS), 5)
    assert (found.t, found.alpha) == (same.t, same.alpha)
    assert found.loss == pytest.approx(same.covariance_loss / 6, rel=1e-3)  # (1/√6)² of the records as they are
    assert found.radius == pytest.approx(6**0.5)
    assert np.bincount(found.labels).tolist() == [5] * 120
    assert found.eigenvalues.sum() == pytest.approx(BITS.mean(axis=0).sum() / 6)
    assert found.loss <= found.bound.value


def test_theorem_1_2_moreover_weighted_groups_have_equal_mass():
    generator = np.random.default_rng(8)
    x, weights = in_unit_ball(generator, 400, 3), generator.gamma(0.5, size=400) + 0.01
    found = paper.spectral_partition(x, 12, t=2, alpha=0.3, radius=1.0, weights=weights)
    share = weights / weights.sum()
    assert np.abs(np.bincount(found.labels, share) - 1 / 12).max() <= share.max()
    unweighted = paper.spectral_partition(x, 12, t=2, alpha=0.3, radius=1.0)
    assert np.abs(np.bincount(unweighted.labels, share) - 1 / 12).max() > share.max()


def test_algorithms_1_and_4_in_one_call_make_boolean_rows():
    generator = np.random.default_rng(9)
    skewed = BITS & (generator.random(BITS.shape) < 0.4)
    rows = paper.algorithm_1(skewed.astype(float), 300, 4000, generator)
    assert rows.dtype == np.uint8
    assert rows.shape == (4000, 6)
    assert paper.marginal_error(skewed, rows, 2) < 0.05 < paper.marginal_error(skewed, 1 - rows, 2)
    big = np.tile(skewed, (300, 1))
    private = [paper.algorithm_4(big, 8.0, 3000, seed=s, t=1, alpha=0.5, constants="improved") for s in (1, 1, 2)]
    assert np.array_equal(private[0], private[1])
    assert not np.array_equal(private[0], private[2])
    assert paper.marginal_error(skewed, private[0], 1) < 0.1 < paper.marginal_error(skewed, 1 - private[0], 1)
    fresh = [paper.algorithm_4(BITS, 8.0, 50) for _ in range(2)]
    assert not np.array_equal(*fresh)


def test_what_a_run_measured_bounds_its_loss_and_groups_at_random_break_it():
    generator = np.random.default_rng(4)
    x = generator.standard_normal((6000, 3)) * [1, 1, 0.05]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    found = paper.spectral_partition(x, 300, t=2, alpha=0.2, radius=1.0)
    assert found.loss <= found.bound.value
    assert paper.covariance_loss(x, generator.permutation(found.labels)) > found.bound.value
    cells = paper.spectral_partition(x, 300, t=2, alpha=0.2, radius=1.0, equal=False)
    assert cells.mixed == 0
    assert cells.within <= 0.2**2
    assert (cells.labels == cells.cells).all()
    assert cells.loss <= cells.within + cells.tail


def test_weights_count_as_repeated_records():
    generator = np.random.default_rng(5)
    x, weights = in_unit_ball(generator, 80, 3), generator.integers(1, 6, 80)
    repeated = np.repeat(x, weights, axis=0)
    found = paper.spectral_partition(x, 5, equal=False, t=2, alpha=0.4, radius=1.0, weights=weights)
    again = paper.spectral_partition(repeated, 5, equal=False, t=2, alpha=0.4, radius=1.0)
    assert (np.repeat(found.labels, weights) == again.labels).all()
    assert (found.loss, found.within, found.tail) == pytest.approx((again.loss, again.within, again.tail))
    cloud = paper.microaggregate(x, found.labels, weights=weights)
    np.testing.assert_allclose(cloud.points, paper.microaggregate(repeated, again.labels).points)
    third = paper.moment_loss(x, found.labels, 3, weights=weights)
    assert third == pytest.approx(paper.moment_loss(repeated, again.labels, 3))
    assert third != pytest.approx(paper.moment_loss(x, found.labels, 3), rel=0.01)


def test_a_kernel_groups_what_it_calls_similar():
    """Words by shared letters: no coordinates, and groups of at least three that lose far less than groups at random."""
    words = [a + b for a in ("aaa", "bbb", "ccc", "ddd") for b in ("x", "y", "z", "xy", "yz")]
    letters = [{letter: word.count(letter) for letter in set(word)} for word in words]
    G = np.array([[sum(u[l] * v.get(l, 0) for l in u) for v in letters] for u in letters], dtype=float)
    found = paper.gram_partition(G, 5)
    assert np.bincount(found.labels).tolist() == [5] * 4
    assert len({(word[0], label) for word, label in zip(words, found.labels, strict=True)}) == 4
    np.testing.assert_allclose(np.diag(found.centres)[0], G[found.labels == 0][:, found.labels == 0].mean())
    scrambled = np.random.default_rng(0).permutation(found.labels)
    coordinates = np.linalg.cholesky(G + 1e-9 * np.eye(20))
    assert found.loss == pytest.approx(paper.covariance_loss(coordinates, found.labels), abs=1e-6)
    assert found.loss < 0.5 * paper.covariance_loss(coordinates, scrambled)
    assert paper.gram_partition(np.zeros((4, 4)), 2).loss == 0


def test_pvec_proj_and_damped_means_are_the_papers():
    generator = np.random.default_rng(6)
    A = np.diag([500.0, 300.0, 0.0])
    assert paper.pvec(A, generator).shape == (3,)
    assert abs(paper.pvec(A, generator, 500)[:, 0]).mean() > 0.9
    V = paper.proj(A, 2, generator)
    np.testing.assert_allclose(V.T @ V, np.eye(2), atol=1e-12)
    assert np.linalg.norm(V[2]) < 0.4
    x = np.array([[1.0], [1.0], [1.0]])
    assert paper.damped_means(x, [0, 0, 7], 2.0).ravel().tolist() == [1.0, 0.5]


def test_private_measure_is_algorithm_4_and_lies_in_the_body():
    measure = paper.private_measure(BITS, 2.0, seed=3, t=1, alpha=0.5, constants="improved")
    assert measure.weights.sum() == pytest.approx(1)
    assert measure.points.shape == (len(measure.weights), 6)
    assert 0 <= measure.points.min() <= measure.points.max() <= 1
    assert np.linalg.norm(measure.directions) == pytest.approx(1, abs=1e-3)
    assert sum(c.amount for c in measure.parameters.charges) == 2
    assert measure.sample(9, np.random.default_rng(0)).shape == (9, 6)
    x = in_unit_ball(np.random.default_rng(7), 200, 2)
    ball = paper.private_measure(x, 1.0, Ball(2), seed=1)
    assert np.linalg.norm(ball.points, axis=1).max() <= 1 + 1e-9
    unseeded = [paper.private_measure(x, 1.0, Ball(2)).points for _ in range(2)]
    assert not np.array_equal(*unseeded)


def test_separated_subset_is_separated():
    x = paper.separated_subset(20, 60, np.random.default_rng(1))
    distance = np.linalg.norm(x[:, None] - x[None], axis=2)[np.triu_indices(20, 1)]
    assert distance.min() > 0.5
    assert np.linalg.norm(x, axis=1).max() <= 1


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: paper.covariance_loss(BITS, [0, 1]),
        lambda: paper.covariance_loss(np.full((2, 2), np.nan), [0, 1]),
        lambda: paper.moment_loss(BITS, np.zeros(600), 0),
        lambda: paper.spectral_partition(BITS, 0),
        lambda: paper.spectral_partition(BITS, 601),
        lambda: paper.spectral_partition(BITS, 9, alpha=-1.0),
        lambda: paper.damped_means(BITS, np.zeros(600), 0.0),
        lambda: paper.proj(np.eye(2), 3, np.random.default_rng(0)),
        lambda: paper.gram_partition(np.eye(3), 4),
        lambda: paper.private_measure(2 * BITS, 1.0),
        lambda: paper.algorithm_1(2 * BITS, 9, 10, np.random.default_rng(0)),
        lambda: paper.algorithm_4(2 * BITS, 1.0, 10),
        lambda: paper.algorithm_4(BITS, 1.0, 0),
        lambda: paper.private_measure(BITS, -1.0),
        lambda: paper.private_measure(BITS, 1.0, Ball(5)),
        lambda: paper.separated_subset(20, 40, np.random.default_rng(0)),
    ],
)
def test_impossible_questions_are_refused(wrong):
    with pytest.raises(ParameterError):
        wrong()


def test_means_of_groups_are_known_by_inner_products():
    """Remark 1.5: the groups' means from a Gram matrix are those of the records, weighted or not."""
    generator = np.random.default_rng(3)
    X, labels, weights = generator.random((40, 3)), np.arange(40) % 7, 1 + generator.random(40)
    for w in (None, weights):
        plain, found = paper.microaggregate(X, labels, weights=w), paper.gram_microaggregate(X @ X.T, labels, weights=w)
        assert np.allclose(found.centres, plain.points @ plain.points.T)
        assert np.allclose(found.weights, plain.weights)
        assert np.isclose(found.loss, paper.covariance_loss(X, labels, weights=w))
    assert not np.allclose(found.centres, paper.gram_microaggregate(X @ X.T, labels).centres)  # weights matter
