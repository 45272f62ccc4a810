"""What both synthesizers of single tables share: sampling rows of the kind that was read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from covey.core.arrays import require_memory
from covey.core.paper.blocks import WeightedPoints
from covey.core.paper.bodies import Body
from covey.drawing import Decode, Drawn, Maker, MakeRows, Restore
from covey.engines.spark import generate
from covey.errors import NotFittedError, ParameterError, whole_number
from covey.html import shorten
from covey.privacy.budget import Budget
from covey.reading import Prepared, Reader, TableForm
from covey.records import Form
from covey.synthesizers.parameters import Parameterized
from covey.table.codec import Codec
from covey.table.persons import without
from covey.table.schema import Schema
from covey.table.spark import arrow_batches, spark_schema


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
        self._reader: Reader | None = None
        self._learning: Reader | None = None
        self._seed_with(seed)
        self._law: Any = None
        self._form: Form | TableForm = Form(np.dtype(np.uint8))

    @property
    def centres(self) -> WeightedPoints:
        """The weighted centres in K that rows are drawn from."""
        cloud: WeightedPoints = self._fitted_law().cloud
        return cloud

    def _fitted_law(self) -> Any:
        """The law that rows are drawn from."""
        if self._law is None:
            raise NotFittedError("this synthesizer is not fitted yet. Call fit(X) first.")
        return self._law

    def sample(self, m: int) -> Any:
        """Draw m synthetic rows: an array of the kind that was fitted, or with a schema a frame of that kind.

        Costs no privacy, however often it is called.
        """
        rows = whole_number(m, "m", 1, "It counts the synthetic rows.")
        size = self._maker().memory(rows)
        require_memory(size, f"a sample of {rows} rows", "Draw fewer rows at a time, or use draw(m).")
        return self._form.join(list(self.draw(rows)))

    def draw(self, m: int) -> Drawn:
        """m synthetic rows that are drawn part by part when they are asked for, so m may be larger than the memory."""
        maker = self._maker()
        return Drawn(whole_number(m, "m", 1, "It counts the synthetic rows."), maker, self._next_streams())

    def _maker(self) -> Maker:
        """What draws rows."""
        return MakeRows(self._fitted_law(), self._restore())

    def _restore(self) -> Callable[[Any, np.random.Generator], Any]:
        """From drawn rows to the caller's type: codes or cells are decoded under the schema, arrays get their type back."""
        if self._codec is not None:
            return Decode(self._codec, self._table_reader().coding)
        assert isinstance(self._form, Form)  # without a schema there are no frames
        return Restore(self._form)

    def sample_spark(self, spark: Any, m: int) -> Any:
        """m synthetic rows as a Spark frame: its executors draw the parts when they are needed, and the same ones each time."""
        if self.schema is None:
            raise ParameterError("a Spark frame needs a schema. Give schema=….")
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

    def _table_reader(self) -> Reader:
        if self._reader is None:
            raise ParameterError("only a synthesizer with a schema prepares tables: give schema=….")
        return self._reader


def promise_words(budget: Budget) -> str:
    """The guarantee that was asked for."""
    return f"differential privacy with {budget.parameters}{', pure' if budget.pure else ''}"


def synthesized(schema: Any, person: Any) -> Any:
    """The schema of what is synthesized: without the column of persons."""
    if person is None:
        return schema
    if not isinstance(schema, Schema):
        raise ParameterError("person names a column of a table, so it needs schema=….")
    own = without(schema, person)
    if own.learns:
        raise ParameterError("limits and categories cannot be learned by person. Declare them, or leave out person.")
    return own


def columns_facts(columns: Sequence[str]) -> list[tuple[str, Any]]:
    """The columns, the first few by name."""
    names = [shorten(name, 30) for name in columns[:8]]
    more = f" and {len(columns) - len(names):,} more" if len(columns) > len(names) else ""
    return [("Columns", f"{', '.join(names)}{more}")] if names else []
