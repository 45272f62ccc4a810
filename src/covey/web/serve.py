"""Start the app on this machine, print its address, and clean up at the end."""

from __future__ import annotations

import os
import signal
import socket
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path

import uvicorn

from covey.errors import ArgumentError
from covey.privacy.ledger import Ledger, default_ledger_path
from covey.web.app import make_app
from covey.web.folders import private_file
from covey.web.security import Secrets, plain_page
from covey.web.workspace import Workspace

ENDINGS = (signal.SIGINT, signal.SIGTERM)  # Ctrl+C, and what a supervisor sends


def serve(
    port: int, ledger: Path | None, out: Path, upload_limit: int, browser: bool, tell: Callable[[str], None]
) -> None:
    """Serve until interrupted. Only this machine can connect, and only with the address that is told."""
    # TCP by name: only then does asyncio switch off Nagle's waiting, which costs 40 ms an answer.
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind(("127.0.0.1", port))
    except OSError as error:
        listener.close()
        raise ArgumentError(
            f"port {port} cannot be used: {error.strerror}. Choose another with ", "port", "."
        ) from None
    listener.listen(128)  # before the address is told, so that nobody comes too early
    for ending in ENDINGS:
        signal.signal(ending, _end)
    workspace = Workspace(Ledger(ledger or default_ledger_path()), out.absolute(), upload_limit)
    try:
        _run(workspace, listener, browser, tell)
    finally:  # at a second Ctrl+C uvicorn skips its own cleaning up, and no row may stay behind
        workspace.close()


def _end(*_: object) -> None:
    """The first signal ends the app, at whatever moment (uvicorn raises it once more when it is done); more change nothing."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    sys.exit(0)


def _run(workspace: Workspace, listener: socket.socket, browser: bool, tell: Callable[[str], None]) -> None:
    """Tell the address, and serve."""
    keys, port = Secrets(), listener.getsockname()[1]
    app = make_app(workspace, keys, port)
    address = f"http://127.0.0.1:{port}/?token={keys.token}"
    tell(address)
    if browser and (sys.platform in ("win32", "darwin") or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
        # By way of a file: the address would be seen by everyone who lists processes.
        door = workspace.folder / "open.html"
        with private_file(door) as file:
            file.write(bytes(plain_page(200, "Opening covey …", refresh=address).body).decode())
        webbrowser.open(door.as_uri())
    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,  # the address holds the token
        server_header=False,
        timeout_keep_alive=75,
        timeout_graceful_shutdown=3,
    )
    uvicorn.Server(config).run(sockets=[listener])
