"""Queries are tried on made-up units before anything is spent: what one unit moves must be what a query says.

The noise on a query's tables rests on its sensitivity, which its author proves. A program cannot prove it for a kernel that it
does not know, but it can find most mistakes: units that nobody has are counted one by one, each alone and each in the place of
another. True units are never looked at for this. The sum over many of them would hide the one that counts too often, and a
refusal would tell something about them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any, Protocol

import numpy as np

from covey.engine.arrays import Array, Integers
from covey.engine.budget import Budget
from covey.engine.codes.counts import Counts
from covey.engine.codes.events import WEIGHT_STEPS, Histories
from covey.engine.exact import pure
from covey.engine.query import Factor, Query
from covey.engine.sensitivity import Sensitivity
from covey.errors import ParameterError

RANDOM_UNITS = 200  # besides those that walk through the bins of each column: the rare ones among them are met too
BINS_WALKED = 64  # of each column
MOST_CELLS = 1 << 24  # of all units together: a kernel with large tables is tried on fewer


class MadeUp(Protocol):
    """Units of a shape that public facts decide, and that nobody has."""

    @property
    def sizes(self) -> Sequence[int]:
        """The number of codes of each column."""

    @property
    def steps(self) -> int:
        """What a kernel counts for one whole unit."""

    def units(self, walked: Mapping[int, Factor], random: int) -> Iterator[Any]:
        """Batches of one unit each."""

    def together(self, units: Sequence[Any]) -> Any:
        """One batch of all of them."""


@dataclass(frozen=True)
class MadeUpRows:
    """Rows of codes."""

    sizes: Sequence[int]
    steps: int = 1

    def units(self, walked: Mapping[int, Factor], random: int) -> Iterator[Array]:
        """Rows with the least and the largest codes, one for each bin of each column, and random ones."""
        for codes in _codes(self.sizes, walked, random):
            yield codes[None]

    def together(self, units: Sequence[Array]) -> Array:
        """All rows."""
        return np.concatenate(units)


@dataclass(frozen=True)
class MadeUpPersons:
    """Persons with no event, one, two, three, and as many as may be; the last column is the number of events."""

    of_persons: Sequence[int]
    of_events: Sequence[int]
    most: int
    steps: int = WEIGHT_STEPS

    @property
    def sizes(self) -> Sequence[int]:
        """Of persons, of events, and of the number of events."""
        return (*self.of_persons, *self.of_events, self.most + 1)

    def units(self, walked: Mapping[int, Factor], random: int) -> Iterator[Histories]:
        """One person at a time."""
        counts = [count for count in dict.fromkeys((0, 1, 2, 3, self.most)) if count <= self.most]
        rows = np.array(list(_codes(self.sizes, walked, random)))
        dtype = np.min_scalar_type(max(self.sizes))
        first, last = len(self.of_persons), len(self.of_persons) + len(self.of_events)
        for k, codes in enumerate(rows):
            count = counts[k % len(counts)]
            events = rows[(k + np.arange(count)) % len(rows), first:last]
            yield Histories(
                codes[None, :first].astype(dtype), events.astype(dtype), np.zeros(count, np.int64), self.most
            )

    def together(self, units: Sequence[Histories]) -> Histories:
        """All persons."""
        owner = np.repeat(np.arange(len(units)), [len(unit.events) for unit in units])
        persons, events = (np.concatenate(parts) for parts in zip(*((u.persons, u.events) for u in units), strict=True))
        return Histories(persons, events, owner, self.most)


def _codes(sizes: Sequence[int], walked: Mapping[int, Factor], random: int) -> Iterator[Array]:
    """Rows of codes: the extremes, each of the first bins of these columns once, and random ones."""
    generator = np.random.default_rng(0)
    dtype = np.min_scalar_type(max(sizes) - 1)
    last = np.array(sizes, dtype=np.int64) - 1
    yield np.zeros(len(sizes), dtype)
    yield last.astype(dtype)
    for _ in range(random):
        yield generator.integers(0, last, endpoint=True).astype(dtype)
    for column, factor in walked.items():
        for bin_ in range(min(factor.size, BINS_WALKED)):
            codes = generator.integers(0, last, endpoint=True)
            codes[column] = factor.edges[np.flatnonzero(factor.bins == bin_)[0]]
            yield codes.astype(dtype)


# What is refused.


def check_queries(queries: Sequence[Query], made_up: MadeUp | None, budget: Budget) -> None:
    """Refuse queries that are about other columns, or whose noise would be too small as far as made-up units can show."""
    for query in queries:
        if not isinstance(query, Query):
            raise ParameterError(f"further takes queries (covey.engine.query.Query), and got a {type(query).__name__}.")
        if _has_a_kernel_of_its_own(query):
            _check_sensitivity(query, budget)
        if made_up is None:  # the number of columns is not known yet, and this will be asked again
            continue
        _check_columns(query, made_up.sizes)
        if _has_a_kernel_of_its_own(query):
            _check_kernel(query, made_up)


def _check_columns(query: Query, sizes: Sequence[int]) -> None:
    """Each column exists, and is looked at with all its codes."""
    for columns in query.sets:
        for column in columns:
            if not 0 <= column < len(sizes):
                raise ParameterError(f"further: a query names column {column}, and the last one is {len(sizes) - 1}.")
            if column not in query.factors:
                raise ParameterError(f"further: a query does not say in its factors how column {column} is looked at.")
            codes = int(query.factors[column].edges[-1])
            if codes != sizes[column]:
                raise ParameterError(
                    f"further: a query looks at column {column} with {codes} codes, and it has {sizes[column]}, one of which "
                    "is for missing values where there may be any."
                )


def _has_a_kernel_of_its_own(query: Query) -> bool:
    """Whether its counts are others than covey's."""
    return "kernel" in vars(query) or type(query).kernel is not Query.kernel


