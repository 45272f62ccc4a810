"""Drafts of whole tables: messy files, the public census excerpt, and nothing of a person in what is written."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from covey.errors import InputError, ParameterError
from covey.table.codec import Codec
from covey.table.column_drafts import may_identify
from covey.table.dialects import Dialect
from covey.table.schema import Schema
from covey.table.sources import read_table
from tests.table.test_workbook import workbook

PUBLIC = Path(__file__).parents[3] / "shared" / "data"


def people(n=200):
    g = np.random.default_rng(3)
    return {
        "patient": [f"MRN-{j:05}" for j in range(n)],
        "mail": [f"p{j}@example.org" for j in range(n)],
        "name": [f"Eve Adams{j}" for j in range(n)],
        "remark": [f"she came on day {j} and was quite tired" for j in range(n)],
        "sex": g.choice(["f", "m"], n).tolist(),
        "ward": g.choice(["surgery", "medicine", "maternity"], n).tolist(),
        "age": g.integers(1, 98, n).tolist(),
        "cost": (g.integers(10_000, 99_999, n) / 100).tolist(),
        "seen": [f"2024-{j % 12 + 1:02}-{j % 26 + 2:02}" for j in range(n)],
    }


def test_a_draft_holds_nothing_that_points_to_a_person(tmp_path):
    table = people()
    table["ward"][17] = "Eve's own room"
    pd.DataFrame(table).to_csv(tmp_path / "t.csv", index=False)
    schema, notes = Schema.draft_with_notes(tmp_path / "t.csv")
    assert schema.names == ("sex", "ward", "age", "cost", "seen")
    schema.save(tmp_path / "s.json")
    words = (tmp_path / "s.json").read_text() + "".join(map(str, notes)) + json.dumps(schema.to_dict())
    for column in ("patient", "mail", "name", "remark"):
        assert not any(cell in words for cell in table[column])
    assert "Eve" not in words
    extremes = [str(f(table[c])) for c in ("age", "cost", "seen") for f in (min, max)]
    assert not any(f'"{cell}"' in words or f" {cell}," in words for cell in extremes if len(cell) > 2)
    assert [note.field for note in notes] == list(table)
    assert all(note.choice and note.reason for note in notes)


def test_names_that_many_rows_share_are_left_out_all_the_same():
    """Two hundred names in five thousand rows are no near-unique column, and each is a person's."""
    g = np.random.default_rng(2)
    names = [f"{a} {b}" for a in ("Ada", "Bela", "Chen", "Dina") for b in (f"Smith{j}" for j in range(50))]
    schema, notes = Schema.draft_with_notes({"name": g.choice(names, 5000), "ward": g.choice(["a", "b"], 5000)})
    assert schema.names == ("ward",)
    assert "names of persons" in str(notes[0])
    assert "Smith" not in json.dumps(schema.to_dict()) + "".join(map(str, notes))


def test_a_first_name_is_left_out_and_a_date_of_birth_carries_a_warning_of_its_own():
    g = np.random.default_rng(2)
    days = [f"{year}-0{month}-15" for year in range(1950, 1999) for month in range(1, 10)]
    table = {
        "first": g.choice([f"Ada{j}" for j in range(60)], 5000),
        "dob": g.choice(days, 5000),
        "seen": g.choice(days, 5000),
        "last": g.choice(["Smith", "Jones"], 5000),
    }
    schema, notes = Schema.draft_with_notes(table)
    assert schema.names == ("dob", "seen", "last")
    assert "names of persons" in str(notes[0])
    assert schema["dob"].warning.startswith("its name suggests dates of birth")
    assert [may_identify(field.warning) for field in schema.fields] == [True, False, True]


def test_what_carries_a_warning_is_confirmed_by_its_name_alone(tmp_path):
    pd.DataFrame(people()).to_csv(tmp_path / "t.csv", index=False)
    schema = Schema.draft(tmp_path / "t.csv")
    assert set(schema.warnings) == {"age", "cost", "seen"}
    some = schema.confirm()
    assert [field.name for field in some.fields if field.confirmed] == ["sex", "ward"]
    with pytest.raises(ParameterError, match="'age', 'cost', 'seen'"):
        some.require_confirmed()
    some.save(tmp_path / "s.json")
    done = Schema.load(tmp_path / "s.json").confirm(["age", "cost", "seen"])
    done.require_confirmed()
    assert "warning" not in json.dumps(done.to_dict())
    codes, log = Codec(done).encode(tmp_path / "t.csv")
    assert len(codes) == 200
    assert not any(seen.unknown or seen.unparseable or seen.clipped for seen in log.columns.values())


def lines(*rows, end="\n"):
    return end.join([*rows, ""])


