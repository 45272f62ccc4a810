from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.schema import Field, Schema
from tests.table.examples import RULED, repaired, rng, some_codes


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
    fields = tuple(Field(n, "integer", 0, 99, bins=10, required=True) for n in "ab")
    rule = Schema.from_dict(
        {"fields": [f.to_dict() for f in fields], "covey": {"rules": [{"less_equal": {"left": "a", "right": "b"}}]}}
    )
    codec = Codec(rule)
    codes = np.sort(some_codes(codec, 2000, 3), axis=1)
    assert np.array_equal(codec.encode(codec.decode(codes, rng()))[0], codes)


def test_rules_that_contradict_each_other_are_a_parameter_error():
    with pytest.raises(ParameterError, match="contradict"):
        Codec(
            Schema.from_dict(
                {
                    "fields": [
                        {"name": "a", "type": "boolean", "constraints": {"required": True}},
                        {"name": "b", "type": "boolean"},
                    ],
                    "covey": {"rules": [{"forbid": {"a": True}}, {"forbid": {"a": False}}]},
                }
            )
        )


def test_a_forbidden_value_between_two_steps_forbids_nothing():
    data = {"fields": [{"name": "x", "type": "number", "covey": {"bins": [0, 1], "decimals": 1}}]}
    data["covey"] = {"rules": [{"forbid": {"x": [0.25, 0.3]}}]}
    schema = Schema.from_dict(data)
    assert schema.validate({"x": [0.2]}) == []
    assert len(schema.validate({"x": [0.3]})) == 1


def test_equal_pairs_and_sums_are_possible():
    fields = [
        {"name": n, "type": "integer", "constraints": {"minimum": 0, "maximum": 50, "required": True}} for n in "abc"
    ]
    rules = [{"less_equal": {"left": "a", "right": "b"}}, {"less_equal": {"left": "b", "right": "a"}}]
    sums = [{"linear": {"coefficients": {"a": s, "b": s, "c": s}, "maximum": 60 * s}} for s in (1, -1)]
    for chosen in (rules, sums):
        schema = Schema.from_dict({"fields": fields, "covey": {"rules": chosen}})
        codec = Codec(schema)
        assert schema.validate(codec.decode(some_codes(codec, 500, 2), rng())) == []


def test_codes_outside_the_domain_are_refused():
    codec = Codec(Schema((Field("x", "boolean"),)))
    for codes in ([[3]], [[-1]], [[0, 0]], [[0.5]]):
        with pytest.raises(ParameterError):
            codec.decode(np.array(codes), rng())


def test_distances_from_other_fields_hold_after_rules_have_moved_these():
    """A program that mended the order alone left stays of years where at most 9 days are declared."""
    fields = [
        {"name": "in", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
        {"name": "out", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"}},
        {"name": "ward", "type": "boolean"},
    ]
    fields[1]["covey"] = {"after": "in", "difference": {"minimum": 2, "maximum": 9}}
    rules = [{"forbid": {"in": {"minimum": "2020-02-01"}, "ward": True}}]
    schema = Schema.from_dict({"fields": fields, "covey": {"rules": rules}})
    fine = Codec(schema)
    codes = np.stack([rng(1).integers(0, kind.size, 2000) for kind in fine.kinds], axis=1)
    columns = fine.decode(codes, rng(2), "numbers")
    apart = (columns["out"] - columns["in"]).dt.total_days().drop_nulls()
    assert (apart.min(), apart.max()) == (2, 9)
    assert schema.validate(columns) == []
    assert "'after': 'in'" in schema.validate({**columns, "out": columns["out"] + timedelta(1)})[0]


def test_sums_of_large_whole_numbers_are_kept_to_the_last_one():
    """A slack of 10^-9 let sums of a billion be two too large."""
    field = {
        "name": "a",
        "type": "integer",
        "constraints": {"minimum": 10**9, "maximum": 10**9 + 9},
        "covey": {"bins": 2},
    }
    rules = [{"linear": {"coefficients": {"a": 1}, "maximum": 10**9}}]
    schema = Schema.from_dict({"fields": [field], "covey": {"rules": rules}})
    drawn = Codec(schema).decode(np.zeros((50, 1), dtype=np.int64), rng())
    assert drawn["a"].drop_nulls().unique().to_list() == [10**9]


def test_a_special_value_that_is_forbidden_does_not_become_missing_where_a_value_is_required():
    limits = {"minimum": 0, "maximum": 9, "required": True}
    fields = [
        {"name": "a", "type": "integer", "constraints": limits, "covey": {"special": ["N"]}},
        {"name": "b", "type": "boolean", "constraints": {"required": True}},
    ]
    schema = Schema.from_dict({"fields": fields, "covey": {"rules": [{"forbid": {"a": "N", "b": True}}]}})
    columns = repaired(Codec(schema), {"a": ["N"] * 60 + ["3"] * 60, "b": ["true"] * 120}, rng())
    assert schema.validate(columns) == []
    assert columns["a"].null_count() == 0
    assert set(columns["a"].to_list()[60:]) == {"3"}


def test_columns_that_no_rule_names_stay_where_a_row_is_replaced():
    """Events were drawn for persons whose attributes then changed with the whole row: rules across the tables were broken."""
    limits = {"minimum": -1, "maximum": 0, "required": True}
    fields = [
        {"name": "a", "type": "integer", "constraints": limits, "covey": {"special": ["N"], "bins": 1}},
        {"name": "b", "type": "integer", "constraints": {"minimum": 0, "maximum": 999}},
    ]
    rules = [{"linear": {"coefficients": {"a": -1}, "maximum": -0.5}}]  # no number keeps it, but a special value does
    codec = Codec(Schema.from_dict({"fields": fields, "covey": {"rules": rules}}))
    columns = repaired(codec, {"a": ["0"] * 50 + ["N"] * 50, "b": [str(k) for k in range(100)]}, rng())
    assert set(columns["a"].to_list()) == {"N"}
    assert columns["b"].to_list() == list(range(100))
