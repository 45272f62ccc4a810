"""What a dataset has spent of its cap, in one of two ways of counting, and what it still accepts.

Each way is a valid privacy filter: whoever chooses kind and amount of every release in view of all earlier answers learns no more
than the cap allows. That is proved in docs/proofs/filter.md, and so is that no dataset may use both ways at once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor
from typing import Literal

from covey.privacy.gaussian import delta_above, epsilon_above, pure_within, rho_of_pure, rho_within
from covey.privacy.ledger.amounts import ATTO, NANO, QUECTO, Amount, check_rho
from covey.privacy.unit import ADD_REMOVE, ALL_ROWS, REPLACE, Neighbours, Unit

NOTHING = Amount()
Composition = Literal["sum", "gaussian"]
LARGEST_DELTA = Fraction(1, 2)  # what a cap's δ beyond this would add in μ is not computed


@dataclass(frozen=True)
class DatasetStatus:
    """A dataset's cap, how its charges are counted, and what they come to.

    With composition "sum" ε and δ of all charges add up. With "gaussian" their ρ = μ²/2 add up, up to the ρ of the cap: a pure
    charge counts as the μ of its ε, and pure charges alone may add up their ε instead. None: the first charge decides, Gaussian
    noise for "gaussian", any other for "sum". It is made before anything was answered, so no answer has a say in it.
    All is spent by a person with up to `rows_per_person` rows, or "all" of them, as the first charge has it. The cap is about
    `neighbours` of one kind, fixed at opening: replaced units, or units added and removed.
    """

    name: str
    budget: Amount
    composition: Composition | None = None
    charges: int = 0
    summed: Amount = NOTHING
    quecto_rho: int = 0
    rows_per_person: Unit | None = None
    neighbours: Neighbours = REPLACE

    @property
    def within_cap(self) -> bool:
        """Whether all charges together keep the cap. They did before if they do now: nothing that is spent ever shrinks."""
        if self.composition != "gaussian":
            return self.summed.within(self.budget)
        return self._adds_up or self.quecto_rho <= gaussian_cap(self.budget)

    @property
    def _adds_up(self) -> bool:
        """Whether all charges were pure, and their ε add up to no more than the cap's."""
        return self.summed.atto_delta == 0 and self.summed.within(self.budget)

    @property
    def used(self) -> Fraction:
        """Which share of the cap is spent: of its ε, or of its μ²."""
        shares = [Fraction(self.summed.nano_epsilon, self.budget.nano_epsilon)]
        if self.composition == "gaussian":
            shares = shares * self._adds_up + [Fraction(self.quecto_rho, gaussian_cap(self.budget))]
        return min(shares)

    @property
    def spent(self) -> Amount:
        """An ε and a δ, within the cap, that hold for all charges together."""
        if self.composition != "gaussian" or self._adds_up:
            return self.summed
        delta = self.budget.delta
        least = Fraction(1, NANO)  # a charge is never shown as nothing
        return Amount.rounded_up(max(least, epsilon_above(Fraction(self.quecto_rho, QUECTO), delta)), delta)

    @property
    def remaining(self) -> Amount:
        """The largest ε that is still accepted with the δ beside it; by μ² that is the cap's δ and Gaussian noise."""
        if self.composition != "gaussian":
            return self.budget - self.summed
        return Amount.rounded_down(self.left(self.budget.delta), self.budget.delta)

    def left(self, delta: Fraction) -> Fraction:
        """The largest ε, in whole nano-ε, with which one more release is accepted: pure, or with this δ and Gaussian noise."""
        if self.composition is None and delta:
            return replace(self, composition="gaussian").left(delta)
        if self.composition != "gaussian":
            room = self.budget - self.summed
            return room.epsilon if ceil(delta * ATTO) <= room.atto_delta else Fraction(0)
        room_rho = Fraction(max(0, gaussian_cap(self.budget) - self.quecto_rho), QUECTO)
        if not delta:
            summed = (self.budget - self.summed).epsilon if self._adds_up else Fraction(0)
            return max(summed, pure_within(room_rho))
        if not room_rho:
            return Fraction(0)
        delta = min(delta, LARGEST_DELTA)
        steps = int(epsilon_above(room_rho, delta) * NANO)
        while steps and ceil(rho_within(Fraction(steps, NANO), delta) * QUECTO) > room_rho * QUECTO:
            steps -= 1
        return Fraction(steps, NANO)

    def after(
        self,
        epsilon: Fraction,
        delta: Fraction,
        rows_per_person: Unit,
        rho: Fraction | None,
        neighbours: Neighbours = REPLACE,
    ) -> DatasetStatus | None:
        """The status that a charge would leave; None where the ledger would refuse it."""
        return self.with_charge(Amount.rounded_up(epsilon, delta), rows_per_person, check_rho(rho, delta), neighbours)

    def with_charge(
        self, asked: Amount, rows_per_person: Unit, quecto_rho: int | None, neighbours: Neighbours = REPLACE
    ) -> DatasetStatus | None:
        """The status after one more charge; None where it is refused."""
        if (
            self.neighbours == ADD_REMOVE and neighbours == REPLACE
        ):  # its n is published, which such a cap does not allow
            return None
        if self.neighbours != neighbours:
            asked, quecto_rho = replacing(asked, quecto_rho)
        counted = counted_rho(asked, quecto_rho)
        way: Composition = self.composition or ("sum" if quecto_rho is None else "gaussian")
        if not covers(rows_per_person, self.rows_per_person or 1) or (way == "gaussian" and counted is None):
            return None
        charged = replace(
            self,
            composition=way,
            charges=self.charges + 1,
            summed=self.summed + asked,
            quecto_rho=self.quecto_rho + (counted or 0 if way == "gaussian" else 0),
            rows_per_person=self.rows_per_person or rows_per_person,
        )
        return charged if charged.within_cap else None

    def refusal(
        self,
        epsilon: Fraction,
        delta: Fraction,
        rows_per_person: Unit,
        rho: Fraction | None,
        neighbours: Neighbours = REPLACE,
    ) -> str | None:
        """Why a charge is refused: the arithmetic, and the way out. None where it is accepted."""
        asked, quecto_rho = Amount.rounded_up(epsilon, delta), check_rho(rho, delta)
        if self.with_charge(asked, rows_per_person, quecto_rho, neighbours) is not None:
            return None
        if self.neighbours == ADD_REMOVE and neighbours == REPLACE:
            return (
                f"The budget of {self.name!r} is kept for rows added or removed, whose number is secret, and this release would "
                f"publish that number. Nothing was charged; release with neighbours = {ADD_REMOVE}."
            )
        if self.neighbours != neighbours:
            plain, (asked, quecto_rho) = asked, replacing(asked, quecto_rho)
            rest = replace(self, neighbours=REPLACE).refusal(asked.epsilon, asked.delta, rows_per_person, None)
            told = rest or f"The budget of {self.name!r} does not cover this, counted by μ², which doubles."
            return f"For replaced rows {plain} counts as {asked}: a replacement is a removal and an addition. {told}"
        kept = self.rows_per_person or 1
        if not covers(rows_per_person, kept):
            persons = "all their rows" if kept == ALL_ROWS else f"up to {kept} rows"
            way_out = (
                "name the column of persons (person)."
                if kept == ALL_ROWS
                else f"release with rows_per_person = {kept} or more."
            )
            return (
                f"The budget of {self.name!r} is kept for persons with {persons}, and this release protects {rows_per_person}: "
                f"the two do not add up. Nothing was charged; {way_out}"
            )
        if (self.composition or ("sum" if quecto_rho is None else "gaussian")) == "sum":
            return (
                f"The budget of {self.name!r} does not cover this. ε and δ add up. Budget: {self.budget}. Spent: {self.spent}. "
                f"Remaining: {self.remaining}. Asked: {asked}. Nothing was charged. Ask for no more than remains."
            )
        counted = counted_rho(asked, quecto_rho)
        if counted is None:
            return (
                f"The budget of {self.name!r} is counted by μ², and this release has none: {asked} with learned categories, or "
                "with noise that is not covey's own. Nothing was charged; declare the categories and use covey's noise, or "
                "release with δ = 0."
            )
        cap = gaussian_cap(self.budget)
        kind = "" if asked.atto_delta else f", as every pure ε = {float(asked.epsilon):g} does"
        return (
            f"The budget of {self.name!r} does not cover this. It is counted by μ². Budget: {self.budget}, which is μ² = "
            f"{_mu2(cap)}. Spent: μ² = {_mu2(self.quecto_rho)}. Asked: {asked}, which counts as μ² = {_mu2(counted)}{kind}. "
            f"Nothing was charged; {self.offer(asked.delta)}."
        )

    def offer(self, delta: Fraction = Fraction(0)) -> str:
        """What is accepted now, in words: with this δ or else the cap's, and pure."""
        delta = delta or self.budget.delta
        largest, pure = (Amount.rounded_down(self.left(d), d) for d in (delta, Fraction(0)))
        return f"ask for at most {largest}, or at most ε = {_short(pure.epsilon)} with δ = 0"


