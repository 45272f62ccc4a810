"""Bartlett's factor of a Wishart matrix, with digits on demand, and exact sums of products of its rows.

LLᵀ is Wishart with q + 1 degrees of freedom if L is lower triangular with independent entries, standard normal below the
diagonal and χ with q + 1 − i degrees of freedom on it, i = 0, …, q − 1. Floats hold the leading digits. Where a decision needs
more, whole rows get further words of digits, and products are summed in limbs of 16 bits, which float64 does without error
(docs/proofs/exact.md, section 4).
"""

from __future__ import annotations

from math import ceil, isqrt, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import STRIP, Array, Floats, Integers
from covey.core.noise.chi import Chi
from covey.core.noise.normals import WORD, Digits, Normals, Tail, Words, whole

LIMB = 16  # bits: a product of two limbs has 32, and float64 sums 2^20 of them exactly
PER_WORD = WORD // LIMB
BATCH = 1 << 23  # limbs that are held at a time
LARGEST = 1 << 20  # dimension: sums of so many products of two limbs stay below 2^53

Wide = NDArray[Any]  # of Python's unbounded integers


def degrees(q: int) -> Integers:
    """Degrees of freedom on the diagonal of the factor: q + 1, …, 2. One fewer, and the noise is not private (cone.md)."""
    return q + 1 - np.arange(q)


def simulated_factor(q: int, generator: np.random.Generator) -> Floats:
    """A draw of L in floating point: for post-processing that wants to know what noise looks like, never for noise."""
    L = np.tril(generator.standard_normal((q, q)), -1)
    L[np.diag_indices(q)] = np.sqrt(generator.chisquare(degrees(q)))
    return np.asarray(L)


class Factor:
    """L with digits on demand: `value` holds each entry up to an error below `cut` (off the diagonal) or `slip` (on it)."""

    def __init__(self, q: int, generator: np.random.Generator, digits: Digits) -> None:
        self.generator, self.unit = generator, digits.unit
        self.value: Floats = np.zeros((q, q))
        self._tails: dict[int, dict[int, Tail]] = {}
        self._words: dict[int, Words] = {}  # row → a line of words for each level
        self.sums: Floats = np.zeros(q)  # of absolute values, by row
        largest = 0.0
        for begin, end in _row_groups(q):
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

    def products(self, i: Integers, j: Integers, words: int) -> Wide:
        """Σ_k x_ik·x_jk of pairs of rows i ≤ j, exactly, where x is L cut at 2^-(unit + 64·words), in that unit squared."""
        out = np.zeros(len(i), dtype=object)
        columns = np.unique(j)
        size = max(1, BATCH // (PER_WORD * (words + 1) * len(self.value)))
        for begin in range(0, len(columns), size):
            group = columns[begin : begin + size]
            right = _stack([self.limbs(int(row), words) for row in group])
            inside = np.flatnonzero((j >= group[0]) & (j <= group[-1]))
            for row in np.unique(i[inside]):
                mine = inside[i[inside] == row]
                chosen = right[np.searchsorted(group, j[mine]), :, : row + 1]
                left = self.limbs(int(row), words)
                sums = chosen.reshape(-1, row + 1) @ left.T
                out[mine] = _carried(sums.reshape(len(mine), -1, len(left)))
        return out

    def reach(self, i: Integers, j: Integers) -> Wide:
        """E with Σ_k |x_ik·x_jk − L_ik·L_jk| ≤ E·2^(64·words) for the cut entries x of `products`, in its units.

        Each term misses by less than |x_ik| + |x_jk| + 1, and |x| is at most |value|, its error and one unit.
        """
        terms = i + 1
        error = max(self.cut, self.slip)
        sums = (self.sums[i] + self.sums[j] + 2 * terms * error) * (2.0**self.unit * (1 + 2.0**-20))
        return np.array([ceil(s) + 3 * int(m) for s, m in zip(sums, terms, strict=True)], dtype=object)

    def limbs(self, row: int, words: int) -> Floats:
        """The row cut at 2^-(unit + 64·words) as signed limbs of 16 bits, lowest first: limbs × entries."""
        digits = self._digits(row, words)
        value = self.value[row, : row + 1]
        size = np.abs(value)
        own = np.where(size < 2.0 ** (53 - self.unit), size * 2.0**self.unit, 0).astype(np.uint64)
        lines = np.concatenate([digits[::-1], own[None]]).astype("<u8")
        limbs = (
            lines.view("<u2")
            .reshape(words + 1, row + 1, PER_WORD)
            .transpose(0, 2, 1)
            .reshape(-1, row + 1)
            .astype(np.float64)
        )
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


def _row_groups(q: int) -> list[tuple[int, int]]:
    """Ranges of rows whose numbers are drawn together: enough for speed, few enough for memory."""
    size = max(1, STRIP // 8 // q)
    return [(begin, min(q, begin + size)) for begin in range(0, q, size)]


def _stack(rows: list[Floats]) -> Floats:
    """Rows of limbs of different lengths, filled with zeros."""
    shape = max(len(row) for row in rows), max(row.shape[1] for row in rows)
    out = np.zeros((len(rows), *shape))
    for place, row in zip(out, rows, strict=True):
        place[: len(row), : row.shape[1]] = row
    return out


def _carried(sums: Array) -> Wide:
    """Σ_ab sums[:, a, b]·2^(16(a + b)) in unbounded integers; each sum is a whole number below 2^53."""
    _, left, right = sums.shape
    out: Wide = np.zeros(len(sums), dtype=object)
    exact = sums.astype(np.int64)
    for power in range(left + right - 2, -1, -1):
        here = [exact[:, a, power - a] for a in range(max(0, power - right + 1), min(left, power + 1))]
        out = out * (1 << LIMB) + np.sum(here, axis=0).astype(object)
    return out
