"""Questions whose answers are known: `python -m fuzz answers --runs 200`.

At ε = 10⁶ every answer is that of the table, so an answer is wrong where its interval does not hold the truth, or where it is off
by more than TOLERANCE deviations (of a share or a count 0.3). Questions are drawn over the whole grammar, in words and as
methods, and refusals are counted by kind: a question that was answered before is answered after every change.
"""

from __future__ import annotations

import shlex
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import covey
from covey.errors import CannotAnswerError, CoveyError
from covey.release.answers.answer import Answer, AnswerTable
from covey.tables.description import Description
from covey.tables.schema import Schema
from fuzz.cases import Chance
from fuzz.truth import SPECIAL, Column, Known, View, draw_known

EPSILON, DELTA = 1e6, 1e-6
TOLERANCE = 0.06  # of a deviation
SPREAD = 0.3  # the deviation of a share, and of a count per row
ROUNDING = 0.004  # of a deviation: what noise and rounding of so large an ε leave, which an interval need not hold
SPARE = 100  # rows: of smaller groups means and quantiles are not asked
PER_COLUMN = 2  # questions of a kind that are asked about a release

Truth = Callable[[str], tuple[float, float] | None]  # of the label of an answer; None where it is not known


@dataclass(frozen=True)
class Question:
    """A question in words and as a call, its truth by label ("" of a single answer), and the deviation for errors."""

    kind: str
    words: str
    call: Callable[[Any, dict[str, Any]], Any]
    truth: Truth | Regressed
    scale: float


@dataclass
class Tally:
    """What came of many questions, by kind."""

    asked: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    found: list[str] = field(default_factory=list)
    reasons: Counter[str] = field(default_factory=Counter)

    def __str__(self) -> str:
        lines = [
            f"{kind:24}{self.asked[kind]:7}{self.refused[kind]:9}{self.wrong[kind]:7}" for kind in sorted(self.asked)
        ]
        totals = [sum(own.values()) for own in (self.asked, self.refused, self.wrong)]
        return "\n".join(
            [f"{'kind':24}  asked  refused  wrong", *lines, f"{'all':24}{totals[0]:7}{totals[1]:9}{totals[2]:7}"]
        )


# Conditions.


@dataclass(frozen=True)
class Condition:
    """A condition in words, as a method takes it, and the rows that meet it in a view."""

    words: str
    given: tuple[str, Any]
    meets: Callable[[View], np.ndarray]


def draw_condition(chance: Chance, column: Column) -> Condition:
    """A condition on a column; ranges are wide enough to hold some rows."""
    name, texts = column.name, column.texts
    if np.equal(texts, None).any() and chance.once_in(8):
        return Condition(f"{name}=missing", (name, None), lambda view: np.equal(view.columns[name].texts, None))
    if np.isin(texts, [SPECIAL]).any() and chance.once_in(8):
        return Condition(f"{name}={SPECIAL}", (name, SPECIAL), lambda view: view.columns[name].texts == SPECIAL)
    if not column.is_ordered:
        labels = sorted({text for text in texts.tolist() if text is not None})
        some = chance.some(labels, 1, 2 if column.kind == "category" else 1)
        value: Any = some if len(some) > 1 else some[0]
        return Condition(
            f"{name}={','.join(some)}", (name, value), lambda view: np.isin(view.columns[name].texts, some)
        )
    there = np.isfinite(column.numbers)
    values, places = np.unique(column.numbers[there], return_index=True)
    words = texts[there][places]
    low, high = sorted(chance.sample(range(len(values)), 2)) if len(values) > 1 else (0, 0)
    sign = chance.choice([">=", "<=", ">", "<", "between"])
    ends: dict[str, tuple[int | None, int | None]] = {
        ">=": (low, None),
        ">": (low + 1, None),
        "<=": (None, high),
        "<": (None, high - 1),
        "between": (low, high),
    }
    first, last = (None if end is None else min(max(end, 0), len(values) - 1) for end in ends[sign])
    least, most = (-np.inf if first is None else values[first]), (np.inf if last is None else values[last])
    told = {
        ">=": f"{name}>={words[low]}",
        ">": f"{name}>{words[low]}",
        "<=": f"{name}<={words[high]}",
        "<": f"{name}<{words[high]}",
        "between": f"{name}>={words[low]}\t{name}<={words[high]}",
    }[sign]
    beside = {">": (column.beside(words[low], 1), None), "<": (None, column.beside(words[high], -1))}
    given = (
        name,
        beside.get(sign, (None if first is None else str(words[first]), None if last is None else str(words[last]))),
    )

    def meets(view: View) -> np.ndarray:
        numbers = view.columns[name].numbers
        with np.errstate(invalid="ignore"):
            return (numbers >= least - 1e-9) & (numbers <= most + 1e-9)

    return Condition(told, given, meets)


