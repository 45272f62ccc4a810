"""Persons with events, wherever their tables lie: found, linked, sorted, capped, and refused where they do not link."""

import numpy as np
import polars as pl
import pytest

import covey
from covey.errors import InputError, ParameterError
from covey.tables import columns as reading
from covey.tables.description import Description
from covey.tables.reading import Reader
from tests.clinic import PACKAGE, clinic, described
from tests.tables.examples import sqlite_table


@pytest.mark.parametrize("own", [{"at_most": 2}, {"at_most": 2, "order": "day"}])
def test_which_events_of_a_database_are_kept_follows_from_their_person_alone(tmp_path, own):
    """A database may bring the same rows in another order, for the sake of somebody else's: nobody's events change."""
    package = described(lambda _, v: v.update(covey=own))
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
    package = described(lambda _, v: v["covey"].update(at_most=2))

    def events(given):
        prepared = Reader(package).prepare(given)
        linked = prepared.rows._linked
        return [linked.events[linked.owner == k].tolist() for k in range(linked.n)], prepared.records, prepared.left_out

    whole = events(tables)
    assert [len(own) for own in whole[0]] == [2, 2]
    assert whole[1:] == (5, 1)
    first = [own[0] for own in whole[0][0]]
    assert first == sorted(first)
    monkeypatch.setattr(reading, "PART_ROWS", 1)
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


def same_from(package, folder, tables):
    """Whether tables where a package says they lie are linked as those in memory."""
    found, same = Reader(package).open(package.places(folder / "package.json"))[0], Reader(PACKAGE).open(tables)[0]
    return all((getattr(found, name) == getattr(same, name)).all() for name in ("persons", "events", "owner"))


def test_tables_of_a_database_are_those_of_a_file(tmp_path):
    tables = clinic(30)
    for name, columns in tables.items():
        sqlite_table(tmp_path / "clinic.db", f"{name} ({', '.join(columns)})", zip(*columns.values(), strict=True))
    places = {"path": "clinic.db"}
    package = described(lambda p, v: (p.update(places, table="patients"), v.update(places, table="visits")))
    assert Description.from_dict(package.to_dict()) == package
    assert "clinic.db" not in str(package.plain().to_dict())
    assert same_from(package, tmp_path, tables)
    for resource, words in (
        ({"path": "clinic.db"}, "Say which table"),
        ({"path": "a.csv", "table": "t"}, "no database"),
    ):
        torn = described(lambda p, v, own=resource: p.update(own))
        with pytest.raises(ParameterError, match=words):
            torn.places(tmp_path / "package.json")


def test_tables_of_a_server_are_those_of_a_file(postgresql, tmp_path):
    tables = clinic(30)
    names = {name: postgresql.load(pl.DataFrame(columns)) for name, columns in tables.items()}
    place = {"path": postgresql.url()}
    package = described(lambda p, v: [part.update(place, table=names[part["name"]]) for part in (p, v)])
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
        Reader(PACKAGE).prepare(tables)
