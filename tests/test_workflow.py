"""Persons with several rows, and persons with events, on the command line: drafted, checked, planned, released, refused."""

import copy
import csv
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

import covey
from covey.errors import InputError, ParameterError
from covey.ledger import Ledger
from covey.release.verify import bundle_digest, described_by, tables_of, verify_rows
from covey.tables.description import Description
from covey.tables.schema import Field, Schema
from covey.workflow.preparing import check, draft
from tests.clinic import GOOD, PACKAGE, clinic, described, ruled, with_drugs, write
from tests.commands import run

pytestmark = [
    pytest.mark.usefixtures("quick_persons", "few_steps"),
    pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning"),
]


def test_a_check_counts_rows_of_each_table_that_break_its_own_rules():
    tables = {
        "patients": {"id": ["x", "y"], "age": ["1", "2"]},
        "visits": {"who": ["x", "y", "y"], "day": ["300", "301", "2"], "ward": ["a", "a", "a"]},
    }
    rule = {"forbid": {"day": {"minimum": 300}, "ward": "a"}}
    package = described(lambda _, v: v["schema"].update(covey={"rules": [rule]}))
    found = check(tables, package)
    assert [(own.word, count) for own, count in found.broken] == [("forbid", 2)]
    assert any(str(finding).startswith("visits: 2 of 3 rows break the rule") for finding in found.findings)
    assert not check(tables, PACKAGE).broken


RELEASE = ["--epsilon", "5", "--delta", "1e-5"]


@pytest.fixture
def package(tmp_path):
    return write(tmp_path, clinic())


@pytest.fixture(scope="module")
def bundle(quick_persons, tmp_path_factory):
    """The package, and a bundle of it."""
    package = write(tmp_path_factory.mktemp("clinic"), clinic())
    out = package.parent / "release"
    assert run("release", package, *RELEASE, "--seed", "1", "--out", out).exit_code == 0
    return package, out


