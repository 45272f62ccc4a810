"""Sums and maxima over the categories of each attribute, for arrays with a row per category: the inner loop of a fit.

`np.add.reduceat` does the same many times slower where attributes have few categories. What is added in which order is the same
here, so that fits are the same to the last bit: the first category, plus the sum of the others from left to right.
"""

from __future__ import annotations

import numpy as np

from covey.core.arrays import Array
from covey.core.tables.domain import Domain

LEFT_TO_RIGHT = 8  # numpy adds more numbers than these in another order: of more categories it is asked itself


class BlockSums:
    """Adds up, or takes the largest of, the rows of each attribute. Columns are whatever the caller has many of.

    Attributes are put in falling order of their sizes, so that those with a j-th category are the first ones for every j.
    """

    def __init__(self, domain: Domain) -> None:
        sizes, starts = np.asarray(domain.sizes), domain.starts[:-1]
        order = np.argsort(-sizes, kind="stable")
        self._rows = [starts[order[sizes[order] > j]] + j for j in range(int(sizes.max()))]
        self._long = order[sizes[order] > LEFT_TO_RIGHT]
        self._long_rows = np.concatenate([np.arange(0), *(starts[a] + np.arange(sizes[a]) for a in self._long)])
        self._long_starts = np.cumsum(sizes[self._long]) - sizes[self._long]
        self._short_rows = [rows[len(self._long) :] for rows in self._rows[:LEFT_TO_RIGHT]]
        places = np.empty(len(order), dtype=np.int64)
        places[order] = np.arange(len(order))
        self._spread = places[domain.block_of]

    def largest(self, x: Array) -> Array:
        """For every row the largest entry of its attribute, column by column."""
        out = x.take(self._rows[0], axis=0)
        for rows in self._rows[1:]:
            np.maximum(out[: len(rows)], x.take(rows, axis=0), out=out[: len(rows)])
        return out.take(self._spread, axis=0)

    def total(self, x: Array) -> Array:
        """For every row the sum over its attribute, column by column."""
        first, *others = self._short_rows
        out = x.take(first, axis=0)
        if others and len(others[0]):
            rest = x.take(others[0], axis=0)
            for rows in others[1:]:
                rest[: len(rows)] += x.take(rows, axis=0)
            out[: len(rest)] += rest
        if len(self._long):
            out = np.concatenate([np.add.reduceat(x.take(self._long_rows, axis=0), self._long_starts, axis=0), out])
        return out.take(self._spread, axis=0)

    def softmax(self, logits: Array) -> Array:
        """Shares of the categories of each attribute."""
        e = np.exp(logits - self.largest(logits))
        return np.asarray(e / self.total(e))
