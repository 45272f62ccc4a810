"""The columns of a table on their way in: frames of every kind become polars columns, matched by name to the schema.

What a column is called says the mapping that holds it; the polars column itself has no name. Its methods look it up among
columns by its name, where ^a$ is a pattern that finds nothing, and some add columns of their own, such as count.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from dataclasses import field as entry
from datetime import UTC, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.errors import CoveyWarning, InputError
from covey.libraries import pl
from covey.tables.dialects import Spelling
from covey.tables.fields import GUARDED
from covey.tables.rules import Domain

FIELD_LIMIT = 2**20  # bytes in one cell
EXPANSION = 200  # times its size is what a file may unfold to, beyond the limit: more than tables pack to
PART_ROWS = 1 << 17  # of a part in memory: columns of it fit the cache of a processor, and calls are few
PART_CELLS = 1 << 25  # of a wide table, which has fewer rows then: some hundred MiB, several of which are read at once

NUMBER = r"[+-]?\d+(\.\d+)?"
MISSING_WORDS = frozenset(("", "nan", "null"))
_EPOCH = datetime(1970, 1, 1)
_CLOCK = re.compile(r"(?:\d{4}-\d\d-\d\d[T ])?(\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)?", re.ASCII)


@dataclass(frozen=True)
class Words:
    """A column that is stored as places in a short list of words, as Parquet stores text; −1 is missing."""

    places: Array
    words: pl.Series

    def slice(self, start: int, length: int) -> Words:
        """A part of the column."""
        return Words(self.places[start : start + length], self.words)

    def __len__(self) -> int:
        return len(self.places)


@dataclass(frozen=True)
class Table:
    """The columns of a table as they were read, and what was passed over. Private: it stays with the data's owner."""

    columns: Mapping[str, Any]  # polars pl.Series, or Words where a file stores them so
    rows: int
    origin: str  # csv, parquet, arrow, pandas, polars, pyarrow, columns or a database
    short_rows: int = 0
    long_rows: int = 0
    ignored: tuple[str, ...] = ()
    twice: tuple[str, ...] = ()  # columns whose name another one has too, as they are called instead
    plain: bool = True  # whether text has decimal points and ISO dates, whatever the file had
    types: Mapping[str, Any] = entry(default_factory=dict)  # of a frame: what is remembered of its columns' types

    def __repr__(self) -> str:
        return f"Table({self.rows} rows, {len(self.columns)} columns, from {self.origin})"


