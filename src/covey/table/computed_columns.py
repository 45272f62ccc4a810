"""Columns that are carried along and never measured: declared constants, and functions of other columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.table.extras import optional
from covey.table.fields import Field

if TYPE_CHECKING:
    from polars import Series


def constant_column(field: Field, rows: int) -> Series:
    """A column that holds the field's declared constant."""
    value = None if field.constant is None else field.constant.value
    one: Series = optional("polars").Series(field.name, [value], dtype=_dtype(field))
    return _as_written(field, one).new_from_index(0, rows)


def derived_column(field: Field, columns: Mapping[str, Series], fields: Sequence[Field] = ()) -> Series:
    """A column that follows from others, in the field's type; an expression is rounded to its precision.

    `fields` are those of the schema: a special value of theirs is no number, even where it looks like one.
    """
    pl = optional("polars")
    assert field.derived is not None  # nosec B101 # for the type checker
    found = field.derived.compute(columns, {own.name: own.special for own in fields if own.special})
    if isinstance(found, list):
        typed = [None if v is None else field.value(v, "derived value") for v in found]
        return _as_written(field, pl.Series(field.name, typed, _dtype(field)))
    if field.type in ("date", "datetime"):  # in seconds
        days = field.type == "date"
        moments = np.floor(found / 86400) if days else np.floor(found) * 1000
        past: Series = pl.Series(field.name, np.where(np.abs(moments) < 2.0**47, moments, np.nan)).fill_nan(None)
        dated: Series = past.cast(pl.Int32 if days else pl.Int64).cast(_dtype(field))
        return dated
    decimals = 0 if field.type != "number" else field.decimals
    values = found if decimals is None else np.round(found, decimals)
    column: Series = pl.Series(field.name, np.where(np.abs(values) < 2.0**53, values, np.nan)).fill_nan(None)
    return _as_written(field, column.cast(_dtype(field)))


def _as_written(field: Field, column: Series) -> Series:
    """A column of yes and no in the field's own words or numbers; any other as it is."""
    if field.type != "boolean" or field.written == "boolean":
        return column
    pl, (no, yes) = optional("polars"), field.flags
    return (
        column.cast(pl.Int64)
        if field.written == "integer"
        else column.replace_strict({False: no, True: yes}, return_dtype=pl.String)
    )


def _dtype(field: Field) -> Any:
    """The type of a field's column."""
    pl = optional("polars")
    dtypes = {"boolean": pl.Boolean, "string": pl.String, "integer": pl.Int64, "number": pl.Float64, "date": pl.Date}
    dtypes["time"] = pl.Time
    return dtypes.get(field.type, pl.Datetime("ms"))
