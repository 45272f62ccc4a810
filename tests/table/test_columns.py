import gzip

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xlsxwriter

from covey.errors import CoveyWarning, InputError
from covey.table.codec import Codec
from covey.table.schema import Field, Schema
from covey.table.sources import read_table
from tests.table.examples import SCHEMA, cells


def test_duplicate_column_names(read):
    with pytest.warns(CoveyWarning, match="a column is called 'sex_3': another one has its name"):
        assert cells(read(b"age,sex,sex_2,sex\n1,f,x,m\n")) == {"age": ["1"], "sex": ["f"]}


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "csv", "parquet", "arrow", "xlsx"])
def test_columns_of_one_name_are_all_read_each_under_a_name_of_its_own(tmp_path, kind):
    names, rows = ["a", "b", "a", " a"], [["1", "x", "2", "3"], ["4", "y", "5", "6"]]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], names=names)
    path = tmp_path / f"t.{kind}"
    if kind == "pandas":
        source = pd.DataFrame(rows, columns=names)
    elif kind == "pyarrow":
        source = table
    else:
        source = path
        if kind == "csv":
            path.write_text("a,b,a, a\n1,x,2,3\n4,y,5,6\n")
        elif kind == "parquet":
            pq.write_table(table, path)
        elif kind == "arrow":
            with pa.ipc.new_file(path, table.schema) as file:
                file.write(table)
        else:
            book = xlsxwriter.Workbook(path)
            sheet = book.add_worksheet()
            for i, row in enumerate([names, *rows]):
                sheet.write_row(i, 0, row)
            book.close()
    read = read_table(source)
    assert read.twice == ("a_2", "a_3")
    assert cells(read) == {"a": ["1", "4"], "b": ["x", "y"], "a_2": ["2", "5"], "a_3": ["3", "6"]}


def test_columns_are_matched_by_name_and_others_ignored(read):
    table = read(b"sex,name,age\nf,Eve,1\n")
    assert cells(table) == {"age": ["1"], "sex": ["f"]}
    assert table.ignored == ("name",)
    with pytest.raises(InputError, match=r"separated by semicolons.*--separator"):
        read(b"age;sex\n1;f\n")
    with pytest.raises(InputError, match="no column 'age'"):
        read(b"Age,sex\n1,f\n")


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
