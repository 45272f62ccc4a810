"""Matrix noise on the integers, drawn exactly: pure ε-DP for statistics of bounded nuclear-norm sensitivity.

The law is that of the cone mechanism (docs/proofs/cone.md), rounded to the integers. Floats propose each entry together with a
rigorous bound of their error; an entry that lies closer than this to a half-integer is computed in unbounded integers, with
further random digits until it is decided (docs/proofs/exact.md, section 4). No float decides a sample.

A draw of the law starts from Bartlett's factor: LLᵀ is Wishart with q + 1 degrees of freedom if L is lower triangular with
independent entries, standard normal below the diagonal and χ with q + 1 − i degrees of freedom on it, i = 0, …, q − 1. Where a
decision needs more digits than floats hold, whole rows get further words of them, and products are summed in limbs of 16 bits,
which float64 does without error.

Rows (z, a) of p signs and a constant move Σhhᵀ inside a smaller cone than that of all positive semidefinite matrices: the first p
entries of its diagonal are equal. The noise of this cone is a factor whose first p rows are brought to one common length, which
is itself drawn (docs/proofs/cone.md, "Signs"): less noise for the same promise.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil, isqrt, lcm, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.engine.arrays import STRIP, Array, Floats, Integers
from covey.engine.noise.integers import SATURATION
from covey.engine.noise.normals import STANDARD, WORD, Chi, Digits, Normals, Tail, Words, hidden, more, whole
from covey.errors import ParameterError

LIMB = 16  # bits: a product of two limbs has 32, and float64 sums 2^20 of them exactly
PER_WORD = WORD // LIMB
LARGEST = 1 << 20  # dimension: sums of so many products of two limbs stay below 2^53

HALF = Fraction(1, 2)  # what is added before rounding down

Wide = NDArray[Any]  # of Python's unbounded integers
Interval = tuple[Fraction, Fraction]


def degrees(q: int) -> Integers:
    """Degrees of freedom on the diagonal of the factor: q + 1, …, 2. One fewer, and the noise is not private (cone.md)."""
    return q + 1 - np.arange(q)


class Factor:
    """L with digits on demand: `value` holds each entry up to an error below `cut` (off the diagonal) or `slip` (on it)."""

    def __init__(self, q: int, generator: np.random.Generator, digits: Digits) -> None:
        self.generator, self.unit = generator, digits.unit
        self.value: Floats = np.zeros((q, q))
        self._tails: dict[int, dict[int, Tail]] = {}
        self._words: dict[int, Words] = {}  # row → a line of words for each level
        self.sums: Floats = np.zeros(q)  # of absolute values, by row
        largest = 0.0
        rows = max(1, STRIP // 8 // q)  # whose numbers are drawn together: enough for speed, few enough for memory
        for begin in range(0, q, rows):
            end = min(q, begin + rows)
            normals = Normals((end * (end - 1) - begin * (begin - 1)) // 2, generator, digits)
            self._place(normals, begin, end)
            self.sums[begin:end] = np.abs(self.value[begin:end, :end]).sum(axis=1)
            largest = max(largest, float(np.abs(normals.value).max(initial=0)))
        self.chi = Chi(degrees(q), generator, digits)
        self.value[np.diag_indices(q)] = self.chi.value
        self.sums += self.chi.value
        for row, tail in self.chi.tail.items():
            self._tails.setdefault(row, {})[row] = tail
        # Numbers are cut by less than a unit, or a last place beyond 16; on the diagonal the sum rounds as well.
        self.cut = max(2.0**-self.unit, float(np.spacing(largest)))
        farthest = max(float(self.chi.value.max()), float(np.abs(self.chi.offset).max()))
        self.slip = 2 * max(2.0**-self.unit, float(np.spacing(farthest)))

    def _place(self, normals: Normals, begin: int, end: int) -> None:
        """Put numbers below the diagonal of these rows, and remember which have further digits."""
        self.value[begin:end, :end][np.arange(end) < np.arange(begin, end)[:, None]] = normals.value
        for position, tail in normals.tail.items():
            place = position + begin * (begin - 1) // 2
            row = (1 + isqrt(1 + 8 * place)) // 2
            self._tails.setdefault(row, {})[place - row * (row - 1) // 2] = tail

    def rows(self, i: Integers, terms: int) -> Floats:
        """The first entries of consecutive rows, in floats."""
        return self.value[i[0] : i[-1] + 1, :terms]

    def error(self, i: Integers, terms: int) -> Array:
        """How far so many entries of a row may be from the true ones, in Euclidean length: the same for all rows."""
        del i
        return np.array([sqrt(terms) * self.cut + self.slip])

    def entry(self, i: int, j: int, words: int) -> Interval | None:
        """Bounds of the product of rows i ≤ j, from digits down to 2^-(unit + 64·words); None if they bound nothing yet."""
        low, high = self.product(i, j, words)
        unit = 4 ** (self.unit + WORD * words)
        return Fraction(low, unit), Fraction(high, unit)

    def product(self, i: int, j: int, words: int) -> tuple[int, int]:
        """Bounds of Σ_k L_ik·L_jk, i ≤ j, in units of 4^-(unit + 64·words).

        The sum is exact for the entries x that are cut there. Each term misses by less than |x_ik| + |x_jk| + 1,
        and |x| is at most |value|, its error and one unit.
        """
        terms = i + 1
        sums = self.limbs(i, words) @ self.limbs(j, words)[:, :terms].T  # whole numbers below 2^53
        total = sum(int(s) << (LIMB * (a + b)) for (a, b), s in np.ndenumerate(sums))
        size = (self.sums[i] + self.sums[j] + 2 * terms * max(self.cut, self.slip)) * 2.0**self.unit * (1 + 2.0**-20)
        reach = (ceil(size) + 3 * terms) << (WORD * words)
        return total - reach, total + reach

    def limbs(self, row: int, words: int) -> Floats:
        """The row cut at 2^-(unit + 64·words) as signed limbs of 16 bits, lowest first: limbs × entries."""
        digits = self._digits(row, words)
        value = self.value[row, : row + 1]
        size = np.abs(value)
        own = np.where(size < 2.0 ** (53 - self.unit), size * 2.0**self.unit, 0).astype(np.uint64)
        lines = np.concatenate([digits[::-1], own[None]]).astype("<u8")
        parts = lines.view("<u2").reshape(words + 1, row + 1, PER_WORD).transpose(0, 2, 1)
        limbs = parts.reshape(-1, row + 1).astype(np.float64)
        for column in {row, *self._tails.get(row, {})}:
            exact = self._exact(row, column, digits[:, column])
            more = -(-exact.bit_length() // LIMB) - len(limbs)
            if more > 0:
                limbs = np.pad(limbs, ((0, more), (0, 0)))
            limbs[:, column] = np.frombuffer(exact.to_bytes(2 * len(limbs), "little"), dtype="<u2")
        return np.asarray(np.where(np.signbit(value), -limbs, limbs))

    def _digits(self, row: int, words: int) -> Words:
        """`words` further words of digits for every entry of a row; those that were not read yet are read now."""
        known = self._words.get(row, np.empty((0, row + 1), dtype=np.uint64))
        if len(known) < words:
            fresh = self.generator.integers(0, 1 << WORD, (words - len(known), row + 1), dtype=np.uint64)
            known = self._words[row] = np.concatenate([known, fresh])
        return known[:words]

    def _exact(self, row: int, column: int, words: Words) -> int:
        """One entry cut at 2^-(unit + 64·words), in that unit: what a decision has read comes before the row's words."""
        rest, size = self._tails.get(row, {}).get(column, (0, 0))
        for word in words:
            rest, size = (rest << WORD) + int(word), size + WORD
        extra = WORD * len(words)
        if column < row:
            return whole(float(self.value[row, column]), (rest, size), self.unit, extra)
        return self.chi.cut(row, (rest, size), extra)


