"""All that a fit of persons with events asks of them, through the gate: how many events, one-way counts, tables of two.

Whatever is counted, a person adds a vector of non-negative steps that sum to 2^20 at most, so one replaced person moves it by at
most 2 in ℓ1 and √2 in ℓ2, in units of a person (docs/proofs/persons.md). The gate counts in these steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.numbers.grid import Attribute
from covey.core.tables.events import (
    Linked,
    LinkedTable,
    event_counts,
    event_ranges,
    linked_table,
    person_ranges,
)
from covey.engines.events import LinkedRows
from covey.methods.persons.plan import table_moves
from covey.methods.regain.measure_tables import Recode
from covey.methods.regain.measured import MeasuredRanges
from covey.privacy.gate import Exact, Gate, Measured, Moves

ONE_PERSON = Moves(l1=2, l2_squared=2)  # a law of a person moves by at most 2 in ℓ1 and √2 in ℓ2


def measure_counts(rows: LinkedRows, gate: Gate) -> Measured:
    """How many persons have 0, 1, …, `most` events; spends "events"."""
    return gate.measure("events", rows.reduce(event_counts), rows.most + 1, ONE_PERSON)


@dataclass(frozen=True)
class LinkedCounts:
    """Exact one-way counts of codes: of persons, then of events averaged by person. Sealed.

    `having` is the number of persons with events, as the noisy counts say.
    """

    rows: LinkedRows
    persons: tuple[Attribute, ...]
    events: tuple[Attribute, ...]
    having: float

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
    """A step on persons and events: codes become bins, by the edges of cells and by maps from cells to bins."""

    edges: tuple[Integers | None, ...]
    maps: tuple[Integers, ...]
    first: int  # how many attributes are of persons

    def __call__(self, linked: Linked) -> Linked:
        """The bins of everyone."""
        k = self.first
        return linked.recoded(
            Recode(self.edges[:k], self.maps[:k])(linked.persons), Recode(self.edges[k:], self.maps[k:])(linked.events)
        )


@dataclass(frozen=True)
class NoisyTable:
    """A noisy table in persons, and the noise on each of its entries; of two events in no order only the upper part counts."""

    table: LinkedTable
    values: Floats
    sd: float


@dataclass(frozen=True)
class LinkedMeasured:
    """All that the gate gave back of persons with events, in persons. Public.

    Args:
        n: how many persons there are.
        pure: whether the noise has Laplace's law.
        counts: how many persons have 0, 1, … events.
        one_way: of attributes of persons, then of events averaged by person.
        tables: of two attributes, in bins.
        bins: how codes become bins.
    """

    n: int
    pure: bool
    counts: MeasuredRanges
    one_way: list[MeasuredRanges]
    tables: list[NoisyTable]
    bins: ToBins


def measure_tables(
    rows: LinkedRows,
    tables: Sequence[tuple[LinkedTable, Fraction]],
    sizes: tuple[tuple[int, ...], tuple[int, ...]],
    counts: int,
    gate: Gate,
) -> list[NoisyTable]:
    """All tables of two attributes, of bins of these sizes, in one mechanism; `counts` has the bins of the number of events.

    Spends "tables".
    """
    joint = gate.joint("tables", table_moves([weight for _, weight in tables]))
    found = []
    for table, weight in tables:
        shape = table_shape(table, sizes, counts)
        exact = rows.reduce(partial(linked_table, table=table, sizes=sizes))
        if folded(table):
            upper = np.triu_indices(shape[0])
            measured = joint.add(exact.map(_upper), len(upper[0]), weight)
            values = np.zeros(shape)
            values[upper] = measured.values
        else:
            measured = joint.add(exact, shape, weight)
            values = np.asarray(measured.values, dtype=np.float64)
        found.append(NoisyTable(table, values, measured.sd))
    return found


def table_shape(table: LinkedTable, sizes: tuple[tuple[int, ...], tuple[int, ...]], counts: int) -> tuple[int, int]:
    """Rows and columns of a table: public."""
    person, event = (*sizes[0], counts), sizes[1]
    one = person if table.kind in ("person", "across") else event
    other = person if table.kind == "person" else event
    return one[table.one], other[table.other]


def folded(table: LinkedTable) -> bool:
    """Whether the table has no order: what lies below its diagonal was added to what lies above."""
    return table.kind == "two" and table.one == table.other


def _upper(matrix: Integers) -> Integers:
    return np.asarray(matrix[np.triu_indices(len(matrix))])
