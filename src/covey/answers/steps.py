"""Small steps that answers share: what is refused, and how an estimate is described."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np

from covey.answers.answer import Answer, AnswerTable, shown
from covey.answers.estimates import Estimate, Function
from covey.answers.moments import Feature, Moments
from covey.answers.notes import together
from covey.core.arrays import Floats
from covey.errors import CannotAnswerError, ParameterError

KEPT = 0.85  # part of the variance that bins must keep of two columns together: benchmarks/intervals.py
LOST = 3.0  # a group whose share is smaller than so many deviations of its noise is lost in it
WILD = 1.5  # a correlation beyond it is noise over noise


class LostInNoiseError(CannotAnswerError):
    """A group is too small to be told from noise."""


@dataclass(frozen=True)
class Factor:
    """The factor of a product that is a number; bounded where its bins keep too little of it."""

    place: int
    bounded: bool


def by_group(
    by: str, groups: Sequence[tuple[str, Floats]], ask: Callable[[Floats], Answer], notes: Callable[[Floats], str]
) -> AnswerTable:
    """One answer for each group, by its mask: an interval with what is to be said of the group, or why there is none."""
    found: list[Answer | LostInNoiseError] = []
    for _, mask in groups:
        try:
            answer = ask(mask)
            found.append(replace(answer, note=together([answer.note, notes(mask)])))
        except LostInNoiseError as error:
            found.append(error)
    some = next((one for one in found if isinstance(one, Answer)), None)
    if some is None:
        raise CannotAnswerError(f"every group of {by!r} is lost in the noise: {found[0]}")
    rows = []
    for (label, _), one in zip(groups, found, strict=True):
        question = f"{some.question} in {by}={label}"
        rows.append(replace(one, question=question) if isinstance(one, Answer) else some.refusing(question, str(one)))
    return AnswerTable(tuple(rows), tuple(label for label, _ in groups), by)


def possible(moments: Moments, half: Floats, there: Floats, base: Estimate, rows: float | None) -> tuple[float, float]:
    """The least and the most that a number's mean can be over a group: that of as many of its smallest, or largest values.

    `base` is the group's share. Feature 0 is the number, `half` is half the width of its units, and `there` is 1 where they are
    meant. The ends are moved outward by LOST standard errors; `rows` are those that the table is a sample of, None for none.
    """
    number, found = moments.features[0], []
    law = moments.shares[number.attribute] * there
    share = min(float(base.value[0] - LOST * np.sqrt(base.variance[0])), float(law.sum()))
    if not share > 0:
        return -np.inf, np.inf
    for turn in (1, -1):
        value = turn * number.scores - half  # the largest values are the smallest of their negatives
        order = np.argsort(value, kind="stable")
        taken = np.clip(share - np.cumsum(law[order]) + law[order], 0.0, law[order])
        last = value[order][np.flatnonzero(taken)[-1]]
        slopes = np.minimum(value - last, 0.0) * there / share
        variance = float(moments.evidence.noise({(number.attribute,): slopes[None]}).variance[0])
        variance += float(law @ slopes**2) / rows if rows else 0.0
        found.append(turn * (float(value[order] @ taken) / share - LOST * np.sqrt(variance)))
    return found[0], found[1]


def around(estimate: Estimate, value: float, confidence: float) -> Estimate:
    """The same interval around another value; it is extended where it does not hold it."""
    half, shift = estimate.half(confidence), value - estimate.value
    below, above = np.maximum(estimate.below + shift, -half), np.maximum(estimate.above - shift, -half)
    return replace(estimate, value=estimate.value + shift, below=below, above=above)


def beside(answer: Answer, rows: float, se: float) -> Answer:
    """The answer, with a word where the synthetic rows lie beyond its interval by more than they vary."""
    if not (rows < answer.low - 2 * se or rows > answer.high + 2 * se):
        return answer
    word = f"the synthetic rows have {shown(rows, answer.se)}, beyond the interval: their fit draws groups towards the average"
    return replace(answer, note=together([answer.note, word]))


def with_square(feature: Feature, there: Floats) -> tuple[Feature, Feature, Feature]:
    """A number, its square and where it is there, each 0 where the number is missing."""
    within = feature.within if feature.within is not None else 0.0
    square = (feature.scores**2 + within) * there
    return replace(feature, within=None), Feature(feature.attribute, square), Feature(feature.attribute, there)


def require_varying(moments: Moments, function: Function, names: tuple[str, str]) -> None:
    """Refuse a correlation of something that does not vary beyond its noise."""
    mean, second = moments.mean, moments.second
    with np.errstate(all="ignore"):
        value = complex(function(mean.astype(np.complex128), second.astype(np.complex128)))
        if len(mean) == 2:
            spread = np.diagonal(second) - mean**2
        else:  # x, x², there, y, y², there: over rows that have both
            there = second[2, 5]
            spread = (
                np.array([second[1, 5], second[2, 4]]) / there - (np.array([second[0, 5], second[2, 3]]) / there) ** 2
            )
    flat = [name for name, own in zip(names, spread, strict=True) if not own > 0]
    if flat or not np.isfinite(value):
        raise CannotAnswerError(
            f"{' and '.join(map(repr, flat or names))}: what was measured does not vary beyond its noise."
        )
    if abs(value.real) > WILD:
        raise CannotAnswerError(
            f"{names[0]!r} and {names[1]!r} vary too little beyond their noise: their correlation would be {value.real:.1f}."
        )


def require_kept(moments: Moments, numbers: Sequence[int], columns: Sequence[str]) -> None:
    """Refuse numbers of which bins lost too much to be held against another column; columns are named by attribute."""
    for i in numbers:
        if not keeps(moments, i):
            other = min(_others(moments, i), key=lambda k: float(moments.kept[k]))
            names = {k: columns[moments.features[k].attribute] for k in (i, other)}
            worst, better = sorted((i, other), key=lambda k: float(moments.kept[k]))
            raise CannotAnswerError(
                f"the bins in which {names[worst]!r} was measured together with other columns keep {moments.kept[worst]:.0%} "
                f"of its variance, and those of {names[better]!r} {moments.kept[better]:.0%}: together less than the {KEPT:.0%} "
                "that this needs. Ask for shares; a release with more rows, a larger ε, a positive δ or fewer columns has "
                "finer bins."
            )


def keeps(moments: Moments, i: int) -> bool:
    """Whether bins keep enough of a number to hold it against the other columns."""
    others = _others(moments, i)
    return not others or bool(moments.kept[i] * moments.kept[others].min() >= KEPT)


def _others(moments: Moments, i: int) -> list[int]:
    """Features of other columns."""
    return [k for k, f in enumerate(moments.features) if f.attribute != moments.features[i].attribute]


def first(holds: Callable[[int], bool], count: int) -> int:
    """The first of 0 … count − 1 for which something holds that goes on to hold; the last where it never does."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def check(confidence: float) -> float:
    """A confidence between 0 and 1."""
    if not isinstance(confidence, Real) or not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    return float(confidence)


def words(estimate: Estimate, note: str = "measured") -> str:
    """How an estimate was made."""
    open_ = bool((estimate.below + estimate.above > 0).any())
    averaged = f"; averaged with {estimate.replicates} replicates, approximate" if estimate.replicates else ""
    return note + estimate.opened * open_ + averaged