def spoken(*conditions: Condition) -> str:
    """Conditions as words of a question."""
    return " ".join(shlex.quote(word) for one in conditions for word in one.words.split("\t"))


def given(*conditions: Condition) -> dict[str, Any]:
    """Conditions as a method takes them."""
    return dict(one.given for one in conditions)


def both(view: View, *conditions: Condition) -> np.ndarray:
    """The rows that meet all of them."""
    return (
        np.all([one.meets(view) for one in conditions], axis=0)
        if conditions
        else np.ones(len(view.weights), dtype=bool)
    )


# Questions.


def draw_questions(known: Known, chance: Chance) -> Iterator[Question]:
    """Questions of every kind about a table."""
    some_view = known.views["single" if known.kind == "events" else "rows"]
    columns = list(some_view.columns.values())
    numbers = [own for own in columns if own.is_number]
    for _ in range(PER_COLUMN):
        x, y = chance.sample(columns, 2)
        one, other = draw_condition(chance, x), draw_condition(chance, y)
        yield from shares(known, chance, x, y, one, other)
        yield from counts(known, x, y, one)
        if numbers:
            number = chance.choice(numbers)
            yield from means(known, chance, number, y, other)
            yield from quantiles(known, chance, number, y, other)
        able = [own for own in columns if own.is_number or own.kind == "flag"]
        if len(able) > 1:
            yield correlation(known, *chance.sample(able, 2))
            yield from regressions(known, chance, able, columns)


def shares(known: Known, chance: Chance, x: Column, y: Column, one: Condition, other: Condition) -> Iterator[Question]:
    for per in ("person", "event") if known.kind == "events" and x.name in known.of_events else ("person",):
        ask, more = _per(known, per)
        view = known.view(x.name, per=per)
        yield Question(
            "share",
            f"share {spoken(one)}{ask}",
            lambda r, o, more=more: r.share(given(one), **o, **more),
            _single(view.share(one.meets(view))),
            SPREAD,
        )
    view = known.view(x.name, y.name)
    yield Question(
        "share of two",
        f"share {spoken(one, other)}",
        lambda r, o: r.share(given(one, other), **o),
        _single(view.share(both(view, one, other))),
        SPREAD,
    )
    if _large(view, other.meets(view)):
        yield Question(
            "share given",
            f"share {spoken(one)} given {spoken(other)}",
            lambda r, o: r.share(given(one), given(other), **o),
            _single(view.share(one.meets(view), other.meets(view))),
            SPREAD,
        )
    yield Question(
        "share by",
        f"share {spoken(one)} by {shlex.quote(y.name)}",
        lambda r, o: r.share(given(one), by=y.name, **o),
        _by(view, y, lambda group: view.share(one.meets(view), group), least=SPARE),
        SPREAD,
    )
    alone = known.view(y.name)
    yield Question(
        "share of groups",
        f"share by {shlex.quote(y.name)}",
        lambda r, o: r.share({}, by=y.name, **o),
        _by(alone, y, lambda group: alone.share(group)),
        SPREAD,
    )
    yield Question(
        "top",
        f"top 3 {shlex.quote(y.name)}",
        lambda r, o: r.ask(f"top 3 {shlex.quote(y.name)}", **o),
        _by(alone, y, lambda group: alone.share(group)),
        SPREAD,
    )
    if x.kind == "flag" and (x.texts == "false").any() and not np.equal(x.texts, None).any():
        lone = draw_condition(chance, y)
        sides = [view.share(lone.meets(view), view.columns[x.name].texts == word) for word in ("false", "true")]
        words = f"difference share {spoken(lone)} by {shlex.quote(x.name)}"
        yield Question("difference share", words, lambda r, o: r.ask(words, **o), _single(sides[0] - sides[1]), SPREAD)


