"""Random tables with their public descriptions, and random orders of releases: everything that a seed decides.

A case is drawn from a number alone. What is drawn is mostly sensible and sometimes not: wide and narrow limits, limits that are
one value, names and labels with signs in them, rules that contradict each other, cells that do not fit.
"""

from __future__ import annotations

import csv
import io
import json
import keyword
import random
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from fuzz.names import NAMES, alike, written

TYPES = ("boolean", "string", "integer", "number", "date", "datetime", "time")
NUMBERS, ORDERED = ("integer", "number"), TYPES[2:]
RULES = ("at_most", "less_equal", "linear", "body", "forbid", "requires")
PLAIN_NAMES = ("age", "ward", "cost", "seen", "flag", "kind", "left", "score", "stay", "group", "rank", "hour")
ODD_NAMES = ("a b", "größe", "of", "by", "2024", "share=x", "missing", "x>1", "a,b", "=f", "-x", "`q`", "where", "id")
LABELS = ("a", "b", "c", "d", "e", "no", "yes", "I10", "I21", "J45", "K2", "1", "2", "true")
ODD_LABELS = ("a,b", "=1+1", "x y", "ä", 'say "so"', "missing", "null", "-9", "other", "9" * 30, "'q", "a\nb")
AGAIN = " again"  # ends the name of a column that repeats another one
EPOCH = datetime(2000, 1, 1, tzinfo=UTC).replace(tzinfo=None)


@dataclass
class Case:
    """A table or two, a description, and the words of a release.

    Args:
        seed: all that decides the case.
        kind: what it is: table, drafted, learned, person, package or alone.
        files: texts by the name of their file; the first is what is released.
        document: the public description; None where it is drafted or learned.
        words: options of the release.
        named: what the case exercises, if its release is accepted.
        key: the column of persons that has a value of its own in every row.
        link: the column that says whose a row is.
    """

    seed: int
    kind: str
    files: dict[str, str]
    document: dict[str, Any] | None
    words: list[str]
    named: set[str] = field(default_factory=set)
    key: str = "id"
    link: str = "whose"

    @property
    def linked(self) -> bool:
        """Whether it has persons with events."""
        return self.kind in ("package", "alone")

    def schemas(self) -> dict[str, dict[str, Any]]:
        """The description of each table, by its name."""
        if self.document is None:
            return {}
        if not self.linked:
            return {"table": self.document}
        return {part["name"]: part["schema"] for part in self.document["resources"]}


class Chance(random.Random):
    """What is drawn, and how often; of later seeds any name may be drawn for a column, and stand in a formula."""

    any_name = False

    def once_in(self, times: int) -> bool:
        """True once in so many times."""
        return self.randrange(times) == 0

    def some(self, values: Any, least: int = 1, most: int | None = None) -> list[Any]:
        """Some of the values, each once, in random order."""
        values = list(values)
        top = len(values) if most is None else min(most, len(values))
        return self.sample(values, self.randint(min(least, top), top))


# Fields.


def draw_field(chance: Chance, name: str, kind: str | None = None) -> dict[str, Any]:
    """One declared field, without ties to others."""
    kind = kind or chance.choice(TYPES)
    limits, own = {}, {}
    if chance.once_in(2):
        limits["required"] = True
    if kind == "string":
        labels = chance.some(LABELS, 1, 6) + ([chance.choice(ODD_LABELS)] if chance.once_in(5) else [])
        limits["enum"] = list(dict.fromkeys(labels))
        if chance.once_in(4):
            own["other"] = chance.choice([True, "elsewhere", labels[0]])
        if chance.once_in(5):
            own["ordered"] = True
        elif chance.once_in(4):
            own["levels"] = chance.choice([1, 2, "icd10", "nace"])
        if chance.once_in(6):
            own["default"] = labels[0]
    elif kind in ORDERED:
        draw_limits(chance, kind, limits, own)
    entry = {"name": name, "type": kind}
    return entry | ({"constraints": limits} if limits else {}) | ({"covey": own} if own else {})


