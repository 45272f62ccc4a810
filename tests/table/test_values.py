"""Public values are read in their type or not at all, and spellings come back as they were."""

from datetime import date, datetime, time

import pytest

from covey.errors import ParameterError
from covey.table.dialects import Spelling
from covey.table.values import is_label, number, read_spelling, typed, write_spelling


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


def test_one_tenth_is_one_tenth():
    assert 10 * number(0.1) == 1


def test_labels_survive_a_file():
    assert is_label("ward B")
    assert not any(map(is_label, ("", " a", "a\0b", "a\rb", "\ud800")))


def test_spellings_come_back_as_they_were():
    words = {"decimalChar": ",", "groupChar": ".", "format": "%d.%m.%Y"}
    assert write_spelling(read_spelling({"type": "date", **words}, "day")) == words
    assert write_spelling(Spelling()) == {}
    with pytest.raises(ParameterError, match="only dates and times"):
        read_spelling({"type": "number", "format": "%d"}, "cost")
