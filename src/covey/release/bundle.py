"""A release on disk: a folder that holds only public things, written whole or not at all.

    synthetic.csv or .parquet   the rows
    schema.json                 the public schema they satisfy
    privacy.json                guarantee, neighbours, unit, ε and how it was spent, δ, n, mechanism, version, seeded or not
    certificate.json            the private accuracy certificate (private bundles)
    centres.npz                 the weighted centres, from which more rows can be drawn at no cost (private bundles)
    croissant.json              MLCommons Croissant metadata
    README.md                   the same in plain words
    report.html                 the same in pictures: one page without scripts or network
    SHA256SUMS                  a checksum for every file above

Only a `PrivateRelease` or an `AnonymousRelease` can be written. Their fields are public by type: rows already sampled, centres
already private, a certificate that carries its noise. Nothing here accepts a table of records, moments or groups.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from fractions import Fraction
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from covey.entropy import SEEDED_MARK
from covey.errors import InputError, ParameterError, whole_number
from covey.privacy.budget import Charge, PrivacyStatement, make_budget
from covey.privacy.certificate import Certificate
from covey.release.claim import claimed, replace
from covey.release.contents import NOT_PRIVATE
from covey.release.contents import AnonymousRelease as AnonymousRelease
from covey.release.contents import PrivateRelease as PrivateRelease
from covey.release.report import report_html
from covey.table.codec import Codec
from covey.table.schema import Schema
from covey.table.sources import open_source, write_csv, write_parquet

SUMS = "SHA256SUMS"
REPORT = "report.html"


def write_bundle(
    release: PrivateRelease | AnonymousRelease,
    folder: Path,
    *,
    parquet: bool = False,
    force: bool = False,
    claim: Path | None = None,
) -> Path:
    """Write the bundle into a hidden folder beside the final one, then rename it: there is never a partial bundle.

    `claim` is that hidden folder, from `claim_target`, if it was claimed before; otherwise it is claimed here.
    """
    if claim is None:
        with claim_target(folder, force) as place:
            return write_bundle(release, folder, parquet=parquet, force=force, claim=place)
    ready = claim / "new"
    ready.mkdir()
    _fill(release, ready, parquet)
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


def check_rows(m: Any, columns: int, folder: Path) -> int:
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
        raise ParameterError(f"the output {folder} exists. Choose another folder, or say --force to replace it.")
    if not folder.is_dir() or (any(folder.iterdir()) and not _looks_like_a_bundle(folder)):
        raise ParameterError(f"the output {folder} is not a covey bundle and will not be replaced, even by force.")


def _looks_like_a_bundle(folder: Path) -> bool:
    """Whether a folder holds just the files that its list of checksums names, a privacy statement among them."""
    if not (folder / SUMS).is_file():
        return False
    listed = _listed(folder)
    return "privacy.json" in listed and {path.name for path in folder.iterdir()} <= {*listed, SUMS}


def _listed(folder: Path) -> dict[str, str]:
    """The checksums that a bundle lists, by file name."""
    lines = (folder / SUMS).read_text(encoding="utf-8").splitlines()
    return {name: digest for digest, _, name in (line.partition("  ") for line in lines)}


def rows_path(folder: Path) -> Path:
    """The file with the synthetic rows of a bundle."""
    return folder / ("synthetic.parquet" if (folder / "synthetic.parquet").exists() else "synthetic.csv")


def _fill(release: PrivateRelease | AnonymousRelease, folder: Path, parquet: bool) -> None:
    table = "synthetic.parquet" if parquet else "synthetic.csv"
    parts = iter(release.rows)
    first = next(parts)
    (write_parquet if parquet else write_csv)(chain([first], parts), folder / table)
    _write_json(folder / "schema.json", release.schema.to_dict())
    if isinstance(release, PrivateRelease):
        _write_json(folder / "privacy.json", private_facts(release.privacy, release.version))
        if release.certificate is not None:
            facts = certificate_facts(release.certificate)
            if release.privacy.budget.epsilon > 10:
                facts["note"] = "ε is larger than 10: the guarantee is weak"
            _write_json(folder / "certificate.json", facts)
        np.savez(folder / "centres.npz", weights=release.centres.weights, points=release.centres.points)
        words = private_words(release)
    else:
        _write_json(folder / "privacy.json", anonymous_facts(release))
        words = anonymous_words(release)
    (folder / "README.md").write_text(words, encoding="utf-8")
    digest = _digest(folder / table)
    _write_json(folder / "croissant.json", croissant(release, table, digest))
    (folder / REPORT).write_text(report_html(release, table, digest, first), encoding="utf-8")


def private_facts(privacy: PrivacyStatement, version: str) -> dict[str, Any]:
    """privacy.json of a private bundle; fractions are written exactly."""
    budget = privacy.budget
    guarantee = "pure ε-differential privacy" if budget.pure else "(ε, δ)-differential privacy through ρ-zCDP"
    return {
        "guarantee": SEEDED_MARK if privacy.seeded else guarantee,
        "epsilon": str(budget.epsilon),
        "delta": str(budget.delta),
        "neighbours": "replace-one: tables of the same public size that differ in one row",
        "unit": "one row" if budget.rows_per_person == 1 else f"a person with up to {budget.rows_per_person} rows",
        "rows_per_person": budget.rows_per_person,
        "n": privacy.n,
        "mechanism": privacy.mechanism,
        "spent_in": budget.unit,
        "amount_per_row": str(budget.amount),
        "charges": [{"purpose": c.purpose, "amount": str(c.amount)} for c in privacy.charges],
        "private": not privacy.seeded,
        "seeded": privacy.seeded,
        "note": SEEDED_MARK if privacy.seeded else "",
        "covey": version,
    }


def anonymous_facts(release: AnonymousRelease) -> dict[str, Any]:
    """privacy.json of an anonymous bundle."""
    return {
        "guarantee": f"{release.group_size}-anonymous microaggregation; NOT differential privacy",
        "private": False,
        "group_size": release.group_size,
        "n": release.n,
        "groups": release.groups,
        "covariance_loss": release.covariance_loss,
        "covariance_loss_note": "computed on true data",
        "method": release.method,
        "seeded": release.seeded,
        "note": SEEDED_MARK if release.seeded else "",
        "covey": release.version,
    }


def certificate_facts(certificate: Certificate) -> dict[str, Any]:
    """certificate.json."""
    return {
        "sentence": certificate.sentence,
        "confidence": certificate.confidence,
        "joint": True,
        "measure": "L2 distance of d-way tables"
        if certificate.categorical
        else "δ_d: root mean square error of d-way shares",
        "bound": {str(d): b for d, b in certificate.bound.items()},
        "estimate": {str(d): b for d, b in certificate.estimate.items()},
        "about": "the centres; a table drawn from them adds its own, exactly computable, distance",
        "cost": {"amount": str(certificate.charge.amount), "unit": certificate.charge.unit},
    }


def private_words(release: PrivateRelease) -> str:
    """README.md of a private bundle."""
    privacy, budget = release.privacy, release.privacy.budget
    many = budget.rows_per_person > 1
    unit = f"person with up to {budget.rows_per_person} rows" if many else "row"
    pure = "pure " if budget.pure else ""
    epsilon = f"ε = {float(budget.epsilon):g}" + (f", δ = {float(budget.delta):g}" if budget.delta else "")
    accuracy = release.certificate.sentence if release.certificate else "No certificate was bought for this release."
    carries = "would carry, but for the seed," if privacy.seeded else "carries"
    lines = ["# Synthetic data", ""]
    if privacy.seeded:
        lines += [f"**{SEEDED_MARK}.** This bundle was made with a declared seed, for testing.", ""]
    lines += [
        f"This table is synthetic: no row belongs to a person. It was made by covey {release.version} from a confidential",
        f"table of {privacy.n} rows and {carries} {pure}differential privacy with {epsilon}.",
        "",
    ]
    if budget.epsilon > 10:
        lines += ["ε is larger than 10: the guarantee is weak.", ""]
    lines += [
        "## What it protects",
        "",
        f"Whoever sees this folder learns almost nothing about any one {unit} of the confidential table: had it been",
        "another, this release would have been almost as likely. The number of rows, the schema and the method are public.",
        "",
        "## What it does not protect",
        "",
        "Facts about the population are the purpose of the data and are not hidden. Several releases about the same people",
        "add up; the steward's ledger keeps count.",
        "",
        "## How accurate it is",
        "",
        accuracy,
        "",
        "## Files",
        "",
        "- `synthetic.csv` or `synthetic.parquet`: the rows",
        "- `schema.json`: what the columns mean",
        "- `privacy.json`: the guarantee, and how the budget was spent",
        "- `certificate.json`: the accuracy bound",
        "- `centres.npz`: the weighted centres that rows are drawn from",
        "- `report.html`: this, and pictures of the data, in a browser",
        "- `croissant.json`: machine-readable metadata",
        "- `SHA256SUMS`: checksums; `covey verify` checks them",
    ]
    return "\n".join(lines) + "\n"


def anonymous_words(release: AnonymousRelease) -> str:
    """README.md of an anonymous bundle: its first sentence says what it is not."""
    lines = [
        f"{NOT_PRIVATE}: every row comes from the average of at least {release.group_size} records, and a group",
        "whose members agree on a column discloses it.",
        "",
        "# Anonymous synthetic data",
        "",
    ]
    if release.seeded:
        lines += [f"**{SEEDED_MARK}** (sampling).", ""]
    lines += [
        f"Made by covey {release.version} from a confidential table of {release.n} rows in {release.groups} groups",
        f"(method: {release.method}). The covariance lost by averaging is {release.covariance_loss:.4g}, computed on true data.",
        "Numbers and dates are averages, so they vary less than those of single records.",
        "",
        f"Hand it only to people who may see {release.group_size}-anonymous data. For data that can be published use",
        "`covey release`.",
    ]
    return "\n".join(lines) + "\n"


def croissant(release: PrivateRelease | AnonymousRelease, table: str, digest: str) -> dict[str, Any]:
    """MLCommons Croissant metadata of the synthetic table."""
    kinds = {
        "boolean": "sc:Boolean",
        "integer": "sc:Integer",
        "number": "sc:Float",
        "date": "sc:Date",
        "datetime": "sc:DateTime",
        "time": "sc:Time",
        "string": "sc:Text",
    }
    form = "application/vnd.apache.parquet" if table.endswith("parquet") else "text/csv"
    return {
        "@context": {
            "@vocab": "https://schema.org/",
            "sc": "https://schema.org/",
            "cr": "http://mlcommons.org/croissant/",
            "dct": "http://purl.org/dc/terms/",
            "conformsTo": "dct:conformsTo",
            "recordSet": "cr:recordSet",
            "field": "cr:field",
            "source": "cr:source",
            "fileObject": "cr:fileObject",
            "extract": "cr:extract",
            "column": "cr:column",
            "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
        },
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": "synthetic",
        "description": "Synthetic table made by covey. See README.md for what it protects and how accurate it is.",
        "datePublished": datetime.now(UTC).date().isoformat(),
        "version": release.version,
        "distribution": [
            {
                "@type": "cr:FileObject",
                "@id": table,
                "name": table,
                "contentUrl": table,
                "encodingFormat": form,
                "sha256": digest,
            }
        ],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "rows",
                "name": "rows",
                "field": [
                    {
                        "@type": "cr:Field",
                        "@id": f"rows/{i}",
                        "name": field.name,
                        "dataType": kinds[field.type],
                        "source": {"fileObject": {"@id": table}, "extract": {"column": field.name}},
                    }
                    for i, field in enumerate(release.schema.fields)
                ],
            }
        ],
    }


@dataclass(frozen=True)
class Verified:
    """What `verify_bundle` found to be true."""

    rows: int
    facts: Mapping[str, Any]


def verify_bundle(folder: Path) -> Verified:
    """Check a bundle without any true data: checksums, the schema's validity for every row, the arithmetic of the budget."""
    if not folder.is_dir():
        raise InputError(
            f"{folder} is a file. Name the folder." if folder.exists() else f"there is no folder {folder}."
        )
    if not (folder / SUMS).is_file():
        raise InputError(f"{folder} holds no {SUMS}: it is not a covey bundle, or not a whole one.")
    listed = _listed(folder)
    present = {path.name for path in folder.iterdir()} - {SUMS}
    if present != set(listed):
        missing, extra = (
            ", ".join(map(repr, sorted(names))) for names in (set(listed) - present, present - set(listed))
        )
        found = [f"missing: {missing}"] * bool(missing) + [f"extra: {extra}"] * bool(extra)
        raise InputError(f"the files of the bundle are not those it lists; {'; '.join(found)}.")
    for name, digest in listed.items():
        if _digest(folder / name) != digest:
            raise InputError(f"{name} was changed after the bundle was written: its checksum differs.")
    table = rows_path(folder)
    if REPORT in listed and listed[table.name] not in (folder / REPORT).read_text(encoding="utf-8"):
        raise InputError(f"{REPORT} describes another table than {table.name}: it does not name its fingerprint.")
    facts = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
    if "charges" in facts:
        _verify_budget(facts)
    schema = Schema.load(folder / "schema.json")
    codec, source, rows = Codec(schema), open_source(table), 0
    for part in source.parts():
        piece = source.table(part)
        wrong = codec.problems(piece)
        if wrong:
            raise InputError(f"the synthetic rows break their schema: {wrong[0]}")
        rows += piece.rows
    if not rows:
        raise InputError("the bundle has no synthetic rows.")
    return Verified(rows, facts)


def _verify_budget(facts: Mapping[str, Any]) -> None:
    """The charges must not exceed the amount, and the amount must be what ε, δ and the unit allow."""
    budget = make_budget(Fraction(facts["epsilon"]), Fraction(facts["delta"]), facts["rows_per_person"])
    charges = tuple(Charge(c["purpose"], Fraction(c["amount"]), budget.unit) for c in facts["charges"])
    if Fraction(facts["amount_per_row"]) > budget.amount:
        raise InputError("the bundle claims a larger amount per row than its ε and δ allow.")
    spent = sum((charge.amount for charge in charges), Fraction(0))
    if spent > Fraction(facts["amount_per_row"]):
        raise InputError(f"the charges sum to {spent}, more than the {facts['amount_per_row']} that were promised.")


def is_bundle(folder: Path) -> bool:
    """Whether a folder is a bundle, or lies inside one: confidential things must not be written there."""
    return any((parent / SUMS).exists() for parent in [folder, *folder.resolve().parents])


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _write_sums(folder: Path) -> None:
    lines = [f"{_digest(path)}  {path.name}" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("\n".join(lines) + "\n", encoding="utf-8")


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _sync(path: Path) -> None:
    """Flush a file or folder to disk, so that a rename never outruns what it renames."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
