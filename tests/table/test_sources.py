import csv
import gzip
import importlib
import io
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.errors import InputError, MissingExtraError, ParameterError
from covey.table import csvfile
from covey.table.codec import Codec
from covey.table.schema import Field, Schema
from covey.table.sources import like, read_table, write_csv, write_parquet

SCHEMA = Schema((Field("age", "integer", 0, 9), Field("sex", "string", enum=("f", "m", "ü"), other="x")))


@pytest.fixture
def read(tmp_path):
    def read(data, name="t.csv", **options):
        (tmp_path / name).write_bytes(data)
        return read_table(tmp_path / name, SCHEMA, **options)

    return read


def cells(table):
    return {name: series.to_list() for name, series in table.columns.items()}


def test_a_missing_file_or_a_directory(tmp_path):
    for path, words in [
        (tmp_path / "none.csv", "no file"),
        (tmp_path, "directory"),
        (tmp_path / "none.parquet", "no file"),
    ]:
        with pytest.raises(InputError, match=words) as error:
            read_table(path, SCHEMA)
        assert error.value.exit_code == 3


@pytest.mark.parametrize("data", [b"", b"\n", b"age,sex", b"age,sex\n", b"age,sex\r\n\r\n", b"\xef\xbb\xbf"])
def test_an_empty_file_or_a_header_alone(read, data):
    with pytest.raises(InputError):
        read(data)


def test_frames_without_rows():
    with pytest.raises(InputError, match="no rows"):
        read_table(pl.DataFrame({"age": [], "sex": []}), SCHEMA)


@pytest.mark.parametrize("rows", [1, 2])
def test_one_or_two_rows_are_a_table(read, rows):
    assert read(b"age,sex\n" + b"1,f\n" * rows).rows == rows


def test_ragged_rows_are_kept_and_counted(read):
    table = read(b"age,sex\n1,f\n2\n3,m,9,9\n\n5,f")
    assert cells(table) == {"age": ["1", "2", "3", None, "5"], "sex": ["f", None, "m", None, "f"]}
    assert (table.short_rows, table.long_rows) == (2, 1)
    codes, log = Codec(SCHEMA).encode(table)
    assert codes.tolist() == [[1, 0], [2, 4], [3, 1], [10, 4], [5, 0]]
    assert (log.short_rows, log.long_rows) == (2, 1)


def test_ragged_rows_in_a_quoted_file(read):
    table = read(b'age,sex\n"1","f"\n"2"\n"3","m","9,\n9"\n')
    assert cells(table) == {"age": ["1", "2", "3"], "sex": ["f", None, "m"]}
    assert (table.short_rows, table.long_rows) == (1, 1)


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b'age,sex\n1,f\n2,"m\n3,f\n', 3),
        (b'age,sex\n"1,f\n"2",m\n', 2),
        (b'age,sex\n1,f"\n', 2),
        (b'age,sex\n1,"a"b\n', 2),
        (b'age,sex\n1,"f\nf"\n2,f\n3,"m\n', 5),
        (b'age,"sex\n1,f\n', 1),
    ],
)
def test_an_unbalanced_quote_is_refused_with_its_line(read, data, line):
    with pytest.raises(InputError, match=f"line {line}"):
        read(data)


def test_unbalanced_quotes_are_found_across_chunks(read, monkeypatch):
    monkeypatch.setattr(csvfile, "_CHUNK", 7)
    with pytest.raises(InputError, match="line 4"):
        read(b'age,sex\n1,"f"\n2,"m"\n3,"f\n4,m\n')
    table = read(b'age,sex\n1,"f"\n2,"m,""\n"\n3\n4,m,5')
    assert cells(table)["sex"] == ["f", 'm,"\n', None, "m"]
    assert (table.rows, table.short_rows, table.long_rows) == (4, 1, 1)


LINES = st.lists(st.lists(st.text('ab",\n é', max_size=4), min_size=1, max_size=4), min_size=1, max_size=8)


@pytest.fixture(scope="module")
def spare(tmp_path_factory):
    return tmp_path_factory.mktemp("csv") / "t.csv"


@given(LINES, st.integers(1, 9), st.integers(1, 30), st.sampled_from(["\n", "\r\n", "\r"]))
@settings(max_examples=150, deadline=None)
def test_csv_is_read_as_the_standard_library_reads_it(spare, rows, chunk, block, end):
    """Two readers must agree on every cell, whatever is quoted, however ragged the rows are, wherever blocks are cut."""
    text = io.StringIO()
    writer = csv.writer(
        text, lineterminator=end, quoting=csv.QUOTE_ALL if chunk % 2 or end == "\r" else csv.QUOTE_MINIMAL
    )
    writer.writerow(["age", "sex"])
    writer.writerows([*rows, ["1", "f"]])
    expected = [(row + [""] * 2)[:2] for row in csv.reader(io.StringIO(text.getvalue(), newline=""))][1:]
    spare.write_bytes(text.getvalue().encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csvfile, "_CHUNK", chunk)
        patch.setattr(csvfile, "BLOCK", block)
        table = read_table(spare, SCHEMA)
    found = [[a or "", b or ""] for a, b in zip(*cells(table).values(), strict=True)]
    assert found == expected
    assert table.short_rows == sum(len(row) < 2 for row in rows)
    assert table.long_rows == sum(len(row) > 2 for row in rows)


