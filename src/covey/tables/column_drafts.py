"""One column of a table, and the field that is proposed for it, with the reason.

What may point to persons is left out with all its values; labels that few rows hold become "other"; limits are rounded outward to
numbers that a person would write down. What a steward must look at carries a warning.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import Any

import numpy as np

from covey.engine.arrays import Floats
from covey.errors import ParameterError, counted
from covey.libraries import pl
from covey.tables.columns import MISSING_WORDS, floats, parse_times, spelled
from covey.tables.dialects import Dialect, Spelling
from covey.tables.fields import BITS, FALSE_TRUE, LARGEST, Constant, Field, is_whole

# Words for "no number here" that surveys and registers use everywhere.
_CODES = """n na n/a n.a. k.a. nan ? . - -- * x unknown missing refused none null nil tbd <3 <5 <10
    -1 -2 -7 -8 -9 -77 -88 -98 -99 -777 -888 -997 -998 -999 -9999"""
PUBLIC_CODES = frozenset(_CODES.split())
# Labels that are in everybody's hands: lists without an order, and lists in their order.
_LISTS = """no yes|false true|nein ja|non oui|f m|f m x|female male|female male other|w m|w m d|woman man"""
_ORDERS = """jan feb mar apr may jun jul aug sep oct nov dec|mon tue wed thu fri sat sun|q1 q2 q3 q4|a b c d e f|xs s m l xl xxl
    |january february march april may june july august september october november december
    |monday tuesday wednesday thursday friday saturday sunday|low medium high|small medium large
    |never rarely sometimes often always|none mild moderate severe|very_bad bad fair good very_good
    |poor fair good very_good excellent|strongly_disagree disagree neutral agree strongly_agree"""
CONVENTIONS = tuple(
    (tuple(word.replace("_", " ") for word in line.split()), ordered)
    for lines, ordered in ((_LISTS, False), (_ORDERS, True))
    for line in lines.split("|")
)

PERSONAL = re.compile(  # it identifies somebody
    r"(^|[^a-z])(id|ids|ident\w*|uuid|guid|ssn|mrn|iban|e-?mail|mail|phone|tel\w*|mobile|fax|address|street|strasse|"
    r"first_?name|last_?name|surname|full_?name|name|person|patient_?(id|nr|no|number)|passport|licen[cs]e|ip|url|"
    r"comment\w*|remark\w*|notes?|free_?text|description)([^a-z]|$)"
)
NAMES = re.compile(  # of persons: each of them is one, however many share it
    r"^((patient|person|client|customer|employee|subject|full|first|last|middle|family|given|sur|fore|maiden|[fl])_?)?names?$|"
    r"^(first|last|middle|given|maiden)$|^(vor|nach|familien)name$|^(pre)?nom(_de_famille)?$|^(nombre|apellidos?|cognome)$"
)
BIRTH = re.compile(
    r"(^|_)(dob|birth_?(date|day|dt)|date_?of_?birth|geburts(datum|tag)|(date_(de_)?)?naissance|nacimiento)(_|$)"
)
_ADDRESS = r"^[^@\s]+@[^@\s]+\.[^@\s]+$|^(https?://|www\.)|^\+?[\d ()/-]{9,}$|^\d{1,3}(\.\d{1,3}){3}$"

_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S")
_ISO_DAY = r"^\d{4}-\d\d-\d\d$"
_ISO_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$"
_DAY_NUMBER = r"^(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$"
_TIME = r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?$"

MOST_CATEGORIES = 100  # a column of more different labels keeps the most frequent, and an "other"
MOST_SPECIAL = 8  # words among numbers: more are text
FEW = 20  # whole numbers of so few different values, each in several rows, may be codes
RARE = 5  # rows that hold a label before it is drafted, in a table of a hundred or more
LIMITS = "its limits were read from your data and rounded: replace them by limits that anyone could know, or confirm it by name"
SMALL = f"it has labels that fewer than {RARE} rows hold, and each may tell of a person: keep what anyone could know"
LABELS = "it has many labels, and all were read from your data: each must be public"
BIRTHS = "its name suggests dates of birth, which identify persons, and its limits were read from your data"
AT_MIDNIGHT = "all its times are midnight"
TWO_READINGS = "its dates can be read as "
LEFT_OUT = "left out"  # what a note calls the choice of a column that may point to persons
_FLAGS = (FALSE_TRUE, BITS, ("no", "yes"), ("No", "Yes"), ("NO", "YES"))


def strays(cells: int) -> int:
    """How many of so many cells may be odd before a column is taken for something else: one record decides nothing."""
    return 0 if cells < 20 else max(1, cells // 1000)


def nearly_all(flags: Any) -> bool:
    """Whether all are so but a few strays."""
    return len(flags) - int(flags.sum()) <= strays(len(flags))


def most_match(words: pl.Series, form: str) -> bool:
    """Whether nearly every word has this form."""
    return nearly_all(words.str.contains(form))


_SPELLINGS = tuple(
    Spelling(decimal, mark)
    for decimal, marks in (
        (",", ("", ".", " ", "\u00a0", "\u202f", "'")),
        (".", (",", " ", "\u00a0", "\u202f", "'", "\u2019")),
    )
    for mark in marks
)


def _thirds(mark: str) -> str:
    """Whole numbers of which each such mark is followed by three digits: it groups them, or begins the decimals."""
    return rf"^[+-]?([1-9]\d{{0,2}}({re.escape(mark)}\d{{3}})+|\d+)$"


# Numbers whose mark can only begin the decimals: a mark that groups digits by three has one to three before it, and no lone zero.
DECIMAL = {
    mark: rf"^[+-]?(\d*{own}(\d{{1,2}}|\d{{4,}})|(0?|\d{{4,}}){own}\d+|\d{{1,3}}({other}\d{{3}})+{own}\d+)$"
    for mark, own, other in ((".", r"\.", ","), (",", ",", r"\."))
}


def decimal_mark(columns: Iterable[pl.Series]) -> str | None:
    """The decimal mark that numbers in columns of text show beyond doubt; None where none do, or they differ."""
    shown = set[str]()
    for words in columns:
        numbers = words.filter(words.str.contains(r"\d"))
        for mark, group in ((".", ","), (",", ".")):
            if _need(numbers, DECIMAL[mark]) and most_match(numbers, f"^{Spelling(mark, group).number.pattern}$"):
                shown.add(mark)
    return shown.pop() if len(shown) == 1 else None


def number_spelling(words: pl.Series, separator: str | None, shown: str | None = None) -> tuple[Spelling, str] | None:
    """A spelling in which nearly every word is a number and some need it, and what speaks for it; None if there is none.

    Where each mark is followed by three digits, the decimal mark that other columns show says what it is.
    """
    if _need(words, r"\.") and most_match(words, _thirds(".")):
        groups = shown == "," or _need(words, r"\.\d{3}\.")
        return (Spelling(",", "."), "digits grouped by '.'") if groups else None
    if most_match(words, f"^{Spelling().number.pattern}$"):
        return None
    if _need(words, ",") and most_match(words, _thirds(",")):
        thousands = shown == "." if shown else separator in (None, ",")
        chosen = Spelling(".", ",") if thousands else Spelling(",", "")
        told = "other columns show the decimal mark" if shown else "every comma is followed by three digits"
        return chosen, f"{told}; commas are taken as {'thousands' if thousands else 'decimal'}"
    for spelling in _SPELLINGS:
        needed = rf"\d{re.escape(spelling.thousands)}\d{{3}}" if spelling.thousands else ","
        if _need(words, needed) and most_match(words, f"^{spelling.number.pattern}$"):
            grouped = f", digits grouped by {spelling.thousands!r}" if spelling.thousands else ""
            return spelling, f"decimal mark {spelling.decimal!r}{grouped}"
    return None


def _need(words: pl.Series, form: str) -> bool:
    """Whether more than a few strays among the words hold this."""
    return int(words.str.contains(form).sum()) > strays(len(words))


def date_formats(words: pl.Series) -> list[tuple[str, str | None]]:
    """Types and formats in which nearly every word is a date, time of day or both; None is ISO 8601, which needs no format."""
    for shape, day in ((_ISO_DAY, "%Y-%m-%d"), (_DAY_NUMBER, "%Y%m%d")):
        if most_match(words, shape) and _most_read(words, day):
            return [("date", None)]
    for shape, type_ in ((_ISO_TIME, "datetime"), (_TIME, "time")):
        if most_match(words, shape):
            return [(type_, None)]
    if not most_match(words, r"^\d{1,4}[./ -]([A-Za-z]{3}|\d{1,2})[./ -]\d{2,4}([T ]\d{1,2}:\d\d(:\d\d)?)?$"):
        return []
    forms = [("datetime" if clock else "date", day + clock) for clock in _CLOCKS for day in _DATES]
    return [(type_, form) for type_, form in forms if _most_read(words, form)]


def _most_read(words: pl.Series, form: str) -> bool:
    read = words.str.to_datetime(form, strict=False, time_unit="ms")
    # A year of two digits that was written with four, or the other way round, is read as another century.
    return nearly_all(read.dt.year().is_between(1800, 2200).fill_null(False))


def convention(labels: list[str]) -> tuple[tuple[str, ...], bool] | None:
    """The public list that these labels belong to, spelled as they are, and whether it has an order."""
    lower = {label.lower() for label in labels}
    if not 2 <= len(lower) == len(labels):
        return None
    for listed, ordered in CONVENTIONS:
        if lower <= set(listed) and (ordered or lower == set(listed)) and 2 * len(lower) > len(listed):
            for style in (str.lower, str.upper, str.capitalize):
                if all(style(word) == word for word in labels):
                    return tuple(map(style, listed)), ordered
    return None


def personal(words: pl.Series) -> str | None:
    """Why a column of text may point to persons: addresses, or prose; None if it does not."""
    sample = words.head(2000)
    if _share(sample.str.contains(_ADDRESS)) > 0.5:
        return "it holds addresses or telephone numbers"
    if _share(sample.str.len_chars() > 60) > 0.1 or _share(sample.str.count_matches(r"\s") >= 4) > 0.5:
        return "it holds free text"
    return None


def suggests(name: str, kind: re.Pattern[str]) -> bool:
    """Whether a column's name says that it is PERSONAL, or holds NAMES or dates of BIRTH; however it is spelled."""
    words = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return kind.search(re.sub(r"[^a-z]+", "_", words).strip("_")) is not None


