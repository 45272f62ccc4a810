"""What matters most: pairs of attributes that are measured a second time and followed more closely, and triples.

Which pairs these are is public, said before the data is seen. Few pairs move little: their own measurement is far less noisy than
that of all pairs together, so a part of the pairs' budget serves them better there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.budget import Budget
from covey.engine.codes.domain import Domain
from covey.engine.fit.shrinkage import beyond_noise
from covey.engine.measurement import Measurement
from covey.engine.model import Ask, Asking
from covey.engine.models.tables.measure_tables import PairCells
from covey.engine.models.tables.table_counts import TableCounts
from covey.engine.models.tables.triples import AffordableTriples, affordable_triples
from covey.engine.noise.pairlaw import place_of
from covey.engine.query import Query
from covey.engine.sensitivity import Sensitivity

# Of what pairs have, for the second measurement of important pairs: most of the gain, while others lose less than a third.
IMPORTANT_SHARE = Fraction(2, 5)
TARGET_SHARE = Fraction(4, 5)  # the same for pairs with a target, where all pairs together would be noise
EMPHASIS = 4.0  # weight of an important pair in the fit, beside 1 for the others
MANY_ATTRIBUTES = 16  # from which on the pairs of a single one are a small part of all: an eighth
ONE_WAY_WEIGHT = 3.0  # weight of an important attribute among the one-way charges

Pair = tuple[int, int]


@dataclass(frozen=True)
class Important:
    """What matters most: public.

    Attributes:
        attributes: whose one-way tables are measured better.
        pairs: of attributes a < b, which are measured a second time.
        target: an attribute that the others are to predict.
        triples: how many to look for at most; where there is a target, each has it.
        unasked: whether nobody asked for triples, so that they must pay.
    """

    attributes: frozenset[int] = frozenset()
    pairs: tuple[Pair, ...] = ()
    target: int | None = None
    triples: int = 0
    unasked: bool = False

    @classmethod
    def of(
        cls, named: Iterable[Sequence[int]], q: int, pure: bool, target: int | None = None, triples: int = 0
    ) -> Important:
        """Pairs, and single attributes, among q: these have their own one-way tables measured better.

        Where there are many attributes, under (ε, δ), a single one also matters together with every other one. Elsewhere a second
        measurement of all its pairs would cost the denoising of all pairs more than it gives: measured on ten and on 24 columns.
        Pairs with a target are followed more closely by the fit, which costs nothing, wherever they are not measured again.
        """
        groups = [tuple(group) for group in named]
        pairs = {_ordered(*group) for group in groups if len(group) == 2}
        if not pure and q >= MANY_ATTRIBUTES:
            for group in groups:
                if len(group) == 1:
                    pairs |= set(_pairs_with(group[0], q))
        attributes = frozenset(a for group in groups for a in group)
        return cls(attributes, tuple(sorted(pairs)), target, triples)

    def with_target_pairs(self, q: int) -> Important:
        """With every pair of the target, among q attributes, where no pair is named."""
        if self.target is None or self.pairs:
            return self
        return replace(self, pairs=tuple(_pairs_with(self.target, q)))

    def __bool__(self) -> bool:
        return bool(self.attributes) or self.target is not None or self.triples > 0

    def weights(self, q: int) -> Floats:
        """How much each pair counts in the fit."""
        weights = np.ones((q, q))
        if self.target is not None:
            weights[self.target] = EMPHASIS
            weights[:, self.target] = EMPHASIS
        for a, b in self.pairs:
            weights[a, b] = EMPHASIS
            weights[b, a] = EMPHASIS
        return weights

    def varying_pairs(self, sizes: Sequence[int]) -> list[Pair]:
        """The pairs both of whose attributes vary."""
        return [(a, b) for a, b in self.pairs if sizes[a] > 1 and sizes[b] > 1]

    def sensitivity(self, sizes: Sequence[int]) -> Sensitivity:
        """How far one replaced row moves these pair tables together (docs/proofs/sensitivity.md, "Some pairs").

        Counts: by 2 in ℓ1 each. Centred tables: by at most 2·max(1 − 1/c_a, 1 − 1/c_b) in squared ℓ2 each.
        """
        pairs = self.varying_pairs(sizes)
        radii = [1 - Fraction(1, size) for size in sizes]
        replaced = sum((2 * max(radii[a], radii[b]) for a, b in pairs), Fraction(0))
        added = sum((radii[a] * radii[b] for a, b in pairs), Fraction(0))
        return Sensitivity(
            l1=2 * len(pairs),
            l2_squared=replaced,
            added=Sensitivity(l1=len(pairs), l2_squared=added),
        )

    def candidates(self, q: int) -> int:
        """How many triples there are among q attributes."""
        return comb(q, 3) if self.target is None else comb(max(q - 1, 0), 2)

    def affordable(self, n: int, q: int, budget: Budget) -> AffordableTriples:
        """How many triples of q attributes are measured, and on how many levels; `budget` is what measuring may spend."""
        with_target = self.target is not None
        return affordable_triples(n, self.candidates(q), self.triples, budget, with_target)


NOTHING = Important()


def _ordered(a: int, b: int) -> Pair:
    return min(a, b), max(a, b)


def _pairs_with(a: int, q: int) -> Iterator[Pair]:
    """All pairs of one of q attributes."""
    return (_ordered(a, b) for b in range(q) if b != a)


# The second measurement.


def measure_important(
    tables: TableCounts, bin_of: list[Integers], important: Important, domain: Domain, pure: bool
) -> Asking[Measurement]:
    """Noisy centred tables of the important pairs, one after the other. Costs "important"."""
    pairs = important.varying_pairs(domain.sizes)
    query = Query(pairs, tables.factors(bin_of), "centred")
    cells = PairCells(domain, [place_of(domain, a, [b]) for a, b in pairs], pure)
    components = cells.components(tables.pairs(bin_of), query)
    measurements = yield [Ask("important", components, important.sensitivity(domain.sizes))]
    return replace(measurements[-1], values=cells.centred_tables(measurements), sd=cells.sd(measurements))


def average_pairs(noisy: Floats, sd: float, again: Measurement, domain: Domain) -> Floats:
    """The first measurement of all pairs, averaged with the second one of some by the variances of their noise."""
    weight = _precision(again)
    first_weight = 1 / sd**2 if sd > 0 else 0.0
    average = noisy.copy()
    for a, b in again.query.sets:
        rows, columns = domain.block(a), domain.block(b)
        table = weight * again.table((a, b)) + first_weight * noisy[rows, columns]
        average[rows, columns] = table / (weight + first_weight)
        average[columns, rows] = average[rows, columns].T
    return average


def restore_pairs(covariances: Floats, noisy: Floats, sd: float, again: Measurement, domain: Domain) -> Floats:
    """Denoised covariances with what denoising lost of the important pairs, as far as it is more than their noise.

    Of a lost table ℓ the part (1 − s²·d/‖ℓ‖²)₊ is put back, s the deviation of the average and d the table's degrees of freedom.

    Args:
        covariances: denoised.
        noisy: the average of both measurements.
        sd: the deviation of the first measurement's noise.
        again: the second measurement.
        domain: of the bins.
    """
    variance = 1 / (_precision(again) + (1 / sd**2 if sd > 0 else 0.0))
    restored = covariances.copy()
    for a, b in again.query.sets:
        rows, columns = domain.block(a), domain.block(b)
        lost = noisy[rows, columns] - covariances[rows, columns]
        freedom = (domain.sizes[a] - 1) * (domain.sizes[b] - 1)
        restored[rows, columns] += beyond_noise(lost, variance * freedom) * lost
        restored[columns, rows] = restored[rows, columns].T
    return restored


def _precision(measurement: Measurement) -> float:
    """One over the variance of the noise on a share."""
    return 1 / (float(measurement.sd) / measurement.per) ** 2
