"""Derived columns: a public function of other columns, never measured, computed from each synthetic row.

Under "covey" of a field, "derived" is one of

    {"from": ["area"], "map": {"25-00503": 4381.2, …}}            a public list; for several columns, lists of cells and the value
    {"from": ["area"], "table": "density.csv"}                    the same in a CSV file beside the schema, with these columns
    {"from": ["income"], "edges": [0, 1000, …], "labels": ["low", …]}     classes [edge, next edge); "map" may name special values
    {"expression": "weight / (height / 100) ** 2"}                numbers, + - * / // % **, comparisons, and min, max, abs, floor,
                                                                  ceil, round, days(from, to), years(from, to), and year, month,
                                                                  day, hour of a date; dates count in seconds, and
                                                                  names that are no words stand in quotes

Where a column that it is computed from is missing, or a list has no entry, the result is missing; a list of lists may have an
entry for missing cells, null. "expected" is written in the same way, without a file: what a measured column usually is, with
exceptions.

A file is read by whoever loads a schema from its own file, and its cells are public from then on. A schema may come from somebody
else: a file must lie beside it, is said when it is read, and is refused where it is the very table that is to be released. A
bundle holds the list, never the name of a file.
"""

from __future__ import annotations

import ast
import keyword
import operator
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Floats
from covey.engine.relations.formulas import DAY, calendar
from covey.errors import CoveyWarning, ParameterError, briefly, counted
from covey.libraries import pl
from covey.paths import file_beside
from covey.tables.document import is_number, refuse_unknown

Compute = Callable[[Mapping[str, Floats]], Any]

LEADING = r"^\s*(-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)"  # a number at the beginning of a text
MOST_LETTERS = 10_000  # of an expression, and how deep it may be nested: each row is computed by it
DEEPEST = 200  # nested, as a sum of so many columns is: a level takes two of the thousand calls that Python allows
TRIALS = np.array(
    [np.nan, -1e308, -(2.0**63), -1.5, 0.0, 1e-308, 1.0, 2.0**63, 1e308]
)  # what columns may hold, and more
MOST_ENTRIES = 1_000_000  # of a public list; it stands in every bundle
WORDS = ("from", "map", "table", "edges", "labels", "expression")
_OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}


def _years(first: Floats, last: Floats) -> Floats:
    """Whole years from one day to another, as ages are counted."""
    (m1, d1), (m2, d2) = calendar(first), calendar(last)
    return np.floor((m2 - m1 - (d2 < d1)) / 12)


_FUNCTIONS: dict[str, tuple[int, Callable[..., Any]]] = {
    "min": (2, np.minimum),
    "max": (2, np.maximum),
    "abs": (1, np.abs),
    "floor": (1, np.floor),
    "ceil": (1, np.ceil),
    "round": (1, np.rint),
    "year": (1, lambda seconds: np.floor(calendar(seconds)[0] / 12) + 1970),
    "month": (1, lambda seconds: calendar(seconds)[0] % 12 + 1),
    "day": (1, lambda seconds: calendar(seconds)[1]),
    "hour": (1, lambda seconds: np.floor(seconds % DAY / 3600)),
    "days": (2, lambda first, last: np.floor(last / DAY) - np.floor(first / DAY)),
    "years": (2, _years),
}


