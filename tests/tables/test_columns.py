from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from functools import cache

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import feather

from covey.errors import InputError
from covey.tables.codec import Codec
from covey.tables.columns import guarded, unguarded
from covey.tables.dialects import Dialect
from covey.tables.schema import Field, Schema
from covey.tables.sources import read_table
from tests.tables.examples import PEOPLE, cells
from tests.tables.test_sources import workbook

ZONE = timezone(timedelta(hours=-8))

KINDS = {
    "flags": [True, False, True, True],
    "whole": [1, 2, 3, 1],
    "long": [10**15, 2 * 10**15, 10**15, 10**18],
    "days as numbers": [20200101, 20200102, 20200103, 20200104],
    "floats": [0.5, 1e-5, 2.0, 1e20],
    "holes": [1.0, None, 3.0, 2.0],
    "decimals": [Decimal("1"), Decimal("2.50"), Decimal("3"), Decimal("0.1")],
    "days": [date(2020, 1, 1), date(2020, 1, 2), date(2020, 1, 3), date(2020, 1, 4)],
    "times": [datetime(2020, 1, d, 20, 30) for d in (1, 2, 3, 4)],
    "old times": [datetime(1969, 12, 31, 23, 59, 59, 999_500), datetime(1900, 1, 1), datetime(1970, 1, 1), None],
    "times with an offset": [datetime(2020, 1, d, 20, tzinfo=ZONE) for d in (1, 2, 3, 4)],
    "words": ["a", "1", "2020-01-02", "true"],
    "bytes": [b"a", b"b", b"1", b"2"],
}

FOREIGN = [None, "x", True, 2, 2.5, Decimal("2.125"), date(2020, 1, 5), datetime(2020, 1, 5, tzinfo=UTC)]
FOREIGN += [b"a", "5", float("inf")]

LABELS = ("1", "2", "2.5", "a", "0.00001", "true", "2020-01-02", "2020-01-02 20:30:00", "0.1")
READERS = [
    Field("x", "integer", 0, 5),
    Field("x", "number", -1.0, 5.0, decimals=3),
    Field("x", "date", "2020-01-01", "2020-01-10"),
    Field("x", "datetime", "1960-01-01T00:00:00", "2020-01-10T00:00:00", bins=1000),
    Field("x", "boolean"),
    Field("x", "string", other="else", enum=LABELS),
]


@pytest.mark.parametrize("kind", ["pandas", "pyarrow", "csv", "parquet", "arrow", "xlsx"])
def test_columns_of_one_name_are_all_read_each_under_a_name_of_its_own(tmp_path, kind):
    names, rows = ["a", "a_2", "a", " a"], [["1", "x", "2", "3"], ["4", "y", "5", "6"]]
    table = pa.table([list(column) for column in zip(*rows, strict=True)], names=names)
    path = tmp_path / f"t.{kind}"
    made = {
        "pandas": lambda: pd.DataFrame(rows, columns=names),
        "pyarrow": lambda: table,
        "csv": lambda: path.write_text("a,a_2,a, a\n1,x,2,3\n4,y,5,6\n"),
        "parquet": lambda: pq.write_table(table, path),
        "arrow": lambda: feather.write_feather(table, path),
        "xlsx": lambda: workbook(path, [names, *rows]),
    }
    source = made[kind]()
    read = read_table(source if kind in ("pandas", "pyarrow") else path, dialect=Dialect(sheet="Data"))
    assert read.twice == ("a_3", "a_4")
    assert cells(read) == {"a": ["1", "4"], "a_2": ["x", "y"], "a_3": ["2", "5"], "a_4": ["3", "6"]}


def test_columns_are_matched_by_name_and_others_ignored(read):
    table = read(b"sex,name,age\nf,Eve,1\n")
    assert cells(table) == {"age": ["1"], "sex": ["f"]}
    assert table.ignored == ("name",)
    with pytest.raises(InputError, match=r"separated by semicolons.*--separator"):
        read(b"age;sex\n1;f\n")
    with pytest.raises(InputError, match="no column 'age'"):
        read(b"Age,sex\n1,f\n")


def test_columns_of_every_type_raise_nothing():
    kinds = (pl.UInt64, pl.Float32, pl.Int128, pl.Duration("us"), pl.Time, pl.Date)
    values = [pl.Series([1, 2]).cast(kind) for kind in kinds]
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


def test_the_wildest_cells_raise_nothing():
    wild = ["\ud800", "a" * 5000, "\u0661", "-", "e", "\n", "١", b"\xff", object(), {}, [1], 10**400, float("nan")]
    wild += [True, date(1, 1, 1)]
    wild.append(date(1, 1, 1))
    codes, _ = Codec(Schema.from_dict(PEOPLE)).encode({field["name"]: wild for field in PEOPLE["fields"]})
    assert codes.shape == (len(wild), 8)


def wrapped(values):
    """The same cells in every kind of table that holds them as they are."""
    yield "list", values
    yield "objects", pd.Series(values, dtype=object)
    guessed = pd.Series(values)
    if guessed.dtype != object:  # else it is the series above
        yield "guessed by pandas", guessed
    if len({type(value) for value in values}) == 1:  # else 1 and True are one category
        yield "category", pd.Series(values, dtype=object).astype("category")
    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        column = pl.Series(values, strict=True)
        if [(v, v is True) for v in column.to_list()] == [(v, v is True) for v in values]:
            yield "guessed by polars", column


@cache
def every_reader(count):
    """What reads so many columns, each in every way."""
    return Codec(Schema(tuple(replace(one, name=f"{one.type} {place}") for one in READERS for place in range(count))))


def codes_of(columns):
    """How columns of one kind are read: by column, row and reader."""
    kind = dict if isinstance(columns[0], list) else pd.DataFrame if isinstance(columns[0], pd.Series) else pl.DataFrame
    table = {f"{reader.type} {place}": column for reader in READERS for place, column in enumerate(columns)}
    found = every_reader(len(columns)).encode(kind(table))[0]
    return found.T.reshape(len(READERS), len(columns), -1).transpose(1, 2, 0)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_one_cell_does_not_change_how_others_are_read(kind):
    """Frames guess the type of a column from all of its cells, so a neighbouring table can have other types."""
    tables, held = [], defaultdict(list)
    for i, cell in enumerate([*FOREIGN, KINDS[kind][0]]):
        tables.append(list(KINDS[kind]))
        tables[-1][3 * (i % 2)] = cell  # at the beginning or at the end
    cells = {repr(cell): [cell] for values in tables for cell in values}  # 1 and True are equal, and read differently
    alone = dict(zip(cells, codes_of(list(cells.values())), strict=True))
    for values in tables:
        for name, column in wrapped(values):
            held[name].append((column, np.concatenate([alone[repr(value)] for value in values])))
    for name, columns in held.items():
        found = codes_of([column for column, _ in columns])
        assert np.argwhere(found != [wanted for _, wanted in columns]).tolist() == [], name


@pytest.mark.parametrize("label", ["＝1+1", "＠SUM(A1)", "＋1+1", "－1+1", "\u200b=1+1", "\ufeff=1+1", "\u2060@x"])
def test_full_width_signs_and_hidden_characters_are_guarded(label):
    assert guarded(label) == f"'{label}"
    assert unguarded(guarded(label)) == label