def part_rows(columns: int) -> int:
    """How many rows of so many columns are read at a time: memory is bounded by cells, whatever a table's width."""
    return min(PART_ROWS, max(1, PART_CELLS // max(1, columns)))


def check_size(path: Path, limit: int, size: int) -> None:
    """Refuse what grows past a limit and far past the size of its file: a compression bomb."""
    if size > max(limit, EXPANSION * (own := path.stat().st_size)):
        raise InputError(f"{path} unfolds to more than {limit} bytes, of {own} in it. Unpack it, or raise size_limit.")


def guarded(label: str) -> str:
    """A label that no spreadsheet takes for a formula. A number runs nothing."""
    return f"'{label}" if label.startswith(GUARDED) and not re.fullmatch(NUMBER, label) else label


def unguarded(label: str) -> str:
    """The label before it was guarded."""
    return label[1:] if label.startswith("'") and label[1:].startswith(GUARDED) else label


def bare(texts: pl.Series) -> pl.Series:
    """Labels of a column before they were guarded."""
    return texts.str.replace(f"^'([{re.escape(''.join(GUARDED))}])", "$1")


def unique_names(names: list[str]) -> list[str]:
    """Names without white space around them, of which no two are the same: a second `name` is `name_2`."""
    stripped = [name.strip() for name in names]
    taken, seen, out = set(stripped), set(), []
    for name in stripped:
        again = name and name in seen
        own = next(f"{name}_{k}" for k in count(2) if f"{name}_{k}" not in taken) if again else name
        taken.add(own)
        seen.add(name)
        out.append(own)
    return out


def renamed(names: tuple[str, ...]) -> str:
    """The words for columns whose own names were taken."""
    start = "a column is" if len(names) == 1 else f"{len(names)} columns are"
    return f"{start} called {', '.join(map(repr, names))}: another one has the name without its number."


def match(names: list[str], schema: Domain | None) -> tuple[dict[str, int], tuple[str, ...], tuple[str, ...]]:
    """Where each needed column is, the names that are passed over, and those of columns whose own name was taken."""
    places: dict[str, int] = {}
    known = None if schema is None else set(schema.names)
    unique = unique_names(names)
    twice = tuple(own for own, name in zip(unique, names, strict=True) if own != name.strip())
    for j, name in enumerate(unique):
        read = name if known is None or name in known else unguarded(name)
        if read in places and read:
            raise InputError(f"the table has two columns named {read!r}. Rename one.")
        places[read] = j
    if schema is None:
        places.pop("", None)
        return places, (), twice
    needed = [field.name for field in schema.encoded]
    for name in needed:
        if name not in places:
            raise InputError(
                f"the table has no column {name!r}. It has {', '.join(map(repr, names[:20]))}; names must match exactly, "
                "and so must the separator."
            )
    if told := tuple(own for own in twice if own not in places or (known is not None and own not in known)):
        warnings.warn(renamed(told), CoveyWarning, stacklevel=4)
    passed = tuple(name for name in places if known is not None and name not in known)
    return {name: places[name] for name in needed}, passed, twice


def as_series(values: Any, spelling: Spelling = Spelling()) -> pl.Series:  # noqa: B008 # frozen
    """Values of any kind as a column: arrays keep their type, other values become text, each by itself."""
    if isinstance(values, pl.Series):
        given: pl.Series = spelled(plain(values.alias("")), spelling)
        return given
    if isinstance(values, np.ndarray) and values.dtype.kind in "biufM":
        return pl.Series(values)
    return text_series(list(values), spelling)


def made(values: Any) -> pl.Series:
    """Values on their way out as a column: synthetic, so their type may be guessed from all of them."""
    return values.alias("") if isinstance(values, pl.Series) else pl.Series(values)


def plain(series: pl.Series) -> pl.Series:
    """Columns of nested or unknown things become text, cell by cell."""
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary, pl.Duration):
        return text_series(series.to_list())
    return series


def pandas_series(column: Any, spelling: Spelling) -> pl.Series:
    """A pandas column; one whose type says nothing about its cells as text, each by itself.

    The type of such a column must not be guessed from all of its cells: one of them would decide how the others are read.
    """
    if str(column.dtype) == "object":
        return text_series(column.tolist(), spelling)
    if str(column.dtype) == "category":
        words = text_series(column.cat.categories.tolist(), spelling)
        return cell_by_cell(Words(np.asarray(column.cat.codes), words))
    return as_series(pl.from_pandas(column.rename(None)), spelling)


def cell_by_cell(column: pl.Series | Words) -> pl.Series:
    """A column with every cell written out."""
    if not isinstance(column, Words):
        return column
    places = pl.Series(column.places).cast(pl.Int64)
    return column.words.gather(places.set(places < 0, None))


def spelled(column: Any, spelling: Spelling) -> Any:
    """A column, or the words of one, in plain spelling; what is no text stays as it is."""
    if isinstance(column, Words):
        return Words(column.places, spelled(column.words, spelling))
    if spelling.is_plain or column.dtype != pl.String:
        return column
    return spelling.plain(column)


def text_series(values: list[Any], spelling: Spelling = Spelling()) -> pl.Series:  # noqa: B008 # frozen
    """A column of text; cells that are text already may be in another spelling, the others are not."""
    if not spelling.is_plain:
        values = [spelling.plain_word(value) if isinstance(value, str) else value for value in values]
    if all(type(value) is str or value is None for value in values):
        # The same, quickly; half a surrogate pair takes the other way.
        with suppress(UnicodeError, pl.exceptions.PolarsError):
            return pl.Series(values, dtype=pl.String)
    return pl.Series([text(value) for value in values], dtype=pl.String)


def text(value: Any) -> str | None:
    """A cell as text, None for a missing one. A column with a type must be read as its cells would be, written so."""
    if value is None or _is_hole(value):
        return None
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, str):
        return value.encode("utf-8", errors="replace").decode()  # half a surrogate pair is no text
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, float | np.floating):
        return np.format_float_positional(float(value) + 0.0, trim="-")  # 2, 0.00001; 0 for −0
    if isinstance(value, Decimal):
        written = f"{value:f}"
        return written.rstrip("0").rstrip(".") if "." in written else written
    if isinstance(value, datetime):
        # Pandas has a kind of its own, with nanoseconds. Times with an offset are taken to UTC.
        when = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
        return str(when if value.tzinfo is None else _in_utc(when.replace(tzinfo=value.tzinfo, fold=value.fold)))
    if isinstance(value, np.datetime64):
        return text(value.astype("datetime64[us]").item())
    return str(value)


