"""A public box around a convex body: the scale in which numbers of a body are counted."""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Floats
from covey.core.paper.bodies import (
    Ball,
    Body,
    Box,
    HalfSpace,
    Intersection,
    Polytope,
    ProductOfSimplices,
    Simplex,
    linear_bounds,
)
from covey.errors import ParameterError

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
    if isinstance(body, Polytope):
        return linear_bounds(body.G, body.h, body.within)
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
    G, h = np.vstack([part.normal for part in half_spaces]), np.array([part.offset for part in half_spaces])
    return linear_bounds(G, h, Box(lower, upper))
