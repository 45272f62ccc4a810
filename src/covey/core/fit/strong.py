"""Strong pairs: entries of a p × p residual that stand out of its noise, found strip by strip and kept as a short list."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from covey.core.arrays import Array, Floats, Integers, above_diagonal
from covey.core.fit.devices import Device
from covey.core.fit.shrinkage import SpikeSlab, fit_spike_slab

PARTNERS = 8  # strong pairs kept for a column: they bound the memory and the work of a step
FINENESS = (
    256  # bins of the histogram of residuals: σ/256 near zero, one part in 256 far out, so EM loses nothing by it
)
BINS = 1 << 13  # up to sinh(32) deviations, which no float32 residual surpasses

Strips: TypeAlias = Callable[[], Iterator[tuple[int, Array]]]  # rows of a square matrix, and where they begin


@dataclass(frozen=True)
class StrongPairs:
    """A symmetric sparse matrix S with empty diagonal, as its entries above the diagonal."""

    i: Integers
    j: Integers
    effect: Floats

    @classmethod
    def none(cls) -> StrongPairs:
        """The empty matrix."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    def inside(self, device: Device, basis: Any) -> Any:
        """QᵀSQ for a basis Q."""
        Q = device.get(basis)
        half = (Q[self.i] * self.effect[:, None]).T @ Q[self.j]
        return device.put(half + half.T)

    def take_out_of(self, matrix: Array) -> None:
        """matrix − S, in place."""
        matrix[self.i, self.j] -= self.effect
        matrix[self.j, self.i] -= self.effect


def residual_prior(strips: Strips, p: int, sd: float) -> tuple[SpikeSlab, float]:
    """The spike and the slab of all entries above the diagonal, by EM on their histogram; and a size that few enough surpass."""
    counts, squares = np.zeros(BINS), np.zeros(BINS)
    for begin, strip in strips():
        x = np.abs(strip[above_diagonal(begin, begin + len(strip), p)])
        cell = np.minimum(np.arcsinh(x / np.float32(sd)) * FINENESS, BINS - 1).astype(np.int32)
        counts += np.bincount(cell, minlength=BINS)
        squares += np.bincount(cell, weights=x.astype(np.float64) ** 2, minlength=BINS)
    seen = counts > 0
    prior = fit_spike_slab(squares[seen] / counts[seen], sd, counts[seen])
    beyond = np.cumsum(counts[::-1])[::-1]
    first = int(np.argmax(beyond <= PARTNERS * p // 2))
    return prior, sd * float(np.sinh(first / FINENESS))


def find_strong(strips: Strips, prior: SpikeSlab, least: float) -> StrongPairs:
    """Pairs that rather come from the slab, at most PARTNERS to a column, and their shrunken sizes."""
    found: list[tuple[Integers, Integers, Floats]] = []
    for begin, strip in strips():
        i, j = np.nonzero(above_diagonal(begin, begin + len(strip), strip.shape[1]) & (np.abs(strip) > least))
        found.append((i + begin, j, strip[i, j].astype(np.float64)))
    i, j, x = (np.concatenate(part) for part in zip(*found, strict=True))
    keep = prior.slab_probability(x * x) > 0.5
    i, j, effect = i[keep], j[keep], x[keep] * (prior.slab**2 / (prior.slab**2 + prior.noise**2))
    keep = few_per_column(i, j, effect)
    return StrongPairs(i[keep], j[keep], effect[keep])


def few_per_column(i: Integers, j: Integers, effect: Floats) -> Array:
    """Which pairs are among the PARTNERS strongest of both of their columns."""
    strength = np.abs(np.concatenate([effect, effect]))
    column = np.concatenate([i, j])
    order = np.lexsort((-strength, column))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(column[order], column[order])
    return np.asarray((rank < PARTNERS).reshape(2, -1).all(axis=0))


@dataclass(frozen=True)
class Partners:
    """The same matrix by column, on a device: for each column a few others and the strength of each pair."""

    others: Any  # width × p
    strength: Any  # width × p, 0 where a slot is unused
    square: float  # ‖S‖²

    @classmethod
    def of(cls, device: Device, pairs: StrongPairs, p: int) -> Partners | None:
        """Strong pairs among p columns; None where there are none."""
        i, j, effect = pairs.i, pairs.j, pairs.effect
        if not len(i):
            return None
        one, other, strength = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([effect, effect])
        order = np.argsort(one, kind="stable")
        one, other, strength = one[order], other[order], strength[order]
        slot = np.arange(len(one)) - np.searchsorted(one, one)
        others, table = np.zeros((int(slot.max()) + 1, p), np.int64), np.zeros((int(slot.max()) + 1, p))
        others[slot, one], table[slot, one] = other, strength
        return cls(device.indices(others), device.put(table), float(strength @ strength))

    def times(self, xp: Any, F: Any) -> Any:
        """F·S, column by column."""
        out = xp.zeros_like(F)
        for b in range(self.others.shape[0]):
            out = out + xp.take(F, self.others[b, :], axis=1) * self.strength[b, :]
        return out
