import csv
import gzip
import io
from dataclasses import replace
from datetime import date

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.errors import InputError, ParameterError
from covey.tables.codec import Codec
from covey.tables.dialects import Dialect, Spelling
from covey.tables.schema import Field, Schema
from covey.tables.sources import csvfile, read_table
from covey.tables.sources.csvfile import TextFile, scan
from tests.tables.examples import SCHEMA, cells


def text(path, data, block, skip_rows=0, encoding="utf-8"):
    path.write_bytes(data)
    file = TextFile(path, encoding, skip_rows, 10**6)
    return b"".join(piece for piece, _ in file.pieces(block)), file.swapped


@pytest.mark.parametrize("block", [1, 2, 3, 1000])
@pytest.mark.parametrize(
    ("data", "wanted"),
    [
        (b"a,b\n1,x\ry\n2,z\r\n", b"a,b\n1,x\ry\n2,z\n"),
        (b"a,b\r\n1,x\ry\r\n2,z\n", b"a,b\n1,x\ry\n2,z\n"),
        (b"a,b\r1,x\r2,y\r", b"a,b\n1,x\n2,y\n"),
        (b'"a\r\nb",c\n1,x\r\n', b'"a\nb",c\n1,x\n'),
        (b'"a\nb",c\r1,x\r', b'"a\rb",c\n1,x\n'),
        (b"a,b\r", b"a,b\n"),
        (b"a,b", b"a,b"),
        (b"a,b\n1,x\r", b"a,b\n1,x\r"),
    ],
)
def test_the_header_decides_what_ends_a_line(tmp_path, data, wanted, block):
    found, swapped = text(tmp_path / "t.csv", data, block)
    assert found == wanted
    assert swapped == (data.partition(b'"a\nb"')[2] or data).endswith((b"a,b\r", b"c\r1,x\r", b"2,y\r"))


def test_lines_before_the_header_do_not_decide(tmp_path):
    with pytest.raises(InputError, match="fewer than 9 lines"):
        text(tmp_path / "t.csv", b"Report, 3\n\na,b\n1,2\n", 2, 9)
    (tmp_path / "t.csv").write_bytes(b"Report\rof 2024\nage,sex\r\n1,f\n")
    assert cells(read_table(tmp_path / "t.csv", SCHEMA, dialect=Dialect(skip_rows=2))) == {"age": ["1"], "sex": ["f"]}


