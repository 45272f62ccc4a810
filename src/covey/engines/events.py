"""Persons with their events, on this machine: seen through kernels alone, which get some whole persons at a time."""

from __future__ import annotations

from collections.abc import Callable

from covey.core.arrays import Integers
from covey.core.tables.events import WEIGHT_STEPS, Histories
from covey.privacy.exact import pure
from covey.privacy.gate import Exact

PERSONS = 1 << 16  # at a time: a table of pairs of events holds counts of every code for each of them


class EventRows:
    """n persons, which are public, and their events, whose number is not."""

    steps = WEIGHT_STEPS

    def __init__(self, linked: Histories) -> None:
        self._linked = linked
        self.n, self.most = linked.n, linked.most
        self.p = linked.persons.shape[1] + linked.events.shape[1]

    def reduce(self, kernel: Callable[[Histories], Integers]) -> Exact[Integers]:
        """The sum over persons, with all their events, of what a kernel finds in some of them, sealed. The kernel is pure.

        No person is ever taken apart: what each adds is the same whoever else is in the batch.
        """
        found, own = pure(kernel), self._linked
        total = found(own.some(0, PERSONS))
        for first in range(PERSONS, own.n, PERSONS):
            total = total + found(own.some(first, PERSONS))
        return Exact(total)

    def mapped(self, step: Callable[[Histories], Histories]) -> EventRows:
        """The same persons after a step that changes codes alone, person by person."""
        return EventRows(pure(step)(self._linked))

    def __repr__(self) -> str:
        return f"EventRows({self.n} persons)"
