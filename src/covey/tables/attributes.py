"""How the columns of one schema are read and written: an attribute turns text into cells, cells into category codes, and back.

An attribute's categories are, in order: the labels (false and true; the enum, then "other") or the bins, and last of all
"missing", unless the field is required. A cell is a whole number: the label's place, or the value in steps of the field's
precision; MISSING for none.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cache, cached_property
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.libraries import pl
from covey.tables.columns import MISSING_WORDS, as_text, parse, unguarded
from covey.tables.fields import ORDERED_TYPES, Field
from covey.tables.rules import AtMost, Condition, Domain, Mask

MISSING = int(np.iinfo(np.int64).min)
SPECIAL = MISSING + 1  # the first special value; the others follow

_TRUE, _FALSE = ("true", "t", "yes", "y", "1"), ("false", "f", "no", "n", "0")


@dataclass
class ColumnLog:
    """How many cells of a column were not taken as they stood."""

    missing: int = 0
    unknown: int = 0
    clipped: int = 0
    unparseable: int = 0
    grouped: int = 0  # numbers such as 5.123, which are thousands where a point groups digits
    pointed: int = 0  # numbers such as 5.12, where it cannot

    def __add__(self, other: ColumnLog) -> ColumnLog:
        return ColumnLog(*map(operator.add, astuple(self), astuple(other)))


class Labels:
    """A boolean or string field: a cell is the label's place among the categories."""

    ordered = False

    def __init__(self, field: Field, missing_values: tuple[str, ...]) -> None:
        self.field, self.missing_values = field, frozenset(missing_values)
        self.size = len(field.labels)
        if field.type == "boolean":
            own = {form: j for j, word in enumerate(field.flags) for form in (word, word.lower())}
            words = dict.fromkeys(_FALSE, 0) | dict.fromkeys(_TRUE, 1) | own
        else:
            words = {label: j for j, label in enumerate(field.labels)}
        self.words = {word: j for word, j in words.items() if word not in self.missing_values}
        self.dtype = pl.Enum(list(self.words))
        said = field.default
        self.default = None if said is None else int(said) if isinstance(said, bool) else field.labels.index(str(said))
        self.fill = MISSING if not field.required else self.default or 0
        self.unknown = self.fill if self.default is None else self.default
        if field.other is not None:
            self.unknown = field.labels.index(field.other)

    def read(self, series: pl.Series, log: ColumnLog) -> Integers:
        """Cells of a column."""
        text = as_text(series)
        # Nearly all cells are declared labels: these are looked up by the frame library, the rest one by one.
        found = text.cast(self.dtype, strict=False).to_physical()
        absent = text.null_count()
        if found.null_count():
            found = found.cast(pl.UInt32)
        places = found.fill_null(len(self.words)).to_numpy() if found.null_count() else found.to_numpy()
        cells = np.take(np.array([*self.words.values(), self.fill], dtype=np.int64), places)
        log.missing += absent
        if found.null_count() > absent:
            odd = (found.is_null() & text.is_not_null()).to_numpy()
            words, places = np.unique(text.filter(pl.Series(odd)).to_numpy(), return_inverse=True)
            meanings = np.array([self._meaning(word) for word in words], dtype=np.int64)
            counts = np.bincount(places, minlength=len(words))
            log.missing += int(counts[meanings == MISSING].sum())
            strange = int(counts[meanings == -1].sum())  # words that are not declared
            log.unparseable += strange * (self.field.type == "boolean")
            log.unknown += strange * (self.field.type != "boolean")
            cells[odd] = np.select([meanings == MISSING, meanings == -1], [self.fill, self.unknown], meanings)[places]
        return cells

    def _meaning(self, word: str) -> int:
        """A label's place, MISSING, or −1 for a word that is not declared."""
        bare = word.strip()
        if "\0" in word or word in self.missing_values or bare in self.missing_values:
            return MISSING
        plain = unguarded(bare)
        for form in (bare, plain, plain.lower() if self.field.type == "boolean" else plain):
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

    def render(self, cells: Integers) -> pl.Series:
        """A column of values."""
        if self.field.type == "boolean" and self.field.written != "string":
            flags = pl.Series(cells == 1)
            return _with_holes(flags if self.field.written == "boolean" else flags.cast(pl.Int64), cells)
        names = pl.Series(self.field.labels, dtype=pl.String)
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

    def some(self, condition: Condition, count: int, generator: np.random.Generator) -> Integers | None:
        """Random cells that meet a condition, if there are any."""
        places = [place for place in self._places(condition) if place != MISSING or not self.field.required]
        return np.asarray(generator.choice(places, count)) if places else None

    def _places(self, condition: Condition) -> list[int]:
        labels = self.field.labels
        if self.field.type == "boolean":
            return [MISSING if v is None else int(bool(v)) for v in condition.values]
        return [MISSING if v is None else labels.index(str(v)) for v in condition.values]


