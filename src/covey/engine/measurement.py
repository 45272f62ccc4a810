"""A measurement: a query, its noisy values, and the law of the noise. What the gate gave back, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from covey.engine.arrays import Array, Floats
from covey.engine.codes.domain import Domain
from covey.engine.noise.law import UNMEASURED, MatrixLaplace, NoiseLaw
from covey.engine.noise.matrix import pair_deviation, simulated_matrix
from covey.engine.noise.pairlaw import PairLaw
from covey.engine.query import OWN, Columns, Every, Query

NORMAL = 100  # columns; entries of matrix noise are sums of more products beyond, and as good as normal


@dataclass(frozen=True, eq=False)
class Measurement:
    """Noisy tables."""

    query: Query
    values: Array  # the tables one after the other, or all pairs as one symmetric matrix of blocks; none if too many
    # The noise's deviation, one number or one for each value; of centred tables, and of tables under K-norm noise, whose sums
    # have none, in every coordinate of their space.
    sd: float | Floats
    law: NoiseLaw  # of the noise, as the gate drew it
    per: float = 1  # values divided by it are shares of units
    purpose: str = ""  # the charge that paid for it, which may have paid for others

    @property
    def kept(self) -> bool:
        """Whether there are values."""
        return self.law is not UNMEASURED and self.values.size > 0

    def counts(self, columns: Columns) -> Floats:
        """One table as it was measured; of two events in no order with zeros below the diagonal."""
        if self.values.ndim == 2:
            one, two = (slice(*self.query.blocks[a : a + 2]) for a in columns)
            return np.asarray(self.values[one, two], dtype=np.float64)
        found = self.values[self._at(columns)].reshape(self.query.shape(columns)).astype(np.float64)
        if self.query.folded(columns):
            size = self.query.factors[columns[0]].size
            upper, found = found, np.zeros((size, size))
            found[np.triu_indices(size)] = upper
        return found

    def table(self, columns: Columns) -> Floats:
        """One table, as shares of units; that of a product is written out."""
        found = self.counts(columns) / self.per
        if self.query.view == "product":
            for axis in range(len(columns)):
                found = np.concatenate([-found, found], axis=axis)
        return found

    def sds(self, columns: Columns) -> Floats:
        """The deviation of the noise on a table, or in each coordinate of it, as shares."""
        own = np.asarray(self.sd, dtype=np.float64)
        if own.ndim:
            own = own[self._at(columns)].reshape(self.query.shape(columns))
        # A centred table of d flags has one coordinate: its 2^d entries are one number and its negatives.
        spread = 2 ** (len(columns) / 2) if self.query.view == "product" and len(columns) > 1 else 1.0
        return np.asarray(spread * own / self.per)

    def _at(self, columns: Columns) -> slice:
        k = self.query.sets.index(columns)
        return slice(int(self.query.starts[k]), int(self.query.starts[k + 1]))

    @property
    def tails(self) -> float:
        """Excess kurtosis."""
        return self.law.tails

    def simulate(self, count: int, public: np.random.Generator) -> Floats:
        """Noise of the same law on all pairs of the first so many columns, as shares: a symmetric matrix of blocks."""
        p, sd = len(self.query.factors), float(self.sd) / self.per
        if self.query.view == "product":
            if isinstance(self.law, MatrixLaplace) and p <= NORMAL:
                noise = simulated_matrix(1 / pair_deviation(p), p + 1, public, signs=True)
                return np.asarray(sd * noise[:count, :count])
            return np.asarray(sd * public.standard_normal((count, count)))
        sizes = tuple(self.query.factors[a].size for a in range(count))
        law = PairLaw(self.law, Domain(sizes, (False,) * count), Fraction(1))
        return law.simulate(public) * (sd / law.sd)


def joined(parts: Sequence[Measurement]) -> Measurement:
    """Measurements of the same kind, one after the other, as one."""
    sets = [s for m in parts for s in m.query.sets]
    whole = Every(len(sets), 1)
    factors = {a: factor for m in parts for a, factor in m.query.factors.items()}
    query = replace(parts[0].query, sets=whole if sets == list(whole) else sets, factors=factors)
    sds = np.concatenate([np.broadcast_to(m.sd, m.values.shape) for m in parts])
    values = np.concatenate([np.asarray(m.values, dtype=np.float64) for m in parts])
    return replace(parts[0], query=query, values=values, sd=sds)


def joined_by_law(parts: Sequence[Measurement]) -> list[Measurement]:
    """As `joined`, those of each law by themselves."""
    return [joined([m for m in parts if m.law == law]) for law in dict.fromkeys(m.law for m in parts)]


@dataclass(frozen=True, eq=False)
class Measurements:
    """All that a release measured of n units."""

    n: int
    found: tuple[Measurement, ...]

    @cached_property
    def width(self) -> int:
        """How many columns there are, those that were derived from a unit included."""
        return 1 + max(a for m in self.found for a in m.query.factors)

    @cached_property
    def of_units(self) -> tuple[Measurement, ...]:
        """Those whose cells are shares of units: answers rest on them."""
        return tuple(m for m in self.found if m.query.of != OWN)

    def holding(self, columns: Columns) -> list[Measurement]:
        """Tables of units of these columns together, in the order in which they were measured."""
        return [m for m in self.of_units if m.kept and columns in m.query.sets]

    def pairs(self) -> Measurement | None:
        """The first of two columns, which may have no values: then it says which bins pairs would have had."""
        return next((m for m in self.of_units if m.query.degree == 2), None)

    def chosen(self, degree: int) -> list[Columns]:
        """Sets of so many columns that were measured because they were named or chosen."""
        listed = [m.query.sets for m in self.of_units if not isinstance(m.query.sets, Every)]
        return [s for sets in listed for s in sets if len(s) == degree]
