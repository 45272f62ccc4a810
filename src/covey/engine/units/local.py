"""Rows on this machine: a matrix or persons with events in memory, or a source of any length that is read in parts."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial, reduce
from operator import add
from typing import Any

import numpy as np
from scipy.sparse import vstack

from covey.engine.arrays import Array, blas_threads, is_bits, processors
from covey.engine.codes.counts import Batch, is_sparse
from covey.engine.codes.domain import RangeCounts
from covey.engine.codes.events import WEIGHT_STEPS, Histories
from covey.engine.exact import Exact, pure
from covey.engine.units.rows import NO_ROWS, First, Rows, T
from covey.errors import CHANGED, InputError

BATCH_ENTRIES = 1 << 23  # of a batch, as long as it keeps enough rows: some tens of megabytes at work
SORTED_BYTES = 1 << 29  # of the columns that are kept sorted: 20,000,000 rows of six numbers
KEEP_BYTES = 1 << 28  # encoded records are kept in memory up to here, so that they are read and encoded only once
ONE_WORKER_COLUMNS = 1500  # beyond so many columns one product fills all processors, and parts are read one by one
LEAST_BATCH_ROWS = 1 << 11  # sums of p × p products are added once per batch: fewer rows would not be worth it
PERSONS = 1 << 16  # with events, at a time: a table of pairs of events holds counts of every code for each of them


class ArrayRows(Rows):
    """A matrix in memory, dense or sparse (CSR), prepared batch by batch so that no second copy of it is made."""

    def __init__(self, X: Any, prepare: Callable[[Array], Array] = lambda batch: batch) -> None:
        self._X = X
        self._prepare = prepare
        self.n, self.p = X.shape

    def batches(self) -> Iterator[Batch]:
        """The prepared records, in order."""
        rows = max(LEAST_BATCH_ROWS, BATCH_ENTRIES // self.p)
        for start in range(0, self.n, rows):
            yield self._prepare(self._X[start : start + rows])

    def records(self) -> Batch:
        """All prepared records at once."""
        batches = list(self.batches())
        if len(batches) == 1:
            return batches[0]
        return vstack(batches, format="csr") if is_sparse(batches[0]) else np.concatenate(batches)

    def whole(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """kernel(all records)."""
        with blas_threads(processors()):
            return Exact(pure(kernel)(self.records()))


class EventRows(Rows):
    """n persons, which are public, and their events, whose number is not. No person is ever taken apart."""

    steps = WEIGHT_STEPS

    def __init__(self, linked: Histories) -> None:
        self._linked, self.n = linked, linked.n
        self.p = linked.persons.shape[1] + linked.events.shape[1]

    def batches(self) -> Iterator[Histories]:
        """Some persons with all their events: what each adds is the same whoever else is in the batch."""
        for first in range(0, self.n, PERSONS):
            yield self._linked.some(first, PERSONS)

    def __repr__(self) -> str:
        return f"EventRows({self.n} persons)"


class StreamRows(ArrayRows):
    """Records that are read in parts from a source, such as a file larger than memory, and encoded part by part.

    Args:
        parts: brings the parts of the source, from the beginning, each time it is called.
        encode: turns a part into records and a log that can be added; runs in several threads.
        p: the number of coordinates.
        ahead: kernels whose sums will be asked for; they are computed during the first reading.
        keep_bytes: encoded records are kept in memory up to here; 0 keeps none.

    The first reading happens here, before anything is charged: it finds n, and whatever cannot be read. Columns of which it
    counts ranges will be counted by other ranges again and again: each is kept sorted, as long as there is room.
    """

    def __init__(
        self,
        parts: Callable[[], Iterator[Any]],
        encode: Callable[[Any], tuple[Array, Any]],
        p: int,
        ahead: Sequence[Callable[[Array], Any]] = (),
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self.p = p
        full, kernels = not keep_bytes, [pure(kernel) for kernel in ahead]
        late = [j for kernel in ahead if isinstance(kernel, RangeCounts) for j in kernel.columns]

        def read(part: Any) -> tuple[First, Kept | None, dict[int, Array]]:
            batch, log = encode(part)
            apart = {} if room < 0 else {j: np.sort(batch[:, j]) for j in late}
            first = First(len(batch), log, tuple(kernel(batch) for kernel in kernels))
            return first, None if full else keep(batch), apart

        total: First | None = None
        stored: list[Kept] = []
        self._sorted: list[dict[int, Array]] = []
        room = SORTED_BYTES if late and keep_bytes else -1
        for found, kept, apart in in_order_of_parts(parts(), read, p):
            total = found if total is None else total + found
            stored += [kept] if kept is not None and not full else []
            if sum(size for size, _ in stored) > keep_bytes:
                full, stored = True, []
            room -= sum(column.nbytes for column in apart.values())
            self._sorted = [*self._sorted, apart] if room >= 0 else []
        if total is None or not total.n:
            raise InputError(NO_ROWS)
        # What is kept needs no source: a connection, say, is let go.
        self._parts: Callable[[], Iterator[Any]] = parts if full else lambda: iter(stored)
        self._batch: Callable[[Any], Array] = (lambda part: encode(part)[0]) if full else lambda kept: kept[1]()
        self.n, self.log = total.n, total.log
        self._known = dict(zip(ahead, total.sums, strict=True))

    def batches(self) -> Iterator[Array]:
        """The records, in order."""
        for part in self._parts():
            yield self._batch(part)

    def reduce(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """The sum of kernel(batch) over all parts: known from the first reading, or computed in another one."""
        if kernel in self._known:
            return Exact(self._known[kernel])
        read, kernel = self._batch, pure(kernel)
        if isinstance(kernel, RangeCounts) and self._sorted and self._sorted[0].keys() >= set(kernel.columns):
            counted: Any = reduce(add, map(kernel.sorted, self._sorted))
            return Exact(counted)

        def task(part: Any) -> First:
            batch = read(part)
            return First(len(batch), 0, (kernel(batch),))

        results = in_order_of_parts(self._parts(), task, self.p)
        total = sum(results, next(results))
        if total.n != self.n:
            raise InputError(CHANGED)
        return Exact(total.sums[0])


def in_order_of_parts(parts: Iterator[Any], task: Callable[[Any], T], p: int) -> Iterator[T]:
    """task(part) for each part of records of p coordinates, in order, on all processors, with few parts in memory."""
    workers = 1 if p > ONE_WORKER_COLUMNS else processors()
    with blas_threads(processors() // workers), ThreadPoolExecutor(workers) as pool:
        waiting: deque[Future[T]] = deque()
        try:
            for part in parts:
                waiting.append(pool.submit(task, part))
                if len(waiting) > workers:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()


Kept = tuple[int, Callable[[], Array]]


def keep(batch: Array) -> Kept:
    """A batch in little memory, bits eight to the byte, codes as they are: how many bytes it takes, and how to have it back."""
    if not is_bits(batch):
        return batch.nbytes, lambda: batch
    packed = np.packbits(batch, axis=0)
    return packed.nbytes, partial(np.unpackbits, packed, axis=0, count=len(batch))