def _check_sensitivity(query: Query, budget: Budget) -> None:
    """Whoever writes a kernel says its sensitivity, in the same class or in one that was made from it."""
    name = type(query).__name__
    places = [vars(query), *map(vars, type(query).__mro__)]
    kernel, sensitivity = (
        next(k for k, names in enumerate(places) if wanted in names) for wanted in ("kernel", "sensitivity")
    )
    if kernel < sensitivity:
        raise ParameterError(
            f"further: {name} has a kernel of its own and does not say its sensitivity, on which the noise rests. Define "
            "sensitivity() beside kernel() (docs/extending.md, 'A statistic')."
        )
    bounds = query.sensitivity()
    if not isinstance(bounds, Sensitivity) or not bounds.summed:
        raise ParameterError(f"further: sensitivity() of {name} must give the Sensitivity of a sum over rows.")
    if budget.size_is_secret and bounds.added is None:
        raise ParameterError(
            f"further: the sensitivity of {name} does not say how far an added row moves its tables: give added=…, or use "
            "neighbours='replace-one'."
        )
    for needed in [bounds] if bounds.added is None else [bounds, bounds.added]:
        if needed.l1 is None or needed.l2_squared is None:
            raise ParameterError(
                f"further: the sensitivity of {name} lacks l1=… or l2_squared=…: Laplace noise and the certificate need the "
                "first, Gaussian noise the second."
            )


def _check_kernel(query: Query, made_up: MadeUp) -> None:
    """Count made-up units alone, in each other's place and together."""
    name = type(query).__name__
    kernel = pure(query.kernel())
    cells = int(query.starts[-1])
    units = list(made_up.units(query.factors, min(RANDOM_UNITS, max(2, MOST_CELLS // cells))))
    replaced = query.sensitivity()
    sums_are_one = True
    base = _counted(kernel, units[0], cells, name)
    total = np.zeros_like(base)
    for before, unit in pairwise([units[0], *units]):
        counts = _counted(kernel, unit, cells, name)
        total += counts
        if replaced.added is not None:
            _check_move(counts, replaced.added, made_up.steps, name, "added")
        for other in (base, _counted(kernel, before, cells, name)):
            _check_move(counts - other, replaced, made_up.steps, name, "replaced")
        sums_are_one &= bool((np.add.reduceat(counts, query.starts[:-1]) == made_up.steps).all())
    if (total != _counted(kernel, made_up.together(units), cells, name)).any():
        raise ParameterError(
            f"further: {name} counts several rows together as something else than the sum of what it counts for each: a kernel "
            "looks at each row by itself."
        )
    # Averages over events are rounded down, and a person without events is in no cell of theirs.
    one_cell = query.total and query.view == "cells" and query.tables_hold_units and isinstance(made_up, MadeUpRows)
    if one_cell and not sums_are_one:
        raise ParameterError(f"further: {name} counts a row in several cells of a table, or in none: give total=False.")


def _counted(kernel: Any, unit: Any, cells: int, name: str) -> Integers:
    """What a kernel counts: whole numbers, one for each cell."""
    counts = kernel(unit)
    numbers = counts.values[0] if isinstance(counts, Counts) and len(counts.values) == 1 else np.zeros(0)
    if np.shape(numbers) != (cells,) or (np.asarray(numbers) != np.rint(numbers)).any():
        raise ParameterError(
            f"further: the kernel of {name} must give Counts with one array of {cells} whole numbers, one for each cell."
        )
    return np.asarray(numbers).astype(np.int64)


def _check_move(change: Integers, bounds: Sensitivity, steps: int, name: str, how: str) -> None:
    """Refuse what moves further than was said."""
    absolute = [int(x) for x in np.abs(change[change != 0])]  # in unbounded integers
    moved = {"l1": sum(absolute), "l2_squared": sum(x * x for x in absolute), "linf": max(absolute, default=0)}
    units = {"l1": steps, "l2_squared": steps**2, "linf": steps}
    for norm, distance in moved.items():
        bound = getattr(bounds, norm)
        if bound is not None and distance > bound * units[norm]:
            raise ParameterError(
                f"further: the sensitivity of {name} says {norm}={bound} for a row that is {how}, and the tables of made-up rows "
                f"move by {float(Fraction(distance, units[norm])):g}. Its noise would be too small."
            )