DAYS = [f"{j % 28 + 1:02}.{j % 12 + 1:02}.2024" for j in range(60)]
MESSY = {
    "semicolons": (lines("a;b", *(f"{j % 7};{j},5" for j in range(60))), {"a": "string", "b": "number"}),
    "tabs": (lines("a\tb", *(f"{j % 7}\t{3 * j}" for j in range(60))), {"a": "string", "b": "integer"}),
    "pipes": (lines("a|b", *(f"x{j % 7}|{3 * j}" for j in range(60))), {"a": "string", "b": "integer"}),
    "grouped": (
        lines("a,b", *(f'{j % 7},"{j % 9 + 1},{j + 100}.75"' for j in range(60))),
        {"a": "string", "b": "number"},
    ),
    "dates": (lines("a,d", *(f"{j % 7},{DAYS[j]}" for j in range(60))), {"a": "string", "d": "date"}),
    "american dates": (
        lines("a,d", *(f"{j % 7},{j % 12 + 1}/{j % 28 + 1}/2024" for j in range(60))),
        {"a": "string", "d": "date"},
    ),
    "offsets": (
        lines("a,t", *(f"{j % 7},2024-03-{j % 28 + 1:02}T10:15:00+02:00" for j in range(60))),
        {"a": "string", "t": "datetime"},
    ),
    "clock": (lines("a,t", *(f"{j % 7},{j % 24}:15" for j in range(60))), {"a": "string", "t": "time"}),
    "codes among numbers": (
        lines("a,x", *(f"{j % 7},{'N' if j % 5 == 0 else 7 * j % 59}" for j in range(60))),
        {"a": "string", "x": "integer"},
    ),
    "zip codes": (lines("a,zip", *(f"{j % 7},{j % 6:05}" for j in range(60))), {"a": "string", "zip": "string"}),
    "preamble": (
        lines("Costs of 2024", "", "all wards", "a,b", *(f"{j % 7},{3 * j}" for j in range(60))),
        {"a": "string", "b": "integer"},
    ),
    "for spreadsheets": (
        lines("sep=;", "a;b", *(f"{j % 7};{3 * j}" for j in range(60))),
        {"a": "string", "b": "integer"},
    ),
    "Windows": (
        lines("a;Größe", *(f"Zoë{j % 3};{j},5" for j in range(60)), end="\r\n"),
        {"a": "string", "Größe": "number"},
    ),
    "blank columns": (lines("a,b,", *(f"{j % 7},{3 * j}," for j in range(60))), {"a": "string", "b": "integer"}),
    "long numbers": (lines("a,b", *(f"{j % 7},{10**17 + j}" for j in range(60))), {"a": "string"}),
    "flags": (
        lines("a,b", *(f"{j % 7},{'Yes' if j % 2 else 'No'}" for j in range(60))),
        {"a": "string", "b": "boolean"},
    ),
}


@pytest.mark.parametrize("name", MESSY)
def test_messy_files_draft_themselves_and_are_read_as_drafted(tmp_path, name):
    text, types = MESSY[name]
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode("windows-1252" if name == "Windows" else "utf-8"))
    schema, notes = Schema.draft_with_notes(path)
    assert {field.name: field.type for field in schema.fields} == types
    again = Schema.from_dict(json.loads(json.dumps(schema.to_dict())))
    codes, log = Codec(again.confirm(again.names)).encode(path)
    assert len(codes) == 60
    assert not any(c.unknown or c.unparseable or c.clipped or c.missing for c in log.columns.values())
    assert (notes[0].field is None) == bool(schema.to_dict().keys() & {"dialect", "encoding"})


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (lines("a,b,c", "years,kg,x", *(f"{j},{3 * j},u" for j in range(60))), "second header"),
        (lines("a,b", *(f"w{j % 3},{3 * j}" for j in range(60)), "TOTAL,5310"), "totals"),
        (lines("id,name", *(f"{j},Eve {j}" for j in range(60))), "nothing is left"),
    ],
)
def test_rows_that_are_no_records_are_refused_when_drafting(tmp_path, text, words):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(InputError, match=words):
        Schema.draft(tmp_path / "t.csv")


def test_a_separator_inside_unquoted_cells_is_noticed(tmp_path):
    (tmp_path / "t.csv").write_text(lines("a,b", *(f"{j % 7},{3 * j}" for j in range(60)), "Rome, Italy,3"))
    [note, *_] = Schema.draft_with_notes(tmp_path / "t.csv")[1]
    assert note.field is None
    assert "separator may be inside unquoted cells" in note.warning


