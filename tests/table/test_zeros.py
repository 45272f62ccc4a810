"""Rules as structural zeros of codes: every box agrees with the rule that it comes from, and releases need no repair."""

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.repair import RuleBook
from covey.table.schema import Schema
from covey.table.zeros import structural_zeros

FIELDS = [
    {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99}},
    {"name": "status", "type": "string", "constraints": {"enum": ["N", "single", "married"], "required": True}},
    {"name": "pay", "type": "integer", "constraints": {"minimum": 0, "maximum": 900}, "covey": {"special": ["none"]}},
    {"name": "rooms", "type": "integer", "constraints": {"minimum": 1, "maximum": 8}, "covey": {"bins": 4}},
    {"name": "beds", "type": "integer", "constraints": {"minimum": 0, "maximum": 8}, "covey": {"bins": [0, 2, 4, 8]}},
    {"name": "own", "type": "boolean"},
    {"name": "rent", "type": "boolean", "constraints": {"required": True}},
]
CHILD = {"requires": {"if": {"age": {"maximum": 14}}, "then": {"status": ["N"], "pay": ["none"]}}}
ADULT = {"requires": {"if": {"age": {"minimum": 15}}, "then": {"status": ["single", "married"]}}}
RULES = [
    CHILD,
    ADULT,
    {"forbid": {"status": ["married"], "age": {"maximum": 17}, "own": True}},
    {"forbid": {"pay": [0, 17], "rent": True}},
    {"forbid": {"age": [None], "status": ["single"]}},
    {"forbid": {"rooms": {"maximum": 3}, "own": [True, None]}},
    {"at_most": {"fields": ["own", "rent"], "limit": 1}},
    {"less_equal": {"left": "beds", "right": "rooms"}},
    {"linear": {"coefficients": {"beds": 2.0, "rooms": -1.0}, "maximum": 5.0}},
]


def schema(rules):
    return Schema.from_dict({"fields": FIELDS, "covey": {"rules": rules}})


def random_codes(fine, n, seed):
    generator = np.random.default_rng(seed)
    return np.stack([generator.integers(0, attribute.size, n) for attribute in fine.kinds], axis=1)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: next(iter(rule)))
def test_rows_in_a_box_break_the_rule_and_other_rows_break_it_inside_bins_alone(rule):
    own = schema([rule])
    fine = Codec(own)
    boxes = structural_zeros(fine)
    assert boxes
    codes = random_codes(fine, 20_000, 1)
    inside = np.zeros(len(codes), dtype=bool)
    for box in boxes.boxes:
        inside |= np.logical_and.reduce(
            [np.logical_or.reduce([(codes[:, j] >= a) & (codes[:, j] < b) for a, b in side]) for j, side in box.items()]
        )
    free = Codec(schema([]))
    cells, _ = free.encode(pl.DataFrame(free.decode(codes, np.random.default_rng(2), "numbers")), "cells")
    broken = RuleBook(own).broken(own.rules[0], {name: cells[:, j] for j, name in enumerate(free.names)})
    assert broken[inside].all()
    binned = {"rooms", "beds"} & set(own.rules[0].fields)
    assert inside.any()
    assert binned or not broken[~inside].any()


def test_what_codes_do_not_say_is_left_to_repair():
    dates = [
        {"name": n, "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}} for n in "ab"
    ]
    rules = [{"less_equal": {"left": "a", "right": "b"}}, {"forbid": {"b": {"minimum": "2020-06-01"}, "c": True}}]
    own = Schema.from_dict({"fields": [*dates, {"name": "c", "type": "boolean"}], "covey": {"rules": rules}})
    assert not structural_zeros(Codec(own))  # b is coded by its distance from a


def test_rules_that_contradict_each_other_are_refused():
    both = [{"requires": {"if": {"rent": v}, "then": {"own": not v}}} for v in (True, False)]
    never = [{"forbid": {"own": [True, False, None], "rent": [True, False]}}]
    RuleBook(schema(both))
    with pytest.raises(ParameterError, match="contradict"):
        RuleBook(schema(never))


def people(n):
    generator = np.random.default_rng(3)
    age = generator.integers(0, 100, n)
    child = age < 15
    own = generator.random(n) < 0.3
    rooms = np.where(own, generator.integers(4, 9, n), generator.integers(1, 9, n))
    return pl.DataFrame(
        {
            "age": age,
            "status": np.where(child, "N", np.where((age > 25) & (generator.random(n) < 0.7), "married", "single")),
            "pay": np.where(child, "none", (20 + 8 * age).astype(str)),
            "rooms": rooms,
            "beds": np.minimum(rooms, generator.integers(0, 5, n)),
            "own": own,
            "rent": ~own & (generator.random(n) < 0.8),
        }
    )


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_a_release_keeps_rules_in_the_fit_and_hardly_repairs(delta, monkeypatch, few_steps):
    """The wrong program: a fit that does not know the rules. Its rows break them, and repair has to move them."""
    mended = []
    real = RuleBook._take_turns

    def counting(self, cells, generator):
        mended.append(np.mean(np.logical_or.reduce([self.broken(rule, cells) for rule in self.rules])))
        return real(self, cells, generator)

    table, rules = people(4000), RULES[:4]
    synth = covey.PrivateSynthesizer(2.0, delta, schema=schema(rules), seed=4).fit(table)
    monkeypatch.setattr(RuleBook, "_take_turns", counting)
    rows = synth.sample(4000)
    assert mended == [0]
    assert not schema(rules).validate(rows)
    monkeypatch.setattr("covey.methods.regain.tables.structural_zeros", lambda fine: covey.core.tables.zeros.NO_BOXES)
    covey.PrivateSynthesizer(2.0, delta, schema=schema(rules), seed=4).fit(table).sample(4000)
    assert mended[1] > 0.02
