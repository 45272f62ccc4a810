"""Synthetic units that come part by part, so that there may be more of them than the memory holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from covey.core.arrays import blas_threads
from covey.core.draw.balanced import REFINE_CATEGORIES
from covey.entropy import Streams
from covey.methods.laws import CodeLaw
from covey.methods.regain.predict import CODE
from covey.records import Form
from covey.table.codec import Codec, Coding

PART_ROWS = 1 << 18  # synthetic rows that are drawn, decoded and written at a time: some hundred MiB for wide tables


class Maker(Protocol):
    """Draws units and gives them the caller's type."""

    @property
    def size(self) -> int:
        """How many are drawn at a time."""

    def memory(self, units: int) -> int:
        """Bytes that a sample of so many units takes."""

    @property
    def mended(self) -> int:
        """Rows that were altered, or drawn anew, because they broke a rule: all so far."""

    def __call__(self, count: int, first: int, streams: Streams) -> Any:
        """So many units, numbered from `first`, from 0: an array, columns, or columns of several tables."""


@dataclass(frozen=True)
class Drawn:
    """m synthetic units in parts. A part comes from a stream of its own: it is the same whenever and wherever it is drawn."""

    m: int
    _make: Maker
    _streams: Streams

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.m // self._make.size)

    @property
    def mended(self) -> int:
        """Rows that were altered, or drawn anew, because they broke a rule: all that this synthesizer has made so far."""
        return self._make.mended

    def part(self, k: int) -> Any:
        """The units of part k."""
        size = self._make.size
        with blas_threads(1):
            return self._make(min(size, self.m - k * size), k * size, self._streams.child(f"part {k}"))

    def __iter__(self) -> Iterator[Any]:
        return (self.part(k) for k in range(self.parts))


@dataclass(frozen=True)
class MakeRows:
    """Rows of one table, or of an array, from their law."""

    law: Any
    restore: Callable[[Any, np.random.Generator], Any]

    @property
    def size(self) -> int:
        """Rows of a part."""
        return PART_ROWS

    def memory(self, units: int) -> int:
        """Bytes of rows, with the pair tables that they are to match."""
        points, codes = self.law.cloud.points, isinstance(self.law, CodeLaw)
        width = int(points.shape[1])
        cells = CODE * len(self.law.domain.sizes) if codes else 8 * width
        tables = 20 * width**2 if not codes or width <= REFINE_CATEGORIES else 40 * points.size
        return units * cells + tables

    @property
    def mended(self) -> int:
        """Rows that were altered after drawing."""
        return self.restore.codec.book.mended if isinstance(self.restore, Decode) else 0

    def __call__(self, count: int, first: int, streams: Streams) -> Any:
        """Rows have no numbers."""
        return self.restore(self.law.draw(count, streams), streams.postprocessing("decode"))


@dataclass(frozen=True)
class Decode:
    """Codes or cells become columns of values."""

    codec: Codec
    coding: Coding

    def __call__(self, rows: Any, generator: np.random.Generator) -> Any:
        """Columns of decoded rows."""
        return self.codec.decode(rows.astype(np.int64), generator, self.coding)


@dataclass(frozen=True)
class Restore:
    """Drawn rows get the caller's type."""

    form: Form

    def __call__(self, rows: Any, _: np.random.Generator) -> Any:
        """Rows of the caller's type."""
        return self.form.restore(rows)
