"""Estimates that are functions of means and mean products, by the delta method, and what of them is refused.

The slopes of a function are exact: it is evaluated at a point moved by an imaginary amount too small to change its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import ndtri, stdtrit

from covey.answers.evidence import Evidence
from covey.answers.moments import Moments, Rows
from covey.core.arrays import Array, Floats
from covey.errors import CannotAnswerError
from covey.measure.query import Columns

Function = Callable[[Array, Array], Array]  # of means and of products
Scores = Mapping[int, Floats]  # of units, by attribute

STEP = 1e-30  # imaginary, so that nothing is lost by subtraction
KEPT = 0.85  # part of the variance that bins must keep of two columns together: benchmarks/intervals.py
LOST = 3.0  # a group whose share is smaller than so many deviations of its noise is lost in it


class LostInNoiseError(CannotAnswerError):
    """A group is too small to be told from noise."""


@dataclass(frozen=True)
class Estimate:
    """Several numbers: value, variance of their error with its fourth cumulant, and how far bounds leave them open."""

    value: Floats
    variance: Floats
    fourth: Floats
    below: Floats
    above: Floats
    opened: str = field(default="; wider where bins are cut", kw_only=True)  # what is said of bounds that leave it open
    rms: Floats | None = (
        None  # of the errors of replicates, where the value is an average with the centres' own; else NaN
    )
    replicates: int = 0

    @property
    def sd(self) -> Floats:
        """The standard error; of an average the mean of both."""
        own = np.sqrt(self.variance)
        return own if self.rms is None else np.where(np.isnan(self.rms), own, (own + self.rms) / 2)

    def half(self, confidence: float) -> Floats:
        """The half-width of the interval: a normal quantile, longer where the noise has longer tails (Cornish and Fisher).

        Of an average it is the mean of both half-widths.
        """
        z = float(ndtri((1 + confidence) / 2))
        kurtosis = np.divide(self.fourth, self.variance**2, out=np.zeros_like(self.fourth), where=self.variance > 0)
        own = np.asarray((z + max(z**3 - 3 * z, 0.0) / 24 * kurtosis) * np.sqrt(self.variance))
        if self.rms is None:
            return own
        other = float(stdtrit(self.replicates, (1 + confidence) / 2)) * self.rms
        return np.where(np.isnan(self.rms), own, (own + other) / 2)

    def words(self, made: str = "measured") -> str:
        """How it was made."""
        open_ = bool((self.below + self.above > 0).any())
        averaged = f"; averaged with {self.replicates} replicates, approximate" if self.replicates else ""
        return made + self.opened * open_ + averaged

    def around(self, value: float, confidence: float) -> Estimate:
        """The same interval around another value; it is extended where it does not hold it."""
        half, shift = self.half(confidence), value - self.value
        below, above = np.maximum(self.below + shift, -half), np.maximum(self.above - shift, -half)
        return replace(self, value=self.value + shift, below=below, above=above)


def slopes_of(function: Function, mean: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The function's values, and their slopes in the means and in the upper triangle of the products."""
    k, upper = len(mean), np.triu_indices(len(mean))
    at = np.concatenate([mean, second[upper]]).astype(np.complex128)

    def value(point: Array) -> Array:
        matrix = np.zeros((k, k), dtype=np.complex128)
        matrix[upper] = point[k:]
        matrix.T[upper] = point[k:]
        return np.atleast_1d(function(point[:k], matrix))

    scale = np.maximum(np.abs(at), 1e-3)
    moved = [value(at + 1j * STEP * s * e).imag / (STEP * s) for s, e in zip(scale, np.eye(len(at)), strict=True)]
    return value(at).real, np.array(moved).T


def delta(moments: Moments, function: Function, rows: float | None) -> Estimate:
    """A function of unbiased moments; `rows` is how many the sampling error is divided by, None for none."""
    value, slopes = slopes_of(function, moments.mean, moments.second)
    return with_errors(moments, value, slopes, moments.sampling(slopes) / rows if rows else 0 * value)


def with_errors(moments: Moments, value: Floats, slopes: Floats, sampling: Floats) -> Estimate:
    """A value with the variance of sampling, and with the noise and what is unknown of moments by its slopes in them."""
    noise = moments.noise(slopes)
    below, above, gap = moments.unknown(slopes)
    return Estimate(value, noise.variance + sampling + gap**2, noise.fourth, below, above)


# Functions of moments.


def ratio(top: tuple[int, ...], bottom: tuple[int, ...]) -> Function:
    """One mean or product over another; () is 1."""

    def of(mean: Array, second: Array, places: tuple[int, ...]) -> Array:
        return np.asarray(1.0 if not places else mean[places[0]] if len(places) == 1 else second[places])

    return lambda mean, second: of(mean, second, top) / of(mean, second, bottom)


# Bounds and refusals.