def test_packed_files_are_unpacked_and_broken_ones_refused(read):
    data = b"age,sex\n" + b"1,f\n2,m\n" * 300
    packed = {"t.csv.gz": gzip.compress(data), "t.csv.zst": pa.compress(data, "zstd", asbytes=True)}
    for name, content in packed.items():
        assert read(content, name).rows == 600
        for broken in (content[:-6], content[: len(content) // 2], b"no such thing", b""):
            with pytest.raises(InputError, match=name):
                read(broken, name)
        with pytest.raises(InputError, match="let its name end in"):
            read(content, "t.csv")
    bomb = b"age,sex\n" + b"1,f\n" * 10**6
    with pytest.raises(InputError, match="size_limit"):
        read(pa.compress(bomb, "zstd", asbytes=True), "t.csv.zst", size_limit=10**5)
    assert read(bomb, size_limit=10**5).rows == 10**6  # what lies on the disk as it is may be of any length


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_fields_are_counted_by_their_separator(monkeypatch, separator, chunk):
    monkeypatch.setattr(csvfile, "CHUNK", chunk)
    data = 'a.b\n\na.b.c\n"a.b".","\n a'.replace(".", separator).encode()
    assert scan(data, 2, ord(separator), "t.csv", 1) == (5, 2, 1)
    with pytest.raises(InputError, match=r"t\.csv has an unbalanced quote in line 8"):
        scan(data + b'"', 2, ord(separator), "t.csv", 4)


LINES = st.lists(st.lists(st.text('ab",;\t|\n é', max_size=4), min_size=1, max_size=4), min_size=1, max_size=8)
DIALECTS = st.builds(
    Dialect,
    separator=st.sampled_from([",", ";", "\t", "|"]),
    encoding=st.sampled_from(["utf-8", "utf-16", "utf-16-le", "latin-1"]),
    skip_rows=st.integers(0, 3),
)


@pytest.fixture(scope="module")
def spare(tmp_path_factory):
    return tmp_path_factory.mktemp("csv") / "t.csv"


@given(LINES, DIALECTS, st.integers(1, 9), st.integers(1, 30), st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=150)
def test_csv_is_read_as_the_standard_library_reads_it(spare, rows, dialect, chunk, block, end):
    """Two readers must agree on every cell, whatever is quoted, however ragged the rows are, wherever blocks are cut."""
    text = io.StringIO()
    quoting = csv.QUOTE_ALL if chunk % 2 or end == "\r" else csv.QUOTE_MINIMAL
    writer = csv.writer(text, lineterminator=end, quoting=quoting, delimiter=dialect.separator)
    writer.writerow(["age", "sex"])
    writer.writerows([*rows, ["1", "f"]])
    lines = csv.reader(io.StringIO(text.getvalue(), newline=""), delimiter=dialect.separator)
    expected = [(row + [""] * 2)[:2] for row in lines][1:]
    before = "".join(line + end for line in ("Report, 3", "", "of; 2024")[: dialect.skip_rows])
    spare.write_bytes((before + text.getvalue()).encode(dialect.encoding))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csvfile, "CHUNK", chunk)
        patch.setattr(csvfile, "BLOCK", block)
        table = read_table(spare, SCHEMA, dialect=dialect)
    found = [[a or "", b or ""] for a, b in zip(*cells(table).values(), strict=True)]
    assert found == expected
    assert table.short_rows == sum(len(row) < 2 for row in rows)
    assert table.long_rows == sum(len(row) > 2 for row in rows)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
def test_what_is_wrong_is_told_with_its_line_wherever_blocks_are_cut(read, monkeypatch, block):
    monkeypatch.setattr(csvfile, "BLOCK", block)
    blank = read(b"age,sex\r\n1,f\r\n\r\n\r\n")
    assert (cells(blank)["age"], blank.short_rows) == (["1", None, None], 2)
    with pytest.raises(InputError, match="not UTF-8, line 3"):
        read(b"age,sex\n1,f\n2,\xc3\n3,f\n")
    with pytest.raises(InputError, match="quote in line 4"):
        read(b'age,sex\n1,"f\n"\n2,"m\n3,f\n')


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"name;age\nAnn;34\n", "contains ';'. Is it separated by semicolons"),
        (b'"name";"age"\n"Ann";"3,4"\n', "contains ';'"),  # not an unbalanced quote
        (b'"first, last";age\nAnn;34\n', "contains ';'"),
        (b'na"me;age\n34;"x\n', "contains ';'"),
        (b'na"me;age\n1,5;2\n', "contains ';'"),
        (b"name\tage\nAnn\t34\n", "a tab. Is it separated by tabs"),
        (b"name|age\r\nAnn|34\r\n", "'|'. Is it separated by pipes"),
        (b"\xef\xbb\xbfname;age\nAnn;34\n", "contains ';'"),
        (b"sep=;\nname;age\nAnn;34\n", "Skip that line (--skip-rows 1)"),
        (b"SEP=,\r\nname,age\r\nAnn,34\r\n", "'sep='. Skip that line"),
    ],
)
def test_other_separators_are_refused_for_one_column_would_hold_whole_records(tmp_path, data, words):
    for name, packed in (("t.csv", data), ("t.csv.gz", gzip.compress(data))):
        (tmp_path / name).write_bytes(packed)
        with pytest.raises(InputError) as caught:
            read_table(tmp_path / name)
        assert words in str(caught.value)
        assert str(tmp_path / name) in str(caught.value)
        assert "Ann" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (b'"a;b"\n1\n2\n', ["a;b"]),  # a single name in quotes is a name
        (b"a;b,c|d\n1,2\n", ["a;b", "c|d"]),
        (b"name\nA;1\nB;2\n", ["name"]),
        (b"sep,x\n1,2\n", ["sep", "x"]),
        (b'"a\n;b",c\n1,2\n', ["a\n;b", "c"]),
    ],
)
def test_separators_inside_names_and_cells_are_read(tmp_path, data, names):
    (tmp_path / "t.csv").write_bytes(data)
    assert list(read_table(tmp_path / "t.csv").columns) == names


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_excel_and_numpy_files_are_named_for_what_they_are(tmp_path, encoding):
    np.savez(tmp_path / "rows.npz", rows=np.arange(5))
    np.save(tmp_path / "rows.npy", np.arange(5))
    (tmp_path / "old.csv").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(100))
    for name, words in [("rows.npz", "Excel or zip"), ("rows.npy", "numpy"), ("old.csv", "Excel file")]:
        with pytest.raises(InputError, match=rf"{name} is an? {words}.* Save the table as .xlsx, CSV or Parquet\."):
            read_table(tmp_path / name, dialect=Dialect(encoding=encoding))


def test_utf_8_with_its_mark_is_not_read_as_another_encoding(tmp_path):
    (tmp_path / "t.csv").write_bytes("age,sex\n1,ü\n".encode("utf-8-sig"))
    for encoding in ("latin-1", "cp1252"):
        with pytest.raises(InputError, match=rf"starts like UTF-8, not {encoding}\. .*--encoding utf-8"):
            read_table(tmp_path / "t.csv", dialect=Dialect(encoding=encoding))
    for encoding in ("utf-8", "utf-8-sig", "UTF8"):
        assert cells(read_table(tmp_path / "t.csv", dialect=Dialect(encoding=encoding))) == {"age": ["1"], "sex": ["ü"]}
    # In UTF-16 the same three bytes belong to letters.
    (tmp_path / "t.csv").write_bytes("믯뮿,b\n1,2\n".encode("utf-16-le"))
    assert list(read_table(tmp_path / "t.csv", dialect=Dialect(encoding="utf-16-le")).columns) == ["믯뮿", "b"]


