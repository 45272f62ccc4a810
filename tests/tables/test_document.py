import json
from datetime import date

import pytest

from covey.errors import ParameterError
from covey.tables.codec import Codec
from covey.tables.metadata import from_sdv_json, from_smartnoise_yaml
from covey.tables.schema import Schema


def test_yaml_is_read(tmp_path):
    file = tmp_path / "s.yaml"
    limits = "{minimum: 2020-01-01, maximum: 2020-12-31}"
    file.write_text(f"made: 2024-05-01\nfields:\n- {{name: d, type: date, constraints: {limits}}}\n")
    assert Schema.load(file)["d"].minimum == date(2020, 1, 1)
    assert json.loads(json.dumps(Schema.load(file).to_dict()))["made"] == "2024-05-01"


PART = {"name": "x", "type": "number", "constraints": {"minimum": 0, "maximum": 5e-324}}
BOMB = "a0: &a0 [x]\n" + "\n".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12))
HOSTILE = {
    "broken json": ("s.json", "{", "is not"),
    "broken yaml": ("s.yaml", "a: [", "is not"),
    "no file": ("none.json", None, "there is no file .*none.json"),
    "digits": ("s.json", '{"fields": [' + "9" * 5000 + "]}", "s.json"),  # Python reads no integer of so many digits
    "deep json": ("s.json", "[" * 100_000, "s.json"),
    "deep yaml": ("s.yaml", "[" * 5_000 + "]" * 5_000, "s.yaml"),
    "bool": ("s.yaml", "a: !!bool perhaps", "s.yaml"),
    "int": ("s.yaml", "a: !!int ''", "s.yaml"),
    "timestamp": ("s.yaml", "a: !!timestamp soon", "s.yaml"),
    "day": ("s.yaml", "a: 2024-02-31", "s.yaml"),
    "endless": ("s.yaml", "fields: &a [*a]", "s.yaml"),
    "bomb": ("s.yaml", BOMB, "s.yaml"),
    # What no bundle could hold, which was seen after the charge.
    "set": ("s.yaml", "x: !!set {a}", "cannot hold: set"),
    "date as a key": ("s.yaml", "2024-05-01: x", "cannot hold: keys"),
    "hexadecimal": ("s.yaml", f"x: 0x{'f' * 5000}", "cannot hold"),
    "beyond floats": ("s.json", f'{{"x": {10**400}}}', "401 digits"),
    "half a letter": ("s.json", r'{"x": "\udce9"}', r"'.udce9', which is no character of UTF-8"),
    "bins": ("s.json", json.dumps({"fields": [{**PART, "covey": {"bins": 10**9}}]}), "at most 100000"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_broken_or_hostile_file_is_a_parameter_error_of_ordinary_length(tmp_path, case):
    name, text, words = HOSTILE[case]
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(ParameterError, match=words) as error:
        Schema.load(tmp_path / name)
    assert len(str(error.value)) < 1000


def test_foreign_properties_are_kept():
    assert Schema.from_dict({"fields": [PART]})["x"].to_dict() == PART
    notes = {"title": "X", "description": "…", "example": 3, "rdfType": "http://x.org/Thing", "unit": "mg", "rule": 1}
    field = {"name": "x", "type": "boolean", "format": "default", **notes}
    data = {"fields": [field], "name": "visits", "type": "table", "format": "csv", "$schema": "…", **notes}
    assert Schema.from_dict(Schema.from_dict(data).to_dict()).to_dict() == {**data, "missingValues": [""]}


SMARTNOISE = """
"":
  PUMS:
    PUMS:
      max_ids: 1
      row_privacy: true
      rows: 1000
      age: {type: int, lower: 0, upper: 100, nullable: false}
      income: {type: float, lower: 0, upper: 500000}
      weight: {type: float}
      married: {type: boolean}
      sex: {type: string, cardinality: 2}
      seen: {type: datetime}
      pid: {type: int, private_id: true}
"""

COLUMNS = {
    "id": {"sdtype": "id"},
    "age": {"sdtype": "numerical", "computer_representation": "Int64"},
    "dose": {"sdtype": "numerical"},
    "born": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d"},
    "seen": {"sdtype": "datetime", "datetime_format": "%Y-%m-%d %H:%M:%S"},
    "ill": {"sdtype": "boolean"},
    "sex": {"sdtype": "categorical"},
    "size": {"sdtype": "categorical", "order": ["S", "M", "L"]},
    "mail": {"sdtype": "email", "pii": True},
}


def test_smartnoise_metadata(tmp_path):
    file = tmp_path / "meta.yaml"
    file.write_text(SMARTNOISE)
    schema = from_smartnoise_yaml(file)
    assert schema.names == ("age", "income", "weight", "married", "sex", "seen")
    assert [f.confirmed for f in schema.fields] == [True, True, False, True, False, False]
    assert (schema["age"].minimum, schema["age"].maximum, schema["age"].required) == (0, 100, True)
    assert Schema.from_dict(schema.to_dict()) == schema
    with pytest.raises(ParameterError, match="'weight', 'sex', 'seen'"):
        schema.require_confirmed()
    with pytest.raises(ParameterError, match="no bounds"):
        Codec(schema)


BOTH = "'':\n  s:\n    a: {x: {type: boolean}}\n    b: {y: {type: boolean}}\n"


def test_smartnoise_with_several_tables_needs_a_name_and_metadata_of_another_kind_are_refused(tmp_path):
    for read, name, text, words in (
        (from_smartnoise_yaml, "meta.yaml", BOTH, "'a', 'b'"),
        (from_smartnoise_yaml, "blob.yaml", "'':\n  s:\n    a: {x: {type: blob}}\n", "'blob'"),
        (from_smartnoise_yaml, "meta.txt", BOTH, "yaml"),
        (from_sdv_json, "list.json", "[]", "SDV"),
        (from_sdv_json, "none.json", "{}", "tables none"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(ParameterError, match=words):
            read(tmp_path / name)


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: {"tables": {"people": t}, "METADATA_SPEC_VERSION": "V1"}])
def test_sdv_metadata(tmp_path, wrap):
    file = tmp_path / "meta.json"
    file.write_text(json.dumps(wrap({"columns": COLUMNS, "primary_key": "id"})))
    schema = from_sdv_json(file)
    assert " ".join(schema.names) == "age dose born seen ill sex size mail"
    kinds = ["integer", "number", "date", "datetime", "boolean", "string", "string", "string"]
    assert [f.type for f in schema.fields] == kinds
    assert [f.name for f in schema.fields if f.confirmed] == ["ill", "size"]
    assert Schema.from_dict(schema.to_dict()) == schema
