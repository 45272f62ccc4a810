"""Persons with several rows, from a file to a bundle: one charge of ε, and no trace of the column or of the number of rows."""

import csv
import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from covey.methods.regain.predict import predict
from covey.privacy.ledger import Ledger
from covey.release.evaluation import once_a_person
from covey.table.schema import Field, Schema
from tests.commands import run

pytestmark = [
    pytest.mark.usefixtures("few_steps"),
    pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning"),
]
PERSONS = 311
FIELDS = (
    Field("ward", "string", enum=("A", "B", "C"), required=True),
    Field("age", "integer", 0, 99, bins=5, required=True),
    Field("well", "boolean", required=True),
)


def visits(often=1):
    """Persons with one to four rows, in no order, each `often` times, and seven rows of nobody."""
    generator = np.random.default_rng(0)
    rows = generator.integers(1, 5, PERSONS)
    whose = np.repeat(np.arange(PERSONS), rows)
    table = [(f"MRN{w:05}", "ABC"[w % 3], str(w % 90), ["no", "yes"][w % 2]) for w in whose]
    table = table * often + [("", "A", "3", "no")] * 7
    return [table[k] for k in generator.permutation(len(table))]


def write(path, rows):
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("mrn", "ward", "age", "well"), *rows])


@pytest.fixture
def desk(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COVEY_LEDGER", str(tmp_path / "ledger.sqlite"))
    write("visits.csv", visits())
    write("thrice.csv", visits(3))
    # The column of persons stands in the schema, and is not even confirmed: it is left out.
    person = Field("mrn", "string", enum=("MRN00001",), other="other", confirmed=False)
    Schema((person, *FIELDS), drafted=True).save("schema.json")
    Schema(FIELDS).save("public.json")
    assert run("ledger open visits --budget 3").exit_code == 0
    return tmp_path


def order(out, table="visits.csv", more=""):
    return f"release {table} --schema schema.json --person mrn --epsilon 1 --out {out} {more}"


def test_a_release_by_person_costs_one_epsilon_and_says_so(desk):
    result = run(order("out", more="--dataset visits --json"))
    assert result.exit_code == 0, result.output
    said = json.loads(result.stdout)
    assert said["rows"] == PERSONS
    assert "for one person with all their rows" in said["privacy"]
    assert f"number of persons n = {PERSONS}" in said["privacy"]
    facts = json.loads(Path("out/privacy.json").read_text())
    assert (facts["n"], facts["n_counts"], facts["rows_per_person"]) == (PERSONS, "persons", "all")
    assert facts["amount"] == facts["amount_per_row"] == "1"
    assert facts["unit"] == "one person with all their rows"
    (status,) = Ledger(desk / "ledger.sqlite").datasets()
    assert (status.rows_per_person, status.spent.epsilon) == ("all", 1)
    assert run("verify out").exit_code == 0
    refused = run("release visits.csv --schema public.json --epsilon 0.1 --dataset visits --out second")
    assert refused.exit_code != 0
    assert "persons with all their rows" in refused.stderr
    assert run(order("third", more="--dataset visits")).exit_code == 0


def test_nothing_in_a_bundle_tells_the_number_of_rows_or_the_column(desk):
    """Every row of every person three times: all files but the noise are the same, and none names either count."""
    words = {}
    for table in ("visits.csv", "thrice.csv"):
        out = table.removesuffix(".csv")
        assert run(order(out, table, "--seed 3 --rows 50")).exit_code == 0
        texts = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in Path(out).iterdir()}
        rows = len(Path(table).read_text().splitlines()) - 1
        for name in set(texts) - {"SHA256SUMS", "report.html", "model.npz", "measurements.npz"}:
            assert "mrn" not in texts[name].lower(), name
            for count in (rows, rows - 7):
                assert f" {count} " not in texts[name], name
        assert f"{rows:,}" not in texts["report.html"]
        assert "MRN" not in texts["report.html"]
        assert f"{PERSONS} persons" in texts["report.html"]
        words[table] = {name: texts[name] for name in ("README.md", "schema.json")}
        facts = json.loads(texts["privacy.json"])
        words[table]["facts"] = {key: facts[key] for key in facts if key != "charges"}
    assert words["visits.csv"]["schema.json"] == words["thrice.csv"]["schema.json"]
    assert words["visits.csv"]["facts"] == words["thrice.csv"]["facts"]


