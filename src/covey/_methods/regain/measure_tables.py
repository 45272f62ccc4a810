"""All that `regain` asks of tables of categories and numbers: one-way counts, trees, pair tables, ranks.

The numbers in `Moves` are how far one replaced row can move a statistic; they are proved in docs/proofs/sensitivity.md and
docs/proofs/trees.md, and compared with brute force in the tests. Each round of a tree counts a partition of all codes, of which a
replaced row moves two counts by one: by 2 in ℓ1 and √2 in ℓ2, whatever partition the rounds before it suggested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from covey._core.arrays import Array, Floats, Integers
from covey._core.fit.shrinkage import group_counts
from covey._core.fit.spectrum import UNIT, RankScores, flips, rank_matrix
from covey._core.noise import sensitivity
from covey._core.noise.integers import loose_deviations
from covey._core.noise.pairlaw import PairLaw, Places, contrast_weights, contrasts, from_contrasts
from covey._core.numbers.grid import (
    Attribute,
    Category,
    Cells,
    NumberGrid,
    comparison_edges,
    grids,
    kolmogorov_bound,
    released_below,
)
from covey._core.numbers.tree import Tree
from covey._core.paper.blocks import WeightedPoints
from covey._core.tables import distance
from covey._core.tables.counts import part, side_by_side
from covey._core.tables.domain import (
    FULL_TABLES,
    CodeCounts,
    Domain,
    PairTables,
    RangeCounts,
    centred_counts,
    counted_fully,
    dependence,
    merge_pairs,
    ranges_of,
)
from covey._engines.rows import then
from covey._methods.model import Ask, Asking, Part, Setting, Statistic, entries, together
from covey.measure.measurement import NOTHING, Measurement
from covey.measure.query import Every, Factor, Query, to_bins
from covey.privacy.gate import WHOLE, Moves

if TYPE_CHECKING:
    from covey._methods.regain.plan_tables import TablePlan

GROUPS = Fraction(1, 4)  # of an attribute's one-way charge, for the counts of its groups: these are few
ONE_ROW = Moves(l1=2, l2_squared=2, table=1, added=Moves(l1=1, l2_squared=1, table=1))  # counts of a partition


# What is counted.


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


def late_kernel(attributes: Sequence[Attribute]) -> list[RangeCounts]:
    """Numbers whose codes are not counted one by one, as one range each: a first pass learns which ranges will be asked for."""
    counted = codes_kernel(attributes).columns
    late = tuple(j for j in range(len(attributes)) if j not in counted)
    return [RangeCounts(late, tuple(np.array([0, attributes[j].size]) for j in late))] if late else []


@dataclass(frozen=True)
class OneWayCounts:
    """One-way counts of n rows or persons: code by code where these are counted in one pass, else by ranges, in another."""

    n: int
    counted: Mapping[int, Statistic]
    step: Callable[[Array], Array] | None = None  # on records, before ranges are counted

    @classmethod
    def of(cls, n: int, attributes: Sequence[Attribute]) -> OneWayCounts:
        """Of the codes of a table."""
        kernel = codes_kernel(attributes)
        counts = Statistic.sum(kernel, kept=True)
        return cls(n, {j: counts.map(part, i) for i, j in enumerate(kernel.columns)})

    def codes(self, j: int) -> Statistic:
        """Counts of every code of an attribute."""
        return self.counted[j]

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Statistic]:
        """Counts between edges, for several attributes: one pass for all whose codes were not counted."""
        late = tuple(j for j in edges if j not in self.counted)
        found = {j: self.codes(j).map(ranges_of, edges[j]) for j in edges if j not in late}
        if late:
            counts = Statistic.sum(RangeCounts(late, tuple(edges[j] for j in late)), self.step)
            found |= {j: counts.map(part, i) for i, j in enumerate(late)}
        return found

    def total(self, j: int) -> int:
        """What the counts of an attribute sum to, as far as that is public: the number of rows, or of persons."""
        return self.n

    def query(self, j: int, factor: Factor) -> Query:
        """What is asked where an attribute is looked at in some way: rows, one by one."""
        return Query([(j,)], {j: factor})


class Tables:
    """Tables of categories and of cells of numbers, all pairs counted in one pass if they are small: described, not computed."""

    def __init__(self, told: Setting, domain: Domain, cells: tuple[Factor | None, ...] = ()) -> None:
        self._cells = cells or (None,) * len(domain.sizes)
        self._step = partial(to_bins, cells) if cells else None
        self.domain, self.n, self.steps = domain, told.n, told.steps
        self.total, self.secret = told.n * told.steps, told.secret  # what all of them weigh, and whether that is noisy
        kernel = first_kernel([Category(size) for size in domain.sizes])
        counts = Statistic.sum(kernel, self._step, kept=True)
        self._pairs: Statistic | None = None
        if isinstance(kernel, PairTables):
            self._pairs = counts.map(kernel.matrix)
            self.one_way = self._pairs.map(np.diagonal)
        else:
            self.one_way = counts.map(side_by_side)

    @property
    def counts(self) -> OneWayCounts:
        """Counts of every category."""
        blocks = map(self.domain.block, range(len(self.domain.sizes)))
        return OneWayCounts(self.n, {j: self.one_way.map(entries, block) for j, block in enumerate(blocks)})

    def factors(self, maps: Sequence[Integers]) -> dict[int, Factor]:
        """How columns are looked at where categories become maps[a][x_a]."""
        own = enumerate(zip(self._cells, maps, strict=True))
        return {a: Factor(np.arange(len(to) + 1) if cells is None else cells.edges, to) for a, (cells, to) in own}

    def pairs(self, maps: Sequence[Integers]) -> Statistic:
        """All pair tables of the merged categories maps[a][x_a], as one symmetric matrix."""
        sizes = [int(m.max()) + 1 for m in maps]
        if self._pairs is not None:
            return self._pairs.map(merge_pairs, tuple(maps), tuple(sizes))
        kernel = PairTables(tuple(sizes))
        return Statistic.sum(kernel, partial(to_bins, tuple(self.factors(maps).values()))).map(kernel.matrix)

    def farthest(self, cloud: WeightedPoints) -> tuple[list[int], Statistic]:
        """Degrees that public numbers say are affordable, and the largest distance of the records from a cloud among them."""
        sizes, q, total = self.domain.sizes, len(self.domain.sizes), self.total
        if self._pairs is not None:
            low = [1, 2] if q > 1 else [1]
            parts = [self._pairs.map(distance.pair_distances, total, self.domain, cloud)]
        else:
            low, parts = [1], [self.one_way.map(distance.one_way_distance, total, q, cloud)]
        # All records at once are asked for where public numbers say that they are few. Of persons no number says so.
        whole = self.steps == 1 and not self.secret
        rest = tuple(d for d in distance.affordable_tables(self.n, q) if d not in low) if whole else ()
        if rest:
            kernel = partial(distance.sorted_category_distances, sizes=sizes, cloud=cloud, degrees=rest)
            parts.append(Statistic(then(self._step, kernel), whole=True))
        return [*low, *rest], together(parts)

    def misplaced(self, cloud: WeightedPoints) -> tuple[Statistic, int]:
        """The share of records out of place among the centres, in a typical table, and how many columns such a table has."""
        ranges = distance.Ranges.of(cloud, self.domain)
        sizes, seen = ranges.sizes, ranges.cloud(cloud)
        out_of_place = self.pairs(ranges.maps).map(distance.misplaced_codes, self.total, sizes, seen)
        return out_of_place, distance.columns_of(sizes)


# One-way tables and trees.


@dataclass(frozen=True)
class OneWay:
    """Every attribute by itself: noisy counts of ranges of codes, of groups of categories, and the trees of numbers.

    `sizes` are what independent draws of noise say about the number of units, where that is secret, and their deviations.
    `pairs` are pair tables of all categories that were measured in the same draw, and their law.
    """

    found: list[Measurement]
    groups: dict[int, Measurement]
    trees: dict[int, Tree]
    sizes: list[tuple[float, float]]
    pairs: tuple[PairLaw, Measurement] | None = None

    def of(self, n: int) -> OneWay:
        """The same per a better noisy n, to which tables of joint draws are moved: of their noise, contrasts are left."""

        def moved(m: Measurement) -> Floats:
            return m.values + (n - m.values.sum()) / len(m.values) if m.law == "knorm" else m.values

        found = [replace(m, values=moved(m), per=n) for m in self.found]
        return replace(self, found=found, groups={j: replace(m, per=n) for j, m in self.groups.items()})


def measure_one_way(counts: OneWayCounts, plan: TablePlan, told: Setting) -> Asking[OneWay]:
    """Counts of categories once, of their groups too, trees of numbers in rounds; spends the charge "histograms".

    Of a number the ranges are what its tree ended with, each counted in the rounds in which it stood and averaged over them. Its
    earlier, coarser rounds were chosen by their noise and are not kept.
    """
    numbers = grids(plan.attributes)
    draws = plan.one_way(told.allowance("histograms"), told.steps)
    parts = {draw.attributes[0]: draw.part for draw in draws if not draw.joint}
    asks: list[Ask] = []
    grouped: dict[int, Factor] = {}
    for draw in draws:
        if draw.joint:
            every = {j: Factor.plain(plan.attributes[j].size) for j in draw.attributes}
            tables = [Part(counts.query(j, one), counts.codes(j), one.size) for j, one in every.items()]
            asks.append(Ask("histograms", tables, ONE_ROW, draw.part, noise="knorm"))
    for j, a in enumerate(plan.attributes):
        if isinstance(a, NumberGrid) or j not in parts:
            continue
        part, codes, plain = parts[j], counts.codes(j), Factor.plain(a.size)
        if a.groups:
            grouped[j] = own = Factor(plain.edges, np.array(a.groups))
            sums = codes.map(group_counts, own.bins)
            asks.append(Ask("histograms", [Part(counts.query(j, own), sums, own.size)], ONE_ROW, GROUPS * part))
            part = (1 - GROUPS) * part
        asks.append(Ask("histograms", [Part(counts.query(j, plain), codes, a.size)], ONE_ROW, part))
    found, groups = dict[int, Measurement](), dict[int, Measurement]()
    for m in (yield asks) if asks else []:
        ((j, factor),) = m.query.factors.items()
        (groups if factor is grouped.get(j) else found)[j] = m
    trees = {j: Tree(grid, counts.total(j)) for j, grid in numbers.items()}

    def share(j: int, turn: int) -> Fraction:
        return parts[j] * plan.round_part(j, turn, told.pure)

    for j, seen in (yield from measure_trees(trees, counts, "histograms", share)).items():
        times = trees[j].times[trees[j].frontier]
        values = trees[j].total[trees[j].frontier] / times
        found[j] = replace(seen, values=values, sd=trees[j].sd / np.sqrt(times))
    sizes = []
    if told.secret:  # the cells of every table sum to n, with one noise for all of a joint draw
        for draw in draws:
            m = found[draw.attributes[0]]
            sd = float(np.sqrt(np.sum(np.broadcast_to(m.sd, m.values.shape) ** 2)))
            if draw.joint:
                deviations, total = loose_deviations(tuple(sorted(plan.attributes[j].size for j in draw.attributes)))
                sd = float(m.sd) * total / deviations[len(m.values)]
            sizes.append((float(m.values.sum()), sd))
    return OneWay([found[j] for j in range(len(plan.attributes))], groups, trees, sizes)


def measure_trees(
    trees: Mapping[int, Tree], counts: OneWayCounts, purpose: str, share: Callable[[int, int], Fraction]
) -> Asking[dict[int, Measurement]]:
    """Count the frontiers of all trees, which grow, round by round; what the last round of each has measured.

    A round is one partition of each column, which a replaced row moves by 2 in ℓ1, and has its share of the charge.
    """
    last: dict[int, Measurement] = {}
    for turn in range(max((tree.grid.rounds for tree in trees.values()), default=0)):
        growing = {j: tree for j, tree in trees.items() if turn < tree.grid.rounds}
        asks, exact = [], counts.ranges({j: tree.edges for j, tree in growing.items()})
        for j, tree in growing.items():
            own = Factor(tree.edges, np.arange(len(tree.edges) - 1))
            asks.append(Ask(purpose, [Part(counts.query(j, own), exact[j], own.size)], ONE_ROW, share(j, turn)))
        last |= dict(zip(growing, (yield asks), strict=True))
        for j, tree in growing.items():
            tree.see(last[j].values, float(last[j].sd))
            if turn + 1 < tree.grid.rounds:
                tree.grow()
    return last


# Pair tables and ranks.


def pair_moves(domain: Domain) -> Moves:
    """How far one replaced row moves the pair tables, under each law. Attributes with a single category never move.

    Laplace on one-hot cells: q(q−1)/2 tables by 2 in ℓ1. Gaussian on centred tables: docs/proofs/sensitivity.md. Matrix Laplace
    on Σzzᵀ: 2‖z‖² in nuclear norm.
    """
    live = [c for c in domain.sizes if c > 1]
    q = len(live)
    squared, length = sensitivity.pair_table_sensitivity(domain.sizes), sensitivity.simplex_radius_squared(live)
    added = Moves(l1=q * (q - 1) // 2, l2_squared=sensitivity.added_pair_tables(domain.sizes), trace=length)
    return Moves(l1=q * (q - 1), l2_squared=squared, trace=2 * length, added=added)


def measure_pairs(tables: Tables, maps: list[Integers], law: PairLaw) -> Asking[Measurement]:
    """Noisy centred pair tables of the merged categories, in counts; one-way counts stand on the diagonal of the exact ones.

    For Gaussian noise: the centred tables are multiples of 1/(c_a c_b), so that M = c_a c_b N − c_a N_i − c_b N_j + n are
    integers; they get c_a c_b times the noise before they are divided again. Laplace noise goes on the counts themselves. What
    is left is centred: the uncentred part was not paid for. Matrix noise has integer coordinates of its own.
    """
    d = law.domain
    query = Query(Every(len(maps), 2), tables.factors(maps), "centred")
    if law.family == NOTHING:
        return Measurement(query, np.zeros(0), 0.0, NOTHING, tables.n, "pairs")
    exact = tables.pairs(maps)
    if law.family == "matrix":
        part = Part(query, exact.map(contrasts, d), (slice(None), slice(None)))
        (found,) = yield [Ask("pairs", [part], pair_moves(d), noise="matrix", weights=contrast_weights(d))]
        values = d.off_blocks(from_contrasts(found.values, d))
    else:
        pure = law.family == "laplace"
        exact = exact if pure else exact.map(centred_counts, d)
        cells = yield [Ask("pairs", cell_parts(exact, query, law.places, pure), pair_moves(d))]
        values = centred_cells(on_cells(cells, law.places, d), d, pure)
    return Measurement(query, values, law.sd, law.family, tables.n, "pairs")


def cell_parts(exact: Statistic, query: Query, places: Places, pure: bool) -> list[Part]:
    """The cells of pair tables, for independent noise: Gaussian is c_a c_b times as much, on a grid that much finer."""
    parts = []
    for own, others, cells in places:
        shape, weight = (own.stop - own.start, len(others)), Fraction(1) if pure else Fraction(1, cells**2)
        parts.append(Part(query, exact.map(entries, own, others), shape, weight))
    return parts


def on_cells(found: Sequence[Measurement], places: Places, d: Domain) -> Floats:
    """What was measured of these cells, as one symmetric matrix."""
    noisy = np.zeros((d.total, d.total))
    for (own, others, _), one in zip(places, found, strict=True):
        noisy[own, others] = one.values
        noisy[others, own] = one.values.T
    return noisy


def centred_cells(noisy: Floats, d: Domain, pure: bool) -> Floats:
    """Centred tables in counts: what stands on a finer grid is divided again."""
    c = d.counts[d.block_of]
    return d.off_blocks(d.centre(noisy if pure else noisy / (c[:, None] * c)))


def measure_jointly(tables: Tables, law: PairLaw, weights: Sequence[Fraction], purpose: str) -> Asking[OneWay]:
    """One-way tables, of these weights, and centred pair tables of all categories in one draw of Gaussian noise.

    A row that changes all attributes moves one-way tables most, and one that changes some of them pairs: no row does both.
    """
    d, counts = law.domain, tables.counts
    maps = [np.arange(size) for size in d.sizes]
    query = Query(Every(len(maps), 2), tables.factors(maps), "centred")
    plain = [Factor.plain(size) for size in d.sizes]
    every = enumerate(zip(plain, weights, strict=True))
    one_way = [Part(counts.query(j, own), counts.codes(j), own.size, weight) for j, (own, weight) in every]
    parts = cell_parts(tables.pairs(maps).map(centred_counts, d), query, law.places, pure=False)
    moves = Moves(l2_squared=sensitivity.pair_table_sensitivity(d.sizes, weights))
    found = yield [Ask(purpose, [*one_way, *parts], moves)]
    values = centred_cells(on_cells(found[len(maps) :], law.places, d), d, pure=False)
    pairs = Measurement(query, values, law.sd, law.family, tables.n, purpose)
    return OneWay(found[: len(maps)], {}, {}, [], (law, pairs))


def rank_moves(p: int) -> Moves:
    """How far one replaced row moves the sums of products of two scores of p attributes (docs/proofs/trees.md)."""
    turned = flips(p)
    pairs = p * (p - 1) // 2
    added = Moves(l1=UNIT**2 * pairs, l2_squared=UNIT**4 * pairs, trace=p * UNIT**2)
    return Moves(l1=2 * UNIT**2 * turned, l2_squared=4 * UNIT**4 * turned, trace=2 * p * UNIT**2, added=added)


def matrix_is_better(p: int) -> bool:
    """Whether matrix Laplace noise on p × p sums of products has the smaller deviation, under pure ε."""
    return bool(2 * p * np.sqrt((p + 1) / 2) < np.sqrt(2) * 2 * flips(p))


def measure_dependence(tables: Tables) -> Asking[tuple[float, float]]:
    """How far pair tables are from products of their own margins, a mean total variation, and its noise's deviation.

    Spends "look".
    """
    n, live = tables.n, sum(size > 1 for size in tables.domain.sizes)
    maps = [np.arange(size) for size in tables.domain.sizes]
    query = Query(Every(len(maps), 2), tables.factors(maps), "centred")
    part = Part(query, tables.pairs(maps).map(dependence, tables.domain), 1)
    (found,) = yield [Ask("look", [part], look_moves(live))]
    whole = n * live * (live - 1)
    return float(found.values[0]) / whole, float(found.sd) / whole


def look_moves(live: int) -> Moves:
    """How far one row moves the look at the pairs of so many attributes (docs/proofs/sensitivity.md, neighbours.md)."""
    moved, added = sensitivity.dependence_sensitivity(live), sensitivity.dependence_sensitivity(live, added=True)
    other = Moves(l1=added, l2_squared=added**2, summed=False)
    return Moves(l1=moved, l2_squared=moved**2, summed=False, added=other)


def measure_ranks(tables: Tables, maps: list[Integers], ranks: RankScores, told: Setting) -> Asking[Measurement]:
    """Noisy sums of products of two ranks for all pairs a < b of attributes that have any.

    Under pure ε the law, Laplace or matrix Laplace, is chosen by the number of attributes alone.
    """
    p = len(ranks.attributes)
    above = np.triu_indices(p, 1)
    exact, query = tables.pairs(maps).map(rank_matrix, ranks), Query(Every(p, 2), {}, "product", of="rank")
    if told.pure and matrix_is_better(p):
        part = Part(query, exact, (slice(None), slice(None)))
        (found,) = yield [Ask("ranks", [part], rank_moves(p), noise="matrix", weights=[WHOLE] * p)]
        return replace(found, values=found.values[above])
    part = Part(query, exact.map(entries, *above), len(above[0]))
    (found,) = yield [Ask("ranks", [part], rank_moves(p))]
    return found


# Numbers in the certificate.


def farthest_numbers(counts: OneWayCounts, cells: Mapping[int, Cells], cloud: WeightedPoints, of: Tables) -> Statistic:
    """The largest Kolmogorov distance, or a little more, between records and centres over all numbers."""
    share = cloud.weights @ cloud.points
    edges = {j: comparison_edges(own) for j, own in cells.items()}
    released = {j: released_below(own, share[of.domain.block(j)], edges[j]) for j, own in cells.items()}
    exact = counts.ranges(edges)
    # A secret number of records is not divided by: what one more record moves would hang on it.
    return together([exact[j].map(kolmogorov_bound, edges[j], released[j], of.total) for j in cells])
