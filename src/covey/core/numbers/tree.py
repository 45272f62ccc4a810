"""A tree over a number's codes that grows where the noisy counts are large.

In each round the tree's frontier, a partition of all codes, is counted with fresh noise. Nodes that stand out of their noise are
replaced by their children; neighbours that do not are joined, so that the next round measures their sum with one draw instead of
many; what stays is measured again. The tree sees noisy counts and public numbers only. Why each round costs the same, whatever
the frontier is: docs/proofs/trees.md.
"""

from __future__ import annotations

from itertools import groupby

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.numbers.grid import NumberGrid

STANDS_OUT = 3.0  # deviations above which a node is split
JOINED = 6.0  # deviations of the first round that a run of light neighbours gathers before another one begins
FINEST_SHARE = (
    1 / 2000
)  # of all records; lighter nodes are never split, so that a tree stays small however small the noise


class Tree:
    """Nodes [start, stop) with their parents, the sums of their noisy counts, and how often each was measured.

    A round with less noise than the first counts for more than one measurement, by its inverse variance.

    Node 0 is the root, whose count n is public. Where there are special codes these and one node for all values are its
    children.
    """

    def __init__(self, grid: NumberGrid, n: int) -> None:
        self.grid, self.n = grid, n
        self.sd = 0.0
        self.start, self.stop = np.array([0]), np.array([grid.size])
        self.parent, self.joins = np.array([-1]), np.array([False])
        self.total, self.times = np.array([0.0]), np.array([0.0])
        specials = np.arange(grid.specials)
        top = 0
        if grid.specials:
            self._add(specials, specials + 1, np.zeros_like(specials))
            top = int(self._add(specials[-1:] + 1, np.array([grid.size]), np.array([0]))[0])
        cells = np.arange(grid.specials, grid.size, grid.widths[0])
        atoms = np.array(grid.atoms, dtype=np.int64)
        start = np.unique(np.concatenate([cells, atoms, atoms + 1]))
        start = start[start < grid.size]
        values = self._add(start, np.append(start[1:], grid.size), np.full(len(start), top))
        self.frontier: Integers = np.concatenate([specials + 1, values])

    @property
    def edges(self) -> Integers:
        """The frontier as a partition: codes from edges[i] up to edges[i + 1] are counted together."""
        return np.append(self.start[self.frontier], self.grid.size)

    def see(self, noisy: Integers, sd: float) -> None:
        """Take in the noisy counts of the frontier; `self.sd` stays that of the first round, which others are weighed by."""
        self.sd = self.sd or sd
        weight = (self.sd / sd) ** 2 if sd > 0 else 1.0
        self.total[self.frontier] += weight * noisy
        self.times[self.frontier] += weight

    def grow(self) -> None:
        """Choose the next frontier."""
        at = self.frontier
        light = self.total[at] / self.times[at] <= np.maximum(
            STANDS_OUT * self.sd / np.sqrt(self.times[at]), FINEST_SHARE * self.n
        )
        whole = self.joins[at] | np.isin(self.start[at], self.grid.single) & (self.stop[at] == self.start[at] + 1)
        splits = ~light & ~whole & (self.stop[at] - self.start[at] > 1)
        stays = ~splits & (~light | whole)
        found = [self._split(at[splits]), at[stays]]
        # What is not light ends a run, and so does another parent.
        run = np.where(light & ~whole, self.parent[at], -1)
        for parent, places in groupby(range(len(at)), lambda i: int(run[i])):
            if parent >= 0:
                found.append(self._join(at[list(places)]))
        frontier = np.concatenate(found)
        self.frontier = frontier[np.argsort(self.start[frontier])]

    def _add(self, start: Integers, stop: Integers, parent: Integers, joins: bool = False) -> Integers:
        count = len(start)
        self.start, self.stop = np.append(self.start, start), np.append(self.stop, stop)
        self.parent, self.joins = np.append(self.parent, parent), np.append(self.joins, np.full(count, joins))
        zeros = np.zeros(count)
        self.total, self.times = np.append(self.total, zeros), np.append(self.times, zeros)
        return np.arange(len(self.start) - count, len(self.start))

    def _split(self, nodes: Integers) -> Integers:
        """Children of these nodes, as wide as the level below."""
        widths = np.array([*self.grid.widths, 1])
        start, stop = self.start[nodes], self.stop[nodes]
        own = widths[np.searchsorted(-widths, -(stop - start), side="right")]  # the first level below the node's width
        count = -(-(stop - start) // own)
        place = _counted(count)
        first = np.repeat(start, count) + place * np.repeat(own, count)
        last = np.minimum(first + np.repeat(own, count), np.repeat(stop, count))
        return self._add(first, last, np.repeat(nodes, count))

    def _join(self, run: Integers) -> Integers:
        """Light neighbours of one parent, gathered into runs of noticeable mass; all of a parent's children are the parent."""
        parts: list[list[int]] = [[]]
        mass = 0.0
        for node, count in zip(run.tolist(), (self.total[run] / self.times[run]).tolist(), strict=True):
            if mass > JOINED * self.sd:
                parts.append([])
                mass = 0.0
            parts[-1].append(node)
            mass += count
        found = []
        for part in parts:
            parent = int(self.parent[part[0]])
            start, stop = self.start[part[:1]], self.stop[part[-1:]]
            if len(part) == 1:
                found.append(part[0])
            elif start[0] == self.start[parent] and stop[0] == self.stop[parent]:
                self.joins[parent] = True  # measured again, not split again
                found.append(parent)
            else:
                joined = int(self._add(start, stop, np.array([parent]), joins=True)[0])
                self.parent[part] = joined
                found.append(joined)
        return np.array(found)


def _counted(count: Array) -> Integers:
    """0 … c − 1 for each c in turn."""
    return np.asarray(np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count), dtype=np.int64)
