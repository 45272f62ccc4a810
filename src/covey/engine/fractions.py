"""Numbers that people and files write down, as exact fractions: 0.1 is one tenth. All that covey reads pass here.

What is read is bounded. `Fraction("1e9999999")` has ten million digits, and whoever computes with it does not end. Bundles come
from strangers, and so may a schema, a package, or what a program hands on.
"""

from __future__ import annotations

import re
from fractions import Fraction
from numbers import Rational, Real
from typing import Any

from covey.errors import ArgumentError, briefly

MOST_DIGITS = 4000  # of a numerator or denominator: charges of a bundle have some hundred, and Python writes up to 4300
LARGEST = 10**300  # beyond it no float has a place
_BITS = (10**MOST_DIGITS).bit_length()
_DIGITS = rf"\d{{1,{MOST_DIGITS}}}"
_RATIO = rf"{_DIGITS}/{_DIGITS}"
_DECIMAL = rf"(?:{_DIGITS}(?:\.(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][+-]?\d{{1,3}})?"
_WRITTEN = re.compile(rf"[+-]?(?:{_RATIO}|{_DECIMAL})", re.ASCII)


def exact(value: Any, name: str) -> Fraction:
    """A number of Python as a fraction, as its owner would write it."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise ArgumentError("", name, f" must be a number, got {briefly(value)}.")
    if isinstance(value, Rational):
        return _bounded(Fraction(int(value.numerator), int(value.denominator)), name)
    try:
        return _bounded(Fraction(repr(float(value))), name)
    except ValueError:
        raise ArgumentError("", name, f" must be a finite number, got {briefly(value)}.") from None


def written(text: Any, name: str, advice: str = "") -> Fraction:
    """The number that somebody typed, or that a file has as text: 0.1, 1e-9, 1/3."""
    wrong = ArgumentError("", name, f" must be a number, got {briefly(text)}.{advice}")
    if not isinstance(text, str) or not _WRITTEN.fullmatch(text.strip()):
        raise wrong
    try:
        return _bounded(Fraction(text.strip()), name)
    except ZeroDivisionError:
        raise wrong from None


def said_or_written(number: Any, name: str) -> Fraction:
    """A number as Python has it, or as a text says it: a file of JSON may hold either."""
    if isinstance(number, str):
        return written(number, name)
    return exact(number, name)


def amount(text: Any, name: str) -> Fraction:
    """What a file says was promised or spent: a number that is not negative."""
    found = written(text, name)
    if found < 0:
        raise ArgumentError("", name, f" must not be negative, got {briefly(text)}.")
    return found


def _bounded(number: Fraction, name: str) -> Fraction:
    if abs(number) >= LARGEST or max(number.numerator.bit_length(), number.denominator.bit_length()) > _BITS:
        raise ArgumentError(
            "", name, f" must be below 1e300 and have at most {MOST_DIGITS} digits, got {briefly(number)}."
        )
    return number
