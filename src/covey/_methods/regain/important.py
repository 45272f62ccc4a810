"""What matters most: pairs of attributes that are measured again and followed more closely, and a few strong triples.

Which pairs these are is public, said before the data is seen. Few pairs move little: their own measurement is far less noisy than
that of all pairs together, so a part of the pairs' budget serves them better there.

Pairs say nothing of a relation that needs three columns at once, such as an exclusive or. So the centres that pairs lead to are
compared with the records, triple by triple; those tables that they miss most are chosen with noise, measured, and fitted. How
many, on how many levels, and whether at all is a public formula. Of four and five yes/no columns the products of all their signs
are compared: what fewer of them say does not count, so that each relation is found once. docs/proofs/choice.md has the proofs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, log, sqrt

import numpy as np

from covey._core.arrays import Floats, Integers
from covey._core.fit.centres import Triples, deviations, level_map, shrunken, signs_of, varying_triples
from covey._core.fit.shrinkage import beyond_noise
from covey._core.noise.pairlaw import place_of
from covey._core.paper.blocks import WeightedPoints
from covey._core.tables.counts import part
from covey._core.tables.domain import Domain, centred_counts
from covey._methods.model import Ask, Asking, Part, Setting, Statistic, entries
from covey._methods.regain.measure_tables import Tables, cell_parts, centred_cells, on_cells
from covey.measure.measurement import Measurement
from covey.measure.query import Factor, Query, mixed_table
from covey.privacy.budget import Budget
from covey.privacy.gate import Moves

AGAIN = Fraction(2, 5)  # of what pairs have: most of the gain, while the other pairs lose less than a third of theirs
STAR = Fraction(4, 5)  # the same for pairs with a target, where all pairs together would be noise
EMPHASIS = 4.0  # weight of an important pair in the fit, beside 1 for the others
MANY = 16  # attributes from which on the pairs of a single one are a small part of all: an eighth
ONE_WAY = 3.0  # weight of an important attribute among the one-way charges
TRIPLES = Fraction(3, 20)  # of what pairs have, for choosing and measuring together: costs the pairs 8% more noise
CHOOSING = Fraction(1, 5)  # of that; a choice needs little, its noise does not grow with the number of candidates
CLEAR = 4.0  # deviations of the noise that a cell of average mass should stand above
MOST_LEVELS = 12  # of an attribute in a triple
MOST_CELLS = 4_000_000  # of all candidates' tables together: 32 MB
MOST_LOOKS = 5_000_000_000  # rows times candidates: a minute
CHANCE = sqrt(2 / np.pi)  # mean of a standard normal's absolute value


@dataclass(frozen=True)
class Important:
    """Public: attributes, and pairs of attributes (a < b), that matter most, and one that the others are to predict."""

    attributes: frozenset[int] = frozenset()
    pairs: tuple[tuple[int, int], ...] = ()
    target: int | None = None
    triples: int = 0  # to look for at most; where there is a target, each names it
    unasked: bool = False  # whether nobody asked for triples, so that they must pay

    @classmethod
    def of(
        cls, named: Iterable[Sequence[int]], q: int, pure: bool, target: int | None = None, triples: int = 0
    ) -> Important:
        """Pairs, and single attributes, among q: these have their own one-way tables measured better.

        Where there are many attributes, under (ε, δ), a single one also matters together with every other one. Elsewhere a second
        measurement of all its pairs would cost the denoising of all pairs more than it gives: measured on ten and on 24 columns.
        Pairs with a target are followed more closely by the fit, which costs nothing, wherever they are not measured again.
        """
        groups = [tuple(group) for group in named]
        stars = [group[0] for group in groups if len(group) == 1 and not pure and q >= MANY]
        named_pairs = [group for group in groups if len(group) == 2]
        every = [*named_pairs, *((a, b) for a in stars for b in range(q) if b != a)]
        pairs = tuple(sorted({(min(p), max(p)) for p in every}))
        return cls(frozenset(a for group in groups for a in group), pairs, target, triples)

    def starred(self, q: int) -> Important:
        """With every pair of the target, among q attributes, where no pair is named."""
        at = self.target
        if at is None or self.pairs:
            return self
        return replace(self, pairs=tuple((min(a, at), max(a, at)) for a in range(q) if a != at))

    def __bool__(self) -> bool:
        return bool(self.attributes) or self.target is not None or self.triples > 0

    def weights(self, q: int) -> Floats:
        """How much each pair counts in the fit."""
        out = np.ones((q, q))
        if self.target is not None:
            out[self.target] = out[:, self.target] = EMPHASIS
        for a, b in self.pairs:
            out[a, b] = out[b, a] = EMPHASIS
        return out

    def live(self, sizes: Sequence[int]) -> list[tuple[int, int]]:
        """The pairs both of whose attributes vary."""
        return [(a, b) for a, b in self.pairs if sizes[a] > 1 and sizes[b] > 1]

    def moves(self, sizes: Sequence[int]) -> Moves:
        """How far one replaced row moves these pair tables together (docs/proofs/sensitivity.md, "Some pairs").

        Counts: by 2 in ℓ1 each. Centred tables: by at most 2·max(1 − 1/c_a, 1 − 1/c_b) in squared ℓ2 each.
        """
        live = self.live(sizes)
        squared = sum((2 * (1 - Fraction(1, max(sizes[a], sizes[b]))) for a, b in live), Fraction(0))
        lengths = [1 - Fraction(1, size) for size in sizes]
        added = Moves(l1=len(live), l2_squared=sum((lengths[a] * lengths[b] for a, b in live), Fraction(0)))
        return Moves(l1=2 * len(live), l2_squared=squared, added=added)

    def candidates(self, q: int) -> int:
        """How many triples there are among q attributes."""
        return comb(q, 3) if self.target is None else comb(max(q - 1, 0), 2)

    def affordable(self, n: int, q: int, budget: Budget) -> tuple[int, int]:
        """How many triples are measured, and on how many levels an attribute: (0, 0) if none would stand out of its noise.

        `budget` is what measuring them may spend. A table has as many cells as stand at CLEAR deviations on average.
        """
        candidates = self.candidates(q)
        if not candidates or n * candidates > MOST_LOOKS:
            return 0, 0
        room = (MOST_CELLS / candidates) ** (1 / 3)
        for count in range(min(self.triples, candidates), 0, -1):
            cells = n / (CLEAR * noise_of(count, budget))
            levels = sqrt(cells / 2) if self.target is not None else cells ** (1 / 3)
            most = int(min(levels, room, MOST_LEVELS))
            if most >= 2:
                return count, most
        return 0, 0


NOTHING = Important()


def averaged(noisy: Floats, sd: float, found: Measurement, domain: Domain) -> Floats:
    """The first measurement of all pairs, averaged with a second one of some by their variances where there are two."""
    own, other = 1 / (float(found.sd) / found.per) ** 2, 1 / sd**2 if sd > 0 else 0.0
    out = noisy.copy()
    for a, b in found.query.sets:
        one, two = domain.block(a), domain.block(b)
        out[one, two] = (own * found.table((a, b)) + other * noisy[one, two]) / (own + other)
        out[two, one] = out[one, two].T
    return out


def restored(covariances: Floats, noisy: Floats, sd: float, found: Measurement, domain: Domain) -> Floats:
    """Denoised covariances with what denoising lost of the important pairs, as far as it is more than their noise.

    `noisy` are the averaged covariances and `sd` the deviation of the first measurement. Of a lost table ℓ the part
    (1 − s²·d/‖ℓ‖²)₊ is put back, s the deviation of the average and d the table's degrees of freedom.
    """
    out = covariances.copy()
    variance = 1 / (1 / (float(found.sd) / found.per) ** 2 + (1 / sd**2 if sd > 0 else 0.0))
    for a, b in found.query.sets:
        one, two = domain.block(a), domain.block(b)
        lost = noisy[one, two] - covariances[one, two]
        freedom = (domain.sizes[a] - 1) * (domain.sizes[b] - 1)
        out[one, two] += beyond_noise(lost, variance * freedom) * lost
        out[two, one] = out[one, two].T
    return out


def measure_important(
    tables: Tables, maps: list[Integers], important: Important, domain: Domain, told: Setting
) -> Asking[Measurement]:
    """The important pair tables of merged categories, noisy and centred; spends the charge "important"."""
    live = important.live(domain.sizes)
    exact, query = tables.pairs(maps), Query(live, tables.factors(maps), "centred")
    exact = exact if told.pure else exact.map(centred_counts, domain)
    places = [place_of(domain, a, [b]) for a, b in live]
    found = yield [Ask("important", cell_parts(exact, query, places, told.pure), important.moves(domain.sizes))]
    centred = centred_cells(on_cells(found, places, domain), domain, told.pure)
    values = np.concatenate([centred[own, others].ravel() for own, others, _ in places])
    return replace(found[-1], values=values, sd=found[-1].sd / (1 if told.pure else places[-1][2]))


def moves_of(count: int) -> Moves:
    """How far one replaced row moves the tables of so many triples: it leaves a cell and enters one in each."""
    return Moves.histograms(count)


def noise_of(count: int, budget: Budget) -> float:
    """The deviation of the noise on a cell of one of so many triples, in rows."""
    return moves_of(count).deviation(budget)


def triple_shares(pairs: Fraction, affordable: Callable[[Fraction], bool]) -> dict[str, Fraction]:
    """What choosing and measuring triples takes of the pairs' share; nothing where no triple is `affordable` with a share."""
    measuring, choosing = pairs * TRIPLES * (1 - CHOOSING), pairs * TRIPLES * CHOOSING
    if not pairs or not affordable(measuring):
        return {}
    return {"pairs": pairs - measuring - choosing, "choosing triples": choosing, "triples": measuring}


