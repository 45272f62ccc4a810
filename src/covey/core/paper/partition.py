"""Partitions of the rows: nearest-point cells (Definition 3.4) and equal groups (section 3.6)."""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Floats, Integers


def nearest_point_partition(x: Floats, points: Floats) -> Integers:
    """Definition 3.4 for any list of points: the number of the nearest one, ties to the lowest number."""
    labels = np.empty(len(x), dtype=np.int64)
    rows = max(1, 4_000_000 // max(1, points.size))
    for start in range(0, len(x), rows):
        block = x[start : start + rows]
        labels[start : start + rows] = np.argmin(((block[:, None] - points) ** 2).sum(axis=2), axis=1)
    return labels


def equipartition(labels: Integers, group_size: int) -> Integers:
    """Section 3.6: cells into k = ⌊n/r⌋ groups of r rows each, for any n and r.

    Divide each cell into groups of r with a residual; merge the residuals; divide again. The fewer than r
    rows that are left when r does not divide n join the last group, so no group has fewer than r rows.
    """
    n = len(labels)
    k = max(n // group_size, 1)
    order = np.argsort(labels, kind="stable")
    cells = labels[order]
    starts = np.flatnonzero(np.r_[True, cells[1:] != cells[:-1]])
    sizes = np.diff(np.r_[starts, n])
    place = np.arange(n) - np.repeat(starts, sizes)
    whole = place < np.repeat(sizes // group_size * group_size, sizes)
    merged = np.concatenate([order[whole], order[~whole]])
    groups = np.empty(n, dtype=np.int64)
    groups[merged] = np.minimum(np.arange(n) // group_size, k - 1)
    return groups
