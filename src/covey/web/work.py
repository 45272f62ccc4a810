"""One table on its way to a bundle: its rows, the schema as far as it has come, the choices made, and its releases."""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import RLock

from covey.errors import CoveyError, ParameterError
from covey.methods.learning import expected_sizes
from covey.methods.regain.predict import Prediction
from covey.privacy.budget import budget_for
from covey.privacy.unit import Unit
from covey.table.codec import Codec
from covey.table.dialects import Dialect
from covey.table.package import is_package
from covey.table.pairing import with_links_that_hold
from covey.table.schema import Rule, Schema
from covey.table.sources import ARROW_SUFFIXES, check_encoding, read_table
from covey.web.blur import Blur, blurred
from covey.web.choices import Choices
from covey.web.drafts import ColumnDraft, drafts, edited, refused
from covey.web.jobs import Job
from covey.web.pace import anonymous_seconds
from covey.web.pictures import Picture, pictures
from covey.web.security import Form, Refused
from covey.workflow import Fit, check, draft, plan

SUFFIXES = (
    ".csv",
    ".csv.gz",
    ".csv.zst",
    ".tsv",
    ".txt",
    ".xlsx",
    *ARROW_SUFFIXES,
)  # what the reader of the command line takes from files

LINKED = (
    "{name!r} describes persons with events, two linked tables, and this app takes one table at a time. The command line has the "
    "same steps for both: covey check {name}, covey plan {name} --persons …, covey release {name} --epsilon … --dataset …; its "
    "charges appear in the ledger here. Events alone, without their links, can be released here with a column of persons."
)


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
        self.columns: tuple[ColumnDraft, ...] = ()
        self.missing_values: tuple[str, ...] = ("",)
        self.dialect = Dialect()
        self.assumed = ""  # how the file was read, where it is not plain
        self.rules: tuple[Rule, ...] = ()
        self.choices = Choices()
        self.chosen = False
        self.review: str | None = None
        self._sizes: tuple[int, ...] | None = None
        self._fit: tuple[tuple[Schema, str], Fit] | None = None
        self._pictures: dict[tuple[str, str], Picture] = {}  # of true columns, by name and kind, in memory alone
        self.jobs: dict[str, Job] = {}  # by the review that ordered them

    # The table.

    def take(self, path: Path, name: str, encoding: str, limit: int, schema: tuple[Path, str] | None = None) -> None:
        """Read an uploaded table, and draft its schema unless one was given; both come with the names people know."""
        if self.job is not None and not self.job.over:
            raise Refused(409, "This table is being released. Wait until that is done.")
        suffix = next((s for s in SUFFIXES if name.lower().endswith(s)), None)
        if suffix is None and _links(path, name):
            raise ParameterError(LINKED.format(name=name))
        if suffix is None:
            raise ParameterError(
                f"{name!r} is not a table covey can read. Choose a .csv, .tsv, .xlsx, .parquet or .arrow file; "
                "text may be compressed (.gz, .zst)."
            )
        check_encoding(encoding)
        written = Dialect(encoding=None if encoding == "utf-8" else encoding)
        known = None if schema is None else _load_schema(*schema)
        place = self.folder / f"table-{secrets.token_hex(4)}{suffix}"
        os.replace(path, place)
        try:
            # A schema that is whole names the columns that must be there; an unfinished one is finished at the next step.
            whole = False
            if known is None:
                found = draft(place, written, 4 * limit)
                start, notes = found.schema, found.notes
            else:
                whole = all(field.confirmed for field in known.fields)
                start, notes = known.read_as(written), ()
            rows = read_table(place, start if known is None or whole else None, encoding, size_limit=4 * limit).rows
        except BaseException as error:
            place.unlink()
            if isinstance(error, CoveyError):
                raise calling(error, place, name) from None
            raise
        with self.lock:
            self.forget_table()
            self.table = Uploaded(place, name, rows, encoding)
            self.columns = drafts(start, notes)
            self.assumed = "; ".join(note.choice for note in notes if note.field is None)
            self.missing_values, self.rules, self.dialect = start.missing_values, start.rules, start.dialect
            self.changed()

    def forget_table(self) -> None:
        """Remove the true rows."""
        if self.table is not None:
            with suppress(FileNotFoundError):
                self.table.path.unlink()
            self.table = self._fit = None
            self._pictures = {}

    # The schema.

    def schema(self) -> Schema:
        """The public schema as far as it has come."""
        fields = with_links_that_hold([column.field for column in self.columns if column.kept])
        if not fields:
            raise ParameterError("every column is left out. Keep at least one.")
        drafted = not all(f.confirmed for f in fields)
        return Schema(fields, self.missing_values, self.rules, drafted=drafted, dialect=self.dialect)

    def set_column(self, place: int, column: ColumnDraft) -> None:
        """Change one column, or refuse what the schema does not allow."""
        before = self.columns
        self.columns = (*before[:place], column, *before[place + 1 :])
        try:
            self.schema()
        except CoveyError:
            self.columns = before
            raise
        self.changed()

    def edit_column(self, place: int, form: Form) -> None:
        """Take over what a form says about a column; what cannot be is kept as it was typed, with the reason."""
        column = edited(self.columns[place], form)
        try:
            self.set_column(place, column)
        except CoveyError as error:  # a rule may need the column as it was
            self.set_column(place, refused(self.columns[place], form, error))

    @property
    def together(self) -> list[ColumnDraft]:
        """Columns that may be confirmed with one word: kept, not confirmed, and without a warning."""
        return [c for c in self.columns if c.kept and not c.field.confirmed and not c.guarded]

    def together_key(self) -> str:
        """Changes whenever what `confirm_together` would make public changes."""
        shown = self.schema().to_dict()
        return sha256(json.dumps([[c.field.name for c in self.together], shown]).encode()).hexdigest()

    def confirm_together(self, key: str) -> None:
        """Confirm what a page with this key has shown, and nothing else."""
        for column in self.together:
            if column.problem:
                raise ParameterError(f"{column.field.name}: {column.problem}")
        if key != self.together_key():
            raise Refused(409, "Something was changed after this page was made. Look at it again.")
        names = {c.field.name for c in self.together}
        done = self.schema().confirm(sorted(names))
        self.columns = tuple(replace(c, field=done[c.field.name]) if c.field.name in names else c for c in self.columns)
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
                schema = self.schema()
                self._sizes = expected_sizes(schema) if schema.learns else Codec(schema).domain_sizes
            return self._sizes

    def blur(self, choices: Choices) -> Blur | None:
        """What noise will do, on simulated rows of the declared size: never on true ones."""
        names, sizes = [field.name for field in self.schema().encoded], self.sizes()
        if len(names) != len(sizes):
            return None
        return blurred(names, sizes, self.counted(choices), budget_for(choices.epsilon, choices.delta, choices.unit))

    def predict(self, choices: Choices) -> Prediction:
        """What a release would be like, from public sizes alone."""
        return prediction(self.sizes(), self.counted(choices), choices.epsilon, choices.delta, choices.unit)

    def seconds(self, choices: Choices) -> dict[str, float]:
        """Seconds that a release is expected to take, stage by stage."""
        if choices.mode == "private":
            return self.predict(choices).stages
        return anonymous_seconds(self.counted(choices) * len(self.columns))

    def counted(self, choices: Choices) -> int:
        """The public number that a release counts: persons, where a column says whose a row is, otherwise rows."""
        if not choices.person or choices.mode != "private":
            return self.table.rows if self.table else 1
        if choices.person not in {column.field.name for column in self.columns}:
            raise ParameterError(f"the table has no column {choices.person!r}. Choose one that says whose a row is.")
        return self.fit(choices.person).persons or 1

    def picture(self, place: int) -> Picture | None:
        """A picture of a true column that is kept. Confidential: for its owner's screen, written nowhere."""
        with self.lock:
            column = self.columns[place]
            key = (column.field.name, column.field.type)
            if self.table is None or not column.kept or column.field.constant is not None:
                return None
            if key not in self._pictures:  # all at once: reading the table is what takes time
                fields = [c.field for c in self.columns if c.kept and c.field.constant is None]
                found = pictures(self.table.path, self.dialect, fields, self.missing_values)
                self._pictures |= {(f.name, f.type): found[f.name] for f in fields if f.name in found}
            return self._pictures.get(key)

    def fit(self, person: str = "") -> Fit:
        """How the true table fits the schema. Confidential: for its owner's screen, written nowhere."""
        with self.lock:
            if self.table is None:
                raise ParameterError("the table was removed from the desk. Give it again at the first step.")
            schema = self.schema()
            if self._fit is None or self._fit[0] != (schema, person):
                self._fit = ((schema, person), check(self.table.path, schema, person or None))
            return self._fit[1]

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
    sizes: tuple[int, ...], rows: int, epsilon: Fraction, delta: Fraction, rows_per_person: Unit
) -> Prediction:
    """`plan`, remembered: the page asks for the same public numbers again and again."""
    return plan(sizes, rows, epsilon, delta, rows_per_person=rows_per_person)


def calling(error: CoveyError, path: Path, name: str) -> CoveyError:
    """A refusal with the name that its owner knows instead of a path of ours."""
    error.args = (str(error).replace(str(path), name),)
    return error


def _links(path: Path, name: str) -> bool:
    """Whether an uploaded file describes linked tables; what cannot be read does not."""
    try:
        return is_package(path, name)
    except CoveyError:
        return False


def _load_schema(path: Path, name: str) -> Schema:
    """A schema that its owner knows by another name."""
    place = path.with_suffix(".yaml" if name.lower().endswith((".yaml", ".yml")) else ".json")
    os.replace(path, place)
    try:
        if is_package(place):
            raise ParameterError(LINKED.format(name=name))
        return Schema.load(place)
    except CoveyError as error:
        raise calling(error, place, name) from None
    finally:
        place.unlink()
