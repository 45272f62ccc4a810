"""Weighted centres in K whose moments match given ones: the microaggregates of `regain`, found after the measurement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import comb

import numpy as np
from scipy.special import chdtri, softmax

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.codes.domain import Domain
from covey.engine.codes.zeros import Zeros
from covey.engine.fit import wide
from covey.engine.fit.spectrum import RankScores
from covey.engine.points import WeightedPoints

LEFT_TO_RIGHT = 8  # numpy adds more numbers than these in another order: of more categories it is asked itself


class BlockSums:
    """Adds up, or takes the largest of, the rows of each attribute. Columns are whatever the caller has many of."""

    def __init__(self, domain: Domain) -> None:
        self._domain, sizes = domain, domain.counts
        alike = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]  # attributes of one size, and their rows
        self._alike = [(own, domain.starts[own][:, None] + np.arange(sizes[own[0]])) for own in alike]

    def _each(self, x: Array, reduce: Callable[[Array], Array]) -> Array:
        out = np.empty((len(self._domain.sizes), x.shape[1]), x.dtype)
        for own, rows in self._alike:
            out[own] = reduce(x.take(rows, axis=0))
        return out.take(self._domain.block_of, axis=0)

    def largest(self, x: Array) -> Array:
        """For every row the largest entry of its attribute, column by column."""
        return self._each(x, lambda parts: parts.max(axis=1))

    def total(self, x: Array) -> Array:
        """For every row the sum over its attribute, column by column."""
        return self._each(x, _added)

    def softmax(self, logits: Array) -> Array:
        """Shares of the categories of each attribute."""
        e = np.exp(logits - self.largest(logits))
        return np.asarray(e / self.total(e))


def _added(parts: Array) -> Array:
    """Sums over the second axis: to the first entry that of the others, in the order in which numpy adds up rows of a matrix."""
    m, c, k = parts.shape
    if c <= LEFT_TO_RIGHT:
        return np.asarray(parts[:, 0] + parts[:, 1:].sum(axis=1))
    return np.add.reduceat(parts.reshape(m * c, k), np.arange(0, m * c, c), axis=0)


RANK_WEIGHT = 0.2  # of a rank covariance beside a cell, per pair of bins
OBEY = 0.4  # of the steps pass before centres choose which side of a structural zero they are on: by then they have one

LEAST = 1e-6  # of a category in a centre that a fit goes on from: smaller ones would never come back

Tick = Callable[[float], None]


@dataclass(frozen=True)
class Goal:
    """What centres over categories should look like: one-way shares, covariances of pairs, and what else is known of them.

    With `ranks`, rank covariances count in addition. `zeros` are combinations that no centre may allow.
    """

    shares: Floats
    covariances: Floats
    domain: Domain
    ranks: RankScores | None = None
    zeros: Zeros | None = None
    emphasis: Floats | None = None  # how much each pair of attributes counts; 1 where it is not given
    triples: Triples | None = None

    @property
    def pairs(self) -> Floats:
        """Shares of pairs of categories, none below zero."""
        joint = np.maximum(self.covariances + np.outer(self.shares, self.shares), 0)
        return np.where(self.zeros.pairs, 0.0, joint) if self.zeros else joint


def fit_category_centres(
    goal: Goal, k: int, steps: int, public: np.random.Generator, tick: Tick, start: WeightedPoints | None = None
) -> WeightedPoints:
    """k products of categorical laws whose one-way and pair tables match.

    Adam on softmax logits with a cosine step, in float32: a step costs k·D², or k²·D where there are many categories. Without
    covariances one centre says it all. All centres weigh the same, unless there are structural zeros: after OBEY of the steps
    each centre gives up the categories that would let it meet one, and from there on the weights move too. With tables of
    triples the fit starts from given centres, which lean to these first.
    """
    domain, zeros = goal.domain, goal.zeros
    if not zeros and goal.triples is None and not np.any(goal.covariances):
        return WeightedPoints(np.ones(1), goal.shares[None].copy())
    q, blocks = len(domain.sizes), BlockSums(domain)
    f4 = np.float32
    along = None if goal.ranks is None else _pull_along(goal.ranks, goal.covariances, q)
    heights: Array = np.zeros(k, f4)  # logarithms of the weights
    weights: Array | None = None
    three = None if goal.triples is None else triple_pull(goal.triples, domain, 4 * PULL / q**2)
    if goal.triples is not None and start is not None:
        leaning = tilted(start, k, goal.triples, domain, public)
        least = 0.0 if zeros else LEAST  # what a centre excludes for a structural zero stays excluded
        with np.errstate(divide="ignore"):
            logits: Array = np.log(np.maximum(leaning.points, least)).astype(f4)
        if zeros:
            heights = np.log(leaning.weights).astype(f4)
            weights = softmax(heights)
    else:
        logits = np.log(_starting_points(goal, k, public)).astype(f4)
    pull = _pull(goal, k, public)
    mean = goal.shares.astype(f4)
    # A row per category, where sums over them are quick; products take a row per centre.
    logits = np.ascontiguousarray(logits.T)
    mover, weigher = _adam(steps, logits), _adam(steps, heights)
    for t in range(1, steps + 1):
        shares = blocks.softmax(logits)
        y = np.ascontiguousarray(shares.T)
        scale = None if weights is None else np.sqrt(weights * f4(k))[:, None]
        shift = f4(4 / q) * ((y.mean(axis=0) if weights is None else weights @ y) - mean)
        g = (pull(y) if scale is None else pull(scale * y) / scale) + shift
        if along is not None:
            g += along(y, scale)
        of_three = None if three is None else three(y, np.full(k, 1 / k, f4) if weights is None else weights)
        if weights is not None and scale is not None:
            slope = np.einsum("kd,kd->k", y, g + shift) / 2
            if of_three is not None:  # of the third degree in y, or more, not of the second
                slope += np.einsum("kd,kd->k", y, of_three) / 3
            heights -= weigher((slope - weights @ slope) * scale[:, 0] ** 2, t)
            weights = softmax(heights)
        if of_three is not None:
            g += of_three
        if scale is not None:
            g *= scale**2
        g = np.ascontiguousarray(g.T)
        g *= shares
        g -= shares * blocks.total(g)
        logits -= mover(g, t)
        if zeros and weights is None and t >= OBEY * steps:
            keep = zeros.allowed(y)
            if keep is not None:
                logits[~keep.T] = -np.inf
                weights = softmax(heights)
        if t % 50 == 0:
            tick(t / steps)
    points = np.ascontiguousarray(blocks.softmax(logits.astype(np.float64)).T)
    return WeightedPoints(np.full(k, 1 / k) if weights is None else softmax(heights.astype(np.float64)), points)


def _adam(steps: int, like: Array) -> Callable[[Array, int], Array]:
    """Steps of Adam with a cosine rate."""
    f4, first, second = np.float32, np.zeros_like(like), np.zeros_like(like)

    def step(g: Array, t: int) -> Array:
        first[:] += f4(0.1) * (g - first)
        second[:] += f4(0.01) * (g * g - second)
        rate = 0.08 * (0.5 * (1 + np.cos(np.pi * t / steps)) + 0.02) / (1 - 0.9**t)
        return np.asarray(f4(rate) * first / (np.sqrt(second / f4(1 - 0.99**t)) + f4(1e-12)))

    return step


def _pull(goal: Goal, k: int, public: np.random.Generator) -> Callable[[Array], Array]:
    """y times four times the gap between the centres' pair tables and their targets, by entry of a pair of attributes.

    For many categories the target is summarised by its leading directions first; attributes' own blocks are imputed.
    """
    f4, domain = np.float32, goal.domain
    q, D = len(domain.sizes), domain.total
    target = goal.pairs.astype(f4)
    if D > wide.LOW_RANK_CATEGORIES:
        start = public.standard_normal((D, wide.BASIS))
        values, basis = wide.imputed_directions(target, domain.inside_blocks, start, lambda found: np.maximum(found, 0))
        inside = wide.core(np, basis, np.diag(values))
        return lambda y: f4(4 / q**2) * wide.moment_gap(np, y, inside)[1]
    weight = 1.0 if goal.emphasis is None else domain.spread(goal.emphasis)
    off = (~domain.same_block * weight / q**2).astype(f4)
    target *= off
    return lambda y: y @ (4 * ((y.T @ y) * (off / f4(k)) - target))


def _pull_along(ranks: RankScores, covariances: Floats, q: int) -> Callable[[Array, Array | None], Array]:
    """The same along vectors R of ranks: four times y·R·(W∘(Rᵀ·gap·R))·Rᵀ, in float32; with weights by their scale √(k·w)."""
    f4, size = np.float32, ranks.domain.counts[ranks.attributes].astype(np.float64)
    R = ranks.unit.astype(f4)
    W = (RANK_WEIGHT * np.outer(size, size) * (1 - np.eye(len(size))) * (4 / q**2)).astype(f4)
    goal = (ranks.unit.T @ covariances @ ranks.unit).astype(f4)

    def pull(y: Array, scale: Array | None) -> Array:
        z = y @ R
        centred = z - (z.mean(axis=0) if scale is None else (scale**2 * z).mean(axis=0))
        weighed = centred if scale is None else scale * centred
        return np.asarray((centred @ (W * (weighed.T @ weighed / f4(len(y)) - goal))) @ R.T)

    return pull


def _starting_points(goal: Goal, k: int, public: np.random.Generator) -> Floats:
    """Points shares + V√λ·g from the positive part of the covariances, kept inside the simplex; with none, scattered around."""
    shares, covariances = goal.shares, goal.covariances
    if not np.any(covariances):
        return np.asarray(np.maximum(shares, 1e-6) * np.exp(public.standard_normal((k, len(shares)))))
    if len(shares) > wide.LOW_RANK_CATEGORIES:
        start = public.standard_normal((len(shares), wide.BASIS)).astype(np.float32)
        none = np.zeros(len(shares), np.float32)
        w, vectors = wide.leading_eigenvectors(np, covariances.astype(np.float32), none, start, wide.SWEEPS)
    else:
        w, vectors = np.linalg.eigh(covariances)
    keep = w > 0.02 * w.max()
    cloud = (public.standard_normal((k, int(keep.sum()))) * np.sqrt(w[keep])) @ vectors[:, keep].T
    return np.asarray(np.maximum(shares + cloud, 0.002 * np.maximum(shares, 1e-6)))


# Tables of three to five attributes, on few levels of each: what they should be, centres to start from, the pull toward them.

Triple = tuple[int, ...]


def level_map(share: Floats, ordered: bool, most: int) -> Integers:
    """Category → level, at most so many: runs of about equal mass if ordered, else the commonest alone and the rest together."""
    c = len(share)
    if c <= most:
        return np.arange(c)
    if not ordered:
        out = np.full(c, most - 1)
        out[np.argsort(-share, kind="stable")[: most - 1]] = np.arange(most - 1)
        return out
    total = float(share.sum())
    middle = (np.cumsum(share) - share / 2) / total if total > 0 else np.arange(c) / c
    return np.asarray(np.unique(np.minimum((middle * most).astype(np.int64), most - 1), return_inverse=True)[1])


def varying_triples(sizes: Sequence[int], within: int | None = None, room: int = 0) -> tuple[Triple, ...]:
    """All triples of attributes with more than one level, and all fours and fives of two levels if so many sets have `room`."""
    live = [a for a, size in enumerate(sizes) if size > 1]
    two = [a for a in live if sizes[a] == 2]
    found: list[Triple] = list(combinations(live, 3))
    for degree in (4, 5):
        found += combinations(two, degree) if len(found) + comb(len(two), degree) <= room else ()
    return tuple(t for t in found if within is None or within in t)  # those with one of them


@dataclass(frozen=True)
class Triples:
    """Chosen triples of attributes, and category → level for each attribute that is in one of them."""

    names: tuple[Triple, ...]
    levels: Mapping[int, Integers]
    goals: tuple[Floats, ...] = ()  # shares of the cells of each, where a fit should reach them

    def __bool__(self) -> bool:
        return bool(self.names)

    def of(self, maps: Sequence[Integers]) -> Triples:
        """The same triples with levels of categories, whose bins these maps give."""
        return Triples(self.names, {a: levels[maps[a]] for a, levels in self.levels.items()})

    def sizes(self, triple: Triple) -> tuple[int, ...]:
        """Levels of the attributes."""
        return tuple(int(self.levels[x].max()) + 1 for x in triple)

    def shares(self, points: Floats, domain: Domain) -> dict[int, Floats]:
        """Shares of levels in each of some points, by attribute."""
        out = {}
        for a, levels in self.levels.items():
            own = np.zeros((len(points), int(levels.max()) + 1), dtype=points.dtype)
            np.add.at(own.T, levels, points[:, domain.block(a)].T)
            out[a] = own
        return out


def signs_of(sets: Sequence[Triple], starts: Integers) -> Integers:
    """For each cell of tables that lie side by side: 0 in those of three attributes, in others the product of their signs."""
    own = {d: reduce(np.kron, [np.array([1, -1])] * d) for d in (4, 5)}
    return np.concatenate([own.get(len(s), [0] * size) for s, size in zip(sets, np.diff(starts), strict=True)])


def deviations(counts: Integers, expected: Integers, starts: Integers, signs: Integers) -> Integers:
    """Σ|count − expected| of tables, |Σ sign·(count − expected)| where there are signs: a row moves each by 2 at most."""
    gap = counts - expected
    sums = [np.add.reduceat(own, starts[:-1]) for own in (np.where(signs == 0, np.abs(gap), 0), signs * gap)]
    return np.asarray(sums[0] + np.abs(sums[1]))


PULL = 4.0  # weight of a cell of a triple beside that of a pair: triples are few
STRONGEST = 0.95  # of a centre's law moves to one cell of a triple at most, before the fit
BY_CHANCE = 1e-3  # how often noise alone may pass for something that was measured: there are a few triples
LARGEST = 30.0  # times what centres have in a cell: more is noise in a cell that they hardly know


def shrunken(noisy: Floats, model: Floats, sd: float) -> Floats:
    """The model's table with what the noisy one says beyond its noise: the interaction of all attributes apart.

    Of each part r of the difference, with f degrees of freedom, (1 − f·sd²/‖r‖²)₊ is kept (James and Stein), and nothing of one
    that noise alone would make as large in one of a thousand tables.
    """
    gap = noisy - model
    three = gap
    for axis in range(gap.ndim):
        three = three - three.mean(axis=axis, keepdims=True)
    free = int(np.prod([size - 1 for size in gap.shape]))
    out = model
    for part, freedom in ((three, free), (gap - three, gap.size - 1 - free)):
        size = float(np.vdot(part, part))
        if freedom and size > float(chdtri(freedom, BY_CHANCE)) * sd**2:
            out = out + part * (1 - freedom * sd**2 / size)
    kept = np.maximum(out, 0)
    return model if out is model or not kept.any() else np.asarray(kept / kept.sum())


def products(law: Array, shares: Sequence[Array]) -> Array:
    """For each centre the cells' shares of independent attributes, times what is given."""
    for own in shares:
        law = (law[:, :, None] * own[:, None, :]).reshape(len(own), -1)
    return law


