"""A bundle checked without any true data."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from covey.errors import InputError
from covey.privacy.budget import Budget, Charge, budget_for
from covey.release.linkedverify import DESCRIBED, verify_linked
from covey.release.measurements import read_measurements
from covey.release.places import REPORT, SUMS, counting, listed
from covey.table.codec import Codec
from covey.table.numbers import NumberCodec
from covey.table.schema import Schema
from covey.table.sources import open_source


@dataclass(frozen=True)
class Verified:
    """What `verify_bundle` found to be true: how many synthetic rows there are, or persons with their events."""

    rows: int
    facts: Mapping[str, Any]
    counted: Literal["rows", "persons"] = "rows"
    finished: bool = True  # whether it has its report and the other files of words


def verify_bundle(folder: Path) -> Verified:
    """Check a bundle without any true data: as `verify_files`, and the schema's validity for every row."""
    facts = verify_files(folder)
    named = listed(folder)
    finished = REPORT in named
    if DESCRIBED in named:
        rows, tables = verify_linked(folder)
        if finished and not all(named[path.name] in (folder / REPORT).read_text(encoding="utf-8") for path in tables):
            raise InputError(f"{REPORT} describes other tables than those of the bundle.")
        return Verified(rows, facts, "persons", finished)
    codec, source, rows = Codec(Schema.load(folder / "schema.json")), open_source(rows_path(folder)), 0
    for part in source.parts():
        piece = source.table(part)
        wrong = codec.problems(piece)
        if wrong:
            raise InputError(f"the synthetic rows break their schema: {wrong[0]}")
        rows += piece.rows
    if not rows:
        raise InputError("the bundle has no synthetic rows.")
    return Verified(rows, facts, finished=finished)


def verify_files(folder: Path) -> Mapping[str, Any]:
    """What privacy.json says, if every file is as it was written and the budget and the measurements add up.

    The rows are not read one by one: checksums say that they are those of the bundle, and answers do not rest on them.
    """
    if not folder.is_dir():
        raise InputError(
            f"{folder} is a file. Name the folder." if folder.exists() else f"there is no folder {folder}."
        )
    if not (folder / SUMS).is_file():
        raise InputError(f"{folder} holds no {SUMS}: it is not a covey bundle, or not a whole one.")
    named = listed(folder)
    present = counting(folder, named)
    if present != set(named):
        missing, extra = (", ".join(map(repr, sorted(names))) for names in (set(named) - present, present - set(named)))
        found = [f"missing: {missing}"] * bool(missing) + [f"extra: {extra}"] * bool(extra)
        raise InputError(f"the files of the bundle are not those it lists; {'; '.join(found)}.")
    for name, digest in named.items():
        if file_digest(folder / name) != digest:
            raise InputError(f"{name} was changed after the bundle was written: its checksum differs.")
    facts: dict[str, Any] = json.loads((folder / "privacy.json").read_text(encoding="utf-8"))
    if "charges" in facts:
        _verify_budget(facts)
    if DESCRIBED in named:
        return facts
    table = rows_path(folder)
    if REPORT in named and named[table.name] not in (folder / REPORT).read_text(encoding="utf-8"):
        raise InputError(f"{REPORT} describes another table than {table.name}: it does not name its fingerprint.")
    codec = Codec(Schema.load(folder / "schema.json"))
    measured = read_measurements(folder, [kind.size for kind in NumberCodec(codec).attributes])
    if measured is not None and measured.n != facts["n"]:
        raise InputError(f"the measurements are of {measured.n} {facts['n_counts']}, and the bundle of {facts['n']}.")
    return facts


def promised(facts: Mapping[str, Any]) -> Budget:
    """The budget that ε, δ and the unit of privacy.json allow.

    Naming learned labels spends a part of δ, which the amount must then do without.
    """
    source = "opendp" if facts.get("accounting", "zcdp") == "zcdp" else "covey"  # early bundles knew zCDP alone
    named = any("delta" in charge for charge in facts["charges"])
    epsilon, delta = Fraction(facts["epsilon"]), Fraction(facts["delta"])
    return budget_for(epsilon, delta, facts["rows_per_person"], source, named)


def _verify_budget(facts: Mapping[str, Any]) -> None:
    """The charges must not exceed the amount, and the amount must be what was promised."""
    budget = promised(facts)
    if sum((Fraction(c.get("delta", 0)) for c in facts["charges"]), Fraction(0)) > budget.selection:
        raise InputError("the charges spend more of δ than its part for learned labels.")
    charges = tuple(Charge(c["purpose"], Fraction(c["amount"]), budget.unit) for c in facts["charges"])
    if Fraction(facts["amount"]) > budget.amount:
        raise InputError("the bundle claims a larger amount per row than its ε and δ allow.")
    spent = sum((charge.amount for charge in charges), Fraction(0))
    if spent > Fraction(facts["amount"]):
        raise InputError(f"the charges sum to {spent}, more than the {facts['amount']} that were promised.")


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
