"""What is public of columns, and the families of formulas: how a number or date may follow from one, two or three others.

`FORMULAS` lists them. Each stands in one place: what is computed, the same as an expression of the schema, words, and which
columns are candidates, by types and limits alone. One replaced row moves the number of rows that break a candidate by 1 at most.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations, product
from math import comb

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.codes.counts import Counts

DAY = 86400.0  # seconds, in which dates count
MOST_LABELS = 64  # of a category whose labels are told apart; of others "missing" alone
LINEAR_CUTS = 48  # of a number's range, beside 1, 2, 5, 10, … of its steps
YEAR = 365.25 * DAY  # in seconds, on average
HALF = 0.5 + 2.0**-20  # of a step: what rounding may do, and floats
BLOCK = 1 << 14  # rows whose values stay in the processor's cache
CLOSE = (4, 16, 64, 256)  # two numbers are close within such a part of their range
CLOSE_STEPS = 64  # numbers with fewer steps are not measured by differences: categories do as well
LEAST_STEPS = 4  # of a sum
SUMS = (1.0, 10.0, 12.0, 24.0, 60.0, 100.0, 1000.0)  # what two parts of a whole add up to
YEARS = tuple(map(float, range(1980, 2031)))  # of a census or a survey: a year of birth and an age add up to it
SCALES = (1000.0, 100.0, 60.0, 24.0, 12.0, 10.0, 7.0)  # between units of money, length and time
BASES = (10, 12, 24, 60, 100, 1000, 10000)  # of parts: digits, hours and minutes, months
RELATIVE = (0.0, 0.1)  # products are exact, or within a tenth
LOOSE = 0.3  # of a column's range: a formula for it that leaves so much room says nothing
CONSTANT = 0.85  # of the rows: a part that nearly always has one value says nothing in a sum of two
MOST_THREE = 8000  # candidates with three sources: beyond, there are too many numbers to look for them


@dataclass(frozen=True)
class Column:
    """Codes first, …, first + steps − 1 are the values low, low + step, …; the others stand for words or missing cells."""

    name: str
    kind: str  # "label", "number", "date" or "datetime"; dates count in seconds
    size: int  # how many codes there are
    missing: int = -1  # the code of missing cells; −1 where there is none
    first: int = 0  # the first code that is a value; labels have no values
    steps: int = 0  # how many codes are values
    low: float = 0.0  # the first value
    step: float = 1.0  # from one value to the next
    labels: tuple[str, ...] = ()  # of a category, by code; of numbers none
    holes: float = 0.0  # the share of missing cells, as far as it is known
    usual: float = 0.0  # the share of its most frequent value, as far as it is known
    numbers: tuple[float, ...] = ()  # that labels begin with, NaN where one begins with none; nothing where few do

    @property
    def often_missing(self) -> bool:
        """Whether more than a few cells seem to be missing."""
        return self.holes > 0.005

    @property
    def has_words(self) -> bool:
        """Whether cells may hold words among its values."""
        return self.kind != "label" and self.size - self.steps > (self.missing >= 0)

    @property
    def always_there(self) -> bool:
        """Whether every cell is a number or a date."""
        if self.kind == "label":
            return self.missing < 0 and len(self.numbers) > 0 and bool(np.isfinite(self.numbers).all())
        return self.size == self.steps

    @property
    def high(self) -> float:
        """The last value."""
        return self.low + self.step * (self.steps - 1)

    @property
    def span(self) -> float:
        """From the first value to the last."""
        return self.step * max(self.steps - 1, 1)

    @property
    def is_number(self) -> bool:
        """Whether it holds numbers, not dates or labels."""
        return self.kind == "number"

    @property
    def is_date(self) -> bool:
        """Whether it holds dates, with or without a time of day."""
        return self.kind in ("date", "datetime")

    def values(self, codes: Array) -> Floats:
        """Values of codes, NaN where there is none."""
        if self.numbers:
            return np.array([*self.numbers, np.nan])[np.minimum(codes, len(self.numbers))]
        place = codes.astype(np.float64) - self.first
        return np.where((place >= 0) & (place < self.steps), self.low + self.step * place, np.nan)

    def edges(self, most_single: int) -> Integers:
        """The codes at which cells begin, and the end: a cell for each label and word, for 0 and the limits, and for ranges.

        Numbers with up to `most_single` values have a cell for each.
        """
        if self.kind == "label" and self.size > MOST_LABELS:
            ends = [] if self.missing < 0 else [self.missing, self.missing + 1]
            return np.unique([0, *ends, self.size])
        if self.kind == "label" or self.steps <= most_single:
            return np.arange(self.size + 1)
        cuts = {0, 1, self.steps - 1, self.steps, *np.linspace(0, self.steps, LINEAR_CUTS + 1).astype(int).tolist()}
        zero = round(-self.low / self.step)
        if self.is_number and -self.steps < zero < 2 * self.steps:
            powers = range(len(str(self.steps)) + 1)
            away = [digit * 10**power for power in powers for digit in (1, 2, 5)]
            cuts |= {zero, zero + 1, *(zero + d for d in away), *(zero - d + 1 for d in away)}
        inside = [self.first + cut for cut in cuts if 0 <= cut <= self.steps]
        return np.unique([*range(self.first), *inside, *range(self.first + self.steps, self.size + 1)])


def can_be_computed(column: Column, sources: Sequence[Column]) -> bool:
    """Whether numbers of these sources can stand for all that a column may hold."""
    required = column.missing < 0
    return not column.has_words and (not required or all(source.always_there for source in sources))


Propose = Callable[["Formula", Sequence[Column]], Iterator["Candidate"]]


@dataclass(frozen=True)
class Formula:
    """One family. `value` takes a constant and the sources' values; `expression` and `words` name them {k}, {a}, {b}, {c}."""

    name: str
    value: Callable[..., Floats]
    expression: str
    words: str
    propose: Propose
    soft: float = 0.05  # of the rows: up to so many that break it, the column is measured by its difference
    handicap: float = 0.0  # of the rows: where several explain a column alike, the simpler one is preferred


