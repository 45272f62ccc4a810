"""Privacy budgets in exact rational arithmetic: what was promised, and what each step may spend.

Two guarantees share one interface. Pure ε-DP is spent in units of ε; (ε, δ)-DP is spent in units of ρ = μ²/2 and converted once,
exactly: μ is the parameter of Gaussian differential privacy (`engine.gaussian`). In both the charges of the steps add up
(Lemma 2.5; Dong, Roth and Su 2022), and a person with k rows pays as group privacy demands: k·ε, or k²·ρ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from math import isqrt, sqrt
from typing import Any

from covey.engine.entropy import SEEDED_MARK
from covey.engine.fractions import exact
from covey.engine.gaussian import mu_above, rho_within
from covey.engine.noise.law import GAUSSIAN, LAPLACE, MATRIX, NoiseLaw
from covey.engine.unit import ADD_REMOVE, ALL_ROWS, REPLACE, Neighbours, Unit
from covey.errors import ArgumentError, InternalError, ParameterError, briefly, counted, whole_number

# Below the least the answer is noise alone, at a scale that integers still hold; beyond the most there is no privacy left.
MIN_EPSILON = Fraction(1, 10**12)
MAX_EPSILON = Fraction(10**6)
MIN_EPSILON_OF_PERSONS = Fraction(1, 10**6)  # their sums are counted in steps of 2^-20, and noise must fit its samplers
MIN_RHO = Fraction(1, 10**24)
# Of ε²: what a choice that is ε-DP costs in ρ; π/4 (docs/proofs/choice.md). By Gumbel noise, whose range is ε, it
# costs π/16 (docs/proofs/relations.md).
CHOICE = Fraction(4, 5)
GUMBEL = Fraction(1, 5)
MOST_DELTA = Fraction(1, 10**5)  # where n is secret: the usual advice for tables of up to 100,000 rows
DOMAINS = "domains"  # the purpose of the charge for learned limits and categories
RELATIONS = "relations"  # and of that for relations between columns that nobody declared
# Of δ, where labels are learned: it pays for labels that one of two neighbours has alone.
SELECTION_SHARE = Fraction(1, 10)


def check_epsilon(value: Any) -> Fraction:
    """ε as a fraction, or a refusal."""
    epsilon = exact(value, "epsilon")
    if epsilon <= 0:
        raise ArgumentError("", "epsilon", f" must be positive, got {shown(epsilon)}.")
    if epsilon < MIN_EPSILON:
        said = f" must be at least 1e-12, got {shown(epsilon)}: below that the answer is only noise."
        raise ArgumentError("", "epsilon", said)
    if epsilon > MAX_EPSILON:
        said = f" must be at most 1e6, got {briefly(value)}: beyond that there is no privacy to speak of."
        raise ArgumentError("", "epsilon", said)
    return epsilon


def check_delta(value: Any, n: int | None = None) -> Fraction:
    """δ as a fraction in [0, 1/n), or a refusal; n is None before the table is known."""
    delta = exact(value, "delta")
    if not 0 <= delta < Fraction(1, n or 1):
        below = f"1/n = {1 / n:.3g}" if n else "1"
        said = f" must be 0 (pure privacy) or positive and below {below}, got {shown(delta)}."
        raise ArgumentError("", "delta", said)
    return delta


def shown(value: Fraction | float) -> str:
    """A parameter of privacy as a person writes it: 0.5, 1e-9."""
    return f"{float(value):g}".replace("e-0", "e-")


def parameters(epsilon: Fraction | float, delta: Fraction | float) -> str:
    """ε, and δ where there is one, in words."""
    return f"ε = {shown(epsilon)}" + (f", δ = {shown(delta)}" if delta else "")


@dataclass(frozen=True)
class Charge:
    """What one step spends, in the unit of its budget (ε or ρ)."""

    purpose: str
    amount: Fraction
    unit: str = "ε"
    delta: Fraction = Fraction(0)  # what naming labels spends besides, out of the promised δ


@dataclass(frozen=True)
class Budget:
    """A promise to a person, and what may be spent under it: `amount` is ε (pure) or ρ (δ > 0), all rows of a person together.

    The amount proves (ε, δ − selection)-DP; `selection` is the part of δ that learned labels may spend: docs/proofs/learned.md.
    """

    epsilon: Fraction
    delta: Fraction
    rows_per_person: int
    amount: Fraction
    selection: Fraction = Fraction(0)
    persons: bool = False  # whether the promise is to a person with all their rows, n counting persons
    neighbours: Neighbours = REPLACE

    @property
    def protects(self) -> str:
        """Whom the promise is to."""
        if self.persons:
            return "one person with all their rows"
        return "one row" if self.rows_per_person == 1 else f"one person with up to {self.rows_per_person} rows"

    @property
    def persons_covered(self) -> str:
        """What the promise says about somebody's several rows, and on whose word."""
        if self.persons:
            return "all rows that the column of persons gives to the same person; that it does so is the owner's word"
        if self.rows_per_person > 1:
            return f"up to {self.rows_per_person} rows of a person together; that nobody has more is the owner's word"
        return "each row by itself; nobody was asked whether a person has several, and whoever has is protected less"

    @property
    def size_is_secret(self) -> bool:
        """Whether units are added or removed, so that their number is measured like everything else."""
        return self.neighbours == ADD_REMOVE

    @property
    def for_replaced(self) -> Budget:
        """The budget with which replaced rows get about the noise that rows added or removed get with this one: twice it.

        For rules of thumb alone. They lay down how a budget is shared; the scale of every noise comes from the gate.
        """
        return replace(self, amount=2 * self.amount, neighbours=REPLACE) if self.size_is_secret else self

    @property
    def without_delta(self) -> Budget:
        """A promise of pure ε-DP, which is (ε, δ)-DP for every δ: all of ε is spent, and nothing of δ."""
        return replace(self, delta=Fraction(0), amount=self.epsilon, selection=Fraction(0))

    def compared(self, n: int | None = None) -> str:
        """Which tables the promise compares, with or without their public size."""
        if self.size_is_secret:
            what = {True: "one person with all their rows", False: "one row"}[self.persons]
            what = what if self.rows_per_person == 1 else f"the rows of one person, at most {self.rows_per_person}"
            return f"tables that differ by {what}, added or removed; the number of {self.counted} is secret"
        size = "" if n is None else f" n = {n}"
        if self.persons:
            return f"tables of the same public number of persons{size} that differ in one person, with any number of rows in each"
        if self.rows_per_person == 1:
            return f"tables of the same public size{size} that differ in one row"
        rows = f"at most {self.rows_per_person} and equally many in both"
        return f"tables of the same public size{size} that differ in the rows of one person, {rows}"

    @property
    def counted(self) -> str:
        """What the number n counts."""
        return "persons" if self.persons else "rows"

    @property
    def rows_covered(self) -> Unit:
        """How many rows of a person the promise covers, as files write it."""
        return ALL_ROWS if self.persons else self.rows_per_person

    @property
    def parameters(self) -> str:
        """ε, and δ where there is one, in words."""
        return parameters(self.epsilon, self.delta)

    @property
    def pure(self) -> bool:
        """Whether the guarantee is ε-DP with δ = 0."""
        return self.delta == 0

    @property
    def unit(self) -> str:
        """ε or ρ."""
        return "ε" if self.pure else "ρ"

    @property
    def gaussian_rho(self) -> Fraction | None:
        """ρ = μ²/2 where the promise is Gaussian differential privacy: what the ledger composes. None elsewhere.

        Naming labels is not Gaussian: no μ covers what one of two neighbours alone makes possible.
        """
        gaussian = not self.pure and not self.selection
        return self.amount if gaussian else None

    @property
    def mu(self) -> Decimal | None:
        """μ of Gaussian differential privacy for the whole amount, rounded up to four digits; None where it is not that."""
        return None if self.gaussian_rho is None else mu_above(self.gaussian_rho)

    @property
    def per_row(self) -> Fraction:
        """What one row may cost: a person with k rows pays k times as much in ε, k² times in ρ."""
        return self.amount / self.rows_per_person ** (1 if self.pure else 2)

    def with_amount(self, amount: Fraction) -> Budget:
        """The same promise, with another amount to spend: a part of the whole."""
        return replace(self, amount=amount)

    def part(self, share: Fraction) -> Budget:
        """The same promise with a share of the amount."""
        return self.with_amount(self.amount * share)

    # The scale of every noise law, from how far one replaced row can move a statistic. Rows per person enter here, once.

    def laplace_scale(self, sensitivity: Fraction | int | None) -> Fraction:
        """Scale of Laplace, cube and matrix noise (pure ε) for a statistic that one row moves by so much in the law's norm."""
        if not self.pure or sensitivity is None:
            raise InternalError("Laplace noise needs a pure budget and a declared sensitivity.")
        return sensitivity / self.per_row

    def variance(self, sensitivity_squared: Fraction | int | None) -> Fraction:
        """Variance of Gaussian noise for a statistic that one row moves by so much in ℓ2, squared: Δ²/(2ρ)."""
        if self.pure or sensitivity_squared is None:
            raise InternalError("Gaussian noise needs a positive delta and a declared sensitivity.")
        return sensitivity_squared / (2 * self.per_row)

    def deviation(self, l1: Fraction | int | None, l2_squared: Fraction | int | None) -> float:
        """Standard deviation of the noise on an entry: Laplace by ℓ1 under pure ε, else Gaussian by ℓ2, squared."""
        return sqrt(2) * float(self.laplace_scale(l1)) if self.pure else sqrt(self.variance(l2_squared))

    def choice_scale(self, sensitivity: Fraction | int | None, cost: Fraction = CHOICE) -> Fraction:
        """Scale of the noise on scores, each of which one row moves by so much, for one choice among them: 2Δ/ε.

        Geometric noise, or with the cost GUMBEL Gumbel's.
        """
        if sensitivity is None:
            raise InternalError("a choice needs a declared sensitivity of its scores.")
        return 2 * sensitivity / (self.per_row if self.pure else root_below(self.per_row / cost))

    def gumbel_scale(self, sensitivity: Fraction | int | None) -> Fraction:
        """The same of Gumbel noise, whose range is ε."""
        return self.choice_scale(sensitivity, GUMBEL)


