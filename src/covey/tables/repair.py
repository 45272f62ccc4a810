"""Rows of a schema: those that break a rule, found and altered; columns that follow from others; and what a table breaks.

Sums of numbers are kept by geometry (`Region`): all rows are moved at once. Each other repair is a fixed random rule on
single rows; rules may undo each other's work, so they take turns, and what is still broken after a number of rounds is replaced
by a valid row. All of this sees released values alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from covey.engine.arrays import Array, Integers
from covey.engine.numbers.lattice import TURNS, Band, Lattice, settle
from covey.errors import ParameterError, counted
from covey.libraries import pl
from covey.tables.attributes import Attribute, ColumnLog, Grid, attributes, dtype_of, grid_of
from covey.tables.columns import as_text, bare, iso, parse, spelled, spellings, unguarded
from covey.tables.fields import Field, as_written
from covey.tables.links import distances
from covey.tables.readable import readable
from covey.tables.rules import Cells, Domain, Mask, Rule, Sum, all_there
from covey.tables.sources import read_table

_ROUNDS = 12  # of repairs; rows that rules still throw back and forth are replaced
CALENDAR = (-62_135_596_800, 253_402_300_800)  # the years 1 to 9999, in seconds of 1970


class RuleBook:
    """The attributes of a schema, and the rules that its rows obey."""

    def __init__(self, domain: Domain) -> None:
        self.domain = domain
        self.mended = 0  # synthetic rows that were altered so far, because they broke a rule
        for field in domain.fields:
            field.require_complete()
        self.attributes = attributes(domain)
        self.rules = (*domain.rules, *distances(domain), *readable(self.attributes))
        self.regions = regions(self.rules, self.attributes)
        encoded = domain.encoded
        if not encoded:
            raise ParameterError("every field of the schema is constant: nothing to encode. Declare categories.")
        self.names: tuple[str, ...] = tuple(f.name for f in encoded)
        self.domain_sizes: tuple[int, ...] = tuple(f.categories for f in encoded)
        if self.rules:
            _ = self._witness  # rules that contradict each other are refused before any data is read

    def cells(self, codes: Array, generator: np.random.Generator) -> Cells:
        """Cells of category codes, uniform inside their bins."""
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.names) or codes.dtype.kind not in "iub":
            raise ParameterError(f"codes must be integers in {len(self.names)} columns, got shape {codes.shape}.")
        if (codes < 0).any() or (codes >= np.array(self.domain_sizes)).any():
            raise ParameterError("codes must lie in the domain of this codec's schema.")
        codes = codes.astype(np.int64)
        return self.complete([self.attributes[name].draw(codes[:, j], generator) for j, name in enumerate(self.names)])

    def complete(self, columns: Iterable[Integers]) -> Cells:
        """Cells by field, of the columns of encoded fields: those with one category too."""
        cells = dict(zip(self.names, columns, strict=True))
        rows = len(cells[self.names[0]])
        return cells | {n: self.single(a, rows) for n, a in self.attributes.items() if n not in cells}

    @staticmethod
    def single(attribute: Attribute, rows: int) -> Integers:
        """Cells of an attribute with one category."""
        return np.full(rows, attribute.axis.low if isinstance(attribute, Grid) else 0)

    def obey(self, cells: Cells, generator: np.random.Generator) -> Cells:
        """The cells with the rows altered that break a rule, which are counted."""
        self.count_mended(cells)
        return self.repaired(cells, generator)

    def count_mended(self, cells: Cells) -> None:
        """Count the rows that are to be altered."""
        self.mended += int(np.count_nonzero(self.breaking(cells)))

    def breaking(self, cells: Cells) -> Mask:
        """Which rows break a rule."""
        none = np.zeros(len(next(iter(cells.values()))), dtype=bool)
        return np.asarray(np.logical_or.reduce([none, *(self.broken(rule, cells) for rule in self.rules)]))

    def repaired(self, cells: Cells, generator: np.random.Generator) -> Cells:
        """The cells with the rows altered that break a rule."""
        rows = len(next(iter(cells.values())))
        if not self.rules or not rows:
            return cells
        cells = {name: column.copy() for name, column in cells.items()}
        for region in self.regions:
            region.settle(cells, np.arange(rows))
        bad = self._take_turns(cells, generator)
        if bad.any():
            good, broken = np.flatnonzero(~bad), np.flatnonzero(bad)
            donors = generator.choice(good, len(broken)) if len(good) else None
            for name in {name for rule in self.rules for name in rule.fields}:  # others may be bound elsewhere
                cells[name][broken] = self._witness[name] if donors is None else cells[name][donors]
        return cells

    def _take_turns(self, cells: Cells, generator: np.random.Generator) -> Mask:
        """Repair in place; which rows are still broken."""
        rows = len(next(iter(cells.values())))
        open_rows = np.arange(rows)
        for _ in range(_ROUNDS):
            part = {name: column[open_rows] for name, column in cells.items()}
            touched = np.zeros(len(open_rows), dtype=bool)
            for rule in self.rules:
                broken = self.broken(rule, part)
                if broken.any():
                    wrong, region = np.flatnonzero(broken), self._region(rule)
                    if region is None:
                        rule.mend(self.attributes, part, wrong, generator)
                    else:
                        region.settle(part, wrong, turns=0)
                    touched |= broken
            for name, column in part.items():
                cells[name][open_rows[touched]] = column[touched]
            open_rows = open_rows[touched]
            if not len(open_rows):
                break
        return self.breaking(cells)

    @cached_property
    def _witness(self) -> dict[str, int]:
        """One valid row, found from the public schema alone: from the columns that rules name, whatever the others are."""
        generator = np.random.Generator(np.random.PCG64(0))
        named = {name for rule in self.rules for name in rule.fields}
        cells = {name: self.single(self.attributes[name], 1000) for name in named}
        for name, size in zip(self.names, self.domain_sizes, strict=True):
            if name in named:
                cells[name] = self.attributes[name].draw(generator.integers(0, size, 1000), generator)
        valid = np.flatnonzero(~self._take_turns(cells, generator))
        if not len(valid):
            raise ParameterError("no row was found that obeys all rules: they contradict each other. Loosen one.")
        row = {name: int(column[valid[0]]) for name, column in cells.items()}
        first = np.zeros(1, dtype=np.int64)
        return {n: row[n] if n in row else int(a.draw(first, generator)[0]) for n, a in self.attributes.items()}

    def _region(self, rule: Rule) -> Region | None:
        """The polytope that keeps a rule, if one does."""
        return next((region for region in self.regions if any(rule is kept for kept in region.rules)), None)

    def broken(self, rule: Rule, cells: Mapping[str, Integers]) -> Mask:
        """Which rows break a rule."""
        region = self._region(rule)
        return rule.broken(self.attributes, cells) if region is None else region.broken(rule, cells)


class Region:
    """Rules on sums that share columns, and the polytopes that they make."""

    def __init__(self, rules: Sequence[Rule], attributes: Mapping[str, Attribute]) -> None:
        self.rules = tuple(rules)
        self.grids = {name: grid_of(attributes, name) for rule in rules for name in rule.fields}
        self._parts: dict[tuple[bool, ...], tuple[tuple[str, ...], Lattice]] = {}
        try:
            _ = self.part((True,) * len(self.rules))[1].middle  # a body without a row is refused before data is read
        except ParameterError as error:
            raise ParameterError(f"the rules on {', '.join(self.grids)}: {error}") from None

    def part(self, holding: tuple[bool, ...]) -> tuple[tuple[str, ...], Lattice]:
        """The columns of the rules that hold, and their polytope."""
        if holding not in self._parts:
            rules = [rule for rule, holds in zip(self.rules, holding, strict=True) if holds]
            names = tuple(name for name in self.grids if any(name in rule.fields for rule in rules))
            axes = [self.grids[name].axis for name in names]
            bands = [self._band(part, names) for rule in rules for part in rule.sums]
            self._parts[holding] = names, Lattice([a.low for a in axes], [a.high for a in axes], bands)
        return self._parts[holding]

    def _band(self, part: Sum, names: tuple[str, ...]) -> Band:
        """A bound in steps of the columns."""
        steps = {name: Fraction(1, 10 ** self.grids[name].axis.decimals) for name in names}
        terms = tuple((names.index(name), Fraction(as_written(a)) * steps[name]) for name, a in part.coefficients)
        low, high = (None if bound is None else Fraction(as_written(bound)) for bound in (part.minimum, part.maximum))
        return Band(terms, low, high)

    def broken(self, rule: Rule, cells: Mapping[str, Integers]) -> Mask:
        """Which rows break one of the rules."""
        names, lattice = self.part(tuple(other is rule for other in self.rules))
        there = all_there(self.grids, names, cells)
        broken = np.zeros(len(there), dtype=bool)
        broken[there] = ~lattice.contains(np.stack([cells[name][there] for name in names], axis=1))
        return broken

    def settle(self, cells: Cells, rows: Integers, turns: int = TURNS) -> None:
        """Move these rows inside, in place; where there are turns, columns keep about the values that they have among them."""
        own = {name: cells[name][rows] for name in self.grids}
        held = np.stack([all_there(self.grids, rule.fields, own) for rule in self.rules], axis=1)
        for holding in np.unique(held, axis=0):
            if holding.any():
                names, lattice = self.part(tuple(holding.tolist()))
                mine = rows[(held == holding).all(axis=1)]
                moved = settle(np.stack([cells[name][mine] for name in names], axis=1), lattice, turns)
                for j, name in enumerate(names):
                    cells[name][mine] = moved[:, j]


def regions(rules: Sequence[Rule], attributes: Mapping[str, Attribute]) -> list[Region]:
    """Bodies, and linear rules on numbers without declared bins, joined where they share a column.

    Linear rules with more digits than can be computed exactly are left to repair, as are those on bins.
    """
    groups: list[list[Rule]] = []
    for rule in rules:
        if rule.sums and (rule.bound is None or _is_exact(rule, attributes)):
            near = [group for group in groups if {name for old in group for name in old.fields} & set(rule.fields)]
            groups = [group for group in groups if group not in near]
            groups.append([*(old for group in near for old in group), rule])
    return [Region(group, attributes) for group in groups]


def _is_exact(rule: Rule, attributes: Mapping[str, Attribute]) -> bool:
    if any(grid_of(attributes, name).field.bins is not None for name in rule.fields):
        return False
    try:
        Region([rule], attributes)
    except ParameterError:
        return False
    return True


# Columns that are not measured, and what a table breaks of a schema, in words for the person who owns it.


def constant_column(field: Field, rows: int) -> pl.Series:
    """A column that holds the field's declared constant."""
    value = None if field.constant is None else field.constant.value
    one = pl.Series([value], dtype=dtype_of(field))
    return _as_written(field, one).new_from_index(0, rows)


