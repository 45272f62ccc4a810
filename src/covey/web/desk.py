"""What the app remembers while it runs: tables on the desk, the choices made for each, and a private folder for the rows.

The folder lies beside the ledger, is closed to other people, and goes when the app ends. If the app is killed, the next
start finds the folder without its lock and removes it.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from threading import Lock, RLock
from typing import IO, Any

from covey.errors import CoveyError, ParameterError
from covey.methods.regain.predict import Prediction, predict
from covey.privacy.ledger import DatasetStatus, Ledger
from covey.table.codec import Codec
from covey.table.metadata import draft
from covey.table.schema import Field, Rule, Schema
from covey.table.sources import ARROW_SUFFIXES, check_encoding, read_table
from covey.web.jobs import Job, Jobs
from covey.web.security import Refused

MOST_WORKS = 200
IDLE_SECONDS = 4 * 3600
SUFFIXES = (".csv", ".csv.gz", *ARROW_SUFFIXES)


@dataclass(frozen=True)
class Choices:
    """What the steward chose at the privacy step."""

    mode: str = "private"
    epsilon: Fraction = Fraction(1)
    delta: Fraction = Fraction(0)
    dataset: str = ""
    rows: int | None = None
    rows_per_person: int = 1
    confirm_large_epsilon: bool = False
    group_size: int = 20
    sensitive: tuple[str, ...] = ()
    parquet: bool = False


@dataclass(frozen=True)
class Column:
    """A column of the table: its field, and whether it is part of the release."""

    field: Field
    kept: bool = True


@dataclass(frozen=True)
class Uploaded:
    """A table in the private folder, and the name that its owner knows it by."""

    path: Path
    name: str
    rows: int
    encoding: str


class Work:
    """One table on its way to a bundle."""

    def __init__(self, folder: Path) -> None:
        self.id = folder.name
        self.folder = folder
        self.lock = RLock()
        self.touched = time.monotonic()
        self.table: Uploaded | None = None
        self.columns: tuple[Column, ...] = ()
        self.missing_values: tuple[str, ...] = ("",)
        self.rules: tuple[Rule, ...] = ()
        self.choices = Choices()
        self.chosen = False
        self.review: str | None = None
        self._sizes: tuple[int, ...] | None = None
        self.jobs: dict[str, Job] = {}  # by the review that ordered them

    # The table.

    def take(self, path: Path, name: str, encoding: str, limit: int, schema: tuple[Path, str] | None = None) -> None:
        """Read an uploaded table, and draft its schema unless one was given; both come with the names people know."""
        if self.job is not None and not self.job.over:
            raise Refused(409, "This table is being released. Wait until that is done.")
        suffix = next((s for s in SUFFIXES if name.lower().endswith(s)), None)
        if suffix is None:
            raise ParameterError(
                f"{name!r} is not a table covey can read. Choose a .csv, .csv.gz, .parquet or .arrow file."
            )
        check_encoding(encoding)
        known = None if schema is None else _load_schema(*schema)
        place = self.folder / f"table-{secrets.token_hex(4)}{suffix}"
        os.replace(path, place)
        try:
            # A schema that is whole names the columns that must be there; an unfinished one is finished at the next step.
            whole = known is not None and all(field.confirmed for field in known.fields)
            table = read_table(place, known if whole else None, encoding, size_limit=4 * limit)
            drafted = draft(table) if known is None else known
        except BaseException as error:
            place.unlink()
            if isinstance(error, CoveyError):
                raise type(error)(str(error).replace(str(place), name)) from None
            raise
        with self.lock:
            self.forget_table()
            self.table = Uploaded(place, name, table.rows, encoding)
            self.columns = tuple(Column(f) for f in drafted.fields)
            self.missing_values, self.rules = drafted.missing_values, drafted.rules
            self.changed()

    def forget_table(self) -> None:
        """Remove the true rows."""
        if self.table is not None:
            with suppress(FileNotFoundError):
                self.table.path.unlink()
            self.table = None

    # The schema.

    def schema(self) -> Schema:
        """The public schema as far as it has come."""
        fields = tuple(column.field for column in self.columns if column.kept)
        if not fields:
            raise ParameterError("every column is left out. Keep at least one.")
        return Schema(fields, self.missing_values, self.rules, draft=not all(f.confirmed for f in fields))

    def set_column(self, place: int, column: Column) -> None:
        """Change one column, or refuse what the schema does not allow."""
        before = self.columns
        self.columns = (*before[:place], column, *before[place + 1 :])
        try:
            self.schema()
        except CoveyError:
            self.columns = before
            raise
        self.changed()

    def confirm_all(self) -> None:
        """Confirm every column that is kept."""
        confirmed = self.schema().confirm()
        self.columns = tuple(replace(c, field=confirmed[c.field.name]) if c.kept else c for c in self.columns)
        self.changed()

    def set_rules(self, rules: tuple[Rule, ...]) -> None:
        """Change the rules, or refuse what the schema does not allow."""
        before, self.rules = self.rules, rules
        try:
            Codec(self.schema())  # refuses rules that contradict each other
        except CoveyError:
            self.rules = before
            raise
        self.changed()

    @property
    def unconfirmed(self) -> list[str]:
        """Columns that are kept and not confirmed as public."""
        return [c.field.name for c in self.columns if c.kept and not c.field.confirmed]

    @property
    def confirmed(self) -> bool:
        """Whether the whole schema is public."""
        return bool(self.columns) and not self.unconfirmed and any(c.kept for c in self.columns)

    def sizes(self) -> tuple[int, ...]:
        """Categories of each attribute, which are public once the schema is confirmed."""
        with self.lock:
            if self._sizes is None:
                self._sizes = Codec(self.schema()).domain_sizes
            return self._sizes

    def predict(self, choices: Choices) -> Prediction:
        """What a release would be like, from public sizes alone."""
        rows = self.table.rows if self.table else 1
        return prediction(self.sizes(), rows, choices.epsilon, choices.delta, choices.rows_per_person)

    # Steps.

    def changed(self) -> None:
        """A review made before this no longer says what would happen."""
        self.review = self._sizes = None

    def review_key(self) -> str:
        """The key of the review that stands now; one review makes one release."""
        with self.lock:
            if self.review is None:
                self.review = secrets.token_hex(16)
            return self.review

    @property
    def job(self) -> Job | None:
        """The newest job."""
        return next(reversed(self.jobs.values()), None)

    def step(self) -> str:
        """How far this table has come."""
        if self.table is None and not self.jobs:
            return "table"
        if not self.confirmed:
            return "columns"
        if self.job is not None:
            return "bundle" if self.job.state == "done" else "release"
        return "review" if self.chosen else "rules"

    def reachable(self) -> set[str]:
        """The steps that make sense now."""
        steps = {"table"}
        if self.columns:
            steps.add("columns")
        if self.confirmed and self.table is not None:
            steps |= {"rules", "privacy"} | ({"review"} if self.chosen else set())
        if self.job is not None:
            steps.add("release")
            if self.job.state == "done":
                steps.add("bundle")
        return steps


@lru_cache(maxsize=4096)
def prediction(
    sizes: tuple[int, ...], rows: int, epsilon: Fraction, delta: Fraction, rows_per_person: int
) -> Prediction:
    """`predict`, remembered: the page asks for the same public numbers again and again."""
    return predict(sizes, rows, epsilon, delta, rows_per_person=rows_per_person)


def _load_schema(path: Path, name: str) -> Schema:
    """A schema that its owner knows by another name."""
    place = path.with_suffix(".yaml" if name.lower().endswith((".yaml", ".yml")) else ".json")
    os.replace(path, place)
    try:
        return Schema.load(place)
    except CoveyError as error:
        raise type(error)(str(error).replace(str(place), name)) from None
    finally:
        place.unlink()


class Desk:
    """Everything on the desk, and the private folder under it."""

    def __init__(self, ledger: Ledger, out: Path, upload_limit: int) -> None:
        self.ledger, self.out, self.upload_limit = ledger, out, upload_limit
        self.jobs = Jobs()
        self._works: dict[str, Work] = {}
        self._lock = Lock()
        self.folder, self._hold = _private_folder(ledger.path.parent / "desk")

    def works(self) -> list[Work]:
        """Every table, the newest first."""
        with self._lock:
            return list(reversed(self._works.values()))

    def new_work(self) -> Work:
        """Make room for another table."""
        self.sweep()
        with self._lock:
            if len(self._works) >= MOST_WORKS:
                raise Refused(409, "There are too many tables on the desk. Close some first.")
            folder = self.folder / secrets.token_hex(8)
            folder.mkdir(mode=0o700)
            return self._works.setdefault(folder.name, Work(folder))

    def work(self, name: str) -> Work:
        """A table by its key."""
        with self._lock:
            found = self._works.get(name)
        if found is None:
            raise Refused(404, "This table is no longer on the desk. Start again from the first page.")
        found.touched = time.monotonic()
        return found

    def close_work(self, work: Work) -> None:
        """Take a table off the desk and remove its rows; a release that is charged finishes first."""
        if work.job is not None and not work.job.over and not work.job.cancel():
            raise Refused(409, "This table is being released. Wait until that is done.")
        with self._lock:
            self._works.pop(work.id, None)
        shutil.rmtree(work.folder, ignore_errors=True)

    def sweep(self) -> None:
        """Tables that nobody has touched for hours go, and their rows with them."""
        for work in self.works():
            if time.monotonic() - work.touched > IDLE_SECONDS and (work.job is None or work.job.over):
                self.close_work(work)

    def datasets(self) -> list[DatasetStatus]:
        """What the ledger knows."""
        return self.ledger.datasets()

    def order(self, work: Work) -> Job:
        """Write down what was chosen, as the worker and the command line understand it."""
        if work.table is None:
            raise ParameterError("the table was removed from the desk. Give it again at the first step.")
        work.schema().require_confirmed()  # also in anonymous mode: the schema goes out with the bundle
        key = secrets.token_hex(4)
        schema = work.folder / f"schema-{key}.json"
        with private_file(schema) as file:
            json.dump(work.schema().to_dict(), file, indent=2, ensure_ascii=False)
        choices = work.choices
        stamp = datetime.now(UTC).strftime("%Y%m%d-%H%M%S")
        order: dict[str, Any] = {
            "table": str(work.table.path),
            "schema": str(schema),
            "out": str(self.out / f"release-{stamp}-{key}"),
            "rows": choices.rows,
            "parquet": choices.parquet,
            "encoding": work.table.encoding,
        }
        if choices.mode == "private":
            order |= {
                "epsilon": str(choices.epsilon),
                "delta": str(choices.delta),
                "dataset": choices.dataset,
                "rows_per_person": choices.rows_per_person,
                "confirm_large_epsilon": choices.confirm_large_epsilon,
                "ledger": str(self.ledger.path),
                "purpose": f"release (app, {key})",
            }
        else:
            kept = {column.field.name for column in work.columns if column.kept}
            order |= {"group_size": choices.group_size, "sensitive": [n for n in choices.sensitive if n in kept]}
        names = {str(work.table.path): work.table.name, str(schema): "the schema"}
        return Job(order, work.folder, names)

    def release(self, work: Work, key: str) -> Job:
        """Start the release of a review; the same review again gives the same job, so it is charged once."""
        with work.lock:
            if key in work.jobs:
                return work.jobs[key]
            if key != work.review:
                raise Refused(409, "Something was changed after this review was made. Look at it again.")
            if work.job is not None and not work.job.over:
                raise Refused(409, "A release of this table is under way. Wait until it is done.")
            work.jobs[key] = job = self.order(work)
        return self.jobs.start(job)

    def close(self) -> None:
        """End all jobs that can be ended, wait for the others, and remove every row."""
        self.jobs.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        _let_go(self.folder, self._hold)


@contextmanager
def private_file(path: Path) -> Iterator[IO[str]]:
    """A new text file that nobody else can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        yield file


def _private_folder(home: Path) -> tuple[Path, IO[bytes]]:
    """A fresh folder for this start, and the lock that says it is in use; folders without a holder are removed."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        for lock in home.glob("*.lock"):
            with lock.open("rb") as file:
                if _hold(file):
                    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                    lock.unlink()
        folder = home / secrets.token_hex(8)
        mine = os.fdopen(os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "rb")
        if not _hold(mine):
            raise ParameterError("another start of covey is tidying up. Try again.")
        folder.mkdir(mode=0o700)
    except OSError as error:
        raise ParameterError(f"the private folder {home} cannot be made: {error.strerror}. Choose --ledger.") from None
    return folder, mine


if sys.platform == "win32":  # pragma: no cover - there a folder left by a crash stays until it is removed by hand

    def _hold(file: IO[bytes]) -> bool:
        return file.writable()
else:
    import fcntl

    def _hold(file: IO[bytes]) -> bool:
        """Take the lock of a folder; False if its app is alive."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def _let_go(folder: Path, hold: IO[bytes]) -> None:
    with suppress(OSError):
        folder.with_suffix(".lock").unlink()
    hold.close()
