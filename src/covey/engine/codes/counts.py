"""Exact integer statistics of records: what `regain` measures, as kernels from a batch to a sum that can be merged.

Everything that privacy rests on is an integer, and what a record adds depends on that record alone.

Bits are coded as vectors around a centre, clipped to a ball: fewer places to hide in means less noise. Coded at ½ every row
has the same norm √p/2 and nothing is clipped. For a sparse table, or one with a declared limit on how many flags a row may
set, a centre near the means and a smaller ball shrink the sensitivity; rows outside are scaled back to it, one by one, and
the fit accounts for the clipping.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from scipy.sparse import csr_array, issparse

from covey.engine.arrays import Array, Floats, Integers, is_bits, strips
from covey.engine.noise.integers import CLAMP
from covey.errors import ParameterError

UNIT = 1 << 10  # the centre and coded rows are integers in steps of 1/1024; of real rows, of a column's spread
COPIES = 50  # of every centre in a simulation of clipping
LENGTH_ENTRIES = 1 << 22  # of rows that become float64 at once: 32 MB


@dataclass(frozen=True)
class Coding:
    """Rows u = x − centre with ‖u‖² ≤ radius², in integer steps of 2^-10 (centre) and 2^-20 (radius_squared)."""

    centre: Integers
    radius_squared: int
    clips: bool

    @classmethod
    def half(cls, p: int) -> Coding:
        """Around ½: every row has squared norm p/4, and none is clipped."""
        return cls(np.full(p, UNIT // 2), p * UNIT**2 // 4, clips=False)

    def encode(self, batch: Array) -> Floats:
        """The coded rows, as integers. Clipping truncates toward zero, so no row leaves the ball."""
        u = np.asarray(batch.astype(np.float64) * UNIT - self.centre)
        return into_ball(u, self.radius_squared) if self.clips else u

    @cached_property
    def middle(self) -> Floats:
        """The centre as real numbers."""
        return self.centre / UNIT

    @cached_property
    def size(self) -> float:
        """The squared radius as a real number."""
        return self.radius_squared / UNIT**2

    def clip_factors(self, y: Array) -> tuple[Array, Array, Array, Array]:
        """What clipping does to a row drawn from each centre: the mean factor on u, its slope in ‖u‖², and both squared.

        ‖u‖² is taken as normal, by a three-point rule, with the variance that independent columns would have.
        """
        return self.clip_factors_along(y @ (1 - 2 * self.middle).astype(np.float32))

    def clip_factors_along(self, along: Array) -> tuple[Array, Array, Array, Array]:
        """The same from the inner products of the centres with 1 − 2·centre, all that it depends on."""
        slope = 1 - 2 * self.middle
        length = along + np.float32((self.middle**2).sum())
        spread = np.sqrt(3 * (self.middle * (1 - self.middle)) @ slope**2)
        s = np.maximum(length[:, None] + np.float32(spread) * np.array([-1, 0, 1], np.float32), np.float32(1e-6))
        over = s > self.size
        two = np.where(over, self.size / s, 1)
        one = np.sqrt(two)
        parts = (one, np.where(over, -one / (2 * s), 0), two, np.where(over, -two / s, 0))
        rule = np.array([1, 4, 1]) / 6
        a, b, c, d = ((part @ rule).astype(np.float32) for part in parts)
        return a, b, c, d

    def simulated_cut(self, y: Array, public: np.random.Generator) -> tuple[Floats, Floats]:
        """What clipping does to means and pairs of rows drawn from given centres, by simulation.

        Copies of the same rows with and without clipping are compared, so only clipped rows add noise.
        """
        near = np.repeat(y.astype(np.float32), COPIES, axis=0)
        x = (public.random(near.shape, dtype=np.float32) < near).astype(np.float32)
        u, v = x - self.middle.astype(np.float32), (self.encode(x) / UNIT).astype(np.float32)
        pair = (v.T @ v - u.T @ u) / len(x)
        np.fill_diagonal(pair, 0)
        return (v - u).mean(axis=0, dtype=np.float64), np.asarray(pair)

    def clip_error(self, y: Array, public: np.random.Generator) -> tuple[Floats, Floats]:
        """What `clip_factors` misses: simulated minus approximated effect of clipping on means and pairs, for given centres."""
        mean, pair = self.simulated_cut(y, public)
        one, _, two, _ = self.clip_factors(y)
        w = y - self.middle
        pair = pair - (w * (two - 1)[:, None]).T @ w / len(y)
        np.fill_diagonal(pair, 0)
        return mean - (one - 1) @ w / len(y), np.asarray(pair)


def into_ball(u: Floats, radius_squared: int) -> Floats:
    """Rows of integers, in place, of which those outside the ball are pulled back to it.

    Lengths are exact wherever they are at most the radius: integers below 2^53. Truncating toward zero lengthens no row, so none
    leaves the ball.
    """
    length = (u * u).sum(axis=1)
    long = length > radius_squared
    factor = np.sqrt(radius_squared / length[long]) * (1 - 2.0**-40)
    u[long] = np.trunc(u[long] * factor[:, None])
    return u


def wide_enough(outside: Floats, tail: float) -> int:
    """The radius from which on no more than `tail` of the rows seem to lie outside, by its place; their number if there is none.

    The share outside falls with the radius, and its noise adds up toward small ones. So the last one that is too tight decides:
    with few rows the first that seemed wide enough could be next to nothing, and every row would be clipped to it.
    """
    tight = np.flatnonzero(outside > tail)
    return int(tight[-1]) + 1 if len(tight) else 0


def squared_lengths(batch: Batch, centre: Integers) -> Floats:
    """‖1024·x − centre‖² of rows of bits: Σc² plus 1024² − 2048·c for every one, integers below 2^53 in any order of summing."""
    weight = (UNIT**2 - 2 * UNIT * centre).astype(np.float64)
    step = max(1, LENGTH_ENTRIES // batch.shape[1])
    parts = [batch[start : start + step].astype(np.float64) @ weight for start in range(0, batch.shape[0], step)]
    return np.concatenate(parts) + float(centre @ centre) if parts else np.zeros(0)


MAX_ROWS = 1 << 32  # so many contributions of 2^20 stay below 2^53, up to where float64 counts exactly
MAX_PERSONS = (1 << 21) - 1  # of flags: 2^20 steps each, of 2^20 a step, stay below the clamp at 2^61


def require_exact(n: int, categories: int = 1, steps: int = 1) -> None:
    """Refuse, on public sizes alone, a table whose sums could outgrow the arithmetic that holds them exactly.

    No record adds more than 2^20 to an entry of a float64 sum (coded bits, fixed-point records), and the sums that combine
    two such entries add as much again: 2^32 rows stay below 2^53. Pair tables, scaled by numbers of categories, are int64: they
    reach 4·c²·n, which must stay below the clamp of the noise.

    Persons weigh 2^20 steps each, in int64. A coded bit table adds 2^20 a step, so 2^21 persons reach the clamp.
    """
    if steps > 1 and categories == 1 and n > MAX_PERSONS:
        raise ParameterError(f"a table of {n} persons is too long: their sums are exact up to {MAX_PERSONS} persons.")
    if n > MAX_ROWS:
        raise ParameterError(f"{n} rows, or noise that makes so many of a secret number, are more than {MAX_ROWS}.")
    if 4 * categories**2 * n * steps >= CLAMP:
        of = "rows" if steps == 1 else "persons"
        raise ParameterError(
            f"an attribute with {categories} categories is too wide for {n} {of}: its pair tables would pass 2^61. "
            "Declare fewer categories."
        )


def coded_moments(batch: Batch, coding: Coding) -> Moments:
    """First and second moments of coded rows, exact: entries are below 2^10, so sums of 2^33 rows fit a float64.

    Those of rows inside the ball follow from the moments of their bits. Rows that are cut are coded one by one.
    """
    n, p = batch.shape
    if not coding.clips:
        return shifted_moments(moments(batch), coding.centre)
    long = squared_lengths(batch, coding.centre) > coding.radius_squared
    inside = shifted_moments(moments(batch[~long]), coding.centre)
    first, second = inside.first, inside.second
    cut, step = batch[long], max(1, block_rows(p) // 4)
    for start in range(0, cut.shape[0], step):
        u = coding.encode(dense(cut[start : start + step]))
        first += u.sum(axis=0)
        second += u.T @ u
    return Moments(n, first, second)


def shifted_moments(bits: Moments, centre: Integers) -> Moments:
    """Moments of rows u = 1024·x − centre, from those of the bits: exact integers."""
    n, a, c = bits.n, UNIT * bits.first, centre.astype(bits.first.dtype)
    second = UNIT**2 * bits.second
    for begin, end in strips(len(c)):
        strip = second[begin:end]
        strip -= np.outer(a[begin:end], c)
        strip -= np.outer(c[begin:end], a - n * c)
    return Moments(n, a - n * c, second)


@dataclass(frozen=True)
class Counts:
    """Integer sums under any names."""

    values: tuple[Array, ...]

    def __add__(self, other: Counts) -> Counts:
        return Counts(tuple(a + b for a, b in zip(self.values, other.values, strict=True)))

    def times(self, weight: int) -> Counts:
        """The sums, so many times, as integers."""
        return Counts(tuple(v.astype(np.int64) * weight for v in self.values))

    def integers(self) -> tuple[Integers, ...]:
        """The sums as integers."""
        return tuple(v.astype(np.int64) for v in self.values)


def part(counts: Counts, i: int = 0) -> Integers:
    """One of several sums, as integers."""
    return np.asarray(counts.values[i].astype(np.int64))


def side_by_side(counts: Counts) -> Integers:
    """All sums, one after the other."""
    return np.concatenate(counts.integers())


def integer_squares(batch: Array) -> Counts:
    """Σxxᵀ of rows of integers up to 2^20, the same in any order and any batch; in three parts, high, mixed and low.

    A product of two such entries reaches 2^40, and a sum of 2^13 of them would no longer fit a float64. So x = 1024·high + low:
    entries of the parts are at most 2^20 a row, exact integers for 2^32 rows.
    """
    if is_bits(batch):
        second = moments(batch).second
        return Counts((np.zeros_like(second), np.zeros_like(second), second))
    p = batch.shape[1]
    parts = [np.zeros((p, p)) for _ in range(3)]
    for start in range(0, len(batch), EXACT_ROWS):
        block = np.asarray(batch[start : start + EXACT_ROWS], dtype=np.float64)
        high = np.rint(block / 1024)
        low = block - 1024 * high
        cross = high.T @ low
        for part, value in zip(parts, (high.T @ high, cross + cross.T, low.T @ low), strict=True):
            part += value
    return Counts(tuple(parts))


def joined(squares: Counts) -> Floats:
    """Σxxᵀ from its three parts, rounded once, however many rows and batches went into it."""
    high, mixed, low = squares.values
    return np.asarray(np.ldexp(high, 20) + (np.ldexp(mixed, 10) + low))


def parity_sums(batch: Batch) -> Counts:
    """Σ z_i z_j z_k and Σ z_i z_j z_k z_l of signs z = 2x − 1, as (column × pair) and (pair × pair) matrices."""
    p = batch.shape[1]
    i, j = np.triu_indices(p, 1)
    triples, quads = np.zeros((p, len(i))), np.zeros((len(i), len(i)))
    for start in range(0, batch.shape[0], EXACT_ROWS):
        z: Array = 2 * dense(batch[start : start + EXACT_ROWS]).astype(np.float32) - 1
        pairs = z[:, i] * z[:, j]
        triples += z.T @ pairs
        quads += pairs.T @ pairs
    return Counts((triples, quads))


def column_counts(batch: Batch) -> Counts:
    """How many rows have a one in each column."""
    if is_sparse(batch):
        return Counts((np.bincount(batch.indices, minlength=batch.shape[1]).astype(np.float64),))
    total = np.zeros(batch.shape[1])
    for start in range(0, batch.shape[0], EXACT_ROWS):
        total += batch[start : start + EXACT_ROWS].sum(axis=0, dtype=np.uint32)
    return Counts((total,))


def sign_counts(batch: Batch) -> Counts:
    """Sums of signs, 1 for a one and −1 for a zero, in each column."""
    return Counts((2 * part(column_counts(batch)).astype(np.float64) - batch.shape[0],))


def size_counts(batch: Batch) -> Counts:
    """How many rows have 0, 1, …, p ones."""
    ones = row_ones(batch) if is_sparse(batch) else batch.sum(axis=1, dtype=np.int64)
    return Counts((np.bincount(ones, minlength=batch.shape[1] + 1).astype(np.float64),))


def norm_counts(batch: Batch, centre: Integers, edges: Integers) -> Counts:
    """Histogram of ‖x − centre‖², computed in integers of 2^-20, over public edges."""
    cells = np.searchsorted(edges, squared_lengths(batch, centre))
    return Counts((np.bincount(cells, minlength=len(edges) + 1).astype(np.float64),))


def score_counts(batch: Batch, directions: Floats, edges: Integers) -> Counts:
    """Histograms of the scores ⟨v_a, x⟩ for quantised directions, over public integer edges, one row of each per score."""
    scores = integer_scores(batch, directions)
    bins = edges.shape[1] + 1
    rows = [np.bincount(np.searchsorted(e, s), minlength=bins) for e, s in zip(edges, scores.T, strict=True)]
    return Counts((np.array(rows, dtype=np.float64).reshape(len(edges), bins),))


def integer_scores(batch: Batch, quantised: Floats) -> Floats:
    """Inner products of integer rows with quantised directions, exact and so the same in any batch.

    Σ|x_i v_i| ≤ ‖x‖·‖v‖ by Cauchy-Schwarz, and ‖v‖ is 2^16 up to rounding: for rows of at most 2^14 bits every partial
    sum stays below 2^24 and fits a float32; for rows of norm 2^20 it stays far below 2^53.
    """
    if is_sparse(batch):
        return np.asarray(batch.astype(np.float64) @ quantised)
    narrow = batch.shape[1] <= 1 << 14 and is_bits(batch)
    scores: Array = batch.astype("f4" if narrow else "f8") @ quantised.astype("f4" if narrow else "f8")
    return np.asarray(scores, dtype=np.float64)


SparseBits: TypeAlias = "csr_array[Any, tuple[int, int]]"
Batch: TypeAlias = Any  # rows in either form: Array or SparseBits

# Moments, of sparse rows too: a wide, mostly empty table of bits in scipy's CSR format is never written out. Its sums are exact
# integers, the same as those of dense rows to the last bit.

# A multiplication of sparse rows costs about as much as so many of dense ones.
SPARSE_COST = 500


def is_sparse(batch: Any) -> bool:
    """Whether rows are in one of scipy's sparse formats."""
    return bool(issparse(batch))


