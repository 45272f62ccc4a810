"""A fit of persons with events: the number of events, one-way tables and trees, tables of two attributes, centres, a certificate.

Numbers are looked at one by one first, as for single tables (`methods.regain.tables`): trees on person-averaged counts, cells of
about equal mass, bins of cells for tables of two attributes. Centres are fitted over bins and taken apart to cells again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import groupby
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers, blas_threads
from covey.engine.budget import Budget
from covey.engine.certificate import THREE
from covey.engine.codes.domain import Domain, unmerge
from covey.engine.codes.events import count_bins, position_starts
from covey.engine.codes.zeros import NO_BOXES, Across, Box, Boxes, Zeros
from covey.engine.draw.events import SequenceLaw
from covey.engine.fit.events import EventGoal, EventModel, fit_events, ties
from covey.engine.fit.shrinkage import beyond_noise, denoise_histogram
from covey.engine.measurement import Measurement, Measurements, joined
from covey.engine.model import Ask, Asking, Component, Fitted, Setting
from covey.engine.models.persons.law import COMPARED, PersonsLaw, Reference
from covey.engine.models.persons.plan import PersonsPlan, Tables, table_sensitivity, weights_of
from covey.engine.models.tables.discretize import Discretization, Discretizer
from covey.engine.models.tables.measure_tables import OneWayMeasurements, measure_one_way
from covey.engine.models.tables.prior import Prior
from covey.engine.models.tables.table_counts import OneWayCounts
from covey.engine.models.tables.triples import AffordableTriples, Binned, find_triples
from covey.engine.numbers.grid import Attribute, comparison_edges
from covey.engine.points import WeightedPoints
from covey.engine.query import Columns, Factor, Query
from covey.engine.sensitivity import Sensitivity
from covey.engine.statistic import Statistic, entries


@dataclass(frozen=True)
class RegainPersons:
    """The method, for given attributes; boxes are combinations of codes that cannot occur, in either table."""

    certificate: Fraction
    plan: PersonsPlan
    boxes: tuple[Boxes, Boxes] = (NO_BOXES, NO_BOXES)
    across: Boxes = NO_BOXES  # over the attributes of both tables, each with one of events
    prior: Prior | None = None
    first_pass: tuple[Callable[[Any], Any], ...] = ()  # persons are in memory: nothing is added up while they are read

    def _discretizer(self, bin_mass: float, pure: bool) -> Discretizer:
        """Cells and bins of all attributes, those of persons first."""
        first = len(self.plan.persons)
        moved = tuple(Box({j + first: side for j, side in box.items()}) for box in self.boxes[1].boxes)
        return Discretizer(
            attributes=(*self.plan.persons, *self.plan.events),
            bin_mass=bin_mass,
            pure=pure,
            boxes=Boxes((*self.boxes[0].boxes, *moved, *self.across.boxes)),
            prior=self.prior,
        )

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The planned part of the budget for each purpose, from public numbers."""
        return self.plan.shares(n, budget, self.certificate)

    def ask(self, setting: Setting) -> Asking[Fitted]:
        """A law of sequences."""
        plan, n, pure, public = self.plan, setting.n, setting.pure, setting.public
        first = len(plan.persons)
        with blas_threads(1):
            counts = yield from measure_counts(setting, plan.most)
            sd = float(counts.sd)
            own = denoise_histogram(counts.values, sd, n, True, public("law of counts")) / n
            own = some_events(own) if plan.everybody else own
            counted = AveragedCounts(n, {}, None, plan.persons, plan.events, n * float(1 - own[0]))
            one_way = yield from measure_one_way(counted, plan.numbers, setting)
            totals = [float(counted.total(j)) for j in range(setting.p)]
            mass = plan.bin_mass(n, setting.allowance("tables"), setting.budget)
            seen = self._discretizer(mass, pure).discretize(one_way, totals, public("numbers"))
            split = Split.of(seen, first, count_factor(plan.most))
            found = yield from measure_tables(plan.tables(n, setting.budget), split.factors)
            # What no event of some persons can be, over categories and cells.
            barred = Across.of(self.across, first, [edges[:-1] for edges in seen.cell_edges])
            goal = make_goal(split, seen, (own, sd), found, n)
            goal = replace(goal, growth=plan.growth(n, setting.budget))
            place = plan.timing.position
            if place is not None:
                leave_places(goal, place)
            if barred and "across" in goal.target:
                barred.gathered(seen.bin_of, seen.bin_domain).told(goal.target["across"], goal.weight["across"])
            zeros, generator = self._zeros(seen, split), public("fit")
            models = fit_events(goal, generator, setting.tick, zeros)
            if setting.has("triples"):
                chosen, goal = yield from self._triples(split, goal, models, setting)
                found = [*found, *chosen]
                if goal.triples is not None:
                    models = fit_events(goal, generator, setting.tick, zeros, models)
            free = [len(np.unique(to[:k])) for to, k in zip(seen.bin_of, seen.special_cells, strict=True)]
            when, tied = plan.timing, ties(goal, models, seen.bin_of[first:], free[first:])
            tied = {a: tie for a, tie in tied.items() if a not in (when.order, when.position, when.gap)}
            sequences = replace(split.law(models, seen, own), barred=barred, timing=when, ties=tied)
            if place is not None:
                sequences = replace(sequences, tilts=tilted(found, place, split, seen, sequences))
            sides = one_way.histograms[:first], one_way.histograms[first:]
            kept = Measurements(n, (*(joined(side) for side in sides if side), counts, *found))
            law = PersonsLaw(sequences, seen.number_cells, plan.last)
            if self.certificate:
                drawn = law.drawn(int(np.clip(n, *COMPARED)), public("reference"), public("reference values"))
                groups: dict[str, list[Query]] = {"events": [counts.query]}
                for measured in found:
                    kind = THREE if measured.query.degree == 3 else measured.query.of
                    groups.setdefault(kind, []).append(measured.query)
                for j, cells in sorted(seen.number_cells.items()):
                    edges = comparison_edges(cells)
                    query = counted.query(j, Factor(edges, np.arange(len(edges) - 1)))
                    groups.setdefault("numbers", []).append(query)
                law = replace(law, reference=Reference.of(drawn, groups))
            return Fitted(law, kept)

    def _triples(
        self, split: Split, goal: EventGoal, models: Sequence[EventModel], setting: Setting
    ) -> Asking[tuple[tuple[Measurement, ...], EventGoal]]:
        """Tables of three attributes of a person that the models miss most, and the goal with what stands out of their noise.

        The number of events is such an attribute. Columns of events have one bin here, and so are in no triple.
        """
        first, last, domain = len(self.plan.persons), setting.p, split.persons
        factors = [Factor(np.array([0, 1]), np.zeros(1, dtype=np.int64))] * (last + 1)
        shares, own = [np.ones(1)] * (last + 1), np.split(goal.target["one"][0, : domain.total], domain.starts[1:-1])
        for place, a in enumerate([*range(first), last]):
            factors[a], shares[a] = split.factors[a], np.maximum(own[place], 0.0)
        points, count = np.vstack([m.persons for m in models]), int(domain.starts[-2])
        points = np.insert(points, [count] * (last - first), 1.0, axis=1)
        cloud = WeightedPoints(np.full(len(points), 1 / len(points)), points)
        ordered = (*domain.ordered[:-1], *[False] * (last - first), True)
        looked_at, within = Binned(factors, shares, ordered, cloud, "person"), self.plan.triple_target
        said = self.plan.triples(setting.n, setting.allowance("triples"))
        affordable = AffordableTriples(int(said["count"]), int(said["levels"]))
        measured = yield from find_triples(looked_at, within, affordable, setting)
        three, chosen = measured.goal, measured.measurements
        if three is None:
            return chosen, goal
        places = {last: first}  # where columns are among those of persons
        names = tuple((a, b, places.get(c, c)) for a, b, c in three.names)
        three = replace(three, names=names, levels={places.get(a, a): to for a, to in three.levels.items()})
        return chosen, replace(goal, triples=three, triple_weight=(chosen[0].per / float(chosen[0].sd)) ** 2)

    def _zeros(self, seen: Discretization, split: Split) -> tuple[Zeros | None, Zeros | None]:
        """What cannot occur, over the bins of persons (and the number of their events) and of events."""
        found: list[Zeros | None] = []
        for boxes, part, domain in zip(self.boxes, split.parts, (split.persons, split.events), strict=True):
            if not boxes:
                found.append(None)
                continue
            merged, first = seen.bin_domain.only(part), [seen.cell_edges[j][:-1] for j in part]
            own = boxes.on(seen.cell_domain.only(part), first).gathered([seen.bin_of[j] for j in part], merged)
            rest = np.ones(domain.total - merged.total, dtype=bool)  # no box names the number of events
            found.append(Zeros(domain, tuple((names, np.append(mask, rest)) for names, mask in own.boxes)))
        return found[0], found[1]


