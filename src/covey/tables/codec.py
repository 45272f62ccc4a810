"""The only encoder: a table ↔ whole numbers, record by record, on the public schema alone.

Each field is an attribute. There are three codings. *Cells*: the label's place, or the value in steps of the field's precision;
MISSING for none. *Bins*: the category, in order the labels (false and true; the enum, then "other") or the bins, and last of all
"missing", unless the field is required. *Numbers*: the same, but numbers and dates without declared bins have their place on the
public grid of their field, special values and missing first; one that comes after another field, or that a rule holds above
another one, is coded by its distance from that one (`engine.numbers.grid`), so that order holds in every decoded row.
A field with an expectation is coded by its distance from that, or by whether it is as expected. Yes/no columns that exclude each
other are one category, each record's by itself: the first that is set; where none is and one is needed, missing or the first.

How text is read, everywhere: white space around it is dropped; a number has a decimal point and may have an exponent, so
"1,5" is not one, and true and false are 1 and 0; true, t, yes, y, 1 and false, f, no, n, 0 are flags, in any case; dates and
times are ISO 8601, and what has an offset is taken to UTC. What is blank, null, NaN, listed in missingValues or contains a
NUL byte is missing. Text that is no value of its field is missing too, but an unknown category becomes the declared
"other", else the default. Numbers are rounded to the field's precision and clipped to its bounds. No cell ever raises an
error, and none changes how another is read: a column that comes with a type is read as its cells would be, written out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from dataclasses import field as entry
from functools import cached_property
from typing import Any, Literal

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.numbers.grid import Attribute as Kind
from covey.engine.numbers.grid import Category, NumberGrid
from covey.libraries import pl
from covey.tables.attributes import MISSING, SPECIAL, Attribute, ColumnLog, Grid, Labels, joined, parted
from covey.tables.columns import Table, Words, cell_by_cell
from covey.tables.derived_fields import Derived, leading_number
from covey.tables.links import Link, bases_first
from covey.tables.repair import RuleBook, constant_column, derived_column
from covey.tables.rules import AtMost, Cells, Rule
from covey.tables.schema import Schema
from covey.tables.sources import each_part, open_source

__all__ = ["MISSING", "Codec", "Coding", "ColumnLog", "EncodeLog", "Grid", "Labels"]

Coding = Literal["bins", "cells", "numbers"]

_SECONDS = {"date": 86400.0}  # of a cell of dates; other times count in seconds
_TURNS = 4  # of rules and expectations; what still breaks a rule then is an exception from its expectation


@dataclass
class EncodeLog:
    """What encoding met in the data. Private: it is for the data's owner and has no serializer."""

    columns: dict[str, ColumnLog] = entry(default_factory=dict)
    short_rows: int = 0
    long_rows: int = 0
    ignored: tuple[str, ...] = ()
    broken: Counter[Rule] = entry(default_factory=Counter)  # rows that break a rule, where cells were asked for

    def __add__(self, other: EncodeLog) -> EncodeLog:
        columns = {name: seen + other.columns[name] for name, seen in self.columns.items()}
        short, long = self.short_rows + other.short_rows, self.long_rows + other.long_rows
        return EncodeLog(columns, short, long, self.ignored, self.broken + other.broken)


