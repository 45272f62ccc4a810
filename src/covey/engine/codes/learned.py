"""Domains that nobody has declared: public grids, counts on them, and limits read off noisy counts.

The grids are the same for every table. What a record adds to the counts depends on that record alone, so a replaced record moves
the counts of a column by 2 in l1 and by the root of 2 in l2 (docs/proofs/learned.md).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri_exp

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.noise.law import NoiseLaw

LARGEST = 15  # the outermost edges are ±10^15: whole numbers up to there are exact as floats
SMALLEST = -15  # of numbers with decimals
FALSE_ALARM = 0.01  # the chance that columns without any record show a limit
WINDOWS = (1, 2, 4, 8, 16)  # bins in a row that are kept together where none of them stands out alone
SMALL = 12  # whole numbers up to here have bins of their own: scores, grades, months
BESIDE = 2.5  # standard deviations by which bins beside kept ones must stand out: a false one only widens the limits
HIDDEN = 2.0  # standard deviations of rows that may hide in a bin that does not stand out
BESIDE_BINS, BESIDE_WIDE = 32, 4  # bins beside kept ones that are looked at, and of wide ones among them
LITTLE = 0.01  # of the rows: where no more can hide in a bin, limits need no margin
LARGE = 1e18  # more than any count
TENTH, MOST_MARGIN = 0.1, 8  # of the mass: as many bins as it takes from the end, so many go beyond, up to eight

Edges = tuple[Fraction, ...]
Mask = NDArray[np.bool_]


@cache
def number_edges(decimals: int | None) -> Edges:
    """…, −20, −10, …, −1, 0, 1, …, 10, 20, 50, 100, …: edges a person would write, up to ±10^15.

    Numbers with decimals have 1, 2 and 5 of each power of ten from one step of the precision on, which may be unknown. Whole
    numbers up to twelve have bins of their own: they often are codes. Bin b is edge b up to edge b + 1, without it.
    """
    first = SMALLEST if decimals is None else -decimals
    last = LARGEST if decimals is None else LARGEST - decimals
    positive = [Fraction(digit) * Fraction(10) ** power for power in range(first, last) for digit in (1, 2, 5)]
    if decimals == 0:
        positive = sorted({*positive, *map(Fraction, range(1, SMALL + 2))})
    positive.append(Fraction(10) ** last)
    return (*(-edge for edge in reversed(positive)), Fraction(0), *positive)


@cache
def year_edges() -> tuple[int, ...]:
    """First years of the bins of dates: single ones from 1900 to 2100, longer spans around them, up to the year 10000."""
    return (1, 1000, 1500, 1600, 1700, 1750, 1800, 1850, *range(1900, 2101), 2150, 2200, 2500, 10_000)


@dataclass(frozen=True)
class Noise:
    """On the counts of learned columns: its deviation, from which count on windows of bins are kept, and among how many rows."""

    sd: float
    least: Floats
    n: int


@dataclass(frozen=True)
class Coded:
    """A batch of records on the public grids: a bin for each number, a place in a list of words for each text, −1 for neither."""

    codes: Integers  # a row per record and a column per learned field; from `bins` of the field on, places in its words
    words: tuple[tuple[str, ...], ...]  # the different words of each field in this batch

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, chosen: Array) -> Coded:
        return Coded(self.codes[chosen], self.words)

    @property
    def nbytes(self) -> int:
        """How much memory the codes take."""
        return self.codes.nbytes


@dataclass(frozen=True)
class Occurrences:
    """How often each bin and each word occurs, by field. Exact, hence private."""

    histograms: Integers
    words: tuple[dict[str, int], ...]

    def __add__(self, other: Occurrences) -> Occurrences:
        words = tuple(_together(a, b) for a, b in zip(self.words, other.words, strict=True))
        return Occurrences(self.histograms + other.histograms, words)

    def times(self, weight: int) -> Occurrences:
        """The same as often as it weighs."""
        words = tuple({word: count * weight for word, count in own.items()} for own in self.words)
        return Occurrences(self.histograms * weight, words)


def _together(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    few, many = sorted((a, b), key=len)
    total = Counter(many)
    total.update(few)
    return total


@dataclass(frozen=True)
class Counting:
    """The kernel: counts of a batch. `bins` are those of each field, 0 for texts."""

    bins: tuple[int, ...]

    def __call__(self, batch: Any) -> Occurrences:
        """Counts of a `Coded` batch; the public record, which takes what rounding leaves of persons' weights, counts nowhere."""
        histograms = np.zeros((len(self.bins), max(self.bins, default=0)), dtype=np.int64)
        if not isinstance(batch, Coded):
            return Occurrences(histograms, tuple({} for _ in self.bins))
        words: list[dict[str, int]] = []
        for j, (bins, known) in enumerate(zip(self.bins, batch.words, strict=True)):
            found = np.bincount(batch.codes[:, j] + 1, minlength=1 + bins + len(known))[1:]
            histograms[j, :bins] = found[:bins]
            words.append({word: int(count) for word, count in zip(known, found[bins:], strict=True) if count})
        return Occurrences(histograms, tuple(words))