def some_events(law: Floats) -> Floats:
    """A law of the number of events of persons each of whom is known to have some."""
    rest = np.append(0.0, law[1:])
    rest = rest if rest.sum() > 0 else np.append(0.0, np.ones(len(law) - 1))
    return np.asarray(rest / rest.sum())


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
    def of(cls, seen: Discretization, first: int, counts: Factor) -> Split:
        """From what one-way tables say."""
        parts = range(first), range(first, len(seen.bin_of))
        persons = with_counts(seen.bin_domain.only(parts[0]), counts.size)
        return cls(parts, persons, seen.bin_domain.only(parts[1]), (*seen.bin_factors, counts))

    def block(self, a: int) -> slice:
        """Where the bins of a column are, among those of persons or of events."""
        its = self.parts[1]
        return self.events.block(a - its.start) if a in its else self.persons.block(min(a, its.start))

    def law(self, models: list[EventModel], seen: Discretization, counts: Floats) -> SequenceLaw:
        """Models over cells, from models over bins."""
        persons, events = (seen.cell_domain.only(part) for part in self.parts)
        whole = with_counts(persons, len(count_bins(len(counts) - 1)))
        return SequenceLaw([self._fine(own, seen) for own in models], whole, events, counts)

    def _fine(self, own: EventModel, seen: Discretization) -> EventModel:
        equal = np.full(len(own.persons), 1 / len(own.persons))
        last = self.persons.block(len(self.persons.sizes) - 1)
        having = 1 - own.persons[:, last.start]
        weights = having @ own.first
        shares = [[seen.cell_shares[j] for j in part] for part in self.parts]
        maps = [[seen.bin_of[j] for j in part] for part in self.parts]
        persons = unmerge(own.persons[:, : last.start], equal, shares[0], maps[0], seen.bin_domain.only(self.parts[0]))
        events = unmerge(own.events, weights / max(weights.sum(), 1e-12), shares[1], maps[1], self.events)
        return replace(own, persons=np.hstack([persons, own.persons[:, last]]), events=events)


