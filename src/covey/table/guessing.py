"""What a column of text looks like: numbers in some spelling, dates in some format, codes, addresses, free text.

Used when a schema is drafted, on the owner's machine; once drafted, the schema says it.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import numpy as np

from covey.table.dialects import Spelling

if TYPE_CHECKING:
    from polars import Series

# Words for "no number here" that surveys and registers use everywhere.
_CODES = """n na n/a n.a. nan ? . - -- * x unknown missing refused none null nil tbd <3 <5 <10
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

_PERSONAL = re.compile(
    r"(^|[^a-z])(id|ids|ident\w*|uuid|guid|ssn|mrn|iban|e-?mail|mail|phone|tel\w*|mobile|fax|address|street|strasse|"
    r"first_?name|last_?name|surname|full_?name|name|person|patient_?(id|nr|no|number)|passport|licen[cs]e|ip|url|"
    r"comment\w*|remark\w*|notes?|free_?text|description)([^a-z]|$)"
)
_NAMES = re.compile(
    r"^((patient|person|client|customer|employee|subject|full|first|last|middle|family|given|sur|fore|maiden|[fl])_?)?names?$|"
    r"^(first|last|middle|given|maiden)$|^(vor|nach|familien)name$|^(pre)?nom(_de_famille)?$|^(nombre|apellidos?|cognome)$"
)
_BIRTH = re.compile(
    r"(^|_)(dob|birth_?(date|day|dt)|date_?of_?birth|geburts(datum|tag)|(date_(de_)?)?naissance|nacimiento)(_|$)"
)
_ADDRESS = r"^[^@\s]+@[^@\s]+\.[^@\s]+$|^(https?://|www\.)|^\+?[\d ()/-]{9,}$|^\d{1,3}(\.\d{1,3}){3}$"
_HIERARCHY = r"^[A-Z]\d\d(\.?\d{1,4}[A-Z]?)?$|^\d\d\.\d{1,2}(\.\d{1,2})?$"

_DATES = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%d.%m.%y", "%d %b %Y", "%d-%b-%Y")
_CLOCKS = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S")
_ISO_DAY = r"^\d{4}-\d\d-\d\d$"
_ISO_TIME = r"^\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?$"
_DAY_NUMBER = r"^(19|20)\d\d(0[1-9]|1[0-2])(0[1-9]|[12]\d|3[01])$"
_TIME = r"^([01]?\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d+)?)?$"


def strays(cells: int) -> int:
    """How many of so many cells may be odd before a column is taken for something else: one record decides nothing."""
    return 0 if cells < 20 else max(1, cells // 1000)


def nearly_all(flags: Any) -> bool:
    """Whether all are so but a few strays."""
    return len(flags) - int(flags.sum()) <= strays(len(flags))


def most_match(words: Series, form: str) -> bool:
    """Whether nearly every word has this form."""
    return nearly_all(words.str.contains(form))


def number_spelling(words: Series, separator: str | None) -> tuple[Spelling, str] | None:
    """A spelling in which nearly every word is a number and some need it, and what speaks for it; None if there is none."""
    for form, needed, spelling in _SPELLINGS:
        if not most_match(words, form) or int(words.str.contains(needed).sum()) <= strays(len(words)):
            continue
        # "1,234" may be a thousand or one and a bit: other cells tell, or the separator of the file.
        if most_match(words, r"^[+-]?(\d{1,3}(,\d{3})+|\d+)$"):
            comma = separator not in (None, ",")
            chosen = Spelling(",", "") if comma else Spelling(".", ",")
            return chosen, f"every comma is followed by three digits; taken as {'decimal' if comma else 'thousands'}"
        return spelling, f"decimal mark {spelling.decimal!r}" + (
            f", digits grouped by {spelling.thousands!r}" if spelling.thousands else ""
        )
    return None


def _forms() -> list[tuple[str, str, Spelling]]:
    """For each spelling the form of its numbers, and what shows that it is needed."""
    out = []
    for decimal, marks in (
        (",", (".", " ", "\u00a0", "\u202f", "'")),
        (".", (",", " ", "\u00a0", "\u202f", "'", "\u2019")),
    ):
        point = re.escape(decimal)
        if decimal == ",":
            out.append((r"^[+-]?\d+(,\d+)?$", r",", Spelling(",", "")))
        for mark in marks:
            group = re.escape(mark)
            form = rf"^[+-]?(\d+|\d{{1,3}}({group}\d{{3}})+)({point}\d+)?$"
            out.append((form, rf"\d{group}\d{{3}}", Spelling(decimal, mark)))
    return out


_SPELLINGS = _forms()


def date_formats(words: Series) -> list[tuple[str, str | None]]:
    """Types and formats in which nearly every word is a date, time of day or both; None is ISO 8601, which needs no format."""
    if most_match(words, _ISO_DAY) and _most_read(words, "%Y-%m-%d"):
        return [("date", None)]
    if most_match(words, _DAY_NUMBER) and _most_read(words, "%Y%m%d"):
        return [("date", None)]
    if most_match(words, _ISO_TIME):
        return [("datetime", None)]
    if most_match(words, _TIME):
        return [("time", None)]
    if not most_match(words, r"^\d{1,4}[./ -]([A-Za-z]{3}|\d{1,2})[./ -]\d{2,4}([T ]\d{1,2}:\d\d(:\d\d)?)?$"):
        return []
    found: list[tuple[str, str | None]] = []
    for clock in _CLOCKS:
        for day in _DATES:
            if _most_read(words, day + clock):
                found.append(("datetime" if clock else "date", day + clock))
    return found


def _most_read(words: Series, form: str) -> bool:
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
            style = _style(labels)
            if all(style(word.lower()) == word for word in labels):
                return tuple(style(word) for word in listed), ordered
    return None


def _style(labels: list[str]) -> Any:
    for style in (str.lower, str.upper, str.capitalize):
        if all(style(label) == label for label in labels):
            return style
    return str.lower


def personal(words: Series) -> str | None:
    """Why a column of text may point to persons: addresses, or prose; None if it does not."""
    sample = words.head(2000)
    if _share(sample.str.contains(_ADDRESS)) > 0.5:
        return "it holds addresses or telephone numbers"
    if _share(sample.str.len_chars() > 60) > 0.1 or _share(sample.str.count_matches(r"\s") >= 4) > 0.5:
        return "it holds free text"
    return None


def named_for_persons(name: str) -> bool:
    """Whether a column's name says that it identifies somebody."""
    return _PERSONAL.search(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()) is not None


def holds_names(name: str) -> bool:
    """Whether a column's name says that it holds names of persons: each of them is one, however many share it."""
    return _NAMES.search(_snake(name)) is not None


def holds_births(name: str) -> bool:
    """Whether a column's name says that it holds dates of birth."""
    return _BIRTH.search(_snake(name)) is not None


def _snake(name: str) -> str:
    return re.sub(r"[^a-z]+", "_", re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()).strip("_")


def is_hierarchy(words: Series) -> bool:
    """Whether the labels look like codes whose first letters are a coarser level: ICD-10, NACE."""
    return _share(words.str.contains(_HIERARCHY)) > 0.9


def _share(flags: Series) -> float:
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
    for decimals in range(1, 9):
        if nearly_all(np.isclose(values, np.round(values, decimals), rtol=1e-15, atol=1e-10)):
            return decimals
    return None
