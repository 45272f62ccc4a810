"""The columns of a table on their way in: frames of every kind become polars columns, matched by name to the schema."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.core.arrays import Array
from covey.errors import InputError
from covey.table.schema import GUARDED, Schema, optional

if TYPE_CHECKING:
    from polars import Series

FIELD_LIMIT = 2**20  # bytes in one cell


@dataclass(frozen=True)
class Words:
    """A column that is stored as places in a short list of words, as Parquet stores text; −1 is missing."""

    places: Array
    words: Series

    def slice(self, start: int, length: int) -> Words:
        """A part of the column."""
        return Words(self.places[start : start + length], self.words)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True)
class Table:
    """The columns of a table as they were read, and what was passed over. Private: it stays with the data's owner."""

    columns: Mapping[str, Any]  # polars Series, or Words where a file stores them so
    rows: int
    kind: str  # csv, parquet, arrow, pandas, polars, pyarrow, columns or a database
    short_rows: int = 0
    long_rows: int = 0
    ignored: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Table({self.rows} rows, {len(self.columns)} columns, from {self.kind})"


def guarded(label: str) -> str:
    """A label that no spreadsheet takes for a formula."""
    return f"'{label}" if label.startswith(GUARDED) else label


def unguarded(label: str) -> str:
    """The label before it was guarded."""
    return label[1:] if label.startswith("'") and label[1:].startswith(GUARDED) else label


def match(names: list[str], schema: Schema | None) -> tuple[dict[str, int], tuple[str, ...]]:
    """Where each needed column is, and the names that are passed over."""
    places: dict[str, int] = {}
    known = None if schema is None else set(schema.names)
    for j, name in enumerate(names):
        name = name.strip()
        read = name if known is None or name in known else unguarded(name)
        if read in places and read:
            raise InputError(f"the table has two columns named {read!r}. Rename one.")
        places[read] = j
    if schema is None:
        places.pop("", None)
        return places, ()
    needed = [field.name for field in schema.encoded]
    for name in needed:
        if name not in places:
            raise InputError(
                f"the table has no column {name!r}. It has {', '.join(map(repr, names[:20]))}; names must match exactly, "
                "and CSV is separated by commas."
            )
    return {name: places[name] for name in needed}, tuple(n for n in places if known is not None and n not in known)


def as_series(name: str, values: Any) -> Series:
    """Values of any kind as a column; mixed ones become text."""
    pl = optional("polars")
    if isinstance(values, pl.Series):
        return plain(values).alias(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        out: Series = pl.Series(name, values)
        return out
    values = list(values)
    try:
        return plain(pl.Series(name, values, strict=True))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return texts(name, values)


def plain(series: Series) -> Series:
    """Columns of nested or unknown things become text, cell by cell."""
    pl = optional("polars")
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary, pl.Duration):
        return texts(series.name, series.to_list())
    return series


def texts(name: str, values: list[Any]) -> Series:
    """A column of text."""
    out: Series = optional("polars").Series(name, [text(v) for v in values], dtype=optional("polars").String)
    return out


def text(value: Any) -> str | None:
    """A cell as text, None for a missing one."""
    if value is None or (isinstance(value, float) and value != value):
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace").decode()  # half a surrogate pair is no text
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating) and float(value).is_integer() and abs(float(value)) < 2**53:
        return str(int(value))
    return str(value)


def check_cells(name: str, series: Series, limit: int) -> None:
    """Refuse a column with a cell beyond the limit."""
    if series.dtype == optional("polars").String and bool((series.str.len_bytes() > limit).any()):
        raise InputError(f"column {name!r} has a cell of more than {limit} bytes, the limit. Shorten it.")
