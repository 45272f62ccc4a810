"""Denoising means and pairs of bits: a few logistic factors plus a few strong pairs.

Low rank in the logits is what most tables of persons look like; what factors cannot explain, and stands out of the noise, is
kept as sparse pairs by empirical Bayes. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.special import expit, logit

from covey.core.arrays import Floats
from covey.core.fit.centres import Tick
from covey.core.fit.devices import Device, descend
from covey.core.fit.targets import CLOSE, DensePairs, NoisyMoments, Term, moment_term, total
from covey.core.fit.wide import LowRankPairs
from covey.core.tables.counts import Coding

P = TypeVar("P", DensePairs, LowRankPairs)


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
class Denoised(Generic[P]):
    """What denoising leaves for the centres: the measurement, the target they should follow, factors, their prior, the pairs."""

    raw: Term
    fine: Term
    factors: Factors
    prior: Prior
    pairs: P


def denoise(pairs: P, k: int, r: int, tick: Tick, rounds: int = 4, steps: int = 50) -> Denoised[P]:
    """Rounds of posterior mode, re-estimated prior, and empirical Bayes on what the factors leave of the pairs.

    Pairs that look sparse are set aside in the next round, so that they do not bend the factors. The target of the centres is the
    factors' pairs plus the shrunken rest.
    """
    noisy, device = pairs.noisy, pairs.device
    f = start_factors(noisy, pairs.leading(r), latent_points(k, r, pairs.public))
    prior = Prior(np.zeros(r), np.ones(r), float(f.bias.mean()), 2.0)
    for step in range(rounds):
        if step and noisy.coding.clips:
            pairs = pairs.without_clipping(f.centres)
        term = moment_term(device, noisy.coding, pairs.mean, noisy.mean_sd, pairs.for_factors())
        f = fit_factors(device, [term], f, prior, steps)
        prior = estimate_prior(f, prior, noisy.mean_sd)
        pairs = pairs.set_aside(f.centres)
        tick((step + 1) / rounds)
    raw = moment_term(device, noisy.coding, pairs.mean, noisy.mean_sd, pairs.measured())
    m, half = f.centres.mean(axis=0), Coding.half(len(noisy.mean))
    fine = moment_term(device, half, m - 0.5, noisy.mean_sd / CLOSE, pairs.denoised(f.centres))
    return Denoised(raw, fine, f, prior, pairs)


def latent_points(k: int, r: int, public: np.random.Generator) -> Floats:
    """k antithetic standard normal points with mean zero and identity covariance, exactly (k even, k > 2r)."""
    g = public.standard_normal((k // 2, r))
    g = np.vstack([g, -g])
    return np.asarray(np.linalg.solve(np.linalg.cholesky(g.T @ g / k), g.T).T)


def start_factors(noisy: NoisyMoments, leading: tuple[Floats, Floats], points: Floats) -> Factors:
    """Leading eigenvectors of the noisy covariance, moved to the logit scale."""
    values, vectors = leading
    m = np.clip(noisy.mean + noisy.coding.middle, 0.01, 0.99)
    scale = np.sqrt(np.maximum(values, 0.1 * noisy.pair_sd * np.sqrt(len(m))))
    loadings = vectors * scale / np.maximum(m * (1 - m), 0.04)[:, None]
    return Factors(logit(m), np.clip(loadings, -4, 4), points)


def fit_factors(
    device: Device, terms: Sequence[Term], f: Factors, prior: Prior, steps: int, hold: float | None = None
) -> Factors:
    """The posterior mode of bias and loadings; with `hold`, of the points too, kept near their start with that precision."""
    xp, single = device.xp, device.single
    (p, r), k = f.loadings.shape, len(f.points)
    end = p + p * r
    fixed, centre, sd = device.vector(f.points), device.vector(prior.mean), device.vector(prior.sd)

    def objective(x: Any) -> tuple[float, Any]:
        bias, loadings = x[:p], xp.reshape(x[p:end], (p, r))
        points = fixed if hold is None else xp.reshape(x[end:], (k, r))
        loss, g = total(device, terms, single(bias) + single(points) @ xp.matrix_transpose(single(loadings)))
        d, db = (loadings - centre) / sd, (bias - prior.bias_mean) / prior.bias_sd
        loss += float(xp.sum(d * d) + xp.sum(db * db)) / 2
        slope = xp.matrix_transpose(g) @ single(points) + d / sd
        slopes = [xp.sum(g, axis=0, dtype=x.dtype) + db / prior.bias_sd, xp.reshape(slope, (p * r,))]
        if hold is not None:
            shift = points - fixed
            loss += hold * float(xp.sum(shift * shift)) / 2
            slopes.append(xp.reshape(g @ single(loadings) + hold * shift, (k * r,)))
        return loss, xp.concat(slopes)

    start = np.concatenate([f.bias, f.loadings.ravel(), [] if hold is None else f.points.ravel()])
    x = descend(device, objective, start, steps)
    return Factors(x[:p], x[p:end].reshape(p, r), f.points if hold is None else x[end:].reshape(k, r))


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
