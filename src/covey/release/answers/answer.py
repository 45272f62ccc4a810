"""What is answered: a number with its interval, or a table of such numbers. Both print and draw themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import wraps
from numbers import Real
from typing import Any, Literal, TypeVar, cast

import numpy as np

from covey.engine.entropy import SEEDED_MARK
from covey.errors import ArgumentError, ParameterError, briefly
from covey.markup import Html, tag
from covey.release.answers.estimates import Estimate
from covey.tables.sources.frames import FrameForm

About = Literal["population", "table"]
Per = Literal["person", "event"]
FRAMES = ("polars", "pandas", "arrow")
COLUMNS = ("value", "low", "high", "se", "confidence", "about", "method", "note")
WIDTH = 260  # pixels of a drawn interval: two fit a notebook's line


@dataclass(frozen=True)
class Wanted:
    """How an answer is wanted: whether persons or events count equally, with which confidence, about what, and in which unit."""

    per: Per | Literal[""]  # neither for what is about persons and all their events
    confidence: float
    about: About
    times: float = 1.0  # what an estimate is multiplied by: the public number of all, where they are counted


def checked(confidence: float) -> float:
    """A confidence between 0 and 1."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ArgumentError("", "confidence", f" must lie between 0 and 1, got {briefly(confidence)}.")
    return float(confidence)


@dataclass(frozen=True)
class Answer:
    """A number and an interval that holds the truth with the stated confidence."""

    question: str
    value: float
    low: float
    high: float
    se: float  # standard error: of the noise, of sampling where it is about the population, and of what bins hide
    confidence: float
    about: About  # the "population", of which the confidential table is a sample, or that "table" itself
    method: str
    note: str = ""  # which values limits moved, which categories are several in one, or why there is no answer
    seeded: bool = False  # whether the release was made with a seed, so that it is not private

    @property
    def refused(self) -> bool:
        """Whether there is no honest interval; the note says why."""
        return bool(np.isnan(self.value))

    def __repr__(self) -> str:
        if self.refused:
            return f"{self.question}: no answer, because {self.note}{self.mark}"
        value, low, high = (shown(number, self.se) for number in (self.value, self.low, self.high))
        interval = f"{self.confidence:.0%} interval {low} to {high} (about the {self.about}; {self.method})"
        return f"{self.question} = {value}, {interval}" + (f"\nnote: {self.note}" if self.note else "") + self.mark

    @property
    def mark(self) -> str:
        """A line that says of a seeded release that it is not private."""
        return f"\n{SEEDED_MARK}" if self.seeded else ""

    def as_dict(self) -> dict[str, Any]:
        """For a JSON answer; what is not answered is null."""
        return {name: None if value != value else value for name, value in asdict(self).items()}

    def frame(self, library: str = "polars") -> Any:
        """The answer as a polars, pandas or arrow frame of one row."""
        return AnswerTable((self,), (self.question,), "question").frame(library)

    def _repr_html_(self) -> str:
        """For notebooks: the line, and the interval drawn."""
        return AnswerTable((self,), ("",), "")._repr_html_()


@dataclass(frozen=True)
class AnswerTable(Sequence[Answer]):
    """Answers in rows, each with the label of its group or term."""

    answers: tuple[Answer, ...]
    labels: tuple[str, ...]
    heading: str

    def __len__(self) -> int:
        return len(self.answers)

    def __getitem__(self, key: Any) -> Any:
        """The answer in a place, or with a label."""
        return self.answers[self.labels.index(key) if isinstance(key, str) else key]

    def columns(self) -> Mapping[str, list[Any]]:
        """The table by columns."""
        found = [a.as_dict() for a in self]
        return {self.heading: list(self.labels)} | {name: [own[name] for own in found] for name in COLUMNS}

    def frame(self, library: str = "polars") -> Any:
        """The table as a polars, pandas or arrow frame."""
        return in_library(self.columns(), library)

    def as_dict(self) -> dict[str, Any]:
        """For a JSON answer."""
        return {"rows": [{self.heading: label, **a.as_dict()} for label, a in zip(self.labels, self, strict=True)]}

    @property
    def notes(self) -> list[str]:
        """What is to be said of all answers, and then of single ones."""
        answered = sum(not a.refused for a in self)
        both = [(label, a.note) for label, a in zip(self.labels, self, strict=True) if a.note and not a.refused]
        given = {label: note.split("; ") for label, note in both}
        seen = Counter(note for own in given.values() for note in own)
        every = [note for note, count in seen.items() if count == answered]
        return every + [f"{label}: {note}" for label, own in given.items() for note in own if note not in every]

    def __repr__(self) -> str:
        cells: list[tuple[str, ...]] = [(self.heading, "value", "low", "high", "se")]
        for label, a in zip(self.labels, self, strict=True):
            numbers = ("–",) * 4 if a.refused else (shown(v, a.se) for v in (a.value, a.low, a.high, a.se))
            cells.append((label, *numbers))
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        first = [row[0].ljust(widths[0]) for row in cells]
        rest = ["  ".join(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True)) for row in cells]
        reasons = ["", *(f"  {a.note}" if a.refused else "" for a in self)]
        lines = [f"{x}  {y}{why}" for x, y, why in zip(first, rest, reasons, strict=True)]
        return "\n".join([self._opening, *lines, *(f"note: {note}" for note in self.notes)]) + self._mark

    @property
    def _mark(self) -> str:
        return next((a.mark for a in self), "")

    @property
    def _opening(self) -> str:
        a = next((a for a in self if not a.refused), self.answers[0])
        return f"{a.confidence:.0%} intervals (about the {a.about}; {a.method})"

    def _repr_html_(self) -> str:
        """For notebooks: a row for each answer, all intervals drawn on one scale."""
        ends = [v for a in self for v in (a.low, a.high) if np.isfinite(v)] or [0.0, 1.0]
        low, high = min(ends), max(ends)
        pad = "padding:.15em .8em .15em 0;text-align:left;white-space:nowrap"
        rows = []
        for label, a in zip(self.labels, self, strict=True):
            told = (
                tag("strong", shown(a.value, a.se)),
                f"{shown(a.low, a.se)} to {shown(a.high, a.se)}",
                _drawn(a, low, high),
            )
            cells = [tag("td", cell, style=pad) for cell in told]
            if a.refused:
                cells = [tag("td", f"no answer: {a.note}", colspan="3", style=pad)]
            rows.append(tag("tr", tag("td", label or a.question, style=pad), *cells))
        lines = [self._opening, *(f"note: {note}" for note in self.notes), *([SEEDED_MARK] if self._mark else [])]
        foot = [tag("div", line, style="opacity:.8;font-size:.9em") for line in lines]
        return tag("div", tag("table", tag("tbody", rows), style="border-collapse:collapse;background:none"), *foot)


