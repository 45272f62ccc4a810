"""What a planted fault is, and how it is planted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from unittest.mock import patch

from covey.engine.gate import WHOLE, Gate


@dataclass(frozen=True)
class Fault:
    """A fault, how to plant it, and who must notice."""

    name: str
    caught_by: str
    plant: Callable[[], AbstractContextManager[object]]


def replaced(*changes):
    """A context in which (owner, name, make) are replaced by make(what was there)."""

    def plant():
        stack = ExitStack()
        for owner, name, make in changes:
            stack.enter_context(patch.object(owner, name, make(getattr(owner, name))))
        return stack

    return plant


def told(purpose, change):
    """A measurement whose sensitivity is misstated."""

    def lying(real):
        def measure_it(self, name, exact, shape, sensitivity, share=WHOLE):
            return real(self, name, exact, shape, change(sensitivity) if name == purpose else sensitivity, share)

        return measure_it

    return replaced((Gate, "measure", lying))