def root_below(x: Fraction) -> Fraction:
    """A fraction just below the square root: for x ≥ 1e-24 by less than one part in 10^17."""
    return Fraction(isqrt(int(x * 4**100)), 2**100)


def make_budget(  # the public parameters of a release, each with a default
    epsilon: Any,
    delta: Any = 0,
    rows_per_person: Any = 1,
    n: int | None = None,
    labels: bool = False,
    persons: bool = False,
    neighbours: Neighbours = REPLACE,
) -> Budget:
    """Check the public parameters and find what may be spent.

    Where labels are learned, naming them gets a tenth of δ, and the rest must do with what is left. With `persons` n counts
    persons, whose rows share one weight.
    """
    e, d = check_epsilon(epsilon), check_delta(delta, n)
    k = whole_number(rows_per_person, "rows_per_person", 1)
    if persons and k > 1:
        raise ParameterError("give person or rows_per_person, not both: person already protects all rows of a person.")
    if persons and e < MIN_EPSILON_OF_PERSONS:
        raise ParameterError(
            f"with person, epsilon must be at least 1e-6, got {float(e):g}: the answer would be only noise."
        )
    if neighbours not in (REPLACE, ADD_REMOVE):
        raise ParameterError(f"neighbours must be {REPLACE!r} or {ADD_REMOVE!r}, got {neighbours!r}.")
    if neighbours == ADD_REMOVE and d > MOST_DELTA:
        raise ParameterError(
            f"delta must be at most {float(MOST_DELTA):g} where the number of rows is secret, got {float(d):g}: whether it is "
            "below 1/n cannot be checked."
        )
    selection = d * SELECTION_SHARE if labels else Fraction(0)
    amount = e if d == 0 else rho_within(e, d - selection)
    budget = Budget(e, d, k, amount, selection, persons, neighbours)
    if budget.per_row < (MIN_EPSILON if d == 0 else MIN_RHO):
        raise ParameterError(
            f"rows_per_person = {briefly(k)} leaves too little of epsilon = {float(e):g} for each row: the answer would be "
            "noise alone. Limit how many rows a person has."
        )
    return budget


