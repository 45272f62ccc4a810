"""Triples: tables of three columns that the centres miss most, selected with noise, measured, and fitted.

Pairs say nothing of a relation that needs three columns at once, such as an exclusive or. So the centres that pairs lead to are
compared with the records, triple by triple, and those tables that they miss most are selected and measured. How many, on how many
levels, and whether at all is a public formula. Of four and five yes/no columns the products of all their signs are compared: what
fewer of them say does not count, so that each relation is found once. docs/proofs/choice.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from math import log, sqrt

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.budget import Budget
from covey.engine.codes.counts import part
from covey.engine.fit.centres import Triples, deviations, level_map, shrunken, signs_of, varying_triples
from covey.engine.measurement import Measurement
from covey.engine.model import Ask, Asking, Component, Setting
from covey.engine.noise.law import CHOICE
from covey.engine.points import WeightedPoints
from covey.engine.query import Columns, Factor, Query, mixed_table
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic, entries

# Of what pairs have, for selecting and measuring together: costs the pairs 8% more noise.
TRIPLE_SHARE = Fraction(3, 20)
# Of that, for selecting; a selection needs little, its noise does not grow with the number of candidates.
SELECTING_SHARE = Fraction(1, 5)
CLEAR = 4.0  # deviations of the noise that a cell of average mass should stand above
MOST_LEVELS = 12  # of an attribute in a triple
MOST_CELLS = 4_000_000  # of all candidates' tables together: 32 MB
MOST_COMPARISONS = 5_000_000_000  # rows times candidates: a minute
MEAN_ABSOLUTE_NORMAL = sqrt(2 / np.pi)  # mean of a standard normal's absolute value

SELECTION_SENSITIVITY = Sensitivity(score=2, added=Sensitivity(score=1))  # of each score (docs/proofs/choice.md)


# The public plan.


@dataclass(frozen=True)
class AffordableTriples:
    """How many triples are measured, and on how many levels of an attribute; 0 if none would stand out of its noise."""

    count: int
    levels: int


NO_TRIPLES = AffordableTriples(0, 0)


def affordable_triples(n: int, candidates: int, most: int, budget: Budget, with_target: bool) -> AffordableTriples:
    """As many triples, and levels, as keep a cell of average mass `CLEAR` deviations above its noise.

    Args:
        n: rows.
        candidates: how many triples there are to select from.
        most: triples that are wanted at most.
        budget: what measuring them may spend.
        with_target: whether each triple has a target, which counts for two levels.
    """
    if not candidates or n * candidates > MOST_COMPARISONS:
        return NO_TRIPLES
    room = (MOST_CELLS / candidates) ** (1 / 3)
    for count in range(min(most, candidates), 0, -1):
        cells = n / (CLEAR * triple_noise(count, budget))
        levels = sqrt(cells / 2) if with_target else cells ** (1 / 3)
        affordable = int(min(levels, room, MOST_LEVELS))
        if affordable >= 2:
            return AffordableTriples(count, affordable)
    return NO_TRIPLES


def triple_shares(pairs: Fraction, is_affordable: Callable[[Fraction], bool]) -> dict[str, Fraction]:
    """What selecting and measuring triples takes of the pairs' share; nothing where no triple is affordable with a share."""
    measuring = pairs * TRIPLE_SHARE * (1 - SELECTING_SHARE)
    selecting = pairs * TRIPLE_SHARE * SELECTING_SHARE
    if not pairs or not is_affordable(measuring):
        return {}
    return {"pairs": pairs - measuring - selecting, "choosing triples": selecting, "triples": measuring}


def triple_sensitivity(count: int) -> Sensitivity:
    """How far one replaced row moves the tables of so many triples: it leaves a cell and enters one in each."""
    return Sensitivity.histograms(count)


def triple_noise(count: int, budget: Budget) -> float:
    """The deviation of the noise on a cell of one of so many triples, in rows."""
    return triple_sensitivity(count).deviation(budget)


