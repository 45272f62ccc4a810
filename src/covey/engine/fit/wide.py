"""The low-rank target, for wide tables of bits: `targets` with p × p work outside the loops only.

The noisy pairs are summarised by their leading eigenvectors once; factors and centres are then fitted in that
basis. What stands out of the noise alone, a few strong pairs, is kept as a short list of partners for each column. Residuals
are looked at in strips of rows. Dense algebra runs on any device of the array API standard; all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from covey.engine.arrays import Array, Floats, Integers, above_diagonal, strips
from covey.engine.codes.counts import COPIES, UNIT, squared_lengths
from covey.engine.fit.devices import Device
from covey.engine.fit.shrinkage import SpikeSlab, fit_spike_slab
from covey.engine.fit.targets import CLOSE, F4, NoisyMoments

PARTNERS = 8  # strong pairs kept for a column: they bound the memory and the work of a step
# Bins of the histogram of residuals: σ/256 near zero, one part in 256 far out, so EM loses nothing by it.
FINENESS = 256
BINS = 1 << 13  # up to sinh(32) deviations, which no float32 residual surpasses

Strips: TypeAlias = Callable[[], Iterator[tuple[int, Array]]]  # rows of a square matrix, and where they begin


@dataclass(frozen=True)
class StrongPairs:
    """A symmetric sparse matrix S with empty diagonal, as its entries above the diagonal."""

    i: Integers
    j: Integers
    effect: Floats

    @classmethod
    def none(cls) -> StrongPairs:
        """The empty matrix."""
        return cls(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))

    def inside(self, device: Device, basis: Any) -> Any:
        """QᵀSQ for a basis Q."""
        Q = device.get(basis)
        half = (Q[self.i] * self.effect[:, None]).T @ Q[self.j]
        return device.put(half + half.T)

    def take_out_of(self, matrix: Array) -> None:
        """matrix − S, in place."""
        matrix[self.i, self.j] -= self.effect
        matrix[self.j, self.i] -= self.effect

    def by_column(self, device: Device, p: int) -> tuple[Any, Any]:
        """The same on a device: for each column a few others, and the strength of each pair, 0 where a slot is unused."""
        one, other = np.concatenate([self.i, self.j]), np.concatenate([self.j, self.i])
        order = np.argsort(one, kind="stable")
        one, other, strength = one[order], other[order], np.concatenate([self.effect, self.effect])[order]
        slot = np.arange(len(one)) - np.searchsorted(one, one)
        others, table = np.zeros((int(slot.max()) + 1, p), np.int64), np.zeros((int(slot.max()) + 1, p))
        others[slot, one], table[slot, one] = other, strength
        return device.indices(others), device.put(table)


def residual_prior(strips: Strips, p: int, sd: float) -> tuple[SpikeSlab, float]:
    """The spike and the slab of all entries above the diagonal, by EM on their histogram; and a size that few enough surpass."""
    counts, squares = np.zeros(BINS), np.zeros(BINS)
    for begin, strip in strips():
        x = np.abs(strip[above_diagonal(begin, begin + len(strip), p)])
        cell = np.minimum(np.arcsinh(x / np.float32(sd)) * FINENESS, BINS - 1).astype(np.int32)
        counts += np.bincount(cell, minlength=BINS)
        squares += np.bincount(cell, weights=x.astype(np.float64) ** 2, minlength=BINS)
    seen = counts > 0
    prior = fit_spike_slab(squares[seen] / counts[seen], sd, counts[seen])
    beyond = np.cumsum(counts[::-1])[::-1]
    first = int(np.argmax(beyond <= PARTNERS * p // 2))
    return prior, sd * float(np.sinh(first / FINENESS))


def find_strong(strips: Strips, prior: SpikeSlab, least: float) -> StrongPairs:
    """Pairs that rather come from the slab, at most PARTNERS to a column, and their shrunken sizes."""
    found: list[tuple[Integers, Integers, Floats]] = []
    for begin, strip in strips():
        i, j = np.nonzero(above_diagonal(begin, begin + len(strip), strip.shape[1]) & (np.abs(strip) > least))
        found.append((i + begin, j, strip[i, j].astype(np.float64)))
    i, j, x = (np.concatenate(part) for part in zip(*found, strict=True))
    keep = prior.slab_probability(x * x) > 0.5
    i, j, effect = i[keep], j[keep], x[keep] * (prior.slab**2 / (prior.slab**2 + prior.noise**2))
    keep = few_per_column(i, j, effect)
    return StrongPairs(i[keep], j[keep], effect[keep])


def few_per_column(i: Integers, j: Integers, effect: Floats) -> Array:
    """Which pairs are among the PARTNERS strongest of both of their columns."""
    strength = np.abs(np.concatenate([effect, effect]))
    column = np.concatenate([i, j])
    order = np.lexsort((-strength, column))
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order)) - np.searchsorted(column[order], column[order])
    return np.asarray((rank < PARTNERS).reshape(2, -1).all(axis=0))


def times(xp: Any, F: Any, partners: tuple[Any, Any]) -> Any:
    """F·S, column by column, for a matrix S by column."""
    (others, strength), out = partners, xp.zeros_like(F)
    for b in range(others.shape[0]):
        out = out + xp.take(F, others[b, :], axis=1) * strength[b, :]
    return out


@dataclass(frozen=True)
class LowRankTarget:
    """A target Q·M·Qᵀ in a basis, plus a few strong pairs beside it; all pairs have one weight."""

    device: Device
    core: Core  # Q, M and the target's diagonal
    weight: float  # of every pair, 1/sd²
    partners: tuple[Any, Any] | None = None  # the strong pairs S by column, if there are any
    beside: float = 0.0  # ‖S‖² + 2⟨S, Q·M·Qᵀ⟩

    @classmethod
    def of(cls, device: Device, found: Core, sd: float, strong: StrongPairs | None = None) -> LowRankTarget:
        """A target that is known up to normal noise."""
        if strong is None or not len(strong.i):
            return cls(device, found, 1 / sd**2)
        inner = float(device.xp.sum(strong.inside(device, found.basis) * found.middle, dtype=device.xp.float64))
        partners = strong.by_column(device, found.basis.shape[0])
        return cls(device, found, 1 / sd**2, partners, 2 * float(strong.effect @ strong.effect) + 2 * inner)

    def pull(self, u: Any, scale: Any = None) -> tuple[float, Any]:
        """The loss, and u times the weighted gap."""
        xp = self.device.xp
        if scale is None:
            norm, pull = self._gap(u)
        else:
            root = xp.sqrt(scale)[:, None]
            norm, pull = self._gap(u * root)
            pull = pull / root
        return self.weight * norm / 4, self.weight * pull

    def _gap(self, F: Any) -> tuple[float, Any]:
        """‖FᵀF/k − target‖² off the diagonal, and F times that gap."""
        xp = self.device.xp
        norm, pull = moment_gap(xp, F, self.core)
        if self.partners is None:
            return norm, pull
        product = times(xp, F, self.partners)
        return norm - 2 * float(xp.sum(product * F, dtype=xp.float64)) / F.shape[0] + self.beside, pull - product


@dataclass(frozen=True)
class LowRankPairs:
    """Noisy pairs in a basis of their leading eigenvectors. Pairs set aside are taken out of what the factors see."""

    noisy: NoisyMoments
    public: np.random.Generator  # randomness for start vectors and simulations
    device: Device
    pair: Any  # the noisy pairs, on the device
    basis: Any  # their leading eigenvectors Q
    middle: Any  # the core M, so that the pairs are nearly Q·M·Qᵀ
    clip_mean: Floats  # what clipping did to means, and within the basis to pairs, beyond its approximation
    clip_middle: Any
    strong: StrongPairs  # pairs that are set aside
    prior: SpikeSlab | None = None  # of what the factors leave

    @classmethod
    def of(cls, noisy: NoisyMoments, device: Device, public: np.random.Generator) -> LowRankPairs:
        """As measured: nothing set aside."""
        pair, nothing = device.put(noisy.pair), np.zeros(len(noisy.mean))
        basis, middle = summarise(device, pair, noisy.mean, public)
        none = device.xp.zeros_like(middle)
        return cls(noisy, public, device, pair, basis, middle, nothing, none, StrongPairs.none())

    @property
    def mean(self) -> Floats:
        """Noisy means, freed of what clipping did."""
        return self.noisy.mean - self.clip_mean

    def leading(self, r: int) -> tuple[Floats, Floats]:
        """Inside the basis.

        The sign of an eigenvector is an accident of the library that found it: all devices start from the same one.
        """
        basis = self.device.get(self.basis)
        along = basis.T @ self.noisy.mean
        w, v = np.linalg.eigh(self.device.get(self.middle) - np.outer(along, along))
        directions = basis @ v[:, ::-1][:, :r]
        return w[::-1][:r], directions * np.where((directions**3).sum(axis=0) < 0, -1, 1)

    def for_factors(self) -> LowRankTarget:
        """Pairs without those that were set aside."""
        return self._without(self.clip_middle + self.strong.inside(self.device, self.basis))

    def measured(self) -> LowRankTarget:
        """All pairs."""
        return self._without(self.clip_middle)

    def _without(self, part: Any) -> LowRankTarget:
        return LowRankTarget.of(self.device, core(self.device.xp, self.basis, self.middle - part), self.noisy.pair_sd)

    def without_clipping(self, centres: Floats) -> LowRankPairs:
        """By simulation, on means and on pairs within the basis: simulated minus approximated effect of clipping."""
        coding, (k, p) = self.noisy.coding, centres.shape
        Q, near = self.device.get32(self.basis), centres.astype(F4)
        one, _, two, _ = coding.clip_factors(near)
        middle = coding.middle.astype(F4)
        w = near - middle
        mean = -((one - 1) @ w) / k
        own = -((two - 1) @ w**2) / k
        inside: Array = w @ Q
        pair = -(inside * (two - 1)[:, None]).T @ inside / k
        for _ in range(COPIES):
            x = self.public.random((k, p), dtype=F4) < near
            x = x[squared_lengths(x, coding.centre) > coding.radius_squared]
            for rows, sign in (((coding.encode(x) / UNIT).astype(F4), 1), (x - middle, -1)):
                inside = rows @ Q
                mean += sign * rows.sum(axis=0) / (COPIES * k)
                own += sign * (rows * rows).sum(axis=0) / (COPIES * k)
                pair += sign * (inside.T @ inside) / (COPIES * k)
        clip_middle = self.device.put(pair - (Q * own[:, None]).T @ Q)
        return replace(self, clip_mean=mean.astype(np.float64), clip_middle=clip_middle)

    def set_aside(self, centres: Floats) -> LowRankPairs:
        """By empirical Bayes on a histogram of all pairs."""

        def rest() -> Iterator[tuple[int, Array]]:
            return self.residual(centres)

        prior, limit = residual_prior(rest, centres.shape[1], self.noisy.pair_sd)
        return replace(self, strong=find_strong(rest, prior, limit), prior=prior)

    def residual(self, centres: Floats) -> Iterator[tuple[int, Array]]:
        """What these centres leave of the noisy pairs: strips of rows, float32, and where they begin."""
        device, xp, coding = self.device, self.device.xp, self.noisy.coding
        u = centres - coding.middle
        if coding.clips:
            u = u * np.sqrt(coding.clip_factors(centres)[2])[:, None]
        F, right = device.put(u), xp.matrix_transpose(self.basis)
        for begin, end in strips(centres.shape[1]):
            strip = self.pair[begin:end, :] - xp.matrix_transpose(F[:, begin:end]) @ F / len(centres)
            if coding.clips:
                strip = strip - (self.basis[begin:end, :] @ self.clip_middle) @ right
            yield begin, device.get32(strip)

    def denoised(self, centres: Floats) -> LowRankTarget:
        """Leading directions of the denoised pairs, and the strong pairs beside them."""
        assert self.prior is not None  # pairs were set aside before
        device, xp, prior, (k, p) = self.device, self.device.xp, self.prior, centres.shape
        mean, Y = centres.mean(axis=0).astype(F4), device.put(centres)
        target = np.empty((p, p), dtype=F4)
        for begin, strip in self.residual(centres):
            end = begin + len(strip)
            own = mean[begin:end, None]
            joint = np.array(device.get32(xp.matrix_transpose(Y[:, begin:end]) @ Y / k))  # a device may lend its own
            joint += prior.posterior_means(strip, prior.slab_probability(strip * strip))
            joint = np.clip(joint, np.maximum(0, own + mean - 1), np.minimum(own, mean))
            target[begin:end] = joint - (own + mean) / 2 + F4(0.25)
        self.strong.take_out_of(target)
        np.fill_diagonal(target, 0)
        u = device.put(centres - 0.5)
        start = device.put(self.public.standard_normal((p, min(k, p // 2))))
        values, basis = leading_eigenvectors(xp, device.put(target), xp.mean(u * u, axis=0), start, SWEEPS)
        found = core(xp, basis, _diagonal(device, values))
        return LowRankTarget.of(device, found, self.noisy.pair_sd / CLOSE, self.strong)


def summarise(device: Device, pair: Any, mean: Floats, public: np.random.Generator) -> tuple[Any, Any]:
    """Leading eigenvectors of pairs whose diagonal is not measured: imputed by squared means, then by the vectors themselves."""
    xp = device.xp
    vectors = device.put(public.standard_normal((len(mean), min(BASIS, len(mean) // 2))))
    diagonal = device.put(mean**2)
    for _ in range(2):
        values, vectors = leading_eigenvectors(xp, pair, diagonal, vectors, SWEEPS)
        kept = xp.maximum(values, xp.zeros_like(values))
        diagonal = xp.sum(vectors * vectors * kept, axis=1)
    return vectors, _diagonal(device, values)


def _diagonal(device: Device, values: Any) -> Any:
    """A diagonal matrix."""
    return device.xp.eye(values.shape[0], dtype=values.dtype, device=device.where) * values


# A noisy p × p matrix T tells the fit little beyond its leading eigenvectors Q (p × r): T ≈ Q·M·Qᵀ with a small core M. The
# distance between that and the second moments FᵀF/k of k points needs products of k × p with p × r and k × k matrices alone.

LOW_RANK_COLUMNS = 1000  # more columns of bits than this are fitted in a basis
LOW_RANK_CATEGORIES = 1500  # and more categories than this
BASIS = 160  # directions kept of the noisy pairs, far more than the fits can use
SWEEPS = 10  # of subspace iteration


@dataclass(frozen=True)
class Core:
    """The symmetric target Q·M·Qᵀ: an orthonormal basis Q (p × r), the core M (r × r), and the target's diagonal."""

    basis: Any
    middle: Any
    diagonal: Any


