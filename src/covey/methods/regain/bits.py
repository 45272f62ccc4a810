"""`regain` for bits: noisy moments → factors and sparse pairs → scores → centres → certificate.

Nothing here sees a record but through the gate: scores are measured along fitted directions, and the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import logit

from covey.core.arrays import Array, Floats, blas_threads, hollow, processors
from covey.core.fit.centres import Tick
from covey.core.fit.devices import PROCESSOR, Device
from covey.core.fit.factors import Denoised, Factors, denoise, fit_factors
from covey.core.fit.lowrank import LOW_RANK_COLUMNS
from covey.core.fit.shrinkage import empirical_bayes
from covey.core.fit.spectrum import Spectrum, noisy_spectrum
from covey.core.fit.stack import stacked, with_atoms
from covey.core.fit.targets import (
    CLOSE,
    DensePairs,
    NoisyMoments,
    Scores,
    Term,
    fit_centres,
    parity_masks,
    parity_term,
    score_term,
    size_term,
)
from covey.core.fit.wide import LowRankPairs
from covey.core.noise.matrix import pair_deviation, simulated_matrix, simulated_signs
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import Coding, part
from covey.core.tables.distance import (
    DEGREES,
    GRAM_LIMIT,
    HighBits,
    SubsetCounts,
    affordable_products,
    affordable_subsets,
    largest,
    low_bit_distances,
    subset_distance,
)
from covey.core.tables.misplaced import misplaced_bits
from covey.core.tables.moments import moments
from covey.engines.rows import Rows
from covey.measure.measurement import Measurement, Measurements
from covey.methods.method import Fitted, Public, with_certificate
from covey.methods.regain.measure import (
    CodedBits,
    measure_ball,
    measure_matrix,
    measure_means,
    measure_parities,
    measure_scores,
    measure_sizes,
)
from covey.methods.regain.plan import SIGN_COLUMNS, Plan, plan_bits
from covey.privacy.budget import Budget
from covey.privacy.certificate import Yardstick, certify
from covey.privacy.gate import Exact, Gate
from covey.progress import Progress

BINS = 16  # of a score's histogram: more bins are noisier and tell the fit nothing more
SCORES = 6  # leading directions whose scores are measured
HOLD = Fraction(1, 10)  # weight that keeps the factors near their first fit while the scores bend them
STEPS = 150  # of a fit, where the plan says nothing else
NARROW = (
    500  # columns; pair sums of so many are added up while a table is first read, beyond it they would slow that down
)


@dataclass(frozen=True)
class RegainBits:
    """`regain` for rows of 0 and 1.

    Args:
        certificate: the share of the budget that buys the certificate.
        declared: the coding that declared limits allow, if any.
        device: where wide tables are fitted.
        width: columns, if they are known before the table is read.
        trimmed: whether rows are trimmed to declared limits before they are measured.
        steps: what one of the n weighs in the sums.
    """

    certificate: Fraction
    declared: Coding | None = None
    device: Device = PROCESSOR
    width: int | None = None
    trimmed: bool = False
    steps: int = 1

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Moments of all columns, unless they are many or the rows are trimmed to declared limits first."""
        return (moments,) if self.width is not None and self.width <= NARROW and not self.trimmed else ()

    def plan(self, n: int, p: int, budget: Budget) -> Plan:
        """All public choices."""
        return plan_bits(n, p, budget.part(1 - self.certificate), self.declared, self.steps)

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The plan's shares, and the certificate's."""
        return with_certificate(self.plan(n, p, budget).shares, self.certificate)

    def fit(self, rows: Rows, gate: Gate, public: Public) -> Fitted:
        """Private centres and their certificate."""
        n, p = rows.n, rows.p
        with Progress((("measuring", 1.0), ("certifying", 0.4))) as progress:
            progress.next()
            with blas_threads(1 if p <= LOW_RANK_COLUMNS else processors()):
                fit = BitFit(self.plan(n, p, gate.budget), public, self.device, progress.tick)
                cloud, spectrum, measured = bit_centres(rows, gate, fit)
            progress.next()
            if not self.certificate:
                return Fitted(cloud, None, spectrum, measured)
            with blas_threads(processors()):
                degrees, farthest = farthest_bits(rows, cloud)
                yardstick = yardstick_of_bits(rows, cloud)
            return Fitted(cloud, certify(degrees, farthest, n, gate, yardstick=yardstick), spectrum, measured)


@dataclass(frozen=True)
class BitFit:
    """What the fit of one table of bits needs besides the measurements: the plan, public randomness, a device, progress."""

    plan: Plan
    public: Public
    device: Device
    tick: Tick


def bit_centres(rows: Rows, gate: Gate, fit: BitFit) -> tuple[WeightedPoints, Spectrum | None, Measurements]:
    """Private centres in [0, 1]ᵖ, equally weighted, the noisy spectrum, and what was measured; spends the plan's charges."""
    plan = fit.plan
    if plan.mechanism == "means":
        means = measure_means(rows, gate)
        return shrunken_means(means), None, Measurements(rows.n, (means,))
    measured = measure_bits(rows, gate, plan)
    sizes = measure_sizes(rows, gate) if gate.has("row sums") else None
    fit.tick(0.1)

    def scores(f: Factors) -> Scores | None:
        """Histograms along the fitted directions, if there are any worth measuring."""
        if not gate.has("scores"):
            return None
        directions, edges = score_plan(f)
        return measure_scores(rows, directions, edges, gate) if len(edges) else None

    wide = rows.p > LOW_RANK_COLUMNS
    spectrum = None if wide else moment_spectrum(measured.moments, plan.mechanism, fit.public("spectrum"))
    centres = equal(fit_bits(measured, sizes, scores, fit))
    return centres, spectrum, Measurements(rows.n, tuple(kept_bits(measured, sizes)))


