"""Small pictures of true columns, for their owner's screen: nothing of them is written anywhere or leaves the machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as entry
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Floats
from covey.release.summary import point
from covey.tables.column_drafts import present, word_counts
from covey.tables.columns import parse, spelled, spellings
from covey.tables.dialects import Spelling
from covey.tables.fields import ORDERED_TYPES, Field
from covey.tables.rules import Domain
from covey.tables.schema import Schema
from covey.tables.sources import read_table

BARS = 30  # as many as can be told apart in a picture the width of a thumb
MOST_LABELS = 20  # bars of categories, the most frequent first
AROUND = 0.08  # of the range, left free on both sides, so that a limit can be drawn beyond the data
MASS = 0.1  # share of one single value that is worth a word
KEPT = 20_000_000  # cells of a table up to which their values are kept in memory to be counted: 160 MB
VISIBLE = 0.05  # height of the smallest bar: a long tail must be seen


@dataclass(frozen=True)
class Picture:
    """A histogram: bars of height 0 to 1, the ends of its axis for numbers and dates, and what to know. Confidential.

    `values`, sorted, or `labels` with their counts say how many cells limits or categories would leave outside.
    """

    bars: tuple[float, ...]
    words: str
    low: float | None = None
    high: float | None = None
    values: Floats | None = entry(default=None, repr=False, compare=False)
    labels: Mapping[str, int] | None = entry(default=None, repr=False, compare=False)

    def outside(self, field: Field) -> int | None:
        """Cells that lie beyond the limits of a field or in none of its categories; None where that was not counted."""
        if self.values is not None and field.type in ORDERED_TYPES and None not in (field.minimum, field.maximum):
            # As the field's cells are read: days or seconds for dates and times.
            read: Any = float if field.type in ("integer", "number") else field.on_grid
            low, high = (read(end) for end in (field.minimum, field.maximum))
            return int(
                np.searchsorted(self.values, low) + len(self.values) - np.searchsorted(self.values, high, "right")
            )
        if self.labels is not None and field.type == "string" and field.enum:
            listed = {*field.enum, field.other}
            return sum(count for label, count in self.labels.items() if label not in listed)
        return None


def pictures(path: Path, schema: Schema, fields: Sequence[Field]) -> dict[str, Picture]:
    """A picture of each of these columns of a table, which is read as its schema says."""
    table, missing = read_table(path, dialect=schema.dialect), schema.missing_values
    out = {}
    kept = table.rows * len(fields) <= KEPT
    written = spellings(Domain(tuple(fields)), table.origin)
    for field in fields:
        if field.name in table.columns:
            series = spelled(table.columns[field.name], written.get(field.name, Spelling()))
            drawn = _picture(series, field, missing)
            out[field.name] = drawn if kept else replace(drawn, values=None, labels=None)
    return out


def _picture(series: Any, field: Field, missing: tuple[str, ...]) -> Picture:
    rows = len(series)
    if field.type in ORDERED_TYPES:
        values = parse(series, field.type)
        values = values[np.isfinite(values)]
        return _of_numbers(values, rows, field) if len(values) else Picture((), "no cell has this type")
    labels = word_counts(present(series, missing))
    shares = np.array(list(labels.values())) / max(rows, 1)
    if not len(shares):
        return Picture((), "every cell is missing")
    words = f"{len(shares):,} different; the most frequent holds {shares[0]:.0%}"
    return Picture(_heights(shares[:MOST_LABELS]), words + _gaps(1 - float(shares.sum())), labels=labels)


def _of_numbers(values: Floats, rows: int, field: Field) -> Picture:
    low, high = float(values.min()), float(values.max())
    room = AROUND * (high - low) or 1.0
    counts, _ = np.histogram(values, BARS, (low - room, high + room))
    middle, most = (_shown(float(v), field) for v in np.quantile(values, (0.5, 0.99)))
    words = f"half below {middle}, 1% above {most}"
    distinct, times = np.unique(values, return_counts=True)
    top = int(times.argmax())
    if times[top] >= MASS * rows and len(distinct) > MOST_LABELS:
        words += f"; {times[top] / rows:.0%} are exactly {_shown(float(distinct[top]), field)}"
    words += _gaps(1 - len(values) / rows)
    return Picture(_heights(counts / counts.max()), words, low - room, high + room, np.sort(values))


def _heights(shares: Floats) -> tuple[float, ...]:
    scaled = shares / max(float(shares.max()), 1e-12)
    return tuple(round(float(max(s, VISIBLE)), 3) if s > 0 else 0.0 for s in scaled)


def _gaps(share: float) -> str:
    return f"; {share:.0%} missing" if share >= 0.005 else ""


def _shown(value: float, field: Field) -> str:
    if field.type not in ("integer", "number"):
        return point(field, int(value))
    return f"{value:,.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
