"""The same work without the app: a command line and a Python script that make the same release."""

from __future__ import annotations

import shlex
from fractions import Fraction
from math import floor
from pathlib import Path

from covey.web.choices import Choices

OUT = "release"
SCHEMA = "schema.json"
PACKAGE = "package.json"  # of linked tables, which it names itself


def number(value: Fraction) -> str:
    """A number as a person writes it; floats print the shortest text that reads back as the same."""
    return repr(float(value)).removesuffix(".0").replace("e-0", "e-")


def left(value: Fraction) -> str:
    """A budget that is left, rounded down to four places: never more than there is."""
    places = 10**4
    return number(Fraction(floor(value * places), places) if value * places >= 1 else value)


def command_line(choices: Choices, table: str, ledger: Path | None = None) -> str:
    """The command that does what the review says, in a folder with the table and schema.json.

    Whether cells fit the schema is a fact about true rows, and a file that people keep and hand on does not tell it.
    """
    private = choices.mode == "private"
    table = f"./{table}" if table.startswith("-") else table  # no option
    words = ["covey", "release" if private else "anonymize", table]
    words += [] if table == PACKAGE else ["--schema", SCHEMA]
    if private:
        words += ["--epsilon", number(choices.epsilon)]
        words += ["--delta", number(choices.delta)] if choices.delta else []
        words += ["--dataset", choices.dataset]
        words += ["--person", choices.person] if choices.person else []
        words += ["--rows-per-person", str(choices.rows_per_person)] if choices.rows_per_person > 1 else []
        words += [word for name in choices.important for word in ("--important", name)]
        words += ["--target", choices.target] if choices.target else []
        words += ["--confirm-large-epsilon"] if choices.confirm_large_epsilon else []
        words += ["--ledger", str(ledger)] if ledger is not None else []
        said = [("--title", choices.title), ("--owner", choices.owner), ("--purpose", choices.purpose)]
        words += [word for option, text in said if text for word in (option, text)]
    else:
        words += ["--group-size", str(choices.group_size)]
        words += [word for name in choices.sensitive for word in ("--sensitive", name)]
    words += ["--rows", str(choices.rows)] if choices.rows is not None else []
    words += ["--parquet"] if choices.parquet else []
    words += ["--out", OUT]
    return shlex.join(words)


def script(choices: Choices, table: str, ledger: Path | None = None) -> str:
    """The same as a script: checked, charged and written in the same order."""
    private = choices.mode == "private"
    kind, verb = ("PrivateOrder", "release") if private else ("AnonymousOrder", "anonymize")
    beside = f"the table and {SCHEMA}"
    parts = [("table", f"Path({table!r})"), ("schema", f"Path({SCHEMA!r})"), ("out", f"Path({OUT!r})")]
    imported = [f"from covey.workflow import {kind}, {verb}"]
    if table == PACKAGE:
        beside = f"the tables and {PACKAGE}"
        parts[1] = ("schema", "None")
    if private:
        parts += [("epsilon", number(choices.epsilon))]
        parts += [("delta", number(choices.delta))] if choices.delta else []
        parts += [("dataset", repr(choices.dataset))]
        parts += [("person", repr(choices.person))] if choices.person else []
        parts += [("rows_per_person", str(choices.rows_per_person))] if choices.rows_per_person > 1 else []
        parts += [("important", repr(tuple((name,) for name in choices.important)))] if choices.important else []
        parts += [("target", repr(choices.target))] if choices.target else []
        parts += [("confirm_large_epsilon", "True")] if choices.confirm_large_epsilon else []
        parts += [("ledger", f"Path({str(ledger)!r})")] if ledger is not None else []
        parts += (
            [("about", f"About({choices.title!r}, {choices.owner!r}, {choices.purpose!r})")] if choices.about else []
        )
    else:
        parts += [("group_size", str(choices.group_size))]
        parts += [("sensitive", repr(choices.sensitive))] if choices.sensitive else []
    parts += [("rows", str(choices.rows))] if choices.rows is not None else []
    parts += [("parquet", "True")] if choices.parquet else []
    imported += ["from covey.release.contents import About"] if private and choices.about else []
    arguments = "\n".join(f"    {name}={value}," for name, value in parts)
    told = "print(done.certificate or 'no certificate')" if private else "print(done.agreeing)  # confidential"
    return (
        f'"""Makes the same release as the app did, in a folder with {beside}."""\n\n'
        "from pathlib import Path\n\n" + "\n".join(sorted(imported)) + "\n\n"
        f"order = {kind}(\n{arguments}\n)\n\n"
        # Worker processes may import this file: only its own run may order a release.
        f'if __name__ == "__main__":\n    done = {verb}(order)\n    print(done.bundle, done.privacy, sep="\\n")\n    {told}\n'
    )
