"""A bundle that somebody hands over: checked without any true data, cited, and used as the prior of a new release."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from covey.engine.models.tables.prior import Prior
from covey.engine.unit import ADD_REMOVE
from covey.errors import InputError, ParameterError, counted
from covey.release.facts import is_anonymous, promised, read_facts
from covey.release.model import fitting, read_arrays, read_json, read_model
from covey.release.places import REPORT, SUMS, counting, listed
from covey.tables.codec import Codec
from covey.tables.columns import cell_by_cell, unguarded
from covey.tables.description import Description
from covey.tables.document import read_document
from covey.tables.resources import Resource
from covey.tables.schema import Schema
from covey.tables.sources import joined, open_source

SCHEMA, PACKAGE = "schema.json", "datapackage.json"  # what describes the one table of a bundle, or several
PAPER = (
    "M. Boedihardjo, T. Strohmer, R. Vershynin: Covariance's Loss is Privacy's Gain: Computationally Efficient, Private and "
    "Accurate Synthetic Data. Foundations of Computational Mathematics (2022)."
)


@dataclass(frozen=True)
class Verified:
    """What `verify_bundle` found to be true: how many synthetic rows each table has, the unit's first."""

    tables: Mapping[str, int]
    facts: Mapping[str, Any]
    finished: bool = True  # whether it has its report and the other files of words

    @property
    def rows(self) -> int:
        """Rows of the unit's table."""
        return next(iter(self.tables.values()))

    @property
    def counted(self) -> Literal["rows", "persons"]:
        """What these are."""
        return "rows" if len(self.tables) == 1 else "persons"

    @property
    def words(self) -> str:
        """All numbers of rows."""
        more = " and ".join(f"{count:,} {name}" for name, count in list(self.tables.items())[1:])
        return counted(self.rows, self.counted[:-1]) + (f" with {more}" if more else "")


def described_by(folder: Path) -> Description:
    """The public description of the tables of a bundle."""
    _require_bundle(folder)
    # Without a folder: what a bundle says of its columns stands in it, and no list is read from another file.
    return Description.from_dict(read_document(folder / (PACKAGE if (folder / PACKAGE).is_file() else SCHEMA)))


def _require_bundle(folder: Path) -> None:
    if not folder.is_dir():
        raise InputError(
            f"{folder} is a file. Name the folder." if folder.exists() else f"there is no folder {folder}."
        )
    if not (folder / SUMS).is_file():
        raise InputError(f"{folder} holds no {SUMS}: it is not a covey bundle, or it is incomplete.")
    if links := sorted(path.name for path in folder.iterdir() if path.is_symlink()):
        raise InputError(f"{links[0]!r} is a link to a file elsewhere: it is not a file of the bundle.")
    if others := sorted(path.name for path in folder.iterdir() if not path.is_file()):
        raise InputError(f"{others[0]!r} is a folder, a pipe or a device: it is not a file of the bundle.")


def as_written(described: Description, facts: Mapping[str, Any]) -> Description:
    """The description of the real tables that a bundle was made from: with their layout and the spelling of their cells."""
    with fitting("privacy.json"):
        source = facts.get("source", {})
        if unknown := set(source) - {part.name for part in described.tables}:
            raise ValueError(f"its source names {min(unknown)!r}, which is no table of the bundle")
        return described.each(lambda part: part.schema.of_source(source.get(part.name, {})))


def tables_of(folder: Path, described: Description) -> list[tuple[Resource, Path]]:
    """The tables of a bundle, and where they lie."""
    if described.schema is not None:
        return [(described.unit, rows_path(folder))]
    found = [(part, folder / str(part.path)) for part in described.tables]
    for part, path in found:
        if path.parent != folder or not path.is_file():
            raise InputError(f"{PACKAGE} names {part.path!r} for {part.name}, which is not a file of the bundle.")
    return found


