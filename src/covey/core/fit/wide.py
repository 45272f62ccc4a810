"""Denoising and centres for wide tables of bits: the steps of `factors` and `terms` with p × p work outside the loops only.

The noisy pairs are summarised by their leading eigenvectors once (`lowrank`); factors and centres are then fitted in that
basis. What stands out of the noise alone, a few strong pairs, is kept as a short list of partners for each column. Residuals
are looked at in strips of rows. Dense algebra runs on any device of the array API standard; all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit, logit

from covey.core.arrays import Array, Floats, Integers, above_diagonal, strips
from covey.core.fit.centres import Tick
from covey.core.fit.descent import descend_on
from covey.core.fit.devices import Device
from covey.core.fit.factors import (
    Factors,
    Mixture,
    NoisyMoments,
    Prior,
    estimate_prior,
    fit_mixture,
    latent_points,
)
from covey.core.fit.lowrank import BASIS, SWEEPS, Core, core, leading_eigenvectors, moment_gap
from covey.core.fit.terms import Scores, score_slopes
from covey.core.tables.coding import UNIT, Coding

PARTNERS = 8  # strong pairs kept for a column

WideTerm = Callable[[Any], tuple[float, Any]]


@dataclass(frozen=True)
class Partners:
    """A sparse symmetric matrix with empty diagonal: for each column a few others and the strength of each pair."""

    others: Any  # width × p
    strength: Any  # width × p, 0 where a slot is unused
    inner: float  # with the low-rank target
    square: float

    def times(self, xp: Any, F: Any) -> Any:
        """F·S, column by column."""
        out = xp.zeros_like(F)
        for b in range(self.others.shape[0]):
            out = out + xp.take(F, self.others[b, :], axis=1) * self.strength[b, :]
        return out


@dataclass(frozen=True)
class WideFit:
    """What denoising leaves for the centres: the measurement, the target they should follow, factors and their prior."""

    raw: WideTerm
    fine: WideTerm
    factors: Factors
    prior: Prior


def denoise_wide(
    noisy: NoisyMoments,
    k: int,
    r: int,
    device: Device,
    public: np.random.Generator,
    tick: Tick,
    rounds: int = 4,
    steps: int = 50,
) -> WideFit:
    """Rounds of posterior mode, re-estimated prior, and strong pairs taken out of what the factors must explain.

    The target of the centres is the factors' pairs plus the shrunken rest, within the Fréchet bounds of the fitted means, at
    a fifth of the noise.
    """
    xp, coding = device.xp, noisy.coding
    T = device.put(noisy.pair)
    basis, middle = summarise(device, T, noisy.mean, public)
    f = start_wide_factors(noisy, device.get(basis), device.get(middle), latent_points(k, r, public))
    prior = Prior(np.zeros(r), np.ones(r), float(f.bias.mean()), 2.0)
    cut_mean, cut_core = np.zeros(len(noisy.mean)), xp.zeros_like(middle)
    strong = xp.zeros_like(middle)
    for step in range(rounds):
        target = core(xp, basis, middle - cut_core - strong)
        term = moment_term_in(device, coding, noisy.mean - cut_mean, noisy.mean_sd, target, noisy.pair_sd)
        f = fit_wide_factors(device, [term], f, prior, steps)
        prior = estimate_prior(f, prior, noisy.mean_sd)
        rest = Rest(device, T, core(xp, basis, cut_core), f.centres, coding)
        mixture, limit = rest.mixture(noisy.pair_sd)
        i, j, effect = rest.strong_pairs(mixture, limit)
        strong = _sandwich(device, basis, i, j, effect)
        if coding.clips:
            cut_mean, cut_core = cut_error_in(device, coding, f.centres, basis, public)
        tick((step + 1) / rounds)
    now = core(xp, basis, middle - cut_core)
    raw = moment_term_in(device, coding, noisy.mean - cut_mean, noisy.mean_sd, now, noisy.pair_sd)
    fine = fine_term(device, rest, mixture, (i, j, effect), noisy, public)
    return WideFit(raw, fine, f, prior)


def summarise(device: Device, T: Any, mean: Floats, public: np.random.Generator) -> tuple[Any, Any]:
    """Leading eigenvectors of pairs whose diagonal is not measured: imputed by squared means, then by the vectors themselves."""
    xp = device.xp
    vectors = device.put(public.standard_normal((len(mean), min(BASIS, len(mean) // 2))))
    diagonal = device.put(mean**2)
    for _ in range(2):
        values, vectors = leading_eigenvectors(xp, T, diagonal, vectors, SWEEPS)
        kept = xp.maximum(values, xp.zeros_like(values))
        diagonal = xp.sum(vectors * vectors * kept, axis=1)
    return vectors, xp.eye(values.shape[0], dtype=values.dtype, device=device.where) * values


def start_wide_factors(noisy: NoisyMoments, basis: Floats, middle: Floats, points: Floats) -> Factors:
    """Leading directions of the noisy covariance inside the basis, moved to the logit scale."""
    p, r = len(noisy.mean), points.shape[1]
    m = np.clip(noisy.mean + noisy.coding.middle, 0.01, 0.99)
    along = basis.T @ noisy.mean
    w, v = np.linalg.eigh(middle - np.outer(along, along))
    scale = np.sqrt(np.maximum(w[::-1][:r], 0.1 * noisy.pair_sd * np.sqrt(p)))
    directions = basis @ v[:, ::-1][:, :r]
    # The sign of an eigenvector is an accident of the library that found it: all devices start from the same one.
    directions *= np.where((directions**3).sum(axis=0) < 0, -1, 1)
    loadings = directions * scale / np.maximum(m * (1 - m), 0.04)[:, None]
    return Factors(logit(m), np.clip(loadings, -4, 4), points)


def moment_term_in(
    device: Device,
    coding: Coding,
    mean: Floats,
    mean_sd: float,
    target: Core,
    pair_sd: float,
    partners: Partners | None = None,
) -> WideTerm:
    """Means and pairs of coded rows, as `terms.moment_term`, for a target in a basis and a few strong pairs beside it."""
    xp = device.xp
    wm, wp = 1 / mean_sd**2, 1 / pair_sd**2
    centre, slope, goal = (device.put(v) for v in (coding.middle, 1 - 2 * coding.middle, mean))

    def gap(F: Any) -> tuple[float, Any]:
        norm, pull = moment_gap(xp, F, target)
        if partners is None:
            return norm, pull
        product = partners.times(xp, F)
        inner = float(xp.sum(product * F, dtype=xp.float64)) / F.shape[0] - partners.inner
        return norm - 2 * inner + partners.square, pull - product

    def plain(y: Any) -> tuple[float, Any]:
        u = y - centre
        norm, pull = gap(u)
        e = xp.mean(u, axis=0) - goal
        return wp * norm / 4 + wm * float(xp.vecdot(e, e)) / 2, (wp * pull + wm * e) / y.shape[0]

    def cut(y: Any) -> tuple[float, Any]:
        k, u = y.shape[0], y - centre
        one, d_one, two, d_two = (device.put(v) for v in coding.cut_lengths(device.get(y @ slope)))
        root = xp.sqrt(two)[:, None]
        norm, pull = gap(u * root)
        e = one @ u / k - goal
        up, down = wp * pull / root, wm * e
        length = xp.sum(up * u, axis=1) * d_two / 2 + (u @ down) * d_one
        loss = wp * norm / 4 + wm * float(xp.vecdot(e, e)) / 2
        return loss, (up * two[:, None] + one[:, None] * down + length[:, None] * slope) / k

    return cut if coding.clips else plain


def score_term_in(device: Device, scores: Scores) -> WideTerm:
    """Score histograms, as `terms.score_term`: products on the device, the few numbers of each centre on the processor."""
    v, v2 = device.put(scores.directions), device.put(scores.directions**2)
    xp = device.xp

    def term(y: Any) -> tuple[float, Any]:
        mean, variance = device.get(y @ v), device.get((y * (1 - y)) @ v2)
        loss, d_mean, d_variance = score_slopes(scores, mean, variance)
        back = device.put(d_variance) @ xp.matrix_transpose(v2)
        return loss, device.put(d_mean) @ xp.matrix_transpose(v) + back * (1 - 2 * y)

    return term


def fit_wide_factors(
    device: Device, terms: Sequence[WideTerm], f: Factors, prior: Prior, steps: int, hold: float | None = None
) -> Factors:
    """`factors.fit_factors` on a device: the posterior mode of bias and loadings, with `hold` of the points too."""
    xp = device.xp
    (p, r), k = f.loadings.shape, len(f.points)
    cut = p + p * r
    fixed, centre, sd = device.put(f.points), device.put(prior.mean), device.put(prior.sd)

    def objective(x: Any) -> tuple[float, Any]:
        bias, loadings = x[:p], xp.reshape(x[p:cut], (p, r))
        points = fixed if hold is None else xp.reshape(x[cut:], (k, r))
        loss, g = total_on(xp, terms, bias + points @ xp.matrix_transpose(loadings))
        d, db = (loadings - centre) / sd, (bias - prior.bias_mean) / prior.bias_sd
        loss += float(xp.sum(d * d) + xp.sum(db * db)) / 2
        slope = xp.matrix_transpose(g) @ points + d / sd
        slopes = [xp.sum(g, axis=0) + db / prior.bias_sd, xp.reshape(slope, (p * r,))]
        if hold is not None:
            shift = points - fixed
            loss += hold * float(xp.sum(shift * shift)) / 2
            slopes.append(xp.reshape(g @ loadings + hold * shift, (k * r,)))
        return loss, xp.concat(slopes)

    start = np.concatenate([f.bias, f.loadings.ravel(), [] if hold is None else f.points.ravel()])
    x = device.get(descend_on(xp, objective, device.put(start), steps))
    return Factors(x[:p], x[p:cut].reshape(p, r), f.points if hold is None else x[cut:].reshape(k, r))


def fit_wide_centres(device: Device, terms: Sequence[WideTerm], logits: Floats, steps: int) -> Floats:
    """`terms.fit_centres` on a device: free centres in [0, 1]ᵖ that agree with the terms, starting from given logits."""
    xp, shape = device.xp, logits.shape

    def objective(x: Any) -> tuple[float, Any]:
        loss, g = total_on(xp, terms, xp.reshape(x, shape))
        return loss, xp.reshape(g, (shape[0] * shape[1],))

    x = descend_on(xp, objective, device.put(np.clip(logits, -12, 12).ravel()), steps)
    return np.asarray(expit(device.get(x).reshape(shape)))


def total_on(xp: Any, terms: Sequence[WideTerm], logits: Any) -> tuple[float, Any]:
    """The sum of the terms at sigmoid(logits), and its gradient in the logits."""
    y = 1 / (1 + xp.exp(-xp.clip(logits, -15.0, 15.0)))
    loss, gradient = terms[0](y)
    for term in terms[1:]:
        value, slope = term(y)
        loss, gradient = loss + value, gradient + slope
    return loss, gradient * (y * (1 - y))


@dataclass(frozen=True)
class Rest:
    """What the factors leave of the noisy pairs, looked at strip by strip."""

    device: Device
    T: Any
    cut: Core  # what cutting did beyond its approximation
    centres: Floats
    coding: Coding

    def strips(self) -> Iterator[tuple[int, Array]]:
        """Rows of the residual matrix, float32, and where they begin."""
        d, xp, k = self.device, self.device.xp, len(self.centres)
        u = self.centres - self.coding.middle
        if self.coding.clips:
            u = u * np.sqrt(self.coding.cut(self.centres)[2])[:, None]
        F = d.put(u)
        p = F.shape[1]
        right = xp.matrix_transpose(self.cut.basis)
        for begin, end in strips(p):
            strip = self.T[begin:end, :] - xp.matrix_transpose(F[:, begin:end]) @ F / k
            if self.coding.clips:
                strip = strip - (self.cut.basis[begin:end, :] @ self.cut.middle) @ right
            yield begin, d.get32(strip)

    def mixture(self, sd: float) -> tuple[Mixture, float]:
        """Narrow and wide effects fitted to a histogram of the pairs; and the size that few enough pairs surpass."""
        p = self.T.shape[0]
        bins = 1 << 13
        counts, squares = np.zeros(bins), np.zeros(bins)
        for begin, strip in self.strips():
            x = np.abs(strip[above_diagonal(begin, begin + len(strip), p)])
            # Bins as fine as σ/256 near zero, and as one part in 256 far out.
            cell = np.minimum(np.arcsinh(x / np.float32(sd)) * 256, bins - 1).astype(np.int32)
            counts += np.bincount(cell, minlength=bins)
            squares += np.bincount(cell, weights=x.astype(np.float64) ** 2, minlength=bins)
        seen = counts > 0
        mixture = fit_mixture(squares[seen] / counts[seen], sd, counts[seen])
        beyond = np.cumsum(counts[::-1])[::-1]
        first = int(np.argmax(beyond <= PARTNERS * p // 2))
        return mixture, sd * float(np.sinh(first / 256))

    def strong_pairs(self, mixture: Mixture, least: float) -> tuple[Integers, Integers, Floats]:
        """Pairs more likely wide than narrow, at most PARTNERS to a column, and their shrunken sizes."""
        found: list[tuple[Integers, Integers, Floats]] = []
        for begin, strip in self.strips():
            i, j = np.nonzero(above_diagonal(begin, begin + len(strip), strip.shape[1]) & (np.abs(strip) > least))
            found.append((i + begin, j, strip[i, j].astype(np.float64)))
        i, j, x = (np.concatenate(part) for part in zip(*found, strict=True))
        g = mixture.probability(x * x)
        keep = g > 0.5
        i, j, effect = i[keep], j[keep], x[keep] * (mixture.wide**2 / (mixture.wide**2 + mixture.noise**2))
        keep = _few_per_column(i, j, effect)
        return i[keep], j[keep], effect[keep]


def fine_term(
    device: Device,
    rest: Rest,
    mixture: Mixture,
    strong: tuple[Integers, Integers, Floats],
    noisy: NoisyMoments,
    public: np.random.Generator,
) -> WideTerm:
    """The denoised target, coded around ½: its leading directions, and the strong pairs beside them."""
    xp, y = device.xp, rest.centres
    k, p = y.shape
    m = y.mean(axis=0)
    Y, u = device.put(y), device.put(y - 0.5)
    mean = m.astype(np.float32)
    target = np.empty((p, p), dtype=np.float32)
    for begin, strip in rest.strips():
        end = begin + len(strip)
        own = mean[begin:end, None]
        joint = device.get32(xp.matrix_transpose(Y[:, begin:end]) @ Y / k)
        joint += mixture.shrunken(strip, mixture.probability(strip * strip))
        joint = np.clip(joint, np.maximum(0, own + mean - 1), np.minimum(own, mean))
        target[begin:end] = joint - (own + mean) / 2 + np.float32(0.25)
    i, j, effect = strong
    target[i, j] -= effect
    target[j, i] -= effect
    np.fill_diagonal(target, 0)
    start = device.put(public.standard_normal((p, min(k, p // 2))))
    values, basis = leading_eigenvectors(xp, device.put(target), xp.mean(u * u, axis=0), start, SWEEPS)
    middle = xp.eye(values.shape[0], dtype=values.dtype, device=device.where) * values
    goal = core(xp, basis, middle)
    # The centres follow the target closely: at a fifth of the noise the fit is not what limits.
    partners = make_partners(device, i, j, effect, goal)
    half = Coding.half(p)
    return moment_term_in(device, half, m - 0.5, noisy.mean_sd / 5, goal, noisy.pair_sd / 5, partners)


def make_partners(device: Device, i: Integers, j: Integers, effect: Floats, target: Core) -> Partners | None:
    """The list of strong pairs by column."""
    p = target.basis.shape[0]
    if not len(i):
        return None
    one, other, strength = np.concatenate([i, j]), np.concatenate([j, i]), np.concatenate([effect, effect])
    order = np.argsort(one, kind="stable")
    one, other, strength = one[order], other[order], strength[order]
    slot = np.arange(len(one)) - np.searchsorted(one, one)
    others, table = np.zeros((int(slot.max()) + 1, p), np.int64), np.zeros((int(slot.max()) + 1, p))
    others[slot, one], table[slot, one] = other, strength
    xp = device.xp
    inner = float(xp.sum(_sandwich(device, target.basis, i, j, effect) * target.middle, dtype=xp.float64))
    return Partners(device.indices(others), device.put(table), inner, float(strength @ strength))


def cut_error_in(
    device: Device, coding: Coding, y: Floats, basis: Any, public: np.random.Generator, copies: int = 50
) -> tuple[Floats, Any]:
    """`Coding.cut_error` on means, and on pairs within the basis: simulated minus approximated effect of cutting."""
    k, p = y.shape
    Q, near = device.get32(basis), y.astype(np.float32)
    one, _, two, _ = coding.cut(near)
    middle, w = coding.middle.astype(np.float32), near - coding.middle.astype(np.float32)
    mean = -((one - 1) @ w) / k
    own = -((two - 1) @ w**2) / k
    inside = w @ Q
    pair = -(inside * (two - 1)[:, None]).T @ inside / k
    for _ in range(copies):
        x = public.random((k, p), dtype=np.float32) < near
        x = x[coding.lengths(x) > coding.radius_squared]
        for rows, sign in (((coding.encode(x) / UNIT).astype(np.float32), 1), (x - middle, -1)):
            inside = rows @ Q
            mean += sign * rows.sum(axis=0) / (copies * k)
            own += sign * (rows * rows).sum(axis=0) / (copies * k)
            pair += sign * (inside.T @ inside) / (copies * k)
    return mean.astype(np.float64), device.put(pair - (Q * own[:, None]).T @ Q)


def _few_per_column(i: Integers, j: Integers, effect: Floats) -> Array:
    """Which pairs are among the PARTNERS strongest of both of their columns."""
    strength = np.abs(np.concatenate([effect, effect]))
    column = np.concatenate([i, j])
    order = np.lexsort((-strength, column))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(column[order], column[order])
    return np.asarray((rank < PARTNERS).reshape(2, -1).all(axis=0))


def _sandwich(device: Device, basis: Any, i: Integers, j: Integers, effect: Floats) -> Any:
    """QᵀSQ for the symmetric sparse S with these entries."""
    Q = device.get(basis)
    half = (Q[i] * effect[:, None]).T @ Q[j]
    return device.put(half + half.T)
