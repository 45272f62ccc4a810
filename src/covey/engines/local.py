"""Rows that are in memory already."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from covey.core.arrays import Array
from covey.core.threads import blas_threads, processors
from covey.engines.rows import S

BATCH_ENTRIES = 1 << 23


class ArrayRows:
    """A matrix in memory, prepared batch by batch so that no second copy of it is made."""

    def __init__(self, X: Array, prepare: Callable[[Array], Array] = lambda batch: batch) -> None:
        self._X = X
        self._prepare = prepare
        self.n, self.p = X.shape

    def prepared(self, prepare: Callable[[Array], Array]) -> ArrayRows:
        """The same rows with one more step, applied record by record."""
        return ArrayRows(self._X, lambda batch: prepare(self._prepare(batch)))

    def batches(self) -> Iterator[Array]:
        """The prepared records, in order."""
        rows = max(1, BATCH_ENTRIES // self.p)
        for start in range(0, self.n, rows):
            yield self._prepare(self._X[start : start + rows])

    def records(self) -> Array:
        """All prepared records at once."""
        batches = list(self.batches())
        return batches[0] if len(batches) == 1 else np.concatenate(batches)

    def reduce(self, kernel: Callable[[Array], S]) -> S:
        """The sum of kernel(batch) over the batches."""
        with blas_threads(processors()):
            batches = self.batches()
            total = kernel(next(batches))
            for batch in batches:
                total = total + kernel(batch)
        return total
