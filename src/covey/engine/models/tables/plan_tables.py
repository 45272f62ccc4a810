"""The public plan for tables of categories and numbers: what is measured, with which noise, and what each charge may spend.

Every choice is a function of public numbers: the attributes, the number of rows n (or a noisy one), the budget. So a plan costs
nothing, and a prediction can show it before any data is opened. There are four designs:

- "pairs": one-way tables, then pair tables of bins, each with a charge of its own;
- "joint draw": one-way tables and pair tables of few categories share one draw of Gaussian noise;
- "dependence test": a private test of all pairs decides whether pair tables are measured (docs/benchmarks/small.md);
- "one-way": pair tables would be noise, and are left out.

On top of pairs come rank covariances of numbers, a second measurement of important pairs, and triples.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Literal

import numpy as np

from covey.engine.budget import Budget
from covey.engine.codes.domain import Domain
from covey.engine.model import CERTIFICATE_SHARE
from covey.engine.models.tables.important import IMPORTANT_SHARE, NOTHING, TARGET_SHARE, Important
from covey.engine.models.tables.measure_tables import ONE_WAY_AND_PAIRS, dependence_test_sensitivity, pair_sensitivity
from covey.engine.models.tables.plan_one_way import OneWayPlan, nominal_domain
from covey.engine.models.tables.triples import triple_shares
from covey.engine.noise.law import GAUSSIAN, LAPLACE, MATRIX, UNMEASURED
from covey.engine.noise.pairlaw import PairLaw
from covey.engine.noise.sensitivity import pair_table_sensitivity
from covey.engine.numbers.grid import Attribute, Category, grids

Design = Literal["pairs", "joint draw", "dependence test", "one-way"]
_PAIRS_ARE_MEASURED = "pairs of columns are measured"
DESIGN_WORDS: dict[Design, str] = {
    "pairs": _PAIRS_ARE_MEASURED,
    "joint draw": _PAIRS_ARE_MEASURED,
    "dependence test": "a look for a tenth of the budget or less decides whether pairs of columns are measured",
    "one-way": "pairs of columns are not measured, since they would be noise: columns are released as independent",
}

# Shares of the budget.

RANK_SHARE = Fraction(6, 100)  # for rank covariances, and at most a quarter of what pairs have
MOST_ONE_WAY = 0.4  # for one-way tables under K-norm noise, at most, where pairs are measured too
TEST_SHARE = Fraction(1, 10)  # for the dependence test, at most: chosen on telco and adult (docs/benchmarks/small.md)

# When pairs pay. Dependence is a mean total variation between pair tables and products of their margins: telco, adult and nltcs
# lie between 0.1 and 0.16.

NEARLY_EVERY_TABLE = 0.02  # nearly all tables depend more than this
MOST_TABLES = 0.05  # most tables do
NO_TABLE = 0.2  # no table does
# Errors of measured pairs over κ, the edge of their noise's spectrum over the trace of the coding: chosen on telco and adult.
ERROR_PER_EDGE = 1.2
# The test's noise, in parts of the dependence that it must detect, beyond which, as with few columns, "most tables" is enough.
TEST_IS_BLIND = 0.6
TEST_IS_CHANCE = (
    0.08  # deviation of the test's noise beyond which it would decide by chance: always, below TEST_COSTS_MORE
)
# n√(2ρ) from which on, under (ε, δ), a test costs more than it saves: on telco at 177, and at 129 where rows are added or removed
# (these count as more rows, as their noise is less), a fifth of the error.
TEST_COSTS_MORE = 110
# The dependence that pairs must reach, set on bank and telco by what trees learn (benchmarks/mixed.md). Below SHARP a target
# looks for triples unasked, beyond DIM its pairs get most of the pairs' budget, and between, with δ, two fifths, which gained
# nothing under pure ε.
SHARP = 0.007
DIM = 0.05

# How fine pair tables are.

PLANNED_BINS = 12  # of an attribute at most, as far as formulas guess before bins are known
MOST_JOINT_CATEGORIES = 5  # of attributes whose one-way and pair tables share one draw: none needs to be merged first
MOST_MERGED = 4000  # bins of all attributes, about: several matrices of their squares are held at once, 128 MB each
LEAST_BINS = 3  # of an attribute, whatever the memory: fewer would not tell a rise from a bend
# Mass of a number's bin, in parts of the mass that a bin of categories has.
PURE_BIN_MASS = 1.0
GAUSSIAN_BIN_MASS = 0.6


def pair_law(domain: Domain, budget: Budget, steps: int = 1) -> PairLaw:
    """The noise law for the pair tables of a domain: a function of public sizes alone.

    Gaussian under (ε, δ). Under pure ε Laplace on one-hot cells or matrix Laplace noise, whichever has the smaller standard
    deviation. Where no law can be drawn (ε below a billionth or so; for persons, counted in steps, below a thousandth) pairs are
    not measured at all: they would be noise alone.
    """
    unmeasured = PairLaw(UNMEASURED, domain, Fraction(0))
    varying = sum(size > 1 for size in domain.sizes)
    if varying < 2 or not budget.amount:
        return unmeasured
    sensitivity = pair_sensitivity(domain).under(budget)
    if budget.pure:
        laplace = PairLaw(LAPLACE, domain, LAPLACE.scale(budget, sensitivity), steps)
        matrix = PairLaw(MATRIX, domain, MATRIX.scale(budget, sensitivity), steps)
        laws = [laplace, matrix]
    else:
        laws = [PairLaw(GAUSSIAN, domain, GAUSSIAN.scale(budget, sensitivity), steps)]
    drawable = [law for law in laws if law.drawable]
    return min(drawable, key=lambda law: law.sd, default=unmeasured)


def planned_bins(domain: Domain) -> Domain:
    """A public guess at the bins that pair tables will have."""
    return Domain(tuple(min(size, PLANNED_BINS) for size in domain.sizes), domain.ordered)


def signal_to_noise(n: int, domain: Domain, budget: Budget) -> float:
    """n·Δ over the pair noise's standard deviation; under zCDP this is n√(2ρ)."""
    bins = planned_bins(domain)
    sd = pair_law(bins, budget).sd
    if sd <= 0:
        return float(n)
    moved = float(pair_sensitivity(bins).under(budget).l2_squared or 0)
    return float(n * moved**0.5 / sd)


