"""Answers about persons with events: right, honest where there is noise, and refused where no table holds them."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from covey.engine.budget import PrivacyStatement, make_budget
from covey.engine.codes.events import WEIGHT_STEPS, Histories
from covey.engine.measurement import Measurement, Measurements
from covey.engine.model import Fitted
from covey.engine.models.persons.method import count_factor
from covey.engine.noise.law import GAUSSIAN
from covey.engine.query import Factor, Query
from covey.errors import CannotAnswerError, ParameterError
from covey.release.answers.asking import ask
from covey.release.answers.estimates import Rows
from covey.release.answers.release import Release
from covey.release.answers.tables import write_tables
from covey.synthesizers import PrivateSynthesizer
from covey.tables.description import Description
from covey.tables.resources import Parent, Resource
from covey.tables.schema import Field, Schema
from tests.entries import schema_of
from tests.release.answers.test_release import least_squares, logistic

PACKAGE = Description(
    (
        Resource("patients", Schema((Field("sex", "string", enum=("f", "m"), required=True),)), "id"),
        Resource(
            "visits",
            schema_of(
                Field("day", "integer", 0, 9, bins=10, required=True, default=0),
                Field("ward", "string", enum=("a", "b", "c"), required=True),
                Field("cost", "integer", 0, 9, bins=10, required=True, default=0),
            ),
            parent=Parent("patients", "who", 9, "day"),
        ),
    )
)
N, TABLE = 1500, {"about": "table"}


def persons(seed=0):
    """Who has more events has dearer ones, and men have more: persons and events do not weigh alike."""
    g = np.random.default_rng(seed)
    sex = g.integers(0, 2, N)
    many = g.binomial(9, 0.2 + 0.3 * sex)
    owner = np.repeat(np.arange(N), many)
    ward = g.integers(0, 3, len(owner))
    cost = np.minimum(9, g.poisson(1 + many[owner] / 2 + ward))
    day = g.integers(0, 10, len(owner))
    order = np.lexsort((day, owner))
    return Histories(sex[:, None], np.stack([day, ward, cost], axis=1)[order], owner[order], 9)


def release(linked, sd, seed=0):
    """As a release holds them: exact tables with Gaussian noise of a known size."""
    g = np.random.default_rng(seed)

    def noisy(exact):
        return exact / WEIGHT_STEPS + sd * g.standard_normal(exact.shape)

    kinds = [("person", 0, 4), *(("across", a, b) for a in (0, 4) for b in (1, 2, 3)), ("step", 1, 1)]
    factors, found, one_way = dict(enumerate((*map(Factor.plain, (2, 10, 3, 10)), count_factor(9)))), [], []
    for kind, *columns in (*kinds, ("event", 1, 2), ("event", 1, 3), ("event", 2, 3)):
        query = Query([tuple(columns)], factors, of=kind, total=False)
        values = noisy(query.kernel()(linked).integers()[0])
        found.append(Measurement(query, values, sd, GAUSSIAN, linked.n))
    for table, codes, weights in ((linked.persons, (2,), None), (linked.events, (10, 3, 10), linked.single)):
        for j, size in enumerate(codes):
            steps = np.full(linked.n, WEIGHT_STEPS) if weights is None else weights
            exact = np.bincount(table[:, j], steps, minlength=size)
            query = Query([(len(one_way),)], {len(one_way): Factor.plain(size)}, of="person", total=False)
            one_way.append(Measurement(query, noisy(exact), sd, GAUSSIAN, linked.n))
    query = Query([(4,)], {4: Factor.plain(10)}, of="person", total=False)
    counts = Measurement(query, noisy(query.kernel()(linked).integers()[0]), sd, GAUSSIAN, linked.n)
    measured = Measurements(linked.n, (*one_way, counts, *found))
    budget = make_budget(Fraction(1), Fraction(1, 10**6), persons=True)
    privacy = PrivacyStatement(budget, (), linked.n, "regain", False)
    found = Release((), PACKAGE, Fitted(None, measured), privacy, "0")
    # In place of persons that a law draws, each with one event: those of the table.
    starts = np.cumsum(linked.counts) - linked.counts
    at = starts + (g.random(linked.n) * linked.counts).astype(int)
    events = np.where(linked.counts[:, None] > 0, linked.events[np.minimum(at, len(linked.events) - 1)], -1)
    found.__dict__["drawn"] = Rows(np.column_stack([linked.persons, events, linked.counts]))
    return found


def truths(linked):
    """Questions in words, and what is true of the table."""
    single, (day, ward, cost) = linked.single / linked.single.sum(), linked.events.T
    sex, of = linked.persons[:, 0], linked.persons[linked.owner, 0]

    def mean(x, weights):
        return np.average(x, weights=weights)

    steps, weight = linked.steps
    gap = day[steps + 1] - day[steps]
    return {
        "share sex=m": (sex == 1).mean(),
        "share ward=b": mean(ward == 1, single),
        "share ward=b given sex=m": mean(ward == 1, single * (of == 1)),
        "share ward=b per event": (ward == 1).mean(),
        "mean cost": mean(cost, single),
        "mean cost per event": cost.mean(),
        "mean cost where ward=c per person": mean(cost, single * (ward == 2)),
        "rate": len(cost) / linked.n,
        "rate ward=c": (ward == 2).sum() / linked.n,
        "wait": mean(gap, weight),
    }


def test_without_noise_answers_are_those_of_the_table_up_to_what_bins_leave_open():
    linked = persons()
    found, true = release(linked, 0.0), truths(linked)
    for question, value in true.items():
        answer = ask(found, question, **TABLE)
        assert answer.low - 1e-4 <= value <= answer.high + 1e-4, question
        if question not in ("share ward=b per event", "mean cost per event", "rate ward=c", "wait"):
            assert answer.value == pytest.approx(value, abs=2e-4), question
            assert answer.high - answer.low < 1e-2, question
    # Events beyond the limit were cut, and nobody who has the bundle knows how many: answers about events say so.
    for question in true:
        assert ("a person's first 9 events" in ask(found, question).method) == (question != "share sex=m"), question
    assert "first 9 events" in ask(found, "rate by sex")["f"].method
    groups = ask(found, "mean cost by ward", **TABLE)
    assert groups.labels == ("a", "b", "c")
    assert groups["c"].value == pytest.approx(true["mean cost where ward=c per person"], abs=1e-3)
    rates = ask(found, "rate by sex", **TABLE)
    assert rates["m"].low <= linked.counts[linked.persons[:, 0] == 1].mean() <= rates["m"].high
    assert rates["f"].high < rates["m"].low


def test_persons_are_counted_by_their_columns_and_events_by_one_of_theirs():
    """Shares within a group were multiplied by the number of persons, and events could not be counted."""
    linked = persons()
    found, sex = release(linked, 0.0), linked.persons[:, 0]
    assert [one.value for one in ask(found, "count by sex")] == pytest.approx(
        [np.sum(sex == k) for k in (0, 1)], abs=0.1
    )
    assert [one.value for one in ask(found, "count sex=m by sex")] == pytest.approx([0, np.sum(sex == 1)], abs=0.1)
    for one, k in zip(ask(found, "count by ward"), range(3), strict=True):
        assert one.low <= np.sum(linked.events[:, 1] == k) <= one.high
    assert ask(found, "count cost>=9").value == pytest.approx(np.sum(linked.events[:, 2] == 9), rel=0.05)
    assert "first 9 events" in ask(found, "count ward=a").method
    with pytest.raises(CannotAnswerError, match="three things at once"):
        ask(found, "count ward=a by sex")
    alone = replace(found.privacy, budget=make_budget(Fraction(1), neighbours="add-or-remove-one", persons=True))
    with pytest.raises(CannotAnswerError, match="the number of persons is secret"):
        replace(found, privacy=alone).count({"sex": "f"})


def weighted(linked):
    """One row an event, and its weight: every person with events counts once."""
    day, ward, cost = linked.events.T
    return day, ward, cost, linked.persons[linked.owner, 0], linked.single / linked.single.sum()


def test_quantiles_correlations_and_regressions_are_those_of_a_random_event_of_a_random_person():
    """A program that lets every event count once is far off: who has many events has dear ones."""
    linked = persons()
    day, ward, cost, sex, w = weighted(linked)
    found = release(linked, 0.0)
    order = np.argsort(cost, kind="stable")
    median = cost[order][np.searchsorted(np.cumsum(w[order]), 0.5)]
    assert (ask(found, "median cost", **TABLE).low, ask(found, "median cost", **TABLE).high) == (median, median)
    some = ward == 2
    inside = np.argsort(cost[some], kind="stable")
    median = cost[some][inside][np.searchsorted(np.cumsum(w[some][inside]), 0.5 * w[some].sum())]
    assert ask(found, "median cost where ward=c", **TABLE).value == median
    x, y = day - w @ day, cost - w @ cost
    true = w @ (x * y) / np.sqrt((w @ x**2) * (w @ y**2))
    assert ask(found, "correlation day cost", **TABLE).value == pytest.approx(true, abs=1e-3)
    groups = [(ward == k).astype(float) for k in range(3)]
    common = int(np.argmax([w @ g for g in groups]))
    others = [k for k in range(3) if k != common]
    both = least_squares(cost, *(groups[k] for k in others), day, weights=w)
    answer = ask(found, "regress cost ~ ward + day", **TABLE)
    assert [a.value for a in answer] == pytest.approx(both, abs=2e-3)
    wrong = least_squares(cost, *(groups[k] for k in others), day, weights=np.full(len(w), 1 / len(w)))
    assert np.abs(np.subtract(wrong, both)).max() > 0.1
    # An attribute of persons, among those who have events.
    men = 1.0 * (sex == 1) if w @ (sex == 1) < w @ (sex == 0) else 1.0 * (sex == 0)
    label = "sex=m" if w @ (sex == 1) < w @ (sex == 0) else "sex=f"
    one = ask(found, "regress cost ~ sex", **TABLE)
    mine = [own.value for own in one]
    alone = least_squares(cost, men if label in one.labels else 1 - men, weights=w)
    assert mine == pytest.approx(alone, abs=2e-3)
    mixed = ask(found, "regress cost ~ sex + day", **TABLE)
    right = least_squares(cost, men if label in mixed.labels else 1 - men, day, weights=w)
    assert [a.value for a in mixed] == pytest.approx(right, abs=2e-3)
    assert "first 9 events" in one[0].method


def test_a_logistic_regression_of_events_is_moved_to_what_was_measured():
    linked = persons()
    _, ward, cost, _, w = weighted(linked)
    answer = release(linked, 0.0).regress("ward=c ~ cost", "logistic", about="table")
    assert [a.value for a in answer] == pytest.approx(logistic(ward == 2, cost, weights=w), abs=0.05)


def test_regressions_hold_the_truth_as_often_as_they_say():
    held = asked = wrong = 0
    for seed in range(24):
        linked = persons(seed)
        cost, sex = weighted(linked)[2:4]
        noisy, exact = release(linked, 3.0, seed), release(linked, 0.0, seed)
        for question in ("regress cost ~ sex", "regress cost ~ day", "regress cost ~ sex + day"):
            answers, true = (ask(own, question, **TABLE) for own in (noisy, exact))
            both = [(a, true[label]) for a, label in zip(answers, answers.labels, strict=True) if label in true.labels]
            held += sum(a.low <= t.value <= a.high for a, t in both[1:])
            asked += len(both) - 1
        found = ask(noisy, "regress cost ~ sex", **TABLE)
        by_event = cost[sex == (found.labels[1] == "sex=f")].mean()  # of those who are compared with
        wrong += found[0].low <= by_event <= found[0].high
    assert asked > 80
    assert held >= 0.9 * asked
    assert wrong <= 6


def test_intervals_hold_the_truth_as_often_as_they_say():
    """A program that takes a random event of all for a random event of a random person misses nearly every time."""
    held, wrong, asked = 0, 0, 0
    for seed in range(12):
        linked = persons(seed)
        found, true = release(linked, 12.0, seed), truths(linked)
        for question, value in true.items():
            answer = ask(found, question, **TABLE)
            held += answer.low <= value <= answer.high
            asked += 1
        swapped = ask(found, "mean cost per person", **TABLE)
        wrong += swapped.low <= true["mean cost per event"] <= swapped.high
    assert held >= 0.92 * asked
    assert wrong <= 2


def test_the_population_is_farther_away_than_the_table():
    found = release(persons(), 12.0)
    for question in ("share ward=b", "mean cost", "rate"):
        one, other = (ask(found, question, about=about) for about in ("table", "population"))
        assert one.value == other.value
        assert one.se < other.se


REFUSED = {
    "mean cost by ward per event": (CannotAnswerError, "3 things at once"),
    "share ward=a given sex=f cost>=3": (CannotAnswerError, "3 columns at once"),
    "rate ward=a by sex": (CannotAnswerError, "three things"),
    "rate by ward": (ParameterError, "column of events"),
    "mean price": (ParameterError, "there is no column 'price'"),
    "mean ward": (ParameterError, "no mean"),
    "mode cost": (ParameterError, "begins with what is asked for"),
    "rate ward=a per event": (ParameterError, "leave out per"),
    "quantile 0.5 cost where ward=a sex=f": (CannotAnswerError, "3 columns at once"),
    "regress sex=m ~ cost + ward + visits.price": (ParameterError, "no column 'visits.price'"),
    "mean cost per year": (ParameterError, "per person or per event"),
}


@pytest.mark.parametrize("question", REFUSED)
def test_what_no_table_holds_is_refused_in_words(question):
    error, words = REFUSED[question]
    with pytest.raises(error, match=words):
        ask(release(persons(), 0.0), question)


def test_without_times_there_is_no_waiting_and_noise_swallows_small_groups():
    found = release(persons(), 0.0)
    unordered = replace(PACKAGE.events, parent=replace(PACKAGE.link, order=None))
    with pytest.raises(CannotAnswerError, match="no column of times"):
        replace(found, described=Description((PACKAGE.unit, unordered))).wait()
    with pytest.raises(CannotAnswerError, match="lost in the noise"):
        release(persons(), 4000.0).mean("cost", where={"ward": "a"})


def test_answers_about_events_say_what_limits_moved_and_groups_that_are_lost_have_a_row():
    """Costs stop at 9, where many lie; a ward that nobody has is lost in the noise, and was dropped without a word."""
    linked = persons()
    found = release(linked, 2.0)
    cost = np.bincount(linked.events[:, 2], linked.single, minlength=10)
    said = "values of 'cost' beyond 0 to 9, if any, were moved to these limits, where "
    both = (cost[0] + cost[9]) / cost.sum()
    assert min(cost[0], cost[9]) / cost.sum() > 0.01
    note = found.mean("cost").note
    assert note.startswith(said)
    assert float(note.removeprefix(said).split("%")[0]) / 100 == pytest.approx(both, abs=0.01)
    assert found.share({"cost": 9}).note.startswith("values of 'cost' above 9, if any, were moved to 9, where ")
    assert found.share({"cost": (9, None)}).note == ""
    assert found.share({"ward": "a"}).note == ""
    assert found.rate({"cost": 0}).note.startswith("values of 'cost' below 0")
    assert found.mean("cost", by="ward").notes == [note]
    gone = replace(linked, events=np.where(np.array([False, True, False]), 0, linked.events))
    rows = release(gone, 5.0).mean("cost", by="ward")
    assert rows.labels == ("a", "b", "c")
    assert [row.refused for row in rows] == [False, True, True]
    assert "the persons meant by 'ward' are too few: about " in rows["b"].note
    assert "are lost in the noise." in rows["b"].note
    assert [row["value"] for row in rows.as_dict()["rows"]][1:] == [None, None]
    for wrong in (lambda: found.share("cost>2"), lambda: found.mean("cost", where="a"), lambda: found.rate("cost>2")):
        with pytest.raises(ParameterError, match="conditions are given as"):
            wrong()


@pytest.mark.usefixtures("few_steps")
def test_three_columns_of_a_person_are_answered_where_their_table_was_chosen(tmp_path):
    g, n = np.random.default_rng(6), 900
    flags = [Field(name, "string", enum=("0", "1"), required=True) for name in "abc"]
    visits = Resource("visits", Schema((flags[0],)), parent=Parent("people", "who", 3))
    described = Description((Resource("people", Schema(tuple(flags)), "id"), visits), triples=1)
    assert Description.from_dict(described.to_dict()) == described
    codes = g.integers(0, 2, (n, 3))
    codes[:, 2] = codes[:, 0] ^ codes[:, 1]
    people = {"id": [str(k) for k in range(n)], **{name: codes[:, j].astype(str) for j, name in enumerate("abc")}}
    given = {"people": people, "visits": {"who": people["id"], "a": people["a"]}}
    synth = PrivateSynthesizer(20.0, 1e-6, schema=described, seed=1).fit(given)
    held = [s for m in synth.measurements.found if m.query.degree == 3 for s in m.query.sets]
    assert held == [(0, 1, 2)]
    found = synth.release(50)
    one = ask(found, "share people.c=1 given people.a=1 b=0", about="table")
    assert one.low <= 1 <= one.high + 1e-9
    assert one.high - one.low < 0.1
    pair = float(np.mean((codes[:, 0] == 1) & (codes[:, 1] == 0)))
    all_three = ask(found, "share people.a=1 b=0 people.c=1", about="table")
    assert all_three.low <= pair <= all_three.high
    with pytest.raises(CannotAnswerError, match="at once"):
        ask(found, "share people.a=1 b=0 people.c=1 per event")
    with pytest.raises(CannotAnswerError, match=r"of more at a time 'people\.a', 'b', 'c'\."):
        ask(found, "share people.a=1 b=0 visits.a=1")
    write_tables(found, tmp_path / "tables")
    lines = (tmp_path / "tables" / "triples.csv").read_text().splitlines()
    assert len(lines) == 9
    assert lines[1].startswith("three attributes of a person,people.a,0,b,0,c,0,")
