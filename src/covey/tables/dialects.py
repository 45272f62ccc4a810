"""How a file writes its table: separators, decimal commas, dates, encodings, sheets; and the way from there to plain cells.

A dialect is found once, when a schema is drafted on the owner's machine, and recorded in the schema as Frictionless has it. From
then on the schema rules, so that no record decides how others are read; learned columns take none of what was found.
Text in a dialect is turned into plain text (a decimal point, ISO 8601 dates) cell by cell; numbers and dates that come
with a type need no dialect.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Any

from covey.errors import ParameterError, whole_number
from covey.libraries import pl
from covey.tables.document import refuse_unknown

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "pipes"}
NAMED = {"comma": ",", "semicolon": ";", "tab": "\t", "\\t": "\t", "pipe": "|"}  # what a shell can write
DECIMALS = (".", ",")
THOUSANDS = (",", ".", " ", "'", "\u00a0", "\u202f", "\u2019", "_")
KEYS = ("delimiter", "headerRows", "sheetName", "header", "quoteChar", "doubleQuote")  # of Frictionless' dialect

USUAL_FORMATS = ("default", "any")  # of Frictionless: ISO 8601
# Encodings that covey finds by itself, as Python calls them.
RECOGNISED = ("ascii", "utf-8", "utf-8-sig", "cp1252", "utf-16", "utf-16-le", "utf-16-be", "utf-32")

NO_VALUE = "\ufffd"  # put before text that would look like a value in plain spelling and is none in the dialect


@dataclass(frozen=True)
class Dialect:
    """How a table is written in its file. What is None is not said: it stays as it was, or is found when drafting."""

    separator: str | None = None  # what stands between cells: a comma, semicolon, tab or pipe (or the words for them)
    decimal: str | None = None  # the decimal mark of numbers, a point or a comma
    thousands: str | None = None  # what groups their digits by threes, if anything does; "" for nothing
    encoding: str | None = None  # of the text, such as utf-8 or windows-1252
    missing: tuple[str, ...] | None = None  # texts that stand for a missing cell
    date_format: str | None = None  # of dates and times that are not ISO 8601, in the letters of strptime: %d.%m.%Y
    sheet: str | None = None  # the name of the sheet of a workbook; the first one otherwise
    skip_rows: int | None = None  # lines before the header

    def __post_init__(self) -> None:
        if self.separator is not None:
            object.__setattr__(self, "separator", NAMED.get(self.separator, self.separator))
            _one_of("separator", self.separator, tuple(SEPARATORS))
        check_marks(self.decimal, self.thousands)
        if self.encoding is not None:
            check_encoding(self.encoding)
        if self.date_format is not None:
            check_format(self.date_format, "date_format")
        if self.skip_rows is not None:
            whole_number(self.skip_rows, "skip_rows", 0)
        if isinstance(self.missing, str):
            raise ParameterError(f"missing must be a list of texts, got {self.missing!r}.")
        if self.missing is not None:
            object.__setattr__(self, "missing", tuple(self.missing))

    def over(self, base: Dialect) -> Dialect:
        """This dialect, and the other one where this one says nothing."""
        return replace(base, **{k: v for k, v in vars(self).items() if v is not None})

    @property
    def of_file(self) -> Dialect:
        """What holds for the whole file, not for single fields."""
        return Dialect(self.separator, encoding=self.encoding, sheet=self.sheet, skip_rows=self.skip_rows)

    @property
    def shared(self) -> Dialect:
        """What a bundle may say of the file that it was made from: all of its layout but an encoding that covey recognises.

        Between these a single letter of a single record may decide.
        """
        if self.encoding is not None and check_encoding(self.encoding) in RECOGNISED:
            return replace(self.of_file, encoding=None)
        return self.of_file

    def to_dict(self) -> dict[str, Any]:
        """The properties of a schema's file that say it: Frictionless' dialect and encoding."""
        own: dict[str, Any] = {}
        if self.separator not in (None, ","):
            own["delimiter"] = self.separator
        if self.skip_rows:
            own["headerRows"] = [self.skip_rows + 1]
        if self.sheet is not None:
            own["sheetName"] = self.sheet
        out: dict[str, Any] = {"dialect": own} if own else {}
        if self.encoding is not None and check_encoding(self.encoding) not in ("utf-8", "utf-8-sig"):
            out["encoding"] = self.encoding
        return out

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Dialect:
        """The dialect and encoding of a schema's file."""
        own = data.get("dialect", {})
        if not isinstance(own, Mapping):
            raise ParameterError(f"dialect of the schema must be an object, got {own!r}.")
        refuse_unknown(own, KEYS, "dialect of the schema")
        rows = own.get("headerRows", [1])
        if not isinstance(rows, list) or len(rows) != 1 or not isinstance(rows[0], int) or rows[0] < 1:
            raise ParameterError(f"headerRows of the dialect must be one line number in a list, got {rows!r}.")
        if own.get("header", True) is not True or own.get("quoteChar", '"') != '"' or not own.get("doubleQuote", True):
            raise ParameterError("the dialect must have a header, double quotes and doubled ones inside them.")
        encoding, sheet, separator = data.get("encoding"), own.get("sheetName"), own.get("delimiter")
        for word, value in (("encoding", encoding), ("sheetName", sheet), ("delimiter", separator)):
            if value is not None and not isinstance(value, str):
                raise ParameterError(f"{word} of the schema must be text, got {value!r}.")
        return cls(separator, encoding=encoding, sheet=sheet, skip_rows=rows[0] - 1 or None)


