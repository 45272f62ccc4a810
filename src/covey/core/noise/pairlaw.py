"""The noise on pair tables of categories: its law and scale, and how to simulate it. The gate draws it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.noise.integers import MAX_SCALE
from covey.core.noise.matrix import simulated_matrix
from covey.core.tables.domain import Domain

USELESS = 2.0**36  # no table has so many rows
MANY = 100  # attributes; beyond, noise is drawn for many pair tables at once


@dataclass(frozen=True)
class PairLaw:
    """A noise law for centred pair tables, in counts.

    `scale` is the variance (gaussian), the Laplace scale of each cell (laplace), or the trace scale (matrix). Where counts are
    in steps, so many to one, the noise that is drawn is as many times larger.
    """

    family: Literal["gaussian", "laplace", "matrix", "none"]
    domain: Domain
    scale: Fraction
    steps: int = 1

    @property
    def sd(self) -> float:
        """Standard deviation of one coordinate of a pair table."""
        if self.family == "gaussian":
            return float(np.sqrt(float(self.scale)))
        if self.family == "laplace":
            return float(np.sqrt(2) * float(self.scale))
        return float(float(self.scale) * np.sqrt((self._dimension + 1) / 2))

    @property
    def _dimension(self) -> int:
        """Of the centred coding."""
        return int(np.sum(self.domain.counts - 1))

    @property
    def drawable(self) -> bool:
        """Whether the noise fits its sampler, c_a·c_b times as large as it is where the grid is that much finer.

        Matrix noise is drawn at any scale; beyond the rows of any table it is not worth drawing.
        """
        if self.family == "gaussian":
            return self.scale * (max(self.domain.sizes) ** 2 * self.steps) ** 2 <= MAX_SCALE**2 // 4
        return self.scale * self.steps <= MAX_SCALE if self.family == "laplace" else self.sd <= USELESS

    def partners(self, a: int) -> list[tuple[Integers, int]]:
        """Categories of the attributes after a, and their number: one by one, or all of a size together if there are many."""
        d = self.domain
        rest = [(np.arange(d.total)[d.block(b)], d.sizes[b]) for b in range(a + 1, len(d.sizes))]
        if len(d.sizes) <= MANY:
            return rest
        return [
            (np.concatenate([places for places, other in rest if other == size]), size)
            for size in sorted({size for _, size in rest})
        ]

    def _matrix(self, generator: np.random.Generator) -> Floats:
        basis = self.domain.simplex_basis()
        return np.asarray(basis @ simulated_matrix(float(self.scale), basis.shape[1], generator) @ basis.T)

    def simulate(self, public: np.random.Generator) -> Floats:
        """A draw of the same law in floating point, for shrinkage: from public randomness, never from the noise's."""
        d = self.domain
        if self.family == "matrix":
            return d.off_blocks(self._matrix(public))
        shape = (d.total, d.total)
        if self.family == "gaussian":
            g = public.standard_normal(shape) * np.sqrt(float(self.scale))
        else:
            g = public.laplace(size=shape) * float(self.scale)
        g = np.triu(g, 1)
        return d.off_blocks(d.centre(d.off_blocks(g + g.T)))
