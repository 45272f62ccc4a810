"""L-BFGS on arrays of any device: one vector in, one vector out, nothing but products and sums in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from covey.core.arrays import Floats
from covey.core.fit.devices import Device

HISTORY = 6  # pairs of steps and slopes that are remembered, each two vectors as long as x
DECREASE, CURVATURE = 1e-4, 0.9  # the usual constants of the Wolfe conditions (Nocedal and Wright, section 3.1)
TRIES = 12  # of one line search: a step is halved or doubled so often at most

Objective = Callable[[Any], tuple[float, Any]]  # the loss at a vector, and its gradient


def descend(device: Device, objective: Objective, start: Floats, steps: int) -> Floats:
    """Where at most `steps` steps of L-BFGS lead: scipy's on double precision, our own on float32 and on other devices."""
    if not device.double:
        return device.get(descend_on(device.xp, objective, device.put(start), steps))

    def in_double(x: Floats) -> tuple[float, Floats]:
        loss, gradient = objective(x)
        return loss, np.asarray(gradient, dtype=np.float64)

    options: Any = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": HISTORY, "ftol": 1e-12, "gtol": 1e-12}
    return np.asarray(minimize(in_double, start, jac=True, method="L-BFGS-B", options=options).x)


def descend_on(xp: Any, objective: Objective, x: Any, steps: int) -> Any:
    """L-BFGS with a line search that bisects until the weak Wolfe conditions hold (Lewis and Overton 2013).

    `objective` returns the loss and its gradient at a vector x. At most `steps` steps and twice as many evaluations; where
    float32 shows no further descent it stops.
    """
    loss, g = objective(x)
    pairs: list[tuple[Any, Any, float]] = []
    left = 2 * steps
    for _ in range(steps):
        direction = _direction(xp, g, pairs)
        slope = _dot(xp, g, direction)
        if not slope < 0:
            break
        low, high = 0.0, float("inf")
        step = 1.0 if pairs else min(1.0, 1.0 / float(xp.sum(xp.abs(g))))
        for _ in range(TRIES):
            near = x + step * direction
            there, g_there = objective(near)
            left -= 1
            if not there <= loss + DECREASE * step * slope:
                high = step
            elif _dot(xp, g_there, direction) < CURVATURE * slope:
                low = step
            else:
                break
            step = 2 * step if high == float("inf") else (low + high) / 2
        if not there < loss:
            break
        s, y = near - x, g_there - g
        sy = _dot(xp, s, y)
        if sy > 1e-10 * _dot(xp, y, y):
            pairs = [*pairs[1 - HISTORY :], (s, y, sy)]
        x, loss, g = near, there, g_there
        if left <= 0:
            break
    return x


def _direction(xp: Any, g: Any, pairs: list[tuple[Any, Any, float]]) -> Any:
    """−H·g by the two-loop recursion, H the inverse Hessian that the pairs suggest."""
    d = -g
    factors = []
    for s, y, sy in reversed(pairs):
        a = _dot(xp, s, d) / sy
        factors.append(a)
        d = d - a * y
    if pairs:
        _, y, sy = pairs[-1]
        d = d * (sy / _dot(xp, y, y))
    for (s, y, sy), a in zip(pairs, reversed(factors), strict=True):
        d = d + (a - _dot(xp, y, d) / sy) * s
    return d


def _dot(xp: Any, a: Any, b: Any) -> float:
    return float(xp.vecdot(a, b))