ONE_PERSON = Sensitivity.histograms(1)  # a person adds a vector of non-negative numbers that sum to 1 at most


def measure_counts(setting: Setting, most: int) -> Asking[Measurement]:
    """How many persons have 0, 1, …, `most` events, a column beside the others; spends "events"."""
    query = Query([(setting.p,)], {setting.p: Factor.plain(most + 1)}, of="person", total=False)
    component = Component(query, Statistic.tables(query), most + 1)
    (measurement,) = yield [Ask("events", [component], ONE_PERSON)]
    return measurement


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
    components = []
    for (kind, weight), sets in tables.items():
        query = Query(sets, dict(enumerate(factors)), of=kind, total=False)
        exact, starts = Statistic.tables(query), query.starts
        for k, columns in enumerate(sets):
            own, shape = exact.map(entries, slice(*starts[k : k + 2])), query.shape(columns)
            components.append(Component(query, own.map(np.reshape, shape), shape, weight))
    measured = yield [Ask("tables", components, table_sensitivity(weights_of(tables)))]
    found = []
    for _, same in groupby(measured, lambda own: id(own.query)):
        parted = list(same)
        found.append(replace(parted[-1], values=np.concatenate([m.values.ravel() for m in parted])))
    return found


def count_factor(most: int) -> Factor:
    """The number of events, up to so many, in bins."""
    numbers = np.arange(most + 1)
    return Factor(np.arange(most + 2), np.searchsorted(count_bins(most), numbers, side="right") - 1)


# From noisy tables to what a fit aims at: shares in block matrices, and how much each entry counts. Post-processing.
#
# What a table of a person, of a person and an event, or of one event says beyond its margins is drawn to nothing as far as it is
# noise, table by table (James and Stein): many attributes have little to do with each other, and a fit that believed their noise
# would spend its centres on it. Tables of two events stay as they are: that they differ from chance is their point, they are few,
# and each is too noisy to say so by itself.
#
# What places change are factors by which values are more or less likely at the first event, the second, and so on. The chain of
# kinds of events knows no place: it is the same all along a history. How attributes of an event go with its place was measured in
# tables of their own, and the laws that values are drawn from are tilted at each place until they agree with these.

TINY = 1e-12  # what is divided by is never less
LOST = 3.0  # a class of places with less than so many deviations of its noise is drawn as all others are
LEAST = 0.02  # of what a value would have at any place: no factor is smaller, whatever noise says
ROUNDS = 5  # of tilting: after two or three nothing changes


