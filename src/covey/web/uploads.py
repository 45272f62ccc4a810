"""Files from a browser, streamed straight into the private folder: nothing is spooled anywhere else."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request

from covey.web.security import Refused, check_form_token

TEXT_LIMIT = 2**12  # bytes of a field that is no file
MOST_PARTS = 20  # of a form with files; ours has six


class Upload:
    """The parts of one form with files. The form's token must come before the first file."""

    def __init__(self, request: Request, folder: Path) -> None:
        self._request, self._folder = request, folder
        self.fields: dict[str, str] = {}
        self.files: dict[str, tuple[Path, str]] = {}  # where it lies, and the name it came under
        self._trusted, self._parts = False, 0
        self._header, self._headers = b"", {b"": b""}
        self._name, self._text = "", bytearray()
        self._file: IO[bytes] | None = None

    async def receive(self) -> None:
        """Read the whole form; what was written of a form that is refused is removed."""
        kind, options = parse_options_header(self._request.headers.get("content-type"))
        if kind != b"multipart/form-data" or b"boundary" not in options:
            raise Refused(415, "covey reads forms with files here.")
        callbacks: Any = {
            "on_part_begin": self._begin,
            "on_header_field": self._header_name,
            "on_header_value": self._header_value,
            "on_header_end": self._header_end,
            "on_headers_finished": self._begin_body,
            "on_part_data": self._data,
            "on_part_end": self._end,
        }
        parser = MultipartParser(options[b"boundary"], callbacks)
        try:
            async for chunk in self._request.stream():
                parser.write(chunk)
            parser.finalize()
            if not self._trusted:
                check_form_token(self._request, "")
        except BaseException as error:
            self.discard()
            if isinstance(error, MultipartParseError):
                raise Refused(400, "The upload broke off or is not a form.") from None
            if isinstance(error, OSError):
                raise Refused(507, f"The upload cannot be stored: {error.strerror}.") from None
            raise

    def discard(self) -> None:
        """Remove every file of this form."""
        if self._file is not None:
            self._file.close()
            self._file = None
        for path, _ in self.files.values():
            with suppress(FileNotFoundError):
                path.unlink()

    def _begin(self) -> None:
        self._headers, self._header, self._text = {b"": b""}, b"", bytearray()
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise Refused(400, "This form has too many parts.")

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end].lower()

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        value = self._headers.get(self._header, b"") + data[start:end]
        if len(value) > TEXT_LIMIT or len(self._header) > TEXT_LIMIT or len(self._headers) > MOST_PARTS:
            raise Refused(400, "This form has too long a head.")
        self._headers[self._header] = value

    def _header_end(self) -> None:
        self._header = b""

    def _begin_body(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition"))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        if b"filename" not in options:
            return
        if not self._trusted:
            check_form_token(self._request, "")
        shown = options[b"filename"].decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
        if self._name in self.files:
            raise Refused(400, "A form holds one file under each name.")
        # The name on disk never comes from the browser.
        path = self._folder / f"upload-{secrets.token_hex(4)}"
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        self._file = os.fdopen(handle, "wb")
        self.files[self._name] = (path, shown)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._file is not None:
            self._file.write(data[start:end])
            return
        self._text += data[start:end]
        if len(self._text) > TEXT_LIMIT:
            raise Refused(413, "A field of this form is too long.")

    def _end(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
            return
        self.fields[self._name] = self._text.decode("utf-8", "replace")
        if self._name == "csrf":
            check_form_token(self._request, self.fields["csrf"])
            self._trusted = True
