"""`regain` for tables with numbers: private measures, cells of them, pair tables of bins of cells, centres, values again.

Rows are codes: of a category its number, of a number its place on the public grid (`core.numbers.grid`). Numbers are looked at
one by one first, each with a tree that grows where its noisy counts are; then they are categories, whose cells have about equal
mass, and everything goes the way of `categories`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.numbers.cells import Cells, category_bins, cell_bins, make_cells
from covey.core.numbers.consistency import tree_measure
from covey.core.numbers.grid import Attribute, Category
from covey.core.numbers.ranks import rank_scores
from covey.core.tables.domain import Domain
from covey.core.tables.hierarchy import grouped_bins, grouped_histogram
from covey.core.tables.histograms import denoise_histogram
from covey.core.tables.recoding import ToCells
from covey.core.tables.zeros import NO_BOXES, Boxes, Zeros
from covey.core.threads import blas_threads
from covey.engines.rows import Rows
from covey.measure.measurement import Measurements, joined
from covey.methods.draws import NumberCells, on_cells
from covey.methods.method import Fitted, Public
from covey.methods.regain.categories import NOTHING, Merging, merged_centres
from covey.methods.regain.important import Important
from covey.methods.regain.measure import Tables
from covey.methods.regain.measure_numbers import (
    OneWay,
    OneWayCounts,
    codes_kernel,
    farthest_numbers,
    measure_one_way,
)
from covey.methods.regain.plan import most_bins, refuse_too_wide
from covey.methods.regain.plan_numbers import NumberPlan, grids
from covey.methods.regain.prior import Prior
from covey.methods.regain.triples import NO_WISH, Wish
from covey.privacy.budget import Budget
from covey.privacy.certificate import certify
from covey.privacy.gate import Exact, Gate
from covey.progress import Progress
from covey.table.numbers import NumberCodec
from covey.table.zeros import structural_zeros


@dataclass(frozen=True)
class RegainNumbers:
    """`regain` for rows of codes of categories and numbers."""

    certificate: Fraction
    attributes: tuple[Attribute, ...]
    boxes: Boxes = NO_BOXES
    important: Important = NOTHING
    wish: Wish = NO_WISH
    prior: Prior | None = None

    @classmethod
    def of(cls, codec: NumberCodec, certificate: Fraction, pure: bool) -> RegainNumbers:
        """The method for tables of a codec: its attributes, what its rules exclude, and what its schema says matters most."""
        own = codec.codec
        important = Important.of(own.important, len(codec.names), pure, own.target)
        wish = Wish(own.schema.triples_wanted, own.target)
        return cls(certificate, codec.attributes, structural_zeros(codec), important, wish)

    @property
    def prior_digest(self) -> str | None:
        """The fingerprint of the bundle that serves as public information, if one does."""
        return None if self.prior is None else self.prior.digest

    @cached_property
    def plan(self) -> NumberPlan:
        """The public formulas."""
        return NumberPlan(self.attributes, self.important, self.wish)

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Counts of codes, as far as there is room for them."""
        return (codes_kernel(self.attributes),)

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """One-way measures, pairs, ranks, certificate."""
        return {**self.plan.shares(n, budget, 1 - self.certificate), "certificate": self.certificate}

    def fit(self, rows: Rows, gate: Gate, public: Public) -> Fitted:
        """Private centres over cells, what the cells are, and a certificate that covers numbers' distribution functions."""
        refuse_too_wide(self.plan.declared.total, rows.n, categories=True)
        with Progress((("measuring", 1.0), ("certifying", 0.6))) as progress, blas_threads(1):
            progress.next()
            counts = OneWayCounts.of(rows, self.attributes)
            one_way = measure_one_way(counts, self.plan, gate)
            mass = self.plan.bin_mass(rows.n, gate.allowance("pairs"))
            totals = [float(rows.n)] * len(self.attributes)
            seen = self.look(one_way, totals, mass, gate.budget.pure, public("numbers"))
            edges = tuple(seen.cells[j].edges if j in seen.cells else None for j in range(len(self.attributes)))
            tables = Tables(rows, seen.domain, {j: own.edges for j, own in seen.cells.items()})
            zeros, declared = seen.zeros(self.boxes), self.plan.declared
            known = (seen.specials if seen.cells else None, zeros, self.important, self.wish)
            before = None if self.prior is None else ToCells(edges)(self.prior.codes)
            merging = Merging(tables, seen.shares, seen.maps, declared, *known, before)
            fit = merged_centres(merging, gate, (public("fit"), public("spectrum")), progress.tick)
            score = rank_scores(np.concatenate(seen.shares), seen.domain, seen.specials).score
            numbers = NumberCells(seen.domain, seen.cells, score, self.boxes, fit.triples)
            kept = Measurements(rows.n, (joined(one_way.found), *one_way.groups.values(), *fit.found))
            progress.next()
            if not self.certificate:
                return Fitted(fit.cloud, None, fit.spectrum, kept, numbers)
            degrees, farthest = tables.farthest(fit.cloud)
            yardstick = tables.misplaced(fit.cloud)
            if seen.cells:  # its twin for numbers, the largest of the two
                worst = farthest_numbers(counts, seen.cells, fit.cloud, seen.domain)
                yardstick = replace(yardstick, exact=Exact.of(max, yardstick.exact, worst), numbers=True)
            found = certify(degrees, farthest, rows.n, gate, True, yardstick)
            return Fitted(fit.cloud, found, fit.spectrum, kept, numbers)

    def look(
        self, measured: OneWay, totals: Sequence[float], mass: float, pure: bool, public: np.random.Generator
    ) -> Looks:
        """From noisy one-way counts to cells, and bins of a mass: post-processing. `totals` are what counts sum to."""
        most = most_bins(self.plan.declared)
        cells: dict[int, Cells] = {}
        shares, maps = [], []
        for j, (a, n) in enumerate(zip(self.attributes, totals, strict=True)):
            if isinstance(a, Category):
                values, sd = measured.found[j].values, float(measured.found[j].sd)
                classes, cut = self.boxes.signature(j, a.size), 3 * sd / n
                if a.groups:
                    of, coarse = np.array(a.groups), measured.groups[j]
                    p = grouped_histogram((values, sd), (coarse.values, float(coarse.sd)), of, n, public) / n
                    maps.append(grouped_bins(p, of, cut, most, classes))
                else:
                    expected = None if self.prior is None else self.prior.shares(j, a.size)
                    p = denoise_histogram(values, sd, n, a.ordered, public, expected) / n
                    maps.append(category_bins(p, a.ordered, mass, cut, most, classes))
            else:
                cuts = self.boxes.cuts(j)
                cells[j] = make_cells(tree_measure(measured.trees[j], pure, public), cuts)
                p = cells[j].share
                maps.append(cell_bins(cells[j], mass, cuts))
            shares.append(p)
        domain = Domain(tuple(len(p) for p in shares), self.plan.declared.ordered)
        numbers = grids(self.attributes)
        specials = np.array([numbers[j].specials if j in numbers else 0 for j in range(len(shares))])
        return Looks(domain, cells, shares, maps, specials)


@dataclass(frozen=True)
class Looks:
    """What one-way measurements say: cells of numbers, shares and bins of all categories and cells."""

    domain: Domain
    cells: dict[int, Cells]
    shares: list[Floats]
    maps: list[Integers]
    specials: Integers

    def zeros(self, boxes: Boxes) -> Zeros | None:
        """What cannot occur, over categories and cells."""
        return on_cells(boxes, self.domain, self.cells) if boxes else None
