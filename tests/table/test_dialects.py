from dataclasses import replace
from datetime import date

import polars as pl
import pytest

from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.dialects import Dialect, Spelling
from covey.table.schema import Field, Schema


def test_a_dialect_is_recorded_as_frictionless_has_it():
    dialect = Dialect(";", encoding="windows-1252", sheet="Data", skip_rows=3)
    said = dialect.to_dict()
    assert said == {
        "dialect": {"delimiter": ";", "headerRows": [4], "sheetName": "Data"},
        "encoding": "windows-1252",
    }
    assert Dialect.from_dict(said) == dialect
    assert Dialect(",", encoding="utf-8", skip_rows=0).to_dict() == {}
    assert Dialect.from_dict({"dialect": {"header": True, "quoteChar": '"', "doubleQuote": True}}) == Dialect()


def test_what_is_said_overrules_what_was_found():
    found = Dialect(";", ",", ".", "windows-1252", sheet="A", skip_rows=2)
    assert Dialect(skip_rows=0, decimal=".", thousands="").over(found) == replace(
        found, skip_rows=0, decimal=".", thousands=""
    )
    assert Dialect("semicolon").separator == ";"
    assert Dialect("tab").separator == "\t"


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"separator": "x"}, "separator must be one of"),
        ({"decimal": ";"}, "decimal must be one of"),
        ({"thousands": "x"}, "thousands must be one of"),
        ({"thousands": "."}, "both '.'"),
        ({"decimal": ",", "thousands": ","}, "both ','"),
        ({"encoding": "klingon"}, "unknown"),
        ({"encoding": "base64"}, "unknown"),
        ({"skip_rows": -1}, "skip_rows"),
        ({"missing": "NA"}, "list"),
        ({"date_format": "%d.%m"}, "year, month and day"),
        ({"date_format": "%q"}, "year, month and day"),
    ],
)
def test_a_wrong_dialect_is_a_parameter_error(wrong, words):
    with pytest.raises(ParameterError, match=words):
        Dialect(**wrong)


@pytest.mark.parametrize(
    ("spelling", "cells"),
    [
        (Spelling(",", "."), {"1.019,75": 1019.75, "-3,5": -3.5, "1.000.000": 1e6, " 7 ": 7, "1e3": 1000, ",5": 0.5}),
        (Spelling(",", "."), {"1.5": None, "1.0000": None, "1,019.75": None, "x": None, "1.01,5": None, "-": None}),
        (Spelling(".", ","), {"1,019.75": 1019.75, "1,000": 1000, "1000": 1000, "1,5": None, "1.019,75": None}),
        (Spelling(",", ""), {"1019,75": 1019.75, "1.5": None, "1.019,75": None, "1,019,75": None}),
        (Spelling(".", " "), {"1 019.75": 1019.75, "10 19": None}),
        (Spelling(".", "'"), {"1'019.75": 1019.75}),
    ],
)
def test_numbers_are_read_in_their_spelling_alone(spelling, cells):
    field = Field("x", "number", -(10**7), 10**7, decimals=2, spelling=spelling)
    read, log = Codec(Schema((field,))).encode({"x": list(cells)}, "cells")
    found = [None if cell < -(10**9) else cell / 100 for cell in read[:, 0].tolist()]
    assert found == list(cells.values())
    assert log.columns["x"].unparseable == sum(value is None for value in cells.values())


def test_dates_are_read_in_their_format_and_as_iso_text():
    field = Field("x", "date", "2024-01-01", "2024-12-31", bins=366, spelling=Spelling(date_format="%d.%m.%Y"))
    cells = ["19.03.2024", " 1.2.2024 ", "2024-03-19", "31.02.2024", "20240319", "3/19/2024", date(2024, 3, 19), None]
    codes, log = Codec(Schema((field,))).encode({"x": cells})
    assert codes[:, 0].tolist() == [78, 31, 78, 366, 366, 366, 78, 366]
    assert log.columns["x"].unparseable == 3


def test_cells_with_a_type_need_no_spelling():
    """A number in a column of mixed things is read as one, whatever its neighbours are."""
    codec = Codec(Schema((Field("x", "number", 0, 9999, decimals=1, spelling=Spelling(",", ".")),)))
    assert codec.encode({"x": [1.5, "1,5", 1234, "1.234"]}, "cells")[0][:, 0].tolist() == [15, 15, 12340, 12340]
    assert codec.encode(pl.DataFrame({"x": [1.5, 1234.0]}), "cells")[0][:, 0].tolist() == [15, 12340]