@pytest.mark.parametrize("block", [1, 2, 3, 7, 1000])
def test_blocks_change_nothing(read, monkeypatch, block):
    monkeypatch.setattr(csvfile, "BLOCK", block)
    data = "age,sex\r\n1,ü\r\n\r\n2,m\r\n\r\n\r\n"
    for encoding in ("utf-8", "utf-16", "latin-1"):
        table = read(data.encode(encoding), encoding=encoding)
        assert cells(table) == {"age": ["1", None, "2"], "sex": ["ü", None, "m"]}
        assert table.short_rows == 1
    with pytest.raises(InputError, match="not UTF-8, line 3"):
        read(b"age,sex\n1,f\n2,\xc3\n3,f\n")
    with pytest.raises(InputError, match="quote in line 4"):
        read(b'age,sex\n1,"f\n"\n2,"m\n3,f\n')


def test_a_record_that_never_ends_is_refused_before_it_fills_the_memory(read, monkeypatch):
    monkeypatch.setattr(csvfile, "BLOCK", 64)
    monkeypatch.setattr(csvfile, "RECORD_LIMIT", 1000)
    with pytest.raises(InputError, match="quote in line 3"):
        read(b'age,sex\n1,f\n2,"' + b"m\n" * 5000, field_limit=100)
    with pytest.raises(InputError, match=r"line 2.*1000"):
        read(b"age,sex\n1," + b"f" * 5000, field_limit=100)


def test_a_byte_order_mark_is_accepted(read):
    assert cells(read(b"\xef\xbb\xbfage,sex\n1,f\n")) == {"age": ["1"], "sex": ["f"]}


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "latin-1"])
def test_other_encodings_are_read_when_declared_and_refused_when_not(read, encoding):
    data = "age,sex\n1,ü\n".encode(encoding)
    with pytest.raises(InputError):
        read(data)
    assert cells(read(data, encoding=encoding)) == {"age": ["1"], "sex": ["ü"]}


def test_what_is_not_in_the_declared_encoding_is_refused(read):
    with pytest.raises(InputError, match="line 3"):
        read(b"age,sex\n1,f\n2,\xfc\n")
    with pytest.raises(InputError, match="ascii"):
        read("age,sex\n1,ü\n".encode(), encoding="ascii")
    with pytest.raises(ParameterError, match="unknown"):
        read(b"age,sex\n1,f\n", encoding="klingon")


def test_line_ends_of_every_kind(read):
    assert cells(read(b"age,sex\r\n1,f\r2,m\n3,f\r\n"))["age"] == ["1", "2", "3"]


def test_a_nul_byte_is_missing(read):
    codes, log = Codec(SCHEMA).encode(read(b"age,sex\n1\x00,f\n2,\x00\n3,f\x00m\n"))
    assert codes.tolist() == [[10, 0], [2, 4], [3, 4]]
    assert log.columns["sex"].missing == 2


def test_a_huge_field_is_refused_at_the_limit(read):
    assert read(b"age,sex\n1," + b"f" * 2**20 + b"\n").rows == 1
    with pytest.raises(InputError, match=r"'sex'.*1048576"):
        read(b"age,sex\n1," + b"f" * (2**20 + 1) + b"\n")
    with pytest.raises(InputError, match="limit"):
        read_table({"age": [1], "sex": ["f" * 11]}, SCHEMA, field_limit=10)


def test_a_table_beyond_the_size_limit_is_refused(read, tmp_path):
    bomb = b"age,sex\n" + b"1,f\n" * 100_000
    assert read(gzip.compress(bomb), "t.csv.gz").rows == 100_000
    with pytest.raises(InputError, match="size_limit"):
        read(gzip.compress(bomb), "t.csv.gz", size_limit=100_000)
    assert read(bomb, size_limit=100_000).rows == 100_000  # what lies on the disk as it is may be of any length
    pq.write_table(pa.table({"age": [1] * 10**6, "sex": ["f"] * 10**6}), tmp_path / "t.parquet")
    with pytest.raises(InputError, match="size_limit"):
        read_table(tmp_path / "t.parquet", SCHEMA, size_limit=10**6)