def test_from_a_package_to_a_bundle_and_back(package, tmp_path):
    ledger, out = tmp_path / "ledger.json", tmp_path / "release"
    assert run("ledger", "open", "clinic", "--budget", "10", "--ledger", ledger).exit_code == 0
    private = ["--log", tmp_path / "log.json", "--title", "A small clinic", "--owner", "The registry"]
    done = run("release", package, *RELEASE, "--dataset", "clinic", "--ledger", ledger, "--out", out, *private)
    assert done.exit_code == 0, done.output
    logged = json.loads((tmp_path / "log.json").read_text())["columns"]
    assert set(logged) == {"patients.age", "visits.day", "visits.ward"}
    assert "one person with all their rows" in done.output
    assert "too few for links" in done.output
    facts = json.loads((out / "privacy.json").read_text())
    assert (facts["n"], facts["n_counts"], facts["rows_per_person"]) == (300, "persons", "all")
    assert {charge["purpose"] for charge in facts["charges"]} == {"events", "histograms", "tables", "certificate"}
    stated = json.loads((out / "certificate.json").read_text())
    for about, bound in stated["this_table"]["bound"].items():
        assert stated["bound"][about] <= bound <= 1
    page = (out / "report.html").read_text()
    for words in (done.output, (out / "README.md").read_text(), page):
        assert stated["this_table"]["sentence"] in words
    said = done.output + (out / "README.md").read_text() + page + (out / "privacy.json").read_text()
    true_events = len(clinic()["visits"]["who"])
    told = re.sub("<[^>]*>", " ", said)  # places in pictures and digests are no counts
    # How many were drawn, which may be as many by chance.
    told = re.sub(r'[\d,]+, in visits.csv|"visits": \d+', "", told)
    assert not re.search(rf"(?<![\w.,]){true_events}(?![\w.])", told)
    assert re.search(r"(?<![\w.,])300(?![\w.])", told)  # the number of persons is public, and would be found
    drawn = [(out / f"{name}.csv").read_text() for name in ("patients", "visits")]
    assert not any(f"p{k}," in text for text in drawn for k in (1, 17, 299))
    assert "A small clinic" in page
    assert "The registry" in page
    assert "by all releases about these people so far, of a cap of 10" in page
    drawn = len((out / "visits.csv").read_text().splitlines()) - 1
    assert f"complete and unmodified, 300 persons with {drawn} visits;" in run("verify", out).output
    counted = json.loads(run("verify", out, "--json").output)
    assert (counted["persons"], counted["rows"]) == (300, {"patients": 300, "visits": drawn})
    cited = json.loads(run("cite", out, "--json").output)
    assert "from confidential tables of 300 persons; " in cited["sentence"]
    history = json.loads(run("ledger", "history", "clinic", "--ledger", ledger, "--json").output)["events"]
    assert [event["kind"] for event in history] == ["open", "charge", "release"]
    figures = json.loads(run("evaluate", package, out, "--json").output)
    assert set(figures["total_variation"]) == set(figures["total_variation_of_resampled_true_persons"])
    assert all(0 <= value <= 1 for value in figures["total_variation"].values())
    assert "CONFIDENTIAL" in run("evaluate", package, out).output
    assert figures["changed"] == []
    visits = (tmp_path / "visits.csv").read_text()
    (tmp_path / "visits.csv").write_text(visits.replace(",a\n", ",z\n", 3))
    line = "visits.ward: 3 of "
    changed = json.loads(run("evaluate", package, out, "--json").output)["changed"]
    assert any(words.startswith(line) for words in changed)
    assert f"CHANGED BY THE SCHEMA: {line}" in run("evaluate", package, out).output
    (tmp_path / "visits.csv").write_text(visits)
    assert "name a folder for them" in run("sample", out, "--rows", "3", "-o", tmp_path / "more.csv").output
    assert run("tables", out, "-o", tmp_path / "tables").exit_code == 0
    listed = (tmp_path / "tables" / "pairs.csv").read_text().splitlines()
    sizes = [values.size for name, values in np.load(out / "measurements.npz").items() if name.endswith("values")][3:]
    assert sum(sizes) * 0.7 < len(listed) - 1 <= sum(sizes)
    assert any(
        line.startswith("an attribute of a person and one of an event,number of events,5 to 6,ward,b,")
        for line in listed
    )
    counted = (tmp_path / "tables" / "columns.csv").read_text().splitlines()
    assert sum(line.startswith("number of events,") for line in counted) == 10
    loaded = covey.load(out)
    assert loaded.rows()["patients"]["id"].to_list() == list(range(1, 301))
    assert loaded.certificate.sentence == stated["sentence"]
    broken = tmp_path / "broken"
    shutil.copytree(out, broken)
    for change, words in (("999999", "belong to no person"), ("1", "more than 9 rows")):
        lines = (out / "visits.csv").read_text().splitlines()
        (broken / "visits.csv").write_text(
            "\n".join([lines[0], *(change + line[line.index(",") :] for line in lines[1:])])
        )
        with pytest.raises(InputError, match=words):
            verify_rows(described_by(broken), tables_of(broken, described_by(broken)))


def test_what_matters_most_is_named_by_table_and_field_and_kept_in_the_bundle(package, tmp_path):
    out = tmp_path / "release"
    named = ["--important", "patients.age,visits.ward", "--target", "ward"]
    assert run("plan", package, "--persons", "9000", *RELEASE, *named).exit_code == 0
    done = run("release", package, *RELEASE, *named, "--seed", "1", "--out", out)
    assert done.exit_code == 0, done.output
    found = described_by(out)
    assert (found.important, found.target) == ((("patients.age", "visits.ward"),), "ward")
    sds = {m.query.of: set() for m in covey.load(out).measurements.found}
    for m in covey.load(out).measurements.found:
        sds[m.query.of].add(float(np.max(m.sd)))
    assert max(sds["across"]) == pytest.approx(2 * min(sds["across"]))
    unknown = run("release", package, *RELEASE, "--target", "x", "--seed", "1", "--out", out)
    assert "The fields are: 'patients.age'" in unknown.output


