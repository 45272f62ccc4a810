"""Rows that are in memory already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

from threadpoolctl import threadpool_limits

from covey.core.arrays import Array
from covey.engines.rows import S

BATCH_ENTRIES = 1 << 23


class ArrayRows:
    """A matrix in memory, prepared batch by batch so that no second copy of it is made."""

    def __init__(self, X: Array, prepare: Callable[[Array], Array] = lambda batch: batch) -> None:
        self._X = X
        self._prepare = prepare
        self.n, self.p = X.shape

    def batches(self) -> Iterator[Array]:
        """The prepared records, in order."""
        rows = max(1, BATCH_ENTRIES // self.p)
        for start in range(0, self.n, rows):
            yield self._prepare(self._X[start : start + rows])

    def reduce(self, kernel: Callable[[Array], S]) -> S:
        """The sum of kernel(batch) over the batches."""
        # More BLAS threads than processors make a product several times slower, so the number is set here.
        with threadpool_limits(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else None):
            batches = self.batches()
            total = kernel(next(batches))
            for batch in batches:
                total = total + kernel(batch)
        return total
