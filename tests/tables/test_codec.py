"""Codes undo cells and cells codes, one record at a time."""

import pickle
from datetime import date, datetime

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.engine.numbers.grid import Category, NumberGrid
from covey.engine.relations.formulas import DAY, FORMULAS
from covey.errors import ParameterError
from covey.synthesizers.used_relations import columns_of
from covey.tables import columns as columns_module
from covey.tables.codec import Codec
from covey.tables.derived_fields import Derived
from covey.tables.fields import Follows
from covey.tables.schema import Constant, Field, LessEqual, Schema
from covey.tables.sources import write_rows
from tests.entries import entry, schema_of
from tests.tables.examples import PEOPLE, RULED, STAYING, rng, some_codes

FIELDS = (
    Field("income", "number", -10, 1000, decimals=2, special=("refused", "-99")),
    Field("age", "integer", 0, 120, required=True),
    Field("height", "number", 0, 3, bins=6),
    Field("born", "date", "1900-01-01", "2030-12-31"),
    Field("left", "datetime", "2020-01-01T00:00:00", "2020-12-31T23:59:59"),
    Field("clock", "time", "00:00:00", "23:59:59", required=True),
    Field("ward", "string", enum=("A", "B")),
)
ROWS = {
    "income": ["12.34", "refused", "", "-99", "1e9", "inf", "-inf", "nan"],
    "age": ["3", "120", "121", "-5", "", "x", "7.4", "0"],
    "height": ["1.8", "", "2.99", "3", "0", "1", "nan", "5"],
    "born": ["1999-12-31", "", "0000-01-01", "2031-01-01", "1900-01-01", "x", "2000-02-29", "2030-12-31"],
    "left": ["2020-06-06T12:00:00", "2020-06-06", "", "1066-01-01T00:00:00", "x", "2020-12-31T23:59:59", "", ""],
    "clock": ["12:30:05", "00:00:00", "23:59:59", "24:00:00", "", "7:00", "x", "11:11:11"],
    "ward": ["A", "B", "", "C", "A", "A", "B", "B"],
}

FIRST = {"A1": "A", "A2": "A", "B1": "B"}
EXPECTING = [
    entry("a", "integer", 0, 100),
    entry("b", "integer", 0, 100),
    entry("sum", "integer", 0, 200, expected={"expression": "a + b"}),
    entry("code", "string", enum=["A1", "A2", "B1"]),
    entry("first", "string", enum=["A", "B"], required=True, expected={"from": ["code"], "map": FIRST}),
    entry("day", "date", "2020-01-01", "2020-12-31"),
    entry("next day", "date", "2020-01-01", "2021-12-31", expected={"expression": "day + 86400 * a"}),
    entry("copy", "date", derived={"expression": "'next day'"}),
]
TABLE = pl.DataFrame(
    {
        "a": [1, 2, None, 40],
        "b": [5, 5, 5, 60],
        "sum": [6, 9, 8, 100],
        "code": ["A1", "B1", None, "A2"],
        "first": ["A", "A", "B", "A"],
        "day": ["2020-01-01", "2020-02-02", "2020-03-03", None],
        "next day": ["2020-01-02", "2020-02-05", "2020-03-03", "2020-05-05"],
    }
)


@st.composite
def fields(draw, name):
    kind = draw(st.sampled_from(["boolean", "string", "integer", "number", "date", "datetime", "time"]))
    common = {"name": name, "type": kind, "required": draw(st.booleans())}
    if kind == "boolean":
        return Field(**common)
    if kind == "string":
        labels = draw(st.lists(st.text(min_size=1, max_size=4), min_size=1, max_size=6, unique=True))
        labels = [t for t in labels if t == t.strip() and t and not set("\0\r") & set(t)] or ["=cmd()"]
        labels = [t for t in labels if f"'{t}" not in labels]
        other = draw(st.sampled_from([None, "elsewhere"]))
        return Field(enum=tuple(labels), other=other, **common)
    common["special"] = draw(st.sampled_from([(), ("N", "-9999999", "<5"), ("=x",)]))
    bins = draw(st.none() | st.integers(1, 30))
    if kind == "time":
        return Field(minimum="00:00", maximum=f"{draw(st.integers(0, 23)):02}:59:59", bins=bins, **common)
    if kind == "number":
        low = draw(st.floats(-1e6, 1e6).map(lambda v: round(v, 4)))
        wide = draw(st.floats(0.01, 1e6).map(lambda v: round(v, 4)))
        # The declared precision must leave a value between the bounds.
        decimals = draw(st.sampled_from([None, 4, 6]))
        return Field(minimum=low, maximum=round(low + wide, 4), bins=bins, decimals=decimals, **common)
    low, wide = draw(st.integers(-10_000, 10_000)), draw(st.integers(0, 100_000))
    if kind == "date":
        first, last = date.fromordinal(720_000 + low), date.fromordinal(720_000 + low + wide)
        return Field(minimum=first, maximum=last, bins=bins, **common)
    if kind == "datetime":
        first, last = datetime.fromtimestamp(10**9 + low), datetime.fromtimestamp(10**9 + low + wide)
        return Field(minimum=first, maximum=last, bins=bins, **common)
    return Field(minimum=low, maximum=low + wide, bins=bins, **common)


