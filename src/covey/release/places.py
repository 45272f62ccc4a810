"""Where a release may be written, and where nothing may: decided from paths alone, before any data is opened.

One writer for one output: it has a hidden folder beside it, in which the bundle is made ready.

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
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from covey.errors import ArgumentError, ParameterError, briefly, whole_number
from covey.paths import local_output, same_file
from covey.tables.sources.databases import Database

SUMS = "SHA256SUMS"  # checksums of the data: a folder that has it is a bundle, and its digest is the bundle's name
REPORT = "report.html"
# Made from the data, and again if need be.
WORDS = ("README.md", REPORT, "croissant.json", "dcat.json", "deployment.yaml")
WORDS_SUMS = "SHA256SUMS.report"  # checksums of these: a bundle without it is not finished
_OURS = re.compile(r"\.covey-[0-9a-f]{16}")
_TRIES, _PAUSE = 25, 0.02  # another writer's tidying takes a moment


def check_target(folder: Path, force: bool) -> None:
    """Refuse an output that exists, unless forced, or cannot be made; never replace what is not a bundle."""
    local_output(folder)
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            folder.stat()  # where the system cannot look, exists() says no from Python 3.14 on
    except OSError as error:
        raise ParameterError(f"the output {folder} cannot be made: {error.strerror}. Choose another folder.") from None
    if not folder.exists():
        parent = next(p for p in folder.absolute().parents if p.exists())
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise ParameterError(f"the output {folder} cannot be made in {parent}. Choose another folder.")
        return
    if not force:
        raise ArgumentError(f"the output {folder} exists. Choose another folder, or give ", "force", " to replace it.")
    named = listed(folder) if (folder / SUMS).is_file() else {}  # a bundle holds just the files that it lists
    whole = "privacy.json" in named and counting(folder, named) <= named.keys()
    if not folder.is_dir() or (any(folder.iterdir()) and not whole):
        raise ParameterError(f"the output {folder} is not a covey bundle and will not be replaced, even by force.")


def listed(folder: Path) -> dict[str, str]:
    """The checksums that a bundle lists, by file name."""
    lists = [folder / name for name in (SUMS, WORDS_SUMS) if (folder / name).is_file()]
    lines = [line for path in lists for line in path.read_text(encoding="utf-8").splitlines()]
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def counting(folder: Path, named: Mapping[str, str]) -> set[str]:
    """The files of a bundle that its lists must name. Words count once the report is listed: until then they are being made."""
    found = {path.name for path in folder.iterdir()} - {SUMS, WORDS_SUMS}
    return found if REPORT in named else found - (set(WORDS) - named.keys())


def is_bundle(folder: Path) -> bool:
    """Whether a folder is a bundle, or lies inside one: confidential things must not be written there."""
    return any((parent / SUMS).exists() for parent in [folder, *folder.resolve().parents])


def refuse_in_bundle(path: Path) -> None:
    """Whatever was computed on true data is not written where it would be handed out."""
    if is_bundle(path.parent) or is_bundle(path.resolve().parent):
        raise ParameterError(f"{path} is inside a bundle, where no confidential figures may be. Choose another place.")


def private_file(path: Path, mode: str = "x") -> IO[Any]:
    """A file that nobody else can read: a new one, or with mode "w" in place of one of ours."""
    local_output(path)
    encoding = None if "b" in mode else "utf-8"
    return open(path, mode, encoding=encoding, opener=lambda name, flags: os.open(name, flags, 0o600))


def check_disk(m: Any, columns: int, folder: Path) -> int:
    """How many rows to write, or a refusal: a cell takes a byte or more, and they must fit the disk."""
    rows = whole_number(m, "m", 1, "It counts the synthetic rows.")
    there = next(p for p in folder.absolute().parents if p.exists())
    free = shutil.disk_usage(there).free
    if rows * columns > free:
        raise ParameterError(
            f"{briefly(rows)} rows need {min(rows * columns, 2**200) / 2**30:.3g} GiB or more, and the disk has "
            f"{free / 2**30:.3g} GiB left. "
            "Write fewer rows, or choose another disk."
        )
    return rows


def check_output(path: Path) -> None:
    """Refuse, before any data is opened, a file that cannot be written: its folder must exist."""
    local_output(path)
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            path.stat()  # as above
    except OSError as error:  # a name too long for the system, for example
        raise ParameterError(f"{path} cannot be written: {error.strerror}. Choose another name.") from None
    if path.is_dir():
        raise ParameterError(f"{path} is a folder. Name a file in it.")
    if not path.parent.is_dir():
        raise ParameterError(f"{path} cannot be written: there is no folder {path.parent}. Make it, or choose another.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ParameterError(f"{path} cannot be written: permission denied. Choose another place.")


def refuse_same(source: Path | Database, out: Path) -> None:
    """The input is never overwritten, nor the folder that holds it."""
    table = source if isinstance(source, Path) else source.path
    if table is None:
        return
    if same_file(table, out) or out.resolve() in (table.resolve(), *table.resolve().parents):
        raise ParameterError(f"{out} is the input table, or holds it. Choose another output.")


def check_new_file(path: Path, source: Path | Database, force: bool) -> None:
    """Refuse, before any data is opened, a file that cannot be written, is the table itself, or exists and is not forced."""
    check_output(path)
    refuse_same(source, path)
    if path.exists() and not force:
        raise ArgumentError(f"{path} exists. Choose another name, or give ", "force", ".")


# One writer for one output.

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
            found = place.lstat()  # a real folder of this user that nobody else can enter, as writers make them
            ours = _OURS.fullmatch(place.name) and found.st_uid == os.geteuid() and stat.S_ISDIR(found.st_mode)
            if not ours or stat.S_IMODE(found.st_mode) != 0o700:
                continue
            handle = _hold(place)
            try:
                _put_back(place)
                shutil.rmtree(place)
            finally:
                os.close(handle)


def _put_back(place: Path) -> None:
    """An old bundle that nothing has replaced belongs where it was."""
    for old in (place / "old").glob("*"):
        if not os.path.lexists(place.parent / old.name):
            os.replace(old, place.parent / old.name)
