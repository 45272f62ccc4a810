"""The private folder under the desk: closed to other people, locked while the app lives, removed when it is gone."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from covey.errors import ArgumentError, ParameterError


@contextmanager
def private_file(path: Path) -> Iterator[IO[str]]:
    """A new text file that nobody else can read."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        yield file


def private_folder(home: Path) -> tuple[Path, IO[bytes]]:
    """A fresh folder for this start, and the lock that says it is in use; folders without a holder are removed."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        for lock in home.glob("*.lock"):
            with lock.open("rb") as file:
                if _hold(file):
                    shutil.rmtree(lock.with_suffix(""), ignore_errors=True)
                    lock.unlink()
        folder = home / secrets.token_hex(8)
        mine = os.fdopen(os.open(folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600), "rb")
        if not _hold(mine):
            raise ParameterError("another start of covey is tidying up. Try again.")
        folder.mkdir(mode=0o700)
    except OSError as error:
        wrong = f"the private folder {home} cannot be made: {error.strerror}. Choose "
        raise ArgumentError(wrong, "ledger", ".") from None
    return folder, mine


if sys.platform == "win32":  # pragma: no cover - there a folder left by a crash stays until it is removed by hand

    def _hold(file: IO[bytes]) -> bool:
        return file.writable()
else:
    import fcntl

    def _hold(file: IO[bytes]) -> bool:
        """Take the lock of a folder; False if its app is alive."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def let_go(folder: Path, hold: IO[bytes]) -> None:
    """Give up the lock of a folder."""
    with suppress(OSError):
        folder.with_suffix(".lock").unlink()
    hold.close()