@pytest.fixture(scope="module")
def spare(tmp_path_factory):
    return tmp_path_factory.mktemp("codec")


@st.composite
def schemas(draw):
    count = draw(st.integers(1, 4))
    more = (Field("flag", "boolean"), Field("c", "number", constant=Constant(1.5)))
    return Schema((*(draw(fields(f"f{j}")) for j in range(count)), *more))


@given(schemas(), st.integers(0, 2**32))
@settings(max_examples=35)
def test_encoding_undoes_decoding(spare, schema, seed):
    """From memory, from text and from files; a special value makes a column text."""
    codec = Codec(schema)
    codes = some_codes(codec, 40, seed)
    columns = codec.decode(codes, rng(seed))
    again, log = codec.encode(columns)
    assert np.array_equal(again, codes)
    assert all(not (c.unknown or c.clipped or c.unparseable) for c in log.columns.values())
    assert schema.validate(columns) == []
    times = {name: series.dt.to_string("iso") for name, series in columns.items() if series.dtype == pl.Datetime}
    text = {name: series.cast(pl.String) for name, series in columns.items()} | times
    for kind in ("csv", "parquet"):
        write_rows([columns], spare / f"t.{kind}", parquet=kind == "parquet")
    for table in (text, spare / "t.csv", spare / "t.parquet"):
        assert np.array_equal(codec.encode(table)[0], codes)
        assert schema.validate(table) == []
    assert all(columns[field.name].dtype == pl.String for field in schema.fields if field.special)


def test_attributes_with_one_category_are_public_constants():
    schema = schema_of(
        Field("land", "string", enum=("AT",), required=True),
        Field("year", "integer", 2020, 2020, required=True),
        Field("site", "string", constant=Constant("north")),
        Field("none", "date", constant=Constant(None)),
        Field("age", "integer", 0, 99),
    )
    codec = Codec(schema)
    assert codec.names == ("age",)
    assert codec.ordered[0]
    assert not any(codec.ordered[1:])
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


def test_parts_give_the_same_codes_and_counts(monkeypatch):
    codec = Codec(Schema.from_dict(PEOPLE))
    columns = codec.decode(some_codes(codec, 100, 4), rng())
    columns["job"], columns["age"] = ["nurse", "pope", None, " cook "] * 25, ["5", "x", "", "999"] * 25
    codes, log = codec.encode(columns)
    monkeypatch.setattr(columns_module, "PART_ROWS", 7)
    again, counted = codec.encode(columns)
    assert np.array_equal(codes, again)
    assert log == counted
    job, age = log.columns["job"], log.columns["age"]
    assert (job.unknown, job.missing, age.unparseable, age.missing, age.clipped) == (25, 25, 25, 25, 25)


@pytest.mark.parametrize("words", [["known", None], ["known", "unheard of", None], ["known", "", " known"]])
def test_a_list_of_words_is_read_as_its_cells_are_and_not_remembered(tmp_path, words):
    path = tmp_path / "t.parquet"
    pl.DataFrame({"c": words * 5}).write_parquet(path)
    codec = Codec(Schema((Field("c", "string", enum=("known",), confirmed=True),)))
    before = pickle.dumps(codec)
    for coding in ("bins", "cells"):
        found, wanted = codec.encode(path, coding), codec.encode({"c": words * 5}, coding)
        assert found[0].tolist() == wanted[0].tolist()
        assert found[1].columns == wanted[1].columns
    assert pickle.dumps(codec) == before


