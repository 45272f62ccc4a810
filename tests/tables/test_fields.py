"""Public values are read in their type or not at all."""

from dataclasses import replace
from datetime import date, datetime, time

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import ParameterError
from covey.tables.attributes import ColumnLog
from covey.tables.codec import Codec
from covey.tables.fields import typed
from covey.tables.schema import Field, Schema
from tests.tables.examples import one, rng

CODES = [f"{chapter}{i:02d}" for chapter in "ABCDEFGH" for i in range(40)]
CODE = {"name": "code", "type": "string", "constraints": {"enum": CODES}, "covey": {"levels": 1}}
CHAPTERS = {"from": "code", "map": {code: code[0] for code in CODES[:-1]}}
KIND = {"name": "chapter", "type": "string", "covey": {"derived": CHAPTERS}}
SEX = {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}}

INCOME = Field("x", "number", -10, 100, bins=11, decimals=1, special=("N", "-99", "<5"))


@pytest.mark.parametrize(
    ("type_", "given", "read"),
    [
        ("boolean", True, True),
        ("boolean", 1, None),
        ("integer", 3.0, 3),
        ("integer", 3.5, None),
        ("integer", True, None),
        ("number", float("nan"), None),
        ("number", 2, 2),
        ("string", 5, None),
        ("date", "2020-02-29", date(2020, 2, 29)),
        ("date", "2021-02-29", None),
        ("datetime", "2020-01-01T10:00:00+02:00", datetime(2020, 1, 1, 8)),
        ("time", "10:30", time(10, 30)),
    ],
)
def test_values_are_read_in_their_type_or_not_at_all(type_, given, read):
    found = typed(type_, given)
    assert found == read
    assert type(found) is type(read)


def test_bins_by_default_count_edges_and_small_ranges():
    assert Field("x", "integer", 0, 9).categories == 11
    assert Field("x", "integer", 0, 100).categories == 21
    assert Field("x", "integer", 0, 100, bins=7, required=True).categories == 7
    assert Field("x", "number", 0, 1, decimals=1).categories == 12
    assert Field("x", "date", date(2020, 1, 1), date(2020, 1, 3)).categories == 4
    edges = Field("x", "integer", bins=(0, 18, 65, 120)).axis
    assert edges.starts.tolist() == [0, 18, 65]
    assert edges.ends.tolist() == [17, 64, 120]
    assert Field("x", "number", 0.29, 0.31, decimals=2).axis.low == 29  # not 28, though 0.29 · 100 < 29 as floats


def test_a_text_is_no_list_of_categories():
    for wrong in ("abc", {"a", "b"}, 3):
        with pytest.raises(ParameterError, match="Give a list of texts"):
            Field("w", "string", enum=wrong)
    assert Field("w", "string", enum=["a", "b"]) == Field("w", "string", enum=("a", "b"))


def test_an_incomplete_field_waits_unconfirmed_and_cannot_be_confirmed():
    schema = Schema((Field("x", "number", confirmed=False),))
    with pytest.raises(ParameterError, match="no bounds"):
        schema.confirm()


def test_flags_are_written_and_read_in_their_own_words():
    entry = {"name": "churn", "type": "boolean", "falseValues": ["No"], "trueValues": ["Yes"]}
    field = Field.from_dict(entry)
    assert field.to_dict() == entry
    assert (field.labels, field.written) == (("No", "Yes"), "string")
    assert (field.value("Yes", "x"), field.value(False, "x")) == (True, False)
    assert replace(field, flags=("0", "1")).written == "integer"
    for wrong in ({"falseValues": None}, {"trueValues": ["no"]}, {"trueValues": ["J", "Y"]}, {"type": "string"}):
        with pytest.raises(ParameterError, match="trueValues"):
            Field.from_dict({**entry, **wrong})


