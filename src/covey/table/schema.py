"""The public description of a table: a Frictionless Table Schema, with covey's own words under a "covey" key.

    {"fields": [{"name": "age", "type": "integer", "constraints": {"minimum": 0, "maximum": 120}, "covey": {"bins": 24}}, …],
     "missingValues": [""],
     "covey": {"rules": [{"forbid": {"age": {"maximum": 15}, "married": true}}, …]}}

Per field, "covey" may hold bins (a count, or edges), other (the label of unknown categories, or true), default,
decimals, constant, ordered and confirmed; for the table, draft and rules. The schema is the public domain: whatever
follows from it may be released, so a schema drafted from data says so until each field is confirmed.
"""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from dataclasses import field as entry
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.errors import MissingExtraError, ParameterError, whole_number

DRAFT_MARK = "draft: describes private data"
TYPES = ("boolean", "string", "integer", "number", "date", "datetime")
ORDERED_TYPES = TYPES[2:]
DEFAULT_BINS = 20
MOST_DECIMALS = 15
MOST_ITEMS = 10**6  # of a YAML file, references unfolded
GUARDED = ("=", "+", "-", "@", "\t", "\r")  # a spreadsheet runs what starts like this; CSV puts an apostrophe before it
LARGEST = 2**53  # whole numbers up to here are exact as floats, and so are all comparisons

# What covey reads of a file, and where. Entries of PROPERTIES may hold other properties too, as Frictionless allows.
PROPERTIES = {
    "at the top level of the schema": ("fields", "missingValues", "covey"),
    'directly in an entry of "fields"': ("name", "type", "constraints", "covey", "format"),
}
SECTIONS = {
    'under "covey" of the schema': ("draft", "rules"),
    'under "constraints" of a field': ("minimum", "maximum", "enum", "required"),
    'under "covey" of a field': ("bins", "other", "default", "decimals", "constant", "ordered", "confirmed"),
}
OF_SCHEMA, OF_FIELD = PROPERTIES
OWN_OF_SCHEMA, LIMITS_OF_FIELD, OWN_OF_FIELD = SECTIONS

Value = bool | int | float | str | date | datetime
_EPOCH = datetime(1970, 1, 1)


