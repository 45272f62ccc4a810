"""Exact tables of one and of two columns of codes, as kernels from a batch to a sum that can be merged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.tables.counts import Counts
from covey.core.tables.domain import Domain

TABLE_ROWS = 1 << 15  # counted together at least: their joint codes stay in the processor's cache
# Threads hand the interpreter's lock over at every call, and wait for each other where calls are short: few bundles take longer
# blocks, of so many rows or joint codes at most.
LONG_ROWS, LONG_CODES = 1 << 17, 1 << 21
FULL_TABLES = 1000  # up to so many categories all pair tables are counted in one pass, and the rest follows from them
MOST_CELLS = 1 << 21  # cells of all joint tables together


@dataclass(frozen=True)
class PairTables:
    """Kernel: counts of all pair tables of category codes below `sizes`.

    Attributes with few categories are counted jointly, several at a time: the table of two bundles of three attributes holds nine
    pair tables, and costs as much to count as one. `matrix` takes it apart again.
    """

    sizes: tuple[int, ...]

    @cached_property
    def bundles(self) -> list[list[int]]:
        """Attributes that are counted jointly: as many as the joint tables have room for."""
        cap = 256
        while cap > 1:
            found = self._packed(cap)
            cells = sum(prod(self.sizes[a] for a in bundle) for bundle in found)
            if cells**2 // 2 <= MOST_CELLS:
                return found
            cap //= 2
        return self._packed(1)

    def _packed(self, cap: int) -> list[list[int]]:
        found: list[list[int]] = []
        room = 0
        for a, size in enumerate(self.sizes):
            if found and size <= room:
                found[-1].append(a)
                room //= size
            else:
                found.append([a])
                room = cap // size
        return found

    @cached_property
    def _cells(self) -> list[int]:
        return [prod(self.sizes[a] for a in bundle) for bundle in self.bundles]

    @property
    def _pairs(self) -> list[tuple[int, int]]:
        k = len(self.bundles)
        return list(combinations(range(k), 2)) if k > 1 else [(0, 0)]

    def __call__(self, batch: Array) -> Counts:
        """Count a batch of category codes."""
        cells, pairs = self._cells, self._pairs
        rows = max(TABLE_ROWS, min(LONG_ROWS, LONG_CODES // len(self.bundles)))
        tables = [np.zeros(cells[i] * cells[j] if i < j else cells[i], dtype=np.int64) for i, j in pairs]
        for start in range(0, len(batch), rows):
            part = batch[start : start + rows]
            codes = [self._joint(part, bundle) for bundle in self.bundles]
            for table, (i, j) in zip(tables, pairs, strict=True):
                joint = codes[i] * cells[j] + codes[j] if i < j else codes[i]
                table += np.bincount(joint, minlength=len(table))
        return Counts(tuple(tables))

    def _joint(self, part: Array, bundle: list[int]) -> Integers:
        code = part[:, bundle[0]].astype(np.int64)
        for a in bundle[1:]:
            code *= self.sizes[a]
            code += part[:, a]
        return code

    def matrix(self, counts: Counts) -> Integers:
        """All pair tables as one symmetric matrix; diagonal blocks hold the one-way counts on their diagonal."""
        starts = np.cumsum([0, *self.sizes])
        out = np.zeros((starts[-1], starts[-1]), dtype=np.int64)
        inside: dict[int, Integers] = {}

        def put(a: int, b: int, table: Integers) -> None:
            rows, columns = slice(starts[a], starts[a + 1]), slice(starts[b], starts[b + 1])
            out[rows, columns], out[columns, rows] = table, table.T

        for table, (i, j) in zip(counts.integers(), self._pairs, strict=True):
            left, right = self.bundles[i], self.bundles[j] if i < j else []
            joint = table.reshape([self.sizes[a] for a in [*left, *right]])
            inside.setdefault(i, joint.sum(axis=tuple(range(len(left), joint.ndim))))
            inside.setdefault(j, joint.sum(axis=tuple(range(len(left)))) if right else joint)
            for x, a in enumerate(left):
                for y, b in enumerate(right, len(left)):
                    put(a, b, _marginal(joint, (x, y)))
        for i, joint in inside.items():
            for x, a in enumerate(self.bundles[i]):
                put(a, a, np.diag(_marginal(joint, (x,))))
                for y, b in enumerate(self.bundles[i][x + 1 :], x + 1):
                    put(a, b, _marginal(joint, (x, y)))
        return out


def _marginal(joint: Integers, keep: tuple[int, ...]) -> Integers:
    return np.asarray(joint.sum(axis=tuple(x for x in range(joint.ndim) if x not in keep)))


def pair_matrix(batch: Array, sizes: Sequence[int]) -> Integers:
    """All pair tables of one batch, as one symmetric matrix."""
    kernel = PairTables(tuple(int(size) for size in sizes))
    return kernel.matrix(kernel(batch))


def merge_pairs(pairs: Integers, maps: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """Pair tables of merged categories, by adding up those of the categories."""
    starts = np.cumsum([0, *sizes[:-1]])
    place = np.concatenate([m + start for m, start in zip(maps, starts, strict=True)])
    half = np.zeros((sum(sizes), len(place)), dtype=np.int64)
    np.add.at(half, place, pairs)
    out = np.zeros((sum(sizes), sum(sizes)), dtype=np.int64)
    np.add.at(out, place, half.T)
    return out


def centred_counts(counts: Integers, domain: Domain) -> Integers:
    """c_a c_b times the centred pair tables: integers. The categories of every attribute count all rows."""
    c, one_way = domain.counts[domain.block_of], np.diag(counts)
    n = one_way[domain.block(0)].sum()
    return np.asarray(c[:, None] * c * counts - c[:, None] * one_way[:, None] - c * one_way + n)


def dependence(counts: Integers, domain: Domain, n: int) -> Integers:
    """How far pair tables are from products of their own margins: Σ_{a<b} Σ|n·N_ij − N_i·N_j|, 2n² times total variations.

    A replaced row moves a table's distance by 3/n at most: the table by 1/n, each margin by 1/n.
    """
    one_way = np.diag(counts)
    apart = np.abs(n * counts - one_way[:, None] * one_way)
    return np.array([np.triu(np.where(domain.same_block, 0, apart)).sum()], dtype=np.int64)


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


def range_counts(batch: Array, columns: tuple[int, ...], edges: tuple[Integers, ...]) -> Counts:
    """Kernel: how many codes of some columns lie in each range [edges[i], edges[i + 1]) of a partition of all codes."""
    ranges = (np.searchsorted(own[1:-1], batch[:, j], side="right") for j, own in zip(columns, edges, strict=True))
    return Counts(tuple(np.bincount(r, minlength=len(own) - 1) for r, own in zip(ranges, edges, strict=True)))


def ranges_of(counts: Integers, edges: Integers) -> Integers:
    """Counts of ranges from counts of single codes."""
    return np.asarray(np.add.reduceat(counts, edges[:-1]))


def counted_fully(sizes: Sequence[int]) -> list[bool]:
    """Which columns are counted code by code: small ones first, as long as all of them together have room."""
    order = np.argsort(sizes, kind="stable")
    room = np.cumsum(np.asarray(sizes, dtype=np.float64)[order]) <= FULL_CODES
    out = np.zeros(len(order), dtype=bool)
    out[order] = room
    return out.tolist()
