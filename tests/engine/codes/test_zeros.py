"""Combinations that cannot occur: which centres, swaps and rows avoid them."""

from itertools import product

import numpy as np
import pytest

from covey.engine.codes.domain import Domain
from covey.engine.codes.zeros import NOTHING_BARRED, Across, Box, Boxes
from covey.engine.draw.balanced import Kept, sample_categories
from covey.engine.draw.events import SequenceLaw
from covey.engine.fit.centres import Goal, fit_category_centres
from covey.engine.fit.events import EventModel
from covey.engine.points import WeightedPoints

DOMAIN = Domain((4, 3, 2, 3), (True, False, False, False))
CODES = [np.arange(c) for c in DOMAIN.sizes]
# Low values of 0 go with no last category of 1; a pair; and a triple that no pair of its attributes says.
BOXES = Boxes(
    (
        Box({0: ((0, 2),), 1: ((2, 3),)}),
        Box({1: ((0, 1),), 2: ((1, 2),)}),
        Box({0: ((3, 4),), 2: ((0, 1),), 3: ((0, 1), (2, 3))}),
    )
)
ZEROS = BOXES.on(DOMAIN, CODES)
ALL = np.array(list(product(*(range(c) for c in DOMAIN.sizes))))


def by_hand(row):
    a, b, c, d = row
    return (a < 2 and b == 2) or (b == 0 and c == 1) or (a == 3 and c == 0 and d in (0, 2))


IMPOSSIBLE = np.array([by_hand(row) for row in ALL])


def possible_table(n, seed):
    """Rows with dependent attributes, none of them impossible."""
    generator = np.random.default_rng(seed)
    weights = generator.gamma(0.4, size=len(ALL)) * ~IMPOSSIBLE
    return ALL[generator.choice(len(ALL), n, p=weights / weights.sum())]


def goal(X, zeros, noise=0.0):
    hot = np.hstack([np.eye(c)[X[:, a]] for a, c in enumerate(DOMAIN.sizes)])
    shares = hot.mean(axis=0)
    jitter = np.random.default_rng(1).normal(0, noise, (DOMAIN.total,) * 2)
    covariances = DOMAIN.off_blocks(hot.T @ hot / len(X) - np.outer(shares, shares) + jitter + jitter.T)
    return Goal(shares, covariances, DOMAIN, zeros=zeros)


def test_rows_in_a_box_are_found():
    assert (ZEROS.broken(ALL) == IMPOSSIBLE).all()
    coordinates = ALL + DOMAIN.starts[:-1]
    named = {0: [0, 2], 1: [0, 1], 2: [1, 2], 3: [2]}  # attribute → the boxes that name it
    for a, boxes in named.items():
        each = np.array([[Boxes((BOXES.boxes[b],)).on(DOMAIN, CODES).broken(ALL)] for b in boxes])
        assert (ZEROS.forbids(a, coordinates) == each.any(axis=(0, 1))).all() or a != 3
        assert not (each.any(axis=(0, 1)) & ~ZEROS.forbids(a, coordinates)).any()


def test_cuts_and_classes_keep_apart_what_boxes_tell_apart():
    assert BOXES.cuts(0) == [0, 2, 3, 4]
    assert BOXES.cuts(3) == [0, 1, 2, 3]
    assert len(set(BOXES.signature(0, 4))) == 3
    assert BOXES.signature(3, 3)[0] == BOXES.signature(3, 3)[2] != BOXES.signature(3, 3)[1]
    maps = [np.array([0, 0, 1, 2]), np.arange(3), np.arange(2), np.array([0, 1, 0])]
    merged = Domain((3, 3, 2, 2), DOMAIN.ordered)
    gathered = ZEROS.gathered(maps, merged)
    bins = np.stack([m[ALL[:, a]] for a, m in enumerate(maps)], axis=1)
    assert (gathered.broken(bins) == IMPOSSIBLE).all()


