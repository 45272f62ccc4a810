"""Denoising means and pairs of bits: a few logistic factors plus a few strong pairs.

Low rank in the logits is what most tables of persons look like; what factors cannot explain, and stands out of the noise, is
kept as sparse pairs by empirical Bayes. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, logit

from covey.core.arrays import Floats
from covey.core.fit.centres import Tick
from covey.core.fit.terms import F4, Term, descend, hollow, moment_term, pair_index, symmetric, total
from covey.core.tables.coding import Coding


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy means and off-diagonal second moments of coded rows, and the standard deviations of their noise."""

    coding: Coding
    mean: Floats
    mean_sd: float
    pair: Floats
    pair_sd: float


@dataclass(frozen=True)
class Factors:
    """Centres sigmoid(bias + points·loadingsᵀ): a logistic factor model on k latent points."""

    bias: Floats  # p
    loadings: Floats  # p × r
    points: Floats  # k × r

    @property
    def logits(self) -> Floats:
        """Of the centres, k × p."""
        return np.asarray(self.bias + self.points @ self.loadings.T)

    @property
    def centres(self) -> Floats:
        """k × p probabilities."""
        return np.asarray(expit(self.logits))


@dataclass(frozen=True)
class Prior:
    """Normal priors of the loadings, factor by factor, and of the bias."""

    mean: Floats
    sd: Floats
    bias_mean: float
    bias_sd: float


@dataclass(frozen=True)
class Target:
    """Denoised means and pair shares of the bits, for the centres to match."""

    mean: Floats
    pair: Floats


def denoise_moments(
    noisy: NoisyMoments, k: int, r: int, public: np.random.Generator, tick: Tick, rounds: int = 4, steps: int = 50
) -> tuple[NoisyMoments, Factors, Prior, Target]:
    """Rounds of posterior mode, re-estimated prior, and empirical Bayes on what the factors leave of the pairs.

    Pairs that look sparse get a larger variance in the next round, so that they do not bend the factors. The target is the
    factors' pairs plus the shrunken rest, within the Fréchet bounds of the fitted means. Returns the moments freed of what
    cutting did, the factors, their prior and the target.
    """
    p, coding = len(noisy.mean), noisy.coding
    f = start_factors(noisy, latent_points(k, r, public))
    prior = Prior(np.zeros(r), np.ones(r), float(f.bias.mean()), 2.0)
    pair_sd = np.full((p, p), noisy.pair_sd)
    cut_mean, cut_pair = np.zeros(p), np.zeros((p, p))
    for step in range(rounds):
        now = replace(noisy, mean=noisy.mean - cut_mean, pair=noisy.pair - cut_pair)
        f = fit_factors([moment_term(coding, now.mean, now.mean_sd, now.pair, pair_sd)], f, prior, steps)
        prior = estimate_prior(f, prior, noisy.mean_sd)
        near = f.centres.astype(F4)
        u = near - coding.middle.astype(F4)
        explained = (u * coding.cut(near)[2][:, None] if coding.clips else u).T @ u / k
        effect, probability, wide = empirical_bayes((now.pair - explained)[pair_index(p)], noisy.pair_sd)
        pair_sd = np.sqrt(noisy.pair_sd**2 + symmetric(probability * wide**2, p))
        if coding.clips:
            cut_mean, cut_pair = coding.cut_error(near, public)
        tick((step + 1) / rounds)
    y = f.centres
    m = y.mean(axis=0)
    joint = y.T @ y / k + symmetric(effect, p)
    joint = np.clip(joint, np.maximum(0, m[:, None] + m - 1), np.minimum(m[:, None], m))
    return now, f, prior, Target(m, hollow(joint))