def check_marks(decimal: str | None, thousands: str | None) -> None:
    """Refuse a decimal mark or a group mark that covey does not read."""
    if decimal is not None:
        _one_of("decimal", decimal, DECIMALS)
    if thousands:
        _one_of("thousands", thousands, THOUSANDS)
        if thousands == (decimal or "."):
            raise ParameterError(f"decimal and thousands are both {thousands!r}. Let them differ.")


def check_format(form: str, word: str) -> None:
    """Refuse a format that is none, or leaves a day open."""
    letters, again = set(re.findall("%(.)", form.replace("%%", ""))), None
    try:
        moment = datetime(2003, 12, 31, 23, 58, 59)
        if "d" not in letters or letters & set("YyGcx"):  # from Python 3.13 on a day without a year is warned of
            again = datetime.strptime(moment.strftime(form), form)
    except (ValueError, re.error):
        pass
    if again is None or again.date() not in (moment.date(), datetime(1900, 1, 1).date()):
        raise ParameterError(f"{word} must name year, month and day, such as %d.%m.%Y, got {form!r}.")


def check_encoding(encoding: str) -> str:
    """The name of a text encoding, or a refusal; asked before a table is opened."""
    try:
        found = codecs.lookup(encoding)
    except (LookupError, ValueError):
        found = None
    if found is None or not getattr(found, "_is_text_encoding", True):
        raise ParameterError(f"encoding {encoding!r} is unknown. Use a name such as utf-8, utf-16 or windows-1252.")
    return found.name


def _one_of(word: str, value: Any, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        listed = ", ".join(repr(text) for text in allowed)
        raise ParameterError(f"{word} must be one of {listed}, got {value!r}.")


@dataclass(frozen=True)
class Spelling:
    """How a field's text is written, and the same in plain spelling: a decimal point, ISO 8601."""

    decimal: str = "."
    thousands: str = ""
    date_format: str | None = None

    @classmethod
    def from_field(cls, data: Mapping[str, Any], name: Any) -> Spelling:
        """Frictionless' decimalChar, groupChar and format of a field."""
        said = {"decimalChar": ".", "groupChar": "", "format": "default"}
        for word in said:
            said[word] = value = data.get(word, said[word])
            if not isinstance(value, str):
                raise ParameterError(f"{word} of field {name!r} must be text, got {value!r}.")
        decimal, thousands, form = said.values()
        check_marks(decimal, thousands)
        if form in USUAL_FORMATS:
            return cls(decimal, thousands)
        if data.get("type") not in ("date", "datetime", "time"):
            raise ParameterError(f"field {name!r} has format {form!r}; only dates and times have one. Leave it out.")
        check_format(form, f"format of field {name!r}")
        return cls(decimal, thousands, form)

    def to_field(self) -> dict[str, str]:
        """The same, as far as it is not usual."""
        said = {"decimalChar": self.decimal, "groupChar": self.thousands, "format": self.date_format}
        usual = {"decimalChar": ".", "groupChar": ""}
        return {word: value for word, value in said.items() if value is not None and value != usual.get(word)}

    @property
    def is_plain(self) -> bool:
        """Whether there is nothing to do."""
        return self == Spelling()

    def plain(self, series: pl.Series) -> pl.Series:
        """A column of text in plain spelling, cell by cell."""
        words = series.unique().drop_nulls()
        if not len(words):
            return series
        spelled = pl.Series([self.plain_word(word) for word in words.to_list()], dtype=pl.String)
        return series.replace_strict(words, spelled, default=None, return_dtype=pl.String)

    def plain_word(self, word: str) -> str:
        """One cell in plain spelling. What is no value in this spelling stays none in the plain one."""
        bare = word.strip()
        if self.date_format is not None:
            try:
                return datetime.strptime(bare, self.date_format).isoformat()
            except ValueError:
                return NO_VALUE + bare if bare.isdecimal() else word
        if self.number.fullmatch(bare):
            kept = bare.replace(self.thousands, "") if self.thousands else bare
            return kept.replace(self.decimal, ".")
        return NO_VALUE + bare if re.fullmatch(r"[+-]?[\d.,]+([eE][+-]?\d+)?", bare) else word

    @cached_property
    def number(self) -> re.Pattern[str]:
        """What a number looks like."""
        mark, group = re.escape(self.decimal), re.escape(self.thousands)
        whole = rf"(\d+|[1-9]\d{{0,2}}({group}\d{{3}})+)" if self.thousands else r"\d+"
        return re.compile(rf"[+-]?({whole}({mark}\d*)?|{mark}\d+)([eE][+-]?\d+)?", re.ASCII)


PLAIN = Dialect(",", ".", "", "utf-8", skip_rows=0)  # what holds where nothing is said