def _in_utc(when: datetime) -> datetime:
    try:
        return when.astimezone(UTC)
    except OverflowError:  # within hours of the calendar's end
        return when


def _is_hole(value: Any) -> bool:
    """NaN, NaT and NA are not equal to themselves, or will not say."""
    try:
        return bool(value != value)
    except (TypeError, ValueError):
        return not hasattr(value, "__len__")


def bounded(table: Table) -> Table:
    """The table, or a refusal of one with a cell beyond the limit."""
    for name, column in table.columns.items():
        words = column.words if isinstance(column, Words) else column
        if words.dtype == pl.String and bool((words.str.len_bytes() > FIELD_LIMIT).any()):
            raise InputError(f"column {name!r} has a cell of more than {FIELD_LIMIT} bytes, the limit. Shorten it.")
    return table


def spellings(schema: Domain | None, origin: str) -> dict[str, Spelling]:
    """How fields are spelled in this kind of source: the reader of a workbook writes its numbers with a decimal point."""
    found = {field.name: field.spelling for field in ([] if schema is None else schema.fields)}
    if origin == "workbook":
        found = {name: Spelling(date_format=spelling.date_format) for name, spelling in found.items()}
    return {name: spelling for name, spelling in found.items() if not spelling.is_plain}


def plainly(table: Table, schema: Domain | None) -> Table:
    """A table whose text is turned into plain spelling, as the schema says of each field."""
    own = spellings(schema, table.origin)
    columns = {n: spelled(c, own[n]) if n in own else c for n, c in table.columns.items()}
    return replace(table, columns=columns, plain=schema is not None)


def as_text(series: pl.Series) -> pl.Series:
    """Cells as text, as `columns.text` writes each: what one cell means must not depend on the type that others need."""
    dtype = series.dtype
    if dtype == pl.String:
        return series
    if dtype.is_integer() or dtype in (pl.Boolean, pl.Categorical, pl.Enum):
        return series.cast(pl.String)
    known = {value: text(value) for value in series.unique().to_list()}
    return pl.Series([known.get(value) for value in series.to_list()], dtype=pl.String)


def parse(series: pl.Series, type_: str) -> Floats:
    """The values of a field of this type as floats (days and seconds for dates and times), NaN for none."""
    dtype = series.dtype
    if type_ in ("integer", "number"):
        if dtype.is_temporal():
            return np.full(len(series), np.nan)
        if (dtype.is_numeric() and not dtype.is_decimal()) or dtype == pl.Boolean:
            return floats(series)
        return parse_numbers(as_text(series).str.strip_chars())
    if type_ == "time":
        if dtype == pl.Time:
            return np.floor(floats(series.to_physical()) / 1e9)
        return parse_clock(as_text(series).str.strip_chars())
    times = type_ == "datetime"
    if dtype == pl.Date:
        return floats(series.to_physical()) * (86400.0 if times else 1.0)
    if isinstance(dtype, pl.Datetime):
        seconds = np.floor(floats(series.dt.epoch("ms")) / 1000)
        return seconds if times else np.floor(seconds / 86400)
    return parse_times(as_text(series).str.strip_chars(), times)


