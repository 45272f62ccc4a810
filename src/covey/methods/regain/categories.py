"""`regain` for categories: one-way tables, merged pair tables, centres, categories again.

The public formulas of `plan` fix every choice before the data is seen; merging rests on the noisy one-way tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.fit.centres import Directions, Goal, Tick, fit_category_centres
from covey.core.fit.copula import NormalTables, Sharpened, sharpened
from covey.core.fit.spectrum import Denoisers, Spectrum, noisy_spectrum
from covey.core.noise.pairlaw import PairLaw
from covey.core.numbers.ranks import rank_scores, restore_ranks
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.domain import Domain
from covey.core.tables.histograms import denoise_histogram
from covey.core.tables.merging import merge_maps, unmerge
from covey.core.tables.triples import Triples
from covey.core.tables.zeros import Zeros
from covey.measure.measurement import Measurement, Measurements, joined
from covey.methods.regain.important import Important, averaged, measure_important, restored
from covey.methods.regain.measure import Tables, measure_histograms, measure_pairs
from covey.methods.regain.measure_numbers import measure_ranks
from covey.methods.regain.plan import bin_mass, fit_steps, most_bins, pair_law
from covey.methods.regain.prior import prior_covariances
from covey.methods.regain.triples import NO_WISH, Found, Wish, find_triples
from covey.privacy.gate import Gate

NOTHING = Important()
CENTRES = 300  # more gave nothing on the tables of docs/benchmarks


def category_centres(
    tables: Tables, gate: Gate, make_public: Callable[[str], np.random.Generator], tick: Tick
) -> tuple[WeightedPoints, Spectrum | None, Measurements]:
    """Private centres over the categories, the noisy spectrum, what was measured; spends "histograms" and "pairs"."""
    n, domain = tables.n, tables.domain
    public, shown = make_public("fit"), make_public("spectrum")
    one_way = measure_histograms(tables, gate)
    fine = [
        denoise_histogram(m.values, float(m.sd), n, o, public) / n for m, o in zip(one_way, domain.ordered, strict=True)
    ]
    sds = np.array([m.sd for m in one_way])
    maps = merge_maps(fine, sds, n, bin_mass(n, domain, gate.allowance("pairs")), most_bins(domain), domain)
    fit = merged_centres(Merging(tables, fine, maps, domain), gate, (public, shown), tick)
    return fit.cloud, fit.spectrum, Measurements(n, (joined(one_way), *fit.found))


@dataclass(frozen=True)
class Merging:
    """What pair tables start from: exact tables, denoised shares of their categories, category → bin, and a public domain.

    `declared` is what public formulas look at; `ranks` says that rank covariances are measured too, and how many categories of
    each attribute, its first ones, have no rank; `zeros` are combinations of categories that cannot occur, `important` pairs are
    measured a second time, and triples are looked for if there is a `wish`; `prior` are public rows of categories.
    """

    tables: Tables
    shares: list[Floats]
    maps: list[Integers]
    declared: Domain
    ranks: Integers | None = None
    zeros: Zeros | None = None
    important: Important = NOTHING
    wish: Wish = NO_WISH
    prior: Array | None = None


@dataclass(frozen=True)
class MergedFit:
    """Centres over the categories, the noisy spectrum, what was measured of pairs and triples of columns, and fitted triples."""

    cloud: WeightedPoints
    spectrum: Spectrum | None
    found: tuple[Measurement, ...]
    triples: Triples | None = None


def merged_centres(
    merging: Merging, gate: Gate, public: tuple[np.random.Generator, np.random.Generator], tick: Tick
) -> MergedFit:
    """Centres over the categories from noisy pair tables of bins; spends "pairs", and what else is planned of these."""
    tables, fine, maps = merging.tables, merging.shares, merging.maps
    n, (generator, shown) = tables.n, public
    budget = gate.allowance("pairs")
    merged = Domain(tuple(int(m.max()) + 1 for m in maps), tables.domain.ordered)
    shares = np.concatenate([np.bincount(m, p, minlength=c) for m, p, c in zip(maps, fine, merged.sizes, strict=True)])
    law = pair_law(merged, budget, tables.steps)
    counted = measure_pairs(tables, maps, law, gate)
    pairs = counted.values / n if counted.kept else np.zeros((merged.total, merged.total))
    extra = None
    if gate.has("important") and merging.important.live(merged.sizes):
        extra = measure_important(tables, maps, merging.important, merged, gate)
        pairs = averaged(pairs, law.sd / n, extra, merged)
    spectrum = pair_spectrum(pairs, law, n, shares, shown)
    tick(0.2)
    sharp, directions = denoised(Noisy(pairs, law, shares, merged), merging, extra, gate, generator)
    tick(0.4)
    steps = fit_steps(n, merging.declared, budget, sharp.domain.total)
    zeros = merging.zeros.gathered(sharp.maps, sharp.domain) if merging.zeros else None
    closely = extra is not None or merging.important.target is not None
    emphasis = merging.important.weights(len(merged.sizes)) if closely else None
    goal = Goal(sharp.shares, sharp.covariances, sharp.domain, directions, zeros, emphasis)
    last = 0.7 if gate.has("triples") else 1.0
    found = fit_category_centres(goal, CENTRES, steps, generator, lambda t: tick(0.4 + (last - 0.4) * t))
    three = seen = None
    if gate.has("triples"):
        three, seen = find_triples(tables, merging.wish, Found(found, sharp.maps, sharp.shares, sharp.domain), gate)
    if three is not None:
        goal = replace(goal, triples=three)
        found = fit_category_centres(goal, CENTRES, steps // 2, generator, lambda t: tick(0.7 + 0.3 * t), found)
    cloud = WeightedPoints(found.weights, unmerge(found.points, found.weights, fine, sharp.maps, sharp.domain))
    kept = None if three is None else three.triples.of(sharp.maps)
    return MergedFit(cloud, spectrum, tuple(m for m in (counted, extra, seen) if m is not None), kept)


@dataclass(frozen=True)
class Noisy:
    """Noisy centred pair tables of bins as shares, the law of their noise in counts, and the bins' one-way shares."""

    pairs: Floats
    law: PairLaw
    shares: Floats
    domain: Domain

    @property
    def centred(self) -> Floats:
        """Noisy covariances."""
        return centred(self.pairs, self.shares, self.domain)


