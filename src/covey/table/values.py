"""Public values of a schema, read in the type of their field."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np

Value = bool | int | float | str | date | datetime | time


def typed(type_: str, value: Any) -> Value | None:
    """A public value in its type; None if it is not one."""
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if type_ == "string":
        return value if isinstance(value, str) else None
    if type_ in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            return None
        if not math.isfinite(value) or (type_ == "integer" and value != int(value)):
            return None
        return int(value) if isinstance(value, int | np.integer) or type_ == "integer" else float(value)
    try:
        if type_ == "time":
            moment_of_day = time.fromisoformat(value.strip()) if isinstance(value, str) else value
            return moment_of_day.replace(microsecond=0, tzinfo=None) if isinstance(moment_of_day, time) else None
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if type_ == "date":
            return value.date() if isinstance(value, datetime) else value if isinstance(value, date) else None
        if isinstance(value, datetime):
            moment: datetime = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return moment.replace(microsecond=0)
        return datetime(value.year, value.month, value.day) if isinstance(value, date) else None
    except (ValueError, OverflowError):
        return None


def is_label(text: str) -> bool:
    """Whether a category survives being written to a file and read again."""
    if not text or text != text.strip() or "\0" in text or "\r" in text:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def as_written(value: Any) -> Decimal:
    """The number as it is written: 0.1 means one tenth, not its nearest float."""
    return Decimal(repr(value))


def below(a: Any, b: Any) -> bool:
    """Whether one value of an ordered type lies below another."""
    return bool(a < b)
