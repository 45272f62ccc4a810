"""Every choice of a fit of persons with events, from public numbers alone, and what a release would be like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import combinations

import numpy as np

from covey.engine.budget import Budget, shown
from covey.engine.certificate import WORDS
from covey.engine.codes.events import Timing
from covey.engine.draw.events import NOT_TIMED
from covey.engine.model import CERTIFICATE_SHARE
from covey.engine.models.predict import expected_triples, triple_words
from covey.engine.models.tables.important import NOTHING, Important
from covey.engine.models.tables.plan_tables import TablePlan
from covey.engine.models.tables.triples import triple_shares
from covey.engine.numbers.grid import Attribute, NumberGrid
from covey.engine.query import Columns
from covey.engine.sensitivity import Sensitivity

# Of the budget, for the number of events, by whether the guarantee is pure: it shapes every person.
COUNTS = {False: Fraction(1, 10), True: Fraction(9, 100)}
# Weights of tables of a person and an event, of one event, and of two events, beside those of a person, by whether the guarantee
# is pure: there noise grows as 1/weight and not as its root, and the first, of which there are most, take it from the others.
ACROSS = {False: Fraction(1), True: Fraction(3, 5)}
WITHIN = {False: Fraction(3), True: Fraction(2)}
LINKS = {False: Fraction(1), True: Fraction(3, 2)}
# Weight of a one-way table beside a table of two attributes, likewise: all others lean on them.
ONE_WAY = {False: 1, True: 2}
CROSSED = 100_000  # persons, at ε = 1: from here on steps from one attribute to another pay for their noise
# Persons, likewise: below, of pairs those of steps alone are measured (of two events where there is no order), and what is named
# as important. With 500 persons others were noise that one-way tables paid for; pure ε, where this was no gain, is left out.
FEW_LINKS, FEW_ONE_WAY = 1_000, 2
FEW_PERSONS = 5_000  # at ε = 1 and δ > 0: below, links are mostly noise (docs/benchmarks/persons.md)
PURE = 3.0  # times as many persons that pure ε needs for the same noise, about
GROWN, GROWTH = 20_000, (0.5, 2.0)  # persons, at ε = 1 and δ > 0, that the size of the fit was chosen on; its bounds
MASS = 40.0  # deviations of a table's noise that a bin of an ordered attribute holds, as for single tables
LEAST_BINS, MOST_BINS = 4, 24  # of an ordered attribute, whatever the noise is

# Times the weight of a table of an important pair, and of every table with an important column or the target. Few tables get
# half the noise at little cost to the others; those of one column are about a third of all, and twice the weight takes a sixth
# off their noise and adds a seventh to that of the others.
PAIR, STAR = 4, 2

Tables = Mapping[tuple[str, Fraction], list[Columns]]  # columns of each table, by its kind and its weight


@dataclass(frozen=True)
class PersonsPlan:
    """Public formulas of the attributes, the cap, whether events have an order, and the budget."""

    persons: tuple[Attribute, ...]
    events: tuple[Attribute, ...]
    most: int
    ordered: bool
    timing: Timing = NOT_TIMED
    everybody: bool = False  # whether it is known that nobody is without events
    important: Important = NOTHING

    @property
    def last(self) -> int:
        """The largest code of the order column; 0 where there is none."""
        return 0 if self.timing.order is None else self.events[self.timing.order].size - 1

    @cached_property
    def numbers(self) -> TablePlan:
        """Formulas for one-way tables of all attributes, the persons' first."""
        named = self.important.attributes.union(*self.important.pairs)
        return TablePlan((*self.persons, *self.events), Important(named), one_cell_per_unit=False)

    def shares(self, n: int, budget: Budget, certificate: Fraction) -> Mapping[str, Fraction]:
        """Parts of the budget: number of events, one-way tables and trees, tables of two attributes, certificate."""
        rest, counts = 1 - certificate, COUNTS[budget.pure]
        tables = sum(2 * a.rounds if isinstance(a, NumberGrid) else 1 for a in (*self.persons, *self.events))
        one_way = (FEW_ONE_WAY if self.few(n, budget) else ONE_WAY[budget.pure]) * tables
        pairs = sum(weights_of(replace(self, important=NOTHING).tables(n, budget)))
        first = (rest - rest * counts) * Fraction(one_way, one_way + pairs)
        shares = {"events": rest * counts, "histograms": first, "tables": rest - rest * counts - first}
        measuring = triple_shares(shares["tables"], lambda own: bool(self.triples(n, budget.part(own))["count"]))
        shares |= {"tables" if name == "pairs" else name: share for name, share in measuring.items()}
        return {name: share for name, share in shares.items() if share} | {"certificate": certificate}

    def few(self, n: int, budget: Budget) -> bool:
        """Whether there are so few persons that pairs of columns are left out but for steps."""
        some = self.most > 1 and any(k.size > 1 and j != self.timing.position for j, k in enumerate(self.events))
        return bool(some and budget.delta and n * strength(budget) < FEW_LINKS)

    def tables(self, n: int, budget: Budget, whole: Budget | None = None) -> Tables:
        """Which columns together: those of persons, of events, and the number of events last; none of a single category.

        `whole` is what `budget` is a part of, if it is one.
        """
        one, across = Fraction(1), ACROSS[budget.pure]
        within, links = WITHIN[budget.pure], LINKS[budget.pure]
        first, count = len(self.persons), len(self.persons) + len(self.events)
        place = None if self.timing.position is None else first + self.timing.position
        several = [a for a, kind in enumerate((*self.persons, *self.events)) if kind.size > 1 and a != place]
        own, its = [*(a for a in several if a < first), count], [a for a in several if a >= first]
        found: dict[tuple[str, Fraction], list[Columns]] = {
            ("person", one): list(combinations(own, 2)),
            ("across", across): [(a, b) for a in own for b in its],
            ("event", within): list(combinations(its, 2)),
        }
        if place is not None:  # how it goes with the number of events is known; its classes are few
            found["event", one] = [(min(a, place), max(a, place)) for a in its]
        if self.most > 1:
            cross = n * strength(budget) >= CROSSED  # whether steps from one attribute to another are measured as well
            if self.ordered:
                found["step", links] = [(a, b) for a in its for b in its if cross or a == b]
            found["two", links] = [(a, b) for a in its for b in its if (cross and a < b) or a == b]
        weighed, link = self._weighed(found), "step" if self.ordered else "two"
        if not self.few(n, whole or budget):
            return weighed
        stars, usual = {*self.important.attributes, self.important.target, place}, dict(found)
        kept = {
            (kind, weight): [c for c in sets if kind == link or (kind, weight) not in usual or stars.intersection(c)]
            for (kind, weight), sets in weighed.items()
        }
        return {key: sets for key, sets in kept.items() if sets}

    def _weighed(self, tables: Tables) -> Tables:
        """The same tables with what matters most at larger weights."""
        found: dict[tuple[str, Fraction], list[Columns]] = {}
        stars = {*self.important.attributes, self.important.target}
        for (kind, weight), sets in tables.items():
            for columns in sets:
                pair = (min(columns), max(columns)) in self.important.pairs
                times = PAIR if pair else STAR if stars.intersection(columns) else 1
                found.setdefault((kind, weight * times), []).append(columns)
        return found

    @property
    def triple_target(self) -> int | None:
        """The target, where it is of persons: then every triple names it."""
        target = self.important.target
        return None if target is None or target >= len(self.persons) else target

    def triples(self, n: int, budget: Budget | None) -> dict[str, float]:
        """How many triples of a person's attributes are measured with a budget, among how many, and on how many levels.

        The number of events is an attribute.
        """
        return expected_triples(replace(self.important, target=self.triple_target), len(self.persons) + 1, n, budget)

    def growth(self, n: int, budget: Budget) -> float:
        """Times as many kinds of events and steps of the fit as at `GROWN` persons: by the square root, within reason."""
        return float(np.clip(np.sqrt(n * strength(budget) / GROWN), *GROWTH))

    def table_sd(self, n: int, budget: Budget, whole: Budget) -> float:
        """The noise on an entry of a table of weight 1, in persons, with a part of the whole budget."""
        return table_sensitivity(weights_of(self.tables(n, budget, whole))).deviation(budget)

    def bin_mass(self, n: int, budget: Budget, whole: Budget) -> float:
        """Mass of a bin of an ordered attribute: so many deviations of the noise, within reason."""
        return float(np.clip(MASS * self.table_sd(n, budget, whole) / n, 1 / MOST_BINS, 1 / LEAST_BINS))


