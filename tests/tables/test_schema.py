from datetime import date, datetime

import pytest

from covey.errors import ParameterError
from covey.tables.codec import Codec
from covey.tables.schema import DRAFT_MARK, Field, Schema
from tests.entries import entry
from tests.tables.examples import PEOPLE, RULED, STAYING, repaired, rng, some_codes


def test_dict_and_file_round_trips(tmp_path):
    schema = Schema.from_dict(PEOPLE)
    assert Schema.from_dict(schema.to_dict()) == schema
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == schema
    assert schema["born"].minimum == date(1900, 1, 1)
    assert schema["seen"].maximum == datetime(2026, 1, 1)
    assert schema["job"].labels == ("nurse", "cook", "other")
    assert schema.to_dict()["title"] == "People"


def field(**parts):
    return {"fields": [{"name": "x", **parts}]}


def table(**parts):
    """A schema of one flag, with more said of the whole table."""
    return {**field(type="boolean"), **parts}


def numbers(**own):
    return field(type="number", covey=own)


def labels(*enum, **parts):
    return field(type="string", constraints={"enum": list(enum)}, **parts)


def between(low, high, kind="integer", **parts):
    return field(type=kind, constraints={"minimum": low, "maximum": high}, **parts)


def pair(low, high, kind="integer", **own):
    """A number beside one from 0 to 9, which it may follow."""
    fields = between(low, high, kind, covey=own)["fields"]
    return {"fields": [*fields, {"name": "b", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}}]}


