"""What the gate gave back, on disk, written and read again: what rows are drawn from, and the noisy numbers themselves.

model.npz holds, of one table, weighted centres, of persons with events the models of their sequences; of numbers also the codes
at which their cells begin and end ("3 edges", by the place of the column among all measured ones) and the private measure from
which values inside cells are drawn ("3 start", "3 stop", "3 share"). measurements.npz holds the noisy numbers, and
measurements.json says what they are. Only a `Measurement`, a query and its noisy values, can be written: an array of records, an
exact moment or a sealed value has no way in. Whoever sent a bundle, its files are refused in words where they do not fit.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from covey.engine.arrays import Array, symmetric
from covey.engine.codes.domain import Domain
from covey.engine.codes.events import count_bins
from covey.engine.codes.zeros import Across
from covey.engine.draw.events import SequenceLaw
from covey.engine.entropy import SEEDED_MARK
from covey.engine.fit.centres import Triples
from covey.engine.fit.events import EventModel, Tie
from covey.engine.fit.spectrum import Spectrum
from covey.engine.measurement import Measurement, Measurements
from covey.engine.model import Fitted
from covey.engine.models.laws import BitLaw, CodeLaw, RowLaw
from covey.engine.models.persons.law import PersonsLaw
from covey.engine.noise.law import LAWS, UNMEASURED
from covey.engine.numbers.grid import Attribute, Cells, Measure, NumberGrid
from covey.engine.points import WeightedPoints
from covey.engine.query import Every, Factor, Query
from covey.errors import InputError
from covey.release.contents import PrivateRelease
from covey.release.model_checks import check_cells, check_law, check_measurement, check_said, check_spectrum
from covey.tables.codec import Codec
from covey.tables.description import Description
from covey.tables.document import write_document
from covey.tables.zeros import across_zeros, structural_zeros

MODEL = "model.npz"
PARTS = ("persons", "kinds", "events", "chain", "sticky")  # of a model of persons with events
MEASURE = ("start", "stop", "share")  # of a number
NUMBER = "number of events"  # what is measured of persons beside their columns
FORMAT = 2  # of these two files; a reader refuses others
NUMBERS, DESCRIPTION = "measurements.npz", "measurements.json"
NOTE = "Outputs of the private mechanism, noise included: they cost nothing more. sd is the noise's standard deviation."
SEEDED_NOTE = f"{SEEDED_MARK}: whoever knows the seed can subtract the noise. sd is the noise's standard deviation."
ABOUT = {
    "cells": "counts of every cell, table after table; divided by per they are shares of units",
    "centred": "tables minus what their margins and the factors' references say; of all pairs the part above the diagonal",
    "product": "mean products of yes/no columns minus the factors' references",
}
_PARTS = ("edges", "bins", "reference")
EXPANSION = 50  # how many times its size a file may unfold to: covey's own are not compressed
SMALL = 1 << 24  # bytes that any file may unfold to


def write_model(release: PrivateRelease, folder: Path) -> None:
    """What rows are drawn from, and the noisy numbers that were measured."""
    np.savez(folder / MODEL, **model_arrays(release.fitted))
    if release.measurements is not None:
        names = measured_names(release.described)
        write_measurements(release.measurements, names, folder, release.privacy.seeded)


def measured_names(described: Description) -> list[str]:
    """The columns that measurements number, by name; of persons the number of events comes last."""
    names = [field.name for part in described.tables for field in part.measured.coded.encoded]
    return names if described.schema is not None else [*names, NUMBER]


def model_arrays(fitted: Fitted) -> dict[str, Any]:
    """The arrays of model.npz: of a law, and the noisy spectrum."""
    law, arrays = fitted.law, dict[str, Any]()
    if isinstance(law, PersonsLaw):  # models by number, and the law of the number of events
        arrays["counts"] = law.sequences.counts
        for k, model in enumerate(law.sequences.models):
            arrays |= {f"{k} {name}": np.asarray(getattr(model, name)) for name in PARTS}
        arrays |= {f"tilt {q} {a}": factors for (q, a), factors in law.sequences.tilts.items()}
        for a, tie in law.sequences.ties.items():
            arrays[f"tie {a}"] = np.array([tie.again, tie.lasting, tie.rho, tie.free, *tie.bins])
    elif isinstance(law, RowLaw):
        arrays |= {"weights": law.cloud.weights, "points": law.cloud.points}
    if isinstance(law, CodeLaw):  # ranks that swaps of rows keep; triples that were measured, and their levels
        arrays |= {} if law.score is None else {"score": law.score}
        if law.triples:
            arrays["triples"] = np.array(list(zip_longest(*law.triples.names, fillvalue=-1))).T
            arrays |= {f"{x} level": levels for x, levels in law.triples.levels.items()}
    for j, own in law.cells.items() if isinstance(law, CodeLaw | PersonsLaw) else ():
        arrays[f"{j} edges"] = own.edges
        arrays |= {f"{j} {name}": getattr(own.measure, name) for name in MEASURE}
    if (seen := fitted.spectrum) is not None:
        arrays["spectrum"] = np.array([seen.edge, seen.dimension, *seen.values])
    return arrays


def read_model(folder: Path, described: Description, facts: Mapping[str, Any]) -> Fitted:
    """The model and the measurements of a bundle, which privacy.json says were paid for; without its certificate."""
    model = read_arrays(folder / MODEL)
    n, purposes = facts["n"], {charge["purpose"] for charge in facts["charges"]}
    measured = read_measurements(folder, measured_sizes(described), measured_names(described))
    if measured is not None and measured.n != n:
        raise InputError(f"the measurements are of {measured.n} units, and the bundle of {n}.")
    if measured is not None and not {m.purpose for m in measured.found if m.law is not UNMEASURED} <= purposes:
        raise InputError(f"{DESCRIPTION} has measurements that no charge of the bundle paid for.")
    with fitting(MODEL):
        if described.schema is not None:
            found = _rows(model, described.codecs[0], measured)
        else:
            found = _persons(model, described, measured)
        if isinstance(found.law, RowLaw | PersonsLaw):
            check_law(found.law)
    return found


def measured_sizes(described: Description) -> list[int]:
    """How many codes the columns have that measurements number."""
    if described.schema is not None:
        return list(described.codecs[0].sizes)
    return [*(kind.size for kinds in described.kinds for kind in kinds), described.link.at_most + 1]


def _cells(model: Mapping[str, Array], attributes: Sequence[Attribute]) -> dict[int, Cells]:
    found = {}
    for j, kind in enumerate(attributes):
        if isinstance(kind, NumberGrid):
            measure = Measure(kind, *(model[f"{j} {name}"] for name in MEASURE))
            edges = model[f"{j} edges"]
            check_cells(measure, edges)
            found[j] = Cells(measure, edges, measure.mass(edges))
    return found


def _rows(model: Mapping[str, Array], codec: Codec, measured: Measurements | None) -> Fitted:
    """Centres; without cells and categories where every column is a flag."""
    cloud = WeightedPoints(model["weights"], model["points"])
    law: RowLaw = BitLaw(cloud, codec.limits if codec.flags else ())
    width = len(codec.domain_sizes)
    if not codec.flags:
        cells = _cells(model, codec.kinds)
        sizes = tuple(len(cells[j].share) if j in cells else kind.size for j, kind in enumerate(codec.kinds))
        names = tuple(tuple(int(x) for x in own if x >= 0) for own in model.get("triples", ()))
        if not all(3 <= len(own) <= 5 for own in names):
            raise ValueError("a triple has fewer than three columns, or more than five")
        triples = Triples(names, {x: model[f"{x} level"] for triple in names for x in triple})
        domain, width = Domain(sizes, codec.ordered), sum(sizes)
        law = CodeLaw(cloud, domain, cells, model.get("score"), structural_zeros(codec), triples or None)
    if cloud.points.shape != (len(cloud.weights), width):
        raise ValueError("its centres have other columns than the schema")
    spectrum = None
    if "spectrum" in model:
        edge, dimension, *values = map(float, model["spectrum"])
        check_spectrum(values, edge, dimension, width)
        spectrum = Spectrum(tuple(values), edge, int(dimension))
    return Fitted(law, measured, spectrum)


def _persons(model: Mapping[str, Array], package: Description, measured: Measurements | None) -> Fitted:
    """The law of persons with events."""
    attributes = [kind for kinds in package.kinds for kind in kinds]
    cells = _cells(model, attributes)
    first = len(package.kinds[0])
    sizes = [len(cells[j].share) if j in cells else kind.size for j, kind in enumerate(attributes)]
    ordered = [own for codec in package.codecs for own in codec.ordered]
    counts = model["counts"]
    whole = Domain((*sizes[:first], len(count_bins(len(counts) - 1))), (*ordered[:first], True))
    models = [
        EventModel(**{name: model[f"{k} {name}"] for name in PARTS[:-1]}, sticky=float(model[f"{k} sticky"]))
        for k in range(sum(name.endswith(" sticky") for name in model))
    ]
    starts = [cells[j].edges[:-1] if j in cells else np.arange(size) for j, size in enumerate(sizes)]
    barred, timing = Across.of(across_zeros(package), first, starts), package.events.timing
    places = [name.split()[1:] for name in model if name.startswith("tilt ")]
    tilts = {(int(q), int(a)): model[f"tilt {q} {a}"] for q, a in places}
    named = [(a, model[f"tie {a}"]) for a in range(len(sizes) - first) if f"tie {a}" in model]
    ties = {a: Tie(float(x[0]), bool(x[1]), float(x[2]), int(x[3]), x[4:].astype(np.int64)) for a, x in named}
    if any(len(tie.bins) != sizes[first + a] for a, tie in ties.items()):
        raise ValueError("ties of events have other categories than their columns")
    events = Domain(tuple(sizes[first:]), tuple(ordered[first:]))
    law = SequenceLaw(models, whole, events, counts, barred, timing, tilts, ties)
    last = 0 if timing.order is None else attributes[first + timing.order].size - 1
    if measured is None:
        raise InputError("the bundle has no measurements.")
    return Fitted(PersonsLaw(law, cells, last), measured)


# The noisy numbers.


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
            | {"sets": every, "factors": k, "law": m.law.name, "sd": None if np.ndim(m.sd) else m.sd, "per": m.per}
            | {"purpose": m.purpose}
        )
    return {"n": measured.n, "measurements": listing}, arrays


def write_measurements(measured: Measurements, names: Sequence[str], folder: Path, seeded: bool = False) -> None:
    """Both files; names are those of the columns."""
    facts, arrays = pack(measured)
    write_document(
        folder / DESCRIPTION,
        {"format": FORMAT, "note": SEEDED_NOTE if seeded else NOTE, "columns": list(names), **facts},
    )
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


def read_measurements(folder: Path, sizes: Sequence[int], names: Sequence[str] | None = None) -> Measurements | None:
    """The measurements of a bundle, if it has any, checked against the numbers of codes, and names, of its schema's columns."""
    if not (folder / DESCRIPTION).is_file() or not (folder / NUMBERS).is_file():
        return None
    facts = read_json(folder / DESCRIPTION)
    written = facts.get("format") if isinstance(facts, dict) else None
    if type(written) is not int or written != FORMAT:
        raise InputError(
            f"{DESCRIPTION} has format {written}, and this covey reads {FORMAT}: update covey, or ask for the bundle "
            "to be written again."
        )
    arrays = read_arrays(folder / NUMBERS)
    try:
        if names is not None and facts["columns"] != list(names):
            raise ValueError("it names other columns than the schema")
        for said in facts["measurements"]:
            check_said(said, len(sizes))
        found = Measurements(facts["n"], tuple(_listed(facts["measurements"], arrays)))
        _check(found, sizes)
    except (ArithmeticError, KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
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
        found.append(Measurement(query, values, sd, LAWS[said["law"]], said["per"], said["purpose"]))
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
        check_measurement(m)


# Files of whoever sent a bundle.


@contextmanager
def fitting(name: str) -> Iterator[None]:
    """Whatever a file of a bundle lacks, or has in excess, is told in words: a stranger may have changed it."""
    try:
        yield
    except InputError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"it was changed, or written by another covey ({str(error).rstrip('.')})"
        raise InputError(f"{name} does not fit to this bundle: {why}.") from None


def read_json(path: Path) -> Any:
    """The contents of a JSON file of a bundle."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        deep = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise InputError(f"{path} is not JSON: {deep}.") from None


def read_arrays(path: Path) -> dict[str, Array]:
    """The arrays of an .npz file: numbers alone, all finite, and no more of them than the file has room for."""
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(part.file_size for part in packed.infolist())
        if size > max(SMALL, EXPANSION * path.stat().st_size):
            raise InputError(
                f"{path} unfolds to {size} bytes, far more than it has: it is not a file that covey wrote."
            )
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (ValueError, EOFError, zipfile.BadZipFile, MemoryError) as error:
        raise InputError(f"{path} holds no plain arrays of numbers: {error}.") from None
    for name, values in arrays.items():
        if not isinstance(values, np.ndarray) or values.dtype.kind not in "biuf":
            raise InputError(f"{name!r} in {path} is no array of numbers.")
        if values.dtype.kind == "f" and not np.isfinite(values).all():
            raise InputError(f"{name!r} in {path} holds numbers that are not finite.")
    return arrays
