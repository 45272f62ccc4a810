"""`regain` for bits: noisy moments → factors and sparse pairs → scores along fitted directions → centres."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import logit

from covey.core.arrays import Array, Floats, blas_threads, hollow, processors
from covey.core.fit.devices import PROCESSOR, Device
from covey.core.fit.factors import Denoised, Factors, denoise, fit_factors, stacked, with_atoms
from covey.core.fit.shrinkage import empirical_bayes
from covey.core.fit.spectrum import Spectrum, noisy_spectrum
from covey.core.fit.targets import (
    CLOSE,
    DensePairs,
    NoisyMoments,
    Term,
    fit_centres,
    parity_masks,
    parity_term,
    score_term,
    size_term,
)
from covey.core.fit.wide import LOW_RANK_COLUMNS, LowRankPairs
from covey.core.noise.matrix import pair_deviation, simulated_matrix, simulated_signs
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import Coding, moments
from covey.measure.measurement import Measurement, Measurements
from covey.methods.laws import BitLaw, Limits
from covey.methods.model import Asking, Fitted, Setting, with_certificate
from covey.methods.regain.measure import (
    NARROW,
    BitMoments,
    measure_ball,
    measure_matrix,
    measure_means,
    measure_parities,
    measure_scores,
    measure_sizes,
)
from covey.methods.regain.plan import SIGN_COLUMNS, Plan, plan_bits
from covey.privacy.budget import Budget

BINS = 16  # of a score's histogram: more bins are noisier and tell the fit nothing more
SCORES = 6  # leading directions whose scores are measured
HOLD = Fraction(1, 10)  # weight that keeps the factors near their first fit while the scores bend them
STEPS = 150  # of a fit, where the plan says nothing else


@dataclass(frozen=True)
class RegainBits:
    """`regain` for rows of 0 and 1.

    Args:
        certificate: the share of the budget that buys the certificate.
        declared: the coding that declared limits allow, if any.
        device: where wide tables are fitted.
        width: columns, if they are known before the table is read.
        limits: declared ones, to which rows are trimmed before they are measured.
        steps: what one of the n weighs in the sums.
    """

    certificate: Fraction
    declared: Coding | None = None
    device: Device = PROCESSOR
    width: int | None = None
    limits: Limits = ()
    steps: int = 1

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """Moments of all columns, unless they are many or the rows are trimmed to declared limits first."""
        return (moments,) if self.width is not None and self.width <= NARROW and not self.limits else ()

    def plan(self, n: int, p: int, budget: Budget) -> Plan:
        """All public choices."""
        return plan_bits(n, p, budget.part(1 - self.certificate), self.declared, self.steps)

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The plan's shares, and the certificate's."""
        return with_certificate(self.plan(n, p, budget).shares, self.certificate)

    def ask(self, told: Setting) -> Asking[Fitted]:
        """Private centres in [0, 1]ᵖ, equally weighted, the noisy spectrum, and what was measured."""
        plan = self.plan(told.n, told.p, told.budget)
        with blas_threads(1 if told.p <= LOW_RANK_COLUMNS else processors()):
            if plan.mechanism == "means":
                means = yield from measure_means(told)
                return Fitted(BitLaw(shrunken_means(means), self.limits), Measurements(told.n, (means,)))
            measured = yield from measure_bits(told, plan)
            sizes = (yield from measure_sizes(told)) if told.has("row sums") else None
            told.tick(0.1)
            wide = told.p > LOW_RANK_COLUMNS
            spectrum = None if wide else moment_spectrum(measured.dense, plan.mechanism, told.public("spectrum"))
            centres = yield from fit_bits(measured, sizes, plan, told, self.device)
            kept = Measurements(told.n, tuple(kept_bits(measured, sizes)))
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


def measure_bits(told: Setting, plan: Plan) -> Asking[BitMoments]:
    """Mean products, as the plan says."""
    if plan.mechanism == "matrix":
        return (yield from measure_matrix(told))
    if plan.mechanism == "parities":
        return (yield from measure_parities(told))
    return (yield from measure_ball(told, plan))


def fit_bits(
    measured: BitMoments, sizes: Measurement | None, plan: Plan, told: Setting, device: Device
) -> Asking[Floats]:
    """Centres whose moments, scores, row sums and parities agree with the measured ones; asks for scores."""
    denoised = denoise_bits(measured.dense, plan, told, device)
    device = denoised.pairs.device
    f, terms = denoised.factors, [denoised.fine]
    if sizes is not None:
        terms.append(size_term(sizes.values / sizes.per, float(sizes.sd) / sizes.per))
    directions, edges = score_plan(f) if told.has("scores") else (np.zeros((0, 0)),) * 2
    if len(edges):  # some directions are worth measuring
        shape = score_term(device, (yield from measure_scores(told, directions, edges)))
        loose = replace(denoised.prior, mean=np.zeros(plan.factors), sd=np.full(plan.factors, 1.5))
        f = fit_factors(device, [denoised.raw, shape], f, loose, STEPS, float(HOLD))
        terms.append(shape)
    told.tick(0.7)
    steps = plan.final_steps if "scores" in plan.shares else 2 * STEPS if sizes is not None else STEPS
    y = fit_centres(device, terms, f.logits, steps)
    if len(measured.found) == 2:
        return y
    term = parity_target(measured.found[2:], y)
    return fit_centres(device, [denoised.fine, term], logit(np.clip(y, 1e-6, 1 - 1e-6)), plan.parity_steps)


def denoise_bits(
    noisy: NoisyMoments, plan: Plan, told: Setting, device: Device
) -> Denoised[DensePairs] | Denoised[LowRankPairs]:
    """Pairs in a basis on the device for many columns, dense on the processor for few; thinning needs Gaussian noise."""
    public = told.public("fit")
    if len(noisy.mean) > LOW_RANK_COLUMNS:
        wide = LowRankPairs.of(noisy, device, public)
        return denoise(wide, plan.centres, plan.factors, lambda t: told.tick(0.1 + 0.4 * t))
    found = denoise(DensePairs.of(noisy, public), plan.centres, plan.factors, lambda t: told.tick(0.1 + 0.1 * t))
    if plan.mechanism == "matrix":
        return with_atoms(found)
    return stacked(found, told.public("stack"), lambda t: told.tick(0.2 + 0.3 * t))


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
