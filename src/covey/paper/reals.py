"""`regain` for real records in a convex body K: margins, a radius, moments; then points of K that have them.

Every choice is fixed by public numbers before any record is read (`plan_reals`). The `measure_…` parts ask, for sums of integers.
Why each is private: docs/proofs/bodies.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import isqrt, sqrt
from typing import Any

import numpy as np

from covey.engine.arrays import Array, Floats, blas_threads
from covey.engine.bodies import Body
from covey.engine.budget import Budget
from covey.engine.codes import counts
from covey.engine.codes.counts import CODE_BITS, UNIT, RealGrid, Spread, part
from covey.engine.fit.reals import RealTarget, copula, fit_points, margin_points, normal_margins, shrink
from covey.engine.gate import WHOLE
from covey.engine.measurement import Measurement
from covey.engine.model import Ask, Asking, Component, Fitted, Setting, with_certificate
from covey.engine.models.bits import in_ball, in_cone, shrunken
from covey.engine.models.laws import BodyLaw
from covey.engine.models.tables.measure_tables import PARTITION_SENSITIVITY, measure_trees
from covey.engine.models.tables.table_counts import OneWayCounts
from covey.engine.noise.integers import CLAMP
from covey.engine.noise.law import CUBE, MATRIX
from covey.engine.numbers.grid import BRANCHING, Measure, NumberGrid
from covey.engine.numbers.tree import Tree, tree_measure
from covey.engine.points import WeightedPoints
from covey.engine.query import Every, Query
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic, entries
from covey.errors import ParameterError

# Shares of the budget, tuned on the tables of benchmarks/bodies.py.
MARGINS = Fraction(35, 100)
RADIUS = Fraction(5, 100)
CONSTANT = Fraction(1, 3)  # squared constant coordinate of the matrix mechanism over the squared radius, as for bits
MEAN_WEIGHT = Fraction(22, 100)  # of the means in a joint Gaussian, over the squared radius, as for bits
# Deviations of the noise on a count of a margin that is counted once, over n: beyond the first a margin tells less than a normal
# law does, below the second and the third a finer grid is worth its further rounds.
COARSE = 0.02
MEDIUM = 0.012
FINE = 0.002
MORE_MARGINS = Fraction(55, 100)  # for margins, where pairs are clear enough with what is then left of the budget
CLEAR_PAIRS = 0.03  # deviation of the noise on a correlation, times √p, up to which that is so
PAIRS = 0.15  # deviation of the noise on a correlation, times √p, beyond which pairs are noise
RADII = 12  # bins of the histogram of lengths
# Squared radii per column, in spreads, that may be chosen: nothing is worth cutting beyond.
SHORTEST = 1.5
LONGEST = 8.0
MIDDLE = 1.5  # squared radius per column, in spreads, at which noise is predicted: a typical choice
POINTS = 4096  # of K, equally weighted: rows are drawn from these


@dataclass(frozen=True)
class RealPlan:
    """Public choices: functions of n, p and the budget alone."""

    # "full" (margins, then moments in their scale), "box" (in the box's own scale), "margins" or "means".
    mechanism: str
    shares: dict[str, Fraction]  # of the budget, by purpose
    rounds: int = 0  # how often a margin is counted: a tree of so many levels

    @property
    def grid(self) -> NumberGrid:
        """Codes of a margin: the first and the last are the bounds themselves, which many records may share."""
        size = BRANCHING**self.rounds
        return NumberGrid(size, atoms=(0, size - 1))


def plan_reals(n: int, p: int, budget: Budget) -> RealPlan:
    """Which measurements, and how the budget is shared among them.

    Pairs are measured where their noise leaves something of them, in the scale of private margins where these are clear enough to
    give one. Means and margins alone are left where pairs would be noise.
    """
    longest = int(LONGEST * p) * UNIT**2
    if 2 * n * longest >= CLAMP or n >= 1 << 32 or isqrt(longest) >= 1 << 20:  # of the integers that hold sums
        raise ParameterError(f"a table of {n} rows and {p} numeric columns is too large: its sums would pass 2^61.")
    rest = 1 - MARGINS - RADIUS
    rounds = margin_rounds(n, p, budget.part(MARGINS))
    if p < 2:
        rounds = margin_rounds(n, p, budget.part(Fraction(1, 2)))
        if rounds:
            return RealPlan("full", {"margins": Fraction(1, 2), "moments": Fraction(1, 2)}, rounds)
        return RealPlan("box", {"moments": Fraction(1)})
    if sqrt(p) * pair_noise(n, p, MIDDLE * p, budget.part(1 - MORE_MARGINS - RADIUS)) <= CLEAR_PAIRS:
        rounds = margin_rounds(n, p, budget.part(MORE_MARGINS))
        if rounds:
            shares = {"margins": MORE_MARGINS, "radius": RADIUS, "moments": 1 - MORE_MARGINS - RADIUS}
            return RealPlan("full", shares, rounds)
    if rounds and sqrt(p) * pair_noise(n, p, MIDDLE * p, budget.part(rest)) <= PAIRS:
        return RealPlan("full", {"margins": MARGINS, "radius": RADIUS, "moments": rest}, rounds)
    if sqrt(p) * pair_noise(n, p, float(p), budget) <= PAIRS:
        return RealPlan("box", {"moments": Fraction(1)})
    rounds = margin_rounds(n, p, budget)
    if rounds:
        return RealPlan("margins", {"margins": Fraction(1)}, rounds)
    return RealPlan("means", {"means": Fraction(1)})


def margin_rounds(n: int, p: int, budget: Budget) -> int:
    """How many levels the trees of p margins have; 0 where their counts would be noise."""
    noise = count_noise(p, budget) / n
    if noise > COARSE:
        return 0
    return 3 if noise <= FINE else 2 if noise <= MEDIUM else 1


def count_noise(rounds: int, budget: Budget) -> float:
    """Deviation of the noise on a count, if so many rounds share a charge."""
    return budget.part(Fraction(1, rounds)).deviation(2, 2)


def pair_noise(n: int, p: int, radius_squared: float, budget: Budget) -> float:
    """Deviation of the noise on a mean product of rows with that squared radius."""
    if budget.pure:
        return float(budget.laplace_scale(1)) * 2 * (1 + float(CONSTANT)) * radius_squared * sqrt((p + 2) / 2) / n
    return sqrt(budget.variance(1)) * (1 + float(MEAN_WEIGHT)) * radius_squared / n


def radii(p: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Squared radii to choose from, in squared spreads."""
    return np.asarray(np.geomspace(SHORTEST, LONGEST, RADII) * p)


