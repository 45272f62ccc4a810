"""The app: served on this machine alone, its pages behind their guard, and what is said when something is refused or breaks.

Reading a page never changes anything; every change is a form of ours (see security) that ends in a redirect, or in a piece of
the page where htmx asked for one. Refusals are shown where the form was.
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import tempfile
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from covey.desk.web.pages import ROUTERS
from covey.desk.web.pages.shared import by_htmx, page
from covey.desk.web.security import HERE, Guard, Refused, Secrets, plain_page
from covey.desk.web.workspace import Workspace
from covey.errors import ArgumentError, CoveyError
from covey.ledger import Ledger, default_ledger_path
from covey.paths import local_output
from covey.release.places import private_file

TIDY_SECONDS = 600  # between two looks for tables that nobody works on
ENDINGS = (signal.SIGINT, signal.SIGTERM)  # Ctrl+C, and what a supervisor sends


def make_app(workspace: Workspace, keys: Secrets, port: int) -> ASGIApp:
    """The app behind its guard."""

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        tidying = asyncio.create_task(_tidy(workspace))
        yield
        tidying.cancel()
        await run_in_threadpool(workspace.close)

    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, lifespan=life)
    app.state.workspace, app.state.keys = workspace, keys
    app.mount("/static", StaticFiles(directory=HERE / "static"))
    for router in ROUTERS:
        app.include_router(router)
    for kind in (CoveyError, HTTPException, Exception):
        app.add_exception_handler(kind, _refusal)
    return Guard(app, keys, port, workspace.upload_limit)


async def _tidy(workspace: Workspace) -> None:
    """Now and then remove the rows that nobody works on any more."""
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        await run_in_threadpool(workspace.sweep)


async def _refusal(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException):
        error = Refused(error.status_code, "There is no such page.")
    elif not isinstance(error, CoveyError):
        error = Refused(500, "Something went wrong inside covey. The ledger shows whether anything was charged.")
    answer = page(request, "alert_piece.html" if by_htmx(request) else "message.html", error)
    answer.headers["hx-reselect"] = ".alert"  # whatever part of a page was asked for
    return answer


def serve(
    port: int, ledger: Path | None, out: Path, upload_limit: int, browser: bool, tell: Callable[[str], None]
) -> None:
    """Serve until interrupted. Only this machine can connect, and only with the address that is told."""
    if local_output(out).exists() and not out.is_dir():
        raise ArgumentError(f"{out} is a file. Name a folder for bundles with ", "out", ".")
    book = Ledger(ledger or default_ledger_path())
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
    workspace = Workspace(book, out.absolute(), upload_limit)
    try:
        tempfile.tempdir = str(workspace.folder)  # a table is spooled into the private folder while it comes in
        keys, port = Secrets(), listener.getsockname()[1]
        address = f"http://127.0.0.1:{port}/?token={keys.token}"
        tell(address)
        if browser and (sys.platform in ("win32", "darwin") or {"DISPLAY", "WAYLAND_DISPLAY"} & os.environ.keys()):
            # By way of a file: the address would be seen by everyone who lists processes.
            door = workspace.folder / "open.html"
            with private_file(door) as file:
                file.write(bytes(plain_page(200, "Opening covey …", refresh=address).body).decode())
            webbrowser.open(door.as_uri())
        config = uvicorn.Config(
            make_app(workspace, keys, port),
            log_level="error",
            access_log=False,  # the address holds the token
            server_header=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=3,
        )
        uvicorn.Server(config).run(sockets=[listener])
    finally:  # at a second Ctrl+C uvicorn skips its own cleaning up, and no row may stay behind
        workspace.close()


def _end(*_: object) -> None:
    """The first signal ends the app, at whatever moment (uvicorn raises it once more when it is done); more change nothing."""
    for ending in ENDINGS:
        signal.signal(ending, signal.SIG_IGN)
    sys.exit(0)
