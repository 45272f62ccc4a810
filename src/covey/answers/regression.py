"""Regressions: a formula becomes features, and these a table of coefficients."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from covey.answers.estimates import Estimate, least_squares, logistic, require_steady
from covey.answers.estimates import delta as by_delta
from covey.answers.moments import Feature
from covey.core.arrays import Array, Floats
from covey.errors import CannotAnswerError, ParameterError

if TYPE_CHECKING:
    from covey.answers.release import Release

FAMILIES = ("linear", "logistic")
CONSTANT = "(constant)"
RARE = 3.0  # a group within so many deviations of its noise is no term of its own


@dataclass(frozen=True)
class Model:
    """A regression: the outcome's feature first, then one for each term."""

    family: str
    features: tuple[Feature, ...]
    terms: tuple[str, ...]
    numbers: dict[int, str]  # features that are numbers, by place
    there: Floats  # 1 for the categories of the outcome that are not missing

    @property
    def note(self) -> str:
        """How it is fitted, in words."""
        how = "measured" if self.family == "linear" else "one step from the centres to the measured moments"
        return how if self.there.all() else f"{how}; rows without outcome are taken to be like the others"


def read(formula: str, family: str, release: Release) -> Model:
    """The model of a formula such as "cost ~ age + ward"."""
    if family not in FAMILIES:
        raise ParameterError(f"family must be 'linear' or 'logistic', got {family!r}.")
    outcome, terms = names_of(formula)
    columns = release.columns
    for name in (outcome, *terms):
        columns.place(name)
    if outcome in terms or len(set(terms)) < len(terms):
        raise ParameterError("a column can stand in a formula once.")
    if family == "logistic" and columns.field(outcome).type != "boolean":
        raise ParameterError(f"a logistic regression needs a flag as outcome, and {outcome!r} is none.")
    feature, there = release.number_feature(outcome)
    own = release.shares[feature.attribute] * there
    filled = np.where(there > 0, feature.scores, feature.scores @ own / max(own.sum(), 1e-12))
    features, labels, numbers = [Feature(feature.attribute, filled, feature.within)], [CONSTANT], {0: outcome}
    for name in terms:
        for label, found in _terms(name, release):
            numbers |= {len(features): name} if label == name and columns.scale(name) is not None else {}
            features.append(found)
            labels.append(label)
    return Model(family, tuple(features), tuple(labels), numbers, there)


def names_of(formula: str) -> tuple[str, list[str]]:
    """The outcome and the columns of a formula; names with spaces or signs stand between backquotes."""
    sides = formula.split("~")
    if len(sides) != 2:
        raise ParameterError(f"a formula looks like 'cost ~ age + ward', got {formula!r}.")
    names = [[_name(part, formula) for part in re.split(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)", side)] for side in sides]
    if len(names[0]) != 1:
        raise ParameterError("a formula has one outcome before the ~.")
    return names[0][0], names[1]


def _name(text: str, formula: str) -> str:
    name = text.strip()
    if name.startswith("`") and name.endswith("`") and len(name) > 2:
        return name[1:-1]
    if not name or re.search(r"[*:^()|-]", name):
        raise ParameterError(
            f"covey reads sums of columns, and {name!r} in {formula!r} is none: interactions and functions were not measured. "
            "Put a name with such signs between backquotes."
        )
    return name


def _terms(name: str, release: Release) -> list[tuple[str, Feature]]:
    """A number or flag is one term, and another where cells are missing; categories are compared with the commonest group."""
    columns, place = release.columns, release.columns.place(name)
    field, evidence = columns.field(name), release.evidence
    groups = columns.groups(name, evidence.bins(place))
    if field.type == "boolean" or (columns.scale(name) is not None and field.type in ("integer", "number")):
        feature, there = release.number_feature(name)
        own = release.shares[place] * there
        filled = np.where(there > 0, feature.scores, feature.scores @ own / max(own.sum(), 1e-12))
        out = [(name, Feature(place, filled, feature.within))]
        apart = [(label, mask) for label, mask in groups if not (mask * there).any()]
        return out + [
            (f"{name}={label}", Feature(place, m, condition=True))
            for label, m in apart
            if _stands_out(place, m, release)
        ]
    shares = [float(release.shares[place] @ mask) for _, mask in groups]
    common = int(np.argmax(shares))
    out = [
        (f"{name}={label}", Feature(place, mask, condition=True))
        for k, (label, mask) in enumerate(groups)
        if k != common and _stands_out(place, mask, release)
    ]
    if not out:
        raise CannotAnswerError(f"only one group of {name!r} stands out of the noise. Leave it out.")
    return out


def _stands_out(place: int, mask: Floats, release: Release) -> bool:
    noise = release.evidence.noise({place: mask[None]}, {})
    return float(mask @ release.evidence.one_way(place)) > RARE * float(np.sqrt(noise.variance[0]))


def fit(model: Model, release: Release, rows: float | None) -> Estimate:
    """Constant and coefficients."""
    features: Sequence[Feature] = model.features
    moments = release.moments(tuple(features))
    release.require_kept(moments, model.numbers)
    require_steady(moments)
    if model.family == "logistic":
        return logistic(moments, rows)
    if model.there.all():
        return by_delta(moments, least_squares, rows)
    whole = release.moments((*features, Feature(features[0].attribute, model.there, condition=True)))

    def scaled(mean: Array, second: Array) -> Array:
        """Filling missing outcomes with their mean shrinks slopes by the share that is there."""
        found = least_squares(mean[:-1], second[:-1, :-1])
        slopes = found[1:] / mean[-1]
        return np.concatenate([[mean[0] - slopes @ mean[1:-1]], slopes])

    return by_delta(whole, scaled, rows)
