"""What a release of persons with events would be like, from public sizes alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from covey.methods.persons.certify import WORDS
from covey.methods.persons.plan import PersonsPlan, few_persons
from covey.methods.regain.plan import CERTIFICATE_SHARE
from covey.privacy.budget import Budget, shown


@dataclass(frozen=True)
class PersonsPrediction:
    """Which tables would be measured, and how noisy.

    Args:
        tables: how many, by kind.
        noise: of an entry of a table, as a share of the persons.
        unlinked: of a table of one event, if events were released alone with the same budget.
        warning: advice where links would be noise.
    """

    persons: int
    epsilon: float
    delta: float
    tables: dict[str, int]
    noise: float
    unlinked: float
    warning: str

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @property
    def words(self) -> list[str]:
        """For a reader."""
        return [
            f"n = {self.persons} persons, ε = {self.epsilon:g}, δ = {shown(Fraction(self.delta))}",
            *(f"  {count} tables of {WORDS[kind]}" for kind, count in self.tables.items()),
            f"noise on a cell of a table: {self.noise:.2g} of the persons; with events alone about {self.unlinked:.2g}",
            *([f"warning: {self.warning}"] if self.warning else []),
        ]


def predict_persons(plan: PersonsPlan, n: int, budget: Budget) -> PersonsPrediction:
    """Tables, noise and advice for n persons."""
    tables, share = plan.tables(n, budget), plan.shares(n, budget, CERTIFICATE_SHARE).get("tables")
    kinds = [kind for (kind, _), sets in tables.items() for _ in sets]
    alone = PersonsPlan((), plan.events, 1, False)
    q = max(1, sum(len(sets) for (kind, _), sets in alone.tables(n, budget).items() if kind == "event"))
    one = budget.part(Fraction(3, 4)).deviation(2 * q, 2 * q)
    return PersonsPrediction(
        n,
        float(budget.epsilon),
        float(budget.delta),
        {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        plan.table_sd(n, budget.part(share)) / n if share else 0.0,  # nothing but columns by themselves
        one / n,
        few_persons(n, budget),
    )
