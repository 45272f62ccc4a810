"""Categories and numbers side by side, for anonymous averages: shares of categories, and numbers averaged as they are.

A number or date is one column, scaled by its public bounds, beside the category "missing" where the field may be so. A number
that is missing has no value to average, so a group's average could be that of a single person: groups in which fewer than r
rows have the number are joined with their neighbours until r rows do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.draw.balanced import sample_mixed
from covey.core.paper.blocks import WeightedPoints, one_hot
from covey.core.tables.domain import Domain
from covey.entropy import Streams
from covey.table.codec import Codec, Grid


@dataclass(frozen=True)
class MixedRows:
    """Rows of whole-number cells as one-hot categories and numbers in [0, 1]. Private."""

    categories: Array
    numbers: Floats
    missing: Array

    @property
    def records(self) -> Floats:
        """One matrix, to group by. A missing number stands at the average of the others."""
        there = np.maximum((~self.missing).sum(axis=0), 1)
        average = np.where(self.missing, 0.0, self.numbers).sum(axis=0) / there
        return np.column_stack([self.categories, np.where(self.missing, average, self.numbers)]).astype(np.float64)


class MixedCoding:
    """How cells of a schema with numbers become categories and numbers, and drawn rows become cells again."""

    def __init__(self, codec: Codec) -> None:
        self.names = codec.names
        self.attributes = [codec.attributes[name] for name in codec.names]
        self.at = [j for j, attribute in enumerate(self.attributes) if isinstance(attribute, Grid)]
        grids = [attribute for attribute in self.attributes if isinstance(attribute, Grid)]
        self.low = np.array([grid.axis.low for grid in grids], dtype=np.float64)
        self.width = np.array([grid.axis.high - grid.axis.low for grid in grids], dtype=np.float64)
        # A number counts as one category, "there", beside its special values and "missing" where it may be.
        sizes = [
            1 + size - a.bins if isinstance(a, Grid) else size
            for a, size in zip(self.attributes, codec.domain_sizes, strict=True)
        ]
        self.domain = Domain(tuple(sizes), (False,) * len(sizes))

    def encode(self, cells: Integers) -> MixedRows:
        """The rows of a table of cells."""
        codes = np.empty_like(cells)
        for j, attribute in enumerate(self.attributes):
            found = attribute.codes(cells[:, j])
            codes[:, j] = np.maximum(found - attribute.bins + 1, 0) if isinstance(attribute, Grid) else found
        missing = codes[:, self.at] > 0
        steps = np.where(missing, 0, cells[:, self.at]) - self.low
        return MixedRows(one_hot(codes, self.domain.sizes), steps / np.maximum(self.width, 1), missing)

    def centres(self, cloud: WeightedPoints, rows: MixedRows, groups: Integers, r: int) -> WeightedPoints:
        """Centres of the groups: shares of categories, then averages of numbers."""
        shares = cloud.points[:, : self.domain.total]
        return WeightedPoints(cloud.weights, np.column_stack([shares, self.averages(rows, groups, r)]))

    def averages(self, rows: MixedRows, groups: Integers, r: int) -> Floats:
        """Average of each number in each group, over at least r rows that have it; the middle of its bounds if so few have it."""
        out = np.empty((int(groups.max()) + 1, len(self.at)))
        for c in range(len(self.at)):
            there = ~rows.missing[:, c]
            counts = np.bincount(groups[there], minlength=len(out))
            sums = np.bincount(groups[there], rows.numbers[there, c], minlength=len(out))
            joined = join_until(counts, r)
            total = np.bincount(joined, counts)
            average = np.bincount(joined, sums) / np.maximum(total, 1)
            out[:, c] = np.where(total >= r, average, 0.5)[joined]
        return out

    def agreeing(self, rows: MixedRows, groups: Integers) -> dict[str, int]:
        """For each field the number of groups whose rows agree on it. Confidential."""
        order = np.argsort(groups, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(groups[order]) > 0])
        found = {}
        for j, name in enumerate(self.names):
            part = rows.categories[order, self.domain.block(j)]
            same = (np.minimum.reduceat(part, starts, axis=0) == np.maximum.reduceat(part, starts, axis=0)).all(axis=1)
            if j in self.at:
                c = self.at.index(j)
                value = np.where(rows.missing[order, c], -1.0, rows.numbers[order, c])
                same &= np.minimum.reduceat(value, starts) == np.maximum.reduceat(value, starts)
            found[name] = int(same.sum())
        return found


@dataclass(frozen=True)
class MixedLaw:
    """Categories and averages of numbers, by group."""

    cloud: WeightedPoints
    coding: MixedCoding

    def draw(self, units: int, streams: Streams) -> Integers:
        """Rows of cells: categories rounded, numbers the averages of the row's group, to the precision of their fields."""
        own, public = self.coding, streams.postprocessing("rows")
        shares, numbers = np.split(self.cloud.points, [own.domain.total], axis=1)
        steps = own.low + numbers * own.width
        codes, values = sample_mixed(WeightedPoints(self.cloud.weights, shares), own.domain, steps, units, public)
        cells = codes.astype(np.int64)
        for j, attribute in enumerate(own.attributes):
            if isinstance(attribute, Grid):
                apart = attribute.apart(cells[:, j] - 1 + attribute.bins)
                cells[:, j] = np.where(codes[:, j] > 0, apart, values[:, own.at.index(j)])
            else:
                cells[:, j] = attribute.draw(cells[:, j], public)
        return cells


def join_until(counts: Integers, least: int) -> Integers:
    """Numbers of runs: what falls short of `least` is joined with what follows until it does not, the rest with what precedes."""
    if (counts >= least).all():
        return np.arange(len(counts))
    out = np.empty(len(counts), dtype=np.int64)
    run = total = 0
    for j, count in enumerate(counts.tolist()):
        out[j] = run
        total += count
        if total >= least:
            run, total = run + 1, 0
    return np.minimum(out, max(run - 1, 0))
