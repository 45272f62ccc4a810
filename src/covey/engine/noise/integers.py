"""Noise on the integers, drawn exactly: no floating-point number decides a sample.

Every mechanism adds integer noise to integer statistics, so the support of a released value never depends on
the data and no low-order bit of a float can give a record away.

Gaussian noise is continuous noise, rounded: T + ⌊σg + ½⌋ = ⌊T + σg + ½⌋ for an integer statistic T is post-processing of the
Gaussian mechanism, and so μ-GDP with μ = Δ₂/σ and no slack (docs/proofs/exact.md, section 5).
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from math import comb, factorial, isqrt, perm, prod, sqrt

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.noise.normals import STANDARD, WORD, Digits, Normals
from covey.errors import ParameterError

Number = Fraction | int | float
Size = int | tuple[int, ...]
Sizes = tuple[int, ...]

# Samples beyond ±2^62 are stored as ±2^62, and `add_noise` clamps sums at ±2^61. For data below 2^61 this equals
# clamping the unbounded sum, which is post-processing: saturation costs accuracy 0 and privacy 0.
SATURATION = 1 << 62
CLAMP = 1 << 61
MAX_SCALE = 1 << 58


def discrete_laplace(scale: Number, size: Size, generator: np.random.Generator) -> Integers:
    """Integers with P(y) ∝ exp(−|y|/scale), exactly.

    The scale is taken as the rational number it is. A geometric magnitude gets a random sign, where "−0" is drawn
    again (Canonne, Kamath and Steinke 2020).
    """

    def attempt(count: int) -> Array:
        magnitude = geometric(scale, count, generator)
        negative = generator.integers(0, 2, len(magnitude)).astype(bool)
        return np.asarray(np.where(negative, -magnitude, magnitude)[~(negative & (magnitude == 0))])

    return _fill(size, attempt)


def cube_deviation(dimension: int) -> float:
    """Standard deviation of an entry of cube noise at scale 1, as the scale grows."""
    return sqrt((dimension + 1) * (dimension + 2) / 3)


def cube_noise(scale: Number, dimension: int, generator: np.random.Generator) -> Integers:
    """An integer vector with P(k) ∝ exp(−‖k‖∞/scale), exactly: the mechanism for ℓ∞ sensitivity.

    If r has P(r) ∝ (r + ½)^p·e^{−r/scale}, then a uniform point of {−r, …, r}^p has the law: summing over r ≥ ‖k‖∞
    leaves e^{−‖k‖∞/scale}. Such an r is a sum of p + 1 geometrics, which has P ∝ ∏(r + i)·e^{−r/scale}, accepted with
    ∏_{i≤p} (r + ½)/(r + i), one integer coin after the other. The scale should be 2p or more: refine the grid.
    An r beyond 2^61 is drawn again; for the scales allowed here that has a probability below e^{−100}.
    """
    if not 0 < scale * (dimension + 1) <= 1 << 54:
        raise ParameterError(f"scale must be positive and at most 2^54/(dimension + 1), got {float(scale):.3g}.")
    while True:
        r = sum(int(x) for x in geometric(scale, dimension + 1, generator))
        if r <= CLAMP and all(int(generator.integers(0, 2 * r + 2 * i)) < 2 * r + 1 for i in range(1, dimension + 1)):
            return generator.integers(-r, r + 1, dimension)


def geometric(scale: Number, size: int, generator: np.random.Generator) -> Integers:
    """Non-negative integers with P(x) ∝ exp(−x/scale), exactly, by uniform integers and comparisons alone.

    With scale = t/s: X = U + tV has P(X) ∝ e^{−X/t} for U uniform below t, kept with probability e^{−U/t}, and V
    geometric with ratio 1/e; ⌊X/s⌋ then has ratio e^{−s/t}.
    """
    t, s = _rational(scale)

    def attempt(count: int) -> Array:
        u = generator.integers(0, t, count)
        u = u[_bernoulli_exp(u, t, generator)]
        v = _powers_of_e(len(u), generator)
        # t·v may pass 2^63: those few samples are computed in unbounded integers.
        huge = v > (SATURATION - u) // t
        x = (u + t * np.where(huge, 0, v)) // s
        for i in np.flatnonzero(huge):
            x[i] = min(SATURATION, (int(u[i]) + t * int(v[i])) // s)
        return np.asarray(x)

    return _fill(size, attempt)


def add_noise(statistic: Integers, noise: Integers) -> Integers:
    """The statistic plus noise, clamped at ±2^61 so that no sum can overflow (see SATURATION)."""
    if statistic.size and int(np.abs(statistic).max()) >= CLAMP:
        raise ParameterError("a statistic exceeds 2^61 and cannot carry integer noise. Use a coarser grid.")
    return np.asarray(np.clip(statistic + noise, -CLAMP, CLAMP))


def _rational(scale: Number) -> tuple[int, int]:
    """The scale as t/s, both below 2^51 or s = 1, rounded up where it must be rounded (more noise, never less)."""
    exact = Fraction(scale)
    if not 0 < exact <= MAX_SCALE:
        raise ParameterError(f"scale must be positive and at most 2^58, got {float(scale):.3g}.")
    t, s = exact.numerator, exact.denominator
    if max(t, s) >= 1 << 50:
        s = 1 << max(0, 50 - (t // s).bit_length())
        t = -((-exact.numerator * s) // exact.denominator)
    return t, s


def _bernoulli_exp(numerator: Integers, denominator: int, generator: np.random.Generator) -> Array:
    """Coins with success probability exp(−x), x = numerator/denominator in [0, 1], exactly.

    Von Neumann's series: with A_k ~ Bernoulli(x/k) drawn until the first failure at K, P(K odd) = e^{−x}.
    """
    n = len(numerator)
    first_failure = np.zeros(n, dtype=np.int64)
    alive = np.arange(n)
    k = 1
    while len(alive):
        # x/k is the product of two independent coins, x and 1/k, which keeps all integers below 2^63.
        success = generator.integers(0, denominator, len(alive)) < numerator[alive]
        if k > 1:
            success &= generator.integers(0, k, len(alive)) == 0
        first_failure[alive[~success]] = k
        alive = alive[success]
        k += 1
    return np.asarray(first_failure % 2 == 1)


def _powers_of_e(count: int, generator: np.random.Generator) -> Integers:
    """Number of successes before the first failure of coins with success probability 1/e."""
    v = np.zeros(count, dtype=np.int64)
    alive = np.arange(count)
    while len(alive):
        alive = alive[_bernoulli_exp(np.ones(len(alive), dtype=np.int64), 1, generator)]
        v[alive] += 1
    return v


def _fill(size: Size, attempt: Callable[[int], Array]) -> Integers:
    """Collect accepted samples until there are enough; `attempt(count)` returns those of `count` that passed."""
    total = int(np.prod(size))
    out = np.empty(total, dtype=np.int64)
    done = 0
    while done < total:
        got = attempt(min(2 * (total - done) + 16, 1 << 20))[: total - done]
        out[done : done + len(got)] = got
        done += len(got)
    return out.reshape(size)


ROUNDING = 2.0**-53  # relative error of one operation in float64
MOST = 1 << 20  # numbers drawn together


def rounded_gaussian(
    variance: Number, size: Size, generator: np.random.Generator, digits: Digits = STANDARD
) -> Integers:
    """⌊σg + ½⌋ for standard normals g, exactly; σ is √variance, rounded up to a rational number where it must be."""
    exact = Fraction(variance)
    if not 0 < exact <= MAX_SCALE**2 // 4:
        raise ParameterError(f"variance must be positive and at most 2^114, got {float(variance):.3g}.")
    sigma = root_above(exact)
    total = int(np.prod(size))
    out = np.empty(total, dtype=np.int64)
    for begin in range(0, total, MOST):
        part = out[begin : begin + MOST]
        part[:] = _rounded(sigma, Normals(len(part), generator, digits))
    return out.reshape(size)


def root_above(value: Fraction, bits: int = 50) -> Fraction:
    """A rational number not below √value, nor above it by more than 2^-bits of itself; √value where that is rational."""
    top, bottom = isqrt(value.numerator), isqrt(value.denominator)
    if top * top == value.numerator and bottom * bottom == value.denominator:
        return Fraction(top, bottom)
    shift = max(0, bits + 2 + (value.denominator.bit_length() - value.numerator.bit_length()) // 2)
    root = isqrt((value.numerator << (2 * shift)) // value.denominator)
    return Fraction(root + 1, 1 << shift)


def _rounded(sigma: Fraction, normals: Normals) -> Integers:
    """⌊σg + ½⌋. A float that lies farther from every half-integer than it may err decides; the rest do integers."""
    s, g = float(sigma), normals.value
    y = s * g
    near = np.rint(y)
    # g was cut by less than a unit or a last place; σ and the product are rounded.
    error = 4 * ROUNDING * np.abs(y) + 1.01 * s * np.maximum(2.0**-normals.digits.unit, np.spacing(np.abs(g)))
    doubtful = np.flatnonzero(~(0.5 - np.abs(y - near) > error))
    out = np.clip(near, -SATURATION, SATURATION).astype(np.int64)
    out[doubtful] = _decided(sigma, normals, doubtful)
    return out


def _decided(sigma: Fraction, normals: Normals, which: Integers) -> Integers:
    """The same in unbounded integers, with further digits until both ends of what is known round alike."""
    out = np.zeros(len(which), dtype=np.int64)
    left, extra = np.arange(len(which)), 0
    while len(left):
        whole = np.array([normals.magnitude(int(i), extra) for i in which[left]], dtype=object)
        negative = np.signbit(normals.value[which[left]])  # also of −0, whose digits come later
        unit = sigma.denominator << (normals.digits.unit + extra)
        ends = np.where(negative, -whole - 1, whole), np.where(negative, -whole, whole + 1)
        low, high = ((2 * sigma.numerator * end + unit) // (2 * unit) for end in ends)
        done = np.asarray((low == high) | (low >= SATURATION) | (high <= -SATURATION), dtype=bool)
        out[left[done]] = np.clip(low[done], -SATURATION, SATURATION)
        left, extra = left[~done], extra + WORD
    return out


class CoveyNoise:
    """covey's exact samplers on a given stream."""

    def __init__(self, generator: np.random.Generator) -> None:
        self.generator = generator

    def laplace(self, scale: Number, size: Size) -> Integers:
        """P(y) ∝ exp(−|y|/scale)."""
        return discrete_laplace(scale, size, self.generator)

    def gaussian(self, variance: Number, size: Size) -> Integers:
        """⌊σg + ½⌋ for standard normals g, σ² = variance: post-processing of the Gaussian mechanism."""
        return rounded_gaussian(variance, size, self.generator)


