"""Where a fit runs, how precisely, and its descent: on the processor, or on a graphics card that speaks the array API standard.

Only noisy, public numbers ever travel to a device: records are read, summed and protected on the processor, in exact integers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit

from covey.engine.arrays import Floats
from covey.errors import MissingExtraError, ParameterError


@dataclass(frozen=True)
class Device:
    """A namespace of the array API standard, a device of it (None: its own default), and the precision of what is fitted.

    Matrix products are in float32 everywhere. `double` keeps the fitted numbers and their slopes in float64: for small fits on
    the processor, where that costs nothing.
    """

    name: str
    xp: Any
    where: Any = None
    double: bool = False

    def put(self, array: Any) -> Any:
        """A float32 array on the device; on the processor it may share memory, so nobody writes to it."""
        narrow = np.ascontiguousarray(array, dtype=np.float32)
        return narrow if self.xp is np else self.xp.asarray(narrow, device=self.where)

    def vector(self, array: Any) -> Any:
        """Numbers that are fitted, or compared with such, in the precision of the fit."""
        return np.asarray(array, dtype=np.float64) if self.double else self.put(array)

    def single(self, array: Any) -> Any:
        """An array of this device in float32."""
        return self.xp.astype(array, self.xp.float32, copy=False)

    def sigmoid(self, logits: Any) -> Any:
        """1/(1 + e^(−logits)), for logits that are small enough not to overflow."""
        return expit(logits) if self.double else 1 / (1 + self.xp.exp(-logits))

    def get(self, array: Any) -> Floats:
        """An array of the device as float64 in ordinary memory."""
        return self.get32(array).astype(np.float64)

    def get32(self, array: Any) -> NDArray[np.float32]:
        """An array of the device in ordinary memory; on the processor the array itself."""
        if self.xp is not np:
            away = self.where is not None
            array = np.from_dlpack(import_module("array_api_compat").to_device(array, "cpu") if away else array)
        return np.asarray(array, dtype=np.float32)

    def indices(self, array: Any) -> Any:
        """Whole numbers on the device, to take columns by."""
        return self.xp.asarray(np.ascontiguousarray(array, dtype=np.int64), device=self.where)


# For wide tables: float32 throughout halves the memory that a step of the fit passes through.
PROCESSOR = Device("cpu", np)
DOUBLE = Device("cpu", np, double=True)  # for narrow tables


def find_device(name: str) -> Device:
    """The device of a name: "cpu" is numpy; "cuda" and "torch:…" are PyTorch's."""
    if name == "cpu":
        return PROCESSOR
    library, _, where = str(name).partition(":")
    if library == "cuda" or (library == "torch" and where):
        return _torch(str(name) if library == "cuda" else where)
    raise ParameterError(f"device must be 'cpu', 'cuda', 'cuda:1' or 'torch:…', got {name!r}.")


def _torch(where: str) -> Device:
    torch, xp = _load("torch"), _load("array_api_compat.torch")
    try:
        device = torch.device(where)
        torch.zeros(1, device=device)
    except (RuntimeError, AssertionError, NotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"PyTorch has no device {where!r} here ({reason}). Use device='cpu'.") from None
    return Device(f"torch:{where}", xp, device)


def _load(module: str) -> Any:
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            "a device other than 'cpu' needs PyTorch and array-api-compat: pip install 'covey[gpu]'."
        ) from error


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
