"""What a release would be like, before any data is opened."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import click

from covey.cli.group import example, main, say
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
    from covey.table.persons import without
    from covey.workflow import Description
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
    described = Description.load(schema_path)
    if described.schema is None:
        if persons is None or important or target or triples:
            raise ParameterError(
                "for a package give --persons, their public number, and --epsilon; it takes no --important, --target and "
                "--triples yet."
            )
    else:
        schema = described.schema.focus(*important, target=target, triples=triples)
        described = Description.of(schema if person is None else without(schema, person))
    found = predicted(described, n, epsilon, delta, target_error, rows_per_person if persons is None else "all")
    say(as_json, found.facts, "\n".join(found.words))
