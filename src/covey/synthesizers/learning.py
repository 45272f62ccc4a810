"""Learned domains: limits and categories that nobody has declared, measured with noise, then used as public knowledge.

Column names and types are public. One histogram per learned column is measured through the gate under a charge of its own,
"domains": numbers and dates on a fixed public grid, words where δ > 0, named only where their noisy counts exceed a threshold. A
replaced row moves each column's counts by 2 in ℓ1 and by √2 in ℓ2, whatever it held (docs/proofs/learned.md). What comes out is
a complete public schema; the rest of the release is what it would be had somebody written it.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import date, datetime
from fractions import Fraction
from operator import attrgetter
from typing import Any

import numpy as np

from covey.engine.arrays import Array
from covey.engine.budget import DOMAINS, Budget
from covey.engine.codes.events import WEIGHT_STEPS
from covey.engine.codes.learned import Counting, Noise, Occurrences, from_zero, kept_bins, kept_counts, with_margins
from covey.engine.gate import Gate, selection_threshold
from covey.engine.noise.law import independent_noise
from covey.engine.sensitivity import Sensitivity
from covey.engine.units.rows import Rows
from covey.tables.codec import Codec
from covey.tables.column_drafts import NAMES, suggests
from covey.tables.description import Description
from covey.tables.dialects import Spelling
from covey.tables.fields import FALSE_TRUE, Field
from covey.tables.provisional import LearnedColumn, Provisional, completed
from covey.tables.schema import Schema
from covey.tables.zeros import structural_zeros

SHARE = Fraction(1, 10)  # of the budget
OTHER = "other"
HALF = 0.5  # of the rows that hold a word: named labels must hold so many, or the column would be mostly "other"
GOOD = 0.05  # of the rows: what holds so many should stand out of the noise
BINS = 110  # of a whole number's grid
LABELS, FINE = 10, 10**6  # a guess at the labels of a learned text, and at the steps of a number, before they are known


def with_known_domains(schema: Schema) -> Schema:
    """The schema with fields completed whose domain everybody knows, flags and times of day; exclusive flags are one category."""
    fields = tuple(completed(f) if f.learn and f.type in ("boolean", "time") else f for f in schema.fields)
    return replace(schema, fields=fields).grouped()


def check_learning(schema: Schema, delta: Fraction) -> None:
    """Refuse, before any table is opened, what cannot be learned."""
    schema = with_known_domains(schema)
    for field in schema.learns:
        if field.type == "string" and not delta:
            names = "Its name suggests that it holds names of persons. Leave it out."
            way_out = ("Give a small ", "delta", ", such as 1e-9, or list its categories under constraints.enum.")
            raise field.wrong(
                "is a text whose categories are to be learned, which pure ε cannot do",
                *([names] if suggests(field.name, NAMES) else way_out),
            )
        if (field.other or OTHER) in schema.missing_values:
            raise field.wrong(f"would call the rest {field.other or OTHER!r}, which is declared missing", "Give other.")
    declared = tuple(replace(field, expected=None) for field in schema.fields if not field.learn)
    if schema.rules or any(field.follows is not None for field in declared):
        # Rules name declared fields alone. Those that contradict each other would do so after the charge.
        structural_zeros(Codec(replace(schema, fields=declared, important=(), target=None)))


@dataclass(frozen=True)
class Learned:
    """A complete public description, and what became of the fields that were to be learned."""

    description: Description
    learned: tuple[str, ...]
    left_out: tuple[str, ...]
    guessed: bool = False  # whether nothing stood out anywhere, so that limits are no more than noise

    @property
    def advice(self) -> str:
        """What became of columns that were left out, and how to keep them: names of persons should stay away."""
        if self.guessed:
            return (
                "noise hides the values of every column: limits are a guess, and texts are one category. More rows, a larger "
                "epsilon, fewer learned columns, or declared limits and categories help."
            )
        if not self.left_out:
            return ""
        told = (
            "left out, because noise hides their values, or because the labels that were found cover less than half of the rows: "
            f"{', '.join(map(repr, self.left_out))}."
        )
        others = [repr(name) for name in self.left_out if not suggests(name, NAMES)]
        which = "them" if len(others) == len(self.left_out) else ", ".join(others)
        return f"{told} Declare limits or categories to keep {which}." if others else told


def assumed(described: Description) -> tuple[str, ...]:
    """What the promise takes as public beside the schemas, in sentences: of columns whose types were read off the tables."""
    named = {name: field for name, field in described.fields if field.from_table}
    if not named:
        return ()
    kinds = [f"{name!r} ({_kind(field)})" for name, field in named.items()]
    told = [
        "Column names and the layout of the file (separator, encoding, header line) were read from it.",
        "Types, the words of yes/no columns, the decimals of numbers and, where nobody said them, the marks of numbers and the "
        "formats of dates were read from the table without noise, by rules that ignore up to one odd cell in a thousand: "
        f"{', '.join(kinds)}.",
        "The same kind of rules left out columns that are empty or look like identifiers, names of persons, addresses or free "
        "text.",
        "The guarantee compares tables for which these rules give the same result.",
    ]
    numbers, dates = dict[Spelling, list[str]](), dict[Spelling, list[str]]()
    for name, field in named.items():
        if field.type in ("integer", "number"):
            numbers.setdefault(field.spelling, []).append(repr(name))
        if field.type in ("date", "datetime", "time"):
            dates.setdefault(field.spelling, []).append(repr(name))
    for spelling, names in numbers.items():
        grouped = f"digits grouped by {spelling.thousands!r}" if spelling.thousands else "no thousands mark"
        told.append(f"Read with decimal mark {spelling.decimal!r} and {grouped}: {', '.join(names)}.")
    for spelling, names in dates.items():
        form = "in ISO 8601" if spelling.date_format is None else f"as {spelling.date_format}, or in ISO 8601"
        told.append(f"Read {form}: {', '.join(names)}.")
    return (*told, "Cells in any other spelling count as words or as missing.") if numbers or dates else tuple(told)


def _kind(field: Field) -> str:
    """Type, words of flags and decimals of a field."""
    flags = "" if field.flags == FALSE_TRUE else f", {field.flags[0]} or {field.flags[1]}"
    decimals = "" if field.decimals is None else f", {field.decimals} decimal{'' if field.decimals == 1 else 's'}"
    return f"{field.type}{flags}{decimals}"


def learned_columns(described: Description) -> tuple[tuple[str, LearnedColumn], ...]:
    """The fields that are measured, table by table, by the name that the description has for them."""
    several = described.schema is None
    return tuple(
        (f"{part.name}.{column.field.name}" if several else column.field.name, column)
        for part in described.tables
        if part.schema.learns
        for column in Provisional(part.schema).columns
    )


def learn(rows: Rows, described: Description, gate: Gate) -> Learned:
    """Measure the domains of all learned columns; spends the charge "domains"."""
    columns = learned_columns(described)
    bins = tuple(column.bins for _, column in columns)
    counts, shape = rows.reduce(Counting(bins)), (len(columns), max(bins))
    sensitivity = column_sensitivity(len(columns))
    words: dict[str, dict[str, float]] = {}
    if gate.budget.pure:
        noisy = gate.joint(DOMAINS, sensitivity).add(counts.map(attrgetter("histograms")), shape)
    else:
        selection = gate.select(DOMAINS, sensitivity, len(columns))
        noisy = selection.add(counts.map(attrgetter("histograms")), shape)
        words = {name: selection.name(name, counts.map(_words, j)) for j, (name, _) in enumerate(columns)}
    noise = Noise(noisy.sd, kept_counts(noisy.sd, noisy.law, sum(bins)), rows.n)
    found: dict[str, Field | None] = {
        name: _learned_field(column, noisy.values[j], noise, words.get(name, {}))
        for j, (name, column) in enumerate(columns)
    }
    guessed, places = False, {name: j for j, (name, _) in enumerate(columns)}
    schemas = []
    for part in described.tables:
        prefix = "" if described.schema is not None else f"{part.name}."
        own = [name for name in places if name in {f"{prefix}{field}" for field in part.schema.names}]
        order = None if part.parent is None else f"{prefix}{part.parent.order}"
        fields = _kept(part.schema, prefix, found)
        counting = part.parent.order if part.parent is not None and part.parent.numbered else None
        hidden = bool(own) and not any(field.categories > 1 and field.name != counting for field in fields)
        guessed = guessed or hidden
        # The budget is spent: what is known least is released rather than nothing, and an order stays one.
        for name in own:
            if hidden or (name == order and found[name] is None):
                found[name] = _guessed_field(columns[places[name]][1], noisy.values[places[name]])
        # What matters most, or is expected, is forgotten where its column is left out: a refusal would lose the budget.
        fields = _kept(part.schema, prefix, found)
        names, before = {field.name for field in fields}, part.schema
        known = [f.expected is None or names.issuperset(f.expected.bases) for f in fields]
        fields = tuple(f if own else replace(f, expected=None) for f, own in zip(fields, known, strict=True))
        important = tuple(group for group in before.important if names.issuperset(group))
        target = before.target if before.target in names else None
        schemas.append(replace(before, fields=fields, important=important, target=target))
    learned = tuple(name for name, field in found.items() if field is not None)
    left_out = tuple(name for name in found if name not in learned)
    return Learned(described.with_schemas(schemas), learned, left_out, guessed)


def _kept(schema: Schema, prefix: str, found: Mapping[str, Field | None]) -> tuple[Field, ...]:
    """The declared fields, and those of which something was learned."""
    return tuple(field for f in schema.fields if (field := found.get(f"{prefix}{f.name}", f)) is not None)


def column_sensitivity(columns: int) -> Sensitivity:
    """A replaced row leaves one bin or word of each column and enters another: 2 each in ℓ1, and in ℓ2 squared."""
    return Sensitivity.histograms(columns)


def _words(counts: Occurrences, j: int) -> dict[str, int]:
    return counts.words[j]


# From noisy counts to fields: post-processing.


def _learned_field(column: LearnedColumn, counts: Array, noise: Noise, words: Mapping[str, float]) -> Field | None:
    """The field with its domain; None if nothing stands out, or named labels hold less than half of what is there."""
    field = column.field
    if column.is_text:
        done = replace(field, learn=False, learned=True, enum=tuple(words), other=field.other or OTHER)
        return done if words and sum(words.values()) >= HALF * (noise.n - float(counts[0])) else None
    counts = counts[: column.bins]
    kept = kept_bins(counts, noise.least, column.wide)
    if kept is None:
        return None
    kept = with_margins(counts, kept, column.wide, noise, column.edges.index(0) if column.is_number else None)
    return replace(field, learn=False, learned=True, special=(*field.special, *words), **_limits(column, kept))


def _guessed_field(column: LearnedColumn, counts: Array) -> Field:
    """A field with two categories at least where nothing stands out: the fullest bin and the next one; of texts none is named."""
    field = column.field
    if column.is_text:
        return replace(field, required=False, learn=False, learned=True, enum=(), other=field.other or OTHER)
    first = min(int(np.argmax(counts[: column.bins])), column.bins - 2)
    return replace(field, learn=False, learned=True, **_limits(column, (first, first + 1)))


def _limits(column: LearnedColumn, kept: tuple[int, int]) -> dict[str, Any]:
    """Limits on the grid: of single whole numbers the first and the last, of years their first and last day."""
    low, high = Fraction(column.edges[kept[0]]), Fraction(column.edges[kept[1] + 1])
    ends: tuple[Any, ...] = int(low), int(high) - 1
    if column.field.type == "date":
        ends = date(ends[0], 1, 1), date(ends[1], 12, 31)
    elif column.field.type == "datetime":
        ends = datetime(ends[0], 1, 1), datetime(ends[1], 12, 31, 23, 59, 59)
    elif column.field.type == "number" or high - low != kept[1] - kept[0] + 1:
        ends = tuple(map(float if column.field.type == "number" else int, from_zero(low, high)))
    return dict(zip(("minimum", "maximum"), ends, strict=True))


# What learning costs, from public numbers alone.


def learning_cost(described: Schema | Description, n: int, budget: Budget) -> dict[str, Any] | None:
    """What learning the fields of a description costs; None if none is learned.

    How many columns are learned, and how many the budget carries; rows, or persons, that may be clipped at each end of a learned
    number, and the share of them below which a label becomes "other".
    """
    columns = learned_columns(Description.of(described))
    if not columns:
        return None
    tail = _standing_out(len(columns), budget, sum(column.bins for _, column in columns))
    share = None if budget.pure else min(1.0, _named(len(columns), budget) / n)
    carried = _carried(len(columns), n, budget)
    return {"columns": len(columns), "tail_rows": min(n, int(tail)), "other_share": share, "carried": carried}


def cost_words(cost: Mapping[str, Any], counted: str = "rows") -> str:
    """What learning costs, for a screen."""
    other = cost["other_share"]
    labels = "" if other is None else f', labels below about {other:.2g} of the {counted} "other"'
    tail = f"about {cost['tail_rows']} {counted} at each end may be clipped, more where they are spread widely"
    return f"{cost['columns']} columns are learned: {tail}{labels}"


def _standing_out(columns: int, budget: Budget, bins: int) -> float:
    """From how many rows on a bin of a number stands out of the noise."""
    sd = column_sensitivity(columns).deviation(budget.part(SHARE))
    return float(kept_counts(sd, independent_noise(budget.pure), bins)[0])


def _named(columns: int, budget: Budget) -> int:
    """From how many rows on a label is named."""
    variance = budget.part(SHARE).variance(column_sensitivity(columns).under(budget).l2_squared)
    steps = WEIGHT_STEPS if budget.persons else 1  # as the gate counts
    k = budget.rows_per_person * steps
    return -(-selection_threshold(variance * steps**2, budget.selection, columns, k) // steps)


def _carried(columns: int, n: int, budget: Budget) -> int:
    """How many of so many columns can be learned such that what a twentieth of the rows hold stands out."""

    def good(q: int) -> bool:
        return (_standing_out(q, budget, q * BINS) if budget.pure else _named(q, budget)) <= GOOD * n

    return bisect_left(range(1, columns + 1), True, key=lambda q: not good(q))


def too_wide(described: Schema | Description, n: int, budget: Budget) -> str:
    """What to say before the charge where more columns are to be learned than the budget carries; nothing where it carries them.

    Important columns come first in the order that is offered, then the others as the tables have them.
    """
    whole, cost = Description.of(described), learning_cost(described, n, budget)
    if cost is None or cost["carried"] >= cost["columns"]:
        return ""
    most = whole if whole.schema is None else whole.schema
    first = [name for group in ((most.target,), *most.important) for name in group if name is not None]
    known = [name for name, _ in learned_columns(whole)]
    names = [name for name in dict.fromkeys((*first, *known)) if name in known]
    kept = ", ".join(names[: cost["carried"]]) or names[0]
    return (
        f"{cost['columns']} columns are to be learned, and this budget carries about {cost['carried'] or 'none'}. With more, "
        f"noise hides labels and values that a twentieth of the {budget.counted} hold. Name those to keep with --columns, "
        f"such as {kept}."
    )


def expected_schema(schema: Schema) -> Schema:
    """The schema with a guess at what is to be learned: what a plan starts from, before anything is known."""
    ends: dict[str, Any] = {"date": (date(2000, 1, 1), date(2020, 12, 31))}
    ends["datetime"] = tuple(datetime(day.year, day.month, day.day) for day in ends["date"])

    def guess(field: Field) -> Field:
        if field.type == "string":
            return replace(field, learn=False, enum=tuple(map(str, range(LABELS))), other=field.other or OTHER)
        low, high = ends.get(field.type, (0, FINE))
        return replace(field, learn=False, minimum=low, maximum=high, decimals=0 if field.type == "number" else None)

    known = with_known_domains(schema)
    return replace(known, fields=tuple(guess(field) if field.learn else field for field in known.fields))


def expected_codec(schema: Schema) -> Codec:
    """The encoder of the fields that vary: declared ones, and for learned ones a guess."""
    return Codec(expected_schema(schema))
