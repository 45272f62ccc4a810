"""The files of a release of persons with events, and what they say of themselves: from public things alone.

NAME.csv or .parquet        the two tables; persons are numbered from 1
datapackage.json            the public package they satisfy
privacy.json                guarantee, neighbours, ε and how it was spent, δ, n, mechanism, version, seeded or not
certificate.json            the private accuracy certificate
model.npz                   centres of persons and of events, the chain, cells of numbers
measurements.npz, .json     the noisy tables that were measured, and what they are
README.md, report.html      the same in plain words, and in pictures; made from the data
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from covey.methods.persons.certify import WORDS, LinkedCertificate
from covey.release.contents import LARGE_EPSILON, About
from covey.release.linked import LinkedRelease
from covey.release.linkedfiles import write_fitted
from covey.release.linkedreport import linked_report
from covey.release.linkedverify import DESCRIBED, table_paths
from covey.release.places import REPORT
from covey.release.statements import WEAK, opened, private_facts, promised, unprotected
from covey.release.verify import file_digest
from covey.table.document import write_document
from covey.table.package import Package
from covey.table.sources import write_csv, write_parquet


def fill_linked(release: LinkedRelease, folder: Path, parquet: bool, about: About) -> LinkedRelease:
    """Write the data; the release with the certificate of these very tables."""
    write, suffix = (write_parquet, "parquet") if parquet else (write_csv, "csv")
    plain = release.package.plain()
    for j, part in enumerate(plain.resources):
        write(_table(release, j), folder / f"{part.name}.{suffix}")
    described = plain.to_dict()
    for one in described["resources"]:
        one["path"] = f"{one['name']}.{suffix}"
        one["schema"]["fields"][0]["type"] = "integer"  # of keys, which are numbers now
    described["created"] = f"{about.made}T00:00:00Z"
    write_document(folder / "datapackage.json", described)
    mended = getattr(release.parts, "mended", 0) if release.package.rules else None
    facts = private_facts(release.privacy, release.version)
    told = {} if mended is None else {"events_drawn_anew_for_rules": mended}
    write_document(folder / "privacy.json", {**facts, **told, "linked": True, "about": about.to_dict()})
    write_fitted(release.fitted, release.package, folder)
    release = replace(release, own=_own(release), mended=mended)
    if release.certificate is not None:
        write_document(folder / "certificate.json", certificate_facts(release))
    return release


def _own(release: LinkedRelease) -> LinkedCertificate | None:
    """The certificate of these very tables; where it cannot be computed, that of the draw that was compared."""
    try:
        return release.stated
    except Exception:  # the tables are not lost for a sentence about them
        return release.certificate


def tell_linked(release: LinkedRelease, folder: Path, ready: Path, about: About) -> None:
    """Write the words about the data in a folder."""
    tables = table_paths(folder, Package.load(folder / DESCRIBED))
    digests = {path.name: file_digest(path) for path in tables}
    (ready / "README.md").write_text(words(release, list(digests)), encoding="utf-8")
    (ready / REPORT).write_text(linked_report(release, digests, about), encoding="utf-8")


def _table(release: LinkedRelease, j: int) -> Iterable[Any]:
    return (both[j] for both in release.parts)


def certificate_facts(release: LinkedRelease) -> dict[str, Any]:
    """certificate.json."""
    found = release.certificate
    assert found is not None  # nosec B101 # for the type checker; asked for only where there is one
    facts: dict[str, Any] = {
        "sentence": found.sentence,
        "confidence": found.confidence,
        "joint": True,
        "measure": "mean total variation distance of the tables of a group, numbers in bins of about equal mass",
        "bound": {WORDS[kind]: bound for kind, bound in found.bound.items()},
        "estimate": found.estimate,
        "about": f"a draw of {found.persons} persons from the model",
        "persons": found.persons,
        "cost": {"amount": str(found.charge.amount), "unit": found.charge.unit},
    }
    own = release.stated
    if own is not None and own is not found:
        bound = {WORDS[kind]: value for kind, value in own.bound.items()}
        facts["this_release"] = {"sentence": own.sentence, "bound": bound, "persons": own.persons}
    return facts | ({"note": WEAK} if release.privacy.budget.epsilon > LARGE_EPSILON else {})


def words(release: LinkedRelease, tables: list[str]) -> str:
    """README.md."""
    (one, two), mended = release.package.resources, release.mended
    lines = [
        *opened(
            release.privacy,
            [
                f"These two tables are synthetic: no row belongs to a person. They were made by covey {release.version} from",
                f"confidential tables of {release.privacy.n} persons and their events, and the folder",
                f"{promised(release.privacy)}.",
            ],
        ),
        "## What it protects",
        "",
        "Whoever sees this folder learns almost nothing about any one person with all their events: had it been another person,",
        "with any number of events, this release would have been almost as likely. The number of persons, the package and the",
        f"method are public. How many rows `{two.name}` has in truth is not.",
        "",
        f"`{two.name}.{two.key}` refers to `{one.name}.{one.key}`; both are numbers without meaning. A person has at most",
        f"{release.package.at_most} events.",
        "",
        *unprotected(None if release.stated is None else release.stated.sentence),
        *(
            []
            if mended is None
            else [f"Rules across the two tables hold: {mended:,} events were drawn anew for them.", ""]
        ),
        "## Files",
        "",
        *(f"- `{name}`: rows" for name in tables),
        "- `datapackage.json`: what the columns mean, and how the tables are linked",
        "- `privacy.json`: the guarantee, and how the budget was spent",
        "- `certificate.json`: the accuracy bound",
        "- `model.npz`: what rows are drawn from",
        "- `measurements.npz`, `measurements.json`: the noisy tables that were measured, and the size of their noise",
        "- `report.html`: this, and pictures of the data, in a browser",
        "- `SHA256SUMS`, `SHA256SUMS.report`: checksums of the data and of the rest; `covey verify` checks them",
    ]
    return "\n".join(lines) + "\n"
