"""Exact counts of numbers' codes, as kernels from a batch to a sum that can be merged; private until noise meets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.tables.counts import Counts

FULL_CODES = 1 << 19  # so many codes of all numbers together are counted one by one, in a single pass; public


@dataclass(frozen=True)
class CodeCounts:
    """Kernel: how often each code of some columns occurs, at full resolution."""

    columns: tuple[int, ...]
    sizes: tuple[int, ...]

    def __call__(self, batch: Array) -> Counts:
        """Count a batch of codes."""
        pairs = zip(self.columns, self.sizes, strict=True)
        return Counts(tuple(np.bincount(batch[:, j].astype(np.int64, copy=False), minlength=size) for j, size in pairs))


@dataclass(frozen=True, eq=False)
class RangeCounts:
    """Kernel: how many codes of some columns lie in each range [edges[i], edges[i + 1]) of a partition of all codes."""

    columns: tuple[int, ...]
    edges: tuple[Integers, ...]

    def __call__(self, batch: Array) -> Counts:
        """Count a batch of codes."""
        return Counts(tuple(self._count(batch[:, j], e) for j, e in zip(self.columns, self.edges, strict=True)))

    @staticmethod
    def _count(codes: Array, edges: Integers) -> Integers:
        ranges = np.searchsorted(edges[1:-1], codes, side="right")
        return np.bincount(ranges, minlength=len(edges) - 1)


def ranges_of(counts: Integers, edges: Integers) -> Integers:
    """Counts of ranges from counts of single codes."""
    return np.asarray(np.add.reduceat(counts, edges[:-1]))


def counted_fully(sizes: Sequence[int]) -> list[bool]:
    """Which columns are counted code by code: small ones first, as long as all of them together have room."""
    order = np.argsort(sizes, kind="stable")
    room = np.cumsum(np.asarray(sizes, dtype=np.float64)[order]) <= FULL_CODES
    out = np.zeros(len(order), dtype=bool)
    out[order] = room
    return [bool(x) for x in out]
