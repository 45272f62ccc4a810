from datetime import date, datetime

import pandas as pd
import polars as pl
import pytest

from covey.table.codec import Codec
from covey.table.drafting import MOST_CATEGORIES
from covey.table.schema import Schema
from covey.table.sources import read_table


def test_a_draft_finds_types_bounds_and_categories(tmp_path):
    file = tmp_path / "t.csv"
    file.write_text(
        "flag,bit,age,dose,born,seen,sex,void,name\n"
        + "".join(
            f"yes,{j % 2},{j},{j / 4},2020-01-0{j},2020-01-01T0{j}:00:00,{'fm'[j % 2]},,n{j}\n" for j in range(1, 9)
        )
        + "no,,,,,,,,\n"
    )
    schema = Schema.from_frame_draft(read_table(file))
    assert {f.name: f.type for f in schema.fields} == {
        "flag": "boolean",
        "bit": "boolean",
        "age": "integer",
        "dose": "number",
        "born": "date",
        "seen": "datetime",
        "sex": "string",
        "void": "string",
        "name": "string",
    }
    assert (schema["age"].minimum, schema["age"].maximum) == (1, 8)
    assert schema["born"].maximum == date(2020, 1, 8)
    assert schema["seen"].minimum == datetime(2020, 1, 1, 1)
    assert schema["sex"].enum == ("f", "m")
    assert schema["flag"].required
    assert not schema["age"].required
    assert not any(f.confirmed for f in schema.fields)
    codes, log = Codec(schema).encode(read_table(file, schema))
    assert len(codes) == 9
    assert not any(c.unknown or c.unparseable or c.clipped for c in log.columns.values())


def test_a_draft_of_a_frame_with_types_and_many_categories():
    frame = pd.DataFrame(
        {
            "when": pd.to_datetime(["2020-01-01", None] * 100),
            "text": [f"t{j}" for j in range(200)],
            "x": [0.5, None] * 100,
            "b": [True, False] * 100,
        }
    )
    schema = Schema.from_frame_draft(frame)
    assert [f.type for f in schema.fields] == ["datetime", "string", "number", "boolean"]
    assert len(schema["text"].enum) == MOST_CATEGORIES
    assert schema["text"].other == "other"
    Codec(schema.confirm()).encode(frame)


@pytest.mark.parametrize("far", ["0-02-03", "0000-01-01", "99999-01-01"])
def test_years_that_no_calendar_here_has_are_drafted_as_text(far):
    drafted = Schema.from_frame_draft({"when": ["2020-02-03", far]})
    assert drafted.fields[0].type == "string"
    assert far in drafted.fields[0].enum


def test_frames_with_dates_beyond_the_calendar_can_be_drafted():
    days = pl.Series("when", [-10_000_000, 0]).cast(pl.Int32).cast(pl.Date)
    assert Schema.from_frame_draft(pl.DataFrame([days])).fields[0].type == "string"
