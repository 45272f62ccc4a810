"""One column of a schema: its type, its public bounds or categories, and the bins of a number or date."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as entry
from datetime import UTC, date, datetime, time, timedelta
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Integers
from covey.errors import ParameterError, whole_number
from covey.tables import document
from covey.tables.derived_fields import Derived
from covey.tables.dialects import USUAL_FORMATS, Spelling
from covey.tables.document import shown

FALSE_TRUE = ("false", "true")
BITS = ("0", "1")

Value = bool | int | float | str | date | datetime | time

TYPES = ("boolean", "string", "integer", "number", "date", "datetime", "time")
ORDERED_TYPES = TYPES[2:]
DEFAULT_BINS = 20  # a histogram that a person takes in at a glance, and noise that is spread over few cells
LEVELS = {"icd10": 3, "nace": 2}  # first letters that name the group of a code
# A spreadsheet runs what starts like this; CSV puts an apostrophe before it. Some take full-width signs for the others, or pass
# over characters without width that stand before them.
GUARDED = (*"=+-@\t\r＝＋－＠", *"\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff")
_EPOCH = datetime(1970, 1, 1)
# Which types of fields have a setting; all have the others.
_OF_TYPES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("minimum", "maximum", "bins", "special"), ORDERED_TYPES),
    **dict.fromkeys(("enum", "other", "levels"), ("string",)),
    **dict.fromkeys(("decimalChar", "groupChar"), ("integer", "number")),
    "decimals": ("number",),
    "format": ("date", "datetime", "time"),
}
_FLAGS = ("ordered", "learn", "learned", "from_table")

LARGEST = 2**53  # whole numbers up to here are exact as floats, and so are all comparisons
MOST_DECIMALS = 15  # a float holds no more digits
MOST_DECLARED = 100_000  # bins of a field, more than is ever measured


def typed(type_: str, value: Any) -> Value | None:
    """A public value in its type; None if it is not one."""
    if type_ == "boolean":
        return value if isinstance(value, bool) else None
    if type_ == "string":
        return value if isinstance(value, str) else None
    if type_ in ("integer", "number"):
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            return None
        most = 2.0 ** (63 if type_ == "integer" else 1023)  # of what a column holds
        if not -most < value < most or (type_ == "integer" and value != int(value)):
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


def read_flags(data: Mapping[str, Any], name: Any) -> tuple[str, str]:
    """Frictionless' falseValues and trueValues of a boolean field, one word each."""
    given = data.get("falseValues"), data.get("trueValues")
    if given == (None, None):
        return FALSE_TRUE
    false, true = (words if isinstance(words, list) and len(words) == 1 else [None] for words in given)
    if data.get("type") != "boolean" or not isinstance(false[0], str) or not isinstance(true[0], str):
        raise ParameterError(
            f"field {name!r} has falseValues {given[0]!r} and trueValues {given[1]!r}. A boolean field may have both, a list of "
            "one text each."
        )
    return false[0], true[0]


def is_label(text: str) -> bool:
    """Whether a category survives being written to a file and read again."""
    if not text or text != text.strip() or "\0" in text or "\r" in text:
        return False
    return not any("\ud800" <= letter <= "\udfff" for letter in text)


def is_whole(text: str) -> bool:
    """Whether a text is a whole number, and no code that would lose a leading zero."""
    return re.fullmatch(r"[+-]?(0|[1-9]\d{0,14})(\.0+)?", text, re.ASCII) is not None


def as_written(value: Any) -> Decimal:
    """The number as it is written: 0.1 means one tenth, not its nearest float."""
    return Decimal(repr(value))


