"""What both synthesizers of single tables share: sampling rows of the kind that was read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.core.arrays import require_memory
from covey.core.draw.balanced import REFINE_CATEGORIES
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.bodies import Body
from covey.core.threads import blas_threads
from covey.engines.spark import generate
from covey.entropy import Streams
from covey.errors import NotFittedError, ParameterError, whole_number
from covey.html import shorten
from covey.methods.draws import Draw, DrawCodes
from covey.methods.regain.memory import CODE
from covey.privacy.budget import Budget
from covey.records import (
    Form,
    LearningReader,
    Prepared,
    TableForm,
    TableReader,
)
from covey.synthesizers.linked import LinkedSynthesizer
from covey.synthesizers.parameters import Parameterized
from covey.table.codec import Codec
from covey.table.numbers import NumberCodec
from covey.table.package import Package
from covey.table.persons import without
from covey.table.schema import Schema
from covey.table.sparkframe import arrow_batches, spark_schema

PART_ROWS = 1 << 18  # synthetic rows that are drawn, decoded and written at a time: some hundred MiB for wide tables


@dataclass(frozen=True)
class Drawn:
    """m synthetic rows in parts. A part comes from a stream of its own: it is the same whenever and wherever it is drawn."""

    m: int
    _centres: WeightedPoints
    _draw: Draw
    _restore: Callable[[Any, np.random.Generator], Any]
    _streams: Streams

    @property
    def parts(self) -> int:
        """How many parts there are."""
        return -(-self.m // PART_ROWS)

    @property
    def mended(self) -> int:
        """Rows that were altered after drawing, because they broke a rule: all that this synthesizer has decoded so far."""
        return self._restore.codec.book.mended if isinstance(self._restore, _Decode) else 0

    def part(self, k: int) -> Any:
        """The rows of part k: an array, or with a schema a mapping of columns."""
        streams = self._streams.child(f"part {k}")
        with blas_threads(1):
            rows = self._draw(self._centres, min(PART_ROWS, self.m - k * PART_ROWS), streams)
        return self._restore(rows, streams.postprocessing("decode"))

    def __iter__(self) -> Iterator[Any]:
        return (self.part(k) for k in range(self.parts))


class _Synthesizer(Parameterized):
    """What both synthesizers share: sampling rows of the kind that was read."""

    _learns = False  # whether limits and categories can be learned

    def __init__(self, body: Body | None, seed: int | None, schema: Schema | None) -> None:
        if body is not None and not isinstance(body, Body):
            raise ParameterError(f"body must be a convex body such as covey.bodies.Box, got {body!r}.")
        if schema is not None and not isinstance(schema, Schema):
            raise ParameterError(
                f"schema must be a covey.Schema, got {schema!r}. Load one with covey.Schema.load(path)."
            )
        self.body = body
        self.schema = schema
        self._codec = None if schema is None or (self._learns and schema.learns) else Codec(schema)
        self._reader: TableReader | None = None
        self._learning: LearningReader | None = None
        self._numbers: NumberCodec | None = None
        self._seed_with(seed)
        self._centres: WeightedPoints | None = None
        self._draw: Draw | None = None
        self._form: Form | TableForm = Form(np.dtype(np.uint8))

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """Remember what was given; a `Package` has a synthesizer of its own."""
        if isinstance(options.get("schema"), Package):
            if not cls._learns:
                raise ParameterError("linked tables are released with differential privacy alone: PrivateSynthesizer.")
            return LinkedSynthesizer.instead_of(arguments, options)
        return super().__new__(cls, *arguments, **options)

    @property
    def centres(self) -> WeightedPoints:
        """The weighted centres in K that rows are drawn from."""
        if self._centres is None:
            raise NotFittedError("this synthesizer has seen no table yet: call fit(X) first.")
        return self._centres

    def sample(self, m: int) -> Any:
        """Draw m synthetic rows: an array of the kind that was fitted, or with a schema a frame of that kind.

        Costs no privacy, however often it is called.
        """
        return self._form.join(list(self.draw(require_sample_memory(m, self.centres, self._draw))))

    def draw(self, m: int) -> Drawn:
        """m synthetic rows that are drawn part by part when they are asked for, so m may be larger than the memory."""
        if self._draw is None:
            raise NotFittedError("this synthesizer has seen no table yet: call fit(X) first.")
        m = whole_number(m, "m", 1, "It counts the synthetic rows.")
        return Drawn(m, self.centres, self._draw, self._restore(), self._next_streams())

    def _restore(self) -> Callable[[Any, np.random.Generator], Any]:
        """From drawn rows to the caller's type: codes or cells are decoded under the schema, arrays get their type back."""
        if self._codec is not None:
            return _Decode(self._codec, cells=self._table_reader().coded == "cells", fine=self._numbers)
        assert isinstance(self._form, Form)  # without a schema there are no frames
        return _Restore(self._form)

    def sample_spark(self, spark: Any, m: int) -> Any:
        """m synthetic rows as a Spark frame: its executors draw the parts when they are needed, and the same ones each time."""
        if self.schema is None:
            raise ParameterError("Spark rows have names: give schema=….")
        schema, drawn = self.schema, self.draw(m)
        return generate(spark, drawn.parts, lambda k: arrow_batches(drawn.part(k), schema), spark_schema(schema))

    @property
    def width(self) -> int:
        """Encoded columns under the schema, which are public: what a sample's memory depends on."""
        if self._codec is None:
            raise ParameterError("only a synthesizer with a schema knows its width before fitting: give schema=….")
        return self._codec.width

    def prepare(self, table: Any, encoding: str = "utf-8") -> Prepared:
        """Read and encode a table under the schema. May fail on the table; spends nothing; what it returns is private.

        The table is read in parts, so it may be larger than memory. It is read again where it is too large to be kept.
        """
        return (self._learning or self._table_reader()).prepare(table, encoding)

    def _table_reader(self) -> TableReader:
        if self._reader is None:
            raise ParameterError("only a synthesizer with a schema prepares tables: give schema=….")
        return self._reader


