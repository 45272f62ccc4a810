"""Contradictions: relations that hold in the true rows, exactly or nearly, and not in the synthetic ones.

Confidential like all of the evaluation: which relations hold is read off true rows without noise. A relation counts if at most
HOLDS of the true rows that it speaks of break it, and columns that know nothing of each other would break it in CHANCE of theirs.
The score is the mean over all of them of the share by which the synthetic rows break them more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, permutations
from typing import Any

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.release.numbers import there
from covey.release.summary import every_so_many, point
from covey.table.attributes import Grid
from covey.table.codec import Codec
from covey.table.fields import Field

HOLDS = 0.01  # of the rows may break a relation that holds: data have errors
CHANCE = 0.05  # of the rows break it where columns know nothing of each other: less would be no relation
ROWS = 10_000  # that are looked at, of each table: shares are then exact to a percentage point
SPOKEN = 50  # rows at least that a relation speaks of
GLANCE = 200  # rows that rule most sums out before all are compared
COLUMNS = 60  # the first ones: all triples of numbers are looked at
FEW = 100  # values of a column that another one may determine
CONDITIONS = 30  # values of a column of which each may imply something
RUNS = 3  # for each value: so often it may change along a number whose intervals determine it
LISTED = 20  # contradictions that a page shows
DAY = 86400.0  # seconds, in which dates are compared with times
Test = Callable[..., tuple[Any, Any]]  # which rows a relation speaks of, and which keep it


@dataclass(frozen=True)
class Column:
    """A column of both tables as numbers, NaN where there is no value: labels by place among all words, dates in seconds."""

    name: str
    kind: str
    step: float
    values: list[Floats]
    words: Callable[[float], str]
    distinct: int


@dataclass(frozen=True)
class Relation:
    """One relation in words, the columns that it is about, and its test."""

    words: str
    columns: tuple[Column, ...]
    test: Test

    def share(self, values: Sequence[Floats]) -> tuple[int, float, Any]:
        """Of how many rows with these values it speaks, which share of them breaks it, and where."""
        spoken, kept = self.test(*values)
        return int(spoken.sum()), float((spoken & ~kept).sum()) / max(int(spoken.sum()), 1), spoken & ~kept

    @property
    def holds(self) -> bool:
        """Whether the true rows keep it, and not by chance."""
        true = [column.values[0] for column in self.columns]
        if len(true) > 2 and self.share([own[:: -(-len(own) // GLANCE)] for own in true])[1] > 10 * HOLDS:
            return False
        count, share, _ = self.share(true)
        strangers = [true[0], *map(np.random.default_rng(0).permutation, true[1:])]
        return count >= SPOKEN and share <= HOLDS and self.share(strangers)[1] >= CHANCE


def contradictions(codec: Codec, cells: tuple[Integers, Integers]) -> dict[str, Any]:
    """The score, the number of relations, and the worst contradictions with shares and a synthetic row of each."""
    listed: list[dict[str, Any]] = []
    for relation in relations(columns_of(codec, cells)):
        (_, true, _), (_, drawn, broken) = (relation.share([c.values[k] for c in relation.columns]) for k in (0, 1))
        at = int(np.argmax(broken))
        row = {c.name: c.words(float(c.values[1][at])) for c in relation.columns} if broken.any() else {}
        listed.append({"relation": relation.words, "true": true, "synthetic": drawn, "example": row})
    listed.sort(key=lambda one: one["true"] - one["synthetic"])
    excess = [max(0.0, one["synthetic"] - one["true"]) for one in listed]
    return {"relations": len(listed), "score": float(np.mean(excess)) if listed else 0.0, "worst": listed[:LISTED]}


def columns_of(codec: Codec, cells: tuple[Integers, Integers]) -> list[Column]:
    """The first columns, of both tables."""
    vocabulary: dict[str, int] = {}
    out = []
    for j, name in enumerate(codec.names[:COLUMNS]):
        field, both = codec.schema[name], [every_so_many(own, ROWS)[:, j] for own in cells]
        if isinstance(codec.attributes[name], Grid):
            moment = field.type in ("date", "datetime")
            step = DAY if field.type == "date" else 10.0**-field.axis.decimals
            values = [np.where(there(own), own * step, np.nan) for own in both]
            kind = "moment" if moment else "number"
            words: Callable[[float], str] = partial(_shown, field, step)
        else:
            places = np.array([float(vocabulary.setdefault(label, len(vocabulary))) for label in field.labels])
            values = [np.where(there(own), places[np.where(there(own), own, 0)], np.nan) for own in both]
            known = dict(zip(places.tolist(), field.labels, strict=True))
            kind, step, words = "label", 1.0, known.__getitem__
        said = lambda v, words=words: "missing" if np.isnan(v) else words(v)  # noqa: E731
        out.append(Column(name, kind, step, values, said, len(np.unique(values[0][~np.isnan(values[0])]))))
    return out


def _shown(field: Field, step: float, value: float) -> str:
    return point(field, round(value / step))


def relations(columns: Sequence[Column]) -> list[Relation]:
    """All that hold in the true rows; of equal columns only the first stands in others, and no family repeats another."""
    copies, found, told = set[str](), list[Relation](), dict[Any, set[frozenset[str]]]()
    for relation in _equal(columns):
        if relation.columns[0].name not in copies and relation.holds:
            found.append(relation)
            copies.add(relation.columns[1].name)
    own = [column for column in columns if column.name not in copies]
    for family, known in (
        (_missing_together, ()),
        (_orders, ()),
        (_sums, ()),
        (_functions, (_orders, _functions)),
        (_implications, (_missing_together, _functions)),
    ):
        told[family] = set()
        for relation in family(own):
            pair = frozenset(column.name for column in relation.columns)
            if not any(pair in told[other] for other in known) and relation.holds:
                found.append(relation)
                told[family].add(pair)
    return found


def _equal(columns: Sequence[Column]) -> Iterator[Relation]:
    for a, b in combinations(columns, 2):
        if a.kind == b.kind:
            yield Relation(f"{a.name} = {b.name}", (a, b), lambda x, y: (~(np.isnan(x) & np.isnan(y)), x == y))


def _missing_together(columns: Sequence[Column]) -> Iterator[Relation]:
    for a, b in combinations(columns, 2):
        words = f"{a.name} and {b.name} are missing together"
        yield Relation(words, (a, b), lambda x, y: (np.isnan(x + y), np.isnan(x) & np.isnan(y)))


def _orders(columns: Sequence[Column]) -> Iterator[Relation]:
    for a, b in permutations(columns, 2):
        if a.kind == b.kind != "label":
            yield Relation(f"{a.name} ≤ {b.name}", (a, b), lambda x, y: (~np.isnan(x + y), x <= y))


def _sums(columns: Sequence[Column]) -> Iterator[Relation]:
    """One number is the sum of two others, or the days between two dates."""
    numbers, moments = ([c for c in columns if c.kind == kind] for kind in ("number", "moment"))
    for c in numbers:
        for a, b in combinations([other for other in numbers if other is not c], 2):
            slack = (a.step + b.step + c.step) / 4
            yield Relation(f"{c.name} = {a.name} + {b.name}", (c, a, b), _adds(1.0, 1.0, slack))
        for a, b in permutations(moments, 2):
            words = f"{c.name} = days from {a.name} to {b.name}"
            yield Relation(words, (c, a, b), _adds(-1 / DAY, 1 / DAY, 1.0))


def _adds(first: float, second: float, slack: float) -> Test:
    return lambda c, a, b: (~np.isnan(a + b + c), np.abs(c - first * a - second * b) <= slack)


def _functions(columns: Sequence[Column]) -> Iterator[Relation]:
    """A value goes with each value, or interval, of another column."""
    for a, b in permutations(columns, 2):
        use = ~np.isnan(a.values[0] + b.values[0])
        if not 2 <= b.distinct <= FEW or not use.any():
            continue
        x, y = a.values[0][use], b.values[0][use]
        if few := a.distinct <= FEW:
            (at, places), (images, targets) = (np.unique(own, return_inverse=True) for own in (x, y))
            counts = np.bincount(places * len(images) + targets, minlength=len(at) * len(images))
            image = images[counts.reshape(len(at), -1).argmax(axis=1)]
        else:
            order = np.argsort(x, kind="stable")
            starts = np.flatnonzero(np.diff(y[order], prepend=np.nan) != 0)
            at, image = x[order][starts], y[order][starts]
        if few or (a.kind != "label" and len(at) <= RUNS * b.distinct):
            yield Relation(f"{a.name} determines {b.name}", (a, b), _maps(at, image, few))


def _maps(at: Floats, image: Floats, few: bool) -> Test:
    """The image of the last place up to a value; of a few places only they count."""

    def test(x: Floats, y: Floats) -> tuple[Any, Any]:
        places = np.maximum(np.searchsorted(at, np.nan_to_num(x), side="right") - 1, 0)
        return ~np.isnan(x + y) & ((at[places] == x) | (not few)), image[places] == y

    return test


def _implications(columns: Sequence[Column]) -> Iterator[Relation]:
    """Where one column has a value, or none, so has another: of each pair of columns that which is broken most."""
    literals: list[tuple[Column, float]] = []
    for column in columns:
        values = np.unique(column.values[0])  # of several NaN one is left
        literals += [(column, v) for v in values.tolist() if column.distinct <= CONDITIONS or np.isnan(v)]
    true, drawn = (np.array([_meets(c.values[k], v) for c, v in literals], dtype=np.float32) for k in (0, 1))
    if not len(literals):
        return
    both, seen = true @ true.T, drawn @ drawn.T
    count, best = np.diag(both), dict[tuple[str, str], tuple[float, Relation]]()
    for i, j in np.argwhere(both >= (1 - HOLDS) * np.maximum(count, SPOKEN)[:, None]).tolist():
        (a, v), (b, w) = literals[i], literals[j]
        excess = 1 - float(seen[i, j] / max(seen[i, i], 1))
        if a is not b and excess > best.get((a.name, b.name), (-1.0,))[0] and count[j] <= (1 - CHANCE) * true.shape[1]:
            words = f"{a.name} is {a.words(v)} → {b.name} is {b.words(w)}"
            test = lambda x, y, v=v, w=w: (_meets(x, v), _meets(y, w))  # noqa: E731
            best[a.name, b.name] = excess, Relation(words, (a, b), test)
    yield from (relation for _, relation in best.values())


def _meets(values: Floats, value: float) -> Any:
    return np.isnan(values) if np.isnan(value) else values == value
