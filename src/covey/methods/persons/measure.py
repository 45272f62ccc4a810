"""All that a fit of persons with events asks of them: how many events, one-way counts, tables of two.

Whatever is counted, a person adds a vector of non-negative steps that sum to 2^20 at most, so one replaced person moves it by at
most 2 in ℓ1 and √2 in ℓ2, in units of a person (docs/proofs/persons.md). The gate counts in these steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import groupby

import numpy as np

from covey.core.arrays import Integers
from covey.core.numbers.grid import Attribute
from covey.core.tables.events import count_bins
from covey.measure.measurement import Measurement
from covey.measure.query import Factor, Query
from covey.methods.model import Ask, Asking, Part, Setting, Statistic, entries
from covey.methods.persons.plan import Tables, table_moves, weights_of
from covey.methods.regain.measure_tables import OneWayCounts
from covey.privacy.gate import Moves

ONE_PERSON = Moves.histograms(1)  # a person adds a vector of non-negative numbers that sum to 1 at most


def measure_counts(told: Setting, most: int) -> Asking[Measurement]:
    """How many persons have 0, 1, …, `most` events, a column beside the others; spends "events"."""
    query = Query([(told.p,)], {told.p: Factor.plain(most + 1)}, of="person", total=False)
    (found,) = yield [Ask("events", [Part(query, Statistic.tables(query), most + 1)], ONE_PERSON)]
    return found


@dataclass(frozen=True)
class AveragedCounts(OneWayCounts):
    """One-way counts of codes: of n persons, then of events averaged by person.

    `having` is the number of persons with events, as the noisy counts say.
    """

    persons: tuple[Attribute, ...] = ()
    events: tuple[Attribute, ...] = ()
    having: float = 0.0

    def query(self, j: int, factor: Factor) -> Query:
        """A person's own code, or the average of their events."""
        return Query([(j,)], {j: factor}, of="person" if j < len(self.persons) else "event", total=False)

    def codes(self, j: int) -> Statistic:
        """Counts of every code of an attribute, in steps."""
        return Statistic.tables(self.query(j, Factor.plain((*self.persons, *self.events)[j].size)))

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Statistic]:
        """Counts between edges, for several attributes, in steps."""
        return {j: Statistic.tables(self.query(j, Factor(own, np.arange(len(own) - 1)))) for j, own in edges.items()}

    def total(self, j: int) -> int:
        """Persons, or those among them who have events."""
        return self.n if j < len(self.persons) else max(1, round(self.having))


def measure_tables(tables: Tables, factors: Sequence[Factor]) -> Asking[list[Measurement]]:
    """All tables of two attributes in one mechanism, those of a kind and a weight together; spends "tables"."""
    parts = []
    for (kind, weight), sets in tables.items():
        query = Query(sets, dict(enumerate(factors)), of=kind, total=False)
        exact, starts = Statistic.tables(query), query.starts
        for k, columns in enumerate(sets):
            own, shape = exact.map(entries, slice(*starts[k : k + 2])), query.shape(columns)
            parts.append(Part(query, own.map(np.reshape, shape), shape, weight))
    measured = yield [Ask("tables", parts, table_moves(weights_of(tables)))]
    found = []
    for _, same in groupby(measured, lambda own: id(own.query)):
        parted = list(same)
        found.append(replace(parted[-1], values=np.concatenate([m.values.ravel() for m in parted])))
    return found


def count_factor(most: int) -> Factor:
    """The number of events, up to so many, in bins."""
    numbers = np.arange(most + 1)
    return Factor(np.arange(most + 2), np.searchsorted(count_bins(most), numbers, side="right") - 1)
