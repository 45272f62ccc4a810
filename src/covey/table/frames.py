"""Frames go out as they came in: the kind of frame, the order of its columns, and their types.

What is remembered of a frame is its form, never a value. The types that a library infers from cells (in pandas a column of whole
numbers is int64, with one hole float64, with one odd word object) are forgotten: one record would decide them, and the schema
decides instead. Types that only their owner can have chosen come back, where the schema's public domain fits them. The categories
of a categorical type are values of records: those of the schema take their place. An index is values of records too: rows come
back numbered from 0.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as entry
from typing import Any

import numpy as np

from covey._libraries import pa, pd, pl
from covey.errors import InputError, optional
from covey.table.columns import made
from covey.table.fields import Field

ORIGINS = ("pandas", "polars", "pyarrow")


@dataclass(frozen=True)
class Type:
    """The type of a column that its owner has chosen, without any value of it.

    The family says what it is good for; `unit` and `zone` belong to moments, and `nullable` says whether pandas keeps holes
    beside the numbers.
    """

    family: str  # numpy's name of a number's type, or flag, text, labels, moment
    unit: str = ""
    zone: str | None = None
    ordered: bool = False
    nullable: bool = False
    native: Any = None  # the library's own type, where it names no value

    def fits(self, field: Field) -> bool:
        """Whether every value that the schema allows has a place in this type: nothing else is asked."""
        text = field.written == "string" or bool(field.special)
        if self.family in ("text", "labels"):
            return text if self.family == "text" else field.written == "string" and field.measured
        if text:
            return False
        if self.family == "flag":
            return field.written == "boolean"
        if self.family == "moment":
            return field.type == "datetime" or (field.type == "date" and self.zone is None)
        if field.type not in ("boolean", "integer", "number") or (field.type == "number" and not self.is_float):
            return False
        if self.is_float and field.type != "integer":
            return True
        low, high = _bounds(field)
        if self.is_float:  # up to here it holds every whole number
            return bool(max(abs(low), abs(high)) <= 2 ** (np.finfo(self.family).nmant + 1))
        return bool(np.iinfo(self.family).min <= low and high <= np.iinfo(self.family).max)

    @property
    def is_float(self) -> bool:
        """Whether it is a number with a point."""
        return self.family.startswith("float")


@dataclass(frozen=True)
class FrameForm:
    """How a frame looked: its kind, and the names and remembered types of its columns, in order."""

    origin: str
    types: Mapping[str, Type | None] = entry(default_factory=dict)

    def restore(self, columns: Mapping[str, Any], fields: Sequence[Field] = ()) -> Any:
        """The columns as such a frame; polars where it was no frame. Without a field a column's type follows from its values."""
        known = {field.name: field for field in fields}
        order = [*(name for name in self.types if name in columns), *(n for n in columns if n not in self.types)]
        series = {name: made(name, columns[name]) for name in order}
        if self.origin == "pandas":
            optional("pyarrow")
            made_of = {name: _pandas(column, known.get(name), self.types.get(name)) for name, column in series.items()}
            return pd.DataFrame(made_of, columns=order)
        cast = {name: _polars(column, known.get(name), self._fitting(name, known)) for name, column in series.items()}
        if self.origin != "pyarrow":
            return pl.DataFrame(cast)
        optional("pyarrow")
        arrow = {n: _arrow(column, known.get(n), self._fitting(n, known)) for n, column in cast.items()}
        return pa.table(arrow)

    def _fitting(self, name: str, known: Mapping[str, Field]) -> Type | None:
        found = self.types.get(name)
        return found if found is not None and name in known and found.fits(known[name]) else None


def remember(origin: str, dtype: Any) -> Type | None:
    """What may be remembered of a column's type; None for a type that cells may have decided."""
    if origin == "pandas":
        return _of_pandas(dtype)
    if origin == "polars":
        return _of_polars(dtype)
    return _of_arrow(dtype) if origin == "pyarrow" else None


