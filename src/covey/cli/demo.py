"""An example to look at."""

from __future__ import annotations

import json
from pathlib import Path

import click

from covey.cli.group import example, main
from covey.cli.options import force_option, json_option


@main.command(epilog=example("covey demo --out demo/", "covey demo --table visits.csv"))
@click.option("--out", "out", type=Path, default=Path("covey-demo"), show_default=True)
@click.option("--rows", type=int, default=20_000, show_default=True)
@click.option("--table", type=Path, help="Only write an example table with names, numbers, dates and missing values.")
@force_option
@json_option
def demo(out: Path, rows: int, table: Path | None, force: bool, as_json: bool) -> None:
    """Take a table of fictitious patients the whole way: draft, release, verify, evaluate."""
    from covey.demo import demonstrate, write_example

    said: list[str] = []
    tell = said.append if as_json else click.echo
    if table is not None:
        write_example(table, rows, force, tell)
    else:
        demonstrate(out, rows, force, tell)
    if as_json:
        click.echo(json.dumps({"out": str(out), "words": "".join(f"{line}\n" for line in said)}, ensure_ascii=False))
