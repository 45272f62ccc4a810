"""A release in the hands of an analyst: rows, more rows, and answers with intervals. No true data is within reach."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any, Literal

import numpy as np

from covey.answers import notes, regression
from covey.answers import replicates as again
from covey.answers.answer import About, Answer, AnswerTable, answers
from covey.answers.bands import ReportBands
from covey.answers.columns import Columns, Conditions, named, said
from covey.answers.estimates import (
    Estimate,
    Function,
    correlation,
    delta,
    logistic,
    logistic_coefficients,
    paired_correlation,
    ratio,
)
from covey.answers.evidence import Evidence
from covey.answers.moments import Feature, Moments, Rows
from covey.answers.persons import Per, Persons, outer
from covey.answers.source import Source, streams_of
from covey.answers.steps import (
    LOST,
    Factor,
    LostInNoiseError,
    around,
    beside,
    by_group,
    check,
    first,
    keeps,
    possible,
    require_kept,
    require_varying,
    with_square,
    words,
)
from covey.answers.triples import share_of_three
from covey.core.arrays import Floats, Integers
from covey.entropy import Streams
from covey.errors import CannotAnswerError, ParameterError, whole_number
from covey.html import card

DRAWN = 20_000  # rows of the centres that variances are read off: right to about a hundredth
Z95 = 1.96  # of a normal law: half a 95% interval in deviations


@dataclass(frozen=True)
class Wanted:
    """How an answer is wanted: whether persons or events count equally, with which confidence, and about what."""

    per: Per
    confidence: float
    about: About


@dataclass(frozen=True)
class Release(Source):
    """A private release: `covey.load(folder)`, or `PrivateSynthesizer.release(m)`.

    Answers are about the population that the confidential table was drawn from, or with about="table" about that table itself.
    """

    runs: tuple[again.Replicate, ...] = ()  # of a release that was sharpened: what regressions are averaged with

    # What answers rest on.

    @cached_property
    def columns(self) -> Columns:
        """Columns by name; numbers have the units that they were measured in."""
        edges: dict[int, Integers] = {j: self.evidence.margins[j].edges for j in self.cells}
        shares = dict(enumerate(self.shares)) if self.measurements is not None else {}
        if not self.several:
            return Columns(self.codecs, edges, shares, self.privacy.left_out)
        shares = {j: own / max(float(own.sum()), 1e-12) for j, own in shares.items()}
        tables = tuple(None if part.bare else part.name for part in self.described.tables)
        return Columns(self.codecs, edges, shares, self.privacy.left_out, tables)

    @cached_property
    def events(self) -> Persons:
        """The measurements as sums over persons and their events."""
        if not self.several:
            raise ParameterError("this release has one table: there are no events of persons to ask about.")
        return Persons(self.evidence, self.columns, len(self.codec.names), self.described.link.at_most)

    @cached_property
    def evidence(self) -> Evidence:
        """The measurements, as shares and their noise."""
        if self.measurements is None:
            raise CannotAnswerError(
                f"this release keeps no measurements (it was made by covey {self.version}), so no honest interval can be given. "
                "Ask for a bundle that is written again, or by method 'regain'."
            )
        return Evidence(self.measurements)

    @cached_property
    def drawn(self) -> Rows:
        """Rows of codes from the model; the same each time. Of persons each with one of their events, -1 where there is none."""
        streams = Streams.from_seed(0).child("answers")
        return self.in_units(again.Mechanism(self).table(DRAWN, streams), streams)

    @cached_property
    def centres_rows(self) -> Rows:
        """Balanced rows of the centres, for averages with replicates."""
        return again.centres_rows(self, self.fitted, Streams.from_seed(0).child("sharper"))

    def in_units(self, codes: Any, streams: Streams) -> Rows:
        """Rows of codes by the units that numbers were measured in; of persons each with a random one of their events."""
        if self.several:
            counts, public = codes.counts, streams.postprocessing("one event")
            at = np.cumsum(counts) - counts + np.floor(public.random(len(counts)) * counts).astype(np.int64)
            some = codes.events[np.minimum(at, len(codes.events) - 1)]
            codes = np.column_stack([codes.persons, np.where(counts[:, None] > 0, some, -1)])
        units = codes.astype(np.int64)
        for j in self.cells:
            units[:, j] = np.searchsorted(self.evidence.margins[j].edges, units[:, j], side="right") - 1
        return Rows(units)

    @property
    def bands(self) -> ReportBands | None:
        """Error bands for the report."""
        return None if self.measurements is None else ReportBands(self)

    @property
    def flags(self) -> bool:
        """Whether every column has two categories."""
        return not self.several and self.numbers is None and self.codec.flags

    @cached_property
    def shares(self) -> list[Floats]:
        """The centres' one-way tables, of numbers their measures; of persons with events the measured ones."""
        if self.several:
            return [
                np.maximum(self.evidence.one_way(j), 0.0) for j in range(sum(len(codec.names) for codec in self.codecs))
            ]
        mean = self.centres.weights @ self.centres.points
        if self.flags:
            return [np.array([1 - m, m]) for m in mean]
        sizes = self.codec.domain_sizes if self.numbers is None else self.numbers.domain.sizes
        found = np.split(mean, np.cumsum(sizes)[:-1])
        if self.numbers is not None:
            for j, cells in self.numbers.cells.items():
                found[j] = cells.measure.mass(self.evidence.margins[j].edges)
        return found

    def sampled(self, about: About) -> float | None:
        """How many independent rows the table is a sample of; persons with up to k rows count as n/k, which is the worst case."""
        if about not in ("population", "table"):
            raise ParameterError(f"about must be 'population' or 'table', got {about!r}.")
        return self.privacy.n / self.privacy.budget.rows_per_person if about == "population" else None

    def moments(self, features: tuple[Feature, ...]) -> Moments:
        """Means and products of features."""
        return Moments(self.evidence, features, self.drawn, self.shares)

    # Answers.

    def share(  # how the answer is wanted comes after the question
        self,
        of: Conditions,
        given: Conditions | None = None,
        by: str | None = None,
        *,
        per: Per | None = None,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Any:
        """The proportion of rows that meet some conditions, among all or among those that meet `given`.

        Conditions: {"ward": "surgery"}, several categories as a list, a range (65, None), None for missing. With `by` a table, a
        row for each group; without conditions the proportion of each group itself. For events, per="person" is about a random
        event of a random person with events, per="event" about a random event of all.
        """
        wish, given = self.wish(per, confidence, about), named(given or {})
        if by is None:
            return self._share(named(of, 1), given, {}, wish)
        place = self.columns.place(by)
        return self._by_group(by, lambda mask: self._share(named(of), given, {place: mask}, wish))

    def _share(self, of: Conditions, given: Conditions, group: Mapping[int, Floats], wish: Wanted) -> Answer:
        top = self.columns.conditions(of) if of else dict(group)
        bottom = self._chosen(group if of else {}, given)
        for a, mask in bottom.items():
            top[a] = top.get(a, 1.0) * mask
            if not top[a].any():
                raise ParameterError(f"no row meets both {said(of)} and {said(given)}.")
        question = " ".join(["share", *([said(of)] if of else []), *(["given", said(given)] if given else [])])
        estimate = self._ratio(top, bottom, wish)
        note = notes.together(*(notes.of_conditions(self.columns, side) for side in (of, given) if side))
        return self._answer(question, estimate, (top, bottom), wish, (0.0, 1.0), note)

    def mean(  # how the answer is wanted comes after the question
        self,
        column: str,
        by: str | None = None,
        where: Conditions | None = None,
        *,
        per: Per | None = None,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Any:
        """The mean of a number or flag, over rows that have it; with `by` a table, a row for each group. `per` as for shares."""
        wish, where = self.wish(per, confidence, about), named(where or {})
        mean = self._mean_of_persons if self.several else self._mean
        if by is None:
            return mean(column, {}, where, wish)
        place = self.columns.place(by)
        if self.several and place == self.columns.place(column):
            raise ParameterError(f"{column!r} cannot be its own groups: group by another column.")
        return self._by_group(by, lambda mask: mean(column, {place: mask}, where, wish))

    def _by_group(self, by: str, ask: Callable[[Floats], Answer]) -> AnswerTable:
        groups = self.columns.groups(by, self.evidence.bins(self.columns.place(by)))
        return by_group(by, groups, ask, lambda mask: notes.together(notes.of_column(self.columns, by, mask)))

    def _chosen(self, group: Mapping[int, Floats], where: Conditions) -> dict[int, Floats]:
        """The units of each attribute that belong to a group and meet conditions."""
        chosen = dict(group)
        for a, mask in (self.columns.conditions(where) if where else {}).items():
            chosen[a] = chosen.get(a, 1.0) * mask
        return chosen

    def _mean(self, column: str, group: Mapping[int, Floats], where: Conditions, wish: Wanted) -> Answer:
        scores, half = self.columns.number(column)
        there, place = self.columns.there(column), self.columns.place(column)
        chosen = self._chosen(group, where)
        own, bounded = chosen.pop(place, 1.0), False
        if chosen:
            feature, _ = self.number_feature(column)
            both = self.moments((feature, *(Feature(a, m, condition=True) for a, m in chosen.items())))
            bounded = not keeps(both, 0) and all(both.constant(i) for i in range(1, len(both.features)))
            if not bounded:
                require_kept(both, [0], self.columns.names)
        top, bottom = {place: scores * own, **chosen}, {place: there * own, **chosen}
        estimate = self._ratio(top, bottom, wish, Factor(place, bounded))
        meant, law = there * own, self.shares[place] * there * own
        seen = np.maximum(law, self.evidence.one_way(place) * meant)  # noise too may lie anywhere in a wide range
        hidden = float(seen @ half) / max(float(law.sum()), 1e-9)
        estimate = replace(estimate, below=estimate.below + hidden, above=estimate.above + hidden)
        ends = float(np.min((scores - half)[meant > 0])), float(np.max((scores + half)[meant > 0]))
        if chosen:  # no group is younger than as many of the youngest
            base = self._ratio(bottom, {}, replace(wish, about="table"))
            found = possible(self.moments((Feature(place, scores),)), half, meant, base, self.sampled(wish.about))
            ends = max(ends[0], found[0]), min(ends[1], found[1])
        elif place in self.cells and law.any():
            estimate = around(estimate, float(law @ scores / law.sum()), wish.confidence)
        question = f"mean {column}" + (f" where {said(where)}" if where else "")
        method = f": of where {column!r} lies inside them only bounds are known" * bounded
        limits = notes.of_column(self.columns, column, there * own)
        note = notes.together(limits, notes.of_conditions(self.columns, where, but=column))
        return self._answer(question, estimate, (top, bottom), wish, ends, note, method)

    def _mean_of_persons(self, column: str, group: Mapping[int, Floats], where: Conditions, wish: Wanted) -> Answer:
        chosen = self._chosen(group, where)
        estimate, ends, wide = self.events.mean(column, chosen, wish.per, wish.about == "population")
        question = f"mean {column}" + (f" where {said(where)}" if where else "")
        limits = notes.of_column(self.columns, column)
        note = notes.together(limits, notes.of_conditions(self.columns, where, but=column))
        among = dict.fromkeys([self.columns.place(column), *chosen])
        answer = self._answer(question, estimate, (among, {}), wish, ends, note)
        if not wide:
            return answer
        more = (
            abs(answer.value - self.events.overall(column)) * wide
        )  # bins hide a part of how far a group lies from all
        se = float(np.hypot(answer.se, more / 2))
        return replace(answer, low=answer.low - more, high=answer.high + more, se=se)

    def rate(
        self,
        of: Conditions | None = None,
        by: str | None = None,
        *,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Any:
        """How many events a person has on average, all or those that meet one condition; with `by` for groups of persons."""
        persons, wish = self.events, self.wish(None, confidence, about)
        sampled, question = about == "population", f"rate{' ' + said(named(of)) if of else ''}"

        def answer(estimate: Estimate, note: str = "") -> Answer:
            return self._answer(question, estimate, ({persons.first: 0.0}, {}), wish, (0.0, np.inf), note, per="")

        if of:
            chosen = self.columns.conditions(of)
            if by is not None or len(chosen) > 1 or not persons.of_event(next(iter(chosen))):
                raise CannotAnswerError(
                    "a rate is one of all events, with groups of persons, or of the events that meet one condition: three things "
                    "at once were not measured. Compute others from the rows, without an interval."
                )
            ((place, mask),) = chosen.items()
            entries, number = persons.weighed(place)
            note = notes.together(notes.of_conditions(self.columns, of))
            return answer(entries.ratio(outer(number, persons.folded(place, mask)), None, sampled), note)
        if by is None:
            entries = persons.alone(persons.count)
            return answer(entries.ratio(np.arange(len(entries.values), dtype=np.float64), None, sampled))
        place = self.columns.place(by)
        if persons.of_event(place):
            raise ParameterError(f"{by!r} is a column of events: ask for rate {by}=…, or group by a column of persons.")
        entries, number = persons.weighed(place)

        def ask(mask: Floats) -> Answer:
            top, bottom = (outer(each, persons.folded(place, mask)) for each in (number, np.ones(len(number))))
            return answer(entries.ratio(top, bottom, sampled, moved=False))

        return self._by_group(by, ask)

    def wait(self, *, confidence: float = 0.95, about: About = "population") -> Answer:
        """The mean time from an event to the person's next one, in units of the order column (days for dates).

        With gaps it was measured itself. Otherwise dates were measured in bins, two events at a time: inside them only bounds are
        known, and the interval holds these.
        """
        persons, wish = self.events, self.wish(None, confidence, about)
        if self.described.link.gaps:
            answer: Answer = self.mean("gap", confidence=confidence, about=about)
            return replace(answer, question="wait")
        order = self.described.link.order
        if order is None or self.described.link.numbered:
            raise CannotAnswerError(
                "the package names no column of times as order, so there is no time between events."
            )
        place = self.columns.place(f"{self.described.events.name}.{order}")
        scale = self.columns.scale(self.columns.called[place])
        if scale is None or scale.first or scale.words or not self.columns.field(self.columns.called[place]).required:
            raise CannotAnswerError(f"{order!r} has values apart: no time between events can be told from them.")
        estimate = persons.wait(place, scale, about == "population")
        unit = "days" if scale.grid.field.type == "date" else "its own units"
        words_ = f", in bins of {order!r}; of where events lie inside them only bounds are known; in {unit}"
        return self._answer("wait", estimate, ({place: 0.0}, {}), wish, (0.0, np.inf), "", words_, per="")

    def quantile(  # how the answer is wanted comes after the question
        self,
        column: str,
        q: float,
        where: Conditions | None = None,
        *,
        per: Per | None = None,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Answer:
        """A quantile of a number, to the bins it was measured in: the interval ends at their edges. `per` as for shares."""
        if not isinstance(q, Real):
            raise ParameterError(f"q must be one number between 0 and 1, got {q!r}. Ask once for each.")
        if not 0 < q < 1:
            raise ParameterError(f"q must lie between 0 and 1, got {q!r}.")
        wish = self.wish(per, confidence, about)
        scores, half = self.columns.number(column)
        there, place = self.columns.there(column), self.columns.place(column)
        chosen = self.columns.conditions(where) if where else {}
        own = there * chosen.pop(place, 1.0)
        order = [np.array([k]) for k in np.flatnonzero(own)]
        if self.several and not self.events.by_units(
            [place, *chosen], wish.per
        ):  # beside another column bins are whole
            bins = self.evidence.bins(place)
            order = [members for k in range(bins.max() + 1) if own[members := np.flatnonzero(bins == k)].any()]
        if not order:
            raise ParameterError(f"no value of {column!r} meets the condition.")

        def ends(k: int) -> tuple[float, float, float]:
            """The share at or below the k-th bin, at most, as estimated, and at least."""
            upto, at = np.zeros(len(scores)), np.concatenate(order[: k + 1])
            upto[at] = own[at]
            found = self._ratio({place: upto, **chosen}, {place: own, **chosen}, wish)
            half_width, value = float(found.half(wish.confidence)[0]), float(found.value[0])
            return value + float(found.above[0]) + half_width, value, value - float(found.below[0]) - half_width

        def reached(end: int, k: int) -> bool:
            return ends(k)[end] >= q

        low, value, high = (order[first(partial(reached, end), len(order))] for end in range(3))
        middle = scores[value[0]] if len(value) == 1 else ((scores - half)[value[0]] + (scores + half)[value[-1]]) / 2
        shown = float(middle), float((scores - half)[low[0]]), float((scores + half)[high[-1]])
        question = f"quantile {q:g} {column}" + (f" where {said(where)}" if where else "")
        se = float((shown[2] - shown[1]) / 2 / Z95)
        at_ends = np.zeros(len(scores))
        at_ends[np.concatenate([low, value, high])] = (
            1.0  # inside the limits it does not move with what lies beyond them
        )
        limits = notes.of_column(self.columns, column, at_ends)
        note = notes.together(limits, notes.of_conditions(self.columns, where, but=column))
        answer = Answer(question, *shown, se, wish.confidence, about, "measured, to bins", note)
        return self._of_persons(answer, (place, *chosen), wish.per)

    def correlation(self, x: str, y: str, *, confidence: float = 0.95, about: About = "population") -> Answer:
        """Pearson's correlation of two numbers or flags, over rows that have both."""
        if self.columns.place(x) == self.columns.place(y):
            raise ParameterError("a correlation needs two different columns.")
        parts = [self.number_feature(name) for name in (x, y)]
        if all(there.all() and not self.partial(feature.attribute) for feature, there in parts):
            moments = self.moments(tuple(feature for feature, _ in parts))
            function = correlation
        else:
            moments, function = (
                self.moments(tuple(f for part in parts for f in with_square(*part))),
                paired_correlation,
            )
        require_kept(moments, [0, len(moments.features) // 2], self.columns.names)
        require_varying(moments, function, (x, y))
        estimate = delta(moments, function, self.sampled(about))
        question, note = f"correlation {x} {y}", notes.together(*(notes.of_column(self.columns, own) for own in (x, y)))
        found = answers(estimate, [question], check(confidence), about, words(estimate), (-1.0, 1.0), note)[0]
        return self._of_persons(found, [feature.attribute for feature, _ in parts], "person")

    def regress(
        self, formula: str, family: str = "linear", *, confidence: float = 0.95, about: About = "population"
    ) -> AnswerTable:
        """Coefficients of "cost ~ age + ward": categories are compared with their most common group.

        family: "linear" for least squares, "logistic" for a flag as outcome.
        """
        model = regression.read(formula, family, self)
        estimate = regression.fit(model, self, about)
        questions = [f"regress {formula}: {term}" for term in model.terms]
        note = notes.together(*(notes.of_column(self.columns, *own) for own in model.picked))
        found = answers(estimate, questions, check(confidence), about, words(estimate, model.note), note=note)
        places = [feature.attribute for feature in model.features]
        return AnswerTable(tuple(self._of_persons(one, places, "person") for one in found), model.terms, "term")

    def logistic(self, formula: str, *, confidence: float = 0.95, about: About = "population") -> AnswerTable:
        """Coefficients of a logistic regression: `regress` with a flag, or one category, as outcome."""
        return self.regress(formula, "logistic", confidence=confidence, about=about)

    def interval(  # the function, and how its interval is wanted
        self,
        function: Callable[[Any], float],
        replicates: int = 16,
        *,
        confidence: float = 0.95,
        about: About = "population",
        library: str = "polars",
        seed: int | None = None,
    ) -> Answer:
        """An approximate interval for any function of a frame, by running the mechanism again on tables of the centres.

        Of persons with events the function takes frames by the names of their tables. It takes as long as so many fits. Smooth
        functions are covered nearly as often as it says; a model's score may not be.
        """
        self.sampled(about)
        mechanism, streams = again.Mechanism(self, library), streams_of(seed)
        found = again.interval(mechanism, function, replicates, check(confidence), about, streams)
        return replace(found, note=notes.together(notes.of_all(self.columns)))

    def sharpened(self, replicates: int = 8, *, seed: int | None = None) -> Release:
        """The same release with shorter intervals for regressions: averaged with the centres' answer, so approximate.

        It takes as long as so many fits; then every question is answered at once.
        """
        return again.sharpened(self, replicates, streams_of(seed))

    def replicates(self, count: int, *, library: str = "polars", seed: int | None = None) -> list[again.Replicate]:
        """Tables drawn from the centres, each with the synthetic rows of a release of it: for studies of one's own."""
        mechanism = again.Mechanism(self, library)
        return mechanism.runs(whole_number(count, "replicates", 1), streams_of(seed), mechanism.again)

    # Steps.

    def wish(self, per: Per | None, confidence: float, about: About) -> Wanted:
        """How an answer is wanted, checked."""
        self.sampled(about)
        if per not in (None, "person", "event") or (per is not None and not self.several):
            one = "" if self.several else " and needs persons with events: this release has one table"
            raise ParameterError(f"per must be 'person' or 'event'{one}, got {per!r}.")
        return Wanted(per or "person", check(confidence), about)

    def partial(self, attribute: int) -> bool:
        """Whether some persons have no value of an attribute, because they have no events."""
        return self.several and self.events.of_event(attribute)

    def _answer(  # what is answered, from what, and how it is wanted
        self,
        question: str,
        estimate: Estimate,
        sides: tuple[Mapping[int, Any], Mapping[int, Any]],
        wish: Wanted,
        within: tuple[float, float],
        note: str,
        more: str = "",
        per: Per | Literal[""] | None = None,
    ) -> Answer:
        """One answer; of a single table with a word where its synthetic rows say something else."""
        method = words(estimate) + more
        found = answers(estimate, [question], wish.confidence, wish.about, method, within, note)[0]
        if self.several:
            return self._of_persons(found, [*sides[0]], wish.per if per is None else per)
        return beside(found, *self.drawn.ratio(*sides))

    def _of_persons(self, answer: Answer, attributes: Sequence[int], per: Per | Literal[""]) -> Answer:
        """An answer that says whether persons or events count equally, and that events beyond the public limit were cut."""
        if not self.several:
            return answer
        of_events = any(map(self.partial, attributes))
        question = f"{answer.question} per {per}" if per and (of_events or per == "event") else answer.question
        cut = f"; of a person's first {self.described.link.at_most} events" * of_events
        return replace(answer, question=question, method=answer.method + cut)

    def _ratio(
        self, top: Mapping[int, Floats], bottom: Mapping[int, Floats], wish: Wanted, number: Factor | None = None
    ) -> Estimate:
        """The mean of a product of scores, one factor an attribute, over that of another; `number` is a factor with values."""
        about = wish.about
        if self.several:
            return self.events.ratio(top, bottom, wish.per, about == "population")
        attributes = sorted({*top, *bottom})
        if len(attributes) > 2:
            estimate, base = share_of_three(self, tuple(attributes), (top, bottom), self.sampled(about))
            self._require_seen(base, bottom, number)
            return estimate
        features: list[Feature] = []
        places: list[tuple[int, ...]] = []
        for side in (top, bottom):
            places.append(tuple(range(len(features), len(features) + len(side))))
            for a, scores in side.items():
                value = (
                    side is top and number is not None and a == number.place and not np.isin(scores, (0.0, 1.0)).all()
                )
                bounded = value and number is not None and number.bounded
                features.append(Feature(a, np.asarray(scores, dtype=np.float64), condition=not value, bounded=bounded))
        moments = self.moments(tuple(features))
        if bottom:
            self._require_seen(delta(moments, ratio(places[1], ()), None), bottom, number)
        return delta(moments, ratio(*places), self.sampled(about))

    def _require_seen(self, base: Estimate, bottom: Mapping[int, Floats], number: Factor | None) -> None:
        """Refuse a group that is lost in the noise; the columns that form it are named, not the one that is averaged."""
        share, least = float(base.value[0]), LOST * float(np.sqrt(base.variance[0]))
        if bottom and share <= least:
            form = [a for a in bottom if number is None or a != number.place] or list(bottom)
            names = " and ".join(repr(self.columns.names[a]) for a in form)
            raise LostInNoiseError(
                f"the rows meant by {names} are too few: about {max(share, 0.0):.2%} of all, and below {least:.2%} they are lost "
                "in the noise."
            )

    def fit_linear(self, moments: Moments, function: Function, about: About) -> Estimate:
        """Coefficients of least squares, a function of moments, with their errors."""

        def of(rows: Rows) -> Floats:
            F = rows.columns(moments.features)
            inside = [0.0 if f.within is None else float(self.shares[f.attribute] @ f.within) for f in moments.features]
            second = F.T @ F / len(F) + np.diag(inside)
            return np.atleast_1d(function(F.mean(axis=0).astype(complex), second.astype(complex)).real)

        own = delta(moments, function, self.sampled(about))
        return again.averaged(self, own, of, about) if self.runs else own

    def fit_logistic(self, moments: Moments, about: About) -> Estimate:
        """Coefficients of a logistic regression, with their errors."""

        def of(rows: Rows) -> Floats:
            return logistic_coefficients(rows.columns(moments.features))

        own = logistic(moments, self.sampled(about))
        return again.averaged(self, own, of, about) if self.runs else own

    def number_feature(self, name: str) -> tuple[Feature, Floats]:
        """A number as a feature, 0 where it is missing, and where it is there."""
        scores, half = self.columns.number(name)
        within = half**2 / 3 if half.any() else None
        return Feature(self.columns.place(name), scores, within), self.columns.there(name)

    def _repr_html_(self) -> str:
        """For notebooks: what it is, and what to ask."""
        names, more = [name for name, _ in self.described.fields], ", rate, wait" if self.several else ""
        facts = [
            ("Guarantee", str(self.privacy)),
            (
                "Persons" if self.several else "Rows",
                f"{self.parts.m:,} synthetic, of {self.privacy.n:,} confidential {self.privacy.budget.counted}",
            ),
            ("Columns", ", ".join(names[:8]) + (" …" if len(names) > 8 else "")),
            ("Ask", f"share, mean, quantile, correlation, regress{more}: each answers with an interval"),
        ]
        return card("Release", "synthetic", facts)

    def __repr__(self) -> str:
        counted, width = "persons" if self.several else "rows", len(self.described.fields)
        return f"Release({self.parts.m} synthetic {counted}, {width} columns; {self.privacy})"
