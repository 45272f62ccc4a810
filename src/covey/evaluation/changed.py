"""What the schema of a bundle made of the true table: cells moved, merged, emptied, filled or coarsened, and columns left out.

Confidential like all of the evaluation. A bundle knows the table only as its schema reads it, so this comes before all figures.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from covey.engine.arrays import Integers
from covey.release.numbers import shown, there
from covey.tables.attributes import MISSING, Attribute, ColumnLog, Grid, Labels, parted
from covey.tables.codec import Codec
from covey.tables.columns import MISSING_WORDS, Table, as_text, cell_by_cell, parse
from covey.tables.fields import LARGEST
from covey.tables.rules import Mask

UNKNOWN = -1  # the cell of a word that is no category: those of categories count from 0
ROUNDED = 1e-6  # of a step of the precision: floats are off by less


@dataclass(frozen=True)
class Changes:
    """Which cells the schema changed, by column and kind; numbers as they stand; columns of the table that the bundle lacks."""

    left_out: tuple[str, ...] = ()
    kinds: Mapping[str, Mapping[str, Mask]] = field(default_factory=dict)
    values: Mapping[str, Integers] = field(default_factory=dict)  # cells of numbers that lie beyond their limits

    @classmethod
    def of(cls, codec: Codec, table: Table, cells: Integers, binned: bool) -> Changes:
        """By a table and its cells as the schema reads them; `binned` where a release knows numbers by their declared bins."""
        kinds: dict[str, dict[str, Mask]] = {}
        values: dict[str, Integers] = {}
        for j, name in enumerate(codec.names):
            if name in codec.schema.together:
                wanted = parted(cells[:, j], codec.schema.together[name][1], codec.given.attributes)
                wrong = [_plainly(codec.given.attributes[own], table) != is_ for own, is_ in wanted.items()]
                kinds[name] = {"broken": rows} if (rows := np.logical_or.reduce(wrong)).any() else {}
                continue
            attribute, column = codec.attributes[name], cell_by_cell(table.columns[name])
            if isinstance(attribute, Labels):
                own = _plainly(attribute, table)
                kind = "emptied" if attribute.unknown == MISSING else "merged"
                found = {kind: own == UNKNOWN, "filled": (own == MISSING) & (cells[:, j] != MISSING)}
            else:
                found, values[name] = _number_changes(attribute, column, cells[:, j], binned)
            kinds[name] = {kind: rows for kind, rows in found.items() if rows.any()}
        return cls(table.ignored, kinds, {name: own for name, own in values.items() if "moved" in kinds[name]})

    def taking(self, places: Integers) -> Changes:
        """The same of some rows, in another order or several times."""
        kinds = {name: {kind: rows[places] for kind, rows in own.items()} for name, own in self.kinds.items()}
        return Changes(self.left_out, kinds, {name: cells[places] for name, cells in self.values.items()})

    def stand(self, codec: Codec, cells: Integers) -> Integers:
        """Cells with numbers as they stand, beyond limits too."""
        out = cells.copy()
        for name, own in self.values.items():
            out[:, codec.names.index(name)] = own
        return out

    def lost(self, name: str) -> Mask | None:
        """Rows whose cell became something else: all but what is only coarser. None where there is none."""
        found = [rows for kind, rows in self.kinds.get(name, {}).items() if kind != "coarsened"]
        return np.asarray(np.any(found, axis=0)) if found else None

    def figures(self, codec: Codec) -> dict[str, Any]:
        """Shares of cells by column and kind, the worst column first."""
        columns = {name: self._column(codec, name) for name in codec.names}
        shares = {name: 0.0 if (lost := self.lost(name)) is None else float(lost.mean()) for name in columns}
        order = sorted((n for n in columns if self.kinds.get(n)), key=lambda n: (-shares[n], codec.names.index(n)))
        total = len(codec.schema.names) + len(self.left_out)
        return {
            "left_out": {"columns": list(self.left_out), "of": total, "share": len(self.left_out) / total},
            "cells": float(np.mean(list(shares.values()))),
            "columns": {name: {"share": shares[name], **columns[name]} for name in order},
        }

    def _column(self, codec: Codec, name: str) -> dict[str, Any]:
        own, attribute = self.kinds.get(name, {}), codec.attributes[name]
        out: dict[str, Any] = {kind: float(rows.mean()) for kind, rows in own.items()}
        if isinstance(attribute, Labels) and "merged" in own:
            out["into"] = attribute.field.labels[attribute.unknown]
        if isinstance(attribute, Grid) and "moved" in own:
            ends = attribute.value(np.array([attribute.axis.low, attribute.axis.high]))
            out["limits"] = [shown(attribute, end) for end in ends]
            true = self.values[name][there(self.values[name])]
            moved = np.clip(true, attribute.axis.low, attribute.axis.high)
            out["mean"] = [shown(attribute, attribute.value(v).mean()) for v in (true, moved)]
        if "emptied" in own:
            out["type"] = attribute.field.type
        return out


def _plainly(attribute: Attribute, table: Table) -> Integers:
    """Cells of labels as they stand: missing, or unknown."""
    plain = copy(attribute)
    plain.fill = MISSING
    plain.unknown = UNKNOWN  # type: ignore[union-attr] # labels alone
    return plain.read(cell_by_cell(table.columns[attribute.field.name]), ColumnLog())


def _number_changes(attribute: Grid, column: Any, cells: Integers, binned: bool) -> tuple[dict[str, Mask], Integers]:
    plain = copy(attribute)
    plain.fill = MISSING
    own = plain.read(column, ColumnLog())
    axis, steps = attribute.axis, parse(column, attribute.field.type) * attribute.scale
    values = np.nan_to_num(steps, nan=0.0)
    inside = there(own)
    beyond = inside & ((values < axis.low - 0.5) | (values > axis.high + 0.5))
    stands = np.where(beyond, np.rint(np.clip(values, -LARGEST, LARGEST)), 0).astype(np.int64)
    fine = ~inside | beyond | (np.abs(values - np.rint(values)) <= ROUNDED)
    if binned and attribute.field.bins is not None:
        fine &= ~inside | (axis.ends == axis.starts)[attribute.bin_of(cells)]
    text = as_text(column).str.strip_chars()
    said = text.is_null() | text.str.to_lowercase().is_in(list(MISSING_WORDS))
    said |= text.is_in(list(attribute.missing_values))
    found = {
        "moved": beyond,
        "emptied": (own == MISSING) & ~said.to_numpy(),
        "filled": (own == MISSING) & (cells != MISSING),
        "coarsened": ~fine,
    }
    return found, np.where(beyond, stands, cells)
