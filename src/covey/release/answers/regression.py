"""Correlations and regressions: a formula becomes features, and these a table of coefficients."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import expit

from covey.engine.arrays import Array, Floats
from covey.errors import CannotAnswerError, ParameterError
from covey.release.answers.answer import About
from covey.release.answers.estimates import (
    Estimate,
    Feature,
    Function,
    Moments,
    delta,
    keeps,
    ratio,
    require_kept,
    slopes_of,
    with_errors,
    with_products,
)
from covey.release.answers.follows import matters, sum_of

if TYPE_CHECKING:
    from covey.release.answers.release import Release

Among = Callable[[Array, Array], tuple[Array, Array]]  # from means and products to those of some rows

FAMILIES = ("linear", "logistic")
CONSTANT = "(constant)"
ALIKE = 0.05  # deviations by which the mean of a term may differ among rows that have the outcome: a coefficient moves by less
WILD = 1.5  # a correlation beyond it is noise over noise
RARE = 3.0  # a group within so many deviations of its noise is no term of its own
STEADY = 0.5  # noise over signal of a matrix of regressors, beyond which its inverse is no longer close to linear in the noise
NEWTON = 50  # steps; a logistic regression that has no answer by then runs away
STEEP = 12.0  # log odds: beyond it rows are as good as decided, and the coefficient is not one number
EVENTS = 10  # of the rarer outcome, for each term of a logistic regression: the usual rule
SEPARABLE = (
    "these terms nearly decide the outcome, so no coefficient is a number to rely on. "
    "Leave the strongest out, or use a linear regression."
)


@dataclass(frozen=True)
class Model:
    """A regression: the outcome's feature first, then one for each term."""

    family: str
    features: tuple[Feature, ...]
    terms: tuple[str, ...]
    numbers: dict[int, str]  # features that are numbers, by place
    there: Floats  # 1 for the categories of the outcome that are not missing
    picked: tuple[tuple[str, Floats | None], ...]  # columns, and which of their categories it speaks of

    @property
    def note(self) -> str:
        """How it is fitted, in words."""
        how = "measured" if self.family == "linear" else "one step from the centres to the measured moments"
        if self.there.all():
            return how
        return f"{how}; over rows that have the outcome" + ("" if self.alone else ", which are like the others")

    @property
    def alone(self) -> bool:
        """Whether all terms are of one column: then rows without an outcome can be left out exactly."""
        return len({f.attribute for f in self.features[1:]}) == 1


def read(formula: str, family: str, release: Release) -> Model:
    """The model of a formula such as "cost ~ age + ward"."""
    if family not in FAMILIES:
        raise ParameterError(f"family must be 'linear' or 'logistic', got {family!r}.")
    outcome, terms = names_of(formula)
    columns = release.columns
    column, _, category = outcome.partition("=") if outcome not in release.columns.spoken else (outcome, "", "")
    column, category = column.strip(), category.strip()
    for name in (column, *terms):
        columns.place(name)
    if column in terms or len(set(terms)) < len(terms):
        raise ParameterError("a column can stand in a formula once.")
    if category:
        there = 1 - columns.missing(column)
        feature = Feature(columns.place(column), columns.condition(column, category) * there)
    elif family == "logistic" and columns.field(column).type != "boolean":
        kind = "" if columns.scale(column) is not None else f" Write one of its categories: {column}=… ~ …"
        raise ParameterError(f"a logistic regression needs a yes/no column as outcome, and {outcome!r} is none.{kind}")
    else:
        feature, there = release.number_feature(column)
    features, labels, numbers = [_filled(feature, there, release)], [CONSTANT], {0: outcome}
    for name in terms:
        held = Feature(feature.attribute, there, condition=True) if len(terms) == 1 and not there.all() else None
        for label, found in _terms(name, release):
            if held is not None and found.condition:
                both = delta(release.moments((found, held)), ratio((0, 1), ()), None)
                # Lost in noise among rows that have the outcome.
                if not both.value[0] > RARE * np.sqrt(both.variance[0]):
                    continue
            numbers |= {len(features): name} if label == name and columns.scale(name) is not None else {}
            features.append(found)
            labels.append(label)
    if not labels[1:]:
        raise CannotAnswerError(
            f"only one group of {' or '.join(map(repr, terms))} stands out of the noise: there is nothing to regress on."
        )
    for place in {one.attribute for one in features[1:]}:
        own = [np.ones(len(release.shares[place])), *(one.scores for one in features[1:] if one.attribute == place)]
        if np.linalg.matrix_rank(np.stack(own)) < len(own):  # columns of one category
            raise CannotAnswerError(f"of {', '.join(map(repr, terms))} one follows from others: leave it out.")
    picked = ((column, columns.condition(column, category) if category else None), *((name, None) for name in terms))
    return Model(family, tuple(features), tuple(labels), numbers, there, picked)