ROUNDING = 2.0**-53  # relative error of one operation in float64
ROUNDINGS = 16  # besides those of a sum: difference, scale and weights, and the bound itself; 8 would do
SAFETY = 1.01  # what the bound's own floats may be off
HEIGHT = 256  # rows that are multiplied together: the triangle saves two thirds of the products
RANGE = 200  # scale and weights lie between 2^-200 and 2^200: no float overflows or vanishes


def simulated_matrix(scale: float, dimension: int, generator: np.random.Generator, signs: bool = False) -> Floats:
    """A draw of the ideal law in floating point, for post-processing that wants to know what noise looks like, never for noise.

    The difference of two Wishart matrices with scale matrix (scale/2)·I and dimension + 1 degrees of freedom, or of two draws of
    the cone of signs.
    """
    W, p = np.zeros((dimension, dimension)), dimension - 1
    for sign in (1, -1):
        L = np.tril(generator.standard_normal((dimension, dimension)), -1)
        L[np.diag_indices(dimension)] = np.sqrt(generator.chisquare(degrees(dimension)))
        if signs:
            length = np.sqrt(generator.chisquare(common_degrees(p)) / p)
            L[:p] *= length / np.linalg.norm(L[:p], axis=1, keepdims=True)
        W += sign * (L @ L.T)
    return np.asarray(W * (scale / 2))


