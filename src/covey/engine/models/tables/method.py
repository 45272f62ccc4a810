"""`regain` for tables of categories and numbers: the default method.

    one-way tables → cells and bins → pair tables of bins → denoised covariances → centres over bins → centres over cells

Rows are codes: of a category its number, of a number its place on a public grid (`covey.engine.numbers.grid`). One-way tables are
measured first. They say how numbers are cut into cells and which cells share a bin (`discretize`); a category is a cell. Pair
tables of bins are measured next, and denoised. Centres, weighted products of one-way laws, are then fitted to one-way shares and
covariances, as post-processing: so nothing is lost by grouping records (docs/method.md).

The public plan (`plan_tables`) says what is measured and what each measurement costs; `measure_tables` measures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from covey.engine.arrays import Array, Floats, blas_threads
from covey.engine.budget import Budget
from covey.engine.codes.domain import unmerge
from covey.engine.codes.zeros import NO_BOXES, Boxes, Zeros
from covey.engine.fit import spectrum
from covey.engine.fit.centres import Goal, Triples, fit_category_centres
from covey.engine.fit.spectrum import BinnedPairs, Denoisers, NormalTables, RankScores, RankSums, Spectrum
from covey.engine.gate import WHOLE
from covey.engine.measurement import Measurement, Measurements, joined_by_law
from covey.engine.model import Asking, DividedCharge, Fitted, Setting, SizeEstimate
from covey.engine.models.laws import CodeLaw
from covey.engine.models.tables.discretize import Discretization, Discretizer
from covey.engine.models.tables.important import (
    NOTHING,
    Important,
    average_pairs,
    measure_important,
    restore_pairs,
)
from covey.engine.models.tables.measure_tables import (
    ONE_WAY_AND_PAIRS,
    JointMeasurements,
    MeasuredPairs,
    OneWayMeasurements,
    measure_dependence,
    measure_jointly,
    measure_one_way,
    measure_pairs,
    measure_ranks,
)
from covey.engine.models.tables.plan_tables import TablePlan, fit_steps, pair_law
from covey.engine.models.tables.prior import Prior
from covey.engine.models.tables.table_counts import OneWayCounts, RecordTables, TableCounts, first_pass_kernels
from covey.engine.models.tables.triples import Binned, find_triples
from covey.engine.noise.law import UNMEASURED
from covey.engine.noise.pairlaw import PairLaw
from covey.engine.numbers.grid import Attribute, grids
from covey.engine.points import WeightedPoints

CENTRES = 300  # more gave nothing on the tables of docs/benchmarks
# How far a fit has come, after each phase.
PAIRS_MEASURED = 0.2
PAIRS_DENOISED = 0.4
CENTRES_FITTED = 0.7  # where triples follow, else 1


@dataclass(frozen=True)
class RegainTables:
    """The method for rows of codes of categories and numbers.

    Attributes:
        certificate: the share of the budget that buys the certificate.
        attributes: public; categories and numbers.
        boxes: combinations of codes that cannot occur.
        important: what its owner said matters most.
        prior: public rows of the same kind, if there are any.
    """

    certificate: Fraction
    attributes: tuple[Attribute, ...]
    boxes: Boxes = NO_BOXES
    important: Important = NOTHING
    prior: Prior | None = None

    @cached_property
    def plan(self) -> TablePlan:
        """The public formulas."""
        return TablePlan(self.attributes, self.important, may_skip_pairs=self.prior is None)

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """What is added up while the table is read first."""
        return first_pass_kernels(self.attributes)

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """Share of the budget for each charge, from public numbers."""
        return {**self.plan.shares(n, budget, 1 - self.certificate), "certificate": self.certificate}

    def ask(self, setting: Setting) -> Asking[Fitted]:
        """Measure, and fit a law of rows.

        Args:
            setting: the number of rows, the budget and what each charge may spend: public.

        Returns:
            centres over cells, the measurements they were fitted to, and the noisy spectrum of the covariances.
        """
        with blas_threads(1):
            if setting.has("look"):
                return (yield from self._fit_after_dependence_test(setting))
            if setting.has(ONE_WAY_AND_PAIRS):
                return (yield from self._fit_after_joint_draw(setting))
            return (yield from self._fit(setting))

    def _fit_after_dependence_test(self, setting: Setting) -> Asking[Fitted]:
        """As `_fit`; a private test decides whether pairs get a part of the charge for one-way tables.

        Costs "look", and `ONE_WAY_AND_PAIRS` whatever the test says.
        """
        budget = setting.allowance(ONE_WAY_AND_PAIRS)
        test = yield from measure_dependence(TableCounts(setting, self.plan.domain))
        if test.exceeds(self.plan.required_dependence(setting.n, budget)):
            one_way_share = self.plan.one_way_share(setting.n, budget)
        else:
            one_way_share = WHOLE
        charge = _one_way_and_pairs(one_way_share)
        return (yield from charge.pay(self._fit(charge.divide(setting))))

    def _fit_after_joint_draw(self, setting: Setting) -> Asking[Fitted]:
        """As `_fit`, with one-way and pair tables from one draw of noise. Costs `ONE_WAY_AND_PAIRS`."""
        budget = setting.allowance(ONE_WAY_AND_PAIRS)
        tables = TableCounts(setting, self.plan.domain)
        joint = yield from measure_jointly(tables, self.plan.joint_draw(setting.n, budget))
        charge = _one_way_and_pairs(self.plan.one_way_share(setting.n, budget))
        return (yield from self._fit(charge.divide(setting), joint))

    def _fit(self, setting: Setting, joint: JointMeasurements | None = None) -> Asking[Fitted]:
        """From measurements to a law, phase by phase; `joint` is what one draw of noise has measured already."""
        one_way = joint.one_way if joint else (yield from self._measure_one_way(setting))
        if setting.size_is_secret:
            setting = setting.refined(one_way.size_estimates)
            one_way = one_way.rescaled(setting.n)
        public = setting.public("fit")
        discretization = self._discretize(one_way, setting, public)
        if joint:
            discretization = discretization.unmerged()
        fit = TableFit(self, setting, discretization, public)
        pairs = yield from fit.measure_pairs(joint)
        target = fit.denoise(pairs)
        target = yield from fit.restore_ranks(target, pairs)
        target = fit.sharpen(target, pairs)
        centres = fit.fit_centres(target, pairs)
        centres = yield from fit.refine_by_triples(centres, target)
        return fit.fitted(pairs, target, centres)

    def _measure_one_way(self, setting: Setting) -> Asking[OneWayMeasurements]:
        """Noisy one-way tables of codes. Costs "histograms"."""
        if grids(self.attributes):
            counts = OneWayCounts.of(setting.n, self.attributes)
        else:
            counts = TableCounts(setting, self.plan.domain).one_way_counts  # the pass that counts pairs counts these
        return (yield from measure_one_way(counts, self.plan, setting))

    def _discretize(self, one_way: OneWayMeasurements, setting: Setting, public: np.random.Generator) -> Discretization:
        """Cells and bins from noisy one-way tables. Post-processing."""
        bin_mass = self.plan.bin_mass(setting.n, setting.allowance("pairs"))
        discretizer = Discretizer(self.attributes, bin_mass, setting.pure, self.boxes, self.prior)
        totals = [float(setting.n)] * len(self.attributes)
        if grids(self.attributes):
            public = setting.public("numbers")  # numbers have a stream of their own
        return discretizer.discretize(one_way, totals, public)


def _one_way_and_pairs(one_way_share: Fraction) -> DividedCharge:
    """The charge that one-way tables and pairs have together, and the parts they get of it."""
    return DividedCharge(ONE_WAY_AND_PAIRS, {"histograms": one_way_share, "pairs": 1 - one_way_share})


@dataclass(frozen=True)
class NoisyPairs:
    """Pair tables of bins as they were measured.

    Attributes:
        law: of the noise on all pairs.
        all_pairs: the measurement of all pairs; it has no values where pairs are left out.
        important: the second measurement, of important pairs alone, if there is one.
        covariances: shares of pairs less products of their one-way shares, with noise; two measurements are averaged.
        sd: the deviation of the noise on all pairs, as a share.
        spectrum: leading eigenvalues of the covariances beside those of noise alone; None where pairs are left out.
    """

    law: PairLaw
    all_pairs: Measurement
    important: Measurement | None
    covariances: Floats
    sd: float
    spectrum: Spectrum | None

    @property
    def measured(self) -> bool:
        """Whether all pairs were measured."""
        return self.law.family is not UNMEASURED

    @property
    def measurements(self) -> tuple[Measurement, ...]:
        """All pairs, and important ones if they were measured again."""
        if self.important is None:
            return (self.all_pairs,)
        return (self.all_pairs, self.important)


@dataclass(frozen=True)
class Target(BinnedPairs):
    """What centres are fitted to: shares and covariances over bins, and rank covariances where these were measured."""

    ranks: RankScores | None = None


@dataclass(frozen=True)
class FittedCentres:
    """Centres over bins, and how they were fitted.

    Attributes:
        cloud: the centres, each a product of one-way laws, and their weights.
        goal: what they were fitted to.
        steps: of the fit.
        triples: the triples that were measured because earlier centres missed them.
    """

    cloud: WeightedPoints
    goal: Goal
    steps: int
    triples: tuple[Measurement, ...] = ()

    def triples_over_cells(self, target: Target) -> Triples | None:
        """The triples that centres were fitted to, with levels of cells in place of bins."""
        if self.goal.triples is None:
            return None
        return self.goal.triples.of(target.bin_of)


@dataclass(frozen=True)
class TableFit:
    """One fit, from the moment that its one-way tables are measured: what later phases have in common.

    Attributes:
        method: what is fitted.
        setting: public; with the best noisy n where n is secret.
        discretization: cells and bins.
        public: the stream of this fit's post-processing.
    """

    method: RegainTables
    setting: Setting
    discretization: Discretization
    public: np.random.Generator

    @cached_property
    def tables(self) -> TableCounts:
        """Exact tables of cells, described."""
        return TableCounts(self.setting, self.discretization.cell_domain, self.discretization.cell_factors)

    # Pairs.

    def measure_pairs(self, joint: JointMeasurements | None) -> Asking[NoisyPairs]:
        """Noisy covariances of all pairs of bins. Costs "pairs" if no joint draw has paid, and "important" where planned."""
        pairs = joint.pairs if joint else (yield from self._measure_all_pairs())
        important = yield from self._measure_important_pairs()
        covariances = self._noisy_covariances(pairs, important)
        self.setting.tick(PAIRS_MEASURED)
        return NoisyPairs(
            law=pairs.law,
            all_pairs=pairs.measurement,
            important=important,
            covariances=covariances,
            sd=pairs.law.sd / self.setting.n,
            spectrum=self._spectrum(covariances, pairs.law),
        )

    def _measure_all_pairs(self) -> Asking[MeasuredPairs]:
        """All pair tables of bins. Costs "pairs"."""
        law = pair_law(self.discretization.bin_domain, self.setting.allowance("pairs"), self.setting.steps)
        measurement = yield from measure_pairs(self.tables, self.discretization.bin_of, law)
        if self.setting.has(ONE_WAY_AND_PAIRS):  # it has paid, or would have
            measurement = replace(measurement, purpose=ONE_WAY_AND_PAIRS)
        return MeasuredPairs(law, measurement)

    def _measure_important_pairs(self) -> Asking[Measurement | None]:
        """Important pairs a second time, where that is planned. Costs "important"."""
        bins = self.discretization.bin_domain
        important = self._important
        if not self.setting.has("important") or not important.varying_pairs(bins.sizes):
            return None
        bin_of = self.discretization.bin_of
        return (yield from measure_important(self.tables, bin_of, important, bins, self.setting.pure))

    @property
    def _important(self) -> Important:
        """What matters most; with all pairs of a target where a charge measures these again."""
        important = self.method.important
        if self.setting.has("important"):
            return important.with_target_pairs(len(self.method.attributes))
        return important

    def _noisy_covariances(self, measured: MeasuredPairs, important: Measurement | None) -> Floats:
        """Pair tables as shares, moved from even shares, at which they were centred, to the measured ones."""
        bins = self.discretization.bin_domain
        pairs = measured.shares(self.setting.n)
        if important is not None:
            pairs = average_pairs(pairs, measured.law.sd / self.setting.n, important, bins)
        even = np.repeat(1 / bins.counts, bins.counts)
        uneven = self.discretization.bin_shares - even
        return bins.off_blocks(pairs - np.outer(uneven, uneven))

    def _spectrum(self, covariances: Floats, law: PairLaw) -> Spectrum | None:
        """Eigenvalues beside those of simulated noise of the same law, for the report."""
        if law.family == UNMEASURED:
            return None
        noise = law.simulate(self.setting.public("spectrum"))
        return spectrum.noisy_spectrum(covariances, noise / self.setting.n)

    # Denoising: post-processing, but for ranks.

    def denoise(self, pairs: NoisyPairs) -> Target:
        """Covariances with less noise; of important pairs what denoising lost is put back, as far as it is no noise."""
        bins = self.discretization.bin_domain
        shares = self.discretization.bin_shares
        covariances = np.zeros_like(pairs.covariances)
        if pairs.measured:
            denoisers = Denoisers(shares, bins, self.public, self._prior_covariances, self._normal_tables)
            covariances = denoisers.combined(pairs.covariances, lambda: self._simulated(pairs.law), pairs.sd)
        if pairs.important is not None:
            covariances = restore_pairs(covariances, pairs.covariances, pairs.sd, pairs.important, bins)
        return Target(bins, shares, covariances, self.discretization.bin_of)

    def _simulated(self, law: PairLaw) -> Floats:
        """Noise like that on the pairs, as shares."""
        return law.simulate(self.public) / self.setting.n

    @property
    def _prior_covariances(self) -> Floats | None:
        """What public rows say that covariances are, if there are any."""
        if self.method.prior is None:
            return None
        return self.method.prior.covariances(self.discretization)

    @cached_property
    def _normal_tables(self) -> NormalTables | None:
        """Pair tables of two normal variables, for ordered attributes; None where no attribute is a number."""
        discretization = self.discretization
        if not discretization.number_cells:
            return None
        return NormalTables(discretization.bin_shares, discretization.bin_domain, discretization.special_cells)

    def restore_ranks(self, target: Target, pairs: NoisyPairs) -> Asking[Target]:
        """Rank covariances of numbers, measured by themselves, put back where denoising lost them. Costs "ranks"."""
        if not pairs.measured or self._normal_tables is None or not self.setting.has("ranks"):
            return target
        scores = self._rank_scores(target)
        if len(scores.attributes) < 2:
            return target
        noisy = yield from measure_ranks(self.tables, target.bin_of, scores, self.setting.pure)
        sums = RankSums(noisy.values, float(noisy.sd), self.setting.n)
        covariances = spectrum.restore_ranks(
            target.covariances, pairs.covariances, pairs.sd, scores, sums, target.shares
        )
        return replace(target, covariances=covariances, ranks=scores)

    def sharpen(self, target: Target, pairs: NoisyPairs) -> Target:
        """Finer bins for numbers that are strongly tied, whose pair tables follow a normal law."""
        self.setting.tick(PAIRS_DENOISED)
        normal = self._normal_tables
        if not pairs.measured or normal is None:
            return target
        correlations = normal.best(pairs.covariances, pairs.sd)
        cell_shares = self.discretization.cell_shares
        special_cells = self.discretization.special_cells
        finer = spectrum.sharpened(target, normal, correlations, cell_shares, special_cells)
        if finer is None:
            return target
        ranks = None if target.ranks is None else self._rank_scores(finer)
        return Target(finer.domain, finer.shares, finer.covariances, finer.bin_of, ranks)

    def _rank_scores(self, pairs: BinnedPairs) -> RankScores:
        """Ranks of bins, for ordered attributes."""
        return spectrum.rank_scores(pairs.shares, pairs.domain, self.discretization.special_cells)

    # Centres.

    def fit_centres(self, target: Target, pairs: NoisyPairs) -> FittedCentres:
        """Weighted products of one-way laws over bins, whose shares and covariances are the target's. Post-processing."""
        goal = Goal(
            shares=target.shares,
            covariances=target.covariances,
            domain=target.domain,
            ranks=target.ranks,
            zeros=self._zeros(target),
            emphasis=self._emphasis(pairs),
        )
        budget = self.setting.allowance("pairs")
        steps = fit_steps(self.setting.n, self.method.plan.domain, budget, target.domain.total)
        end = CENTRES_FITTED if self.setting.has("triples") else 1.0
        cloud = fit_category_centres(goal, CENTRES, steps, self.public, self._progress(PAIRS_DENOISED, end))
        return FittedCentres(cloud, goal, steps)

    def _progress(self, start: float, end: float) -> Callable[[float], None]:
        """What hears how far a phase has come, between two points of the whole fit."""

        def tick(part: float) -> None:
            self.setting.tick(start + (end - start) * part)

        return tick

    def _zeros(self, target: Target) -> Zeros | None:
        """Combinations of bins that cannot occur."""
        if not self.method.boxes:
            return None
        first_codes = [edges[:-1] for edges in self.discretization.cell_edges]
        zeros = self.method.boxes.on(self.discretization.cell_domain, first_codes)
        return zeros.gathered(target.bin_of, target.domain)

    def _emphasis(self, pairs: NoisyPairs) -> Floats | None:
        """How closely each pair is followed; None where all are alike."""
        if pairs.important is None and self.method.important.target is None:
            return None
        return self._important.weights(len(self.method.attributes))

    def refine_by_triples(self, centres: FittedCentres, target: Target) -> Asking[FittedCentres]:
        """Centres that follow the triples which they missed most, too. Costs "choosing triples" and "triples", if planned."""
        if not self.setting.has("triples"):
            return centres
        important = self.method.important
        q = len(self.method.attributes)
        affordable = important.affordable(self.setting.n, q, self.setting.allowance("triples"))
        binned = self._binned(centres.cloud, target)
        triples = yield from find_triples(binned, important.target, affordable, self.setting)
        if triples.goal is None:
            return replace(centres, triples=triples.measurements)
        goal = replace(centres.goal, triples=triples.goal)
        steps = centres.steps // 2
        progress = self._progress(CENTRES_FITTED, 1.0)
        cloud = fit_category_centres(goal, CENTRES, steps, self.public, progress, start=centres.cloud)
        return FittedCentres(cloud, goal, steps, triples.measurements)

    def _binned(self, cloud: WeightedPoints, target: Target) -> Binned:
        """Bins, their shares, and what centres say of them: what triples are looked for in."""
        factors = tuple(self.tables.factors(target.bin_of).values())
        shares = np.split(target.shares, target.domain.starts[1:-1])
        return Binned(factors, shares, target.domain.ordered, cloud)

    # The result.

    def fitted(self, pairs: NoisyPairs, target: Target, centres: FittedCentres) -> Fitted:
        """Centres over cells, and all that was measured."""
        fitted = Fitted(self._law(target, centres), self._measurements(pairs, centres), pairs.spectrum)
        if self.setting.size_is_secret:
            fitted = replace(fitted, size=SizeEstimate(self.setting.n, self.setting.size_sd))
        return fitted

    def _law(self, target: Target, centres: FittedCentres) -> CodeLaw:
        """Centres over cells: bins are taken apart as one-way shares say."""
        discretization = self.discretization
        weights = centres.cloud.weights
        points = unmerge(centres.cloud.points, weights, discretization.cell_shares, target.bin_of, target.domain)
        counts = OneWayCounts.of(self.setting.n, self.method.attributes)
        return CodeLaw(
            WeightedPoints(weights, points),
            domain=discretization.cell_domain,
            cells=discretization.number_cells,
            score=discretization.rank_scores,
            boxes=self.method.boxes,
            triples=centres.triples_over_cells(target),
            records=RecordTables(self.tables, counts),
        )

    def _measurements(self, pairs: NoisyPairs, centres: FittedCentres) -> Measurements:
        """Everything that was measured, in the order in which a release keeps it."""
        one_way = self.discretization.one_way
        histograms = [*joined_by_law(one_way.histograms), *one_way.group_histograms.values()]
        return Measurements(self.setting.n, (*histograms, *pairs.measurements, *centres.triples))
