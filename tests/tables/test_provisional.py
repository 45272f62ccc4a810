"""The first reading of tables that nobody has described: each cell by itself, on grids that no table can move."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from covey.errors import ParameterError
from covey.tables.attributes import ColumnLog
from covey.tables.codec import Codec
from covey.tables.columns import Words
from covey.tables.dialects import Spelling
from covey.tables.provisional import LONGEST, LearnedColumn, Provisional
from covey.tables.schema import Field, LessEqual, Schema
from covey.tables.sources import read_table
from tests.entries import entry, schema_of


def read(field, cells, missing=("",)):
    """For each cell its bin as a pair of edges, its word, or None."""
    column = LearnedColumn(field, missing)
    series = cells if isinstance(cells, pl.Series) else pl.Series(cells, dtype=pl.String)
    codes, words = column.read(series, ColumnLog())
    edges = [float(edge) for edge in column.edges]
    return [
        None if c < int(column.is_text) else (edges[c], edges[c + 1]) if c < column.bins else words[c - column.bins]
        for c in codes.tolist()
    ]


def learned(name, type_, **more):
    return Field(name, type_, learn=True, **more)


def test_numbers_fall_into_bins_and_words_among_them_stay_words():
    cells = ["30", " 7 ", "0", "-1", "-3", "1e99", "-1e99", "N", "", None, "nan", "x\0y", "true"]
    found = [(20, 50), (7, 8), (0, 1), (-1, 0), (-3, -2), (5e14, 1e15), (-1e15, -5e14), "N", *[None] * 4, (1, 2)]
    assert read(learned("a", "integer"), cells) == found
    assert [read(learned("a", "integer"), [cell])[0] for cell in cells] == found  # no cell changes how another is read


def test_typed_columns_are_read_as_their_cells_would_be():
    values = [30, 7, 0, None, -3]
    typed = read(learned("a", "integer"), pl.Series(values))
    assert typed == read(learned("a", "integer"), [None if v is None else str(v) for v in values])
    days = pl.Series(["2020-02-29", "1850-01-01"]).str.to_date()
    assert read(learned("d", "date"), days) == [(2020, 2021), (1850, 1900)]
    assert read(learned("d", "datetime"), days) == [(2020, 2021), (1850, 1900)]
    flags = pl.Series([True, False, None])
    assert read(learned("s", "string"), flags) == ["true", "false", None]


def test_declared_missing_and_special_values_need_no_learning_however_they_are_spelled():
    cells = ["-99", "-99.0", "-98", "-98.00", "5"]
    assert read(learned("a", "number", special=("-98",)), cells, ("", "-99")) == [None] * 4 + [(5, 10)]


@pytest.mark.parametrize(
    ("field", "spelling", "cells"),
    [
        (learned("a", "number"), Spelling(","), ["1,5", "2", "1.5", "1,234.5", "N"]),
        (
            learned("d", "date"),
            Spelling(date_format="%d.%m.%Y"),
            ["19.03.2024", "2024-03-20", "20240319", "3/19/2024", "N"],
        ),
    ],
)
def test_a_value_in_another_spelling_is_counted_and_is_no_word(field, spelling, cells):
    log = ColumnLog()
    codes, words = LearnedColumn(field, ("",)).read(spelling.plain(pl.Series(cells)), log)
    assert (codes[:2] >= 0).all()
    assert codes[2] == -1
    assert log.unparseable == 2
    assert not [word for word in words if "\ufffd" in word]


def test_labels_are_those_that_the_codec_will_look_for():
    cells = [" North ", "'=1+1", "=1+1", "N/A", "NULL", "", "a" * (LONGEST + 1), "b" * LONGEST]
    cells += ["two\rlines", "'\tx", "''=y"]
    found = read(learned("s", "string"), cells, ("", "N/A"))
    expected = ["North", "=1+1", "=1+1", None, None, None, None, "b" * LONGEST, None, None, "''=y"]
    assert found == expected
    known = Schema((Field("s", "string", enum=tuple(sorted({w for w in found if w})), other="other"),), ("", "N/A"))
    coded = Codec(known).decode(Codec(known).encode({"s": cells})[0], np.random.default_rng(0))["s"].to_list()
    assert [c for c, w in zip(coded, found, strict=True) if w] == [w for w in found if w]
    assert all(c in (None, "other") for c, w in zip(coded, found, strict=True) if w is None)


def test_words_stored_by_place_are_spelled_out():
    provisional = Provisional(Schema((learned("s", "string"),)))
    table = read_table({"s": ["a", "b", None, "a"]})
    stored = replace(table, columns={"s": Words(np.array([0, 1, -1, 0]), pl.Series(["a", "b"]))})
    empty = replace(table, columns={"s": Words(np.full(4, -1), pl.Series([], dtype=pl.String))})
    plain, coded, holes = (provisional.encode_part(t)[0] for t in (table, stored, empty))
    assert plain.words == coded.words == (("a", "b"),)
    assert np.array_equal(plain.codes, coded.codes)
    assert holes.codes.ravel().tolist() == [0] * 4


def test_cells_of_a_text_that_hold_nothing_are_counted_and_long_ones_are_not():
    """They tell which share of what is there the named labels hold; a paragraph would be "other"."""
    column = LearnedColumn(learned("s", "string"), ("", "N/A"))
    codes, words = column.read(pl.Series(["a", "", None, "N/A", "nan", "x" * (LONGEST + 1), "b"]), ColumnLog())
    assert (codes.tolist(), words) == ([1, 0, 0, 0, 0, -1, 2], ("a", "b"))


def test_what_is_learned_says_nothing_that_would_have_to_be_known():
    for known in ({"minimum": 0}, {"enum": ("a",)}, {"bins": (0, 1, 2)}, {"default": "x"}, {"learned": True}):
        type_ = "string" if "enum" in known or "default" in known else "integer"
        with pytest.raises(ParameterError, match="to be learned"):
            learned("a", type_, **known)
    a, b = learned("a", "integer"), learned("b", "integer")
    with pytest.raises(ParameterError, match="stands in a rule"):
        Schema((a, b), rules=(LessEqual("a", "b"),))
    with pytest.raises(ParameterError, match="Only a private release learns"):
        Codec(Schema((a, b)))


def test_a_draft_that_is_learned_keeps_names_and_types_alone():
    schema = schema_of(
        Field("a", "integer", 3, 87, required=True, bins=5, confirmed=False),
        Field("s", "string", enum=("x", "y"), other="rest", confirmed=False),
        Field("k", "string", enum=("p", "q")),
    )
    to_learn = schema.to_learn()
    read = {"from_table": True}
    assert to_learn.fields == (learned("a", "integer", **read), learned("s", "string", **read), schema["k"])
    assert not to_learn.drafted
    assert Schema.from_dict(to_learn.to_dict()) == to_learn
    assert to_learn.to_dict()["fields"][0] == entry("a", "integer", learn=True, from_table=True)


def test_declared_fields_beside_learned_ones_are_checked_in_the_first_reading():
    schema = Schema((learned("a", "integer"), Field("b", "integer", 0, 5), Field("c", "string", enum=("x",))))
    _, log = Provisional(schema).encode_part(read_table({"a": ["1", "2"], "b": ["9", "z"], "c": ["x", "y"]}, schema))
    assert log.columns["b"] == ColumnLog(clipped=1, unparseable=1)
    assert log.columns["c"] == ColumnLog(unknown=1)