def names_of(formula: str) -> tuple[str, list[str]]:
    """The outcome and the columns of a formula; names with spaces or signs stand between backquotes."""
    sides = formula.split("~") if isinstance(formula, str) else []
    if len(sides) != 2:
        raise ParameterError(f"a formula looks like 'cost ~ age + ward', got {formula!r}.")
    names = [[part.strip() for part in re.split(r"\+(?=(?:[^`]*`[^`]*`)*[^`]*$)", side)] for side in sides]
    for name in (name for side in names for name in side if not re.fullmatch("`.+`", name)):
        if not name:
            raise ParameterError(f"a column is missing in {formula!r}: a formula looks like 'cost ~ age + ward'.")
        if re.search(r"[*:^()|-]", name):
            raise ParameterError(
                f"covey reads sums of columns, and {name!r} in {formula!r} is none: interactions and functions were not "
                "measured. Put a name with such signs between backquotes."
            )
    if len(names[0]) != 1:
        raise ParameterError("a formula has one outcome before the ~.")
    (outcome,), terms = ([re.sub("^`(.+)`$", r"\1", name) for name in side] for side in names)
    return outcome, terms


def _terms(name: str, release: Release) -> list[tuple[str, Feature]]:
    """A number or flag is one term, and another where cells are missing; categories are compared with the commonest group."""
    columns, place = release.columns, release.columns.place(name)
    field, evidence = columns.field(name), release.evidence
    groups = columns.groups(name, evidence.bins(place))
    if field.type == "boolean" or (columns.scale(name) is not None and field.type in ("integer", "number")):
        feature, there = release.number_feature(name)
        out, groups = [(name, _filled(feature, there, release))], [own for own in groups if not (own[1] * there).any()]
    else:
        common = int(np.argmax([float(release.shares[place] @ mask) for _, mask in groups]))
        out, groups = [], [own for k, own in enumerate(groups) if k != common]
    shares = evidence.one_way(place)
    for label, mask in groups:
        if float(mask @ shares) > RARE * float(np.sqrt(evidence.noise({(place,): mask[None]}).variance[0])):
            out.append((f"{name}={label}", Feature(place, mask, condition=True)))
    if not out:
        raise CannotAnswerError(f"only one group of {name!r} stands out of the noise. Leave it out.")
    return out


def _filled(feature: Feature, there: Floats, release: Release) -> Feature:
    """A number that is its mean where it is missing."""
    own = release.shares[feature.attribute] * there
    filled = np.where(there > 0, feature.scores, feature.scores @ own / max(own.sum(), 1e-12))
    return Feature(feature.attribute, filled, feature.within)


def fit(model: Model, release: Release, about: About) -> Estimate:
    """Constant and coefficients: over rows that have the outcome, and over persons who have events, each with a random one."""
    outcome, *terms = features = model.features
    partial, complete = [release.partial(f.attribute) for f in features], bool(model.there.all())
    moments = release.moments(features)
    require_kept(moments, list(model.numbers), release.columns.names)
    if complete and not any(partial):
        return _of_all(model, moments, least_squares, release, about)
    given, implied = Feature(outcome.attribute, model.there, condition=True), [True, *(False for _ in terms)]
    if complete:
        other = next(f for f, own in zip(features, partial, strict=True) if own)
        given, implied = Feature(other.attribute, np.ones(len(other.scores)), condition=True), partial
    if not release.moments((given,)).mean[0] > 0:
        raise CannotAnswerError(f"by what was measured no row has {release.columns.names[given.attribute]!r}.")
    alone = dict.fromkeys(f.attribute for f, own in zip(features, implied, strict=True) if not own)
    if len(alone) > 1 and not any(partial):
        require_alike(terms, given, model, release)
        return _of_all(model, release.moments((*features, given)), _scaled, release, about)
    if len(alone) > 1 or (not complete and any(partial[1:]) and not partial[0]):
        raise CannotAnswerError(
            f"{' and '.join(repr(release.columns.names[a]) for a in alone)} would be needed together with whether "
            "a person has events, or the outcome: three things at once were not measured. Take one of these columns at a time."
        )
    held = Feature(outcome.attribute, outcome.scores * model.there, outcome.within)  # 0 where it is missing
    moments, inside = among((held, *terms), given, implied, release)
    require_steady(moments, model.terms[1:], inside)
    if model.family == "logistic":
        return logistic(moments, release.sampled(about), features, given, inside)
    return fit_linear(release, moments, lambda mean, second: least_squares(*inside(mean, second)), about)


