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
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from dataclasses import field as entry
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from covey.core.arrays import Array, Floats, Integers
from covey.errors import ParameterError
from covey.table.columns import Table, Words, text, unguarded
from covey.table.schema import (
    ORDERED_TYPES,
    AtMost,
    Condition,
    Field,
    Forbid,
    LessEqual,
    Linear,
    Rule,
    Schema,
    optional,
)
from covey.table.sources import no_rows, open_source, read_table

if TYPE_CHECKING:
    from polars import Series

MISSING = int(np.iinfo(np.int64).min)
MISSING_WORDS = frozenset(("", "nan", "null"))

Cells = dict[str, Integers]
Mask = NDArray[np.bool_]

_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")
_EPOCH = datetime(1970, 1, 1)
_ROUNDS = 12
_BLOCK = 2**16


@dataclass
class ColumnLog:
    """How many cells of a column were not taken as they stood."""

    missing: int = 0
    unknown: int = 0
    clipped: int = 0
    unparseable: int = 0

    def add(self, other: ColumnLog, times: int = 1) -> None:
        """Count another part of the same column."""
        self.missing += times * other.missing
        self.unknown += times * other.unknown
        self.clipped += times * other.clipped
        self.unparseable += times * other.unparseable


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


class Labels:
    """A boolean or string field: a cell is the label's place among the categories."""

    ordered = False

    def __init__(self, field: Field, missing_values: tuple[str, ...]) -> None:
        self.field, self.missing_values = field, frozenset(missing_values)
        self.size = len(field.labels)
        if field.type == "boolean":
            words = dict.fromkeys(_FALSE, 0) | dict.fromkeys(_TRUE, 1)
        else:
            words = {label: j for j, label in enumerate(field.labels)}
        self.words = {word: j for word, j in words.items() if word not in self.missing_values}
        self.kind = optional("polars").Enum(list(self.words))
        fallback = (
            field.default if field.default is None or isinstance(field.default, str) else str(field.default).lower()
        )
        self.default = None if fallback is None else field.labels.index(fallback)
        self.fill = MISSING if not field.required else self.default or 0
        self.unknown = self.fill if self.default is None else self.default
        if field.other is not None:
            self.unknown = field.labels.index(field.other)

    def read(self, series: Series, log: ColumnLog) -> Integers:
        """Cells of a column."""
        pl = optional("polars")
        text = _as_text(series)
        known = list(self.words)
        # Nearly all cells are declared labels: these are looked up by the frame library, the rest one by one.
        found = text.cast(self.kind, strict=False).to_physical()
        absent = text.null_count()
        if found.null_count():
            found = found.cast(pl.UInt32)
        places = found.fill_null(len(known)).to_numpy() if found.null_count() else found.to_numpy()
        cells = np.take(np.array([*self.words.values(), self.fill], dtype=np.int64), places)
        log.missing += absent
        if found.null_count() > absent:
            odd = (found.is_null() & text.is_not_null()).to_numpy()
            words, places = np.unique(text.filter(pl.Series(odd)).to_numpy(), return_inverse=True)
            meanings = np.array([self._meaning(word) for word in words], dtype=np.int64)
            counts = np.bincount(places, minlength=len(words))
            log.missing += int(counts[meanings == MISSING].sum())
            strange = int(counts[meanings == -1].sum())
            if self.field.type == "boolean":
                log.unparseable += strange
            else:
                log.unknown += strange
            cells[odd] = np.select([meanings == MISSING, meanings == -1], [self.fill, self.unknown], meanings)[places]
        return cells

    def _meaning(self, word: str) -> int:
        """A label's place, MISSING, or −1 for a word that is not declared."""
        bare = word.strip()
        if "\0" in word or word in self.missing_values or bare in self.missing_values:
            return MISSING
        for form in (bare, bare.lower() if self.field.type == "boolean" else unguarded(bare)):
            if form in self.words:
                return self.words[form]
        return MISSING if bare.lower() in MISSING_WORDS else -1

    def codes(self, cells: Integers) -> Integers:
        """Category codes of cells."""
        empty = cells == MISSING
        return np.where(empty, self.size, cells) if empty.any() else cells

    def draw(self, codes: Integers, generator: np.random.Generator) -> Integers:
        """Cells of category codes."""
        return np.where(codes == self.size, MISSING, codes)

    def render(self, cells: Integers) -> Series:
        """A column of values."""
        pl = optional("polars")
        if self.field.type == "boolean":
            flags: Series = pl.Series(self.field.name, cells == 1)
            return _with_holes(flags, cells)
        names = pl.Series(self.field.name, self.field.labels, dtype=pl.String)
        return _with_holes(names.gather(np.where(cells == MISSING, 0, cells)), cells)

    def meets(self, condition: Condition, cells: Integers) -> Mask:
        """Where a condition of a forbid rule holds."""
        return np.isin(cells, self._places(condition))

    def avoid(self, condition: Condition, count: int, generator: np.random.Generator) -> Integers | None:
        """Random cells for which the condition fails; missing only where nothing else is left."""
        allowed = np.setdiff1d(np.arange(self.size), self._places(condition))
        if not len(allowed):
            if self.field.required or MISSING in self._places(condition):
                return None
            return np.full(count, MISSING)
        return np.asarray(generator.choice(allowed, count))

    def _places(self, condition: Condition) -> list[int]:
        labels = self.field.labels
        if self.field.type == "boolean":
            return [MISSING if v is None else int(bool(v)) for v in condition.values]
        return [MISSING if v is None else labels.index(str(v)) for v in condition.values]


