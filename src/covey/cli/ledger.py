"""The ledger: datasets, what is left of each, and every charge."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import click

from covey.cli.family import example, main, say
from covey.cli.options import (
    json_option,
    ledger_at,
    ledger_option,
    number,
)


@main.group()
def ledger() -> None:
    """Keep count of what each dataset has spent."""


@ledger.command("open", epilog=example("covey ledger open patients --budget 3"))
@click.argument("name")
@click.option("--budget", callback=number("budget"), required=True, help="Cap on the sum of ε.")
@click.option(
    "--delta-budget", callback=number("delta-budget"), default="1e-6", show_default=True, help="Cap on the sum of δ."
)
@ledger_option
@json_option
def ledger_open(name: str, budget: Fraction, delta_budget: Fraction, ledger_path: Path | None, as_json: bool) -> None:
    """Open a dataset with a budget. The cap is final."""
    book = ledger_at(ledger_path)
    book.open_dataset(name, budget, delta_budget)
    say(as_json, {"dataset": name, "budget": float(budget)}, f"{name}: budget ε = {float(budget):g}")


@ledger.command("show", epilog=example("covey ledger show"))
@ledger_option
@json_option
def ledger_show(ledger_path: Path | None, as_json: bool) -> None:
    """Show every dataset with what is spent and left."""
    found = ledger_at(ledger_path).datasets()
    facts = [
        {
            "dataset": d.name,
            "budget": float(d.budget.epsilon),
            "spent": float(d.spent.epsilon),
            "left": float(d.remaining.epsilon),
        }
        for d in found
    ]
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    if not facts:
        click.echo("no dataset was opened yet: covey ledger open NAME --budget B")
        return
    from rich.console import Console
    from rich.table import Table

    grid = Table("dataset", "budget ε", "spent", "left")
    for fact in facts:
        grid.add_row(str(fact["dataset"]), *(f"{fact[key]:g}" for key in ("budget", "spent", "left")))
    Console().print(grid)


@ledger.command("history", epilog=example("covey ledger history patients"))
@click.argument("name")
@ledger_option
@json_option
def ledger_history(name: str, ledger_path: Path | None, as_json: bool) -> None:
    """List every charge of a dataset."""
    from covey.privacy.budget import shown

    events = ledger_at(ledger_path).history(name)
    facts = [
        {
            "time": event.time,
            "kind": event.kind,
            "epsilon": float(event.amount.epsilon),
            "delta": float(event.amount.delta),
            "purpose": event.purpose or "",
        }
        for event in events
    ]
    words = "\n".join(
        f"{e['time']}  {e['kind']:9} ε {e['epsilon']:g}  δ {shown(e['delta'])}  {e['purpose']}" for e in facts
    )
    say(as_json, {"dataset": name, "events": facts}, words or "no charges yet")