WRONG_FIELDS = [
    ({"fields": []}, "no fields"),
    ({}, "fields"),
    ({"fields": [{"name": "x", "type": "boolean"}] * 2}, "'x' is declared twice"),
    ({"fields": [{"type": "boolean"}]}, "name"),
    ({"fields": ["x"]}, "object"),
    ({"fields": [{"name": " x", "type": "boolean"}]}, "white space"),
    (field(type="money"), "'money'"),
    (between(2, 1), "above maximum"),
    (field(type="integer", constraints={"minimum": 1}), "no bounds"),
    (field(type="number"), "no bounds"),
    (between("a", 1, "number"), "minimum a"),
    (between(float("nan"), 1, "number"), "nan"),
    (between(0.5, 1), "0.5"),
    (between(0, 2**60), "2^53"),
    (between("8", "9 pm", "time"), "not a value of type time"),
    (numbers(bins=[0, 2, 1]), "edges"),
    (numbers(bins=[0]), "edges"),
    (between(0, 1, "number", covey={"bins": 0}), "bins"),
    (between(0, 2, "number", covey={"bins": [0, 1]}), "edge"),
    (numbers(bins=[0, 0.2, 0.3, 2], decimals=0), "bin without"),
    (numbers(bins=[0, 1], decimals=99), "99"),
    (numbers(bins=[0, 1], default=7), "default"),
    (numbers(bins=[0, 1], special="N"), "list of texts"),
    (numbers(bins=[0, 1], special=[-99]), "in quotes"),
    (numbers(bins=[0, 1], special=["N", "N"]), "each once"),
    (field(type="boolean", covey={"special": ["N"]}), "type boolean and special"),
    (field(type="string"), "no categories"),
    (labels("a", "b", "a"), "'a' twice"),
    (labels("a", 1), "quotes"),
    (field(type="string", constraints={"enum": "ab"}), "list"),
    (labels(" a"), "blanks around"),
    (labels("\ud800"), "ud800"),
    (labels("=a", "'=a"), "apostrophe"),
    ({"fields": [{"name": n, "type": "boolean"} for n in ("=f", "'=f")]}, "namesake with an apostrophe"),
    ({"fields": [{"name": "f\0", "type": "boolean"}]}, "or NUL in it"),
    (field(type="boolean", trueValues=["'+"], falseValues=["+"]), "is written"),
    (labels("a", covey={"default": "b"}), "default 'b'"),
    (field(type="string", constraints={"enum": ["a"], "pattern": "a+"}), "pattern"),
    (field(type="boolean", constraints={"minimum": 0}), "minimum"),
    (field(type="boolean", constraints={"required": "yes"}), "true or false"),
    (field(type="boolean", covey={"binz": 3}), "'binz'"),
    (field(type="boolean", trueValues=["J"]), "trueValues"),
    (field(type="date", format="%d.%m"), "must name year, month and day"),
    (field(type="integer", format="%Y"), "only dates and times have one"),
    (field(type="number", decimalChar=";"), "decimal must be one of"),
    (field(type="number", decimalChar=",", groupChar=","), "Let them differ"),
    (field(type="number", decimalChar=1), "decimalChar of field 'x' must be text"),
    (field(type="boolean", groupChar="_"), "belongs to integer or number"),
    (field(type="date", groupChar="_"), "type date and groupChar"),
    (table(dialect=[]), "dialect of the schema must be an object"),
    (table(dialect={"delimiter": "x"}), "separator must be one of"),
    (table(dialect={"escapeChar": "x"}), "'escapeChar'"),
    (table(dialect={"headerRows": [1, 2]}), "headerRows"),
    (table(dialect={"header": False}), "must have a header"),
    (table(encoding="klingon"), "encoding 'klingon' is unknown"),
    (table(encoding=8), "encoding of the schema must be text"),
    ({**labels("-"), "missingValues": ["-"]}, "missingValues"),
    (table(missingValues=[-9]), "quotes"),
    (table(primaryKey="x"), "primaryKey"),
    (pair(float("-inf"), float("inf"), "number"), "'x'"),
    (pair(0, float("inf"), "number"), "'x'"),
    (pair(0, "1e400", "number"), "'x'"),
    (pair(0, 10**6, "number", decimals=14), "'x'"),
    (pair(0, 1, "number", decimals=400), "'x'"),
    (pair(0.1, 0.4, "number", decimals=0), "'x'"),
    (pair("0000-01-01", "2000-01-01", "date"), "'x'"),
    (pair("2000-01-01", "12000-01-01", "date"), "'x'"),
    (pair("08:00:00", "25:00:00", "time"), "'x'"),
    (pair(0, 2**53, difference_from="b", difference={"minimum": -(2**60)}), "'x'"),
    (pair(0, 9, after="b", difference={"minimum": 7, "maximum": 3}), "'x'"),
    (pair(0, 5, after="b"), "'x'"),
]
# A key that is misspelt or stands where it would not be read is refused with its place.
MISPLACED = [
    (table(rules=[]), 'It belongs under "covey" of the schema.'),
    (table(draft=True), 'under "covey" of the schema'),
    (
        table(missingvalues=["-"]),
        "'missingvalues' where covey would not read it. Write 'missingValues', at the top level",
    ),
    (table(missing_values=["-"]), "'missingValues', at the top level"),
    (table(Covey={"rules": []}), "Write 'covey', at the top level"),
    ({**table(), "primary-key": "x"}, "the schema has primary-key, which synthetic rows"),
    (table(required=["x"]), 'It belongs under "constraints" of a field.'),
    (
        field(type="boolean", missingValues=["-"]),
        "'x' has 'missingValues' where covey would not read it. It belongs at the",
    ),
    (
        field(type="integer", minimum=0, maximum=9),
        "has 'minimum' where covey would not read it. It belongs under \"cons",
    ),
    (field(type="string", Enum=["a"]), "has 'Enum' where covey would not read it. Write 'enum', under \"constraints\""),
    (field(type="string", constraints={"Enum": ["a"]}), "read it. Write 'enum', under \"constraints\" of a field"),
    (field(type="string", constraints={"enum": ["a"], "other": True}), 'It belongs under "covey" of a field'),
    (field(type="boolean", Constraints={"required": True}), "Write 'constraints', directly in an entry"),
    (field(type="boolean", default=True), 'It belongs under "covey" of a field'),
    (field(type="boolean", confirmed=False), 'It belongs under "covey" of a field'),
    (field(Type="boolean"), "Write 'type', directly in an entry"),
    (field(type="boolean", covey={"rules": []}), 'It belongs under "covey" of the schema'),
    (field(type="boolean", covey={"required": True}), 'It belongs under "constraints" of a field'),
    (field(type="boolean", true_values=["J"]), "Write 'trueValues', directly in an entry"),
    (field(type="date", Format="%d.%m.%Y"), "'format'"),
    *(
        (between(0, 1, "number", **{word: 3}), f"'{word}'")
        for word in ("bins", "other", "decimals", "constant", "ordered")
    ),
]
DERIVED = [
    ("area", "Give an object"),
    ({"from": ["area"]}, "without a rule"),
    ({"map": {"a": 1}}, "no source is named"),
    ({"from": ["aera"], "map": {"a": 1}}, "no field 'aera'"),
    ({"from": ["area"], "map": {"north": "much"}}, "not a value of type number"),
    ({"from": ["area", "pay"], "map": {"north": 1}}, "wrong map"),
    ({"from": ["area"], "map": [["north", 1], ["north", 2]]}, "two values for north"),
    ({"from": ["pay"], "edges": [0, 10], "labels": [1, 2]}, "2 edges and 2 labels"),
    ({"from": ["pay"], "edges": [10, 0], "labels": [1]}, "wrong edges"),
    ({"expression": "pay +"}, "not an expression"),
    ({"expression": "__import__('os')"}, "not a known function"),
    ({"expression": "pay.real"}, "not understood"),
    ({"expression": "[pay for pay in pay]"}, "not understood"),
    ({"expression": "years(pay)"}, "calls years with 1"),
    ({"expression": "1 + 1"}, "names no other column"),
    ({"expression": "d + 1"}, "derived from itself"),
    ({"from": ["area"], "mapp": {}}, "mapp"),
]
FOLLOWING = [
    ({"after": "nobody"}, "not another field"),
    ({"after": "left"}, "not another field"),
    ({"after": "came", "bins": 5}, "without declared bins"),
    ({"after": "came", "difference_from": "came"}, "has after and difference_from"),
    ({"difference": {"maximum": 3}}, "Say from which field"),
    ({"after": "came", "difference": {"minimum": 9, "maximum": 3}}, "above maximum"),
    ({"after": "came", "difference": {"minimum": -9}}, 'Use "difference_from".'),
    ({"after": "came", "difference": {"least": 9}}, "least"),
    ({"after": "came", "difference": 9}, "must be an object"),
    ({"after": "paid"}, "raise the later maximum"),
    ({"after": 3}, "named by text"),
    ({"after": "came", "difference": {"maximum": "3"}}, "Give numbers"),
    ({"after": "came", "difference": {"maximum": True}}, "Give numbers"),
]
RULES = [
    ({"at_most": {"fields": ["ill", "nobody"], "limit": 1}}, "'nobody'"),
    ({"at_most": {"fields": ["ill", "age"], "limit": 1}}, "'age' has type integer"),
    ({"at_most": {"fields": ["ill"], "limit": -1}}, "limit"),
    ({"at_most": {"fields": ["ill"]}}, "incomplete"),
    ({"less_equal": {"left": "age", "right": "born"}}, "'born' has type date"),
    ({"less_equal": {"left": "sex", "right": "sex"}}, "each once"),
    ({"linear": {"coefficients": {"age": 0}, "maximum": 1}}, "other than 0"),
    ({"forbid": {"sex": "x"}}, "'x'"),
    ({"forbid": {"sex": []}}, "empty"),
    ({"forbid": {"nobody": 1}}, "'nobody'"),
    ({"forbid": {"site": "north"}}, "constant"),
    ({"imply": {}}, "'imply'"),
    ({"requires": {"if": {"age": {"maximum": 14}}}}, "incomplete"),
    ({"requires": {"if": {}, "then": {"ill": True}}}, "both under if and under then"),
    ({"requires": {"if": {"age": 3}, "then": {"job": ["king"]}}}, "no category 'king'"),
    ({"requires": {"if": {"agee": 3}, "then": {"ill": True}}}, "requires rule names 'agee'"),
    ({"requires": {"if": {"ill": True}, "then": {"ill": False}}}, "each once"),
    ({"forbid": {"age": ["nothing"], "ill": True}}, "not a value of type integer"),
    ({"require": {"if": {"ill": True}, "then": {"well": False}}}, "forbid or requires"),
]
BODIES = [
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
]
TO_Y, NORTH = {"from": ["area"], "map": {"north": "y"}}, {"from": ["area"], "map": {"north": 1, "south": 2}}
NO_NORTH = {"forbid": {"b": {"minimum": 2}, "area": "north"}}
CIRCLE = [entry("b", "integer", 0, 9), entry("a", "integer", 0, 9, expected={"expression": "s - b"})]
CIRCLE.append(entry("s", "integer", 0, 18, expected={"expression": "a + b"}))
AREA = Field("area", "string", enum=("north", "south"), required=True).to_dict()
PAY = Field("pay", "integer", 0, 999, special=("N",)).to_dict()
FAR = entry("far", "number", derived={"expression": "pay * 2"})
TENTHS = [Field(name, "number", 0, 1, decimals=2, required=True).to_dict() for name in "ab"]
STAY = [Field(name, "date", "2020-01-01", f"{year}-12-31").to_dict() for name, year in STAYING.items()]


