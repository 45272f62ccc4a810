"""All that `regain` asks of records of bits: each function reads them through `rows.reduce` and returns what the gate gave back.

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
from covey.core.fit.lowrank import LOW_RANK_COLUMNS
from covey.core.fit.targets import NoisyMoments, Scores, parity_masks
from covey.core.noise.sensitivity import ball_sensitivity, odd_subsets, parity_sensitivity
from covey.core.paper.subspace import DIRECTION_BITS, quantise_directions
from covey.core.tables.counts import (
    UNIT,
    Coding,
    Counts,
    coded_moments,
    column_counts,
    norm_counts,
    parity_sums,
    part,
    score_counts,
    shifted_moments,
    size_counts,
    wide_enough,
)
from covey.core.tables.moments import Moments, moments
from covey.engines.rows import Rows
from covey.measure.measurement import Measurement
from covey.measure.query import Factor, Query
from covey.methods.regain.plan import SIGN_COLUMNS, Plan, constant_coordinate
from covey.privacy.gate import WHOLE, Exact, Gate, Measured, Moves

# Weights of the means in a joint Gaussian measurement of means and pairs (and more), tuned on docs/benchmarks' tables: the
# variance of a mean is that of a pair divided by weight times the squared radius.
MEAN_WEIGHT = Fraction(22, 100)
BALL_MEAN_WEIGHT = Fraction(20, 100)
FEW_MEAN_WEIGHT = Fraction(20, 100)
HIGH_WEIGHT = Fraction(40, 100)  # of products of three and of four signs, against the pairs
CENTRE_SHARE = Fraction(3, 4)  # of the coding's charge; the rest buys the radius
RADII = 64  # bins of the histogram of norms that the radius is read off


# Values are mean products of coded columns, x less the share of ones in a reference.


def measure_means(rows: Rows, gate: Gate) -> Measurement:
    """Column means alone. Counts move by at most 1 each: by 1 in ℓ∞ (pure, cube mechanism), by √p in ℓ2 (zCDP)."""
    n, p = rows.n, rows.p
    exact = rows.reduce(column_counts).map(part)
    if gate.budget.pure:
        found = gate.cube("means", exact, Moves(linf=1), p)
    else:
        found = gate.measure("means", exact, p, Moves(l2_squared=p))
    return Measurement(Query.products(1, np.zeros(p)), found.values / n, found.sd / n, found.law, 1, "means")


@dataclass(frozen=True)
class CodedBits:
    """How bits are coded, their mean products by degree as measured, and means of rows before these were cut, if they were."""

    coding: Coding
    found: tuple[Measurement, ...]
    uncut: Measurement | None = None

    @property
    def moments(self) -> NoisyMoments:
        """What a fit starts from."""
        one, two = self.found[:2]
        uncut = None if self.uncut is None else (self.uncut.values, float(self.uncut.sd))
        return NoisyMoments(self.coding, one.values, float(one.sd), two.values, float(two.sd), uncut)


def coded_bits(
    coding: Coding, law: str, mean: tuple[Floats, float], pair: tuple[Floats, float], cut: bool
) -> CodedBits:
    """Means and products of pairs, each with the deviation of its noise."""
    one, two = (Query.products(degree, coding.middle, cut) for degree in (1, 2))
    return CodedBits(coding, (Measurement(one, *mean, law, 1, "moments"), Measurement(two, *pair, law, 1, "moments")))


def measure_matrix(rows: Rows, gate: Gate) -> CodedBits:
    """Means and pairs of signs by one draw of matrix noise on rows (z, a), a² ≈ p/3: pure ε-DP (docs/proofs/cone.md).

    Every row has squared norm R² = p + a², so the nuclear norm moves by 2R² at most. The integer matrix is that of rows (z, 1):
    the weight of its last coordinate is 1/a.
    """
    n, p = rows.n, rows.p
    bits = rows.reduce(moments)
    a = constant_coordinate(p)
    moves, weights = Moves(trace=2 * (p + a * a)), [*[WHOLE] * p, 1 / a]
    joint = (gate.signs if p <= SIGN_COLUMNS else gate.matrix)("moments", moves, weights)
    mean = joint.add(bits.map(sign_sums), slice(p, p + 1), slice(0, p))
    pair = np.empty((p, p), pair_dtype(p))
    for begin, end in strips(p):  # rows of the upper triangle, mirrored
        found = joint.add(bits.map(sign_pairs, begin, end), slice(begin, end), slice(begin, p))
        pair[begin:end, begin:] = found.values / (4 * n)
        pair[end:, begin:end] = pair[begin:end, end:].T
    np.fill_diagonal(pair, 0)
    means = mean.values[0] / n / 2, mean.sd / n / float(a) / 2
    return coded_bits(Coding.half(p), found.law, means, (pair, found.sd / n / 4), False)


def measure_parities(rows: Rows, gate: Gate) -> CodedBits:
    """Means, pairs, triples and quadruples of signs in one Gaussian mechanism (docs/proofs/sensitivity.md)."""
    n, p = rows.n, rows.p
    weights = {1: FEW_MEAN_WEIGHT * p, 2: Fraction(1)}
    for d in (3, 4):
        worst = max(odd_subsets(p, d, f) for f in range(p + 1)) if p >= 4 else 0
        if worst:
            weights[d] = HIGH_WEIGHT * p * p / 4 / worst
    joint = gate.joint("moments", Moves(l2_squared=parity_sensitivity(p, weights)))
    bits = rows.reduce(moments)
    upper = np.triu_indices(p, 1)
    mean = joint.add(bits.map(sign_sums).map(entries, 0), p, weights[1])
    pair = joint.add(bits.map(sign_pairs, 0, p).map(entries, *upper), len(upper[0]))
    noisy = coded_bits(
        Coding.half(p),
        pair.law,
        (mean.values / n / 2, mean.sd / n / 2),
        (symmetric(pair.values / n, p) / 4, pair.sd / n / 4),
        False,
    )
    if 4 not in weights:
        return noisy
    high, more = rows.reduce(parity_sums), []
    for at, mask in enumerate(parity_masks(p)):
        found, d = joint.add(high.map(_masked, at, mask), int(mask.sum()), weights[3 + at]), 3 + at
        query = Query.products(d, noisy.coding.middle)
        more.append(Measurement(query, found.values, found.sd, found.law, n * 2**d, "moments"))  # signs are 2u
    return replace(noisy, found=(*noisy.found, *more))


def measure_ball(rows: Rows, plan: Plan, gate: Gate) -> CodedBits:
    """Means and pairs of rows coded into a ball, one Gaussian; centre and radius are declared or measured first."""
    n, p = rows.n, rows.p
    coding, first = (plan.declared, None) if plan.declared is not None else measure_coding(rows, plan, gate)
    R2 = Fraction(coding.radius_squared)
    weight = (BALL_MEAN_WEIGHT if coding.clips else MEAN_WEIGHT) * R2
    joint = gate.joint("moments", Moves(l2_squared=ball_sensitivity(R2, weight)))
    if coding.clips:
        M = rows.reduce(partial(coded_moments, coding=coding))
    else:
        M = rows.reduce(moments).map(shifted_moments, coding.centre)
    found = joint.add(M.map(lambda m: m.first.astype(np.int64)), p, weight)
    mean, mean_sd = found.values / (n * UNIT), found.sd / (n * UNIT)
    pair, pair_sd = _noisy_pairs(M, joint.add, n, p)
    if first is not None and not coding.clips:  # a second, independent measurement of the same means
        a, b = 1 / mean_sd**2, 1 / float(first.sd) ** 2
        mean = (a * mean + b * (first.values - coding.middle)) / (a + b)
        mean_sd = float(1 / np.sqrt(a + b))
    # Rows that keep declared limits lie inside the ball that these allow: none is cut.
    cut = coding.clips and plan.declared is None
    noisy = coded_bits(coding, found.law, (mean, mean_sd), (pair, pair_sd), cut)
    return replace(noisy, uncut=first) if coding.clips else noisy


def _noisy_pairs(M: Exact[Moments], add: Any, n: int, p: int) -> tuple[Array, float]:
    """Second moments above the diagonal with noise, some millions of entries at a time, and mirrored."""
    pair, sd = np.zeros((p, p), pair_dtype(p)), 0.0
    for begin, end in strips(p):
        above = above_diagonal(begin, end, p)
        found: Measured = add(M.map(_strip_above, begin, end, above), int(above.sum()))
        pair[begin:end][above] = found.values / (n * UNIT**2)
        sd = found.sd / (n * UNIT**2)
    pair += pair.T.copy()
    return pair, sd


def measure_coding(rows: Rows, plan: Plan, gate: Gate) -> tuple[Coding, Measurement]:
    """A private centre and radius: column counts, then a histogram of ‖x − centre‖², which a replaced row moves by √2 in ℓ2.

    Centred coding is used where the radius that leaves about `plan.tail` of the rows outside beats coding at ½ clearly. Also
    returns the noisy means.
    """
    n, p = rows.n, rows.p
    counts = gate.measure("coding", rows.reduce(column_counts).map(part), p, Moves(l2_squared=p), CENTRE_SHARE)
    means = Measurement(Query.products(1, np.zeros(p)), counts.values / n, counts.sd / n, counts.law, 1, "coding")
    centre = np.rint(np.clip(means.values, 0, 1) * UNIT).astype(np.int64)
    grid = np.geomspace(0.01, 1, RADII)
    edges = np.floor(grid * p * UNIT**2 / 4).astype(np.int64)
    exact = rows.reduce(partial(norm_counts, centre=centre, edges=edges)).map(part)
    norms = gate.measure("coding", exact, RADII + 1, Moves(l2_squared=2), 1 - CENTRE_SHARE)
    outside = np.cumsum(norms.values[::-1])[::-1][1:] / n  # beyond each edge
    k = wide_enough(outside, plan.tail)
    if k < RADII and grid[k] < 0.8:
        return Coding(centre, int(edges[k]), clips=True), means
    return Coding.half(p), means


def measure_sizes(rows: Rows, gate: Gate) -> Measurement:
    """Rows by number of ones, a column beside the others: a replaced row moves the counts by 2 in ℓ1, √2 in ℓ2."""
    exact = rows.reduce(size_counts).map(part)
    found = gate.measure("row sums", exact, rows.p + 1, Moves(l1=2, l2_squared=2))
    query = Query([(rows.p,)], {rows.p: Factor.plain(rows.p + 1)}, of="number of ones")
    return Measurement(query, found.values, found.sd, found.law, rows.n, "row sums")


def measure_scores(rows: Rows, directions: Floats, edges: Floats, gate: Gate) -> Scores:
    """Histograms of t scores: a row lies in one bin of each, so it moves them by 2t in ℓ1 and √(2t) in ℓ2."""
    t, inner = edges.shape
    quantised = quantise_directions(directions)
    exact_edges: Integers = np.rint(np.ldexp(edges, DIRECTION_BITS)).astype(np.int64)
    exact = rows.reduce(partial(score_counts, directions=quantised, edges=exact_edges)).map(part)
    found = gate.measure("scores", exact, (t, inner + 1), Moves(l1=2 * t, l2_squared=2 * t))
    return Scores(np.ldexp(quantised, -DIRECTION_BITS), edges, found.values / rows.n, found.sd / rows.n)


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


def _strip_above(m: Moments, begin: int, end: int, above: Array) -> Integers:
    return np.asarray(m.second[begin:end][above].astype(np.int64))


def entries(matrix: Array, *places: Any) -> Array:
    """A part of a matrix."""
    return np.asarray(matrix[places])