def budget_for(  # the parameters that files and forms write down, each with a default
    epsilon: Any, delta: Any, rows: Unit, labels: bool = False, neighbours: Neighbours = REPLACE
) -> Budget:
    """The budget of a promise to persons with so many rows, as files write it: a number, or "all"."""
    persons = rows == ALL_ROWS
    k = 1 if persons else rows
    return make_budget(epsilon, delta, k, labels=labels, persons=persons, neighbours=neighbours)


def split(amount: Fraction, shares: Mapping[str, Any], unit: str = "ε") -> dict[str, Charge]:
    """Divide an amount into charges; the shares must sum to 1 (floats may miss by rounding alone)."""
    fractions = {purpose: exact(share, f"share of {purpose}") for purpose, share in shares.items()}
    whole = sum(fractions.values(), Fraction(0))
    if any(f < 0 for f in fractions.values()) or abs(whole - 1) > Fraction(1, 10**9):
        given = ", ".join(f"{purpose} = {share}" for purpose, share in shares.items())
        raise ParameterError(f"the split must be non-negative and sum to 1, got {given}.")
    return {purpose: Charge(purpose, amount * f / whole, unit) for purpose, f in fractions.items()}


@dataclass(frozen=True)
class PrivacyStatement:
    """What a release promises, in the words that travel with it."""

    budget: Budget
    charges: tuple[Charge, ...]
    n: int  # the public number of units, or the noisy one where it is secret
    mechanism: str
    seeded: bool
    unused: tuple[Charge, ...] = ()
    learned: tuple[str, ...] = ()  # fields whose limits or categories were learned with noise
    left_out: tuple[str, ...] = ()  # and those in which nothing stood out of it
    guessed: bool = False  # whether nothing stood out in any of them, so that limits are no more than noise
    assumed: tuple[str, ...] = ()  # what the promise takes as public beside the schema, in sentences
    prior: str | None = None  # the fingerprint of an earlier bundle that was used as public information
    noise: tuple[NoiseLaw, ...] = ()  # the laws of all noise that was drawn, as the gate wrote them down

    @property
    def size(self) -> str:
        """How many units the real table has, in words: about so many where that is secret."""
        units = counted(self.n, self.budget.counted.removesuffix("s"))
        return f"about {units} (a noisy number)" if self.budget.size_is_secret else units

    @property
    def size_sentence(self) -> str:
        """Whether that number is public."""
        units = self.budget.counted
        if self.budget.size_is_secret:
            return f"How many {units} the real table has is secret; {self.n:,} is a noisy number of them."
        return f"The number of {units}, {self.n:,}, is public."

    @property
    def noise_words(self) -> str:
        """The laws of its noise, for a sentence; where no book says, those that such a budget can pay for."""
        usual = (MATRIX, LAPLACE) if self.budget.pure else (GAUSSIAN,)
        return ", ".join(dict.fromkeys(law.words for law in self.noise or usual))

    @property
    def spent(self) -> Fraction:
        """The sum of the charges, in the budget's unit."""
        return sum((charge.amount for charge in self.charges), Fraction(0))

    def __post_init__(self) -> None:
        if {charge.unit for charge in self.charges} - {self.budget.unit} or self.spent > self.budget.amount:
            own = f"{self.budget.amount} {self.budget.unit}"
            raise InternalError(f"the charges sum to {self.spent}, more than the budget's {own}, or in another unit.")
        if sum((charge.delta for charge in self.charges), Fraction(0)) > self.budget.selection:
            raise InternalError("naming labels has spent more of δ than its part.")

    def __str__(self) -> str:
        if self.seeded:
            return f"{SEEDED_MARK} (mechanism: {self.mechanism})"
        guarantee = f"{'ε-differential privacy' if self.budget.pure else '(ε, δ)-DP'}, {self.budget.parameters}"
        if self.budget.mu is not None:
            guarantee += f" (Gaussian DP, μ = {float(self.budget.mu):g})"
        return (
            f"{guarantee}, for {self.budget.protects}; neighbours: {self.budget.compared(self.n)} "
            f"({self.budget.neighbours}); "
            f"mechanism: {self.mechanism}{self._learning()}{f'; prior: bundle {self.prior[:12]}' if self.prior else ''}"
        )

    def _learning(self) -> str:
        """The lines about learned domains and relations, if there are any."""
        shares = {c.purpose: f"{float(c.amount / self.budget.amount):.3g}" for c in self.charges}
        more = ""
        if DOMAINS in shares:
            delta = float(next(charge.delta for charge in self.charges if charge.purpose == DOMAINS))
            read = ", read from the table without noise" if self.assumed else ""
            more = (
                f"; domains of {len(self.learned) + len(self.left_out)} columns learned with noise, for {shares[DOMAINS]} of the "
                f"budget{f' and {delta:.3g} of δ' if delta else ''} (column names and types are public{read})"
            )
        if RELATIONS in shares:
            more += f"; relations looked for with noise, for {shares[RELATIONS]} of {'it' if more else 'the budget'}"
        return more
