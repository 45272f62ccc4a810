"""Which rules of a schema are structural zeros of its codes, so that the fit can keep them.

A rule that names single columns' values becomes boxes (`engine.codes.zeros`): what is forbidden or required, few "at most" flags,
and orders and sums of two numbers with declared bins, as far as whole bins are impossible. Numbers that are coded by their
distance from another one, and what lies inside a bin, are left to repair after drawing.
"""

from __future__ import annotations

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.codes.zeros import NO_BOXES, Across, Box, Boxes, Range
from covey.errors import ParameterError
from covey.tables.attributes import MISSING, SPECIAL, Grid, Labels, between, grid_of
from covey.tables.codec import Codec
from covey.tables.description import Description
from covey.tables.repair import RuleBook
from covey.tables.rules import MOST_ZEROS, Condition, Sum, Zero


def structural_zeros(codec: Codec) -> Boxes:
    """The boxes of all rules of a schema."""
    found: list[Box] = []
    for rule in codec.book.domain.rules:
        found += [box for zero in rule.zeros for box in _box(codec, zero)]
        found += [] if rule.bound is None else _staircase(codec, rule.bound)
    return Boxes(tuple(found))


def across_zeros(package: Description) -> Boxes:
    """The boxes of rules across persons and events, over the attributes of both, those of persons first."""
    across = package.across
    if across is None:
        return NO_BOXES
    persons, events = package.codecs
    joint = [f"{package.unit.name}.{name}" for name in persons.names]
    joint += [f"{package.events.name}.{name}" for name in events.names]
    small = Codec(across)
    own = structural_zeros(small).boxes
    boxes = [Box({joint.index(small.names[j]): side for j, side in box.items()}) for box in own]
    found = Boxes(tuple(boxes))
    # Codes at which a rule changes its mind stand for all between them.
    sizes = [kind.size for codec in (persons, events) for kind in codec.kinds]
    codes = [np.array([c for c in sorted({0, *found.cuts(j)}) if c < size]) for j, size in enumerate(sizes)]
    first = len(persons.names)
    # A field of events with one value is in no box: what it forbids, it forbids with every event.
    if any(max(box) < first for box in boxes) or Across.of(found, first, codes).impossible:
        raise ParameterError("rules across the tables leave some persons no event, or tell too many persons apart.")
    return found


def _box(codec: Codec, conditions: Zero) -> list[Box]:
    """One box, or none where a column's codes do not say whether its condition holds, or it never does."""
    sides: dict[int, tuple[Range, ...]] = {}
    for name, condition, turned in conditions:
        if name in codec.links or name in codec.expected:
            return []
        if name not in codec.names:  # it has one value, which meets its condition in every row or in none
            attribute = codec.attributes[name]
            if bool(attribute.meets(condition, RuleBook.single(attribute, 1))[0]) == turned:
                return []
            continue
        sides[codec.names.index(name)] = _codes(codec, name, condition, turned)  # a rule names a field once
    return [Box(sides)] if sides and all(sides.values()) else []


def _codes(codec: Codec, name: str, condition: Condition, turned: bool) -> tuple[Range, ...]:
    """The codes for which a condition holds for certain; `turned`, for which it fails for certain."""
    attribute = codec.attributes[name]
    if isinstance(attribute, Labels):
        cells = np.append(np.arange(attribute.size), [] if attribute.field.required else [MISSING]).astype(np.int64)
        return _runs(np.flatnonzero(attribute.meets(condition, cells) != turned))
    if name not in codec.fine:
        return _runs(np.flatnonzero(_bins(attribute, condition, turned)))
    apart, low = codec.apart(name), attribute.axis.low
    words = np.array([*attribute.words.values(), *([] if attribute.field.required else [MISSING])], dtype=np.int64)
    before = _runs(np.flatnonzero(attribute.meets(condition, words) != turned)) if len(words) else ()
    inside = sorted(attribute.intervals(condition))
    steps = between(inside, low, attribute.axis.high) if turned else inside
    return (*before, *((apart + first - low, apart + last - low + 1) for first, last in steps))


def _bins(grid: Grid, condition: Condition, turned: bool) -> list[bool]:
    """For each code of a number with bins, whether all values in it meet the condition, or all fail it."""
    found = []
    for start, end in zip(grid.axis.starts.tolist(), grid.axis.ends.tolist(), strict=True):
        inside = sum(min(end, b) - max(start, a) + 1 for a, b in grid.intervals(condition) if a <= end and b >= start)
        found.append(inside == 0 if turned else inside == end - start + 1)
    apart = [*range(SPECIAL, SPECIAL + len(grid.words)), *([] if grid.field.required else [MISSING])]
    return [*found, *(bool(hit) != turned for hit in grid.meets(condition, np.array(apart, dtype=np.int64)))]


def _staircase(codec: Codec, bound: Sum) -> list[Box]:
    """Pairs of bins that an order or a sum of two numbers makes impossible as a whole."""
    terms, most = bound.coefficients, bound.maximum
    if most is None or len(terms) != 2 or any(name in codec.fine or name not in codec.names for name, _ in terms):
        return []
    (one, other), least = [codec.names.index(name) for name, _ in terms], [_least(codec, *term) for term in terms]
    slack = 1e-9 * (abs(most) + sum(float(np.abs(part).max()) for part in least))
    found = []
    for i, value in enumerate(least[0].tolist()):
        beyond = np.flatnonzero(value + least[1] > most + slack)
        if len(beyond):
            found.append(Box({one: ((i, i + 1),), other: _runs(beyond)}))
    return found if len(found) <= MOST_ZEROS else []


def _least(codec: Codec, name: str, factor: float) -> Floats:
    """The least that a term of a sum can be in each bin."""
    grid = grid_of(codec.attributes, name)
    return factor * grid.value(grid.axis.starts if factor > 0 else grid.axis.ends)


def _runs(codes: Integers) -> tuple[Range, ...]:
    """Sorted codes as ranges."""
    if not len(codes):
        return ()
    ends = np.flatnonzero(np.diff(codes) > 1)
    first, last = codes[np.r_[0, ends + 1]], codes[np.r_[ends, len(codes) - 1]]
    return tuple((int(a), int(b) + 1) for a, b in zip(first, last, strict=True))
