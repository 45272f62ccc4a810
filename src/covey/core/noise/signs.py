"""Matrix noise for rows of signs, drawn exactly: less of it than `MatrixNoise` for the same promise.

Rows (z, a) of p signs and a constant move Σhhᵀ inside a smaller cone than that of all positive semidefinite matrices: the first p
entries of its diagonal are equal. The noise of this cone is a Wishart factor whose first p rows are brought to one common length,
which is itself drawn (docs/proofs/cone.md, "Signs"). Floats propose, integers decide, as in `MatrixNoise`.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import isqrt, sqrt

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.noise.chi import Chi
from covey.core.noise.integers import SATURATION
from covey.core.noise.matrix import ROUNDING, ROUNDINGS, SAFETY, MatrixNoise
from covey.core.noise.normals import STANDARD, WORD, Digits, hidden, more
from covey.core.noise.wishart import Factor, Wide, simulated_factor
from covey.errors import ParameterError

HALF = Fraction(1, 2)  # what is added before rounding down
SMALL = 1 / 8  # relative errors up to here add up to at most 1.07 times their sum; larger ones bound nothing

Interval = tuple[Fraction, Fraction]


def common_degrees(p: int) -> int:
    """Degrees of freedom of the common length of p rows: p² + 2. Fewer, and the noise is too small (cone.md)."""
    return p * p + 2


def pair_deviation(p: int) -> float:
    """Standard deviation of the noise on a pair of p columns at scale 1: `MatrixNoise` has √((p + 2)/2)."""
    K = common_degrees(p)
    return sqrt(K * (K + 2) / (2 * p * p * (p + 2)))


def simulated_signs(scale: float, dimension: int, generator: np.random.Generator) -> Floats:
    """A draw of the ideal law in floating point, for post-processing that wants to know what noise looks like."""
    p = dimension - 1
    W = np.zeros((dimension, dimension))
    for sign in (1, -1):
        L = simulated_factor(dimension, generator)
        length = np.sqrt(generator.chisquare(common_degrees(p)) / p)
        L[:p] *= length / np.linalg.norm(L[:p], axis=1, keepdims=True)
        W += sign * (L @ L.T)
    return np.asarray(W * (scale / 2))


class SignFactor(Factor):
    """V = L with its first p rows brought to the length τ/√p, τ one chi variable with p² + 2 degrees of freedom.

    `value`, `limbs` and `products` speak of L, as in any factor; `rows` and `error` speak of V.
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
        low, high = self._sum(i, j, words)
        scaled = [row for row in (i, j) if row < self.p]
        k = len(scaled)
        norms = [self._sum(row, row, words) for row in scaled]
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

    def _sum(self, i: int, j: int, words: int) -> tuple[int, int]:
        """Bounds of L_i·L_j in units squared."""
        rows = np.array([i]), np.array([j])
        total = int(self.products(*rows, words)[0])
        reach = int(self.reach(*rows)[0]) << (WORD * words)
        return total - reach, total + reach

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


class SignNoise(MatrixNoise):
    """The symmetric integer matrix Z_ij = ⌊w_i·w_j·(scale/2)·(X₁ − X₂)_ij + ½⌋, in blocks; the constant coordinate is last.

    X₁ and X₂ are independent draws VVᵀ of the cone of equal diagonals (`SignFactor`).
    """

    _factors: tuple[SignFactor, SignFactor]

    def __init__(
        self,
        scale: Fraction,
        weights: Sequence[Fraction],
        generator: np.random.Generator,
        digits: Digits = STANDARD,
    ) -> None:
        if len(weights) < 2:
            raise ParameterError("noise for signs has a column and the constant, or more.")
        super().__init__(scale, weights, generator, digits, SignFactor)

    def deviation(self, rows: slice, columns: slice) -> float:
        """Standard deviation of an entry off the diagonal, for weights of 1: of a pair, or of a sum beside the constant."""
        p = self.dimension - 1
        beside = p in (*range(self.dimension)[rows], *range(self.dimension)[columns])
        return float(self.scale) * (sqrt(common_degrees(p) / (2 * p)) if beside else pair_deviation(p))

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
