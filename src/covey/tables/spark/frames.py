"""Parquet files that Spark's executors read themselves: Spark hands out row groups, and not a cell passes through it.

A Spark frame comes to Python row by row, with every word spelled out. Here each task opens the files instead, and reads its row
groups with the reader of `covey release FILE`: words stay places in lists of them. Files are taken as that command takes them,
by their columns' exact names; what a frame may add to its files, such as a filter, columns from the names of folders, or a log
that says which files count, is nothing that can be seen here. Folders that look like it are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from covey.errors import CHANGED, InputError, ParameterError, optional
from covey.libraries import pa, pl
from covey.paths import scheme_of
from covey.tables.codec import Codec, EncodeLog
from covey.tables.columns import Table, bounded, made, match, plainly
from covey.tables.provisional import Provisional
from covey.tables.rules import Domain
from covey.tables.schema import Schema
from covey.tables.sources import SIZE_LIMIT, existing, no_rows
from covey.tables.sources.arrowfile import ArrowFile, arrow_column

TASK_CELLS = 1 << 28  # of a task at most, some seconds of work; one row group that has more is a task of its own
LEAST_CELLS = 1 << 22  # fewer take less time than a task takes to start
TASKS_PER_PROCESSOR = 4  # so that processors end their work at about the same time

SHARED = "Name a folder that all executors see, or give the frame, spark.read.parquet(…), instead."
PERSONS = "covey.SparkParquet does not bring a person's rows together. Give the frame instead: spark.read.parquet(…)."

KIND = "spark"


@dataclass(frozen=True)
class SparkParquet:
    """Parquet files that the executors of Spark read themselves; `prepare` and `fit` take it as they take a Spark frame.

    Args:
        spark: the session, which hands out the work and merges the sums.
        path: a folder with Parquet files and nothing else, one such file, or a list of files. Every executor must see the same
            files under these names: on a mounted or shared disk, or in local mode. They must not change meanwhile.
    """

    spark: Any
    path: str | Path | list[str | Path] | tuple[str | Path, ...]

    @property
    def files(self) -> list[Path]:
        """The files, in order, or a refusal. Files that Spark passes over are passed over."""
        given = list(self.path) if isinstance(self.path, list | tuple) else [self.path]
        found = [file for one in given for file in _files(one)]
        places: set[tuple[int, int]] = set()
        for file in found:
            facts = file.stat()
            if (place := (facts.st_dev, facts.st_ino)) in places:
                raise ParameterError(f"{file} is named twice, and its rows would count twice. Name it once.")
            places.add(place)
        return found


@dataclass(frozen=True)
class Piece:
    """Row groups of one file, and how many rows it has in each."""

    path: Path
    groups: tuple[int, ...]
    rows: tuple[int, ...]

    def parts(self, schema: Domain) -> Iterator[Table]:
        """What the row groups hold, in parts."""
        if not self.path.is_file():
            raise InputError(f"an executor of Spark sees no file {self.path}. {SHARED}")
        source = _open(self.path, schema, self.groups)
        if source.group_rows != self.rows:
            raise InputError(CHANGED)
        for part in source.parts():
            yield source.table(part)


@dataclass(frozen=True)
class Plan:
    """Which row groups each task reads. It is sent to the executors, and holds names of files and numbers of rows."""

    schema: Domain
    tasks: tuple[tuple[Piece, ...], ...]
    n: int
    ignored: tuple[str, ...]

    def __call__(self, batches: Iterator[Any]) -> Iterator[Table]:
        """The parts of the tasks whose numbers come in Arrow batches."""
        # All numbers first: Spark starts a worker anew that stops, as at a refusal, before its input ends.
        numbers = [k for batch in batches for k in batch.column(0).to_pylist()]
        for piece in (piece for k in numbers for piece in self.tasks[k]):
            for table in piece.parts(self.schema):
                yield replace(table, ignored=self.ignored)


def plan(table: SparkParquet, schema: Domain) -> Plan:
    """Look at the footers of all files and share their row groups out, each to one task. May fail on the files."""
    opened = [_open(file, schema, ()) for file in table.files]
    n = sum(sum(file.group_rows) for file in opened)
    if not n:
        raise no_rows()
    ignored = dict.fromkeys(name for file in opened for name in file.ignored)
    width, workers = max(1, len(schema.encoded)), table.spark.sparkContext.defaultParallelism
    share = n * width // (TASKS_PER_PROCESSOR * workers)
    tasks = _shared_out(opened, max(1, min(TASK_CELLS, max(LEAST_CELLS, share)) // width))
    return Plan(schema, tasks, n, tuple(ignored))


def _shared_out(files: Sequence[ArrowFile], rows: int) -> tuple[tuple[Piece, ...], ...]:
    """Row groups, one after the other, in runs of about so many rows; each is in one of them."""
    tasks: list[list[Piece]] = [[]]
    held = 0
    for file in files:
        start, counts = 0, file.group_rows
        for end in range(1, len(counts) + 1):
            held += counts[end - 1]
            full = held >= rows
            if full or end == len(counts):
                tasks[-1].append(Piece(file.path, tuple(range(start, end)), counts))
                start = end
            if full:
                tasks.append([])
                held = 0
    return tuple(tuple(task) for task in tasks if task)


def _open(file: Path, schema: Domain, groups: Sequence[int]) -> ArrowFile:
    return ArrowFile(existing(file), schema, SIZE_LIMIT, groups)


def _files(given: Any) -> list[Path]:
    """The files that a name stands for."""
    if not isinstance(given, str | Path):
        raise ParameterError(f"covey.SparkParquet takes a folder or names of files, got {type(given).__name__}.")
    if scheme_of(given):
        raise ParameterError(f"{given} is an address, and executors open files by their path. {SHARED}")
    path = Path(given).absolute()
    if not path.is_dir():
        return [existing(path)]
    try:
        inside = sorted(path.iterdir())
    except OSError as error:
        raise InputError(f"{path} cannot be looked into: {error.strerror}.") from None
    if any(one.is_dir() for one in inside):
        # Columns in the names of folders, a log that says which files count, or a table that is still being written.
        raise InputError(
            f"{path} has folders in it, so its files may be more or less than the table. Give the frame instead: "
            "spark.read.parquet(…)."
        )
    # Spark itself passes over these names.
    hidden = re.compile(r"\..*|.*\._COPYING_|_[^=]*", re.DOTALL)
    found = [one for one in inside if not hidden.fullmatch(one.name)]
    if not found:
        raise InputError(f"{path} has no Parquet file in it. Check the name.")
    return found


def is_spark(table: Any) -> bool:
    """Whether a table is a Spark frame; Spark is not imported for it."""
    return hasattr(type(table), "mapInArrow")


def needed_columns(frame: Any, schema: Domain) -> tuple[Any, tuple[str, ...]]:
    """The frame with the schema's columns alone, in its order and under plain names, and the names that are passed over."""
    places, ignored, _ = match(list(frame.columns), schema)
    # By place: names may hold dots, differ in case only, or be there twice where they are not needed.
    renamed = frame.toDF(*(f"c{j}" for j in range(len(frame.columns))))
    return renamed.select(*(f"c{j}" for j in places.values())), ignored