@dataclass(frozen=True)
class Candidate:
    """A formula for one column: it is broken where the two are farther apart than slack + relative·|value|."""

    formula: Formula
    target: int
    sources: tuple[int, ...]
    k: float = 0.0
    slack: float = 0.0
    relative: float = 0.0

    @property
    def name(self) -> str:
        """Its formula's."""
        return self.formula.name

    def may_replace(self, columns: Sequence[Column]) -> bool:
        """Whether its column may be computed instead of measured: formulas give no words, and nothing of what is none."""
        return can_be_computed(columns[self.target], [columns[j] for j in self.sources])

    @property
    def loose(self) -> bool:
        """Whether a sharper formula for the same column should replace it."""
        return self.name in ("order", "close") or self.relative > 0

    @property
    def handicap(self) -> float:
        """Of the rows: what a simpler or sharper formula is ahead by."""
        taken = self.name.startswith("sum") and self.k < 0  # a sum is simpler than what is left of one
        return self.formula.handicap + (0.05 if self.relative else 0.0) + (0.02 if taken else 0.0)

    @property
    def orders(self) -> tuple[tuple[int, int], ...]:
        """Pairs of columns of which it says that the first is never above the second."""
        both = (self.sources[0], self.target), (self.target, self.sources[0])
        return {"equal": both, "order": both[:1] if self.k > 0 else both[1:]}.get(self.name, ())

    def breaks(self, values: Sequence[Floats], guess: Floats) -> Array:
        """Which rows break it: those alone in which all values are there."""
        own = values[self.target]
        if self.name == "order":
            return np.asarray((own - guess) * self.k < -self.slack)
        allowed = self.slack + self.relative * np.abs(guess) if self.relative else self.slack
        return np.asarray(np.abs(own - guess) > allowed)

    def without(self, values: Sequence[Floats], guess: Floats) -> Array:
        """In which rows the column is missing and its formula is not, or the other way round."""
        return np.asarray(np.isnan(values[self.target]) != np.isnan(guess))


