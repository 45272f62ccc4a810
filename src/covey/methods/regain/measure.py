"""All that `regain` asks of records of bits: parts of its model, each of which yields what it asks and returns what was measured.

The numbers in `Moves` are how far one replaced row can move a statistic; they are proved in docs/proofs/sensitivity.md and
compared with brute force in the tests.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from covey.core.arrays import Array, Floats, Integers, above_diagonal, strips, symmetric
from covey.core.fit.targets import NoisyMoments, Scores, parity_masks
from covey.core.fit.wide import LOW_RANK_COLUMNS
from covey.core.noise.sensitivity import (
    added_in_ball,
    added_parities,
    ball_sensitivity,
    odd_subsets,
    parity_sensitivity,
)
from covey.core.paper.subspace import DIRECTION_BITS, quantise_directions
from covey.core.tables.counts import (
    UNIT,
    Coding,
    Counts,
    Moments,
    coded_moments,
    column_counts,
    moments,
    norm_counts,
    parity_sums,
    part,
    score_counts,
    shifted_moments,
    sign_counts,
    size_counts,
    wide_enough,
)
from covey.measure.measurement import Measurement
from covey.measure.query import Query
from covey.methods.model import CUBE, INDEPENDENT, Ask, Asking, Noise, Part, Setting, Statistic, entries
from covey.methods.regain.plan import SIGN_COLUMNS, Plan, constant_coordinate
from covey.privacy.gate import WHOLE, Moves

# Weights of the means in a joint Gaussian measurement of means and pairs (and more), tuned on docs/benchmarks' tables: the
# variance of a mean is that of a pair divided by weight times the squared radius.
MEAN_WEIGHT = Fraction(22, 100)
BALL_MEAN_WEIGHT = Fraction(20, 100)
FEW_MEAN_WEIGHT = Fraction(20, 100)
HIGH_WEIGHT = Fraction(40, 100)  # of products of three and of four signs, against the pairs
CENTRE_SHARE = Fraction(3, 4)  # of the coding's charge; the rest buys the radius
NARROW = (
    500  # columns; pair sums of so many are added up while a table is first read, beyond it they would slow that down
)
RADII = 64  # bins of the histogram of norms that the radius is read off


# Values are mean products of coded columns, x less the share of ones in a reference.


def measure_means(told: Setting) -> Asking[Measurement]:
    """Column means alone. Counts move by at most 1 each: by 1 in ℓ∞ (pure, cube mechanism), by √p in ℓ2 (zCDP)."""
    noise = CUBE if told.pure else INDEPENDENT
    (found,) = yield [Ask("means", [column_sums(told)], mean_moves(told), noise=noise)]
    return plain_means(found)


def column_sums(told: Setting) -> Part:
    """Shares of ones; where n is secret the sums of signs, which an added row moves half as far."""
    counts, p = Statistic.sum(column_counts), told.p
    if not told.secret:
        return Part(Query.products(1, np.zeros(p)), counts.map(part), p, unit=told.n)
    return Part(Query.products(1, np.full(p, 0.5)), Statistic.sum(sign_counts).map(part), p, unit=2 * told.n)


def mean_moves(told: Setting) -> Moves:
    """How far a row moves `column_sums`: ones by 1 each, signs by 1 each where one is added."""
    p = told.p
    return Moves(linf=1, l2_squared=p, added=Moves(linf=1, l2_squared=p))


def plain_means(found: Measurement) -> Measurement:
    """Shares of ones, from means of flags less their references."""
    middle = np.array([factor.law[1] for factor in found.query.factors.values()])
    return replace(found, query=Query.products(1, np.zeros(len(middle))), values=found.values + middle)


@dataclass(frozen=True)
class BitMoments:
    """How bits are coded, measurements of their mean products by degree, and of means of rows before these were cut, if any."""

    coding: Coding
    found: tuple[Measurement, ...]
    uncut: Measurement | None = None

    @property
    def dense(self) -> NoisyMoments:
        """Means and pairs as matrices, as a fit of centres starts from them."""
        one, two = self.found[:2]
        uncut = None if self.uncut is None else (self.uncut.values, float(self.uncut.sd))
        return NoisyMoments(self.coding, one.values, float(one.sd), two.values, float(two.sd), uncut)


def bit_sums(told: Setting) -> Statistic:
    """Sums of columns and of products of two; of few columns they are kept, and were added up when the table was first read."""
    return Statistic.sum(moments, kept=told.p <= NARROW)


def measure_matrix(told: Setting) -> Asking[BitMoments]:
    """Means and pairs of signs by one draw of matrix noise on rows (z, a), a² ≈ p/3: pure ε-DP (docs/proofs/cone.md).

    Every row has squared norm R² = p + a², so the nuclear norm moves by 2R² at most. The integer matrix is that of rows (z, 1):
    the weight of its last coordinate is 1/a. Where means have a charge of their own they get cube noise, and a is small.
    """
    n, p, coding = told.n, told.p, Coding.half(told.p)
    one, two = (Query.products(degree, coding.middle) for degree in (1, 2))
    apart = told.has("means")
    bits, a = bit_sums(told), Fraction(1, 16) if apart else constant_coordinate(p)
    parts = [] if apart else [Part(one, bits.map(sign_sums), (slice(p, p + 1), slice(0, p)), unit=2 * n)]
    for begin, end in strips(p):  # rows of the upper triangle
        block = slice(begin, end), slice(begin, p)
        parts.append(Part(two, bits.map(sign_pairs, begin, end), block, unit=4 * n, type=pair_dtype(p)))
    noise = Noise("signs" if p <= SIGN_COLUMNS else "matrix", [*[WHOLE] * p, 1 / a])
    found = yield [Ask("moments", parts, in_cone(p + a * a), noise=noise)]
    if apart:
        means = yield from measure_means(told)
        means = replace(means, query=one, values=means.values - coding.middle)
    else:
        mean, *found = found
        means = replace(mean, values=mean.values[0], sd=mean.sd / float(a))
    pair = np.empty((p, p), pair_dtype(p))
    for (begin, end), own in zip(strips(p), found, strict=True):
        pair[begin:end, begin:] = own.values
        pair[end:, begin:end] = pair[begin:end, end:].T
    np.fill_diagonal(pair, 0)
    return BitMoments(coding, (means, replace(found[-1], values=pair)))


def measure_parities(told: Setting) -> Asking[BitMoments]:
    """Means, pairs, triples and quadruples of signs in one Gaussian mechanism (docs/proofs/sensitivity.md)."""
    n, p, coding = told.n, told.p, Coding.half(told.p)
    weights = {1: FEW_MEAN_WEIGHT * p, 2: Fraction(1)}
    for d in (3, 4):
        worst = max(odd_subsets(p, d, f) for f in range(p + 1)) if p >= 4 else 0
        if worst:
            weights[d] = HIGH_WEIGHT * p * p / 4 / worst
    queries = {d: Query.products(d, coding.middle) for d in range(1, 5)}
    bits, upper = bit_sums(told), np.triu_indices(p, 1)
    sums = {1: bits.map(sign_sums).map(entries, 0), 2: bits.map(sign_pairs, 0, p).map(entries, *upper)}
    if 4 in weights:
        high = Statistic.sum(parity_sums)
        sums |= {3 + at: high.map(_masked, at, mask) for at, mask in enumerate(parity_masks(p))}
    # Signs are twice a flag less its reference: means and pairs are kept as shares, products of more in counts.
    units = {1: 2 * n, 2: 4 * n}
    parts = [Part(queries[d], own, len(queries[d].sets), weights[d], units.get(d, 1)) for d, own in sums.items()]
    mean, pair, *more = yield [Ask("moments", parts, _of_parities(p, weights))]
    more = [replace(m, per=n * 2**m.query.degree) for m in more]
    return BitMoments(coding, (mean, replace(pair, values=symmetric(pair.values, p)), *more))


def measure_ball(told: Setting, plan: Plan) -> Asking[BitMoments]:
    """Means and pairs of rows coded into a ball, one Gaussian; centre and radius are declared or measured first."""
    n, p = told.n, told.p
    coding, first = plan.declared, None
    if coding is None:
        coding, first = yield from measure_coding(told, plan)
    R2 = Fraction(coding.radius_squared)
    weight = (BALL_MEAN_WEIGHT if coding.clips else MEAN_WEIGHT) * R2
    # Rows that keep declared limits lie inside the ball that these allow: none is cut.
    cut = coding.clips and plan.declared is None
    one, two = (Query.products(degree, coding.middle, cut) for degree in (1, 2))
    if coding.clips:
        M = Statistic.sum(partial(coded_moments, coding=coding))
    else:
        M = bit_sums(told).map(shifted_moments, coding.centre)
    parts = [Part(one, M.map(_first), p, weight, n * UNIT)]
    for begin, end in strips(p):  # some millions of entries at a time
        above = above_diagonal(begin, end, p)
        exact, count = M.map(_strip_above, begin, end, above), int(above.sum())
        parts.append(Part(two, exact, count, unit=n * UNIT**2, type=pair_dtype(p)))
    mean, *found = yield [Ask("moments", parts, in_ball(R2, weight))]
    pair = np.zeros((p, p), pair_dtype(p))
    for (begin, end), own in zip(strips(p), found, strict=True):
        pair[begin:end][above_diagonal(begin, end, p)] = own.values
    pair += pair.T.copy()
    if first is not None and not coding.clips:  # a second, independent measurement of the same means
        a, b = 1 / mean.sd**2, 1 / float(first.sd) ** 2
        values = (a * mean.values + b * (first.values - coding.middle)) / (a + b)
        mean = replace(mean, values=values, sd=float(1 / np.sqrt(a + b)))
    return BitMoments(coding, (mean, replace(found[-1], values=pair)), first if coding.clips else None)


def measure_coding(told: Setting, plan: Plan) -> Asking[tuple[Coding, Measurement]]:
    """A private centre and radius: column counts, then a histogram of ‖x − centre‖², which a replaced row moves by √2 in ℓ2.

    Centred coding is used where the radius that leaves about `plan.tail` of the rows outside beats coding at ½ clearly. Also
    returns the noisy means.
    """
    n, p = told.n, told.p
    (means,) = yield [Ask("coding", [column_sums(told)], mean_moves(told), CENTRE_SHARE)]
    means = plain_means(means)
    centre = np.rint(np.clip(means.values, 0, 1) * UNIT).astype(np.int64)
    grid = np.geomspace(0.01, 1, RADII)
    edges = np.floor(grid * p * UNIT**2 / 4).astype(np.int64)
    exact = Statistic.sum(partial(norm_counts, centre=centre, edges=edges)).map(part)
    lengths = Part(Query.derived("squared length", p, RADII + 1), exact, RADII + 1)
    (norms,) = yield [Ask("coding", [lengths], Moves.histograms(1), 1 - CENTRE_SHARE)]
    outside = np.cumsum(norms.values[::-1])[::-1][1:] / n  # beyond each edge
    k = wide_enough(outside, plan.tail)
    if k < RADII and grid[k] < 0.8:
        return Coding(centre, int(edges[k]), clips=True), means
    return Coding.half(p), means


def measure_sizes(told: Setting) -> Asking[Measurement]:
    """Rows by number of ones, a column beside the others: a replaced row moves the counts by 2 in ℓ1, √2 in ℓ2."""
    query = Query.derived("number of ones", told.p, told.p + 1)
    own = Part(query, Statistic.sum(size_counts).map(part), told.p + 1)
    (found,) = yield [Ask("row sums", [own], Moves.histograms(1))]
    return found


def measure_scores(told: Setting, directions: Floats, edges: Floats) -> Asking[Scores]:
    """Histograms of t scores: a row lies in one bin of each, so it moves them by 2t in ℓ1 and √(2t) in ℓ2."""
    t, inner = edges.shape
    quantised = quantise_directions(directions)
    exact_edges: Integers = np.rint(np.ldexp(edges, DIRECTION_BITS)).astype(np.int64)
    exact = Statistic.sum(partial(score_counts, directions=quantised, edges=exact_edges)).map(part)
    own = Part(Query.derived("score", told.p + 1, inner + 1, t), exact, (t, inner + 1), unit=told.n)
    (found,) = yield [Ask("scores", [own], Moves.histograms(t))]
    return Scores(np.ldexp(quantised, -DIRECTION_BITS), edges, found.values, float(found.sd))


def in_cone(trace: Fraction) -> Moves:
    """Of Σhhᵀ with ‖h‖² at most so much: a difference of two such matrices, or one of them."""
    return Moves(trace=2 * trace, added=Moves(trace=trace))


def _of_parities(p: int, weights: dict[int, Fraction]) -> Moves:
    """Of products of signs."""
    return Moves(l2_squared=parity_sensitivity(p, weights), added=Moves(l2_squared=added_parities(p, weights)))


def in_ball(radius_squared: Fraction, weight: Fraction) -> Moves:
    """Of means, with this weight, and products of two coordinates of rows in a ball."""
    added = Moves(l2_squared=added_in_ball(radius_squared, weight))
    return Moves(l2_squared=ball_sensitivity(radius_squared, weight), added=added)


def sign_sums(bits: Moments) -> Integers:
    """Σz_i of signs z = 2x − 1, from the moments of the bits, as a matrix of one row: exact integers."""
    return (2 * bits.first - bits.n).astype(np.int64)[None]


def sign_pairs(bits: Moments, begin: int, end: int) -> Integers:
    """Rows begin to end of Σz_i z_j, from column begin on: exact integers."""
    n, a, b = bits.n, bits.first, bits.second[begin:end, begin:]
    return np.asarray((4 * b - 2 * a[begin:end, None] - 2 * a[begin:] + n).astype(np.int64))


def pair_dtype(p: int) -> type[np.floating[Any]]:
    """Noisy pairs of wide tables are kept in single precision, in which they are fitted."""
    return np.float32 if p > LOW_RANK_COLUMNS else np.float64


# Parts of exact values.


def _masked(counts: Counts, at: int, mask: Array) -> Integers:
    return part(counts, at)[mask]


def _first(m: Moments) -> Integers:
    return m.first.astype(np.int64)


def _strip_above(m: Moments, begin: int, end: int, above: Array) -> Integers:
    return np.asarray(m.second[begin:end][above].astype(np.int64))
