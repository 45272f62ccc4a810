"""Evidence of tables with numbers at their own precision: noisy counts of ranges, and pair tables of bins of cells.

A number's categories are units: the codes between all edges of its ranges and of its cells. A range that an edge of a cell cuts
is split evenly: only ranges that hold next to nothing beyond their noise are left whole by a tree, so what this may miss is of
the size of the noise that is counted (docs/proofs/intervals.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey.answers.evidence import (
    NOT_MEASURED,
    TAILS,
    BitEvidence,
    CategoryEvidence,
    Evidence,
    Noise,
    One,
    Two,
    from_centred,
    pair_noise,
)
from covey.core.arrays import Floats, Integers
from covey.errors import CannotAnswerError
from covey.methods.regain.measured import MeasuredBits, MeasuredNumbers, Measurements


@dataclass(frozen=True)
class Units:
    """One attribute: edges of its units, and for each its range, its part of that range, and its bin."""

    edges: Integers
    ranges: Integers
    part: Floats
    bins: Integers


@dataclass(frozen=True)
class NumberEvidence:
    """Counts of ranges whose noise differs, and noisy centred pair tables of bins."""

    measured: MeasuredNumbers

    @cached_property
    def units(self) -> list[Units]:
        """Of every attribute."""
        m, out = self.measured, []
        for own, cells, bins in zip(m.one_way, m.cells, m.maps, strict=True):
            edges = np.unique(np.concatenate([own.edges, cells]))
            at = np.searchsorted(own.edges, edges[:-1], side="right") - 1
            part = np.diff(edges) / np.diff(own.edges)[at]
            cell = np.searchsorted(cells, edges[:-1], side="right") - 1
            out.append(Units(edges, at, part, bins[cell]))
        return out

    @property
    def sizes(self) -> tuple[int, ...]:
        """Units of every attribute."""
        return tuple(len(unit.part) for unit in self.units)

    def bins(self, a: int) -> Integers:
        """Unit → bin."""
        return self.units[a].bins

    @cached_property
    def _ranges(self) -> list[Floats]:
        """Shares of ranges; what they miss of 1 goes to the noisiest, in proportion to their variances."""
        n = self.measured.n
        return [o.counts / n + (1 - o.counts.sum() / n) * _weights(o.sds) for o in self.measured.one_way]

    def one_way(self, a: int) -> Floats:
        """Shares of units."""
        unit = self.units[a]
        return np.asarray(self._ranges[a][unit.ranges] * unit.part)

    def pair(self, a: int, b: int) -> Floats:
        """As for categories."""
        m = self.measured
        if m.law.family == "none":
            raise CannotAnswerError(NOT_MEASURED)
        rows, columns = (np.asarray(np.bincount(self.bins(x), self.one_way(x)), dtype=np.float64) for x in (a, b))
        return from_centred(m.pairs[m.law.domain.block(a), m.law.domain.block(b)] / m.n, rows, columns)

    def noise(self, one: One, two: Two) -> Noise:
        """Slopes in units become slopes in ranges; the noise leaves their sum at 1."""
        m = self.measured
        slopes, found = pair_noise(m.law, m.n, self.bins, one, two)
        variance, fourth = found.variance, found.fourth
        for a, slope in slopes.items():
            unit, own = self.units[a], m.one_way[a]
            summed = np.add.reduceat(slope * unit.part, np.flatnonzero(np.diff(unit.ranges, prepend=-1)), axis=1)
            free, sd = summed - (summed @ _weights(own.sds))[:, None], own.sds / m.n
            variance = variance + (free**2) @ sd**2
            fourth = fourth + (TAILS if m.pure else 0.0) * ((free**4) @ sd**4)
        return Noise(variance, fourth)


def _weights(sds: Floats) -> Floats:
    """Variances as shares of their sum; even where there is none."""
    total = float((sds**2).sum())
    return np.asarray(sds**2 / total) if total > 0 else np.full(len(sds), 1 / len(sds))


def evidence_of(measured: Measurements) -> Evidence:
    """The evidence of a release."""
    if isinstance(measured, MeasuredNumbers):
        return NumberEvidence(measured)
    return BitEvidence(measured) if isinstance(measured, MeasuredBits) else CategoryEvidence(measured)
