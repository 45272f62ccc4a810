"""Domains that nobody has declared: public grids, counts on them, and limits and bins read off noisy counts.

The grids are the same for every table. What a record adds to the counts depends on that record alone, so a replaced record moves
the counts of a column by 2 in l1 and by the root of 2 in l2 (docs/proofs/learned.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import log, sqrt
from typing import Any

import numpy as np
from scipy.special import ndtri_exp

from covey.core.arrays import Array, Floats, Integers

LARGEST = 15  # the outermost edges are ±10^15: whole numbers up to there are exact as floats
SMALLEST = -15  # of numbers with decimals
FALSE_ALARM = 0.01  # the chance that columns without any record show a limit

Edges = tuple[Fraction, ...]


@cache
def number_edges(decimals: int | None) -> Edges:
    """…, −20, −10, …, −1, 0, 1, …, 10, 20, 50, 100, …: edges a person would write, up to ±10^15.

    Numbers with decimals have 1, 2 and 5 of each power of ten from one step of the precision on. Whole numbers up to ten, which
    often are codes, have bins of their own. Bin b is edge b up to edge b + 1, without it.

    Args:
        decimals: of the precision; None where it is not known.
    """
    first = SMALLEST if decimals is None else -decimals
    last = LARGEST if decimals is None else LARGEST - decimals
    positive = [Fraction(digit) * Fraction(10) ** power for power in range(first, last) for digit in (1, 2, 5)]
    if decimals == 0:
        positive = sorted({*positive, *map(Fraction, range(1, 10))})
    positive.append(Fraction(10) ** last)
    return (*(-edge for edge in reversed(positive)), Fraction(0), *positive)


@cache
def year_edges() -> tuple[int, ...]:
    """First years of the bins of dates: single ones from 1900 to 2100, longer spans around them, up to the year 10000."""
    return (1, 1000, 1500, 1600, 1700, 1750, 1800, 1850, *range(1900, 2101), 2150, 2200, 2500, 10_000)


@dataclass(frozen=True)
class Coded:
    """A batch of records on the public grids: a bin for each number, a place in a list of words for each text, −1 for neither.

    Args:
        codes: a row per record and a column per learned field; from `bins` of the field on, places in its words.
        words: the different words of each field in this batch.
    """

    codes: Integers
    words: tuple[tuple[str, ...], ...]

    def __len__(self) -> int:
        return len(self.codes)


@dataclass(frozen=True)
class Occurrences:
    """How often each bin and each word occurs, by field. Exact, hence private."""

    histograms: Integers
    words: tuple[dict[str, int], ...]

    def __add__(self, other: Occurrences) -> Occurrences:
        return Occurrences(
            self.histograms + other.histograms,
            tuple(_together(a, b) for a, b in zip(self.words, other.words, strict=True)),
        )


def _together(a: dict[str, int], b: dict[str, int]) -> dict[str, int]:
    """Sums of counts by word."""
    few, many = sorted((a, b), key=len)
    out = dict(many)
    for word, count in few.items():
        out[word] = out.get(word, 0) + count
    return out


@dataclass(frozen=True)
class Counting:
    """The kernel: counts of a batch. `bins` are those of each field, 0 for texts."""

    bins: tuple[int, ...]

    def __call__(self, batch: Any) -> Occurrences:
        """Counts of a `Coded` batch."""
        histograms = np.zeros((len(self.bins), max(self.bins, default=0)), dtype=np.int64)
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


def kept_counts(sd: float, law: str, bins: int) -> Floats:
    """From which noisy count on a block of 1, 2, … bins is kept, among so many bins in all.

    Without a record in any bin, some block exceeds its count with a chance of FALSE_ALARM at most: `bins` single ones and fewer
    blocks. A sum of w Laplace variables of scale b exceeds s with probability at most exp(−ls)·(1 − l²b²)^−w, for any l < 1/b.
    """
    log_chance = log(FALSE_ALARM / (2 * max(bins, 1)))
    sizes = np.arange(1, 33)
    if law == "gaussian":
        return np.asarray(sd * np.sqrt(sizes) * tail_quantile(log_chance))
    scale = sd / sqrt(2)
    rates = np.linspace(0.001, 0.999, 999)[:, None]
    bounds = scale * (-log_chance - sizes * np.log1p(-(rates**2))) / rates
    out = np.asarray(bounds.min(axis=0))
    out[0] = scale * (-log_chance - log(2))  # one variable: its tail is known
    return out


def kept_bins(counts: Array, thresholds: Floats, longest: int) -> tuple[int, int] | None:
    """The first and last bin that hold something: those above their threshold, and blocks of which no part is.

    Args:
        counts: noisy counts of one column.
        thresholds: of blocks of 1, 2, … bins.
        longest: the longest block, a power of 2; blocks start at its multiples.
    """
    kept = np.asarray(counts > thresholds[0])
    found, size = kept.copy(), 1
    while size < longest:
        size *= 2
        for start in range(0, len(counts), size):
            block = slice(start, start + size)
            if not kept[block].any() and counts[block].sum() > thresholds[size - 1]:
                found[block] = kept[block] = True
    places = np.flatnonzero(found)
    return (int(places[0]), int(places[-1])) if len(places) else None


def kept_whole_numbers(counts: Array, thresholds: Floats, zero: int, longest: int) -> tuple[int, int] | None:
    """As `kept_bins`, for whole numbers: blocks only among those up to ten, from zero on, where no bin is wide.

    Args:
        counts: noisy counts of one column on the grid of whole numbers.
        thresholds: of blocks of 1, 2, … bins.
        zero: the bin of 0.
        longest: the longest block.
    """
    found = [kept_bins(counts, thresholds, 1)]
    if (up := kept_bins(counts[zero : zero + 10], thresholds, longest)) is not None:
        found.append((zero + up[0], zero + up[1]))
    if (down := kept_bins(counts[zero - 10 : zero][::-1], thresholds, longest)) is not None:
        found.append((zero - 1 - down[1], zero - 1 - down[0]))
    there = [kept for kept in found if kept is not None]
    return (min(low for low, _ in there), max(high for _, high in there)) if there else None


def number_bins(
    counts: Array, kept: tuple[int, int], least: float, edges: Edges, wanted: int, step: Fraction | None
) -> list[Fraction]:
    """Edges of bins from the first to the last kept one: finer where the noisy counts say that there is more.

    Args:
        counts: noisy counts on the grid.
        kept: the first and the last bin of the grid that hold something.
        least: noisy counts below are taken for none.
        edges: of the grid.
        wanted: about so many bins of about the same mass.
        step: the precision, where it is known.
    """
    first, last = kept
    inside = np.asarray(counts[first : last + 1], dtype=np.float64)
    mass = np.where(inside > least, inside, 0.0)
    share = wanted * mass / max(mass.sum(), 1.0)
    out, gathered = [edges[first]], 0.0
    for j, part in enumerate(share.tolist()):
        low, high = edges[first + j], edges[first + j + 1]
        gathered += part
        if part >= 0.5:
            if out[-1] < low:  # what was gathered before is a bin of its own
                out.append(low)
            pieces = _pieces(high - low, round(part), step)
            out += [low + (high - low) * k / pieces for k in range(1, pieces)]
        if gathered >= 0.5 or j == last - first:
            out.append(high)
            gathered = 0.0
    return _apart(_from_zero(out))


def _pieces(width: Fraction, most: int, step: Fraction | None) -> int:
    """Into how many bins with round edges, at most so many, a bin of the grid is cut: it is 1, 3 or 5 powers of ten wide."""
    unit = width
    while unit.denominator > 1:
        unit *= 10
    digit = int(str(unit.numerator)[0])
    choices: Sequence[int] = {1: (2, 5, 10, 20), 3: (3, 6, 15, 30), 5: (5, 10, 25, 50)}[digit]
    fits = [c for c in choices if c <= most and (step is None or (width / c / step).denominator == 1)]
    return max(fits, default=1)


def _from_zero(edges: list[Fraction]) -> list[Fraction]:
    """Edges that start at 0 where they started within a twentieth of it: few numbers have a least value other than 0."""
    low, high = edges[0], edges[-1]
    if 0 < 20 * low <= high:
        return [Fraction(0), *edges]
    if low <= 20 * high < 0:
        return [*edges, Fraction(0)]
    return edges


def _apart(edges: list[Fraction]) -> list[Fraction]:
    """Edges without those that are closer to the one before than a billionth of the largest: floats could not tell."""
    least = max(abs(edges[0]), abs(edges[-1])) / 10**9
    out = edges[:1]
    for edge in edges[1:-1]:
        if edge - out[-1] >= least and edges[-1] - edge >= least:
            out.append(edge)
    return [*out, edges[-1]]