def kept_bits(measured: CodedBits, sizes: Measurement | None) -> Iterator[Measurement]:
    """What is kept beside the centres: first means of rows that were not cut; of too many pairs only how noisy they were."""
    one, two, *more = measured.found
    if measured.uncut is not None:
        yield measured.uncut
    yield one
    yield two if len(one.values) <= LOW_RANK_COLUMNS else replace(two, values=np.zeros(0))
    if sizes is not None:
        yield sizes
    yield from more


def measure_bits(rows: Rows, gate: Gate, plan: Plan) -> CodedBits:
    """Mean products, as the plan says."""
    if plan.mechanism == "matrix":
        return measure_matrix(rows, gate)
    return measure_parities(rows, gate) if plan.mechanism == "parities" else measure_ball(rows, plan, gate)


def fit_bits(
    measured: CodedBits, sizes: Measurement | None, scores: Callable[[Factors], Scores | None], fit: BitFit
) -> Floats:
    """Centres whose moments, scores, row sums and parities agree with the measured ones."""
    plan, tick = fit.plan, fit.tick
    denoised = denoise_bits(measured.moments, fit)
    device = denoised.pairs.device
    f, terms = denoised.factors, [denoised.fine]
    if sizes is not None:
        terms.append(size_term(sizes.values / sizes.per, float(sizes.sd) / sizes.per))
    found = scores(f)
    if found is not None:
        shape = score_term(device, found)
        loose = replace(denoised.prior, mean=np.zeros(plan.factors), sd=np.full(plan.factors, 1.5))
        f = fit_factors(device, [denoised.raw, shape], f, loose, STEPS, float(HOLD))
        terms.append(shape)
    tick(0.7)
    steps = plan.final_steps if "scores" in plan.shares else 2 * STEPS if sizes is not None else STEPS
    y = fit_centres(device, terms, f.logits, steps)
    if len(measured.found) == 2:
        return y
    term = parity_target(measured.found[2:], y)
    return fit_centres(device, [denoised.fine, term], logit(np.clip(y, 1e-6, 1 - 1e-6)), plan.parity_steps)


