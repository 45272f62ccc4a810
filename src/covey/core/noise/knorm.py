"""Noise on several one-way tables at once, exact on the integers: P(x) ∝ exp(−‖x‖/scale), ‖·‖ the norm in which a row moves.

The positive part of a table is the sum of its positive entries, its negative part that of the others without their sign. A
replaced row moves every table by one entry up and one down: every x_a sums to 0, and ‖x‖ is the largest positive part. A row
added or removed ("loose") moves one entry of every table, all in one direction: all x_a have one sum, and ‖x‖ is the largest
positive part plus the largest negative part. Both laws, the bounds and the grid are in docs/proofs/knorm.md.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import comb, factorial, perm, prod, sqrt

import numpy as np

from covey.core.arrays import Integers
from covey.core.noise.integers import CLAMP, Number, geometric
from covey.errors import ParameterError

Sizes = tuple[int, ...]


def knorm_noise(sizes: Sizes, scale: Number, generator: np.random.Generator, loose: bool = False) -> list[Integers]:
    """Noise for tables of these sizes: at scale 1/ε it protects a replaced row, or a row added or removed if `loose`.

    Public bounds k and m on positive and negative parts come first; then every table is uniform, by itself, among the points
    within them. The scale should be twice the dimension or more: refine the grid.
    """
    d = sum(c - 1 for c in sizes)
    if not 0 < scale * (d + 2) <= 1 << 54:
        raise ParameterError(f"scale must be positive and at most 2^54/(dimension + 2), got {float(scale):.3g}.")
    k, m = (_loose_bounds if loose else _bounds)(sizes, d, scale, generator)
    return [_point(c, k, m, generator) for c in sizes]


def knorm_deviation(size: int, dimension: int) -> float:
    """Standard deviation of the noise on a table of a size, as the scale grows, of tables with so many free entries in all.

    It is that of every coordinate of the space of tables whose sum is fixed, at scale 1 for a replaced row: independent noise of
    this size that is then projected has the same. An entry has √(1 − 1/size) of it.
    """
    if size < 2:
        return 0.0
    return sqrt((dimension + 1) * (dimension + 2) * body_moment(size, 2) * Fraction(size, size - 1))


def knorm_tails(size: int, dimension: int) -> float:
    """Excess kurtosis of an entry."""
    radius = Fraction((dimension + 3) * (dimension + 4), (dimension + 1) * (dimension + 2))
    return float(radius * body_moment(size, 4) / body_moment(size, 2) ** 2) - 3


@lru_cache(maxsize=1024)
def body_moment(size: int, power: int) -> Fraction:
    """E|x_i|^power for a uniform real point with Σx = 0 and positive part at most 1.

    Its number i of positive entries has weights C(c, i)·C(c−2, i−1), both its parts are U^{1/(c−1)} times uniform points of
    simplices.
    """
    if size < 2:
        return Fraction(0)
    weight = {i: comb(size, i) * comb(size - 2, i - 1) for i in range(1, size)}
    power_sum = {i: Fraction(factorial(power), perm(i + power - 1, power - 1)) for i in weight}  # of a uniform point
    mean = sum((w * (power_sum[i] + power_sum[size - i]) for i, w in weight.items()), Fraction(0)) / sum(
        weight.values()
    )
    return mean * Fraction(size - 1, size * (size - 1 + power))


# Which tables get one draw.


def grouped(sizes: Sequence[int], weights: Sequence[float]) -> list[tuple[list[int], float]]:
    """Tables in groups, one draw of noise each, and what each is worth: shares of ε in proportion to it have the least Σ w·c·sd.

    Sorted by size, tables of one size stay together, and cuts are found by dynamic programming. For a group whose deviations at
    ε = 1 are sd, the best share is in proportion to √(Σ w·c·sd).
    """
    runs = [[a for a, c in enumerate(sizes) if c == size] for size in sorted(set(sizes))]
    best: list[tuple[float, list[tuple[list[int], float]]]] = [(0.0, [])]
    for j in range(1, len(runs) + 1):
        tries = []
        for i in range(j):
            members = [a for run in runs[i:j] for a in run]
            d = sum(sizes[a] - 1 for a in members)
            worth = sqrt(sum(weights[a] * sizes[a] * knorm_deviation(sizes[a], d) for a in members))
            tries.append((best[i][0] + worth, [*best[i][1], (members, worth)]))
        best.append(min(tries, key=lambda found: found[0]))
    return best[-1][1]


# How far the parts may reach.


def _bounds(sizes: Sizes, d: int, scale: Number, generator: np.random.Generator) -> tuple[int, int]:
    """k = m with P(k) ∝ e^{−k/scale} times the number of points, by proposals that have C(k + d, d) in its place."""
    most = factorial(d) * prod(comb(2 * c - 2, c - 1) for c in sizes) // prod(factorial(c - 1) for c in sizes)
    while True:
        k = _sum_of_geometrics(scale, d + 1, generator)
        if k <= CLAMP and _below(most * comb(k + d, d), generator) < _points(sizes, k, k):
            return k, k


def _loose_bounds(sizes: Sizes, d: int, scale: Number, generator: np.random.Generator) -> tuple[int, int]:
    """k and m with P(k, m) ∝ e^{−(k+m)/scale} times the number of points, by a mixture of products of such proposals."""
    terms = [1]
    for c in sizes:
        own = [comb(c - 1, j) ** 2 for j in range(c)]
        terms = [
            sum(terms[i - j] * own[j] for j in range(max(0, i - len(terms) + 1), min(i, c - 1) + 1))
            for i in range(len(terms) + c - 1)
        ]
    terms = [w * factorial(i) * factorial(d - i) for i, w in enumerate(terms)]
    unit = prod(factorial(c - 1) for c in sizes)
    while True:
        i = _index(terms, generator)
        k = _sum_of_geometrics(scale, i + 1, generator)
        m = _sum_of_geometrics(scale, d - i + 1, generator)
        most = sum(w * comb(k + j, j) * comb(m + d - j, d - j) for j, w in enumerate(terms))
        if max(k, m) <= CLAMP and _below(most, generator) < unit * _points(sizes, k, m):
            return k, m


def _points(sizes: Sizes, k: int, m: int) -> int:
    """How many points all tables have together."""
    return prod(_inside(c, k, m) ** times for c, times in Counter(sizes).items())


def _inside(c: int, k: int, m: int) -> int:
    """Integer points of c entries with sum k − m and positive part at most k: Σ_j C(c−1, j)·C(k, j)·C(m+c−1−j, c−1−j)."""
    return sum(comb(c - 1, j) * comb(k, j) * comb(m + c - 1 - j, m) for j in range(min(c - 1, k) + 1))


# A uniform point within.


def _point(c: int, k: int, m: int, generator: np.random.Generator) -> Integers:
    """A uniform point of c entries with sum k − m and positive part at most k.

    First its parts, then how many entries are positive, which, and their values.
    """
    total, least = k - m, max(0, k - m)
    u = _below(_inside(c, k, m), generator)
    k = least + bisect_right(range(least, k), u, key=lambda part: _inside(c, part, part - total))
    m = k - total
    i = _index([comb(c, i) * _compositions(k, i) * _compositions(m + c - i, c - i) for i in range(c + 1)], generator)
    x, order = np.empty(c, dtype=np.int64), generator.permutation(c)
    x[order[:i]] = _composition(k, i, generator)
    x[order[i:]] = 1 - _composition(m + c - i, c - i, generator)  # parts of m that may be 0
    return x


def _compositions(total: int, parts: int) -> int:
    """In how many ways a total is a sum of so many positive numbers, in order."""
    return comb(total - 1, parts - 1) if total and parts else int(total == parts)


def _composition(total: int, parts: int, generator: np.random.Generator) -> Integers:
    """So many positive numbers with a sum, every choice as likely: the gaps between points chosen from total − 1."""
    if parts < 2:
        return np.full(parts, total)
    cuts = np.sort(generator.choice(total - 1, parts - 1, replace=False, shuffle=False))
    return np.asarray(np.diff(cuts, prepend=-1, append=total - 1), dtype=np.int64)


# Integers without bounds.


def _sum_of_geometrics(scale: Number, count: int, generator: np.random.Generator) -> int:
    return sum(int(x) for x in geometric(scale, count, generator))


def _index(weights: Sequence[int], generator: np.random.Generator) -> int:
    """An index, drawn in proportion to integer weights."""
    sums = list(accumulate(weights))
    return bisect_right(sums, _below(sums[-1], generator))


def _below(bound: int, generator: np.random.Generator) -> int:
    """A uniform integer below a bound of any size."""
    bits = (bound - 1).bit_length()
    while True:
        u = int.from_bytes(generator.bytes(-(-bits // 8)), "little") >> (-bits % 8)
        if u < bound:
            return u
