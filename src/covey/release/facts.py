"""What a bundle says of its privacy, read by whoever received it: amounts within bounds, and no claim that does not follow.

A stranger may have written any of it. Whatever does not fit is an InputError that says what.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from covey.engine.budget import Budget, Charge, PrivacyStatement, budget_for
from covey.engine.fractions import amount
from covey.engine.noise.law import LAWS
from covey.errors import InputError
from covey.release.contents import About
from covey.release.model import fitting, read_json
from covey.release.statements import private_facts
from covey.tables.fields import LARGEST

PRIVACY = "privacy.json"
# What follows from the budget that a bundle promises. Citations quote some of it.
FOLLOWING = (
    *("guarantee", "compared", "unit", "rows_of_a_person", "n_counts", "n_is"),
    *("spent_in", "mu", "amount_per_row", "private", "note"),
)
NOBODY = "the bundle is neither a private one nor an anonymous one"


def read_facts(folder: Path) -> dict[str, Any]:
    """What a bundle says of its privacy, and the day on which it was made; its charges keep within its budget."""
    facts: dict[str, Any] = read_json(folder / PRIVACY)
    with fitting(PRIVACY):
        counts = [facts["n"], *facts["synthetic_rows"].values()]
        whole = all(type(count) is int and 0 <= count <= LARGEST for count in counts)
        if not whole or not About.from_dict(facts["about"]).made:
            raise ValueError("it needs whole numbers of rows, and a day")
        for name in ("guarantee", "covey"):
            _require_text(facts[name], name)
        if type(facts["seeded"]) is not bool:
            raise TypeError("seeded must be true or false")
        if is_anonymous(facts):
            _verify_groups(facts)
        else:
            verify_claims(facts)
    return facts


def is_anonymous(facts: Mapping[str, Any]) -> bool:
    """Whether they are those of an anonymous bundle, which promises no ε."""
    return "group_size" in facts


def promised(facts: Mapping[str, Any]) -> Budget:
    """The budget that ε, δ and the unit of privacy.json allow.

    Naming learned labels spends a part of δ, which the amount must then do without.
    """
    named = any("delta" in charge for charge in facts["charges"])
    epsilon, delta = amount(facts["epsilon"], "epsilon"), amount(facts["delta"], "delta")
    return budget_for(epsilon, delta, facts["rows_per_person"], named, facts["neighbours"])


def statement(facts: Mapping[str, Any]) -> PrivacyStatement:
    """The guarantee of a private bundle, from its privacy.json."""
    budget, strange = promised(facts), set(facts.get("noise", ())) - set(LAWS)
    if strange:
        raise ValueError(f"noise of an unknown law, {min(map(str, strange))}")
    lists = {name: facts.get(name, []) for name in ("learned", "left_out", "assumed")}
    for name, words in lists.items():
        for word in words:
            _require_text(word, name)
    prior = facts.get("prior", {}).get("bundle")
    if prior is not None:
        _require_text(prior, "prior")
    _require_text(facts["mechanism"], "mechanism")
    return PrivacyStatement(
        budget,
        charges(facts, "charges", budget),
        facts["n"],
        facts["mechanism"],
        facts["seeded"],
        unused=charges(facts, "unused", budget),
        noise=tuple(LAWS[name] for name in facts.get("noise", ())),
        guessed=bool(facts.get("guessed", False)),
        prior=prior,
        **{name: tuple(words) for name, words in lists.items()},
    )


def charges(facts: Mapping[str, Any], name: str, budget: Budget) -> tuple[Charge, ...]:
    """The charges of this name, none of them negative."""
    listed = []
    for charge in facts.get(name, ()):
        _require_text(charge["purpose"], "the purpose of a charge")
        costs = amount(charge["amount"], f"a charge of {PRIVACY}"), amount(charge.get("delta", "0"), "its delta")
        listed.append(Charge(charge["purpose"], costs[0], budget.unit, costs[1]))
    return tuple(listed)


def verify_claims(facts: Mapping[str, Any]) -> None:
    """The charges must not exceed the amount, the amount must be what was promised, and claims what follows from both."""
    budget, listed = promised(facts), charges(facts, "charges", promised(facts))
    whole = amount(facts["amount"], "amount")
    if sum((charge.delta for charge in listed), Fraction(0)) > budget.selection:
        raise InputError("the charges spend more of δ than its part for learned labels.")
    if whole > budget.amount:
        raise InputError("the bundle claims a larger amount per row than its ε and δ allow.")
    spent = sum((charge.amount for charge in listed), Fraction(0))
    if spent > whole:
        raise InputError(f"the charges sum to {float(spent):g}, more than the {float(whole):g} that were promised.")
    told = private_facts(statement(facts), facts["covey"])
    for name in FOLLOWING:
        if facts.get(name) != told.get(name):
            raise InputError(f"{PRIVACY} says something else under {name} than follows from its ε, δ and charges.")


def _verify_groups(facts: Mapping[str, Any]) -> None:
    """An anonymous bundle says how large its groups are, and promises nothing beside."""
    if {"epsilon", "charges"} & set(facts) or facts["private"] is not False:
        raise ValueError(NOBODY)
    size, groups, loss = facts["group_size"], facts["groups"], facts["covariance_loss"]
    if type(size) is not int or type(groups) is not int or not 1 <= size <= facts["n"] or not 1 <= groups <= facts["n"]:
        raise ValueError("its groups have no sizes")
    if type(loss) not in (int, float) or not 0 <= loss < LARGEST:
        raise ValueError("its covariance_loss is no number")
    _require_text(facts["method"], "method")


def _require_text(word: Any, name: str) -> None:
    if not isinstance(word, str):
        raise TypeError(f"{name} must be text")
