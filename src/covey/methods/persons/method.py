"""A fit of persons with events: the number of events, one-way tables and trees, tables of two attributes, centres, a certificate.

Numbers are looked at one by one first, as for single tables (`methods.regain.tables`): trees on person-averaged counts, cells of
about equal mass, bins of cells for tables of two attributes. Centres are fitted over bins and taken apart to cells again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from covey.core.arrays import Floats, blas_threads
from covey.core.draw.events import LinkedLaw, laid_in_order
from covey.core.fit.events import LinkedGoal, LinkedModel, fit_linked
from covey.core.numbers.cells import Cells, comparison_edges
from covey.core.tables.domain import Domain
from covey.core.tables.events import Linked, count_bins
from covey.core.tables.histograms import denoise_histogram
from covey.core.tables.merging import unmerge
from covey.core.tables.zeros import NO_BOXES, Across, Box, Boxes, Zeros
from covey.engines.events import LinkedRows
from covey.measure.measurement import Measurements, joined
from covey.methods.method import Public
from covey.methods.persons.certify import LinkedCertificate, Numbers, Reference, certify_linked
from covey.methods.persons.goal import make_goal
from covey.methods.persons.measure import (
    LinkedCounts,
    ToBins,
    count_factor,
    measure_counts,
    measure_tables,
)
from covey.methods.persons.places import leave_places, tilted
from covey.methods.persons.plan import LinkedPlan
from covey.methods.regain.measure_tables import measure_one_way
from covey.methods.regain.tables import OneWayModel, RegainTables
from covey.privacy.budget import Budget
from covey.privacy.gate import Gate
from covey.progress import Progress

COMPARED = (20_000, 100_000)  # persons of the draw that a certificate is about: enough that their own spread is small


@dataclass(frozen=True)
class LinkedFitted:
    """Everything that leaves a fit: the law of sequences, cells of numbers, noisy tables, a certificate. All of it is private."""

    law: LinkedLaw
    cells: dict[int, Cells]
    measured: Measurements
    certificate: LinkedCertificate | None
    last: int = 0  # the largest code of the order column

    def codes(self, drawn: Linked, public: np.random.Generator) -> Linked:
        """Drawn cells as codes: numbers get values from their private measures, and the order column rises."""
        first = drawn.persons.shape[1]
        tables = [drawn.persons.astype(np.int64), drawn.events.astype(np.int64)]
        for j, cells in self.cells.items():
            of, column = (tables[0], j) if j < first else (tables[1], j - first)
            if len(of):
                of[:, column] = cells.values(of[:, column], public)
        return laid_in_order(drawn.recoded(*tables), self.law.timing, self.last)


@dataclass(frozen=True)
class RegainPersons:
    """The method, for given attributes; boxes are combinations of codes that cannot occur, in either table."""

    certificate: Fraction
    plan: LinkedPlan
    boxes: tuple[Boxes, Boxes] = (NO_BOXES, NO_BOXES)
    across: Boxes = NO_BOXES  # over the attributes of both tables, each with one of events

    @cached_property
    def own(self) -> RegainTables:
        """All attributes side by side, as one-way tables see them."""
        first = len(self.plan.persons)
        moved = tuple(Box({j + first: side for j, side in box.sides.items()}) for box in self.boxes[1].boxes)
        return RegainTables(
            self.certificate,
            (*self.plan.persons, *self.plan.events),
            Boxes((*self.boxes[0].boxes, *moved, *self.across.boxes)),
        )

    def shares(self, n: int, p: int, budget: Budget) -> Mapping[str, Fraction]:
        """The planned part of the budget for each purpose, from public numbers."""
        return self.plan.shares(n, budget, self.certificate)

    def fit(self, rows: LinkedRows, gate: Gate, public: Public) -> LinkedFitted:
        """Measure through the gate, then fit."""
        plan, n, pure = self.plan, rows.n, gate.budget.pure
        with Progress((("measuring", 1.0), ("certifying", 0.3))) as progress, blas_threads(1):
            progress.next()
            counts = measure_counts(rows, len(self.own.attributes), gate)
            sd = float(counts.sd)
            own = denoise_histogram(counts.values, sd, n, True, public("law of counts")) / n
            own = some_events(own) if plan.everybody else own
            having = n * float(1 - own[0])
            counted = LinkedCounts(rows, plan.persons, plan.events, having)
            one_way = measure_one_way(counted, plan.numbers, gate)
            totals = [float(counted.total(j)) for j in range(len(self.own.attributes))]
            allowance = gate.allowance("tables")
            seen = self.own.look(one_way, totals, plan.bin_mass(n, allowance), pure, public("numbers"))
            split = Split.of(seen, len(plan.persons), plan.count_size)
            tables = plan.tables(n, gate.budget)
            binned = rows.mapped(split.to_bins)
            found = measure_tables(binned, tables, split.to_bins, count_factor(rows.most), gate)
            barred = self._barred(seen)
            goal = make_goal(split, seen, (own, sd), found, n)
            goal = replace(goal, growth=plan.growth(n, gate.budget))
            place = plan.timing.position
            if place is not None:
                leave_places(goal, place)
            if barred and "across" in goal.target:
                blocks = [[d.block(a) for a in range(len(d.sizes))] for d in (split.persons, split.events)]
                merged = barred.merged([list(seen.maps[: len(plan.persons)]), list(seen.maps[len(plan.persons) :])])
                merged.told(goal.target["across"], goal.weight["across"], (blocks[0], blocks[1]))
            zeros = self._zeros(seen, split)
            models = fit_linked(goal, public("fit"), progress.tick, zeros)
            law = replace(split.law(models, seen, own), barred=barred, timing=plan.timing)
            if place is not None:
                law = replace(law, tilts=tilted(found, place, split, seen, law))
            progress.next()
            sides = one_way.found[: len(plan.persons)], one_way.found[len(plan.persons) :]
            measured = Measurements(n, (*(joined(side) for side in sides if side), counts, *found))
            kept = LinkedFitted(law, seen.cells, measured, None, plan.last)
            if not self.certificate:
                return kept
            drawn = kept.codes(law.draw(int(np.clip(n, *COMPARED)), public("reference")), public("reference values"))
            edges = tuple(comparison_edges(seen.cells[j]) if j in seen.cells else None for j in range(len(totals)))
            compared = Numbers(split.to_bins, edges)
            reference = Reference.of(drawn, [table for table, _ in tables], split.sizes, compared)
            farthest = rows.reduce(reference.sums).map(reference.farthest)
            return replace(kept, certificate=certify_linked(farthest, reference, n, drawn.n, gate))

    def _barred(self, seen: OneWayModel) -> Across:
        """What no event of some persons can be, over categories and cells."""
        return Across.of(self.across, len(self.plan.persons), [edges[:-1] for edges in seen.edges])

    def _zeros(self, seen: OneWayModel, split: Split) -> tuple[Zeros | None, Zeros | None]:
        """What cannot occur, over the bins of persons (and the number of their events) and of events."""
        found: list[Zeros | None] = []
        for boxes, part, domain in zip(self.boxes, split.parts, (split.persons, split.events), strict=True):
            if not boxes:
                found.append(None)
                continue
            fine = Domain(tuple(seen.domain.sizes[j] for j in part), tuple(seen.domain.ordered[j] for j in part))
            first = [seen.edges[j][:-1] for j in part]
            merged = Domain(domain.sizes[: len(part)], domain.ordered[: len(part)])
            own = boxes.on(fine, first).gathered([seen.maps[j] for j in part], merged)
            rest = np.ones(domain.total - merged.total, dtype=bool)  # no box names the number of events
            found.append(Zeros(domain, tuple((names, np.append(mask, rest)) for names, mask in own.boxes)))
        return found[0], found[1]


def some_events(law: Floats) -> Floats:
    """A law of the number of events of persons each of whom is known to have some."""
    rest = np.append(0.0, law[1:])
    return np.asarray(
        rest / rest.sum() if rest.sum() > 0 else np.append(0.0, np.full(len(law) - 1, 1 / (len(law) - 1)))
    )


@dataclass(frozen=True)
class Split:
    """Bins and cells of all attributes, taken apart into those of persons (with the number of events) and of events."""

    parts: tuple[range, range]
    persons: Domain
    events: Domain
    to_bins: ToBins

    @classmethod
    def of(cls, seen: OneWayModel, first: int, counts: int) -> Split:
        """From what one-way tables say."""
        parts = range(first), range(first, len(seen.maps))
        sizes = [tuple(int(seen.maps[j].max()) + 1 for j in part) for part in parts]
        ordered = [tuple(seen.domain.ordered[j] for j in part) for part in parts]
        persons = Domain((*sizes[0], counts), (*ordered[0], True))
        return cls(parts, persons, Domain(sizes[1], ordered[1]), ToBins(tuple(seen.factors), first))

    @property
    def sizes(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Bins of persons' attributes and of events'."""
        return self.persons.sizes[:-1], self.events.sizes

    def law(self, models: list[LinkedModel], seen: OneWayModel, counts: Floats) -> LinkedLaw:
        """Models over cells, from models over bins."""
        fine = [
            Domain(tuple(seen.domain.sizes[j] for j in part), tuple(seen.domain.ordered[j] for j in part))
            for part in self.parts
        ]
        size = len(count_bins(len(counts) - 1))
        whole = Domain((*fine[0].sizes, size), (*fine[0].ordered, True))
        return LinkedLaw([self._fine(own, seen) for own in models], whole, fine[1], counts)

    def _fine(self, own: LinkedModel, seen: OneWayModel) -> LinkedModel:
        equal = np.full(len(own.persons), 1 / len(own.persons))
        last = self.persons.block(len(self.persons.sizes) - 1)
        having = 1 - own.persons[:, last.start]
        weights = having @ own.first
        shares = [[seen.shares[j] for j in part] for part in self.parts]
        maps = [[seen.maps[j] for j in part] for part in self.parts]
        merged = Domain(self.persons.sizes[:-1], self.persons.ordered[:-1])
        persons = unmerge(own.persons[:, : last.start], equal, shares[0], maps[0], merged)
        events = unmerge(own.events, weights / max(weights.sum(), 1e-12), shares[1], maps[1], self.events)
        return replace(own, persons=np.hstack([persons, own.persons[:, last]]), events=events)


__all__ = ["LinkedFitted", "LinkedGoal", "RegainPersons", "Split"]
