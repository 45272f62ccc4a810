"""Estimates that are functions of means and mean products, by the delta method; and smooth estimators by one step.

The slopes of a function are exact: it is evaluated at a point moved by an imaginary amount too small to change its value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, ndtri, stdtrit

from covey.answers.moments import Feature, Moments, with_products
from covey.core.arrays import Array, Floats
from covey.errors import CannotAnswerError

Function = Callable[[Array, Array], Array]  # of means and of products
Among = Callable[[Array, Array], tuple[Array, Array]]  # from means and products to those of some rows

STEP = 1e-30  # imaginary, so that nothing is lost by subtraction
STEADY = 0.5  # noise over signal of a matrix of regressors, beyond which its inverse is no longer close to linear in the noise
NEWTON = 50  # steps; a logistic regression that has no answer by then runs away
STEEP = 12.0  # log odds: beyond it rows are as good as decided, and the coefficient is not one number
EVENTS = 10  # of the rarer outcome, for each term of a logistic regression: the usual rule


@dataclass(frozen=True)
class Estimate:
    """Several numbers: value, variance of their error with its fourth cumulant, and how far bounds leave them open."""

    value: Floats
    variance: Floats
    fourth: Floats
    below: Floats
    above: Floats
    opened: str = field(default="; wider where bins are cut", kw_only=True)  # what is said of bounds that leave it open
    rms: Floats | None = (
        None  # of the errors of replicates, where the value is an average with the centres' own; else NaN
    )
    replicates: int = 0

    @property
    def sd(self) -> Floats:
        """The standard error; of an average the mean of both."""
        own = np.sqrt(self.variance)
        return own if self.rms is None else np.where(np.isnan(self.rms), own, (own + self.rms) / 2)

    def half(self, confidence: float) -> Floats:
        """The half-width of the interval: a normal quantile, longer where the noise has longer tails (Cornish and Fisher).

        Of an average it is the mean of both half-widths.
        """
        z = float(ndtri((1 + confidence) / 2))
        kurtosis = np.divide(self.fourth, self.variance**2, out=np.zeros_like(self.fourth), where=self.variance > 0)
        own = np.asarray((z + max(z**3 - 3 * z, 0.0) / 24 * kurtosis) * np.sqrt(self.variance))
        if self.rms is None:
            return own
        other = float(stdtrit(self.replicates, (1 + confidence) / 2)) * self.rms
        return np.where(np.isnan(self.rms), own, (own + other) / 2)


def slopes_of(function: Function, mean: Floats, second: Floats) -> tuple[Floats, Floats]:
    """The function's values, and their slopes in the means and in the upper triangle of the products."""
    k, upper = len(mean), np.triu_indices(len(mean))
    at = np.concatenate([mean, second[upper]]).astype(np.complex128)

    def value(point: Array) -> Array:
        matrix = np.zeros((k, k), dtype=np.complex128)
        matrix[upper] = point[k:]
        matrix.T[upper] = point[k:]
        return np.atleast_1d(function(point[:k], matrix))

    scale = np.maximum(np.abs(at), 1e-3)
    moved = [value(at + 1j * STEP * s * e).imag / (STEP * s) for s, e in zip(scale, np.eye(len(at)), strict=True)]
    return value(at).real, np.array(moved).T


def delta(moments: Moments, function: Function, rows: float | None) -> Estimate:
    """A function of unbiased moments; `rows` is how many the sampling error is divided by, None for none."""
    value, slopes = slopes_of(function, moments.mean, moments.second)
    return _with_errors(moments, value, slopes, moments.sampling(slopes) / rows if rows else 0 * value)


def _with_errors(moments: Moments, value: Floats, slopes: Floats, sampling: Floats) -> Estimate:
    noise = moments.noise(slopes)
    below, above, gap = moments.unknown(slopes)
    return Estimate(value, noise.variance + sampling + gap**2, noise.fourth, below, above)


# Functions of moments.


def ratio(top: tuple[int, ...], bottom: tuple[int, ...]) -> Function:
    """One mean or product over another; () is 1."""

    def of(mean: Array, second: Array, places: tuple[int, ...]) -> Array:
        return np.asarray(1.0 if not places else mean[places[0]] if len(places) == 1 else second[places])

    return lambda mean, second: of(mean, second, top) / of(mean, second, bottom)


