"""Numbers behind the pictures: one-way tables and associations of category codes, with the labels a reader knows.

Whoever calls these decides what the codes are. The public report gives them synthetic rows alone; the confidential evaluation
gives them true rows too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

import numpy as np

from covey.core.arrays import Array, Floats, Integers
from covey.core.numbers.grid import Measure
from covey.html import shorten
from covey.table.codec import Codec
from covey.table.schema import ORDERED_TYPES, Field

MOST_BINS = 40  # bars of a histogram that is a hand wide
MOST_LABELS = 12  # bars of a chart of categories; the others are joined
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

    def shares(self, codes: Integers) -> Floats:
        """The share of each label."""
        return self.shares_of(np.bincount(codes, minlength=len(self.group)))

    def shares_of(self, counts: Integers) -> Floats:
        """The share of each label, from how many rows have each code."""
        own = np.bincount(self.group, weights=counts, minlength=len(self.labels))
        return np.asarray(own / max(1, counts.sum()), dtype=np.float64)

    @property
    def is_flag(self) -> bool:
        """Whether it is a boolean."""
        return self.type == "boolean"


def describe(codec: Codec) -> list[Column]:
    """The attributes of a codec, from its public schema alone; many ordered bins are joined to MOST_BINS or fewer."""
    out = []
    for name, size in zip(codec.names, codec.domain_sizes, strict=True):
        field = codec.schema[name]
        bins = field.type in ORDERED_TYPES
        labels = bin_labels(field) if bins else tuple(shorten(label, 40) for label in field.labels)
        special = tuple(shorten(word, 40) for word in field.special)
        group = np.arange(size, dtype=np.int64)
        ordered = bins or field.ordered
        if ordered and len(labels) > MOST_BINS:
            joined = np.arange(len(labels)) * MOST_BINS // len(labels)
            first = np.searchsorted(joined, np.arange(MOST_BINS))
            last = np.append(first[1:], len(labels)) - 1
            group[: len(labels)] = joined
            if bins:
                labels = _ranges(field, field.axis.starts[first], field.axis.ends[last])
            else:
                labels = tuple(
                    labels[i] if i == j else f"{labels[i]} … {labels[j]}" for i, j in zip(first, last, strict=True)
                )
            group[len(joined) :] = MOST_BINS + np.arange(size - len(joined))
        has_missing = not field.required
        out.append(
            Column(
                shorten(name),
                field.type,
                domain_words(field),
                labels + special + ((MISSING,) if has_missing else ()),
                group,
                ordered,
                has_missing,
            )
        )
    return out


def even_inside(column: Column, field: Field, measure: Measure | None = None) -> Array:
    """For each bar of a number whether values are drawn evenly inside it, because nothing finer was measured.

    Without a measure of its own a number is drawn evenly inside each bin; several bins in one bar are not even together. A
    single value at the end of a bar may stand out of it: bounds are measured by themselves.
    """
    starts, ends = field.axis.starts, field.axis.ends
    group = column.group[: len(starts)]
    bars, out = np.arange(group[-1] + 1), np.zeros(len(column.labels), dtype=bool)
    first, last = np.searchsorted(group, bars), np.searchsorted(group, bars, side="right") - 1
    low, high = starts[first], ends[last]
    if measure is None:
        out[bars] = (first == last) & (low < high)
        return out
    start, stop = (measure.grid.specials + edge - field.axis.low for edge in (low, high + 1))
    at = np.searchsorted(measure.start, (start + stop) // 2, side="right") - 1
    held = np.minimum(measure.stop[at], stop) - np.maximum(measure.start[at], start)
    out[bars] = (held >= 2) & (held >= stop - start - 1)
    return out


def domain_words(field: Field) -> str:
    """What the schema says that a field may hold, in few words."""
    if field.constant is not None:
        return "constant"
    if field.derived is not None:
        return f"derived from {', '.join(field.derived.bases)}"
    if field.type == "boolean":
        return " or ".join(reversed(field.flags))
    if field.type == "string":
        return f"{len(field.labels)} categories"
    low, high = field.axis.low, field.axis.high
    special = f", or {', '.join(field.special)}" if field.special else ""
    return f"{point(field, low)} to {point(field, high)}{special}"


def bin_labels(field: Field) -> tuple[str, ...]:
    """The bins of a number or date."""
    return _ranges(field, field.axis.starts, field.axis.ends)


def _ranges(field: Field, starts: Integers, ends: Integers) -> tuple[str, ...]:
    whole = field.type in ("integer", "date")
    edges = [point(field, s) for s in starts]
    # Continuous bins meet at their edges; whole numbers and days end one step earlier.
    closing = [point(field, e if whole else e + 1) for e in ends]
    return tuple(a if s == e else f"{a} – {b}" for a, b, s, e in zip(edges, closing, starts, ends, strict=True))


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
    q, m = len(sizes), len(codes)
    out = np.eye(q)
    for a in range(q):
        for b in range(a + 1, q):
            table = np.bincount(codes[:, a] * sizes[b] + codes[:, b], minlength=sizes[a] * sizes[b])
            out[a, b] = out[b, a] = cramers_v(table.reshape(sizes[a], sizes[b]), m)
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
