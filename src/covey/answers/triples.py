"""Shares of three columns at once, where a release measured their table: docs/proofs/intervals.md, "Three columns"."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from covey.answers.estimates import Estimate
from covey.core.arrays import Floats
from covey.errors import CannotAnswerError
from covey.measure.query import Columns

if TYPE_CHECKING:
    from covey.answers.release import Release

Scores = Mapping[int, Floats]  # of units, by attribute
MOST_COLUMNS = (
    "this question is about {count} columns at once, and one and two at a time were measured{more}. Ask about two; in Python "
    "release.interval(function) gives an approximate interval."
)
COARSE = (
    "these three columns were measured together, {name!r} on {count} levels, and the question tells apart values of one level. "
    "Conditions on whole levels can be answered: covey tables lists them."
)


def weights(release: Release, columns: Columns, scores: Scores) -> Floats:
    """The product of conditions as weights of a table's cells; refused where a condition cuts a level."""
    out = np.ones((1,) * len(columns))
    for axis, (a, levels) in enumerate(zip(columns, release.evidence.maps(columns), strict=True)):
        own = np.bincount(levels, scores.get(a, np.ones(len(levels)))) / np.bincount(levels)
        if a in scores and not np.allclose(own[levels], scores[a], rtol=0, atol=1e-9):
            raise CannotAnswerError(COARSE.format(name=release.columns.names[a], count=len(own)))
        out = out * np.expand_dims(own, [k for k in range(len(columns)) if k != axis])
    return out


def share_of_three(
    release: Release, attributes: Columns, conditions: tuple[Scores, Scores], rows: float | None
) -> tuple[Estimate, Estimate]:
    """The share that meets conditions among those that meet others, and the share of these; by the delta method."""
    evidence = release.evidence
    chosen = {tuple(sorted(own)): own for own in evidence.found.chosen(len(attributes))}
    columns = chosen.get(attributes, attributes)
    if not evidence.found.holding(columns):
        names = release.columns.names
        some = "; ".join(", ".join(repr(names[a]) for a in one) for one in evidence.found.chosen(3))
        more = f", and of three at a time {some}" if some else ""
        raise CannotAnswerError(MOST_COLUMNS.format(count=len(attributes), more=more))
    over, under = (weights(release, columns, scores) for scores in conditions)
    shares = evidence.table(columns)
    base = float((under * shares).sum())
    value = float((over * shares).sum()) / base
    cells = tuple(to[release.drawn.codes[:, a]] for a, to in zip(columns, evidence.maps(columns), strict=True))

    def estimate(number: float, slopes: Floats, sampled: float | None) -> Estimate:
        noise, none = evidence.noise({columns: slopes[None]}), np.zeros(1)
        variance = noise.variance + (float(slopes[cells].var()) / sampled if sampled else 0.0)
        return Estimate(np.array([number]), variance, noise.fourth, none, none)

    return estimate(value, (over - value * under) / base, rows), estimate(base, under, None)
