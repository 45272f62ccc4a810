"""A release in the hands of an analyst: rows, more rows, and answers with intervals. No true data is within reach."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from numbers import Real
from typing import Any

import numpy as np

from covey.answers import notes, regression
from covey.answers import replicates as again
from covey.answers.answer import About, Answer, AnswerTable, answers, in_library
from covey.answers.bands import ReportBands
from covey.answers.columns import Columns, Conditions, said
from covey.answers.estimates import Estimate, Function, correlation, delta, logistic, paired_correlation, ratio
from covey.answers.evidence import Evidence
from covey.answers.moments import Feature, Moments, Rows
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
from covey.core.arrays import Array, Floats, Integers
from covey.entropy import Streams
from covey.errors import CannotAnswerError, ParameterError, whole_number
from covey.html import card
from covey.release.conditional import Centres, draw_rows
from covey.release.contents import PrivateRelease
from covey.table.codec import Codec
from covey.table.sources import joined

DRAWN = 20_000  # rows of the centres that variances are read off: right to about a hundredth
Z95 = 1.96  # of a normal law: half a 95% interval in deviations


@dataclass(frozen=True)
class Release(PrivateRelease):
    """A private release: `covey.load(folder)`, or `PrivateSynthesizer.release(m)`.

    Answers are about the population that the confidential table was drawn from, or with about="table" about that table itself.
    """

    # Rows.

    def rows(self, library: str = "polars") -> Any:
        """The synthetic rows as a polars, pandas or arrow frame."""
        return in_library(joined(list(self.parts)), library)

    def sample(
        self, m: int, where: Conditions | None = None, *, library: str = "polars", seed: int | None = None
    ) -> Any:
        """More synthetic rows, or rows that meet conditions, as `share` takes them: drawn from the centres, at no cost."""
        return in_library(joined(list(self.draw(m, where, seed))), library)

    def draw(self, m: int, where: Conditions | None = None, seed: int | None = None) -> Iterator[Mapping[str, Any]]:
        """The same rows as columns, part by part, so that there may be more than the memory holds."""
        m = whole_number(m, "m", 1, "It counts the synthetic rows.")
        wanted = Columns(self.codec).wishes(where or {})
        return draw_rows(Centres(self.codec, self.centres, self.numbers), m, wanted, again.streams_of(seed))

    # What answers rest on.

    @cached_property
    def codec(self) -> Codec:
        """How columns are categories."""
        return Codec(self.schema)

    @cached_property
    def columns(self) -> Columns:
        """Columns by name; numbers have the units that they were measured in."""
        names = self.codec.names
        edges: dict[str, Integers] = {}
        if self.numbers is not None:
            edges = {names[j]: self.evidence.units[j].edges for j in self.numbers.cells}
        shares = {name: self.shares[j] for j, name in enumerate(names)} if self.measurements is not None else {}
        return Columns(self.codec, edges, shares, self.privacy.left_out)

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
        """Rows of codes from the centres; the same each time."""
        return self.in_units(again.Mechanism(self).table(DRAWN, Streams.from_seed(0).child("answers")))

    def in_units(self, codes: Array) -> Rows:
        """Rows of codes by the units that numbers were measured in."""
        units = codes.astype(np.int64)
        if self.numbers is not None:
            for j in self.numbers.cells:
                units[:, j] = np.searchsorted(self.evidence.units[j].edges, units[:, j], side="right") - 1
        return Rows(units)

    @property
    def bands(self) -> ReportBands | None:
        """Error bands for the report."""
        return None if self.measurements is None else ReportBands(self)

    @property
    def flags(self) -> bool:
        """Whether every column has two categories."""
        return self.numbers is None and all(size == 2 for size in self.codec.domain_sizes)

    @cached_property
    def shares(self) -> list[Floats]:
        """The centres' one-way tables; of numbers their measures."""
        mean = self.centres.weights @ self.centres.points
        if self.flags:
            return [np.array([1 - m, m]) for m in mean]
        sizes = self.codec.domain_sizes if self.numbers is None else self.numbers.domain.sizes
        found = np.split(mean, np.cumsum(sizes)[:-1])
        if self.numbers is not None:
            for j, cells in self.numbers.cells.items():
                found[j] = cells.measure.mass(self.evidence.units[j].edges)
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

    def share(
        self, of: Conditions, given: Conditions | None = None, *, confidence: float = 0.95, about: About = "population"
    ) -> Answer:
        """The share of rows that meet some conditions, among all or among those that meet `given`.

        Conditions: {"ward": "surgery"}, several categories as a list, a range (65, None), None for missing.
        """
        top, bottom = self.columns.conditions(of), self.columns.conditions(given) if given else {}
        for a, mask in bottom.items():
            top[a] = top.get(a, 1.0) * mask
            if not top[a].any():
                raise ParameterError(f"no row meets both {said(of)} and {said(given or {})}.")
        question = f"share {said(of)}" + (f" given {said(given)}" if given else "")
        estimate = self._ratio(top, bottom, about)
        note = notes.together(*(notes.of_conditions(self.columns, side) for side in (of, given)))
        answer = answers(estimate, [question], check(confidence), about, words(estimate), (0.0, 1.0), note)[0]
        return beside(answer, *self.drawn.ratio(top, bottom))

    def mean(
        self,
        column: str,
        by: str | None = None,
        where: Conditions | None = None,
        *,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Any:
        """The mean of a number or flag, over rows that have it; with `by` a table, a row for each group."""
        if by is None:
            return self._mean(column, {}, where or {}, confidence, about)
        place = self.columns.place(by)
        groups = self.columns.groups(by, self.evidence.bins(place))
        return by_group(
            by,
            groups,
            lambda mask: self._mean(column, {place: mask}, where or {}, confidence, about),
            lambda mask: notes.together(notes.of_column(self.columns, by, mask)),
        )

    def _mean(
        self, column: str, group: Mapping[int, Floats], where: Conditions, confidence: float, about: About
    ) -> Answer:
        scores, half = self.columns.number(column)
        there, place = self.columns.there(column), self.columns.place(column)
        chosen = dict(group)
        for a, mask in (self.columns.conditions(where) if where else {}).items():
            chosen[a] = chosen.get(a, 1.0) * mask
        own, bounded = chosen.pop(place, 1.0), False
        if chosen:
            feature, _ = self.number_feature(column)
            both = self.moments((feature, *(Feature(a, m, condition=True) for a, m in chosen.items())))
            bounded = not keeps(both, 0) and all(both.constant(i) for i in range(1, len(both.features)))
            if not bounded:
                require_kept(both, [0], self.codec.names)
        top, bottom = {place: scores * own, **chosen}, {place: there * own, **chosen}
        estimate = self._ratio(top, bottom, about, Factor(place, bounded))
        meant, law = there * own, self.shares[place] * there * own
        seen = np.maximum(law, self.evidence.one_way(place) * meant)  # noise too may lie anywhere in a wide range
        hidden = float(seen @ half) / max(float(law.sum()), 1e-9)
        estimate = replace(estimate, below=estimate.below + hidden, above=estimate.above + hidden)
        ends = float(np.min((scores - half)[meant > 0])), float(np.max((scores + half)[meant > 0]))
        if chosen:  # no group is younger than as many of the youngest
            base = self._ratio(bottom, {}, "table")
            found = possible(self.moments((Feature(place, scores),)), half, meant, base, self.sampled(about))
            ends = max(ends[0], found[0]), min(ends[1], found[1])
        elif self.numbers is not None and place in self.numbers.cells and law.any():
            estimate = around(estimate, float(law @ scores / law.sum()), check(confidence))
        question = f"mean {column}" + (f" where {said(where)}" if where else "")
        method = words(estimate) + f": of where {column!r} lies inside them only bounds are known" * bounded
        limits = notes.of_column(self.columns, column, there * own)
        note = notes.together(limits, notes.of_conditions(self.columns, where, but=column))
        answer = answers(estimate, [question], check(confidence), about, method, ends, note)[0]
        return beside(answer, *self.drawn.ratio(top, bottom))

    def quantile(
        self,
        column: str,
        q: float,
        where: Conditions | None = None,
        *,
        confidence: float = 0.95,
        about: About = "population",
    ) -> Answer:
        """A quantile of a number, to the bins it was measured in: the interval ends at their edges."""
        if not isinstance(q, Real):
            raise ParameterError(f"q must be one number between 0 and 1, got {q!r}. Ask once for each.")
        if not 0 < q < 1:
            raise ParameterError(f"q must lie between 0 and 1, got {q!r}.")
        scores, half = self.columns.number(column)
        there, place = self.columns.there(column), self.columns.place(column)
        chosen = self.columns.conditions(where) if where else {}
        own = there * chosen.pop(place, 1.0)
        order = np.flatnonzero(own)
        if not len(order):
            raise ParameterError(f"no value of {column!r} meets the condition.")
        reach = check(confidence)

        def ends(k: int) -> tuple[float, float, float]:
            """The share at or below the k-th bin, at most, as estimated, and at least."""
            upto = np.zeros(len(scores))
            upto[order[: k + 1]] = own[order[: k + 1]]
            found = self._ratio({place: upto, **chosen}, {place: own, **chosen}, about)
            half_width, value = float(found.half(reach)[0]), float(found.value[0])
            return value + float(found.above[0]) + half_width, value, value - float(found.below[0]) - half_width

        def reached(end: int, k: int) -> bool:
            return ends(k)[end] >= q

        low, value, high = (first(partial(reached, end), len(order)) for end in range(3))
        at = [order[k] for k in (low, value, high)]
        shown = scores[at[0]] - half[at[0]], scores[at[1]], scores[at[2]] + half[at[2]]
        question = f"quantile {q:g} {column}" + (f" where {said(where)}" if where else "")
        se = float((shown[2] - shown[0]) / 2 / Z95)
        value_, low_, high_ = (float(shown[k]) for k in (1, 0, 2))
        at_ends = np.zeros(len(scores))
        at_ends[at] = 1.0  # inside the limits a quantile does not move with what lies beyond them
        limits = notes.of_column(self.columns, column, at_ends)
        note = notes.together(limits, notes.of_conditions(self.columns, where, but=column))
        return Answer(question, value_, low_, high_, se, confidence, about, "measured, to bins", note)

    def correlation(self, x: str, y: str, *, confidence: float = 0.95, about: About = "population") -> Answer:
        """Pearson's correlation of two numbers or flags, over rows that have both."""
        if self.columns.place(x) == self.columns.place(y):
            raise ParameterError("a correlation needs two different columns.")
        parts = [self.number_feature(name) for name in (x, y)]
        if all(there.all() for _, there in parts):
            moments = self.moments(tuple(feature for feature, _ in parts))
            function = correlation
        else:
            moments, function = (
                self.moments(tuple(f for part in parts for f in with_square(*part))),
                paired_correlation,
            )
        require_kept(moments, [0, len(moments.features) // 2], self.codec.names)
        require_varying(moments, function, (x, y))
        estimate = delta(moments, function, self.sampled(about))
        question, note = f"correlation {x} {y}", notes.together(*(notes.of_column(self.columns, own) for own in (x, y)))
        return answers(estimate, [question], check(confidence), about, words(estimate), (-1.0, 1.0), note)[0]

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
        return AnswerTable(found, model.terms, "term")

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

        It takes as long as so many fits. Smooth functions are covered nearly as often as it says; a model's score may not be.
        """
        self.sampled(about)
        found = again.interval(again.Mechanism(self, library), function, replicates, check(confidence), about, seed)
        return replace(found, note=notes.together(notes.of_all(self.columns)))

    def sharpened(self, replicates: int = 8, *, seed: int | None = None) -> Release:
        """The same release with shorter intervals for regressions: averaged with the centres' answer, so approximate.

        It takes as long as so many fits; then every question is answered at once.
        """
        from covey.answers.sharper import sharpened  # which is a release too

        return sharpened(self, replicates, seed)

    def replicates(self, count: int, *, library: str = "polars", seed: int | None = None) -> list[again.Replicate]:
        """Tables drawn from the centres, each with the synthetic rows of a release of it: for studies of one's own."""
        return again.replicates(again.Mechanism(self, library), count, seed)

    # Steps.

    def _ratio(
        self, top: Mapping[int, Floats], bottom: Mapping[int, Floats], about: About, number: Factor | None = None
    ) -> Estimate:
        """The mean of a product of scores, one factor an attribute, over that of another; `number` is a factor with values."""
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
            names = " and ".join(repr(self.codec.names[a]) for a in form)
            raise LostInNoiseError(
                f"the rows meant by {names} are too few: about {max(share, 0.0):.2%} of all, and below {least:.2%} they are lost "
                "in the noise."
            )

    def fit_linear(self, moments: Moments, function: Function, about: About) -> Estimate:
        """Coefficients of least squares, a function of moments, with their errors."""
        return delta(moments, function, self.sampled(about))

    def fit_logistic(self, moments: Moments, about: About) -> Estimate:
        """Coefficients of a logistic regression, with their errors."""
        return logistic(moments, self.sampled(about))

    def number_feature(self, name: str) -> tuple[Feature, Floats]:
        """A number as a feature, 0 where it is missing, and where it is there."""
        scores, half = self.columns.number(name)
        within = half**2 / 3 if half.any() else None
        return Feature(self.columns.place(name), scores, within), self.columns.there(name)

    def _repr_html_(self) -> str:
        """For notebooks: what it is, and what to ask."""
        facts = [
            ("Guarantee", str(self.privacy)),
            ("Rows", f"{self.parts.m:,} synthetic, of {self.privacy.n:,} confidential {self.privacy.budget.counted}"),
            ("Columns", ", ".join(self.schema.names[:8]) + (" …" if len(self.schema.names) > 8 else "")),
            ("Ask", "share, mean, quantile, correlation, regress: each answers with an interval"),
        ]
        return card("Release", "synthetic", facts)

    def __repr__(self) -> str:
        return f"Release({self.parts.m} synthetic rows, {len(self.schema.names)} columns; {self.privacy})"