@dataclass(frozen=True)
class Derived:
    """How a column follows from others."""

    bases: tuple[str, ...]
    entries: tuple[tuple[tuple[str | None, ...], Any], ...] = ()
    edges: tuple[float, ...] = ()
    labels: tuple[Any, ...] = ()
    expression: str = ""
    file: Path | None = field(default=None, compare=False)  # that the entries were read from

    @classmethod
    def from_dict(cls, data: Any, name: Any, folder: Path | None = None) -> Derived | None:
        """Read what stands under "derived" of a field; `folder` is that of the schema's file, without it no list is read."""
        if data is None:
            return None
        if not isinstance(data, Mapping):
            way_out = 'Give an object with "from" and "map", "edges" or "expression".'
            raise _wrong(name, f"is derived by {data!r}", way_out)
        refuse_unknown(data, WORDS, f"derived of field {name!r}")
        expression = data.get("expression", "")
        if expression:
            if set(data) - {"from", "expression"}:
                raise _wrong(name, "has an expression and more", "Use an expression or a list, not both.")
            return cls(_tried(*_read(expression, name), name), expression=expression)
        bases = data.get("from", ())
        bases = (bases,) if isinstance(bases, str) else tuple(bases)
        if not bases or not all(isinstance(base, str) for base in bases):
            raise _wrong(name, "is derived, but no source is named", 'Name the columns under "from".')
        edges, labels = tuple(data.get("edges", ())), tuple(data.get("labels", ()))
        if bool(edges) != bool(labels) or (edges and len(labels) != len(edges) - 1):
            raise _wrong(name, f"has {len(edges)} edges and {len(labels)} labels", "Give one label less than edges.")
        if edges and (len(bases) > 1 or not all(map(is_number, edges)) or any(a >= b for a, b in pairwise(edges))):
            raise _wrong(name, "has wrong edges", "Give growing numbers, for one column.")
        file, listed = None, data.get("map", {})
        if "table" in data:
            file, listed = _read_table(data, bases, name, folder)
        entries = _entries(listed, len(bases), name)
        if not entries and not edges:
            raise _wrong(name, "is derived, but without a rule", 'Give "map", "table", "edges" or "expression".')
        return cls(bases, entries, edges, labels, file=file)

    def to_dict(self, folder: Path | None = None) -> dict[str, Any]:
        """As it stands in a file: with its list, or in the folder that its own file lies in with the name of that."""
        if self.expression:
            return {"expression": self.expression}
        out: dict[str, Any] = {"from": list(self.bases)}
        if folder is not None and self.file is not None and folder.resolve() == self.file.parent.resolve():
            out["table"] = self.file.name
        elif self.entries and len(self.bases) == 1 and all(key[0] is not None for key, _ in self.entries):
            out["map"] = {key[0]: value for key, value in self.entries}
        elif self.entries:
            out["map"] = [[*key, value] for key, value in self.entries]
        if self.edges:
            out |= {"edges": list(self.edges), "labels": list(self.labels)}
        return out

    @property
    def values(self) -> tuple[Any, ...]:
        """All values that a list or classes can give."""
        return (*(value for _, value in self.entries), *self.labels)

    def evaluate(self, known: Mapping[str, Floats]) -> Floats:
        """The expression, for columns of numbers, with NaN for missing ones."""
        with np.errstate(all="ignore"):
            return np.asarray(_read(self.expression, "")[1](known), dtype=np.float64)

    def compute(self, columns: Mapping[str, pl.Series], special: Mapping[str, Sequence[str]]) -> list[Any] | Floats:
        """The value of every row: numbers (NaN for missing) of an expression, else entries of the list (None for missing).

        `special` are words of columns that stand where there is no number.
        """
        if self.expression:
            known = {name: _floats(columns[name], special.get(name, ())) for name in self.bases}
            return np.broadcast_to(self.evaluate(known), len(columns[self.bases[0]])).copy()
        listed = dict(self.entries)
        texts = [columns[name].cast(pl.String).to_list() for name in self.bases]
        out = [listed.get(key) for key in zip(*texts, strict=True)]
        if self.edges:
            values = _floats(columns[self.bases[0]], special.get(self.bases[0], ()))
            place = np.searchsorted(np.array(self.edges), values, side="right") - 1
            for i in np.flatnonzero(np.isfinite(values) & (place >= 0) & (place < len(self.labels))):
                out[i] = self.labels[place[i]] if out[i] is None else out[i]
        return out


def _read_table(
    data: Mapping[str, Any], bases: Sequence[str], name: Any, folder: Path | None
) -> tuple[Path, list[list[Any]]]:
    """The file beside a schema that has a field's list, and its rows: they are public from here on, which is said."""
    if folder is None:
        way_out = 'Load the schema from its own file, beside the table, or write the list as "map".'
        raise _wrong(name, "is derived from a file, and here none is read", way_out)
    if "map" in data:
        raise _wrong(name, 'has "map" and "table"', "Give one of them.")
    file = file_beside(folder.absolute(), data["table"], f"field {name!r} is derived from a table, and")
    rows = _rows_of(file, [*bases, name])
    warnings.warn(
        f"field {name!r} is derived from {file.name}: {counted(len(rows), 'row')} of that file become public, and stand in every "
        "bundle. Check that they are public knowledge.",
        CoveyWarning,
        stacklevel=2,
    )
    return file, rows


