"""The noise on pair tables of categories: its law and scale, and how to simulate it. The gate draws it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.codes.domain import Domain
from covey.engine.noise.integers import root_above
from covey.engine.noise.law import IndependentNoise, NoiseLaw
from covey.engine.noise.matrix import simulated_matrix

USELESS = 2.0**36  # no table has so many rows
MANY = 100  # attributes; beyond, noise is drawn for many pair tables at once


Places = list[tuple[slice, Integers, int]]  # of pair tables in the matrix of all: rows, columns, and cells of a table


def place_of(d: Domain, a: int, others: Sequence[int]) -> tuple[slice, Integers, int]:
    """Where the tables of an attribute with others, all of one size, are."""
    columns = np.concatenate([np.arange(*d.starts[b : b + 2]) for b in others])
    return d.block(a), columns, d.sizes[a] * d.sizes[others[0]]


@dataclass(frozen=True)
class PairLaw:
    """A noise law for centred pair tables, in counts.

    `scale` is the variance (Gaussian), the scale of each cell (Laplace), or the trace scale (matrix). Where counts are
    in steps, so many to one, the noise that is drawn is as many times larger.
    """

    family: NoiseLaw  # independent, matrix or none
    domain: Domain
    scale: Fraction
    steps: int = 1

    @property
    def sd(self) -> float:
        """Standard deviation of one coordinate of a pair table."""
        if isinstance(self.family, IndependentNoise):
            return self.family.deviation(self.scale)
        dimension = int(np.sum(self.domain.counts - 1))  # of the centred coding
        return float(float(self.scale) * np.sqrt((dimension + 1) / 2))

    @property
    def drawable(self) -> bool:
        """Whether the noise fits its sampler, c_a·c_b times as large as it is where the grid is that much finer.

        Matrix noise is drawn at any scale; beyond the rows of any table it is not worth drawing.
        """
        if isinstance(self.family, IndependentNoise):
            return self.family.drawable(self.scale, self.steps, max(self.domain.sizes) ** 2)
        return self.sd <= USELESS

    @cached_property
    def places(self) -> Places:
        """All pair tables a < b, one by one; if there are many, those of a with all attributes of a size together.

        A table with an attribute of one category says nothing that is not public or one-way: it has no place.
        """
        d, found = self.domain, Places()
        live = [a for a, size in enumerate(d.sizes) if size > 1]
        for a in live:
            after = [b for b in live if b > a]
            alike = [[b] for b in after]
            if len(d.sizes) > MANY:
                alike = [[b for b in after if d.sizes[b] == size] for size in sorted({d.sizes[b] for b in after})]
            found += [place_of(d, a, own) for own in alike]
        return found

    def simulate(self, public: np.random.Generator) -> Floats:
        """A draw of the same law in floating point, for shrinkage: from public randomness, never from the noise's."""
        d = self.domain
        if not isinstance(self.family, IndependentNoise):
            basis = d.simplex_basis()
            return d.off_blocks(basis @ simulated_matrix(float(self.scale), basis.shape[1], public) @ basis.T)
        shape = (d.total, d.total)
        g = np.triu(self.family.simulate(self.scale, shape, public), 1)
        return d.off_blocks(d.centre(d.off_blocks(g + g.T)))


# Integer coordinates of centred categories, Helmert's: h_j(x) = 1 for x < j, −j for x = j, 0 for x > j; j = 1, …, c − 1.
# In units of w_j ≥ √(j(j + 1)) they are coordinates of e_x − 1/c in an orthonormal basis, or shorter, so that ‖h/w‖² ≤ 1 − 1/c
# for every category. Sums of products of contrasts are whole numbers, which noise on the integers can be added to; the centred
# tables come back by a linear map (docs/proofs/cone.md).


def contrasts(counts: Integers, domain: Domain) -> Integers:
    """Σ h(x)·h(x)ᵀ over the records, from their pair counts: the contrasts of all attributes one after the other.

    An entry is at most n·c_a·c_b, and so is every partial sum.
    """
    return _contrasts(_contrasts(counts, domain).T, domain)


def from_contrasts(values: Floats, domain: Domain) -> Floats:
    """The centred pair tables whose contrasts these are."""
    return _spread(_spread(values, domain).T, domain)


def contrast_weights(domain: Domain) -> list[Fraction]:
    """w_j of every contrast: √(j(j + 1)), rounded up to a rational number."""
    largest = max(domain.sizes)
    roots = [root_above(Fraction(j * (j + 1))) for j in range(1, largest)]
    return [w for c in domain.sizes for w in roots[: c - 1]]


def _contrasts(values: Integers, domain: Domain) -> Integers:
    """Contrasts along the first axis: Σ_{x < j} v_x − j·v_j."""
    parts = []
    for a, c in enumerate(domain.sizes):
        own = values[domain.block(a)]
        parts.append(np.cumsum(own, axis=0)[:-1] - np.arange(1, c)[:, None] * own[1:])
    return np.concatenate(parts)


def _spread(values: Floats, domain: Domain) -> Floats:
    """Back along the first axis: Σ_j h_j(x)·v_j/(j(j + 1))."""
    parts, start = [], 0
    for c in domain.sizes:
        j = np.arange(1, c)[:, None]
        scaled = values[start : start + c - 1] / (j * (j + 1.0))
        out = np.zeros((c, values.shape[1]))
        out[:-1] = np.cumsum(scaled[::-1], axis=0)[::-1]
        out[1:] -= j * scaled
        parts.append(out)
        start += c - 1
    return np.concatenate(parts)
