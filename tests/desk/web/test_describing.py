"""Persons and their events in the app: from two files, a package or one table to a bundle, and what is refused on the way."""

import io
import json
import zipfile
from fractions import Fraction

import pytest

from covey.desk.web import drafts
from covey.desk.web import work as work_module
from covey.desk.web.jobs import Job
from covey.release.verify import verify_bundle
from covey.tables.description import Description
from tests.clinic import GOOD, as_csv, clinic, with_drugs
from tests.commands import run
from tests.desk.web.conftest import words

CHOSEN = {"epsilon": "5", "guarantee": "delta", "delta": "1e-5", "dataset": "clinic"}


@pytest.fixture
def tables():
    return {name: as_csv(columns) for name, columns in clinic(120).items()}


@pytest.fixture
def clinics(page):
    page.workspace.ledger.open_dataset("clinic", 20, Fraction(1, 1000))
    return page


def two_files(page, tables, **others):
    work = page.new_work()
    files = {"events": ("visits.csv", tables["visits"]), **others}
    return work, page.upload(work, tables["patients"], "patients.csv", others=files)


def described(page, tables):
    """Work on two files and the package of before, whose fields are confirmed."""
    files = {"events": ("visits.csv", tables["visits"]), "schema": ("package.json", json.dumps(GOOD).encode())}
    return page.given(tables["patients"], "patients.csv", files).id


def test_a_package_of_three_tables_is_refused_with_a_way_out(clinics, tables):
    for beside_visits in (True, False):
        package = json.dumps(with_drugs(beside_visits)).encode()
        _, answer = two_files(clinics, tables, schema=("package.json", package))
        assert "several event tables are not supported yet. Keep the one that matters most" in words(answer)


def test_two_files_become_columns_of_two_tables_and_their_key_stays_here(clinics, tables):
    work, answer = two_files(clinics, tables)
    assert answer.status_code == 303, words(answer)
    found = clinics.workspace.work(work)
    assert [column.called for column in found.columns] == ["patients.age", "visits.day", "visits.ward"]
    shown = words(clinics.get(f"/work/{work}/columns"))
    assert "visits.who names the person of patients.id" in shown
    assert "Learn" in shown
    assert "p17" not in shown
    for said, why in (
        ({"at_most": "0"}, "at_most"),
        ({"at_most": "51"}, "at_most may be 50 at most"),
        ({"at_most": "many"}, "must be a whole number"),
        ({"at_most": "3", "gaps": "on"}, "need an order of events"),
        ({"at_most": "3", "order": "ward"}, "orders events and is no number"),
        ({"at_most": "3", "order": "dat"}, "dat"),
    ):
        clinics.refused(f"/work/{work}/columns/link", said, why)
    assert found.link.at_most == 50
    clinics.sent(f"/work/{work}/columns/link", {"at_most": "3", "order": "day"})
    form = {"type": "integer", "minimum": "0", "maximum": "364", "missing": "on"}
    form |= {"action": "confirm", "public": "on", "own_name": "day"}
    answer = clinics.post(f"/work/{work}/columns/1", form)
    assert "may be missing" in words(answer)  # an order without holes, or none
    del form["missing"]
    clinics.sent(f"/work/{work}/columns/1", form)
    clinics.sent(f"/work/{work}/columns/0", form | {"maximum": "120", "own_name": "age"})
    assert clinics.get(f"/work/{work}/columns/1/picture").text.count("<svg") == 1
    assert "Events of a person at most 3, ordered by day" in words(clinics.get(f"/work/{work}/columns/confirm"))
    answer = clinics.post(f"/work/{work}/columns/2", {"action": "drop"})
    assert clinics.post(f"/work/{work}/columns/1", {"action": "drop"}).status_code == 422  # it orders the events
    clinics.post(f"/work/{work}/columns/2", {"action": "keep"})
    assert clinics.confirm_rest(work).headers["location"].endswith("/rules")
    package = Description.from_dict(clinics.get(f"/work/{work}/schema.json").json())
    assert (package.link.at_most, package.link.order, package.unit.link, package.events.link) == (3, "day", "id", "who")
    assert [part.path for part in package.tables] == ["patients.csv", "visits.csv"]
    package.require_confirmed()


