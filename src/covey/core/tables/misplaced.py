"""Rows out of place: the share of rows that stand in the wrong cell of a typical table of two columns.

It is the mean, over all pairs of columns, of the total variation between two tables: half the sum of the differences of their
cells. One replaced row moves each table by 1/n at most, hence the mean too (docs/proofs/certificate.md). It means the same for
flags, categories and numbers; numbers, and columns of very many categories, are looked at in a few dozen public ranges.
Computed on true rows it is private: see privacy/certificate.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb, fsum

import numpy as np

from covey.core.arrays import Integers, above_diagonal, strips
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.crosstabs import pair_matrix
from covey.core.tables.domain import Domain
from covey.core.tables.merging import merge_nominal, merge_ordered
from covey.core.tables.moments import Moments

RANGES = 20  # of an ordered column, of about equal mass: as fine as a picture of it
ROOM = 1600  # codes of all columns together, about: all pair tables of so many fit a small machine
LEAST, MOST = 12, 64  # codes of one column, whatever the room


@dataclass(frozen=True)
class Glass:
    """How tables are looked at: codes → ranges, column by column. A public function of released shares and sizes."""

    maps: tuple[Integers, ...]

    @classmethod
    def of(cls, cloud: WeightedPoints, domain: Domain) -> Glass:
        """Small columns as they are; of larger ones ranges of about a twentieth, or the commonest and the rest together."""
        share = cloud.weights @ cloud.points
        most = int(np.clip(ROOM // max(1, len(domain.sizes)), LEAST, MOST))
        maps = []
        for a, (size, ordered) in enumerate(zip(domain.sizes, domain.ordered, strict=True)):
            own = share[domain.block(a)]
            if size <= (RANGES if ordered else most):
                maps.append(np.arange(size))
            elif ordered:
                maps.append(merge_ordered(own, max(1 / RANGES, 2 / most)))
            else:
                maps.append(merge_nominal(own, -1.0, most))
        return cls(tuple(maps))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Ranges of every column."""
        return tuple(int(m.max()) + 1 for m in self.maps)

    def rows(self, codes: Integers) -> Integers:
        """The ranges of a table of codes."""
        return np.stack([m[codes[:, a]] for a, m in enumerate(self.maps)], axis=1)

    def cloud(self, cloud: WeightedPoints) -> WeightedPoints:
        """The same centres, over ranges."""
        starts = np.cumsum([0, *self.sizes])
        place = np.concatenate([m + start for m, start in zip(self.maps, starts[:-1], strict=True)])
        points = np.zeros((len(cloud), int(starts[-1])))
        np.add.at(points.T, place, cloud.points.T)
        return WeightedPoints(cloud.weights, points)


def columns_of(sizes: Sequence[int]) -> int:
    """How many columns a typical table has: two, or one where no second column varies."""
    return min(2, max(1, sum(size > 1 for size in sizes)))


def misplaced_codes(pairs: Integers, total: int, sizes: Sequence[int], cloud: WeightedPoints) -> float:
    """Mean total variation of two-way tables, from exact pair tables of `total` records and a cloud over the same ranges.

    Columns of a single code cannot be wrong and do not count.
    """
    domain = Domain(tuple(sizes), (False,) * len(sizes))
    live = np.flatnonzero(domain.counts > 1)
    if len(live) < 2:
        gap = np.abs(pairs.diagonal() / total - cloud.weights @ cloud.points)
        return float(gap.sum() / 2)
    weighted, parts = cloud.points * cloud.weights[:, None], []
    for a in live[:-1]:
        block, behind = domain.block(a), int(domain.starts[a + 1])
        gap = np.abs(pairs[block, behind:] / total - weighted[:, block].T @ cloud.points[:, behind:])
        lively = domain.counts[domain.block_of[behind:]] > 1
        parts.append(float(gap[:, lively].sum()))
    return fsum(parts) / 2 / comb(len(live), 2)


def misplaced_bits(rows: Moments, cloud: WeightedPoints) -> float:
    """The same of 0/1 columns: the four cells of a pair follow from two shares and how often both are set."""
    p = len(rows.first)
    means = rows.first / rows.n - cloud.weights @ cloud.points
    if p < 2:
        return float(np.abs(means).sum())
    y, weighted, parts = cloud.points, cloud.points * cloud.weights[:, None], []
    for begin, end in strips(p):
        both = rows.second[begin:end] / rows.n - weighted[:, begin:end].T @ y
        one, other = means[begin:end, None] - both, means[None] - both
        cells = np.abs(both) + np.abs(one) + np.abs(other) + np.abs(both + one + other)
        parts.append(float(cells[above_diagonal(begin, end, p)].sum()))
    return fsum(parts) / 2 / comb(p, 2)


def misplaced_rows(codes: Integers, domain: Domain, cloud: WeightedPoints) -> float:
    """The same of a table of codes, which must be public for the number to be: synthetic rows against their centres."""
    glass = Glass.of(cloud, domain)
    pairs = pair_matrix(glass.rows(codes), glass.sizes)
    return misplaced_codes(pairs, len(codes), glass.sizes, glass.cloud(cloud))
