"""What a table breaks of a schema, in words for the person who owns it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.libraries import pl
from covey.table.attributes import ColumnLog, Grid
from covey.table.columns import as_text, iso, spelled, spellings, unguarded
from covey.table.fields import Field
from covey.table.repair import RuleBook
from covey.table.sources import read_table


def constant_column(field: Field, rows: int) -> pl.Series:
    """A column that holds the field's declared constant."""
    value = None if field.constant is None else field.constant.value
    one = pl.Series(field.name, [value], dtype=_dtype(field))
    return _as_written(field, one).new_from_index(0, rows)


def derived_column(field: Field, columns: Mapping[str, pl.Series], fields: Sequence[Field] = ()) -> pl.Series:
    """A column that follows from others, in the field's type; an expression is rounded to its precision.

    `fields` are those of the schema: a special value of theirs is no number, even where it looks like one.
    """
    assert field.derived is not None  # nosec B101 # for the type checker
    found = field.derived.compute(columns, {own.name: own.special for own in fields if own.special})
    if isinstance(found, list):
        typed = [None if v is None else field.value(v, "derived value") for v in found]
        return _as_written(field, pl.Series(field.name, typed, _dtype(field)))
    if field.type in ("date", "datetime"):  # in seconds
        days = field.type == "date"
        moments = np.floor(found / 86400) if days else np.floor(found) * 1000
        past = pl.Series(field.name, np.where(np.abs(moments) < 2.0**47, moments, np.nan)).fill_nan(None)
        return past.cast(pl.Int32 if days else pl.Int64).cast(_dtype(field))
    decimals = 0 if field.type != "number" else field.decimals
    values = found if decimals is None else np.round(found, decimals)
    column = pl.Series(field.name, np.where(np.abs(values) < 2.0**53, values, np.nan)).fill_nan(None)
    return _as_written(field, column.cast(_dtype(field)))


def _as_written(field: Field, column: pl.Series) -> pl.Series:
    """A column of yes and no in the field's own words or numbers; any other as it is."""
    if field.type != "boolean" or field.written == "boolean":
        return column
    no, yes = field.flags
    return (
        column.cast(pl.Int64)
        if field.written == "integer"
        else column.replace_strict({False: no, True: yes}, return_dtype=pl.String)
    )


def _dtype(field: Field) -> Any:
    """The type of a field's column."""
    dtypes = {"boolean": pl.Boolean, "string": pl.String, "integer": pl.Int64, "number": pl.Float64, "date": pl.Date}
    dtypes["time"] = pl.Time
    return dtypes.get(field.type, pl.Datetime("ms"))


def problems(book: RuleBook, table: Any) -> list[str]:
    """What a table breaks of the schema, field by field and rule by rule."""
    known = book.domain.names
    table = read_table(table, dialect=book.domain.dialect)
    columns = {name if name in known else unguarded(name): series for name, series in table.columns.items()}
    written = {} if table.plain else spellings(book.domain, table.origin)
    columns |= {name: spelled(columns[name], own) for name, own in written.items() if name in columns}
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


def _differs(book: RuleBook, field: Field, columns: Mapping[str, pl.Series], cells: Mapping[str, Integers]) -> int:
    """In how many rows a derived column is not the function of the others that it is declared to be."""
    assert field.derived is not None  # nosec B101 # for the type checker
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


def _is_constant(field: Field, column: pl.Series) -> bool:
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
