from datetime import date, datetime

import pytest

from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.schema import DRAFT_MARK, Schema
from tests.table.examples import PEOPLE, RULED, field, repaired, rng, some_codes


def test_dict_and_file_round_trips(tmp_path):
    schema = Schema.from_dict(PEOPLE)
    assert Schema.from_dict(schema.to_dict()) == schema
    schema.save(tmp_path / "s.json")
    assert Schema.load(tmp_path / "s.json") == schema
    assert schema["born"].minimum == date(1900, 1, 1)
    assert schema["seen"].maximum == datetime(2026, 1, 1)
    assert schema["job"].labels == ("nurse", "cook", "other")
    assert schema.to_dict()["title"] == "People"


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
        (field(type="number", covey={"bins": [0, 1], "special": "N"}), "list of texts"),
        (field(type="number", covey={"bins": [0, 1], "special": [-99]}), "in quotes"),
        (field(type="number", covey={"bins": [0, 1], "special": ["N", "N"]}), "each once"),
        (field(type="boolean", covey={"special": ["N"]}), "type boolean and special"),
        (field(type="string", constraints={"enum": ["a", "b", "a"]}), "'a' twice"),
        (field(type="string", constraints={"enum": ["a", 1]}), "quotes"),
        (field(type="string", constraints={"enum": "ab"}), "list"),
        (field(type="string", constraints={"enum": [" a"]}), "blanks around"),
        (field(type="string", constraints={"enum": ["\ud800"]}), "ud800"),
        (field(type="string", constraints={"enum": ["=a", "'=a"]}), "apostrophe"),
        ({"fields": [{"name": " x", "type": "boolean"}]}, "white space"),
        (field(type="string", constraints={"enum": ["a"]}, covey={"default": "b"}), "default 'b'"),
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
        ({**field(type="boolean"), "dialect": []}, "dialect of the schema must be an object"),
        ({**field(type="boolean"), "dialect": {"delimiter": "x"}}, "separator must be one of"),
        ({**field(type="boolean"), "dialect": {"escapeChar": "x"}}, "'escapeChar'"),
        ({**field(type="boolean"), "dialect": {"headerRows": [1, 2]}}, "headerRows"),
        ({**field(type="boolean"), "dialect": {"header": False}}, "must have a header"),
        ({**field(type="boolean"), "encoding": "klingon"}, "encoding 'klingon' is unknown"),
        ({**field(type="boolean"), "encoding": 8}, "encoding of the schema must be text"),
        ({**field(type="string", constraints={"enum": ["-"]}), "missingValues": ["-"]}, "missingValues"),
        ({**field(type="boolean"), "missingValues": [-9]}, "quotes"),
        ({**field(type="boolean"), "primaryKey": "x"}, "primaryKey"),
    ],
)
def test_a_wrong_schema_is_a_parameter_error_that_names_it(data, words):
    with pytest.raises(ParameterError) as error:
        Schema.from_dict(data)
    assert words in str(error.value)
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


def test_a_flag_in_the_file_confirms():
    data = {"fields": [{"name": "a", "type": "boolean", "covey": {"confirmed": True}}], "covey": {"draft": DRAFT_MARK}}
    Schema.from_dict(data).require_confirmed()


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
    for name, value, word in [
        ("age", 300, "clipped"),
        ("age", "old", "unparseable"),
        ("sex", None, "missing"),
        ("job", "king", "unknown"),
        ("dose", 0.123, "decimals"),
        ("site", "south", "constant"),
    ]:
        wrong = {**good, name: [value] * 50}
        assert any(name in line and word in line for line in schema.validate(wrong)), (name, word)