def weights_of(tables: Tables) -> list[Fraction]:
    """The weight of each table."""
    return [weight for (_, weight), sets in tables.items() for _ in sets]


def table_sensitivity(weights: Sequence[Fraction | int]) -> Sensitivity:
    """How far one replaced person moves tables of these weights together (docs/proofs/persons.md).

    A person adds to each a vector without negative entries and with a sum of 1 at most: it moves by at most 2 in ℓ1, and its
    square by at most 2 in ℓ2.
    """
    return Sensitivity.histograms(sum(weights))


def strength(budget: Budget) -> float:
    """ε, as a share of what it is worth with δ > 0: a public measure of how much so many persons can tell."""
    return float(budget.epsilon) / (1 if budget.delta else PURE)


def few_persons(n: int, budget: Budget) -> str:
    """Advice against a release of linked tables, where public numbers say that links would be noise; empty elsewhere."""
    if n * strength(budget) >= FEW_PERSONS:
        return ""
    return (
        f"{n:,} persons are too few for links at epsilon = {float(budget.epsilon):g}"
        + ("" if budget.delta else " without delta")
        + ": relations between events and their person will be mostly noise. "
        "Two releases that share the budget and are not linked, "
        "persons as one table and events with person=…, keep what each table says by itself about as well or better; more "
        "persons, a larger epsilon or a positive delta help."
    )


