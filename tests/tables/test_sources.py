import csv
import datetime as dt
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from covey.errors import InputError, ParameterError
from covey.tables import columns as columns_module
from covey.tables.codec import Codec
from covey.tables.columns import Words
from covey.tables.derived_fields import Derived
from covey.tables.dialects import Dialect, Spelling
from covey.tables.schema import Constant, Field, Schema
from covey.tables.sources import open_source, read_table, write_rows
from covey.tables.sources.frames import FrameForm
from tests.commands import run
from tests.entries import frame_of, schema_of
from tests.tables.examples import SCHEMA, cells

RISKY = ("=cmd()", "+1", "-1", "@x", "<script>", "../x", "a,b", 'say "hi"', "two\nlines", "a\u2028b", "plain")

ODD = ["a\rb", "a\nb", "a\r\nb", "\r", "\n", "a\r", "\ra", "", " ", ",", ";", '"', '""', "a,b\rc;d"]


def test_pandas_keeps_whole_numbers_and_flags_with_holes():
    out = FrameForm("pandas").restore({"a": pl.Series([1, None]), "b": pl.Series([True, None]), "c": pl.Series([1, 2])})
    assert [str(t) for t in out.dtypes] == ["Int64", "boolean", "int64"]


def test_pandas_categories_mixed_objects_and_numbers_as_names():
    ages = pd.Series([1, "2", None, "x", 4.0], dtype=object)
    mixed = pd.DataFrame({"age": ages, "sex": pd.Categorical(list("fmfmf"))})
    assert Codec(SCHEMA).encode(mixed)[0].tolist() == [[1, 0], [2, 1], [10, 0], [10, 1], [4, 0]]
    assert read_table(pd.DataFrame({1: [2]})).columns["1"].to_list() == [2]


def test_other_things_are_no_tables():
    for thing in (3, None, pl.LazyFrame({"age": [1]})):
        with pytest.raises(ParameterError, match="a table is"):
            read_table(thing, SCHEMA)
    with pytest.raises(InputError, match="no rows"):
        read_table(pl.DataFrame({"age": [], "sex": []}), SCHEMA)
    with pytest.raises(InputError, match="lengths"):
        read_table({"age": [1], "sex": ["f", "m"]}, SCHEMA)


def test_labels_are_guarded_in_csv_and_read_back(tmp_path):
    numbers = Field("n", "integer", -9, 9, required=True), Field("d", "number", -1, 1)
    signs = Derived.from_dict({"from": ["rh"], "map": {"-": "-9 to -5", "+": "@hi"}}, "s")
    other = Field("rh", "boolean", flags=("-", "+")), Field("s", "string", derived=signs)
    blank = Field("k", "string", constant=Constant(" "))
    schema = Schema((Field("=x", "string", enum=RISKY), *numbers, *other, blank))
    codec = Codec(schema)
    codes = np.array([[j, j, j, j % 2] for j in range(len(RISKY) + 1)])
    columns = codec.decode(codes, np.random.default_rng(0))
    write_rows([columns], tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["'=x", "n", "d", "rh", "s", "k"]
    assert [row[0] for row in rows[1:6]] == ["'=cmd()", "+1", "-1", "'@x", "<script>"]
    assert rows[1][1] == "-9"  # numbers stay numbers
    assert np.array_equal(codec.encode(read_table(tmp_path / "out.csv", schema))[0], codes)
    assert schema.validate(read_table(tmp_path / "out.csv")) == []
    write_rows([columns | {"s": columns["s"].reverse()}], tmp_path / "out.csv")
    assert schema.validate(read_table(tmp_path / "out.csv")) == ["column 's' is not what it is derived from in 12 rows"]


@pytest.mark.parametrize("name", ["a;b", "a|b", "a\tb", "sep=;", "sep=,", 'a";"b', "age"])
def test_a_single_column_of_any_name_is_read_as_it_was_written(tmp_path, name):
    write_rows([{name: pl.Series(["x", "y"])}, {name: pl.Series(["z"])}], tmp_path / "t.csv")
    assert cells(read_table(tmp_path / "t.csv")) == {name: ["x", "y", "z"]}


# Neighbouring tables through real files: one cell of one record differs, and nothing else may.

ODD += ["\t", "\0", "é", "\u2028", "x" * 500]


def _by_csv(frame, path, end):
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator=end)
        writer.writerow(frame.columns)
        writer.writerows(frame.rows())