def make_goal(
    split: Split, seen: Discretization, counts: tuple[Floats, float], tables: list[Measurement], n: int
) -> EventGoal:
    """What the measurements ask of a fit; `counts` are denoised shares of persons by number of events, and their noise."""
    law, sd = counts
    starts = count_bins(len(law) - 1)
    widths = np.diff(np.append(starts, len(law)))
    target: dict[str, Floats] = {}
    weight: dict[str, Floats] = {}
    one, own = [], []
    for j, (share, to) in enumerate(zip(seen.cell_shares, seen.bin_of, strict=True)):
        size = int(to.max()) + 1
        having = 1.0 if j in split.parts[0] else float(1 - law[0])
        one.append((j, np.asarray(having * np.bincount(to, share, minlength=size), dtype=np.float64)))
        own.append(np.full(size, (n / _noise(j, seen.one_way, len(to) / size)) ** 2))
    persons = [values for j, values in one if j in split.parts[0]] + [np.add.reduceat(law, starts)]
    events = [values for j, values in one if j in split.parts[1]]
    heavy = [own[j] for j in split.parts[0]] + [n**2 / (sd**2 * widths)]
    target["one"] = np.concatenate([*persons, *events])[None]
    weight["one"] = np.concatenate([*heavy, *(own[j] for j in split.parts[1])])[None]
    shares = [*(values for _, values in one), np.asarray(persons[-1], dtype=np.float64)]
    for found in tables:
        for columns in found.query.sets:
            alone = independent(found.query.of, columns, shares, float(1 - law[0]))
            _place(found, columns, split, (target, weight), alone)
    return EventGoal(split.persons, split.events, target, weight, lag_shares(law))


def independent(kind: str, columns: Columns, shares: Sequence[Floats], having: float) -> Floats | None:
    """What a table would hold if its columns had nothing to do with each other; None for tables of two events.

    Shares are of persons, of events averaged by person, and of numbers of events; `having` is that of persons who have any.
    """
    if kind in ("step", "two"):
        return None
    one, other = (shares[a] for a in columns)
    if kind == "across" and columns[0] == len(shares) - 1:  # who has events does not have none
        one = np.append(0.0, one[1:])
        one = one / max(float(one.sum()), TINY)
    return np.outer(one, other) / max(having, TINY) if kind == "event" else np.outer(one, other)


def shrunk(values: Floats, alone: Floats, sd: float) -> Floats:
    """A noisy table whose distance from `alone`, margins aside, is kept as far as it exceeds what noise would make of it."""
    apart = values - alone
    apart = apart - apart.mean(axis=0) - apart.mean(axis=1, keepdims=True) + apart.mean()
    noise = sd**2 * (values.shape[0] - 1) * (values.shape[1] - 1)
    return np.asarray(values - (1 - beyond_noise(apart, noise)) * apart)


def _place(
    found: Measurement,
    columns: Columns,
    split: Split,
    goal: tuple[dict[str, Floats], dict[str, Floats]],
    alone: Floats | None,
) -> None:
    """Put a noisy table, as shares, into the block matrix of its kind."""
    target, weight = goal
    kind, values, sd = found.query.of, found.table(columns), float(found.sd) / found.per
    rows: Domain = split.persons if kind in ("person", "across") else split.events
    others: Domain = split.persons if kind == "person" else split.events
    if kind not in target:
        target[kind], weight[kind] = np.zeros((rows.total, others.total)), np.zeros((rows.total, others.total))
    block = split.block(columns[0]), split.block(columns[1])
    precision = np.full(values.shape, (1 / sd) ** 2)
    if alone is not None:
        values = shrunk(values, alone, sd)
    # Half of what stands above the diagonal belongs below it, with half the noise, and is one number.
    if found.query.folded(columns):
        above = np.triu(values, 1) / 2
        values = above + above.T + np.diag(np.diag(values))
        precision = precision * np.where(np.eye(len(values), dtype=bool), 1.0, 2.0)
    target[kind][block], weight[kind][block] = values, precision


def _noise(j: int, one_way: OneWayMeasurements, wide: float) -> float:
    """About the noise on a bin of an attribute, which holds so many categories or cells."""
    if j in one_way.trees:
        tree = one_way.trees[j]
        return float(tree.sd * np.sqrt(max(1.0, wide / max(1, tree.grid.rounds))))
    return float(one_way.histograms[j].sd * np.sqrt(wide))