def derived_column(field: Field, columns: Mapping[str, pl.Series], fields: Sequence[Field] = ()) -> pl.Series:
    """A column that follows from others, in the field's type; an expression is rounded to its precision.

    `fields` are those of the schema: a special value of theirs is no number, even where it looks like one.
    """
    assert field.derived is not None  # nosec B101 # for the type checker
    found = field.derived.compute(columns, {own.name: own.special for own in fields if own.special})
    if isinstance(found, list):
        typed = [None if v is None else field.value(v, "derived value") for v in found]
        return _as_written(field, pl.Series(typed, dtype=dtype_of(field)))
    if field.type in ("date", "datetime"):  # in seconds
        days, inside = field.type == "date", (found >= CALENDAR[0]) & (found < CALENDAR[1])
        moments = np.floor(found / 86400) if days else np.floor(found) * 1000
        past = pl.Series(np.where(inside, moments, np.nan)).fill_nan(None)
        return past.cast(pl.Int32 if days else pl.Int64).cast(dtype_of(field))
    decimals = 0 if field.type != "number" else field.decimals
    values = found if decimals is None else np.round(found, decimals)
    column = pl.Series(np.where(np.abs(values) < 2.0**53, values, np.nan)).fill_nan(None)
    return _as_written(field, column.cast(dtype_of(field)))


