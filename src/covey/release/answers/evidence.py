"""Measured tables as evidence: unbiased tables of some columns, and the variance and fourth cumulant of their noise.

A column's categories are units: the codes between all edges of the ranges that were counted and of the cells of its bins. A
range that an edge of a cell cuts is split evenly (docs/proofs/intervals.md). A centred table is completed by those of fewer of
its columns: a table is the sum, over the sets S of its columns, of the centred table of S times the references of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import combinations
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.measurement import Measurement, Measurements
from covey.engine.noise.law import UNMEASURED
from covey.engine.query import Columns, Factor
from covey.errors import CannotAnswerError

ONE_ROW = ("row", "person", "across", "event")  # kinds of tables of a row, or of a person and one event
Slopes = Mapping[Columns, Floats]  # of combinations, a row for each, in the cells of tables

NOT_MEASURED = (
    "pairs of columns were not measured in this release, because noise would hide them. Questions about single columns can be "
    "answered. More rows, a larger ε, a positive δ or fewer columns would help."
)
CUT = (
    "this release shortened long rows before it measured pairs, so no interval for a pair would be honest. Questions about "
    "single columns can be answered. No rows are shortened with at most 20 columns, under pure ε, or with an at_most rule."
)
NOT_KEPT = "pairs of more than 1,000 columns are not kept in a bundle. Questions about single columns can be answered."


@dataclass(frozen=True)
class Noise:
    """Variance and fourth cumulant of the noise on each of several numbers."""

    variance: Floats
    fourth: Floats


@dataclass(frozen=True)
class Margin:
    """One attribute by itself: shares of ranges, the noise on each, who takes what they miss of 1, and counts of groups.

    `edges` are those of its units; each unit has its range, its part of that range, and its bin in pair tables.
    """

    counts: Floats
    sds: Floats
    rest: Floats
    tails: float
    edges: Integers
    ranges: Integers
    part: Floats
    bins: Integers
    groups: tuple[Integers, Floats, float] | None = None

    @classmethod
    def of(cls, found: list[Measurement], a: int, pairs: Measurement | None) -> Margin:
        """From the measurement of ranges, and one of groups of them; and from the bins of cells."""
        first, factor = found[0], found[0].query.factors[a]
        counts, sds = first.table((a,)), np.broadcast_to(first.sds((a,)), (factor.size,))
        if first.query.view == "product":  # a flag: zeros are what is left of 1
            counts, sds, rest = np.array([0.0, factor.law[1] + counts[1]]), sds * [0, 1], np.array([1.0, 0.0])
        elif not first.query.total:
            rest = np.zeros(len(sds))
        else:
            total = float((sds**2).sum())
            rest = sds**2 / total if total > 0 else np.full(len(sds), 1 / len(sds))
        bins = Factor(factor.edges, np.arange(len(counts))) if pairs is None else pairs.query.factors[a]
        edges = np.unique(np.concatenate([factor.edges, bins.edges]))
        at = np.searchsorted(factor.edges, edges[:-1], side="right") - 1
        units = edges, at, np.diff(edges) / np.diff(factor.edges)[at], bins.at(edges[:-1])
        groups = None
        for more in found[1:2]:
            groups = more.query.factors[a].bins, more.table((a,)), float(more.sds((a,)))
        return cls(counts, sds, rest, first.tails, *units, groups)

    @cached_property
    def pull(self) -> Floats:
        """How far each range of a group moves per count that the group's own measurement has more than their sum."""
        assert self.groups is not None
        of, _, sd = self.groups
        summed = np.bincount(of, self.sds**2)
        return np.asarray(summed / (summed + sd**2) / np.bincount(of))

    @cached_property
    def shares(self) -> Floats:
        """Of the ranges: unbiased, and they sum to 1."""
        counts = self.counts
        if self.groups is not None:
            of, coarse, _ = self.groups
            counts = counts + (self.pull * (coarse - np.bincount(of, counts)))[of]
        return np.asarray(counts + (1 - counts.sum()) * self.rest)

    @cached_property
    def bin_deviations(self) -> Floats:
        """The standard deviation of the noise on the share of each bin of the pair tables."""
        each = (self.bins == np.arange(self.bins.max() + 1)[:, None]).astype(np.float64)
        return np.sqrt(self.noise(self.by_ranges(each)).variance)

    def by_ranges(self, slopes: Floats) -> Floats:
        """Slopes in units as slopes in ranges."""
        return np.add.reduceat(slopes * self.part, np.flatnonzero(np.diff(self.ranges, prepend=-1)), axis=1)

    def noise(self, slopes: Floats) -> Noise:
        """Of combinations of ranges; their sum is known."""
        free, variance, fourth = slopes - (slopes @ self.rest)[:, None], 0.0, 0.0
        if self.groups is not None:
            of, _, sd = self.groups
            moved = self.pull * (free @ (of[:, None] == np.arange(of.max() + 1)))
            free = free - moved[:, of]
            variance, fourth = sd**2 * (moved**2).sum(axis=1), self.tails * sd**4 * (moved**4).sum(axis=1)
        return Noise(variance + free**2 @ self.sds**2, fourth + self.tails * (free**4 @ self.sds**4))


