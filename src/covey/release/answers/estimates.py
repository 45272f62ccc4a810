"""Means and mean products of features, each a function of one attribute, from evidence; and what remains unknown of them.

Where a feature is not constant inside a bin of the pair tables, its products are not measured. For a condition (scores 0 and 1)
the share in each cut cell lies between Fréchet's bounds, which are kept. For a number the product lies between what the
centres say of the inside of bins and what a straight line says; the midpoint is taken, half the gap counts as a standard
deviation, and so does a correlation of ½ inside the bins of two numbers. docs/proofs/intervals.md.

Estimates are functions of these moments, by the delta method. The slopes of a function are exact: it is evaluated at a point
moved by an imaginary amount too small to change its value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from scipy.special import ndtri

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.query import Columns
from covey.errors import CannotAnswerError
from covey.release.answers.evidence import Evidence, Noise

Function = Callable[[Array, Array], Array]  # of means and of products
Scores = Mapping[int, Floats]  # of units, by attribute

STEP = 1e-30  # imaginary, so that nothing is lost by subtraction
KEPT = 0.85  # part of the variance that bins must keep of two columns together: benchmarks/intervals.py
LOST = 3.0  # a group whose share is smaller than so many deviations of its noise is lost in it
TINY = 1e-12  # shares below it count as none
CLEAR = 5.0  # deviations of its noise beyond which a bin's own counts say how it splits: an error of a fifth at most
HIDDEN = 0.5  # deviation of the correlation of two numbers inside bins, of unknown sign: hump-shaped ones reach it
LEANING = 0.05  # the same of a number inside its bins with another column as a whole, beyond what chance does: fuzz/answers.py


class LostInNoiseError(CannotAnswerError):
    """A group is too small to be told from noise."""


@dataclass(frozen=True)
class Feature:
    """A function of one attribute: a score for each category. `within` is the variance of what it stands for inside each.

    A condition's scores are the part of each category that meets it: 0 or 1, or between where it cuts a category. A number that
    is `bounded` may lie anywhere inside its bins together with a condition: only what is certain is said of their product.
    """

    attribute: int
    scores: Floats
    within: Floats | None = None
    condition: bool = False
    bounded: bool = False

    @property
    def open(self) -> tuple[Floats, Floats]:
        """How much less, and how much more, of each category that a condition cuts may meet it."""
        cut = self.condition & (self.scores > 0) & (self.scores < 1)
        return np.where(cut, self.scores, 0.0), np.where(cut, 1 - self.scores, 0.0)


@dataclass(frozen=True)
class Rows:
    """Rows of category codes drawn from the centres: what sampling adds, and what lies inside bins, is read off them.

    A code of -1 is of a row that has no value at all, as a person without events has none of theirs: every feature of it is 0.
    """

    codes: Integers

    def columns(self, features: Sequence[Feature]) -> Floats:
        """The features' values."""
        return np.stack([self.scored(f.attribute, f.scores) for f in features], axis=1)

    def scored(self, attribute: int, scores: Floats) -> Floats:
        """Scores of one attribute's categories, row by row."""
        codes = self.codes[:, attribute]
        return np.where(codes < 0, 0.0, scores[codes])

    def ratio(self, top: Mapping[int, Floats], bottom: Mapping[int, Floats]) -> tuple[float, float]:
        """The mean product of scores, by attribute, over that of others, and its standard error; NaN where no row has any."""
        x, y = (np.prod([s[self.codes[:, a]] for a, s in side.items()], axis=0) for side in (top, bottom))
        base = np.mean(y)
        if not base > 0:
            return np.nan, np.nan
        value = np.mean(x) / base
        return float(value), float(np.std(x - value * y) / base / np.sqrt(len(self.codes)))


