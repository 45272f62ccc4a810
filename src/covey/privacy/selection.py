"""From which noisy count on a label may be named that only one of two neighbouring tables may hold.

Labels that do not occur are never looked at, so a single record can make one appear: the threshold pays for it, out of δ. Under
pure ε no mechanism can name a label that it was not told.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil, log, sqrt

from covey.core.tables.learned import tail_quantile
from covey.errors import InternalError

MARGIN = 1e-9  # relative, for the floating point of the quantile


def selection_threshold(variance: Fraction, delta: Fraction, columns: int, rows_per_person: int = 1) -> int:
    """T = k + σ·Φ⁻¹(1 − δ/(2qk)), rounded up: labels whose noisy counts exceed it may be named.

    A person with k rows brings at most k labels to each of q columns, each held by k rows at most, and takes away as many. The
    chance that any of those brought is named is at most δ/2 (docs/proofs/learned.md), for Gaussian noise on the integers, rounded
    or discrete: P(noise ≥ m) ≤ P(N(0, σ²) ≥ m − 1) for whole m > 0.
    """
    if not 0 < delta < 1 or variance <= 0 or columns < 1:
        raise InternalError("naming labels needs a part of δ, noise and columns.")
    chance = delta / (2 * columns * rows_per_person)
    z = tail_quantile(log(chance.numerator) - log(chance.denominator))
    sd = sqrt(float(variance))
    return rows_per_person + ceil(max(z, 0.0) * sd * (1 + MARGIN))
