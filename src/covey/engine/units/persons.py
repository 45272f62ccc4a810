"""Rows of persons on this machine: read in parts like any source, with the rows of a person anywhere among them.

The rows of a person share one weight, so that a person counts once, however many rows there are. A person with N rows weighs
2^20 steps in all: each row ⌊2^20/N⌋, and what rounding leaves, fewer than N steps, goes to a fixed public record, the one whose
codes are all 0. So the weights of a person sum to 2^20 exactly, they depend on N alone and not on the order of rows, and a person
is an average of records: whatever bounds hold for how far one replaced record moves a sum hold for one replaced person
(docs/proofs/persons.md). A row that names no person weighs nothing.

How many rows a person has is known when all have been read, so the first reading counts them, and weights are found when sums
are computed. Persons are told apart by 128 bits of a hash under a key that nobody knows and that is not kept; two of 10⁹ persons
would meet with probability 10⁻²¹. While a table is open the counts take 24 bytes of memory a person, and twice that while they
are sorted. None of it leaves: the number of persons is public, that of rows is not.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray

from covey.engine.arrays import Array, Integers, require_memory
from covey.engine.codes.events import WEIGHT_BITS, WEIGHT_STEPS
from covey.engine.exact import Exact, pure
from covey.engine.units.local import KEEP_BYTES, Kept, in_order_of_parts, keep
from covey.engine.units.rows import NO_ROWS, Rows, T
from covey.errors import CHANGED, InputError

Keys = NDArray[np.uint64]  # two words for each row; two zeros where it names no person
Keyring = Callable[[list[str | None], Integers], Keys]
MERGE_ROWS = 1 << 22  # keys that are collected before they are sorted into the counts
NO_PERSON = "the column that identifies the person is empty in every row. There is nothing to synthesize."


def row_weights(rows: Integers) -> Integers:
    """What each row weighs, from the number of rows of its person; 0 for a row without one, which is given as 0."""
    return np.where(rows > 0, WEIGHT_STEPS // np.maximum(rows, 1), 0)


def remainders(rows: Integers) -> int:
    """What rounding leaves of the weights of persons with so many rows each, all together."""
    return int((WEIGHT_STEPS - rows * row_weights(rows)).sum())


def weighted(kernel: Callable[[Array], Any], batch: Array, weights: Integers, total: Any) -> Any:
    """`total` plus the sum of kernel over the rows of a batch, each as often as it weighs: Σ_w w·kernel(rows of weight w).

    Rows of one weight are counted together. Where a batch has many weights, the rows whose weight has a given binary digit are.
    """
    for weight, chosen in classes(weights):
        total = total + kernel(batch[chosen]).times(weight)
    return total


def classes(weights: Integers) -> Iterator[tuple[int, Array]]:
    """Numbers and the rows that they count for: each row's numbers sum to its weight. At most 21 of them."""
    values = np.unique(weights[weights > 0])
    if len(values) <= WEIGHT_BITS:
        yield from ((int(value), weights == value) for value in values)
        return
    for bit in range(WEIGHT_BITS + 1):
        chosen = (weights >> bit) & 1 == 1
        if chosen.any():
            yield 1 << bit, chosen


def public_record(p: int) -> Array:
    """A batch of one record, the public one that takes what rounding leaves."""
    return np.zeros((1, p), dtype=np.uint8)


def new_keyring() -> Keyring:
    """Turns names of persons, and the place of each row's among them, into keys under a secret of its own; None is nobody."""
    secret = secrets.token_bytes(32)

    def digest(name: str | None) -> bytes:
        if name is None:
            return bytes(16)
        return blake2b(name.encode("utf-8", errors="surrogatepass"), digest_size=16, key=secret).digest()

    def keys(names: list[str | None], places: Integers) -> Keys:
        words: Keys = np.frombuffer(b"".join(map(digest, names)), dtype=np.uint64).reshape(-1, 2)
        return words[places]

    return keys