def _rows_of(file: Path, wanted: Sequence[str]) -> list[list[Any]]:
    """The cells of a public list: those of the columns that a field is derived from, and of the field itself."""
    name = wanted[-1]
    try:
        # The bytes, not the name: in a name polars would follow stars and addresses.
        frame = pl.read_csv(file.read_bytes(), infer_schema_length=0, n_rows=MOST_ENTRIES + 1)
    except (OSError, pl.exceptions.PolarsError) as error:
        what = f"is derived from {file.name}, which cannot be read: {type(error).__name__}"
        raise _wrong(name, what, "Give a CSV file.") from None
    for column in wanted:
        if column not in frame.columns:
            what = f"is derived from {file.name}, which has no column {column!r}"
            raise _wrong(name, what, "Name its columns alike.")
    if frame.height > MOST_ENTRIES:
        raise _wrong(name, f"is derived from {file.name}, which is too long", f"At most {MOST_ENTRIES:,} rows.")
    numbers = frame[name].cast(pl.Float64, strict=False)  # a column of numbers holds numbers, any other one texts
    own = frame[name] if numbers.null_count() > frame[name].null_count() else numbers
    keys = zip(*(frame[base].to_list() for base in wanted[:-1]), strict=True)
    return [[*key, value] for key, value in zip(keys, own.to_list(), strict=True)]


def _entries(listed: Any, width: int, name: Any) -> tuple[tuple[tuple[str | None, ...], Any], ...]:
    rows = [[key, value] for key, value in listed.items()] if isinstance(listed, Mapping) else listed
    if not isinstance(rows, Sequence) or any(not isinstance(row, Sequence) or len(row) != width + 1 for row in rows):
        raise _wrong(name, "has a wrong map", "Give a value for each cell, or lists of cells and a value.")
    found: dict[tuple[str | None, ...], Any] = {}
    for *key, value in rows:
        cells = tuple(None if cell is None else str(cell) for cell in key)
        if found.setdefault(cells, value) != value:
            raise _wrong(name, f"has two values for {', '.join(map(str, cells))}", "Give each one value.")
    return tuple(found.items())


def _wrong(name: Any, what: str, way_out: str) -> ParameterError:
    return ParameterError(f"field {name!r} {what}. {way_out}")


def _floats(column: pl.Series, special: Sequence[str]) -> Floats:
    """A column as numbers; dates and times as seconds; NaN for what is neither, and for special values."""
    if special:  # such a column is text, whatever else it holds
        column = column.set(column.is_in(list(special)), None)
        for form in ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"):
            moments = column.str.to_datetime(form, strict=False, time_unit="ms")
            if moments.null_count() == column.null_count() < len(column):
                column = moments
                break
    if column.dtype == pl.Date:
        return np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64) * DAY
    if isinstance(column.dtype, pl.Datetime):
        return np.asarray(column.dt.epoch("ms").cast(pl.Float64).to_numpy(), dtype=np.float64) / 1000
    if column.dtype == pl.String:  # "36 months" counts as 36
        column = column.str.extract(LEADING)
    return np.asarray(column.cast(pl.Float64, strict=False).to_numpy(), dtype=np.float64)


def leading_number(text: str) -> float:
    """The number that a text begins with, NaN if there is none."""
    found = re.match(LEADING, text)
    return float(found.group(1)) if found else float("nan")


# Expressions: a small part of Python's, read by Python's parser and computed here.


def quoted(name: str) -> str:
    """A column's name as expressions write it."""
    return name if name.isidentifier() and name.isascii() and not keyword.iskeyword(name) else repr(name)


