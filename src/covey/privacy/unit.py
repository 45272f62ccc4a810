"""How many rows of a person a promise covers: a number, or all of them. Ledgers and bundles write it so."""

from __future__ import annotations

from typing import Literal

Unit = int | Literal["all"]
ALL_ROWS: Literal["all"] = "all"  # a person with all their rows, however many
