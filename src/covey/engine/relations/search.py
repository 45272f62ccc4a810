"""The private search for relations that nobody declared.

Candidates are public: they follow from names, types and limits (`engine.relations`). First the cells of all columns are counted
with noise; from these shares anyone can tell how many rows would break a candidate by chance. Then rounds: one candidate is
chosen by Gumbel noise on λ·(broken by chance) − (rows that break it), and the rows that break it are counted with noise. What
holds nearly everywhere becomes a rule or a derived column, what holds mostly becomes what a column is expected to be, which
loses nothing (`_fitting.used_relations`). docs/proofs/relations.md has the sensitivities and the price of a choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from math import log, pi, sqrt
from statistics import NormalDist

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.budget import GUMBEL, RELATIONS, Budget
from covey.engine.codes.counts import Counts, part
from covey.engine.codes.domain import PairTables
from covey.engine.exact import Exact
from covey.engine.fit.shrinkage import denoise_histogram
from covey.engine.gate import Gate, Measured
from covey.engine.relations.formulas import CLOSE, HALF, Broken, Candidate, Column, proposals
from covey.engine.relations.literals import (
    EQUIVALENT,
    IMPLIES,
    THRESHOLD,
    Analogies,
    Function,
    State,
    Tabled,
    cells_of,
    tabled,
)
from covey.engine.relations.simpler import says_more
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import entries
from covey.engine.units.rows import Mapped, Rows

SHARE_OF_RELATIONS = Fraction(1, 10)  # of the budget; at half of it three times as many rows contradict themselves
ONE_WAY, CHOOSE, CONFIRM, TABLES = (
    Fraction(22, 100),
    Fraction(45, 100),
    Fraction(18, 100),
    Fraction(15, 100),
)  # of the charge
MOST_ROUNDS, LEAST_ROUNDS = 32, 4  # more find nothing that is left, and fewer are not worth a tenth of the budget
FEW_CANDIDATES = 1000  # with fewer rows than so many need, nothing is looked for
GROWTH = Fraction(11, 10)  # of a round's charge to the next: weaker relations come later and need more
REACH = 0.15  # of the rows: what the noise of a choice may look like, at most
MOST_FUNCTIONS = 5  # whose tables are read with noise
MOST_WORTH = 0.4  # of the rows: what chance can add to a score; more would make up for rows that break a candidate
GLANCE = 500  # of the rows below: enough to see whether a source changes anything in 5% of them
PSEUDO_ROWS = 2000  # drawn from noisy shares, column by column: what chance does to a formula, to 1% of the rows
# How much better "never broken" explains a noisy count than "broken in up to half as many rows as by chance".
LIKELIER = 1.5
CONFIDENCE = 0.95  # of the intervals of all relations that were counted, together
CLEARLY = 10.0  # deviations of the noise that chance must break a candidate in, for a count to be clear
MOST_TIMES = Fraction(4)  # what a count of a candidate that chance seldom breaks gets, beside others
SUGGESTED = 0.5  # the same for a candidate that an accepted one suggests
LEAST_BY_CHANCE = 0.03  # of the rows: what chance would hardly break is no news
FAIRLY_OFTEN = 9.0  # deviations of the noise that chance must break a candidate in
NOISY = 0.05  # of the rows: a noisy count beyond is no zero, however large the noise
MOST_EXCEPTIONS = 0.08  # of the rows, for functions
ORDER_BY_CHANCE = 0.1  # of the rows: what an order between numbers that lie far apart must be good for
ORDER_FOR = 6  # rows that chance would break: so many for each that breaks an order, and it is kept in all
FUNCTION_HANDICAP = 0.04  # of the rows: many columns are half a function of another, and a table has to be read
THRESHOLD_HANDICAP = 0.05  # of the rows: an implication that says the same is simpler
TIGHT, APART = 0.25, 0.6  # differences are measured where so few rows are far apart, and by chance so many were
# A row added or removed moves all scores to one side: their range is half of that of a replaced row.
ONE = Sensitivity(l1=1, l2_squared=1, score=1, added=Sensitivity(l1=1, l2_squared=1, score=Fraction(1, 2)))
TWO = Sensitivity.histograms(1)


@dataclass(frozen=True)
class Plan:
    """Public: which part of the charge each choice and each count gets, the deviation of a count, and the weight of chance."""

    parts: tuple[Fraction, ...]
    confirm: Fraction
    sd: float
    weight: float

    @classmethod
    def of(cls, budget: Budget, n: int, candidates: int) -> Plan:
        """As many rounds as the noise of a choice allows; none where that is too few to be worth it."""
        moved = ONE.under(budget).score
        for rounds in range(MOST_ROUNDS, LEAST_ROUNDS - 1, -1):
            weights = [GROWTH**i for i in range(rounds)]
            parts = tuple(CHOOSE * w / sum(weights) for w in weights)
            scales = [float(budget.part(share).choice_scale(moved, GUMBEL)) for share in parts]
            noise = float(np.mean(scales)) * log(candidates)
            if noise <= REACH * n:
                sd = budget.part(CONFIRM / rounds).deviation(1, 1)
                return cls(parts, CONFIRM / rounds, sd, 0.6 if noise > 0.08 * n else 0.3)
        return cls((), Fraction(0), 0.0, 0.0)


@dataclass(frozen=True)
class Share:
    """A noisy share of the rows with its deviation, one of at most so many that were counted to find what few rows break."""

    broken: float
    sd: float
    looks: int = 1
    pure: bool = False

    @property
    def margin(self) -> float:
        """How far the true share is off at most: with 95% confidence for all that were counted, so for those that were kept."""
        tail = (1 - CONFIDENCE) / self.looks
        if self.pure:  # two-sided geometric noise
            return self.sd * log(1 / tail) / sqrt(2)
        return self.sd * NormalDist().inv_cdf(1 - tail / 2)


@dataclass(frozen=True)
class Accepted:
    """One relation: between literals, a function with its map, or a formula; with what its noisy count says."""

    what: tuple[int, int, int] | Function | Candidate
    share: Share
    imposed: bool  # whether it holds in every row; else its exceptions are measured
    map: tuple[int, ...] = ()

    @property
    def broken(self) -> float:
        """The noisy share of the rows."""
        return self.share.broken


@dataclass(frozen=True)
class Findings:
    """All that was accepted, with the public candidates that it speaks of."""

    columns: tuple[Column, ...]
    of: Tabled
    accepted: tuple[Accepted, ...]


def worth_looking(budget: Budget, n: int, columns: int) -> bool:
    """Whether so many rows may show a relation at all, by public numbers."""
    return columns > 1 and bool(Plan.of(budget, n, FEW_CANDIDATES).parts)


def find_relations(rows: Rows, columns: tuple[Column, ...], gate: Gate, public: np.random.Generator) -> Findings:
    """Search the relations of a table; spends the charge "relations", or a part of it."""
    search = Search(rows, columns, gate, public)
    search.run()
    return Findings(search.columns, search.of, tuple(search.accepted))


def with_holes(column: Column, edges: Integers, shares: Floats) -> Column:
    """A column with what the shares of its cells say: how much is missing, and how frequent its most frequent value is."""
    usual = float(shares[np.diff(edges) == 1].max(initial=0.0))
    codes = edges[:-1]
    values = (codes >= column.first) & (codes < column.first + column.steps)
    holes = codes == column.missing if column.kind == "label" else ~values
    return replace(column, holes=float(shares[holes].sum()), usual=usual)


def is_source(accepted: Sequence[Accepted], column: int, of_functions: bool = False) -> bool:
    """Whether an accepted relation computes something from a column, or a function does."""
    computed = [a.what for a in accepted if not isinstance(a.what, tuple)]
    return any(column in what.sources for what in computed if not of_functions or isinstance(what, Function))


def _violations(tables: Integers, broken: Counts, of: Tabled) -> Integers:
    return np.concatenate([of.broken(tables), part(broken)[:, 0]])


class Search:
    """One search: what is open, what was accepted, and what is left of the charge."""

    def __init__(self, rows: Rows, columns: tuple[Column, ...], gate: Gate, public: np.random.Generator) -> None:
        self.columns, self.gate, self.n = columns, gate, rows.n
        self.cells = cells_of(columns)
        self.accepted: list[Accepted] = []
        self.left, self.functions, self.looked = Fraction(1), 0, set[int]()
        self.refused = list[tuple[int, int, int]]()
        kernel = PairTables(self.cells.domain.sizes)
        self.tables = Mapped(rows, self.cells).reduce(kernel).map(kernel.matrix)
        measured = self._one_way()
        shares = self._shares(measured, public)
        self.columns = columns = tuple(map(with_holes, columns, self.cells.edges, shares))
        self.of, self.candidates = tabled(columns, self.cells, shares), proposals(columns)
        codes = self._independent(shares, public)
        self.chance = np.concatenate([self.of.by_chance(shares, self.n), self._by_chance(codes)])
        self.open = self.chance >= LEAST_BY_CHANCE * self.n
        self.open[: len(self.of.pairs)] &= self.of.clear(measured.values, measured.sd, self.n)
        self.open[len(self.of) :] &= says_more(columns, self.candidates, codes[:GLANCE])
        self.nearest: dict[tuple[int, tuple[int, ...]], int] = {}
        for i, c in enumerate(self.candidates, len(self.of)):
            if c.name == "close" and c.slack <= self.columns[c.target].span / CLOSE[2]:
                self.nearest.setdefault((c.target, c.sources), i)
        self.plan = Plan.of(gate.allowance(RELATIONS), self.n, max(2, int(self.open.sum())))
        if not self.plan.parts:
            return
        self.open &= self.chance >= FAIRLY_OFTEN * self.plan.sd / LIKELIER
        news = [c.name != "close" or self._is_news(c) for c in self.candidates]
        self.open[len(self.of) :] &= np.array(news, dtype=bool)
        self.counted = rows.reduce(Broken(columns, self.candidates))
        self.broken = Exact.of(partial(_violations, of=self.of), self.tables, self.counted)
        self.state = State(columns, self.of, self.candidates)
        self.analogies = Analogies(columns, self.of, self.candidates)
        handicaps = np.array([self._handicap(f) for f in self.of.functions] + [c.handicap for c in self.candidates])
        known = np.minimum(self.plan.weight * self.chance, MOST_WORTH * self.n)
        known[len(self.of.pairs) :] -= handicaps * self.n
        known[: len(self.of.pairs)] -= np.where(self.of.pairs[:, 0] == THRESHOLD, THRESHOLD_HANDICAP * self.n, 0)
        self.scores = self.broken.map(np.negative).map(np.add, np.rint(known * rows.steps).astype(np.int64))

    def _handicap(self, function: Function) -> float:
        """Labels that give a function away need no table; between like labels equality is the simpler answer."""
        alike = self.columns[function.target].labels == self.columns[function.source].labels
        return 0.0 if function.map else 0.1 if alike else FUNCTION_HANDICAP

    def _measure(
        self, exact: Exact[Integers], shape: tuple[int, ...], sensitivity: Sensitivity, share: Fraction
    ) -> Measured:
        self.left -= share
        return self.gate.measure(RELATIONS, exact, shape, sensitivity, share)

    def _one_way(self) -> Measured:
        """How many rows lie in each cell of each column."""
        domain, sensitivity = self.cells.domain, Sensitivity.histograms(len(self.columns))
        return self._measure(self.tables.map(np.diagonal), (domain.total,), sensitivity, ONE_WAY)

    def _shares(self, measured: Measured, public: np.random.Generator) -> list[Floats]:
        """Shares of the cells of each column."""
        n, counts = float(self.n), measured.values.astype(np.float64)
        each = zip(np.split(counts, self.cells.domain.starts[1:-1]), self.columns, strict=True)
        return [denoise_histogram(own, measured.sd, n, column.kind != "label", public) / n for own, column in each]

    def _independent(self, shares: list[Floats], public: np.random.Generator) -> Integers:
        """Codes of rows whose columns are independent, drawn from noisy shares."""
        drawn = [public.choice(len(p), PSEUDO_ROWS, p=p / p.sum()) for p in shares]
        return self.cells.codes(np.stack(drawn, axis=1), public)

    def _by_chance(self, codes: Integers) -> Floats:
        """How many rows would break each formula if columns were independent."""
        return Broken(self.columns, self.candidates)(codes).values[0][:, 0] * (self.n / PSEUDO_ROWS)

    # Rounds.

    def run(self) -> None:
        """Choose and count until the charge is spent or nothing is found any more."""
        for share in self.plan.parts:
            # Enough is left for the choice, its count, one more count and a table.
            if self.left < share + 2 * self.plan.confirm + TABLES / MOST_FUNCTIONS:
                return
            candidates = self.open & self.state.allowed()
            if not candidates.any():
                return
            if candidates.sum() == 1:  # there is nothing to choose
                self._judge(int(candidates.argmax()))
                continue
            self.left -= share
            self._judge(self.gate.pick(RELATIONS, self.scores, candidates, ONE, share))

    def _judge(self, i: int, likelier: float = LIKELIER) -> bool:
        """Count what breaks a candidate; whether it is accepted."""
        self.open[i] = False
        self.looked.add(i)
        if i < len(self.of.pairs):
            accepted = self._judge_literals(i, likelier)
        elif i < len(self.of):
            accepted = self._judge_function(i, self.of.functions[i - len(self.of.pairs)])
        else:
            accepted = self._judge_formula(i, self.candidates[i - len(self.of)], likelier == SUGGESTED)
        if accepted:
            self._follow(alike for alike in self.analogies.of(i) if self.open[alike])
        return accepted

    def _follow(self, suggested: Iterable[int], counts: int = 2, likelier: float = SUGGESTED) -> None:
        """Look at candidates that an accepted one suggests, without a choice, while so many counts are left."""
        for i in suggested:
            if self.left >= counts * self.plan.confirm and i not in self.looked and self.state.allowed()[i]:
                self._judge(int(i), likelier)

    def _between(self, kind: int, one: int, two: int) -> Integers:
        """The candidate of a kind between two literals, if it is open."""
        return np.flatnonzero((self.of.pairs == (kind, one, two)).all(axis=1) & self.open[: len(self.of.pairs)])

    def _count(self, i: int) -> tuple[float, float]:
        """The noisy number of rows that break a candidate, and its deviation."""
        found = self._measure(self.broken.map(entries, slice(i, i + 1)), (1,), ONE, self._share(i))
        return float(found.values[0]), found.sd

    def _stated(self, v: float, sd: float) -> Share:
        """A noisy count of rows that break a relation, and that it is one of as many as the charge can pay for."""
        looks = int((1 - ONE_WAY) / self.plan.confirm)
        return Share(v / self.n, sd / self.n, looks, self.gate.allowance(RELATIONS).pure)

    def _share(self, i: int) -> Fraction:
        """What counting a candidate gets: more where chance would seldom break it, so that a small count says something."""
        times = (CLEARLY * self.plan.sd / max(self.chance[i], 1.0)) ** 2
        most = min(MOST_TIMES, self.left / self.plan.confirm)
        return self.plan.confirm * max(Fraction(1), min(Fraction(round(8 * times), 8), most))

    def _judge_literals(self, i: int, likelier: float) -> bool:
        v, sd = self._count(i)
        kind, one, two = (int(x) for x in self.of.pairs[i])
        # "Never" against "in up to half of the rows that chance would have": which explains the noisy count better?
        odds = self.chance[i] / (2 * sqrt(2 * pi) * sd * likelier)
        limit = min(sqrt(2 * log(odds)), 2.0) * sd if odds > 1 else -np.inf
        if v > min(limit, NOISY * self.n):
            if kind != THRESHOLD:
                self.refused.append((kind, one, two))
                self._close_refused()
            if kind == EQUIVALENT and v < self.chance[i] / 2:  # one of its halves may hold
                self._follow([*self._between(IMPLIES, one, two), *self._between(IMPLIES, two, one)], 1, LIKELIER)
            return False
        self.accepted.append(Accepted((kind, one, two), self._stated(v, sd), imposed=True))
        if kind == THRESHOLD:
            self._close_thresholds(one, two)
            return True
        self.state.learn_literals(kind, one, two)
        self._close_refused()
        if kind == IMPLIES and (EQUIVALENT, *sorted((one, two))) not in self.refused:
            self._follow(
                self._between(IMPLIES, two, one), 1, LIKELIER
            )  # the converse, where nothing says that it fails
        for pair in self.state.missing_together():
            # They often are the ends of something: is one never above the other?
            ours = {i: c for i, c in enumerate(self.candidates, len(self.of)) if {c.target, *c.sources} == pair}
            there = max(1 - self.columns[j].holes for j in pair)
            # Both are there or neither is: what chance does to those that are.
            self.chance[list(ours)] /= max(there, 0.1)
            self._follow(i for i, candidate in ours.items() if candidate.name == "order")
        return True

    def _close_refused(self) -> None:
        """What was refused is refused of literals in the same rows, too; what does not imply something does not equal it."""
        for kind, one, two in self.refused:
            self.open[: len(self.of.pairs)] &= ~self.state.twins(kind, one, two)
            if kind == IMPLIES:
                self.open[: len(self.of.pairs)] &= ~self.state.twins(EQUIVALENT, one, two)

    def _close_thresholds(self, one: int, two: int) -> None:
        """A literal excludes one range at each end of a number: others there follow, or were broken."""
        taken, literals = self.of.literals[two], self.of.literals
        upper = taken.last == max(x.last for x in literals if x.column == taken.column)
        alike = self.state.alike(one)
        for i in np.flatnonzero(self.of.pairs[:, 0] == THRESHOLD):
            other = literals[self.of.pairs[i, 2]]
            there = other.last == taken.last if upper else other.first == taken.first
            if other.column == taken.column and there and alike[self.of.pairs[i, 1]]:
                self.open[i] = False

    def _judge_function(self, i: int, function: Function) -> bool:
        v, sd = self._count(i)
        if v > min(self.chance[i] / 3, MOST_EXCEPTIONS * self.n):
            return False
        found = function.map
        if not found:
            # Its count may have taken the rest.
            if self.functions >= MOST_FUNCTIONS or self.left < TABLES / MOST_FUNCTIONS + self.plan.confirm:
                return False
            self.functions += 1
            found = self._read(function)
            # What noise has read off its table is not the best function: how many rows break this one?
            v, sd = self._recount(replace(function, map=found))
            if v > min(self.chance[i] / 2, MOST_EXCEPTIONS * self.n + 1.5 * sd):
                return False
        imposed = v <= min(2 * sd + 0.002 * self.n, NOISY * self.n) and min(found) >= 0
        imposed = imposed and not is_source(self.accepted, function.target)
        self.accepted.append(Accepted(function, self._stated(v, sd), imposed, found))
        self.state.learn_column(function, imposed)
        return True

    def _recount(self, function: Function) -> tuple[float, float]:
        """The noisy number of rows in which a column is not what a known function says, and its deviation."""
        exact = self.tables.map(function.broken, self.cells.domain)
        found = self._measure(exact, (1,), ONE, self.plan.confirm)
        return float(found.values[0]), found.sd

    def _read(self, function: Function) -> tuple[int, ...]:
        """The function, from a noisy table of the two columns."""
        domain = self.cells.domain
        shape = domain.sizes[function.source], domain.sizes[function.target]
        table = self._measure(self.tables.map(function.table, domain), shape, TWO, TABLES / MOST_FUNCTIONS)
        source = self.columns[function.source]
        edges = self.cells.edges[function.source][:-1]
        inside = (edges >= source.first) & (edges < source.first + source.steps)
        return best_function(np.asarray(table.values, dtype=np.float64), table.sd, inside)

    def _judge_formula(self, i: int, candidate: Candidate, suggested: bool) -> bool:
        found = self._measure(self.counted.map(part).map(entries, i - len(self.of)), (2,), TWO, self._share(i))
        v, holes, sd = float(found.values[0]), float(found.values[1]), found.sd
        target = candidate.target
        limit = min(2 * sd + 0.002 * self.n, NOISY * self.n)
        # What is measured by its difference loses nothing, so that noise alone should not rule it out.
        if v > min(self.chance[i] / (2 if suggested else 3), candidate.formula.soft * self.n + 1.5 * sd):
            return False
        if candidate.name in ("order", "close") and not self._tight(candidate):
            often = self.chance[i] >= ORDER_BY_CHANCE * self.n
            # Where chance breaks an order in far more rows, a few exceptions are no reason to break it in all of these.
            limit = max(limit, min(self.chance[i] / ORDER_FOR, NOISY * self.n + sd))
            if candidate.name == "close" or v > limit or not (suggested or often):
                return False
            self.accepted.append(Accepted(candidate, self._stated(v, sd), imposed=True))  # a rule, by repair
            self.state.learn_orders(candidate.orders)
            return True
        exact = candidate.slack <= HALF * self.columns[target].step and not candidate.loose
        exact = exact and candidate.may_replace(self.columns)
        imposed = exact and v <= limit and v + holes <= 2 * limit
        imposed = imposed and not is_source(self.accepted, target, of_functions=True)
        self.accepted = [a for a in self.accepted if not self._codes(a, target)]
        self.accepted.append(Accepted(candidate, self._stated(v, sd), imposed))
        self.state.learn_column(candidate, imposed)
        for source in candidate.sources if not imposed else ():
            self._follow_missing(target, source)
        return True

    @staticmethod
    def _codes(one: Accepted, column: int) -> bool:
        """Whether a relation says how a column is measured; orders that are repaired do not."""
        what = one.what
        return isinstance(what, Candidate) and what.target == column and not (what.name == "order" and one.imposed)

    def _tight(self, candidate: Candidate) -> bool:
        """Whether a column lies close to its base, so that their difference is the better measurement: one more count."""
        if candidate.name == "close":
            return self._is_news(candidate)
        near = self._near(candidate)
        if near is None or not self._is_news(candidate) or self.left < self.plan.confirm:
            return False
        return self._count(near)[0] <= TIGHT * self.n * self._there(candidate)

    def _is_news(self, candidate: Candidate) -> bool:
        """Whether by chance few values would lie close to their base."""
        near = self._near(candidate)
        return near is not None and self.chance[near] >= APART * self.n * self._there(candidate)

    def _near(self, candidate: Candidate) -> int | None:
        """The place of the candidate that says that a column lies close to its base, within a small part of its range."""
        return self.nearest.get((candidate.target, candidate.sources))

    def _there(self, candidate: Candidate) -> float:
        """The share of rows in which both are there, as far as it is known."""
        return 1 - max(self.columns[j].holes for j in (candidate.target, *candidate.sources))

    def _follow_missing(self, one: int, two: int) -> None:
        """Are two columns missing together?"""
        place = {(x.column, self.cells.edges[x.column][x.first]): k for k, x in enumerate(self.of.literals) if x.single}
        ends = [place.get((j, self.columns[j].missing)) for j in (one, two)]
        if None not in ends:
            i, j = sorted(int(e) for e in ends if e is not None)
            self._follow(self._between(EQUIVALENT, i, j), 1)


def best_function(table: Floats, sd: float, inside: Array) -> tuple[int, ...]:
    """For each row of a noisy table the column with most mass; rows that lie `inside` an ordered range change it seldom.

    A change costs what noise alone could gain by one, so that intervals stay whole.
    """
    found = table.argmax(axis=1)
    core = np.flatnonzero(inside)
    if len(core) > 1:
        penalty = sd * np.sqrt(2 * np.log(table.size))
        score, back = table[core[0]].copy(), []
        for i in core[1:]:
            jump = score.max() - penalty
            back.append(np.where(score >= jump, np.arange(len(score)), score.argmax()))
            score = np.maximum(score, jump) + table[i]
        at = int(score.argmax())
        for i, row in zip(core[::-1], [None, *back[::-1]], strict=True):
            at = at if row is None else int(row[at])
            found[i] = at
    return tuple(int(x) for x in found)
