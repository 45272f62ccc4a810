"""The contract between methods and data: rows are seen only through sums over batches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeVar

from covey.core.arrays import Array


class Sum(Protocol):
    """A partial result that can be merged with another of its kind."""

    def __add__(self, other: Any) -> Self: ...


S = TypeVar("S", bound=Sum)


class Rows(Protocol):
    """n records of p coordinates, reachable only through `reduce`."""

    @property
    def n(self) -> int:
        """The number of records, which is public."""

    @property
    def p(self) -> int:
        """The number of coordinates."""

    def reduce(self, kernel: Callable[[Array], S]) -> S:
        """The sum of kernel(batch) over all batches; the kernel is pure and batches come in any shape."""