@dataclass(frozen=True)
class Binned:
    """What triples are looked for in: columns in bins, the shares of these, and how centres over the bins answer."""

    factors: Sequence[Factor]  # of all columns
    shares: Sequence[Floats]
    ordered: Sequence[bool]
    cloud: WeightedPoints
    of: str = "row"  # what of a unit is looked at

    def levels(self, most: int) -> list[Integers]:
        """Bin → level, at most so many, for each column."""
        return [level_map(p, o, most) for p, o in zip(self.shares, self.ordered, strict=True)]

    def query(self, sets: Sequence[tuple[int, ...]], levels: Sequence[Integers]) -> Query:
        """Tables of levels."""
        own = enumerate(zip(self.factors, levels, strict=True))
        factors = {a: Factor(factor.edges, to[factor.bins]) for a, (factor, to) in own}
        return Query(sets, factors, of=self.of, total=self.of == "row")

    def table(self, query: Query) -> Floats:
        """What the centres say."""
        codes = [factor.edges[np.unique(factor.bins, return_index=True)[1]] for factor in self.factors]
        return mixed_table(query, self.cloud, codes)


def find_triples(
    seen: Binned, within: int | None, affordable: tuple[int, int], told: Setting
) -> Asking[tuple[Triples | None, tuple[Measurement, ...]]]:
    """The triples whose tables the centres, over bins, miss most, measured; spends "choosing triples" and "triples".

    In rows also fours and fives of columns on two levels, by the product of all signs. All of them, or those with the column
    `within`; `affordable` says how many are chosen, and how many levels a column has. First what is to be fitted, None if nothing
    stood out of the noise: then the centres stay as they are. Then all that was measured, table by table: to keep those
    alone that stand out of their noise would choose among the noise.
    """
    (count, most), n, steps = affordable, told.n, told.steps
    if not count:
        return None, ()
    levels = seen.levels(most)
    sizes = [int(own.max()) + 1 for own in levels]
    room = min(MOST_LOOKS // (10 * n), MOST_CELLS // 2**5) if seen.of == "row" else 0  # seconds, for fours and fives
    candidates = varying_triples(sizes, within, room)
    if not candidates:
        return None, ()
    query = seen.query(candidates, levels)
    model, starts = seen.table(query), query.starts
    signs = signs_of(candidates, starts)
    expected = np.rint(model * (n * steps)).astype(np.int64)
    # What chance alone is expected to make of a table, in rows, and what the noise on it will.
    sd = noise_of(count, told.allowance("triples"))
    chance = CHANCE * np.add.reduceat(np.sqrt(n * model * (1 - model)), starts[:-1]) + CHANCE * sd * np.diff(starts)
    # Products of signs are many: what chance and the noise of the choice are expected to make of the largest of them.
    wide, round_ = signs[starts[:-1]] != 0, told.allowance("choosing triples").part(Fraction(1, count))
    many = log(max(2, wide.sum()))
    chance[wide] = sqrt(2 * n * many) + float(round_.choice_scale(2)) * many
    offset = np.rint(chance * steps).astype(np.int64)
    counts = Statistic.sum(query.kernel(), kept=True).map(part)
    scores = Part(query, counts.map(deviations, expected, starts, signs).map(np.subtract, offset), len(candidates))
    moves = Moves(score=2, added=Moves(score=1))
    (choice,) = yield [Ask("choosing triples", [scores], moves, noise="choice", rounds=count)]
    tables = [slice(*starts[place : place + 2]) for place in choice.values]
    parts = [Part(query, counts.map(entries, own), own.stop - own.start) for own in tables]
    measured = yield [Ask("triples", parts, moves_of(len(parts)))]
    every, names, goals = [candidates[place] for place in choice.values], [], []
    for triple, own, noisy in zip(every, tables, measured, strict=True):
        shape = tuple(sizes[x] for x in triple)
        before = model[own].reshape(shape)
        goal = shrunken(noisy.values.reshape(shape) / n, before, float(noisy.sd) / n)
        if goal is not before:
            names.append(triple)
            goals.append(goal)
    own_queries = (replace(query, sets=[t], factors={x: query.factors[x] for x in t}) for t in every)
    kept = tuple(replace(m, query=own_query) for own_query, m in zip(own_queries, measured, strict=True))
    fitted = Triples(tuple(names), {x: levels[x] for triple in names for x in triple}, tuple(goals))
    return fitted if names else None, kept
