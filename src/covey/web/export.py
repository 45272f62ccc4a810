"""The same work without the app: a command line and a Python script that make the same release."""

from __future__ import annotations

import shlex
from fractions import Fraction
from math import floor
from pathlib import Path
from typing import Any

from covey.release.contents import About
from covey.web.security import templates
from covey.workflow import AnonymousOrder, PrivateOrder, said

OUT = Path("release")
SCHEMA = Path("schema.json")
PACKAGE = Path("package.json")  # of several tables, which it names itself


def number(value: Fraction) -> str:
    """A number as a person writes it; floats print the shortest text that reads back as the same."""
    return repr(float(value)).removesuffix(".0").replace("e-0", "e-")


def left(value: Fraction) -> str:
    """A budget that is left, rounded down to four places: never more than there is."""
    places = 10**4
    return number(Fraction(floor(value * places), places) if value * places >= 1 else value)


def command_line(order: PrivateOrder | AnonymousOrder) -> str:
    """The command that does what an order says, in a folder with the table and its schema."""
    table = str(order.table)
    table = f"./{table}" if table.startswith("-") else table  # no option
    words = ["covey", "release" if isinstance(order, PrivateOrder) else "anonymize", table]
    for name, value in said(order).items():
        if name not in ("table", "out"):
            words += _options("--" + name.replace("_", "-"), value)
    return shlex.join([*words, "--out", str(order.out)])


def _options(option: str, value: Any) -> list[str]:
    if value is None or value is True:
        return [option] if value else []
    if isinstance(value, About):
        told = value.to_dict()
        return [word for name, text in told.items() for word in (f"--{name}", text)]
    if isinstance(value, tuple):  # columns, and groups of them
        return [word for one in value for word in (option, one if isinstance(one, str) else ",".join(one))]
    return [option, number(value) if isinstance(value, Fraction) else str(value)]


def script(order: PrivateOrder | AnonymousOrder) -> str:
    """The same as a script: checked, charged and written in the same order."""
    told = {name: _literal(value) for name, value in said(order).items()}
    verb = "release" if isinstance(order, PrivateOrder) else "anonymize"
    return templates.get_template("release.py.txt").render(order=order, told=told, verb=verb) + "\n"


def _literal(value: Any) -> str:
    """A value as Python writes it."""
    if isinstance(value, About):
        return f"About({value.title!r}, {value.owner!r}, {value.purpose!r})"
    if isinstance(value, Path):
        return f"Path({str(value)!r})"
    return number(value) if isinstance(value, Fraction) else repr(value)
