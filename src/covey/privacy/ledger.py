"""The ledger: what was promised for each dataset, and what has been spent of it.

One SQLite file per steward holds datasets under names of their choosing, each with a cap on ε and on δ, for a person with
so many rows as the dataset's first charge says. Charges add up
(basic composition), are rounded up to whole nano-ε and atto-δ, and are written before any noise is drawn. Nothing is ever
refunded: a charge whose release was lost stays spent.

The file is a list of events. Each carries the SHA-256 of the hash before it followed by its own canonical JSON, and every
total is recomputed from that list, so that no second number can disagree with it. A small file beside the ledger, the
mark, remembers how many events there were and the last hash. Every read and every charge goes through the whole list and
the mark first: a thousand events take about ten milliseconds.

What is found: damage, an event edited, removed, added or moved, charges past a cap, foreign triggers, a ledger deleted or
replaced by an older copy, a mark deleted or replaced by an older one.

What is not found: ledger and mark copied back together, or both rewritten with fresh hashes by someone who knows how (there
is no secret key); the last event alone removed when the process that wrote it died before it could write the mark; the same
table opened under two names or in two ledgers. The ledger keeps a careful steward honest, it does not bind a dishonest
one. Keep it on a local disk: network file systems may not lock.
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
import sys
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from difflib import get_close_matches
from fractions import Fraction
from hashlib import sha256
from math import ceil, floor
from numbers import Rational
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from covey.errors import LedgerError, ParameterError, whole_number

NANO = 10**9
ATTO = 10**18
DEFAULT_DELTA_BUDGET = Fraction(1, 10**6)
MAX_EPSILON = 10**9
MAX_TEXT = 200
MOST_NAMES = 20  # that a message lists
LOCK_TIMEOUT_S = 5.0

APPLICATION_ID = 0x636F7679  # "covy" in the file's header: another program's database is never taken for a ledger
FORMAT = 2
SCHEMA = "CREATE TABLE events (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)"
GENESIS = "0" * 64

_KEYS = {
    "open": {"kind", "time", "dataset", "nano_epsilon", "atto_delta"},
    "charge": {"kind", "time", "dataset", "nano_epsilon", "atto_delta", "rows_per_person", "purpose"},
    "release": {"kind", "time", "dataset", "charge", "digest"},
}
_WHOLE = {"nano_epsilon", "atto_delta", "rows_per_person", "charge"}

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))

# Closing any descriptor of a file drops every POSIX lock the process has on it, so only one thread creates at a time.
_CREATING = Lock()


@dataclass(frozen=True)
class Amount:
    """ε in whole nano-ε and δ in whole atto-δ (1e-18): integers add up without error."""

    nano_epsilon: int = 0
    atto_delta: int = 0

    @classmethod
    def rounded_up(cls, epsilon: Fraction, delta: Fraction) -> Amount:
        """The least amount that covers a charge."""
        return cls(ceil(epsilon * NANO), ceil(delta * ATTO))

    @classmethod
    def rounded_down(cls, epsilon: Fraction, delta: Fraction) -> Amount:
        """The largest amount that a cap covers."""
        return cls(floor(epsilon * NANO), floor(delta * ATTO))

    @property
    def epsilon(self) -> Fraction:
        """ε as a fraction."""
        return Fraction(self.nano_epsilon, NANO)

    @property
    def delta(self) -> Fraction:
        """δ as a fraction."""
        return Fraction(self.atto_delta, ATTO)

    def within(self, other: Amount) -> bool:
        """Whether neither ε nor δ exceeds the other's."""
        return self.nano_epsilon <= other.nano_epsilon and self.atto_delta <= other.atto_delta

    def __add__(self, other: Amount) -> Amount:
        return Amount(self.nano_epsilon + other.nano_epsilon, self.atto_delta + other.atto_delta)

    def __sub__(self, other: Amount) -> Amount:
        return Amount(self.nano_epsilon - other.nano_epsilon, self.atto_delta - other.atto_delta)

    def __str__(self) -> str:
        return f"ε = {_decimal(self.nano_epsilon, 9)}, δ = {_decimal(self.atto_delta, 18)}"


@dataclass(frozen=True)
class DatasetStatus:
    """A dataset's cap, what has been spent of it, and in how many charges.

    What is spent is spent by a person with up to `rows_per_person` rows, as the first charge has it.
    """

    name: str
    budget: Amount
    spent: Amount
    charges: int
    rows_per_person: int | None = None

    @property
    def remaining(self) -> Amount:
        """What may still be charged."""
        return self.budget - self.spent


