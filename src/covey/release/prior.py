"""A bundle that was released before, read as public information for a new release of the same kind of table."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from covey.errors import InputError, ParameterError
from covey.methods.regain.tables import Prior
from covey.release.verify import bundle_digest, described_by, rows_path, verify_bundle
from covey.table.codec import Codec
from covey.table.description import Description
from covey.table.schema import Schema


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
    if "group_size" in facts:
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
