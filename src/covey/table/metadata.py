"""Schemas that come from elsewhere: drafted from data, or imported from SmartNoise YAML and SDV JSON metadata.

A draft describes private data, so none of its fields is confirmed. An import is public metadata; a field is left
unconfirmed where that metadata lacks what covey needs (bounds of a number, categories of a text).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import ParameterError
from covey.table.schema import Constant, Field, Schema, optional, read_document
from covey.table.sources import read_table

if TYPE_CHECKING:
    from polars import Series

MOST_CATEGORIES = 100  # a column of more different texts keeps the most frequent, and an "other"
_BLANK = ("", "nan", "null")
_FLAGS = ("true", "false", "yes", "no", "0", "1")


def draft(table: Any) -> Schema:
    """A schema that fits this table: types, bounds and categories as they are in the data."""
    table = read_table(table)
    fields = tuple(_draft_field(name, series) for name, series in table.columns.items())
    return Schema(fields, draft=True)


def texts(series: Series) -> Series:
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
    kind, text = series.dtype, texts(series)
    required = len(text) == len(series)
    if not len(text):
        return Field(name, "string", constant=Constant(None), confirmed=False)
    if kind == pl.Boolean or bool(text.str.to_lowercase().is_in(list(_FLAGS)).all()):
        return Field(name, "boolean", required=required, confirmed=False)
    numbers = text.cast(pl.Float64, strict=False)
    if not numbers.null_count() and not kind.is_temporal():
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
        days = _moments(series if kind.is_temporal() else text, shape)
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


def from_smartnoise_yaml(path: str | Path, table: str | None = None) -> Schema:
    """Import the metadata of one table from a SmartNoise YAML file: collection, schema, table, columns."""
    found: dict[str, Mapping[str, Any]] = {}

    def collect(node: Any, depth: int, name: str) -> None:
        if not isinstance(node, Mapping):
            return
        columns = {k: v for k, v in node.items() if isinstance(v, Mapping) and "type" in v}
        if columns:
            found[name] = columns
        elif depth < 4:
            for key, part in node.items():
                collect(part, depth + 1, str(key))

    collect(_yaml(path), 0, "")
    columns = _one_table(found, table, path)
    return Schema(
        tuple(_smartnoise_field(str(name), spec) for name, spec in columns.items() if not spec.get("private_id"))
    )


def _smartnoise_field(name: str, spec: Mapping[str, Any]) -> Field:
    kinds = {"int": "integer", "integer": "integer", "float": "number", "boolean": "boolean", "string": "string"}
    kind = kinds.get(str(spec["type"]).lower(), "datetime" if "date" in str(spec["type"]).lower() else "")
    if not kind:
        raise ParameterError(f"column {name!r} has SmartNoise type {spec['type']!r}, which covey does not know.")
    required = spec.get("nullable") is False
    low, high = (spec.get("lower"), spec.get("upper")) if kind in ("integer", "number") else (None, None)
    known = kind == "boolean" or (low is not None and high is not None)
    return Field(name, kind, low, high, required=required, confirmed=known)


def from_sdv_json(path: str | Path, table: str | None = None) -> Schema:
    """Import one table of SDV metadata. It names types, not bounds or categories, so most fields wait for both."""
    data = read_document(path)
    if not isinstance(data, Mapping):
        raise ParameterError(f"{path} is not SDV metadata: it must be an object.")
    tables = data.get("tables") if isinstance(data.get("tables"), Mapping) else {"table": data}
    found = {
        str(name): part["columns"]
        for name, part in (tables or {}).items()
        if isinstance(part, Mapping) and isinstance(part.get("columns"), Mapping)
    }
    columns = _one_table(found, table, path)
    fields = [_sdv_field(str(name), spec) for name, spec in columns.items() if spec.get("sdtype") != "id"]
    return Schema(tuple(fields))


def _sdv_field(name: str, spec: Mapping[str, Any]) -> Field:
    kind = str(spec.get("sdtype", "")).lower()
    if kind == "boolean":
        return Field(name, "boolean")
    if kind == "numerical":
        whole = "int" in str(spec.get("computer_representation", "")).lower()
        return Field(name, "integer" if whole else "number", confirmed=False)
    if kind == "datetime":
        clock = any(
            mark in str(spec.get("datetime_format", "%H")) for mark in ("%H", "%I", "%M", "%S", "%T", "%X", "%c")
        )
        return Field(name, "datetime" if clock else "date", confirmed=False)
    # Everything else (categorical, and names, addresses, … as SDV knows them) is text whose categories are not listed.
    order = spec.get("order_by")
    listed = spec.get("order")
    enum = tuple(map(str, listed)) if isinstance(listed, list) and listed else None
    return Field(name, "string", enum=enum, ordered=bool(listed or order), confirmed=enum is not None)


def _yaml(path: str | Path) -> Any:
    if Path(path).suffix.lower() not in (".yaml", ".yml"):
        raise ParameterError(f"{path} must be a YAML file: its name should end in .yaml or .yml.")
    return read_document(path)


def _one_table(found: Mapping[str, Any], table: str | None, path: str | Path) -> Mapping[str, Any]:
    if table is not None and table in found:
        chosen: Mapping[str, Any] = found[table]
        return chosen
    if table is None and len(found) == 1:
        return next(iter(found.values()))
    names = ", ".join(map(repr, found)) or "none"
    raise ParameterError(f"{path} describes the tables {names}. Name the one to import: table=….")