WRITERS = {
    "pandas": lambda frame, path: pd.DataFrame(frame.to_dict(as_series=False)).to_csv(path, index=False),
    "pandas for Windows": lambda frame, path: pd.DataFrame(frame.to_dict(as_series=False)).to_csv(
        path, index=False, lineterminator="\r\n"
    ),
    "polars": lambda frame, path: frame.write_csv(path),
    "polars for Windows": lambda frame, path: frame.write_csv(path, line_terminator="\r\n"),
    "csv": lambda frame, path: _by_csv(frame, path, "\r\n"),
    "csv on Linux": lambda frame, path: _by_csv(frame, path, "\n"),
    "covey": lambda frame, path: write_rows([frame.to_dict()], path),
    "parquet": lambda frame, path: frame.write_parquet(path.with_suffix(".parquet")),
    "workbook": lambda frame, path: frame.write_excel(path.with_suffix(".xlsx")),
}


@pytest.mark.parametrize("writer", WRITERS)
def test_one_persons_cell_changes_one_row_of_what_is_read(tmp_path, writer):
    codec, n = Codec(SCHEMA), 12
    clean = {"age": [str(i % 10) for i in range(n)], "sex": ["fm"[i % 2] for i in range(n)]}
    others = np.arange(n) != 5
    path = tmp_path / "t.csv"

    def codes(columns):
        for file in tmp_path.iterdir():
            file.unlink()
        WRITERS[writer](pl.DataFrame(columns), path)
        [written] = tmp_path.iterdir()
        return codec.encode(written)[0]

    expected = codes(clean)
    assert len(expected) == n
    for column in clean:
        for cell in ODD:
            found = codes({**clean, column: [cell if i == 5 else c for i, c in enumerate(clean[column])]})
            assert len(found) == n, (column, cell)
            assert np.array_equal(found[others], expected[others]), (column, cell)


def test_a_single_column_with_missing_cells_has_as_many_lines_as_rows(tmp_path):
    """A line without anything in it is no row to most readers."""
    write_rows([{"a": pl.Series(["x", None, "y"])}], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == ['"a"', '"x"', '""', '"y"']
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["a"] for row in csv.DictReader(file)] == ["x", "", "y"]
    assert read_table(tmp_path / "t.csv").rows == 3
    write_rows([{"a": pl.Series([1, 2])}], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == ['"a"', "1", "2"]


def write_ipc(path, table, stream):
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "xlsx", "frame"])
def test_a_part_of_a_wide_table_has_fewer_rows(tmp_path, monkeypatch, kind):
    """A part had as many rows of 5,000 columns as of five."""
    table = pa.table({f"c{j}": [1] * 12 for j in range(6)})
    pq.write_table(table, tmp_path / "t.parquet")
    write_ipc(tmp_path / "t.arrow", table, False)
    if kind == "xlsx":
        workbook(tmp_path / "t.xlsx", [table.column_names, *([1] * 6 for _ in range(12))])
    monkeypatch.setattr(columns_module, "PART_CELLS", 24)
    source = open_source(table if kind == "frame" else tmp_path / f"t.{kind}", dialect=Dialect(sheet="Data"))
    assert [source.table(part).rows for part in source.parts()] == [4, 4, 4]


def test_row_groups_have_lists_of_words_of_their_own(tmp_path, monkeypatch):
    words = ["f", "?", "m", "m", "m", "?", "f", "f", None, "m"]
    pq.write_table(pa.table({"age": [1] * 10, "sex": words}), tmp_path / "t.parquet", row_group_size=4)
    monkeypatch.setattr(columns_module, "PART_ROWS", 2)
    source = open_source(tmp_path / "t.parquet", SCHEMA)
    columns = [source.table(part).columns["sex"] for part in source.parts()]
    assert all(isinstance(own, Words) for own in columns)  # text of few words stays a list of words
    found = [None if i < 0 else own.words[int(i)] for own in columns for i in own.places]
    assert found == words
    assert len(columns) == 5