@dataclass(frozen=True)
class BatchEncoder:
    """Encodes Arrow batches of the needed columns; it is sent to the executors, and holds public things alone."""

    codec: Codec | Provisional
    encode: Callable[[Table], tuple[Any, EncodeLog]]  # by this codec
    ignored: tuple[str, ...]

    def __call__(self, batch: Any) -> tuple[Any, EncodeLog]:
        """The codes of a batch, and the private log."""
        try:
            arrays = zip(self.codec.names, batch.columns, strict=True)
            columns = {name: arrow_column(name, values) for name, values in arrays}
            read = Table(columns, len(batch), KIND, ignored=self.ignored)
            table = plainly(bounded(read), self.codec.schema)
        except (ValueError, NotImplementedError, pl.exceptions.PolarsError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"a batch of the Spark frame cannot be read: {error}") from None
        return self.encode(table)


def _arrow_schema(schema: Schema) -> Any:
    """The Arrow schema of synthetic rows."""
    dtypes = {"boolean": pa.bool_(), "integer": pa.int64(), "number": pa.float64(), "date": pa.date32()}
    dtypes["datetime"] = pa.timestamp("us")
    # Spark has no time of day in every version.
    types = {f.name: pa.string() if f.special else dtypes.get(f.written, pa.string()) for f in schema.fields}
    return pa.schema(list(types.items()))


def spark_schema(schema: Schema) -> Any:
    """The Spark schema of synthetic rows."""
    types = optional("pyspark.sql.pandas.types")
    return types.from_arrow_schema(_arrow_schema(schema), prefer_timestamp_ntz=True)


def arrow_batches(columns: Mapping[str, pl.Series], schema: Schema) -> Iterator[Any]:
    """Synthetic columns as Arrow batches of `spark_schema`."""
    wanted = _arrow_schema(schema)
    frame = pl.DataFrame({name: made(columns[name]) for name in wanted.names})
    yield from frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(wanted).combine_chunks().to_batches()
