"""A law of persons with their events, and what its certificate compares: every group of tables with those of a public draw.

Replacing a person moves what a table holds by at most 2 in ℓ1, of n persons: its total variation distance from a fixed table by
at most 1/n, and so do means over tables and the largest of them. Distribution functions of numbers, averaged by person, move by
at most 1/n at every value: so does their distance from fixed ones (docs/proofs/persons.md).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers
from covey.engine.certificate import Distances
from covey.engine.codes.events import WEIGHT_STEPS, Histories
from covey.engine.draw.events import SequenceLaw, laid_in_order
from covey.engine.entropy import Streams
from covey.engine.model import Comparison, Setting
from covey.engine.numbers.grid import Cells, kolmogorov_bound
from covey.engine.query import Query
from covey.engine.statistic import Statistic
from covey.errors import CannotAnswerError

COMPARED = (20_000, 100_000)  # persons of the draw that a certificate is about: enough that their own spread is small


@dataclass(frozen=True)
class Reference:
    """A public draw, counted in every table that a certificate compares."""

    kinds: tuple[str, ...]  # of queries: what each is about; first that of "events", in one cell of which everybody is
    kernels: tuple[Any, ...]  # that count them
    starts: tuple[Integers, ...]  # where their tables begin
    drawn: Integers  # the counts of the draw, in steps, one after the other
    n: int  # persons of the draw

    @classmethod
    def of(cls, drawn: Histories, groups: Mapping[str, Sequence[Query]]) -> Reference:
        """Of drawn persons and events, in queries of each kind."""
        queries = [query for own in groups.values() for query in own]
        kinds = tuple(kind for kind, own in groups.items() for _ in own)
        kernels = tuple(query.kernel() for query in queries)
        starts = tuple(query.starts for query in queries)
        return cls(kinds, kernels, starts, _counted(kernels, drawn), drawn.n)

    def distances(self, linked: Histories) -> dict[str, float]:
        """For each group of tables the mean total variation distance of persons and events from the draw.

        Of numbers the largest distance of a distribution function, or a little more.
        """
        return self._gaps(self.sums(linked), linked.n)

    def sums(self, linked: Histories) -> Integers:
        """All that is compared, in steps, one after the other: a sum over persons."""
        return _counted(self.kernels, linked)

    def _gaps(self, sums: Integers, n: int) -> dict[str, float]:
        gaps: dict[str, list[float]] = {kind: [] for kind in self.kinds}
        ends = np.cumsum([own[-1] for own in self.starts])
        every, all_drawn = n * WEIGHT_STEPS, self.n * WEIGHT_STEPS
        parts = zip(np.split(sums, ends[:-1]), np.split(self.drawn, ends[:-1]), strict=True)
        for kind, kernel, starts, (own, drawn) in zip(self.kinds, self.kernels, self.starts, parts, strict=True):
            if kind == "numbers":
                released = np.concatenate([[0.0], np.cumsum(drawn) / all_drawn])
                gaps[kind].append(kolmogorov_bound(own, kernel.factors[0].edges, released, every))
            else:
                gaps[kind] += list(np.add.reduceat(np.abs(own / every - drawn / all_drawn), starts[:-1]) / 2)
        return {kind: float(max(own) if kind == "numbers" else np.mean(own)) for kind, own in gaps.items()}

    def largest_distance(self, sums: Integers, n: int) -> float:
        """The largest of these distances, from `sums`, over a number of persons that may be noisy."""
        return max(self._gaps(sums, n).values())


def _counted(kernels: tuple[Any, ...], linked: Histories) -> Integers:
    return np.concatenate([kernel(linked).integers()[0] for kernel in kernels])


@dataclass(frozen=True)
class PersonsLaw:
    """A law of persons with their events: sequences of cells, and what the cells of numbers are."""

    sequences: SequenceLaw  # persons and events over categories and cells
    cells: Mapping[int, Cells]  # of numbers, by attribute
    last: int = 0  # the largest code of the order column
    reference: Reference | None = field(default=None, repr=False, compare=False)

    def draw(self, units: int, streams: Streams, mended: Callable[[int], None] = lambda _: None) -> Histories:
        """So many persons with their events, as codes."""
        return self.drawn(units, streams.postprocessing("rows"), streams.postprocessing("values"), mended)

    def drawn(
        self,
        units: int,
        public: np.random.Generator,
        values: np.random.Generator,
        mended: Callable[[int], None] = lambda _: None,
    ) -> Histories:
        """The same from two generators: numbers get values from their private measures, and the order column rises."""
        drawn = self.sequences.draw(units, public, mended)
        first = drawn.persons.shape[1]
        persons, events = drawn.persons.astype(np.int64), drawn.events.astype(np.int64)
        for j, cells in self.cells.items():
            of, column = (persons, j) if j < first else (events, j - first)
            if len(of):
                of[:, column] = cells.values(of[:, column], values)
        return laid_in_order(replace(drawn, persons=persons, events=events), self.sequences.timing, self.last)

    @cached_property
    def _counted(self) -> Histories:
        return self.draw(COMPARED[0], Streams.from_seed(0).child("queries"))

    def table(self, query: Query) -> Floats:
        """Shares of persons: sequences have no closed form, so a fixed public draw is counted."""
        return np.asarray(query.kernel()(self._counted).integers()[0] / (self._counted.n * WEIGHT_STEPS))

    def comparison(self, setting: Setting) -> Comparison:
        """Every group of tables, and distribution functions of numbers."""
        reference = self._reference
        distance = Statistic.sum(reference.sums).map(reference.largest_distance, setting.n)
        return Comparison(reference.kinds, distance, categorical=False, persons=reference.n)

    def distances(self, persons: Histories) -> Distances:
        """How far public persons are from the draw that was compared, by group of tables: exact.

        Few persons, drawn again, lie farther from the truth than that draw.
        """
        return Distances(self._reference.distances(persons))

    @property
    def _reference(self) -> Reference:
        if self.reference is None:
            raise CannotAnswerError("a law that was read from a file has no persons to be compared with.")
        return self.reference
