"""What is fuzzed: bytes become a table or a schema and go the way that a steward's files go.

A target returns normally when covey reads the input or refuses it with one of its own errors. Anything else is a find.
"""

from __future__ import annotations

import gzip
import warnings
from dataclasses import replace
from pathlib import Path

from covey.errors import CoveyError
from covey.tables.codec import Codec
from covey.tables.dialects import Dialect
from covey.tables.metadata import from_sdv_json, from_smartnoise_yaml
from covey.tables.schema import Schema
from covey.tables.sources import open_source

ENCODINGS = ("utf-8", "utf-8", "utf-8", "utf-16", "latin-1", "utf-32", "cp1252", "shift_jis")
CELLS = 4096  # of a domain that is worth building a codec for

SCHEMA = Schema.from_dict(
    {
        "fields": [
            {"name": "a", "type": "integer", "constraints": {"minimum": 0, "maximum": 9}},
            {"name": "b", "type": "string", "constraints": {"enum": ["x", "y"]}},
            {"name": "c", "type": "number", "constraints": {"minimum": -1, "maximum": 1}},
            {"name": "d", "type": "date", "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"}},
            {"name": "e", "type": "boolean"},
        ]
    }
)
CODEC = Codec(SCHEMA)
# The same columns in another dialect, with special values and a time of day; lines before the header and separators vary.
ODD = Schema.from_dict(
    {
        "fields": [
            {
                "name": "a",
                "type": "integer",
                "constraints": {"minimum": 0, "maximum": 9},
                "covey": {"special": ["N", "-9"]},
            },
            {"name": "b", "type": "time", "constraints": {"minimum": "08:00", "maximum": "20:00"}},
            {
                "name": "c",
                "type": "number",
                "decimalChar": ",",
                "groupChar": ".",
                "constraints": {"minimum": -1, "maximum": 5000},
            },
            {
                "name": "d",
                "type": "date",
                "format": "%d.%m.%Y",
                "constraints": {"minimum": "2020-01-01", "maximum": "2020-12-31"},
            },
        ]
    }
)
SEPARATORS = (",", ";", "\t", "|")


def table(data: bytes, folder: Path) -> None:
    """A CSV file, perhaps compressed: read with a schema, in its dialect or another, or described by a draft."""
    if not data:
        return
    flags, content = data[0], data[1:]
    packed, known = flags & 8, flags & 16
    path = folder / ("table.csv.gz" if packed else "table.csv")
    # Half of the compressed ones are whole, half are what they are.
    path.write_bytes(gzip.compress(content, 1) if packed and flags & 32 else content)
    encoding = ENCODINGS[flags & 7]
    try:
        if not known:
            drafted = Schema.draft(path, Dialect(encoding=encoding if flags & 64 else None))
            assert Schema.from_dict(drafted.to_dict()) == drafted
            return
        codec = CODEC
        if flags & 64:
            dialect = Dialect(SEPARATORS[flags >> 5 & 1 | flags >> 6 & 2], skip_rows=flags >> 7)
            codec = Codec(ODD.read_as(dialect))
        written = replace(codec.schema.dialect, encoding=encoding)
        source = open_source(path, codec.schema, dialect=written, size_limit=2**24)
        for piece in [source.table(part) for part in source.parts()]:
            codes, _ = codec.encode_part(piece)
            assert len(codes) == piece.rows
            assert codes.min(initial=0) >= 0
            assert (codes < codec.domain_sizes).all()
    except CoveyError:
        pass


def schema(data: bytes, folder: Path) -> None:
    """A schema as JSON or YAML, or another program's metadata; what was read must survive being written."""
    if not data:
        return
    kind = data[0] % 4
    path = folder / ("schema.json" if kind in (0, 2) else "schema.yaml")
    path.write_bytes(data[1:])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = (Schema.load, Schema.load, from_sdv_json, from_smartnoise_yaml)[kind](path)
        again = Schema.from_dict(found.to_dict())
        assert again.to_dict() == found.to_dict()
        found.require_confirmed()
        if len(found.fields) < 50:
            Codec(found)
    except CoveyError:
        pass


TARGETS = {"table": table, "schema": schema}
