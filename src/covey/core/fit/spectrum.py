"""Pair covariances from noisy pair tables: spectral shrinkage and three companions, combined by thinning.

All of it is post-processing. The noise matrices simulated here come from independent public randomness, never from the
stream that protected the data.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Array, Floats
from covey.core.fit.ordered import NormalTables
from covey.core.fit.shrinkage import thinning_weights
from covey.core.fit.wide import BASIS, LOW_RANK_CATEGORIES, SWEEPS, imputed_directions, leading_eigenvectors
from covey.core.tables.domain import Domain

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

    def combined(self, noisy: Floats, draw: Callable[[], Floats], sd: float, draws: int = 4) -> Floats:
        """A non-negative combination of the candidates, its weights found by thinning.

        `noisy` holds covariances with noise, `draw` simulates it. noisy + ξ and noisy − ξ carry (for Gaussian noise)
        independent errors of twice the variance: the weights regress the one on the candidates computed from the other.
        """
        if sd == 0:
            return noisy
        noise = draw()
        gram, moment = np.zeros((1, 1)), np.zeros(1)
        for _ in range(draws):
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
        tied = self.normal.explained(target, sd)
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
