import pytest

from covey.errors import InputError
from covey.table import csv_records
from covey.table.csv_records import last_record_end, record_end, scan
from tests.table.examples import cells


def test_records_end_outside_quotes():
    data = b'a,"b\nc"\nd\n"e\n'
    assert record_end(data, 0) == 8
    assert record_end(data, 10) == -1
    assert last_record_end(data) == 10
    assert last_record_end(b"a,b") == 0


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
@pytest.mark.parametrize("chunk", [1, 3, 100])
def test_fields_are_counted_by_their_separator(monkeypatch, separator, chunk):
    monkeypatch.setattr(csv_records, "CHUNK", chunk)
    data = 'a.b\n\na.b.c\n"a.b".","\n a'.replace(".", separator).encode()
    shape = scan(data, 2, ord(separator), "t.csv", 1)
    assert (shape.records, shape.short, shape.long, shape.longest) == (5, 2, 1, 10)
    with pytest.raises(InputError, match=r"t\.csv has an unbalanced quote in line 8"):
        scan(data + b'"', 2, ord(separator), "t.csv", 4)


def test_unbalanced_quotes_are_found_across_chunks(read, monkeypatch):
    monkeypatch.setattr(csv_records, "CHUNK", 7)
    with pytest.raises(InputError, match="line 4"):
        read(b'age,sex\n1,"f"\n2,"m"\n3,"f\n4,m\n')
    table = read(b'age,sex\n1,"f"\n2,"m,""\n"\n3\n4,m,5')
    assert cells(table)["sex"] == ["f", 'm,"\n', None, "m"]
    assert (table.rows, table.short_rows, table.long_rows) == (4, 1, 1)
