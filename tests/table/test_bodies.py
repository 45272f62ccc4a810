"""Bodies over a schema's columns: exact in every row, read and written, and in company with other rules."""

from decimal import Decimal

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.rules.region import regions
from covey.table.schema import BodyRule, Schema, Sum
from tests.table.examples import repaired, rng, some_codes


def number(name, high=1.0, decimals=2, required=True, **own):
    constraints = {"minimum": 0, "maximum": high, "required": required}
    return {"name": name, "type": "number", "constraints": constraints, "covey": {"decimals": decimals, **own}}


def schema(fields, *rules):
    return Schema.from_dict({"fields": fields, "covey": {"rules": list(rules)}})


SHARES = {"body": {"fields": ["a", "b", "c"], "sum": 1}}


def exact_sum(columns, names):
    return {sum(Decimal(repr(columns[name][i])) for name in names) for i in range(len(columns[names[0]]))}


def test_a_release_keeps_shares_exactly_and_the_other_columns(few_steps):
    generator = np.random.default_rng(3)
    cut = np.sort(generator.integers(0, 101, (400, 2)), axis=1)
    parts = np.diff(cut, prepend=0, append=100, axis=1) / 100
    poor = parts[:, 0] > 0.5
    frame = pl.DataFrame({"a": parts[:, 0], "b": parts[:, 1], "c": parts[:, 2], "poor": poor, "age": cut[:, 0]})
    fields = [number("a"), number("b"), number("c"), {"name": "poor", "type": "boolean"}]
    fields.append({"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 100}})
    table = schema(fields, SHARES)
    assert table.validate(frame) == []
    rows = covey.PrivateSynthesizer(8.0, schema=table, seed=2).fit(frame).sample(300)
    assert exact_sum(rows, ["a", "b", "c"]) == {1}
    assert table.validate(rows) == []
    assert rows["a"].filter(rows["poor"]).mean() > rows["a"].filter(~rows["poor"]).mean() + 0.1
    free = covey.PrivateSynthesizer(8.0, schema=schema(fields), seed=1).fit(frame).sample(300)
    assert exact_sum(free, ["a", "b", "c"]) != {1}  # without the rule they are not


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({"fields": ["a", "b", "c"], "increasing": True}, lambda a, b, c: (a <= b) & (b <= c)),
        ({"fields": ["a", "b", "c"], "sum": {"maximum": 1.5}}, lambda a, b, c: a + b + c <= 1.5 + 1e-9),
        ({"fields": ["a", "b", "c"], "sum": {"minimum": 1, "maximum": 2}}, lambda a, b, c: a + b + c >= 1 - 1e-9),
        (
            {
                "fields": ["a", "b", "c"],
                "increasing": True,
                "linear": [{"coefficients": {"a": 1, "b": 2, "c": -3}, "minimum": -1.5}],
            },
            lambda a, b, c: (a <= b) & (b <= c) & (a + 2 * b - 3 * c >= -1.5 - 1e-9),
        ),
        (
            {"fields": ["a", "b", "c"], "linear": [{"coefficients": {"a": 1, "b": 1, "c": -1}, "equals": 0}]},
            lambda a, b, c: np.abs(a + b - c) < 1e-9,
        ),
    ],
)
def test_every_kind_of_body_holds_in_every_row_and_survives_its_file(rule, holds):
    table = schema([number("a", decimals=1), number("b"), number("c", decimals=3)], {"body": rule})
    assert Schema.from_dict(table.to_dict()) == table
    codec = Codec(table)
    rows = codec.decode(some_codes(codec, 500, 5), rng())
    assert holds(*(rows[name].to_numpy() for name in "abc")).all()
    assert table.validate(rows) == []
    loose = schema([number("a", decimals=1), number("b"), number("c", decimals=3)])
    raw = Codec(loose).decode(some_codes(codec, 500, 5), rng())
    assert not holds(*(raw[name].to_numpy() for name in "abc")).all()
    assert "rows break the rule" in " ".join(table.validate(raw))


