"""The private accuracy certificate: bounds on the error of a release that are themselves part of the release.

What people read is one yardstick, the average total variation distance of tables of two columns: the proportion of rows that
would have to move (engine/codes/distance.py). Its twin for numbers is the distance of distribution functions. Beside it is the
paper's measure, δ_1 … δ_4. For fixed centres one replaced true row moves the yardstick by at most 1/n, and the largest of the
δ_d by at most 1/n: two numbers, which one charge buys together. Under pure ε the cube mechanism needs no more room for the two
than their larger change: a margin of 3.5/(nε), against 2.5/(nε) for one number alone and 5.1/(nε) for two separate draws.
Proof: docs/proofs/certificate.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import ceil, floor, log10
from typing import Any

import numpy as np

from covey.engine.arrays import Integers
from covey.engine.budget import Charge
from covey.engine.gate import Exact, Gate, Measured
from covey.engine.sensitivity import Sensitivity
from covey.markup import card, meter

GRID = 1024  # steps per 1/n
CONFIDENCE = Fraction(95, 100)  # with which a certificate bounds the error; the usual one
# The noise may use four of the five per cent; the fifth covers what sampling rows from the centres adds.
NOISE_MISS = 0.04
# Deviations that the noise on n passes on either side in 1 of 100 cases: of Laplace noise, fewer of Gaussian.
SIZE_QUANTILE = 3.26
# Beyond it, at ε below 10⁻¹¹ or so, the cube's noise cannot be drawn, and each number gets Laplace noise.
CUBE_SCALE = 1 << 52

# What each group of tables of persons with events is about, as a steward reads it.
THREE = "three"  # the kind of tables of three attributes of a person
WORDS = {
    "events": "the number of events",
    "person": "two attributes of a person",
    THREE: "three attributes of a person",
    "across": "an attribute of a person and one of an event",
    "event": "two attributes of one event",
    "step": "an attribute of an event and of the next",
    "two": "an attribute of two events of one person",
    "numbers": "the distribution function of a number",
}


@dataclass(frozen=True)
class OutOfPlace:
    """The yardstick as released: the share of rows out of place between the true table and the centres."""

    bound: float
    estimate: float
    columns: int = 2
    numbers: bool = False

    @property
    def sentence(self) -> str:
        """What a steward reads."""
        told = would_move(self.bound, "two-column table" if self.columns == 2 else "one-column table", "rows")
        below = " The proportion of rows below any value of a number is off by at most"
        return told + f"{below} {of_hundred(self.bound)} percentage points." * self.numbers


@dataclass(frozen=True)
class Certificate:
    """Bounds on the error of a release, measured with noise; they hold together with 95% confidence.

    `print(certificate)` says them in words. `bound[d]` bounds the root mean square error of proportions of d columns; of persons
    with events `bound[kind]` bounds the mean total variation, in a group of tables, of a draw from the model.
    """

    bound: Mapping[Any, float]
    estimate: Mapping[Any, float]
    charge: Charge
    categorical: bool
    confidence: float = float(CONFIDENCE)
    misplaced: OutOfPlace | None = None  # the yardstick; real records have none
    products: bool = False  # of real records: means of products of columns, each scaled to lie between 0 and 1
    persons: int = 0  # of the draw that persons with events were compared with; 0 for rows

    @property
    def sentence(self) -> str:
        """What a steward reads."""
        if self.persons:
            side = " The distribution functions of numbers keep the same bound." if "numbers" in self.bound else ""
            groups = "; ".join(WORDS[kind] for kind in self.bound if kind != "numbers")
            kinds = f"This holds for each kind of table: {groups}. Numbers are compared in the bins that were measured."
            return f"{would_move(max(self.bound.values()), 'table', 'persons')} {kinds}{side}"
        degrees = sorted(self.bound)
        main = 2 if 2 in self.bound else degrees[0]
        if self.products:
            of = "products of two columns" if main == 2 else "columns"
            also_one = " The same bound holds for means of single columns." if main == 2 else ""
            bound = f"a root mean square error of at most {_show(self.bound[main])}, with 95% confidence."
            return f"The means of {of}, each scaled to lie between 0 and 1, have {bound}{also_one}"
        if self.misplaced is not None:
            return self.misplaced.sentence
        return self.technical

    @property
    def technical(self) -> str:
        """The bound on the paper's measure, in words."""
        degrees = sorted(self.bound)
        main = 2 if 2 in self.bound else degrees[0]
        what = f"{main}-way {'tables, in L2 distance from 0 to 1,' if self.categorical else 'proportions'}"
        also = [str(d) for d in degrees if d != main]
        rest = f" The same bound holds for {_and(also)}-way ones." if also else ""
        return f"The root mean square error of {what} is at most {_show(self.bound[main])}, with 95% confidence.{rest}"

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        """For notebooks: the sentence, and the numbers behind it."""
        rows = []
        if (seen := self.misplaced) is not None:
            words = f"{of_hundred(seen.estimate)}% estimated with noise, ≤ {of_hundred(seen.bound)}%"
            rows.append(("Average total variation distance", [meter(seen.estimate / seen.bound), words]))
        for d in sorted(self.bound):
            words = f"{self.estimate[d]:.2g} estimated with noise, ≤ {_show(self.bound[d])}"
            share = meter(self.estimate[d] / self.bound[d])
            rows.append((WORDS[d] if self.persons else f"{d}-way", [share, words]))
        return card("Accuracy certificate", f"{self.confidence:.0%} confidence", [("In words", self.sentence), *rows])

    def for_table(self, apart: Distances) -> Distances:
        """Bounds for a synthetic table: δ(true, table) ≤ δ(true, centres) + δ(centres, table), the last exact and public.

        The same inequality holds for rows out of place and for the distribution functions of numbers.
        """
        own = self.misplaced
        bounds = {d: min(1.0, self.bound[d] + far) for d, far in apart.items() if d in self.bound}
        if own is None:
            return Distances(bounds)
        both = apart.misplaced, apart.numbers
        whole, numbers = (None if far is None else min(1.0, own.bound + far) for far in both)
        return Distances(bounds, whole, numbers if own.numbers else None)


