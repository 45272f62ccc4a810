"""The first reading of a table whose limits or categories are to be learned: cells on public grids, and words as they stand.

Cells are read as the codec will read them once the domain is known: white space dropped, what is blank or declared missing taken
as missing, each cell by itself. A number or date becomes a bin of a grid that is the same for every table. Words, of texts and
where numbers are expected, are kept if they are short: nobody's category is a paragraph.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, time
from functools import cached_property
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.codes.learned import Coded, Edges, number_edges, year_edges
from covey.libraries import pl
from covey.tables.attributes import Attribute, ColumnLog, attributes
from covey.tables.codec import EncodeLog
from covey.tables.column_drafts import DECIMAL
from covey.tables.columns import MISSING_WORDS, Table, as_text, cell_by_cell, parse, unguarded
from covey.tables.dialects import NO_VALUE
from covey.tables.fields import Field
from covey.tables.rules import Domain, Mask
from covey.tables.schema import Schema

LONGEST = 100  # characters of a learned label, public; longer texts become "other"
_EPOCH = datetime(1970, 1, 1)
_NUMBER = re.compile(r"[+-]?[\d.,'\u2019_ \u00a0\u202f]*\d[\d.,'\u2019_ \u00a0\u202f]*")
_DATE = re.compile(r".*\d.*")
_GROUPED = r"^\s*[+-]?[1-9]\d{0,2}(\.\d{3})+\s*$"


class LearnedColumn:
    """One field that is to be learned: where its cells lie on a public grid, and which words it holds."""

    def __init__(self, field: Field, missing_values: tuple[str, ...]) -> None:
        self.field = field
        self.missing_values = frozenset(missing_values)
        self.is_text, self.is_number = field.type == "string", field.type in ("integer", "number")
        self.edges: Edges | tuple[int, ...] = ()
        if self.is_number:
            self.edges = number_edges(0 if field.type == "integer" else field.decimals)
        elif not self.is_text:
            self.edges = year_edges()
        self.bins = 1 if self.is_text else len(self.edges) - 1  # of texts one, for cells that hold nothing
        # Of whole numbers and dates single ones are narrow; of other numbers every bin spans many values.
        self.wide = np.diff(np.array(self.edges or (0, 1), dtype=np.float64)) > (0 if field.type == "number" else 1)

    @cached_property
    def _starts(self) -> Floats:
        """Edges in the unit of the parser, as floats: the number itself, days or seconds."""
        if self.is_number:
            return np.array([float(edge) for edge in self.edges])
        days = [float((datetime(int(year), 1, 1) - _EPOCH).days) for year in self.edges[:-1]]
        days.append(days[-1] + 366 * 7600)  # beyond the calendar's end
        return np.array(days) * (86400.0 if self.field.type == "datetime" else 1.0)

    def read(self, series: pl.Series, log: ColumnLog) -> tuple[Integers, tuple[str, ...]]:
        """A code for each cell (bin; bins and then the place of a word; −1), and the words."""
        codes, rest = self._on_grid(series)
        words: tuple[str, ...] = ()
        if self.is_text or not (series.dtype.is_numeric() or series.dtype.is_temporal()):
            text = as_text(series).filter(pl.Series(rest)).fill_null("")
            known, places = np.unique(np.array(text.to_list(), dtype=object), return_inverse=True)
            labels = [self._label(word) for word in known.tolist()]
            words = tuple(sorted({label for label in labels if label is not None}))
            at = {label: self.bins + j for j, label in enumerate(words)}
            if not self.is_text:  # what looks like a number or a date and is none is spelled otherwise
                counts, form = np.bincount(places, minlength=len(known)), _NUMBER if self.is_number else _DATE
                odd = [
                    word.startswith(NO_VALUE) or (label is not None and form.fullmatch(label) is not None)
                    for word, label in zip(known.tolist(), labels, strict=True)
                ]
                log.unparseable += int(counts[odd].sum())
            none = [0 if self.is_text and len(word.strip()) <= LONGEST else -1 for word in known.tolist()]
            found = [gone if label is None else at[label] for label, gone in zip(labels, none, strict=True)]
            codes[rest] = np.array(found, dtype=np.int64)[places]
        log.missing += int(np.count_nonzero(codes < int(self.is_text)))
        if self.is_number and series.dtype == pl.String:
            log.grouped += int(series.str.contains(_GROUPED).sum())
            log.pointed += int(series.str.strip_chars().str.contains(DECIMAL["."]).sum())
        return codes, words

    def _on_grid(self, series: pl.Series) -> tuple[Integers, Mask]:
        """Bins of the cells that are values, −1 for the others; and which of the cells are no values at all."""
        codes = np.full(len(series), -1, dtype=np.int64)
        if self.is_text:
            return codes, np.ones(len(series), dtype=bool)
        values = parse(series, self.field.type)
        there = ~np.isnan(values)
        # Numbers that are declared missing or special need no learning, however they are spelled.
        words = pl.Series([*self.missing_values, *self.field.special], dtype=pl.String)
        measured = there & ~np.isin(values, parse(words, self.field.type))
        places = np.searchsorted(self._starts, values[measured], side="right") - 1
        codes[measured] = np.clip(places, 0, self.bins - 1)
        return codes, ~there

    def _label(self, word: str) -> str | None:
        """The label that a word is, if it is one that can be learned."""
        bare = word.strip()
        if not self.is_text and word.startswith(NO_VALUE):  # a number or date in another spelling is no word
            return None
        if "\0" in word or "\r" in bare or word in self.missing_values or bare in self.missing_values:
            return None
        label = unguarded(bare)
        if label.lower() in MISSING_WORDS or label in self.missing_values or label in self.field.special:
            return None
        return label if label == label.strip() and len(label) <= LONGEST else None


@dataclass(frozen=True)
class Provisional:
    """Encodes parts of a table on public grids: what a codec is once the domain is known."""

    schema: Schema

    @cached_property
    def attributes(self) -> Mapping[str, Attribute]:
        """How declared fields are read: for the log, which says before the charge whether they fit."""
        fields = tuple(field for field in self.schema.encoded if not field.learn)
        return attributes(Domain(fields, self.schema.missing_values))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The needed columns of the table, in the schema's order."""
        return tuple(field.name for field in self.schema.encoded)

    @cached_property
    def columns(self) -> tuple[LearnedColumn, ...]:
        """The fields that are measured. Flags and times of day have domains that everybody knows."""
        fields = [field for field in self.schema.learns if field.type not in ("boolean", "time")]
        return tuple(LearnedColumn(field, self.schema.missing_values) for field in fields)

    def encode_part(self, table: Table) -> tuple[Any, EncodeLog]:
        """One part of a table on the grids, `Coded`, and the private log."""
        codes = np.empty((table.rows, len(self.columns)), dtype=np.int64, order="F")
        log = EncodeLog({}, table.short_rows, table.long_rows, table.ignored)
        words = []
        for j, column in enumerate(self.columns):
            seen = log.columns[column.field.name] = ColumnLog()
            codes[:, j], found = column.read(cell_by_cell(table.columns[column.field.name]), seen)
            words.append(found)
        for name, attribute in self.attributes.items():
            log.columns[name] = ColumnLog()
            attribute.read(cell_by_cell(table.columns[name]), log.columns[name])
        return Coded(codes, tuple(words)), log


def completed(field: Field) -> Field:
    """A field whose domain everybody knows: flags are false and true, a day has 24 hours."""
    if field.type == "time":
        return replace(field, learn=False, minimum=time(0, 0), maximum=time(23, 59, 59))
    return replace(field, learn=False)
