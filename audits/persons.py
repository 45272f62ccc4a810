"""Persons with several rows: rides of the odometer on worst-case persons, and faults of weighting that it must notice.

A person of one row is replaced by one of many, all alike and as far away as can be, and the other way round; the rows of a person
lie far apart in the table.
"""

from __future__ import annotations

import logging
import warnings

import numpy as np

import covey.engine.units.persons as persons
import covey.synthesizers.private
from audits.odometer import Ride
from audits.planting import Fault, replaced
from covey.engine.gate import Exact, Gate
from covey.synthesizers import PrivateSynthesizer
from covey.tables import columns as parts
from covey.tables.schema import Field, Schema


def flags(p):
    return Schema(tuple(Field(f"f{i}", "boolean", required=True) for i in range(p)))


def labels(p):
    return Schema(tuple(Field(f"f{i}", "string", enum=("0", "1", "2", "3"), required=True) for i in range(p)))


LABELS = labels(3)

NUMBERS = Schema((Field("f0", "integer", 0, 1000), Field("f1", "integer", 0, 1000), Field("f2", "number", 0, 5000)))


def visits(n, p, most, seed=0, values=2):
    """Persons 1 to n − 1 with one to five rows each of random cells, in no order; person 0 is added by `with_first`."""
    g = np.random.default_rng(seed)
    whose = g.permutation(np.repeat(np.arange(1, n), g.integers(1, most + 1, n - 1)))
    cells = np.minimum((g.random((len(whose), p)) ** 2 * values).astype(int), values - 1)
    return whose, cells


def with_first(table, rows):
    """The table with the rows of person 0 scattered among the others."""
    whose, cells = table
    places = np.linspace(0, len(whose), len(rows)).astype(int)
    whose, cells = np.insert(whose, places, 0), np.insert(cells, places, rows, axis=0)
    columns = {f"f{i}": [str(c) for c in cells[:, i]] for i in range(cells.shape[1])}
    return {"who": [f"p{w}" for w in whose], **columns}


def person_ride(name, schema, table, *arguments, values=2, **exercises):
    """A ride whose person 0 has one row, three rows, or 97; all rows alike, at one end or the other, or half and half."""
    p, last = table[1].shape[1], values - 1
    low, high = [0] * p, [last] * p
    half = [last * (i < p // 2) for i in range(p)]
    other = [last - x for x in half]
    neighbours = {
        "one row, the other end": with_first(table, [high]),
        "many rows, the other end": with_first(table, [high] * 97),
        "three rows, half the columns": with_first(table, [half] * 3),
        "many rows, of two kinds": with_first(table, [half, other] * 20),
    }
    stranger = with_first(visits(len(set(table[0])) + 1, p, 9, seed=5, values=values), [high] * 50)

    def make(seed):
        return PrivateSynthesizer(*arguments, schema=schema, person="who", seed=seed)

    return Ride(name, make, with_first(table, [low]), neighbours, stranger, exercises)


def rides():
    """Every plan, with persons."""
    sparse, few = visits(500, 21, 4, seed=2)
    sparse = sparse, few * (np.random.default_rng(3).random(few.shape) < 0.2)
    return [
        person_ride("by person, means", flags(4), visits(40, 4, 5), 0.3),
        person_ride("by person, matrix", flags(4), visits(300, 4, 5), 4.0),
        person_ride(
            "by person, parities", flags(4), visits(1500, 4, 5), 6.0, 1e-4, **{"charge moments": 4 + 6 + 4 + 1}
        ),
        person_ride("by person, ball", flags(21), sparse, 4.0, 1e-4),
        person_ride("by person, categories", LABELS, visits(400, 3, 5, values=4), 4.0, values=4),
        person_ride("by person, categories, (ε, δ)", LABELS, visits(400, 3, 5, values=4), 4.0, 1e-4, values=4),
        person_ride(
            "by person, triples", labels(5).focus(triples=2), visits(400, 5, 5, values=4), 40.0, values=4, candidates=10
        ),
        person_ride("by person, numbers", NUMBERS, visits(400, 3, 5, values=1001), 6.0, values=1001),
        person_ride("by person, numbers, (ε, δ)", NUMBERS, visits(400, 3, 5, values=1001), 4.0, 1e-4, values=1001),
    ]


# Faults.


def whole_rows():
    """Every row weighs as much as a person."""

    def heavy(_):
        return lambda rows: np.where(rows > 0, persons.WEIGHT_STEPS, 0)

    return replaced((persons, "row_weights", heavy))


def rows_published():
    """The statement names the number of rows."""
    seen = []

    def counting(real):
        def merge(self):
            real(self)
            seen.append(int(self._rows.sum()))

        return merge

    def telling(real):
        def statement(budget, charges, n, *rest, **options):
            return real(budget, charges, seen[-1] if budget.persons else n, *rest, **options)

        return statement

    return replaced(
        (persons.PersonCounts, "merge", counting),
        (covey.synthesizers.private, "PrivacyStatement", telling),
    )


def rows_told(tell):
    """Somebody is told how many rows the persons have."""
    seen = []

    def counting(real):
        def merge(self):
            real(self)
            seen.append(int(self._rows.sum()))

        return merge

    def telling(real):
        def advise(self, n, sizes):
            tell(f"{n} persons have {seen[-1]} rows.")
            return real(self, n, sizes)

        return advise

    return replaced((persons.PersonCounts, "merge", counting), (PrivateSynthesizer, "_advice", telling))


def choice_in_ones():
    """Scores count in steps of 2^-20 of a person, and the noise of the choice in whole persons."""

    def plain(real):
        def choose(self, *given):
            steps, self.steps = self.steps, 1
            try:
                return real(self, *given)
            finally:
                self.steps = steps

        return choose

    return replaced((Gate, "choose", plain))


def weights_per_batch():
    """A person's rows are counted within each batch, so that a person in two batches weighs twice as much."""

    def within(_):
        def weigh(self, keys):
            _, place, rows = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
            return persons.row_weights(np.where(keys.any(axis=1), rows[place.ravel()], 0))

        return weigh

    def unchecked(_):
        def reduce(self, kernel):
            total = kernel(persons.public_record(self.p)).times(0)
            for part in self._parts():
                total = persons.weighted(kernel, *self._batch(part), total)
            return Exact(total)

        return reduce

    return replaced(
        (parts, "PART_ROWS", lambda _: 60),
        (persons.PersonCounts, "weights", within),
        (persons.PersonRows, "reduce", unchecked),
    )


def unscaled_noise():
    """Sums count in steps, and the noise in ones."""

    def one_step(real):
        def make(self, budget, shares, streams, steps=1):
            real(self, budget, shares, streams, 1)

        return make

    return replaced((Gate, "__init__", one_step))


def faults():
    """All of them."""
    return [
        Fault("each row weighs a person", "odometer: by person, parities", whole_rows()),
        Fault("each row weighs a person, numbers", "odometer: by person, numbers, (ε, δ)", whole_rows()),
        Fault("number of rows published", "odometer: by person, means", rows_published()),
        Fault("rows of persons told in a message", "odometer: by person, means", rows_told(warnings.warn)),
        Fault("rows of persons told in a log line", "odometer: by person, means", rows_told(logging.debug)),
        Fault("rows of persons printed", "odometer: by person, means", rows_told(print)),
        Fault("choice by person with noise 2^20 too small", "odometer: by person, triples", choice_in_ones()),
        Fault("rows of a person counted batch by batch", "odometer: by person, categories", weights_per_batch()),
        Fault("noise for ones on sums of steps", "odometer: by person, ball", unscaled_noise()),
    ]
