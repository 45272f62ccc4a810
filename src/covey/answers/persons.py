"""Sums over persons and their events, from noisy tables of one and of two attributes, and of three that were chosen.

A person adds to every table a law of at most one person, averaged over their events, so a ratio of sums of entries is about a
random event of a random person. Weighted by the number of events, known to a bin, it is about a random event; what the bin
leaves open widens the interval. Proved in docs/proofs/persons.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce

import numpy as np

from covey._core.arrays import Floats, Integers
from covey._core.tables.events import count_bins
from covey.answers.answer import Per
from covey.answers.columns import Columns, Scale
from covey.answers.estimates import KEPT, LOST, Estimate, LostInNoiseError
from covey.answers.evidence import Evidence, Noise
from covey.errors import CannotAnswerError

Scores = Mapping[int, Floats]  # by attribute
ROUNDS = 30  # of the search for the farthest ratio that bins leave open: it settles within a few
MANY = "; of large numbers of events only ranges are known"


@dataclass(frozen=True)
class Entries:
    """Entries of a noisy table of n persons, and the noise on combinations of them by their slopes.

    Each may count by any of the `factors` between two, where there are such: bins of the number of events leave that open.
    """

    values: Floats
    noise: Callable[[Floats], Noise]
    n: int
    factors: tuple[Floats, Floats] | None = None

    def ratio(self, top: Floats, bottom: Floats | None, sampled: bool, moved: bool = True) -> Estimate:
        """Σ top·x / Σ bottom·x, or over the public number of persons; with `sampled` as a figure of their population.

        A person's part of the numerator minus the ratio times that of the denominator is an average over their events: its
        square is at most the average of squares (Jensen), which is what the entries say. `moved` says whether the denominator
        counts by the same factors.
        """
        whole = float(self.n if bottom is None else self.values @ bottom)
        least = 0.0 if bottom is None else LOST * float(np.sqrt(self.noise(bottom).variance[0]))
        if whole <= least:
            raise LostInNoiseError(
                f"too few persons are meant: about {max(whole, 0.0):,.0f}, and fewer than {least:,.0f} are lost in the noise."
            )
        value = float(self.values @ top) / whole
        slope = (top - value * (0.0 if bottom is None else bottom)) / whole
        noise = self.noise(slope)
        variance = float(noise.variance[0])
        if sampled:
            spread = float(self.values @ slope**2) - (value**2 / whole if bottom is None else 0.0)
            variance += max(0.0, spread)
        found = Estimate(np.array([value]), np.array([variance]), noise.fourth, *np.zeros((2, 1)))
        if self.factors is None:
            return found
        below, above = self._reach(top, bottom if moved else None, whole, self.factors)
        return replace(found, below=np.array([below]), above=np.array([above]), opened=MANY)

    def _reach(
        self, top: Floats, bottom: Floats | None, whole: float, factors: tuple[Floats, Floats]
    ) -> tuple[float, float]:
        """How far below and above itself the ratio may lie if each entry may count by any factor between two bounds.

        No entry is negative in truth, and those that are by noise are taken as 0. That raises the ratio, so its ends are
        compared with itself, raised alike, and not with the estimate.
        """
        held = np.maximum(self.values, 0.0)

        def ratio(by: Floats | float) -> float:
            return float((held * by) @ top) / max(whole if bottom is None else float((held * by) @ bottom), 1e-12)

        ends, (low, high) = [], factors
        for sign in (-1, 1):
            end = 0.0
            for _ in range(ROUNDS):  # Dinkelbach: the best factors for a ratio give a better ratio
                own = top if bottom is None else top - end * bottom
                end = ratio(np.where(sign * own > 0, high, low))
            ends.append(end)
        return max(0.0, ratio(1.0) - ends[0]), max(0.0, ends[1] - ratio(1.0))


@dataclass(frozen=True)
class Persons:
    """Persons with at most so many events; attributes of persons come first, and the number of events last."""

    evidence: Evidence
    columns: Columns
    first: int
    most: int

    @property
    def n(self) -> int:
        """Persons, which are public."""
        return self.evidence.found.n

    @property
    def count(self) -> int:
        """The attribute "number of events"."""
        return self.evidence.found.width - 1

    def of_event(self, j: int) -> bool:
        """Whether an attribute is of events: persons without any have none of its values."""
        return j >= self.first

    def require_few(self, attributes: Sequence[int], per: Per) -> None:
        """Refuse what no measured table holds, and say what does."""
        count = len(set(attributes))
        if per == "event" and count > 1 and self.most > 1:
            raise CannotAnswerError(
                f"events count equally only together with the number of events of their person: with {count} columns that is "
                f"{count + 1} things at once, and two were measured. Ask per person, where every person counts equally, "
                "or compute it from the rows, without an interval."
            )
        if count > 2:
            names, chosen = self.columns.called, self.evidence.found.chosen(3)
            some = "; ".join(", ".join(names[a] for a in own) for own in chosen if max(own) < len(names))
            more = f", and shares of {some}" if some else ""
            raise CannotAnswerError(
                f"this question is about {count} columns at once, and one and two at a time were measured{more}. Ask about two, "
                "or compute it from the rows, without an interval."
            )

    def three(self, attributes: Sequence[int]) -> tuple[int, ...] | None:
        """The columns of a table of three that was chosen and measured, where a question is about these."""
        own = tuple(sorted(set(attributes)))
        return own if len(own) == 3 and self.evidence.holds(own) else None

    def by_units(self, attributes: Sequence[int], per: Per) -> bool:
        """Whether a question is about one attribute by itself, in the ranges that were counted."""
        return len(set(attributes)) == 1 and (per == "person" or self.most == 1)

    # Ratios.

    def ratio(self, top: Scores, bottom: Scores, per: Per, sampled: bool, half: Floats | None = None) -> Estimate:
        """The mean of a product of scores of units, one factor an attribute, over that of others.

        `half` is half the width of the units of a number that is asked about by itself.
        """
        columns, bins = self.three([*top]), {j: self.evidence.bins(j) for j in top}
        if columns is None or per == "event":
            self.require_few([*top], per)
        else:
            bins = dict(zip(columns, self.evidence.maps(columns), strict=True))
        ones = {j: np.ones(len(own)) for j, own in bins.items()}
        if not self.by_units([*top], per):
            folded = [
                {j: self.folded(j, side.get(j, ones[j]), own) for j, own in bins.items()} for side in (top, bottom)
            ]
            return self.of_bins(folded[0], folded[1], sampled)
        ((j, scores),) = top.items()
        own, margin, below = self.alone(j), self.evidence.margins[j], bottom.get(j, ones[j])
        over, under, wide = (
            np.asarray(np.bincount(margin.ranges, side * margin.part, minlength=len(own.values)), dtype=np.float64)
            for side in (scores, below, 0 * scores if half is None else half)
        )
        everybody = not self.of_event(j) and bool((below == 1).all())
        held = np.maximum(own.values, 0.0)
        hidden = np.array([float(held @ wide) / max(float(held @ under), 1e-12)])
        return replace(own.ratio(over, None if everybody else under, sampled), below=hidden, above=hidden)

    def of_bins(self, top: Scores, bottom: Scores, sampled: bool) -> Estimate:
        """The same from scores of the bins of a table of several columns; of one attribute, of events that count equally."""
        if len(top) == 1:
            ((j, scores),) = top.items()
            entries, number = self.weighed(j)
            return entries.ratio(outer(number, scores), outer(number, bottom[j]), sampled)
        over, under = (outer(*(side[a] for a in top)) for side in (top, bottom))
        everybody = not any(map(self.of_event, top)) and bool((under == 1).all())
        return self.table(tuple(top)).ratio(over, None if everybody else under, sampled)

    def mean(self, column: str, chosen: Scores, per: Per, sampled: bool) -> tuple[Estimate, tuple[float, float], float]:
        """The mean of a number over chosen units, where it may lie, and by what part bins make its distances too small."""
        (scores, half), there = self.columns.number(column), self.columns.there(column)
        place = self.columns.place(column)
        among = list(dict.fromkeys([place, *chosen]))
        self.require_few(among, per)
        wide = 0.0
        if self.by_units(among, per):
            half, own = half * there, chosen.get(place, 1.0)
            top, bottom = {place: scores * there * own}, {place: there * own}
            estimate = self.ratio(top, bottom, per, sampled, half * own)
        else:
            masks = {a: self.folded(a, mask) for a, mask in chosen.items()}
            scores, there, wide = self.in_bins(column)
            own, half = masks.get(place, 1.0), np.zeros(len(scores))
            top, bottom = ({place: side * own, **{a: masks[a] for a in among[1:]}} for side in (scores * there, there))
            estimate = self.of_bins(top, bottom, sampled)
        inside = scores[there > 0]
        return estimate, (float(inside.min() - half.max()), float(inside.max() + half.max())), wide

    def rate(self, chosen: Scores, grouped: bool, sampled: bool) -> Estimate:
        """Events of a person on average: of all, of those that meet a condition, or of a group of persons."""
        if not chosen:
            entries = self.alone(self.count)
            return entries.ratio(np.arange(len(entries.values), dtype=np.float64), None, sampled)
        ((j, mask),) = chosen.items()
        (entries, number), folded = self.weighed(j), self.folded(j, mask)
        persons = outer(np.ones(len(number)), folded) if grouped else None
        return entries.ratio(outer(number, folded), persons, sampled, moved=False)

    def wait(self, j: int, scale: Scale, sampled: bool) -> Estimate:
        """The mean time from an event to the next, by an attribute of times in bins: inside them only bounds are known."""
        steps, bins = Evidence(self.evidence.found, ("step",)), self.evidence.bins(j)
        if not steps.holds((j, j)):
            raise CannotAnswerError("steps from one event to the next were not measured: the package names no order.")
        found = self.table((j, j), steps)
        first, last = (np.searchsorted(bins, np.arange(bins.max() + 1), side=side) for side in ("left", "right"))
        starts, ends = scale.starts[first] / scale.grid.scale, scale.ends[last - 1] / scale.grid.scale
        middle, same = (starts + ends) / 2, np.eye(len(starts), dtype=bool)
        value = np.where(same, (ends - starts)[:, None] / 3, middle[None, :] - middle[:, None])
        value = np.where(np.tril(np.ones_like(same), -1), 0.0, value)  # the next event is never earlier
        low, high = (
            np.triu(np.maximum(gap, 0.0)).ravel()
            for gap in (starts[None] - ends[:, None], ends[None] - starts[:, None])
        )
        upper = np.triu(np.ones_like(value)).ravel()
        estimate = found.ratio(value.ravel(), upper, sampled)
        least, most = (found.ratio(side, upper, False).value for side in (low, high))
        below, above = np.maximum(0.0, estimate.value - least), np.maximum(0.0, most - estimate.value)
        return replace(estimate, below=below, above=above, opened="")

    def weighed(self, j: int) -> tuple[Entries, Floats]:
        """The table of the number of events and an attribute, opened by what bins of that number hide; and the number by bin."""
        counts = np.maximum(self.alone(self.count).values, 0.0)
        starts = count_bins(len(counts) - 1)
        stops = np.append(starts[1:], len(counts))
        mean = np.array(
            [float(np.average(np.arange(a, b), weights=counts[a:b] + 1e-9)) for a, b in zip(starts, stops, strict=True)]
        )
        entries = self.table((self.count, j))
        safe, ones = np.where(mean > 0, mean, 1.0), np.ones(len(entries.values) // len(mean))
        low, high = (outer(np.where(mean > 0, end / safe, 1.0), ones) for end in (starts, stops - 1))
        return replace(entries, factors=(low, high)), mean

    # Tables.

    def alone(self, j: int) -> Entries:
        """What was counted of one attribute by itself, range by range."""
        own, n = self.evidence.margins[j], self.n
        return Entries(n * own.shares, lambda slopes: own.noise(n * slopes[None]), n)

    def table(self, columns: tuple[int, ...], evidence: Evidence | None = None) -> Entries:
        """The table of some attributes, a row for each bin of the first."""
        own, n = evidence or self.evidence, self.n
        if not (own.holds(columns) or own.holds(columns[::-1])):
            raise CannotAnswerError("these columns were not measured together.")
        table = own.table(columns)
        return Entries(n * table.ravel(), lambda slopes: own.noise({columns: n * slopes.reshape(1, *table.shape)}), n)

    # Bins.

    def folded(self, j: int, scores: Floats, bins: Integers | None = None) -> Floats:
        """Scores of units as scores of their bins; of a number that a range cuts the part of its bin, if that is light.

        Bins are those of tables of two columns, where no others are given.
        """
        unit, number = self.evidence.margins[j], j in self.columns.edges
        bins = unit.bins if bins is None else bins
        width = np.diff(unit.edges)
        part = np.bincount(bins, scores * width) / np.bincount(bins, width)
        cut = np.flatnonzero(np.bincount(bins, np.abs(scores - part[bins]) > 1e-9))
        if len(cut) and not number:
            raise CannotAnswerError(
                f"rare categories of {self.columns.names[j]!r} were measured together, beside another column: ask about them by "
                "themselves, or name all that go together."
            )
        for k in cut:
            self.columns.require_light(j, np.flatnonzero(bins == k))
        return np.asarray(part)

    def in_bins(self, name: str) -> tuple[Floats, Floats, float]:
        """A number's mean inside each bin, where it is a number, and by what part its distances are too small in bins."""
        j, (fine, half), there = self.columns.place(name), self.columns.number(name), self.columns.there(name)
        unit = self.evidence.margins[j]
        counts = self.n * self.evidence.one_way(j)
        mass, size = np.maximum(counts, 1e-9) * there, int(unit.bins.max()) + 1
        held = np.maximum(np.bincount(unit.bins, mass, minlength=size), 1e-12)
        mean = np.bincount(unit.bins, mass * fine, minlength=size) / held
        within = float(mass @ ((fine - mean[unit.bins]) ** 2 + half**2 / 3))
        spread = float(mass @ (mean[unit.bins] - (mass @ fine) / mass.sum()) ** 2)
        kept = spread / max(spread + within, 1e-12)
        if kept < KEPT:
            raise CannotAnswerError(
                f"the bins in which {self.columns.names[j]!r} was measured together with other columns keep {kept:.0%} of its "
                f"variance, and this needs {KEPT:.0%}. Ask for shares; more persons, a larger ε or a positive δ give finer bins."
            )
        return mean, self.folded(j, there), 1 / kept - 1

    def overall(self, name: str) -> float:
        """A number's mean over all."""
        j = self.columns.place(name)
        mass = np.maximum(self.n * self.evidence.one_way(j), 0.0) * self.columns.there(name)
        return float(mass @ self.columns.number(name)[0] / max(mass.sum(), 1e-12))


def outer(*scores: Floats) -> Floats:
    """Products of scores of several attributes, entry by entry."""
    return np.asarray(reduce(np.multiply.outer, scores).ravel())
