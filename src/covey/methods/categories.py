"""`regain` for categorical records: one-way tables, merged pair tables, centres, categories again.

Records are read by the two `measure_*` functions alone; all else is post-processing of what they return. The public formulas
below fix every choice before the data is seen; merging rests on the noisy one-way tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.blocks import WeightedPoints
from covey.core.centres import Tick, fit_category_centres
from covey.core.counts import category_counts, pair_counts
from covey.core.domain import Domain
from covey.core.histograms import denoise_histogram
from covey.core.merging import merge_maps, unmerge
from covey.core.noise import add_noise
from covey.core.pairlaw import PairLaw, pair_law
from covey.core.samplers import IntegerNoise
from covey.core.sensitivity import pair_table_sensitivity
from covey.core.spectrum import pair_covariances
from covey.engines.rows import Rows
from covey.privacy.budget import Charge, split

CENTRES = 300


def category_centres(
    rows: Rows,
    domain: Domain,
    charges: dict[str, Charge],
    pure: bool,
    noise: IntegerNoise,
    generator: np.random.Generator,
    public: np.random.Generator,
    tick: Tick,
) -> WeightedPoints:
    """Private centres over the categories of the domain; spends charges["histograms"] and charges["pairs"]."""
    n = rows.n
    one_way = measure_histograms(rows, domain, charges["histograms"], pure, noise)
    fine = [
        denoise_histogram(v, sd, n, o, public) / n
        for v, sd, o in zip(one_way.counts, one_way.sds, domain.ordered, strict=True)
    ]
    amount = charges["pairs"].amount
    maps = merge_maps(fine, one_way.sds, n, bin_mass(n, domain, amount, pure), most_bins(domain), domain)
    merged = Domain(tuple(int(m.max()) + 1 for m in maps), domain.ordered)
    shares = np.concatenate([np.bincount(m, p, minlength=c) for m, p, c in zip(maps, fine, merged.sizes, strict=True)])
    law = pair_law(merged, amount, pure)
    pairs = measure_pairs(rows, maps, law, noise, generator) / n
    tick(0.2)
    covariances = pair_covariances(pairs, lambda: law.simulate(public) / n, law.sd / n, shares, merged)
    tick(0.4)
    steps = fit_steps(n, domain, amount, pure, merged.total)
    y = fit_category_centres(shares, covariances, merged, CENTRES, steps, public, lambda t: tick(0.4 + 0.6 * t))
    weights = np.full(len(y), 1 / len(y))
    return WeightedPoints(weights, unmerge(y, weights, fine, maps, merged))


@dataclass(frozen=True)
class OneWay:
    """Noisy one-way counts of every attribute, and their noise."""

    counts: list[Floats]
    sds: Floats


def measure_histograms(rows: Rows, domain: Domain, charge: Charge, pure: bool, noise: IntegerNoise) -> OneWay:
    """One-way counts. A replaced row moves each histogram by 2 in ℓ1 and √2 in ℓ2.

    Shares of the charge minimise Σ c_a·sd_a: proportional to √c_a (Laplace of scale 2/ε_a) or c_a^{2/3} (Gaussian of variance
    1/ρ_a).
    """
    weight = domain.counts ** (1 / 2 if pure else 2 / 3)
    parts = split(charge.amount, {str(a): float(w) for a, w in enumerate(weight / weight.sum())})
    exact = rows.reduce(lambda batch: category_counts(batch, domain.sizes)).integers()[0]
    counts, sds = [], []
    for a, part in enumerate(parts.values()):
        own = exact[domain.block(a)]
        if pure:
            scale = 2 / part.amount
            counts.append(add_noise(own, noise.laplace(scale, len(own))).astype(np.float64))
            sds.append(float(np.sqrt(2) * float(scale)))
        else:
            variance = 1 / part.amount
            counts.append(add_noise(own, noise.gaussian(variance, len(own))).astype(np.float64))
            sds.append(float(np.sqrt(float(variance))))
    return OneWay(counts, np.array(sds))


def measure_pairs(
    rows: Rows, maps: list[Integers], law: PairLaw, noise: IntegerNoise, generator: np.random.Generator
) -> Floats:
    """Noisy centred pair tables of the merged categories, in counts."""
    if law.kind == "none":
        return np.zeros((law.domain.total, law.domain.total))
    exact = rows.reduce(lambda batch: pair_counts(batch, maps)).integers()[0]
    return law.measure(exact, rows.n, noise, generator)


# Public formulas: functions of n, the declared sizes and the budget.


def coarse(domain: Domain) -> Domain:
    """A public guess at the merged domain."""
    return Domain(tuple(min(c, 12) for c in domain.sizes), domain.ordered)


def signal_to_noise(n: int, domain: Domain, amount: Fraction, pure: bool) -> float:
    """n·Δ over the pair noise's standard deviation; under zCDP this is n√(2ρ)."""
    guess = coarse(domain)
    sd = pair_law(guess, amount, pure).sd
    return n * float(pair_table_sensitivity(guess.sizes)) ** 0.5 / sd if sd > 0 else float(n)


def histogram_share(n: int, domain: Domain, amount: Fraction, pure: bool) -> float:
    """Share of the budget for one-way tables: more with many categories, less as the budget grows."""
    c = domain.counts.astype(np.float64)
    r = (0.7 * c.mean() / (np.minimum(c, 12) ** 1.5).mean()) ** (2 / 3)
    by_size = r / (1 + r) - 0.2 * np.log10(signal_to_noise(n, domain, amount, pure) / 8450)
    return float(np.clip(by_size, 0.1, 0.8)) if sum(size > 1 for size in domain.sizes) > 1 else 1.0


def bin_mass(n: int, domain: Domain, amount: Fraction, pure: bool) -> float:
    """Mass of a merged ordered bin: forty deviations of the pair noise, within reason."""
    return float(np.clip(40 * pair_law(coarse(domain), amount, pure).sd / n, 1 / most_bins(domain), 0.25))


def most_bins(domain: Domain) -> int:
    """Bins per attribute, so that the merged domain stays below about 800."""
    return max(8, 800 // len(domain.sizes))


def fit_steps(n: int, domain: Domain, amount: Fraction, pure: bool, merged: int) -> int:
    """Steps of the fit: more where the target is sharper, fewer where a step is dear."""
    steps = np.clip(800 * np.sqrt(signal_to_noise(n, domain, amount, pure) / 8450), 800, 2500)
    return int(max(250, steps * min(1.0, (400 / merged) ** 2)))
