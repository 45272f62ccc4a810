"""Convex bodies K and their metric projections π_{K,2} of (5.5).

A body knows its dimension, a radius R with K ⊂ R·B₂ᵖ (the paper asks for R = 1; rows are divided by R), and
how to project points. `Intersection` combines bodies by Dykstra's algorithm.

Privacy rests on this: the projection of a row depends on that row alone, to the last bit. So sums run along rows, never
through a matrix product whose rounding may depend on the batch, and iterations stop row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Protocol, runtime_checkable

import numpy as np

from covey.engine.arrays import Floats
from covey.errors import ParameterError


@runtime_checkable
class Body(Protocol):
    """A closed convex set in R^dimension, given by its metric projection."""

    @property
    def dimension(self) -> int:
        """p, the number of coordinates."""

    @property
    def radius(self) -> float:
        """R with K ⊂ R·B₂ᵖ; infinite where K is unbounded."""

    def project(self, points: Floats) -> Floats:
        """The nearest point of K to each row."""


class Box:
    """lower ≤ x ≤ upper, coordinate by coordinate."""

    def __init__(self, lower: Sequence[float] | Floats, upper: Sequence[float] | Floats) -> None:
        self.lower = np.asarray(lower, dtype=np.float64)
        self.upper = np.asarray(upper, dtype=np.float64)
        if self.lower.ndim != 1 or self.lower.shape != self.upper.shape or not len(self.lower):
            raise ParameterError("lower and upper must be two lists of one length, at least 1.")
        if not (self.lower <= self.upper).all():
            raise ParameterError("lower must not exceed upper in any coordinate.")
        self.dimension = len(self.lower)
        self.radius = float(np.linalg.norm(np.maximum(np.abs(self.lower), np.abs(self.upper))))

    def project(self, points: Floats) -> Floats:
        """Clip each coordinate."""
        return np.clip(points, self.lower, self.upper)


class Cube(Box):
    """[0, 1]ᵖ, the convex hull of Boolean records; R = √p."""

    def __init__(self, dimension: int) -> None:
        super().__init__(np.zeros(dimension), np.ones(dimension))


class Ball:
    """‖x − centre‖ ≤ size."""

    def __init__(self, dimension: int, size: float = 1.0, centre: Sequence[float] | Floats | None = None) -> None:
        if not size >= 0:
            raise ParameterError(f"size must be 0 or more, got {size}.")
        self.dimension = dimension
        self.size = float(size)
        self.centre = np.zeros(dimension) if centre is None else np.asarray(centre, dtype=np.float64)
        if self.centre.shape != (dimension,):
            raise ParameterError(f"centre must have {dimension} coordinates, got shape {self.centre.shape}.")
        self.radius = float(np.linalg.norm(self.centre)) + self.size

    def project(self, points: Floats) -> Floats:
        """Pull points outside along the ray to the centre."""
        offset = points - self.centre
        length = np.linalg.norm(offset, axis=1, keepdims=True)
        return np.asarray(self.centre + offset * np.minimum(1.0, self.size / np.maximum(length, 1e-300)))


class Simplex:
    """x ≥ 0 with Σx = 1."""

    def __init__(self, dimension: int) -> None:
        if dimension < 1:
            raise ParameterError(f"dimension must be at least 1, got {dimension}.")
        self.dimension = dimension
        self.radius = 1.0

    def project(self, points: Floats) -> Floats:
        """Subtract the one threshold θ for which Σ max(x − θ, 0) = 1, found by sorting."""
        ordered = -np.sort(-points, axis=1)
        excess = np.cumsum(ordered, axis=1) - 1
        ranks = np.arange(1, self.dimension + 1)
        kept = np.sum(ordered * ranks > excess, axis=1)
        theta = np.take_along_axis(excess, kept[:, None] - 1, axis=1) / kept[:, None]
        return np.asarray(np.maximum(points - theta, 0.0))


class ProductOfSimplices:
    """One simplex per block of coordinates: the convex hull of one-hot coded categorical records."""

    def __init__(self, sizes: Sequence[int]) -> None:
        if not len(sizes):
            raise ParameterError("sizes must name at least one block.")
        self.sizes = tuple(int(c) for c in sizes)
        self.dimension = sum(self.sizes)
        self.radius = float(np.sqrt(len(self.sizes)))

    def blocks(self) -> list[slice]:
        """The columns of each block."""
        ends = np.cumsum(self.sizes)
        return [slice(int(end) - c, int(end)) for c, end in zip(self.sizes, ends, strict=True)]

    def project(self, points: Floats) -> Floats:
        """Project block by block."""
        return np.hstack([Simplex(c).project(points[:, at]) for c, at in zip(self.sizes, self.blocks(), strict=True)])


def l1_radius(body: Body) -> float:
    """U with ‖x‖₁ ≤ U for every x in K: what one row can add to a sum of rows, in ℓ1.

    √p·R for any body; less for boxes, and for simplices, where every row's entries sum to 1 in each block.
    """
    largest = float(np.sqrt(body.dimension)) * body.radius
    if isinstance(body, Box):
        return min(largest, float(np.maximum(np.abs(body.lower), np.abs(body.upper)).sum()))
    if isinstance(body, Simplex):
        return 1.0
    if isinstance(body, ProductOfSimplices):
        return float(len(body.sizes))
    if isinstance(body, Intersection):
        return min(largest, *(l1_radius(part) for part in body.bodies))
    return largest


class HalfSpace:
    """⟨normal, x⟩ ≤ offset; unbounded, so intersect it with a bounded body."""

    def __init__(self, normal: Sequence[float] | Floats, offset: float) -> None:
        self.normal = np.asarray(normal, dtype=np.float64)
        if self.normal.ndim != 1 or not np.isfinite(self.normal).all() or not self.normal.any():
            raise ParameterError("normal must be a list of finite numbers that are not all 0.")
        self.offset = float(offset)
        self.dimension = len(self.normal)
        self.radius = float("inf")

    def project(self, points: Floats) -> Floats:
        """Move points beyond the boundary straight back to it."""
        along = np.ascontiguousarray(points * self.normal).sum(axis=1)  # row by row: no product of matrices
        beyond = np.maximum(along - self.offset, 0.0)
        return np.asarray(points - np.outer(beyond / (self.normal @ self.normal), self.normal))


def linear_radius(half_spaces: Sequence[HalfSpace], within: Box) -> float:
    """R with ‖x‖ ≤ R in all half-spaces and the box.

    Where l ≤ x ≤ u, x² ≤ (l + u)x − lu, coordinate by coordinate: so ‖x‖² is at most a linear function, whose maximum is a linear
    program. l and u are first drawn in, by two linear programs each. Exact where every vertex has its coordinates at l or u.
    """
    lower, upper = linear_bounds(half_spaces, within)
    square = _maximum(lower + upper, half_spaces, within) - float(lower @ upper)
    return min(within.radius, float(np.sqrt(max(square, 0.0))))


def linear_bounds(half_spaces: Sequence[HalfSpace], within: Box) -> tuple[Floats, Floats]:
    """The least and the largest value of every coordinate in all half-spaces and the box."""
    lower, upper = within.lower.copy(), within.upper.copy()
    for i, e in enumerate(np.eye(within.dimension)):
        lower[i] = max(lower[i], -_maximum(-e, half_spaces, within))
        upper[i] = min(upper[i], _maximum(e, half_spaces, within))
    return lower, upper


def _maximum(c: Floats, half_spaces: Sequence[HalfSpace], within: Box) -> float:
    """max ⟨c, x⟩ in all half-spaces and the box, rounded up by more than the solver's tolerance."""
    from scipy.optimize import linprog

    box = list(zip(within.lower, within.upper, strict=True))
    G, h = np.array([part.normal for part in half_spaces]), [part.offset for part in half_spaces]
    solved = linprog(-c, A_ub=G, b_ub=h, bounds=box, method="highs")
    if solved.status == 2:
        raise ParameterError("the half-spaces have no common point within the box. Check the inequalities.")
    if solved.status != 0 or solved.fun is None:
        return float(np.maximum(c * within.lower, c * within.upper).sum())  # what the box alone gives
    return -float(solved.fun) + 1e-6 * float(np.abs(c) @ np.maximum(np.abs(within.lower), np.abs(within.upper)))


