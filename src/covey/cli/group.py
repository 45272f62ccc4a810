"""The group that all commands belong to: how they answer, and how a refusal becomes one line and an exit code."""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import textwrap
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

try:
    import click
except ImportError:  # pragma: no cover - in an environment of its own: tests/test_pages.py
    sys.exit("covey's command line needs click: pip install 'covey[cli]'.")

from covey.errors import CoveyError, CoveyWarning, UnknownDatasetError


def words_of(error: CoveyError) -> str:
    """A refusal as this command line says it: arguments are options, and advice is a command."""
    if isinstance(error, UnknownDatasetError):
        command = f"covey ledger open {shlex.quote(error.name)} --budget B"
        return error.advising(
            f"For a table about other people open a new one, with a budget of your choice:\n    {command}\n"
        )
    return error.naming(lambda argument: "--" + argument.replace("_", "-"))


class CommandGroup(click.Group):
    """Commands whose covey errors become one line on standard error and an exit code."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; a CoveyError is an answer, not a crash."""
        try:
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


def _version(ctx: click.Context, _: Any, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"covey {version('covey')}")
        ctx.exit()


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
@click.option("--version", is_flag=True, expose_value=False, is_eager=True, callback=_version, help="Show the version.")
def main() -> None:
    """Turn a sensitive table into a synthetic one that you can share."""


def redacted(message: str) -> str:
    """A message without the password of a URL, wherever that was given by mistake."""
    from covey.table.databases import redacted

    return redacted(message)


def say(as_json: bool, facts: dict[str, Any], words: str) -> None:
    """Answer in words, or as one JSON object."""
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


def counted(count: int, thing: str) -> str:
    """A number of things."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


@contextmanager
def advice() -> Iterator[None]:
    """Show covey's warnings, which follow from public numbers, as plain lines."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", CoveyWarning)
        yield
    for message in dict.fromkeys(str(warning.message) for warning in caught):
        click.echo(f"warning: {message}", err=True)
