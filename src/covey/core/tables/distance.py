"""How far a table is from a cloud of centres: δ_d of (1.2), over all subsets of columns.

A centre stands for independent columns: its d-way marginal is a product of its entries. With e_d the d-th elementary
symmetric polynomial, the sum over all d-subsets of squared differences is

    mean_{i,i'} e_d(x_i∘x_i') − 2·mean_i Σ_j w_j e_d(x_i∘y_j) + Σ_{j,l} w_j w_l e_d(y_j∘y_l),

so nothing is listed but rows and centres. For categorical records "x∘x'" is agreement, attribute by attribute, and the
sum runs over all cells of all d-way tables. Computed on true rows these numbers are private: see privacy/certificate.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb, fsum

import numpy as np

from covey.core.arrays import Array, Floats, Integers, above_diagonal, packed_columns, strips
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import Counts
from covey.core.tables.crosstabs import FULL_TABLES, pair_matrix
from covey.core.tables.domain import Domain
from covey.core.tables.moments import Batch, Moments, column_ones, dense, is_sparse, moments, overlaps, worth_it

DEGREES = (1, 2, 3, 4)  # sizes of subsets that a certificate covers; five columns at once are dear and seldom asked for
# Work limits, in elementary steps of a nanosecond or so; beyond them a degree is left out.
ENUMERATION_LIMIT = 300_000_000
GRAM_LIMIT = 40_000
GRAM_WORK = 3_000_000_000_000
DENSE_COLUMNS = 256  # sparse rows of so few columns are written out
AT_ONCE = 1 << 14  # machine words of subsets that are counted in one call: a tenth of a megabyte, which caches hold
SORT_LIMIT = 150_000_000
CHUNK = 512  # rows × centres of one chunk stay in the processor's cache
# The kernel sums below are normalised to [0, 1] and right to this absolute error (docs/proofs/certificate.md). Distances are
# not resolved below `resolution(n)`, so that taking the root turns the error into less than one 1024th of 1/n.
KERNEL_ERROR = 2.0**-40


def bit_distances(X: Batch, cloud: WeightedPoints, degrees: Sequence[int] = DEGREES) -> dict[int, float]:
    """δ_d(X, cloud) over all d-subsets of 0/1 columns, for each degree that is affordable for this size."""
    return low_bit_distances(moments(X), cloud) | high_bit_distances(X, cloud, degrees)


def high_bit_distances(X: Batch, cloud: WeightedPoints, degrees: Sequence[int] = DEGREES) -> dict[int, float]:
    """δ_3 and δ_4, as far as they are affordable for this size."""
    n, p = X.shape
    X = dense(X) if p <= DENSE_COLUMNS else X
    y, w = cloud.points, cloud.weights
    own = bit_self_products(X, [d for d in degrees if 2 < d <= p])
    if not own:
        return {}
    parts: dict[int, list[float]] = {d: [] for d in own}
    rows, counts = _distinct_bits(X)
    y_powers = [(y**r).T for r in range(1, max(own) + 1)]
    for start in range(0, rows.shape[0], CHUNK):
        x = rows[start : start + CHUNK].astype(np.float64)
        e = elementary([x @ power for power in y_powers])
        for d in own:
            parts[d].append(float(counts[start : start + CHUNK] @ (e[d] @ w)))
    cross = {d: fsum(values) / n for d, values in parts.items()}
    among = elementary([(y**r) @ (y**r).T for r in range(1, max(own) + 1)])
    return {d: _root(own[d] - 2 * cross[d] + float(w @ among[d] @ w), comb(p, d), n) for d in own}


@dataclass(frozen=True)
class HighBits:
    """Kernel on all records at once: δ_3 and δ_4, the same in whatever order the records come."""

    cloud: WeightedPoints

    def __call__(self, X: Batch) -> dict[int, float]:
        """The distances of a table of bits."""
        step = max(1, (1 << 24) // X.shape[1])
        keys = [np.packbits(dense(X[a : a + step]).astype(bool), axis=1) for a in range(0, X.shape[0], step)]
        return high_bit_distances(X[in_order(np.concatenate(keys))], self.cloud)


@dataclass(frozen=True)
class SubsetCounts:
    """Kernel: how many rows have ones in all of d columns, for every set of d columns, in lexicographic order."""

    degree: int

    def __call__(self, batch: Batch) -> Counts:
        """Count a batch of bits."""
        return Counts((np.concatenate(list(_subset_counts(dense(batch), self.degree))),))


def affordable_subsets(n: int, p: int) -> list[int]:
    """The degrees above 2 whose subsets can all be counted in one pass, batch by batch; public."""
    batches = n // (1 << 17) + 1
    return [
        d
        for d in DEGREES
        if 2 < d <= p and comb(p, d) * -(-n // 64) <= ENUMERATION_LIMIT and comb(p, d - 1) * batches <= 50_000
    ]


def subset_distance(counts: Integers, n: int, degree: int, cloud: WeightedPoints) -> float:
    """δ_d from the counts of all d-subsets."""
    p, total, at = cloud.points.shape[1], 0.0, 0
    for head in combinations(range(p), degree - 1):
        weight = cloud.weights * cloud.points[:, list(head)].prod(axis=1)
        shares = weight @ cloud.points[:, head[-1] + 1 :]
        difference = counts[at : at + len(shares)] / n - shares
        total, at = total + float(difference @ difference), at + len(shares)
    return float(np.sqrt(total / comb(p, degree)))


def in_order(keys: Array) -> Integers:
    """An order of records by their bytes, so that what follows does not depend on how they came."""
    keys = np.ascontiguousarray(keys)
    return np.argsort(keys.view(f"V{keys.dtype.itemsize * keys.shape[1]}")[:, 0], kind="stable")


def low_bit_distances(rows: Moments, cloud: WeightedPoints) -> dict[int, float]:
    """δ_1 and δ_2 from the moments of 0/1 rows."""
    p = len(rows.first)
    means = rows.first / rows.n - cloud.weights @ cloud.points
    out = {1: float(np.sqrt(np.mean(means**2)))}
    if p > 1:
        y, weighted = cloud.points, cloud.points * cloud.weights[:, None]
        squares = []
        for begin, end in strips(p):
            gap = rows.second[begin:end] / rows.n - weighted[:, begin:end].T @ y
            squares.append(float(np.sum(gap[above_diagonal(begin, end, p)] ** 2)))
        out[2] = float(np.sqrt(fsum(squares) / comb(p, 2)))
    return out


def category_distances(
    X: Integers, sizes: Sequence[int], cloud: WeightedPoints, degrees: Sequence[int] = DEGREES
) -> dict[int, float]:
    """The typical distance of a d-way table: √(mean over tables of ½ Σ_cells (true − cloud)²), each in [0, 1].

    One replaced row moves two cells of each table by 1/n, so each distance by at most 1/n.
    """
    n, q = X.shape
    low: dict[int, float] = {}
    if sum(sizes) <= FULL_TABLES:
        domain = Domain(tuple(int(c) for c in sizes), (False,) * q)
        found = pair_distances(pair_matrix(X, domain.sizes), n, domain, cloud)
        low = {d: value for d, value in found.items() if d in degrees}
    own = {d: _sorted_self_product(X, sizes, d) for d in affordable_tables(n, q) if d in degrees and d not in low}
    if not own:
        return low
    starts = np.cumsum([0, *sizes])
    blocks = [cloud.points[:, a:b] for a, b in pairwise(starts)]
    w = cloud.weights
    parts: dict[int, list[float]] = {d: [] for d in own}
    highest = max(own, default=0)
    for start in range(0, n, CHUNK):
        x = X[start : start + CHUNK]
        e = _products([block.T[x[:, a]] for a, block in enumerate(blocks)], highest)
        for d in own:
            parts[d].append(float((e[d] @ w).sum()))
    cross = {d: fsum(values) / n for d, values in parts.items()}
    among = _products([block @ block.T for block in blocks], highest)
    return low | {d: _root((own[d] - 2 * cross[d] + float(w @ among[d] @ w)) / 2, comb(q, d), n) for d in own}


@dataclass(frozen=True)
class HighTables:
    """Kernel on all records at once: the distances of these degrees, the same in whatever order the records come."""

    sizes: tuple[int, ...]
    cloud: WeightedPoints
    degrees: tuple[int, ...]

    def __call__(self, X: Array) -> dict[int, float]:
        """The distances of a table of category codes."""
        ordered = X[in_order(X.astype(np.min_scalar_type(max(self.sizes) - 1)))].astype(np.int64)
        return category_distances(ordered, self.sizes, self.cloud, self.degrees)


def affordable_tables(n: int, q: int) -> list[int]:
    """The degrees of the tables that can be counted from all records at once; public."""
    return [d for d in DEGREES if d <= q and (d == 1 or comb(q, d) * n <= SORT_LIMIT)]


def pair_distances(pairs: Integers, n: int, domain: Domain, cloud: WeightedPoints) -> dict[int, float]:
    """δ_1 and δ_2 from the exact pair tables of all attributes."""
    q = len(domain.sizes)
    blocks = domain.block_of
    square = (pairs / n - cloud.second_moment) ** 2
    one = (pairs.diagonal() / n - cloud.weights @ cloud.points) ** 2
    out = {1: float(np.sqrt(one.sum() / 2 / q))}
    if q > 1:
        different = blocks[:, None] < blocks
        out[2] = float(np.sqrt(square[different].sum() / 2 / comb(q, 2)))
    return out


def largest(*found: float | Mapping[int, float]) -> float:
    """The largest of several distances, alone or by degree."""
    return max(max(one.values()) if isinstance(one, Mapping) else one for one in found)


def one_way_distance(counts: Integers, n: int, q: int, cloud: WeightedPoints) -> float:
    """δ_1 from the exact one-way tables."""
    return float(np.sqrt(np.sum((counts / n - cloud.weights @ cloud.points) ** 2) / 2 / q))


def _distinct_bits(X: Batch) -> tuple[Batch, Array]:
    """Distinct rows and how often each occurs, where a row fits a machine word; otherwise the rows as they are."""
    n, p = X.shape
    if is_sparse(X) or p > 64:
        return X, np.ones(n)
    packed = np.zeros((n, 8), dtype=np.uint8)
    packed[:, : -(-p // 8)] = np.packbits(X.astype(bool), axis=1)
    _, first, counts = np.unique(packed.view(np.uint64)[:, 0], return_index=True, return_counts=True)
    return X[first], counts.astype(np.float64)


def resolution(n: int) -> float:
    """The least distance that is told apart from 0: above it an error of 2^-40 in the square moves the root by 1/(1024n)."""
    return KERNEL_ERROR * 1024 * n / 2


def _root(total: float, count: int, n: int) -> float:
    return float(np.sqrt(max(total / count, resolution(n) ** 2)))


def elementary(power_sums: Sequence[Floats]) -> dict[int, Floats]:
    """e_1, e_2, … from power sums, by Newton's identities."""
    e: dict[int, Floats] = {0: np.ones_like(power_sums[0])}
    for d in range(1, len(power_sums) + 1):
        total = sum((-1) ** (r - 1) * e[d - r] * power_sums[r - 1] for r in range(1, d + 1))
        e[d] = np.asarray(total / d)
    return e


