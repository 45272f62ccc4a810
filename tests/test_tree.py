"""Persons with events through the synthesizer: what is read, linked, refused, drawn and given back."""

import copy
import json
import pickle
import re
import shutil
import warnings

import numpy as np
import polars as pl
import pytest

import covey
from covey.core.tables.events import Histories
from covey.drawing import drawn_columns
from covey.errors import CoveyWarning, InputError, NotFittedError, ParameterError
from covey.preparing import check, draft
from covey.reading import Reader
from covey.release.verify import bundle_digest, described_by, tables_of, verify_rows
from covey.table.description import Description
from tests.commands import run
from tests.table.examples import sqlite_table
from tests.table.test_description import GOOD, changed

PACKAGE = Description.from_dict(GOOD)
pytestmark = [
    pytest.mark.usefixtures("quick_persons"),
    pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning"),
]


def clinic(n=300, seed=0):
    """Patients and their visits as columns of text, visits in no order."""
    g = np.random.default_rng(seed)
    who = g.permutation(np.repeat(np.arange(n), g.integers(0, 5, n)))
    patients = {"age": [str(a) for a in g.integers(0, 99, n)], "id": [f"p{i}" for i in range(n)]}
    visits = {"day": [str(d) for d in g.integers(0, 365, len(who))], "who": [f"p{i}" for i in who]}
    return {"patients": patients, "visits": {**visits, "ward": [str(w) for w in g.choice(["a", "b"], len(who))]}}


def synthesizer(package=PACKAGE, **options):
    return covey.PrivateSynthesizer(50.0, 1e-4, schema=package, seed=3, **options)


def test_two_frames_come_back_linked_numbered_and_in_order():
    pandas = pytest.importorskip("pandas")
    tables = {name: pandas.DataFrame(columns) for name, columns in clinic().items()}
    made = synthesizer().fit(tables)
    found = made.sample(200)
    patients, visits = found["patients"], found["visits"]
    assert isinstance(patients, pandas.DataFrame)
    assert patients["id"].tolist() == list(range(1, 201))
    assert list(visits.columns) == ["who", "day", "ward"]
    assert set(visits["who"]) <= set(patients["id"])
    assert visits.groupby("who").size().max() <= 9
    assert visits.groupby("who")["day"].apply(lambda own: own.is_monotonic_increasing).all()
    assert visits["day"].between(0, 365).all()
    assert "one person with all their rows" in str(covey.PrivateSynthesizer(1, schema=PACKAGE)._budget.protects)
    assert made.privacy.n == 300
    assert made.certificate is not None
    again = pickle.loads(pickle.dumps(made))
    assert set(again.sample(5)) == {"patients", "visits"}
    assert again.get_params()["schema"] == PACKAGE


def test_an_order_that_counts_is_written_anew_and_parts_go_on_numbering(monkeypatch):
    monkeypatch.setattr("covey.drawing.PART_PERSONS", 50)
    package = Description.from_dict(changed(lambda _, v: v["covey"].update(numbered=True)))
    found = synthesizer(package).fit(clinic()).sample(120)
    who, day = (np.array(found["visits"][name]) for name in ("who", "day"))
    assert found["patients"]["id"].to_list() == list(range(1, 121))
    assert who.max() > 100
    assert all(day[who == w].tolist() == list(range(1, (who == w).sum() + 1)) for w in set(who.tolist()))


@pytest.mark.parametrize("own", [{"at_most": 2}, {"at_most": 2, "order": "day"}])
def test_which_events_of_a_database_are_kept_follows_from_their_person_alone(tmp_path, own):
    """A database may bring the same rows in another order, for the sake of somebody else's: nobody's events change."""
    package = Description.from_dict(changed(lambda _, v: v.update(covey=own)))
    patients, visits = clinic(60).values()
    visits = {**visits, "day": [str(int(day) % 3) for day in visits["day"]]}  # many on one day
    found, g = [], np.random.default_rng(1)
    for name in ("one.db", "other.db"):
        rows = list(zip(*visits.values(), strict=True))
        sqlite_table(tmp_path / name, "visits (day, who, ward)", [rows[k] for k in g.permutation(len(rows))])
        table = covey.Database(str(tmp_path / name), table="visits")
        found.append(Reader(package).open({"patients": patients, "visits": table})[0])
    assert found[0].counts.max() == 2
    assert np.array_equal(found[0].events, found[1].events)
    assert np.array_equal(found[0].owner, found[1].owner)


