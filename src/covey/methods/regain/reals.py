"""`regain` for real records in a convex body K: margins, a radius, moments; then points of K that have them.

Only the `measure_…` functions read records, as integers and through the gate. Why each is private: docs/proofs/bodies.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from covey.core.arrays import Array, Floats, Integers, blas_threads
from covey.core.fit.centres import Tick
from covey.core.fit.reals import RealTarget, copula, fit_points, margin_points, normal_margins, shrink
from covey.core.noise.sensitivity import ball_sensitivity
from covey.core.numbers.grid import Measure
from covey.core.numbers.tree import Tree, tree_measure
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.bodies import Body
from covey.core.tables.counts import part
from covey.core.tables.crosstabs import RangeCounts
from covey.core.tables.distance import largest
from covey.core.tables.reals import (
    CODE_BITS,
    UNIT,
    RealGrid,
    Spread,
    length_counts,
    moment_sums,
    real_distances,
    scale_sums,
    squares_of,
)
from covey.engines.rows import Mapped, Rows
from covey.methods.method import Fitted, Public, with_certificate
from covey.methods.regain.measure import entries
from covey.methods.regain.realplan import (
    MEAN_WEIGHT,
    POINTS,
    RealPlan,
    constant_coordinate,
    count_noise,
    pair_noise,
    plan_reals,
    radii,
)
from covey.privacy.budget import Budget
from covey.privacy.certificate import certify
from covey.privacy.gate import WHOLE, Exact, Gate, Moves
from covey.progress import Progress

STEPS = 1 << CODE_BITS  # of a column between its bounds
NARROWEST = STEPS >> 12  # spread of a column: rows stay integers that are summed exactly
CENTRE = 1 << (CODE_BITS - 1)  # the middle of a column
CLEAR = 2.5  # deviations of noise above which rows beyond a radius are believed
LOST = 0.25  # weight of variance beyond the radius: the fit gives most of it back, through the margins
LARGE_NOISE = 0.05  # what pairs may lose to noise: below it tails are not worth cutting
UNSURE = (
    0.4  # of a covariance, in Frobenius norm: with more noise points would follow the noise to the ends of the body
)
LEAST_SD = 0.01  # of the box: a spread that is measured is never taken for less


@dataclass(frozen=True)
class RealMoments:
    """Noisy means and mean products of rows in spreads, and the deviations of their noise; squares have √2 times a pair's."""

    spread: Spread
    mean: Floats
    second: Floats
    mean_sd: float
    pair_sd: float


# Measurements.


@dataclass(frozen=True)
class Coarser:
    """A step on records: codes on a grid of so many steps, of which the first and the last are for the bounds themselves."""

    size: int

    def __call__(self, codes: Array) -> Array:
        """Coarser codes of a batch, each from its own code alone."""
        inner = 1 + ((codes.astype(np.int64) * (self.size - 2)) >> CODE_BITS)
        return np.where(codes == 0, 0, np.where(codes == STEPS - 1, self.size - 1, inner))


def measure_margins(rows: Rows, plan: RealPlan, gate: Gate, public: np.random.Generator) -> list[Measure]:
    """A tree over every column, all of them a level at a time: a round is one partition a column, which moves by 2 in ℓ1.

    All rounds of all columns have equal shares of the charge, whatever the trees look like (docs/proofs/trees.md).
    """
    grid, p = plan.grid, rows.p
    trees = [Tree(grid, rows.n) for _ in range(p)]
    coarse_rows = Mapped(rows, Coarser(grid.size))
    share = Fraction(1, p * grid.rounds)
    law = ""
    for turn in range(grid.rounds):
        edges = tuple(tree.edges for tree in trees)
        counts = coarse_rows.reduce(RangeCounts(tuple(range(p)), edges))
        for i, tree in enumerate(trees):
            found = gate.measure("margins", counts.map(part, i), len(edges[i]) - 1, Moves(l1=2, l2_squared=2), share)
            tree.see(found.values, found.sd)
            law = found.law
            if turn + 1 < grid.rounds:
                tree.grow()
    return [tree_measure(tree, law == "laplace", public) for tree in trees]


