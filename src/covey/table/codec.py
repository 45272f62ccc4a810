"""The only encoder: a table ↔ category codes, record by record, on the public schema alone.

Each field is an attribute. Its categories are, in order: the labels (false and true; the enum, then "other") or the bins,
and last of all "missing", unless the field is required. Between table and codes stand *cells*, whole numbers: the
label's place, or the value in steps of the field's precision; MISSING for none.

How text is read, everywhere: white space around it is dropped; a number has a decimal point and may have an exponent, so
"1,5" is not one, and true and false are 1 and 0; true, t, yes, y, 1 and false, f, no, n, 0 are flags, in any case; dates and
times are ISO 8601, and what has an offset is taken to UTC. What is blank, null, NaN, listed in missingValues or contains a
NUL byte is missing. Text that is no value of its field is missing too, but an unknown category becomes the declared
"other", else the default. Numbers are rounded to the field's precision and clipped to its bounds. No cell ever raises an
error, and none changes how another is read: a column that comes with a type is read as its cells would be, written out.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field as entry
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.core.arrays import Array, Integers
from covey.table.attributes import MISSING, Attribute, ColumnLog, Grid, Labels
from covey.table.carried import constant_column, derived_column
from covey.table.checks import problems
from covey.table.columns import Table, Words
from covey.table.domain import Cells
from covey.table.extras import optional
from covey.table.repair import RuleBook
from covey.table.rules import AtMost, Rule
from covey.table.schema import Schema
from covey.table.sources import no_rows, open_source, read_table

if TYPE_CHECKING:
    from polars import Series

__all__ = ["MISSING", "Codec", "ColumnLog", "EncodeLog", "Grid", "Labels"]

_BLOCK = 2**16


@dataclass
class EncodeLog:
    """What encoding met in the data. Private: it is for the data's owner and has no serializer."""

    columns: dict[str, ColumnLog] = entry(default_factory=dict)
    short_rows: int = 0
    long_rows: int = 0
    ignored: tuple[str, ...] = ()

    def __add__(self, other: EncodeLog) -> EncodeLog:
        columns = {name: ColumnLog() for name in self.columns}
        for part in (self, other):
            for name, seen in part.columns.items():
                columns[name].add(seen)
        short, long = self.short_rows + other.short_rows, self.long_rows + other.long_rows
        return EncodeLog(columns, short, long, self.ignored)


