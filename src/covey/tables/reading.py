"""What a caller gives becomes rows of whole numbers or bits: an array, one table in parts, or persons and events, linked.

Reading happens on the owner's machine before any budget is spent, so it may fail and its messages may speak of the data. What
is remembered of them is their form alone: type, sparseness, frames. Persons are told apart, and events linked to them, by 128
bits of a hash under a key that is drawn for each reading and not kept, as in `engines.persons`.
"""

from __future__ import annotations

import filecmp
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array, vstack

from covey.engine.arrays import Array, Integers, require_memory
from covey.engine.bodies import Body, ProductOfSimplices
from covey.engine.codes.counts import Batch, canonical, is_sparse
from covey.engine.codes.domain import Domain
from covey.engine.codes.events import WEIGHT_STEPS, Histories, timed
from covey.engine.codes.learned import Coded, Counting
from covey.engine.codes.zeros import held_in
from covey.engine.units.local import KEEP_BYTES, EventRows, StreamRows, in_order_of_parts
from covey.engine.units.persons import Keyring, Keys, PersonRows, WeightedRows, new_keyring, row_weights
from covey.errors import CHANGED, InputError, InternalError, ParameterError
from covey.paths import same_file
from covey.tables.codec import Codec, Coding, EncodeLog
from covey.tables.columns import Table, match, named
from covey.tables.description import Description
from covey.tables.provisional import LearnedColumn, Provisional
from covey.tables.resources import Resource
from covey.tables.schema import Schema
from covey.tables.sources import Source, form_of, joined, open_source, read_table
from covey.tables.sources.databases import Database
from covey.tables.sources.frames import USUAL, FrameForm, NumberFrame, chosen, frame_origin, numbers_of
from covey.tables.spark.frames import PERSONS, BatchEncoder, SparkParquet, is_spark, needed_columns, plan
from covey.tables.spark.units import SparkPersonRows, SparkRows, spark_errors, task_numbers
from covey.tables.zeros import across_zeros

Kernels = Sequence[Callable[[Array], Any]]
Encode = Callable[[Table], tuple[Any, EncodeLog]]

OTHER_SYNTHESIZER = "this table was prepared by another synthesizer, of another schema or method. Prepare it anew."
NOTHING = "Nothing was charged."
CELL = 64  # bytes of a cell of a Spark frame while it is read: text and its copy


@dataclass(frozen=True)
class TableRead:
    """One table that was read: what encoding met, how many rows it has, and what frame it came in. For its owner alone."""

    name: str  # before the names of its columns; empty where there is one table
    schema: Schema
    log: EncodeLog
    rows: int
    form: FrameForm

    def called(self, column: str) -> str:
        """A column as the description names it."""
        return f"{self.name}.{column}" if self.name else column


@dataclass(frozen=True)
class Prepared:
    """Tables as rows of whole numbers. Private: it has no serializer, and its repr shows no record."""

    rows: Any  # what a method asks
    tables: tuple[TableRead, ...]  # those that were read, in the description's order
    reader: Reader  # under which they were read
    left_out: int = 0  # rows of the last table that name nobody, or are beyond the public limit of a person
    broken: int = 0  # rows of the last table that break a rule across the tables
    again: Callable[[Reader], Prepared] | None = None  # reads them once more, under what was learned with noise

    @property
    def n(self) -> int:
        """The number of records, or of persons, which is public."""
        return int(self.rows.n)

    @property
    def log(self) -> EncodeLog:
        """What encoding met in the only table, or in that of the events."""
        return self.tables[-1].log

    @property
    def records(self) -> int:
        """Rows of that table: where they are counted by persons this is for its owner alone."""
        return self.tables[-1].rows

    @property
    def restore(self) -> Callable[[list[Any]], Any]:
        """What is remembered of the tables, the kinds of their frames: it gives these to drawn parts."""
        return partial(restored, self.reader.description, tuple(table.form for table in self.tables))

    def read_again(self, reader: Reader) -> Prepared:
        """The same table under a schema that was learned from it."""
        if self.again is None:
            raise InternalError("only a single table is read again.")
        found = self.again(reader)
        if found.n != self.n:
            raise InputError(CHANGED)
        return found

    def __repr__(self) -> str:
        return f"Prepared({self.n} {'persons' if self.reader.by_person else 'rows'})"


