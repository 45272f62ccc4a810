"""The certificate of persons with events: one noisy number that bounds the mean total variation of every group of tables.

Replacing a person moves what a table holds by at most 2 in ℓ1, of n persons: its total variation distance from a fixed table by
at most 1/n, and so do means over tables and the largest of them. Distribution functions of numbers, averaged by person, move by
at most 1/n at every value: so does their distance from fixed ones (docs/proofs/persons.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.numbers.cells import kolmogorov_bound
from covey.core.tables.events import (
    WEIGHT_STEPS,
    EventTable,
    Histories,
    event_counts,
    event_ranges,
    event_table,
    person_ranges,
)
from covey.measure.law import mean_variation
from covey.methods.persons.measure import Bins
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
class Numbers:
    """How codes become bins, and at which codes distribution functions are compared: by attribute, None for categories."""

    bins: Bins
    edges: tuple[Integers | None, ...]

    def counts(self, linked: Histories) -> list[Integers]:
        """Persons between the edges of each number, in steps; for numbers of events averaged by person."""
        found, first = [], self.bins.first
        for j, edges in enumerate(self.edges):
            if edges is not None:
                own = person_ranges(linked, j, edges) if j < first else event_ranges(linked, j - first, edges)
                found.append(own)
        return found


@dataclass(frozen=True)
class Reference:
    """Shares of a public draw in every table that a certificate compares, at the bins of the measured tables.

    With `numbers` persons and events are codes, and `functions` are the distribution functions of the draw; else they are bins.
    """

    tables: tuple[EventTable, ...]
    shares: tuple[Floats, ...]
    counts: Floats
    sizes: tuple[tuple[int, ...], tuple[int, ...]]
    numbers: Numbers | None = None
    functions: tuple[Floats, ...] = ()
    n: int = 0  # persons of the draw

    @classmethod
    def of(
        cls,
        drawn: Histories,
        tables: Sequence[EventTable],
        sizes: tuple[tuple[int, ...], tuple[int, ...]],
        numbers: Numbers | None = None,
    ) -> Reference:
        """Of drawn persons and events."""
        whole = drawn.n * WEIGHT_STEPS
        binned = drawn if numbers is None else numbers.bins(drawn)
        shares = tuple(event_table(binned, table, sizes) / whole for table in tables)
        counts = [] if numbers is None else numbers.counts(drawn)
        functions = tuple(np.concatenate([[0.0], np.cumsum(own) / whole]) for own in counts)
        return cls(tuple(tables), shares, event_counts(drawn) / whole, sizes, numbers, functions, drawn.n)

    def distances(self, linked: Histories) -> dict[str, float]:
        """For each group of tables the mean total variation distance of persons and events from the draw.

        Of numbers the largest distance of a distribution function, or a little more.
        """
        return self._gaps(self.sums(linked))

    def sums(self, linked: Histories) -> Integers:
        """All that is compared, in steps, one after the other: a sum over persons."""
        binned = linked if self.numbers is None else self.numbers.bins(linked)
        tables = [event_table(binned, table, self.sizes).ravel() for table in self.tables]
        numbers = self.numbers.counts(linked) if self.numbers is not None and self.functions else []
        return np.concatenate([event_counts(linked), *tables, *numbers])

    def _gaps(self, sums: Integers) -> dict[str, float]:
        lengths = [len(self.counts), *(share.size for share in self.shares), *(len(own) - 1 for own in self.functions)]
        counts, *rest = np.split(sums, np.cumsum(lengths)[:-1])
        whole = int(counts.sum())  # everybody has some number of events
        gaps: dict[str, list[float]] = {"events": [_gap(counts, whole, self.counts)]}
        for table, share, own in zip(self.tables, self.shares, rest, strict=False):
            gaps.setdefault(table.kind, []).append(_gap(own.reshape(share.shape), whole, share))
        found = {kind: float(np.mean(own)) for kind, own in gaps.items()}
        if self.numbers is not None and self.functions:
            edges = [own for own in self.numbers.edges if own is not None]
            each = zip(rest[len(self.shares) :], edges, self.functions, strict=True)
            found["numbers"] = max(kolmogorov_bound(*own, whole) for own in each)
        return found

    @property
    def kinds(self) -> list[str]:
        """The groups."""
        named = dict.fromkeys(["events", *(table.kind for table in self.tables)])
        return [*named, "numbers"] if self.functions else list(named)

    def farthest(self, sums: Integers) -> float:
        """The largest of these distances, from `sums`."""
        return max(self._gaps(sums).values())


def _gap(counts: Integers, whole: int, share: Floats) -> float:
    return mean_variation(counts.ravel(), share.ravel(), np.array([0, counts.size]), whole)
