"""The lattice covering of Proposition 3.7, the points of (α/√t)Zᵗ in the unit ball, and partitions of the rows.

No release lists cells. The number of points and the number of a point come from
one small table, N(i, c) = how many points of Zⁱ have squared length at most c; and the nearest point to a
record is the rounded one, or, where that leaves the ball, the answer of a small knapsack. So the cost of an
assignment does not grow with the number of cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from math import isqrt

import numpy as np

from covey.engine.arrays import Array, Floats, Integers, require_memory
from covey.errors import ParameterError

MAX_CELLS = 1 << 36  # noise falls on each cell, and a number for each of so many takes 512 GiB


@dataclass(frozen=True)
class LatticeCovering:
    """B₂ᵗ ∩ (α/√t)Zᵗ, an α-covering of the unit ball of Rᵗ (Proposition 3.7). t = 0 is a single cell.

    In lattice units, points are integer vectors z with ‖z‖² ≤ ⌊t/α²⌋ = `budget`.
    """

    t: int
    alpha: float

    def __post_init__(self) -> None:
        t, alpha = self.t, self.alpha
        if t < 0:
            raise ParameterError(f"t must be 0 or more, got {t}. t = 0 means a single cell.")
        if t > 0 and not 0 < alpha < float("inf"):
            raise ParameterError(f"alpha must be positive, got {alpha}. The paper's choice is (log n)^(-1/4).")
        require_memory(
            8 * t * (self.budget + 1) * (2 * self.reach + 1),
            f"a covering with t = {t} and alpha = {alpha:.4g}",
            "Choose a smaller t or a larger alpha.",
        )
        _ = self.size  # refused here if there are too many

    @cached_property
    def budget(self) -> int:
        """⌊t/α²⌋, exactly: the float alpha is a rational number, so no point on the sphere is gained or lost by rounding."""
        return int(self.t / Fraction(self.alpha) ** 2) if self.t else 0

    @cached_property
    def reach(self) -> int:
        """The largest entry of a point."""
        return isqrt(self.budget)

    @property
    def step(self) -> float:
        """The lattice constant α/√t."""
        return float(self.alpha / np.sqrt(self.t))

    @cached_property
    def size(self) -> int:
        """The number of points, from shells alone: numbers of points by squared length, dimension by dimension."""
        shells = np.zeros(self.budget + 1, dtype=np.int64)
        shells[0] = 1
        for _ in range(self.t):
            grown = shells.copy()
            for z in range(1, self.reach + 1):
                grown[z * z :] += 2 * shells[: self.budget + 1 - z * z]
            shells = grown
            if shells.sum() > MAX_CELLS:  # each further dimension multiplies by less than 2^20: no overflow
                raise ParameterError(
                    f"a covering with t = {self.t} and alpha = {self.alpha:.4g} has more than {MAX_CELLS} cells. "
                    "Choose a smaller t or a larger alpha."
                )
        return int(shells.sum())

    @cached_property
    def _below(self) -> Integers:
        """How many points of dimension i + 1 and squared length ≤ c start below z, at [i, c, z + reach]."""
        budget, reach = self.budget, self.reach
        z = np.arange(-reach, reach + 1)
        within = np.ones(budget + 1, dtype=np.int64)  # N(0, c) = 1
        tables = []
        for _ in range(self.t):
            left = np.arange(budget + 1)[:, None] - z * z
            counts = np.where(left >= 0, within[np.maximum(left, 0)], 0)
            tables.append(np.cumsum(counts, axis=1) - counts)
            within = counts.sum(axis=1)
        return np.array(tables).reshape(self.t, budget + 1, 2 * reach + 1)

    def number(self, z: Integers) -> Integers:
        """The number, from 0 to size − 1, of each lattice point, in lexicographic order."""
        rank = np.zeros(len(z), dtype=np.int64)
        left = np.full(len(z), self.budget)
        for i in range(self.t):
            rank += self._below[self.t - 1 - i, left, z[:, i] + self.reach]
            left = left - z[:, i] ** 2
        return rank

    def points(self) -> Floats:
        """All points ν₁, …, ν_s of the covering, in Rᵗ, in the order of their numbers: for looking at a small one."""
        listed = list(product(range(-self.reach, self.reach + 1), repeat=self.t))
        z = np.array(listed, dtype=np.float64).reshape(len(listed), self.t)
        return np.asarray(z[(z * z).sum(axis=1) <= self.budget] * (self.step if self.t else 1.0))

    def assign(self, x: Floats) -> Integers:
        """The number of the cell that each row of x (points of the unit ball of Rᵗ) belongs to.

        The nearest point of the covering, ties to the smaller coordinate in absolute value. Each row's
        answer uses elementwise arithmetic on that row alone, so it cannot depend on other records.
        """
        if self.t == 0:
            return np.zeros(len(x), dtype=np.int64)
        y = np.abs(x) / self.step
        z = np.ceil(y - 0.5).astype(np.int64)
        outside = np.flatnonzero((z * z).sum(axis=1) > self.budget)
        if len(outside):
            z[outside] = self._nearest_inside(y[outside])
        return self.number(np.where(x < 0, -z, z))

    def _nearest_inside(self, y: Floats) -> Integers:
        """Nearest non-negative lattice points with ‖z‖² ≤ budget: a knapsack over the squared length.

        cost[c] is the least squared distance over the coordinates seen so far, spending exactly c.
        """
        n, t = y.shape
        cost = np.full((n, self.budget + 1), np.inf)
        cost[:, 0] = 0
        choices = np.zeros((t, n, self.budget + 1), dtype=np.int16)
        for i in range(t):
            best = cost + y[:, i : i + 1] ** 2
            for value in range(1, self.reach + 1):
                spent = value * value
                tried = cost[:, : self.budget + 1 - spent] + (y[:, i : i + 1] - value) ** 2
                better = tried < best[:, spent:]
                best[:, spent:][better] = tried[better]
                choices[i][:, spent:][better] = value
            cost = best
        rows, left = np.arange(n), np.argmin(cost, axis=1)
        z = np.empty((n, t), dtype=np.int64)
        for i in reversed(range(t)):
            z[:, i] = choices[i, rows, left]
            left = left - z[:, i] ** 2
        return z


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
