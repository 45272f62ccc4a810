"""Fields with an expectation: coded by what differs, and decoded to the same cells."""

import numpy as np
import polars as pl
import pytest

from covey import Schema
from covey.core.relations.columns import DAY
from covey.core.relations.formulas import FORMULAS
from covey.errors import ParameterError
from covey.methods.relations.used import columns_of
from covey.table.codec import Codec
from covey.table.derived_fields import Derived

FIELDS = [
    {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 100}},
    {"name": "b", "type": "integer", "constraints": {"minimum": 0, "maximum": 100}},
    {
        "name": "sum",
        "type": "integer",
        "constraints": {"minimum": 0, "maximum": 200},
        "covey": {"expected": {"expression": "a + b"}},
    },
    {"name": "code", "type": "string", "constraints": {"enum": ["A1", "A2", "B1"]}},
    {
        "name": "first",
        "type": "string",
        "constraints": {"enum": ["A", "B"], "required": True},
        "covey": {"expected": {"from": ["code"], "map": {"A1": "A", "A2": "A", "B1": "B"}}},
    },
    {"name": "day", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
    {
        "name": "next day",
        "type": "date",
        "constraints": {"minimum": "2020-01-01", "maximum": "2021-12-31"},
        "covey": {"expected": {"expression": "day + 86400 * a"}},
    },
    {"name": "copy", "type": "date", "covey": {"derived": {"expression": "'next day'"}}},
]
TABLE = pl.DataFrame(
    {
        "a": [1, 2, None, 40],
        "b": [5, 5, 5, 60],
        "sum": [6, 9, 8, 100],
        "code": ["A1", "B1", None, "A2"],
        "first": ["A", "A", "B", "A"],
        "day": ["2020-01-01", "2020-02-02", "2020-03-03", None],
        "next day": ["2020-01-02", "2020-02-05", "2020-03-03", "2020-05-05"],
    }
)


def test_rows_come_back_as_they_were_exceptions_and_holes_too():
    schema = Schema.from_dict({"fields": FIELDS})
    assert Schema.from_dict(schema.to_dict()) == schema
    codec = Codec(schema)
    codes, _ = codec.encode(TABLE, "numbers")
    rows = pl.DataFrame(codec.decode(codes, np.random.default_rng(0), "numbers"))
    for name in ("a", "b", "code", "day"):
        assert rows[name].cast(pl.String).to_list() == TABLE[name].cast(pl.String).to_list()
    assert rows["first"].to_list() == ["A", "A", "B", "A"]
    assert rows["sum"].to_list()[:2] == [6, 9]  # one as expected, one apart from it
    assert rows["sum"][3] == 100
    assert rows["next day"].cast(pl.String).to_list()[:2] == ["2020-01-02", "2020-02-05"]
    assert rows["copy"].to_list() == rows["next day"].to_list()  # dates can be computed


def test_what_is_as_expected_has_one_code_whatever_its_base():
    codec = Codec(Schema.from_dict({"fields": FIELDS}))
    codes, _ = codec.encode(TABLE, "numbers")
    names = list(codec.names)
    usual = codec.domain_sizes[names.index("first")]
    assert codes[:, names.index("first")].tolist() == [usual, 0, 1, usual]
    total = codes[:, names.index("sum")]
    assert total[0] == total[3] != total[1]


def test_an_expectation_must_fit_its_field():
    def with_expected(name, expected):
        return [f | ({"covey": {"expected": expected}} if f["name"] == name else {}) for f in FIELDS]

    with pytest.raises(ParameterError, match="another kind of rule"):
        Schema.from_dict({"fields": with_expected("code", {"expression": "a + b"})})
    with pytest.raises(ParameterError, match="not a category"):
        Schema.from_dict({"fields": with_expected("first", {"from": ["code"], "map": {"A1": "C"}})})
    with pytest.raises(ParameterError, match="follows from itself"):
        Codec(Schema.from_dict({"fields": with_expected("a", {"expression": "sum - b"})}))


def test_every_formula_computes_what_its_expression_says():
    draw = np.random.default_rng(1)
    for formula in FORMULAS:
        k = {"clock": -1.0, "age": 46.0, "sum of three": -1.0}.get(formula.name, 60.0)
        dated = any(word in formula.expression for word in ("86400", "year(", "month(", "day(", "hour(", "days("))
        a, b, c = (draw.integers(1, 2000, 50).astype(float) for _ in range(3))
        a, b = (a * DAY, b * DAY + 3600) if formula.name == "days" else (a * DAY + 7200 if dated else a, b)
        expression = Derived.from_dict({"expression": formula.expression.format(a="a", b="b", c="c", k=int(k))}, "t")
        sources = {"a": a, "b": b, "c": c}
        used = [sources[name] for name in "abc" if f"{{{name}}}" in formula.expression]
        told, value = expression.evaluate(sources), formula.value(k, *used)
        np.testing.assert_allclose(told, np.floor(value) if formula.name == "age" else value, err_msg=formula.name)


def test_columns_say_which_codes_are_values():
    codec = Codec(Schema.from_dict({"fields": FIELDS[:2] + FIELDS[3:4] + FIELDS[5:6]}))
    columns = {column.name: column for column in columns_of(codec)}
    codes, _ = codec.encode(TABLE, "numbers")
    values = {name: columns[name].values(codes[:, j]) for j, name in enumerate(codec.names)}
    np.testing.assert_array_equal(values["a"], [1, 2, np.nan, 40])
    assert values["day"][0] == np.datetime64("2020-01-01").astype("datetime64[s]").astype(float)
    assert columns["code"].labels == ("A1", "A2", "B1")
