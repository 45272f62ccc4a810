"""Synthetic rows as a report shows them, added up while they are written: no part has to be kept or drawn again.

Pictures of single columns count all rows. What takes pairs of columns sees some of the rows, evenly chosen among all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covey.core.arrays import Integers
from covey.methods.laws import CodeLaw
from covey.release.contents import AnyRelease, PrivateRelease
from covey.table.codec import Codec
from covey.table.schema import Schema
from covey.table.sources import ColumnValues

MAPPED_ROWS = 50_000  # that associations are computed from: they are read to two digits


class Seen:
    """What a report needs of all tables of a release, from parts that pass by.

    Args:
        release: whose tables they are; how many rows, or persons, there will be is public.
    """

    def __init__(self, release: AnyRelease) -> None:
        self.described = release.described
        numbers = release.numbers if isinstance(release, PrivateRelease) else None
        self.tables = {
            part.name: Pictured(part.written, release.parts.m, numbers)
            for part in self.described.tables
            if not part.bare
        }
        self.rows = dict.fromkeys((part.name for part in self.described.tables), 0)
        most = 0 if self.described.schema is not None else self.described.link.at_most
        self.events = np.zeros(most + 1, dtype=np.int64)  # how many persons have so many events
        self.first: Sequence[ColumnValues] = ()  # columns of every table in the first part

    @classmethod
    def of(cls, release: AnyRelease) -> Seen:
        """All tables of a release, drawn or read for this alone."""
        own = cls(release)
        for part in release.parts:
            own.add(own.by_table(part))
        return own

    def by_table(self, part: ColumnValues | Sequence[ColumnValues]) -> Sequence[ColumnValues]:
        """A part as columns of every table."""
        return (part,) if self.described.schema is not None else part  # type: ignore[return-value]

    def add(self, part: Sequence[ColumnValues]) -> None:
        """Count one part."""
        self.first = self.first or part
        for one, columns in zip(self.described.tables, part, strict=True):
            self.rows[one.name] += len(next(iter(columns.values())))
            if one.name in self.tables and len(next(iter(columns.values()))):
                self.tables[one.name].add({name: columns[name] for name in one.written.names})
        if self.described.schema is None:
            ids, owners = (
                np.asarray(columns[one.link]) for one, columns in zip(self.described.tables, part, strict=True)
            )
            held = np.bincount(np.searchsorted(ids, owners), minlength=len(ids))
            self.events += np.bincount(held, minlength=len(self.events))

    @property
    def only(self) -> Pictured:
        """The one table."""
        return self.tables[self.described.unit.name]


class Pictured:
    """What a report needs of the rows of one table.

    Args:
        schema: of these rows.
        m: how many there will be; of events, how many persons.
        numbers: the cells that numbers were measured in.
    """

    def __init__(self, schema: Schema, m: int, numbers: CodeLaw | None = None) -> None:
        self.codec = Codec(schema)
        self.counts: list[Integers] = [np.zeros(size, dtype=np.int64) for size in self.codec.domain_sizes]
        self.first: ColumnValues = {}
        self._codes: Integers | None = None  # of the first part
        self.rows = 0
        self._numbers = numbers if numbers is not None and numbers.cells else None
        self._step = max(1, -(-m // MAPPED_ROWS))
        self._some: list[tuple[Integers, Integers]] = []

    def add(self, part: ColumnValues) -> None:
        """Count one part, and choose some of its rows."""
        codes, _ = self.codec.encode(part)
        for j, counts in enumerate(self.counts):
            counts += np.bincount(codes[:, j], minlength=len(counts))
        start = -self.rows % self._step
        some = codes if self._step == 1 else codes[start :: self._step].copy()  # a view would keep the whole part
        if len(some):
            chosen = {name: values[start :: self._step] for name, values in part.items()}
            self._some.append((some, some if self._numbers is None else self.fine(chosen)))
        if self._codes is None:
            self.first, self._codes = part, codes
        self.rows += len(codes)

    def fine(self, part: ColumnValues) -> Integers:
        """Rows as codes; numbers by the cells that they were measured in."""
        if self._numbers is None:
            return self._codes if part is self.first and self._codes is not None else self.codec.encode(part)[0]
        return self._numbers.of(self.codec.encode(part, "numbers")[0])

    @property
    def some(self) -> Integers:
        """Codes of the chosen rows."""
        return np.concatenate([codes for codes, _ in self._some])

    @property
    def some_fine(self) -> Integers:
        """The same rows, numbers by their cells."""
        return np.concatenate([fine for _, fine in self._some])
