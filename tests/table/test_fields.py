from dataclasses import replace
from datetime import date

import pytest

from covey.errors import ParameterError
from covey.table.schema import Field, Schema


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
        with pytest.raises(ParameterError, match="Give a list of categories"):
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
    assert (field.labels, field.written, field.value("Yes", "x"), field.value(False, "x")) == (
        ("No", "Yes"),
        "string",
        True,
        False,
    )
    assert replace(field, flags=("0", "1")).written == "integer"
    for wrong in ({"falseValues": None}, {"trueValues": ["no"]}, {"trueValues": ["J", "Y"]}, {"type": "string"}):
        with pytest.raises(ParameterError, match="trueValues"):
            Field.from_dict({**entry, **wrong})
