"""Normal margins inside [0, 1]: what is said of a column of which a mean and a spread alone are known."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtr, ndtri

from covey.core.arrays import Floats

TURNS = 30  # of matching; each brings the moments nearer by some factor
LARGEST_DEVIATION = 4.0  # deviation of the normal law that is cut: an even law, nearly


def normal_margins(mean: Floats, sd: Floats, k: int) -> Floats:
    """k ordered values a column, of a normal law cut to [0, 1], with this mean and deviation as nearly as such a law has them."""
    target_mean, target_sd = np.clip(mean, 0.0, 1.0), np.maximum(sd, 1e-6)
    m, s = target_mean.copy(), target_sd.copy()
    values = _cut(m, s, k)
    for _ in range(TURNS):
        m = np.clip(m + target_mean - values.mean(axis=0), -LARGEST_DEVIATION, 1 + LARGEST_DEVIATION)
        s = np.clip(s * target_sd / np.maximum(values.std(axis=0), 1e-9), 1e-6, LARGEST_DEVIATION)
        values = _cut(m, s, k)
    return values


def _cut(m: Floats, s: Floats, k: int) -> Floats:
    level = (np.arange(k)[:, None] + 0.5) / k
    low, high = ndtr(-m / s), ndtr((1 - m) / s)
    return np.clip(m + s * ndtri(np.clip(low + level * (high - low), 1e-300, 1 - 1e-16)), 0.0, 1.0)
