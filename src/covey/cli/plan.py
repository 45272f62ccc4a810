"""What a release would be like, before any data is opened."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from covey.cli.group import example, main, say
from covey.cli.options import (
    delta_option,
    epsilon_option,
    focus_options,
    json_option,
    neighbours_option,
    number,
    person_option,
)
from covey.errors import ArgumentError, ParameterError

if TYPE_CHECKING:
    from covey.privacy.unit import Unit


@main.command(
    epilog=example(
        "covey plan schema.json --rows 20000 --epsilon 1",
        "covey plan schema.json --rows 20000 --target-error 0.03",
        "covey plan schema.json --persons 8000 --epsilon 1",
    )
)
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.option("--rows", type=int, help="Rows of the confidential table (public).")
@click.option("--persons", type=int, help="Persons in it, for a release with --person (public).")
@click.option("--rows-per-person", type=int, default=1, show_default=True, help="As for a release.")
@person_option
@neighbours_option
@focus_options
@epsilon_option
@delta_option
@click.option(
    "--target-error",
    callback=number("target-error"),
    help="Find the ε for this average total variation distance: 0.03 means that 3% of the rows would have to move.",
)
@json_option
def plan(  # click passes each option by its name
    schema_path: Path,
    rows: int | None,
    persons: int | None,
    epsilon: Fraction | None,
    delta: Fraction,
    target_error: Fraction | None,
    as_json: bool,
    **said: Any,
) -> None:
    """Predict accuracy, time and memory from public sizes alone. Opens no data."""
    from covey.orders import not_taken
    from covey.table.persons import without
    from covey.workflow import Description
    from covey.workflow import plan as predicted

    if (epsilon is None) == (target_error is None):
        raise ParameterError("give --epsilon, or --target-error to find it.")
    n = persons if rows is None else rows
    if n is None or (rows is not None and persons is not None):
        raise ParameterError("give --rows, or --persons for a release with --person.")
    if persons is not None and said["rows_per_person"] != 1:
        raise ParameterError(
            "give --persons or --rows-per-person, not both: --persons already protects all rows of a person."
        )
    if said["person"] is not None and persons is None:
        raise ParameterError(
            "with --person give --persons, the number of persons. The number of rows is not public then."
        )
    described = Description.load(schema_path)
    if described.schema is None and persons is None:
        raise ParameterError("for a package give --persons, the public number of persons.")
    for name, why in not_taken(described).items():
        if said.get(name) not in (None, (), 1):
            raise ArgumentError(f"{why}: leave out ", name, ".")
    if described.schema is not None:
        schema = described.schema.only(said["columns"]).focus(
            *said["important"], target=said["target"], triples=said["triples"]
        )
        described = Description.of(schema if said["person"] is None else without(schema, said["person"]))
    else:
        described = described.focus(*said["important"], target=said["target"])
    unit: Unit = said["rows_per_person"] if persons is None else "all"
    found = predicted(described, n, epsilon, delta, target_error, unit, said["neighbours"])
    table = f"TABLE --schema {schema_path}" if described.schema is not None else str(schema_path)
    after = f"Next: covey release {table} --epsilon {found.prediction.epsilon:g} --dataset NAME --out release"
    say(as_json, found.facts, "\n".join([*found.words, after]))
