"""How the charge for one-way tables is shared among attributes: a function of public numbers alone.

Each one-way table has noise of its own (Laplace or Gaussian), or several tables of few categories share one draw of K-norm
noise, which is smaller (docs/proofs/knorm.md). Numbers are measured in rounds, by a tree that grows (docs/proofs/trees.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt

import numpy as np

from covey.engine.arrays import Floats
from covey.engine.budget import Budget
from covey.engine.codes.domain import Domain
from covey.engine.fractions import exact
from covey.engine.models.tables.important import ONE_WAY_WEIGHT
from covey.engine.noise.integers import grouped, knorm_deviations
from covey.engine.numbers.grid import BRANCHING, Attribute, Category, NumberGrid, grids
from covey.engine.sensitivity import Sensitivity

NUMBER_WEIGHT = 2.0  # of a number among the one-way charges, beside a category with as many codes
# What a round of a tree is charged, in charges of the round before: later rounds see single values.
PURE_GROWTH = Fraction(9, 8)
GAUSSIAN_GROWTH = Fraction(5, 4)
# Categories of an attribute whose table may share a draw of K-norm noise: beyond, it gains 1%, and the exact numbers of points
# that its sampler needs become long.
MOST_SHARED_CATEGORIES = 64
# Times that K-norm noise for a row added or removed must be smaller than Laplace noise, whose sums tell n once for every table.
LEAST_GAIN_ADDED = 1.2
# Lowest ε of one row, in parts of the number of cells, for which K-norm noise fits its sampler.
LEAST_EPSILON_PER_CELL = Fraction(1, 2**40)


def nominal_domain(attributes: Sequence[Attribute]) -> Domain:
    """The attributes as formulas for categories see them: a number counts as sixteen codes per level of its tree."""
    sizes = []
    ordered = []
    for attribute in attributes:
        if isinstance(attribute, NumberGrid):
            sizes.append(BRANCHING * attribute.rounds)
            ordered.append(True)
        else:
            sizes.append(attribute.size)
            ordered.append(attribute.ordered)
    return Domain(tuple(sizes), tuple(ordered))


@dataclass(frozen=True)
class Draw:
    """Attributes whose one-way tables get their noise in one draw, and its share of the one-way charge."""

    attributes: tuple[int, ...]
    share: Fraction
    joint: bool  # whether the noise is K-norm noise; else there is one attribute


@dataclass(frozen=True)
class WeightedDraw:
    """A draw before its share of the charge is known: shares are in proportion to weights."""

    attributes: tuple[int, ...]
    weight: float
    joint: bool


@dataclass(frozen=True)
class OneWayPlan:
    """Draws of noise for the one-way tables of all attributes.

    Attributes:
        attributes: public; categories and numbers.
        important: attributes whose tables get a larger share.
        one_cell_per_unit: whether every unit falls into exactly one cell of each table, so that all tables have one sum.
    """

    attributes: tuple[Attribute, ...]
    important: frozenset[int]
    one_cell_per_unit: bool

    @cached_property
    def domain(self) -> Domain:
        """How many codes an attribute has; of a number, as many as formulas take it for."""
        return nominal_domain(self.attributes)

    @property
    def _emphasis(self) -> list[float]:
        """How much less noise each table should have than that of an ordinary category."""
        weights = []
        for j, attribute in enumerate(self.attributes):
            weight = NUMBER_WEIGHT if isinstance(attribute, NumberGrid) else 1.0
            if j in self.important:
                weight *= ONE_WAY_WEIGHT
            weights.append(weight)
        return weights

    def draws(self, budget: Budget, steps: int = 1) -> list[Draw]:
        """Draws of noise for all one-way tables; their shares of the charge sum to 1.

        Single tables get shares in proportion to √c (Laplace) or c^{2/3} (Gaussian) in the number of codes c, which makes the sum
        of absolute errors least. Under pure ε tables of few categories share draws of K-norm noise, grouped so that Σ c·sd is
        least over all.

        Args:
            budget: what all one-way tables may cost.
            steps: what one unit weighs in the sums that noise is added to.
        """
        single_weights = self._single_weights(budget.pure)
        draws = []
        if self._may_share_draws(budget, steps):
            draws += self._joint_draws(single_weights, budget.size_is_secret)
        shared = {j for draw in draws for j in draw.attributes}
        for j, weight in enumerate(single_weights):
            if j not in shared:
                draws.append(WeightedDraw((j,), weight, joint=False))
        return _with_shares(draws)

    def _single_weights(self, pure: bool) -> list[float]:
        """What each table is worth if it has noise of its own."""
        power = 1 / 2 if pure else 2 / 3
        counts = self.domain.counts
        return [float(counts[j] ** power) * weight for j, weight in enumerate(self._emphasis)]

    @cached_property
    def _shareable(self) -> list[int]:
        """Attributes whose tables may share a draw: few categories, in no groups."""
        return [
            j
            for j, attribute in enumerate(self.attributes)
            if isinstance(attribute, Category) and not attribute.groups and 1 < attribute.size <= MOST_SHARED_CATEGORIES
        ]

    def _may_share_draws(self, budget: Budget, steps: int) -> bool:
        """Whether there is K-norm noise for these tables, and its sampler can draw it at this budget."""
        if not self._shareable or not self.one_cell_per_unit or not budget.pure:
            return False
        cells = int(self.domain.counts[self._shareable].sum())
        return budget.per_row >= LEAST_EPSILON_PER_CELL * steps * cells

    def _joint_draws(self, single_weights: list[float], size_is_secret: bool) -> list[WeightedDraw]:
        """Groups of tables that share a draw, with the weight that this draw is worth."""
        emphasis = self._emphasis
        sizes = [int(self.domain.counts[j]) for j in self._shareable]
        error_weights = [emphasis[j] ** 2 for j in self._shareable]
        # A table with Laplace noise of its own is worth √(c·sd) at ε = 1; single weights leave √sd out, which is public.
        root_laplace = sqrt(sqrt(2) if size_is_secret else 2 * sqrt(2))
        draws = []
        for members, worth in grouped(sizes, error_weights, size_is_secret):
            attributes = tuple(self._shareable[i] for i in members)
            gain = (sum(single_weights[j] for j in attributes) * root_laplace / worth) ** 2
            if not size_is_secret or gain >= LEAST_GAIN_ADDED:
                draws.append(WeightedDraw(attributes, worth / root_laplace, joint=True))
        return draws

    def deviations(self, budget: Budget) -> Floats:
        """Standard deviation of the noise on a count of each attribute; of a number, if its tree had one round.

        Args:
            budget: what all one-way tables may cost.
        """
        deviations = np.zeros(len(self.attributes))
        for draw in self.draws(budget):
            charge = budget.part(draw.share)
            members = list(draw.attributes)
            if draw.joint:
                sizes = self.domain.counts[members].tolist()
                at_scale_one = knorm_deviations(sizes, budget.size_is_secret)
                deviations[members] = np.array(at_scale_one) * float(charge.laplace_scale(1))
            else:
                deviations[members] = Sensitivity.histograms(1).deviation(charge)
        return deviations

    def noise_ratio(self, budget: Budget) -> float:
        """How many times smaller the noise is than Laplace noise on each table would be; 1 where that is what they get."""
        if not any(draw.joint for draw in self.draws(budget)):
            return 1.0
        varying = self.domain.counts > 1
        roots = np.sqrt(self.domain.counts[varying])
        # Laplace noise with shares in proportion to √c: Σ√c/√c_j times that of a table which has all of the budget.
        laplace = Sensitivity.histograms(1).deviation(budget) * float(roots.sum()) * float((1 / roots).mean())
        planned = float(self.deviations(budget)[varying].mean())
        return max(1.0, laplace / planned)

    def round_share(self, j: int, turn: int, pure: bool) -> Fraction:
        """Share of a number's charge that a round of its tree gets; the shares of all rounds sum to 1."""
        growth = PURE_GROWTH if pure else GAUSSIAN_GROWTH
        rounds = grids(self.attributes)[j].rounds
        return growth**turn / sum(growth**k for k in range(rounds))


def _with_shares(draws: list[WeightedDraw]) -> list[Draw]:
    """Shares in proportion to weights, as rational numbers that sum to 1 exactly."""
    total_weight = sum(draw.weight for draw in draws)
    shares = [exact(draw.weight / total_weight, "share") for draw in draws]
    total = sum(shares)
    return [Draw(draw.attributes, share / total, draw.joint) for draw, share in zip(draws, shares, strict=True)]
