"""Sheets of Excel workbooks (.xlsx, .xlsm, .xlsb, .ods, .xls), through calamine.

Every cell comes as text, as a CSV export would hold it with decimal points and ISO dates: a sheet has no types of columns, and
guessing them would let one cell decide how others are read.
"""

from __future__ import annotations

import re
import zipfile
from pathlib import Path
from typing import Any

from covey.errors import InputError, optional
from covey.tables.columns import Table, check_size, match, plainly
from covey.tables.dialects import Dialect
from covey.tables.rules import Domain

SUFFIXES = (".xlsx", ".xlsm", ".xlsb", ".xls", ".ods")

MOST_CELLS = 10**7  # of a sheet in a small file, empty ones among them: some 300 MB in the reader
_PLACE = re.compile(rb'\sr="([A-Z]{1,3})([0-9]{1,7})"')
_PROTECTED = bytes.fromhex("d0cf11e0a1b11ae1")  # an old workbook, or a new one inside an encrypted envelope


def read_sheet(path: Path, schema: Domain | None, dialect: Dialect, size_limit: int) -> Table:
    """One sheet of a workbook, as text; its first row, or the one behind the skipped rows, names the columns."""
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as packed:
            check_size(path, size_limit, sum(part.file_size for part in packed.infolist()))
    cells = sheet_cells(path, dialect.sheet)
    header, names = dialect.skip_rows or 0, []
    if header < cells.height:
        names = [cells.item(header, j) or "" for j in range(cells.width)]
    while names and not names[-1].strip():
        names.pop()
    if not any(name.strip() for name in names):
        raise InputError(f"{path} has no header in row {header + 1}. That row must name the columns.")
    rows = cells.slice(header + 1)
    places, ignored, twice = match(names, schema)
    columns = {name: rows.to_series(j).alias("") for name, j in places.items()}
    return plainly(Table(columns, rows.height, "workbook", ignored=ignored, twice=twice), schema)


def _refuse_vast(path: Path) -> None:
    """Refuse a sheet of few cells that lie far apart: the reader would make room for all between them."""
    if not zipfile.is_zipfile(path):
        return  # an old one, of at most 65,536 × 256 cells
    with zipfile.ZipFile(path) as packed:
        for part in packed.infolist():
            if not re.fullmatch(r"xl/worksheets/[^/]+\.xml", part.filename, re.IGNORECASE):
                continue
            height = width = 0
            with packed.open(part) as file:
                rest = b""
                while piece := file.read(1 << 20):
                    for column, row in _PLACE.findall(rest + piece):
                        height, width = max(height, int(row)), max(width, _column(column))
                    rest = piece[-32:]
            if height * width > max(MOST_CELLS, 200 * path.stat().st_size):
                raise InputError(
                    f"{path} has a sheet of {height} rows and {width} columns that is nearly empty. Delete what lies far "
                    "from the table, or export the sheet as CSV."
                )


def _column(letters: bytes) -> int:
    """A is 1, Z is 26, AA is 27."""
    found = 0
    for letter in letters:
        found = 26 * found + letter - 64
    return found


def sheet_cells(path: Path, sheet: str | None) -> Any:
    """All cells of the sheet as text, from its first row on."""
    excel = optional("fastexcel")
    try:
        with path.open("rb") as file:
            start = file.read(8)
        if start == _PROTECTED and path.suffix.lower() != ".xls":
            raise InputError(f"{path} is protected by a password. Save it without one, or export the sheet as CSV.")
        _refuse_vast(path)
        book = excel.read_excel(str(path))
        if sheet is not None and sheet not in book.sheet_names:
            raise InputError(f"{path} has no sheet {sheet!r}. It has {', '.join(map(repr, book.sheet_names))}.")
        found = book.load_sheet(sheet or 0, header_row=None, skip_rows=0, dtypes="string")
        return found.to_polars()
    except (OSError, excel.FastExcelError) as error:
        said = str(error).partition("\n")[0].removesuffix(".")
        raise InputError(f"{path} is not a workbook that can be read: {said}.") from None
