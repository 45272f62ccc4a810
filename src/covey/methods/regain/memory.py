"""How much memory a release needs, from public numbers alone: the one estimate that plans state and refusals rest on.

Rows stream, so what grows with them is bounded: parts in flight, kept rows, and one part of synthetic rows. What grows with the
columns are matrices over bins or flags, and centres over all categories. The constants are fitted to whole releases:
benchmarks/memory.py, docs/benchmarks/memory.csv.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from covey.core.arrays import Floats, require_memory
from covey.core.draw.balanced import REFINE_CATEGORIES
from covey.core.fit.copula import ANGLES, ROOM
from covey.core.fit.lowrank import LOW_RANK_CATEGORIES, LOW_RANK_COLUMNS
from covey.core.numbers.cells import CELLS
from covey.core.numbers.grid import Attribute, Category, NumberGrid
from covey.methods.regain.plan import CERTIFICATE_SHARE
from covey.methods.regain.plan_tables import TablePlan, most_bins
from covey.methods.regain.tables import CENTRES
from covey.privacy.budget import Budget

LIBRARIES = 220 << 20  # Python and its libraries, once a table is read and a report written
PART = 1 << 18  # rows that are held at once, while they are read or drawn: longer tables come in parts
KEPT = 1 << 28  # bytes of encoded rows that are kept; a byte holds eight flags, a code takes two
FLAG, CODE = 30, 60  # bytes of a cell of a part, as code, as value and as the report counts it


def refuse_too_large(attributes: Sequence[Attribute], n: int, budget: Budget) -> None:
    """Refuse, before anything is charged or allocated, a table whose release needs more memory than there is."""
    wide = sum(attribute.size for attribute in attributes if isinstance(attribute, Category))
    what = f"a table of {len(attributes):,} columns with {wide:,} categories"
    require_memory(release_memory(attributes, n, budget), what, "Use fewer columns or categories.")


def release_memory(attributes: Sequence[Attribute], n: int, budget: Budget) -> int:
    """Bytes that a release of n rows takes at its peak, libraries included. More rows never take less."""
    q, held = len(attributes), min(n, PART)
    if all(isinstance(a, Category) and a.size == 2 for a in attributes):
        return int(LIBRARIES + min(KEPT, n * q / 8) + max(FLAG * q * held, flag_matrices(q)))
    wide = sum(min(a.size, CELLS) if isinstance(a, NumberGrid) else a.size for a in attributes)
    drawing = CODE * q * held + (20 * wide**2 if wide <= REFINE_CATEGORIES else 0)  # with pair tables to be matched
    fitting = bin_matrices(attributes, n, budget) + 5 * 8 * CENTRES * wide
    return int(LIBRARIES + min(KEPT, 2 * n * q) + max(drawing, fitting))


def flag_matrices(p: int) -> float:
    """Sums of a batch, the sums so far and their total, several denoisers; beyond LOW_RANK_COLUMNS a basis; and the centres."""
    matrices = (160 if p <= LOW_RANK_COLUMNS else 40) * p**2
    return matrices + 40 * 4 * 600 * min(p, 1000) + 40 * 4 * 200 * max(p - 1000, 0)


def bin_matrices(attributes: Sequence[Attribute], n: int, budget: Budget) -> float:
    """Covariances of all pairs of bins, as several denoisers hold them, and tables of two numbers at many correlations."""
    bins = expected_bins(attributes, n, budget)
    total = float(bins.sum())
    tied = bins[[isinstance(a, NumberGrid) or a.ordered for a in attributes]]
    tables = (
        ANGLES * float(tied.sum() ** 2 - (tied**2).sum()) if any(isinstance(a, NumberGrid) for a in attributes) else 0
    )
    return (130 if total > LOW_RANK_CATEGORIES else 250) * total**2 + 8 * tables * (tables <= ROOM)


def expected_bins(attributes: Sequence[Attribute], n: int, budget: Budget) -> Floats:
    """Bins of each attribute whose pairs are measured: as fine as noise and plan allow."""
    plan = TablePlan(tuple(attributes))
    shares = plan.parts(n, budget, 1 - CERTIFICATE_SHARE)
    ordered = 1 / plan.bin_mass(n, budget.part(shares["pairs"]))
    most, found = most_bins(plan.declared), []
    for a, sd in zip(attributes, plan.deviations(budget.part(shares["histograms"])), strict=True):
        if isinstance(a, NumberGrid) or a.ordered:
            found.append(min(a.size, ordered))
        else:
            found.append(min(a.size, most, max(2.0, n / (3 * sd))))
    return np.array(found)
