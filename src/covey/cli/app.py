"""The local app."""

from __future__ import annotations

from pathlib import Path

import click

from covey.cli.group import example, main, say
from covey.cli.options import json_option, ledger_option
from covey.errors import MissingExtraError


@main.command(epilog=example("covey serve", "covey serve --port 8765 --out releases/ --no-browser"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port on this machine (default: a free one).")
@click.option(
    "--out", "out", type=Path, default=Path("covey-releases"), show_default=True, help="Folder that bundles go to."
)
@click.option(
    "--upload-limit", type=click.IntRange(1), default=1024, show_default=True, help="Largest table, in megabytes."
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@ledger_option
@json_option
def serve(port: int, out: Path, upload_limit: int, no_browser: bool, ledger: Path | None, as_json: bool) -> None:
    """Open the local app in a browser: the same work without a command line. Only this machine can reach it."""
    try:
        from covey.web.app import serve as run
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"the app needs {error.name}: pip install 'covey[web]'") from None

    def tell(address: str) -> None:
        say(
            as_json,
            {"address": address},
            f"covey is at {address}\nIt works on this machine alone. Stop it with Ctrl-C.",
        )

    run(port, ledger, out, upload_limit * 2**20, not no_browser, tell)
