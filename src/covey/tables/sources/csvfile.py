"""CSV in blocks: a file of any length, read with bounded memory.

CSV has a header line and double quotes (RFC 4180), and a comma, semicolon, tab or pipe between cells. The header decides what
ends a line (see `TextFile`). Every line behind it is a record, blank ones too: a record with too few cells has
missing ones, surplus cells are ignored. What cannot be read as a table at all is an InputError.
"""

from __future__ import annotations

import codecs
import csv
import gzip
import io
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from covey.errors import InputError
from covey.libraries import pa, pl
from covey.tables.columns import Table, bounded, check_size, match, plainly
from covey.tables.dialects import PLAIN, SEPARATORS, Dialect, check_encoding
from covey.tables.rules import Domain

PACKED = (".gz", ".zst", ".zstd")
SKIPPED_LIMIT = 2**20  # bytes of the lines before a header

_SWAP = bytes.maketrans(b"\r\n", b"\n\r")
_LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
MARKS = dict.fromkeys((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32")  # that a file may start with
MARKS |= dict.fromkeys((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16")
_NO_TEXT = {  # how files start that are often taken for text
    b"PK\x03\x04": "an Excel or zip file (.xlsx, .ods, .npz)",
    b"PK\x05\x06": "an empty zip file",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Excel file (.xls, or protected by a password)",
    b"\x93NUMPY": "a numpy file (.npy)",
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"\x1f\x8b": "compressed by gzip: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: let its name end in .zst",
}

CHUNK = 2**18  # bytes that fit the processor's cache
_QUOTE, _LINE = 34, 10

BLOCK = 2**23  # bytes that are read at a time
RECORD_LIMIT = 2**26  # bytes of one record


class TextFile:
    """A text file, perhaps packed, as pieces of UTF-8 in which every line ends with a line feed.

    Where the header ends with a line feed, with or without a carriage return before it, so does every line; a carriage return
    elsewhere is part of its cell, for one person's cell must not become two records. Where the header ends with a carriage
    return alone (files of old Macintoshes), so does every line, and a line feed elsewhere is part of its cell.
    """

    def __init__(self, path: Path, encoding: str, skip_rows: int, size_limit: int) -> None:
        self.path, self.skip_rows, self.size_limit = path, skip_rows, size_limit
        self.encoding, self._declared = check_encoding(encoding), encoding
        self.is_utf8 = self.encoding in ("utf-8", "utf-8-sig")
        # Whether carriage returns end lines, and line feeds inside cells stand there as such; the header tells.
        self.swapped: bool | None = None

    def pieces(self, block: int) -> Iterator[tuple[bytes, bool]]:
        """The text after the skipped lines, and whether a piece is the last one."""
        if self.swapped is None:
            self.swapped = self._header_ends_with_return()
        held = b""
        for piece, last in self._after_skipped(block):
            piece, held = held + piece, b""
            if piece.endswith(b"\r") and not last:  # half of a line end, perhaps
                piece, held = piece[:-1], b"\r"
            if self.swapped:
                piece = piece.replace(b"\r\n", b"\r").translate(_SWAP)
            elif b"\r" in piece:
                piece = piece.replace(b"\r\n", b"\n")
            yield piece, last

    def _header_ends_with_return(self) -> bool:
        """Whether the first line end outside quotes is a carriage return alone; a longer header has none that counts."""
        start, _ = next(self._after_skipped(2 * SKIPPED_LIMIT))
        end = re.search(rb"\r\n|\r|\n", re.sub(rb'"[^"]*("|$)', b" ", start))
        return end is not None and end[0] == b"\r"

    def _after_skipped(self, block: int) -> Iterator[tuple[bytes, bool]]:
        """The decoded text behind the lines that are skipped, which end in any way."""
        left, pending = self.skip_rows, b""
        for piece, last in self._decoded(block):
            if not left:
                yield piece, last
                continue
            pending += piece
            while left and (end := _LINE_END.search(pending)):
                pending, left = pending[end.end() :], left - 1
            if left and (last or len(pending) > SKIPPED_LIMIT):
                raise InputError(f"{self.path} has fewer than {self.skip_rows} lines to skip. Check skip_rows.")
            if not left:
                yield pending, last

    def _decoded(self, block: int) -> Iterator[tuple[bytes, bool]]:
        """The text in UTF-8. Nothing is guessed: the encoding is what was declared."""
        decoder, start, line = codecs.getincrementaldecoder(self.encoding)(), True, 1
        for place, (raw, last) in enumerate(self.raw(block)):
            if place == 0:
                self._refuse_foreign(raw)
            try:
                plain = self.is_utf8 and raw.isascii() and not decoder.getstate()[0]
                piece = raw if plain else decoder.decode(raw, last).encode()
            except (UnicodeError, TypeError) as error:
                if self.is_utf8 and isinstance(error, UnicodeDecodeError):
                    line += error.object.count(b"\n", 0, error.start)
                    raise InputError(f"{self.path} is not UTF-8, line {line}. {declare('windows-1252')}") from None
                raise InputError(f"{self.path} is not {self._declared}: {error}.") from None
            if start and piece:
                piece, start = piece.removeprefix(codecs.BOM_UTF8), False
            line += piece.count(b"\n")
            yield piece, last

    def _refuse_foreign(self, raw: bytes) -> None:
        """Refuse a file that starts like no text, or like text in another encoding than the declared one."""
        for mark, words in _NO_TEXT.items():
            if raw.startswith(mark):
                way_out = "" if "name end" in words else " Save the table as .xlsx, CSV or Parquet."
                raise InputError(f"{self.path} is {words}, not text.{way_out}")
        if self.is_utf8 and raw.removeprefix(codecs.BOM_UTF8).startswith(tuple(MARKS)):
            raise InputError(f"{self.path} starts like UTF-16 or UTF-32, not UTF-8. {declare('utf-16')}")
        wide = self.encoding.startswith(("utf-16", "utf-32"))  # there these bytes are letters
        if raw.startswith(codecs.BOM_UTF8) and not wide and not self.is_utf8:
            raise InputError(f"{self.path} starts like UTF-8, not {self._declared}. {declare('utf-8')}")

    def raw(self, block: int) -> Iterator[tuple[bytes, bool]]:
        """The bytes as they are, unpacked."""
        seen = 0
        try:
            with _open(self.path) as file:
                data = file.read(block)
                if not data:
                    raise InputError(f"{self.path} is empty.")
                while data:
                    seen += len(data)
                    check_size(self.path, self.size_limit, seen)
                    following = file.read(block)
                    yield data, not following
                    data = following
        except (OSError, EOFError, zlib.error) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"cannot read {self.path}: {error}.") from None


def declare(encoding: str) -> str:
    """The way out for a file in another encoding."""
    return f"Declare its encoding, such as {encoding!r} (on the command line: --encoding {encoding})."


def _open(path: Path) -> IO[bytes]:
    if path.suffix.lower() == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if path.suffix.lower() in PACKED:
        return cast("IO[bytes]", pa.CompressedInputStream(pa.OSFile(str(path)), "zstd"))
    return path.open("rb")


def header_end(data: bytes) -> int:
    """Where the first record ends, its line feed included; it may be all there is."""
    end = data.find(b"\n")
    while end >= 0 and data.count(b'"', 0, end) % 2:
        end = data.find(b"\n", end + 1)
    return end + 1 if end >= 0 else len(data)


def last_record_end(data: bytes) -> int:
    """Where the last whole record ends; 0 if there is none. The data starts with a record."""
    if b'"' not in data:
        return data.rfind(b"\n") + 1
    whole = np.frombuffer(data, dtype=np.uint8)
    quotes, lines = np.flatnonzero(whole == _QUOTE), np.flatnonzero(whole == _LINE)
    outside = lines[np.searchsorted(quotes, lines) % 2 == 0]
    return int(outside[-1]) + 1 if len(outside) else 0


def scan(data: bytes, width: int, separator: int, where: str, line: int) -> tuple[int, int, int]:
    """How many records there are, with too few cells, and with too many.

    Quotes that are not where RFC 4180 has them are refused, naming the line: the reader that follows is fast and lenient, and
    would let one open quote swallow the rest of the block.
    """
    whole = np.frombuffer(data, dtype=np.uint8)
    quoted = b'"' in data
    quotes_seen, fields_before, start = 0, 0, 0
    records = short = long = 0
    for begin in range(0, len(data), CHUNK):
        part = whole[begin : begin + CHUNK]
        marks = np.flatnonzero((part == _LINE) | (part == separator))
        if quoted:
            quotes = np.flatnonzero(part == _QUOTE)
            _check_quotes(data, whole, begin + quotes, quotes_seen, separator, where, line)
            marks = marks[(np.searchsorted(quotes, marks) + quotes_seen) % 2 == 0]
            quotes_seen += len(quotes)
        ends = np.flatnonzero(part[marks] == _LINE)
        if len(ends):
            fields = np.diff(ends, prepend=-1)
            fields[0] += fields_before
            short += int(np.count_nonzero(fields < width))
            long += int(np.count_nonzero(fields > width))
            start, fields_before = begin + int(marks[ends[-1]]) + 1, len(marks) - 1 - int(ends[-1])
            records += len(ends)
        else:
            fields_before += len(marks)
    if quotes_seen % 2:
        raise _unbalanced(data, data.rfind(b'"'), where, line)
    if start < len(data):  # the last line has no end
        records += 1
        short += fields_before + 1 < width
        long += fields_before + 1 > width
    return records, short, long


def _check_quotes(  # everything that the message needs, and where the quotes are
    data: bytes, whole: Any, quotes: Any, seen: int, separator: int, where: str, line: int
) -> None:
    """Opening quotes stand at the start of a field, closing ones at its end; a doubled one counts as both."""
    neighbours = (_QUOTE, separator, _LINE)
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
    return InputError(f"{where} has an unbalanced quote in line {line}. Quote the whole field and double its quotes.")


Block = tuple[bytes, int]  # whole records in UTF-8, lines ending with line feeds, and the number of the first line


class CsvFile:
    """A CSV file, perhaps compressed, as blocks of whole records."""

    origin = "csv"

    def __init__(self, path: Path, schema: Domain | None, dialect: Dialect, size_limit: int) -> None:
        dialect = dialect.over(PLAIN)
        self.path, self.schema = path, schema
        self.separator, self.line = dialect.separator or ",", 1 + (dialect.skip_rows or 0)
        self.text = TextFile(path, dialect.encoding or "utf-8", dialect.skip_rows or 0, size_limit)
        first, _ = next(self._blocks(), (b"", 1))
        self.names = self._names(first[: header_end(first)].removesuffix(b"\n"))
        self._places, self.ignored, self.twice = match(self.names, schema)

    def parts(self) -> Iterator[Block]:
        """Blocks of whole records behind the header; none where all of them are blank."""
        waiting: list[Block] = []
        blank = len(self.names) > 1  # of a single column a blank line is a missing cell, as it is written
        for place, (data, line) in enumerate(self._blocks()):
            if place == 0:
                end = header_end(data)
                data, line = data[end:], line + data.count(b"\n", 0, end)
            blank = blank and not data.strip(b"\n")
            waiting += [(data, line)] if data else []
            if not blank:
                yield from waiting
                waiting.clear()

    def _blocks(self) -> Iterator[Block]:
        """Blocks of whole records, of which the first is the header."""
        pending, line = b"", self.line
        for piece, last in self.text.pieces(BLOCK):
            pending = pending + piece if pending else piece
            cut = len(pending) if last else last_record_end(pending)
            if cut:
                yield pending[:cut], line
                line += pending.count(b"\n", 0, cut)
                pending = pending[cut:]
            elif len(pending) > RECORD_LIMIT:  # an open quote, or a cell beyond every limit
                width = len(getattr(self, "names", ()))
                scan(pending, width, ord(self.separator), str(self.path), line)  # names the line of an open quote
                raise InputError(f"{self.path}, line {line}: a record has over {RECORD_LIMIT} bytes. Shorten it.")

    def table(self, part: Block) -> Table:
        """The needed columns of a block, as text."""
        data, line = part
        records, short, long = scan(data, len(self.names), ord(self.separator), str(self.path), line)
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
        if len(frame) != records:
            raise InputError(f"{self.path} cannot be split into records: quotes or line ends are broken.")
        columns = {name: frame[slots[j]].alias("") for name, j in self._places.items()}
        if self.text.swapped:
            columns = {name: series.str.replace_all("\r", "\n", literal=True) for name, series in columns.items()}
        table = Table(columns, records, self.origin, short, long, self.ignored, self.twice)
        return plainly(bounded(table), self.schema)

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
