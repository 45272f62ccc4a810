"""How small a group may be before its means are pulled towards the overall mean: from public numbers alone.

A group with its own mean shows as one strong direction in the covariances of all bins: its category against the bins of a number.
The denoiser keeps directions that stand out of the noise, and takes the others for noise: of those no more than the overall mean
is left. The edge of the noise and the number of bins are public (docs/known-limits.md; checked by benchmarks/groups.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import e, sqrt

from covey.core.numbers.grid import Attribute, NumberGrid
from covey.core.tables.domain import Domain
from covey.methods.regain.memory import expected_bins
from covey.methods.regain.plan import CERTIFICATE_SHARE
from covey.methods.regain.plan_tables import TablePlan, pair_law
from covey.privacy.budget import Budget


@dataclass(frozen=True)
class SmallGroups:
    """So many of n rows, or persons, below which the means of groups are not to be relied on."""

    rows: int
    n: int
    counted: str

    @property
    def sentence(self) -> str:
        """In plain words."""
        if 2 * self.rows > self.n:
            return f"At this budget, means of groups are pulled towards the overall mean, even for half of the {self.counted}."
        share = 100 * self.rows / self.n
        size = f"{self.rows:,} {self.counted} ({f'{share:.0f}' if share >= 1 else f'{share:.1g}'}%)"
        return f"At this budget, means of groups smaller than about {size} are pulled towards the overall mean."


def small_groups(attributes: Sequence[Attribute], n: int, budget: Budget) -> SmallGroups | None:
    """The size, to two digits, at which about half of a group's difference from the overall mean is left.

    The group's mean lies one standard deviation above that of the others. Its shares of B bins of equal mass then differ from
    theirs by √((e − 1)/B) (the χ² distance of two normal laws), times its share of the rows; noise of deviation s on a symmetric
    matrix of D bins ends at 2s√D. None where no column is a number, or there is no other one.
    """
    numbers = [j for j, a in enumerate(attributes) if isinstance(a, NumberGrid)]
    if not numbers or sum(a.size > 1 for a in attributes) < 2:
        return None
    plan, bins = TablePlan(tuple(attributes)), expected_bins(attributes, n, budget)
    merged = Domain(tuple(max(1, round(size)) for size in bins), plan.declared.ordered)
    law = pair_law(merged, budget.part(plan.parts(n, budget, 1 - CERTIFICATE_SHARE)["pairs"]))
    if law.family == "none":
        return SmallGroups(n, n, budget.counted)
    rows = 2 * law.sd * sqrt(merged.total) / sqrt((e - 1) / max(bins[numbers]))
    return SmallGroups(max(1, min(n, int(float(f"{rows:.1e}")))), n, budget.counted)
