"""Partitions of the rows: nearest-point cells (Definition 3.4) and equal groups (section 3.6)."""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Array, Floats, Integers


def nearest_point_partition(x: Floats, points: Floats) -> Integers:
    """Definition 3.4 for any list of points: the number of the nearest one, ties to the lowest number."""
    labels = np.empty(len(x), dtype=np.int64)
    rows = max(1, 4_000_000 // max(1, points.size))
    for start in range(0, len(x), rows):
        block = x[start : start + rows]
        labels[start : start + rows] = np.argmin(((block[:, None] - points) ** 2).sum(axis=2), axis=1)
    return labels


def equipartition(labels: Integers, k: int, probability: Floats | None = None) -> Integers:
    """Section 3.6: cells into k groups of probability 1/k, numbered 0, …, k − 1.

    Divide each cell into groups with a residual; merge the residuals; divide again. The groups lie side by side on [0, 1], and a
    record belongs to the group in which its middle lies. So n equal records make groups of ⌊n/k⌋ or ⌈n/k⌉, and no group's
    probability differs from 1/k by more than that of one record. A record heavier than 1/k cannot be divided: the groups that it
    covers stay empty.
    """
    mass: Array = np.ones(len(labels), dtype=np.int64) if probability is None else probability
    doubled = 2 * mass.sum()  # whole numbers for equal records, so that no rounding moves one
    order = np.argsort(labels, kind="stable")
    cells = np.split(order, np.flatnonzero(np.diff(labels[order])) + 1)
    groups, residuals, start, first = np.empty(len(labels), dtype=np.int64), [], 0, 0

    def place(records: Integers) -> Array:
        middles = 2 * (start + np.cumsum(mass[records])) - mass[records]
        return np.asarray(np.clip((middles * k // doubled).astype(np.int64), first, k - 1))

    for cell in cells:
        end = start + mass[cell].sum()
        at, next_group = place(cell), (2 * end + mass[cell[-1]]) * k // doubled
        whole = at < next_group  # the next group begins inside the cell, or just at its end
        groups[cell[whole]] = at[whole]
        residuals.append(cell[~whole])
        if whole.any():
            start, first = start + mass[cell[whole]].sum(), int(next_group)
    rest = np.concatenate(residuals)
    groups[rest] = place(rest)
    return groups
