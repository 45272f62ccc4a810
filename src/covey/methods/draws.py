"""How rows are drawn from centres: one small object per kind of record, so that a fitted synthesizer can be copied and stored.

Every draw takes the centres, the number of rows and fresh streams, and sees nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Protocol

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.draw.balanced import Kept, keep_limits, sample_bits, sample_categories, share_out
from covey.core.draw.rounding import bootstrap, one_hot, round_bits, round_categories, spread_copies
from covey.core.fit.triples import Triples
from covey.core.numbers.cells import Cells, comparison_edges, kolmogorov_bound, released_below
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.bodies import Body, ProductOfSimplices
from covey.core.tables.distance import bit_distances, category_distances
from covey.core.tables.domain import Domain
from covey.core.tables.misplaced import misplaced_bits, misplaced_rows
from covey.core.tables.moments import moments
from covey.core.tables.reals import RealGrid, distances_between
from covey.core.tables.zeros import NO_BOXES, Boxes, Zeros
from covey.entropy import Streams

Limits = list[tuple[list[int], int]]


class Draw(Protocol):
    """Draws m rows from centres."""

    def __call__(self, centres: WeightedPoints, m: int, streams: Streams) -> Array:
        """The rows."""


@dataclass(frozen=True)
class DrawBits:
    """Rows of 0 and 1 by balanced rounding; declared limits ("at most L of these columns") are kept."""

    limits: Limits

    def __call__(self, centres: WeightedPoints, m: int, streams: Streams) -> Array:
        """m rows of bits."""
        bits = sample_bits(centres, m, streams.postprocessing("rows"))
        return keep_limits(bits, self.limits, streams.postprocessing("limits")) if self.limits else bits


@dataclass(frozen=True)
class NumberCells:
    """Public: what centres over categories and cells of numbers mean.

    Their domain, the cells of numbers by attribute, ranks that swaps between rows keep (None where there are no two of numbers),
    combinations of codes that cannot occur, and triples of attributes whose tables were measured.
    """

    domain: Domain
    cells: Mapping[int, Cells] = field(default_factory=dict)
    score: Floats | None = None
    boxes: Boxes = NO_BOXES
    triples: Triples | None = None

    @property
    def kept(self) -> Kept:
        """What swaps between rows keep."""
        return Kept(self.score, self.zeros, triples=self.triples)

    @cached_property
    def zeros(self) -> Zeros | None:
        """What cannot occur, over categories and cells; cells were cut so that none lies across a side of a box."""
        sizes = enumerate(self.domain.sizes)
        first = [self.cells[j].edges[:-1] if j in self.cells else np.arange(size) for j, size in sizes]
        return self.boxes.on(self.domain, first) if self.boxes else None

    def of(self, codes: Array) -> Integers:
        """Cells of codes, a column per attribute; categories stay."""
        out = codes.astype(np.int64)
        for j, cells in self.cells.items():
            out[:, j] = cells.of(codes[:, j])
        return out


@dataclass(frozen=True)
class DrawCodes:
    """Rows of codes, or of one-hot columns: cells by systematic rounding, then numbers from their private measures in cells."""

    numbers: NumberCells
    as_one_hot: bool = False

    def __call__(self, centres: WeightedPoints, m: int, streams: Streams) -> Array:
        """m rows of codes."""
        own = self.numbers
        rows = sample_categories(centres, own.domain, m, streams.postprocessing("rows"), own.kept)
        if self.as_one_hot:
            return one_hot(rows.astype(np.int64), own.domain.sizes)
        if not own.cells:
            return rows
        rows, public = rows.astype(np.int64), streams.postprocessing("values")
        for j, cells in own.cells.items():
            rows[:, j] = cells.values(rows[:, j], public)
        return rows


def draw_of(limits: Limits, numbers: NumberCells | None) -> Draw:
    """How rows of `regain` are drawn: categories and numbers, or bits."""
    return DrawBits(limits) if numbers is None else DrawCodes(numbers)


def distances(draw: Draw | None, rows: Array, centres: WeightedPoints) -> dict[int, float]:
    """How far public rows are from the centres that `regain` draws them from, by degree: exact."""
    if isinstance(draw, DrawCodes):
        return category_distances(draw.numbers.of(rows), draw.numbers.domain.sizes, centres)
    if isinstance(draw, DrawBody):
        inside, points = (draw.grid.scaled(np.asarray(x, dtype=np.float64)) for x in (rows, centres.points))
        return distances_between(inside, points, centres.weights)
    return bit_distances(rows.astype(np.uint8), centres)


def out_of_place(draw: Draw | None, rows: Array, centres: WeightedPoints) -> float | None:
    """The share of public rows that are out of place among the centres that `regain` draws them from: exact."""
    if isinstance(draw, DrawCodes):
        return misplaced_rows(draw.numbers.of(rows), draw.numbers.domain, centres)
    return None if isinstance(draw, DrawBody) else misplaced_bits(moments(rows.astype(np.uint8)), centres)


def function_distance(draw: Draw | None, rows: Array, centres: WeightedPoints) -> float | None:
    """The largest Kolmogorov distance of public rows from the released distribution functions, or a little more: exact.

    None where there are no numbers. The triangle inequality holds for it as for shares: docs/proofs/trees.md.
    """
    if not isinstance(draw, DrawCodes) or not draw.numbers.cells:
        return None
    share, found = centres.weights @ centres.points, []
    for j, cells in draw.numbers.cells.items():
        edges = comparison_edges(cells)
        counts = np.diff(np.searchsorted(np.sort(rows[:, j]), edges))
        released = released_below(cells, share[draw.numbers.domain.block(j)], edges)
        found.append(kolmogorov_bound(counts, edges, released))
    return max(found)


def all_distances(
    draw: Draw | None, rows: Array, centres: WeightedPoints
) -> tuple[dict[int, float], float | None, float | None]:
    """How far public rows are from centres: shares by degree, rows out of place, distribution functions of numbers."""
    own = (draw, rows, centres)
    return distances(*own), out_of_place(*own), function_distance(*own)


@dataclass(frozen=True)
class DrawPoints:
    """Rows that are centres, each as often as its weight says."""

    def __call__(self, centres: WeightedPoints, m: int, streams: Streams) -> Array:
        """m centres."""
        public = streams.postprocessing("rows")
        shares = share_out(centres.weights, m, public)
        return np.asarray(centres.points[public.permutation(np.repeat(shares.order, shares.size))])


@dataclass(frozen=True)
class DrawLikeThePaper:
    """Bootstrapping (section 4.2) and independent randomized rounding (section 4.3).

    Args:
        body: None for bits, the product of simplices for categories, any other body for real rows, which are not rounded.
        rounded: whether rows of a product of simplices are rounded to categories.
        codes: whether such rows come as codes rather than one-hot columns.
    """

    body: Body | None
    rounded: bool
    codes: bool

    def __call__(self, centres: WeightedPoints, m: int, streams: Streams) -> Array:
        """m rows."""
        chosen = bootstrap(centres, m, streams.postprocessing("bootstrap"))
        rounding = streams.postprocessing("rounding")
        if self.body is None:
            return round_bits(centres.points, chosen, rounding)
        if isinstance(self.body, ProductOfSimplices) and self.rounded:
            drawn = round_categories(centres.points, chosen, self.body.sizes, rounding)
            return drawn if self.codes else one_hot(drawn, self.body.sizes)
        return np.asarray(centres.points[chosen])


def balanced(body: Body | None, rounded: bool, codes: bool) -> Draw:
    """Balanced rounding for bits and categories; averages stay as they are for numbers. Arguments as for the paper's draw."""
    if body is None:
        return DrawBits([])
    if isinstance(body, ProductOfSimplices) and rounded:
        return DrawCodes(NumberCells(Domain(body.sizes, (False,) * len(body.sizes))), as_one_hot=not codes)
    return DrawPoints()


@dataclass(frozen=True)
class DrawBody:
    """Rows of a body that are its points; of a product of simplices, where records were integers, one-hot rows.

    Args:
        body: the body.
        grid: its public grid, in whose scale rows are compared with the points.
        rounded: whether points of a product of simplices are rounded to categories.
    """

    body: Body
    grid: RealGrid
    rounded: bool

    def __call__(self, centres: WeightedPoints, m: int, streams: Streams) -> Array:
        """m rows. Where there are more rows than points, copies of a point are spread over the values around its own."""
        rows = balanced(self.body, self.rounded, codes=False)(centres, m, streams)
        if m <= len(centres) or (isinstance(self.body, ProductOfSimplices) and self.rounded):
            return rows
        return np.asarray(self.body.project(spread_copies(rows, streams.postprocessing("spread"))))