# K-norm noise on several one-way tables at once, P(x) ∝ exp(−‖x‖/scale), ‖·‖ the norm in which a row moves: docs/proofs/knorm.md.
#
# The positive part of a table is the sum of its positive entries, its negative part that of the others without their sign. A
# replaced row moves every table by one entry up and one down: every x_a sums to 0, and ‖x‖ is the largest positive part. A row
# added or removed ("loose") moves one entry of every table, all in one direction: all x_a have one sum, and ‖x‖ is the largest
# positive part plus the largest negative part.


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
    total = sum((w * (power_sum[i] + power_sum[size - i]) for i, w in weight.items()), Fraction(0))
    return total / sum(weight.values()) * Fraction(size - 1, size * (size - 1 + power))


@lru_cache(maxsize=1024)
def loose_deviations(sizes: Sizes) -> tuple[dict[int, float], float]:
    """The same for a row added or removed, for tables of each size, and the deviation of the sum that all of them share.

    The largest parts are τ and 1 − τ of their sum, which is a Gamma variable of shape d + 2, and τ has the density ∏V. Numbers
    of points V and sums of squares Q are polynomials in τ: Gauss's rule is exact (docs/proofs/knorm.md).
    """
    d = sum(c - 1 for c in sizes)
    x, own = np.polynomial.legendre.leggauss(d // 2 + 2)
    t, radius = (1 + x) / 2, (d + 2) * (d + 3)

    def polynomial(terms: Sequence[int]) -> Array:
        return np.asarray(sum(w * t**j * (1 - t) ** (len(terms) - 1 - j) for j, w in enumerate(terms)), dtype=float)

    points = {c: polynomial([comb(c - 1, j) ** 2 for j in range(c)]) for c in set(sizes)}
    density = np.log(own) + sum(times * np.log(points[c]) for c, times in Counter(sizes).items())
    density = np.exp(density - density.max())
    density *= radius / density.sum()
    total, found = float(density @ x**2), {}
    for c in points.keys() - {1}:
        terms = [comb(c - 2, u) + (comb(c - 2, u - 3) if u > 2 else 0) for u in range(c + 2)]
        squares = 2 / (c + 1) * polynomial([comb(c + 1, u) * w for u, w in enumerate(terms)])
        found[c] = sqrt((density @ (squares / points[c]) - total / c) / (c - 1))
    return found, sqrt(total)


# Which tables get one draw.


def knorm_deviations(sizes: Sequence[int], loose: bool = False) -> list[float]:
    """The deviations of all tables of one draw at scale 1."""
    if loose:
        own, _ = loose_deviations(tuple(sorted(sizes)))
        return [own.get(c, 0.0) for c in sizes]
    return [knorm_deviation(c, sum(sizes) - len(sizes)) for c in sizes]


def grouped(sizes: Sequence[int], weights: Sequence[float], loose: bool = False) -> list[tuple[list[int], float]]:
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
            sds = knorm_deviations([sizes[a] for a in members], loose)
            worth = sqrt(sum(weights[a] * sizes[a] * sd for a, sd in zip(members, sds, strict=True)))
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
    whole = np.ones(1, dtype=object)  # coefficients of the product of all tables' polynomials, integers without bounds
    for c in sizes:
        whole = np.convolve(whole, np.array([comb(c - 1, j) ** 2 for j in range(c)], dtype=object))
    terms = [w * factorial(i) * factorial(d - i) for i, w in enumerate(whole)]
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


# The exponential mechanism as the largest of scores with Gumbel noise, decided exactly. Candidate i wins with probability
# proportional to exp(score_i / scale). Its noise is −log(−log(1 − w)) for a uniform w, of which 64 binary digits are drawn for
# every candidate. Bounds on the noisy scores tell the winner, but for one choice in about 2^27: there more digits are drawn for
# those that are left, and compared in decimal arithmetic until one stands alone.

# Floats of noise below 2^10 are right to 2^-40; scores farther apart than 2^18 scales are not in doubt.
GUMBEL_MARGIN = 2.0**-28
SCORE_ROUNDING = 2.0**-50  # of a score's distance from the best one, relative
# Beyond, floats of w say too little: such a candidate's noise lies below −2.6, which is all that is said.
NEAR_ONE = 1 - 2.0**-20


def largest_with_gumbel(scores: Integers, scale: Fraction, generator: np.random.Generator, digits: int = 64) -> int:
    """The place of the largest score plus Gumbel noise of this scale; as many binary digits of noise are drawn at a time."""
    drawn = generator.integers(0, 1 << digits, len(scores), dtype=np.uint64)
    behind = (scores - scores.max()) * float(1 / scale)
    unsure = GUMBEL_MARGIN - behind * SCORE_ROUNDING
    w = drawn.astype(np.float64) * 2.0**-digits
    upper = behind + _gumbel(np.minimum(w, NEAR_ONE)) + unsure
    w = (drawn.astype(np.float64) + 1) * 2.0**-digits
    lower = np.where(w < NEAR_ONE, behind + _gumbel(np.minimum(w, NEAR_ONE)) - unsure, -np.inf)
    left = np.flatnonzero(upper >= lower.max())
    known, bits = {int(i): int(drawn[i]) for i in left}, digits
    while len(known) > 1:
        known = {i: (u << digits) + int(generator.integers(0, 1 << digits, dtype=np.uint64)) for i, u in known.items()}
        bits += digits
        known = _still_in_doubt(known, bits, scores, scale)
    return next(iter(known))


def _gumbel(w: Floats) -> Array:
    """Standard Gumbel noise of uniform numbers, decreasing in them."""
    with np.errstate(divide="ignore"):
        return np.asarray(-np.log(-np.log1p(-w)))


def _still_in_doubt(known: dict[int, int], bits: int, scores: Integers, scale: Fraction) -> dict[int, int]:
    """Those of some candidates that may have the largest noisy score, for uniform numbers that begin with so many bits."""
    with localcontext() as context:
        context.prec = bits  # decimal digits: far more than the bits that are compared
        slack = Decimal(2) ** (-2 * bits)

        def noisy(i: int, w: Decimal) -> Decimal:
            share = Fraction(int(scores[i])) / scale
            own = Decimal(share.numerator) / Decimal(share.denominator)
            return own - (-(1 - w).ln()).ln()

        one, bounds = Decimal(2) ** -bits, {}
        for i, u in known.items():
            high = noisy(i, u * one) + slack if u else Decimal("Infinity")
            low = noisy(i, (u + 1) * one) - slack if (u + 1) >> bits == 0 else Decimal("-Infinity")
            bounds[i] = low, high
        best = max(low for low, _ in bounds.values())
        return {i: u for i, u in known.items() if bounds[i][1] >= best}