class MatrixNoise:
    """The symmetric integer matrix Z_ij = ⌊w_i·w_j·(scale/2)·(W₁ − W₂)_ij + ½⌋, in blocks.

    W₁ and W₂ are independent Wishart matrices of dimension q = len(weights) with q + 1 degrees of freedom; with `signs` they are
    draws VVᵀ of the cone of equal diagonals (`SignFactor`), and the constant coordinate is last. Every block belongs to the same
    matrix, whatever the order in which blocks are asked for. Entries beyond ±2^62 are stored as ±2^62.
    """

    def __init__(
        self,
        scale: Fraction,
        weights: Sequence[Fraction],
        generator: np.random.Generator,
        digits: Digits = STANDARD,
        signs: bool = False,
    ) -> None:
        q, factor = len(weights), SignFactor if signs else Factor
        if not 1 + signs <= q <= LARGEST:
            raise ParameterError(f"matrix noise has between 1 and 2^20 rows, and of signs at least 2, got {q}.")
        limit = Fraction(1 << RANGE)
        if not all(1 / limit <= x <= limit for x in (scale, *set(weights))):
            raise ParameterError("scale and weights must be positive, between 2^-200 and 2^200.")
        self.dimension, self.signs = q, signs
        self.scale = Fraction(scale)
        self._denominator = lcm(*(Fraction(w).denominator for w in set(weights)))
        self._numerators: Wide = np.array([int(w * self._denominator) for w in weights], dtype=object)
        self._weights: Floats = np.array([float(w) for w in weights])
        self._factors = (factor(q, generator, digits), factor(q, generator, digits))

    def deviation(self, rows: slice, columns: slice) -> float:
        """Standard deviation of an entry off the diagonal, for weights of 1; of signs, of a pair or a sum beside the constant."""
        if not self.signs:
            return float(self.scale) * sqrt((self.dimension + 1) / 2)
        p = self.dimension - 1
        beside = p in (*range(self.dimension)[rows], *range(self.dimension)[columns])
        return float(self.scale) * (sqrt(common_degrees(p) / (2 * p)) if beside else pair_deviation(p))

    def block(self, rows: slice, columns: slice) -> Integers:
        """Some rows and columns of the matrix; strips of rows [a, b) and columns [a, q) cover it in little memory."""
        i, j = (np.arange(self.dimension)[part] for part in (rows, columns))
        out = np.zeros((len(i), len(j)), dtype=np.int64)
        for begin in range(0, len(i) if len(j) else 0, HEIGHT):
            part = i[begin : begin + HEIGHT]
            if np.array_equal(i, j):  # a symmetric block: one half is enough
                here = out[begin : begin + len(part), begin:]
                here[:] = self._entries(part, j[begin:])
                out[begin:, begin : begin + len(part)] = here.T
            else:
                out[begin : begin + len(part)] = self._entries(part, j)
        return out

    def _entries(self, i: Integers, j: Integers) -> Integers:
        """The entries of consecutive rows i and columns j."""
        y, error = self._proposal(i, j)
        near = np.rint(y)
        y -= near  # exact, as is the difference from one half where it matters
        doubtful = ~(0.5 - np.abs(y) > error) & ~(np.abs(near) > 2 * SATURATION + 2 * error)
        np.clip(near, -SATURATION, SATURATION, out=near)
        out = near.astype(np.int64)
        if doubtful.any():
            a, b = np.nonzero(doubtful)
            out[a, b] = self._decided(i[a], j[b])
        return out

    def _proposal(self, i: Integers, j: Integers) -> tuple[Floats, Floats]:
        """w_i·w_j·(scale/2)·(W₁ − W₂)_ij in floats, and how far it may be from the true one.

        For one factor, rows a and b cut to â and b̂ and m terms: |ab − fl(âb̂)| ≤ γ_m·|â||b̂| + e_b|â| + e_a|b̂| + e_a·e_b
        with e the factor's error; a larger multiple of |â||b̂| makes it κ(|â| + e_a/κ)(|b̂| + e_b/κ).
        """
        terms = int(min(i[-1], j[-1])) + 1
        left, right = float(self.scale / 2) * self._weights[i], self._weights[j]
        kappa = SAFETY * (terms + ROUNDINGS) * ROUNDING
        parts, lengths = [], []
        for factor in self._factors:
            a, b = factor.rows(i, terms), factor.rows(j, terms)
            parts.append(a @ b.T)
            norms = [np.sqrt(np.einsum("ij,ij->i", x, x)) * SAFETY for x in (a, b)]
            errors = [SAFETY * factor.error(k, terms) / kappa for k in (i, j)]
            lengths.append([norm + error for norm, error in zip(norms, errors, strict=True)])
        y = parts[0]
        y -= parts[1]
        y *= left[:, None]
        y *= right
        bounds = [np.stack(side, axis=1) for side in zip(*lengths, strict=True)]
        return y, (bounds[0] * (SAFETY * kappa * left)[:, None]) @ (bounds[1] * right[:, None]).T

    def _decided(self, i: Integers, j: Integers) -> Wide:
        """The entries at (i, j), decided in unbounded integers."""
        places = zip(np.minimum(i, j).tolist(), np.maximum(i, j).tolist(), strict=True)
        return np.array([self._one(a, b) for a, b in places], dtype=object)

    def _one(self, i: int, j: int) -> int:
        """One entry, with as many digits as it takes."""
        times = self.scale / 2 * Fraction(self._numerators[i] * self._numerators[j], self._denominator**2)
        words = 0
        while True:
            plus, minus = (factor.entry(i, j, words) for factor in self._factors)
            if plus is not None and minus is not None:
                low = int((times * (plus[0] - minus[1]) + HALF) // 1)
                high = int((times * (plus[1] - minus[0]) + HALF) // 1)
                if low == high or low >= SATURATION or high <= -SATURATION:
                    return max(-SATURATION, min(SATURATION, low))
            words += 1


SMALL = 1 / 8  # relative errors up to here add up to at most 1.07 times their sum; larger ones bound nothing


def common_degrees(p: int) -> int:
    """Degrees of freedom of the common length of p rows: p² + 2. Fewer, and the noise is too small (cone.md)."""
    return p * p + 2


def pair_deviation(p: int) -> float:
    """Standard deviation of the noise on a pair of p columns at scale 1: `MatrixNoise` has √((p + 2)/2)."""
    K = common_degrees(p)
    return sqrt(K * (K + 2) / (2 * p * p * (p + 2)))


class SignFactor(Factor):
    """V = L with its first p rows brought to the length τ/√p, τ one chi variable with p² + 2 degrees of freedom.

    `value`, `limbs` and `product` speak of L, as in any factor; `rows`, `error` and `entry` speak of V.
    """

    def __init__(self, q: int, generator: np.random.Generator, digits: Digits) -> None:
        super().__init__(q, generator, digits)
        self.p = p = q - 1
        self.common = Chi(np.array([common_degrees(p)]), generator, digits)
        length = float(self.common.value[0])
        slip = 2 * max(2.0**-self.unit, float(np.spacing(length)), float(np.spacing(abs(self.common.offset[0]))))
        norms = np.sqrt(np.einsum("ij,ij->i", self.value, self.value))[:p]
        missed = SAFETY * (sqrt(q) * self.cut + self.slip)
        # How far the float factor c of a row may be from the true one, relative to itself: norm, length and roundings.
        with np.errstate(divide="ignore", invalid="ignore"):
            off = np.where(norms > 2 * missed, missed / (norms - missed), np.inf) + slip / length
            off += (q + ROUNDINGS) * ROUNDING
            self._times: Floats = np.append(length / sqrt(p) / norms, 1.0)
            error = self._times[:p] * ((1.1 * off + 2 * ROUNDING) * norms + (1 + 1.1 * off) * missed)
        self._times[:p][off > SMALL] = 1.0  # whatever floats propose there is doubtful
        self._error: Floats = np.append(np.where(off > SMALL, np.inf, SAFETY * error), missed)

    def rows(self, i: Integers, terms: int) -> Floats:
        """The first entries of consecutive rows of V, in floats."""
        return np.asarray(super().rows(i, terms) * self._times[i[0] : i[-1] + 1, None])

    def error(self, i: Integers, terms: int) -> Array:
        """How far each of these rows may be from the true one, in Euclidean length."""
        return self._error[i[0] : i[-1] + 1]

    def entry(self, i: int, j: int, words: int) -> Interval | None:
        """Bounds of v_i·v_j, i ≤ j, from digits down to 2^-(unit + 64·words); None if they bound nothing yet.

        v_i·v_j = P·(τ²/p)^{k/2}/√(Π N) with P = L_i·L_j and N = ‖L‖² of the k rows that are brought to the common length.
        """
        unit = 1 << (self.unit + WORD * words)
        low, high = self.product(i, j, words)
        scaled = [row for row in (i, j) if row < self.p]
        k = len(scaled)
        norms = [self.product(row, row, words) for row in scaled]
        if any(below <= 0 for below, _ in norms):
            return None
        t_low, t_high = self._length(words)
        # |v_i·v_j|² is between P²·t^2k/(p^k·ΠN·unit⁴) at the ends: products of lengths cancel the units of the norms.
        largest = smallest = self.p**k
        for below, above in norms:
            largest, smallest = largest * above, smallest * below
        finest = self.unit + WORD * (words + 1)

        def root(P: int, t: int, divisor: int, up: int) -> Fraction:
            square = (P * t**k) ** 2 << (2 * finest)
            return Fraction(isqrt(square // divisor) + up, unit * unit << finest)

        # Towards zero the shortest length and the largest norms, away from it the other way round.
        ends = []
        for P, outward in ((low, low < 0), (high, high > 0)):
            size = root(abs(P), t_high, smallest, 1) if outward else root(abs(P), t_low, largest, 0)
            ends.append(-size if P < 0 else size)
        return ends[0], ends[1]

    def _length(self, words: int) -> tuple[int, int]:
        """Bounds of τ in units; reads the digits that are missing."""
        extra, offset = WORD * words, float(self.common.offset[0])
        rest, size = self.common.tail.get(0, (0, 0))
        while size < extra + hidden(offset, self.unit):
            rest, size = (rest << WORD) + more(self.generator), size + WORD
            self.common.tail[0] = rest, size
        value = self.common.cut(0, (rest, size), extra)
        low = value - 1 if np.signbit(offset) else value
        return max(low, 0), low + 1