def test_an_earlier_bundle_serves_as_prior_where_its_tables_are_the_same(package, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run("release", package, *RELEASE, "--seed", "1", "--parquet", "--out", first).exit_code == 0
    again = ["release", package, *RELEASE, "--prior", first, "--out", second]
    assert "made with a seed and is not private" in run(*again, "--dataset", "clinic").output
    done = run(*again, "--seed", "2")
    assert done.exit_code == 0, done.output
    facts = json.loads((second / "privacy.json").read_text())
    assert facts["prior"]["bundle"] == bundle_digest(first)
    other = copy.deepcopy(GOOD)
    other["resources"][1]["covey"]["at_most"] = 5
    package.write_text(json.dumps(other))
    assert "links them otherwise" in run(*again, "--seed", "2", "--force").output


def test_columns_of_persons_and_of_events_are_predicted(bundle):
    package, out = bundle
    done = run("evaluate", package, out, "--target", "ward", "--target", "patients.age")
    assert done.exit_code == 0, done.output
    assert "AUC for visits.ward: 0." in done.output
    figures = json.loads(run("evaluate", package, out, "--target", "ward", "--json").output)
    [found] = figures["prediction"]
    assert found["trained_on_true"]["auc"] > 0.4
    assert "The fields are: 'patients.age'" in run("evaluate", package, out, "--target", "x").output


def test_persons_who_meet_conditions_are_drawn_with_all_their_events(bundle, tmp_path):
    (_, out), more = bundle, tmp_path / "more"
    done = run("sample", out, "--rows", "700", "--where", "age>=50", "--where", "age<=80", "--seed", "3", "-o", more)
    assert done.exit_code == 0, done.output
    found = covey.load(out).sample(700, {"age": (50, 80)}, seed=3)
    assert found["patients"]["id"].to_list() == list(range(1, 701))
    assert found["patients"]["age"].is_between(50, 80).all()
    assert set(found["visits"]["who"]) <= set(range(1, 701))
    assert len((more / "patients.csv").read_text().splitlines()) == 701
    # As many visits each as such persons have among all: a program that lost or mixed them up would show.
    plain = covey.load(out).sample(4000, seed=4)
    old = plain["patients"].filter(plain["patients"]["age"].is_between(50, 80))["id"]
    each = plain["visits"]["who"].is_in(old.to_list()).sum() / len(old)
    assert len(found["visits"]) / 700 == pytest.approx(each, rel=0.15)
    assert "column of events" in run("sample", out, "--rows", "5", "--where", "ward=a", "-o", more).output
    assert "between 0 and 99" in run("sample", out, "--rows", "5", "--where", "age>=200", "-o", more).output


def test_too_many_events_beyond_the_limit_are_a_misfit(package, tmp_path):
    data = json.loads(package.read_text())
    data["resources"][1]["covey"]["at_most"] = 1
    package.write_text(json.dumps(data))
    checked = run("check", package)
    assert "rows are left out, because a person may have at most 1 (at_most)" in checked.output
    done = run("release", package, *RELEASE, "--seed", "1", "--out", tmp_path / "release")
    assert "In 'visits' " in done.output
    assert done.exit_code != 0


def test_a_package_is_drafted_with_its_key_and_confirmed(package, tmp_path):
    draft = tmp_path / "draft.json"
    done = run("init", tmp_path / "patients.csv", tmp_path / "visits.csv", "-o", draft)
    assert done.exit_code == 0, done.output
    assert "visits.who → patients.id: the key" in done.output
    data = json.loads(draft.read_text())
    assert data["resources"][0]["schema"]["primaryKey"] == "id"
    assert data["resources"][1]["covey"] == {"at_most": 50}
    assert "p17" not in draft.read_text()
    unconfirmed = run("release", draft, *RELEASE, "--seed", "1", "--out", tmp_path / "release")
    assert "not confirmed as public" in unconfirmed.output
    names = json.loads(run("confirm", draft, "--all", "--json").output)["unconfirmed"]
    assert run("confirm", draft, *names).output.strip().endswith(f"Next: covey plan {draft} --persons N --epsilon 1")
    torn = run("init", tmp_path / "visits.csv", tmp_path / "patients.csv", "-o", tmp_path / "other.json")
    assert "which column names the person" in torn.output
    twice = run("init", tmp_path / "visits.csv", tmp_path / "visits.csv", "-o", tmp_path / "other.json")
    assert "visits.csv is given twice" in twice.output
    three = run("init", "a.csv", "b.csv", "c.csv", "-o", draft, "--force")
    assert "several event tables are not supported yet" in three.output


@pytest.mark.parametrize("beside_visits", [True, False], ids=["two branches", "a chain"])
def test_three_tables_are_refused_by_every_step_before_the_charge(beside_visits, tmp_path):
    """A release ended in a ValueError."""
    words = "here are visits and drugs: several event tables are not supported yet. Keep the one that matters most"
    package, ledger = tmp_path / "package.json", Ledger(tmp_path / "ledger.sqlite")
    package.write_text(json.dumps(with_drugs(beside_visits)))
    ledger.open_dataset("clinic", 9)
    order = [
        "release",
        package,
        "--epsilon",
        1,
        "--dataset",
        "clinic",
        "--ledger",
        ledger.path,
        "--out",
        tmp_path / "x",
    ]
    plan = ["plan", package, "--persons", 100, "--epsilon", 1]
    for line in (order, [*order, "--learn", "--delta", "1e-7"], plan, ["check", package]):
        done = run(*line)
        assert done.exit_code == 2, done.output
        assert words in " ".join(done.output.split())
    assert [event.kind for event in ledger.history("clinic")] == ["open"]
    tree = Description.load(package)
    for learned in (tree, tree.to_learn()):
        with pytest.raises(ParameterError, match=words):
            covey.PrivateSynthesizer(1.0, 1e-6, schema=learned)


def test_a_drafted_package_is_learned_and_columns_are_left_out_by_not_naming_them(package, tmp_path):
    draft, out = tmp_path / "draft.json", tmp_path / "release"
    assert run("init", tmp_path / "patients.csv", tmp_path / "visits.csv", "-o", draft).exit_code == 0
    done = run("release", draft, "--learn", "--epsilon", "9", "--delta", "1e-5", "--seed", "1", "--out", out, "--json")
    assert done.exit_code == 0, done.output
    facts = json.loads(done.stdout)
    assert set(facts["learned"]) == {"patients.age", "visits.day", "visits.ward"}
    found = dict(described_by(out).fields)
    assert found["visits.ward"].enum == ("a", "b")
    assert found["visits.day"].learned
    assert "were read from the table without noise" in (out / "privacy.json").read_text()
    assert run("verify", out).exit_code == 0
    assert run("evaluate", draft, out).exit_code == 0
    named = ["release", package, *RELEASE, "--seed", "1", "--force", "--out", out, "--columns"]
    assert run(*named, "ward").exit_code == 0  # and the order of the events, which is needed
    assert [name for name, _ in described_by(out).fields] == ["visits.day", "visits.ward"]
    assert (out / "patients.csv").read_text().splitlines()[1:3] == ["1", "2"]
    assert "The fields are: 'patients.age'" in run(*named, "x").output
    planned = json.loads(run("plan", package, "--columns", "ward", "--persons", "9000", *RELEASE, "--json").stdout)
    assert planned["tables"]["event"] == 1


def test_a_draft_does_not_tell_how_many_events_the_busiest_person_has(tmp_path):
    """The program that wrote the longest history, rounded up, drafts at_most 5 and 20 for these neighbours."""
    drafted = []
    for name, more in (("few", 0), ("many", 15)):
        (tmp_path / name).mkdir()
        tables = clinic(60)
        for column, value in (("who", "p3"), ("day", "7"), ("ward", "a")):
            tables["visits"][column] += [value] * more
        write(tmp_path / name, tables)
        files = {f"{part}.csv": tmp_path / name / f"{part}.csv" for part in tables}
        found = draft(files)
        drafted.append((found.description.link.at_most, found.links))
    assert drafted[0] == drafted[1]
    assert drafted[0][0] == 50


def test_a_plan_says_what_is_measured_and_advises(package):
    few = run("plan", package, "--persons", "2000", "--epsilon", "1", "--delta", "1e-9")
    assert "warning: 2,000 persons are too few for links" in few.output
    many = json.loads(run("plan", package, "--persons", "50000", "--epsilon", "1", "--delta", "1e-9", "--json").output)
    assert many["warning"] == ""
    assert many["tables"] == {"person": 1, "across": 4, "event": 1, "step": 2, "two": 2}
    assert 0 < many["unlinked"] < many["noise"] < 0.01
    assert "give --persons" in run("plan", package, "--rows", "50000", "--epsilon", "1").output
    three = run("plan", package, "--persons", "50000", "--epsilon", "1", "--delta", "1e-9", "--triples", "2").output
    assert "triples: none, because there are no three columns to choose from" in three


def test_rules_across_the_tables_hold_in_every_bundle(package, tmp_path):
    package.write_text(json.dumps(ruled()))
    assert Description.from_dict(Description.load(package).to_dict()) == Description.load(package)
    assert "rows break a rule across the tables" in run("check", package).output
    out = tmp_path / "release"
    assert run("release", package, *RELEASE, "--seed", "1", "--out", out).exit_code == 0
    assert json.loads((out / "privacy.json").read_text())["rows_altered_by_rules"] > 0
    more = covey.load(out).sample(400, seed=1)
    both = more["visits"].join(more["patients"], left_on="who", right_on="id")
    assert both.filter((both["age"] < 50) & (both["ward"] == "b")).is_empty()
    assert not both.filter((both["age"] >= 50) & (both["ward"] == "b")).is_empty()
    broken = tmp_path / "broken"
    shutil.copytree(out, broken)
    (broken / "visits.csv").write_text((out / "visits.csv").read_text().replace(",a\n", ",b\n"))
    with pytest.raises(InputError, match="break a rule across them"):
        verify_rows(described_by(broken), tables_of(broken, described_by(broken)))


def test_one_file_with_repeated_persons_is_a_package_too(tmp_path):
    """Persons are those whom the file names; links between their events are kept, and no key leaves."""
    tables, data = clinic(), copy.deepcopy(GOOD)
    visits = data["resources"][1]
    del visits["schema"]["foreignKeys"]
    visits["covey"]["person"] = "who"
    data["resources"] = [visits]
    package = write(tmp_path, {"visits": tables["visits"]})
    package.write_text(json.dumps(data))
    assert Description.from_dict(Description.load(package).to_dict()) == Description.load(package)
    named, out = len(set(tables["visits"]["who"])), tmp_path / "release"
    assert f"{named} rows of persons" in run("check", package).output
    drafted = tmp_path / "drafted.json"
    done = run("init", tmp_path / "visits.csv", "--person", "who", "-o", drafted)
    assert done.exit_code == 0, done.output
    assert "visits.who: identifies the person" in done.output
    again = Description.load(drafted)
    assert (again.alone, again.events.link, again.link.at_most, again.drafted) == (True, "who", 50, True)
    assert again.events.written.names == Description.load(package).events.written.names
    assert f"{named} rows of persons" in run("check", drafted).output
    wrong = run("init", tmp_path / "visits.csv", "--person", "whom", "-o", tmp_path / "no.json").output
    assert "has no column 'whom'" in wrong
    assert run("release", package, *RELEASE, "--seed", "1", "--out", out).exit_code == 0
    assert json.loads((out / "privacy.json").read_text())["n"] == named
    assert "there is no column 'person'" in run("ask", out, "share person=true").output


REFUSED = {
    "anonymize": ["anonymize", "PACKAGE", "--group-size", "5", "--out", "x"],
    "a schema besides": ["release", "PACKAGE", "--schema", "PACKAGE", *RELEASE, "--seed", "1", "--out", "x"],
    "a person besides": ["release", "PACKAGE", "--person", "who", *RELEASE, "--seed", "1", "--out", "x"],
    "no dataset": ["release", "PACKAGE", *RELEASE, "--out", "x"],
    "large epsilon": ["release", "PACKAGE", "--epsilon", "50", "--seed", "1", "--out", "x"],
    "triples": ["release", "PACKAGE", "--triples", "-3", *RELEASE, "--seed", "1", "--out", "x"],
    "check with a schema": ["check", "PACKAGE", "--schema", "PACKAGE"],
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_go_with_a_package_is_refused_in_words(name, package, tmp_path):
    arguments = [package if a == "PACKAGE" else tmp_path / a if a == "x" else a for a in REFUSED[name]]
    done = run(*arguments)
    assert done.exit_code not in (0, 1) or "covey:" in done.output
    assert done.output.startswith(("covey:", "warning")), done.output
    assert not (tmp_path / "x").exists()
    if name == "anonymize":  # says what to do instead
        assert "covey release" in done.output


def test_numbers_of_a_draw_are_compared_in_twentieths_of_the_true_rows():
    from covey.engine.codes.events import Histories
    from covey.workflow.evaluating import compared_tables

    g = np.random.default_rng(0)
    one = Histories(g.integers(0, 1000, (400, 1)), g.integers(0, 3, (800, 1)), np.repeat(np.arange(400), 2), 4)
    [query] = compared_tables(one, one, ordered=False)["across"]
    assert [query.factors[a].size for a in (0, 1)] == [20, 3]
    assert np.bincount(query.factors[0].at(one.persons[:, 0])).max() < 40
    again = one.resampled(400, g)
    assert (again.counts == 2).all()
    assert again.events.shape == one.events.shape


PERSONS = 311

FIELDS = (
    Field("ward", "string", enum=("A", "B", "C"), required=True),
    Field("age", "integer", 0, 99, bins=5, required=True),
    Field("well", "boolean", required=True),
)


def visits():
    """Persons with one to four rows, in no order, and seven rows of nobody."""
    generator = np.random.default_rng(0)
    rows = generator.integers(1, 5, PERSONS)
    whose = np.repeat(np.arange(PERSONS), rows)
    table = [(f"MRN{w:05}", "ABC"[w % 3], str(w % 90), ["no", "yes"][w % 2]) for w in whose]
    table += [("", "A", "3", "no")] * 7
    return [table[k] for k in generator.permutation(len(table))]


def write_rows(path, rows):
    with Path(path).open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("mrn", "ward", "age", "well"), *rows])


