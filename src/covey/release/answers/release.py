"""A release in the hands of an analyst: rows, more rows, and answers with intervals. No true data is within reach."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import starmap
from numbers import Real
from typing import Any

import numpy as np

from covey.engine.arrays import Floats, Integers, require_memory
from covey.engine.certificate import Distances
from covey.engine.entropy import Streams
from covey.errors import CannotAnswerError, ParameterError, briefly, counted, whole_number
from covey.markup import card
from covey.release.answers import asking, follows, quantiles, regression
from covey.release.answers import replicates as again
from covey.release.answers.answer import (
    About,
    Answer,
    AnswerTable,
    Per,
    Wanted,
    answers,
    checked,
    in_library,
    questions,
    shown,
)
from covey.release.answers.bands import ReportBands
from covey.release.answers.columns import Columns, Conditions, named, said, together
from covey.release.answers.estimates import (
    LOST,
    Estimate,
    Feature,
    LostInNoiseError,
    Moments,
    Rows,
    Scores,
    delta,
    keeps,
    mean_wait,
    possible,
    ratio,
    ratio_of_cells,
    require_kept,
)
from covey.release.answers.evidence import Evidence
from covey.release.conditional import draw_rows
from covey.release.contents import Bounds, PrivateRelease
from covey.release.drawing import Drawn, MakePersons, draw_persons
from covey.release.model import NUMBER
from covey.tables.codec import Codec
from covey.tables.reading import Reader
from covey.tables.sources import joined

CELL = 8  # bytes of a drawn cell, at least
DRAWN = 20_000  # rows of the centres that variances are read off: right to about a hundredth
MANY = "; of large numbers of events only ranges are known"


@questions
@dataclass(frozen=True)
class Release(PrivateRelease):
    """A private release: `covey.load(folder)`, or `PrivateSynthesizer.release(m)`.

    Answers are about the population that the confidential table was drawn from, or with about="table" about that table itself.
    """

    @property
    def several(self) -> bool:
        """Whether it is of persons with events: then rows are frames by the names of their tables."""
        return self.described.schema is None

    @property
    def codec(self) -> Codec:
        """How the columns of the first table are categories."""
        return self.described.codecs[0]

    # Rows.

    def rows(self, library: str = "polars") -> Any:
        """The synthetic rows as a polars, pandas or arrow frame; of several tables frames by name."""
        return self._frames(list(self.parts), library)

    def sample(
        self, m: int, where: Conditions | None = None, *, library: str = "polars", seed: int | None = None
    ) -> Any:
        """More synthetic rows, or persons with their events, at no cost; also those that meet conditions.

        Conditions are given as `share` takes them; of persons with events they are about the persons.
        """
        drawn = self.draw(m, where, seed)
        cells = sum(len(part.schema.names) for part in self.described.tables)
        require_memory(CELL * m * cells, f"a sample of {briefly(m)} rows", "Draw fewer rows at a time, or use draw(m).")
        return self._frames(list(drawn), library)

    def draw(self, m: int, where: Conditions | None = None, seed: int | None = None) -> Iterable[Any]:
        """The same as columns, part by part, so that there may be more than the memory holds."""
        m, streams = whole_number(m, "m", 1, "It counts the synthetic rows, or persons."), Streams.of(seed)
        columns, where = Columns(self.described), named(where or {})
        if not self.several:
            return draw_rows(self.codec, self.row_law, m, columns.wishes(where), streams)
        for name in where:
            if columns.place(name) >= len(self.codec.names):
                raise CannotAnswerError(
                    f"{name!r} is a column of events, of which a person has several: some or all of them may meet a condition. "
                    f"Persons are drawn by columns of {self.described.unit.name}."
                )
        make = MakePersons(self.described, self.persons)
        return draw_persons(make, m, columns.wishes(where), streams) if where else Drawn(m, make, streams)

    def _frames(self, parts: list[Any], library: str) -> Any:
        if not self.several:
            return in_library(joined(parts), library)
        names = [part.name for part in self.described.tables]
        return {name: in_library(joined([both[j] for both in parts]), library) for j, name in enumerate(names)}

    def certified(self, tables: Sequence[Mapping[str, Any]]) -> Bounds:
        """The certificate for these very tables, if they are all persons that there are."""
        found = self.certificate
        if self.own is not None or found is None or self.persons.reference is None or self.parts.m > MakePersons.size:
            return self.own
        if not len(tables[1][self.described.events.link]):
            return Distances(dict.fromkeys(found.bound, 1.0))  # nothing to compare, and nothing to claim
        named = {part.name: own for part, own in zip(self.described.tables, tables, strict=True)}
        drawn, _ = Reader(self.described.plain()).open(named)
        return found.for_table(self.persons.distances(drawn))

    # What answers rest on.

    @cached_property
    def columns(self) -> Columns:
        """Columns by name; numbers have the units that they were measured in."""
        edges: dict[int, Integers] = {j: self.evidence.margins[j].edges for j in self.cells}
        shares = [] if self.measurements is None else self.shares
        among = {j: own / max(float(own.sum()), 1e-12) for j, own in enumerate(shares)}  # of persons those with events
        return Columns(self.described, edges, among, self.privacy.left_out)

    @cached_property
    def events(self) -> dict[int, Floats]:
        """The attribute "number of events" of persons, which comes last, and its values; nothing of a single table."""
        return {self.evidence.found.width - 1: np.arange(self.described.link.at_most + 1.0)} if self.several else {}

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
        return again.in_units(self, again.Mechanism(self).table(DRAWN, streams), streams)

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
            return [np.maximum(self.evidence.one_way(j), 0.0) for j in range(self.evidence.found.width)]
        mean = self.row_law.cloud.weights @ self.row_law.cloud.points
        if self.flags:
            return [np.array([1 - m, m]) for m in mean]
        sizes = self.codec.domain_sizes if self.numbers is None else self.numbers.domain.sizes
        found = np.split(mean, np.cumsum(sizes)[:-1])
        for j, cells in self.cells.items():
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

    def ask(self, question: str, *, confidence: float = 0.95, about: About = "population") -> Any:
        """The answer to a question in words, as `covey ask` takes them: "average age by ward", "top 5 ward"."""
        return asking.ask(self, question, confidence=confidence, about=about)

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
        wish, of, given = self.wish(per, confidence, about), named(of, int(by is None)), named(given or {})
        return self._by_group(by, lambda group: self._share(of, given, group, wish))

    def _share(self, of: Conditions, given: Conditions, group: Mapping[int, Floats], wish: Wanted) -> Answer:
        top = self._chosen({}, of) or dict(group)
        bottom = self._chosen(group if of else {}, given)
        for a, mask in bottom.items():
            top[a] = top.get(a, 1.0) * mask
            if not group and not top[a].any():
                raise ParameterError(f"no row meets both {said(of)} and {said(given)}.")
        question = " ".join(["share", *([said(of)] if of else []), *(["given", said(given)] if given else [])])
        estimate = self.ratio_of(top, bottom, wish)
        note = together(self.columns.notes_of(of), self.columns.notes_of(given))
        return self._answer(question, estimate, (top, bottom), wish, (0.0, 1.0), note)

    def count(self, of: Conditions, by: str | None = None, *, confidence: float = 0.95) -> Any:
        """How many rows of the confidential table, or persons, or events, meet some conditions; n must be public.

        With `by` a table: how many of each group meet them, or are in it if there are none. One column of events counts events.
        """
        budget, of = self.privacy.budget, named(of, int(by is None))
        places = {*map(self.columns.place, of), *([] if by is None else [self.columns.place(by)])}
        events = any(map(self.partial, places))
        if budget.persons and not self.several:
            raise CannotAnswerError("rows of persons cannot be counted. Ask for a share.")
        if budget.size_is_secret:
            raise CannotAnswerError(f"the number of {budget.counted} is secret in this release. Ask for a share.")
        if events and len(places) > 1:
            raise CannotAnswerError(
                "events can be counted by conditions on one of their columns alone: with another column and the number of events "
                "that is three things at once, and two were measured. Ask for a share per person."
            )
        wish = replace(self.wish(None, confidence, "table"), per="", times=self.privacy.n)
        chosen, most = self.columns.conditions(of), np.inf if events else self.privacy.n
        question, note = " ".join(["count", *([said(of)] if of else [])]), together(self.columns.notes_of(of))

        def ask(group: Mapping[int, Floats]) -> Answer:
            both = chosen | {a: mask * chosen.get(a, 1.0) for a, mask in group.items()}
            top = {**self.events, **both} if events else both
            return self._answer(question, self._quotient(top, {}, None), (top, {}), wish, (0.0, most), note)

        return self._by_group(by, ask)

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
        return self._by_group(by, lambda group: self._mean(column, group, where, wish))

    def _by_group(self, by: str | None, ask: Callable[[dict[int, Floats]], Answer]) -> Answer | AnswerTable:
        """One answer for each group, by its mask: an interval with what is to be said of the group, or why there is none."""
        if by is None:
            return ask({})
        place, found = self.columns.place(by), list[Answer | str]()
        groups = self.columns.groups(by, self.evidence.bins(place))
        for _, mask in groups:
            try:
                answer = ask({place: mask})
                found.append(replace(answer, note=together([answer.note], self.columns.notes(by, mask))))
            except LostInNoiseError as error:
                found.append(str(error))
        some = next((one for one in found if isinstance(one, Answer)), None)
        if some is None:
            raise CannotAnswerError(f"every group of {by!r} is lost in the noise: {found[0]}")
        rows = []
        for (label, _), one in zip(groups, found, strict=True):
            question = f"{some.question} in {by}={label}"
            lost = replace(some, value=np.nan, low=np.nan, high=np.nan, se=np.nan, method="not answered", note=str(one))
            rows.append(replace(lost if isinstance(one, str) else one, question=question))
        return AnswerTable(tuple(rows), tuple(label for label, _ in groups), by)

    def _chosen(self, group: Mapping[int, Floats], where: Conditions) -> dict[int, Floats]:
        """The units of each attribute that belong to a group and meet conditions."""
        chosen = self.columns.conditions(where)
        return chosen | {a: mask * chosen.get(a, 1.0) for a, mask in group.items()}

    def _mean(self, column: str, group: Mapping[int, Floats], where: Conditions, wish: Wanted) -> Answer:
        whole = follows.sum_of(self.columns, column)
        if whole is not None:
            return follows.mean(self, column, (whole, self._chosen(group, where)), where, wish)
        scores, half = self.columns.number(column)
        there, place, chosen = self.columns.there(column), self.columns.place(column), self._chosen(group, where)
        question = f"mean {column}" + (f" where {said(where)}" if where else "")
        meant = there * chosen.get(place, 1.0)
        note = together(self.columns.notes(column, meant), self.columns.notes_of(where, but=column))
        own, bounded, weights = chosen.pop(place, 1.0), False, self.weights(wish)
        if chosen or weights:
            feature, _ = self.number_feature(column)
            others = [*(Feature(a, m, condition=True) for a, m in chosen.items()), *starmap(Feature, weights.items())]
            both = self.moments((feature, *others))
            bounded = not keeps(both, 0) and all(both.constant(i) for i in range(1, len(both.features)))
            if not bounded:
                require_kept(both, [0], [*self.columns.names, NUMBER])
        top, bottom = {place: scores * own, **chosen}, {place: meant, **chosen}
        estimate = self.ratio_of(top, bottom, wish, place, bounded)
        law = self.shares[place] * meant
        seen = np.maximum(law, self.evidence.one_way(place) * meant)  # noise too may lie anywhere in a wide range
        hidden = float(seen @ half) / max(float(law.sum()), 1e-9)
        estimate = replace(estimate, below=estimate.below + hidden, above=estimate.above + hidden)
        ends = float(np.min((scores - half)[meant > 0])), float(np.max((scores + half)[meant > 0]))
        if chosen:  # no group is younger than as many of the youngest
            base = self._quotient(bottom, {}, None)
            found = possible(self.moments((Feature(place, scores),)), half, meant, base, self.sampled(wish.about))
            ends = max(ends[0], found[0]), min(ends[1], found[1])
        elif place in self.cells and law.any() and not weights:
            estimate = estimate.around(float(law @ scores / law.sum()), wish.confidence)
        method = f": of where {column!r} lies inside them only bounds are known" * bounded
        return self._answer(question, estimate, (top, bottom), wish, ends, note, method)

    def rate(
        self,
        of: Conditions | None = None,
        by: str | None = None,
        *,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Any:
        """How many events a person has on average, all or those that meet one condition; with `by` for groups of persons."""
        wish = self._of_events(confidence, about)
        chosen = self.columns.conditions(of or {})
        if of and (by is not None or len(chosen) > 1 or not self.partial(next(iter(chosen)))):
            raise CannotAnswerError(
                "a rate is one of all events, with groups of persons, or of the events that meet one condition: three things "
                "at once were not measured. Compute others from the rows, without an interval."
            )
        if by is not None and self.partial(self.columns.place(by)):
            raise ParameterError(f"{by!r} is a column of events: ask for rate {by}=…, or group by a column of persons.")

        def ask(group: dict[int, Floats]) -> Answer:
            estimate = self._quotient(self.events | (group or chosen), group, self.sampled(about))
            question, note = f"rate{' ' + said(of) if of else ''}", together(self.columns.notes_of(of))
            return self._answer(question, estimate, (self.events, {}), wish, (0.0, np.inf), note)

        return self._by_group(by, ask)

    def wait(self, *, confidence: float = 0.95, about: About = "population") -> Answer:
        """The mean time from an event to the person's next one, in units of the order column (days for dates).

        With gaps it was measured itself. Otherwise dates were measured in bins, two events at a time: inside them only bounds are
        known, and the interval holds these.
        """
        wish = self._of_events(confidence, about)
        if self.described.link.gaps:
            answer: Answer = self.mean("gap", confidence=confidence, about=about)
            return replace(answer, question="wait")
        order, name = self.described.link.order, f"{self.described.events.name}.{self.described.link.order}"
        if order is None or self.described.link.numbered:
            raise CannotAnswerError(
                "the package names no column of times as order, so there is no time between events."
            )
        place, scale = self.columns.place(name), self.columns.scale(name)
        if scale is None or scale.first or scale.words or not self.columns.field(name).required:
            raise CannotAnswerError(f"{order!r} has values apart: no time between events can be told from them.")
        ends = scale.starts / scale.grid.scale, scale.ends / scale.grid.scale
        estimate = mean_wait(self.evidence, place, ends, self.sampled(about))
        unit = "days" if scale.grid.field.type == "date" else "its own units"
        how = f", in bins of {order!r}; of where events lie inside them only bounds are known; in {unit}"
        return self._answer("wait", estimate, (self.events, {}), wish, (0.0, np.inf), "", how)

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
        if not isinstance(q, Real) or not 0 < q < 1:
            raise ParameterError(f"q must be one number between 0 and 1, got {briefly(q)}. Ask once for each.")
        return quantiles.quantile(self, column, float(q), where or {}, self.wish(per, confidence, about))

    def correlation(self, x: str, y: str, *, confidence: float = 0.95, about: About = "population") -> Answer:
        """Pearson's correlation of two numbers or flags, over rows that have both."""
        if self.columns.declared(x) is not None and self.columns.declared(x) == self.columns.declared(y):
            raise ParameterError("a correlation needs two different columns.")
        estimate = regression.correlate(self, x, y, about)
        plain = [name for name in (x, y) if follows.sum_of(self.columns, name) is None]
        question, note = f"correlation {x} {y}", together(*map(self.columns.notes, plain))
        found = answers(estimate, [question], checked(confidence), about, estimate.words(), (-1.0, 1.0), note)[0]
        return self.of_persons(found, [self.columns.place(name) for name in plain], "person")

    def regress(
        self, formula: str, family: str = "linear", *, confidence: float = 0.95, about: About = "population"
    ) -> AnswerTable:
        """Coefficients of "cost ~ age + ward": categories are compared with their most common group.

        family: "linear" for least squares, "logistic" for a flag as outcome.
        """
        model = regression.read(formula, family, self)
        estimate = regression.fit(model, self, about)
        questions = [f"regress {formula}: {term}" for term in model.terms]
        note = together(*(self.columns.notes(*own) for own in model.picked))
        found = answers(estimate, questions, checked(confidence), about, estimate.words(model.note), note=note)
        places = [feature.attribute for feature in model.features]
        return AnswerTable(tuple(self.of_persons(one, places, "person") for one in found), model.terms, "term")

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
        mechanism, streams = again.Mechanism(self, library), Streams.of(seed)
        found = again.interval(mechanism, function, replicates, checked(confidence), about, streams)
        return replace(found, note=together(self.columns.notes_of_all()))

    def replicates(self, count: int, *, library: str = "polars", seed: int | None = None) -> list[again.Replicate]:
        """Tables drawn from the centres, each with the synthetic rows of a release of it: for studies of one's own."""
        mechanism = again.Mechanism(self, library)
        return mechanism.runs(whole_number(count, "replicates", 1), Streams.of(seed), mechanism.again)

    # Steps.

    def wish(self, per: Per | None, confidence: float, about: About) -> Wanted:
        """How an answer is wanted, checked."""
        self.sampled(about)
        if per not in (None, "person", "event") or (per is not None and not self.several):
            one = "" if self.several else " and needs persons with events: this release has one table"
            raise ParameterError(f"per must be 'person' or 'event'{one}, got {per!r}.")
        return Wanted(per or "person", checked(confidence), about)

    def partial(self, attribute: int) -> bool:
        """Whether some persons have no value of an attribute, because they have no events."""
        return self.several and attribute >= len(self.codec.names)

    def _of_events(self, confidence: float, about: About) -> Wanted:
        if not self.several:
            raise ParameterError("this release has one table: there are no events of persons to ask about.")
        return replace(self.wish(None, confidence, about), per="")

    def weights(self, wish: Wanted) -> dict[int, Floats]:
        """What a person counts by where events count equally: by the number of their events, if they may have several."""
        return self.events if wish.per == "event" and self.described.link.at_most > 1 else {}

    def _answer(  # what is answered, from what, and how it is wanted
        self,
        question: str,
        estimate: Estimate,
        sides: tuple[Mapping[int, Any], Mapping[int, Any]],
        wish: Wanted,
        within: tuple[float, float],
        note: str,
        more: str = "",
    ) -> Answer:
        """One answer; of a single table with a word where its synthetic rows say something else."""
        method, estimate = estimate.words() + more, estimate.times(wish.times)
        found = answers(estimate, [question], wish.confidence, wish.about, method, within, note)[0]
        if self.several:
            return self.of_persons(found, [*sides[0]], wish.per)
        rows, se = (wish.times * number for number in self.drawn.ratio(*sides))
        if not (rows < found.low - 2 * se or rows > found.high + 2 * se):
            return found
        word = f"the synthetic rows have {shown(rows, found.se)}, beyond the interval: their fit draws groups towards the average"
        return replace(found, note=together([found.note, word]))

    def of_persons(self, answer: Answer, attributes: Sequence[int], per: str) -> Answer:
        """An answer that says whether persons or events count equally, and that events beyond the public limit were cut."""
        if not self.several:
            return answer
        of_events = any(map(self.partial, attributes))
        question = f"{answer.question} per {per}" if per and (of_events or per == "event") else answer.question
        cut = f"; of a person's first {self.described.link.at_most} events" * of_events
        return replace(answer, question=question, method=answer.method + cut)

    def ratio_of(
        self, top: Scores, bottom: Scores, wish: Wanted, number: int | None = None, bounded: bool = False
    ) -> Estimate:
        """A quotient among rows, among persons who have events where it is about these, or among all events."""
        weights = self.weights(wish)
        if weights and len(top) > 1:
            raise CannotAnswerError(
                f"events count equally only together with the number of events of their person: with {len(top)} columns that is "
                f"{len(top) + 1} things at once, and two were measured. Ask per person, where every person counts equally, "
                "or compute it from the rows, without an interval."
            )
        if self.several and (bottom or weights or any(map(self.partial, top))):
            # Both sums from one table, whose noise they share; with a column of events it holds persons with events alone.
            bottom = {a: bottom.get(a, np.ones(len(scores))) for a, scores in top.items()}
            top, bottom = weights | dict(top), weights | bottom
        return self._quotient(top, bottom, self.sampled(wish.about), number, bounded)

    def _quotient(
        self, top: Scores, bottom: Scores, rows: float | None, number: int | None = None, bounded: bool = False
    ) -> Estimate:
        """The mean of a product of scores, one factor an attribute, over that of another; `rows` are those of a sample.

        `number` is the attribute of a factor with values, which is bounded where its bins keep too little of it. The number of
        events beside a condition is always bounded.
        """
        if len({*top, *bottom}) > 2:
            estimate, base = ratio_of_cells(self.evidence, (top, bottom), rows, self.columns.called)
            self._require_seen(base, bottom, number)
            return estimate
        features: list[Feature] = []
        places: list[tuple[int, ...]] = []
        for side in (top, bottom):
            places.append(tuple(range(len(features), len(features) + len(side))))
            for a, scores in side.items():
                events = a in self.events
                value = (events or (side is top and a == number)) and not np.isin(scores, (0.0, 1.0)).all()
                open_ = value and (bounded or (events and (number is None or side is bottom)))
                features.append(Feature(a, np.asarray(scores, dtype=np.float64), condition=not value, bounded=open_))
        moments = self.moments(tuple(features))
        if bottom:
            self._require_seen(delta(moments, ratio(places[1], ()), None), bottom, number)
        found = delta(moments, ratio(*places), rows)
        return replace(found, opened=MANY) if self.events.keys() & top.keys() else found

    def _require_seen(self, base: Estimate, bottom: Scores, number: int | None) -> None:
        """Refuse a group that is lost in the noise; the columns that form it are named, not the one that is averaged."""
        share, least = float(base.value[0]), LOST * float(np.sqrt(base.variance[0]))
        for a, numbers in self.events.items():
            if a in bottom:  # of all events, of which noise may leave none
                share, least = np.array([share, least]) / (float(self.shares[a] @ numbers) or 1.0)
        if bottom and share <= least:
            own = [a for a in bottom if a not in self.events]
            form = " and ".join(repr(self.columns.names[a]) for a in [a for a in own if a != number] or own)
            raise LostInNoiseError(
                f"the {self.privacy.budget.counted} meant by {form} are too few: about {max(share, 0.0):.2%} of all, and below "
                f"{least:.2%} they are lost in the noise."
            )

    def number_feature(self, name: str) -> tuple[Feature, Floats]:
        """A number as a feature, 0 where it is missing, and where it is there."""
        scores, half = self.columns.number(name)
        within = half**2 / 3 if half.any() else None
        return Feature(self.columns.place(name), scores, within), self.columns.there(name)

    def _repr_html_(self) -> str:
        """For notebooks: what it is, and what to ask."""
        names, more = [name for name, _ in self.described.fields], ", rate, wait" if self.several else ""
        held = f"{self.parts.m:,} synthetic, of {self.privacy.size}, confidential"
        facts = [
            ("Guarantee", str(self.privacy)),
            ("Persons" if self.several else "Rows", held),
            ("Columns", ", ".join(names[:8]) + (" …" if len(names) > 8 else "")),
            ("Ask", f"share, mean, quantile, correlation, regress{more}: each answers with an interval"),
        ]
        return card("Release", "synthetic", facts)

    def __repr__(self) -> str:
        units = counted(self.parts.m, "synthetic " + ("person" if self.several else "row"))
        return f"Release({units}, {counted(len(self.described.fields), 'column')}; {self.privacy})"
