"""One table of several as codes, with the keys of its rows and what orders them.

This may fail and speak of the table; nothing was charged yet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from covey.core.arrays import Array, Integers, require_memory
from covey.engines.local import in_order_of_parts
from covey.engines.persons import Keyring, Keys
from covey.engines.spark import spark_errors
from covey.errors import InputError
from covey.table.codec import Codec, EncodeLog
from covey.table.columns import match
from covey.table.databases import Database
from covey.table.frames import FrameForm
from covey.table.persons import WithPerson, named
from covey.table.resources import Resource
from covey.table.schema import Schema
from covey.table.sources import form_of, open_source, read_table
from covey.table.sparkframe import is_spark, needed_columns

NOTHING = "Nothing was charged."
CELL = 64  # bytes of a cell of a Spark frame while it is read: text and its copy


@dataclass(frozen=True)
class ReadTable:
    """One table as codes at full resolution, its keys, and the cells of the order column. Private."""

    codes: Array
    keys: Keys
    order: Integers | None
    log: EncodeLog
    form: FrameForm
    schema: Schema


def read(table: Any, part: Resource, schema: Schema, ring: Keyring, order: str | None) -> ReadTable:
    """One table in parts, as codes with keys."""
    codec = Codec(schema)
    wanted = WithPerson(schema, part.link)
    source = open_source(_collected(table, wanted) if is_spark(table) else table, wanted)

    def one(piece: Any) -> tuple[Array, Keys, Any, EncodeLog]:
        found = source.table(piece)
        cells, log = codec.encode_part(found, "cells")
        keys = ring.keys(*named(found.columns[part.link], schema.missing_values))
        place = [codec.names.index(order)] if order in codec.names else []
        own = (
            None if order is None else cells[:, place].sum(axis=1)
        )  # an order of one value is not encoded, and tells nothing
        return codec.numbers(cells), keys, own, log

    batches: list[tuple[Array, Keys, Any]] = []
    log, size = EncodeLog(), 0
    for batch in in_order_of_parts(source.parts(), one, len(codec.names)):
        log = batch[3] if not batches else log + batch[3]
        batches.append(batch[:3])
        size += batch[0].nbytes + batch[1].nbytes
        require_memory(4 * size, "linking persons and events", "Use a machine with more memory.")
    if not batches:
        empty = np.zeros((0, len(codec.names)), dtype=np.int64)
        return ReadTable(empty, np.zeros((0, 2), dtype=np.uint64), None, log, form_of(source), schema)
    codes, keys = (np.concatenate([batch[j] for batch in batches]) for j in (0, 1))
    cells = None if batches[0][2] is None else np.concatenate([batch[2] for batch in batches])
    return ReadTable(codes, keys, cells, log, form_of(source), schema)


def ties(table: Any, events: ReadTable) -> tuple[Array, ...]:
    """What sorts events that the order column does not tell apart: in a file they stand as they stand, and nothing does.

    A database and Spark bring rows in whatever order suits them, which may follow from the rows of others. There a fixed hash of
    what an event holds decides, so that which events of a person are kept still follows from that person alone.
    """
    if not isinstance(table, Database) and not is_spark(table):
        return ()
    factors = np.random.default_rng(0).integers(1, 1 << 63, events.codes.shape[1], dtype=np.uint64) | np.uint64(1)
    with np.errstate(over="ignore"):
        return (np.asarray((events.codes.astype(np.uint64) * factors).sum(axis=1, dtype=np.uint64)),)


def bare(table: Any, part: Resource, ring: Keyring, events: ReadTable) -> ReadTable:
    """Persons without attributes: those whom a table lists, or without one those whom events name."""
    if table is None:
        named_ = events.keys[events.keys.any(axis=1)]
        keys = np.unique(named_, axis=0)
        form = FrameForm(events.form.origin)
    else:
        found = read_table(table, dialect=part.schema.dialect)
        if part.link not in found.columns:
            raise InputError(f"{part.name} has no column {part.link!r}. {NOTHING}")
        keys, form = ring.keys(*named(found.columns[part.link], part.schema.missing_values)), FrameForm(found.origin)
    return ReadTable(np.zeros((len(keys), 1), dtype=np.int64), keys, None, EncodeLog(), form, part.schema)


def _collected(frame: Any, wanted: WithPerson) -> Any:
    """The needed columns of a Spark frame, on this machine: linking looks at persons and events together."""
    chosen, _ = needed_columns(frame, wanted)
    with spark_errors():
        size = CELL * chosen.count() * len(chosen.columns)
        require_memory(size, "linking a Spark frame's rows on this machine", "Use a machine with more memory.")
        return chosen.toArrow().rename_columns(list(match(list(frame.columns), wanted)[0]))
