"""A release on disk: a folder that holds only public things. Its data are written first, whole or not at all.

The data, whose checksums are in SHA256SUMS:

    synthetic.csv or .parquet   the rows
    schema.json                 the public schema they satisfy
    privacy.json                guarantee, neighbours, unit, ε and how it was spent, δ, n, mechanism, version, seeded or not
    certificate.json            the private accuracy certificate (private bundles)
    centres.npz                 the weighted centres, from which more rows can be drawn at no cost (private bundles)
    measurements.npz, .json     the noisy tables that were measured, and what they are (private bundles)

Then the words, which are made from the data and can be made from it again, with their checksums in SHA256SUMS.report:

    croissant.json              MLCommons Croissant metadata
    dcat.json                   an entry for a data catalogue
    deployment.yaml             an entry for the registry of deployments (private bundles)
    README.md                   the same in plain words
    report.html                 the same in pictures: one page without scripts or network

Data that cost a budget must not be lost because a picture of them cannot be drawn: they lie at their place, synced to the disk,
before the first word is made. A bundle without SHA256SUMS.report is valid and not finished; `add_words` finishes it.

Only a `PrivateRelease` or an `AnonymousRelease` can be written. Their fields are public by type: rows already sampled, centres
already private, a certificate that carries its noise. Nothing here accepts a table of records, moments or groups.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from covey.errors import CoveyWarning
from covey.methods.draws import NumberCells
from covey.privacy.certificate import TableBounds
from covey.progress import Progress
from covey.release.accuracy import stated
from covey.release.claim import claimed
from covey.release.claim import replace as put_in_place
from covey.release.contents import LARGE_EPSILON, NOTHING_SAID, About, Parts
from covey.release.contents import AnonymousRelease as AnonymousRelease
from covey.release.contents import PrivateRelease as PrivateRelease
from covey.release.linked import LinkedRelease
from covey.release.linkedbundle import fill_linked, tell_linked
from covey.release.measurements import write_measurements
from covey.release.pictured import Pictured
from covey.release.places import REPORT, SUMS, WORDS, WORDS_SUMS, check_target
from covey.release.report import report_html, rows_bounds
from covey.release.standards import as_yaml, croissant, dcat, deployment
from covey.release.statements import (
    WEAK,
    anonymous_facts,
    anonymous_words,
    certificate_facts,
    private_facts,
    private_words,
    unfinished_words,
)
from covey.release.verify import file_digest, rows_path
from covey.table.document import write_document
from covey.table.resources import UNNAMED
from covey.table.sources import ColumnValues, write_csv, write_parquet

AnyRelease = PrivateRelease | AnonymousRelease | LinkedRelease


@dataclass(frozen=True)
class Told:
    """What the words of a bundle need beside its release.

    Args:
        about: what the owner says, and the day.
        mended: how many rows, or events, were altered for the rules' sake; None where there are no rules.
        pictured: the rows, if they were counted while they were written.
        whole: the certificate for these very rows, if it was computed before.
    """

    about: About
    mended: int | None = None
    pictured: Pictured | None = None
    whole: TableBounds | None = None


def write_bundle(  # what is written where, by whose leave, and who is told
    release: AnyRelease,
    folder: Path,
    *,
    parquet: bool = False,
    force: bool = False,
    claim: Path | None = None,
    about: About = NOTHING_SAID,
    written: Callable[[Path], None] = lambda _: None,
) -> Path:
    """Write the data into a hidden folder beside the final one and rename it; then add the words.

    There is never a part of the data. If the words cannot be made, the bundle stays without them and a warning says so.
    `claim` is that hidden folder, from `claim_target`, if it was claimed before; otherwise it is claimed here. `written` is told
    of the bundle as soon as its data are safe.
    """
    if claim is None:
        with claim_target(folder, force) as claim:
            return write_bundle(
                release, folder, parquet=parquet, force=force, claim=claim, about=about, written=written
            )
    ready = claim / "new"
    ready.mkdir()
    with Progress((("drawing rows", 1.0), ("report", 1.0))) as progress:
        progress.next()
        if isinstance(release, LinkedRelease):
            release, told = fill_linked(release, ready, parquet, about.dated()), Told(about.dated())
        else:
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
            add_words(release, folder, claim, told)
        except Exception as error:  # whatever it is: the data are there, and the rest can be made from them
            warnings.warn(
                f"the data of {folder} are written and whole, but its report could not be made ({type(error).__name__}). To try "
                f"again: covey resume {folder}",
                CoveyWarning,
                stacklevel=2,
            )
    return folder


@contextmanager
def claim_target(folder: Path, force: bool) -> Iterator[Path]:
    """The right to write a bundle here, for as long as the block runs: a hidden folder for `write_bundle`."""
    check_target(folder, force)
    with claimed(folder) as place:
        check_target(folder, force)  # another release may have finished just before
        yield place


# The data.


def _fill(
    release: PrivateRelease | AnonymousRelease,
    folder: Path,
    parquet: bool,
    about: About,
    tick: Callable[[float], None] = lambda _: None,
) -> Told:
    """Write the rows and all that cannot be made from them again."""
    table = folder / ("synthetic.parquet" if parquet else "synthetic.csv")
    before = getattr(release.parts, "mended", 0)
    pictured = Pictured(release)
    (write_parquet if parquet else write_csv)(pictured.passing(counted(release.parts, tick)), table)
    mended = getattr(release.parts, "mended", 0) - before if release.schema.rules else None
    write_document(folder / "schema.json", release.schema.plain().to_dict())  # what lies beside it is plain
    said = {"about": about.to_dict(), "synthetic_rows": {UNNAMED: pictured.rows}}
    if isinstance(release, AnonymousRelease):
        write_document(folder / "privacy.json", anonymous_facts(release) | said)
        return Told(about, mended, pictured)
    write_document(folder / "privacy.json", private_facts(release.privacy, release.version, mended) | said)
    np.savez(folder / "centres.npz", **centre_arrays(release))
    if release.measurements is not None:
        names = tuple(field.name for field in release.schema.encoded)
        write_measurements(release.measurements, names, folder)
    whole = _bounds(release, pictured)
    if release.certificate is not None:
        facts = certificate_facts(release.certificate)
        facts["this_table"] = {
            "sentence": stated(release.certificate, whole),
            "rows_out_of_place": whole.misplaced,
        }
        if release.privacy.budget.epsilon > LARGE_EPSILON:
            facts["note"] = WEAK
        write_document(folder / "certificate.json", facts)
    return Told(about, mended, pictured, whole)


def _bounds(release: PrivateRelease, pictured: Pictured) -> TableBounds:
    """The certificate for these very rows; where it cannot be computed, the certificate of their model speaks alone."""
    try:
        return rows_bounds(release, pictured)
    except Exception:  # the rows are not lost for a sentence about them
        return TableBounds({})


def counted(parts: Parts, tick: Callable[[float], None]) -> Iterator[ColumnValues]:
    """The parts, telling after each how many of all rows there are."""
    done = 0
    for part in parts:
        done += len(next(iter(part.values()), ()))
        tick(done / max(parts.m, 1))
        yield part


def centre_arrays(release: PrivateRelease) -> dict[str, Any]:
    """Weights and points of the centres, and for numbers what their cells are."""
    arrays = {"weights": release.centres.weights, "points": release.centres.points}
    if release.spectrum is not None:
        seen = release.spectrum
        arrays["spectrum"] = np.array([seen.edge, seen.dimension, *seen.values])
    return arrays if release.numbers is None else arrays | number_arrays(release.numbers)


def number_arrays(numbers: NumberCells) -> dict[str, Any]:
    """The codes at which cells of numbers begin and end, and their private measures.

    The arrays of a number are named after its place among the encoded fields: "3 edges" has the codes of its cells, "3 start",
    "3 stop" and "3 share" the measure from which values inside cells are drawn; "score" has the ranks that swaps of rows keep.
    "triples" has the places of triples whose tables were measured, and "3 level" the levels of a field in these.
    """
    arrays: dict[str, Any] = {"score": numbers.score}
    for j, cells in numbers.cells.items():
        arrays[f"{j} edges"] = cells.edges
        arrays |= {f"{j} {name}": getattr(cells.measure, name) for name in ("start", "stop", "share")}
    if numbers.triples:
        arrays["triples"] = np.array(numbers.triples.names)
        arrays |= {f"{x} level": levels for x, levels in numbers.triples.levels.items()}
    return arrays


# The words.


def add_words(release: AnyRelease, folder: Path, claim: Path, told: Told) -> None:
    """Make the words of a bundle whose data lie in the folder, and put them beside the data; their list comes last."""
    ready = claim / "words"
    ready.mkdir()
    if isinstance(release, LinkedRelease):
        tell_linked(release, folder, ready, told.about)
    else:
        _tell(release, folder, ready, told)
    names = sorted(path.name for path in ready.iterdir())
    _write_list(ready, names, WORDS_SUMS)
    for path in ready.iterdir():
        _sync(path)
    for name in (*names, WORDS_SUMS):
        os.replace(ready / name, folder / name)
    _sync(folder)


def _tell(release: PrivateRelease | AnonymousRelease, folder: Path, ready: Path, told: Told) -> None:
    rows, about = rows_path(folder), told.about
    table, digest = rows.name, file_digest(rows)
    pictured = Pictured.of(release) if told.pictured is None else told.pictured
    whole = told.whole
    if isinstance(release, PrivateRelease):
        whole = _bounds(release, pictured) if whole is None else whole
        accuracy = None if release.certificate is None else stated(release.certificate, whole)
        words = private_words(release, told.mended, accuracy)
        (ready / "deployment.yaml").write_text(as_yaml(deployment(release, about.made)), encoding="utf-8")
    else:
        words = anonymous_words(release)
    (ready / "README.md").write_text(words, encoding="utf-8")
    write_document(ready / "croissant.json", croissant(release, table, digest, about.made))
    write_document(ready / "dcat.json", dcat(release, table, digest, about.made))
    (ready / REPORT).write_text(report_html(release, table, digest, pictured, about, whole), encoding="utf-8")


def _write_sums(folder: Path) -> None:
    """The list of the data: every file but the words and the lists."""
    _write_list(folder, sorted({path.name for path in folder.iterdir()} - {*WORDS, SUMS, WORDS_SUMS}), SUMS)


def _write_list(folder: Path, names: list[str], place: str) -> None:
    lines = [f"{file_digest(folder / name)}  {name}" for name in names]
    (folder / place).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sync(path: Path) -> None:
    """Flush a file or folder to disk, so that a rename never outruns what it renames."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
