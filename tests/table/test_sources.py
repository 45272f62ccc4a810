import csv

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from covey.errors import InputError, ParameterError
from covey.table.codec import Codec
from covey.table.frames import FrameForm
from covey.table.schema import Field, Schema
from covey.table.sources import read_table, write_rows
from tests.table.examples import SCHEMA, cells

FRAMES = {
    "pandas": lambda columns: pd.DataFrame(columns),
    "polars": lambda columns: pl.DataFrame(columns),
    "pyarrow": lambda columns: pa.table(columns),
}

RISKY = ("=cmd()", "+1", "-1", "@x", "<script>", "../x", "a,b", 'say "hi"', "two\nlines", "a\u2028b", "plain")

ODD = ["a\rb", "a\nb", "a\r\nb", "\r", "\n", "a\r", "\ra", "", " ", ",", ";", '"', '""', "a,b\rc;d"]


def test_frames_without_rows():
    with pytest.raises(InputError, match="no rows"):
        read_table(pl.DataFrame({"age": [], "sex": []}), SCHEMA)


@pytest.mark.parametrize("kind", FRAMES)
def test_frames_are_read_alike_and_come_back_in_their_kind(kind):
    frame = FRAMES[kind]({"age": [1, None, 30], "sex": ["f", "?", None], "extra": [1, 2, 3]})
    codec = Codec(SCHEMA)
    table = read_table(frame, SCHEMA)
    codes, log = codec.encode(table)
    assert codes.tolist() == [[1, 0], [10, 3], [9, 4]]
    assert log.ignored == ("extra",)
    out = FrameForm(table.origin).restore(codec.decode(codes, np.random.default_rng(0)))
    assert type(out) is type(frame)
    assert np.array_equal(codec.encode(out)[0], codes)
    assert SCHEMA.validate(out) == []


def test_pandas_keeps_whole_numbers_and_flags_with_holes():
    out = FrameForm("pandas").restore({"a": pl.Series([1, None]), "b": pl.Series([True, None]), "c": pl.Series([1, 2])})
    assert [str(t) for t in out.dtypes] == ["Int64", "boolean", "int64"]


def test_pandas_categories_mixed_objects_and_numbers_as_names():
    mixed = pd.DataFrame(
        {"age": pd.Series([1, "2", None, "x", 4.0], dtype=object), "sex": pd.Categorical(list("fmfmf"))}
    )
    assert Codec(SCHEMA).encode(mixed)[0].tolist() == [[1, 0], [2, 1], [10, 0], [10, 1], [4, 0]]
    assert read_table(pd.DataFrame({1: [2]})).columns["1"].to_list() == [2]


def test_other_things_are_no_tables():
    for thing in (3, None, pl.LazyFrame({"age": [1]})):
        with pytest.raises(ParameterError, match="a table is"):
            read_table(thing, SCHEMA)
    with pytest.raises(InputError, match="lengths"):
        read_table({"age": [1], "sex": ["f", "m"]}, SCHEMA)


def test_labels_are_guarded_in_csv_and_read_back(tmp_path):
    schema = Schema(
        (Field("=x", "string", enum=RISKY), Field("n", "integer", -9, 9, required=True), Field("d", "number", -1, 1))
    )
    codec = Codec(schema)
    codes = np.array([[j, j, j] for j in range(len(RISKY) + 1)])
    columns = codec.decode(codes, np.random.default_rng(0))
    write_rows([columns], tmp_path / "out.csv")
    with (tmp_path / "out.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    assert rows[0] == ["'=x", "n", "d"]
    assert [row[0] for row in rows[1:6]] == ["'=cmd()", "+1", "-1", "'@x", "<script>"]
    assert rows[1][1] == "-9"  # numbers stay numbers
    assert np.array_equal(codec.encode(read_table(tmp_path / "out.csv", schema))[0], codes)
    assert schema.validate(read_table(tmp_path / "out.csv")) == []


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


def test_a_reader_that_takes_every_carriage_return_for_a_line_end_is_found_out(tmp_path):
    path = tmp_path / "t.csv"
    WRITERS["pandas"](pl.DataFrame({"age": ["1", "2"], "sex": ["f", "a\rb"]}), path)
    assert len(path.read_bytes().splitlines()) == 4
    assert read_table(path, SCHEMA).rows == 2


def test_a_single_column_with_missing_cells_has_as_many_lines_as_rows(tmp_path):
    """A line without anything in it is no row to most readers."""
    write_rows([{"a": pl.Series(["x", None, "y"])}], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == ['"a"', '"x"', '""', '"y"']
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["a"] for row in csv.DictReader(file)] == ["x", "", "y"]
    assert read_table(tmp_path / "t.csv").rows == 3
    write_rows([{"a": pl.Series([1, 2])}], tmp_path / "t.csv")
    assert (tmp_path / "t.csv").read_text().splitlines() == ['"a"', "1", "2"]
