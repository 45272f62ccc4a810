"""Schemas of tests: fields as a schema file has them, each in one line, and schemas of fields."""

import polars as pl

from covey.tables.schema import Schema


def entry(name, kind, low=None, high=None, enum=None, required=None, **own):
    """A field with its limits or categories, and what covey alone knows of it."""
    limits = {"minimum": low, "maximum": high, "enum": enum, "required": required}
    parts = {"constraints": {word: value for word, value in limits.items() if value is not None}, "covey": own}
    return {"name": name, "type": kind, **{word: value for word, value in parts.items() if value}}


def schema_of(*fields, **more):
    """A schema of these fields."""
    return Schema(fields, **more)


def frame_of(**columns):
    """A frame of these columns."""
    return pl.DataFrame(columns)
