"""A tree over a number's codes that grows where the noisy counts are large, and the measure that its counts suggest.

In each round the tree's frontier, a partition of all codes, is counted with fresh noise. Nodes that stand out of their noise are
replaced by their children; neighbours that do not are joined, so that the next round measures their sum with one draw instead of
many; what stays is measured again. The tree sees noisy counts and public numbers only. Why each round costs the same, whatever
the frontier is: docs/proofs/trees.md.

Its counts then become one measure, in which they agree with each other and are not negative. Upward, a node's own counts and the
sum of its children are averaged by their variances; downward, children share out what their parent has. That is least squares on
the tree (Hay, Rastogi, Miklau and Suciu 2010), with two priors for siblings, a density that rises or falls as their parents' does
and a few point masses, weighed by thinning the noise.

What noise does to tails. Bounds are public and often generous, and half of all empty ranges have positive noisy counts: mass far
beyond the largest value would ruin every mean. So ranges at both ends are emptied, into the first range that stays, until
their sum stands FAR deviations above 0, or, within reach of the body, above NEAR. The reach is the distance between the
5% and 95% quantiles. What that does to a mean: docs/proofs/trees.md.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise

import numpy as np

from covey.engine.arrays import Array, Floats, Integers, counted
from covey.engine.numbers.grid import BRANCHING, Measure, NumberGrid

STANDS_OUT = 3.0  # deviations above which a node is split
JOINED = 6.0  # deviations of the first round that a run of light neighbours gathers before another one begins
# Of all records; lighter nodes are never split, so that a tree stays small however small the noise.
FINEST_SHARE = 1 / 2000


class Tree:
    """Nodes [start, stop) with their parents, the sums of their noisy counts, and how often each was measured.

    A round with less noise than the first counts for more than one measurement, by its inverse variance.

    Node 0 is the root, whose count n is public. Where there are special codes these and one node for all values are its
    children.
    """

    def __init__(self, grid: NumberGrid, n: int) -> None:
        self.grid, self.n = grid, n
        self.sd = 0.0
        self.start, self.stop = np.array([0]), np.array([grid.size])
        self.parent, self.joins = np.array([-1]), np.array([False])
        self.total, self.times = np.array([0.0]), np.array([0.0])
        specials = np.arange(grid.specials)
        top = 0
        if grid.specials:
            self._add(specials, specials + 1, np.zeros_like(specials))
            top = int(self._add(specials[-1:] + 1, np.array([grid.size]), np.array([0]))[0])
        cells = np.arange(grid.specials, grid.size, grid.widths[0])
        atoms = np.array(grid.atoms, dtype=np.int64)
        start = np.unique(np.concatenate([cells, atoms, atoms + 1]))
        start = start[start < grid.size]
        values = self._add(start, np.append(start[1:], grid.size), np.full(len(start), top))
        self.frontier: Integers = np.concatenate([specials + 1, values])

    @property
    def edges(self) -> Integers:
        """The frontier as a partition: codes from edges[i] up to edges[i + 1] are counted together."""
        return np.append(self.start[self.frontier], self.grid.size)

    @property
    def single(self) -> Array:
        """Which nodes are values that are measured by themselves in every round."""
        return np.asarray(np.isin(self.start, self.grid.single) & (self.stop == self.start + 1))

    def see(self, noisy: Integers, sd: float) -> None:
        """Take in the noisy counts of the frontier; `self.sd` stays that of the first round, which others are weighed by."""
        self.sd = self.sd or sd
        weight = (self.sd / sd) ** 2 if sd > 0 else 1.0
        self.total[self.frontier] += weight * noisy
        self.times[self.frontier] += weight

    def grow(self) -> None:
        """Choose the next frontier."""
        at = self.frontier
        noise = STANDS_OUT * self.sd / np.sqrt(self.times[at])
        light = self.total[at] / self.times[at] <= np.maximum(noise, FINEST_SHARE * self.n)
        whole = (self.joins | self.single)[at]
        splits = ~light & ~whole & (self.stop[at] - self.start[at] > 1)
        stays = ~splits & (~light | whole)
        found = [self._split(at[splits]), at[stays]]
        # What is not light ends a run, and so does another parent.
        run = np.where(light & ~whole, self.parent[at], -1)
        for parent, places in groupby(range(len(at)), lambda i: int(run[i])):
            if parent >= 0:
                found.append(self._join(at[list(places)]))
        frontier = np.concatenate(found)
        self.frontier = frontier[np.argsort(self.start[frontier])]

    def _add(self, start: Integers, stop: Integers, parent: Integers, joins: bool = False) -> Integers:
        count = len(start)
        self.start, self.stop = np.append(self.start, start), np.append(self.stop, stop)
        self.parent, self.joins = np.append(self.parent, parent), np.append(self.joins, np.full(count, joins))
        zeros = np.zeros(count)
        self.total, self.times = np.append(self.total, zeros), np.append(self.times, zeros)
        return np.arange(len(self.start) - count, len(self.start))

    def _split(self, nodes: Integers) -> Integers:
        """Children of these nodes, as wide as the level below."""
        widths = np.array([*self.grid.widths, 1])
        start, stop = self.start[nodes], self.stop[nodes]
        own = widths[np.searchsorted(-widths, -(stop - start), side="right")]  # the first level below the node's width
        count = -(-(stop - start) // own)
        place = counted(count)
        first = np.repeat(start, count) + place * np.repeat(own, count)
        last = np.minimum(first + np.repeat(own, count), np.repeat(stop, count))
        return self._add(first, last, np.repeat(nodes, count))

    def _join(self, run: Integers) -> Integers:
        """Light neighbours of one parent, gathered into runs of noticeable mass; all of a parent's children are the parent."""
        parts: list[list[int]] = [[]]
        mass = 0.0
        for node, count in zip(run.tolist(), (self.total[run] / self.times[run]).tolist(), strict=True):
            if mass > JOINED * self.sd:
                parts.append([])
                mass = 0.0
            parts[-1].append(node)
            mass += count
        found = []
        for part in parts:
            parent = int(self.parent[part[0]])
            start, stop = self.start[part[:1]], self.stop[part[-1:]]
            if len(part) == 1:
                found.append(part[0])
            elif start[0] == self.start[parent] and stop[0] == self.stop[parent]:
                self.joins[parent] = True  # measured again, not split again
                found.append(parent)
            else:
                joined = int(self._add(start, stop, np.array([parent]), joins=True)[0])
                self.parent[part] = joined
                found.append(joined)
        return np.array(found)


