"""The public grid of a number, which codes there are and the widths of the nodes of its tree; and a released measure on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covey.engine.arrays import Array, Floats, Integers, counted
from covey.engine.codes.domain import by_run, merge_nominal, merge_ordered
from covey.errors import ParameterError

BRANCHING = 16  # at most; pure ε needs wide trees, under zCDP the width matters little
FINEST = 2**53  # steps; beyond, floats between the bounds are not apart


@dataclass(frozen=True)
class NumberGrid:
    """Public: codes 0 … specials − 1 have no place among the values (missing, "not applicable"), then come `steps` values.

    A code beyond the specials is the value's distance from the lower bound, in steps of the column's precision. `atoms` are
    codes of values that are declared to be common, such as 0 or a top code: these and the specials are measured by themselves in
    every round.
    """

    steps: int
    specials: int = 0
    atoms: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.steps < 1:
            raise ParameterError("a number needs bounds with minimum below or equal to maximum: its grid has no value.")
        if self.steps > FINEST:
            raise ParameterError(
                f"a number with {self.steps} steps between its bounds is too fine: 2^53 is the most. "
                "Declare narrower bounds or a coarser precision."
            )
        if self.specials < 0:
            raise ParameterError(f"a number cannot have {self.specials} special codes.")
        if any(not self.specials <= code < self.size for code in self.atoms):
            raise ParameterError(
                "a declared common value lies outside the bounds of its number. Widen them or drop it."
            )

    @property
    def size(self) -> int:
        """The number of codes."""
        return self.specials + self.steps

    @cached_property
    def single(self) -> Integers:
        """The codes that are measured by themselves in every round, in order."""
        return np.unique(np.array([*range(self.specials), *self.atoms], dtype=np.int64))

    @cached_property
    def widths(self) -> tuple[int, ...]:
        """Widths of the tree's nodes by level, 1 at the last: as few levels as BRANCHING allows, then as few children."""
        depth = 1
        while BRANCHING**depth < self.steps:
            depth += 1
        branching = 1
        while branching**depth < self.steps:
            branching += 1
        return tuple(branching ** (depth - 1 - level) for level in range(depth))

    @property
    def rounds(self) -> int:
        """How often the tree is measured: once per level. Each round is a partition of all codes."""
        return len(self.widths)


@dataclass(frozen=True)
class Category:
    """Public: an attribute with so many categories, and the group of each where they are in groups."""

    size: int
    ordered: bool = False
    groups: tuple[int, ...] = ()


Attribute = Category | NumberGrid


def grids(attributes: Sequence[Attribute]) -> dict[int, NumberGrid]:
    """The numbers among attributes, by place."""
    return {j: a for j, a in enumerate(attributes) if isinstance(a, NumberGrid)}


@dataclass(frozen=True)
class Measure:
    """Shares of ranges [start, stop) of codes, in order; they sum to 1. Private: it was made of noisy counts."""

    grid: NumberGrid
    start: Integers
    stop: Integers
    share: Floats

    def below(self, codes: Integers) -> Floats:
        """The share of codes below each of these: a distribution function, linear inside ranges."""
        edge = np.concatenate([[0.0], np.cumsum(self.share)])
        at = np.clip(np.searchsorted(self.start, codes, side="right") - 1, 0, len(self.start) - 1)
        inside = np.clip((codes - self.start[at]) / (self.stop[at] - self.start[at]), 0.0, 1.0)
        return np.asarray(edge[at] + self.share[at] * inside)

    def mass(self, edges: Integers) -> Floats:
        """Shares between consecutive edges."""
        return np.asarray(np.diff(self.below(edges)))

    def at(self, level: Floats, low: Integers, high: Integers) -> Integers:
        """The codes at which the distribution function passes these levels, kept inside [low, high)."""
        edge = np.concatenate([[0.0], np.cumsum(self.share)])
        i = np.clip(np.searchsorted(edge, level, side="right") - 1, 0, len(self.start) - 1)
        inside = (level - edge[i]) / np.maximum(self.share[i], 1e-300) * (self.stop[i] - self.start[i])
        codes = self.start[i] + np.floor(np.clip(inside, 0, self.stop[i] - self.start[i] - 1)).astype(np.int64)
        return np.asarray(np.clip(codes, low, high - 1))

    def quantile(self, level: float) -> int:
        """The range in which the values' distribution function passes a level, by its start; specials do not count."""
        values = np.flatnonzero(self.start >= self.grid.specials)
        if not len(values):
            return self.grid.specials
        running = np.cumsum(self.share[values])
        return int(self.start[values[np.searchsorted(running[:-1], level * running[-1])]])


Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Difference:
    """Public: a number that never lies below another one, by its distance from it: order then holds by construction.

    Bounds of the distance end − base, and of the end itself, are in steps of one precision. Records are recoded one by one before
    anything is measured, so that its sensitivity is as for any other number (docs/proofs/trees.md). Chains a ≤ b ≤ c are two such
    pairs, decoded from the first to the last.

    A negative `low` allows ends below their bases. Distances beyond the bounds are moved to them, record by record. The codes of
    a distance are 0 where there is an end without a base, and 1 + distance − low elsewhere.
    """

    low: int
    high: int
    end_low: int
    end_high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ParameterError(f"a difference has minimum {self.low} above maximum {self.high}. Exchange the two.")
        if max(abs(self.low), abs(self.high), abs(self.end_low), abs(self.end_high)) > FINEST:
            raise ParameterError("a difference has bounds beyond 2^53 steps. Declare fewer decimals or closer bounds.")

    @property
    def steps(self) -> int:
        """How many distances there are."""
        return self.high - self.low + 1

    def check_base(self, base_low: int, base_high: int) -> None:
        """Refuse bounds under which an end could not follow its base."""
        if base_high + self.low > self.end_high:
            raise ParameterError(
                f"a field that comes after another one has maximum {self.end_high}, and the other one reaches {base_high}: "
                "raise the later maximum, or lower the earlier one."
            )
        if base_low + self.high < self.end_low:
            raise ParameterError("a difference is too small for its end ever to reach its minimum. Raise its maximum.")

    def encode(self, base: Integers, end: Integers, has_base: Mask) -> Integers:
        """Codes of ends, each from its own record; bases and ends lie within 2^53, so that distances do not overflow."""
        distance = np.clip(end - np.where(has_base, base, 0), self.low, self.high)
        return np.where(has_base, 1 + distance - self.low, 0)

    def decode(self, codes: Integers, base: Integers, has_base: Mask, public: np.random.Generator) -> Integers:
        """Ends, inside their bounds and as far from their bases as `low` and `high` say (`check_base`: there is room).

        An end without a base, or a distance without one, takes the end of a random row that has both.
        """
        whole = has_base & (codes > 0)
        low = np.maximum(self.end_low, np.where(has_base, base, self.end_low - self.low) + self.low)
        high = np.minimum(self.end_high, np.where(has_base, base, self.end_high - self.high) + self.high)
        ends = np.where(whole, base + codes - 1 + self.low, self.end_low)
        pool = np.flatnonzero(whole)
        rest = np.flatnonzero(~whole)
        if len(pool) and len(rest):
            ends[rest] = ends[public.choice(pool, len(rest))]
        return np.asarray(np.clip(ends, low, high))


