"""Whom a promise covers, and which tables it compares. Ledgers and bundles write both so."""

from __future__ import annotations

from typing import Literal

Unit = int | Literal["all"]
ALL_ROWS: Literal["all"] = "all"  # a person with all their rows, however many

Neighbours = Literal["replace-one", "add-or-remove-one"]
REPLACE: Neighbours = "replace-one"  # one unit is replaced by another: the number of units is public
ADD_REMOVE: Neighbours = "add-or-remove-one"  # one unit more or less: the number of units is secret
