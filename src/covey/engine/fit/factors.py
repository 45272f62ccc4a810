"""Denoising means and pairs of bits: a few logistic factors plus a few strong pairs.

Low rank in the logits is what most tables of persons look like; what factors cannot explain, and stands out of the noise, is
kept as sparse pairs by empirical Bayes. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.special import expit, logit

from covey.engine.arrays import Floats, hollow, symmetric
from covey.engine.codes.counts import Coding
from covey.engine.fit import targets
from covey.engine.fit.centres import Tick
from covey.engine.fit.devices import DOUBLE, Device, descend
from covey.engine.fit.shrinkage import thinning_weights
from covey.engine.fit.targets import CLOSE, DensePairs, DenseTarget, NoisyMoments, Term
from covey.engine.fit.wide import LowRankPairs

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
        term = targets.moment_term(device, noisy.coding, pairs.mean, noisy.mean_sd, pairs.for_factors())
        f = fit_factors(device, [term], f, prior, steps)
        prior = estimate_prior(f, prior, noisy.mean_sd)
        pairs = pairs.set_aside(f.centres)
        tick((step + 1) / rounds)
    raw = targets.moment_term(device, noisy.coding, pairs.mean, noisy.mean_sd, pairs.measured())
    m, half = f.centres.mean(axis=0), Coding.half(len(noisy.mean))
    fine = targets.moment_term(device, half, m - 0.5, noisy.mean_sd / CLOSE, pairs.denoised(f.centres))
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
        loss, g = targets.total(device, terms, single(bias) + single(points) @ xp.matrix_transpose(single(loadings)))
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


# A better target for the centres: several denoisers of the pairs, weighted by thinning where the noise is Gaussian.
#
# Noise is split as v + ξ and v − ξ with ξ a fresh copy of its law: both are as good as independent measurements with twice the
# variance, so what is fitted to one can be judged by the other. The weights found in this way are used on v itself.
#
# Joint shares lie between their Fréchet bounds, max(0, m_i + m_j − 1) and min(m_i, m_j). Columns that exclude each other, or of
# which one implies the other, lie exactly at a bound: an atom of the prior there finds them without being told.

ROUNDS = 40  # of EM, as many as for the spike and the slab
START = np.array([0.9, 0.04, 0.03, 0.03])  # shares of spike, slab, lower and upper atom before anything is seen
LEAST = 1e-4  # a component's share never reaches zero, from where EM could not bring it back
EXACT = 1e-4  # deviation of a lower bound that is 0 whatever the means are


def atomic_bayes(seen: Floats, model: Floats, sd: float, mean: Floats, mean_sd: float) -> Floats:
    """Posterior means of joint shares, above the diagonal, seen through normal noise of deviation `sd`; so are the means.

    The prior is a mixture that EM fits: around the model a narrow and a wide normal law, as in `SpikeSlab`, and two atoms at the
    bounds, which are known as well as the means are.
    """
    index = np.triu_indices(len(mean), 1)
    (low, high), off = (bound[index] for bound in targets.frechet_bounds(mean)), seen - model
    # The lower bound is a sum of two noisy means, or 0.
    low_var = np.where((mean[:, None] + mean)[index] > 1, np.sqrt(2) * mean_sd, EXACT) ** 2
    high_var = mean_sd**2
    gaps = (off, off, seen - low, seen - high)
    share, narrow, wide = START, (0.2 * sd) ** 2, (4.0 * sd) ** 2
    for _ in range(ROUNDS):
        variances = [np.asarray(sd * sd + extra) for extra in (narrow, wide, low_var, high_var)]
        fits = [-e * e / (2 * v) - np.log(v) / 2 for e, v in zip(gaps, variances, strict=True)]
        log = np.log(share)[:, None] + np.stack(fits)
        q = np.exp(log - log.max(axis=0))
        q /= q.sum(axis=0)
        share = np.maximum(q.mean(axis=1), LEAST)
        share = share / share.sum()
        narrow = _second(narrow, q[0], off, sd)
        wide = max(_second(wide, q[1], off, sd), (2 * sd) ** 2)
    near = model + off * (q[0] * narrow / (narrow + sd * sd) + q[1] * wide / (wide + sd * sd)) / (q[0] + q[1] + 1e-300)
    at_low = low + (seen - low) * low_var / variances[2]
    at_high = high + (seen - high) * high_var / variances[3]
    return np.asarray((q[0] + q[1]) * near + q[2] * at_low + q[3] * at_high)


def _second(variance: float, q: Floats, off: Floats, sd: float) -> float:
    """The expected square of effects of a normal law, given what was seen of them, each with its probability."""
    share = variance / (variance + sd * sd)
    return float((q * (share**2 * off * off + share * sd * sd)).sum() / (q.sum() + 1e-12))


DRAWS = 2  # of thinning: more change the weights little
EDGE = 1.02  # times the edge of the noise's spectrum: eigenvalues of a residual below it are noise
STRONG = 2.0  # deviations of the noise: effects beyond are taken out before a spectrum is shrunk


def stacked(found: Denoised[DensePairs], public: np.random.Generator, tick: Tick) -> Denoised[DensePairs]:
    """The same with the stack as what the centres should follow."""
    noisy = found.pairs.noisy
    plain = without_cut(noisy, found.factors.centres, public)
    size, rank = found.factors.points.shape

    def again(moments: NoisyMoments) -> Denoised[DensePairs]:
        return denoise(DensePairs.of(moments, public), size, rank, lambda _: None)

    views = []
    for one, other in thinned(plain, public):
        views.append((again(one), other))
        tick(len(views) / (DRAWS + 1))
    free = mean_weight(views)
    weights = stack_weights(views, free)
    whole = found if plain is noisy else again(plain)
    return aimed_at(found, *Candidates.of(whole, free).weighted(weights))


def with_atoms(found: Denoised[DensePairs]) -> Denoised[DensePairs]:
    """The same with the base of the stack as what the centres should follow: for noise that thinning does not fit.

    Columns that exclude or imply each other are found; means stay those of the factors.
    """
    base = Candidates.of(found, 0.0)
    return aimed_at(found, *base.weighted(np.zeros(len(base.steps))))


def aimed_at(found: Denoised[DensePairs], m: Floats, joint: Floats) -> Denoised[DensePairs]:
    """The same with these means and joint shares as what the centres should follow."""
    noisy = found.pairs.noisy
    target = DenseTarget.of(hollow(joint - (m[:, None] + m) / 2 + 0.25), noisy.pair_sd / CLOSE)
    fine = targets.moment_term(DOUBLE, Coding.half(len(m)), m - 0.5, noisy.mean_sd / CLOSE, target)
    return replace(found, fine=fine)


def without_cut(noisy: NoisyMoments, centres: Floats, public: np.random.Generator) -> NoisyMoments:
    """Noisy moments with what cutting does to rows of these centres taken out: plain moments around the same centre."""
    coding = noisy.coding
    if not coding.clips:
        return noisy
    mean, pair = coding.simulated_cut(centres, public)
    return replace(noisy, coding=replace(coding, clips=False), mean=noisy.mean - mean, pair=noisy.pair - pair)


def thinned(noisy: NoisyMoments, public: np.random.Generator) -> Iterator[tuple[NoisyMoments, NoisyMoments]]:
    """Pairs of measurements with twice the variance and independent noise."""
    p = len(noisy.mean)
    for _ in range(DRAWS):
        pair = symmetric(noisy.pair_sd * public.standard_normal(p * (p - 1) // 2), p)
        mean = noisy.mean_sd * public.standard_normal(p)
        sds = {"mean_sd": noisy.mean_sd * np.sqrt(2), "pair_sd": noisy.pair_sd * np.sqrt(2)}
        yield (
            replace(noisy, mean=noisy.mean + mean, pair=noisy.pair + pair, **sds),
            replace(noisy, mean=noisy.mean - mean, pair=noisy.pair - pair, **sds),
        )


def mean_weight(views: list[tuple[Denoised[DensePairs], NoisyMoments]]) -> float:
    """How far from the factors' means to the measured ones: regression on the other half. Factors bend exclusive columns."""
    up = down = 0.0
    for found, other in views:
        noisy = found.pairs.noisy
        means = found.factors.centres.mean(axis=0) - noisy.coding.middle
        off = noisy.mean - means
        up, down = up + float(off @ (other.mean - means)), down + float(off @ off)
    return float(np.clip(up / max(down, 1e-300), 0, 1))


