"""A fit of persons with events: the number of events, one-way tables and trees, tables of two attributes, centres, a certificate.

Numbers are looked at one by one first, as for single tables (`methods.regain.tables`): trees on person-averaged counts, cells of
about equal mass, bins of cells for tables of two attributes. Centres are fitted over bins and taken apart to cells again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from itertools import groupby
from typing import Any

import numpy as np

from covey._core.arrays import Floats, Integers, blas_threads
from covey._core.draw.events import SequenceLaw
from covey._core.fit.events import EventGoal, EventModel, fit_events
from covey._core.fit.shrinkage import denoise_histogram
from covey._core.numbers.grid import Attribute, comparison_edges
from covey._core.paper.blocks import WeightedPoints
from covey._core.tables.domain import Domain, unmerge
from covey._core.tables.events import count_bins
from covey._core.tables.zeros import NO_BOXES, Across, Box, Boxes, Zeros
from covey._methods.model import Ask, Asking, Fitted, Part, Setting, Statistic, entries
from covey._methods.persons.goal import leave_places, make_goal, tilted
from covey._methods.persons.law import COMPARED, PersonsLaw, Reference
from covey._methods.persons.plan import PersonsPlan, Tables, table_moves, weights_of
from covey._methods.regain.important import Binned, find_triples
from covey._methods.regain.measure_tables import OneWayCounts, measure_one_way
from covey._methods.regain.tables import OneWayModel, Prior, RegainTables
from covey.measure.measurement import Measurement, Measurements, joined
from covey.measure.query import Factor, Query
from covey.privacy.budget import Budget
from covey.privacy.certificate import THREE
from covey.privacy.gate import Moves
from covey.table.description import Description
from covey.table.zeros import across_zeros, structural_zeros


@dataclass(frozen=True)
class RegainPersons:
    """The method, for given attributes; boxes are combinations of codes that cannot occur, in either table."""

    certificate: Fraction
    plan: PersonsPlan
    boxes: tuple[Boxes, Boxes] = (NO_BOXES, NO_BOXES)
    across: Boxes = NO_BOXES  # over the attributes of both tables, each with one of events
    prior: Prior | None = None
    first_pass: tuple[Callable[[Any], Any], ...] = ()  # persons are in memory: nothing is added up while they are read

    @classmethod
    def of(cls, described: Description, certificate: Fraction) -> RegainPersons:
        """For these tables."""
        persons, events = (structural_zeros(codec) for codec in described.codecs)
        return cls(certificate, PersonsPlan.of(described), (persons, events), across_zeros(described))

    @cached_property
    def own(self) -> RegainTables:
        """All attributes side by side, as one-way tables see them."""
        first = len(self.plan.persons)
        moved = tuple(Box({j + first: side for j, side in box.items()}) for box in self.boxes[1].boxes)
        return RegainTables(
            self.certificate,
            (*self.plan.persons, *self.plan.events),
            Boxes((*self.boxes[0].boxes, *moved, *self.across.boxes)),
            prior=self.prior,
        )

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The planned part of the budget for each purpose, from public numbers."""
        return self.plan.shares(n, budget, self.certificate)

    def ask(self, told: Setting) -> Asking[Fitted]:
        """A law of sequences."""
        plan, n, pure, public = self.plan, told.n, told.pure, told.public
        first = len(plan.persons)
        with blas_threads(1):
            counts = yield from measure_counts(told, plan.most)
            sd = float(counts.sd)
            own = denoise_histogram(counts.values, sd, n, True, public("law of counts")) / n
            own = some_events(own) if plan.everybody else own
            counted = AveragedCounts(n, {}, plan.persons, plan.events, n * float(1 - own[0]))
            one_way = yield from measure_one_way(counted, plan.numbers, told)
            totals = [float(counted.total(j)) for j in range(told.p)]
            mass = plan.bin_mass(n, told.allowance("tables"))
            seen = self.own.look(one_way, totals, mass, pure, public("numbers"))
            split = Split.of(seen, first, count_factor(plan.most))
            found = yield from measure_tables(plan.tables(n, told.budget), split.factors)
            # What no event of some persons can be, over categories and cells.
            barred = Across.of(self.across, first, [edges[:-1] for edges in seen.edges])
            goal = make_goal(split, seen, (own, sd), found, n)
            goal = replace(goal, growth=plan.growth(n, told.budget))
            place = plan.timing.position
            if place is not None:
                leave_places(goal, place)
            if barred and "across" in goal.target:
                barred.gathered(seen.maps, seen.bins).told(goal.target["across"], goal.weight["across"])
            zeros, generator = self._zeros(seen, split), public("fit")
            models = fit_events(goal, generator, told.tick, zeros)
            if told.has("triples"):
                chosen, goal = yield from self._triples(split, goal, models, told)
                found = [*found, *([] if chosen is None else [chosen])]
                models = fit_events(goal, generator, told.tick, zeros, models) if goal.triples is not None else models
            sequences = replace(split.law(models, seen, own), barred=barred, timing=plan.timing)
            if place is not None:
                sequences = replace(sequences, tilts=tilted(found, place, split, seen, sequences))
            sides = one_way.found[:first], one_way.found[first:]
            kept = Measurements(n, (*(joined(side) for side in sides if side), counts, *found))
            law = PersonsLaw(sequences, seen.cells, plan.last)
            if self.certificate:
                drawn = law.drawn(int(np.clip(n, *COMPARED)), public("reference"), public("reference values"))
                groups: dict[str, list[Query]] = {"events": [counts.query]}
                for measured in found:
                    kind = THREE if measured.query.degree == 3 else measured.query.of
                    groups.setdefault(kind, []).append(measured.query)
                for j, cells in sorted(seen.cells.items()):
                    edges = comparison_edges(cells)
                    query = counted.query(j, Factor(edges, np.arange(len(edges) - 1)))
                    groups.setdefault("numbers", []).append(query)
                law = replace(law, reference=Reference.of(drawn, groups))
            return Fitted(law, kept)

    def _triples(
        self, split: Split, goal: EventGoal, models: Sequence[EventModel], told: Setting
    ) -> Asking[tuple[Measurement | None, EventGoal]]:
        """Tables of three attributes of a person that the models miss most, and the goal with what stands out of their noise.

        The number of events is such an attribute. Columns of events have one bin here, and so are in no triple.
        """
        first, last, domain = len(self.plan.persons), told.p, split.persons
        factors = [Factor(np.array([0, 1]), np.zeros(1, dtype=np.int64))] * (last + 1)
        shares, own = [np.ones(1)] * (last + 1), np.split(goal.target["one"][0, : domain.total], domain.starts[1:-1])
        for place, a in enumerate([*range(first), last]):
            factors[a], shares[a] = split.factors[a], np.maximum(own[place], 0.0)
        points, count = np.vstack([m.persons for m in models]), int(domain.starts[-2])
        points = np.insert(points, [count] * (last - first), 1.0, axis=1)
        cloud = WeightedPoints(np.full(len(points), 1 / len(points)), points)
        ordered = (*domain.ordered[:-1], *[False] * (last - first), True)
        looked_at, within = Binned(factors, shares, ordered, cloud, "person"), self.plan.triple_target
        said = self.plan.triples(told.n, told.allowance("triples"))
        affordable = int(said["count"]), int(said["levels"])
        three, chosen = yield from find_triples(looked_at, within, affordable, told)
        if three is None or chosen is None:
            return chosen, goal
        places = {last: first}  # where columns are among those of persons
        names = tuple((a, b, places.get(c, c)) for a, b, c in three.names)
        three = replace(three, names=names, levels={places.get(a, a): to for a, to in three.levels.items()})
        return chosen, replace(goal, triples=three, triple_weight=(chosen.per / float(chosen.sd)) ** 2)

    def _zeros(self, seen: OneWayModel, split: Split) -> tuple[Zeros | None, Zeros | None]:
        """What cannot occur, over the bins of persons (and the number of their events) and of events."""
        found: list[Zeros | None] = []
        for boxes, part, domain in zip(self.boxes, split.parts, (split.persons, split.events), strict=True):
            if not boxes:
                found.append(None)
                continue
            merged, first = seen.bins.only(part), [seen.edges[j][:-1] for j in part]
            own = boxes.on(seen.domain.only(part), first).gathered([seen.maps[j] for j in part], merged)
            rest = np.ones(domain.total - merged.total, dtype=bool)  # no box names the number of events
            found.append(Zeros(domain, tuple((names, np.append(mask, rest)) for names, mask in own.boxes)))
        return found[0], found[1]


