"""Rows that are in memory already."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import cache

from threadpoolctl import ThreadpoolController

from covey.core.arrays import Array
from covey.engines.rows import S

BATCH_ENTRIES = 1 << 23


@cache
def _blas() -> ThreadpoolController:
    """The thread pools of this process; finding them takes a millisecond, so they are found once."""
    return ThreadpoolController()


def processors() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1)


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
        with _blas().limit(limits=processors()):
            batches = self.batches()
            total = kernel(next(batches))
            for batch in batches:
                total = total + kernel(batch)
        return total