@dataclass(frozen=True)
class Reader:
    """Reads the tables of one description: frames, files, databases, Spark.

    Of the codings "bins" are categories, "cells" whole numbers, which anonymous averages need, and "numbers" are codes in which
    numbers have their own precision.
    """

    description: Description  # fields that are to be learned are read on public grids
    coding: Coding = "bins"
    first_pass: Kernels = ()  # kernels whose sums will be asked for; they are computed while a single table is read first
    person: str | None = None  # the column of a single table that says whose a row is, where persons are counted

    @property
    def by_person(self) -> bool:
        """Whether persons are counted."""
        return self.person is not None or self.description.schema is None

    @cached_property
    def codec(self) -> Codec | Provisional:
        """The encoder of the only table; on public grids where something is to be learned."""
        schema = self.description.unit.schema
        return Provisional(schema) if schema.learns else self.description.codecs[0]

    @property
    def kernels(self) -> Kernels:
        """What is added up while a table is read first: of one that is to be learned, counts on the public grids."""
        if isinstance(self.codec, Provisional):
            return (Counting(tuple(column.bins for column in self.codec.columns)),)
        return self.first_pass

    def prepare(self, given: Any) -> Prepared:
        """Read and encode tables; one table is read in parts, and again where it is too large to be kept."""
        for part in self.description.tables:
            refuse_published(part.schema, given)
        return self._read(given)

    def _read(self, given: Any) -> Prepared:
        """Tables that may have been charged for: from here on nothing is refused for what other files hold."""
        if self.description.schema is None:
            return self._on_grids(given) if self.description.learns else self.sealed(*self.open(given))
        table, codec, person = self._only(given), self.codec, self.person
        learned = isinstance(codec, Provisional)

        def read(rows: Any, count: int, form: FrameForm, left_out: int = 0) -> Prepared:
            found = TableRead("", codec.schema, rows.log, count, form)
            return Prepared(rows, (found,), self, left_out, again=lambda reader: reader._read(given))

        if is_spark(table) or isinstance(table, SparkParquet):
            there = self._on_executors(table)
            return read(there, there.n, FrameForm("spark"))
        source, encode = open_source(table, codec.schema.beside(person)), self._encode
        if person is not None:
            rows = self._of_persons(source, person)
            return read(rows, rows.read, form_of(source), rows.nobodys)
        # What is learned is read again once its domain is known: no record is kept.
        keep = 0 if learned else KEEP_BYTES
        own = StreamRows(source.parts, lambda part: encode(source.table(part)), self._width, self.kernels, keep)
        return read(own, own.n, form_of(source))

    def prepared(self, given: Any) -> Prepared:
        """Tables, prepared by such a reader or not at all."""
        found = given if isinstance(given, Prepared) else self.prepare(given)
        if found.reader._key != self._key:
            raise ParameterError(OTHER_SYNTHESIZER)
        return found

    @property
    def _key(self) -> Any:
        return self.description.schema or self.description, self.coding, self.person

    # One table.

    def _only(self, given: Any) -> Any:
        """The only table: itself, or a file or database by its name."""
        own = given.get(self.description.unit.name) if isinstance(given, Mapping) else None
        return own if isinstance(own, str | Path | Database) else given

    @property
    def _encode(self) -> Encode:
        codec = self.codec
        return partial(codec.encode_part, coding=self.coding) if isinstance(codec, Codec) else codec.encode_part

    @property
    def _width(self) -> int:
        return len(self.codec.names if isinstance(self.codec, Codec) else self.codec.columns)

    def _of_persons(self, source: Source, person: str) -> PersonRows:
        """Rows that are counted by persons."""
        ring, missing, encode = new_keyring(), self.codec.schema.missing_values, self._encode

        def read(part: Any) -> tuple[Array, EncodeLog, Keys]:
            found = source.table(part)
            return *encode(found), ring(*named(found.columns[person], missing))

        # What is learned is read again once its domain is known: no record is kept.
        return PersonRows(source.parts, read, self._width, -1 if isinstance(self.codec, Provisional) else KEEP_BYTES)

    def _on_executors(self, table: Any) -> SparkRows:
        """Records of a Spark frame, or of files that Spark's executors read themselves."""
        codec, encode, schema = self.codec, self._encode, self.codec.schema
        if not isinstance(table, SparkParquet):
            columns, ignored = needed_columns(table, schema.beside(self.person))
            batches = BatchEncoder(codec, encode, ignored)
            if self.person is None:
                return SparkRows(columns, batches, self._width, self.kernels)
            return SparkPersonRows(columns, batches, self._width, schema.missing_values, self.kernels)
        if self.person is not None:
            raise ParameterError(PERSONS)
        groups = plan(table, schema)
        numbers = task_numbers(table.spark, len(groups.tasks))
        rows = SparkRows(numbers, encode, self._width, self.kernels, groups)
        if rows.n != groups.n:
            raise InputError(CHANGED)
        return rows

    # Persons and events.

    def sealed(self, linked: Histories, tables: tuple[TableRead, ...]) -> Prepared:
        """Tables that were read, for a fit."""
        cut = tables[1].rows - len(linked.owner)
        return Prepared(EventRows(linked), tables, self, cut, self._broken(linked))

    def _broken(self, linked: Histories) -> int:
        """How many events break a rule across the tables."""
        first = len(self.description.codecs[0].names)
        bad = np.zeros(len(linked.owner), dtype=bool)
        for box in across_zeros(self.description).boxes:
            inside = np.ones(len(bad), dtype=bool)
            for j, side in box.items():
                codes = linked.events[:, j - first] if j >= first else linked.persons[linked.owner, j]
                inside &= held_in(codes.astype(np.int64), side)
            bad |= inside
        return int(bad.sum())

    def _both(self, given: Any) -> tuple[Any, Any]:
        """The two tables that a caller gave by name; None for persons whom events name."""
        names = [part.name for part in self.description.given]
        if not isinstance(given, Mapping) or set(given) != set(names):
            listed = ", ".join(f"{name!r}: …" for name in names)
            raise ParameterError(f"give {'both tables' if len(names) == 2 else 'the table'} by name: {{{listed}}}.")
        if any(isinstance(table, SparkParquet) for table in given.values()):
            raise ParameterError(PERSONS)
        return (None if self.description.alone else given[names[0]]), given[names[-1]]

    def _linked(self, given: Any, again: bool = False) -> tuple[Any, _Keyed, _Keyed, Integers]:
        """The table of events as it was given, persons and events as they were read, and the place of each event's person."""
        unit, part, ring = self.description.unit, self.description.events, new_keyring()
        first, second = self._both(given)
        events = _read_keyed(second, part, ring, self.description.link.order)
        persons = _bare(first, unit, ring, events) if unit.bare else _read_keyed(first, unit, ring)
        owner = _owners(persons, events, unit, part)
        if not again:
            _require_order(events, part)
        return second, persons, events, owner

    def open(self, given: Any, again: bool = False) -> tuple[Histories, tuple[TableRead, ...]]:
        """Persons with their events as codes, open to the owner of the tables. What does not link, or has no order, is refused.

        Tables that are read again were charged for: nothing is refused any more for what a cell holds.
        """
        link, (table, persons, events, owner) = self.description.link, self._linked(given, again)
        if link.numbered:
            keep = [events.names.index(name) for name in self.description.codecs[1].names if name in events.names]
            events = replace(events, codes=events.codes[:, keep])
        order = np.lexsort((*_ties(table, events), *(() if events.order is None else (events.order,)), owner))
        codes = events.codes[order]
        if link.positions or link.gaps:
            place, gap = timed(owner[order], np.asarray(events.order)[order].astype(np.int64), link.at_most)
            more = [place] * link.positions + [gap] * link.gaps
            codes = np.column_stack([codes, *more]).astype(np.int64)
        linked = Histories.capped(persons.codes, codes, owner[order], link.at_most)
        return linked, (persons.table, events.table)

    def _on_grids(self, given: Any) -> Prepared:
        """Persons and events whose fields are to be learned, on public grids: a person's events share one weight.

        A record has all learned columns of both tables, and holds something in those of its own. Of a person without events the
        texts of events hold nothing, as an empty cell does.
        """
        _, persons, events, owner = self._linked(given)
        counts = np.bincount(owner, minlength=len(persons.keys))
        texts = np.array([column.is_text for column in events.columns], dtype=bool)
        parts, row, width = list[tuple[Coded, Integers]](), 0, (len(persons.columns), len(events.columns))
        for coded in persons.coded:
            none = counts[row : row + len(coded)] == 0
            codes = np.hstack([coded.codes, np.where(none[:, None] & texts, 0, -1)])
            words = (*coded.words, *[()] * width[1])
            parts.append((Coded(codes, words), np.full(len(coded), WEIGHT_STEPS)))
            row += len(coded)
        weights, row = row_weights(counts)[owner], 0
        for coded in events.coded:
            codes = np.hstack([np.full((len(coded), width[0]), -1), coded.codes])
            parts.append((Coded(codes, (*[()] * width[0], *coded.words)), weights[row : row + len(coded)]))
            row += len(coded)
        rows = WeightedRows(parts, len(persons.keys), sum(width))
        cut = int(np.maximum(counts - self.description.link.at_most, 0).sum())

        def again(reader: Reader) -> Prepared:
            return reader.sealed(*reader.open(given, again=True))

        return Prepared(rows, (persons.table, events.table), self, cut, again=again)


