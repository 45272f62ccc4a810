"""Normal numbers, drawn exactly: as many binary digits as a decision needs, read from a stream of fair bits when it asks.

|g| = (k + x)/64 with a whole number k, P(k) ∝ exp(−k²/8192), and x uniform on [0, 1), kept with probability
exp(−x(2k + x)/8192): together the density exp(−g²/2). Both choices compare a uniform number, of which some digits are
known, with a real one, of which an interval is known; where the intervals overlap, more digits are read. Digits of x that a
decision has read are kept and never drawn again. The proof is in docs/proofs/exact.md, section 2.
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

from covey.core.arrays import Array, Floats, Integers

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
    last = bisect_left(
        low, (1 << bits) - 1
    )  # from here on 1 − 2^-bits < P(K ≤ k): numbers on this border are undecided
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
