"""The group that all commands belong to: the options they share, how they answer, and how a refusal becomes one line."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import wraps
from pathlib import Path
from typing import Any

try:
    import click
except ImportError:  # pragma: no cover - in an environment of its own: tests/test_pages.py
    sys.exit("covey's command line needs click: pip install 'covey[cli]'.")

from covey.errors import CoveyError, CoveyWarning, ParameterError, UnknownDatasetError

Command = Callable[..., None]
STEPS = "demo serve init relations confirm check plan ledger release resume verify evaluate ask sample tables cite anonymize"


def words_of(error: CoveyError) -> str:
    """A refusal as this command line says it: arguments are options, and advice is a command."""
    if isinstance(error, UnknownDatasetError):
        command = f"covey ledger open {shlex.quote(error.name)} --budget B"
        return error.advising(
            f"For a table about other people open a new one, with a budget of your choice:\n    {command}\n"
        )
    return error.naming(_option)


def _option(argument: str) -> str:
    """An argument as an option; what has a space in its name stands in a file."""
    own = {"m": "--rows", "epsilon_budget": "--budget"}
    return argument if " " in argument else own.get(argument, "--" + argument.replace("_", "-"))


class CommandGroup(click.Group):
    """Commands whose covey errors become one line on standard error and an exit code."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Commands in the order in which a table meets them."""
        return sorted(self.commands, key=STEPS.split().index)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a CoveyError is an answer, not a crash."""
        try:
            with advice():
                return super().invoke(ctx)
        except CoveyError as error:
            click.echo(f"covey: {redacted(words_of(error))}", err=True)
            ctx.exit(error.exit_code)
        except click.UsageError as error:
            raise click.UsageError(redacted(error.format_message()) + _way_out(error), error.ctx) from None
        except OSError as error:  # a full disk, say; nothing partial is left behind
            place = f"{error.filename}: " if error.filename else ""
            click.echo(f"covey: {redacted(f'{place}{error.strerror or error}')}", err=True)
            ctx.exit(1)


def _way_out(error: click.UsageError) -> str:
    """What was probably meant by a file too many."""
    options = [name for parameter in error.ctx.command.params for name in parameter.opts] if error.ctx else []
    extra = "unexpected extra argument" in error.format_message()
    return " A schema is named with --schema." if extra and "--schema" in options else ""


def example(*lines: str) -> str:
    """The end of a command's help."""
    return "\b\nExample:\n" + "\n".join("  " + line for line in lines)


# Nobody has described the columns yet: what they hold is learned. `covey init` is for whoever describes them.
FIRST_RELEASE = example(
    "covey ledger open NAME --budget 3",
    "covey release TABLE --learn --epsilon 1 --delta 1e-9 --dataset NAME --out release",
    "covey verify release",
)


@click.group(cls=CommandGroup, epilog=FIRST_RELEASE, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="covey", message="covey %(version)s", help="Show the version.")
def main() -> None:
    """Turn a sensitive table into a synthetic one that you can share."""


def command(*examples: str) -> Callable[[Command], click.Command]:
    """A command of covey, with examples at the end of its help."""
    return main.command(epilog=example(*examples))


def redacted(message: str) -> str:
    """A message without the password of a URL, wherever that was given by mistake."""
    from covey.tables.sources.databases import redacted

    return redacted(message)


def say(as_json: bool, facts: Any, words: str) -> None:
    """Answer in words, or as JSON."""
    click.echo(json.dumps(facts, ensure_ascii=False) if as_json else words)


def grid(head: Sequence[str], rows: Iterable[Sequence[str]], indent: int = 0) -> list[str]:
    """Lines of a table; on a screen its last column is broken where the screen ends."""
    listed = [list(head), *map(list, rows)]
    widths = [max(len(row[j]) for row in listed) for j in range(len(head) - 1)]
    before = indent + sum(widths) + 2 * len(widths)
    room = max(24, shutil.get_terminal_size().columns - before) if sys.stdout.isatty() else None
    lines = []
    for row in listed:
        first, *more = [row[-1]] if room is None else textwrap.wrap(row[-1], room) or [""]
        cells = [*(cell.ljust(width) for cell, width in zip(row, widths, strict=False)), first]
        lines += [(" " * indent + "  ".join(cells)).rstrip(), *(" " * before + line for line in more)]
    return lines


@contextmanager
def advice() -> Iterator[None]:
    """Show each warning once as a plain line: covey's own follow from public numbers, and none shows where it came from."""
    told = set[str]()

    def show(message: Warning | str, *_: Any, **__: Any) -> None:
        words = redacted(str(message))
        if words not in told:
            told.add(words)
            click.echo(f"warning: {words}", err=True)

    with warnings.catch_warnings():
        warnings.simplefilter("always", CoveyWarning)
        warnings.showwarning = show
        yield


# The options that several commands share.


def number(_: Any, option: click.Parameter, value: str | None) -> Fraction | None:
    """An option as the fraction that was written: 0.1 is one tenth."""
    from covey.engine.fractions import written

    if value is None:
        return None
    point = value.replace(",", ".")
    advice = f" Write {point}." if re.fullmatch(r"[+-]?\d+,\d+", value) else ""
    return written(value, (option.name or "").replace("_", "-"), advice)