def parse_numbers(words: pl.Series) -> Floats:
    """Numbers of text, NaN for what is none; true and false are 1 and 0, as they are in a column of flags."""
    out = floats(words.cast(pl.Float64, strict=False))
    odd = np.isnan(out)
    if odd.any():
        flags = words.filter(pl.Series(odd)).str.to_lowercase()
        out[odd] = np.select(
            [(flags == "true").fill_null(False), (flags == "false").fill_null(False)], [1.0, 0.0], np.nan
        )
    return out


def floats(series: pl.Series) -> Floats:
    """A column of numbers that may be written to, NaN for holes."""
    return np.array(series.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


def parse_times(words: pl.Series, times: bool) -> Floats:
    """Days or seconds since 1970 of ISO 8601 text, NaN for what is none."""
    out = np.full(len(words), np.nan)
    shapes = [(10, "%Y-%m-%d", 86400.0 if times else 1.0)]
    if times:
        shapes += [(19, "%Y-%m-%dT%H:%M:%S", 1.0), (19, "%Y-%m-%d %H:%M:%S", 1.0)]
    # The usual shapes are read by the frame library; what is left, one by one.
    for length, shape, unit in shapes:
        fixed = words.set(words.str.len_bytes() != length, None)
        if fixed.null_count() == len(fixed):
            continue
        if length == 10:
            read = floats(fixed.str.to_date(shape, strict=False).to_physical()) * unit
        else:
            read = np.floor(floats(fixed.str.to_datetime(shape, strict=False, time_unit="ms").to_physical()) / 1000)
        out = np.where(np.isnan(out), read, out)
    odd = np.isnan(out) & words.is_not_null().to_numpy()
    if odd.any():
        odd_words, places = np.unique(words.filter(pl.Series(odd)).to_numpy(), return_inverse=True)
        out[odd] = np.array([iso(word, times) for word in odd_words])[places]
    return out


def parse_clock(words: pl.Series) -> Floats:
    """Seconds since midnight of times of day, 8:05 or 08:05:30; NaN for what is none. Of a date and time, the time."""
    known = {word: _clock(word) for word in words.unique().drop_nulls().to_list()}
    return np.array([known.get(word, float("nan")) for word in words.to_list()], dtype=np.float64)


def _clock(word: str) -> float:
    found = _CLOCK.fullmatch(word)
    if found is None:
        return float("nan")
    hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3] or 0)
    return float(3600 * hours + 60 * minutes + seconds) if hours < 24 and max(minutes, seconds) < 60 else float("nan")


def iso(word: str, times: bool) -> float:
    """Days or seconds since 1970 of one ISO 8601 text, NaN if it is none."""
    try:
        when = datetime.fromisoformat(word)
        if when.tzinfo is not None:
            when = when.astimezone(UTC)
        when = when.replace(tzinfo=None)
    except (ValueError, OverflowError):
        return float("nan")
    since = when - _EPOCH
    return float(since.days * 86400 + since.seconds) if times else float(since.days)


def named(column: Any, missing_values: tuple[str, ...]) -> tuple[list[str | None], Integers]:
    """The names in a part of the column of persons, each once, and for every row the place of its person's; None is nobody.

    Two rows belong to one person if their cells, as text without white space around it, are the same. A cell that is blank, null,
    NaN, listed in missingValues or contains a NUL byte names nobody: such a row is left out, it weighs nothing.
    """
    if isinstance(column, Words):
        words = column.words.to_list()
        places: Integers = np.where(column.places < 0, len(words), column.places).astype(np.int64)
    else:
        cells = as_text(column)
        found = cells.unique().drop_nulls()
        words = found.to_list()
        # Places by the frame library: a loop over cells would take ten times as long as hashing the names.
        order = cells.replace_strict(found, np.arange(len(found)), default=len(found), return_dtype=pl.Int64)
        places = order.to_numpy().astype(np.int64)
    bare = [None if word is None or "\0" in word or word in missing_values else word.strip() for word in words]
    nobody = {None, *missing_values}
    return [*(None if w in nobody or str(w).lower() in MISSING_WORDS else w for w in bare), None], places
