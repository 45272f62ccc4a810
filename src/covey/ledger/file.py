"""The ledger's SQLite file and the mark beside it, and the chain of events in it: verified, and written in one step each.

What is found and what is not is told in the package's docstring.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from threading import Lock
from typing import Any, Literal

from covey.engine.unit import ADD_REMOVE, ALL_ROWS, REPLACE, Neighbours, Unit, adds_up
from covey.errors import LedgerError
from covey.ledger.status import Amount, Composition, DatasetStatus
from covey.paths import is_special, scheme_of

# A charge takes milliseconds: whoever holds the lock for longer hangs, and the steward should know.
LOCK_TIMEOUT_S = 5.0

APPLICATION_ID = 0x636F7679  # "covy" in the file's header: another program's database is never taken for a ledger
FORMAT = 5  # of the events; earlier ones did not say how charges are counted, or which neighbours a cap is about
SCHEMA = "CREATE TABLE events (sequence INTEGER PRIMARY KEY, body TEXT NOT NULL, hash TEXT NOT NULL)"

START_ANEW = (
    "If it is lost, count what is missing as spent: start a new ledger (COVEY_LEDGER) "
    "with caps lowered by everything released so far."
)

# Closing any descriptor of a file drops every POSIX lock the process has on it, so only one thread creates at a time.
_CREATING = Lock()

DISK = tuple(getattr(sqlite3, f"SQLITE_{code}") for code in ("PERM", "READONLY", "FULL", "CANTOPEN", "IOERR"))
GENESIS = "0" * 64  # what the first event is chained to
FIRST = "first"  # the composition of a dataset whose first charge decides it

_OPEN = {"kind", "time", "dataset", "nano_epsilon", "atto_delta", "composition", "neighbours"}
_KEYS = {
    "open": _OPEN,
    "charge": _OPEN | {"rows_per_person", "purpose"},
    "release": {"kind", "time", "dataset", "charge", "digest"},
}
_GAUSSIAN = "quecto_rho"  # only charges of Gaussian releases have it
_COMPOSITIONS: dict[str, set[str | None]] = {
    "open": {FIRST, "sum", "gaussian"},
    "charge": {"sum", "gaussian"},
    "release": {None},
}
_WHOLE = {"nano_epsilon", "atto_delta", "rows_per_person", "charge", _GAUSSIAN}

_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Event:
    """One line of the ledger; `amount` is the cap of an "open" and the cost of a "charge", `composition` how both are counted.

    That of a charge is its receipt: noise may be drawn, and one release may name it.
    """

    sequence: int
    kind: Literal["open", "charge", "release"]
    time: str
    dataset: str
    amount: Amount
    hash: str
    purpose: str | None = None
    charge: int | None = None
    digest: str | None = None
    rows_per_person: Unit | None = None
    quecto_rho: int | None = None
    composition: Composition | None = None
    neighbours: Neighbours = REPLACE


@dataclass
class Books:
    """The events read so far, what follows from them, and the connection that they came from: none while there is no file."""

    connection: sqlite3.Connection | None = None
    events: list[Event] = field(default_factory=list)
    datasets: dict[str, DatasetStatus] = field(default_factory=dict)
    released: dict[int, str] = field(default_factory=dict)
    hash: str = GENESIS

    def read(self, sequence: object, body: object, stored: object) -> Event:
        """Check a row against the chain and the rules, then count it. A ValueError says what covey cannot have written."""
        expected = len(self.events) + 1
        if type(sequence) is not int or sequence != expected:
            raise ValueError(f"event {expected} is missing")
        if type(body) is not str or (chained := chained_hash(self.hash, body)) != stored:
            raise ValueError(f"the hash of event {sequence} does not match")
        event = parse(sequence, body, chained)
        self._count(event)
        self.events.append(event)
        self.hash = event.hash
        return event

    def append(self, kind: str, dataset: str, **details: object) -> Event:
        """Chain an event to the last one; it is on the disk once the block of `writing` ends."""
        if self.connection is None:
            raise LedgerError("The ledger's file disappeared while it was being opened. Try again.")
        if not self.events:
            self.connection.execute(SCHEMA)
            self.connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self.connection.execute(f"PRAGMA user_version = {FORMAT}")
        time = datetime.now(UTC).isoformat(timespec="seconds")
        body = canonical({"kind": kind, "dataset": dataset, "time": time, **details})
        event = self.read(len(self.events) + 1, body, chained_hash(self.hash, body))
        self.connection.execute("INSERT INTO events VALUES (?, ?, ?)", (event.sequence, body, event.hash))
        return event

    def _count(self, event: Event) -> None:
        status = self.datasets.get(event.dataset)
        if (event.kind == "open") != (status is None):
            state = "was already open" if status else "had not been opened"
            raise ValueError(f"at event {event.sequence} the dataset {event.dataset!r} {state}")
        if status is None:
            self.datasets[event.dataset] = DatasetStatus(
                event.dataset, event.amount, event.composition, neighbours=event.neighbours
            )
        elif event.charge is not None:
            charge = self.events[event.charge - 1] if 0 < event.charge < event.sequence else None
            if charge is None or (charge.kind, charge.dataset) != ("charge", event.dataset):
                raise ValueError(f"event {event.sequence} releases a charge that does not exist")
            if event.charge in self.released:
                raise ValueError(f"event {event.sequence} releases a charge for the second time")
            self.released[event.charge] = event.digest or ""
        else:
            rows = event.rows_per_person or 0
            if not adds_up(rows, status.rows_per_person):
                raise ValueError(f"event {event.sequence} charges {event.dataset!r} in another unit")
            charged = status.with_charge(event.amount, rows, event.quecto_rho, event.neighbours)
            if charged is None:
                raise ValueError(f"event {event.sequence} takes {event.dataset!r} past its cap")
            if charged.composition != event.composition:
                raise ValueError(f"event {event.sequence} counts {event.dataset!r} in another way")
            self.datasets[event.dataset] = charged


def _has_type(key: str, item: object) -> bool:
    if key == "rows_per_person" and item == ALL_ROWS:
        return True
    return type(item) is (int if key in _WHOLE else str)


def canonical(value: Mapping[str, object]) -> str:
    """The one way to write an object as JSON, so that equal events have equal hashes."""
    return _ENCODER.encode(value)


def chained_hash(previous: str, body: str) -> str:
    """The hash of an event, which fixes all events before it."""
    return sha256((previous + body).encode()).hexdigest()


def parse(sequence: int, body: str, chained: str) -> Event:
    """An event from its JSON, or a ValueError where covey would not have written it so."""
    try:
        value: Any = json.loads(body)
        kind = value["kind"]
        optional = {_GAUSSIAN} if kind == "charge" and value.get(_GAUSSIAN, 0) else set()
        fits = value.keys() == _KEYS[kind] | optional and canonical(value) == body
        fits = fits and all(_has_type(key, item) for key, item in value.items())
        amount = Amount(value.get("nano_epsilon", 0), value.get("atto_delta", 0))
        composition = value.get("composition")
        fits = fits and Amount().within(amount) and composition in _COMPOSITIONS[kind]
        fits = fits and value.get("neighbours", REPLACE) in (REPLACE, ADD_REMOVE)
        # What is Gaussian has a μ, and so a δ.
        gaussian = _GAUSSIAN in value or (kind == "open" and composition == "gaussian")
        if not fits or value.get(_GAUSSIAN, 1) < 1 or (gaussian and not amount.atto_delta):
            raise ValueError
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ValueError(f"event {sequence} is not one that covey writes") from None
    rest = {key: value[key] for key in value if key not in ("nano_epsilon", "atto_delta", "composition")}
    way = None if composition == FIRST else composition
    return Event(sequence=sequence, amount=amount, hash=chained, composition=way, **rest)


class LedgerFile:
    """The file at a path. Whatever is wrong with it is a LedgerError that says what to do."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        if scheme := scheme_of(path):
            raise LedgerError(
                f"A ledger is a file on a local disk, and {scheme}:// is a URL. Give a path (COVEY_LEDGER)."
            )
        if is_special(Path(path)):
            raise LedgerError(f"The ledger {os.fspath(path)} is a pipe or a device. Give the path of a file.")
        # Resolved, so that a ledger reached through a link has the same mark.
        self.path = Path(os.path.realpath(path))

    @property
    def mark_path(self) -> Path:
        """The mark: how many events there were, and the last hash."""
        return self.path.with_name(self.path.name + ".mark")

    def _damaged(self, finding: object) -> str:
        """What to say of a file that covey did not leave like this."""
        return (
            f"The ledger {self.path} is damaged or was changed by hand: {finding}. Nothing was charged. "
            "Put back the newest intact copy together with its mark, and do not release until then."
        )

    def _create(self) -> None:
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
        self._check_mark(Books(), mark)
        return True

    def _refuse_read_only(self) -> None:
        # The permission bits too: root may write to what its owner has closed, and should not.
        for place in (self.path, self.path.parent):
            if not os.access(place, os.W_OK) or not place.stat().st_mode & 0o222:
                raise LedgerError(
                    f"{place} is read-only, so nothing can be charged to the ledger. Make it writable (chmod u+w)."
                )

    @contextmanager
    def _reading(self) -> Iterator[Books]:
        """The verified books, under a lock that keeps writers from committing meanwhile."""
        with self._errors_explained():
            if self._missing():
                yield Books()
                return
            with closing(self._connect()) as connection:
                connection.execute("BEGIN")
                yield self._verified(connection)

    @contextmanager
    def _writing(self) -> Iterator[Books]:
        """The verified books under the write lock; what the block appended is committed at its end."""
        with self._errors_explained():
            if self._missing():
                yield Books()
                return
            if self.path.is_file():
                self._refuse_read_only()
            with closing(self._connect()) as connection:
                connection.execute("BEGIN IMMEDIATE")
                # Exclusive from here on keeps the lock past the commit, until the mark is written: marks never go back.
                # Not earlier: two processes that wait for the write lock would then hold read locks against each other.
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                books = self._verified(connection)
                before = len(books.events)
                yield books
                if len(books.events) > before:
                    self._commit(connection, books, before)

    def _commit(self, connection: sqlite3.Connection, books: Books, before: int) -> None:
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

    def _verified(self, connection: sqlite3.Connection) -> Books:
        """Everything the ledger says, or a LedgerError that names the first thing wrong."""
        books = Books(connection)
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
            # The lock protocol of `_writing` is that of the rollback journal.
            if _pragma(connection, "journal_mode") != "delete":
                raise LedgerError(self._damaged("its journal mode is not DELETE"))
            try:
                for row in connection.execute("SELECT sequence, body, hash FROM events ORDER BY sequence"):
                    books.read(*row)
            except ValueError as finding:
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
                f"The ledger's mark {self.mark_path} is damaged. Put its newest intact copy back. {START_ANEW}"
            ) from None
        return count, last

    def _write_mark(self, count: int, last: str) -> None:
        """Replace the mark in one step. Only under the ledger's write lock, so one fixed name for the draft will do."""
        draft = self.mark_path.with_name(self.mark_path.name + ".new")
        descriptor = os.open(draft, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        with open(descriptor, "wb") as file:
            file.write(canonical({"count": count, "hash": last}).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, self.mark_path)
        if os.name == "posix":
            folder = os.open(self.path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

    def _check_mark(self, books: Books, mark: tuple[int, str]) -> None:
        count, last = mark
        found = len(books.events)
        counts = f"it holds {found} event{'s' * (found != 1)}, its mark {self.mark_path} says {count}"
        if count > found:
            raise LedgerError(
                f"The ledger {self.path} is older than its mark: {counts}. It was removed, cut or replaced by an "
                f"earlier copy. Put the newest copy back. {START_ANEW}"
            )
        if count and books.events[count - 1].hash != last:
            raise LedgerError(
                f"The ledger {self.path} is not the one that its mark describes: event {count} differs. "
                f"Put the newest copy back. {START_ANEW}"
            )
        if found > count + 1:
            raise LedgerError(
                f"The mark of the ledger {self.path} is missing or old: {counts}. Ledger and mark travel together; "
                f"put the newest mark back. {START_ANEW}"
            )

    @contextmanager
    def _errors_explained(self) -> Iterator[None]:
        """Turn what SQLite and the system say into a LedgerError with a way out."""
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
            case sqlite3.SQLITE_NOTADB:
                return self._damaged("it is not an SQLite file")
            case code if code in DISK:
                return (
                    f"The ledger {self.path} cannot be read or written ({error}). No noise was drawn; check the disk, make "
                    "room, make the file and its folder writable, and try again."
                )
            case _:
                return self._damaged(error)


def _pragma(connection: sqlite3.Connection, name: str) -> Any:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]