def derived(what, kind="number"):
    return {"fields": [AREA, PAY, {"name": "d", "type": kind, "covey": {"derived": what}}]}


def two(a, b):
    """A field and another one that may follow from it."""
    return {"fields": [entry("a", *a[:3], **a[3]), entry("b", *b[:3], **b[3])]}


DAYS = ("date", "2020-01-01", "2020-02-01")
AFTER = [
    (two(("integer", 0, 9, {"after": "b"}), ("integer", 0, 9, {"after": "a"})), "follows itself"),
    (two(("integer", 0, 9, {}), (*DAYS, {"after": "a"})), "Both need one type"),
    (two(("number", 0, 9, {"decimals": 3}), ("number", 0, 9, {"decimals": 1, "after": "a"})), "as many"),
    ({"fields": [AREA, entry("b", "string", enum=["x"], after="area")]}, "must be a number, date or time"),
    ({"fields": [PAY, entry("b", "string", enum=["x"], expected={"expression": "pay"})]}, "another kind of rule"),
    ({"fields": [AREA, entry("b", "string", enum=["x"], expected=TO_Y)]}, "not a category"),
    (
        {"fields": [PAY, FAR, entry("b", "number", 0, 9, expected={"expression": "far"})]},
        "'far', which is not measured",
    ),
    ({"fields": [PAY, entry("b", "number", 0, 9, expected={"expression": "pya"})]}, "Did you mean 'pay'"),
    ({"fields": [entry("ill", "boolean")], "missingValues": ["false"]}, "'false', which missingValues"),
    ({"fields": [AREA, entry("b", "number", derived=NORTH)], "covey": {"rules": [NO_NORTH]}}, "derived from others"),
    *((labels("A1", "B2", covey={"levels": levels}), "levels") for levels in (0, True, [1, 3])),
    (labels("A1", "B2", covey={"levels": "chapters"}), "no field 'chapters'"),
    (labels("A1", "B2", covey={"levels": 1, "ordered": True}), "levels"),
    (between(0, 9, covey={"levels": 1}), "levels"),
    ({"fields": [AREA, entry("code", "string", enum=["A1"], levels="area")]}, "levels"),
]
WRONG = {
    "field": WRONG_FIELDS,
    "after": AFTER,
    "circle": [({"fields": CIRCLE}, "follows from itself")],
    "place": MISPLACED,
    "derived": [(derived(what), words) for what, words in DERIVED]
    + [(derived({"expression": "pay"}, "string"), "Expressions give numbers")],
    "follows": [({"fields": [STAY[0], STAY[1] | {"covey": own}, STAY[2]]}, words) for own, words in FOLLOWING],
    "rule": [({**PEOPLE, "covey": {"rules": [rule]}}, words) for rule, words in RULES],
    "body": [
        ({"fields": [*TENTHS, {"name": "ill", "type": "boolean"}], "covey": {"rules": [{"body": body}]}}, words)
        for body, words in BODIES
    ],
}