def denoise_bits(noisy: NoisyMoments, fit: BitFit) -> Denoised[DensePairs] | Denoised[LowRankPairs]:
    """Pairs in a basis on the device for many columns, dense on the processor for few; thinning needs Gaussian noise."""
    plan, public = fit.plan, fit.public("fit")
    if len(noisy.mean) > LOW_RANK_COLUMNS:
        wide = LowRankPairs.of(noisy, fit.device, public)
        return denoise(wide, plan.centres, plan.factors, lambda t: fit.tick(0.1 + 0.4 * t))
    found = denoise(DensePairs.of(noisy, public), plan.centres, plan.factors, lambda t: fit.tick(0.1 + 0.1 * t))
    if plan.mechanism == "matrix":
        return with_atoms(found)
    return stacked(found, fit.public("stack"), lambda t: fit.tick(0.2 + 0.3 * t))


def equal(points: Floats) -> WeightedPoints:
    """Centres of equal weight."""
    return WeightedPoints(np.full(len(points), 1 / len(points)), points)


def moment_spectrum(noisy: NoisyMoments, mechanism: str, shown: np.random.Generator) -> Spectrum | None:
    """Eigenvalues of the noisy covariance as measured, beside those of simulated noise of the same law, of deviation 1."""
    p = len(noisy.mean)
    if mechanism == "matrix":
        if p <= SIGN_COLUMNS:
            W = simulated_signs(1 / pair_deviation(p), p + 1, shown)[:p, :p]
        else:
            W = simulated_matrix(float(np.sqrt(2 / (p + 2))), p + 1, shown)[:p, :p]
    else:
        W = np.triu(shown.standard_normal((p, p)), 1)
        W = W + W.T
    return noisy_spectrum(hollow(noisy.pair - np.outer(noisy.mean, noisy.mean)), hollow(W) * noisy.pair_sd)


def shrunken_means(found: Measurement) -> WeightedPoints:
    """One centre: means shrunk toward their average, and that toward ½, as far as their noise demands."""
    noisy, sd = found.values, float(found.sd)
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


def parity_target(seen: Sequence[Measurement], y: Floats) -> Term:
    """Products of signs of the centres plus the shrunken difference to the measured ones, at a fifth of the noise."""
    i, j = np.triu_indices(y.shape[1], 1)
    z = 2 * y - 1
    q = z[:, i] * z[:, j]
    aims, sds = [z.T @ q / len(z), q.T @ q / len(z)], []
    for aim, mask, found in zip(aims, parity_masks(y.shape[1]), seen, strict=True):
        per = found.per / 2**found.query.degree  # of signs
        aim[mask] += empirical_bayes(found.values / per - aim[mask], float(found.sd) / per)[0]
        sds.append(float(found.sd) / per / CLOSE)
    return parity_term(aims[0], aims[1], (sds[0], sds[1]))


# Certificate.


def yardstick_of_bits(rows: Rows, cloud: WeightedPoints) -> Yardstick:
    """Rows out of place between the records and the centres, sealed."""
    return Yardstick(rows.reduce(moments).map(misplaced_bits, cloud), columns=min(rows.p, 2))


def farthest_bits(rows: Rows, cloud: WeightedPoints) -> tuple[list[int], Exact[float]]:
    """Degrees that public numbers say are affordable, and the largest distance of the records from a cloud among them."""
    n, p = rows.n, rows.p
    degrees = [d for d in DEGREES if d <= min(2, p)]
    parts: list[Exact[Any]] = [rows.reduce(moments).map(low_bit_distances, cloud)]
    if n <= GRAM_LIMIT and rows.steps == 1:
        high = affordable_products(n, p, [d for d in DEGREES if d > 2])
        if high:
            parts.append(rows.whole(HighBits(cloud)))
    else:
        high = affordable_subsets(n, p)
        for d in high:
            counts = rows.reduce(SubsetCounts(d))
            parts.append(counts.map(part).map(subset_distance, n * rows.steps, d, cloud))
    return [*degrees, *high], Exact.of(largest, *parts)