def some_events(law: Floats) -> Floats:
    """A law of the number of events of persons each of whom is known to have some."""
    rest = np.append(0.0, law[1:])
    return np.asarray(
        rest / rest.sum() if rest.sum() > 0 else np.append(0.0, np.full(len(law) - 1, 1 / (len(law) - 1)))
    )


def with_counts(persons: Domain, bins: int) -> Domain:
    """Attributes of persons, and the number of events in so many bins."""
    return Domain((*persons.sizes, bins), (*persons.ordered, True))


@dataclass(frozen=True)
class Split:
    """Bins and cells of all attributes, taken apart into those of persons (with the number of events) and of events."""

    parts: tuple[range, range]
    persons: Domain
    events: Domain
    factors: tuple[Factor, ...]

    @classmethod
    def of(cls, seen: OneWayModel, first: int, counts: Factor) -> Split:
        """From what one-way tables say."""
        parts = range(first), range(first, len(seen.maps))
        persons = with_counts(seen.bins.only(parts[0]), counts.size)
        return cls(parts, persons, seen.bins.only(parts[1]), (*seen.factors, counts))

    def block(self, a: int) -> slice:
        """Where the bins of a column are, among those of persons or of events."""
        its = self.parts[1]
        return self.events.block(a - its.start) if a in its else self.persons.block(min(a, its.start))

    def law(self, models: list[EventModel], seen: OneWayModel, counts: Floats) -> SequenceLaw:
        """Models over cells, from models over bins."""
        persons, events = (seen.domain.only(part) for part in self.parts)
        whole = with_counts(persons, len(count_bins(len(counts) - 1)))
        return SequenceLaw([self._fine(own, seen) for own in models], whole, events, counts)

    def _fine(self, own: EventModel, seen: OneWayModel) -> EventModel:
        equal = np.full(len(own.persons), 1 / len(own.persons))
        last = self.persons.block(len(self.persons.sizes) - 1)
        having = 1 - own.persons[:, last.start]
        weights = having @ own.first
        shares = [[seen.shares[j] for j in part] for part in self.parts]
        maps = [[seen.maps[j] for j in part] for part in self.parts]
        persons = unmerge(own.persons[:, : last.start], equal, shares[0], maps[0], seen.bins.only(self.parts[0]))
        events = unmerge(own.events, weights / max(weights.sum(), 1e-12), shares[1], maps[1], self.events)
        return replace(own, persons=np.hstack([persons, own.persons[:, last]]), events=events)


