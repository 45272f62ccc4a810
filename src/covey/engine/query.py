"""What is asked of one unit, a row or a person with all rows: tables of bins of some columns together. Public.

A query's kernel counts its cells exactly, private until noise meets them, and a law answers the same queries; a certificate says
how far the two answers are apart. Where each table holds a unit once, one replaced unit moves each by 2/n in ℓ1: its total
variation distance from a fixed table by 1/n at most, and so the mean over tables (docs/proofs/certificate.md). A query whose
kernel counts otherwise says so by its sensitivity.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations, groupby
from math import comb, prod
from typing import Any, Literal

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.codes.counts import Counts
from covey.engine.codes.domain import TABLE_ROWS
from covey.engine.codes.events import Histories, averaged_codes, averaged_table, person_codes
from covey.engine.points import WeightedPoints
from covey.engine.sensitivity import Sensitivity

Columns = tuple[int, ...]
View = Literal["cells", "centred", "product"]
OWN = "own"  # what of a unit is looked at where a kernel counts it more than once: cells are then no shares of units


@dataclass(frozen=True, eq=False)
class Factor:
    """How one column is looked at: codes between edges are a cell, and cells are gathered into bins.

    `reference` is a public law on the bins: centred tables hold what is left of a table when, in each column, the reference's
    part is taken out. Even where it is None.
    """

    edges: Integers
    bins: Integers
    reference: Floats | None = None

    @classmethod
    def plain(cls, size: int, reference: Floats | None = None) -> Factor:
        """Every code by itself."""
        return cls(np.arange(size + 1), np.arange(size), reference)

    @cached_property
    def size(self) -> int:
        """How many bins there are."""
        return int(self.bins.max()) + 1

    @cached_property
    def law(self) -> Floats:
        """The reference."""
        return np.full(self.size, 1 / self.size) if self.reference is None else self.reference

    def at(self, codes: Array) -> Integers:
        """The bins of codes."""
        if self.edges[-1] == len(self.bins):  # every code is a cell
            return np.asarray(self.bins[codes])
        run = self._near[codes >> self._shift]
        late = np.flatnonzero(codes >= np.append(self._starts[1:], self.edges[-1])[run])
        run[late] = np.searchsorted(self._starts, codes[late], side="right") - 1
        return np.asarray(self.bins[self._runs][run])

    # Neighbouring cells of one bin are a run. A table of 2^16 places tells the run in which each place begins, so that only
    # codes in places where another run begins are searched for: a fifth of the time.

    @cached_property
    def _runs(self) -> Integers:
        return np.flatnonzero(np.diff(self.bins, prepend=self.bins[0] - 1))

    @cached_property
    def _starts(self) -> Integers:
        return np.asarray(self.edges[self._runs])

    @cached_property
    def _shift(self) -> int:
        return max(0, int(self.edges[-1]).bit_length() - 16)

    @cached_property
    def _near(self) -> Integers:
        places = np.arange((int(self.edges[-1]) >> self._shift) + 1) << self._shift
        return np.searchsorted(self._starts, places, side="right") - 1


def to_bins(factors: tuple[Factor | None, ...], batch: Array) -> Array:
    """A step on records: codes become bins, column by column, each of its own record alone; None leaves a column as it is."""
    out = np.empty(batch.shape, dtype=np.int64, order="F")
    for j, factor in enumerate(factors):
        out[:, j] = batch[:, j] if factor is None else factor.at(batch[:, j])
    return out


@dataclass(frozen=True)
class Every(Sequence[Columns]):
    """All sets of so many of p columns, in lexicographic order, none of them written out."""

    p: int
    degree: int

    def __len__(self) -> int:
        return comb(self.p, self.degree)

    def __iter__(self) -> Iterator[Columns]:
        return combinations(range(self.p), self.degree)

    def __getitem__(self, k: int) -> Columns:  # type: ignore[override]
        return next(s for i, s in enumerate(self) if i == k)

    def __contains__(self, columns: object) -> bool:
        return isinstance(columns, tuple) and len(columns) == self.degree and max(columns) < self.p

    def index(self, columns: Columns) -> int:  # type: ignore[override]
        """Its place, from binomial coefficients."""
        at, before = 0, -1
        for i, x in enumerate(columns):
            k = self.degree - i
            at, before = at + comb(self.p - 1 - before, k) - comb(self.p - x, k), x
        return at


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

    Columns are the attributes of persons, then those of events, then the number of events. `of` is "person", for any number of
    a person's own columns, or a kind of `engine.codes.events.averaged_table`; of events there may be one column alone.
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
            if self.of == "person":
                sizes = [factors[a].size for a in own]
                found.append(person_codes(np.ravel_multi_index([bins[a] for a in own], sizes), prod(sizes)))
                continue
            if len(own) == 1:
                found.append(averaged_codes(bins[own[0]], batch.single, factors[own[0]].size))
                continue
            x, y = own
            table = averaged_table(batch, self.of, (bins[x], bins[y]), (factors[x].size, factors[y].size))
            if self.of == "two" and x == y:
                table = table[np.triu_indices(len(table))]
            found.append(table.ravel())
        return Counts((np.concatenate(found),))


@dataclass(frozen=True, eq=False)
class Query:
    """Tables of some sets of columns, one after the other."""

    sets: Sequence[Columns]
    factors: Mapping[int, Factor]  # how each of these columns is looked at
    # "cells" counts every cell; "centred" takes out what fewer of the columns say; "product" is the mean product of flags less
    # their references, which is the last cell of their centred table and tells all of it.
    view: View = "cells"
    of: str = "row"  # what of a unit is looked at; of a person with events one of the kinds of `engine.codes.events`
    cut: bool = False  # whether units were shortened before, so that values are no longer about them
    total: bool = True  # whether every unit lies in one cell of each table, so that its cells sum to their number

    @classmethod
    def products(cls, degree: int, middle: Floats, cut: bool = False) -> Query:
        """Mean products of every so many flags, each coded as x less a share of ones, its reference."""
        factors = {a: Factor.plain(2, np.array([1 - c, c])) for a, c in enumerate(np.asarray(middle, dtype=float))}
        return cls(Every(len(middle), degree), factors, "product", cut=cut)

    @classmethod
    def derived(cls, of: str, column: int, size: int, count: int = 1) -> Query:
        """Histograms of so many numbers that follow from a unit, as columns beside the others."""
        columns = range(column, column + count)
        return cls([(a,) for a in columns], dict.fromkeys(columns, Factor.plain(size)), of=of)

    def kernel(self) -> Callable[[Any], Any]:
        """What counts the cells of all tables, of some units."""
        given = tuple(self.factors), tuple(self.factors.values()), tuple(self.sets)
        return CellCounts(*given) if self.of == "row" else PersonTables(*given, self.of)

    def sensitivity(self) -> Sensitivity:
        """How far one unit moves all tables together: what their noise rests on. Whoever writes a kernel writes it too.

        covey's own kernels hold a unit once in each table: in one cell, or averaged over its rows (docs/proofs/sensitivity.md).
        """
        return Sensitivity.histograms(len(self.sets))

    @property
    def stretch(self) -> Fraction:
        """How many times as far as tables that hold each unit once a unit moves these, on average; at least 1."""
        bounds, tables = self.sensitivity(), len(self.sets)
        replaced = Fraction(bounds.l1 or 0) / (2 * tables)
        if bounds.added is None:
            return max(Fraction(1), replaced)
        return max(Fraction(1), replaced, Fraction(bounds.added.l1 or 0) / tables)

    @property
    def tables_hold_units(self) -> bool:
        """Whether each table holds a unit once at most, so that its cells are shares of units."""
        return self.of != OWN and self.stretch == 1

    @cached_property
    def degree(self) -> int:
        """How many columns a table has."""
        return self.sets.degree if isinstance(self.sets, Every) else len(self.sets[0])

    def shape(self, columns: Columns) -> tuple[int, ...]:
        """Of one table."""
        if self.folded(columns):
            return (comb(self.factors[columns[0]].size + 1, 2),)
        return (1,) * len(columns) if self.view == "product" else tuple(self.factors[a].size for a in columns)

    def folded(self, columns: Columns) -> bool:
        """Whether the table is about two events in no order: then it holds its upper part, which has both orders."""
        return self.of == "two" and columns[0] == columns[1]

    @cached_property
    def starts(self) -> Integers:
        """Where the tables begin, one after the other."""
        if self.view == "product":
            return np.arange(len(self.sets) + 1)
        return np.concatenate([[0], np.cumsum([prod(self.shape(s)) for s in self.sets])]).astype(np.int64)

    @cached_property
    def blocks(self) -> Integers:
        """Where the columns begin in a block matrix of all pairs."""
        sizes = [1 if self.view == "product" else self.factors[a].size for a in range(len(self.factors))]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def mixed_table(query: Query, cloud: WeightedPoints, codes: Sequence[Integers]) -> Floats:
    """Shares of every cell of a query of rows, table after table, where columns are independent in each centre.

    `codes` has a code of each category of a column.
    """
    ends = np.cumsum([len(own) for own in codes])
    shares = {}
    for a, factor in query.factors.items():
        shares[a] = np.zeros((len(cloud), factor.size))
        np.add.at(shares[a].T, factor.at(codes[a]), cloud.points[:, ends[a] - len(codes[a]) : ends[a]].T)
    out = []
    for before, group in groupby(query.sets, key=lambda own: own[:-1]):
        product = cloud.weights[:, None]
        for a in before:
            product = (product[:, :, None] * shares[a][:, None, :]).reshape(len(product), -1)
        out += [(product.T @ shares[own[-1]]).ravel() for own in group]
    return np.concatenate(out)


def mean_variation(counts: Integers, shares: Floats, starts: Integers, total: int) -> float:
    """The mean, over tables that lie side by side, of the total variation distance between counts of a total and shares."""
    return float(np.mean(np.add.reduceat(np.abs(counts / total - shares), starts[:-1])) / 2)