class PersonCounts:
    """How many rows each person has: sorted keys and counts. Private."""

    def __init__(self) -> None:
        self._keys: Keys = np.zeros((0, 2), dtype=np.uint64)
        self._rows: Integers = np.zeros(0, dtype=np.int64)
        self._new: list[Keys] = []
        self._waiting = 0

    def add(self, keys: Keys) -> None:
        """Count a part of the rows; those that name no person are passed over."""
        self._new.append(keys[keys.any(axis=1)])
        self._waiting += len(self._new[-1])
        if self._waiting > MERGE_ROWS:
            self.merge()

    def merge(self) -> None:
        """Sort what was added into the counts."""
        total = len(self._keys) + self._waiting
        require_memory(48 * total, "counting the rows of every person", "Use a machine with more memory.")
        keys = np.concatenate([self._keys, *self._new])
        rows = np.concatenate([self._rows, np.ones(self._waiting, dtype=np.int64)])
        self._new, self._waiting = [], 0
        order = np.lexsort((keys[:, 1], keys[:, 0]))
        keys, rows = keys[order], rows[order]
        starts = np.flatnonzero(np.r_[np.ones(min(1, len(keys)), dtype=bool), (keys[1:] != keys[:-1]).any(axis=1)])
        self._keys, self._rows = keys[starts], np.add.reduceat(rows, starts) if len(starts) else rows

    @property
    def persons(self) -> int:
        """How many there are: public."""
        return len(self._keys)

    @property
    def remainder(self) -> int:
        """What rounding leaves of all weights."""
        return remainders(self._rows)

    def weights(self, keys: Keys) -> Integers:
        """What each of these rows weighs."""
        found = np.searchsorted(self._keys[:, 0], keys[:, 0])
        named, last = keys.any(axis=1), len(self._keys) - 1
        while True:  # among persons that share the first word, which next to never happens, on to the second
            at = np.minimum(found, last)
            wrong = named & (self._keys[at, 1] != keys[:, 1])
            if not wrong.any():
                break
            if (wrong & ((self._keys[at, 0] != keys[:, 0]) | (found >= last))).any():
                raise InputError(CHANGED)  # a person who was not there
            found = found + wrong
        if (named & (self._keys[at, 0] != keys[:, 0])).any():
            raise InputError(CHANGED)
        return row_weights(np.where(named, self._rows[at], 0))


class WeightedRows(Rows):
    """n persons as records in memory that weigh parts of a person: in any column, a person's sum to WEIGHT_STEPS at most."""

    steps = WEIGHT_STEPS

    def __init__(self, parts: list[tuple[Any, Integers]], n: int, p: int) -> None:
        self._parts, self.n, self.p = parts, n, p

    def reduce(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """The sum of kernel over the records, each as often as it weighs; what rounding leaves is left."""
        found = pure(kernel)
        first: Any = found(public_record(self.p))
        total = first.times(0)
        for batch, weights in self._parts:
            total = weighted(found, batch, weights, total)
        return Exact(total)


class PersonRows(Rows):
    """Records of persons that are read in parts; n counts persons, and each weighs WEIGHT_STEPS, however many rows are theirs.

    As `StreamRows`, but that `read` turns a part into records, their log and the keys of their persons.
    """

    steps = WEIGHT_STEPS

    def __init__(
        self,
        parts: Callable[[], Iterator[Any]],
        read: Callable[[Any], tuple[Array, Any, Keys]],
        p: int,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self.p, counts = p, PersonCounts()
        self.log: Any = None
        self.read, self.nobodys = 0, 0  # rows, and rows that name nobody: for the owner of the table alone
        stored: list[tuple[Kept, Keys]] = []
        size = 0
        for batch, log, keys in in_order_of_parts(parts(), read, p):
            counts.add(keys)
            self.read, self.nobodys = self.read + len(keys), self.nobodys + int((~keys.any(axis=1)).sum())
            self.log = log if self.log is None else self.log + log
            if size <= keep_bytes:
                stored.append((keep(batch), keys))
                size += stored[-1][0][0] + keys.nbytes
            if size > keep_bytes:
                stored.clear()
        counts.merge()
        self.n, self._remainder = counts.persons, counts.remainder
        if self.log is None:
            raise InputError(NO_ROWS)
        if not self.n:
            raise InputError(NO_PERSON)
        # What is kept needs neither source nor counts: a connection, say, is let go.
        kept = [(batch, counts.weights(keys).astype(np.int32)) for (_, batch), keys in stored]

        def stored_part(part: Any) -> tuple[Array, Integers]:
            return part[0](), part[1]

        def read_again(part: Any) -> tuple[Array, Integers]:
            batch, _, keys = read(part)
            return batch, counts.weights(keys)

        self._parts: Callable[[], Iterator[Any]] = (lambda: iter(kept)) if kept else parts
        self._batch = stored_part if kept else read_again

    def reduce(self, kernel: Callable[[Array], T]) -> Exact[T]:
        """The sum of kernel over the rows, each as often as it weighs, in steps of 2^-20."""
        found = pure(kernel)
        first: Any = found(public_record(self.p))
        total, seen = first.times(self._remainder), self._remainder
        nothing, open_part = first.times(0), self._batch

        def task(part: Any) -> tuple[int, Any]:
            batch, weights = open_part(part)
            return int(weights.sum(dtype=np.int64)), weighted(found, batch, weights, nothing)

        for weight, own in in_order_of_parts(self._parts(), task, self.p):
            seen, total = seen + weight, total + own
        if seen != self.n * WEIGHT_STEPS:
            raise InputError(CHANGED)
        return Exact(total)
