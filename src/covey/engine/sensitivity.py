"""How far one unit can move a statistic: what its noise rests on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from covey.engine.budget import Budget
from covey.errors import InternalError


@dataclass(frozen=True)
class Sensitivity:
    """How far one replaced row can move a statistic: proved in docs/proofs, from public sizes alone.

    A statistic without `added` is not for the promise where neighbours differ by one row more or less.
    """

    l1: Fraction | int | None = None  # Σ|change|, for Laplace noise
    l2_squared: Fraction | int | None = None  # Σ change², for Gaussian noise; of parts times the roots of their weights
    linf: Fraction | int | None = None  # max |change|, for the cube mechanism
    # How much of any one of several tables moves from some entries to others while its sum stays, for K-norm noise; or how much
    # is added to each of them, the same to all.
    table: Fraction | int | None = None
    trace: Fraction | int | None = None  # the nuclear norm of a symmetric matrix's change, for matrix Laplace noise
    directions: Fraction | int | None = None  # the loss of PROJ on c·Σxxᵀ, in units of c (docs/proofs/projection.md)
    score: Fraction | int | None = None  # the most that any one of several scores moves, for a choice among candidates
    added: Sensitivity | None = None  # the same for one row that is added or removed (docs/proofs/neighbours.md)
    # Whether the statistic is a sum over records: then it is counted in the gate's steps, and the gate scales the bounds.
    summed: bool = True

    @classmethod
    def histograms(cls, count: Fraction | int) -> Sensitivity:
        """Of so many histograms, or tables to which a unit adds at most 1: a replaced row moves two counts, an added one one."""
        return cls(l1=2 * count, l2_squared=2 * count, added=cls(l1=count, l2_squared=count))

    @classmethod
    def together(cls, parts: Sequence[Sensitivity]) -> Sensitivity:
        """Of several sums over records in one draw: at most what a unit moves in each of them, added up."""
        added = [part.added for part in parts if part.added is not None]
        return cls(
            l1=_sum([part.l1 for part in parts]),
            l2_squared=_sum([part.l2_squared for part in parts]),
            added=cls.together(added) if len(added) == len(parts) else None,
        )

    def deviation(self, budget: Budget) -> float:
        """Of the independent noise on an entry that a budget pays for."""
        own = self.under(budget)
        return budget.deviation(own.l1, own.l2_squared)

    def under(self, budget: Budget) -> Sensitivity:
        """How far neighbours of a promise are apart: a row replaced, or one more or less."""
        if not budget.size_is_secret:
            return self
        if self.added is None:
            raise InternalError("how far an added row moves this statistic is not proved: nothing is released.")
        return self.added


def _sum(bounds: Sequence[Fraction | int | None]) -> Fraction | None:
    """Of what was said; None where one was not."""
    said = [bound for bound in bounds if bound is not None]
    return Fraction(sum(said)) if len(said) == len(bounds) else None
