"""Public values of a schema: read in their type, and spelled as a file spells them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np

from covey.errors import ParameterError
from covey.table.dialects import Spelling, check_format, check_marks

Value = bool | int | float | str | date | datetime | time
USUAL_FORMATS = ("default", "any")  # Frictionless' words for "as usual"


def read_spelling(data: Mapping[str, Any], name: Any) -> Spelling:
    """Frictionless' decimalChar, groupChar and format of a field."""
    decimal, thousands, form = data.get("decimalChar", "."), data.get("groupChar", ""), data.get("format", "default")
    for word, value in (("decimalChar", decimal), ("groupChar", thousands), ("format", form)):
        if not isinstance(value, str):
            raise ParameterError(f"{word} of field {name!r} must be text, got {value!r}.")
    check_marks(decimal, thousands)
    if form in USUAL_FORMATS:
        return Spelling(decimal, thousands)
    if data.get("type") not in ("date", "datetime", "time"):
        raise ParameterError(f"field {name!r} has format {form!r}; only dates and times have one. Leave it out.")
    check_format(form, f"format of field {name!r}")
    return Spelling(decimal, thousands, form)


def write_spelling(spelling: Spelling) -> dict[str, str]:
    """The same words again, but for those that say what is usual."""
    plain = Spelling()
    said = {"decimalChar": spelling.decimal, "groupChar": spelling.thousands, "format": spelling.date_format}
    usual = {"decimalChar": plain.decimal, "groupChar": plain.thousands, "format": None}
    return {word: value for word, value in said.items() if value is not None and value != usual[word]}


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


def number(value: Any) -> Decimal:
    """The number as it is written: 0.1 means one tenth, not its nearest float."""
    return Decimal(repr(value))
