"""Fitting persons and events: slopes are those of the loss, and what a known chain makes is found again from its tables."""

from dataclasses import replace

import numpy as np
import pytest

import covey.engine.fit.events as fit
from covey.engine.codes.domain import Domain
from covey.engine.codes.zeros import Zeros
from covey.engine.fit.centres import Triples, table_of

PERSONS, EVENTS = Domain((3, 2, 4), (False,) * 3), Domain((3, 4), (False,) * 2)
SHAPES = {"one": (1, 16), "person": (9, 9), "across": (9, 7), "event": (7, 7), "step": (7, 7), "two": (7, 7)}


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(fit, "CENTRES", 6)
    monkeypatch.setattr(fit, "KINDS", 5)
    monkeypatch.setattr(fit, "STARTS", 1)
    monkeypatch.setattr(fit, "STEPS", 120)


def random_goal(generator, kinds=tuple(SHAPES)):
    target = {k: generator.random(SHAPES[k]) / 4 for k in kinds}
    weight = {k: 100 * generator.random(SHAPES[k]) for k in kinds}
    return fit.EventGoal(PERSONS, EVENTS, target, weight, (0.5, 0.2))


LEVELS = {0: np.array([0, 1, 1]), 1: np.arange(2), 2: np.array([0, 0, 1, 2])}


@pytest.mark.parametrize("kinds", [tuple(SHAPES), ("one", "across", "two"), ("one", "event", "step"), ("one", "three")])
def test_slopes_are_differences_of_the_loss(kinds):
    generator = np.random.default_rng(0)
    goal = random_goal(generator, [kind for kind in kinds if kind in SHAPES])
    if "three" in kinds:
        goal = replace(
            goal, triples=Triples(((0, 1, 2),), LEVELS, (generator.random((2, 2, 3)) / 4,)), triple_weight=30.0
        )
    x = fit.start(goal, generator)
    _, slope = fit.objective(goal, x)
    for name in x:
        for _ in range(3):
            at = tuple(int(generator.integers(size)) for size in x[name].shape)
            ends = []
            for step in (1e-5, -1e-5):
                moved = {k: v.copy() for k, v in x.items()}
                moved[name][at] += step
                ends.append(fit.objective(goal, moved)[0])
            assert slope[name][at] == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-4, abs=1e-6)


def test_tables_of_a_model_are_found_again():
    generator = np.random.default_rng(1)
    goal = random_goal(generator)
    x = fit.start(goal, generator)
    truth = fit._Pass(goal, fit.model(goal, x)).tables()
    weight = {k: np.full(v.shape, 1e6) for k, v in truth.items()}
    found = fit.fit_events(fit.EventGoal(PERSONS, EVENTS, truth, weight, (0.5, 0.2)), generator)
    again = fit._Pass(goal, found[0]).tables()
    gaps = {k: np.abs(again[k] - truth[k]).max() for k in truth}
    assert max(gaps.values()) < 0.02
    # A wrong fit, the random start, is far from it.
    start = fit._Pass(goal, fit.model(goal, fit.start(goal, generator))).tables()
    assert max(np.abs(start[k] - truth[k]).max() for k in truth) > 0.05


def test_a_fit_goes_on_to_a_table_of_three_and_keeps_what_pairs_said(monkeypatch):
    """An exclusive or, of which pairs say nothing: the first two attributes and whether there are events."""
    monkeypatch.setattr(fit, "CENTRES", 40)
    monkeypatch.setattr(fit, "STEPS", 400)
    generator = np.random.default_rng(4)
    persons = Domain((2, 2, 3), (False,) * 3)
    target = {
        "one": np.concatenate([[0.5] * 4, [0.5, 0.25, 0.25], 0.5 * np.array([1, 1, 1, 1.5, 1.5, 1.5, 1.5]) / 3])[None]
    }
    law = np.zeros((2, 2, 3))
    law[[0, 1], [0, 1], 0], law[[0, 1], [1, 0], 1:] = 0.25, 0.125
    pairs = np.zeros((7, 7))
    for a, b, rest in ((0, 1, 2), (0, 2, 1), (1, 2, 0)):
        pairs[persons.block(a), persons.block(b)] = law.sum(axis=rest)
    weight = {"one": np.full((1, 14), 1e5), "person": np.where(pairs > 0, 1e5, 0.0)}
    goal = fit.EventGoal(persons, EVENTS, target | {"person": pairs}, weight, (0.5, 0.2))
    levels = {0: np.arange(2), 1: np.arange(2), 2: np.array([0, 1, 1])}
    coarse = np.stack([law[..., 0], law[..., 1:].sum(axis=2)], axis=2)
    before = fit.fit_events(goal, generator)
    three = replace(goal, triples=Triples(((0, 1, 2),), levels, (coarse,)), triple_weight=1e5)
    after = fit.fit_events(three, generator, before=before)

    def tables(own):
        even = np.full(len(own.persons), 1 / len(own.persons))
        found = table_of(even, three.triples.shares(own.persons, persons), (0, 1, 2))
        apart = own.persons.T @ own.persons * even[0] - pairs
        return np.abs(found - coarse).sum() / 2, np.abs(apart[weight["person"] > 0])

    assert tables(before[0])[0] > 0.2
    assert tables(after[0])[0] < 0.05
    assert tables(after[0])[1].max() < 0.02


def test_what_cannot_occur_has_no_probability_in_any_centre_or_kind():
    generator = np.random.default_rng(3)
    forbidden = np.zeros(9, dtype=bool)
    forbidden[[0, 3]] = True  # category 0 of the first attribute with 0 of the second
    zeros = Zeros(PERSONS, (((0, 1), forbidden),))
    own = fit.fit_events(random_goal(generator), generator, zeros=(zeros, None))[0]
    assert (own.persons[:, 0] * own.persons[:, 3]).max() < 1e-15
    free = fit.fit_events(random_goal(generator), generator)[0]
    assert (free.persons[:, 0] * free.persons[:, 3]).max() > 1e-3


def test_a_chain_keeps_the_law_that_tables_of_one_event_are_computed_from():
    g = np.random.default_rng(3)
    own = fit.EventModel(np.ones((4, 1)), g.dirichlet(np.ones(6), 4), np.ones((6, 1)), g.dirichlet(np.ones(6), 6), 0.7)
    after = (1 - own.sticky) * own.kinds + own.sticky * own.first @ own.chain
    assert after == pytest.approx(own.first)
    # A wrong program that cuts the sum after four terms starts from a law that histories leave.
    terms = [0.7**i * own.kinds @ np.linalg.matrix_power(own.chain, i) for i in range(4)]
    cut = sum(terms) / sum(0.7**i for i in range(4))
    assert np.abs(0.3 * own.kinds + 0.7 * cut @ own.chain - cut).max() > 0.005


@pytest.mark.parametrize("wrong", [(1.5, 0.5, [0, 1]), (0.5, 1.0, [0, 1]), (0.5, 0.5, [0, 2]), (0.5, 0.5, [-1, 0])])
def test_a_tie_that_cannot_be_is_refused(wrong):
    again, rho, bins = wrong
    with pytest.raises(ValueError, match="cannot be"):
        fit.Tie(again, False, rho, 0, np.array(bins))
    assert fit.Tie(0.5, False, 0.5, 0, np.array([0, 1])).bins[1] == 1
