"""True against synthetic: confidential figures for the steward, computed on true data without noise."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Integers
from covey.errors import InputError
from covey.release.bundle import rows_path, verify_bundle
from covey.table.codec import Codec
from covey.table.schema import Schema
from covey.table.sources import read_table

TABLES = 400  # so many tables of each degree are compared, at most


def evaluate_bundle(table: Path, folder: Path, encoding: str = "utf-8") -> dict[str, Any]:
    """Mean total variation of 1-, 2- and 3-way tables, and the pairs that are furthest off."""
    verify_bundle(folder)
    schema = Schema.load(folder / "schema.json")
    codec = Codec(schema)
    true, _ = codec.encode(read_table(table, schema, encoding=encoding))
    synthetic, _ = codec.encode(read_table(rows_path(folder), schema))
    sizes = codec.domain_sizes
    if not len(sizes):
        raise InputError("the schema has only constants: there is nothing to compare.")
    variation = {
        str(d): float(np.mean([total_variation(true, synthetic, sizes, s) for s in _subsets(len(sizes), d)]))
        for d in (1, 2, 3)
        if d <= len(sizes)
    }
    pairs = sorted(
        ((total_variation(true, synthetic, sizes, s), s) for s in _subsets(len(sizes), 2)), key=lambda x: -x[0]
    )
    return {
        "watermark": "confidential: computed on true data",
        "rows": {"true": len(true), "synthetic": len(synthetic)},
        "total_variation": variation,
        "worst_pairs": [(codec.names[a], codec.names[b], value) for value, (a, b) in pairs[:5]],
    }


def total_variation(X: Integers, Z: Integers, sizes: Any, subset: tuple[int, ...]) -> float:
    """Half the ℓ1 distance between two tables of the attributes in the subset."""
    codes = []
    for table in (X, Z):
        code = np.zeros(len(table), dtype=np.int64)
        for a in subset:
            code = code * int(sizes[a]) + table[:, a]
        codes.append(code)
    _, where = np.unique(np.concatenate(codes), return_inverse=True)
    size = int(where.max()) + 1
    one = np.bincount(where[: len(X)], minlength=size) / len(X)
    two = np.bincount(where[len(X) :], minlength=size) / len(Z)
    return float(np.abs(one - two).sum() / 2)


def _subsets(q: int, degree: int) -> Iterator[tuple[int, ...]]:
    """All subsets, or every so-manieth where there are too many."""
    every = list(combinations(range(q), degree))
    yield from every[:: max(1, len(every) // TABLES)]
