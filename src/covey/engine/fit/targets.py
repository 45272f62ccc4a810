"""What the centres should agree with: pairs, a dense target here and a low-rank one in `wide`, and terms of other measurements.

Everything around a target (terms, factors, descent) is written once and sees it only through `Target`.

Each term is the Gaussian log-likelihood of one noisy measurement: it maps k equally weighted centres (k × p, float32, on the
device of the fit) to its loss and gradient. All measurements are public by now.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr

from covey.engine.arrays import Array, Floats, hollow, symmetric
from covey.engine.codes.counts import Coding
from covey.engine.fit.devices import DOUBLE, Device, descend
from covey.engine.fit.shrinkage import empirical_bayes

F4 = np.float32
# The centres follow the denoised target closely: at a fifth of the noise the fit is not what limits (benchmarks/fit_gap.py).
CLOSE = 5


@dataclass(frozen=True)
class NoisyMoments:
    """Noisy means and off-diagonal second moments of coded rows, and the standard deviations of their noise.

    `uncut` holds means that were measured before rows were cut, and their noise, where that was done.
    """

    coding: Coding
    mean: Floats
    mean_sd: float
    pair: Floats
    pair_sd: float
    uncut: tuple[Floats, float] | None = None


class Target(Protocol):
    """Second moments that k points should have, off the diagonal, and how much each of them counts."""

    def pull(self, u: Any, scale: Any = None) -> tuple[float, Any]:
        """Half the weighted squares of the gap Σ scale·uuᵀ/k − target, each pair once, and u times the weighted gap.

        `scale` has an entry for each point, all ones where it is not given. The weighted gap is the loss's slope in the moments.
        """
        ...


@dataclass(frozen=True)
class DenseTarget:
    """A target written out, with a weight for every pair."""

    pair: Array
    weight: Array

    @classmethod
    def of(cls, pair: Floats, sd: Floats | float) -> DenseTarget:
        """Pairs that are known up to normal noise."""
        weight = np.empty(pair.shape, F4)
        weight[:] = 1 / np.square(sd)
        np.fill_diagonal(weight, 0)
        return cls(pair.astype(F4), weight)

    def pull(self, u: Array, scale: Array | None = None) -> tuple[float, Array]:
        """The loss, and u times the weighted gap."""
        gap = (u if scale is None else u * scale[:, None]).T @ u / F4(len(u)) - self.pair
        weighted = self.weight * gap
        return float(np.vdot(weighted, gap)) / 4, u @ weighted


def frechet_bounds(mean: Floats) -> tuple[Floats, Floats]:
    """Between what joint shares of columns with these means lie: max(0, m_i + m_j − 1) and min(m_i, m_j)."""
    return np.maximum(0, mean[:, None] + mean - 1), np.minimum(mean[:, None], mean)


@dataclass(frozen=True)
class DensePairs:
    """Noisy pairs while they are denoised: each round sets aside what the factors should not explain.

    Here they are held as p × p matrices, and those set aside keep their value and lose weight; for many columns see
    `wide.LowRankPairs`, which has the same methods.
    """

    noisy: NoisyMoments
    public: np.random.Generator  # randomness for simulations
    clip_mean: Floats  # what clipping did to means and pairs beyond its approximation
    clip_pair: Floats
    # The deviation with which pairs count for the factors: their noise's, and the slab's as far as they seem to be from there.
    sd: Floats
    rest: Floats  # the shrunken rest above the diagonal
    device: Device = field(default=DOUBLE)

    @classmethod
    def of(cls, noisy: NoisyMoments, public: np.random.Generator) -> DensePairs:
        """As measured: nothing set aside."""
        p = len(noisy.mean)
        sd = np.full((p, p), noisy.pair_sd)
        return cls(noisy, public, np.zeros(p), np.zeros((p, p)), sd, np.zeros(p * (p - 1) // 2))

    @property
    def mean(self) -> Floats:
        """Noisy means of the coded rows, freed of what clipping did to them."""
        return self.noisy.mean - self.clip_mean

    @property
    def _pair(self) -> Floats:
        return self.noisy.pair - self.clip_pair

    def leading(self, r: int) -> tuple[Floats, Floats]:
        """The r leading eigenvalues and eigenvectors of the noisy covariance."""
        noisy = self.noisy
        w, v = np.linalg.eigh(hollow(noisy.pair - np.outer(noisy.mean, noisy.mean)))
        return w[::-1][:r], v[:, ::-1][:, :r]

    def for_factors(self) -> DenseTarget:
        """The measured pairs as the factors should see them: with a larger variance where they were set aside."""
        return DenseTarget.of(self._pair, self.sd)

    def measured(self) -> DenseTarget:
        """The measured pairs, all of them, freed of what clipping did to them."""
        return DenseTarget.of(self._pair, self.noisy.pair_sd)

    def without_clipping(self, centres: Floats) -> DensePairs:
        """The pairs freed of what clipping does to rows of these centres, beyond what the fit accounts for by itself."""
        mean, pair = self.noisy.coding.clip_error(centres.astype(F4), self.public)
        return replace(self, clip_mean=mean, clip_pair=pair)

    def set_aside(self, centres: Floats) -> DensePairs:
        """What these centres leave of the pairs: strong ones are set aside, and all of it is shrunk by empirical Bayes."""
        coding, p = self.noisy.coding, centres.shape[1]
        near: NDArray[np.float32] = centres.astype(F4)
        u = near - coding.middle.astype(F4)
        explained = (u * coding.clip_factors(near)[2][:, None] if coding.clips else u).T @ u / len(u)
        noise = self.noisy.pair_sd
        rest, probability, prior = empirical_bayes((self._pair - explained)[np.triu_indices(p, 1)], noise)
        return replace(self, sd=np.sqrt(noise**2 + symmetric(probability * prior.slab**2, p)), rest=rest)

    def joint(self, centres: Floats) -> Floats:
        """These centres' joint shares plus the shrunken rest, within the Fréchet bounds of their means."""
        m, p = centres.mean(axis=0), centres.shape[1]
        joint = centres.T @ centres / len(centres) + symmetric(self.rest, p)
        return np.clip(joint, *frechet_bounds(m))

    def denoised(self, centres: Floats) -> DenseTarget:
        """These centres' pairs plus the shrunken rest, within the Fréchet bounds of their means, coded around ½."""
        m, joint = centres.mean(axis=0), self.joint(centres)
        return DenseTarget.of(hollow(joint - (m[:, None] + m) / 2 + 0.25), self.noisy.pair_sd / CLOSE)