def _as_written(field: Field, column: pl.Series) -> pl.Series:
    """A column of yes and no in the field's own words or numbers; any other as it is."""
    if field.type != "boolean" or field.written == "boolean":
        return column
    no, yes = field.flags
    if field.written == "integer":
        return column.cast(pl.Int64)
    return column.replace_strict({False: no, True: yes}, return_dtype=pl.String)


def problems(book: RuleBook, table: Any) -> list[str]:
    """What a table breaks of the schema, field by field and rule by rule."""
    known = book.domain.names
    table = read_table(table, dialect=book.domain.dialect)
    columns = {name if name in known else unguarded(name): series for name, series in table.columns.items()}
    written = {} if table.plain else spellings(book.domain, table.origin)
    columns |= {name: spelled(columns[name], own) for name, own in written.items() if name in columns}
    absent = [f"column {name!r} is missing" for name in known if name not in columns]
    if absent:
        return absent
    found = [f"column {name!r} is not in the schema" for name in columns if name not in known]
    cells = {}
    for name, attribute in book.attributes.items():
        seen = ColumnLog()
        cells[name] = attribute.read(columns[name], seen)
        if not attribute.field.required:
            seen.missing = 0
        for word in ("missing", "unknown", "clipped", "unparseable"):
            if count := getattr(seen, word):
                found.append(f"column {name!r} has {count} cells that are {word}")
        if isinstance(attribute, Grid) and attribute.field.type != "date":
            read, there = parse(columns[name], attribute.field.type), attribute.has_value(cells[name])
            if not np.array_equal(read[there], attribute.value(cells[name])[there]) and not seen.clipped:
                found.append(f"column {name!r} has values with more decimals than declared")
    for field in book.domain.fields:
        if field.constant is not None and not _is_constant(field, columns[field.name]):
            found.append(f"column {field.name!r} is not the declared constant")
    for field in book.domain.fields:
        if field.derived is not None and (count := _differs(book, field, columns, cells)):
            found.append(f"column {field.name!r} is not what it is derived from in {counted(count, 'row')}")
    for rule in book.rules:
        if count := int(np.count_nonzero(book.broken(rule, cells))):
            found.append(f"{count} rows break the rule {rule.to_dict()}")
    return found