STEPS = 1 << CODE_BITS  # of a column between its bounds
NARROWEST = STEPS >> 12  # spread of a column: rows stay integers that are summed exactly
CENTRE = 1 << (CODE_BITS - 1)  # the middle of a column
CLEAR = 2.5  # deviations of noise above which rows beyond a radius are believed
LOST = 0.25  # weight of variance beyond the radius: the fit gives most of it back, through the margins
LARGE_NOISE = 0.05  # what pairs may lose to noise: below it tails are not worth cutting
# Of a covariance, in Frobenius norm: with more noise points would follow the noise to the ends of the body.
UNSURE = 0.4
LEAST_SD = 0.01  # of the box: a spread that is measured is never taken for less


# Measurements.


def coarser(codes: Array, size: int) -> Array:
    """Codes on a grid of so many steps, each from its own code alone; the first and the last are for the bounds themselves."""
    inner = 1 + ((codes.astype(np.int64) * (size - 2)) >> CODE_BITS)
    return np.where(codes == 0, 0, np.where(codes == STEPS - 1, size - 1, inner))


def measure_margins(setting: Setting, plan: RealPlan, public: np.random.Generator) -> Asking[list[Measure]]:
    """A tree over every column, all of them a level at a time.

    All rounds of all columns have equal shares of the charge, whatever the trees look like (docs/proofs/trees.md).
    """
    grid, p = plan.grid, setting.p
    trees, share = {j: Tree(grid, setting.n) for j in range(p)}, Fraction(1, p * grid.rounds)
    counts = OneWayCounts(setting.n, {}, partial(coarser, size=grid.size))
    yield from measure_trees(trees, counts, "margins", lambda j, turn: share)
    return [tree_measure(tree, setting.pure, public) for tree in trees.values()]


def measure_radius(setting: Setting, spread: Spread) -> Asking[int]:
    """The squared radius at which noise and the variance lost beyond it are least together, from a noisy histogram of lengths.

    A replaced row moves the histogram by 2 in ℓ1, √2 in ℓ2.
    """
    n, p = setting.n, setting.p
    grid = radii(p)
    edges = np.floor(grid * UNIT**2).astype(np.int64)
    exact = Statistic.sum(partial(counts.length_counts, spread=spread, edges=edges)).map(part)
    lengths = Component(Query.derived("squared length", p, len(edges) + 1), exact, len(edges) + 1)
    (histogram,) = yield [Ask("radius", [lengths], PARTITION_SENSITIVITY)]
    beyond = np.cumsum(histogram.values[::-1])[::-1][1:] / n
    beyond[beyond < CLEAR * histogram.sd / n * np.sqrt(np.arange(len(grid), 0, -1))] = 0
    beyond = np.maximum.accumulate(beyond[::-1])[::-1]
    lost = np.cumsum((np.diff(grid, append=grid[-1]) * beyond)[::-1])[::-1]
    noise = np.array([p * pair_noise(n, p, float(r), setting.allowance("moments")) for r in grid])
    cost = LOST * lost + noise
    cost[grid < min(p * LARGE_NOISE / noise[0] * grid[0] / p, grid[-1] / 2)] = np.inf
    return int(edges[int(np.argmin(cost))])


