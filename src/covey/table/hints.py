"""What looks doubtful in a drafted schema, in plain words for the person who checks it.

Hints are computed on true data, like the draft they belong to: they are for its owner and never part of a release.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from covey.table.columns import Table
from covey.table.drafting import MOST_CATEGORIES, present
from covey.table.extras import optional
from covey.table.fields import Field
from covey.table.schema import Schema

if TYPE_CHECKING:
    from polars import Series

FEW = 20  # integers of so few different values may be codes
MOST = 0.9  # a share of cells that makes a form

_DOTTED = r"^\d{1,2}\.\s?\d{1,2}\.\s?(\d{4}|\d{2})(\s|$)"
_SLASHED = r"^\d{1,2}/\d{1,2}/(\d{4}|\d{2})(\s|$)"
_COMMA = r"^[+-]?(\d+|\d{1,3}([. ]\d{3})+),\d+$"
_WHOLE = r"^[+-]?(\d+|\d{1,3}([. ]\d{3})+)$"
_PADDED = r"^[+-]?0\d"

IDENTIFIER = "every value is different; it looks like an identifier: leave the column out"


def hints(table: Table, schema: Schema) -> dict[str, str]:
    """For each doubtful field of a draft, what to look at. The schema was drafted from this table, read whole."""
    found = {field.name: _hint(field, table.columns[field.name]) for field in schema.fields}
    return {name: words for name, words in found.items() if words is not None}


def _hint(field: Field, series: Series) -> str | None:
    text = present(series)
    if field.type == "integer":
        return _integer_hint(text)
    if field.type == "string":
        return _string_hint(text, field.other)
    return None


def _string_hint(text: Series, other: str | None) -> str | None:
    n, different = len(text), text.n_unique()
    if n and _share(text, _DOTTED) >= MOST:
        return "it looks like dates, day.month.year: convert them to yyyy-mm-dd"
    if n and _share(text, _SLASHED) >= MOST:
        return "it looks like dates with slashes: convert them to yyyy-mm-dd"
    commas = _share(text, _COMMA) if n else 0.0
    if commas and commas + _share(text, _WHOLE) >= MOST:
        return "it looks like numbers with a decimal comma: write a decimal point"
    if different == n > 3:
        return IDENTIFIER
    if different > MOST_CATEGORIES:
        return f"{different} values; the {MOST_CATEGORIES} most frequent are kept, the rest become {other!r}"
    return None


def _integer_hint(text: Series) -> str | None:
    pl = optional("polars")
    values = np.unique(text.cast(pl.Float64, strict=False).to_numpy())
    n, different = len(text), len(values)
    running = different == n > 3 and values[0] in (0, 1) and values[-1] == values[0] + n - 1
    if running or different == n > FEW:
        return IDENTIFIER
    if text.str.contains(_PADDED).any():
        return "some values start with 0; code or quantity? For codes use type string with an enum"
    if 1 < different <= FEW and different < n:
        return f"{different} different values; code or quantity? For codes use type string with an enum"
    return None


def _share(text: Series, form: str) -> float:
    return float(text.str.contains(form).sum()) / len(text)