def counts(known: Known, x: Column, y: Column, one: Condition) -> Iterator[Question]:
    if known.kind == "person":
        return
    events = {x.name, y.name} & known.of_events

    def number(view: View, of: np.ndarray) -> float:
        return float(np.sum(of)) if view is known.views.get("events") else known.n * view.share(of)

    view = known.view(x.name, per="event" if x.name in known.of_events else "person")
    yield Question(
        "count",
        f"count {spoken(one)}",
        lambda r, o: r.count(given(one), confidence=o["confidence"]),
        _single(number(view, one.meets(view))),
        SPREAD * known.n,
    )
    own = known.view(y.name, per="event" if y.name in known.of_events else "person")
    yield Question(
        "count of groups",
        f"count by {shlex.quote(y.name)}",
        lambda r, o: r.count({}, y.name, confidence=o["confidence"]),
        _by(own, y, lambda group: number(own, group)),
        SPREAD * known.n,
    )
    if not events:
        yield Question(
            "count by",
            f"count {spoken(one)} by {shlex.quote(y.name)}",
            lambda r, o: r.count(given(one), y.name, confidence=o["confidence"]),
            _by(view, y, lambda group: number(view, one.meets(view) & group)),
            SPREAD * known.n,
        )


def means(known: Known, chance: Chance, x: Column, y: Column, other: Condition) -> Iterator[Question]:
    name, everyone = shlex.quote(x.name), known.view(x.name)
    for per in ("person", "event") if x.name in known.of_events else ("person",):
        ask, more = _per(known, per)
        view = known.view(x.name, per=per)
        yield Question(
            "mean",
            f"mean {name}{ask}",
            lambda r, o, more=more: r.mean(x.name, **o, **more),
            _single(view.mean(x.name, both(view))),
            view.deviation(x.name),
        )
    view, scale = known.view(x.name, y.name), everyone.deviation(x.name)
    if y.name == x.name:
        return
    if _large(view, other.meets(view)):
        yield Question(
            "mean where",
            f"mean {name} where {spoken(other)}",
            lambda r, o: r.mean(x.name, where=given(other), **o),
            _single(view.mean(x.name, other.meets(view))),
            scale,
        )
    truth = _by(view, y, lambda group: view.mean(x.name, group), least=SPARE)
    by = shlex.quote(y.name)
    yield Question("mean by", f"mean {name} by {by}", lambda r, o: r.mean(x.name, y.name, **o), truth, scale)
    words = f"top 2 {by} by {name}"
    yield Question("top by a mean", words, lambda r, o: r.ask(words, **o), truth, scale)
    groups = [label for label in dict.fromkeys(y.texts.tolist()) if label is not None]
    if y.kind in ("category", "flag") and len(groups) > 1:
        pair = chance.sample(groups, 2)
        inside = [view.columns[y.name].texts == label for label in pair]
        if all(_large(view, group) for group in inside):
            told = f"difference mean {name} {' '.join(shlex.quote(f'{y.name}={label}') for label in pair)}"
            gap = view.mean(x.name, inside[0]) - view.mean(x.name, inside[1])
            yield Question("difference mean", told, lambda r, o: r.ask(told, **o), _single(gap), 2 * scale)


def quantiles(known: Known, chance: Chance, x: Column, y: Column, other: Condition) -> Iterator[Question]:
    name, q = shlex.quote(x.name), chance.choice([0.1, 0.25, 0.9])
    alone, view = known.view(x.name), known.view(x.name, y.name)
    scale, everyone = alone.deviation(x.name), both(alone)
    for kind, level, words in (("median", 0.5, f"median {name}"), ("quantile", q, f"quantile {q} {name}")):
        ends = alone.quantile(x.name, level, everyone)
        yield Question(
            kind, words, lambda r, o, level=level: r.quantile(x.name, level, **o), lambda _, ends=ends: ends, scale
        )
    if y.name != x.name and _large(view, other.meets(view) & np.isfinite(view.columns[x.name].numbers)):
        inside = view.quantile(x.name, q, other.meets(view))
        words = f"quantile {q} {name} where {spoken(other)}"
        yield Question(
            "quantile where", words, lambda r, o: r.quantile(x.name, q, given(other), **o), lambda _: inside, scale
        )


