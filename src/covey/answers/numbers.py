"""Evidence of tables of categories and numbers: noisy counts of ranges, and pair tables of bins of cells.

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
    CellNoise,
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
    """One attribute: edges of its units, and for each its range, its part of that range, its cell, and its bin."""

    edges: Integers
    ranges: Integers
    part: Floats
    cells: Integers
    bins: Integers

    @classmethod
    def of(cls, ranges: Integers, cells: Integers, bins: Integers) -> Units:
        """From edges of ranges and of cells, and the bin of each cell."""
        edges = np.unique(np.concatenate([ranges, cells]))
        at = np.searchsorted(ranges, edges[:-1], side="right") - 1
        part = np.diff(edges) / np.diff(ranges)[at]
        cell = np.searchsorted(cells, edges[:-1], side="right") - 1
        return cls(edges, at, part, cell, bins[cell])


@dataclass(frozen=True)
class NumberEvidence:
    """Counts of ranges whose noise differs, and noisy centred pair tables of bins."""

    measured: MeasuredNumbers

    @cached_property
    def units(self) -> list[Units]:
        """Of every attribute."""
        m = self.measured
        return [Units.of(own.edges, cells, bins) for own, cells, bins in zip(m.one_way, m.cells, m.maps, strict=True)]

    def cell(self, a: int) -> Integers:
        """Unit → cell."""
        return self.units[a].cells

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
        n, found = self.measured.n, []
        for a, own in enumerate(self.measured.one_way):
            counts = own.counts
            if a in self.measured.groups:
                groups = self.measured.groups[a]
                counts = counts + (self._pull(a) * (groups.counts - np.bincount(groups.of, counts)))[groups.of]
            found.append(counts / n + (1 - counts.sum() / n) * _weights(own.sds))
        return found

    def _pull(self, a: int) -> Floats:
        """How far each category of a group moves per count that the group's own measurement has more than their sum."""
        groups, sds = self.measured.groups[a], self.measured.one_way[a].sds
        summed = np.bincount(groups.of, sds**2)
        return np.asarray(summed / (summed + groups.sd**2) / np.bincount(groups.of))

    def one_way(self, a: int) -> Floats:
        """Shares of units."""
        unit = self.units[a]
        return np.asarray(self._ranges[a][unit.ranges] * unit.part)

    def pair(self, a: int, b: int) -> Floats:
        """The centred table plus what its margins add; of an important pair both measurements, averaged by their variances."""
        m, d = self.measured, self.measured.law.domain
        second = m.important is not None and (a, b) in m.important.pairs
        if m.law.family == "none" and not second:
            raise CannotAnswerError(NOT_MEASURED)
        centred, (one, two) = m.pairs[d.block(a), d.block(b)] / m.n, self._parts(a, b)
        if m.important is not None and second:
            centred = one * centred + two * m.important.tables[d.block(a), d.block(b)]
        rows, columns = (np.asarray(np.bincount(self.bins(x), self.one_way(x)), dtype=np.float64) for x in (a, b))
        return from_centred(centred, rows, columns)

    def _parts(self, a: int, b: int) -> tuple[float, float]:
        """The weights of the first and the second measurement of a pair."""
        m = self.measured
        if m.important is None or (a, b) not in m.important.pairs:
            return 1.0, 0.0
        first = 0.0 if m.law.family == "none" else (m.n / m.law.sd) ** 2
        second = 1 / m.important.sd**2
        return first / (first + second), second / (first + second)

    def cells(self, a: int, b: int) -> CellNoise:
        """The noise of a coordinate of a pair table."""
        m, (one, two) = self.measured, self._parts(a, b)
        own = CellNoise(0.0, 0.0) if not one else CellNoise.of(m.law, m.n)
        if m.important is None or not two:
            return own
        sd, tails = m.important.sd, TAILS if m.pure else 0.0
        return CellNoise(one**2 * own.variance + two**2 * sd**2, one**4 * own.fourth + two**4 * tails * sd**4)

    def noise(self, one: One, two: Two) -> Noise:
        """Slopes in units become slopes in ranges; the noise leaves their sum at 1."""
        m = self.measured
        slopes, found = pair_noise(self.cells, self.bins, one, two)
        variance, fourth = found.variance, found.fourth
        for a, slope in slopes.items():
            unit, own = self.units[a], m.one_way[a]
            summed = np.add.reduceat(slope * unit.part, np.flatnonzero(np.diff(unit.ranges, prepend=-1)), axis=1)
            free, sd = summed - (summed @ _weights(own.sds))[:, None], own.sds / m.n
            if a in m.groups:
                of, coarse = m.groups[a].of, m.groups[a].sd / m.n
                moved = self._pull(a) * (free @ (of[:, None] == np.arange(of.max() + 1)))
                free = free - moved[:, of]
                variance = variance + (moved**2).sum(axis=1) * coarse**2
                fourth = fourth + (TAILS if m.pure else 0.0) * (moved**4).sum(axis=1) * coarse**4
            variance = variance + (free**2) @ sd**2
            fourth = fourth + (TAILS if m.pure else 0.0) * ((free**4) @ sd**4)
        return Noise(variance, fourth)


def _weights(sds: Floats) -> Floats:
    """Variances as shares of their sum; even where there is none."""
    total = float((sds**2).sum())
    return np.asarray(sds**2 / total) if total > 0 else np.full(len(sds), 1 / len(sds))


def evidence_of(measured: Measurements) -> Evidence:
    """The evidence of a release."""
    return BitEvidence(measured) if isinstance(measured, MeasuredBits) else NumberEvidence(measured)
