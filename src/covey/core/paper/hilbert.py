"""Remark 1.5: records of a Hilbert space, known by their Gram matrix alone, and records with weights.

Nothing here needs coordinates: second moments, their loss under a partition and the groups' centres are functions of inner
products. So strings, graphs or curves can be microaggregated through any positive semidefinite kernel.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg

from covey.core.arrays import Array, Floats, Integers
from covey.core.paper.blocks import WeightedPoints
from covey.errors import ParameterError

ROUNDING = 1e-8  # of the largest eigenvalue: what a Gram matrix may fall short of positive semidefinite


def coordinates(G: Floats) -> Floats:
    """Rows whose inner products are G, in an orthonormal basis of their second moment, the leading direction first."""
    G = np.asarray(G, dtype=np.float64)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or not len(G) or not np.isfinite(G).all():
        raise ParameterError(f"G must be a square matrix of finite inner products, got shape {G.shape}.")
    largest = float(np.abs(G).max())
    if np.abs(G - G.T).max() > ROUNDING * largest:
        raise ParameterError("G must be symmetric: entry (i, j) is the inner product of records i and j.")
    values, vectors = scipy.linalg.eigh((G + G.T) / 2)
    if values[0] < -ROUNDING * len(G) * max(largest, 1e-300):
        raise ParameterError(f"G must be positive semidefinite, but has the eigenvalue {values[0]:.3g}.")
    kept = values > np.finfo(float).eps * len(G) * values[-1]
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1])


def shares(n: int, weights: Array | None) -> Floats:
    """The probability of each record: uniform, or in proportion to its weight."""
    if weights is None:
        return np.full(n, 1 / n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w <= 0).any():
        raise ParameterError(f"weights must be {n} positive numbers, one for each record.")
    return np.asarray(w / w.sum())


def averaging(labels: Integers, probability: Floats) -> Floats:
    """The k × n matrix whose row j takes the average over group j, labels being 0, …, k − 1."""
    A = np.zeros((int(labels.max()) + 1, len(labels)))
    A[labels, np.arange(len(labels))] = probability
    return np.asarray(A / A.sum(axis=1, keepdims=True))


def group_means(X: Array, labels: Integers, probability: Floats) -> WeightedPoints:
    """(4.1) for records with probabilities: a group has the weight of its records and sits at their weighted mean."""
    mass = np.asarray(np.bincount(labels, weights=probability), dtype=np.float64)
    sums = np.zeros((len(mass), X.shape[1]))
    np.add.at(sums, labels, X * probability[:, None])
    return WeightedPoints(mass, sums / mass[:, None])


def gram_means(G: Floats, labels: Integers, probability: Floats) -> tuple[Floats, Floats]:
    """(4.1) from inner products: each group's weight, and the inner products of the groups' means."""
    A = averaging(labels, probability)
    return np.asarray(np.bincount(labels, weights=probability), dtype=np.float64), np.asarray(A @ G @ A.T)


def covariance_loss(X: Array, labels: Integers, probability: Floats) -> float:
    """‖Σ_X − Σ_Y‖₂ = ‖E(X − Y)(X − Y)ᵀ‖₂ (Lemma 3.1), records having these probabilities."""
    inside = X - group_means(X, labels, probability).points[labels]
    return float(np.linalg.norm((inside * probability[:, None]).T @ inside))


def gram_covariance_loss(G: Floats, labels: Integers, probability: Floats) -> float:
    """The same from inner products: with R those of the residuals X − Y, the square of the loss is Σ π_i π_j R_ij²."""
    A = averaging(labels, probability)[labels]
    AG = A @ G
    R = G - AG - AG.T + AG @ A.T
    return float(np.sqrt(probability @ R**2 @ probability))
