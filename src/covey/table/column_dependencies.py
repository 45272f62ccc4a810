"""Numbers and dates that follow one another, found in a table: proposals for "after" in a draft.

Admission and discharge, net and gross, first and last day. A pair is proposed where the order holds in nearly every row, would
not hold by chance, and the distance says more than the value itself. A draft describes private data: the steward confirms it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from covey.core.arrays import Floats
from covey.errors import ParameterError
from covey.table.attributes import MISSING, ColumnLog, Grid
from covey.table.columns import spelled
from covey.table.extras import optional
from covey.table.fields import ORDERED_TYPES, Field
from covey.table.follows import Follows
from covey.table.links import find_links

if TYPE_CHECKING:
    from polars import Series

FEWEST = 50  # rows that have both values, before their order means anything
KEPT = 0.995  # of these rows have the order: a few mistakes of typing are forgiven
BY_CHANCE = 0.95  # an order that so many random pairs of values have is no rule
NARROWER = 0.5  # times the spread of the later value is what the distance has at most; else the value says as much
LOOKED_AT = 100_000  # rows, the first ones
GLANCE = 1000  # rows that rule most functions out before whole columns are compared
REPEATED = 20  # rows for each value of a column, on average, before it may be said to determine another
SEARCHED_COLUMNS = 60  # columns beyond which pairs are not looked for


def propose_links(fields: Sequence[Field], columns: Sequence[Series], missing: tuple[str, ...]) -> dict[str, Follows]:
    """For each number or date that follows another one, which: the nearest that comes before it."""
    values = {
        field.name: _values(field, column.head(LOOKED_AT), missing)
        for field, column in zip(fields, columns, strict=True)
        if _has_limits(field)
    }
    if len(values) > SEARCHED_COLUMNS:
        return {}
    own = {field.name: field for field in fields}
    found: dict[str, Follows] = {}
    for end in values:
        near = {base: gap for base in values if (gap := _gap(values[base], values[end])) is not None}
        for base in sorted(near, key=lambda name: near[name]):
            proposed = found | {end: Follows(base)}
            if _alike(own[base], own[end]) and _holds(own, proposed):
                found = proposed
                break
    return found


def _has_limits(field: Field) -> bool:
    limits = field.minimum is not None and field.maximum is not None
    return field.type in ORDERED_TYPES and field.type != "time" and limits and field.bins is None


def _alike(base: Field, end: Field) -> bool:
    numbers = ("integer", "number")
    return base.type == end.type or (base.type in numbers and end.type in numbers)


def _values(field: Field, column: Series, missing: tuple[str, ...]) -> Floats:
    """Values in the field's unit, NaN for none."""
    grid = Grid(replace(field, required=False), missing)
    cells = grid.read(spelled(column, field.spelling), ColumnLog())
    return np.where(cells > MISSING // 2, cells / grid.scale, np.nan)


def _gap(base: Floats, end: Floats) -> float | None:
    """The spread of the distance from base to end, where end follows base; None where it does not."""
    both = ~(np.isnan(base) | np.isnan(end))
    x, y = base[both], end[both]
    if base is end or len(x) < FEWEST or x.mean() >= y.mean() or np.mean(x <= y) < KEPT:
        return None
    chance = 1 - float(np.mean(np.searchsorted(np.sort(y), x, side="left") / len(y)))  # x ≤ y, were they drawn apart
    spread = float((y - x).std())
    return spread if chance < BY_CHANCE and 0 < spread <= NARROWER * float(y.std()) else None


def with_links_that_hold(fields: Sequence[Field]) -> tuple[Field, ...]:
    """The fields without proposals that others have made impossible: a base that was left out, or that has bins now."""
    own = {field.name: replace(field, follows=None) for field in fields}
    kept: dict[str, Follows] = {}
    for field in fields:
        if field.follows is not None and _holds(own, proposed := kept | {field.name: field.follows}):
            kept = proposed
    return tuple(replace(field, follows=kept.get(field.name)) for field in fields)


def _holds(fields: dict[str, Field], follows: dict[str, Follows]) -> bool:
    """Whether a schema with these links is possible: no circles, and bounds that allow them."""
    linked = {name: replace(field, follows=follows.get(name)) for name, field in fields.items()}
    try:
        find_links(linked, ())
    except ParameterError:
        return False
    return True


def functions(columns: Sequence[Series], bases: Sequence[int]) -> dict[int, int]:
    """Columns that are a function of one of the bases, by place: that with the fewest values.

    A base says something only if its values repeat; both columns vary.
    """
    if not columns:
        return {}
    rows = len(columns[0])
    first = np.stack([column.head(GLANCE).rank("dense").fill_null(0).to_numpy() for column in columns], axis=1)
    found: dict[int, int] = {}
    sizes = {base: columns[base].n_unique() for base in bases}
    for base in sorted((b for b in bases if 1 < sizes[b] <= rows / REPEATED), key=lambda b: sizes[b]):
        _, begins, place = np.unique(first[:, base], return_index=True, return_inverse=True)
        for own in np.flatnonzero((first == first[begins[place.ravel()]]).all(axis=0)).tolist():
            if own != base and own not in found and _is_function(columns[base], columns[own], sizes[base]):
                found[own] = base
    # Of two columns that say the same, the first one stays.
    return {own: base for own, base in found.items() if found.get(base) != own or base < own}


def _is_function(base: Series, own: Series, size: int) -> bool:
    pair = optional("polars").DataFrame([base.alias("base"), own.alias("own")])
    return bool(own.n_unique() > 1 and pair.n_unique() == size)
