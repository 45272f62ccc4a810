"""What a table breaks of a schema, in words for the person who owns it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.core.arrays import Integers
from covey.table.attributes import ColumnLog, Grid
from covey.table.cells import as_text, iso
from covey.table.columns import spelled, unguarded
from covey.table.computed_columns import constant_column, derived_column
from covey.table.extras import optional
from covey.table.fields import Field
from covey.table.repair import RuleBook
from covey.table.sources import read_table, spelling_in

if TYPE_CHECKING:
    from polars import Series


def problems(book: RuleBook, table: Any) -> list[str]:
    """What a table breaks of the schema, field by field and rule by rule."""
    known, fields = book.domain.names, {field.name: field for field in book.domain.fields}
    table = read_table(table, dialect=book.domain.dialect)
    columns = {name if name in known else unguarded(name): series for name, series in table.columns.items()}
    for name in [] if table.plain else columns:
        if name in fields:
            columns[name] = spelled(columns[name], spelling_in(fields[name], table.origin))
    absent = [f"column {name!r} is missing" for name in known if name not in columns]
    if absent:
        return absent
    found = [f"column {name!r} is not in the schema" for name in columns if name not in known]
    cells = {}
    for name, attribute in book.attributes.items():
        seen = ColumnLog()
        cells[name] = attribute.read(columns[name], seen)
        if not attribute.field.required:
            seen.missing = 0
        for word in ("missing", "unknown", "clipped", "unparseable"):
            if count := getattr(seen, word):
                found.append(f"column {name!r} has {count} cells that are {word}")
        if isinstance(attribute, Grid) and attribute.field.type != "date":
            read, there = attribute.parse(columns[name]), attribute.has_value(cells[name])
            if not np.array_equal(read[there], attribute.value(cells[name])[there]) and not seen.clipped:
                found.append(f"column {name!r} has values with more decimals than declared")
    for field in book.domain.fields:
        if field.constant is not None and not _is_constant(field, columns[field.name]):
            found.append(f"column {field.name!r} is not the declared constant")
    for field in book.domain.fields:
        if field.derived is not None and (count := _differs(book, field, columns, cells)):
            found.append(f"column {field.name!r} is not what it is derived from in {count} rows")
    for rule in book.rules:
        if count := int(np.count_nonzero(book.broken(rule, cells))):
            found.append(f"{count} rows break the rule {rule.to_dict()}")
    return found


def _differs(book: RuleBook, field: Field, columns: Mapping[str, Series], cells: Mapping[str, Integers]) -> int:
    """In how many rows a derived column is not the function of the others that it is declared to be."""
    assert field.derived is not None  # nosec B101 # for the type checker
    pl = optional("polars")
    given = {name: book.attributes[name].render(cells[name]) for name in field.derived.bases if name in cells}
    if len(given) < len(field.derived.bases):
        return 0  # derived from a derived column: that one is compared
    wanted = derived_column(field, given, book.domain.fields)
    own = as_text(columns[field.name])
    if field.type in ("integer", "number"):
        one, other = own.cast(pl.Float64, strict=False), wanted.cast(pl.Float64)
        same = (one - other).abs().fill_null(np.inf) <= 1e-9 * other.abs().fill_null(0.0) + 1e-12
    else:
        same = (own == as_text(wanted)).fill_null(False)
    empty = (own.is_null() | (own.str.strip_chars() == "")) & wanted.is_null()
    return int((~(same | empty)).sum())


def _is_constant(field: Field, column: Series) -> bool:
    texts = as_text(column).drop_nulls().unique().to_list()
    wanted = as_text(constant_column(field, 1)).to_list()[0]
    same = [t for t in texts if t.strip() and wanted not in (t, unguarded(t))]
    try:
        same = [t for t in same if wanted is None or field.type != "number" or float(t) != float(wanted)]
    except ValueError:
        return False
    if field.type == "datetime" and wanted is not None:
        same = [t for t in same if iso(t, True) != iso(wanted, True)]
    return not same and (wanted is None or (column.null_count() == 0 and all(t.strip() for t in texts)))
