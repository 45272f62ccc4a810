"""The public families that are counted in tables of two columns: implications, equivalences, exclusions, thresholds, functions.

A literal says that a column has one value: a label, a word, missing, 0, a limit. A threshold is a range of a number that a
literal excludes. All counts follow from one matrix of pair tables over cells, and one replaced row moves each of them by 1 at
most: for a function from A to B the rows that break it are n − Σ_a max_b n_ab, and of two tables that differ in one row each
largest count loses and gains at most one (docs/proofs/relations.md).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from covey.engine.arrays import Array, Floats, Integers
from covey.engine.codes.domain import Domain
from covey.engine.relations.formulas import Candidate, Column

MOST_CELLS = 3000  # of all columns, about
IMPLIES, EQUIVALENT, EXCLUDES, THRESHOLD = range(4)
MOST_VALUES = 14  # of a column whose values are literals
MOST_SOURCES = 130  # cells of a column that another one may be a function of
MOST_GROUPS = 8  # labels of a column that thresholds are looked for in
THRESHOLDS = 16  # about equal parts of a number's rows, between which thresholds lie
THERE, CLEARLY = 2.0, 3.5  # deviations: of thousands of pairs next to none is about rows that nobody has
LETTERS = (1, 2, 3)  # leading characters of codes


@dataclass(frozen=True)
class Cells:
    """Kernel step: the cells of codes, a column per column."""

    edges: tuple[Integers, ...]

    @cached_property
    def domain(self) -> Domain:
        """How many cells each column has."""
        return Domain(tuple(len(edges) - 1 for edges in self.edges), (False,) * len(self.edges))

    def __call__(self, codes: Array) -> Integers:
        """Cells of a batch of codes."""
        return np.stack([np.searchsorted(e, codes[:, j], side="right") - 1 for j, e in enumerate(self.edges)], axis=1)

    def codes(self, cells: Integers, generator: np.random.Generator) -> Integers:
        """Some codes of cells, uniform within each."""
        low = np.stack([e[:-1][cells[:, j]] for j, e in enumerate(self.edges)], axis=1)
        high = np.stack([e[1:][cells[:, j]] for j, e in enumerate(self.edges)], axis=1)
        return generator.integers(low, high)


def cells_of(columns: Sequence[Column]) -> Cells:
    """Cells of all columns, as fine as their number allows."""
    single = 128
    while True:
        found = Cells(tuple(column.edges(single) for column in columns))
        if found.domain.total <= MOST_CELLS or single <= 16:
            return found
        single //= 2


@dataclass(frozen=True)
class Literal:
    """A column has a value of one of its cells, from first to last."""

    column: int
    first: int
    last: int

    @property
    def single(self) -> bool:
        """Whether it is one cell."""
        return self.first == self.last


@dataclass(frozen=True)
class Function:
    """One column follows from another, cell by cell; `map` is known where labels give it away, −1 where they do not."""

    target: int
    source: int
    map: tuple[int, ...] = ()
    letters: int = 0  # leading characters that make up the target's label; 0 for all
    # As those of a formula: nothing sharper replaces it, and it orders nothing.
    name: ClassVar[str] = "function"
    loose: ClassVar[bool] = False
    orders: ClassVar[tuple[tuple[int, int], ...]] = ()

    @property
    def sources(self) -> tuple[int, ...]:
        """The other column."""
        return (self.source,)

    def table(self, tables: Integers, cells: Domain) -> Integers:
        """The table of the two columns, from the matrix of all pair tables: the source's cells by the target's."""
        return np.asarray(tables[cells.block(self.source), cells.block(self.target)])

    def broken(self, tables: Integers, cells: Domain) -> Integers:
        """In how many rows the column is not what the function says, from the matrix of all pair tables."""
        return np.array([_unlike(self.table(tables, cells), self)], dtype=np.int64)


@dataclass(frozen=True)
class Tabled:
    """Public: all candidates that are counted in pair tables. Literals are rows of `pairs`: kind, first, second."""

    cells: Cells
    literals: tuple[Literal, ...]
    pairs: Integers
    functions: tuple[Function, ...]

    def __len__(self) -> int:
        return len(self.pairs) + len(self.functions)

    def broken(self, tables: Integers) -> Integers:
        """How many rows break each candidate, from the matrix of all pair tables."""
        starts = self.cells.domain.starts  # all columns lie side by side
        first = np.array([starts[x.column] + x.first for x in self.literals], dtype=np.int64)
        last = np.array([starts[x.column] + x.last + 1 for x in self.literals], dtype=np.int64)
        diagonal = np.concatenate([[0], np.cumsum(np.diag(tables))])
        summed = np.concatenate([np.zeros((len(tables), 1), dtype=tables.dtype), np.cumsum(tables, axis=1)], axis=1)
        kind, one, two = self.pairs.T
        both = summed[first[one], last[two]] - summed[first[one], first[two]]
        x, y = diagonal[last[one]] - diagonal[first[one]], diagonal[last[two]] - diagonal[first[two]]
        found = np.select([kind == IMPLIES, kind == EQUIVALENT], [x - both, x + y - 2 * both], both)
        unlike = [_unlike(f.table(tables, self.cells.domain), f) for f in self.functions]
        return np.concatenate([found, unlike]).astype(np.int64)

    def clear(self, counts: Integers, sd: float, n: int) -> Array:
        """Which pairs speak of rows that are there, beyond the noise of single columns.

        Each literal must hold in some rows and fail in some, and what the pair says must be about enough of them.
        """
        starts, summed = self.cells.domain.starts, np.concatenate([[0], np.cumsum(counts)])
        first = np.array([starts[x.column] + x.first for x in self.literals], dtype=np.int64)
        last = np.array([starts[x.column] + x.last + 1 for x in self.literals], dtype=np.int64)
        held, noise = summed[last] - summed[first], sd * np.sqrt(last - first)
        there, absent = held / noise, (n - held) / noise
        kind, one, two = self.pairs.T
        both, neither = there[one] + there[two], absent[one] + absent[two]
        about = np.select(
            [kind == IMPLIES, kind == EQUIVALENT], [there[one] + absent[two], np.minimum(both, neither)], both
        )
        some = np.minimum(there, absent) >= THERE
        return np.asarray(some[one] & some[two] & (about >= CLEARLY * np.sqrt(2)))

    def by_chance(self, shares: Sequence[Floats], n: int) -> Floats:
        """How many rows would break each candidate if columns with these shares of cells were independent."""
        p = np.array([shares[x.column][x.first : x.last + 1].sum() for x in self.literals])
        kind, one, two = self.pairs.T
        x, y = p[one], p[two]
        found = np.select([kind == IMPLIES, kind == EQUIVALENT], [x * (1 - y), x + y - 2 * x * y], x * y)
        return n * np.concatenate([found, [_unlike_by_chance(shares, f) for f in self.functions]])


def _unlike(table: Integers, function: Function) -> int:
    """Rows in which a column is not what its function says, for the best function or the one that labels give away."""
    if not function.map:
        return int(table.sum() - table.max(axis=1).sum())
    known = np.flatnonzero(np.array(function.map) >= 0)
    return int(table[known].sum() - table[known, np.array(function.map)[known]].sum())


def _unlike_by_chance(shares: Sequence[Floats], function: Function) -> float:
    if not function.map:
        return float(1 - shares[function.target].max())
    known = np.flatnonzero(np.array(function.map) >= 0)
    own = shares[function.target][np.array(function.map)[known]]
    return float((shares[function.source][known] * (1 - own)).sum())


def tabled(columns: Sequence[Column], cells: Cells, shares: Sequence[Floats]) -> Tabled:
    """All candidates of columns whose cells are these; thresholds part about equal shares, which are noisy and public."""
    single = [x for j, column in enumerate(columns) for x in _single(j, column, cells.edges[j])]
    ranges = [x for j, column in enumerate(columns) for x in _ranges(j, column, cells.edges[j], shares[j])]
    literals = (*single, *ranges)
    of, k = np.array([x.column for x in literals], dtype=np.int64), len(single)
    apart = of[:k, None] != of[None, :k]
    one, two = np.nonzero(apart)
    up = one < two
    few = np.array([cells.domain.sizes[x.column] <= MOST_GROUPS for x in single], dtype=bool)
    lone, far = np.nonzero((of[:k, None] != of[None, k:]) & few[:, None])
    pairs = [
        (np.full(len(one), IMPLIES), one, two),
        (np.full(up.sum(), EQUIVALENT), one[up], two[up]),
        (np.full(up.sum(), EXCLUDES), one[up], two[up]),
        (np.full(len(lone), THRESHOLD), lone, far + k),
    ]
    table = np.concatenate([np.stack(part, axis=1) for part in pairs]).astype(np.int64)
    return Tabled(cells, literals, table, tuple(_functions(columns, cells)))


def _single(j: int, column: Column, edges: Integers) -> Iterator[Literal]:
    """The literals of a column: all values of small ones; of others missing, words, 0 and the lower limit."""
    codes, count = edges[:-1].tolist(), len(edges) - 1
    if count < 2:
        return
    zero = column.first + round(-column.low / column.step) if column.is_number else -1
    ends = (zero, column.first) if column.is_number else ()
    for cell, code in enumerate(codes):
        word = not column.first <= code < column.first + column.steps
        named = code == column.missing if column.kind == "label" else word or code in ends
        known = column.kind != "label" or column.labels  # of bins nobody can say what a cell is
        if edges[cell + 1] - code == 1 and (named or (known and count <= MOST_VALUES)):
            yield Literal(j, cell, cell)


def _ranges(j: int, column: Column, edges: Integers, shares: Floats) -> Iterator[Literal]:
    """The ends of a number's range, from some of its cells to the last, and from the first to some: of each share one."""
    if column.kind == "label" or column.steps <= MOST_VALUES:
        return
    inside = np.flatnonzero((edges[:-1] >= column.first) & (edges[:-1] < column.first + column.steps))
    below = np.cumsum(shares[inside])[:-1]
    parts = np.searchsorted(below, np.arange(1, THRESHOLDS) / THRESHOLDS * below[-1])
    for cell in np.unique(inside[1 + parts]):
        yield Literal(j, int(cell), int(inside[-1]))
        yield Literal(j, int(inside[0]), int(cell) - 1)


