"""Records: what a caller gives becomes rows of integers, and synthetic rows become the caller's type again.

Four kinds: bits, category codes, real vectors in a body K, and the cells of a table with a schema. Reading happens on the owner's
machine before any budget is spent, so it may fail and its messages may speak of the table. What it remembers of a table is
its form alone: type, sparseness, kind of frame.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from os import PathLike
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_array, vstack

from covey.core.arrays import Array, Integers
from covey.core.paper.bodies import Body, ProductOfSimplices
from covey.core.tables.domain import Domain
from covey.core.tables.learned import Counting
from covey.core.tables.moments import Batch, canonical, is_sparse
from covey.engines.local import KEEP_BYTES, StreamRows
from covey.engines.persons import Keyring, PersonRows, Read
from covey.engines.rows import Rows
from covey.engines.spark import SparkRows, task_numbers
from covey.engines.sparkpersons import SparkPersonRows
from covey.errors import CHANGED, InputError, InternalError, ParameterError, whole_number
from covey.table.codec import Codec, Coding, EncodeLog
from covey.table.columns import Table
from covey.table.frames import FrameForm, NumberFrame, frame_origin, numbers_of
from covey.table.persons import WithPerson, named
from covey.table.provisional import Provisional
from covey.table.schema import Schema
from covey.table.sources import form_of, joined, open_source
from covey.table.sparkfiles import PERSONS, SparkParquet, plan
from covey.table.sparkframe import BatchEncoder, is_spark, needed_columns

Kernels = Sequence[Callable[[Array], Any]]

OTHER_SYNTHESIZER = (
    "this table was prepared by another synthesizer, whose schema or method differs. Prepare it with this one."
)


@dataclass(frozen=True)
class Form:
    """The type that arrays came in, and go out in."""

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
            return parts[0] if len(parts) == 1 else vstack(parts, format="csr")
        rows = parts[0] if len(parts) == 1 else np.concatenate(parts)
        return rows if self.frame is None else self.frame.restore(rows, self.own_types)


# Arrays.


def read_matrix(X: Any) -> tuple[Array, Form]:
    """A dense array of numbers with a row per record, or a frame of them."""
    frame = None
    if isinstance(X, str | PathLike):
        raise InputError(
            f"X is the path {str(X)!r}, and a file needs a schema that says what its columns hold: give schema=…, for example "
            "covey.Schema.draft(path), checked and confirmed."
        )
    if (origin := frame_origin(X)) is not None:
        X, frame = numbers_of(X, origin)
    if is_sparse(X):
        raise InputError(
            "X is sparse, which method='regain' takes for records of 0 and 1. Here write it out: fit(X.toarray())."
        )
    typed = isinstance(X, np.ndarray)
    try:
        X = np.asarray(X)
    except ValueError:
        raise InputError("X must be a matrix; its rows have different lengths.") from None
    if X.ndim != 2:
        raise InputError(f"X must be a matrix with a row per record, got an array of shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise InputError(f"X must hold numbers, got an array of type {X.dtype}.")
    if not len(X) or not X.shape[1]:
        raise InputError(f"X must have at least one row and one column, got shape {X.shape}.")
    if X.dtype.kind == "f" and not np.isfinite(X).all():
        raise InputError("X holds NaN or infinite values. Replace them before fitting.")
    # The type of an array is its owner's choice. That of a list would follow from the values: it becomes int64.
    return np.asarray(X), Form(X.dtype if typed else np.dtype(np.int64), frame=frame)


def read_bits(X: Any, sparse: bool = False) -> tuple[Batch, Form]:
    """Records of 0 and 1, dense, or where the method allows it sparse."""
    if sparse and is_sparse(X):
        return _read_sparse(X)
    matrix, form = read_matrix(X)
    if matrix.dtype.kind != "b" and not ((matrix == 0) | (matrix == 1)).all():
        raise InputError(
            "X must hold only 0 and 1. For categories give their numbers, domain=[…]; for real-valued records the "
            "convex set they lie in, for example body=covey.bodies.Box(lower, upper)."
        )
    return (matrix if matrix.dtype.kind != "f" else matrix.astype(np.uint8)), form


def _read_sparse(X: Any) -> tuple[Batch, Form]:
    """Sparse records of 0 and 1, treated as the dense matrix with the same entries would be."""
    if X.ndim != 2:
        raise InputError(f"X must be a matrix with a row per record, got a sparse array of shape {X.shape}.")
    if X.dtype.kind not in "biuf":
        raise InputError(f"X must hold numbers, got a sparse array of type {X.dtype}.")
    if not X.shape[0] or not X.shape[1]:
        raise InputError(f"X must have at least one row and one column, got shape {X.shape}.")
    try:
        rows = canonical(X)
    except (ValueError, TypeError, IndexError) as error:
        raise InputError(f"X is not a valid sparse matrix: {error}") from None
    if not np.isfinite(rows.data).all():
        raise InputError("X holds NaN or infinite values. Replace them before fitting.")
    if not (rows.data == 1).all():
        raise InputError("X must hold only 0 and 1. A sparse matrix may hold nothing else.")
    return rows.astype(np.uint8), Form(X.dtype, sparse=True)


def read_reals(X: Any, body: Body) -> tuple[Array, Form]:
    """Real vectors, which need not lie in the body: they are projected onto it later, one by one."""
    matrix, form = read_matrix(X)
    if matrix.shape[1] != body.dimension:
        raise InputError(f"X has {matrix.shape[1]} columns and body has dimension {body.dimension}.")
    if form.dtype.kind == "f" or not isinstance(body, ProductOfSimplices):
        # Averages of integers are not integers.
        form = Form(np.dtype(np.float64), frame=form.frame, own_types=False)
    return matrix, form


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


# Tables with a schema.


class Again(Protocol):
    """Reads the same table once more, under a schema that was learned from it with noise."""

    def __call__(self, reader: TableReader) -> Prepared:
        """The table under the schema of this reader."""


@dataclass(frozen=True)
class Prepared:
    """A table as rows of category codes or cells. Private: it has no serializer, and its repr shows no record."""

    rows: Rows
    form: FrameForm
    log: EncodeLog
    schema: Schema | None = None
    coding: Coding = "bins"
    again: Again | None = None  # for tables whose domain is learned
    person: str | None = None
    read: int | None = None
    nobodys: int = 0

    @property
    def records(self) -> int:
        """How many records were read: where they are counted by persons this is for the owner of the table alone."""
        return self.rows.n if self.read is None else self.read

    @property
    def n(self) -> int:
        """The number of records, or of persons, which is public."""
        return self.rows.n

    def read_again(self, reader: TableReader) -> Prepared:
        """The same table under a schema that was learned from it."""
        if self.again is None:
            raise InternalError("only a table whose domain is learned is read again.")
        found = self.again(reader)
        if found.n != self.n:
            raise InputError(CHANGED)
        return found

    def __repr__(self) -> str:
        return f"Prepared({self.n} {'rows' if self.person is None else 'persons'})"


@dataclass(frozen=True)
class TableReader:
    """Reads tables under one schema: frames, files, databases, Spark.

    Args:
        codec: the schema's encoder.
        coding: "bins" for categories, "cells" for whole-number cells, which anonymous averages need, "numbers" for codes in
            which numbers have their own precision.
        first_pass: kernels whose sums will be asked for; they are computed while the table is read first.
        person: the column that says whose a row is, where rows are counted by persons.
    """

    codec: Codec
    coding: Coding = "bins"
    first_pass: Kernels = ()
    person: str | None = None

    def prepare(self, table: Any, encoding: str = "utf-8") -> Prepared:
        """Read and encode a table; it is read in parts, and again where it is too large to be kept."""
        if self.person is not None:
            return self._prepare_persons(table, self.person, encoding)
        codec, width, coding = self.codec, len(self.codec.names), self.coding
        if is_spark(table) or isinstance(table, SparkParquet):
            spark = _on_executors(table, codec, self._encode, width, self.first_pass)
            return Prepared(spark, FrameForm("spark"), spark.log, codec.schema, coding)
        source = open_source(table, codec.schema, encoding)
        encode = self._encode
        rows = StreamRows(source.parts, lambda part: encode(source.table(part)), width, self.first_pass, KEEP_BYTES)
        return Prepared(rows, form_of(source), rows.log, codec.schema, coding)

    @property
    def _encode(self) -> Callable[[Table], tuple[Array, EncodeLog]]:
        return partial(self.codec.encode_part, coding=self.coding)

    def _prepare_persons(self, table: Any, person: str, encoding: str) -> Prepared:
        """The same for rows that are counted by persons."""
        codec, width, beside = self.codec, len(self.codec.names), WithPerson(self.codec.schema, person)
        if isinstance(table, SparkParquet):
            raise ParameterError(PERSONS)
        if is_spark(table):
            columns, ignored = needed_columns(table, beside)
            spark = SparkPersonRows(
                columns, BatchEncoder(codec, self._encode, ignored), width, codec.schema.missing_values, self.first_pass
            )
            return Prepared(spark, FrameForm("spark"), spark.log, codec.schema, self.coding, person=person)
        source, ring, missing = open_source(table, beside, encoding), Keyring(), codec.schema.missing_values

        def read(part: Any) -> Read:
            found = source.table(part)
            batch, log = codec.encode_part(found, self.coding)
            return Read(batch, log, ring.keys(*named(found.columns[person], missing)))

        rows = PersonRows(source.parts, read, width, KEEP_BYTES)
        kept = (rows, form_of(source), rows.log, codec.schema, self.coding)
        return Prepared(*kept, person=person, read=rows.read, nobodys=rows.nobodys)

    def read(self, table: Any) -> tuple[Rows, TableForm]:
        """Rows of a table, prepared or not; only the kind of frame is remembered."""
        prepared = table if isinstance(table, Prepared) else self.prepare(table)
        if (prepared.schema, prepared.coding, prepared.person) != (self.codec.schema, self.coding, self.person):
            raise ParameterError(OTHER_SYNTHESIZER)
        return prepared.rows, TableForm(prepared.form, self.codec.schema)


@dataclass(frozen=True)
class LearningReader:
    """Reads tables whose limits or categories are to be learned: first on public grids, then under what was learned."""

    provisional: Provisional

    @property
    def kernel(self) -> Counting:
        """Counts on the grids, added up while the table is read first."""
        return Counting(tuple(column.bins for column in self.provisional.columns))

    def prepare(self, table: Any, encoding: str = "utf-8") -> Prepared:
        """Read a table on the public grids. No record is kept: it is read again once its domain is known."""
        provisional, ahead = self.provisional, (self.kernel,)
        width = len(provisional.columns)

        def again(reader: TableReader) -> Prepared:
            return reader.prepare(table, encoding)

        if is_spark(table) or isinstance(table, SparkParquet):
            spark = _on_executors(table, provisional, provisional.encode_part, width, ahead)
            return Prepared(spark, FrameForm("spark"), spark.log, provisional.schema, again=again)
        source = open_source(table, provisional.schema, encoding)
        rows = StreamRows(
            source.parts, lambda part: provisional.encode_part(source.table(part)), width, ahead, keep_bytes=0
        )
        return Prepared(rows, form_of(source), rows.log, provisional.schema, again=again)

    def read(self, table: Any) -> Prepared:
        """A table, prepared or not."""
        prepared = table if isinstance(table, Prepared) else self.prepare(table)
        if prepared.schema != self.provisional.schema or prepared.again is None:
            raise ParameterError(OTHER_SYNTHESIZER)
        return prepared


def _on_executors(
    table: Any, codec: Codec | Provisional, encode: Callable[[Table], tuple[Any, EncodeLog]], width: int, ahead: Kernels
) -> SparkRows:
    """Records of a Spark frame, or of files that Spark's executors read themselves."""
    if not isinstance(table, SparkParquet):
        columns, ignored = needed_columns(table, codec.schema)
        return SparkRows(columns, BatchEncoder(codec, encode, ignored), width, ahead)
    groups = plan(table, codec.schema)
    rows = SparkRows(task_numbers(table.spark, len(groups.tasks)), encode, width, ahead, groups)
    if rows.n != groups.n:
        raise InputError(CHANGED)
    return rows


