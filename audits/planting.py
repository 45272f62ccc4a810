"""What a planted fault is, and how it is planted."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from fractions import Fraction
from unittest.mock import patch

from covey.engine.gate import Gate
from covey.engine.sensitivity import Sensitivity


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


MECHANISMS = ("joint", "select", "cube", "knorm", "matrix", "choose", "pick", "directions")  # `measure` is a joint one


def told(purpose, change):
    """A measurement whose sensitivity is misstated, whatever mechanism it goes through."""

    def lying(real):
        def mechanism(self, name, *given, **options):
            if name == purpose:
                given = [change(own) if isinstance(own, Sensitivity) else own for own in given]
            return real(self, name, *given, **options)

        return mechanism

    return replaced(*((Gate, mechanism, lying) for mechanism in MECHANISMS))


def halved_for_an_added_row(purpose):
    """A measurement whose noise is half of what an added row needs."""

    def halved(sensitivity):
        added = sensitivity.added
        bounds = {name: bound for name in HALVED if (bound := getattr(added, name)) is not None}
        return replace(
            sensitivity, added=replace(added, **{name: Fraction(bound) / 2 for name, bound in bounds.items()})
        )

    return told(purpose, halved)


HALVED = ("l1", "l2_squared", "linf", "table", "trace", "directions", "score")