def test_a_dialect_is_recorded_as_frictionless_has_it():
    dialect = Dialect(";", encoding="windows-1252", sheet="Data", skip_rows=3)
    said = dialect.to_dict()
    assert said["dialect"] == {"delimiter": ";", "headerRows": [4], "sheetName": "Data"}
    assert (len(said), said["encoding"]) == (2, "windows-1252")
    assert Dialect.from_dict(said) == dialect
    assert Dialect(",", encoding="utf-8", skip_rows=0).to_dict() == {}
    assert Dialect.from_dict({"dialect": {"header": True, "quoteChar": '"', "doubleQuote": True}}) == Dialect()


def test_what_is_said_overrules_what_was_found():
    found = Dialect(";", ",", ".", "windows-1252", sheet="A", skip_rows=2)
    own = {"skip_rows": 0, "decimal": ".", "thousands": ""}
    assert Dialect(**own).over(found) == replace(found, **own)
    assert Dialect("semicolon").separator == ";"
    assert Dialect("tab").separator == "\t"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"separator": "x"}, "separator must be one of"),
        ({"decimal": ";"}, "decimal must be one of"),
        ({"thousands": "x"}, "thousands must be one of"),
        ({"thousands": "."}, "both '.'"),
        ({"decimal": ",", "thousands": ","}, "both ','"),
        ({"encoding": "klingon"}, "unknown"),
        ({"encoding": "base64"}, "unknown"),
        ({"skip_rows": -1}, "skip_rows"),
        ({"missing": "NA"}, "list"),
        ({"date_format": "%d.%m"}, "year, month and day"),
        ({"date_format": "%q"}, "year, month and day"),
    ],
)
def test_a_wrong_dialect_is_a_parameter_error(wrong, words):
    with pytest.raises(ParameterError, match=words):
        Dialect(**wrong)


@pytest.mark.parametrize(
    ("spelling", "cells"),
    [
        (Spelling(",", "."), {"1.019,75": 1019.75, "-3,5": -3.5, "1.000.000": 1e6, " 7 ": 7, "1e3": 1000, ",5": 0.5}),
        (Spelling(",", "."), {"1.5": None, "1.0000": None, "1,019.75": None, "x": None, "1.01,5": None, "-": None}),
        (Spelling(".", ","), {"1,019.75": 1019.75, "1,000": 1000, "1000": 1000, "1,5": None, "1.019,75": None}),
        (Spelling(",", ""), {"1019,75": 1019.75, "1.5": None, "1.019,75": None, "1,019,75": None}),
        (Spelling(".", " "), {"1 019.75": 1019.75, "10 19": None}),
        (Spelling(".", "'"), {"1'019.75": 1019.75}),
    ],
)
def test_numbers_are_read_in_their_spelling_alone(spelling, cells):
    field = Field("x", "number", -(10**7), 10**7, decimals=2, spelling=spelling)
    read, log = Codec(Schema((field,))).encode({"x": list(cells)}, "cells")
    found = [None if cell < -(10**9) else cell / 100 for cell in read[:, 0].tolist()]
    assert found == list(cells.values())
    assert log.columns["x"].unparseable == sum(value is None for value in cells.values())


def test_dates_are_read_in_their_format_and_as_iso_text():
    field = Field("x", "date", "2024-01-01", "2024-12-31", bins=366, spelling=Spelling(date_format="%d.%m.%Y"))
    cells = ["19.03.2024", " 1.2.2024 ", "2024-03-19", "31.02.2024", "20240319", "3/19/2024", date(2024, 3, 19), None]
    codes, log = Codec(Schema((field,))).encode({"x": cells})
    assert codes[:, 0].tolist() == [78, 31, 78, 366, 366, 366, 78, 366]
    assert log.columns["x"].unparseable == 3


def test_cells_with_a_type_need_no_spelling():
    """A number in a column of mixed things is read as one, whatever its neighbours are."""
    codec = Codec(Schema((Field("x", "number", 0, 9999, decimals=1, spelling=Spelling(",", ".")),)))
    assert codec.encode({"x": [1.5, "1,5", 1234, "1.234"]}, "cells")[0][:, 0].tolist() == [15, 15, 12340, 12340]
    assert codec.encode(pl.DataFrame({"x": [1.5, 1234.0]}), "cells")[0][:, 0].tolist() == [15, 12340]