def verify_files(folder: Path) -> tuple[dict[str, str], bool]:
    """Check the checksums of a bundle: those of its files, and whether it is finished."""
    _require_bundle(folder)
    named = listed(folder)
    present = counting(folder, named)
    if present != set(named):
        missing, extra = (", ".join(map(repr, sorted(names))) for names in (set(named) - present, present - set(named)))
        found = [f"missing: {missing}"] * bool(missing) + [f"extra: {extra}"] * bool(extra)
        raise InputError(f"the files of the bundle differ from its list; {'; '.join(found)}.")
    for name, digest in named.items():
        if file_digest(folder / name) != digest:
            raise InputError(f"{name} was changed after the bundle was written: its checksum differs.")
    return named, REPORT in named


def verify_bundle(folder: str | Path) -> Verified:
    """Check a bundle: its checksums, every row against the schema, and the sum of its charges. Needs no real data."""
    place = Path(folder)
    named, finished = verify_files(place)
    for name in named:
        if name.endswith(".npz"):
            read_arrays(place / name)
        elif name.endswith(".json"):
            read_json(place / name)
    described, facts = described_by(place), read_facts(place)
    as_written(described, facts)
    tables = tables_of(place, described)
    report = (place / REPORT).read_text(encoding="utf-8") if finished else ""
    for _, path in tables:
        if finished and named[path.name] not in report:
            raise InputError(f"{REPORT} describes another table than {path.name}: it does not name its fingerprint.")
    if not is_anonymous(facts):
        read_model(place, described, facts)
    rows = verify_rows(described, tables)
    if rows != facts["synthetic_rows"]:
        raise InputError(f"privacy.json has another number of synthetic rows than the {rows} that are there.")
    return Verified(rows, facts, finished)


def verify_rows(described: Description, tables: list[tuple[Resource, Path]]) -> dict[str, int]:
    """Check every row against the schema of its table, and how tables are linked; how many rows each has."""
    across, counts, kept = described.across, dict[str, int](), dict[str, Any]()
    for part, path in tables:
        schema, source, rows = part.released, open_source(path), 0
        wanted = [] if described.schema is not None else [part.link]
        wanted += [name for name in part.schema.names if across and f"{part.name}.{name}" in across.names]
        held = []
        for piece in map(source.table, source.parts()):
            wrong = schema.validate(piece)
            if wrong:
                of = "" if described.schema is not None else f" of {part.name}"
                raise InputError(f"the synthetic rows{of} break their schema: {wrong[0]}")
            rows += piece.rows
            named = {own if own in schema.names else unguarded(own): cells for own, cells in piece.columns.items()}
            held.append({name: cell_by_cell(named[name]) for name in wanted})
        counts[part.name] = rows
        kept |= {f"{part.name}.{name}": column for name, column in joined(held).items()} if rows and wanted else {}
    if not counts[described.unit.name]:
        raise InputError("the bundle has no synthetic rows.")
    for part, _ in tables[1:]:
        if counts[part.name]:
            _verify_link(described, part, counts, kept)
    return counts


def _verify_link(described: Description, part: Resource, counts: Mapping[str, int], kept: Mapping[str, Any]) -> None:
    """Every row belongs to one of the parent's, at most so many to each, and rules across both hold."""
    assert part.parent is not None  # nosec B101 # for the type checker; every table but the first has one
    one = next(other for other in described.tables if other.name == part.parent.table)
    persons, owners = (np.asarray(kept[f"{own.name}.{own.link}"].cast(int)) for own in (one, part))
    if not np.array_equal(persons, np.arange(1, counts[one.name] + 1)):
        raise InputError(f"the persons of {one.name} are not numbered from 1.")
    if not 1 <= owners.min() <= owners.max() <= len(persons):
        raise InputError(f"{part.name} has rows that belong to no person of {one.name}.")
    if np.bincount(owners).max() > part.parent.at_most:
        raise InputError(f"a person of {part.name} has more than {part.parent.at_most} rows.")
    if described.across is not None:
        joint = {
            name: kept[name].gather((owners - 1).tolist()) if name.startswith(f"{one.name}.") else kept[name]
            for name in described.across.names
        }
        wrong = described.across.validate(joint)
        if wrong:
            raise InputError(f"the synthetic tables break a rule across them: {wrong[0]}")


