import copy
import pickle
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.errors import InputError, ParameterError
from covey.table.codec import Codec
from covey.table.schema import Constant, Field, Schema
from tests.table.test_schema import PEOPLE


def rng(seed=0):
    return np.random.default_rng(seed)


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


def some_codes(codec, rows, seed):
    generator = rng(seed)
    return np.stack([generator.integers(0, size, rows) for size in codec.domain_sizes], axis=1)


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


def one(field, cells, **table):
    codes, log = Codec(Schema((field, Field("flag", "boolean")), **table)).encode(
        {field.name: cells, "flag": [None] * len(cells)}
    )
    return codes[:, 0].tolist(), log.columns[field.name]


def test_numbers_are_read_by_one_locale_free_rule():
    field = Field("x", "integer", 0, 9)
    cells = [
        " 1 ",
        "+2",
        "3.0",
        "4e0",
        "1,5",
        "five",
        "",
        "NaN",
        "null",
        None,
        "1e400",
        "-inf",
        "-7",
        "1_0",
        "0x1",
        "1\0",
    ]
    codes, log = one(field, cells)
    assert codes == [1, 2, 3, 4, 10, 10, 10, 10, 10, 10, 9, 0, 0, 10, 10, 10]
    assert (log.missing, log.clipped, log.unparseable) == (4, 3, 5)


def test_numbers_in_frames_are_clipped_and_holes_are_missing():
    codes, log = one(Field("x", "integer", 0, 9), np.array([1.0, np.nan, np.inf, -np.inf, 1e300]))
    assert codes == [1, 10, 9, 0, 9]
    assert (log.missing, log.clipped, log.unparseable) == (1, 3, 0)


def test_a_required_field_takes_its_default_or_the_first_category():
    assert one(Field("x", "integer", 0, 9, required=True), ["", "x", "4"])[0] == [0, 0, 4]
    assert one(Field("x", "integer", 0, 9, required=True, default=5), ["", "x", "4"])[0] == [5, 5, 4]
    assert one(Field("x", "string", enum=("a", "b"), required=True, default="b"), ["", "a", "?"])[0] == [1, 0, 1]
    assert one(Field("x", "boolean", required=True, default=True), ["", "no"])[0] == [1, 0]


def test_unknown_categories_go_to_other_then_default_then_missing():
    cells = ["a", " b ", "zebra", "", "null", "a\0", None]
    codes, log = one(Field("x", "string", enum=("a", "b"), other="rest"), cells)
    assert codes == [0, 1, 2, 3, 3, 3, 3]
    assert (log.unknown, log.missing) == (1, 4)
    assert one(Field("x", "string", enum=("a", "b"), other="b"), cells)[0] == [0, 1, 1, 2, 2, 2, 2]
    assert one(Field("x", "string", enum=("a", "b"), default="a"), cells)[0] == [0, 1, 0, 2, 2, 2, 2]
    assert one(Field("x", "string", enum=("a", "b")), cells)[0] == [0, 1, 2, 2, 2, 2, 2]


def test_categories_may_be_numbers_in_the_frame():
    field = Field("x", "string", enum=("1", "2"))
    assert one(field, [1, 2, None])[0] == [0, 1, 2]
    assert one(field, np.array([1.0, 2.0, np.nan]))[0] == [0, 1, 2]
    assert one(field, ["1", 2, 2.0, None, (3,)])[0] == [0, 1, 1, 2, 2]


def test_flags_are_read_in_any_case():
    cells = ["true", "FALSE", "Yes", "no", "1", "0", " True ", "maybe", ""]
    codes, log = one(Field("x", "boolean"), cells)
    assert codes == [1, 0, 1, 0, 1, 0, 1, 2, 2]
    assert (log.unparseable, log.missing) == (1, 1)
    assert one(Field("x", "boolean"), [True, False, None])[0] == [1, 0, 2]
    assert one(Field("x", "boolean"), [1, 0, 7])[0] == [1, 0, 2]
    assert one(Field("x", "boolean"), ["t", "F", "y", "N", "x"])[0] == [1, 0, 1, 0, 2]  # PostgreSQL writes t and f


def test_dates_and_times_are_iso_8601():
    days = Field("x", "date", date(2020, 1, 1), date(2020, 1, 5))
    cells = [
        "2020-01-02",
        " 20200103 ",
        "2020-01-04T10:00:00",
        "3.1.2020",
        "2020-02-30",
        "1999-01-01",
        "9999-12-31",
        "",
    ]
    codes, log = one(days, cells)
    assert codes == [1, 2, 3, 5, 5, 0, 4, 5]
    assert (log.unparseable, log.clipped, log.missing) == (2, 2, 1)
    assert one(days, [date(2020, 1, 2), None])[0] == [1, 5]
    assert one(days, [datetime(2020, 1, 2, 23), None])[0] == [1, 5]
    assert one(days, [3, 4])[0] == [5, 5]
    hours = Field("x", "datetime", datetime(2020, 1, 1), datetime(2020, 1, 1, 23, 59, 59), bins=24)
    cells = [
        "2020-01-01T03:00:00",
        "2020-01-01 04:59:59",
        "2020-01-01T05:00:00Z",
        "2020-01-01T08:00:00+02:00",
        "2020-01-01",
    ]
    assert one(hours, cells)[0] == [3, 4, 5, 6, 0]
    assert one(hours, ["2020-01-01T07:00:00.5", "noon", None])[0] == [7, 24, 24]