def _of_pandas(dtype: Any) -> Type | None:
    if isinstance(dtype, pd.CategoricalDtype):
        return Type("labels", ordered=bool(dtype.ordered))
    if isinstance(dtype, pd.ArrowDtype):
        found = _of_arrow(dtype.pyarrow_dtype, inferred=False)
        return None if found is None else Type(**{**vars(found), "nullable": True, "native": dtype.pyarrow_dtype})
    if isinstance(dtype, pd.StringDtype):
        # The missing value NaN is that of the type which pandas infers.
        return None if dtype.na_value is not pd.NA else Type("text", native=dtype)
    if isinstance(dtype, pd.BooleanDtype):
        return Type("flag", nullable=True)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return Type("moment", unit=_coarse(dtype.unit), zone=_named(str(dtype.tz)))
    if isinstance(dtype, np.dtype) and dtype.kind == "M":
        unit = _coarse(np.datetime_data(dtype)[0])
        return Type("moment", unit=unit) if unit else None
    own = getattr(dtype, "numpy_dtype", None)
    number = own if isinstance(own, np.dtype) else dtype
    if not isinstance(number, np.dtype) or number.kind not in "iuf" or (own is None and number in (int, float)):
        return None
    return Type(number.name, nullable=own is not None) if number.itemsize <= 8 else None


def _of_polars(dtype: Any) -> Type | None:
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return Type("labels", ordered=isinstance(dtype, pl.Enum))
    if isinstance(dtype, pl.Datetime):
        zone = None if dtype.time_zone is None else _named(dtype.time_zone)
        return Type("moment", unit=dtype.time_unit, zone=zone)
    if dtype in (pl.Int64, pl.Float64) or not (dtype.is_integer() or dtype.is_float()):
        return None
    return None if dtype in (pl.Int128, getattr(pl, "UInt128", None)) else Type(str(dtype).lower())


def _of_arrow(dtype: Any, inferred: bool = True) -> Type | None:
    is_ = pa.types
    if is_.is_dictionary(dtype):
        words = dtype.value_type
        return Type("labels", ordered=dtype.ordered) if is_.is_string(words) or is_.is_large_string(words) else None
    if is_.is_string(dtype) or is_.is_large_string(dtype):
        return Type("text", native=dtype)
    if is_.is_timestamp(dtype):
        return Type("moment", unit=dtype.unit, zone=None if dtype.tz is None else _named(dtype.tz))
    if is_.is_boolean(dtype):
        return None if inferred else Type("flag")
    if inferred and (is_.is_int64(dtype) or is_.is_float64(dtype)):
        return None
    if is_.is_integer(dtype) or is_.is_floating(dtype):
        return Type(np.dtype(dtype.to_pandas_dtype()).name)
    return None


def _coarse(unit: str) -> str:
    """Seconds and milliseconds are chosen; which of the finer units there is follows from the finest cell."""
    return unit if unit in ("s", "ms") else ""


def _named(zone: str) -> str:
    """A place's time zone; one that is an offset from UTC comes from cells, and stands for UTC."""
    return "UTC" if any(letter in zone for letter in "+:") or zone.lower() in ("utc", "z", "etc/utc") else zone


def _bounds(field: Field) -> tuple[int, int]:
    """The least and the largest whole number that the schema allows."""
    if field.constant is not None:
        value = int(field.constant.value) if isinstance(field.constant.value, int) else 0
        return value, value
    if field.derived is not None:
        whole = [int(value) for value in field.derived.values if isinstance(value, int)]
        return (min(whole), max(whole)) if whole else (-(2**53), 2**53)
    return (0, 1) if field.type == "boolean" else (field.axis.low, field.axis.high)


def _holes(field: Field | None, column: pl.Series) -> bool:
    """Whether a column may have holes: the schema says it, and without one the synthetic column."""
    if field is None:
        return bool(column.null_count())
    return field.constant.value is None if field.constant is not None else not field.required or not field.measured


# Onto polars columns, which the others are made of.


