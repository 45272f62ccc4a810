"""All that a fit of persons with events asks of them, through the gate: how many events, one-way counts, tables of two.

Whatever is counted, a person adds a vector of non-negative steps that sum to 2^20 at most, so one replaced person moves it by at
most 2 in ℓ1 and √2 in ℓ2, in units of a person (docs/proofs/persons.md). The gate counts in these steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import groupby

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.numbers.grid import Attribute
from covey.core.tables.events import (
    Linked,
    LinkedTable,
    count_bins,
    event_counts,
    event_ranges,
    linked_table,
    person_ranges,
)
from covey.engines.events import LinkedRows
from covey.measure.measurement import Measurement
from covey.measure.query import Columns, Factor, Query
from covey.methods.persons.plan import table_moves
from covey.privacy.gate import Exact, Gate, Moves

ONE_PERSON = Moves(l1=2, l2_squared=2)  # a law of a person moves by at most 2 in ℓ1 and √2 in ℓ2


def measure_counts(rows: LinkedRows, column: int, gate: Gate) -> Measurement:
    """How many persons have 0, 1, …, `most` events, a column beside the others; spends "events"."""
    found = gate.measure("events", rows.reduce(event_counts), rows.most + 1, ONE_PERSON)
    query = Query([(column,)], {column: Factor.plain(rows.most + 1)}, of="person", total=False)
    return Measurement(query, np.asarray(found.values, dtype=np.float64), found.sd, found.law, rows.n, "events")


@dataclass(frozen=True)
class LinkedCounts:
    """Exact one-way counts of codes: of persons, then of events averaged by person. Sealed.

    `having` is the number of persons with events, as the noisy counts say.
    """

    rows: LinkedRows
    persons: tuple[Attribute, ...]
    events: tuple[Attribute, ...]
    having: float

    @property
    def n(self) -> int:
        """Persons."""
        return self.rows.n

    def query(self, j: int, factor: Factor) -> Query:
        """A person's own code, or the average of their events."""
        return Query([(j,)], {j: factor}, of="person" if j < len(self.persons) else "event", total=False)

    def codes(self, j: int) -> Exact[Integers]:
        """Counts of every code of an attribute, in steps."""
        size = (*self.persons, *self.events)[j].size
        return self._of(j, np.arange(size + 1))

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Exact[Integers]]:
        """Counts between edges, for several attributes, in steps."""
        return {j: self._of(j, own) for j, own in edges.items()}

    def _of(self, j: int, edges: Integers) -> Exact[Integers]:
        first = len(self.persons)
        if j < first:
            return self.rows.reduce(partial(person_ranges, column=j, edges=edges))
        return self.rows.reduce(partial(event_ranges, column=j - first, edges=edges))

    def total(self, j: int) -> int:
        """Persons, or those among them who have events."""
        return self.rows.n if j < len(self.persons) else max(1, round(self.having))


@dataclass(frozen=True)
class ToBins:
    """A step on persons and events: codes become bins; `factors` are those of all attributes, the first ones of persons."""

    factors: tuple[Factor, ...]
    first: int

    def __call__(self, linked: Linked) -> Linked:
        """The bins of everyone."""
        k = self.first
        return linked.recoded(self._bins(linked.persons, self.factors[:k]), self._bins(linked.events, self.factors[k:]))

    @staticmethod
    def _bins(codes: Array, factors: Sequence[Factor]) -> Array:
        out = np.empty(codes.shape, dtype=np.int64)
        for j, factor in enumerate(factors):
            out[:, j] = factor.at(codes[:, j])
        return out

    def columns(self, table: LinkedTable) -> Columns:
        """Places of a table's attributes among all; the number of events, of persons the last one, comes after events."""
        one, other = table.one, table.other
        if table.kind in ("person", "across"):
            one = len(self.factors) if one == self.first else one
        else:
            one += self.first
        if table.kind == "person":
            return one, len(self.factors) if other == self.first else other
        return one, other + self.first

    def named(self, found: Measurement) -> Iterator[tuple[LinkedTable, Columns]]:
        """The tables of a measurement, by attributes of persons and of events."""
        for one, other in found.query.sets:
            sides = (
                self._place(found.query.of in ("person", "across"), one),
                self._place(found.query.of == "person", other),
            )
            yield LinkedTable(found.query.of, *sides), (one, other)

    def _place(self, person: bool, a: int) -> int:
        return a - self.first if not person else min(a, self.first)


def measure_tables(
    rows: LinkedRows, tables: Sequence[tuple[LinkedTable, Fraction]], bins: ToBins, counts: Factor, gate: Gate
) -> list[Measurement]:
    """All tables of two attributes in one mechanism, those of a kind and a weight together; rows are in bins already.

    `counts` has the bins of the number of events. Spends "tables".
    """
    joint = gate.joint("tables", table_moves([weight for _, weight in tables]))
    factors = dict(enumerate((*bins.factors, counts)))
    sizes = tuple(f.size for f in bins.factors[: bins.first]), tuple(f.size for f in bins.factors[bins.first :])
    measured = []
    for (kind, _), group in groupby(tables, lambda own: (own[0].kind, own[1])):
        sets, values = [], []
        for table, weight in group:
            exact, shape = (
                rows.reduce(partial(linked_table, table=table, sizes=sizes)),
                table_shape(table, sizes, counts.size),
            )
            if folded(table):
                found = joint.add(exact.map(_upper), shape[0] * (shape[0] + 1) // 2, weight)
            else:
                found = joint.add(exact, shape, weight)
            sets.append(bins.columns(table))
            values.append(np.asarray(found.values, dtype=np.float64).ravel())
        query = Query(sets, factors, of=kind, total=False)
        measured.append(Measurement(query, np.concatenate(values), found.sd, found.law, rows.n, "tables"))
    return measured


def table_shape(table: LinkedTable, sizes: tuple[tuple[int, ...], tuple[int, ...]], counts: int) -> tuple[int, int]:
    """Rows and columns of a table: public."""
    person, event = (*sizes[0], counts), sizes[1]
    one = person if table.kind in ("person", "across") else event
    other = person if table.kind == "person" else event
    return one[table.one], other[table.other]


def folded(table: LinkedTable) -> bool:
    """Whether the table has no order: what lies below its diagonal was added to what lies above."""
    return table.kind == "two" and table.one == table.other


def count_factor(most: int) -> Factor:
    """The number of events, up to so many, in bins."""
    numbers = np.arange(most + 1)
    return Factor(np.arange(most + 2), np.searchsorted(count_bins(most), numbers, side="right") - 1)


def _upper(matrix: Integers) -> Integers:
    return np.asarray(matrix[np.triu_indices(len(matrix))])
