"""Person-averaged tables: what they count, and how far one replaced person moves them (docs/proofs/persons.md)."""

from itertools import combinations

import numpy as np
import pytest

from covey.engine.codes.events import WEIGHT_STEPS, Histories, count_bins, position_starts, timed
from covey.engine.models.persons.method import count_factor
from covey.engine.query import Factor, Query

MOST = 6
SIZES = (2, 3), (3, 2)
COLUMNS = {
    "person": [(0, 1), (1, 4), (0, 1, 4)],
    "across": [(0, 2), (4, 3)],
    "event": [(2, 3)],
    "step": [(2, 2), (2, 3)],
    "two": [(2, 2), (2, 3)],
}
TABLES = [(kind, columns) for kind, sets in COLUMNS.items() for columns in sets]


def averaged(linked, kind, columns, counts=None):
    """A table of these columns, those of persons first, then those of events and the number of events."""
    sizes = [*SIZES[0], *SIZES[1]]
    factors = dict(enumerate([*map(Factor.plain, sizes), counts or count_factor(MOST)]))
    query = Query([columns], factors, of=kind, total=False)
    found = query.kernel()(linked).integers()[0]
    return found.reshape(query.shape(columns))


def linked(*people):
    """Persons given as (attributes, events)."""
    persons = np.array([who for who, _ in people])
    events = np.array([event for _, own in people for event in own], dtype=np.int64).reshape(-1, 2)
    owner = np.repeat(np.arange(len(people)), [len(own) for _, own in people])
    return Histories.capped(persons, events, owner, MOST)


ANN = (0, 2), [(0, 1), (2, 1), (0, 0)]
BOB = (1, 0), []
CAT = (1, 1), [(1, 0)]


