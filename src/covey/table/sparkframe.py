"""Spark frames: which columns are needed, how their Arrow batches become codes, and what synthetic columns are called there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from covey.errors import InputError
from covey.table.arrowfile import batch_table
from covey.table.attributes import Labels
from covey.table.codec import Codec, EncodeLog
from covey.table.columns import FIELD_LIMIT, Table, made, match
from covey.table.domain import Domain
from covey.table.extras import optional
from covey.table.provisional import Provisional
from covey.table.schema import Schema
from covey.table.sources import plainly

if TYPE_CHECKING:
    from polars import Series

KIND = "spark"
FEW_WORDS = 1 << 10  # distinct words of a column up to which each is decoded once


def is_spark(table: Any) -> bool:
    """Whether a table is a Spark frame; Spark is not imported for it."""
    return hasattr(type(table), "mapInArrow")


def needed_columns(frame: Any, schema: Domain) -> tuple[Any, tuple[str, ...]]:
    """The frame with the schema's columns alone, in its order and under plain names, and the names that are passed over."""
    places, ignored, _ = match(list(frame.columns), schema)
    # By place: names may hold dots, differ in case only, or be there twice where they are not needed.
    renamed = frame.toDF(*(f"c{j}" for j in range(len(frame.columns))))
    return renamed.select(*(f"c{j}" for j in places.values())), ignored


@dataclass(frozen=True)
class BatchEncoder:
    """Encodes Arrow batches of the needed columns; it is sent to the executors, and holds public things alone."""

    codec: Codec | Provisional
    encode: Callable[[Table], tuple[Any, EncodeLog]]  # by this codec
    ignored: tuple[str, ...]

    def __call__(self, batch: Any) -> tuple[Any, EncodeLog]:
        """The codes of a batch, and the private log."""
        try:
            arrays = zip(self.codec.names, batch.columns, strict=True)
            columns = {name: self._with_words(name, values) for name, values in arrays}
            read = batch_table(columns, len(batch), KIND, self.ignored, FIELD_LIMIT)
            table = plainly(read, self.codec.schema)
        except (ValueError, NotImplementedError, optional("polars").exceptions.PolarsError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"a batch of the Spark frame cannot be read: {error}") from None
        return self.encode(table)

    def _with_words(self, name: str, values: Any) -> Any:
        """Spark spells out every cell of text. Where there are few words, a column is turned into places in a list of them."""
        pa = optional("pyarrow")
        if not pa.types.is_string(values.type):
            return values
        attribute = self.codec.attributes.get(name)
        if isinstance(attribute, Labels):
            labels = pa.array(list(attribute.words), pa.string())
            places = optional("pyarrow.compute").index_in(values, value_set=labels)
            if places.null_count == values.null_count:
                return pa.DictionaryArray.from_arrays(places, labels)
        found = values.dictionary_encode()
        return found if len(found.dictionary) <= FEW_WORDS else values


def spark_schema(schema: Schema) -> Any:
    """The Spark schema of synthetic rows."""
    types = optional("pyspark.sql.types")
    dtypes = {
        "boolean": types.BooleanType(),
        "string": types.StringType(),
        "integer": types.LongType(),
        "number": types.DoubleType(),
        "date": types.DateType(),
        "datetime": types.TimestampNTZType(),
        "time": types.StringType(),  # Spark has no time of day in every version
    }
    return types.StructType(
        [
            types.StructField(field.name, types.StringType() if field.special else dtypes[field.written])
            for field in schema.fields
        ]
    )


def arrow_batches(columns: Mapping[str, Series], schema: Schema) -> Iterator[Any]:
    """Synthetic columns as Arrow batches of `spark_schema`."""
    pa, pl = optional("pyarrow"), optional("polars")
    dtypes = {
        "boolean": pa.bool_(),
        "string": pa.string(),
        "integer": pa.int64(),
        "number": pa.float64(),
        "date": pa.date32(),
        "datetime": pa.timestamp("us"),
        "time": pa.string(),
    }
    wanted = pa.schema([(f.name, pa.string() if f.special else dtypes[f.written]) for f in schema.fields])
    frame = pl.DataFrame({name: made(name, columns[name]) for name in wanted.names})
    yield from frame.to_arrow(compat_level=pl.CompatLevel.oldest()).cast(wanted).combine_chunks().to_batches()
