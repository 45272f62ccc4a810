from covey.table.hints import hints
from covey.table.schema import Schema
from covey.table.sources import read_table


def test_hints_are_the_notes_that_carry_a_warning():
    table = read_table({"id": list(range(100)), "sex": ["f", "m"] * 50, "cost": [0.5 * j for j in range(100)]})
    found = hints(table, Schema.draft(table))
    assert list(found) == ["id", "cost"]
    assert "identifiers" in found["id"]
    assert "limits" in found["cost"]
