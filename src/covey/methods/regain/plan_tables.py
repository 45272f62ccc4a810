"""Public choices for tables of categories and numbers: how a budget is shared, and how fine pairs are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from covey.core.noise.pairlaw import PairLaw
from covey.core.noise.sensitivity import pair_table_sensitivity
from covey.core.numbers.grid import BRANCHING, Attribute, NumberGrid, grids
from covey.core.tables.domain import Domain
from covey.methods.regain.important import NOTHING, ONE_WAY, Important
from covey.methods.regain.important import SHARE as IMPORTANT
from covey.methods.regain.measure_tables import pair_moves
from covey.methods.regain.plan import CERTIFICATE_SHARE
from covey.methods.regain.triples import NO_WISH, Wish, noise_of, triple_shares
from covey.privacy.budget import Budget, exact

NUMBER = 2.0  # weight of a number among the one-way charges, beside a category with as many codes
RANKS = Fraction(6, 100)  # share of the budget for rank covariances
GROWTH = {
    False: Fraction(5, 4),
    True: Fraction(9, 8),
}  # of a round's charge to the next; by whether the guarantee is pure
MOST_MERGED = 4000  # bins of all attributes, about: several matrices of their squares are held at once, 128 MB each
LEAST_BINS = 3  # of an attribute, whatever the memory: fewer would not tell a rise from a bend
BINS = {False: 0.6, True: 1.0}  # of the mass that categories' bins have; by whether the guarantee is pure


def pair_law(domain: Domain, budget: Budget, steps: int = 1) -> PairLaw:
    """The noise law for the pair tables of a domain: a function of public sizes alone.

    Under pure ε Laplace on one-hot cells or matrix Laplace noise, whichever has the smaller standard deviation. Where no law can
    be drawn (ε below a billionth or so; for persons, counted in steps, below a thousandth) pairs are not measured at all: they
    would be noise alone.
    """
    nothing = PairLaw("none", domain, Fraction(0))
    if sum(c > 1 for c in domain.sizes) < 2:
        return nothing
    moves = pair_moves(domain)
    if not budget.pure:
        laws = [PairLaw("gaussian", domain, budget.variance(moves.l2_squared), steps)]
    else:
        laws = [
            PairLaw("laplace", domain, budget.laplace_scale(moves.l1), steps),
            PairLaw("matrix", domain, budget.laplace_scale(moves.trace), steps),
        ]
    return min((law for law in laws if law.drawable), key=lambda law: law.sd, default=nothing)


def coarse(domain: Domain) -> Domain:
    """A public guess at the merged domain."""
    return Domain(tuple(min(c, 12) for c in domain.sizes), domain.ordered)


def signal_to_noise(n: int, domain: Domain, budget: Budget) -> float:
    """n·Δ over the pair noise's standard deviation; under zCDP this is n√(2ρ)."""
    guess = coarse(domain)
    sd = pair_law(guess, budget).sd
    return n * float(pair_table_sensitivity(guess.sizes)) ** 0.5 / sd if sd > 0 else float(n)


def histogram_share(n: int, domain: Domain, budget: Budget) -> float:
    """Share of the budget for one-way tables: more with many categories, less as the budget grows."""
    c = domain.counts.astype(np.float64)
    r = (0.7 * c.mean() / (np.minimum(c, 12) ** 1.5).mean()) ** (2 / 3)
    by_size = r / (1 + r) - 0.2 * np.log10(signal_to_noise(n, domain, budget) / 8450)
    return float(np.clip(by_size, 0.1, 0.8)) if sum(size > 1 for size in domain.sizes) > 1 else 1.0


def most_bins(domain: Domain) -> int:
    """Bins per attribute, so that the merged domain stays below about 800."""
    return max(8, 800 // len(domain.sizes))


def fit_steps(n: int, domain: Domain, budget: Budget, merged: int) -> int:
    """Steps of the fit: more where the target is sharper, fewer where a step is dear."""
    steps = np.clip(800 * np.sqrt(signal_to_noise(n, domain, budget) / 8450), 800, 2500)
    return int(max(250, steps * min(1.0, (400 / merged) ** 2)))


@dataclass(frozen=True)
class TablePlan:
    """Public formulas of the attributes, the number of rows and the budget."""

    attributes: tuple[Attribute, ...]
    important: Important = NOTHING
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
        part = Fraction(histogram_share(n, self.declared, budget))
        first, ranks = part * rest, min(RANKS, (1 - part) / 4) * rest
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
        """Mass of a bin of an ordered attribute: forty deviations of the pair noise, within reason.

        Where there are numbers, at least twelve bins if noise and memory allow it, and at most forty.
        """
        noise = pair_law(coarse(self.declared), budget).sd / n
        mass = float(np.clip(40 * noise, 1 / most_bins(self.declared), 0.25))
        if not grids(self.attributes):
            return mass
        q = len(self.attributes)
        finest = 1 / float(np.clip(400 // q, max(LEAST_BINS, min(12, MOST_MERGED // q)), 40))
        return max(finest, BINS[budget.pure] * mass)


@dataclass(frozen=True)
class Focus:
    """Predicted noise on 2-way shares: of important pairs, of the others, and of all if none were important.

    Single columns, merged categories and drawing add errors of their own, which do not shrink: docs/benchmarks/knowledge.md.
    """

    important: float
    others: float
    without: float


def expected_focus(plan: TablePlan, n: int, budget: Budget, left: float) -> Focus:
    """What important pairs gain and the others lose; `left` is the part of the noise that denoising leaves."""
    guess, rest = coarse(plan.declared), 1 - CERTIFICATE_SHARE

    def others(own: TablePlan) -> float:
        return pair_law(guess, budget.part(own.shares(n, budget, rest)["pairs"])).sd / n

    share = budget.part(plan.shares(n, budget, rest)["important"])
    moves = plan.important.moves(guess.sizes)
    first, second = others(plan), share.deviation(moves.l1, moves.l2_squared) / n
    both = 1 / (1 / first**2 + 1 / second**2) ** 0.5 if first > 0 else second
    return Focus(left * both, left * first, left * others(TablePlan(plan.attributes, wish=plan.wish)))


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


def forecast(plan: TablePlan, n: int, budget: Budget) -> TripleForecast:
    """What a wish for triples comes to."""
    own, q = plan.shares(n, budget, 1 - CERTIFICATE_SHARE).get("triples"), len(plan.attributes)
    candidates = plan.wish.candidates(q)
    if own is None:
        return TripleForecast(0, candidates, 0, 0.0)
    measuring = budget.part(own)
    count, levels = plan.wish.affordable(n, q, measuring)
    return TripleForecast(count, candidates, levels, noise_of(count, measuring) / n)
