"""Normal and chi numbers, drawn exactly: as many binary digits as a decision needs, read from fair bits when it asks.

|g| = (k + x)/64 with a whole number k, P(k) ∝ exp(−k²/8192), and x uniform on [0, 1), kept with probability
exp(−x(2k + x)/8192): together the density exp(−g²/2). Both choices compare a uniform number, of which some digits are
known, with a real one, of which an interval is known; where the intervals overlap, more digits are read. Digits of x that a
decision has read are kept and never drawn again. The proof is in docs/proofs/exact.md, section 2.

The density of χ with k degrees of freedom, the length of a normal vector, is r^{k−1}·e^{−r²/2}. For any centre m > 0 a
proposal r = m + g, g standard normal, that is kept with probability (t·e^{1−t})^{k−1}, t = rm/(k − 1), has exactly that
density: e^{−(r−m)²/2}·r^{k−1}·e^{−mr} is r^{k−1}·e^{−r²/2} up to a constant, and t·e^{1−t} ≤ 1. At m = √(k − 1) two thirds or
more are kept (section 3 there).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import frexp, ulp

import numpy as np
from numpy.typing import NDArray

from covey.engine.arrays import Array, Floats, Integers

STEP = 6  # cells of width 2^-6
TWICE = 2 * 4**STEP  # the density of k + x is exp(−(k + x)²/TWICE)
WORD = 64  # bits that are read at a time
GUIDE = 16  # leading digits that find most cells by one look
CHUNK = 1 << 15  # numbers drawn together: their temporaries stay in the processor's cache
# NumPy's exp is right to a few units in 2^-52 of its value; whatever is closer than this is decided in exact arithmetic.
MARGIN = 2.0**-40

Words = NDArray[np.uint64]
Tail = tuple[int, int]  # further digits of a number as a whole number, and how many they are


@dataclass(frozen=True)
class Digits:
    """How many digits are read at first: of x, of its coin, and of the number that finds the cell. Tests use few."""

    x: int = 53 - 10  # |g| below 16 is then a float
    coin: int = 21
    cell: int = 63

    @property
    def unit(self) -> int:
        """Numbers are cut at 2^-unit."""
        return STEP + self.x


STANDARD = Digits()


class Normals:
    """`count` independent standard normals, each with the digits that were read so far.

    `value` holds them cut towards zero at 2^-unit, or at the last place of a float beyond 16; the sign of a zero counts.
    `tail` has the digits after those, for the few numbers where more were read.
    """

    def __init__(self, count: int, generator: np.random.Generator, digits: Digits = STANDARD) -> None:
        self.generator, self.digits = generator, digits
        self.value: Floats = np.empty(count)
        self.tail: dict[int, Tail] = {}
        done = 0
        while done < count:
            value, kept, tail = self._attempt(min((count - done) * 65 // 64 + 16, CHUNK))
            kept = kept[: count - done]
            for position, rest in tail.items():
                at = int(np.searchsorted(kept, position))
                if at < len(kept) and kept[at] == position:
                    self.tail[done + at] = rest
            self.value[done : done + len(kept)] = value[kept]
            done += len(kept)

    def magnitude(self, i: int, extra: int) -> int:
        """|g_i| cut at 2^-(unit + extra), in that unit; reads the digits that are missing."""
        rest, size = self.tail.get(i, (0, 0))
        need = extra + hidden(float(self.value[i]), self.digits.unit)
        while size < need:
            rest, size = (rest << WORD) + more(self.generator), size + WORD
            self.tail[i] = rest, size
        return whole(float(self.value[i]), (rest, size), self.digits.unit, extra)

    def _attempt(self, count: int) -> tuple[Floats, Integers, dict[int, Tail]]:
        """Proposals cut towards zero, the places of those that are kept, and what was read beyond the cut."""
        d = self.digits
        first, second = self.generator.integers(0, 1 << WORD, (2, count), dtype=np.uint64)
        k = self._cells((first >> np.uint64(1)) & np.uint64((1 << d.cell) - 1))
        X = second >> np.uint64(WORD - d.x)
        V = (second & np.uint64((1 << d.coin) - 1)).astype(np.float64)
        x, K = X * 2.0**-d.x, k.astype(np.float64)
        tail: dict[int, Tail] = {}
        keep = self._coins(k, x, V, X, tail)
        value = (K + x) * 2.0**-STEP
        for i in np.flatnonzero(k >= 1 << (53 - d.x)):  # probability 2^-185: such a number has more digits than a float
            exact = (int(k[i]) << d.x) + int(X[i])
            extra = exact.bit_length() - 53
            rest, size = tail.get(int(i), (0, 0))
            tail[int(i)] = ((exact & ((1 << extra) - 1)) << size) + rest, size + extra
            value[i] = float(exact >> extra << extra) * 2.0**-d.unit
        np.negative(value, out=value, where=(first & np.uint64(1)).astype(bool))  # 0 becomes −0, which keeps its sign
        return value, np.flatnonzero(keep), tail

    def _coins(self, k: Integers, x: Floats, V: Floats, X: Words, tail: dict[int, Tail]) -> Array:
        """Whether V < exp(−x(2k + x)/8192), where both x and V are known up to one unit of their last digit."""
        d = self.digits
        z = x + 2.0**-d.x
        exponent = z * (2 * k + z) * (1 / TWICE)
        keep = (V + 1) * 2.0**-d.coin <= 1 - MARGIN - exponent  # exp(−a) ≥ 1 − a settles nearly all
        open_ = np.flatnonzero(~keep)
        below = np.exp(-exponent[open_])
        above = np.exp(-x[open_] * (2 * k[open_] + x[open_]) * (1 / TWICE))
        v = V[open_]
        keep[open_] = (v + 1) * 2.0**-d.coin <= below * (1 - MARGIN)
        for i in open_[~keep[open_] & (v * 2.0**-d.coin < above * (1 + MARGIN))]:
            keep[i] = self._coin(int(k[i]), int(X[i]), int(V[i]), tail, int(i))
        return np.asarray(keep)

    def _coin(self, k: int, X: int, V: int, tail: dict[int, Tail], position: int) -> bool:
        """One such coin with more digits of x and V, as long as it takes; digits of x that were read go to the tail."""
        bits, coin = self.digits.x, self.digits.coin
        while True:
            below, above = (keep_probability(k, z, bits, bits + coin) for z in (X + 1, X))
            error = Fraction(1, 10 ** (bits + coin))
            success = Fraction(V + 1, 1 << coin) <= below - error
            if success or Fraction(V, 1 << coin) >= above + error:
                if bits > self.digits.x:
                    size = bits - self.digits.x
                    tail[position] = X & ((1 << size) - 1), size
                return success
            if (above - below) * 256 > Fraction(1, 1 << coin):  # it is the digits of x that are missing
                X, bits = (X << WORD) + more(self.generator), bits + WORD
            V, coin = (V << WORD) + more(self.generator), coin + WORD

    def _cells(self, u: Words) -> Integers:
        """The cells of uniform numbers that start with the digits u."""
        table, (guide, left) = thresholds(self.digits.cell), guide_table(self.digits.cell)
        k = guide[u >> np.uint64(left)]
        open_ = np.flatnonzero(k < 0)
        k[open_] = np.searchsorted(table, u[open_], side="left")
        # A number on a border, or beyond the table, does not say yet in which cell it is.
        border = table[np.minimum(k[open_], len(table) - 1)] == u[open_]
        for i in open_[border | (k[open_] == len(table))]:
            k[i] = self._cell(int(u[i]))
        return np.asarray(k)

    def _cell(self, u: int) -> int:
        """The cell of a uniform number that starts with the digits u, with more digits as long as it takes."""
        bits = self.digits.cell
        while True:
            low, high = borders(bits)
            k = bisect_left(high, u)  # so many borders are surely below
            if k == bisect_right(low, u) < len(low):  # and no other one may be
                return k
            u, bits = (u << WORD) + more(self.generator), bits + WORD


def more(generator: np.random.Generator) -> int:
    """A word of fair bits."""
    return int(generator.integers(0, 1 << WORD, dtype=np.uint64))


def hidden(value: float, unit: int) -> int:
    """How many digits above 2^-unit a float beyond 16 has no room for: they are the first ones of the tail."""
    return max(0, frexp(ulp(value))[1] - 1 + unit) if abs(value) >= 2.0 ** (53 - unit) else 0


def whole(value: float, tail: Tail, unit: int, extra: int) -> int:
    """|g| cut at 2^-(unit + extra), in that unit, from its float and enough further digits."""
    numerator, denominator = abs(value).as_integer_ratio()
    rest, size = tail
    return (numerator << (unit + extra)) // denominator + (rest >> (size - extra - hidden(value, unit)))


def keep_probability(k: int, X: int, bits: int, digits: int) -> Fraction:
    """exp(−x(2k + x)/8192) at x = X·2^-bits, right to so many decimal digits after the point."""
    with localcontext() as context:
        context.prec = digits + 10 + len(str(k + 1))
        exponent = Decimal(-X * (2 * (k << bits) + X)) / Decimal(TWICE << (2 * bits))
        return Fraction(exponent.exp())


@lru_cache(maxsize=32)
def borders(bits: int) -> tuple[list[int], list[int]]:
    """Lower and upper bounds of ⌊2^bits·P(K ≤ k)⌋ for all k that so many bits can tell from the end."""
    digits = 20 + bits // 2
    with localcontext() as context:
        context.prec = digits + 15
        sums, term, k = [Decimal(1)], Decimal(1), 0
        # The terms left out are together less than ten times the last one: neighbours differ by exp(−(2k + 1)/8192).
        while term > Decimal(10) ** -(digits + 5):
            k += 1
            term = (Decimal(-k * k) / TWICE).exp()
            sums.append(sums[-1] + term)
        shares = [Fraction(s / sums[-1]) for s in sums]
    error = Fraction(1, 10**digits)
    return [int((f - error) * 2**bits // 1) for f in shares], [int((f + error) * 2**bits // 1) for f in shares]


@lru_cache(maxsize=32)
def thresholds(bits: int) -> Words:
    """⌊2^bits·P(K ≤ k)⌋ up to the last number of so many bits: u is in the cell of so many as are below it, if none is equal.

    Where bounds differ, the larger one bounds what follows as well: such a table would have to be refused.
    """
    low, high = borders(bits)
    # From here on 1 − 2^-bits < P(K ≤ k): numbers on this border are undecided.
    last = bisect_left(low, (1 << bits) - 1)
    if low[:last] != high[:last]:
        raise AssertionError("the borders of the cells are not known well enough")  # a test looks at every size used
    return np.array([*low[:last], (1 << bits) - 1], dtype=np.uint64)


@lru_cache(maxsize=32)
def guide_table(bits: int) -> tuple[Integers, int]:
    """The cell for each beginning of a number of so many bits, −1 where the beginning does not tell, and the bits left out."""
    left = max(bits - GUIDE, 0)
    table = thresholds(bits)
    starts = np.arange(1 << (bits - left), dtype=np.uint64) << np.uint64(left)
    first = np.searchsorted(table, starts, side="left")
    last = np.searchsorted(table, starts + np.uint64((1 << left) - 1), side="right")  # a border inside counts
    return np.where((first == last) & (first < len(table)), first, -1), left


CENTRE_BITS = STEP  # any centre will do; this one is a whole number of units, however few digits are read
# The float probability is right to 2^-40 (exact.md); coins closer to it than this are decided in exact arithmetic.
CHI_MARGIN = 2.0**-20
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
        for i in np.flatnonzero(np.abs(difference) <= CHI_MARGIN + 4 * cut):
            centre = Fraction(int(self.centre[which[i]]), 1 << CENTRE_BITS)
            kept[i] = accept(int(n[i]), centre, normals, int(i), int(V[i]))
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
        size = t.denominator // t.numerator + t.numerator // t.denominator  # of t or its inverse
        context.prec = digits + 20 + 2 * len(str(n)) + len(str(size))
        x = Decimal(t.numerator) / Decimal(t.denominator)
        return Fraction((n * (x.ln() + (1 - x))).exp())
