"""What a column is expected to be, from the cells of others: its own cells, record by record."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.table.attributes import MISSING, Attribute, Grid, Labels
from covey.table.derived_fields import Derived, leading_number
from covey.table.domain import Cells

_SECONDS = {"date": 86400.0}  # of a cell of dates; other times count in seconds


def expected_cells(name: str, expected: Derived, attributes: Mapping[str, Attribute], cells: Cells) -> Integers:
    """The cells that a column should have; MISSING where it should be missing."""
    own = attributes[name]
    if isinstance(own, Grid):
        found = expected.evaluate({base: _values(attributes[base], cells[base]) for base in expected.bases})
        scale = 1 / _SECONDS[own.field.type] if own.field.type in _SECONDS else 10.0**own.axis.decimals
        with np.errstate(all="ignore"):
            steps = np.floor(found * scale) if own.field.type in ("date", "datetime") else np.rint(found * scale)
        there = np.isfinite(steps)
        return np.where(there, np.clip(np.where(there, steps, 0), own.axis.low, own.axis.high), MISSING).astype(
            np.int64
        )
    base = attributes[expected.bases[0]]
    place: dict[object, int] = {label: j for j, label in enumerate(own.field.labels)}
    place |= {False: 0, True: 1} if own.field.type == "boolean" else {}
    listed = {key[0]: place.get(value, MISSING) for key, value in expected.entries}
    column = cells[expected.bases[0]]
    if isinstance(base, Labels):
        known = [listed.get(label, MISSING) for label in base.field.labels]
        table = np.array([*known, listed.get(None, MISSING)], dtype=np.int64)
        return table[np.where(column == MISSING, len(known), column)]
    values = _values(base, column)
    table = np.array([place.get(label, MISSING) for label in expected.labels], dtype=np.int64)
    where = np.searchsorted(np.array(expected.edges), np.nan_to_num(values), side="right") - 1
    inside = np.isfinite(values) & (where >= 0) & (where < len(table))
    missing = np.full(len(column), listed.get(None, MISSING))
    return np.where(inside, table[np.clip(where, 0, len(table) - 1)], missing)


def _values(grid: Attribute, cells: Integers) -> Floats:
    """Numbers, seconds of dates, or what texts begin with, as expressions count them; NaN where there is no value."""
    if isinstance(grid, Labels):
        known = np.array([*map(leading_number, grid.field.labels), np.nan])
        return np.asarray(known[np.where(cells == MISSING, len(known) - 1, cells)])
    there = grid.has_value(cells)
    scale = _SECONDS.get(grid.field.type, 10.0**-grid.axis.decimals)
    return np.where(there, np.where(there, cells, 0) * scale, np.nan)
