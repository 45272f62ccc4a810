"""`regain` for tables of categories and numbers: one-way measures, pair tables of bins, centres, values again.

Rows are codes: of a category its number, of a number its place on the public grid (`core.numbers.grid`). Numbers are looked at
one by one first, each with a tree that grows where its noisy counts are, and cut into cells of about equal mass: from then on
they are categories. Categories and cells are merged into bins as the noisy one-way tables suggest, pairs of bins are measured,
and centres over bins are taken apart again. Without numbers nothing is left of trees, cells and ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from covey._core.arrays import Array, Floats, Integers, blas_threads
from covey._core.fit import spectrum
from covey._core.fit.centres import Goal, fit_category_centres
from covey._core.fit.shrinkage import denoise_histogram, grouped_bins, grouped_histogram
from covey._core.fit.spectrum import Denoisers, NormalTables, Sharpened
from covey._core.noise.pairlaw import PairLaw
from covey._core.numbers.grid import Attribute, Category, Cells, category_bins, cell_bins, grids, make_cells
from covey._core.numbers.tree import tree_measure
from covey._core.paper.blocks import WeightedPoints
from covey._core.tables.domain import Domain, pair_matrix, unmerge
from covey._core.tables.events import Histories
from covey._core.tables.zeros import NO_BOXES, Boxes
from covey._methods.laws import CodeLaw
from covey._methods.model import Asking, Fitted, Setting, paid_by
from covey._methods.regain import measure_tables
from covey._methods.regain.important import (
    NOTHING,
    Binned,
    Important,
    averaged,
    find_triples,
    measure_important,
    restored,
)
from covey._methods.regain.measure_tables import OneWay, OneWayCounts, Tables
from covey._methods.regain.plan_tables import TOGETHER, TablePlan, fit_steps, most_bins, pair_law
from covey.measure.measurement import NOTHING as UNMEASURED
from covey.measure.measurement import Measurement, Measurements, joined_by_law
from covey.measure.query import Factor, to_bins
from covey.privacy.budget import Budget
from covey.privacy.gate import WHOLE
from covey.table.codec import Codec
from covey.table.zeros import structural_zeros

CENTRES = 300  # more gave nothing on the tables of docs/benchmarks


# Public information of the same kind: rows that were released before under the same schema, beside this year's measurements. They
# cost nothing, because whoever made them has paid for them. They are no measurement either: people change. So they enter as one
# more candidate wherever noisy tables are denoised, and the candidates' weights come from this year's noisy tables alone: what
# was true last year and is not true now stands out of the noise and is given up, table by table.


@dataclass(frozen=True)
class Prior:
    """Rows of codes that are public, and the fingerprint of the bundle that they come from.

    Of persons with events there is a row for each event, with the codes of its person: together a person weighs 1. Who has none
    has a row with codes of −1 in place of an event's.
    """

    codes: Array
    digest: str
    weights: Floats | None = None

    @classmethod
    def of_persons(cls, linked: Histories, digest: str) -> Prior:
        """Of public persons with their events."""
        none = np.flatnonzero(linked.counts == 0)
        rows = np.concatenate([linked.owner, none])
        events = np.concatenate([linked.events, np.full((len(none), linked.events.shape[1]), -1)])
        weights = 1 / np.maximum(linked.counts, 1)[rows]
        return cls(np.column_stack([linked.persons[rows], events]), digest, weights)

    def shares(self, attribute: int, size: int) -> Floats:
        """Shares of the codes of an attribute."""
        codes = self.codes[:, attribute].astype(np.int64)
        if self.weights is None:
            return np.asarray(np.bincount(codes, minlength=size) / len(codes))
        there = codes >= 0
        counts = np.bincount(codes[there], self.weights[there], minlength=size)
        return np.asarray(counts / counts.sum())


def prior_covariances(cells: Array, maps: list[Integers], merged: Domain) -> Floats:
    """Covariances of all pairs of bins among public rows, given by their categories and cells."""
    bins = np.stack([m[cells[:, a].astype(np.int64)] for a, m in enumerate(maps)], axis=1)
    joint = pair_matrix(bins, merged.sizes) / len(bins)
    shares = joint.diagonal()
    return merged.off_blocks(joint - np.outer(shares, shares))


@dataclass(frozen=True)
class RegainTables:
    """`regain` for rows of codes of categories and numbers."""

    certificate: Fraction
    attributes: tuple[Attribute, ...]
    boxes: Boxes = NO_BOXES
    important: Important = NOTHING
    prior: Prior | None = None

    @classmethod
    def of(cls, codec: Codec, certificate: Fraction, pure: bool) -> RegainTables:
        """The method for tables of a codec: its attributes, what its rules exclude, and what its schema says matters most."""
        important = Important.of(codec.important, len(codec.names), pure, codec.target, codec.schema.triples_wanted)
        important = replace(important, unasked=codec.schema.triples is None)
        return cls(certificate, codec.kinds, structural_zeros(codec), important)

    @cached_property
    def plan(self) -> TablePlan:
        """The public formulas."""
        return TablePlan(self.attributes, self.important, looks=self.prior is None)

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Pair tables of categories, or counts of codes, as far as there is room; numbers that are counted later."""
        return (measure_tables.first_kernel(self.attributes), *measure_tables.late_kernel(self.attributes))

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """One-way measures, pairs, ranks, certificate."""
        return {**self.plan.shares(n, budget, 1 - self.certificate), "certificate": self.certificate}

    def ask(self, told: Setting) -> Asking[Fitted]:
        """Private centres over cells, and what the cells are."""
        with blas_threads(1):
            whole = self._whole(told)
            if whole is None or not told.has(TOGETHER):
                return (yield from self._fitted(told, whole))
            own, known = told.allowance(TOGETHER), None
            first = self.plan.one_way_part(told.n, own)
            if told.has("look"):
                seen, sd = yield from measure_tables.measure_dependence(whole)
                # Pairs are measured if they stand out of the look's noise: most tables are less tied than those that pay.
                first = first if seen - sd > self.plan.needed(told.n, own) else WHOLE
            else:
                known = yield from measure_tables.measure_jointly(whole, *self.plan.joint_law(told.n, own), TOGETHER)
            parts = {"histograms": first, "pairs": 1 - first}
            paid = {name: part * told.planned[TOGETHER] for name, part in parts.items()}
            inner = replace(told, planned={**told.planned, **paid})
            return (yield from paid_by(TOGETHER, parts, self._fitted(inner, whole, known)))

    def _fitted(self, told: Setting, whole: Tables | None, known: OneWay | None = None) -> Asking[Fitted]:
        """As planned, or as a look has decided; `known` is what was measured in one draw."""
        counts = OneWayCounts.of(told.n, self.attributes) if whole is None else whole.counts
        one_way = (yield from measure_tables.measure_one_way(counts, self.plan, told)) if known is None else known
        if told.secret:
            told = told.refined(*zip(*one_way.sizes, strict=True))
            one_way, whole = one_way.of(told.n), self._whole(told)
            counts = OneWayCounts.of(told.n, self.attributes) if whole is None else whole.counts
        mass, totals = self.plan.bin_mass(told.n, told.allowance("pairs")), [float(told.n)] * len(self.attributes)
        generator = told.public("fit")
        own = told.public("numbers") if whole is None else generator  # categories alone need no stream of their own
        seen = self.look(one_way, totals, mass, told.pure, own)
        if known is not None:
            seen = replace(seen, maps=[np.arange(size) for size in seen.domain.sizes])
        tables = Tables(told, seen.domain, seen.cell_factors) if whole is None else whole
        return (yield from self._centres(tables, counts, seen, told, generator))

    def _whole(self, told: Setting) -> Tables | None:
        """Pair tables in one pass, where there are no numbers."""
        return None if grids(self.attributes) else Tables(told, self.plan.declared)

    def look(
        self, measured: OneWay, totals: Sequence[float], mass: float, pure: bool, public: np.random.Generator
    ) -> OneWayModel:
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
        return OneWayModel(domain, cells, shares, maps, specials, measured)

    def _centres(
        self, tables: Tables, counts: OneWayCounts, seen: OneWayModel, told: Setting, generator: np.random.Generator
    ) -> Asking[Fitted]:
        """Centres over categories and cells from noisy pair tables of bins; spends "pairs", and what else is planned of these.

        The fit aims at denoised covariances, over finer bins where attributes are strongly tied, and at ranks.
        """
        n, maps, budget, tick = told.n, seen.maps, told.allowance("pairs"), told.tick
        merged, shares = seen.bins, seen.bin_shares
        if seen.measured.pairs is None:
            law = pair_law(merged, budget, tables.steps)
            counted = yield from measure_tables.measure_pairs(tables, maps, law)
            counted = replace(counted, purpose=TOGETHER) if told.has("look") else counted
        else:
            law, counted = seen.measured.pairs
        pairs, sd = counted.values / n if counted.kept else np.zeros((merged.total, merged.total)), law.sd / n
        extra, important = None, self.important.starred(len(maps)) if told.has("important") else self.important
        if told.has("important") and important.live(merged.sizes):
            extra = yield from measure_important(tables, maps, important, merged, told)
            pairs = averaged(pairs, sd, extra, merged)
        mean = shares - np.repeat(1 / merged.counts, merged.counts)
        centred = merged.off_blocks(pairs - np.outer(mean, mean))  # noisy covariances
        eigenvalues, shown = None, told.public("spectrum")
        if law.family != UNMEASURED:  # beside eigenvalues of simulated noise of the same law
            eigenvalues = spectrum.noisy_spectrum(centred, law.simulate(shown) / n)
        tick(0.2)
        covariances, normal = self._denoised(centred, law, n, seen, generator)
        if extra is not None:
            covariances = restored(covariances, centred, sd, extra, merged)
        sharp, ranks = Sharpened(merged, shares, covariances, maps), None
        if normal is not None:
            first = spectrum.rank_scores(shares, merged, seen.specials)
            known = told.has("ranks") and len(first.attributes) > 1
            if known:
                sums = yield from measure_tables.measure_ranks(tables, maps, first, told)
                own = sums.values, float(sums.sd), n
                sharp = replace(sharp, covariances=spectrum.restore_ranks(covariances, centred, sd, first, own, shares))
            sharp = spectrum.sharpened(sharp, (normal, normal.best(centred, sd)), seen.shares, seen.specials) or sharp
            ranks = spectrum.rank_scores(sharp.shares, sharp.domain, seen.specials) if known else None
        tick(0.4)
        steps = fit_steps(n, self.plan.declared, budget, sharp.domain.total)
        fine = self.boxes.on(seen.domain, [edges[:-1] for edges in seen.edges]) if self.boxes else None
        zeros = fine.gathered(sharp.maps, sharp.domain) if fine else None
        closely = extra is not None or self.important.target is not None
        emphasis = important.weights(len(merged.sizes)) if closely else None
        goal = Goal(sharp.shares, sharp.covariances, sharp.domain, ranks, zeros, emphasis)
        last = 0.7 if told.has("triples") else 1.0
        found = fit_category_centres(goal, CENTRES, steps, generator, lambda t: tick(0.4 + (last - 0.4) * t))
        three, chosen = None, tuple[Measurement, ...]()
        if told.has("triples"):
            bins, laws = tables.factors(sharp.maps), np.split(sharp.shares, sharp.domain.starts[1:-1])
            looked_at = Binned(tuple(bins.values()), laws, sharp.domain.ordered, found)
            affordable = self.important.affordable(n, len(maps), told.allowance("triples"))
            three, chosen = yield from find_triples(looked_at, self.important.target, affordable, told)
        if three is not None:
            goal = replace(goal, triples=three)
            found = fit_category_centres(goal, CENTRES, steps // 2, generator, lambda t: tick(0.7 + 0.3 * t), found)
        points = unmerge(found.points, found.weights, seen.shares, sharp.maps, sharp.domain)
        triples = None if three is None else three.of(sharp.maps)
        cloud = WeightedPoints(found.weights, points)
        fitted = CodeLaw(cloud, seen.domain, seen.cells, seen.scores, self.boxes, triples, counted=(tables, counts))
        every = (*joined_by_law(seen.measured.found), *seen.measured.groups.values(), counted, extra, *chosen)
        kept = Measurements(n, tuple(m for m in every if m is not None))
        return Fitted(fitted, kept, eigenvalues, size=(told.n, told.size_sd) if told.secret else None)

    def _denoised(
        self, centred: Floats, law: PairLaw, n: int, seen: OneWayModel, generator: np.random.Generator
    ) -> tuple[Floats, NormalTables | None]:
        """Noisy covariances with less noise, and where there are numbers, how those of normal columns would be."""
        if law.family == UNMEASURED:
            return np.zeros_like(centred), None
        normal = NormalTables(seen.bin_shares, seen.bins, seen.specials) if seen.cells else None
        expected = None
        if self.prior is not None:
            expected = prior_covariances(to_bins(seen.cell_factors, self.prior.codes), seen.maps, seen.bins)
        denoisers = Denoisers(seen.bin_shares, seen.bins, generator, expected, normal)
        return denoisers.combined(centred, lambda: law.simulate(generator) / n, law.sd / n), normal


@dataclass(frozen=True)
class OneWayModel:
    """What one-way measurements say: cells of numbers, shares and bins of all categories and cells."""

    domain: Domain
    cells: dict[int, Cells]
    shares: list[Floats]
    maps: list[Integers]
    specials: Integers  # how many categories of each attribute, its first ones, have no rank
    measured: OneWay

    @property
    def edges(self) -> list[Integers]:
        """The codes at which cells begin, and the end, of every attribute; a category's cells are its codes."""
        return [self.cells[j].edges if j in self.cells else np.arange(c + 1) for j, c in enumerate(self.domain.sizes)]

    @cached_property
    def bins(self) -> Domain:
        """How many bins attributes have."""
        return Domain(tuple(int(m.max()) + 1 for m in self.maps), self.domain.ordered)

    @cached_property
    def bin_shares(self) -> Floats:
        """Shares of the bins of all attributes."""
        bins = zip(self.maps, self.shares, self.bins.sizes, strict=True)
        return np.concatenate([np.bincount(to, p, minlength=size) for to, p, size in bins])

    @property
    def factors(self) -> list[Factor]:
        """How attributes are looked at in pairs."""
        return [Factor(edges, to) for edges, to in zip(self.edges, self.maps, strict=True)]

    @property
    def cell_factors(self) -> tuple[Factor | None, ...]:
        """From codes to cells."""
        own = {j: Factor(cells.edges, np.arange(len(cells.edges) - 1)) for j, cells in self.cells.items()}
        return tuple(own.get(j) for j in range(len(self.maps)))

    @property
    def scores(self) -> Floats | None:
        """Ranks that swaps between rows keep; None where no two attributes have any, or none is a number.

        Pairs of ordered categories hold nearly all of their ranks: swaps that keep these as well made them worse.
        """
        found = spectrum.rank_scores(np.concatenate(self.shares), self.domain, self.specials)
        return found.score if self.cells and len(found.attributes) > 1 else None
