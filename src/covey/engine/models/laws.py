"""Laws of rows: centres of independent columns, or points. Each answers queries, draws rows, and says what is certified.

A law sees what a model made of measurements, and nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.bodies import Body, ProductOfSimplices
from covey.engine.certificate import Distances
from covey.engine.codes import distance
from covey.engine.codes.counts import Moments, RealGrid, moment_sums, moments, part, scaled_moments
from covey.engine.codes.domain import Domain
from covey.engine.codes.zeros import NO_BOXES, Boxes, Zeros
from covey.engine.draw.balanced import Kept, keep_limits, sample_bits, sample_categories, share_out
from covey.engine.entropy import Streams
from covey.engine.fit.centres import Triples
from covey.engine.model import Comparison, Setting
from covey.engine.models.tables.table_counts import RecordTables
from covey.engine.numbers.grid import Cells, comparison_edges, kolmogorov_bound, released_below
from covey.engine.points import WeightedPoints, bootstrap, one_hot, round_bits, round_categories, spread_copies
from covey.engine.query import Query, mixed_table
from covey.engine.statistic import Statistic, largest_of
from covey.errors import CannotAnswerError

Limits = Sequence[tuple[list[int], int]]
# Columns; pair sums of so many are added up while a table is first read, beyond it they would slow that down.
NARROW = 500
COUNTED = 100_000  # rows of the fixed public draw that answers queries without a closed form


def bit_sums(setting: Setting) -> Statistic:
    """Sums of columns and of products of two; of few columns they are kept, and were added up when the table was first read."""
    return Statistic.sum(moments, cached=setting.p <= NARROW)


@dataclass(frozen=True)
class RowLaw:
    """Rows that are weighted points; queries are answered by counting a fixed public draw."""

    cloud: WeightedPoints

    def draw(self, units: int, streams: Streams) -> Array:
        """So many points, each as often as its weight says."""
        public = streams.postprocessing("rows")
        shares = share_out(self.cloud.weights, units, public)
        return np.asarray(self.cloud.points[public.permutation(np.repeat(shares.order, shares.size))])

    @cached_property
    def _drawn(self) -> Array:
        return self.draw(COUNTED, Streams.from_seed(0).child("queries"))

    def table(self, query: Query) -> Floats:
        """Shares of every cell, table after table."""
        return np.asarray(query.kernel()(self._drawn).integers()[0] / COUNTED)

    def comparison(self, setting: Setting) -> Comparison:
        """What a certificate compares units with."""
        raise CannotAnswerError("rows of this method have no certificate.")


@dataclass(frozen=True)
class BitLaw(RowLaw):
    """Rows of 0 and 1 by balanced rounding; declared limits ("at most L of these columns") are kept."""

    limits: Limits = ()

    def draw(self, units: int, streams: Streams) -> Array:
        """Rows of bits."""
        bits = sample_bits(self.cloud, units, streams.postprocessing("rows"))
        return keep_limits(bits, self.limits, streams.postprocessing("limits")) if self.limits else bits

    def table(self, query: Query) -> Floats:
        """Shares of cells of columns that are independent in each centre."""
        if type(query) is not Query or query.of != "row":
            return super().table(query)
        y = self.cloud.points
        both = WeightedPoints(self.cloud.weights, np.stack([1 - y, y], axis=2).reshape(len(y), -1))
        return mixed_table(query, both, [np.arange(2)] * y.shape[1])

    def comparison(self, setting: Setting) -> Comparison:
        """Degrees that public numbers say are affordable."""
        n, p, cloud = setting.n, setting.p, self.cloud
        sums = bit_sums(setting)
        # Where the number of rows is secret, distances of counts over the noisy one, which is fixed: docs/proofs/neighbours.md.
        if setting.size_is_secret:
            sums = sums.map(Moments.counted_as, setting.total)
        low = [degree for degree in distance.DEGREES if degree <= min(2, p)]
        high = distance.affordable_subsets(n, p)
        distances = [sums.map(distance.moment_distances, cloud)]
        for degree in high:
            counts = Statistic.sum(partial(distance.subset_counts, degree=degree)).map(part)
            distances.append(counts.map(distance.subset_distance, setting.total, degree, cloud))
        return Comparison(
            degrees=[*low, *high],
            largest_distance=largest_of(distances),
            mean_variation=sums.map(distance.misplaced_bits, cloud),
            columns=min(p, 2),
            categorical=False,
        )

    def distances(self, rows: Array) -> Distances:
        """By degree, and rows out of place."""
        bits = rows.astype(np.uint8)
        return Distances(distance.bit_distances(bits, self.cloud), distance.misplaced_bits(moments(bits), self.cloud))


@dataclass(frozen=True)
class CodeLaw(RowLaw):
    """Rows of codes, or of one-hot columns: cells by systematic rounding, then numbers from their private measures in cells."""

    domain: Domain  # how many categories and cells each attribute has
    cells: Mapping[int, Cells] = field(default_factory=dict)  # of numbers, by attribute
    score: Floats | None = None  # ranks that swaps between rows keep; None where there are no two of numbers
    boxes: Boxes = NO_BOXES  # combinations of codes that cannot occur
    triples: Triples | None = None  # of attributes, whose tables were measured
    as_one_hot: bool = False  # whether rows are one-hot columns
    # What the model asked of the records: a certificate asks for the same.
    records: RecordTables | None = field(default=None, repr=False, compare=False)

    @cached_property
    def _starts(self) -> list[Integers]:
        """A code of each category and cell, the first."""
        sizes = enumerate(self.domain.sizes)
        return [self.cells[j].edges[:-1] if j in self.cells else np.arange(size) for j, size in sizes]

    @cached_property
    def zeros(self) -> Zeros | None:
        """What cannot occur, over categories and cells; cells were cut so that none lies across a side of a box."""
        return self.boxes.on(self.domain, self._starts) if self.boxes else None

    def of(self, codes: Array) -> Integers:
        """Cells of codes, a column per attribute; categories stay."""
        out = codes.astype(np.int64)
        for j, cells in self.cells.items():
            out[:, j] = cells.of(codes[:, j])
        return out

    def draw(self, units: int, streams: Streams) -> Array:
        """Rows of codes."""
        kept = Kept(self.score, self.zeros, triples=self.triples)
        rows = sample_categories(self.cloud, self.domain, units, streams.postprocessing("rows"), kept)
        if self.as_one_hot:
            return one_hot(rows.astype(np.int64), self.domain.sizes)
        return self.valued(rows, streams.postprocessing("values")) if self.cells else rows

    def valued(self, rows: Array, public: np.random.Generator) -> Integers:
        """Cells of numbers become values."""
        rows = rows.astype(np.int64)
        for j, cells in self.cells.items():
            rows[:, j] = cells.values(rows[:, j], public)
        return rows

    def table(self, query: Query) -> Floats:
        """Shares of cells of columns that are independent in each centre; a number of a cell counts where the cell begins."""
        closed = type(query) is Query and query.of == "row"
        return mixed_table(query, self.cloud, self._starts) if closed else super().table(query)

    def comparison(self, setting: Setting) -> Comparison:
        """Tables of cells, and distribution functions of numbers."""
        if self.records is None:
            raise CannotAnswerError("centres that were read from a file have no records to be compared with.")
        distance_of_cells = self.records.cells.largest_distance(self.cloud)
        variation = self.records.cells.mean_variation(self.cloud)
        mean_variation = variation.statistic
        if self.cells:  # its twin for numbers, the largest of the two
            kolmogorov = self.records.kolmogorov_distance(self.cells, self.cloud)
            mean_variation = largest_of([mean_variation, kolmogorov])
        return Comparison(
            degrees=distance_of_cells.degrees,
            largest_distance=distance_of_cells.statistic,
            mean_variation=mean_variation,
            columns=variation.columns,
            numbers=bool(self.cells),
        )

    def distances(self, rows: Array) -> Distances:
        """By degree, rows out of place, and at least the largest Kolmogorov distance from released distribution functions.

        The triangle inequality holds for it as for shares: docs/proofs/trees.md.
        """
        codes, functions = self.of(rows), []
        share = self.cloud.weights @ self.cloud.points
        for j, cells in self.cells.items():
            edges = comparison_edges(cells)
            counts = np.diff(np.searchsorted(np.sort(rows[:, j]), edges))
            functions.append(kolmogorov_bound(counts, edges, released_below(cells, share[self.domain.block(j)], edges)))
        by_degree = distance.category_distances(codes, self.domain.sizes, self.cloud)
        misplaced = distance.misplaced_rows(codes, self.domain, self.cloud)
        return Distances(by_degree, misplaced, max(functions, default=None))


@dataclass(frozen=True)
class BodyLaw(RowLaw):
    """Rows of a body that are its points; of a product of simplices, where records were integers, one-hot rows."""

    body: Body
    grid: RealGrid  # its public grid, in whose scale rows are compared with the points
    rounded: bool = False  # whether points of a product of simplices are rounded to categories

    def draw(self, units: int, streams: Streams) -> Array:
        """Rows. Where there are more rows than points, copies of a point are spread over the values around its own."""
        rows = balanced(self.cloud, self.body, self.rounded, codes=False).draw(units, streams)
        if units <= len(self.cloud) or (isinstance(self.body, ProductOfSimplices) and self.rounded):
            return rows
        return np.asarray(self.body.project(spread_copies(rows, streams.postprocessing("spread"))))

    def comparison(self, setting: Setting) -> Comparison:
        """Means, and means of products of two columns, each between 0 and 1."""
        inside = WeightedPoints(self.cloud.weights, np.clip(self.grid.scaled(self.cloud.points), 0.0, 1.0))
        means = Statistic.sum(moment_sums).map(scaled_moments, setting.n)
        return Comparison(
            degrees=[1, 2] if setting.p > 1 else [1],
            largest_distance=means.map(distance.moment_distances, inside).map(distance.largest),
            categorical=False,
            products=True,
        )

    def distances(self, rows: Array) -> Distances:
        """By degree."""
        inside, points = (self.grid.scaled(np.asarray(x, dtype=np.float64)) for x in (rows, self.cloud.points))
        return Distances(distance.moment_distances(moments(inside), WeightedPoints(self.cloud.weights, points)))


@dataclass(frozen=True)
class PaperLaw(RowLaw):
    """Bootstrapping (section 4.2) and independent randomized rounding (section 4.3)."""

    # None for bits, of categories the product of simplices; real rows of other bodies are not rounded.
    body: Body | None
    rounded: bool  # whether rows of a product of simplices are rounded to categories
    codes: bool  # whether such rows come as codes rather than one-hot columns

    def draw(self, units: int, streams: Streams) -> Array:
        """Rows, independent of each other given the points."""
        chosen = bootstrap(self.cloud, units, streams.postprocessing("bootstrap"))
        rounding = streams.postprocessing("rounding")
        if self.body is None:
            return round_bits(self.cloud.points, chosen, rounding)
        if isinstance(self.body, ProductOfSimplices) and self.rounded:
            drawn = round_categories(self.cloud.points, chosen, self.body.sizes, rounding)
            return drawn if self.codes else one_hot(drawn, self.body.sizes)
        return np.asarray(self.cloud.points[chosen])


def balanced(cloud: WeightedPoints, body: Body | None, rounded: bool, codes: bool) -> RowLaw:
    """Balanced rounding for bits and categories; averages stay as they are for numbers. Arguments as for `PaperLaw`."""
    if body is None:
        return BitLaw(cloud)
    if isinstance(body, ProductOfSimplices) and rounded:
        return CodeLaw(cloud, Domain(body.sizes, (False,) * len(body.sizes)), as_one_hot=not codes)
    return RowLaw(cloud)
