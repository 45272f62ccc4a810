"""Second moments in a narrow basis: a p × p target is summarised once, then fitted without p × p work.

A noisy p × p matrix T tells the fit little beyond its leading eigenvectors Q (p × r): T ≈ Q·M·Qᵀ with a small core M. The
distance between that and the second moments FᵀF/k of k points needs products of k × p with p × r and k × k matrices alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.core.arrays import Array, Integers

LOW_RANK_COLUMNS = 1000  # more columns of bits than this are fitted in a basis
LOW_RANK_CATEGORIES = 1500  # and more categories than this
BASIS = 160  # directions kept of the noisy pairs, far more than the fits can use
SWEEPS = 10  # of subspace iteration


@dataclass(frozen=True)
class Core:
    """The symmetric target Q·M·Qᵀ: an orthonormal basis Q (p × r), the core M (r × r), and the target's diagonal."""

    basis: Any
    middle: Any
    diagonal: Any


def core(xp: Any, basis: Any, middle: Any) -> Core:
    """A target in a basis, with its diagonal worked out."""
    return Core(basis, middle, xp.sum((basis @ middle) * basis, axis=1))


def leading_eigenvectors(xp: Any, T: Any, diagonal: Any, start: Any, rounds: int) -> tuple[Any, Any]:
    """Ritz values, largest first, and vectors of T + diag(diagonal), after rounds of subspace iteration from given columns.

    The start has more columns than are wanted: a direction converges as fast as its eigenvalue stands out from the
    first one that the subspace has no room for.
    """
    Q = xp.linalg.qr(start).Q
    for _ in range(rounds):
        Q = xp.linalg.qr(T @ Q + diagonal[:, None] * Q).Q
    small = xp.matrix_transpose(Q) @ (T @ Q + diagonal[:, None] * Q)
    values, vectors = xp.linalg.eigh((small + xp.matrix_transpose(small)) / 2)
    return xp.flip(values), Q @ xp.flip(vectors, axis=1)


def imputed_directions(
    target: Array, inside: tuple[Integers, Integers], start: Array, keep: Callable[[Array], Array], rounds: int = 6
) -> tuple[Array, Array]:
    """Leading eigenvalues, as `keep` leaves them, and vectors of a matrix whose entries `inside` are not known.

    They are imputed by the vectors of the round before. In ordinary memory, in float32.
    """
    filled = target.astype(np.float32)
    none = np.zeros(len(filled), dtype=np.float32)
    i, j = inside
    vectors = start.astype(np.float32)
    for step in range(rounds):
        values, vectors = leading_eigenvectors(np, filled, none, vectors, SWEEPS if step == 0 else 2)
        kept = keep(values)
        filled[i, j] = ((vectors * kept)[i] * vectors[j]).sum(axis=1)
    return kept, vectors


def moment_gap(xp: Any, F: Any, target: Core) -> tuple[float, Any]:
    """‖FᵀF/k − T‖² off the diagonal, and F·(FᵀF/k − T) with the diagonal left out.

    Split F = F_Q·Qᵀ + F_⊥. The part inside the basis is a difference of small matrices and the parts outside are sums of
    squares, so nothing large cancels, which float32 would not survive.
    """
    k = F.shape[0]
    inside = F @ target.basis
    outside = F - inside @ xp.matrix_transpose(target.basis)
    gap = xp.matrix_transpose(inside) @ inside / k - target.middle
    K_in, K_out = inside @ xp.matrix_transpose(inside), outside @ xp.matrix_transpose(outside)
    own = xp.mean(F * F, axis=0) - target.diagonal
    cross = 2 * _dot(xp, K_in, K_out) + _dot(xp, K_out, K_out)
    norm = _dot(xp, gap, gap) + cross / k**2 - _dot(xp, own, own)
    along = (inside @ gap + K_out @ inside / k) @ xp.matrix_transpose(target.basis)
    return norm, along + ((K_in + K_out) / k) @ outside - F * own


def _dot(xp: Any, a: Any, b: Any) -> float:
    return float(xp.sum(a * b, dtype=xp.float64))
