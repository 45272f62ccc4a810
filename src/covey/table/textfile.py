"""Text files as one stream of UTF-8 with line feeds: unpacked, decoded, and with the line ends that their header has.

The header decides what ends a line. Where it ends with a line feed, with or without a carriage return before it, so does every
line; a carriage return elsewhere is part of its cell, for one person's cell must not become two records. Where the header ends
with a carriage return alone (files of old Macintoshes), so does every line, and a line feed elsewhere is part of its cell.
"""

from __future__ import annotations

import codecs
import gzip
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, cast

from covey.errors import InputError
from covey.table.columns import SizeBudget
from covey.table.dialects import check_encoding
from covey.table.extras import optional

PACKED = (".gz", ".zst", ".zstd")
SKIPPED_LIMIT = 2**20  # bytes of the lines before a header

_SWAP = bytes.maketrans(b"\r\n", b"\n\r")
_LINE_END = re.compile(rb"\r\n|\n|\r(?=.)", re.DOTALL)
_FOREIGN_MARKS = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_NO_TEXT = {  # how files start that are often taken for text
    b"PK\x03\x04": "an Excel or zip file (.xlsx, .ods, .npz)",
    b"PK\x05\x06": "an empty zip file",
    b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1": "an Excel file (.xls, or protected by a password)",
    b"\x93NUMPY": "a numpy file (.npy)",
    b"PAR1": "a Parquet file: let its name end in .parquet",
    b"\x1f\x8b": "compressed by gzip: let its name end in .gz",
    b"\x28\xb5\x2f\xfd": "compressed by zstd: let its name end in .zst",
}

Decoder = Callable[[bytes, bool, int], bytes]


class TextFile:
    """A text file, perhaps packed, as pieces of UTF-8 in which every line ends with a line feed."""

    def __init__(self, path: Path, encoding: str, skip_rows: int, budget: SizeBudget) -> None:
        self.path, self.skip_rows, self.budget = path, skip_rows, budget
        self.encoding, self._declared = check_encoding(encoding), encoding
        self._mac: bool | None = None  # whether carriage returns end lines; the header tells

    @property
    def swapped(self) -> bool:
        """Whether a line feed inside a cell stands there as a carriage return."""
        return self._mac is True

    def pieces(self, block: int) -> Iterator[tuple[bytes, bool]]:
        """The text after the skipped lines, and whether a piece is the last one."""
        if self._mac is None:
            self._mac = self._header_ends_with_return(block)
        held = b""
        for piece, last in self._after_skipped(block):
            piece, held = held + piece, b""
            if piece.endswith(b"\r") and not last:  # half of a line end, perhaps
                piece, held = piece[:-1], b"\r"
            if self._mac:
                piece = piece.replace(b"\r\n", b"\r").translate(_SWAP)
            elif b"\r" in piece:
                piece = piece.replace(b"\r\n", b"\n")
            yield piece, last

    def _header_ends_with_return(self, block: int) -> bool:
        seen = b""
        for piece, last in self._after_skipped(block):
            seen += piece
            place, inside = 0, False
            while found := re.compile(rb'["\r\n]').search(seen, place):
                place = found.end()
                if found[0] == b'"':
                    inside = not inside
                elif not inside:
                    if found[0] == b"\n":
                        return False
                    if place < len(seen) or last:
                        return seen[place : place + 1] != b"\n"
            if last or len(seen) > SKIPPED_LIMIT:
                return False
        return False

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
        text, start, line = self._decoder(), True, 1
        for place, (raw, last) in enumerate(self.raw(block)):
            if place == 0:
                self._refuse_foreign(raw)
            piece = text(raw, last, line)
            if start and piece:
                piece, start = piece.removeprefix(codecs.BOM_UTF8), False
            line += piece.count(b"\n")
            yield piece, last

    def _refuse_foreign(self, raw: bytes) -> None:
        """Refuse a file that starts like no text, or like UTF-8 where another encoding is declared."""
        for mark, words in _NO_TEXT.items():
            if raw.startswith(mark):
                way_out = "" if "name end" in words else " Save the table as .xlsx, CSV or Parquet."
                raise InputError(f"{self.path} is {words}, not text.{way_out}")
        wide = self.encoding.startswith(("utf-16", "utf-32"))  # there these bytes are letters
        if raw.startswith(codecs.BOM_UTF8) and not wide and self.encoding not in ("utf-8", "utf-8-sig"):
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
                    self.budget.check(seen)
                    following = file.read(block)
                    yield data, not following
                    data = following
        except (OSError, EOFError, zlib.error) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"cannot read {self.path}: {error}.") from None

    def _decoder(self) -> Decoder:
        """A step from raw bytes to UTF-8. Nothing is guessed: the encoding is what was declared."""
        where, declared = self.path, self._declared
        if self.encoding in ("utf-8", "utf-8-sig"):
            check = codecs.getincrementaldecoder("utf-8")()

            def same(raw: bytes, last: bool, line: int) -> bytes:
                if line == 1 and raw.removeprefix(codecs.BOM_UTF8).startswith(_FOREIGN_MARKS):
                    raise InputError(f"{where} starts like UTF-16 or UTF-32, not UTF-8. {declare('utf-16')}")
                if raw.isascii() and not check.getstate()[0]:
                    return raw
                try:
                    check.decode(raw, last)
                except UnicodeDecodeError as error:
                    line += error.object.count(b"\n", 0, error.start)
                    raise InputError(f"{where} is not UTF-8, line {line}. {declare('windows-1252')}") from None
                return raw

            return same
        decoder = codecs.getincrementaldecoder(self.encoding)()

        def other(raw: bytes, last: bool, line: int) -> bytes:
            try:
                return decoder.decode(raw, last).encode()
            except (UnicodeError, TypeError) as error:
                raise InputError(f"{where} is not {declared}: {error}.") from None

        return other


def declare(encoding: str) -> str:
    """The way out for a file in another encoding."""
    return f"Declare its encoding, such as {encoding!r} (on the command line: --encoding {encoding})."


def _open(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return cast("IO[bytes]", gzip.open(path, "rb"))
    if suffix in PACKED:
        return cast("IO[bytes]", _Unpacked(path))
    return path.open("rb")


class _Unpacked:
    """A file compressed by zstd, through Arrow's own library."""

    def __init__(self, path: Path) -> None:
        pa = optional("pyarrow")
        self._stream: Any = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")

    def read(self, size: int) -> bytes:
        """At most so many bytes; none at the end."""
        return bytes(self._stream.read(size))

    def __enter__(self) -> _Unpacked:
        return self

    def __exit__(self, *_: object) -> None:
        self._stream.close()
