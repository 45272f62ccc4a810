"""Synthetic rows as a report shows them, added up while they are written: no part has to be kept or drawn again.

Pictures of single columns count all rows. What takes pairs of columns sees some of the rows, evenly chosen among all.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from covey.core.arrays import Integers
from covey.release.contents import AnonymousRelease, PrivateRelease
from covey.table.codec import Codec
from covey.table.numbers import NumberCodec
from covey.table.sources import ColumnValues

MAPPED_ROWS = 50_000  # that associations are computed from: they are read to two digits


class Pictured:
    """What a report needs of the rows of a release, from parts that pass by.

    Args:
        release: whose rows they are; how many there will be is public.
    """

    def __init__(self, release: PrivateRelease | AnonymousRelease) -> None:
        self.codec = Codec(release.schema)
        self.counts: list[Integers] = [np.zeros(size, dtype=np.int64) for size in self.codec.domain_sizes]
        self.first: ColumnValues = {}
        self._codes: Integers | None = None  # of the first part
        self.rows = 0
        numbers = release.numbers if isinstance(release, PrivateRelease) else None
        self._numbers = numbers if numbers is not None and numbers.cells else None
        self._step = max(1, -(-release.parts.m // MAPPED_ROWS))
        self._some: list[tuple[Integers, Integers]] = []

    @classmethod
    def of(cls, release: PrivateRelease | AnonymousRelease) -> Pictured:
        """All rows of a release, drawn for this alone."""
        own = cls(release)
        for part in release.parts:
            own.add(part)
        return own

    def passing(self, parts: Iterator[ColumnValues]) -> Iterator[ColumnValues]:
        """The parts, each counted before it goes on."""
        for part in parts:
            self.add(part)
            yield part

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
        return self._numbers.of(NumberCodec(self.codec).encode(part)[0])

    @property
    def some(self) -> Integers:
        """Codes of the chosen rows."""
        return np.concatenate([codes for codes, _ in self._some])

    @property
    def some_fine(self) -> Integers:
        """The same rows, numbers by their cells."""
        return np.concatenate([fine for _, fine in self._some])