@dataclass(frozen=True)
class Moments:
    """Unbiased means μ and products S of features, with one-sided slack for what Fréchet bounds and a gap for what bins hide.

    `shares` are the centres' one-way tables, by attribute: they say how a bin splits into categories.
    """

    evidence: Evidence
    features: tuple[Feature, ...]
    rows: Rows
    shares: list[Floats] = field(repr=False)

    @cached_property
    def mean(self) -> Floats:
        """μ."""
        return np.array([f.scores @ self.evidence.one_way(f.attribute) for f in self.features])

    @cached_property
    def scores(self) -> list[Floats]:
        """Each feature's mean score in every bin."""
        out = []
        for f in self.features:
            bins, share = self.evidence.bins(f.attribute), self._split(f.attribute)
            score = np.bincount(bins, share * f.scores) / np.bincount(bins, share)
            out.append(np.clip(score, 0.0, 1.0) if f.condition else score)
        return out

    def _end(self, i: int, side: int) -> Floats:
        """The least, or the most, of every bin that may meet a condition, which may cut categories."""
        f = self.features[i]
        bins, share = self.evidence.bins(f.attribute), np.maximum(self._split(f.attribute), 0.0) + TINY
        moved = f.scores - f.open[0] if side == 0 else f.scores + f.open[1]
        return np.clip(np.bincount(bins, share * moved) / np.bincount(bins, share), 0.0, 1.0)

    def _left_open(self, i: int, other: Floats) -> tuple[float, float]:
        """How much less and more a product with a condition may be because it cuts categories; the other's scores are given."""
        f, ends = self.features[i], (max(0.0, float(other.max())), max(0.0, -float(other.min())))
        less, more = (float(part @ np.maximum(self.evidence.one_way(f.attribute), 0.0)) for part in f.open)
        return less * ends[0] + more * ends[1], more * ends[0] + less * ends[1]

    def _split(self, a: int) -> Floats:
        """Shares that say how bins split: as measured where a bin stands well out of its noise, the centres' elsewhere."""
        bins, own, centres = self.evidence.bins(a), self.evidence.one_way(a), self.shares[a] + TINY
        clear = np.bincount(bins, own) > CLEAR * self.evidence.margins[a].bin_deviations
        return np.where(clear[bins], own, centres)

    def constant(self, i: int) -> bool:
        """Whether a feature is constant inside every bin."""
        f = self.features[i]
        same = np.allclose(self.scores[i][self.evidence.bins(f.attribute)], f.scores, atol=1e-9)
        return bool(same) and not any(part.any() for part in f.open)

    @cached_property
    def kept(self) -> Floats:
        """The part of each feature's variance that lies between bins."""
        found = []
        for i, f in enumerate(self.features):
            share = self._law(f.attribute)
            spread = share @ (f.scores - share @ f.scores) ** 2 + (0.0 if f.within is None else share @ f.within)
            between = self.scores[i][self.evidence.bins(f.attribute)]
            part = float(share @ (between - share @ between) ** 2)
            whole = part >= spread or (self.constant(i) and f.within is None)
            found.append(1.0 if whole else part / float(spread))
        return np.array(found)

    def _law(self, attribute: int) -> Floats:
        """The law of an attribute among those who have it."""
        share = self.shares[attribute]
        return np.asarray(share / max(float(share.sum()), TINY))

    @cached_property
    def _products(self) -> tuple[Floats, Floats, Floats, Floats]:
        """S, how far below and above it the truth may lie by Fréchet's bounds, and the gap."""
        k = len(self.features)
        S, below, above, gap = np.zeros((4, k, k))
        for i in range(k):
            for j in range(i, k):
                found = self._product(i, j)
                for matrix, value in zip((S, below, above, gap), found, strict=True):
                    matrix[i, j] = matrix[j, i] = value
        return S, below, above, gap

    def _product(self, i: int, j: int) -> tuple[float, float, float, float]:
        f, h = self.features[i], self.features[j]
        if f.attribute == h.attribute:
            share = self.evidence.one_way(f.attribute)
            inside = 0.0 if f.within is None or i != j else float(self.shares[f.attribute] @ f.within)
            loose = [np.maximum(share, 0) @ (f.open[side] * h.scores + f.scores * h.open[side]) for side in (0, 1)]
            return float((f.scores * h.scores) @ share) + inside, float(loose[0]), float(loose[1]), inside
        table = self.evidence.table((f.attribute, h.attribute))
        s, t = self.scores[i], self.scores[j]
        product = float(s @ table @ t)
        if self.constant(i) and self.constant(j):
            return product, 0.0, 0.0, 0.0
        if f.condition and h.condition:
            low, high = (_frechet(table, self._end(i, side), self._end(j, side))[side] for side in (0, 1))
            product = min(max(product, low), high)
            return product, product - low, high - product, 0.0
        if (f.bounded or h.bounded) and not (f.condition or h.condition):
            low, high = self.product_between(i, j)
            guess = product + (self._line(i, j, product, table) + self._inside(f, h, s, t)) / 2
            guess = min(max(guess, low), high)
            return guess, guess - low, high - guess, 0.0
        if f.bounded or h.bounded:
            own, other, held = (i, t, table) if f.bounded else (j, s, table.T)
            least, most, middle = self._extremes(own, held, other)
            return product, max(0.0, middle - least), max(0.0, most - middle), 0.0
        line = self._line(i, j, product, table)
        centres = self._inside(f, h, s, t)
        below, above = self._left_open(i, h.scores) if f.condition else self._left_open(j, f.scores)
        return product + (line + centres) / 2, below, above, (line - centres) / 2

    def _line(self, i: int, j: int, product: float, table: Floats) -> float:
        """What a straight line says of the inside of bins, by what lies between them."""
        s, t = self.scores[i], self.scores[j]
        between = product - float((table.sum(axis=1) @ s) * (table.sum(axis=0) @ t)) / max(float(table.sum()), TINY)
        kept = self.kept[i] * self.kept[j]  # nothing where a column has a single bin: nothing lies between bins
        return between * (1 / kept - 1) if kept > 0 else 0.0

    def _extremes(self, i: int, table: Floats, other: Floats) -> tuple[float, float, float]:
        """The least and the most that a number can add up to over rows that meet a condition, and what it does by its bins.

        Of bins that the condition cuts, none or all may meet it. No share is negative in truth; taking those for 0 that noise
        makes so raises all three alike.
        """
        f, found = self.features[i], []
        bins, share = self.evidence.bins(f.attribute), np.maximum(self._split(f.attribute), 0.0)
        for sign, part in ((1, np.floor(other + 1e-9)), (-1, np.ceil(other - 1e-9))):
            end = 0.0
            for b, wanted in enumerate(np.maximum(table @ part, 0.0)):
                own = np.flatnonzero(bins == b)
                own = own[np.argsort(sign * f.scores[own], kind="stable")]
                room = share[own] * max(1.0, wanted / max(share[own].sum(), TINY))
                end += float(f.scores[own] @ np.clip(wanted - np.cumsum(room) + room, 0.0, room))
            found.append(end)
        return found[0], found[1], float(self.scores[i] @ np.maximum(table @ other, 0.0))

    def product_between(self, i: int, j: int) -> tuple[float, float]:
        """Bounds on the mean product of two numbers, whatever they share inside their bins (Cauchy, Schwarz).

        With a = ā + α, ā the mean of its bin: E[α b̄] is at most the sum, over the bins of a, of share · sd(α) · sd(b̄).
        """
        table = np.maximum(self.evidence.table((self.features[i].attribute, self.features[j].attribute)), 0.0)
        s, t = self.scores[i], self.scores[j]
        inside = [self._spread_inside(k) for k in (i, j)]
        sides = [_shared(table, inside[0], t), _shared(table.T, inside[1], s)]
        both = float(np.sqrt((table.sum(axis=1) @ inside[0]) * (table.sum(axis=0) @ inside[1])))
        middle, most = float(s @ table @ t), sum(sides) + both
        return middle - most, middle + most

    def _spread_inside(self, i: int) -> Floats:
        """The variance of a number inside each bin."""
        f = self.features[i]
        bins, share = self.evidence.bins(f.attribute), np.maximum(self._split(f.attribute), 0.0) + TINY
        within = 0.0 if f.within is None else f.within
        square = (f.scores - self.scores[i][bins]) ** 2 + within
        return np.asarray(np.bincount(bins, share * square) / np.bincount(bins, share))

    def _inside(self, f: Feature, h: Feature, s: Floats, t: Floats) -> float:
        """What rows of the centres have inside bins: their covariance minus that of the bins' mean scores."""
        inside = [self.rows.scored(own.attribute, own.scores) for own in (f, h)]
        binned = [self.rows.scored(x.attribute, y[self.evidence.bins(x.attribute)]) for x, y in ((f, s), (h, t))]
        (x, y), (u, v) = ([column - column.mean() for column in both] for both in (inside, binned))
        return float(np.mean(x * y - u * v))

    @property
    def second(self) -> Floats:
        """S."""
        return self._products[0]

    def unknown(self, slopes: Floats) -> tuple[Floats, Floats, Floats]:
        """How far below and above the truth may lie by Fréchet's bounds, and a standard deviation for the gaps, by slopes."""
        _, below, above, gap = (matrix[np.triu_indices(len(self.features))] for matrix in self._products)
        shares = [np.maximum(self.evidence.one_way(f.attribute), 0) for f in self.features]
        less, more = (
            np.array([f.open[side] @ share for f, share in zip(self.features, shares, strict=True)]) for side in (0, 1)
        )
        below, above = np.concatenate([less, below]), np.concatenate([more, above])
        up, down = np.maximum(slopes, 0), np.maximum(-slopes, 0)
        own = slopes[:, len(self.features) :]
        # What numbers share inside their bins no table tells: of unknown sign, pair by pair.
        laws = [self._law(f.attribute) for f in self.features]
        spread = np.array([law @ (f.scores - law @ f.scores) ** 2 for law, f in zip(laws, self.features, strict=True)])
        inside = (1 - self.kept) * spread
        leaning = (LEANING**2 + 1 / self.evidence.found.n) * np.outer(inside, spread)
        apart = np.array([[_judged(f, h) for h in self.features] for f in self.features])
        hidden = (HIDDEN**2 * np.outer(inside, inside) + leaning + leaning.T) * apart
        variance = (own @ gap) ** 2 + own**2 @ hidden[np.triu_indices(len(self.features))]
        return up @ below + down @ above, up @ above + down @ below, np.sqrt(variance)

    def noise(self, slopes: Floats) -> Noise:
        """The noise on combinations of means and products (upper triangle), by their slopes."""
        k = len(self.features)
        sums: dict[tuple[int, ...], Any] = {}

        def add(value: Floats, *attributes: int) -> None:
            sums[attributes] = sums.get(attributes, 0) + value

        for i, f in enumerate(self.features):
            add(slopes[:, [i]] * f.scores, f.attribute)
        upper = zip(*(places.tolist() for places in np.triu_indices(k)), strict=True)
        for column, (i, j) in zip(slopes[:, k:].T[:, :, None], upper, strict=True):
            f, h = self.features[i], self.features[j]
            if not column.any():
                continue
            if f.attribute == h.attribute:
                add(column * (f.scores * h.scores), f.attribute)
                continue
            add(column[:, :, None] * np.multiply.outer(self.scores[i], self.scores[j]), f.attribute, h.attribute)
            add(column * self._splitting(i, j), f.attribute)
            add(column * self._splitting(j, i), h.attribute)
        return self.evidence.noise(sums)

    def _splitting(self, i: int, j: int) -> Floats:
        """How a product moves with one-way shares through the mean scores of bins: (s_i − t_bin)·E[other | bin]."""
        own, score, other = self.features[i], self.scores[i], self.scores[j]
        bins = self.evidence.bins(own.attribute)
        table = self.evidence.table((own.attribute, self.features[j].attribute))
        share = np.maximum(np.bincount(bins, self.shares[own.attribute]), TINY)
        given = np.clip((table @ other) / share, other.min(), other.max())
        return np.asarray((own.scores - score[bins]) * given[bins])

    def sampling(self, slopes: Floats) -> Floats:
        """The variance, over rows, of what one row adds to each combination."""
        return np.asarray((with_products(self.rows.columns(self.features)) @ slopes.T).var(axis=0))


