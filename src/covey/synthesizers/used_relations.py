"""Relations that were found, as knowledge: rules, derived columns and expectations of a schema, and sentences for readers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from covey.engine.relations.formulas import DAY, HALF, Candidate, Column, can_be_computed
from covey.engine.relations.literals import EQUIVALENT, IMPLIES, Function, Literal
from covey.engine.relations.search import Accepted, Findings
from covey.errors import ParameterError, counted
from covey.tables.attributes import Grid
from covey.tables.codec import Codec
from covey.tables.derived_fields import Derived, leading_number, quoted
from covey.tables.fields import Field
from covey.tables.rules import Condition, Forbid, Rule
from covey.tables.schema import NONE, LessEqual, Relation, Schema
from covey.tables.zeros import structural_zeros

MISSING = Condition((None,))
UNITS = (("day", DAY), ("hour", 3600.0), ("minute", 60.0), ("second", 1.0))
# A number that two others are the parts of, by division with a remainder: the parts are measured. The names of quotient and
# remainder, the divisor, and the worse of the two relations.
Whole = tuple[tuple[str, str], int, Accepted]


def columns_of(codec: Codec) -> tuple[Column, ...]:
    """What is public of the encoded columns of a schema."""
    return tuple(_column(codec, j, name) for j, name in enumerate(codec.names))


def _column(codec: Codec, j: int, name: str) -> Column:
    attribute, size = codec.attributes[name], codec.kinds[j].size
    own = attribute.field
    if name in codec.links or name in codec.expected or name in codec.schema.together:
        return Column(name, "label", size)  # its codes are not its values, or it is no column of the table
    if not isinstance(attribute, Grid) or own.type == "time":
        labels = () if own.type == "time" else own.labels
        numbers = tuple(map(leading_number, labels))
        known = 2 * np.isfinite(numbers).sum() > len(labels) > 0
        missing = -1 if own.required else size - 1
        return Column(name, "label", size, missing, labels=labels, numbers=numbers if known else ())
    kind = own.type if own.type in ("date", "datetime") else "number"
    step = DAY if kind == "date" else 10.0**-attribute.axis.decimals
    low = attribute.axis.low * step
    if name in codec.fine:
        steps = attribute.axis.high - attribute.axis.low + 1
        return Column(name, kind, size, -1 if own.required else len(own.special), codec.apart(name), steps, low, step)
    if (attribute.axis.ends > attribute.axis.starts).any():
        return Column(name, "label", size, -1 if own.required else size - 1)  # wide bins: values are not known
    return Column(name, kind, size, -1 if own.required else size - 1, 0, attribute.bins, low, step)


def with_relations(codec: Codec, findings: Findings) -> Schema:
    """The schema with what was found; what contradicts the rest is left out, the latest first: nothing may fail by now."""
    accepted = list(findings.accepted)
    while True:
        try:
            schema = applied(codec, findings, accepted)
            structural_zeros(Codec(schema))
            return schema
        except ParameterError:
            accepted.pop()


def applied(codec: Codec, findings: Findings, accepted: list[Accepted]) -> Schema:
    """The schema with these relations; refused where they contradict it."""
    before, columns = codec.schema, findings.columns
    accepted, wholes = _from_parts(findings, accepted)
    fields: dict[str, Field] = {field.name: field for field in before.fields}
    rules: list[Rule] = list(before.rules)
    told: list[Relation] = []

    def tell(words: str, use: str, names: tuple[str, ...], one: Accepted) -> None:
        told.append(
            Relation(words.rstrip("."), use, names, one.broken, one.share.sd, one.share.margin, one.share.looks)
        )

    computed = {name: f"{k} * {quoted(a)} + {quoted(b)}" for name, ((a, b), k, _) in wholes.items()}
    dropping = [a.what for a in accepted if not isinstance(a.what, tuple) and _drops(a)]
    gone = {*wholes, *(columns[what.target].name for what in dropping)}
    formulas = [what for what in dropping if isinstance(what, Candidate)]
    for _ in formulas:  # each may start from another one
        for what in formulas:
            computed[columns[what.target].name] = _expression(findings, what, computed)
    for name, ((a, b), k, one) in wholes.items():
        if not fields[a].required and not fields[b].required:  # they are missing together
            rules += [Forbid.requires(((x, MISSING),), ((y, MISSING),)) for x, y in ((a, b), (b, a))]
        fields[name] = _computed(fields[name], Derived.from_dict({"expression": computed[name]}, name))
        tell(f"{name} is {k} times {a} plus {b}", "derived", (name, a, b), one)
    for one in accepted:
        if isinstance(one.what, tuple) or (one.imposed and not _drops(one)):
            found = _rules(codec, findings, one.what)
            if gone.isdisjoint(found[0].fields):
                rules += found
                tell(said(found[0], fields), "rule", found[0].fields, one)
            continue
        name, decimals = columns[one.what.target].name, 0
        if isinstance(one.what, Function):
            original = _original(accepted, one.what.source)
            derived = replace(_function(codec, findings, one, one.what), bases=(columns[original].name,))
            words = _function_words(findings, one.what)
        else:
            derived, words = _derived(findings, one.what, computed), _formula_words(findings, one.what)
            added = [fields[base] for base in derived.bases if one.what.name in ("equal", "sum")]
            decimals = max((b.axis.decimals for b in added if b.type == "number" and b.measured), default=0)
        if one.imposed:
            fields[name] = _computed(fields[name], derived, decimals)
        else:
            fields[name] = replace(fields[name], expected=derived)
        tell(words, "derived" if one.imposed else "expected", (name, *derived.bases), one)
    important = tuple(group for group in before.important if gone.isdisjoint(group))
    target = None if before.target in gone else before.target
    after = replace(before, fields=tuple(fields.values()), rules=tuple(rules), important=important, target=target)
    return replace(after, relations=tuple(told) or NONE)


def _original(accepted: list[Accepted], column: int) -> int:
    """The column that a column is a copy of, if it is computed as a copy; else the column."""
    computed = [one.what for one in accepted if _drops(one)]
    copies = {what.target: what.sources[0] for what in computed if isinstance(what, Candidate) and what.name == "equal"}
    while column in copies:
        column = copies[column]
    return column


def _drops(one: Accepted) -> bool:
    """Whether a column is not measured any more, but computed; an order becomes a rule."""
    return one.imposed and not isinstance(one.what, tuple) and one.what.name != "order"


def _computed(field: Field, derived: Derived | None, least: int = 0) -> Field:
    """A field that is computed: its limits follow, and it has as many decimals as what it is added up from."""
    decimals = max(least, field.axis.decimals) if field.type == "number" else None
    bare = Field(field.name, field.type, decimals=decimals, flags=field.flags, derived=derived)
    marked = replace(bare, learned=field.learned, from_table=field.from_table)
    return replace(marked, spelling=field.spelling, notes=field.notes)


def _from_parts(findings: Findings, accepted: list[Accepted]) -> tuple[list[Accepted], dict[str, Whole]]:
    """Numbers of which both parts were found, where nothing else speaks of them but formulas that start from them."""
    parts: dict[tuple[int, float], dict[str, tuple[str, Accepted]]] = {}
    for one in accepted:
        if isinstance(one.what, Candidate) and one.imposed and one.what.name in ("quotient", "remainder"):
            name = findings.columns[one.what.target].name
            parts.setdefault((one.what.sources[0], one.what.k), {})[one.what.name] = name, one
    found: dict[str, Whole] = {}
    for (whole, k), both in parts.items():
        ours = [one for _, one in both.values()]
        rest = [one for one in accepted if one not in ours]
        there = [findings.columns[one.what.target] for one in ours if isinstance(one.what, Candidate)]
        free = can_be_computed(findings.columns[whole], there)
        if len(both) == 2 and free and not any(_speaks_of(findings, one, whole) for one in rest):
            names = both["quotient"][0], both["remainder"][0]
            found[findings.columns[whole].name] = names, int(k), max(ours, key=lambda one: one.broken)
            accepted = rest
    return accepted, found


def _speaks_of(findings: Findings, one: Accepted, column: int) -> bool:
    what = one.what
    if isinstance(what, tuple):
        return column in (findings.of.literals[what[1]].column, findings.of.literals[what[2]].column)
    return column == what.target or (column in what.sources and what.name in ("function", "order"))


# Rules.


def _rules(codec: Codec, findings: Findings, what: tuple[int, int, int] | Function | Candidate) -> list[Rule]:
    if isinstance(what, Candidate):  # an order
        left, right = (findings.columns[j].name for j in (what.sources[0], what.target)[:: int(what.k)])
        return [LessEqual(left, right, linked=False)]
    assert isinstance(what, tuple)  # nosec B101 # for the type checker: functions are no rules
    kind, *both = what
    (a, x), (b, y) = (_condition(codec, findings, findings.of.literals[i]) for i in both)
    if kind == IMPLIES:
        return [Forbid.requires(((a, x),), ((b, y),))]
    if kind == EQUIVALENT:
        return [Forbid.requires(((a, x),), ((b, y),)), Forbid.requires(((b, y),), ((a, x),))]
    return [Forbid(((a, x), (b, y)))]


def _condition(codec: Codec, findings: Findings, literal: Literal) -> tuple[str, Condition]:
    column, edges = findings.columns[literal.column], findings.of.cells.edges[literal.column]
    first, last = int(edges[literal.first]), int(edges[literal.last + 1]) - 1
    if literal.single:
        return column.name, Condition((_value(codec, column, first),))
    if first > column.first:
        return column.name, Condition((), _value(codec, column, first), None)
    return column.name, Condition((), None, _value(codec, column, last))


def _value(codec: Codec, column: Column, code: int) -> Any:
    """The value of a code, as rules name it, no text where a column has special words; None for missing."""
    attribute = codec.attributes[column.name]
    own = attribute.field
    if code == column.missing:
        return None
    if not isinstance(attribute, Grid):
        return own.labels[code] if own.type == "string" else bool(code)
    if not column.first <= code < column.first + column.steps:
        return _word(codec, column, code)
    return Grid(replace(own, special=()), ()).render(np.array([own.axis.low + code - column.first]))[0]


# Functions and formulas.


def _function(codec: Codec, findings: Findings, one: Accepted, function: Function) -> Derived:
    """The function as a map of labels, or as classes of a number."""
    source, target = findings.columns[function.source], findings.columns[function.target]
    known = codec.schema[target.name].labels
    labels = [None if place in (-1, target.missing) else known[place] for place in one.map]
    codes = findings.of.cells.edges[function.source][:-1].tolist()
    cuts: list[tuple[int | float, str | None]] = []
    entries = []
    for code, label in zip(codes, labels, strict=True):
        if not source.first <= code < source.first + source.steps:
            key = None if code == source.missing else _word(codec, source, code)
            entries += [((key,), label)] if key is not None or label is not None else []
        elif not cuts or cuts[-1][1] != label:
            cuts.append((_plain(source.low + source.step * (code - source.first)), label))
    if not cuts:
        return Derived((source.name,), tuple(entries))
    edges = (*(edge for edge, _ in cuts), _plain(source.high + source.step))
    return Derived((source.name,), tuple(entries), edges, tuple(label for _, label in cuts))


def _word(codec: Codec, source: Column, code: int) -> str:
    """A code of a label, or of a word among numbers, as its cells are written."""
    own = codec.schema[source.name]
    if source.kind == "label":
        return own.labels[code]
    return own.special[code if source.first else code - source.steps]


def _plain(value: float) -> int | float:
    """A number as a person writes it."""
    return int(value) if value == int(value) else round(value, 9)


def _names(findings: Findings, candidate: Candidate) -> dict[str, Any]:
    names = {letter: findings.columns[s].name for letter, s in zip("abc", candidate.sources, strict=False)}
    return names | {"t": findings.columns[candidate.target].name, "k": _plain(candidate.k)}


def _expression(findings: Findings, candidate: Candidate, computed: Mapping[str, str]) -> str:
    """A formula as an expression of measured columns: those that are computed give way to what they are computed from."""
    names = {
        letter: x if letter == "k" else f"({computed[x]})" if x in computed and letter != "t" else quoted(x)
        for letter, x in _names(findings, candidate).items()
    }
    return candidate.formula.expression.format(**names)


def _derived(findings: Findings, candidate: Candidate, computed: Mapping[str, str]) -> Derived:
    text = _expression(findings, candidate, computed)
    found = Derived.from_dict({"expression": text}, findings.columns[candidate.target].name)
    assert found is not None  # nosec B101 # for the type checker
    return found


def said(rule: Rule, fields: Mapping[str, Field] | Schema) -> str:
    """The rule in words: yes/no columns say what their table says, No and Yes."""
    if not isinstance(rule, Forbid):
        return rule.words

    def own(name: str, condition: Condition) -> Condition:
        words = fields[name].flags
        return replace(condition, values=tuple(words[v] if isinstance(v, bool) else v for v in condition.values))

    return Forbid(*(tuple((name, own(name, c)) for name, c in part) for part in (rule.conditions, rule.unless))).words


def _formula_words(findings: Findings, candidate: Candidate) -> str:
    positive = {"order": "below", "days later": "after", "clock": "after", "sum": "plus", "sum of three": "plus"}
    negative = {"order": "above", "days later": "before", "clock": "before", "sum": "minus", "sum of three": "minus"}
    side = (positive if candidate.k > 0 else negative).get(candidate.name, "")
    return candidate.formula.words.format(**_names(findings, candidate), side=side) + _room(findings, candidate)


def _room(findings: Findings, candidate: Candidate) -> str:
    """What a row may be off by and keep the relation, in words; nothing where that is no step of the column."""
    column = findings.columns[candidate.target]
    if candidate.relative:
        return f", within {candidate.relative:.0%}"
    if candidate.slack <= HALF * column.step:
        return ""
    apart = _duration(candidate.slack) if column.is_date else f"{_plain(float(f'{candidate.slack:.3g}'))}"
    return f" by more than {apart}" if candidate.name == "order" else f", within {apart}"


def _duration(seconds: float) -> str:
    """A time in its largest whole unit."""
    unit, length = next(((unit, length) for unit, length in UNITS if seconds >= length), UNITS[-1])
    return counted(round(seconds / length), unit)


def _function_words(findings: Findings, function: Function) -> str:
    target, source = findings.columns[function.target].name, findings.columns[function.source].name
    if not function.map:
        return f"{target} follows from {source}"
    letters = {1: "the first character", 2: "the first two characters", 3: "the first three characters"}
    return f"{target} is {letters[function.letters]} of {source}" if function.letters else f"{target} equals {source}"
