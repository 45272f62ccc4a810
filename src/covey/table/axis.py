"""The values that a number, date or time may have, and its bins."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from itertools import pairwise

from covey.core.arrays import Integers

LARGEST = 2**53  # whole numbers up to here are exact as floats, and so are all comparisons
MOST_DECIMALS = 15  # a float holds no more digits


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


def enough_decimals(points: list[Decimal], bins: int) -> int:
    """Decimals for a thousand values in the narrowest bin, as far as that is exact; between two points lie `bins` of them."""
    width = min(b - a for a, b in pairwise(points)) / bins
    wanted = max(math.ceil(3 - math.log10(width)) if width else 0, *(-int(p.as_tuple().exponent) for p in points), 0)
    largest = max(abs(p) for p in points)
    room = math.floor(math.log10(LARGEST / largest)) if largest else MOST_DECIMALS
    return max(0, min(wanted, room, MOST_DECIMALS))