@dataclass(frozen=True)
class Event:
    """One line of the ledger; `amount` is the cap of an "open" and the cost of a "charge"."""

    sequence: int
    kind: Literal["open", "charge", "release"]
    time: str
    dataset: str
    amount: Amount
    purpose: str | None
    charge: int | None
    digest: str | None
    hash: str
    rows_per_person: int | None = None


@dataclass(frozen=True)
class Receipt:
    """Proof that a charge is in the ledger: noise may be drawn, and one release may name it."""

    sequence: int
    time: str
    dataset: str
    amount: Amount
    purpose: str
    hash: str


def default_ledger_path() -> Path:
    """COVEY_LEDGER, or covey/ledger.sqlite in the user's data folder."""
    if chosen := os.environ.get("COVEY_LEDGER"):
        return Path(chosen).expanduser()
    xdg, local = os.environ.get("XDG_DATA_HOME", ""), os.environ.get("LOCALAPPDATA", "")
    try:
        if os.path.isabs(xdg):  # the XDG specification says to ignore a relative one
            folder = Path(xdg)
        elif sys.platform == "win32":
            folder = Path(local) if local else Path.home() / "AppData" / "Local"
        elif sys.platform == "darwin":
            folder = Path.home() / "Library" / "Application Support"
        else:
            folder = Path.home() / ".local" / "share"
    except RuntimeError:
        raise LedgerError("No home folder is known. Set COVEY_LEDGER to the path of the ledger.") from None
    return folder / "covey" / "ledger.sqlite"


