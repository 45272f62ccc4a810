"""How small a group may be: one function of public numbers, said by plan, report and evaluation."""

import csv
import json
from pathlib import Path

import polars as pl
import pytest
from click.testing import CliRunner

import covey
from benchmarks.groups import CASES, schema_of, table_of
from covey.cli import main
from covey.core.numbers.grid import Category, NumberGrid
from covey.methods.learning import expected_attributes
from covey.methods.regain.predict import SmallGroups, small_groups
from covey.privacy.budget import make_budget
from covey.release.bundle import write_bundle
from covey.workflow import evaluate, plan

ATTRIBUTES = (Category(4), NumberGrid(101), Category(2), Category(2), NumberGrid(1000))
ROWS = list(csv.DictReader(Path("docs/benchmarks/groups.csv").read_text(encoding="utf-8").splitlines()))


def stated(case):
    return small_groups(expected_attributes(schema_of(case)), case.rows, make_budget(case.epsilon, case.delta)).rows


@pytest.mark.parametrize("name", sorted({row["table"] for row in ROWS}))
def test_about_half_of_a_groups_difference_is_left_at_the_stated_size(name):
    """Of simulated releases on record: at half the size most is gone, at twice the size most is left."""
    case, own = CASES[name], [row for row in ROWS if row["table"] == name]
    size = stated(case)
    assert size == int(own[0]["stated_rows"])
    assert all(float(row["kept"]) < 0.35 for row in own if int(row["group_rows"]) < 0.55 * size)
    assert all(float(row["kept"]) > 0.3 for row in own if int(row["group_rows"]) >= size)
    assert any(int(row["group_rows"]) >= size for row in own)


def test_much_more_budget_makes_the_size_smaller_and_more_columns_make_it_larger():
    # In between it may stay: what a larger budget saves in noise, it spends on finer bins.
    small, large = (small_groups(ATTRIBUTES, 20_000, make_budget(eps)).rows for eps in (0.2, 20))
    assert small > 5 * large
    assert small_groups(ATTRIBUTES * 3, 20_000, make_budget(0.2)).rows > 2 * small


@pytest.mark.parametrize("attributes", [(Category(4), Category(9)), (NumberGrid(50),), (Category(2),) * 5])
def test_nothing_is_said_where_there_are_no_means_of_groups(attributes):
    assert small_groups(attributes, 1000, make_budget(1)) is None


@pytest.mark.parametrize(
    ("rows", "n", "words"),
    [
        (900, 5000, "smaller than about 900 rows (18%) are pulled towards the overall mean."),
        (1200, 1_000_000, "smaller than about 1,200 rows (0.1%) are"),
        (3000, 5000, "means of groups are pulled towards the overall mean, even for half of the rows."),
    ],
)
def test_the_sentence_is_plain(rows, n, words):
    assert words in SmallGroups(rows, n, "rows").sentence


@pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")
def test_plan_report_and_evaluation_say_the_same(few_steps, tmp_path):
    case = CASES["visits, pure"]
    schema = schema_of(case)
    frame = pl.DataFrame(table_of(case, 0.08, 1))
    frame.write_csv(tmp_path / "t.csv")
    schema.save(tmp_path / "schema.json")
    said = plan(schema, case.rows, 1, 0).prediction.groups.sentence
    assert f"about {stated(case):,} rows" in said
    command = ["plan", str(tmp_path / "schema.json"), "--rows", str(case.rows), "--epsilon", "1"]
    assert said in CliRunner().invoke(main, command).output.splitlines()
    assert json.loads(CliRunner().invoke(main, [*command, "--json"]).output)["smallest_group"] == stated(case)
    synth = covey.PrivateSynthesizer(1, 0, schema=schema, seed=1).fit(frame)
    bundle = write_bundle(synth.release(300), tmp_path / "out")
    assert said in (bundle / "report.html").read_text(encoding="utf-8")
    found = evaluate(tmp_path / "t.csv", bundle, predicting=False)
    assert found.figures["small_groups"] == said
    assert said in found.page()
    shown = CliRunner().invoke(main, ["evaluate", str(tmp_path / "t.csv"), str(bundle)])
    assert said in shown.output.splitlines()
