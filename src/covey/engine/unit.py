"""Whom a promise covers, and which tables it compares. Ledgers and bundles write both so."""

from __future__ import annotations

from typing import Literal

Unit = int | Literal["all"]
ALL_ROWS: Literal["all"] = "all"  # a person with all their rows, however many

Neighbours = Literal["replace-one", "add-or-remove-one"]
REPLACE: Neighbours = "replace-one"  # one unit is replaced by another: the number of units is public
ADD_REMOVE: Neighbours = "add-or-remove-one"  # one unit more or less: the number of units is secret


def adds_up(unit: Unit, kept: Unit | None) -> bool:
    """Whether a promise to this unit holds for tables that differ in a unit of a cap: any, as long as the cap has none.

    Tables that differ in k rows differ in up to k rows for every larger number. But a replaced row may be taken from one person
    and given to another, or to a new one: such tables differ in two persons, or in how many there are (docs/proofs/filter.md).
    """
    if kept is None:
        return True
    if unit == ALL_ROWS or kept == ALL_ROWS:
        return unit == kept
    return unit >= kept


def unit_words(unit: Unit | None) -> str:
    """Whom a cap is about, in words; None where no charge has said so yet."""
    if unit is None:
        return "whom the first release protects"
    if unit == ALL_ROWS:
        return "a person with all rows"
    return "one row" if unit == 1 else f"up to {unit} rows"
