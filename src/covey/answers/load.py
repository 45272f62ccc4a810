"""A bundle on disk becomes a release again: checked, whole, and without any true data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from covey.answers.linked import LinkedAnswers
from covey.answers.release import Release
from covey.core.arrays import Integers
from covey.errors import InputError
from covey.methods.persons.certify import WORDS, LinkedCertificate
from covey.privacy.budget import Charge, PrivacyStatement
from covey.privacy.certificate import Certificate, OutOfPlace
from covey.release.contents import AnonymousRelease, AnyRelease
from covey.release.linkedfiles import read_fitted
from covey.release.load import load_centres
from covey.release.measurements import read_measurements
from covey.release.reading import read_json
from covey.release.verify import checked_bundle, described_by, promised, rows_path, tables_of
from covey.table.codec import Codec
from covey.table.description import Description
from covey.table.sources import ColumnValues, joined, open_source

STORED_ROWS = 1 << 18  # that are read and decoded at a time: as many as are drawn at a time


@dataclass(frozen=True)
class StoredRows:
    """The rows of a bundle, read when they are asked for."""

    m: int
    path: Path
    codec: Codec

    def __iter__(self) -> Iterator[ColumnValues]:
        source, held = open_source(self.path, self.codec.schema), np.empty((0, len(self.codec.names)), dtype=np.int64)
        for part in source.parts():
            held = np.concatenate([held, self.codec.encode_part(source.table(part), "cells")[0]])
            while len(held) > STORED_ROWS:
                yield self._values(held[:STORED_ROWS])
                held = held[STORED_ROWS:]
        yield self._values(held)

    def _values(self, cells: Integers) -> ColumnValues:
        return self.codec.decode(cells, np.random.default_rng(0), "cells")  # rows keep the rules: none moves


@dataclass(frozen=True)
class StoredTables:
    """The tables of a bundle of persons with events, read when they are asked for, all persons at once."""

    m: int
    folder: Path
    package: Description

    def __iter__(self) -> Iterator[tuple[ColumnValues, ...]]:
        yield tuple(
            joined(StoredRows(self.m, path, Codec(part.released)))
            for part, path in tables_of(self.folder, self.package)
        )


def stored(place: Path) -> AnyRelease:
    """The release that a bundle was written from, as far as its words need it."""
    described = described_by(place)
    if described.schema is None or (place / "centres.npz").is_file():
        return load(place)  # type: ignore[no-any-return]
    checked, codec = checked_bundle(place), Codec(described.schema)
    facts, rows = checked.facts, StoredRows(checked.rows, rows_path(place), codec)
    named = {name: facts[name] for name in ("group_size", "n", "groups", "covariance_loss", "method", "seeded")}
    return AnonymousRelease(rows, codec.schema, **named, version=facts["covey"])


def load(folder: str | Path) -> Any:
    """A private bundle, checked, as an object that answers: rows, more rows, shares, means, regressions.

    Of persons with events, `LinkedAnswers`: both tables, shares, means, rates; of a single table, `Release`.
    """
    place = Path(folder)
    if described_by(place).schema is None:
        return load_linked(place)
    if not (place / "centres.npz").is_file():
        facts = checked_bundle(place).facts
        raise InputError(
            f"{place} is an anonymous bundle: its rows are averages of groups of {facts.get('group_size')} records, without "
            "noise of a known law, so no honest interval can be computed from them. Its rows are in "
            f"{rows_path(place).name}; for intervals ask for a private bundle, made by covey release."
        )
    centres = load_centres(place)
    codec, facts = centres.codec, centres.checked.facts
    return Release(
        StoredRows(centres.checked.rows, rows_path(place), codec),
        codec.schema,
        centres.cloud,
        statement(facts),
        _certificate(place / "certificate.json", facts),
        facts["covey"],
        centres.spectrum,
        measurements=read_measurements(place, codec.sizes),
        numbers=centres.numbers,
    )


def load_linked(place: Path) -> LinkedAnswers:
    """A private bundle of persons with events."""
    checked, package = checked_bundle(place), described_by(place)
    fitted = replace(
        read_fitted(place, package), certificate=_linked_certificate(place / "certificate.json", checked.facts)
    )
    parts, facts = StoredTables(checked.rows, place, package), checked.facts
    own = _linked_own(place / "certificate.json", fitted.certificate)
    return LinkedAnswers(parts, package, fitted, statement(facts), facts["covey"], own)


def _linked_own(path: Path, found: LinkedCertificate | None) -> LinkedCertificate | None:
    """What a certificate says of the very tables that lie beside it."""
    said = None if found is None else read_json(path).get("this_table")
    if found is None or said is None or "bound" not in said:
        return None
    kinds = {words: kind for kind, words in WORDS.items()}
    bound = {kinds[words]: float(value) for words, value in said["bound"].items()}
    return replace(found, bound=bound, persons=int(said["persons"]))


def _linked_certificate(path: Path, facts: Mapping[str, Any]) -> LinkedCertificate | None:
    if not path.is_file():
        return None
    said = read_json(path)
    kinds = {words: kind for kind, words in WORDS.items()}
    bound = {kinds[words]: float(value) for words, value in said["bound"].items()}
    charge = Charge("certificate", Fraction(said["cost"]["amount"]), facts["spent_in"])
    return LinkedCertificate(bound, float(said["estimate"]), charge, int(said["persons"]), said["confidence"])


def statement(facts: Mapping[str, Any]) -> PrivacyStatement:
    """The guarantee of a private bundle, from its privacy.json."""
    budget = promised(facts)
    charges, unused = (
        tuple(
            Charge(c["purpose"], Fraction(c["amount"]), budget.unit, Fraction(c.get("delta", 0)))
            for c in facts.get(name, ())
        )
        for name in ("charges", "unused")
    )
    return PrivacyStatement(
        budget,
        charges,
        facts["n"],
        facts["mechanism"],
        facts["seeded"],
        unused=unused,
        learned=tuple(facts.get("learned", ())),
        left_out=tuple(facts.get("left_out", ())),
        guessed=bool(facts.get("guessed", False)),
        assumed=tuple(facts.get("assumed", ())),
        prior=facts.get("prior", {}).get("bundle"),
    )


def _certificate(path: Path, facts: Mapping[str, Any]) -> Certificate | None:
    if not path.is_file():
        return None
    said = read_json(path)
    bound, estimate = ({int(d): float(v) for d, v in said[name].items()} for name in ("bound", "estimate"))
    charge = Charge("certificate", Fraction(said["cost"]["amount"]), facts["spent_in"])
    own = said.get("rows_out_of_place")  # bundles of covey 0.1 have none
    misplaced = None
    if own is not None:
        numbers = "distribution_functions" in said
        misplaced = OutOfPlace(float(own["bound"]), float(own["estimate"]), int(own["columns"]), numbers)
    return Certificate(bound, estimate, charge, said["measure"].startswith("L2"), said["confidence"], misplaced)
