"""`regain` for bits: moments → noise → factors and sparse pairs → scores → centres.

Records are read by the `measure_*` functions alone, each on exact integers with noise drawn and rounded before it meets them; all
else is post-processing of what they return. `Plan` fixes every choice from public numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import logit

from covey.core.arrays import Floats, Integers, above_diagonal, strips
from covey.core.fit.centres import Tick
from covey.core.fit.devices import PROCESSOR, Device
from covey.core.fit.factors import Factors, NoisyMoments, denoise_moments, empirical_bayes, fit_factors
from covey.core.fit.lowrank import WIDE
from covey.core.fit.spectrum import Spectrum, noisy_spectrum
from covey.core.fit.terms import (
    Parities,
    Scores,
    Term,
    fit_centres,
    hollow,
    moment_term,
    parity_masks,
    parity_term,
    score_term,
    size_term,
    symmetric,
)
from covey.core.fit.wide import denoise_wide, fit_wide_centres, fit_wide_factors, score_term_in
from covey.core.noise.integers import add_noise, cube_noise, matrix_laplace, to_grid
from covey.core.noise.samplers import IntegerNoise
from covey.core.noise.sensitivity import ball_sensitivity, odd_subsets, parity_sensitivity
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.subspace import DIRECTION_BITS, quantise_directions
from covey.core.tables.coding import UNIT, Coding
from covey.core.tables.counts import (
    coded_moments,
    column_counts,
    norm_counts,
    parity_sums,
    score_counts,
    shifted_moments,
    size_counts,
)
from covey.core.tables.moments import Moments, moments
from covey.engines.rows import Rows
from covey.privacy.budget import Charge

FEW = 20  # up to so many columns, products of three and four signs are measured as well (zCDP)
BINS = 16
SCORES = 6
HOLD = Fraction(1, 10)
MEAN_WEIGHT = Fraction(22, 100)
BALL_MEAN_WEIGHT = Fraction(20, 100)
FEW_MEAN_WEIGHT = Fraction(20, 100)
HIGH_WEIGHT = Fraction(40, 100)
CONSTANT = Fraction(1, 3)  # squared constant coordinate of the matrix Laplace mechanism, per column


@dataclass(frozen=True)
class Plan:
    """Public choices: functions of n, p, the budget and declared limits alone."""

    kind: str  # "means", "matrix" (pure), "parities" (zCDP, few columns) or "ball" (zCDP)
    shares: dict[str, Fraction]
    centres: int
    factors: int
    tail: float
    final_steps: int
    parity_steps: int
    declared: Coding | None


def plan_bits(n: int, p: int, amount: Fraction, pure: bool, declared: Coding | None = None) -> Plan:
    """Which measurements, and how the budget is shared among them.

    n√(2ρ) counts rows in units of the noise: the cleaner the measurement, the fewer rows are cut and the longer the fit.
    """
    clean = not pure and n * np.sqrt(2 * float(amount)) > 20_000
    # Beyond these pair noises means alone did better, in every table we tried.
    if p < 2 or expected_pair_noise(n, p, amount, pure) > (0.009 * np.sqrt(p) if pure else 0.5):
        kind, shares = "means", {"means": Fraction(1)}
    elif pure:
        kind, extra = "matrix", Fraction(5, 100)
        shares = {"moments": 1 - extra, "row sums" if p <= FEW else "scores": extra}
    elif p <= FEW and declared is None:
        kind, shares = "parities", {"moments": Fraction(1)}
    else:
        kind = "ball"
        extra = Fraction(5, 100) if clean else Fraction(2, 100)
        coding = Fraction(4, 100) if declared is None else Fraction(0)
        shares = {"coding": coding, "moments": 1 - extra - coding, "scores": extra}
        shares = {name: share for name, share in shares.items() if share}
    return Plan(
        kind=kind,
        shares=shares,
        centres=2 * int(np.clip(60_000 / p, 100, 300)),
        factors=max(1, min(12, p // 2)),
        tail=0.2 if pure else float(min(0.2, 600 / (n * np.sqrt(2 * float(amount))))),
        final_steps=250 if clean and p < 300 else 150,
        parity_steps=450 if clean else 150,
        declared=declared,
    )


def expected_pair_noise(n: int, p: int, amount: Fraction, pure: bool) -> float:
    """Standard deviation of the noise on a pair share, before anything is measured."""
    if pure:
        return float(2 * (1 + CONSTANT) * p / amount / n) * float(np.sqrt((p + 2) / 2)) / 4
    return 1.15 * p / 4 / float(np.sqrt(2 * float(amount))) / n


def bit_centres(
    rows: Rows,
    plan: Plan,
    charges: dict[str, Charge],
    noise: IntegerNoise,
    generator: np.random.Generator,
    public: np.random.Generator,
    shown: np.random.Generator,
    tick: Tick,
    device: Device = PROCESSOR,
) -> tuple[WeightedPoints, Spectrum | None]:
    """Private centres in [0, 1]ᵖ, equally weighted, and the noisy spectrum; spends the charges named by the plan."""
    if plan.kind == "means":
        return shrunken_means(*measure_means(rows, charges["means"], noise, generator)), None
    sizes: list[Term] = []
    parities: Parities | None = None
    if plan.kind == "matrix":
        noisy = measure_matrix(rows, charges["moments"], generator)
        if "row sums" in charges:
            sizes = [size_term(*measure_sizes(rows, charges["row sums"], noise))]
    elif plan.kind == "parities":
        noisy, parities = measure_parities(rows, charges["moments"], noise)
    else:
        noisy = measure_ball(rows, plan, charges, noise)
    tick(0.1)
    if rows.p > WIDE:
        return wide_centres(rows, noisy, plan, charges, noise, device, public, tick), None
    spectrum = moment_spectrum(noisy, plan.kind, shown)
    noisy, f, prior, target = denoise_moments(noisy, plan.centres, plan.factors, public, lambda t: tick(0.1 + 0.4 * t))
    # The centres follow the target closely: at a fifth of the noise the fit is not what limits.
    half = Coding.half(rows.p)
    u = target.mean - 0.5
    pair = hollow(target.pair - (target.mean[:, None] + target.mean) / 2 + 0.25)
    fine = moment_term(half, u, noisy.mean_sd / 5, pair, noisy.pair_sd / 5)
    if "scores" in charges:
        directions, edges = score_plan(f)
        if len(edges):
            shape = score_term(measure_scores(rows, directions, edges, charges["scores"], plan.kind == "matrix", noise))
            raw = moment_term(noisy.coding, noisy.mean, noisy.mean_sd, noisy.pair, noisy.pair_sd)
            loose = replace(prior, mean=np.zeros(plan.factors), sd=np.full(plan.factors, 1.5))
            f = fit_factors([raw, shape], f, loose, 150, float(HOLD))
            tick(0.7)
            return equal(fit_centres([fine, shape], f.logits, plan.final_steps)), spectrum
        return equal(fit_centres([fine], f.logits, plan.final_steps)), spectrum
    y = fit_centres([fine, *sizes], f.logits, 300 if sizes else 150)
    if parities is not None:
        tick(0.7)
        term = parity_term(parity_target(parities, y))
        y = fit_centres([fine, term], logit(np.clip(y, 1e-6, 1 - 1e-6)), plan.parity_steps)
    return equal(y), spectrum


def wide_centres(
    rows: Rows,
    noisy: NoisyMoments,
    plan: Plan,
    charges: dict[str, Charge],
    noise: IntegerNoise,
    device: Device,
    public: np.random.Generator,
    tick: Tick,
) -> WeightedPoints:
    """The same for many columns, without p × p work in the fits."""
    fit = denoise_wide(noisy, plan.centres, plan.factors, device, public, lambda t: tick(0.1 + 0.4 * t))
    f, terms = fit.factors, [fit.fine]
    if "scores" in charges:
        directions, edges = score_plan(f)
        if len(edges):
            pure = plan.kind == "matrix"
            shape = score_term_in(device, measure_scores(rows, directions, edges, charges["scores"], pure, noise))
            loose = replace(fit.prior, mean=np.zeros(plan.factors), sd=np.full(plan.factors, 1.5))
            f = fit_wide_factors(device, [fit.raw, shape], f, loose, 150, float(HOLD))
            terms.append(shape)
    tick(0.7)
    return equal(fit_wide_centres(device, terms, f.logits, plan.final_steps))


def equal(points: Floats) -> WeightedPoints:
    """Centres of equal weight."""
    return WeightedPoints(np.full(len(points), 1 / len(points)), points)


# Measurements. Each reads the records once, through `rows.reduce`, and returns noisy shares.


def measure_means(
    rows: Rows, charge: Charge, noise: IntegerNoise, generator: np.random.Generator
) -> tuple[Floats, float]:
    """Column means alone. Counts move by at most 1 each: by 1 in ℓ∞ (pure, cube mechanism), by √p in ℓ2 (zCDP).

    For the cube mechanism the counts are scaled to a grid on which its sampler accepts.
    """
    n, p = rows.n, rows.p
    counts = rows.reduce(column_counts).integers()[0]
    if charge.unit == "ε":
        fine = max(1, -(-2 * p * charge.amount // 1))
        noisy = add_noise(counts * int(fine), cube_noise(fine / charge.amount, p, generator))
        sd = float(np.sqrt((p + 1) * (p + 2) / 3)) / float(charge.amount)
        return noisy / (n * float(fine)), sd / n
    variance = p / (2 * charge.amount)
    return add_noise(counts, noise.gaussian(variance, p)) / n, float(np.sqrt(float(variance))) / n


def measure_matrix(rows: Rows, charge: Charge, generator: np.random.Generator) -> NoisyMoments:
    """Means and pairs of signs by one matrix Laplace draw on rows (a, z), a² = p/3: pure ε-DP (docs/proofs/cone.md).

    Every row has squared norm R² = p + a², so the trace scale is 2R²/ε. The noise is rounded to the integers first; that of
    the means is divided by a before.
    """
    n, p = rows.n, rows.p
    bits = rows.reduce(moments)
    a2 = float(CONSTANT * p)
    scale = float(2 * (1 + CONSTANT) * p / charge.amount)
    W = matrix_laplace(scale, p + 1, generator)
    mean = add_noise(sign_sums(bits)[0], to_grid(W[0, 1:] / np.sqrt(a2))) / n
    pair = np.empty((p, p), pair_type(p))
    for begin, end in strips(p):
        exact = sign_sums(bits, slice(begin, end))[1]
        pair[begin:end] = add_noise(exact, to_grid(W[1 + begin : 1 + end, 1:])) / (4 * n)
    np.fill_diagonal(pair, 0)
    sd = scale * float(np.sqrt((p + 2) / 2)) / n
    return NoisyMoments(Coding.half(p), mean / 2, sd / float(np.sqrt(a2)) / 2, pair, sd / 4)


def measure_parities(rows: Rows, charge: Charge, noise: IntegerNoise) -> tuple[NoisyMoments, Parities | None]:
    """Means, pairs, triples and quadruples of signs in one Gaussian mechanism (docs/proofs/sensitivity.md)."""
    n, p = rows.n, rows.p
    weights = {1: FEW_MEAN_WEIGHT * p, 2: Fraction(1)}
    for d in (3, 4):
        worst = max(odd_subsets(p, d, f) for f in range(p + 1)) if p >= 4 else 0
        if worst:
            weights[d] = HIGH_WEIGHT * p * p / 4 / worst
    variance = parity_sensitivity(p, weights) / (2 * charge.amount)
    means, pairs = sign_sums(rows.reduce(moments))
    sd = float(np.sqrt(float(variance))) / n
    mean_sd = sd / float(np.sqrt(float(weights[1])))
    mean = add_noise(means, noise.gaussian(variance / weights[1], p)) / n
    upper = np.triu_indices(p, 1)
    pair = symmetric(add_noise(pairs[upper], noise.gaussian(variance, len(upper[0]))) / n, p)
    noisy = NoisyMoments(Coding.half(p), mean / 2, mean_sd / 2, pair / 4, sd / 4)
    if 4 not in weights:
        return noisy, None
    shares, sds = [], []
    for d, exact, mask in zip((3, 4), rows.reduce(parity_sums).integers(), parity_masks(p), strict=True):
        values = np.zeros(exact.shape)
        own = variance / weights[d]
        values[mask] = add_noise(exact[mask], noise.gaussian(own, int(mask.sum()))) / n
        shares.append(values)
        sds.append(float(np.sqrt(float(own))) / n)
    return noisy, Parities(shares[0], sds[0], shares[1], sds[1])


def measure_ball(rows: Rows, plan: Plan, charges: dict[str, Charge], noise: IntegerNoise) -> NoisyMoments:
    """Means and pairs of rows coded into a ball, one Gaussian; centre and radius are declared or measured first."""
    n, p = rows.n, rows.p
    first: tuple[Floats, float] | None = None
    coding = plan.declared
    if coding is None:
        coding, means, means_sd = measure_coding(rows, charges["coding"], plan.tail, noise)
        first = means, means_sd
    R2 = Fraction(coding.radius_squared)
    weight = (BALL_MEAN_WEIGHT if coding.clips else MEAN_WEIGHT) * R2
    variance = ball_sensitivity(R2, weight) / (2 * charges["moments"].amount)
    if coding.clips:
        M = rows.reduce(lambda batch: coded_moments(batch, coding))
    else:
        M = shifted_moments(rows.reduce(moments), coding.centre)
    mean = add_noise(M.first.astype(np.int64), noise.gaussian(variance / weight, p)) / (n * UNIT)
    pair = np.zeros((p, p), pair_type(p))
    for begin, end in strips(p):  # some millions of noises at a time
        above = above_diagonal(begin, end, p)
        exact = M.second[begin:end][above].astype(np.int64)
        pair[begin:end][above] = add_noise(exact, noise.gaussian(variance, len(exact))) / (n * UNIT**2)
    pair += pair.T.copy()
    pair_sd = float(np.sqrt(float(variance))) / (n * UNIT**2)
    mean_sd = float(np.sqrt(float(variance / weight))) / (n * UNIT)
    if first is not None and not coding.clips:  # a second, independent measurement of the same means
        a, b = 1 / mean_sd**2, 1 / first[1] ** 2
        mean = (a * mean + b * (first[0] - coding.middle)) / (a + b)
        mean_sd = float(1 / np.sqrt(a + b))
    return NoisyMoments(coding, mean, mean_sd, pair, pair_sd)


def measure_coding(rows: Rows, charge: Charge, tail: float, noise: IntegerNoise) -> tuple[Coding, Floats, float]:
    """A private centre and radius: three quarters on column counts, one on a histogram of ‖x − centre‖².

    Centred coding is used where the radius that leaves about `tail` of the rows outside beats coding at ½ clearly. Also
    returns the noisy means and their standard deviation.
    """
    n, p = rows.n, rows.p
    variance = p / (2 * charge.amount * Fraction(3, 4))
    counts = rows.reduce(column_counts).integers()[0]
    means = add_noise(counts, noise.gaussian(variance, p)) / n
    centre = np.rint(np.clip(means, 0, 1) * UNIT).astype(np.int64)
    grid = np.geomspace(0.01, 1, 64)
    edges = np.floor(grid * p * UNIT**2 / 4).astype(np.int64)
    histogram = rows.reduce(lambda batch: norm_counts(batch, centre, edges)).integers()[0]
    noisy = add_noise(histogram, noise.gaussian(1 / (charge.amount * Fraction(1, 4)), len(histogram)))
    outside = np.cumsum(noisy[::-1])[::-1][1:] / n  # beyond each edge
    fits = np.flatnonzero(outside <= tail)
    sd = float(np.sqrt(float(variance))) / n
    if len(fits) and grid[fits[0]] < 0.8:
        return Coding(centre, int(edges[fits[0]]), clips=True), means, sd
    return Coding.half(p), means, sd


def measure_sizes(rows: Rows, charge: Charge, noise: IntegerNoise) -> tuple[Floats, float]:
    """Shares of rows by number of ones: a replaced row moves the counts by 2 in ℓ1."""
    scale = 2 / charge.amount
    counts = rows.reduce(size_counts).integers()[0]
    noisy = add_noise(counts, noise.laplace(scale, len(counts)))
    return noisy / rows.n, float(np.sqrt(2) * float(scale)) / rows.n


def measure_scores(
    rows: Rows, directions: Floats, edges: Floats, charge: Charge, pure: bool, noise: IntegerNoise
) -> Scores:
    """Histograms of t scores: a row lies in one bin of each, so it moves them by 2t in ℓ1 and √(2t) in ℓ2."""
    t = len(edges)
    quantised = quantise_directions(directions)
    exact_edges: Integers = np.rint(np.ldexp(edges, DIRECTION_BITS)).astype(np.int64)
    counts = rows.reduce(lambda batch: score_counts(batch, quantised, exact_edges)).integers()[0]
    if pure:
        scale = 2 * t / charge.amount
        noisy, sd = add_noise(counts, noise.laplace(scale, counts.shape)), float(np.sqrt(2) * float(scale))
    else:
        variance = t / charge.amount
        noisy, sd = add_noise(counts, noise.gaussian(variance, counts.shape)), float(np.sqrt(float(variance)))
    return Scores(np.ldexp(quantised, -DIRECTION_BITS), edges, noisy / rows.n, sd / rows.n)


def sign_sums(bits: Moments, rows: slice = slice(None)) -> tuple[Integers, Integers]:
    """Σz_i and some rows of Σz_i z_j of signs z = 2x − 1, from the moments of the bits: exact integers."""
    n, a, b = bits.n, bits.first, bits.second[rows]
    return (2 * a - n).astype(np.int64), (4 * b - 2 * a[rows, None] - 2 * a + n).astype(np.int64)


def pair_type(p: int) -> type[np.floating[Any]]:
    """Noisy pairs of wide tables are kept in single precision, in which they are fitted."""
    return np.float32 if p > WIDE else np.float64


# Post-processing.


def moment_spectrum(noisy: NoisyMoments, kind: str, shown: np.random.Generator) -> Spectrum | None:
    """Eigenvalues of the noisy covariance as measured, beside those of simulated noise of the same law."""
    p = len(noisy.mean)
    if kind == "matrix":
        W = matrix_laplace(float(np.sqrt(2 / (p + 2))), p + 1, shown)[1:, 1:]  # off-diagonal sd 1
    else:
        W = np.triu(shown.standard_normal((p, p)), 1)
        W = W + W.T
    return noisy_spectrum(hollow(noisy.pair - np.outer(noisy.mean, noisy.mean)), hollow(W) * noisy.pair_sd)


def shrunken_means(noisy: Floats, sd: float) -> WeightedPoints:
    """One centre: means shrunk toward their average, and that toward ½, as far as their noise demands."""
    common = 0.5 + (float(noisy.mean()) - 0.5) / (1 + (sd / 0.25) ** 2 / len(noisy))
    # Shares in [0, 1] seldom vary by more than uniform ones do, whatever the noise suggests.
    signal = min(max(float(noisy.var()) - sd * sd, 0.0), 1 / 12) if len(noisy) > 1 else 1 / 12
    m = np.clip(common + (noisy - common) * signal / (signal + sd * sd), 0, 1)
    return equal(m[None])


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


def parity_target(seen: Parities, y: Floats) -> Parities:
    """Products of signs of the centres plus the shrunken difference to the measured ones, at a fifth of the noise."""
    i, j = np.triu_indices(y.shape[1], 1)
    z = 2 * y - 1
    q = z[:, i] * z[:, j]
    k = len(z)
    mask3, mask4 = parity_masks(y.shape[1])
    triple, quad = z.T @ q / k, q.T @ q / k
    triple[mask3] += empirical_bayes((seen.triple - triple)[mask3], seen.triple_sd)[0]
    quad[mask4] += empirical_bayes((seen.quad - quad)[mask4], seen.quad_sd)[0]
    return Parities(triple, seen.triple_sd / 5, quad, seen.quad_sd / 5)
