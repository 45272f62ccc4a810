"""What the centres' pairs should be: a target, dense here and low-rank in `wide`, and how noisy pairs become one.

Everything around it (terms, factors, descent) is written once and sees a target only through `Target` and `Pairs`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Array, Floats, hollow, pair_index, symmetric
from covey.core.fit.devices import DOUBLE, Device
from covey.core.fit.shrinkage import empirical_bayes
from covey.core.tables.coding import Coding

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


class Pairs(Protocol):
    """Noisy pairs while they are denoised: each round sets aside what the factors should not explain."""

    @property
    def noisy(self) -> NoisyMoments:
        """What was measured."""
        ...

    @property
    def public(self) -> np.random.Generator:
        """Randomness for start vectors and simulations."""
        ...

    @property
    def device(self) -> Device:
        """Where the fit runs."""
        ...

    @property
    def mean(self) -> Floats:
        """Noisy means of the coded rows, freed of what clipping did to them."""
        ...

    def leading(self, r: int) -> tuple[Floats, Floats]:
        """The r leading eigenvalues and eigenvectors of the noisy covariance."""
        ...

    def for_factors(self) -> Target:
        """The measured pairs as the factors should see them: those set aside count little, or are taken out."""
        ...

    def measured(self) -> Target:
        """The measured pairs, all of them, freed of what clipping did to them."""
        ...

    def without_clipping(self, centres: Floats) -> Self:
        """The pairs freed of what clipping does to rows of these centres, beyond what the fit accounts for by itself."""
        ...

    def set_aside(self, centres: Floats) -> Self:
        """Look at what these centres leave of the pairs: strong ones are set aside, and all of it is shrunk."""
        ...

    def denoised(self, centres: Floats) -> Target:
        """These centres' pairs plus the shrunken rest, within the Fréchet bounds of their means, coded around ½."""
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


@dataclass(frozen=True)
class DensePairs:
    """Pairs that are held as p × p matrices. Those set aside keep their value and lose weight.

    Args:
        noisy: what was measured.
        public: randomness for simulations.
        clip_mean, clip_pair: what clipping did to means and pairs beyond its approximation.
        sd: the deviation with which each pair counts for the factors: that of its noise, and beyond it the slab's, as far as the
            pair seems to come from there.
        rest: the shrunken rest above the diagonal.
    """

    noisy: NoisyMoments
    public: np.random.Generator
    clip_mean: Floats
    clip_pair: Floats
    sd: Floats
    rest: Floats
    device: Device = field(default=DOUBLE)

    @classmethod
    def of(cls, noisy: NoisyMoments, public: np.random.Generator) -> DensePairs:
        """As measured: nothing set aside."""
        p = len(noisy.mean)
        sd = np.full((p, p), noisy.pair_sd)
        return cls(noisy, public, np.zeros(p), np.zeros((p, p)), sd, np.zeros(p * (p - 1) // 2))

    @property
    def mean(self) -> Floats:
        """Noisy means, freed of what clipping did."""
        return self.noisy.mean - self.clip_mean

    @property
    def _pair(self) -> Floats:
        return self.noisy.pair - self.clip_pair

    def leading(self, r: int) -> tuple[Floats, Floats]:
        """Of the whole matrix."""
        noisy = self.noisy
        w, v = np.linalg.eigh(hollow(noisy.pair - np.outer(noisy.mean, noisy.mean)))
        return w[::-1][:r], v[:, ::-1][:, :r]

    def for_factors(self) -> DenseTarget:
        """Pairs with a larger variance where they were set aside."""
        return DenseTarget.of(self._pair, self.sd)

    def measured(self) -> DenseTarget:
        """All pairs with the variance of their noise."""
        return DenseTarget.of(self._pair, self.noisy.pair_sd)

    def without_clipping(self, centres: Floats) -> DensePairs:
        """By simulation."""
        mean, pair = self.noisy.coding.clip_error(centres.astype(F4), self.public)
        return replace(self, clip_mean=mean, clip_pair=pair)

    def set_aside(self, centres: Floats) -> DensePairs:
        """By empirical Bayes on all pairs at once."""
        coding, p = self.noisy.coding, centres.shape[1]
        near: NDArray[np.float32] = centres.astype(F4)
        u = near - coding.middle.astype(F4)
        explained = (u * coding.clip_factors(near)[2][:, None] if coding.clips else u).T @ u / len(u)
        noise = self.noisy.pair_sd
        rest, probability, prior = empirical_bayes((self._pair - explained)[pair_index(p)], noise)
        return replace(self, sd=np.sqrt(noise**2 + symmetric(probability * prior.slab**2, p)), rest=rest)

    def joint(self, centres: Floats) -> Floats:
        """These centres' joint shares plus the shrunken rest, within the Fréchet bounds of their means."""
        m, p = centres.mean(axis=0), centres.shape[1]
        joint = centres.T @ centres / len(centres) + symmetric(self.rest, p)
        return np.clip(joint, np.maximum(0, m[:, None] + m - 1), np.minimum(m[:, None], m))

    def denoised(self, centres: Floats) -> DenseTarget:
        """The whole matrix."""
        m, joint = centres.mean(axis=0), self.joint(centres)
        return DenseTarget.of(hollow(joint - (m[:, None] + m) / 2 + 0.25), self.noisy.pair_sd / CLOSE)