def test_groups_are_first_letters_or_a_derived_field():
    groups = Codec(Schema.from_dict({"fields": [CODE, SEX]})).groups("code")
    assert groups == (*np.repeat(np.arange(8), 40).tolist(), 8)  # missing by itself
    by_field = {**CODE, "covey": {"levels": "chapter"}}
    derived = Codec(Schema.from_dict({"fields": [by_field, KIND, SEX]})).groups("code")
    assert derived[:319] == groups[:319]
    assert len({*derived[:319], derived[319], derived[320]}) == 10  # what the list leaves out, and missing, alone
    assert Schema.from_dict({"fields": [{**CODE, "covey": {"levels": "icd10"}}]})["code"].levels == 3
    assert Codec(Schema.from_dict({"fields": [SEX, CODE]})).groups("sex") == ()


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_groups_of_many_codes_come_out_closer_with_levels():
    generator = np.random.default_rng(2)
    share = np.repeat(generator.dirichlet(np.full(8, 1.0)), 40) * generator.dirichlet(np.full(40, 0.3), 8).ravel()
    code = generator.choice(320, 4000, p=share)
    sex = np.where(generator.random(4000) < 0.3 + 0.05 * (code // 40), "f", "m")
    table = pl.DataFrame({"code": np.array(CODES)[code], "sex": sex})
    true = np.bincount(code // 40, minlength=8) / 4000

    def error(field, seed):
        schema = Schema.from_dict({"fields": [field, SEX]})
        synth = covey.PrivateSynthesizer(0.3, 1e-9, schema=schema, composition="gaussian", seed=seed)
        first = synth.fit(table).sample(4000)["code"].drop_nulls().str.slice(0, 1).to_list()
        found = np.array([first.count(letter) for letter in "ABCDEFGH"]) / 4000
        return np.abs(found - true).sum() / 2

    flat = {**CODE, "covey": {}}
    plain, grouped = (np.mean([error(field, seed) for seed in range(2)]) for field in (flat, CODE))
    assert grouped < 0.75 * plain


TWO, INCOMPLETE = ("a", "b"), ["", "x", "4"]
DIGIT, COARSE, FLAG = Field("x", "integer", 0, 9), Field("x", "integer", -99, 9, bins=3), Field("x", "boolean")
SOME = ["a", " b ", "zebra", "", "null", "a\0", None]
NUMBERED = Field("x", "string", enum=("1", "2"))
DAYS = Field("x", "date", date(2020, 1, 1), date(2020, 1, 5))
HOURS = Field("x", "datetime", datetime(2020, 1, 1), datetime(2020, 1, 1, 23, 59, 59), bins=24)
CLOCK = Field("x", "time", "08:00", "19:59:59", bins=12)
SPECIALS = {"5": 1, "N": 11, " N ": 11, "-99": 12, "-99.0": 12, "<5": 13, "n": 14, "": 14, None: 14, "-9.5": 0}
SPECIALS |= {"100": 10, "4e3": 10, "'<5": 14, "'-99": 12}
ISO = ["2020-01-02", " 20200103 ", "2020-01-04T10:00:00", "3.1.2020", "2020-02-30", "1999-01-01", "9999-12-31", ""]
MOMENTS = [f"2020-01-01{clock}" for clock in ("T03:00:00", " 04:59:59", "T05:00:00Z", "T08:00:00+02:00", "")]
TIMES = ["8:05", "08:05:30", "19:59:59.7", "24:00", "7:00", "23:00", "9h", "2024-03-19 10:15:00", None]
WORDS = ["true", "FALSE", "Yes", "no", "1", "0", " True ", "maybe", ""]
# A field, cells, the codes that are read, and what is counted of them.
READ = [
    (DIGIT, np.array([1.0, np.nan, np.inf, -np.inf, 1e300]), [1, 10, 9, 0, 9], {"missing": 1, "clipped": 3}),
    # A required field takes its default or the first category.
    (replace(DIGIT, required=True), INCOMPLETE, [0, 0, 4], {"missing": 1, "unparseable": 1}),
    (replace(DIGIT, required=True, default=5), INCOMPLETE, [5, 5, 4], {"missing": 1, "unparseable": 1}),
    (Field("x", "string", enum=TWO, required=True, default="b"), ["", "?"], [1, 1], {"missing": 1, "unknown": 1}),
    (Field("x", "boolean", required=True, default=True), ["", "no"], [1, 0], {"missing": 1}),
    # Unknown categories go to other, then to the default, then to missing.
    (Field("x", "string", enum=TWO, other="rest"), SOME, [0, 1, 2, 3, 3, 3, 3], {"missing": 4, "unknown": 1}),
    (Field("x", "string", enum=TWO, other="b"), SOME, [0, 1, 1, 2, 2, 2, 2], {"missing": 4, "unknown": 1}),
    (Field("x", "string", enum=TWO, default="a"), SOME, [0, 1, 0, 2, 2, 2, 2], {"missing": 4, "unknown": 1}),
    (Field("x", "string", enum=TWO), SOME, [0, 1, 2, 2, 2, 2, 2], {"missing": 4, "unknown": 1}),
    # Categories may be numbers in the frame.
    (NUMBERED, [1, 2, None], [0, 1, 2], {"missing": 1}),
    (NUMBERED, np.array([1.0, 2.0, np.nan]), [0, 1, 2], {"missing": 1}),
    (NUMBERED, ["1", 2, 2.0, None, (3,)], [0, 1, 1, 2, 2], {"missing": 1, "unknown": 1}),
    (FLAG, WORDS, [1, 0, 1, 0, 1, 0, 1, 2, 2], {"missing": 1, "unparseable": 1}),
    (FLAG, [True, False, None], [1, 0, 2], {"missing": 1}),
    (FLAG, [1, 0, 7], [1, 0, 2], {"unparseable": 1}),
    (FLAG, ["t", "F", "y", "N", "x"], [1, 0, 1, 0, 2], {"unparseable": 1}),  # PostgreSQL writes t and f
    # Special values are categories behind the bins.
    (INCOME, [*SPECIALS], [*SPECIALS.values()], {"missing": 2, "clipped": 1, "unparseable": 2}),
    (INCOME, np.array([-99.0, 5, np.nan, -98]), [12, 1, 14, 0], {"missing": 1, "clipped": 1}),
    (INCOME, [-99, "N", 5.0], [12, 11, 1], {}),
    # Dates and times are ISO 8601.
    (DAYS, ISO, [1, 2, 3, 5, 5, 0, 4, 5], {"missing": 1, "clipped": 2, "unparseable": 2}),
    (DAYS, [date(2020, 1, 2), None], [1, 5], {"missing": 1}),
    (DAYS, [datetime(2020, 1, 2, 23), None], [1, 5], {"missing": 1}),
    (DAYS, [3, 4], [5, 5], {"unparseable": 2}),
    (HOURS, MOMENTS, [3, 4, 5, 6, 0], {}),
    (HOURS, ["2020-01-01T07:00:00.5", "noon", None], [7, 24, 24], {"missing": 1, "unparseable": 1}),
    (CLOCK, TIMES, [0, 0, 11, 12, 0, 11, 12, 2, 12], {"missing": 1, "clipped": 2, "unparseable": 2}),
    (CLOCK, [time(9), time(23), None], [1, 11, 12], {"missing": 1, "clipped": 1}),
    (CLOCK, pl.Series([time(9), None]), [1, 12], {"missing": 1}),
]
# With declared missing values, for text and numbers; a special value wins over them.
READ_MISSING = [
    (COARSE, ["-99", "1", " -99 "], ("", "-99"), [3, 2, 3]),
    (COARSE, [-99, 1], ("", "-99"), [3, 2]),
    (Field("x", "string", enum=("a",), other="o"), ["a", "?"], ("?",), [0, 2]),
    (INCOME, ["-99", "N", "NA"], ("", "-99", "N", "NA"), [12, 11, 14]),
]


def test_cells_are_read_by_one_rule_and_what_is_not_taken_as_it_stands_is_counted():
    for field, cells, codes, counted in READ:
        assert one(field, cells) == (codes, ColumnLog(**counted)), (field, cells)
        assert Field.from_dict(field.to_dict()) == field
    for field, cells, missing, codes in READ_MISSING:
        assert one(field, cells, missing_values=missing)[0] == codes, (field, cells)
    assert Codec(Schema((INCOME,))).domain_sizes == (15,)


def test_values_are_uniform_inside_their_bin_at_the_declared_precision():
    codec = Codec(Schema((Field("x", "number", 0, 1, bins=2, decimals=1, required=True),)))
    values = codec.decode(np.zeros((20_000, 1), dtype=int), rng())["x"].to_numpy()
    found, counts = np.unique(values, return_counts=True)
    assert found.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert np.all(np.abs(counts - 4000) < 5 * np.sqrt(4000))
