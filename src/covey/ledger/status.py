"""What a dataset has spent of its cap, in one of two ways of counting, and what it still accepts.

Each way is a valid privacy filter: whoever chooses kind and amount of every release in view of all earlier answers learns no more
than the cap allows. That is proved in docs/proofs/filter.md, and so is that no dataset may use both ways at once.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, floor
from numbers import Rational
from typing import Any, Literal

from covey.engine.fractions import exact
from covey.engine.gaussian import delta_above, epsilon_above, pure_within, rho_of_pure, rho_within
from covey.engine.unit import ADD_REMOVE, ALL_ROWS, REPLACE, Neighbours, Unit, adds_up, unit_words
from covey.errors import ArgumentError, LedgerError, ParameterError, briefly

NANO = 10**9  # ε is kept in billionths: finer than anyone declares one, and a sum of integers has no rounding
QUECTO = 10**30  # ρ = μ²/2 of Gaussian releases, which is as small as ε² may be
ATTO = 10**18  # δ in units of 1e-18: usual ones, 1e-6 to 1e-12, keep six digits or more
# Against slips of the keyboard; in nano-ε it is an integer of 64 bits, for whatever program reads the JSON one day. One
# release may cost far less (budget.MAX_EPSILON): a cap is about all of them together.
LARGEST_AMOUNT = 10**9
MAX_TEXT = 200  # characters of a name: it must fit a line of a message or a table
# Categories of characters that nobody sees, and the letters and marks that Unicode itself counts as ignorable or blank.
UNSEEN = ("Cc", "Cf", "Cn", "Co", "Cs", "Zl", "Zp")
INVISIBLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
LARGEST_DELTA = Fraction(1, 2)  # what a cap's δ beyond this would add in μ is not computed
Composition = Literal["sum", "gaussian"]


@dataclass(frozen=True)
class Amount:
    """ε in whole nano-ε and δ in whole atto-δ (1e-18): integers add up without error."""

    nano_epsilon: int = 0
    atto_delta: int = 0

    @classmethod
    def rounded_up(cls, epsilon: Fraction, delta: Fraction) -> Amount:
        """The least amount that covers a charge."""
        return cls(ceil(epsilon * NANO), ceil(delta * ATTO))

    @classmethod
    def rounded_down(cls, epsilon: Fraction, delta: Fraction) -> Amount:
        """The largest amount that a cap covers."""
        return cls(floor(epsilon * NANO), floor(delta * ATTO))

    @property
    def epsilon(self) -> Fraction:
        """ε as a fraction."""
        return Fraction(self.nano_epsilon, NANO)

    @property
    def delta(self) -> Fraction:
        """δ as a fraction."""
        return Fraction(self.atto_delta, ATTO)

    def within(self, other: Amount) -> bool:
        """Whether neither ε nor δ exceeds the other's."""
        return self.nano_epsilon <= other.nano_epsilon and self.atto_delta <= other.atto_delta

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano_epsilon + other.nano_epsilon, self.atto_delta + other.atto_delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano_epsilon - other.nano_epsilon, self.atto_delta - other.atto_delta)

    def __str__(self) -> str:
        return f"ε = {_decimal(self.nano_epsilon, 9)}, δ = {_decimal(self.atto_delta, 18)}"


def check_rho(rho: Any, delta: Any) -> int | None:
    """ρ in whole quecto-ρ, rounded up; None for a charge that is not Gaussian."""
    if rho is None:
        return None
    number = isinstance(rho, Rational) and not isinstance(rho, bool)
    if not number or not 0 < exact(rho, "rho") <= LARGEST_AMOUNT:
        raise ParameterError(
            f"rho must be a positive Fraction of at most {LARGEST_AMOUNT}, or None, got {briefly(rho)}."
        )
    if not delta:
        raise ParameterError(
            "rho belongs to Gaussian noise, which has a positive delta: leave rho out of a pure charge."
        )
    return ceil(exact(rho, "rho") * QUECTO)


def dataset_name(value: Any, name: str = "name") -> str:
    """The name under which a dataset is kept: names that look alike are one dataset, which has one cap.

    Letters with marks are composed, and blanks of every kind are one space; characters that nobody sees are refused.
    """
    check_text(value, name)
    kept = " ".join(unicodedata.normalize("NFC", value).split())
    check_text(kept, name)
    hidden = [letter for letter in kept if unicodedata.category(letter) in UNSEEN or INVISIBLE.match(letter)]
    if hidden:
        raise ParameterError(f"{name} must not contain characters that nobody sees, got {hidden[0]!a} in it.")
    return kept


