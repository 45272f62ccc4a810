"""How good is it? The marginal error δ_d of (1.2) and the covariance loss of a partition.

These compare true with synthetic data. Computed on true rows they are not private.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import Literal

import numpy as np

from covey.core.arrays import Array, Floats, Integers, is_bits, packed_columns
from covey.core.paper.blocks import block_sums, microaggregate
from covey.core.tables.distance import elementary
from covey.core.tables.moments import moments
from covey.errors import ParameterError

SUBSETS = 10_000  # in a sample: its root mean square is then within a few per cent of that over all
SUBSET_SEED = 20_221  # the same subsets for everybody, so that errors can be compared


def marginal_error(
    X: Array,
    Z: Array,
    degree: int = 2,
    *,
    how: Literal["auto", "exact", "sample"] = "auto",
    subsets: int = SUBSETS,
    seed: int = SUBSET_SEED,
) -> float:
    """δ_d: root mean square, over all d-subsets of columns, of true minus synthetic marginal.

    Exact for d ≤ 2 and whenever there are at most `subsets` subsets; otherwise over a sample of that many, the
    same for the same seed. `how="exact"` covers all subsets for every d through Gram kernels, at a cost that
    grows with the square of the number of distinct rows.
    """
    X, Z = np.asarray(X), np.asarray(Z)
    if X.ndim != 2 or Z.ndim != 2 or X.shape[1] != Z.shape[1] or not len(X) or not len(Z):
        raise ParameterError(f"X and Z must be matrices with the same columns, got {X.shape} and {Z.shape}.")
    p = X.shape[1]
    if not 1 <= degree <= p:
        raise ParameterError(f"degree must lie between 1 and the number of columns, {p}, got {degree}.")
    if how == "exact" and degree > 2:
        return _gram_error(X, Z, degree)
    if degree == 1:
        return float(np.sqrt(np.mean((X.mean(axis=0, dtype=float) - Z.mean(axis=0, dtype=float)) ** 2)))
    if degree == 2 and how != "sample":
        E = moments(X).second_moment_matrix - moments(Z).second_moment_matrix
        return float(np.sqrt(np.mean(E[np.triu_indices(p, 1)] ** 2)))
    picks = subset_sample(p, degree, subsets, seed)
    return float(np.sqrt(np.mean((marginals(X, picks) - marginals(Z, picks)) ** 2)))


def subset_sample(p: int, degree: int, count: int, seed: int = SUBSET_SEED) -> Integers:
    """`count` independent uniform d-subsets of p columns, or every subset once where there are no more."""
    if comb(p, degree) <= count:
        return np.array(list(combinations(range(p), degree)), dtype=np.int64)
    generator = np.random.default_rng(seed)
    return np.argsort(generator.random((count, p)), axis=1)[:, :degree]


def marginals(X: Array, subsets: Integers) -> Floats:
    """(1/n) Σ_i x_i(j_1)⋯x_i(j_d) for each subset (a row of column numbers)."""
    n = len(X)
    out = np.empty(len(subsets))
    if is_bits(X):
        columns: Array = packed_columns(X)
        for i, subset in enumerate(subsets):
            out[i] = int(np.bitwise_count(np.bitwise_and.reduce(columns[subset], axis=0)).sum()) / n
    else:
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        for i, subset in enumerate(subsets):
            out[i] = columns[subset].prod(axis=0).sum() / n
    return out


def _gram_error(X: Array, Z: Array, degree: int) -> float:
    """δ_d over all subsets: ‖P_sym E‖² is a sum of kernels e_d(x∘x') over pairs of rows."""
    (x, u), (z, v) = _distinct(X), _distinct(Z)
    points, weights = np.vstack([x, z]), np.r_[u, -v]
    total = 0.0
    for i in range(0, len(points), 512):
        total += float(weights[i : i + 512] @ subset_kernel(points[i : i + 512], points, degree) @ weights)
    return float(np.sqrt(max(total, 0.0) / comb(X.shape[1], degree)))


def subset_kernel(X: Floats, Y: Floats, degree: int) -> Floats:
    """K(x, y) = Σ over d-subsets of ∏ x_i y_i: the elementary symmetric polynomial e_d of x∘y.

    Newton's identities turn power sums ⟨xʲ, yʲ⟩ into e_d; for 0/1 rows e_d is the binomial C(⟨x, y⟩, d).
    """
    if np.isin(X, (0, 1)).all() and np.isin(Y, (0, 1)).all():
        common = X @ Y.T
        value = np.ones_like(common)
        for j in range(degree):
            value *= np.maximum(common - j, 0) / (j + 1)
        return value
    return elementary([X**j @ (Y**j).T for j in range(1, degree + 1)])[degree]


def _distinct(X: Array) -> tuple[Floats, Floats]:
    """Distinct rows and their shares."""
    rows, counts = np.unique(np.asarray(X, dtype=np.float64), axis=0, return_counts=True)
    return rows, counts / len(X)


def covariance_loss(X: Array, labels: Array) -> float:
    """‖Σ_X − Σ_Y‖₂, Y the block means of a partition of the rows (Lemma 3.1), for rows scaled as given."""
    X, labels = np.asarray(X), np.asarray(labels)
    if X.ndim != 2 or labels.shape != (len(X),) or not len(X):
        raise ParameterError(f"labels must give one group per row of X, got {labels.shape} for {X.shape}.")
    groups, numbers = np.unique(labels, return_inverse=True)
    cloud = microaggregate(block_sums(X, numbers, len(groups)))
    centred = cloud.points * np.sqrt(cloud.weights)[:, None]
    return float(np.linalg.norm(moments(X).second_moment_matrix - centred.T @ centred))
