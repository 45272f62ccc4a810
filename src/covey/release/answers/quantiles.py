"""Quantiles of a number, to the bins it was measured in: the bins at which the share of smaller values passes a level."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from covey.engine.arrays import Integers
from covey.errors import ParameterError
from covey.release.answers.answer import Answer, Wanted
from covey.release.answers.columns import Conditions, said, together

if TYPE_CHECKING:
    from covey.release.answers.release import Release

Z95 = 1.96  # of a normal law: half a 95% interval in deviations


def quantile(release: Release, column: str, q: float, where: Conditions, wish: Wanted) -> Answer:
    """The middle of the bin that holds a quantile; the interval ends at edges of bins."""
    columns = release.columns
    scores, half = columns.number(column)
    there, place = columns.there(column), columns.place(column)
    chosen = columns.conditions(where)
    meant = there * chosen.pop(place, 1.0)
    order = [np.array([k]) for k in np.flatnonzero(meant)]
    if release.weights(wish):
        bins = release.evidence.bins(place)  # which are whole beside the number of events
        order = [members for k in range(bins.max() + 1) if meant[members := np.flatnonzero(bins == k)].any()]
    if not order:
        raise ParameterError(f"no value of {column!r} meets the condition.")
    order.sort(key=lambda members: float(scores[members[0]]))  # the first word of a flag may be its 1

    @cache  # the three searches meet in most places
    def ends(k: int) -> tuple[float, float, float]:
        """The share at or below the k-th bin, at most, as estimated, and at least."""
        upto, at = np.zeros(len(scores)), np.concatenate(order[: k + 1])
        upto[at] = meant[at]
        found = release.ratio_of({place: upto, **chosen}, {place: meant, **chosen}, wish)
        half_width, value = float(found.half(wish.confidence)[0]), float(found.value[0])
        return value + float(found.above[0]) + half_width, value, value - float(found.below[0]) - half_width

    def reached(end: int) -> Integers:
        """The first bin at which an end reaches q, or the last one."""
        return order[bisect_left(range(len(order) - 1), True, key=lambda k: ends(k)[end] >= q)]

    low, value, high = map(reached, range(3))
    middle = scores[value[0]] if len(value) == 1 else ((scores - half)[value[0]] + (scores + half)[value[-1]]) / 2
    shown = float(middle), float((scores - half)[low[0]]), float((scores + half)[high[-1]])
    question = f"quantile {q:g} {column}" + (f" where {said(where)}" if where else "")
    se = float((shown[2] - shown[1]) / 2 / Z95)
    at_ends = np.zeros(len(scores))  # inside the limits it does not move with what lies beyond them
    at_ends[np.concatenate([low, value, high])] = 1.0
    note = together(columns.notes(column, at_ends), columns.notes_of(where, but=column))
    answer = Answer(question, *shown, se, wish.confidence, wish.about, "measured, to bins", note)
    return release.of_persons(answer, (place, *chosen), wish.per)
