"""The public grid of a number, which codes there are and the widths of the nodes of its tree; and a released measure on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

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