def refuse_published(schema: Schema, given: Any) -> None:
    """Refuse a table that the schema itself publishes: a derived field's public list is this file, or a copy of it."""
    for own in schema.fields:
        listed = None if own.derived is None else own.derived.file
        if listed is not None and any(_same_contents(listed, table) for table in _files_of(given)):
            raise own.wrong(
                f"is derived from {listed.name}, which is the confidential table itself, and its cells would be published",
                "Ask whoever wrote the schema, and do not use it.",
            )


def _files_of(given: Any) -> list[Path]:
    """The files on this machine among the tables that a caller gave."""
    if isinstance(given, Mapping):
        return [file for table in given.values() for file in _files_of(table)]
    if isinstance(given, SparkParquet):
        return given.files
    if isinstance(given, Database):
        return [] if given.path is None else [given.path]
    return [Path(given)] if isinstance(given, str | Path) else []


def _same_contents(listed: Path, table: Path) -> bool:
    """Whether two names stand for one file, or for copies."""
    if same_file(listed, table):
        return True
    return os.path.isfile(listed) and os.path.isfile(table) and filecmp.cmp(listed, table, shallow=False)


@dataclass(frozen=True)
class _Keyed:
    """One table of several as codes of its encoded fields, the keys of its rows, and the cells of its order column. Private.

    Where a field of the package is to be learned there are no codes: learned columns, if any, lie on public grids, in parts.
    """

    names: tuple[str, ...]
    codes: Array
    keys: Keys
    order: Integers | None
    table: TableRead
    columns: tuple[LearnedColumn, ...] = ()
    parts: tuple[Coded, ...] = ()

    @property
    def coded(self) -> tuple[Coded, ...]:
        """Rows on public grids; of a table of which nothing is learned they have no columns."""
        return self.parts if self.columns else (Coded(np.zeros((len(self.keys), 0), dtype=np.int64), ()),)


