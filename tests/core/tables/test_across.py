"""Structural zeros across persons and events: told to the fit, kept by every draw, refused where nothing is left."""

import numpy as np
import pytest

from covey.core.draw.events import SequenceLaw
from covey.core.fit.events import EventModel
from covey.core.tables.domain import Domain
from covey.core.tables.zeros import NOTHING_BARRED, Across, Box, Boxes

MEN_GIVE_NO_BIRTH = Box({0: ((1, 2),), 2: ((2, 3),)})
THE_OLD_TOO = Box({1: ((5, 9),), 2: ((1, 3),)})
CODES = [np.arange(2), np.array([0, 3, 5, 8]), np.arange(4), np.arange(2)]  # of the second attribute cells begin here


def across(*boxes):
    return Across.of(Boxes(boxes), 2, CODES)


def breaking(linked):
    """Which events break MEN_GIVE_NO_BIRTH or THE_OLD_TOO, read off the codes one by one; cells 2 and 3 hold the old."""
    found = []
    for who, (kind, _) in zip(linked.owner, linked.events, strict=True):
        man, old = linked.persons[who, 0] == 1, linked.persons[who, 1] >= 2
        found.append((man and kind == 2) or (old and kind in (1, 2)))
    return np.array(found)


def law(barred):
    """Everybody is likely to break the rules."""
    g = np.random.default_rng(0)
    persons, events = Domain((2, 4, 3), (False, True, True)), Domain((4, 2), (False, False))
    own = EventModel(
        np.hstack([g.dirichlet(np.ones(k), 3) for k in persons.sizes]),
        g.dirichlet(np.ones(5), 3),
        np.hstack([g.dirichlet(np.ones(k), 5) for k in events.sizes]),
        g.dirichlet(np.ones(5), 5),
        0.4,
    )
    return SequenceLaw([own], persons, events, np.array([0.2, 0.5, 0.3]), barred)


def test_no_draw_breaks_a_rule_and_what_was_drawn_anew_is_counted():
    rules, mended = across(MEN_GIVE_NO_BIRTH, THE_OLD_TOO), []
    free = law(NOTHING_BARRED).draw(2000, np.random.default_rng(1))
    kept = law(rules).draw(2000, np.random.default_rng(1), mended.append)
    assert breaking(free).sum() > 100  # a draw that knows of no rule is noticed
    assert not breaking(kept).any()
    assert 100 < sum(mended) < len(kept.events)
    women = kept.persons[kept.owner, 0] == 0
    assert (kept.events[women, 0] == 2).any()  # and who may, does


def test_a_fit_is_told_what_is_known_to_be_zero():
    target, weight = np.ones((9, 6)), np.ones((9, 6))
    maps = [[np.arange(2), np.array([0, 0, 1, 1])], [np.arange(4), np.arange(2)]]
    blocks = [slice(0, 2), slice(2, 4)], [slice(0, 4), slice(4, 6)]
    across(MEN_GIVE_NO_BIRTH, THE_OLD_TOO).merged(maps).told(target, weight, blocks)
    assert np.argwhere(target == 0).tolist() == [[1, 2], [3, 1], [3, 2]]
    assert (weight[target == 0] > 1).all()
    assert (weight[target == 1] == 1).all()


@pytest.mark.parametrize(
    ("boxes", "found"),
    [
        ((MEN_GIVE_NO_BIRTH, THE_OLD_TOO), False),
        ((MEN_GIVE_NO_BIRTH, Box({1: ((5, 9),), 2: ((0, 2), (3, 4))})), True),  # old men
        ((Box({0: ((0, 1),), 2: ((0, 4),)}),), True),
    ],
)
def test_rules_that_leave_somebody_nothing_are_found(boxes, found):
    assert across(*boxes).impossible is found


def test_events_are_judged_by_their_own_person():
    persons, events = np.array([[1, 0], [0, 0]]), np.array([[2, 0], [2, 0], [0, 0]])
    rules = across(MEN_GIVE_NO_BIRTH)
    [(attribute, rows, barred)] = rules.breaking(rules.meets(persons)[np.array([0, 1, 1])], events)
    assert (attribute, rows.tolist(), barred.tolist()) == (0, [0], [False, False, True, False])