def correlation(mean: Array, second: Array) -> Array:
    """Of features 0 and 1."""
    C = second - np.outer(mean, mean)
    return np.asarray(C[0, 1] / np.sqrt(C[0, 0] * C[1, 1]))


def paired_correlation(mean: Array, second: Array) -> Array:
    """Among rows that have both: features are x, x², there, y, y², there, each 0 where its column is missing."""
    n = second[2, 5]
    x, y = second[0, 5] / n, second[2, 3] / n
    spread = (second[1, 5] / n - x * x) * (second[2, 4] / n - y * y)
    return np.asarray((second[0, 3] / n - x * y) / np.sqrt(spread))


def least_squares(mean: Array, second: Array) -> Array:
    """Constant and coefficients of feature 0 on the others."""
    C = second - np.outer(mean, mean)
    b = np.linalg.solve(C[1:, 1:], C[1:, 0])
    return np.concatenate([[mean[0] - b @ mean[1:]], b])


def as_measured(mean: Array, second: Array) -> tuple[Array, Array]:
    """Moments as they are: over all rows."""
    return mean, second


def require_steady(moments: Moments, names: Sequence[str], among: Among = as_measured) -> None:
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


# Logistic regression.


@dataclass(frozen=True)
class Picked:
    """The features of a regression among the rows that one more feature picks, and how their moments follow from all."""

    features: tuple[Feature, ...]
    given: Feature
    among: Among


def logistic(moments: Moments, rows: float | None, picked: Picked | None = None) -> Estimate:
    """Constant and coefficients of a 0/1 feature 0 on the others: fitted to the centres' rows, moved to the measured moments.

    The fit's influence is projected on features and products; the projection times what was measured beyond the centres'
    moments is the step.
    """
    features, among = (moments.features, as_measured) if picked is None else (picked.features, picked.among)
    F = moments.rows.columns(features)
    chosen = np.ones(len(F), dtype=bool)
    if picked is not None:
        chosen = moments.rows.scored(picked.given.attribute, picked.given.scores) > 0
        F = F[chosen]
    beta, influence = _fit_logistic(F[:, 0], np.column_stack([np.ones(len(F)), F[:, 1:]]), len(features) - 1)
    products = with_products(F)
    at = products.mean(axis=0)
    slopes = np.linalg.lstsq(products - at, influence - influence.mean(axis=0), rcond=1e-8)[0].T
    upper = np.triu_indices(len(features))

    def moved(mean: Array, second: Array) -> Array:
        own, both = among(mean, second)
        return np.asarray(beta + slopes @ (np.concatenate([own, both[upper]]) - at))

    value, by_moment = slopes_of(moved, moments.mean, moments.second)
    rest = influence - influence.mean(axis=0) - (products - at) @ slopes.T
    sampling = influence.var(axis=0) / (rows * float(chosen.mean())) if rows else 0 * beta
    return _with_errors(moments, value, by_moment, sampling + rest.var(axis=0) / len(F))


def logistic_coefficients(F: Floats) -> Floats:
    """Constant and coefficients of a 0/1 column 0 on the others."""
    return _fit_logistic(F[:, 0], np.column_stack([np.ones(len(F)), F[:, 1:]]), F.shape[1] - 1)[0]


def _fit_logistic(y: Floats, X: Floats, terms: int) -> tuple[Floats, Floats]:
    """Coefficients by Newton's steps, and each row's influence on them; refused where they would not be numbers to rely on."""
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
        if np.abs(step).max() < 1e-10 * (1 + np.abs(beta).max()):
            break
        if not np.all(np.isfinite(beta)):
            break
    else:
        raise CannotAnswerError(SEPARABLE)
    if not np.all(np.isfinite(beta)) or np.abs(X @ beta).max() > STEEP:
        raise CannotAnswerError(SEPARABLE)
    return beta, score @ inverse


SEPARABLE = (
    "these terms nearly decide the outcome, so no coefficient is a number to rely on. "
    "Leave the strongest out, or use a linear regression."
)
