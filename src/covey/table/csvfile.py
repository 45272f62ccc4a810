"""CSV in blocks: a file of any length, read with bounded memory.

CSV has a header line and double quotes (RFC 4180), and a comma, semicolon, tab or pipe between cells. The header decides what
ends a line (see `covey.table.textfile`). Every line behind it is a record, blank ones too: a record with too few cells has
missing ones, surplus cells are ignored. What cannot be read as a table at all is an InputError.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from covey.errors import InputError
from covey.table.columns import SizeBudget, Table, check_cells, match
from covey.table.csv_records import last_record_end, record_end, scan
from covey.table.dialects import PLAIN, SEPARATORS, Dialect
from covey.table.domain import Domain
from covey.table.extras import optional
from covey.table.textfile import TextFile, declare

BLOCK = 2**23  # bytes that are read at a time
RECORD_LIMIT = 2**26  # bytes of one record


@dataclass(frozen=True)
class Block:
    """Whole records as they stand in the file, in UTF-8 with line feeds, and the number of the first line."""

    data: bytes
    line: int


class CsvFile:
    """A CSV file, perhaps compressed, as blocks of whole records."""

    origin = "csv"

    def __init__(
        self, path: Path, schema: Domain | None, dialect: Dialect, field_limit: int, budget: SizeBudget
    ) -> None:
        dialect = dialect.over(PLAIN)
        self.path, self.field_limit = path, field_limit
        self.separator, self.line = dialect.separator or ",", 1 + (dialect.skip_rows or 0)
        self.text = TextFile(path, dialect.encoding or "utf-8", dialect.skip_rows or 0, budget)
        self.names = self._header()
        self._places, self.ignored, self.twice = match(self.names, schema)

    def parts(self) -> Iterator[Block]:
        """Blocks of whole records behind the header; none where all of them are blank."""
        waiting: list[Block] = []
        blank = len(self.names) > 1  # of a single column a blank line is a missing cell, as it is written
        for block in self._blocks():
            blank = blank and not block.data.strip(b"\n")
            if blank:
                waiting.append(block)
            else:
                yield from waiting
                waiting.clear()
                yield block

    def _blocks(self) -> Iterator[Block]:
        pending, line, first = b"", self.line, True
        for piece, last in self.text.pieces(BLOCK):
            pending = pending + piece if pending else piece
            if first:
                end = record_end(pending, 0)
                if end < 0 and not last:
                    self._refuse_endless(pending, line)
                    continue
                line += pending.count(b"\n", 0, end) if end >= 0 else 0
                pending, first = pending[end:] if end >= 0 else b"", False
            if last:
                if pending:
                    yield Block(pending, line)
                return
            cut = last_record_end(pending)
            if cut:
                yield Block(pending[:cut], line)
                line += pending.count(b"\n", 0, cut)
                pending = pending[cut:]
            else:
                self._refuse_endless(pending, line)
        raise AssertionError("the last piece of a file is always marked")

    def table(self, part: Block) -> Table:
        """The needed columns of a block, as text."""
        data = part.data
        shape = scan(data, len(self.names), ord(self.separator), str(self.path), part.line)
        pl = optional("polars")
        slots = [f"column_{j}" for j in range(len(self.names))]
        frame = pl.read_csv(
            data,
            has_header=False,
            schema=dict.fromkeys(slots, pl.String),
            columns=sorted(self._places.values()) or [0],
            separator=self.separator,
            extra_columns="ignore",
            missing_columns="insert",
            encoding="utf8",
        )
        if len(frame) != shape.records:
            raise InputError(f"{self.path} cannot be split into records: quotes or line ends are broken.")
        columns = {name: frame[slots[j]].alias(name) for name, j in self._places.items()}
        if self.text.swapped:
            columns = {name: series.str.replace_all("\r", "\n", literal=True) for name, series in columns.items()}
        if shape.longest > self.field_limit:
            for name, series in columns.items():
                check_cells(name, series, self.field_limit)
        return Table(columns, shape.records, self.origin, shape.short, shape.long, self.ignored, self.twice)

    def _header(self) -> list[str]:
        pending = b""
        for piece, last in self.text.pieces(BLOCK):
            pending += piece
            end = record_end(pending, 0)
            if end >= 0 or last:
                return self._names(pending[: end - 1] if end >= 0 else pending)
            self._refuse_endless(pending, self.line)
        raise AssertionError("the last piece of a file is always marked")

    def _names(self, header: bytes) -> list[str]:
        """The column names."""
        refuse_separator(header, re.sub(rb'"[^"]*"', b"", header).partition(b"\n")[0], self.separator, str(self.path))
        try:
            lines = csv.reader(io.StringIO(header.decode(), newline=""), delimiter=self.separator, strict=True)
            names = next(lines, [])
        except csv.Error as error:
            raise InputError(f"{self.path} has an unbalanced quote in its header, line {self.line}: {error}.") from None
        if not any(name.strip() for name in names):
            raise InputError(f"{self.path} has no header. Its first line must name the columns.")
        if any("\0" in name for name in names):
            raise InputError(f"{self.path} has NUL bytes in its header. Is it UTF-16? {declare('utf-16')}")
        if len(names) == 1 and not header.startswith(b'"'):
            refuse_separator(header, header, self.separator, str(self.path))
        return names

    def _refuse_endless(self, pending: bytes, line: int) -> None:
        """Refuse a record that never ends: an open quote, or a cell beyond every limit."""
        if len(pending) > max(RECORD_LIMIT, 4 * self.field_limit):
            width = len(getattr(self, "names", ()))
            scan(pending, width, ord(self.separator), str(self.path), line)  # names the line of an open quote
            raise InputError(
                f"{self.path}, line {line}: a record has more than {RECORD_LIMIT} bytes. Shorten its cells."
            )


def refuse_separator(header: bytes, outside: bytes, separator: str, where: str) -> None:
    """Refuse a header that lacks its separator and holds another one outside quotes.

    Read as one column, each whole record would be a category of it. A single name in quotes may hold anything.
    """
    spreadsheet = re.match(rb"sep=([,;|: \t])(\n|$)", header, re.IGNORECASE)
    if spreadsheet:
        raise InputError(f"{where} starts with a line for spreadsheets, 'sep='. Skip that line (--skip-rows 1).")
    for mark, plural in SEPARATORS.items():
        if mark.encode() in outside and separator.encode() not in outside:
            name = {"\t": "a tab"}.get(mark, f"{mark!r}")
            raise InputError(
                f"{where} has one column, whose name contains {name}. Is it separated by {plural}? Declare it as dialect "
                "in the schema (on the command line: --separator); if that is its name, quote it."
            )