# What triples are looked for in.


@dataclass(frozen=True)
class Binned:
    """Columns in bins, and how centres over the bins answer.

    Attributes:
        factors: from codes to bins, for every column.
        shares: of the bins, for every column.
        ordered: which columns have an order.
        cloud: the centres.
        of: what of a unit is looked at.
    """

    factors: Sequence[Factor]
    shares: Sequence[Floats]
    ordered: Sequence[bool]
    cloud: WeightedPoints
    of: str = "row"

    def levels(self, most: int) -> list[Integers]:
        """Bin → level, at most so many, for each column."""
        return [level_map(shares, ordered, most) for shares, ordered in zip(self.shares, self.ordered, strict=True)]

    def query(self, sets: Sequence[Columns], level_of: Sequence[Integers]) -> Query:
        """Tables of levels."""
        columns = enumerate(zip(self.factors, level_of, strict=True))
        factors = {a: Factor(factor.edges, levels[factor.bins]) for a, (factor, levels) in columns}
        return Query(sets, factors, of=self.of, total=self.of == "row")

    def table(self, query: Query) -> Floats:
        """What the centres say."""
        first_cells = [np.unique(factor.bins, return_index=True)[1] for factor in self.factors]
        codes = [factor.edges[cells] for factor, cells in zip(self.factors, first_cells, strict=True)]
        return mixed_table(query, self.cloud, codes)


@dataclass(frozen=True)
class MeasuredTriples:
    """Triples that were measured.

    Attributes:
        goal: what centres are to follow; None if nothing stood out of the noise.
        measurements: all that was measured, table by table. To keep those alone that stand out would choose among the noise.
    """

    goal: Triples | None
    measurements: tuple[Measurement, ...]


