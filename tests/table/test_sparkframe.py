from datetime import date

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from covey.errors import InputError
from covey.table.codec import Codec
from covey.table.dialects import Spelling
from covey.table.schema import Field, Schema
from covey.table.sparkframe import BatchEncoder, arrow_batches, is_spark, needed_columns, spark_schema
from tests.table.examples import PEOPLE, SCHEMA, rng, some_codes


class Frame:
    """As much of a Spark frame as choosing its columns needs."""

    def __init__(self, columns):
        self.columns = columns

    def mapInArrow(self):
        """Marks a Spark frame."""

    def toDF(self, *names):
        return Frame(list(names))

    def select(self, *names):
        return list(names)


def test_needed_columns_are_chosen_by_place():
    frame = Frame(["name", "sex", "a.b", "age"])
    assert is_spark(frame)
    assert not is_spark(pl.DataFrame())
    assert needed_columns(frame, SCHEMA) == (["c3", "c1"], ("name", "a.b"))


def test_batches_are_encoded_as_a_frame_is():
    columns = {"age": ["1", "x", None, "30"], "sex": ["f", "?", None, "m"]}
    codec = Codec(SCHEMA)
    _, log = codec.encode(pl.DataFrame(columns))
    for known in (columns, {**columns, "sex": ["f", "m", None, "m"]}):
        found, _ = BatchEncoder(codec, codec.encode_part, ())(pa.record_batch(known))
        assert np.array_equal(found, codec.encode(pl.DataFrame(known))[0])
    assert BatchEncoder(codec, codec.encode_part, ())(pa.record_batch(columns))[1] == log
    with pytest.raises(InputError, match="'sex' has a cell of more than"):
        BatchEncoder(codec, codec.encode_part, ())(pa.record_batch({"age": [1], "sex": ["f" * (2**20 + 1)]}))


def test_text_is_spelled_as_the_schema_says():
    """Dates with dots, in a column of few words and in one of many: read as in a frame on this machine."""
    schema = Schema((Field("d", "date", "2020-01-01", "2030-12-31", spelling=Spelling(date_format="%d.%m.%Y")),))
    codec, days = Codec(schema), pl.date_range(date(2021, 1, 1), date(2025, 1, 1), eager=True).dt.to_string("%d.%m.%Y")
    for words in (days[:50], days):
        wanted, log = codec.encode(pl.DataFrame({"d": words}))
        found, seen = BatchEncoder(codec, codec.encode_part, ())(pa.record_batch({"d": words.to_list()}))
        assert np.array_equal(found, wanted)
        assert seen == log
        assert not log.columns["d"].unparseable


def test_synthetic_batches_have_the_types_that_spark_is_told():
    schema = Schema.from_dict(PEOPLE)
    codec = Codec(schema)
    columns = codec.decode(some_codes(codec, 20, 1), rng())
    [batch] = arrow_batches(columns, schema)
    assert batch.schema.names == spark_schema(schema).names == list(schema.names)
    assert [str(field.type) for field in batch.schema] == [
        "string",
        "string",
        "int64",
        "double",
        "date32[day]",
        "timestamp[us]",
        "bool",
        "bool",
        "string",
    ]
    assert schema.validate(pa.Table.from_batches([batch])) == []
