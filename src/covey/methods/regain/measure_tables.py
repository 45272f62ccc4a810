"""All that `regain` asks of tables of categories and numbers, through the gate: one-way counts, trees, pair tables, ranks.

The numbers in `Moves` are how far one replaced row can move a statistic; they are proved in docs/proofs/sensitivity.md and
docs/proofs/trees.md, and compared with brute force in the tests. Each round of a tree counts a partition of all codes, of which a
replaced row moves two counts by one: by 2 in ℓ1 and √2 in ℓ2, whatever partition the rounds before it suggested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.noise import helmert
from covey.core.noise.pairlaw import PairLaw
from covey.core.noise.sensitivity import pair_table_sensitivity, simplex_radius_squared
from covey.core.numbers.cells import Cells, comparison_edges, kolmogorov_bound, released_below
from covey.core.numbers.grid import Attribute, Category, NumberGrid, grids
from covey.core.numbers.ranks import UNIT, RankScores, flips, rank_matrix
from covey.core.numbers.tree import Tree
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import part, side_by_side
from covey.core.tables.crosstabs import (
    FULL_TABLES,
    CodeCounts,
    PairTables,
    RangeCounts,
    centred_counts,
    counted_fully,
    merge_pairs,
    ranges_of,
)
from covey.core.tables.distance import HighTables, affordable_tables, largest, one_way_distance, pair_distances
from covey.core.tables.domain import Domain
from covey.core.tables.histograms import group_counts
from covey.core.tables.merging import Recode
from covey.core.tables.misplaced import Glass, columns_of, misplaced_codes
from covey.engines.rows import Mapped, Rows
from covey.measure.law import CellCounts, Mixture
from covey.measure.measurement import NOTHING, Measurement
from covey.measure.query import Every, Factor, Query
from covey.methods.regain.measure import entries
from covey.privacy.certificate import Yardstick
from covey.privacy.gate import WHOLE, Exact, Gate, Measured, Moves

if TYPE_CHECKING:
    from covey.methods.regain.plan_tables import TablePlan

GROUPS = Fraction(1, 4)  # of an attribute's one-way charge, for the counts of its groups: these are few
AS_THEY_ARE = Recode()
ONE_ROW = Moves(l1=2, l2_squared=2)  # two counts of a partition by one


# Exact counts, sealed.


def first_kernel(attributes: Sequence[Attribute]) -> CodeCounts | PairTables:
    """What the first pass counts: of categories alone all pair tables, if these are small; public."""
    sizes = tuple(a.size for a in attributes)
    return codes_kernel(attributes) if grids(attributes) or sum(sizes) > FULL_TABLES else PairTables(sizes)


def codes_kernel(attributes: Sequence[Attribute]) -> CodeCounts:
    """Counts of every code of categories, and of numbers as long as there is room; public."""
    sizes, numbers = tuple(a.size for a in attributes), grids(attributes)
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
    counted: Mapping[int, Exact[Integers]]

    @classmethod
    def of(cls, rows: Rows, attributes: Sequence[Attribute]) -> OneWayCounts:
        """Count the codes of a table."""
        kernel = codes_kernel(attributes)
        counts = rows.reduce(kernel)
        return cls(rows, {j: counts.map(part, i) for i, j in enumerate(kernel.columns)})

    @property
    def n(self) -> int:
        """Rows, or persons."""
        return self.rows.n

    def codes(self, j: int) -> Exact[Integers]:
        """Counts of every code of an attribute."""
        return self.counted[j]

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Exact[Integers]]:
        """Counts between edges, for several attributes: one pass for all whose codes were not counted."""
        late = tuple(j for j in edges if j not in self.counted)
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


class Tables:
    """Exact tables of the records, counted in one pass if they are small. Sealed: only the gate opens them."""

    def __init__(self, rows: Rows, domain: Domain, to_cells: Recode = AS_THEY_ARE) -> None:
        self._code_rows, self._edges = rows, to_cells.edges or (None,) * len(domain.sizes)
        self._rows: Rows = Mapped(rows, to_cells) if to_cells.edges else rows
        self.domain, self.n, self.steps = domain, rows.n, rows.steps
        self.total = rows.n * rows.steps  # what all of them weigh
        kernel = first_kernel([Category(size) for size in domain.sizes])
        counts = self._rows.reduce(kernel)
        self._pairs: Exact[Integers] | None = None
        if isinstance(kernel, PairTables):
            self._pairs = counts.map(kernel.matrix)
            self.one_way: Exact[Integers] = self._pairs.map(np.diagonal)
        else:
            self.one_way = counts.map(side_by_side)

    @property
    def counts(self) -> OneWayCounts:
        """Counts of every category."""
        blocks = map(self.domain.block, range(len(self.domain.sizes)))
        return OneWayCounts(self._rows, {j: self.one_way.map(entries, block) for j, block in enumerate(blocks)})

    def factors(self, maps: Sequence[Integers]) -> dict[int, Factor]:
        """How columns are looked at where categories become maps[a][x_a]."""
        own = enumerate(zip(self._edges, maps, strict=True))
        return {a: Factor(np.arange(len(to) + 1) if edges is None else edges, to) for a, (edges, to) in own}

    def pairs(self, maps: list[Integers]) -> Exact[Integers]:
        """All pair tables of the merged categories maps[a][x_a], as one symmetric matrix."""
        sizes = [int(m.max()) + 1 for m in maps]
        if self._pairs is not None:
            return self._pairs.map(merge_pairs, tuple(maps), tuple(sizes))
        kernel = PairTables(tuple(sizes))
        return Mapped(self._rows, Recode(maps=tuple(maps))).reduce(kernel).map(kernel.matrix)

    def cells(self, query: Query) -> Exact[Integers]:
        """Counts of every cell of a query's tables, side by side."""
        return self._code_rows.reduce(CellCounts.of(query)).map(part)

    def law(self, cloud: WeightedPoints, maps: Sequence[Integers]) -> Mixture:
        """What centres over merged categories say."""
        factors = self.factors(maps)
        return Mixture(cloud, [factors[a].edges[np.unique(to, return_index=True)[1]] for a, to in enumerate(maps)])

    def farthest(self, cloud: WeightedPoints) -> tuple[list[int], Exact[float]]:
        """Degrees that public numbers say are affordable, and the largest distance of the records from a cloud among them."""
        sizes, q, total = self.domain.sizes, len(self.domain.sizes), self.total
        if self._pairs is not None:
            low = [1, 2] if q > 1 else [1]
            parts: list[Exact[Any]] = [self._pairs.map(pair_distances, total, self.domain, cloud)]
        else:
            low, parts = [1], [self.one_way.map(one_way_distance, total, q, cloud)]
        # All records at once are asked for where public numbers say that they are few. Of persons no number says so.
        rest = tuple(d for d in affordable_tables(self.n, q) if d not in low) if self.steps == 1 else ()
        if rest:
            parts.append(self._rows.whole(HighTables(sizes, cloud, rest)))
        return [*low, *rest], Exact.of(largest, *parts)

    def misplaced(self, cloud: WeightedPoints) -> Yardstick:
        """The share of records out of place among the centres, in a typical table of two columns; sealed."""
        glass = Glass.of(cloud, self.domain)
        sizes, seen = glass.sizes, glass.cloud(cloud)
        exact = self.pairs(list(glass.maps)).map(misplaced_codes, self.total, sizes, seen)
        return Yardstick(exact, columns_of(sizes))