class Codec:
    """Encodes tables of one schema as whole numbers, and decodes these into tables that satisfy the schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema, self.book = schema, RuleBook(schema.coded)
        self.attributes, self.names = self.book.attributes, self.book.names
        self.domain_sizes = self.book.domain_sizes
        encoded = schema.coded.encoded
        self.ordered = tuple(f.ordered or self.attributes[f.name].ordered for f in encoded)
        self.links = schema.links
        found = {name: self.attributes[name] for name in self.names}
        self.fine = {n: grid for n, grid in found.items() if isinstance(grid, Grid) and grid.field.bins is None}
        self.expected: dict[str, Derived] = {f.name: f.expected for f in encoded if f.expected is not None}
        self._order = bases_first(schema.coded.fields, self.links, self.names)
        # Columns as a table has them: those that exclude each other are one category above.
        self.given = self.book if schema.coded is schema else RuleBook(schema)

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """What a fit measures of each encoded field: categories, or a number on its grid."""
        return tuple(self._kind(j, name) for j, name in enumerate(self.names))

    def _kind(self, j: int, name: str) -> Kind:
        if name not in self.fine and name in self.expected:  # the last code says that it is what it is expected to be
            return Category(self.domain_sizes[j] + 1)
        if name not in self.fine:
            return Category(self.domain_sizes[j], self.ordered[j], self.groups(name))
        grid, link, apart = self.fine[name], self.links.get(name), self.apart(name)
        if link is not None:
            zero = (apart + 1 - link.difference.low,) if link.difference.low <= 0 <= link.difference.high else ()
            return NumberGrid(link.difference.steps, apart + 1, zero)
        low, high = grid.axis.low, grid.axis.high
        # What lies beyond the bounds is moved to them, and 0 is a number of its own kind: these may be common.
        common = {low, high} | ({0} if low < 0 < high and grid.field.type in ("integer", "number") else set())
        return NumberGrid(high - low + 1, apart, tuple(sorted(apart + value - low for value in common)))

    def apart(self, name: str) -> int:
        """How many codes stand before a number's values: its special values, and missing unless it is required."""
        field = self.fine[name].field
        return len(field.special) + (not field.required)

    @property
    def flags(self) -> bool:
        """Whether all fields have two categories, numbers among them too: then they are fitted as flags, by their bins."""
        return not self.expected and all(size == 2 for size in self.domain_sizes)

    @property
    def coding(self) -> Coding:
        """How a private fit sees rows."""
        return "bins" if self.flags else "numbers"

    @property
    def sizes(self) -> tuple[int, ...]:
        """How many codes each field has in a fit."""
        return self.domain_sizes if self.flags else tuple(kind.size for kind in self.kinds)

    @property
    def has_numbers(self) -> bool:
        """Whether a number or date is among the encoded fields."""
        return any(isinstance(self.attributes[name], Grid) for name in self.names)

    @property
    def limits(self) -> list[tuple[list[int], int]]:
        """The at_most rules, by attribute, for synthesizers that use them."""
        rules = [rule for rule in self.book.domain.rules if isinstance(rule, AtMost)]
        return [([self.names.index(n) for n in rule.fields if n in self.names], rule.limit) for rule in rules]

    def place(self, name: str | None) -> int | None:
        """The attribute that a column is, or is part of; None where it does not vary."""
        called = self.schema.home.get(str(name), name)
        return self.names.index(called) if called in self.names else None

    @property
    def important(self) -> list[list[int]]:
        """The columns and pairs that matter most, by attribute; those that do not vary are left out."""
        groups = [dict.fromkeys(map(self.place, group)) for group in self.schema.important]
        return [[a for a in group if a is not None] for group in groups if None not in group]

    @property
    def target(self) -> int | None:
        """The column that others are to predict, by attribute; None where there is none, or it does not vary."""
        return self.place(self.schema.target)

    def groups(self, name: str) -> tuple[int, ...]:
        """The group of each category of a field with levels, by the order in which groups occur; "missing" is one by itself."""
        field, size = self.attributes[name].field, self.domain_sizes[self.names.index(name)]
        if field.levels is None:
            return ()
        if isinstance(field.levels, int):
            words: list[Any] = [label[: field.levels] for label in field.labels]
        else:
            column = pl.Series(field.labels)
            words = derived_column(self.schema[field.levels], {name: column}).to_list()
        words = [*((word,) for word in words), *([None] * (size - len(words)))]  # no group is like "missing"
        order = list(dict.fromkeys(words))
        return tuple(order.index(word) for word in words)

    def encode(self, table: Any, coding: Coding = "bins") -> tuple[Array, EncodeLog]:
        """A table as whole numbers, a row per record and a column per encoded field, and the private log."""
        parts = each_part(open_source(table, self.schema), lambda part: self.encode_part(part, coding))
        codes = [codes for codes, _ in parts]
        log = sum((log for _, log in parts[1:]), parts[0][1])
        return codes[0] if len(codes) == 1 else np.concatenate(codes), log

    def encode_part(self, table: Table, coding: Coding = "bins") -> tuple[Array, EncodeLog]:
        """One part of a table, codes in the smallest integers that hold them, column after column; and the private log."""
        fine = coding == "numbers" and bool(self.fine or self.expected)
        cells = fine or coding == "cells"
        dtype = np.int64 if cells else np.min_scalar_type(max(self.domain_sizes) - 1)
        out = np.empty((table.rows, len(self.names)), dtype=dtype, order="F")
        log = EncodeLog({}, table.short_rows, table.long_rows, table.ignored)
        whole: Cells = {}
        for j, (name, attribute) in enumerate((name, self.attributes[name]) for name in self.names):
            if name not in self.schema.together:
                out[:, j] = _read(attribute, table, log, cells)
                continue
            rule = self.schema.together[name][1]
            own = {flag: _read(self.given.attributes[flag], table, log, True) for flag in rule.flags}
            read, whole = joined(list(own.values()), rule, attribute.field.required), whole | own
            out[:, j] = read if cells else attribute.codes(read)
        if coding == "cells" and self.schema.rules:
            whole = self.book.complete(out.T) | whole
            log.broken.update({rule: int(self.given.broken(rule, whole).sum()) for rule in self.schema.rules})
        return (self.numbers(out) if fine else out), log

    def numbers(self, cells: Array) -> Array:
        """Codes in which numbers have their own precision, of cells."""
        dtype = np.min_scalar_type(max(kind.size for kind in self.kinds) - 1)
        out = np.empty(cells.shape, dtype=dtype, order="F")
        for j, name in enumerate(self.names):
            own = cells[:, j]
            if name not in self.fine:
                codes = self.attributes[name].codes(own)
                usual = own == self._expected(name, cells) if name in self.expected else False
                out[:, j] = np.where(usual, self.domain_sizes[j], codes)
                continue
            grid, apart, link = self.fine[name], self.apart(name), self.links.get(name)
            there = grid.has_value(own)
            if link is None:
                codes = apart + own - grid.axis.low
            else:
                base, has = self._base(name, link, cells)
                codes = apart + link.difference.encode(base, np.where(there, own, 0), has)
            special = np.where(own == MISSING, len(grid.words), own - SPECIAL)
            out[:, j] = np.where(there, codes, special)
        return out

    def _column(self, name: str, cells: Array) -> Integers:
        """The cells of one field; one with a single value is not encoded."""
        if name in self.names:
            return np.asarray(cells[:, self.names.index(name)])
        return self.book.single(self.attributes[name], len(cells))

    def _expected(self, name: str, cells: Array) -> Integers:
        """The cells that a field is expected to have."""
        known = {base: self._column(base, cells) for base in self.expected[name].bases}
        found, own = expected_cells(name, self.expected[name], self.attributes, known), self.attributes[name]
        return np.where(found == MISSING, own.fill, found) if own.field.required and name not in self.fine else found

    def _base(self, name: str, link: Link, cells: Array) -> tuple[Integers, Array]:
        """What a number is measured from, in its own steps, and where that is there."""
        if link.expected:
            own = self._expected(name, cells)
            return np.where(own == MISSING, 0, own), own != MISSING
        own = self._column(link.base, cells)
        has = self.fine[link.base].has_value(own) if link.base in self.names else np.ones(len(cells), dtype=bool)
        return np.where(has, own, 0) * link.times, has

    def decode(self, codes: Array, generator: np.random.Generator, coding: Coding = "bins") -> dict[str, pl.Series]:
        """Columns of values, uniform inside their bins; they satisfy the schema and all its rules."""
        if coding == "numbers" and self.expected:
            return self._render(self._as_expected(codes.astype(np.int64), generator), len(codes))
        if coding == "cells":
            cells = self.book.complete(codes.T)
        elif coding == "numbers" and self.fine:
            cells = self.book.complete(self._cells(codes.astype(np.int64), generator).T)
        else:
            cells = self.book.cells(codes, generator)
        return self._render(self.book.obey(cells, generator), len(codes))

    def _as_expected(self, codes: Integers, generator: np.random.Generator) -> Cells:
        """Cells that satisfy all rules, fields with an expectation being what their bases say wherever rules allow it.

        A rule moves a base, the field follows its base, and may break a rule by that: rules and expectations take turns. What
        they still throw back and forth stays as the rules left it, for an expectation may have exceptions and a rule has none.
        """
        cells = self.book.complete(self._cells(codes, generator).T)
        self.book.count_mended(cells)
        open_rows = np.arange(len(codes))
        for _ in range(_TURNS):
            before = _taken(cells, open_rows)
            obeying = self.book.repaired(before, generator)
            _put(cells, open_rows, obeying)
            changed = np.flatnonzero(np.logical_or.reduce([obeying[name] != before[name] for name in cells]))
            before, obeying, open_rows = _taken(before, changed), _taken(obeying, changed), open_rows[changed]
            following = self._following(codes[open_rows], before, obeying, generator)
            wrong = self.book.breaking(following)
            _put(cells, open_rows[~wrong], _taken(following, ~wrong))
            open_rows, following = open_rows[wrong], _taken(following, wrong)
            if not len(open_rows):
                return cells
            _put(cells, open_rows, following)
        _put(cells, open_rows, self.book.repaired(_taken(cells, open_rows), generator))
        return cells

    def _following(self, codes: Integers, before: Cells, obeying: Cells, generator: np.random.Generator) -> Cells:
        """Cells in which fields with an expectation follow bases that rules have altered, but where rules altered them too."""
        again = self._cells(codes, generator, np.stack([obeying[name] for name in self.names], axis=1))
        unmoved = {name: obeying[name] == before[name] for name in self.expected}
        places = {name: self.names.index(name) for name in self.expected}
        return obeying | {name: np.where(unmoved[name], again[:, j], obeying[name]) for name, j in places.items()}

    def _cells(self, codes: Integers, generator: np.random.Generator, known: Integers | None = None) -> Integers:
        """Cells of codes in which numbers have their own precision; where others are known, of fields with an expectation."""
        cells = np.empty(codes.shape, dtype=np.int64) if known is None else known.copy()
        for name in self._order:
            if known is not None and name not in self.expected:
                continue
            j = self.names.index(name)
            own = codes[:, j]
            if name not in self.fine:
                usual = own == self.domain_sizes[j]
                cells[:, j] = self.attributes[name].draw(np.where(usual, 0, own), generator)
                if name in self.expected:
                    cells[usual, j] = self._expected(name, cells)[usual]
                continue
            grid, apart, link = self.fine[name], self.apart(name), self.links.get(name)
            there = own >= apart
            if link is None:
                values = grid.axis.low + own - apart
            else:
                base, has = self._base(name, link, cells)
                values = link.difference.decode(np.where(there, own - apart, 0), base, has, generator)
            special = np.where(own < len(grid.words), SPECIAL + own, MISSING)
            cells[:, j] = np.where(there, values, special)
        return cells

    def columns(self, cells: Cells) -> Cells:
        """Cells by column of a table: those that are coded as one category too."""
        parts = [parted(cells[name], rule, self.given.attributes) for name, (_, rule) in self.schema.together.items()]
        return {name: own for part in (cells, *parts) for name, own in part.items()}

    def _render(self, cells: Cells, rows: int) -> dict[str, pl.Series]:
        found = {f.name: constant_column(f, rows) for f in self.schema.fields if f.constant is not None}
        cells = self.columns(cells)
        found |= {name: attribute.render(cells[name]) for name, attribute in self.given.attributes.items()}
        for f in self.schema.derived:
            found[f.name] = derived_column(f, found, self.schema.fields)
        return {f.name: found[f.name] for f in self.schema.fields}


