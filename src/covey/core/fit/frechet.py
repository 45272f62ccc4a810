"""Joint shares of pairs of bits between their Fréchet bounds, max(0, m_i + m_j − 1) and min(m_i, m_j).

Columns that exclude each other, or of which one implies the other, lie exactly at a bound: an atom of the prior there finds
them without being told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from covey.core.arrays import Floats, pair_index

ROUNDS = 40  # of EM, as many as for the spike and the slab
START = np.array([0.9, 0.04, 0.03, 0.03])  # shares of spike, slab, lower and upper atom before anything is seen
LEAST = 1e-4  # a component's share never reaches zero, from where EM could not bring it back
EXACT = 1e-4  # deviation of a lower bound that is 0 whatever the means are


@dataclass(frozen=True)
class Bounds:
    """Fréchet bounds of all joint shares, p × p, and the deviations that noise in the means gives them, above the diagonal."""

    low: Floats
    high: Floats
    low_sd: Floats
    high_sd: float

    @classmethod
    def of(cls, mean: Floats, mean_sd: float) -> Bounds:
        """For means that are known up to noise of a deviation."""
        total = mean[:, None] + mean
        # The lower bound is a sum of two noisy means, or 0.
        low_sd = np.where(total[pair_index(len(mean))] > 1, np.sqrt(2) * mean_sd, EXACT)
        return cls(np.maximum(0, total - 1), np.minimum(mean[:, None], mean), low_sd, mean_sd)

    def clip(self, joint: Floats) -> Floats:
        """A matrix of joint shares inside the bounds."""
        return np.clip(joint, self.low, self.high)


def atomic_bayes(seen: Floats, model: Floats, bounds: Bounds, sd: float) -> Floats:
    """Posterior means of joint shares, above the diagonal, seen through normal noise of deviation `sd`.

    The prior is a mixture that EM fits: around the model a narrow and a wide normal law, as in `SpikeSlab`, and two atoms at the
    bounds, which are known as well as the means are.
    """
    index = pair_index(len(bounds.low))
    low, high, off = bounds.low[index], bounds.high[index], seen - model
    low_var, high_var = bounds.low_sd**2, bounds.high_sd**2
    gaps = (off, off, seen - low, seen - high)
    share, narrow, wide = START, (0.2 * sd) ** 2, (4.0 * sd) ** 2
    for _ in range(ROUNDS):
        variances = [np.asarray(sd * sd + extra) for extra in (narrow, wide, low_var, high_var)]
        log = np.log(share)[:, None] + np.stack(
            [-e * e / (2 * v) - np.log(v) / 2 for e, v in zip(gaps, variances, strict=True)]
        )
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