def table_of(weights: Array, shares: dict[int, Array], triple: Triple) -> Array:
    """The table of a triple, for a mixture of products."""
    *others, last = (shares[x] for x in triple)
    table = products(weights[:, None], others).T @ last
    return np.asarray(table.reshape([shares[x].shape[1] for x in triple]))


def tilted(
    cloud: WeightedPoints, k: int, triples: Triples, domain: Domain, public: np.random.Generator
) -> WeightedPoints:
    """k centres that already lean to the triples' tables, as far as these differ from those of the given ones.

    For one triple after the other each centre draws a cell, by its own law times how much more often the goal has the cell than
    all centres together, and moves a part of its law there: twice the tables' total variation. What a centre excludes stays
    excluded.
    """
    copies = np.resize(np.arange(len(cloud.weights)), k)
    weights = cloud.weights[copies] / np.bincount(copies, minlength=len(cloud.weights))[copies]
    points = cloud.points[copies].copy()
    for triple, table in zip(triples.names, triples.goals, strict=True):
        shares = triples.shares(points, domain)
        now = table_of(weights, shares, triple)
        part = min(STRONGEST, float(np.abs(table - now).sum()))
        ratio = np.minimum(table / np.maximum(now, 1e-12), LARGEST)
        law = products(np.ones((k, 1)), [shares[x] for x in triple]) * ratio.ravel()
        running = np.cumsum(law, axis=1)
        drawn = (running < (public.random(k) * running[:, -1])[:, None]).sum(axis=1)
        cell = np.unravel_index(np.minimum(drawn, law.shape[1] - 1), table.shape)
        for x, level in zip(triple, cell, strict=True):
            own = points[:, domain.block(x)]
            chosen = np.where(triples.levels[x] == level[:, None], own, 0.0)
            mass = chosen.sum(axis=1, keepdims=True)
            moved = (1 - part) * own + part * chosen / np.maximum(mass, 1e-300)
            points[:, domain.block(x)] = np.where(mass > 0, moved, own)
    return WeightedPoints(weights, points)


def triple_pull(triples: Triples, domain: Domain, weight: float) -> Callable[[Array, Array], Array]:
    """The gradient of weight/2·Σ(cell − goal)² over the triples' tables, for each centre divided by its own weight."""

    def pull(y: Array, weights: Array) -> Array:
        own = triples.shares(y, domain)
        slopes = {x: np.zeros_like(shares) for x, shares in own.items()}
        k = len(y)
        for triple, table in zip(triples.names, triples.goals, strict=True):
            gap = y.dtype.type(weight) * (table_of(weights, own, triple) - table.astype(y.dtype))
            for at, x in enumerate(triple):
                beside = products(np.ones((k, 1), y.dtype), [own[other] for other in triple if other != x])
                slopes[x] += beside @ np.moveaxis(gap, at, -1).reshape(-1, gap.shape[at])
        out = np.zeros_like(y)
        for x, slope in slopes.items():
            out[:, domain.block(x)] = slope[:, triples.levels[x]]
        return out

    return pull
