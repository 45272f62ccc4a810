"""Who may talk to the app: the person who started it, in a browser on this machine, and no other page they have open.

Every start draws three secrets: the token in the printed address, the cookie it is exchanged for, and the token that
stands in every form. A request must name this server as its host (another name that resolves to this machine is an attack
called DNS rebinding), carry the cookie, come from our own pages, and, if it changes anything, name our origin.
"""

from __future__ import annotations

import hmac
import secrets
import shutil
import sys
import traceback
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO
from urllib.parse import parse_qs

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders, UploadFile
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.templating import Jinja2Templates
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from covey.errors import CoveyError
from covey.release.places import private_file

HERE = Path(__file__).parent
templates = Jinja2Templates(HERE / "templates")
templates.env.trim_blocks = templates.env.lstrip_blocks = True

FORM_LIMIT = 4 * 2**20  # bytes of a form without files: a long list of categories fits
TEXT_LIMIT = 2**12  # bytes of a field that is no file
MOST_FIELDS, MOST_FILES = 20, 3  # of a form with files: ours has a table, events and a schema, and six words at most

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-src 'self'; frame-ancestors 'none'; base-uri 'none'"
)
# A bundle's report is shown in an origin of its own: without scripts, without a network, without our cookie.
REPORT_POLICY = (
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; font-src data:; frame-ancestors 'self'; "
    "form-action 'none'; base-uri 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cache-control": "no-store",
}