class Grid:
    """A number or date: a cell is the value in steps of its precision, and the categories are bins."""

    ordered = True

    def __init__(self, field: Field, missing_values: tuple[str, ...]) -> None:
        self.field, self.axis = field, field.axis
        self.size = len(self.axis.starts)
        self.scale = 10.0**self.axis.decimals
        default = self.axis.low if field.default is None else field.on_grid(field.default)
        self.fill = default if field.required else MISSING
        self.missing_values = frozenset(missing_values)
        # "-99" declared missing holds for the number −99 as well, so that a frame and its CSV are read alike.
        markers = self.parse(optional("polars").Series(missing_values, dtype=optional("polars").String))
        self.markers = markers[~np.isnan(markers)]

    def read(self, series: Series, log: ColumnLog) -> Integers:
        """Cells of a column."""
        values = self.parse(series)
        if len(self.markers):
            values[np.isin(values, self.markers)] = np.nan
        empty = np.isnan(values)
        if empty.any():
            strange = self._strange(series, empty)
            log.unparseable += strange
            log.missing += int(np.count_nonzero(empty)) - strange
            values[empty] = 0.0
        low, high = self.axis.low / self.scale, self.axis.high / self.scale
        inside = np.clip(values, low, high)
        log.clipped += int(np.count_nonzero((inside != values) & ~empty))
        cells = np.clip(np.rint(inside * self.scale).astype(np.int64), self.axis.low, self.axis.high)
        cells[empty] = self.fill
        return np.asarray(cells)

    def _strange(self, series: Series, empty: Mask) -> int:
        """How many of the empty cells held something that is no value of this field."""
        pl = optional("polars")
        rest = series.filter(pl.Series(empty)).drop_nulls()
        if rest.dtype.is_float():
            return 0
        bare = _as_text(rest).str.strip_chars()
        said = bare.str.to_lowercase().is_in(list(MISSING_WORDS)) | bare.is_in(list(self.missing_values))
        return int((~said).sum())

    def parse(self, series: Series) -> Floats:
        """The values as floats (days and seconds for dates and times), NaN for none."""
        pl = optional("polars")
        kind = series.dtype
        if self.field.type in ("integer", "number"):
            if kind.is_temporal():
                return np.full(len(series), np.nan)
            if (kind.is_numeric() and not kind.is_decimal()) or kind == pl.Boolean:
                return _floats(series)
            return _parse_numbers(_as_text(series).str.strip_chars())
        times = self.field.type == "datetime"
        if kind == pl.Date:
            return _floats(series.to_physical()) * (86400.0 if times else 1.0)
        if isinstance(kind, pl.Datetime):
            seconds = np.floor(_floats(series.dt.epoch("ms")) / 1000)
            return seconds if times else np.floor(seconds / 86400)
        return _parse_times(_as_text(series).str.strip_chars(), times)

    def codes(self, cells: Integers) -> Integers:
        """Category codes of cells."""
        return np.where(cells == MISSING, self.size, self.bin_of(cells))

    def bin_of(self, cells: Integers) -> Integers:
        """The bin of each cell; missing ones give some bin."""
        return np.maximum(np.searchsorted(self.axis.starts, cells, side="right") - 1, 0)

    def draw(self, codes: Integers, generator: np.random.Generator) -> Integers:
        """Cells uniform in their bins."""
        bins = np.minimum(codes, self.size - 1)
        cells = generator.integers(self.axis.starts[bins], self.axis.ends[bins], endpoint=True)
        return np.where(codes == self.size, MISSING, cells)

    def value(self, cells: Integers) -> Floats:
        """Cells as numbers in the field's unit."""
        return np.asarray(cells / self.scale)

    def nearest(self, values: Floats, up: bool) -> Integers:
        """The steps at or above (up) or at or below these numbers."""
        steps = values * self.scale
        whole = np.rint(steps)
        close = np.abs(steps - whole) <= 1e-9 * np.maximum(1.0, np.abs(steps))
        return np.where(close, whole, np.ceil(steps) if up else np.floor(steps)).astype(np.int64)

    def render(self, cells: Integers) -> Series:
        """A column of values."""
        pl = optional("polars")
        filled = np.where(cells == MISSING, self.axis.low, cells)
        kind = self.field.type
        if kind == "number":
            series = pl.Series(self.field.name, self.value(filled))
        else:
            series = pl.Series(self.field.name, filled if kind != "datetime" else filled * 1000)
            series = series.cast({"integer": pl.Int64, "date": pl.Date, "datetime": pl.Datetime("ms")}[kind])
        return _with_holes(series, cells)

    def meets(self, condition: Condition, cells: Integers) -> Mask:
        """Where a condition of a forbid rule holds."""
        hit = np.isin(cells, [MISSING]) & (None in condition.values)
        for low, high in self._intervals(condition):
            hit |= (cells >= low) & (cells <= high)
        return np.asarray(hit)

    def avoid(self, condition: Condition, count: int, generator: np.random.Generator) -> Integers | None:
        """Random cells for which the condition fails, uniform over all steps between the bounds that do."""
        free, at = [], self.axis.low
        for low, high in sorted(self._intervals(condition)):
            if low > at:
                free.append((at, low - 1))
            at = max(at, high + 1)
        if at <= self.axis.high:
            free.append((at, self.axis.high))
        if not free:
            return None if self.field.required or None in condition.values else np.full(count, MISSING)
        lows, highs = np.array(free, dtype=np.int64).T
        lengths = (highs - lows + 1).astype(float)
        chosen = generator.choice(len(free), count, p=lengths / lengths.sum())
        return np.asarray(generator.integers(lows[chosen], highs[chosen], endpoint=True))

    def _intervals(self, condition: Condition) -> list[tuple[int, int]]:
        """The steps that a condition names, cut to the bounds; missing cells lie below every one."""
        if condition.is_range:
            low = self.axis.low if condition.minimum is None else self._step(condition.minimum, up=True)
            high = self.axis.high if condition.maximum is None else self._step(condition.maximum, up=False)
            found = [(max(low, self.axis.low), min(high, self.axis.high))]
        else:
            exact = [v for v in condition.values if v is not None]
            found = [(self._step(v, up=True), self._step(v, up=False)) for v in exact]  # empty between two steps
        return [(low, high) for low, high in found if self.axis.low <= low <= high <= self.axis.high]

    def _step(self, value: Any, up: bool) -> int:
        return self.field.on_grid(value, "ROUND_CEILING" if up else "ROUND_FLOOR")