@dataclass(frozen=True)
class Follows:
    """A number, date or time is measured from another field; bounds of the difference are in its unit (days, seconds)."""

    base: str  # the other field
    minimum: float | None = None  # the least difference; None for 0, or if it may be negative for all that bounds allow
    maximum: float | None = None  # the largest one; None for all that bounds allow
    signed: bool = False  # whether the difference may be negative

    def __post_init__(self) -> None:
        if not isinstance(self.base, str):
            raise ParameterError(f"a field follows another one, named by text, got {self.base!r}.")
        for bound in (self.minimum, self.maximum):
            if bound is not None and not document.is_number(bound):
                raise ParameterError(f"a difference is bounded by {bound!r}. Give numbers, in the field's unit.")
        if not self.signed and self.minimum is not None and self.minimum < 0:
            raise ParameterError('what comes after another field has no negative difference. Use "difference_from".')

    @classmethod
    def from_dict(cls, own: Mapping[str, Any], name: Any) -> Follows | None:
        """Read what stands under "covey" of a field."""
        named, bounds = [w for w in ("after", "difference_from") if own.get(w) is not None], own.get("difference")
        if len(named) > 1:
            raise ParameterError(f"field {name!r} has after and difference_from. Leave out one of them.")
        if not named and bounds is not None:
            raise ParameterError(f"field {name!r} has a difference. Say from which field: after, or difference_from.")
        if not named:
            return None
        bounds = {} if bounds is None else bounds
        if not isinstance(bounds, Mapping):
            raise ParameterError(f"difference of field {name!r} must be an object with bounds, got {bounds!r}.")
        document.refuse_unknown(bounds, ("minimum", "maximum"), f"difference of field {name!r}")
        return cls(own[named[0]], bounds.get("minimum"), bounds.get("maximum"), named == ["difference_from"])

    def to_dict(self) -> dict[str, Any]:
        """The same, for a file."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        given = {word: bound for word, bound in bounds.items() if bound is not None}
        return {"difference_from" if self.signed else "after": self.base} | ({"difference": given} if given else {})


@dataclass(frozen=True)
class Constant:
    """A public constant, carried along and never measured; None means always missing."""

    value: Value | None


@dataclass(frozen=True)
class Field:
    """One column: its type, its public limits or categories, and how cells outside them are read.

    Args:
        name: as in the header of the table.
        type: "boolean", "string", "integer", "number", "date", "datetime" or "time".
        minimum, maximum: public limits of numbers and dates; what lies beyond is moved to them.
        enum: the public categories of a string; others become `other` if it is given, and missing if not.
        required: True if no cell may be missing; those that are become `default`.
        decimals: how many digits a number has behind its point.
        learn: True if limits or categories are to be learned with noise.
    """

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
    flags: tuple[str, str] = FALSE_TRUE  # how a boolean field is written, false first: No and Yes, 0 and 1
    confirmed: bool = True
    learn: bool = False  # limits or categories are to be learned with noise, from the data
    learned: bool = False  # they were
    from_table: bool = False  # its type was read off the table without noise, as the promise takes for public
    special: tuple[str, ...] = ()  # words among the numbers or dates, each a category beside the bins
    follows: Follows | None = None  # another field, from which this one is measured
    derived: Derived | None = None  # a public function of other fields: computed, not measured
    expected: Derived | None = None  # what it usually is, from other fields: measured by what differs from that
    levels: int | str | None = None  # how its categories are grouped: by so many first letters, or by a derived field
    warning: str | None = None  # of a draft: why this field is confirmed by its name alone
    spelling: Spelling = Spelling()  # noqa: RUF009 # frozen
    notes: Mapping[str, Any] = entry(default_factory=dict, hash=False)  # title, description: kept, never read

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or self.name != self.name.strip() or "\0" in self.name:
            raise ParameterError(f"a field needs a name without white space around it or NUL in it, got {self.name!r}.")
        if self.type not in TYPES:
            raise self.wrong(f"has type {self.type!r}", f"Use one of {', '.join(TYPES)}.")
        spelling: dict[str, Any] = dict(self.spelling.to_field())
        for word, types in _OF_TYPES.items():
            if self.type not in types and getattr(self, word, spelling.get(word)) not in (None, ()):
                raise self.wrong(f"has type {self.type} and {word}", f"It belongs to {' or '.join(types)} fields.")
        for word in ("minimum", "maximum", "default"):
            value = getattr(self, word)
            if value is not None:
                object.__setattr__(self, word, self.value(value, word))
        if self.learn:
            self._check_nothing_known()
        if self.type in ORDERED_TYPES:
            self._check_ordered()
        else:
            self._check_labels()
        if self.constant is not None and self.constant.value is not None:
            object.__setattr__(self, "constant", Constant(self.value(self.constant.value, "constant")))
        elif self.constant is not None and self.required:
            raise self.wrong("is required, and its constant is missing", "Give the constant a value.")
        if self.derived is not None:
            self._check_derived(self.derived)
        if self.expected is not None:
            self._check_expected(self.expected)
        plain = isinstance(self.levels, int | str) and not isinstance(self.levels, bool) and self.levels not in (0, "")
        if self.levels is not None and (self.ordered or not plain):
            way_out = "Give categories without an order a number of letters, or the name of a field derived from them."
            raise self.wrong(f"has levels {self.levels!r}", way_out)
        if self.confirmed and not self.learn:
            self.require_complete()
            object.__setattr__(self, "warning", None)  # it was heard

    def wrong(self, what: str, way_out: str, *more: str) -> ParameterError:
        """An error that names this field; the way out may come in parts, of which every second one names an argument."""
        return ParameterError(f"field {self.name!r} {what}. {way_out}", *more)

    def _check_nothing_known(self) -> None:
        """A field that is to be learned says its name and type, and how it is read: what is known needs no learning."""
        edges = ("bins",) if isinstance(self.bins, Sequence) else ()
        for word in ("minimum", "maximum", "enum", "constant", "default", *edges):
            if getattr(self, word) is not None:
                raise self.wrong(f"is to be learned, but has {word}", f"Leave out {word}, or learn.")
        if self.learned:
            raise self.wrong("is marked both as to be learned and as learned", "Leave out one of the two.")

    def _check_derived(self, derived: Derived) -> None:
        if self.constant is not None or self.learn or self.follows is not None or self.special:
            raise self.wrong("is derived and has other settings", "Give only its name and type.")
        if derived.expression and self.type in ("string", "time"):
            raise self.wrong(f"has type {self.type} and an expression", "Expressions give numbers, dates and yes/no.")
        for value in derived.values:
            if value is not None:
                self.value(value, "derived value")

    def _check_expected(self, expected: Derived) -> None:
        if not self.measured or self.learn or self.follows is not None or self.levels is not None:
            raise self.wrong("is expected to follow from others, and more", "It needs limits or categories alone.")
        if bool(expected.expression) != (self.type in ORDERED_TYPES) or len(expected.bases) > 1 < len(expected.entries):
            raise self.wrong(
                f"has type {self.type} and is expected by another kind of rule",
                "Give numbers and dates an expression, and categories a map or edges of one column.",
            )
        wrong = [value for value in expected.values if value is not None and self.labels and value not in self.labels]
        if wrong:
            raise self.wrong(f"is expected to be {wrong[0]!r}, not a category", "Name declared categories.")

    @property
    def measured(self) -> bool:
        """Whether records say what it is: it is neither a constant nor derived from other fields."""
        return self.constant is None and self.derived is None

    def _check_ordered(self) -> None:
        self._check_words("special")
        if self.decimals is not None and whole_number(self.decimals, f"decimals of {self.name!r}", 0) > MOST_DECIMALS:
            raise self.wrong(f"has {self.decimals} decimals", f"At most {MOST_DECIMALS} are exact.")
        if isinstance(self.bins, Sequence) and not isinstance(self.bins, str):
            edges: tuple[Any, ...] = tuple(self.value(edge, "bins") for edge in self.bins)
            object.__setattr__(self, "bins", edges)
            if len(edges) < 2 or any(not a < b for a, b in pairwise(edges)):
                raise self.wrong(f"has bin edges {shown(edges)}", "Give two or more, each above the one before.")
            for word, edge in (("minimum", edges[0]), ("maximum", edges[-1])):
                if getattr(self, word) is None:
                    object.__setattr__(self, word, edge)
                elif getattr(self, word) != edge:
                    raise self.wrong(
                        f"has {word} {shown(getattr(self, word))} and an outer bin edge {shown(edge)}",
                        "Let the edges run from the minimum to the maximum.",
                    )
        elif self.bins is not None:
            count = whole_number(self.bins, f"bins of field {self.name!r}", 1, "Give a count or a list of edges.")
            if count > MOST_DECLARED:
                raise self.wrong(f"has {count} bins", f"Give at most {MOST_DECLARED}.")
        if self.minimum is None or self.maximum is None:
            return
        if self.maximum < self.minimum:  # type: ignore[operator] # of one ordered type
            raise self.wrong(f"has minimum {shown(self.minimum)} above maximum {shown(self.maximum)}", "Exchange them.")
        axis = self.axis
        if self.default is not None and not axis.low <= self.on_grid(self.default) <= axis.high:
            raise self.wrong(f"has default {shown(self.default)} out of bounds", "Choose one between the bounds.")

    def _check_labels(self) -> None:
        if self.type == "boolean":
            if len({word.lower().removeprefix("'") for word in self.flags}) < 2 or not all(map(is_label, self.flags)):
                raise self.wrong(f"is written {' or '.join(self.flags)}", "Give trueValues and falseValues one word.")
            return
        if self.enum is not None:
            self._check_words("enum")
            if self.default is not None and self.default not in self.labels:
                raise self.wrong(f"has default {self.default!r}, not a category", "Choose one of its categories.")
        if self.other is not None and (not isinstance(self.other, str) or not is_label(self.other)):
            raise self.wrong(f"has other {self.other!r}", "Give a label, or true.")

    def _check_words(self, listed: str) -> None:
        """Refuse categories or special values that a file could not hold."""
        words = getattr(self, listed)
        if isinstance(words, str) or not isinstance(words, Sequence):
            raise self.wrong(f"has {listed} {words!r}", "Give a list of texts.")
        object.__setattr__(self, listed, words := tuple(words))
        for word in words:
            if not isinstance(word, str) or not is_label(word):
                way_out = "Give text in quotes, without blanks around it, NUL or carriage returns."
                raise self.wrong(f"lists {word!r}", way_out)
            if word.startswith(GUARDED) and f"'{word}" in words:
                raise self.wrong(f"lists {word!r} with and without an apostrophe", "CSV could not tell them apart.")
        if len(set(words)) < len(words):
            twice = min(word for word, count in Counter(words).items() if count > 1)
            raise self.wrong(f"lists {twice!r} twice", "List each once.")

    def require_complete(self) -> None:
        """Refuse a field whose public domain is not declared yet."""
        if not self.measured:
            return
        if self.learn:
            raise self.wrong("is to be learned", "Only a private release learns: PrivateSynthesizer or covey release.")
        if self.type == "string" and not self.labels:
            raise self.wrong("has no categories", "List them under constraints.enum.")
        if self.type in ORDERED_TYPES and (self.minimum is None or self.maximum is None):
            raise self.wrong(f"has type {self.type} and no bounds", "Give public constraints: minimum and maximum.")

    def to_learn(self) -> Field:
        """The field by name, type, spelling and decimals, to be learned with noise: a draft has guessed the rest."""
        codes = self.type == "string" and bool(self.enum) and all(map(is_whole, self.enum or ()))
        type_ = "integer" if codes else self.type
        kept: dict[str, Any] = {"flags": self.flags, "decimals": self.decimals, "spelling": self.spelling}
        return Field(self.name, type_, learn=True, from_table=True, **kept)

    @property
    def labels(self) -> tuple[str, ...]:
        """The categories of a boolean or string field, the one for unknown labels last unless it is among them."""
        if self.type == "boolean":
            return self.flags
        enum = self.enum or ()
        return enum if self.other is None or self.other in enum else (*enum, self.other)

    @property
    def written(self) -> str:
        """The type of the cells that synthetic rows hold: flags may be written as numbers or as words."""
        if self.type != "boolean" or self.flags == FALSE_TRUE:
            return self.type
        return "integer" if self.flags == BITS else "string"

    @property
    def categories(self) -> int:
        """How many categories the attribute has, missing included."""
        if not self.measured:
            return 1
        self.require_complete()
        listed = len(self.axis.starts) + len(self.special) if self.type in ORDERED_TYPES else len(self.labels)
        return listed + (not self.required)

    @cached_property
    def axis(self) -> Axis:
        """The bins of a number or date."""
        decimals = self._precision()
        low = self.on_grid(self.minimum, ROUND_CEILING, decimals)
        high = self.on_grid(self.maximum, ROUND_FLOOR, decimals)
        if max(abs(low), abs(high)) > LARGEST:
            raise self.wrong("has bounds past 2^53 steps of its precision", "Declare fewer decimals or closer bounds.")
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
        if isinstance(self.bins, tuple):
            return enough_decimals([as_written(edge) for edge in self.bins], 1)
        return enough_decimals([as_written(self.minimum), as_written(self.maximum)], self.bins or DEFAULT_BINS)

    def on_grid(self, value: Any, rounding: str = ROUND_HALF_EVEN, decimals: int | None = None) -> int:
        """A public value in steps of the field's precision."""
        if self.type == "date":
            return int((value - _EPOCH.date()).days)
        if self.type == "datetime":
            return int((value - _EPOCH) // timedelta(seconds=1))
        if self.type == "time":
            return int(3600 * value.hour + 60 * value.minute + value.second)
        places = self.axis.decimals if decimals is None else decimals
        return int(as_written(value).scaleb(places).to_integral_value(rounding))

    def value(self, value: Any, word: str) -> Value:
        """A public value in the field's type, or a refusal that names it."""
        if self.type == "boolean" and isinstance(value, str) and value in self.flags:
            return value == self.flags[1]
        read = typed(self.type, value)
        if read is None:
            raise self.wrong(f"has {word} {shown(value)}, not a value of type {self.type}", "Correct it in the schema.")
        return read

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], confirmed: bool = True, folder: Path | None = None) -> Field:
        """Read one entry of "fields"; confirmed is what holds where the file does not say, and `folder` is that of the file."""
        if not isinstance(data, Mapping):
            raise ParameterError(f"each field must be an object with a name and a type, got {data!r}.")
        name: Any = data.get("name")
        document.refuse_misplaced(data, document.OF_FIELD, f"field {name!r}")
        own, limits = document.section(data, "covey", name), document.section(data, "constraints", name)
        document.only(own, document.OWN_OF_FIELD, f"covey of field {name!r}")
        # A constraint that is not understood could not be guaranteed in the output.
        document.only(limits, document.LIMITS_OF_FIELD, f"constraints of field {name!r}")
        for word in document.spelt_like(data, ("bareNumber",)):
            raise ParameterError(f"field {name!r} has {word}, which covey does not read. Leave it out.")
        read = document.PROPERTIES[document.OF_FIELD]
        bins, other, levels = own.get("bins"), own.get("other"), own.get("levels")
        plain: dict[str, Any] = {word: limits.get(word) for word in ("minimum", "maximum", "enum")}
        plain |= {word: own.get(word) for word in ("default", "decimals", "warning")}
        plain |= {word: document.flag(own, word, False, name) for word in _FLAGS}
        return cls(
            name=name,
            type=data.get("type", "string"),
            required=document.flag(limits, "required", False, name),
            bins=tuple(bins) if isinstance(bins, list) else bins,
            other={True: "other", False: None}[other] if isinstance(other, bool) else other,
            constant=Constant(own["constant"]) if "constant" in own else None,
            flags=read_flags(data, name),
            confirmed=document.flag(own, "confirmed", confirmed, name),
            special=own.get("special", ()),
            follows=Follows.from_dict(own, name),
            derived=Derived.from_dict(own.get("derived"), name, folder),
            expected=Derived.from_dict(own.get("expected"), name),
            levels=LEVELS.get(levels, levels) if isinstance(levels, str) else levels,
            spelling=Spelling.from_field(data, name),
            notes={k: v for k, v in data.items() if k not in read or (k == "format" and v in USUAL_FORMATS)},
            **plain,
        )

    def to_dict(self, draft: bool = False, folder: Path | None = None) -> dict[str, Any]:
        """The entry of "fields", for a file in this folder."""
        limits = {"required": self.required or None}
        limits |= {word: shown(getattr(self, word)) for word in ("minimum", "maximum", "enum")}
        own = {word: shown(getattr(self, word)) for word in ("bins", "other", "default", "decimals")}
        own |= {word: shown(getattr(self, word)) or None for word in (*_FLAGS, "special")}
        own |= {} if self.follows is None else self.follows.to_dict()
        rules = {"derived": self.derived, "expected": self.expected}
        own |= {word: rule.to_dict(folder) for word, rule in rules.items() if rule is not None}
        own |= {"levels": self.levels, "warning": self.warning}
        own |= {"confirmed": self.confirmed} if draft or not self.confirmed else {}
        words: dict[str, Any] = dict(self.spelling.to_field())
        if self.flags != FALSE_TRUE:
            words |= {"falseValues": [self.flags[0]], "trueValues": [self.flags[1]]}
        out: dict[str, Any] = {"name": self.name, "type": self.type, **words, **self.notes}
        if given := {k: v for k, v in limits.items() if v is not None}:
            out["constraints"] = given
        given = {k: v for k, v in own.items() if v is not None}
        if self.constant is not None:
            given["constant"] = shown(self.constant.value)
        if given:
            out["covey"] = given
        return out


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


def enough_decimals(points: list[Decimal], bins: int) -> int:
    """Decimals for a thousand values in the narrowest bin, as far as that is exact; between two points lie `bins` of them."""
    width = min(b - a for a, b in pairwise(points)) / bins
    wanted = max(math.ceil(3 - width.log10()) if width else 0, *(-int(p.as_tuple().exponent) for p in points), 0)
    largest = max(abs(p) for p in points)
    room = math.floor((LARGEST / largest).log10()) if largest else MOST_DECIMALS
    return max(0, min(wanted, room, MOST_DECIMALS))
