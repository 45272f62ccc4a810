"""Remark 1.5: inner products are enough; and records with weights."""

import numpy as np
import pytest

from covey.core.paper import blocks
from covey.core.tables import distance as marginals
from covey.errors import ParameterError

GENERATOR = np.random.default_rng(1)
X = GENERATOR.standard_normal((60, 4)) * [2, 1, 0.5, 0.1]
LABELS = GENERATOR.integers(0, 7, 60)
WEIGHTS = GENERATOR.gamma(0.7, 1, 60) + 0.01


def test_coordinates_have_the_inner_products_and_the_spectrum():
    Z = blocks.coordinates(X @ X.T)
    assert Z.shape == (60, 4)
    np.testing.assert_allclose(Z @ Z.T, X @ X.T, atol=1e-10)
    np.testing.assert_allclose(np.diag(Z.T @ Z), np.sort(np.linalg.eigvalsh(X.T @ X))[::-1])


@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_the_loss_from_inner_products_is_the_loss(weights):
    probability = blocks.shares(60, weights)
    loss = blocks.covariance_loss(X, LABELS, probability)
    assert blocks.gram_covariance_loss(X @ X.T, LABELS, probability) == pytest.approx(loss)
    if weights is None:
        assert loss == pytest.approx(marginals.covariance_loss(X, LABELS))
    else:  # ignoring the weights is another number
        assert abs(blocks.gram_covariance_loss(X @ X.T, LABELS, blocks.shares(60, None)) / loss - 1) > 0.05


def test_integer_weights_are_repeated_records():
    weights = GENERATOR.integers(1, 5, 60)
    probability = blocks.shares(60, weights)
    repeated, labels = np.repeat(X, weights, axis=0), np.repeat(LABELS, weights)
    assert blocks.covariance_loss(X, LABELS, probability) == pytest.approx(marginals.covariance_loss(repeated, labels))
    means = blocks.group_means(X, LABELS, probability)
    np.testing.assert_allclose(means.weights @ means.points, repeated.mean(axis=0))
    np.testing.assert_allclose(means.points[3], repeated[labels == 3].mean(axis=0))
    np.testing.assert_allclose(blocks.averaging(LABELS, probability) @ X, means.points)


@pytest.mark.parametrize(
    ("G", "words"),
    [
        (np.zeros((2, 3)), "square"),
        (np.full((2, 2), np.nan), "finite"),
        (np.array([[1.0, 0.5], [0.0, 1.0]]), "symmetric"),
        (np.array([[1.0, 2.0], [2.0, 1.0]]), "positive semidefinite"),
    ],
)
def test_what_is_no_gram_matrix_is_refused(G, words):
    with pytest.raises(ParameterError, match=words):
        blocks.coordinates(G)


@pytest.mark.parametrize("weights", [[1.0], [1.0, 0.0], [1.0, -1.0], [1.0, np.inf]])
def test_impossible_weights_are_refused(weights):
    with pytest.raises(ParameterError, match="positive numbers"):
        blocks.shares(2, weights)