def correlation(known: Known, x: Column, y: Column) -> Question:
    view = known.view(x.name, y.name)
    a, b = view.columns[x.name].numbers, view.columns[y.name].numbers
    there = np.isfinite(a) & np.isfinite(b)
    w = view.weights[there] / max(view.weights[there].sum(), 1e-300)
    a, b = a[there], b[there]
    a, b = a - w @ a, b - w @ b
    with np.errstate(all="ignore"):
        true = float(w @ (a * b) / np.sqrt((w @ a**2) * (w @ b**2)))
    words = f"correlation {shlex.quote(x.name)} {shlex.quote(y.name)}"
    return Question("correlation", words, lambda r, o: r.correlation(x.name, y.name, **o), _single(true), 1.0)


def regressions(known: Known, chance: Chance, able: list[Column], columns: list[Column]) -> Iterator[Question]:
    outcome = chance.choice(able)
    rest = [own for own in columns if own.name != outcome.name and own.kind != "date"]
    if not rest or np.isnan(outcome.numbers).any():
        return
    terms = chance.some(rest, 1, 2)
    view = known.view(outcome.name, *(own.name for own in terms))
    y, w = view.columns[outcome.name].numbers, view.weights
    formula = f"`{outcome.name}` ~ {' + '.join(f'`{own.name}`' for own in terms)}"

    def column(label: str) -> np.ndarray | None:
        if label == "(constant)":
            return np.ones(len(y))
        name, sign, group = label.partition("=")
        own = view.columns[name]
        if sign:
            return own.meets(group)
        x = own.numbers
        there = np.isfinite(x)
        return np.where(there, x, w[there] @ x[there] / w[there].sum())

    yield Question("regress", f"regress {formula}", lambda r, o: r.regress(formula, **o), Regressed(y, w, column), 1.0)


@dataclass(frozen=True)
class Regressed:
    """Coefficients of weighted least squares on the terms that an answer has."""

    outcome: np.ndarray
    weights: np.ndarray
    column: Callable[[str], np.ndarray | None]

    def of(self, labels: tuple[str, ...]) -> list[tuple[float, float]] | None:
        """Each coefficient, and the deviation that its error is held against; None where terms are not known."""
        columns = [self.column(label) for label in labels]
        if any(own is None for own in columns):
            return None
        X, root = np.column_stack([np.asarray(own, dtype=float) for own in columns]), np.sqrt(self.weights)
        if np.linalg.matrix_rank(X * root[:, None]) < X.shape[1]:
            return None
        found = np.linalg.lstsq(X * root[:, None], self.outcome * root, rcond=None)[0]
        total = self.weights.sum()
        centre = self.weights @ X / total
        spread = np.sqrt(self.weights @ (X - centre) ** 2 / total)
        sd = float(np.sqrt(self.weights @ (self.outcome - self.weights @ self.outcome / total) ** 2 / total))
        scales = [sd * (1 + float(np.sum(np.abs(centre[1:]) / spread[1:])))]
        scales += [sd / own for own in spread[1:]]
        return list(zip(found.tolist(), scales, strict=True))


def _per(known: Known, per: str) -> tuple[str, dict[str, str]]:
    """How a question says what counts equally; nothing of one table."""
    return (f" per {per}", {"per": per}) if known.kind == "events" else ("", {})


def _single(true: float) -> Truth:
    return lambda _: (true, true)


def _large(view: View, group: np.ndarray) -> bool:
    """Whether a group has rows enough to ask about."""
    return int(np.sum(group & (view.weights > 0))) >= SPARE


