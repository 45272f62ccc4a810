"""Every choice of `regain`, fixed by public numbers before any record is read: sizes, declared limits, the budget."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from covey.core.noise.integers import MAX_SCALE
from covey.core.noise.pairlaw import PairLaw
from covey.core.noise.sensitivity import pair_table_sensitivity, simplex_radius_squared
from covey.core.noise.signs import pair_deviation
from covey.core.tables.coding import UNIT, Coding
from covey.core.tables.domain import Domain
from covey.privacy.budget import Budget
from covey.privacy.gate import Moves

CERTIFICATE_SHARE = Fraction(5, 100)  # buys a bound that is three times the noise of a single share at most
# Up to so many columns, products of three and four signs are measured as well (zCDP) if n√(2ρ) is large enough: with fewer rows
# they cost pairs a seventh, and tell more than that only where columns depend on each other as an exclusive or does.
FEW, PARITY_ROWS = 20, 500
CONSTANT = Fraction(
    1, 3
)  # squared constant coordinate of the matrix Laplace mechanism, per column: best over five tables
# Up to so many columns signs get the noise of their own cone. Beyond, it would be less by 1 part in 500 at most, and entries that
# floats leave in doubt, of which wide tables have thousands, would be decided one at a time.
SIGN_COLUMNS = 1000


# Bits.


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
    pure, rows_in_noise = budget.pure, n * np.sqrt(2 * float(budget.per_row))
    clean = not pure and rows_in_noise > 20_000
    # Beyond these pair noises means alone did better, in every table we tried.
    hopeless = p < 2 or expected_pair_noise(n, p, budget) > (0.009 * np.sqrt(p) if pure else 0.5)
    if hopeless or not moments_drawable(p, budget, steps):
        mechanism, shares = "means", {"means": Fraction(1)}
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
    if budget.pure:
        return float(budget.laplace_scale(2 * (1 + CONSTANT) * p) / n) * pair_deviation(p) / 4
    return 1.15 * p / 4 * float(np.sqrt(float(budget.variance(1)))) / n


# Categories: functions of n, the declared sizes and the budget.


def pair_moves(domain: Domain) -> Moves:
    """How far one replaced row moves the pair tables, under each law. Attributes with a single category never move.

    Laplace on one-hot cells: q(q−1)/2 tables by 2 in ℓ1. Gaussian on centred tables: docs/proofs/sensitivity.md. Matrix Laplace
    on Σzzᵀ: 2‖z‖² in nuclear norm.
    """
    live = [c for c in domain.sizes if c > 1]
    q = len(live)
    squared = pair_table_sensitivity(domain.sizes)
    return Moves(l1=q * (q - 1), l2_squared=squared, trace=2 * simplex_radius_squared(live))


def pair_law(domain: Domain, budget: Budget, steps: int = 1) -> PairLaw:
    """The noise law for the pair tables of a domain: a function of public sizes alone.

    Under pure ε Laplace on one-hot cells or matrix Laplace noise, whichever has the smaller standard deviation. Where no law can
    be drawn (ε below a billionth or so; for persons, counted in steps, below a thousandth) pairs are not measured at all: they
    would be noise alone.
    """
    nothing = PairLaw("none", domain, Fraction(0))
    if sum(c > 1 for c in domain.sizes) < 2:
        return nothing
    moves = pair_moves(domain)
    if not budget.pure:
        laws = [PairLaw("gaussian", domain, budget.variance(moves.l2_squared), steps)]
    else:
        laws = [
            PairLaw("laplace", domain, budget.laplace_scale(moves.l1), steps),
            PairLaw("matrix", domain, budget.laplace_scale(moves.trace), steps),
        ]
    return min((law for law in laws if law.drawable), key=lambda law: law.sd, default=nothing)


def coarse(domain: Domain) -> Domain:
    """A public guess at the merged domain."""
    return Domain(tuple(min(c, 12) for c in domain.sizes), domain.ordered)


def signal_to_noise(n: int, domain: Domain, budget: Budget) -> float:
    """n·Δ over the pair noise's standard deviation; under zCDP this is n√(2ρ)."""
    guess = coarse(domain)
    sd = pair_law(guess, budget).sd
    return n * float(pair_table_sensitivity(guess.sizes)) ** 0.5 / sd if sd > 0 else float(n)


def histogram_share(n: int, domain: Domain, budget: Budget) -> float:
    """Share of the budget for one-way tables: more with many categories, less as the budget grows."""
    c = domain.counts.astype(np.float64)
    r = (0.7 * c.mean() / (np.minimum(c, 12) ** 1.5).mean()) ** (2 / 3)
    by_size = r / (1 + r) - 0.2 * np.log10(signal_to_noise(n, domain, budget) / 8450)
    return float(np.clip(by_size, 0.1, 0.8)) if sum(size > 1 for size in domain.sizes) > 1 else 1.0


def bin_mass(n: int, domain: Domain, budget: Budget) -> float:
    """Mass of a merged ordered bin: forty deviations of the pair noise, within reason."""
    return float(np.clip(40 * pair_law(coarse(domain), budget).sd / n, 1 / most_bins(domain), 0.25))


def most_bins(domain: Domain) -> int:
    """Bins per attribute, so that the merged domain stays below about 800."""
    return max(8, 800 // len(domain.sizes))


def fit_steps(n: int, domain: Domain, budget: Budget, merged: int) -> int:
    """Steps of the fit: more where the target is sharper, fewer where a step is dear."""
    steps = np.clip(800 * np.sqrt(signal_to_noise(n, domain, budget) / 8450), 800, 2500)
    return int(max(250, steps * min(1.0, (400 / merged) ** 2)))


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
