"""Every choice of `regain` for bits, fixed by public numbers before any record is read: sizes, declared limits, the budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from covey.core.noise.integers import MAX_SCALE
from covey.core.noise.matrix import pair_deviation
from covey.core.tables.counts import UNIT, Coding
from covey.privacy.budget import Budget

CERTIFICATE_SHARE = Fraction(5, 100)  # buys a bound that is three times the noise of a single share at most
# Up to so many columns, products of three and four signs are measured as well (zCDP) if n√(2ρ) is large enough: with fewer rows
# they cost pairs a seventh, and tell more than that only where columns depend on each other as an exclusive or does.
FEW, PARITY_ROWS = 20, 500
CONSTANT = Fraction(
    1, 3
)  # squared constant coordinate of the matrix Laplace mechanism, per column: best over five tables
# Under pure ε means and pairs share one draw up to this pair noise, per √p. Beyond, means get cube noise for this part of the
# budget and pairs what is left, up to a noise that depends on whether columns are many or few: chosen on nltcs, msnbc, plants.
JOINTLY, ALONE, APART = 0.012, Fraction(7, 10), {False: 0.018, True: 0.03}
# Up to so many columns signs get the noise of their own cone. Beyond, it would be less by 1 part in 500 at most, and entries that
# floats leave in doubt, of which wide tables have thousands, would be decided one at a time.
SIGN_COLUMNS = 1000


def constant_coordinate(p: int) -> Fraction:
    """a ≈ √(p/3) in sixteenths: a rational number, so that R² = p + a² is one too."""
    return Fraction(max(1, round(16 * float(np.sqrt(float(CONSTANT * p))))), 16)


@dataclass(frozen=True)
class Plan:
    """Public choices: functions of n, p, the budget and declared limits alone."""

    mechanism: str  # "means", "matrix" (pure), "parities" (zCDP, few columns) or "ball" (zCDP)
    shares: dict[str, Fraction]
    centres: int
    factors: int
    tail: float
    final_steps: int
    parity_steps: int
    declared: Coding | None


def plan_bits(n: int, p: int, budget: Budget, declared: Coding | None = None, steps: int = 1) -> Plan:
    """Which measurements, and how the budget is shared among them.

    n√(2ρ) counts rows in units of the noise: the cleaner the measurement, the fewer rows are clipped and the longer the fit.
    `steps` is what one of the n weighs in the sums.
    """
    pure, rows_in_noise = budget.pure, n * np.sqrt(2 * float(budget.for_replaced.per_row))
    clean = not pure and rows_in_noise > 20_000
    # Beyond these pair noises means alone did better, in every table we tried.
    noise = expected_pair_noise(n, p, budget)
    hopeless = p < 2 or noise > (APART[p <= FEW] * np.sqrt(p) if pure else 0.5)
    if hopeless or not moments_drawable(p, budget, steps):
        mechanism, shares = "means", {"means": Fraction(1)}
    elif pure and noise > JOINTLY * np.sqrt(p):
        mechanism, shares = "matrix", {"means": ALONE, "moments": 1 - ALONE}
    elif pure:
        mechanism, extra = "matrix", Fraction(5, 100)
        shares = {"moments": 1 - extra, "row sums" if p <= FEW else "scores": extra}
    elif p <= FEW and declared is None and rows_in_noise > PARITY_ROWS:
        mechanism, shares = "parities", {"moments": Fraction(1)}
    else:
        mechanism = "ball"
        extra = Fraction(5, 100) if clean else Fraction(2, 100)
        coding = Fraction(4, 100) if declared is None else Fraction(0)
        shares = {"coding": coding, "moments": 1 - extra - coding, "scores": extra}
        shares = {name: share for name, share in shares.items() if share}
    return Plan(
        mechanism=mechanism,
        shares=shares,
        centres=2 * int(np.clip(60_000 / p, 100, 300)),
        factors=max(1, min(12, p // 2)),
        tail=0.2 if pure else float(min(0.2, 600 / rows_in_noise)),
        final_steps=250 if clean and p < 300 else 150,
        parity_steps=450 if clean else 150,
        declared=declared,
    )


def moments_drawable(p: int, budget: Budget, steps: int) -> bool:
    """Whether the noise on means and pairs, which at least half of the budget pays for, fits its sampler; matrix noise does."""
    if budget.pure:
        return True
    return budget.part(Fraction(1, 2)).variance(p * p) * (steps * UNIT**2) ** 2 <= MAX_SCALE**2 // 4


def expected_pair_noise(n: int, p: int, budget: Budget) -> float:
    """Standard deviation of the noise on a pair share, before anything is measured."""
    budget = budget.for_replaced
    if budget.pure:
        return float(budget.laplace_scale(2 * (1 + CONSTANT) * p) / n) * pair_deviation(p) / 4
    return 1.15 * p / 4 * float(np.sqrt(float(budget.variance(1)))) / n


# Limits.


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
