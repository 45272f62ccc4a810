"""Releases: differentially private, or anonymous."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from covey.cli.group import advice, example, main, say
from covey.cli.options import (
    bundle_options,
    delta_option,
    epsilon_option,
    focus_options,
    ledger_option,
    neighbours_option,
    number,
    person_option,
    table_options,
)


@main.command(
    epilog=example(
        "covey release patients.csv --schema schema.json --epsilon 1 --dataset patients --out release/",
        "covey release patients.csv --learn --epsilon 1 --delta 1e-9 --dataset patients --out release/",
        "covey release package.json --epsilon 1 --delta 1e-9 --dataset patients --out release/",
        "covey release postgresql://localhost/clinic --table patients --schema schema.json …",
    )
)
@table_options
@click.option(
    "--learn",
    is_flag=True,
    help=(
        "Learn limits and categories with noise where no schema confirms them. This takes a tenth of the budget; texts need "
        "--delta. Names and types of all columns become public. Cells are read as --decimal, --thousands and --date-format say."
    ),
)
@click.option(
    "--learn-relations",
    is_flag=True,
    help="Find relations between the columns of a schema with noise, for a tenth of the budget, and keep them; so does --learn.",
)
@epsilon_option
@delta_option
@click.option("--dataset", help="Name of the dataset in the ledger.")
@person_option
@neighbours_option
@focus_options
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
    callback=number("accept-misfits"),
    default="0.05",
    show_default=True,
    metavar="SHARE",
    help="Go on if up to this proportion of a column's cells does not fit the schema.",
)
@click.option("--title", default="", help="Title on the first page of the report.")
@click.option("--owner", default="", help="Who is responsible for the release, on the same page.")
@click.option("--purpose", default="", help="Its purpose, on the same page.")
@ledger_option
@bundle_options
def release(source: Any, title: str, owner: str, purpose: str, as_json: bool, **said: Any) -> None:
    """Make a differentially private bundle from TABLE, and charge the ledger for it.

    TABLE may be a package file, which describes persons with events and says in which files they lie; it takes no --schema.
    """
    from covey.release.contents import About
    from covey.workflow import PrivateOrder
    from covey.workflow import release as carry_out

    with advice():
        done = carry_out(PrivateOrder(table=source, about=About(title, owner, purpose), **said))
    facts = {
        "bundle": str(done.bundle),
        "rows": done.rows,
        "certificate": done.certificate,
        "privacy": done.privacy,
    }
    words = [f"bundle → {done.bundle}", done.privacy, *([done.certificate] if done.certificate else [])]
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


@main.command(epilog=example("covey anonymize patients.csv --schema schema.json --group-size 20 --out anonymous/"))
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
@bundle_options
def anonymize(source: Any, group_size: int, as_json: bool, **said: Any) -> None:
    """Make an anonymous bundle from TABLE by microaggregation. It is NOT differentially private."""
    from covey.workflow import AnonymousOrder
    from covey.workflow import anonymize as carry_out

    done = carry_out(AnonymousOrder(table=source, group_size=group_size, **said))
    for name, agreeing in done.agreeing:  # to the steward's eyes alone: standard error, never the bundle
        click.echo(
            f"confidential: {agreeing} of {done.groups} groups agree on {name!r} and disclose it",
            err=True,
        )
    facts = {"bundle": str(done.bundle), "groups": done.groups, "group_size": group_size, "private": False}
    say(as_json, facts, f"bundle → {done.bundle}\n{done.privacy}")