def _products(factors: Sequence[Floats], highest: int) -> list[Floats]:
    """e_0, …, e_highest of a list of arrays, by adding one factor after the other."""
    e = [np.ones_like(factors[0])] + [np.zeros_like(factors[0]) for _ in range(highest)]
    for factor in factors:
        for d in range(highest, 0, -1):
            e[d] += e[d - 1] * factor
    return e


def _listed(n: int, p: int, degrees: Sequence[int]) -> list[int]:
    """The degrees whose subsets of columns can be listed one by one."""
    return [d for d in degrees if comb(p, d) * -(-n // 64) <= ENUMERATION_LIMIT and comb(p, d - 1) <= 50_000]


def affordable_products(n: int, p: int, degrees: Sequence[int]) -> list[int]:
    """The degrees for which `bit_self_products` has an answer: by listing subsets, or by comparing all pairs of rows; public."""
    possible = [d for d in degrees if d <= p]
    return possible if n <= GRAM_LIMIT and n * n * p <= GRAM_WORK else _listed(n, p, possible)


def bit_self_products(X: Batch, degrees: Sequence[int]) -> dict[int, float]:
    """mean_{i,i'} C(⟨x_i, x_i'⟩, d), which is Σ over subsets of squared marginals, for the affordable degrees."""
    n, p = X.shape
    listed = _listed(n, p, degrees)
    out = {d: _enumerated_self_product(dense(X), d) for d in listed}
    rest = [d for d in affordable_products(n, p, degrees) if d not in out]
    if rest:
        counts = overlap_histogram(X)
        overlap = np.arange(p + 1, dtype=np.float64)
        for d in rest:
            value = np.ones(p + 1)
            for r in range(d):
                value *= np.maximum(overlap - r, 0) / (r + 1)
            out[d] = float(counts @ value) / n**2
    return dict(sorted(out.items()))


def _enumerated_self_product(X: Array, degree: int) -> float:
    """Σ over d-subsets of (share of rows that are all ones)²."""
    return sum(float(c.astype(np.float64) @ c) for c in _subset_counts(X, degree)) / float(len(X)) ** 2


def _subset_counts(X: Array, degree: int) -> Iterator[Integers]:
    """Counts of rows that are all ones on d columns, for each choice of the first d − 1; sixty-four rows to the machine word."""
    columns = packed_columns(X)
    if degree == 1:
        yield np.bitwise_count(columns).sum(axis=1, dtype=np.int64)
        return
    for head in combinations(range(X.shape[1]), degree - 2):
        open_ = columns[head[-1] + 1 if head else 0 :]
        rest = open_ & np.bitwise_and.reduce(columns[list(head)], axis=0) if head else open_
        # Several columns are counted with all that follow them at once, if there are few rows: a call costs more than they do.
        step = max(1, AT_ONCE // max(1, rest.size))
        for start in range(0, len(rest), step):
            both = np.bitwise_count(rest[start : start + step, None] & rest[start + 1 :]).sum(axis=2, dtype=np.int64)
            yield from (counts[i:] for i, counts in enumerate(both))


def overlap_histogram(X: Batch) -> Integers:
    """How many ordered pairs of rows have ⟨x, x'⟩ = 0, 1, …, p ones in common."""
    n, p = X.shape
    if is_sparse(X):
        if worth_it(column_ones(X), n * n * p):
            return overlaps(X)
        X = dense(X)
    rows = np.ascontiguousarray(X, dtype=np.float32)
    counts = np.zeros(p + 1, dtype=np.int64)
    step = max(2, 16_000_000 // n)
    for start in range(0, n, step):
        block = rows[start : start + step]
        # The square on the diagonal once, the strip to its right twice: each ordered pair is counted.
        for columns, times in ((block, 1), (rows[start + step :], 2)):
            if len(columns):
                counts += times * _histogram(block @ columns.T, p)
    return counts


def _histogram(overlaps: Array, p: int) -> Integers:
    """Counts of the integers 0..p in a float32 matrix; where they fit a byte, two at a time."""
    if p > 255:
        return np.bincount(overlaps.astype(np.int64).ravel(), minlength=p + 1)
    flat = overlaps.astype(np.uint8).ravel()
    odd = flat[-1:] if len(flat) % 2 else flat[:0]
    pairs = np.bincount(flat[: len(flat) - len(odd)].view(np.uint16), minlength=1 << 16).reshape(256, 256)
    total = pairs.sum(axis=0) + pairs.sum(axis=1) + np.bincount(odd, minlength=256)
    return np.asarray(total[: p + 1])


def _sorted_self_product(X: Integers, sizes: Sequence[int], degree: int) -> float:
    """Σ over d-way tables of Σ cells², by sorting cell codes."""
    n, q = X.shape
    total = 0.0
    for subset in combinations(range(q), degree):
        code = np.zeros(n, dtype=np.int64)
        cells = 1
        for a in subset:
            code = code * sizes[a] + X[:, a]
            cells *= int(sizes[a])
        if cells <= 1 << 16:
            counts = np.bincount(code, minlength=cells)
        else:
            code = np.sort(code.astype(np.int32) if cells < 1 << 31 else code)
            counts = np.diff(np.flatnonzero(np.r_[True, code[1:] != code[:-1], True]))
        total += float(np.sum(counts.astype(np.float64) ** 2))
    return total / float(n) ** 2
