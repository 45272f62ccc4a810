"""From noisy one-way tables to cells, their shares, and bins: the domain over which pairs are measured. Post-processing.

A category is a cell. The codes of a number are cut into cells of about equal mass (`covey.engine.numbers.grid`). Cells are merged
into bins: rare categories into one, neighbours of ordered attributes up to a mass that stands out of the noise on pairs. Pair
tables are measured over bins, and a fit is taken apart to cells again (`covey.engine.codes.domain.unmerge`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.codes.domain import Domain
from covey.engine.codes.zeros import NO_BOXES, Boxes
from covey.engine.fit.shrinkage import denoise_histogram, grouped_bins, grouped_histogram
from covey.engine.fit.spectrum import rank_scores
from covey.engine.models.tables.measure_tables import OneWayMeasurements
from covey.engine.models.tables.plan_one_way import nominal_domain
from covey.engine.models.tables.plan_tables import most_bins
from covey.engine.numbers.grid import Attribute, Category, Cells, category_bins, cell_bins, grids, make_cells
from covey.engine.numbers.tree import tree_measure
from covey.engine.query import Factor

# Deviations of the noise on its count that a category must stand above, to have a bin of its own.
RARE = 3


@dataclass(frozen=True)
class Discretization:
    """How codes are cut into cells and cells gathered into bins, and what share of the units each has.

    Attributes:
        cell_domain: how many cells attributes have.
        cell_shares: denoised shares of the cells, for each attribute.
        bin_of: the bin of every cell, for each attribute.
        number_cells: the cells of numbers, by attribute.
        special_cells: how many cells of each attribute, its first ones, have no rank ("missing", "not applicable").
        one_way: the measurements that all this was made from.
    """

    cell_domain: Domain
    cell_shares: list[Floats]
    bin_of: list[Integers]
    number_cells: dict[int, Cells]
    special_cells: Integers
    one_way: OneWayMeasurements

    @property
    def cell_edges(self) -> list[Integers]:
        """The codes at which cells begin, and the end, of every attribute; a category's cells are its codes."""
        return [self._edges(j) for j in range(len(self.cell_shares))]

    def _edges(self, j: int) -> Integers:
        if j in self.number_cells:
            return self.number_cells[j].edges
        return np.arange(self.cell_domain.sizes[j] + 1)

    @property
    def cell_factors(self) -> tuple[Factor | None, ...]:
        """From codes to cells; None for categories, whose codes are cells."""
        return tuple(self._cell_factor(j) for j in range(len(self.cell_shares)))

    def _cell_factor(self, j: int) -> Factor | None:
        if j not in self.number_cells:
            return None
        edges = self.number_cells[j].edges
        return Factor(edges, np.arange(len(edges) - 1))

    @cached_property
    def bin_domain(self) -> Domain:
        """How many bins attributes have."""
        sizes = tuple(int(bins.max()) + 1 for bins in self.bin_of)
        return Domain(sizes, self.cell_domain.ordered)

    @cached_property
    def bin_shares(self) -> Floats:
        """Shares of the bins of all attributes, side by side."""
        attributes = zip(self.bin_of, self.cell_shares, self.bin_domain.sizes, strict=True)
        return np.concatenate([np.bincount(bins, shares, minlength=size) for bins, shares, size in attributes])

    @property
    def bin_factors(self) -> list[Factor]:
        """From codes to bins, for every attribute."""
        attributes = zip(self.cell_edges, self.bin_of, strict=True)
        return [Factor(edges, bins) for edges, bins in attributes]

    @property
    def rank_scores(self) -> Floats | None:
        """Ranks of cells that swaps between rows keep; None where no two attributes have any, or none is a number.

        Pairs of ordered categories hold nearly all of their ranks: swaps that keep these as well made them worse.
        """
        scores = rank_scores(np.concatenate(self.cell_shares), self.cell_domain, self.special_cells)
        if not self.number_cells or len(scores.attributes) < 2:
            return None
        return scores.score

    def unmerged(self) -> Discretization:
        """The same with a bin for every cell."""
        return replace(self, bin_of=[np.arange(size) for size in self.cell_domain.sizes])


class PublicShares(Protocol):
    """Public rows, as far as one-way tables are concerned."""

    def shares(self, attribute: int, size: int) -> Floats:
        """Shares of the codes of an attribute."""


