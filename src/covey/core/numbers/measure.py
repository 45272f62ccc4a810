"""A released measure of a number: masses on disjoint ranges of codes, even inside each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.numbers.grid import NumberGrid


@dataclass(frozen=True)
class Measure:
    """Shares of ranges [start, stop) of codes, in order; they sum to 1. Private: it was made of noisy counts."""

    grid: NumberGrid
    start: Integers
    stop: Integers
    share: Floats

    def below(self, codes: Integers) -> Floats:
        """The share of codes below each of these: a distribution function, linear inside ranges."""
        edge = np.concatenate([[0.0], np.cumsum(self.share)])
        at = np.clip(np.searchsorted(self.start, codes, side="right") - 1, 0, len(self.start) - 1)
        inside = np.clip((codes - self.start[at]) / (self.stop[at] - self.start[at]), 0.0, 1.0)
        return np.asarray(edge[at] + self.share[at] * inside)

    def mass(self, edges: Integers) -> Floats:
        """Shares between consecutive edges."""
        return np.asarray(np.diff(self.below(edges)))

    def at(self, level: Floats, low: Integers, high: Integers) -> Integers:
        """The codes at which the distribution function passes these levels, kept inside [low, high)."""
        edge = np.concatenate([[0.0], np.cumsum(self.share)])
        i = np.clip(np.searchsorted(edge, level, side="right") - 1, 0, len(self.start) - 1)
        inside = (level - edge[i]) / np.maximum(self.share[i], 1e-300) * (self.stop[i] - self.start[i])
        codes = self.start[i] + np.floor(np.clip(inside, 0, self.stop[i] - self.start[i] - 1)).astype(np.int64)
        return np.asarray(np.clip(codes, low, high - 1))

    def quantile(self, level: float) -> int:
        """The range in which the values' distribution function passes a level, by its start; specials do not count."""
        values = np.flatnonzero(self.start >= self.grid.specials)
        if not len(values):
            return self.grid.specials
        running = np.cumsum(self.share[values])
        return int(self.start[values[np.searchsorted(running[:-1], level * running[-1])]])
