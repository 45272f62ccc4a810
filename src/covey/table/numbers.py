"""Tables as codes at full resolution: a number's code is its place on the public grid of its field, special values first.

Fields with declared bins keep them, and are ordered categories. A field that comes after another one, or that a rule holds above
another one, is coded by its distance from that one (`core.numbers.differences`): order then holds in every row that is decoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from covey.core.arrays import Array, Integers
from covey.core.numbers.grid import Attribute, Category, NumberGrid
from covey.table.attributes import MISSING, SPECIAL, Grid
from covey.table.codec import Codec, EncodeLog
from covey.table.columns import Table
from covey.table.links import Link

if TYPE_CHECKING:
    from polars import Series


class NumberCodec:
    """Encodes tables of one schema as codes of categories and numbers, and decodes them into tables that satisfy the schema."""

    def __init__(self, codec: Codec) -> None:
        self.codec, self.names = codec, codec.names
        self.fine = {name: grid for name in codec.names if (grid := fine_grid(codec, name)) is not None}
        self.links = codec.schema.links
        self.attributes: tuple[Attribute, ...] = tuple(self._attribute(j) for j in range(len(self.names)))
        self.dtype = np.min_scalar_type(max(attribute.size for attribute in self.attributes) - 1)

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each column has; columns of two categories each are fitted as flags, numbers among them too."""
        if all(size == 2 for size in self.codec.domain_sizes):
            return self.codec.domain_sizes
        return tuple(attribute.size for attribute in self.attributes)

    def _attribute(self, j: int) -> Attribute:
        name = self.names[j]
        if name not in self.fine:
            return Category(self.codec.domain_sizes[j], j in self.codec.ordinal, self.codec.groups(name))
        grid, link = self.fine[name], self.links.get(name)
        apart = self.apart(name)
        if link is not None:
            zero = (apart + 1 - link.difference.low,) if link.difference.low <= 0 <= link.difference.high else ()
            return NumberGrid(link.difference.steps, apart + 1, zero)
        low, high = grid.axis.low, grid.axis.high
        # What lies beyond the bounds is moved to them, and 0 is a number of its own kind: these may be common.
        common = {low, high} | ({0} if low < 0 < high and grid.field.type in ("integer", "number") else set())
        return NumberGrid(high - low + 1, apart, tuple(sorted(apart + value - low for value in common)))

    def apart(self, name: str) -> int:
        """How many codes stand before a number's values: its special values, and missing unless it is required."""
        field = self.fine[name].field
        return len(field.special) + (not field.required)

    def encode(self, table: Any) -> tuple[Array, EncodeLog]:
        """Codes of a whole table, and the private log."""
        if not self.fine:
            return self.codec.encode(table)
        cells, log = self.codec.encode(table, cells=True)
        return self.codes(cells), log

    def encode_part(self, table: Table) -> tuple[Array, EncodeLog]:
        """Codes of one part of a table, in the smallest integers that hold them, and the private log."""
        if not self.fine:
            return self.codec.encode_part(table)
        cells, log = self.codec.encode_part(table, cells=True)
        return self.codes(cells), log

    def codes(self, cells: Array) -> Array:
        """Codes of cells of the encoder underneath."""
        out = np.empty(cells.shape, dtype=self.dtype, order="F")
        for j, name in enumerate(self.names):
            own = cells[:, j]
            if name not in self.fine:
                out[:, j] = self.codec.attributes[name].codes(own)
                continue
            grid, apart, link = self.fine[name], self.apart(name), self.links.get(name)
            there = grid.has_value(own)
            if link is None:
                codes = apart + own - grid.axis.low
            else:
                base, has = self._base(link, cells)
                codes = apart + link.difference.encode(base, np.where(there, own, 0), has)
            special = np.where(own == MISSING, len(grid.words), own - SPECIAL)
            out[:, j] = np.where(there, codes, special)
        return out

    def _base(self, link: Link, cells: Array) -> tuple[Integers, Array]:
        """What a number is measured from, in its own steps, and where that is there; a base of one value is not encoded."""
        if link.base not in self.names:
            own = self.codec.book.single(self.codec.attributes[link.base], len(cells))
            return own * link.times, np.ones(len(cells), dtype=bool)
        own = cells[:, self.names.index(link.base)]
        has = self.fine[link.base].has_value(own)
        return np.where(has, own, 0) * link.times, has

    def decode(self, codes: Array, generator: np.random.Generator) -> dict[str, Series]:
        """Columns of values; they satisfy the schema and all its rules."""
        if not self.fine:
            return self.codec.decode(codes.astype(np.int64), generator)
        cells = np.empty(codes.shape, dtype=np.int64)
        for name in self._in_order():
            j = self.names.index(name)
            own = codes[:, j].astype(np.int64)
            if name not in self.fine:
                cells[:, j] = self.codec.attributes[name].draw(own, generator)
                continue
            grid, apart, link = self.fine[name], self.apart(name), self.links.get(name)
            there = own >= apart
            if link is None:
                values = grid.axis.low + own - apart
            else:
                base, has = self._base(link, cells)
                values = link.difference.decode(np.where(there, own - apart, 0), base, has, generator)
            special = np.where(own < len(grid.words), SPECIAL + own, MISSING)
            cells[:, j] = np.where(there, values, special)
        return self.codec.decode_cells(cells, generator)

    def _in_order(self) -> list[str]:
        """Bases before what is linked to them."""
        order: list[str] = []
        for name in self.names:
            chain = [name]
            while chain[-1] in self.links:
                chain.append(self.links[chain[-1]].base)
            order += [link for link in reversed(chain) if link in self.names and link not in order]
        return order


def fine_grid(codec: Codec, name: str) -> Grid | None:
    """The grid of a number, date or time without declared bins."""
    attribute = codec.attributes[name]
    return attribute if isinstance(attribute, Grid) and attribute.field.bins is None else None