@dataclass(frozen=True)
class Candidates:
    """Joint shares by several denoisers with common means, the base first, and what was measured of them; above the diagonal."""

    mean: Floats
    seen: Floats
    shares: list[Floats]

    @classmethod
    def of(cls, found: Denoised[DensePairs], free: float) -> Candidates:
        """All candidates, their means moved from the factors' toward the measured ones by a share; covariances stay."""
        noisy, y = found.pairs.noisy, found.factors.centres
        c, sd = noisy.coding.middle, noisy.pair_sd
        p, index, old = len(c), np.triu_indices(len(c), 1), y.mean(axis=0)
        m = old + free * (np.clip(noisy.mean + c, 0, 1) - old)
        product, move = np.outer(m, m), np.outer(m, m) - np.outer(old, old)
        model = y.T @ y / len(y) + move
        seen = noisy.pair + np.outer(c, m) + np.outer(m, c) - np.outer(c, c)
        base = symmetric(atomic_bayes(seen[index], model[index], sd, m, noisy.mean_sd), p)
        strong = np.abs(base - model) > STRONG * sd
        mixed = hollow(np.where(strong, base, seen) - product, m * (1 - m))
        clear = np.clip(noisy.mean + c, 1e-3, 1 - 1e-3)
        plain = hollow(noisy.pair - np.outer(noisy.mean, noisy.mean), clear * (1 - clear))
        several = [
            base,
            found.pairs.joint(y) + move,
            rotation_invariant(plain, sd) + product,
            np.where(strong, base, rotation_invariant(mixed, sd) + product),
            model + beyond_edge(hollow(seen - model), sd),
        ]
        return cls(m, seen[index], [np.clip(x, *targets.frechet_bounds(m))[index] for x in several])

    @property
    def steps(self) -> Floats:
        """From the base to each of the others."""
        return np.array([x - self.shares[0] for x in self.shares[1:]])

    def weighted(self, weights: Floats) -> tuple[Floats, Floats]:
        """Means, and the base plus weighted steps as a matrix."""
        joint = symmetric(self.shares[0] + weights @ self.steps, len(self.mean))
        return self.mean, np.clip(joint, *targets.frechet_bounds(self.mean))


