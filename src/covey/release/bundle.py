"""A release on disk: a folder that holds only public things, written whole or not at all.

    synthetic.csv or .parquet   the rows
    schema.json                 the public schema they satisfy
    privacy.json                guarantee, neighbours, unit, ε and how it was spent, δ, n, mechanism, version, seeded or not
    certificate.json            the private accuracy certificate (private bundles)
    centres.npz                 the weighted centres, from which more rows can be drawn at no cost (private bundles)
    measurements.npz, .json     the noisy tables that were measured, and what they are (private bundles)
    croissant.json              MLCommons Croissant metadata
    dcat.json                   an entry for a data catalogue
    deployment.yaml             an entry for the registry of deployments (private bundles)
    README.md                   the same in plain words
    report.html                 the same in pictures: one page without scripts or network
    SHA256SUMS                  a checksum for every file above

Only a `PrivateRelease` or an `AnonymousRelease` can be written. Their fields are public by type: rows already sampled, centres
already private, a certificate that carries its noise. Nothing here accepts a table of records, moments or groups.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from covey.methods.draws import NumberCells
from covey.progress import Progress
from covey.release.accuracy import stated
from covey.release.claim import claimed, replace
from covey.release.contents import LARGE_EPSILON, NOTHING_SAID, About, Parts
from covey.release.contents import AnonymousRelease as AnonymousRelease
from covey.release.contents import PrivateRelease as PrivateRelease
from covey.release.linked import LinkedRelease
from covey.release.linkedbundle import fill_linked
from covey.release.measurements import write_measurements
from covey.release.pictured import Pictured
from covey.release.places import SUMS, check_target
from covey.release.report import report_html, rows_bounds
from covey.release.standards import as_yaml, croissant, dcat, deployment
from covey.release.statements import (
    WEAK,
    anonymous_facts,
    anonymous_words,
    certificate_facts,
    private_facts,
    private_words,
)
from covey.release.verify import REPORT, file_digest
from covey.table.document import write_document
from covey.table.sources import ColumnValues, write_csv, write_parquet


def write_bundle(
    release: PrivateRelease | AnonymousRelease | LinkedRelease,
    folder: Path,
    *,
    parquet: bool = False,
    force: bool = False,
    claim: Path | None = None,
    about: About = NOTHING_SAID,
) -> Path:
    """Write the bundle into a hidden folder beside the final one, then rename it: there is never a partial bundle.

    `claim` is that hidden folder, from `claim_target`, if it was claimed before; otherwise it is claimed here.
    """
    if claim is None:
        with claim_target(folder, force) as place:
            return write_bundle(release, folder, parquet=parquet, force=force, claim=place, about=about)
    ready = claim / "new"
    ready.mkdir()
    if isinstance(release, LinkedRelease):
        fill_linked(release, ready, parquet, about)
    else:
        _fill(release, ready, parquet, about)
    _write_sums(ready)
    ready.chmod(0o755)
    for path in [*ready.iterdir(), ready]:
        _sync(path)
    if force and folder.exists():
        replace(claim, folder)
    else:
        os.replace(ready, folder)  # fails on a folder that holds anything
    _sync(folder.parent)
    return folder


@contextmanager
def claim_target(folder: Path, force: bool) -> Iterator[Path]:
    """The right to write a bundle here, for as long as the block runs: a hidden folder for `write_bundle`."""
    check_target(folder, force)
    with claimed(folder) as place:
        check_target(folder, force)  # another release may have finished just before
        yield place


def _fill(release: PrivateRelease | AnonymousRelease, folder: Path, parquet: bool, about: About) -> None:
    table = "synthetic.parquet" if parquet else "synthetic.csv"
    before = getattr(release.parts, "mended", 0)
    with Progress((("drawing rows", 1.0), ("report", 1.0))) as progress:
        progress.next()
        pictured = Pictured(release)
        parts = pictured.passing(counted(release.parts, progress.tick))
        (write_parquet if parquet else write_csv)(parts, folder / table)
        mended = getattr(release.parts, "mended", 0) - before if release.schema.rules else None
        progress.next()
        _describe(release, folder, pictured, folder / table, (mended, about))


def counted(parts: Parts, tick: Callable[[float], None]) -> Iterator[ColumnValues]:
    """The parts, telling after each how many of all rows there are."""
    done = 0
    for part in parts:
        done += len(next(iter(part.values()), ()))
        tick(done / max(parts.m, 1))
        yield part


def _describe(
    release: PrivateRelease | AnonymousRelease,
    folder: Path,
    pictured: Pictured,
    rows: Path,
    told: tuple[int | None, About],
) -> None:
    """Everything beside the file of rows; `told` is how many rows were mended, and what the owner says."""
    (mended, about), table, whole, accuracy = told, rows.name, None, None
    write_document(folder / "schema.json", release.schema.plain().to_dict())  # what lies beside it is plain
    if isinstance(release, PrivateRelease):
        write_document(folder / "privacy.json", private_facts(release.privacy, release.version, mended))
        if release.certificate is not None:
            whole = rows_bounds(release, pictured)
            facts = certificate_facts(release.certificate)
            accuracy = stated(release.certificate, whole)
            facts["this_table"] = {"sentence": accuracy, "rows_out_of_place": whole.misplaced}
            if release.privacy.budget.epsilon > LARGE_EPSILON:
                facts["note"] = WEAK
            write_document(folder / "certificate.json", facts)
        np.savez(folder / "centres.npz", **centre_arrays(release))
        if release.measurements is not None:
            names = tuple(field.name for field in release.schema.encoded)
            write_measurements(release.measurements, names, folder)
        words = private_words(release, mended, accuracy)
    else:
        write_document(folder / "privacy.json", anonymous_facts(release))
        words = anonymous_words(release)
    (folder / "README.md").write_text(words, encoding="utf-8")
    digest = file_digest(folder / table)
    write_document(folder / "croissant.json", croissant(release, table, digest))
    write_document(folder / "dcat.json", dcat(release, table, digest))
    if isinstance(release, PrivateRelease):
        (folder / "deployment.yaml").write_text(as_yaml(deployment(release)), encoding="utf-8")
    (folder / REPORT).write_text(report_html(release, table, digest, pictured, about, whole), encoding="utf-8")


def centre_arrays(release: PrivateRelease) -> dict[str, Any]:
    """Weights and points of the centres, and for numbers what their cells are."""
    arrays = {"weights": release.centres.weights, "points": release.centres.points}
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


def _write_sums(folder: Path) -> None:
    lines = [f"{file_digest(path)}  {path.name}" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _sync(path: Path) -> None:
    """Flush a file or folder to disk, so that a rename never outruns what it renames."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
