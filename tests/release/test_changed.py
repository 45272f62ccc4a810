"""What a schema made of the true table comes first in an evaluation, and counts in its score."""

import json

import numpy as np
import polars as pl
import pytest

import covey
from covey.release.bundle import write_bundle
from covey.release.changed import Changes
from covey.release.evaluation import Comparison, compare, evaluate, evaluation_html, total_variation
from covey.release.page import lines
from covey.table.codec import Codec
from covey.table.columns import Words
from covey.table.schema import Field, Schema
from covey.table.sources import read_table
from tests.commands import run
from tests.release.pages import check_page

pytestmark = pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")

SCHEMA = Schema(
    (
        Field("delay", "integer", minimum=0, maximum=1),
        Field("race", "string", enum=("a", "b"), other="other"),
        Field("sex", "string", enum=("f", "m")),
        Field("score", "integer", minimum=0, maximum=9, required=True, default=5),
        Field("cost", "number", minimum=0, maximum=100, decimals=0),
        Field("age", "integer", minimum=0, maximum=99, bins=10),
        Field("born", "date", minimum="1950-01-01", maximum="1999-12-31"),
        Field("room", "integer", minimum=0, maximum=9),
    )
)


def raw(n=400):
    """A table in which a quarter of the cells of each of the first columns is changed, each in its own way."""
    fourth = np.arange(n) % 4 == 0
    return pl.DataFrame(
        {
            "delay": np.where(fourth, 300, np.arange(n) % 2),
            "race": np.where(fourth, "rare", np.where(np.arange(n) % 3 == 0, "a", "b")),
            "sex": np.where(fourth, "unknown", np.where(np.arange(n) % 3 == 0, "f", "m")),
            "score": [None if here else 3 for here in fourth],
            "cost": np.where(fourth, 20.5, 20.0),
            "age": np.arange(n) % 100,
            "born": np.where(fourth, "1900-01-01", "1980-06-01"),
            "room": np.arange(n) % 10,
            "name": [f"person {k}" for k in range(n)],
        }
    )


def changes_of(frame, schema=SCHEMA, binned=True):
    codec, table = Codec(schema), read_table(frame, schema)
    cells = codec.encode(table, "cells")[0]
    return codec, cells, Changes.of(codec, table, cells, binned)


def test_every_kind_of_change_is_counted_with_its_share_and_told():
    codec, _, found = changes_of(raw())
    figures = found.figures(codec)
    assert figures["left_out"] == {"columns": ["name"], "of": 9, "share": pytest.approx(1 / 9)}
    kinds = {name: {k: v for k, v in own.items() if isinstance(v, float)} for name, own in figures["columns"].items()}
    assert kinds == {
        "delay": {"share": 0.25, "moved": 0.25},
        "race": {"share": 0.25, "merged": 0.25},
        "sex": {"share": 0.25, "emptied": 0.25},
        "score": {"share": 0.25, "filled": 0.25},
        "born": {"share": 0.25, "moved": 0.25},
        "cost": {"share": 0.0, "coarsened": 0.25},
        "age": {"share": 0.0, "coarsened": 1.0},
    }
    assert figures["columns"]["delay"]["limits"] == [0.0, 1.0]
    assert figures["columns"]["delay"]["mean"] == [pytest.approx(75.5), pytest.approx(0.75)]
    assert figures["columns"]["race"]["into"] == "other"
    assert figures["cells"] == pytest.approx(5 / 4 / 8)
    # An anonymous bundle averages numbers, not bins.
    assert "age" not in changes_of(raw(), binned=False)[2].figures(codec)["columns"]
    said = "\n".join(lines("changed.txt", changed=figures))
    assert "1 of 9 columns of the table are not in the bundle: name" in said
    assert "delay: 25.0% of the cells lie beyond 0 to 1 and were moved to these limits" in said
    assert "which changes the mean from 75.5 to 0.75" in said
    assert "race: 25.0% of the cells are in no category of the schema and were merged into 'other'" in said
    assert "sex: 25.0% of the cells are in no category of the schema and became missing" in said
    assert "score: 25.0% of the cells are missing and were filled with the default" in said
    assert "born: 25.0% of the cells lie beyond 1950-01-01 to 1999-12-31" in said
    assert "cost: 25.0% of the cells were rounded" in said
    assert "room" not in said


def test_text_among_numbers_is_told_and_words_for_missing_are_not():
    frame = pl.DataFrame({"delay": ["1", "x", "NaN", "", None, "0", "-9", "5"]})
    schema = Schema((Field("delay", "integer", minimum=0, maximum=1),), missing_values=("", "-9"))
    codec, _, found = changes_of(frame, schema)
    assert {k: rows.tolist().count(True) for k, rows in found.kinds["delay"].items()} == {"moved": 1, "emptied": 1}
    assert "delay: 12.5% of the cells are not of type integer and became missing" in lines(
        "changed.txt", changed=found.figures(codec)
    )


