import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from covey.errors import InputError
from covey.table.columns import Words
from covey.table.dialects import Dialect
from covey.table.sources import open_source, read_table
from tests.table.examples import SCHEMA, cells
from tests.table.test_workbook import workbook


def write_ipc(path, table, stream):
    with (pa.ipc.new_stream if stream else pa.ipc.new_file)(path, table.schema) as writer:
        writer.write_table(table)


@pytest.mark.parametrize("stream", [True, False])
def test_parquet_and_both_forms_of_arrow_are_read_alike(tmp_path, monkeypatch, stream):
    table = pa.table({"age": [1, None, 3] * 4, "name": ["Eve"] * 12, "sex": ["f", "?", None] * 4})
    pq.write_table(table, tmp_path / "t.parquet")
    write_ipc(tmp_path / "t.arrow", table, stream)
    monkeypatch.setattr("covey.table.columns.PART_ROWS", 5)
    for name in ("t.parquet", "t.arrow"):
        found = read_table(tmp_path / name, SCHEMA)
        assert cells(found) == {"age": [1, None, 3] * 4, "sex": ["f", "?", None] * 4}
        assert found.ignored == ("name",)


@pytest.mark.parametrize("kind", ["parquet", "arrow", "xlsx", "frame"])
def test_a_part_of_a_wide_table_has_fewer_rows(tmp_path, monkeypatch, kind):
    """A part had as many rows of 5,000 columns as of five."""
    table = pa.table({f"c{j}": [1] * 12 for j in range(6)})
    pq.write_table(table, tmp_path / "t.parquet")
    write_ipc(tmp_path / "t.arrow", table, False)
    if kind == "xlsx":
        workbook(tmp_path / "t.xlsx", [table.column_names, *([1] * 6 for _ in range(12))])
    monkeypatch.setattr("covey.table.columns.PART_CELLS", 24)
    source = open_source(table if kind == "frame" else tmp_path / f"t.{kind}", dialect=Dialect(sheet="Data"))
    assert [source.table(part).rows for part in source.parts()] == [4, 4, 4]


def test_text_of_few_words_stays_a_list_of_words(tmp_path):
    pq.write_table(pa.table({"age": [1, 2, 3], "sex": ["f", None, "f"]}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", SCHEMA)
    [part] = source.parts()
    column = source.table(part).columns["sex"]
    assert isinstance(column, Words)
    assert (column.words.to_list(), column.places.tolist()) == (["f"], [0, -1, 0])


def test_row_groups_have_lists_of_words_of_their_own(tmp_path, monkeypatch):
    words = ["f", "?", "m", "m", "m", "?", "f", "f", None, "m"]
    pq.write_table(pa.table({"age": [1] * 10, "sex": words}), tmp_path / "t.parquet", row_group_size=4)
    monkeypatch.setattr("covey.table.columns.PART_ROWS", 2)
    source = open_source(tmp_path / "t.parquet", SCHEMA)
    columns = [source.table(part).columns["sex"] for part in source.parts()]
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