@dataclass(frozen=True)
class _Binned:
    """One attribute: shares of its cells, the bin of each, and the cells themselves if it is a number."""

    shares: Floats
    bin_of: Integers
    cells: Cells | None = None


@dataclass(frozen=True)
class Discretizer:
    """Makes a `Discretization` of noisy one-way tables.

    Attributes:
        attributes: public; categories and numbers.
        bin_mass: the share that a bin of an ordered attribute should have, so that pairs of bins stand out of their noise.
        pure: whether the noise is that of pure ε.
        boxes: combinations of codes that cannot occur; no cell and no bin lies across a side of one.
        prior: public rows that the shares of categories may be like.
    """

    attributes: tuple[Attribute, ...]
    bin_mass: float
    pure: bool
    boxes: Boxes = NO_BOXES
    prior: PublicShares | None = None

    def discretize(
        self, one_way: OneWayMeasurements, totals: Sequence[float], public: np.random.Generator
    ) -> Discretization:
        """Denoise, cut, merge; attribute by attribute.

        Args:
            one_way: noisy histograms and trees.
            totals: what the counts of each attribute sum to.
            public: a stream for post-processing.
        """
        binned = []
        for j, attribute in enumerate(self.attributes):
            if not isinstance(attribute, Category):
                binned.append(self._number(j, one_way, public))
            elif attribute.groups:
                binned.append(self._grouped_category(j, attribute, one_way, totals[j], public))
            else:
                binned.append(self._category(j, attribute, one_way, totals[j], public))
        sizes = tuple(len(column.shares) for column in binned)
        special_cells = np.zeros(len(binned), dtype=np.int64)
        for j, grid in grids(self.attributes).items():
            special_cells[j] = grid.specials
        return Discretization(
            cell_domain=Domain(sizes, self._domain.ordered),
            cell_shares=[column.shares for column in binned],
            bin_of=[column.bin_of for column in binned],
            number_cells={j: column.cells for j, column in enumerate(binned) if column.cells is not None},
            special_cells=special_cells,
            one_way=one_way,
        )

    @cached_property
    def _domain(self) -> Domain:
        return nominal_domain(self.attributes)

    def _number(self, j: int, one_way: OneWayMeasurements, public: np.random.Generator) -> _Binned:
        """Cells of about equal mass of the measure that the tree suggests."""
        cuts = self.boxes.cuts(j)
        cells = make_cells(tree_measure(one_way.trees[j], self.pure, public), cuts)
        return _Binned(cells.share, cell_bins(cells, self.bin_mass, cuts), cells)

    def _category(
        self, j: int, attribute: Category, one_way: OneWayMeasurements, total: float, public: np.random.Generator
    ) -> _Binned:
        """Denoised shares of categories; rare ones are merged, or neighbours where there is an order."""
        histogram = one_way.histograms[j]
        sd = float(histogram.sd)
        expected = None if self.prior is None else self.prior.shares(j, attribute.size)
        counts = denoise_histogram(histogram.values, sd, total, attribute.ordered, public, expected)
        shares = counts / total
        signature = self.boxes.signature(j, attribute.size)
        most = most_bins(self._domain)
        rare = RARE * sd / total
        bin_of = category_bins(shares, attribute.ordered, self.bin_mass, rare, most, signature)
        return _Binned(shares, bin_of)

    def _grouped_category(
        self, j: int, attribute: Category, one_way: OneWayMeasurements, total: float, public: np.random.Generator
    ) -> _Binned:
        """Denoised shares of categories in groups, which have counts of their own; rare ones are merged inside their group."""
        histogram = one_way.histograms[j]
        sd = float(histogram.sd)
        groups = one_way.group_histograms[j]
        group_of = np.array(attribute.groups)
        noisy_codes = (histogram.values, sd)
        noisy_groups = (groups.values, float(groups.sd))
        shares = grouped_histogram(noisy_codes, noisy_groups, group_of, total, public) / total
        signature = self.boxes.signature(j, attribute.size)
        rare = RARE * sd / total
        bin_of = grouped_bins(shares, group_of, rare, most_bins(self._domain), signature)
        return _Binned(shares, bin_of)
