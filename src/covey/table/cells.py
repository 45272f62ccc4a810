"""Cells as they are written: one way from anything to text, and from text to numbers, days and seconds.

White space around a cell is dropped; a number has a decimal point and may have an exponent, and true and false are 1 and 0; dates
and times are ISO 8601, and what has an offset is taken to UTC. Each cell is read by itself: none changes how another is read.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from covey.core.arrays import Floats
from covey.table.columns import text
from covey.table.extras import optional

if TYPE_CHECKING:
    from polars import Series

MISSING_WORDS = frozenset(("", "nan", "null"))

_EPOCH = datetime(1970, 1, 1)
_CLOCK = re.compile(r"(?:\d{4}-\d\d-\d\d[T ])?(\d{1,2}):(\d\d)(?::(\d\d)(?:\.\d+)?)?", re.ASCII)


def as_text(series: Series) -> Series:
    """Cells as text, as `columns.text` writes each: what one cell means must not depend on the type that others need."""
    pl = optional("polars")
    dtype = series.dtype
    if dtype == pl.String:
        return series
    if dtype.is_integer() or dtype in (pl.Boolean, pl.Categorical, pl.Enum):
        written: Series = series.cast(pl.String)
        return written
    known = {value: text(value) for value in series.unique().to_list()}
    spelled: Series = pl.Series(series.name, [known.get(value) for value in series.to_list()], dtype=pl.String)
    return spelled


def parse_numbers(words: Series) -> Floats:
    """Numbers of text, NaN for what is none; true and false are 1 and 0, as they are in a column of flags."""
    pl = optional("polars")
    out = floats(words.cast(pl.Float64, strict=False))
    odd = np.isnan(out)
    if odd.any():
        flags = words.filter(pl.Series(odd)).str.to_lowercase()
        out[odd] = np.select(
            [(flags == "true").fill_null(False), (flags == "false").fill_null(False)], [1.0, 0.0], np.nan
        )
    return out


def floats(series: Series) -> Floats:
    """A column of numbers that may be written to, NaN for holes."""
    pl = optional("polars")
    return np.array(series.cast(pl.Float64).fill_null(float("nan")).to_numpy(), dtype=np.float64)


def parse_times(words: Series, times: bool) -> Floats:
    """Days or seconds since 1970 of ISO 8601 text, NaN for what is none."""
    pl = optional("polars")
    out = np.full(len(words), np.nan)
    shapes = [(10, "%Y-%m-%d", 86400.0 if times else 1.0)]
    if times:
        shapes += [(19, "%Y-%m-%dT%H:%M:%S", 1.0), (19, "%Y-%m-%d %H:%M:%S", 1.0)]
    # The usual shapes are read by the frame library; what is left, one by one.
    for length, shape, unit in shapes:
        fixed = words.set(words.str.len_bytes() != length, None)
        if fixed.null_count() == len(fixed):
            continue
        if length == 10:
            read = floats(fixed.str.to_date(shape, strict=False).to_physical()) * unit
        else:
            read = np.floor(floats(fixed.str.to_datetime(shape, strict=False, time_unit="ms").to_physical()) / 1000)
        out = np.where(np.isnan(out), read, out)
    odd = np.isnan(out) & words.is_not_null().to_numpy()
    if odd.any():
        odd_words, places = np.unique(words.filter(pl.Series(odd)).to_numpy(), return_inverse=True)
        out[odd] = np.array([iso(word, times) for word in odd_words])[places]
    return out


def parse_clock(words: Series) -> Floats:
    """Seconds since midnight of times of day, 8:05 or 08:05:30; NaN for what is none. Of a date and time, the time."""
    known = {word: _clock(word) for word in words.unique().drop_nulls().to_list()}
    return np.array([known.get(word, float("nan")) for word in words.to_list()], dtype=np.float64)


def _clock(word: str) -> float:
    found = _CLOCK.fullmatch(word)
    if found is None:
        return float("nan")
    hours, minutes, seconds = int(found[1]), int(found[2]), int(found[3] or 0)
    return float(3600 * hours + 60 * minutes + seconds) if hours < 24 and max(minutes, seconds) < 60 else float("nan")


def iso(word: str, times: bool) -> float:
    """Days or seconds since 1970 of one ISO 8601 text, NaN if it is none."""
    try:
        when = datetime.fromisoformat(word)
        if when.tzinfo is not None:
            when = when.astimezone(UTC)
        when = when.replace(tzinfo=None)
    except (ValueError, OverflowError):
        return float("nan")
    since = when - _EPOCH
    return float(since.days * 86400 + since.seconds) if times else float(since.days)
