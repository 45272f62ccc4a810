import copy
import pickle
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.errors import InputError, ParameterError
from covey.table.codec import Codec, ColumnLog, Dictionary
from covey.table.columns import Words
from covey.table.schema import Constant, Field, Schema
from tests.table.examples import PEOPLE, RULED, rng, some_codes


@st.composite
def fields(draw, name):
    kind = draw(st.sampled_from(["boolean", "string", "integer", "number", "date", "datetime"]))
    common = {"name": name, "type": kind, "required": draw(st.booleans())}
    if kind == "boolean":
        return Field(**common)
    if kind == "string":
        labels = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
        labels = [t for t in labels if t == t.strip() and t and not set("\0\r") & set(t)] or ["=cmd()"]
        labels = [t for t in labels if f"'{t}" not in labels]
        other = draw(st.sampled_from([None, "elsewhere"]))
        return Field(enum=tuple(labels), other=other, **common)
    bins = draw(st.none() | st.integers(1, 30))
    if kind == "number":
        low = draw(st.floats(-1e6, 1e6).map(lambda v: round(v, 4)))
        wide = draw(st.floats(0.01, 1e6).map(lambda v: round(v, 4)))
        # The declared precision must leave a value between the bounds.
        decimals = draw(st.sampled_from([None, 4, 6]))
        return Field(minimum=low, maximum=round(low + wide, 4), bins=bins, decimals=decimals, **common)
    low, wide = draw(st.integers(-10_000, 10_000)), draw(st.integers(0, 100_000))
    if kind == "date":
        return Field(
            minimum=date.fromordinal(720_000 + low), maximum=date.fromordinal(720_000 + low + wide), bins=bins, **common
        )
    if kind == "datetime":
        first, last = datetime.fromtimestamp(10**9 + low), datetime.fromtimestamp(10**9 + low + wide)
        return Field(minimum=first, maximum=last, bins=bins, **common)
    return Field(minimum=low, maximum=low + wide, bins=bins, **common)


@st.composite
def schemas(draw):
    count = draw(st.integers(1, 4))
    return Schema(
        (
            *(draw(fields(f"f{j}")) for j in range(count)),
            Field("flag", "boolean"),
            Field("c", "number", constant=Constant(1.5)),
        )
    )


@given(schemas(), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_encoding_undoes_decoding(schema, seed):
    codec = Codec(schema)
    codes = some_codes(codec, 40, seed)
    columns = codec.decode(codes, rng(seed))
    again, log = codec.encode(columns)
    assert np.array_equal(again, codes)
    assert all(not (c.unknown or c.clipped or c.unparseable) for c in log.columns.values())
    assert schema.validate(columns) == []
    text = {
        name: series.dt.to_string("iso") if series.dtype == pl.Datetime else series.cast(pl.String)
        for name, series in columns.items()
    }
    assert np.array_equal(codec.encode(text)[0], codes)


def test_attributes_with_one_category_are_public_constants():
    schema = Schema(
        (
            Field("land", "string", enum=("AT",), required=True),
            Field("year", "integer", 2020, 2020, required=True),
            Field("site", "string", constant=Constant("north")),
            Field("none", "date", constant=Constant(None)),
            Field("age", "integer", 0, 99),
        )
    )
    codec = Codec(schema)
    assert codec.names == ("age",)
    assert codec.ordinal == (0,)
    codes, _ = codec.encode({"age": [1, 2]})
    out = codec.decode(codes, rng())
    assert out["land"].to_list() == ["AT", "AT"]
    assert out["year"].to_list() == [2020, 2020]
    assert out["site"].to_list() == ["north", "north"]
    assert out["none"].to_list() == [None, None]
    assert list(out) == list(schema.names)
    assert schema.validate(out) == []
    with pytest.raises(ParameterError, match="nothing to encode"):
        Codec(Schema((Field("site", "string", constant=Constant("north")),)))


def test_limits_are_given_by_attribute():
    assert Codec(Schema.from_dict(RULED)).limits == [([0, 1, 2, 3, 4], 2)]


def test_a_missing_column_is_an_input_error_and_others_are_ignored():
    codec = Codec(Schema((Field("a", "boolean"), Field("b", "boolean"))))
    with pytest.raises(InputError, match="no column 'b'"):
        codec.encode({"a": [True]})
    codes, log = codec.encode({"z": [1], "b": [True], "a": [False]})
    assert codes.tolist() == [[0, 1]]
    assert log.ignored == ("z",)


def test_blocks_give_the_same_codes_and_counts(monkeypatch):
    codec = Codec(Schema.from_dict(PEOPLE))
    columns = codec.decode(some_codes(codec, 100, 4), rng())
    columns["job"], columns["age"] = ["nurse", "pope", None, " cook "] * 25, ["5", "x", "", "999"] * 25
    codes, log = codec.encode(columns)
    monkeypatch.setattr("covey.table.codec._BLOCK", 7)
    again, counted = codec.encode(columns)
    assert np.array_equal(codes, again)
    assert log == counted
    job, age = log.columns["job"], log.columns["age"]
    assert (job.unknown, job.missing, age.unparseable, age.missing, age.clipped) == (25, 25, 25, 25, 25)


def test_a_copied_codec_remembers_no_word_of_the_data(tmp_path):
    """Words are kept while a table is read, so that each is looked up once; they do not travel with the codec."""
    path = tmp_path / "t.parquet"
    pl.DataFrame({"c": ["known", "unheard of", None] * 5}).write_parquet(path)
    codec = Codec(Schema((Field("c", "string", enum=("known",), confirmed=True),)))
    codes, log = codec.encode(path)
    assert log.columns["c"].unknown == 5
    assert "unheard of" in codec._dictionaries["c"].known
    sent = pickle.dumps(codec)
    assert b"known" in sent
    assert b"unheard of" not in sent
    assert not copy.deepcopy(codec)._dictionaries["c"].known
    again, same = pickle.loads(sent).encode(path)
    assert (again == codes).all()
    assert same == log


def test_a_word_is_read_though_another_thread_clears_the_dictionary():
    class Cleared(dict):
        """As if another thread came right after."""

        def __setitem__(self, word, found):
            super().__setitem__(word, found)
            self.clear()

    dictionary = Dictionary(Codec(Schema.from_dict(PEOPLE)).attributes["sex"])
    dictionary.known = Cleared()
    column = Words(np.array([0, 1, -1, 1]), pl.Series(["f", "m"]))
    log = ColumnLog()
    plain = Dictionary(Codec(Schema.from_dict(PEOPLE)).attributes["sex"]).read(column, ColumnLog(), cells=False)
    assert dictionary.read(column, log, cells=False).tolist() == plain.tolist()
    assert log.missing == 1
