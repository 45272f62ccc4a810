"""The certificate of persons with events: one noisy number that bounds the mean total variation of every group of tables.

Replacing a person moves what a table holds by at most 2 in ℓ1, of n persons: its total variation distance from a fixed table by
at most 1/n, and so do means over tables and the largest of them (docs/proofs/persons.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.tables.linked import WEIGHT_STEPS, Linked, LinkedTable, event_counts, linked_table
from covey.measure.law import mean_variation
from covey.privacy.budget import Charge
from covey.privacy.certificate import CONFIDENCE, certify, of_hundred
from covey.privacy.gate import Exact, Gate

# What each group of tables is about, as a steward reads it.
WORDS = {
    "events": "the number of events",
    "person": "two attributes of a person",
    "across": "an attribute of a person and one of an event",
    "event": "two attributes of one event",
    "step": "an attribute of an event and of the next",
    "two": "an attribute of two events of one person",
}


@dataclass(frozen=True)
class LinkedCertificate:
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
        worst = of_hundred(max(self.bound.values()))
        return (
            f"Of 100 persons at most {worst} stand in the wrong cell of a typical table of any group "
            f"({'; '.join(WORDS[kind] for kind in self.bound)}; numbers in the bins that were measured), with 95% confidence."
        )

    def of(self, drawn: Linked) -> LinkedCertificate:
        """The bound for these synthetic persons, in bins: the certified one, and their exact distance from the compared draw.

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
    """Shares of a public draw in every table that a certificate compares, at the bins of the measured tables."""

    tables: tuple[LinkedTable, ...]
    shares: tuple[Floats, ...]
    counts: Floats
    sizes: tuple[tuple[int, ...], tuple[int, ...]]

    @classmethod
    def of(
        cls, drawn: Linked, tables: Sequence[LinkedTable], sizes: tuple[tuple[int, ...], tuple[int, ...]]
    ) -> Reference:
        """Of drawn persons and events in bins."""
        whole = drawn.n * WEIGHT_STEPS
        shares = tuple(linked_table(drawn, table, sizes) / whole for table in tables)
        return cls(tuple(tables), shares, event_counts(drawn) / whole, sizes)

    def distances(self, linked: Linked) -> dict[str, float]:
        """For each group of tables the mean total variation distance of persons and events, in bins, from the draw."""
        whole = linked.n * WEIGHT_STEPS
        gaps: dict[str, list[float]] = {"events": [_gap(event_counts(linked), whole, self.counts)]}
        for table, share in zip(self.tables, self.shares, strict=True):
            gaps.setdefault(table.kind, []).append(_gap(linked_table(linked, table, self.sizes), whole, share))
        return {kind: float(np.mean(found)) for kind, found in gaps.items()}

    def farthest(self, linked: Linked) -> float:
        """The largest of these distances."""
        return max(self.distances(linked).values())


def _gap(counts: Integers, whole: int, share: Floats) -> float:
    return mean_variation(counts.ravel(), share.ravel(), np.array([0, counts.size]), whole)


def certify_linked(farthest: Exact[float], reference: Reference, n: int, drawn: int, gate: Gate) -> LinkedCertificate:
    """Release the largest of the groups' distances with noise, and bound all of them by it; spends "certificate"."""
    found = certify([2], farthest, n, gate)
    kinds = dict.fromkeys(["events", *(table.kind for table in reference.tables)])
    bound = dict.fromkeys(kinds, found.bound[2])
    return LinkedCertificate(bound, found.estimate[2], found.charge, drawn, reference=reference)
