"""Shorter intervals for regressions: what was measured, averaged with what the centres say, whose error replicates tell.

A regression inverts measured moments, which magnifies their noise; the centres' own coefficients have less of it and an error
that only running the mechanism again tells, approximately. A coefficient for which that error is the larger one keeps its
measured interval, so that no interval becomes longer. Shares, means and correlations gain nothing: the centres are no
better there than the measurements (docs/proofs/intervals.md, "Averaging with replicates").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import stdtrit

from covey.answers.answer import About
from covey.answers.estimates import Estimate, Function, logistic_coefficients
from covey.answers.moments import Feature, Moments, Rows
from covey.answers.release import Release
from covey.answers.replicates import FEWEST, each, mechanism_of
from covey.answers.source import streams_of
from covey.core.arrays import Array, Floats
from covey.entropy import Streams
from covey.errors import CannotAnswerError, whole_number
from covey.methods.model import Fitted

CENTRES_ROWS = 50_000  # balanced rows that a function of centres is read off: their own error is small beside the noise
LARGE = 200_000  # rows; of more, a table is as good as its population, and its own rows are not kept

Statistic = Callable[[Rows], Floats]  # of rows of units


@dataclass(frozen=True)
class Averaged(Estimate):
    """An estimate averaged with that of the centres where `taken`; `rms` is that of the replicates' errors."""

    rms: Floats
    replicates: int
    taken: Array

    @property
    def note(self) -> str:
        """It rests on replicates."""
        return f"; averaged with {self.replicates} replicates, approximate"

    def half(self, confidence: float) -> Floats:
        """The mean of both half-widths: 2·se of the average is se of the measured one plus rms."""
        reach = float(stdtrit(self.replicates, (1 + confidence) / 2))
        se = np.where(self.taken, 2 * np.sqrt(self.variance) - self.rms, np.sqrt(self.variance))
        own = Estimate(self.value, se**2, self.fourth, self.below, self.above).half(confidence)
        return np.asarray(np.where(self.taken, (own + reach * self.rms) / 2, own))


@dataclass(frozen=True)
class Run:
    """A replicate: its table, unless that is large, and rows of the centres that were fitted to it, in units."""

    table: Rows | None
    rows: Rows


@dataclass(frozen=True)
class Sharper(Release):
    """A release whose regressions are averaged with replicates: `release.sharpened()`."""

    runs: tuple[Run, ...] = ()

    @cached_property
    def own_rows(self) -> Rows:
        """Balanced rows of the centres."""
        return self.balanced(self.fitted, Streams.from_seed(0).child("sharper"))

    def balanced(self, fitted: Fitted, streams: Streams) -> Rows:
        """Balanced rows of what was fitted, or persons each with one event."""
        return self.of_table(fitted.law.draw(max(CENTRES_ROWS, min(self.privacy.n, LARGE)), streams), streams)

    def of_table(self, table: Any, streams: Streams) -> Rows:
        """A replicate's own table in units."""
        return self.with_event(table, streams.postprocessing("one event")) if self.several else self.in_units(table)

    def fit_linear(self, moments: Moments, function: Function, about: About) -> Estimate:
        """Coefficients of least squares."""

        def of(rows: Rows) -> Floats:
            F = rows.columns(moments.features)
            second = F.T @ F / len(F) + np.diag([self._inside(f) for f in moments.features])
            return np.atleast_1d(function(F.mean(axis=0).astype(complex), second.astype(complex)).real)

        return self._averaged(super().fit_linear(moments, function, about), of, about)

    def fit_logistic(self, moments: Moments, about: About) -> Estimate:
        """Coefficients of a logistic regression."""

        def of(rows: Rows) -> Floats:
            return logistic_coefficients(rows.columns(moments.features))

        return self._averaged(super().fit_logistic(moments, about), of, about)

    def _inside(self, f: Feature) -> float:
        return 0.0 if f.within is None else float(self.shares[f.attribute] @ f.within)

    def _averaged(self, own: Estimate, statistic: Statistic, about: About) -> Estimate:
        """The average with the centres' answer; the measured one alone where theirs is no number."""
        try:
            with np.errstate(all="ignore"):
                truth = statistic(self.own_rows)
                errors = np.array(
                    [statistic(run.rows) - self._truth(run, truth, statistic, about) for run in self.runs]
                )
        except (CannotAnswerError, np.linalg.LinAlgError):
            return own
        rms = np.sqrt(np.mean(errors**2, axis=0))
        if not np.all(np.isfinite(rms)) or not np.all(np.isfinite(truth)):
            return own
        se, reach = np.sqrt(own.variance), float(stdtrit(len(self.runs), 0.975) / stdtrit(np.inf, 0.975))
        taken = reach * rms < se  # where the centres are further off, their part would make the interval longer
        if not taken.any():
            return own
        value, sd = np.where(taken, (own.value + truth) / 2, own.value), np.where(taken, (se + rms) / 2, se)
        return Averaged(value, sd**2, own.fourth, own.below, own.above, rms, len(self.runs), taken)

    def _truth(self, run: Run, truth: Floats, statistic: Statistic, about: About) -> Floats:
        return statistic(run.table) if about == "table" and run.table is not None else truth


def sharpened(release: Release, count: int, seed: int | None = None) -> Sharper:
    """The release with so many replicates: it takes as long as so many fits."""
    whole_number(count, "replicates", FEWEST, "Fewer say next to nothing.")
    kept = (release.parts, release.described, release.fitted, release.privacy, release.version, release.own)
    found = Sharper(*kept)
    mechanism = mechanism_of(found)

    def run(streams: Streams) -> Run:
        table, fitted = mechanism.refit(streams)
        rows, size = found.balanced(fitted, streams.child("rows")), found.privacy.n
        return Run(_small(found.of_table(table, streams)) if size <= LARGE else None, _small(rows))

    runs = tuple(each(mechanism, count, streams_of(seed), run))
    return Sharper(*kept, runs)


def _small(rows: Rows) -> Rows:
    """The same rows in the smallest integers that hold them, -1 among them."""
    codes: Array = rows.codes
    return Rows(codes.astype(np.min_scalar_type(-1 - int(codes.max(initial=0)))))
