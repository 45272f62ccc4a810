"""Public choices for tables of categories and numbers: how a budget is shared, and how fine pairs are looked at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from math import sqrt
from typing import Literal

import numpy as np

from covey._core.arrays import Floats
from covey._core.noise.integers import grouped, knorm_deviations
from covey._core.noise.pairlaw import PairLaw
from covey._core.noise.sensitivity import pair_table_sensitivity
from covey._core.numbers.grid import BRANCHING, Attribute, Category, NumberGrid, grids
from covey._core.tables.domain import Domain
from covey._methods.model import CERTIFICATE_SHARE
from covey._methods.regain.important import AGAIN, NOTHING, ONE_WAY, STAR, Important, triple_shares
from covey._methods.regain.measure_tables import look_moves, pair_moves
from covey.privacy.budget import Budget, exact
from covey.privacy.gate import Moves

NUMBER = 2.0  # weight of a number among the one-way charges, beside a category with as many codes
RANKS = Fraction(6, 100)  # share of the budget for rank covariances
# Of a round's charge to the next; by whether the guarantee is pure.
GROWTH = {False: Fraction(5, 4), True: Fraction(9, 8)}
MOST_MERGED = 4000  # bins of all attributes, about: several matrices of their squares are held at once, 128 MB each
LEAST_BINS = 3  # of an attribute, whatever the memory: fewer would not tell a rise from a bend
# Categories of an attribute whose one-way table gets K-norm noise, together with others, under pure ε: beyond, it gains 1%, and
# exact numbers of points become long.
JOINT = 64
# Times that K-norm noise for a row added or removed must be smaller than Laplace noise, whose sums tell n once for every table.
LOOSE = 1.2
# The private look: its part of the budget, and errors of pairs over κ. Chosen on telco and adult (docs/benchmarks/small.md).
LOOK, PER_EDGE = Fraction(1, 10), 1.2
MOST_ONE_WAY = 0.4  # of the budget, for one-way tables under K-norm noise where pairs are measured too
# Distances from independent columns that nearly all tables have, that most have, and that none has: telco, adult and nltcs lie
# between 0.1 and 0.16. Where the look's noise is more than so much of what pairs must reach, as with few columns, most is enough.
CERTAIN, USUAL, BLIND, HOPELESS = 0.02, 0.05, 0.6, 0.2
# What pairs must reach: below SHARP a target looks for triples unasked, beyond DIM its pairs get most of the pairs' budget, and
# between, with δ, two fifths, which gained nothing under pure ε. Set on bank and telco by what trees learn (benchmarks/mixed.md).
SHARP, DIM = 0.007, 0.05
# n√(2ρ) beyond which, under (ε, δ), a look costs more than it saves: on telco at 177, and at 129 where rows are added or removed
# (these count as more rows, as their noise is less), a fifth of the error.
CLEAN = 110
LOOKED = 0.08  # deviation of its noise beyond which a look would decide by chance: always, below CLEAN
TOGETHER = "columns and pairs"  # the charge of both, which the look divides, or which share one draw
JOINED = 5  # categories at most of attributes whose one-way and pair tables share one draw: none is merged first
Way = Literal["pairs", "look", "margins"]
WAYS: dict[Way, str] = {
    "pairs": "pairs of columns are measured",
    "look": "a look for a tenth of the budget or less decides whether pairs of columns are measured",
    "margins": "pairs of columns are not measured, since they would be noise: columns are released as independent",
}
BINS = {False: 0.6, True: 1.0}  # of the mass that categories' bins have; by whether the guarantee is pure


def pair_law(domain: Domain, budget: Budget, steps: int = 1) -> PairLaw:
    """The noise law for the pair tables of a domain: a function of public sizes alone.

    Under pure ε Laplace on one-hot cells or matrix Laplace noise, whichever has the smaller standard deviation. Where no law can
    be drawn (ε below a billionth or so; for persons, counted in steps, below a thousandth) pairs are not measured at all: they
    would be noise alone.
    """
    nothing = PairLaw("none", domain, Fraction(0))
    if sum(c > 1 for c in domain.sizes) < 2 or not budget.amount:
        return nothing
    moves = pair_moves(domain).under(budget)
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
    moved = pair_moves(guess).under(budget).l2_squared
    return n * float(moved or 0) ** 0.5 / sd if sd > 0 else float(n)


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
class Draw:
    """Attributes whose one-way tables get their noise in one draw, and its part of the one-way charge."""

    attributes: tuple[int, ...]
    part: Fraction
    joint: bool  # whether the noise is K-norm noise (docs/proofs/knorm.md); else there is one attribute


@dataclass(frozen=True)
class TablePlan:
    """Public formulas of the attributes, the number of rows and the budget."""

    attributes: tuple[Attribute, ...]
    important: Important = NOTHING
    totals: bool = True  # whether every unit fills one entry of each one-way table, so that its sum is public
    looks: bool = True  # whether pairs that would be noise are left out: where nothing but the table tells of them

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

    def gain(self, budget: Budget) -> float:
        """How many times smaller the noise on one-way tables is than Laplace noise on each: 1 where that is what they get."""
        live = self.declared.counts > 1
        if not any(draw.joint for draw in self.one_way(budget)):
            return 1.0
        root = np.sqrt(self.declared.counts[live])
        laplace = Moves.histograms(1).deviation(budget) * float(root.sum()) * float((1 / root).mean())
        return max(1.0, laplace / float(self.deviations(budget)[live].mean()))

    def one_way_part(self, n: int, budget: Budget) -> Fraction:
        """Share of the budget for one-way tables and trees: less where these are categories with K-norm noise.

        Errors in proportion to 1/ε are best balanced by shares in proportion to their square roots.
        """
        share = histogram_share(n, self.declared, budget)
        if share == 1 or grids(self.attributes) or any(a.groups for a in self.categories):
            return Fraction(share)
        gain = self.gain(budget)
        if gain == 1:
            return Fraction(share)
        odds = share / (1 - share) / sqrt(gain)
        return Fraction(min(odds / (1 + odds), max(MOST_ONE_WAY, share / gain)))

    def noise_words(self, n: int, budget: Budget) -> str:
        """Which law one-way tables get, and whether pairs are measured, in one line."""
        own = budget.part(1 - CERTIFICATE_SHARE)
        gain, joint = self.gain(own), [draw.joint for draw in self.one_way(own)]
        law = "K-norm" if all(joint) else "K-norm or Laplace" if any(joint) else "Laplace" if own.pure else "Gaussian"
        law += " noise, in one draw with pairs" if self.jointly(n, own) else " noise"
        first = law + (f", {gain:.2g} times less than Laplace noise on each" if gain > 1 else "")
        return f"single columns get {first}; {WAYS[self.way(n, own)]}"

    def needed(self, n: int, budget: Budget) -> float:
        """How far pairs must be from independent for their tables to be worth it, as a mean total variation.

        Measured pairs are off by about 1.2κ, where κ is the edge of the spectrum of their noise over the trace of the coding.
        """
        guess = coarse(self.declared)
        sizes = np.array([c for c in guess.sizes if c > 1])
        edge = 2 * pair_law(guess, budget).sd / n * sqrt(sum(sizes - 1))
        return float(PER_EDGE * edge / sum(1 - 1 / sizes))

    def needed_of_all(self, n: int, budget: Budget) -> float:
        """The same where pairs have all that one-way tables leave; 0 where there is no pair."""
        if sum(size > 1 for size in self.declared.sizes) < 2:
            return 0.0
        return self.needed(n, budget.part(1 - self.one_way_part(n, budget)))

    def focus(self, n: int, budget: Budget) -> Important:
        """What is measured again: pairs that were named, or those with a target, unless pairs are sharp or triples asked for."""
        own = self.important
        free = own.target is not None and (own.unasked or not own.triples) and not budget.persons
        dim = DIM if budget.pure else SHARP
        return own.starred(len(self.attributes)) if free and self.needed_of_all(n, budget) > dim else own

    def blur(self, n: int, budget: Budget) -> float:
        """The deviation of the noise of a look for a tenth of a budget."""
        live = sum(c > 1 for c in self.declared.sizes)
        return look_moves(live).deviation(budget.part(LOOK)) / (n * live * (live - 1))

    def look_part(self, n: int, budget: Budget) -> Fraction:
        """Of a budget, for the look: a tenth, or less where its noise stays below a third of what pairs must reach."""
        enough = Fraction(3 * self.blur(n, budget) / self.needed(n, budget.part(1 - LOOK)))
        return LOOK * min(Fraction(1), max(Fraction(1, 3), enough.limit_denominator(100)))

    def way(self, n: int, budget: Budget) -> Way:
        """Whether pairs are measured, one-way tables alone, or a private look decides between the two; of public numbers.

        `budget` is what the certificate leaves.
        """
        sizes = [c for c in self.declared.sizes if c > 1]
        plain = self.looks and self.totals and not grids(self.attributes) and not any(a.groups for a in self.categories)
        if not plain or len(sizes) < 2 or self.important or budget.persons:
            return "pairs"
        if not budget.pure and n * sqrt(2 * float(budget.for_replaced.per_row)) >= CLEAN:
            return "pairs"
        needed, sd = self.needed(n, budget.part(1 - LOOK)), self.blur(n, budget)
        if needed <= CERTAIN or (needed <= USUAL and sd > BLIND * needed):
            return "pairs"
        return "margins" if sd > LOOKED or needed > HOPELESS else "look"

    def jointly(self, n: int, budget: Budget) -> bool:
        """Whether one-way and pair tables share one draw of Gaussian noise; `budget` is what the certificate leaves."""
        few = all(isinstance(a, Category) and 1 < a.size <= JOINED and not a.groups for a in self.attributes)
        apart = self.important or budget.pure or budget.persons or budget.size_is_secret or not self.totals
        if apart or not few or len(self.attributes) < 2 or self.way(n, budget) != "pairs":
            return False
        return self.joint_law(n, budget)[0].drawable

    def joint_law(self, n: int, budget: Budget) -> tuple[PairLaw, list[Fraction]]:
        """The noise of pairs in a draw with one-way tables, and the weights of these: as those of two charges would be."""
        part, sizes = self.one_way_part(n, budget), self.declared.sizes
        odds = pair_table_sensitivity(sizes) * part / (2 * (1 - part))
        weights = [(odds * draw.part).limit_denominator(1000) for draw in self.one_way(budget)]
        return PairLaw("gaussian", self.declared, budget.variance(pair_table_sensitivity(sizes, weights))), weights

    @property
    def categories(self) -> list[Category]:
        """Attributes that are no numbers."""
        return [a for a in self.attributes if isinstance(a, Category)]

    def shares(self, n: int, budget: Budget, rest: Fraction) -> Mapping[str, Fraction]:
        """One-way tables and trees, pairs, rank covariances: parts of `rest`, which is what the certificate leaves."""
        way = self.way(n, budget.part(rest))
        if way == "look":
            look = self.look_part(n, budget.part(rest)) * rest
            return {"look": look, TOGETHER: rest - look}
        if way == "margins":
            return {"histograms": rest, "pairs": Fraction(0)}
        if self.jointly(n, budget.part(rest)):
            return {TOGETHER: rest}
        part = self.one_way_part(n, budget)
        first, ranks = part * rest, min(RANKS, (1 - part) / 4) * rest
        shares = {"histograms": first, "pairs": rest - first}
        if self.ranked > 1 and first < rest:
            shares |= {"pairs": rest - first - ranks, "ranks": ranks}
        own, q = self.focus(n, budget), len(self.attributes)
        if own.live(self.declared.sizes) and shares["pairs"]:
            extra = (AGAIN if own is self.important or self.needed_of_all(n, budget) <= DIM else STAR) * shares["pairs"]
            shares |= {"pairs": shares["pairs"] - extra, "important": extra}
        if own.unasked and own.triples and self.needed_of_all(n, budget) > SHARP:
            return shares
        return shares | triple_shares(shares["pairs"], lambda share: own.affordable(n, q, budget.part(share))[0] > 0)

    def parts(self, n: int, budget: Budget, rest: Fraction) -> Mapping[str, Fraction]:
        """As `shares`, with one-way tables and pairs apart, as they are if a look finds pairs worth it: for predictions."""
        shares = dict(self.shares(n, budget, rest))
        whole = shares.pop(TOGETHER, None)
        if whole is None:
            return shares
        part = self.one_way_part(n, budget)
        return shares | {"histograms": part * whole, "pairs": (1 - part) * whole}

    def one_way(self, budget: Budget, steps: int = 1) -> list[Draw]:
        """Draws of noise for the one-way tables, and their parts of the charge, which sum to 1.

        Single attributes get parts in proportion to √c (Laplace) or c^{2/3} (Gaussian) in the number of codes, as for categories;
        numbers count double, and important attributes three times. Under pure ε attributes of few categories share draws of
        K-norm noise, grouped so that Σ c·sd is least over all.
        """
        counts = self.declared.counts
        emphasis = [NUMBER if isinstance(a, NumberGrid) else 1.0 for a in self.attributes]
        emphasis = [w * (ONE_WAY if j in self.important.attributes else 1.0) for j, w in enumerate(emphasis)]
        plain = {j: a for j, a in enumerate(self.attributes) if isinstance(a, Category) and not a.groups}
        few = [j for j, a in plain.items() if 1 < a.size <= JOINT]
        # Beyond it, noise would not fit its sampler: it would be noise alone.
        drawable = budget.pure and budget.per_row * 2**40 >= steps * int(counts[few].sum())
        together: list[tuple[tuple[int, ...], float, bool]] = []
        power, loose = 1 / 2 if budget.pure else 2 / 3, budget.size_is_secret
        single = [float(counts[j] ** power) * emphasis[j] for j in range(len(counts))]
        if few and self.totals and drawable:
            unit = sqrt(sqrt(2) if loose else 2 * sqrt(2))  # of Laplace noise on a table
            for members, worth in grouped([int(counts[j]) for j in few], [emphasis[j] ** 2 for j in few], loose):
                own = tuple(few[i] for i in members)
                if not loose or (sum(single[j] for j in own) * unit / worth) ** 2 >= LOOSE:
                    together.append((own, worth / unit, True))
        joined = {j for own, _, _ in together for j in own}
        draws = [*together, *(((j,), single[j], False) for j in range(len(counts)) if j not in joined)]
        whole = sum(worth for _, worth, _ in draws)
        parts = [exact(worth / whole, "share") for _, worth, _ in draws]
        total = sum(parts)
        return [Draw(own, part / total, joint) for (own, _, joint), part in zip(draws, parts, strict=True)]

    def deviations(self, budget: Budget) -> Floats:
        """Of the noise on a count of each attribute, from the budget of the one-way tables; of a number, if it had one round."""
        out = np.zeros(len(self.attributes))
        for draw in self.one_way(budget):
            own, members = budget.part(draw.part), list(draw.attributes)
            if draw.joint:
                deviations = knorm_deviations(self.declared.counts[members].tolist(), budget.size_is_secret)
                out[members] = np.array(deviations) * float(own.laplace_scale(1))
            else:
                out[members] = Moves.histograms(1).deviation(own)
        return out

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