ONE_PERSON = Moves.histograms(1)  # a person adds a vector of non-negative numbers that sum to 1 at most


def measure_counts(told: Setting, most: int) -> Asking[Measurement]:
    """How many persons have 0, 1, …, `most` events, a column beside the others; spends "events"."""
    query = Query([(told.p,)], {told.p: Factor.plain(most + 1)}, of="person", total=False)
    (found,) = yield [Ask("events", [Part(query, Statistic.tables(query), most + 1)], ONE_PERSON)]
    return found


@dataclass(frozen=True)
class AveragedCounts(OneWayCounts):
    """One-way counts of codes: of n persons, then of events averaged by person.

    `having` is the number of persons with events, as the noisy counts say.
    """

    persons: tuple[Attribute, ...] = ()
    events: tuple[Attribute, ...] = ()
    having: float = 0.0

    def query(self, j: int, factor: Factor) -> Query:
        """A person's own code, or the average of their events."""
        return Query([(j,)], {j: factor}, of="person" if j < len(self.persons) else "event", total=False)

    def codes(self, j: int) -> Statistic:
        """Counts of every code of an attribute, in steps."""
        return Statistic.tables(self.query(j, Factor.plain((*self.persons, *self.events)[j].size)))

    def ranges(self, edges: dict[int, Integers]) -> dict[int, Statistic]:
        """Counts between edges, for several attributes, in steps."""
        return {j: Statistic.tables(self.query(j, Factor(own, np.arange(len(own) - 1)))) for j, own in edges.items()}

    def total(self, j: int) -> int:
        """Persons, or those among them who have events."""
        return self.n if j < len(self.persons) else max(1, round(self.having))


def measure_tables(tables: Tables, factors: Sequence[Factor]) -> Asking[list[Measurement]]:
    """All tables of two attributes in one mechanism, those of a kind and a weight together; spends "tables"."""
    parts = []
    for (kind, weight), sets in tables.items():
        query = Query(sets, dict(enumerate(factors)), of=kind, total=False)
        exact, starts = Statistic.tables(query), query.starts
        for k, columns in enumerate(sets):
            own, shape = exact.map(entries, slice(*starts[k : k + 2])), query.shape(columns)
            parts.append(Part(query, own.map(np.reshape, shape), shape, weight))
    measured = yield [Ask("tables", parts, table_moves(weights_of(tables)))]
    found = []
    for _, same in groupby(measured, lambda own: id(own.query)):
        parted = list(same)
        found.append(replace(parted[-1], values=np.concatenate([m.values.ravel() for m in parted])))
    return found


def count_factor(most: int) -> Factor:
    """The number of events, up to so many, in bins."""
    numbers = np.arange(most + 1)
    return Factor(np.arange(most + 2), np.searchsorted(count_bins(most), numbers, side="right") - 1)
