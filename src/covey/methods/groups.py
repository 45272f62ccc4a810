"""Anonymous centres from any way of grouping: the spectral tree (default), the paper's lattice, MDAV, or the better of two.

A group counts rows: r rows of one table. Where a person has several rows, ask for r times as many, or group by person first.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.groups.tree import mdav, spectral_tree
from covey.core.paper.blocks import WeightedPoints, block_sums, microaggregate
from covey.core.paper.bodies import Body, Box
from covey.core.tables.marginals import covariance_loss
from covey.methods.paper import AnonymousCentres, anonymous_centres
from covey.methods.records import Records

METHODS = ("tree", "paper", "mdav", "best")


def group_centres(records: Records, body: Body, group_size: int, method: str) -> AnonymousCentres:
    """Averages over groups of at least `group_size` rows."""
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
