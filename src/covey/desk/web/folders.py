"""The private folder of the workspace: closed to other people, locked while the app lives, free of rows when it is gone."""

from __future__ import annotations

import os
import secrets
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import IO

from covey.errors import ArgumentError, ParameterError
from covey.release.places import private_file

DRAFT = "draft.json"  # what a steward has said about a table: it outlives its rows


def private_folder(home: Path) -> tuple[Path, IO[bytes]]:
    """A fresh folder for this start, and the lock that says it is in use; what starts without a holder left is tidied up."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        home.chmod(0o700)
        folder = home / secrets.token_hex(8)
        mine = private_file(folder.with_suffix(".lock"), "xb")
        if not hold(mine):
            raise ParameterError("another start of covey is tidying up. Try again.")
        folder.mkdir(mode=0o700)
        for lock in home.glob("*.lock"):
            with lock.open("rb") as file:
                if hold(file):
                    _take_over(lock.with_suffix(""), folder)
                    if not lock.with_suffix("").exists():
                        lock.unlink()
    except OSError as error:
        wrong = f"the private folder {home} cannot be made: {error.strerror}. Choose "
        raise ArgumentError(wrong, "ledger", ".") from None
    return folder, mine


def _take_over(left: Path, folder: Path) -> None:
    """Move the drafts of an earlier start here and remove its rows. A release that was paid for keeps those that it reads."""
    for work in left.iterdir() if left.is_dir() else ():
        if (draft := work / DRAFT).is_file():
            (folder / work.name).mkdir(mode=0o700)
            os.replace(draft, folder / work.name / DRAFT)
        if not any(map(_is_held, work.glob("*.gate"))):
            _remove(work)
    with suppress(OSError):
        left.rmdir()


def _is_held(place: Path) -> bool:
    with place.open("rb") as file:
        return not hold(file)


def _remove(place: Path) -> None:
    if place.is_dir():
        shutil.rmtree(place, ignore_errors=True)
    else:
        place.unlink(missing_ok=True)


if sys.platform == "win32":  # pragma: no cover - there a folder left by a crash stays until it is removed by hand

    def hold(file: IO[bytes]) -> bool:
        """There are no such locks."""
        return file.writable()
else:
    import fcntl

    def hold(file: IO[bytes]) -> bool:
        """Take the lock of a folder; False if its app is alive."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            return False
        return True


def close_folder(folder: Path, held: IO[bytes]) -> None:
    """Remove every row and give up the lock; drafts stay, and the lock's file with them, for the next start to find."""
    for place in [*folder.glob("*"), *folder.glob("*/*")]:
        if place.name != DRAFT and not (place / DRAFT).exists():
            _remove(place)
    with suppress(OSError):
        folder.rmdir()
    if not folder.exists():
        folder.with_suffix(".lock").unlink(missing_ok=True)
    held.close()
