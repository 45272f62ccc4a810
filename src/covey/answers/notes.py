"""What an answer says besides its numbers: which values limits have moved, and which categories are several in one.

A release knows a number only within its limits, and a category only if it is listed. An answer that rests on a limit where a
noticeable share of the rows lies, or on the category of all that is not listed, is about the table so changed.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from covey.answers.columns import Columns, Conditions
from covey.core.arrays import Floats
from covey.errors import CannotAnswerError
from covey.release.charts import percent

NOTICED = 0.01  # of the values that a question is about: fewer at a limit are what any limit has


def together(*parts: Iterable[str]) -> str:
    """Sentences, each once."""
    return "; ".join(dict.fromkeys(sentence for part in parts for sentence in part if sentence))


def of_column(
    columns: Columns, name: str, mask: Floats | None = None, closed: tuple[bool, bool] = (True, True)
) -> list[str]:
    """Of the categories of a column that a mask picks, or of all.

    An end of a range that is not `closed` goes on beyond the limit: what was moved to it belongs there.
    """
    scale, shares = columns.scale(name), columns.shares.get(columns.place(name))
    if scale is None:
        field = columns.field(name)
        if field.other is None or (mask is not None and not mask[list(field.labels).index(field.other)]):
            return []
        rows = (
            "" if shares is None else f", {percent(float(shares[list(field.labels).index(field.other)]))} of the rows"
        )
        return [f"{field.other!r} of {name!r} holds all values that the schema does not list{rows}"]
    if shares is None:
        return []
    own, used = shares[scale.bins], np.ones(len(scale.starts)) if mask is None else mask[scale.bins]
    least, whole = NOTICED * float(own @ used), max(float(own.sum()), 1e-12)
    low, high = (bool(closed[k] and used[-k] > 0 and own[-k] >= max(least, 1e-9)) for k in (0, 1))
    if not (low or high):
        return []
    first, last = (scale.shown(step) for step in (scale.grid.axis.low, scale.grid.axis.high))
    where = f"beyond {first} to {last}" if low and high else f"below {first}" if low else f"above {last}"
    to = "these limits" if low and high else first if low else last
    wide = any(on and scale.ends[-k] > scale.starts[-k] for k, on in ((0, low), (1, high)))
    ends = {0: low, len(own) - 1: high}  # one and the same where both limits lie in one bin
    share = percent(sum(float(own[k]) for k, on in ends.items() if on) / whole)
    any_ = "" if columns.field(name).learned else ", if any,"
    lie = (
        f"in whose bin{'s' * (low and high)} {share} of all values lie" if wide else f"where {share} of all values lie"
    )
    return [f"values of {name!r} {where}{any_} were moved to {to}, {lie}"]


def of_conditions(columns: Columns, wanted: Conditions | None, but: str | None = None) -> list[str]:
    """Of the values that conditions name, those on one column left out."""
    out = []
    for name, value in ((name, value) for name, value in (wanted or {}).items() if name != but):
        several = value if isinstance(value, list | set | frozenset) else [value]
        for one in several:
            ends = one if isinstance(one, tuple) and len(one) == 2 else (one, one)
            closed = (ends[0] is not None, ends[1] is not None)
            out += of_column(columns, name, columns.condition(name, one), closed)
    return out


def of_all(columns: Columns) -> list[str]:
    """Of every column of a release."""
    out = []
    for name in columns.askable:
        try:
            out += of_column(columns, name)
        except CannotAnswerError:  # measured by its distance from another column
            continue
    return out
