"""All that `regain` asks of records: each function reads them through `rows.reduce` and returns what the gate gave back.

The numbers in `Moves` are how far one replaced row can move a statistic; they are proved in docs/proofs/sensitivity.md and
compared with brute force in the tests.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from covey.core.arrays import Array, Floats, Integers, above_diagonal, strips, symmetric
from covey.core.fit.lowrank import LOW_RANK_COLUMNS
from covey.core.fit.targets import NoisyMoments
from covey.core.fit.terms import Scores, parity_masks
from covey.core.noise import helmert
from covey.core.noise.pairlaw import PairLaw
from covey.core.noise.sensitivity import ball_sensitivity, odd_subsets, parity_sensitivity
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.subspace import DIRECTION_BITS, quantise_directions
from covey.core.tables.coding import UNIT, Coding, wide_enough
from covey.core.tables.counts import (
    Counts,
    coded_moments,
    column_counts,
    norm_counts,
    parity_sums,
    part,
    score_counts,
    shifted_moments,
    size_counts,
)
from covey.core.tables.crosstabs import FULL_TABLES, OneWayTables, PairTables, centred_counts, merge_pairs
from covey.core.tables.distance import HighTables, affordable_tables, largest, one_way_distance, pair_distances
from covey.core.tables.domain import Domain
from covey.core.tables.misplaced import Glass, columns_of, misplaced_codes
from covey.core.tables.moments import Moments, moments
from covey.core.tables.recoding import Merge, ToCells
from covey.engines.rows import Mapped, Rows
from covey.measure.law import CellCounts, Mixture
from covey.measure.measurement import NOTHING, Measurement
from covey.measure.query import Every, Factor, Query
from covey.methods.regain.plan import SIGN_COLUMNS, Plan, constant_coordinate, pair_moves
from covey.privacy.budget import exact as fraction
from covey.privacy.certificate import Yardstick
from covey.privacy.gate import WHOLE, Exact, Gate, Measured, Moves

# Weights of the means in a joint Gaussian measurement of means and pairs (and more), tuned on docs/benchmarks' tables: the
# variance of a mean is that of a pair divided by weight times the squared radius.
MEAN_WEIGHT = Fraction(22, 100)
BALL_MEAN_WEIGHT = Fraction(20, 100)
FEW_MEAN_WEIGHT = Fraction(20, 100)
HIGH_WEIGHT = Fraction(40, 100)  # of products of three and of four signs, against the pairs
CENTRE_SHARE = Fraction(3, 4)  # of the coding's charge; the rest buys the radius
RADII = 64  # bins of the histogram of norms that the radius is read off


# Bits. Values are mean products of coded columns, x less the share of ones in a reference.


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


# Categories.


def first_kernel(domain: Domain) -> OneWayTables | PairTables:
    """What the first pass over the records counts; public."""
    return (PairTables if domain.total <= FULL_TABLES else OneWayTables)(domain.sizes)


class Tables:
    """Exact tables of the records, counted in one pass if they are small. Sealed: only the gate opens them."""

    def __init__(self, rows: Rows, domain: Domain, edges: Mapping[int, Integers] | None = None) -> None:
        cells = tuple(None if edges is None else edges.get(a) for a in range(len(domain.sizes)))
        self._codes, self._edges = rows, edges or {}  # of the cells of numbers, in codes
        self._rows: Rows = Mapped(rows, ToCells(cells)) if edges else rows
        self.domain, self.n, self.steps = domain, rows.n, rows.steps
        self.total = rows.n * rows.steps  # what all of them weigh
        kernel = first_kernel(domain)
        counts = self._rows.reduce(kernel)
        self._pairs: Exact[Integers] | None = None
        if isinstance(kernel, PairTables):
            self._pairs = counts.map(kernel.matrix)
            self.one_way: Exact[Integers] = self._pairs.map(np.diagonal)
        else:
            self.one_way = counts.map(part)

    def factors(self, maps: Sequence[Integers]) -> dict[int, Factor]:
        """How columns are looked at where categories become maps[a][x_a]."""
        return {a: Factor(self._edges.get(a, np.arange(len(to) + 1)), to) for a, to in enumerate(maps)}

    def pairs(self, maps: list[Integers]) -> Exact[Integers]:
        """All pair tables of the merged categories maps[a][x_a], as one symmetric matrix."""
        sizes = [int(m.max()) + 1 for m in maps]
        if self._pairs is not None:
            return self._pairs.map(merge_pairs, tuple(maps), tuple(sizes))
        kernel = PairTables(tuple(sizes))
        return Mapped(self._rows, Merge(tuple(maps))).reduce(kernel).map(kernel.matrix)

    def cells(self, query: Query) -> Exact[Integers]:
        """Counts of every cell of a query's tables, side by side."""
        return self._codes.reduce(CellCounts.of(query)).map(part)

    def law(self, cloud: WeightedPoints, maps: Sequence[Integers]) -> Mixture:
        """What centres over merged categories say."""
        factors = self.factors(maps)
        return Mixture(cloud, [factors[a].edges[np.unique(to, return_index=True)[1]] for a, to in enumerate(maps)])

    def farthest(self, cloud: WeightedPoints) -> tuple[list[int], Exact[float]]:
        """Degrees that public numbers say are affordable, and the largest distance of the records from a cloud among them."""
        sizes, q, total = self.domain.sizes, len(self.domain.sizes), self.total
        if self._pairs is not None:
            low = [1, 2] if q > 1 else [1]
            parts: list[Exact[Any]] = [self._pairs.map(pair_distances, total, self.domain, cloud)]
        else:
            low, parts = [1], [self.one_way.map(one_way_distance, total, q, cloud)]
        # All records at once are asked for where public numbers say that they are few. Of persons no number says so.
        rest = tuple(d for d in affordable_tables(self.n, q) if d not in low) if self.steps == 1 else ()
        if rest:
            parts.append(self._rows.whole(HighTables(sizes, cloud, rest)))
        return [*low, *rest], Exact.of(largest, *parts)

    def misplaced(self, cloud: WeightedPoints) -> Yardstick:
        """The share of records out of place among the centres, in a typical table of two columns; sealed."""
        glass = Glass.of(cloud, self.domain)
        sizes, seen = glass.sizes, glass.cloud(cloud)
        exact = self.pairs(list(glass.maps)).map(misplaced_codes, self.total, sizes, seen)
        return Yardstick(exact, columns_of(sizes))


