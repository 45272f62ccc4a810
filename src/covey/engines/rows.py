"""The contract between methods and data: rows are seen only through sums over batches.

An engine knows where the rows are; a method knows what to measure. Between them stands the kernel: a pure function from a batch
of records to a partial result that can be added to others of its kind. What a record adds must depend on that record alone, and
sums are exact integers, so the result is the same for every engine, order and size of batches. It leaves an engine as an `Exact`
value, which only the gate of a fit opens.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from covey.core.arrays import Array
from covey.privacy.gate import Exact, Measured


class Sum(Protocol):
    """A partial result that can be merged with another of its kind."""

    def __add__(self, other: Any) -> Self: ...


S = TypeVar("S", bound=Sum)
T = TypeVar("T")


class Rows(Protocol):
    """n records, or persons with any number of them, of p coordinates, reachable only through kernels."""

    @property
    def n(self) -> int:
        """The number of records, or of persons, which is public."""

    @property
    def p(self) -> int:
        """The number of coordinates."""

    @property
    def steps(self) -> int:
        """What one of the n weighs in the sums: 1 for a record; for a person, whose rows share one weight, 2^20."""

    def reduce(self, kernel: Callable[[Array], S]) -> Exact[S]:
        """The sum of kernel(batch) over all batches; the kernel is pure and batches come in any shape."""

    def whole(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """kernel(all records), in any order, where the data is: for tables that public numbers say are small.

        Of persons no public number says so: there is no such thing for them.
        """


@dataclass(frozen=True, eq=False)
class Then(Generic[T]):
    """A kernel after a step on records. What is sent elsewhere must not hold the rows."""

    step: Callable[[Array], Array]
    kernel: Callable[[Array], T]

    def __call__(self, batch: Array) -> T:
        """kernel(step(batch))."""
        return self.kernel(self.step(batch))


@dataclass(frozen=True)
class Around:
    """Rows with something around them."""

    rows: Rows

    @property
    def p(self) -> int:
        """The number of coordinates."""
        return self.rows.p

    @property
    def steps(self) -> int:
        """What one of the n weighs."""
        return self.rows.steps


@dataclass(frozen=True)
class Mapped(Around):
    """Rows with one more step, applied record by record, before any kernel sees them."""

    step: Callable[[Array], Array]

    @property
    def n(self) -> int:
        """The number of records."""
        return self.rows.n

    def reduce(self, kernel: Callable[[Array], S]) -> Exact[S]:
        """The sum of kernel(step(batch)) over all batches."""
        return self.rows.reduce(Then(self.step, kernel))

    def whole(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """kernel(step(all records))."""
        return self.rows.whole(Then(self.step, kernel))


@dataclass(frozen=True)
class Counted(Around):
    """Rows whose number is secret: whoever asks for it is told a noisy one, and kernels see all rows as before."""

    n: int
    size_sd: float

    @classmethod
    def of(cls, rows: Rows, size: Measured) -> Counted:
        """Rows, and a measurement of their number: at least one."""
        return cls(rows, max(1, round(float(size.values[0]))), size.sd)

    def reduce(self, kernel: Callable[[Array], S]) -> Exact[S]:
        """The sum of kernel(batch) over all batches."""
        return self.rows.reduce(kernel)

    def whole(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """kernel(all records)."""
        return self.rows.whole(kernel)


@dataclass(frozen=True)
class First:
    """What the first reading of a table gives: its size, what encoding met, and sums that later steps will ask for."""

    n: int
    log: Any
    sums: tuple[Any, ...]

    def __add__(self, other: First) -> First:
        sums = tuple(a + b for a, b in zip(self.sums, other.sums, strict=True))
        return First(self.n + other.n, self.log + other.log, sums)
