"""`regain` for categories: one-way tables, merged pair tables, centres, categories again.

The public formulas of `plan` fix every choice before the data is seen; merging rests on the noisy one-way tables.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from covey.core.arrays import Floats
from covey.core.fit.centres import Tick, fit_category_centres
from covey.core.fit.spectrum import Spectrum, noisy_spectrum, pair_covariances
from covey.core.noise.pairlaw import PairLaw
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain
from covey.core.tables.histograms import denoise_histogram
from covey.core.tables.merging import merge_maps, unmerge
from covey.methods.regain.measure import Tables, measure_histograms, measure_pairs
from covey.methods.regain.measured import MeasuredCategories
from covey.methods.regain.plan import bin_mass, fit_steps, most_bins, pair_law
from covey.privacy.gate import Gate

CENTRES = 300  # more gave nothing on the tables of docs/benchmarks


def category_centres(
    tables: Tables, gate: Gate, make_public: Callable[[str], np.random.Generator], tick: Tick
) -> tuple[WeightedPoints, Spectrum | None, MeasuredCategories]:
    """Private centres over the categories, the noisy spectrum, what was measured; spends "histograms" and "pairs"."""
    n, domain = tables.n, tables.domain
    public, shown = make_public("fit"), make_public("spectrum")
    one_way = measure_histograms(tables, gate)
    fine = [
        denoise_histogram(v, sd, n, o, public) / n
        for v, sd, o in zip(one_way.counts, one_way.sds, domain.ordered, strict=True)
    ]
    budget = gate.allowance("pairs")
    maps = merge_maps(fine, one_way.sds, n, bin_mass(n, domain, budget), most_bins(domain), domain)
    merged = Domain(tuple(int(m.max()) + 1 for m in maps), domain.ordered)
    shares = np.concatenate([np.bincount(m, p, minlength=c) for m, p, c in zip(maps, fine, merged.sizes, strict=True)])
    law = pair_law(merged, budget, tables.steps)
    counted = measure_pairs(tables, maps, law, gate)
    measured = MeasuredCategories(n, domain, budget.pure, one_way, maps, law, counted)
    pairs = counted / n
    spectrum = pair_spectrum(pairs, law, n, shares, shown)
    tick(0.2)
    covariances = (
        np.zeros_like(pairs)
        if law.family == "none"
        else pair_covariances(pairs, lambda: law.simulate(public) / n, law.sd / n, shares, merged, public)
    )
    tick(0.4)
    steps = fit_steps(n, domain, budget, merged.total)
    y = fit_category_centres(shares, covariances, merged, CENTRES, steps, public, lambda t: tick(0.4 + 0.6 * t))
    weights = np.full(len(y), 1 / len(y))
    return WeightedPoints(weights, unmerge(y, weights, fine, maps, merged)), spectrum, measured


def pair_spectrum(pairs: Floats, law: PairLaw, n: int, shares: Floats, shown: np.random.Generator) -> Spectrum | None:
    """Eigenvalues of the noisy covariance of the merged categories, beside those of simulated noise of the same law."""
    if law.family == "none":
        return None
    d = law.domain
    mean = shares - np.repeat(1 / d.counts, d.counts)
    return noisy_spectrum(d.off_blocks(pairs - np.outer(mean, mean)), law.simulate(shown) / n)
