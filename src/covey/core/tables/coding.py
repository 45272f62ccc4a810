"""Bits as vectors around a centre, clipped to a ball: fewer places to hide in means less noise.

Coded at ½ every row has the same norm √p/2 and nothing is clipped. For a sparse table, or one with a declared limit on how many
flags a row may set, a centre near the means and a smaller ball shrink the sensitivity; rows outside are scaled back to it,
one by one, and the fit accounts for the clipping.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.tables.sparse import Batch

UNIT = 1 << 10  # the centre and coded rows are integers in steps of 1/1024
LENGTH_ENTRIES = 1 << 22  # of rows that become float64 at once: 32 MB


@dataclass(frozen=True)
class Coding:
    """Rows u = x − centre with ‖u‖² ≤ radius², in integer steps of 2^-10 (centre) and 2^-20 (radius_squared)."""

    centre: Integers
    radius_squared: int
    clips: bool

    @classmethod
    def half(cls, p: int) -> Coding:
        """Around ½: every row has squared norm p/4, and none is clipped."""
        return cls(np.full(p, UNIT // 2), p * UNIT**2 // 4, clips=False)

    def encode(self, batch: Array) -> Floats:
        """The coded rows, as integers. Clipping truncates toward zero, so no row leaves the ball."""
        u = batch.astype(np.float64) * UNIT - self.centre
        if self.clips:
            norm = (u * u).sum(axis=1)  # exact integers below 2^53
            long = norm > self.radius_squared
            factor = np.sqrt(self.radius_squared / norm[long]) * (1 - 2.0**-40)
            u[long] = np.trunc(u[long] * factor[:, None])
        return np.asarray(u)

    def lengths(self, batch: Batch) -> Floats:
        """‖u‖² of the rows before clipping, exact integers in steps of 2^-20."""
        return squared_lengths(batch, self.centre)

    @cached_property
    def middle(self) -> Floats:
        """The centre as real numbers."""
        return self.centre / UNIT

    @cached_property
    def size(self) -> float:
        """The squared radius as a real number."""
        return self.radius_squared / UNIT**2

    def clip_factors(self, y: Array) -> tuple[Array, Array, Array, Array]:
        """What clipping does to a row drawn from each centre: the mean factor on u, its slope in ‖u‖², and both squared.

        ‖u‖² is taken as normal, by a three-point rule, with the variance that independent columns would have.
        """
        return self.clip_factors_along(y @ (1 - 2 * self.middle).astype(np.float32))

    def clip_factors_along(self, along: Array) -> tuple[Array, Array, Array, Array]:
        """The same from the inner products of the centres with 1 − 2·centre, all that it depends on."""
        slope = 1 - 2 * self.middle
        length = along + np.float32((self.middle**2).sum())
        spread = np.sqrt(3 * (self.middle * (1 - self.middle)) @ slope**2)
        s = np.maximum(length[:, None] + np.float32(spread) * np.array([-1, 0, 1], np.float32), np.float32(1e-6))
        over = s > self.size
        two = np.where(over, self.size / s, 1)
        one = np.sqrt(two)
        parts = (one, np.where(over, -one / (2 * s), 0), two, np.where(over, -two / s, 0))
        rule = np.array([1, 4, 1]) / 6
        a, b, c, d = ((part @ rule).astype(np.float32) for part in parts)
        return a, b, c, d

    def clip_error(self, y: Array, public: np.random.Generator, copies: int = 50) -> tuple[Floats, Floats]:
        """What `clip_factors` misses: simulated minus approximated effect of clipping on means and pairs, for given centres.

        Copies of the same rows with and without clipping are compared, so only clipped rows add noise.
        """
        k = len(y)
        x = (public.random((copies * k, y.shape[1]), dtype=np.float32) < np.repeat(y, copies, axis=0)).astype(
            np.float32
        )
        u, v = x - self.middle.astype(np.float32), (self.encode(x) / UNIT).astype(np.float32)
        one, _, two, _ = self.clip_factors(y)
        w = y - self.middle
        mean = (v - u).mean(axis=0, dtype=np.float64) - (one - 1) @ w / k
        pair = (v.T @ v - u.T @ u) / len(x) - (w * (two - 1)[:, None]).T @ w / k
        np.fill_diagonal(pair, 0)
        return mean, np.asarray(pair)


def wide_enough(outside: Floats, tail: float) -> int:
    """The radius from which on no more than `tail` of the rows seem to lie outside, by its place; their number if there is none.

    The share outside falls with the radius, and its noise adds up toward small ones. So the last one that is too tight decides:
    with few rows the first that seemed wide enough could be next to nothing, and every row would be clipped to it.
    """
    tight = np.flatnonzero(outside > tail)
    return int(tight[-1]) + 1 if len(tight) else 0


def squared_lengths(batch: Batch, centre: Integers) -> Floats:
    """‖1024·x − centre‖² of rows of bits: Σc² plus 1024² − 2048·c for every one, integers below 2^53 in any order of summing."""
    weight = (UNIT**2 - 2 * UNIT * centre).astype(np.float64)
    step = max(1, LENGTH_ENTRIES // batch.shape[1])
    parts = [batch[start : start + step].astype(np.float64) @ weight for start in range(0, batch.shape[0], step)]
    return np.concatenate(parts) + float(centre @ centre) if parts else np.zeros(0)
