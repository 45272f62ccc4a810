"""Shares of three columns at once, where a release measured their table: docs/proofs/intervals.md, "Three columns"."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from covey.answers.estimates import Estimate
from covey.answers.evidence import TAILS
from covey.answers.moments import Rows
from covey.answers.numbers import NumberEvidence
from covey.core.arrays import Floats, Integers
from covey.core.tables.triples import Triple
from covey.errors import CannotAnswerError
from covey.methods.regain.measured import MeasuredBits, MeasuredNumbers

if TYPE_CHECKING:
    from covey.answers.release import Release

Scores = Mapping[int, Floats]  # of units, by attribute
MOST_COLUMNS = (
    "this question is about {count} columns at once, and one and two at a time were measured{more}. Ask about two; in Python "
    "release.interval(function) gives an approximate interval."
)
COARSE = (
    "these three columns were measured together, {name!r} on {count} levels, and the question tells apart values of one level. "
    "Conditions on whole levels can be answered: covey tables lists them."
)


@dataclass(frozen=True)
class ThreeWay:
    """A measured table of three attributes: unbiased shares of levels, which sum to 1, and the deviation of their noise."""

    triple: Triple
    levels: tuple[Integers, ...]  # unit → level, of each of the three
    shares: Floats
    sd: float
    pure: bool

    @cached_property
    def masses(self) -> tuple[Floats, ...]:
        """Units on each level, by attribute."""
        return tuple(np.bincount(levels).astype(np.float64) for levels in self.levels)

    def weights(self, scores: Scores, names: tuple[str, ...]) -> Floats:
        """The product of conditions as weights of the cells; refused where a condition cuts a level."""
        out = np.ones(self.shares.shape)
        for axis, (a, levels, units) in enumerate(zip(self.triple, self.levels, self.masses, strict=True)):
            if a not in scores:
                continue
            own = np.bincount(levels, scores[a]) / units
            if not np.allclose(own[levels], scores[a], rtol=0, atol=1e-9):
                raise CannotAnswerError(COARSE.format(name=names[a], count=len(own)))
            out = out * np.expand_dims(own, [k for k in range(3) if k != axis])
        return out

    def noise(self, slopes: Floats) -> tuple[float, float]:
        """Variance and fourth cumulant of a combination of cells. Their sum is known, so the slopes' mean counts nothing."""
        free = slopes - slopes.mean()
        fourth = (TAILS if self.pure else 0.0) * self.sd**4 * float((free**4).sum())
        return self.sd**2 * float((free**2).sum()), fourth

    def sampling(self, slopes: Floats, rows: Rows) -> float:
        """The variance, over rows, of what one row adds to a combination."""
        cells = [levels[rows.codes[:, a]] for a, levels in zip(self.triple, self.levels, strict=True)]
        return float(slopes[tuple(cells)].var())


@dataclass(frozen=True)
class SignTable(ThreeWay):
    """A table of three flags, from means of their signs and of products of two and three of these.

    A cell is Σ_T χ_T·m_T/8 over the eight sets T of the three, m_T the mean of the product of the signs in T and χ_T that product
    in the cell. `sds` has the noise on m_T by the size of T; it is independent from set to set.
    """

    sds: tuple[float, float, float, float]

    @classmethod
    def of(
        cls, triple: Triple, means: Mapping[tuple[int, ...], float], sds: tuple[float, float, float, float]
    ) -> SignTable:
        """By means of products, for every set of axes."""
        shares = sum((mean * _signs(T) for T, mean in means.items()), np.zeros((2, 2, 2))) / 8
        return cls(triple, (np.arange(2),) * 3, shares, 0.0, False, sds)

    def noise(self, slopes: Floats) -> tuple[float, float]:
        """As above."""
        parts = [self.sds[len(T)] * float((slopes * _signs(T)).sum()) / 8 for T in SETS]
        return float(np.sum(np.square(parts))), 0.0


SETS: tuple[tuple[int, ...], ...] = tuple(T for size in range(4) for T in combinations(range(3), size))


def _signs(T: tuple[int, ...]) -> Floats:
    """The product of the signs in T, in every cell: a flag that is not set is −1."""
    out = np.ones((2, 2, 2))
    for axis in T:
        out = out * np.expand_dims([-1.0, 1.0], [k for k in range(3) if k != axis])
    return out


def sign_table(m: MeasuredBits, triple: Triple) -> SignTable | None:
    """The table of three flags, where products of three signs were measured."""
    if m.parities is None or m.moments is None:
        return None
    two, three = m.moments, m.parities
    place = {pair: k for k, pair in enumerate(combinations(range(len(m.means.values)), 2))}
    means = {(): 1.0, (0, 1, 2): float(three.triple[triple[0], place[triple[1:]]])}
    means |= {(k,): 2 * float(two.mean[a]) for k, a in enumerate(triple)}
    means |= {(i, j): 4 * float(two.pair[triple[i], triple[j]]) for i, j in combinations(range(3), 2)}
    return SignTable.of(triple, means, (0.0, 2 * two.mean_sd, 4 * two.pair_sd, three.triple_sd))


def three_ways(release: Release) -> list[ThreeWay]:
    """The tables of three columns that a release chose to measure."""
    evidence, found = release.evidence, release.measurements
    if not isinstance(evidence, NumberEvidence) or not isinstance(found, MeasuredNumbers) or found.triples is None:
        return []
    triples, out = found.triples.triples, []
    for triple, table in zip(triples.names, found.triples.tables, strict=True):
        levels = tuple(triples.levels[a][evidence.cell(a)] for a in triple)
        shares = table / found.n + (1 - table.sum() / found.n) / table.size
        out.append(ThreeWay(triple, levels, shares, found.triples.sd / found.n, found.pure))
    return out


def three_way(release: Release, attributes: list[int]) -> ThreeWay:
    """The measured table of these attributes; refused, with what can be asked, where there is none."""
    measured = three_ways(release)
    if isinstance(release.measurements, MeasuredBits) and len(attributes) == 3:
        a, b, c = attributes
        signs = sign_table(release.measurements, (a, b, c))
        if signs is not None:
            return signs
    for found in measured:
        if sorted(found.triple) == attributes:
            return found
    names = release.codec.names
    some = "; ".join(", ".join(repr(names[a]) for a in one.triple) for one in measured)
    more = f", and of three at a time {some}" if measured else ""
    raise CannotAnswerError(MOST_COLUMNS.format(count=len(attributes), more=more))


def share_of_three(
    found: ThreeWay, top: Scores, bottom: Scores, release: Release, rows: float | None
) -> tuple[Estimate, Estimate]:
    """The share that meets conditions among those that meet others, and the share of these; by the delta method."""
    over, under = (found.weights(scores, release.codec.names) for scores in (top, bottom))
    base = float((under * found.shares).sum())
    value = float((over * found.shares).sum()) / base

    def estimate(number: float, slopes: Floats, sampled: float | None) -> Estimate:
        variance, fourth = found.noise(slopes)
        variance += found.sampling(slopes, release.drawn) / sampled if sampled else 0.0
        none = np.zeros(1)
        return Estimate(np.array([number]), np.array([variance]), np.array([fourth]), none, none)

    return estimate(value, (over - value * under) / base, rows), estimate(base, under, None)
