"""Chi variables, drawn exactly: lengths of standard normal vectors, as a known centre plus a normal with digits on demand.

The density of χ with k degrees of freedom is r^{k−1}·e^{−r²/2}. For any centre m > 0 a proposal r = m + g, g standard normal,
that is kept with probability (t·e^{1−t})^{k−1}, t = rm/(k − 1), has exactly that density: e^{−(r−m)²/2}·r^{k−1}·e^{−mr} is
r^{k−1}·e^{−r²/2} up to a constant, and t·e^{1−t} ≤ 1. At m = √(k − 1) two thirds or more are kept (docs/proofs/exact.md, 3).
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.noise.normals import STANDARD, STEP, WORD, Digits, Normals, Tail, more, whole

CENTRE_BITS = STEP  # any centre will do; this one is a whole number of units, however few digits are read
# The float probability is right to 2^-40 (exact.md); coins closer to it than this are decided in exact arithmetic.
MARGIN = 2.0**-20
FEW = 1000  # of so many, several proposals are made at once, which saves rounds


class Chi:
    """Independent chi variables centre + g, one for each number of degrees of freedom (2 or more)."""

    def __init__(self, degrees: Integers, generator: np.random.Generator, digits: Digits = STANDARD) -> None:
        self.digits = digits
        self.centre: Integers = np.rint(np.sqrt(degrees - 1.0) * 2.0**CENTRE_BITS).astype(np.int64)
        self.offset: Floats = np.empty(len(degrees))
        self.tail: dict[int, Tail] = {}
        left = np.arange(len(degrees))
        while len(left):
            tries = np.repeat(left, 8 if len(left) <= FEW else 1)
            normals = Normals(len(tries), generator, digits)
            kept = np.flatnonzero(self._accept(tries, degrees, normals))
            done, first = np.unique(tries[kept], return_index=True)  # the first that is kept, of each
            self.offset[done] = normals.value[kept[first]]
            for place, source in zip(done, kept[first], strict=True) if normals.tail else ():
                if int(source) in normals.tail:
                    self.tail[int(place)] = normals.tail[int(source)]
            left = np.setdiff1d(left, done)

    @property
    def value(self) -> Floats:
        """The variables as floats: right to the digits read, and to half a unit in the last place."""
        return np.asarray(self.centre * 2.0**-CENTRE_BITS + self.offset)

    def cut(self, k: int, tail: Tail, extra: int) -> int:
        """The k-th variable from the digits of its normal down to 2^-(unit + extra), in that unit; the rest lies beyond it.

        Beyond means away from the centre: at most one unit more where the normal is positive, one unit less where not.
        """
        unit, offset = self.digits.unit, float(self.offset[k])
        g = whole(offset, tail, unit, extra)
        centre = int(self.centre[k]) << (unit - CENTRE_BITS + extra)
        return centre - g if np.signbit(offset) else centre + g

    def _accept(self, which: Integers, degrees: Integers, normals: Normals) -> Array:
        n = degrees[which] - 1.0
        m = self.centre[which] * 2.0**-CENTRE_BITS
        V = normals.generator.integers(0, 1 << WORD, len(which), dtype=np.uint64)
        excess = np.maximum(((m + normals.value) * m - n) / n, -1.0)  # t − 1
        with np.errstate(divide="ignore"):
            probability = np.exp(n * (np.log1p(excess) - excess))
        difference = probability - V * 2.0**-WORD
        kept = difference > 0
        cut = 2.0**-self.digits.unit  # few digits of g are as bad as few of the probability
        for i in np.flatnonzero(np.abs(difference) <= MARGIN + 4 * cut):
            kept[i] = accept(
                int(n[i]), Fraction(int(self.centre[which[i]]), 1 << CENTRE_BITS), normals, int(i), int(V[i])
            )
        return np.asarray(kept)


def accept(n: int, centre: Fraction, normals: Normals, i: int, V: int) -> bool:
    """Whether V < (t·e^{1−t})^n at t = (centre + g_i)·centre/n, with as many digits of g and V as it takes."""
    bits, extra = WORD, 0
    while True:
        low, high = (r * centre / n for r in interval(normals, i, centre, extra))
        digits = bits + extra + 20
        ends = [power(t, n, digits) for t in (low, high)]
        error = Fraction(1, 10**digits)
        top = Fraction(1) if low <= 1 <= high else max(ends)
        if Fraction(V + 1, 1 << bits) <= min(ends) - error:
            return True
        if Fraction(V, 1 << bits) >= top + error:
            return False
        V, bits, extra = (V << WORD) + more(normals.generator), bits + WORD, extra + WORD


def interval(normals: Normals, i: int, centre: Fraction, extra: int) -> tuple[Fraction, Fraction]:
    """Bounds of centre + g_i from the digits of g_i down to 2^-(unit + extra)."""
    g, unit = normals.magnitude(i, extra), 1 << (normals.digits.unit + extra)
    if np.signbit(normals.value[i]):
        return centre - Fraction(g + 1, unit), centre - Fraction(g, unit)
    return centre + Fraction(g, unit), centre + Fraction(g + 1, unit)


def power(t: Fraction, n: int, digits: int) -> Fraction:
    """(t·e^{1−t})^n, 0 for t ≤ 0, right to so many decimal digits after the point."""
    if t <= 0:
        return Fraction(0)
    with localcontext() as context:
        context.prec = (
            digits + 20 + 2 * len(str(n)) + len(str(t.denominator // t.numerator + t.numerator // t.denominator))
        )
        x = Decimal(t.numerator) / Decimal(t.denominator)
        return Fraction((n * (x.ln() + (1 - x))).exp())