def test_a_table_that_fits_has_no_changes():
    frame = raw().filter(pl.arange(0, 400) % 4 != 0).drop("name")
    codec, cells, found = changes_of(frame, binned=False)
    assert lines("changed.txt", changed=found.figures(codec)) == []
    assert found.stand(codec, cells).tolist() == cells.tolist()
    rows = Comparison.of(codec, cells, cells, {"guarantee": "none"}, found)
    own = evaluate(rows, predicting=False)["average_total_variation"]
    assert own["average"] == own["as_read"] == 0


def test_words_of_a_file_are_read_like_a_column_of_text():
    frame = raw()
    words, places = np.unique(frame["race"].to_numpy(), return_inverse=True)
    table = read_table(frame, SCHEMA)
    stored = Words(np.where(np.arange(400) == 3, -1, places), pl.Series(words.tolist()))
    codec = Codec(SCHEMA)
    columns = {**table.columns, "race": stored}
    own = type(table)(columns, table.rows, table.origin, ignored=table.ignored)
    found = Changes.of(codec, own, codec.encode_part(own, "cells")[0], True)
    assert found.kinds["race"]["merged"].mean() == 0.25
    assert "emptied" not in found.kinds["race"]


def test_rows_that_the_schema_changed_count_as_wrong_and_true_numbers_are_those_of_the_file():
    """Synthetic rows that equal the table as clipped were called perfect; the file's own mean is a hundred times theirs."""
    codec, cells, found = changes_of(raw())
    rows = Comparison.of(codec, cells, cells, {"guarantee": "none"}, found)
    figures = evaluate(rows, predicting=False)
    assert figures["numbers"]["columns"]["delay"]["mean"] == [pytest.approx(75.5), pytest.approx(0.75)]
    assert figures["numbers"]["columns"]["born"]["mean"][0] < figures["numbers"]["columns"]["born"]["mean"][1]
    assert figures["columns"]["delay"] == figures["columns"]["race"] == figures["columns"]["score"] == 0.25
    assert figures["columns"]["room"] == 0
    own = figures["average_total_variation"]
    # The same rows are changed in five of eight columns: a quarter counts as wrong in the 25 pairs with one of them.
    assert own["average"] == pytest.approx(25 / 28 * 0.25)
    assert own["as_read"] == 0
    # What was done before, without the file: it finds nothing.
    old = evaluate(Comparison.of(codec, cells, cells, {"guarantee": "none"}), predicting=False)
    assert old["average_total_variation"]["average"] == 0
    assert old["numbers"]["columns"]["delay"]["mean_off"] == 0


def test_as_read_is_what_a_comparison_of_the_changed_table_gives():
    codec, cells, found = changes_of(raw())
    other = cells[np.random.default_rng(1).integers(0, len(cells), len(cells))]
    other[:, 0] = 1
    with_file, without = (
        evaluate(Comparison.of(codec, cells, other, {"guarantee": "none"}, own), predicting=False)
        for own in (found, Changes())
    )
    assert with_file["average_total_variation"]["as_read"] == pytest.approx(
        without["average_total_variation"]["average"]
    )
    assert with_file["average_total_variation"]["average"] > without["average_total_variation"]["average"]
    assert total_variation(*Comparison.of(codec, cells, other, {}, found).tables(as_read=True), (0,)) > 0


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    folder = tmp_path_factory.mktemp("changed")
    raw().write_csv(folder / "table.csv")
    synth = covey.PrivateSynthesizer(5, schema=SCHEMA, seed=1).fit(folder / "table.csv")
    write_bundle(synth.release(300), folder / "bundle")
    return folder


def test_evaluate_puts_changes_first_on_the_screen_in_json_and_on_the_page(desk):
    said = run("evaluate", desk / "table.csv", desk / "bundle").output.splitlines()
    assert said[0].startswith("CONFIDENTIAL")
    assert said[1] == "CHANGED BY THE SCHEMA: 1 of 9 columns of the table are not in the bundle: name"
    assert said[2].startswith("CHANGED BY THE SCHEMA: delay: 25.0% of the cells lie beyond 0 to 1")
    assert any("against the table as the schema reads it" in line for line in said)
    told = run("evaluate", desk / "table.csv", desk / "bundle", "--json").output
    assert json.loads(told)["changed"]["columns"]["delay"]["moved"] == 0.25
    rows = compare(desk / "table.csv", desk / "bundle")
    page = check_page(evaluation_html(rows, evaluate(rows, predicting=False)))
    assert page.text.index("Changed by the schema") < page.text.index("The total variation distance is")
    assert "delay: 25.0% of the cells lie beyond 0 to 1 and were moved" in page.text
    assert "25.00% because the schema changed them" in page.text


def test_persons_count_once_in_the_shares_of_changes():
    """One person with many clipped rows counts as one of four, not as most of the table."""
    codec, _, found = changes_of(pl.DataFrame({"delay": [9] * 9 + [0, 1, 0]}), Schema((SCHEMA["delay"],)))
    assert found.figures(codec)["columns"]["delay"]["moved"] == pytest.approx(9 / 12)
    assert found.taking(np.array([0, 9, 10, 11])).figures(codec)["columns"]["delay"]["moved"] == 0.25