class Ledger:
    """The ledger at a path; nothing is created before the first `open_dataset`.

    Every method opens the file, verifies it, and closes it again, so that a Ledger may be kept, shared between threads and
    carried across a fork. Whatever is wrong with the file is a LedgerError that says what to do.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        # Resolved, so that a ledger reached through a link has the same mark.
        self.path = Path(os.path.realpath(path))

    @property
    def mark_path(self) -> Path:
        """The mark: how many events there were, and the last hash."""
        return self.path.with_name(self.path.name + ".mark")

    def open_dataset(self, name: str, epsilon_budget: Fraction, delta_budget: Fraction = DEFAULT_DELTA_BUDGET) -> None:
        """Set a dataset's cap, once and for all; digits past nano-ε and atto-δ are cut off.

        The same cap again changes nothing; another one is refused.
        """
        _check_text(name, "name")
        epsilon, delta = _check_costs(epsilon_budget, delta_budget, "epsilon_budget", "delta_budget")
        cap = Amount.rounded_down(epsilon, delta)
        if cap.nano_epsilon == 0:
            raise ParameterError(f"epsilon_budget must be at least 1e-9, got {_number(epsilon_budget)}.")
        with self._errors_explained():
            self._create_file()
        with self._writing() as transaction:
            known = transaction.books.datasets.get(name)
            if known is None:
                transaction.append("open", name, nano_epsilon=cap.nano_epsilon, atto_delta=cap.atto_delta)
            elif known.budget != cap:
                raise LedgerError(
                    f"The dataset {name!r} is open with a budget of {known.budget}; a cap once set is final, so it cannot "
                    f"become {cap}. Use it as it is."
                )

    def check(self, name: str, epsilon: Fraction, delta: Fraction, rows_per_person: int = 1) -> None:
        """Refuse now what `charge` would refuse: unknown dataset, no budget, another unit, unfit ledger. Writes nothing."""
        _check_text(name, "name")
        rows_per_person = whole_number(rows_per_person, "rows_per_person", 1)
        asked = Amount.rounded_up(*_check_costs(epsilon, delta))
        with self._writing() as transaction:
            self._refuse_unless_it_fits(transaction.books, name, asked, rows_per_person)

    def charge(self, name: str, epsilon: Fraction, delta: Fraction, purpose: str, rows_per_person: int = 1) -> Receipt:
        """Spend from a dataset's budget, or refuse; once this returns, the charge is on the disk and stays.

        ε and δ are what a person with up to `rows_per_person` rows loses. Charges add up for such persons alone, so a
        dataset whose first charge was made for persons of several rows takes none for persons of fewer.
        """
        _check_text(name, "name")
        _check_text(purpose, "purpose")
        rows_per_person = whole_number(rows_per_person, "rows_per_person", 1)
        asked = Amount.rounded_up(*_check_costs(epsilon, delta))
        with self._writing() as transaction:
            self._refuse_unless_it_fits(transaction.books, name, asked, rows_per_person)
            event = transaction.append(
                "charge",
                name,
                nano_epsilon=asked.nano_epsilon,
                atto_delta=asked.atto_delta,
                rows_per_person=rows_per_person,
                purpose=purpose,
            )
        return Receipt(event.sequence, event.time, name, asked, purpose, event.hash)

    def mark_released(self, receipt: Receipt, bundle_digest: str) -> None:
        """Record which bundle a charge paid for. The same bundle again changes nothing; a second one is refused."""
        _check_text(bundle_digest, "bundle_digest")
        with self._writing() as transaction:
            books = transaction.books
            known = books.events[receipt.sequence - 1] if 0 < receipt.sequence <= len(books.events) else None
            if known is None or known.kind != "charge" or known.hash != receipt.hash:
                raise LedgerError(
                    f"The ledger {self.path} has no charge with this receipt (event {receipt.sequence}). "
                    "Use the ledger that was charged."
                )
            released = books.released.get(receipt.sequence)
            if released is None:
                transaction.append("release", known.dataset, charge=known.sequence, digest=bundle_digest)
            elif released != bundle_digest:
                raise LedgerError(
                    f"The charge of event {receipt.sequence} already paid for the bundle {released}. "
                    "A further release needs a charge of its own."
                )

    def datasets(self) -> list[DatasetStatus]:
        """Every dataset, in the order of opening; none if there is no ledger yet."""
        with self._reading() as transaction:
            return list(transaction.books.datasets.values())

    def history(self, name: str) -> list[Event]:
        """Every event of a dataset, oldest first."""
        _check_text(name, "name")
        with self._reading() as transaction:
            self._known(transaction.books, name)
            return [event for event in transaction.books.events if event.dataset == name]

    def verify(self) -> None:
        """Check the file's structure, the chain of hashes, the totals and the mark, or say what is wrong."""
        with self._reading() as transaction:
            if transaction.connection is None:
                return
            for (finding,) in transaction.connection.execute("PRAGMA integrity_check(1)"):
                if finding != "ok":
                    raise LedgerError(self._damaged(finding))

    # Refusals.

    def _known(self, books: _Books, name: str) -> DatasetStatus:
        if name not in books.datasets:
            raise LedgerError(
                f"The ledger {self.path} has no dataset {name!r}. {_others(name, list(books.datasets))}"
                "For a table of other people open one, with a budget of your choice:\n"
                f"    covey ledger open {shlex.quote(name)} --budget B\n"
                "A new name for the same people evades the cap."
            )
        return books.datasets[name]

    def _refuse_unless_it_fits(self, books: _Books, name: str, asked: Amount, rows_per_person: int) -> None:
        status = self._known(books, name)
        if rows_per_person < (status.rows_per_person or 1):
            raise LedgerError(
                f"The budget of {name!r} is kept for persons with up to {status.rows_per_person} rows, and this release "
                f"protects {rows_per_person}: the two do not add up. Nothing was charged; "
                f"release with rows_per_person = {status.rows_per_person} or more."
            )
        if not asked.within(status.remaining):
            raise LedgerError(
                f"The budget of {name!r} does not cover this. Budget: {status.budget}. Spent: {status.spent}. "
                f"Remaining: {status.remaining}. Asked: {asked}. Nothing was charged; ask for no more than remains."
            )

    def _damaged(self, finding: object) -> str:
        return (
            f"The ledger {self.path} is damaged or was changed by hand: {finding}. Nothing was charged. "
            "Put back the newest intact copy together with its mark, and do not release until then."
        )

    def _start_anew(self) -> str:
        return (
            "If it is lost, count what is missing as spent: start a new ledger (COVEY_LEDGER) "
            "with caps lowered by everything released so far."
        )

    # The file.

    def _create_file(self) -> None:
        """An empty file that only its owner can read; SQLite gives its journal the same permissions."""
        with _CREATING:
            if not self._missing():
                return
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(FileExistsError):  # another process was first
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))

    def _missing(self) -> bool:
        """Whether there is no ledger yet; one that its mark remembers was deleted and must not come back as fresh."""
        mark = self._read_mark()  # before the ledger: another process may be creating both
        if self.path.exists():
            return False
        self._check_mark(_Books(), mark)
        return True

    def _refuse_read_only(self) -> None:
        # The permission bits too: root may write to what its owner has closed, and should not.
        for place in (self.path, self.path.parent):
            if not os.access(place, os.W_OK) or not place.stat().st_mode & 0o222:
                raise LedgerError(
                    f"{place} is read-only, so nothing can be charged to the ledger. Make it writable (chmod u+w)."
                )

    @contextmanager
    def _reading(self) -> Iterator[_Transaction]:
        """The verified books, under a lock that keeps writers from committing meanwhile."""
        with self._errors_explained():
            if self._missing():
                yield _Transaction(None, _Books())
                return
            with closing(self._connect()) as connection:
                connection.execute("BEGIN")
                yield _Transaction(connection, self._verified(connection))

    @contextmanager
    def _writing(self) -> Iterator[_Transaction]:
        """The verified books under the write lock; what the block appended is committed at its end."""
        with self._errors_explained():
            if self._missing():
                yield _Transaction(None, _Books())
                return
            if self.path.is_file():
                self._refuse_read_only()
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                # Exclusive from here on keeps the lock past the commit, until the mark is written: marks never go back.
                # Not earlier: two processes that wait for the write lock would then hold read locks against each other.
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                transaction = _Transaction(connection, self._verified(connection))
                before = len(transaction.books.events)
                yield transaction
                if len(transaction.books.events) > before:
                    self._commit(transaction, before)

    def _commit(self, transaction: _Transaction, before: int) -> None:
        books, connection = transaction.books, transaction.connection
        assert connection is not None  # nosec B101 # for the type checker; append refuses without one
        # A process that died may have left the mark one event behind. It catches up before the ledger grows again, so
        # that a ledger is never ahead by more than one, and a larger gap is evidence.
        if self._read_mark()[0] < before:
            self._write_mark(before, books.events[before - 1].hash)
        connection.execute("COMMIT")
        try:
            self._write_mark(len(books.events), books.hash)
        except OSError as error:
            raise LedgerError(
                f"Event {len(books.events)} is in the ledger and stays, but {self.mark_path} could not be written "
                f"({error}). Make room or make it writable, then run the command again."
            ) from error

    def _connect(self) -> sqlite3.Connection:
        if self.path.is_dir():
            raise LedgerError(f"The ledger {self.path} is a folder. Give the path of a file (COVEY_LEDGER).")
        connection = sqlite3.connect(
            self.path.as_uri() + "?mode=rw", uri=True, timeout=LOCK_TIMEOUT_S, isolation_level=None
        )
        try:
            # EXTRA flushes the folder too: after a power cut a journal that came back would undo a commit.
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")  # macOS: fsync alone does not reach the platter
            connection.execute("PRAGMA cell_size_check = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _verified(self, connection: sqlite3.Connection) -> _Books:
        """Everything the ledger says, or a LedgerError that names the first thing wrong."""
        books = _Books()
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
        application = _pragma(connection, "application_id")
        if schema or application:
            if application != APPLICATION_ID:
                raise LedgerError(
                    f"{self.path} is a database of another program, not a covey ledger. Choose another file (COVEY_LEDGER)."
                )
            if _pragma(connection, "user_version") != FORMAT:
                raise LedgerError(f"The ledger {self.path} was written by another version of covey. Use that version.")
            if schema != [("table", "events", SCHEMA)]:
                raise LedgerError(self._damaged("its tables are not those that covey made"))
            # The lock protocol of _writing is that of the rollback journal.
            if _pragma(connection, "journal_mode") != "delete":
                raise LedgerError(self._damaged("its journal mode is not DELETE"))
            try:
                for row in connection.execute("SELECT sequence, body, hash FROM events ORDER BY sequence"):
                    books.read(*row)
            except _Tampered as finding:
                raise LedgerError(self._damaged(finding)) from None
        self._check_mark(books, self._read_mark())
        return books

    # The mark.

    def _read_mark(self) -> tuple[int, str]:
        try:
            text = self.mark_path.read_bytes()
        except FileNotFoundError:
            return 0, GENESIS
        try:
            mark = json.loads(text)
            count, last = mark["count"], mark["hash"]
            if type(count) is not int or count < 0 or type(last) is not str:
                raise ValueError
        except (ValueError, TypeError, KeyError, RecursionError):
            raise LedgerError(
                f"The ledger's mark {self.mark_path} is damaged. Put its newest intact copy back. {self._start_anew()}"
            ) from None
        return count, last

    def _write_mark(self, count: int, last: str) -> None:
        """Replace the mark in one step. Only under the ledger's write lock, so one fixed name for the draft will do."""
        draft = self.mark_path.with_name(self.mark_path.name + ".new")
        descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with open(descriptor, "wb") as file:
            file.write(_canonical({"count": count, "hash": last}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.mark_path)
        if os.name == "posix":
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _check_mark(self, books: _Books, mark: tuple[int, str]) -> None:
        count, last = mark
        found = len(books.events)
        counts = f"it holds {found} event{'s' * (found != 1)}, its mark {self.mark_path} says {count}"
        if count > found:
            raise LedgerError(
                f"The ledger {self.path} is older than its mark: {counts}. It was removed, cut or replaced by an "
                f"earlier copy. Put the newest copy back. {self._start_anew()}"
            )
        if count and books.events[count - 1].hash != last:
            raise LedgerError(
                f"The ledger {self.path} is not the one that its mark describes: event {count} differs. "
                f"Put the newest copy back. {self._start_anew()}"
            )
        if found > count + 1:
            raise LedgerError(
                f"The mark of the ledger {self.path} is missing or old: {counts}. Ledger and mark travel together; "
                f"put the newest mark back. {self._start_anew()}"
            )

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise LedgerError(self._explain(error)) from error
        except UnicodeError as error:  # SQLite quotes damaged bytes, and Python cannot decode the message
            raise LedgerError(self._damaged("its text is not readable")) from error
        except OSError as error:
            raise LedgerError(
                f"The ledger {self.path} cannot be used: {error}. Check its folder and permissions, "
                "or choose another file (COVEY_LEDGER)."
            ) from error

    def _explain(self, error: sqlite3.Error) -> str:
        # The low byte is the primary code. Python raises some errors itself, without one: text that is not UTF-8.
        match getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF:
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
                return (
                    f"The ledger {self.path} is locked by another process, for more than {LOCK_TIMEOUT_S:g} seconds. "
                    "Nothing was charged; wait until that process ends and try again."
                )
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return (
                    f"The ledger {self.path} is read-only, so nothing can be charged. Make it and its folder writable."
                )
            case sqlite3.SQLITE_NOTADB:
                return self._damaged("it is not an SQLite file")
            case sqlite3.SQLITE_FULL:
                return f"The disk of the ledger {self.path} is full. No noise was drawn; make room and try again."
            case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_IOERR:
                return (
                    f"The ledger {self.path} cannot be read or written ({error}). Check the disk and the permissions."
                )
            case _:
                return self._damaged(error)


class _Tampered(Exception):
    """An event that covey cannot have written; always turned into a LedgerError."""


@dataclass
class _Books:
    """The events read so far and what follows from them."""

    events: list[Event] = field(default_factory=list)
    datasets: dict[str, DatasetStatus] = field(default_factory=dict)
    released: dict[int, str] = field(default_factory=dict)
    hash: str = GENESIS

    def read(self, sequence: object, body: object, stored: object) -> Event:
        """Check a row against the chain and the rules, then count it."""
        expected = len(self.events) + 1
        if type(sequence) is not int or sequence != expected:
            raise _Tampered(f"event {expected} is missing")
        if type(body) is not str or (chained := _chained(self.hash, body)) != stored:
            raise _Tampered(f"the hash of event {sequence} does not match")
        event = _parse(sequence, body, chained)
        self._count(event)
        self.events.append(event)
        self.hash = event.hash
        return event

    def _count(self, event: Event) -> None:
        status = self.datasets.get(event.dataset)
        if (event.kind == "open") != (status is None):
            state = "was already open" if status else "had not been opened"
            raise _Tampered(f"at event {event.sequence} the dataset {event.dataset!r} {state}")
        if status is None:
            self.datasets[event.dataset] = DatasetStatus(event.dataset, event.amount, Amount(), 0)
        elif event.charge is not None:
            charge = self.events[event.charge - 1] if 0 < event.charge < event.sequence else None
            if charge is None or (charge.kind, charge.dataset) != ("charge", event.dataset):
                raise _Tampered(f"event {event.sequence} releases a charge that does not exist")
            if event.charge in self.released:
                raise _Tampered(f"event {event.sequence} releases a charge for the second time")
            self.released[event.charge] = event.digest or ""
        else:
            spent = status.spent + event.amount
            if not spent.within(status.budget):
                raise _Tampered(f"event {event.sequence} takes {event.dataset!r} past its cap")
            rows = event.rows_per_person or 0
            if rows < (status.rows_per_person or 1):
                raise _Tampered(f"event {event.sequence} charges {event.dataset!r} in another unit")
            unit = status.rows_per_person or rows
            self.datasets[event.dataset] = DatasetStatus(status.name, status.budget, spent, status.charges + 1, unit)


@dataclass
class _Transaction:
    """Verified books and the connection they came from; no connection while there is no file."""

    connection: sqlite3.Connection | None
    books: _Books

    def append(self, kind: str, dataset: str, **details: object) -> Event:
        if self.connection is None:
            raise LedgerError("The ledger's file disappeared while it was being opened. Try again.")
        if not self.books.events:
            self.connection.execute(SCHEMA)
            self.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.connection.execute(f"PRAGMA user_version = {FORMAT}")
        time = datetime.now(UTC).isoformat(timespec="seconds")
        body = _canonical({"kind": kind, "dataset": dataset, "time": time, **details})
        event = self.books.read(len(self.books.events) + 1, body, _chained(self.books.hash, body))
        self.connection.execute("INSERT INTO events VALUES (?, ?, ?)", (event.sequence, body, event.hash))
        return event


def _canonical(value: Mapping[str, object]) -> str:
    return _ENCODER.encode(value)


def _chained(previous: str, body: str) -> str:
    return sha256((previous + body).encode()).hexdigest()


def _parse(sequence: int, body: str, chained: str) -> Event:
    try:
        value: Any = json.loads(body)
        kind = value["kind"]
        fits = value.keys() == _KEYS[kind] and _canonical(value) == body
        fits = fits and all(type(item) is (int if key in _WHOLE else str) for key, item in value.items())
        amount = Amount(value.get("nano_epsilon", 0), value.get("atto_delta", 0))
        if not fits or not Amount().within(amount):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise _Tampered(f"event {sequence} is not one that covey writes") from None
    return Event(
        sequence=sequence,
        kind=kind,
        time=value["time"],
        dataset=value["dataset"],
        amount=amount,
        purpose=value.get("purpose"),
        charge=value.get("charge"),
        digest=value.get("digest"),
        hash=chained,
        rows_per_person=value.get("rows_per_person"),
    )


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _others(name: str, known: list[str]) -> str:
    """The names that a ledger knows, the one that may have been meant first."""
    if not known:
        return "It has none yet. "
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1)
    meant = f"Did you mean {folded[near[0]]!r}? " if near else ""
    shown = known[:MOST_NAMES] + ([f"{len(known) - MOST_NAMES} more"] if len(known) > MOST_NAMES else [])
    return f"{meant}It has: {', '.join(shown)}. "


def _check_text(value: Any, name: str) -> None:
    """Names end up in messages, tables and shell commands, so nothing in them may break a line or a terminal."""
    if not isinstance(value, str) or not 0 < len(value) <= MAX_TEXT:
        raise ParameterError(f"{name} must be a text of 1 to {MAX_TEXT} characters, got {value!r}.")
    if any(unicodedata.category(character) in ("Cc", "Cs", "Zl", "Zp") for character in value):
        raise ParameterError(f"{name} must not contain control characters or line breaks, got {value!r}.")


def _check_costs(
    epsilon: Any, delta: Any, epsilon_name: str = "epsilon", delta_name: str = "delta"
) -> tuple[Fraction, Fraction]:
    for value, name in ((epsilon, epsilon_name), (delta, delta_name)):
        # A float is refused: 0.1 is a little more than a tenth, and rounding up would charge for it.
        if isinstance(value, bool) or not isinstance(value, Rational):
            raise ParameterError(f"{name} must be a Fraction, got {value!r}. Write Fraction('0.1') for one tenth.")
    if not 0 < epsilon <= MAX_EPSILON:
        raise ParameterError(f"{epsilon_name} must be positive and at most {MAX_EPSILON}, got {_number(epsilon)}.")
    if not 0 <= delta < 1:
        raise ParameterError(f"{delta_name} must be 0 (pure privacy) or positive and below 1, got {_number(delta)}.")
    return Fraction(epsilon), Fraction(delta)


def _number(value: Rational) -> str:
    try:
        return str(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return "a number of thousands of digits"


def _decimal(units: int, places: int) -> str:
    """Exact: 1500000000 nano is 1.5; what begins past the fourth place is written with an exponent."""
    digits = str(units).rstrip("0")
    if not digits:
        return "0"
    exponent = len(str(units)) - 1 - places
    if exponent < -4:
        return f"{digits[0]}.{digits[1:]}".rstrip(".") + f"e{exponent}"
    whole, rest = divmod(units, 10**places)
    return f"{whole}.{rest:0{places}d}".rstrip("0").rstrip(".")
