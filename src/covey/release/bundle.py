"""A release on disk: a folder that holds only public things. docs/reference/bundle.md lists its files.

Data that cost a budget must not be lost because a picture of them cannot be drawn: the data are written first, whole or not at
all, with their checksums in SHA256SUMS, and lie at their place, synced to the disk, before the first word is made. The words
(README, report, catalogue entries) are made from the data, with their checksums in SHA256SUMS.report. A bundle without that list
is valid and not finished; `add_words` finishes it.

Only an `AnyRelease` can be written. Their fields are public by type: rows already sampled, centres already private, a certificate
that carries its noise. Nothing here accepts a table of records, moments or groups.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from covey.engine.certificate import WORDS as KINDS
from covey.engine.progress import Progress
from covey.errors import CoveyError, CoveyWarning, InternalError
from covey.paths import local_output
from covey.release.contents import LARGE_EPSILON, NOTHING_SAID, About, AnyRelease
from covey.release.contents import AnonymousRelease as AnonymousRelease
from covey.release.contents import PrivateRelease as PrivateRelease
from covey.release.model import write_model
from covey.release.page import render
from covey.release.places import REPORT, SUMS, WORDS, WORDS_SUMS, check_target, claimed
from covey.release.places import replace as put_in_place
from covey.release.report import report_html, rows_bounds
from covey.release.statements import (
    WEAK,
    anonymous_facts,
    certificate_facts,
    croissant,
    dcat,
    deployment,
    private_facts,
    private_words,
    unfinished_words,
)
from covey.release.summary import ReleaseTally
from covey.release.verify import PACKAGE, SCHEMA, described_by, file_digest, tables_of, verify_bundle
from covey.tables.description import Description
from covey.tables.document import write_document
from covey.tables.sources import writing_csv, writing_parquet


@dataclass(frozen=True)
class ReportInputs:
    """What the words of a bundle are made from."""

    release: AnyRelease
    about: About  # what the owner says, and the day
    mended: int | None = None  # rows, or events, that were altered for the rules' sake; None where there are no rules
    seen: ReleaseTally | None = None  # the rows, if they were counted while they were written


def write_bundle(
    release: AnyRelease, folder: str | Path, *, parquet: bool = False, force: bool = False, about: About = NOTHING_SAID
) -> Path:
    """Write a release to a new folder, with its guarantee, certificate, report and checksums. Give `force` to replace one."""
    place = local_output(folder)
    with claim_target(place, force) as claim:
        publish(release, place, claim, parquet=parquet, force=force, about=about)
    return place


def publish(  # what is written where, by whose leave, and who is told
    release: AnyRelease,
    folder: Path,
    claim: Path,
    *,
    parquet: bool = False,
    force: bool = False,
    about: About = NOTHING_SAID,
    written: Callable[[Path], None] = lambda _: None,
) -> ReportInputs:
    """Write the data into a hidden folder beside the final one and rename it; then add the words.

    There is never a part of the data. If the words cannot be made, the bundle stays without them and a warning says so. What
    was written is verified.
    `claim` is that hidden folder, from `claim_target`. `written` is told of the bundle as soon as its data are safe.
    """
    ready = claim / "new"
    ready.mkdir()
    with Progress((("drawing rows", 1.0), ("report", 1.0), ("verifying", 0.5))) as progress:
        progress.next()
        told = _fill(release, ready, parquet, about.dated(), progress.tick)
        _write_sums(ready)
        (ready / "README.md").write_text(unfinished_words(ready), encoding="utf-8")
        ready.chmod(0o755)
        for path in [*ready.iterdir(), ready]:
            _sync(path)
        if force and folder.exists():
            put_in_place(claim, folder)
        else:
            os.replace(ready, folder)  # fails on a folder that holds anything
        _sync(folder.parent)
        written(folder)
        try:
            progress.next()
            add_words(folder, claim, told)
        except Exception as error:  # whatever it is: the data are there, and the rest can be made from them
            warnings.warn(
                f"the data of {folder} are complete, but its report could not be made ({type(error).__name__}). To try "
                f"again: covey resume {folder}",
                CoveyWarning,
                stacklevel=2,
            )
        _verify_written(folder, progress)
    return told


def _verify_written(folder: Path, progress: Progress) -> None:
    """Check a new bundle as its receivers will; the data of one that they would refuse are kept, and nobody calls it good."""
    try:
        progress.next()
        verify_bundle(folder)
    except CoveyError as error:
        raise InternalError(
            f"the bundle {folder} was written, and does not pass its own verification: {str(error).rstrip('.')}. Its data are "
            "kept there. Do not hand them out, and please report this."
        ) from error
    except Exception as error:  # of a machine that has no memory left, say: the data are there, and may be good
        warnings.warn(
            f"the data of {folder} are complete, but could not be verified ({type(error).__name__}). To try again: covey verify "
            f"{folder}",
            CoveyWarning,
            stacklevel=3,
        )


@contextmanager
def claim_target(folder: Path, force: bool) -> Iterator[Path]:
    """The right to write a bundle here, for as long as the block runs: a hidden folder for `write_bundle`."""
    check_target(folder, force)
    with claimed(folder) as place:
        check_target(folder, force)  # another release may have finished just before
        yield place


# The data.


def _fill(
    release: AnyRelease, folder: Path, parquet: bool, about: About, tick: Callable[[float], None] = lambda _: None
) -> ReportInputs:
    """Write the rows and all that cannot be made from them again."""
    writing, suffix = (writing_parquet, "parquet") if parquet else (writing_csv, "csv")
    seen, before = ReleaseTally(release), getattr(release.parts, "mended", 0)
    with ExitStack() as stack:  # all tables at once: no part is drawn twice
        add = [stack.enter_context(writing(folder / f"{name}.{suffix}")) for name in seen.rows]
        for part in map(seen.by_table, release.parts):
            for write, columns in zip(add, part, strict=True):
                write(columns)
            seen.add(part)
            tick(next(iter(seen.rows.values())) / max(release.parts.m, 1))
    described = release.described
    ruled = described.rules if described.schema is None else described.schema.rules
    mended = getattr(release.parts, "mended", 0) - before if ruled else None
    _describe(described.plain(), folder, suffix, about)
    source = {part.name: own for part in described.tables if (own := part.schema.source)}
    said = {"synthetic_rows": seen.rows, "about": about.to_dict()} | ({"source": source} if source else {})
    if isinstance(release, AnonymousRelease):
        write_document(folder / "privacy.json", anonymous_facts(release) | said)
        return ReportInputs(release, about, mended, seen)
    write_document(folder / "privacy.json", private_facts(release.privacy, release.version, mended) | said)
    write_model(release, folder)
    release = _bounded(release, seen)
    if release.certificate is not None:
        facts = certificate_facts(release.certificate) | {"this_table": _own_facts(release)}
        if release.privacy.budget.epsilon > LARGE_EPSILON:
            facts["note"] = WEAK
        write_document(folder / "certificate.json", facts)
    return ReportInputs(release, about, mended, seen)


def _describe(described: Description, folder: Path, suffix: str, about: About) -> None:
    """The public description of what lies beside it: plain tables, with numbers as keys."""
    if described.schema is not None:
        write_document(folder / SCHEMA, described.schema.to_dict())
        return
    said = described.to_dict()
    for one in said["resources"]:
        one["path"] = f"{one['name']}.{suffix}"
        one["schema"]["fields"][0]["type"] = "integer"  # of keys, which are numbers now
    write_document(folder / PACKAGE, said | {"created": f"{about.made}T00:00:00Z"})


def _bounded(release: PrivateRelease, seen: ReleaseTally) -> PrivateRelease:
    """With the certificate for these very rows; where it cannot be computed, the certificate of their model speaks alone."""
    try:
        return replace(release, own=rows_bounds(release, seen))
    except Exception:  # the rows are not lost for a sentence about them
        return release


def _own_facts(release: PrivateRelease) -> dict[str, Any]:
    """What a certificate says of the very rows that lie beside it."""
    said, whole = dict[str, Any]({"sentence": release.accuracy}), release.own
    if release.described.schema is not None:
        return said | {"average_total_variation": None if whole is None else whole.misplaced}
    bound = {KINDS[kind]: value for kind, value in (whole or {}).items()}
    return said | ({"bound": bound, "persons": release.parts.m} if bound else {})


# The words.


def add_words(folder: Path, claim: Path, told: ReportInputs) -> None:
    """Make the words of a bundle whose data lie in the folder, and put them beside the data; their list comes last."""
    ready = claim / "words"
    ready.mkdir()
    _tell(folder, ready, told)
    names = sorted(path.name for path in ready.iterdir())
    _write_list(ready, names, WORDS_SUMS)
    for path in ready.iterdir():
        _sync(path)
    for name in (*names, WORDS_SUMS):
        os.replace(ready / name, folder / name)
    _sync(folder)


def _tell(folder: Path, ready: Path, told: ReportInputs) -> None:
    release, about, paths = told.release, told.about, [path for _, path in tables_of(folder, described_by(folder))]
    digests = {path.name: file_digest(path) for path in paths}
    seen = ReleaseTally.of(release) if told.seen is None else told.seen
    if isinstance(release, AnonymousRelease):
        words: str = render("anonymous.md", release=release)
    else:
        release = _bounded(release, seen) if told.seen is None or release.own is None else release
        words = private_words(release, list(digests), told.mended)
        if not release.privacy.seeded:  # a trial is no deployment of differential privacy
            (ready / "deployment.yaml").write_text(deployment(release, about.made), encoding="utf-8")
    (ready / "README.md").write_text(words, encoding="utf-8")
    write_document(ready / "croissant.json", croissant(release, digests, about.made))
    write_document(ready / "dcat.json", dcat(release, digests, about.made))
    (ready / REPORT).write_text(report_html(release, digests, seen, about), encoding="utf-8")


def _write_sums(folder: Path) -> None:
    """The list of the data: every file but the words and the lists."""
    _write_list(folder, sorted({path.name for path in folder.iterdir()} - {*WORDS, SUMS, WORDS_SUMS}), SUMS)


def _write_list(folder: Path, names: list[str], place: str) -> None:
    lines = [f"{file_digest(folder / name)}  {name}\n" for name in names]
    (folder / place).write_text("".join(lines), encoding="utf-8")


def _sync(path: Path) -> None:
    """Flush a file or folder to disk, so that a rename never outruns what it renames."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