def test_declared_missing_values_hold_for_text_and_numbers():
    assert one(Field("x", "integer", -99, 9, bins=3), ["-99", "1", " -99 "], missing_values=("", "-99"))[0] == [3, 2, 3]
    assert one(Field("x", "integer", -99, 9, bins=3), [-99, 1], missing_values=("", "-99"))[0] == [3, 2]
    assert one(Field("x", "string", enum=("a",), other="o"), ["a", "?"], missing_values=("?",))[0] == [0, 2]


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


def test_values_are_uniform_inside_their_bin_at_the_declared_precision():
    codec = Codec(Schema((Field("x", "number", 0, 1, bins=2, decimals=1, required=True),)))
    values = codec.decode(np.zeros((20_000, 1), dtype=int), rng())["x"].to_numpy()
    found, counts = np.unique(values, return_counts=True)
    assert found.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert np.all(np.abs(counts - 4000) < 5 * np.sqrt(4000))


def test_codes_outside_the_domain_are_refused():
    codec = Codec(Schema((Field("x", "boolean"),)))
    for codes in ([[3]], [[-1]], [[0, 0]], [[0.5]]):
        with pytest.raises(ParameterError):
            codec.decode(np.array(codes), rng())


def test_the_wildest_cells_raise_nothing():
    wild = [
        "\ud800",
        "a" * 5000,
        "\u0661",
        "-",
        "e",
        "\n",
        "١",
        b"\xff",
        object(),
        {},
        [1],
        10**400,
        float("nan"),
        True,
        date(1, 1, 1),
    ]
    columns = {field["name"]: wild for field in PEOPLE["fields"]}
    codes, _ = Codec(Schema.from_dict(PEOPLE)).encode(columns)
    assert codes.shape == (len(wild), 8)


RULED = {
    "fields": [
        *({"name": f"flag{j}", "type": "boolean"} for j in range(5)),
        {"name": "start", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2024-12-31"}},
        {"name": "end", "type": "date", "constraints": {"minimum": "2021-01-01", "maximum": "2025-12-31"}},
        {"name": "gross", "type": "number", "constraints": {"minimum": 0, "maximum": 1000}, "covey": {"decimals": 2}},
        {"name": "net", "type": "integer", "constraints": {"minimum": -10, "maximum": 1500}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99, "required": True}},
        {"name": "job", "type": "string", "constraints": {"enum": ["child", "cook", "king"], "required": True}},
    ],
    "covey": {
        "rules": [
            {"at_most": {"fields": [f"flag{j}" for j in range(5)], "limit": 2}},
            {"less_equal": {"left": "start", "right": "end"}},
            {"less_equal": {"left": "net", "right": "gross"}},
            {"linear": {"coefficients": {"gross": 1, "net": 0.5, "age": -3}, "maximum": 400}},
            {"forbid": {"age": {"maximum": 15}, "job": ["cook", "king"]}},
            {"forbid": {"age": {"minimum": 18}, "job": "child"}},
            {"forbid": {"job": "king", "flag0": [True, None]}},
        ]
    },
}


@given(st.integers(0, 2**32), st.sets(st.integers(0, 6)))
@settings(max_examples=40, deadline=None)
def test_rules_hold_in_every_output(seed, kept):
    data = {**RULED, "covey": {"rules": [RULED["covey"]["rules"][j] for j in sorted(kept)]}}
    schema = Schema.from_dict(data)
    codec = Codec(schema)
    codes = some_codes(codec, 200, seed)
    columns = codec.decode(codes, rng(seed))
    assert schema.validate(columns) == []
    repaired = codec.repair(codes, rng(seed))
    assert schema.validate(codec.decode(repaired, rng(seed + 1))) == []
    raw = Codec(Schema.from_dict({**RULED, "covey": {}})).decode(codes, rng(seed))
    assert schema.validate(codec.repair(raw, rng(seed))) == []


def test_validation_sees_each_broken_rule_and_rows_that_obey_are_left_alone():
    schema = Schema.from_dict(RULED)
    codec = Codec(schema)
    free = Codec(Schema.from_dict({**RULED, "covey": {}}))
    raw = free.decode(some_codes(free, 2000, 1), rng())
    assert len(schema.validate(raw)) == 7
    good = codec.repair(raw, rng())
    again = codec.repair(good, rng(9))
    assert all(good[name].equals(again[name]) for name in good)