def test_rows_of_a_person_are_found_anywhere_sorted_and_capped_by_themselves(monkeypatch):
    """However a table is cut into parts, and whoever else is in it, a person's events are the same."""
    tables = {
        "patients": {"id": ["x", "y"], "age": ["1", "2"]},
        "visits": {"who": ["y", "x", "x", "y", " x "], "day": ["5", "9", "3", "1", "4"], "ward": list("aabba")},
    }
    package = Description.from_dict(changed(lambda _, v: v["covey"].update(at_most=2)))

    def events(given):
        prepared = Reader(package).prepare(given)
        linked = prepared.rows._linked
        return [linked.events[linked.owner == k].tolist() for k in range(linked.n)], prepared.records, prepared.left_out

    whole = events(tables)
    assert [len(own) for own in whole[0]] == [2, 2]
    assert whole[1:] == (5, 1)
    first = [own[0] for own in whole[0][0]]
    assert first == sorted(first)
    monkeypatch.setattr("covey.table.columns.PART_ROWS", 1)
    assert events(tables) == whole
    alone = {
        "patients": {"id": ["x"], "age": ["1"]},
        "visits": {"who": ["x"] * 3, "day": ["9", "3", "4"], "ward": list("aba")},
    }
    assert events(alone)[0][0] == whole[0][0]


def test_persons_without_events_count():
    tables = clinic(20)
    prepared = Reader(PACKAGE).prepare({**tables, "visits": {k: v[:3] for k, v in tables["visits"].items()}})
    assert prepared.n == 20
    assert repr(prepared) == "Prepared(20 persons)"
    assert repr(prepared.rows) == "EventRows(20 persons)"


def test_a_check_counts_rows_of_each_table_that_break_its_own_rules():
    tables = {
        "patients": {"id": ["x", "y"], "age": ["1", "2"]},
        "visits": {"who": ["x", "y", "y"], "day": ["300", "301", "2"], "ward": ["a", "a", "a"]},
    }
    rule = {"forbid": {"day": {"minimum": 300}, "ward": "a"}}
    package = Description.from_dict(changed(lambda _, v: v["schema"].update(covey={"rules": [rule]})))
    found = check(tables, package)
    assert [(own.word, count) for own, count in found.broken] == [("forbid", 2)]
    assert any(str(finding).startswith("visits: 2 of 3 rows break the rule") for finding in found.findings)
    assert not check(tables, PACKAGE).broken


def same_from(package, folder, tables):
    """Whether tables where a package says they lie are linked as those in memory."""
    found, same = Reader(package).open(package.places(folder / "package.json"))[0], Reader(PACKAGE).open(tables)[0]
    return all((getattr(found, name) == getattr(same, name)).all() for name in ("persons", "events", "owner"))


def test_tables_of_a_database_are_those_of_a_file(tmp_path):
    tables = clinic(30)
    for name, columns in tables.items():
        sqlite_table(tmp_path / "clinic.db", f"{name} ({', '.join(columns)})", zip(*columns.values(), strict=True))
    places = {"path": "clinic.db"}
    package = Description.from_dict(
        changed(lambda p, v: (p.update(places, table="patients"), v.update(places, table="visits")))
    )
    assert Description.from_dict(package.to_dict()) == package
    assert "clinic.db" not in str(package.plain().to_dict())
    assert same_from(package, tmp_path, tables)
    for resource, words in (
        ({"path": "clinic.db"}, "Say which table"),
        ({"path": "a.csv", "table": "t"}, "no database"),
    ):
        torn = Description.from_dict(changed(lambda p, v, own=resource: p.update(own)))
        with pytest.raises(ParameterError, match=words):
            torn.places(tmp_path / "package.json")


def test_tables_of_a_server_are_those_of_a_file(postgresql, tmp_path):
    tables = clinic(30)
    names = {name: postgresql.load(pl.DataFrame(columns)) for name, columns in tables.items()}
    place = {"path": postgresql.url()}
    package = Description.from_dict(
        changed(lambda p, v: (p.update(place, table=names["patients"]), v.update(place, table=names["visits"])))
    )
    assert postgresql.password not in str(package.plain().to_dict())
    assert same_from(package, tmp_path, tables)