def draw_limits(chance: Chance, kind: str, limits: dict[str, Any], own: dict[str, Any]) -> None:
    """Limits of a number, date or time, and what else it may say."""
    low, high = draw_bounds(chance, kind)
    limits |= {"minimum": low, "maximum": high}
    if kind == "number" and chance.once_in(2):
        own["decimals"] = chance.choice([0, 1, 2, 3])
        if own["decimals"] == 0:
            limits |= {"minimum": float(round(low)), "maximum": float(round(high))}
    if chance.once_in(4):
        own["bins"] = chance.choice([1, 2, 5, 12, 40])
    elif kind in NUMBERS and chance.once_in(8) and high - low > 8:
        own["bins"] = [low, *sorted({low + (high - low) // 4, low + (high - low) // 2}), high]
    if chance.once_in(5):
        own["special"] = chance.some(["N", "-99", "<5", "unknown"], 1, 2)
    if chance.once_in(8):
        own["default"] = low


def draw_bounds(chance: Chance, kind: str) -> tuple[Any, Any]:
    """Two limits; sometimes one value, sometimes far apart."""
    width = chance.choice([0, 1, 2, 9, 30, 100, 1000, 100_000])
    if kind == "integer":
        low = chance.choice([0, 0, 1, -5, 100, -1000, 10**9])
        return low, low + chance.choice([width, width, 10**9])
    if kind == "number":
        low = chance.choice([0.0, 0.0, -1.0, 0.5, 20.0, -3000.0])
        return low, low + chance.choice([0.1, 1.0, 24.0, float(width), 1e6])
    start = EPOCH + timedelta(days=chance.choice([0, -30_000, 8000]))
    if kind == "date":
        return start.date().isoformat(), (start.date() + timedelta(days=min(width, 20_000))).isoformat()
    if kind == "datetime":
        return start.isoformat(), (start + timedelta(seconds=width * chance.choice([1, 60, 3600]))).isoformat()
    first, last = sorted(chance.choices(range(86_400), k=2))
    return as_time(first), as_time(first if chance.once_in(10) else last)


def as_time(second: int) -> str:
    """A time of day."""
    return (EPOCH + timedelta(seconds=second)).time().isoformat()


def draw_names(chance: Chance, count: int, taken: tuple[str, ...] = ()) -> list[str]:
    """Names of so many columns."""
    pool = [n for n in (*PLAIN_NAMES, *(ODD_NAMES if chance.once_in(3) else ())) if n not in taken]
    if not chance.any_name or chance.once_in(3):
        return chance.sample(pool, count)
    names: list[str] = []
    while len(names) < count:
        near = [other for name in names for other in alike(name)] if chance.once_in(2) else []
        name = chance.choice(near or NAMES[chance.choice(list(NAMES))])
        if name not in (*names, *taken):
            names.append(name)
    return names


def in_formula(chance: Chance, name: str) -> str | None:
    """A name as a formula has it; None where it is not to stand in one."""
    if not chance.any_name:
        return name if name.isidentifier() else None
    plain = name.isidentifier() and not keyword.iskeyword(name)
    return name if plain and chance.once_in(2) else written(name)


def draw_fields(chance: Chance, count: int, taken: tuple[str, ...] = ()) -> list[dict[str, Any]]:
    """Fields of a table: declared ones, followed by constants and by fields that hang on others."""
    names = draw_names(chance, count, taken)
    alike = chance.choice([*TYPES, None, None, None])  # of one type there are more rules
    fields = [draw_field(chance, name, alike if chance.once_in(2) else None) for name in names]
    for entry in list(fields):
        for tie in (follow, derive, repeat) if chance.any_name else (follow, derive):
            if chance.once_in(5):
                tie(chance, entry, fields)
    if chance.once_in(6):
        value = chance.choice(["north", None])
        name = "constant" if "constant" not in names else "north"
        fields.append({"name": name, "type": "string", "covey": {"constant": value}})
    chance.shuffle(fields)
    return fields


def follow(chance: Chance, base: dict[str, Any], fields: list[dict[str, Any]]) -> None:
    """Another field after this one, or by its difference from it."""
    if base["type"] not in ORDERED or "bins" in base.get("covey", {}):
        return
    limits, own = dict(base["constraints"]), {chance.choice(["after", "difference_from"]): base["name"]}
    limits["maximum"] = later(base["type"], limits["maximum"], chance.choice([0, 5, 300]))
    if base["type"] == "number" and not chance.once_in(6):
        own["decimals"] = base.setdefault("covey", {}).setdefault("decimals", 1)
    if chance.once_in(2):
        own["difference"] = {"minimum": 0, "maximum": chance.choice([5, 40])}
    fields.append({"name": f"{base['name']} end", "type": base["type"], "constraints": limits, "covey": own})


def repeat(_: Chance, base: dict[str, Any], fields: list[dict[str, Any]]) -> None:
    """Another field that says the same again in nearly every row: a relation to be found."""
    own = {word: what for word, what in base.get("covey", {}).items() if word in ("decimals", "special", "other")}
    limits = {"constraints": base["constraints"]} if "constraints" in base else {}
    fields.append({"name": f"{base['name']}{AGAIN}", "type": base["type"], **limits, **({"covey": own} if own else {})})


def later(kind: str, value: Any, steps: int) -> Any:
    """A value so many days, seconds or units after another one."""
    if kind in NUMBERS:
        return value + steps
    if kind == "date":
        return (date.fromisoformat(value) + timedelta(days=steps)).isoformat()
    if kind == "datetime":
        return (datetime.fromisoformat(value) + timedelta(seconds=steps)).isoformat()
    return as_time(min(86_399, second_of(value) + steps))


def second_of(text: str) -> int:
    """A time of day as a number."""
    read = time.fromisoformat(text)
    return 3600 * read.hour + 60 * read.minute + read.second


def derive(chance: Chance, base: dict[str, Any], fields: list[dict[str, Any]]) -> None:
    """Another field that is computed from this one; a code may then be grouped by it."""
    name, kind = base["name"], base["type"]
    term = in_formula(chance, name)
    if kind == "string":
        listed = {label: chance.choice(["x", "y"]) for label in base["constraints"]["enum"]}
        made = {"type": "string", "covey": {"derived": {"from": [name], "map": listed}}}
        own = base.setdefault("covey", {})
        if not own.get("ordered") and chance.once_in(2):
            own["levels"] = f"{name} group"
    elif kind in NUMBERS and term is not None and chance.once_in(2):
        form = chance.choice(["{} * 2 + 1", "round({} / 3)", "max({}, 4)", "{} // 7", "1 / {}"]).format(term)
        made = {"type": "number", "covey": {"derived": {"expression": form}}}
    elif kind in NUMBERS:
        low, high = base["constraints"]["minimum"], base["constraints"]["maximum"]
        edges = [low, low + (high - low) / 2, high] if high > low else [low, low + 1]
        given = {"from": [name], "edges": edges, "labels": ["low", "high"][: len(edges) - 1]}
        made = {"type": "string", "covey": {"derived": given}}
    elif kind in ("date", "datetime") and term is not None:
        made = {"type": "integer", "covey": {"derived": {"expression": f"year({term})"}}}
    else:
        return
    fields.append({"name": f"{name} group", **made})


def expect(chance: Chance, fields: list[dict[str, Any]]) -> None:
    """Another field that is usually what this one says, and is measured by what differs from that."""
    free = [f for f in fields if not {"constant", "derived", "learn"} & set(f.get("covey", {}))]
    free = [f for f in free if f["type"] in (*NUMBERS, "string", "date", "boolean") and "," not in f["name"]]
    if not free:
        return
    base = chance.choice(free)
    name, kind, limits = base["name"], base["type"], dict(base.get("constraints", {}))
    term = in_formula(chance, name)
    if kind in NUMBERS and term is not None and chance.once_in(2):
        usual: dict[str, Any] = {"expression": chance.choice(["{}", "{} + 1", "{} * 2"]).format(term)}
    elif kind == "date" and term is not None:
        usual = {"expression": f"{term} + 86400"}
    elif kind == "string":
        limits = {"enum": ["x", "y"]} | ({"required": True} if chance.once_in(2) else {})
        usual = {"from": [name], "map": {label: chance.choice("xy") for label in base["constraints"]["enum"]}}
    else:
        return
    decimals = base.get("covey", {}).get("decimals")
    own = {"expected": usual} | ({} if decimals is None else {"decimals": decimals})
    fields.append({"name": f"{name} usual", "type": kind, "constraints": limits, "covey": own})


# Rules.


def draw_rules(chance: Chance, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Up to three rules of any kind that the fields allow."""
    there = [f for f in fields if not {"constant", "derived", "learn"} & set(f.get("covey", {}))]
    wanted = chance.choices(RULES, k=chance.choice([0, 0, 1, 1, 2, 3]))
    drawn = [draw_rule(chance, kind, there) for kind in wanted]
    return [rule for rule in drawn if rule is not None]


def draw_rule(chance: Chance, kind: str, fields: list[dict[str, Any]]) -> dict[str, Any] | None:
    """One rule; None where no field allows it."""
    flags = [f["name"] for f in fields if f["type"] == "boolean"]
    numbers = [f for f in fields if f["type"] in NUMBERS]
    if kind == "at_most":
        named = chance.some(flags, 1) if flags else []
        limit = chance.randint(0, len(named)) if named else 0
        if limit < 2 <= len(named) != 3:  # three with limit 1 are one category unasked
            return {"one_of": {"fields": named, "none": True} if limit else named}
        return {kind: {"fields": named, "limit": limit}} if named else None
    if kind == "less_equal":
        family = chance.choice([("integer", "number"), ("date",), ("datetime",), ("time",)])
        named = [f["name"] for f in fields if f["type"] in family]
        if len(named) < 2:
            return None
        left, right = chance.sample(named, 2)
        return {kind: {"left": left, "right": right}}
    if kind == "linear":
        if not numbers:
            return None
        terms = {f["name"]: chance.choice([1, -1, 0.5, 3, -2.25]) for f in chance.some(numbers, 1, 3)}
        return {kind: {"coefficients": terms, "maximum": middle(chance, terms, numbers)}}
    if kind == "body":
        return draw_body(chance, numbers) if numbers else None
    if not fields:
        return None
    conditions = {f["name"]: draw_condition(chance, f) for f in chance.some(fields, 1, 3)}
    if kind == "forbid":
        return {kind: conditions}
    parts = list(conditions.items())
    cut = chance.randint(1, len(parts))
    return {kind: {"if": dict(parts[:cut]), "then": dict(parts[cut:])}} if cut < len(parts) else None


def middle(chance: Chance, terms: dict[str, float], numbers: list[dict[str, Any]]) -> float:
    """A bound that a part of the rows should keep."""
    spans = {f["name"]: (f["constraints"]["minimum"], f["constraints"]["maximum"]) for f in numbers}
    sides = [sorted(a * end for end in spans[name]) for name, a in terms.items()]
    low, high = sum(side[0] for side in sides), sum(side[1] for side in sides)
    return round(low + (high - low) * chance.choice([-0.1, 0.0, 0.3, 0.5, 0.9, 1.0]), 2)


def draw_body(chance: Chance, numbers: list[dict[str, Any]]) -> dict[str, Any]:
    """Numbers that belong together."""
    chosen = chance.some(numbers, 1, 4)
    names = [f["name"] for f in chosen]
    sum_ = middle(chance, dict.fromkeys(names, 1), chosen)
    body: dict[str, Any] = {"fields": names}
    word = chance.choice(["sum", "budget", "increasing", "linear"])
    if word == "sum":
        body["sum"] = sum_
    elif word == "budget":
        body["sum"] = {chance.choice(["minimum", "maximum"]): sum_}
    elif word == "increasing":
        body["increasing"] = True
    else:
        terms = {name: chance.choice([1, -1, 2]) for name in names}
        body["linear"] = [{"coefficients": terms, chance.choice(["equals", "maximum"]): middle(chance, terms, chosen)}]
    return {"body": body}


def draw_condition(chance: Chance, entry: dict[str, Any]) -> Any:
    """What a rule says of one field."""
    special = entry.get("covey", {}).get("special", [])
    if chance.once_in(6):
        return [None, *special[:1]]
    if entry["type"] == "boolean":
        return chance.choice([True, False])
    if entry["type"] == "string":
        found = chance.some(entry["constraints"]["enum"], 1, 2)
        return found[0] if chance.once_in(2) else [*found, *([None] if chance.once_in(4) else [])]
    low, high = sorted([draw_value(chance, entry), draw_value(chance, entry)])
    if entry["type"] in NUMBERS and chance.once_in(3):
        return low
    return chance.choice([{"minimum": low}, {"maximum": high}, {"minimum": low, "maximum": high}])


# Rows.


def draw_value(chance: Chance, entry: dict[str, Any]) -> Any:
    """A value that fits a field, as its schema would write it."""
    kind, limits = entry["type"], entry.get("constraints", {})
    if kind == "boolean":
        return chance.choice([True, False])
    if kind == "string":
        return chance.choice(limits.get("enum", LABELS))
    low, high = (limits[word] if word in limits else default(kind)[i] for i, word in enumerate(("minimum", "maximum")))
    part = chance.choice([0.0, 1.0, *([None] * 8)])
    part = chance.random() ** chance.choice([1, 1, 4]) if part is None else part
    if kind == "integer":
        return int(low + round((high - low) * part))
    if kind == "number":
        return round(low + (high - low) * part, entry.get("covey", {}).get("decimals", 2))
    if kind == "date":
        days = (date.fromisoformat(high) - date.fromisoformat(low)).days
        return later(kind, low, round(days * part))
    if kind == "datetime":
        seconds = (datetime.fromisoformat(high) - datetime.fromisoformat(low)).total_seconds()
        return later(kind, low, round(seconds * part))
    return later(kind, low, round((second_of(high) - second_of(low)) * part))


def default(kind: str) -> tuple[Any, Any]:
    """Limits of a field that declares none."""
    moments = {"date": ("2001-05-01", "2004-02-28"), "datetime": ("2001-05-01T00:00:00", "2001-06-01T12:30:00")}
    return moments.get(kind, ("06:00:00", "19:30:00") if kind == "time" else (0, 80))


def draw_cell(chance: Chance, entry: dict[str, Any], dirt: float) -> str:
    """A cell as a file has it: a value, nothing, a special word, or what does not fit."""
    own = entry.get("covey", {})
    if chance.random() < dirt:
        return chance.choice(["", "?", "1e999", "-1", "99999999", "zzz", "31.12.1999", " ", "true", "'x"])
    if not entry.get("constraints", {}).get("required") and chance.once_in(8):
        return ""
    if own.get("special") and chance.once_in(6):
        return str(chance.choice(own["special"]))
    value = draw_value(chance, entry)
    return str(value).lower() if isinstance(value, bool) else str(value)


def draw_table(
    chance: Chance, fields: list[dict[str, Any]], rows: int, more: dict[str, list[str]], order: str | None = None
) -> str:
    """A CSV file with these fields, and with columns that are given; the one that orders rows is mostly clean."""
    dirt = chance.choice([0, 0, 0, 0.02, 0.3])
    empty = chance.choice(fields)["name"] if chance.once_in(8) else None
    columns = dict(more)
    for entry in fields:
        if not {"constant", "derived"} & set(entry.get("covey", {})):
            clean = entry["name"] == order and not chance.once_in(6)
            cells = [draw_cell(chance, entry, 0 if clean else dirt) for _ in range(rows)]
            columns[entry["name"]] = [""] * rows if entry["name"] == empty and not clean else cells
    for name in columns:
        base = columns.get(name.removesuffix(AGAIN)) if name.endswith(AGAIN) else None
        if base is not None:
            columns[name] = [own if chance.once_in(50) else cell for cell, own in zip(base, columns[name], strict=True)]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    names = list(columns)
    if chance.once_in(3):
        chance.shuffle(names)
    writer.writerow(names)
    writer.writerows(zip(*(columns[name] for name in names), strict=True))
    return out.getvalue()


def write(document: dict[str, Any]) -> str:
    """A document as its file has it."""
    return json.dumps(document, ensure_ascii=False, indent=1)
