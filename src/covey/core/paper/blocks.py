"""Microaggregation: sums over the blocks of a partition, their means, and the damped means of (5.4)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from covey.core.arrays import Array, Floats, Integers, is_bits


@dataclass(frozen=True)
class BlockSums:
    """Size and sum of every block, empty ones included. Private: it has no serializer."""

    sizes: Integers
    sums: Floats

    def __add__(self, other: BlockSums) -> BlockSums:
        return BlockSums(self.sizes + other.sizes, self.sums + other.sums)


@dataclass(frozen=True)
class WeightedPoints:
    """Points y_j with probabilities w_j: a distribution that synthetic rows are drawn from."""

    weights: Floats
    points: Floats

    def __len__(self) -> int:
        return len(self.weights)

    @property
    def second_moment(self) -> Floats:
        """Σ w_j y_j y_jᵀ."""
        return np.asarray((self.points * self.weights[:, None]).T @ self.points)


def block_sums(batch: Array, labels: Integers, count: int) -> BlockSums:
    """Sizes and sums of `count` blocks. Integer rows give exact integers."""
    n = len(batch)
    indicator = scipy.sparse.csr_array((np.ones(n, dtype=np.float32), labels, np.arange(n + 1)), shape=(n, count))
    exact = n <= 1 << 24 and is_bits(batch)  # float32 sums of that many bits are exact
    rows: Array = np.ascontiguousarray(batch, dtype="f4" if exact else "f8")
    return BlockSums(np.bincount(labels, minlength=count), np.asarray(indicator.T @ rows, dtype=np.float64))


def microaggregate(blocks: BlockSums) -> WeightedPoints:
    """(4.1): weights |I_j|/n and block means. Empty blocks are dropped."""
    filled = blocks.sizes > 0
    sizes = blocks.sizes[filled].astype(np.float64)
    return WeightedPoints(sizes / sizes.sum(), blocks.sums[filled] / sizes[:, None])


def damped_means(blocks: BlockSums, b: float) -> Floats:
    """(5.4): Σ_{i∈F_j} x_i / max(|F_j|, b). By Lemma 5.10 one row moves a block by at most 2/b · max‖x‖."""
    return np.asarray(blocks.sums / np.maximum(blocks.sizes, b)[:, None])


def project_weights(w: Floats) -> Floats:
    """π_{Δ,1} of (5.5): negative entries become 0 and the rest is normalised; an ℓ1-nearest point of the simplex.

    Without a positive entry the answer is the uniform distribution.
    """
    positive = np.maximum(w, 0.0)
    total = positive.sum()
    if not total > 0:
        return np.full(len(w), 1 / len(w))
    return np.asarray(positive / total)
