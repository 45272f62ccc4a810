"""Persons with their events, on this machine: seen through kernels alone, which get all of them at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from covey.core.tables.linked import WEIGHT_STEPS, Linked
from covey.privacy.gate import Exact
from covey.privacy.pure import pure

T = TypeVar("T")


class LinkedRows:
    """n persons, which are public, and their events, whose number is not."""

    steps = WEIGHT_STEPS

    def __init__(self, linked: Linked) -> None:
        self._linked = linked
        self.n, self.most = linked.n, linked.most
        self.p = linked.persons.shape[1] + linked.events.shape[1]

    def reduce(self, kernel: Callable[[Linked], T]) -> Exact[T]:
        """kernel(persons with their events), sealed. The kernel is pure."""
        return Exact(pure(kernel)(self._linked))

    def mapped(self, step: Callable[[Linked], Linked]) -> LinkedRows:
        """The same persons after a step that changes codes alone, person by person."""
        return LinkedRows(pure(step)(self._linked))

    def __repr__(self) -> str:
        return f"LinkedRows({self.n} persons)"
