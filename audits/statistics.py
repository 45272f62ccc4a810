"""Frequency audits: a lower bound, with confidence, on the ε that a mechanism really has."""

from __future__ import annotations

import numpy as np
from scipy.stats import beta, norm

CONFIDENCE = 0.999
CUTS = 400


def epsilon_lower_bound(a, b, delta=0.0, confidence=CONFIDENCE):
    """How different two samples are, as a lower bound on ε at this δ: ln (P(a in E) − δ) / P(b in E), or a and b exchanged.

    Each sample is a list of numbers, or a matrix with a statistic in each column. The event E is a tail of one statistic,
    chosen on one half of the samples for the largest bound, and judged on the other half by Clopper-Pearson intervals, so that
    choosing costs no confidence.
    """
    a, b = (np.asarray(x, dtype=np.float64).reshape(len(x), -1) for x in (a, b))
    best, chosen = -np.inf, None
    for column in range(a.shape[1]):
        for sign in (1.0, -1.0):
            x, y = (np.sort(sign * s[::2, column]) for s in (a, b))
            cuts = _cuts(x, y)
            k, m = (len(s) - np.searchsorted(s, cuts) for s in (x, y))
            for swap, value in enumerate((_bound(k, len(x), m, len(y), delta), _bound(m, len(y), k, len(x), delta))):
                if value.max() > best:
                    best, chosen = value.max(), (column, sign, cuts[np.argmax(value)], swap)
    if chosen is None:
        return 0.0
    column, sign, cut, swap = chosen
    counts = [(int(np.sum(sign * s[1::2, column] >= cut)), len(s) // 2) for s in (a, b)]
    (k, n), (m, o) = counts[::-1] if swap else counts
    return max(0.0, float(_bound(np.array([k]), n, np.array([m]), o, delta, confidence)[0]))


def _cuts(x, y):
    """Where tails may begin: every value of a small support, else quantiles, denser toward the end of the tail."""
    both = np.concatenate([x, y])
    values = np.unique(both)
    if len(values) <= CUTS:
        return values
    return np.unique(np.quantile(both, np.r_[np.linspace(0, 1, CUTS), 1 - np.geomspace(1e-5, 1e-2, 60)]))


def _bound(k, n, m, o, delta, confidence=CONFIDENCE):
    """ln of (lower limit of k/n, less δ) over the upper limit of m/o; −∞ where nothing is left."""
    slack = (1 - confidence) / 2
    low = np.where(k > 0, beta.ppf(slack, np.maximum(k, 1), n - k + 1), 0.0) - delta
    high = np.where(m < o, beta.ppf(1 - slack, m + 1, np.maximum(o - m, 1)), 1.0)
    return np.where(low > 0, np.log(np.maximum(low, 1e-300) / high), -np.inf)


def gaussian_delta(rho, epsilon):
    """The least δ at this ε of a Gaussian mechanism with parameter ρ = Δ²/(2σ²) (Balle and Wang 2018)."""
    mu = np.sqrt(2 * float(rho))
    return float(norm.cdf(mu / 2 - epsilon / mu) - np.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu))


def lattice_gaussian_delta(variance, shifts, epsilon):
    """The same for integer Gaussian noise of one variance on integers that move by these shifts, summed over the lattice.

    The likelihood ratio depends on T = Σ d_i y_i alone, whose law is a convolution.
    """
    v = float(variance)
    reach = int(12 * np.sqrt(v)) + 1
    pmf = np.exp(-(np.arange(-reach, reach + 1) ** 2) / (2 * v))
    law = np.ones(1)
    for d in np.abs(shifts):
        scaled = np.zeros(2 * reach * int(d) + 1)
        scaled[:: int(d)] = pmf / pmf.sum()
        law = np.convolve(law, scaled)
    T = np.arange(len(law)) - len(law) // 2
    ratio = (np.sum(np.square(shifts)) - 2 * T) / (2 * v)
    return float(np.sum(law * np.maximum(0, 1 - np.exp(np.minimum(epsilon - ratio, 700)))))