def _by(view: View, column: Column, of: Callable[[np.ndarray], float], least: int = 0) -> Truth:
    """The truth of each group of a column, by the group's name."""

    def truth(label: str) -> tuple[float, float] | None:
        group = view.columns[column.name].meets(label)
        if group is None or int(group.sum()) < least:
            return None
        true = of(group)
        return None if np.isnan(true) else (true, true)

    return truth


# Judgement.


def released(known: Known, seed: int, epsilon: float = EPSILON) -> Any:
    """A release with next to no noise."""
    schema: Any = Description.from_dict(known.document) if known.kind == "events" else Schema.from_dict(known.document)
    synth = covey.PrivateSynthesizer(epsilon, DELTA, schema=schema, seed=seed, certificate_share=0, **known.options)
    return synth.fit(known.tables).release(100)


def judge(release: Any, question: Question, tally: Tally) -> None:
    """Ask in words and by a method, and hold both against the truth."""
    options = {"confidence": 0.95, "about": "table"}
    tally.asked[question.kind] += 1
    try:
        said = release.ask(question.words, **options)
    except CoveyError as error:
        if not isinstance(error, CannotAnswerError):
            tally.found.append(f"{question.words}: {error}")
        tally.refused[question.kind] += 1
        tally.reasons[f"{question.kind}: {str(error)[:110]}"] += 1
        return
    called = question.call(release, options)
    rows = [("", said)] if isinstance(said, Answer) else list(zip(said.labels, said, strict=True))
    other = [called] if isinstance(called, Answer) else list(called)
    troubles = [] if [_numbers(a) for _, a in rows] == [_numbers(a) for a in other] else ["words and method differ"]
    for label, true, scale in truths(question, said):
        troubles += trouble(dict(rows)[label], true, scale, label)
    if troubles:
        tally.wrong[question.kind] += 1
        tally.found.append(f"{question.words}: {'; '.join(troubles)}")


def truths(question: Question, said: Answer | AnswerTable) -> Iterator[tuple[str, tuple[float, float], float]]:
    """What is true of each answer that was given, by label, with the deviation that its error is held against."""
    labels = ("",) if isinstance(said, Answer) else said.labels
    if isinstance(question.truth, Regressed):
        for label, known in zip(labels, question.truth.of(labels) or (), strict=False):
            yield label, (known[0], known[0]), known[1]
        return
    for label in labels:
        known = question.truth(label)
        if known is not None:
            yield label, known, question.scale


def trouble(answer: Answer, true: tuple[float, float], scale: float, label: str) -> list[str]:
    """What is wrong with an answer whose truth lies between two numbers."""
    if answer.refused or not np.isfinite(true[0]):
        return []
    slack = ROUNDING * scale + 1e-9
    if true[1] < answer.low - slack or true[0] > answer.high + slack:
        return [f"{label} {true[0]:.6g} is not from {answer.low:.6g} to {answer.high:.6g}"]
    off = max(true[0] - answer.value, answer.value - true[1], 0.0)
    if off <= TOLERANCE * scale + 1e-9:
        return []
    return [f"{label} {answer.value:.6g} is {off / max(scale, 1e-12):.2f} deviations from {true[0]:.6g}"]


def _numbers(answer: Answer) -> tuple[str, ...]:
    return tuple(map(repr, (answer.value, answer.low, answer.high)))


def explore(seeds: Iterable[int]) -> Tally:
    """Release the table of every seed, and ask."""
    tally = Tally()
    for seed in seeds:
        known = draw_known(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            release = released(known, seed)
            first = len(tally.found)
            for question in draw_questions(known, Chance(seed + 1)):
                judge(release, question, tally)
        tally.found[first:] = [f"seed {seed}, {known.kind}: {one}" for one in tally.found[first:]]
    return tally


def main(runs: int, seed: int) -> int:
    """Ask, tell, and say whether all is well."""
    tally = explore(range(seed, seed + runs))
    print("\n".join(tally.found))
    print("\n".join(f"{count:5} {reason}" for reason, count in tally.reasons.most_common(30)))
    print(tally)
    return int(100 * sum(tally.wrong.values()) > sum(tally.asked.values()))
