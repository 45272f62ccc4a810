"""Pair tables of ordered attributes as two normal variables cut at quantiles: one correlation in place of a whole table.

Two numbers that rise together fill a band around a diagonal. Cell by cell, such a band drowns in noise as soon as bins are fine;
as a law with one parameter (Pearson 1900; polychoric correlation) it is found from all cells at once. What it does not explain is
denoised as before. Post-processing: shares and tables come out of the gate.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from covey.core.arrays import Floats, Integers
from covey.core.tables.domain import Domain, by_run, merge_ordered

ANGLES = 32  # correlations tried on each side of 0, as sines of angles that gather at a right angle: up to .99998
GATHER = 1.6  # how strongly they gather: steps of 2% in the width of the band
TOLL = 1.0  # in variances of the noise: what a correlation must explain beyond what its own fit to noise would
STEPS = np.arange(ANGLES + 1) / (ANGLES + 1)
STRONG = 0.8  # a correlation whose band is narrower than a bin, so that bins hide it
FINE = 40  # bins of a tied attribute; with 24 more of a narrow band was lost
MOST = 400  # bins of all attributes, up to which tied attributes get finer ones
ROOM = 1 << 25  # entries of all tables that are tried together; beyond, nothing is tried


class NormalTables:
    """For every two attributes with an order, covariance tables of normal laws at many correlations.

    Besides ordered attributes, those with two categories take part. The first `specials` of an attribute's categories have no
    place in its order.
    """

    def __init__(self, shares: Floats, domain: Domain, specials: Integers) -> None:
        self.places: dict[int, Integers] = {}  # of the categories that have an order, by attribute
        cuts, total = {}, {}
        for a, size in enumerate(domain.sizes):
            own = np.arange(domain.starts[a] + specials[a], domain.starts[a] + size)
            if len(own) > 1 and (domain.ordered[a] or size == 2):
                p = np.maximum(shares[own], 1e-9)
                below = np.cumsum(p)[:-1] / p.sum()
                self.places[a], total[a] = own, float(p.sum())
                cuts[a] = ndtri(np.clip(below, 1e-9, 1 - 1e-9))
        pairs = list(combinations(self.places, 2))
        entries = 2 * ANGLES * sum(len(self.places[a]) * len(self.places[b]) for a, b in pairs)
        self.pairs = pairs if entries <= ROOM else []
        self.tables = [covariance_tables(cuts[a], cuts[b]) * (total[a] * total[b]) for a, b in self.pairs]

    def best(self, target: Floats, sd: float) -> list[int | None]:
        """The correlation of each pair, by its place among those tried: least squares, none unless it pays the toll."""
        found: list[int | None] = []
        for (a, b), tables in zip(self.pairs, self.tables, strict=True):
            flat = tables.reshape(len(tables), -1)
            gain = flat @ target[np.ix_(self.places[a], self.places[b])].ravel() - np.einsum("tc,tc->t", flat, flat) / 2
            place = int(np.argmax(gain))
            found.append(place if gain[place] > TOLL * sd**2 else None)
        return found

    def explained(self, target: Floats, sd: float) -> Floats:
        """The covariances that the best correlation of each pair gives."""
        return self.at(self.best(target, sd), len(target))

    def at(self, best: list[int | None], size: int) -> Floats:
        """Covariances of all pairs at given correlations."""
        out = np.zeros((size, size))
        for (a, b), tables, place in zip(self.pairs, self.tables, best, strict=True):
            if place is not None:
                out[np.ix_(self.places[a], self.places[b])] = tables[place]
                out[np.ix_(self.places[b], self.places[a])] = tables[place].T
        return out

    def tied(self, best: list[int | None]) -> list[int]:
        """The attributes that some other one is tied to more strongly than STRONG."""
        strong = np.tile(np.sin(np.pi / 2 * (1 - (1 - STEPS[1:]) ** GATHER)) > STRONG, 2)
        pairs = [pair for pair, place in zip(self.pairs, best, strict=True) if place is not None and strong[place]]
        return sorted({a for pair in pairs for a in pair})


def covariance_tables(one: Floats, other: Floats) -> Floats:
    """Cells of a normal law between these cuts minus their product of margins, for rising positive, then falling negative angles.

    ∂Φ₂(h, k; sin θ)/∂θ = exp(−(h² − 2hk·sin θ + k²)/(2cos²θ))/2π (Plackett 1954), summed by Simpson's rule from θ = 0.
    """
    h, k = one[None, :, None], other[None, None, :]

    def slope(angle: Floats) -> Floats:
        t = angle[:, None, None]
        return np.asarray(np.exp(-(h**2 - 2 * h * k * np.sin(t) + k**2) / (2 * np.cos(t) ** 2)) / (2 * np.pi))

    sides = []
    for sign in (1, -1):
        angle = sign * np.pi / 2 * (1 - (1 - STEPS) ** GATHER)
        ends, middle = slope(angle), slope((angle[1:] + angle[:-1]) / 2)
        steps = (ends[:-1] + 4 * middle + ends[1:]) / 6 * np.diff(angle)[:, None, None]
        below = np.pad(np.cumsum(steps, axis=0), ((0, 0), (1, 1), (1, 1)))
        sides.append(np.diff(np.diff(below, axis=1), axis=2))
    return np.concatenate(sides)


@dataclass(frozen=True)
class Sharpened:
    """Shares and covariances over bins, and category → bin, for every attribute."""

    domain: Domain
    shares: Floats
    covariances: Floats
    maps: list[Integers]


def sharpened(
    coarse: Sharpened, found: tuple[NormalTables, list[int | None]], fine: list[Floats], specials: Integers
) -> Sharpened | None:
    """Covariances over finer bins of attributes that are strongly tied; None where none is.

    A normal law that was found over bins says what its table over parts of bins is. What it leaves of the covariances has no
    such law and is shared out in proportion: summed over parts, everything is as it was. `found` are normal tables over the
    coarse bins, and their best correlations; `fine` shares of the categories of each attribute.
    """
    normal, best = found
    # Of two categories without an order nothing finer is known: parts of theirs would be no steps of a normal law.
    tied = [a for a in normal.tied(best) if coarse.domain.ordered[a]]
    total, maps = coarse.domain.total, coarse.maps
    if not tied or total >= MOST:
        return None
    mass = max(1 / FINE, len(tied) / (MOST - total))
    finer = [
        by_run(m, lambda own, p=p: merge_ordered(p[own], mass)) if a in tied else m  # type: ignore[misc]
        for a, (m, p) in enumerate(zip(maps, fine, strict=True))
    ]
    domain = Domain(tuple(int(m.max()) + 1 for m in finer), coarse.domain.ordered)
    shares = np.concatenate([np.bincount(m, p) for m, p in zip(finer, fine, strict=True)])
    above = np.concatenate(
        [
            start + m[np.unique(f, return_index=True)[1]]
            for start, m, f in zip(coarse.domain.starts, maps, finer, strict=False)
        ]
    )
    whole = np.bincount(above, shares)[above]
    part = np.where(whole > 0, shares / np.where(whole > 0, whole, 1.0), 1 / np.bincount(above)[above])
    rest = (coarse.covariances - normal.at(best, total))[np.ix_(above, above)] * np.outer(part, part)
    again = NormalTables(shares, domain, specials)
    return Sharpened(domain, shares, rest + again.at(best, domain.total), finer) if again.pairs else None


# Rank covariances: measured by themselves, put back where denoising lost them, kept by the fit. A strong correlation of two
# numbers is one direction of their pair table. Its noise there is that of all cells; measured as one sum of products of ranks
# it is several times smaller. How far one record moves these sums: docs/proofs/trees.md.

UNIT = 64  # a score lies between −UNIT and UNIT


@dataclass(frozen=True)
class RankScores:
    """One score for every category of an ordered attribute: its mid-rank, minus their mean; 0 for all other categories."""

    domain: Domain
    score: Floats  # of all attributes side by side. Public: ranks are those of noisy shares

    @cached_property
    def attributes(self) -> Integers:
        """The attributes with scores that differ."""
        found = [a for a in range(len(self.domain.sizes)) if np.any(self.score[self.domain.block(a)])]
        return np.array(found, dtype=np.int64)

    def _columns(self, score: Floats) -> Floats:
        """The scores as a matrix, a column per attribute that has any."""
        out = np.zeros((self.domain.total, len(self.attributes)))
        for j, a in enumerate(self.attributes.tolist()):
            out[self.domain.block(a), j] = score[self.domain.block(a)]
        return out

    @cached_property
    def whole(self) -> Integers:
        """The scores on the integers, at most UNIT: what records are summed by."""
        columns = self._columns(self.score)
        largest = np.abs(columns).max(axis=0, initial=1e-300)
        return np.asarray(np.rint(UNIT * columns / largest), dtype=np.int64)

    @cached_property
    def unit(self) -> Floats:
        """The whole scores as centred unit vectors R: RᵀCR are rank covariances of tables C whose rows and columns sum to 0."""
        whole = self.whole.astype(np.float64)
        inside = self._columns(np.ones(self.domain.total)) > 0
        centred = np.where(inside, whole - whole.sum(axis=0) / inside.sum(axis=0), 0.0)
        return np.asarray(centred / np.linalg.norm(centred, axis=0))

    @cached_property
    def length(self) -> Floats:
        """The whole scores' lengths, centred."""
        return np.asarray(np.einsum("da,da->a", self.unit, self.whole))


