"""Derived columns: computed, never measured, exact in every row."""

import json
from operator import attrgetter

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import CoveyWarning, ParameterError
from covey.release.bundle import write_bundle
from covey.release.verify import verify_bundle
from covey.tables.codec import Codec
from covey.tables.derived_fields import Derived
from covey.tables.fields import Field
from covey.tables.repair import derived_column
from covey.tables.schema import Schema
from tests.entries import entry, frame_of

AREA = entry("area", "string", enum=["north", "south"], required=True)
PAY = {"name": "pay", "type": "integer", "constraints": {"minimum": 0, "maximum": 999}, "covey": {"special": ["N"]}}
BORN = {"name": "born", "type": "date", "constraints": {"minimum": "1920-01-01", "maximum": "2019-12-31"}}
SEEN = {"name": "seen", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2024-12-31"}}
DENSITY = entry("density", "number", derived={"from": ["area"], "map": {"north": 12.5, "south": 300}})
BANDS = {"from": "pay", "map": {"N": "none"}, "edges": [0, 100, 500, 1000], "labels": ["a", "b", "c"]}
BAND = entry("band", "string", derived=BANDS)
AGE = {"name": "age", "type": "integer", "covey": {"derived": {"expression": "years(born, seen)"}}}
OLD = {"name": "old", "type": "boolean", "covey": {"derived": {"expression": "age >= 65"}}}
SHARE = {"name": "share", "type": "number", "covey": {"decimals": 2, "derived": {"expression": "pay / (density + 1)"}}}
FIELDS = [OLD, AGE, DENSITY, BAND, AREA, PAY, BORN, SEEN, SHARE]


def people(n=400, seed=0):
    generator = np.random.default_rng(seed)
    pay = generator.integers(0, 1000, n)
    return frame_of(
        area=generator.choice(["north", "south"], n),
        pay=np.where(generator.random(n) < 0.2, "N", pay.astype(str)),
        born=np.datetime64("1925-01-01") + generator.integers(0, 34000, n),
        seen=np.datetime64("2020-01-01") + generator.integers(0, 1800, n),
    )


def by_hand(row):
    (born, seen), day = (row["born"], row["seen"]), attrgetter("month", "day")
    age = seen.year - born.year - (day(seen) < day(born))
    density = {"north": 12.5, "south": 300.0}[row["area"]]
    pay = None if row["pay"] == "N" or row["pay"] is None else int(row["pay"])
    band = "none" if row["pay"] == "N" else None if pay is None else "a" if pay < 100 else "b" if pay < 500 else "c"
    return age, age >= 65, density, band, None if pay is None else round(pay / (density + 1), 2)


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_a_release_computes_them_in_every_row_and_never_reads_them(few_steps):
    schema = Schema.from_dict({"fields": FIELDS})
    table = people()  # has none of the derived columns
    synth = covey.PrivateSynthesizer(1.0, schema=schema, seed=1).fit(table)
    rows = synth.sample(300)
    assert set(rows.columns) == {f["name"] for f in FIELDS}
    for row in rows.iter_rows(named=True):
        if row["born"] is None or row["seen"] is None:
            assert row["age"] is None
            assert row["old"] is None
        else:
            assert (row["age"], row["old"]) == by_hand(row)[:2]
            assert (row["density"], row["band"]) == by_hand(row)[2:4]
            share = by_hand(row)[4]
            assert row["share"] == (None if share is None else pytest.approx(share))
    assert schema.validate(rows) == []
    # What the true table holds in their place changes nothing.
    wrong = table.with_columns(density=pl.lit(-1.0), old=pl.lit(True))
    again = covey.PrivateSynthesizer(1.0, schema=schema, seed=1).fit(wrong).sample(300)
    assert again.equals(rows)


def test_a_table_that_departs_from_the_function_is_told_to_its_owner():
    schema = Schema.from_dict({"fields": [AREA, DENSITY]})
    table = pl.DataFrame({"area": ["north", "south", "south"], "density": [12.5, 300, 12.5]})
    assert schema.validate(table) == ["column 'density' is not what it is derived from in 1 row"]


def test_a_file_beside_the_schema_is_read_into_it(tmp_path):
    (tmp_path / "density.csv").write_text("note,area,density\nx,north,12.5\ny,south,300\n", encoding="utf-8")
    field = {"name": "density", "type": "number", "covey": {"derived": {"from": ["area"], "table": "density.csv"}}}
    given = Schema.from_dict({"fields": [AREA, DENSITY]})
    document = {"fields": [AREA, field]}
    (tmp_path / "schema.json").write_text(json.dumps(document), encoding="utf-8")
    with pytest.warns(CoveyWarning, match="2 rows of that file become public"):
        read = Schema.load(tmp_path / "schema.json")
    codes = np.array([[0], [1]])
    a, b = (Codec(s).decode(codes, np.random.default_rng(0))["density"] for s in (given, read))
    assert a.to_list() == b.to_list() == [12.5, 300.0]
    read.save(tmp_path / "again.json")  # where the file lies, it stays named, so that whoever loads it is told again
    assert json.loads((tmp_path / "again.json").read_text())["fields"][1]["covey"] == field["covey"]
    with pytest.warns(CoveyWarning, match="become public"):
        assert Schema.load(tmp_path / "again.json") == read
    (tmp_path / "elsewhere").mkdir()
    read.save(tmp_path / "elsewhere" / "schema.json")  # elsewhere the list goes along
    assert Schema.load(tmp_path / "elsewhere" / "schema.json") == read
    with pytest.raises(ParameterError, match="Load the schema from its own file"):
        Schema.from_dict(document)


def test_names_that_Python_would_write_in_another_way_are_those_of_the_table():
    """Python reads ﬁ as fi, which is another column or none: a formula of it ended in a KeyError."""
    both = Derived.from_dict({"expression": "ﬁ * 10 + fi"}, "sum")
    assert both.bases == ("ﬁ", "fi")
    assert both.evaluate({"ﬁ": np.array([1.0]), "fi": np.array([2.0])}).tolist() == [12.0]


def derived_by(expression, kind="number"):
    return Schema.from_dict({"fields": [{**PAY, "covey": {}}, entry("x", kind, derived={"expression": expression})]})


ENDLESS = [
    "pay + 10**400",
    "pay + 9**9**9**9",
    "pay * 2.0**5000",
    "min(pay, 10**309)",
    "pay + 1 / 0",
    "pay + 5 % 0",
    "pay - -(10**400)",
]


@pytest.mark.parametrize("expression", ENDLESS)
def test_what_no_float_holds_is_refused_when_a_schema_is_read(expression):
    """Integers of Python grow without end, and fail where they meet a column: after the charge, in the first synthetic row."""
    for words in ("derived", "expected"):
        with pytest.raises(
            ParameterError, match=r"field 'x' is derived by .*, which is no number\. Use numbers below 1e307"
        ):
            Schema.from_dict(
                {"fields": [{**PAY, "covey": {}}, entry("x", "number", 0, 9, **{words: {"expression": expression}})]}
            )


@pytest.mark.parametrize(
    "expression", ["-" * 300 + "pay", "+".join(["pay"] * 300), "(" * 9000 + "pay", "pay + " + "9" * 9999, 7]
)
def test_no_expression_is_long_or_deep_enough_to_end_anything(expression):
    with pytest.raises(ParameterError, match=r"nested too deeply|is not an expression|characters"):
        derived_by(expression)


EVERYWHERE = [
    "pay / 0",
    "pay % 0",
    "pay // 0",
    "pay ** 400",
    "(-pay) ** 0.5",
    "pay * 1e307 * 99",
    "year(pay * 1e300)",
    "pay * 1e18",
]
MOMENTS = [
    "month(pay * -1e300)",
    "days(pay, pay * 1e300)",
    "hour(pay * 1e307 * pay)",
    "years(pay * -1e300, pay)",
    "--pay",
    "9 > pay",
]


@pytest.mark.parametrize("kind", ["integer", "number", "date", "datetime", "boolean"])
def test_what_may_be_derived_is_computed_whatever_rows_hold(kind):
    for expression in EVERYWHERE + MOMENTS:
        codec = Codec(derived_by(expression, kind))
        codes = np.arange(codec.domain_sizes[0])[:, None]
        assert len(codec.decode(codes, np.random.default_rng(0))["x"]) == len(codes)


def test_constants_of_expressions_are_floats_as_columns_are():
    found = Derived.from_dict({"expression": "pay * 2**62 * 2**62 + 7 // 2"}, "x").evaluate(
        {"pay": np.array([1.0, 0.0])}
    )
    assert found.tolist() == [2.0**124 + 3, 3.0]


def test_division_by_zero_and_overflow_are_missing():
    field = {"name": "d", "type": "number", "covey": {"derived": {"expression": "pay ** 40 / (pay - 1)"}}}
    schema = Schema.from_dict({"fields": [{**PAY, "covey": {}}, field]})
    found = Codec(schema).decode(np.array([[19], [20]]), np.random.default_rng(0))
    assert found["d"].to_list() == [None, None]


@pytest.mark.parametrize(("words", "cells"), [(("0", "1"), [0, 1, None]), (("No", "Yes"), ["No", "Yes", None])])
def test_a_yes_no_column_that_follows_from_another_keeps_its_words(words, cells):
    derived = Derived.from_dict({"from": ["age"], "map": {"1": words[0], "2": words[1]}}, "ill")
    field = Field("ill", "boolean", flags=words, derived=derived)
    assert derived_column(field, {"age": pl.Series(["1", "2", "3"])}).to_list() == cells


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
@pytest.mark.parametrize("kind", ["date", "datetime"])
def test_moments_beyond_the_calendar_are_missing_and_others_are_verified(few_steps, tmp_path, kind):
    """What writes them has no year 10000, and panicked after the charge; files of other times failed their own verification."""
    schema = Schema.from_dict({"fields": [PAY, entry("end", kind, derived={"expression": "(pay - 100) * 1e9"})]})
    release = covey.PrivateSynthesizer(1.0, schema=schema, seed=1).fit(frame_of(pay=np.arange(500))).release(50)
    write_bundle(release, tmp_path / "bundle")
    verify_bundle(tmp_path / "bundle")
    found = derived_column(schema["end"], {"pay": pl.Series([0, 100, 353, 354, 999])})
    assert [None if day is None else day.year for day in found.to_list()] == [None, 1970, 9987, None, None]
