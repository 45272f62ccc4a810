"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import Any

import click

from covey.errors import ParameterError


def number(name: str) -> Callable[[Any, Any, str | None], Fraction | None]:
    """Reads an option as the fraction that was written: 0.1 is one tenth."""

    def read(_: Any, __: Any, value: str | None) -> Fraction | None:
        if value is None:
            return None
        from covey.privacy.budget import exact

        try:
            return exact(float(value), name)
        except ValueError:
            point = value.replace(",", ".")
            advice = f" Write {point}." if re.fullmatch(r"[+-]?\d+,\d+", value) else ""
            raise ParameterError(f"{name} must be a number, got {value!r}.{advice}") from None

    return read


json_option = click.option("--json", "as_json", is_flag=True, help="Answer as one JSON object.")
DIALECT = (
    click.option("--separator", help="Separator between cells: comma, semicolon, tab or pipe."),
    click.option("--decimal", help="Decimal mark of numbers, . or ,."),
    click.option("--thousands", help="Thousands separator, such as , or ' (empty for none)."),
    click.option("--encoding", help="Encoding of a text file, such as windows-1252 (default: utf-8)."),
    click.option("--missing", multiple=True, metavar="TEXT", help="A text that means a missing value. Repeatable."),
    click.option("--date-format", metavar="FORMAT", help="Format of dates that are not ISO 8601, such as %d.%m.%Y."),
    click.option("--sheet", metavar="NAME", help="The sheet of a workbook (default: the first)."),
    click.option("--skip-rows", type=int, metavar="N", help="Lines before the header."),
)


def with_options(command: Callable[..., None], options: Iterable[Callable[[Any], Any]]) -> Callable[..., None]:
    """The command with these options, in their order."""
    for option in reversed(tuple(options)):
        command = option(command)
    return command


def file_options(command: Callable[..., None]) -> Callable[..., None]:
    """Where a table of a database is, and how a file is written where that is not found by itself: the command's `dialect`."""

    @wraps(command)
    def gathered(*arguments: Any, **options: Any) -> None:
        from covey.table.dialects import Dialect

        said = {name: options.pop(name) for name in Dialect.__dataclass_fields__}
        command(*arguments, dialect=Dialect(**said | {"missing": said["missing"] or None}), **options)

    return with_options(gathered, (*PLACE, *DIALECT))


def table_options(command: Callable[..., None]) -> Callable[..., None]:
    """One TABLE and what `file_options` has: the command's `source` and `dialect`."""

    @wraps(command)
    def gathered(*arguments: Any, table: str, relation: str | None, sql: str | None, **options: Any) -> None:
        command(*arguments, source=source_of(table, relation, sql), **options)

    return click.argument("table")(file_options(gathered))


PLACE = (
    click.option("--table", "relation", metavar="NAME", help="The table of a database: NAME or SCHEMA.NAME."),
    click.option(
        "--query",
        "sql",
        metavar="SQL",
        help="One SELECT on a database. Each row of its result counts as one record.",
    ),
)


def bundle_options(command: Callable[..., None]) -> Callable[..., None]:
    """What every release is told, under the names that orders have."""
    return with_options(
        command,
        (
            click.option("--schema", type=Path, help="The public schema (JSON or YAML). A package has its own."),
            click.option(
                "--rows", type=int, help="Synthetic rows (default: as many as the table has rows, or persons)."
            ),
            click.option("--parquet", is_flag=True, help="Write synthetic.parquet instead of synthetic.csv."),
            click.option(
                "--seed",
                type=int,
                help="A number that makes the draw repeatable, for tests. The bundle is marked as seeded.",
            ),
            click.option(
                "--log",
                type=Path,
                help="Write a confidential log to this file: what was missing, unknown, clipped or ragged.",
            ),
            click.option("--out", type=Path, required=True, help="Folder to write the bundle to."),
            force_option,
            json_option,
        ),
    )


def focus_options(command: Callable[..., None]) -> Callable[..., None]:
    """Which columns matter most."""
    return with_options(command, FOCUS)


neighbours_option = click.option(
    "--neighbours",
    type=click.Choice(["replace-one", "add-or-remove-one"]),
    default="replace-one",
    show_default=True,
    help="Which tables the guarantee compares: one row replaced, with a public number of rows, or one row added or removed, with "
    "a secret number of rows.",
)
person_option = click.option(
    "--person",
    metavar="COLUMN",
    help="The column that identifies the person. All rows of a person are then protected together.",
)
FOCUS = (
    click.option(
        "--columns",
        metavar="COLUMN,COLUMN,…",
        multiple=True,
        callback=lambda _context, _option, named: tuple(part.strip() for one in named for part in one.split(",")),
        help="The columns to keep; may be given several times. Without it all are kept.",
    ),
    click.option(
        "--important",
        metavar="COLUMN[,COLUMN]",
        multiple=True,
        callback=lambda _context, _option, named: tuple(
            tuple(part.strip() for part in one.split(",")) for one in named
        ),
        help="A column, or a pair of columns, that gets more of the budget. Repeatable.",
    ),
    click.option(
        "--target",
        metavar="COLUMN",
        help="A column that models will predict. Pairs and the strongest triples with it get more of the budget.",
    ),
    click.option(
        "--triples",
        type=int,
        help="How many triples of columns to choose with noise and measure, at most (default: 0, or 5 with a target).",
    ),
)
ledger_option = click.option("--ledger", type=Path, help="The ledger file (default: yours, or COVEY_LEDGER).")
force_option = click.option("--force", is_flag=True, help="Replace an existing bundle.")
epsilon_option = click.option("--epsilon", callback=number("epsilon"), help="Privacy budget ε.")
delta_option = click.option(
    "--delta",
    callback=number("delta"),
    default="0",
    show_default=True,
    help="δ, the probability with which ε may fail; 0 is pure ε.",
)


def source_of(table: str, relation: str | None, sql: str | None) -> Any:
    """The file or database that was named. A URL is no path: its slashes count."""
    from covey.table.databases import Database, is_database

    if is_database(table):
        return Database(table, table=relation, query=sql)
    if relation is not None or sql is not None:
        raise ParameterError("--table and --query are for databases, postgresql://… or SQLite files (.db, .sqlite).")
    return Path(table)


def ledger_at(path: Path | None) -> Any:
    """The ledger that was named, or the steward's own."""
    from covey.privacy.ledger import Ledger, default_ledger_path

    return Ledger(path or default_ledger_path())