@dataclass(frozen=True)
class TableForm:
    """The form of the frame that a table came in, and goes out in, under its schema."""

    frame: FrameForm
    schema: Schema

    def join(self, parts: list[Any]) -> Any:
        """All parts together, as a frame."""
        return self.frame.restore(joined(parts), self.schema.fields)


# Public parameters about records.

Limits = Sequence[tuple[Sequence[int], int]]


def check_domain(domain: Sequence[int] | None, ordinal: Sequence[int]) -> Domain | None:
    """The public domain, or a refusal."""
    if domain is None:
        if len(ordinal):
            raise ParameterError("ordinal names attributes of a domain: give domain=[…] as well.")
        return None
    sizes = tuple(whole_number(c, "domain", 1, "Each entry counts an attribute's categories.") for c in domain)
    if not sizes:
        raise ParameterError("domain must name at least one attribute.")
    places = {whole_number(a, "ordinal", 0) for a in ordinal}
    if places and max(places) >= len(sizes):
        raise ParameterError(f"ordinal names attribute {max(places)}, and domain has {len(sizes)}, counted from 0.")
    return Domain(sizes, tuple(a in places for a in range(len(sizes))))


def check_limits(limits: Limits) -> list[tuple[list[int], int]]:
    """Declared limits as lists of columns, each column in one set at most, or a refusal."""
    try:
        read = [([whole_number(c, "at_most column", 0) for c in cols], most) for cols, most in limits]
    except (TypeError, ValueError) as error:
        raise ParameterError(f"at_most must list pairs (columns, limit): {error}") from None
    seen: set[int] = set()
    for columns, most in read:
        whole_number(most, "at_most limit", 0)
        if not columns or len(set(columns)) < len(columns) or seen & set(columns):
            raise ParameterError("at_most: each set needs columns, and each column belongs to one set at most.")
        seen |= set(columns)
    return read