@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_schema_is_a_parameter_error_that_names_it(kind):
    """Rows of a body are looked for where a codec is made; all else is known when the schema is read."""
    read = Codec if kind in ("body", "circle") else lambda schema: schema
    for data, words in WRONG[kind]:
        with pytest.raises(ParameterError) as error:
            read(Schema.from_dict(data))
        assert words in str(error.value), data
        assert error.value.exit_code == 2


def test_a_draft_is_refused_until_each_field_is_confirmed(tmp_path):
    schema = Schema.draft({"age": [3, 40, None], "sex": ["f", "m", "f"]})
    assert schema.to_dict()["covey"]["draft"] == DRAFT_MARK
    with pytest.raises(ParameterError, match=r"'age', 'sex'.*covey confirm SCHEMA age sex$"):
        schema.require_confirmed()
    half = schema.confirm(["age"])
    half.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == half
    with pytest.raises(ParameterError, match="for 'sex'"):
        half.require_confirmed()
    done = half.confirm(["sex"])
    done.require_confirmed()
    assert "covey" not in done.to_dict()
    assert schema.confirm() == schema.confirm(["sex"])  # limits from the data need their names
    assert schema.confirm(schema.names) == done
    with pytest.raises(ParameterError, match="'nobody'"):
        schema.confirm(["nobody"])
    flag = {"name": "a", "type": "boolean", "covey": {"confirmed": True}}  # as a file may say it
    Schema.from_dict({"fields": [flag], "covey": {"draft": DRAFT_MARK}}).require_confirmed()


