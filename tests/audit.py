"""Frequency audits: a lower bound, with confidence, on the ε that a mechanism really has."""

import numpy as np
from scipy.stats import beta


def epsilon_lower_bound(a, b, confidence=0.999):
    """How different two samples of a scalar statistic are, as a lower bound on ε.

    The event is a tail {statistic ≥ c} or {statistic ≤ c}, chosen on one half of the samples for the largest bound,
    and judged on the other half by Clopper-Pearson intervals, so that choosing costs no confidence.
    """
    a, b = np.asarray(a, dtype=float), np.asarray(b, dtype=float)
    cuts = np.unique(np.quantile(np.r_[a, b], np.linspace(0, 1, 400)))
    halves = [(a[::2], b[::2]), (a[1::2], b[1::2])]
    events = [(lambda x, c=c: x >= c) for c in cuts] + [(lambda x, c=c: x <= c) for c in cuts]
    best, chosen = -np.inf, None
    for event in events:
        for swap in (False, True):
            value = _bound(event, *(halves[0][::-1] if swap else halves[0]), confidence)
            if value > best:
                best, chosen = value, (event, swap)
    event, swap = chosen
    return max(0.0, _bound(event, *(halves[1][::-1] if swap else halves[1]), confidence))


def _bound(event, x, y, confidence):
    """ln P(x in event) / P(y in event), the numerator bounded from below and the denominator from above."""
    slack = (1 - confidence) / 2
    k, m = int(event(x).sum()), int(event(y).sum())
    low = beta.ppf(slack, k, len(x) - k + 1) if k else 0.0
    high = beta.ppf(1 - slack, m + 1, len(y) - m) if m < len(y) else 1.0
    return np.log(low / high) if low > 0 else -np.inf
