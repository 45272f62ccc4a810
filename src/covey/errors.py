"""The exceptions that covey raises on purpose.

    CoveyError
    ├── ParameterError     a public parameter is wrong: no data was read, nothing was charged  (exit code 2)
    │   ├── NotFittedError     sample() before fit()
    │   ├── ArgumentError      names an argument
    │   └── CannotAnswerError  a release does not support an honest interval; says what would help
    ├── InputError         the table cannot be turned into records: nothing was charged        (exit code 3)
    ├── LedgerError        the ledger refuses: no such dataset, no budget left, or not to be trusted  (exit code 4)
    │   └── UnknownDatasetError    knows which datasets there are
    ├── LostReleaseError   the release failed after its charge, which stays                     (exit code 5)
    ├── MissingExtraError  an optional package is needed and not installed
    └── InternalError      a mistake of covey's own, found before anything left: please report it     (exit code 1)

    CoveyWarning           advice that follows from public numbers alone

Messages name the argument, its value and the way out; a command line spells arguments in its own way. Messages of
ParameterError and CoveyWarning never depend on what a record holds; messages of InputError may, and stay with the data's owner.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from numbers import Integral, Rational
from typing import Any

# Told wherever a second pass finds another table.
CHANGED = "the table changed while it was read. Nothing was released."
MOST_NAMES = 20  # that a message lists: more would push the advice off a screen
LONGEST_VALUE = 60  # characters of a wrong value in a message


class CoveyError(Exception):
    """Base class of every exception that covey raises on purpose.

    It is given a message, or a message in parts, of which every second one names an argument as Python spells it.
    """

    exit_code = 1

    def __str__(self) -> str:
        return self.naming(str)

    def naming(self, spell: Callable[[str], str]) -> str:
        """The message with arguments spelled as they are where it appears: options of a command line, say."""
        return "".join(spell(part) if k % 2 else str(part) for k, part in enumerate(self.args))


class ParameterError(CoveyError, ValueError):
    """A public parameter is wrong; no data was read and nothing was charged."""

    exit_code = 2


class NotFittedError(ParameterError):
    """A synthesizer was asked for rows before it had seen a table."""


class ArgumentError(ParameterError):
    """A refusal that names an argument."""


class CannotAnswerError(ParameterError):
    """A release does not support an honest answer to a question; the message says why, and what would help."""


class InputError(CoveyError, ValueError):
    """The table cannot be turned into records; nothing was charged."""

    exit_code = 3


class LedgerError(CoveyError):
    """The ledger refuses; the message uses the ledger alone and never the data."""

    exit_code = 4


class UnknownDatasetError(LedgerError):
    """The ledger has no dataset of this name; `advice` says how one is opened where the steward works."""

    def __init__(self, ledger: str, name: str, known: tuple[str, ...]) -> None:
        self.ledger, self.name, self.known = ledger, name, known
        super().__init__(self.advising("For a table about other people open a new one, with a budget of your choice. "))

    def advising(self, advice: str) -> str:
        """The refusal, with the words that say how to open a dataset; the name that may have been meant comes first."""
        near = _near(self.name, self.known, 1)
        others = f"It has: {_listed(self.known)}. " if self.known else "It has none yet. "
        return (
            f"The ledger {self.ledger} has no dataset {self.name!r}. {f'Did you mean {near[0]!r}? ' if near else ''}{others}"
            f"{advice}A new name for the same people would evade the cap."
        )

    def __reduce__(self) -> tuple[type[UnknownDatasetError], tuple[str, str, tuple[str, ...]]]:
        return type(self), (self.ledger, self.name, self.known)


class LostReleaseError(CoveyError):
    """A release failed after its charge, which stays: noise may have been drawn for it."""

    exit_code = 5


class MissingExtraError(CoveyError, ImportError):
    """An optional dependency is needed; the message names the install line."""

    exit_code = 2


class InternalError(CoveyError, RuntimeError):
    """covey broke one of its own rules and stopped before anything left; the message says nothing of the data."""


class CoveyWarning(UserWarning):
    """Advice derived from public numbers alone (sizes, ε), never from a record."""


def nearest(name: str, known: Sequence[str], what: str) -> str:
    """What to say where a name is not known: the names that may have been meant, or the first ones there are."""
    near = _near(name, known, 3)
    return f"Did you mean {' or '.join(map(repr, near))}?" if near else f"The {what} are: {_listed(map(repr, known))}."


def _near(name: str, known: Sequence[str], most: int) -> list[str]:
    folded = {other.casefold(): other for other in reversed(known)}
    return [folded[match] for match in get_close_matches(str(name).casefold(), folded, n=most)]


def _listed(names: Iterable[str]) -> str:
    first = list(names)
    left = len(first) - MOST_NAMES
    return ", ".join([*first[:MOST_NAMES], *([f"{left} more"] if left > 0 else [])])


def counted(count: int, thing: str) -> str:
    """A number of things: 1 category, 2 categories."""
    several = f"{thing[:-1]}ies" if thing.endswith("ry") else f"{thing}s"
    return f"{count:,} {thing if count == 1 else several}"


def briefly(value: Any) -> str:
    """A value for a message, whatever it is and however long."""
    try:
        words = str(value) if isinstance(value, Rational) and not isinstance(value, bool) else repr(value)
    except ValueError:  # Python writes no integer of more than 4300 digits
        return "a number of thousands of digits"
    return words if len(words) <= LONGEST_VALUE else f"{words[:LONGEST_VALUE]}…"


def whole_number(value: Any, name: str, least: int, advice: str = "") -> int:
    """The value as an int, or a refusal that names the argument and the value."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        said = f" must be a whole number, {least} or more, got {briefly(value)}. {advice}".rstrip()
        raise ArgumentError("", name, said)
    return int(value)


def optional(module: str, extra: str = "table") -> Any:
    """A package of an extra such as covey[table], imported when it is needed, or the line that installs it."""
    try:
        return importlib.import_module(module)
    except ImportError:
        package = "pandas" if module == "pandas" else f"'covey[{extra}]'"  # pandas is the caller's own choice: no extra
        raise MissingExtraError(f"this needs {module}: pip install {package}") from None