def _judged(one: Feature, other: Feature) -> bool:
    """Whether what two features share inside bins is a judgement, and no bound."""
    bounded = one.bounded or other.bounded or (one.condition and other.condition)
    return one.attribute != other.attribute and not bounded


def _shared(table: Floats, variance: Floats, other: Floats) -> float:
    """The most that deviations inside rows, of these variances, can share with what the columns say."""
    share = np.maximum(table.sum(axis=1), TINY)
    mean = table @ other / share
    spread = np.maximum(table @ other**2 / share - mean**2, 0.0)
    return float(share @ np.sqrt(variance * spread))


def _frechet(table: Floats, s: Floats, t: Floats) -> tuple[float, float]:
    """Bounds on the share that meets two conditions, which cut some bins: s and t are the parts of each bin that meet them.

    Bins that meet a condition wholly count as one. In a cell of share P, with row r and column c, what meets both is at least
    P − (1 − s)r − (1 − t)c and at most min(P, s·r, t·c).
    """
    sides = []
    for part in (s, t):  # all bins that meet a condition wholly, and then each that it cuts
        cut = np.flatnonzero((part > TINY) & (part < 1 - 1e-9))
        sides.append([own for own in (np.flatnonzero(part >= 1 - 1e-9), *cut[:, None]) if len(own)])
    low = high = 0.0
    for mine, theirs in product(*sides):
        P = max(float(table[np.ix_(mine, theirs)].sum()), 0.0)
        r, c = max(float(table[mine].sum()), 0.0), max(float(table[:, theirs].sum()), 0.0)
        x, y = float(s[mine[0]]), float(t[theirs[0]])
        most = min(P, x * r, y * c)
        low += min(max(0.0, P - (1 - x) * r - (1 - y) * c), most)
        high += most
    return low, high


