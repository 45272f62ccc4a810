"""Public choices for tables with numbers: how a budget is shared, and how fine pairs are looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from covey.core.numbers.grid import BRANCHING, Attribute, NumberGrid
from covey.core.numbers.ranks import UNIT, flips
from covey.core.tables.domain import Domain
from covey.methods.regain.important import ONE_WAY, Important
from covey.methods.regain.important import SHARE as IMPORTANT
from covey.methods.regain.plan import CERTIFICATE_SHARE, bin_mass, coarse, histogram_share, pair_law
from covey.methods.regain.triples import NO_WISH, Wish, noise_of, triple_shares
from covey.privacy.budget import Budget, exact
from covey.privacy.gate import Moves

NUMBER = 2.0  # weight of a number among the one-way charges, beside a category with as many codes
RANKS = Fraction(6, 100)  # share of the budget for rank covariances
GROWTH = {
    False: Fraction(5, 4),
    True: Fraction(9, 8),
}  # of a round's charge to the next; by whether the guarantee is pure
MOST_MERGED = 4000  # bins of all attributes, about: several matrices of their squares are held at once, 128 MB each
LEAST_BINS = 3  # of an attribute, whatever the memory: fewer would not tell a rise from a bend
BINS = {False: 0.6, True: 1.0}  # of the mass that categories' bins have; by whether the guarantee is pure


@dataclass(frozen=True)
class NumberPlan:
    """Public formulas of the attributes, the number of rows and the budget."""

    attributes: tuple[Attribute, ...]
    important: Important = Important()  # noqa: RUF009 # frozen
    wish: Wish = NO_WISH

    @cached_property
    def declared(self) -> Domain:
        """The attributes as formulas for categories see them: a number counts as sixteen codes per level of its tree."""
        sizes = tuple(BRANCHING * a.rounds if isinstance(a, NumberGrid) else a.size for a in self.attributes)
        return Domain(sizes, tuple(isinstance(a, NumberGrid) or a.ordered for a in self.attributes))

    @property
    def ranked(self) -> int:
        """How many attributes have ranks that are looked at: the ordered ones, where a number is among them.

        A table of categories alone is fitted as if nothing were said to matter: its bins hold nearly all of its ranks, and a
        charge for them made it worse (docs/benchmarks/knowledge.md).
        """
        return sum(self.declared.ordered) if grids(self.attributes) else 0

    def shares(self, n: int, budget: Budget, rest: Fraction) -> Mapping[str, Fraction]:
        """One-way tables and trees, pairs, rank covariances: parts of `rest`, which is what the certificate leaves."""
        first = Fraction(histogram_share(n, self.declared, budget)) * rest
        ranks = min(RANKS, (1 - Fraction(histogram_share(n, self.declared, budget))) / 4) * rest
        shares = {"histograms": first, "pairs": rest - first}
        if self.ranked > 1 and first < rest:
            shares |= {"pairs": rest - first - ranks, "ranks": ranks}
        if self.important.live(self.declared.sizes) and shares["pairs"]:
            extra = IMPORTANT * shares["pairs"]
            shares |= {"pairs": shares["pairs"] - extra, "important": extra}
        return shares | triple_shares(shares["pairs"], self.wish, n, len(self.attributes), budget)

    def one_way(self, pure: bool) -> list[Fraction]:
        """Parts of the one-way charge by attribute; they sum to 1.

        Proportional to √c (Laplace) or c^{2/3} (Gaussian) in the number of codes, as for categories; numbers count double, and
        important attributes three times.
        """
        weight = self.declared.counts ** (1 / 2 if pure else 2 / 3)
        weight = weight * [NUMBER if isinstance(a, NumberGrid) else 1.0 for a in self.attributes]
        weight = weight * [ONE_WAY if j in self.important.attributes else 1.0 for j in range(len(weight))]
        parts = [exact(float(w), "share") for w in weight / weight.sum()]
        return [part / sum(parts) for part in parts]

    def round_part(self, j: int, turn: int, pure: bool) -> Fraction:
        """Part of a number's one-way charge that a round of its tree gets: later rounds, which see single values, get more."""
        grid, growth = self.attributes[j], GROWTH[pure]
        rounds = grid.rounds if isinstance(grid, NumberGrid) else 1
        return growth**turn / sum(growth**k for k in range(rounds))

    def bin_mass(self, n: int, budget: Budget) -> float:
        """Mass of a bin of an ordered attribute: at least twelve bins if noise and memory allow it, at most forty.

        Without numbers it is that of categories.
        """
        if not grids(self.attributes):
            return bin_mass(n, self.declared, budget)
        q = len(self.attributes)
        finest = 1 / float(np.clip(400 // q, max(LEAST_BINS, min(12, MOST_MERGED // q)), 40))
        return max(finest, BINS[budget.pure] * bin_mass(n, self.declared, budget))


@dataclass(frozen=True)
class Focus:
    """Predicted noise on 2-way shares: of important pairs, of the others, and of all if none were important.

    Single columns, merged categories and drawing add errors of their own, which do not shrink: docs/benchmarks/knowledge.md.
    """

    important: float
    others: float
    without: float


def expected_focus(plan: NumberPlan, n: int, budget: Budget, left: float) -> Focus:
    """What important pairs gain and the others lose; `left` is the part of the noise that denoising leaves."""
    guess, rest = coarse(plan.declared), 1 - CERTIFICATE_SHARE

    def others(own: NumberPlan) -> float:
        return pair_law(guess, budget.part(own.shares(n, budget, rest)["pairs"])).sd / n

    share = budget.part(plan.shares(n, budget, rest)["important"])
    moves = plan.important.moves(guess.sizes)
    first, second = others(plan), share.deviation(moves.l1, moves.l2_squared) / n
    both = 1 / (1 / first**2 + 1 / second**2) ** 0.5 if first > 0 else second
    return Focus(left * both, left * first, left * others(NumberPlan(plan.attributes, wish=plan.wish)))


@dataclass(frozen=True)
class TripleForecast:
    """How many triples would be chosen, among how many, on how many levels, and the noise on a cell as a share."""

    count: int
    candidates: int
    levels: int
    noise: float

    def words(self) -> str:
        """In one line."""
        if not self.count:
            return "triples: none would stand out of its noise, so none is looked for"
        among = f"the {self.count} strongest of {self.candidates:,} triples are chosen with noise and measured"
        return f"triples: {among}, on {self.levels} levels a column at most; noise on a share about {self.noise:.2g}"


def forecast(plan: NumberPlan, n: int, budget: Budget) -> TripleForecast:
    """What a wish for triples comes to."""
    own, q = plan.shares(n, budget, 1 - CERTIFICATE_SHARE).get("triples"), len(plan.attributes)
    candidates = plan.wish.candidates(q)
    if own is None:
        return TripleForecast(0, candidates, 0, 0.0)
    measuring = budget.part(own)
    count, levels = plan.wish.affordable(n, q, measuring)
    return TripleForecast(count, candidates, levels, noise_of(count, measuring) / n)


def rank_moves(p: int) -> Moves:
    """How far one replaced row moves the sums of products of two scores of p attributes (docs/proofs/trees.md)."""
    turned = flips(p)
    return Moves(l1=2 * UNIT**2 * turned, l2_squared=4 * UNIT**4 * turned, trace=2 * p * UNIT**2)


def matrix_is_better(p: int) -> bool:
    """Whether matrix Laplace noise on p × p sums of products has the smaller deviation, under pure ε."""
    return bool(2 * p * np.sqrt((p + 1) / 2) < np.sqrt(2) * 2 * flips(p))


def grids(attributes: Sequence[Attribute]) -> dict[int, NumberGrid]:
    """The numbers among attributes, by place."""
    return {j: a for j, a in enumerate(attributes) if isinstance(a, NumberGrid)}