@pytest.fixture
def desk(at_home):
    write_rows("visits.csv", visits())
    # The column of persons stands in the schema, and is not even confirmed: it is left out.
    person = Field("mrn", "string", enum=("MRN00001",), other="other", confirmed=False)
    Schema((person, *FIELDS)).save("schema.json")
    Schema(FIELDS).save("public.json")
    assert run("ledger open visits --budget 3").exit_code == 0
    return at_home


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
    written = {path.name: path.read_text(encoding="utf-8", errors="replace") for path in Path("out").iterdir()}
    words = set(written) - {"report.html", "model.npz", "measurements.npz"}
    assert not [name for name in words if "mrn" in written[name].lower()]  # nor how the column is called
    assert "MRN0" not in written["report.html"]
    refused = run("release visits.csv --schema public.json --epsilon 0.1 --dataset visits --out second")
    assert refused.exit_code != 0
    assert "kept for a person with all rows" in refused.stderr
    assert run(order("third", more="--dataset visits")).exit_code == 0


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
    write_rows("loud.csv", [*visits(), *loud])
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


def test_rows_per_person_says_that_it_compares_equally_many_rows(desk):
    line = "release visits.csv --schema public.json --epsilon 1 --rows-per-person 4 --dataset visits --out out"
    assert run(line).exit_code == 0
    for name in ("privacy.json", "report.html"):
        assert "at most 4 and equally many in both" in Path(f"out/{name}").read_text()
    assert "equally many rows" in Path("out/README.md").read_text()
