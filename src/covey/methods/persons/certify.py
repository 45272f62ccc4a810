"""The certificate of persons with events: one noisy number that bounds the mean total variation of every group of tables.

Replacing a person moves what a table holds by at most 2 in ℓ1, of n persons: its total variation distance from a fixed table by
at most 1/n, and so do means over tables and the largest of them. Distribution functions of numbers, averaged by person, move by
at most 1/n at every value: so does their distance from fixed ones (docs/proofs/persons.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.core.numbers.cells import kolmogorov_bound
from covey.core.tables.events import WEIGHT_STEPS, Histories
from covey.measure.query import Query
from covey.privacy.budget import Charge
from covey.privacy.certificate import CONFIDENCE, would_move

# What each group of tables is about, as a steward reads it.
WORDS = {
    "events": "the number of events",
    "person": "two attributes of a person",
    "across": "an attribute of a person and one of an event",
    "event": "two attributes of one event",
    "step": "an attribute of an event and of the next",
    "two": "an attribute of two events of one person",
    "numbers": "the distribution function of a number",
}


@dataclass(frozen=True)
class PersonsCertificate:
    """A bound on the mean total variation, in every group of tables, of a draw from the model; with joint confidence.

    Args:
        bound: for each group the bound, one number for all.
        estimate: the noisy number itself, cut to what is possible.
        charge: what it cost.
        persons: how many persons the draw has that was compared.
        reference: that draw, where it is at hand.
    """

    bound: Mapping[str, float]
    estimate: float
    charge: Charge
    persons: int
    confidence: float = float(CONFIDENCE)
    reference: Reference | None = field(default=None, repr=False, compare=False)

    @property
    def sentence(self) -> str:
        """What a steward reads."""
        worst = max(self.bound.values())
        side = " The distribution functions of numbers keep the same bound." if "numbers" in self.bound else ""
        groups = "; ".join(WORDS[kind] for kind in self.bound if kind != "numbers")
        kinds = f"This holds for each kind of table: {groups}. Numbers are compared in the bins that were measured."
        return f"{would_move(worst, 'table', 'persons')} {kinds}{side}"

    def of(self, drawn: Histories) -> PersonsCertificate:
        """The bound for these synthetic persons: the certified one, and their exact distance from the compared draw.

        Few persons, drawn again, lie farther from the truth than the draw that was compared. As it is where that is not at hand.
        """
        if self.reference is None:
            return self
        apart = self.reference.distances(drawn)
        bound = {kind: min(1.0, known + apart[kind]) for kind, known in self.bound.items()}
        return replace(self, bound=bound, persons=drawn.n, reference=None)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class Reference:
    """A public draw, counted in every table that a certificate compares.

    Args:
        kinds: of queries: what each is about; the first is that of "events", in one cell of which everybody is.
        kernels: that count them.
        starts: where their tables begin.
        drawn: the counts of the draw, in steps, one after the other.
        n: persons of the draw.
    """

    kinds: tuple[str, ...]
    kernels: tuple[Any, ...]
    starts: tuple[Integers, ...]
    drawn: Integers
    n: int

    @classmethod
    def of(cls, drawn: Histories, groups: Mapping[str, Sequence[Query]]) -> Reference:
        """Of drawn persons and events, in queries of each kind."""
        queries = [query for own in groups.values() for query in own]
        kinds = tuple(kind for kind, own in groups.items() for _ in own)
        kernels = tuple(query.kernel() for query in queries)
        starts = tuple(query.starts for query in queries)
        return cls(kinds, kernels, starts, _counted(kernels, drawn), drawn.n)

    def distances(self, linked: Histories) -> dict[str, float]:
        """For each group of tables the mean total variation distance of persons and events from the draw.

        Of numbers the largest distance of a distribution function, or a little more.
        """
        return self._gaps(self.sums(linked))

    def sums(self, linked: Histories) -> Integers:
        """All that is compared, in steps, one after the other: a sum over persons."""
        return _counted(self.kernels, linked)

    def _gaps(self, sums: Integers) -> dict[str, float]:
        gaps: dict[str, list[float]] = {kind: [] for kind in self.kinds}
        ends = np.cumsum([own[-1] for own in self.starts])
        every, all_drawn = int(sums[: ends[0]].sum()), self.n * WEIGHT_STEPS
        parts = zip(np.split(sums, ends[:-1]), np.split(self.drawn, ends[:-1]), strict=True)
        for kind, kernel, starts, (own, drawn) in zip(self.kinds, self.kernels, self.starts, parts, strict=True):
            if kind == "numbers":
                released = np.concatenate([[0.0], np.cumsum(drawn) / all_drawn])
                gaps[kind].append(kolmogorov_bound(own, kernel.factors[0].edges, released, every))
            else:
                gaps[kind] += list(np.add.reduceat(np.abs(own / every - drawn / all_drawn), starts[:-1]) / 2)
        return {kind: float(max(own) if kind == "numbers" else np.mean(own)) for kind, own in gaps.items()}

    def farthest(self, sums: Integers) -> float:
        """The largest of these distances, from `sums`."""
        return max(self._gaps(sums).values())


def _counted(kernels: tuple[Any, ...], linked: Histories) -> Integers:
    return np.concatenate([kernel(linked).integers()[0] for kernel in kernels])