class Refused(CoveyError):
    """A request that the app does not answer; the status says why."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


@dataclass(frozen=True)
class Secrets:
    """What only this start of the app knows."""

    token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    cookie: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    form: str = field(default_factory=lambda: secrets.token_urlsafe(32))

    def __repr__(self) -> str:
        return "Secrets(…)"


def same(given: str | None, secret: str) -> bool:
    """Compare in a time that does not tell how much of a guess is right."""
    return given is not None and hmac.compare_digest(given.encode(), secret.encode())


class Guard:
    """Stands in front of the app; a request that passes comes from our own pages in the steward's browser."""

    def __init__(self, app: ASGIApp, keys: Secrets, port: int, upload_limit: int) -> None:
        self._app, self._keys, self._upload_limit = app, keys, upload_limit
        self._hosts = frozenset({f"127.0.0.1:{port}", f"localhost:{port}"})
        # Browsers keep one jar for all ports of a host: the name keeps two covey servers apart.
        self._cookie = f"covey-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, pass on, or refuse."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        started = False

        async def dressed(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                headers = MutableHeaders(raw=message["headers"])
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            answer = self._entry(scope) or self._check(scope)
            if answer is not None:
                await answer(scope, receive, dressed)
            else:
                await self._app(scope, self._limited(scope, receive), dressed)
        except Refused as refusal:
            if not started:
                await plain_page(refusal.status, str(refusal))(scope, receive, dressed)
        except Exception as error:  # never a traceback with values: where, and of which kind
            place = traceback.extract_tb(error.__traceback__)[-1]
            print(f"covey: {type(error).__name__} in {place.name}, line {place.lineno}", file=sys.stderr)
            if not started:
                await plain_page(500, "Something went wrong inside covey.")(scope, receive, dressed)

    def _entry(self, scope: Scope) -> Response | None:
        """Exchange the token of the printed address for the cookie."""
        if Headers(scope=scope).get("host") not in self._hosts:
            raise Refused(421, "This address is not the one that covey serves.")
        given = Request(scope).query_params.get("token")
        if scope["method"] != "GET" or scope["path"] != "/" or given is None:
            return None
        if not same(given, self._keys.token):
            raise Refused(403, "This address is from an earlier start. Use the one that covey printed last.")
        # A page that moves on by itself: a redirect that began on a foreign page would not carry a strict cookie.
        page = plain_page(200, "Opening covey …", refresh="/")
        page.set_cookie(self._cookie, self._keys.cookie, httponly=True, samesite="strict", path="/")
        return page

    def _check(self, scope: Scope) -> Response | None:
        headers = Headers(scope=scope)
        if scope["path"].startswith("/static/") and scope["method"] in ("GET", "HEAD"):
            return None
        if not same(Request(scope).cookies.get(self._cookie), self._keys.cookie):
            raise Refused(403, "Open the address that covey printed in the terminal: it holds the key to this app.")
        # Pages on other ports of this machine count as the same site, and the browser sends them the cookie.
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refused(403, "This request comes from another page.")
        if scope["method"] not in ("GET", "HEAD") and headers.get("origin") != f"http://{headers['host']}":
            raise Refused(403, "This request comes from another page.")
        return None

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """Refuse a body that says it is too large before reading it, and one that turns out to be while reading."""
        headers = Headers(scope=scope)
        upload = headers.get("content-type", "").startswith("multipart/form-data")
        limit = FORM_LIMIT + (self._upload_limit if upload else 0)
        words = f"The table is larger than {megabytes(self._upload_limit)}, the limit of this app."
        refusal = Refused(413, words if upload else "This form is too large.")
        declared = headers.get("content-length", "0")
        if not declared.isdecimal() or int(declared) > limit:
            raise refusal
        read = 0

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise refusal
            return message

        return counted


def megabytes(size: int) -> str:
    """A size in words."""
    if size >= 2**30:
        return f"{size / 2**30:.3g} GB"
    return f"{size / 2**20:.0f} MB" if size >= 2**20 else f"{size / 2**10:.0f} KB"


def plain_page(status: int, words: str, refresh: str | None = None) -> HTMLResponse:
    """A page that needs nothing but the style sheet."""
    page = templates.get_template("plain.html").render(words=words, refresh=refresh)
    return HTMLResponse(page, status)


@dataclass(frozen=True)
class Form:
    """A checked form: it came from our own page."""

    values: dict[str, list[str]]

    def get(self, name: str, default: str = "") -> str:
        """The last value under a name, without white space around it."""
        return self.values[name][-1].strip() if self.values.get(name) else default

    def all(self, name: str) -> list[str]:
        """Every value under a name."""
        return self.values.get(name, [])

    def has(self, name: str) -> bool:
        """Whether a box is ticked."""
        return name in self.values


NO_FORM = Form({})  # where nothing was typed yet


async def checked_form(request: Request) -> Form:
    """The fields of a form without files, refused unless they carry the token that stands in our forms."""
    if not request.headers.get("content-type", "").startswith("application/x-www-form-urlencoded"):
        raise Refused(415, "covey reads plain forms here.")
    try:
        text = (await request.body()).decode("utf-8")
        values = parse_qs(text, keep_blank_values=True, max_num_fields=20_000, errors="strict")
    except ValueError:
        raise Refused(400, "This form cannot be read.") from None
    form = Form(values)
    check_form_token(request, form.get("csrf"))
    return form


def check_form_token(request: Request, given: str) -> None:
    """Refuse a form that does not carry this start's token."""
    if not same(given, request.app.state.keys.form):
        raise Refused(403, "This form is from an earlier start of covey. Load the page again.")


async def checked_upload(request: Request, folder: Path) -> tuple[Form, dict[str, tuple[Path, str]]]:
    """The fields of a form with files; and by the field's name where each file lies in the private folder, and what it is called.

    Starlette spools files while they come in: into the private folder, because `serve` has temporary files lie there.
    """
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        raise Refused(415, "covey reads forms with files here.")
    files: dict[str, tuple[Path, str]] = {}
    try:
        async with request.form(max_files=MOST_FILES, max_fields=MOST_FIELDS, max_part_size=TEXT_LIMIT) as parts:
            form = Form({name: [text] for name, text in parts.items() if isinstance(text, str)})
            check_form_token(request, form.get("csrf") if next(iter(parts), "") == "csrf" else "")  # before any file
            for name, part in parts.items():
                if isinstance(part, UploadFile) and part.filename:  # an empty field is a file without a name
                    # The name on disk never comes from the browser.
                    path = folder / f"upload-{secrets.token_hex(4)}"
                    files[name] = path, part.filename.replace("\\", "/").rpartition("/")[2]
                    await run_in_threadpool(_store, part.file, path)
    except (HTTPException, OSError) as error:
        discard(files)
        if isinstance(error, OSError):
            raise Refused(507, f"The upload cannot be stored: {error.strerror}.") from None
        raise Refused(400, "The upload broke off or is not a form.") from None
    return form, files


def _store(file: IO[bytes], path: Path) -> None:
    with private_file(path, "xb") as stored:
        shutil.copyfileobj(file, stored)


def discard(files: Mapping[str, tuple[Path, str]]) -> None:
    """Remove the files of a form, as far as they are still there."""
    for path, _ in files.values():
        path.unlink(missing_ok=True)