def rows_path(folder: Path) -> Path:
    """The file with the synthetic rows of a bundle."""
    return folder / ("synthetic.parquet" if (folder / "synthetic.parquet").exists() else "synthetic.csv")


def file_digest(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def bundle_digest(bundle: Path) -> str:
    """The digest under which the ledger knows a bundle: that of its list of checksums."""
    return file_digest(bundle / SUMS)


# Cited.


def cite(folder: Path) -> dict[str, str]:
    """The citation of a bundle that is whole and consistent: a sentence, BibTeX, and the fingerprint."""
    checked, digest = verify_bundle(folder), bundle_digest(folder)
    facts, n, promise = checked.facts, checked.facts["n"], str(checked.facts["guarantee"])
    if not is_anonymous(facts):
        promise += f", {promised(facts).parameters}, for {facts['unit']}"
    about = "about " if facts.get("neighbours") == ADD_REMOVE else ""
    if checked.counted == "persons":
        title, source = (
            "Synthetic tables of {} with their events",
            f"confidential tables of {about}{counted(n, 'person')}",
        )
    else:
        title, source = "Synthetic table of {}", f"a confidential table of {about}{counted(n, 'row')}"
    made, title = facts["about"]["made"], title.format(counted(checked.rows, checked.counted[:-1]))
    sentence = (
        f"{title}, made on {made} with covey {facts['covey']} from {source}; {promise}. "
        f"SHA-256 of its list of checksums: {digest}. Method: {PAPER}"
    )
    bibtex = f"""@misc{{covey-{digest[:12]},
  title = {{{title} made with covey}},
  year = {{{made[:4]}}},
  note = {{{promise}; SHA-256 {digest}}}
}}"""
    return {"sentence": sentence, "bibtex": bibtex, "sha256": digest}


# As public information for a new release of the same kind of table.


def read_prior(folder: Any, codec: Codec, seeded: bool) -> Prior:
    """The rows of a private bundle, checked, in the codes of a schema."""
    place = checked_prior(folder, Description.of(codec.schema), seeded)
    codes, _ = codec.encode(rows_path(place), "numbers")
    return Prior(np.asarray(codes), bundle_digest(place))


def checked_prior(folder: Any, now: Description, seeded: bool) -> Path:
    """The folder of a private bundle, checked.

    The bundle must be whole, differentially private and of the same tables. Using it costs nothing that was not paid when it was
    made: if it is about the same persons, both releases count, and the ledger adds them up.
    """
    place = Path(folder)
    facts = verify_bundle(place).facts
    if is_anonymous(facts):
        raise InputError(
            f"{place} is an anonymous bundle, which is not differentially private. Used as public information, it would leak "
            "into a private release. Give a bundle made by covey release."
        )
    if facts["seeded"] and not seeded:
        raise InputError(
            f"{place} was made with a seed and is not private: it cannot be the prior of a private release."
        )
    before = described_by(place)
    if [(part.name, part.parent) for part in before.tables] != [(part.name, part.parent) for part in now.tables]:
        raise ParameterError(f"the prior {place} has other tables, or links them otherwise.")
    for one, two in zip(before.tables, now.plain().tables, strict=True):
        _same_fields(one.schema, two.schema, place)
    return place


def _same_fields(before: Schema, now: Schema, place: Path) -> None:
    """Refuse a bundle whose columns are others, or have other limits or categories."""
    if before.names != now.names:
        other = sorted(set(before.names) ^ set(now.names)) or list(before.names)
        raise ParameterError(f"the prior {place} has other columns than the schema: {', '.join(map(repr, other[:5]))}.")
    for one, two in zip(before.fields, now.fields, strict=True):
        if one.to_dict() != two.to_dict():
            raise ParameterError(
                f"the prior {place} describes {one.name!r} differently from the schema: a prior has the same limits and "
                "categories. Release without it, or use last year's description of this column."
            )