@dataclass(frozen=True)
class _Decode:
    """Codes or cells become columns of values."""

    codec: Codec
    cells: bool
    fine: NumberCodec | None = None

    def __call__(self, rows: Any, generator: np.random.Generator) -> Any:
        if self.fine is not None:
            return self.fine.decode(rows, generator)
        decode = self.codec.decode_cells if self.cells else self.codec.decode
        return decode(rows.astype(np.int64), generator)


@dataclass(frozen=True)
class _Restore:
    """Drawn rows get the caller's type."""

    form: Form

    def __call__(self, rows: Any, _: np.random.Generator) -> Any:
        return self.form.restore(rows)


def promise_words(budget: Budget) -> str:
    """The guarantee that was asked for."""
    return f"differential privacy with {budget.parameters}{', pure' if budget.pure else ''}"


def synthesized(schema: Any, person: Any) -> Any:
    """The schema of what is synthesized: without the column of persons."""
    if person is None:
        return schema
    if not isinstance(schema, Schema):
        raise ParameterError("person names a column of a table: give its schema=… as well.")
    own = without(schema, person)
    if own.learns:
        raise ParameterError("domains are learned from rows, not by person: declare them, or leave person out.")
    return own


def schema_facts(schema: Schema | None) -> list[tuple[str, Any]]:
    """The columns of a schema, the first few by name."""
    if schema is None:
        return []
    names = [shorten(name, 30) for name in schema.names[:8]]
    more = f" and {len(schema.names) - len(names):,} more" if len(schema.names) > len(names) else ""
    return [("Columns", f"{', '.join(names)}{more}")]


def require_sample_memory(m: Any, centres: WeightedPoints, draw: Draw | None) -> int:
    """How many rows to draw at once, or a refusal: they must fit the memory, with the pair tables that they are to match."""
    rows = whole_number(m, "m", 1, "It counts the synthetic rows.")
    domain = draw.numbers.domain if isinstance(draw, DrawCodes) else None
    width = centres.points.shape[1]
    cells = 8 * width if domain is None else CODE * len(domain.sizes)
    tables = 20 * width**2 if domain is None or width <= REFINE_CATEGORIES else 40 * centres.points.size
    require_memory(rows * cells + tables, f"a sample of {rows} rows", "Draw fewer rows at a time, or use draw(m).")
    return rows
