"""Real records on a public grid: codes of a box's columns, rows around a centre cut to a ball, and their exact sums.

Everything that privacy rests on is an integer, and what a record adds depends on that record alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey._core.arrays import Array, Floats, Integers
from covey._core.tables.counts import EXACT_ROWS, Counts, Moments, integer_squares, into_ball

CODE_BITS = 20  # of a column between its bounds: `integer_squares` sums products of such codes exactly
UNIT = 1 << 10  # coded rows are integers in steps of 1/1024 of a column's spread


@dataclass(frozen=True, eq=False)
class RealGrid:
    """Public: the box of a body, and which of its columns can differ at all.

    A code counts steps of 2^-20 of the column's width from its lower bound.
    """

    lower: Floats
    width: Floats

    @classmethod
    def of(cls, lower: Floats, upper: Floats) -> RealGrid:
        """The grid of a box."""
        return cls(np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64) - lower)

    @property
    def live(self) -> Integers:
        """The columns with a width."""
        return np.flatnonzero(self.width > 0)

    def codes(self, points: Floats) -> Array:
        """Codes of the live columns, each from its own number alone."""
        at = self.live
        scaled = np.clip(np.nan_to_num((points[:, at] - self.lower[at]) / self.width[at]), 0.0, 1.0)
        return np.minimum(np.floor(scaled * (1 << CODE_BITS)), (1 << CODE_BITS) - 1).astype(np.int32)

    def scaled(self, points: Floats) -> Floats:
        """Points with the live columns between 0 and 1."""
        at = self.live
        return np.asarray((points[:, at] - self.lower[at]) / self.width[at])

    def points(self, scaled: Floats) -> Floats:
        """The points again; columns without a width have their one value."""
        out = np.tile(self.lower, (len(scaled), 1))
        at = self.live
        out[:, at] += scaled * self.width[at]
        return out


@dataclass(frozen=True, eq=False)
class Spread:
    """Public, or private by noise: a centre and a spread for every column, in codes, and a squared radius in steps of 2^-20.

    Rows are u = 1024·(code − centre)/spread, cut off toward zero, and those with ‖u‖² beyond the radius are pulled back to it.
    """

    centre: Integers
    spread: Integers
    radius_squared: int

    def rows(self, codes: Array) -> Floats:
        """Rows before they are pulled back: integers."""
        return np.trunc((codes.astype(np.float64) - self.centre) * UNIT / self.spread)

    def encode(self, codes: Array) -> Floats:
        """Rows inside the ball: integers. Truncating toward zero lengthens no row, so no row leaves it."""
        return into_ball(self.rows(codes), self.radius_squared)

    def cut(self, scaled: Floats) -> Floats:
        """What pulling back does to points between 0 and 1, in spreads; for post-processing, without rounding."""
        u = (scaled * (1 << CODE_BITS) - self.centre) / self.spread
        length = np.sqrt((u * u).sum(axis=1, keepdims=True))
        return np.asarray(u * np.minimum(1.0, np.sqrt(self.radius_squared) / UNIT / np.maximum(length, 1e-300)))


def length_counts(codes: Array, spread: Spread, edges: Integers) -> Counts:
    """Kernel: how many rows have ‖u‖² up to each edge, and beyond the last."""
    total = np.zeros(len(edges) + 1, dtype=np.int64)
    for start in range(0, len(codes), EXACT_ROWS):
        u = spread.rows(codes[start : start + EXACT_ROWS])
        total += np.bincount(np.searchsorted(edges, (u * u).sum(axis=1)), minlength=len(total))
    return Counts((total,))


def moment_sums(codes: Array, spread: Spread | None = None) -> Counts:
    """Kernel: Σu and Σuuᵀ (in the parts of `integer_squares`) of rows inside the ball, or of the codes themselves; exact."""
    p = codes.shape[1]
    total = Counts((np.zeros(p), *(np.zeros((p, p)) for _ in range(3))))
    for start in range(0, len(codes), EXACT_ROWS):
        part = codes[start : start + EXACT_ROWS]
        u = part.astype(np.float64) if spread is None else spread.encode(part)
        total = total + Counts((u.sum(axis=0), *integer_squares(u).values))
    return total


def scale_sums(codes: Array) -> Counts:
    """Kernel: Σx and Σx² of numbers in [0, 1), both in steps of 1/1024, cut off record by record: each adds 0 … 1023."""
    total = np.zeros((2, codes.shape[1]))
    for start in range(0, len(codes), EXACT_ROWS):
        x = codes[start : start + EXACT_ROWS].astype(np.int64) >> (CODE_BITS - 10)
        total += x.sum(axis=0), ((x * x) >> 10).sum(axis=0)
    return Counts((total.ravel(),))


def squares_of(sums: Counts) -> Integers:
    """Σuuᵀ as integers; `plan_reals` keeps them below 2^61."""
    _, high, mixed, low = sums.integers()
    return (high << 20) + (mixed << 10) + low


def scaled_moments(sums: Counts, n: int) -> Moments:
    """Moments of n records whose columns lie in [0, 1], from the sums of their codes.

    One replaced record moves distances between such moments and fixed ones by at most 1/n: docs/proofs/bodies.md.
    """
    unit = float(1 << CODE_BITS)
    first, high, mixed, low = (np.asarray(v, dtype=np.float64) for v in sums.values)
    return Moments(n, first / unit, (high + mixed / 2**10 + low / 2**20) / unit)
