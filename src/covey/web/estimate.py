"""How long a release will still take: what was expected of its stages, corrected by how fast it has been so far."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic

TRUSTED = 0.15  # of the work, after which the machine's own pace counts and the expected one does not
MOST = 0.99  # of the bar, while it is not over


def anonymous_seconds(cells: int) -> dict[str, float]:
    """Of an anonymous release of a table with so many cells (docs/benchmarks/growth.md)."""
    return {"checking": 2.0, "reading": 0.1 + 2e-7 * cells, "measuring": 1 + 6e-7 * cells, "writing": 1 + 2e-6 * cells}


@dataclass
class TimeEstimate:
    """Expected seconds by stage, and where a release stands on that way."""

    expected: Mapping[str, float]
    begun: float = field(default_factory=monotonic)
    stage: str = ""
    share: float = 0.0  # of the stage

    def upto(self, share: float) -> float:
        """Expected seconds up to this share of the stage."""
        names = list(self.expected)
        if self.stage not in names:
            return 0.0
        return sum(self.expected[name] for name in names[: names.index(self.stage)]) + share * self.expected[self.stage]

    @property
    def done(self) -> float:
        """The part of the whole work that is done, 0 to 1."""
        return min(MOST, self.upto(self.share) / sum(self.expected.values()))

    def left(self, now: float | None = None) -> float:
        """Seconds to go. A stage that tells no share, and one that takes longer than expected, still moves."""
        whole, done = sum(self.expected.values()), self.done
        past = (monotonic() if now is None else now) - self.begun
        if done >= TRUSTED:
            return (1 - done) * whole * past / (done * whole)
        end = self.upto(1.0) or whole  # of this stage: if it is late, so will the others be
        pace = max(1.0, past / end)
        return max(whole * pace - past, (whole - end) * pace)


def duration_words(seconds: float) -> str:
    """A duration as a person says it, no finer than it is known."""
    if seconds < 5:
        return "a few seconds"
    if seconds < 55:
        return f"about {5 * round(seconds / 5)} seconds"
    if seconds < 90:
        return "about a minute"
    return f"about {round(seconds / 60)} minutes" if seconds < 5400 else f"about {seconds / 3600:.1f} hours"
