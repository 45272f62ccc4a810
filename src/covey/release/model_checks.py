"""Whether the numbers of a bundle can be those of a model: shares that sum to 1, ranges in order, noise that has a size.

A stranger may have written them, with checksums to match. Each refusal is a ValueError, which readers put into words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import numpy as np

from covey.engine.arrays import Array, Floats
from covey.engine.measurement import Measurement
from covey.engine.models.laws import CodeLaw, RowLaw
from covey.engine.models.persons.law import PersonsLaw
from covey.engine.noise.law import LAWS
from covey.engine.numbers.grid import Measure
from covey.engine.query import OWN, Every, View

ROUNDING = 1e-6  # by which sums of written shares may miss 1
LARGEST = 2.0**63  # noise is drawn on integers of 64 bits
# What measurements are about: rows and their ranks, persons and their events, and numbers that follow from a unit.
ABOUT_UNITS = (
    *("row", "rank", "person", "across", "event", "step", "two"),
    *("squared length", "number of ones", "score", OWN),
)
MOST_COLUMNS = 5  # of one table


def check_said(said: Mapping[str, Any], columns: int) -> None:
    """What measurements.json says of one measurement, before any array is looked at."""
    _require(
        said["of"] in ABOUT_UNITS and said["view"] in get_args(View), "a table is about nothing that covey measures"
    )
    _require(type(said["cut"]) is bool and type(said["total"]) is bool, "cut and total must be true or false")
    _require(said["law"] in LAWS, "noise of an unknown law")
    _require(isinstance(said["purpose"], str), "its purpose must be text")
    _require(said["sd"] is None or _is_size(said["sd"]), "the noise of a table has no size")
    _require(_is_size(said["per"]) and said["per"] > 0, "the values of a table have no unit")
    _require(type(said["factors"]) is int, "factors must be a place in the list")
    if isinstance(said["sets"], Mapping):
        p, degree = said["sets"]["every"]
        whole = type(p) is int and type(degree) is int
        _require(whole and 1 <= degree <= MOST_COLUMNS and 0 < p <= columns, "its tables are of other columns")


def check_measurement(m: Measurement) -> None:
    """One measurement: its tables are of the columns that it describes, and its noise has a size."""
    sets, sds = m.query.sets, np.asarray(m.sd, dtype=np.float64)
    if not isinstance(sets, Every):
        named = {a for own in sets for a in own}
        _require(
            all(type(a) is int for a in named) and named <= set(m.query.factors), "its tables are of other columns"
        )
        _require(all(1 <= len(own) <= MOST_COLUMNS for own in sets), "its tables are of no columns")
    _require(sds.ndim == 0 or sds.shape == m.values.shape, "the noise of a table has other places than its values")
    _require(bool(((sds >= 0) & (sds < LARGEST)).all()), "the noise of a table has no size")


def check_law(law: RowLaw | PersonsLaw) -> None:
    """What rows, or persons with events, are drawn from."""
    if isinstance(law, PersonsLaw):
        check_shares(law.sequences.counts, "numbers of events")
        for model in law.sequences.models:
            _require(0 <= model.sticky <= 1, "a chain of events is kept with no probability")
            for name in ("persons", "kinds", "events", "chain"):
                _require(bool((getattr(model, name) >= -ROUNDING).all()), "a share is negative")
    else:
        check_shares(law.cloud.weights, "centres")
        points, sizes = law.cloud.points, law.domain.sizes if isinstance(law, CodeLaw) else ()
        _require(bool(((points >= -ROUNDING) & (points <= 1 + ROUNDING)).all()), "a centre lies outside its body")
        for block in np.split(points, np.cumsum(sizes)[:-1], axis=1) if sizes else ():
            _require(_near_one(block.sum(axis=1)), "a centre lies outside its body")
    if isinstance(law, CodeLaw):
        _check_ranks_and_levels(law)


def check_cells(measure: Measure, edges: Array) -> None:
    """Cells of a number, between these edges, and the shares of its ranges."""
    end = int(edges[-1])
    _require(edges[0] >= 0 and _grows(edges) and end <= measure.grid.size, "cells of a number are out of order")
    check_shares(measure.share, "ranges")
    ranges = len(measure.start) == len(measure.stop) == len(measure.share) and measure.start[0] >= 0
    inside = ranges and bool((measure.start < measure.stop).all()) and int(measure.stop.max()) <= end
    _require(inside and _grows(measure.start), "ranges of a number are out of order")


def check_shares(shares: Floats, what: str) -> None:
    """Shares that are not negative and sum to 1."""
    _require(
        shares.ndim == 1 and bool((shares >= -ROUNDING).all()) and _near_one(shares.sum()), f"{what} have no shares"
    )


def check_spectrum(values: Sequence[float], edge: float, dimension: float, most: int) -> None:
    """Leading eigenvalues of a covariance of so many columns at most, which lie between 0 and 1."""
    whole = dimension == int(dimension) and len(values) <= dimension <= most
    _require(whole and all(abs(x) < LARGEST for x in (edge, *values)), "the spectrum is of another covariance")


def _check_ranks_and_levels(law: CodeLaw) -> None:
    sizes, total = law.domain.sizes, sum(law.domain.sizes)
    _require(law.score is None or law.score.shape == (total,), "ranks are of other categories")
    for names in () if law.triples is None else law.triples.names:
        _require(len(set(names)) == len(names) and max(names) < len(sizes), "a triple is of other columns")
    for a, levels in () if law.triples is None else law.triples.levels.items():
        whole = levels.dtype.kind in "iu" and levels.shape == (sizes[a],)
        _require(whole and 0 <= levels.min() <= levels.max() < sizes[a], "levels are of other categories")


def _require(holds: Any, why: str) -> None:
    if not holds:
        raise ValueError(why)


def _is_size(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value < LARGEST


def _near_one(sums: Any) -> bool:
    return bool((np.abs(np.asarray(sums) - 1) <= ROUNDING * 10).all())


def _grows(edges: Array) -> bool:
    return bool(edges.dtype.kind in "iu" and (edges[1:] > edges[:-1]).all())
