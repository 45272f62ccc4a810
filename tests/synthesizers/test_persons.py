"""Persons with events through the synthesizer: what is refused, drawn and given back."""

import pickle

import numpy as np
import pytest

import covey
import covey.engine.fit.events as fit
from covey.engine.codes.events import Histories
from covey.errors import NotFittedError, ParameterError
from covey.release import drawing as drawing
from covey.release.drawing import drawn_columns
from covey.tables.description import Description
from tests.clinic import PACKAGE, clinic, described, ruled

pytestmark = [pytest.mark.usefixtures("quick_persons"), pytest.mark.filterwarnings("ignore::covey.errors.CoveyWarning")]


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
    monkeypatch.setattr(drawing.MakePersons, "size", 50)
    package = described(lambda _, v: v["covey"].update(numbered=True))
    found = synthesizer(package).fit(clinic()).sample(120)
    who, day = (np.array(found["visits"][name]) for name in ("who", "day"))
    assert found["patients"]["id"].to_list() == list(range(1, 121))
    assert who.max() > 100
    assert all(day[who == w].tolist() == list(range(1, (who == w).sum() + 1)) for w in set(who.tolist()))


def test_what_a_package_does_not_take_is_refused():
    with pytest.raises(ParameterError, match="rows_per_person: a package of persons and events takes no"):
        synthesizer(rows_per_person=3)
    with pytest.raises(ParameterError, match=r"give both tables by name: \{'patients': …, 'visits': …\}"):
        synthesizer().fit({"patients": {}})
    with pytest.raises(ParameterError, match="epsilon must be positive"):
        covey.PrivateSynthesizer(0, schema=PACKAGE)
    with pytest.raises(NotFittedError):
        synthesizer().sample(3)
    with pytest.raises(ParameterError, match="below 1/n"):
        covey.PrivateSynthesizer(1.0, 0.01, schema=PACKAGE).fit(clinic())


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
    monkeypatch.setattr(fit, "STEPS", 60)
    found = {}
    for on in (False, True):
        package = described(lambda _, v, on=on: v["covey"].update(positions=on, gaps=on))
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
    assert set(synthesizer(described(change)).fit(tables).sample(50)["visits"]["day"]) == {7}


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
