"""A number that never lies below another one, measured as its distance from it: order then holds by construction.

Records are recoded one by one before anything is measured, so that what is measured of them, and its sensitivity, is as for any
other number (docs/proofs/trees.md). Chains a ≤ b ≤ c are two such pairs, decoded from the first to the last.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Integers
from covey.core.numbers.grid import FINEST
from covey.errors import ParameterError

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Difference:
    """Public: bounds of a distance end − base, and of the end itself, all in steps of one precision.

    A negative `low` allows ends below their bases. Distances beyond the bounds are moved to them, record by record. The codes of
    a distance are 0 where there is an end without a base, and 1 + distance − low elsewhere.
    """

    low: int
    high: int
    end_low: int
    end_high: int

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ParameterError(f"a difference has minimum {self.low} above maximum {self.high}. Exchange the two.")
        if max(abs(self.low), abs(self.high), abs(self.end_low), abs(self.end_high)) > FINEST:
            raise ParameterError("a difference has bounds beyond 2^53 steps. Declare fewer decimals or closer bounds.")

    @property
    def steps(self) -> int:
        """How many distances there are."""
        return self.high - self.low + 1

    def check_base(self, base_low: int, base_high: int) -> None:
        """Refuse bounds under which an end could not follow its base."""
        if base_high + self.low > self.end_high:
            raise ParameterError(
                f"a field that comes after another one has maximum {self.end_high}, and the other one reaches {base_high}: "
                "raise the later maximum, or lower the earlier one."
            )
        if base_low + self.high < self.end_low:
            raise ParameterError("a difference is too small for its end ever to reach its minimum. Raise its maximum.")

    def encode(self, base: Integers, end: Integers, has_base: Mask) -> Integers:
        """Codes of ends, each from its own record; bases and ends lie within 2^53, so that distances do not overflow."""
        distance = np.clip(end - np.where(has_base, base, 0), self.low, self.high)
        return np.where(has_base, 1 + distance - self.low, 0)

    def decode(self, codes: Integers, base: Integers, has_base: Mask, public: np.random.Generator) -> Integers:
        """Ends, inside their bounds and as far from their bases as `low` and `high` say (`check_base`: there is room).

        An end without a base, or a distance without one, takes the end of a random row that has both.
        """
        whole = has_base & (codes > 0)
        low = np.maximum(self.end_low, np.where(has_base, base, self.end_low - self.low) + self.low)
        high = np.minimum(self.end_high, np.where(has_base, base, self.end_high - self.high) + self.high)
        ends = np.where(whole, base + codes - 1 + self.low, self.end_low)
        pool = np.flatnonzero(whole)
        rest = np.flatnonzero(~whole)
        if len(pool) and len(rest):
            ends[rest] = ends[public.choice(pool, len(rest))]
        return np.asarray(np.clip(ends, low, high))