def with_products(columns: Floats) -> Floats:
    """Features and their products, each pair once."""
    i, j = np.triu_indices(columns.shape[1])
    return np.hstack([columns, columns[:, i] * columns[:, j]])


# Estimates.


@dataclass(frozen=True)
class Estimate:
    """Several numbers: value, variance of their error with its fourth cumulant, and how far bounds leave them open."""

    value: Floats
    variance: Floats
    fourth: Floats
    below: Floats
    above: Floats
    # What is said of bounds that leave it open.
    opened: str = field(default="; wider because values were measured in bins", kw_only=True)

    @property
    def sd(self) -> Floats:
        """The standard error."""
        return np.sqrt(self.variance)

    def half(self, confidence: float) -> Floats:
        """The half-width of the interval: a normal quantile, longer where the noise has longer tails (Cornish and Fisher)."""
        z = float(ndtri((1 + confidence) / 2))
        kurtosis = np.divide(self.fourth, self.variance**2, out=np.zeros_like(self.fourth), where=self.variance > 0)
        return np.asarray((z + max(z**3 - 3 * z, 0.0) / 24 * kurtosis) * np.sqrt(self.variance))

    def words(self, made: str = "measured") -> str:
        """How it was made."""
        open_ = bool((self.below + self.above > 0).any())
        return made + self.opened * open_

    def times(self, factor: float) -> Estimate:
        """The same in another unit, of which one is so many."""
        scaled = {name: factor * getattr(self, name) for name in ("value", "below", "above")}
        return replace(self, **scaled, variance=factor**2 * self.variance, fourth=factor**4 * self.fourth)

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
    "these columns were measured together, {name!r} on {count} levels, and the question tells apart values of one level. "
    "Conditions on whole levels can be answered: covey tables lists them."
)


