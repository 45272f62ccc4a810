"""What a caller is told, from public numbers alone, before a fit that will mostly give noise."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from covey.errors import CoveyWarning
from covey.methods.paper import PaperParameters
from covey.methods.persons.plan import few_persons
from covey.methods.regain.predict import mostly_noise, predicted_error, predicted_misplaced, remedies
from covey.methods.regain.reals import plan_reals
from covey.privacy.budget import Budget

CALLER = 5  # frames up: advice is shown where `fit` was called


def warn_of_noisy_shares(n: int, sizes: Sequence[int], budget: Budget) -> None:
    """For bits and categories: the rows that are predicted to have to move."""
    if mostly_noise(predicted_error(sizes, n, budget)):
        out = 100 * predicted_misplaced(sizes, n, budget)
        warnings.warn(
            f"with n = {n}, {len(sizes)} columns and epsilon = {float(budget.epsilon):g} about {out:.2g}% of the rows "
            "would have to move in an average two-column table. The result will be mostly noise. "
            f"{remedies(sizes, n, budget).capitalize()}.",
            CoveyWarning,
            stacklevel=CALLER,
        )


def warn_of_numbers(n: int, p: int, budget: Budget) -> None:
    """For real records: which measurements the plan leaves out, because they would be noise."""
    if plan_reals(n, p, budget).mechanism in ("means", "margins"):
        warnings.warn(
            f"with n = {n}, {p} columns and epsilon = {float(budget.epsilon):g} products of two columns would be noise. "
            f"Columns are measured one by one, and are independent in the synthetic rows. More {budget.counted}, a larger "
            "epsilon, a positive delta or fewer columns help.",
            CoveyWarning,
            stacklevel=CALLER,
        )


def warn_of_few_persons(n: int, budget: Budget) -> None:
    """For persons with events: links that will be noise."""
    if few_persons(n, budget):
        warnings.warn(few_persons(n, budget), CoveyWarning, stacklevel=CALLER)


def warn_of_the_papers_noise(par: PaperParameters) -> None:
    """Say that the paper's constants will give noise."""
    # Noise on a coordinate of a damped mean, in units where the coordinate of a Boolean record is 0 or 1.
    sd = par.means_noise * float(np.sqrt(2 * par.p))
    if sd > 0.5:
        warnings.warn(
            f"with n = {par.n}, p = {par.p} and these parameters the paper's noise on a block mean has standard "
            f"deviation {sd:.2g} for columns between 0 and 1. The result will be mostly noise. Use method='regain', or more "
            "rows, a larger epsilon or fewer columns.",
            CoveyWarning,
            stacklevel=CALLER - 1,
        )
