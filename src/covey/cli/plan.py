"""What a release would be like, before any data is opened."""

from __future__ import annotations

from dataclasses import asdict
from fractions import Fraction
from pathlib import Path

import click

from covey.cli.family import example, main, say
from covey.cli.options import (
    delta_option,
    epsilon_option,
    json_option,
    number,
)
from covey.errors import ParameterError


@main.command(
    epilog=example(
        "covey plan schema.json --rows 20000 --epsilon 1", "covey plan schema.json --rows 20000 --target-error 0.01"
    )
)
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.option("--rows", "n", type=int, required=True, help="Rows of the confidential table (public).")
@epsilon_option
@delta_option
@click.option(
    "--target-error", callback=number("target-error"), help="Find the ε that is predicted to reach this error."
)
@json_option
def plan(
    schema_path: Path, n: int, epsilon: Fraction | None, delta: Fraction, target_error: Fraction | None, as_json: bool
) -> None:
    """Predict accuracy, time and memory from public sizes alone. Opens no data."""
    from covey.methods.learning import check_learning, expected_sizes, learning_cost
    from covey.privacy.budget import make_budget
    from covey.table.codec import Codec
    from covey.table.schema import Schema
    from covey.workflow import plan as predicted

    if (epsilon is None) == (target_error is None):
        raise ParameterError("give --epsilon, or --target-error to find it.")
    schema = Schema.load(schema_path)
    sizes = expected_sizes(schema) if schema.learns else Codec(schema).domain_sizes
    prediction = predicted(sizes, n, epsilon, delta, target_error)
    budget = make_budget(prediction.epsilon, delta, labels=bool(schema.learns))
    check_learning(schema, delta)
    cost = learning_cost(schema, n, budget)
    facts = prediction.as_dict() | ({} if cost is None else {"learning": asdict(cost)})
    words = [
        f"n = {n}, {len(sizes)} attributes, {sum(sizes)} categories",
        f"ε = {prediction.epsilon:g}, δ = {float(delta):g}",
        f"predicted error of a 2-way share: about {prediction.error:.2g}",
        f"time about {prediction.seconds:.0f} s, memory about {prediction.memory_gib:.2g} GiB",
        *([] if cost is None else [cost.words()]),
        *(f"warning: {warning}" for warning in prediction.warnings),
    ]
    say(as_json, facts, "\n".join(words))
