"""The app: its pages behind their guard, and what is said when something is refused or breaks.

Reading a page never changes anything; every change is a form of ours (see security) that ends in a redirect, or in a piece of
the page where htmx asked for one. Refusals are shown where the form was.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from fastapi import FastAPI, Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from covey.errors import CoveyError
from covey.web.pages import ROUTERS
from covey.web.pages.shared import HERE, by_htmx, page, status
from covey.web.security import App, Guard, Secrets
from covey.web.workspace import Workspace

TIDY_SECONDS = 600  # between two looks for tables that nobody works on


def make_app(workspace: Workspace, keys: Secrets, port: int) -> App:
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
    app.add_exception_handler(CoveyError, _refusal)
    app.add_exception_handler(HTTPException, _unknown)
    app.add_exception_handler(Exception, _fault)
    return Guard(cast(App, app), keys, port, workspace.upload_limit)


async def _tidy(workspace: Workspace) -> None:
    """Now and then remove the rows that nobody works on any more."""
    while True:
        await asyncio.sleep(TIDY_SECONDS)
        await run_in_threadpool(workspace.sweep)


async def _refusal(request: Request, error: Exception) -> Response:
    if by_htmx(request):
        answer = page(request, "alert_piece.html", status(error), words=str(error))
        answer.headers["hx-reselect"] = ".alert"  # whatever part of a page was asked for
        return answer
    return page(request, "message.html", status(error), words=str(error))


async def _unknown(request: Request, error: Exception) -> Response:
    code = getattr(error, "status_code", 404)
    return page(request, "message.html", code, words="There is no such page.")


async def _fault(request: Request, error: Exception) -> Response:
    words = "Something went wrong inside covey. The ledger shows whether anything was charged."
    return page(request, "message.html", 500, words=words)