def _read(text: Any, name: Any) -> tuple[tuple[str, ...], Compute]:
    """The columns that an expression names, and what it makes of them: floats, in time that follows from its length."""
    if isinstance(text, str) and len(text) > MOST_LETTERS:
        raise _wrong(name, f"has an expression of {len(text):,} characters", f"Use at most {MOST_LETTERS:,}.")
    try:
        tree: ast.Expression = ast.parse(text, mode="eval")
    except (SyntaxError, TypeError, ValueError, RecursionError, MemoryError):
        what = f"is derived by {briefly(text)}, which is not an expression"
        raise _wrong(name, what, "Write it as in: weight / height") from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):  # Python's parser writes ﬁ as fi, and a table may have both columns
            node.id = ast.get_source_segment(text, node) or node.id
    bases: dict[str, None] = {}
    compute = _computed(tree.body, name, bases)
    if not bases:
        raise ParameterError("an expression of a derived column names no other column. Declare a constant instead.")
    return tuple(bases), compute


def _tried(bases: tuple[str, ...], compute: Compute, name: Any) -> tuple[str, ...]:
    """The columns of an expression, which is computed here at their limits and beyond: nothing may fail after a charge."""
    known = {base: np.roll(TRIALS, j) for j, base in enumerate(bases)}
    try:
        with np.errstate(all="ignore"):
            np.asarray(compute(known), dtype=np.float64)
    except (ArithmeticError, RecursionError, TypeError, ValueError) as error:
        raise _wrong(name, f"cannot be computed everywhere ({type(error).__name__})", "Write it otherwise.") from None
    return bases


def _computed(node: ast.expr, name: Any, bases: dict[str, None], depth: int = 0) -> Compute:
    """What a node computes, and among `bases` the columns that it names; what is not understood is refused.

    All numbers are floats, as those of columns are: integers of Python grow without end, and fail where they meet a column. What
    names no column is computed here, once, and refused if no float holds it.
    """
    apply: Callable[..., Any]
    if depth > DEEPEST:
        raise _wrong(name, "has an expression that is nested too deeply", "Write a simpler one.")
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        apply, parts = _OPERATORS[type(node.op)], [node.left, node.right]
    elif isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _OPERATORS:
        apply, parts = partial(_compared, _OPERATORS[type(node.ops[0])]), [node.left, *node.comparators]
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        apply, parts = operator.neg, [node.operand]
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in _FUNCTIONS:
            what = f"uses {node.func.id}, which is not a known function"
            raise _wrong(name, what, f"There are {', '.join(_FUNCTIONS)}.")
        count, apply = _FUNCTIONS[node.func.id]
        parts = node.args
        if len(parts) != count:
            raise _wrong(name, f"calls {node.func.id} with {len(parts)} values", "Give as many as it takes.")
    elif isinstance(node, ast.Constant) and is_number(node.value):
        written: Any = node.value
        constant = np.float64(written)
        return lambda known: constant
    elif isinstance(node, ast.Name) or (isinstance(node, ast.Constant) and isinstance(node.value, str)):
        base = str(node.id if isinstance(node, ast.Name) else node.value)
        bases[base] = None
        return lambda known: known[base]
    else:
        raise _wrong(name, f"is derived by {_source(node)}, which is not understood", "Use numbers and columns.")
    named: dict[str, None] = {}
    computed = [_computed(part, name, named, depth + 1) for part in parts]
    bases |= named

    def applied(known: Mapping[str, Floats]) -> Any:
        return apply(*(compute(known) for compute in computed))

    if named:
        return applied
    with np.errstate(all="ignore"):
        number = np.float64(applied({}))
    if not np.isfinite(number):
        raise _wrong(name, f"is derived by {_source(node)}, which is no number", "Use numbers below 1e307.")
    return lambda known: number


def _source(node: ast.expr) -> str:
    """A part of an expression, for a message."""
    try:
        return briefly(ast.unparse(node))
    except RecursionError:
        return "an expression that is nested too deeply"


def _compared(compare: Callable[[Any, Any], Any], one: Any, other: Any) -> Floats:
    """A comparison, as 0 and 1; NaN where there is nothing to compare."""
    return np.where(np.isfinite(one) & np.isfinite(other), compare(one, other), np.nan)
