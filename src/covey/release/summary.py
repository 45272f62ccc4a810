"""Numbers behind the pictures: one-way tables and associations of category codes, with the labels a reader knows.

Whoever calls these decides what the codes are. The public report gives them synthetic rows alone, added up while they are
written: no part has to be kept or drawn again. The confidential evaluation gives them true rows too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from itertools import combinations

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.models.laws import CodeLaw
from covey.engine.numbers.grid import Measure
from covey.errors import counted
from covey.markup import shorten
from covey.release.contents import AnyRelease, PrivateRelease
from covey.tables.attributes import ColumnLog, Grid
from covey.tables.codec import Codec
from covey.tables.schema import ORDERED_TYPES, Field, Schema
from covey.tables.sources import ColumnValues

MOST_BINS = 40  # bars of a histogram that is a hand wide
MOST_LABELS = 12  # bars of a chart of categories; the others are joined
SKEWED = 0.9  # of the rows in one bar: nothing can be seen of a number whose bars are equally wide
WIDE = 10  # bars of such a number before the heaviest are halved
FULL = 0.1  # of the rows, beyond which a bar is halved
MAPPED_ROWS = 50_000  # that associations are computed from: they are read to two digits
MISSING = "missing"
_FIRST_DAY = date(1970, 1, 1)


@dataclass(frozen=True)
class Column:
    """One attribute as a reader sees it: labels in order, and for each code the label that it counts toward."""

    name: str
    type: str
    domain: str
    labels: tuple[str, ...]
    group: Integers
    ordered: bool
    has_missing: bool
    starts: Integers | None = None  # of a number's bars, in steps of its precision
    growing: bool = False  # whether its bars are narrow where many rows lie: codes are then numbers of bars

    def shares(self, codes: Integers) -> Floats:
        """The share of each label."""
        return self.shares_of(np.bincount(codes, minlength=len(self.group)))

    def shares_of(self, counts: Integers) -> Floats:
        """The share of each label, from how many rows have each code."""
        own = np.bincount(self.group, weights=counts, minlength=len(self.labels))
        return np.asarray(own / max(1, counts.sum()), dtype=np.float64)


def describe(codec: Codec, measures: Mapping[str, Measure] | None = None) -> list[Column]:
    """The attributes of a codec, from its public schema; many ordered bins are joined to MOST_BINS or fewer.

    Bars of a number that is skewed by its private measure, where there is one, grow away from where most rows lie.
    """
    out = []
    for name, size in zip(codec.names, codec.domain_sizes, strict=True):
        field = codec.attributes[name].field
        bins, own, starts = field.type in ORDERED_TYPES, list[str](), None
        if not bins:
            own = [shorten(label, 40) for label in field.labels]
        count, ordered = len(field.axis.starts) if bins else len(own), bins or field.ordered
        bars = np.arange(count) * MOST_BINS // count if ordered and count > MOST_BINS else np.arange(count)
        first = np.unique(bars, return_index=True)[1]
        last = np.append(first[1:], count) - 1
        group, growing = np.concatenate([bars, np.arange(len(first), len(first) + size - count)]), False
        if bins:
            starts = field.axis.starts[first]
            if measures and name in measures and (grown := growing_bars(field, starts, measures[name])) is not None:
                starts, growing, group = grown, True, np.arange(len(grown) + size - count)
            labels = _ranges(field, starts, np.append(starts[1:] - 1, field.axis.high))
        else:
            labels = [own[i] if i == j else f"{own[i]} … {own[j]}" for i, j in zip(first, last, strict=True)]
        apart = [*(shorten(word, 40) for word in field.special), *([] if field.required else [MISSING])]
        said = shorten(name), field.type, domain_words(field), (*labels, *apart)
        out.append(Column(*said, group, ordered, not field.required, starts, growing))
    return out


def growing_bars(field: Field, starts: Integers, measure: Measure) -> Integers | None:
    """Where bars begin that are narrow where many rows lie, by a private measure; None where equal ones will do.

    The heaviest bar is halved as long as it is full, so that bars widen by two away from where most rows lie.
    """
    low, high, specials = field.axis.low, field.axis.high + 1, measure.grid.specials

    def shares(edges: Integers) -> Floats:
        mass = measure.mass(specials + edges - low)
        return np.asarray(mass / max(float(mass.sum()), 1e-12))

    if high - low != measure.grid.steps or shares(np.append(starts, high)).max() < SKEWED:
        return None
    edges = np.unique(np.linspace(low, high, WIDE + 1).astype(np.int64))
    while len(edges) <= MOST_BINS:
        full = np.where(np.diff(edges) > 1, shares(edges), 0.0)
        k = int(np.argmax(full))
        if full[k] <= FULL:
            break
        edges = np.insert(edges, k + 1, (edges[k] + edges[k + 1]) // 2)
    return edges[:-1]


def domain_words(field: Field) -> str:
    """What the schema says that a field may hold, in few words."""
    if field.constant is not None:
        return "constant"
    if field.derived is not None:
        return f"derived from {', '.join(field.derived.bases)}"
    if field.type == "boolean":
        return " or ".join(reversed(field.flags))
    if field.type == "string":
        return counted(len(field.labels), "category")
    low, high = field.axis.low, field.axis.high
    special = f", or {', '.join(field.special)}" if field.special else ""
    return f"{point(field, low)} to {point(field, high)}{special}"


def _ranges(field: Field, starts: Integers, ends: Integers) -> list[str]:
    """Bins of a number or date."""
    whole = field.type in ("integer", "date")
    edges = [point(field, s) for s in starts]
    # Continuous bins meet at their edges; whole numbers and days end one step earlier.
    closing = [point(field, e if whole else e + 1) for e in ends]
    return [a if s == e else f"{a} – {b}" for a, b, s, e in zip(edges, closing, starts, ends, strict=True)]


def point(field: Field, step: int) -> str:
    """A value of an ordered field, given in steps of its precision, as a reader writes it."""
    step = int(step)
    try:
        if field.type == "date":
            return (_FIRST_DAY + timedelta(days=step)).isoformat()
        if field.type == "time":
            return f"{step // 3600:02}:{step // 60 % 60:02}"
        if field.type == "datetime":
            return (datetime(1970, 1, 1) + timedelta(seconds=step)).isoformat(sep=" ", timespec="minutes")
    except OverflowError:
        return "…"
    if field.type == "integer" or not field.axis.decimals:
        return f"{step}"
    return f"{step / 10**field.axis.decimals:.6g}"


def commonest(shares: Floats, most: int = MOST_LABELS) -> Integers:
    """Places of the categories that have a bar of their own, by falling share: all, or with a bar for the others so many."""
    order = np.argsort(-shares, kind="stable")
    return order if len(shares) <= most else order[: most - 1]


def ranked(
    labels: Sequence[str], shares: Floats, has_missing: bool, most: int = MOST_LABELS
) -> list[tuple[str, Floats]]:
    """Nominal categories by falling share, the small ones joined, missing last; shares may have several rows.

    The first row of shares decides the order.
    """
    table = np.atleast_2d(shares)
    count = len(labels) - has_missing
    kept = commonest(table[0, :count], most)
    out = [(labels[i], table[:, i]) for i in kept]
    if len(kept) < count:
        out.append((f"{count - len(kept)} others", np.delete(table[:, :count], kept, axis=1).sum(axis=1)))
    return [*out, (MISSING, table[:, -1])] if has_missing else out


def coarsened(codes: Integers, columns: Sequence[Column]) -> tuple[Integers, list[int]]:
    """Codes of at most MOST_BINS + 1 levels a column, the rarest categories joined, and the numbers of levels."""
    out = np.empty((len(codes), len(columns)), dtype=np.int64)
    sizes = []
    for j, column in enumerate(columns):
        level, size = column.group[codes[:, j]], len(column.labels)
        if size > MOST_BINS + 1:
            order = np.argsort(-np.bincount(level, minlength=size), kind="stable")
            place = np.empty(size, dtype=np.int64)
            place[order] = np.minimum(np.arange(size), MOST_BINS)
            level, size = place[level], MOST_BINS + 1
        out[:, j] = level
        sizes.append(size)
    return out, sizes


def associations(codes: Integers, columns: Sequence[Column]) -> Floats:
    """Cramér's V of every pair of attributes, corrected for the bias of small tables (Bergsma 2013); the diagonal is 1."""
    codes, sizes = coarsened(codes, columns)
    out = np.eye(len(sizes))
    for a, b in combinations(range(len(sizes)), 2):
        table = np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b])
        out[a, b] = out[b, a] = cramers_v(table.reshape(sizes[a], sizes[b]), len(codes))
    return out


