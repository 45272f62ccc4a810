from datetime import date, datetime

import pytest

from covey.errors import ParameterError
from covey.table.schema import DRAFT_MARK, Field, Forbid, Schema

PEOPLE = {
    "title": "People",
    "fields": [
        {"name": "sex", "type": "string", "constraints": {"enum": ["f", "m"], "required": True}},
        {"name": "job", "type": "string", "constraints": {"enum": ["nurse", "cook"]}, "covey": {"other": True}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}, "covey": {"bins": 24}},
        {"name": "dose", "type": "number", "covey": {"bins": [0.0, 0.5, 2.5], "decimals": 2, "default": 1.0}},
        {"name": "born", "type": "date", "constraints": {"minimum": "1900-01-01", "maximum": "2026-01-01"}},
        {
            "name": "seen",
            "type": "datetime",
            "constraints": {"minimum": "2020-01-01T00:00:00", "maximum": "2026-01-01"},
        },
        {"name": "ill", "type": "boolean", "title": "Is ill"},
        {"name": "well", "type": "boolean"},
        {"name": "site", "type": "string", "covey": {"constant": "north"}},
    ],
    "missingValues": ["", "-"],
    "covey": {
        "rules": [
            {"at_most": {"fields": ["ill", "well"], "limit": 1}},
            {"less_equal": {"left": "dose", "right": "age"}},
            {"linear": {"coefficients": {"age": 1.0, "dose": 10.0}, "maximum": 130.0}},
            {"forbid": {"age": {"maximum": 15}, "job": ["cook", None]}},
        ]
    },
}


def test_dict_and_file_round_trips(tmp_path):
    schema = Schema.from_dict(PEOPLE)
    assert Schema.from_dict(schema.to_dict()) == schema
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == schema
    assert schema["born"].minimum == date(1900, 1, 1)
    assert schema["seen"].maximum == datetime(2026, 1, 1)
    assert schema["job"].labels == ("nurse", "cook", "other")
    assert schema.to_dict()["title"] == "People"


def test_yaml_is_read(tmp_path):
    file = tmp_path / "s.yaml"
    file.write_text("fields:\n- {name: d, type: date, constraints: {minimum: 2020-01-01, maximum: 2020-12-31}}\n")
    assert Schema.load(file)["d"].minimum == date(2020, 1, 1)


def field(**parts):
    return {"fields": [{"name": "x", **parts}]}


def ruled(*rules):
    return {**PEOPLE, "covey": {"rules": list(rules)}}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"fields": []}, "no fields"),
        ({}, "fields"),
        ({"fields": [{"name": "x", "type": "boolean"}] * 2}, "'x' is declared twice"),
        ({"fields": [{"type": "boolean"}]}, "name"),
        ({"fields": ["x"]}, "object"),
        (field(type="money"), "'money'"),
        (field(type="integer", constraints={"minimum": 2, "maximum": 1}), "above maximum"),
        (field(type="integer", constraints={"minimum": 1}), "no bounds"),
        (field(type="number"), "no bounds"),
        (field(type="number", constraints={"minimum": "a", "maximum": 1}), "minimum a"),
        (field(type="number", constraints={"minimum": float("nan"), "maximum": 1}), "nan"),
        (field(type="integer", constraints={"minimum": 0.5, "maximum": 1}), "0.5"),
        (field(type="integer", constraints={"minimum": 0, "maximum": 2**60}), "2^53"),
        (field(type="number", covey={"bins": [0, 2, 1]}), "edges"),
        (field(type="number", covey={"bins": [0]}), "edges"),
        (field(type="number", covey={"bins": 0}, constraints={"minimum": 0, "maximum": 1}), "bins"),
        (field(type="number", covey={"bins": [0, 1]}, constraints={"minimum": 0, "maximum": 2}), "edge"),
        (field(type="number", covey={"bins": [0, 0.2, 0.3, 2], "decimals": 0}), "bin without"),
        (field(type="number", covey={"bins": [0, 1], "decimals": 99}), "99"),
        (field(type="number", covey={"bins": [0, 1], "default": 7}), "default"),
        (field(type="string"), "no categories"),
        (field(type="string", constraints={"enum": ["a", "b", "a"]}), "'a' twice"),
        (field(type="string", constraints={"enum": ["a", 1]}), "quotes"),
        (field(type="string", constraints={"enum": "ab"}), "list"),
        (field(type="string", constraints={"enum": [" a"]}), "white space"),
        (field(type="string", constraints={"enum": ["\ud800"]}), "ud800"),
        (field(type="string", constraints={"enum": ["=a", "'=a"]}), "apostrophe"),
        ({"fields": [{"name": " x", "type": "boolean"}]}, "white space"),
        (field(type="string", constraints={"enum": ["a"]}, covey={"default": "b"}), "default 'b'"),
        (field(type="string", constraints={"enum": ["a"], "pattern": "a+"}), "pattern"),
        (field(type="boolean", constraints={"minimum": 0}), "minimum"),
        (field(type="boolean", constraints={"required": "yes"}), "true or false"),
        (field(type="boolean", covey={"binz": 3}), "'binz'"),
        (field(type="boolean", trueValues=["J"]), "trueValues"),
        (
            field(type="date", format="%d.%m.%Y", constraints={"minimum": "2020-01-01", "maximum": "2021-01-01"}),
            "format",
        ),
        ({**field(type="string", constraints={"enum": ["-"]}), "missingValues": ["-"]}, "missingValues"),
        ({**field(type="boolean"), "missingValues": [-9]}, "quotes"),
        ({**field(type="boolean"), "primaryKey": "x"}, "primaryKey"),
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
def test_a_wrong_schema_is_a_parameter_error_that_names_it(data, words):
    with pytest.raises(ParameterError) as error:
        Schema.from_dict(data)
    assert words in str(error.value)
    assert error.value.exit_code == 2