def measure_radius(rows: Rows, spread: Spread, gate: Gate) -> int:
    """The squared radius at which noise and the variance lost beyond it are least together, from a noisy histogram of lengths.

    A replaced row moves the histogram by 2 in ℓ1, √2 in ℓ2.
    """
    n, p = rows.n, rows.p
    grid = radii(p)
    edges = np.floor(grid * UNIT**2).astype(np.int64)
    exact = rows.reduce(partial(length_counts, spread=spread, edges=edges)).map(part)
    found = gate.measure("radius", exact, len(edges) + 1, Moves(l1=2, l2_squared=2))
    beyond = np.cumsum(found.values[::-1])[::-1][1:] / n
    beyond[beyond < CLEAR * found.sd / n * np.sqrt(np.arange(len(grid), 0, -1))] = 0
    beyond = np.maximum.accumulate(beyond[::-1])[::-1]
    lost = np.cumsum((np.diff(grid, append=grid[-1]) * beyond)[::-1])[::-1]
    noise = np.array([p * pair_noise(n, p, float(r), gate.allowance("moments")) for r in grid])
    cost = LOST * lost + noise
    cost[grid < min(p * LARGE_NOISE / noise[0] * grid[0] / p, grid[-1] / 2)] = np.inf
    return int(edges[int(np.argmin(cost))])


def measure_moments(rows: Rows, spread: Spread, gate: Gate) -> RealMoments:
    """Means and products of all pairs, squares included, of rows in the ball: matrix Laplace noise, or one Gaussian.

    Rows (a, u) have squared length at most a² + R², so their matrix moves by 2(a² + R²) in nuclear norm. Under (ε, δ)
    ½‖uuᵀ − vvᵀ‖² + w‖u − v‖² ≤ (R² + w)²: pairs get a variance σ², squares 2σ², means σ²/w.
    """
    n, p, R2 = rows.n, rows.p, spread.radius_squared
    sums = rows.reduce(partial(moment_sums, spread=spread))
    first, second = sums.map(part), sums.map(squares_of)
    if gate.budget.pure:
        a = constant_coordinate(R2)
        joint = gate.matrix("moments", Moves(trace=2 * (R2 + a * a)), [Fraction(1, a), *[WHOLE] * p])
        mean = joint.add(first.map(_as_row), slice(0, 1), slice(1, p + 1))
        pair = joint.add(second, slice(1, p + 1), slice(1, p + 1))
        return _moments(spread, n, (mean.values[0], mean.sd / a), (pair.values, pair.sd))
    weight = MEAN_WEIGHT * R2
    gaussian = gate.joint("moments", Moves(l2_squared=ball_sensitivity(Fraction(R2), weight)))
    upper = np.triu_indices(p, 1)
    mean = gaussian.add(first, p, weight)
    square = gaussian.add(second.map(np.diagonal), p, Fraction(1, 2))
    second_values = np.diag(square.values.astype(np.float64))
    pair = gaussian.add(second.map(entries, *upper), len(upper[0]))
    second_values[upper] = pair.values
    second_values.T[upper] = pair.values
    return _moments(spread, n, (mean.values, mean.sd), (second_values, pair.sd))


def _moments(spread: Spread, n: int, mean: tuple[Array, float], second: tuple[Array, float]) -> RealMoments:
    one, two = n * UNIT, n * UNIT**2
    return RealMoments(spread, mean[0] / one, second[0] / two, mean[1] / one, second[1] / two)


