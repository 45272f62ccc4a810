"""Persons with events through the synthesizer: what is read, linked, refused, drawn and given back."""

import pickle

import numpy as np
import polars as pl
import pytest

import covey
from covey.core.tables.events import Histories
from covey.drawing import drawn_columns
from covey.errors import CoveyWarning, InputError, NotFittedError, ParameterError
from covey.preparing import check
from covey.reading import Reader
from covey.table.description import Description
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
