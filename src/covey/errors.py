"""The exceptions that covey raises on purpose.

    CoveyError
    ├── ParameterError     a public parameter is wrong: no data was read, nothing was charged  (exit code 2)
    │   └── NotFittedError     sample() before fit()
    ├── InputError         the table cannot be turned into records: nothing was charged        (exit code 3)
    ├── LedgerError        the ledger refuses: no such dataset, no budget left, or not to be trusted  (exit code 4)
    ├── LostReleaseError   the release failed after its charge, which stays                     (exit code 5)
    ├── MissingExtraError  an optional package is needed and not installed
    └── InternalError      a mistake of covey's own, found before anything left: please report it     (exit code 1)

    CoveyWarning           advice that follows from public numbers alone

Messages name the argument, its value and the way out. Messages of ParameterError and CoveyWarning
never depend on what a record holds; messages of InputError may, and stay with the data's owner.
"""

from __future__ import annotations

from numbers import Integral
from typing import Any


class CoveyError(Exception):
    """Base class of every exception that covey raises on purpose."""

    exit_code = 1


class ParameterError(CoveyError, ValueError):
    """A public parameter is wrong; no data was read and nothing was charged."""

    exit_code = 2


class NotFittedError(ParameterError):
    """A synthesizer was asked for rows before it had seen a table."""


class InputError(CoveyError, ValueError):
    """The table cannot be turned into records; nothing was charged."""

    exit_code = 3


class LedgerError(CoveyError):
    """The ledger refuses; the message uses the ledger alone and never the data."""

    exit_code = 4


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


def whole_number(value: Any, name: str, least: int, advice: str = "") -> int:
    """The value as an int, or a ParameterError that names the argument and the value."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ParameterError(f"{name} must be a whole number, {least} or more, got {value!r}. {advice}".rstrip())
    return int(value)