def _functions(columns: Sequence[Column], cells: Cells) -> Iterator[Function]:
    sizes = cells.domain.sizes
    for b, target in enumerate(columns):
        if target.kind != "label" or not target.labels or not 2 <= sizes[b] == target.size:
            continue
        for a, source in enumerate(columns):
            if a == b:
                continue
            if source.kind == "label" and source.labels and sizes[a] == source.size:
                if a < b and set(source.labels) == set(target.labels):
                    yield Function(b, a, _by_label(source, target, 0))
                for letters in LETTERS:
                    found = _by_label(source, target, letters)
                    longer = max(map(len, source.labels)) > letters
                    if longer and 2 * sum(x >= 0 for x in found) > len(found) and len(set(found) - {-1}) > 1:
                        yield Function(b, a, found, letters)
            known = source.kind != "label" or (source.labels and sizes[a] == source.size)
            if 2 <= sizes[a] <= MOST_SOURCES and known:
                yield Function(b, a)


def _by_label(source: Column, target: Column, letters: int) -> tuple[int, ...]:
    """For each label of one column, the place of its first letters among another one's; missing goes with missing."""
    places = {label: j for j, label in enumerate(target.labels)}
    found = [places.get(label[:letters] if letters else label, -1) for label in source.labels]
    return (*found, *((target.missing,) if source.missing >= 0 else ()))