Term = Callable[[Any], tuple[float, Any]]


def moment_term(device: Device, coding: Coding, mean: Floats, mean_sd: float, target: Target) -> Term:
    """Means and pairs of coded rows; clipped rows are accounted for."""
    xp, weight = device.xp, 1 / mean_sd**2
    centre, slope, goal = device.put(coding.middle), device.put(1 - 2 * coding.middle), device.vector(mean)

    def plain(y: Any) -> tuple[float, Any]:
        u = y - centre
        loss, up = target.pull(u)
        e = xp.mean(u, axis=0) - goal
        return loss + weight * float(e @ e) / 2, (up + device.single(weight * e)) / y.shape[0]

    def clipped(y: Any) -> tuple[float, Any]:
        k, u = y.shape[0], y - centre
        one, d_one, two, d_two = (device.put(v) for v in coding.clip_factors_along(device.get32(y @ slope)))
        loss, up = target.pull(u, two)
        e = one @ u / k - goal
        down = device.single(weight * e)
        length = xp.sum(up * u, axis=1) * d_two / 2 + (u @ down) * d_one
        loss += weight * float(e @ e) / 2
        return loss, (up * two[:, None] + one[:, None] * down + length[:, None] * slope) / k

    return clipped if coding.clips else plain


@dataclass(frozen=True)
class Scores:
    """Noisy histograms of linear scores ⟨v_a, x⟩: public directions and edges, noisy shares."""

    directions: Floats  # p × t
    edges: Floats  # t × (bins − 1), increasing
    shares: Floats  # t × bins
    sd: float


def score_term(device: Device, scores: Scores) -> Term:
    """Score histograms; given its centre a score is taken as normal.

    Products are formed on the device, the few numbers of each centre on the processor.
    """
    v, v2, transpose = device.put(scores.directions), device.put(scores.directions**2), device.xp.matrix_transpose

    def term(y: Any) -> tuple[float, Any]:
        loss, *slopes = score_slopes(scores, device.get32(y @ v), device.get32((y * (1 - y)) @ v2))
        d_mean, d_variance = (device.put(slope) for slope in slopes)
        return loss, d_mean @ transpose(v) + (d_variance @ transpose(v2)) * (1 - 2 * y)

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


def parity_term(triple: Floats, quad: Floats, sds: tuple[float, float]) -> Term:
    """Means of products of three and four signs, as (column × pair) and (pair × pair), for few columns: on the processor."""
    p = len(triple)
    i, j = np.triu_indices(p, 1)
    rows = np.arange(len(i))
    first, second = np.zeros((2, len(i), p), F4)
    first[rows, i], second[rows, j] = 1, 1
    w3, w4 = (mask.astype(F4) / F4(sd**2) for mask, sd in zip(parity_masks(p), sds, strict=True))
    t3, t4 = triple.astype(F4), quad.astype(F4)

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
    """The histogram of row sums, exact (Poisson binomial) for each centre, for few columns: on the processor."""
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


def total(device: Device, terms: Sequence[Term], logits: Any) -> tuple[float, Any]:
    """The sum of the terms at sigmoid(logits), and its gradient in the logits.

    Logits are clipped at ±15 and standard scores at ±8: float32 denormals make matrix products thirty times slower.
    """
    y = device.sigmoid(device.xp.clip(device.single(logits), -15.0, 15.0))
    loss, gradient = terms[0](y)
    for term in terms[1:]:
        value, slope = term(y)
        loss, gradient = loss + value, gradient + slope
    return loss, gradient * (y * (1 - y))


def fit_centres(device: Device, terms: Sequence[Term], logits: Floats, steps: int) -> Floats:
    """Free centres in [0, 1]ᵖ that agree with the terms, starting from given logits."""
    xp, shape = device.xp, logits.shape

    def objective(x: Any) -> tuple[float, Any]:
        loss, gradient = total(device, terms, xp.reshape(x, shape))
        return loss, xp.reshape(gradient, (shape[0] * shape[1],))

    x = descend(device, objective, np.clip(logits, -12, 12).ravel(), steps)
    return np.asarray(expit(x.reshape(shape)))
