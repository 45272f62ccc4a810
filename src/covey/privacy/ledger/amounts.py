"""ε and δ as the ledger counts them, and what it accepts as an amount or a name."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor
from numbers import Rational
from typing import Any

from covey.errors import ParameterError

NANO = 10**9  # ε is kept in billionths: finer than anyone declares one, and a sum of integers has no rounding
QUECTO = 10**30  # ρ = μ²/2 of Gaussian releases, which is as small as ε² may be
ATTO = 10**18  # δ in units of 1e-18: usual ones, 1e-6 to 1e-12, keep six digits or more
# Against slips of the keyboard; in nano-ε it is an integer of 64 bits, for whatever program reads the JSON one day. One
# release may cost far less (budget.MAX_EPSILON): a cap is about all of them together.
LARGEST_AMOUNT = 10**9
MAX_TEXT = 200  # characters of a name: it must fit a line of a message or a table


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
    if not number or not 0 < Fraction(rho) <= LARGEST_AMOUNT:
        raise ParameterError(f"rho must be a positive Fraction of at most {LARGEST_AMOUNT}, or None, got {rho!r}.")
    if not delta:
        raise ParameterError(
            "rho belongs to Gaussian noise, which has a positive delta: leave rho out of a pure charge."
        )
    return ceil(Fraction(rho) * QUECTO)


def check_text(value: Any, name: str) -> None:
    """Names end up in messages, tables and shell commands, so nothing in them may break a line or a terminal."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise ParameterError(f"{name} must be a text of 1 to {MAX_TEXT} characters, got {value!r}.")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in value):
        raise ParameterError(f"{name} must not contain control characters or line breaks, got {value!r}.")


def check_costs(
    epsilon: Any, delta: Any, epsilon_name: str = "epsilon", delta_name: str = "delta"
) -> tuple[Fraction, Fraction]:
    """ε and δ as fractions, or a refusal that names the argument."""
    for value, name in ((epsilon, epsilon_name), (delta, delta_name)):
        # A float is refused: 0.1 is a little more than a tenth, and rounding up would charge for it.
        if isinstance(value, bool) or not isinstance(value, Rational):
            raise ParameterError(f"{name} must be a Fraction, got {value!r}. Write Fraction('0.1') for one tenth.")
    if not 0 < epsilon <= LARGEST_AMOUNT:
        raise ParameterError(f"{epsilon_name} must be positive and at most {LARGEST_AMOUNT}, got {spelled(epsilon)}.")
    if not 0 <= delta < 1:
        raise ParameterError(f"{delta_name} must be 0 (pure privacy) or positive and below 1, got {spelled(delta)}.")
    return Fraction(epsilon), Fraction(delta)


def spelled(value: Rational) -> str:
    """A number for a message."""
    try:
        return str(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return "a number of thousands of digits"


def _decimal(units: int, places: int) -> str:
    """Exact: 1500000000 nano is 1.5; what begins past the fourth place is written with an exponent."""
    digits = str(units).rstrip("0")
    if not digits:
        return "0"
    exponent = len(str(units)) - 1 - places
    if exponent < -4:
        return f"{digits[0]}.{digits[1:]}".rstrip(".") + f"e{exponent}"
    whole, rest = divmod(units, 10**places)
    return f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".")
