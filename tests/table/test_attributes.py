from dataclasses import replace
from datetime import time

import numpy as np
import polars as pl
import pytest

from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.schema import Field, Schema
from covey.table.sources import write_csv, write_parquet
from tests.table.examples import one, rng, some_codes


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


def test_declared_missing_values_hold_for_text_and_numbers():
    assert one(Field("x", "integer", -99, 9, bins=3), ["-99", "1", " -99 "], missing_values=("", "-99"))[0] == [3, 2, 3]
    assert one(Field("x", "integer", -99, 9, bins=3), [-99, 1], missing_values=("", "-99"))[0] == [3, 2]
    assert one(Field("x", "string", enum=("a",), other="o"), ["a", "?"], missing_values=("?",))[0] == [0, 2]


def test_values_are_uniform_inside_their_bin_at_the_declared_precision():
    codec = Codec(Schema((Field("x", "number", 0, 1, bins=2, decimals=1, required=True),)))
    values = codec.decode(np.zeros((20_000, 1), dtype=int), rng())["x"].to_numpy()
    found, counts = np.unique(values, return_counts=True)
    assert found.tolist() == [0.0, 0.1, 0.2, 0.3, 0.4]
    assert np.all(np.abs(counts - 4000) < 5 * np.sqrt(4000))


# Special values: words among numbers, each a category beside the bins.

INCOME = Field("x", "number", -10, 100, bins=11, decimals=1, special=("N", "-99", "<5"))


def test_special_values_are_categories_behind_the_bins():
    cells = ["5", "N", " N ", "-99", "-99.0", "<5", "n", "", None, "-9.5", "100", "4e3", "'<5", "'-99"]
    codes, log = one(INCOME, cells)
    assert Codec(Schema((INCOME,))).domain_sizes == (15,)
    assert codes == [1, 11, 11, 12, 12, 13, 14, 14, 14, 0, 10, 10, 14, 12]
    assert (log.missing, log.clipped, log.unparseable, log.unknown) == (2, 1, 2, 0)
    assert one(INCOME, np.array([-99.0, 5, np.nan, -98]))[0] == [12, 1, 14, 0]
    assert one(INCOME, [-99, "N", 5.0])[0] == [12, 11, 1]


def test_a_special_value_wins_over_missing_values():
    assert one(INCOME, ["-99", "N", "NA"], missing_values=("", "-99", "N", "NA"))[0] == [12, 11, 14]


@pytest.mark.parametrize("required", [True, False])
def test_special_values_survive_files(tmp_path, required):
    fields = (
        replace(INCOME, required=required),
        Field("d", "date", "2024-01-01", "2024-12-31", bins=3, special=("never", "=x")),
        Field("t", "time", "00:00", "23:59:59", bins=24, special=("night",)),
        Field("i", "integer", -5, 5, special=("-",)),
    )
    codec = Codec(Schema(fields))
    codes = some_codes(codec, 300, 3)
    columns = codec.decode(codes, rng())
    assert all(series.dtype == pl.String for series in columns.values())
    write_csv(columns, tmp_path / "t.csv")
    write_parquet(columns, tmp_path / "t.parquet")
    for table in (columns, tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert np.array_equal(codec.encode(table)[0], codes)
        assert Schema(fields).validate(table) == []
    assert {"N", "-99", "<5"} <= set(columns["x"].to_list())
    assert "'-" not in "".join(word for word in (tmp_path / "t.csv").read_text().split(",") if word[2:].isdigit())


def test_special_values_obey_rules_about_numbers():
    rules = [{"less_equal": {"left": "a", "right": "b"}}, {"forbid": {"a": {"minimum": 5}, "c": True}}]
    rules += [{"linear": {"coefficients": {"a": 1, "b": 1}, "maximum": 12}}]
    numbers = [
        {"name": n, "type": "integer", "constraints": {"minimum": 0, "maximum": 9}, "covey": {"special": ["N", "-1"]}}
        for n in "ab"
    ]
    schema = Schema.from_dict({"fields": [*numbers, {"name": "c", "type": "boolean"}], "covey": {"rules": rules}})
    codec = Codec(schema)
    codes = some_codes(codec, 3000, 1)
    columns = codec.decode(codes, rng())
    assert schema.validate(columns) == []
    special = (codes[:, 0] == 10) & (codes[:, 1] == 11)
    kept = codec.encode(columns)[0]
    assert np.array_equal(kept[special], codes[special])  # what is no number breaks no rule about numbers


def test_times_of_day():
    field = Field("x", "time", "08:00", "19:59:59", bins=12)
    cells = ["8:05", "08:05:30", "19:59:59.7", "24:00", "7:00", "23:00", "9h", "2024-03-19 10:15:00", None]
    codes, log = one(field, cells)
    assert codes == [0, 0, 11, 12, 0, 11, 12, 2, 12]
    assert (log.unparseable, log.clipped, log.missing) == (2, 2, 1)
    assert one(field, [time(9), time(23), None])[0] == [1, 11, 12]
    assert one(field, pl.Series([time(9), None]))[0] == [1, 12]
    assert Field.from_dict(field.to_dict()) == field
    with pytest.raises(ParameterError, match="not a value of type time"):
        Field("x", "time", "8", "9 pm")
