"""Whole points of a polytope: rows of numbers that keep linear rules exactly, at the precision of their columns.

A row outside is moved to about its nearest point inside: first among real points, by Dykstra's algorithm, then on the grid, step
by step. What is inside is decided by whole numbers alone, so no rule is kept "up to rounding". All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import lcm

import numpy as np
from scipy.optimize import linprog

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.bodies import Body, Box, HalfSpace, dykstra
from covey.engine.fit.reals import ranked
from covey.errors import ParameterError

LARGEST = 1 << 61  # of any sum that decides whether a rule holds
SWEEPS = 200  # of Dykstra's algorithm; rows that are not there by then are brought in by whole steps
NEAR = 0.01  # of a step: real points this near to the polytope need no further sweep
STEPS_PER_COLUMN = 8  # on the grid; rows that need more walk toward the middle
WALK = 12  # halvings of the way to the middle
TURNS = 6  # of margins and polytope: later turns change margins by less than rounding does
BLOCK = 1 << 14  # rows that are moved together


@dataclass(frozen=True)
class Band:
    """Public: minimum ≤ Σ coefficient · x ≤ maximum, over columns by their place; None where there is no bound."""

    coefficients: tuple[tuple[int, Fraction], ...]
    minimum: Fraction | None
    maximum: Fraction | None

    def rows(self, k: int) -> list[tuple[list[int], int, bool]]:
        """The band in whole numbers: coefficients of k columns, bound, and whether it is an equation."""
        bounds = [b for b in (self.minimum, self.maximum) if b is not None]
        times = lcm(*(a.denominator for _, a in self.coefficients), *(b.denominator for b in bounds))
        row = [0] * k
        for j, a in self.coefficients:
            row[j] += int(a * times)
        if self.minimum is not None and self.minimum == self.maximum:
            return [(row, int(self.minimum * times), True)]
        found = [] if self.maximum is None else [(row, int(self.maximum * times), False)]
        return found if self.minimum is None else [*found, ([-a for a in row], -int(self.minimum * times), False)]


class Lattice:
    """The whole points between bounds that lie in all bands."""

    def __init__(self, low: Sequence[int], high: Sequence[int], bands: Sequence[Band]) -> None:
        k = len(low)
        rows = [row for band in bands for row in band.rows(k)]
        most = [max(abs(a), abs(b)) for a, b in zip(low, high, strict=True)]
        if any(abs(b) + sum(abs(a) * m for a, m in zip(row, most, strict=True)) > LARGEST for row, b, _ in rows):
            raise ParameterError("sums have more digits than can be computed exactly. Give fewer decimals.")
        self.low, self.high = np.array(low, dtype=np.int64), np.array(high, dtype=np.int64)
        at_most = [(row, b) for row, b, equal in rows if not equal]
        self.G = np.array([row for row, _ in at_most], dtype=np.int64).reshape(-1, k)
        self.h = np.array([b for _, b in at_most], dtype=np.int64)
        equations = [([Fraction(a) for a in row], Fraction(b)) for row, b, equal in rows if equal]
        self.E = np.array([[int(a) for a in row] for row, _ in equations], dtype=np.int64).reshape(-1, k)
        self.e = np.array([int(b) for _, b in equations], dtype=np.int64)
        self.free, self.constant, self.T = _solved(equations, k)
        # All inequalities, bounds included, in the columns that equations leave free: A z ≤ b.
        faces = np.vstack([self.G, np.eye(k, dtype=np.int64), -np.eye(k, dtype=np.int64)])
        self.A = faces @ self.T
        self.b = np.concatenate([self.h, self.high, -self.low]) - faces @ self.constant
        self.lengths = np.maximum(np.abs(self.A).sum(axis=1), 1)

    def contains(self, points: Integers) -> Array:
        """Which rows keep all rules: whole numbers, compared exactly."""
        inside = ((points >= self.low) & (points <= self.high)).all(axis=1)
        inside &= (points @ self.G.T <= self.h).all(axis=1)
        return np.asarray(inside & (points @ self.E.T == self.e).all(axis=1))

    @cached_property
    def middle(self) -> Integers:
        """A whole point inside, as far from all faces as a linear program finds one; a refusal where there is none."""
        width = np.maximum((self.high - self.low)[self.free], 1).astype(np.float64)
        objective = np.append(np.zeros(len(self.free)), -1.0)
        deepest = linprog(
            objective,
            np.column_stack([self.A * width, self.lengths]),
            self.b.astype(np.float64),
            bounds=[(None, None)] * len(self.free) + [(0, None)],
        )
        if deepest.status == 0 and deepest.x is not None:
            z = np.rint(deepest.x[:-1] * width).astype(np.int64)[None]
            found = self._complete(self._step_inside(z, z.astype(np.float64), width))
            if self.contains(found)[0]:
                return np.asarray(found[0])
        raise ParameterError(
            "no row was found that keeps all of its sums and bounds: loosen one, or give more decimals."
        )

    def nearest(self, points: Array, scale: Floats) -> Integers:
        """Rows inside, about the nearest ones where distances are counted in `scale`; rows that are inside stay."""
        out = np.rint(points).astype(np.int64)
        outside = np.flatnonzero(~self.contains(out))
        for begin in range(0, len(outside), BLOCK):
            rows = outside[begin : begin + BLOCK]
            real = self.project(points[rows].astype(np.float64), scale)[:, self.free]
            found = self._complete(self._step_inside(np.rint(real).astype(np.int64), real, scale[self.free]))
            bad = np.flatnonzero(~self.contains(found))
            if len(bad):
                found[bad] = self._walk(real[bad])
            out[rows] = found
        return out

    def project(self, points: Floats, scale: Floats) -> Floats:
        """The nearest real points, where distances are counted in `scale`."""
        equations = zip(self.E * scale, self.e, strict=True)
        faces: list[Body] = [HalfSpace(s * row, s * bound) for row, bound in equations for s in (1, -1)]  # two sides
        faces += [HalfSpace(row, bound) for row, bound in zip(self.G * scale, self.h, strict=True)]
        faces.append(Box(self.low / scale, self.high / scale))
        return np.asarray(dykstra(faces, points / scale, NEAR / float(scale.max()), SWEEPS) * scale)

    def _complete(self, z: Integers) -> Integers:
        """Whole rows from the columns that equations leave free."""
        return np.asarray(self.constant + z @ self.T.T)

    def _step_inside(self, z: Integers, wanted: Floats, scale: Floats) -> Integers:
        """Rows moved by whole steps, each the one that breaks least and, among equals, stays nearest."""
        z = z.copy()
        moves = np.concatenate([np.eye(len(self.free), dtype=np.int64), -np.eye(len(self.free), dtype=np.int64)])
        gains = moves @ self.A.T
        rows = np.arange(len(z))
        for _ in range(STEPS_PER_COLUMN * len(self.free)):
            over = z[rows] @ self.A.T - self.b
            broken = (np.maximum(over, 0) / self.lengths).sum(axis=1)
            rows, over, broken = (part[broken > 0] for part in (rows, over, broken))
            if not len(rows):
                break
            cost = np.stack([(np.maximum(over + gain, 0) / self.lengths).sum(axis=1) for gain in gains], axis=1)
            far = np.stack([(((z[rows] + move - wanted[rows]) / scale) ** 2).sum(axis=1) for move in moves], axis=1)
            best = np.argmin(cost + 1e-6 * far / (1 + far.max(axis=1, keepdims=True)), axis=1)
            better = cost[np.arange(len(rows)), best] < broken - 1e-12
            rows = rows[better]
            z[rows] += moves[best[better]]
        return z

    def _walk(self, real: Floats) -> Integers:
        """The first whole point on the way from each row to the middle, which is inside."""
        middle = self.middle[self.free]
        out = np.tile(self.middle, (len(real), 1))
        left = np.arange(len(real))
        for i in range(WALK, 0, -1):
            found = self._complete(np.rint(middle + (real[left] - middle) * (1 - 0.5**i)).astype(np.int64))
            inside = self.contains(found)
            out[left[inside]] = found[inside]
            left = left[~inside]
        return out


def settle(points: Integers, lattice: Lattice, turns: int = TURNS) -> Integers:
    """Whole points inside, with about the columns that the given ones have: margins and polytope take turns.

    Projection alone would move every column; putting each column's own values back, in the order that projection gave them,
    undoes that, and keeps what the order ties to other columns.
    """
    if lattice.contains(points).all():
        return points
    margins, scale = np.sort(points, axis=0).astype(np.float64), np.maximum(points.std(axis=0), 1.0)
    moved = points.astype(np.float64)
    for _ in range(turns):
        moved = ranked(lattice.project(moved, scale), margins)
    return lattice.nearest(moved, scale)


def _solved(equations: list[tuple[list[Fraction], Fraction]], k: int) -> tuple[Integers, Integers, Integers]:
    """Free columns, and constant and matrix that give whole rows from them, by exact elimination.

    Every equation needs a column that whole numbers of all others determine; without one grids do not fit.
    """
    solved: dict[int, tuple[list[Fraction], Fraction]] = {}
    for row, bound in equations:
        for j, (other, rest) in solved.items():
            row, bound = [a - row[j] * c for a, c in zip(row, other, strict=True)], bound - row[j] * rest
        if not any(row):
            if bound:
                raise ParameterError("two sums contradict each other. Correct one.")
            continue
        times = lcm(*(a.denominator for a in row))
        # The last column with the least coefficient: the one in the finest steps.
        pivot = min((abs(int(a * times)), -j, j) for j, a in enumerate(row) if a)[2]
        row, bound = [a / row[pivot] for a in row], bound / row[pivot]
        for j, (other, rest) in solved.items():
            factor = other[pivot]
            solved[j] = [a - factor * c for a, c in zip(other, row, strict=True)], rest - factor * bound
        solved[pivot] = row, bound
    free = [j for j in range(k) if j not in solved]
    T, constant = np.zeros((k, len(free)), dtype=np.int64), np.zeros(k, dtype=np.int64)
    for place, j in enumerate(free):
        T[j, place] = 1
    for j, (row, bound) in solved.items():
        constant[j] = _whole(bound)
        T[j] = [-_whole(row[f]) for f in free]
    return np.array(free, dtype=np.int64), constant, T


def _whole(value: Fraction) -> int:
    if value.denominator != 1:
        raise ParameterError("a sum cannot be kept exactly on these columns: give the finest of them more decimals.")
    return int(value)