def test_broken_compression_and_broken_parquet(read):
    with pytest.raises(InputError, match="cannot read"):
        read(b"no gzip", "t.csv.gz")
    with pytest.raises(InputError, match="cannot read"):
        read(gzip.compress(b"age,sex\n1,f\n" * 100)[:-12], "t.csv.gz")
    with pytest.raises(InputError, match="Parquet"):
        read(b"no parquet", "t.parquet")


def test_duplicate_column_names(read):
    with pytest.raises(InputError, match="two columns named 'sex'"):
        read(b"age,sex,sex\n1,f,m\n")
    for frame in (pd.DataFrame([[1, 2]], columns=["age", "age"]), pa.table([[1], [2]], names=["age", "age"])):
        with pytest.raises(InputError, match="same name"):
            read_table(frame, SCHEMA)


def test_columns_are_matched_by_name_and_others_ignored(read):
    table = read(b"sex,name,age\nf,Eve,1\n")
    assert cells(table) == {"age": ["1"], "sex": ["f"]}
    assert table.ignored == ("name",)
    with pytest.raises(InputError, match=r"separated by semicolons.*commas"):
        read(b"age;sex\n1;f\n")
    with pytest.raises(InputError, match="no column 'age'"):
        read(b"Age,sex\n1,f\n")


FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_read_alike_and_come_back_in_their_kind(kind):
    frame = FRAMES[kind]({"age": [1, None, 30], "sex": ["f", "?", None], "extra": [1, 2, 3]})
    codec = Codec(SCHEMA)
    table = read_table(frame, SCHEMA)
    codes, log = codec.encode(table)
    assert codes.tolist() == [[1, 0], [10, 3], [9, 4]]
    assert log.ignored == ("extra",)
    for origin in (frame, table):
        out = like(origin, codec.decode(codes, np.random.default_rng(0)))
        assert type(out) is type(frame)
        assert np.array_equal(codec.encode(out)[0], codes)
        assert SCHEMA.validate(out) == []


def test_pandas_keeps_whole_numbers_and_flags_with_holes():
    out = like(pd.DataFrame(), {"a": pl.Series([1, None]), "b": pl.Series([True, None]), "c": pl.Series([1, 2])})
    assert [str(t) for t in out.dtypes] == ["Int64", "boolean", "int64"]


def test_pandas_categories_mixed_objects_and_numbers_as_names():
    mixed = pd.DataFrame(
        {"age": pd.Series([1, "2", None, "x", 4.0], dtype=object), "sex": pd.Categorical(list("fmfmf"))}
    )
    assert Codec(SCHEMA).encode(mixed)[0].tolist() == [[1, 0], [2, 1], [10, 0], [10, 1], [4, 0]]
    assert read_table(pd.DataFrame({1: [2]})).columns["1"].to_list() == [2]


def test_columns_of_every_type_raise_nothing():
    values = [
        pl.Series([1, 2]).cast(kind) for kind in (pl.UInt64, pl.Float32, pl.Int128, pl.Duration("us"), pl.Time, pl.Date)
    ]
    values += [pl.Series([None, None]), pl.Series(["f", "m"], dtype=pl.Enum(["f", "m"])), pl.Series([b"f", b"\xff"])]
    values += [pl.Series([[1], [2]]), pl.Series([{"a": 1}, None]), pl.Series([1, 2]).cast(pl.Decimal(10, 2))]
    values += [pl.Series([1, 2]).cast(pl.Datetime("ns", "Europe/Vienna")), pl.Series([object(), None], dtype=pl.Object)]
    kinds = {"b": "boolean", "i": "integer", "n": "number"}
    fields = [Field(name, kind, *([0, 9] if name in "in" else [])) for name, kind in kinds.items()]
    times = [Field("d", "date", "1960-01-01", "2020-01-01"), Field("t", "datetime", "1960-01-01", "2020-01-01")]
    codec = Codec(Schema((*fields, *times, Field("s", "string", enum=("f", "m"), other="x"))))
    for series in values:
        codes, _ = codec.encode(dict.fromkeys("bindts", series))
        assert codes.shape == (2, 6)


def test_other_things_are_no_tables():
    for thing in (3, None, pl.LazyFrame({"age": [1]})):
        with pytest.raises(ParameterError, match="a table is"):
            read_table(thing, SCHEMA)
    with pytest.raises(InputError, match="lengths"):
        read_table({"age": [1], "sex": ["f", "m"]}, SCHEMA)


RISKY = ("=cmd()", "+1", "-1", "@x", "<script>", "../x", "a,b", 'say "hi"', "two\nlines", "a\u2028b", "plain")


