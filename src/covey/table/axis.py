"""The values that a number, date or time may have, and its bins."""

from __future__ import annotations

from dataclasses import dataclass

from covey.core.arrays import Integers


@dataclass(frozen=True)
class Axis:
    """Bins on the whole multiples of 10^-decimals (days for dates, seconds for times): bin b is starts[b], …, ends[b]."""

    starts: Integers
    ends: Integers
    decimals: int

    @property
    def low(self) -> int:
        """The least multiple."""
        return int(self.starts[0])

    @property
    def high(self) -> int:
        """The largest multiple."""
        return int(self.ends[-1])
