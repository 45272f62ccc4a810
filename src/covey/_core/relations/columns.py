"""What is public of a column when relations are looked for: its codes, which of them are values, and cells that part them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey._core.arrays import Array, Floats, Integers
from covey._core.tables.domain import Domain

DAY = 86400.0  # seconds, in which dates count
MOST_LABELS = 64  # of a category whose labels are told apart; of others "missing" alone
MOST_CELLS = 3000  # of all columns, about
LINEAR_CUTS = 48  # of a number's range, beside 1, 2, 5, 10, … of its steps


@dataclass(frozen=True)
class Column:
    """Codes first, …, first + steps − 1 are the values low, low + step, …; the others stand for words or missing cells."""

    name: str
    kind: str  # "label", "number", "date" or "datetime"; dates count in seconds
    size: int  # how many codes there are
    missing: int = -1  # the code of missing cells; −1 where there is none
    first: int = 0  # the first code that is a value; labels have no values
    steps: int = 0  # how many codes are values
    low: float = 0.0  # the first value
    step: float = 1.0  # from one value to the next
    labels: tuple[str, ...] = ()  # of a category, by code; of numbers none
    holes: float = 0.0  # the share of missing cells, as far as it is known
    usual: float = 0.0  # the share of its most frequent value, as far as it is known
    numbers: tuple[float, ...] = ()  # that labels begin with, NaN where one begins with none; nothing where few do

    @property
    def often_missing(self) -> bool:
        """Whether more than a few cells seem to be missing."""
        return self.holes > 0.005

    @property
    def high(self) -> float:
        """The last value."""
        return self.low + self.step * (self.steps - 1)

    @property
    def span(self) -> float:
        """From the first value to the last."""
        return self.step * max(self.steps - 1, 1)

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, not dates or labels."""
        return self.kind == "number"

    @property
    def is_date(self) -> bool:
        """Whether it holds dates, with or without a time of day."""
        return self.kind in ("date", "datetime")

    def values(self, codes: Array) -> Floats:
        """Values of codes, NaN where there is none."""
        if self.numbers:
            return np.array([*self.numbers, np.nan])[np.minimum(codes, len(self.numbers))]
        place = codes.astype(np.float64) - self.first
        return np.where((place >= 0) & (place < self.steps), self.low + self.step * place, np.nan)

    def edges(self, most_single: int) -> Integers:
        """The codes at which cells begin, and the end: a cell for each label and word, for 0 and the limits, and for ranges.

        Numbers with up to `most_single` values have a cell for each.
        """
        if self.kind == "label" and self.size > MOST_LABELS:
            ends = [] if self.missing < 0 else [self.missing, self.missing + 1]
            return np.unique([0, *ends, self.size])
        if self.kind == "label" or self.steps <= most_single:
            return np.arange(self.size + 1)
        cuts = {0, 1, self.steps - 1, self.steps, *np.linspace(0, self.steps, LINEAR_CUTS + 1).astype(int).tolist()}
        zero = round(-self.low / self.step)
        if self.is_number and -self.steps < zero < 2 * self.steps:
            powers = range(len(str(self.steps)) + 1)
            away = [digit * 10**power for power in powers for digit in (1, 2, 5)]
            cuts |= {zero, zero + 1, *(zero + d for d in away), *(zero - d + 1 for d in away)}
        inside = [self.first + cut for cut in cuts if 0 <= cut <= self.steps]
        return np.unique([*range(self.first), *inside, *range(self.first + self.steps, self.size + 1)])


@dataclass(frozen=True)
class Cells:
    """Kernel step: the cells of codes, a column per column."""

    edges: tuple[Integers, ...]

    @cached_property
    def domain(self) -> Domain:
        """How many cells each column has."""
        return Domain(tuple(len(edges) - 1 for edges in self.edges), (False,) * len(self.edges))

    def __call__(self, codes: Array) -> Integers:
        """Cells of a batch of codes."""
        return np.stack([np.searchsorted(e, codes[:, j], side="right") - 1 for j, e in enumerate(self.edges)], axis=1)

    def codes(self, cells: Integers, generator: np.random.Generator) -> Integers:
        """Some codes of cells, uniform within each."""
        low = np.stack([e[:-1][cells[:, j]] for j, e in enumerate(self.edges)], axis=1)
        high = np.stack([e[1:][cells[:, j]] for j, e in enumerate(self.edges)], axis=1)
        return generator.integers(low, high)


def cells_of(columns: Sequence[Column]) -> Cells:
    """Cells of all columns, as fine as their number allows."""
    single = 128
    while True:
        found = Cells(tuple(column.edges(single) for column in columns))
        if found.domain.total <= MOST_CELLS or single <= 16:
            return found
        single //= 2