def test_rules_within_a_table_and_across_both(clinics, tables):
    work = described(clinics, tables)
    found = clinics.workspace.work(work)
    forbid = {"kind": "forbid", "field0": "patients.age", "values0": "up to 49"}
    forbid |= {"field1": "visits.ward", "values1": "b"}
    clinics.sent(f"/work/{work}/rules", forbid)
    own = {"kind": "forbid", "field0": "visits.day", "values0": "up to 3", "field1": "visits.ward", "values1": "a"}
    clinics.refused(f"/work/{work}/rules", own, "stands in another rule of its table")
    assert len(found.rules) == 1
    assert [set(rule.fields) for rule in found.described().rules] == [{"patients.age", "visits.ward"}]
    clinics.sent(f"/work/{work}/rules/0/remove")
    clinics.sent(f"/work/{work}/rules", own)
    assert found.described().rules == ()
    assert [rule.fields for rule in found.described().events.schema.rules] == [("day", "ward")]
    ordered = {"kind": "less_equal", "left": "patients.age", "right": "visits.day"}
    assert "the distance between them instead" in words(clinics.post(f"/work/{work}/rules", ordered))
    again = json.dumps(found.described().to_dict()).encode()  # a package keeps its rules on the way through a file
    other, answer = two_files(clinics, tables, schema=("package.json", again))
    assert answer.status_code == 303
    assert clinics.workspace.work(other).described() == found.described()
    alone = {"kind": "forbid", "field0": "patients.age", "values0": "up to 3"}
    clinics.sent(f"/work/{work}/rules", alone)
    answer = clinics.post(f"/work/{work}/columns/0", {"action": "drop"})  # which the rule needs
    assert answer.status_code == 422
    assert "Remove the rule first" in words(answer)
    assert found.columns[0].kept


def test_persons_with_events_from_review_to_bundle(clinics, tables, tmp_path):
    work = described(clinics, tables)
    clinics.sent(f"/work/{work}/columns/link", {"at_most": "3", "order": "day"})
    assert "anonymous" not in clinics.get(f"/work/{work}/privacy").text.lower()
    panel = words(clinics.get(f"/work/{work}/predict", params=CHOSEN))
    assert "noise on a cell of a table" in panel
    assert "120 persons are too few for links" in panel
    clinics.sent(f"/work/{work}/privacy", CHOSEN | {"mode": "private", "person": "day", "target": "ward"})
    assert clinics.workspace.work(work).order.person is None
    review = words(clinics.get(f"/work/{work}/review"))
    assert "patients.csv and visits.csv, 120 persons, each with at most 3 events in the order of day" in review
    assert "(at_most)" in review
    assert "for a person with all their events" in review
    assert "covey release package.json --epsilon 5 --delta 1e-5 --dataset clinic" in review
    assert "release(order)" in clinics.get(f"/work/{work}/release.py").text
    script = {"__name__": "read"}
    exec(clinics.get(f"/work/{work}/release.py").text, script)  # orders nothing, as it is not run
    assert (str(script["order"].table), script["order"].dataset) == ("package.json", "clinic")
    form = {"review": clinics.review(work)}
    assert clinics.post(f"/work/{work}/release", form).status_code == 422  # the events beyond 3 were not looked at
    clinics.sent(f"/work/{work}/release", form | {"seen": "on"})
    job = clinics.finished(work)
    assert job.state == "done", job.message
    assert len(clinics.charges("clinic")) == 1
    bundle = words(clinics.get(f"/work/{work}/bundle"))
    assert "Synthetic persons 120" in bundle
    assert "patients id age" in bundle
    assert "visits who day ward" in bundle
    facts = verify_bundle(job.bundle).facts
    assert facts["unit"].startswith("one person")
    evaluation = clinics.post(f"/work/{work}/evaluate")
    assert "confidential" in evaluation.text.lower()
    assert "fresh sample of real persons" in evaluation.text
    assert "Persons: 120 real, 120 synthetic" in words(evaluation)
    archive = zipfile.ZipFile(io.BytesIO(clinics.get(f"/work/{work}/bundle.zip").content))
    names = {name.rpartition("/")[2] for name in archive.namelist()}
    assert names >= {"patients.csv", "visits.csv", "datapackage.json"}
    for table in clinics.workspace.work(work).tables:
        assert not any(table.path.name.encode() in archive.read(name) for name in archive.namelist())
    for name, content in tables.items():
        (tmp_path / f"{name}.csv").write_bytes(content)
    (tmp_path / "package.json").write_bytes(clinics.get(f"/work/{work}/schema.json").content)
    assert run("check", tmp_path / "package.json").exit_code == 0
    clinics.sent(f"/work/{work}/close")
    assert not any(clinics.workspace.folder.glob("*/table-*"))