# One-way tables and trees.


@dataclass(frozen=True)
class OneWay:
    """Every attribute by itself: noisy counts of ranges of codes, of groups of categories, and the trees of numbers."""

    found: list[Measurement]
    groups: dict[int, Measurement]
    trees: dict[int, Tree]


def measure_one_way(counts: CountedCodes, plan: TablePlan, gate: Gate) -> OneWay:
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


# Pair tables and ranks.


def pair_moves(domain: Domain) -> Moves:
    """How far one replaced row moves the pair tables, under each law. Attributes with a single category never move.

    Laplace on one-hot cells: q(q−1)/2 tables by 2 in ℓ1. Gaussian on centred tables: docs/proofs/sensitivity.md. Matrix Laplace
    on Σzzᵀ: 2‖z‖² in nuclear norm.
    """
    live = [c for c in domain.sizes if c > 1]
    q = len(live)
    squared = pair_table_sensitivity(domain.sizes)
    return Moves(l1=q * (q - 1), l2_squared=squared, trace=2 * simplex_radius_squared(live))


def measure_pairs(tables: Tables, maps: list[Integers], law: PairLaw, gate: Gate) -> Measurement:
    """Noisy centred pair tables of the merged categories, in counts; one-way counts stand on the diagonal of the exact ones.

    For Gaussian noise: the centred tables are multiples of 1/(c_a c_b), so that M = c_a c_b N − c_a N_i − c_b N_j + n are
    integers; they get c_a c_b times the noise before they are divided again. Laplace noise goes on the counts themselves. What
    is left is centred: the uncentred part was not paid for. Matrix noise has integer coordinates of its own.
    """
    d, n = law.domain, tables.n
    query = Query(Every(len(maps), 2), tables.factors(maps), "centred")
    if law.family == NOTHING:
        return Measurement(query, np.zeros(0), 0.0, NOTHING, n, "pairs")
    moves, exact = pair_moves(d), tables.pairs(maps)
    if law.family == "matrix":
        values = _on_contrasts(exact, d, gate, moves)
    elif law.family == "laplace":
        values = d.off_blocks(d.centre(d.off_blocks(_on_cells(exact, law, gate, moves))))
    else:
        c = d.counts[d.block_of]
        noisy = _on_cells(exact.map(centred_counts, d, tables.total), law, gate, moves)
        values = d.off_blocks(d.centre(d.off_blocks(noisy / (c[:, None] * c))))
    return Measurement(query, values, law.sd, law.family, n, "pairs")


