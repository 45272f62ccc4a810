"""Shrinkage of what is seen through normal noise.

Empirical Bayes for many small effects and a few large ones, a spike and a slab; and weights of several estimates, judged by
measurements whose noise they have not seen.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq, nnls
from scipy.special import expit, gammaln

from covey.engine.arrays import Floats, Integers
from covey.engine.codes.domain import by_run


@dataclass(frozen=True)
class SpikeSlab:
    """A prior for effects that are observed with normal noise: most come from a narrow normal law, a share from a wide one."""

    noise: float  # its standard deviation
    share: float  # of effects that come from the slab
    spike: float  # standard deviations of the narrow and of the wide law; both have mean zero
    slab: float

    def slab_probability(self, squares: Floats) -> Floats:
        """The posterior probability that an effect comes from the slab, given the square of what was observed of it."""
        v0, v1 = self.noise**2 + self.spike**2, self.noise**2 + self.slab**2
        odds = np.log(self.share / (1 - self.share)) + np.log(v0 / v1) / 2
        return np.asarray(expit(odds + squares * (1 / v0 - 1 / v1) / 2))

    def posterior_means(self, observed: Floats, probability: Floats) -> Floats:
        """The expected effects, given what was observed of them and their probabilities to come from the slab."""
        w1, w0 = (s**2 / (s**2 + self.noise**2) for s in (self.slab, self.spike))
        return np.asarray(observed * (probability * w1 + (1 - probability) * w0))


def fit_spike_slab(squares: Floats, sd: float, counts: Floats | float = 1.0, rounds: int = 40) -> SpikeSlab:
    """The prior that EM finds for observed squares, each of which counts so many times, under noise of a known deviation."""
    total = np.size(squares) if isinstance(counts, float) else float(counts.sum())
    prior = SpikeSlab(sd, 0.03, 0.2 * sd, 4.0 * sd)

    def second(s: float, g: Floats) -> float:
        v = sd * sd + s * s
        expected = (s * s / v) ** 2 * squares + s * s * sd * sd / v
        return float(np.sqrt((g * expected).sum() / (g.sum() + 1e-12)))

    for _ in range(rounds):
        g = counts * prior.slab_probability(squares)
        share = float(np.clip(g.sum() / total, 1e-4, 0.3))
        slab = max(second(prior.slab, g), 2 * sd)
        prior = SpikeSlab(sd, share, second(prior.spike, counts - g), slab)
    return prior


def empirical_bayes(observed: Floats, sd: float) -> tuple[Floats, Floats, SpikeSlab]:
    """Posterior means of effects seen through noise, their probabilities to come from the slab, and the prior that EM found."""
    prior = fit_spike_slab(observed * observed, sd)
    probability = prior.slab_probability(observed * observed)
    return prior.posterior_means(observed, probability), probability, prior


def beyond_noise(difference: Floats, variance: float) -> float:
    """The part of a difference that is more than noise of this variance, over all entries: (1 − v/‖x‖²)₊ (James and Stein)."""
    return max(0.0, 1 - variance / max(float((difference**2).sum()), 1e-300))


def thinning_weights(gram: Floats, moment: Floats, ridge: float) -> Floats:
    """Weights ≥ 0 of sum ≤ 1 for estimates with these inner products among themselves and with what judges them."""
    root = np.linalg.cholesky(gram + ridge * np.eye(len(gram)))
    weights, _ = nnls(root.T, np.linalg.solve(root, moment))
    return np.asarray(weights / max(1.0, float(weights.sum())))


# One-way tables from noisy counts: several denoisers, weighed against each other by thinning the noise.
#
# Categories in public groups (diagnoses in chapters, communes in counties) have two noisy histograms, one of the groups and one
# of the categories. Sums of many noisy categories are far noisier than a group's own count; and a rare category is better
# described by its group than by all that is rare.

# (noisy counts, noise sd, total) → non-negative counts with that total
Denoiser = Callable[[Floats, float, float], Floats]
SMOOTHED = 12  # categories from which on ordered ones are smoothed
# Up to so many categories, and beyond this noise on a share, tables are posterior means. Weights by thinning are chance there:
# thresholds took rare categories away, and one-way tables of telco and adult (300 to 1,000 rows) were up to a quarter worse.
FEW, NOISY = 100, 1 / 200
SHARES = 0.3, 1.0, 3.0  # parameters of Dirichlet laws, of all categories together: the best of three sets, five tables


def denoise_histogram(
    v: Floats, sd: float, total: float, ordered: bool, public: np.random.Generator, prior: Floats | None = None
) -> Floats:
    """An exponentially weighted mean of the candidates, scored by thinning; of few categories in much noise, posterior means.

    v + ξ and v − ξ, with ξ of the noise's own variance, have independent errors (for Gaussian noise) of twice the
    variance: each candidate runs on the one and is scored on the other. Weights exp(−loss/(4·sd²)), the temperature of
    Leung and Barron (2006). Shares that are expected, from public information, give candidates of their own.
    """
    candidates = denoisers(len(v), ordered, prior, sd > NOISY * total)
    if len(candidates) == 1:
        return candidates[0](v, sd, total)
    losses = np.zeros(len(candidates))
    draws = 8
    for _ in range(draws):
        xi = sd * public.standard_normal(len(v))
        losses += [np.sum((f(v + xi, sd * np.sqrt(2), total) - (v - xi)) ** 2) / draws for f in candidates]
    weights = np.exp(-(losses - losses.min()) / (4 * sd**2))
    weights /= weights.sum()
    found = np.sum([w * f(v, sd, total) for w, f in zip(weights, candidates, strict=True)], axis=0)
    # Where the noise drowns the whole table no candidate knows anything: the answer is the uniform table.
    trust = 1 / (1 + (len(v) * (sd / total) ** 2) ** 2)
    return np.asarray(trust * found + (1 - trust) * total / len(v))


def denoisers(size: int, ordered: bool, prior: Floats | None = None, noisy: bool = False) -> list[Denoiser]:
    """The candidates for an attribute with so many categories, and with shares that are expected, if any are."""
    smoothed = ordered and size >= SMOOTHED
    out: list[Denoiser] = [lambda v, sd, n: posterior_shares(v / n, sd / n) * n]
    if smoothed or not 1 < size <= FEW or not noisy:
        out = [lambda v, sd, n: project_to_total(v, n)]
        out += [lambda v, sd, n, t=t: threshold(v, t * sd, n) for t in (1.0, 2.0, 3.0)]  # type: ignore[misc]
    if smoothed:
        smooth = [partial(haar_smooth, t=t) for t in (2.0, 3.0)]
        out += [lambda v, sd, n, f=f: project_to_total(f(v, sd), n) for f in smooth]  # type: ignore[misc]
        out += [lambda v, sd, n, f=f: threshold(f(v, sd), sd / 3, n) for f in smooth]  # type: ignore[misc]
        out += [lambda v, sd, n: project_to_total(trend_smooth(v, sd), n)]
    if prior is not None:
        out += [lambda v, sd, n: n * prior, partial(_toward, prior)]
        out += [partial(_apart, prior, t) for t in (2.0, 3.0)]
    return out


def _toward(prior: Floats, v: Floats, sd: float, total: float) -> Floats:
    """Shrunk toward the expected counts, as far as the noise explains the difference (James and Stein)."""
    gap = v - total * prior
    return project_to_total(total * prior + beyond_noise(gap, (len(v) - 1) * sd**2) * gap, total)


def _apart(prior: Floats, t: float, v: Floats, sd: float, total: float) -> Floats:
    """The expected counts, but for those that stand t deviations apart."""
    expected = total * prior
    return project_to_total(np.where(np.abs(v - expected) > t * sd, v, expected), total)


def posterior_shares(v: Floats, sd: float) -> Floats:
    """Posterior means of shares under Dirichlet laws, each weighed by its evidence.

    A Dirichlet law is one of independent gamma variables given their sum. Given that of the posterior too, in the mean: all
    densities are tilted by one factor exp(−λx). The evidence is that of a saddle point at λ.
    """
    c = len(v)
    edges = np.linspace(0, 1, int(np.clip(4 / sd, 60, 4 / NOISY)) + 1) ** 2
    x = (edges[1:] + edges[:-1]) / 2
    fit, found, evidence = -(((v[:, None] - x) / sd) ** 2) / 2, [], []
    for alpha in (min(1.0, whole / c) for whole in SHARES):
        mass = fit + np.log(np.diff(edges**alpha))

        def tilted(tilt: float, mass: Floats = mass) -> tuple[Floats, float, float]:
            power = mass - tilt * x
            top = power.max(axis=1, keepdims=True)
            density = np.exp(power - top)
            whole = density.sum(axis=1)
            mean = density @ x / whole
            variance = float((density @ x**2 / whole - mean**2).sum())
            return mean, variance, float((np.log(whole) + top[:, 0]).sum())

        most = 2 / sd**2 * (1 + float(np.abs(v).max())) + 4 * c
        tilt = float(brentq(lambda tilt: tilted(tilt)[0].sum() - 1, -most, most, xtol=1e-6 * most))
        mean, variance, logs = tilted(tilt)
        found.append(mean / mean.sum())
        evidence.append(logs + tilt - np.log(variance + 1e-300) / 2 - c * gammaln(1 + alpha) + gammaln(c * alpha))
    weights = np.exp(np.array(evidence) - max(evidence))
    return np.asarray(weights @ np.array(found) / weights.sum())


def project_to_total(v: Floats, total: float) -> Floats:
    """The nearest non-negative vector with the given sum."""
    u = np.sort(v)[::-1]
    excess = np.cumsum(u) - total
    # The first entry always qualifies; in floating point a huge one may absorb the total.
    k = int(np.flatnonzero(np.r_[True, (u * np.arange(1, len(u) + 1) > excess)[1:]])[-1])
    return np.asarray(np.maximum(v - excess[k] / (k + 1), 0))


def threshold(v: Floats, cut: float, total: float) -> Floats:
    """Zero at or below the cut; what is left is projected."""
    keep = v > cut
    if not keep.any():
        return np.full(len(v), total / len(v))
    out = np.zeros(len(v))
    out[keep] = project_to_total(v[keep], total)
    return out


def haar_smooth(v: Floats, sd: float, t: float) -> Floats:
    """Translation-invariant Haar wavelets with mirrored ends; details below t noise deviations become zero."""
    smooth = np.concatenate([v, v[::-1]])
    details = []
    for level in range(int(np.log2(len(v)))):
        shifted = np.roll(smooth, -(1 << level))
        detail = (smooth - shifted) / 2
        details.append(np.where(np.abs(detail) > t * sd / np.sqrt(2.0 ** (level + 1)), detail, 0))
        smooth = (smooth + shifted) / 2
    for level in reversed(range(len(details))):
        d = details[level]
        smooth = (smooth + d + np.roll(smooth - d, 1 << level)) / 2
    return np.asarray(smooth[: len(v)])


@lru_cache(maxsize=8)  # one attribute asks for its own a dozen times; of 600 categories it holds three megabytes
def second_differences(size: int) -> tuple[Floats, Floats]:
    """Eigenvalues and eigenvectors of the squared second differences of so many numbers in a row."""
    difference = np.diff(np.eye(size), 2, axis=0)
    w, basis = np.linalg.eigh(difference.T @ difference)
    return w, basis


def trend_smooth(v: Floats, sd: float) -> Floats:
    """A Whittaker trend (second differences, penalty by Stein's estimate); cells 3 deviations off it keep their value."""
    w, basis = second_differences(len(v))
    filters = 1 / (1 + 10.0 ** np.arange(-2, 7, 0.5)[:, None] * w)
    inlier, trend = v, v
    for _ in range(4):
        z = basis.T @ inlier
        stein = (((1 - filters) * z) ** 2).sum(axis=1) + 2 * sd**2 * filters.sum(axis=1)
        trend = np.asarray(basis @ (filters[np.argmin(stein)] * z))
        inlier = np.where(np.abs(v - trend) > 3 * sd, trend, v)
    return np.asarray(np.where(inlier == v, trend, v))


def group_counts(counts: Integers, groups: Integers) -> Integers:
    """Exact counts of groups from those of categories."""
    out = np.zeros(int(groups.max()) + 1, dtype=np.int64)
    np.add.at(out, groups, counts)
    return out


def grouped_histogram(
    fine: tuple[Floats, float],
    coarse: tuple[Floats, float],
    groups: Integers,
    total: float,
    public: np.random.Generator,
) -> Floats:
    """Denoised counts of categories whose sums are the denoised counts of their groups.

    `fine` are noisy counts of categories, and the deviation of their noise; `coarse` the same of the groups. A group's count is
    the mean of the two measurements by their variances.
    """
    (v, sd), (g, coarse_sd) = fine, coarse
    members = np.bincount(groups)
    own, summed = 1 / coarse_sd**2, 1 / (sd**2 * np.maximum(members, 1))
    both = (own * g + summed * np.bincount(groups, v)) / (own + summed)
    wide = float(np.sqrt(np.mean(1 / (own + summed))))
    held = denoise_histogram(both, wide, total, False, public)
    out = np.zeros(len(v))
    for group in np.flatnonzero(members):
        inside = np.flatnonzero(groups == group)
        if held[group] > 0:
            out[inside] = denoise_histogram(v[inside], sd, held[group], False, public)
    return out


def grouped_bins(share: Floats, groups: Integers, cut: float, most: int, classes: Integers) -> Integers:
    """Category → bin: common categories alone, the rest of a common group together, all other ones together.

    At most `most` bins, half of them for single categories, for each class that rules tell apart.
    """
    half = max(2, most // 2)

    def merge(own: Integers) -> Integers:
        alone = _largest(share[own], cut, half)
        rest = np.where(alone, 0.0, share[own])
        mass = np.bincount(groups[own], rest, minlength=int(groups.max()) + 1).astype(np.float64)
        kept = _largest(mass, cut, half - 1)
        place = np.where(kept, np.cumsum(kept) - 1, kept.sum())[groups[own]]  # the group's bin, or that of all others
        names = np.where(alone, len(kept) + np.arange(len(own)), place)
        return np.unique(names, return_inverse=True)[1].ravel()

    return by_run(classes, merge)


def _largest(share: Floats, cut: float, most: int) -> NDArray[np.bool_]:
    """Which shares lie above the cut, and are among the largest."""
    above = np.zeros(len(share), dtype=bool)
    above[np.argsort(-share, kind="stable")[:most]] = True
    return np.asarray(above & (share > cut))
