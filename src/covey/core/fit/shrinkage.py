"""Shrinkage of what is seen through normal noise.

Empirical Bayes for many small effects and a few large ones, a spike and a slab; and weights of several estimates, judged by
measurements whose noise they have not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit

from covey.core.arrays import Floats


@dataclass(frozen=True)
class SpikeSlab:
    """A prior for effects that are observed with normal noise: most come from a narrow normal law, a share from a wide one.

    Args:
        noise: standard deviation of the noise.
        share: the share of effects that come from the slab.
        spike, slab: standard deviations of the narrow and of the wide law; both have mean zero.
    """

    noise: float
    share: float
    spike: float
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
