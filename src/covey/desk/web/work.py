"""One table on its way to a bundle: its rows, the schema as far as it has come, the order so far, and its releases.

What a steward has said about it is kept on disk, so that it outlives the app: private, and no more than was said. Columns that
nobody has touched are not in it: their draft is read off the rows when these are given again. A limit or a label that was left
as drafted beside one that was changed is, so the file describes private data. It is closed to other people, lies beside the
copy of the rows, and goes whenever the table is taken from the workspace; rows go when the app ends, and it stays.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from hashlib import sha256
from pathlib import Path
from threading import RLock
from typing import Any

from covey.desk.web.drafts import (
    ACTIONS,
    NOTHING,
    ColumnDraft,
    File,
    UploadedTable,
    acted,
    describe,
    edited,
    joint_schema,
    link_form,
    published,
    read_files,
    read_link,
    refused,
    remove,
    rules_of,
)
from covey.desk.web.folders import DRAFT
from covey.desk.web.forms import PRIVATE, Order
from covey.desk.web.jobs import Job, anonymous_seconds
from covey.desk.web.pictures import Picture, pictures
from covey.desk.web.security import Form, Refused
from covey.engine.fractions import exact
from covey.engine.unit import ALL_ROWS, Unit
from covey.errors import CoveyError, ParameterError
from covey.release.places import private_file
from covey.synthesizers.proposed_relations import Proposal
from covey.tables.description import Description
from covey.tables.dialects import Dialect
from covey.tables.fields import Field
from covey.tables.resources import Parent
from covey.tables.rules import Rule
from covey.tables.schema import Schema, read_rule
from covey.workflow import (
    AnonymousOrder,
    Fit,
    PrivateOrder,
    as_words,
    check,
    from_words,
    not_taken,
    plan,
    propose,
    with_proposal,
)


class Work:
    """One table on its way to a bundle."""

    def __init__(self, folder: Path, words: Mapping[str, Any] | None = None) -> None:
        self.words = words  # what was said of it before the app was started anew, until its rows are given again
        self.begun = words and words["release"]  # a release that an earlier start has begun
        self.id, self.folder = folder.name, folder
        self.lock = RLock()
        self.touched = time.monotonic()
        self.taken = NOTHING  # as it was read, before anything was said of it
        self.said = Dialect()  # what the owner has said of the files: learned columns are read so
        self.start = NOTHING.described  # names, keys and dialects of the tables; fields and rules are those below
        self.columns: tuple[ColumnDraft, ...] = ()
        self.rules: tuple[Rule, ...] = ()
        self.order: Order = PRIVATE
        self.chosen = False
        self.review: str | None = None
        self._fit: tuple[object, Fit] | None = None  # of true rows, and of what it was found with
        self._seen: tuple[Proposal, ...] | None = None  # relations of true rows, in memory alone
        self._pictures: dict[tuple[str, str], Picture] = {}  # of true columns, by name and kind, in memory alone
        self.jobs: dict[str, Job] = {}  # by the review that ordered them

    # The table.

    @property
    def tables(self) -> tuple[UploadedTable, ...]:
        """The tables that were given: one, or persons and events."""
        return self.taken.tables

    @property
    def table(self) -> UploadedTable:
        """The table, or that of the persons."""
        if not self.tables:
            raise ParameterError("there is no table here. Give it at the first step.")
        return self.tables[0]

    @property
    def name(self) -> str:
        """What its owner calls it."""
        return " and ".join(self.words["tables"] if self.words else (table.name for table in self.tables))

    @property
    def places(self) -> dict[str, Path]:
        """Where the private copies lie, by the names that their owner knows."""
        return {table.name: table.path for table in self.tables}

    def read(self, files: Mapping[str, File], limit: int, said: Dialect, whose: str = "") -> None:
        """Read what was uploaded, and draft its schema unless one was given."""
        self.require_idle()
        found = read_files(files, said, whose, self.folder, limit)
        with self.lock:
            try:
                self.require_idle()  # a release may have begun while the files were read
                if self.words is not None:
                    require_same(self.words, found.columns)
            except CoveyError:
                remove(found.tables)
                raise
            remove(self.tables)
            self._fit, self._pictures, self._seen = None, {}, None
            self.taken, self.said, self.columns = found, said, found.columns
            self.start, self.rules = found.described, rules_of(found.described)
            if self.words is not None:
                resume(self, self.words)
                self.words = None
            self.choose(self.order)

    @property
    def releasing(self) -> bool:
        """Whether a release is under way: then every page of this table leads to it."""
        return self.job is not None and not self.job.over

    def require_idle(self) -> None:
        """Refuse to touch what is being released."""
        if self.releasing:
            raise Refused(409, "This table is being released. Wait until that is done.")

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

    def joint(self) -> Schema:
        """The fields as rules name them."""
        return joint_schema(self.described())

    def change(
        self,
        columns: tuple[ColumnDraft, ...] | None = None,
        rules: tuple[Rule, ...] | None = None,
        start: Description | None = None,
    ) -> None:
        """Describe the tables otherwise, or refuse what their schema does not allow."""
        self.require_idle()
        columns, rules = self.columns if columns is None else columns, self.rules if rules is None else rules
        describe(start or self.start, columns, rules)
        if columns != self.columns:
            self._seen = None
        self.start, self.columns, self.rules = start or self.start, columns, rules
        self.changed()

    def set_column(self, place: int, column: ColumnDraft) -> None:
        """Change one column."""
        self.change((*self.columns[:place], column, *self.columns[place + 1 :]))

    def set_link(self, start: Description) -> None:
        """Change how events hang together, and what their tables are called."""
        names = {old.name: new.name for old, new in zip(self.start.tables, start.tables, strict=True)}

        def anew(field: str) -> str:
            table, _, name = field.partition(".")
            return f"{names[table]}.{name}"

        columns = tuple(replace(column, table=names[column.table]) for column in self.columns)
        self.change(columns, tuple(rule.renamed(anew) for rule in self.rules), start)
        self._pictures = {}  # which go by the tables' names

    def edit_column(self, place: int, form: Form) -> None:
        """Take over what a form says about a column; what cannot be is kept as it was typed, with the reason."""
        try:
            self.set_column(place, edited(self.columns[place], form))
        except CoveyError as error:  # a rule may need the column as it was
            self.set_column(place, refused(self.columns[place], form, error))

    @property
    def kept(self) -> list[ColumnDraft]:
        """Columns that are not left out."""
        return [c for c in self.columns if c.kept]

    def drafts(self, only: Collection[int] = ()) -> tuple[list[ColumnDraft], list[ColumnDraft]]:
        """Kept columns that nobody has confirmed, of some places or all: those that one word may confirm, and warned ones."""
        asked = [c for k, c in enumerate(self.columns) if c.drafts and (not only or k in only)]
        return [c for c in asked if not c.guarded], [c for c in asked if c.guarded]

    @property
    def personal(self) -> list[ColumnDraft]:
        """Columns that are kept although they may point to persons."""
        return [c for c in self.kept if c.personal]

    @property
    def confirmed(self) -> bool:
        """Whether the whole schema is public."""
        return bool(self.kept) and all(c.field.confirmed for c in self.kept)

    def act(self, action: str, places: Collection[int]) -> None:
        """Do the same to all columns of these places that it can be done to."""
        chosen = [place for place in places if ACTIONS[action](self.columns[place])]
        if not chosen:
            raise ParameterError("this cannot be done to any of these columns. See each of them for what can.")
        self.change(tuple(acted(c, action, self.said) if k in chosen else c for k, c in enumerate(self.columns)))

    def shown_key(self, only: Collection[int] = ()) -> str:
        """Changes whenever what `confirm_shown` would make public changes."""
        shown = self.described().to_dict()
        return sha256(json.dumps([[c.called for c in self.drafts(only)[0]], shown]).encode()).hexdigest()

    def confirm_shown(self, key: str, names: Sequence[str] = (), only: Collection[int] = ()) -> None:
        """Confirm the named columns, or all without a warning, as a page with this key has shown them; `only` of some places.

        What may point to persons is not among them: it is confirmed beside what it holds, by typing its name.
        """
        together, apart = self.drafts(only)
        chosen = [c for c in apart if c.called in names and not c.personal] if names else together
        for column in chosen:
            column.require_sound()
        if key != self.shown_key(only):
            raise Refused(409, "Something changed after this page was made. Check it again.")
        done = set(map(id, chosen))
        self.change(tuple(published(c) if id(c) in done else c for c in self.columns))

    def picture(self, place: int) -> Picture | None:
        """A picture of a true column that is kept. Confidential: for its owner's screen, written nowhere."""
        with self.lock:
            column = self.columns[place]
            key = (column.called, column.field.type)
            if not column.kept or not column.field.measured:
                return None
            if key not in self._pictures:  # all at once: reading the table is what takes time
                beside = [c for c in self.kept if c.field.measured and c.table == column.table]
                given = self.start.given
                at = next((k for k, part in enumerate(given) if part.name == column.table), 0)
                found = pictures(self.tables[at].path, given[at].schema, [c.field for c in beside])
                self._pictures |= {
                    (c.called, c.field.type): found[c.field.name] for c in beside if c.field.name in found
                }
            return self._pictures.get(key)

    def seen(self) -> list[Proposal]:
        """Relations of the true table that its schema does not state. Confidential: for its owner's screen, written nowhere."""
        if self.link:  # they are looked for between the columns of one table
            return []
        with self.lock:
            schema = self.joint()
            if self._seen is None:
                self._seen = propose(self.table.path, schema)
            return [proposal for proposal in self._seen if proposal.is_news(schema)]

    def add_seen(self, words: str) -> None:
        """Take a relation that was seen, in these words, as public knowledge: its rules, or a column that is computed."""
        with self.lock:
            seen = self.seen()
            after = with_proposal(self.joint(), seen, words)
            self.change(tuple(_now(column, after) for column in self.columns), after.rules)
            self._seen = tuple(seen)

    @property
    def computed(self) -> dict[int, ColumnDraft]:
        """Columns that are computed from others, by place."""
        return {k: column for k, column in enumerate(self.columns) if column.kept and column.field.derived is not None}

    def measure_again(self, place: int) -> None:
        """Measure a computed column again, as it was described before."""
        column = self.columns[place]
        self.set_column(place, replace(column, field=column.others.get(column.field.type, column.drafted)))

    # The order.

    def choose(self, order: Order) -> None:
        """Another order."""
        with self.lock:
            self.require_idle()
            self.order = order
            self.changed()

    def taken_of(self, order: Order) -> Order:
        """An order without what the tables that lie here now do not take, and without columns that are left out."""
        kept = {column.called for column in self.kept if column.field.derived is None}
        if isinstance(order, AnonymousOrder):
            sensitive = tuple(name for name in order.sensitive if name in kept)
            return PRIVATE if "group_size" in self.not_taken else replace(order, sensitive=sensitive)
        own: dict[str, Any] = {field.name: field.default for field in fields(order) if field.name in self.not_taken}
        own["important"] = tuple(group for group in order.important if kept.issuperset(group))
        return replace(order, **own, target=order.target if order.target in kept else None)

    def unit(self, order: PrivateOrder) -> Unit:
        """How many rows of a person the promise covers."""
        return ALL_ROWS if self.link or order.person else order.rows_per_person

    def counted(self, order: Order) -> int:
        """The public number that a release counts: persons, where a column says whose a row is, otherwise rows."""
        if self.link:
            return (self.fit().persons or 1) if self.start.alone else self.table.rows
        if isinstance(order, AnonymousOrder) or not order.person:
            return self.table.rows
        if order.person not in {column.field.name for column in self.columns}:
            raise ParameterError(
                f"the table has no column {order.person!r}. Choose the column that identifies the person."
            )
        return self.fit(order.person).persons or 1

    def fit(self, person: str | None = None) -> Fit:
        """How the true tables fit their description. Confidential: for their owner's screen, written nowhere."""
        with self.lock:
            found = self.described()
            if self._fit is None or self._fit[0] != (found, person):
                paths = {part.name: table.path for part, table in zip(found.given, self.tables, strict=True)}
                self._fit = ((found, person), check(paths, found, person))
            return self._fit[1]

    def predict(self, order: PrivateOrder) -> Any:
        """What a release would be like, from public sizes alone."""
        n, promised = self.counted(order), (exact(order.epsilon, "epsilon"), exact(order.delta, "delta"))
        return plan(self.described(), n, *promised, unit=self.unit(order), neighbours=order.neighbours).prediction

    def seconds(self) -> dict[str, float]:
        """Seconds that the release is expected to take, stage by stage; none where that is not known."""
        if isinstance(self.order, AnonymousOrder):
            return anonymous_seconds(self.table.rows * len(self.columns))
        return {} if self.link else dict(self.predict(self.order).stages)

    def placed_order(self, schema: Path, out: Path, table: Path | None = None) -> Order:
        """The order of a table beside its schema, or of a package that names several."""
        own: dict[str, Any] = {"table": table or self.table.path, "schema": schema}
        return replace(self.order, out=out, **{"table": schema} if self.link else own)

    # Steps.

    def changed(self) -> None:
        """A review made before this no longer says what would happen; what was said is written down."""
        self.review, self.order = None, self.taken_of(self.order)
        if self.words is None:
            save(self)

    def review_key(self) -> str:
        """The key of the review that stands now; one review makes one release."""
        with self.lock:
            self.review = self.review or secrets.token_hex(16)
            return self.review

    @property
    def job(self) -> Job | None:
        """The newest job."""
        return next(reversed(self.jobs.values()), None)

    def step(self) -> str:
        """How far this table has come."""
        if not self.releasing and not self.confirmed:
            return "columns" if self.tables else "table"
        if self.job is not None:
            return "bundle" if self.job.state == "done" else "release"
        return "review" if self.chosen else "rules"

    def reachable(self) -> set[str]:
        """The steps that make sense now."""
        if self.releasing:
            return {"release"}
        steps = {"table", "columns"} if self.columns else {"table"}
        if self.confirmed:
            steps |= {"rules", "privacy"} | ({"review"} if self.chosen else set())
        if self.job is not None:
            steps |= {"release", "bundle"} if self.job.state == "done" else {"release"}
        return steps