FAR = {False: 3.1, True: 3.7}  # by whether the noise has Laplace's tails: passed by chance once in a thousand
NEAR = 0.0  # any positive sum stays: false mass within reach hardly moves a mean, and lost mass moves shares
NONE = 2.0  # deviations up to which nobody has a special code: columns without missing values keep none
POINT = 2.5  # deviations below which a sibling is empty, if siblings are point masses
STEEPEST = 30.0  # logarithm of a density's change across a node: beyond it everything lies at one end
MUTE = 1e12  # times a variance: such counts say nothing
DRAWS = 8  # of thinned noise: with four the choice of a prior was shaky


@dataclass(frozen=True)
class Nodes:
    """A tree's nodes with their best counts from below, and for each node its children in order."""

    start: Integers
    stop: Integers
    count: Floats
    variance: Floats
    depth: Integers
    children: list[Integers]


def tree_measure(tree: Tree, laplace: bool, public: np.random.Generator) -> Measure:
    """The measure that a tree's counts suggest. `laplace` says whether the noise has Laplace's tails."""
    if tree.sd * np.sqrt(min(BRANCHING, tree.grid.size)) > tree.n:
        return even_measure(tree.grid)  # noise on a level exceeds the table: its counts say nothing
    nodes = upward(tree)
    strict = _downward(tree, *empty_ends(tree, nodes, FAR[laplace], -1), public, draws=0)
    reach = strict.quantile(0.95) - strict.quantile(0.05)
    return _downward(tree, *empty_ends(tree, nodes, FAR[laplace], reach), public, draws=DRAWS)


