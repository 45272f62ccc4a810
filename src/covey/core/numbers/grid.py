"""The public grid of a number, which codes there are and the widths of the nodes of its tree; and a released measure on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Floats, Integers
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