class Intersection:
    """The points common to several bodies; projection by Dykstra's algorithm."""

    def __init__(self, *bodies: Body, tolerance: float = 1e-10, rounds: int = 10_000) -> None:
        if not bodies:
            raise ParameterError("an intersection needs at least one body.")
        if len({body.dimension for body in bodies}) > 1:
            raise ParameterError(f"the bodies have different dimensions: {[b.dimension for b in bodies]}.")
        parts = (body.bodies if isinstance(body, Intersection) else (body,) for body in bodies)
        self.bodies: tuple[Body, ...] = tuple(part for own in parts for part in own)
        self.dimension = bodies[0].dimension
        self.tolerance = tolerance
        self.rounds = rounds
        self._checked = False

    @cached_property
    def radius(self) -> float:
        """The least of the bodies' radii, and of what its boxes and half-spaces have together."""
        least = min(body.radius for body in self.bodies)
        boxes = [body for body in self.bodies if isinstance(body, Box)]
        half_spaces = [body for body in self.bodies if isinstance(body, HalfSpace)]
        if not boxes or not half_spaces:
            return least
        lower = np.max([box.lower for box in boxes], axis=0)
        upper = np.min([box.upper for box in boxes], axis=0)
        try:
            return min(least, linear_radius(half_spaces, Box(lower, upper)))
        except ParameterError:
            return least  # empty: projection says so

    def project(self, points: Floats) -> Floats:
        """Cyclic projections with Dykstra's corrections; each row stops when it no longer moves.

        Whether there is a common point at all is asked at the origin, once: no row can make this fail. A row that has not
        settled after all rounds (they can be slow far from K) stays where it is, within the last body.
        """
        if not self._checked:
            origin = dykstra(self.bodies, np.zeros((1, self.dimension)), self.tolerance, self.rounds)
            apart = max(float(np.max(np.abs(body.project(origin) - origin))) for body in self.bodies)
            if apart > 1e-6 * max(1.0, min(self.radius, 1e300)):
                raise ParameterError(
                    f"the bodies seem to have no common point: after {self.rounds} rounds they are {apart:.2g} apart."
                )
            self._checked = True
        return dykstra(self.bodies, points, self.tolerance, self.rounds)