@dataclass(frozen=True)
class PersonsPrediction:
    """Which tables would be measured, and how noisy."""

    persons: int
    epsilon: float
    delta: float
    tables: dict[str, int]  # how many, by kind
    noise: float  # of an entry of a table, as a share of the persons
    unlinked: float  # of a table of one event, if events were released alone with the same budget
    warning: str  # advice where links would be noise
    triples: dict[str, float] | None = None  # of a person's attributes, as `expected_triples` has them

    @property
    def words(self) -> list[str]:
        """For a reader."""
        return [
            f"n = {self.persons} persons, ε = {self.epsilon:g}, δ = {shown(Fraction(self.delta))}",
            *(f"  {count} tables of {WORDS[kind]}" for kind, count in self.tables.items()),
            f"noise on a cell of a table: {self.noise:.2g} of the persons; with events alone about {self.unlinked:.2g}",
            *([] if self.triples is None else [triple_words(self.triples, "persons")]),
            *([f"warning: {self.warning}"] if self.warning else []),
        ]


def predict_persons(plan: PersonsPlan, n: int, budget: Budget) -> PersonsPrediction:
    """Tables, noise and advice for n persons."""
    tables, shares = plan.tables(n, budget), plan.shares(n, budget, CERTIFICATE_SHARE)
    share, measuring = shares.get("tables"), shares.get("triples")
    triples = plan.triples(n, None if measuring is None else budget.part(measuring)) if plan.important.triples else None
    kinds = [kind for (kind, _), sets in tables.items() for _ in sets]
    alone = PersonsPlan((), plan.events, 1, False)
    q = max(1, sum(len(sets) for (kind, _), sets in alone.tables(n, budget).items() if kind == "event"))
    one = budget.part(Fraction(3, 4)).deviation(2 * q, 2 * q)
    return PersonsPrediction(
        n,
        float(budget.epsilon),
        float(budget.delta),
        {kind: kinds.count(kind) for kind in dict.fromkeys(kinds)},
        plan.table_sd(n, budget.part(share), budget) / n if share else 0.0,  # nothing but columns by themselves
        one / n,
        few_persons(n, budget),
        triples,
    )