def even_measure(grid: NumberGrid) -> Measure:
    """What is said of a number of which nothing is known: special codes as likely as a top cell each, values even."""
    start = np.arange(grid.specials + 1)
    share = np.full(grid.specials, 1 / (grid.specials + BRANCHING))
    return Measure(grid, start, np.append(start[1:], grid.size), np.append(share, 1 - share.sum()))


def upward(tree: Tree) -> Nodes:
    """Each node's count from its own measurements and its children's, by inverse variance; infinite where it has none."""
    depth = np.zeros(len(tree.parent), dtype=np.int64)
    above = tree.parent
    while (above >= 0).any():
        depth += above >= 0
        above = np.where(above >= 0, tree.parent[above], -1)
    precision = tree.times / tree.sd**2
    count = np.divide(tree.total, tree.times, where=tree.times > 0, out=np.zeros(len(depth)))
    variance = np.divide(1.0, precision, where=precision > 0, out=np.full(len(depth), np.inf))
    for level in range(int(depth.max()), 0, -1):
        own = depth == level
        above, parents = tree.parent[own], np.unique(tree.parent[own])
        total, spread = (np.bincount(above, x[own], minlength=len(depth))[parents] for x in (count, variance))
        both = 1 / (precision[parents] + 1 / spread)
        count[parents] = both * (precision[parents] * count[parents] + total / spread)
        variance[parents] = both
    order = np.lexsort([tree.start, tree.parent])[1:]
    cuts = np.searchsorted(tree.parent[order], np.arange(len(depth) + 1))
    children = [order[i:j] for i, j in pairwise(cuts)]
    return Nodes(tree.start, tree.stop, count, variance, depth, children)


def empty_ends(tree: Tree, nodes: Nodes, far: float, reach: int) -> tuple[Nodes, Array]:
    """Which nodes at both ends are noise alone; their counts go to the first node that stays, on every level.

    Special codes that do not stand out are empty too; values share what these have.
    Where neither a sum nor a count stands out inside a node that is wider than the reach, its children say nothing at all.
    """
    count, variance = nodes.count.copy(), nodes.variance.copy()
    single = tree.single
    gone = single & (nodes.start < tree.grid.specials) & (count <= NONE * np.sqrt(variance))
    top = 0
    if tree.grid.specials:
        top = next((int(c) for c in nodes.children[0] if nodes.start[c] == tree.grid.specials), 0)
    for turn in (1, -1):
        node = top
        while len(nodes.children[node]):
            line = nodes.children[node]
            line = line[~gone[line]][::turn]
            least = far if nodes.stop[node] - nodes.start[node] > reach else NEAR
            seen = np.cumsum(count[line]) > least * np.sqrt(np.cumsum(variance[line]))
            if least and not seen.any() and not (count[line] > far * np.sqrt(variance[line])).any():
                variance[line] *= MUTE
                break
            k = int(np.argmax(seen)) if seen.any() else int(np.argmax(count[line]))
            if least:
                k = _near(nodes, line[: k + 1], np.where(single[line], -np.inf, count[line])[: k + 1], reach, turn)
            node = int(line[k])
            gone[line[:k]] = True
            count[node] += count[line[:k]].sum()
            variance[node] += variance[line[:k]].sum()
    return replace(nodes, count=count, variance=variance), gone


def _near(nodes: Nodes, line: Integers, count: Floats, reach: int, turn: int) -> int:
    """The first sibling that stays, of those up to one that stands out: within reach of its far side a positive sum is enough.

    Values that are measured by themselves, such as a public maximum, stand out or are empty.
    """
    last, others = line[-1], line[:-1]
    away = nodes.stop[last] - nodes.start[others] if turn > 0 else nodes.stop[others] - nodes.start[last]
    close = np.flatnonzero((away <= reach) & np.isfinite(count[:-1]))
    positive = close[np.cumsum(count[close]) > NEAR]
    return int(positive[0]) if len(positive) else len(others)


