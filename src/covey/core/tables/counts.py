"""Exact integer statistics of records: what `regain` measures, as kernels from a batch to a sum that can be merged.

Everything that privacy rests on is an integer, and what a record adds depends on that record alone.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats, Integers, strips
from covey.core.noise.integers import CLAMP
from covey.core.paper.subspace import integer_scores
from covey.core.tables.coding import UNIT, Coding, squared_lengths
from covey.core.tables.moments import EXACT_ROWS, Moments, block_rows, moments
from covey.core.tables.sparse import Batch, column_ones, dense, is_sparse, row_ones
from covey.errors import ParameterError

MAX_ROWS = 1 << 32  # so many contributions of 2^20 stay below 2^53, up to where float64 counts exactly
MAX_PERSONS = (1 << 21) - 1  # of flags: 2^20 steps each, of 2^20 a step, stay below the clamp at 2^61


def require_exact(n: int, categories: int = 1, steps: int = 1) -> None:
    """Refuse, on public sizes alone, a table whose sums could outgrow the arithmetic that holds them exactly.

    No record adds more than 2^20 to an entry of a float64 sum (coded bits, fixed-point records), and the sums that combine
    two such entries add as much again: 2^32 rows stay below 2^53. Pair tables, scaled by numbers of categories, are int64: they
    reach 4·c²·n, which must stay below the clamp of the noise.

    Persons weigh 2^20 steps each, in int64. A coded bit table adds 2^20 a step, so 2^21 persons reach the clamp.
    """
    if steps > 1 and categories == 1 and n > MAX_PERSONS:
        raise ParameterError(f"a table of {n} persons is too long: their sums are exact up to {MAX_PERSONS} persons.")
    if n > MAX_ROWS:
        raise ParameterError(f"a table of {n} rows is too long: sums are exact up to {MAX_ROWS} rows.")
    if 4 * categories**2 * n * steps >= CLAMP:
        of = "rows" if steps == 1 else "persons"
        raise ParameterError(
            f"an attribute with {categories} categories is too wide for {n} {of}: its pair tables would pass 2^61. "
            "Declare fewer categories."
        )


def coded_moments(batch: Batch, coding: Coding) -> Moments:
    """First and second moments of coded rows, exact: entries are below 2^10, so sums of 2^33 rows fit a float64.

    Those of rows inside the ball follow from the moments of their bits. Rows that are cut are coded one by one.
    """
    n, p = batch.shape
    if not coding.clips:
        return shifted_moments(moments(batch), coding.centre)
    long = coding.lengths(batch) > coding.radius_squared
    inside = shifted_moments(moments(batch[~long]), coding.centre)
    first, second = inside.first, inside.second
    cut, step = batch[long], max(1, block_rows(p) // 4)
    for start in range(0, cut.shape[0], step):
        u = coding.encode(dense(cut[start : start + step]))
        first += u.sum(axis=0)
        second += u.T @ u
    return Moments(n, first, second)


def shifted_moments(bits: Moments, centre: Integers) -> Moments:
    """Moments of rows u = 1024·x − centre, from those of the bits: exact integers."""
    n, a, c = bits.n, UNIT * bits.first, centre.astype(bits.first.dtype)
    second = UNIT**2 * bits.second
    for begin, end in strips(len(c)):
        strip = second[begin:end]
        strip -= np.outer(a[begin:end], c)
        strip -= np.outer(c[begin:end], a - n * c)
    return Moments(n, a - n * c, second)


@dataclass(frozen=True)
class Counts:
    """Integer sums under any names."""

    values: tuple[Array, ...]

    def __add__(self, other: Counts) -> Counts:
        return Counts(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))

    def times(self, weight: int) -> Counts:
        """The sums, so many times, as integers."""
        return Counts(tuple(v.astype(np.int64) * weight for v in self.values))

    def integers(self) -> tuple[Integers, ...]:
        """The sums as integers."""
        return tuple(v.astype(np.int64) for v in self.values)


def part(counts: Counts, i: int = 0) -> Integers:
    """One of several sums, as integers."""
    return np.asarray(counts.values[i].astype(np.int64))


def side_by_side(counts: Counts) -> Integers:
    """All sums, one after the other."""
    return np.concatenate(counts.integers())


def parity_sums(batch: Batch) -> Counts:
    """Σ z_i z_j z_k and Σ z_i z_j z_k z_l of signs z = 2x − 1, as (column × pair) and (pair × pair) matrices."""
    p = batch.shape[1]
    i, j = np.triu_indices(p, 1)
    triples, quads = np.zeros((p, len(i))), np.zeros((len(i), len(i)))
    for start in range(0, batch.shape[0], EXACT_ROWS):
        z: Array = 2 * dense(batch[start : start + EXACT_ROWS]).astype(np.float32) - 1
        pairs = z[:, i] * z[:, j]
        triples += z.T @ pairs
        quads += pairs.T @ pairs
    return Counts((triples, quads))


def column_counts(batch: Batch) -> Counts:
    """How many rows have a one in each column."""
    if is_sparse(batch):
        return Counts((column_ones(batch).astype(np.float64),))
    total = np.zeros(batch.shape[1])
    for start in range(0, batch.shape[0], EXACT_ROWS):
        total += batch[start : start + EXACT_ROWS].sum(axis=0, dtype=np.uint32)
    return Counts((total,))


def size_counts(batch: Batch) -> Counts:
    """How many rows have 0, 1, …, p ones."""
    ones = row_ones(batch) if is_sparse(batch) else batch.sum(axis=1, dtype=np.int64)
    return Counts((np.bincount(ones, minlength=batch.shape[1] + 1).astype(np.float64),))


def norm_counts(batch: Batch, centre: Integers, edges: Integers) -> Counts:
    """Histogram of ‖x − centre‖², computed in integers of 2^-20, over public edges."""
    cells = np.searchsorted(edges, squared_lengths(batch, centre))
    return Counts((np.bincount(cells, minlength=len(edges) + 1).astype(np.float64),))


def score_counts(batch: Batch, directions: Floats, edges: Integers) -> Counts:
    """Histograms of the scores ⟨v_a, x⟩ for quantised directions, over public integer edges, one row of each per score."""
    scores = integer_scores(batch, directions)
    bins = edges.shape[1] + 1
    rows = [np.bincount(np.searchsorted(e, s), minlength=bins) for e, s in zip(edges, scores.T, strict=True)]
    return Counts((np.array(rows, dtype=np.float64).reshape(len(edges), bins),))
