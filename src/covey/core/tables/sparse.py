"""Rows of bits in scipy's CSR format: what is needed so that a wide, mostly empty table is never written out.

Every sum below is an exact integer, so sparse and dense rows give the same ones to the last bit.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from covey.core.arrays import Array, Floats, Integers, strips

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
