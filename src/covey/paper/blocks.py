"""Microaggregation: sums over the blocks of a partition, means, the damped means of (5.4); then bootstrapping and rounding."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from covey.engine.arrays import Array, Floats, Integers, is_bits
from covey.engine.points import WeightedPoints, chunks_of_rows
from covey.errors import ParameterError


@dataclass(frozen=True)
class BlockSums:
    """Size and sum of every block, empty ones included. Private: it has no serializer."""

    sizes: Integers
    sums: Floats

    def __add__(self, other: BlockSums) -> BlockSums:
        return BlockSums(self.sizes + other.sizes, self.sums + other.sums)


def block_sums(batch: Array, labels: Integers, count: int) -> BlockSums:
    """Sizes and sums of `count` blocks. Integer rows give exact integers."""
    n = len(batch)
    indicator = scipy.sparse.csr_array((np.ones(n, dtype=np.float32), labels, np.arange(n + 1)), shape=(n, count))
    exact = n <= 1 << 24 and is_bits(batch)  # float32 sums of that many bits are exact
    rows: Array = np.ascontiguousarray(batch, dtype="f4" if exact else "f8")
    return BlockSums(np.bincount(labels, minlength=count), np.asarray(indicator.T @ rows, dtype=np.float64))


def damped_means(blocks: BlockSums, b: float) -> Floats:
    """(5.4): Σ_{i∈F_j} x_i / max(|F_j|, b). By Lemma 5.10 one row moves a block by at most 2/b · max‖x‖."""
    return np.asarray(blocks.sums / np.maximum(blocks.sizes, b)[:, None])


def project_weights(w: Floats) -> Floats:
    """π_{Δ,1} of (5.5): negative entries become 0 and the rest is normalised; an ℓ1-nearest point of the simplex.

    Without a positive entry the answer is the uniform distribution.
    """
    positive = np.maximum(w, 0.0)
    total = positive.sum()
    if not total > 0:
        return np.full(len(w), 1 / len(w))
    return np.asarray(positive / total)


# Remark 1.5: records of a Hilbert space, known by their Gram matrix alone, and records with weights. Nothing here needs
# coordinates: second moments, their loss under a partition and the groups' centres are functions of inner products. So strings,
# graphs or curves can be microaggregated through any positive semidefinite kernel.

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


def group_means(X: Array, labels: Integers, weights: Floats | None = None) -> WeightedPoints:
    """(4.1): a group has the weight of its records, 1 each where none is given, and sits at their mean; none is empty."""
    mass = np.asarray(np.bincount(labels, weights), dtype=np.float64)
    sums = block_sums(X if weights is None else X * weights[:, None], labels, len(mass)).sums
    return WeightedPoints(mass / mass.sum(), sums / mass[:, None])


def covariance_loss(X: Array, labels: Integers, weights: Floats | None = None) -> float:
    """‖Σ_X − Σ_Y‖₂ = ‖E(X − Y)(X − Y)ᵀ‖₂ (Lemma 3.1), records having probabilities in proportion to their weights."""
    probability, lost = shares(len(X), weights), np.zeros((X.shape[1], X.shape[1]))
    means = group_means(X, labels, weights).points
    for rows in chunks_of_rows(len(X), 8 * X.shape[1]):
        inside = X[rows] - means[labels[rows]]
        lost += (inside * probability[rows, None]).T @ inside
    return float(np.linalg.norm(lost))


def gram_means(G: Floats, labels: Integers, probability: Floats) -> tuple[Floats, Floats, float]:
    """(4.1) from inner products: each group's weight, the inner products of the groups' means, and the covariance loss.

    With R the inner products of the residuals X − Y, the square of the loss is Σ π_i π_j R_ij².
    """
    A = np.zeros((int(labels.max()) + 1, len(labels)))  # row j takes the average over group j
    A[labels, np.arange(len(labels))] = probability
    mass = A.sum(axis=1)
    A /= mass[:, None]
    means, own = A @ G @ A.T, (A @ G)[labels]
    R = G - own - own.T + means[labels][:, labels]
    return mass, means, float(np.sqrt(probability @ R**2 @ probability))
