"""Noisy tables of persons with events as evidence: which table a question needs, in which units, and ratios of its entries.

A person adds to every table a law of at most one person, averaged over their events, so a ratio of sums of entries is about a
random event of a random person. Weighted by the number of events, known to a bin, it is about a random event; what the bin
leaves open widens the interval. Proved in docs/proofs/persons.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from covey.answers import notes
from covey.answers.columns import Columns, Conditions
from covey.answers.estimates import Estimate
from covey.answers.evidence import TAILS
from covey.answers.numbers import Units
from covey.answers.steps import LOST, LostInNoiseError
from covey.core.arrays import Array, Floats
from covey.core.tables.events import count_bins
from covey.errors import CannotAnswerError, ParameterError, nearest
from covey.methods.persons.measure import LinkedMeasured, NoisyTable
from covey.table.codec import Codec
from covey.table.description import Description

COUNT = -1  # the attribute "number of events", besides those of the schemas
ROUNDS = 30  # of the search for the farthest ratio that bins leave open: it settles within a few


@dataclass(frozen=True)
class LeftOpen:
    """Between which factors each entry may count, above the line of a ratio alone or below it too."""

    low: Floats
    high: Floats
    below: bool = True


@dataclass(frozen=True)
class Entries:
    """Entries of a noisy table, in persons: values, deviations of their noise, and whether it has Laplace's law."""

    values: Floats
    sds: Floats
    pure: bool

    def ratio(self, top: Floats, bottom: Floats | int, sampled: bool) -> Estimate:
        """Σ top·x / Σ bottom·x, or over a public number; with `sampled` as a figure of the population of persons.

        A person's part of the numerator minus the ratio times that of the denominator is an average over their events: its
        square is at most the average of squares (Jensen), which is what the entries say.
        """
        whole = float(bottom) if isinstance(bottom, int) else float(self.values @ bottom)
        below = np.zeros(len(self.values)) if isinstance(bottom, int) else bottom
        least = 0.0 if isinstance(bottom, int) else LOST * float(np.sqrt((bottom**2) @ self.sds**2))
        if not isinstance(bottom, int) and whole <= least:
            raise LostInNoiseError(
                f"too few persons are meant: about {max(whole, 0.0):,.0f}, and fewer than {least:,.0f} are lost in the noise."
            )
        value = float(self.values @ top) / whole
        slope = (top - value * below) / whole
        variance = float(slope**2 @ self.sds**2)
        if sampled:
            spread = float(self.values @ slope**2) - (value**2 / whole if isinstance(bottom, int) else 0.0)
            variance += max(0.0, spread)
        fourth = TAILS * float(slope**4 @ self.sds**4) if self.pure else 0.0
        nothing = np.zeros(1)
        return Estimate(np.array([value]), np.array([variance]), np.array([fourth]), nothing, nothing)

    def reach(self, top: Floats, bottom: Floats | int, left: LeftOpen) -> tuple[float, float]:
        """How far below and above itself the ratio may lie if each entry may count by any factor between two bounds.

        No entry is negative in truth, and those that are by noise are taken as 0. That raises the ratio, so its ends are
        compared with itself, raised alike, and not with the estimate.
        """
        held = np.maximum(self.values, 0.0)
        if not left.below and not isinstance(bottom, int):
            whole = max(float(self.values @ bottom), 1e-12)
            middle = float(held @ top) / whole
            ends = [float(held @ (top * np.where(sign * top > 0, left.high, left.low))) / whole for sign in (-1, 1)]
            return middle - ends[0], ends[1] - middle
        middle = float(held @ top) / (float(bottom) if isinstance(bottom, int) else max(float(held @ bottom), 1e-12))
        ends = []
        for sign in (-1, 1):
            ratio = 0.0
            for _ in range(ROUNDS):  # Dinkelbach: the best factors for a ratio give a better ratio
                own = top if isinstance(bottom, int) else top - ratio * bottom
                by = np.where(sign * own > 0, left.high, left.low)
                whole = float(bottom) if isinstance(bottom, int) else float((held * by) @ bottom)
                ratio = float((held * by) @ top) / max(whole, 1e-12)
            ends.append(ratio)
        return max(0.0, middle - ends[0]), max(0.0, ends[1] - middle)


