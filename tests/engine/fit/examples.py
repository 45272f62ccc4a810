"""Noisy tables that the tests of the fits share."""

import numpy as np
from scipy.special import expit

from covey.engine.arrays import hollow
from covey.engine.codes.counts import UNIT, Coding
from covey.engine.fit.targets import NoisyMoments


def basis(p, r, seed=0):
    """Orthonormal columns."""
    return np.linalg.qr(np.random.default_rng(seed).standard_normal((p, r)))[0]


def noisy_table(n=4000, p=160, sd=0.01, clips=False, seed=0):
    """Noisy moments of a logistic factor table with a few strongly tied pairs, and the true rows."""
    g = np.random.default_rng(seed)
    logits = g.normal(-2.5 if clips else -1, 1, p) + g.standard_normal((n, 3)) @ g.normal(0, 0.8, (3, p))
    X = (g.random((n, p)) < expit(logits)).astype(np.uint8)
    X[:, 1:20:2] = X[:, 0:20:2]
    coding = Coding.half(p)
    if clips:
        centre = np.rint(X.mean(axis=0) * UNIT).astype(np.int64)
        coding = Coding(centre, int(np.quantile(((X - centre / UNIT) ** 2).sum(axis=1), 0.85) * UNIT**2), clips=True)
    u = coding.encode(X) / UNIT
    noise = np.triu(g.normal(0, sd, (p, p)), 1)
    pair = hollow(u.T @ u / n + noise + noise.T)
    mean = u.mean(axis=0) + g.normal(0, sd, p)
    return NoisyMoments(coding, mean, sd, pair, sd), X


def error(X, y):
    """Root mean square error of the centres' pair shares."""
    gap = hollow(X.T.astype(float) @ X / len(X) - y.T @ y / len(y))
    return float(np.sqrt((gap**2).mean()))


def quiet(share):
    """No progress."""
