"""Pairs of attributes that matter most: measured a second time, by themselves, and followed more closely by the fit.

Which pairs these are is public, said before the data is seen. Few pairs move little: their own measurement is far less noisy than
that of all pairs together, so a part of the pairs' budget serves them better there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.fit.shrinkage import beyond_noise
from covey.core.tables.crosstabs import centred_counts
from covey.core.tables.domain import Domain
from covey.measure.measurement import Measurement
from covey.measure.query import Query
from covey.methods.model import Ask, Asking, Part, Setting, entries
from covey.methods.regain.measure_tables import Tables
from covey.privacy.gate import Moves

SHARE = Fraction(2, 5)  # of what pairs have: most of the gain, while the other pairs lose less than a third of theirs
EMPHASIS = 4.0  # weight of an important pair in the fit, beside 1 for the others
MANY = 16  # attributes from which on the pairs of a single one are a small part of all: an eighth
ONE_WAY = 3.0  # weight of an important attribute among the one-way charges


@dataclass(frozen=True)
class Important:
    """Public: attributes, and pairs of attributes (a < b), that matter most, and one that the others are to predict."""

    attributes: frozenset[int] = frozenset()
    pairs: tuple[tuple[int, int], ...] = ()
    target: int | None = None

    @classmethod
    def of(cls, named: Iterable[Sequence[int]], q: int, pure: bool, target: int | None = None) -> Important:
        """Pairs, and single attributes, among q: these have their own one-way tables measured better.

        Where there are many attributes, under (ε, δ), a single one also matters together with every other one. Elsewhere a second
        measurement of all its pairs would cost the denoising of all pairs more than it gives: measured on ten and on 24 columns.
        Pairs with a target are followed more closely by the fit, which costs nothing, wherever they are not measured again.
        """
        groups = [tuple(group) for group in named]
        stars = [group[0] for group in groups if len(group) == 1 and not pure and q >= MANY]
        named_pairs = [group for group in groups if len(group) == 2]
        every = [*named_pairs, *((a, b) for a in stars for b in range(q) if b != a)]
        pairs = tuple(sorted({(min(p), max(p)) for p in every}))
        return cls(frozenset(a for group in groups for a in group), pairs, target)

    def __bool__(self) -> bool:
        return bool(self.attributes) or self.target is not None

    def weights(self, q: int) -> Floats:
        """How much each pair counts in the fit."""
        out = np.ones((q, q))
        if self.target is not None:
            out[self.target] = out[:, self.target] = EMPHASIS
        for a, b in self.pairs:
            out[a, b] = out[b, a] = EMPHASIS
        return out

    def live(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """The pairs both of whose attributes vary."""
        return [(a, b) for a, b in self.pairs if sizes[a] > 1 and sizes[b] > 1]

    def moves(self, sizes: Sequence[int]) -> Moves:
        """How far one replaced row moves these pair tables together (docs/proofs/sensitivity.md, "Some pairs").

        Counts: by 2 in ℓ1 each. Centred tables: by at most 2·max(1 − 1/c_a, 1 − 1/c_b) in squared ℓ2 each.
        """
        live = self.live(sizes)
        squared = sum((2 * (1 - Fraction(1, max(sizes[a], sizes[b]))) for a, b in live), Fraction(0))
        lengths = [1 - Fraction(1, size) for size in sizes]
        added = Moves(l1=len(live), l2_squared=sum((lengths[a] * lengths[b] for a, b in live), Fraction(0)))
        return Moves(l1=2 * len(live), l2_squared=squared, added=added)


NOTHING = Important()


def averaged(noisy: Floats, sd: float, found: Measurement, domain: Domain) -> Floats:
    """The first measurement of all pairs, averaged with a second one of some by their variances where there are two."""
    out, own = noisy.copy(), 1 / _deviation(found) ** 2
    other = 1 / sd**2 if sd > 0 else 0.0
    for a, b in found.query.sets:
        one, two = domain.block(a), domain.block(b)
        out[one, two] = (own * found.table((a, b)) + other * noisy[one, two]) / (own + other)
        out[two, one] = out[one, two].T
    return out


def restored(covariances: Floats, noisy: Floats, sd: float, found: Measurement, domain: Domain) -> Floats:
    """Denoised covariances with what denoising lost of the important pairs, as far as it is more than their noise.

    `noisy` are the averaged covariances and `sd` the deviation of the first measurement. Of a lost table ℓ the part
    (1 − s²·d/‖ℓ‖²)₊ is put back, s the deviation of the average and d the table's degrees of freedom.
    """
    out = covariances.copy()
    variance = 1 / (1 / _deviation(found) ** 2 + (1 / sd**2 if sd > 0 else 0.0))
    for a, b in found.query.sets:
        one, two = domain.block(a), domain.block(b)
        lost = noisy[one, two] - covariances[one, two]
        freedom = (domain.sizes[a] - 1) * (domain.sizes[b] - 1)
        out[one, two] += beyond_noise(lost, variance * freedom) * lost
        out[two, one] = out[one, two].T
    return out


def _deviation(found: Measurement) -> float:
    return float(found.sd) / found.per


def measure_important(
    tables: Tables, maps: list[Integers], important: Important, domain: Domain, told: Setting
) -> Asking[Measurement]:
    """The important pair tables of merged categories, noisy and centred; spends the charge "important"."""
    live, sizes = important.live(domain.sizes), domain.sizes
    exact, query = tables.pairs(maps), Query(live, tables.factors(maps), "centred")
    scales = [1] * len(live)
    if not told.pure:
        exact = exact.map(centred_counts, domain)
        scales = [sizes[a] * sizes[b] for a, b in live]  # centred tables are whole multiples of its inverse
    parts = [
        Part(query, exact.map(entries, domain.block(a), domain.block(b)), (sizes[a], sizes[b]), Fraction(1, scale**2))
        for (a, b), scale in zip(live, scales, strict=True)
    ]
    measured = yield [Ask("important", parts, important.moves(sizes))]
    out = np.zeros((domain.total, domain.total))
    for (a, b), scale, found in zip(live, scales, measured, strict=True):
        one, two = domain.block(a), domain.block(b)
        out[one, two] = found.values / scale
        out[two, one] = out[one, two].T
    centred = domain.off_blocks(domain.centre(out))
    values = np.concatenate([centred[domain.block(a), domain.block(b)].ravel() for a, b in live])
    return replace(measured[-1], values=values, sd=measured[-1].sd / scales[-1])
