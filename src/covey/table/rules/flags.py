"""At most so many flags of a row are set."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.errors import whole_number
from covey.table.document import refuse_unknown
from covey.table.domain import Cells, Condition, Mask, Rule, Zero
from covey.table.fields import Field

MOST_ZEROS = 200  # of one rule; a fit that looks at more of them is slow, and such rules are loose


@dataclass(frozen=True)
class AtMost(Rule):
    """A record sets at most `limit` of these boolean fields; a missing flag is not set."""

    word = "at_most"
    flags: tuple[str, ...]
    limit: int

    @property
    def fields(self) -> tuple[str, ...]:
        """The flags."""
        return self.flags

    @property
    def words(self) -> str:
        """The rule in plain words."""
        return f"At most {self.limit} of {', '.join(self.flags)} are true."

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {self.word: {"fields": list(self.flags), "limit": self.limit}}

    @classmethod
    def read(cls, body: Any, fields: Mapping[str, Field]) -> AtMost:
        """The rule as a file states it."""
        refuse_unknown(body, ("fields", "limit"), cls.word)
        return cls(tuple(body["fields"]), body["limit"])

    def check(self, fields: Mapping[str, Field]) -> tuple[str, ...]:
        """Flags, and a number of them."""
        whole_number(self.limit, "limit of an at_most rule", 0)
        return ("boolean",)

    def broken(self, attributes: Mapping[str, Any], cells: Mapping[str, Integers]) -> Mask:
        """Which rows set more."""
        return np.asarray(sum((cells[name] == 1).astype(np.int64) for name in self.flags) > self.limit)

    def mend(self, attributes: Mapping[str, Any], cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Keep `limit` of the set flags, chosen at random."""
        flags = np.stack([cells[name][rows] == 1 for name in self.flags], axis=1)
        keys = np.where(flags, generator.random(flags.shape), 2.0)
        surplus = flags & (keys.argsort(axis=1).argsort(axis=1) >= self.limit)
        for j, name in enumerate(self.flags):
            cells[name][rows[surplus[:, j]]] = 0

    @property
    def zeros(self) -> tuple[Zero, ...]:
        """Every choice of one flag more than may be set, where these are few."""
        size, both = self.limit + 1, Condition((True,))
        if size > len(self.flags) or comb(len(self.flags), size) > MOST_ZEROS:
            return ()
        return tuple(tuple((name, both, False) for name in some) for some in combinations(self.flags, size))