def _downward(tree: Tree, nodes: Nodes, gone: Array, public: np.random.Generator, draws: int) -> Measure:
    """Children share out what their parent has, from the root's public n."""
    mass = np.zeros(len(gone))
    mass[0] = tree.n
    dead = gone.copy()
    single = tree.single
    pieces = np.array([0])  # a partition of what is alive, one level finer each time
    for level in range(1, int(nodes.depth.max()) + 1):
        own = np.flatnonzero(nodes.depth == level)
        dead[own] |= dead[tree.parent[own]] | (mass[tree.parent[own]] <= 0)
        own = own[~dead[own]]
        if not len(own):
            break
        own = own[np.lexsort([nodes.start[own], tree.parent[own]])]
        first = np.flatnonzero(np.diff(tree.parent[own], prepend=-1))
        specials = nodes.start[own] < tree.grid.specials
        slope = np.zeros(len(mass))
        # A value that most records have is what a range beside it is the tail of; other single values part no ranges.
        body = pieces[~single[pieces] | (mass[pieces] > tree.n / 2)]
        slope[body] = slopes(nodes.start[body], nodes.stop[body], mass[body])
        family = Family(
            nodes.variance[own],
            mass[tree.parent[own[first]]],
            _sloping(nodes, own, tree.parent[own], slope),
            first,
            np.logical_or.reduceat(specials, first),
        )
        mass[own] = family.share_out(nodes.count[own], public, draws)
        pieces = np.concatenate([pieces[~np.isin(pieces, tree.parent[own])], own])
        pieces = pieces[np.argsort(nodes.start[pieces])]
    split = np.zeros(len(mass), dtype=bool)
    split[tree.parent[1:][~gone[1:]]] = True
    leaf = np.flatnonzero(~split & ~dead & (mass > 0))
    leaf = leaf[np.argsort(nodes.start[leaf])]
    return Measure(tree.grid, nodes.start[leaf], nodes.stop[leaf], mass[leaf] / mass[leaf].sum())


def slopes(start: Integers, stop: Integers, mass: Floats) -> Floats:
    """How fast the logarithm of the density changes at each of these ranges, which are in order, judged by their neighbours.

    Of the slopes toward both sides the smaller one where they agree, 0 where they do not. A tail that lies in one wide range
    falls as the range before it says; evenly spread it would spoil the mean. Most tails fall faster near the body than farther
    out: between the middles of the two ranges the slope is too small, that of the exponential law with these two masses is too
    large, and their geometric mean is taken.
    """
    width = (stop - start).astype(np.float64)
    alive = mass > 0
    count = np.where(alive, mass, 1.0)
    apart = ((start + stop)[1:] - (start + stop)[:-1]) / 2  # whole numbers first: codes may be as large as floats count
    near = (start[1:] - stop[:-1] <= 1) & alive[1:] & alive[:-1]  # a single value between two ranges does not part them
    between = np.where(near, np.diff(np.log(count / width)) / apart, np.nan)
    left, right = np.append(np.nan, between), np.append(between, np.nan)
    smaller = np.where(np.abs(left) < np.abs(right), left, right)
    both = np.where(np.sign(left) == np.sign(right), smaller, 0.0)
    upper = -np.append(0.0, np.log1p(count[:-1] / count[1:]) / width[:-1])  # a tail upward falls, one downward rises
    lower = np.append(np.log1p(count[1:] / count[:-1]) / width[1:], 0.0)
    found = np.where(np.isnan(left), _steeper(right, lower), np.where(np.isnan(right), _steeper(left, upper), both))
    return np.asarray(np.clip(np.nan_to_num(found) * width, -STEEPEST, STEEPEST) / width)


def _steeper(slope: Floats, tail: Floats) -> Floats:
    """The geometric mean with a tail's slope where that has the same sign and is steeper."""
    return np.where(slope * tail > slope**2, np.sign(slope) * np.sqrt(np.abs(slope * tail)), slope)


