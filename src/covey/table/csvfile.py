"""CSV in blocks: a file of any length, read with bounded memory.

CSV is comma-separated with a header line and double quotes (RFC 4180), in UTF-8 unless another encoding is declared. Line
ends of every kind are read; blank lines at the end are no records, unless there is one column. Records with too few
fields have missing ones, surplus fields are ignored. What cannot be read as a table at all is an InputError.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from covey.errors import InputError, ParameterError
from covey.table.columns import SizeBudget, Table, check_cells, match
from covey.table.extras import optional
from covey.table.rules import Domain

BLOCK = 2**23  # bytes that are read at a time
RECORD_LIMIT = 2**26  # bytes of one record

_CHUNK = 2**18  # bytes that fit the processor's cache
_QUOTE, _COMMA, _LINE = 34, 44, 10
_FOREIGN_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_TEXT = {  # how files start that are often taken for text
    b"PK\x03\x04": "an Excel or zip file (.xlsx, .ods, .npz)",
    b"PK\x05\x06": "an empty zip file",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Excel file (.xls)",
    b"\x93NUMPY": "a numpy file (.npy)",
}
_SEPARATORS = {b";": ("';'", "semicolons"), b"\t": ("a tab", "tabs"), b"|": ("'|'", "pipes")}


@dataclass(frozen=True)
class Block:
    """Whole records as they stand in the file, in UTF-8 with line feeds, and the number of the first line."""

    data: bytes
    line: int


class CsvFile:
    """A CSV file, or its gzip, as blocks of whole records."""

    kind = "csv"

    def __init__(self, path: Path, schema: Domain | None, encoding: str, field_limit: int, budget: SizeBudget) -> None:
        self.path, self.field_limit, self.budget = path, field_limit, budget
        self.encoding = check_encoding(encoding)
        self._declared = encoding
        self.names = self._header()
        self._places, self.ignored = match(self.names, schema)

    def parts(self) -> Iterator[Block]:
        """Blocks of whole records; the header and blank lines at the end are left out."""
        pending, line, first = b"", 1, True
        for piece, last in self._pieces():
            pending = pending + piece if pending else piece
            if first:
                end = _record_end(pending, 0)
                if end < 0 and not last:
                    self._refuse_endless(pending, line)
                    continue
                line += pending.count(b"\n", 0, end) if end >= 0 else 0
                pending, first = pending[end:] if end >= 0 else b"", False
            if last:
                data = pending.rstrip(b"\n") if len(self.names) > 1 else pending
                if data:
                    yield Block(data, line)
                return
            cut = _last_record_end(pending)
            if not cut:
                self._refuse_endless(pending, line)
                continue
            # Blank lines may turn out to be the last ones: they wait for what follows.
            keep = len(pending[:cut].rstrip(b"\n")) + 1
            if keep == 1:
                self._refuse_endless(pending, line)
            else:
                yield Block(pending[:keep], line)
                line += pending.count(b"\n", 0, keep)
                pending = pending[keep:]
        raise AssertionError("the last piece of a file is always marked")

    def table(self, part: Block) -> Table:
        """The needed columns of a block, as text."""
        data = part.data
        shape = _scan(data, len(self.names), str(self.path), part.line)
        pl = optional("polars")
        slots = [f"column_{j}" for j in range(len(self.names))]
        frame = pl.read_csv(
            data,
            has_header=False,
            schema=dict.fromkeys(slots, pl.String),
            columns=sorted(self._places.values()) or [0],
            extra_columns="ignore",
            missing_columns="insert",
            encoding="utf8",
        )
        if len(frame) != shape.records:
            raise InputError(f"{self.path} cannot be split into records: quotes or line ends are broken.")
        columns = {name: frame[slots[j]].alias(name) for name, j in self._places.items()}
        if shape.longest > self.field_limit:
            for name, series in columns.items():
                check_cells(name, series, self.field_limit)
        return Table(columns, shape.records, self.kind, shape.short, shape.long, self.ignored)

    def _header(self) -> list[str]:
        pending = b""
        for piece, last in self._pieces():
            pending += piece
            end = _record_end(pending, 0)
            if end >= 0 or last:
                return _names(pending[: end - 1] if end >= 0 else pending, str(self.path))
            self._refuse_endless(pending, 1)
        raise AssertionError("the last piece of a file is always marked")

    def _refuse_endless(self, pending: bytes, line: int) -> None:
        """Refuse a record that never ends: an open quote, or a cell beyond every limit."""
        if len(pending) > max(RECORD_LIMIT, 4 * self.field_limit):
            _scan(pending, len(getattr(self, "names", ())), str(self.path), line)  # names the line of an open quote
            raise InputError(
                f"{self.path}, line {line}: a record has more than {RECORD_LIMIT} bytes. Shorten its cells."
            )

    def _pieces(self) -> Iterator[tuple[bytes, bool]]:
        """The contents in UTF-8 with line feeds, and whether a piece is the last one."""
        text, held, start, line = self._decoder(), b"", True, 1
        for place, (raw, last) in enumerate(self._raw()):
            if place == 0:
                self._refuse_foreign(raw)
            piece = text(raw, last, line)
            if start and piece:
                piece, start = piece.removeprefix(codecs.BOM_UTF8), False
            piece, held = held + piece, b""
            if piece.endswith(b"\r") and not last:  # half of a line end, perhaps
                piece, held = piece[:-1], b"\r"
            if b"\r" in piece:
                piece = piece.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
            line += piece.count(b"\n")
            yield piece, last

    def _refuse_foreign(self, raw: bytes) -> None:
        """Refuse a file that starts like no text, or like UTF-8 where another encoding is declared."""
        for mark, words in _NO_TEXT.items():
            if raw.startswith(mark):
                raise InputError(f"{self.path} is {words}, not text. Save the table as CSV or Parquet.")
        wide = self.encoding.startswith(("utf-16", "utf-32"))  # there these bytes are letters
        if raw.startswith(codecs.BOM_UTF8) and not wide and self.encoding not in ("utf-8", "utf-8-sig"):
            raise InputError(f"{self.path} starts like UTF-8, not {self._declared}. {_declare('utf-8')}")

    def _raw(self) -> Iterator[tuple[bytes, bool]]:
        seen = 0
        try:
            with _open(self.path) as file:
                block = file.read(BLOCK)
                if not block:
                    raise InputError(f"{self.path} is empty.")
                while block:
                    seen += len(block)
                    self.budget.check(seen)
                    following = file.read(BLOCK)
                    yield block, not following
                    block = following
        except (OSError, EOFError, zlib.error) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"cannot read {self.path}: {error}.") from None

    def _decoder(self) -> Any:
        """A step from raw bytes to UTF-8. Nothing is guessed: the encoding is what was declared."""
        where, declared = self.path, self._declared
        if self.encoding in ("utf-8", "utf-8-sig"):
            check = codecs.getincrementaldecoder("utf-8")()

            def same(raw: bytes, last: bool, line: int) -> bytes:
                if line == 1 and raw.removeprefix(codecs.BOM_UTF8).startswith(_FOREIGN_MARKS):
                    raise InputError(f"{where} starts like UTF-16 or UTF-32, not UTF-8. {_declare('utf-16')}")
                if raw.isascii() and not check.getstate()[0]:
                    return raw
                try:
                    check.decode(raw, last)
                except UnicodeDecodeError as error:
                    line += error.object.count(b"\n", 0, error.start)
                    raise InputError(f"{where} is not UTF-8, line {line}. {_declare('latin-1')}") from None
                return raw

            return same
        decoder = codecs.getincrementaldecoder(self.encoding)()

        def other(raw: bytes, last: bool, line: int) -> bytes:
            try:
                return decoder.decode(raw, last).encode()
            except (UnicodeError, TypeError) as error:
                raise InputError(f"{where} is not {declared}: {error}.") from None

        return other


def check_encoding(encoding: str) -> str:
    """The name of a text encoding, or a refusal; asked before a table is opened."""
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise ParameterError(f"encoding {encoding!r} is unknown. Use a name such as utf-8, utf-16 or latin-1.")
    return found.name


def _declare(encoding: str) -> str:
    return f"Declare its encoding, such as {encoding!r} (on the command line: --encoding {encoding})."


def _open(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    return path.open("rb")


def _record_end(data: bytes, start: int) -> int:
    """Where the record that starts here ends, its line feed included; −1 if it does not end."""
    end = data.find(b"\n", start)
    while end >= 0 and data.count(b'"', start, end) % 2:
        end = data.find(b"\n", end + 1)
    return end + 1 if end >= 0 else -1


def _last_record_end(data: bytes) -> int:
    """Where the last whole record ends; 0 if there is none. The data starts with a record."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    whole = np.frombuffer(data, dtype=np.uint8)
    quotes, lines = np.flatnonzero(whole == _QUOTE), np.flatnonzero(whole == _LINE)
    outside = lines[np.searchsorted(quotes, lines) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def _names(header: bytes, where: str) -> list[str]:
    """The column names."""
    _refuse_separator(header, re.sub(rb'"[^"]*"', b"", header).partition(b"\n")[0], where)
    try:
        lines = csv.reader(io.StringIO(header.decode(), newline=""), strict=True)
        names = next(lines, [])
    except csv.Error as error:
        raise InputError(f"{where} has an unbalanced quote in its header, line 1: {error}.") from None
    if not any(name.strip() for name in names):
        raise InputError(f"{where} has no header. Its first line must name the columns.")
    if any("\0" in name for name in names):
        raise InputError(f"{where} has NUL bytes in its header. Is it UTF-16? {_declare('utf-16')}")
    if len(names) == 1 and not header.startswith(b'"'):
        _refuse_separator(header, header, where)
    return names


def _refuse_separator(header: bytes, outside: bytes, where: str) -> None:
    """Refuse a header that holds no comma and another separator outside quotes.

    Read as one column, each whole record would be a category of it. A single name in quotes may hold anything.
    """
    spreadsheet = re.match(rb"sep=([,;|: \t])(\n|$)", header, re.IGNORECASE)
    if spreadsheet:
        how = "" if spreadsheet[1] == b"," else ", and separate the fields with commas"
        raise InputError(f"{where} starts with a line for spreadsheets, 'sep='. Remove that line{how}.")
    for mark, (name, plural) in _SEPARATORS.items():
        if mark in outside and b"," not in outside:
            raise InputError(
                f"{where} has one column, whose name contains {name}. Is it separated by {plural}? Write it with commas; "
                "if that is its name, quote it."
            )


@dataclass(frozen=True)
class _Shape:
    records: int
    short: int
    long: int
    longest: int  # bytes of the longest record


def _scan(data: bytes, width: int, where: str, line: int) -> _Shape:
    """Count records and fields, and refuse quotes that are not where RFC 4180 has them, naming the line.

    The reader that follows is fast and lenient: it would let one open quote swallow the rest of the block.
    """
    whole = np.frombuffer(data, dtype=np.uint8)
    quoted = b'"' in data
    quotes_seen, fields_before, start = 0, 0, 0
    records = short = long = longest = 0
    for begin in range(0, len(data), _CHUNK):
        part = whole[begin : begin + _CHUNK]
        marks = np.flatnonzero((part == _LINE) | (part == _COMMA))
        if quoted:
            quotes = np.flatnonzero(part == _QUOTE)
            _check_quotes(data, whole, begin + quotes, quotes_seen, where, line)
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
        raise _unbalanced(data, data.rfind(b'"'), where, line)
    if start < len(data):  # the last line has no end
        records += 1
        short += fields_before + 1 < width
        long += fields_before + 1 > width
        longest = max(longest, len(data) - start)
    return _Shape(records, short, long, longest)


def _check_quotes(data: bytes, whole: Any, quotes: Any, seen: int, where: str, line: int) -> None:
    """Opening quotes stand at the start of a field, closing ones at its end; a doubled one counts as both."""
    neighbours = (_QUOTE, _COMMA, _LINE)
    opening, closing = quotes[seen % 2 :: 2], quotes[1 - seen % 2 :: 2]
    before, after = whole[np.maximum(opening - 1, 0)], whole[np.minimum(closing + 1, len(whole) - 1)]
    bad_open = opening[(opening > 0) & ~np.isin(before, neighbours)]
    bad_close = closing[(closing + 1 < len(whole)) & ~np.isin(after, neighbours)]
    if len(bad_open) and (not len(bad_close) or bad_open[0] < bad_close[0]):
        raise _unbalanced(data, int(bad_open[0]), where, line)
    if len(bad_close):
        raise _unbalanced(data, data.rfind(b'"', 0, int(bad_close[0])), where, line)


def _unbalanced(data: bytes, place: int, where: str, line: int) -> InputError:
    line += data.count(b"\n", 0, max(place, 0))
    return InputError(
        f"{where} has an unbalanced quote in line {line}. Quote the whole field and double the quotes in it."
    )