def test_a_body_binds_where_nothing_is_missing():
    table = schema([number("a"), number("b", required=False), number("c")], SHARES)
    rows = {"a": [0.2, 0.9, 0.9], "b": [0.3, None, 0.3], "c": [0.5, 0.9, 0.5]}
    assert [line.split()[0] for line in table.validate(rows)] == ["1"]
    mended = repaired(Codec(table), rows, rng())
    assert [mended[name].to_list()[:2] for name in "abc"] == [[0.2, 0.9], [0.3, None], [0.5, 0.9]]
    assert exact_sum({name: mended[name][2:] for name in "abc"}, ["a", "b", "c"]) == {1}


def test_bodies_and_other_rules_are_kept_together():
    rules = [SHARES, {"forbid": {"a": {"maximum": 0.1}, "ill": True}}, {"less_equal": {"left": "b", "right": "d"}}]
    rules.append({"linear": {"coefficients": {"d": 1, "c": -2}, "maximum": 0}})
    fields = [number("a"), number("b"), number("c"), number("d"), {"name": "ill", "type": "boolean"}]
    table = schema(fields, *rules)
    codec = Codec(table)
    [region] = regions(table.rules, codec.attributes)  # the body and the linear rule share a column
    assert set(region.grids) == {"a", "b", "c", "d"}
    assert table.validate(codec.decode(some_codes(codec, 500, 6), rng())) == []


def test_an_increasing_body_is_measured_by_its_distances():
    table = schema([number("a"), number("b"), number("c")], {"body": {"fields": ["a", "b", "c"], "increasing": True}})
    links = Codec(table).links
    assert {name: link.base for name, link in links.items()} == {"b": "a", "c": "b"}


def test_linear_rules_on_declared_bins_are_repaired_inside_them():
    fields = [number("a", bins=4), number("b", bins=4)]
    rule = {"linear": {"coefficients": {"a": 1, "b": 1}, "maximum": 1}}
    codec = Codec(schema(fields, rule))
    assert codec.book.regions == []
    many = {"linear": {"coefficients": {"a": 1e8, "b": 1e-12}, "maximum": 1}}  # more digits than whole numbers have
    assert Codec(schema([number("a"), number("b")], many)).book.regions == []
    assert len(Codec(schema([number("a"), number("b")], rule)).book.regions) == 1


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        ({"fields": ["a", "b"], "sum": 5}, "no row was found"),
        ({"fields": ["a", "b"]}, "needs a sum"),
        ({"fields": ["a", "b"], "sum": {"at": 1}}, "'at'"),
        ({"fields": ["a", "b"], "sum": {"equals": 1, "maximum": 2}}, "equals and more"),
        ({"fields": ["a", "b"], "sum": {}}, "needs a minimum"),
        ({"fields": ["a", "b"], "sum": {"minimum": 2, "maximum": 1}}, "above maximum"),
        ({"fields": ["a", "b"], "sum": "1"}, "finite numbers"),
        ({"fields": ["a", "b"], "increasing": "yes"}, "true or false"),
        ({"fields": "ab", "sum": 1}, "list of names"),
        ({"fields": ["a", "nobody"], "sum": 1}, "'nobody'"),
        ({"fields": ["a", "ill"], "sum": 1}, "'ill' has type boolean"),
        ({"fields": ["a", "a"], "sum": 1}, "each once"),
        ({"fields": ["a"], "linear": [{"coefficients": {"b": 1}, "maximum": 1}]}, "not among its fields"),
        ({"fields": ["a"], "linear": [{"maximum": 1}]}, "incomplete"),
        ({"fields": ["a", "b"], "linear": [{"coefficients": {"a": 3, "b": 2}, "equals": 0.005}]}, "more decimals"),
    ],
)
def test_a_wrong_body_is_refused_in_words(rule, words):
    with pytest.raises(ParameterError) as error:
        Codec(schema([number("a"), number("b"), {"name": "ill", "type": "boolean"}], {"body": rule}))
    assert words in str(error.value)


def test_a_body_reads_as_a_sentence():
    rule = BodyRule(("a", "b"), (Sum((("a", 1.0), ("b", 2.0)), None, 3.0), Sum((("a", 1.0),), 1.0, 1.0)), True)
    assert rule.words == "Together: a ≤ b; a + 2 × b is at most 3; a is 1."
