"""Votes of records for regions of covey's own law: what one count per record says of many columns at once.

    python -m benchmarks.votes --data FOLDER [--parts characters,tables,parities,msnbc,scan] [--seeds 3] [--share 0.1]

A part of the budget is kept back, and covey is fitted with the rest. Rows drawn from its law are candidates. Regions are leaves
of a decision tree that was grown on candidates, or what is nearest to a few of them; each is split by the label. Every record
votes for its region, the noisy histogram is shrunken towards what the law expects, and candidates are weighted until they have
these votes and the law's pairs. Then regions are made anew on the weighted candidates, and records vote again. Noise is that of
floats: these are experiments, and no release. docs/decisions/0029-votes-for-centres.md says what came of them.

FOLDER holds telco.csv, bank.csv, adult.csv with adult-domain.json, msnbc.npz, and artificial-characters_train.csv and _test.csv
(benchmarks/peers/characters.py).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from math import log, sqrt
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.spatial import cKDTree
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.tree import DecisionTreeClassifier

import covey
from benchmarks import knowledge
from benchmarks.numeric.compare import codes_of, frame_of, schema_of
from benchmarks.numeric.measures import coarse_codes, pair_variation
from benchmarks.numeric.real import load
from benchmarks.numeric.tables import Column, Table
from benchmarks.peers import characters
from benchmarks.peers.mixed import split
from covey.engine.gaussian import rho_within

CANDIDATES = 40_000
PARTS = 20  # quantiles of a number whose pairs are kept
SMALLEST = 100  # candidates in a leaf
COMMON = 12  # categories by which distances are measured
SWEEPS = 12  # over votes and pairs, when candidates are weighted
DEVIATIONS = 2.0  # of the noise that a region's label has votes for, on average


@dataclass(frozen=True)
class Promise:
    """(ε, δ), a part of which is kept back."""

    epsilon: float
    delta: float
    kept: float = 0.0

    def rho(self, epsilon: float) -> float:
        """Of Gaussian noise with this ε."""
        delta = Fraction(self.delta).limit_denominator(10**15)
        return float(rho_within(Fraction(epsilon).limit_denominator(10**9), delta))

    @cached_property
    def rest(self) -> float:
        """The ε of what is left for covey."""
        if not self.delta:
            return self.epsilon * (1 - self.kept)
        low, high, goal = 0.0, self.epsilon, self.rho(self.epsilon) * (1 - self.kept)
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if self.rho(middle) < goal else (low, middle)
        return high if self.kept else self.epsilon

    def noise(self, size: int, rounds: int, public: np.random.Generator) -> tuple[np.ndarray, float]:
        """Of one of so many histograms, and its deviation: a replaced row leaves one cell and enters one."""
        if not self.delta:
            scale = 2 * rounds / (self.epsilon * self.kept)
            return public.laplace(0, scale, size), scale * sqrt(2)
        sd = sqrt(rounds / (self.rho(self.epsilon) * self.kept))
        return sd * public.standard_normal(size), sd


@dataclass(frozen=True)
class Law:
    """Weighted candidates whose pairs are to stay, and what is to be predicted."""

    columns: tuple[Column, ...]
    rows: np.ndarray
    label: int | None

    def features(self, rows: np.ndarray) -> np.ndarray:
        """What regions look at: ranks of what has an order, the commonest categories otherwise; never the label."""
        found = []
        for j, column in enumerate(self.columns):
            own = self.rows[:, j]
            if j == self.label:
                continue
            if column.ordered or column.size == 2:
                order = np.sort(own)
                sides = [np.searchsorted(order, rows[:, j], side=side) for side in ("left", "right")]
                found.append((sides[0] + sides[1])[:, None] / (2 * len(order)))
            else:
                common = np.argsort(-np.bincount(own, minlength=column.size), kind="stable")[:COMMON]
                found.append((rows[:, [j]] == common) / sqrt(2))
        return np.hstack(found)

    @cached_property
    def pairs(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of each pair of columns the cell of each candidate, and the law's table."""
        bins = []
        for j, column in enumerate(self.columns):
            own = self.rows[:, j]
            if column.ordered and column.size > PARTS:
                own = np.searchsorted(np.unique(np.quantile(own, np.arange(1, PARTS) / PARTS)), own, side="right")
            bins.append(own)
        cells = [a * (b.max() + 1) + b for a, b in combinations(bins, 2)]
        return [(cell, np.bincount(cell) / len(cell)) for cell in cells]

    def weighted(self, weights: np.ndarray, votes: Sequence[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
        """Weights with these votes and the law's pairs, by proportional fitting: the pairs come last."""
        for _ in range(SWEEPS):
            for cells, goal in [*votes, *self.pairs]:
                now = np.bincount(cells, weights, minlength=len(goal))
                weights = weights * np.where(now > 0, np.minimum(goal / np.maximum(now, 1e-15), 1e3), 1)[cells]
            weights /= weights.sum()
        return weights

    def voted(self, records: np.ndarray, way: tuple[str, int], promise: Promise, public: np.random.Generator):
        """Weights of the candidates after some rounds of votes, and how much of each histogram was believed."""
        kind, rounds = way
        there, real = self.features(self.rows), self.features(records)
        n, labels = len(records), 1 if self.label is None else self.columns[self.label].size
        sd = promise.noise(1, rounds, public)[1]
        regions = int(min(len(self.rows) / 40, max(2, n / (labels * DEVIATIONS * sd))))
        weights, votes, believed = np.full(len(there), 1 / len(there)), [], []
        for _ in range(rounds):
            ours, theirs = self._regions(kind, regions, (there, real), weights, public)
            if self.label is not None:
                ours = ours * labels + self.rows[:, self.label]
                theirs = theirs * labels + records[:, self.label]
            size = int(max(ours.max(), theirs.max())) + 1
            noisy = np.bincount(theirs, minlength=size) + promise.noise(size, rounds, public)[0]
            expected = n * np.bincount(ours, weights, minlength=size)
            goal, part = shrunken(noisy, expected, sd)
            votes.append((ours, goal / n))
            believed.append(part)
            weights = self.weighted(weights, votes)
        return weights, believed

    def _regions(self, kind, count, features, weights, public) -> tuple[np.ndarray, np.ndarray]:
        there, real = features
        if kind == "nearest":
            tree = cKDTree(there[public.choice(len(there), count, replace=False, p=weights)])
            return tree.query(there)[1], tree.query(real)[1]
        grown = DecisionTreeClassifier(max_leaf_nodes=count, min_samples_leaf=SMALLEST, random_state=0)
        grown.fit(there, self.rows[:, self.label], sample_weight=weights * len(weights))
        names, ours = np.unique(grown.apply(there), return_inverse=True)
        return ours, np.searchsorted(names, grown.apply(real))


def shrunken(noisy: np.ndarray, expected: np.ndarray, sd: float) -> tuple[np.ndarray, float]:
    """Votes between what was expected and what was heard; how far a count may lie from an expected one is estimated."""
    gap = noisy - expected
    spread = max(0.0, float(np.sum(gap**2) - len(gap) * sd**2) / float(expected.sum()))
    part = spread * expected / (spread * expected + sd**2)
    out = np.maximum(expected + part * gap, 0)
    return out * (expected.sum() / out.sum()), float(part.mean())


def drawn(weights: np.ndarray, m: int, public: np.random.Generator) -> np.ndarray:
    """Places of m candidates, systematically."""
    order = public.permutation(len(weights))
    return order[np.searchsorted(np.cumsum(weights[order])[:-1], (np.arange(m) + public.random()) / m)]


# Tables with a label.


@dataclass(frozen=True)
class Case:
    """A table, its label, how covey's rows become codes, and how models that learned from rows are judged."""

    table: Table
    label: int
    delta: float
    fit: Callable[[float, int], covey.PrivateSynthesizer]
    codes: Callable[..., np.ndarray]
    learned: Callable[[np.ndarray], float]

    def pairs(self, codes: np.ndarray) -> float:
        """Mean total variation."""
        true, made = self.table.values(), self.table.values(codes)
        X, sizes = coarse_codes(self.table, self.table.codes, true, true)
        return pair_variation(X, coarse_codes(self.table, codes, true, made)[0], sizes)


def letters(folder: Path) -> Case:
    """Artificial Characters; judged by accuracy."""
    train, test = (pd.read_csv(folder / f"artificial-characters_{part}.csv") for part in ("train", "test"))
    of = characters.TABLES["characters"]
    table, other = of.coded(train), of.coded(test).codes
    frame, delta = train.assign(Class=train["Class"].astype(str)), 1 / (len(train) * log(len(train)))

    def fit(epsilon: float, seed: int):
        return covey.PrivateSynthesizer(epsilon, delta, schema=of.schema(False), seed=seed).fit(frame)

    def accuracy(codes: np.ndarray) -> float:
        model = HistGradientBoostingClassifier(random_state=0).fit(codes[:, :7], codes[:, 7])
        return float(model.score(other[:, :7], other[:, 7]))

    def back(rows) -> np.ndarray:
        return of.coded(pd.DataFrame(rows).astype(float).astype({"Class": int})).codes

    return Case(table, 7, delta, fit, back, accuracy)


def real(name: str, folder: Path) -> Case:
    """telco, bank and adult; judged by the area under the curve."""
    if name == "adult":
        every = knowledge.adult()
        place, yes = [c.name for c in every.columns].index("income>50K"), 1
    else:
        every, place, yes = load(name, folder)
    table, test = split(every)
    frame, schema = frame_of(table), schema_of(table)

    def fit(epsilon: float, seed: int):
        return covey.PrivateSynthesizer(epsilon, 1e-9, schema=schema, seed=seed).fit(frame)

    def auc(codes: np.ndarray) -> float:
        return float(knowledge.aucs(codes, test, table, place, yes)[0])

    return Case(table, place, 1e-9, fit, partial(codes_of, table), auc)


WAYS = [("tree", 1), ("tree", 3), ("nearest", 1), ("nearest", 3)]


def labelled(case: Case, epsilon: float, seed: int, share: float) -> Iterator[str]:
    """What models learn, and the total variation of pairs: of n rows, and of as many as there are candidates."""
    n, public, table = len(case.table.codes), np.random.default_rng(seed), case.table
    head = f"{table.name:10} ε = {epsilon:<3g} seed {seed} "
    plain = case.fit(epsilon, seed)

    def told(way: str, few: np.ndarray, many: np.ndarray) -> str:
        figures = [f(rows) for rows in (few, many) for f in (case.learned, case.pairs)]
        return f"{head} {way:14} " + " ".join(f"{x:.4f}" for x in figures)

    yield told("covey", *(case.codes(plain.sample(m)) for m in (n, CANDIDATES)))
    promise = Promise(epsilon, case.delta, share)
    rows = case.codes(case.fit(promise.rest, seed).sample(CANDIDATES))
    law = Law(table.columns, rows, case.label)
    for way in WAYS:
        weights, believed = law.voted(table.codes, way, promise, public)
        few, many = (rows[drawn(weights, m, public)] for m in (n, CANDIDATES))
        yield told(f"{way[0]} × {way[1]}", few, many) + f" believed {believed[0]:.2f}"


# Parities.


def tables_of(X, Y, sets) -> float:
    return float(np.mean([knowledge.variation(X, Y, list(s), 2) for s in sets]))


def products(Z: np.ndarray, sets: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Mean products of signs of some sets of yes/no columns."""
    signs = np.ascontiguousarray(1 - 2 * Z.T.astype(np.int8))
    return np.array([signs[list(s)].prod(axis=0, dtype=np.int8).mean() for s in sets])


def parities(seed: int, share: float) -> Iterator[str]:
    """An exclusive or of four, or of five, of ten columns, (1, 1e-9): total variation of these columns, and of pairs."""
    for degree in (4, 5):
        public, p, n = np.random.default_rng(seed), 10, 20_000
        X = public.integers(0, 2, (n, p))
        X[:, degree - 1] = X[:, : degree - 1].sum(axis=1) % 2
        pairs, own = list(combinations(range(p), 2)), [tuple(range(degree))]
        domain = [2] * p

        def told(way, Y, degree=degree, X=X, own=own, pairs=pairs) -> str:
            return f"or of {degree}  seed {seed}  {way:14} {tables_of(X, Y, own):.4f} {tables_of(X, Y, pairs):.4f}"

        synth = covey.PrivateSynthesizer(1.0, 1e-9, domain=domain, seed=seed).fit(X)
        yield told("covey", synth.sample(n))
        synth = covey.PrivateSynthesizer(1.0, 1e-9, domain=domain, triples=3, seed=seed).fit(X)
        yield told("covey, triples", synth.sample(n))
        promise = Promise(1.0, 1e-9, share)
        rows = covey.PrivateSynthesizer(promise.rest, 1e-9, domain=domain, seed=seed).fit(X).sample(CANDIDATES)
        law = Law(tuple(Column(str(j), 2) for j in range(p)), np.asarray(rows).astype(np.int64), None)
        weights = law.voted(X, ("nearest", 1), promise, public)[0]
        yield told("nearest", law.rows[drawn(weights, n, public)])
        ours, theirs = (np.bincount(Z @ 2 ** np.arange(p), minlength=2**p) for Z in (law.rows, X))
        noise, sd = promise.noise(2**p, 1, public)
        goal = shrunken(theirs + noise, ours * n / len(rows), sd)[0]
        weights = law.weighted(np.full(len(rows), 1 / len(rows)), [(law.rows @ 2 ** np.arange(p), goal / n)])
        yield told("every cell", law.rows[drawn(weights, n, public)])


def msnbc(folder: Path, seed: int, share: float) -> Iterator[str]:
    """Root mean square errors of shares of two and of three ones among the seventeen columns."""
    with np.load(folder / "msnbc.npz") as file:
        X = file["x"].astype(np.int64)
    n, p = X.shape

    def ones(Z: np.ndarray, weights: np.ndarray, degree: int) -> np.ndarray:
        return np.array([weights[Z[:, list(s)].all(axis=1)].sum() for s in combinations(range(p), degree)])

    def told(way: str, Y: np.ndarray, weights: np.ndarray) -> str:
        even = np.full(n, 1 / n)
        found = [sqrt(np.mean((ones(X, even, d) - ones(Y, weights, d)) ** 2)) for d in (2, 3)]
        return f"msnbc seed {seed} {way:24} " + " ".join(f"{x:.6f}" for x in found)

    for word, delta, way in (("pure 1", 0.0, "automatic"), ("(1, 1e-9)", 1e-9, "gaussian")):
        public, even = np.random.default_rng(seed), np.full(n, 1 / n)
        rows = covey.PrivateSynthesizer(1.0, delta, composition=way, seed=seed).fit(X).sample(n)
        yield told(f"{word}, covey", np.asarray(rows), even)
        promise = Promise(1.0, delta, share)
        rows = covey.PrivateSynthesizer(promise.rest, delta, composition=way, seed=seed).fit(X).sample(5 * CANDIDATES)
        law = Law(tuple(Column(str(j), 2) for j in range(p)), np.asarray(rows).astype(np.int64), None)
        for rounds in (1, 3):
            weights = law.voted(X, ("nearest", rounds), promise, public)[0]
            yield told(f"{word}, nearest × {rounds}", law.rows, weights)


def scan(folder: Path) -> Iterator[str]:
    """How far covey's laws of real tables are from products of four and five signs, and what chance makes of so many."""
    for name in ("telco", "bank", "adult"):
        case = real(name, folder)
        X, Y = case.table.codes, case.codes(case.fit(10.0, 0).sample(CANDIDATES))
        halves = []
        for Z in (X, Y):  # at the median, or the commonest category against all others
            order = [np.median(X[:, j]) for j in range(X.shape[1])]
            common = [np.bincount(X[:, j]).argmax() for j in range(X.shape[1])]
            kinds = enumerate(case.table.columns)
            halves.append(
                np.column_stack([Z[:, j] > order[j] if c.ordered else Z[:, j] == common[j] for j, c in kinds])
            )
        for degree in (3, 4, 5):
            sets = list(combinations(range(X.shape[1]), degree))
            gap = np.abs(products(halves[0], sets) - products(halves[1], sets))
            chance = sqrt(2 * log(2 * len(sets)) * (1 / len(X) + 1 / len(Y)))
            yield f"{name:6} {len(sets):6} products of {degree}: farthest {gap.max():.4f}, by chance {chance:.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--parts", default="characters,tables,parities,msnbc,scan")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--share", type=float, default=0.1)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    runs: dict[str, Callable[[int], Sequence[Iterator[str]]]] = {
        "characters": lambda s: [labelled(letters(given.data), e, s, given.share) for e in (1.0, 10.0)],
        "tables": lambda s: [labelled(real(t, given.data), 1.0, s, given.share) for t in ("telco", "bank", "adult")],
        "parities": lambda s: [parities(s, given.share)],
        "msnbc": lambda s: [msnbc(given.data, s, given.share)],
        "scan": lambda s: [scan(given.data)] if s == 0 else [],
    }
    for part in given.parts.split(","):
        for seed in range(given.seeds):
            for lines in runs[part](seed):
                for line in lines:
                    print(line, flush=True)


if __name__ == "__main__":
    main()