class Distances(dict[Any, float]):
    """How far a public table is from a law, or by a certificate from the true one: by degree, or by group of tables.

    `misplaced` is the share of rows that are out of place, and `numbers` that of rows below any value of any number; None where
    nothing is said of it. They hold the table's exact distance from the centres, or from the draw that was compared: of a
    synthetic table that is public anyway. Of true rows they would be exact numbers about true data: keep them to yourself.
    """

    def __init__(
        self, by_degree: Mapping[Any, float], misplaced: float | None = None, numbers: float | None = None
    ) -> None:
        super().__init__(by_degree)
        self.misplaced, self.numbers = misplaced, numbers

    def __repr__(self) -> str:
        rows = "" if self.misplaced is None else f", average total variation ≤ {of_hundred(self.misplaced)}%"
        rows += "" if self.numbers is None else f", distribution functions within {self.numbers:.4g}"
        return f"{dict(self)}{rows} (computed without noise: share it only if the table is synthetic)"


def certify(  # distances, what they are of, and who opens them
    degrees: Sequence[int | str],
    farthest: Exact[float],
    n: int,
    gate: Gate,
    categorical: bool = False,
    yardstick: Exact[float] | None = None,
    size_sd: float = 0.0,
) -> Certificate:
    """Release the largest of the δ_d with noise, and bound all of them by it; with a yardstick, it too, for the same charge.

    `size_sd` is the deviation of the noise on n: 0 where n is public.
    """
    # In steps of 1/(1024n) each number moves by 1024, by one more through rounding, and by up to one for floating point at
    # each of the two tables (docs/proofs/certificate.md).
    sealed = [farthest] if yardstick is None else [farthest, yardstick]
    value = Exact.of(partial(_in_steps, n), *sealed)
    found = _measure(gate, value, len(sealed))
    # A noisy n may be off too: its quantile takes a fourth of what the noise may miss (docs/proofs/neighbours.md).
    miss = NOISE_MISS if not size_sd else NOISE_MISS * 3 / 4
    margin = ceil(found.sd * found.law.quantile(miss) + SIZE_QUANTILE * size_sd * GRID) + 1
    step = 1 / (n * GRID)
    estimates = [min(1.0, max(0.0, float(noisy) * step)) for noisy in found.values]
    bounds = [min(1.0, max(float(noisy) + margin, margin) * step) for noisy in found.values]
    return Certificate(
        bound=dict.fromkeys(degrees, bounds[0]),
        estimate=dict.fromkeys(degrees, estimates[0]),
        charge=found.charge,
        categorical=categorical,
        misplaced=None if yardstick is None else OutOfPlace(bounds[1], estimates[1]),
    )


def _in_steps(n: int, *distances: float) -> Integers:
    """Distances as multiples of 1/(1024n)."""
    return np.array([round(distance * n * GRID) for distance in distances], dtype=np.int64)


def _measure(gate: Gate, value: Exact[Integers], count: int) -> Measured:
    """One number, or two that each move by as much: Laplace noise for one and the cube's for two, or Gaussian noise."""
    moved = GRID + 3
    # An added row moves distances from counts over a fixed number of rows no farther (docs/proofs/neighbours.md).
    sensitivity = Sensitivity(l1=count * moved, l2_squared=count * moved**2, linf=moved, summed=False)
    sensitivity = replace(sensitivity, added=sensitivity)
    several = count > 1 and gate.budget.pure
    if several and gate.allowance("certificate").laplace_scale(moved) <= CUBE_SCALE:
        return gate.cube("certificate", value, sensitivity, count)
    return gate.measure("certificate", value, count, sensitivity)


def would_move(bound: float, table: str, counted: str) -> str:
    """A bound on the average total variation distance, in words."""
    return (
        f"In an average {table} at most {of_hundred(bound)}% of the {counted} would have to move to match the real one "
        f"(average total variation distance ≤ {_show(bound)}, with 95% confidence)."
    )


def of_hundred(share: float) -> str:
    """A percentage to two digits, rounded up."""
    return _show(100 * share, 1e-9)


def _show(value: float, slack: float = 0.0) -> str:
    """Two digits, rounded up: a bound must not shrink in print, but for what a multiplication may have added."""
    digits = max(0, 1 - floor(log10(value))) if value > 0 else 1
    return f"{ceil(value * 10**digits - slack) / 10**digits:.{digits}f}"


def _and(words: list[str]) -> str:
    return words[0] if len(words) == 1 else ", ".join(words[:-1]) + " and " + words[-1]