def _of_all(model: Model, moments: Moments, function: Function, release: Release, about: About) -> Estimate:
    """Over all rows, those without an outcome included, which are like the others."""
    own = release.moments(model.features)
    require_steady(own, model.terms[1:])
    if model.family == "linear":
        return fit_linear(release, moments, function, about)
    return logistic(own, release.sampled(about))


def _scaled(mean: Array, second: Array) -> Array:
    """Filling missing outcomes with their mean shrinks slopes by the share that is there, the last feature."""
    slopes = least_squares(mean[:-1], second[:-1, :-1])[1:] / mean[-1]
    return np.concatenate([[mean[0] - slopes @ mean[1:-1]], slopes])


def among(
    features: Sequence[Feature], given: Feature, implied: Sequence[bool], release: Release
) -> tuple[Moments, Among]:
    """Moments, and how means and products among rows that `given` picks follow from them; the outcome is 0 for the others.

    Tables of a feature that is `implied` hold such rows alone. Of the others, which are of one column, means and products are
    taken together with `given`: all is of two columns at once.
    """
    k = len(features)
    pairs = [(i, j) for i in range(k) for j in range(i, k) if not (implied[i] or implied[j])]
    products = [
        Feature(f.attribute, f.scores * h.scores, condition=f.condition and h.condition)
        for f, h in ((features[i], features[j]) for i, j in pairs)
    ]
    moments = release.moments((given, *features, *products))

    def inside(mean: Array, second: Array) -> tuple[Array, Array]:
        own = np.where(implied, mean[1 : k + 1], second[0, 1 : k + 1]) / mean[0]
        both = second[1 : k + 1, 1 : k + 1] / mean[0]
        for place, (i, j) in enumerate(pairs, k + 1):
            both[i, j] = both[j, i] = second[0, place] / mean[0]
        return own, both

    return moments, inside


def require_alike(terms: Sequence[Feature], there: Feature, model: Model, release: Release) -> None:
    """Refuse several columns where rows without an outcome differ in one of them: three columns at once were not measured."""
    moments = release.moments((there, *terms))

    def apart(mean: Array, second: Array) -> Array:
        spread = np.sqrt(np.diagonal(second)[1:] - mean[1:] ** 2)
        return np.asarray((second[0, 1:] / mean[0] - mean[1:]) / spread)

    found = delta(moments, apart, None)
    size = np.abs(found.value)
    worst = int(np.argmax(size))
    if size[worst] > ALIKE and size[worst] > 2 * np.sqrt(found.variance[worst]):
        raise CannotAnswerError(
            f"rows without {model.numbers[0]!r} differ from the others in {model.terms[1 + worst]!r}, and three columns at once "
            "were not measured. Take the terms of one column at a time; in Python release.interval(function) gives an "
            "approximate interval."
        )


# Fits.


def fit_linear(release: Release, moments: Moments, function: Function, about: About) -> Estimate:
    """Coefficients of least squares, a function of moments, with their errors."""
    return delta(moments, function, release.sampled(about))


def least_squares(mean: Array, second: Array) -> Array:
    """Constant and coefficients of feature 0 on the others."""
    C = second - np.outer(mean, mean)
    b = np.linalg.solve(C[1:, 1:], C[1:, 0])
    return np.concatenate([[mean[0] - b @ mean[1:]], b])


