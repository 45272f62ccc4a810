"""Fields drafted from data: types, bounds and categories as they are in it.

A draft describes private data, so none of its fields is confirmed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import ParameterError
from covey.table.extras import optional
from covey.table.fields import Constant, Field
from covey.table.sources import read_table

if TYPE_CHECKING:
    from polars import Series

MOST_CATEGORIES = 100  # a column of more different texts keeps the most frequent, and an "other"
_BLANK = ("", "nan", "null")
_FLAGS = ("true", "false", "yes", "no", "0", "1")


def draft_fields(table: Any) -> tuple[Field, ...]:
    """Fields that fit this table: types, bounds and categories as they are in the data."""
    return tuple(_draft_field(name, series) for name, series in read_table(table).columns.items())


def present(series: Series) -> Series:
    """The cells that a draft looks at: trimmed text, without what is missing."""
    pl = optional("polars")
    text = series.cast(pl.String, strict=False)
    if series.dtype.is_float():
        text = text.str.strip_suffix(".0")
    text = text.str.strip_chars()
    text = text.filter(~text.str.to_lowercase().is_in(list(_BLANK)) & ~text.str.contains("\0", literal=True))
    return text.drop_nulls()


def _draft_field(name: str, series: Series) -> Field:
    pl = optional("polars")
    dtype, text = series.dtype, present(series)
    required = len(text) == len(series)
    if not len(text):
        return Field(name, "string", constant=Constant(None), confirmed=False)
    if dtype == pl.Boolean or bool(text.str.to_lowercase().is_in(list(_FLAGS)).all()):
        return Field(name, "boolean", required=required, confirmed=False)
    numbers = text.cast(pl.Float64, strict=False)
    if not numbers.null_count() and not dtype.is_temporal():
        values = numbers.to_numpy()
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        whole = bool((values == np.rint(values)).all()) and max(abs(low), abs(high)) < 2**53
        if whole:
            return Field(name, "integer", int(low), int(high), required=required, confirmed=False)
        try:
            return Field(name, "number", low, high, required=required, confirmed=False)
        except ParameterError:  # too large for exact steps: the steward declares bounds
            return Field(name, "number", required=required, confirmed=False)
    for shape in ("date", "datetime"):
        days = _moments(series if dtype.is_temporal() else text, shape)
        if days is not None:
            return Field(name, shape, *days, required=required, confirmed=False)
    counts = text.value_counts(sort=True)
    labels = counts[text.name].to_list()
    other = None if len(labels) <= MOST_CATEGORIES else _unused("other", labels)
    return Field(
        name, "string", enum=tuple(sorted(labels[:MOST_CATEGORIES])), required=required, other=other, confirmed=False
    )


def _moments(series: Series, shape: str) -> tuple[Any, Any] | None:
    """The first and last date or time of a column, None if some cell is none."""
    pl = optional("polars")
    if series.dtype == pl.String:
        formats = ["%Y-%m-%d"] if shape == "date" else ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S"]
        for form in formats:
            read = series.str.to_datetime(form, strict=False, time_unit="ms")
            if not read.null_count():
                break
        else:
            return None
    elif series.dtype == pl.Date and shape == "date":
        read = series.drop_nulls()
    elif isinstance(series.dtype, pl.Datetime) and shape == "datetime":
        read = series.drop_nulls().dt.convert_time_zone("UTC") if series.dtype.time_zone else series.drop_nulls()
        read = read.dt.replace_time_zone(None)
    else:
        return None
    try:
        return read.min(), read.max()
    except (ValueError, OverflowError):  # years before 1 or after 9999 are no dates here
        return None


def _unused(label: str, labels: list[str]) -> str:
    while label in labels:
        label += "_"
    return label