def core(xp: Any, basis: Any, middle: Any) -> Core:
    """A target in a basis, with its diagonal worked out."""
    return Core(basis, middle, xp.sum((basis @ middle) * basis, axis=1))


def leading_eigenvectors(xp: Any, T: Any, diagonal: Any, start: Any, rounds: int) -> tuple[Any, Any]:
    """Ritz values, largest first, and vectors of T + diag(diagonal), after rounds of subspace iteration from given columns.

    The start has more columns than are wanted: a direction converges as fast as its eigenvalue stands out from the
    first one that the subspace has no room for.
    """
    Q = xp.linalg.qr(start).Q
    for _ in range(rounds):
        Q = xp.linalg.qr(T @ Q + diagonal[:, None] * Q).Q
    small = xp.matrix_transpose(Q) @ (T @ Q + diagonal[:, None] * Q)
    values, vectors = xp.linalg.eigh((small + xp.matrix_transpose(small)) / 2)
    return xp.flip(values), Q @ xp.flip(vectors, axis=1)


def imputed_directions(
    target: Array, inside: tuple[Integers, Integers], start: Array, keep: Callable[[Array], Array], rounds: int = 6
) -> tuple[Array, Array]:
    """Leading eigenvalues, as `keep` leaves them, and vectors of a matrix whose entries `inside` are not known.

    They are imputed by the vectors of the round before. In ordinary memory, in float32.
    """
    filled = target.astype(np.float32)
    none = np.zeros(len(filled), dtype=np.float32)
    i, j = inside
    vectors = start.astype(np.float32)
    for step in range(rounds):
        values, vectors = leading_eigenvectors(np, filled, none, vectors, SWEEPS if step == 0 else 2)
        kept = keep(values)
        filled[i, j] = ((vectors * kept)[i] * vectors[j]).sum(axis=1)
    return kept, vectors


def moment_gap(xp: Any, F: Any, target: Core) -> tuple[float, Any]:
    """‖FᵀF/k − T‖² off the diagonal, and F·(FᵀF/k − T) with the diagonal left out.

    Split F = F_Q·Qᵀ + F_⊥. The part inside the basis is a difference of small matrices and the parts outside are sums of
    squares, so nothing large cancels, which float32 would not survive.
    """
    k = F.shape[0]
    inside = F @ target.basis
    outside = F - inside @ xp.matrix_transpose(target.basis)
    gap = xp.matrix_transpose(inside) @ inside / k - target.middle
    K_in, K_out = inside @ xp.matrix_transpose(inside), outside @ xp.matrix_transpose(outside)
    own = xp.mean(F * F, axis=0) - target.diagonal
    cross = 2 * _dot(xp, K_in, K_out) + _dot(xp, K_out, K_out)
    norm = _dot(xp, gap, gap) + cross / k**2 - _dot(xp, own, own)
    along = (inside @ gap + K_out @ inside / k) @ xp.matrix_transpose(target.basis)
    return norm, along + ((K_in + K_out) / k) @ outside - F * own


def _dot(xp: Any, a: Any, b: Any) -> float:
    return float(xp.sum(a * b, dtype=xp.float64))