def _now(column: ColumnDraft, schema: Schema) -> ColumnDraft:
    """A column as a schema has it now; what it was before is kept."""
    if not column.kept or schema[column.field.name].derived == column.field.derived:
        return column
    before = {column.field.type: column.field}
    return replace(column, field=schema[column.field.name], others={**column.others, **before})


def save(work: Work) -> None:
    """Write down what was said, or remove what is no longer said."""
    place = work.folder / DRAFT
    fresh = work.taken.columns, work.taken.described, rules_of(work.taken.described)
    said = (work.columns, work.start, work.rules) != fresh or work.chosen or work.jobs
    with suppress(OSError):  # a comfort: what the disk refuses must not refuse the steward
        if not said:
            place.unlink(missing_ok=True)
            return
        with private_file(place.with_suffix(".new"), "w") as file:
            json.dump(_words(work), file, ensure_ascii=False)
        os.replace(place.with_suffix(".new"), place)


def _words(work: Work) -> dict[str, Any]:
    before = {column.called: column for column in work.taken.columns}
    return {
        "tables": [table.name for table in work.tables],
        "columns": [_column(column) for column in work.columns if column != before.get(column.called)],
        "rules": [rule.to_dict() for rule in work.rules],
        "link": link_form(work.start) if work.link else None,
        "order": as_words(work.order),
        "release": {key: work.job.order.get(key) for key in ("dataset", "purpose")} if work.job else work.begun,
    }


