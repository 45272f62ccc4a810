"""One writer for one output: a hidden folder beside it, in which the bundle is made ready.

    .covey-<key>/new     the bundle in the making
    .covey-<key>/old     under its name, the bundle that is being replaced

The key follows from the output's name, so that two releases to the same output meet here, before either is charged. The
writer holds a lock on the folder itself. The system lets go of it when the writer dies, however that happens: a folder
of ours that can be locked is abandoned, and the next writer beside it tidies it away. A writer that was killed between
taking an old bundle away and putting the new one in its place has the old one put back.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path

from covey.errors import ParameterError

_OURS = re.compile(r"\.covey-[0-9a-f]{16}")
_TRIES, _PAUSE = 25, 0.02  # another writer's tidying takes a moment

if sys.platform == "win32":  # pragma: no cover - there a folder left by a crash stays until it is removed by hand

    def _hold(place: Path) -> int:
        raise OSError("no locks on folders")
else:
    import fcntl

    def _hold(place: Path) -> int:
        """Lock a folder, or raise: BlockingIOError if it has a holder, FileNotFoundError if it went meanwhile."""
        handle = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if not os.path.samestat(os.fstat(handle), os.stat(place, follow_symlinks=False)):
                raise FileNotFoundError(place)
        except BaseException:
            os.close(handle)
            raise
        return handle


@contextmanager
def claimed(target: Path) -> Iterator[Path]:
    """The folder to make the target ready in, ours until the block ends; refused while another release has it."""
    place = target.parent / f".covey-{sha256(os.fsencode(target.name)).hexdigest()[:16]}"
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        tidy(target.parent)
        handle = _claim(place, target)
    except OSError as error:
        raise ParameterError(f"the output {target} cannot be made: {error.strerror}. Choose another folder.") from None
    try:
        yield place
    finally:
        _put_back(place)
        shutil.rmtree(place, ignore_errors=True)
        if handle is not None:
            os.close(handle)


def _claim(place: Path, target: Path) -> int | None:
    """Make and lock the folder; None where folders cannot be locked, and making it is the whole claim."""
    for _ in range(_TRIES):
        try:
            place.mkdir(mode=0o700)
        except FileExistsError:
            tidy(target.parent)
            if place.exists():
                time.sleep(_PAUSE)
            continue
        try:
            return _hold(place)
        except (BlockingIOError, FileNotFoundError):  # taken for abandoned before it was locked
            time.sleep(_PAUSE)
        except OSError:
            return None
    raise ParameterError(
        f"another release is writing to {target}. Choose another folder, or wait. If none is running, remove {place}."
    )


def replace(place: Path, target: Path) -> None:
    """Put the new bundle of a claim in the place of the old one, which goes back if that fails."""
    (place / "old").mkdir()
    os.replace(target, place / "old" / target.name)
    os.replace(place / "new", target)


def tidy(parent: Path) -> None:
    """Remove folders of ours whose writers are dead. What cannot be tidied does not stop a release."""
    for place in parent.glob(".covey-*"):
        with suppress(OSError):
            if not _OURS.fullmatch(place.name) or not _private(place.lstat()):
                continue
            handle = _hold(place)
            try:
                _put_back(place)
                shutil.rmtree(place)
            finally:
                os.close(handle)


def _private(found: os.stat_result) -> bool:
    """Whether this is a real folder of this user that nobody else can enter, as writers make them."""
    return stat.S_ISDIR(found.st_mode) and stat.S_IMODE(found.st_mode) == 0o700 and found.st_uid == os.geteuid()


def _put_back(place: Path) -> None:
    """An old bundle that nothing has replaced belongs where it was."""
    for old in (place / "old").glob("*"):
        if not os.path.lexists(place.parent / old.name):
            os.replace(old, place.parent / old.name)
