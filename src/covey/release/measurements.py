"""The measurements of a release on disk: measurements.npz holds the noisy numbers, measurements.json says what they are.

Only what the gate gave back can be written: a `Measurement` is a query and its noisy values. An array of records, an exact moment
or a sealed value has no way in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from covey.core.arrays import Array, symmetric
from covey.errors import InputError
from covey.measure.measurement import Measurement, Measurements
from covey.measure.query import Every, Factor, Query
from covey.release.reading import read_arrays, read_json
from covey.table.document import write_document

FORMAT = 2  # of these two files; a reader refuses others
NUMBERS, DESCRIPTION = "measurements.npz", "measurements.json"
NOTE = "Outputs of the private mechanism, noise included: they cost nothing more. sd is the noise's standard deviation."
ABOUT = {
    "cells": "counts of every cell, table after table; divided by per they are shares of units",
    "centred": "tables minus what their margins and the factors' references say; of all pairs the part above the diagonal",
    "product": "mean products of yes/no columns minus the factors' references",
}
_PARTS = ("edges", "bins", "reference")


def pack(measured: Measurements) -> tuple[dict[str, Any], dict[str, Array]]:
    """A description, and arrays by name."""
    if not isinstance(measured, Measurements) or not all(isinstance(m, Measurement) for m in measured.found):
        raise TypeError("only measurements that a gate gave back can be written.")
    listing: list[dict[str, Any]] = []
    arrays: dict[str, Array] = {}
    known: dict[int, int] = {}  # sets of factors that several measurements share
    for i, m in enumerate(measured.found):
        query, sets, values = m.query, m.query.sets, m.values
        k = known.setdefault(id(query.factors), i)
        if k == i:
            arrays |= _factors(i, query.factors)
        arrays[f"{i} values"] = values[np.triu_indices(len(values), 1)] if values.ndim == 2 else values
        if np.ndim(m.sd):
            arrays[f"{i} sds"] = np.asarray(m.sd)
        every = {"every": [sets.p, sets.degree]} if isinstance(sets, Every) else [list(map(int, s)) for s in sets]
        listing.append(
            {"of": query.of, "view": query.view, "about": ABOUT[query.view], "cut": query.cut, "total": query.total}
            | {"sets": every, "factors": k, "law": m.law, "sd": None if np.ndim(m.sd) else m.sd, "per": m.per}
            | {"purpose": m.purpose}
        )
    return {"n": measured.n, "measurements": listing}, arrays


def write_measurements(measured: Measurements, names: Sequence[str], folder: Path) -> None:
    """Both files; names are those of the columns."""
    facts, arrays = pack(measured)
    write_document(folder / DESCRIPTION, {"format": FORMAT, "note": NOTE, "columns": list(names), **facts})
    np.savez(folder / NUMBERS, allow_pickle=False, **arrays)  # type: ignore[arg-type, unused-ignore]


def _factors(i: int, factors: Mapping[int, Factor]) -> dict[str, Array]:
    """Columns, and their edges, bins and references one after the other."""
    out: dict[str, Array] = {
        f"{i} columns": np.array(list(factors)),
        f"{i} cells": np.array([len(f.bins) for f in factors.values()]),
    }
    for name in _PARTS:
        parts = [getattr(f, name) for f in factors.values() if getattr(f, name) is not None]
        out |= {f"{i} {name}": np.concatenate(parts)} if parts else {}
    return out


def read_measurements(folder: Path, sizes: Sequence[int]) -> Measurements | None:
    """The measurements of a bundle, if it has any, checked against the numbers of codes of its schema's columns."""
    if not (folder / DESCRIPTION).is_file() or not (folder / NUMBERS).is_file():
        return None
    facts = read_json(folder / DESCRIPTION)
    written = facts.get("format") if isinstance(facts, dict) else None
    if written != FORMAT:
        raise InputError(
            f"{DESCRIPTION} has format {written}, and this covey reads {FORMAT}: update covey, or ask for the bundle "
            "to be written again."
        )
    arrays = read_arrays(folder / NUMBERS)
    try:
        found = Measurements(facts["n"], tuple(_listed(facts["measurements"], arrays)))
        _check(found, sizes)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise InputError(f"{NUMBERS} and {DESCRIPTION} do not fit together, or to this bundle: {error}.") from None
    return found


def _listed(listing: Sequence[Mapping[str, Any]], arrays: Mapping[str, Array]) -> list[Measurement]:
    """The list again."""
    found: list[Measurement] = []
    factors: dict[int, Mapping[int, Factor]] = {}
    for i, said in enumerate(listing):
        k = said["factors"]
        if k not in factors:
            factors[k] = _read_factors(k, arrays)
        sets: Sequence[Any] = (
            Every(*said["sets"]["every"]) if "every" in said["sets"] else [tuple(s) for s in said["sets"]]
        )
        query = Query(sets, factors[k], said["view"], said["of"], said["cut"], said["total"])
        values, sd = arrays[f"{i} values"], arrays[f"{i} sds"] if said["sd"] is None else said["sd"]
        if isinstance(sets, Every) and sets.degree == 2 and len(values):
            values = symmetric(values, int(query.blocks[-1]))
        found.append(Measurement(query, values, sd, said["law"], said["per"], said["purpose"]))
    return found


def _read_factors(k: int, arrays: Mapping[str, Array]) -> dict[int, Factor]:
    cells = arrays[f"{k} cells"]
    bins = np.split(arrays[f"{k} bins"], np.cumsum(cells)[:-1])
    edges = np.split(arrays[f"{k} edges"], np.cumsum(cells + 1)[:-1])
    own: list[Any] = [None] * len(cells)
    if f"{k} reference" in arrays:
        own = np.split(arrays[f"{k} reference"], np.cumsum([int(b.max()) + 1 for b in bins])[:-1])
    return {int(a): Factor(*parts) for a, *parts in zip(arrays[f"{k} columns"], edges, bins, own, strict=True)}


def _check(found: Measurements, sizes: Sequence[int]) -> None:
    """Refuse measurements of other columns, of other sizes than their tables, or whose noise has no size."""
    alone = {a for m in found.found if m.query.degree == 1 for a in m.query.factors}
    if not alone >= set(range(len(sizes))):
        raise ValueError("it has another number of columns than the schema")
    for m in found.found:
        query, factors = m.query, m.query.factors.values()
        if not all(len(f.edges) == len(f.bins) + 1 and np.all(np.diff(f.edges) > 0) for f in factors):
            raise ValueError("its bins are made of other cells")
        if not all(f.bins.dtype.kind in "iu" and f.bins.min() >= 0 for f in factors):
            raise ValueError("its bins have no places")
        if any(f.edges[-1] != sizes[a] for a, f in query.factors.items() if a < len(sizes)):
            raise ValueError("its tables have other sizes than the schema's columns")
        # More tables than numbers are never written: they would be gone through one by one.
        if m.kept and m.values.ndim == 1 and (len(query.sets) > len(m.values) or len(m.values) != query.starts[-1]):
            raise ValueError("its tables have other sizes than their bins")
        if not np.all(np.isfinite(m.sd)) or np.any(np.asarray(m.sd) < 0) or not 0 < m.per < np.inf:
            raise ValueError("the noise of a table has no size")
