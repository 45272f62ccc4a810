"""What is to be computed on units, described and not computed: a model describes, and the driver computes behind a seal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.engine.arrays import Array
from covey.engine.codes.counts import part
from covey.engine.codes.distance import largest
from covey.engine.query import Query
from covey.engine.units.rows import then

Kernel = Callable[[Any], Any]  # from a batch of units to a sum that can be added to others of its kind


@dataclass(frozen=True, eq=False)
class Statistic:
    """Sums of kernels over batches of units, and pure functions of these.

    Attributes:
        function: a kernel, or a function of other statistics.
        inputs: these other statistics; none for a kernel.
        arguments: what the function is given besides.
        all_at_once: whether a kernel wants all units at once, and not batch by batch.
        cached: whether a kernel's sum is kept for later asks, so that units are passed through once.
    """

    function: Callable[..., Any]
    inputs: tuple[Statistic, ...] = ()
    arguments: tuple[Any, ...] = ()
    all_at_once: bool = False
    cached: bool = False

    @classmethod
    def sum(cls, kernel: Kernel, step: Callable[[Any], Any] | None = None, cached: bool = False) -> Statistic:
        """A sum over units, after a step on each of them."""
        return cls(then(step, kernel), cached=cached)

    @classmethod
    def tables(cls, query: Query) -> Statistic:
        """The tables of a query, one after the other. Their noise rests on `Query.sensitivity`."""
        return cls.sum(query.kernel()).map(part)

    def map(self, function: Callable[..., Any], *arguments: Any) -> Statistic:
        """A pure function of it."""
        return Statistic(function, (self,), arguments)


def entries(matrix: Array, *places: Any) -> Array:
    """A part of a matrix."""
    return np.asarray(matrix[places])


def largest_of(distances: Sequence[Statistic]) -> Statistic:
    """The largest of several distances."""
    if len(distances) == 1:
        return distances[0].map(largest)
    return Statistic(largest, tuple(distances))
