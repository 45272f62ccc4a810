"""Every choice of `regain` for real records in a body, fixed by public numbers before any record is read."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt, sqrt

import numpy as np

from covey.core.noise.integers import CLAMP
from covey.core.numbers.grid import BRANCHING, NumberGrid
from covey.core.tables.reals import UNIT
from covey.errors import ParameterError
from covey.privacy.budget import Budget

# Shares of the budget, tuned on the tables of benchmarks/bodies.py.
MARGINS = Fraction(35, 100)
RADIUS = Fraction(5, 100)
CONSTANT = Fraction(1, 3)  # squared constant coordinate of the matrix mechanism over the squared radius, as for bits
MEAN_WEIGHT = Fraction(22, 100)  # of the means in a joint Gaussian, over the squared radius, as for bits
# Deviations of the noise on a count of a margin that is counted once, over n: beyond the first a margin tells less than a normal
# law does, below the second and the third a finer grid is worth its further rounds.
COARSE = 0.02
MEDIUM = 0.012
FINE = 0.002
MORE_MARGINS = Fraction(55, 100)  # for margins, where pairs are clear enough with what is then left of the budget
CLEAR_PAIRS = 0.03  # deviation of the noise on a correlation, times √p, up to which that is so
PAIRS = 0.15  # deviation of the noise on a correlation, times √p, beyond which pairs are noise
RADII = 12  # bins of the histogram of lengths
# Squared radii per column, in spreads, that may be chosen: nothing is worth cutting beyond.
SHORTEST = 1.5
LONGEST = 8.0
MIDDLE = 1.5  # squared radius per column, in spreads, at which noise is predicted: a typical choice
POINTS = 4096  # of K, equally weighted: rows are drawn from these


@dataclass(frozen=True)
class RealPlan:
    """Public choices: functions of n, p and the budget alone.

    Args:
        mechanism: "full" (margins, then moments in their scale), "box" (moments in the box's own scale), "margins" or "means".
        shares: of the budget, by purpose.
        rounds: how often a margin is counted: a tree of so many levels.
    """

    mechanism: str
    shares: dict[str, Fraction]
    rounds: int = 0

    @property
    def grid(self) -> NumberGrid:
        """Codes of a margin: the first and the last are the bounds themselves, which many records may share."""
        size = BRANCHING**self.rounds
        return NumberGrid(size, atoms=(0, size - 1))


def plan_reals(n: int, p: int, budget: Budget) -> RealPlan:
    """Which measurements, and how the budget is shared among them.

    Pairs are measured where their noise leaves something of them, in the scale of private margins where these are clear enough to
    give one. Means and margins alone are left where pairs would be noise.
    """
    require_exact_reals(n, p)
    rest = 1 - MARGINS - RADIUS
    rounds = margin_rounds(n, p, budget.part(MARGINS))
    if p < 2:
        rounds = margin_rounds(n, p, budget.part(Fraction(1, 2)))
        if rounds:
            return RealPlan("full", {"margins": Fraction(1, 2), "moments": Fraction(1, 2)}, rounds)
        return RealPlan("box", {"moments": Fraction(1)})
    if sqrt(p) * pair_noise(n, p, MIDDLE * p, budget.part(1 - MORE_MARGINS - RADIUS)) <= CLEAR_PAIRS:
        rounds = margin_rounds(n, p, budget.part(MORE_MARGINS))
        if rounds:
            shares = {"margins": MORE_MARGINS, "radius": RADIUS, "moments": 1 - MORE_MARGINS - RADIUS}
            return RealPlan("full", shares, rounds)
    if rounds and sqrt(p) * pair_noise(n, p, MIDDLE * p, budget.part(rest)) <= PAIRS:
        return RealPlan("full", {"margins": MARGINS, "radius": RADIUS, "moments": rest}, rounds)
    if sqrt(p) * pair_noise(n, p, float(p), budget) <= PAIRS:
        return RealPlan("box", {"moments": Fraction(1)})
    rounds = margin_rounds(n, p, budget)
    if rounds:
        return RealPlan("margins", {"margins": Fraction(1)}, rounds)
    return RealPlan("means", {"means": Fraction(1)})


def margin_rounds(n: int, p: int, budget: Budget) -> int:
    """How many levels the trees of p margins have; 0 where their counts would be noise."""
    noise = count_noise(p, budget) / n
    if noise > COARSE:
        return 0
    return 3 if noise <= FINE else 2 if noise <= MEDIUM else 1


def count_noise(rounds: int, budget: Budget) -> float:
    """Deviation of the noise on a count, if so many rounds share a charge."""
    return budget.part(Fraction(1, rounds)).deviation(2, 2)


def pair_noise(n: int, p: int, radius_squared: float, budget: Budget) -> float:
    """Deviation of the noise on a mean product of rows with that squared radius."""
    if budget.pure:
        return float(budget.laplace_scale(1)) * 2 * (1 + float(CONSTANT)) * radius_squared * sqrt((p + 2) / 2) / n
    return sqrt(budget.variance(1)) * (1 + float(MEAN_WEIGHT)) * radius_squared / n


def radii(p: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """Squared radii to choose from, in squared spreads."""
    return np.asarray(np.geomspace(SHORTEST, LONGEST, RADII) * p)


def constant_coordinate(radius_squared: int) -> int:
    """a ≈ √(R²/3), in the integer steps of rows."""
    return max(1, isqrt(int(CONSTANT * radius_squared)))


def require_exact_reals(n: int, p: int) -> None:
    """Refuse, on public sizes alone, a table whose sums could outgrow the integers that hold them."""
    longest = int(LONGEST * p) * UNIT**2
    if 2 * n * longest >= CLAMP or n >= 1 << 32 or isqrt(longest) >= 1 << 20:
        raise ParameterError(f"a table of {n} rows and {p} numeric columns is too large: its sums would pass 2^61.")