# Cells of a number, of about equal private mass, and bins of cells for pair tables: post-processing of the private measure.
# Special codes and heavy single values have cells of their own; no cell and no bin crosses a boundary that a rule uses, so that
# a rule about codes is a rule about cells and about bins.

CELLS = 48  # more hardly change a rank, and make the pair tables that rows are swapped toward sparse
LIGHT = 1 / 16  # of a bin's mass: what is lighter has no bin of its own
HEAVY = 0.5 / CELLS  # a single value with such a share has a cell of its own
# Besides special codes: at most 2·CELLS heavy values, a run of cells after each, and CELLS/1.5 full cells.
MOST_BINS = 256


@dataclass(frozen=True)
class Cells:
    """A number's codes in runs: cell i is [edges[i], edges[i + 1]), with its share of the private measure."""

    measure: Measure
    edges: Integers
    share: Floats

    @property
    def alone(self) -> Array:
        """Cells of a single code: special ones, heavy values, short grids."""
        return np.asarray(np.diff(self.edges) == 1)

    def of(self, codes: Integers) -> Integers:
        """The cell of each code."""
        return np.searchsorted(self.edges, codes, side="right") - 1

    def values(self, cells: Integers, public: np.random.Generator) -> Integers:
        """Codes drawn systematically from the measure inside each cell; the nearest to any mass where the cell has none."""
        order = np.argsort(cells + public.random(len(cells)))  # those of a cell together, in random order
        own = cells[order]
        count = np.bincount(own, minlength=len(self.share))
        u = (counted(count) + public.random(len(self.share))[own]) / count[own]
        low, high = self.edges[own], self.edges[own + 1]
        below = self.measure.below(self.edges)
        codes = self.measure.at(below[own] + u * np.diff(below)[own], low, high)
        out = np.empty(len(cells), dtype=np.int64)
        out[order] = np.where(self.share[own] > 0, codes, self.nearest[own])
        return out

    @cached_property
    def nearest(self) -> Integers:
        """The end of each cell that looks towards the mass: its first code, or its last if all values with mass lie above.

        It is drawn where a rule leads to a cell without mass: evenly drawn, a wide cell would reach the public maximum.
        """
        low, high = self.edges[:-1], self.edges[1:]
        values = self.measure.start[self.measure.start >= self.measure.grid.specials]
        return np.where(high <= (values[0] if len(values) else 0), high - 1, low)