def require_steady(moments: Moments, names: Sequence[str], among: Among = lambda mean, second: (mean, second)) -> None:
    """Refuse regressors whose covariance drowns in its noise: more terms than the measurements support.

    `among` makes the moments of outcome and regressors from what was measured.
    """

    def covariance(mean: Array, second: Array) -> Array:
        own, both = among(mean, second)
        return np.asarray((both - np.outer(own, own))[1:, 1:])

    mean, second = moments.mean, moments.second
    C = covariance(mean, second)
    if not np.all(np.diagonal(C) > 0):
        flat = names[int(np.argmin(np.diagonal(C)))]
        raise CannotAnswerError(f"the term {flat!r} does not vary beyond its noise. Leave it out.")
    k, size = len(C), np.sqrt(np.diagonal(C))
    _, slopes = slopes_of(lambda m, S: covariance(m, S)[np.triu_indices(k)], mean, second)
    sd = np.sqrt(moments.noise(slopes).variance) / np.outer(size, size)[np.triu_indices(k)]
    values, vectors = np.linalg.eigh(C / np.outer(size, size))
    least, worst = float(values[0]), names[int(np.argmax(np.abs(vectors[:, 0])))]
    if least <= 0 or 2 * np.sqrt(k) * float(np.sqrt(np.mean(sd**2))) > STEADY * least:
        raise CannotAnswerError(
            f"the noise of this release does not support a regression on these {k} terms at once: some of them are too alike, "
            f"or too rare. Leave some out, {worst!r} first; a release with more rows, a larger ε or fewer columns would tell "
            "more."
        )


def logistic(
    moments: Moments,
    rows: float | None,
    features: tuple[Feature, ...] | None = None,
    given: Feature | None = None,
    inside: Among = lambda mean, second: (mean, second),
) -> Estimate:
    """Constant and coefficients of a 0/1 feature 0 on the others: fitted to the centres' rows, moved to the measured moments.

    The fit's influence is projected on features and products; the projection times what was measured beyond the centres'
    moments is the step. With `given` it is among the rows that this feature picks, and `inside` makes their moments from all.
    """
    features = features or moments.features
    F = moments.rows.columns(features)
    chosen = np.ones(len(F), dtype=bool)
    if given is not None:
        chosen = moments.rows.scored(given.attribute, given.scores) > 0
        F = F[chosen]
    beta, influence = fit_logistic(F)
    products = with_products(F)
    at = products.mean(axis=0)
    slopes = np.linalg.lstsq(products - at, influence - influence.mean(axis=0), rcond=1e-8)[0].T
    upper = np.triu_indices(len(features))

    def moved(mean: Array, second: Array) -> Array:
        own, both = inside(mean, second)
        return np.asarray(beta + slopes @ (np.concatenate([own, both[upper]]) - at))

    value, by_moment = slopes_of(moved, moments.mean, moments.second)
    rest = influence - influence.mean(axis=0) - (products - at) @ slopes.T
    sampling = influence.var(axis=0) / (rows * float(chosen.mean())) if rows else 0 * beta
    return with_errors(moments, value, by_moment, sampling + rest.var(axis=0) / len(F))


def fit_logistic(F: Floats) -> tuple[Floats, Floats]:
    """Constant and coefficients of a 0/1 column 0 on the others, and each row's influence on them.

    By Newton's steps; refused where they would not be numbers to rely on.
    """
    y, X, terms = F[:, 0], np.column_stack([np.ones(len(F)), F[:, 1:]]), F.shape[1] - 1
    rarer = min(y.sum(), len(y) - y.sum())
    if rarer < EVENTS * terms:
        raise CannotAnswerError(
            f"the outcome is too rare for {terms} terms: the rarer one is {rarer / len(y):.2%} of the rows, and "
            f"{EVENTS * terms / len(y):.2%} are needed. Use fewer terms, or a linear regression."
        )
    beta = np.zeros(X.shape[1])
    for _ in range(NEWTON):
        q = expit(X @ beta)
        hessian = X.T @ (X * (q * (1 - q))[:, None]) / len(y)
        score = X * (y - q)[:, None]
        try:
            inverse = np.linalg.inv(hessian)
        except np.linalg.LinAlgError:
            raise CannotAnswerError(SEPARABLE) from None
        step = inverse @ score.mean(axis=0)
        beta = beta + step
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()) or not np.all(np.isfinite(beta)):
            break
    else:
        raise CannotAnswerError(SEPARABLE)
    if not np.all(np.isfinite(beta)) or np.abs(X @ beta).max() > STEEP:
        raise CannotAnswerError(SEPARABLE)
    return beta, score @ inverse


