"""Schemas drafted from data, each choice with its reason.

A draft describes private data, so none of its fields is confirmed, and it holds as little of them as it can: see
`covey.tables.column_drafts`. How the file is written is found by looking, and recorded as dialect.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections import Counter
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from covey.errors import InputError, counted
from covey.libraries import pl
from covey.tables.column_drafts import (
    PUBLIC_CODES,
    ColumnDraft,
    Note,
    date_formats,
    decimal_mark,
    number_values,
    present,
)
from covey.tables.columns import MISSING_WORDS, Table, unguarded, unique_names
from covey.tables.dialects import SEPARATORS, Dialect
from covey.tables.fields import Field
from covey.tables.sources import ARROW_SUFFIXES, SIZE_LIMIT, open_source, read_table
from covey.tables.sources.csvfile import MARKS, CsvFile, TextFile
from covey.tables.sources.workbook import SUFFIXES, sheet_cells

SAMPLE = 2**18  # bytes that are looked at
PREAMBLE = 30  # lines at most before a header
LINES = 200  # lines that are compared
ROWS = 2000  # rows that names are compared with
UNNAMED = "the first line looks like a record, not like names of columns"
DOUBTED = "the first line may be a record"
SAVE_IT = "Save it as UTF-8, or name its encoding with"
LAST_RESORT = ", such as latin-1, which reads every file: letters other than a to z may then come out wrong."

_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_NOT_IN_1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")

_TOTALS = ("total", "totals", "sum", "grand total", "subtotal", "gesamt", "summe", "total général", "totale")


def has_layout(source: Any) -> bool:
    """Whether a table is a file of text or a workbook, which may be laid out in several ways."""
    return (
        isinstance(source, str | Path) and Path(source).suffix.lower() not in ARROW_SUFFIXES and Path(source).is_file()
    )


def sniff(path: Path, said: Dialect, size_limit: int) -> Dialect:
    """The dialect of a file: what was said, and the rest as it looks."""
    if path.suffix.lower() in SUFFIXES:
        if said.skip_rows is not None:
            return said
        rows = sheet_cells(path, said.sheet).head(PREAMBLE + LINES).rows()
        return said.over(Dialect(skip_rows=_header_row([_filled(row) for row in rows])))
    text = TextFile(path, said.encoding or "latin-1", 0, size_limit)
    encoding = said.encoding or _encoding(path, text)
    text = TextFile(path, encoding, said.skip_rows or 0, size_limit)
    lines = _first_lines(text)
    announced = re.fullmatch(r"sep=([,;|\t])", lines[0].strip(" "), re.IGNORECASE) if lines else None
    start = 1 if announced and said.skip_rows is None else 0
    separator = said.separator or (announced[1] if announced else _separator(lines[start:]))
    skip = said.skip_rows
    if skip is None:
        skip = start + _header_row([_cells(line, separator) for line in lines[start:]])
    if said.skip_rows is None and skip > start and not _names(lines[skip:], separator):
        separator, skip = said.separator or ",", start  # a single column whose cells hold separators
    return said.over(Dialect(separator, encoding=encoding, skip_rows=skip))


def layout(
    path: Path, needed: Collection[str], said: Dialect, before: Dialect, size_limit: int = SIZE_LIMIT
) -> Dialect:
    """How a file is laid out that was read before: the first layout in which it has all the columns that are needed.

    What was said now holds in each. What was said before comes first, and what neither says is as covey writes files itself;
    then it is as the file looks. Where none has the columns it is the first one, whose refusal says what is missing.
    """
    both = said.over(before)
    tried = [both]
    with suppress(InputError):  # of text in no single encoding: reading it will say so
        looks = sniff(path, both, size_limit)
        tried = [both.over(Dialect(encoding=looks.encoding)), looks, sniff(path, said, size_limit)]
    return next((own for own in tried if _has_columns(path, needed, own, size_limit)), tried[0])


def _has_columns(path: Path, needed: Collection[str], dialect: Dialect, size_limit: int) -> bool:
    """Whether a file that is laid out so has all these columns."""
    try:
        source = open_source(path, dialect=dialect.of_file, size_limit=size_limit)
    except InputError:
        return False
    names = unique_names(source.names) if isinstance(source, CsvFile) else [*source.table(0).columns]
    return {*needed} <= {*names, *map(unguarded, names)}


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
        for mark, name in MARKS.items():
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
            why = f"{path} is neither UTF-8 (line {odd}) nor Windows-1252 (line {where})"
            raise InputError(f"{why}. {SAVE_IT} ", "encoding", LAST_RESORT)
        line += raw.count(b"\n")
    if not utf8 and multibyte:
        why = f"{path} mixes UTF-8 with another encoding, which begins in line {odd}"
        raise InputError(f"{why}. {SAVE_IT} ", "encoding", LAST_RESORT)
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


def _split(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator))
    except (csv.Error, StopIteration):
        return [line]


def _cells(line: str, separator: str) -> int:
    """How many cells a line has; 0 if it is blank."""
    return len(_split(line, separator)) if line.strip() else 0


def _names(lines: list[str], separator: str) -> bool:
    """Whether the first line may be a header: no numbers, and different words or else numbers below."""
    words, *below = [[cell.strip() for cell in _split(line, separator)] for line in lines]
    counts = [any(re.fullmatch(r"[+-]?[\d.,]+", cell) for cell in cells) for cells in (words, *below)]
    return not counts[0] and (len(set(words)) == len(words) or any(counts))


def _filled(row: tuple[str | None, ...]) -> int:
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


@dataclass(frozen=True)
class Draft:
    """Fields, how the file is written, and why; and the table that was looked at, which is read once. Private."""

    fields: tuple[Field, ...]
    dialect: Dialect
    missing_values: tuple[str, ...]
    notes: tuple[Note, ...]
    table: Table


def draft(source: Any, said: Dialect | None = None, size_limit: int = SIZE_LIMIT, learning: bool = False) -> Draft:
    """Describe a table: what was said of its dialect holds, the rest is found.

    Where its columns are to be learned every row is a record: what a single one looks like refuses nothing.
    """
    said = said or Dialect()
    missing = ("",) if said.missing is None else tuple(dict.fromkeys(("", *said.missing)))
    found = said
    notes = []
    if has_layout(source):
        found = sniff(Path(source), said, size_limit)
        if words := assumptions(found, said):
            notes.append(Note(None, words, "detected from the file and recorded in the schema as dialect"))
    table = read_table(source, dialect=found.of_file, size_limit=size_limit)
    if not learning:
        _refuse_odd_rows(table, missing)
    doubt = _header_doubt(table, missing) if found.skip_rows is not None else ""
    notes += [Note(None, doubt, "names could be cells of their columns", "names become public")] * bool(doubt)
    if table.long_rows:
        choice = f"surplus cells of {counted(table.long_rows, 'row')} ignored"
        notes.append(Note(None, choice, "the header has fewer", "the separator may be inside unquoted cells"))
    notes += [Note(None, f"a column is called '{name}'", "another column has the same name") for name in table.twice]
    columns = [ColumnDraft(name, series, missing, found) for name, series in table.columns.items()]
    shown = decimal_mark(column.text for column in columns if column.is_text)
    drafted = [column.draft(shown) for column in columns]
    fields = tuple(field for field, _ in drafted if field is not None)
    if doubt == UNNAMED:
        fields = tuple(replace(one, warning=f"{UNNAMED}, which are published: add a line of names") for one in fields)
    if not fields:
        raise InputError("every column looks like an identifier or free text, so nothing is left to draft.")
    told = (*notes, *(note for _, note in drafted))
    return Draft(fields, Dialect.from_dict(found.of_file.to_dict()), missing, told, table)


def _header_doubt(table: Table, missing: tuple[str, ...]) -> str:
    """Whether names look like cells of their columns; years and numbers in order do, and name columns of wide tables."""
    like, others, scale = 0, 0, dict[int, float]()
    for place, (name, series) in enumerate(table.columns.items()):
        bare = name.rpartition("_")[0] if name in table.twice else name
        cells = present(series.head(ROWS), missing)
        if bare.lower() in PUBLIC_CODES | MISSING_WORDS or not len(cells):
            continue
        kind, seen, labels = _kind(cells), int((cells == bare).sum()), cells.n_unique()
        # A box that is ticked may repeat its name, and nothing else; of many labels one may stand in the first record alone.
        alike = _kind(pl.Series([bare])) == kind if kind else min(seen, labels) > 1
        if alike:
            like += 1
            scale |= {place: float(bare.replace(",", "."))} if kind == "numbers" else {}
        elif kind or (not seen and 10 * labels < len(cells)):
            others += 1
    at = np.array([*scale.values()])
    steps = np.diff(at)
    even = (
        len(steps) > 1 and steps[0] != 0 and np.ptp(steps) < 1e-6
    )  # upwards, or back from the newest year of any calendar
    rising = even or (len(steps) > 1 and steps.min() > 0 and (others > 0 or len(steps) > 3))
    years = (at >= 1800) & (at <= 2200) & (at % 1 == 0)
    known = len(at) if rising or {own - place for place, own in scale.items()} in ({0}, {1}) else int(years.sum())
    return UNNAMED if like - known > others else DOUBTED if like > others or len(at) > known else ""


def _kind(words: pl.Series) -> str:
    """Whether most words are numbers, or all but strays dates."""
    if any(type_ != "time" for type_, _ in date_formats(words)):
        return "dates"
    numbers = np.isfinite(number_values(words.str.replace(",", ".", literal=True)))
    return "numbers" if 2 * numbers.sum() > len(words) else ""


def _refuse_odd_rows(table: Table, missing: tuple[str, ...]) -> None:
    """Refuse a second header row, and a row of totals: they are no records of persons."""
    texts = [series for series in table.columns.values() if series.dtype == pl.String]
    if table.rows < 4 or not texts:
        return
    second = [s[0] for s in texts if s[0] is not None and s[0].strip()]
    numeric = [s for s in texts if len(rest := present(s[1:], missing)) > 2 and not np.isnan(number_values(rest)).any()]
    headed = [s for s in numeric if s[0] is not None and s[0].strip().lower() not in PUBLIC_CODES | MISSING_WORDS]
    words = all(np.isnan(number_values(s[:1]))[0] for s in headed)
    if len(second) == len(texts) and len(headed) == len(numeric) > 1 and words:
        raise InputError("the first row has words where all others have numbers. If it is a second header, remove it.")
    # A label of many rows, as in a long table, is a category.
    last = [s[-1].strip().lower().rstrip(":") for s in texts if s[-1] is not None and int((s == s[-1]).sum()) == 1]
    if any(word in _TOTALS for word in last):
        raise InputError("the last row looks like a row of totals, not a record. Remove it.")
