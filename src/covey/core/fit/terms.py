"""What centres should agree with: each term is the Gaussian log-likelihood of one noisy measurement.

A term maps k equally weighted centres (k × p, float32) to its loss and gradient. All measurements are public by now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import expit, ndtr

from covey.core.arrays import Array, Floats, Integers
from covey.core.tables.coding import Coding

Term = Callable[[Array], tuple[float, Array]]
F4 = np.float32


def moment_term(coding: Coding, mean: Floats, mean_sd: float, pair: Floats, pair_sd: Floats | float) -> Term:
    """Means and pairs of coded rows, each pair once; cut rows are accounted for."""
    p = len(mean)
    target, weight = pair.astype(F4), np.empty((p, p), F4)
    weight[:] = 1 / np.square(pair_sd)
    np.fill_diagonal(weight, 0)
    wm, centre = 1 / mean_sd**2, coding.middle.astype(F4)
    slope = 1 - 2 * centre

    def plain(y: Array) -> tuple[float, Array]:
        k, u = F4(len(y)), y - centre
        gap = u.T @ u / k - target
        pull, e = weight * gap, u.mean(axis=0) - mean
        loss = np.vdot(pull, gap) / 4 + wm * (e @ e) / 2
        return float(loss), (u @ pull + (wm * e).astype(F4)) / k

    def cut(y: Array) -> tuple[float, Array]:
        k, u = F4(len(y)), y - centre
        one, d_one, two, d_two = coding.cut(y)
        gap = (u * two[:, None]).T @ u / k - target
        pull, e = weight * gap, one @ u / k - mean
        loss = np.vdot(pull, gap) / 4 + wm * (e @ e) / 2
        up, down = u @ pull, (wm * e).astype(F4)
        length = (up * u).sum(axis=1) * d_two / 2 + (u @ down) * d_one
        return float(loss), (up * two[:, None] + one[:, None] * down + length[:, None] * slope) / k

    return cut if coding.clips else plain


@dataclass(frozen=True)
class Scores:
    """Noisy histograms of linear scores ⟨v_a, x⟩: public directions and edges, noisy shares."""

    directions: Floats  # p × t
    edges: Floats  # t × (bins − 1), increasing
    shares: Floats  # t × bins
    sd: float


def score_term(scores: Scores) -> Term:
    """Score histograms; given its centre a score is taken as normal."""
    v, v2 = (a.astype(F4) for a in (scores.directions, scores.directions**2))

    def term(y: Array) -> tuple[float, Array]:
        loss, d_mean, d_variance = score_slopes(scores, y @ v, (y * (1 - y)) @ v2)
        return loss, d_mean @ v.T + (d_variance @ v2.T) * (1 - 2 * y)

    return term


def score_slopes(scores: Scores, mean: Array, variance: Array) -> tuple[float, Array, Array]:
    """The loss of score histograms and its slopes in each centre's means and variances (k × t)."""
    k, edges = len(mean), scores.edges.astype(F4)
    sd = np.sqrt(variance + F4(1e-4))
    t = np.clip((edges - mean[:, :, None]) / sd[:, :, None], -8, 8)
    share = np.diff(ndtr(t), axis=2, prepend=0, append=1).mean(axis=0)
    gap = (share - scores.shares) / scores.sd
    pull = (-np.diff(gap, axis=1) / (scores.sd * k * np.sqrt(2 * np.pi))).astype(F4)
    dt = np.exp(-t * t / 2) * pull / sd[:, :, None]
    return float((gap**2).sum() / 2), -dt.sum(axis=2), -(dt * t).sum(axis=2) / (2 * sd)


