"""Rules are read, refused and kept; numbers in a body too."""

from decimal import Decimal

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import covey
from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.schema import BodyRule, Field, Forbid, Schema, Sum
from tests.table.examples import RULED, repaired, rng, ruled, some_codes

SHARES = {"body": {"fields": ["a", "b", "c"], "sum": 1}}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (ruled({"at_most": {"fields": ["ill", "nobody"], "limit": 1}}), "'nobody'"),
        (ruled({"at_most": {"fields": ["ill", "age"], "limit": 1}}), "'age' has type integer"),
        (ruled({"at_most": {"fields": ["ill"], "limit": -1}}), "limit"),
        (ruled({"at_most": {"fields": ["ill"]}}), "incomplete"),
        (ruled({"less_equal": {"left": "age", "right": "born"}}), "'born' has type date"),
        (ruled({"less_equal": {"left": "sex", "right": "sex"}}), "each once"),
        (ruled({"linear": {"coefficients": {"age": 0}, "maximum": 1}}), "other than 0"),
        (ruled({"forbid": {"sex": "x"}}), "'x'"),
        (ruled({"forbid": {"sex": []}}), "empty"),
        (ruled({"forbid": {"nobody": 1}}), "'nobody'"),
        (ruled({"forbid": {"site": "north"}}), "constant"),
        (ruled({"imply": {}}), "'imply'"),
        (ruled({"requires": {"if": {"age": {"maximum": 14}}}}), "incomplete"),
        (ruled({"requires": {"if": {}, "then": {"ill": True}}}), "both under if and under then"),
        (ruled({"requires": {"if": {"age": 3}, "then": {"job": ["king"]}}}), "no category 'king'"),
        (ruled({"requires": {"if": {"agee": 3}, "then": {"ill": True}}}), "requires rule names 'agee'"),
        (ruled({"requires": {"if": {"ill": True}, "then": {"ill": False}}}), "each once"),
        (ruled({"forbid": {"age": ["nothing"], "ill": True}}), "not a value of type integer"),
        (ruled({"require": {"if": {"ill": True}, "then": {"well": False}}}), "forbid or requires"),
    ],
)
def test_a_wrong_rule_is_a_parameter_error_that_names_it(data, words):
    with pytest.raises(ParameterError) as error:
        Schema.from_dict(data)
    assert words in str(error.value)
    assert error.value.exit_code == 2


def test_forbid_takes_one_value_or_a_list():
    rule = Schema.from_dict(ruled({"forbid": {"sex": "f", "ill": True}})).rules[0]
    assert isinstance(rule, Forbid)
    assert rule.conditions[0][1].values == ("f",)


@given(st.integers(0, 2**32), st.sets(st.integers(0, 6)))
@settings(max_examples=20, deadline=None)
def test_rules_hold_in_every_output(seed, kept):
    data = {**RULED, "covey": {"rules": [RULED["covey"]["rules"][j] for j in sorted(kept)]}}
    schema = Schema.from_dict(data)
    codec = Codec(schema)
    codes = some_codes(codec, 200, seed)
    columns = codec.decode(codes, rng(seed))
    assert schema.validate(columns) == []
    raw = Codec(Schema.from_dict({**RULED, "covey": {}})).decode(codes, rng(seed))
    assert schema.validate(repaired(codec, raw, rng(seed))) == []


def test_pairs_are_ordered_inside_their_bins_where_these_have_room():
    fields = [Field(n, "integer", 0, 99, bins=10, required=True).to_dict() for n in "ab"]
    codec = Codec(schema(fields, {"less_equal": {"left": "a", "right": "b"}}))
    codes = np.sort(some_codes(codec, 2000, 3), axis=1)
    assert np.array_equal(codec.encode(codec.decode(codes, rng()))[0], codes)


def test_rules_that_contradict_each_other_are_a_parameter_error():
    fields = [Field("a", "boolean", required=True).to_dict(), {"name": "b", "type": "boolean"}]
    with pytest.raises(ParameterError, match="contradict"):
        Codec(schema(fields, {"forbid": {"a": True}}, {"forbid": {"a": False}}))


def test_a_forbidden_value_between_two_steps_forbids_nothing():
    data = {"fields": [{"name": "x", "type": "number", "covey": {"bins": [0, 1], "decimals": 1}}]}
    data["covey"] = {"rules": [{"forbid": {"x": [0.25, 0.3]}}]}
    schema = Schema.from_dict(data)
    assert schema.validate({"x": [0.2]}) == []
    assert len(schema.validate({"x": [0.3]})) == 1


def test_codes_outside_the_domain_are_refused():
    codec = Codec(Schema((Field("x", "boolean"),)))
    for codes in ([[3]], [[-1]], [[0, 0]], [[0.5]]):
        with pytest.raises(ParameterError):
            codec.decode(np.array(codes), rng())


def test_sums_of_large_whole_numbers_are_kept_to_the_last_one():
    """A slack of 10^-9 let sums of a billion be two too large."""
    field = Field("a", "integer", 10**9, 10**9 + 9, bins=2).to_dict()
    rule = {"linear": {"coefficients": {"a": 1}, "maximum": 10**9}}
    drawn = Codec(schema([field], rule)).decode(np.zeros((50, 1), dtype=np.int64), rng())
    assert drawn["a"].drop_nulls().unique().to_list() == [10**9]


def number(name, high=1.0, decimals=2, required=True, **own):
    constraints = {"minimum": 0, "maximum": high, "required": required}
    return {"name": name, "type": "number", "constraints": constraints, "covey": {"decimals": decimals, **own}}


def schema(fields, *rules):
    return Schema.from_dict({"fields": fields, "covey": {"rules": list(rules)}})


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