def test_validation_sees_each_broken_rule_and_rows_that_obey_are_left_alone():
    schema = Schema.from_dict(RULED)
    codec = Codec(schema)
    free = Codec(Schema.from_dict({**RULED, "covey": {}}))
    raw = free.decode(some_codes(free, 2000, 1), rng())
    assert len(schema.validate(raw)) == 7
    good = repaired(codec, raw, rng())
    again = repaired(codec, good, rng(9))
    assert all(good[name].equals(again[name]) for name in good)


def test_validation_names_what_is_wrong():
    schema = Schema.from_dict(PEOPLE)
    codec = Codec(schema)
    good = codec.decode(some_codes(codec, 50, 0), rng())
    assert schema.validate(good) == []
    short = {name: series for name, series in good.items() if name != "age"}
    assert schema.validate(short) == ["column 'age' is missing"]
    wrong = {"clipped": ("age", 300), "unparseable": ("age", "old"), "missing": ("sex", None)}
    wrong |= {"unknown": ("job", "king"), "decimals": ("dose", 0.123), "constant": ("site", "south")}
    for word, (name, value) in wrong.items():
        told = schema.validate({**good, name: [value] * 50})
        assert any(name in line and word in line for line in told), (name, word)


def test_a_schema_shows_its_columns_and_types():
    few = Schema((Field("age", "integer", 0, 99), Field("ward", "string", enum=("a", "b"))))
    assert repr(few) == "Schema of 2 columns\n  age: integer\n  ward: string"
    many = Schema(tuple(Field(f"c{j}", "boolean") for j in range(1021)))
    assert repr(many).splitlines()[0] == "Schema of 1,021 columns"
    assert repr(many).splitlines()[-2:] == ["  c19: boolean", "  … and 1,001 more columns"]
