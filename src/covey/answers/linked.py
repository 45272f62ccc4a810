"""A release of persons with events in the hands of an analyst: both tables, more of them, and answers with intervals.

per="person" is about a random event of a random person with events, per="event" about a random event of all. No true data is
within reach.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from covey.answers import notes
from covey.answers.answer import About, Answer, answers, in_library
from covey.answers.columns import Conditions, named, said
from covey.answers.estimates import Estimate
from covey.answers.linkedevidence import COUNT, Attribute, Entries, LeftOpen, LinkedEvidence, Table
from covey.answers.steps import KEPT, by_group, check
from covey.core.arrays import Floats
from covey.drawing import Drawn
from covey.entropy import Streams
from covey.errors import CannotAnswerError, ParameterError, whole_number
from covey.html import card
from covey.reading import Reader
from covey.release.contents import Bounds, PrivateRelease
from covey.table.sources import joined
from covey.tree import PART_PERSONS, MakePersons

Per = Literal["person", "event"]
PERS = {"person": "a random event of a random person", "event": "a random event"}


@dataclass(frozen=True)
class Scores:
    """What a question asks of one attribute: scores of its units or bins above and below the line, and what these hide."""

    attribute: Attribute
    top: Floats
    bottom: Floats
    half: Floats


@dataclass(frozen=True)
class LinkedAnswers(PrivateRelease):
    """A private release of persons with events: `covey.load(folder)`, or `release(m)` of its synthesizer."""

    # Rows.

    def rows(self, library: str = "polars") -> dict[str, Any]:
        """Both synthetic tables by name, as polars, pandas or arrow frames."""
        return self._frames(list(self.parts), library)

    def sample(self, m: int, *, library: str = "polars", seed: int | None = None) -> dict[str, Any]:
        """m more synthetic persons with their events, at no cost: both tables by name."""
        m = whole_number(m, "m", 1, "It counts the synthetic persons.")
        streams = Streams.from_system() if seed is None else Streams.from_seed(whole_number(seed, "seed", 0))
        return self._frames(list(Drawn(m, MakePersons(self.described, self.persons), streams)), library)

    def _frames(self, parts: list[Any], library: str) -> dict[str, Any]:
        names = [part.name for part in self.described.tables]
        return {name: in_library(joined([both[j] for both in parts]), library) for j, name in enumerate(names)}

    def certified(self, tables: Sequence[Mapping[str, Any]]) -> Bounds:
        """The certificate for these very tables, if they are all persons that there are."""
        found = self.persons.certificate
        if self.own is not None or found is None or found.reference is None or self.parts.m > PART_PERSONS:
            return self.own or found
        if not len(tables[1][self.described.events.link]):  # nothing to compare, and nothing to claim
            return replace(found, bound=dict.fromkeys(found.bound, 1.0), persons=self.parts.m, reference=None)
        names = [part.name for part in self.described.tables]
        return found.of(Reader(self.described.plain()).open(dict(zip(names, tables, strict=True))).linked)

    @cached_property
    def evidence(self) -> LinkedEvidence:
        """The measurements, by column."""
        return LinkedEvidence(self.persons.measured, self.described)

    # Answers.

    def share(  # how the interval is wanted comes after the question
        self,
        of: Conditions,
        given: Conditions | None = None,
        *,
        per: Per = "person",
        confidence: float = 0.95,
        about: About = "population",
    ) -> Answer:
        """The share of persons, or of events, that meet conditions, among all or among those that meet `given`."""
        of, given = named(of), named(given or {})
        wanted = {name: self.evidence.find(name) for name in (*of, *given)}
        self._require_few(list(wanted.values()), per)
        question = f"share {said(of)}" + (f" given {said(given)}" if given else "")
        scores, fine = [], self._fine(per, len(set(wanted.values())))
        for own in dict.fromkeys(wanted.values()):
            top, bottom = (self._mask(own, side, wanted, fine) for side in ({**given, **of}, given))
            if any(wanted[name] == own for name in of) and any(wanted[name] == own for name in given):
                top = self._mask(own, of, wanted, fine) * bottom
            scores.append(Scores(own, top, bottom, np.zeros(len(top))))
        found = self._answer(question, scores, per, (confidence, about), (0.0, 1.0))
        return replace(found, note=self.evidence.notes({**of, **given}))

    def mean(  # how the interval is wanted comes after the question
        self,
        column: str,
        by: str | None = None,
        where: Conditions | None = None,
        *,
        per: Per = "person",
        confidence: float = 0.95,
        about: About = "population",
    ) -> Any:
        """The mean of a number or flag of persons or events; with `by` a table, a row for each group."""
        where = named(where or {})
        if by is None:
            return self._mean(column, {}, where, per, (confidence, about))
        own = self.evidence.find(by)
        if own == self.evidence.find(column):
            raise ParameterError(f"{column!r} cannot be its own groups: group by another column.")
        self._require_few([self.evidence.find(column), own, *(self.evidence.find(name) for name in where)], per)
        wish = (confidence, about)
        return by_group(
            by,
            self._groups(own),
            lambda mask: self._mean(column, {own: mask}, where, per, wish),
            lambda mask: self.evidence.group_note(own, mask),
        )

    def rate(
        self,
        of: Conditions | None = None,
        by: str | None = None,
        *,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Any:
        """How many events a person has on average, all or those that meet one condition; with `by` for groups of persons."""
        question, wish = f"rate{' ' + said(named(of)) if of else ''}", (confidence, about)
        if of:
            names = [self.evidence.find(name) for name in of]
            if by is not None or len(names) > 1 or names[0].side == 0:
                raise CannotAnswerError(
                    "a rate is one of all events, with groups of persons, or of the events that meet one condition: three things "
                    "at once were not measured. Compute others from the rows, without an interval."
                )
            mask = self._mask(names[0], of, dict.fromkeys(of, names[0]), fine=False)
            table, number, left = self._weighed(names[0])
            both = table.flat(number, mask), self.privacy.n
            found = self._capped(self._finish(question, table.entries, both, left, wish))
            return replace(found, note=self.evidence.notes(of))
        if by is None:
            entries = self.evidence.alone(self.evidence.count)
            top = np.arange(len(entries.values), dtype=np.float64)
            return self._capped(self._finish(question, entries, (top, self.privacy.n), None, wish))
        own = self.evidence.find(by)
        if own.side == 1:
            raise ParameterError(f"{by!r} is a column of events: ask for rate {by}=…, or group by a column of persons.")
        table, number, left = self._weighed(own)
        left, everybody = replace(left, below=False), np.ones(len(number))

        def ask(mask: Floats) -> Answer:
            both = table.flat(number, mask), table.flat(everybody, mask)
            return self._capped(self._finish(question, table.entries, both, left, wish))

        return by_group(by, self._groups(own), ask, lambda mask: self.evidence.group_note(own, mask))

    def wait(self, *, confidence: float = 0.95, about: About = "population") -> Answer:
        """The mean time from an event to the person's next one, in units of the order column (days for dates).

        With gaps it was measured itself. Otherwise dates were measured in bins, two events at a time: inside them only bounds are
        known, and the interval holds these.
        """
        if self.described.link.gaps:
            answer: Answer = self.mean("gap", confidence=confidence, about=about)
            return replace(answer, question="wait")
        order = self.described.link.order
        if order is None or self.described.link.numbered:
            raise CannotAnswerError(
                "the package names no column of times as order, so there is no time between events."
            )
        own = self.evidence.find(f"{self.described.events.name}.{order}")
        scale = self.evidence.binned[1].scale(own.name)
        found = self.evidence.step(own.place)
        if scale is None or scale.first or len(scale.starts) ** 2 != len(found.values):
            raise CannotAnswerError(f"{order!r} has values apart: no time between events can be told from them.")
        starts, ends = (np.asarray(x, dtype=np.float64) / scale.grid.scale for x in (scale.starts, scale.ends))
        middle, same = (starts + ends) / 2, np.eye(len(starts), dtype=bool)
        value = np.where(same, (ends - starts)[:, None] / 3, middle[None, :] - middle[:, None])
        value = np.where(np.tril(np.ones_like(same), -1), 0.0, value)  # the next event is never earlier
        low, high = (
            np.triu(np.maximum(gap, 0.0)).ravel()
            for gap in (starts[None] - ends[:, None], ends[None] - starts[:, None])
        )
        upper = np.triu(np.ones_like(value)).ravel()
        estimate = found.ratio(value.ravel(), upper, self._sampled(about))
        ends_ = [float(found.ratio(side, upper, False).value[0]) for side in (low, high)]
        estimate = _opened(estimate, ends_[0], ends_[1])
        unit = "days" if scale.grid.field.type == "date" else "its own units"
        note = f"measured, in bins of {order!r}; of where events lie inside them only bounds are known; in {unit}"
        return self._capped(answers(estimate, ["wait"], check(confidence), about, note, (0.0, np.inf))[0])

    # Steps.

    def _sampled(self, about: About) -> bool:
        if about not in ("population", "table"):
            raise ParameterError(f"about must be 'population' or 'table', got {about!r}.")
        return about == "population"

    def _require_few(self, columns: list[Attribute], per: Per) -> None:
        """Refuse what no measured table holds, and say what does."""
        if per not in PERS:
            raise ParameterError(f"per must be 'person' or 'event', got {per!r}.")
        count = len(set(columns))
        if per == "event" and count > 1 and self.described.link.at_most > 1:
            raise CannotAnswerError(
                f"events count equally only together with the number of events of their person: with {count} columns that is "
                f"{count + 1} things at once, and two were measured. Ask per person, where every person counts equally, "
                "or compute it from the rows, without an interval."
            )
        if count > 2:
            raise CannotAnswerError(
                f"this question is about {count} columns at once, and one and two at a time were measured. Ask about two, or "
                "compute it from the rows, without an interval."
            )

    def _fine(self, per: Per, columns: int) -> bool:
        return columns == 1 and (per == "person" or self.described.link.at_most == 1)

    def _mask(self, own: Attribute, of: Conditions, found: Mapping[str, Attribute], fine: bool) -> Floats:
        """1 for the units, or bins, of an attribute that meet the conditions on it."""
        columns = (self.evidence.fine if fine else self.evidence.binned)[own.side]
        mask = np.ones(columns.size(own.name))
        for name, value in of.items():
            if found[name] == own:
                mask = mask * columns.condition(own.name, value)
        return mask if fine else self.evidence.folded(self.evidence.index(own), mask, own.name)

    def _groups(self, own: Attribute) -> list[tuple[str, Floats]]:
        columns, j = self.evidence.binned[own.side], self.evidence.index(own)
        number = self.evidence.number(j)
        bins = np.arange(columns.size(own.name)) if number else self.evidence.factors[j].bins
        return [(label, self.evidence.folded(j, mask, own.name)) for label, mask in columns.groups(own.name, bins)]

    def _mean(
        self, column: str, group: Mapping[Attribute, Floats], where: Conditions, per: Per, wish: tuple[float, About]
    ) -> Answer:
        own = self.evidence.find(column)
        found = {name: self.evidence.find(name) for name in where}
        among = list(dict.fromkeys([own, *group, *found.values()]))
        self._require_few(among, per)
        places = {str(i): one for i, one in enumerate(among)} | found
        fine = self._fine(per, len(among))
        if fine:
            columns = self.evidence.fine[own.side]
            (scores, half), there = columns.number(own.name), columns.there(own.name)
            half, wide = half * there, 0.0
        else:
            scores, there, wide = self._in_bins(own)
            half = np.zeros(len(scores))
        asked = []
        for one in among:
            mask = self._mask(one, where, places, fine) * group.get(one, 1.0)
            if one == own:
                asked.append(Scores(one, scores * there * mask, there * mask, half * mask))
            else:
                asked.append(Scores(one, mask, mask, np.zeros(len(mask))))
        question = f"mean {column}" + (f" where {said(where)}" if where else "")
        inside = scores[there > 0]
        answer = self._answer(
            question, asked, per, wish, (float(inside.min() - half.max()), float(inside.max() + half.max()))
        )
        if wide:  # bins hide a part of how far a group lies from all
            whole = self._overall(own)
            more = abs(answer.value - whole) * wide
            answer = replace(
                answer, low=answer.low - more, high=answer.high + more, se=float(np.hypot(answer.se, more / 2))
            )
        others = {name: value for name, value in where.items() if found[name] != own}
        limits = notes.of_column(self.evidence.told[own.side], own.name)
        return replace(answer, note=notes.together(limits, [self.evidence.notes(others)]))

    def _in_bins(self, own: Attribute) -> tuple[Floats, Floats, float]:
        """A number's mean inside each bin, where it is a number, and by what part its distances are too small in bins."""
        j, columns = self.evidence.index(own), self.evidence.fine[own.side]
        (fine, half), there = columns.number(own.name), columns.there(own.name)
        unit, mass = self.evidence.units[j], np.maximum(self.evidence.counts(j), 1e-9) * there
        size = int(unit.bins.max()) + 1
        held = np.maximum(np.bincount(unit.bins, mass, minlength=size), 1e-12)
        mean = np.bincount(unit.bins, mass * fine, minlength=size) / held
        within = float(mass @ ((fine - mean[unit.bins]) ** 2 + half**2 / 3))
        spread = float(mass @ (mean[unit.bins] - (mass @ fine) / mass.sum()) ** 2)
        kept = spread / max(spread + within, 1e-12)
        if kept < KEPT:
            raise CannotAnswerError(
                f"the bins in which {own.name!r} was measured together with other columns keep {kept:.0%} of its variance, "
                f"and this needs {KEPT:.0%}. Ask for shares; more persons, a larger ε or a positive δ give finer bins."
            )
        number = self.evidence.folded(j, self.evidence.binned[own.side].there(own.name), own.name)
        return mean, number, 1 / kept - 1

    def _overall(self, own: Attribute) -> float:
        columns, j = self.evidence.fine[own.side], self.evidence.index(own)
        mass = np.maximum(self.evidence.counts(j), 0.0) * columns.there(own.name)
        return float(mass @ columns.number(own.name)[0] / max(mass.sum(), 1e-12))

    def _capped(self, answer: Answer) -> Answer:
        """An answer about events: those beyond the public limit were cut, and how many is not known here."""
        return replace(answer, method=f"{answer.method}; of a person's first {self.described.link.at_most} events")

    def _answer(
        self, question: str, asked: list[Scores], per: Per, wish: tuple[float, About], within: tuple[float, float]
    ) -> Answer:
        """The ratio that scores of one or two attributes ask for; where they are of events, of those that were kept."""
        found = self._ratio(question, asked, per, wish, within)
        return found if all(scores.attribute.side == 0 for scores in asked) else self._capped(found)

    def _ratio(
        self, question: str, asked: list[Scores], per: Per, wish: tuple[float, About], within: tuple[float, float]
    ) -> Answer:
        one, sides = asked[0], {scores.attribute.side for scores in asked}
        said_ = question if sides == {0} and per == "person" else f"{question} per {per}"
        if self._fine(per, len(asked)):
            entries, (top, bottom, half) = self.evidence.single(
                self.evidence.index(one.attribute), (one.top, one.bottom, one.half)
            )
            below: Floats | int = self.privacy.n if sides == {0} and (one.bottom == 1).all() else bottom
            held = np.maximum(entries.values, 0.0)
            hidden = float(held @ half) / max(float(held @ bottom), 1e-12)
            estimate = entries.ratio(top, below, self._sampled(wish[1]))
            open_ = np.array([hidden])
            estimate = replace(estimate, below=open_, above=open_)
            note = "measured" + "; wider where bins are cut" * (hidden > 0)
            return answers(estimate, [said_], check(wish[0]), wish[1], note, within)[0]
        if len(asked) == 1:
            table, number, left = self._weighed(one.attribute)
            both = table.flat(number, one.top), table.flat(number, one.bottom)
            return self._finish(said_, table.entries, both, left, wish, within)
        two = asked[1]
        table = self.evidence.table(self.evidence.index(one.attribute), self.evidence.index(two.attribute))
        top, bottom = table.flat(one.top, two.top), table.flat(one.bottom, two.bottom)
        everybody = sides == {0} and bool((bottom == 1).all())
        return self._finish(said_, table.entries, (top, self.privacy.n if everybody else bottom), None, wish, within)

    def _weighed(self, own: Attribute) -> tuple[Table, Floats, LeftOpen]:
        """The table of the number of events and an attribute; that number by bin; and what bins of it leave open."""
        table = self.evidence.table(COUNT, self.evidence.index(own))
        mean, low, high = self.evidence.weights
        safe, ones = np.where(mean > 0, mean, 1.0), np.ones(len(table.entries.values) // len(mean))
        least, most = (table.flat(np.where(mean > 0, end / safe, 1.0), ones) for end in (low, high))
        return table, mean, LeftOpen(least, most)

    def _finish(  # what is asked of which entries, and how its interval is wanted
        self,
        question: str,
        entries: Entries,
        sides: tuple[Floats, Floats | int],
        left: LeftOpen | None,
        wish: tuple[float, About],
        within: tuple[float, float] = (0.0, np.inf),
    ) -> Answer:
        """An estimate from entries, opened by what bins of the number of events hide."""
        top, bottom = sides
        estimate, note = entries.ratio(top, bottom, self._sampled(wish[1])), "measured"
        if left is not None:
            below, above = entries.reach(top, bottom, left)
            estimate = replace(estimate, below=np.array([below]), above=np.array([above]))
            note = "measured; of large numbers of events only ranges are known"
        return answers(estimate, [question], check(wish[0]), wish[1], note, within)[0]

    def _repr_html_(self) -> str:
        """For notebooks: what it is, and what to ask."""
        names = ", ".join(part.name for part in self.described.tables)
        facts = [
            ("Guarantee", str(self.privacy)),
            ("Tables", f"{names}: {self.parts.m:,} synthetic persons, of {self.privacy.n:,} confidential ones"),
            ("Ask", "share, mean, rate, wait: each answers with an interval, or says why it cannot"),
        ]
        return card("Release", "synthetic", facts)

    def __repr__(self) -> str:
        names = " and ".join(part.name for part in self.described.tables)
        return f"LinkedAnswers({self.parts.m} synthetic persons, {names}; {self.privacy})"


def _opened(estimate: Estimate, low: float, high: float) -> Estimate:
    """An estimate whose value may be anything between two bounds, besides its noise."""
    value = estimate.value[0]
    return replace(estimate, below=np.array([max(0.0, value - low)]), above=np.array([max(0.0, high - value)]))