@lru_cache(maxsize=1024)
def gaussian_cap(budget: Amount) -> int:
    """The largest ρ = μ²/2, in quecto-ρ and up to rounding down, for which μ-GDP proves the cap."""
    if not budget.atto_delta:
        return 0
    delta = min(budget.delta, LARGEST_DELTA)
    rho = rho_within(budget.epsilon, delta) * QUECTO
    # One release of exactly the cap is rounded up like every other: it fits where its last digit does no harm.
    return ceil(rho) if delta_above(Fraction(ceil(rho), QUECTO), budget.epsilon) <= delta else floor(rho)


def counted_rho(asked: Amount, quecto_rho: int | None) -> int | None:
    """What a charge counts as by μ²; None where it has a δ and is not Gaussian."""
    if quecto_rho is not None:
        return quecto_rho
    return None if asked.atto_delta else ceil(rho_of_pure(asked.epsilon) * QUECTO)


def replacing(asked: Amount, quecto_rho: int | None) -> tuple[Amount, int | None]:
    """What a release for rows added or removed costs where rows are replaced: one removal and one addition.

    (ε, δ) twice is (2ε, (1 + e^ε)δ), and μ of Gaussian differential privacy doubles (docs/proofs/neighbours.md).
    """
    # e^ε is rounded up generously: δ is counted in whole atto-δ anyway.
    growth = Fraction(exp(min(float(asked.epsilon), 700.0))) * (1 + Fraction(1, 10**9)) + 1
    both = Amount(2 * asked.nano_epsilon, min(ATTO, ceil(asked.atto_delta * growth)))
    return both, None if quecto_rho is None else 4 * quecto_rho


def covers(rows: Unit, needed: Unit) -> bool:
    """Whether a promise to persons with so many rows holds for persons with as many as needed."""
    return rows == ALL_ROWS or (isinstance(needed, int) and isinstance(rows, int) and rows >= needed)


def _mu2(quecto_rho: int) -> str:
    return f"{2 * quecto_rho / QUECTO:.6g}"


def _short(epsilon: Fraction) -> str:
    return str(Amount.rounded_down(epsilon, Fraction(0))).partition(",")[0].removeprefix("ε = ")