def measure_histograms(tables: Tables, gate: Gate) -> list[Measurement]:
    """One-way counts. A replaced row moves each histogram by 2 in ℓ1 and √2 in ℓ2.

    Shares of the charge minimise Σ c_a·sd_a: proportional to √c_a (Laplace of scale 2/ε_a) or c_a^{2/3} (Gaussian of variance
    1/ρ_a).
    """
    domain = tables.domain
    weight = domain.counts ** (1 / 2 if gate.budget.pure else 2 / 3)
    shares = [fraction(float(w), "share") for w in weight / weight.sum()]
    whole = sum(shares)
    out = []
    for a, share in enumerate(shares):
        own = tables.one_way.map(entries, domain.block(a))
        found = gate.measure("histograms", own, domain.sizes[a], Moves(l1=2, l2_squared=2), share / whole)
        query = Query([(a,)], {a: Factor.plain(domain.sizes[a])})
        out.append(Measurement(query, found.values.astype(np.float64), found.sd, found.law, tables.n, "histograms"))
    return out


def measure_pairs(tables: Tables, maps: list[Integers], law: PairLaw, gate: Gate) -> Measurement:
    """Noisy centred pair tables of the merged categories, in counts; one-way counts stand on the diagonal of the exact ones.

    For Gaussian noise: the centred tables are multiples of 1/(c_a c_b), so that M = c_a c_b N − c_a N_i − c_b N_j + n are
    integers; they get c_a c_b times the noise before they are divided again. Laplace noise goes on the counts themselves. What
    is left is centred: the uncentred part was not paid for. Matrix noise has integer coordinates of its own.
    """
    d, n = law.domain, tables.n
    query = Query(Every(len(maps), 2), tables.factors(maps), "centred")
    if law.family == NOTHING:
        return Measurement(query, np.zeros(0), 0.0, NOTHING, n, "pairs")
    moves, exact = pair_moves(d), tables.pairs(maps)
    if law.family == "matrix":
        values = _on_contrasts(exact, d, gate, moves)
    elif law.family == "laplace":
        values = d.off_blocks(d.centre(d.off_blocks(_on_cells(exact, law, gate, moves))))
    else:
        c = d.counts[d.block_of]
        noisy = _on_cells(exact.map(centred_counts, d, tables.total), law, gate, moves)
        values = d.off_blocks(d.centre(d.off_blocks(noisy / (c[:, None] * c))))
    return Measurement(query, values, law.sd, law.family, n, "pairs")


def _on_contrasts(exact: Exact[Integers], domain: Domain, gate: Gate, moves: Moves) -> Floats:
    """Matrix Laplace noise on the integer contrasts of the categories, and back to centred tables."""
    joint = gate.matrix("pairs", moves, helmert.weights(domain))
    found = joint.add(exact.map(helmert.contrasts, domain), slice(None), slice(None))
    return domain.off_blocks(helmert.tables(found.values.astype(np.float64), domain))


def _on_cells(exact: Exact[Integers], law: PairLaw, gate: Gate, moves: Moves) -> Floats:
    """Independent noise on every cell of every pair table a < b, mirrored; c_a c_b times as much on a grid that much finer."""
    d = law.domain
    joint = gate.joint("pairs", moves)
    out = np.zeros((d.total, d.total))
    for a, ca in enumerate(d.sizes):
        # A table with an attribute of one category says nothing that is not public or one-way: it is left at zero.
        for others, size in law.partners(a) if ca > 1 else []:
            if size == 1:
                continue
            weight = Fraction(1) if law.family == "laplace" else Fraction(1, (ca * size) ** 2)
            found = joint.add(exact.map(entries, d.block(a), others), (ca, len(others)), weight).values
            out[d.block(a), others] = found
            out[others, d.block(a)] = found.T
    return out