def with_row(columns, **row):
    for name, value in row.items():
        columns[name].append(value)


NOT_IN_PATIENTS = "1 of .* rows have a 'who' that is not in patients"
BAD = {
    "an orphan": (lambda p, v: with_row(v, who="q", day="1", ward="a"), NOT_IN_PATIENTS),
    "nobody's event": (lambda p, v: with_row(v, who="", day="1", ward="a"), NOT_IN_PATIENTS),
    "a person twice": (lambda p, v: with_row(p, id="p1", age="4"), "1 values of 'id' occur in several rows"),
    "a person without key": (lambda p, v: with_row(p, id=" ", age="4"), "1 of 31 rows have no 'id'"),
    "no events": (lambda p, v: [c.clear() for c in v.values()], "visits has a header and no rows. Release patients"),
    "no persons": (lambda p, v: [c.clear() for c in p.values()], "patients has a header and no rows"),
    "a hole in the order": (lambda p, v: with_row(v, who="p1", day="", ward="a"), "1 of .* rows have no 'day'"),
    "an order that is no number": (lambda p, v: with_row(v, who="p1", day="x", ward="a"), "have no 'day'"),
    "a column is missing": (lambda p, v: v.pop("ward"), "ward"),
    "the key is missing": (lambda p, v: v.pop("who"), "who"),
}


@pytest.mark.parametrize("name", BAD)
def test_tables_that_do_not_link_are_refused_in_words(name):
    tables, (change, words) = clinic(30), BAD[name]
    change(tables["patients"], tables["visits"])
    with pytest.raises(InputError, match=words):
        synthesizer().fit(tables)


def test_what_a_package_does_not_take_is_refused():
    with pytest.raises(ParameterError, match="rows_per_person: a package of persons and events takes no"):
        synthesizer(rows_per_person=3)
    with pytest.raises(ParameterError, match=r"give both tables by name: \{'patients': …, 'visits': …\}"):
        synthesizer().fit({"patients": {}})
    with pytest.raises(ParameterError, match="epsilon must be positive"):
        covey.PrivateSynthesizer(0, schema=PACKAGE)
    with pytest.raises(ParameterError, match="opendp"):
        synthesizer(noise="opendp")
    with pytest.raises(NotFittedError):
        synthesizer().sample(3)
    with pytest.raises(ParameterError, match="below 1/n"):
        covey.PrivateSynthesizer(1.0, 0.01, schema=PACKAGE).fit(clinic())
    prepared = Reader(Description.from_dict(changed(lambda _, v: v["covey"].update(at_most=2)))).prepare(clinic(9))
    with pytest.raises(ParameterError, match="prepared by another synthesizer"):
        synthesizer().fit(prepared)


@pytest.mark.filterwarnings("default::covey.errors.CoveyWarning")
def test_few_persons_are_advised_against():
    with pytest.warns(CoveyWarning, match="300 persons are too few for links at epsilon = 1"):
        covey.PrivateSynthesizer(1.0, 1e-6, schema=PACKAGE).fit(clinic())


def test_drawn_sequences_are_codes_of_the_two_tables():
    drawn = Histories(np.array([[1], [2]]), np.array([[3, 0], [7, 1]]), np.array([1, 1]), 9)
    persons, events = drawn_columns(PACKAGE, drawn, np.random.default_rng(0), first=11)
    assert persons["id"].to_list() == [11, 12]
    assert events["who"].to_list() == [12, 12]
    assert events["day"].to_list() == [3, 7]
    assert events["ward"].to_list() == ["a", "b"]


def timed_clinic(n=900, seed=0):
    """First visits are to ward a, later ones to b, and ten days lie between two visits of a patient."""
    g = np.random.default_rng(seed)
    many = g.integers(0, 5, n)
    who = np.repeat(np.arange(n), many)
    place = np.arange(len(who)) - np.repeat(np.cumsum(many) - many, many)
    day = g.integers(0, 300, n)[who] + 10 * place
    visits = {"who": [f"p{k}" for k in who], "day": [str(d) for d in day], "ward": ["b" if t else "a" for t in place]}
    patients = {"id": [f"p{k}" for k in range(n)], "age": [str(a) for a in g.integers(0, 99, n)]}
    return {"patients": patients, "visits": visits}


