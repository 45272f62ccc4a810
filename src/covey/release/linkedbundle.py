"""The files of a release of persons with events, and what they say of themselves: from public things alone.

NAME.csv or .parquet        the two tables; persons are numbered from 1
datapackage.json            the public package they satisfy
privacy.json                guarantee, neighbours, ε and how it was spent, δ, n, mechanism, version, seeded or not
certificate.json            the private accuracy certificate
model.npz                   centres of persons and of events, the chain, cells of numbers
tables.npz, tables.json     the noisy tables that were measured, and what they are
README.md, report.html      the same in plain words, and in pictures
SHA256SUMS                  a checksum for every file above
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from covey.methods.persons.certify import WORDS
from covey.release.contents import LARGE_EPSILON, About
from covey.release.linked import LinkedRelease
from covey.release.linkedreport import linked_report
from covey.release.statements import WEAK, opened, private_facts, promised, unprotected
from covey.release.verify import REPORT, file_digest
from covey.table.document import write_document
from covey.table.sources import write_csv, write_parquet


def fill_linked(release: LinkedRelease, folder: Path, parquet: bool, about: About) -> None:
    """Write all files but the checksums."""
    write, suffix = (write_parquet, "parquet") if parquet else (write_csv, "csv")
    plain = release.package.plain()
    digests = {}
    for j, part in enumerate(plain.resources):
        place = folder / f"{part.name}.{suffix}"
        write(_table(release, j), place)
        digests[place.name] = file_digest(place)
    described = plain.to_dict()
    for one in described["resources"]:
        one["path"] = f"{one['name']}.{suffix}"
        one["schema"]["fields"][0]["type"] = "integer"  # of keys, which are numbers now
    write_document(folder / "datapackage.json", described)
    write_document(folder / "privacy.json", {**private_facts(release.privacy, release.version), "linked": True})
    if release.certificate is not None:
        write_document(folder / "certificate.json", certificate_facts(release))
    np.savez(folder / "model.npz", **model_arrays(release))
    facts, arrays = measured(release)
    np.savez(folder / "tables.npz", **arrays)
    write_document(folder / "tables.json", facts)
    (folder / "README.md").write_text(words(release, list(digests)), encoding="utf-8")
    (folder / REPORT).write_text(linked_report(release, digests, about), encoding="utf-8")


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
        "cost": {"amount": str(found.charge.amount), "unit": found.charge.unit},
    }
    return facts | ({"note": WEAK} if release.privacy.budget.epsilon > LARGE_EPSILON else {})


def model_arrays(release: LinkedRelease) -> dict[str, Any]:
    """Models by number, the law of the number of events, and for numbers what their cells are."""
    law = release.fitted.law
    arrays: dict[str, Any] = {"counts": law.counts}
    for k, own in enumerate(law.models):
        arrays |= {
            f"{k} {name}": np.asarray(getattr(own, name)) for name in ("persons", "kinds", "events", "chain", "sticky")
        }
    for j, cells in release.fitted.cells.items():
        arrays[f"cells {j} edges"] = cells.edges
        arrays |= {f"cells {j} {name}": getattr(cells.measure, name) for name in ("start", "stop", "share")}
    return arrays


def measured(release: LinkedRelease) -> tuple[dict[str, Any], dict[str, Any]]:
    """The noisy tables in persons: what each is, the deviation of its noise, and its values."""
    found = release.fitted
    own = [field.name for field in release.package.persons.schema.encoded]
    its = [field.name for field in release.package.event_schema.encoded]
    person, arrays = [*own, "number of events"], {"events": np.asarray(found.counts.values)}
    facts: list[dict[str, Any]] = [
        {"array": "events", "about": WORDS["events"], "columns": ["number of events"], "sd": found.counts.sd}
    ]
    for j, table in enumerate(found.tables):
        kind, (one, other) = table.table.kind, (table.table.one, table.table.other)
        left = (person if kind in ("person", "across") else its)[one]
        right = (person if kind == "person" else its)[other]
        facts.append({"array": f"table {j}", "about": WORDS[kind], "columns": [left, right], "sd": table.sd})
        arrays[f"table {j}"] = table.values
    law = "laplace" if release.privacy.budget.pure else "gaussian"
    bins = {f"bins {j}": to for j, to in enumerate(found.bins.maps)}
    bins |= {f"edges {j}": edges for j, edges in enumerate(found.bins.edges) if edges is not None}
    note = "values are numbers of persons; 'edges j' are the codes at which the cells of number j begin, 'bins j' cell → bin"
    return {"n": release.privacy.n, "law": law, "note": note, "tables": facts}, arrays | bins


def words(release: LinkedRelease, tables: list[str]) -> str:
    """README.md."""
    one, two = release.package.resources
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
        *unprotected(release.certificate),
        "## Files",
        "",
        *(f"- `{name}`: rows" for name in tables),
        "- `datapackage.json`: what the columns mean, and how the tables are linked",
        "- `privacy.json`: the guarantee, and how the budget was spent",
        "- `certificate.json`: the accuracy bound",
        "- `model.npz`: what rows are drawn from",
        "- `tables.npz`, `tables.json`: the noisy tables that were measured, and the size of their noise",
        "- `report.html`: this, and pictures of the data, in a browser",
        "- `SHA256SUMS`: checksums; `covey verify` checks them",
    ]
    return "\n".join(lines) + "\n"
