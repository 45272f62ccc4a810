"""Categorical attributes side by side: a public domain, and algebra on matrices made of attribute blocks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag, helmert

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.codes.counts import Counts


@dataclass(frozen=True)
class Domain:
    """Public: the number of categories of every attribute, and which attributes are ordered."""

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]

    def only(self, attributes: Iterable[int]) -> Domain:
        """The domain of some attributes."""
        kept = list(attributes)
        return Domain(tuple(self.sizes[a] for a in kept), tuple(self.ordered[a] for a in kept))

    @cached_property
    def counts(self) -> Integers:
        """The sizes as an array."""
        return np.array(self.sizes, dtype=np.int64)

    @cached_property
    def starts(self) -> Integers:
        """First coordinate of each attribute's block, and the total at the end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @cached_property
    def block_of(self) -> Integers:
        """Attribute of each coordinate."""
        return np.repeat(np.arange(len(self.sizes)), self.counts)

    @property
    def total(self) -> int:
        """D, the number of categories of all attributes."""
        return int(self.starts[-1])

    def block(self, a: int) -> slice:
        """The coordinates of attribute a."""
        return slice(int(self.starts[a]), int(self.starts[a + 1]))

    @cached_property
    def same_block(self) -> NDArray[np.bool_]:
        """Where two coordinates belong to one attribute."""
        return np.asarray(self.block_of[:, None] == self.block_of[None])

    @cached_property
    def inside_blocks(self) -> tuple[Integers, Integers]:
        """Rows and columns of the entries of all diagonal blocks."""
        rows, columns = np.nonzero(self.same_block)
        return rows, columns

    def off_blocks(self, matrix: Floats) -> Floats:
        """The matrix with zeros in its diagonal blocks: an attribute paired with itself is never measured."""
        return np.where(self.same_block, 0.0, matrix)

    def sum_blocks(self, matrix: Floats) -> Floats:
        """Sums over blocks."""
        s = self.starts[:-1]
        return np.asarray(np.add.reduceat(np.add.reduceat(matrix, s, axis=0), s, axis=1))

    def spread(self, values: Floats) -> Floats:
        """One value per pair of attributes, repeated over its block."""
        return np.asarray(values[self.block_of[:, None], self.block_of[None]])

    def centre(self, matrix: Floats) -> Floats:
        """Subtract row and column means inside each block: the projection to the centred coding."""
        s, b, c = self.starts[:-1], self.block_of, self.counts
        matrix = matrix - (np.add.reduceat(matrix, s, axis=0) / c[:, None])[b]
        return np.asarray(matrix - (np.add.reduceat(matrix, s, axis=1) / c)[:, b])

    def simplex_basis(self) -> Floats:
        """Orthonormal basis of the centred coding, D × Σ(c − 1): Helmert's columns for each block."""
        return np.asarray(block_diag(*(helmert(c).T for c in self.sizes)))


# Rare and neighbouring categories are merged before pairs are measured, and taken apart again afterwards. Decisions rest on
# denoised one-way tables alone; merging a record is a public map applied to it.

TINY = 1e-12  # what is divided by is never less


def merge_ordered(p: Floats, tau: float) -> Integers:
    """Sweep neighbouring categories into bins of mass about tau; a heavy category starts its own bin."""
    bins = np.zeros(len(p), dtype=np.int64)
    current, mass = 0, 0.0
    for v, share in enumerate(p):
        if mass > 0.25 * tau and mass + share > 1.5 * tau:
            current, mass = current + 1, 0.0
        bins[v] = current
        mass += share
        if mass >= tau:
            current, mass = current + 1, 0.0
    last = bins[-1]
    if last > 1 and p[bins == last].sum() < 0.5 * tau:  # never down to a single bin
        bins[bins == last] = last - 1
    return bins


def merge_nominal(p: Floats, cut: float, most: int) -> Integers:
    """Every category at or below the cut, and all but the `most` − 1 largest, go into one common bin."""
    small = p <= cut
    if len(p) > most:
        small |= p < np.sort(p)[-(most - 1)]
    if small.sum() <= 1:
        return np.arange(len(p))
    bins = np.cumsum(~small) - 1
    bins[small] = (~small).sum()
    return bins


def by_run(run: Integers, merge: Callable[[Integers], Integers]) -> Integers:
    """Bins inside each run, numbered on from run to run."""
    out, base = np.zeros(len(run), dtype=np.int64), 0
    for r in np.unique(run):
        own = np.flatnonzero(run == r)
        found = merge(own)
        out[own] = base + found
        base += int(found.max()) + 1
    return out


def unmerge(y: Floats, weights: Floats, shares: Sequence[Floats], maps: Sequence[Integers], merged: Domain) -> Floats:
    """Centres over bins → centres over categories, attribute by attribute."""
    found = []
    for a, (p, bins) in enumerate(zip(shares, maps, strict=True)):
        own = without_empty(y[:, merged.block(a)], np.bincount(bins, p, minlength=merged.sizes[a]))
        found.append(unmerge_block(own, weights, p, bins, merged.ordered[a]))
    return np.hstack(found)