@dataclass(frozen=True)
class Candidates:
    """Sets of three, four or five columns, and what the centres say of their tables.

    Attributes:
        sets: columns of each table.
        level_of: bin → level, for every column.
        query: all tables, side by side.
        shares: of every cell, as the centres have them.
    """

    sets: Sequence[Columns]
    level_of: list[Integers]
    query: Query
    shares: Floats

    @classmethod
    def of(cls, binned: Binned, within: int | None, most_levels: int, n: int) -> Candidates | None:
        """All triples (with the column `within`, if one is named), and fours and fives of rows where time allows; or None."""
        level_of = binned.levels(most_levels)
        room = 0  # for fours and fives: as many as are compared in seconds
        if binned.of == "row":
            room = min(MOST_COMPARISONS // (10 * n), MOST_CELLS // 2**5)
        sizes = [int(levels.max()) + 1 for levels in level_of]
        sets = varying_triples(sizes, within, room)
        if not sets:
            return None
        query = binned.query(sets, level_of)
        return cls(sets, level_of, query, binned.table(query))

    @property
    def starts(self) -> Integers:
        """Where tables begin."""
        return self.query.starts

    @cached_property
    def signs(self) -> Integers:
        """For each cell 0 in tables of three columns, in others the product of the signs."""
        return signs_of(self.sets, self.starts)

    def cells(self, k: int) -> slice:
        """Where the cells of a table are."""
        return slice(*self.starts[k : k + 2])

    def shape(self, k: int) -> tuple[int, ...]:
        """Levels of the columns of a table."""
        return tuple(int(self.level_of[a].max()) + 1 for a in self.sets[k])

    def alone(self, k: int) -> Query:
        """The query of one table."""
        columns = self.sets[k]
        return replace(self.query, sets=[columns], factors={a: self.query.factors[a] for a in columns})


# Select, measure, and say what is to be fitted.


def find_triples(
    binned: Binned, within: int | None, affordable: AffordableTriples, setting: Setting
) -> Asking[MeasuredTriples]:
    """The triples that the centres miss most, measured. Costs "choosing triples" and "triples".

    Args:
        binned: columns in bins, and the centres.
        within: a column that every triple has; None if any will do.
        affordable: how many triples, on how many levels.
        setting: public.
    """
    if not affordable.count:
        return MeasuredTriples(None, ())
    candidates = Candidates.of(binned, within, affordable.levels, setting.n)
    if candidates is None:
        return MeasuredTriples(None, ())
    counts = Statistic.sum(candidates.query.kernel(), cached=True).map(part)
    selected = yield from _select(candidates, counts, affordable.count, setting)
    measurements = yield from _measure(candidates, counts, selected)
    goal = _goal(candidates, selected, measurements, setting.n)
    tables = zip(selected, measurements, strict=True)
    by_table = [replace(noisy, query=candidates.alone(k)) for k, noisy in tables]
    return MeasuredTriples(goal, tuple(by_table))


def _select(candidates: Candidates, counts: Statistic, count: int, setting: Setting) -> Asking[list[int]]:
    """The candidates that centres miss by most more than chance would; noise is added to every score.

    The score of a triple is Σ|count − expected| over its cells, of four and five columns |Σ sign·(count − expected)|, less what
    chance is expected to make of it.
    """
    expected = np.rint(candidates.shares * setting.total).astype(np.int64)
    chance = np.rint(_expected_by_chance(candidates, count, setting) * setting.steps).astype(np.int64)
    missed = counts.map(deviations, expected, candidates.starts, candidates.signs)
    scores = Component(candidates.query, missed.map(np.subtract, chance), len(candidates.sets))
    ask = Ask("choosing triples", [scores], SELECTION_SENSITIVITY, noise=CHOICE, rounds=count)
    (selection,) = yield [ask]
    return list(selection.values)


def _expected_by_chance(candidates: Candidates, count: int, setting: Setting) -> Floats:
    """What chance is expected to make of each score, in rows.

    Of a triple: sampling, and the noise that its measurement will have. Signs are many: of all of these sampling and the noise of
    the selection are expected to make so much of the largest.
    """
    n = setting.n
    shares = candidates.shares
    starts = candidates.starts
    noise = triple_noise(count, setting.allowance("triples"))
    sampling = np.add.reduceat(np.sqrt(n * shares * (1 - shares)), starts[:-1])
    chance = MEAN_ABSOLUTE_NORMAL * sampling + MEAN_ABSOLUTE_NORMAL * noise * np.diff(starts)
    has_signs = candidates.signs[starts[:-1]] != 0
    one_round = setting.allowance("choosing triples").part(Fraction(1, count))
    log_tables = log(max(2, has_signs.sum()))
    chance[has_signs] = sqrt(2 * n * log_tables) + float(one_round.choice_scale(2)) * log_tables
    return np.asarray(chance)


def _measure(candidates: Candidates, counts: Statistic, selected: list[int]) -> Asking[list[Measurement]]:
    """Noisy tables of the selected candidates."""
    components = []
    for k in selected:
        cells = candidates.cells(k)
        components.append(Component(candidates.query, counts.map(entries, cells), cells.stop - cells.start))
    return (yield [Ask("triples", components, triple_sensitivity(len(components)))])


def _goal(candidates: Candidates, selected: list[int], measurements: list[Measurement], n: int) -> Triples | None:
    """Shares that centres should have in the tables that stand out of their noise; None if none does."""
    sets, goals = [], []
    for k, noisy in zip(selected, measurements, strict=True):
        centres_say = candidates.shares[candidates.cells(k)].reshape(candidates.shape(k))
        measured = noisy.values.reshape(candidates.shape(k)) / n
        goal = shrunken(measured, centres_say, float(noisy.sd) / n)
        if goal is not centres_say:
            sets.append(candidates.sets[k])
            goals.append(goal)
    if not sets:
        return None
    level_of = {a: candidates.level_of[a] for columns in sets for a in columns}
    return Triples(tuple(sets), level_of, tuple(goals))