@cache
def _values(words: tuple[str, ...], kind: str) -> Floats:
    """The numbers that these words of a schema are; the others are left out."""
    read = parse(pl.Series(words, dtype=pl.String), kind)
    return read[~np.isnan(read)]


class Grid:
    """A number, date or time: a cell is the value in steps of its precision, and the categories are bins.

    Special values, words among the numbers, are categories behind the bins: their cells are SPECIAL, SPECIAL + 1, …, far below
    every value.
    """

    ordered = True

    def __init__(self, field: Field, missing_values: tuple[str, ...]) -> None:
        self.field, self.axis = field, field.axis
        self.bins, self.scale = len(self.axis.starts), 10.0**self.axis.decimals
        self.size = self.bins + len(field.special)
        default = self.axis.low if field.default is None else field.on_grid(field.default)
        self.fill = default if field.required else MISSING
        self.missing_values = frozenset(missing_values)
        # "-99" declared missing holds for the number −99 as well, so that a frame and its CSV are read alike.
        self.markers = _values(tuple(word for word in missing_values if word not in field.special), field.type)
        self.words = {word: SPECIAL + j for j, word in enumerate(field.special)}
        # "-99" declared special holds for the number −99 too, and for no other spelling of a value that has a word already.
        cells = reversed(self.words.items())  # the first word that a value has counts
        self.special_values = {value: cell for word, cell in cells for value in _values((word,), field.type).tolist()}

    @cached_property
    def unreadable(self) -> tuple[int, ...]:
        """The steps between the bounds that are read as missing or as a special value."""
        words = np.array([*self.markers, *self.special_values], dtype=np.float64)
        steps = np.rint(words * self.scale)
        inside = (steps >= self.axis.low) & (steps <= self.axis.high) & (steps / self.scale == words)
        return tuple(map(int, np.unique(steps[inside])))

    def read(self, series: pl.Series, log: ColumnLog) -> Integers:
        """Cells of a column."""
        values = parse(series, self.field.type)
        special = self._special(series, values) if self.words else None
        if special is not None:
            values[special != MISSING] = self.axis.low / self.scale
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
        return np.asarray(cells if special is None else np.where(special == MISSING, cells, special))

    def _special(self, series: pl.Series, values: Floats) -> Integers:
        """Cells of special values, MISSING where there is none."""
        found = np.full(len(values), MISSING)
        for value, cell in self.special_values.items():
            found[values == value] = cell
        if series.dtype.is_numeric():  # no words
            return found
        text = as_text(series)
        odd = np.isnan(values) & text.is_not_null().to_numpy()
        if odd.any():
            words, places = np.unique(text.filter(pl.Series(odd)).to_numpy(), return_inverse=True)
            forms = [word.strip() for word in words]
            cells = [self.words.get(word, self.words.get(unguarded(word), MISSING)) for word in forms]
            found[odd] = np.array(cells, dtype=np.int64)[places]
        return found

    def _strange(self, series: pl.Series, empty: Mask) -> int:
        """How many of the empty cells held something that is no value of this field."""
        rest = series.filter(pl.Series(empty)).drop_nulls()
        if rest.dtype.is_float():
            return 0
        bare = as_text(rest).str.strip_chars()
        said = bare.str.to_lowercase().is_in(list(MISSING_WORDS)) | bare.is_in(list(self.missing_values))
        return int((~said).sum())

    def codes(self, cells: Integers) -> Integers:
        """Category codes of cells."""
        codes = np.where(cells == MISSING, self.size, self.bin_of(cells))
        return np.where(self.is_special(cells), self.bins + cells - SPECIAL, codes) if self.words else codes

    def is_special(self, cells: Integers) -> Mask:
        """Where a cell is a special value."""
        return np.asarray((cells >= SPECIAL) & (cells < SPECIAL + len(self.words)))

    def has_value(self, cells: Integers) -> Mask:
        """Where a cell is a number or date: neither missing nor special."""
        return np.asarray((cells != MISSING) & ~self.is_special(cells))

    def bin_of(self, cells: Integers) -> Integers:
        """The bin of each cell; missing ones give some bin."""
        return np.maximum(np.searchsorted(self.axis.starts, cells, side="right") - 1, 0)

    def draw(self, codes: Integers, generator: np.random.Generator) -> Integers:
        """Cells uniform in their bins."""
        bins = np.minimum(codes, self.bins - 1)
        cells = generator.integers(self.axis.starts[bins], self.axis.ends[bins], endpoint=True)
        return np.where(codes < self.bins, cells, self.apart(codes))

    def apart(self, codes: Integers) -> Integers:
        """Cells of the codes behind the bins: special values, and missing."""
        return np.where(codes == self.size, MISSING, SPECIAL + codes - self.bins)

    def value(self, cells: Integers) -> Floats:
        """Cells as numbers in the field's unit."""
        return np.asarray(cells / self.scale)

    def nearest(self, values: Floats, up: bool) -> Integers:
        """The steps at or above (up) or at or below these numbers."""
        steps = values * self.scale
        whole = np.rint(steps)
        close = np.abs(steps - whole) <= 1e-9 * np.maximum(1.0, np.abs(steps))
        return np.where(close, whole, np.ceil(steps) if up else np.floor(steps)).astype(np.int64)

    def render(self, cells: Integers) -> pl.Series:
        """A column of values."""
        filled = np.where(self.has_value(cells), cells, self.axis.low)
        if self.field.type == "number":
            series = pl.Series(self.value(filled))
        else:
            steps = filled * {"datetime": 1000, "time": 10**9}.get(self.field.type, 1)
            series = pl.Series(steps)
            series = series.cast(dtype_of(self.field))
        if self.words:
            series = self._with_special(series, cells)
        return _with_holes(series, cells)

    def _with_special(self, series: pl.Series, cells: Integers) -> pl.Series:
        """The column as text, with its special values: no other type holds both."""
        written = as_text(series)
        if self.field.type == "datetime":
            written = written.str.replace(" ", "T", literal=True)  # as a column without special values is written
        for word, cell in self.words.items():
            written = written.set(pl.Series(cells == cell), word)
        return written

    def meets(self, condition: Condition, cells: Integers) -> Mask:
        """Where a condition of a forbid rule holds."""
        hit = np.isin(cells, [*self._named(condition), *([MISSING] if None in condition.values else [])])
        for low, high in self.intervals(condition):
            hit |= (cells >= low) & (cells <= high)
        return np.asarray(hit)

    def _named(self, condition: Condition) -> list[int]:
        """Cells of the special values that a condition names."""
        return [self.words[v] for v in condition.values if isinstance(v, str) and v in self.words]

    def avoid(self, condition: Condition, count: int, generator: np.random.Generator) -> Integers | None:
        """Random cells for which the condition fails, uniform over all steps between the bounds that do."""
        free = between(self.intervals(condition), self.axis.low, self.axis.high)
        if not free:
            return None if self.field.required or None in condition.values else np.full(count, MISSING)
        lows, highs = np.array(free, dtype=np.int64).T
        lengths = (highs - lows + 1).astype(float)
        chosen = generator.choice(len(free), count, p=lengths / lengths.sum())
        return np.asarray(generator.integers(lows[chosen], highs[chosen], endpoint=True))

    def some(self, condition: Condition, count: int, generator: np.random.Generator) -> Integers | None:
        """Random cells that meet a condition, if there are any; special or missing ones where it names nothing else."""
        inside = self.intervals(condition)
        if not inside:
            missing = [MISSING] if None in condition.values and not self.field.required else []
            words = [*self._named(condition), *missing]
            return np.asarray(generator.choice(words, count)) if words else None
        lows, highs = np.array(inside, dtype=np.int64).T
        chosen = generator.integers(0, len(inside), count)
        return np.asarray(generator.integers(lows[chosen], highs[chosen], endpoint=True))

    def intervals(self, condition: Condition) -> list[tuple[int, int]]:
        """The steps that a condition names, cut to the bounds; missing cells lie below every one."""
        if condition.is_range:
            low = self.axis.low if condition.minimum is None else self._step(condition.minimum, up=True)
            high = self.axis.high if condition.maximum is None else self._step(condition.maximum, up=False)
            found = [(max(low, self.axis.low), min(high, self.axis.high))]
        else:
            exact = [v for v in condition.values if v is not None and not (isinstance(v, str) and v in self.words)]
            found = [(self._step(v, up=True), self._step(v, up=False)) for v in exact]  # empty between two steps
        return [(low, high) for low, high in found if self.axis.low <= low <= high <= self.axis.high]

    def _step(self, value: Any, up: bool) -> int:
        return self.field.on_grid(value, "ROUND_CEILING" if up else "ROUND_FLOOR")