def _column(column: ColumnDraft) -> dict[str, Any]:
    return {
        "called": column.called,
        "kept": column.kept,
        "field": column.field.to_dict(draft=True),
        "typed": dict(column.typed),
        "problem": column.problem,
        "others": [field.to_dict(draft=True) for field in column.others.values() if field != column.drafted],
    }


def load(place: Path) -> dict[str, Any] | None:
    """What an earlier start has written down; None where it cannot be read."""
    try:
        found = json.loads(place.read_text(encoding="utf-8"))
        return found if {"tables", "columns", "rules", "link", "order", "release"} <= found.keys() else None
    except (OSError, ValueError, AttributeError):
        return None


def require_same(words: Mapping[str, Any], columns: Iterable[ColumnDraft]) -> None:
    """Refuse rows of another table than that of which something was said; files change a little, so one column will do."""
    known = {one["field"]["name"] for one in words["columns"]}
    if known and known.isdisjoint(column.field.name for column in columns):
        raise ParameterError(
            "this table has none of the columns that you described. Give the same table again, or start over with this one."
        )


def resume(work: Work, words: Mapping[str, Any]) -> None:
    """Say again what was said of a table whose rows are here again; nothing of it where it cannot be read any more."""
    fresh = work.columns, work.start, work.rules, work.order
    try:
        if work.link and words["link"]:
            work.set_link(read_link(Form({name: [value] for name, value in words["link"].items()}), work.start))
        known = {one["called"]: one for one in words["columns"]}
        work.change(tuple(_resumed(c, known[c.called]) if c.called in known else c for c in work.columns))
        work.choose(from_words(words["order"]))
        with suppress(CoveyError):  # a rule about a column that is no longer there goes with it
            fields = {field.name: field for field in work.joint().fields}
            work.change(rules=tuple(read_rule(rule, fields) for rule in words["rules"]))
    except (CoveyError, KeyError, TypeError, ValueError):  # of another version, say
        work.columns, work.start, work.rules, work.order = fresh


def _resumed(column: ColumnDraft, words: Mapping[str, Any]) -> ColumnDraft:
    others = [Field.from_dict(one) for one in words["others"]]
    return replace(
        column,
        field=Field.from_dict(words["field"]),
        kept=words["kept"],
        typed=words["typed"],
        problem=words["problem"],
        others={field.type: field for field in others},
    )