def optional(module: str, extra: str = "table") -> Any:
    """Import a package of an extra such as covey[table], or name the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(f"reading tables needs {module}: pip install 'covey[{extra}]'") from None


@dataclass(frozen=True)
class Constant:
    """A public constant, carried along and never measured; None means always missing."""

    value: Value | None


@dataclass(frozen=True)
class Axis:
    """Bins on the whole multiples of 10^-decimals (days for dates, seconds for times): bin b is starts[b], …, ends[b]."""

    starts: Integers
    ends: Integers
    decimals: int

    @property
    def low(self) -> int:
        """The least multiple."""
        return int(self.starts[0])

    @property
    def high(self) -> int:
        """The largest multiple."""
        return int(self.ends[-1])


@dataclass(frozen=True)
class Field:
    """One column: its type, its public bounds or categories, and how cells outside them are read."""

    name: str
    type: str
    minimum: Value | None = None
    maximum: Value | None = None
    enum: tuple[str, ...] | None = None
    required: bool = False
    bins: int | tuple[Value, ...] | None = None
    other: str | None = None
    default: Value | None = None
    decimals: int | None = None
    constant: Constant | None = None
    ordered: bool = False
    confirmed: bool = True
    notes: Mapping[str, Any] = entry(default_factory=dict, hash=False)  # title, description: kept, never read

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name != self.name.strip():
            raise ParameterError(f"a field needs a name without white space around it, got {self.name!r}.")
        if self.type not in TYPES:
            raise self.wrong(f"has type {self.type!r}", f"Use one of {', '.join(TYPES)}.")
        for word in ("minimum", "maximum", "default"):
            value = getattr(self, word)
            if value is not None:
                object.__setattr__(self, word, self.value(value, word))
        if self.type in ORDERED_TYPES:
            self._check_ordered()
        else:
            self._check_labels()
        if self.constant is not None and self.constant.value is not None:
            object.__setattr__(self, "constant", Constant(self.value(self.constant.value, "constant")))
        elif self.constant is not None and self.required:
            raise self.wrong("is required, and its constant is missing", "Give the constant a value.")
        if self.confirmed:
            self.require_complete()

    def wrong(self, what: str, way_out: str) -> ParameterError:
        """An error that names this field."""
        return ParameterError(f"field {self.name!r} {what}. {way_out}")

    def _check_ordered(self) -> None:
        if self.enum is not None or self.other is not None:
            raise self.wrong(f"has type {self.type} and a list of categories", 'Use type "string" for categories.')
        if self.decimals is not None:
            if self.type != "number":
                raise self.wrong(f"has type {self.type} and decimals", 'decimals belong to type "number".')
            if whole_number(self.decimals, f"decimals of field {self.name!r}", 0) > MOST_DECIMALS:
                raise self.wrong(f"has {self.decimals} decimals", f"At most {MOST_DECIMALS} are exact.")
        if isinstance(self.bins, Sequence) and not isinstance(self.bins, str):
            edges = tuple(self.value(edge, "bins") for edge in self.bins)
            object.__setattr__(self, "bins", edges)
            if len(edges) < 2 or any(not _below(a, b) for a, b in pairwise(edges)):
                raise self.wrong(f"has bin edges {_shown(edges)}", "Give two or more, each above the one before.")
            for word, edge in (("minimum", edges[0]), ("maximum", edges[-1])):
                if getattr(self, word) is None:
                    object.__setattr__(self, word, edge)
                elif getattr(self, word) != edge:
                    raise self.wrong(
                        f"has {word} {_shown(getattr(self, word))} and an outer bin edge {_shown(edge)}",
                        "Let the edges run from the minimum to the maximum.",
                    )
        elif self.bins is not None:
            whole_number(self.bins, f"bins of field {self.name!r}", 1, "Give a count or a list of edges.")
        if self.minimum is None or self.maximum is None:
            return
        if _below(self.maximum, self.minimum):
            raise self.wrong(
                f"has minimum {_shown(self.minimum)} above maximum {_shown(self.maximum)}", "Exchange the two."
            )
        axis = self.axis
        if self.default is not None and not axis.low <= self.on_grid(self.default) <= axis.high:
            raise self.wrong(f"has default {_shown(self.default)} out of bounds", "Choose one between the bounds.")

    def _check_labels(self) -> None:
        for word in ("minimum", "maximum", "bins", "decimals"):
            if getattr(self, word) is not None:
                raise self.wrong(f"has type {self.type} and {word}", "Bounds and bins belong to numbers and dates.")
        if self.type == "boolean":
            if self.enum is not None or self.other is not None:
                raise self.wrong("is boolean and lists categories", 'Use type "string" for categories.')
            return
        if self.enum is not None:
            if isinstance(self.enum, str) or not isinstance(self.enum, Sequence):
                raise self.wrong(f"has enum {self.enum!r}", "Give a list of categories.")
            object.__setattr__(self, "enum", tuple(self.enum))
            for label in self.enum:
                if not isinstance(label, str):
                    raise self.wrong(f"lists category {label!r}", "Categories are text: put them in quotes.")
                if not _is_label(label):
                    raise self.wrong(
                        f"lists category {label!r}",
                        "Leave out blank ones, white space around them, NUL and carriage returns.",
                    )
                if label.startswith(GUARDED) and f"'{label}" in self.enum:
                    raise self.wrong(
                        f"lists {label!r} with and without an apostrophe", "CSV could not tell them apart."
                    )
            twice = sorted({label for label in self.enum if self.enum.count(label) > 1}) if self._repeats() else []
            if twice:
                raise self.wrong(f"lists category {twice[0]!r} twice", "List each category once.")
            if self.default is not None and self.default not in self.labels:
                raise self.wrong(f"has default {self.default!r}, not a category", "Choose one of its categories.")
        if self.other is not None and (not isinstance(self.other, str) or not _is_label(self.other)):
            raise self.wrong(f"has other {self.other!r}", "Give a label, or true.")

    def _repeats(self) -> bool:
        return self.enum is not None and len(set(self.enum)) < len(self.enum)

    def require_complete(self) -> None:
        """Refuse a field whose public domain is not declared yet."""
        if self.constant is not None:
            return
        if self.type == "string" and not self.labels:
            raise self.wrong("has no categories", "List them under constraints.enum.")
        if self.type in ORDERED_TYPES and (self.minimum is None or self.maximum is None):
            raise self.wrong(
                f"has type {self.type} and no bounds", "Give constraints.minimum and maximum from public knowledge."
            )

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories of a boolean or string field, the one for unknown labels last unless it is among them."""
        if self.type == "boolean":
            return ("false", "true")
        enum = self.enum or ()
        return enum if self.other is None or self.other in enum else (*enum, self.other)

    @property
    def categories(self) -> int:
        """How many categories the attribute has, missing included."""
        if self.constant is not None:
            return 1
        self.require_complete()
        return (len(self.axis.starts) if self.type in ORDERED_TYPES else len(self.labels)) + (not self.required)

    @cached_property
    def axis(self) -> Axis:
        """The bins of a number or date."""
        decimals = self._precision()
        low, high = (
            self.on_grid(self.minimum, ROUND_CEILING, decimals),
            self.on_grid(self.maximum, ROUND_FLOOR, decimals),
        )
        if max(abs(low), abs(high)) > LARGEST:
            raise self.wrong(
                "has bounds beyond 2^53 steps of its precision", "Declare fewer decimals or closer bounds."
            )
        count = high - low + 1
        if isinstance(self.bins, tuple):
            starts = np.array([self.on_grid(e, ROUND_CEILING, decimals) for e in self.bins[:-1]], dtype=np.int64)
        else:
            bins = max(1, min(self.bins or DEFAULT_BINS, count))
            starts = np.array([low + j * count // bins for j in range(bins)], dtype=np.int64)
        ends = np.append(starts[1:] - 1, high)
        if (ends < starts).any():
            raise self.wrong("has a bin without any value of its precision", "Widen the bins or declare more decimals.")
        return Axis(starts, ends, decimals)

    def _precision(self) -> int:
        """Declared decimals, or, from the public bounds alone, enough for a thousand values in the narrowest bin."""
        if self.type != "number" or self.decimals is not None:
            return self.decimals or 0
        given = self.bins if isinstance(self.bins, tuple) else (self.minimum, self.maximum)
        points = [_number(v) for v in given]
        width = min(b - a for a, b in pairwise(points))
        if not isinstance(self.bins, tuple):
            width /= self.bins or DEFAULT_BINS
        wanted = max(
            math.ceil(3 - math.log10(width)) if width else 0, *(-int(p.as_tuple().exponent) for p in points), 0
        )
        largest = max(abs(p) for p in points)
        room = math.floor(math.log10(LARGEST / largest)) if largest else MOST_DECIMALS
        return max(0, min(wanted, room, MOST_DECIMALS))

    def on_grid(self, value: Any, rounding: str = ROUND_HALF_EVEN, decimals: int | None = None) -> int:
        """A public value in steps of the field's precision."""
        if self.type == "date":
            return int((value - _EPOCH.date()).days)
        if self.type == "datetime":
            return int((value - _EPOCH) // timedelta(seconds=1))
        places = self.axis.decimals if decimals is None else decimals
        return int(_number(value).scaleb(places).to_integral_value(rounding))

    def value(self, value: Any, word: str) -> Value:
        """A public value in the field's type, or a refusal that names it."""
        read = _typed(self.type, value)
        if read is None:
            raise self.wrong(
                f"has {word} {_shown(value)}, not a value of type {self.type}", "Correct it in the schema."
            )
        return read

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], confirmed: bool = True) -> Field:
        """Read one entry of "fields"; confirmed is what holds where the file does not say."""
        if not isinstance(data, Mapping):
            raise ParameterError(f"each field must be an object with a name and a type, got {data!r}.")
        name: Any = data.get("name")
        _refuse_misplaced(data, OF_FIELD, f"field {name!r}")
        own, limits = _section(data, "covey", name), _section(data, "constraints", name)
        _only(own, OWN_OF_FIELD, f"covey of field {name!r}")
        # A constraint that is not understood could not be guaranteed in the output.
        _only(limits, LIMITS_OF_FIELD, f"constraints of field {name!r}")
        for word in _spelt_like(data, ("trueValues", "falseValues", "decimalChar", "groupChar", "bareNumber")):
            raise ParameterError(f"field {name!r} has {word}, which covey does not read. Leave it out.")
        if data.get("format", "default") not in ("default", "any"):
            raise ParameterError(f"field {name!r} has format {data['format']!r}; covey reads the default format alone.")
        bins, other = own.get("bins"), own.get("other")
        return cls(
            name=name,
            type=data.get("type", "string"),
            minimum=limits.get("minimum"),
            maximum=limits.get("maximum"),
            enum=limits.get("enum"),
            required=_flag(limits, "required", False, name),
            bins=tuple(bins) if isinstance(bins, list) else bins,
            other={True: "other", False: None}[other] if isinstance(other, bool) else other,
            default=own.get("default"),
            decimals=own.get("decimals"),
            constant=Constant(own["constant"]) if "constant" in own else None,
            ordered=_flag(own, "ordered", False, name),
            confirmed=_flag(own, "confirmed", confirmed, name),
            notes={k: v for k, v in data.items() if k not in ("name", "type", "constraints", "covey")},
        )

    def to_dict(self, draft: bool = False) -> dict[str, Any]:
        """The entry of "fields"."""
        limits = {
            "required": self.required or None,
            "minimum": _shown(self.minimum),
            "maximum": _shown(self.maximum),
            "enum": None if self.enum is None else list(self.enum),
        }
        own = {
            "bins": [_shown(edge) for edge in self.bins] if isinstance(self.bins, tuple) else self.bins,
            "other": self.other,
            "default": _shown(self.default),
            "decimals": self.decimals,
            "ordered": self.ordered or None,
            "confirmed": self.confirmed if draft or not self.confirmed else None,
        }
        out: dict[str, Any] = {"name": self.name, "type": self.type, **self.notes}
        if given := {k: v for k, v in limits.items() if v is not None}:
            out["constraints"] = given
        given = {k: v for k, v in own.items() if v is not None}
        if self.constant is not None:
            given["constant"] = _shown(self.constant.value)
        if given:
            out["covey"] = given
        return out


@dataclass(frozen=True)
class AtMost:
    """A record sets at most `limit` of these boolean fields; a missing flag is not set."""

    fields: tuple[str, ...]
    limit: int

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"at_most": {"fields": list(self.fields), "limit": self.limit}}


