"""Names for the arrays that flow through the package, the memory check before large ones, and how many threads BLAS may use.

Left alone, BLAS may start more threads than there are processors, which makes a product several times slower, or share a
small product among threads, which makes a fit of many small products up to ten times slower.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from covey.errors import ParameterError

Array = NDArray[Any]
Bits = NDArray[np.uint8]
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]

MEMORY_SHARE = 0.75  # of the memory may be asked for: the rest is the system's and the table's
STRIP = 1 << 22  # entries of a square matrix that are looked at together


def is_bits(batch: Array) -> bool:
    """Whether an array holds nothing but 0 and 1, in a Boolean or integer type."""
    if batch.dtype.kind == "b":
        return True
    return batch.dtype.kind in "iu" and bool(batch.max(initial=0) <= 1 and batch.min(initial=0) >= 0)


def packed_columns(bits: Array) -> NDArray[np.uint64]:
    """The columns of a 0/1 matrix, sixty-four records to the machine word: a marginal is an AND and a population count."""
    columns = np.packbits(np.ascontiguousarray(bits.T, dtype=bool), axis=1)
    return np.pad(columns, ((0, 0), (0, -columns.shape[1] % 8))).view(np.uint64)


def strips(size: int) -> Iterator[tuple[int, int]]:
    """Ranges of rows of a size × size matrix, of about STRIP entries each: temporaries stay small, whatever the size."""
    rows = max(1, STRIP // size)
    for begin in range(0, size, rows):
        yield begin, min(begin + rows, size)


def above_diagonal(begin: int, end: int, size: int) -> NDArray[np.bool_]:
    """Which entries of a strip of rows lie above the diagonal."""
    return np.asarray(np.arange(size) > np.arange(begin, end)[:, None])


def symmetric(values: Floats, p: int) -> Floats:
    """A symmetric matrix with zero diagonal from its entries above the diagonal."""
    out = np.zeros((p, p))
    out[np.triu_indices(p, 1)] = values
    return np.asarray(out + out.T)


def hollow(a: Floats, diagonal: Floats | float = 0.0) -> Floats:
    """A copy with zero diagonal, or with a given one."""
    a = np.array(a, dtype=np.float64)
    np.fill_diagonal(a, diagonal)
    return a


def counted(count: Array) -> Integers:
    """0 … c − 1 for each c in turn."""
    return np.asarray(np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count), dtype=np.int64)


def physical_memory() -> int:
    """Bytes of memory in this machine."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def allowed_memory() -> int:
    """Bytes that may be asked for."""
    return int(MEMORY_SHARE * physical_memory())


def require_memory(needed: int, what: str, way_out: str) -> None:
    """Refuse, before anything is allocated, what this machine cannot hold."""
    limit = allowed_memory()
    if needed > limit:
        raise ParameterError(
            f"{what} needs {min(needed, 2**200) / 2**30:.3g} GiB and this machine allows {limit / 2**30:.3g} GiB. {way_out}"
        )


@cache
def _pools() -> ThreadpoolController:
    """The thread pools of this process; finding them takes a millisecond, so they are found once."""
    return ThreadpoolController()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


def blas_threads(count: int) -> AbstractContextManager[object]:
    """Within this context BLAS uses so many threads."""
    context: AbstractContextManager[object] = _pools().limit(limits=count)
    return context