def test_one_table_whose_column_says_whose_each_row_is(clinics, tables):
    refused = clinics.upload(clinics.new_work(), tables["visits"], whose="whom")
    assert refused.status_code == 422
    assert "visits.csv has no column" in words(refused)
    found = clinics.given(tables["visits"], whose="who")
    work = found.id
    assert [column.called for column in found.columns] == ["visits.day", "visits.ward"]
    assert "Rows of visits with the same who belong to one person" in words(clinics.get(f"/work/{work}/columns"))
    persons = len(set(clinic(120)["visits"]["who"]))
    assert found.counted(found.order) == persons != len(clinic(120)["visits"]["who"])


def test_nobody_is_guessed_where_several_columns_could_name_the_person(clinics):
    """The program that took the first such column protected wards, and measured the true key as a number."""
    patients = {"id": [str(k) for k in range(60)], "age": [str(k % 50) for k in range(60)]}
    visits = {"ward_id": ["1", "2"] * 60, "patient": [str(k % 50) for k in range(120)], "cost": ["7.5", "8.5"] * 60}
    both = {name: as_csv(table) for name, table in (("patients", patients), ("visits", visits))}
    work, answer = two_files(clinics, both)
    assert answer.status_code == 422
    assert "everal columns of visits could name the person in patients: ward_id=id, patient=id" in words(answer)
    files = {"events": ("visits.csv", both["visits"])}
    assert clinics.upload(work, both["patients"], "patients.csv", files, whose="patient").status_code == 303
    found = clinics.workspace.work(work)
    assert (found.start.events.link, found.start.unit.key) == ("patient", "id")
    assert "patient" not in [column.field.name for column in found.columns]


def test_released_names_of_tables_are_chosen(clinics, tables):
    work, _ = two_files(clinics, tables)
    named = {"at_most": "9", "persons": "people", "events": "stays"}
    clinics.sent(f"/work/{work}/columns/link", named)
    found = clinics.workspace.work(work)
    assert [column.called for column in found.columns] == ["people.age", "stays.day", "stays.ward"]
    assert clinics.get(f"/work/{work}/columns/2/picture").text.count("<svg") == 1
    parts = clinics.get(f"/work/{work}/schema.json").json()["resources"]
    assert [part["name"] for part in parts] == ["people", "stays"]
    for bad in ("a b", "", "a/b", "<b>", "x" * 51, "STAYS"):
        answer = clinics.post(f"/work/{work}/columns/link", named | {"persons": bad})
        assert answer.status_code == 422, bad
    assert found.start.unit.name == "people"