@dataclass(frozen=True)
class Attribute:
    """A column of one of the two tables: which table (0 persons, 1 events), its place there, and its name."""

    side: int
    place: int
    name: str


@dataclass(frozen=True)
class Table:
    """Entries of a table of two attributes, which may lie the other way round than it was asked for."""

    entries: Entries
    turned: bool

    def flat(self, one: Floats, other: Floats) -> Floats:
        """Products of scores of both attributes, entry by entry."""
        return np.asarray((np.outer(other, one) if self.turned else np.outer(one, other)).ravel())


@dataclass(frozen=True)
class LinkedEvidence:
    """The measurements of a package, asked by columns."""

    measured: LinkedMeasured
    package: Description

    @cached_property
    def codecs(self) -> tuple[Codec, Codec]:
        """How columns of both tables are categories."""
        return Codec(self.package.unit.schema), Codec(self.package.events.measured)

    def find(self, name: str) -> Attribute:
        """A column by its name, or as table.column where both tables have one of that name."""
        found, names = [], []
        for side, (part, codec) in enumerate(zip(self.package.tables, self.codecs, strict=True)):
            if part.bare:
                continue
            own = str(name).removeprefix(f"{part.name}.")
            names += list(codec.schema.names)
            if own in codec.schema.names:
                found.append(Attribute(side, Columns(codec).place(own), own))
        if len(found) > 1:
            one, two = (part.name for part in self.package.tables)
            raise ParameterError(f"both tables have a column {name!r}: write {one}.{name} or {two}.{name}.")
        if not found:
            raise ParameterError(f"neither table has a column {name!r}. {nearest(str(name), names, 'columns')}")
        return found[0]

    def index(self, own: Attribute) -> int:
        """Its place among the attributes of both tables."""
        return own.place + own.side * self.measured.bins.first

    # Units: of single columns the ranges that were counted, of two columns at once bins.

    @cached_property
    def units(self) -> list[Units]:
        """Of every attribute."""
        bins, found = self.measured.bins, []
        for own, edges, to in zip(self.measured.one_way, bins.edges, bins.maps, strict=True):
            cells = np.arange(len(to) + 1) if edges is None else edges
            found.append(Units.of(own.edges, cells, to))
        return found

    @cached_property
    def fine(self) -> tuple[Columns, Columns]:
        """Columns of both tables, numbers in the ranges that were counted."""
        return self._columns(lambda unit: unit.edges, lambda unit, mass: mass)

    @cached_property
    def binned(self) -> tuple[Columns, Columns]:
        """Columns of both tables, numbers in the bins of tables of two columns."""

        def edges(unit: Units) -> Array:
            return unit.edges[np.flatnonzero(np.append(np.diff(unit.bins, prepend=-1), 1))]

        return self._columns(edges, lambda unit, mass: np.asarray(np.bincount(unit.bins, mass), dtype=np.float64))

    def _columns(
        self, edges: Callable[[Units], Array], shares: Callable[[Units, Floats], Floats]
    ) -> tuple[Columns, Columns]:
        first, found = self.measured.bins.first, []
        for side, codec in enumerate(self.codecs):
            own: dict[str, Array] = {}
            mass: dict[str, Floats] = {}
            for place, name in enumerate(codec.names):
                j = place + side * first
                if self.measured.bins.edges[j] is not None:
                    unit, counts = self.units[j], np.maximum(self.counts(j), 0.0)
                    own[name] = edges(unit)
                    mass[name] = shares(unit, counts / max(counts.sum(), 1e-12))
            found.append(Columns(codec, own, mass))
        return found[0], found[1]

    def counts(self, j: int) -> Floats:
        """Noisy numbers of persons by unit."""
        unit = self.units[j]
        return np.asarray(self.measured.one_way[j].counts[unit.ranges] * unit.part)

    # What is to be said besides numbers.

    @cached_property
    def told(self) -> tuple[Columns, Columns]:
        """As `fine`, with the shares of all columns."""
        found = []
        for side, columns in enumerate(self.fine):
            counts = [
                np.maximum(self.counts(j + side * self.measured.bins.first), 0.0)
                for j in range(len(columns.codec.names))
            ]
            shares = {name: own / max(own.sum(), 1e-12) for name, own in zip(columns.codec.names, counts, strict=True)}
            found.append(replace(columns, shares=shares))
        return found[0], found[1]

    def notes(self, wanted: Conditions) -> str:
        """Of the values that conditions name."""
        found = [(self.find(name), value) for name, value in wanted.items()]
        return notes.together(*(notes.of_conditions(self.told[own.side], {own.name: value}) for own, value in found))

    def group_note(self, own: Attribute, mask: Floats) -> str:
        """Of a group, by its mask of bins."""
        bins, j = self.measured.bins, self.index(own)
        if bins.edges[j] is not None:
            return notes.together(notes.of_column(self.binned[own.side], own.name, mask))
        return notes.together(notes.of_column(self.told[own.side], own.name, mask[bins.maps[j]]))

    # Entries.

    def single(self, j: int, scores: Sequence[Floats]) -> tuple[Entries, list[Floats]]:
        """The one-way table of an attribute, and scores of units as scores of its ranges."""
        own, unit = self.measured.one_way[j], self.units[j]
        summed = [
            np.asarray(np.bincount(unit.ranges, score * unit.part, minlength=len(own.counts)), dtype=np.float64)
            for score in scores
        ]
        return Entries(own.counts, own.sds, self.measured.pure), summed

    def table(self, one: int, other: int) -> Table:
        """The table of two attributes by their indices (or COUNT)."""
        first = self.measured.bins.first
        for found in self.measured.tables:
            axes = self._axes(found, first)
            if axes in ((one, other), (other, one)):
                values = found.values
                entries = Entries(values.ravel(), np.full(values.size, found.sd), self.measured.pure)
                return Table(entries, axes != (one, other))
        raise CannotAnswerError("these two columns were not measured together.")

    @staticmethod
    def _axes(found: NoisyTable, first: int) -> tuple[int, int] | None:
        def person(a: int) -> int:
            return COUNT if a == first else a

        table = found.table
        if table.kind == "person":
            return person(table.one), person(table.other)
        if table.kind == "across":
            return person(table.one), first + table.other
        return (first + table.one, first + table.other) if table.kind == "event" else None

    def step(self, place: int) -> NoisyTable:
        """The table of an attribute of events and of the next event."""
        for found in self.measured.tables:
            if found.table.kind == "step" and (found.table.one, found.table.other) == (place, place):
                return found
        raise CannotAnswerError("steps from one event to the next were not measured: the package names no order.")

    def folded(self, j: int, scores: Floats, name: str) -> Floats:
        """Scores of categories as scores of their bins; numbers have bins already."""
        if self.measured.bins.edges[j] is not None:
            return scores
        to = self.measured.bins.maps[j]
        low, high = np.full(int(to.max()) + 1, np.inf), np.full(int(to.max()) + 1, -np.inf)
        np.minimum.at(low, to, scores)
        np.maximum.at(high, to, scores)
        if (high > low).any():
            raise CannotAnswerError(
                f"rare categories of {name!r} were measured together, beside another column: ask about them by themselves, or "
                "name all that go together."
            )
        return low

    @cached_property
    def weights(self) -> tuple[Floats, Floats, Floats]:
        """For the bins of the number of events: its mean inside the bin as measured, and the smallest and the largest."""
        counts = np.maximum(self.measured.counts.counts, 0.0)
        starts = count_bins(len(counts) - 1)
        stops = np.append(starts[1:], len(counts))
        mean = [
            float(np.average(np.arange(a, b), weights=counts[a:b] + 1e-9)) for a, b in zip(starts, stops, strict=True)
        ]
        return np.array(mean), starts.astype(np.float64), (stops - 1).astype(np.float64)
