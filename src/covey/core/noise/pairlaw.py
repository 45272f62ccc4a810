"""The noise on pair tables of categories: which law, its scale, and how to draw it on the integers or simulate it."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.noise.integers import MAX_SCALE, add_noise, matrix_laplace, resolved, to_grid
from covey.core.noise.samplers import IntegerNoise
from covey.core.noise.sensitivity import pair_table_sensitivity, simplex_radius_squared
from covey.core.tables.domain import Domain

MANY = 100  # attributes; beyond, noise is drawn for many pair tables at once


@dataclass(frozen=True)
class PairLaw:
    """A noise law for centred pair tables, in counts.

    `scale` is the variance (gaussian), the Laplace scale of each cell (laplace), or the trace scale (matrix).
    """

    kind: Literal["gaussian", "laplace", "matrix", "none"]
    domain: Domain
    scale: Fraction

    @property
    def sd(self) -> float:
        """Standard deviation of one coordinate of a pair table."""
        if self.kind == "gaussian":
            return float(np.sqrt(float(self.scale)))
        if self.kind == "laplace":
            return float(np.sqrt(2) * float(self.scale))
        return float(float(self.scale) * np.sqrt((self._dimension + 1) / 2))

    @property
    def _dimension(self) -> int:
        """Of the centred coding."""
        return int(np.sum(self.domain.counts - 1))

    @property
    def drawable(self) -> bool:
        """Whether the noise fits its sampler, c_a·c_b times as large as it is where the grid is that much finer."""
        finest = max(self.domain.sizes) ** 2
        if self.kind == "gaussian":
            return self.scale * finest**2 <= MAX_SCALE**2 // 4
        return self.scale <= MAX_SCALE if self.kind == "laplace" else resolved(self.scale * finest, self._dimension)

    def measure(self, counts: Integers, n: int, noise: IntegerNoise, generator: np.random.Generator) -> Floats:
        """Noisy centred pair tables from exact pair counts (one-way counts on the diagonal); only this leaves.

        The centred tables are multiples of 1/(c_a c_b). Their multiples M = c_a c_b N − c_a N_i − c_b N_j + n are
        integers and get c_a c_b times the noise, rounded, before they are divided again. One-hot Laplace noise goes on the
        counts themselves. What is left is centred: the uncentred part was not paid for.
        """
        d = self.domain
        if self.kind == "none":
            return np.zeros(counts.shape)
        c = d.counts[d.block_of]
        if self.kind == "laplace":
            noisy = add_noise(counts, self._on_cells(noise)).astype(np.float64)
            return d.off_blocks(d.centre(d.off_blocks(noisy)))
        one_way = np.diag(counts)
        M = c[:, None] * c * counts - c[:, None] * one_way[:, None] - c * one_way + n
        times = c[:, None] * c
        added = self._on_cells(noise) if self.kind == "gaussian" else to_grid(times * self._matrix(generator))
        return d.off_blocks(d.centre(d.off_blocks(add_noise(M, added) / times)))

    def _on_cells(self, noise: IntegerNoise) -> Integers:
        """Independent integer noise on every cell of every pair table a < b, mirrored."""
        d = self.domain
        out = np.zeros((d.total, d.total), dtype=np.int64)
        for a, ca in enumerate(d.sizes):
            for others, size in self._partners(a):
                shape = (ca, len(others))
                if self.kind == "laplace":
                    block = noise.laplace(self.scale, shape)
                else:
                    block = noise.gaussian(self.scale * (ca * size) ** 2, shape)
                out[d.block(a), others] = block
                out[others, d.block(a)] = block.T
        return out

    def _partners(self, a: int) -> list[tuple[Integers, int]]:
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
        return np.asarray(basis @ matrix_laplace(float(self.scale), basis.shape[1], generator) @ basis.T)

    def simulate(self, public: np.random.Generator) -> Floats:
        """A draw of the same law in floating point, for shrinkage: from public randomness, never from the noise's."""
        d = self.domain
        if self.kind == "matrix":
            return d.off_blocks(self._matrix(public))
        shape = (d.total, d.total)
        if self.kind == "gaussian":
            g = public.standard_normal(shape) * np.sqrt(float(self.scale))
        else:
            g = public.laplace(size=shape) * float(self.scale)
        g = np.triu(g, 1)
        return d.off_blocks(d.centre(d.off_blocks(g + g.T)))


def pair_law(domain: Domain, amount: Fraction, pure: bool) -> PairLaw:
    """The law for a domain: a function of public sizes alone.

    Pure ε: Laplace on one-hot cells (one row moves q(q−1)/2 tables by 2 in ℓ1) or matrix Laplace on Σzzᵀ (the nuclear norm
    moves by at most 2‖z‖²), whichever has the smaller standard deviation. q counts attributes with two categories or more.
    Where no law can be drawn (ε below a billionth or so) pairs are not measured at all: they would be noise alone.
    """
    nothing = PairLaw("none", domain, Fraction(0))
    live = [c for c in domain.sizes if c > 1]
    q = len(live)
    if q < 2:
        return nothing
    if not pure:
        gaussian = PairLaw("gaussian", domain, pair_table_sensitivity(domain.sizes) / (2 * amount))
        return gaussian if gaussian.drawable else nothing
    cells = PairLaw("laplace", domain, q * (q - 1) / amount)
    matrix = PairLaw("matrix", domain, 2 * simplex_radius_squared(live) / amount)
    return min((law for law in (cells, matrix) if law.drawable), key=lambda law: law.sd, default=nothing)