def parity_masks(p: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Where (column, pair) and (pair, pair) list each triple and each quadruple exactly once, in increasing order."""
    i, j = np.triu_indices(p, 1)
    return np.arange(p)[:, None] < i, j[:, None] < i


@dataclass(frozen=True)
class Parities:
    """Means of products of three and four signs, as (column × pair) and (pair × pair), and their noise."""

    triple: Floats
    triple_sd: float
    quad: Floats
    quad_sd: float


def parity_term(parities: Parities) -> Term:
    """Products of three and four signs, for few columns."""
    p = len(parities.triple)
    i, j = np.triu_indices(p, 1)
    rows = np.arange(len(i))
    first, second = np.zeros((2, len(i), p), F4)
    first[rows, i], second[rows, j] = 1, 1
    sds = (parities.triple_sd, parities.quad_sd)
    w3, w4 = (mask.astype(F4) / F4(sd**2) for mask, sd in zip(parity_masks(p), sds, strict=True))
    t3, t4 = parities.triple.astype(F4), parities.quad.astype(F4)

    def term(y: Array) -> tuple[float, Array]:
        k, z = F4(len(y)), 2 * y - 1
        zi, zj = z[:, i], z[:, j]
        q = zi * zj
        g3, g4 = z.T @ q / k - t3, q.T @ q / k - t4
        p3, p4 = w3 * g3, w4 * g4
        dq = z @ p3 + q @ (p4 + p4.T)
        dz = q @ p3.T + (dq * zj) @ first + (dq * zi) @ second
        return float(np.vdot(p3, g3) + np.vdot(p4, g4)) / 2, 2 * dz / k

    return term


def size_term(shares: Floats, sd: float) -> Term:
    """The histogram of row sums, exact (Poisson binomial) for each centre; for few columns."""
    p = len(shares) - 1

    def term(y: Array) -> tuple[float, Array]:
        k = len(y)
        law = [np.zeros((k, p + 1))]
        law[0][:, 0] = 1
        for i in range(p):
            now = law[-1] * (1 - y[:, i : i + 1])
            now[:, 1:] += law[-1][:, :-1] * y[:, i : i + 1]
            law.append(now)
        gap = (law[-1].mean(axis=0) - shares) / sd
        back, gradient = np.tile(gap / (sd * k), (k, 1)), np.empty_like(y)
        for i in range(p - 1, -1, -1):
            up = np.append(back[:, 1:], np.zeros((k, 1)), axis=1)
            gradient[:, i] = ((up - back) * law[i]).sum(axis=1)
            back = back + (up - back) * y[:, i : i + 1]
        return float(gap @ gap) / 2, gradient

    return term


def total(terms: Sequence[Term], logits: Array) -> tuple[float, Array]:
    """The sum of the terms at sigmoid(logits), and its gradient in the logits.

    Logits are cut at ±15 and standard scores at ±8: float32 denormals make matrix products thirty times slower.
    """
    y = expit(np.clip(logits.astype(F4), -15, 15))
    loss, gradient = 0.0, np.zeros_like(y)
    for term in terms:
        value, slope = term(y)
        loss += value
        gradient += slope
    return loss, gradient * (y * (1 - y))


def descend(objective: Callable[[Floats], tuple[float, Floats]], start: Floats, steps: int) -> Floats:
    """L-BFGS for a given number of steps."""
    options: Any = {"maxiter": steps, "maxfun": 2 * steps, "maxcor": 6, "ftol": 1e-12, "gtol": 1e-12}
    return np.asarray(minimize(objective, start, jac=True, method="L-BFGS-B", options=options).x)


def fit_centres(terms: Sequence[Term], logits: Floats, steps: int) -> Floats:
    """Free centres in [0, 1]ᵖ that agree with the terms, starting from given logits."""
    shape = logits.shape

    def objective(x: Floats) -> tuple[float, Floats]:
        loss, gradient = total(terms, x.reshape(shape))
        return loss, gradient.astype(np.float64).ravel()

    return np.asarray(expit(descend(objective, np.clip(logits, -12, 12).ravel(), steps).reshape(shape)))


def symmetric(values: Floats, p: int) -> Floats:
    """A symmetric matrix with zero diagonal from its entries above the diagonal."""
    out = np.zeros((p, p))
    out[pair_index(p)] = values
    return np.asarray(out + out.T)


def pair_index(p: int) -> tuple[Integers, Integers]:
    """Rows and columns of the entries above the diagonal."""
    return np.triu_indices(p, 1)


def hollow(a: Floats) -> Floats:
    """A copy with zero diagonal."""
    a = np.array(a, dtype=np.float64)
    np.fill_diagonal(a, 0)
    return a