def dense(batch: Batch) -> Array:
    """The rows written out: for narrow tables and short batches."""
    return np.asarray(batch.toarray() if is_sparse(batch) else batch)


def canonical(X: Any) -> SparseBits:
    """CSR rows with sorted columns, each entry at most once and none of them zero; X itself is not changed.

    Entries that are given twice are added, as in the dense matrix. Raises ValueError where the index arrays contradict each
    other, which scipy's products would follow out of bounds.
    """
    rows = csr_array(X)
    rows.check_format(full_check=True)
    if not rows.has_canonical_format or np.count_nonzero(rows.data) < rows.nnz:
        rows = rows.copy()
        rows.sum_duplicates()
        rows.eliminate_zeros()
    return rows


def row_ones(batch: SparseBits) -> Integers:
    """Ones in each row."""
    return np.diff(batch.indptr).astype(np.int64)


# A float32 holds every integer up to 2^24 exactly, so sums over a block of 0/1 rows this long lose nothing.
EXACT_ROWS = 1 << 14
PRODUCT_ENTRIES = 1 << 25  # of a block that is multiplied with itself: 128 MB in float32


@dataclass(frozen=True)
class Moments:
    """n, Σx and Σxxᵀ. Private: it has no serializer and never leaves the machine."""

    n: int
    first: Array
    second: Array

    def __add__(self, other: Moments) -> Moments:
        return Moments(self.n + other.n, self.first + other.first, self.second + other.second)

    def counted_as(self, n: int) -> Moments:
        """The same sums, taken for those of so many rows."""
        return Moments(n, self.first, self.second)

    def times(self, weight: int) -> Moments:
        """The moments of so many copies of each row, for rows of integers: weighted sums pass what a float64 holds."""
        first, second = (values.astype(np.int64) * weight for values in (self.first, self.second))
        return Moments(self.n * weight, first, second)

    @property
    def second_moment_matrix(self) -> Floats:
        """S = (1/n) Σ xxᵀ."""
        return self.second / self.n