def cramers_v(table: Integers, m: int) -> float:
    """Bias-corrected Cramér's V of a contingency table of m rows; 0 where a side is constant."""
    rows, columns = table.sum(axis=1), table.sum(axis=0)
    seen = table[rows > 0][:, columns > 0].astype(np.float64)
    r, c = seen.shape
    if min(r, c) < 2 or m < 2:
        return 0.0
    expected = np.outer(seen.sum(axis=1), seen.sum(axis=0)) / m
    phi2 = float(((seen - expected) ** 2 / expected).sum()) / m
    phi2 = max(0.0, phi2 - (r - 1) * (c - 1) / (m - 1))
    rows_left, columns_left = r - (r - 1) ** 2 / (m - 1), c - (c - 1) ** 2 / (m - 1)
    smaller = min(rows_left, columns_left) - 1
    return float(min(1.0, np.sqrt(phi2 / smaller))) if smaller > 0 else 0.0


def every_so_many(codes: Integers, most: int) -> Integers:
    """At most so many rows, evenly chosen."""
    return codes[:: -(-len(codes) // most)] if len(codes) > most else codes


# Rows that pass by, as a report shows them.


class ReleaseTally:
    """What a report needs of all tables of a release, from parts that pass by."""

    def __init__(self, release: AnyRelease, growing: bool = True) -> None:
        self.described, self.tables, first = release.described, dict[str, TableTally](), 0
        cells, numbers = (release.cells, release.numbers) if isinstance(release, PrivateRelease) else ({}, None)
        cells = cells if growing else {}  # two releases of a table have equal bars only if no measure decides them
        for part in self.described.tables:
            names = [field.name for field in part.measured.coded.encoded]
            measures = {name: cells[j].measure for j, name in enumerate(names, first) if j in cells}
            first += len(names)
            if not part.bare and part.written.encoded:  # of events only their place may vary
                self.tables[part.name] = TableTally(part.written, release.parts.m, numbers, measures)
        self.rows = dict.fromkeys((part.name for part in self.described.tables), 0)
        most = 0 if self.described.schema is not None else self.described.link.at_most
        self.events = np.zeros(most + 1, dtype=np.int64)  # how many persons have so many events
        self.first: Sequence[ColumnValues] = ()  # columns of every table in the first part

    @classmethod
    def of(cls, release: AnyRelease, growing: bool = True) -> ReleaseTally:
        """All tables of a release, drawn or read for this alone."""
        own = cls(release, growing)
        for part in release.parts:
            own.add(own.by_table(part))
        return own

    def by_table(self, part: ColumnValues | Sequence[ColumnValues]) -> Sequence[ColumnValues]:
        """A part as columns of every table."""
        return (part,) if self.described.schema is not None else part  # type: ignore[return-value]

    def add(self, part: Sequence[ColumnValues]) -> None:
        """Count one part."""
        self.first = self.first or part
        for one, columns in zip(self.described.tables, part, strict=True):
            self.rows[one.name] += len(next(iter(columns.values())))
            if one.name in self.tables and len(next(iter(columns.values()))):
                self.tables[one.name].add({name: columns[name] for name in one.written.names})
        if self.described.schema is None:
            ids, owners = (
                np.asarray(columns[one.link]) for one, columns in zip(self.described.tables, part, strict=True)
            )
            held = np.bincount(np.searchsorted(ids, owners), minlength=len(ids))
            self.events += np.bincount(held, minlength=len(self.events))

    @property
    def only(self) -> TableTally:
        """The one table."""
        return self.tables[self.described.unit.name]


class TableTally:
    """What a report needs of the rows of one table; m is how many there will be, of events how many persons."""

    def __init__(
        self, schema: Schema, m: int, numbers: CodeLaw | None = None, measures: Mapping[str, Measure] | None = None
    ) -> None:
        self.codec = Codec(schema.plain())  # as covey writes rows, whatever the source looked like
        itself = {
            name: own for name, own in (measures or {}).items() if name not in (schema.links | self.codec.expected)
        }
        try:
            self.columns = describe(self.codec, itself)
        except Exception:  # the rows are not lost for the width of a bar
            self.columns = describe(self.codec)
        self.counts: list[Integers] = [np.zeros(len(column.group), dtype=np.int64) for column in self.columns]
        self.first: ColumnValues = {}
        self._codes: Integers | None = None  # of the first part
        self.rows = 0
        self._numbers = numbers if numbers is not None and numbers.cells else None
        self._step = max(1, -(-m // MAPPED_ROWS))
        self._some: list[tuple[Integers, Integers]] = []

    def add(self, part: ColumnValues) -> None:
        """Count one part, and choose some of its rows."""
        codes = self.codec.encode(part)[0]
        codes = codes.astype(np.promote_types(codes.dtype, np.min_scalar_type(max(map(len, self.counts)))), copy=False)
        for j, column in enumerate(self.columns):
            grid = self.codec.attributes[self.codec.names[j]]
            if column.growing and column.starts is not None and isinstance(grid, Grid):
                cells = grid.read(part[grid.field.name], ColumnLog())
                apart = codes[:, j].astype(np.int64) + len(column.group) - self.codec.domain_sizes[j]
                bars = np.searchsorted(column.starts, cells, side="right") - 1
                codes[:, j] = np.where(grid.has_value(cells), bars, apart)
        for j, counts in enumerate(self.counts):
            counts += np.bincount(codes[:, j], minlength=len(counts))
        start = -self.rows % self._step
        some = codes if self._step == 1 else codes[start :: self._step].copy()  # a view would keep the whole part
        if len(some):
            chosen = {name: values[start :: self._step] for name, values in part.items()}
            self._some.append((some, some if self._numbers is None else self.fine(chosen)))
        if self._codes is None:
            self.first, self._codes = part, codes
        self.rows += len(codes)

    def fine(self, part: ColumnValues) -> Integers:
        """Rows as codes; numbers by the cells that they were measured in."""
        if self._numbers is None:
            return self._codes if part is self.first and self._codes is not None else self.codec.encode(part)[0]
        return self._numbers.of(self.codec.encode(part, "numbers")[0])

    @property
    def some(self) -> Integers:
        """Codes of the chosen rows."""
        return np.concatenate([codes for codes, _ in self._some])

    @property
    def some_fine(self) -> Integers:
        """The same rows, numbers by their cells."""
        return np.concatenate([fine for _, fine in self._some])
