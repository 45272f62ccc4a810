"""Categorical attributes side by side: a public domain, and algebra on matrices made of attribute blocks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Floats, Integers


@dataclass(frozen=True)
class Domain:
    """Public: the number of categories of every attribute, and which attributes are ordered."""

    sizes: tuple[int, ...]
    ordered: tuple[bool, ...]

    @cached_property
    def counts(self) -> Integers:
        """The sizes as an array."""
        return np.array(self.sizes, dtype=np.int64)

    @cached_property
    def starts(self) -> Integers:
        """First coordinate of each attribute's block, and the total at the end."""
        return np.concatenate([[0], np.cumsum(self.counts)])

    @cached_property
    def block_of(self) -> Integers:
        """Attribute of each coordinate."""
        return np.repeat(np.arange(len(self.sizes)), self.counts)

    @property
    def total(self) -> int:
        """D, the number of categories of all attributes."""
        return int(self.starts[-1])

    def block(self, a: int) -> slice:
        """The coordinates of attribute a."""
        return slice(int(self.starts[a]), int(self.starts[a + 1]))

    @cached_property
    def same_block(self) -> NDArray[np.bool_]:
        """Where two coordinates belong to one attribute."""
        return np.asarray(self.block_of[:, None] == self.block_of[None])

    @cached_property
    def inside_blocks(self) -> tuple[Integers, Integers]:
        """Rows and columns of the entries of all diagonal blocks."""
        own = [np.arange(a, b) for a, b in pairwise(self.starts)]
        rows, columns = ([np.repeat(x, len(x)) for x in own], [np.tile(x, len(x)) for x in own])
        return np.concatenate(rows), np.concatenate(columns)

    def off_blocks(self, matrix: Floats) -> Floats:
        """The matrix with zeros in its diagonal blocks: an attribute paired with itself is never measured."""
        return np.where(self.same_block, 0.0, matrix)

    def sum_blocks(self, matrix: Floats) -> Floats:
        """Sums over blocks."""
        s = self.starts[:-1]
        return np.asarray(np.add.reduceat(np.add.reduceat(matrix, s, axis=0), s, axis=1))

    def spread(self, values: Floats) -> Floats:
        """One value per pair of attributes, repeated over its block."""
        return np.asarray(values[self.block_of[:, None], self.block_of[None]])

    def centre(self, matrix: Floats) -> Floats:
        """Subtract row and column means inside each block: the projection to the centred coding."""
        s, b, c = self.starts[:-1], self.block_of, self.counts
        matrix = matrix - (np.add.reduceat(matrix, s, axis=0) / c[:, None])[b]
        return np.asarray(matrix - (np.add.reduceat(matrix, s, axis=1) / c)[:, b])

    def simplex_basis(self) -> Floats:
        """Orthonormal basis of the centred coding, D × Σ(c − 1): Helmert's columns for each block."""
        out = np.zeros((self.total, int(np.sum(self.counts - 1))))
        column = 0
        for start, c in zip(self.starts[:-1], self.sizes, strict=True):
            for j in range(1, c):
                out[start : start + j, column] = 1 / np.sqrt(j * (j + 1))
                out[start + j, column] = -j / np.sqrt(j * (j + 1))
                column += 1
        return out