@dataclass(frozen=True)
class LessEqual:
    """left ≤ right, where neither is missing."""

    left: str
    right: str

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""
        return (self.left, self.right)

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"less_equal": {"left": self.left, "right": self.right}}


@dataclass(frozen=True)
class Linear:
    """Σ coefficient · field ≤ maximum, where none is missing."""

    coefficients: tuple[tuple[str, float], ...]
    maximum: float

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""
        return tuple(name for name, _ in self.coefficients)

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"linear": {"coefficients": dict(self.coefficients), "maximum": self.maximum}}


@dataclass(frozen=True)
class Condition:
    """Some values of a field (None is missing), or all between two bounds."""

    values: tuple[Value | None, ...] = ()
    minimum: Value | None = None
    maximum: Value | None = None

    @property
    def is_range(self) -> bool:
        """Whether bounds are given instead of values."""
        return not self.values

    def to_plain(self) -> Any:
        """The condition as it stands in a file."""
        if self.values:
            return [_shown(v) for v in self.values]
        return {k: _shown(v) for k, v in (("minimum", self.minimum), ("maximum", self.maximum)) if v is not None}


@dataclass(frozen=True)
class Forbid:
    """A structural zero: no record meets all these conditions at once."""

    conditions: tuple[tuple[str, Condition], ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields that the rule names."""
        return tuple(name for name, _ in self.conditions)

    def to_dict(self) -> dict[str, Any]:
        """The rule as it stands in a file."""
        return {"forbid": {name: condition.to_plain() for name, condition in self.conditions}}


Rule = AtMost | LessEqual | Linear | Forbid


@dataclass(frozen=True)
class Schema:
    """The public domain of a table: its fields in order, how missing cells are written, and the rules of its rows."""

    fields: tuple[Field, ...]
    missing_values: tuple[str, ...] = ("",)
    rules: tuple[Rule, ...] = ()
    draft: bool = False
    notes: Mapping[str, Any] = entry(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if not self.fields:
            raise ParameterError("the schema has no fields. List the table's columns under fields.")
        seen: set[str] = set()
        for field in self.fields:
            if field.name in seen:
                raise field.wrong("is declared twice", "Give each column one entry and a name of its own.")
            seen.add(field.name)
            hidden = set(field.labels) & set(self.missing_values) if field.type == "string" else set()
            if hidden:
                raise field.wrong(
                    f"lists category {min(hidden)!r}, which missingValues declares missing", "Remove it from either."
                )
        for rule in self.rules:
            self._check_rule(rule)

    def __getitem__(self, name: str) -> Field:
        for field in self.fields:
            if field.name == name:
                return field
        raise ParameterError(f"the schema has no field {name!r}. It has {', '.join(self.names)}.")

    @property
    def names(self) -> tuple[str, ...]:
        """The fields' names, in order."""
        return tuple(field.name for field in self.fields)

    @property
    def encoded(self) -> tuple[Field, ...]:
        """The fields with more than one category; the others are public constants."""
        return tuple(field for field in self.fields if field.categories > 1)

    def _check_rule(self, rule: Rule) -> None:
        fields = [self[name] for name in rule.fields]
        if len({field.name for field in fields}) < len(fields) or not fields:
            raise ParameterError(f"rule {_line(rule)} must name at least one field, and each once.")
        for field in fields:
            if field.constant is not None:
                raise field.wrong(f"is constant and stands in rule {_line(rule)}", "Leave it out of the rule.")
        if isinstance(rule, AtMost):
            whole_number(rule.limit, "limit of an at_most rule", 0)
            wanted: tuple[str, ...] = ("boolean",)
        elif isinstance(rule, Linear):
            wanted = ("integer", "number")
            if not all(math.isfinite(a) and a for _, a in rule.coefficients) or not math.isfinite(rule.maximum):
                raise ParameterError(f"rule {_line(rule)} needs finite coefficients other than 0 and a finite maximum.")
        elif isinstance(rule, LessEqual):
            first = fields[0].type
            wanted = ("integer", "number") if first in ("integer", "number") else (first,)
            wanted = wanted if first in ORDERED_TYPES else ORDERED_TYPES
        else:
            wanted = TYPES
            for name, condition in rule.conditions:
                self._check_condition(self[name], condition)
        for field in fields:
            if field.type not in wanted:
                raise field.wrong(
                    f"has type {field.type} in rule {_line(rule)}", f"It needs type {' or '.join(wanted)}."
                )

    @staticmethod
    def _check_condition(field: Field, condition: Condition) -> None:
        if condition.is_range:
            if field.type not in ORDERED_TYPES or (condition.minimum is None and condition.maximum is None):
                raise field.wrong("has an empty or unordered range in a forbid rule", "List the forbidden values.")
        elif field.type == "string" and field.labels:
            for value in condition.values:
                if value is not None and value not in field.labels:
                    raise field.wrong(
                        f"has no category {value!r}, which a forbid rule names", "Name declared categories."
                    )

    @classmethod
    def load(cls, path: str | Path) -> Schema:
        """Read a schema file: YAML if its name ends in .yaml or .yml, else JSON."""
        return cls.from_dict(read_document(path))

    def save(self, path: str | Path) -> None:
        """Write the schema as JSON."""
        Path(path).write_text(json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n", encoding="utf-8")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """Read a schema from the contents of its file."""
        if not isinstance(data, Mapping) or not isinstance(data.get("fields"), Sequence):
            raise ParameterError('a schema is an object with a list "fields".')
        for word in _spelt_like(data, ("primaryKey", "uniqueKeys", "foreignKeys")):
            if data[word]:
                raise ParameterError(f"the schema has {word}, which synthetic rows cannot promise. Leave it out.")
        _refuse_misplaced(data, OF_SCHEMA, "the schema")
        own = _section(data, "covey", None)
        _only(own, OWN_OF_SCHEMA, "covey of the schema")
        draft = bool(own.get("draft", False))
        missing = data.get("missingValues", [""])
        if not isinstance(missing, list) or not all(isinstance(text, str) for text in missing):
            raise ParameterError(f"missingValues must be a list of texts, got {missing!r}. Put numbers in quotes.")
        fields = tuple(Field.from_dict(f, confirmed=not draft) for f in data["fields"])
        rules = own.get("rules", [])
        if not isinstance(rules, list):
            raise ParameterError(f"rules must be a list, got {rules!r}.")
        by_name = {field.name: field for field in fields}
        notes = {k: v for k, v in data.items() if k not in ("fields", "missingValues", "covey")}
        return cls(fields, tuple(missing), tuple(_read_rule(rule, by_name) for rule in rules), draft, notes)

    def to_dict(self) -> dict[str, Any]:
        """The contents of the schema's file."""
        own: dict[str, Any] = {"draft": DRAFT_MARK} if self.draft else {}
        if self.rules:
            own["rules"] = [rule.to_dict() for rule in self.rules]
        out: dict[str, Any] = {**self.notes, "fields": [field.to_dict(self.draft) for field in self.fields]}
        out["missingValues"] = list(self.missing_values)
        return {**out, "covey": own} if own else out

    @classmethod
    def from_frame_draft(cls, frame: Any) -> Schema:
        """Draft a schema from data: it describes private data, so no field is confirmed."""
        from covey.table.metadata import draft

        return draft(frame)

    def confirm(self, names: Iterable[str] | None = None) -> Schema:
        """The schema with these fields, or all, confirmed as public; the draft mark goes with the last of them."""
        if isinstance(names, str):
            names = [names]
        chosen = set(self.names) if names is None else {self[name].name for name in names}
        fields = tuple(replace(f, confirmed=True) if f.name in chosen else f for f in self.fields)
        return replace(self, fields=fields, draft=self.draft and not all(field.confirmed for field in fields))

    def require_confirmed(self) -> None:
        """Refuse a private release while the schema may describe private data."""
        open_fields = [field.name for field in self.fields if not field.confirmed]
        if open_fields:
            raise ParameterError(
                f"the schema is not confirmed as public for {', '.join(map(repr, open_fields))}. Check that bounds and "
                "categories come from public knowledge, then run: covey confirm SCHEMA FIELD (or --all)."
            )

    def validate(self, table: Any) -> list[str]:
        """What a table breaks of this schema, in words; an empty list if nothing."""
        from covey.table.codec import Codec

        return Codec(self).problems(table)


def read_document(path: str | Path) -> Any:
    """The contents of a public JSON or YAML file."""
    path = Path(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"cannot read {path}: {error}. Give a JSON or YAML file in UTF-8.") from None
    if path.suffix.lower() in (".yaml", ".yml"):
        yaml = optional("yaml")
        try:
            document = yaml.safe_load(text)
        # Of a tag that does not fit its value the parser raises whatever came up while reading it.
        except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ParameterError(f"{path} is not YAML: {error}") from None
        except RecursionError:
            raise ParameterError(f"{path} is nested too deeply.") from None
        _refuse_unfolding(document, path)
        return document
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError also for integers of thousands of digits
        raise ParameterError(f"{path} is not JSON: {error}") from None


def _refuse_unfolding(document: Any, path: Path) -> None:
    """Refuse a document whose references unfold to far more than was written, or without end."""
    waiting, seen = [document], 0
    while waiting:
        item = waiting.pop()
        seen += 1
        if seen + len(waiting) > MOST_ITEMS:
            raise ParameterError(f"{path} unfolds to more than {MOST_ITEMS} items. Write it without references.")
        if isinstance(item, Mapping):
            waiting += [*item, *item.values()]
        elif isinstance(item, list | tuple | set):
            waiting += item


def _read_rule(rule: Any, fields: Mapping[str, Field]) -> Rule:
    if not isinstance(rule, Mapping) or len(rule) != 1:
        raise ParameterError(f"a rule is an object with one key, at_most, less_equal, linear or forbid, got {rule!r}.")
    [(kind, body)] = rule.items()
    try:
        if kind == "at_most":
            _known(body, ("fields", "limit"), "at_most")
            return AtMost(tuple(body["fields"]), body["limit"])
        if kind == "less_equal":
            _known(body, ("left", "right"), "less_equal")
            return LessEqual(body["left"], body["right"])
        if kind == "linear":
            _known(body, ("coefficients", "maximum"), "linear")
            terms = tuple((name, float(a)) for name, a in body["coefficients"].items())
            return Linear(terms, float(body["maximum"]))
        if kind == "forbid":
            return Forbid(tuple((name, _read_condition(fields, name, what)) for name, what in body.items()))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ParameterError):
            raise
        raise ParameterError(f"rule {rule!r} is incomplete or has a wrong type: {error!r}.") from None
    raise ParameterError(f"there is no rule {kind!r}. Use at_most, less_equal, linear or forbid.")


def _read_condition(fields: Mapping[str, Field], name: str, what: Any) -> Condition:
    if name not in fields:
        raise ParameterError(f"a forbid rule names {name!r}, which is no field. Correct the name.")
    field = fields[name]
    if isinstance(what, Mapping):
        _known(what, ("minimum", "maximum"), f"forbid of field {name!r}")
        low, high = (None if what.get(w) is None else field.value(what[w], w) for w in ("minimum", "maximum"))
        return Condition((), low, high)
    values = what if isinstance(what, list) else [what]
    if not values:
        raise field.wrong("has an empty list in a forbid rule", "List the forbidden values.")
    return Condition(tuple(None if v is None else field.value(v, "forbidden value") for v in values))


def _typed(kind: str, value: Any) -> Value | None:
    """A public value in its type; None if it is not one."""
    if kind == "boolean":
        return value if isinstance(value, bool) else None
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            return None
        if not math.isfinite(value) or (kind == "integer" and value != int(value)):
            return None
        return int(value) if isinstance(value, int | np.integer) or kind == "integer" else float(value)
    try:
        if isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if kind == "date":
            return value.date() if isinstance(value, datetime) else value if isinstance(value, date) else None
        if isinstance(value, datetime):
            moment: datetime = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            return moment.replace(microsecond=0)
        return datetime(value.year, value.month, value.day) if isinstance(value, date) else None
    except (ValueError, OverflowError):
        return None


def _below(a: Any, b: Any) -> bool:
    """Whether one value of an ordered type lies below another."""
    return bool(a < b)


def _is_label(text: str) -> bool:
    """Whether a category survives being written to a file and read again."""
    if not text or text != text.strip() or "\0" in text or "\r" in text:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def _number(value: Any) -> Decimal:
    """The number as it is written: 0.1 means one tenth, not its nearest float."""
    return Decimal(repr(value))


def _shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple):
        return [_shown(v) for v in value]
    return value.isoformat() if isinstance(value, date) else value


