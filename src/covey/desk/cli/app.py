"""The local app, and an example to look at."""

from __future__ import annotations

from pathlib import Path

import click

from covey.desk.cli.group import command, options, say
from covey.errors import MissingExtraError


@command("covey serve", "covey serve --port 8765 --out releases/ --no-browser")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on this machine (default: a free one).")
@click.option(
    "--out", "out", type=Path, default=Path("covey-releases"), show_default=True, help="Folder that bundles go to."
)
@click.option(
    "--upload-limit", type=click.IntRange(1), default=1024, show_default=True, help="Largest table, in megabytes."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@options("ledger", "json")
def serve(port: int, out: Path, upload_limit: int, no_browser: bool, ledger: Path | None, as_json: bool) -> None:
    """Open the local app in a browser. It does the same work without a command line. Only this machine can reach it."""
    try:
        from covey.desk.web.app import serve as run
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"the app needs {error.name}: pip install 'covey[web]'") from None

    def tell(address: str) -> None:
        words = f"covey is at {address}\nIt works on this machine alone. Stop it with Ctrl-C."
        say(as_json, {"address": address}, words)

    run(port, ledger, out, upload_limit * 2**20, not no_browser, tell)


@command("covey demo --out demo/", "covey demo --table visits.csv")
@click.option("--out", "out", type=Path, default=Path("covey-demo"), show_default=True)
@click.option("--rows", type=int, default=20_000, show_default=True)
@click.option("--table", type=Path, help="Only write an example table with names, numbers, dates and missing values.")
@options("force", "json")
def demo(out: Path, rows: int, table: Path | None, force: bool, as_json: bool) -> None:
    """Run all steps on a table of fictitious patients. They are draft, release, verify, evaluate."""
    from covey.desk.demo import demonstrate, write_example

    said: list[str] = []
    tell = said.append if as_json else click.echo
    if table is not None:
        write_example(table, rows, force, tell)
    else:
        demonstrate(out, rows, force, tell)
    if as_json:
        say(as_json, {"out": str(out), "words": "".join(f"{line}\n" for line in said)}, "")