def test_labels_are_guarded_in_csv_and_read_back(tmp_path):
    schema = Schema(
        (Field("=x", "string", enum=RISKY), Field("n", "integer", -9, 9, required=True), Field("d", "number", -1, 1))
    )
    codec = Codec(schema)
    codes = np.array([[j, j, j] for j in range(len(RISKY) + 1)])
    columns = codec.decode(codes, np.random.default_rng(0))
    write_csv(columns, tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["'=x", "n", "d"]
    assert [row[0] for row in rows[1:6]] == ["'=cmd()", "'+1", "'-1", "'@x", "<script>"]
    assert rows[1][1] == "-9"  # numbers stay numbers
    assert np.array_equal(codec.encode(read_table(tmp_path / "out.csv", schema))[0], codes)
    assert schema.validate(read_table(tmp_path / "out.csv")) == []


def test_csv_and_parquet_give_back_what_was_written(tmp_path):
    from tests.table.test_codec import RULED, some_codes

    schema = Schema.from_dict(RULED)
    codec = Codec(schema)
    codes = codec.repair(some_codes(codec, 300, 5), np.random.default_rng(0))
    columns = codec.decode(codes, np.random.default_rng(0))
    expected = codec.encode(columns)[0]
    write_csv(columns, tmp_path / "t.csv")
    write_parquet(columns, tmp_path / "t.parquet")
    for name in ("t.csv", "t.parquet"):
        table = read_table(tmp_path / name, schema)
        assert np.array_equal(codec.encode(table)[0], expected)
        assert schema.validate(read_table(tmp_path / name)) == []


def test_one_column_keeps_its_blank_lines(tmp_path):
    schema = Schema((Field("age", "integer", 0, 9),))
    write_csv({"age": pl.Series([1, None, 3, None])}, tmp_path / "t.csv")
    assert read_table(tmp_path / "t.csv", schema).rows == 4


def test_a_record_level_fault_changes_nothing_but_its_row(read):
    clean = Codec(SCHEMA).encode(read(b"age,sex\n1,f\n2,m\n3,f\n"))[0]
    for bad in (b"2", b"2,m,m", b"x,m", b"2,?", b"1e400,m", b'"2","m"', b"\x00,\x00", b""):
        other = Codec(SCHEMA).encode(read(b"age,sex\n1,f\n" + bad + b"\n3,f\n"))[0]
        assert other.shape == clean.shape
        assert np.array_equal(other[[0, 2]], clean[[0, 2]])


def test_heavy_packages_are_imported_late():
    code = (
        "import sys, covey.table.schema, covey.table.codec, covey.table.sources, covey.table.metadata;"
        "sys.exit(any(m in sys.modules for m in ('polars', 'pandas', 'pyarrow', 'narwhals', 'yaml')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_missing_package_names_the_install_line(monkeypatch):
    def refuse(name, *rest):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", refuse)
    with pytest.raises(MissingExtraError, match=r"pip install 'covey\[table\]'"):
        read_table({"age": [1]})


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
        (b"sep=;\nname;age\nAnn;34\n", "Remove that line, and separate the fields with commas"),
        (b"SEP=,\r\nname,age\r\nAnn,34\r\n", "'sep='. Remove that line."),
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


@pytest.mark.parametrize("name", ["a;b", "a|b", "a\tb", "sep=;", "sep=,", 'a";"b', "age"])
def test_a_single_column_of_any_name_is_read_as_it_was_written(tmp_path, name):
    write_csv([{name: pl.Series(["x", "y"])}, {name: pl.Series(["z"])}], tmp_path / "t.csv")
    assert cells(read_table(tmp_path / "t.csv")) == {name: ["x", "y", "z"]}


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_excel_and_numpy_files_are_named_for_what_they_are(tmp_path, encoding):
    np.savez(tmp_path / "rows.npz", rows=np.arange(5))
    np.save(tmp_path / "rows.npy", np.arange(5))
    (tmp_path / "old.xls").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(100))
    for name, words in [("rows.npz", "Excel or zip"), ("rows.npy", "numpy"), ("old.xls", "Excel file")]:
        with pytest.raises(InputError, match=rf"{name} is an? {words}.* Save the table as CSV or Parquet\."):
            read_table(tmp_path / name, encoding=encoding)


def test_utf_8_with_its_mark_is_not_read_as_another_encoding(tmp_path):
    (tmp_path / "t.csv").write_bytes("age,sex\n1,ü\n".encode("utf-8-sig"))
    for encoding in ("latin-1", "cp1252"):
        with pytest.raises(InputError, match=rf"starts like UTF-8, not {encoding}\. .*--encoding utf-8"):
            read_table(tmp_path / "t.csv", encoding=encoding)
    for encoding in ("utf-8", "utf-8-sig", "UTF8"):
        assert cells(read_table(tmp_path / "t.csv", encoding=encoding)) == {"age": ["1"], "sex": ["ü"]}
    # In UTF-16 the same three bytes belong to letters.
    (tmp_path / "t.csv").write_bytes("믯뮿,b\n1,2\n".encode("utf-16-le"))
    assert list(read_table(tmp_path / "t.csv", encoding="utf-16-le").columns) == ["믯뮿", "b"]
