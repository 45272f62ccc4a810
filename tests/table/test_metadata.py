import json

import pytest

from covey.errors import ParameterError
from covey.table.codec import Codec
from covey.table.metadata import from_sdv_json, from_smartnoise_yaml
from covey.table.schema import Schema

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


def test_smartnoise_with_several_tables_needs_a_name(tmp_path):
    file = tmp_path / "meta.yaml"
    file.write_text("'':\n  s:\n    a: {x: {type: boolean}}\n    b: {y: {type: boolean}}\n")
    with pytest.raises(ParameterError, match="'a', 'b'"):
        from_smartnoise_yaml(file)
    assert from_smartnoise_yaml(file, table="b").names == ("y",)
    file.write_text("'':\n  s:\n    a: {x: {type: blob}}\n")
    with pytest.raises(ParameterError, match="'blob'"):
        from_smartnoise_yaml(file)
    with pytest.raises(ParameterError, match="yaml"):
        from_smartnoise_yaml(tmp_path / "meta.txt")


@pytest.mark.parametrize("wrap", [lambda t: t, lambda t: {"tables": {"people": t}, "METADATA_SPEC_VERSION": "V1"}])
def test_sdv_metadata(tmp_path, wrap):
    file = tmp_path / "meta.json"
    file.write_text(json.dumps(wrap({"columns": COLUMNS, "primary_key": "id"})))
    schema = from_sdv_json(file)
    kinds = {f.name: f.type for f in schema.fields}
    assert kinds == {
        "age": "integer",
        "dose": "number",
        "born": "date",
        "seen": "datetime",
        "ill": "boolean",
        "sex": "string",
        "size": "string",
        "mail": "string",
    }
    assert [f.name for f in schema.fields if f.confirmed] == ["ill", "size"]
    assert Schema.from_dict(schema.to_dict()) == schema


def test_metadata_of_another_kind_is_refused(tmp_path):
    (tmp_path / "m.json").write_text("[]")
    with pytest.raises(ParameterError, match="SDV"):
        from_sdv_json(tmp_path / "m.json")
    (tmp_path / "m.json").write_text("{}")
    with pytest.raises(ParameterError, match="tables none"):
        from_sdv_json(tmp_path / "m.json")
