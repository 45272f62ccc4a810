"""The ledger: datasets, what is left of each, and every charge."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

import click

from covey.desk.cli.group import example, grid, ledger_at, main, number, options, say

if TYPE_CHECKING:
    from covey.engine.unit import Neighbours
    from covey.ledger import Composition


@main.group()
def ledger() -> None:
    """Keep count of the privacy budget of each dataset."""


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
    from covey.engine.budget import parameters

    found = ledger_at(ledger).datasets()
    facts, rows = [], []
    ways = {None: "the first release decides", "sum": "sums of ε and δ", "gaussian": "μ²"}
    for d in found:
        amounts, pure = {"budget": d.budget, "spent": d.spent, "left": d.remaining}, d.left(Fraction(0))
        own = {"dataset": d.name, "composition": d.composition, "neighbours": d.neighbours, "left_pure": float(pure)}
        own |= {"rows_per_person": d.rows_per_person}
        own |= {name: float(amount.epsilon) for name, amount in amounts.items()}
        facts.append(own | {f"{name}_delta": float(amount.delta) for name, amount in amounts.items()})
        shown = (parameters(amount.epsilon, amount.delta) for amount in amounts.values())
        rows.append((d.name, *shown, parameters(pure, 0), ways[d.composition], d.protects, d.neighbours))
    head = ("dataset", "budget", "spent", "left", "left, pure", "counted by", "protects", "neighbours")
    words = "\n".join(grid(head, rows)) if rows else "no dataset was opened yet: covey ledger open NAME --budget B"
    if any(d.composition == "gaussian" for d in found):
        words += "\nBy μ² several releases cost less than the sum of their ε. The ε spent and left go with the δ beside them."
    say(as_json, facts, words)


@ledger.command("history", epilog=example("covey ledger history patients"))
@click.argument("name")
@options("ledger", "json")
def ledger_history(name: str, ledger: Path | None, as_json: bool) -> None:
    """List every charge of a dataset."""
    from covey.engine.budget import shown
    from covey.engine.unit import unit_words

    events = ledger_at(ledger).history(name)
    names = ("time", "kind", "epsilon", "delta", "composition", "purpose", "rows_per_person", "neighbours")
    amounts = [(float(event.amount.epsilon), float(event.amount.delta)) for event in events]
    found = [
        (e.time, e.kind, *amount, e.composition, e.purpose or "", e.rows_per_person, e.neighbours)
        for e, amount in zip(events, amounts, strict=True)
    ]
    facts = [dict(zip(names, event, strict=True)) for event in found]
    protected = [unit_words(e.rows_per_person) if e.kind == "charge" else "" for e in events]
    rows = [
        (e.time, e.kind, f"{epsilon:g}", shown(delta), unit, e.purpose or "")
        for e, (epsilon, delta), unit in zip(events, amounts, protected, strict=True)
    ]
    words = "\n".join(grid(("time", "kind", "ε", "δ", "protects", "purpose"), rows)) if rows else ""
    say(as_json, {"dataset": name, "events": facts}, words or "no charges yet")