def rank_scores(shares: Floats, domain: Domain, specials: Integers) -> RankScores:
    """Scores of ordered attributes from the shares of their categories; the first `specials[a]` of each have no rank."""
    score = np.zeros(domain.total)
    for a in np.flatnonzero(domain.ordered).tolist():
        own = np.arange(domain.total)[domain.block(a)][specials[a] :]
        p = shares[own]
        if len(own) > 1 and np.count_nonzero(p) > 1:
            rank = np.cumsum(p) - p / 2
            score[own] = rank - p @ rank / p.sum()
    return RankScores(domain, score)


def rank_matrix(pairs: Integers, scores: RankScores) -> Integers:
    """Σ u_a·u_b over the records, for all attributes that have scores, from their exact pair tables."""
    return np.asarray(scores.whole.T @ pairs @ scores.whole)


def flips(p: int) -> int:
    """Pairs of p columns of which one replaced record can turn the sign: ⌊p/2⌋·⌈p/2⌉."""
    return (p // 2) * (p - p // 2)


def restore_ranks(
    covariances: Floats, noisy: Floats, sd: float, scores: RankScores, sums: tuple[Floats, float, int], shares: Floats
) -> Floats:
    """Denoised pair covariances with the measured rank covariances, as far as these differ by more than their noise.

    `noisy` are the covariances that were measured, centred, with errors of deviation `sd` in every direction; `sums` the noisy
    Σ u_a·u_b, a < b, the deviation of their noise, and n; products of means are made of one-way `shares`.

    Two measurements of one covariance are averaged by their variances. What denoising lost, ℓ, is put back as ℓ(1 − s²/ℓ²)₊
    with s the deviation of the average.
    """
    values, sum_sd, n = sums
    k = len(scores.attributes)
    mean, scale = scores.whole.T @ shares, np.outer(scores.length, scores.length)
    direct = np.zeros((k, k))
    direct[np.triu_indices(k, 1)] = values / n
    direct = (direct + direct.T - np.outer(mean, mean)) / scale
    weight, other = (sum_sd / n / scale) ** -2, 1 / max(sd, 1e-300) ** 2
    R = scores.unit
    best = (weight * direct + other * (R.T @ noisy @ R)) / (weight + other)
    lost = best - R.T @ covariances @ R
    np.fill_diagonal(lost, 0)
    kept = lost * np.maximum(0.0, 1 - 1 / ((weight + other) * np.maximum(lost**2, 1e-300)))
    return np.asarray(covariances + R @ kept @ R.T)