def test_first_visits_and_the_time_between_visits_are_kept_where_they_are_measured(monkeypatch):
    """The program without places and gaps makes first visits like all others, and spaces visits at random."""
    monkeypatch.setattr("covey.core.fit.events.STEPS", 60)
    found = {}
    for on in (False, True):
        package = Description.from_dict(changed(lambda _, v, on=on: v["covey"].update(positions=on, gaps=on)))
        assert Description.from_dict(package.to_dict()) == package
        made = synthesizer(package).fit(timed_clinic())
        visits = made.sample(900)["visits"]
        who, day, ward = (np.array(visits[name]) for name in ("who", "day", "ward"))
        first = np.flatnonzero(np.diff(who, prepend=0))
        later = np.setdiff1d(np.arange(len(who)), first)
        found[on] = (ward[first] == "a").mean(), (ward[later] == "a").mean(), np.median(day[later] - day[later - 1])
        assert list(visits.columns) == ["who", "day", "ward"]
        assert (day[later] >= day[later - 1]).all()
        assert day.max() <= 365
    assert found[True][0] > 0.9 > 0.1 > found[True][1]
    assert found[True][2] == pytest.approx(10, abs=2)
    assert found[False][0] < 0.75
    assert found[False][2] > 20
    answers = made.release(10)
    assert answers.share({"ward": "a"}, given={"position": "1"}).value > 0.9
    assert answers.wait().value == pytest.approx(10, abs=2)


def test_an_order_of_one_value_orders_nothing_and_is_no_traceback():
    """It is not encoded, and places among a person's events were told from a column that was not there."""

    def change(patients, visits):
        visits["schema"]["fields"][1]["constraints"] |= {"minimum": 7, "maximum": 7}
        visits["schema"]["fields"][1]["covey"] = {}
        visits["covey"] |= {"positions": True, "gaps": True}

    tables = clinic()
    tables["visits"]["day"] = ["7"] * len(tables["visits"]["day"])
    assert set(synthesizer(Description.from_dict(changed(change))).fit(tables).sample(50)["visits"]["day"]) == {7}


# Persons with events on the command line: drafted, confirmed, checked, planned, released, verified, evaluated, refused.

RELEASE = ["--epsilon", "5", "--delta", "1e-5"]


def write(folder, tables):
    for name, columns in tables.items():
        lines = [",".join(columns), *(",".join(row) for row in zip(*columns.values(), strict=True))]
        (folder / f"{name}.csv").write_text("\n".join(lines) + "\n")
    (folder / "package.json").write_text(json.dumps(GOOD))
    return folder / "package.json"


@pytest.fixture
def package(tmp_path):
    return write(tmp_path, clinic())


def test_from_a_package_to_a_bundle_and_back(package, tmp_path):
    ledger, out = tmp_path / "ledger.json", tmp_path / "release"
    assert run("ledger", "open", "clinic", "--budget", "10", "--ledger", ledger).exit_code == 0
    private = ["--log", tmp_path / "log.json", "--title", "A small clinic", "--owner", "The registry"]
    done = run("release", package, *RELEASE, "--dataset", "clinic", "--ledger", ledger, "--out", out, *private)
    assert done.exit_code == 0, done.output
    assert set(json.loads((tmp_path / "log.json").read_text())["columns"]) == {
        "patients.age",
        "visits.day",
        "visits.ward",
    }
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
    said = (out / "README.md").read_text() + page + (out / "privacy.json").read_text()
    true_events = len(clinic()["visits"]["who"])
    told = re.sub("<[^>]*>", " ", said)  # places in pictures and digests are no counts
    told = re.sub(
        r'[\d,]+, in visits.csv|"visits": \d+', "", told
    )  # how many were drawn, which may be as many by chance
    assert not re.search(rf"(?<![\w.,]){true_events}(?![\w.])", told)
    assert re.search(r"(?<![\w.,])300(?![\w.])", told)  # the number of persons is public, and would be found
    assert not any(
        f"p{k}," in (out / f"{name}.csv").read_text() for name in ("patients", "visits") for k in (1, 17, 299)
    )
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
    assert any(
        words.startswith(line) for words in json.loads(run("evaluate", package, out, "--json").output)["changed"]
    )
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
    assert (
        "The fields are: 'patients.age'"
        in run("release", package, *RELEASE, "--target", "x", "--seed", "1", "--out", out).output
    )


