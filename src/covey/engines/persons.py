"""Rows of persons on this machine: read in parts like any source, with the rows of a person anywhere among them.

How many rows a person has is known when all have been read, so the first reading counts them, and weights are found when sums
are computed. Persons are told apart by 128 bits of a hash under a key that nobody knows and that is not kept; two of 10⁹ persons
would meet with probability 10⁻²¹. While a table is open the counts take 24 bytes of memory a person, and twice that while they
are sorted. None of it leaves: the number of persons is public, that of rows is not.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Array, Integers, require_memory
from covey.core.tables.events import WEIGHT_STEPS
from covey.engines.local import KEEP_BYTES, Kept, in_order_of_parts, keep
from covey.engines.rows import S, T
from covey.engines.weights import NO_PERSON, public_record, remainders, row_weights, weighted
from covey.errors import CHANGED, InputError, InternalError
from covey.privacy.exact import pure
from covey.privacy.gate import Exact

Keys = NDArray[np.uint64]  # two words for each row; two zeros where it names no person
MERGE_ROWS = 1 << 22  # keys that are collected before they are sorted into the counts


class Keyring:
    """Turns the names of persons into keys, under a secret of its own."""

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(32)

    def keys(self, names: list[str | None], places: Integers) -> Keys:
        """Keys of rows, each given as the place of its person's name in a list; None is nobody."""
        digests = [bytes(16) if name is None else self._digest(name) for name in names]
        words: Keys = np.frombuffer(b"".join(digests), dtype=np.uint64).reshape(-1, 2)
        return words[places]

    def _digest(self, name: str) -> bytes:
        return blake2b(name.encode("utf-8", errors="surrogatepass"), digest_size=16, key=self._secret).digest()


def nameless(keys: Keys) -> int:
    """How many rows name nobody."""
    return int((~keys.any(axis=1)).sum())


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


@dataclass(frozen=True)
class Read:
    """A part of a table: its records, what encoding met, and whose they are."""

    batch: Array
    log: Any
    keys: Keys


class PersonRows:
    """Records of persons that are read in parts; n counts persons, and each weighs WEIGHT_STEPS, however many rows are theirs.

    Args:
        parts: brings the parts of the source, from the beginning, each time it is called.
        read: turns a part into records, their log and the keys of their persons; runs in several threads.
        p: the number of coordinates.
        keep_bytes: encoded records are kept in memory up to here.
    """

    steps = WEIGHT_STEPS

    def __init__(
        self,
        parts: Callable[[], Iterator[Any]],
        read: Callable[[Any], Read],
        p: int,
        keep_bytes: int = KEEP_BYTES,
    ) -> None:
        self.p, self._counts = p, PersonCounts()
        self.log: Any = None
        self.read, self.nobodys = 0, 0  # rows, and rows that name nobody: for the owner of the table alone
        stored: list[tuple[Kept, Keys]] = []
        size = 0
        for part in in_order_of_parts(parts(), read, p):
            self._counts.add(part.keys)
            self.read, self.nobodys = self.read + len(part.keys), self.nobodys + nameless(part.keys)
            self.log = part.log if self.log is None else self.log + part.log
            if size <= keep_bytes:
                stored.append((keep(part.batch), part.keys))
                size += stored[-1][0].bytes + part.keys.nbytes
            if size > keep_bytes:
                stored.clear()
        self._counts.merge()
        self.n = self._counts.persons
        if self.log is None:
            raise InputError("the table has a header and no rows. There is nothing to synthesize.")
        if not self.n:
            raise InputError(NO_PERSON)
        self._remainder = self._counts.remainder
        counts = self._counts
        # What is kept needs neither source nor counts: a connection, say, is let go.
        kept = [(batch, counts.weights(keys).astype(np.int32)) for batch, keys in stored]
        self._parts: Callable[[], Iterator[Any]] = (lambda: iter(kept)) if kept else parts
        self._batch: Callable[[Any], tuple[Array, Integers]] = _stored if kept else _again(read, counts)
        del self._counts

    def reduce(self, kernel: Callable[[Array], S]) -> Exact[S]:
        """The sum of kernel over the rows, each as often as it weighs, in steps of 2^-20."""
        kernel = pure(kernel)
        first: Any = kernel(public_record(self.p))
        total, seen = first.times(self._remainder), self._remainder
        nothing, open_part = first.times(0), self._batch

        def task(part: Any) -> tuple[int, Any]:
            batch, weights = open_part(part)
            return int(weights.sum(dtype=np.int64)), weighted(kernel, batch, weights, nothing)

        for weight, found in in_order_of_parts(self._parts(), task, self.p):
            seen, total = seen + weight, total + found
        if seen != self.n * WEIGHT_STEPS:
            raise InputError(CHANGED)
        return Exact(total)

    def whole(self, kernel: Callable[[Array], T]) -> NoReturn:
        """Refused: how many rows there are is not public."""
        raise InternalError("rows of persons are only added up, never read one by one.")


def _stored(part: tuple[Kept, Integers]) -> tuple[Array, Integers]:
    return part[0].batch(), part[1]


def _again(read: Callable[[Any], Read], counts: PersonCounts) -> Callable[[Any], tuple[Array, Integers]]:
    def open_part(part: Any) -> tuple[Array, Integers]:
        found = read(part)
        return found.batch, counts.weights(found.keys)

    return open_part
