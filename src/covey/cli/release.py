"""Releases: differentially private, or anonymous."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import click

from covey.cli.group import advice, example, main, say
from covey.cli.options import (
    delta_option,
    dialect_options,
    epsilon_option,
    force_option,
    important_option,
    json_option,
    ledger_option,
    log_option,
    number,
    out_option,
    person_option,
    query_option,
    source_of,
    table_option,
    target_option,
    triples_option,
)


@main.command(
    epilog=example(
        "covey release patients.csv --schema schema.json --epsilon 1 --dataset patients --out release/",
        "covey release patients.csv --learn --epsilon 1 --delta 1e-9 --dataset patients --out release/",
        "covey release package.json --epsilon 1 --delta 1e-9 --dataset patients --out release/",
        "covey release postgresql://localhost/clinic --table patients --schema schema.json …",
    )
)
@click.argument("table")
@click.option("--schema", "schema_path", type=Path, help="The public schema (JSON or YAML); --learn needs none.")
@click.option(
    "--learn",
    is_flag=True,
    help="Learn limits and categories that no schema confirms, with noise, for a tenth of the budget; texts need --delta. "
    "Names and types of all columns become public; cells are read as --decimal, --thousands and --date-format say.",
)
@epsilon_option
@delta_option
@click.option("--rows", "m", type=int, help="Synthetic rows (default: as many as the table has rows, or persons).")
@click.option("--dataset", help="Name of the dataset in the ledger.")
@person_option
@important_option
@target_option
@triples_option
@click.option(
    "--prior",
    type=Path,
    metavar="BUNDLE",
    help="An earlier private bundle of the same schema: public information, used where it agrees with what is measured.",
)
@click.option(
    "--rows-per-person",
    type=int,
    default=1,
    show_default=True,
    help="Rows one person may have, where no column tells persons apart.",
)
@click.option("--parquet", is_flag=True, help="Write synthetic.parquet instead of synthetic.csv.")
@click.option("--confirm-large-epsilon", is_flag=True, help="Allow ε above 10.")
@click.option(
    "--accept-misfits",
    callback=number("accept-misfits"),
    default="0.05",
    show_default=True,
    metavar="SHARE",
    help="Go on if up to this share of a column's cells does not fit the schema.",
)
@click.option("--title", default="", help="Title on the first page of the report.")
@click.option("--owner", default="", help="Who answers for the release, on the same page.")
@click.option("--purpose", default="", help="What it is for, on the same page.")
@click.option("--seed", type=int, help="For tests only: not private, not charged, and marked so.")
@log_option
@table_option
@query_option
@dialect_options
@ledger_option
@out_option
@force_option
@json_option
def release(  # click passes each option by its name
    table: str,
    schema_path: Path | None,
    learn: bool,
    epsilon: Fraction | None,
    delta: Fraction,
    m: int | None,
    dataset: str | None,
    person: str | None,
    important: tuple[tuple[str, ...], ...],
    target: str | None,
    triples: int | None,
    prior: Path | None,
    rows_per_person: int,
    parquet: bool,
    confirm_large_epsilon: bool,
    accept_misfits: Fraction,
    title: str,
    owner: str,
    purpose: str,
    seed: int | None,
    log_path: Path | None,
    relation: str | None,
    sql: str | None,
    dialect: Any,
    ledger_path: Path | None,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Make a differentially private bundle from TABLE, and charge the ledger for it.

    TABLE may be a package file, which describes persons with events and says in which files they lie; it takes no --schema.
    """
    from covey.release.contents import About
    from covey.workflow import PrivateOrder
    from covey.workflow import release as carry_out

    order = PrivateOrder(
        table=source_of(table, relation, sql),
        schema=schema_path,
        out=out,
        epsilon=epsilon,
        delta=delta,
        dataset=dataset,
        rows=m,
        person=person,
        important=important,
        target=target,
        triples=triples,
        prior=prior,
        rows_per_person=rows_per_person,
        parquet=parquet,
        confirm_large_epsilon=confirm_large_epsilon,
        accept_misfits=accept_misfits,
        seed=seed,
        log=log_path,
        dialect=dialect,
        ledger=ledger_path,
        force=force,
        learn=learn,
        about=About(title, owner, purpose),
    )
    with advice():
        done = carry_out(order)
    facts = {
        "bundle": str(done.bundle),
        "rows": done.rows,
        "certificate": done.certificate,
        "privacy": done.privacy,
    }
    words = f"bundle → {done.bundle}\n{done.privacy}\n{done.certificate or ''}".rstrip()
    if done.mended is not None:
        facts |= {"rows_altered_by_rules": done.mended}
        words += f"\nrules: {done.mended:,} of {done.rows:,} rows had to be altered after drawing"
    if done.learned or done.left_out:
        facts |= {"learned": list(done.learned), "left_out": list(done.left_out)}
        words += f"\nlearned with noise: {', '.join(done.learned) or 'nothing'}"
        words += f"; left out: {', '.join(done.left_out)}" if done.left_out else ""
    say(as_json, facts, words)


@main.command(epilog=example("covey anonymize patients.csv --schema schema.json --group-size 20 --out anonymous/"))
@click.argument("table")
@click.option("--schema", "schema_path", type=Path, help="The public schema (JSON or YAML); a package has its own.")
@click.option("--group-size", type=int, required=True, help="Least number of rows behind every centre.")
@click.option(
    "--method",
    type=click.Choice(["tree", "paper", "mdav", "best"]),
    default="tree",
    show_default=True,
    help="Grouping.",
)
@click.option(
    "--sensitive", multiple=True, metavar="FIELD", help="Tell (you alone) how many groups agree on this field."
)
@click.option("--rows", "m", type=int, help="Synthetic rows (default: as many as the table has).")
@click.option("--parquet", is_flag=True, help="Write synthetic.parquet instead of synthetic.csv.")
@click.option("--seed", type=int, help="Make the sampling reproducible; marked on the bundle.")
@log_option
@table_option
@query_option
@dialect_options
@out_option
@force_option
@json_option
def anonymize(  # click passes each option by its name
    table: str,
    schema_path: Path | None,
    group_size: int,
    method: Any,
    sensitive: tuple[str, ...],
    m: int | None,
    parquet: bool,
    seed: int | None,
    log_path: Path | None,
    relation: str | None,
    sql: str | None,
    dialect: Any,
    out: Path,
    force: bool,
    as_json: bool,
) -> None:
    """Make an anonymous bundle from TABLE by microaggregation. It is NOT differentially private."""
    from covey.workflow import AnonymousOrder
    from covey.workflow import anonymize as carry_out

    order = AnonymousOrder(
        table=source_of(table, relation, sql),
        schema=schema_path,
        out=out,
        group_size=group_size,
        method=method,
        sensitive=sensitive,
        rows=m,
        parquet=parquet,
        seed=seed,
        log=log_path,
        dialect=dialect,
        force=force,
    )
    done = carry_out(order)
    for name, agreeing in done.agreeing:  # to the steward's eyes alone: standard error, never the bundle
        click.echo(
            f"confidential: {agreeing} of {done.groups} groups agree on {name!r} and disclose it",
            err=True,
        )
    facts = {"bundle": str(done.bundle), "groups": done.groups, "group_size": group_size, "private": False}
    say(as_json, facts, f"bundle → {done.bundle}\n{done.privacy}")
