"""Integer coordinates of centred categories: Helmert's contrasts.

h_j(x) = 1 for x < j, −j for x = j, 0 for x > j; j = 1, …, c − 1. In units of w_j ≥ √(j(j + 1)) they are coordinates of
e_x − 1/c in an orthonormal basis, or shorter, so that ‖h/w‖² ≤ 1 − 1/c for every category. Sums of products of contrasts are
whole numbers, which noise on the integers can be added to; the centred tables come back by a linear map (docs/proofs/cone.md).
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.noise.integers import root_above
from covey.core.tables.domain import Domain


def contrasts(counts: Integers, domain: Domain) -> Integers:
    """Σ h(x)·h(x)ᵀ over the records, from their pair counts: the contrasts of all attributes one after the other.

    An entry is at most n·c_a·c_b, and so is every partial sum.
    """
    return _contrasts(_contrasts(counts, domain).T, domain)


def tables(values: Floats, domain: Domain) -> Floats:
    """The centred pair tables whose contrasts these are."""
    return _spread(_spread(values, domain).T, domain)


def weights(domain: Domain) -> list[Fraction]:
    """w_j of every contrast: √(j(j + 1)), rounded up to a rational number."""
    largest = max(domain.sizes)
    roots = [root_above(Fraction(j * (j + 1))) for j in range(1, largest)]
    return [w for c in domain.sizes for w in roots[: c - 1]]


def _contrasts(values: Integers, domain: Domain) -> Integers:
    """Contrasts along the first axis: Σ_{x < j} v_x − j·v_j."""
    parts = []
    for a, c in enumerate(domain.sizes):
        own = values[domain.block(a)]
        parts.append(np.cumsum(own, axis=0)[:-1] - np.arange(1, c)[:, None] * own[1:])
    return np.concatenate(parts)


def _spread(values: Floats, domain: Domain) -> Floats:
    """Back along the first axis: Σ_j h_j(x)·v_j/(j(j + 1))."""
    parts, start = [], 0
    for c in domain.sizes:
        j = np.arange(1, c)[:, None]
        scaled = values[start : start + c - 1] / (j * (j + 1.0))
        out = np.zeros((c, values.shape[1]))
        out[:-1] = np.cumsum(scaled[::-1], axis=0)[::-1]
        out[1:] -= j * scaled
        parts.append(out)
        start += c - 1
    return np.concatenate(parts)