def test_check_tells_the_steward_who_is_left_out(desk):
    found = json.loads(run("check visits.csv --schema schema.json --person mrn --json").stdout)
    assert (found["persons"], found["rows_of_nobody"]) == (PERSONS, 7)
    assert "mrn" not in found["columns"]
    said = run("check visits.csv --schema schema.json --person mrn").stdout
    assert f"{PERSONS} persons" in said
    assert f"7 of {found['rows']:,}  rows name no person and are left out" in said


def test_evaluate_lets_every_person_count_once(desk):
    """One person has nine hundred more rows than the others: counted by rows they would be most of the table."""
    loud = [("MRN00000", "C", "3", "no")] * 900
    write("loud.csv", [*visits(), *loud])
    line = order("out", "loud.csv", "--seed 1 --rows 2000 --confirm-large-epsilon").replace("epsilon 1 ", "epsilon 50 ")
    assert run(line).exit_code == 0
    refused = run("evaluate loud.csv out")
    assert refused.exit_code == 2
    assert "this bundle counts persons, not rows" in refused.stderr
    figures = json.loads(run("evaluate loud.csv out --person mrn --json").stdout)
    assert figures["total_variation"]["1"] < 0.05
    # Rows alone would say something else: more than half of them are in ward C, a third of the persons is.
    wards = [line.split(",")[1] for line in Path("loud.csv").read_text().splitlines()[1:]]
    synthetic = [line.split(",")[0] for line in Path("out/synthetic.csv").read_text().splitlines()[1:]]
    assert abs(wards.count("C") / len(wards) - synthetic.count("C") / len(synthetic)) > 0.2


def test_persons_are_spread_evenly():
    names, places = ["a", "b", None, "c", "a"], np.array([0, 0, 0, 1, 2, 3, 3, 4, 2])
    chosen = once_a_person(names, places)
    person = np.array(["a", "a", "a", "b", "", "c", "c", "a", ""])[chosen]
    assert {name: int((person == name).sum()) for name in "abc"} == {"a": 60, "b": 60, "c": 60}
    assert (np.bincount(chosen, minlength=9) == [15, 15, 15, 60, 0, 30, 30, 15, 0]).all()


def test_plan_takes_persons_or_rows_of_a_person(desk):
    def plan(more):
        return json.loads(run(f"plan public.json --epsilon 1 --json {more}").stdout)

    assert plan("--persons 5000") == plan("--rows 5000")  # the price of one row each
    assert plan("--rows 5000 --rows-per-person 5")["predicted_error"] > 2 * plan("--rows 5000")["predicted_error"]
    with_column = run("plan schema.json --person mrn --persons 5000 --epsilon 1")
    assert "persons 5,000 columns 3 to measure, with 10 categories or bins in all" in " ".join(
        with_column.stdout.split()
    )
    for wrong in ("", "--rows 5 --persons 5", "--persons 5 --rows-per-person 2", "--rows 5 --person mrn"):
        result = run(f"plan public.json --epsilon 1 {wrong}")
        assert result.exit_code == 2, wrong


def test_the_epsilon_that_is_solved_for_covers_all_rows_of_a_person():
    sizes, delta, target = [4, 5, 2], Fraction(0), Fraction(2, 100)
    one, five = (predict(sizes, 20_000, None, delta, target, k).epsilon for k in (1, 5))
    assert five == pytest.approx(5 * one, rel=0.1)
    assert predict(sizes, 20_000, None, delta, target, "all").epsilon == one


def test_person_and_rows_per_person_exclude_each_other(desk):
    result = run(order("out", more="--dataset visits --rows-per-person 4"))
    assert result.exit_code == 2
    assert "not both" in result.stderr
    assert Ledger(desk / "ledger.sqlite").datasets()[0].charges == 0


def test_rows_per_person_says_that_it_compares_equally_many_rows(desk):
    line = "release visits.csv --schema public.json --epsilon 1 --rows-per-person 4 --dataset visits --out out"
    assert run(line).exit_code == 0
    for name in ("privacy.json", "report.html"):
        assert "at most 4 and equally many in both" in Path(f"out/{name}").read_text()
    assert "equally many rows" in Path("out/README.md").read_text()
