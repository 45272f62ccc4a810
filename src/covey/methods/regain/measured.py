"""What `regain` measured of a table and keeps: noisy means, pairs and tables with the law and the size of their noise.

They are answers of the gate, already paid for, so they may leave beside the centres. An analyst who has them knows what a fit
cannot tell: how far each number may be from the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from covey.core.arrays import Floats, Integers
from covey.core.fit.lowrank import LOW_RANK_COLUMNS
from covey.core.fit.targets import NoisyMoments
from covey.core.fit.terms import Parities
from covey.core.noise.pairlaw import PairLaw
from covey.methods.regain.important import ImportantPairs
from covey.methods.regain.measure import Means
from covey.methods.regain.plan import Plan
from covey.methods.regain.triples import MeasuredTriples


@dataclass(frozen=True)
class MeasuredBits:
    """What was measured of a table of bits.

    Args:
        n: rows or persons, public.
        mechanism: the plan: "means", "matrix", "parities" or "ball".
        pure: whether the noise is that of pure ε.
        means: of all columns, of rows that were not cut.
        moments: means and products of coded rows; None where pairs were not measured, or are too many to be kept.
        cut: whether coded rows were cut to a ball: then `moments` are those of shortened rows.
        row_sums: shares of rows by number of ones, if they were measured.
        parities: products of three and four signs, if they were measured.
    """

    n: int
    mechanism: str
    pure: bool
    means: Means
    moments: NoisyMoments | None = None
    cut: bool = False
    row_sums: Means | None = None
    parities: Parities | None = None

    @classmethod
    def of(cls, n: int, plan: Plan, pure: bool, found: NoisyMoments, row_sums: Means | None = None) -> MeasuredBits:
        """The moments of a plan. Rows that keep declared limits lie inside the ball that these allow: none is cut."""
        cut = found.coding.clips and plan.declared is None
        values, sd = found.uncut if found.uncut is not None else (found.mean + found.coding.middle, found.mean_sd)
        kept = found if len(found.mean) <= LOW_RANK_COLUMNS else None
        return cls(n, plan.mechanism, pure, Means(np.asarray(values), sd), kept, cut, row_sums)


@dataclass(frozen=True)
class MeasuredRanges:
    """Noisy counts of one attribute: of the codes between edges that follow each other; `sds` has the noise on each.

    For a category every code is a range. For a number the ranges are what its tree ended with, a partition of all codes, each
    counted in the rounds in which it stood and averaged over them.
    """

    edges: Integers
    counts: Floats
    sds: Floats


@dataclass(frozen=True)
class MeasuredGroups:
    """Noisy counts of groups of an attribute's categories, besides those of the categories; `of` has the group of each."""

    of: Integers
    counts: Floats
    sd: float


@dataclass(frozen=True)
class MeasuredNumbers:
    """What was measured of a table of categories and numbers.

    Args:
        n: rows or persons, public.
        pure: whether the noise is that of pure ε.
        one_way: noisy counts of every attribute, by ranges of codes.
        cells: edges of an attribute's cells, in codes; a category's cells are its codes.
        maps: cell → bin, for every attribute: pairs were measured of bins.
        law: the noise on an entry of the pair tables, in counts; its family is "none" where pairs were not measured.
        pairs: noisy centred pair tables of the bins, in counts, as one symmetric matrix.
        important: the second measurement of important pairs, if there was one.
        groups: the second measurement of attributes whose categories are in groups.
        triples: noisy tables of the triples that were chosen, if any were; their levels are of cells.
    """

    n: int
    pure: bool
    one_way: list[MeasuredRanges]
    cells: list[Integers]
    maps: list[Integers]
    law: PairLaw
    pairs: Floats
    important: ImportantPairs | None = None
    groups: Mapping[int, MeasuredGroups] = field(default_factory=dict)
    triples: MeasuredTriples | None = None


Measurements = MeasuredBits | MeasuredNumbers
