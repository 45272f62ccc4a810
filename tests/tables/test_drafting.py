"""Drafts of whole tables: messy files, the public census excerpt, and nothing of a person in what is written."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

import covey
from covey.errors import InputError, ParameterError
from covey.tables.codec import Codec
from covey.tables.column_drafts import may_identify
from covey.tables.dialects import Dialect
from covey.tables.drafting import UNNAMED, assumptions, sniff
from covey.tables.schema import LessEqual, Schema
from covey.tables.sources import read_table
from covey.workflow.preparing import draft
from tests.entries import frame_of
from tests.tables.test_sources import workbook

ROWS = [["age", "city", "cost"], *[[str(i % 90), "Rom" if i % 2 else "Köln, am Rhein", f"{i},5"] for i in range(40)]]

PUBLIC = Path(__file__).parents[3] / "shared" / "data"


def written(separator, quote=False):
    mark = '"' if quote else ""
    return "".join(separator.join(f"{mark}{cell}{mark}" for cell in row) + "\n" for row in ROWS)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "windows-1252", "utf-16-le"])
@pytest.mark.parametrize("separator", [";", "\t", "|"])
@pytest.mark.parametrize("skip", [0, 1, 3])
def test_separator_encoding_and_preamble_are_found(tmp_path, encoding, separator, skip):
    path = tmp_path / "t.csv"
    preamble = ["Costs of 2024", "", "exported by a clinic, in Wien"][:skip]
    path.write_bytes(("".join(line + "\n" for line in preamble) + written(separator)).encode(encoding))
    found = sniff(path, Dialect(), 10**6)
    assert (found.separator, found.skip_rows) == (separator, skip)
    assert found.encoding == {"utf-8-sig": "utf-8"}.get(encoding, encoding)


def test_commas_and_quotes(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(written(",", quote=True), encoding="utf-8")
    found = sniff(path, Dialect(), 10**6)
    assert found == Dialect(",", encoding="utf-8", skip_rows=0)
    assert assumptions(found, Dialect()) is None
    path.write_text('Report 2023\n\na;a;b\n1;2;"x; y"\n3;4;z\n')  # a name that is repeated, not a cell of one column
    assert sniff(path, Dialect(), 10**6) == Dialect(";", encoding="utf-8", skip_rows=2)
    path.write_text("name\nA;1\nB;2\n")  # one column, and cells with semicolons
    assert sniff(path, Dialect(), 10**6).skip_rows == 0


def test_what_was_said_is_not_looked_for(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("Costs\n" + written(";"), encoding="windows-1252")
    said = Dialect("|", encoding="latin-1", skip_rows=0)
    assert sniff(path, said, 10**6) == said
    found = sniff(path, Dialect(), 10**6)
    said = "read with cells separated by semicolons, text in windows-1252, 1 line before the header"
    assert assumptions(found, Dialect()) == said
    assert assumptions(found, found) is None


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (
            "a,b\nü,1\n".encode() + "ü,2\n".encode("latin-1"),
            "mixes UTF-8 with another encoding, which begins in line 3",
        ),
        (b"a,b\n\xfc,1\n\x81,2\n", r"neither UTF-8 \(line 2\) nor Windows-1252 \(line 3\)"),
        (b"", "is empty"),
    ],
)
def test_text_in_no_single_encoding_is_refused(tmp_path, data, words):
    (tmp_path / "t.csv").write_bytes(data)
    with pytest.raises(InputError, match=words) as refused:
        sniff(tmp_path / "t.csv", Dialect(), 10**6)
    assert not data or "latin-1" in str(refused.value)
    assert not data or sniff(tmp_path / "t.csv", Dialect(encoding="latin-1"), 10**6).encoding == "latin-1"


def test_rows_before_the_header_of_a_sheet_are_found(tmp_path):
    path = workbook(tmp_path / "t.xlsx", [["Report"], [], *ROWS])
    assert sniff(path, Dialect(sheet="Data"), 10**6) == Dialect(sheet="Data", skip_rows=2)


def stays(n=400, seed=0):
    """Admission ≤ operation ≤ discharge, net ≤ gross, an age and a rank that have nothing to do with each other."""
    g = np.random.default_rng(seed)
    came = np.datetime64("2021-01-01") + np.sort(g.integers(0, 900, n))
    cut = came + g.geometric(0.5, n) - 1
    left = cut + g.geometric(0.3, n) - 1
    net = np.round(np.exp(g.normal(6, 1, n)), 2)
    gross = np.round(net * (1 + g.choice([0.07, 0.19], n)), 2)
    return frame_of(
        came=came.astype(str),
        operated=cut.astype(str),
        left=left.astype(str),
        net=net,
        gross=gross,
        age=g.integers(18, 90, n),
        far=g.integers(1000, 5000, n),
        score=np.round(g.normal(50, 10, n), 1),
    )


def test_an_order_of_columns_is_for_their_owner_to_confirm_and_in_no_draft():
    """Read off the rows it would become public with its column."""
    drafted = draft(stays())
    assert all(field.follows is None for field in drafted.description.unit.schema.fields)
    words = [proposal.words for proposal in drafted.relations]
    assert {"came is never above operated", "operated is never above left", "net is never above gross"} <= {*words}
    assert not any("age" in one or "far" in one for one in words)  # below each other by their ranges alone


def test_anonymous_averages_keep_the_order_too():
    """Group averages are rounded one by one, and dates may be missing: what comes after still does."""
    frame = stays(300)
    holes = pl.Series("left", [None if k % 3 == 0 else day for k, day in enumerate(frame["left"])])
    frame = frame.with_columns(holes)
    orders = LessEqual("came", "operated"), LessEqual("operated", "left")
    schema = replace(Schema.draft(frame).confirm(Schema.draft(frame).names), rules=orders)
    rows = covey.AnonymousSynthesizer(5, schema=schema, seed=0).fit(frame).sample(300)
    assert not schema.validate(rows)
    assert (rows["came"] <= rows["operated"]).all()
    assert rows.filter(pl.col("left") < pl.col("operated")).is_empty()


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


def lines(*rows):
    return "\n".join([*rows, ""])


def test_a_table_of_which_nothing_is_left_is_refused(tmp_path):
    (tmp_path / "t.csv").write_text(lines("id,name", *(f"{j},Eve {j}" for j in range(60))))
    with pytest.raises(InputError, match="nothing is left"):
        Schema.draft(tmp_path / "t.csv")


def test_overrides_hold_and_are_recorded(tmp_path):
    rows = [f"{j % 7},0{j % 9 + 1}/0{j % 8 + 1}/2024" for j in range(60)]
    (tmp_path / "t.csv").write_text(lines("a,d", *rows, "-,-"))
    left, _ = Schema.draft_with_notes(tmp_path / "t.csv")
    assert left.names == ("a",)
    schema = Schema.draft(tmp_path / "t.csv", Dialect(date_format="%m/%d/%Y", missing=("-",)))
    assert schema.missing_values == ("", "-")
    assert schema["d"].to_dict()["format"] == "%m/%d/%Y"
    assert schema["a"].enum == tuple("0123456")


@pytest.mark.parametrize(
    "header",
    ["a,4.03.2020,11", "a,1972,1", "a,NA,2.5", "town,2019,2020", "town,1,2", "0,1,2", "Jo,4711,cost", "a,age,cost"],
)
def test_a_record_in_place_of_the_header_is_noticed_and_years_or_numbered_columns_are_none(tmp_path, header):
    dates = [f"{'ab'[j % 2]},{j % 28 + 1}.03.2020,{j * 3 % 50}" for j in range(200)]
    numbers = [f"{'ab'[j % 2]},{j * 7 % 90},{j * 3 % 50}" for j in range(200)]
    (tmp_path / "t.csv").write_text(lines(header, *(dates if "03." in header else numbers)))
    schema, notes = Schema.draft_with_notes(tmp_path / "t.csv")
    record = header[0] == "a" and "age" not in header
    assert [note.choice == UNNAMED for note in notes if note.field is None] == [record] * ("age" not in header)
    assert all((field.warning or "").startswith(UNNAMED) == record for field in schema.fields)


@pytest.mark.parametrize(
    ("years", "record"), [("2556,2555,2554,2553", False), ("30,20,10,0", False), ("34,12,50,7", True)]
)
def test_names_that_fall_in_even_steps_are_an_order_of_columns(tmp_path, years, record):
    rows = [f"{'ab'[j % 2]},{j * 7 % 90},{j * 3 % 50},{j * 11 % 80},{j % 70}" for j in range(200)]
    (tmp_path / "t.csv").write_text(lines(f"town,{years}", *rows))
    _, notes = Schema.draft_with_notes(tmp_path / "t.csv")
    assert any(note.choice == UNNAMED for note in notes) == record


def test_frames_and_nested_cells(tmp_path):
    frame = frame_of(
        day=pd.to_datetime(["2020-01-01", None] * 100),
        x=[0.5, None] * 100,
        b=[True, False] * 100,
        parts=[[1, 2], []] * 100,
        text=[f"t{j % 3}" for j in range(200)],
    )
    frame.write_parquet(tmp_path / "t.parquet")
    for table in (frame, tmp_path / "t.parquet", read_table(frame)):
        schema, notes = Schema.draft_with_notes(table)
        assert [field.type for field in schema.fields] == ["date", "number", "boolean", "string"]
        assert "lists or records" in next(note for note in notes if note.field == "parts").reason
        Codec(schema.confirm(schema.names)).encode(table)


@pytest.mark.skipif(not (PUBLIC / "national2019.csv").exists(), reason="the public census excerpt is not here")
def test_the_census_excerpt_drafts_itself_as_its_dictionary_has_it():
    schema = Schema.draft(PUBLIC / "national2019.csv")
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
    _, log = codec.encode(PUBLIC / "national2019.csv")
    assert not any(seen.unparseable or seen.clipped for seen in log.columns.values())


def test_a_draft_tells_which_column_got_another_name(tmp_path):
    (tmp_path / "t.csv").write_text("a,b,a\n" + "1.5,2.5,3.5\n" * 30)
    notes = {note.field: str(note) for note in Schema.draft_with_notes(tmp_path / "t.csv")[1]}
    assert "a column is called 'a_2', because another column has the same name" in notes[None]