def _taken(cells: Cells, rows: Array) -> Cells:
    """The cells of some rows."""
    return {name: column[rows] for name, column in cells.items()}


def _put(cells: Cells, rows: Array, others: Cells) -> None:
    """Put other cells into some rows, in place."""
    for name, column in others.items():
        cells[name][rows] = column


def _read(attribute: Attribute, table: Table, log: EncodeLog, cells: bool) -> Array:
    """Codes, or cells, of a column of a table."""
    name = attribute.field.name
    seen, column = log.columns.setdefault(name, ColumnLog()), table.columns[name]
    if isinstance(column, Words):
        codes = _word_by_word(attribute, column, seen, cells)
        if codes is not None:
            return codes
        column = cell_by_cell(column)
    read = attribute.read(column, seen)
    return read if cells else attribute.codes(read)


def _word_by_word(attribute: Attribute, column: Words, log: ColumnLog, cells: bool) -> Array | None:
    """Codes, or cells, of a column of words, each read once; None where one is no plain value: then cells are counted singly."""
    seen = ColumnLog()
    words = np.append(attribute.read(column.words, seen), attribute.fill)
    if seen != ColumnLog():
        return None
    missing = int(np.count_nonzero(column.places < 0))
    log.missing += missing
    values = words if cells else attribute.codes(words).astype(np.min_scalar_type(attribute.size))
    # Place −1, missing, picks the last entry. Where there is none the quicker way will do: places were checked before.
    return values.take(column.places, mode="wrap" if missing else "clip")


