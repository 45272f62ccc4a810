"""Rank covariances of ordered attributes: measured by themselves, put back where denoising lost them, kept by the fit.

A strong correlation of two numbers is one direction of their pair table. Its noise there is that of all cells; measured as
one sum of products of ranks it is several times smaller. How far one record moves these sums: docs/proofs/trees.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.fit.centres import Directions
from covey.core.tables.domain import Domain

UNIT = 64  # a score lies between −UNIT and UNIT
FIT_WEIGHT = 0.2  # of a rank covariance in the fit, beside a cell, per pair of bins


@dataclass(frozen=True)
class RankScores:
    """One score for every category of an ordered attribute: its mid-rank, minus their mean; 0 for all other categories.

    Args:
        domain: the attributes.
        score: the scores, all attributes side by side. Public: ranks are those of noisy shares.
    """

    domain: Domain
    score: Floats

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

    def directions(self) -> Directions:
        """What the fit should keep beside the cells."""
        size = self.domain.counts[self.attributes].astype(np.float64)
        return Directions(self.unit, self.attributes, FIT_WEIGHT * np.outer(size, size))


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
    """Covariances with the measured rank covariances, as far as these differ by more than their noise.

    Args:
        covariances: denoised pair covariances.
        noisy: those that were measured, centred, with errors of deviation `sd` in every direction.
        sd: see there.
        scores: the ranks.
        sums: the noisy Σ u_a·u_b, a < b, the deviation of their noise, and n.
        shares: one-way shares, which products of means are made of.

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
