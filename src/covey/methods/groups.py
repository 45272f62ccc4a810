"""Anonymous centres from any way of grouping: the spectral tree (default), the paper's lattice, MDAV, or the better of two.

A group counts rows: r rows of one table. Where a person has several rows, ask for r times as many, or group by person first.
Records may have weights, and their likeness may be given by a kernel (Remark 1.5): `Likeness`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.groups.tree import mdav, spectral_tree
from covey.core.paper import hilbert
from covey.core.paper.blocks import WeightedPoints, block_sums, microaggregate
from covey.core.paper.bodies import Body, Box
from covey.core.tables.distance import covariance_loss
from covey.errors import ParameterError
from covey.methods.paper import AnonymousCentres, anonymous_centres
from covey.methods.records import Records

METHODS = ("tree", "paper", "mdav", "best")
MOST_OF_A_GROUP = 0.5  # of a group's weight that one record may have: beyond it the mean is nearly that record


@dataclass(frozen=True)
class Likeness:
    """How records count, and which are alike, where it is not all the same and not the distance of their columns.

    Args:
        weights: a positive number for each record, such as a survey's weight.
        gram: inner products of all records, such as a kernel's values: groups are narrow in that geometry.
    """

    weights: Array | None = None
    gram: Array | None = None

    def groups(self, X: Array, group_size: int) -> Integers:
        """Groups of rows that are alike; sizes count rows, whatever their weights."""
        n = len(X)
        space = X if self.gram is None else self._space(n)
        labels = spectral_tree(
            space, group_size, weights=None if self.weights is None else hilbert.shares(n, self.weights)
        )
        if self.weights is not None:
            probability = hilbert.shares(n, self.weights)
            heaviest = np.zeros(int(labels.max()) + 1)
            np.maximum.at(heaviest, labels, probability)
            if (heaviest > MOST_OF_A_GROUP * np.bincount(labels, weights=probability)).any():
                raise ParameterError(
                    "a record has more than half of its group's weight, so the mean of the group would be nearly that record. "
                    "Cap the weights, or ask for larger groups."
                )
        return labels

    def _space(self, n: int) -> Floats:
        rows = hilbert.coordinates(np.asarray(self.gram, dtype=np.float64))
        if len(rows) != n:
            raise ParameterError(f"gram must have a row and a column for each of {n} records, got {len(rows)}.")
        return rows if rows.shape[1] else np.zeros((n, 1))

    def centres(self, X: Array, groups: Integers) -> tuple[WeightedPoints, float]:
        """Weighted means of the records, and the covariance loss, in the records' own columns."""
        probability = hilbert.shares(len(X), self.weights)
        return hilbert.group_means(X, groups, probability), hilbert.covariance_loss(X, groups, probability)


def group_centres(
    records: Records, body: Body, group_size: int, method: str, likeness: Likeness | None = None
) -> AnonymousCentres:
    """Averages over groups of at least `group_size` rows."""
    if likeness is not None:
        if method != "tree":
            raise ParameterError(f"weights and gram go with method 'tree', not with {method!r}.")
        X = records.rows.records()
        groups = likeness.groups(_comparable(X, records, body), group_size)
        cloud, loss = likeness.centres(X, groups)
        points = WeightedPoints(cloud.weights, cloud.points * records.unit)
        return AnonymousCentres(points, groups, 0, 0.0, loss * records.unit**2)
    if method == "paper":
        return anonymous_centres(records, group_size)
    if method == "best":
        tree, lattice = (group_centres(records, body, group_size, name) for name in ("tree", "paper"))
        return min(tree, lattice, key=lambda result: result.covariance_loss)
    X = records.rows.records()
    grouping: Callable[[Array, int], Integers] = spectral_tree if method == "tree" else mdav
    groups = grouping(_comparable(X, records, body), group_size)
    centres = microaggregate(block_sums(X, groups, int(groups.max()) + 1))
    loss = covariance_loss(X, groups) * records.unit**2
    return AnonymousCentres(WeightedPoints(centres.weights, centres.points * records.unit), groups, 0, 0.0, loss)


def _comparable(X: Array, records: Records, body: Body) -> Array:
    """Columns on one scale: those of a box are divided by their public ranges, bits and categories are so already."""
    if not isinstance(body, Box):
        return X
    width = body.upper - body.lower
    return np.asarray(X * (records.unit / np.where(width > 0, width, 1)), dtype=np.float32)
