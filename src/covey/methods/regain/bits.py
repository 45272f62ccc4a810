"""`regain` for bits, after the measurements: noisy moments → factors and sparse pairs → scores → centres.

Nothing here sees a record, except that scores are measured along fitted directions, through the gate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
from scipy.special import logit

from covey.core.arrays import Floats
from covey.core.fit.centres import Tick
from covey.core.fit.devices import Device
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
)
from covey.core.fit.wide import denoise_wide, fit_wide_centres, fit_wide_factors, score_term_in
from covey.core.noise.matrix import simulated_matrix
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.coding import Coding
from covey.engines.rows import Rows
from covey.methods.regain.measure import (
    Means,
    measure_ball,
    measure_matrix,
    measure_means,
    measure_parities,
    measure_scores,
    measure_sizes,
)
from covey.methods.regain.plan import Plan
from covey.privacy.gate import Gate

BINS = 16  # of a score's histogram: more bins are noisier and tell the fit nothing more
SCORES = 6  # leading directions whose scores are measured
HOLD = Fraction(1, 10)  # weight that keeps the factors near their first fit while the scores bend them
STEPS = 150  # of a fit, where the plan says nothing else

MakeGenerator = Callable[[str], np.random.Generator]


@dataclass(frozen=True)
class BitFit:
    """What the fit of one table of bits needs besides the measurements: the plan, public randomness, a device, progress."""

    plan: Plan
    public: MakeGenerator
    device: Device
    tick: Tick


def bit_centres(rows: Rows, gate: Gate, fit: BitFit) -> tuple[WeightedPoints, Spectrum | None]:
    """Private centres in [0, 1]ᵖ, equally weighted, and the noisy spectrum; spends the charges named by the plan."""
    plan = fit.plan
    if plan.kind == "means":
        return shrunken_means(measure_means(rows, gate)), None
    sizes: list[Term] = []
    parities: Parities | None = None
    if plan.kind == "matrix":
        noisy = measure_matrix(rows, gate)
        if gate.has("row sums"):
            found = measure_sizes(rows, gate)
            sizes = [size_term(found.values, found.sd)]
    elif plan.kind == "parities":
        noisy, parities = measure_parities(rows, gate)
    else:
        noisy = measure_ball(rows, plan, gate)
    fit.tick(0.1)

    def scores(f: Factors) -> Scores | None:
        """Histograms along the fitted directions, if there are any worth measuring."""
        if not gate.has("scores"):
            return None
        directions, edges = score_plan(f)
        return measure_scores(rows, directions, edges, gate) if len(edges) else None

    if rows.p > WIDE:
        return wide_centres(noisy, scores, fit), None
    spectrum = moment_spectrum(noisy, plan.kind, fit.public("spectrum"))
    return equal(narrow_centres(noisy, scores, sizes, parities, fit)), spectrum


def narrow_centres(
    noisy: NoisyMoments,
    scores: Callable[[Factors], Scores | None],
    sizes: list[Term],
    parities: Parities | None,
    fit: BitFit,
) -> Floats:
    """Centres whose moments, scores, row sums and parities agree with the measured ones."""
    plan, tick = fit.plan, fit.tick
    noisy, f, prior, target = denoise_moments(
        noisy, plan.centres, plan.factors, fit.public("fit"), lambda t: tick(0.1 + 0.4 * t)
    )
    # The centres follow the target closely: at a fifth of the noise the fit is not what limits.
    half = Coding.half(len(target.mean))
    u = target.mean - 0.5
    pair = hollow(target.pair - (target.mean[:, None] + target.mean) / 2 + 0.25)
    fine = moment_term(half, u, noisy.mean_sd / 5, pair, noisy.pair_sd / 5)
    found = scores(f)
    if found is not None:
        shape = score_term(found)
        raw = moment_term(noisy.coding, noisy.mean, noisy.mean_sd, noisy.pair, noisy.pair_sd)
        loose = replace(prior, mean=np.zeros(plan.factors), sd=np.full(plan.factors, 1.5))
        f = fit_factors([raw, shape], f, loose, STEPS, float(HOLD))
        tick(0.7)
        return fit_centres([fine, shape], f.logits, plan.final_steps)
    if "scores" in plan.shares:
        return fit_centres([fine], f.logits, plan.final_steps)
    y = fit_centres([fine, *sizes], f.logits, 2 * STEPS if sizes else STEPS)
    if parities is not None:
        tick(0.7)
        term = parity_term(parity_target(parities, y))
        y = fit_centres([fine, term], logit(np.clip(y, 1e-6, 1 - 1e-6)), plan.parity_steps)
    return y


def wide_centres(noisy: NoisyMoments, scores: Callable[[Factors], Scores | None], fit: BitFit) -> WeightedPoints:
    """The same for many columns, without p × p work in the fits."""
    plan, device, tick = fit.plan, fit.device, fit.tick
    wide = denoise_wide(noisy, plan.centres, plan.factors, device, fit.public("fit"), lambda t: tick(0.1 + 0.4 * t))
    f, terms = wide.factors, [wide.fine]
    found = scores(f)
    if found is not None:
        shape = score_term_in(device, found)
        loose = replace(wide.prior, mean=np.zeros(plan.factors), sd=np.full(plan.factors, 1.5))
        f = fit_wide_factors(device, [wide.raw, shape], f, loose, STEPS, float(HOLD))
        terms.append(shape)
    tick(0.7)
    return equal(fit_wide_centres(device, terms, f.logits, plan.final_steps))


def equal(points: Floats) -> WeightedPoints:
    """Centres of equal weight."""
    return WeightedPoints(np.full(len(points), 1 / len(points)), points)


def moment_spectrum(noisy: NoisyMoments, kind: str, shown: np.random.Generator) -> Spectrum | None:
    """Eigenvalues of the noisy covariance as measured, beside those of simulated noise of the same law."""
    p = len(noisy.mean)
    if kind == "matrix":
        W = simulated_matrix(float(np.sqrt(2 / (p + 2))), p + 1, shown)[1:, 1:]  # off-diagonal sd 1
    else:
        W = np.triu(shown.standard_normal((p, p)), 1)
        W = W + W.T
    return noisy_spectrum(hollow(noisy.pair - np.outer(noisy.mean, noisy.mean)), hollow(W) * noisy.pair_sd)


def shrunken_means(found: Means) -> WeightedPoints:
    """One centre: means shrunk toward their average, and that toward ½, as far as their noise demands."""
    noisy, sd = found.values, found.sd
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
