"""Which formulas say more than a simpler one would: public, from rows that are drawn column by column from noisy shares.

Within a day a date lies as many days after another one as there are former offences, if nearly everybody has none. So it does if
the number of offences is somebody else's: the formula says nothing of it, and a simpler one says the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.relations.formulas import HALF, Candidate, Column, Formula

LEAST_SAID = 0.1  # of the rows: with another row's value of a source the formula must be broken in so many
# Of the rows: in so many a column must differ from the row before, and a formula from its source, to be news.
LEAST_CHANGED = 0.25
# The same where the formula leaves room: what is narrow is measured better by itself than by how far it is off.
LEAST_APART = 0.75
GIVEN = ("order", "close")  # there is nothing simpler
AS_IT_STANDS = -1  # in place of a formula with one source: the source itself
Shift = tuple[Formula, tuple[int, ...], float, float, int]  # what a formula gives with one source replaced


def says_more(columns: Sequence[Column], candidates: Sequence[Candidate], codes: Integers) -> Array:
    """Of each candidate, whether its column varies, all its sources matter, and so does what it does with them.

    `codes` are rows in which columns are independent of each other.
    """
    needed = {j for candidate in candidates for j in (candidate.target, *candidate.sources)}
    values = {j: columns[j].values(codes[:, j]) for j in needed}
    apart = {j: np.abs(own - np.roll(own, 1)) for j, own in values.items()}
    varies = {(j, share): _quantile(own, share) for j, own in apart.items() for share in (LEAST_CHANGED, LEAST_APART)}
    seen: dict[Shift, float] = {}

    def is_news(candidate: Candidate) -> bool:
        exact = candidate.slack <= HALF * columns[candidate.target].step
        varied = varies[candidate.target, LEAST_CHANGED if exact else LEAST_APART] > candidate.slack
        return candidate.name in GIVEN or (varied and _needs_all(candidate, values, seen))

    return np.array(list(map(is_news, candidates)), dtype=bool)


def _needs_all(candidate: Candidate, values: dict[int, Floats], seen: dict[Shift, float]) -> bool:
    """Whether the formula gives something else if one of its sources is another row's, and than its source as it stands."""
    first = AS_IT_STANDS if len(candidate.sources) == 1 and candidate.name != "equal" else 0
    places = range(first, len(candidate.sources))
    return all(_shift(candidate, values, place, seen) > candidate.slack for place in places)


def _shift(candidate: Candidate, values: dict[int, Floats], place: int, seen: dict[Shift, float]) -> float:
    """How far the formula is off, beyond its relative slack, in many rows if a source is another row's."""
    key = candidate.formula, candidate.sources, candidate.k, candidate.relative, place
    if key not in seen:
        seen[key] = _shifted(candidate, [values[j] for j in candidate.sources], place)
    return seen[key]


def _shifted(candidate: Candidate, sources: list[Floats], place: int) -> float:
    with np.errstate(all="ignore"):
        right = candidate.formula.value(candidate.k, *sources)
        others = [np.roll(own, 1) if j == place else own for j, own in enumerate(sources)]
        wrong = sources[0] if place == AS_IT_STANDS else candidate.formula.value(candidate.k, *others)
        apart = np.abs(wrong - right) - candidate.relative * np.abs(right)
    return _quantile(apart, LEAST_CHANGED if place == AS_IT_STANDS else LEAST_SAID)


def _quantile(apart: Floats, share: float) -> float:
    """What so many of the rows that have a value are beyond."""
    there = apart[np.isfinite(apart)]
    return float(np.quantile(there, 1 - share)) if len(there) else -np.inf