@pytest.fixture(scope="module")
def codec():
    return Codec(Schema(FIELDS))


def test_numbers_without_bins_are_grids_and_the_others_categories(codec):
    kinds = dict(zip(codec.names, codec.kinds, strict=True))
    assert kinds["income"] == NumberGrid(101_001, 3, (3, 1003, 101_003))
    assert kinds["age"] == NumberGrid(121, 0, (0, 120))
    assert kinds["height"] == Category(7, True)
    assert isinstance(kinds["left"], NumberGrid)
    assert kinds["left"].steps == 366 * 86400
    assert kinds["ward"] == Category(3)


def test_values_come_back_as_cells_read_them(codec):
    table = pl.DataFrame(ROWS)
    codes, log = codec.encode(table, "numbers")
    cells, _ = codec.encode(table, "cells")
    assert (codes < [a.size for a in codec.kinds]).all()
    back = codec.decode(codes, np.random.default_rng(0), "numbers")
    again = codec.encode(pl.DataFrame(back), "cells")[0]
    fine = [j for j, name in enumerate(codec.names) if name != "height"]
    assert (again[:, fine] == cells[:, fine]).all()
    assert log.columns["income"].clipped == 3
    assert back["income"][1] == "refused"
    assert back["income"][3] == "-99"


def test_a_record_is_encoded_by_itself(codec):
    whole, _ = codec.encode(pl.DataFrame(ROWS), "numbers")
    for i in range(8):
        one, _ = codec.encode({name: [column[i]] for name, column in ROWS.items()}, "numbers")
        assert one.tolist() == whole[[i]].tolist()


def stay(**of_end):
    more = {"left": of_end}
    return tuple(Field(n, "date", "2020-01-01", f"{y}-12-31", **more.get(n, {})) for n, y in STAYING.items())


def random_codes(codec, n=500, seed=0):
    generator = np.random.default_rng(seed)
    return np.column_stack([generator.integers(0, a.size, n) for a in codec.kinds])


@pytest.mark.parametrize("how", ["after", "rule", "chain"])
def test_order_holds_in_every_decoded_row_and_without_a_link_it_does_not(how):
    rules = (LessEqual("came", "left"),) if how == "rule" else ()
    rules += (LessEqual("left", "paid"),) if how == "chain" else ()
    schema = Schema(stay(follows=None if how == "rule" else Follows("came")), rules=rules)
    codec = Codec(schema)
    assert set(codec.links) == {"left", "paid"} if how == "chain" else {"left"}
    frame = pl.DataFrame(codec.decode(random_codes(codec), np.random.default_rng(1), "numbers"))
    both = frame.drop_nulls()
    assert len(both) > 100
    assert (both["came"] <= both["left"]).all()
    if how == "chain":
        assert (both["left"] <= both["paid"]).all()
    free = Codec(Schema(stay()))
    frame = pl.DataFrame(free.decode(random_codes(free), np.random.default_rng(1), "numbers")).drop_nulls()
    assert (frame["came"] > frame["left"]).mean() > 0.2


def test_differences_are_what_is_encoded():
    schema = Schema(stay(follows=Follows("came", 0, 30)))
    assert Schema.from_dict(schema.to_dict()) == schema
    assert schema.to_dict()["fields"][1]["covey"] == {"after": "came", "difference": {"minimum": 0, "maximum": 30}}
    codec = Codec(schema)
    days = ["2020-03-04", "2020-02-01", "2021-03-01", "2020-05-05", "", "2021-12-31"]
    came = ["2020-03-01", "2020-03-01", "2020-03-01", "", "2020-03-01", "2021-12-31"]
    table = {"came": came, "left": days, "paid": [""] * 6}
    codes, _ = codec.encode(table, "numbers")
    at = codec.names.index("left")
    assert codec.kinds[at] == NumberGrid(31, 2, (2,))
    # After 3 days, moved to 0, moved to 30, without a base, missing, 0.
    assert codes[:, at].tolist() == [5, 2, 32, 1, 0, 2]
    back = codec.decode(codes, np.random.default_rng(2), "numbers")
    assert [str(v) for v in back["left"][:3]] == ["2020-03-04", "2020-03-01", "2020-03-31"]
    assert back["left"][4] is None
    assert back["left"][3] is not None


