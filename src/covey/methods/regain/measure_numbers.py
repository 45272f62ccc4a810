"""All that tables with numbers ask of records beyond pair tables, through the gate: one-way counts, trees, sums of ranks.

Each round of a tree counts a partition of all codes, of which a replaced row moves two counts by one: by 2 in ℓ1 and √2 in ℓ2,
whatever partition the rounds before it suggested (docs/proofs/trees.md).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Protocol

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.numbers.cells import Cells
from covey.core.numbers.counting import CodeCounts, RangeCounts, counted_fully, ranges_of
from covey.core.numbers.distance import comparison_edges, kolmogorov_bound, released_below
from covey.core.numbers.grid import Attribute, NumberGrid
from covey.core.numbers.ranks import RankScores, rank_matrix
from covey.core.numbers.tree import Tree
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import Counts, part
from covey.core.tables.distance import largest
from covey.core.tables.domain import Domain
from covey.core.tables.hierarchy import group_counts
from covey.engines.rows import Rows
from covey.measure.measurement import Measurement
from covey.measure.query import Factor, Query
from covey.methods.regain.measure import Tables, entries
from covey.methods.regain.plan_numbers import NumberPlan, grids, matrix_is_better, rank_moves
from covey.privacy.gate import WHOLE, Exact, Gate, Measured, Moves

GROUPS = Fraction(1, 4)  # of an attribute's one-way charge, for the counts of its groups: these are few
ONE_ROW = Moves(l1=2, l2_squared=2)  # two counts of a partition by one


def codes_kernel(attributes: tuple[Attribute, ...]) -> CodeCounts:
    """What the first pass counts: every code of categories, and of numbers as long as there is room; public."""
    sizes = tuple(a.size for a in attributes)
    numbers = grids(attributes)
    full = counted_fully([sizes[j] for j in numbers])
    late = {j for j, fits in zip(numbers, full, strict=True) if not fits}
    columns = tuple(j for j in range(len(sizes)) if j not in late)
    return CodeCounts(columns, tuple(sizes[j] for j in columns))


class CountedCodes(Protocol):
    """Exact one-way counts of the codes of a table's attributes. Sealed."""

    @property
    def n(self) -> int:
        """How many units there are."""

    def codes(self, j: int) -> Exact[Integers]:
        """Counts of every code of an attribute."""

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Exact[Integers]]:
        """Counts between edges, for several attributes."""

    def total(self, j: int) -> int:
        """What the counts of an attribute sum to, as far as that is public."""

    def query(self, j: int, factor: Factor) -> Query:
        """What is asked where an attribute is looked at in some way."""


@dataclass(frozen=True)
class OneWayCounts:
    """Exact one-way counts: code by code where these were counted, else by ranges, in another pass. Sealed."""

    rows: Rows
    kernel: CodeCounts
    counts: Exact[Counts]

    @classmethod
    def of(cls, rows: Rows, attributes: tuple[Attribute, ...]) -> OneWayCounts:
        """Count the codes of a table."""
        kernel = codes_kernel(attributes)
        return cls(rows, kernel, rows.reduce(kernel))

    @property
    def n(self) -> int:
        """Rows, or persons."""
        return self.rows.n

    def codes(self, j: int) -> Exact[Integers]:
        """Counts of every code of an attribute."""
        return self.counts.map(part, self.kernel.columns.index(j))

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Exact[Integers]]:
        """Counts between edges, for several attributes: one pass for all whose codes were not counted."""
        late = tuple(j for j in edges if j not in self.kernel.columns)
        found = {j: self.codes(j).map(ranges_of, edges[j]) for j in edges if j not in late}
        if late:
            counts = self.rows.reduce(RangeCounts(late, tuple(edges[j] for j in late)))
            found |= {j: counts.map(part, i) for i, j in enumerate(late)}
        return found

    def total(self, j: int) -> int:
        """The number of rows, or of persons."""
        return self.rows.n

    def query(self, j: int, factor: Factor) -> Query:
        """Rows, one by one."""
        return Query([(j,)], {j: factor})


