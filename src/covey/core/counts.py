"""Exact integer statistics of records: what `regain` measures, as kernels from a batch to a sum that can be merged.

Everything that privacy rests on is an integer, and what a record adds depends on that record alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.coding import UNIT, Coding
from covey.core.moments import BLOCK_ROWS, Moments
from covey.core.noise import CLAMP
from covey.core.subspace import integer_scores
from covey.errors import ParameterError

MAX_ROWS = 1 << 32


def require_exact(n: int, categories: int = 1) -> None:
    """Refuse, on public sizes alone, a table whose sums could outgrow the arithmetic that holds them exactly.

    No record adds more than 2^20 to an entry of a float64 sum (coded bits, fixed-point records), and the sums that combine
    two such entries add as much again: 2^32 rows stay below 2^53. Pair tables, scaled by numbers of categories, are int64: they
    reach 4·c²·n, which must stay below the clamp of the noise.
    """
    if n > MAX_ROWS:
        raise ParameterError(f"a table of {n} rows is too long: sums are exact up to {MAX_ROWS} rows.")
    if 4 * categories**2 * n >= CLAMP:
        raise ParameterError(
            f"an attribute with {categories} categories is too wide for {n} rows: its pair tables would pass 2^61. "
            "Declare fewer categories."
        )


def coded_moments(batch: Array, coding: Coding) -> Moments:
    """First and second moments of coded rows, exact: entries are below 2^10, so sums of 2^33 rows fit a float64."""
    n, p = batch.shape
    first, second = np.zeros(p), np.zeros((p, p))
    for start in range(0, n, BLOCK_ROWS):
        u = coding.encode(batch[start : start + BLOCK_ROWS])
        first += u.sum(axis=0)
        second += u.T @ u
    return Moments(n, first, second)


def half_moments(bits: Moments) -> Moments:
    """Moments of rows coded around ½, from those of the bits: u = 1024·x − 512."""
    n, a, b = bits.n, bits.first, bits.second
    second = UNIT**2 * b - UNIT**2 // 2 * (a[:, None] + a) + UNIT**2 // 4 * n
    return Moments(n, UNIT * a - UNIT // 2 * n, second)


@dataclass(frozen=True)
class Counts:
    """Integer sums under any names."""

    values: tuple[Array, ...]

    def __add__(self, other: Counts) -> Counts:
        return Counts(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))

    def integers(self) -> tuple[Integers, ...]:
        """The sums as integers."""
        return tuple(v.astype(np.int64) for v in self.values)


def parity_sums(batch: Array) -> Counts:
    """Σ z_i z_j z_k and Σ z_i z_j z_k z_l of signs z = 2x − 1, as (column × pair) and (pair × pair) matrices."""
    p = batch.shape[1]
    i, j = np.triu_indices(p, 1)
    triples, quads = np.zeros((p, len(i))), np.zeros((len(i), len(i)))
    for start in range(0, len(batch), BLOCK_ROWS):
        z: Array = 2 * batch[start : start + BLOCK_ROWS].astype(np.float32) - 1
        pairs = z[:, i] * z[:, j]
        triples += z.T @ pairs
        quads += pairs.T @ pairs
    return Counts((triples, quads))


def column_counts(batch: Array) -> Counts:
    """How many rows have a one in each column."""
    total = np.zeros(batch.shape[1])
    for start in range(0, len(batch), BLOCK_ROWS):
        total += batch[start : start + BLOCK_ROWS].sum(axis=0, dtype=np.uint32)
    return Counts((total,))


def size_counts(batch: Array) -> Counts:
    """How many rows have 0, 1, …, p ones."""
    return Counts((np.bincount(batch.sum(axis=1, dtype=np.int64), minlength=batch.shape[1] + 1).astype(np.float64),))


def norm_counts(batch: Array, centre: Integers, edges: Integers) -> Counts:
    """Histogram of ‖x − centre‖², computed in integers of 2^-20, over public edges."""
    u = batch.astype(np.float64) * UNIT - centre
    cells = np.searchsorted(edges, (u * u).sum(axis=1))
    return Counts((np.bincount(cells, minlength=len(edges) + 1).astype(np.float64),))


def score_counts(batch: Array, directions: Floats, edges: Integers) -> Counts:
    """Histograms of the scores ⟨v_a, x⟩ for quantised directions, over public integer edges, one row of each per score."""
    scores = integer_scores(batch, directions)
    bins = edges.shape[1] + 1
    rows = [np.bincount(np.searchsorted(e, s), minlength=bins) for e, s in zip(edges, scores.T, strict=True)]
    return Counts((np.array(rows, dtype=np.float64).reshape(len(edges), bins),))