def _read_keyed(table: Any, part: Resource, ring: Keyring, order: str | None = None) -> _Keyed:
    """One table of several, in parts."""
    codec = Provisional(part.schema) if part.schema.learns else Codec(part.schema)
    wanted = part.schema.beside(part.link)
    source = open_source(_collected(table, wanted) if is_spark(table) else table, wanted)

    def one(piece: Any) -> tuple[Any, Keys, Array, EncodeLog]:
        found = source.table(piece)
        keys = ring(*named(found.columns[part.link], part.schema.missing_values))
        if isinstance(codec, Provisional):
            coded, log = codec.encode_part(found)
            return coded, keys, np.zeros(0), log
        cells, log = codec.encode_part(found, "cells")
        # An order of one value is not encoded, and tells nothing.
        place = [codec.names.index(order)] if order in codec.names else []
        return codec.numbers(cells), keys, cells[:, place].sum(axis=1), log

    none = np.zeros((0, len(codec.names)), dtype=np.int64), np.zeros((0, 2), dtype=np.uint64), np.zeros(0)
    batches, log, size = list[tuple[Any, Keys, Array]](), EncodeLog(), 0
    for codes, keys, cells, seen in in_order_of_parts(source.parts(), one, len(codec.names)):
        log = log + seen if batches else seen
        batches.append((codes, keys, cells))
        size += codes.nbytes + keys.nbytes
        require_memory(4 * size, "linking persons and events", "Use a machine with more memory.")
    found, by_part, places = zip(*(batches or [none]), strict=True)
    whose = np.concatenate(by_part)
    form = form_of(source)
    if is_spark(table):  # its readers take integers of 32 bits and moments from cells, in the zone of the session
        form = FrameForm(form.origin, dict.fromkeys(form.types))
    read = TableRead(part.name, part.schema, log, len(whose), form)
    if isinstance(codec, Provisional):
        return _Keyed(codec.names, none[0], whose, None, read, codec.columns, found if batches else ())
    return _Keyed(codec.names, np.concatenate(found), whose, None if order is None else np.concatenate(places), read)


