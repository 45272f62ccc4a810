"""Weighted points, and how copies and rounding turn them into rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from covey.engine.arrays import Array, Bits, Floats, Integers


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
    for rows in chunks_of_rows(m, p):
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
        for rows in chunks_of_rows(m, size):
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


def chunks_of_rows(m: int, width: int) -> Iterator[slice]:
    """Slices of rows small enough that temporaries stay in cache and memory stays bounded."""
    rows = max(1, CHUNK_BYTES // max(1, width))
    for start in range(0, m, rows):
        yield slice(start, min(start + rows, m))