def groups(_: Any, __: Any, named: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """An option that names columns, separated by commas, and may be given several times."""
    return tuple(tuple(part.strip() for part in one.split(",")) for one in named)


COMMON = {
    "json": click.option("--json", "as_json", is_flag=True, help="Answer as one JSON object."),
    "force": click.option("--force", is_flag=True, help="Replace what is there already."),
    "ledger": click.option("--ledger", type=Path, help="The ledger file (default: yours, or COVEY_LEDGER)."),
    "folder": click.argument("folder", type=Path),
    # Where a table lies, and how its file is written where that is not found by itself.
    "table": click.option("--table", "relation", metavar="NAME", help="The table of a database: NAME or SCHEMA.NAME."),
    "query": click.option(
        "--query", "sql", metavar="SQL", help="One SELECT on a database. Each row of its result counts as one record."
    ),
    "separator": click.option("--separator", help="Separator between cells: comma, semicolon, tab or pipe."),
    "decimal": click.option("--decimal", help="Decimal mark of numbers, . or ,."),
    "thousands": click.option("--thousands", help="Thousands separator, such as , or ' (empty for none)."),
    "encoding": click.option("--encoding", help="Encoding of a text file, such as windows-1252 (default: utf-8)."),
    "missing": click.option(
        "--missing", multiple=True, metavar="TEXT", help="A text that means a missing value. Repeatable."
    ),
    "date_format": click.option(
        "--date-format", metavar="FORMAT", help="Format of dates that are not ISO 8601, such as %d.%m.%Y."
    ),
    "sheet": click.option("--sheet", metavar="NAME", help="The sheet of a workbook (default: the first)."),
    "skip_rows": click.option("--skip-rows", type=int, metavar="N", help="Lines before the header."),
    # What every release is told, under the names that orders have.
    "schema": click.option("--schema", type=Path, help="The public schema (JSON or YAML). A package has its own."),
    "rows": click.option(
        "--rows", type=int, help="Synthetic rows (default: as many as the table has rows, or persons)."
    ),
    "parquet": click.option("--parquet", is_flag=True, help="Write synthetic.parquet instead of synthetic.csv."),
    "seed": click.option(
        "--seed", type=int, help="A number that makes the draw repeatable, for tests. The bundle is marked as seeded."
    ),
    "log": click.option(
        "--log", type=Path, help="Write a confidential log to this file: what was missing, unknown, clipped or ragged."
    ),
    "out": click.option("--out", type=Path, required=True, help="Folder to write the bundle to."),
    # What is promised, to whom, and which columns matter most.
    "epsilon": click.option("--epsilon", metavar="NUMBER", callback=number, help="Privacy budget ε."),
    "delta": click.option(
        "--delta",
        metavar="NUMBER",
        callback=number,
        default="0",
        show_default=True,
        help="δ, the probability with which ε may fail; 0 is pure ε.",
    ),
    "neighbours": click.option(
        "--neighbours",
        type=click.Choice(["replace-one", "add-or-remove-one"]),
        default="replace-one",
        show_default=True,
        help="Which tables the guarantee compares: one row replaced, with a public number of rows, or one row added or "
        "removed, with a secret number of rows.",
    ),
    "person": click.option(
        "--person",
        metavar="COLUMN",
        help="The column that identifies the person. All rows of a person are then protected together.",
    ),
    "columns": click.option(
        "--columns",
        metavar="COLUMN,COLUMN,…",
        multiple=True,
        callback=lambda *given: tuple(name for group in groups(*given) for name in group),
        help="The columns to keep; may be given several times. Without it all are kept.",
    ),
    "important": click.option(
        "--important",
        metavar="COLUMN[,COLUMN]",
        multiple=True,
        callback=groups,
        help="A column, or a pair of columns, that gets more of the budget. Repeatable.",
    ),
    "target": click.option(
        "--target",
        metavar="COLUMN",
        help="A column that models will predict. Pairs and the strongest triples with it get more of the budget.",
    ),
    "triples": click.option(
        "--triples",
        type=int,
        help="How many triples of columns to choose with noise and measure (default: 0, or 5 with a target in one table).",
    ),
}
FOCUS = ("columns", "important", "target", "triples")
BUNDLE = ("schema", "rows", "parquet", "seed", "log", "out", "force", "json")
DIALECT = ("separator", "decimal", "thousands", "encoding", "missing", "date_format", "sheet", "skip_rows")


def options(*names: str) -> Callable[[Command], Command]:
    """The common options of these names, in this order."""

    def added(command: Command) -> Command:
        for name in reversed(names):
            command = COMMON[name](command)
        return command

    return added


def file_options(command: Command) -> Command:
    """Where a table of a database is, and how a file is written: the command's `dialect`."""

    @wraps(command)
    def gathered(*arguments: Any, **told: Any) -> None:
        from covey.tables.dialects import Dialect

        said = {name: told.pop(name) for name in DIALECT}
        command(*arguments, dialect=Dialect(**said | {"missing": said["missing"] or None}), **told)

    return options("table", "query", *DIALECT)(gathered)


def table_options(command: Command) -> Command:
    """One TABLE and what `file_options` has: the command's `source` and `dialect`."""

    @wraps(command)
    def gathered(*arguments: Any, table: str, relation: str | None, sql: str | None, **told: Any) -> None:
        command(*arguments, source=source_of(table, relation, sql), **told)

    return click.argument("table")(file_options(gathered))


def source_of(table: str, relation: str | None, sql: str | None) -> Any:
    """The file or database that was named. A URL is no path: its slashes count."""
    from covey.tables.sources.databases import Database, is_database

    if is_database(table):
        return Database(table, table=relation, query=sql)
    if relation is not None or sql is not None:
        raise ParameterError("--table and --query are for databases, postgresql://… or SQLite files (.db, .sqlite).")
    return Path(table)


def ledger_at(path: Path | None) -> Any:
    """The ledger that was named, or the steward's own."""
    from covey.ledger import Ledger, default_ledger_path

    return Ledger(path or default_ledger_path())