def dykstra(bodies: Sequence[Body], points: Floats, tolerance: float, rounds: int) -> Floats:
    """The nearest common points of several bodies: one after another, with what each gave taken back first."""
    x = np.array(points, dtype=np.float64)
    corrections = [np.zeros_like(x) for _ in bodies]
    moving = np.arange(len(x))
    for _ in range(rounds):
        before = now = x[moving]
        moved = np.zeros(len(moving))
        for i, body in enumerate(bodies):
            y = now + corrections[i][moving]
            now = body.project(y)
            # A row alone may pause while its corrections still change: it has settled only when both have.
            moved = np.maximum(moved, np.abs(y - now - corrections[i][moving]).max(axis=1, initial=0.0))
            corrections[i][moving] = y - now
        x[moving] = now
        moved = np.maximum(moved, np.abs(now - before).max(axis=1, initial=0.0))
        moving = moving[moved > tolerance]
        if not len(moving):
            break
    return x


class Polytope(Intersection):
    """Gx ≤ h within a bounded box."""

    def __init__(self, G: Floats, h: Floats, within: Box) -> None:
        G, h = np.atleast_2d(np.asarray(G, dtype=np.float64)), np.atleast_1d(np.asarray(h, dtype=np.float64))
        if G.shape != (len(h), within.dimension):
            raise ParameterError(f"G must have shape ({len(h)}, {within.dimension}), got {G.shape}.")
        super().__init__(*map(HalfSpace, G, h), within)


FAR = 1024.0  # radii at which a body is asked for its furthest point: the box is wider than it need be by 2/FAR of a radius


def bounding_box(body: Body) -> tuple[Floats, Floats]:
    """Lower and upper bounds of every coordinate over K. Privacy does not rest on them: records are clipped to the box.

    Known bodies have closed forms or linear programs. Of a body that is known by its projection π alone, the largest coordinate
    follows from far away: with e a unit vector and y = π(tRe), ⟨tRe − y, z − y⟩ ≤ 0 for every z in K gives
    ⟨e, z⟩ ≤ ⟨e, y⟩ + 2R/t.
    """
    p, R = body.dimension, body.radius
    if isinstance(body, Box):
        return body.lower.copy(), body.upper.copy()
    if isinstance(body, Simplex | ProductOfSimplices):
        sizes = np.array(body.sizes if isinstance(body, ProductOfSimplices) else [p])
        return np.repeat(sizes == 1, sizes).astype(np.float64), np.ones(p)  # a single share is 1
    if isinstance(body, Ball):
        return body.centre - body.size, body.centre + body.size
    if not np.isfinite(R):
        raise ParameterError("body must be bounded. Intersect it with a Box or a Ball.")
    if isinstance(body, Intersection):
        return _common(body)
    reach = 2 * R / FAR
    far = body.project(np.concatenate([np.eye(p), -np.eye(p)]) * (FAR * R))
    upper, lower = np.diagonal(far[:p]) + reach, np.diagonal(far[p:]) - reach
    return np.maximum(lower, -R), np.minimum(upper, R)


def _common(body: Intersection) -> tuple[Floats, Floats]:
    """The box that all parts have in common; half-spaces cut it by linear programs."""
    parts = [part for part in body.bodies if not isinstance(part, HalfSpace)]
    half_spaces = [part for part in body.bodies if isinstance(part, HalfSpace)]
    boxes = [bounding_box(part) for part in parts if np.isfinite(part.radius)]
    lower, upper = np.max([b[0] for b in boxes], axis=0), np.min([b[1] for b in boxes], axis=0)
    if (lower > upper).any():
        raise ParameterError("the bodies have no common point: their boxes do not meet.")
    if not half_spaces:
        return lower, upper
    return linear_bounds(half_spaces, Box(lower, upper))
