"""What both synthesizers share: remembered parameters, randomness, and sampling rows of the kind that was read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from covey.engine.arrays import require_memory
from covey.engine.bodies import Body
from covey.engine.codes.domain import Domain
from covey.engine.entropy import Streams
from covey.engine.points import WeightedPoints
from covey.errors import NotFittedError, ParameterError, briefly, whole_number
from covey.release.drawing import Drawn, MakePersons, MakeRows
from covey.tables.codec import Codec
from covey.tables.reading import Form, Prepared, Reader
from covey.tables.schema import Schema
from covey.tables.spark.frames import arrow_batches, spark_schema
from covey.tables.spark.units import generate

NOT_FITTED = "this synthesizer is not fitted yet. Call fit(X) first."


class Synthesizer:
    """Remembers what it was made with, as scikit-learn's tools ask for it, and samples rows of the kind that was read."""

    _given: dict[str, Any]
    _learns = False  # whether limits and categories can be learned
    _of_paper: tuple[str, ...] = ()  # parameters that are taken together as **paper

    def __new__(cls, *arguments: Any, **options: Any) -> Any:
        """Remember what was given, so that a clone can be given the same."""
        made = super().__new__(cls)
        if arguments or options:
            given = inspect.signature(cls.__init__).bind(made, *arguments, **options)
            given.apply_defaults()
            made._given = {name: value for name, value in given.arguments.items() if name not in ("self", "paper")}
            made._given |= dict.fromkeys(cls._of_paper) | given.arguments.get("paper", {})
        return made

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
        self._first_reader: Reader | None = None  # of a table as it was declared, where it may be read again
        self._seed = None if seed is None else whole_number(seed, "seed", 0)
        self._streams_taken = 0
        self._law: Any = None
        self._form = Form(np.dtype(np.uint8))  # of arrays
        self._restore: Callable[[list[Any]], Any] | None = None  # of tables

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters that this synthesizer was made with."""
        return dict(self._given)

    def set_params(self, **changes: Any) -> Self:
        """Start again, not fitted, with some parameters changed."""
        unknown = sorted(set(changes) - set(self._given))
        if unknown:
            raise ParameterError(f"{type(self).__name__} has no parameter {unknown[0]!r}: {', '.join(self._given)}.")
        given = self._given | changes
        type(self).__init__(self, **given)
        self._given = given
        return self

    @property
    def seeded(self) -> bool:
        """Whether a seed was given. Whatever a seeded run makes is not private."""
        return self._seed is not None

    def _next_streams(self) -> Streams:
        """Fresh randomness for one fit or sample. No key is kept, so that copies of a synthesizer share no noise."""
        self._streams_taken += 1
        if self._seed is None:
            return Streams.from_system()
        return Streams.from_seed(self._seed).child(f"call {self._streams_taken}")

    @property
    def centres(self) -> WeightedPoints:
        """The weighted centres in K that rows are drawn from."""
        if self._law is None:
            raise NotFittedError(NOT_FITTED)
        cloud: WeightedPoints = self._law.cloud
        return cloud

    def sample(self, m: int) -> Any:
        """Draw m synthetic rows: an array of the kind that was fitted, or with a schema a frame of that kind.

        Costs no privacy, however often it is called.
        """
        drawn = self.draw(m)
        require_memory(
            self._maker().memory(drawn.m),
            f"a sample of {briefly(drawn.m)} rows",
            "Draw fewer rows at a time, or use draw(m).",
        )
        return (self._restore or self._form.join)(list(drawn))

    def draw(self, m: int) -> Drawn:
        """m synthetic rows that are drawn part by part when they are asked for, so m may be larger than the memory."""
        maker = self._maker()
        return Drawn(whole_number(m, "m", 1, "It counts the synthetic rows."), maker, self._next_streams())

    def _maker(self) -> MakeRows | MakePersons:
        """What draws rows."""
        if self._law is None:
            raise NotFittedError(NOT_FITTED)
        coding = "bins" if self._reader is None else self._reader.coding
        return MakeRows(self._law, self._codec, coding, self._form)

    def sample_spark(self, spark: Any, m: int) -> Any:
        """m synthetic rows as a Spark frame: its executors draw the parts when they are needed, and the same ones each time."""
        if self.schema is None:
            raise ParameterError("a Spark frame needs a schema. Give schema=….")
        schema, drawn = self.schema, self.draw(m)
        return generate(spark, drawn.parts, lambda k: arrow_batches(drawn.part(k), schema), spark_schema(schema))

    def prepare(self, table: Any) -> Prepared:
        """Read and encode a table, or tables by name, as the schema says. It may fail and spends nothing. The result is private.

        A single table is read in parts, so it may be larger than memory. It is read again where it is too large to be kept.
        """
        return (self._first_reader or self._table_reader()).prepare(table)

    def _table_reader(self) -> Reader:
        if self._reader is None:
            raise ParameterError("only a synthesizer with a schema prepares tables: give schema=….")
        return self._reader


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
