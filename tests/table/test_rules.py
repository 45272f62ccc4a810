import pytest

from covey.errors import ParameterError
from covey.table.schema import Forbid, Schema
from tests.table.examples import ruled


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
