"""Pair covariances from noisy pair tables: spectral shrinkage and three companions, combined by thinning.

All of it is post-processing. The noise matrices simulated here come from independent public randomness, never from the
stream that protected the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from scipy.special import ndtri

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.codes.domain import Domain, by_run, merge_ordered
from covey.engine.fit.shrinkage import thinning_weights
from covey.engine.fit.wide import BASIS, LOW_RANK_CATEGORIES, SWEEPS, imputed_directions, leading_eigenvectors

LEADING = 40  # so many eigenvalues of a noisy covariance are kept for the report
MOST_COORDINATES = 2000  # beyond so many coordinates they are not computed


@dataclass(frozen=True)
class Spectrum:
    """Leading eigenvalues of a covariance that carries its noise, in falling order, and where noise alone would end."""

    values: tuple[float, ...]
    edge: float
    dimension: int

    @property
    def above(self) -> int:
        """How many directions stand out of the noise."""
        return sum(value > self.edge for value in self.values)


def noisy_spectrum(covariance: Floats, noise: Floats) -> Spectrum | None:
    """The spectrum of a noisy covariance beside that of a simulated noise matrix of the same law: post-processing of both.

    Two draws of a largest eigenvalue differ by a part of the order d^(−2/3) (Tracy and Widom): the edge leaves twice that.
    """
    if len(covariance) > MOST_COORDINATES:
        return None
    values = np.linalg.eigvalsh(covariance)[::-1][:LEADING]
    edge = float(np.abs(np.linalg.eigvalsh(noise)).max()) * (1 + 2 * len(noise) ** (-2 / 3))
    return Spectrum(tuple(map(float, values)), edge, len(covariance))


@dataclass(frozen=True)
class Denoisers:
    """Several ways to estimate the covariances of all pairs of categories, and their best combination."""

    shares: Floats  # of the categories, of all attributes one after the other
    domain: Domain
    public: np.random.Generator  # independent of the noise on the tables
    prior: Floats | None = None  # covariances that are expected from public information; they give two candidates more
    normal: NormalTables | None = None  # with it, one correlation of two ordered attributes is looked for as well

    def combined(self, noisy: Floats, draw: Callable[[], Floats], sd: float) -> Floats:
        """A non-negative combination of the candidates, its weights found by thinning.

        `noisy` holds covariances with noise, `draw` simulates it. noisy + ξ and noisy − ξ carry (for Gaussian noise)
        independent errors of twice the variance: the weights regress the one on the candidates computed from the other. Of many
        categories one draw of ξ has entries enough: with four, weights moved by .002, and it took two and a half times as long.
        """
        if sd == 0:
            return noisy
        noise = draw()
        gram, moment = np.zeros((1, 1)), np.zeros(1)
        for _ in range(1 if self._many else 4):
            xi = draw()
            train = self.candidates(noisy + xi, noise * np.sqrt(2), sd * np.sqrt(2), 8)
            gram = gram + np.array([[np.vdot(a, b) for a in train] for b in train])
            moment = moment + np.array([np.vdot(a, noisy - xi) for a in train])
        if not np.trace(gram) > 0:
            return np.zeros_like(noisy)
        weights = thinning_weights(gram, moment, 1e-9 * float(np.trace(gram)))
        final = self.candidates(noisy, noise, sd, 20)
        return np.asarray(sum(w * t for w, t in zip(weights, final, strict=True)))

    def candidates(self, target: Floats, noise: Floats, sd: float, rounds: int) -> list[Floats]:
        """The plain ones with the prior's, then normal laws alone, then these with what they leave denoised in plain ways."""
        found = self._plain(target, noise, sd, rounds)
        if self.prior is not None:
            beyond = wiener_cells(target - self.prior, sd, self.shares, self.domain)
            found[3:3] = [self.prior, self.prior + beyond]
        if self.normal is None or not self.normal.pairs or self._many:
            return found
        tied = self.normal.at(self.normal.best(target, sd), len(target))
        rest = self._plain(target - tied, noise, sd, rounds)
        return [*found, tied, *(tied + part for part in rest)]

    @property
    def _many(self) -> bool:
        return self.domain.total > LOW_RANK_CATEGORIES

    def _plain(self, target: Floats, noise: Floats, sd: float, rounds: int) -> list[Floats]:
        """Low rank; low rank of correlations plus cells; cells alone; and, unless there are many, blocks alone."""
        shares, domain = self.shares, self.domain

        def low_rank(part: Floats, chance: Floats) -> Floats:
            if self._many:
                return shrink_leading(part, chance, domain, self.public)
            return shrink_spectrum(part, chance, domain, rounds)

        scale = np.sqrt(np.maximum(shares, 0.5 / np.repeat(domain.counts, domain.counts)))
        both = np.outer(scale, scale)
        scaled = low_rank(target / both, noise / both) * both
        found = [
            low_rank(target, noise),
            scaled + wiener_cells(target - scaled, sd, shares, domain),
            wiener_cells(target, sd, shares, domain),
        ]
        return found if self._many else [*found, block_svd(target, sd, domain)]