def _line(rule: Rule) -> str:
    return json.dumps(rule.to_dict(), ensure_ascii=False, default=str)


def _section(data: Mapping[str, Any], key: str, name: Any) -> Mapping[str, Any]:
    part = data.get(key, {})
    if not isinstance(part, Mapping):
        where = "the schema" if name is None else f"field {name!r}"
        raise ParameterError(f"{key} of {where} must be an object, got {part!r}.")
    return part


def _only(part: Mapping[str, Any], place: str, where: str) -> None:
    """Refuse what a section of the schema does not know."""
    _refuse_misplaced(part, place, where)
    _known(part, SECTIONS[place], where)


def _refuse_misplaced(part: Mapping[str, Any], place: str, where: str) -> None:
    """Refuse a key that covey would read elsewhere, or in another spelling, and would pass over here."""
    places = {**PROPERTIES, **SECTIONS}
    for key in map(str, part):
        if key in places[place] or (place == OF_SCHEMA and _plain(key) in ("name", "type", "format")):
            continue  # a table has these too, for others to read
        for known_at in (place, *places):
            for word in _spelt_like(places[known_at], (key,)):
                way_out = f"It belongs {known_at}." if key == word else f"Write {word!r}, {known_at}."
                raise ParameterError(f"{where} has {key!r} where covey would not read it. {way_out}")


def _spelt_like(keys: Iterable[Any], words: tuple[str, ...]) -> list[Any]:
    """The keys that equal one of the words but for case, underscores, hyphens and blanks."""
    plain = {_plain(word) for word in words}
    return [key for key in keys if _plain(str(key)) in plain]


def _plain(key: str) -> str:
    """A key without what people vary in spelling it."""
    return key.lower().replace("_", "").replace("-", "").replace(" ", "")


def _known(part: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    unknown = [str(key) for key in part if key not in known]
    if unknown:
        raise ParameterError(f"{where} has {unknown[0]!r}, which covey does not know. It may have {', '.join(known)}.")


def _flag(part: Mapping[str, Any], key: str, default: bool, name: Any) -> bool:
    value = part.get(key, default)
    if not isinstance(value, bool):
        raise ParameterError(f"{key} of field {name!r} must be true or false, got {value!r}.")
    return value
