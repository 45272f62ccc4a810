"""Rows that meet conditions, drawn from the centres of a private bundle at no cost.

A centre is a product distribution: column by column, the probability of each category. Conditioning on a category is
therefore exact inside the centres: by Bayes' rule a centre's weight is multiplied by the probability it gives the category,
and within the centre that column becomes certain. What is drawn this way is post-processing of what was published.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.paper.blocks import WeightedPoints
from covey.entropy import Streams
from covey.errors import ParameterError
from covey.methods.laws import BitLaw, CodeLaw, RowLaw
from covey.table.attributes import MISSING as MISSING_CELL
from covey.table.attributes import SPECIAL, Grid
from covey.table.codec import Codec

PART_ROWS = 1 << 16  # rows that are drawn and decoded at a time
PATIENCE = 50  # parts without a single row that keeps both the rules and the condition, before that is an answer
FEWEST = 1 << 12  # rows that are drawn at a time for a range, of which some will lie beyond its ends


@dataclass(frozen=True)
class Wish:
    """What is asked of one column: labels by their codes; numbers by ranges of steps and special values by their places."""

    attribute: int
    codes: tuple[int, ...] = ()
    ranges: tuple[tuple[int, int], ...] = ()
    specials: tuple[int, ...] = ()
    missing: bool = False

    def met(self, codec: Codec, cells: Integers) -> Array:
        """Which cells of decoded rows meet it."""
        grid = codec.attributes[codec.names[self.attribute]]
        if not isinstance(grid, Grid):
            return np.isin(grid.codes(cells), self._labels(codec))
        apart = [SPECIAL + k for k in self.specials] + [MISSING_CELL] * self.missing
        found = np.isin(cells, apart)
        for first, last in self.ranges:
            found |= grid.has_value(cells) & (cells >= first) & (cells <= last)
        return found

    def possible(self, codec: Codec, law: RowLaw) -> Array:
        """Which categories of a law's centres may hold rows that meet it."""
        a, cells = self.attribute, law.cells if isinstance(law, CodeLaw) else {}
        name, grid = codec.names[a], codec.attributes[codec.names[a]]
        out = np.zeros(_sizes(codec, law)[a], dtype=bool)
        if not isinstance(grid, Grid):
            out[self._labels(codec)] = True
        elif a not in cells:  # declared bins, special values, missing
            for first, last in self.ranges:
                out[: grid.bins] |= (grid.axis.ends >= first) & (grid.axis.starts <= last)
            out[[grid.bins + k for k in self.specials] + [codec.domain_sizes[a] - 1] * self.missing] = True
        else:
            edges, words = cells[a].edges, len(grid.field.special)
            out[[*self.specials] + [words] * self.missing] = True
            apart = words + (not grid.field.required)
            if self.ranges and name in codec.schema.links:
                out[apart:] = True  # a distance from another column says nothing of the value alone
            else:
                for first, last in self.ranges:
                    low, high = (apart + step - grid.axis.low for step in (first, last))
                    out |= (edges[1:] > max(low, apart)) & (edges[:-1] <= high)
        if name in codec.expected:
            out[codec.domain_sizes[a] :] = True  # what is as expected may be any value
        return out

    def _labels(self, codec: Codec) -> list[int]:
        return [*self.codes] + [codec.domain_sizes[self.attribute] - 1] * self.missing


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
    cloud = conditioned(codec, law, wishes)  # refused here, before anything is written
    given = replace(law, cloud=cloud) if isinstance(law, CodeLaw) else BitLaw(cloud, codec.limits)
    return _parts(codec, given, m, wishes, streams)


def _parts(codec: Codec, law: RowLaw, m: int, wishes: Sequence[Wish], streams: Streams) -> Iterator[Mapping[str, Any]]:
    """Parts of drawn rows, until m of them meet the wishes."""
    left, part, idle = m, 0, 0
    least = FEWEST if any(wish.ranges for wish in wishes) else 1
    while left:
        own, count = streams.child(f"part {part}"), max(least, min(PART_ROWS, left))
        drawn = law.draw(count, own).astype(np.int64)
        columns: Mapping[str, Any] = codec.decode(drawn, own.postprocessing("decode"), codec.coding)
        keep = np.ones(count, dtype=bool)
        if wishes:
            cells, _ = codec.encode(columns, "cells")
            keep = np.all([wish.met(codec, cells[:, wish.attribute]) for wish in wishes], axis=0)
            keep &= np.cumsum(keep) <= left
            columns = {name: values.filter(keep) for name, values in columns.items()}
        part, left, idle = part + 1, left - int(keep.sum()), 0 if keep.any() else idle + 1
        if idle == PATIENCE:
            raise ParameterError(
                "the rules of the schema exclude such rows, or hardly any row has values in the range, so none can be drawn."
            )
        if keep.any():
            yield columns
