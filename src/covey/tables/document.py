"""Schemas as files: JSON or YAML read in, the places where each key belongs, and refusals that name what is wrong.

A key that covey would pass over in silence is refused with the place where it belongs: what a steward wrote down must not be
lost by a spelling.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any

from covey.errors import ParameterError, optional
from covey.paths import local_output, refuse_special

MOST_ITEMS = 10**6  # of a YAML file, references unfolded: far more than any schema, far less than the memory
MOST_DIGITS = 300  # of an integer: a float holds no larger one

# What covey reads of a file, and where. Entries of PROPERTIES may hold other properties too, as Frictionless allows.
PROPERTIES = {
    "at the top level of the schema": ("fields", "missingValues", "covey", "dialect", "encoding"),
    'directly in an entry of "fields"': (
        *("name", "type", "constraints", "covey", "format", "decimalChar", "groupChar", "trueValues", "falseValues"),
    ),
}
SECTIONS = {
    'under "covey" of the schema': ("draft", "rules", "important", "target", "triples", "relations"),
    'under "constraints" of a field': ("minimum", "maximum", "enum", "required"),
    'under "covey" of a field': (
        *("bins", "other", "default", "decimals", "constant", "derived", "expected", "levels", "ordered", "special"),
        *("learn", "learned", "from_table", "after", "difference_from", "difference", "warning", "confirmed"),
    ),
}
OF_SCHEMA, OF_FIELD = PROPERTIES
OWN_OF_SCHEMA, LIMITS_OF_FIELD, OWN_OF_FIELD = SECTIONS


def read_document(path: str | Path, name: str | None = None) -> Any:
    """The contents of a public JSON or YAML file; `name` says which, where the file has lost its own."""
    path = Path(path)
    refuse_special(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ParameterError(f"there is no file {path}. Check the name.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ParameterError(f"cannot read {path}: {error}. Give a JSON or YAML file in UTF-8.") from None
    if Path(name or path).suffix.lower() in (".yaml", ".yml"):
        yaml = optional("yaml")
        try:
            document = yaml.safe_load(text)
        # Of a tag that does not fit its value the parser raises whatever came up while reading it.
        except (yaml.YAMLError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise ParameterError(f"{path} is not YAML: {error}") from None
        except RecursionError:
            raise ParameterError(f"{path} is nested too deeply.") from None
        _refuse_unfolding(document, path)
    else:
        try:
            document = json.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError also for integers of thousands of digits
            raise ParameterError(f"{path} is not JSON ({error}). Give a JSON or YAML file.") from None
    return as_json(document, str(path))


def as_json(document: Any, where: str) -> Any:
    """What is public, as JSON in UTF-8 has it, dates as text. What a bundle could not hold is refused while nothing is spent."""
    try:
        return json.loads(json.dumps(document, ensure_ascii=False, default=_dated).encode(), parse_int=_of_few_digits)
    except UnicodeEncodeError as error:
        raise ParameterError(f"{where} holds {error.object[error.start]!a}, which is no character of UTF-8.") from None
    except (TypeError, ValueError, RecursionError) as error:
        raise ParameterError(f"{where} says something that JSON cannot hold: {error}.") from None


def _dated(value: Any) -> str:
    if not isinstance(value, date | time):
        raise TypeError(f"{type(value).__name__} is not text, a number, a list or an object")
    return value.isoformat()


def _of_few_digits(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"an integer of {len(text)} digits")
    return int(text)


def write_document(path: str | Path, value: Any) -> None:
    """Write a public JSON file."""
    local_output(path).write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


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


def section(data: Mapping[str, Any], key: str, name: Any) -> Mapping[str, Any]:
    """An object inside a schema (name is None) or one of its fields; empty where it is not there."""
    part = data.get(key, {})
    if not isinstance(part, Mapping):
        where = "the schema" if name is None else f"field {name!r}"
        raise ParameterError(f"{key} of {where} must be an object, got {part!r}.")
    return part


def only(part: Mapping[str, Any], place: str, where: str) -> None:
    """Refuse what a section of the schema does not know."""
    refuse_misplaced(part, place, where)
    refuse_unknown(part, SECTIONS[place], where)


def refuse_misplaced(part: Mapping[str, Any], place: str, where: str) -> None:
    """Refuse a key that covey would read elsewhere, or in another spelling, and would pass over here."""
    places = {**PROPERTIES, **SECTIONS}
    for key in map(str, part):
        if key in places[place] or (place == OF_SCHEMA and _plain(key) in ("name", "type", "format")):
            continue  # a table has these too, for others to read
        for known_at in (place, *places):
            for word in spelt_like(places[known_at], (key,)):
                way_out = f"It belongs {known_at}." if key == word else f"Write {word!r}, {known_at}."
                raise ParameterError(f"{where} has {key!r} where covey would not read it. {way_out}")


def spelt_like(keys: Iterable[Any], words: tuple[str, ...]) -> list[Any]:
    """The keys that equal one of the words but for case, underscores, hyphens and blanks."""
    plain = {_plain(word) for word in words}
    return [key for key in keys if _plain(str(key)) in plain]


def _plain(key: str) -> str:
    """A key without what people vary in spelling it."""
    return key.lower().replace("_", "").replace("-", "").replace(" ", "")


def refuse_unknown(part: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    """Refuse a key that covey does not know."""
    unknown = [str(key) for key in part if key not in known]
    if unknown:
        raise ParameterError(f"{where} has {unknown[0]!r}, which covey does not know. It may have {', '.join(known)}.")


def flag(part: Mapping[str, Any], key: str, default: bool, name: Any) -> bool:
    """True or false, as a field says or by default."""
    value = part.get(key, default)
    if not isinstance(value, bool):
        raise ParameterError(f"{key} of field {name!r} must be true or false, got {value!r}.")
    return value


def is_number(value: Any) -> bool:
    """Whether a value of a file is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2.0**1023


def shown(value: Any) -> Any:
    """A value as JSON has it."""
    if isinstance(value, tuple):
        return [shown(v) for v in value]
    return value.isoformat() if isinstance(value, date | time) else value