def _ties(table: Any, events: _Keyed) -> tuple[Array, ...]:
    """What sorts events that the order column does not tell apart: in a file they stand as they stand, and nothing does.

    A database and Spark bring rows in whatever order suits them, which may follow from the rows of others. There a fixed hash of
    what an event holds decides, so that which events of a person are kept still follows from that person alone.
    """
    if not isinstance(table, Database) and not is_spark(table):
        return ()
    factors = np.random.default_rng(0).integers(1, 1 << 63, events.codes.shape[1], dtype=np.uint64) | np.uint64(1)
    with np.errstate(over="ignore"):
        return (np.asarray((events.codes.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)),)


def _bare(table: Any, part: Resource, ring: Keyring, events: _Keyed) -> _Keyed:
    """Persons without attributes: those whom a table lists, or without one those whom events name."""
    if table is None:
        keys = np.unique(events.keys[events.keys.any(axis=1)], axis=0)
        origin = events.table.form.origin
    else:
        found = read_table(table, dialect=part.schema.dialect)
        if part.link not in found.columns:
            raise InputError(f"{part.name} has no column {part.link!r}. {NOTHING}")
        keys, origin = ring(*named(found.columns[part.link], part.schema.missing_values)), found.origin
    read = TableRead(part.name, part.schema, EncodeLog(), len(keys), FrameForm(origin))
    return _Keyed((), np.zeros((len(keys), 1), dtype=np.int64), keys, None, read)


def _collected(frame: Any, wanted: Schema) -> Any:
    """The needed columns of a Spark frame, on this machine: linking looks at persons and events together."""
    chosen, _ = needed_columns(frame, wanted)
    with spark_errors():
        size = CELL * chosen.count() * len(chosen.columns)
        require_memory(size, "linking a Spark frame's rows on this machine", "Use a machine with more memory.")
        return chosen.toArrow().rename_columns(list(match(list(frame.columns), wanted)[0]))