def measure_moments(setting: Setting, spread: Spread) -> Asking[tuple[Measurement, Measurement]]:
    """Means and products of all pairs, squares included, of rows in the ball, in spreads; squares have √2 times a pair's noise.

    Matrix Laplace noise: rows (a, u) have squared length at most a² + R², so their matrix moves by 2(a² + R²) in nuclear norm.
    Or one Gaussian: ½‖uuᵀ − vvᵀ‖² + w‖u − v‖² ≤ (R² + w)²: pairs get a variance σ², squares 2σ², means σ²/w.
    """
    p, R2 = setting.p, spread.radius_squared
    one, two = setting.n * UNIT, setting.n * UNIT**2
    sums = Statistic.sum(partial(counts.moment_sums, spread=spread))
    first, second = sums.map(part), sums.map(counts.squares_of)
    single, pairs = (Query(Every(p, degree), {}, "product") for degree in (1, 2))
    if setting.pure:
        a = max(1, isqrt(int(CONSTANT * R2)))  # ≈ √(R²/3), in the integer steps of rows
        components = [
            Component(single, first.map(entries, None), (slice(0, 1), slice(1, p + 1))),
            Component(pairs, second, (slice(1, p + 1), slice(1, p + 1))),
        ]
        weights = [Fraction(1, a), *[WHOLE] * p]
        mean, pair = yield [Ask("moments", components, in_cone(Fraction(R2 + a * a)), noise=MATRIX, weights=weights)]
        mean = replace(mean, values=mean.values[0], sd=mean.sd / a)
        values = pair.values
    else:
        weight, upper = MEAN_WEIGHT * R2, np.triu_indices(p, 1)
        components = [
            Component(single, first, p, weight),
            Component(pairs, second.map(np.diagonal), p, Fraction(1, 2)),
            Component(pairs, second.map(entries, *upper), len(upper[0])),
        ]
        mean, square, pair = yield [Ask("moments", components, in_ball(Fraction(R2), weight))]
        values = np.diag(square.values)
        values[upper] = pair.values
        values.T[upper] = pair.values
    mean = replace(mean, values=mean.values / one, sd=mean.sd / one, per=1)
    return mean, replace(pair, values=values / two, sd=pair.sd / two, per=1)


def measure_scales(setting: Setting) -> Asking[tuple[Floats, Floats, float]]:
    """Means and mean squares of numbers between 0 and 1, and the deviation of their noise: 2p sums, which move by 1 each."""
    n, p = setting.n, setting.p
    sums = Statistic.sum(counts.scale_sums).map(part)
    means = Component(Query(Every(2 * p, 1), {}, "product"), sums, 2 * p, divisor=n * UNIT)
    sensitivity = Sensitivity(
        linf=UNIT, l2_squared=2 * p * UNIT**2, added=Sensitivity(linf=UNIT, l2_squared=2 * p * UNIT**2)
    )
    (noisy,) = yield [Ask("means", [means], sensitivity, noise=CUBE if setting.pure else None)]
    half = 0.5 / UNIT  # what cutting off takes, on average
    mean, square = np.split(noisy.values + half, 2)
    return np.asarray(mean), np.asarray(square), float(noisy.sd)


# The fit.


