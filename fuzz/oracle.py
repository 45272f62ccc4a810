"""Whether rows keep what a schema says, judged cell by cell from the schema's text: covey's own reader has no part in it."""

from __future__ import annotations

import ast
import csv
import math
from collections.abc import Mapping, Sequence
from datetime import date, datetime, time
from fractions import Fraction
from pathlib import Path
from typing import Any

NUMBERS = ("integer", "number")
Row = Mapping[str, Any]


def read_rows(path: Path) -> list[dict[str, str]]:
    """The cells of a CSV or Parquet file as text; a missing one is empty."""
    if path.suffix == ".parquet":
        import polars as pl

        return [{name: text(value) for name, value in row.items()} for row in pl.read_parquet(path).to_dicts()]
    with path.open(newline="", encoding="utf-8") as file:
        return [dict(row) for row in csv.DictReader(file)]


def cell(row: Mapping[str, str], name: str) -> str:
    """The cell of a column, whose name may be guarded."""
    return row[name] if name in row else row[f"'{name}"]


def text(value: Any) -> str:
    """A typed cell as CSV has it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    return value.isoformat() if isinstance(value, date | time) else str(value)


def faults(rows: Sequence[Mapping[str, str]], schema: Mapping[str, Any], more: Sequence[str] = ()) -> list[str]:
    """What rows break of a schema; `more` names columns beside its fields."""
    fields = {entry["name"]: entry for entry in schema["fields"] if entry["name"] not in more}
    if not rows:
        return ["there are no rows"]
    plain = {unguarded(name) if name not in (*fields, *more) else name: name for name in rows[0]}
    if set(plain) != {*fields, *more}:
        return [f"columns {sorted(plain)} are not {sorted((*fields, *more))}"]
    found: list[str] = []
    for k, cells in enumerate(rows):
        try:
            row = {name: value_of(entry, cells[plain[name]]) for name, entry in fields.items()}
        except ValueError as error:
            found.append(f"row {k}: {error}")
            continue
        own = (schema.get("covey") or {}).get("rules", [])
        found += [f"row {k} breaks {rule}: {dict(cells)}" for rule in own if not keeps(rule, row, fields)]
        found += [f"row {k}: {words}" for words in ties(fields, row)]
        if len(found) > 5:
            break
    return found


def value_of(entry: Mapping[str, Any], cell: str) -> Any:
    """A cell as a number, a label, a flag, ("special", word) or None; ValueError with words where it does not fit."""
    name, own, limits = entry["name"], entry.get("covey", {}), entry.get("constraints", {})
    special = {word for listed in own.get("special", []) for word in (listed,)}
    if cell == "":
        if limits.get("required") or own.get("constant") is not None:
            raise ValueError(f"{name!r} is required and empty")
        return None
    if cell in special or unguarded(cell) in special:
        return ("special", cell if cell in special else unguarded(cell))
    if "constant" in own:
        if str(own["constant"]) != cell:
            raise ValueError(f"{name!r} is {cell!r}, not its constant")
        return cell
    kind = entry.get("type", "string")
    if kind == "boolean":
        words = entry.get("falseValues", ["false"])[0], entry.get("trueValues", ["true"])[0]
        if cell not in words:
            raise ValueError(f"{name!r} is {cell!r}, no flag")
        return cell == words[1]
    if kind == "string":
        other = own.get("other")
        labels = [*limits.get("enum", []), *([] if not other else ["other" if other is True else other])]
        if "derived" in own:
            return cell
        if cell not in labels and unguarded(cell) not in labels:
            raise ValueError(f"{name!r} is {cell!r}, no category")
        return cell if cell in labels else unguarded(cell)
    value = number_of(kind, cell)
    if "derived" in own:
        return value
    low, high = number_of(kind, str(limits["minimum"])), number_of(kind, str(limits["maximum"]))
    if not low <= value <= high:
        raise ValueError(f"{name!r} is {cell}, not from {limits['minimum']} to {limits['maximum']}")
    if kind == "number" and "decimals" in own and (value * 10 ** own["decimals"]).denominator != 1:
        raise ValueError(f"{name!r} is {cell}, with more than {own['decimals']} decimals")
    return value


def number_of(kind: str, cell: str) -> Fraction:
    """A number, date or time on a scale of its own."""
    if kind == "integer":
        return Fraction(int(cell))
    if kind == "number":
        return Fraction(cell)
    if kind == "date":
        return Fraction(date.fromisoformat(cell).toordinal())
    if kind == "datetime":
        return Fraction(round((datetime.fromisoformat(cell) - datetime(1970, 1, 1)).total_seconds()))
    read = time.fromisoformat(cell)
    return Fraction(3600 * read.hour + 60 * read.minute + read.second)


def unguarded(cell: str) -> str:
    """A cell without the apostrophe that keeps a spreadsheet from running it."""
    return cell[1:] if cell[:1] == "'" else cell


def is_number(value: Any) -> bool:
    """Whether a cell holds a number, date or time."""
    return isinstance(value, Fraction)


def keeps(rule: Mapping[str, Any], row: Row, fields: Mapping[str, Any]) -> bool:
    """Whether a row keeps a rule, by what the guide says of it."""
    [(word, body)] = rule.items()
    if word == "at_most":
        return sum(row[name] is True for name in body["fields"]) <= body["limit"]
    if word == "one_of":
        cells = [row[name] for name in (body["fields"] if isinstance(body, Mapping) else body)]
        ones, none = cells.count(True), isinstance(body, Mapping) and body.get("none", False)
        return ones == 1 or (ones == 0 and (none or None in cells))
    if word == "less_equal":
        left, right = row[body["left"]], row[body["right"]]
        return not (is_number(left) and is_number(right)) or left <= right
    if word == "linear":
        return summed(body["coefficients"], {"maximum": body["maximum"]}, row, Fraction(1, 10**12))
    if word == "body":
        values = [row[name] for name in body["fields"]]
        if not all(map(is_number, values)):
            return True
        ones, given = dict.fromkeys(body["fields"], 1), body.get("sum")
        parts = [] if given is None else [(ones, given if isinstance(given, Mapping) else {"equals": given})]
        parts += [(part["coefficients"], part) for part in body.get("linear", [])]
        ordered = not body.get("increasing") or values == sorted(values)
        return ordered and all(summed(terms, bounds, row, Fraction(0)) for terms, bounds in parts)
    if word == "forbid":
        return not all(meets(row[name], what, fields[name]) for name, what in body.items())
    given, wanted = (all(meets(row[n], c, fields[n]) for n, c in body[part].items()) for part in ("if", "then"))
    return wanted or not given


def summed(terms: Mapping[str, float], bounds: Mapping[str, Any], row: Row, slack: Fraction) -> bool:
    """Whether a weighted sum keeps its bounds, where no part of it is missing."""
    if not all(is_number(row[name]) for name in terms):
        return True
    parts = [Fraction(str(a)) * row[name] for name, a in terms.items()]
    total = sum(parts)
    slack *= 1 + sum(map(abs, parts))
    low, high = (bounds.get("equals", bounds.get(word)) for word in ("minimum", "maximum"))
    above = low is None or total >= Fraction(str(low)) - slack
    return above and (high is None or total <= Fraction(str(high)) + slack)


def meets(value: Any, condition: Any, entry: Mapping[str, Any]) -> bool:
    """Whether a cell meets a condition of a rule."""
    kind = entry.get("type", "string")
    if isinstance(condition, Mapping):
        if not is_number(value):
            return False
        low, high = (condition.get(word) for word in ("minimum", "maximum"))
        above = low is None or value >= number_of(kind, str(low))
        return above and (high is None or value <= number_of(kind, str(high)))
    return any(is_same(value, one, kind) for one in (condition if isinstance(condition, list) else [condition]))


def is_same(value: Any, listed: Any, kind: str) -> bool:
    """Whether a cell is a value that a rule lists."""
    if listed is None or value is None:
        return listed is value
    if isinstance(value, tuple):
        return value[1] == listed
    if isinstance(value, Fraction):
        try:
            return value == number_of(kind, str(listed))
        except ValueError:
            return False  # a special word
    return value == listed


def ties(fields: Mapping[str, Any], row: Row) -> list[str]:
    """What a row breaks of fields that follow others or are computed from them."""
    found = []
    told = {name: spelled(fields[name], value) for name, value in row.items()}
    for name, entry in fields.items():
        own, value = entry.get("covey", {}), row[name]
        base = row.get(own.get("after") or own.get("difference_from") or "")
        if is_number(base) and is_number(value):
            bounds = own.get("difference") or {}
            low, high = bounds.get("minimum", 0 if "after" in own else None), bounds.get("maximum")
            if (low is not None and value - base < low) or (high is not None and value - base > high):
                found.append(f"{name!r} is {value - base} from what it follows, not from {low} to {high}")
        derived = own.get("derived") or {}
        if "expression" in derived:
            kept = as_formula(derived["expression"], {n: counted(fields[n], v) for n, v in row.items()}, entry)
        else:
            kept = not derived or computed(derived, told, told[name])
        if not kept:
            found.append(f"{name!r} is {value!r}, not what {derived} says of {dict(row)}")
    return found


CELLS = "cells of a row"  # which no column can be called in a formula


class _Cells(ast.NodeTransformer):
    """A formula in which columns, by their names or in quotes, are looked up among the cells of a row.

    Names are those of the text: Python's parser writes ﬁ as fi.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.args = [self.visit(part) for part in node.args]
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._looked_up(ast.get_source_segment(self.text, node) or node.id)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return self._looked_up(node.value) if isinstance(node.value, str) else node

    @staticmethod
    def _looked_up(name: str) -> ast.AST:
        return ast.Subscript(ast.Name(CELLS, ast.Load()), ast.Constant(name), ast.Load())


