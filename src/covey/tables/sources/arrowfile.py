"""Parquet and Arrow IPC files in batches, through pyarrow.

Text columns of Parquet are asked for as places in a list of words, as they are stored: nothing is spelled out cell by cell, which
makes reading several times faster than any reader that does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Array
from covey.errors import InputError, optional
from covey.libraries import pa, pl
from covey.tables.columns import Table, Words, bounded, check_size, match, part_rows, plain, plainly
from covey.tables.rules import Domain

MANY_WORDS = 1 << 14  # a list of more words than this is spelled out


class ArrowFile:
    """A Parquet or Arrow IPC file as record batches of the needed columns.

    Args:
        path: the file.
        schema: whose columns are needed; without one all are.
        size_limit: bytes that a small file may unfold to.
        groups: of a Parquet file, whatever its name, the row groups to read; without them the whole file, by all processors.
    """

    def __init__(self, path: Path, schema: Domain | None, size_limit: int, groups: Sequence[int] | None = None) -> None:
        self.path, self.schema, self._groups = path, schema, groups
        named = path.suffix.lower() in (".parquet", ".pq")
        self.origin = "parquet" if named or groups is not None else "arrow"
        self._stream = False
        self.group_rows: tuple[int, ...] = ()  # of a Parquet file: the rows of each of its row groups
        with self._guard():
            names, cells = self._look()
            # Encodings repeat values without storing them, so the number of cells is bounded as well.
            check_size(path, size_limit, 16 * cells)
            self._names = names
            self._places, self.ignored, self._twice = match(names, schema)

    def parts(self) -> Iterator[Any]:
        """Record batches of bounded length."""
        # Of two columns of one name neither can be asked for by it: then all are read.
        named = [self._names[j] for j in self._places.values()] or self._names[:1]
        wanted = None if self._twice else named
        with self._guard():
            rows = part_rows(len(wanted or self._names))
            for batch in self._parquet(wanted, rows) if self.origin == "parquet" else self._ipc(wanted):
                for start in range(0, len(batch), rows):
                    yield batch.slice(start, rows)

    def table(self, part: Any) -> Table:
        """The needed columns of a batch."""
        with self._guard():
            columns = {name: part.column(j if self._twice else self._names[j]) for name, j in self._places.items()}
            read = {name: arrow_column(name, values) for name, values in columns.items()}
        table = Table(read, len(part), self.origin, ignored=self.ignored, twice=self._twice)
        return plainly(bounded(table), self.schema)

    def _look(self) -> tuple[list[str], int]:
        """The names of the columns, and how many cells there are, as far as the file tells."""
        if self.origin == "parquet":
            with optional("pyarrow.parquet").ParquetFile(self.path) as file:
                names, meta = list(file.schema_arrow.names), file.metadata
                self.group_rows = tuple(meta.row_group(i).num_rows for i in range(meta.num_row_groups))
                return names, meta.num_rows * len(names)
        ipc = optional("pyarrow.ipc")
        with pa.memory_map(str(self.path)) as data:
            try:
                return list(ipc.open_file(data).schema.names), 0
            except pa.ArrowInvalid:
                data.seek(0)
                self._stream = True
                return list(ipc.open_stream(data).schema.names), 0

    def _parquet(self, wanted: list[str] | None, rows: int) -> Iterator[Any]:
        parquet = optional("pyarrow.parquet")
        with parquet.ParquetFile(self.path) as file:
            stored = file.schema_arrow
            words = [name for name in wanted or () if stored.field(name).type in (pa.string(), pa.large_string())]
        with parquet.ParquetFile(self.path, read_dictionary=words) as file:
            # Who reads some row groups is one of several that do.
            alone = self._groups is None
            groups = range(file.num_row_groups) if self._groups is None else self._groups
            if len(groups):  # old versions of the library stumble over none
                yield from file.iter_batches(rows, row_groups=groups, columns=wanted, use_threads=alone)

    def _ipc(self, wanted: list[str] | None) -> Iterator[Any]:
        ipc = optional("pyarrow.ipc")
        with pa.memory_map(str(self.path)) as data:
            if self._stream:
                for batch in ipc.open_stream(data):
                    yield batch.select(wanted) if wanted else batch
                return
            file = ipc.open_file(data)
            for i in range(file.num_record_batches):
                batch = file.get_batch(i)
                yield batch.select(wanted) if wanted else batch

    @contextmanager
    def _guard(self) -> Iterator[None]:
        """What the library cannot read is an InputError."""
        try:
            yield
        except InputError:
            raise
        except (OSError, ValueError, KeyError, pl.exceptions.PolarsError) as error:
            raise InputError(f"{self.path} is not a file that can be read as a table: {error}.") from None


def arrow_column(name: str, values: Any) -> pl.Series | Words:
    """An Arrow array as a polars column; a dictionary of few words stays one."""
    _check_text(name, values.dictionary if pa.types.is_dictionary(values.type) else values)
    if pa.types.is_dictionary(values.type):
        words = values.dictionary
        if pa.types.is_string_view(words.type):  # polars writes its categories so
            words = words.cast(pa.large_string())
        places = _places(name, values.indices, len(words))
        text = pa.types.is_string(words.type) or pa.types.is_large_string(words.type)
        if text and len(words) <= MANY_WORDS and not words.null_count:
            return Words(places, pl.Series(words, dtype=pl.String))
        values = pa.DictionaryArray.from_arrays(pa.array(places, mask=places < 0), words).cast(words.type)
    elif pa.types.is_timestamp(values.type) and values.type.tz is not None:
        values = values.cast(pa.timestamp(values.type.unit, "UTC"))  # the same instants; polars knows fewer zones
    return plain(pl.Series(values))


def _places(name: str, places: Any, count: int) -> Array:
    """Places in a list of so many words, −1 for missing; any other is refused."""
    if pa.types.is_unsigned_integer(places.type):  # without room for −1
        places = places.cast(pa.int64())
    # Asked for an array in any other way, pyarrow imports pandas, which takes half a second.
    found = np.from_dlpack(places.fill_null(-1) if places.null_count else places)
    if found.max(initial=-1) >= count or np.count_nonzero(found < 0) != places.null_count:
        raise InputError(f"column {name!r} has cells that are not in its own list of words. Write the file again.")
    return found


def _check_text(name: str, values: Any) -> None:
    """Refuse text that is not UTF-8: no reader of Arrow batches looks, and polars relies on it."""
    if pa.types.is_string(values.type) or pa.types.is_large_string(values.type) or pa.types.is_string_view(values.type):
        try:
            values.validate(full=True)
        except pa.ArrowInvalid:
            raise InputError(f"column {name!r} holds text that is not UTF-8. Write it as UTF-8 text.") from None