def _share(flags: pl.Series) -> float:
    return int(flags.sum()) / max(1, len(flags))


def outward(low: float, high: float) -> tuple[float, float]:
    """Limits on the 1-2-5 grid, at or beyond these numbers: they look like what a person would write down."""
    return _round(low, down=True), _round(high, down=False)


def _round(value: float, down: bool) -> float:
    if value == 0 or not math.isfinite(value):
        return 0.0
    if value < 0:
        return -_round(-value, not down)
    power = math.floor(math.log10(value))
    steps = sorted(float(f"{m}e{power + j}") for j in (-1, 0, 1) for m in (1, 2, 5))
    return max(s for s in steps if s <= value) if down else min(s for s in steps if s >= value)


def looks_coded(values: Any, n: int) -> bool:
    """Whether whole numbers look like codes: as many digits each, far apart, often repeated, and not rounded."""
    distinct = np.unique(values)
    if len(distinct) < 2 or distinct[0] < 100 or n < 20 * len(distinct):
        return False
    digits = np.floor(np.log10(values.astype(float)))
    common = float((digits == np.bincount(digits.astype(int)).argmax()).mean())
    step = math.gcd(*(int(v) for v in distinct[:1000]))
    return common > 0.9 and (distinct[-1] - distinct[0]) / len(distinct) > 5 and step % 5 != 0