def test_places_outside_a_list_of_words_are_refused(tmp_path):
    for places in ([0, 2], [-1, 0]):
        sex = pa.DictionaryArray.from_arrays(pa.array(places, pa.int32()), pa.array(["f", "m"]), safe=False)
        write_ipc(tmp_path / "t.arrow", pa.table({"age": [1, 2], "sex": sex}), False)
        with pytest.raises(InputError, match="'sex' has cells that are not in its own list of words"):
            read_table(tmp_path / "t.arrow", SCHEMA)


def test_text_that_is_not_utf_8_is_refused(tmp_path):
    bad = pa.Array.from_buffers(pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")])
    write_ipc(tmp_path / "t.arrow", pa.table({"age": [1], "sex": bad}), False)
    with pytest.raises(InputError, match="'sex' holds text that is not UTF-8"):
        read_table(tmp_path / "t.arrow", SCHEMA)


FRAME = frame_of(
    whole=[1, 2, None],
    part=[1.5, None, 1e15],
    day=[dt.date(2024, 3, 19), None, dt.date(2020, 1, 1)],
    when=[dt.datetime(2024, 3, 19, 10, 15), None, dt.datetime(2020, 1, 1)],
    text=["x", "1,5", "007"],
    flag=[True, False, None],
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
    schema = schema_of(
        Field("whole", "integer", 0, 9),
        Field("day", "date", "2020-01-01", "2024-12-31"),
        Field("flag", "boolean"),
        Field("text", "string", enum=("007", "x")),
    )
    assert (Codec(schema).encode(tmp_path / "t.xlsx")[0] == Codec(schema).encode(FRAME)[0]).all()


def test_a_sheet_is_named_and_rows_are_skipped(tmp_path):
    rows = [["Patients", "", 2024], [], ["sex", "age", ""], ["f", 3, "note"], [], ["m", 4]]
    path = workbook(tmp_path / "t.xlsx", rows)
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
    monkeypatch.setattr(columns_module, "EXPANSION", 2)
    monkeypatch.setattr("fastexcel.read_excel", lambda *_: pytest.fail("it was unfolded"))
    with pytest.raises(InputError, match="size_limit"):
        open_source(path, SCHEMA, size_limit=1000)


FORMATS = "http://schemas.openxmlformats.org"
SHEET = f'<worksheet xmlns="{FORMATS}/spreadsheetml/2006/main"><sheetData>%s</sheetData></worksheet>'


def relation(kind, target):
    related = f'<Relationship Id="r1" Type="{FORMATS}/officeDocument/2006/relationships/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{FORMATS}/package/2006/relationships">{related}</Relationships>'


PARTS = {
    "[Content_Types].xml": f'<Types xmlns="{FORMATS}/package/2006/content-types"/>',
    "_rels/.rels": relation("officeDocument", "xl/workbook.xml"),
    "xl/workbook.xml": f'<workbook xmlns="{FORMATS}/spreadsheetml/2006/main" '
    f'xmlns:r="{FORMATS}/officeDocument/2006/relationships"><sheets><sheet name="a" sheetId="1" r:id="r1"/></sheets></workbook>',
    "xl/_rels/workbook.xml.rels": relation("worksheet", "worksheets/sheet1.xml"),
}


def placed(path, *places):
    """A workbook whose cells lie at these places, each with the number 1."""
    rows = "".join(f'<row r="{row}"><c r="{column}{row}"><v>1</v></c></row>' for column, row in places)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, text in {**PARTS, "xl/worksheets/sheet1.xml": SHEET % rows}.items():
            packed.writestr(name, text)
    return path


def test_a_cell_at_the_far_corner_of_a_sheet_is_refused_before_room_is_made(tmp_path):
    far = placed(tmp_path / "far.xlsx", ("A", 1), ("XFD", 1048576))
    assert far.stat().st_size < 3000
    with pytest.raises(InputError, match="1048576 rows and 16384 columns that is nearly empty"):
        open_source(far)
    result = run("init", far, "-o", tmp_path / "schema.json")
    assert result.exit_code == 3
    near = open_source(placed(tmp_path / "near.xlsx", ("A", 1), ("B", 900)))
    assert sum(near.table(part).rows for part in near.parts()) == 899