def block_rows(p: int) -> int:
    """How many rows of p columns are multiplied together: few enough for float32 to be exact, and for the memory."""
    return max(256, min(EXACT_ROWS, PRODUCT_ENTRIES // p))


def moments(batch: Batch) -> Moments:
    """Moments of one batch of rows.

    Rows of 0/1 (Boolean or integer type) use float32 products over blocks, which are exact, and float64 sums of
    the blocks, which stay exact up to 2^53 rows. Real rows are computed in float64. Sparse rows are multiplied as such where
    that is cheaper; the sums are the same.
    """
    n, p = batch.shape
    if is_sparse(batch) and int((row_ones(batch) ** 2).sum()) * SPARSE_COST < n * p * p:
        ones, second = batch.astype(np.int32), np.zeros((p, p))
        columns = ones.T.tocsr()
        for begin, end in strips(p):
            second[begin:end] = (columns[begin:end] @ ones).toarray()
        return Moments(n, second.diagonal().copy(), second)
    exact = is_sparse(batch) or is_bits(batch)
    second = np.zeros((p, p))
    for start in range(0, n, block_rows(p)):
        rows = dense(batch[start : start + block_rows(p)])
        block: Array = np.ascontiguousarray(rows, dtype="f4" if exact else "f8")
        second += block.T @ block
    first = second.diagonal().copy() if exact else np.asarray(batch.sum(axis=0, dtype=np.float64))
    return Moments(n, first, second)


# Real records on a public grid: codes of a box's columns, rows around a centre cut to a ball, and their exact sums.

CODE_BITS = 20  # of a column between its bounds: `integer_squares` sums products of such codes exactly


@dataclass(frozen=True, eq=False)
class RealGrid:
    """Public: the box of a body, and which of its columns can differ at all.

    A code counts steps of 2^-20 of the column's width from its lower bound.
    """

    lower: Floats
    width: Floats

    @classmethod
    def of(cls, lower: Floats, upper: Floats) -> RealGrid:
        """The grid of a box."""
        return cls(np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64) - lower)

    @property
    def live(self) -> Integers:
        """The columns with a width."""
        return np.flatnonzero(self.width > 0)

    def codes(self, points: Floats) -> Array:
        """Codes of the live columns, each from its own number alone."""
        at = self.live
        scaled = np.clip(np.nan_to_num((points[:, at] - self.lower[at]) / self.width[at]), 0.0, 1.0)
        return np.minimum(np.floor(scaled * (1 << CODE_BITS)), (1 << CODE_BITS) - 1).astype(np.int32)

    def scaled(self, points: Floats) -> Floats:
        """Points with the live columns between 0 and 1."""
        at = self.live
        return np.asarray((points[:, at] - self.lower[at]) / self.width[at])

    def points(self, scaled: Floats) -> Floats:
        """The points again; columns without a width have their one value."""
        out = np.tile(self.lower, (len(scaled), 1))
        at = self.live
        out[:, at] += scaled * self.width[at]
        return out


@dataclass(frozen=True, eq=False)
class Spread:
    """Public, or private by noise: a centre and a spread for every column, in codes, and a squared radius in steps of 2^-20.

    Rows are u = 1024·(code − centre)/spread, cut off toward zero, and those with ‖u‖² beyond the radius are pulled back to it.
    """

    centre: Integers
    spread: Integers
    radius_squared: int

    def rows(self, codes: Array) -> Floats:
        """Rows before they are pulled back: integers."""
        return np.trunc((codes.astype(np.float64) - self.centre) * UNIT / self.spread)

    def encode(self, codes: Array) -> Floats:
        """Rows inside the ball: integers. Truncating toward zero lengthens no row, so no row leaves it."""
        return into_ball(self.rows(codes), self.radius_squared)

    def cut(self, scaled: Floats) -> Floats:
        """What pulling back does to points between 0 and 1, in spreads; for post-processing, without rounding."""
        u = (scaled * (1 << CODE_BITS) - self.centre) / self.spread
        length = np.sqrt((u * u).sum(axis=1, keepdims=True))
        return np.asarray(u * np.minimum(1.0, np.sqrt(self.radius_squared) / UNIT / np.maximum(length, 1e-300)))


def length_counts(codes: Array, spread: Spread, edges: Integers) -> Counts:
    """Kernel: how many rows have ‖u‖² up to each edge, and beyond the last."""
    total = np.zeros(len(edges) + 1, dtype=np.int64)
    for start in range(0, len(codes), EXACT_ROWS):
        u = spread.rows(codes[start : start + EXACT_ROWS])
        total += np.bincount(np.searchsorted(edges, (u * u).sum(axis=1)), minlength=len(total))
    return Counts((total,))


def moment_sums(codes: Array, spread: Spread | None = None) -> Counts:
    """Kernel: Σu and Σuuᵀ (in the parts of `integer_squares`) of rows inside the ball, or of the codes themselves; exact."""
    p = codes.shape[1]
    total = Counts((np.zeros(p), *(np.zeros((p, p)) for _ in range(3))))
    for start in range(0, len(codes), EXACT_ROWS):
        part = codes[start : start + EXACT_ROWS]
        u = part.astype(np.float64) if spread is None else spread.encode(part)
        total = total + Counts((u.sum(axis=0), *integer_squares(u).values))
    return total


def scale_sums(codes: Array) -> Counts:
    """Kernel: Σx and Σx² of numbers in [0, 1), both in steps of 1/1024, cut off record by record: each adds 0 … 1023."""
    total = np.zeros((2, codes.shape[1]))
    for start in range(0, len(codes), EXACT_ROWS):
        x = codes[start : start + EXACT_ROWS].astype(np.int64) >> (CODE_BITS - 10)
        total += x.sum(axis=0), ((x * x) >> 10).sum(axis=0)
    return Counts((total.ravel(),))


def squares_of(sums: Counts) -> Integers:
    """Σuuᵀ as integers; `plan_reals` keeps them below 2^61."""
    _, high, mixed, low = sums.integers()
    return (high << 20) + (mixed << 10) + low


def scaled_moments(sums: Counts, n: int) -> Moments:
    """Moments of n records whose columns lie in [0, 1], from the sums of their codes.

    One replaced record moves distances between such moments and fixed ones by at most 1/n: docs/proofs/bodies.md.
    """
    unit = float(1 << CODE_BITS)
    first, high, mixed, low = (np.asarray(v, dtype=np.float64) for v in sums.values)
    return Moments(n, first / unit, (high + mixed / 2**10 + low / 2**20) / unit)