@dataclass(frozen=True)
class Broken:
    """Kernel: how many rows break each candidate, and in how many just one of the two sides is missing."""

    columns: tuple[Column, ...]
    candidates: tuple[Candidate, ...]

    def __call__(self, batch: Array) -> Counts:
        """Count a batch of codes."""
        needed = {j for c in self.candidates for j in (c.target, *c.sources)}
        broken = np.zeros((len(self.candidates), 2), dtype=np.int64)
        for start in range(0, len(batch), BLOCK):
            part = batch[start : start + BLOCK]
            values = [c.values(part[:, j]) if j in needed else np.empty(0) for j, c in enumerate(self.columns)]
            last, guess = None, np.empty(0)
            for i, candidate in enumerate(self.candidates):
                own = candidate.formula, candidate.sources, candidate.k
                if own != last:
                    with np.errstate(all="ignore"):
                        guess = candidate.formula.value(candidate.k, *(values[s] for s in candidate.sources))
                    last = own
                broken[i, 0] += np.count_nonzero(candidate.breaks(values, guess))
                broken[i, 1] += np.count_nonzero(candidate.without(values, guess))
        return Counts((broken,))


FORMULAS: list[Formula] = []  # all families, in the order in which they are looked at
_DAYS = "floor({a} / 86400) * 86400"
_MINUTES = "(floor({a} / 100) * 60 + {a} % 100 + {k} * {b}) % 1440"


def family(
    name: str, value: Callable[..., Floats], expression: str, words: str, soft: float = 0.05, handicap: float = 0.0
) -> Callable[[Propose], Propose]:
    """List a formula with the function below: which columns are candidates for it, by types and limits."""

    def listed(propose: Propose) -> Propose:
        FORMULAS.append(Formula(name, value, expression, words, propose, soft, handicap))
        return propose

    return listed


def _clock(k: float, a: Floats, b: Floats) -> Floats:
    minutes = np.mod(np.floor(a / 100) * 60 + np.mod(a, 100) + k * b, 1440)
    return np.floor(minutes / 60) * 100 + np.mod(minutes, 60)


def _day(a: Floats) -> Floats:
    return np.floor(a / DAY)


def calendar(a: Floats) -> tuple[Floats, Floats]:
    """Months since 1970 of seconds, and the day of the month; NaN where there is none."""
    there = np.isfinite(a)
    days = np.where(there, _day(a), 0).astype("datetime64[D]")
    months = days.astype("datetime64[M]")
    both = months.astype(np.int64), (days - months).astype(np.int64) + 1
    return np.where(there, both[0], np.nan), np.where(there, both[1], np.nan)


def _pick(columns: Sequence[Column], numbers: bool) -> list[int]:
    return [j for j, c in enumerate(columns) if (c.is_number if numbers else c.is_date) and c.steps > 2]


def _alike(one: Column, other: Column) -> bool:
    """Whether two ranges overlap, and neither is many times the other."""
    overlap = min(one.high, other.high) - max(one.low, other.low)
    return overlap > 0 and (one.is_date or 0.1 <= one.span / other.span <= 10)


def ends(columns: Sequence[Column], i: int, j: int) -> tuple[int, int]:
    """Which of two columns is measured from the other: a base is there in every row where one is, and has the smaller range."""
    i, j = sorted((i, j), key=lambda x: (columns[x].often_missing, columns[x].span, x))
    return i, j


def _pairs(columns: Sequence[Column]) -> Iterator[tuple[int, int]]:
    """Base and end of all pairs of numbers, and of dates, with like ranges."""
    for kind in (True, False):
        for i, j in combinations(_pick(columns, kind), 2):
            if _alike(columns[i], columns[j]):
                yield ends(columns, i, j)


def widest(columns: Sequence[Column], *chosen: int) -> tuple[int, ...]:
    """Some columns, the one that a sum of the others should give last: errors of small ones do not drown in it."""
    return tuple(sorted(chosen, key=lambda x: (columns[x].span, columns[x].often_missing, x)))


