"""Numbers that would be read as something else: as missing, or as a special value.

With −1 for missing and limits from −5 to 100, no true row has the number −1, and a synthetic one must not have it either.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.engine.arrays import Integers
from covey.tables.attributes import MISSING, Attribute, Grid, between
from covey.tables.fields import ORDERED_TYPES, Field
from covey.tables.rules import Cells, Mask, Rule


@dataclass(frozen=True)
class Readable(Rule):
    """A field holds none of these steps, which mean something else; it takes the nearest other one, or is missing."""

    name: str
    steps: tuple[int, ...]
    nearest: tuple[int, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The field."""
        return (self.name,)

    @property
    def words(self) -> str:
        """The rule in plain words."""
        return f"{self.name} is no number that stands for missing or for a special value."

    def to_dict(self) -> dict[str, Any]:
        """It stands in no file, but follows from what is missing or special."""
        return {"readable": self.name}

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Numbers, dates and times."""
        return ORDERED_TYPES

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows hold such a step."""
        return np.isin(cells[self.name], self.steps)

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Take the nearest step that is a number."""
        column = cells[self.name]
        column[rows] = np.array(self.nearest, dtype=np.int64)[np.searchsorted(self.steps, column[rows])]


def readable(attributes: Mapping[str, Attribute]) -> list[Rule]:
    """Such a rule for each number or date that needs one: nearly always none does."""
    grids = {name: grid for name, grid in attributes.items() if isinstance(grid, Grid)}
    found = {name: grid.unreadable for name, grid in grids.items()}
    return [Readable(name, steps, _nearest(grids[name], steps)) for name, steps in found.items() if steps]


def _nearest(grid: Grid, steps: tuple[int, ...]) -> tuple[int, ...]:
    free = between([(step, step) for step in steps], grid.axis.low, grid.axis.high)
    if free:
        ends = np.array(free, dtype=np.int64).ravel()
        return tuple(int(ends[np.abs(ends - step).argmin()]) for step in steps)
    if grid.field.required and not grid.field.learned:  # a learned one is met after the charge, when nothing may fail
        raise grid.field.wrong("is required, and all its numbers mean missing or special", "Widen its limits.")
    return (MISSING,) * len(steps)
