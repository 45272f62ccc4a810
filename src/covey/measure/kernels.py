"""Kernels of queries: from some units, as codes, to the exact cells of a query's tables. Private until noise meets them."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.tables.counts import Counts
from covey.core.tables.crosstabs import TABLE_ROWS
from covey.core.tables.events import Histories, averaged_codes, averaged_table, person_codes

if TYPE_CHECKING:
    from covey.measure.query import Columns, Factor


@dataclass(frozen=True, eq=False)
class CellCounts:
    """Kernel: counts of every cell of a query's tables, side by side, of rows of codes."""

    columns: Columns
    factors: tuple[Factor, ...]
    sets: tuple[Columns, ...]

    def __call__(self, batch: Array) -> Counts:
        """Count a batch of codes, in blocks that stay in the processor's cache."""
        tables: list[Integers] = []
        for begin in range(0, max(1, len(batch)), TABLE_ROWS):
            part = np.ascontiguousarray(batch[begin : begin + TABLE_ROWS].T).astype(np.int64)
            bins = {a: factor.at(part[a]) for a, factor in zip(self.columns, self.factors, strict=True)}
            found = self._tables(bins)
            tables = found if not tables else [a + b for a, b in zip(tables, found, strict=True)]
        return Counts((np.concatenate(tables),))

    def _tables(self, bins: dict[int, Integers]) -> list[Integers]:
        size = {a: factor.size for a, factor in zip(self.columns, self.factors, strict=True)}
        out = []
        for before, group in groupby(self.sets, key=lambda own: own[:-1]):
            at, cells = np.zeros(1, dtype=np.int64), 1
            for a in before:
                at, cells = at * size[a] + bins[a], cells * size[a]
            for own in group:
                last = own[-1]
                out.append(np.bincount(at * size[last] + bins[last], minlength=cells * size[last]))
        return out


@dataclass(frozen=True, eq=False)
class PersonTables:
    """Kernel: cells of tables of persons with their events, averaged inside a person, in steps of 2^-20 of a person.

    Columns are the attributes of persons, then those of events, then the number of events. `of` is the kind of
    `core.tables.events.averaged_table`; a table of one column is of persons, or of their events.
    """

    columns: Columns
    factors: tuple[Factor, ...]
    sets: tuple[Columns, ...]
    of: str

    def __call__(self, batch: Histories) -> Counts:
        """Count some whole persons."""
        first, second = batch.persons.shape[1], batch.events.shape[1]
        factors = dict(zip(self.columns, self.factors, strict=True))
        bins: dict[int, Integers] = {}
        for a in {a for own in self.sets for a in own}:
            codes = batch.persons[:, a] if a < first else batch.counts
            bins[a] = factors[a].at(batch.events[:, a - first] if first <= a < first + second else codes)
        found = []
        for own in self.sets:
            if len(own) == 1:
                count = person_codes if own[0] < first or own[0] == first + second else averaged_codes
                found.append(count(batch, bins[own[0]], factors[own[0]].size))
                continue
            x, y = own
            table = averaged_table(batch, self.of, (bins[x], bins[y]), (factors[x].size, factors[y].size))
            if self.of == "two" and x == y:
                table = table[np.triu_indices(len(table))]
            found.append(table.ravel())
        return Counts((np.concatenate(found),))
