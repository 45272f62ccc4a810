"""Unbiased shares of categories, one-way and in pairs, and the noise on combinations of them: docs/proofs/intervals.md.

Bits are attributes of two categories. A one-way table is a vector of shares that sum to 1; a pair table is a matrix over the bins
in which pairs were measured. Noise enters a combination through its slopes: `one[a]` in the one-way table of attribute a,
`two[a, b]` in the pair table of a < b. There are several combinations at once, along the first axis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.noise.pairlaw import PairLaw
from covey.errors import CannotAnswerError
from covey.methods.regain.measured import MeasuredBits

One = Mapping[int, Floats]
Two = Mapping[tuple[int, int], Floats]

TAILS = 3.0  # excess kurtosis of Laplace noise; that of the other laws is taken as 0


@dataclass(frozen=True)
class Noise:
    """Variance and fourth cumulant of the noise on each of several numbers."""

    variance: Floats
    fourth: Floats


class Evidence(Protocol):
    """What the measurements say of one-way and pair tables."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """Categories of every attribute."""

    def bins(self, a: int) -> Integers:
        """Category → bin of the pair tables."""

    def one_way(self, a: int) -> Floats:
        """Shares of the categories: unbiased, they sum to 1, and noise may make one negative."""

    def pair(self, a: int, b: int) -> Floats:
        """Shares of pairs of bins, a row for each bin of a; refused where pairs cannot be told honestly."""

    def noise(self, one: One, two: Two) -> Noise:
        """The noise on combinations with these slopes."""


NOT_MEASURED = (
    "pairs of columns were not measured in this release: their noise would have drowned them. Shares of single columns can "
    "be answered. A release with more rows, a larger ε, a positive δ or fewer columns would tell more."
)
CUT = (
    "this release cut long rows before it measured pairs, so no interval for a pair would be honest. Shares of single columns "
    "can be answered. A release of at most 20 columns, one under pure ε, or one whose schema limits how many flags a row sets "
    "(an at_most rule) cuts no rows."
)
NOT_KEPT = "pairs of more than 1,000 columns are not kept in a bundle. Shares of single columns can be answered."


@dataclass(frozen=True)
class BitEvidence:
    """Bits: means m and products q of pairs. Noise on coded means and products is uncorrelated under every plan."""

    measured: MeasuredBits

    @property
    def sizes(self) -> tuple[int, ...]:
        """Two categories each."""
        return (2,) * len(self.measured.means.values)

    def bins(self, a: int) -> Integers:
        """Nothing is merged."""
        return np.arange(2)

    def one_way(self, a: int) -> Floats:
        """Zeros and ones."""
        m = float(self.measured.means.values[a])
        return np.array([1 - m, m])

    def pair(self, a: int, b: int) -> Floats:
        """The product's mean is that of coded columns u = x − c, plus c_a·u_b + c_b·u_a + c_a·c_b."""
        m = self.measured
        if m.mechanism == "means":
            raise CannotAnswerError(NOT_MEASURED)
        if m.cut:
            raise CannotAnswerError(CUT)
        if m.moments is None:
            raise CannotAnswerError(NOT_KEPT)
        c, x = m.moments.coding.middle, m.means.values
        q = float(m.moments.pair[a, b] + c[a] * (x[b] - c[b]) + c[b] * (x[a] - c[a]) + c[a] * c[b])
        return np.array([[1 - x[a] - x[b] + q, x[b] - q], [x[a] - q, q]])

    def noise(self, one: One, two: Two) -> Noise:
        """Slopes in the tables become slopes in m and q."""
        m = self.measured
        slopes = {a: s[:, 1] - s[:, 0] for a, s in one.items()}
        variance, zero = np.zeros(combinations(one, two)), np.zeros(combinations(one, two))
        for (a, b), s in two.items():
            assert m.moments is not None  # `pair` was asked before
            both = s[:, 1, 1] - s[:, 1, 0] - s[:, 0, 1] + s[:, 0, 0]
            c = m.moments.coding.middle
            slopes[a] = slopes.get(a, zero) + s[:, 1, 0] - s[:, 0, 0] + c[b] * both
            slopes[b] = slopes.get(b, zero) + s[:, 0, 1] - s[:, 0, 0] + c[a] * both
            variance = variance + (m.moments.pair_sd * both) ** 2
        for slope in slopes.values():
            variance = variance + (m.means.sd * slope) ** 2
        return Noise(variance, zero)


def from_centred(centred: Floats, rows: Floats, columns: Floats) -> Floats:
    """A pair table from its centred part and its margins: row share/columns + column share/rows − 1/(rows·columns)."""
    margins = rows[:, None] / len(columns) + columns / len(rows) - 1 / (len(rows) * len(columns))
    return np.asarray(centred + margins)


@dataclass(frozen=True)
class CellNoise:
    """Of one coordinate of a centred pair table, as a share: variance and fourth cumulant."""

    variance: float
    fourth: float

    @classmethod
    def of(cls, law: PairLaw, n: int) -> CellNoise:
        """As a law says, with counts divided by n."""
        sd = law.sd / n
        return cls(sd**2, (TAILS if law.family == "laplace" else 0.0) * sd**4)


def pair_noise(
    cells: Callable[[int, int], CellNoise], bins: Callable[[int], Integers], one: One, two: Two
) -> tuple[dict[int, Floats], Noise]:
    """The noise of pair tables, and the slopes in one-way tables, to which the tables' margins add."""
    slopes = {a: np.asarray(s, dtype=np.float64) for a, s in one.items()}
    variance, fourth = np.zeros((2, combinations(one, two)))
    for (a, b), s in two.items():
        own_noise = cells(a, b)
        for attribute, axis in ((a, 2), (b, 1)):
            own = s.mean(axis=axis)[:, bins(attribute)]
            slopes[attribute] = slopes[attribute] + own if attribute in slopes else own
        rows = s - s.mean(axis=1, keepdims=True)
        free = rows - rows.mean(axis=2, keepdims=True)
        variance = variance + own_noise.variance * (free**2).sum(axis=(1, 2))
        fourth = fourth + own_noise.fourth * (free**4).sum(axis=(1, 2))
    return slopes, Noise(variance, fourth)


def combinations(one: One, two: Two) -> int:
    """How many combinations there are."""
    return len(next(iter([*one.values(), *two.values()])))
