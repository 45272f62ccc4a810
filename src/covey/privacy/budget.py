"""Privacy budgets in exact rational arithmetic: what was promised, and what each step may spend."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from numbers import Real
from typing import Any

from covey.entropy import SEEDED_MARK
from covey.errors import ParameterError

MIN_EPSILON = Fraction(1, 10**12)


def exact(value: Any, name: str) -> Fraction:
    """The number a person wrote, as a fraction: 0.1 is one tenth."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ParameterError(f"{name} must be a number, got {value!r}.")
    try:
        return value if isinstance(value, Fraction) else Fraction(repr(float(value)))
    except ValueError:
        raise ParameterError(f"{name} must be a finite number, got {value!r}.") from None


def check_epsilon(value: Any) -> Fraction:
    """ε as a fraction, or a refusal."""
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise ParameterError(
            f"epsilon must be positive, got {value}. For data without a privacy budget use AnonymousSynthesizer."
        )
    if epsilon < MIN_EPSILON:
        raise ParameterError(f"epsilon must be at least 1e-12, got {value}: below that the answer is noise alone.")
    return epsilon


@dataclass(frozen=True)
class Charge:
    """What one step of a mechanism spends."""

    purpose: str
    epsilon: Fraction


def split(epsilon: Fraction, shares: Mapping[str, Any]) -> dict[str, Charge]:
    """Divide ε into charges; the shares must sum to 1 exactly (floats may miss by rounding alone)."""
    fractions = {purpose: exact(share, f"share of {purpose}") for purpose, share in shares.items()}
    if any(f < 0 for f in fractions.values()) or abs(sum(fractions.values(), Fraction(0)) - 1) > Fraction(1, 10**9):
        raise ParameterError(
            f"the split must be non-negative and sum to 1, got {', '.join(f'{k} = {v}' for k, v in shares.items())}."
        )
    whole = sum(fractions.values(), Fraction(0))
    return {purpose: Charge(purpose, epsilon * f / whole) for purpose, f in fractions.items()}


@dataclass(frozen=True)
class PrivacyStatement:
    """What a release promises, in the words that travel with it."""

    epsilon: Fraction
    charges: tuple[Charge, ...]
    n: int
    mechanism: str
    seeded: bool
    neighbours: str = "replace-one: two tables of the same public size n that differ in one record"

    @property
    def spent(self) -> Fraction:
        """The sum of the charges (basic composition, Lemma 2.5)."""
        return sum((charge.epsilon for charge in self.charges), Fraction(0))

    def __post_init__(self) -> None:
        if self.spent > self.epsilon:
            raise ParameterError(f"the charges sum to {self.spent}, more than epsilon = {self.epsilon}.")

    def __str__(self) -> str:
        if self.seeded:
            return f"{SEEDED_MARK} (mechanism: {self.mechanism})"
        return (
            f"pure ε-differential privacy with ε = {float(self.epsilon):g} for {self.neighbours}; "
            f"n = {self.n}; mechanism: {self.mechanism}"
        )