def _require_order(events: _Keyed, part: Resource) -> None:
    """Refuse rows without a value of the column that orders them."""
    order = None if part.parent is None else part.parent.order
    seen = None if order is None else events.table.log.columns.get(order)
    # A required field has its default where a cell is empty: the log knows how often that was.
    holes = 0 if seen is None else seen.missing + seen.unparseable
    for j, column in enumerate(events.columns):
        if column.field.name == order:  # words among numbers may be learned elsewhere, and order nothing
            places = np.concatenate([coded.codes[:, j] for coded in events.parts])
            holes = int(np.count_nonzero((places < 0) | (places >= column.bins)))
    if holes:
        raise InputError(
            f"{part.name}: {holes:,} of {len(events.keys):,} rows have no {order!r}, which orders them. Fill in the values, or "
            f"leave out order. {NOTHING}"
        )


def _owners(first: _Keyed, second: _Keyed, one: Resource, two: Resource) -> Integers:
    """The place of each event's person, or a refusal: persons without a key, twice the same, or events of nobody."""
    persons, events = first.keys, second.keys
    if not len(persons):
        raise InputError(f"{one.name} has a header and no rows. There is nothing to synthesize. {NOTHING}")
    if not len(events):
        raise InputError(f"{two.name} has a header and no rows. Release {one.name} alone, as a single table. {NOTHING}")
    nameless = int((~persons.any(axis=1)).sum())
    if nameless:
        raise InputError(f"{one.name}: {nameless:,} of {len(persons):,} rows have no {one.link!r}. {NOTHING}")
    # Two words of a key become one number: places among the different first words, and among the second.
    both = np.concatenate([persons, events])
    words = [np.unique(both[:, j], return_inverse=True)[1].ravel() for j in (0, 1)]
    _, places = np.unique(words[0] * len(both) + words[1], return_inverse=True)
    places = places.ravel()
    mine, theirs = places[: len(persons)], places[len(persons) :]
    twice = int((np.bincount(mine) > 1).sum())
    if twice:
        why = f"{twice:,} values of {one.link!r} occur in several rows"
        raise InputError(f"{one.name}: {why}. Each person must have one row there. {NOTHING}")
    at = np.full(int(places.max()) + 1, -1)
    at[mine] = np.arange(len(mine))
    owner = at[theirs]
    orphans = int((owner < 0).sum())
    if orphans:
        raise InputError(
            f"{two.name}: {orphans:,} of {len(events):,} rows have a {two.link!r} that is not in {one.name}. Add these persons, "
            f"or leave the rows out. {NOTHING}"
        )
    return np.asarray(owner, dtype=np.int64)


def restored(description: Description, frames: tuple[FrameForm, ...], parts: list[Any]) -> Any:
    """All parts together: a frame of the kind that a table came in, or of several tables frames by their names."""
    if description.schema is not None:
        return frames[0].restore(joined(parts), description.schema.fields)
    out = {}
    for j, (part, form) in enumerate(zip(description.tables, frames, strict=True)):
        # Keys are numbers now, whatever they were.
        types = {name: kind for name, kind in form.types.items() if name != part.link}
        kept = FrameForm(form.origin, {part.link: None, **types} if types else {})
        out[part.name] = kept.restore(joined([one[j] for one in parts]), (*part.schema.fields, part.key_field))
    return out


# Arrays: bits, category codes, and real vectors in a body K.


@dataclass(frozen=True)
class Form:
    """The type in which arrays go out: the one they came in, where it is its owner's choice and cells had no say in it."""

    dtype: np.dtype[Any]
    sparse: bool = False
    frame: NumberFrame | None = None
    own_types: bool = True  # whether each column of a frame gets its own type back

    def restore(self, rows: Array) -> Any:
        """One part of synthetic rows in the caller's type."""
        return (csr_array(rows) if self.sparse else rows).astype(self.dtype, copy=False)

    def join(self, parts: list[Any]) -> Any:
        """All parts together."""
        if self.sparse:
            return vstack(parts, format="csr")
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return rows if self.frame is None else self.frame.restore(rows, self.own_types)