# From noisy counts to limits. All of this sees released values alone.


def tail_quantile(log_chance: float) -> float:
    """z with log P(N(0, 1) > z) as given, also where the chance itself is too small for a float."""
    return float(-ndtri_exp(log_chance))


def kept_counts(sd: float, law: NoiseLaw, bins: int) -> Floats:
    """From which noisy count on a window of 1, 2, … bins is kept, among so many bins in all.

    Without a record in any bin, some window exceeds its count with a chance of FALSE_ALARM at most: there are fewer than `bins`
    of each size.
    """
    log_chance = log(FALSE_ALARM / (len(WINDOWS) * max(bins, 1)))
    return law.largest_sums(sd, np.array(WINDOWS), log_chance)


def kept_bins(counts: Array, thresholds: Floats, wide: Mask) -> tuple[int, int] | None:
    """The first and last bin that hold something: those above their threshold, and windows of which no part is.

    Thresholds of noisy counts are those of WINDOWS. `wide` are bins that are no single number or year: they stand for themselves.
    """
    free, kept = np.array(counts, dtype=np.float64), np.zeros(len(counts), dtype=bool)
    for size, threshold in zip(WINDOWS, thresholds.tolist(), strict=True):
        if size == 2:
            free[wide] = -LARGE
        while size <= len(free):
            sums = np.convolve(free, np.ones(size), "valid")
            at = int(np.argmax(sums))
            if sums[at] <= threshold:
                break
            kept[at : at + size] = True
            free[at : at + size] = -LARGE
    places = np.flatnonzero(kept)
    return (int(places[0]), int(places[-1])) if len(places) else None


def with_margins(counts: Array, kept: tuple[int, int], wide: Mask, noise: Noise, zero: int | None) -> tuple[int, int]:
    """Kept bins, and those beside them that hold something or may: too wide costs little, too narrow cuts rows off.

    `zero` is the bin of 0, where there is one: of the other sign only −1, for "never", may lie beside.
    """
    positive = zero is not None and kept[0] >= zero
    start = zero - 1 if zero is not None and positive else 0
    end = zero if zero is not None and kept[1] < zero else len(counts)
    before, behind = slice(start, kept[0]), slice(kept[1] + 1, end)
    first = kept[0] - _seen_beside(counts[before][::-1], wide[before][::-1], noise)
    last = kept[1] + _seen_beside(counts[behind], wide[behind], noise)
    if HIDDEN * noise.sd <= LITTLE * noise.n:
        return first, last
    inside = np.asarray(counts[kept[0] : kept[1] + 1], dtype=np.float64)
    tails = [int(np.argmax(np.cumsum(x) >= TENTH * inside.sum())) for x in (inside, inside[::-1])]
    low, high = (min(max(1, tail), MOST_MARGIN) for tail in tails)
    least = start + 1 if positive and first > start else start
    return first - _reach(wide[least:first][::-1], low), last + _reach(wide[last + 1 : end], high)


def _reach(wide: Mask, bins: int, most: int = 2) -> int:
    """So many bins outward, but of wide ones, each of which about doubles the number, no more than `most`."""
    return int(np.count_nonzero(np.cumsum(wide[:bins]) <= most))


def _seen_beside(counts: Array, wide: Mask, noise: Noise) -> int:
    """How many bins beside kept ones, from the nearest on, together stand out a little; of several such numbers the likeliest."""
    sums = np.cumsum(counts[: _reach(wide, BESIDE_BINS, BESIDE_WIDE)], dtype=np.float64)
    sd = noise.sd * np.sqrt(np.arange(1, len(sums) + 1))
    seen = np.where(sums > np.maximum(BESIDE * sd, LITTLE * noise.n), sums - BESIDE / 2 * sd, 0.0)
    return int(np.argmax(seen)) + 1 if seen.any() else 0


def from_zero(low: Fraction, high: Fraction) -> tuple[Fraction, Fraction]:
    """Limits that reach to 0 where they came within a twentieth of it: few numbers have a least value other than 0."""
    return (Fraction(0) if 0 < 20 * low <= high else low), (Fraction(0) if low <= 20 * high < 0 else high)
