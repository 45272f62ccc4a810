"""A bundle on disk becomes a release again: checked, whole, and without any true data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Integers
from covey.engine.budget import Charge
from covey.engine.certificate import WORDS, Certificate, Distances, OutOfPlace
from covey.engine.fractions import amount
from covey.errors import InputError
from covey.release.answers.release import Release
from covey.release.contents import AnonymousRelease, AnyRelease, Bounds
from covey.release.facts import is_anonymous, read_facts, statement
from covey.release.model import fitting, read_json, read_model
from covey.release.statements import GROUPED
from covey.release.verify import described_by, rows_path, tables_of, verify_files
from covey.tables.codec import Codec
from covey.tables.sources import ColumnValues, joined, open_source

CERTIFICATE = "certificate.json"
STORED_ROWS = 1 << 18  # that are read and decoded at a time: as many as are drawn at a time


@dataclass(frozen=True)
class StoredRows:
    """The rows of a bundle, read when they are asked for; of several tables all persons at once."""

    m: int
    tables: tuple[tuple[Path, Codec], ...]

    def __iter__(self) -> Iterator[Any]:
        if len(self.tables) > 1:
            yield tuple(joined(_decoded(*table)) for table in self.tables)
        else:
            yield from _decoded(*self.tables[0])


def _decoded(path: Path, codec: Codec) -> Iterator[ColumnValues]:
    source, held = open_source(path, codec.schema), np.empty((0, len(codec.names)), dtype=np.int64)

    def values(cells: Integers) -> ColumnValues:
        return codec.decode(cells, np.random.default_rng(0), "cells")  # rows keep the rules: none moves

    for part in source.parts():
        held = np.concatenate([held, codec.encode_part(source.table(part), "cells")[0]])
        while len(held) > STORED_ROWS:
            yield values(held[:STORED_ROWS])
            held = held[STORED_ROWS:]
    yield values(held)


def load(folder: str | Path) -> Any:
    """Read a private bundle and check it. The `Release` gives rows, draws more, and answers questions with intervals."""
    place = Path(folder)
    found = stored(place)
    if isinstance(found, AnonymousRelease):
        raise InputError(
            f"{place} is an anonymous bundle: its rows are averages of groups of {found.group_size} records, without "
            "noise of a known law, so no honest interval can be computed from them and no more rows can be drawn. Its rows are "
            f"in {rows_path(place).name}; for more ask for a private bundle, made by covey release."
        )
    return found


def stored(place: Path) -> AnyRelease:
    """The release that a bundle was written from."""
    described = described_by(place)
    verify_files(place)
    facts = read_facts(place)
    m = facts["synthetic_rows"].get(described.unit.name, 0)
    parts = StoredRows(m, tuple((path, Codec(part.released)) for part, path in tables_of(place, described)))
    if is_anonymous(facts):
        named = {name: facts[name] for name in GROUPED}
        return AnonymousRelease(parts, described.unit.schema, **named, version=facts["covey"])
    fitted, own = read_model(place, described, facts), None
    if (place / CERTIFICATE).is_file():
        with fitting(CERTIFICATE):
            certificate, own = read_certificate(read_json(place / CERTIFICATE), facts["spent_in"])
        fitted = replace(fitted, certificate=certificate)
    with fitting("privacy.json"):
        return Release(parts, described, fitted, statement(facts), facts["covey"], own)


def read_certificate(said: Mapping[str, Any], unit: str) -> tuple[Certificate, Bounds]:
    """The certificate of a bundle, and what it says of the very tables that lie beside it."""
    charge, confidence = Charge("certificate", amount(said["cost"]["amount"], "cost"), unit), said["confidence"]
    if "persons" in said:
        kinds = {words: kind for kind, words in WORDS.items()}
        bounds = [{kinds[w]: float(b) for w, b in own.get("bound", {}).items()} for own in (said, said["this_table"])]
        same = dict.fromkeys(bounds[0], float(said["estimate"]))
        found = Certificate(bounds[0], same, charge, False, confidence, persons=int(said["persons"]))
        return found, Distances(bounds[1]) if bounds[1] else None
    bound, estimate = ({int(d): float(v) for d, v in said[name].items()} for name in ("bound", "estimate"))
    misplaced = None
    if (own := said.get("average_total_variation")) is not None:
        numbers = "distribution_functions" in said
        misplaced = OutOfPlace(float(own["bound"]), float(own["estimate"]), int(own["columns"]), numbers)
    found = Certificate(bound, estimate, charge, said["measure"].startswith("L2"), confidence, misplaced)
    return found, Distances({}, said["this_table"]["average_total_variation"])