def without_empty(y: Floats, mass: Array) -> Floats:
    """Laws of bins that give nothing to a bin without one-way mass.

    A fit to noisy pairs leaves false mass where the one-way table, with less noise, sees nobody: in far tails, in missing values.
    A law of nothing but empty bins, as rules may want it, stays as it is.
    """
    found = np.where(mass > 0, y, 0.0)
    total = found.sum(axis=1, keepdims=True)
    return np.where(total > TINY, found / np.maximum(total, TINY), y)


def unmerge_block(y: Floats, weights: Floats, p: Floats, bins: Integers, ordered: bool) -> Floats:
    """Nominal bins split by the one-way table; ordered ones bend with their neighbours.

    For ordered attributes the ratio of a centre's bin to the mean is interpolated between bin midpoints in rank, then
    raked so that every centre keeps its bins and the mixture its one-way table. A bin that is almost one category
    neither bends nor serves its neighbours as a knot.
    """
    size = y.shape[1]
    mass, members = np.bincount(bins, p, minlength=size), np.bincount(bins, minlength=size)
    empty = nearest_end(bins, p) if ordered else 1 / members[bins]
    within = np.where(mass[bins] > 0, p / np.where(mass[bins] > 0, mass[bins], 1), empty)
    if not ordered or size < 3 or size == len(p):
        return np.asarray(y[:, bins] * within)
    w = p + 1e-12
    rank = np.cumsum(w) - w / 2
    knots = np.bincount(bins, w * rank) / np.bincount(bins, w)
    atom = np.bincount(bins, within**2) > 0.7
    right = np.clip(np.searchsorted(knots, rank), 0, size - 1)
    left = np.maximum(right - 1, 0)
    left = np.where(atom[left] | atom[bins], bins, left)
    right = np.where(atom[right] | atom[bins], bins, right)
    gap = knots[right] - knots[left]
    t = np.where(gap > 0, (rank - knots[left]) / np.where(gap > 0, gap, 1), 0).clip(0, 1)
    mean = np.maximum(weights @ y, 1e-12)
    ratio = y / mean
    fine = (ratio[:, left] * (1 - t) + ratio[:, right] * t) * within
    edges = np.flatnonzero(np.diff(bins, prepend=-1))
    for _ in range(4):
        fine *= within * mean[bins] / np.maximum(weights @ fine, 1e-15)
        fine *= (y / np.maximum(np.add.reduceat(fine, edges, axis=1), 1e-15))[:, bins]
    return np.asarray(fine)


def nearest_end(bins: Integers, p: Floats) -> Floats:
    """1 for the end of every ordered bin that looks towards the mass: its first category, or its last if all mass lies above."""
    below = np.arange(len(p)) < np.argmax(p > 0)
    first, last = np.diff(bins, prepend=-1) > 0, np.diff(bins, append=bins[-1] + 1) > 0
    return np.where(below[last][bins], last, first).astype(np.float64)


# Exact tables of one and of two columns of codes, as kernels from a batch to a sum that can be merged.

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
        for cap in (256, 128, 64, 32, 16, 8, 4):
            packed = self._packed(cap)
            if sum(prod(self.sizes[a] for a in bundle) for bundle in packed) ** 2 // 2 <= MOST_CELLS:
                return packed
        # Of many columns the two smallest bundles become one, until joint tables have twice the cells of all pair tables.
        cells = sum(self.sizes)
        found, room = sorted((size, [a]) for a, size in enumerate(self.sizes)), 2 * cells**2
        while len(found) > 1:
            (x, left), (y, right) = found[:2]
            cells += x * y - x - y
            if cells**2 > room:
                break
            found = sorted([*found[2:], (x * y, left + right)])
        return sorted(bundle for _, bundle in found)

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


def dependence(counts: Integers, domain: Domain) -> Integers:
    """How far pair tables are from products of their own margins: Σ_{a<b} ⌊Σ|N_ij − N_i·N_j/n|⌋, 2n times total variations.

    n is the table's own, which may be secret. Numbers that would not fit are counted without bounds.
    """
    n = int(counts.diagonal()[domain.block(0)].sum())
    exact = counts.astype(object) if n >> 30 else counts
    one_way = exact.diagonal()
    apart = np.abs(n * exact - one_way[:, None] * one_way)
    tables = np.add.reduceat(np.add.reduceat(apart, domain.starts[:-1], axis=0), domain.starts[:-1], axis=1)
    return np.array([int(np.triu(tables // max(n, 1), 1).sum())], dtype=np.int64)


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
        pairs = zip(self.columns, self.edges, strict=True)
        ranges = (np.searchsorted(own[1:-1], batch[:, j], side="right") for j, own in pairs)
        return Counts(tuple(np.bincount(r, minlength=len(own) - 1) for r, own in zip(ranges, self.edges, strict=True)))

    def sorted(self, codes: Mapping[int, Array]) -> Counts:
        """The same of columns that are each sorted by themselves: a search for each edge instead of each code."""
        pairs = zip(self.columns, self.edges, strict=True)
        return Counts(tuple(np.diff(np.searchsorted(codes[j], own)) for j, own in pairs))


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
