import datetime as dt

import polars as pl
import pytest

from covey.errors import InputError
from covey.table.codec import Codec
from covey.table.dialects import Dialect, Spelling
from covey.table.schema import Field, Schema
from covey.table.sources import open_source, read_table
from tests.table.examples import SCHEMA, cells

FRAME = pl.DataFrame(
    {
        "whole": [1, 2, None],
        "part": [1.5, None, 1e15],
        "day": [dt.date(2024, 3, 19), None, dt.date(2020, 1, 1)],
        "when": [dt.datetime(2024, 3, 19, 10, 15), None, dt.datetime(2020, 1, 1)],
        "text": ["x", "1,5", "007"],
        "flag": [True, False, None],
    }
)


def workbook(path, rows, sheet="Data"):
    import xlsxwriter

    with xlsxwriter.Workbook(path) as book:
        for name in ("Notes", sheet):
            page = book.add_worksheet(name)
            for i, row in enumerate(rows if name == sheet else [["see the next sheet"]]):
                page.write_row(i, 0, row)
    return path


def test_cells_come_as_a_plain_export_would_write_them(tmp_path):
    FRAME.write_excel(tmp_path / "t.xlsx")
    table = read_table(tmp_path / "t.xlsx")
    assert table.origin == "workbook"
    assert cells(table) == {
        "whole": ["1", "2", None],
        "part": ["1.5", None, "1000000000000000"],
        "day": ["2024-03-19 00:00:00", None, "2020-01-01 00:00:00"],
        "when": ["2024-03-19 10:15:00", None, "2020-01-01 00:00:00"],
        "text": ["x", "1,5", "007"],
        "flag": ["true", "false", None],
    }
    schema = Schema(
        (
            Field("whole", "integer", 0, 9),
            Field("day", "date", "2020-01-01", "2024-12-31"),
            Field("flag", "boolean"),
            Field("text", "string", enum=("007", "x")),
        )
    )
    assert (Codec(schema).encode(tmp_path / "t.xlsx")[0] == Codec(schema).encode(FRAME)[0]).all()


def test_a_sheet_is_named_and_rows_are_skipped(tmp_path):
    path = workbook(
        tmp_path / "t.xlsx", [["Patients", "", 2024], [], ["sex", "age", ""], ["f", 3, "note"], [], ["m", 4]]
    )
    table = read_table(path, SCHEMA, dialect=Dialect(sheet="Data", skip_rows=2))
    assert cells(table) == {"age": ["3", None, "4"], "sex": ["f", None, "m"]}
    with pytest.raises(InputError, match=r"no sheet 'Dat'. It has 'Notes', 'Data'"):
        read_table(path, SCHEMA, dialect=Dialect(sheet="Dat"))
    with pytest.raises(InputError, match="no header in row 21"):
        read_table(path, SCHEMA, dialect=Dialect(sheet="Data", skip_rows=20))
    with pytest.raises(InputError, match="no column 'age'"):
        read_table(path, SCHEMA)


def test_dates_that_are_text_in_a_sheet_have_a_format_and_numbers_have_none(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [["d", "x"], ["19.03.2024", 1234.5], ["2024-03-19", "1.234,5"]])
    fields = (
        Field("d", "date", "2024-01-01", "2024-12-31", bins=366, spelling=Spelling(date_format="%d.%m.%Y")),
        Field("x", "number", 0, 5000, decimals=1, spelling=Spelling(",", ".")),
    )
    found, _ = Codec(Schema(fields, dialect=Dialect(sheet="Data"))).encode(path, "cells")
    assert found[:, 0].tolist() == [19801, 19801]
    assert found[0, 1] == 12345
    assert found[1, 1] < 0


def test_a_workbook_that_unfolds_beyond_the_limit_is_refused_before_it_does(tmp_path, monkeypatch):
    path = workbook(tmp_path / "t.xlsx", [["age", "sex"], *[[1, "f"]] * 5000])
    monkeypatch.setattr("covey.table.columns.EXPANSION", 2)
    monkeypatch.setattr("fastexcel.read_excel", lambda *_: pytest.fail("it was unfolded"))
    with pytest.raises(InputError, match="size_limit"):
        open_source(path, SCHEMA, size_limit=1000)