def shrink_spectrum(target: Floats, noise: Floats, domain: Domain, rounds: int) -> Floats:
    """The low-rank part: eigenvalues beyond the noise's spectrum, shrunk by G/(−G'); diagonal blocks imputed.

    G is the Stieltjes transform of a simulated noise matrix of the same law.
    """
    mu = np.linalg.eigvalsh(noise)
    q = len(domain.sizes)
    if len(mu) > 2 * q:  # the centred coding has q null directions
        mu = np.delete(mu, np.argsort(np.abs(mu))[:q])
    edge = 1.02 * np.abs(mu).max()
    filled = low = target
    for _ in range(rounds):
        w, vectors = np.linalg.eigh(filled)
        keep = w > edge
        resolvent = 1 / (w[keep][:, None] - mu)
        values = resolvent.mean(axis=1) / (resolvent**2).mean(axis=1)
        low = np.asarray((vectors[:, keep] * values) @ vectors[:, keep].T)
        filled = np.where(domain.same_block, low, target)
    return domain.off_blocks(low)


def shrink_leading(target: Floats, noise: Floats, domain: Domain, public: np.random.Generator) -> Floats:
    """`shrink_spectrum` from leading eigenvectors alone, for many categories.

    The noise's spectrum is taken as a semicircle, whose G/(−G') at y is √(y² − edge²).
    """
    start = public.standard_normal((domain.total, BASIS)).astype(np.float32)
    none = np.zeros(domain.total, dtype=np.float32)
    top = leading_eigenvectors(np, noise.astype(np.float32), none, start, SWEEPS)[0]
    edge = np.float32(1.02 * np.abs(top).max())

    def keep(values: Array) -> Array:
        return np.sqrt(np.maximum(values**2 - edge**2, 0)) * (values > edge)

    kept, vectors = imputed_directions(target, domain.inside_blocks, start, keep)
    return domain.off_blocks(np.asarray((vectors * kept) @ vectors.T, dtype=np.float64))


def wiener_cells(residual: Floats, sd: float, shares: Floats, domain: Domain) -> Floats:
    """Posterior means with prior variance v_ab·p_i·p_j in block (a, b), v_ab estimated by moments."""
    weight = np.outer(shares, shares)
    alpha = 1 - 1 / domain.counts
    variance = domain.spread(np.maximum(np.outer(alpha, alpha), 1e-9) * sd**2)
    excess = domain.sum_blocks(weight * (residual**2 - variance)) / np.maximum(domain.sum_blocks(weight**2), 1e-300)
    prior = domain.spread(np.maximum(excess, 0)) * weight
    return domain.off_blocks(residual * prior / (prior + variance))


def block_svd(target: Floats, sd: float, domain: Domain) -> Floats:
    """Each pair block alone: optimal Frobenius shrinkage of its singular values (Gavish and Donoho 2017)."""
    out = np.zeros_like(target)
    for a, ca in enumerate(domain.sizes):
        for b in range(a + 1, len(domain.sizes)):
            large, small = max(ca, domain.sizes[b]) - 1, min(ca, domain.sizes[b]) - 1
            if small == 0:
                continue
            left, d, right = np.linalg.svd(target[domain.block(a), domain.block(b)], full_matrices=False)
            beta, y = small / large, d / (sd * np.sqrt(large))
            keep = y > 1 + np.sqrt(beta)
            y = y[keep]
            d = sd * np.sqrt(large * ((y**2 - beta - 1) ** 2 - 4 * beta)) / y
            out[domain.block(a), domain.block(b)] = (left[:, keep] * d) @ right[keep]
    return np.asarray(out + out.T)