def make_cells(measure: Measure, cuts: Sequence[int] = ()) -> Cells:
    """About CELLS cells; `cuts` are codes at which a rule changes its mind."""
    grid = measure.grid
    fixed = np.unique(np.concatenate([grid.single, grid.single + 1, np.asarray(cuts, dtype=np.int64), [0, grid.size]]))
    fixed = fixed[(fixed >= 0) & (fixed <= grid.size)]
    # Ranges of the measure, heavy ones cut into even pieces of at most a cell's mass.
    pieces = even_pieces(measure.start, measure.stop - measure.start, measure.share * CELLS)
    edges = np.unique(np.concatenate([fixed, pieces, measure.stop]))
    mass, width = measure.mass(edges), np.diff(edges)
    ends = np.isin(edges, fixed)
    alone = (width == 1) & (mass > HEAVY)
    first, held = [0], float(mass[0])
    for i in range(1, len(mass)):
        if ends[i] or alone[i] or alone[i - 1] or held + mass[i] > 1.5 / CELLS:
            first.append(i)
            held = 0.0
        held += float(mass[i])
    return Cells(measure, edges[[*first, len(mass)]], np.add.reduceat(mass, first))


def even_pieces(start: Integers, width: Integers, least: Floats) -> Integers:
    """Starts of even pieces of each range: at least so many, where it has as many codes."""
    count = np.clip(np.ceil(least).astype(np.int64), 1, width)
    return np.asarray(np.repeat(start, count) + counted(count) * np.repeat(width // count, count))


def cell_bins(cells: Cells, mass: float, cuts: Sequence[int] = ()) -> Integers:
    """Cell → bin: neighbours merged up to about a mass, inside runs that rules and special codes leave."""
    special = cells.edges[:-1] < cells.measure.grid.specials
    single = special | (cells.alone & (cells.share > mass / 2))
    ends = np.isin(cells.edges[1:-1], np.asarray(cuts, dtype=np.int64))
    run = np.cumsum(np.concatenate([[False], ends | single[1:] | single[:-1]]))
    bins = by_run(run, lambda own: merge_ordered(cells.share[own], mass))
    return without_light(bins, cells.share, LIGHT * mass, np.concatenate([[True], ends | special[1:] | special[:-1]]))


def without_light(bins: Integers, share: Floats, least: float, walls: Array) -> Integers:
    """Bins below a mass join their neighbours, the one before first; `walls` says before which cells nothing is joined.

    A tail that is too light for pair tables is measured together with what it is the tail of, and taken apart by the one-way
    measure: by itself a fit would give it what noise says.
    """
    first = np.flatnonzero(np.diff(bins, prepend=-1))
    mass = np.add.reduceat(share, first)
    begins, held = np.ones(len(first), dtype=bool), float(mass[0])
    for k in range(1, len(first)):
        begins[k] = walls[first[k]] or min(held, mass[k]) >= least
        held = float(mass[k]) if begins[k] else held + float(mass[k])
    return bins if begins.sum() == 1 else np.asarray((np.cumsum(begins) - 1)[bins])  # never down to a single bin


def category_bins(share: Floats, ordered: bool, mass: float, cut: float, most: int, signature: Integers) -> Integers:
    """Category → bin, among categories that rules treat alike (equal signatures).

    Ordered ones go into bins of about a mass, rare nominal ones into one.
    """
    if len(share) <= 2:
        return np.arange(len(share))
    if ordered:
        run = np.cumsum(np.concatenate([[False], np.diff(signature) != 0]))
        return by_run(run, lambda own: merge_ordered(share[own], mass))
    return by_run(signature, lambda own: merge_nominal(share[own], cut, most))


# The certificate asks how far a number's released distribution function is from the records': for fixed released shares the
# Kolmogorov distance moves by at most 1/n when one record is replaced (docs/proofs/trees.md).

FINE = 1024  # ranges of at most this part of the mass are told apart


def released_below(cells: Cells, share: Floats, codes: Integers) -> Floats:
    """The released distribution function: shares of cells as given, and inside cells the private measure, as rows are drawn."""
    inside = cells.measure.below(cells.edges)
    at = np.clip(np.searchsorted(cells.edges, codes, side="right") - 1, 0, len(share) - 1)
    mass = inside[at + 1] - inside[at]
    step = codes > cells.nearest[at]
    part = np.where(mass > 0, (cells.measure.below(codes) - inside[at]) / np.where(mass > 0, mass, 1.0), step)
    start = np.concatenate([[0.0], np.cumsum(share)])[at]
    return np.asarray(start + share[at] * np.clip(part, 0.0, 1.0))


def comparison_edges(cells: Cells) -> Integers:
    """Public ranges at which records are counted: those of cells and measure, the heavy ones cut into even pieces."""
    edges = np.unique(np.concatenate([cells.edges, cells.measure.start, cells.measure.stop]))
    return np.append(even_pieces(edges[:-1], np.diff(edges), cells.measure.mass(edges) * FINE), edges[-1])


def kolmogorov_bound(counts: Integers, edges: Integers, released: Floats, whole: int | None = None) -> float:
    """At least the sup distance between records, counted between these edges, and the released function at the edges.

    Inside a range both functions rise, so they differ by no more than the one's end and the other's start do. Ranges of a
    single code have no inside: with those alone the bound is the distance itself. The records are parts of `whole`, if that is
    not their sum.
    """
    true = np.concatenate([[0], np.cumsum(counts)]) / (counts.sum() if whole is None else whole)
    wide = np.diff(edges) > 1
    inside = np.maximum(true[1:] - released[:-1], released[1:] - true[:-1])[wide]
    return float(max(np.abs(true - released).max(), inside.max(initial=0.0)))