def test_tables_average_over_the_events_of_a_person():
    three = linked(ANN, BOB, CAT)
    third = WEIGHT_STEPS // 3
    many = averaged(three, "person", (4,), Factor.plain(MOST + 1))
    assert many.tolist() == [WEIGHT_STEPS, WEIGHT_STEPS, 0, WEIGHT_STEPS, 0, 0, 0]
    ranges = Query([(1,)], {1: Factor(np.array([0, 1, 3]), np.arange(2))}, of="person", total=False)
    assert ranges.kernel()(three).integers()[0].tolist() == [WEIGHT_STEPS, 2 * WEIGHT_STEPS]
    both = averaged(three, "person", (0, 1, 4))
    assert both.shape == (2, 3, count_factor(MOST).size)
    assert both.sum() == 3 * WEIGHT_STEPS
    assert both[0, 2].sum() == both[1, 0, 0] == both[1, 1, 1] == WEIGHT_STEPS
    assert averaged(three, "event", (2,)).tolist() == [2 * third, WEIGHT_STEPS, third]
    assert averaged(three, "across", (1, 3)).tolist() == [[0, 0], [WEIGHT_STEPS, 0], [third, 2 * third]]
    steps = averaged(three, "step", (2, 2))
    assert steps.tolist() == [[0, 0, WEIGHT_STEPS // 2], [0, 0, 0], [WEIGHT_STEPS // 2, 0, 0]]
    sixth = WEIGHT_STEPS // 6
    two = averaged(three, "two", (2, 2))
    assert two.tolist() == [2 * sixth, 0, 4 * sixth, 0, 0, 0]  # folded: 0 and 2 in either order
    crossed = averaged(three, "two", (2, 3))
    assert crossed.tolist() == [[sixth, 3 * sixth], [0, 0], [sixth, sixth]]
    assert averaged(three, "person", (0, 4))[1].tolist() == [WEIGHT_STEPS, WEIGHT_STEPS, 0, 0, 0, 0]


def test_a_cap_keeps_the_first_events_of_each_person_and_looks_at_nobody_else():
    many = (0, 0), [(k % 3, 0) for k in range(9)]
    alone, among = linked(many), linked(ANN, many, CAT)
    assert alone.counts.tolist() == [MOST]
    assert among.counts.tolist() == [3, MOST, 1]
    assert among.events[3:9].tolist() == alone.events.tolist() == [[k % 3, 0] for k in range(MOST)]


def test_bins_of_the_number_of_events_are_public_and_reach_the_cap():
    assert count_bins(1).tolist() == [0, 1]
    assert count_bins(20).tolist() == [0, 1, 2, 3, 4, 5, 7, 10, 15]


def statistics(person, weights=None):
    """All that is measured of one person, one table after the other."""
    own = linked(person)
    if weights is not None:
        own.__dict__.update(weights(own))
    alone = [
        averaged(own, "person", (4,), Factor.plain(MOST + 1)),
        averaged(own, "person", (0,)),
        averaged(own, "event", (2,)),
    ]
    return [part.ravel() / WEIGHT_STEPS for part in [*alone, *(averaged(own, *table) for table in TABLES)]]


def people(generator):
    """Persons of every kind: no events, one, as many as there may be, all alike, all different, random."""
    found = [((a, b), []) for a in range(2) for b in range(3)]
    found += [((a, 0), [event] * k) for a in range(2) for event in ((0, 0), (2, 1)) for k in (1, 2, MOST)]
    found += [((0, 1), [(k % 3, k % 2) for k in range(MOST)]), ((1, 2), [(0, 1), (2, 0)])]
    for _ in range(25):
        events = generator.integers(0, (3, 2), (int(generator.integers(0, 9)), 2))
        found.append((tuple(int(generator.integers(c)) for c in SIZES[0]), [tuple(event) for event in events]))
    return found


def moved(one, other):
    """How far two persons are apart, table by table: ℓ1 and squared ℓ2."""
    gaps = [a - b for a, b in zip(one, other, strict=True)]
    return np.array([[np.abs(gap).sum(), (gap**2).sum()] for gap in gaps])


def test_one_replaced_person_moves_every_table_by_at_most_2_whatever_the_number_of_events():
    found = [statistics(person) for person in people(np.random.default_rng(0))]
    assert all((part >= 0).all() and part.sum() <= 1 for parts in found for part in parts)
    gaps = np.array([moved(a, b) for a, b in combinations(found, 2)])
    assert (gaps <= 2 + 1e-12).all()
    assert (gaps.max(axis=0) > 1.99).all()  # each table is moved as far as that by somebody
    tables = gaps.shape[1]
    assert (gaps.sum(axis=1) <= 2 * tables).all()
    assert gaps.sum(axis=1).max() > 2 * tables - 2  # and nearly all of them by one and the same


WRONG = {
    "each event weighs a person": lambda own: {"single": np.full(len(own.owner), WEIGHT_STEPS)},
    "each step weighs a person": lambda own: {"steps": (own.steps[0], np.full(len(own.steps[0]), WEIGHT_STEPS))},
    "each pair of events weighs a person": lambda own: {"pair": np.where(own.counts > 1, WEIGHT_STEPS, 0)},
}


@pytest.mark.parametrize("name", WRONG)
def test_weights_of_one_instead_of_1_over_n_pass_the_bound(name):
    found = [statistics(person, WRONG[name]) for person in people(np.random.default_rng(0))]
    assert max(moved(a, b).max() for a, b in combinations(found, 2)) > 4


def test_places_and_times_between_events_follow_from_the_person_alone():
    """A time since the row before, whoever's it is, would change with the neighbour."""
    owner, times = np.array([0, 0, 1, 1, 1]), np.array([2, 9, 4, 4, 7])
    place, gap = timed(owner, times, 9)
    assert place.tolist() == [0, 1, 0, 1, 2]
    assert gap.tolist() == [0, 8, 0, 1, 4]
    other, theirs = np.array([0, 1, 1, 1]), np.array([8, 4, 4, 7])
    again = timed(other, theirs, 9)
    assert (again[0][1:] == place[2:]).all()
    assert (again[1][1:] == gap[2:]).all()
    assert (np.diff(times, prepend=0)[2:] != np.diff(theirs, prepend=0)[1:]).any()
    assert position_starts(3).tolist() == [0, 1, 2]