@dataclass(frozen=True)
class OneWay:
    """Every attribute by itself: noisy counts of ranges of codes, of groups of categories, and the trees of numbers."""

    found: list[Measurement]
    groups: dict[int, Measurement]
    trees: dict[int, Tree]


def measure_one_way(counts: CountedCodes, plan: NumberPlan, gate: Gate) -> OneWay:
    """Counts of categories once, of their groups too, trees of numbers in rounds; spends the charge "histograms".

    Of a number the ranges are what its tree ended with, each counted in the rounds in which it stood and averaged over them. Its
    earlier, coarser rounds were chosen by their noise and are not kept.
    """
    numbers = grids(plan.attributes)
    parts = plan.one_way(gate.budget.pure)
    found: dict[int, Measurement] = {}
    groups: dict[int, Measurement] = {}

    def kept(j: int, factor: Factor, seen: Measured) -> Measurement:
        values = np.asarray(seen.values, dtype=np.float64)
        return Measurement(counts.query(j, factor), values, seen.sd, seen.law, counts.n, "histograms")

    for j, a in enumerate(plan.attributes):
        if isinstance(a, NumberGrid):
            continue
        part, codes, plain = parts[j], counts.codes(j), Factor.plain(a.size)
        if a.groups:
            own = Factor(plain.edges, np.array(a.groups))
            coarse = gate.measure("histograms", codes.map(group_counts, own.bins), own.size, ONE_ROW, GROUPS * part)
            groups[j] = kept(j, own, coarse)
            part = (1 - GROUPS) * part
        found[j] = kept(j, plain, gate.measure("histograms", codes, a.size, ONE_ROW, part))
    trees = {j: Tree(grid, counts.total(j)) for j, grid in numbers.items()}
    for turn in range(max((grid.rounds for grid in numbers.values()), default=0)):
        growing = [j for j, grid in numbers.items() if turn < grid.rounds]
        edges = {j: trees[j].edges for j in growing}
        exact = counts.ranges(edges)
        for j in growing:
            share = parts[j] * plan.round_part(j, turn, gate.budget.pure)
            seen = gate.measure("histograms", exact[j], len(edges[j]) - 1, ONE_ROW, share)
            trees[j].see(seen.values, seen.sd)
            if turn + 1 < numbers[j].rounds:
                trees[j].grow()
            else:
                times = trees[j].times[trees[j].frontier]
                values = trees[j].total[trees[j].frontier] / times
                whole = kept(j, Factor(trees[j].edges, np.arange(len(times))), replace(seen, values=values))
                found[j] = replace(whole, sd=trees[j].sd / np.sqrt(times))
    return OneWay([found[j] for j in range(len(plan.attributes))], groups, trees)


def measure_ranks(tables: Tables, maps: list[Integers], ranks: RankScores, gate: Gate) -> tuple[Floats, float, int]:
    """Noisy sums of products of two ranks for all pairs a < b of attributes that have any, their deviation, and n.

    Under pure ε the law, Laplace or matrix Laplace, is chosen by the number of attributes alone.
    """
    p = len(ranks.attributes)
    above = np.triu_indices(p, 1)
    exact, moves = tables.pairs(maps).map(rank_matrix, ranks), rank_moves(p)
    if gate.budget.pure and matrix_is_better(p):
        found = gate.matrix("ranks", moves, [WHOLE] * p).add(exact, slice(None), slice(None))
        return found.values[above].astype(np.float64), found.sd, tables.n
    found = gate.measure("ranks", exact.map(entries, *above), len(above[0]), moves)
    return found.values.astype(np.float64), found.sd, tables.n


def farthest_numbers(
    counts: OneWayCounts, cells: dict[int, Cells], cloud: WeightedPoints, domain: Domain
) -> Exact[float]:
    """The largest Kolmogorov distance, or a little more, between records and centres over all numbers."""
    share = cloud.weights @ cloud.points
    edges = {j: comparison_edges(own) for j, own in cells.items()}
    released = {j: released_below(own, share[domain.block(j)], edges[j]) for j, own in cells.items()}
    exact = counts.ranges(edges)
    parts = [exact[j].map(kolmogorov_bound, edges[j], released[j]) for j in cells]
    return Exact.of(largest, *parts)
