"""Microaggregation: sums over the blocks of a partition, means, the damped means of (5.4); then bootstrapping and rounding."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse

from covey._core.arrays import Array, Bits, Floats, Integers, is_bits
from covey.errors import ParameterError


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


CHUNK_BYTES = 1 << 24  # random bytes drawn at a time: a few caches full, whatever the number of rows


def spread_copies(rows: Floats, public: np.random.Generator) -> Floats:
    """Rows of which many are equal, moved apart: a value lies anywhere between the halfway points to its neighbours.

    Ranks hardly change, so that columns and their ties stay as they are. A value that rows share which are no copies of each
    other is common, and stays; so do values beside a common one, the least and the largest.
    """
    out = rows.copy()
    _, copy_of = np.unique(rows, axis=0, return_inverse=True)
    copy_of = copy_of.reshape(-1)
    for j in range(rows.shape[1]):
        values, place = np.unique(rows[:, j], return_inverse=True)
        alone = agreeing(place, copy_of)
        alone[[0, -1]] = False
        free = alone.copy()
        free[1:] &= alone[:-1]
        free[:-1] &= alone[1:]
        middle = (values[1:] + values[:-1]) / 2
        low, high = np.r_[values[0], middle], np.r_[middle, values[-1]]
        drawn = public.uniform(low[place], high[place])
        out[:, j] = np.where(free[place], drawn, rows[:, j])
    return out


def agreeing(labels: Integers, numbers: Integers) -> Array:
    """For each of the labels 0, 1, …, whether all that have it have one number, from 0 on."""
    low, high = np.full(int(labels.max()) + 1, np.iinfo(np.int64).max), np.full(int(labels.max()) + 1, -1)
    np.minimum.at(low, labels, numbers)
    np.maximum.at(high, labels, numbers)
    return np.asarray(low == high)


def bootstrap(cloud: WeightedPoints, m: int, generator: np.random.Generator) -> Integers:
    """Lemma 4.3: m independent draws j with probability w_j, as indices into the points."""
    edges = np.cumsum(cloud.weights)
    drawn = np.searchsorted(edges, generator.random(m) * edges[-1], side="right")
    # A draw that rounds up to the total belongs to the last point that has weight.
    return np.asarray(np.minimum(drawn, np.flatnonzero(cloud.weights)[-1]))


def round_bits(points: Floats, chosen: Integers, generator: np.random.Generator) -> Bits:
    """Independent coins: entry i of row ℓ is 1 with probability points[chosen[ℓ], i] (Lemma 4.7).

    A coin compares one random byte with the first binary digits of the probability. Only a tie, one in 256,
    needs more digits. So the probability is exact to 2^-53 at the price of about one byte.
    """
    scaled = np.clip(points, 0.0, 1.0) * 256
    digit = np.minimum(np.floor(scaled), 255)
    rest = (scaled - digit).astype(np.float64)
    # digit 255 with rest 1 is the certain coin: byte 255 is always a tie and always won.
    digit = digit.astype(np.uint8)
    m, p = len(chosen), points.shape[1]
    bits = np.empty((m, p), dtype=np.uint8)
    for rows in _chunks(m, p):
        j = chosen[rows]
        byte = generator.integers(0, 256, (len(j), p), dtype=np.uint8)
        threshold = digit[j]
        np.less(byte, threshold, out=bits[rows].view(np.bool_))
        tie_row, tie_column = np.nonzero(byte == threshold)
        won = generator.random(len(tie_row)) < rest[j[tie_row], tie_column]
        bits[rows][tie_row, tie_column] = won
    return bits


def round_categories(
    points: Floats, chosen: Integers, sizes: Sequence[int], generator: np.random.Generator
) -> Integers:
    """One category per block: code c of a block with probability given by the point's block entries."""
    m = len(chosen)
    codes = np.empty((m, len(sizes)), dtype=np.int64)
    start = 0
    for block, size in enumerate(sizes):
        edges = np.cumsum(np.maximum(points[:, start : start + size], 0.0), axis=1)
        edges /= edges[:, -1:]
        for rows in _chunks(m, size):
            u = generator.random(len(chosen[rows]))
            codes[rows, block] = np.sum(edges[chosen[rows], :-1] <= u[:, None], axis=1)
        start += size
    return codes