def test_an_earlier_bundle_serves_as_prior_where_its_tables_are_the_same(package, tmp_path):
    first, second = tmp_path / "first", tmp_path / "second"
    assert run("release", package, *RELEASE, "--seed", "1", "--out", first).exit_code == 0
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


def test_columns_of_persons_and_of_events_are_predicted(package, tmp_path):
    out = tmp_path / "release"
    assert run("release", package, *RELEASE, "--seed", "1", "--out", out).exit_code == 0
    done = run("evaluate", package, out, "--target", "ward", "--target", "patients.age")
    assert done.exit_code == 0, done.output
    assert "AUC for visits.ward: 0." in done.output
    figures = json.loads(run("evaluate", package, out, "--target", "ward", "--json").output)
    [found] = figures["prediction"]
    assert found["trained_on_true"]["auc"] > 0.4
    assert "The fields are: 'patients.age'" in run("evaluate", package, out, "--target", "x").output


def test_persons_who_meet_conditions_are_drawn_with_all_their_events(package, tmp_path):
    out, more = tmp_path / "release", tmp_path / "more"
    assert run("release", package, *RELEASE, "--seed", "1", "--out", out).exit_code == 0
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


def traces(place, tables):
    """All that leaves a release of these tables, on the screen too, without drawn rows and noise."""
    place.mkdir()
    package, ledger, out = write(place, tables), place / "ledger", place / "out"
    run("ledger", "open", "clinic", "--budget", "10", "--ledger", ledger)
    done = run("release", package, *RELEASE, "--dataset", "clinic", "--ledger", ledger, "--out", out)
    words = [done.output, (out / "README.md").read_text(), run("verify", out).output]
    certificate = json.loads((out / "certificate.json").read_text())
    described = json.loads((out / "datapackage.json").read_text())
    facts = json.loads((out / "privacy.json").read_text())
    drawn = facts["synthetic_rows"].pop("visits")
    assert drawn == len((out / "visits.csv").read_text().splitlines()) - 1
    assert described.pop("created").endswith("T00:00:00Z")  # a time of day would tell how long it took
    arrays = {}
    for name in ("model.npz", "measurements.npz"):
        with np.load(out / name) as file:
            arrays[name] = {key: (array.dtype, array.ndim) for key, array in file.items()}
    return {
        "code": done.exit_code,
        "words": [
            re.sub(rf"at most [\d.]+%|≤ [\d.]+|{drawn} visits", "", text.replace(str(place), "")) for text in words
        ],
        "files": sorted(path.name for path in out.iterdir()),
        "facts": [facts, (out / "measurements.json").read_text(), described],
        "certificate": [sorted(certificate), certificate["about"], certificate["cost"]],
        "arrays": arrays,
    }


def with_first(events):
    """The clinic, whose first patient has these visits and no others."""
    tables = clinic()
    own = [visit for visit in zip(*tables["visits"].values(), strict=True) if visit[1] != "p0"]
    columns = zip(*own, *events, strict=True)
    return {**tables, "visits": dict(zip(tables["visits"], map(list, columns), strict=True))}


def test_one_person_changes_nothing_but_noise(tmp_path, monkeypatch):
    """Whatever the events of one person are, and however many: every word, name, shape and type that leaves is the same."""
    clean = traces(tmp_path / "clean", with_first([]))
    assert clean["code"] == 0
    assert traces(tmp_path / "odd", with_first([("1e9", "p0", "zzz"), ("-4", "p0", "")] * 7)) == clean
    # A wrong program tells how many events there are.
    real = covey.PrivateSynthesizer.fit

    def telling(self, prepared):
        warnings.warn(f"{prepared.records} events", covey.errors.CoveyWarning, stacklevel=1)
        return real(self, prepared)

    monkeypatch.setattr(covey.PrivateSynthesizer, "fit", telling)
    found = [traces(tmp_path / str(k), with_first([("1", "p0", "a")] * k))["words"] for k in (2, 3)]
    assert found[0] != found[1]