@dataclass(frozen=True)
class Evidence:
    """What measurements say of tables of some columns; `of` names the kinds of tables that are looked at."""

    found: Measurements
    of: tuple[str, ...] = ONE_ROW

    @cached_property
    def margins(self) -> list[Margin]:
        """Of every attribute by itself."""
        alone = [
            [m for m in self.found.holding((a,)) if m.query.of in ONE_ROW and not m.query.cut]
            for a in range(self.found.width)
        ]
        return [Margin.of(found, a, self.found.pairs()) for a, found in enumerate(alone) if found]

    def bins(self, a: int) -> Integers:
        """Unit → bin of the pair tables."""
        return self.margins[a].bins

    def one_way(self, a: int) -> Floats:
        """Shares of units; noise may make one negative."""
        return np.asarray(self.margins[a].shares[self.margins[a].ranges] * self.margins[a].part)

    def holds(self, columns: Columns) -> bool:
        """Whether a table of these columns was measured."""
        return any(m.query.of in self.of for m in self.found.holding(columns))

    def maps(self, columns: Columns) -> tuple[Integers, ...]:
        """Unit → bin of the table of these columns."""
        factors = self._holding(columns)[0].query.factors
        return tuple(factors[a].at(self.margins[a].edges[:-1]) for a in columns)

    def _turned(self, columns: Columns) -> bool:
        """Whether the table of two columns was measured the other way round."""
        return len(columns) == 2 and not self.holds(columns) and self.holds(columns[::-1])

    def _holding(self, columns: Columns) -> list[Measurement]:
        found = [m for m in self.found.holding(columns) if m.query.of in self.of]
        if any(m.query.cut for m in found):
            raise CannotAnswerError(CUT)
        if not found:
            pairs = self.found.pairs()
            lost = pairs is not None and pairs.law is not UNMEASURED and not pairs.kept and len(columns) == 2
            raise CannotAnswerError(NOT_KEPT if lost else NOT_MEASURED)
        return found

    def table(self, columns: Columns) -> Floats:
        """Unbiased shares of a table's cells, which sum to 1 where every unit lies in one of them."""
        if self._turned(columns):
            return self.table(columns[::-1]).T
        first = self._holding(columns)[0]
        if first.query.view == "cells":
            own = first.table(columns)
            return np.asarray(own + (1 - own.sum()) / own.size) if first.query.total else own
        laws = [first.query.factors[a].law for a in columns]
        out = np.zeros([len(law) for law in laws])
        for S in _subsets(len(columns)):
            others = [_spread(laws[k], (k,), len(columns)) for k in range(len(columns)) if k not in S]
            out = out + reduce(np.multiply, others, _spread(self._centred(columns, S), S, len(columns)))
        return out

    def _centred(self, columns: Columns, S: Columns) -> Floats:
        """The centred table of some of the columns."""
        own = tuple(columns[k] for k in S)
        if len(own) > 1:
            found = self._holding(own)
            tables = (part * m.table(own) for part, m in zip(self._parts(found, own), found, strict=True))
            return np.asarray(sum(tables))
        if not own:
            return np.ones(())
        factor = self._holding(columns)[0].query.factors[own[0]]
        to = factor.at(self.margins[own[0]].edges[:-1])
        return np.asarray(np.bincount(to, self.one_way(own[0])) - factor.law)

    @staticmethod
    def _parts(found: list[Measurement], columns: Columns) -> Floats:
        """Weights of several measurements, by their variances."""
        exact = np.array([1 / max(float(m.sds(columns)), 1e-150) ** 2 for m in found])
        return np.asarray(exact / exact.sum())

    def coordinate(self, columns: Columns) -> tuple[float, float]:
        """Variance and fourth cumulant of the noise on one coordinate of a table."""
        found = self._holding(columns)
        sds, parts = np.array([float(m.sds(columns)) for m in found]), self._parts(found, columns)
        return float((parts * sds) ** 2 @ np.ones(len(sds))), float((parts * sds) ** 4 @ [m.tails for m in found])

    def noise(self, slopes: Slopes) -> Noise:
        """The noise on combinations with these slopes: in units of one column, in bins of tables of several."""
        one: dict[int, Any] = {}
        parts: dict[tuple[Columns, str], Any] = {}
        for columns, s in slopes.items():
            if len(columns) == 1:
                one[columns[0]] = one.get(columns[0], 0) + s
                continue
            if self._turned(columns):
                columns, s = columns[::-1], s.swapaxes(1, 2)
            first = self._holding(columns)[0].query
            known = "margins" if first.view != "cells" else "total" if first.total else ""
            for S in _subsets(len(columns))[1:] if known == "margins" else [tuple(range(len(columns)))]:
                own = s
                for k in reversed([k for k in range(len(columns)) if k not in S]):
                    own = np.tensordot(own, first.factors[columns[k]].law, axes=(k + 1, 0))
                if len(S) == 1:
                    a = columns[S[0]]
                    one[a] = one.get(a, 0) + own[:, first.factors[a].at(self.margins[a].edges[:-1])]
                else:
                    key = tuple(columns[k] for k in S), known
                    parts[key] = parts.get(key, 0) + own
        variance, fourth = np.zeros((2, len(next(iter(slopes.values())))))
        for (columns, known), s in parts.items():
            own_variance, own_fourth = self.coordinate(columns)
            axes: Any = tuple(range(1, s.ndim))
            for axis in {"margins": axes, "total": [axes], "": []}[known]:
                s = s - s.mean(axis=axis, keepdims=True)
            variance = variance + own_variance * (s**2).sum(axis=axes)
            fourth = fourth + own_fourth * (s**4).sum(axis=axes)
        for a, s in one.items():
            more = self.margins[a].noise(self.margins[a].by_ranges(s))
            variance, fourth = variance + more.variance, fourth + more.fourth
        return Noise(variance, fourth)


def _subsets(count: int) -> list[Columns]:
    """Of the numbers from 0, the empty one first."""
    return [S for size in range(count + 1) for S in combinations(range(count), size)]


def _spread(values: Floats, own: Columns, count: int) -> Floats:
    """Values along some of so many axes."""
    return np.expand_dims(values, [k for k in range(count) if k not in own])
