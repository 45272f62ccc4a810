"""Where tables come from and go to: CSV, Parquet, and pandas, polars or pyarrow frames.

CSV is comma-separated with a header line and double quotes (RFC 4180), in UTF-8 unless another encoding is declared. Line
ends of every kind are read; blank lines at the end are no records, unless there is one column. Records with too few
fields have missing ones, surplus fields are ignored. What cannot be read as a table at all is an InputError.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import os
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.errors import InputError, ParameterError
from covey.table.schema import GUARDED, Schema, optional

if TYPE_CHECKING:
    from polars import Series

Columns = Mapping[str, Any]  # values by column: polars Series, arrays or lists

FIELD_LIMIT = 2**20  # bytes in one cell
SIZE_LIMIT = 8 * 2**30  # bytes of the whole table, decompressed

_CHUNK = 2**18  # bytes that fit the processor's cache
_QUOTE, _COMMA, _LINE = 34, 44, 10
_FOREIGN_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


@dataclass(frozen=True)
class Table:
    """The columns of a table as they were read, and what was passed over. Private: it stays with the data's owner."""

    columns: Mapping[str, Series]
    rows: int
    kind: str  # csv, parquet, pandas, polars, pyarrow or columns
    short_rows: int = 0
    long_rows: int = 0
    ignored: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Table({self.rows} rows, {len(self.columns)} columns, from {self.kind})"


def read_table(
    source: Any,
    schema: Schema | None = None,
    encoding: str = "utf-8",
    *,
    field_limit: int = FIELD_LIMIT,
    size_limit: int = SIZE_LIMIT,
) -> Table:
    """Read a file, a frame or a mapping of columns; with a schema only its columns, matched by name."""
    if isinstance(source, Table):
        columns, ignored = _choose(dict(source.columns), schema)
        return Table(columns, source.rows, source.kind, source.short_rows, source.long_rows, source.ignored + ignored)
    if isinstance(source, str | Path):
        path = Path(source)
        if path.suffix.lower() in (".parquet", ".pq"):
            table = _read_parquet(_existing(path), schema, size_limit)
        else:
            data = _read_bytes(_existing(path), size_limit)
            return _read_csv(data, schema, encoding, field_limit, str(path))
    else:
        table = _read_frame(source, schema)
    if not table.rows:
        raise InputError("the table has no rows. There is nothing to synthesize.")
    for name, series in table.columns.items():
        _check_cells(name, series, field_limit)
    return table


def like(frame: Any, columns: Columns) -> Any:
    """The columns as the kind of frame that came in; polars where that was a file."""
    pl = optional("polars")
    out = pl.DataFrame({name: _as_series(name, values) for name, values in columns.items()})
    kind = frame.kind if isinstance(frame, Table) else _kind(frame)
    if kind == "pyarrow":
        return out.to_arrow()
    if kind != "pandas":
        return out
    optional("pyarrow")
    native = out.to_pandas()
    # pandas would turn whole numbers and flags with holes into floats and objects.
    nullable = {pl.Int64: "Int64", pl.Boolean: "boolean"}
    holes = {c: nullable[out[c].dtype] for c in out.columns if out[c].dtype in nullable and out[c].null_count()}
    for name, dtype in holes.items():
        native[name] = optional("pandas").array(out[name].to_list(), dtype=dtype)
    return native


def write_csv(columns: Columns, path: str | Path) -> None:
    """Write columns as CSV; text that a spreadsheet would run as a formula gets an apostrophe in front."""
    pl = optional("polars")
    out = {}
    for name, values in columns.items():
        series = _as_series(name, values)
        if series.dtype == pl.String:
            risky = pl.any_horizontal(*(pl.col(name).str.starts_with(mark) for mark in GUARDED))
            text = pl.when(risky).then(pl.lit("'") + pl.col(name)).otherwise(pl.col(name))
            series = pl.DataFrame({name: series}).select(text.alias(name))[name]
        out[guarded(name)] = series
    pl.DataFrame(out).write_csv(path, datetime_format="%Y-%m-%dT%H:%M:%S", date_format="%Y-%m-%d")


def write_parquet(columns: Columns, path: str | Path) -> None:
    """Write columns as Parquet."""
    pl = optional("polars")
    pl.DataFrame({name: _as_series(name, values) for name, values in columns.items()}).write_parquet(path)