def test_what_centres_may_keep_meets_no_box_and_is_most_of_what_they_had():
    generator = np.random.default_rng(2)
    y = np.hstack([generator.dirichlet(np.full(c, 0.5), 200) for c in DOMAIN.sizes])
    keep = ZEROS.allowed(y)
    for centre in keep:
        own = [np.flatnonzero(centre[DOMAIN.block(a)]) for a in range(4)]
        assert all(len(side) for side in own)
        assert not ZEROS.broken(np.array(list(product(*own)))).any()
    # Against giving up a side of every box at random, instead of the smaller one where a centre still meets the box.
    wild = np.ones_like(keep)
    for names, mask in ZEROS.boxes:
        chosen = generator.choice(names, len(wild))
        wild &= ~(mask & (DOMAIN.block_of == chosen[:, None]))

    def held(kept):
        return np.prod([np.where(kept, y, 0)[:, DOMAIN.block(a)].sum(axis=1) for a in range(4)], axis=0).mean()

    assert held(keep) > 1.5 * held(wild)
    # Probabilities that round to zero are no way in.
    sharp = np.zeros_like(y)
    for a in range(4):
        sharp[:, DOMAIN.block(a)] = np.eye(DOMAIN.sizes[a])[0]
    for centre in ZEROS.allowed(sharp):
        own = [np.flatnonzero(centre[DOMAIN.block(a)]) for a in range(4)]
        assert not ZEROS.broken(np.array(list(product(*own)))).any()


def test_contradictions_are_told():
    domain = Domain((2, 2), (False, False))
    codes = [np.arange(2)] * 2
    everything = Boxes((Box({0: ((0, 2),), 1: ((0, 2),)}),)).on(domain, codes)
    assert everything.allowed(np.full((3, 4), 0.5)) is None


@pytest.mark.parametrize("noise", [0.0, 0.004])
def test_rows_are_possible_and_closer_to_the_table_than_without_the_rules(noise):
    X = possible_table(20_000, 3)
    true = np.bincount(np.ravel_multi_index(X.T, DOMAIN.sizes), minlength=len(ALL)) / len(X)

    def drawn(zeros):
        cloud = fit_category_centres(goal(X, zeros, noise), 60, 400, np.random.default_rng(4), lambda _: None)
        rows = sample_categories(cloud, DOMAIN, 20_000, np.random.default_rng(5), Kept(zeros=zeros)).astype(int)
        share = np.bincount(np.ravel_multi_index(rows.T, DOMAIN.sizes), minlength=len(ALL)) / len(rows)
        return rows, np.abs(share - true).sum() / 2

    rows, error = drawn(ZEROS)
    free, free_error = drawn(None)
    assert not ZEROS.broken(rows).any()
    assert ZEROS.broken(free).mean() > 0.005  # so that there is something to avoid
    assert error < free_error


def test_a_rounding_that_carries_into_closed_categories_is_noticed():
    """Half of the centres exclude a category; the old carry put rows there now and then."""
    generator = np.random.default_rng(6)
    domain = Domain((5, 2), (False, False))
    y = np.hstack([generator.dirichlet(np.full(5, 0.3), 300), np.repeat(np.eye(2), 150, axis=0)])
    y[:150, 2] = 0
    y[:, :5] /= y[:, :5].sum(axis=1, keepdims=True)
    zeros = Boxes((Box({0: ((2, 3),), 1: ((0, 1),)}),)).on(domain, [np.arange(5), np.arange(2)])
    cloud = WeightedPoints(generator.dirichlet(np.ones(300)), y)
    rows = sample_categories(cloud, domain, 1000, generator, Kept(zeros=zeros))
    assert not zeros.broken(rows).any()
    assert np.bincount(rows[:, 0], minlength=5) / 1000 == pytest.approx(cloud.weights @ y[:, :5], abs=0.004)


MEN_GIVE_NO_BIRTH = Box({0: ((1, 2),), 2: ((2, 3),)})
THE_OLD_TOO = Box({1: ((5, 9),), 2: ((1, 3),)})
BEGINS = [np.arange(2), np.array([0, 3, 5, 8]), np.arange(4), np.arange(2)]  # of the second attribute cells begin here


def across(*boxes):
    return Across.of(Boxes(boxes), 2, BEGINS)


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
    maps, bins = [np.arange(2), np.array([0, 0, 1, 1]), np.arange(4), np.arange(2)], Domain((2, 2, 4, 2), (False,) * 4)
    across(MEN_GIVE_NO_BIRTH, THE_OLD_TOO).gathered(maps, bins).told(target, weight)
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