# Correlations.


@dataclass(frozen=True)
class Side:
    """A number as a sum of features, where it is there, and whether it follows from other columns."""

    features: tuple[Feature, ...]
    there: Floats
    follows: bool = False


def _added(release: Release, name: str) -> Side:
    """A number by itself, or what one that follows from others is the sum of."""
    whole = sum_of(release.columns, name)
    if whole is None:
        feature, there = release.number_feature(name)
        return Side((feature,), there)
    if any(len(term) > 1 for term in whole.terms):
        raise CannotAnswerError(
            f"{name!r} follows from a product of other columns: with another column these are three at once, and two were "
            "measured. In Python release.interval(function) gives an approximate interval."
        )
    parts = [part for (part,) in whole.terms]
    lost = any(matters(release, part.attribute, part.there) for part in parts)
    features = tuple(
        Feature(part.attribute, part.middle, part.half**2 / 3 if part.half.any() else None) for part in parts
    )
    if len(parts) == 1:
        return Side(features, parts[0].there)
    return Side(features, np.array([not lost]), True)


def correlate(release: Release, x: str, y: str, about: About) -> Estimate:
    """Pearson's correlation of two numbers or flags, over rows that have both."""
    sides = [_added(release, name) for name in (x, y)]
    complete = all(one.there.all() and not release.partial(one.features[0].attribute) for one in sides)
    if not complete and any(one.follows for one in sides):
        raise CannotAnswerError(
            f"{x!r} or {y!r} follows from other columns, and some rows have no value: three columns at once were not measured. "
            "In Python release.interval(function) gives an approximate interval."
        )
    features = [feature for one in sides for feature in one.features]
    if not complete:  # a number, its square and where it is there, each 0 where the number is missing
        features = []
        for one in sides:
            feature, there = one.features[0], one.there
            square = (feature.scores**2 + (0.0 if feature.within is None else feature.within)) * there
            features += [replace(feature, within=None), Feature(feature.attribute, square)]
            features.append(Feature(feature.attribute, there, condition=True))
    x_places, y_places = slice(0, len(sides[0].features)), slice(len(sides[0].features), None)
    moments = release.moments(tuple(features))
    numbers = range(len(features)) if complete else (0, 3)
    if not all(keeps(moments, i) for i in numbers):  # what bins hide is bounded
        features = [replace(feature, bounded=not feature.condition) for feature in features]
        moments = release.moments(tuple(features))

    def covariance(mean: Array, second: Array) -> tuple[Array, Array, Array]:
        """The covariance and both variances; over rows that have both numbers."""
        if complete:
            C = second - np.outer(mean, mean)
            return C[x_places, y_places].sum(), C[x_places, x_places].sum(), C[y_places, y_places].sum()
        n = second[2, 5]
        one, two = second[0, 5] / n, second[2, 3] / n
        return second[0, 3] / n - one * two, second[1, 5] / n - one * one, second[2, 4] / n - two * two

    def correlation(mean: Array, second: Array) -> Array:
        both, *spread = covariance(mean, second)
        return np.asarray(both / np.sqrt(spread[0] * spread[1]))

    with np.errstate(all="ignore"):
        spread = covariance(moments.mean, moments.second)[1:]
        value = complex(correlation(moments.mean.astype(np.complex128), moments.second.astype(np.complex128)))
    flat = [name for name, own in zip((x, y), spread, strict=True) if not own > 0]
    if flat or not np.isfinite(value):
        named = " and ".join(map(repr, flat or (x, y)))
        raise CannotAnswerError(f"{named}: what was measured does not vary beyond its noise.")
    if abs(value.real) > WILD:
        raise CannotAnswerError(
            f"{x!r} and {y!r} vary too little beyond their noise: their correlation would be {value.real:.1f}."
        )
    return delta(moments, correlation, release.sampled(about))
