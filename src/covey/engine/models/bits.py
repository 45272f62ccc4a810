"""`regain` for bits: noisy moments → factors and sparse pairs → scores along fitted directions → centres.

Every choice is fixed by public numbers before any record is read: sizes, declared limits, the budget (`plan_bits`). The
`measure_…` parts are all that is asked of records: each yields what it asks and returns what was measured. The numbers in
`Sensitivity` are how far one replaced row can move a statistic; they are proved in docs/proofs/sensitivity.md and compared with
brute force in the tests.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from scipy.special import logit

from covey.engine.arrays import (
    Array,
    Floats,
    Integers,
    above_diagonal,
    blas_threads,
    hollow,
    processors,
    strips,
    symmetric,
)
from covey.engine.budget import Budget
from covey.engine.codes import counts
from covey.engine.codes.counts import UNIT, Coding, Counts, Moments, part
from covey.engine.fit import targets
from covey.engine.fit.devices import PROCESSOR, Device
from covey.engine.fit.factors import Denoised, Factors, denoise, fit_factors, stacked, with_atoms
from covey.engine.fit.shrinkage import empirical_bayes
from covey.engine.fit.spectrum import Spectrum, noisy_spectrum
from covey.engine.fit.targets import CLOSE, DensePairs, NoisyMoments, Scores, Term
from covey.engine.fit.wide import LOW_RANK_COLUMNS, LowRankPairs
from covey.engine.gate import WHOLE
from covey.engine.measurement import Measurement, Measurements
from covey.engine.model import Ask, Asking, Component, Fitted, Setting, with_certificate
from covey.engine.models.laws import NARROW, BitLaw, Limits, bit_sums
from covey.engine.noise import sensitivity as formulas
from covey.engine.noise.directions import DIRECTION_BITS, quantise_directions
from covey.engine.noise.integers import MAX_SCALE
from covey.engine.noise.law import CUBE, MATRIX, SIGNS
from covey.engine.noise.matrix import pair_deviation, simulated_matrix
from covey.engine.points import WeightedPoints
from covey.engine.query import Query
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic, entries

# Up to so many columns, products of three and four signs are measured as well (zCDP) if n√(2ρ) is large enough: with fewer rows
# they cost pairs a seventh, and tell more than that only where columns depend on each other as an exclusive or does.
FEW, PARITY_ROWS = 20, 500
# Squared constant coordinate of the matrix Laplace mechanism, per column: best over five tables.
CONSTANT = Fraction(1, 3)
# Under pure ε means and pairs share one draw up to this pair noise, per √p. Beyond, means get cube noise for this part of the
# budget and pairs what is left, up to a noise that depends on whether columns are many or few: chosen on nltcs, msnbc, plants.
JOINTLY, ALONE, APART = 0.012, Fraction(7, 10), {False: 0.018, True: 0.03}
# Up to so many columns signs get the noise of their own cone. Beyond, it would be less by 1 part in 500 at most, and entries that
# floats leave in doubt, of which wide tables have thousands, would be decided one at a time.
SIGN_COLUMNS = 1000
# Weights of the means in a joint Gaussian measurement of means and pairs (and more), tuned on docs/benchmarks' tables: the
# variance of a mean is that of a pair divided by weight times the squared radius.
MEAN_WEIGHT = Fraction(22, 100)
BALL_MEAN_WEIGHT = Fraction(20, 100)
FEW_MEAN_WEIGHT = Fraction(20, 100)
HIGH_WEIGHT = Fraction(40, 100)  # of products of three and of four signs, against the pairs
CENTRE_SHARE = Fraction(3, 4)  # of the coding's charge; the rest buys the radius
RADII = 64  # bins of the histogram of norms that the radius is read off
BINS = 16  # of a score's histogram: more bins are noisier and tell the fit nothing more
SCORES = 6  # leading directions whose scores are measured
HOLD = Fraction(1, 10)  # weight that keeps the factors near their first fit while the scores bend them
STEPS = 150  # of a fit, where the plan says nothing else


def constant_coordinate(p: int) -> Fraction:
    """a ≈ √(p/3) in sixteenths: a rational number, so that R² = p + a² is one too."""
    return Fraction(max(1, round(16 * float(np.sqrt(float(CONSTANT * p))))), 16)


@dataclass(frozen=True)
class Plan:
    """Public choices: functions of n, p, the budget and declared limits alone."""

    mechanism: str  # "means", "matrix" (pure), "parities" (zCDP, few columns) or "ball" (zCDP)
    shares: dict[str, Fraction]
    centres: int
    factors: int
    tail: float
    final_steps: int
    parity_steps: int
    declared: Coding | None


def plan_bits(n: int, p: int, budget: Budget, declared: Coding | None = None, steps: int = 1) -> Plan:
    """Which measurements, and how the budget is shared among them.

    n√(2ρ) counts rows in units of the noise: the cleaner the measurement, the fewer rows are clipped and the longer the fit.
    `steps` is what one of the n weighs in the sums.
    """
    pure, rows_in_noise = budget.pure, n * np.sqrt(2 * float(budget.for_replaced.per_row))
    clean = not pure and rows_in_noise > 20_000
    # Beyond these pair noises means alone did better, in every table we tried.
    noise = expected_pair_noise(n, p, budget)
    hopeless = p < 2 or noise > (APART[p <= FEW] * np.sqrt(p) if pure else 0.5)
    # Whether the noise on means and pairs, which at least half of the budget pays for, fits its sampler; matrix noise does.
    drawable = pure or budget.part(Fraction(1, 2)).variance(p * p) * (steps * UNIT**2) ** 2 <= MAX_SCALE**2 // 4
    if hopeless or not drawable:
        mechanism, shares = "means", {"means": Fraction(1)}
    elif pure and noise > JOINTLY * np.sqrt(p):
        mechanism, shares = "matrix", {"means": ALONE, "moments": 1 - ALONE}
    elif pure:
        mechanism, extra = "matrix", Fraction(5, 100)
        shares = {"moments": 1 - extra, "row sums" if p <= FEW else "scores": extra}
    elif p <= FEW and declared is None and rows_in_noise > PARITY_ROWS:
        mechanism, shares = "parities", {"moments": Fraction(1)}
    else:
        mechanism = "ball"
        extra = Fraction(5, 100) if clean else Fraction(2, 100)
        coding = Fraction(4, 100) if declared is None else Fraction(0)
        shares = {"coding": coding, "moments": 1 - extra - coding, "scores": extra}
        shares = {name: share for name, share in shares.items() if share}
    return Plan(
        mechanism=mechanism,
        shares=shares,
        centres=2 * int(np.clip(60_000 / p, 100, 300)),
        factors=max(1, min(12, p // 2)),
        tail=0.2 if pure else float(min(0.2, 600 / rows_in_noise)),
        final_steps=250 if clean and p < 300 else 150,
        parity_steps=450 if clean else 150,
        declared=declared,
    )


def expected_pair_noise(n: int, p: int, budget: Budget) -> float:
    """Standard deviation of the noise on a pair share, before anything is measured."""
    budget = budget.for_replaced
    if budget.pure:
        return float(budget.laplace_scale(2 * (1 + CONSTANT) * p) / n) * pair_deviation(p) / 4
    return 1.15 * p / 4 * float(np.sqrt(float(budget.variance(1)))) / n


# Limits.


def declared_coding(p: int, limits: list[tuple[list[int], int]]) -> Coding | None:
    """Coding for declared limits "at most L of these columns": 0/1 around L/size inside each set, ½ elsewhere.

    A row that keeps the limits has squared norm at most L(1 − L/size) in a set (for L ≤ size/2), 1/4 in any other column.
    """
    useful = [(columns, most) for columns, most in limits if 2 * most < len(columns)]
    if not useful:
        return None
    centre = np.full(p, UNIT // 2, dtype=np.int64)
    radius = Fraction(p - sum(len(columns) for columns, _ in useful), 4) * UNIT**2
    for columns, most in useful:
        c = round(Fraction(most, len(columns)) * UNIT)
        centre[columns] = c
        # The rounded centre is what counts: ‖u‖² for k ones, largest at k = most or k = 0.
        norms = [k * (UNIT - c) ** 2 + (len(columns) - k) * c * c for k in range(most + 1)]
        radius += max(norms)
    return Coding(centre, int(radius) + 1, clips=True)


# Values are mean products of coded columns, x less the share of ones in a reference.


def measure_means(setting: Setting) -> Asking[Measurement]:
    """Column means alone. Counts move by at most 1 each: by 1 in ℓ∞ (pure, cube mechanism), by √p in ℓ2 (zCDP)."""
    noise = CUBE if setting.pure else None
    (means,) = yield [Ask("means", [column_sums(setting)], mean_sensitivity(setting), noise=noise)]
    return plain_means(means)


def column_sums(setting: Setting) -> Component:
    """Shares of ones; where n is secret the sums of signs, which an added row moves half as far."""
    p = setting.p
    if not setting.size_is_secret:
        ones = Statistic.sum(counts.column_counts).map(part)
        return Component(Query.products(1, np.zeros(p)), ones, p, divisor=setting.n)
    signs = Statistic.sum(counts.sign_counts).map(part)
    return Component(Query.products(1, np.full(p, 0.5)), signs, p, divisor=2 * setting.n)


def mean_sensitivity(setting: Setting) -> Sensitivity:
    """How far a row moves `column_sums`: ones by 1 each, signs by 1 each where one is added."""
    p = setting.p
    return Sensitivity(linf=1, l2_squared=p, added=Sensitivity(linf=1, l2_squared=p))


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


def measure_matrix(setting: Setting) -> Asking[BitMoments]:
    """Means and pairs of signs by one draw of matrix noise on rows (z, a), a² ≈ p/3: pure ε-DP (docs/proofs/cone.md).

    Every row has squared norm R² = p + a², so the nuclear norm moves by 2R² at most. The integer matrix is that of rows (z, 1):
    the weight of its last coordinate is 1/a. Where means have a charge of their own they get cube noise, and a is small.
    """
    n, p, coding = setting.n, setting.p, Coding.half(setting.p)
    one, two = (Query.products(degree, coding.middle) for degree in (1, 2))
    apart = setting.has("means")
    bits, a = bit_sums(setting), Fraction(1, 16) if apart else constant_coordinate(p)
    components = []
    if not apart:
        components.append(Component(one, bits.map(sign_sums), (slice(p, p + 1), slice(0, p)), divisor=2 * n))
    for begin, end in strips(p):  # rows of the upper triangle
        block = slice(begin, end), slice(begin, p)
        pairs = bits.map(sign_pairs, begin, end)
        components.append(Component(two, pairs, block, divisor=4 * n, dtype=pair_dtype(p)))
    weights = [*[WHOLE] * p, 1 / a]
    kind = SIGNS if p <= SIGN_COLUMNS else MATRIX
    found = yield [Ask("moments", components, in_cone(p + a * a), noise=kind, weights=weights)]
    if apart:
        means = yield from measure_means(setting)
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


def measure_parities(setting: Setting) -> Asking[BitMoments]:
    """Means, pairs, triples and quadruples of signs in one Gaussian mechanism (docs/proofs/sensitivity.md)."""
    n, p, coding = setting.n, setting.p, Coding.half(setting.p)
    weights = {1: FEW_MEAN_WEIGHT * p, 2: Fraction(1)}
    for d in (3, 4):
        worst = max(formulas.odd_subsets(p, d, f) for f in range(p + 1)) if p >= 4 else 0
        if worst:
            weights[d] = HIGH_WEIGHT * p * p / 4 / worst
    queries = {d: Query.products(d, coding.middle) for d in range(1, 5)}
    bits, upper = bit_sums(setting), np.triu_indices(p, 1)
    sums = {1: bits.map(sign_sums).map(entries, 0), 2: bits.map(sign_pairs, 0, p).map(entries, *upper)}
    if 4 in weights:
        high = Statistic.sum(counts.parity_sums)
        sums |= {3 + at: high.map(_masked, at, mask) for at, mask in enumerate(targets.parity_masks(p))}
    # Signs are twice a flag less its reference: means and pairs are kept as shares, products of more in counts.
    divisors = {1: 2 * n, 2: 4 * n}
    components = [
        Component(queries[d], statistic, len(queries[d].sets), weights[d], divisors.get(d, 1))
        for d, statistic in sums.items()
    ]
    added = Sensitivity(l2_squared=formulas.added_parities(p, weights))
    sensitivity = Sensitivity(l2_squared=formulas.parity_sensitivity(p, weights), added=added)
    mean, pair, *more = yield [Ask("moments", components, sensitivity)]
    more = [replace(m, per=n * 2**m.query.degree) for m in more]
    return BitMoments(coding, (mean, replace(pair, values=symmetric(pair.values, p)), *more))


def measure_ball(setting: Setting, plan: Plan) -> Asking[BitMoments]:
    """Means and pairs of rows coded into a ball, one Gaussian; centre and radius are declared or measured first."""
    n, p = setting.n, setting.p
    coding, first = plan.declared, None
    if coding is None:
        coding, first = yield from measure_coding(setting, plan)
    R2 = Fraction(coding.radius_squared)
    weight = (BALL_MEAN_WEIGHT if coding.clips else MEAN_WEIGHT) * R2
    # Rows that keep declared limits lie inside the ball that these allow: none is cut.
    cut = coding.clips and plan.declared is None
    one, two = (Query.products(degree, coding.middle, cut) for degree in (1, 2))
    if coding.clips:
        M = Statistic.sum(partial(counts.coded_moments, coding=coding))
    else:
        M = bit_sums(setting).map(counts.shifted_moments, coding.centre)
    components = [Component(one, M.map(_first), p, weight, divisor=n * UNIT)]
    for begin, end in strips(p):  # some millions of entries at a time
        above = above_diagonal(begin, end, p)
        exact, count = M.map(_strip_above, begin, end, above), int(above.sum())
        components.append(Component(two, exact, count, divisor=n * UNIT**2, dtype=pair_dtype(p)))
    mean, *found = yield [Ask("moments", components, in_ball(R2, weight))]
    pair = np.zeros((p, p), pair_dtype(p))
    for (begin, end), own in zip(strips(p), found, strict=True):
        pair[begin:end][above_diagonal(begin, end, p)] = own.values
    pair += pair.T.copy()
    if first is not None and not coding.clips:  # a second, independent measurement of the same means
        a, b = 1 / mean.sd**2, 1 / float(first.sd) ** 2
        values = (a * mean.values + b * (first.values - coding.middle)) / (a + b)
        mean = replace(mean, values=values, sd=float(1 / np.sqrt(a + b)))
    return BitMoments(coding, (mean, replace(found[-1], values=pair)), first if coding.clips else None)


def measure_coding(setting: Setting, plan: Plan) -> Asking[tuple[Coding, Measurement]]:
    """A private centre and radius: column counts, then a histogram of ‖x − centre‖², which a replaced row moves by √2 in ℓ2.

    Centred coding is used where the radius that leaves about `plan.tail` of the rows outside beats coding at ½ clearly. Also
    returns the noisy means.
    """
    n, p = setting.n, setting.p
    (means,) = yield [Ask("coding", [column_sums(setting)], mean_sensitivity(setting), CENTRE_SHARE)]
    means = plain_means(means)
    centre = np.rint(np.clip(means.values, 0, 1) * UNIT).astype(np.int64)
    grid = np.geomspace(0.01, 1, RADII)
    edges = np.floor(grid * p * UNIT**2 / 4).astype(np.int64)
    exact = Statistic.sum(partial(counts.norm_counts, centre=centre, edges=edges)).map(part)
    lengths = Component(Query.derived("squared length", p, RADII + 1), exact, RADII + 1)
    (norms,) = yield [Ask("coding", [lengths], Sensitivity.histograms(1), 1 - CENTRE_SHARE)]
    outside = np.cumsum(norms.values[::-1])[::-1][1:] / n  # beyond each edge
    k = counts.wide_enough(outside, plan.tail)
    if k < RADII and grid[k] < 0.8:
        return Coding(centre, int(edges[k]), clips=True), means
    return Coding.half(p), means


def measure_sizes(setting: Setting) -> Asking[Measurement]:
    """Rows by number of ones, a column beside the others: a replaced row moves the counts by 2 in ℓ1, √2 in ℓ2."""
    query = Query.derived("number of ones", setting.p, setting.p + 1)
    sizes = Component(query, Statistic.sum(counts.size_counts).map(part), setting.p + 1)
    (histogram,) = yield [Ask("row sums", [sizes], Sensitivity.histograms(1))]
    return histogram


def measure_scores(setting: Setting, directions: Floats, edges: Floats) -> Asking[Scores]:
    """Histograms of t scores: a row lies in one bin of each, so it moves them by 2t in ℓ1 and √(2t) in ℓ2."""
    t, inner = edges.shape
    quantised = quantise_directions(directions)
    exact_edges: Integers = np.rint(np.ldexp(edges, DIRECTION_BITS)).astype(np.int64)
    exact = Statistic.sum(partial(counts.score_counts, directions=quantised, edges=exact_edges)).map(part)
    query = Query.derived("score", setting.p + 1, inner + 1, t)
    scores = Component(query, exact, (t, inner + 1), divisor=setting.n)
    (noisy,) = yield [Ask("scores", [scores], Sensitivity.histograms(t))]
    return Scores(np.ldexp(quantised, -DIRECTION_BITS), edges, noisy.values, float(noisy.sd))


def in_cone(trace: Fraction) -> Sensitivity:
    """Of Σhhᵀ with ‖h‖² at most so much: a difference of two such matrices, or one of them."""
    return Sensitivity(trace=2 * trace, added=Sensitivity(trace=trace))


def in_ball(radius_squared: Fraction, weight: Fraction) -> Sensitivity:
    """Of means, with this weight, and products of two coordinates of rows in a ball."""
    added = Sensitivity(l2_squared=formulas.added_in_ball(radius_squared, weight))
    return Sensitivity(l2_squared=formulas.ball_sensitivity(radius_squared, weight), added=added)


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


def _masked(sums: Counts, at: int, mask: Array) -> Integers:
    return part(sums, at)[mask]


def _first(m: Moments) -> Integers:
    return m.first.astype(np.int64)


def _strip_above(m: Moments, begin: int, end: int, above: Array) -> Integers:
    return np.asarray(m.second[begin:end][above].astype(np.int64))


@dataclass(frozen=True)
class RegainBits:
    """`regain` for rows of 0 and 1."""

    certificate: Fraction  # the share of the budget that buys it
    declared: Coding | None = None  # the coding that declared limits allow, if any
    device: Device = PROCESSOR  # where wide tables are fitted
    width: int | None = None  # columns, if they are known before the table is read
    limits: Limits = ()  # declared ones, to which rows are trimmed before they are measured
    steps: int = 1  # what one of the n weighs in the sums

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Moments of all columns, unless they are many or the rows are trimmed to declared limits first."""
        return (counts.moments,) if self.width is not None and self.width <= NARROW and not self.limits else ()

    def plan(self, n: int, p: int, budget: Budget) -> Plan:
        """All public choices."""
        return plan_bits(n, p, budget.part(1 - self.certificate), self.declared, self.steps)

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The plan's shares, and the certificate's."""
        return with_certificate(self.plan(n, p, budget).shares, self.certificate)

    def ask(self, setting: Setting) -> Asking[Fitted]:
        """Private centres in [0, 1]ᵖ, equally weighted, the noisy spectrum, and what was measured."""
        plan = self.plan(setting.n, setting.p, setting.budget)
        with blas_threads(1 if setting.p <= LOW_RANK_COLUMNS else processors()):
            if plan.mechanism == "means":
                means = yield from measure_means(setting)
                return Fitted(BitLaw(shrunken_means(means), self.limits), Measurements(setting.n, (means,)))
            ways = {
                "matrix": measure_matrix(setting),
                "parities": measure_parities(setting),
                "ball": measure_ball(setting, plan),
            }
            measured = yield from ways[plan.mechanism]  # the others never start
            sizes = (yield from measure_sizes(setting)) if setting.has("row sums") else None
            setting.tick(0.1)
            wide = setting.p > LOW_RANK_COLUMNS
            spectrum = None if wide else moment_spectrum(measured.dense, plan.mechanism, setting.public("spectrum"))
            centres = yield from fit_bits(measured, sizes, plan, setting, self.device)
            kept = Measurements(setting.n, tuple(kept_bits(measured, sizes)))
            return Fitted(BitLaw(equal(centres), self.limits), kept, spectrum)


def kept_bits(measured: BitMoments, sizes: Measurement | None) -> Iterator[Measurement]:
    """What is kept beside the centres: first means of rows that were not cut; of too many pairs only how noisy they were."""
    one, two, *more = measured.found
    if measured.uncut is not None:
        yield measured.uncut
    yield one
    yield two if len(one.values) <= LOW_RANK_COLUMNS else replace(two, values=np.zeros(0))
    if sizes is not None:
        yield sizes
    yield from more


def fit_bits(
    measured: BitMoments, sizes: Measurement | None, plan: Plan, setting: Setting, device: Device
) -> Asking[Floats]:
    """Centres whose moments, scores, row sums and parities agree with the measured ones; asks for scores."""
    denoised = denoise_bits(measured.dense, plan, setting, device)
    device = denoised.pairs.device
    f, terms = denoised.factors, [denoised.fine]
    if sizes is not None:
        terms.append(targets.size_term(sizes.values / sizes.per, float(sizes.sd) / sizes.per))
    directions, edges = score_plan(f) if setting.has("scores") else (np.zeros((0, 0)),) * 2
    if len(edges):  # some directions are worth measuring
        shape = targets.score_term(device, (yield from measure_scores(setting, directions, edges)))
        loose = replace(denoised.prior, mean=np.zeros(plan.factors), sd=np.full(plan.factors, 1.5))
        f = fit_factors(device, [denoised.raw, shape], f, loose, STEPS, float(HOLD))
        terms.append(shape)
    setting.tick(0.7)
    steps = plan.final_steps if "scores" in plan.shares else 2 * STEPS if sizes is not None else STEPS
    y = targets.fit_centres(device, terms, f.logits, steps)
    if len(measured.found) == 2:
        return y
    term = parity_target(measured.found[2:], y)
    return targets.fit_centres(device, [denoised.fine, term], logit(np.clip(y, 1e-6, 1 - 1e-6)), plan.parity_steps)


def denoise_bits(
    noisy: NoisyMoments, plan: Plan, setting: Setting, device: Device
) -> Denoised[DensePairs] | Denoised[LowRankPairs]:
    """Pairs in a basis on the device for many columns, dense on the processor for few; thinning needs Gaussian noise."""
    public = setting.public("fit")
    if len(noisy.mean) > LOW_RANK_COLUMNS:
        wide = LowRankPairs.of(noisy, device, public)
        return denoise(wide, plan.centres, plan.factors, lambda t: setting.tick(0.1 + 0.4 * t))
    found = denoise(DensePairs.of(noisy, public), plan.centres, plan.factors, lambda t: setting.tick(0.1 + 0.1 * t))
    if plan.mechanism == "matrix":
        return with_atoms(found)
    return stacked(found, setting.public("stack"), lambda t: setting.tick(0.2 + 0.3 * t))


def equal(points: Floats) -> WeightedPoints:
    """Centres of equal weight."""
    return WeightedPoints(np.full(len(points), 1 / len(points)), points)


def moment_spectrum(noisy: NoisyMoments, mechanism: str, shown: np.random.Generator) -> Spectrum | None:
    """Eigenvalues of the noisy covariance as measured, beside those of simulated noise of the same law, of deviation 1."""
    p = len(noisy.mean)
    if mechanism == "matrix":
        if p <= SIGN_COLUMNS:
            W = simulated_matrix(1 / pair_deviation(p), p + 1, shown, signs=True)[:p, :p]
        else:
            W = simulated_matrix(float(np.sqrt(2 / (p + 2))), p + 1, shown)[:p, :p]
    else:
        W = np.triu(shown.standard_normal((p, p)), 1)
        W = W + W.T
    return noisy_spectrum(hollow(noisy.pair - np.outer(noisy.mean, noisy.mean)), hollow(W) * noisy.pair_sd)


def shrunken_means(found: Measurement) -> WeightedPoints:
    """One centre: means shrunk toward their average, and that toward ½."""
    return equal(np.clip(shrunken(found.values, float(found.sd), 0.5, 1 / 16), 0, 1)[None])


def shrunken(noisy: Floats, sd: float, blind: float, wide: float) -> Floats:
    """Numbers shrunk toward their average, and that toward a blind guess of this variance, as far as their noise demands."""
    common = blind + (float(noisy.mean()) - blind) / (1 + sd**2 / wide / len(noisy))
    # Shares in [0, 1] seldom vary by more than uniform ones do, whatever the noise suggests.
    signal = min(max(float(noisy.var()) - sd * sd, 0.0), 1 / 12) if len(noisy) > 1 else 1 / 12
    return np.asarray(common + (noisy - common) * signal / (signal + sd * sd))


def score_plan(f: Factors, least: float = 2.5) -> tuple[Floats, Floats]:
    """Leading directions of the fitted centres, and equally spaced edges over ±2.5 predicted deviations.

    Directions whose variance between centres is below `least` times that within them tell nothing, and where rows have less than
    two bits of spread inside their centre (very sparse tables) a score is not normal: none then.
    """
    y = f.centres
    m = y.mean(axis=0)
    w, v = leading_directions(y - m, SCORES)
    within = (y * (1 - y)).mean(axis=0) @ v**2
    keep = (w >= least * within) & ((y * (1 - y)).sum(axis=1).mean() >= 2)
    v, spread = v[:, keep], np.sqrt(w + within)[keep]
    return np.asarray(v), np.asarray((m @ v)[:, None] + spread[:, None] * np.linspace(-2.5, 2.5, BINS - 1))


def leading_directions(y: Floats, count: int) -> tuple[Floats, Floats]:
    """Leading eigenvalues and eigenvectors of yᵀy/k, largest first, from whichever of yᵀy and yyᵀ is smaller."""
    k, p = y.shape
    w, v = np.linalg.eigh((y.T @ y if p <= k else y @ y.T) / k)
    w, v = w[::-1][:count], v[:, ::-1][:, :count]
    if p > k:
        v = y.T @ v / np.sqrt(np.maximum(k * w, 1e-300))
    return np.asarray(w), np.asarray(v)


def parity_target(seen: Sequence[Measurement], y: Floats) -> Term:
    """Products of signs of the centres plus the shrunken difference to the measured ones, at a fifth of the noise."""
    i, j = np.triu_indices(y.shape[1], 1)
    z = 2 * y - 1
    q = z[:, i] * z[:, j]
    aims, sds = [z.T @ q / len(z), q.T @ q / len(z)], []
    for aim, mask, found in zip(aims, targets.parity_masks(y.shape[1]), seen, strict=True):
        per = found.per / 2**found.query.degree  # of signs
        aim[mask] += empirical_bayes(found.values / per - aim[mask], float(found.sd) / per)[0]
        sds.append(float(found.sd) / per / CLOSE)
    return targets.parity_term(aims[0], aims[1], (sds[0], sds[1]))