@pytest.mark.parametrize(("name", "text"), [("s.json", "{"), ("s.yaml", "a: [")])
def test_a_broken_file_is_a_parameter_error(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ParameterError, match="is not"):
        Schema.load(tmp_path / name)
    with pytest.raises(ParameterError, match="cannot read"):
        Schema.load(tmp_path / "none.json")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.json", '{"fields": [' + "9" * 5000 + "]}"),  # Python reads no integer of so many digits
        ("s.json", "[" * 100_000),
        ("s.yaml", "[" * 5_000 + "]" * 5_000),
        ("s.yaml", "a: !!bool perhaps"),
        ("s.yaml", "a: !!int ''"),
        ("s.yaml", "a: !!timestamp soon"),
        ("s.yaml", "a: 2024-02-31"),
        ("s.yaml", "fields: &a [*a]"),
        (
            "s.yaml",
            "a0: &a0 [x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)),
        ),
    ],
    ids=["digits", "deep json", "deep yaml", "bool", "int", "timestamp", "day", "endless", "bomb"],
)
def test_a_hostile_file_is_a_parameter_error_of_ordinary_length(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    with pytest.raises(ParameterError) as error:
        Schema.load(tmp_path / name)
    assert len(str(error.value)) < 1000


def test_bins_by_default_count_edges_and_small_ranges():
    assert Field("x", "integer", 0, 9).categories == 11
    assert Field("x", "integer", 0, 100).categories == 21
    assert Field("x", "integer", 0, 100, bins=7, required=True).categories == 7
    assert Field("x", "number", 0, 1, decimals=1).categories == 12
    assert Field("x", "date", date(2020, 1, 1), date(2020, 1, 3)).categories == 4
    edges = Field("x", "integer", bins=(0, 18, 65, 120)).axis
    assert edges.starts.tolist() == [0, 18, 65]
    assert edges.ends.tolist() == [17, 64, 120]
    assert Field("x", "number", 0.29, 0.31, decimals=2).axis.low == 29  # not 28, though 0.29 · 100 < 29 as floats


def test_a_draft_is_refused_until_each_field_is_confirmed(tmp_path):
    schema = Schema.from_frame_draft({"age": [3, 40, None], "sex": ["f", "m", "f"]})
    assert schema.to_dict()["covey"]["draft"] == DRAFT_MARK
    with pytest.raises(ParameterError, match=r"'age', 'sex'.*covey confirm SCHEMA FIELD"):
        schema.require_confirmed()
    half = schema.confirm(["age"])
    half.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == half
    with pytest.raises(ParameterError, match="for 'sex'"):
        half.require_confirmed()
    done = half.confirm(["sex"])
    done.require_confirmed()
    assert "covey" not in done.to_dict()
    assert schema.confirm() == done
    with pytest.raises(ParameterError, match="'nobody'"):
        schema.confirm(["nobody"])


def test_an_incomplete_field_waits_unconfirmed_and_cannot_be_confirmed():
    schema = Schema((Field("x", "number", confirmed=False),))
    with pytest.raises(ParameterError, match="no bounds"):
        schema.confirm()


def test_a_flag_in_the_file_confirms():
    data = {"fields": [{"name": "a", "type": "boolean", "covey": {"confirmed": True}}], "covey": {"draft": DRAFT_MARK}}
    Schema.from_dict(data).require_confirmed()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({**field(type="boolean"), "rules": []}, 'It belongs under "covey" of the schema.'),
        ({**field(type="boolean"), "draft": True}, 'under "covey" of the schema'),
        (
            {**field(type="boolean"), "missingvalues": ["-"]},
            "has 'missingvalues' where covey would not read it. Write 'missingValues', at the top level",
        ),
        ({**field(type="boolean"), "missing_values": ["-"]}, "'missingValues', at the top level"),
        ({**field(type="boolean"), "Covey": {"rules": []}}, "Write 'covey', at the top level"),
        ({**field(type="boolean"), "primary-key": "x"}, "the schema has primary-key, which synthetic rows"),
        ({**field(type="boolean"), "required": ["x"]}, 'It belongs under "constraints" of a field.'),
        (
            field(type="boolean", missingValues=["-"]),
            "field 'x' has 'missingValues' where covey would not read it. It belongs at the top level",
        ),
        (
            field(type="integer", minimum=0, maximum=9),
            "has 'minimum' where covey would not read it. It belongs under \"constraints\" of a field",
        ),
        (
            field(type="string", Enum=["a"]),
            "has 'Enum' where covey would not read it. Write 'enum', under \"constraints\" of a field",
        ),
        (
            field(type="string", constraints={"Enum": ["a"]}),
            "has 'Enum' where covey would not read it. Write 'enum', under \"constraints\" of a field",
        ),
        (field(type="string", constraints={"enum": ["a"], "other": True}), 'It belongs under "covey" of a field'),
        (field(type="boolean", Constraints={"required": True}), "Write 'constraints', directly in an entry"),
        (field(type="boolean", default=True), 'It belongs under "covey" of a field'),
        (field(type="boolean", confirmed=False), 'It belongs under "covey" of a field'),
        (field(Type="boolean"), "Write 'type', directly in an entry"),
        (field(type="boolean", covey={"rules": []}), 'It belongs under "covey" of the schema'),
        (field(type="boolean", covey={"required": True}), 'It belongs under "constraints" of a field'),
        (field(type="boolean", true_values=["J"]), "field 'x' has true_values, which covey does not read"),
        (field(type="date", Format="%d.%m.%Y"), "'format'"),
        *(
            (field(type="number", constraints={"minimum": 0, "maximum": 1}, **{word: 3}), f"'{word}'")
            for word in ("bins", "other", "decimals", "constant", "ordered")
        ),
    ],
)
def test_a_misplaced_or_misspelt_key_is_refused_with_its_place(data, words):
    with pytest.raises(ParameterError) as error:
        Schema.from_dict(data)
    assert words in str(error.value)
    assert error.value.exit_code == 2


def test_foreign_properties_are_kept():
    notes = {
        "title": "X",
        "description": "…",
        "example": 3,
        "rdfType": "http://schema.org/Thing",
        "unit": "mg",
        "rule": 1,
    }
    data = field(type="boolean", format="default", **notes) | {
        "name": "visits",
        "type": "table",
        "format": "csv",
        "$schema": "…",
        **notes,
    }
    assert Schema.from_dict(Schema.from_dict(data).to_dict()).to_dict() == {**data, "missingValues": [""]}


def test_a_text_is_no_list_of_categories():
    for wrong in ("abc", {"a", "b"}, 3):
        with pytest.raises(ParameterError, match="Give a list of categories"):
            Field("w", "string", enum=wrong)
    assert Field("w", "string", enum=["a", "b"]) == Field("w", "string", enum=("a", "b"))


def test_forbid_takes_one_value_or_a_list():
    rule = Schema.from_dict(ruled({"forbid": {"sex": "f", "ill": True}})).rules[0]
    assert isinstance(rule, Forbid)
    assert rule.conditions[0][1].values == ("f",)