Attribute = Labels | Grid


def between(inside: Iterable[tuple[int, int]], low: int, high: int) -> list[tuple[int, int]]:
    """The intervals of whole numbers from low to high that lie outside of these."""
    found, at = [], low
    for first, last in sorted(inside):
        if first > at:
            found.append((at, first - 1))
        at = max(at, last + 1)
    return [*found, (at, high)] if at <= high else found


def attributes(domain: Domain) -> dict[str, Attribute]:
    """The attribute of each field that is measured."""
    return {
        field.name: (Grid if field.type in ORDERED_TYPES else Labels)(field, domain.missing_values)
        for field in domain.fields
        if field.measured
    }


def joined(flags: Sequence[Integers], rule: AtMost, required: bool) -> Integers:
    """Cells of the category of columns that exclude each other, each record's by itself: the first column that is set.

    Where none is: missing if one is missing, else "none"; where one is needed, missing or, if none may be, the first.
    """
    chosen = np.stack([cells == 1 for cells in flags], axis=1)
    empty = np.logical_or.reduce([cells == MISSING for cells in flags])
    none = len(flags) if rule.none else 0 if required else MISSING
    return np.where(chosen.any(axis=1), chosen.argmax(axis=1), np.where(empty, MISSING, none))


def parted(cells: Integers, rule: AtMost, attributes: Mapping[str, Attribute]) -> dict[str, Integers]:
    """The cells of columns that exclude each other, of cells of their category."""
    holes = {name: 0 if attributes[name].field.required else MISSING for name in rule.flags}
    return {name: np.where(cells == MISSING, holes[name], cells == k) for k, name in enumerate(rule.flags)}


def grid_of(attributes: Mapping[str, Attribute], name: str) -> Grid:
    """The attribute of a number, date or time."""
    attribute = attributes[name]
    assert isinstance(attribute, Grid)  # nosec B101 # for the type checker; the schema checks the types that rules name
    return attribute


def dtype_of(field: Field) -> Any:
    """The type of a field's column."""
    dtypes = {"boolean": pl.Boolean, "string": pl.String, "integer": pl.Int64, "number": pl.Float64, "date": pl.Date}
    return pl.Time if field.type == "time" else dtypes.get(field.type, pl.Datetime("ms"))


def _with_holes(series: pl.Series, cells: Integers) -> pl.Series:
    empty = cells == MISSING
    return series.set(pl.Series(empty), None) if empty.any() else series
