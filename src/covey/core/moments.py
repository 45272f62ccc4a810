"""First and second moments of the rows, as sums that can be computed in any order and merged."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats, is_bits

# A float32 holds every integer up to 2^24 exactly, so sums over a block of 0/1 rows this long lose nothing.
BLOCK_ROWS = 1 << 14


@dataclass(frozen=True)
class Moments:
    """n, Σx and Σxxᵀ. Private: it has no serializer and never leaves the machine."""

    n: int
    first: Floats
    second: Floats

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.first + other.first, self.second + other.second)

    @property
    def second_moment_matrix(self) -> Floats:
        """S = (1/n) Σ xxᵀ."""
        return self.second / self.n


def moments(batch: Array) -> Moments:
    """Moments of one batch of rows.

    Rows of 0/1 (Boolean or integer type) use float32 products over blocks, which are exact, and float64 sums of
    the blocks, which stay exact up to 2^53 rows. Real rows are computed in float64.
    """
    n, p = batch.shape
    exact = is_bits(batch)
    second = np.zeros((p, p))
    for start in range(0, n, BLOCK_ROWS):
        block: Array = np.ascontiguousarray(batch[start : start + BLOCK_ROWS], dtype="f4" if exact else "f8")
        second += block.T @ block
    first = second.diagonal().copy() if exact else np.asarray(batch.sum(axis=0, dtype=np.float64))
    return Moments(n, first, second)