def denoised(
    noisy: Noisy, merging: Merging, extra: Measurement | None, gate: Gate, generator: np.random.Generator
) -> tuple[Sharpened, Directions | None]:
    """What the fit aims at: covariances, over finer bins where attributes are strongly tied, and ranks; spends "ranks"."""
    n, shares, domain, sd = merging.tables.n, noisy.shares, noisy.domain, noisy.law.sd / merging.tables.n
    covariances, normal = np.zeros_like(noisy.pairs), None
    if noisy.law.family != "none":
        normal = None if merging.ranks is None else NormalTables(shares, domain, merging.ranks)
        expected = None if merging.prior is None else prior_covariances(merging.prior, merging.maps, domain)
        draw = lambda: noisy.law.simulate(generator) / n  # noqa: E731
        covariances = Denoisers(shares, domain, generator, expected, normal).combined(noisy.centred, draw, sd)
    if extra is not None:
        covariances = restored(covariances, noisy.centred, sd, extra, domain)
    plain = Sharpened(domain, shares, covariances, merging.maps)
    if normal is None or merging.ranks is None:
        return plain, None
    ranks = rank_scores(shares, domain, merging.ranks)
    known = gate.has("ranks") and len(ranks.attributes) > 1
    if known:
        sums = measure_ranks(merging.tables, merging.maps, ranks, gate)
        covariances = restore_ranks(covariances, noisy.centred, sd, ranks, sums, shares)
        plain = Sharpened(domain, shares, covariances, merging.maps)
    found = normal, normal.best(noisy.centred, sd)
    sharp = sharpened(plain, found, merging.shares, merging.ranks) or plain
    return sharp, rank_scores(sharp.shares, sharp.domain, merging.ranks).directions() if known else None


def centred(pairs: Floats, shares: Floats, domain: Domain) -> Floats:
    """Noisy covariances from noisy centred pair tables."""
    mean = shares - np.repeat(1 / domain.counts, domain.counts)
    return domain.off_blocks(pairs - np.outer(mean, mean))


def pair_spectrum(pairs: Floats, law: PairLaw, n: int, shares: Floats, shown: np.random.Generator) -> Spectrum | None:
    """Eigenvalues of the noisy covariance of the merged categories, beside those of simulated noise of the same law."""
    if law.family == "none":
        return None
    return noisy_spectrum(centred(pairs, shares, law.domain), law.simulate(shown) / n)
