"""Matrix noise on the integers, drawn exactly: pure ε-DP for statistics of bounded nuclear-norm sensitivity.

The law is that of the cone mechanism (docs/proofs/cone.md), rounded to the integers. Floats propose each entry together with a
rigorous bound of their error; an entry that lies closer than this to a half-integer is computed in unbounded integers, with
further random digits until it is decided (docs/proofs/exact.md, section 4). No float decides a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fractions import Fraction
from math import lcm, sqrt

import numpy as np

from covey.core.arrays import STRIP, Array, Floats, Integers
from covey.core.noise.integers import SATURATION
from covey.core.noise.normals import STANDARD, WORD, Digits
from covey.core.noise.wishart import LARGEST, Factor, Wide, simulated_factor
from covey.errors import ParameterError

ROUNDING = 2.0**-53  # relative error of one operation in float64
ROUNDINGS = 16  # besides those of a sum: difference, scale and weights, and the bound itself; 8 would do
SAFETY = 1.01  # what the bound's own floats may be off
HEIGHT = 256  # rows that are multiplied together: the triangle saves two thirds of the products
RANGE = 200  # scale and weights lie between 2^-200 and 2^200: no float overflows or vanishes


def simulated_matrix(scale: float, dimension: int, generator: np.random.Generator) -> Floats:
    """A draw of the ideal law in floating point, for post-processing that wants to know what noise looks like.

    The difference of two Wishart matrices with scale matrix (scale/2)·I and dimension + 1 degrees of freedom.
    """
    W = np.zeros((dimension, dimension))
    for sign in (1, -1):
        L = simulated_factor(dimension, generator)
        W += sign * (L @ L.T)
    return np.asarray(W * (scale / 2))


class MatrixNoise:
    """The symmetric integer matrix Z_ij = ⌊w_i·w_j·(scale/2)·(W₁ − W₂)_ij + ½⌋, in blocks.

    W₁ and W₂ are independent Wishart matrices of dimension q = len(weights) with q + 1 degrees of freedom. Every block belongs to
    the same matrix, whatever the order in which blocks are asked for. Entries beyond ±2^62 are stored as ±2^62.
    """

    def __init__(
        self,
        scale: Fraction,
        weights: Sequence[Fraction],
        generator: np.random.Generator,
        digits: Digits = STANDARD,
        factor: type[Factor] = Factor,
    ) -> None:
        q = len(weights)
        if not 1 <= q <= LARGEST:
            raise ParameterError(f"matrix noise has between 1 and 2^20 rows, got {q}.")
        limit = Fraction(1 << RANGE)
        if not all(1 / limit <= x <= limit for x in (scale, *set(weights))):
            raise ParameterError("scale and weights must be positive, between 2^-200 and 2^200.")
        self.dimension = q
        self.scale = Fraction(scale)
        self._denominator = lcm(*(Fraction(w).denominator for w in set(weights)))
        self._numerators: Wide = np.array([int(w * self._denominator) for w in weights], dtype=object)
        self._weights: Floats = np.array([float(w) for w in weights])
        self._factors = (factor(q, generator, digits), factor(q, generator, digits))

    def deviation(self, rows: slice, columns: slice) -> float:
        """Standard deviation of an entry off the diagonal, for weights of 1: the same in every block."""
        del rows, columns
        return float(self.scale) * sqrt((self.dimension + 1) / 2)

    def block(self, rows: slice, columns: slice) -> Integers:
        """Some rows and columns of the matrix; the strips of `strips` cover its upper triangle in the least time and memory."""
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

    def strips(self) -> Iterator[tuple[slice, slice]]:
        """Rows and columns of strips that cover the upper triangle: rows [a, b) and columns [a, q)."""
        height = max(1, min(HEIGHT, STRIP // self.dimension))
        for begin in range(0, self.dimension, height):
            yield slice(begin, min(begin + height, self.dimension)), slice(begin, self.dimension)

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
            lengths.append(
                [
                    np.sqrt(np.einsum("ij,ij->i", x, x)) * SAFETY + SAFETY * factor.error(k, terms) / kappa
                    for x, k in ((a, i), (b, j))
                ]
            )
        y = parts[0]
        y -= parts[1]
        y *= left[:, None]
        y *= right
        bounds = [np.stack(side, axis=1) for side in zip(*lengths, strict=True)]
        return y, (bounds[0] * (SAFETY * kappa * left)[:, None]) @ (bounds[1] * right[:, None]).T

    def _decided(self, i: Integers, j: Integers) -> Wide:
        """The entries at (i, j), decided in unbounded integers."""
        i, j = np.minimum(i, j), np.maximum(i, j)
        out: Wide = np.zeros(len(i), dtype=object)
        half = self.scale / 2
        times = half.numerator * self._numerators[i] * self._numerators[j]
        reach = self._factors[0].reach(i, j) + self._factors[1].reach(i, j)
        unit = half.denominator * self._denominator**2 << (2 * self._factors[0].unit)
        left = np.arange(len(i))
        words = int(np.all(2 * times * reach >= unit))  # intervals of length 1 and more settle nothing
        while len(left):
            plus, minus = (factor.products(i[left], j[left], words) for factor in self._factors)
            fine = unit << (2 * WORD * words)
            total, error = plus - minus, reach[left] * (1 << (WORD * words))
            low, high = ((2 * times[left] * (total + e) + fine) // (2 * fine) for e in (-error, error))
            done = np.asarray(low == high, dtype=bool) | _saturated(low, high)
            out[left[done]] = np.clip(low[done], -SATURATION, SATURATION)
            left, words = left[~done], words + 1
        return out


def _saturated(low: Wide, high: Wide) -> Array:
    """Where all that an entry may be is stored as the same bound."""
    return np.asarray((low >= SATURATION) | (high <= -SATURATION), dtype=bool)