def ratio_of_cells(
    evidence: Evidence, sides: tuple[Scores, Scores], rows: float | None, names: Sequence[str]
) -> tuple[Estimate, Estimate]:
    """The share that meets conditions among those that meet others, and the share of these."""
    attributes = tuple(sorted({*sides[0], *sides[1]}))
    chosen = {tuple(sorted(own)): own for own in evidence.found.chosen(len(attributes))}
    columns = chosen.get(attributes, attributes)
    if not evidence.found.holding(columns):
        told = [own for d in (3, 4, 5) for own in evidence.found.chosen(d) if max(own) < len(names)]
        some = "; ".join(", ".join(repr(names[a]) for a in one) for one in told)
        more = f", and of more at a time {some}" if some else ""
        raise CannotAnswerError(MOST_COLUMNS.format(count=len(attributes), more=more))
    over, under = (_weights(evidence, columns, scores, names) for scores in sides)
    return of_table(evidence, columns, over, under, rows), of_table(evidence, columns, under, None, None)


def of_table(evidence: Evidence, columns: Columns, over: Floats, under: Floats | None, rows: float | None) -> Estimate:
    """The sum of a table's cells by some weights, over that by others or over 1, by the delta method.

    What sampling adds follows from the table itself: a person adds the mean of their events' weights, whose square is at most the
    mean of the squares (Jensen).
    """
    shares, none = evidence.table(columns), np.zeros(1)
    base = 1.0 if under is None else float((under * shares).sum())
    value = float((over * shares).sum()) / base
    slopes = np.broadcast_to((over - value * (0.0 if under is None else under)) / base, shares.shape)
    noise = evidence.noise({columns: slopes[None]})
    spread = float((slopes**2 * np.maximum(shares, 0)).sum()) / rows if rows else 0.0
    return Estimate(np.array([value]), noise.variance + spread, noise.fourth, none, none)


