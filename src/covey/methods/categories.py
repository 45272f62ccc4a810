"""`regain` for categorical records: one-way tables, merged pair tables, centres, categories again.

Records are counted exactly by `Tables`, and noise meets the counts in the two `measure_*` functions; all else is post-processing
of what these return. The public formulas below fix every choice before the data is seen; merging rests on the noisy one-way
tables.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.fit.centres import Tick, fit_category_centres
from covey.core.fit.spectrum import Spectrum, noisy_spectrum, pair_covariances
from covey.core.noise.integers import add_noise
from covey.core.noise.pairlaw import PairLaw, pair_law
from covey.core.noise.samplers import IntegerNoise
from covey.core.noise.sensitivity import pair_table_sensitivity
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.crosstabs import FULL_TABLES, OneWayTables, PairTables
from covey.core.tables.distance import HighTables, affordable_tables, one_way_distance, pair_distances
from covey.core.tables.domain import Domain
from covey.core.tables.histograms import denoise_histogram
from covey.core.tables.merging import merge_maps, unmerge
from covey.engines.rows import Mapped, Rows
from covey.privacy.budget import Charge, split

CENTRES = 300


def first_kernel(domain: Domain) -> OneWayTables | PairTables:
    """What the first pass over the records counts; public."""
    return (PairTables if domain.total <= FULL_TABLES else OneWayTables)(domain.sizes)


class Tables:
    """Exact tables of the records, counted when they are first asked for. Private: only noisy versions of them leave."""

    def __init__(self, rows: Rows, domain: Domain) -> None:
        self._rows, self.domain, self.n = rows, domain, rows.n
        kernel = first_kernel(domain)
        counts = rows.reduce(kernel)
        self._pairs = kernel.matrix(counts) if isinstance(kernel, PairTables) else None
        self.one_way: Integers = counts.integers()[0] if self._pairs is None else self._pairs.diagonal()

    def pairs(self, maps: list[Integers]) -> Integers:
        """All pair tables of the merged categories maps[a][x_a], as one symmetric matrix."""
        sizes = [int(m.max()) + 1 for m in maps]
        if self._pairs is not None:
            starts = np.cumsum([0, *sizes[:-1]])
            place = np.concatenate([m + start for m, start in zip(maps, starts, strict=True)])
            half = np.zeros((sum(sizes), len(place)), dtype=np.int64)
            np.add.at(half, place, self._pairs)
            out = np.zeros((sum(sizes), sum(sizes)), dtype=np.int64)
            np.add.at(out, place, half.T)
            return out
        kernel = PairTables(tuple(sizes))
        return kernel.matrix(Mapped(self._rows, Merge(maps)).reduce(kernel))

    def distances(self, cloud: WeightedPoints) -> dict[int, float]:
        """How far the records are from a cloud, by degree, as far as public numbers say that this is affordable."""
        sizes, q = self.domain.sizes, len(self.domain.sizes)
        if self._pairs is not None:
            low = pair_distances(self._pairs, self.n, self.domain, cloud)
        else:
            low = {1: one_way_distance(self.one_way, self.n, q, cloud)}
        rest = tuple(d for d in affordable_tables(self.n, q) if d not in low)
        return low | (self._rows.whole(HighTables(sizes, cloud, rest)) if rest else {})


@dataclass(frozen=True)
class Merge:
    """A step on records: categories become merged ones."""

    maps: list[Integers]

    def __call__(self, batch: Array) -> Array:
        """Merge the categories of a batch."""
        return np.stack([m[batch[:, a]] for a, m in enumerate(self.maps)], axis=1)


def category_centres(
    tables: Tables,
    domain: Domain,
    charges: dict[str, Charge],
    pure: bool,
    noise: IntegerNoise,
    generator: np.random.Generator,
    public: np.random.Generator,
    shown: np.random.Generator,
    tick: Tick,
) -> tuple[WeightedPoints, Spectrum | None]:
    """Private centres over the categories, and the noisy spectrum; spends charges["histograms"] and charges["pairs"]."""
    n = tables.n
    one_way = measure_histograms(tables, domain, charges["histograms"], pure, noise)
    fine = [
        denoise_histogram(v, sd, n, o, public) / n
        for v, sd, o in zip(one_way.counts, one_way.sds, domain.ordered, strict=True)
    ]
    amount = charges["pairs"].amount
    maps = merge_maps(fine, one_way.sds, n, bin_mass(n, domain, amount, pure), most_bins(domain), domain)
    merged = Domain(tuple(int(m.max()) + 1 for m in maps), domain.ordered)
    shares = np.concatenate([np.bincount(m, p, minlength=c) for m, p, c in zip(maps, fine, merged.sizes, strict=True)])
    law = pair_law(merged, amount, pure)
    pairs = measure_pairs(tables, maps, law, noise, generator) / n
    spectrum = pair_spectrum(pairs, law, n, shares, shown)
    tick(0.2)
    covariances = (
        np.zeros_like(pairs)
        if law.kind == "none"
        else pair_covariances(pairs, lambda: law.simulate(public) / n, law.sd / n, shares, merged, public)
    )
    tick(0.4)
    steps = fit_steps(n, domain, amount, pure, merged.total)
    y = fit_category_centres(shares, covariances, merged, CENTRES, steps, public, lambda t: tick(0.4 + 0.6 * t))
    weights = np.full(len(y), 1 / len(y))
    return WeightedPoints(weights, unmerge(y, weights, fine, maps, merged)), spectrum


def pair_spectrum(pairs: Floats, law: PairLaw, n: int, shares: Floats, shown: np.random.Generator) -> Spectrum | None:
    """Eigenvalues of the noisy covariance of the merged categories, beside those of simulated noise of the same law."""
    if law.kind == "none":
        return None
    d = law.domain
    mean = shares - np.repeat(1 / d.counts, d.counts)
    return noisy_spectrum(d.off_blocks(pairs - np.outer(mean, mean)), law.simulate(shown) / n)


@dataclass(frozen=True)
class OneWay:
    """Noisy one-way counts of every attribute, and their noise."""

    counts: list[Floats]
    sds: Floats


def measure_histograms(tables: Tables, domain: Domain, charge: Charge, pure: bool, noise: IntegerNoise) -> OneWay:
    """One-way counts. A replaced row moves each histogram by 2 in ℓ1 and √2 in ℓ2.

    Shares of the charge minimise Σ c_a·sd_a: proportional to √c_a (Laplace of scale 2/ε_a) or c_a^{2/3} (Gaussian of variance
    1/ρ_a).
    """
    weight = domain.counts ** (1 / 2 if pure else 2 / 3)
    parts = split(charge.amount, {str(a): float(w) for a, w in enumerate(weight / weight.sum())})
    exact = tables.one_way
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
    tables: Tables, maps: list[Integers], law: PairLaw, noise: IntegerNoise, generator: np.random.Generator
) -> Floats:
    """Noisy centred pair tables of the merged categories, in counts."""
    if law.kind == "none":
        return np.zeros((law.domain.total, law.domain.total))
    return law.measure(tables.pairs(maps), tables.n, noise, generator)


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