# Pair tables of ordered attributes as two normal variables cut at quantiles: one correlation in place of a whole table. Two
# numbers that rise together fill a band around a diagonal. Cell by cell, such a band drowns in noise as soon as bins are fine;
# as a law with one parameter (Pearson 1900; polychoric correlation) it is found from all cells at once.

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
class BinnedPairs:
    """Shares and covariances over bins, and category → bin, for every attribute."""

    domain: Domain
    shares: Floats
    covariances: Floats
    bin_of: list[Integers]


def sharpened(
    coarse: BinnedPairs, normal: NormalTables, best: list[int | None], fine: list[Floats], specials: Integers
) -> BinnedPairs | None:
    """Covariances over finer bins of attributes that are strongly tied; None where none is.

    A normal law that was found over bins says what its table over parts of bins is. What it leaves of the covariances has no
    such law and is shared out in proportion: summed over parts, everything is as it was.

    Args:
        coarse: over bins.
        normal: tables of normal laws over these bins.
        best: the correlation of each pair, as `NormalTables.best` gives it.
        fine: shares of the categories of each attribute.
        specials: how many categories of each attribute, its first ones, have no rank.
    """
    # Of two categories without an order nothing finer is known: parts of theirs would be no steps of a normal law.
    tied = [a for a in normal.tied(best) if coarse.domain.ordered[a]]
    total, maps = coarse.domain.total, coarse.bin_of
    if not tied or total >= MOST:
        return None
    mass = max(1 / FINE, len(tied) / (MOST - total))
    finer = [
        by_run(m, lambda own, p=p: merge_ordered(p[own], mass)) if a in tied else m  # type: ignore[misc]
        for a, (m, p) in enumerate(zip(maps, fine, strict=True))
    ]
    domain = Domain(tuple(int(m.max()) + 1 for m in finer), coarse.domain.ordered)
    shares = np.concatenate([np.bincount(m, p) for m, p in zip(finer, fine, strict=True)])
    places = zip(coarse.domain.starts, maps, finer, strict=False)
    above = np.concatenate([start + m[np.unique(f, return_index=True)[1]] for start, m, f in places])
    whole = np.bincount(above, shares)[above]
    part = np.where(whole > 0, shares / np.where(whole > 0, whole, 1.0), 1 / np.bincount(above)[above])
    rest = (coarse.covariances - normal.at(best, total))[np.ix_(above, above)] * np.outer(part, part)
    again = NormalTables(shares, domain, specials)
    return BinnedPairs(domain, shares, rest + again.at(best, domain.total), finer) if again.pairs else None


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
    whole = scores.whole.sum(axis=1)  # each category has the score of its own attribute
    sums = scores.domain.sum_blocks(whole[:, None] * pairs * whole)
    return np.asarray(sums[np.ix_(scores.attributes, scores.attributes)])


def flips(p: int) -> int:
    """Pairs of p columns of which one replaced record can turn the sign: ⌊p/2⌋·⌈p/2⌉."""
    return (p // 2) * (p - p // 2)


@dataclass(frozen=True)
class RankSums:
    """Noisy sums of products of two whole scores over n records, for attributes a < b, and the deviation of their noise."""

    values: Floats
    sd: float
    n: int


def restore_ranks(
    covariances: Floats, noisy: Floats, sd: float, scores: RankScores, sums: RankSums, shares: Floats
) -> Floats:
    """Denoised pair covariances with the measured rank covariances, as far as these differ by more than their noise.

    `noisy` are the covariances that were measured, centred, with errors of deviation `sd` in every direction; products of means
    are made of one-way `shares`.

    Two measurements of one covariance are averaged by their variances. What denoising lost, ℓ, is put back as ℓ(1 − s²/ℓ²)₊
    with s the deviation of the average.
    """
    k = len(scores.attributes)
    mean, scale = scores.whole.T @ shares, np.outer(scores.length, scores.length)
    direct = np.zeros((k, k))
    direct[np.triu_indices(k, 1)] = sums.values / sums.n
    direct = (direct + direct.T - np.outer(mean, mean)) / scale
    weight, other = (sums.sd / sums.n / scale) ** -2, 1 / max(sd, 1e-300) ** 2
    R = scores.unit
    best = (weight * direct + other * (R.T @ noisy @ R)) / (weight + other)
    lost = best - R.T @ covariances @ R
    np.fill_diagonal(lost, 0)
    squared_z = np.maximum((weight + other) * lost**2, 1e-300)  # the noise may be far larger than all there is
    kept = lost * np.maximum(0.0, 1 - 1 / squared_z)
    return np.asarray(covariances + R @ kept @ R.T)