Attribute = Labels | Grid


class Codec:
    """Encodes tables of one schema as category codes, and decodes codes into tables that satisfy the schema."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        for field in schema.fields:
            field.require_complete()
        self.attributes: dict[str, Attribute] = {
            f.name: (Grid if f.type in ORDERED_TYPES else Labels)(f, schema.missing_values)
            for f in schema.fields
            if f.constant is None
        }
        encoded = schema.encoded
        if not encoded:
            raise ParameterError(
                "every field of the schema is constant: there is nothing to encode. Declare categories."
            )
        self.names: tuple[str, ...] = tuple(f.name for f in encoded)
        self.domain_sizes: tuple[int, ...] = tuple(f.categories for f in encoded)
        self.ordinal: tuple[int, ...] = tuple(
            j for j, f in enumerate(encoded) if f.ordered or self.attributes[f.name].ordered
        )
        self._dictionaries = {name: Dictionary(self.attributes[name]) for name in self.names}
        self.dtype = np.min_scalar_type(max(self.domain_sizes) - 1)
        if schema.rules:
            _ = self._witness  # rules that contradict each other are refused before any data is read

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
        cells = self._cells(codes, generator)
        return self._render(self._obey(cells, generator), len(codes))

    def decode_cells(self, table: Integers, generator: np.random.Generator) -> dict[str, Series]:
        """Columns of values, from cells, a column per encoded field; they satisfy the rules."""
        cells = {name: table[:, j] for j, name in enumerate(self.names)}
        cells |= {n: self._single(a, len(table)) for n, a in self.attributes.items() if n not in cells}
        return self._render(self._obey(cells, generator), len(table))

    def repair(self, table: Any, generator: np.random.Generator) -> Any:
        """Codes, or a table, with the rows altered that break a rule; codes give codes and a table gives columns.

        Codes name bins, so a pair of bins that some values fit is left alone; decode finds these values.
        """
        if isinstance(table, np.ndarray):
            cells = self._obey(self._cells(table, generator), generator)
            return np.stack([self.attributes[name].codes(cells[name]) for name in self.names], axis=1)
        table = read_table(table, self.schema)
        return self._render(self._obey(self._read(table, EncodeLog()), generator), table.rows)

    def problems(self, table: Any) -> list[str]:
        """What a table breaks of the schema, field by field and rule by rule."""
        table, known = read_table(table), self.schema.names
        columns = {name if name in known else unguarded(name): series for name, series in table.columns.items()}
        absent = [f"column {name!r} is missing" for name in known if name not in columns]
        if absent:
            return absent
        found = [f"column {name!r} is not in the schema" for name in columns if name not in known]
        log, cells = EncodeLog(), {}
        for name, attribute in self.attributes.items():
            seen = log.columns[name] = ColumnLog()
            cells[name] = attribute.read(columns[name], seen)
            if not attribute.field.required:
                seen.missing = 0
            for word in ("missing", "unknown", "clipped", "unparseable"):
                if count := getattr(seen, word):
                    found.append(f"column {name!r} has {count} cells that are {word}")
            if isinstance(attribute, Grid) and attribute.field.type != "date":
                read, there = attribute.parse(columns[name]), cells[name] != MISSING
                if not np.array_equal(read[there], attribute.value(cells[name])[there]) and not seen.clipped:
                    found.append(f"column {name!r} has values finer than its precision")
        for field in self.schema.fields:
            if field.constant is not None and not self._is_constant(field, columns[field.name]):
                found.append(f"column {field.name!r} is not the declared constant")
        for rule in self.schema.rules:
            if count := int(np.count_nonzero(self._broken(rule, cells))):
                found.append(f"{count} rows break the rule {rule.to_dict()}")
        return found

    def _is_constant(self, field: Field, column: Series) -> bool:
        texts = _as_text(column).drop_nulls().unique().to_list()
        wanted = _as_text(self._constant(field, 1)).to_list()[0]
        same = [t for t in texts if t.strip() and wanted not in (t, unguarded(t))]
        try:
            same = [t for t in same if wanted is None or field.type != "number" or float(t) != float(wanted)]
        except ValueError:
            return False
        if field.type == "datetime" and wanted is not None:
            same = [t for t in same if _iso(t, True) != _iso(wanted, True)]
        return not same and (wanted is None or (column.null_count() == 0 and all(t.strip() for t in texts)))

    def _constant(self, field: Field, rows: int) -> Series:
        pl = optional("polars")
        kinds = {"boolean": pl.Boolean, "string": pl.String, "integer": pl.Int64, "number": pl.Float64, "date": pl.Date}
        value = None if field.constant is None else field.constant.value
        one: Series = pl.Series(field.name, [value], dtype=kinds.get(field.type, pl.Datetime("ms")))
        return one.new_from_index(0, rows)

    def _read(self, table: Table, log: EncodeLog) -> Cells:
        cells = {}
        for name, attribute in self.attributes.items():
            if name in self.names:
                log.columns[name] = ColumnLog()
                cells[name] = attribute.read(table.columns[name], log.columns[name])
            else:
                cells[name] = self._single(attribute, table.rows)
        return cells

    def _cells(self, codes: Array, generator: np.random.Generator) -> Cells:
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.names) or codes.dtype.kind not in "iub":
            raise ParameterError(
                f"codes must be whole numbers with {len(self.names)} columns, got shape {codes.shape}."
            )
        if (codes < 0).any() or (codes >= np.array(self.domain_sizes)).any():
            raise ParameterError("codes must lie in the domain of this codec's schema.")
        codes = codes.astype(np.int64)
        cells = {name: self.attributes[name].draw(codes[:, j], generator) for j, name in enumerate(self.names)}
        for name, attribute in self.attributes.items():
            if name not in cells:
                cells[name] = self._single(attribute, len(codes))
        return cells

    @staticmethod
    def _single(attribute: Attribute, rows: int) -> Integers:
        """Cells of an attribute with one category."""
        return np.full(rows, attribute.axis.low if isinstance(attribute, Grid) else 0)

    def _render(self, cells: Cells, rows: int) -> dict[str, Series]:
        return {
            f.name: self._constant(f, rows) if f.constant is not None else self.attributes[f.name].render(cells[f.name])
            for f in self.schema.fields
        }

    # Rules. Each repair is a fixed random rule on single rows; rules may undo each other's work, so they take turns, and
    # what is still broken after a number of rounds is replaced by a valid row. All of this sees released values alone.

    def _obey(self, cells: Cells, generator: np.random.Generator) -> Cells:
        if not self.schema.rules:
            return cells
        cells = {name: column.copy() for name, column in cells.items()}
        bad = self._take_turns(cells, generator)
        if bad.any():
            good, broken = np.flatnonzero(~bad), np.flatnonzero(bad)
            donors = generator.choice(good, len(broken)) if len(good) else None
            for name, column in cells.items():
                column[broken] = self._witness[name] if donors is None else column[donors]
        return cells

    def _take_turns(self, cells: Cells, generator: np.random.Generator) -> Mask:
        """Repair in place; which rows are still broken."""
        rows = len(next(iter(cells.values())))
        open_rows = np.arange(rows)
        for _ in range(_ROUNDS):
            part = {name: column[open_rows] for name, column in cells.items()}
            touched = np.zeros(len(open_rows), dtype=bool)
            for rule in self.schema.rules:
                broken = self._broken(rule, part)
                if broken.any():
                    self._mend(rule, part, np.flatnonzero(broken), generator)
                    touched |= broken
            for name, column in part.items():
                cells[name][open_rows[touched]] = column[touched]
            open_rows = open_rows[touched]
            if not len(open_rows):
                break
        bad = np.zeros(rows, dtype=bool)
        for rule in self.schema.rules:
            bad |= self._broken(rule, cells)
        return bad

    @cached_property
    def _witness(self) -> dict[str, int]:
        """One valid row, found from the public schema alone."""
        generator = np.random.Generator(np.random.PCG64(0))
        codes = np.stack([generator.integers(0, size, 1000) for size in self.domain_sizes], axis=1)
        cells = self._cells(codes, generator)
        valid = np.flatnonzero(~self._take_turns(cells, generator))
        if not len(valid):
            raise ParameterError(
                "no row was found that obeys all rules of the schema: they contradict each other, or "
                "leave hardly any room. Loosen one."
            )
        return {name: int(column[valid[0]]) for name, column in cells.items()}

    def _grid(self, name: str) -> Grid:
        attribute = self.attributes[name]
        assert isinstance(attribute, Grid)  # nosec B101 # for the type checker; the schema checks the types that rules name
        return attribute

    def _broken(self, rule: Rule, cells: Mapping[str, Integers]) -> Mask:
        """Which rows break a rule."""
        if isinstance(rule, AtMost):
            return np.asarray(sum((cells[name] == 1).astype(np.int64) for name in rule.fields) > rule.limit)
        if isinstance(rule, Forbid):
            met = [self.attributes[name].meets(condition, cells[name]) for name, condition in rule.conditions]
            return np.asarray(np.logical_and.reduce(met))
        present = np.logical_and.reduce([cells[name] != MISSING for name in rule.fields])
        if isinstance(rule, LessEqual):
            left, right = (self._grid(name).value(cells[name]) for name in rule.fields)
            return np.asarray(present & (left > right))
        terms = [a * np.where(present, self._grid(name).value(cells[name]), 0.0) for name, a in rule.coefficients]
        slack = 1e-9 * (abs(rule.maximum) + sum(np.abs(term) for term in terms))  # sums of floats are not exact
        return np.asarray(present & (sum(terms) > rule.maximum + slack))

    def _mend(self, rule: Rule, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        if isinstance(rule, AtMost):
            self._clear_flags(rule, cells, rows, generator)
        elif isinstance(rule, LessEqual):
            self._put_in_order(rule, cells, rows, generator)
        elif isinstance(rule, Linear):
            self._move_inside(rule, cells, rows, generator)
        else:
            self._leave_zero(rule, cells, rows, generator)

    def _clear_flags(self, rule: AtMost, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Keep `limit` of the set flags, chosen at random."""
        flags = np.stack([cells[name][rows] == 1 for name in rule.fields], axis=1)
        keys = np.where(flags, generator.random(flags.shape), 2.0)
        surplus = flags & (keys.argsort(axis=1).argsort(axis=1) >= rule.limit)
        for j, name in enumerate(rule.fields):
            cells[name][rows[surplus[:, j]]] = 0

    def _put_in_order(self, rule: LessEqual, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Redraw inside the bins if they have room; else exchange the values; else move them together."""
        a, b = self._grid(rule.left), self._grid(rule.right)
        x, y = cells[rule.left][rows], cells[rule.right][rows]
        bins_a, bins_b = a.bin_of(x), b.bin_of(y)
        cap = np.minimum(a.axis.ends[bins_a], a.nearest(b.value(b.axis.ends[bins_b]), up=False))
        fits = cap >= a.axis.starts[bins_a]
        x1 = generator.integers(a.axis.starts[bins_a], np.where(fits, cap, a.axis.ends[bins_a]), endpoint=True)
        top = b.axis.ends[bins_b]
        floor = np.minimum(np.maximum(b.axis.starts[bins_b], b.nearest(a.value(x1), up=True)), top)
        y1 = generator.integers(floor, top, endpoint=True)
        # Values that change places; where one would leave its bounds, both go to the bound that they share.
        x2 = np.clip(a.nearest(b.value(y), up=False), a.axis.low, a.axis.high)
        y2 = np.clip(b.nearest(np.maximum(a.value(x), a.value(x2)), up=True), b.axis.low, b.axis.high)
        x2 = np.clip(np.minimum(x2, a.nearest(b.value(y2), up=False)), a.axis.low, a.axis.high)
        cells[rule.left][rows] = np.where(fits, x1, x2)
        cells[rule.right][rows] = np.where(fits, y1, y2)

    def _move_inside(self, rule: Linear, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Move fields, in random order, toward the feasible side: first inside their bins, then inside their bounds."""
        order = [rule.coefficients[j] for j in generator.permutation(len(rule.coefficients))]
        for wide in (False, True):
            for name, coefficient in order:
                grid, column = self._grid(name), cells[name][rows]
                excess = sum(a * self._grid(n).value(cells[n][rows]) for n, a in rule.coefficients) - rule.maximum
                bins = grid.bin_of(column)
                low = np.full(len(rows), grid.axis.low) if wide else grid.axis.starts[bins]
                high = np.full(len(rows), grid.axis.high) if wide else grid.axis.ends[bins]
                room = (grid.axis.high - grid.axis.low) + 1.0
                steps = np.ceil(np.clip(excess / abs(coefficient) * grid.scale - 1e-6, 0.0, room)).astype(np.int64)
                moved = column - steps if coefficient > 0 else column + steps
                cells[name][rows] = np.clip(moved, low, high)

    def _leave_zero(self, rule: Forbid, cells: Cells, rows: Integers, generator: np.random.Generator) -> None:
        """Redraw a number inside its bin if that helps; else give one of the fields, chosen at random, another value."""
        for name, condition in rule.conditions:
            attribute = self.attributes[name]
            if isinstance(attribute, Grid) and len(rows):
                there = cells[name][rows] != MISSING
                for _ in range(8):
                    column = cells[name][rows]
                    drawn = attribute.draw(np.where(there, attribute.bin_of(column), attribute.size), generator)
                    cells[name][rows] = drawn
                    still = attribute.meets(condition, drawn)
                    rows, there = rows[still], there[still]
                    if not len(rows):
                        return
        able = [(n, c) for n, c in rule.conditions if self.attributes[n].avoid(c, 1, generator) is not None]
        if not able:
            return
        chosen = generator.integers(0, len(able), len(rows))
        for j, (name, condition) in enumerate(able):
            mine = rows[chosen == j]
            fresh = self.attributes[name].avoid(condition, len(mine), generator)
            if fresh is not None:
                cells[name][mine] = fresh


class Dictionary:
    """Cells of single words of one attribute, each read once. It remembers words of the data: private, in memory only."""

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
        if any(seen != ColumnLog() for _, seen in found[:-1]) or column.places.min(initial=0) < 0:
            counts = np.bincount(column.places.astype(np.int64) + 1, minlength=len(found))
            for (_, seen), count in zip(found, [*counts[1:], counts[0]], strict=True):
                log.add(seen, int(count))
        # Place −1, missing, picks the last entry.
        values = np.array([cell for cell, _ in found], dtype=np.int64)
        if not cells:
            values = self.attribute.codes(values).astype(np.min_scalar_type(self.attribute.size))
        return values.take(column.places, mode="wrap")

    def _look_up(self, word: str | None) -> tuple[int, ColumnLog]:
        if word not in self.known:
            if len(self.known) >= self.most:
                self.known.clear()
            pl, seen = optional("polars"), ColumnLog()
            self.known[word] = int(self.attribute.read(pl.Series([word], dtype=pl.String), seen)[0]), seen
        return self.known[word]


def _as_text(series: Series) -> Series:
    """Cells as text, as `columns.text` writes each: what one cell means must not depend on the type that others need."""
    pl = optional("polars")
    kind = series.dtype
    if kind == pl.String:
        return series
    if kind.is_integer() or kind in (pl.Boolean, pl.Categorical, pl.Enum):
        written: Series = series.cast(pl.String)
        return written
    known = {value: text(value) for value in series.unique().to_list()}
    spelled: Series = pl.Series(series.name, [known.get(value) for value in series.to_list()], dtype=pl.String)
    return spelled


def _parse_numbers(words: Series) -> Floats:
    """Numbers of text, NaN for what is none; true and false are 1 and 0, as they are in a column of flags."""
    pl = optional("polars")
    out = _floats(words.cast(pl.Float64, strict=False))
    odd = np.isnan(out)
    if odd.any():
        flags = words.filter(pl.Series(odd)).str.to_lowercase()
        out[odd] = np.select(
            [(flags == "true").fill_null(False), (flags == "false").fill_null(False)], [1.0, 0.0], np.nan
        )
    return out


def _floats(series: Series) -> Floats:
    """A column of numbers that may be written to, NaN for holes."""
    pl = optional("polars")
    return np.array(series.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


def _with_holes(series: Series, cells: Integers) -> Series:
    pl = optional("polars")
    empty = cells == MISSING
    return series.set(pl.Series(empty), None) if empty.any() else series


def _parse_times(text: Series, times: bool) -> Floats:
    """Days or seconds since 1970 of ISO 8601 text, NaN for what is none."""
    pl = optional("polars")
    out = np.full(len(text), np.nan)
    shapes = [(10, "%Y-%m-%d", 86400.0 if times else 1.0)]
    if times:
        shapes += [(19, "%Y-%m-%dT%H:%M:%S", 1.0), (19, "%Y-%m-%d %H:%M:%S", 1.0)]
    # The usual shapes are read by the frame library; what is left, one by one.
    for length, shape, unit in shapes:
        fixed = text.set(text.str.len_bytes() != length, None)
        if fixed.null_count() == len(fixed):
            continue
        if length == 10:
            read = _floats(fixed.str.to_date(shape, strict=False).to_physical()) * unit
        else:
            read = np.floor(_floats(fixed.str.to_datetime(shape, strict=False, time_unit="ms").to_physical()) / 1000)
        out = np.where(np.isnan(out), read, out)
    odd = np.isnan(out) & text.is_not_null().to_numpy()
    if odd.any():
        words, places = np.unique(text.filter(pl.Series(odd)).to_numpy(), return_inverse=True)
        out[odd] = np.array([_iso(word, times) for word in words])[places]
    return out


def _iso(word: str, times: bool) -> float:
    try:
        when = datetime.fromisoformat(word)
        if when.tzinfo is not None:
            when = when.astimezone(UTC)
        when = when.replace(tzinfo=None)
    except (ValueError, OverflowError):
        return float("nan")
    since = when - _EPOCH
    return float(since.days * 86400 + since.seconds) if times else float(since.days)
