"""How far a table is from a cloud of centres: δ_d of (1.2), over all subsets of columns.

A centre stands for independent columns: its d-way marginal is a product of its entries. Subsets of 0/1 columns are listed. Tables
of categories have too many cells for that: with e_d the d-th elementary symmetric polynomial, and "x∘x'" agreement, attribute by
attribute, the sum over all cells of all d-way tables of squared differences is

    mean_{i,i'} e_d(x_i∘x_i') − 2·mean_i Σ_j w_j e_d(x_i∘y_j) + Σ_{j,l} w_j w_l e_d(y_j∘y_l).

Computed on true rows these numbers are private: see engine/certificate.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import comb, fsum

import numpy as np

from covey.engine.arrays import Array, Floats, Integers, above_diagonal, is_bits, packed_columns, strips
from covey.engine.codes.counts import Batch, Counts, Moments, dense, moments, part
from covey.engine.codes.domain import FULL_TABLES, Domain, merge_nominal, merge_ordered, pair_matrix
from covey.engine.points import WeightedPoints
from covey.errors import ParameterError

DEGREES = (1, 2, 3, 4)  # sizes of subsets that a certificate covers; five columns at once are dear and seldom asked for
# Work limits, in elementary steps of a nanosecond or so; beyond them a degree is left out.
ENUMERATION_LIMIT = 300_000_000
MOST_SUBSETS = 1_000_000  # of columns, each compared with all centres: a second or so
AT_ONCE = 1 << 14  # machine words of subsets that are counted in one call: a tenth of a megabyte, which caches hold
SORT_LIMIT = 150_000_000
CHUNK = 512  # rows × centres of one chunk stay in the processor's cache
# The kernel sums below are normalised to [0, 1] and right to this absolute error (docs/proofs/certificate.md). Distances are
# not resolved below `resolution(n)`, so that taking the root turns the error into less than one 1024th of 1/n.
KERNEL_ERROR = 2.0**-40


def bit_distances(X: Batch, cloud: WeightedPoints, degrees: Sequence[int] = DEGREES) -> dict[int, float]:
    """δ_d(X, cloud) over all d-subsets of 0/1 columns, for each degree that is affordable for this size."""
    n, p = X.shape
    high = [d for d in affordable_subsets(n, p) if d in degrees]
    counted = {d: part(subset_counts(X, d)) for d in high}
    return moment_distances(moments(X), cloud) | {d: subset_distance(counted[d], n, d, cloud) for d in high}


def affordable_subsets(n: int, p: int) -> list[int]:
    """The degrees above 2 whose subsets of columns can all be counted; public."""
    counts = {d: comb(p, d) for d in DEGREES if 2 < d <= p}
    return [d for d, count in counts.items() if count <= MOST_SUBSETS and count * -(-n // 64) <= ENUMERATION_LIMIT]


def subset_counts(batch: Batch, degree: int) -> Counts:
    """Kernel: how many rows have ones in all of d ≥ 2 columns, for every set of d columns, in lexicographic order.

    Sixty-four rows to the machine word. Several columns are counted with all that follow them at once, if there are few rows: a
    call costs more than they do.
    """
    columns, found = packed_columns(dense(batch)), []
    for head in combinations(range(len(columns)), degree - 2):
        rest = columns[head[-1] + 1 if head else 0 :]
        if head:
            rest = rest & np.bitwise_and.reduce(columns[list(head)], axis=0)
        step = max(1, AT_ONCE // max(1, rest.size))
        for start in range(0, len(rest), step):
            both = np.bitwise_count(rest[start : start + step, None] & rest[start + 1 :]).sum(axis=2, dtype=np.int64)
            found += [counts[i:] for i, counts in enumerate(both)]
    return Counts((np.concatenate(found),))


def subset_distance(counts: Integers, n: int, degree: int, cloud: WeightedPoints) -> float:
    """δ_d from the counts of all d-subsets."""
    p, total, at = cloud.points.shape[1], 0.0, 0
    for head in combinations(range(p), degree - 2):
        y = cloud.points[:, head[-1] + 1 if head else 0 :]
        weight = cloud.weights * cloud.points[:, list(head)].prod(axis=1)
        both = (y * weight[:, None]).T @ y
        shares = both[above_diagonal(0, len(both), len(both))]
        difference = counts[at : at + len(shares)] / n - shares
        total, at = total + float(difference @ difference), at + len(shares)
    return float(np.sqrt(total / comb(p, degree)))


def moment_distances(rows: Moments, cloud: WeightedPoints) -> dict[int, float]:
    """δ_1 and δ_2 from the moments of rows: root mean squares, over columns and pairs of columns, of differences in means."""
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


def sorted_category_distances(
    X: Array, sizes: tuple[int, ...], cloud: WeightedPoints, degrees: tuple[int, ...]
) -> dict[int, float]:
    """Kernel on all records at once: the distances of these degrees, the same in whatever order the records come."""
    keys = np.ascontiguousarray(X.astype(np.min_scalar_type(max(sizes) - 1)))
    order = np.argsort(keys.view(f"V{keys.dtype.itemsize * keys.shape[1]}")[:, 0], kind="stable")  # by their bytes
    return category_distances(X[order].astype(np.int64), sizes, cloud, degrees)


def affordable_tables(n: int, q: int) -> list[int]:
    """The degrees of the tables that can be counted from all records at once; public."""
    return [d for d in DEGREES if d <= q and (d == 1 or comb(q, d) * n <= SORT_LIMIT)]


def pair_distances(pairs: Integers, n: int, domain: Domain, cloud: WeightedPoints) -> dict[int, float]:
    """δ_1 and δ_2 from the exact pair tables of all attributes."""
    q, blocks = len(domain.sizes), domain.block_of
    out = {1: one_way_distance(pairs.diagonal(), n, q, cloud)}
    if q > 1:
        square = (pairs / n - cloud.second_moment) ** 2
        out[2] = float(np.sqrt(square[blocks[:, None] < blocks].sum() / 2 / comb(q, 2)))
    return out


def largest(*found: float | Mapping[int, float]) -> float:
    """The largest of several distances, alone or by degree."""
    return max(max(one.values()) if isinstance(one, Mapping) else one for one in found)


def one_way_distance(counts: Integers, n: int, q: int, cloud: WeightedPoints) -> float:
    """δ_1 from the exact one-way tables."""
    return float(np.sqrt(np.sum((counts / n - cloud.weights @ cloud.points) ** 2) / 2 / q))


def resolution(n: int) -> float:
    """The least distance that is told apart from 0: above it an error of 2^-40 in the square moves the root by 1/(1024n)."""
    return KERNEL_ERROR * 1024 * n / 2


def _root(total: float, count: int, n: int) -> float:
    return float(np.sqrt(max(total / count, resolution(n) ** 2)))


def _products(factors: Sequence[Floats], highest: int) -> list[Floats]:
    """e_0, …, e_highest of a list of arrays, by adding one factor after the other."""
    e = [np.ones_like(factors[0])] + [np.zeros_like(factors[0]) for _ in range(highest)]
    for factor in factors:
        for d in range(highest, 0, -1):
            e[d] += e[d - 1] * factor
    return e


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


# Rows out of place: the share of rows that stand in the wrong cell of a typical table of two columns. It is the mean, over all
# pairs of columns, of the total variation between two tables: half the sum of the differences of their cells. One replaced row
# moves each table by 1/n at most, hence the mean too (docs/proofs/certificate.md). It means the same for flags, categories and
# numbers; numbers, and columns of very many categories, are looked at in a few dozen public ranges.

RANGES = 20  # of an ordered column, of about equal mass: as fine as a picture of it
ROOM = 1600  # codes of all columns together, about: all pair tables of so many fit a small machine
LEAST, MOST = 12, 64  # codes of one column, whatever the room


@dataclass(frozen=True)
class Ranges:
    """How tables are looked at: codes → ranges, column by column. A public function of released shares and sizes."""

    maps: tuple[Integers, ...]

    @classmethod
    def of(cls, cloud: WeightedPoints, domain: Domain) -> Ranges:
        """Small columns as they are; of larger ones ranges of about a twentieth, or the commonest and the rest together."""
        share = cloud.weights @ cloud.points
        most = int(np.clip(ROOM // max(1, len(domain.sizes)), LEAST, MOST))
        maps = []
        for a, (size, ordered) in enumerate(zip(domain.sizes, domain.ordered, strict=True)):
            own = share[domain.block(a)]
            if size <= (RANGES if ordered else most):
                maps.append(np.arange(size))
            elif ordered:
                maps.append(merge_ordered(own, max(1 / RANGES, 2 / most)))
            else:
                maps.append(merge_nominal(own, -1.0, most))
        return cls(tuple(maps))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Ranges of every column."""
        return tuple(int(m.max()) + 1 for m in self.maps)

    def rows(self, codes: Integers) -> Integers:
        """The ranges of a table of codes."""
        return np.stack([m[codes[:, a]] for a, m in enumerate(self.maps)], axis=1)

    def cloud(self, cloud: WeightedPoints) -> WeightedPoints:
        """The same centres, over ranges."""
        starts = np.cumsum([0, *self.sizes])
        place = np.concatenate([m + start for m, start in zip(self.maps, starts[:-1], strict=True)])
        points = np.zeros((len(cloud), int(starts[-1])))
        np.add.at(points.T, place, cloud.points.T)
        return WeightedPoints(cloud.weights, points)


