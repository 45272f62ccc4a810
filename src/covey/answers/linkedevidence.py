"""Noisy tables of persons with events as evidence: which table a question needs, in which units, and ratios of its entries.

A person adds to every table a law of at most one person, averaged over their events, so a ratio of sums of entries is about a
random event of a random person. Weighted by the number of events, known to a bin, it is about a random event; what the bin
leaves open widens the interval. Proved in docs/proofs/persons.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from covey.answers import notes
from covey.answers.columns import Columns, Conditions
from covey.answers.estimates import Estimate
from covey.answers.evidence import Evidence, Noise, Units
from covey.answers.steps import LOST, LostInNoiseError
from covey.core.arrays import Array, Floats
from covey.core.numbers.grid import Attribute as GridAttribute
from covey.core.numbers.grid import NumberGrid
from covey.core.tables.events import Linked, count_bins
from covey.errors import CannotAnswerError, ParameterError, nearest
from covey.measure.measurement import Measurements
from covey.measure.query import Factor
from covey.methods.persons.measure import ToBins
from covey.table.codec import Codec
from covey.table.description import Description

TABLES = ("person", "across", "event")  # of persons, of persons and events, of events
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
    """Entries of a noisy table, in persons, and the noise on combinations of them by their slopes."""

    values: Floats
    noise: Callable[[Floats], Noise]

    def ratio(self, top: Floats, bottom: Floats | int, sampled: bool) -> Estimate:
        """Σ top·x / Σ bottom·x, or over a public number; with `sampled` as a figure of the population of persons.

        A person's part of the numerator minus the ratio times that of the denominator is an average over their events: its
        square is at most the average of squares (Jensen), which is what the entries say.
        """
        whole = float(bottom) if isinstance(bottom, int) else float(self.values @ bottom)
        below = np.zeros(len(self.values)) if isinstance(bottom, int) else bottom
        least = 0.0 if isinstance(bottom, int) else LOST * float(np.sqrt(self.noise(bottom).variance[0]))
        if not isinstance(bottom, int) and whole <= least:
            raise LostInNoiseError(
                f"too few persons are meant: about {max(whole, 0.0):,.0f}, and fewer than {least:,.0f} are lost in the noise."
            )
        value = float(self.values @ top) / whole
        slope = (top - value * below) / whole
        noise = self.noise(slope)
        variance = float(noise.variance[0])
        if sampled:
            spread = float(self.values @ slope**2) - (value**2 / whole if isinstance(bottom, int) else 0.0)
            variance += max(0.0, spread)
        nothing = np.zeros(1)
        return Estimate(np.array([value]), np.array([variance]), noise.fourth, nothing, nothing)

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

    found: Measurements
    package: Description

    @cached_property
    def known(self) -> Evidence:
        """As for a single table: of a person, of an event, or of both."""
        return Evidence(self.found, TABLES)

    @cached_property
    def attributes(self) -> list[GridAttribute]:
        """Of persons, then of events."""
        return [own for codec in self.codecs for own in codec.kinds]

    @property
    def first(self) -> int:
        """How many attributes are of persons."""
        return len(self.codecs[0].names)

    def number(self, j: int) -> bool:
        """Whether an attribute is a number."""
        return isinstance(self.attributes[j], NumberGrid)

    @cached_property
    def factors(self) -> Mapping[int, Factor]:
        """The bins of tables of two columns, by attribute; that of the number of events last."""
        pairs = self.found.pairs()
        assert pairs is not None  # persons with events have tables of two columns
        return pairs.query.factors

    @property
    def count(self) -> int:
        """The attribute "number of events"."""
        return len(self.factors) - 1

    def to_bins(self, linked: Linked) -> Linked:
        """Persons and events whose codes become bins."""
        return ToBins(tuple(self.factors[j] for j in range(self.count)), self.first)(linked)

    def alone(self, j: int) -> Entries:
        """What was counted of one attribute by itself, range by range."""
        own, n = self.known.margins[j], self.found.n
        return Entries(n * own.shares, lambda slopes: Noise(*own.noise(n * slopes[None])))

    @cached_property
    def codecs(self) -> tuple[Codec, ...]:
        """How columns of both tables are categories."""
        return self.package.codecs

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
        return own.place + own.side * self.first

    # Units: of single columns the ranges that were counted, of two columns at once bins.

    @cached_property
    def units(self) -> list[Units]:
        """Of every attribute."""
        return self.known.units

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
        first, found = self.first, []
        for side, codec in enumerate(self.codecs):
            own: dict[str, Array] = {}
            mass: dict[str, Floats] = {}
            for place, name in enumerate(codec.names):
                j = place + side * first
                if self.number(j):
                    unit, counts = self.units[j], np.maximum(self.counts(j), 0.0)
                    own[name] = edges(unit)
                    mass[name] = shares(unit, counts / max(counts.sum(), 1e-12))
            found.append(Columns(codec, own, mass))
        return found[0], found[1]

    def counts(self, j: int) -> Floats:
        """Noisy numbers of persons by unit."""
        unit = self.units[j]
        return np.asarray(self.alone(j).values[unit.ranges] * unit.part)

    # What is to be said besides numbers.

    @cached_property
    def told(self) -> tuple[Columns, Columns]:
        """As `fine`, with the shares of all columns."""
        found = []
        for side, columns in enumerate(self.fine):
            counts = [np.maximum(self.counts(j + side * self.first), 0.0) for j in range(len(columns.codec.names))]
            shares = {name: own / max(own.sum(), 1e-12) for name, own in zip(columns.codec.names, counts, strict=True)}
            found.append(replace(columns, shares=shares))
        return found[0], found[1]

    def notes(self, wanted: Conditions) -> str:
        """Of the values that conditions name."""
        found = [(self.find(name), value) for name, value in wanted.items()]
        return notes.together(*(notes.of_conditions(self.told[own.side], {own.name: value}) for own, value in found))

    def group_note(self, own: Attribute, mask: Floats) -> str:
        """Of a group, by its mask of bins."""
        j = self.index(own)
        if self.number(j):
            return notes.together(notes.of_column(self.binned[own.side], own.name, mask))
        return notes.together(notes.of_column(self.told[own.side], own.name, mask[self.factors[j].bins]))

    # Entries.

    def single(self, j: int, scores: Sequence[Floats]) -> tuple[Entries, list[Floats]]:
        """The one-way table of an attribute, and scores of units as scores of its ranges."""
        own, unit = self.alone(j), self.units[j]
        summed = [
            np.asarray(np.bincount(unit.ranges, score * unit.part, minlength=len(own.values)), dtype=np.float64)
            for score in scores
        ]
        return own, summed

    def table(self, one: int, other: int, kinds: tuple[str, ...] = TABLES) -> Table:
        """The table of two attributes by their indices (or COUNT)."""
        a, b = (self.count if x == COUNT else x for x in (one, other))
        evidence, n = Evidence(self.found, kinds), self.found.n
        for columns in ((a, b), (b, a)):
            try:
                found = evidence.table(columns)
            except CannotAnswerError:
                continue
            return Table(_entries(evidence, columns, n * found), columns != (a, b))
        raise CannotAnswerError("these two columns were not measured together.")

    def step(self, place: int) -> Entries:
        """The table of an attribute of events and of the next event."""
        try:
            return self.table(self.first + place, self.first + place, ("step",)).entries
        except CannotAnswerError:
            raise CannotAnswerError(
                "steps from one event to the next were not measured: the package names no order."
            ) from None

    def folded(self, j: int, scores: Floats, name: str) -> Floats:
        """Scores of categories as scores of their bins; numbers have bins already."""
        if self.number(j):
            return scores
        to = self.factors[j].bins
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
        counts = np.maximum(self.alone(self.count).values, 0.0)
        starts = count_bins(len(counts) - 1)
        stops = np.append(starts[1:], len(counts))
        mean = [
            float(np.average(np.arange(a, b), weights=counts[a:b] + 1e-9)) for a, b in zip(starts, stops, strict=True)
        ]
        return np.array(mean), starts.astype(np.float64), (stops - 1).astype(np.float64)


def _entries(evidence: Evidence, columns: tuple[int, int], persons: Floats) -> Entries:
    n, shape = evidence.found.n, persons.shape
    return Entries(persons.ravel(), lambda slopes: evidence.noise({columns: n * slopes.reshape(1, *shape)}))