def test_a_table_of_events_has_a_row_even_where_next_to_nobody_has_events(package, tmp_path):
    """A table without one could be neither verified nor loaded."""
    lines = (tmp_path / "visits.csv").read_text().splitlines()
    (tmp_path / "visits.csv").write_text("\n".join(lines[:2]) + "\n")
    few = ["--epsilon", "10", "--rows", "1", "--seed", "1", "--out", tmp_path / "release"]
    done = run("release", package, *few)
    assert done.exit_code == 0, done.output
    assert len((tmp_path / "release" / "visits.csv").read_text().splitlines()) == 2
    assert "at most 100% of the persons would have to move" in done.output
    assert run("verify", tmp_path / "release").exit_code == 0


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
    assert run("confirm", draft, *names).output.strip().endswith("every field is confirmed")
    torn = run("init", tmp_path / "visits.csv", tmp_path / "patients.csv", "-o", tmp_path / "other.json")
    assert "which column names the person" in torn.output
    twice = run("init", tmp_path / "visits.csv", tmp_path / "visits.csv", "-o", tmp_path / "other.json")
    assert "visits.csv is given twice" in twice.output
    assert (
        "several event tables are not supported yet"
        in run("init", "a.csv", "b.csv", "c.csv", "-o", draft, "--force").output
    )


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


def ruled(change=lambda data: None):
    """Nobody under 50 lies in ward b."""
    data = copy.deepcopy(GOOD)
    data["covey"] = {"rules": [{"forbid": {"patients.age": {"maximum": 49}, "visits.ward": "b"}}]}
    change(data)
    return data


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
    done = run("release", package, *RELEASE, "--seed", "1", "--out", out)
    assert done.exit_code == 0, done.output
    assert run("verify", out).exit_code == 0
    assert json.loads((out / "privacy.json").read_text())["n"] == named
    assert (out / "persons.csv").read_text().splitlines()[1:3] == ["1", "2"]
    assert not any(f"p{k}," in (out / "visits.csv").read_text() for k in range(300))
    drawn = covey.load(out).rows()
    assert set(drawn["visits"]["who"]) == set(drawn["persons"]["id"])  # whom no event names is not known
    assert "there is no column 'person'" in run("ask", out, "share person=true").output


BAD_RULES = {
    "must name one field of visits": {"forbid": {"patients.age": 3}},
    "orders a field of a person and one of an event.*Give visits the distance": {
        "less_equal": {"left": "patients.age", "right": "visits.day"}
    },
    "forbid or require": {"linear": {"coefficients": {"patients.age": 1, "visits.day": 1}, "maximum": 9}},
    "is not a field": {"forbid": {"patients.age": 3, "visits.price": 2}},
    "orders events": {"forbid": {"patients.age": 3, "visits.day": 2}},
    "leave some persons no event": {"forbid": {"patients.age": 3, "visits.ward": ["a", "b", None]}},
}


@pytest.mark.parametrize("words", BAD_RULES)
def test_rules_that_cannot_be_kept_are_refused(words):
    with pytest.raises(ParameterError, match=words):
        covey.PrivateSynthesizer(
            1, schema=Description.from_dict(ruled(lambda d: d["covey"].update(rules=[BAD_RULES[words]])))
        )


REFUSED = {
    "anonymize": ["anonymize", "PACKAGE", "--group-size", "5", "--out", "x"],
    "a schema besides": ["release", "PACKAGE", "--schema", "PACKAGE", *RELEASE, "--seed", "1", "--out", "x"],
    "a person besides": ["release", "PACKAGE", "--person", "who", *RELEASE, "--seed", "1", "--out", "x"],
    "no dataset": ["release", "PACKAGE", *RELEASE, "--out", "x"],
    "large epsilon": ["release", "PACKAGE", "--epsilon", "50", "--seed", "1", "--out", "x"],
    "triples": ["release", "PACKAGE", "--triples", "3", *RELEASE, "--seed", "1", "--out", "x"],
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
    from covey.core.tables.events import Histories
    from covey.evaluating import compared_tables

    g = np.random.default_rng(0)
    one = Histories(g.integers(0, 1000, (400, 1)), g.integers(0, 3, (800, 1)), np.repeat(np.arange(400), 2), 4)
    [query] = compared_tables(one, one, ordered=False)["across"]
    assert [query.factors[a].size for a in (0, 1)] == [20, 3]
    assert np.bincount(query.factors[0].at(one.persons[:, 0])).max() < 40
    again = one.resampled(400, g)
    assert (again.counts == 2).all()
    assert again.events.shape == one.events.shape