def expected_cells(name: str, expected: Derived, attributes: Mapping[str, Attribute], cells: Cells) -> Integers:
    """The cells that a column should have; MISSING where it should be missing."""
    own = attributes[name]
    if isinstance(own, Grid):
        found = expected.evaluate({base: _values(attributes[base], cells[base]) for base in expected.bases})
        scale = 1 / _SECONDS[own.field.type] if own.field.type in _SECONDS else 10.0**own.axis.decimals
        with np.errstate(all="ignore"):
            steps = np.floor(found * scale) if own.field.type in ("date", "datetime") else np.rint(found * scale)
        there = np.isfinite(steps)
        inside = np.clip(np.where(there, steps, 0), own.axis.low, own.axis.high)
        return np.where(there, inside, MISSING).astype(np.int64)
    base = attributes[expected.bases[0]]
    place: dict[object, int] = {label: j for j, label in enumerate(own.field.labels)}
    place |= {False: 0, True: 1} if own.field.type == "boolean" else {}
    listed = {key[0]: place.get(value, MISSING) for key, value in expected.entries}
    column = cells[expected.bases[0]]
    if isinstance(base, Labels):
        known = [listed.get(label, MISSING) for label in base.field.labels]
        table = np.array([*known, listed.get(None, MISSING)], dtype=np.int64)
        return table[np.where(column == MISSING, len(known), column)]
    values = _values(base, column)
    table = np.array([place.get(label, MISSING) for label in expected.labels], dtype=np.int64)
    where = np.searchsorted(np.array(expected.edges), np.nan_to_num(values), side="right") - 1
    inside = np.isfinite(values) & (where >= 0) & (where < len(table))
    missing = np.full(len(column), listed.get(None, MISSING))
    return np.where(inside, table[np.clip(where, 0, len(table) - 1)], missing)


def _values(grid: Attribute, cells: Integers) -> Floats:
    """Numbers, seconds of dates, or what texts begin with, as expressions count them; NaN where there is no value."""
    if isinstance(grid, Labels):
        known = np.array([*map(leading_number, grid.field.labels), np.nan])
        return np.asarray(known[np.where(cells == MISSING, len(known) - 1, cells)])
    there = grid.has_value(cells)
    scale = _SECONDS.get(grid.field.type, 10.0**-grid.axis.decimals)
    return np.where(there, np.where(there, cells, 0) * scale, np.nan)