def test_overrides_hold_and_are_recorded(tmp_path):
    (tmp_path / "t.csv").write_text(
        lines("a,d", *(f"{j % 7},0{j % 9 + 1}/0{j % 8 + 1}/2024" for j in range(60)), "-,-")
    )
    left, _ = Schema.draft_with_notes(tmp_path / "t.csv")
    assert left.names == ("a",)
    schema = Schema.draft(tmp_path / "t.csv", Dialect(date_format="%m/%d/%Y", missing=("-",)))
    assert schema.missing_values == ("", "-")
    assert schema["d"].to_dict()["format"] == "%m/%d/%Y"
    assert schema["a"].enum == tuple("0123456")


def test_a_workbook_drafts_itself(tmp_path):
    rows = [["Visits"], [], ["age", "ward"], *[[j % 60 + 20, ["surgery", "medicine"][j % 2]] for j in range(100)]]
    schema = Schema.draft(workbook(tmp_path / "t.xlsx", rows), Dialect(sheet="Data"))
    assert schema.to_dict()["dialect"] == {"headerRows": [3], "sheetName": "Data"}
    assert len(Codec(schema.confirm(schema.names)).encode(tmp_path / "t.xlsx")[0]) == 100


def test_frames_and_nested_cells(tmp_path):
    frame = pl.DataFrame(
        {
            "day": pd.to_datetime(["2020-01-01", None] * 100),
            "x": [0.5, None] * 100,
            "b": [True, False] * 100,
            "parts": [[1, 2], []] * 100,
            "text": [f"t{j % 3}" for j in range(200)],
        }
    )
    frame.write_parquet(tmp_path / "t.parquet")
    for table in (frame, tmp_path / "t.parquet", read_table(frame)):
        schema, notes = Schema.draft_with_notes(table)
        assert [field.type for field in schema.fields] == ["date", "number", "boolean", "string"]
        assert "lists or records" in next(note for note in notes if note.field == "parts").reason
        Codec(schema.confirm(schema.names)).encode(table)


def test_hierarchical_codes_get_a_hint():
    g = np.random.default_rng(1)
    fine = [f"I{j % 60 // 10}{j % 10}.{j % 3}" for j in g.integers(0, 60, 6000)]
    notes = Schema.draft_with_notes({"icd": fine, "chapter": [code[:2] for code in fine]})[1]
    assert "'chapter' is a coarser version of it" in str(notes[0])
    assert "levels" in str(Schema.draft_with_notes({"icd": fine})[1][0])
    # A column that always says the same groups nothing.
    constant = {"street": [f"s{code}" for code in fine], "kind": ["road"] * 6000}
    assert "coarser" not in str(Schema.draft_with_notes(constant)[1][0])
    assert "coarser" in str(Schema.draft_with_notes({**constant, "kind": [f"k{code[1]}" for code in fine]})[1][0])


@pytest.mark.skipif(not (PUBLIC / "national2019.csv").exists(), reason="the public census excerpt is not here")
def test_the_census_excerpt_drafts_itself_as_its_dictionary_has_it():
    schema, notes = Schema.draft_with_notes(PUBLIC / "national2019.csv")
    dictionary = json.loads((PUBLIC / "national2019-dictionary.json").read_text())
    assert set(schema.names) == set(dictionary)
    codec = Codec(schema.confirm(schema.names))
    for field in schema.fields:
        values = dictionary[field.name].get("values", {})
        if field.type == "string" and "min" not in values and values:
            assert set(field.enum) <= set(values), field.name  # codes of the dictionary, and no other
        elif field.type in ("integer", "number"):
            assert field.minimum <= values["min"], field.name
            assert field.special == (("N",) if "N" in values else ()), field.name
    assert {f.name for f in schema.fields if f.type in ("integer", "number")} == {
        "AGEP", "DENSITY", "PINCP", "POVPIP", "PWGTP", "WGTP"
    }  # fmt: skip
    assert "INDP_CAT" in next(str(note) for note in notes if note.field == "INDP")
    _, log = codec.encode(PUBLIC / "national2019.csv")
    assert not any(seen.unparseable or seen.clipped for seen in log.columns.values())


def test_a_draft_tells_which_columns_are_copies(tmp_path):
    rows = "".join(f"{i % 70},{i % 70},{(i + 1) % 70},{i % 70}\n" for i in range(300))
    (tmp_path / "t.csv").write_text(f"a,b,c,a\n{rows}")
    notes = {note.field: str(note) for note in Schema.draft_with_notes(tmp_path / "t.csv")[1]}
    assert "it is a copy of 'a', so leave one of them out" in notes["b"]
    assert "it is a copy of 'a'" in notes["a_2"]
    assert "a column is called 'a_2', because another column has the same name" in notes[None]
    assert "copy" not in notes["a"] + notes["c"]