def _polars(column: pl.Series, field: Field | None, chosen: Type | None) -> pl.Series:
    out = column
    if isinstance(column.dtype, pl.Datetime) and field is not None:
        out = column.cast(pl.Datetime("us"))
    if chosen is None or field is None:
        return out
    if chosen.is_float:
        return _narrowed(column, field, chosen.family == "float64")
    if "int" in chosen.family:
        return column.cast(pl.Series(np.empty(0, chosen.family)).dtype)
    if chosen.family == "labels":
        return column.cast(pl.Enum(field.labels) if chosen.ordered else pl.Categorical())
    if chosen.family == "moment":
        return _moments(column, chosen)
    return out


def _narrowed(column: pl.Series, field: Field, wide: bool) -> pl.Series:
    """Numbers in a float of 64 or 32 bits; the nearest one may lie beyond a limit, and then the next one is taken."""
    numbers = column.cast(pl.Float64)
    if wide or field.type != "number" or field.minimum is None or field.maximum is None:
        return numbers.cast(pl.Float64 if wide else pl.Float32)
    low, high = np.float32(field.minimum), np.float32(field.maximum)  # type: ignore[arg-type] # a number's limits
    low = np.nextafter(low, np.float32(np.inf)) if float(low) < float(field.minimum) else low  # type: ignore[arg-type]
    high = np.nextafter(high, np.float32(-np.inf)) if float(high) > float(field.maximum) else high  # type: ignore[arg-type]
    return numbers.cast(pl.Float32).clip(float(low), float(high))


def _moments(column: pl.Series, chosen: Type) -> pl.Series:
    """Moments with the unit and the zone of their frame; they were read as moments of UTC."""
    unit: Any = chosen.unit if chosen.unit in ("ms", "us", "ns") else "ms" if chosen.unit else "us"
    out = column.cast(pl.Datetime(unit))
    return out if chosen.zone is None else out.dt.replace_time_zone("UTC").dt.convert_time_zone(chosen.zone)


# Onto the columns of the other libraries.


def _arrow(column: pl.Series, field: Field | None, chosen: Type | None) -> Any:
    if chosen is not None and field is not None and chosen.family == "labels":
        places = column.cast(pl.Enum(field.labels)).to_physical().cast(pl.Int32).to_arrow()
        labels = pa.array(field.labels, pa.string())
        return pa.DictionaryArray.from_arrays(places, labels, ordered=chosen.ordered)
    out = column.to_arrow()
    if chosen is not None and chosen.family == "text":
        return out.cast(chosen.native)
    if chosen is not None and chosen.family == "moment" and chosen.unit == "s":
        return out.cast(pa.timestamp("s", chosen.zone))
    return out.cast(pa.large_string()) if pa.types.is_string_view(out.type) else out


def _pandas(column: pl.Series, field: Field | None, told: Type | None) -> Any:
    chosen = told if told is not None and field is not None and told.fits(field) else None
    cast = _polars(column, field, chosen)
    if chosen is not None and field is not None:
        if chosen.family == "labels":
            labels = pd.CategoricalDtype(list(field.labels), ordered=chosen.ordered)
            return pd.Series(column.to_list(), dtype=object).astype(labels)
        if chosen.native is not None and chosen.family != "text":
            return pd.Series(pd.array(_arrow(cast, field, chosen), dtype=pd.ArrowDtype(chosen.native)))
        if chosen.family == "text":
            arrow = isinstance(chosen.native, pa.DataType)
            return pd.Series(column.to_list(), dtype=pd.ArrowDtype(chosen.native) if arrow else chosen.native)
    return _of_library(cast, field, chosen)


def _of_library(column: pl.Series, field: Field | None, chosen: Type | None) -> Any:
    """A pandas column of numbers, flags, moments or text, in numpy's type or one with room for holes."""
    if column.dtype.is_temporal() and column.dtype != pl.Time:
        return _moments_of_pandas(column, chosen)
    nullable = (chosen is not None and chosen.nullable) or _holes(field, column)
    whole = column.dtype.is_integer() or column.dtype == pl.Boolean
    if whole and nullable:
        name = "boolean" if column.dtype == pl.Boolean else str(column.dtype)
        return pd.Series(pd.array(column.to_list(), dtype=name))
    if column.dtype.is_float() and chosen is not None and chosen.nullable:
        return pd.Series(pd.array(column.to_list(), dtype=str(column.dtype)))
    return column.to_pandas()