def _on_contrasts(exact: Exact[Integers], domain: Domain, gate: Gate, moves: Moves) -> Floats:
    """Matrix Laplace noise on the integer contrasts of the categories, and back to centred tables."""
    joint = gate.matrix("pairs", moves, helmert.weights(domain))
    found = joint.add(exact.map(helmert.contrasts, domain), slice(None), slice(None))
    return domain.off_blocks(helmert.tables(found.values.astype(np.float64), domain))


def _on_cells(exact: Exact[Integers], law: PairLaw, gate: Gate, moves: Moves) -> Floats:
    """Independent noise on every cell of every pair table a < b, mirrored; c_a c_b times as much on a grid that much finer."""
    d = law.domain
    joint = gate.joint("pairs", moves)
    out = np.zeros((d.total, d.total))
    for a, ca in enumerate(d.sizes):
        # A table with an attribute of one category says nothing that is not public or one-way: it is left at zero.
        for others, size in law.partners(a) if ca > 1 else []:
            if size == 1:
                continue
            weight = Fraction(1) if law.family == "laplace" else Fraction(1, (ca * size) ** 2)
            found = joint.add(exact.map(entries, d.block(a), others), (ca, len(others)), weight).values
            out[d.block(a), others] = found
            out[others, d.block(a)] = found.T
    return out


def rank_moves(p: int) -> Moves:
    """How far one replaced row moves the sums of products of two scores of p attributes (docs/proofs/trees.md)."""
    turned = flips(p)
    return Moves(l1=2 * UNIT**2 * turned, l2_squared=4 * UNIT**4 * turned, trace=2 * p * UNIT**2)


def matrix_is_better(p: int) -> bool:
    """Whether matrix Laplace noise on p × p sums of products has the smaller deviation, under pure ε."""
    return bool(2 * p * np.sqrt((p + 1) / 2) < np.sqrt(2) * 2 * flips(p))


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


# Numbers in the certificate.


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