@dataclass(frozen=True)
class RegainBody:
    """`regain` for real rows in a body, given as codes on its public grid."""

    certificate: Fraction
    body: Body
    grid: RealGrid
    rounded: bool = False  # whether rows of a product of simplices are categories
    first_pass: tuple[Callable[[Array], Any], ...] = ()  # arrays are in memory: nothing is added up while they are read

    def plan(self, n: int, p: int, budget: Budget) -> RealPlan:
        """All public choices."""
        return plan_reals(n, p, budget.part(1 - self.certificate))

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The plan's shares, and the certificate's."""
        return with_certificate(self.plan(n, p, budget).shares, self.certificate)

    def ask(self, setting: Setting) -> Asking[Fitted]:
        """Private points of K, equally weighted."""
        plan, p, public = self.plan(setting.n, setting.p, setting.budget), setting.p, setting.public("fit")
        with blas_threads(1):
            if plan.mechanism == "means":
                scaled = yield from _means_alone(setting, public)
            elif plan.mechanism == "box":
                box = Spread(np.full(p, CENTRE), np.full(p, CENTRE), p * UNIT**2)
                scaled = self._moments_in_box(box, (yield from measure_moments(setting, box)), setting, public)
            else:
                measures = yield from measure_margins(setting, plan, setting.public("shapes"))
                live, lower, width = self.grid.live, self.grid.lower, self.grid.width
                each = zip(measures, live, strict=True)
                margins = np.stack([margin_points(m, lower[j], width[j], POINTS) for m, j in each], axis=1)
                setting.tick(0.2)
                if plan.mechanism == "margins":
                    scaled = copula(POINTS, np.eye(p), margins, public)
                else:
                    doubt = count_noise(p * plan.rounds, setting.allowance("margins")) / setting.n
                    scaled = yield from self._moments_in_scale(setting, margins, doubt, public)
            points = self.body.project(self.grid.points(np.clip(scaled, 0.0, 1.0)))
            cloud = WeightedPoints(np.full(len(points), 1 / len(points)), points)
            return Fitted(BodyLaw(cloud, self.body, self.grid, self.rounded))

    def _inside(self, scaled: Floats) -> Floats:
        """The nearest points of K, between 0 and 1."""
        points = self.body.project(self.grid.points(np.clip(scaled, 0.0, 1.0)))
        return np.clip(self.grid.scaled(points), 0.0, 1.0)

    def _moments_in_scale(
        self, setting: Setting, margins: Floats, doubt: float, public: np.random.Generator
    ) -> Asking[Floats]:
        """Moments of rows in the centre and the spread of private margins, of which noise may hide a mass of `doubt`."""
        centre = np.rint(margins.mean(axis=0) * STEPS).astype(np.int64)
        sd = np.sqrt(margins.var(axis=0) + doubt / 4)  # that mass may lie half a box away: the spread allows for it
        spread = Spread(centre, np.maximum(np.rint(sd * STEPS).astype(np.int64), NARROWEST), 0)
        widest = int(radii(setting.p)[-1] * UNIT**2)
        radius = (yield from measure_radius(setting, spread)) if setting.has("radius") else widest
        spread = replace(spread, radius_squared=radius)
        mean, second = yield from measure_moments(setting, spread)
        C = shrink(second.values - np.outer(mean.values, mean.values), float(second.sd))
        target = RealTarget(spread, mean.values, C, float(mean.sd), float(second.sd))
        start = self._inside(copula(POINTS, target.covariance, margins, public))
        return fit_points(start, margins, target, self._inside, lambda t: setting.tick(0.3 + 0.7 * t))

    def _moments_in_box(
        self, spread: Spread, found: tuple[Measurement, Measurement], setting: Setting, public: np.random.Generator
    ) -> Floats:
        """Moments in the box's own scale: normal margins inside it; where noise is large, a normal law that is projected."""
        mean, sd = np.clip(found[0].values, -1, 1), float(found[1].sd)
        C = found[1].values - np.outer(mean, mean)
        if len(C) * sd > UNSURE * float(np.linalg.norm(C)):
            x, V = np.linalg.eigh(C)
            drawn = public.standard_normal((POINTS, len(C))) @ (V * np.sqrt(np.maximum(x, LEAST_SD**2))).T
            return self._inside((1 + mean + drawn) / 2)
        variance = np.clip(np.diag(C), (2 * LEAST_SD) ** 2, 1 - mean**2 + (2 * LEAST_SD) ** 2)
        np.fill_diagonal(C, variance)
        target = RealTarget(spread, mean, shrink(C, sd), float(found[0].sd), sd)
        margins = normal_margins((1 + mean) / 2, np.sqrt(np.diag(target.covariance)) / 2, POINTS)
        start = self._inside(copula(POINTS, target.covariance, margins, public))
        return fit_points(start, None, target, self._inside, setting.tick)


def _means_alone(setting: Setting, public: np.random.Generator) -> Asking[Floats]:
    """Columns by themselves: normal margins inside the box, with shrunken means and spreads."""
    mean, square, sd = yield from measure_scales(setting)
    mean = np.clip(shrunken(mean, sd, 0.5, 1 / 12), 0, 1)
    variance = shrunken(square, sd, 1 / 3, 1 / 12) - mean**2
    variance = np.clip(variance, LEAST_SD**2, mean * (1 - mean) + LEAST_SD**2)
    return copula(POINTS, np.eye(setting.p), normal_margins(mean, np.sqrt(variance), POINTS), public)
