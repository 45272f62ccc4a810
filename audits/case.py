"""What an audit case is, and how it is measured."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from audits.statistics import epsilon_lower_bound
from covey.engine.arrays import Floats
from covey.engine.entropy import Streams

# A sample of statistics from the first (0) or the second (1) of two neighbouring tables.
Draw = Callable[[int, Streams, int], Floats]


@dataclass(frozen=True)
class Case:
    """A claim about two neighbouring tables: the lower bound on ε must not pass it, and must reach `floor` times it.

    `full` and `fast` are numbers of samples for each table; a case with fast = 0 runs in `make audit` only.
    """

    name: str
    pair: str
    claim: float
    draw: Draw
    full: int
    fast: int
    delta: float = 0.0
    floor: float = 0.0

    def measure(self, samples: int, seed: int) -> float:
        """The lower bound on ε."""
        streams = Streams.from_seed(seed).child(self.name)
        one, other = (self.draw(which, streams.child(str(which)), samples) for which in (0, 1))
        return epsilon_lower_bound(one, other, self.delta)
