"""Rows that meet conditions, drawn from the centres of a private bundle at no cost.

A centre is a product distribution: column by column, the probability of each category. Conditioning on a category is
therefore exact inside the centres: by Bayes' rule a centre's weight is multiplied by the probability it gives the category,
and within the centre that column becomes certain. What is drawn this way is post-processing of what was published.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from covey.engine.arrays import Array, Integers
from covey.engine.entropy import Streams
from covey.engine.models.laws import CodeLaw, RowLaw
from covey.engine.points import WeightedPoints
from covey.errors import ParameterError
from covey.tables.attributes import MISSING, SPECIAL, Grid
from covey.tables.codec import Codec
from covey.tables.columns import Table

T = TypeVar("T")
PART_ROWS = 1 << 16  # rows that are drawn and decoded at a time
PATIENCE = 50  # parts without a single row that keeps both the rules and the condition, before that is an answer
FEWEST = 1 << 12  # rows that are drawn at a time for a range, of which some will lie beyond its ends


@dataclass(frozen=True)
class Wish:
    """What is asked of one column: ranges of cells, both ends included. Labels, special values and missing are cells too."""

    attribute: int
    ranges: tuple[tuple[int, int], ...]

    def met(self, first: Integers, last: Integers) -> Array:
        """Which of some ranges of cells hold one that meets it."""
        return np.asarray(np.any([(last >= low) & (first <= high) for low, high in self.ranges], axis=0))

    def possible(self, codec: Codec, law: RowLaw) -> Array:
        """Which categories of a law's centres may hold rows that meet it."""
        first, last = _spans(codec, law, self.attribute)
        out = np.zeros(_sizes(codec, law)[self.attribute], dtype=bool)
        out[: len(first)] = self.met(first, last)
        if codec.names[self.attribute] in codec.expected:
            out[codec.domain_sizes[self.attribute] :] = True  # what is as expected may be any value
        return out


def _spans(codec: Codec, law: RowLaw, a: int) -> tuple[Integers, Integers]:
    """The first and the last cell that each category of a column holds."""
    name, cells = codec.names[a], law.cells if isinstance(law, CodeLaw) else {}
    grid = codec.attributes[name]
    empty = [] if grid.field.required else [MISSING]
    if not isinstance(grid, Grid):
        same = np.array([*range(grid.size), *empty])
        return same, same
    apart = [*(SPECIAL + k for k in range(len(grid.field.special))), *empty]
    if a not in cells:  # declared bins
        return np.append(grid.axis.starts, apart).astype(np.int64), np.append(grid.axis.ends, apart).astype(np.int64)
    edges = cells[a].edges
    first, last = (codes - len(apart) + grid.axis.low for codes in (edges[:-1], edges[1:] - 1))
    if name in codec.schema.links:  # a distance from another column says nothing of the value alone
        first, last = np.full(len(first), grid.axis.low), np.full(len(first), grid.axis.high)
    first[: len(apart)] = last[: len(apart)] = apart
    return first, last


def _sizes(codec: Codec, law: RowLaw) -> tuple[int, ...]:
    """How many categories or cells each column has; flags have one probability for both."""
    return law.domain.sizes if isinstance(law, CodeLaw) else codec.domain_sizes


def conditioned(codec: Codec, law: RowLaw, wishes: Sequence[Wish]) -> WeightedPoints:
    """The centres given that some columns lie in what may meet the wishes (Bayes' rule, centre by centre)."""
    weights, points = law.cloud.weights.copy(), law.cloud.points.copy()
    starts = np.concatenate([[0], np.cumsum(_sizes(codec, law))])
    for wish in wishes:
        a, mask = wish.attribute, wish.possible(codec, law).astype(np.float64)
        if not isinstance(law, CodeLaw):
            one, zero = mask[1] * points[:, a], mask[0] * (1 - points[:, a])
            weights *= one + zero
            points[:, a] = np.divide(one, one + zero, out=np.zeros_like(one), where=one + zero > 0)
        else:
            block = points[:, starts[a] : starts[a + 1]]
            block *= mask
            held = block.sum(axis=1, keepdims=True)
            weights *= held[:, 0]
            np.divide(block, held, out=block, where=held > 0)
    total = weights.sum()
    if not total > 0:
        raise ParameterError("the model of this bundle has no such rows, so none can be drawn.")
    kept = weights > 0
    return WeightedPoints(weights[kept] / total, points[kept])


def draw_rows(
    codec: Codec, law: RowLaw, m: int, wishes: Sequence[Wish], streams: Streams
) -> Iterator[Mapping[str, Any]]:
    """m rows as columns of values, part by part.

    A row that lies beyond the ends of a range, or that the rules of its schema move out of the condition, is drawn again.
    """
    given = replace(law, cloud=conditioned(codec, law, wishes))  # refused here, before anything is written
    least = FEWEST if any(isinstance(codec.attributes[codec.names[wish.attribute]], Grid) for wish in wishes) else 1

    def make(count: int, own: Streams) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
        drawn = given.draw(max(least, count), own).astype(np.int64)
        columns = codec.decode(drawn, own.postprocessing("decode"), codec.coding)
        return columns, columns

    parts = kept(codec, make, m, wishes, streams)
    return ({name: values.filter(keep) for name, values in columns.items()} for columns, keep, _ in parts)


def kept(
    codec: Codec,
    make: Callable[[int, Streams], tuple[T, Mapping[str, Any]]],
    m: int,
    wishes: Sequence[Wish],
    streams: Streams,
) -> Iterator[tuple[T, Array, int]]:
    """Parts that `make` draws, with their columns: each with which of its units to keep, and how many were kept before.

    Units that do not meet the wishes are passed over, until there are m that do.
    """
    done, part, idle = 0, 0, 0
    while done < m:
        drawn, columns = make(min(PART_ROWS, m - done), streams.child(f"part {part}"))
        keep = np.ones(len(next(iter(columns.values()))), dtype=bool)
        if wishes:
            cells = codec.encode(Table(columns, len(keep), "columns"), "cells")[0].T  # drawn: in plain spelling
            keep = np.all([wish.met(cells[wish.attribute], cells[wish.attribute]) for wish in wishes], axis=0)
        keep &= np.cumsum(keep) <= m - done
        part, idle = part + 1, 0 if keep.any() else idle + 1
        if idle == PATIENCE:
            raise ParameterError(
                "next to nothing that this release draws meets these conditions and the rules of its schema: none is drawn."
            )
        if keep.any():
            yield drawn, keep, done
        done += int(keep.sum())