def measure_scales(rows: Rows, gate: Gate) -> tuple[Floats, Floats, float]:
    """Means and mean squares of numbers between 0 and 1, and the deviation of their noise: 2p sums, which move by 1 each."""
    n, p = rows.n, rows.p
    exact = rows.reduce(scale_sums).map(part)
    if gate.budget.pure:
        found = gate.cube("means", exact, Moves(linf=UNIT), 2 * p)
    else:
        found = gate.measure("means", exact, 2 * p, Moves(l2_squared=2 * p * UNIT**2))
    half = 0.5 / UNIT  # what cutting off takes, on average
    mean, square = np.split(found.values / (n * UNIT) + half, 2)
    return np.asarray(mean), np.asarray(square), found.sd / (n * UNIT)


def _as_row(vector: Integers) -> Integers:
    return vector[None]


# The fit.


@dataclass(frozen=True)
class RealFit:
    """What the fit of one table needs besides its records: body and grid, plan, public randomness, progress."""

    body: Body
    grid: RealGrid
    plan: RealPlan
    public: Public
    tick: Tick

    def inside(self, scaled: Floats) -> Floats:
        """The nearest points of K, between 0 and 1."""
        points = self.body.project(self.grid.points(np.clip(scaled, 0.0, 1.0)))
        return np.clip(self.grid.scaled(points), 0.0, 1.0)


def real_centres(rows: Rows, gate: Gate, fit: RealFit) -> WeightedPoints:
    """Private points of K, equally weighted; spends the charges named by the plan."""
    plan, p = fit.plan, rows.p
    public = fit.public("fit")
    if plan.mechanism == "means":
        scaled = _means_alone(rows, gate, public)
    elif plan.mechanism == "box":
        box = Spread(np.full(p, CENTRE), np.full(p, CENTRE), p * UNIT**2)
        scaled = _moments_in_box(measure_moments(rows, box, gate), fit, public)
    else:
        measures = measure_margins(rows, plan, gate, fit.public("shapes"))
        live = fit.grid.live
        margins = np.stack(
            [
                margin_points(m, fit.grid.lower[j], fit.grid.width[j], POINTS)
                for m, j in zip(measures, live, strict=True)
            ],
            axis=1,
        )
        fit.tick(0.2)
        if plan.mechanism == "margins":
            scaled = copula(POINTS, np.eye(p), margins, public)
        else:
            scaled = _moments_in_scale(rows, gate, fit, margins, public)
    points = fit.body.project(fit.grid.points(np.clip(scaled, 0.0, 1.0)))
    return WeightedPoints(np.full(len(points), 1 / len(points)), points)


def _moments_in_scale(rows: Rows, gate: Gate, fit: RealFit, margins: Floats, public: np.random.Generator) -> Floats:
    """Moments of rows in the centre and the spread of private margins."""
    n, p = rows.n, rows.p
    doubt = count_noise(p * fit.plan.rounds, gate.allowance("margins")) / n
    spread = margin_spread(margins, doubt)
    widest = int(radii(p)[-1] * UNIT**2)
    radius = measure_radius(rows, spread, gate) if gate.has("radius") else widest
    found = measure_moments(rows, Spread(spread.centre, spread.spread, radius), gate)
    target = real_target(found)
    start = fit.inside(copula(POINTS, target.covariance, margins, public))
    return fit_points(start, margins, target, fit.inside, lambda t: fit.tick(0.3 + 0.7 * t))


def margin_spread(margins: Floats, doubt: float) -> Spread:
    """Centre and spread of margins. Noise may hide a mass of `doubt` far away: the spread allows for it, half a box away."""
    centre = np.rint(margins.mean(axis=0) * STEPS).astype(np.int64)
    sd = np.sqrt(margins.var(axis=0) + doubt / 4)
    spread = np.maximum(np.rint(sd * STEPS).astype(np.int64), NARROWEST)
    return Spread(centre, spread, 0)


def real_target(found: RealMoments) -> RealTarget:
    """What points should have: noisy means, and the covariance with less noise."""
    C = shrink(found.second - np.outer(found.mean, found.mean), found.pair_sd)
    return RealTarget(found.spread, found.mean, C, found.mean_sd, found.pair_sd)


