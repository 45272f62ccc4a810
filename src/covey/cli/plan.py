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
    important_option,
    json_option,
    number,
    person_option,
    target_option,
    triples_option,
)
from covey.errors import ParameterError


@main.command(
    epilog=example(
        "covey plan schema.json --rows 20000 --epsilon 1",
        "covey plan schema.json --rows 20000 --target-error 0.03",
        "covey plan schema.json --persons 8000 --epsilon 1",
    )
)
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.option("--rows", type=int, help="Rows of the confidential table (public).")
@click.option("--persons", type=int, help="Persons in it instead, for a release with --person.")
@click.option("--rows-per-person", type=int, default=1, show_default=True, help="As for a release.")
@person_option
@important_option
@target_option
@triples_option
@epsilon_option
@delta_option
@click.option(
    "--target-error",
    callback=number("target-error"),
    help="Find the ε that should leave at most this share of rows out of place.",
)
@json_option
def plan(  # click passes each option by its name
    schema_path: Path,
    rows: int | None,
    persons: int | None,
    rows_per_person: int,
    person: str | None,
    important: tuple[tuple[str, ...], ...],
    target: str | None,
    triples: int | None,
    epsilon: Fraction | None,
    delta: Fraction,
    target_error: Fraction | None,
    as_json: bool,
) -> None:
    """Predict accuracy, time and memory from public sizes alone. Opens no data."""
    from covey.methods.learning import check_learning, expected_sizes, learning_cost
    from covey.methods.regain.predict import focus_words
    from covey.privacy.budget import make_budget, shown
    from covey.table.package import is_package
    from covey.table.persons import without
    from covey.table.schema import Schema
    from covey.workflow import expected_focus, expected_triples
    from covey.workflow import plan as predicted

    if (epsilon is None) == (target_error is None):
        raise ParameterError("give --epsilon, or --target-error to find it.")
    n = persons if rows is None else rows
    if n is None or (rows is not None and persons is not None):
        raise ParameterError("give --rows, or --persons for a release with --person.")
    if persons is not None and rows_per_person != 1:
        raise ParameterError("--persons and --rows-per-person exclude each other: all rows of a person count as one.")
    if person is not None and persons is None:
        raise ParameterError("with --person give --persons, their number: that of rows is not public.")
    if is_package(schema_path):
        _plan_package(schema_path, persons, epsilon, delta, as_json)
        return
    schema = Schema.load(schema_path)
    schema = schema.focus(*important, target=target, triples=triples)
    if person is not None:
        schema = without(schema, person)
    if schema.learns and persons is not None:
        raise ParameterError("domains are learned from rows, not by person: declare them, or leave out --persons.")
    sizes = expected_sizes(schema)
    prediction = predicted(schema, n, epsilon, delta, target_error, rows_per_person if persons is None else "all")
    budget = make_budget(prediction.epsilon, delta, rows_per_person, labels=bool(schema.learns))
    check_learning(schema, delta)
    cost = learning_cost(schema, n, budget)
    facts = prediction.as_dict() | ({} if cost is None else {"learning": asdict(cost)})
    focus = None if schema.learns else expected_focus(schema, n, budget)
    facts |= {} if focus is None else {"important": asdict(focus)}
    three = None if schema.learns else expected_triples(schema, n, budget)
    facts |= {} if three is None else {"triples": asdict(three)}
    words = [
        f"n = {n}{'' if persons is None else ' persons'}, {len(sizes)} attributes, {sum(sizes)} categories",
        f"ε = {prediction.epsilon:g}, δ = {shown(delta)}",
        prediction.sentence,
        *([] if prediction.groups is None else [prediction.groups.sentence]),
        f"time about {prediction.seconds:.0f} s, memory about {prediction.memory_gib:.2g} GiB",
        *([] if cost is None else [cost.words()]),
        *([] if focus is None else [focus_words(focus, sizes)]),
        *([] if three is None else [three.words()]),
        *(f"warning: {warning}" for warning in prediction.warnings),
    ]
    say(as_json, facts, "\n".join(words))


def _plan_package(path: Path, persons: int | None, epsilon: Fraction | None, delta: Fraction, as_json: bool) -> None:
    """Tables and noise of a release of persons with events, and advice."""
    from covey.linkedflow import plan_package
    from covey.methods.persons.certify import WORDS
    from covey.privacy.budget import shown
    from covey.table.package import Package

    if persons is None or epsilon is None:
        raise ParameterError("for a package give --persons, their public number, and --epsilon.")
    found = plan_package(Package.load(path), persons, epsilon, delta)
    words = [
        f"n = {persons} persons, ε = {found.epsilon:g}, δ = {shown(delta)}",
        *(f"  {count} tables of {WORDS[kind]}" for kind, count in found.tables.items()),
        f"noise on a cell of a table: {found.noise:.2g} of the persons; with events alone about {found.unlinked:.2g}",
        *([f"warning: {found.warning}"] if found.warning else []),
    ]
    say(as_json, found.as_dict(), "\n".join(words))