def check_text(value: Any, name: str) -> None:
    """Names end up in messages, tables and shell commands, so nothing in them may break a line or a terminal."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise ParameterError(f"{name} must be a text of 1 to {MAX_TEXT} characters, got {briefly(value)}.")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in value):
        raise ParameterError(f"{name} must not contain control characters or line breaks, got {value!r}.")


def check_costs(
    epsilon: Any, delta: Any, epsilon_name: str = "epsilon", delta_name: str = "delta"
) -> tuple[Fraction, Fraction]:
    """ε and δ as fractions, or a refusal that names the argument."""
    for value, name in ((epsilon, epsilon_name), (delta, delta_name)):
        # A float is refused: 0.1 is a little more than a tenth, and rounding up would charge for it.
        if isinstance(value, bool) or not isinstance(value, Rational):
            raise ParameterError(
                f"{name} must be a Fraction, got {briefly(value)}. Write Fraction('0.1') for one tenth."
            )
    epsilon, delta = exact(epsilon, epsilon_name), exact(delta, delta_name)
    if not 0 < epsilon <= LARGEST_AMOUNT:
        raise ArgumentError(
            "", epsilon_name, f" must be positive and at most {LARGEST_AMOUNT}, got {briefly(epsilon)}."
        )
    if not 0 <= delta < 1:
        raise ArgumentError("", delta_name, f" must be 0 (pure privacy) or positive and below 1, got {briefly(delta)}.")
    return epsilon, delta


def _decimal(units: int, places: int) -> str:
    """Exact: 1500000000 nano is 1.5; what begins past the fourth place is written with an exponent."""
    value = Decimal(units).scaleb(-places).normalize()
    return f"{value:e}" if value and value.adjusted() < -4 else f"{value:f}"


@dataclass(frozen=True)
class DatasetStatus:
    """A dataset's cap, how its charges are counted, and what they come to.

    With composition "sum" ε and δ of all charges add up. With "gaussian" their ρ = μ²/2 add up, up to the ρ of the cap: a pure
    charge counts as the μ of its ε, and pure charges alone may add up their ε instead. None: the first charge decides, Gaussian
    noise for "gaussian", any other for "sum". It is made before anything was answered, so no answer has a say in it.
    All is spent by up to `rows_per_person` rows, or by a person with "all" of theirs, as the first charge has it. The cap is
    about `neighbours` of one kind, fixed at opening: replaced units, or units added and removed.
    """

    name: str
    budget: Amount
    composition: Composition | None = None
    charges: int = 0
    summed: Amount = Amount()
    quecto_rho: int = 0
    rows_per_person: Unit | None = None
    neighbours: Neighbours = REPLACE

    @property
    def protects(self) -> str:
        """Whom the cap is about, in words."""
        return unit_words(self.rows_per_person)

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
    ) -> DatasetStatus:
        """The status that a charge would leave, or a LedgerError with the arithmetic and the way out."""
        asked, quecto_rho = Amount.rounded_up(epsilon, delta), check_rho(rho, delta)
        charged = self.with_charge(asked, rows_per_person, quecto_rho, neighbours)
        if charged is None:
            raise LedgerError(self._refusal(asked, rows_per_person, quecto_rho, neighbours))
        return charged

    def with_charge(
        self, asked: Amount, rows_per_person: Unit, quecto_rho: int | None, neighbours: Neighbours = REPLACE
    ) -> DatasetStatus | None:
        """The status after one more charge; None where it is refused."""
        if self.neighbours == ADD_REMOVE and neighbours == REPLACE:
            return None  # its n is published, which such a cap does not allow
        if self.neighbours != neighbours:
            asked, quecto_rho = replacing(asked, quecto_rho)
        counted = counted_rho(asked, quecto_rho)
        way: Composition = self.composition or ("sum" if quecto_rho is None else "gaussian")
        if not adds_up(rows_per_person, self.rows_per_person) or (way == "gaussian" and counted is None):
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

    def _refusal(self, asked: Amount, rows_per_person: Unit, quecto_rho: int | None, neighbours: Neighbours) -> str:
        """Why a charge is refused."""
        if self.neighbours == ADD_REMOVE and neighbours == REPLACE:
            return (
                f"The budget of {self.name!r} is kept for rows added or removed, whose number is secret, and this release would "
                f"publish that number. Nothing was charged; release with neighbours = {ADD_REMOVE}."
            )
        if self.neighbours != neighbours:
            plain, (asked, quecto_rho) = asked, replacing(asked, quecto_rho)
            rest = self._refusal(asked, rows_per_person, quecto_rho, self.neighbours)
            return f"For replaced rows {plain} counts as {asked}: a replacement is a removal and an addition. {rest}"
        if not adds_up(rows_per_person, self.rows_per_person):
            return self._refusal_of_unit(rows_per_person)
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
        cap, spent, asks = (f"μ² = {2 * x / QUECTO:.6g}" for x in (gaussian_cap(self.budget), self.quecto_rho, counted))
        kind = "" if asked.atto_delta else f", as every pure ε = {float(asked.epsilon):g} does"
        # What is accepted now: with this δ or else the cap's, and pure.
        delta = asked.delta or self.budget.delta
        pure = Amount.rounded_down(self.left(Fraction(0)), Fraction(0))
        return (
            f"The budget of {self.name!r} does not cover this. It is counted by μ². Budget: {self.budget}, which is {cap}. "
            f"Spent: {spent}. Asked: {asked}, which counts as {asks}{kind}. Nothing was charged; ask for at most "
            f"{Amount.rounded_down(self.left(delta), delta)}, or at most {pure} instead."
        )

    def _refusal_of_unit(self, asked: Unit) -> str:
        """Why a release about other units is refused."""
        kept = self.rows_per_person
        begin = (
            f"The budget of {self.name!r} is kept for {unit_words(kept)}, and this release protects {unit_words(asked)}: the two "
            "do not add up"
        )
        if kept == ALL_ROWS:
            return f"{begin}. Nothing was charged; name the column of persons (person)."
        if asked == ALL_ROWS:
            return (
                f"{begin}, since tables that differ in one row can differ in two persons. Nothing was charged. Release without a "
                f"column of persons, with rows_per_person = {kept} or more, or name it from the first release of a dataset on."
            )
        return f"{begin}. Nothing was charged; release with rows_per_person = {kept} or more."


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