def _sloping(nodes: Nodes, own: Integers, parent: Integers, slope: Floats) -> Floats:
    """What children get of a density that changes exponentially across their parents, up to a factor per parent."""
    width = (nodes.stop[own] - nodes.start[own]).astype(np.float64)
    middle = ((nodes.start + nodes.stop)[own] - (nodes.start + nodes.stop)[parent]) / 2
    half = slope[parent] * width / 2
    bend = np.where(half == 0, 1.0, np.sinh(half) / np.where(half == 0, 1.0, half))
    return np.asarray(np.exp(slope[parent] * middle) * width * bend)


@dataclass(frozen=True)
class Family:
    """Siblings side by side, those of a parent together from `first` on.

    Variances, the parents' positive totals, and the parts of these that siblings would have if nothing were counted, up to a
    factor per parent. `plain` parents have children of different kinds, to which no common prior applies.
    """

    variance: Floats
    total: Floats
    shape: Floats
    first: Integers
    plain: Array

    @cached_property
    def expected(self) -> Floats:
        """The parents' totals in these parts."""
        return np.asarray(self.spread(self.total / self.sums(self.shape)) * self.shape)

    def sums(self, x: Floats) -> Floats:
        """Sums over siblings."""
        return np.asarray(np.add.reduceat(x, self.first, axis=-1))

    def spread(self, x: Array) -> Array:
        """One value per parent, for each of its children."""
        return np.repeat(x, np.diff(np.append(self.first, len(self.variance))), axis=-1)

    def share_out(self, count: Floats, public: np.random.Generator, draws: int) -> Floats:
        """Counts that are not negative and have the parents' totals: the two priors' answers, weighed by thinning.

        count + ξ and count − ξ have (for Gaussian noise) independent errors of twice the variance: each prior runs on the one
        and is scored on the other.
        """
        count = self.balanced(count, self.variance)
        smooth = self.smoothly(count, self.variance)
        if not draws:
            return smooth
        xi = self.balanced(public.standard_normal((draws, len(count))) * np.sqrt(self.variance), self.variance, 0.0)
        losses = [
            self.sums(((answer(count + xi, 2 * self.variance) - (count - xi)) ** 2 / self.variance).mean(axis=0))
            for answer in (self.smoothly, self.points)
        ]
        trust = 1 / (1 + np.exp(np.clip((losses[0] - losses[1]) / 4, -50, 50)))
        trust = self.spread(np.where(self.plain, 1.0, trust))
        return np.asarray(trust * smooth + (1 - trust) * self.points(count, self.variance))

    def balanced(self, count: Floats, variance: Floats, total: Floats | float | None = None) -> Floats:
        """The nearest counts with the parents' totals."""
        missing = (self.total if total is None else total) - self.sums(count)
        return np.asarray(count + self.spread(missing / self.sums(variance)) * variance)

    def smoothly(self, count: Floats, variance: Floats) -> Floats:
        """Shrunk toward what is expected (James and Stein 1961), then projected."""
        distance = self.sums((count - self.expected) ** 2 / variance)
        siblings = np.diff(np.append(self.first, len(variance)))
        factor = np.maximum(0.0, 1 - np.maximum(siblings - 3, 0) / np.maximum(distance, 1e-9))
        factor = self.spread(np.where(self.plain, 1.0, factor))
        shrunk = self.expected + factor * (count - self.expected)
        return self.projected(shrunk, variance, np.ones(count.shape, dtype=bool))

    def points(self, count: Floats, variance: Floats) -> Floats:
        """Nothing but what stands out; what is expected where nothing does."""
        live = count > POINT * np.sqrt(variance)
        none = self.spread(~np.logical_or.reduceat(live, self.first, axis=-1))
        return np.where(none, self.expected, self.projected(count, variance, live | none))

    def projected(self, count: Floats, variance: Floats, live: Array) -> Floats:
        """The nearest counts ≥ 0 with the parents' totals, zero where not live: what falls below 0 leaves, until none does."""
        while True:
            excess = self.sums(np.where(live, count, 0.0)) - self.total
            shift = self.spread(excess / np.maximum(self.sums(np.where(live, variance, 0.0)), 1e-300))
            found = np.where(live, count - shift * variance, 0.0)
            low = live & (found <= 0)
            if not low.any():
                return np.maximum(found, 0.0)
            live = live & ~low
