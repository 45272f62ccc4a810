"""Where a release may be written, and where nothing may: decided from paths alone, before any data is opened."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from covey.errors import ArgumentError, ParameterError, whole_number
from covey.table.databases import Database

SUMS = "SHA256SUMS"  # checksums of the data: a folder that has it is a bundle, and its digest is the bundle's name
REPORT = "report.html"
WORDS = (
    "README.md",
    REPORT,
    "croissant.json",
    "dcat.json",
    "deployment.yaml",
)  # made from the data, and again if need be
WORDS_SUMS = "SHA256SUMS.report"  # checksums of these: a bundle without it is not finished


def check_target(folder: Path, force: bool) -> None:
    """Refuse an output that exists, unless forced, or cannot be made; never replace what is not a bundle."""
    try:
        there = folder.exists()
        parent = next(p for p in folder.absolute().parents if p.exists())
    except OSError as error:
        raise ParameterError(f"the output {folder} cannot be made: {error.strerror}. Choose another folder.") from None
    if not there:
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise ParameterError(f"the output {folder} cannot be made in {parent}. Choose another folder.")
        return
    if not force:
        raise ArgumentError(f"the output {folder} exists. Choose another folder, or give ", "force", " to replace it.")
    if not folder.is_dir() or (any(folder.iterdir()) and not _is_whole(folder)):
        raise ParameterError(f"the output {folder} is not a covey bundle and will not be replaced, even by force.")


def _is_whole(folder: Path) -> bool:
    """Whether a folder holds just the files that its list of checksums names, a privacy statement among them."""
    if not (folder / SUMS).is_file():
        return False
    named = listed(folder)
    return "privacy.json" in named and counting(folder, named) <= named.keys()


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
        raise ParameterError(
            f"{path} is inside a bundle. Confidential figures are not written there; choose another place."
        )


def check_disk(m: Any, columns: int, folder: Path) -> int:
    """How many rows to write, or a refusal: a cell takes a byte or more, and they must fit the disk."""
    rows = whole_number(m, "m", 1, "It counts the synthetic rows.")
    there = next(p for p in folder.absolute().parents if p.exists())
    free = shutil.disk_usage(there).free
    if rows * columns > free:
        raise ParameterError(
            f"{rows} rows need {rows * columns / 2**30:.3g} GiB or more, and the disk has {free / 2**30:.3g} GiB left. "
            "Write fewer rows, or choose another disk."
        )
    return rows


def check_output(path: Path) -> None:
    """Refuse, before any data is opened, a file that cannot be written: its folder must exist."""
    try:
        taken, folder = path.is_dir(), path.parent.is_dir()
    except OSError as error:  # a name too long for the system, for example
        raise ParameterError(f"{path} cannot be written: {error.strerror}. Choose another name.") from None
    if taken:
        raise ParameterError(f"{path} is a folder. Name a file in it.")
    if not folder:
        raise ParameterError(f"{path} cannot be written: there is no folder {path.parent}. Make it, or choose another.")
    if not os.access(path.parent, os.W_OK) or (path.exists() and not os.access(path, os.W_OK)):
        raise ParameterError(f"{path} cannot be written: permission denied. Choose another place.")


def refuse_same(source: Path | Database, out: Path) -> None:
    """The input is never overwritten, nor the folder that holds it."""
    table = source if isinstance(source, Path) else source.path
    if table is not None and out.resolve() in (table.resolve(), *table.resolve().parents):
        raise ParameterError(f"{out} is the input table, or holds it. Choose another output.")


def check_new_file(path: Path, source: Path | Database, force: bool) -> None:
    """Refuse, before any data is opened, a file that cannot be written, is the table itself, or exists and is not forced."""
    check_output(path)
    refuse_same(source, path)
    if path.exists() and not force:
        raise ArgumentError(f"{path} exists. Choose another name, or give ", "force", ".")
