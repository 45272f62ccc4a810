"""Random releases on their whole way, a bounded part of `python -m fuzz releases`; and what longer runs found besides."""

import re
from fractions import Fraction

import pytest

import covey
from covey import workflow
from covey.ledger import Ledger
from covey.release import bundle
from covey.release.answers import asking
from covey.release.answers.asking import ask
from covey.tables.repair import RuleBook
from fuzz.__main__ import HERE
from fuzz.oracle import faults
from fuzz.releases import explore
from fuzz.targets import TARGETS
from tests.clinic import clinic, described

# As `python -m fuzz releases` names them at its end: with those below they reach all that is named. To be renewed, by a run of
# 500 and more, where one of them is refused since.
REACHING = (149, 481, 643, 650, 659, 664, 671, 704, 735, 739, 740, 768, 817, 826, 827, 889, 996, 96008, 96087, 96273)
FOUND = (2402, 10051, 10158, 12500, 12562, 22678, 31893, 43105, 81007, 95044, 96150, 96209)  # each found a fault once
# columns of any name; where relations are found beside whatever may stand beside them
LATER = (777080, 5000843, 5000964, 5001200, 5001225, 5002208, 5002968, 5012198)
# forbid, requires and linear with special values, and forbid on what another field follows
TOGETHER = (19, 32, 107, 125)


@pytest.mark.usefixtures("few_steps")
def test_accepted_releases_are_finished_refusals_cost_nothing_and_rows_keep_their_schema():
    tally = explore((*REACHING, *FOUND, *LATER, *TOGETHER))
    assert tally.finds == {}
    # All names would take too many releases: tests/table/test_names.py has them.
    assert [what for what in tally.unreached if not what.startswith("name ")] == []


@pytest.mark.parametrize(
    ("seed", "home", "name", "wrong", "words"),
    [
        (817, RuleBook, "obey", lambda book, cells, _: cells, "rows break the rule"),
        (650, asking, "conditions", lambda *_: 1 / 0, "ZeroDivisionError"),
        (650, bundle, "report_html", lambda *_: None, "report was not made(?s:.)*TypeError"),
        (650, workflow, "claim_target", lambda *_: None, "traceback"),
    ],
    ids=["rules that are not kept", "a question", "a report that cannot be made", "a failure before the charge"],
)
def test_broken_promises_are_found(monkeypatch, seed, home, name, wrong, words):
    monkeypatch.setattr(home, name, wrong)
    assert re.search(words, explore([seed]).finds[seed])


SCHEMA = {
    "fields": [
        {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 9, "required": True}},
        {"name": "b", "type": "integer", "constraints": {"minimum": 0, "maximum": 20}, "covey": {"special": ["-9"]}},
        {"name": "x", "type": "boolean"},
        {"name": "w", "type": "string", "constraints": {"enum": ["u", "=v"]}},
        {"name": "c", "type": "number", "covey": {"derived": {"expression": "a * 2"}}},
    ],
    "covey": {
        "rules": [
            {"less_equal": {"left": "a", "right": "b"}},
            {"linear": {"coefficients": {"a": 1, "b": 1}, "maximum": 25}},
            {"body": {"fields": ["a", "b"], "sum": {"minimum": 3}}},
            {"forbid": {"x": True, "w": [None, "u"]}},
            {"requires": {"if": {"a": {"minimum": 8}}, "then": {"x": False}}},
            {"at_most": {"fields": ["x"], "limit": 1}},
        ]
    },
}
GOOD = {"a": "4", "b": "7", "x": "true", "w": "'=v", "c": "8.0"}


@pytest.mark.parametrize(
    ("cells", "words"),
    [
        ({}, None),
        ({"b": "-9"}, None),
        ({"b": "", "x": "", "w": ""}, None),
        ({"a": ""}, "required"),
        ({"a": "10", "c": "20"}, "not from 0 to 9"),
        ({"a": "4.5"}, "invalid literal"),
        ({"x": "yes"}, "no flag"),
        ({"w": "v"}, "no category"),
        ({"c": "9"}, "a \\* 2"),
        ({"b": "3"}, "less_equal"),
        ({"a": "9", "b": "17", "c": "18", "x": "false"}, "linear"),
        ({"a": "1", "b": "1", "c": "2"}, "body"),
        ({"w": "u"}, "forbid"),
        ({"a": "8", "b": "9", "c": "16"}, "requires"),
    ],
)
def test_the_judge_of_rows_knows_each_kind_of_fault(cells, words):
    found = faults([{**GOOD, **cells}], SCHEMA)
    assert not found if words is None else any(re.search(words, fault) for fault in found)


def test_a_charge_that_comes_too_early_is_found(monkeypatch):
    """A program that charges first and then looks at the table."""
    refused = 4  # its cells do not fit its schema
    assert explore([refused]).outcomes == {"refused": 1}
    real = workflow._check_places

    def early(order, tables):
        Ledger(order.ledger).charge("d", Fraction(1), Fraction(0), "too early")
        return real(order, tables)

    monkeypatch.setattr(workflow, "_check_places", early)
    assert "refused after the charge" in explore([refused]).finds[refused]


@pytest.mark.usefixtures("few_steps")
@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_rates_of_events_of_which_a_person_has_one_at_most():
    """Shares of such events are told by units, and rates by bins, of which there are fewer."""
    package = described(lambda _, v: v.update(covey={"at_most": 1}))
    release = covey.PrivateSynthesizer(50.0, 1e-6, schema=package, seed=1).fit(clinic(400)).release(100)
    named = len(set(clinic(400)["visits"]["who"])) / 400
    assert ask(release, "rate day>=0", about="table").value == pytest.approx(named, abs=0.05)


@pytest.mark.parametrize("target", TARGETS)
def test_bytes_to_begin_with_go_their_way(tmp_path, target):
    """One target called a function by parameters that it had no more, and nobody saw: `make fuzz` runs seldom."""
    for file in (HERE / "corpus" / target).iterdir():
        TARGETS[target](file.read_bytes(), tmp_path)
