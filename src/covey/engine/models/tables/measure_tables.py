"""All that `regain` measures of tables of categories and numbers: one-way tables, trees, pair tables, dependence, ranks.

Every `measure_…` yields what it asks (`Ask`: described statistics, the charge that pays, how far one row moves them) and returns
noisy measurements. The numbers in `Sensitivity` are how far one replaced row can move a statistic; they are proved in
docs/proofs/sensitivity.md and docs/proofs/trees.md, and compared with brute force in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.codes.domain import Domain, centred_counts, dependence
from covey.engine.fit.shrinkage import group_counts
from covey.engine.fit.spectrum import UNIT, RankScores, flips, rank_matrix
from covey.engine.gate import WHOLE
from covey.engine.measurement import Measurement
from covey.engine.model import Ask, Asking, Component, Setting, SizeEstimate
from covey.engine.models.tables.table_counts import OneWayCounts, TableCounts
from covey.engine.noise import sensitivity as formulas
from covey.engine.noise.integers import loose_deviations
from covey.engine.noise.law import KNORM, LAPLACE, MATRIX, UNMEASURED, NoiseLaw
from covey.engine.noise.pairlaw import PairLaw, Places, contrast_weights, contrasts, from_contrasts
from covey.engine.numbers.grid import Attribute, Category, grids
from covey.engine.numbers.tree import Tree
from covey.engine.query import Every, Factor, Query
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic, entries

if TYPE_CHECKING:
    from covey.engine.models.tables.plan_one_way import Draw
    from covey.engine.models.tables.plan_tables import JointDraw, TablePlan

# The charge of one-way tables and pairs where a test divides it, or one draw of noise serves both. Names of charges are part of
# the file format and key the streams of noise: they stay where our words change. "look" pays for the test of dependence.
ONE_WAY_AND_PAIRS = "columns and pairs"

GROUP_SHARE = Fraction(1, 4)  # of an attribute's one-way charge, for the counts of its groups: these are few

# How far one row moves counts of a partition of all codes: a replaced row leaves one range and enters another.
PARTITION_SENSITIVITY = Sensitivity(l1=2, l2_squared=2, table=1, added=Sensitivity(l1=1, l2_squared=1, table=1))


# One-way tables.


@dataclass(frozen=True)
class OneWayMeasurements:
    """Noisy one-way tables of all attributes.

    Attributes:
        histograms: one per attribute; counts of categories, or of the ranges of a number that its tree ended with.
        group_histograms: counts of groups of categories, for attributes that have groups.
        trees: by attribute, for numbers: all rounds, from which the ranges came.
        size_estimates: where the number of units is secret, what independent draws of noise say about it.
    """

    histograms: list[Measurement]
    group_histograms: dict[int, Measurement]
    trees: dict[int, Tree]
    size_estimates: list[SizeEstimate]

    def rescaled(self, n: int) -> OneWayMeasurements:
        """The same per a better noisy n. Post-processing.

        Tables of joint draws are moved to it: of their noise only contrasts are left.
        """
        histograms = []
        for measurement in self.histograms:
            values = measurement.values
            if measurement.law is KNORM:
                values = values + (n - values.sum()) / len(values)
            histograms.append(replace(measurement, values=values, per=n))
        groups = {j: replace(measurement, per=n) for j, measurement in self.group_histograms.items()}
        return replace(self, histograms=histograms, group_histograms=groups)


def measure_one_way(counts: OneWayCounts, plan: TablePlan, setting: Setting) -> Asking[OneWayMeasurements]:
    """Noisy one-way tables: histograms of categories (and of their groups) once, trees of numbers in rounds.

    Costs "histograms", shared as `OneWayPlan` says.
    """
    attributes = plan.attributes
    draws = plan.one_way.draws(setting.allowance("histograms"), setting.steps)
    categories = yield from _measure_categories(counts, attributes, draws)
    trees, ranges = yield from _measure_numbers(counts, plan, draws, setting.pure)
    groups = {table.attribute: noisy for table, noisy in categories.items() if table.of_groups}
    codes = {table.attribute: noisy for table, noisy in categories.items() if not table.of_groups}
    histograms = codes | ranges
    return OneWayMeasurements(
        histograms=[histograms[j] for j in range(len(attributes))],
        group_histograms=groups,
        trees=trees,
        size_estimates=_size_estimates(draws, histograms, attributes) if setting.size_is_secret else [],
    )


@dataclass(frozen=True)
class _Histogram:
    """A one-way table of a category: counts of its codes, or of groups of its codes."""

    attribute: int
    of_groups: bool = False

    def component(self, attributes: Sequence[Attribute], counts: OneWayCounts) -> Component:
        """What is asked of it."""
        j = self.attribute
        category = attributes[j]
        codes = counts.codes(j)
        factor = Factor.plain(category.size)
        if self.of_groups and isinstance(category, Category):
            factor = Factor(factor.edges, np.array(category.groups))
            codes = codes.map(group_counts, factor.bins)
        return Component(counts.query(j, factor), codes, factor.size)


@dataclass(frozen=True)
class _HistogramDraw:
    """Histograms that get their noise in one draw, and its share of the charge."""

    histograms: list[_Histogram]
    share: Fraction
    noise: NoiseLaw | None = None  # by itself on each entry, where none is named

    def ask(self, attributes: Sequence[Attribute], counts: OneWayCounts) -> Ask:
        """What the gate is asked."""
        components = [histogram.component(attributes, counts) for histogram in self.histograms]
        return Ask("histograms", components, PARTITION_SENSITIVITY, self.share, noise=self.noise)


def _measure_categories(
    counts: OneWayCounts, attributes: Sequence[Attribute], draws: Sequence[Draw]
) -> Asking[dict[_Histogram, Measurement]]:
    """Histograms of categories: those of a joint draw with K-norm noise, others one by one, beside those of their groups."""
    histogram_draws = list(_histogram_draws(attributes, draws))
    asks = [draw.ask(attributes, counts) for draw in histogram_draws]
    measurements = (yield asks) if asks else []
    histograms = [histogram for draw in histogram_draws for histogram in draw.histograms]
    return dict(zip(histograms, measurements, strict=True))


def _histogram_draws(attributes: Sequence[Attribute], draws: Sequence[Draw]) -> Iterator[_HistogramDraw]:
    """Draws of noise for categories; where codes have groups, these get a part of the share."""
    for draw in draws:
        histograms = [_Histogram(j) for j in draw.attributes]
        attribute = attributes[draw.attributes[0]]
        if draw.joint:
            yield _HistogramDraw(histograms, draw.share, noise=KNORM)
        elif isinstance(attribute, Category) and attribute.groups:
            groups = _Histogram(draw.attributes[0], of_groups=True)
            yield _HistogramDraw([groups], GROUP_SHARE * draw.share)
            yield _HistogramDraw(histograms, (1 - GROUP_SHARE) * draw.share)
        elif isinstance(attribute, Category):
            yield _HistogramDraw(histograms, draw.share)


def _measure_numbers(
    counts: OneWayCounts, plan: TablePlan, draws: Sequence[Draw], pure: bool
) -> Asking[tuple[dict[int, Tree], dict[int, Measurement]]]:
    """Trees of all numbers, and counts of the ranges that they ended with."""
    trees = {j: Tree(grid, counts.total(j)) for j, grid in grids(plan.attributes).items()}
    shares = {draw.attributes[0]: draw.share for draw in draws if not draw.joint}

    def round_share(j: int, turn: int) -> Fraction:
        return shares[j] * plan.one_way.round_share(j, turn, pure)

    last_rounds = yield from measure_trees(trees, counts, "histograms", round_share)
    ranges = {j: _averaged(trees[j], measurement) for j, measurement in last_rounds.items()}
    return trees, ranges


def _averaged(tree: Tree, last_round: Measurement) -> Measurement:
    """Counts of the ranges that a tree ended with, each averaged over the rounds in which it stood.

    Earlier, coarser ranges were chosen by their noise and are not kept.
    """
    times = tree.times[tree.frontier]
    averages = tree.total[tree.frontier] / times
    return replace(last_round, values=averages, sd=tree.sd / np.sqrt(times))


def measure_trees(
    trees: Mapping[int, Tree], counts: OneWayCounts, purpose: str, share: Callable[[int, int], Fraction]
) -> Asking[dict[int, Measurement]]:
    """Count the frontiers of all trees round by round, and let each grow where its noisy counts are; return the last rounds.

    A round counts one partition of all codes of each number, of which a replaced row moves two counts by one: by 2 in ℓ1 and √2
    in ℓ2, whatever partition the rounds before it suggested (docs/proofs/trees.md).

    Args:
        trees: by attribute; they are changed.
        counts: exact counts of ranges.
        purpose: the charge that pays.
        share: the share of the charge for an attribute in a round.
    """
    last_rounds: dict[int, Measurement] = {}
    rounds = max((tree.grid.rounds for tree in trees.values()), default=0)
    for turn in range(rounds):
        growing = {j: tree for j, tree in trees.items() if turn < tree.grid.rounds}
        exact = counts.ranges({j: tree.edges for j, tree in growing.items()})
        asks = []
        for j, tree in growing.items():
            factor = Factor(tree.edges, np.arange(len(tree.edges) - 1))
            component = Component(counts.query(j, factor), exact[j], factor.size)
            asks.append(Ask(purpose, [component], PARTITION_SENSITIVITY, share(j, turn)))
        last_rounds |= dict(zip(growing, (yield asks), strict=True))
        for j, tree in growing.items():
            tree.see(last_rounds[j].values, float(last_rounds[j].sd))
            if turn + 1 < tree.grid.rounds:
                tree.grow()
    return last_rounds


def _size_estimates(
    draws: Sequence[Draw], histograms: Mapping[int, Measurement], attributes: Sequence[Attribute]
) -> list[SizeEstimate]:
    """The number of units, as the tables of each draw sum to it: those of a joint draw share the noise of their sum."""
    estimates = []
    for draw in draws:
        histogram = histograms[draw.attributes[0]]
        if draw.joint:
            sizes = tuple(sorted(attributes[j].size for j in draw.attributes))
            cell_sds, sum_sd = loose_deviations(sizes)
            sd = float(histogram.sd) * sum_sd / cell_sds[len(histogram.values)]
        else:
            cells = np.broadcast_to(histogram.sd, histogram.values.shape)
            sd = float(np.sqrt(np.sum(cells**2)))
        estimates.append(SizeEstimate(float(histogram.values.sum()), sd))
    return estimates


# Pair tables.


def pair_sensitivity(domain: Domain) -> Sensitivity:
    """How far one replaced row moves the pair tables, under each law. Attributes with a single category never move.

    Laplace on one-hot cells: q(q−1)/2 tables by 2 in ℓ1. Gaussian on centred tables: docs/proofs/sensitivity.md. Matrix Laplace
    on Σzzᵀ: 2‖z‖² in nuclear norm.
    """
    varying = [size for size in domain.sizes if size > 1]
    tables = len(varying) * (len(varying) - 1) // 2
    length = formulas.simplex_radius_squared(varying)
    replaced = formulas.pair_table_sensitivity(domain.sizes)
    added = formulas.added_pair_tables(domain.sizes)
    return Sensitivity(
        l1=2 * tables,
        l2_squared=replaced,
        trace=2 * length,
        added=Sensitivity(l1=tables, l2_squared=added, trace=length),
    )


def measure_pairs(tables: TableCounts, bin_of: list[Integers], law: PairLaw) -> Asking[Measurement]:
    """Noisy centred pair tables of bins, in counts, as one symmetric matrix. Costs "pairs"; nothing where the law is "none".

    Only the centred part is kept, because the rest was not paid for.
    """
    query = _all_pairs(tables, bin_of)
    if law.family is UNMEASURED:
        return Measurement(query, np.zeros(0), 0.0, UNMEASURED, tables.n, "pairs")
    counts = tables.pairs(bin_of)
    if law.family is MATRIX:
        values = yield from _pairs_with_matrix_noise(counts, query, law.domain)
    else:
        values = yield from _pairs_with_cell_noise(counts, query, law)
    return Measurement(query, values, law.sd, law.family, tables.n, "pairs")


def _all_pairs(tables: TableCounts, bin_of: Sequence[Integers]) -> Query:
    """Centred tables of any two attributes."""
    return Query(Every(len(bin_of), 2), tables.factors(bin_of), "centred")


def _pairs_with_matrix_noise(counts: Statistic, query: Query, domain: Domain) -> Asking[Floats]:
    """Matrix Laplace noise, on sums of products of contrasts, which are integers (docs/proofs/cone.md)."""
    everything = (slice(None), slice(None))
    component = Component(query, counts.map(contrasts, domain), everything)
    ask = Ask("pairs", [component], pair_sensitivity(domain), noise=MATRIX, weights=contrast_weights(domain))
    (measurement,) = yield [ask]
    return domain.off_blocks(from_contrasts(measurement.values, domain))


def _pairs_with_cell_noise(counts: Statistic, query: Query, law: PairLaw) -> Asking[Floats]:
    """Laplace noise on counts, or Gaussian noise on centred counts."""
    cells = PairCells(law.domain, law.places, pure=law.family is LAPLACE)
    ask = Ask("pairs", cells.components(counts, query), pair_sensitivity(law.domain))
    measurements = yield [ask]
    return cells.centred(measurements)


@dataclass(frozen=True)
class PairCells:
    """Cells of pair tables with independent noise: what is asked of them, and centred tables from what is measured.

    Laplace noise goes on the counts. Gaussian noise goes on centred tables N_ij − N_i./c_b − N_.j/c_a + n/(c_a c_b), which have
    half the sensitivity. These are multiples of 1/(c_a c_b): times c_a c_b they are integers, and get c_a c_b times the noise.

    Attributes:
        domain: how many bins attributes have.
        places: where the tables are in the matrix of all pairs.
        pure: whether the noise is Laplace noise.
    """

    domain: Domain
    places: Places
    pure: bool

    def components(self, counts: Statistic, query: Query) -> list[Component]:
        """One component of a mechanism for each place."""
        exact = counts if self.pure else counts.map(centred_counts, self.domain)
        components = []
        for rows, columns, cells in self.places:
            shape = (rows.stop - rows.start, len(columns))
            weight = Fraction(1) if self.pure else Fraction(1, cells**2)
            components.append(Component(query, exact.map(entries, rows, columns), shape, weight))
        return components

    def matrix(self, measurements: Sequence[Measurement]) -> Floats:
        """Noisy tables as one symmetric matrix; zeros elsewhere."""
        matrix = np.zeros((self.domain.total, self.domain.total))
        for (rows, columns, _), measurement in zip(self.places, measurements, strict=True):
            matrix[rows, columns] = measurement.values
            matrix[columns, rows] = measurement.values.T
        return matrix

    def centred(self, measurements: Sequence[Measurement]) -> Floats:
        """Noisy centred tables in counts, as one symmetric matrix."""
        matrix = self.matrix(measurements)
        if not self.pure:
            sizes = self.domain.counts[self.domain.block_of]
            matrix = matrix / (sizes[:, None] * sizes)
        return self.domain.off_blocks(self.domain.centre(matrix))

    def centred_tables(self, measurements: Sequence[Measurement]) -> Floats:
        """The same, one table after the other."""
        matrix = self.centred(measurements)
        return np.concatenate([matrix[rows, columns].ravel() for rows, columns, _ in self.places])

    def sd(self, measurements: Sequence[Measurement]) -> float | Floats:
        """The deviation of the noise in every coordinate of a centred table, in counts: that of all tables is the same."""
        if self.pure:
            return measurements[-1].sd
        _, _, cells = self.places[-1]
        return measurements[-1].sd / cells


# One-way and pair tables in one draw.


@dataclass(frozen=True)
class MeasuredPairs:
    """Noisy pair tables, and the law of their noise."""

    law: PairLaw
    measurement: Measurement

    def shares(self, n: int) -> Floats:
        """Centred tables as shares of n units; zeros where pairs are left out."""
        if not self.measurement.kept:
            total = self.law.domain.total
            return np.zeros((total, total))
        return np.asarray(self.measurement.values / n)


@dataclass(frozen=True)
class JointMeasurements:
    """One-way tables and pair tables of all categories, from one draw of noise."""

    one_way: OneWayMeasurements
    pairs: MeasuredPairs


def measure_jointly(tables: TableCounts, draw: JointDraw) -> Asking[JointMeasurements]:
    """One-way tables and centred pair tables of all categories in one draw of Gaussian noise. Costs `ONE_WAY_AND_PAIRS`.

    A row that changes all attributes moves one-way tables most, and one that changes some of them pairs: no row does both, so
    that the sensitivity is less than that of two measurements (docs/proofs/sensitivity.md).
    """
    domain = draw.law.domain
    bin_of = [np.arange(size) for size in domain.sizes]
    query = _all_pairs(tables, bin_of)
    cells = PairCells(domain, draw.law.places, pure=False)
    histogram_components = _weighted_histograms(tables, draw.weights)
    pair_components = cells.components(tables.pairs(bin_of), query)
    sensitivity = Sensitivity(l2_squared=formulas.pair_table_sensitivity(domain.sizes, draw.weights))
    measurements = yield [Ask(ONE_WAY_AND_PAIRS, [*histogram_components, *pair_components], sensitivity)]
    histograms = measurements[: len(histogram_components)]
    values = cells.centred(measurements[len(histogram_components) :])
    pairs = Measurement(query, values, draw.law.sd, draw.law.family, tables.n, ONE_WAY_AND_PAIRS)
    one_way = OneWayMeasurements(histograms, group_histograms={}, trees={}, size_estimates=[])
    return JointMeasurements(one_way, MeasuredPairs(draw.law, pairs))


def _weighted_histograms(tables: TableCounts, weights: Sequence[Fraction]) -> list[Component]:
    """Histograms of all categories, as components of a mechanism with these weights."""
    counts = tables.one_way_counts
    components = []
    for j, weight in enumerate(weights):
        factor = Factor.plain(tables.domain.sizes[j])
        components.append(Component(counts.query(j, factor), counts.codes(j), factor.size, weight))
    return components


# Whether pairs depend on each other.


@dataclass(frozen=True)
class DependenceTest:
    """How far pair tables are from products of their own margins: a noisy mean total variation."""

    total_variation: float
    sd: float

    def exceeds(self, required: float) -> bool:
        """Whether dependence is more than this by a deviation of the noise: most tables depend less than pairs must to pay."""
        return self.total_variation - self.sd > required


def measure_dependence(tables: TableCounts) -> Asking[DependenceTest]:
    """Test all pairs at once. Costs "look"."""
    bin_of = [np.arange(size) for size in tables.domain.sizes]
    statistic = tables.pairs(bin_of).map(dependence, tables.domain)
    component = Component(_all_pairs(tables, bin_of), statistic, 1)
    varying = sum(size > 1 for size in tables.domain.sizes)
    (measurement,) = yield [Ask("look", [component], dependence_test_sensitivity(varying))]
    scale = tables.n * varying * (varying - 1)
    return DependenceTest(float(measurement.values[0]) / scale, float(measurement.sd) / scale)


def dependence_test_sensitivity(q: int) -> Sensitivity:
    """How far one row moves the dependence of the pairs of q attributes (docs/proofs/sensitivity.md, neighbours.md)."""
    replaced = formulas.dependence_sensitivity(q)
    added = formulas.dependence_sensitivity(q, added=True)
    return Sensitivity(
        l1=replaced,
        l2_squared=replaced**2,
        summed=False,
        added=Sensitivity(l1=added, l2_squared=added**2, summed=False),
    )


# Rank covariances.


def rank_sensitivity(p: int) -> Sensitivity:
    """How far one replaced row moves the sums of products of two scores of p attributes (docs/proofs/trees.md)."""
    pairs = p * (p - 1) // 2
    turned = flips(p)
    return Sensitivity(
        l1=2 * UNIT**2 * turned,
        l2_squared=4 * UNIT**4 * turned,
        trace=2 * p * UNIT**2,
        added=Sensitivity(l1=UNIT**2 * pairs, l2_squared=UNIT**4 * pairs, trace=p * UNIT**2),
    )


def matrix_is_better(p: int) -> bool:
    """Whether matrix Laplace noise on p × p sums of products has the smaller deviation, under pure ε."""
    matrix_sd = 2 * p * np.sqrt((p + 1) / 2)
    laplace_sd = np.sqrt(2) * 2 * flips(p)
    return bool(matrix_sd < laplace_sd)


def measure_ranks(tables: TableCounts, bin_of: list[Integers], scores: RankScores, pure: bool) -> Asking[Measurement]:
    """Noisy sums of products of two rank scores, for all pairs of attributes that have scores. Costs "ranks".

    Under pure ε the law, Laplace or matrix Laplace, is chosen by the number of attributes alone.
    """
    p = len(scores.attributes)
    above_diagonal = np.triu_indices(p, 1)
    query = Query(Every(p, 2), {}, "product", of="rank")
    products = tables.pairs(bin_of).map(rank_matrix, scores)
    if pure and matrix_is_better(p):
        component = Component(query, products, (slice(None), slice(None)))
        ask = Ask("ranks", [component], rank_sensitivity(p), noise=MATRIX, weights=[WHOLE] * p)
        (matrix,) = yield [ask]
        return replace(matrix, values=matrix.values[above_diagonal])
    component = Component(query, products.map(entries, *above_diagonal), len(above_diagonal[0]))
    (measurement,) = yield [Ask("ranks", [component], rank_sensitivity(p))]
    return measurement
