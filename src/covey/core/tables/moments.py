"""First and second moments of the rows, as sums that can be computed in any order and merged; of sparse rows too.

A wide, mostly empty table of bits in scipy's CSR format is never written out. Its sums are exact integers, the same as those of
dense rows to the last bit.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from covey.core.arrays import Array, Floats, Integers, is_bits, strips

SparseBits: TypeAlias = "csr_array[Any, tuple[int, int]]"
Batch: TypeAlias = Any  # rows in either form: Array or SparseBits

# A multiplication of sparse rows costs about as much as so many of dense ones.
SPARSE_COST = 500


def is_sparse(batch: Any) -> bool:
    """Whether rows are in one of scipy's sparse formats."""
    return bool(issparse(batch))


def dense(batch: Batch) -> Array:
    """The rows written out: for narrow tables and short batches."""
    return np.asarray(batch.toarray() if is_sparse(batch) else batch)


def canonical(X: Any) -> SparseBits:
    """CSR rows with sorted columns, each entry at most once and none of them zero; X itself is not changed.

    Entries that are given twice are added, as in the dense matrix. Raises ValueError where the index arrays contradict each
    other, which scipy's products would follow out of bounds.
    """
    rows = csr_array(X)
    rows.check_format(full_check=True)
    if not rows.has_canonical_format or np.count_nonzero(rows.data) < rows.nnz:
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def column_ones(batch: SparseBits) -> Integers:
    """Ones in each column."""
    return np.bincount(batch.indices, minlength=batch.shape[1])


def row_ones(batch: SparseBits) -> Integers:
    """Ones in each row."""
    return np.diff(batch.indptr).astype(np.int64)


def worth_it(lengths: Integers, dense_cost: int) -> bool:
    """Whether products of lists of these lengths with themselves are cheaper than so many dense multiplications."""
    return int((lengths**2).sum()) * SPARSE_COST < dense_cost


def pair_sums(batch: SparseBits) -> Floats:
    """XᵀX, in strips of its rows."""
    p = batch.shape[1]
    rows = batch.astype(np.int32)
    columns = rows.T.tocsr()
    out = np.zeros((p, p))
    for begin, end in strips(p):
        out[begin:end] = (columns[begin:end] @ rows).toarray()
    return out


def overlaps(batch: SparseBits) -> Integers:
    """How many ordered pairs of rows have 0, 1, …, p ones in common."""
    n, p = batch.shape
    rows = batch.astype(np.int32)
    columns = rows.T.tocsr()
    counts = np.zeros(p + 1, dtype=np.int64)
    for begin, end in strips(n):
        product = rows[begin:end] @ columns
        counts += np.bincount(product.data, minlength=p + 1)
        counts[0] += (end - begin) * n - product.nnz
    return counts


# A float32 holds every integer up to 2^24 exactly, so sums over a block of 0/1 rows this long lose nothing.
EXACT_ROWS = 1 << 14
PRODUCT_ENTRIES = 1 << 25  # of a block that is multiplied with itself: 128 MB in float32


@dataclass(frozen=True)
class Moments:
    """n, Σx and Σxxᵀ. Private: it has no serializer and never leaves the machine."""

    n: int
    first: Array
    second: Array

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.first + other.first, self.second + other.second)

    def counted_as(self, n: int) -> Moments:
        """The same sums, taken for those of so many rows."""
        return Moments(n, self.first, self.second)

    def times(self, weight: int) -> Moments:
        """The moments of so many copies of each row, for rows of integers: weighted sums pass what a float64 holds."""
        first, second = (values.astype(np.int64) * weight for values in (self.first, self.second))
        return Moments(self.n * weight, first, second)

    @property
    def second_moment_matrix(self) -> Floats:
        """S = (1/n) Σ xxᵀ."""
        return self.second / self.n


def block_rows(p: int) -> int:
    """How many rows of p columns are multiplied together: few enough for float32 to be exact, and for the memory."""
    return max(256, min(EXACT_ROWS, PRODUCT_ENTRIES // p))


def moments_of(batches: Iterable[Batch]) -> Moments:
    """Moments of all rows of some batches."""
    return reduce(add, (moments(batch) for batch in batches))


def moments(batch: Batch) -> Moments:
    """Moments of one batch of rows.

    Rows of 0/1 (Boolean or integer type) use float32 products over blocks, which are exact, and float64 sums of
    the blocks, which stay exact up to 2^53 rows. Real rows are computed in float64. Sparse rows are multiplied as such where
    that is cheaper; the sums are the same.
    """
    n, p = batch.shape
    if is_sparse(batch) and worth_it(row_ones(batch), n * p * p):
        second = pair_sums(batch)
        return Moments(n, second.diagonal().copy(), second)
    exact = is_sparse(batch) or is_bits(batch)
    second = np.zeros((p, p))
    for start in range(0, n, block_rows(p)):
        rows = dense(batch[start : start + block_rows(p)])
        block: Array = np.ascontiguousarray(rows, dtype="f4" if exact else "f8")
        second += block.T @ block
    first = second.diagonal().copy() if exact else np.asarray(batch.sum(axis=0, dtype=np.float64))
    return Moments(n, first, second)