def lag_shares(law: Floats) -> tuple[float, float]:
    """Of the pairs of events of persons with two or more, the shares that lie one place and two places apart."""
    k = np.arange(len(law))
    many = np.where(k >= 2, law, 0.0)
    if not many.sum() > 0:
        return 1.0, 0.0
    pairs = np.maximum(k * (k - 1) / 2, 1)
    one, two = (float((many * np.maximum(k - lag, 0) / pairs).sum() / many.sum()) for lag in (1, 2))
    return one, two


def leave_places(goal: EventGoal, place: int) -> None:
    """Let the fit pass over the attribute of the place, in the goal itself: it is known when events are drawn."""
    block = goal.events.block(place)
    first = goal.persons.total
    goal.weight["one"][:, first + block.start : first + block.stop] = 0.0
    for kind in ("across", "event"):
        if kind in goal.weight:
            goal.weight[kind][:, block] = 0.0
    if "event" in goal.weight:
        goal.weight["event"][block] = 0.0


def tilted(
    tables: Sequence[Measurement], place: int, split: Split, seen: Discretization, law: SequenceLaw
) -> dict[tuple[int, int], Floats]:
    """Factors for the cells of an attribute, by class of places and attribute."""
    first = len(split.parts[0])
    found: dict[tuple[int, int], Floats] = {}
    of_event = [(m, columns) for m in tables if m.query.of == "event" for columns in m.query.sets]
    for measured, columns in of_event:
        if first + place not in columns:
            continue
        one, other = (column - first for column in columns)
        a = other if one == place else one
        values, sd = measured.counts(columns), float(measured.sd)
        values = values if one == place else values.T
        to = seen.bin_of[first + place]
        for row in range(len(values)):
            together = np.flatnonzero(to == row)  # classes that were measured as one
            laws = _laws(law, a, together)
            aim = _aim(values[row], sd, _mixed(laws, np.ones(laws[0][1].shape[1])), seen.bin_of[first + a])
            if aim is not None:
                found |= dict.fromkeys(((int(q), a) for q in together), _factors(aim, laws))
    return found


def _aim(counts: Floats, sd: float, usual: Floats, to: Integers) -> Floats | None:
    """The law of an attribute's cells at a class of places: as measured, drawn to the usual one as far as it is noise."""
    total = float(counts.sum())
    if total <= LOST * sd * len(counts) ** 0.5:
        return None
    binned = total * np.bincount(to, usual)
    apart = counts - binned
    kept = beyond_noise(apart, len(counts) * sd**2)
    if not kept:
        return None
    ratio = np.maximum(binned + kept * apart, LEAST * binned) / np.maximum(binned, 1e-12)
    return np.asarray(usual * ratio[to] / float(usual @ ratio[to]))


def _laws(law: SequenceLaw, a: int, together: Integers) -> list[tuple[Floats, Floats]]:
    """For each model, how much each kind of event weighs at some classes of places, and its law of the attribute.

    Tables average over the events of a person, so a person with N events, k of them in the classes, weighs k/N there.
    """
    most = len(law.counts) - 1
    starts = count_bins(most)
    classes = np.searchsorted(position_starts(most), np.arange(most), side="right") - 1
    part = np.array([0.0, *(np.isin(classes[:n], together).mean() for n in range(1, most + 1))])
    mass = np.maximum(law.counts, 1e-12)
    by_bin = np.add.reduceat(part * mass, starts) / np.add.reduceat(mass, starts)
    found = []
    for own in law.models:
        weights = (own.persons[:, -len(starts) :] @ by_bin) @ own.first
        found.append((weights / max(float(weights.sum()), 1e-12), own.events[:, law.events.block(a)]))
    return found


def _mixed(laws: list[tuple[Floats, Floats]], factors: Floats) -> Floats:
    """The law of the attribute at these places, with factors."""
    now = np.zeros(len(factors))
    for weights, law in laws:
        own = law * factors
        now += weights @ (own / np.maximum(own.sum(axis=1, keepdims=True), 1e-300)) / len(laws)
    return now


def _factors(aim: Floats, laws: list[tuple[Floats, Floats]]) -> Floats:
    """Factors with which the laws of kinds, weighed, come to the aim."""
    factors = np.ones(len(aim))
    for _ in range(ROUNDS):
        now = _mixed(laws, factors)
        factors = factors * np.where(now > 1e-12, aim / np.maximum(now, 1e-12), 1.0)
        factors = np.clip(factors / factors.max(), 1e-6, 1.0)
    return factors
