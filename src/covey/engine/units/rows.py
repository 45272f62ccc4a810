"""The contract between methods and data: rows are seen only through sums over batches.

An engine knows where the rows are; a method knows what to measure. Between them stands the kernel: a pure function from a batch
of records to a partial result that can be added to others of its kind. What a record adds must depend on that record alone, and
sums are exact integers, so the result is the same for every engine, order and size of batches. It leaves an engine as an `Exact`
value, which only the gate of a fit opens.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from covey.engine.arrays import Array, blas_threads, processors
from covey.engine.exact import Exact, pure
from covey.engine.gate import Measured
from covey.errors import InternalError

T = TypeVar("T")
NO_ROWS = "the table has a header and no rows. There is nothing to synthesize."


class Rows:
    """n records, or persons with any number of them, of p coordinates, reachable only through kernels. Both are public."""

    n: int
    p: int
    # What one of the n weighs in the sums: 1 for a record; for a person, whose rows share one weight, 2^20.
    steps: int = 1

    def batches(self) -> Iterator[Any]:
        """The records, or some whole persons at a time, in order; engines that add up elsewhere have none."""
        raise NotImplementedError

    def reduce(self, kernel: Callable[[Any], T]) -> Exact[T]:
        """The sum of kernel(batch) over all batches; the kernel is pure and batches come in any shape."""
        found = pure(kernel)
        with blas_threads(processors()):
            batches = self.batches()
            total: Any = found(next(batches))
            for batch in batches:
                total = total + found(batch)
        return Exact(total)

    def whole(self, kernel: Callable[[Any], T]) -> Exact[T]:
        """kernel(all records), in any order, where the data is: for tables that public numbers say are small.

        Refused for persons: how many rows they have is not public.
        """
        raise InternalError("rows of persons are only added up, never read one by one.")


def then(step: Callable[[Any], Any] | None, kernel: Callable[[Any], T]) -> Callable[[Any], T]:
    """A kernel after a step on records, if there is one. What is sent elsewhere must not hold the rows."""
    return kernel if step is None else partial(_after, step, kernel)


def _after(step: Callable[[Any], Any], kernel: Callable[[Any], T], batch: Any) -> T:
    return kernel(step(batch))


class Mapped(Rows):
    """Rows with one more step, applied record by record, before any kernel sees them; none leaves them as they are."""

    def __init__(self, rows: Rows, step: Callable[[Array], Array] | None) -> None:
        self.rows, self._step = rows, step
        self.n, self.p, self.steps = rows.n, rows.p, rows.steps

    def reduce(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """The sum of kernel(step(batch)) over all batches."""
        return self.rows.reduce(then(self._step, kernel))

    def whole(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """kernel(step(all records))."""
        return self.rows.whole(then(self._step, kernel))


class Counted(Mapped):
    """Rows whose number is secret: whoever asks for it is told a noisy one, and kernels see all rows as before."""

    def __init__(self, rows: Rows, n: int, size_sd: float) -> None:
        super().__init__(rows, None)
        self.n, self.size_sd = n, size_sd

    @classmethod
    def of(cls, rows: Rows, size: Measured) -> Counted:
        """Rows, and a measurement of their number: at least one."""
        return cls(rows, max(1, round(float(size.values[0]))), size.sd)


@dataclass(frozen=True)
class First:
    """What one reading of a table gives: its size, what encoding met, and sums."""

    n: int
    log: Any
    sums: tuple[Any, ...]

    def __add__(self, other: First) -> First:
        sums = tuple(a + b for a, b in zip(self.sums, other.sums, strict=True))
        return First(self.n + other.n, self.log + other.log, sums)
