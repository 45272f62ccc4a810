"""All that `regain` asks of tables of categories and numbers, through the gate: one-way counts, trees, pair tables, ranks.

The numbers in `Moves` are how far one replaced row can move a statistic; they are proved in docs/proofs/sensitivity.md and
docs/proofs/trees.md, and compared with brute force in the tests. Each round of a tree counts a partition of all codes, of which a
replaced row moves two counts by one: by 2 in ℓ1 and √2 in ℓ2, whatever partition the rounds before it suggested.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.noise import helmert
from covey.core.noise.pairlaw import PairLaw
from covey.core.noise.sensitivity import pair_table_sensitivity, simplex_radius_squared
from covey.core.numbers.cells import Cells
from covey.core.numbers.counting import CodeCounts, RangeCounts, counted_fully, ranges_of
from covey.core.numbers.distance import comparison_edges, kolmogorov_bound, released_below
from covey.core.numbers.grid import Attribute, Category, NumberGrid, grids
from covey.core.numbers.ranks import UNIT, RankScores, flips, rank_matrix
from covey.core.numbers.tree import Tree
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import part, side_by_side
from covey.core.tables.crosstabs import FULL_TABLES, PairTables
from covey.core.tables.distance import HighTables, affordable_tables, largest, one_way_distance, pair_distances
from covey.core.tables.domain import Domain
from covey.core.tables.hierarchy import group_counts
from covey.core.tables.misplaced import Glass, columns_of, misplaced_codes
from covey.core.tables.triples import TripleTables
from covey.engines.rows import Mapped, Rows
from covey.methods.regain.measure import entries
from covey.privacy.certificate import Yardstick
from covey.privacy.gate import WHOLE, Exact, Gate, Measured, Moves

if TYPE_CHECKING:
    from covey.methods.regain.plan_tables import TablePlan

GROUPS = Fraction(1, 4)  # of an attribute's one-way charge, for the counts of its groups: these are few
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

    def codes(self, j: int) -> Exact[Integers]:
        """Counts of every code of an attribute."""

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Exact[Integers]]:
        """Counts between edges, for several attributes."""

    def total(self, j: int) -> int:
        """What the counts of an attribute sum to, as far as that is public."""


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


class Tables:
    """Exact tables of the records, counted in one pass if they are small. Sealed: only the gate opens them."""

    def __init__(self, rows: Rows, domain: Domain) -> None:
        self._rows, self.domain, self.n, self.steps = rows, domain, rows.n, rows.steps
        self.total = rows.n * rows.steps  # what all of them weigh
        kernel = first_kernel([Category(size) for size in domain.sizes])
        counts = rows.reduce(kernel)
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

    def pairs(self, maps: list[Integers]) -> Exact[Integers]:
        """All pair tables of the merged categories maps[a][x_a], as one symmetric matrix."""
        sizes = [int(m.max()) + 1 for m in maps]
        if self._pairs is not None:
            return self._pairs.map(merge_pairs, tuple(maps), tuple(sizes))
        kernel = PairTables(tuple(sizes))
        return Mapped(self._rows, Recode(maps=tuple(maps))).reduce(kernel).map(kernel.matrix)

    def triples(self, maps: Sequence[Integers], kernel: TripleTables) -> Exact[Integers]:
        """Tables of triples of the levels maps[a][x_a], side by side."""
        return Mapped(self._rows, Recode(maps=tuple(maps))).reduce(kernel).map(part)

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


def merge_pairs(pairs: Integers, maps: Sequence[Integers], sizes: Sequence[int]) -> Integers:
    """Pair tables of merged categories, by adding up those of the categories."""
    starts = np.cumsum([0, *sizes[:-1]])
    place = np.concatenate([m + start for m, start in zip(maps, starts, strict=True)])
    half = np.zeros((sum(sizes), len(place)), dtype=np.int64)
    np.add.at(half, place, pairs)
    out = np.zeros((sum(sizes), sum(sizes)), dtype=np.int64)
    np.add.at(out, place, half.T)
    return out


@dataclass(frozen=True)
class Recode:
    """A step on records: codes become cells, between edges, and cells become bins, by maps; without edges codes are cells."""

    edges: tuple[Integers | None, ...] = ()
    maps: tuple[Integers, ...] = ()

    def __call__(self, batch: Array) -> Array:
        """The cells, or bins, of a batch."""
        out = np.empty(batch.shape, dtype=np.int64, order="F")
        for j, edges in enumerate(self.edges or (None,) * batch.shape[1]):
            cells = batch[:, j] if edges is None else np.searchsorted(edges[1:-1], batch[:, j], side="right")
            out[:, j] = self.maps[j][cells] if self.maps else cells
        return out


# One-way tables and trees.


@dataclass(frozen=True)
class OneWayMeasured:
    """Noisy counts of categories, trees of numbers, and noisy counts of groups of categories, by attribute."""

    categories: dict[int, Measured]
    trees: dict[int, Tree]
    groups: dict[int, Measured]


def measure_one_way(counts: CountedCodes, plan: TablePlan, gate: Gate) -> OneWayMeasured:
    """Counts of categories once, of their groups too, trees of numbers in rounds; spends the charge "histograms"."""
    numbers = grids(plan.attributes)
    parts = plan.one_way(gate.budget.pure)
    categories, groups = {}, {}
    for j, a in enumerate(plan.attributes):
        if isinstance(a, NumberGrid):
            continue
        part, codes = parts[j], counts.codes(j)
        if a.groups:
            of = np.array(a.groups)
            groups[j] = gate.measure(
                "histograms", codes.map(group_counts, of), max(a.groups) + 1, ONE_ROW, GROUPS * part
            )
            part = (1 - GROUPS) * part
        categories[j] = gate.measure("histograms", codes, a.size, ONE_ROW, part)
    trees = {j: Tree(grid, counts.total(j)) for j, grid in numbers.items()}
    for turn in range(max((grid.rounds for grid in numbers.values()), default=0)):
        growing = [j for j, grid in numbers.items() if turn < grid.rounds]
        edges = {j: trees[j].edges for j in growing}
        exact = counts.ranges(edges)
        for j in growing:
            share = parts[j] * plan.round_part(j, turn, gate.budget.pure)
            found = gate.measure("histograms", exact[j], len(edges[j]) - 1, ONE_ROW, share)
            trees[j].see(found.values, found.sd)
            if turn + 1 < numbers[j].rounds:
                trees[j].grow()
    return OneWayMeasured(categories, trees, groups)


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


def measure_pairs(tables: Tables, maps: list[Integers], law: PairLaw, gate: Gate) -> Floats:
    """Noisy centred pair tables of the merged categories, in counts; one-way counts stand on the diagonal of the exact ones.

    For Gaussian noise: the centred tables are multiples of 1/(c_a c_b), so that M = c_a c_b N − c_a N_i − c_b N_j + n are
    integers; they get c_a c_b times the noise before they are divided again. Laplace noise goes on the counts themselves. What
    is left is centred: the uncentred part was not paid for. Matrix noise has integer coordinates of its own.
    """
    d = law.domain
    if law.family == "none":
        return np.zeros((d.total, d.total))
    moves, exact = pair_moves(d), tables.pairs(maps)
    if law.family == "matrix":
        return _on_contrasts(exact, d, gate, moves)
    if law.family == "laplace":
        counted = _on_cells(exact, law, gate, moves)
        return d.off_blocks(d.centre(d.off_blocks(counted)))
    c = d.counts[d.block_of]
    noisy = _on_cells(exact.map(centred_counts, d, tables.total), law, gate, moves)
    return d.off_blocks(d.centre(d.off_blocks(noisy / (c[:, None] * c))))


def centred_counts(counts: Integers, domain: Domain, n: int) -> Integers:
    """c_a c_b times the centred pair tables: integers."""
    c, one_way = domain.counts[domain.block_of], np.diag(counts)
    return np.asarray(c[:, None] * c * counts - c[:, None] * one_way[:, None] - c * one_way + n)


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
