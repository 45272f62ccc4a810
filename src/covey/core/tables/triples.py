"""Tables of three attributes: on few levels of each attribute, of records, of centres, and how far the two are apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np

from covey.core.arrays import Floats, Integers
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


@dataclass(frozen=True)
class Levels:
    """Category → level, for every attribute of a domain."""

    maps: tuple[Integers, ...]

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """How many levels each attribute has."""
        return tuple(int(m.max()) + 1 for m in self.maps)

    def triples(self, within: int | None = None) -> tuple[Triple, ...]:
        """All triples of attributes that vary, or those with one of them."""
        live = [a for a, size in enumerate(self.sizes) if size > 1]
        return tuple(t for t in combinations(live, 3) if within is None or within in t)

    def after(self, maps: Sequence[Integers]) -> Levels:
        """The levels of categories whose bins these maps give."""
        return Levels(tuple(own[m] for own, m in zip(self.maps, maps, strict=True)))


@dataclass(frozen=True)
class Triples:
    """Chosen triples of attributes, and category → level for each attribute that is in one of them."""

    names: tuple[Triple, ...]
    levels: Mapping[int, Integers]

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