def day_of(seconds: float) -> date:
    """The day of a moment in seconds of 1970."""
    return date.fromordinal(FIRST_DAY + math.floor(seconds / DAY))


FIRST_DAY, DAY = date(1970, 1, 1).toordinal(), 86_400
FUNCTIONS: dict[str, Any] = {
    "min": min,
    "max": max,
    "abs": abs,
    "round": round,
    "floor": math.floor,
    "ceil": math.ceil,
    "year": lambda seconds: day_of(seconds).year,
    "month": lambda seconds: day_of(seconds).month,
    "day": lambda seconds: day_of(seconds).day,
    "hour": lambda seconds: seconds % DAY // 3600,
    "days": lambda one, other: other // DAY - one // DAY,
}


def counted(entry: Mapping[str, Any], value: Any) -> float | None:
    """A cell as formulas count it: dates in seconds of 1970; None where it is no number."""
    if not is_number(value):
        return None
    return float((value - FIRST_DAY) * DAY if entry.get("type") == "date" else value)


def as_formula(formula: str, row: Mapping[str, float | None], entry: Mapping[str, Any]) -> bool:
    """Whether a cell of this field is what its formula says."""
    value, known = row[entry["name"]], {name: own for name, own in row.items() if own is not None}
    tree = ast.fix_missing_locations(_Cells(formula).visit(ast.parse(formula, mode="eval")))
    try:
        wanted = eval(compile(tree, "formula", "eval"), {"__builtins__": {}, **FUNCTIONS, CELLS: known})
    except (KeyError, ZeroDivisionError):
        return value is None
    near = 10.0 ** -entry.get("covey", {}).get("decimals", 0) / 2 if "decimals" in entry.get("covey", {}) else 0.0
    near = DAY if entry["type"] == "date" else near
    return value is not None and math.isclose(value, wanted, rel_tol=1e-6, abs_tol=near + 1e-6)


def spelled(entry: Mapping[str, Any], value: Any) -> Any:
    """A cell as a public list has it: flags in the words of their field."""
    words = entry.get("falseValues", ["false"])[0], entry.get("trueValues", ["true"])[0]
    return words[value] if isinstance(value, bool) else value


def computed(derived: Mapping[str, Any], row: Row, value: Any) -> bool:
    """Whether a cell is what a list or classes say."""
    base = row[derived["from"][0]]
    listed = derived.get("map", {})
    pairs = listed if isinstance(listed, Mapping) else dict(listed)
    key = base[1] if isinstance(base, tuple) else base
    if key in pairs or not derived.get("edges") or not is_number(base):
        return bool(value == pairs.get(key))
    wanted = None
    for low, high, label in zip(derived["edges"], derived["edges"][1:], derived["labels"], strict=False):
        wanted = label if Fraction(str(low)) <= base < Fraction(str(high)) else wanted
    return value == wanted
