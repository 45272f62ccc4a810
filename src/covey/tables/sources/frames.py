"""Frames go out as they came in: the kind of frame, the order of its columns, and those of their types that their owner chose.

What is remembered of a frame is its form, never a value. A type that some reader takes from cells is forgotten: one record would
decide it, and the schema decides instead. In pandas a column of whole numbers is int64, with one missing value float64, with one
odd word object; a word among flags makes them text, a half second changes the unit of all moments, an offset their time zone. So
what comes back are numbers of few bits, time zones of places, and that a column is categorical. Its categories are values of
records: those of the schema take their place. An index is values of records too: rows come back numbered from 0.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as entry
from typing import Any

import numpy as np

from covey.errors import InputError, optional
from covey.libraries import pa, pd, pl
from covey.tables.columns import made
from covey.tables.fields import Field

ORIGINS = {"pandas": "DataFrame", "polars": "DataFrame", "pyarrow": "Table"}  # what libraries call a frame
# Types of numbers that no reader takes from cells. Usual readers find integers and floats of 64 bits, Spark's also int32.
CHOSEN = ("int8", "int16", "uint8", "uint16", "uint32", "float32")
USUAL = np.dtype(np.int64)  # of bits and codes whose type nobody chose


@dataclass(frozen=True)
class Type:
    """The type of a column that its owner has chosen, without any value of it."""

    kind: Any  # the polars type for it; of categories Enum where they have an order, else Categorical
    native: Any = None  # the type of pandas or pyarrow, where columns of the polars type would come out in another one

    @property
    def labels(self) -> bool:
        """Whether it has categories."""
        return self.kind in (pl.Categorical, pl.Enum)

    def fits(self, field: Field) -> bool:
        """Whether every value that the schema allows has a place in this type: nothing else is asked."""
        if self.labels:
            return field.written == "string" and field.measured
        if field.written == "string" or field.special:
            return False
        if isinstance(self.kind, pl.Datetime):
            return field.type == "datetime"
        if field.type not in ("boolean", "integer"):
            return field.type == "number" and self.kind.is_float()
        low, high = _bounds(field)
        if self.kind.is_float():  # up to here it holds every whole number
            return max(abs(low), abs(high)) <= 2**24
        return not pl.Series([low, high]).cast(self.kind, strict=False).null_count()


@dataclass(frozen=True)
class FrameForm:
    """How a frame looked: its kind, and the names and remembered types of its columns, in order."""

    origin: str
    types: Mapping[str, Type | None] = entry(default_factory=dict)

    def restore(self, columns: Mapping[str, Any], fields: Sequence[Field] = ()) -> Any:
        """The columns as such a frame; polars where it was no frame. Without a field a column's type follows from its values."""
        known = {field.name: field for field in fields}
        order = [*(name for name in self.types if name in columns), *(n for n in columns if n not in self.types)]
        out: dict[str, Any] = {}
        for name in order:
            column, field, owner = made(columns[name]), known.get(name), self.types.get(name)
            if field is None or owner is None or not owner.fits(field):
                owner = None
            out[name] = _polars(column, field, owner)
            if self.origin in ("pandas", "pyarrow"):
                optional("pyarrow")
                out[name] = (_pandas if self.origin == "pandas" else _arrow)(out[name], field, owner)
        if self.origin == "pandas":
            return pd.DataFrame(out, columns=order)
        return pa.table(out) if self.origin == "pyarrow" else pl.DataFrame(out)


def remember(origin: str, dtype: Any) -> Type | None:
    """What may be remembered of a column's type; None for a type that cells may have decided."""
    return {"pandas": _of_pandas, "polars": _of_polars, "pyarrow": _of_arrow}[origin](dtype)