def latent_points(k: int, r: int, public: np.random.Generator) -> Floats:
    """k antithetic standard normal points with mean zero and identity covariance, exactly (k even, k > 2r)."""
    g = public.standard_normal((k // 2, r))
    g = np.vstack([g, -g])
    return np.asarray(np.linalg.solve(np.linalg.cholesky(g.T @ g / k), g.T).T)


def start_factors(noisy: NoisyMoments, points: Floats) -> Factors:
    """Leading eigenvectors of the noisy covariance, moved to the logit scale."""
    p, r = len(noisy.mean), points.shape[1]
    m = np.clip(noisy.mean + noisy.coding.middle, 0.01, 0.99)
    w, v = np.linalg.eigh(hollow(noisy.pair - np.outer(noisy.mean, noisy.mean)))
    scale = np.sqrt(np.maximum(w[::-1][:r], 0.1 * noisy.pair_sd * np.sqrt(p)))
    loadings = v[:, ::-1][:, :r] * scale / np.maximum(m * (1 - m), 0.04)[:, None]
    return Factors(logit(m), np.clip(loadings, -4, 4), points)


def fit_factors(terms: Sequence[Term], f: Factors, prior: Prior, steps: int, hold: float | None = None) -> Factors:
    """The posterior mode of bias and loadings; with `hold`, of the points too, kept near their start with that precision."""
    (p, r), k = f.loadings.shape, len(f.points)
    cut = p + p * r

    def objective(x: Floats) -> tuple[float, Floats]:
        bias, loadings = x[:p], x[p:cut].reshape(p, r)
        points = f.points if hold is None else x[cut:].reshape(k, r)
        loss, g = total(terms, bias.astype(F4) + points.astype(F4) @ loadings.astype(F4).T)
        d, db = (loadings - prior.mean) / prior.sd, (bias - prior.bias_mean) / prior.bias_sd
        slopes = [
            g.sum(axis=0, dtype=np.float64) + db / prior.bias_sd,
            (g.T @ points.astype(F4) + d / prior.sd).ravel(),
        ]
        loss += float((d**2).sum() + (db**2).sum()) / 2
        if hold is not None:
            shift = points - f.points
            loss += hold * float((shift**2).sum()) / 2
            slopes.append((g @ loadings.astype(F4) + hold * shift).ravel())
        return loss, np.concatenate(slopes)

    start = np.concatenate([f.bias, f.loadings.ravel(), [] if hold is None else f.points.ravel()])
    x = descend(objective, start, steps)
    return Factors(x[:p], x[p:cut].reshape(p, r), f.points if hold is None else x[cut:].reshape(k, r))


def estimate_prior(f: Factors, old: Prior, mean_sd: float) -> Prior:
    """Mean and spread of each factor's loadings: unneeded factors shrink away from round to round.

    The bias takes an EM step, the spread of the modes plus their approximate posterior variance, so that means buried in noise
    move toward each other but never collapse at once.
    """
    centre = f.loadings.mean(axis=0)
    sd = np.sqrt(((f.loadings - centre) ** 2).mean(axis=0) + 1e-4)
    y = f.centres
    slope = float((y * (1 - y)).mean())
    left = 1 / ((slope / mean_sd) ** 2 + 1 / old.bias_sd**2)
    return Prior(centre, sd, float(f.bias.mean()), float(np.sqrt(f.bias.var() + left)))


@dataclass(frozen=True)
class Mixture:
    """Effects seen through normal noise: a share of them wide, the others narrow, both normal around zero."""

    noise: float
    share: float
    narrow: float
    wide: float

    def probability(self, squares: Floats) -> Floats:
        """Of belonging to the wide ones, for observed squares."""
        v0, v1 = self.noise**2 + self.narrow**2, self.noise**2 + self.wide**2
        odds = np.log(self.share / (1 - self.share)) + np.log(v0 / v1) / 2
        return np.asarray(expit(odds + squares * (1 / v0 - 1 / v1) / 2))

    def shrunken(self, x: Floats, probability: Floats) -> Floats:
        """Posterior means of effects observed as x."""
        w1, w0 = (s**2 / (s**2 + self.noise**2) for s in (self.wide, self.narrow))
        return np.asarray(x * (probability * w1 + (1 - probability) * w0))


def fit_mixture(squares: Floats, sd: float, counts: Floats | float = 1.0, rounds: int = 40) -> Mixture:
    """EM on observed squares, each counted so many times."""
    total = np.size(squares) if isinstance(counts, float) else float(counts.sum())
    mixture = Mixture(sd, 0.03, 0.2 * sd, 4.0 * sd)

    def second(s: float, g: Floats) -> float:
        v = sd * sd + s * s
        expected = (s * s / v) ** 2 * squares + s * s * sd * sd / v
        return float(np.sqrt((g * expected).sum() / (g.sum() + 1e-12)))

    for _ in range(rounds):
        g = counts * mixture.probability(squares)
        share = float(np.clip(g.sum() / total, 1e-4, 0.3))
        wide = max(second(mixture.wide, g), 2 * sd)
        mixture = Mixture(sd, share, second(mixture.narrow, counts - g), wide)
    return mixture


def empirical_bayes(x: Floats, sd: float) -> tuple[Floats, Floats, float]:
    """Posterior means of effects seen through normal noise, under a prior of a narrow and a wide normal fitted by EM.

    Also returns each effect's probability of belonging to the wide one, and the wide one's standard deviation.
    """
    mixture = fit_mixture(x * x, sd)
    g = mixture.probability(x * x)
    return mixture.shrunken(x, g), g, mixture.wide
