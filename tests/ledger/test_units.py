"""Which units a cap takes: exactly those whose promise holds on every pair of tables that the cap is about."""

import json
from fractions import Fraction
from itertools import product

import pytest

from covey.engine.unit import ADD_REMOVE, ALL_ROWS, REPLACE, adds_up, unit_words
from covey.errors import LedgerError
from covey.ledger import Ledger
from tests.commands import run, told

ROWS = tuple(product("abc", (0, 1)))  # whose it is, and what it says
UNITS = (1, 2, 3, ALL_ROWS)


def differ_in_rows(one, other, most):
    """Up to so many rows are replaced."""
    return len(one) == len(other) and sum(x != y for x, y in zip(one, other, strict=True)) <= most


def differ_in_a_person(one, other):
    """One person with all rows is replaced by another: the number of persons stays."""
    each = [
        {name: sorted(v for owner, v in table if owner == name) for name in {owner for owner, _ in table}}
        for table in (one, other)
    ]
    shared = [name for name in each[0] if each[1].get(name) == each[0][name]]
    return len(each[0]) == len(each[1]) and len(each[0]) - len(shared) <= 1


def neighbours(one, other, unit):
    return differ_in_a_person(one, other) if unit == ALL_ROWS else differ_in_rows(one, other, unit)


def test_a_unit_adds_up_exactly_where_its_promise_holds_every_pair_of_the_cap():
    """All pairs of tables of two rows, of one and two, and those of three that differ in one row."""
    two, three = list(product(ROWS, repeat=2)), list(product(ROWS, repeat=3))
    pairs = [*product(two, repeat=2), *product(two, [(row,) for row in ROWS])]
    pairs += [(one, (row, *one[1:])) for one, row in product(three, ROWS)]
    for unit, kept in product((1, 2, ALL_ROWS), repeat=2):
        inside = all(neighbours(*pair, unit) for pair in pairs if neighbours(*pair, kept))
        assert adds_up(unit, kept) == inside, (unit, kept)


def test_a_replaced_row_may_change_two_persons_and_their_public_number():
    before, after = (("a", 0), ("a", 1), ("b", 0)), (("c", 0), ("a", 1), ("b", 0))
    assert differ_in_rows(before, after, 1)
    assert len({owner for owner, _ in before}) + 1 == len({owner for owner, _ in after})
    assert not differ_in_a_person(before, after)


@pytest.mark.parametrize("promises", [(REPLACE, REPLACE), (ADD_REMOVE, ADD_REMOVE), (REPLACE, ADD_REMOVE)])
@pytest.mark.parametrize(("first", "then"), [*product(UNITS, repeat=2)])
def test_the_ledger_takes_what_adds_up_and_charges_nothing_else(tmp_path, promises, first, then):
    cap, of_release = promises
    ledger = Ledger(tmp_path / "ledger.sqlite")
    ledger.open_dataset("people", Fraction(9), Fraction(0), neighbours=cap)
    assert ledger.datasets()[0].protects == "whom the first release protects"
    ledger.charge("people", Fraction(1), Fraction(0), "first", first, neighbours=of_release)
    before = ledger.datasets()
    if adds_up(then, first):
        ledger.check("people", Fraction(1), Fraction(0), then, neighbours=of_release)
        ledger.charge("people", Fraction(1), Fraction(0), "then", then, neighbours=of_release)
        assert ledger.datasets()[0].protects == unit_words(first)  # the cap is about what it was about
        return
    match = f"kept for {unit_words(first)}, and this release protects {unit_words(then)}"
    for door in (ledger.check, lambda *cost, **rest: ledger.charge(*cost, "then", **rest)):
        with pytest.raises(LedgerError, match=match):
            door("people", Fraction(1), Fraction(0), rows_per_person=then, neighbours=of_release)
    assert ledger.datasets() == before


@pytest.mark.parametrize("person_first", [False, True])
@pytest.mark.parametrize("promise", [(), ("--neighbours", ADD_REMOVE)])
def test_the_command_line_refuses_the_mix_before_the_charge_and_shows_the_unit(tmp_path, person_first, promise):
    rows = [f"p{i // 3},{i % 7}" for i in range(600)]
    (tmp_path / "t.csv").write_text("who,x\n" + "\n".join(rows) + "\n")
    limits = {"minimum": 0, "maximum": 6}
    schema = tmp_path / "s.json"
    schema.write_text(json.dumps({"fields": [{"name": "x", "type": "integer", "constraints": limits}]}))
    book = ("--ledger", tmp_path / "ledger.sqlite")
    told("ledger", "open", "d", "--budget", "50", *promise, *book)

    def release(person, name):
        command = (
            "release",
            tmp_path / "t.csv",
            "--schema",
            schema,
            "--epsilon",
            "3",
            "--dataset",
            "d",
            *promise,
            *book,
        )
        return run(*command, *(("--person", "who") if person else ()), "--out", tmp_path / name)

    assert release(person_first, "one").exit_code == 0
    spent = told("ledger", "show", "--json", *book)
    refused = release(not person_first, "two")
    assert refused.exit_code == 4
    assert "the two do not add up" in " ".join(refused.output.split())
    assert not (tmp_path / "two").exists()
    assert told("ledger", "show", "--json", *book) == spent
    unit = ALL_ROWS if person_first else 1
    assert json.loads(spent)[0]["rows_per_person"] == unit
    for command in (("ledger", "show"), ("ledger", "history", "d")):
        shown = told(*command, *book)
        assert "protects" in shown
        assert unit_words(unit) in shown
    events = json.loads(told("ledger", "history", "d", "--json", *book))["events"]
    assert [event["rows_per_person"] for event in events] == [None, unit, None]
