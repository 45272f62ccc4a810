"""Small steps that answers share: what is refused, how an estimate is described, and frames of the library that is wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from covey.answers.answer import FRAMES, Answer, AnswerTable
from covey.answers.estimates import Estimate, Function
from covey.answers.moments import Feature, Moments
from covey.core.arrays import Floats
from covey.errors import CannotAnswerError, ParameterError
from covey.table.frames import FrameForm

KEPT = 0.85  # part of the variance that bins must keep of two columns together: benchmarks/intervals.py
LOST = 3.0  # a group whose share is smaller than so many deviations of its noise is lost in it
WILD = 1.5  # a correlation beyond it is noise over noise


class LostInNoiseError(CannotAnswerError):
    """A group is too small to be told from noise."""


def by_group(by: str, groups: Iterable[tuple[str, Floats]], ask: Callable[[Floats], Answer]) -> AnswerTable:
    """One answer for each group, by its mask; groups that are lost in the noise are left out."""
    found = []
    for label, mask in groups:
        try:
            answer = ask(mask)
        except LostInNoiseError:
            continue
        found.append((label, replace(answer, question=f"{answer.question} in {by}={label}")))
    if not found:
        raise CannotAnswerError(f"every group of {by!r} is lost in the noise.")
    labels, rows = zip(*found, strict=True)
    return AnswerTable(rows, labels, by)


def with_square(feature: Feature, there: Floats) -> tuple[Feature, Feature, Feature]:
    """A number, its square and where it is there, each 0 where the number is missing."""
    within = feature.within if feature.within is not None else 0.0
    square = (feature.scores**2 + within) * there
    return replace(feature, within=None), Feature(feature.attribute, square), Feature(feature.attribute, there)


def require_varying(moments: Moments, function: Function) -> None:
    """Refuse a correlation of something that does not vary beyond its noise."""
    with np.errstate(all="ignore"):
        value = function(moments.mean.astype(np.complex128), moments.second.astype(np.complex128))
    if not np.isfinite(value) or abs(complex(value).imag) > 0 or abs(complex(value).real) > WILD:
        raise CannotAnswerError("one of the two columns does not vary beyond its noise.")


def first(holds: Callable[[int], bool], count: int) -> int:
    """The first of 0 … count − 1 for which something holds that goes on to hold; the last where it never does."""
    low, high = 0, count - 1
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle + 1, high)
    return low


def check(confidence: float) -> float:
    """A confidence between 0 and 1."""
    if not 0 < confidence < 1:
        raise ParameterError(f"confidence must lie between 0 and 1, got {confidence!r}.")
    return float(confidence)


def words(estimate: Estimate, note: str = "measured") -> str:
    """How an estimate was made."""
    open_ = bool((estimate.below + estimate.above > 0).any())
    return note + "; wider where bins are cut" * open_ + estimate.note


def in_library(columns: Any, library: str) -> Any:
    """Columns as a frame of the library that is wanted."""
    if library not in FRAMES:
        raise ParameterError(f"library must be one of {', '.join(FRAMES)}, got {library!r}.")
    return FrameForm("pyarrow" if library == "arrow" else library).restore(columns)
