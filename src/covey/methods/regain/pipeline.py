"""From rows to centres and their certificate: what `PrivateSynthesizer` runs, for bits and for categories.

A method says which kernels its first pass needs, how it would share a budget, and fits rows through a gate.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from covey.core.arrays import Array
from covey.core.fit.devices import PROCESSOR, Device
from covey.core.fit.lowrank import LOW_RANK_COLUMNS
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.coding import Coding
from covey.core.tables.counts import part
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
from covey.core.tables.domain import Domain
from covey.core.tables.misplaced import misplaced_bits
from covey.core.tables.moments import moments
from covey.core.threads import blas_threads, processors
from covey.engines.rows import Rows
from covey.methods.method import Fitted, Public, with_certificate
from covey.methods.regain.bits import BitFit, bit_centres
from covey.methods.regain.categories import category_centres
from covey.methods.regain.measure import Tables, first_kernel
from covey.methods.regain.plan import Plan, histogram_share, plan_bits
from covey.privacy.budget import Budget
from covey.privacy.certificate import Yardstick, certify
from covey.privacy.gate import Exact, Gate
from covey.progress import Progress

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
class RegainCategories:
    """`regain` for rows of category codes."""

    certificate: Fraction
    domain: Domain

    @property
    def first_pass(self) -> Sequence[Callable[[Array], Any]]:
        """All pair tables, or one-way tables where those are too large."""
        return (first_kernel(self.domain),)

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """One-way tables, pairs, certificate."""
        rest = 1 - self.certificate
        first = Fraction(histogram_share(n, self.domain, budget)) * rest
        return {"histograms": first, "pairs": rest - first, "certificate": self.certificate}

    def fit(self, rows: Rows, gate: Gate, public: Public) -> Fitted:
        """Private centres and their certificate."""
        with Progress((("measuring", 1.0), ("certifying", 0.6))) as progress, blas_threads(1):
            progress.next()
            tables = Tables(rows, self.domain)
            cloud, spectrum, measured = category_centres(tables, gate, public, progress.tick)
            progress.next()
            if not self.certificate:
                return Fitted(cloud, None, spectrum, measured)
            degrees, farthest = tables.farthest(cloud)
            certificate = certify(degrees, farthest, rows.n, gate, True, tables.misplaced(cloud))
            return Fitted(cloud, certificate, spectrum, measured)


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