@family("equal", lambda k, a: a, "{a}", "{t} equals {a}")
def _propose_equal(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    """Ranges may be learned, and of two copies noise may make one much wider than the other."""
    for numbers in (True, False):
        for i, j in combinations(_pick(columns, numbers), 2):
            base, end = ends(columns, i, j)
            overlap = min(columns[i].high, columns[j].high) - max(columns[i].low, columns[j].low)
            if overlap > 0 and columns[base].kind == columns[end].kind:
                yield Candidate(formula, end, (base,), slack=HALF * columns[end].step)


@family("order", lambda k, a: a, "{a}", "{t} is never {side} {a}", handicap=0.1)
def _propose_order(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for base, end in _pairs(columns):
        slack = 0.0 if columns[base].kind == columns[end].kind else DAY
        for sign in (1.0, -1.0):
            yield Candidate(formula, end, (base,), sign, slack)


@family("close", lambda k, a: a, "{a}", "{t} lies close to {a}", 0.25, 0.15)
def _propose_close(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for base, end in _pairs(columns):
        if min(columns[base].steps, columns[end].steps) > CLOSE_STEPS:
            for part in CLOSE:
                yield Candidate(formula, end, (base,), slack=max(columns[end].span / part, columns[end].step))


@family("multiple", lambda k, a: a * k, "{a} * {k}", "{t} is {k} times {a}")
def _propose_scaled(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for a, t in permutations(_pick(columns, True), 2):
        for k in SCALES:
            if 0.3 <= columns[t].span / (columns[a].span * k) <= 3:
                yield Candidate(formula, t, (a,), k, HALF * columns[t].step)


@family("rest", lambda k, a: k - a, "{k} - {a}", "{t} and {a} add up to {k}")
def _propose_rest(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for i, j in combinations(_pick(columns, True), 2):
        a, t = sorted((i, j), key=lambda x: (columns[x].low, x))  # an age is simpler than a year
        years = columns[t].low >= 1000
        for k in (YEARS if columns[a].span > 5 else ()) if years else SUMS:
            if columns[a].low < k and (years or (0.3 <= columns[t].high / k <= 3 and 0.3 <= columns[a].high / k <= 3)):
                yield Candidate(formula, t, (a,), k, 1.0 if years else HALF * columns[t].step)


@family("quotient", lambda k, a: np.floor(a / k), "floor({a} / {k})", "{t} is {a} divided by {k}, rounded down")
def _propose_quotient(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for a, t in permutations(_pick(columns, True), 2):
        for k in BASES:
            if columns[t].step == 1 and columns[a].span >= 2 * k and 0.2 <= columns[t].span * k / columns[a].span <= 10:
                yield Candidate(formula, t, (a,), float(k), 0.5)


@family("remainder", lambda k, a: np.mod(a, k), "{a} % {k}", "{t} is what division of {a} by {k} leaves", handicap=0.01)
def _propose_remainder(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for a, t in permutations(_pick(columns, True), 2):
        for k in BASES:
            if columns[a].span >= 2 * k and columns[t].low >= -1 and 0.4 * k <= columns[t].high <= 3 * k:
                yield Candidate(formula, t, (a,), float(k), HALF * columns[t].step)


@family("age", lambda k, a: k - a / YEAR, "floor({k} - {a} / 31557600)", "{t} counts years since {a}")
def _propose_age(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for t in _pick(columns, True):
        if columns[t].step != 1 or not 10 < columns[t].span <= 250 or columns[t].low < -1:
            continue
        for a in _pick(columns, False):
            last = np.floor(columns[a].high / YEAR)
            for k in np.arange(last - 1, last + 30, 0.25):
                yield Candidate(formula, t, (a,), float(k), 1.0)


@family("hour", lambda k, a: np.floor(np.mod(a, DAY) / 3600), "hour({a})", "{t} is the hour of {a}")
@family("day of the month", lambda k, a: calendar(a)[1], "day({a})", "{t} is the day of the month of {a}")
@family("month", lambda k, a: np.mod(calendar(a)[0], 12) + 1, "month({a})", "{t} is the month of {a}")
@family("year", lambda k, a: np.floor(calendar(a)[0] / 12) + 1970, "year({a})", "{t} is the year of {a}")
def _propose_part(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    """Parts of dates: numbers whose limits are those of the part."""
    least, most = {"year": (1, 5000), "month": (6, 24), "day of the month": (20, 60), "hour": (8, 60)}[formula.name]
    for a in _pick(columns, False):
        for t in _pick(columns, True):
            own = columns[t]
            if own.step == 1 and least <= own.span <= most and (own.low >= 1000 or formula.name != "year"):
                yield Candidate(formula, t, (a,), slack=0.5)


@family("days", lambda k, a, b: _day(b) - _day(a), "days({a}, {b})", "{t} counts days from {a} to {b}", handicap=0.1)
def _propose_days(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for a, b in permutations(_pick(columns, False), 2):
        for t in _pick(columns, True):
            if columns[t].step == 1 and columns[t].span > 5 and columns[t].usual < CONSTANT:
                yield Candidate(formula, t, (a, b), slack=1.0)


@family("elapsed", lambda k, a, b: (b - a) / k, "({b} - {a}) / {k}", "{t} is the time from {a} to {b}", handicap=0.1)
def _propose_elapsed(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    for a, b in permutations(_pick(columns, False), 2):
        if "datetime" in (columns[a].kind, columns[b].kind):
            for t in _pick(columns, True):
                for k in (1.0, 60.0, 3600.0):
                    if columns[t].span * k <= 4 * max(columns[a].span, columns[b].span):
                        yield Candidate(formula, t, (a, b), k, 1.0)


@family(
    "later", lambda k, a, b: a + k * b, "{a} + {k} * {b}", "{t} lies {b} units of {k} seconds after {a}", handicap=0.04
)
@family(
    "days later",
    lambda k, a, b: _day(a) * DAY + k * b,
    _DAYS + " + {k} * {b}",
    "{t} lies {b} days {side} {a}",
    handicap=0.04,
)
def _propose_later(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    days = formula.name == "days later"
    for i, j in combinations(_pick(columns, False), 2):
        base, end = ends(columns, i, j)
        if days or columns[base].kind == columns[end].kind == "datetime":
            for d in _pick(columns, True):
                if columns[d].span > 5 and (columns[d].step == 1 or not days):
                    for unit, sign in product((DAY,) if days else (1.0, 60.0, 3600.0), (1, -1)):
                        yield Candidate(formula, end, (base, d), sign * unit, unit)


@family("product", lambda k, a, b: a * b, "{a} * {b}", "{t} is {a} times {b}", 0.1)
def _propose_product(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    numbers = _pick(columns, True)
    for a, b in combinations(numbers, 2):
        one, two = columns[a], columns[b]
        for t in set(numbers) - {a, b}:
            if columns[t].high > 1.5 * max(one.high, two.high) and columns[t].span > 50 * columns[t].step:
                for relative in RELATIVE:
                    slack = columns[t].step * (HALF if not relative else 1)
                    yield Candidate(formula, t, (a, b), slack=slack, relative=relative)


@family("ratio", lambda k, a, b: k * a / b, "{k} * {a} / {b}", "{t} is {k} times {a} over {b}", 0.1, 0.05)
def _propose_ratio(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    numbers = _pick(columns, True)
    for a, b in permutations(numbers, 2):
        for t in set(numbers) - {a, b}:
            if columns[t].step < 1 and columns[b].high > 1:
                for k in (1.0, 100.0):
                    if 0.1 <= columns[t].high / (k * max(columns[a].high, 1e-9)) <= 10 or columns[t].high <= 2 * k:
                        yield Candidate(formula, t, (a, b), k, columns[t].step, 0.02)


@family("sum", lambda k, a, b: a + k * b, "{a} + {k} * {b}", "{t} is {a} {side} {b}", handicap=0.03)
def _propose_sum(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    parts = [j for j in _pick(columns, True) if columns[j].usual < CONSTANT]
    for chosen in combinations(parts, 3):
        a, b, t = widest(columns, *chosen)
        if columns[t].steps > LEAST_STEPS and columns[b].span > columns[t].span / 50:
            slack = HALF * max(columns[j].step for j in chosen)
            for one, two, k in ((b, a, 1.0), (b, a, -1.0), (a, b, -1.0)):
                yield Candidate(formula, t, (one, two), k, slack)
            if columns[b].span > columns[t].span / 3:  # of two that are nearly as wide, either may follow
                for one, two, k in ((t, a, 1.0), (t, a, -1.0), (a, t, -1.0)):
                    yield Candidate(formula, b, (one, two), k, slack)


@family(
    "sum of three",
    lambda k, a, b, c: a + k * (b + c),
    "{a} + {k} * ({b} + {c})",
    "{t} is {a} {side} {b} {side} {c}",
    handicap=0.03,
)
def _propose_sum3(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    every = _pick(columns, True)
    numbers = [j for j in every if columns[j].steps > LEAST_STEPS]
    if comb(len(numbers), 4) > MOST_THREE:  # of many, those alone that have room for a sum
        numbers = [j for j in every if columns[j].steps > CLOSE_STEPS]
    for chosen in combinations(numbers, 4) if comb(len(numbers), 4) <= MOST_THREE else ():
        *sources, t = widest(columns, *chosen)
        # A fee that few pay may complete a sum, two say nothing.
        rare = sum(columns[j].usual >= CONSTANT for j in chosen)
        if columns[t].steps > CLOSE_STEPS and columns[sources[-1]].span > columns[t].span / 50 and rare < 2:
            yield Candidate(formula, t, tuple(sources), 1.0, 2 * columns[t].step)
            for j in sources:  # of those that are nearly as wide, any may be the sum
                if columns[j].span > columns[t].span / 3:
                    yield Candidate(formula, j, tuple(x for x in chosen if x != j), 1.0, 2 * columns[j].step)
            for a, b, c in ((0, 1, 2), (1, 0, 2), (2, 0, 1)):  # one is the sum, and the others are taken from it
                yield Candidate(formula, t, (sources[a], sources[b], sources[c]), -1.0, 2 * columns[t].step)


@family(
    "clock",
    _clock,
    f"floor({_MINUTES} / 60) * 100 + {_MINUTES} % 60",
    "{t} is {b} minutes {side} {a}, both written as hours and minutes",
)
def _propose_clock(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    numbers = _pick(columns, True)
    clocks = [j for j in numbers if columns[j].step == 1 and columns[j].low >= -1 and 1000 <= columns[j].high <= 5000]
    for i, j in combinations(clocks, 2):
        base, end = ends(columns, i, j)
        for d in set(numbers) - {i, j}:
            if columns[d].step == 1:
                for sign in (1.0, -1.0):
                    yield Candidate(formula, end, (base, d), sign, 0.5)


@family(
    "installment",
    lambda k, a, b, c: a * (b / 1200) / (1 - (1 + b / 1200) ** -c),
    "{a} * ({b} / 1200) / (1 - (1 + {b} / 1200) ** (0 - {c}))",
    "{t} repays {a} at {b} percent in {c} months",
    0.1,
)
def _propose_annuity(formula: Formula, columns: Sequence[Column]) -> Iterator[Candidate]:
    numbers = [j for j in _pick(columns, True) if columns[j].steps > CLOSE_STEPS]  # small counts lie near anything
    rates = [j for j in numbers if columns[j].high <= 100 and columns[j].step < 1]
    whole = [j for j in _pick(columns, True) if columns[j].low >= 0 and columns[j].step == 1]
    terms = [j for j in whole if 5 < columns[j].high <= 600]
    terms += [j for j, c in enumerate(columns) if c.numbers and 5 < np.nanmax(c.numbers) <= 600]
    for rate in rates:
        for term in terms:
            for amount, t in permutations(set(numbers) - {rate, term}, 2):
                if columns[amount].high > 5 * columns[t].high:
                    yield Candidate(formula, t, (amount, rate, term), slack=columns[t].step, relative=0.02)


def proposals(columns: Sequence[Column]) -> tuple[Candidate, ...]:
    """All candidates that say something, those that share a computation side by side."""
    every = (candidate for formula in FORMULAS for candidate in formula.propose(formula, columns))
    return tuple(c for c in every if c.name == "order" or c.slack <= LOOSE * columns[c.target].span)