def mean_wait(evidence: Evidence, j: int, units: tuple[Floats, Floats], rows: float | None) -> Estimate:
    """The mean time from an event to the next, by times in bins of units from starts to ends: inside only bounds are known."""
    steps, bins = replace(evidence, of=("step",)), evidence.bins(j)
    if not steps.holds((j, j)):
        raise CannotAnswerError("steps from one event to the next were not measured: the package names no order.")
    first, last = (np.searchsorted(bins, np.arange(bins.max() + 1), side=side) for side in ("left", "right"))
    starts, ends = units[0][first], units[1][last - 1]
    middle, same = (starts + ends) / 2, np.eye(len(starts), dtype=bool)
    # The next event is never earlier.
    value = np.triu(np.where(same, (ends - starts)[:, None] / 3, middle[None] - middle[:, None]))
    low, high = (np.triu(np.maximum(gap, 0.0)) for gap in (starts[None] - ends[:, None], ends[None] - starts[:, None]))
    upper = np.triu(np.ones_like(value))
    base = of_table(steps, (j, j), upper, None, None)
    if base.value[0] <= LOST * base.sd[0]:
        raise LostInNoiseError("too few persons have a next event: they are lost in the noise.")
    found, least, most = (of_table(steps, (j, j), own, upper, rows) for own in (value, low, high))
    below, above = np.maximum(0.0, found.value - least.value), np.maximum(0.0, most.value - found.value)
    return replace(found, below=below, above=above, opened="")


def _weights(evidence: Evidence, columns: Columns, scores: Scores, names: Sequence[str]) -> Floats:
    """The product of conditions as weights of a table's cells; refused where a condition cuts a level."""
    out = np.ones((1,) * len(columns))
    for axis, (a, levels) in enumerate(zip(columns, evidence.maps(columns), strict=True)):
        own = np.bincount(levels, scores.get(a, np.ones(len(levels)))) / np.bincount(levels)
        if a in scores and not np.allclose(own[levels], scores[a], rtol=0, atol=1e-9):
            raise CannotAnswerError(COARSE.format(name=names[a], count=len(own)))
        out = out * np.expand_dims(own, [k for k in range(len(columns)) if k != axis])
    return out