class Codec:
    """Encodes tables of one schema as category codes, and decodes codes into tables that satisfy the schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema, self.book = schema, RuleBook(schema)
        self.attributes, self.names = self.book.attributes, self.book.names
        self.domain_sizes = self.book.domain_sizes
        self.ordinal: tuple[int, ...] = tuple(
            j for j, f in enumerate(schema.encoded) if f.ordered or self.attributes[f.name].ordered
        )
        self._dictionaries = {name: Dictionary(self.attributes[name]) for name in self.names}
        self.dtype = np.min_scalar_type(max(self.domain_sizes) - 1)

    @property
    def ordered(self) -> tuple[bool, ...]:
        """Which encoded fields are ordered."""
        return tuple(j in self.ordinal for j in range(len(self.names)))

    @property
    def width(self) -> int:
        """The number of categories of all encoded fields."""
        return sum(self.domain_sizes)

    @property
    def has_numbers(self) -> bool:
        """Whether a number or date is among the encoded fields."""
        return any(isinstance(self.attributes[name], Grid) for name in self.names)

    @property
    def limits(self) -> list[tuple[list[int], int]]:
        """The at_most rules, by attribute, for synthesizers that use them."""
        rules = [rule for rule in self.schema.rules if isinstance(rule, AtMost)]
        return [([self.names.index(n) for n in rule.fields if n in self.names], rule.limit) for rule in rules]

    @property
    def important(self) -> list[list[int]]:
        """The columns and pairs that matter most, by attribute; those that do not vary are left out."""
        groups = [group for group in self.schema.important if all(name in self.names for name in group)]
        return [[self.names.index(name) for name in group] for group in groups]

    @property
    def target(self) -> int | None:
        """The column that others are to predict, by attribute; None where there is none, or it does not vary."""
        name = self.schema.target
        return self.names.index(name) if name in self.names else None

    def groups(self, name: str) -> tuple[int, ...]:
        """The group of each category of a field with levels, by the order in which groups occur; "missing" is one by itself."""
        field, size = self.schema[name], self.domain_sizes[self.names.index(name)]
        if field.levels is None:
            return ()
        if isinstance(field.levels, int):
            words: list[Any] = [label[: field.levels] for label in field.labels]
        else:
            column = optional("polars").Series(name, field.labels)
            words = derived_column(self.schema[field.levels], {name: column}).to_list()
        words = [*((word,) for word in words), *([None] * (size - len(words)))]  # no group is like "missing"
        order = list(dict.fromkeys(words))
        return tuple(order.index(word) for word in words)

    def encode(self, table: Any, *, cells: bool = False) -> tuple[Array, EncodeLog]:
        """Category codes (or cells), a row per record and a column per encoded field, and the private log."""
        source = open_source(table, self.schema)
        # Both libraries release the lock while they work on a part.
        with ThreadPoolExecutor(max_workers=min(8, os.cpu_count() or 1)) as pool:
            parts = list(pool.map(lambda part: self.encode_part(source.table(part), cells=cells), source.parts()))
        if not parts:
            raise no_rows()
        codes = [codes for codes, _ in parts]
        log = sum((log for _, log in parts[1:]), parts[0][1])
        return codes[0] if len(codes) == 1 else np.concatenate(codes), log

    def encode_part(self, table: Table, *, cells: bool = False) -> tuple[Array, EncodeLog]:
        """The codes of one part of a table, in the smallest integers that hold the domain, column after column; or its cells."""
        out = np.empty((table.rows, len(self.names)), dtype=np.int64 if cells else self.dtype, order="F")
        log = EncodeLog({}, table.short_rows, table.long_rows, table.ignored)
        for j, name in enumerate(self.names):
            seen = log.columns[name] = ColumnLog()
            attribute, column = self.attributes[name], table.columns[name]
            if isinstance(column, Words):
                out[:, j] = self._dictionaries[name].read(column, seen, cells)
                continue
            for start in range(0, table.rows, _BLOCK):  # blocks stay in the processor's cache
                read = attribute.read(column.slice(start, _BLOCK), seen)
                out[start : start + _BLOCK, j] = read if cells else attribute.codes(read)
        return out, log

    def decode(self, codes: Array, generator: np.random.Generator) -> dict[str, Series]:
        """Columns of values, uniform inside their bins; they satisfy the schema and all its rules."""
        cells = self.book.cells(codes, generator)
        return self._render(self.book.obey(cells, generator), len(codes))

    def decode_cells(self, table: Integers, generator: np.random.Generator) -> dict[str, Series]:
        """Columns of values, from cells, a column per encoded field; they satisfy the rules."""
        cells = {name: table[:, j] for j, name in enumerate(self.names)}
        cells |= {n: self.book.single(a, len(table)) for n, a in self.attributes.items() if n not in cells}
        return self._render(self.book.obey(cells, generator), len(table))

    def breaks(self, table: Integers) -> dict[Rule, int]:
        """How many rows break each rule of the schema, by their cells, a column per encoded field."""
        cells = {name: table[:, j] for j, name in enumerate(self.names)}
        cells |= {n: self.book.single(a, len(table)) for n, a in self.attributes.items() if n not in cells}
        return {rule: int(np.count_nonzero(self.book.broken(rule, cells))) for rule in self.schema.rules}

    def repair(self, table: Any, generator: np.random.Generator) -> Any:
        """Codes, or a table, with the rows altered that break a rule; codes give codes and a table gives columns.

        Codes name bins, so a pair of bins that some values fit is left alone; decode finds these values.
        """
        if isinstance(table, np.ndarray):
            cells = self.book.obey(self.book.cells(table, generator), generator)
            return np.stack([self.attributes[name].codes(cells[name]) for name in self.names], axis=1)
        table = read_table(table, self.schema)
        return self._render(self.book.obey(self._read(table, EncodeLog()), generator), table.rows)

    def problems(self, table: Any) -> list[str]:
        """What a table breaks of the schema, field by field and rule by rule."""
        return problems(self.book, table)

    def _read(self, table: Table, log: EncodeLog) -> Cells:
        cells = {}
        for name, attribute in self.attributes.items():
            if name in self.names:
                log.columns[name] = ColumnLog()
                cells[name] = attribute.read(table.columns[name], log.columns[name])
            else:
                cells[name] = self.book.single(attribute, table.rows)
        return cells

    def _render(self, cells: Cells, rows: int) -> dict[str, Series]:
        found = {
            f.name: constant_column(f, rows)
            if f.constant is not None
            else self.attributes[f.name].render(cells[f.name])
            for f in self.schema.fields
            if f.derived is None
        }
        for f in self.schema.derived:
            found[f.name] = derived_column(f, found, self.schema.fields)
        return {f.name: found[f.name] for f in self.schema.fields}


class Dictionary:
    """Cells of single words of one attribute, each read once. It remembers words of the data: private, in memory only.

    Parts of a table are read by several threads, and share it without a lock: an entry is whole when it is put in, two threads
    that read a word find the same, and `_look_up` returns what it found itself, not what another thread may have cleared.
    """

    most = 1 << 16

    def __init__(self, attribute: Attribute) -> None:
        self.attribute = attribute
        self.known: dict[str | None, tuple[int, ColumnLog]] = {}

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles start without words: a codec may be sent along with what is public."""
        return {"attribute": self.attribute, "known": {}}

    def read(self, column: Words, log: ColumnLog, cells: bool) -> Array:
        """Codes, or cells, of a column of words; each word counts in the log as often as it occurs."""
        found = [self._look_up(word) for word in [*column.words.to_list(), None]]
        missing = column.places.min(initial=0) < 0
        if missing or any(seen != ColumnLog() for _, seen in found[:-1]):
            counts = np.bincount(column.places.astype(np.int64) + 1, minlength=len(found))
            for (_, seen), count in zip(found, [*counts[1:], counts[0]], strict=True):
                log.add(seen, int(count))
        values = np.array([cell for cell, _ in found], dtype=np.int64)
        if not cells:
            values = self.attribute.codes(values).astype(np.min_scalar_type(self.attribute.size))
        # Place −1, missing, picks the last entry. Where there is none the quicker way will do: places were checked before.
        return values.take(column.places, mode="wrap" if missing else "clip")

    def _look_up(self, word: str | None) -> tuple[int, ColumnLog]:
        found = self.known.get(word)
        if found is None:
            pl, seen = optional("polars"), ColumnLog()
            found = int(self.attribute.read(pl.Series([word], dtype=pl.String), seen)[0]), seen
            if len(self.known) >= self.most:
                self.known.clear()
            self.known[word] = found
        return found