def chosen(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of an array of bits or codes if it is its owner's choice, else the usual one."""
    return dtype if dtype.name in CHOSEN else USUAL


def _of_pandas(dtype: Any) -> Type | None:
    if isinstance(dtype, pd.CategoricalDtype):
        return _labels(dtype.ordered)
    if isinstance(dtype, pd.DatetimeTZDtype):
        return _moments(str(dtype.tz))
    if isinstance(dtype, pd.ArrowDtype):
        return _of_arrow(dtype.pyarrow_dtype)
    name = _number_type(dtype, "pandas")
    if name not in CHOSEN:
        return None
    if isinstance(dtype, np.dtype):  # one missing value makes floats of numpy's integers
        return Type(pl.Float32) if name == "float32" else None
    return Type(_in_polars(name), dtype)


def _of_polars(dtype: Any) -> Type | None:
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return _labels(isinstance(dtype, pl.Enum))
    if isinstance(dtype, pl.Datetime):
        return _moments(dtype.time_zone)
    return Type(dtype) if _number_type(dtype, "polars") in CHOSEN else None


def _of_arrow(dtype: Any) -> Type | None:
    is_ = pa.types
    if is_.is_dictionary(dtype):
        words = dtype.value_type
        return _labels(dtype.ordered) if is_.is_string(words) or is_.is_large_string(words) else None
    if is_.is_timestamp(dtype):
        return _moments(dtype.tz)
    name = _number_type(dtype, "pyarrow")
    return Type(_in_polars(name), dtype) if name in CHOSEN else None


def _number_type(dtype: Any, origin: str) -> str:
    """What numpy calls a type of numbers; of other types any other text."""
    if origin == "polars":
        return str(dtype).lower()
    if origin == "pyarrow":
        return "float32" if pa.types.is_float32(dtype) else str(dtype)
    return str(getattr(dtype, "numpy_dtype", dtype))


def _in_polars(name: str) -> Any:
    return pl.Series(np.empty(0, name)).dtype


def _labels(ordered: Any) -> Type:
    return Type(pl.Enum if ordered else pl.Categorical)


def _moments(zone: str | None) -> Type | None:
    """Moments of a place's time zone. UTC and offsets from it come from cells, and so does the unit in every zone."""
    if zone is None or any(letter in zone for letter in "+:") or zone.lower() in ("utc", "z", "etc/utc"):
        return None
    return Type(pl.Datetime("us", zone))


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


# Onto polars columns, and from these onto the columns of the other libraries.


def _polars(column: pl.Series, field: Field | None, owner: Type | None) -> pl.Series:
    if field is None or owner is None:
        moments = isinstance(column.dtype, pl.Datetime) and field is not None
        return column.cast(pl.Datetime("us")) if moments else column
    kind = owner.kind
    if isinstance(kind, pl.Datetime):  # they were read as moments of UTC
        return column.cast(pl.Datetime("us")).dt.replace_time_zone("UTC").dt.convert_time_zone(kind.time_zone or "UTC")
    if kind == pl.Float32 and field.type == "number" and field.minimum is not None and field.maximum is not None:
        return _narrowed(column, field.minimum, field.maximum)
    return column.cast(pl.Enum(field.labels) if kind == pl.Enum else kind)


def _narrowed(column: pl.Series, minimum: Any, maximum: Any) -> pl.Series:
    """Numbers in a float of 32 bits; the nearest one may lie beyond a limit, and then the next one is taken."""
    low, high = np.float32(minimum), np.float32(maximum)
    low = np.nextafter(low, np.float32(np.inf)) if float(low) < float(minimum) else low
    high = np.nextafter(high, np.float32(-np.inf)) if float(high) > float(maximum) else high
    return column.cast(pl.Float32).clip(float(low), float(high))


def _arrow(column: pl.Series, field: Field | None, owner: Type | None) -> Any:
    if owner is not None and field is not None and owner.labels:
        places = column.cast(pl.Enum(field.labels)).to_physical().cast(pl.Int32).to_arrow()
        labels = pa.array(field.labels, pa.string())
        return pa.DictionaryArray.from_arrays(places, labels, ordered=owner.kind == pl.Enum)
    out = column.to_arrow()
    return out.cast(pa.large_string()) if pa.types.is_string_view(out.type) else out


def _pandas(column: pl.Series, field: Field | None, owner: Type | None) -> Any:
    """A pandas column: in the type that was chosen, or in numpy's or one with room for missing values."""
    if owner is not None and field is not None and owner.labels:
        labels = pd.CategoricalDtype(list(field.labels), ordered=owner.kind == pl.Enum)
        return pd.Series(column.cast(pl.String).to_list(), dtype=object).astype(labels)
    if owner is not None and isinstance(owner.native, pa.DataType):
        return pd.Series(pd.array(_arrow(column, field, owner), dtype=pd.ArrowDtype(owner.native)))
    if owner is not None and owner.native is not None:
        return pd.Series(pd.array(column.to_list(), dtype=owner.native))
    if column.dtype.is_temporal() and column.dtype != pl.Time:
        # In the unit that pandas gives to dates it reads itself.
        usual = np.datetime_data(pd.to_datetime(["2000-01-01"]).dtype)[0]
        moments = column.cast(pl.Datetime("us", getattr(column.dtype, "time_zone", None))).to_pandas()
        return moments.dt.as_unit(usual)
    if (column.dtype.is_integer() or column.dtype == pl.Boolean) and _holes(field, column):
        name = "boolean" if column.dtype == pl.Boolean else str(column.dtype)
        return pd.Series(pd.array(column.to_list(), dtype=name))
    return column.to_pandas()


def frame_origin(X: Any) -> str | None:
    """Which library a frame is of; None for what is no frame. No library is imported for it."""
    for origin, name in ORIGINS.items():
        library = sys.modules.get(origin)
        if library is not None and isinstance(X, getattr(library, name)):
            return origin
    return None


def column_at(frame: Any, place: int, origin: str) -> Any:
    """One column of a frame, by its place: names may be there twice."""
    if origin == "pyarrow":
        return frame.column(place)
    return frame.iloc[:, place] if origin == "pandas" else frame.to_series(place)


# Frames of numbers alone, without a schema.


@dataclass(frozen=True)
class NumberFrame:
    """How a frame of numbers looked: its kind, its columns' names, and those of their types that its owner chose."""

    origin: str
    names: tuple[Any, ...]
    types: Mapping[Any, Any]

    def restore(self, rows: Any, own_types: bool) -> Any:
        """Rows as such a frame, in their own type; with `own_types` columns of a chosen type have this."""
        types = self.types if own_types else {}
        if self.origin == "pandas":
            frame = pd.DataFrame(rows, columns=list(self.names))
            frame.columns = pd.Index(self.names)
            return frame.astype(types)
        columns = {name: rows[:, j] for j, name in enumerate(self.names)}
        if self.origin == "polars":
            return pl.DataFrame(columns).cast(types)
        arrays = {name: pa.array(column) for name, column in columns.items()}
        return pa.table({name: array.cast(types.get(name, array.type)) for name, array in arrays.items()})


def numbers_of(X: Any, origin: str) -> tuple[Any, np.dtype[Any], NumberFrame]:
    """The numbers and flags of a frame as a matrix, the type that all its columns share by choice, and how it looked.

    A frame of anything else needs a schema.
    """
    names, types = (X.column_names, X.schema.types) if origin == "pyarrow" else (X.columns, X.dtypes)
    columns = [column_at(X, j, origin) for j in range(X.shape[1])]
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
    # Missing values are refused: they cannot have made floats of integers here.
    owners = {n: dtype for n, dtype in zip(names, types, strict=True) if _number_type(dtype, origin) in CHOSEN}
    common = (
        matrix.dtype if len(owners) == len(columns) else USUAL
    )  # else the columns that nobody chose would decide it
    return matrix, common, NumberFrame(origin, tuple(names), owners)


def _is_plain(dtype: Any, origin: str) -> bool:
    if origin == "pandas":
        return str(getattr(dtype, "kind", "O")) in "biuf"
    if origin == "polars":
        return bool(dtype == pl.Boolean or dtype.is_integer() or dtype.is_float())
    return bool(pa.types.is_boolean(dtype) or pa.types.is_integer(dtype) or pa.types.is_floating(dtype))


def _has_holes(column: Any, origin: str) -> bool:
    if origin == "pandas":
        return bool(column.isna().any())
    return bool(column.null_count if origin == "pyarrow" else column.null_count())


def _array(column: Any, origin: str) -> Any:
    array = column.to_numpy()
    # A type with room for holes gives objects, though it has none.
    return array.astype(column.dtype.numpy_dtype) if origin == "pandas" and array.dtype == object else array
