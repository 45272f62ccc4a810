"""The subspace that the covering lives in: PROJ (Algorithm 3), private, and exact principal directions."""

from __future__ import annotations

import numpy as np
import scipy.linalg

from covey.core.arrays import Array, Floats, is_bits
from covey.core.paper.bingham import sample_bingham
from covey.core.tables.moments import Batch, is_sparse

# Directions are stored on the grid 2^-16: scores of integer rows are then exact integers, so the cell of a
# record depends on that record alone and not on the shape of the batch it came in.
DIRECTION_BITS = 16


def private_directions(A: Floats, t: int, generator: np.random.Generator) -> Floats:
    """PROJ(A, t), Algorithm 3: t orthonormal columns, each drawn by PVEC in the complement of those before.

    The deflated matrix is expressed in an orthonormal basis of the complement. Sampling in all of Rᵖ with
    (I−P)A(I−P) instead would give the removed directions the weight e⁰, which is a different law.
    """
    A = np.array(A, dtype=np.float64)
    directions = np.empty((len(A), t))
    basis = np.eye(len(A))
    for i in range(t):
        x = sample_bingham(A, generator, 1)[0]
        directions[:, i] = basis @ x
        # The reflection H exchanges x and ±e₁; its other columns are an orthonormal basis of x's complement.
        h = x.copy()
        h[0] += 1.0 if x[0] >= 0 else -1.0
        h /= np.linalg.norm(h)
        basis = (basis - 2 * np.outer(basis @ h, h))[:, 1:]
        A = _reflect(A, h)[1:, 1:]
    return directions


def _reflect(A: Floats, h: Floats) -> Floats:
    """H A H for the reflection H = I − 2hhᵀ, kept exactly symmetric."""
    g = A @ h
    B = A - 2 * np.outer(h, g) - 2 * np.outer(g, h) + 4 * (h @ g) * np.outer(h, h)
    return np.asarray((B + B.T) / 2)


def principal_directions(S: Floats, t: int) -> Floats:
    """The t leading eigenvectors of S as columns (exact PCA: not private), largest eigenvalue first."""
    p = len(S)
    if t == 0:
        return np.empty((p, 0))
    vectors = scipy.linalg.eigh(S, subset_by_index=(p - t, p - 1))[1]
    return np.asarray(vectors[:, ::-1])


def quantise_directions(directions: Floats) -> Floats:
    """Directions as integers, in units of 2^-16."""
    return np.rint(np.ldexp(directions, DIRECTION_BITS))


def integer_scores(batch: Batch, quantised: Floats) -> Floats:
    """Inner products of integer rows with quantised directions, exact and so the same in any batch.

    Σ|x_i v_i| ≤ ‖x‖·‖v‖ by Cauchy-Schwarz, and ‖v‖ is 2^16 up to rounding: for rows of at most 2^14 bits every partial
    sum stays below 2^24 and fits a float32; for rows of norm 2^20 it stays far below 2^53.
    """
    if is_sparse(batch):
        return np.asarray(batch.astype(np.float64) @ quantised)
    narrow = batch.shape[1] <= 1 << 14 and is_bits(batch)
    scores: Array = batch.astype("f4" if narrow else "f8") @ quantised.astype("f4" if narrow else "f8")
    return np.asarray(scores, dtype=np.float64)
