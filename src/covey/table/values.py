"""Public values of a schema, read in the type of their field."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np

from covey.errors import ParameterError

FALSE_TRUE = ("false", "true")
BITS = ("0", "1")

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


def read_flags(data: Mapping[str, Any], name: Any) -> tuple[str, str]:
    """Frictionless' falseValues and trueValues of a boolean field, one word each."""
    given = data.get("falseValues"), data.get("trueValues")
    if given == (None, None):
        return FALSE_TRUE
    false, true = (words if isinstance(words, list) and len(words) == 1 else [None] for words in given)
    if data.get("type") != "boolean" or not isinstance(false[0], str) or not isinstance(true[0], str):
        raise ParameterError(
            f"field {name!r} has falseValues {given[0]!r} and trueValues {given[1]!r}. A boolean field may have both, a list of "
            "one text each."
        )
    return false[0], true[0]


def flag_words(flags: tuple[str, str]) -> dict[str, Any]:
    """The same for a schema's file, where they are not the usual ones."""
    return {} if flags == FALSE_TRUE else {"falseValues": [flags[0]], "trueValues": [flags[1]]}


def is_label(text: str) -> bool:
    """Whether a category survives being written to a file and read again."""
    if not text or text != text.strip() or "\0" in text or "\r" in text:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, and no code that would lose a leading zero."""
    return re.fullmatch(r"[+-]?(0|[1-9]\d{0,14})(\.0+)?", text, re.ASCII) is not None


def as_written(value: Any) -> Decimal:
    """The number as it is written: 0.1 means one tenth, not its nearest float."""
    return Decimal(repr(value))


def below(a: Any, b: Any) -> bool:
    """Whether one value of an ordered type lies below another."""
    return bool(a < b)