def columns_of(sizes: Sequence[int]) -> int:
    """How many columns a typical table has: two, or one where no second column varies."""
    return min(2, max(1, sum(size > 1 for size in sizes)))


def misplaced_codes(pairs: Integers, total: int, sizes: Sequence[int], cloud: WeightedPoints) -> float:
    """Mean total variation of two-way tables, from exact pair tables of `total` records and a cloud over the same ranges.

    Columns of a single code cannot be wrong and do not count.
    """
    domain = Domain(tuple(sizes), (False,) * len(sizes))
    live = np.flatnonzero(domain.counts > 1)
    if len(live) < 2:
        gap = np.abs(pairs.diagonal() / total - cloud.weights @ cloud.points)
        return float(gap.sum() / 2)
    weighted, parts = cloud.points * cloud.weights[:, None], []
    for a in live[:-1]:
        block, behind = domain.block(a), int(domain.starts[a + 1])
        gap = np.abs(pairs[block, behind:] / total - weighted[:, block].T @ cloud.points[:, behind:])
        lively = domain.counts[domain.block_of[behind:]] > 1
        parts.append(float(gap[:, lively].sum()))
    return fsum(parts) / 2 / comb(len(live), 2)


def misplaced_bits(rows: Moments, cloud: WeightedPoints) -> float:
    """The same of 0/1 columns: the four cells of a pair follow from two shares and how often both are set."""
    p = len(rows.first)
    means = rows.first / rows.n - cloud.weights @ cloud.points
    if p < 2:
        return float(np.abs(means).sum())
    y, weighted, parts = cloud.points, cloud.points * cloud.weights[:, None], []
    for begin, end in strips(p):
        both = rows.second[begin:end] / rows.n - weighted[:, begin:end].T @ y
        one, other = means[begin:end, None] - both, means[None] - both
        cells = np.abs(both) + np.abs(one) + np.abs(other) + np.abs(both + one + other)
        parts.append(float(cells[above_diagonal(begin, end, p)].sum()))
    return fsum(parts) / 2 / comb(p, 2)