def read_matrix(X: Any, sparse: bool = False) -> tuple[Batch, Form]:
    """Numbers with a row per record: an array, a frame, or where the method allows it a sparse matrix."""
    frame, thin = None, is_sparse(X)
    if isinstance(X, str | PathLike):
        raise InputError(
            f"X is the path {str(X)!r}, and a file needs a schema that says what its columns hold: give schema=…, for example "
            "covey.Schema.draft(path), checked and confirmed."
        )
    if thin and not sparse:
        raise InputError("X is sparse, which method='regain' takes for records of 0 and 1. Give X.toarray() instead.")
    dtype = X.dtype if thin or isinstance(X, np.ndarray) else USUAL
    if (origin := frame_origin(X)) is not None:
        X, dtype, frame = numbers_of(X, origin)
    try:
        X = X if thin else np.asarray(X)
    except ValueError:
        raise InputError("X must be a matrix; its rows have different lengths.") from None
    if X.ndim != 2:
        raise InputError(f"X must be a matrix with a row per record, got an array of shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise InputError(f"X must hold numbers, got an array of type {X.dtype}.")
    if not X.shape[0] or not X.shape[1]:
        raise InputError(f"X must have at least one row and one column, got shape {X.shape}.")
    form = Form(chosen(dtype), thin, frame)
    try:
        X = canonical(X) if thin else X
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"X is not a valid sparse matrix: {error}") from None
    if X.dtype.kind == "f" and not np.isfinite(X.data if thin else X).all():
        raise InputError("X holds NaN or infinite values. Replace them before fitting.")
    return X, form


def read_bits(X: Any, sparse: bool = False) -> tuple[Batch, Form]:
    """Records of 0 and 1; sparse ones are treated as the dense matrix with the same entries would be."""
    matrix, form = read_matrix(X, sparse)
    cells = matrix.data if form.sparse else matrix
    if matrix.dtype.kind != "b" and not ((cells == 0) | (cells == 1)).all():
        raise InputError(
            "X must hold only 0 and 1. For categories give their numbers, domain=[…]; for real-valued records the "
            "convex set they lie in, for example body=covey.bodies.Box(lower, upper)."
        )
    return (matrix.astype(np.uint8) if form.sparse or matrix.dtype.kind == "f" else matrix), form


def read_reals(X: Any, body: Body) -> tuple[Array, Form]:
    """Real vectors, which need not lie in the body: they are projected onto it later, one by one."""
    matrix, form = read_matrix(X)
    if matrix.shape[1] != body.dimension:
        raise InputError(f"X has {matrix.shape[1]} columns and body has dimension {body.dimension}.")
    if not (one_hot(form) and isinstance(body, ProductOfSimplices)):
        # Averages of integers are not integers.
        form = Form(np.dtype(np.float64), frame=form.frame, own_types=False)
    return np.asarray(matrix), form


def one_hot(form: Form) -> bool:
    """Whether rows of a product of simplices are categories: their owner gave them a type of few bits, for whole numbers."""
    return form.dtype.kind in "iu" and form.dtype != USUAL


def read_codes(X: Any, domain: Domain) -> tuple[Integers, Form]:
    """Category codes; they come back in the type they came in, where that holds the whole domain."""
    matrix, form = read_matrix(X)
    if matrix.shape[1] != len(domain.sizes):
        raise InputError(f"X has {matrix.shape[1]} columns and domain names {len(domain.sizes)} attributes.")
    codes = matrix.astype(np.int64)
    if (codes != matrix).any() or (codes < 0).any() or (codes >= domain.counts).any():
        raise InputError("X must hold category codes 0, …, c − 1 of the declared domain.")
    dtype = np.promote_types(form.dtype, np.min_scalar_type(max(domain.sizes) - 1))
    return codes, Form(dtype if dtype.kind in "iu" else np.dtype(np.int64), frame=form.frame, own_types=False)