def one_hot(codes: Integers, sizes: Sequence[int]) -> Bits:
    """Category codes as 0/1 columns, one block per attribute."""
    offsets = np.cumsum([0, *sizes[:-1]])
    out = np.zeros((len(codes), int(sum(sizes))), dtype=np.uint8)
    np.put_along_axis(out, codes + offsets, 1, axis=1)
    return out


def _chunks(m: int, width: int) -> Iterator[slice]:
    """Slices of rows small enough that temporaries stay in cache and memory stays bounded."""
    rows = max(1, CHUNK_BYTES // max(1, width))
    for start in range(0, m, rows):
        yield slice(start, min(start + rows, m))


# Remark 1.5: records of a Hilbert space, known by their Gram matrix alone, and records with weights. Nothing here needs
# coordinates: second moments, their loss under a partition and the groups' centres are functions of inner products. So strings,
# graphs or curves can be microaggregated through any positive semidefinite kernel.

ROUNDING = 1e-8  # of the largest eigenvalue: what a Gram matrix may fall short of positive semidefinite


def coordinates(G: Floats) -> Floats:
    """Rows whose inner products are G, in an orthonormal basis of their second moment, the leading direction first."""
    G = np.asarray(G, dtype=np.float64)
    if G.ndim != 2 or G.shape[0] != G.shape[1] or not len(G) or not np.isfinite(G).all():
        raise ParameterError(f"G must be a square matrix of finite inner products, got shape {G.shape}.")
    largest = float(np.abs(G).max())
    if np.abs(G - G.T).max() > ROUNDING * largest:
        raise ParameterError("G must be symmetric: entry (i, j) is the inner product of records i and j.")
    values, vectors = scipy.linalg.eigh((G + G.T) / 2)
    if values[0] < -ROUNDING * len(G) * max(largest, 1e-300):
        raise ParameterError(f"G must be positive semidefinite, but has the eigenvalue {values[0]:.3g}.")
    kept = values > np.finfo(float).eps * len(G) * values[-1]
    return np.asarray((vectors[:, kept] * np.sqrt(values[kept]))[:, ::-1])


def shares(n: int, weights: Array | None) -> Floats:
    """The probability of each record: uniform, or in proportion to its weight."""
    if weights is None:
        return np.full(n, 1 / n)
    w = np.asarray(weights, dtype=np.float64)
    if w.shape != (n,) or not np.isfinite(w).all() or (w <= 0).any():
        raise ParameterError(f"weights must be {n} positive numbers, one for each record.")
    return np.asarray(w / w.sum())


def group_means(X: Array, labels: Integers, weights: Floats | None = None) -> WeightedPoints:
    """(4.1): a group has the weight of its records, 1 each where none is given, and sits at their mean; none is empty."""
    mass = np.asarray(np.bincount(labels, weights), dtype=np.float64)
    sums = block_sums(X if weights is None else X * weights[:, None], labels, len(mass)).sums
    return WeightedPoints(mass / mass.sum(), sums / mass[:, None])


def covariance_loss(X: Array, labels: Integers, weights: Floats | None = None) -> float:
    """‖Σ_X − Σ_Y‖₂ = ‖E(X − Y)(X − Y)ᵀ‖₂ (Lemma 3.1), records having probabilities in proportion to their weights."""
    probability, lost = shares(len(X), weights), np.zeros((X.shape[1], X.shape[1]))
    means = group_means(X, labels, weights).points
    for rows in _chunks(len(X), 8 * X.shape[1]):
        inside = X[rows] - means[labels[rows]]
        lost += (inside * probability[rows, None]).T @ inside
    return float(np.linalg.norm(lost))


def gram_means(G: Floats, labels: Integers, probability: Floats) -> tuple[Floats, Floats, float]:
    """(4.1) from inner products: each group's weight, the inner products of the groups' means, and the covariance loss.

    With R the inner products of the residuals X − Y, the square of the loss is Σ π_i π_j R_ij².
    """
    A = np.zeros((int(labels.max()) + 1, len(labels)))  # row j takes the average over group j
    A[labels, np.arange(len(labels))] = probability
    mass = A.sum(axis=1)
    A /= mass[:, None]
    means, own = A @ G @ A.T, (A @ G)[labels]
    R = G - own - own.T + means[labels][:, labels]
    return mass, means, float(np.sqrt(probability @ R**2 @ probability))
