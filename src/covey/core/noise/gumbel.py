"""The exponential mechanism as the largest of scores with Gumbel noise, decided exactly.

Candidate i wins with probability proportional to exp(score_i / scale). Its noise is −log(−log(1 − w)) for a uniform w, of which
64 binary digits are drawn for every candidate. Bounds on the noisy scores tell the winner, but for one choice in about 2^27:
there more digits are drawn for those that are left, and compared in decimal arithmetic until one stands alone.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from covey.core.arrays import Array, Floats, Integers

# Floats of noise below 2^10 are right to 2^-40; scores farther apart than 2^18 scales are not in doubt.
MARGIN = 2.0**-28
ROUNDING = 2.0**-50  # of a score's distance from the best one, relative
# Beyond, floats of w say too little: such a candidate's noise lies below −2.6, which is all that is said.
NEAR_ONE = 1 - 2.0**-20


def largest_with_gumbel(scores: Integers, scale: Fraction, generator: np.random.Generator, digits: int = 64) -> int:
    """The place of the largest score plus Gumbel noise of this scale; as many binary digits of noise are drawn at a time."""
    drawn = generator.integers(0, 1 << digits, len(scores), dtype=np.uint64)
    behind = (scores - scores.max()) * float(1 / scale)
    unsure = MARGIN - behind * ROUNDING
    w = drawn.astype(np.float64) * 2.0**-digits
    upper = behind + _noise(np.minimum(w, NEAR_ONE)) + unsure
    w = (drawn.astype(np.float64) + 1) * 2.0**-digits
    lower = np.where(w < NEAR_ONE, behind + _noise(np.minimum(w, NEAR_ONE)) - unsure, -np.inf)
    left = np.flatnonzero(upper >= lower.max())
    known, bits = {int(i): int(drawn[i]) for i in left}, digits
    while len(known) > 1:
        known = {i: (u << digits) + int(generator.integers(0, 1 << digits, dtype=np.uint64)) for i, u in known.items()}
        bits += digits
        known = _still_in_doubt(known, bits, scores, scale)
    return next(iter(known))


def _noise(w: Floats) -> Array:
    """Standard Gumbel noise of uniform numbers, decreasing in them."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(-np.log1p(-w)))


def _still_in_doubt(known: dict[int, int], bits: int, scores: Integers, scale: Fraction) -> dict[int, int]:
    """Those of some candidates that may have the largest noisy score, for uniform numbers that begin with so many bits."""
    with localcontext() as context:
        context.prec = bits  # decimal digits: far more than the bits that are compared
        slack = Decimal(2) ** (-2 * bits)

        def noisy(i: int, w: Decimal) -> Decimal:
            share = Fraction(int(scores[i])) / scale
            own = Decimal(share.numerator) / Decimal(share.denominator)
            return own - (-(1 - w).ln()).ln()

        one, bounds = Decimal(2) ** -bits, {}
        for i, u in known.items():
            high = noisy(i, u * one) + slack if u else Decimal("Infinity")
            low = noisy(i, (u + 1) * one) - slack if (u + 1) >> bits == 0 else Decimal("-Infinity")
            bounds[i] = low, high
        best = max(low for low, _ in bounds.values())
        return {i: u for i, u in known.items() if bounds[i][1] >= best}
