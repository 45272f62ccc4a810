"""Error bands for a report: where the share of every bar, and the association of every pair, lies in the confidential table.

Read off the measurements, so they cost nothing (docs/proofs/intervals.md, "Bands in the report"). A bar has a band of its own. Of
a pair the size of its association is held against what noise alone would show: its edge is what
simulated noise of the same law, all pairs of the map at once, exceeds in less than one of twenty draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtri

from covey.engine.arrays import Floats, Integers
from covey.engine.entropy import Streams
from covey.errors import CannotAnswerError, ParameterError
from covey.release.contents import DISTANT, LOST, MEASURED, MODELLED, PairBands, PairTable
from covey.release.summary import MISSING, Column, cramers_v

if TYPE_CHECKING:
    from covey.release.answers.release import Release

CONFIDENCE = 0.95  # of every band, as of answers and of the certificate
DRAWS = 200  # of simulated noise
EDGE = 0.975  # of the largest norms of these draws: 0.95, and what so few draws may miss
NEXT_TO_NOTHING = 0.05  # an association whose band ends below it is known to be none that matters
SEEN = 0.02  # an association of synthetic rows that a reader would take for one
LEVELS = (0.1, 0.5, 0.9)  # of the quantiles of a number
SHOWN = 6  # rows and columns of a pair's table: more cannot be taken in
RARE = 1e-4  # shares of bins are not taken for less: dividing by them would show noise alone


@dataclass(frozen=True)
class ReportBands:
    """Bands of one release."""

    release: Release

    def column(self, j: int, column: Column, labels: Integers) -> tuple[Floats, Floats]:
        """Both ends of the bands of some labels of an attribute, by place; it must have been measured by itself."""
        evidence, parts = self.release.evidence, self._parts(j, column, labels)
        share, sd = evidence.one_way(j), np.sqrt(evidence.noise({(j,): parts}).variance)
        open_ = (parts > 0) & (parts < 1)
        held = np.maximum(share, 0)
        below, above = (open_ * parts) @ held, (open_ * (1 - parts)) @ held
        value, half = parts @ share, float(ndtri((1 + CONFIDENCE) / 2)) * sd
        return np.clip(value - below - half, 0, 1), np.clip(value + above + half, 0, 1)

    def _parts(self, j: int, column: Column, labels: Integers) -> Floats:
        """For each of these labels the part of every measured category that counts toward it."""
        columns, name = self.release.columns, self.release.columns.called[j]
        if j not in columns.edges:
            columns.scale(name)  # refuses what was not measured by itself
            return np.asarray(column.group == labels[:, None], dtype=np.float64)
        scale = columns.scale(name)
        assert scale is not None  # only numbers have edges
        starts, width = np.asarray(column.starts), scale.ends - scale.starts + 1
        ends = np.append(starts[1:] - 1, scale.grid.axis.high)
        out = np.zeros((len(column.labels), columns.size(name)))
        inside = np.minimum(scale.ends, ends[:, None]) - np.maximum(scale.starts, starts[:, None]) + 1
        out[: len(starts), scale.bins] = np.clip(inside, 0, width) / width
        for k, place in enumerate(scale.words.values(), len(starts)):
            out[k, place] = 1.0
        if column.has_missing:
            out[-1] = columns.missing(name)
        return out[labels]

    def quantiles(self, j: int) -> list[tuple[float, float, float, float]]:
        """Of the confidential table itself."""
        name = self.release.columns.called[j]
        if self.release.columns.field(name).type not in ("integer", "number"):
            return []
        try:
            found = [(q, self.release.quantile(name, q, confidence=CONFIDENCE, about="table")) for q in LEVELS]
        except (CannotAnswerError, ParameterError):  # a number of which nothing is measured by itself
            return []
        return [(q, answer.value, answer.low, answer.high) for q, answer in found]

    def notes(self) -> list[str]:
        """As answers say it, of every column."""
        return self.release.columns.notes_of_all()

    # Pairs.

    def pairs(self, codes: Integers, count: int) -> PairBands | None:
        """Of the first so many attributes; codes are synthetic rows, numbers by cells. None where pairs were not measured."""
        try:
            norms = self.norms(count)
        except CannotAnswerError:
            return None
        value, low, high, synthetic = np.zeros((4, count, count))
        kind = np.full((count, count), LOST, dtype=object)
        noise, edge = self.noise(count)
        binned = [self._bins[x][codes[:, x]] for x in range(count)]
        for a, b in combinations(range(count), 2):
            if a in self._distant or b in self._distant:  # bins of a distance, and no reader asks for that
                kind[a, b] = kind[b, a] = DISTANT
                continue
            most = np.sqrt(max(min(len(self._weights[a]), len(self._weights[b])) - 1, 1))
            own = cramers_v(self._counted(binned[a], binned[b], a, b), len(codes))
            ends = np.clip(np.array([norms[a, b] - noise[a, b], norms[a, b] + noise[a, b]]) / most, 0, 1)
            stands = edge[a, b] < most and norms[a, b] > edge[a, b]  # V is 1 at most: noise beyond that shows nothing
            here = MEASURED if stands or ends[1] <= NEXT_TO_NOTHING else MODELLED if own > SEEN else LOST
            for i, j in ((a, b), (b, a)):
                value[i, j], synthetic[i, j] = norms[a, b] / most if stands else 0.0, own
                low[i, j], high[i, j] = ends if stands else (0.0, ends[1])
                kind[i, j] = here
        distant = tuple(sorted(j for j in self._distant if j < count))
        return PairBands(value, low, high, synthetic, kind, distant)

    @cached_property
    def _bins(self) -> list[Integers]:
        """Cell → bin of the pair tables."""
        pairs, width = self.release.evidence.found.pairs(), len(self.release.codec.names)
        return [np.arange(2) if pairs is None else pairs.query.factors[a].bins for a in range(width)]

    @cached_property
    def _weights(self) -> list[Floats]:
        """One over the roots of the shares of bins, by attribute: what makes a table of covariances one of associations."""
        found = []
        for a, bins in enumerate(self._bins):
            units = self.release.evidence.bins(a)
            share = np.bincount(units, np.maximum(self.release.shares[a], 0), minlength=int(bins.max()) + 1)
            found.append(np.where(share > RARE, 1 / np.sqrt(np.maximum(share, RARE)), 0.0))
        return found

    @cached_property
    def _distant(self) -> set[int]:
        """The columns that were measured by their distance from another one."""
        columns, codec, links = self.release.columns, self.release.codec, self.release.schema.links
        return {
            j for j, name in enumerate(codec.names) if name in codec.expected or (j in columns.edges and name in links)
        }

    def norms(self, count: int) -> Floats:
        """How large the measured association of each pair is: the root of φ²."""
        out = np.zeros((count, count))
        for a, b in combinations(range(count), 2):
            table = self.release.evidence.table((a, b))
            free = table - np.outer(table.sum(axis=1), table.sum(axis=0))
            out[a, b] = float(np.linalg.norm(self._weights[a][:, None] * free * self._weights[b]))
        return out

    def noise(self, count: int) -> tuple[Floats, Floats]:
        """The norm that noise stays below in 95 of 100 draws: of each pair by itself, and of all pairs at once."""
        public = Streams.from_seed(0).child("bands").postprocessing("noise")
        upper = np.triu_indices(count, 1)
        norms = np.array([self._drawn(count, public)[upper] for _ in range(DRAWS)])
        typical = np.maximum(norms.mean(axis=0), 1e-300)
        out = np.zeros((2, count, count))
        out[0][upper] = np.quantile(norms, CONFIDENCE, axis=0)
        out[1][upper] = float(np.quantile((norms / typical).max(axis=1), EDGE)) * typical
        return out[0], out[1]

    def _drawn(self, q: int, public: np.random.Generator) -> Floats:
        """Norms of simulated noise, pair by pair; that of pairs that were measured twice is smaller."""
        evidence = self.release.evidence
        pairs = evidence.found.pairs()
        assert pairs is not None  # a pair was asked for before
        noise = pairs.simulate(q, public)
        if pairs.query.view == "product":  # the noise of a table is that of its product
            size = np.array([np.linalg.norm(w) for w in self._weights[:q]])
            return np.asarray(np.abs(noise) * np.outer(size, size))
        weights = np.concatenate(self._weights[:q])
        squares = (weights[:, None] * noise * weights) ** 2
        for axis in (0, 1):
            squares = np.add.reduceat(squares, pairs.query.blocks[:q], axis=axis)
        for a, b in evidence.found.chosen(2):
            if max(a, b) < q:
                squares[a, b] *= evidence.coordinate((a, b))[0] * (pairs.per / pairs.sd) ** 2
        return np.sqrt(squares)

    def _counted(self, one: Integers, two: Integers, a: int, b: int) -> Integers:
        """Synthetic rows by their bins of two attributes."""
        sizes = [int(self._bins[x].max()) + 1 for x in (a, b)]
        return np.bincount(one * sizes[1] + two, minlength=sizes[0] * sizes[1]).reshape(sizes)

    def table(self, codes: Integers, a: int, b: int) -> PairTable:
        """Shares of synthetic rows, and of each cell its own 95% band in the confidential table; neighbours are joined."""
        one, two = (self._bins[x][codes[:, x]] for x in (a, b))
        counts, evidence = self._counted(one, two, a, b), self.release.evidence
        share = counts / max(1, counts.sum())
        (rows, one), (columns, two) = self._joined(a, share.sum(axis=1)), self._joined(b, share.sum(axis=0))
        left, right = (of == np.arange(of.max() + 1)[:, None] for of in (one, two))
        each = (left[:, None, :, None] & right[None, :, None, :]).reshape(-1, *counts.shape).astype(np.float64)
        value = each.reshape(len(each), -1) @ evidence.table((a, b)).ravel()
        half = float(ndtri((1 + CONFIDENCE) / 2)) * np.sqrt(evidence.noise({(a, b): each}).variance)
        shape = len(rows), len(columns)
        ends = (np.clip(value + sign * half, 0, 1).reshape(shape) for sign in (-1, 1))
        return PairTable(rows, columns, np.asarray(left @ share @ right.T, dtype=np.float64), *ends)

    def _joined(self, x: int, share: Floats) -> tuple[tuple[str, ...], Integers]:
        """At most SHOWN groups of an attribute's bins, by their shares of synthetic rows: labels, and the group of each bin."""
        name = self.release.codec.names[x]
        labels = [label for label, _ in self.release.columns.groups(name, self.release.evidence.bins(x))]
        bins = len(labels) - (labels[-1] == MISSING)
        if bins <= SHOWN:
            return tuple(labels), np.arange(len(labels))
        of = np.arange(len(labels))
        if self.release.codec.ordered[x]:
            middle = (np.cumsum(share[:bins]) - share[:bins] / 2) / max(float(share[:bins].sum()), 1e-12)
            of[:bins] = np.unique(np.minimum(SHOWN * middle, SHOWN - 1).astype(np.int64), return_inverse=True)[1]
            members = [np.flatnonzero(of[:bins] == k) for k in range(of[:bins].max() + 1)]
            ends = [(labels[m[0]].split(" to ")[0], labels[m[-1]].split(" to ")[-1]) for m in members]
            shown = [" to ".join(dict.fromkeys(both)) for both in ends]
        else:
            order = np.argsort(-share[:bins], kind="stable")
            of[order] = np.minimum(np.arange(bins), SHOWN - 1)
            shown = [*(labels[k] for k in order[: SHOWN - 1]), f"{bins - SHOWN + 1} others"]
        of[bins:] = len(shown)
        return (*shown, *labels[bins:]), of