def guarded(label: str) -> str:
    """A label that no spreadsheet takes for a formula."""
    return f"'{label}" if label.startswith(GUARDED) else label


def unguarded(label: str) -> str:
    """The label before it was guarded."""
    return label[1:] if label.startswith("'") and label[1:].startswith(GUARDED) else label


def _existing(path: Path) -> Path:
    try:
        folder, file = path.is_dir(), path.is_file()
    except OSError as error:  # a name too long for the system, for example
        raise InputError(f"{path} cannot be looked up: {error.strerror}.") from None
    if folder:
        raise InputError(f"{path} is a directory. Name a CSV or Parquet file in it.")
    if not file:
        raise InputError(f"there is no file {path}. Check the name.")
    return path


def check_encoding(encoding: str) -> str:
    """The name of a text encoding, or a refusal; asked before a table is opened."""
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise ParameterError(f"encoding {encoding!r} is unknown. Use a name such as utf-8, utf-16 or latin-1.")
    return found.name


def _read_bytes(path: Path, limit: int) -> bytes:
    """The file's contents, decompressed if its name ends in .gz, refused past the limit before they fill the memory."""
    try:
        if path.suffix.lower() == ".gz":
            with gzip.open(path, "rb") as file:
                data = file.read(limit + 1)
        else:
            with path.open("rb") as file:
                data = b"" if path.stat().st_size > limit else file.read()
                if path.stat().st_size > limit:
                    raise _too_large(str(path), limit)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot read {path}: {error}.") from None
    if len(data) > limit:
        raise _too_large(str(path), limit)
    return data


def _too_large(what: str, limit: int) -> InputError:
    return InputError(f"{what} holds more than {limit} bytes, the limit. Split it, or raise size_limit.")


def _read_csv(data: bytes, schema: Schema | None, encoding: str, field_limit: int, where: str) -> Table:
    data = _utf8(data, encoding, where)
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    names, start = _header(data, where)
    stop = len(data)
    while len(names) > 1 and stop > start and data[stop - 1] == _LINE:
        stop -= 1
    if stop <= start:
        raise InputError(f"{where} has a header and no rows. There is nothing to synthesize.")
    shape = _scan_in_parts(data, start, stop, len(names), where)
    places, ignored = _match(names, schema)
    pl = optional("polars")
    slots = [f"column_{j}" for j in range(len(names))]
    frame = pl.read_csv(
        data,
        has_header=False,
        skip_lines=data.count(b"\n", 0, start),
        schema=dict.fromkeys(slots, pl.String),
        columns=sorted(places.values()) or [0],
        extra_columns="ignore",
        missing_columns="insert",
        encoding="utf8",
    ).head(shape.records)  # without blank lines at the end
    if len(frame) != shape.records:
        raise InputError(f"{where} cannot be split into records: quotes or line ends are broken.")
    columns = {name: frame[slots[j]].alias(name) for name, j in places.items()}
    if shape.longest > field_limit:
        for name, series in columns.items():
            _check_cells(name, series, field_limit)
    return Table(columns, shape.records, "csv", shape.short, shape.long, ignored)


def _utf8(data: bytes, encoding: str, where: str) -> bytes:
    """The contents in UTF-8 without a byte order mark. Nothing is guessed: the encoding is what was declared."""
    declared = check_encoding(encoding)
    if not data:
        raise InputError(f"{where} is empty.")
    if declared not in ("utf-8", "utf-8-sig"):
        try:
            return data.decode(declared).removeprefix("\ufeff").encode()
        except (UnicodeError, TypeError) as error:
            raise InputError(f"{where} is not {encoding}: {error}.") from None
    data = data.removeprefix(codecs.BOM_UTF8)
    if data.startswith(_FOREIGN_MARKS):
        raise InputError(f"{where} starts like UTF-16 or UTF-32, not UTF-8. Declare it: encoding='utf-16'.")
    if not data.isascii():
        try:
            data.decode()
        except UnicodeDecodeError as error:
            line = 1 + data.count(b"\n", 0, error.start)
            raise InputError(f"{where} is not UTF-8, line {line}. Declare its encoding, such as 'latin-1'.") from None
    return data