class State:
    """Which columns are computed or measured by what differs, what follows from what, and which candidates that leaves."""

    def __init__(self, columns: Sequence[Column], of: Tabled, candidates: Sequence[Candidate]) -> None:
        p = len(columns)
        self.of, self.columns = of, columns
        self.dropped, self.lost, self.coded, self.loose, self.ruled, self.copied = np.zeros((6, p), dtype=bool)
        self._together: set[frozenset[int]] = set()  # pairs of columns that are missing together, as told before
        self.above = np.eye(p, dtype=bool)  # [x, y]: x is computed by way of y
        self._single(columns)
        computed: list[Function | Candidate] = [*of.functions, *candidates]
        self._target = np.array([c.target for c in computed], dtype=np.int64)
        sources = [[*c.sources, *(c.sources[-1:] * (3 - len(c.sources)))] for c in computed]
        self.sources = np.array(sources, dtype=np.int64).reshape(-1, 3)
        self._exact = np.array([c.name in ("function", "equal") for c in computed], dtype=bool)
        self._table = np.arange(len(computed)) < len(of.functions)
        self._equal = np.array([c.name == "equal" for c in computed], dtype=bool)
        ends = [c.orders[0] if len(c.orders) == 1 else (-1, -1) for c in computed]
        self._low, self._high = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        self.below = np.eye(p, dtype=bool)  # [x, y]: x is never above y
        self._sharp = np.array([not c.loose for c in computed], dtype=bool)

    def _single(self, columns: Sequence[Column]) -> None:
        """Literals, and what follows from them by themselves: a column has one value."""
        of = self.of
        self._column = np.array([x.column for x in of.literals], dtype=np.int64)
        codes = [of.cells.edges[x.column][x.first] for x in of.literals]
        missing = [columns[x.column].missing == c for x, c in zip(of.literals, codes, strict=True)]
        self._missing = np.array(missing, dtype=bool)  # there may be no literal
        k = self._k = next((i for i, x in enumerate(of.literals) if not x.single), len(of.literals))
        same = self._column[:k, None] == self._column[None, :k]
        self.implied = np.eye(2 * k, dtype=bool)  # [i, j]: literal i, or k + i for its negation, implies j
        self.implied[:k, k:] |= same & ~np.eye(k, dtype=bool)
        for j in range(len(columns)):
            own = np.flatnonzero(self._column[:k] == j)
            if len(own) == 2 == of.cells.domain.sizes[j]:
                a, b = own
                self.implied[k + a, b] = self.implied[k + b, a] = True

    def allowed(self) -> Array:
        """Which candidates make sense after what was accepted."""
        kind, one, two = self.of.pairs.T
        free = ~self.dropped[self._column] & (~self.coded[self._column] | self._missing)
        k, known = self._k, np.zeros(len(kind), dtype=bool)
        up = kind != THRESHOLD
        i, j = one[up], two[up]
        forth, back, never = self.implied[i, j], self.implied[j, i], self.implied[i, k + j]
        kinds = [kind[up] == IMPLIES, kind[up] == EQUIVALENT, kind[up] == EXCLUDES]
        known[up] = np.select(kinds, [forth, forth & back, never])
        far = ~up  # a threshold says nothing where the literal implies a value of the other column
        told = np.zeros((k, len(self.columns)), dtype=bool)
        of, to = np.nonzero(self.implied[:k, :k])
        told[of, self._column[to]] = True
        known[far] = told[one[far], self._column[two[far]]]
        target, sources = self._target, self.sources
        able = ~self.dropped[target] & (~self.coded[target] | (self.loose[target] & self._sharp) | self._equal)
        uncopied = self.dropped & ~self.copied
        gone = np.where(self._table, uncopied[sources].any(axis=1), self.lost[sources].any(axis=1))
        able &= ~gone & ~self.above[sources, target[:, None]].any(axis=1)
        able &= self._exact | ~self.ruled[target]
        equal = self.below & self.below.T & ~np.eye(len(self.below), dtype=bool)
        able &= ~equal[sources[:, 0], sources[:, 1]]  # nothing lies between two copies
        able &= (self._low < 0) | ~self.below[self._low, self._high]  # an order that follows is no news
        return np.concatenate([free[one] & free[two] & ~known, able])

    def learn_literals(self, kind: int, i: int, j: int) -> None:
        """Take an implication, an equivalence or an exclusion between single literals as given, with all that follows."""
        k = self._k
        pairs = {IMPLIES: [(i, j)], EQUIVALENT: [(i, j), (j, i)], EXCLUDES: [(i, k + j)]}[kind]
        for a, b in pairs:
            self.implied[a, b] = True
            self.implied[(b + k) % (2 * k), (a + k) % (2 * k)] = True
        while True:
            more = (self.implied.astype(np.float32) @ self.implied.astype(np.float32)) > 0
            if (more == self.implied).all():
                break
            self.implied = more
        for x in (i, j):
            self.ruled[self._column[x]] |= not self._missing[x]

    def learn_column(self, what: Function | Candidate, dropped: bool) -> None:
        """Take a column as computed from others, or as measured by what differs.

        Where a formula computes it, other formulas may start from it: they start from what it is computed from.
        """
        (self.dropped if dropped else self.coded)[what.target] = True
        # What starts from a copy starts from its original as well, and need not be looked at twice.
        self.lost[what.target] = what.name == "equal" or (dropped and isinstance(what, Function))
        self.copied[what.target] = dropped and what.name == "equal"
        self.loose[what.target] = what.loose
        own = self.above[:, what.target].copy()
        for source in what.sources:
            self.above[own] |= self.above[source]
        self.learn_orders(what.orders)

    def learn_orders(self, orders: Sequence[tuple[int, int]]) -> None:
        """Take it as given that the first column of each pair is never above the second, with all that follows."""
        for low, high in orders:
            self.below |= np.outer(self.below[:, low], self.below[high])

    def missing_together(self) -> list[frozenset[int]]:
        """Pairs of columns that are missing in the same rows by what is accepted, each told once."""
        holes = np.flatnonzero(self._missing[: self._k])
        both = self.implied[np.ix_(holes, holes)]
        one, two = np.nonzero(np.triu(both & both.T, 1))
        found = {frozenset(map(int, self._column[holes[[i, j]]])) for i, j in zip(one, two, strict=True)}
        new = sorted(found - self._together, key=sorted)
        self._together |= found
        return new

    def alike(self, i: int) -> Array:
        """The literals that hold in the same rows as one of them, as far as is known."""
        return self.implied[i, : self._k] & self.implied[: self._k, i]

    def twins(self, kind: int, i: int, j: int) -> Array:
        """Candidates of one kind that say the same, given what is implied: what is known of one is known of all."""
        kinds, one, two = self.of.pairs[self.of.pairs[:, 0] == kind].T
        out, x, y = np.zeros(len(self.of.pairs), dtype=bool), self.alike(i), self.alike(j)
        out[self.of.pairs[:, 0] == kind] = (x[one] & y[two]) | (x[two] & y[one] & (kinds != IMPLIES))
        return out


