"""What accepted relations leave open: public bookkeeping over candidates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covey.core.arrays import Array
from covey.core.relations.columns import Column
from covey.core.relations.formulas import Candidate
from covey.core.relations.literals import EQUIVALENT, EXCLUDES, IMPLIES, THRESHOLD, Tabled


class State:
    """Which columns are computed or measured by what differs, what follows from what, and which candidates that leaves."""

    def __init__(self, columns: Sequence[Column], of: Tabled, candidates: Sequence[Candidate]) -> None:
        p = len(columns)
        self.of, self.columns = of, columns
        self.dropped, self.lost, self.coded, self.loose, self.ruled = (np.zeros(p, dtype=bool) for _ in range(5))
        self.above = np.eye(p, dtype=bool)  # [x, y]: x is computed by way of y
        self._single(columns)
        self._target = np.array([f.target for f in of.functions] + [c.target for c in candidates], dtype=np.int64)
        sources = [(f.source,) for f in of.functions] + [c.sources for c in candidates]
        self._sources = np.array([[*s, *(s[-1:] * (3 - len(s)))] for s in sources], dtype=np.int64).reshape(-1, 3)
        names = ["function" if not f.map else "map" for f in of.functions] + [c.formula.name for c in candidates]
        self._exact = np.array([name in ("function", "map", "equal") for name in names], dtype=bool)
        self._table = np.arange(len(names)) < len(of.functions)
        ends = [(-1, -1) for _ in of.functions] + [c.orders[0] if len(c.orders) == 1 else (-1, -1) for c in candidates]
        self._low, self._high = np.array(ends, dtype=np.int64).reshape(-1, 2).T
        self.below = np.eye(p, dtype=bool)  # [x, y]: x is never above y
        self._sharp = np.array([True for _ in of.functions] + [not c.loose for c in candidates], dtype=bool)

    def _single(self, columns: Sequence[Column]) -> None:
        """Literals, and what follows from them by themselves: a column has one value."""
        of = self.of
        self._column = np.array([x.column for x in of.literals], dtype=np.int64)
        codes = [of.cells.edges[x.column][x.first] for x in of.literals]
        self._missing = np.array([columns[x.column].missing == c for x, c in zip(of.literals, codes, strict=True)])
        single = [x.single for x in of.literals]
        k = self._k = sum(single[: len(single)]) if all(single) else single.index(False)
        same = self._column[:k, None] == self._column[None, :k]
        self.implied = np.eye(2 * k, dtype=bool)  # [i, j]: literal i, or k + i for its negation, implies j
        self.implied[:k, k:] |= same & ~np.eye(k, dtype=bool)
        for j in range(len(columns)):
            own = np.flatnonzero(self._column[:k] == j)
            if len(own) == 2 == of.cells.sizes[j]:
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
        known[up] = np.select(
            [kind[up] == IMPLIES, kind[up] == EQUIVALENT, kind[up] == EXCLUDES], [forth, forth & back, never]
        )
        far = ~up  # a threshold says nothing where the literal implies a value of the other column
        told = np.zeros((k, len(self.columns)), dtype=bool)
        of, to = np.nonzero(self.implied[:k, :k])
        told[of, self._column[to]] = True
        known[far] = told[one[far], self._column[two[far]]]
        target, sources = self._target, self._sources
        able = ~self.dropped[target] & (~self.coded[target] | (self.loose[target] & self._sharp))
        gone = np.where(self._table, self.dropped[sources].any(axis=1), self.lost[sources].any(axis=1))
        able &= ~gone & ~self.above[sources, target[:, None]].any(axis=1)
        able &= self._exact | ~self.ruled[target]
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

    def learn_column(self, target: int, sources: Sequence[int], dropped: bool, loose: bool | None) -> None:
        """Take a column as computed from others, or as measured by what differs; `loose` is None for functions.

        Where a formula computes it, other formulas may start from it: they start from what it is computed from.
        """
        (self.dropped if dropped else self.coded)[target] = True
        self.lost[target] = dropped and loose is None
        self.loose[target] = bool(loose)
        own = self.above[:, target].copy()
        for source in sources:
            self.above[own] |= self.above[source]

    def learn_orders(self, candidate: Candidate) -> None:
        """Take the orders that a formula states as given, with all that follows."""
        for low, high in candidate.orders:
            self.below |= np.outer(self.below[:, low], self.below[high])

    def alike(self, i: int) -> Array:
        """The literals that hold in the same rows as one of them, as far as is known."""
        return self.implied[i, : self._k] & self.implied[: self._k, i]

    def twins(self, kind: int, i: int, j: int) -> Array:
        """Candidates of one kind that say the same, given what is implied: what is known of one is known of all."""
        same = self.implied[: self._k, : self._k] & self.implied[: self._k, : self._k].T
        kinds, one, two = self.of.pairs.T
        out = np.zeros(len(kinds), dtype=bool)
        up = np.flatnonzero((kinds == kind) & (kinds != THRESHOLD))
        if kind != THRESHOLD:
            out[up] = same[i, one[up]] & same[j, two[up]]
            if kind != IMPLIES:
                out[up] |= same[i, two[up]] & same[j, one[up]]
        return out
