"""Anonymous averages of groups: from the spectral tree (default), the paper's lattice, MDAV, or the better of two.

A group counts rows: r rows of one table. Where a person has several rows, ask for r times as many, or group by person first.
Records may have weights, and their likeness may be given by a kernel (Remark 1.5).

Categories and numbers stand side by side (`MixedCoding`): shares of categories, and numbers averaged as they are. A number or
date is one column, scaled by its public bounds, beside the category "missing" where the field may be so. A number that is missing
has no value to average, so a group's average could be that of a single person: groups in which fewer than r rows have the number
are joined with their neighbours until r rows do.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.bodies import Body, Box
from covey.engine.codes.domain import Domain
from covey.engine.draw.balanced import sample_mixed
from covey.engine.entropy import Streams
from covey.engine.points import WeightedPoints, one_hot
from covey.errors import ParameterError
from covey.paper import blocks
from covey.paper.groups import mdav, spectral_tree
from covey.paper.private import AnonymousCentres, anonymous_centres
from covey.paper.records import Records
from covey.tables.codec import Codec, Grid

METHODS = ("tree", "paper", "mdav", "best")
MOST_OF_A_GROUP = 0.5  # of a group's weight that one record may have: beyond it the mean is nearly that record


def group_centres(
    records: Records, body: Body, group_size: int, method: str, weights: Array | None = None, gram: Array | None = None
) -> AnonymousCentres:
    """Averages over groups of at least `group_size` rows, whatever their weights.

    `weights` has a positive number for each record, such as a survey's weight. `gram` has inner products of all records, such as
    a kernel's values: groups are narrow in that geometry.
    """
    if (weights is not None or gram is not None) and method != "tree":
        raise ParameterError(f"weights and gram go with method 'tree', not with {method!r}.")
    if method == "paper":
        return anonymous_centres(records, group_size)
    if method == "best":
        tree, lattice = (group_centres(records, body, group_size, name) for name in ("tree", "paper"))
        return min(tree, lattice, key=lambda result: result.covariance_loss)
    X = records.rows.records()
    space = _comparable(X, records, body) if gram is None else _coordinates(gram, len(X))
    probability = None if weights is None else blocks.shares(len(X), weights)
    groups = mdav(space, group_size) if method == "mdav" else spectral_tree(space, group_size, weights=probability)
    if probability is not None:
        _refuse_heavy(groups, probability)
    return AnonymousCentres.of(X, groups, records.unit, probability)


def _coordinates(gram: Array, n: int) -> Floats:
    rows = blocks.coordinates(np.asarray(gram, dtype=np.float64))
    if len(rows) != n:
        raise ParameterError(f"gram must have a row and a column for each of {n} records, got {len(rows)}.")
    return rows if rows.shape[1] else np.zeros((n, 1))


def _refuse_heavy(groups: Integers, probability: Floats) -> None:
    heaviest = np.zeros(int(groups.max()) + 1)
    np.maximum.at(heaviest, groups, probability)
    if (heaviest > MOST_OF_A_GROUP * np.bincount(groups, weights=probability)).any():
        raise ParameterError(
            "a record has more than half of its group's weight, so the mean of the group would be nearly that record. "
            "Cap the weights, or ask for larger groups."
        )


def _comparable(X: Array, records: Records, body: Body) -> Array:
    """Columns on one scale: those of a box are divided by their public ranges, bits and categories are so already."""
    if not isinstance(body, Box):
        return X
    width = body.upper - body.lower
    return np.asarray(X * (records.unit / np.where(width > 0, width, 1)), dtype=np.float32)


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
