"""Public values are read in their type or not at all."""

from datetime import date, datetime, time

import pytest

from covey.table.values import typed


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