def _differs(book: RuleBook, field: Field, columns: Mapping[str, pl.Series], cells: Mapping[str, Integers]) -> int:
    """In how many rows a derived column is not the function of the others that it is declared to be."""
    assert field.derived is not None  # nosec B101 # for the type checker
    given = {name: book.attributes[name].render(cells[name]) for name in field.derived.bases if name in cells}
    if len(given) < len(field.derived.bases):
        return 0  # derived from a derived column: that one is compared
    wanted = derived_column(field, given, book.domain.fields)
    own = as_text(columns[field.name])
    if field.type in ("integer", "number"):
        one, other = own.cast(pl.Float64, strict=False), wanted.cast(pl.Float64)
        same = (one - other).abs().fill_null(np.inf) <= 1e-9 * other.abs().fill_null(0.0) + 1e-12
    elif field.type == "datetime":  # whose text has a T in a file and none in a column
        same = pl.Series(parse(own, field.type) == parse(wanted, field.type))
    else:
        same = (bare(own) == bare(as_text(wanted))).fill_null(False)
    empty = (own.is_null() | (own.str.strip_chars() == "")) & wanted.is_null()
    return int((~(same | empty)).sum())


def _is_constant(field: Field, column: pl.Series) -> bool:
    texts = as_text(column).drop_nulls().unique().to_list()
    wanted = (as_text(constant_column(field, 1)).to_list()[0] or "").strip() or None  # a blank cell is missing
    same = [t for t in texts if t.strip() and wanted not in (t, unguarded(t))]
    try:
        same = [t for t in same if wanted is None or field.type != "number" or float(t) != float(wanted)]
    except ValueError:
        return False
    if field.type == "datetime" and wanted is not None:
        same = [t for t in same if iso(t, True) != iso(wanted, True)]
    return not same and (wanted is None or (column.null_count() == 0 and all(t.strip() for t in texts)))
