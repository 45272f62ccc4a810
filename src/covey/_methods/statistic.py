"""What is to be computed on units, described and not computed: a model describes, and the driver computes behind a seal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey._core.arrays import Array
from covey._core.tables.counts import part
from covey._core.tables.distance import largest
from covey._core.tables.events import WEIGHT_STEPS, Histories
from covey._engines.rows import then
from covey.errors import InternalError
from covey.measure.query import Query

Kernel = Callable[[Any], Any]  # from a batch of units to a sum that can be added to others of its kind


@dataclass(frozen=True, eq=False)
class Statistic:
    """Sums of kernels over batches of units, and pure functions of these.

    Attributes:
        function: a kernel, or a function of other statistics.
        inputs: these other statistics; none for a kernel.
        arguments: what the function is given besides.
        all_at_once: whether a kernel wants all units at once, and not batch by batch.
        cached: whether a kernel's sum is kept for later asks, so that units are passed through once.
    """

    function: Callable[..., Any]
    inputs: tuple[Statistic, ...] = ()
    arguments: tuple[Any, ...] = ()
    all_at_once: bool = False
    cached: bool = False

    @classmethod
    def sum(cls, kernel: Kernel, step: Callable[[Any], Any] | None = None, cached: bool = False) -> Statistic:
        """A sum over units, after a step on each of them."""
        return cls(then(step, kernel), cached=cached)

    @classmethod
    def tables(cls, query: Query) -> Statistic:
        """The tables of a query, one after the other. Their noise rests on a promise: a unit adds 1 to each at most."""
        kernel = AtMostOne(query.kernel(), query.starts)
        return cls.sum(kernel).map(part)

    def map(self, function: Callable[..., Any], *arguments: Any) -> Statistic:
        """A pure function of it."""
        return Statistic(function, (self,), arguments)


def entries(matrix: Array, *places: Any) -> Array:
    """A part of a matrix."""
    return np.asarray(matrix[places])


def largest_of(distances: Sequence[Statistic]) -> Statistic:
    """The largest of several distances."""
    if len(distances) == 1:
        return distances[0].map(largest)
    return Statistic(largest, tuple(distances))


@dataclass(frozen=True, eq=False)
class AtMostOne:
    """A query's kernel that keeps what its sensitivity rests on: non-negative counts, each table's at most one a unit.

    Attributes:
        kernel: of the query.
        starts: where its tables begin, and where the last one ends.
    """

    kernel: Kernel
    starts: Any

    def __call__(self, batch: Any) -> Any:
        """Count a batch, or refuse: a kernel that breaks this breaks it for every table, whatever it holds."""
        counts = self.kernel(batch)
        cells = part(counts)
        totals = np.add.reduceat(cells, self.starts[:-1])
        if cells.min(initial=0) < 0 or totals.max(initial=0) > self._most(batch):
            raise InternalError("a query counts a unit more than once in a table: its noise would be too small.")
        return counts

    def _most(self, batch: Any) -> int:
        """What a table of the batch may sum to: its units, persons in steps."""
        if isinstance(batch, Histories):
            return batch.n * WEIGHT_STEPS
        return len(batch)
