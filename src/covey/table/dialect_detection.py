"""How a file is written, found by looking at its beginning when a schema is drafted, and said in one line.

Nothing here runs when a table is released: then the schema's dialect rules.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from pathlib import Path

from covey.errors import InputError
from covey.table.columns import SizeBudget
from covey.table.dialects import SEPARATORS, Dialect
from covey.table.textfile import TextFile
from covey.table.workbook import SUFFIXES, first_rows

SAMPLE = 2**18  # bytes that are looked at
PREAMBLE = 30  # lines at most before a header
LINES = 200  # lines that are compared

_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_NOT_IN_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_MARKS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


def sniff(path: Path, said: Dialect, size_limit: int) -> Dialect:
    """The dialect of a file: what was said, and the rest as it looks."""
    if path.suffix.lower() in SUFFIXES:
        if said.skip_rows is not None:
            return said
        rows = first_rows(path, said.sheet, PREAMBLE + LINES)
        return said.over(Dialect(skip_rows=_header_row([_filled(row) for row in rows])))
    text = TextFile(path, said.encoding or "latin-1", 0, SizeBudget(path, size_limit))
    encoding = said.encoding or _encoding(path, text)
    text = TextFile(path, encoding, said.skip_rows or 0, SizeBudget(path, size_limit))
    lines = _first_lines(text)
    announced = re.fullmatch(r"sep=([,;|\t])", lines[0].strip(" "), re.IGNORECASE) if lines else None
    start = 1 if announced and said.skip_rows is None else 0
    separator = said.separator or (announced[1] if announced else _separator(lines[start:]))
    skip = said.skip_rows
    if skip is None:
        skip = start + _header_row([_cells(line, separator) for line in lines[start:]])
    if said.skip_rows is None and skip > start and not _names(lines[skip], separator):
        separator, skip = said.separator or ",", start  # a single column whose cells hold separators
    return said.over(Dialect(separator, encoding=encoding, skip_rows=skip))


def assumptions(found: Dialect, said: Dialect) -> str | None:
    """One line on what was found and not said; None if there is nothing unusual."""
    words = []
    if said.separator is None and found.separator not in (None, ","):
        words.append(f"cells separated by {SEPARATORS[found.separator]}")
    if said.encoding is None and found.encoding not in (None, "utf-8"):
        words.append(f"text in {found.encoding}")
    if said.skip_rows is None and found.skip_rows:
        words.append(f"{found.skip_rows} line{'s' * (found.skip_rows > 1)} before the header")
    return f"read with {', '.join(words)}" if words else None


def _encoding(path: Path, text: TextFile) -> str:
    """UTF-8 where the whole file is, else what its mark says, else Windows-1252; a mixture is refused."""
    check, utf8, multibyte, line = codecs.getincrementaldecoder("utf-8")(), True, False, 1
    odd = 0
    for place, (raw, last) in enumerate(text.raw(2**22)):
        for mark, name in _MARKS.items():
            if place == 0 and raw.startswith(mark):
                return name
        if place == 0 and b"\0" in raw[:1000] and raw[:1000].count(b"\0") > len(raw[:1000]) // 4:
            return "utf-16-le" if raw[1:2] == b"\0" else "utf-16-be"
        multibyte = multibyte or _MULTIBYTE.search(raw) is not None
        if utf8:
            try:
                check.decode(raw, last)
            except UnicodeDecodeError as error:
                utf8, odd = False, line + error.object.count(b"\n", 0, error.start)
        if not utf8 and (found := _NOT_IN_1252.search(raw)):
            where = line + raw.count(b"\n", 0, found.start())
            raise InputError(
                f"{path} is neither UTF-8 (line {odd}) nor Windows-1252 (line {where}). Name its encoding."
            )
        line += raw.count(b"\n")
    if not utf8 and multibyte:
        raise InputError(
            f"{path} mixes UTF-8 with another encoding, which begins in line {odd}. Save it in one of them."
        )
    return "utf-8" if utf8 else "windows-1252"


def _first_lines(text: TextFile) -> list[str]:
    seen = b""
    for piece, last in text.pieces(SAMPLE):
        seen += piece
        if last or len(seen) >= SAMPLE:
            break
    lines = seen.decode(errors="replace").split("\n")[: PREAMBLE + LINES]
    return lines if len(lines) == 1 or lines[-1] else lines[:-1]


def _separator(lines: list[str]) -> str:
    """The separator by which most lines have the same number of cells, at least two; a comma if there is none."""
    best, score = ",", 0
    for mark in SEPARATORS:
        widths = Counter(_cells(line, mark) for line in lines)
        widths.pop(1, None), widths.pop(0, None)
        if not widths:
            continue
        width, count = max(widths.items(), key=lambda item: (item[1], item[0]))
        if count * min(width, 3) > score and count * 2 >= len([line for line in lines if line.strip()]) - PREAMBLE:
            best, score = mark, count * min(width, 3)
    return best


def _cells(line: str, separator: str) -> int:
    """How many cells a line has; 0 if it is blank."""
    if not line.strip():
        return 0
    try:
        return len(next(csv.reader([line], delimiter=separator)))
    except (csv.Error, StopIteration):
        return 1


def _names(line: str, separator: str) -> bool:
    """Whether a line may be a header: different words, and no numbers."""
    try:
        cells = [cell.strip() for cell in next(csv.reader([line], delimiter=separator))]
    except (csv.Error, StopIteration):
        return False
    return len(set(cells)) == len(cells) and not any(re.fullmatch(r"[+-]?[\d.,]+", cell) for cell in cells)


def _filled(row: list[str | None]) -> int:
    """How far a row of a sheet is filled."""
    return max((j + 1 for j, cell in enumerate(row) if cell is not None and cell.strip()), default=0)


def _header_row(widths: list[int]) -> int:
    """The lines before the first one that is as wide as most are; 0 unless these are all narrower."""
    common = Counter(width for width in widths if width > 1)
    if not common:
        return 0
    usual = max(common.items(), key=lambda item: (item[1], item[0]))[0]
    first = next(j for j, width in enumerate(widths) if width >= usual)
    narrow = all(width < max(2, usual) for width in widths[:first])
    return first if 0 < first <= PREAMBLE and narrow and widths[first] == usual else 0