def histogram_share(n: int, domain: Domain, budget: Budget) -> float:
    """Share of the budget for one-way tables with Laplace or Gaussian noise: a formula fitted to benchmarks.

    It rises with the number of categories, and falls as the budget grows.
    """
    if sum(size > 1 for size in domain.sizes) < 2:
        return 1.0
    sizes = domain.counts.astype(np.float64)
    pair_cells = (np.minimum(sizes, PLANNED_BINS) ** 1.5).mean()
    ratio = (0.7 * sizes.mean() / pair_cells) ** (2 / 3)
    by_size = ratio / (1 + ratio)
    by_budget = 0.2 * np.log10(signal_to_noise(n, domain, budget) / 8450)
    return float(np.clip(by_size - by_budget, 0.1, 0.8))


def most_bins(domain: Domain) -> int:
    """Bins per attribute, so that all attributes together stay below about 800."""
    return max(8, 800 // len(domain.sizes))


def fit_steps(n: int, domain: Domain, budget: Budget, merged: int) -> int:
    """Steps of the fit: more where the target is sharper, fewer where a step is dear (`merged` bins in all)."""
    steps = np.clip(800 * np.sqrt(signal_to_noise(n, domain, budget) / 8450), 800, 2500)
    return int(max(250, steps * min(1.0, (400 / merged) ** 2)))


@dataclass(frozen=True)
class JointDraw:
    """One draw of Gaussian noise for all one-way and pair tables."""

    law: PairLaw  # of the noise on pair tables
    weights: list[
        Fraction
    ]  # of the one-way tables: the variance on a count is that on a pair's cell, divided by its weight


@dataclass(frozen=True)
class TablePlan:
    """Public formulas of the attributes, the number of rows and the budget.

    Attributes:
        attributes: categories and numbers.
        important: what its owner said matters most.
        one_cell_per_unit: whether every unit falls into exactly one cell of each one-way table, so that its sum is public.
        may_skip_pairs: whether pairs that would be noise are left out; not where public rows tell of them as well.
    """

    attributes: tuple[Attribute, ...]
    important: Important = NOTHING
    one_cell_per_unit: bool = True
    may_skip_pairs: bool = True

    @cached_property
    def domain(self) -> Domain:
        """The attributes as formulas for categories see them."""
        return nominal_domain(self.attributes)

    @cached_property
    def one_way(self) -> OneWayPlan:
        """How the charge for one-way tables is shared among attributes."""
        return OneWayPlan(self.attributes, self.important.attributes, self.one_cell_per_unit)

    @property
    def _categories(self) -> list[Category]:
        return [attribute for attribute in self.attributes if isinstance(attribute, Category)]

    @property
    def _has_groups(self) -> bool:
        return any(category.groups for category in self._categories)

    @property
    def _varying(self) -> list[int]:
        """Sizes of the attributes that have more than one code."""
        return [size for size in self.domain.sizes if size > 1]

    # What is spent on what.

    def shares(self, n: int, budget: Budget, available: Fraction) -> Mapping[str, Fraction]:
        """Share of the budget for each charge; together they are `available`, what the certificate leaves."""
        remaining = budget.part(available)
        design = self.design(n, remaining)
        if design == "one-way":
            return {"histograms": available, "pairs": Fraction(0)}
        if design == "joint draw":
            return {ONE_WAY_AND_PAIRS: available}
        if design == "dependence test":
            test = self.dependence_test_share(n, remaining) * available
            return {"look": test, ONE_WAY_AND_PAIRS: available - test}
        shares = self._one_way_and_pairs(n, budget, available)
        shares |= self._remeasured_pairs(shares["pairs"], n, budget)
        shares |= self._triples(shares["pairs"], n, budget)
        return shares

    def expected_shares(self, n: int, budget: Budget, available: Fraction) -> Mapping[str, Fraction]:
        """As `shares`, with one-way tables and pairs apart, as they are if a test finds pairs worth it: for predictions."""
        shares = dict(self.shares(n, budget, available))
        if ONE_WAY_AND_PAIRS not in shares:
            return shares
        divided = shares.pop(ONE_WAY_AND_PAIRS)
        one_way = self.one_way_share(n, budget)
        return shares | {"histograms": one_way * divided, "pairs": (1 - one_way) * divided}

    def _one_way_and_pairs(self, n: int, budget: Budget, available: Fraction) -> dict[str, Fraction]:
        """One-way tables and trees, pairs, and rank covariances of numbers."""
        one_way_share = self.one_way_share(n, budget)
        one_way = one_way_share * available
        pairs = available - one_way
        if self.n_ranked < 2 or not pairs:
            return {"histograms": one_way, "pairs": pairs}
        ranks = min(RANK_SHARE, (1 - one_way_share) / 4) * available
        return {"histograms": one_way, "pairs": pairs - ranks, "ranks": ranks}

    def _remeasured_pairs(self, pairs: Fraction, n: int, budget: Budget) -> dict[str, Fraction]:
        """What a second measurement of important pairs takes of the pairs' share."""
        important = self.remeasured(n, budget)
        if not pairs or not important.varying_pairs(self.domain.sizes):
            return {}
        share = IMPORTANT_SHARE
        chosen_for_target = important is not self.important
        if chosen_for_target and self.required_dependence_after_one_way(n, budget) > DIM:
            share = TARGET_SHARE
        again = share * pairs
        return {"pairs": pairs - again, "important": again}

    def _triples(self, pairs: Fraction, n: int, budget: Budget) -> dict[str, Fraction]:
        """What choosing and measuring triples takes of the pairs' share."""
        important = self.important
        # Whoever asks for triples gets them; a target looks for them unasked only where pairs are sharp already.
        unasked = important.unasked and important.triples > 0
        if unasked and self.required_dependence_after_one_way(n, budget) > SHARP:
            return {}

        def is_affordable(share: Fraction) -> bool:
            return important.affordable(n, len(self.attributes), budget.part(share)).count > 0

        return triple_shares(pairs, is_affordable)

    @property
    def n_ranked(self) -> int:
        """How many attributes have ranks that are measured: the ordered ones, where a number is among them.

        A table of categories alone is fitted as if nothing were said to matter: its bins hold nearly all of its ranks, and a
        charge for them made it worse (docs/benchmarks/knowledge.md).
        """
        return sum(self.domain.ordered) if grids(self.attributes) else 0

    def one_way_share(self, n: int, budget: Budget) -> Fraction:
        """Share for one-way tables of what these and pairs have together.

        Where K-norm noise is g times smaller than Laplace noise the odds of the share are divided by √g: errors in proportion to
        1/ε are best balanced by shares in proportion to their square roots.
        """
        share = histogram_share(n, self.domain, budget)
        if share == 1 or grids(self.attributes) or self._has_groups:
            return Fraction(share)
        ratio = self.one_way.noise_ratio(budget)
        if ratio == 1:
            return Fraction(share)
        odds = share / (1 - share) / sqrt(ratio)
        return Fraction(min(odds / (1 + odds), max(MOST_ONE_WAY, share / ratio)))

    def remeasured(self, n: int, budget: Budget) -> Important:
        """Which pairs are measured again: those that were named; or all with a target, where pairs are too noisy for triples."""
        important = self.important
        asked_for_triples = important.triples > 0 and not important.unasked
        if important.target is None or asked_for_triples or budget.persons:
            return important
        threshold = DIM if budget.pure else SHARP
        if self.required_dependence_after_one_way(n, budget) <= threshold:
            return important
        return important.with_target_pairs(len(self.attributes))

    # Which design: do pair tables pay?

    def design(self, n: int, budget: Budget) -> Design:
        """Which tables are measured, and whether one draw or a test comes first. `budget` is what the certificate leaves."""
        if not self._could_skip_pairs(budget) or self._pairs_surely_pay(n, budget):
            return "joint draw" if self._fits_joint_draw(n, budget) else "pairs"
        required = self.required_dependence(n, budget.part(1 - TEST_SHARE))
        if required > NO_TABLE or self.dependence_test_sd(n, budget) > TEST_IS_CHANCE:
            return "one-way"
        return "dependence test"

    def _could_skip_pairs(self, budget: Budget) -> bool:
        """Whether leaving pairs out is possible: a table of plain categories of which nothing else is known or wished."""
        plain_table = self.one_cell_per_unit and not grids(self.attributes) and not self._has_groups
        return (
            self.may_skip_pairs
            and plain_table
            and len(self._varying) >= 2
            and not self.important
            and not budget.persons
        )

    def _pairs_surely_pay(self, n: int, budget: Budget) -> bool:
        """Whether public numbers alone say that pairs are worth measuring."""
        if not budget.pure:
            rows_in_noise = n * sqrt(2 * float(budget.for_replaced.per_row))
            if rows_in_noise >= TEST_COSTS_MORE:
                return True
        required = self.required_dependence(n, budget.part(1 - TEST_SHARE))
        test_is_blind = self.dependence_test_sd(n, budget) > TEST_IS_BLIND * required
        return required <= NEARLY_EVERY_TABLE or (required <= MOST_TABLES and test_is_blind)

    def required_dependence(self, n: int, budget: Budget) -> float:
        """How far pairs must be from independent for their tables to be worth it, as a mean total variation.

        Measured pairs are off by about 1.2κ, where κ is the edge of the spectrum of their noise over the trace of the coding.

        Args:
            n: rows.
            budget: what pair tables may spend.
        """
        bins = planned_bins(self.domain)
        varying = np.array([size for size in bins.sizes if size > 1])
        edge = 2 * pair_law(bins, budget).sd / n * sqrt(sum(varying - 1))
        return float(ERROR_PER_EDGE * edge / sum(1 - 1 / varying))

    def required_dependence_after_one_way(self, n: int, budget: Budget) -> float:
        """As `required_dependence`, where pairs have all that one-way tables leave; 0 where there is no pair."""
        if len(self._varying) < 2:
            return 0.0
        return self.required_dependence(n, budget.part(1 - self.one_way_share(n, budget)))

    def dependence_test_sd(self, n: int, budget: Budget) -> float:
        """The deviation of the test's noise, as a mean total variation, for `TEST_SHARE` of a budget."""
        varying = len(self._varying)
        tables = varying * (varying - 1)
        return dependence_test_sensitivity(varying).deviation(budget.part(TEST_SHARE)) / (n * tables)

    def dependence_test_share(self, n: int, budget: Budget) -> Fraction:
        """The test's share: a tenth, or less where its noise stays below a third of the dependence that it must detect."""
        required = self.required_dependence(n, budget.part(1 - TEST_SHARE))
        enough = Fraction(3 * self.dependence_test_sd(n, budget) / required)
        return TEST_SHARE * min(Fraction(1), max(Fraction(1, 3), enough.limit_denominator(100)))

    # One draw of Gaussian noise for one-way tables and pairs.

    def _fits_joint_draw(self, n: int, budget: Budget) -> bool:
        """Whether one-way and pair tables share one draw of Gaussian noise: for rows of few categories and nothing else."""
        if self.important or budget.pure or budget.persons or budget.size_is_secret or not self.one_cell_per_unit:
            return False
        few_categories = all(
            isinstance(attribute, Category) and 1 < attribute.size <= MOST_JOINT_CATEGORIES and not attribute.groups
            for attribute in self.attributes
        )
        if not few_categories or len(self.attributes) < 2:
            return False
        return self.joint_draw(n, budget).law.drawable

    def joint_draw(self, n: int, budget: Budget) -> JointDraw:
        """The noise of one draw for one-way tables and pairs, weighted as if each had its share of the budget."""
        one_way_share = self.one_way_share(n, budget)
        sizes = self.domain.sizes
        odds = pair_table_sensitivity(sizes) * one_way_share / (2 * (1 - one_way_share))
        weights = [(odds * draw.share).limit_denominator(1000) for draw in self.one_way.draws(budget)]
        variance = budget.variance(pair_table_sensitivity(sizes, weights))
        return JointDraw(PairLaw(GAUSSIAN, self.domain, variance), weights)

    # How fine pair tables are, and what a prediction says.

    def bin_mass(self, n: int, budget: Budget) -> float:
        """Mass of a bin of an ordered attribute: forty deviations of the pair noise, within reason.

        Where there are numbers, at least twelve bins if noise and memory allow it, and at most forty.

        Args:
            n: rows.
            budget: what pair tables may spend.
        """
        noise = pair_law(planned_bins(self.domain), budget).sd / n
        mass = float(np.clip(40 * noise, 1 / most_bins(self.domain), 0.25))
        if not grids(self.attributes):
            return mass
        q = len(self.attributes)
        least_bins = max(LEAST_BINS, min(12, MOST_MERGED // q))
        finest = 1 / float(np.clip(400 // q, least_bins, 40))
        factor = PURE_BIN_MASS if budget.pure else GAUSSIAN_BIN_MASS
        return max(finest, factor * mass)

    def noise_words(self, n: int, budget: Budget) -> str:
        """Which law one-way tables get, and whether pairs are measured, in one line."""
        remaining = budget.part(1 - CERTIFICATE_SHARE)
        design = self.design(n, remaining)
        words = f"{self._one_way_law(remaining)} noise"
        if design == "joint draw":
            words += ", in one draw with pairs"
        ratio = self.one_way.noise_ratio(remaining)
        if ratio > 1:
            words += f", {ratio:.2g} times less than Laplace noise on each"
        return f"single columns get {words}; {DESIGN_WORDS[design]}"

    def _one_way_law(self, budget: Budget) -> str:
        """The law of the noise on one-way tables, for a reader."""
        if not budget.pure:
            return "Gaussian"
        joint = [draw.joint for draw in self.one_way.draws(budget)]
        if all(joint):
            return "K-norm"
        return "K-norm or Laplace" if any(joint) else "Laplace"
