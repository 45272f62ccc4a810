"""A few strong triples: chosen privately among all, measured, and given to the fit.

Pairs say nothing of a relation that needs three columns at once, such as an exclusive or. So the centres that pairs lead to are
compared with the records, triple by triple; those tables that they miss most are chosen with noise, measured, and fitted. How
many, on how many levels, and whether at all is a public formula. docs/proofs/choice.md has the proofs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from math import comb, sqrt
from typing import Any, cast

import numpy as np

from covey.core.fit.copula import Sharpened
from covey.core.fit.triples import Levels, TripleGoal, Triples, deviations, level_map, shrunken
from covey.core.paper.blocks import WeightedPoints
from covey.core.tables.counts import part
from covey.errors import ParameterError, whole_number
from covey.measure.measurement import Measurement
from covey.measure.query import Query
from covey.methods.model import Ask, Asking, Choice, Noise, Part, Setting, Statistic, entries
from covey.methods.regain.measure_tables import Tables
from covey.privacy.budget import Budget
from covey.privacy.gate import Moves

SHARE = Fraction(3, 20)  # of what pairs have, for choosing and measuring together: costs the pairs 8% more noise
CHOOSING = Fraction(1, 5)  # of that; a choice needs little, its noise does not grow with the number of candidates
CLEAR = 4.0  # deviations of the noise that a cell of average mass should stand above
MOST_LEVELS = 12  # of an attribute in a triple
MOST_CELLS = 4_000_000  # of all candidates' tables together: 32 MB
MOST_LOOKS = 5_000_000_000  # rows times candidates: a minute
CHANCE = sqrt(2 / np.pi)  # mean of a standard normal's absolute value


@dataclass(frozen=True)
class Wish:
    """Public: how many triples to look for at most, and the attribute that each of them names, if any."""

    count: int = 0
    target: int | None = None

    @classmethod
    def of(cls, count: Any, categories: bool) -> Wish:
        """A wish that a caller states; triples are looked for among columns whose categories are declared."""
        found = cls(whole_number(count, "triples", 0, "It counts triples of columns."))
        if found and not categories:
            raise ParameterError("triples are chosen among columns with categories: give domain=… or schema=….")
        return found

    def __bool__(self) -> bool:
        return self.count > 0

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
        for count in range(min(self.count, candidates), 0, -1):
            cells = n / (CLEAR * noise_of(count, budget))
            levels = sqrt(cells / 2) if self.target is not None else cells ** (1 / 3)
            most = int(min(levels, room, MOST_LEVELS))
            if most >= 2:
                return count, most
        return 0, 0


NO_WISH = Wish()  # no triple is looked for


def moves_of(count: int) -> Moves:
    """How far one replaced row moves the tables of so many triples: it leaves a cell and enters one in each."""
    return Moves.histograms(count)


def noise_of(count: int, budget: Budget) -> float:
    """The deviation of the noise on a cell of one of so many triples, in rows."""
    moves = moves_of(count).under(budget)
    return budget.deviation(moves.l1, moves.l2_squared)


def triple_shares(pairs: Fraction, wish: Wish, n: int, q: int, budget: Budget) -> dict[str, Fraction]:
    """What choosing and measuring triples takes of the pairs' share; nothing where no triple is affordable."""
    measuring, choosing = pairs * SHARE * (1 - CHOOSING), pairs * SHARE * CHOOSING
    if not wish or not pairs or not wish.affordable(n, q, budget.part(measuring))[0]:
        return {}
    return {"pairs": pairs - measuring - choosing, "choosing triples": choosing, "triples": measuring}


def find_triples(
    tables: Tables, wish: Wish, cloud: WeightedPoints, bins: Sharpened, told: Setting
) -> Asking[tuple[TripleGoal | None, Measurement | None]]:
    """The triples whose tables the centres, over bins, miss most, measured; spends "choosing triples" and "triples".

    First what is to be fitted, None if nothing stood out of the noise: then the centres stay as they are. Then all that was
    measured: to keep those alone that stand out of their noise would choose among the noise.
    """
    merged, n, budget = bins.domain, told.n, told.allowance("triples")
    count, most = wish.affordable(n, len(merged.sizes), budget)
    blocks = [bins.shares[merged.block(a)] for a in range(len(merged.sizes))]
    levels = Levels(tuple(level_map(p, o, most) for p, o in zip(blocks, merged.ordered, strict=True)))
    candidates = levels.triples(wish.target)
    if not candidates or not count:
        return None, None
    query = Query(candidates, tables.factors(levels.after(bins.maps).maps))
    model, starts = tables.law(cloud, bins.maps).table(query), query.starts
    expected = np.rint(model * tables.total).astype(np.int64)
    # What chance alone is expected to make of a table, in rows, and what the noise on it will.
    sd = noise_of(count, budget)
    chance = CHANCE * np.add.reduceat(np.sqrt(n * model * (1 - model)), starts[:-1]) + CHANCE * sd * np.diff(starts)
    offset = np.rint(chance * tables.steps).astype(np.int64)
    counts = Statistic.sum(query.kernel(), kept=True).map(part)
    scores = Part(query, counts.map(deviations, expected, starts).map(np.subtract, offset), len(candidates))
    found = yield [
        Ask("choosing triples", [scores], Moves(score=2, added=Moves(score=1)), noise=Noise("choice", rounds=count))
    ]
    (choice,) = cast("list[Choice]", found)
    cells = [slice(*starts[place : place + 2]) for place in choice.chosen]
    parts = [Part(query, counts.map(entries, own), own.stop - own.start) for own in cells]
    measured = yield [Ask("triples", parts, moves_of(len(parts)))]
    every, names, goals = [candidates[place] for place in choice.chosen], [], []
    for triple, own, noisy in zip(every, cells, measured, strict=True):
        shape = tuple(levels.sizes[x] for x in triple)
        before = model[own].reshape(shape)
        goal = shrunken(noisy.values.reshape(shape) / n, before, float(noisy.sd) / n)
        if goal is not before:
            names.append(triple)
            goals.append(goal)
    used = {x: query.factors[x] for x in sorted({x for triple in every for x in triple})}
    kept = replace(measured[-1], query=Query(every, used), values=np.concatenate([m.values for m in measured]))
    fitted = Triples(tuple(names), {x: levels.maps[x] for triple in names for x in triple})
    return TripleGoal(fitted, tuple(goals)) if names else None, kept