def stack_weights(views: list[tuple[Denoised[DensePairs], NoisyMoments]], free: float) -> Floats:
    """Weights ≥ 0 of sum ≤ 1 of all candidates but the base, by least squares of the other half."""
    gram: Floats = np.zeros(())
    moment: Floats = np.zeros(())
    for one, other in views:
        found = Candidates.of(one, free)
        steps, index = found.steps, np.triu_indices(len(found.mean), 1)
        judged = found.seen + (other.pair - one.pairs.noisy.pair)[index]
        gram, moment = gram + steps @ steps.T, moment + steps @ (judged - found.shares[0])
    return thinning_weights(gram, moment, 1e-6 * float(np.trace(gram)) + 1e-30)


def rotation_invariant(matrix: Floats, sd: float) -> Floats:
    """Eigenvalues of signal plus Gaussian symmetric noise moved to their conditional means, λ − 2·sd²·p·Re G(λ).

    G is the Stieltjes transform of the observed spectrum, smoothed over the noise (Bun, Allez, Bouchaud and Potters 2016).
    """
    w, v = np.linalg.eigh(matrix)
    gap = w[:, None] - w
    slope = (gap / (gap**2 + (1.5 * sd) ** 2)).mean(axis=1)
    return np.asarray((v * np.maximum(w - 2 * sd**2 * len(w) * slope, 0)) @ v.T)


def beyond_edge(matrix: Floats, sd: float) -> Floats:
    """What of a residual stands out of the spectrum of symmetric Gaussian noise, shrunk as optimal for the Frobenius norm."""
    w, v = np.linalg.eigh(matrix)
    edge = EDGE * 2 * sd * np.sqrt(len(w))
    return np.asarray((v * np.sign(w) * np.sqrt(np.maximum(w * w - edge**2, 0))) @ v.T)
