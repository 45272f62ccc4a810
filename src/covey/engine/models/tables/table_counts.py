"""What is counted of a table of codes: of one attribute, of two, and for the certificate.

Nothing is computed here. A `Statistic` describes what is to be computed; the driver computes it and seals it, and only the gate
opens it, with noise (`covey.engine.driver`). How far one row moves each statistic is said where it is measured.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from covey.engine.arrays import Array, Integers
from covey.engine.codes import distance
from covey.engine.codes.counts import part, side_by_side
from covey.engine.codes.domain import (
    FULL_TABLES,
    CodeCounts,
    Domain,
    PairTables,
    RangeCounts,
    counted_fully,
    merge_pairs,
    ranges_of,
)
from covey.engine.model import Setting
from covey.engine.numbers.grid import (
    Attribute,
    Category,
    Cells,
    comparison_edges,
    grids,
    kolmogorov_bound,
    released_below,
)
from covey.engine.points import WeightedPoints
from covey.engine.query import Factor, Query, to_bins
from covey.engine.statistic import Statistic, entries, largest_of
from covey.engine.units.rows import then

# Kernels: what one pass over the records adds up.

Kernel = CodeCounts | PairTables | RangeCounts


def first_pass_kernels(attributes: Sequence[Attribute]) -> tuple[Kernel, ...]:
    """What is added up while the table is read first: it will be asked for, whatever the data is.

    That is all pair tables of categories, if these are small, or counts of codes. Numbers with too many codes are counted as one
    range each, so that an engine learns that ranges of them will be asked for.
    """
    kernel = table_kernel(attributes)
    ranges = whole_ranges(attributes)
    return (kernel,) if ranges is None else (kernel, ranges)


def table_kernel(attributes: Sequence[Attribute]) -> CodeCounts | PairTables:
    """All pair tables, if there are categories alone and their tables are small; else counts of codes."""
    sizes = tuple(attribute.size for attribute in attributes)
    if grids(attributes) or sum(sizes) > FULL_TABLES:
        return code_kernel(attributes)
    return PairTables(sizes)


def code_kernel(attributes: Sequence[Attribute]) -> CodeCounts:
    """Counts of every code of categories, and of numbers as long as there is room."""
    uncounted = _counted_by_ranges(attributes)
    columns = tuple(j for j in range(len(attributes)) if j not in uncounted)
    return CodeCounts(columns, tuple(attributes[j].size for j in columns))


def whole_ranges(attributes: Sequence[Attribute]) -> RangeCounts | None:
    """Numbers that are counted by ranges, as one range each; None if there is none."""
    columns = tuple(sorted(_counted_by_ranges(attributes)))
    if not columns:
        return None
    edges = tuple(np.array([0, attributes[j].size]) for j in columns)
    return RangeCounts(columns, edges)


def _counted_by_ranges(attributes: Sequence[Attribute]) -> set[int]:
    """Numbers with too many codes to be counted one by one."""
    numbers = grids(attributes)
    fits = counted_fully([grid.size for grid in numbers.values()])
    return {j for j, has_room in zip(numbers, fits, strict=True) if not has_room}


# One attribute.


@dataclass(frozen=True)
class OneWayCounts:
    """Exact one-way counts: code by code where one pass counts these, else by ranges, in another pass.

    Attributes:
        n: the number of rows, or of persons.
        by_code: counts of every code, for attributes that are counted code by code.
        step: applied to records before ranges are counted, if there is one.
    """

    n: int
    by_code: Mapping[int, Statistic]
    step: Callable[[Array], Array] | None = None

    @classmethod
    def of(cls, n: int, attributes: Sequence[Attribute]) -> OneWayCounts:
        """Of the codes of a table."""
        kernel = code_kernel(attributes)
        counts = Statistic.sum(kernel, cached=True)
        return cls(n, {j: counts.map(part, i) for i, j in enumerate(kernel.columns)})

    def codes(self, j: int) -> Statistic:
        """Counts of every code of an attribute."""
        return self.by_code[j]

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Statistic]:
        """Counts between edges, for several attributes: one pass for all whose codes were not counted."""
        counts = {j: self.codes(j).map(ranges_of, edges[j]) for j in edges if j in self.by_code}
        uncounted = tuple(j for j in edges if j not in self.by_code)
        if uncounted:
            kernel = RangeCounts(uncounted, tuple(edges[j] for j in uncounted))
            sums = Statistic.sum(kernel, self.step)
            counts |= {j: sums.map(part, i) for i, j in enumerate(uncounted)}
        return counts

    def total(self, j: int) -> int:
        """What the counts of an attribute sum to, as far as that is public: the number of rows, or of persons."""
        return self.n

    def query(self, j: int, factor: Factor) -> Query:
        """The query that counts of an attribute answer, if its codes are gathered as `factor` says."""
        return Query([(j,)], {j: factor})


# Two attributes, over cells.


@dataclass(frozen=True)
class LargestDistance:
    """The largest distance of the records from a cloud of centres, over all tables of some numbers of columns."""

    degrees: list[int]  # numbers of columns, as many as public sizes say are affordable
    statistic: Statistic


@dataclass(frozen=True)
class MeanVariation:
    """The mean total variation distance between tables of the records and of a cloud of centres."""

    columns: int  # of a table
    statistic: Statistic


class TableCounts:
    """Exact tables of one and of two attributes, over cells: codes of categories, and ranges of codes of numbers.

    All pair tables are counted in one pass if they are small. Else one pass counts single attributes, and every call of `pairs`
    describes another one.

    Attributes:
        domain: how many cells attributes have.
        n: the number of rows, or of persons; a noisy one where it is secret.
        steps: what one of them weighs in sums.
        total: what all of them weigh.
        size_is_secret: whether n is noisy.
        one_way: all one-way counts, side by side.

    Args:
        setting: where n, steps and whether n is secret come from.
        domain: how many cells attributes have.
        cell_factors: from codes to cells, for numbers; None for categories. Empty where all are categories.
    """

    def __init__(self, setting: Setting, domain: Domain, cell_factors: Sequence[Factor | None] = ()) -> None:
        self.domain = domain
        self.n = setting.n
        self.steps = setting.steps
        self.total = setting.total
        self.size_is_secret = setting.size_is_secret
        self._cell_factors = tuple(cell_factors) or (None,) * len(domain.sizes)
        has_numbers = any(factor is not None for factor in self._cell_factors)
        self._to_cells = partial(to_bins, self._cell_factors) if has_numbers else None
        kernel = table_kernel([Category(size) for size in domain.sizes])
        counts = Statistic.sum(kernel, self._to_cells, cached=True)
        self._all_pairs: Statistic | None = None
        if isinstance(kernel, PairTables):
            self._all_pairs = counts.map(kernel.matrix)
            self.one_way = self._all_pairs.map(np.diagonal)
        else:
            self.one_way = counts.map(side_by_side)

    @property
    def one_way_counts(self) -> OneWayCounts:
        """Counts of every cell of every attribute."""
        blocks = [self.domain.block(j) for j in range(len(self.domain.sizes))]
        return OneWayCounts(self.n, {j: self.one_way.map(entries, block) for j, block in enumerate(blocks)})

    def factors(self, bin_of: Sequence[Integers]) -> dict[int, Factor]:
        """From codes to bins, for every attribute; bin_of[a] says in which bin a cell is."""
        factors = {}
        for a, (cells, bins) in enumerate(zip(self._cell_factors, bin_of, strict=True)):
            edges = np.arange(len(bins) + 1) if cells is None else cells.edges
            factors[a] = Factor(edges, bins)
        return factors

    def pairs(self, bin_of: Sequence[Integers]) -> Statistic:
        """All pair tables of bins, as one symmetric matrix with the one-way counts on its diagonal."""
        sizes = tuple(int(bins.max()) + 1 for bins in bin_of)
        if self._all_pairs is not None:
            return self._all_pairs.map(merge_pairs, tuple(bin_of), sizes)
        kernel = PairTables(sizes)
        gather = partial(to_bins, tuple(self.factors(bin_of).values()))
        return Statistic.sum(kernel, gather).map(kernel.matrix)

    # For the certificate.

    def largest_distance(self, cloud: WeightedPoints) -> LargestDistance:
        """The largest distance of the records from a cloud, over the numbers of columns that are affordable."""
        q = len(self.domain.sizes)
        if self._all_pairs is not None:
            degrees = [1, 2] if q > 1 else [1]
            distances = [self._all_pairs.map(distance.pair_distances, self.total, self.domain, cloud)]
        else:
            degrees = [1]
            distances = [self.one_way.map(distance.one_way_distance, self.total, q, cloud)]
        # All records at once are asked for where public numbers say that they are few. Of persons no number says so.
        if self.steps == 1 and not self.size_is_secret:
            higher = tuple(d for d in distance.affordable_tables(self.n, q) if d not in degrees)
            if higher:
                sizes = self.domain.sizes
                kernel = partial(distance.sorted_category_distances, sizes=sizes, cloud=cloud, degrees=higher)
                distances.append(Statistic(then(self._to_cells, kernel), all_at_once=True))
                degrees = [*degrees, *higher]
        return LargestDistance(degrees, largest_of(distances))

    def mean_variation(self, cloud: WeightedPoints) -> MeanVariation:
        """The mean total variation between pair tables of the records and of a cloud, over ranges of its cells."""
        ranges = distance.Ranges.of(cloud, self.domain)
        pairs = self.pairs(ranges.maps)
        variation = pairs.map(distance.misplaced_codes, self.total, ranges.sizes, ranges.cloud(cloud))
        return MeanVariation(distance.columns_of(ranges.sizes), variation)


@dataclass(frozen=True)
class RecordTables:
    """What a fit asked of the records, described: a certificate asks for the same.

    Attributes:
        cells: tables of one and of two attributes, over cells.
        codes: one-way counts of codes, with which distribution functions of numbers are compared.
    """

    cells: TableCounts
    codes: OneWayCounts

    def kolmogorov_distance(self, number_cells: Mapping[int, Cells], cloud: WeightedPoints) -> Statistic:
        """The largest Kolmogorov distance, or a little more, between records and a cloud of centres, over all numbers."""
        shares = cloud.weights @ cloud.points
        edges = {j: comparison_edges(cells) for j, cells in number_cells.items()}
        exact = self.codes.ranges(edges)
        bounds = []
        for j, cells in number_cells.items():
            released = released_below(cells, shares[self.cells.domain.block(j)], edges[j])
            # A secret number of records is not divided by: what one more record moves would hang on it.
            bounds.append(exact[j].map(kolmogorov_bound, edges[j], released, self.cells.total))
        return largest_of(bounds)