def test_a_review_ends_with_every_change(clinics, tables):
    work = described(clinics, tables)
    found = clinics.workspace.work(work)
    both = {"events": ("visits.csv", tables["visits"]), "schema": ("package.json", json.dumps(GOOD).encode())}
    changes = (
        lambda: clinics.post(f"/work/{work}/columns/link", {"at_most": "4", "order": "day"}),
        lambda: clinics.post(f"/work/{work}/dataset", CHOSEN | {"epsilon": "9", "name": "new"}),  # refused, and kept
        lambda: clinics.upload(work, tables["patients"], "patients.csv", both),
    )
    for change in changes:
        clinics.sent(f"/work/{work}/privacy", CHOSEN)
        key = clinics.review(work)
        change()
        assert clinics.post(f"/work/{work}/release", {"review": key, "seen": "on"}).status_code == 409
        assert found.jobs == {}
    assert clinics.charges("clinic") == []


def test_an_upload_does_not_take_the_rows_of_a_release_that_has_begun(clinics, tables, monkeypatch):
    work = described(clinics, tables)
    found = clinics.workspace.work(work)
    kept, real, waiting = [table.path for table in found.tables], drafts.read_files, Job({"out": "x"}, found.folder)

    def slow(*given):
        found.jobs["review"] = waiting
        return real(*given)

    monkeypatch.setattr(work_module, "read_files", slow)
    answer = clinics.upload(work, tables["patients"], "patients.csv", {"events": ("visits.csv", tables["visits"])})
    assert answer.status_code == 409
    assert sorted(found.folder.glob("table-*")) == sorted(kept)


@pytest.mark.parametrize("change", ["orphan", "twice"])
def test_tables_that_do_not_link_are_told_and_cost_nothing(clinics, tables, change):
    columns = clinic(120)
    if change == "orphan":
        columns["visits"]["who"][0] = "nobody"
    else:
        columns["patients"]["id"][1] = columns["patients"]["id"][0]
    work = described(clinics, {name: as_csv(table) for name, table in columns.items()})
    clinics.post(f"/work/{work}/privacy", CHOSEN)
    review = clinics.get(f"/work/{work}/review")
    assert {"orphan": "1 of", "twice": "id"}[change] in words(review)
    assert "table-" not in review.text
    answer = clinics.post(f"/work/{work}/release", {"review": clinics.review(work), "seen": "on"})
    assert answer.status_code == 422
    assert clinics.charges("clinic") == []


def test_what_does_not_go_together_is_refused_and_leaves_nothing(clinics, tables):
    package = json.dumps(GOOD).encode()
    work = clinics.new_work()

    def refused(content, name, others, **fields):
        answer = clinics.upload(work, content, name, others, **fields)
        assert answer.status_code == 422
        assert not any(clinics.workspace.work(work).folder.iterdir())
        return words(answer)

    assert "describes tables and holds none" in refused(package, "pair.json", {})
    assert "two tables: give both" in refused(tables["visits"], "visits.csv", {"schema": ("pair.json", package)})
    twice = {"events": ("patients.csv", tables["visits"])}
    assert "Both files are called" in refused(tables["patients"], "patients.csv", twice)
    both = {"events": ("visits.csv", tables["visits"])}
    assert "does not link visits to patients" in refused(tables["patients"], "patients.csv", both, whose="ward")
    alone = {"resources": [{**GOOD["resources"][1], "covey": {"at_most": 9, "order": "day", "person": "who"}}]}
    alone["resources"][0]["schema"] = {**GOOD["resources"][1]["schema"], "foreignKeys": []}
    own = {"schema": ("own.json", json.dumps(alone).encode())}
    assert "as the column that identifies the person" in refused(tables["visits"], "visits.csv", own, whose="ward")
    parts = {"resources": [{**part, "path": ["a.csv", "b.csv"]} for part in GOOD["resources"]]}
    several = both | {"schema": ("x.json", json.dumps(parts).encode())}
    assert "not one file" in refused(tables["patients"], "patients.csv", several)
    single = {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}}]}
    plain = both | {"schema": ("schema.json", json.dumps(single).encode())}
    assert "describes one table" in refused(tables["patients"], "patients.csv", plain)
    turned = {"events": ("patients.csv", tables["patients"])}
    assert "which column names the person" in refused(tables["visits"], "visits.csv", turned)
