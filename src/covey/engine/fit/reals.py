"""From noisy margins and moments of real columns to points of a convex body: post-processing, no record is seen.

Columns lie between 0 and 1 here. Points start as a Gaussian copula with the private margins; then two steps alternate, each
followed by the projection onto K: the transport map between Gaussians toward the measured moments, and the way back to the
margins, rank by rank. Margins are first tilted until they have the measured means and variances, which are known better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from covey.engine.arrays import Array, Floats
from covey.engine.codes.counts import Spread
from covey.engine.fit.centres import Tick
from covey.engine.numbers.grid import Measure

Inside = Callable[[Floats], Floats]  # points between 0 and 1 → the nearest ones of K

ROUNDS = 24  # of both steps; more moved nothing on the tables of docs/benchmarks
STILL = 12  # rounds in which margins are tilted again: moments of cut rows follow the points, slowly
HEAVY = 0.01  # share of a single step of the grid above which it is one value, not a range
STANDS_OUT = 4.0  # times the density of its neighbours
FINE_STEPS = 256  # of a grid: a coarser step may hold all of a narrow column
TILTS = 40  # steps of Newton's method; it ends far earlier where there is a solution
# What a tilt costs beside what its moments miss: nearly nothing for the mean, little for the variance.
RIDGE = np.array([1e-6, 1e-2])
FAR_OFF = 0.1  # deviations, or half of a share of the variance, by which a margin may miss its moments
LOOKED_AT = 256  # values of a margin at which distribution functions are compared
CLOSE = 0.02  # of a spread, of a variance, of a distribution function: gaps that nobody notices
FLAT = 1e-4  # of the largest eigenvalue: thinner directions are not stretched


@dataclass(frozen=True)
class RealTarget:
    """Noisy moments of cut rows, in spreads, and the deviations of their noise: what the points should have."""

    spread: Spread
    mean: Floats
    covariance: Floats
    mean_sd: float
    pair_sd: float

    def misses(self, points: Floats, margins: Floats | None) -> float:
        """How far points are from the target: squared gaps over what noise, or a closeness that nobody notices, allows."""
        a, A = cut_moments(points, self.spread)
        gap = float(np.mean((a - self.mean) ** 2)) / (self.mean_sd**2 + CLOSE**2)
        gap += float(np.mean((A - self.covariance) ** 2)) / (self.pair_sd**2 + CLOSE**2)
        if margins is not None:
            gap += float(np.mean([kolmogorov(x, m) ** 2 for x, m in zip(points.T, margins.T, strict=True)])) / CLOSE**2
        return gap


def shrink(C: Floats, sd: float) -> Floats:
    """A covariance without most of its noise: eigenvalues around a common level, shrunk by 1 − p·sd²/x², then kept positive.

    A symmetric matrix of independent noise moves an eigenvalue x by about √p·sd.
    """
    p = len(C)
    x, V = np.linalg.eigh(C)
    level = max(float(np.median(x)), sd, 1e-6)
    x = x - level
    x = x * np.maximum(1 - p * sd**2 / np.maximum(x**2, 1e-300), 0)
    return np.asarray((V * np.maximum(x + level, 0.01 * level)) @ V.T)


def margin_points(measure: Measure, lower: float, width: float, k: int) -> Floats:
    """k values between 0 and 1, in order, that follow a private measure whose first and last codes are the bounds themselves.

    A single step of the grid with much mass is one value that many records share: it takes the roundest number in that step.
    """
    edge = np.concatenate([[0.0], np.cumsum(measure.share)])
    level = (np.arange(k) + 0.5) / k * edge[-1]
    at = np.clip(np.searchsorted(edge, level, side="right") - 1, 0, len(measure.share) - 1)
    inside = np.clip((level - edge[at]) / np.maximum(measure.share[at], 1e-300), 0.0, 1.0)
    inner = measure.grid.size - 2
    start, stop = (np.clip((codes - 1) / inner, 0.0, 1.0) for codes in (measure.start, measure.stop))
    values = start[at] + inside * (stop[at] - start[at])
    for i in np.flatnonzero(common_values(measure) & (stop > start)):
        value = roundest(lower + width * float(start[i]), lower + width * float(stop[i]))
        values[at == i] = min(max((value - lower) / width, 0.0), 1.0)
    return np.asarray(values)


def common_values(measure: Measure) -> Array:
    """Which ranges of a measure are a single value that many records share: one step of a fine grid, far above its neighbours."""
    width = measure.stop - measure.start
    density = measure.share / width
    beside = np.zeros((2, len(width)))
    touching = measure.stop[:-1] == measure.start[1:]
    beside[0, 1:] = np.where(touching, density[:-1], 0)
    beside[1, :-1] = np.where(touching, density[1:], 0)
    alone = measure.share > np.maximum(HEAVY, STANDS_OUT * beside.max(axis=0))
    return np.asarray((width == 1) & alone & (measure.grid.size >= FINE_STEPS))


def roundest(low: float, high: float) -> float:
    """The number with the fewest decimal digits in [low, high); among those the one nearest to the middle."""
    if low <= 0 < high:
        return 0.0
    for digits in range(-12, 17):
        step = 10.0**-digits
        first, last = np.ceil(low / step - 1e-9), np.ceil(high / step - 1e-9) - 1
        if first <= last:
            return float(np.clip(np.rint((low + high) / 2 / step), first, last) * step)
    return (low + high) / 2


def tilt(values: Floats, mean: float, variance: float) -> Floats:
    """Values in order, of which some are repeated and some left out until they have a mean and a variance.

    Weights exp(ax + bx²): of all weights with these moments the nearest to equal ones (in relative entropy). Newton's method on
    the convex dual; values stay where they are, so that common values stay common. Where no weights have both moments, as for
    two values whose mean says it all, the mean wins.
    """
    centre, scale = float(values.mean()), float(values.std())
    if scale < 1e-9:
        return values
    x = (values - centre) / scale
    F = np.stack([x, x * x])
    target = np.array([(mean - centre) / scale, (variance + (mean - centre) ** 2) / scale**2])
    theta = np.zeros(2)
    loss, w = _dual(theta, F, target)
    for _ in range(TILTS):
        gap = target - F @ w - RIDGE * theta
        H = (F * w) @ F.T - np.outer(F @ w, F @ w) + np.diag(RIDGE)
        step, size = np.linalg.solve(H, gap), 1.0
        while size > 1e-6:
            tried, weights = _dual(theta + size * step, F, target)
            if tried <= loss - 0.1 * size * float(step @ gap):
                break
            size /= 2
        else:
            break
        theta, loss, w = theta + size * step, tried, weights
        if np.abs(size * step).max() < 1e-7:
            break
    running = np.cumsum(w)
    return np.asarray(values[np.searchsorted(running, (np.arange(len(x)) + 0.5) / len(x) * running[-1])])


def _dual(theta: Floats, F: Floats, target: Floats) -> tuple[float, Floats]:
    """What a tilt minimises, and its weights."""
    log = theta @ F
    w = np.exp(log - log.max())
    loss = float(log.max() + np.log(w.mean()) - theta @ target + (RIDGE * theta**2).sum() / 2)
    return loss, w / w.sum()


def kolmogorov(values: Floats, margin: Floats) -> float:
    """The largest gap between the distribution functions of values and of an ordered margin, at some of the margin's values."""
    ordered, at = np.sort(values), margin[:: max(1, len(margin) // LOOKED_AT)]
    gaps = (
        np.abs(np.searchsorted(ordered, at, side=side) - np.searchsorted(margin, at, side=side)).max()
        for side in ("left", "right")
    )
    return float(max(gaps)) / len(values)


def copula(k: int, C: Floats, margins: Floats, public: np.random.Generator) -> Floats:
    """k points with the given margins, one column of k ordered values each, and about the correlations of C."""
    d = np.sqrt(np.diag(C))
    L = np.linalg.cholesky(C / np.outer(d, d) + 1e-9 * np.eye(len(C)))
    return ranked(public.standard_normal((k, len(C))) @ L.T, margins)


def ranked(points: Floats, margins: Floats) -> Floats:
    """The margins in the order of the points, column by column."""
    out = np.empty_like(points)
    for i in range(points.shape[1]):
        out[np.argsort(points[:, i], kind="stable"), i] = margins[:, i]
    return out


def fit_points(start: Floats, margins: Floats | None, target: RealTarget, inside: Inside, tick: Tick) -> Floats:
    """Points of K whose cut moments, and margins if they are known, agree with what was measured.

    The best of all rounds is kept. Margins are tilted in the first rounds: what cutting does to moments follows the points.
    """
    first = margins
    best, kept, points = np.inf, start, start
    for turn in range(ROUNDS):
        moving = first is not None and turn < min(STILL, ROUNDS - 1)
        candidates = [inside(transported(points, target))]
        if margins is not None:
            candidates.append(inside(ranked(candidates[0], margins)))
        for points in candidates:
            missed = np.inf if moving else target.misses(points, margins)
            if missed < best:
                best, kept = missed, points
        if moving and first is not None:
            margins = tilted(first, points, target)
        tick((turn + 1) / ROUNDS)
    return kept


def cut_moments(points: Floats, spread: Spread) -> tuple[Floats, Floats]:
    """Mean and covariance of points between 0 and 1 as records are measured: in spreads, pulled back to the ball."""
    v = spread.cut(points)
    return v.mean(axis=0), np.atleast_2d(np.cov(v.T, bias=True))


def tilted(margins: Floats, points: Floats, target: RealTarget) -> Floats:
    """Margins with the measured means and variances; what cutting takes off is read off the points."""
    a, A = cut_moments(points, target.spread)
    step = target.spread.spread / 2.0**20
    mean = points.mean(axis=0) + (target.mean - a) * step
    variance = np.maximum(points.var(axis=0) + (np.diag(target.covariance) - np.diag(A)) * step**2, (0.05 * step) ** 2)
    return np.stack([matched(margins[:, i], mean[i], variance[i]) for i in range(len(a))], axis=1)


def matched(values: Floats, mean: float, variance: float) -> Floats:
    """A margin tilted to a mean and a variance; where it has no values for that, with a few more of them between the bounds."""
    found = tilt(values, mean, variance)
    if abs(found.mean() - mean) ** 2 < FAR_OFF**2 * variance and abs(found.var() / variance - 1) < 2 * FAR_OFF:
        return found
    more = max(2, len(values) // 50)
    even = np.concatenate([np.linspace(0, 1, more), values[:: max(1, len(values) // (len(values) - more))]])
    return tilt(np.quantile(even, (np.arange(len(values)) + 0.5) / len(values), method="inverted_cdf"), mean, variance)


def transported(points: Floats, target: RealTarget) -> Floats:
    """Points moved by the optimal transport map between two Gaussians: symmetric, it moves them least."""
    a, A = cut_moments(points, target.spread)
    step = target.spread.spread / 2.0**20
    H, B = _power(A, 0.5), _power(A, -0.5)
    T = B @ _power(H @ target.covariance @ H, 0.5) @ B
    u = points / step
    centre = u.mean(axis=0)
    return np.asarray((centre + (target.mean - a) + (u - centre) @ T.T) * step)


def _power(A: Floats, power: float) -> Floats:
    x, V = np.linalg.eigh((A + A.T) / 2)
    return np.asarray((V * np.maximum(x, FLAT * max(float(x.max()), 1e-12)) ** power) @ V.T)


TURNS = 30  # of matching; each brings the moments nearer by some factor
LARGEST_DEVIATION = 4.0  # deviation of the normal law that is cut: an even law, nearly


def normal_margins(mean: Floats, sd: Floats, k: int) -> Floats:
    """k ordered values a column, of a normal law cut to [0, 1], with this mean and deviation as nearly as such a law has them."""
    target_mean, target_sd = np.clip(mean, 0.0, 1.0), np.maximum(sd, 1e-6)
    m, s = target_mean.copy(), target_sd.copy()
    values = _cut(m, s, k)
    for _ in range(TURNS):
        m = np.clip(m + target_mean - values.mean(axis=0), -LARGEST_DEVIATION, 1 + LARGEST_DEVIATION)
        s = np.clip(s * target_sd / np.maximum(values.std(axis=0), 1e-9), 1e-6, LARGEST_DEVIATION)
        values = _cut(m, s, k)
    return values


def _cut(m: Floats, s: Floats, k: int) -> Floats:
    level = (np.arange(k)[:, None] + 0.5) / k
    low, high = ndtr(-m / s), ndtr((1 - m) / s)
    return np.clip(m + s * ndtri(np.clip(low + level * (high - low), 1e-300, 1 - 1e-16)), 0.0, 1.0)
