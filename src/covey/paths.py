"""Which places on this machine are read and written: outputs on a local disk, and of what a document names only files beside it.

A schema, a package and a bundle may come from somebody else. What they name must not reach a file of their reader.
"""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path

from covey.errors import ParameterError

# A Path has lost one of the two slashes. Schemes have two letters at least, drives one.
_URL = re.compile(r"\s*([A-Za-z][A-Za-z0-9+.-]+):/")


def scheme_of(place: str | os.PathLike[str]) -> str:
    """The scheme of a URL, such as s3; empty for a path."""
    found = _URL.match(os.fspath(place))
    if found is None:
        return ""
    return found[1]


def local_output(place: str | os.PathLike[str]) -> Path:
    """The path of an output on a local disk.

    A URL is refused: taken for a path it would become a local folder that nobody looks into. So are pipes, devices and links that
    lead nowhere, over which a finished bundle could not be put.
    """
    if scheme := scheme_of(place):
        raise ParameterError(
            f"the output {os.fspath(place)} is a URL ({scheme}:), and covey writes to local disks alone. Choose a local path, "
            "and copy from there what may leave."
        )
    path = Path(place)
    refuse_special(path)
    if os.path.islink(path) and not os.path.exists(path):
        raise ParameterError(
            f"the output {path} is a link that leads nowhere. Choose another place, or remove the link."
        )
    return path


def refuse_special(path: Path) -> None:
    """Refuse a pipe, a socket or a device: whoever opens it may wait without end. What is not there is for others to refuse."""
    if is_special(path):
        raise ParameterError(f"{path} is a pipe or a device. Name a plain file.")


def is_special(path: Path) -> bool:
    """Whether something is there that is neither a file nor a folder."""
    try:
        mode = path.stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def file_beside(folder: Path, name: object, whose: str) -> Path:
    """The file of this name in a document's folder; `whose` says what names it."""
    if not isinstance(name, str) or Path(name).name != name:
        raise ParameterError(f"{whose} names {name!r}. A schema may only name a file that lies beside it.")
    return file_below(folder, name, whose)


def file_below(folder: Path, name: str, whose: str) -> Path:
    """The file that a document names in its own folder or in one below it, or a refusal of anything else on this machine."""
    path = Path(name)
    if scheme_of(name) or path.is_absolute() or ".." in path.parts or "\0" in name:
        raise ParameterError(f"{whose} names {name!r}. Name a file that lies beside it, or in a folder below.")
    place = folder
    for part in path.parts:
        place = place / part
        if place.is_symlink():
            raise ParameterError(f"{whose} names {name!r}, and {part!r} is a link. Put the file itself there.")
    if is_special(place):
        raise ParameterError(f"{whose} names {name!r}, which is a pipe or a device. Put a plain file there.")
    return place


def same_file(one: Path, other: Path) -> bool:
    """Whether two names stand for one file or folder that is there, by whatever links."""
    return os.path.exists(one) and os.path.exists(other) and os.path.samefile(one, other)
