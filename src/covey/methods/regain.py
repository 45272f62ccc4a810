"""`regain`: private synthetic data that is accurate at ordinary sizes.

The idea is the paper's: a private low-rank summary, weighted centres in K, bootstrapping, randomized rounding. The order is
turned around. First the moments are measured privately, then the centres are chosen as post-processing, so that nothing of
the covariance is lost:

    moments → noise → shrinkage → weighted centres in K → certificate → (per sample) bootstrapping → balanced rounding

What each step measures is in `methods.bits` and `methods.categories`, why it is private in docs/proofs/, what was tried and
measured in docs/decisions/.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from covey.core.arrays import require_memory
from covey.core.fit.devices import PROCESSOR, Device
from covey.core.fit.lowrank import WIDE
from covey.core.fit.spectrum import Spectrum
from covey.core.noise.samplers import CoveyNoise, IntegerNoise, OpenDPNoise
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.coding import UNIT, Coding
from covey.core.tables.distance import (
    GRAM_LIMIT,
    HighBits,
    SubsetCounts,
    affordable_subsets,
    low_bit_distances,
    subset_distance,
)
from covey.core.tables.domain import Domain
from covey.core.tables.moments import moments
from covey.core.threads import blas_threads, processors
from covey.engines.rows import Rows
from covey.entropy import Streams
from covey.methods.bits import bit_centres, expected_pair_noise, plan_bits
from covey.methods.categories import Tables, category_centres, histogram_share
from covey.privacy.budget import Budget, Charge
from covey.privacy.certificate import Certificate, certify
from covey.progress import Progress

CERTIFICATE_SHARE = Fraction(5, 100)


@dataclass(frozen=True)
class Regained:
    """Everything that leaves: centres, certificate, noisy spectrum and what they cost. All of it is private."""

    cloud: WeightedPoints
    certificate: Certificate | None
    charges: tuple[Charge, ...]
    spectrum: Spectrum | None = None


def regain_bits(
    rows: Rows,
    budget: Budget,
    share: Fraction,
    declared: Coding | None,
    source: str,
    streams: Streams,
    device: Device = PROCESSOR,
) -> Regained:
    """Private centres for rows of bits, and their certificate."""
    n, p = rows.n, rows.p
    refuse_too_wide(p, n)
    plan = plan_bits(n, p, budget.amount * (1 - share), budget.pure, declared)
    charges = budget.split({**{name: s * (1 - share) for name, s in plan.shares.items()}, "certificate": share})
    public, shown = streams.postprocessing("fit"), streams.postprocessing("spectrum")
    with Progress((("measuring", 1.0), ("certifying", 0.4))) as progress:
        progress.next()
        noise = noise_source(source, streams, "moments")
        with blas_threads(1 if p <= WIDE else processors()):
            cloud, spectrum = bit_centres(
                rows, plan, charges, noise, streams.noise("matrix"), public, shown, progress.tick, device
            )
        progress.next()
        if not share:
            return Regained(cloud, None, _spent(charges), spectrum)
        with blas_threads(processors()):
            distances = distances_of_bits(rows, cloud)
        noise = noise_source(source, streams, "certificate")
        certificate = certify(distances, n, charges["certificate"], noise)
    return Regained(cloud, certificate, _spent(charges), spectrum)


def regain_categories(
    rows: Rows, domain: Domain, budget: Budget, share: Fraction, source: str, streams: Streams
) -> Regained:
    """Private centres for rows of category codes, and their certificate."""
    refuse_too_wide(domain.total, rows.n, categories=True)
    first = Fraction(histogram_share(rows.n, domain, budget.amount, budget.pure)) * (1 - share)
    charges = budget.split({"histograms": first, "pairs": 1 - share - first, "certificate": share})
    public, shown = streams.postprocessing("fit"), streams.postprocessing("spectrum")
    with Progress((("measuring", 1.0), ("certifying", 0.6))) as progress:
        progress.next()
        noise = noise_source(source, streams, "moments")
        generator = streams.noise("matrix")
        tables = Tables(rows, domain)
        with blas_threads(1):
            cloud, spectrum = category_centres(
                tables, domain, charges, budget.pure, noise, generator, public, shown, progress.tick
            )
        progress.next()
        if not share:
            return Regained(cloud, None, _spent(charges), spectrum)
        with blas_threads(1):
            distances = tables.distances(cloud)
        noise = noise_source(source, streams, "certificate")
        certificate = certify(distances, rows.n, charges["certificate"], noise, categorical=True)
    return Regained(cloud, certificate, _spent(charges), spectrum)


def distances_of_bits(rows: Rows, cloud: WeightedPoints) -> dict[int, float]:
    """How far the records are from a cloud, by degree, as far as public numbers say that this is affordable. Private."""
    low = low_bit_distances(rows.reduce(moments), cloud)
    if rows.n <= GRAM_LIMIT:
        return low | rows.whole(HighBits(cloud))
    degrees = affordable_subsets(rows.n, rows.p)
    counts = {d: rows.reduce(SubsetCounts(d)).integers()[0] for d in degrees}
    return low | {d: subset_distance(counts[d], rows.n, d, cloud) for d in degrees}


def noise_source(source: str, streams: Streams, purpose: str) -> IntegerNoise:
    """Who draws the integer noise."""
    return OpenDPNoise() if source == "opendp" else CoveyNoise(streams.noise(purpose))


def expect_noise(n: int, p: int, budget: Budget) -> float:
    """Noise on a pair share, from public numbers: beyond 0.1 the answer is mostly noise."""
    return expected_pair_noise(n, p, budget.amount, budget.pure)


def _spent(charges: dict[str, Charge]) -> tuple[Charge, ...]:
    return tuple(charge for charge in charges.values() if charge.amount)


def refuse_too_wide(width: int, n: int = 0, categories: bool = False) -> None:
    """Refuse, before anything is allocated, a table whose fit needs more memory than there is."""
    needed = fit_memory(width, n, categories)
    require_memory(needed, f"a table of {width} encoded columns", "Use fewer columns or categories.")


def fit_memory(width: int, n: int, categories: bool) -> int:
    """Bytes that a fit allocates beyond the table: checked against runs in benchmarks/wide.py.

    Sums of a batch, the sums so far and their total are matrices of 8 bytes an entry, and their coding takes a little more. For
    categories four denoisers and their four candidates are held at once. The last terms are the centres, with the history
    of their fit, and the records in single precision for the certificate.
    """
    matrices = (160 if categories else 40) * width**2
    return matrices + 40 * 4 * 600 * min(width, 1000) + 40 * 4 * 200 * max(width - 1000, 0) + 4 * n * width


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
