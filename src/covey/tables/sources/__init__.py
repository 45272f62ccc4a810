"""Where tables come from and go to: CSV, Parquet, Arrow IPC, databases, and pandas, polars or pyarrow frames.

A source is read in parts, any number of times: `parts()` brings them with as little work as possible, and `table(part)`, which
may run in another thread, turns one into columns. So a table of any length is read with bounded memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from covey.errors import InputError, ParameterError, optional
from covey.libraries import pl
from covey.paths import local_output
from covey.tables.columns import (
    NUMBER,
    Table,
    as_series,
    bounded,
    cell_by_cell,
    guarded,
    made,
    match,
    pandas_series,
    part_rows,
    plainly,
    spellings,
)
from covey.tables.dialects import Dialect, Spelling
from covey.tables.fields import GUARDED
from covey.tables.rules import Domain
from covey.tables.sources.arrowfile import ArrowFile
from covey.tables.sources.csvfile import CsvFile
from covey.tables.sources.databases import Database, DatabaseTable, is_database
from covey.tables.sources.frames import FrameForm, column_at, frame_origin, remember
from covey.tables.sources.workbook import SUFFIXES as WORKBOOK_SUFFIXES
from covey.tables.sources.workbook import read_sheet

ColumnValues = Mapping[str, Any]  # values by column: polars pl.Series, arrays or lists

SIZE_LIMIT = 8 * 2**30  # bytes of a table that was compressed far below them
ARROW_SUFFIXES = (".parquet", ".pq", ".arrow", ".ipc", ".feather")


class Source(Protocol):
    """A table that can be read in parts, again and again."""

    @property
    def origin(self) -> str:
        """What it is: csv, parquet, arrow, workbook, pandas, polars, pyarrow, columns or a database."""

    def parts(self) -> Iterator[Any]:
        """The parts, in order; opaque."""

    def table(self, part: Any) -> Table:
        """The columns of one part."""


def open_source(
    source: Any, schema: Domain | None = None, *, dialect: Dialect | None = None, size_limit: int = SIZE_LIMIT
) -> Source:
    """A file, a database, a frame or a mapping of columns as a source; with a schema only its columns, matched by name.

    The schema's dialect says how a file is written, unless another one is given.
    """
    dialect = dialect or (Dialect() if schema is None else schema.dialect)
    if isinstance(source, Database):
        if source.path is not None:
            existing(source.path)
        return DatabaseTable(source, schema)
    if is_database(source):
        raise ParameterError("a database holds many tables: give covey.Database(url, table=…) or query=….")
    if isinstance(source, str | Path):
        path = existing(Path(source))
        if path.suffix.lower() in ARROW_SUFFIXES:
            return ArrowFile(path, schema, size_limit)
        if path.suffix.lower() not in WORKBOOK_SUFFIXES:
            return CsvFile(path, schema, dialect, size_limit)
        table = read_sheet(path, schema, dialect, size_limit)
    else:
        table = _choose_again(source, schema) if isinstance(source, Table) else _read_frame(source, schema)
    return FrameParts(bounded(table))


class FrameParts:
    """A table in memory, in slices."""

    def __init__(self, table: Table) -> None:
        self.whole, self.origin, self._rows = table, table.origin, part_rows(len(table.columns))

    def parts(self) -> Iterator[int]:
        """Where each slice starts."""
        return iter(range(0, self.whole.rows, self._rows))

    def table(self, part: int) -> Table:
        """One slice; what was passed over in the whole table is told with the first."""
        whole = self.whole
        columns = {name: series.slice(part, self._rows) for name, series in whole.columns.items()}
        rows = min(self._rows, whole.rows - part)
        first = part == 0
        return Table(columns, rows, self.origin, first * whole.short_rows, first * whole.long_rows, whole.ignored)


def form_of(source: Source) -> FrameForm:
    """How a table looked, for rows to come back the same way."""
    return FrameForm(source.origin, source.whole.types if isinstance(source, FrameParts) else {})


def read_table(source: Any, schema: Domain | None = None, **options: Any) -> Table:
    """The whole table in memory; with a schema only its columns, matched by name. Options are those of `open_source`."""
    opened = open_source(source, schema, **options)
    table = opened.whole if isinstance(opened, FrameParts) else _joined(each_part(opened, lambda part: part))
    if not table.rows:
        raise no_rows()
    return table


def no_rows() -> InputError:
    """What a table without records gives."""
    return InputError("the table has a header and no rows. There is nothing to synthesize.")


def each_part(source: Source, work: Callable[[Table], Any]) -> list[Any]:
    """What is made of each part of a table, in order. Both libraries release the lock while they work on one."""
    with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
        found = list(pool.map(lambda part: work(source.table(part)), source.parts()))
    if not found:
        raise no_rows()
    return found


def _joined(tables: list[Table]) -> Table:
    columns = {}
    for name in tables[0].columns:
        series = [cell_by_cell(table.columns[name]) for table in tables]
        columns[name] = pl.concat(series, rechunk=True) if len(series) > 1 else series[0]
    counts = {word: sum(getattr(table, word) for table in tables) for word in ("rows", "short_rows", "long_rows")}
    return replace(tables[0], columns=columns, **counts)


def write_rows(parts: Iterable[ColumnValues], path: Path, parquet: bool = False) -> None:
    """Write parts of columns, one after the other, as CSV or Parquet."""
    with (writing_parquet if parquet else writing_csv)(path) as add:
        for columns in parts:
            add(columns)


@contextmanager
def writing_csv(path: str | Path) -> Iterator[Callable[[ColumnValues], None]]:
    """Adds parts to a CSV file. Text that a spreadsheet would run as a formula gets an apostrophe in front."""
    with local_output(path).open("wb") as file:

        def add(columns: ColumnValues) -> None:
            frame = _guarded_frame(columns)
            single = frame.width == 1
            if not file.tell():  # a single name may look like several: in quotes it cannot
                frame.clear().write_csv(file, quote_style="always" if single else "necessary")
            holes = single and frame.to_series().null_count() > 0  # a line with nothing in it would be no row
            frame.write_csv(
                file,
                include_header=False,
                quote_style="always" if holes else "necessary",
                datetime_format="%Y-%m-%dT%H:%M:%S",
                date_format="%Y-%m-%d",
                time_format="%H:%M:%S",
            )

        yield add


@contextmanager
def writing_parquet(path: str | Path) -> Iterator[Callable[[ColumnValues], None]]:
    """Adds parts to a Parquet file."""
    place = local_output(path)
    parquet = optional("pyarrow.parquet")
    with ExitStack() as stack:
        writers: list[Any] = []

        def add(columns: ColumnValues) -> None:
            frame = pl.DataFrame({name: made(values) for name, values in columns.items()})
            table = frame.to_arrow(compat_level=pl.CompatLevel.oldest())
            if not writers:
                writers.append(stack.enter_context(parquet.ParquetWriter(place, table.schema)))
            writers[0].write_table(table)

        yield add


def joined(parts: Iterable[ColumnValues]) -> ColumnValues:
    """Parts of columns, one below the other."""
    listed = list(parts)
    if len(listed) == 1:
        return listed[0]
    return {name: pl.concat([made(part[name]) for part in listed]) for name in listed[0]}


def _guarded_frame(columns: ColumnValues) -> Any:
    out = {}
    for name, values in columns.items():
        series = made(values)
        if series.dtype == pl.String:
            series = _guarded_cells(series)
        out[guarded(name)] = series
    return pl.DataFrame(out)


def _guarded_cells(texts: pl.Series) -> pl.Series:
    """Labels of a column, each as no spreadsheet takes it for a formula."""
    cells = pl.first()
    risky = pl.any_horizontal(*(cells.str.starts_with(mark) for mark in GUARDED))
    risky &= ~cells.str.contains(f"^{NUMBER}$")
    guarded = pl.when(risky).then(pl.lit("'") + cells).otherwise(cells)
    return texts.to_frame().select(guarded).to_series()


def existing(path: Path) -> Path:
    """The path of a file, or a refusal."""
    try:
        folder, file = path.is_dir(), path.is_file()
    except OSError as error:  # a name too long for the system, for example
        raise InputError(f"{path} cannot be looked up: {error.strerror}.") from None
    if folder:
        raise InputError(f"{path} is a directory. Name a CSV or Parquet file in it.")
    if not file:
        raise InputError(f"there is no file {path}. Check the name.")
    return path


def _read_frame(frame: Any, schema: Domain | None) -> Table:
    origin = "columns" if isinstance(frame, Mapping) else frame_origin(frame)
    if origin is None:
        raise ParameterError(
            "a table is a path, a covey.Database, a pandas, polars or pyarrow frame, or a mapping of columns, got "
            f"{type(frame).__name__}. Collect lazy frames first."
        )
    written, usual = spellings(schema, origin), Spelling()
    if origin == "columns":
        given = {str(name): as_series(v, written.get(str(name), usual)) for name, v in frame.items()}
        columns, ignored = _choose(given, schema)
        lengths = {len(series) for series in columns.values()}
        if len(lengths) > 1:
            raise InputError("the columns have different lengths.")
        return Table(columns, lengths.pop() if lengths else 0, origin, ignored=ignored)
    names = [str(name) for name in (frame.column_names if origin == "pyarrow" else frame.columns)]
    places, ignored, twice = match(names, schema)
    columns, types = {}, {}
    for name, j in sorted(places.items(), key=lambda place: place[1]):
        native = column_at(frame, j, origin)
        spelling = written.get(name, usual)
        types[name] = remember(origin, native.type if origin == "pyarrow" else native.dtype)
        if origin == "pandas":
            columns[name] = pandas_series(native, spelling)
        else:
            columns[name] = as_series(pl.Series(native), spelling)
    return Table(columns, len(frame), origin, ignored=ignored, twice=twice, types=types)


def _choose_again(table: Table, schema: Domain | None) -> Table:
    """The columns of a table that was read before, perhaps without a schema."""
    read = {name: cell_by_cell(values) for name, values in table.columns.items()}
    columns, ignored = _choose(read, schema)
    chosen = replace(table, columns=columns, ignored=table.ignored + ignored)
    return chosen if table.plain else plainly(chosen, schema)


def _choose(columns: dict[str, pl.Series], schema: Domain | None) -> tuple[dict[str, pl.Series], tuple[str, ...]]:
    names = list(columns)
    places, ignored, _ = match(names, schema)
    return {name: columns[names[j]] for name, j in places.items()}, ignored
