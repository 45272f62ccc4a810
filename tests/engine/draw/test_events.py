"""Sequences drawn from centres: shares, chains and caps are those of the model."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtr

from covey.engine.codes.domain import Domain
from covey.engine.codes.events import WEIGHT_STEPS, Histories, Timing, averaged_table
from covey.engine.draw import events as events_module
from covey.engine.draw.events import SequenceLaw, _pick, in_line, laid_in_order, shuffled
from covey.engine.fit.events import EventGoal, EventModel, Tie, rank_correlation, ties

PERSONS, EVENTS = Domain((2, 4), (False, True)), Domain((2,), (False,))
COUNTS = np.array([0.25, 0.25, 0.25, 0.25])


def law(sticky=0.8):
    """Persons of two kinds, whose events are all of one sort; with the chain events follow the one before."""
    persons = np.array([[1.0, 0.0, 0.25, 0.25, 0.25, 0.25], [0.0, 1.0, 0.25, 0.25, 0.25, 0.25]])
    kinds = np.array([[0.9, 0.1], [0.1, 0.9]])
    model = EventModel(persons, kinds, np.eye(2), np.eye(2), sticky)
    return SequenceLaw([model, model], PERSONS, EVENTS, COUNTS)


def test_persons_have_the_law_of_their_centres_and_events_of_their_kinds():
    drawn = law().draw(4000, np.random.default_rng(0))
    assert drawn.n == 4000
    assert np.bincount(drawn.counts) / 4000 == pytest.approx(COUNTS, abs=0.002)
    assert (np.diff(drawn.owner) >= 0).all()
    across = averaged_table(drawn, "across", (drawn.persons[:, 0], drawn.events[:, 0]), (2, 2))
    shares = across / across.sum()
    assert shares == pytest.approx(np.array([[0.45, 0.05], [0.05, 0.45]]), abs=0.01)


def test_steps_follow_the_chain():
    def stay(sticky):
        again = law(sticky).draw(6000, np.random.default_rng(1))
        steps = averaged_table(again, "step", (again.events[:, 0], again.events[:, 0]), (2, 2))
        return np.trace(steps) / steps.sum()

    assert stay(0.8) == pytest.approx(0.8 + 0.2 * 0.82, abs=0.015)
    assert stay(0.0) == pytest.approx(0.82, abs=0.015)  # events that forget the one before share a person alone


def test_persons_exchange_attributes_until_their_tables_are_near_the_law(monkeypatch):
    """Without exchanges each attribute is balanced by itself, and tables of two are off as rows drawn one by one are."""
    g, domain = np.random.default_rng(2), Domain((3, 4, 4), (False, True, True))
    persons = np.hstack([g.dirichlet(np.ones(size), 20) for size in domain.sizes])
    model = EventModel(persons, np.ones((20, 1)), np.ones((1, 2)) / 2, np.eye(1), 0.5)
    own = SequenceLaw([model], domain, EVENTS, COUNTS)

    def off():
        drawn = own.draw(2000, np.random.default_rng(3))
        pairs = np.zeros((3, 4))
        np.add.at(pairs, (drawn.persons[:, 0], drawn.persons[:, 1]), 1 / 2000)
        return np.abs(pairs - persons[:, :3].T @ persons[:, 3:7] / 20).sum() / 2

    assert off() < 0.002
    monkeypatch.setattr(events_module, "EXCHANGES", 0)
    assert off() > 0.006


def test_a_draw_is_stratified_among_rows_of_one_law():
    laws = np.array([[0.25, 0.75], [1.0, 0.0], [0.0, 1.0]])
    which = np.repeat([0, 1, 2], [400, 50, 50])
    codes = _pick(laws, np.random.default_rng(0).permutation(which), np.random.default_rng(0))
    assert len(codes) == 500
    assert abs(int(codes.sum()) - 350) <= 1
    assert _pick(laws, which[:0], np.random.default_rng(0)).tolist() == []


def test_persons_are_shuffled_with_their_events():
    linked = Histories(np.arange(30)[:, None], np.repeat(np.arange(30), 2)[:, None], np.repeat(np.arange(30), 2), 2)
    mixed = shuffled(linked, np.random.default_rng(0))
    assert (mixed.persons[mixed.owner, 0] == mixed.events[:, 0]).all()
    assert mixed.persons[:, 0].tolist() != list(range(30))
    assert (mixed.counts == 2).all()


def test_times_rise_within_a_person_and_histories_stay_within_their_bounds():
    owner = np.array([0, 0, 0, 1, 1, 2])
    # A time, and one more than the time since the last.
    drawn = np.array([[5, 0], [9, 3], [1, 4], [8, 0], [0, 21], [7, 0]])
    sorted_ = laid_in_order(Histories(np.zeros((3, 1)), drawn, owner, 3), Timing(order=0), 9)
    assert sorted_.events[:, 0].tolist() == [1, 5, 9, 0, 8, 7]
    laid = laid_in_order(Histories(np.zeros((3, 1)), drawn, owner, 3), Timing(order=0, gap=1), 9)
    assert laid.events[:, 0].tolist() == [4, 6, 9, 0, 9, 7]  # the first begins earlier, the second is shortened
    assert laid.events[:, 1].tolist() == [0, 3, 4, 0, 10, 0]


def test_the_place_of_an_event_tilts_its_attributes():
    """At the first place one value is nine times as likely as it would be; the other place is left as it is."""
    events = Domain((2, 2), (False, True))
    persons = np.array([[1.0, 0.0, 0.0, 0.0, 1.0]])
    model = EventModel(persons, np.array([[0.5, 0.5]]), np.full((2, 4), 0.5), np.full((2, 2), 0.5), 0.5)
    own = SequenceLaw([model], Domain((2, 3), (False, True)), events, COUNTS[:3], timing=Timing(position=1))
    for law_, share in ((replace(own, tilts={(0, 0): np.array([0.9, 0.1])}), 0.9), (own, 0.5)):
        drawn = law_.draw(500, np.random.default_rng(0))
        first = drawn.places == 0
        assert (drawn.events[:, 1] == drawn.places).all()
        assert (drawn.events[first, 0] == 0).mean() == pytest.approx(share, abs=0.02)
        assert (drawn.events[~first, 0] == 0).mean() == pytest.approx(0.5, abs=0.02)


def test_where_everybody_has_events_nobody_is_drawn_without():
    """Centres leave a quarter of the persons without: what is known of all of them overrules a fit."""
    counts = np.array([0.0, 0.5, 0.25, 0.25])
    drawn = replace(law(), counts=counts).draw(4000, np.random.default_rng(0))
    assert drawn.counts.min() == 1
    assert (law().draw(4000, np.random.default_rng(0)).counts == 0).mean() == pytest.approx(0.25, abs=0.01)


def test_a_draw_has_an_event_even_where_the_law_has_none():
    persons = np.array([[1.0, 0.0, 1.0, 0.0, 0.0, 0.0]])
    model = EventModel(persons, np.array([[0.5, 0.5]]), np.eye(2), np.eye(2), 0.5)
    never = SequenceLaw([model, model], PERSONS, EVENTS, np.array([1.0, 0.0, 0.0, 0.0]))
    for n in (1, 2, 50):
        assert len(never.draw(n, np.random.default_rng(n)).owner) == 1


@pytest.mark.parametrize(("kind", "again"), [("step", 0.6), ("two", 0.6), ("step", 0.0)])
def test_kept_levels_are_found_again_in_tables_of_two_events_and_leave_the_law_of_each(kind, again):
    laws, same, three = np.stack([np.linspace(1, 4, 8), np.linspace(4, 1, 8)]) / 20, np.arange(8), np.eye(4)[3]
    model = EventModel(np.append([0.5, 0.5], three)[None], np.array([[0.6, 0.4]]), laws, np.eye(2), 0.5)
    own = SequenceLaw(
        [model], PERSONS, Domain((8,), (False,)), three, ties={0: Tie(again, kind == "two", 0.0, 0, same)}
    )
    drawn = own.draw(20_000, np.random.default_rng(5))
    x = drawn.events[:, 0]
    assert np.bincount(x) / len(x) == pytest.approx(model.first[0] @ laws, abs=0.006)
    table = averaged_table(drawn, kind, (x, x), (8, 8)) / (drawn.n * WEIGHT_STEPS)
    target, weight = {"one": np.zeros((1, 14)), kind: (table + table.T) / 2}, {kind: np.full((8, 8), 1e6)}
    found = ties(EventGoal(PERSONS, own.events, target, weight, (2 / 3, 1 / 3)), [model], [same], [0])[0]
    assert found.again == pytest.approx(again, abs=0.05)
    assert found.lasting == (kind == "two")


def test_values_follow_each_other_inside_bins_and_bins_stay():
    """Normal numbers in a chain, as 48 values in 4 bins: handed out at random in a bin they lose what they say inside."""
    g = np.random.default_rng(6)
    z = g.standard_normal((5000, 4))
    for t in range(1, 4):
        z[:, t] = 0.9 * z[:, t - 1] + np.sqrt(1 - 0.81) * z[:, t]
    true, bins, sort = (48 * ndtr(z)).astype(int).ravel(), np.arange(48) // 12, np.arange(20_000) % 2
    at_random = true // 12 * 12 + g.integers(0, 12, 20_000)
    linked = Histories(np.zeros((5000, 1)), at_random[:, None], np.repeat(np.arange(5000), 4), 4)
    table = averaged_table(linked, "step", (true // 12, true // 12), (4, 4)) / (5000 * WEIGHT_STEPS)
    target = {"one": np.append(np.zeros(6), np.full(4, 0.25))[None], "step": table}
    goal = EventGoal(PERSONS, Domain((4,), (True,)), target, {"step": np.ones((4, 4))}, (1.0, 0.0))
    rho = rank_correlation(goal, slice(0, 4))
    assert rho == pytest.approx(0.9, abs=0.02)
    found = in_line(linked, at_random, Tie(0.0, False, rho, 0, bins), sort, g)

    def following(x):
        return np.corrcoef(x.reshape(-1, 4)[:, :3].ravel(), x.reshape(-1, 4)[:, 1:].ravel())[0, 1]

    assert following(at_random) < 0.79 < 0.87 < following(found) < following(true) + 0.01
    assert (found // 12 == at_random // 12).all()
    assert (np.bincount(found * 2 + sort) == np.bincount(at_random * 2 + sort)).all()