def _moments_of_pandas(column: pl.Series, chosen: Type | None) -> Any:
    """Moments in the unit that pandas gives to dates it reads itself, unless a coarser one was chosen."""
    usual = np.datetime_data(pd.to_datetime(["2000-01-01"]).dtype)[0]
    unit = chosen.unit if chosen is not None and chosen.unit else usual
    return column.cast(pl.Datetime("us", getattr(column.dtype, "time_zone", None))).to_pandas().dt.as_unit(unit)


# Frames of numbers alone, without a schema.


@dataclass(frozen=True)
class NumberFrame:
    """How a frame of numbers looked: its kind, its columns' names, and their types, which its owner has chosen."""

    origin: str
    names: tuple[Any, ...]
    types: tuple[Any, ...]

    def restore(self, rows: Any, own_types: bool) -> Any:
        """Rows as such a frame, each column in its own type or all of them in that of the rows."""
        if self.origin == "pandas":
            frame = pd.DataFrame(rows, columns=list(self.names))
            frame.columns = pd.Index(self.names)
            return frame.astype(dict(zip(self.names, self.types, strict=True))) if own_types else frame
        columns = {name: rows[:, j] for j, name in enumerate(self.names)}
        types = dict(zip(self.names, self.types, strict=True))
        if self.origin == "polars":
            out = pl.DataFrame(columns)
            return out.cast(types) if own_types else out
        return pa.table({n: pa.array(c).cast(types[n]) if own_types else pa.array(c) for n, c in columns.items()})


def frame_origin(X: Any) -> str | None:
    """Which library a frame is of; None for what is no frame. No library is imported for it."""
    for origin, name in zip(ORIGINS, ("DataFrame", "DataFrame", "Table"), strict=True):
        library = sys.modules.get(origin)
        if library is not None and isinstance(X, getattr(library, name)):
            return origin
    return None


def numbers_of(X: Any, origin: str) -> tuple[Any, NumberFrame]:
    """The numbers and flags of a frame as a matrix, and how it looked; a frame of anything else needs a schema."""
    if origin == "pyarrow":
        names, types = tuple(X.column_names), tuple(column.type for column in X.columns)
        columns = [X.column(j) for j in range(X.num_columns)]
        is_ = pa.types
        plain = all(is_.is_boolean(t) or is_.is_integer(t) or is_.is_floating(t) for t in types)
    else:
        names, types = tuple(X.columns), tuple(X.dtypes)
        columns = [X.iloc[:, j] if origin == "pandas" else X.to_series(j) for j in range(X.shape[1])]
        plain = all(_is_plain(dtype, origin) for dtype in types)
    holes = plain and any(_has_holes(column, origin) for column in columns)
    if not plain or holes:
        raise InputError(
            f"X is a frame with {'missing values' if holes else 'columns that are not numbers'}, so it needs a schema. Give "
            "schema=…, for example covey.Schema.draft(frame), checked and confirmed."
        )
    if len(set(names)) < len(names):
        raise InputError("the frame has two columns of the same name. Rename one.")
    if not columns or not len(columns[0]):
        raise InputError(f"X must have at least one row and one column, got shape {tuple(X.shape)}.")
    matrix = np.column_stack([_array(column, origin) for column in columns])
    return matrix, NumberFrame(origin, names, types)


def _is_plain(dtype: Any, origin: str) -> bool:
    if origin == "polars":
        return bool(dtype == pl.Boolean or dtype.is_integer() or dtype.is_float())
    return str(getattr(dtype, "kind", "O")) in "biuf" and not isinstance(dtype, pd.CategoricalDtype)


def _has_holes(column: Any, origin: str) -> bool:
    if origin == "pandas":
        return bool(column.isna().any())
    return bool(column.null_count if origin == "pyarrow" else column.null_count())


def _array(column: Any, origin: str) -> Any:
    array = column.to_numpy()
    # A type with room for holes gives objects, though it has none.
    return array.astype(column.dtype.numpy_dtype) if origin == "pandas" and array.dtype == object else array
