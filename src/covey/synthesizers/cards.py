"""What a notebook shows of a private synthesizer."""

from __future__ import annotations

from typing import Any

from covey.entropy import SEEDED_MARK
from covey.html import card, meter, tag
from covey.privacy.budget import Budget, PrivacyStatement
from covey.privacy.certificate import Certificate
from covey.synthesizers.base import columns_facts, promise_words
from covey.table.description import Description


def private_card(
    method: str,
    budget: Budget,
    seeded: bool,
    described: Description | None,
    fitted: tuple[PrivacyStatement, Certificate | None] | None,
) -> str:
    """Parameters before fitting; guarantee, budget and certificate after it."""
    facts: list[tuple[str, Any]] = [("Guarantee asked for", promise_words(budget)), ("Method", method)]
    mark = SEEDED_MARK if seeded else "not fitted"
    if fitted is None:
        facts.append(("Next", "call fit(table), which spends the budget"))
    else:
        privacy, certificate = fitted
        shares = [(c.purpose, float(c.amount / budget.amount)) for c in privacy.charges]
        facts[0] = ("Guarantee", str(privacy))
        facts += [
            ("Persons" if budget.persons else "Rows", f"{privacy.n:,}"),
            ("Budget", [tag("div", meter(share), f"{share:.1%} {purpose}") for purpose, share in shares]),
            ("Accuracy", certificate.sentence if certificate else "no certificate"),
            ("Next", "sample(m): as many rows as you like, at no further cost"),
        ]
        mark = SEEDED_MARK if seeded else "differentially private"
    return card(
        "PrivateSynthesizer",
        mark,
        [*facts, *columns_facts([] if described is None else [name for name, _ in described.fields])],
    )