def test_pairs_are_ordered_inside_their_bins_where_these_have_room():
    fields = tuple(Field(n, "integer", 0, 99, bins=10, required=True) for n in "ab")
    rule = Schema.from_dict(
        {"fields": [f.to_dict() for f in fields], "covey": {"rules": [{"less_equal": {"left": "a", "right": "b"}}]}}
    )
    codec = Codec(rule)
    codes = np.sort(some_codes(codec, 2000, 3), axis=1)
    assert np.array_equal(codec.encode(codec.decode(codes, rng()))[0], codes)


def test_rules_that_contradict_each_other_are_a_parameter_error():
    with pytest.raises(ParameterError, match="contradict"):
        Codec(
            Schema.from_dict(
                {
                    "fields": [
                        {"name": "a", "type": "boolean", "constraints": {"required": True}},
                        {"name": "b", "type": "boolean"},
                    ],
                    "covey": {"rules": [{"forbid": {"a": True}}, {"forbid": {"a": False}}]},
                }
            )
        )


def test_validation_names_what_is_wrong():
    schema = Schema.from_dict(PEOPLE)
    codec = Codec(schema)
    good = codec.decode(some_codes(codec, 50, 0), rng())
    assert schema.validate(good) == []
    short = {name: series for name, series in good.items() if name != "age"}
    assert schema.validate(short) == ["column 'age' is missing"]
    for name, value, word in [
        ("age", 300, "clipped"),
        ("age", "old", "unparseable"),
        ("sex", None, "missing"),
        ("job", "king", "unknown"),
        ("dose", 0.123, "precision"),
        ("site", "south", "constant"),
    ]:
        wrong = {**good, name: [value] * 50}
        assert any(name in line and word in line for line in schema.validate(wrong)), (name, word)


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


def test_a_forbidden_value_between_two_steps_forbids_nothing():
    data = {"fields": [{"name": "x", "type": "number", "covey": {"bins": [0, 1], "decimals": 1}}]}
    data["covey"] = {"rules": [{"forbid": {"x": [0.25, 0.3]}}]}
    schema = Schema.from_dict(data)
    assert schema.validate({"x": [0.2]}) == []
    assert len(schema.validate({"x": [0.3]})) == 1


def test_equal_pairs_and_sums_are_possible():
    fields = [
        {"name": n, "type": "integer", "constraints": {"minimum": 0, "maximum": 50, "required": True}} for n in "abc"
    ]
    rules = [{"less_equal": {"left": "a", "right": "b"}}, {"less_equal": {"left": "b", "right": "a"}}]
    sums = [{"linear": {"coefficients": {"a": s, "b": s, "c": s}, "maximum": 60 * s}} for s in (1, -1)]
    for chosen in (rules, sums):
        schema = Schema.from_dict({"fields": fields, "covey": {"rules": chosen}})
        codec = Codec(schema)
        assert schema.validate(codec.decode(some_codes(codec, 500, 2), rng())) == []


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


# One cell must not decide how the others are read.

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
FOREIGN = [
    None,
    "x",
    True,
    2,
    2.5,
    Decimal("2.125"),
    date(2020, 1, 5),
    datetime(2020, 1, 5, tzinfo=UTC),
    b"a",
    "5",
    float("inf"),
]
READERS = [
    Field("x", "integer", 0, 5),
    Field("x", "number", -1.0, 5.0, decimals=3),
    Field("x", "date", "2020-01-01", "2020-01-10"),
    Field("x", "datetime", "1960-01-01T00:00:00", "2020-01-10T00:00:00", bins=1000),
    Field("x", "boolean"),
    Field(
        "x",
        "string",
        other="else",
        enum=("1", "2", "2.5", "a", "0.00001", "true", "2020-01-02", "2020-01-02 20:30:00", "0.1"),
    ),
]


def wrapped(values):
    """The same cells in every kind of table that holds them as they are."""
    yield "list", values
    yield "objects", pd.Series(values, dtype=object)
    yield "guessed by pandas", pd.Series(values)
    if len({type(value) for value in values}) == 1:  # else 1 and True are one category
        yield "category", pd.Series(values, dtype=object).astype("category")
    with suppress(TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        column = pl.Series(values, strict=True)
        if [(v, v is True) for v in column.to_list()] == [(v, v is True) for v in values]:
            yield "guessed by polars", column


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("field", READERS, ids=lambda field: field.type)
@pytest.mark.parametrize("kind", KINDS)
def test_one_cell_does_not_change_how_others_are_read(kind, field):
    """Frames guess the type of a column from all of its cells, so a neighbouring table can have other types."""
    codec = Codec(Schema((field,)))

    def codes(column):
        frame = column if isinstance(column, list) else column.to_frame("x")
        return codec.encode({"x": frame} if isinstance(column, list) else frame)[0][:, 0].tolist()

    alone = [codes([cell])[0] for cell in KINDS[kind]]
    for cell in [*FOREIGN, KINDS[kind][0]]:
        for place in (0, 3):
            values = list(KINDS[kind])
            values[place] = cell
            wanted = [codes([cell])[0] if j == place else alone[j] for j in range(4)]
            for name, column in wrapped(values):
                assert codes(column) == wanted, (name, cell)