def possible(moments: Moments, half: Floats, there: Floats, base: Estimate, rows: float | None) -> tuple[float, float]:
    """The least and the most that a number's mean can be over a group: that of as many of its smallest, or largest values.

    `base` is the group's share. Feature 0 is the number, `half` is half the width of its units, and `there` is 1 where they are
    meant. The ends are moved outward by LOST standard errors; `rows` are those that the table is a sample of, None for none.
    """
    number, found = moments.features[0], []
    law = moments.shares[number.attribute] * there
    share = min(float(base.value[0] - LOST * np.sqrt(base.variance[0])), float(law.sum()))
    if not share > 0:
        return -np.inf, np.inf
    for turn in (1, -1):
        value = turn * number.scores - half  # the largest values are the smallest of their negatives
        order = np.argsort(value, kind="stable")
        taken = np.clip(share - np.cumsum(law[order]) + law[order], 0.0, law[order])
        last = value[order][np.flatnonzero(taken)[-1]]
        slopes = np.minimum(value - last, 0.0) * there / share
        variance = float(moments.evidence.noise({(number.attribute,): slopes[None]}).variance[0])
        variance += float(law @ slopes**2) / rows if rows else 0.0
        found.append(turn * (float(value[order] @ taken) / share - LOST * np.sqrt(variance)))
    return found[0], found[1]


def require_kept(moments: Moments, numbers: Sequence[int], columns: Sequence[str]) -> None:
    """Refuse numbers of which bins lost too much to be held against another column; columns are named by attribute."""
    for i in numbers:
        if not keeps(moments, i):
            other = min(_others(moments, i), key=lambda k: float(moments.kept[k]))
            names = {k: columns[moments.features[k].attribute] for k in (i, other)}
            worst, better = sorted((i, other), key=lambda k: float(moments.kept[k]))
            raise CannotAnswerError(
                f"the bins in which {names[worst]!r} was measured together with other columns keep {moments.kept[worst]:.0%} "
                f"of its variance, and those of {names[better]!r} {moments.kept[better]:.0%}: together less than the {KEPT:.0%} "
                "that this needs. Ask for shares; a release with more rows, a larger ε, a positive δ or fewer columns has "
                "finer bins."
            )


def keeps(moments: Moments, i: int) -> bool:
    """Whether bins keep enough of a number to hold it against the other columns."""
    others = _others(moments, i)
    return not others or bool(moments.kept[i] * moments.kept[others].min() >= KEPT)


def _others(moments: Moments, i: int) -> list[int]:
    """Features of other columns."""
    return [k for k, f in enumerate(moments.features) if f.attribute != moments.features[i].attribute]


# More than two columns: docs/proofs/intervals.md, "Three columns".

MOST_COLUMNS = (
    "this question is about {count} columns at once, and one and two at a time were measured{more}. Ask about two; in Python "
    "release.interval(function) gives an approximate interval."
)
COARSE = (
    "these three columns were measured together, {name!r} on {count} levels, and the question tells apart values of one level. "
    "Conditions on whole levels can be answered: covey tables lists them."
)


def ratio_of_cells(
    evidence: Evidence, drawn: Rows, sides: tuple[Scores, Scores], rows: float | None, names: Sequence[str]
) -> tuple[Estimate, Estimate]:
    """The share that meets conditions among those that meet others, and the share of these; by the delta method."""
    attributes = tuple(sorted({*sides[0], *sides[1]}))
    chosen = {tuple(sorted(own)): own for own in evidence.found.chosen(len(attributes))}
    columns = chosen.get(attributes, attributes)
    if not evidence.found.holding(columns):
        some = "; ".join(", ".join(repr(names[a]) for a in one) for one in evidence.found.chosen(3))
        more = f", and of three at a time {some}" if some else ""
        raise CannotAnswerError(MOST_COLUMNS.format(count=len(attributes), more=more))
    over, under = (_weights(evidence, columns, scores, names) for scores in sides)
    shares = evidence.table(columns)
    base = float((under * shares).sum())
    value = float((over * shares).sum()) / base
    cells = tuple(to[drawn.codes[:, a]] for a, to in zip(columns, evidence.maps(columns), strict=True))

    def estimate(number: float, slopes: Floats, sampled: float | None) -> Estimate:
        noise, none = evidence.noise({columns: slopes[None]}), np.zeros(1)
        variance = noise.variance + (float(slopes[cells].var()) / sampled if sampled else 0.0)
        return Estimate(np.array([number]), variance, noise.fourth, none, none)

    return estimate(value, (over - value * under) / base, rows), estimate(base, under, None)


def _weights(evidence: Evidence, columns: Columns, scores: Scores, names: Sequence[str]) -> Floats:
    """The product of conditions as weights of a table's cells; refused where a condition cuts a level."""
    out = np.ones((1,) * len(columns))
    for axis, (a, levels) in enumerate(zip(columns, evidence.maps(columns), strict=True)):
        own = np.bincount(levels, scores.get(a, np.ones(len(levels)))) / np.bincount(levels)
        if a in scores and not np.allclose(own[levels], scores[a], rtol=0, atol=1e-9):
            raise CannotAnswerError(COARSE.format(name=names[a], count=len(own)))
        out = out * np.expand_dims(own, [k for k in range(len(columns)) if k != axis])
    return out
