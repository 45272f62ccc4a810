"""Persons with their events, as codes, and the exact person-averaged tables of them. Private until noise meets them.

Every table is a sum over persons of what one person adds: a distribution over its cells, in whole steps of 2^-20 that are rounded
down, so that a person adds non-negative steps which sum to 2^20 at most. That is all its sensitivity rests on, whatever the
number of events is (docs/proofs/persons.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from covey.engine.arrays import Array, Integers, counted

WEIGHT_BITS = 20  # of a person's weight: fine against a row, and sums of two million persons stay exact
WEIGHT_STEPS = 1 << WEIGHT_BITS  # what one person weighs, whether alone (`engines.persons`) or with a table of events
# Where bins of the number of events begin: each of the first few numbers, then ranges that grow by a half or so.
BIN_STARTS = (0, 1, 2, 3, 4, 5, 7, 10, 15, 21, 31)


def count_bins(most: int) -> Integers:
    """Where the public bins of the number of events begin, for persons with at most so many."""
    return np.array([start for start in BIN_STARTS if start <= most], dtype=np.int64)


# Where classes of the place among a person's events begin: the first, the second, and ranges that double.
POSITION_STARTS = (0, 1, 2, 4, 9)


def position_starts(most: int) -> Integers:
    """Where the public classes of places begin, for persons with at most so many events."""
    return np.array([start for start in POSITION_STARTS if start < most], dtype=np.int64)


@dataclass(frozen=True)
class Timing:
    """Which attributes of events say when: the order, the class of the place, the time since the event before; or None.

    Codes of the order count steps from its least value. Of the time since the event before, 0 is for first events, and k + 1 for
    k steps.
    """

    order: int | None = None
    position: int | None = None
    gap: int | None = None


def timed(owner: Integers, times: Integers, most: int) -> tuple[Integers, Integers]:
    """Codes of the place and of the time since the event before, of events sorted by person and time.

    Both follow from the events of the same person alone.
    """
    places = counted(np.bincount(owner))
    position = np.searchsorted(position_starts(most), places, side="right") - 1
    since = np.diff(times, prepend=times[:1])
    return position, np.where(places > 0, since + 1, 0)


@dataclass(frozen=True)
class Histories:
    """n persons and their events, those of a person together and in order."""

    persons: Array  # codes, a row per person
    events: Array  # codes, a row per event, sorted by their person
    owner: Integers  # the place of each event's person among the persons; never falls
    most: int  # how many events a person has at most: public

    @classmethod
    def capped(cls, persons: Array, events: Array, owner: Integers, most: int) -> Histories:
        """The first `most` events of every person are kept; what is cut of a person depends on that person alone."""
        keep = counted(np.bincount(owner)) < most
        return cls(persons, events[keep], owner[keep], most)

    def some(self, first: int, count: int) -> Histories:
        """So many persons, with all their events."""
        if first == 0 and count >= self.n:
            return self
        start, stop = np.searchsorted(self.owner, (first, first + count))
        persons, owner = self.persons[first : first + count], self.owner[start:stop] - first
        return Histories(persons, self.events[start:stop], owner, self.most)

    def resampled(self, m: int, generator: np.random.Generator) -> Histories:
        """m of these persons, drawn with replacement, each with all their events."""
        chosen = np.sort(generator.integers(0, self.n, m))
        owner = np.repeat(np.arange(m), self.counts[chosen])
        rows = (np.cumsum(self.counts) - self.counts)[chosen][owner] + counted(self.counts[chosen])
        return Histories(self.persons[chosen], self.events[rows], owner, self.most)

    @property
    def n(self) -> int:
        """The number of persons."""
        return len(self.persons)

    @cached_property
    def counts(self) -> Integers:
        """How many events each person has."""
        return np.bincount(self.owner, minlength=self.n)

    @property
    def places(self) -> Integers:
        """The place of each event among those of its person, from 0."""
        return counted(self.counts)

    @cached_property
    def single(self) -> Integers:
        """What each event weighs where events are counted one by one: ⌊2^20/N⌋."""
        return (WEIGHT_STEPS // np.maximum(self.counts, 1))[self.owner]

    @cached_property
    def pair(self) -> Integers:
        """What an ordered pair of two different events of each person weighs: ⌊2^20/(N(N − 1))⌋; a value per person."""
        both = self.counts * (self.counts - 1)
        return np.where(both > 0, WEIGHT_STEPS // np.maximum(both, 1), 0)

    @cached_property
    def steps(self) -> tuple[Integers, Integers]:
        """The events that another one of their person follows, and what such a step weighs: ⌊2^20/(N − 1)⌋."""
        first = np.flatnonzero(self.owner[1:] == self.owner[:-1])
        return first, (WEIGHT_STEPS // np.maximum(self.counts - 1, 1))[self.owner[first]]


def person_codes(codes: Integers, size: int) -> Integers:
    """Persons by a code of theirs, in steps; a combination of several is one code."""
    return np.bincount(codes, minlength=size).astype(np.int64) * WEIGHT_STEPS


def averaged_codes(codes: Integers, weights: Integers, size: int) -> Integers:
    """Events by a code of theirs, averaged by person, in steps: sums of whole weights below 2^53, so exact in float64."""
    return np.rint(np.bincount(codes, weights, minlength=size)).astype(np.int64)


def averaged_table(linked: Histories, kind: str, codes: tuple[Array, Array], shape: tuple[int, int]) -> Integers:
    """One exact table in steps, of two codes one of which is of events, as the kind says; a row per value of the first.

    Kinds: "across" (a person's and an event's), "event" (two of one event), "step" (of an event and of the next one of the same
    person), "two" (of two different events of a person, in no order).
    Of two events in no order and one attribute the part above the diagonal holds both orders and the part below is 0.
    """
    x, y = codes
    if kind == "across":
        return _cross(x[linked.owner], y, shape, linked.single)
    if kind == "event":
        return _cross(x, y, shape, linked.single)
    if kind == "step":
        first, weights = linked.steps
        return _cross(x[first], y[first + 1], shape, weights)
    return _two_events(linked, codes, shape)


def _two_events(linked: Histories, codes: tuple[Array, Array], shape: tuple[int, int]) -> Integers:
    """All ordered pairs of two different events of a person; for one attribute folded to the part above the diagonal."""
    one, other = (_held(linked, own, size) for own, size in zip(codes, shape, strict=True))
    # Whole numbers below 2^53: exact in float64.
    total = (one * linked.pair[:, None]).T @ other
    found = np.rint(total).astype(np.int64) - _cross(*codes, shape, linked.pair[linked.owner])
    if codes[0] is not codes[1]:
        return found
    return np.asarray(np.triu(found) + np.tril(found, -1).T)


def _held(linked: Histories, codes: Array, size: int) -> Array:
    """How many events of each person have each code."""
    places = linked.owner * size + codes
    return np.bincount(places, minlength=linked.n * size).reshape(linked.n, size).astype(np.float64)


def _cross(x: Array, y: Array, shape: tuple[int, int], weights: Integers) -> Integers:
    places = x.astype(np.int64) * shape[1] + y.astype(np.int64)
    return averaged_codes(places, weights, shape[0] * shape[1]).reshape(shape)
