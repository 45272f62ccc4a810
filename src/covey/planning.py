"""What a release would be like, from public sizes alone: accuracy, time and memory, whatever tables are described."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

from covey.errors import ArgumentError
from covey.methods.learning import (
    check_learning,
    expected_attributes,
    expected_sizes,
    learning_cost,
    too_wide,
    with_known_domains,
)
from covey.methods.persons.plan import PersonsPrediction, predict_persons
from covey.methods.regain.predict import (
    Prediction,
    expected_focus,
    expected_triples,
    focus_words,
    predict,
    triple_words,
)
from covey.methods.regain.tables import RegainTables
from covey.privacy.budget import budget_for, make_budget, shown
from covey.privacy.unit import ALL_ROWS, REPLACE, Neighbours, Unit
from covey.table.codec import Codec
from covey.table.description import Description
from covey.table.schema import Schema
from covey.tree import plan_of


@dataclass(frozen=True)
class Plan:
    """A prediction, in words and for JSON."""

    prediction: Prediction | PersonsPrediction
    words: tuple[str, ...]
    facts: dict[str, Any]


def plan(  # what is described, how many there are, and what is promised
    described: Schema | Description,
    n: int,
    epsilon: Fraction | None,
    delta: Fraction,
    target_error: Fraction | None = None,
    unit: Unit = 1,
    neighbours: Neighbours = REPLACE,
) -> Plan:
    """What a release would be like, from public sizes alone; with a target error instead of ε, also that ε.

    n counts rows, or persons where there are persons with events or `unit` is "all", as in a release with a column of persons.
    """
    whole = Description.of(described)
    if (epsilon is None) == (target_error is None):
        raise ArgumentError("give epsilon, or ", "target_error", " to find it.")
    if whole.schema is None:
        return _of_persons(whole, n, epsilon, delta, neighbours)
    schema = whole.schema
    if schema.learns and unit == ALL_ROWS:
        raise ArgumentError(
            "limits and categories cannot be learned by person. Declare them, or leave out ", "persons", "."
        )
    sizes, attributes = expected_sizes(schema), expected_attributes(schema)
    found = predict(sizes, n, epsilon, delta, target_error, unit, neighbours)
    learning = bool(with_known_domains(schema).learns)
    found = found.described(
        attributes, n, budget_for(found.epsilon, delta, unit, labels=learning, neighbours=neighbours)
    )
    labels, rows = bool(schema.learns), 1 if unit == ALL_ROWS else unit
    budget = make_budget(found.epsilon, delta, rows, labels=labels, neighbours=neighbours)
    check_learning(schema, delta)
    cost = learning_cost(schema, n, budget)
    own = None if schema.learns else RegainTables.of(Codec(schema), Fraction(0), budget.pure).plan
    more = expected_focus(own, n, budget) if own and own.important.pairs else None
    three = expected_triples(own, n, budget) if own and own.important.triples else None
    flags = all(size == 2 for size in sizes)  # these have a plan of their own
    noise = own.noise_words(n, budget_for(found.epsilon, delta, unit)) if own and not flags else ""
    facts = found.as_dict() | ({} if cost is None else {"learning": asdict(cost)})
    facts |= {} if more is None else {"important": more}
    facts |= {} if three is None else {"triples": three}
    words = [
        found.sentence,
        f"  {'persons' if unit == ALL_ROWS else 'rows':9} {n:,}",
        f"  columns   {len(sizes)}, of {sum(sizes):,} categories or bins in all",
        f"  guarantee ε = {found.epsilon:g}, δ = {shown(delta)}, {neighbours}",
        f"  time      about {found.seconds:.0f} s",
        f"  memory    about {found.memory_gib:.2g} GiB",
        *([f"  noise     {noise}"] if noise else []),
        *([] if found.groups is None else [found.groups.sentence]),
        *([] if cost is None else [cost.words()]),
        *([wide] if (wide := too_wide(schema, n, budget)) else []),
        *([] if more is None else [focus_words(more, sizes)]),
        *([] if three is None else [triple_words(three)]),
        *(f"warning: {warning}" for warning in found.warnings),
    ]
    return Plan(found, tuple(words), facts)


def _of_persons(
    described: Description, n: int, epsilon: Fraction | None, delta: Fraction, neighbours: Neighbours
) -> Plan:
    if epsilon is None:
        raise ArgumentError("covey cannot find an epsilon for persons with events. Give ", "epsilon", ".")
    budget = make_budget(epsilon, delta, n=n, persons=True, neighbours=neighbours)
    found = predict_persons(plan_of(described), n, budget)
    return Plan(found, tuple(found.words), found.as_dict())