def decades(low: float, high: float) -> tuple[float, float]:
    """Decades for years, the 1-2-5 grid for other whole numbers; tight where the range is short."""
    if low >= 1800 and high <= 2200:
        return float(low // 10 * 10), float(-(-high // 10) * 10)
    low, high = outward(low, high)
    return float(np.floor(low)), float(np.ceil(high))


def decimals_of(values: Any) -> int | None:
    """The decimals that nearly all of these numbers have, up to eight; None for more."""
    fits = (nearly_all(np.isclose(values, np.round(values, j), rtol=1e-15, atol=1e-10)) for j in range(1, 9))
    return next((j for j, fit in enumerate(fits, 1) if fit), None)


@dataclass(frozen=True)
class Note:
    """What a draft says of a column, or of the table (field is None): the choice, its reason, and a warning if there is one."""

    field: str | None
    choice: str
    reason: str
    warning: str | None = None

    def __str__(self) -> str:
        where = "the table" if self.field is None else self.field
        return f"{where}: {self.choice}, because {self.reason}" + (f". Check: {self.warning}" if self.warning else "")


def may_identify(warning: str | None) -> bool:
    """Whether a draft's warning is about persons: then other limits and labels do not answer it."""
    return warning is not None and not warning.startswith((LIMITS, LABELS, SMALL))


def present(series: pl.Series, missing: Iterable[str] = ()) -> pl.Series:
    """The cells that a draft looks at: trimmed text, without what is missing."""
    text = series.cast(pl.String, strict=False)
    if series.dtype.is_float():
        text = text.str.strip_suffix(".0")
    text = text.str.strip_chars()
    blank = text.str.to_lowercase().is_in(list(MISSING_WORDS)) | text.is_in(list(missing))
    return text.filter(~blank & ~text.str.contains("\0", literal=True)).drop_nulls()


def word_counts(text: pl.Series) -> dict[str, int]:
    """How often each word occurs, the most frequent first."""
    return dict(text.value_counts(sort=True).rows())


def rare(rows: int) -> int:
    """How many rows hold a label at least, before it is drafted."""
    return min(RARE, max(1, rows // 20))


Proposal = tuple[Field | None, Note]


class ColumnDraft:
    """One column on its way to a field."""

    def __init__(self, name: str, series: pl.Series, missing: tuple[str, ...], dialect: Dialect) -> None:
        self.name, self.series, self.dialect, self.rows = name, series, dialect, len(series)
        self.text = present(series, missing)
        self.counts = word_counts(self.text)
        self.required = len(self.text) == len(series)
        self.distinct = len(self.counts)
        self.said = Spelling(dialect.decimal or ".", dialect.thousands or "")
        self.shown: str | None = None  # the decimal mark of the table
        self.words: tuple[str, ...] = ()  # that say why there is no value
        self.odd = 0  # cells that do not fit what the column is taken for

    @property
    def is_text(self) -> bool:
        """Whether its cells came as text."""
        return bool(self.series.dtype == pl.String)

    def draft(self, shown: str | None = None) -> Proposal:
        """The field, or None where the column is left out, and why; `shown` is the decimal mark that the table's columns show."""
        self.shown, dtype = shown, self.series.dtype
        if len(self.text) <= strays(self.rows):
            why = "hardly any cell holds anything" if self.distinct else "no cell holds anything"
            return self._field("a constant, always missing", why, "string", constant=Constant(None))
        if dtype == pl.String and most_match(self.text, r"^[\[{].*[\]}]$"):
            return self._leave("its cells are lists or records; give each part its own column")
        if (flags := self._flags()) is not None:
            words, why = " or ".join(reversed(flags)), self._but("its cells are yes or no")
            return self._field(words, why, "boolean", flags=flags)
        if dtype.is_temporal():
            return self._dates(dtype)
        attempts = self._day_numbers, self._numbers, self._text_dates, self._dates_with_words, self._numbers_with_words
        for attempt in attempts:
            if (found := attempt()) is not None:
                return found
        return self._labels()

    def _field(self, choice: str, reason: str, type_: str, warning: str | None = None, **parts: Any) -> Proposal:
        parts.setdefault("required", self.required and not self.odd and "constant" not in parts)
        field = Field(self.name, type_, confirmed=False, warning=warning, **parts)
        return field, Note(self.name, choice, reason, warning)

    def _flags(self) -> tuple[str, str] | None:
        """The words for false and true, where nearly all cells are one of two; true and false where they are mixed."""
        for pair in _FLAGS:
            if self._fit(sum(self.counts.get(word, 0) for word in pair)):
                return pair
        lower = [word.lower() for pair in _FLAGS[:3] for word in pair]
        known = sum(count for word, count in self.counts.items() if word.lower() in lower)
        return FALSE_TRUE if self._fit(known) else None

    def _fit(self, fitting: int) -> bool:
        """Whether all cells fit but a few strays, which would be missing."""
        odd = len(self.text) - fitting
        self.odd = odd if odd <= strays(len(self.text)) else 0
        return self.odd == odd

    def _but(self, reason: str) -> str:
        """The reason, and how many cells it does not hold for."""
        return f"{reason}, except {self.odd}, which would become missing" if self.odd else reason

    def _leave(self, reason: str) -> tuple[None, Note]:
        return None, Note(self.name, LEFT_OUT, reason, "it is left out unless you add it by hand")

    # Numbers.

    def _numbers(self) -> Proposal | None:
        """A column of numbers alone, in plain spelling or another one."""
        if self._padded():
            return None  # codes: a number would lose its zeros
        spelling, why = self._spelling(self.text)
        values = number_values(spelled(self.text, spelling))
        if self._fit((~np.isnan(values)).sum()):
            return self._limits(values, self._but(f"its cells are numbers{why}"), spelling)
        return None

    def _spelling(self, text: pl.Series) -> tuple[Spelling, str]:
        """How these cells spell numbers, and what speaks for it: as was said, or as it looks where nothing was said."""
        if self.dialect.decimal is not None or self.dialect.thousands is not None:
            return self.said, ""
        found = number_spelling(text, self.dialect.separator, self.shown)
        return (self.said, "") if found is None else (found[0], f", {found[1]}")

    def _kept(self, counts: dict[str, int]) -> tuple[str, ...]:
        """Those of such words beside values that a draft may hold."""
        least = max(2, rare(self.rows))
        return tuple(sorted(w for w, c in counts.items() if w.lower() in PUBLIC_CODES or (c >= least and len(w) <= 8)))

    def _numbers_with_words(self) -> Proposal | None:
        """Mostly numbers, and a few words that say why there is none."""
        if self._padded():
            return None
        spelling, why = self._spelling(self.text.filter(self.text.str.contains(r"\d")))
        values = number_values(spelled(self.text, spelling))
        there = ~np.isnan(values)
        counts = Counter(word for word, value in zip(self.text, there, strict=True) if not value)
        kept = self._kept(counts)
        strays = counts.total() - sum(counts[word] for word in kept)
        numbers, n = values[there], len(values)
        if not 1 <= len(kept) <= MOST_SPECIAL or len(counts) > 50 or len(numbers) < 0.2 * n or strays > 0.02 * n:
            return None
        if (numbers == np.rint(numbers)).all() and (len(np.unique(numbers)) <= FEW or looks_coded(numbers, n)):
            return None
        return self._limits(numbers, f"its cells are numbers and a few words{why}", spelling, kept)

    def _limits(self, values: Floats, reason: str, spelling: Spelling, special: tuple[str, ...] = ()) -> Proposal:
        values = values[np.isfinite(values)]
        special = special or _sentinels(values)
        numbers = values[~np.isin(values, [float(word) for word in special if _is_number(word)])]
        if not len(numbers):
            numbers = np.array([0.0, 1.0])
        whole = nearly_all(numbers == np.rint(numbers))
        if whole:
            numbers = np.rint(numbers)
        low, high = float(numbers.min()), float(numbers.max())
        distinct = len(np.unique(numbers))
        if whole and (odd := self._identifies(numbers, distinct)):
            return self._leave(odd)
        if whole and not special and distinct <= FEW and len(values) >= 5 * distinct:
            doubt = f"it has {distinct} different whole numbers, which may be codes. If they count something, use type integer"
            return self._labels(doubt, spelling)
        if whole and not special and looks_coded(numbers, len(values)):
            doubt = "its whole numbers look like codes. If they measure something, use type integer"
            return self._labels(doubt, spelling)
        alone = whole and distinct == len(numbers) > FEW
        warning = f"every value is different, so it may be an identifier; {LIMITS}" if alone else LIMITS
        low, high = decades(low, high) if whole else outward(low, high)
        parts: dict[str, Any] = {"minimum": int(low), "maximum": int(high)}
        if not whole:
            decimals = decimals_of(numbers)
            fits = decimals is not None and nearly_all(np.abs(numbers) * 10.0**decimals < LARGEST)
            parts = {"minimum": low, "maximum": high, "decimals": decimals if fits else None}
        beside = f", and {', '.join(special)}" if special else ""
        choice = f"{'whole numbers' if whole else 'numbers'} from {low:,.12g} to {high:,.12g}{beside}"
        kind = "integer" if whole else "number"
        try:
            return self._field(choice, reason, kind, warning, special=special, spelling=spelling, **parts)
        except ParameterError:  # too large for exact steps: the steward declares bounds
            decimals = parts.get("decimals")
            why = f"{reason}, which are too large"
            return self._field("numbers", why, kind, warning, spelling=spelling, decimals=decimals)

    def _identifies(self, numbers: Floats, distinct: int) -> str | None:
        n, few = len(numbers), strays(len(numbers))
        if not nearly_all(np.abs(numbers) < LARGEST):
            return "its whole numbers are larger than 2^53, like identifiers"
        if n > 3 and distinct >= n - few and nearly_all((numbers >= 0) & (numbers <= n + few)):
            return "its numbers count the rows, like identifiers"
        if distinct > 0.5 * n and n > FEW and suggests(self.name, PERSONAL):
            return "its name and its many different values suggest that it identifies persons"
        digits = np.floor(np.log10(np.maximum(numbers, 1)))
        if nearly_all((numbers >= 10**6) & (digits == np.median(digits))) and distinct > 0.9 * n > 20:
            return "its long numbers are nearly all different, like identifiers"
        return None

    # Dates and times.

    def _day_numbers(self) -> Proposal | None:
        if self.distinct > 1 and most_match(self.text, r"^\d{8}$") and date_formats(self.text) == [("date", None)]:
            return self._moments("date", None, "its numbers are days, yyyymmdd")
        return None

    def _dates(self, dtype: Any) -> Proposal:
        if dtype == pl.Time:
            return self._moments("time", None, "its cells are times of day")
        series = self.series.drop_nulls()
        if isinstance(dtype, pl.Datetime) and dtype.time_zone:
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        inside = series.filter(series.dt.year().is_between(1, 9999))  # others are no dates here
        if not self._fit(len(inside)):
            return self._leave("its dates are outside the calendar")
        seconds = np.floor(floats(inside.dt.epoch("ms")) / 1000)
        return self._between("date" if dtype == pl.Date else "datetime", seconds, None, "its cells have that type")

    def _text_dates(self) -> Proposal | None:
        if self.series.dtype != pl.String:
            return None
        said = self.dialect.date_format
        if said is not None:
            clock = re.search("%[HIMSTX]", said)
            spelled = Spelling(date_format=said).plain(self.text)
            if most_match(spelled, r"^\d{4}-\d\d-\d\dT"):
                return self._moments("datetime" if clock else "date", said, f"its cells are written {said}")
        found = date_formats(self.text)
        if not found:
            return None
        if len({form for _, form in found}) > 1:
            forms = " and ".join(str(form) for _, form in found[:2])
            return self._leave(f"{TWO_READINGS}{forms}: say which by date_format (--date-format)")
        [(type_, form)] = found[:1]
        return self._moments(type_, form, f"its cells are written {form or 'as in ISO 8601'}")

    def _dates_with_words(self) -> Proposal | None:
        """Dates, and a few words that say why there is none."""
        rest = copy(self)
        rest.words = self._kept({w: c for w, c in self.counts.items() if not re.search(r"\d", w)})[:MOST_SPECIAL]
        rest.text = self.text.filter(~self.text.is_in(list(rest.words)))
        return rest._text_dates() if rest.words and len(rest.text) >= 0.2 * len(self.text) else None

    def _moments(self, type_: str, form: str | None, reason: str) -> Proposal:
        if type_ == "time":
            day: dict[str, Any] = {"minimum": time(0), "maximum": time(23, 59, 59), "special": self.words}
            choice = ", and ".join(("times of day", *self.words))
            return self._field(choice, reason, "time", spelling=Spelling(date_format=form), **day)
        text = self.text if form is None else Spelling(date_format=form).plain(self.text)
        seconds = parse_times(text, True)
        if not self._fit((~np.isnan(seconds)).sum()):
            return self._labels()
        return self._between(type_, seconds[~np.isnan(seconds)], form, self._but(reason))

    def _between(self, type_: str, seconds: Floats, form: str | None, reason: str) -> Proposal:
        first, last = (np.datetime64(int(s), "s").astype(datetime) for s in (seconds.min(), seconds.max()))
        if type_ == "datetime" and nearly_all(seconds % 86400 == 0):
            type_, reason = "date", AT_MIDNIGHT
        low, high = date(first.year, 1, 1), date(last.year, 12, 31)
        limits: dict[str, Any] = {"minimum": low, "maximum": high}
        if type_ == "datetime":
            limits = {"minimum": datetime(first.year, 1, 1), "maximum": datetime(last.year, 12, 31, 23, 59, 59)}
        what, spelling = "dates" if type_ == "date" else "dates with times", Spelling(date_format=form)
        warning = BIRTHS if suggests(self.name, BIRTH) else LIMITS
        choice = ", and ".join((f"{what} from {low} to {high}", *self.words))
        return self._field(choice, reason, type_, warning, spelling=spelling, special=self.words, **limits)

    # Labels.

    def _labels(self, doubt: str | None = None, spelling: Spelling | None = None) -> Proposal:
        """Categories; with a spelling only those that are whole numbers in it."""
        n = len(self.text)
        public = convention(list(self.counts))
        if public is not None:
            words = "labels that are a public convention" + (", in their order" if public[1] else "")
            return self._field(counted(len(public[0]), "label"), words, "string", enum=public[0], ordered=public[1])
        if (why := personal(self.text)) is not None:
            return self._leave(why)
        if self.distinct == n > 3 or (self.distinct > 0.5 * n and n > FEW):
            return self._leave("nearly every value is different, so it may identify persons")
        if suggests(self.name, NAMES) and self.distinct > FEW:
            return self._leave("its name suggests names of persons")
        if suggests(self.name, PERSONAL) and self.distinct > max(FEW, 0.1 * n):
            return self._leave("its name and its many different values suggest that it may identify persons")
        least = rare(self.rows)
        common = [w for w, count in self.counts.items() if count >= least and len(w) <= 100 and "\r" not in w]
        kept = [w for w in common if spelling is None or is_whole(spelling.plain_word(w))][:MOST_CATEGORIES]
        if not kept:
            return self._leave(f"no label occurs in {least} rows or more")
        dropped = self.distinct - len(kept)
        other = "other" if dropped else None
        while other in self.counts:
            other += "_"
        rest = f"; {dropped} rare {'ones are' if dropped > 1 else 'one is'} {other!r}" if dropped else ""
        few = min(self.counts[word] for word in kept) < RARE
        warning = f"{LABELS} ({len(kept)})" if len(kept) > 50 else SMALL if few else None
        if suggests(self.name, PERSONAL) or suggests(self.name, NAMES):
            warning = "its name suggests that it may identify persons"
        padded = self._padded() and most_match(self.text, r"^\d+$")
        reason = doubt or ("its codes have leading zeros, so they are not numbers" if padded else "its cells are words")
        enum = tuple(sorted(kept, key=_in_order))
        return self._field(f"{counted(len(kept), 'label')}{rest}", reason, "string", warning, enum=enum, other=other)

    def _padded(self) -> bool:
        """Whether cells have leading zeros, as codes have."""
        text = self.series.dtype == pl.String
        return text and int(self.text.str.contains(r"^[+-]?0\d").sum()) > strays(len(self.text))


def number_values(text: pl.Series) -> Floats:
    """Numbers of plain text, NaN for what is none."""
    return floats(text.cast(pl.Float64, strict=False))


def _sentinels(values: Floats) -> tuple[str, ...]:
    """Negative codes for "no number" where every other number is 0 or more."""
    found = [f"{value:g}" for value in np.unique(values[values < 0])]
    known = all(word in PUBLIC_CODES and float(word) <= -7 for word in found)
    return tuple(found) if known and len(found) <= MOST_SPECIAL and (values >= 0).sum() > len(values) / 2 else ()


def _is_number(word: str) -> bool:
    return bool(np.isfinite(number_values(pl.Series([word]))[0]))


def _in_order(label: str) -> tuple[bool, float, str]:
    return (not _is_number(label), float(label) if _is_number(label) else 0.0, label)
