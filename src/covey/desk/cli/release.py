"""Releases: planned before any data is opened, differentially private, or anonymous."""

from __future__ import annotations

import shlex
from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from covey.desk.cli.group import BUNDLE, FOCUS, command, number, options, say, table_options
from covey.errors import ArgumentError, ParameterError


@command(
    "covey plan schema.json --rows 20000 --epsilon 1",
    "covey plan schema.json --rows 20000 --target-error 0.03",
    "covey plan schema.json --persons 8000 --epsilon 1",
)
@click.argument("schema_path", metavar="SCHEMA", type=Path)
@click.option("--rows", type=int, help="Rows of the confidential table (public).")
@click.option("--persons", type=int, help="Persons in it, for a release with --person (public).")
@click.option("--rows-per-person", type=int, default=1, show_default=True, help="As for a release.")
@options("person", "neighbours", *FOCUS, "epsilon", "delta")
@click.option(
    "--target-error",
    callback=number,
    help="Find the ε for this average total variation distance: 0.03 means that 3% of the rows would have to move.",
)
@options("json")
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
    from covey.engine.budget import shown
    from covey.workflow import Description, not_taken
    from covey.workflow import plan as predicted

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
    described = described.only(said["columns"]).focus(
        *said["important"], target=said["target"], triples=said["triples"]
    )
    if said["person"] is not None:
        described = described.each(lambda part: part.schema.without(said["person"]))
    unit: Any = said["rows_per_person"] if persons is None else "all"
    found = predicted(described, n, epsilon, delta, target_error, unit, said["neighbours"])
    table = f"TABLE --schema {schema_path}" if described.schema is not None else str(schema_path)
    budget = f"--epsilon {found.prediction.epsilon:g}{f' --delta {shown(delta)}' if delta else ''}"
    # Whom the promise protects is said again, without which the same command would protect single rows, and so is what matters.
    given = [("person", said["person"] or (described.schema and persons and "COLUMN"))]
    given += [(name, said[name.replace("-", "_")]) for name in ("rows-per-person", "neighbours", "target", "triples")]
    given += [("columns", ",".join(said["columns"])), *(("important", ",".join(own)) for own in said["important"])]
    plain = [("rows-per-person", 1), ("neighbours", "replace-one")]
    same = [f" --{name} {shlex.quote(str(v))}" for name, v in given if v not in (None, "") and (name, v) not in plain]
    after = f"Next: covey release {table} {budget}{''.join(same)} --dataset NAME --out release"
    say(as_json, found.facts, "\n".join([*found.words, after]))


@command(
    "covey release patients.csv --schema schema.json --epsilon 1 --dataset patients --out release/",
    "covey release patients.csv --learn --epsilon 1 --delta 1e-9 --dataset patients --out release/",
    "covey release package.json --epsilon 1 --delta 1e-9 --dataset patients --out release/",
    "covey release postgresql://localhost/clinic --table patients --schema schema.json …",
)
@table_options
@click.option(
    "--learn",
    is_flag=True,
    help=(
        "Learn limits and categories with noise where no schema confirms them. This takes a tenth of the budget; texts need "
        "--delta. Names and types of all columns become public, and how their cells are written."
    ),
)
@click.option(
    "--learn-relations",
    is_flag=True,
    help="Find relations between the columns of a schema with noise, for a tenth of the budget, and keep them; so does --learn.",
)
@options("epsilon", "delta")
@click.option("--dataset", help="Name of the dataset in the ledger.")
@options("person", "neighbours", *FOCUS)
@click.option(
    "--prior",
    type=Path,
    metavar="BUNDLE",
    help="An earlier private bundle of the same schema, used as public information where it agrees with the data.",
)
@click.option(
    "--rows-per-person",
    type=int,
    default=1,
    show_default=True,
    help="Rows that one person may have, if no column identifies persons.",
)
@click.option("--confirm-large-epsilon", is_flag=True, help="Allow ε above 10.")
@click.option(
    "--accept-misfits",
    callback=number,
    default="0.05",
    show_default=True,
    metavar="SHARE",
    help="Go on if up to this proportion of a column's cells does not fit the schema.",
)
@click.option("--title", default="", help="Title on the first page of the report.")
@click.option("--owner", default="", help="Who is responsible for the release, on the same page.")
@click.option("--purpose", default="", help="Its purpose, on the same page.")
@options("ledger", *BUNDLE)
def release(source: Any, title: str, owner: str, purpose: str, as_json: bool, **said: Any) -> None:
    """Make a differentially private bundle from TABLE. The ledger is charged for it.

    TABLE may be a package file, which describes persons with events and says in which files they lie; it takes no --schema.
    """
    from covey.release.contents import About
    from covey.workflow import PrivateOrder
    from covey.workflow import release as carry_out

    done = carry_out(PrivateOrder(table=source, about=About(title, owner, purpose), **said))
    facts = {"bundle": str(done.bundle), "rows": done.rows, "certificate": done.certificate, "privacy": done.privacy}
    promise = [f"  {part}" for part in done.privacy.split("; ")]
    words = [*([done.certificate] if done.certificate else []), *promise, f"bundle → {done.bundle}"]
    if done.mended is not None:
        facts |= {"rows_altered_by_rules": done.mended}
        words += [f"rules: {done.mended:,} of {done.rows:,} rows were altered after drawing"]
    if done.learned or done.left_out:
        facts |= {"learned": list(done.learned), "left_out": list(done.left_out)}
        left = f"; left out: {', '.join(done.left_out)}" if done.left_out else ""
        words += [f"learned with noise: {', '.join(done.learned) or 'nothing'}{left}"]
    if done.relations:
        facts |= {"relations": list(done.relations)}
        words += ["relations found with noise:", *(f"  {words}" for words in done.relations)]
    words += [
        f"Next: read {done.bundle / 'report.html'}. Check the bundle before you share it: covey verify {done.bundle}"
    ]
    say(as_json, facts, "\n".join(words))


@command("covey anonymize patients.csv --schema schema.json --group-size 20 --out anonymous/")
@table_options
@click.option("--group-size", type=int, required=True, help="Smallest number of rows in a group.")
@click.option(
    "--method",
    type=click.Choice(["tree", "paper", "mdav", "best"]),
    default="tree",
    show_default=True,
    help="Grouping.",
)
@click.option(
    "--sensitive", multiple=True, metavar="FIELD", help="Print how many groups agree on this field (confidential)."
)
@options(*BUNDLE)
def anonymize(source: Any, group_size: int, as_json: bool, **said: Any) -> None:
    """Make an anonymous bundle from TABLE by microaggregation. It is NOT differentially private."""
    from covey.workflow import AnonymousOrder
    from covey.workflow import anonymize as carry_out

    done = carry_out(AnonymousOrder(table=source, group_size=group_size, **said))
    for name, agreeing in done.agreeing:  # to the steward's eyes alone: standard error, never the bundle
        click.echo(f"confidential: {agreeing} of {done.groups} groups agree on {name!r} and disclose it", err=True)
    facts = {"bundle": str(done.bundle), "groups": done.groups, "group_size": group_size, "private": False}
    say(as_json, facts, f"bundle → {done.bundle}\n{done.privacy}")