def test_differences_of_numbers_with_finer_ends_and_negative_bounds():
    fields = (
        Field("net", "integer", 0, 1000, required=True),
        Field("gross", "number", 0, 2000, decimals=2, required=True, follows=Follows("net", -5, 900.5, signed=True)),
    )
    codec = Codec(Schema(fields))
    assert codec.links["gross"].times == 100
    codes, _ = codec.encode({"net": ["100", "100", "1000"], "gross": ["99.25", "50", "2000"]}, "numbers")
    back = codec.decode(codes, np.random.default_rng(0), "numbers")
    assert back["gross"].to_list() == [99.25, 95.0, 1900.5]


def test_rules_that_grids_do_not_allow_are_left_to_repair():
    fields = (Field("a", "integer", 0, 9), Field("b", "integer", 0, 5), Field("c", "integer", 0, 9, bins=2))
    schema = Schema(fields, rules=(LessEqual("a", "b"), LessEqual("a", "c")))
    assert schema.links == {}
    codec = Codec(schema)
    frame = pl.DataFrame(codec.decode(random_codes(codec), np.random.default_rng(3), "numbers")).drop_nulls()
    assert (frame["a"] <= frame["b"]).all()


def test_rows_come_back_as_they_were_exceptions_and_holes_too():
    schema = Schema.from_dict({"fields": EXPECTING})
    assert Schema.from_dict(schema.to_dict()) == schema
    codec = Codec(schema)
    codes, _ = codec.encode(TABLE, "numbers")
    # What is as expected has one code, whatever its base.
    first, total = (codec.names.index(name) for name in ("first", "sum"))
    usual = codec.domain_sizes[first]
    assert codes[:, first].tolist() == [usual, 0, 1, usual]
    assert codes[0, total] == codes[3, total] != codes[1, total]
    rows = pl.DataFrame(codec.decode(codes, np.random.default_rng(0), "numbers"))
    for name in ("a", "b", "code", "day"):
        assert rows[name].cast(pl.String).to_list() == TABLE[name].cast(pl.String).to_list()
    assert rows["first"].to_list() == ["A", "A", "B", "A"]
    assert rows["sum"].to_list()[:2] == [6, 9]  # one as expected, one apart from it
    assert rows["sum"][3] == 100
    assert rows["next day"].cast(pl.String).to_list()[:2] == ["2020-01-02", "2020-02-05"]
    assert rows["copy"].to_list() == rows["next day"].to_list()  # dates can be computed


def test_every_formula_computes_what_its_expression_says():
    draw = np.random.default_rng(1)
    for formula in FORMULAS:
        k = {"clock": -1.0, "age": 46.0, "sum of three": -1.0}.get(formula.name, 60.0)
        dated = any(word in formula.expression for word in ("86400", "year(", "month(", "day(", "hour(", "days("))
        a, b, c = (draw.integers(1, 2000, 50).astype(float) for _ in range(3))
        a, b = (a * DAY, b * DAY + 3600) if formula.name == "days" else (a * DAY + 7200 if dated else a, b)
        expression = Derived.from_dict({"expression": formula.expression.format(a="a", b="b", c="c", k=int(k))}, "t")
        sources = {"a": a, "b": b, "c": c}
        used = [sources[name] for name in "abc" if f"{{{name}}}" in formula.expression]
        told, value = expression.evaluate(sources), formula.value(k, *used)
        np.testing.assert_allclose(told, np.floor(value) if formula.name == "age" else value, err_msg=formula.name)


def test_columns_say_which_codes_are_values():
    codec = Codec(Schema.from_dict({"fields": EXPECTING[:2] + EXPECTING[3:4] + EXPECTING[5:6]}))
    columns = {column.name: column for column in columns_of(codec)}
    codes, _ = codec.encode(TABLE, "numbers")
    values = {name: columns[name].values(codes[:, j]) for j, name in enumerate(codec.names)}
    np.testing.assert_array_equal(values["a"], [1, 2, np.nan, 40])
    assert values["day"][0] == np.datetime64("2020-01-01").astype("datetime64[s]").astype(float)
    assert columns["code"].labels == ("A1", "A2", "B1")