def _alike(candidate: Candidate) -> tuple[tuple[Hashable, ...], tuple[int, ...]]:
    """What a formula says, and of which columns: an order of the lower and the higher one, whichever is measured from which."""
    if candidate.name == "order":
        return ("order",), candidate.orders[0]
    return (candidate.name, candidate.k), (candidate.target, *candidate.sources)


class Analogies:
    """Candidates that say of other columns what an accepted one says: by names and labels alone, which are public.

    Names are alike where one word is put in place of another, or added, all through: c_jail_in and c_jail_out beside r_jail_in
    and r_jail_out. Of two columns with one label a third that has it may be the next.
    """

    def __init__(self, columns: Sequence[Column], of: Tabled, candidates: Sequence[Candidate]) -> None:
        self._words = [frozenset(re.findall(r"[A-Z]?[a-z]+|[A-Z]+|\d+", column.name)) for column in columns]
        said = [self._said(columns[x.column], x, of) for x in of.literals]
        at = [x.column for x in of.literals]
        self._every: list[tuple[tuple[Hashable, ...], tuple[int, ...]]] = [  # what each says, and of which columns
            *((("literals", kind, said[one], said[two]), (at[one], at[two])) for kind, one, two in of.pairs.tolist()),
            *(((f.name, bool(f.map), f.letters), (f.target, f.source)) for f in of.functions),
            *(_alike(c) for c in candidates),
        ]
        self._group: dict[Hashable, list[int]] = defaultdict(list)
        for i, (key, _) in enumerate(self._every):
            self._group[key].append(i)

    @staticmethod
    def _said(column: Column, literal: Literal, of: Tabled) -> Hashable:
        """What a literal says that another column's can say too: a label, or that its cell is missing."""
        code = int(of.cells.edges[literal.column][literal.first])
        if literal.single and code == column.missing:
            return None
        return column.labels[code] if literal.single and code < len(column.labels) else literal

    def of(self, i: int) -> list[int]:
        """The candidates that one suggests."""
        key, own = self._every[i]
        labelled = key[0] == "literals" and key[2] == key[3] and isinstance(key[2], str)
        found = []
        for j in self._group[key]:
            pairs = list(zip(own, self._every[j][1], strict=True))
            words = [(self._words[a], self._words[b]) for a, b in pairs if a != b]
            changes = {(a - b, b - a) for a, b in words}
            if len(words) == 1 and labelled:
                found.append(j)
            elif len(changes) == 1 and (len(words) > 1 or key[0] == "equal"):
                ((gone, come),) = changes
                through = not any(gone & self._words[a] for a, b in pairs if a == b)
                if len(gone) <= 1 and len(come) <= 1 and through and all(a & b for a, b in words):
                    found.append(j)
        return found
