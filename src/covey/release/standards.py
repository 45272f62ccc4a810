"""A bundle in the words of others: MLCommons Croissant, DCAT for catalogues, and an entry for the registry of deployments.

From public things alone; the layouts are in `templates`. What only the steward knows (who publishes, on what legal basis, for
which region) is left for the steward to fill in: docs/guides/catalogues.md says where.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from covey.release.contents import AnonymousRelease, AnyRelease, PrivateRelease
from covey.release.page import render
from covey.release.statements import guarantee_words

STEWARD = "to be filled in by the data owner"
METHOD = "https://arxiv.org/abs/2107.05824"  # the paper that covey implements
_TYPES = {
    "boolean": "sc:Boolean",
    "integer": "sc:Integer",
    "number": "sc:Float",
    "date": "sc:Date",
    "datetime": "sc:DateTime",
    "time": "sc:Time",
    "string": "sc:Text",
}


def croissant(release: AnyRelease, files: Mapping[str, str], made: str) -> Any:
    """Croissant metadata of the synthetic tables, in files with these SHA-256 digests."""
    parts = release.described.plain().tables
    names = [part.name if len(parts) > 1 else "rows" for part in parts]
    tables = list(zip(parts, names, files, strict=True))
    return _document("croissant.json", release, made, files=files, tables=tables, types=_TYPES, media_type=_media_type)


def dcat(release: AnyRelease, files: Mapping[str, str], made: str) -> Any:
    """An entry for a data catalogue."""
    return _document("dcat.json", release, made, files=files, media_type=_media_type)


def deployment(release: PrivateRelease, made: str) -> str:
    """An entry for the registry of deployments, as YAML: readers of YAML 1.1 take 1e-06 for a text, and 1.0e-06 for a number."""
    found = _document(
        "deployment.json", release, made, STEWARD=STEWARD, guarantee=guarantee_words(release.privacy.budget)
    )
    return re.sub(r'": (-?\d+)e', r'": \1.0e', json.dumps(found, indent=2, ensure_ascii=False)) + "\n"


def _document(template: str, release: AnyRelease, made: str, **given: Any) -> Any:
    several = release.described.schema is None
    title = "Synthetic tables of persons with their events" if several else "Synthetic table"
    if isinstance(release, AnonymousRelease):
        counted = f"{release.n} rows"
        promise = f"{release.group_size}-anonymous microaggregation, NOT differential privacy"
    else:
        budget = release.privacy.budget
        counted = f"{release.privacy.n} {budget.counted}"
        promise = f"{guarantee_words(budget)}, {budget.parameters}, for {budget.protects}"
        if release.privacy.seeded:
            promise = "a trial with a declared seed, NOT private"
    given |= {"release": release, "made": made, "several": several, "title": title, "METHOD": METHOD}
    given |= {"private": isinstance(release, PrivateRelease), "counted": counted, "promise": promise}
    return json.loads(render(template, **given))


def _media_type(table: str) -> str:
    return "application/vnd.apache.parquet" if table.endswith("parquet") else "text/csv"
