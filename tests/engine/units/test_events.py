"""Persons with events in batches: whole persons, whatever the size of a batch is, and the same sums."""

import numpy as np
import pytest

from audits.gates import opened
from covey.engine.codes.events import Histories
from covey.engine.query import Factor, Query
from covey.engine.units import local as engine

FACTORS = dict(enumerate(map(Factor.plain, (3, 4, 2, 5))))  # of a person, two of an event, and the number of events
SETS = {
    "counts": (3,),
    "persons": (0,),
    "events": (1,),
    "across": (0, 1),
    "event": (1, 2),
    "step": (1, 1),
    "two": (1, 1),
}
KINDS = {"counts": "person", "persons": "person", "events": "event"}
KERNELS = {
    name: Query([columns], FACTORS, of=KINDS.get(name, name), total=False).kernel() for name, columns in SETS.items()
}


def town(n=50):
    g = np.random.default_rng(3)
    owner = np.repeat(np.arange(n), g.integers(0, 6, n))
    events = np.stack([g.integers(0, 4, len(owner)), g.integers(0, 2, len(owner))], axis=1)
    return Histories.capped(g.integers(0, 3, (n, 1)), events, owner, 4)


@pytest.mark.parametrize("size", [1, 7, 50, 64])
@pytest.mark.parametrize("name", KERNELS)
def test_sums_do_not_depend_on_the_size_of_a_batch(name, size, monkeypatch):
    monkeypatch.setattr(engine, "PERSONS", size)
    found = opened(engine.EventRows(town()).reduce(KERNELS[name]))
    assert np.array_equal(found.integers()[0], KERNELS[name](town()).integers()[0])