def _moments_in_box(found: RealMoments, fit: RealFit, public: np.random.Generator) -> Floats:
    """Moments in the box's own scale: normal margins inside the box; where noise is large, a normal law that is projected."""
    mean = np.clip(found.mean, -1, 1)
    C = found.second - np.outer(mean, mean)
    if len(C) * found.pair_sd > UNSURE * float(np.linalg.norm(C)):
        x, V = np.linalg.eigh(C)
        drawn = public.standard_normal((POINTS, len(C))) @ (V * np.sqrt(np.maximum(x, LEAST_SD**2))).T
        return fit.inside((1 + mean + drawn) / 2)
    variance = np.clip(np.diag(C), (2 * LEAST_SD) ** 2, 1 - mean**2 + (2 * LEAST_SD) ** 2)
    np.fill_diagonal(C, variance)
    target = RealTarget(found.spread, mean, shrink(C, found.pair_sd), found.mean_sd, found.pair_sd)
    margins = normal_margins((1 + mean) / 2, np.sqrt(np.diag(target.covariance)) / 2, POINTS)
    start = fit.inside(copula(POINTS, target.covariance, margins, public))
    return fit_points(start, None, target, fit.inside, fit.tick)


def _means_alone(rows: Rows, gate: Gate, public: np.random.Generator) -> Floats:
    """Columns by themselves: normal margins inside the box, with shrunken means and spreads."""
    mean, square, sd = measure_scales(rows, gate)
    mean = np.clip(_shrunken(mean, sd, 0.5, 1 / 12), 0, 1)
    variance = _shrunken(square, sd, 1 / 3, 1 / 12) - mean**2
    variance = np.clip(variance, LEAST_SD**2, mean * (1 - mean) + LEAST_SD**2)
    return copula(POINTS, np.eye(rows.p), normal_margins(mean, np.sqrt(variance), POINTS), public)


def _shrunken(noisy: Floats, sd: float, blind: float, most: float) -> Floats:
    """Numbers shrunk toward their average, and that toward a blind guess, as far as their noise demands."""
    common = blind + (float(noisy.mean()) - blind) / (1 + sd**2 / most / len(noisy))
    signal = min(max(float(noisy.var()) - sd * sd, 0.0), most) if len(noisy) > 1 else most
    return np.asarray(common + (noisy - common) * signal / (signal + sd * sd))


@dataclass(frozen=True)
class RegainBody:
    """`regain` for real rows in a body, given as codes on its public grid."""

    certificate: Fraction
    body: Body
    grid: RealGrid

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Arrays are in memory: nothing is added up while they are read."""
        return ()

    def plan(self, n: int, p: int, budget: Budget) -> RealPlan:
        """All public choices."""
        return plan_reals(n, p, budget.part(1 - self.certificate))

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The plan's shares, and the certificate's."""
        return with_certificate(self.plan(n, p, budget).shares, self.certificate)

    def fit(self, rows: Rows, gate: Gate, public: Public) -> Fitted:
        """Private points of K and their certificate."""
        n, p = rows.n, rows.p
        with Progress((("measuring", 1.0), ("certifying", 0.1))) as progress, blas_threads(1):
            progress.next()
            fit = RealFit(self.body, self.grid, self.plan(n, p, gate.budget), public, progress.tick)
            cloud = real_centres(rows, gate, fit)
            progress.next()
            if not self.certificate:
                return Fitted(cloud)
            degrees, farthest = farthest_reals(rows, self.grid.scaled(cloud.points), cloud.weights)
            return Fitted(cloud, replace(certify(degrees, farthest, n, gate), products=True))


def farthest_reals(rows: Rows, scaled: Floats, weights: Floats) -> tuple[list[int], Exact[float]]:
    """Degrees, and the largest distance of the records from points among them."""
    n = rows.n
    inside = np.clip(scaled, 0.0, 1.0)
    found = rows.reduce(moment_sums).map(real_distances, n, inside, weights).map(largest)
    return [1, 2] if rows.p > 1 else [1], found