T = TypeVar("T")
QUESTIONS = ("share", "count", "mean", "rate", "wait", "quantile", "correlation", "regress", "interval")
Question = TypeVar("Question", bound=Callable[..., Any])


def of_a_release(question: Question) -> Question:
    """A question whose first argument is a release, with answers that say where it was made with a seed."""

    @wraps(question)
    def asked(release: Any, *arguments: Any, **options: Any) -> Any:
        return marked(question(release, *arguments, **options), release.privacy.seeded)

    return cast(Question, asked)


def questions(kind: type[T]) -> type[T]:
    """A class of releases, each of whose questions has answers that say where it was made with a seed."""
    for name in QUESTIONS:
        setattr(kind, name, of_a_release(getattr(kind, name)))
    return kind


def marked(found: Any, seeded: bool) -> Any:
    """Answers of a release that was made with a seed, or not."""
    if not seeded:
        return found
    if isinstance(found, AnswerTable):
        return replace(found, answers=tuple(replace(answer, seeded=True) for answer in found))
    return replace(found, seeded=True)


def answers(  # one for each number of an estimate
    estimate: Estimate,
    questions: Sequence[str],
    confidence: float,
    about: About,
    method: str,
    within: tuple[float, float] = (-np.inf, np.inf),
    note: str = "",
) -> tuple[Answer, ...]:
    """Intervals of an estimate around the nearest value that is possible, cut to those that are.

    An impossible estimate is moved before its interval is laid around it: cut afterwards, next to nothing would be left of it.
    """
    half, se = estimate.half(confidence), estimate.sd
    value = np.clip(estimate.value, *within)
    low, high = np.clip([value - estimate.below - half, value + estimate.above + half], *within)
    low, high = np.minimum(low, value), np.maximum(high, value)  # whatever their last digits
    return tuple(
        Answer(q, float(value[i]), float(low[i]), float(high[i]), float(se[i]), confidence, about, method, note)
        for i, q in enumerate(questions)
    )


def in_library(columns: Mapping[str, Any], library: str) -> Any:
    """Columns as a frame of the library that is wanted."""
    if library not in FRAMES:
        raise ParameterError(f"library must be one of {', '.join(FRAMES)}, got {library!r}.")
    return FrameForm("pyarrow" if library == "arrow" else library).restore(columns)


def shown(value: float, se: float) -> str:
    """A number with as many digits as its error leaves: two digits of the error are shown."""
    if not np.isfinite(value):
        return str(value)
    if not se > 0 or not np.isfinite(se):
        return f"{value:.4g}"
    places = int(1 - np.floor(np.log10(se)))
    return f"{value:,.{min(max(places, 0), 8)}f}"


def _drawn(a: Answer, low: float, high: float) -> Html:
    """An interval on a line from low to high."""
    span = (high - low) or 1.0

    def at(value: float) -> str:
        return f"{4 + (WIDTH - 8) * (min(max(value, low), high) - low) / span:.1f}"

    line = tag("line", x1=at(a.low), x2=at(a.high), y1="8", y2="8", stroke="currentColor", stroke_width="2")
    dot = tag("circle", cx=at(a.value), cy="8", r="3.5", fill="currentColor")
    words = f"{shown(a.value, a.se)}, from {shown(a.low, a.se)} to {shown(a.high, a.se)}"
    return tag("svg", line, dot, width=str(WIDTH), height="16", role="img", aria_label=words)
