"""Schemas and small helpers that the tests of tables share."""

import sqlite3
from contextlib import closing

import numpy as np

from covey.tables.codec import Codec
from covey.tables.schema import Field, Schema
from tests.entries import entry

SCHEMA = Schema((Field("age", "integer", 0, 9), Field("sex", "string", enum=("f", "m", "ü"), other="x")))


def repaired(codec, table, generator):
    """A table with the rows altered that break a rule."""
    return codec.decode(codec.encode(table, "cells")[0], generator, "cells")


def sqlite_table(path, columns, rows):
    """A table of a SQLite file, such as "visits (day, ward)", with these rows."""
    with closing(sqlite3.connect(path)) as book:
        book.execute(f"CREATE TABLE {columns}")
        for row in rows:
            book.execute(f"INSERT INTO {columns.rpartition(' (')[0]} VALUES ({', '.join('?' * len(row))})", row)
        book.commit()


def cells(table):
    return {name: series.to_list() for name, series in table.columns.items()}


PEOPLE = {
    "title": "People",
    "fields": [
        entry("sex", "string", enum=["f", "m"], required=True),
        entry("job", "string", enum=["nurse", "cook"], other=True),
        entry("age", "integer", 0, 120, bins=24),
        entry("dose", "number", bins=[0.0, 0.5, 2.5], decimals=2, default=1.0),
        entry("born", "date", "1900-01-01", "2026-01-01"),
        entry("seen", "datetime", "2020-01-01T00:00:00", "2026-01-01"),
        {"name": "ill", "type": "boolean", "title": "Is ill"},
        entry("well", "boolean"),
        entry("site", "string", constant="north"),
    ],
    "missingValues": ["", "-"],
    "covey": {
        "rules": [
            {"at_most": {"fields": ["ill", "well"], "limit": 1}},
            {"less_equal": {"left": "dose", "right": "age"}},
            {"linear": {"coefficients": {"age": 1.0, "dose": 10.0}, "maximum": 130.0}},
            {"forbid": {"age": {"maximum": 15}, "job": ["cook", None]}},
        ]
    },
}

# Three dates that may follow each other, and the last year of each.
STAYING = {"came": 2021, "left": 2022, "paid": 2023}


def ruled(*rules):
    return {**PEOPLE, "covey": {"rules": list(rules)}}


RULED = {
    "fields": [
        *({"name": f"flag{j}", "type": "boolean"} for j in range(5)),
        {"name": "start", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2024-12-31"}},
        {"name": "end", "type": "date", "constraints": {"minimum": "2021-01-01", "maximum": "2025-12-31"}},
        {"name": "gross", "type": "number", "constraints": {"minimum": 0, "maximum": 1000}, "covey": {"decimals": 2}},
        {"name": "net", "type": "integer", "constraints": {"minimum": -10, "maximum": 1500}},
        {"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 99, "required": True}},
        {"name": "job", "type": "string", "constraints": {"enum": ["child", "cook", "king"], "required": True}},
    ],
    "covey": {
        "rules": [
            {"at_most": {"fields": [f"flag{j}" for j in range(5)], "limit": 2}},
            {"less_equal": {"left": "start", "right": "end"}},
            {"less_equal": {"left": "net", "right": "gross"}},
            {"linear": {"coefficients": {"gross": 1, "net": 0.5, "age": -3}, "maximum": 400}},
            {"forbid": {"age": {"maximum": 15}, "job": ["cook", "king"]}},
            {"forbid": {"age": {"minimum": 18}, "job": "child"}},
            {"forbid": {"job": "king", "flag0": [True, None]}},
        ]
    },
}


def rng(seed=0):
    return np.random.default_rng(seed)


def some_codes(codec, rows, seed):
    generator = rng(seed)
    return np.stack([generator.integers(0, size, rows) for size in codec.domain_sizes], axis=1)


def one(field, cells, **table):
    codec = Codec(Schema((field, Field("flag", "boolean")), **table))
    codes, log = codec.encode({field.name: cells, "flag": [None] * len(cells)})
    return codes[:, 0].tolist(), log.columns[field.name]
