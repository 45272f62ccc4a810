"""Tables of three attributes, on few levels of each: what they should be, centres to start from, and the pull toward them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.special import chdtri

from covey.core.arrays import Array, Floats, Integers
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain

Triple = tuple[int, int, int]


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


def varying_triples(sizes: Sequence[int], within: int | None = None) -> tuple[Triple, ...]:
    """All triples of attributes with more than one level, or those with one of them."""
    live = [a for a, size in enumerate(sizes) if size > 1]
    return tuple(t for t in combinations(live, 3) if within is None or within in t)


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

    def sizes(self, triple: Triple) -> tuple[int, int, int]:
        """Levels of the three attributes."""
        a, b, c = (int(self.levels[x].max()) + 1 for x in triple)
        return a, b, c

    def shares(self, points: Floats, domain: Domain) -> dict[int, Floats]:
        """Shares of levels in each of some points, by attribute."""
        out = {}
        for a, levels in self.levels.items():
            own = np.zeros((len(points), int(levels.max()) + 1), dtype=points.dtype)
            np.add.at(own.T, levels, points[:, domain.block(a)].T)
            out[a] = own
        return out


def deviations(counts: Integers, expected: Integers, starts: Integers) -> Integers:
    """Σ|count − expected| of each of several tables that lie side by side. One replaced row moves each sum by 2 at most."""
    return np.asarray(np.add.reduceat(np.abs(counts - expected), starts[:-1]))


PULL = 4.0  # weight of a cell of a triple beside that of a pair: triples are few
STRONGEST = 0.95  # of a centre's law moves to one cell of a triple at most, before the fit
BY_CHANCE = 1e-3  # how often noise alone may pass for something that was measured: there are a few triples
LARGEST = 30.0  # times what centres have in a cell: more is noise in a cell that they hardly know


def shrunken(noisy: Floats, model: Floats, sd: float) -> Floats:
    """The model's table with what the noisy one says beyond its noise: pairs and the interaction of all three apart.

    Of each part r of the difference, with f degrees of freedom, (1 − f·sd²/‖r‖²)₊ is kept (James and Stein), and nothing of one
    that noise alone would make as large in one of a thousand tables.
    """
    gap = noisy - model
    three = gap
    for axis in range(3):
        three = three - three.mean(axis=axis, keepdims=True)
    free = int(np.prod([size - 1 for size in gap.shape]))
    out = model
    for part, freedom in ((three, free), (gap - three, gap.size - 1 - free)):
        size = float(np.vdot(part, part))
        if freedom and size > float(chdtri(freedom, BY_CHANCE)) * sd**2:
            out = out + part * (1 - freedom * sd**2 / size)
    kept = np.maximum(out, 0)
    return model if out is model or not kept.any() else np.asarray(kept / kept.sum())


def table_of(weights: Array, shares: dict[int, Array], triple: tuple[int, int, int]) -> Array:
    """The table of a triple, for a mixture of products."""
    a, b, c = (shares[x] for x in triple)
    pair = (weights[:, None, None] * a[:, :, None] * b[:, None, :]).reshape(len(a), -1)
    return np.asarray((pair.T @ c).reshape(a.shape[1], b.shape[1], c.shape[1]))


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
        a, b, c = (shares[x] for x in triple)
        law = (a[:, :, None, None] * b[:, None, :, None] * c[:, None, None, :] * ratio).reshape(k, -1)
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


def triple_pull(triples: Triples, domain: Domain) -> Callable[[Array, Array], Array]:
    """The gradient of Σ(cell − goal)² over the triples' tables, times k, in float32, for centres of some weights."""
    tables = [table.astype(np.float32) for table in triples.goals]
    scale = np.float32(4 * PULL / len(domain.sizes) ** 2)

    def pull(y: Array, weights: Array) -> Array:
        own = triples.shares(y, domain)
        slopes = {x: np.zeros_like(shares) for x, shares in own.items()}
        k = len(y)
        for triple, table in zip(triples.names, tables, strict=True):
            a, b, c = (own[x] for x in triple)
            gap = scale * (table_of(weights, own, triple) - table)
            i, j, m = gap.shape
            beyond = (c @ gap.reshape(i * j, m).T).reshape(k, i, j)
            slopes[triple[0]] += np.einsum("kij,kj->ki", beyond, b)
            slopes[triple[1]] += np.einsum("kij,ki->kj", beyond, a)
            both = (a[:, :, None] * b[:, None, :]).reshape(k, i * j)
            slopes[triple[2]] += both @ gap.reshape(i * j, m)
        out = np.zeros_like(y)
        for x, slope in slopes.items():
            out[:, domain.block(x)] = slope[:, triples.levels[x]]
        return out

    return pull