def misplaced_rows(codes: Integers, domain: Domain, cloud: WeightedPoints) -> float:
    """The same of a table of codes, which must be public for the number to be: synthetic rows against their centres."""
    ranges = Ranges.of(cloud, domain)
    pairs = pair_matrix(ranges.rows(codes), ranges.sizes)
    return misplaced_codes(pairs, len(codes), ranges.sizes, ranges.cloud(cloud))


# True against synthetic rows: the marginal error δ_d of (1.2). Not private.

SUBSETS = 10_000  # in a sample: its root mean square is then within a few per cent of that over all
SUBSET_SEED = 20_221  # the same subsets for everybody, so that errors can be compared


def marginal_error(X: Array, Z: Array, degree: int = 2, *, subsets: int = SUBSETS) -> float:
    """δ_d of the paper: the root mean square difference of real and synthetic marginals, over all sets of d columns.

    Exact for d ≤ 2 and whenever there are at most `subsets` subsets; otherwise over a sample of that many, always the same.
    """
    X, Z = np.asarray(X), np.asarray(Z)
    if X.ndim != 2 or Z.ndim != 2 or X.shape[1] != Z.shape[1] or not len(X) or not len(Z):
        raise ParameterError(f"X and Z must be matrices with the same columns, got {X.shape} and {Z.shape}.")
    p = X.shape[1]
    if not 1 <= degree <= p:
        raise ParameterError(f"degree must lie between 1 and the number of columns, {p}, got {degree}.")
    if degree == 1:
        return float(np.sqrt(np.mean((X.mean(axis=0, dtype=float) - Z.mean(axis=0, dtype=float)) ** 2)))
    if degree == 2:
        E = moments(X).second_moment_matrix - moments(Z).second_moment_matrix
        return float(np.sqrt(np.mean(E[np.triu_indices(p, 1)] ** 2)))
    picks = subset_sample(p, degree, subsets)
    return float(np.sqrt(np.mean((marginals(X, picks) - marginals(Z, picks)) ** 2)))


def subset_sample(p: int, degree: int, count: int) -> Integers:
    """`count` independent uniform d-subsets of p columns, or every subset once where there are no more."""
    if comb(p, degree) <= count:
        return np.array(list(combinations(range(p), degree)), dtype=np.int64)
    return np.argsort(np.random.default_rng(SUBSET_SEED).random((count, p)), axis=1)[:, :degree]


def marginals(X: Array, subsets: Integers) -> Floats:
    """(1/n) Σ_i x_i(j_1)⋯x_i(j_d) for each subset (a row of column numbers)."""
    n = len(X)
    out = np.empty(len(subsets))
    if is_bits(X):
        columns: Array = packed_columns(X)
        for i, subset in enumerate(subsets):
            out[i] = int(np.bitwise_count(np.bitwise_and.reduce(columns[subset], axis=0)).sum()) / n
    else:
        columns = np.ascontiguousarray(X.T, dtype=np.float64)
        for i, subset in enumerate(subsets):
            out[i] = columns[subset].prod(axis=0).sum() / n
    return out
