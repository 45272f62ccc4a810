"""The private accuracy certificate: a bound on δ_1 … δ_4 that is itself part of the release.

For fixed centres, replacing one true row moves every δ_d by at most 1/n: each entry of the error tensor moves by at most
1/n, and a root mean square obeys the triangle inequality. Hence the largest of them, max_d δ_d, moves by at most 1/n too,
and one noisy number bounds them all. That is the cheapest mechanism: with Laplace noise its one-sided 95% margin is
2.3/(nε), against 5.1/(nε) for the vector under the cube mechanism and 9.2/(nε) for four separate draws. Proof:
docs/proofs/certificate.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, log, sqrt

import numpy as np
from scipy.special import ndtri

from covey.html import card, meter
from covey.privacy.budget import Charge
from covey.privacy.gate import Exact, Gate, Moves

GRID = 1024  # steps per 1/n
CONFIDENCE = Fraction(95, 100)  # with which a certificate bounds the error; the usual one
# The noise may use four of the five per cent; the fifth covers what sampling rows from the centres adds.
NOISE_MISS = 0.04


@dataclass(frozen=True)
class Certificate:
    """Bounds on the typical error of d-way shares of the centres, with joint confidence, by degree d."""

    bound: Mapping[int, float]
    estimate: Mapping[int, float]
    charge: Charge
    categorical: bool
    confidence: float = float(CONFIDENCE)
    numbers: bool = False  # whether the bound covers the distribution functions of single numbers as well
    products: bool = False  # of real records: means of products of columns, each scaled to lie between 0 and 1

    @property
    def sentence(self) -> str:
        """What a steward reads."""
        degrees = sorted(self.bound)
        main = 2 if 2 in self.bound else degrees[0]
        if self.products:
            of = "a product of two columns" if main == 2 else "a column"
            also_one = ", and so is that of a single column" if main == 2 else ""
            bound = f"within {_show(self.bound[main])} of the truth"
            return f"The typical mean of {of}, each between 0 and 1, is {bound}, with 95% confidence{also_one}."
        what = f"typical {main}-way {'table' if self.categorical else 'share'}"
        also = [str(d) for d in degrees if d != main]
        holds = [f"{_and(also)}-way ones"] if also else []
        holds += ["the share of rows below any value of a number"] if self.numbers else []
        rest = f"; the same bound holds for {' and for '.join(holds)}" if holds else ""
        measure = " (in L2 distance, from 0 to 1)" if self.categorical else ""
        return f"The {what} is within {_show(self.bound[main])} of the truth{measure}, with 95% confidence{rest}."

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, and the numbers behind it."""
        rows = [
            (
                f"{d}-way",
                [
                    meter(self.estimate[d] / self.bound[d]),
                    f"{self.estimate[d]:.2g} estimated with noise, ≤ {_show(self.bound[d])}",
                ],
            )
            for d in sorted(self.bound)
        ]
        return card("Accuracy certificate", f"{self.confidence:.0%} confidence", [("In words", self.sentence), *rows])

    def for_table(self, distance_to_centres: Mapping[int, float]) -> TableBounds:
        """Bounds for a synthetic table: δ(true, table) ≤ δ(true, centres) + δ(centres, table), the last exact and public."""
        return TableBounds(
            {d: min(1.0, self.bound[d] + distance_to_centres[d]) for d in self.bound if d in distance_to_centres}
        )


class TableBounds(dict[int, float]):
    """95% bounds by degree for one table, which must be public: they hold the table's exact distance from the centres.

    Of a synthetic table that is public anyway. Of true rows it would be an exact number about true data: keep it to yourself.
    """

    def __repr__(self) -> str:
        return f"{dict(self)} (exact in the table it was computed on: share it only if that table is synthetic)"


def certify(
    degrees: Sequence[int],
    farthest: Exact[float],
    n: int,
    gate: Gate,
    categorical: bool = False,
    numbers: bool = False,
) -> Certificate:
    """Release the largest of the δ_d with noise, and bound all of them by it.

    With `numbers` the Kolmogorov distances of single numbers are among them: they move by at most 1/n too.
    """
    # In steps of 1/(1024n) the maximum moves by 1024, by one more through rounding, and by up to one for floating point
    # at each of the two tables (docs/proofs/certificate.md).
    sensitivity = GRID + 3
    value = farthest.map(lambda distance: np.array([round(distance * n * GRID)], dtype=np.int64))
    found = gate.measure("certificate", value, 1, Moves(l1=sensitivity, l2_squared=sensitivity**2, summed=False))
    # The quantile of the noise that is passed with probability NOISE_MISS, in standard deviations.
    quantile = log(1 / (2 * NOISE_MISS)) / sqrt(2) if found.law == "laplace" else -float(ndtri(NOISE_MISS))
    margin = ceil(found.sd * quantile) + 1
    step = 1 / (n * GRID)
    noisy = float(found.values[0])
    estimate = min(1.0, max(0.0, noisy * step))
    bound = min(1.0, max(noisy + margin, margin) * step)
    return Certificate(
        bound=dict.fromkeys(sorted(degrees), bound),
        estimate=dict.fromkeys(sorted(degrees), estimate),
        charge=found.charge,
        categorical=categorical,
        numbers=numbers,
    )


def _show(value: float) -> str:
    """Two digits, rounded up: a bound must not shrink in print."""
    digits = max(0, 1 - int(np.floor(np.log10(value))))
    return f"{ceil(value * 10**digits) / 10**digits:.{digits}f}"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
