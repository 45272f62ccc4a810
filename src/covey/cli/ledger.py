"""The ledger: datasets, what is left of each, and every charge."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from covey.cli.group import example, grid, ledger_at, main, number, options, say

if TYPE_CHECKING:
    from covey.privacy.ledger import Composition
    from covey.privacy.unit import Neighbours


@main.group()
def ledger() -> None:
    """Keep count of what each dataset has spent."""


@ledger.command("open", epilog=example("covey ledger open patients --budget 3"))
@click.argument("name")
@click.option("--budget", callback=number, required=True, help="Cap on the ε of all releases together.")
@click.option(
    "--delta-budget", callback=number, default="1e-6", show_default=True, help="Cap on the δ of all releases together."
)
@click.option(
    "--composition",
    type=click.Choice(["sum", "gaussian"]),
    help=(
        "How releases add up: by sums of ε and δ, or by sums of μ², which allows more (ε, δ) releases and fewer pure ones. By "
        "default the first release decides."
    ),
)
@options("neighbours", "ledger", "json")
def ledger_open(  # click passes each option by its name
    name: str,
    budget: Fraction,
    delta_budget: Fraction,
    composition: Composition | None,
    neighbours: Neighbours,
    ledger: Path | None,
    as_json: bool,
) -> None:
    """Open a dataset with a budget. The cap is final, and so is how it is counted."""
    book = ledger_at(ledger)
    book.open_dataset(name, budget, delta_budget, composition, neighbours)
    facts = {"dataset": name, "budget": float(budget), "composition": composition, "neighbours": neighbours}
    counted = f", counted by {'μ²' if composition == 'gaussian' else 'sums'}" if composition else ""
    say(as_json, facts, f"{name}: budget ε = {float(budget):g}{counted}")


@ledger.command("show", epilog=example("covey ledger show"))
@options("ledger", "json")
def ledger_show(ledger: Path | None, as_json: bool) -> None:
    """Show every dataset with what is spent and left."""
    found = ledger_at(ledger).datasets()
    facts = [
        {
            "dataset": d.name,
            "budget": float(d.budget.epsilon),
            "budget_delta": float(d.budget.delta),
            "composition": d.composition,
            "neighbours": d.neighbours,
            "spent": float(d.spent.epsilon),
            "spent_delta": float(d.spent.delta),
            "left": float(d.remaining.epsilon),
            "left_delta": float(d.remaining.delta),
            "left_pure": float(d.left(Fraction(0))),
        }
        for d in found
    ]
    if as_json:
        click.echo(json.dumps(facts, ensure_ascii=False))
        return
    if not facts:
        click.echo("no dataset was opened yet: covey ledger open NAME --budget B")
        return
    from covey.privacy.budget import parameters

    ways = {None: "the first release decides", "sum": "sums of ε and δ", "gaussian": "μ²"}
    rows = [
        (
            d.name,
            *(parameters(a.epsilon, a.delta) for a in (d.budget, d.spent, d.remaining)),
            parameters(d.left(Fraction(0)), 0),
            ways[d.composition],
            d.neighbours,
        )
        for d in found
    ]
    click.echo("\n".join(grid(("dataset", "budget", "spent", "left", "left, pure", "counted by", "neighbours"), rows)))


@ledger.command("history", epilog=example("covey ledger history patients"))
@click.argument("name")
@options("ledger", "json")
def ledger_history(name: str, ledger: Path | None, as_json: bool) -> None:
    """List every charge of a dataset."""
    from covey.privacy.budget import shown

    events = ledger_at(ledger).history(name)
    facts = [
        {
            "time": event.time,
            "kind": event.kind,
            "epsilon": float(event.amount.epsilon),
            "delta": float(event.amount.delta),
            "composition": event.composition,
            "purpose": event.purpose or "",
        }
        for event in events
    ]
    rows = [(e["time"], e["kind"], f"{e['epsilon']:g}", shown(e["delta"]), e["purpose"]) for e in facts]
    words = "\n".join(grid(("time", "kind", "ε", "δ", "purpose"), rows)) if rows else ""
    say(as_json, {"dataset": name, "events": facts}, words or "no charges yet")
