"""One table on its way to a bundle: its rows, the schema as far as it has come, the choices made, and its releases."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any

from covey.errors import CoveyError, ParameterError
from covey.methods.learning import expected_attributes, expected_sizes, with_known_domains
from covey.methods.regain.predict import Prediction, predict
from covey.orders import AnonymousOrder, PrivateOrder, not_taken
from covey.privacy.budget import Budget, budget_for
from covey.privacy.unit import ALL_ROWS, Neighbours, Unit
from covey.table.description import Description
from covey.table.dialects import Dialect
from covey.table.resources import BARE, Parent
from covey.table.schema import Rule, Schema
from covey.web.choices import Choices
from covey.web.describing import describe, joint_schema, renamed, rules_of
from covey.web.drafts import ColumnDraft, edited, published, refused, to_learn
from covey.web.estimate import anonymous_seconds
from covey.web.jobs import Job
from covey.web.pictures import Picture, pictures
from covey.web.preview import NoisePreview, preview_noise
from covey.web.reading import GivenFiles, UploadedTable, read_files, remove
from covey.web.saved import require_same, resume, save
from covey.web.security import Form, Refused
from covey.workflow import Fit, check, plan

NOTHING = Description.of(BARE)  # before a table is taken


class Work:
    """One table on its way to a bundle."""

    def __init__(self, folder: Path, words: Mapping[str, Any] | None = None) -> None:
        self.words = words  # what was said of it before the app was started anew, until its rows are given again
        self.begun = words and words["release"]  # a release that an earlier start has begun
        self.id = folder.name
        self.folder = folder
        self.lock = RLock()
        self.touched = time.monotonic()
        self.tables: tuple[UploadedTable, ...] = ()
        self.start = NOTHING  # names, keys and dialects of the tables; fields and rules are those below
        self.columns: tuple[ColumnDraft, ...] = ()
        self.said = Dialect()  # what the owner has said of it: learned columns are read so
        self.assumed = ""  # how the file was read, where it is not plain
        self.rules: tuple[Rule, ...] = ()
        self.taken: tuple[Any, ...] = ()  # columns, link and rules before anything was said of them
        self.choices = Choices()
        self.chosen = False
        self.review: str | None = None
        self._sizes: tuple[int, ...] | None = None
        self._fit: tuple[object, Fit] | None = None  # of true rows, and of what it was found with
        self._pictures: dict[tuple[str, str], Picture] = {}  # of true columns, by name and kind, in memory alone
        self.jobs: dict[str, Job] = {}  # by the review that ordered them

    # The table.

    @property
    def table(self) -> UploadedTable | None:
        """The table, or that of the persons."""
        return self.tables[0] if self.tables else None

    @property
    def name(self) -> str:
        """What its owner calls it."""
        return " and ".join(self.words["tables"] if self.words else (table.name for table in self.tables))

    def read(self, given: GivenFiles, limit: int) -> None:
        """Read what was uploaded, and draft its schema unless one was given."""
        self.require_idle()
        found = read_files(given, self.folder, limit)
        with self.lock:
            try:
                self.require_idle()  # a release may have begun while the files were read
                if self.words is not None:
                    require_same(self.words, found.columns)
            except CoveyError:
                remove(found.tables)
                raise
            self.forget_table()
            self.tables, self.columns, self.assumed, self.said = found.tables, found.columns, found.assumed, given.said
            self.start, self.rules = found.described, rules_of(found.described)
            self.taken = self.columns, self.start, self.rules
            if self.words is not None:
                resume(self, self.words)
                self.words = None
            self.choose(self.choices)

    @property
    def releasing(self) -> bool:
        """Whether a release is under way: then every page of this table leads to it."""
        return self.job is not None and not self.job.over

    def require_idle(self) -> None:
        """Refuse to touch what is being released."""
        if self.releasing:
            raise Refused(409, "This table is being released. Wait until that is done.")

    def forget_table(self) -> None:
        """Remove the true rows."""
        remove(self.tables)
        self.tables, self._fit, self._pictures = (), None, {}

    # The schema.

    @property
    def link(self) -> Parent | None:
        """How events belong to their persons; None where there is one table."""
        return None if self.start.schema is not None else self.start.link

    @property
    def not_taken(self) -> Mapping[str, str]:
        """What a release of these tables does not take, and why."""
        return not_taken(self.start)

    def described(self) -> Description:
        """What will be public, as far as it has come."""
        return describe(self.start, self.columns, self.rules)

    def schema(self) -> Schema:
        """The public schema of a single table."""
        found = self.described().schema
        assert found is not None  # nosec B101 # for the type checker; asked of single tables alone
        return found

    def joint(self) -> Schema:
        """The fields as rules name them."""
        return joint_schema(self.described())

    def set_columns(self, columns: tuple[ColumnDraft, ...]) -> None:
        """Change columns, or refuse what the schema does not allow."""
        self.require_idle()
        before, self.columns = self.columns, columns
        try:
            self.described()
        except CoveyError:
            self.columns = before
            raise
        self.changed()

    def set_column(self, place: int, column: ColumnDraft) -> None:
        """Change one column."""
        self.set_columns((*self.columns[:place], column, *self.columns[place + 1 :]))

    def set_link(self, start: Description) -> None:
        """Change how events hang together, or refuse what their table does not allow."""
        self.require_idle()
        names = {old.name: new.name for old, new in zip(self.start.tables, start.tables, strict=True)}
        columns, rules = renamed(names, self.columns, self.rules)
        describe(start, columns, rules)
        self.start, self.columns, self.rules, self._pictures = start, columns, rules, {}
        self.changed()

    def choose(self, choices: Choices) -> None:
        """Other choices, for the table or the tables that lie here now."""
        with self.lock:
            self.require_idle()
            self.choices = choices.without(self.not_taken)
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

    @property
    def apart(self) -> list[ColumnDraft]:
        """Columns that carry a warning, each to be confirmed by itself."""
        return [c for c in self.columns if c.kept and c.guarded]

    @property
    def personal(self) -> list[ColumnDraft]:
        """Columns that are kept although they may point to persons."""
        return [c for c in self.columns if c.kept and c.personal]

    @property
    def learnable(self) -> list[ColumnDraft]:
        """Columns that one word has learned with noise: kept, not confirmed, and not about to point to persons."""
        return [
            c for c in self.columns if c.kept and not (c.field.confirmed or c.personal or c.field.constant is not None)
        ]

    @property
    def learned(self) -> list[str]:
        """Columns whose limits or categories are learned with noise."""
        return [c.called for c in self.columns if c.kept and c.field.learn]

    def learn_rest(self) -> None:
        """Learn with noise what nobody has described: nothing that was drafted becomes public."""
        chosen = set(map(id, self.learnable))
        self.set_columns(tuple(to_learn(c, self.said) if id(c) in chosen else c for c in self.columns))

    def shown_key(self) -> str:
        """Changes whenever what `confirm_shown` would make public changes."""
        shown = self.described().to_dict()
        return sha256(json.dumps([[c.called for c in self.together], shown]).encode()).hexdigest()

    def confirm_shown(self, key: str, names: Sequence[str] = ()) -> None:
        """Confirm the named columns, or all without a warning, as a page with this key has shown them.

        What may point to persons is not among them: it is confirmed beside what it holds, by typing its name.
        """
        chosen = [c for c in self.apart if c.called in names and not c.personal] if names else self.together
        for column in chosen:
            if column.problem:
                raise ParameterError(f"{column.called}: {column.problem}")
        if key != self.shown_key():
            raise Refused(409, "Something changed after this page was made. Check it again.")
        done = set(map(id, chosen))
        self.set_columns(tuple(published(c) if id(c) in done else c for c in self.columns))

    def set_rules(self, rules: tuple[Rule, ...]) -> None:
        """Change the rules, or refuse what the schema does not allow."""
        self.require_idle()
        before, self.rules = self.rules, rules
        try:
            found = self.described()  # rules that contradict each other are refused
            _ = found.codecs
        except CoveyError:
            self.rules = before
            raise
        self.changed()

    @property
    def unconfirmed(self) -> list[str]:
        """Columns that are kept and not confirmed as public."""
        return [c.called for c in self.columns if c.kept and not c.field.confirmed]

    @property
    def confirmed(self) -> bool:
        """Whether the whole schema is public."""
        return bool(self.columns) and not self.unconfirmed and any(c.kept for c in self.columns)

    def sizes(self) -> tuple[int, ...]:
        """Categories of each attribute, which are public once the schema is confirmed."""
        with self.lock:
            self._sizes = self._sizes or expected_sizes(self.schema())
            return self._sizes

    def noise_preview(self, choices: Choices) -> NoisePreview | None:
        """What noise will do, on simulated rows of the declared size: never on true ones."""
        names, sizes = [field.name for field in self.schema().encoded], self.sizes()
        if len(names) != len(sizes):
            return None
        return preview_noise(names, sizes, self.counted(choices), self.budget(choices))

    def budget(self, choices: Choices) -> Budget:
        """The promise that these choices make, and what may be spent under it."""
        labels = any(with_known_domains(part.schema).learns for part in self.described().tables)
        return budget_for(
            choices.epsilon, choices.delta, self.unit(choices), labels=labels, neighbours=choices.neighbours
        )

    def expect(self, choices: Choices) -> Any:
        """What a release of persons with events would be like, from public sizes alone."""
        n, told = self.counted(choices), (choices.epsilon, choices.delta)
        return plan(self.described(), n, *told, unit=ALL_ROWS, neighbours=choices.neighbours).prediction

    def predict(self, choices: Choices) -> Prediction:
        """What a release would be like, from public sizes alone."""
        n, attributes = self.counted(choices), expected_attributes(self.schema())
        found = prediction(self.sizes(), n, choices.epsilon, choices.delta, choices.unit, choices.neighbours)
        return found.described(attributes, n, self.budget(choices))

    def seconds(self, choices: Choices) -> dict[str, float]:
        """Seconds that a release is expected to take, stage by stage; none where that is not known."""
        if self.link:
            return {}
        if choices.mode == "private":
            return self.predict(choices).stages
        return anonymous_seconds(self.counted(choices) * len(self.columns))

    def counted(self, choices: Choices) -> int:
        """The public number that a release counts: persons, where a column says whose a row is, otherwise rows."""
        if self.link:
            return (self.fit().persons or 1) if self.start.alone else self.tables[0].rows
        if not choices.person or choices.mode != "private":
            return self.table.rows if self.table else 1
        if choices.person not in {column.field.name for column in self.columns}:
            raise ParameterError(
                f"the table has no column {choices.person!r}. Choose the column that identifies the person."
            )
        return self.fit(choices.person).persons or 1

    def picture(self, place: int) -> Picture | None:
        """A picture of a true column that is kept. Confidential: for its owner's screen, written nowhere."""
        with self.lock:
            column = self.columns[place]
            key = (column.called, column.field.type)
            if self.table is None or not column.kept or column.field.constant is not None:
                return None
            if key not in self._pictures:  # all at once: reading the table is what takes time
                beside = [c for c in self.columns if c.kept and c.field.constant is None and c.table == column.table]
                path, dialect, missing = self._read_as(column.table)
                found = pictures(path, dialect, [c.field for c in beside], missing)
                self._pictures |= {
                    (c.called, c.field.type): found[c.field.name] for c in beside if c.field.name in found
                }
            return self._pictures.get(key)

    def _read_as(self, table: str) -> tuple[Path, Dialect, tuple[str, ...]]:
        """Where a table lies, and how it is read."""
        given = self.start.given
        place = next((k for k, part in enumerate(given) if part.name == table), 0)
        return self.tables[place].path, given[place].schema.dialect, given[place].schema.missing_values

    def require_table(self) -> UploadedTable:
        """The table, or a word that it is gone."""
        if self.table is None:
            raise ParameterError("the table was removed from the workspace. Give it again at the first step.")
        return self.table

    def fit(self, person: str = "") -> Fit:
        """How the true tables fit their description. Confidential: for their owner's screen, written nowhere."""
        with self.lock:
            self.require_table()
            found, whose = self.described(), person if self.choices.mode == "private" else ""
            if self._fit is None or self._fit[0] != (found, whose):
                paths = {part.name: table.path for part, table in zip(found.given, self.tables, strict=True)}
                self._fit = ((found, whose), check(paths, found, whose or None))
            return self._fit[1]

    def order(self, schema: Path, out: Path, table: Path | None = None) -> PrivateOrder | AnonymousOrder:
        """What was chosen, as the workflow understands it, of a table beside its schema, or of a package that names several."""
        if self.link:
            return self.choices.order(schema, None, out, self.kept)
        return self.choices.order(table or self.require_table().path, schema, out, self.kept)

    @property
    def kept(self) -> set[str]:
        """Names of the columns that are not left out."""
        return {column.called for column in self.columns if column.kept}

    def unit(self, choices: Choices) -> Unit:
        """How many rows of a person the promise covers."""
        return ALL_ROWS if self.link else choices.unit

    # Steps.

    def changed(self) -> None:
        """A review made before this no longer says what would happen; what was said is written down."""
        self.review = self._sizes = None
        if self.words is None:
            save(self)

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
        if self.releasing:
            return "release"
        if self.table is None and not self.jobs:
            return "table"
        if not self.confirmed:
            return "columns"
        if self.job is not None:
            return "bundle" if self.job.state == "done" else "release"
        return "review" if self.chosen else "rules"

    def reachable(self) -> set[str]:
        """The steps that make sense now."""
        if self.releasing:
            return {"release"}
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
    sizes: tuple[int, ...], rows: int, epsilon: Fraction, delta: Fraction, rows_per_person: Unit, neighbours: Neighbours
) -> Prediction:
    """`predict`, remembered: the page asks for the same public numbers again and again."""
    return predict(sizes, rows, epsilon, delta, None, rows_per_person, neighbours)