def _header(data: bytes, where: str) -> tuple[list[str], int]:
    """The column names, and where the first record starts."""
    end = data.find(b"\n")
    while end >= 0 and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end + 1)
    end = len(data) if end < 0 else end
    try:
        lines = csv.reader(io.StringIO(data[:end].decode(), newline=""), strict=True)
        names = next(lines, [])
    except csv.Error as error:
        raise InputError(f"{where} has an unbalanced quote in its header, line 1: {error}.") from None
    if not any(name.strip() for name in names):
        raise InputError(f"{where} has no header. Its first line must name the columns.")
    if any("\0" in name for name in names):
        raise InputError(f"{where} has NUL bytes in its header. If it is UTF-16, declare it: encoding='utf-16'.")
    return names, min(end + 1, len(data))


@dataclass(frozen=True)
class _Shape:
    records: int
    short: int
    long: int
    longest: int  # bytes of the longest record


def _scan_in_parts(data: bytes, first: int, stop: int, width: int, where: str) -> _Shape:
    """Scan with several threads; where quotes may hide line ends, with one."""
    workers = min(8, os.cpu_count() or 1)
    if stop - first < 16 * _CHUNK or data.find(b'"', first, stop) >= 0:
        return _scan(data, first, stop, width, where)
    cuts = [first]
    for k in range(1, workers):
        cut = data.find(b"\n", first + (stop - first) * k // workers, stop) + 1
        cuts.append(max(cut, cuts[-1]))
    with ThreadPoolExecutor(max_workers=workers) as pool:
        shapes = list(pool.map(lambda a, b: _scan(data, a, b, width, where), cuts, [*cuts[1:], stop]))
    return _Shape(
        records=sum(s.records for s in shapes),
        short=sum(s.short for s in shapes),
        long=sum(s.long for s in shapes),
        longest=max(s.longest for s in shapes),
    )


def _scan(data: bytes, first: int, stop: int, width: int, where: str) -> _Shape:
    """Count records and fields, and refuse quotes that are not where RFC 4180 has them, naming the line.

    The reader that follows is fast and lenient: it would let one open quote swallow the rest of the file.
    """
    whole = np.frombuffer(data, dtype=np.uint8)[:stop]
    quoted = data.find(b'"', first, stop) >= 0
    quotes_seen, fields_before, start = 0, 0, first
    records = short = long = longest = 0
    for begin in range(first, stop, _CHUNK):
        part = whole[begin : begin + _CHUNK]
        marks = np.flatnonzero((part == _LINE) | (part == _COMMA))
        if quoted:
            quotes = np.flatnonzero(part == _QUOTE)
            _check_quotes(data, whole, begin + quotes, quotes_seen, where)
            marks = marks[(np.searchsorted(quotes, marks) + quotes_seen) % 2 == 0]
            quotes_seen += len(quotes)
        ends = np.flatnonzero(part[marks] == _LINE)
        if len(ends):
            fields = np.diff(ends, prepend=-1)
            fields[0] += fields_before
            short += int(np.count_nonzero(fields < width))
            long += int(np.count_nonzero(fields > width))
            places = begin + marks[ends]
            longest = max(longest, int(np.diff(places, prepend=start - 1).max()))
            start, fields_before = int(places[-1]) + 1, len(marks) - 1 - int(ends[-1])
            records += len(ends)
        else:
            fields_before += len(marks)
    if quotes_seen % 2:
        raise _unbalanced(data, data.rfind(b'"', first, stop), where)
    if start < stop:  # the last line has no end
        records += 1
        short += fields_before + 1 < width
        long += fields_before + 1 > width
        longest = max(longest, stop - start)
    return _Shape(records, short, long, longest)


def _check_quotes(data: bytes, whole: Any, quotes: Any, seen: int, where: str) -> None:
    """Opening quotes stand at the start of a field, closing ones at its end; a doubled one counts as both."""
    neighbours = (_QUOTE, _COMMA, _LINE)
    opening, closing = quotes[seen % 2 :: 2], quotes[1 - seen % 2 :: 2]
    before, after = whole[opening - 1], whole[np.minimum(closing + 1, len(whole) - 1)]
    bad_open = opening[~np.isin(before, neighbours)]
    bad_close = closing[(closing + 1 < len(whole)) & ~np.isin(after, neighbours)]
    if len(bad_open) and (not len(bad_close) or bad_open[0] < bad_close[0]):
        raise _unbalanced(data, int(bad_open[0]), where)
    if len(bad_close):
        raise _unbalanced(data, data.rfind(b'"', 0, int(bad_close[0])), where)


def _unbalanced(data: bytes, place: int, where: str) -> InputError:
    line = 1 + data.count(b"\n", 0, max(place, 0))
    return InputError(
        f"{where} has an unbalanced quote in line {line}. Quote the whole field and double the quotes in it."
    )


def _read_parquet(path: Path, schema: Schema | None, limit: int) -> Table:
    pl, parquet = optional("polars"), optional("pyarrow.parquet")
    try:
        with parquet.ParquetFile(path) as file:
            meta, names = file.metadata, list(file.schema_arrow.names)
            stored = sum(meta.row_group(g).total_byte_size for g in range(meta.num_row_groups))
        # Encodings repeat values without storing them, so the number of cells is bounded as well.
        if max(stored, 16 * meta.num_rows * len(names)) > limit:
            raise _too_large(str(path), limit)
        places, ignored = _match(names, schema)
        frame = pl.read_parquet(path, columns=[names[j] for j in places.values()] or names[:1])
    except (OSError, ValueError, pl.exceptions.PolarsError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{path} is not a Parquet file that can be read: {error}.") from None
    columns = {name: _plain(frame[names[j]]).alias(name) for name, j in places.items()}
    return Table(columns, int(meta.num_rows), "parquet", ignored=ignored)


def _kind(frame: Any) -> str:
    if isinstance(frame, str | Path):
        return "parquet" if Path(frame).suffix.lower() in (".parquet", ".pq") else "csv"
    if isinstance(frame, Mapping):
        return "columns"
    nw = optional("narwhals")
    try:
        return str(nw.from_native(frame, eager_only=True).implementation.name).lower()
    except nw.exceptions.DuplicateError:
        raise InputError("the frame has two columns of the same name. Rename one.") from None
    except TypeError:
        raise ParameterError(
            f"a table is a path, a pandas, polars or pyarrow frame, or a mapping of columns, got {type(frame).__name__}. "
            "Collect lazy frames first."
        ) from None


def _read_frame(frame: Any, schema: Schema | None) -> Table:
    kind = _kind(frame)
    if kind == "columns":
        columns, ignored = _choose({str(name): _as_series(str(name), v) for name, v in frame.items()}, schema)
        lengths = {len(series) for series in columns.values()}
        if len(lengths) > 1:
            raise InputError("the columns have different lengths.")
        return Table(columns, lengths.pop() if lengths else 0, kind, ignored=ignored)
    wide = optional("narwhals").from_native(frame, eager_only=True)
    names = [str(name) for name in wide.columns]
    places, ignored = _match(names, schema)
    columns = {}
    for name, j in places.items():
        column = wide.get_column(wide.columns[j])
        try:
            columns[name] = _plain(column.to_polars()).alias(name)
        except Exception:  # mixed Python objects: read cell by cell, each as text
            columns[name] = _texts(name, column.to_list())
    return Table(columns, len(wide), kind, ignored=ignored)


def _choose(columns: dict[str, Series], schema: Schema | None) -> tuple[dict[str, Series], tuple[str, ...]]:
    names = list(columns)
    places, ignored = _match(names, schema)
    return {name: columns[names[j]] for name, j in places.items()}, ignored


def _match(names: list[str], schema: Schema | None) -> tuple[dict[str, int], tuple[str, ...]]:
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


def _as_series(name: str, values: Any) -> Series:
    pl = optional("polars")
    if isinstance(values, pl.Series):
        return _plain(values).alias(name)
    if isinstance(values, np.ndarray) and values.dtype.kind in "biuf":
        out: Series = pl.Series(name, values)
        return out
    values = list(values)
    try:
        return _plain(pl.Series(name, values, strict=True))
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        return _texts(name, values)


def _plain(series: Series) -> Series:
    """Columns of nested or unknown things become text, cell by cell."""
    pl = optional("polars")
    if series.dtype.is_nested() or series.dtype in (pl.Object, pl.Binary, pl.Duration):
        return _texts(series.name, series.to_list())
    return series


def _texts(name: str, values: list[Any]) -> Series:
    out: Series = optional("polars").Series(name, [_text(v) for v in values], dtype=optional("polars").String)
    return out


def _text(value: Any) -> str | None:
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


def _check_cells(name: str, series: Series, limit: int) -> None:
    if series.dtype == optional("polars").String and bool((series.str.len_bytes() > limit).any()):
        raise InputError(f"column {name!r} has a cell of more than {limit} bytes, the limit. Shorten it.")
